//! What the tests of the whole server share: starting it in a folder of its own, killing it,
//! running the real clients, and a small client of its own for tests that must know exactly what
//! was acknowledged.
#![allow(dead_code)]

pub mod browser;
pub mod client;
pub mod footprint;
pub mod http;
pub mod language;
pub mod random;
pub mod raw;
pub mod work;

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The binary under test.
pub const BIN: &str = env!("CARGO_BIN_EXE_threadgres");
/// PostgreSQL 15's programs.
pub const PG_BIN: &str = "/usr/lib/postgresql/15/bin";
/// The minor release of PostgreSQL whose answers the expectations are. Beside another one, an answer in which only the
/// oracle differs is a warning: see [`Oracle::is_followed`].
pub const FOLLOWED: &str = "15.20";

/// A number that the environment gives under a name, or the one of `make test`.
pub fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// A folder that goes away with the test.
pub struct TempDir(PathBuf);

impl TempDir {
    /// A folder that no other test has, of this process or another.
    pub fn new(name: &str) -> TempDir {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let (pid, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("threadgres-{name}-{pid}-{number}"));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the temporary folder is writable");
        TempDir(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A port that nobody listens on now and no other test of this process gets.
pub fn free_port() -> u16 {
    lab::servers::free_port().expect("a port is free")
}

/// A running server; dropped: stopped at once.
pub struct Server {
    pub port: u16,
    pub dir: PathBuf,
    child: Child,
}

impl Server {
    /// Starts on a directory (initialised if need be) and waits until it takes connections.
    pub fn start(dir: &Path, settings: &[&str]) -> Server {
        Server::start_on(dir, free_port(), settings)
    }

    pub fn start_on(dir: &Path, port: u16, settings: &[&str]) -> Server {
        let mut command = Command::new(BIN);
        command.args(["serve", "--single-process", "--allow-root"]);
        Server::launch(command, dir, port, settings)
    }

    /// A standby of the server on a port, which knows it by this name; the directory is made from it if need be.
    pub fn start_standby(dir: &Path, primary: u16, name: &str, settings: &[&str]) -> Server {
        Server::start_standby_on(dir, free_port(), primary, name, settings)
    }

    /// As [`Server::start_standby`], on this port.
    pub fn start_standby_on(
        dir: &Path,
        port: u16,
        primary: u16,
        name: &str,
        settings: &[&str],
    ) -> Server {
        let url = format!("host=127.0.0.1 port={primary} user=postgres application_name={name}");
        Server::standby_of(dir, port, &url, settings)
    }

    /// A standby of the server at this URL.
    pub fn start_standby_of(dir: &Path, url: &str, settings: &[&str]) -> Server {
        Server::standby_of(dir, free_port(), url, settings)
    }

    fn standby_of(dir: &Path, port: u16, url: &str, settings: &[&str]) -> Server {
        let mut command = Command::new(BIN);
        command.args(["serve", "--single-process", "--allow-root", "--standby-of", url]);
        Server::launch(command, dir, port, settings)
    }

    /// As [`Server::start`], with the supervisor process, whose number [`Server::pid`] then is.
    pub fn start_supervised(dir: &Path, environment: &[(&str, &str)]) -> Server {
        let mut command = Command::new(BIN);
        command.args(["serve", "--allow-root"]).envs(environment.iter().copied());
        Server::launch(command, dir, free_port(), &[])
    }

    /// As [`Server::start_supervised`], with settings; a crash is followed by a start at once.
    pub fn start_crashing(dir: &Path, settings: &[&str]) -> Server {
        let mut command = Command::new(BIN);
        command.args(["serve", "--allow-root", "-c", "debug_tiny=on"]);
        Server::launch(command, dir, free_port(), settings)
    }

    fn launch(mut command: Command, dir: &Path, port: u16, settings: &[&str]) -> Server {
        command.arg("-D").arg(dir).args(["-p", &port.to_string()]);
        for setting in settings {
            command.args(["-c", setting]);
        }
        let log = dir.with_extension("log");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log);
        let log = log.expect("the log is writable");
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the server's binary was built with the tests");
        let mut server = Server { port, dir: dir.to_owned(), child };
        server.wait_ready();
        for setting in settings {
            if let Some(port) = setting.strip_prefix("http_port=").and_then(|p| p.parse().ok()) {
                http::belongs(port, dir);
            }
        }
        server
    }

    fn wait_ready(&mut self) {
        let until = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if let Ok(Some(status)) = self.child.try_wait() {
                let log = std::fs::read_to_string(self.dir.with_extension("log"));
                panic!("the server ended with {status}: {}", log.unwrap_or_default());
            }
            assert!(Instant::now() < until, "the server did not listen within a minute");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// SIGKILL, as a crash.
    pub fn kill(mut self) {
        self.child.kill().expect("the server is ours");
        self.child.wait().expect("a killed child can be waited for");
    }

    /// Waits until it ends by itself.
    pub fn wait(mut self) -> std::process::ExitStatus {
        self.child.wait().expect("the server can be waited for")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name (`STOP`, `CONT`).
    pub fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "SIG{name} was not sent");
    }

    /// `threadgres stop -m fast`; returns whether it ended well.
    pub fn stop(mut self) -> bool {
        let stop = Command::new(BIN).args(["stop", "-m", "fast", "-D"]).arg(&self.dir).status();
        let ended = self.child.wait().expect("the server can be waited for");
        stop.is_ok_and(|s| s.success()) && ended.success()
    }

    /// Runs psql with a script; standard output and error together.
    pub fn psql(&self, args: &[&str], script: &str) -> String {
        psql(self.port, args, script)
    }

    /// One statement's unaligned result.
    pub fn query(&self, sql: &str) -> String {
        self.psql(&["-Atq", "-v", "ON_ERROR_STOP=1"], sql).trim_end().to_owned()
    }

    /// Runs pgbench; panics when it fails.
    pub fn pgbench(&self, args: &[&str]) -> String {
        let out = pgbench_command(self.port).args(args).arg("postgres").output();
        let out = out.expect("pgbench is installed");
        let text = text_of(&out);
        assert!(out.status.success(), "pgbench {args:?} failed: {text}");
        text
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn pgbench_command(port: u16) -> Command {
    let mut command = Command::new(format!("{PG_BIN}/pgbench"));
    command.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string()]);
    command
}

/// Runs psql on any server; its output and errors in the order in which it wrote them.
pub fn psql(port: u16, args: &[&str], script: &str) -> String {
    use std::io::{Read as _, Write as _};
    let (mut output, writer) = std::io::pipe().expect("the system has pipes");
    let errors = writer.try_clone().expect("the system has descriptors");
    let mut child = Command::new("psql")
        .args(["-X", "-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string()])
        .args(args)
        .arg("postgres")
        .stdin(Stdio::piped())
        .stdout(writer)
        .stderr(errors)
        .spawn()
        .expect("psql is installed");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let script = script.to_owned();
    let feeder = std::thread::spawn(move || {
        let _ = stdin.write_all(script.as_bytes());
    });
    let mut text = Vec::new();
    output.read_to_end(&mut text).expect("psql's output can be read");
    let _ = feeder.join();
    let _ = child.wait();
    String::from_utf8_lossy(&text).into_owned()
}

pub fn text_of(out: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

/// The oracle: a PostgreSQL 15 of the test's own.
pub struct Oracle {
    pub port: u16,
    child: Child,
    _dir: TempDir,
}

impl Oracle {
    pub fn start() -> Oracle {
        Oracle::start_with("C.UTF-8", &[])
    }

    /// With this collation and these settings.
    pub fn start_with(locale: &str, settings: &[&str]) -> Oracle {
        let dir = TempDir::new("oracle");
        let data = dir.path().join("data");
        std::fs::create_dir(&data).expect("the temporary folder is writable");
        if is_root() {
            run(Command::new("chmod").arg("a+rx").arg(dir.path()));
            run(Command::new("chown").arg("postgres").arg(&data));
        }
        let data = data.to_string_lossy().into_owned();
        let args = ["-D", &data, "-A", "trust", "-U", "postgres", "-N", "-E", "UTF8", "--locale"];
        run(as_postgres("initdb").args(args).arg(locale).stdout(Stdio::null()));
        let port = free_port();
        let text = port.to_string();
        let child = as_postgres("postgres")
            .args(["-D", &data, "-p", &text, "-h", "127.0.0.1", "-k", "", "-c", "fsync=off"])
            .args(["-c", "timezone=Etc/UTC", "-c", "jit=off"])
            .args(settings.iter().flat_map(|s| ["-c", s]))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.expect("PostgreSQL 15 is installed");
        let log = child.stderr.take().expect("stderr is piped");
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            if line.contains("ready to accept connections") {
                break;
            }
        }
        Oracle { port, child, _dir: dir }
    }

    /// Whether the oracle is the minor release that the expectations were made with. Another one may have mended
    /// answers since, or not yet: what differs in it alone says nothing about this server.
    pub fn is_followed(&self) -> bool {
        release() == FOLLOWED
    }
}

/// The installed PostgreSQL's release, such as `15.20`.
pub fn release() -> String {
    let out = Command::new(format!("{PG_BIN}/postgres")).arg("--version").output();
    let text = out.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    text.split_whitespace().find(|word| word.starts_with("15.")).unwrap_or_default().to_owned()
}

/// Says that the oracle answers otherwise than the release that the expectations are of: past the capture of tests'
/// output, so that a run that passes shows it, too.
pub fn warn_moved(text: &str) {
    use std::io::Write as _;
    let text =
        format!("warning: PostgreSQL {} answers otherwise than {FOLLOWED}:\n{text}\n\n", release());
    let _ = std::io::stderr().write_all(text.as_bytes());
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

fn run(command: &mut Command) {
    let status = command.status().expect("the command exists");
    assert!(status.success(), "{command:?} failed");
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout.starts_with(b"0"))
}

/// PostgreSQL refuses to run as root.
fn as_postgres(program: &str) -> Command {
    let program = format!("{PG_BIN}/{program}");
    if is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--", &program]);
        command
    } else {
        Command::new(program)
    }
}

//! Servers that the laboratory starts itself: in temporary folders, on loopback, with the same
//! durability, and ended with it in every case.
//!
//! * Dropping a [`Server`] stops it and waits; so does a panic, which drops.
//! * Each has a process group of its own, so that Ctrl-C on the terminal reaches only the laboratory.
//! * Where `setpriv` is installed the kernel ends them with us, also if we are killed.
//! * Servers that refuse to run as root run as the user that their package made.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};

use crate::driver::{Address, Connection, Dialect};
use crate::installed;
use crate::{Error, Result};

/// How long a server may take to start.
const START: Duration = Duration::from_secs(60);
/// How long it may take to end by itself.
const END: Duration = Duration::from_secs(20);

/// The database of MariaDB.
const MARIADB_DATABASE: &str = "lab";

/// A folder that goes away with its owner.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new one that everybody may look into.
    ///
    /// # Errors
    /// It can't be made.
    pub fn new() -> Result<Folder> {
        let path =
            std::env::temp_dir().join(format!("threadgres-lab-servers-{}", std::process::id()));
        let command = Command::new("mkdir").args(["-p", "-m", "755"]).arg(&path).status();
        match command {
            Ok(status) if status.success() => Ok(Folder(path)),
            Ok(_) => Err(Error::file(&path, "can't be made")),
            Err(error) => Err(Error::file(&path, error)),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What all servers are set to.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Connections they must take.
    pub clients: u32,
    /// Their cache, MB.
    pub buffers_mb: u64,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    name: String,
    port: u16,
    dialect: Dialect,
    child: Child,
    end: Signal,
}

impl Server {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where clients find it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address.
    pub fn address(&self) -> Address {
        Address {
            host: "127.0.0.1".to_owned(),
            port: self.port,
            user: "postgres".to_owned(),
            password: None,
            database: match self.dialect {
                Dialect::PostgreSql => "postgres".to_owned(),
                Dialect::MySql => MARIADB_DATABASE.to_owned(),
            },
            dialect: self.dialect,
        }
    }

    /// Waits until `answers` says that it does.
    fn wait(mut self, log: &Path, answers: impl Fn(&Server) -> bool) -> Result<Server> {
        let until = Instant::now() + START;
        loop {
            if answers(&self) {
                return Ok(self);
            }
            let ended = self.child.try_wait()?.is_some();
            if ended || Instant::now() > until {
                let text = fs::read_to_string(log).unwrap_or_default();
                let last =
                    text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("it says nothing");
                let what = if ended { "ended at once" } else { "does not answer" };
                return Err(Error::new(format!("{} {what}: {last}", self.name)));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.child.id() as i32);
        let _ = kill(pid, self.end);
        let until = Instant::now() + END;
        while Instant::now() < until {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(20)),
                _ => return,
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn speaks(server: &Server) -> bool {
    Connection::open(&server.address()).is_ok()
}

/// PostgreSQL 15 on a new cluster.
///
/// # Errors
/// It is not installed, or does not start.
pub fn postgresql(dir: &Path, size: Size) -> Result<Server> {
    let missing = || Error::new("PostgreSQL 15 is not installed (Debian's package postgresql-15)");
    let initdb = installed::postgresql_15("initdb").ok_or_else(missing)?;
    let program = installed::postgresql_15("postgres").ok_or_else(missing)?;
    let user = Account::for_program("postgres")?;
    let data = user.folder(&dir.join("postgresql"))?;
    let mut init = user.command(&initdb, Signal::SIGINT);
    init.arg("-D").arg(&data).args(["-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8"]);
    succeed(init.args(["--locale", "C"]))?;
    let port = free_port()?;
    let mut command = user.command(&program, Signal::SIGINT);
    command.arg("-D").arg(&data).args(["-p", &port.to_string(), "-k", "", "-h", "127.0.0.1"]);
    set(&mut command, &common(size));
    set(&mut command, &["logging_collector=off".to_owned()]);
    let log = dir.join("postgresql.log");
    launch("PostgreSQL 15", port, command, &log, Signal::SIGINT)?.wait(&log, speaks)
}

/// Threadgres in one of its session models: this same program.
///
/// # Errors
/// It does not start.
pub fn threadgres(dir: &Path, model: &str, size: Size) -> Result<Server> {
    let program = std::env::current_exe()?;
    let name = format!("threadgres-{model}");
    let port = free_port()?;
    let mut command = Account::own().command(&program, Signal::SIGINT);
    command.args(["serve", "--allow-root", "-D"]).arg(dir.join(&name)).args([
        "-h",
        "127.0.0.1",
        "-p",
        &port.to_string(),
    ]);
    set(&mut command, &common(size));
    set(&mut command, &[format!("session_model={model}")]);
    let log = dir.join(format!("{name}.log"));
    launch(&name, port, command, &log, Signal::SIGINT)?.wait(&log, speaks)
}

/// A server that does nothing but speak the protocol: this same program.
///
/// # Errors
/// It does not start.
pub fn does_nothing(dir: &Path) -> Result<Server> {
    let port = free_port()?;
    let mut command = Account::own().command(&std::env::current_exe()?, Signal::SIGTERM);
    command.args(["null-server", "-p", &port.to_string()]);
    let log = dir.join("null-server.log");
    launch("null-server", port, command, &log, Signal::SIGTERM)?.wait(&log, speaks)
}

/// PgBouncer in front of a server, pooling by transaction.
///
/// # Errors
/// It is not installed, or does not start.
pub fn pgbouncer(dir: &Path, before: &Server, connections: u32, size: Size) -> Result<Server> {
    let program =
        installed::find("pgbouncer").ok_or("PgBouncer is not installed (package pgbouncer)")?;
    let user = Account::for_program("postgres")?;
    let folder = user.folder(&dir.join("pgbouncer"))?;
    let port = free_port()?;
    let users = folder.join("users.txt");
    write(&users, "\"postgres\" \"\"\n")?;
    let settings = format!(
        "[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
         listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {}\n\
         pool_mode = transaction\nmax_client_conn = {}\ndefault_pool_size = {connections}\n\
         ignore_startup_parameters = extra_float_digits\nlog_connections = 0\nlog_disconnections = 0\n",
        before.port,
        users.display(),
        size.clients + 100,
    );
    let file = folder.join("pgbouncer.ini");
    write(&file, &settings)?;
    let mut command = user.command(&program, Signal::SIGTERM);
    command.arg(&file);
    let log = dir.join("pgbouncer.log");
    launch("PgBouncer", port, command, &log, Signal::SIGTERM)?.wait(&log, speaks)
}

/// MariaDB with its pool of threads, which lets everybody in.
///
/// # Errors
/// It is not installed, or does not start.
pub fn mariadb(dir: &Path, size: Size) -> Result<Server> {
    let program = installed::find("mariadbd")
        .ok_or("MariaDB is not installed (Debian's package mariadb-server)")?;
    let user = Account::for_program("mysql")?;
    let data = user.folder(&dir.join("mariadb"))?;
    // It makes a folder of the data directory a database.
    user.folder(&data.join(MARIADB_DATABASE))?;
    let port = free_port()?;
    let mut command = user.command(&program, Signal::SIGTERM);
    command.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
    command.arg(format!("--socket={}", data.join("socket").display()));
    command.arg(format!("--pid-file={}", data.join("pid").display()));
    command.args([
        "--bind-address=127.0.0.1",
        "--skip-grant-tables",
        "--skip-name-resolve",
        "--thread-handling=pool-of-threads",
        "--innodb-flush-log-at-trx-commit=1",
        "--innodb-log-file-size=1G",
    ]);
    command.arg(format!("--port={port}"));
    command.arg(format!("--innodb-buffer-pool-size={}M", size.buffers_mb));
    command.arg(format!("--max-connections={}", size.clients + 50));
    let log = dir.join("mariadb.log");
    let mut server = launch("MariaDB", port, command, &log, Signal::SIGTERM)?;
    server.dialect = Dialect::MySql;
    server.wait(&log, speaks)
}

/// Settings by PostgreSQL's names.
fn common(size: Size) -> [String; 4] {
    [
        format!("shared_buffers={}MB", size.buffers_mb),
        "max_wal_size=4GB".to_owned(),
        format!("max_connections={}", size.clients + 50),
        "fsync=on".to_owned(),
    ]
}

fn set(command: &mut Command, settings: &[String]) {
    for setting in settings {
        command.args(["-c", setting]);
    }
}

/// The owner of a server's process.
struct Account {
    user: Option<User>,
}

impl Account {
    /// Whoever we are.
    fn own() -> Account {
        Account { user: None }
    }

    /// Whoever we are, or the program's own user instead of root.
    fn for_program(name: &str) -> Result<Account> {
        if !geteuid().is_root() {
            return Ok(Account::own());
        }
        match User::from_name(name) {
            Ok(Some(user)) => Ok(Account { user: Some(user) }),
            _ => Err(Error::new(format!("there is no user {name}, and as root it does not run"))),
        }
    }

    /// A folder of its own.
    fn folder(&self, path: &Path) -> Result<PathBuf> {
        fs::create_dir_all(path).map_err(|e| Error::file(path, e))?;
        if let Some(user) = &self.user {
            chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))
                .map_err(|e| Error::file(path, e))?;
        }
        Ok(path.to_owned())
    }

    /// A program that ends by this signal when we end.
    fn command(&self, program: &Path, end: Signal) -> Command {
        let Some(setpriv) = installed::find("setpriv") else {
            let mut command = Command::new(program);
            if let Some(user) = &self.user {
                command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
            }
            return command;
        };
        let mut command = Command::new(setpriv);
        if let Some(user) = &self.user {
            command.arg(format!("--reuid={}", user.uid)).arg(format!("--regid={}", user.gid));
            command.arg("--init-groups");
        }
        let signal = end.as_str().trim_start_matches("SIG");
        command.args(["--pdeathsig", signal, "--"]).arg(program);
        command
    }
}

fn launch(name: &str, port: u16, mut command: Command, log: &Path, end: Signal) -> Result<Server> {
    let file = fs::File::create(log).map_err(|e| Error::file(log, e))?;
    let errors = file.try_clone()?;
    command.stdin(Stdio::null()).stdout(file).stderr(errors).process_group(0).current_dir("/");
    let child = command.spawn().map_err(|e| Error::new(format!("{name}: {e}")))?;
    Ok(Server { name: name.to_owned(), port, dialect: Dialect::PostgreSql, child, end })
}

/// Runs a program to its end.
fn succeed(command: &mut Command) -> Result<()> {
    let out = command.stdin(Stdio::null()).current_dir("/").output();
    let name = command.get_program().to_string_lossy().into_owned();
    let out = out.map_err(|e| Error::new(format!("{name}: {e}")))?;
    if out.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&out.stderr);
    let last = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("it says nothing");
    Err(Error::new(format!("{command:?} failed: {last}")))
}

fn write(path: &Path, text: &str) -> Result<()> {
    let written = fs::File::create(path).and_then(|mut f| f.write_all(text.as_bytes()));
    written.map_err(|e| Error::file(path, e))
}

/// A port that nobody listens on, another at each call. None of those that the system gives to outgoing
/// connections: one of these could have it when the server binds it, or a connection that waits for the server
/// find itself at the other end. Nothing listens on it to find out: a process that is started at that moment
/// would have a copy of the socket until it has become another program, and who waits for the server would take
/// that for it.
///
/// # Errors
/// There is none.
pub fn free_port() -> Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(41);
    for _ in 0..PORTS {
        let number = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = 10_000 + (number % PORTS) as u16;
        if TcpStream::connect(("127.0.0.1", port)).is_err() {
            return Ok(port);
        }
    }
    Err(Error::new("no port is free"))
}

/// Of how many ports, from 10000 on, one is chosen.
const PORTS: u32 = 22_000;

//! The life of a server as cluster managers lead it: made, started, asked, copied, promoted, stopped, by PostgreSQL's names.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder that goes with the test, and the server in it.
struct Place {
    dir: PathBuf,
    links: PathBuf,
}

impl Place {
    fn new(name: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("tg-tools-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let tools = env!("CARGO_BIN_EXE_threadgres-postgresql-tools");
        let server = Path::new(tools).with_file_name("threadgres");
        assert!(server.exists(), "build the server first: cargo build -p threadgres");
        let links = dir.join("bin");
        let status = Command::new(tools).arg("--install").arg(&links).output().unwrap().status;
        assert!(status.success());
        Place { dir, links }
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    fn run<S: AsRef<OsStr>>(&self, tool: &str, args: &[S]) -> Output {
        let mut command = Command::new(self.links.join(tool));
        command.args(args).env("THREADGRES_ALLOW_ROOT", "1").env_remove("PGDATA");
        command.stdin(std::process::Stdio::null());
        command.output().unwrap()
    }

    /// Runs a tool that must succeed; what it prints.
    fn good<S: AsRef<OsStr> + std::fmt::Debug>(&self, tool: &str, args: &[S]) -> String {
        let output = self.run(tool, args);
        let (out, err) = texts(&output);
        assert!(output.status.success(), "{tool} {args:?}: {out}{err}{}", self.log());
        out
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    fn control(&self, data: &str, label: &str) -> String {
        let text = self.good("pg_controldata", &[data]);
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{label}:")));
        line.unwrap_or_else(|| panic!("no {label} in {text}")).trim().to_owned()
    }

    fn start(&self, data: &str, port: u16) {
        let options =
            format!("-p {port} -h 127.0.0.1 -c unix_socket_directories='' -c http_port=0");
        self.good(
            "pg_ctl",
            &["start", "-w", "-s", "-D", data, "-l", &self.path("log"), "-o", &options],
        );
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for data in ["data", "copy"] {
            if self.dir.join(data).join("postmaster.pid").exists() {
                self.run("pg_ctl", &["stop", "-m", "immediate", "-D", &self.path(data)]);
            }
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn programs_name_their_version_and_refuse_in_words() {
    let place = Place::new("words");
    assert!(place.good("postgres", &["--version"]).starts_with("postgres (PostgreSQL) 15."));
    assert!(place.good("pg_ctl", &["-V"]).starts_with("pg_ctl (PostgreSQL) 15."));
    assert!(place.good("postgres", &["--describe-config"]).contains("max_connections\t"));
    for (tool, args, word) in [
        ("pg_resetwal", &["x"][..], "accept-loss-from"),
        ("initdb", &["-D", "x", "-E", "LATIN1"], "UTF8"),
        ("initdb", &["-D", "x", "-A", "md5"], "password"),
        ("pg_checksums", &["--disable", "-D", "x"], "checksums"),
        ("pg_rewind", &["-D", "x"], "no source"),
        ("pg_ctl", &["dance", "-D", "/"], "not a database"),
    ] {
        let output = place.run(tool, args);
        assert!(!output.status.success(), "{tool}");
        assert!(texts(&output).1.contains(word), "{tool}: {}", texts(&output).1);
    }
    assert_eq!(
        place.run("pg_ctl", &["status", "-D", &place.path("nothing")]).status.code(),
        Some(4)
    );
    assert_eq!(place.run("pg_isready", &["-h", "127.0.0.1", "-p", "1"]).status.code(), Some(2));
}

#[test]
fn a_server_lives_by_postgresqls_names() {
    let place = Place::new("life");
    let (data, port) = (place.path("data"), free_port());
    std::fs::write(place.dir.join("password"), "secret\n").unwrap();
    place.good(
        "initdb",
        &[
            "-D",
            &data,
            "-U",
            "boss",
            "-A",
            "scram-sha-256",
            "--pwfile",
            &place.path("password"),
            "--locale=C",
            "-k",
            "-N",
            "--wal-segsize=1",
        ],
    );
    assert_eq!(std::fs::read_to_string(Path::new(&data).join("PG_VERSION")).unwrap(), "15\n");
    assert_eq!(place.control(&data, "Database cluster state"), "shut down");
    assert_eq!(place.control(&data, "Bytes per WAL segment"), "1048576");
    assert_eq!(place.run("pg_ctl", &["status", "-D", &data]).status.code(), Some(3));

    place.start(&data, port);
    let text = std::fs::read_to_string(Path::new(&data).join("postmaster.pid")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[3], lines[7]), (8, port.to_string().as_str(), "ready   "));
    assert!(place.good("pg_ctl", &["status", "-D", &data]).contains(lines[0]));
    assert_eq!(place.control(&data, "Database cluster state"), "in production");
    place.good("pg_isready", &["-h", "127.0.0.1", "-p", &port.to_string()]);
    place.good("pg_ctl", &["reload", "-D", &data]);
    assert_eq!(place.good("postgres", &["-D", &data, "-C", "work_mem"]), "4MB\n");
    assert!(
        place.good("pg_waldump", &["-p", &data, "-s", "0/100000", "-n", "1"]).starts_with("rmgr: ")
    );

    place.good("pg_ctl", &["restart", "-D", &data, "-l", &place.path("log")]);
    place.good("pg_isready", &["-h", "127.0.0.1", "-p", &port.to_string()]);
    place.good("pg_ctl", &["stop", "-m", "immediate", "-D", &data]);
    assert_eq!(place.control(&data, "Database cluster state"), "in production");
    // As cluster managers recover what was killed.
    place.good("postgres", &["--single", "-D", &data, "template1"]);
    assert_eq!(place.control(&data, "Database cluster state"), "shut down");
    assert!(place.good("pg_checksums", &["-D", &data]).contains("Bad checksums:   0"));
    assert!(!Path::new(&data).join("postmaster.pid").exists());
}

#[test]
fn a_copy_by_pg_basebackup_follows_and_is_promoted() {
    let place = Place::new("copy");
    if !place.links.join("pg_basebackup").exists() {
        return;
    }
    let (data, copy, port) = (place.path("data"), place.path("copy"), free_port());
    place.good("initdb", &["-D", &data, "-U", "postgres", "-A", "trust", "-N"]);
    place.start(&data, port);
    let source = format!("host=127.0.0.1 port={port} user=postgres");
    place.good("pg_basebackup", &["-D", &copy, "-R", "-X", "stream", "-c", "fast", "-d", &source]);
    place.good("pg_verifybackup", &["-n", &copy]);
    let auto = std::fs::read_to_string(Path::new(&copy).join("postgresql.auto.conf")).unwrap();
    assert!(auto.contains("primary_conninfo"), "{auto}");
    place.start(&copy, free_port());
    assert_eq!(place.control(&copy, "Database cluster state"), "in archive recovery");
    place.good("pg_ctl", &["promote", "-D", &copy]);
    assert_eq!(place.control(&copy, "Database cluster state"), "in production");
    assert_eq!(place.control(&copy, "Latest checkpoint's TimeLineID"), "2");
    let again = place.run("pg_ctl", &["promote", "-D", &copy]);
    assert!(texts(&again).1.contains("not in standby mode"));
}

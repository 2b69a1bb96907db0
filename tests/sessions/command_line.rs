//! The command line: what goes wrong is said in one line, the exit code isn't 0, and nothing is
//! touched.

use std::net::TcpListener;
use std::process::{Command, Output};

use crate::support::{BIN, Server, TempDir, free_port};

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(BIN);
    command.args(args).env("THREADGRES_ALLOW_ROOT", "1");
    command.output().expect("the binary was built with the tests")
}

/// The one line of a failure.
fn failure(args: &[&str]) -> String {
    let out = run(args);
    assert!(!out.status.success(), "{args:?} should fail");
    let text = String::from_utf8(out.stderr).expect("messages are UTF-8");
    // What the server did before it failed is logged.
    let text: String = text.split_inclusive('\n').filter(|l| !l.contains("LOG:  ")).collect();
    assert_eq!(text.lines().count(), 1, "{args:?} says: {text}");
    assert!(out.stdout.is_empty(), "{args:?} says: {}", String::from_utf8_lossy(&out.stdout));
    text
}

fn files(dir: &std::path::Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> =
        std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.file_name()).collect();
    names.sort();
    names
}

#[test]
fn mistakes_are_one_line() {
    for (args, word) in [
        (&["serve"][..], "-D"),
        (&["nonsense"], "nonsense"),
        (&["serve", "-D", "/nonexistent/dir", "-x"], "-x"),
        (&["stop", "-D", "/nonexistent/dir"], "no server is running"),
    ] {
        assert!(failure(args).contains(word), "{args:?}");
    }
    assert!(run(&["--help"]).status.success());
    assert!(run(&["--version"]).stdout.starts_with(b"threadgres "));
}

#[test]
fn a_directory_that_is_not_ours_is_left_alone() {
    let dir = TempDir::new("foreign");
    std::fs::write(dir.path().join("diary.txt"), "mine").unwrap();
    let path = dir.path().to_str().unwrap();
    for command in ["serve", "init", "stop", "status", "reload"] {
        let text = failure(&[command, "-D", path]);
        assert!(text.contains(path), "{command}: {text}");
    }
    assert_eq!(files(dir.path()), ["diary.txt"]);
}

#[test]
fn bad_settings_touch_nothing() {
    let dir = TempDir::new("settings");
    let data = dir.path().join("data");
    let path = data.to_str().unwrap();
    for (setting, word) in [
        ("nonsense=1", "nonsense"),
        ("port=0", "port"),
        ("port=many", "port"),
        ("work_mem=1kB", "work_mem"),
        ("server_version=16", "server_version"),
    ] {
        let text = failure(&["serve", "-D", path, "-c", setting]);
        assert!(text.contains(word), "{setting}: {text}");
        assert!(!data.exists(), "{setting} left something behind");
    }
    assert!(run(&["init", "-D", path]).status.success());
    // Which roles there are stands in the data directory.
    for address in ["0.0.0.0", "*"] {
        let setting = format!("listen_addresses={address}");
        let text = failure(&["serve", "-D", path, "-c", &setting]);
        assert!(text.contains("password"), "{text}");
    }
    std::fs::write(data.join("postgresql.conf"), "port = 5432\nbroken\n").unwrap();
    let text = failure(&["serve", "-D", path]);
    assert!(text.contains("postgresql.conf") && text.contains("line 2"), "{text}");
}

#[test]
fn a_busy_port_touches_nothing() {
    let dir = TempDir::new("busy");
    let data = dir.path().join("data");
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port().to_string();
    let text = failure(&["serve", "-D", data.to_str().unwrap(), "-p", &port]);
    assert!(text.contains(&port) && text.contains("-p"), "{text}");
    assert!(!data.exists());
}

#[test]
fn one_directory_has_one_server() {
    let dir = TempDir::new("single");
    let data = dir.path().join("data");
    let path = data.to_str().unwrap();
    let server = Server::start(&data, &[]);
    let text = failure(&["serve", "-D", path, "-p", &free_port().to_string()]);
    assert!(text.contains("in use") && text.contains(&server.pid().to_string()), "{text}");
    assert!(failure(&["init", "-D", path]).contains("already"));
    let status = run(&["status", "-D", path]);
    assert!(status.status.success());
    assert!(server.stop());
    assert_eq!(run(&["status", "-D", path]).status.code(), Some(3));
    assert!(failure(&["stop", "-D", path]).contains("no server"));
}

#[test]
fn every_way_to_stop_ends_the_process() {
    let dir = TempDir::new("stops");
    let data = dir.path().join("data");
    for mode in ["smart", "fast", "immediate", "fast"] {
        let server = Server::start(&data, &[]);
        let out = run(&["stop", "-m", mode, "-D", data.to_str().unwrap()]);
        assert!(out.status.success(), "{mode}: {}", String::from_utf8_lossy(&out.stderr));
        drop(server);
    }
}

#[test]
fn settings_change_while_running() {
    let dir = TempDir::new("reload");
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    let mut session = crate::support::raw::Raw::connect(server.port);
    let show = ["T work_mem:25", "D 4MB", "C SHOW", "Z I"];
    assert_eq!(session.query("SHOW work_mem"), show);
    assert_eq!(session.query("ALTER SYSTEM SET work_mem = '7MB'"), ["C ALTER SYSTEM", "Z I"]);
    assert_eq!(session.query("SHOW work_mem"), show);
    assert_eq!(session.query("SELECT pg_reload_conf() AS r")[1], "D t");
    assert_eq!(session.query("SHOW work_mem")[1], "D 7MB");
    assert!(session.query("ALTER SYSTEM SET nonsense = 1")[0].starts_with("E ERROR 42704"));
    assert!(session.query("ALTER SYSTEM SET server_version = 1")[0].starts_with("E ERROR 55P02"));
    assert_eq!(session.query("ALTER SYSTEM RESET ALL"), ["C ALTER SYSTEM", "Z I"]);
    assert!(run(&["reload", "-D", data.to_str().unwrap()]).status.success());
    while session.query("SHOW work_mem")[1] != "D 4MB" {}
    assert!(server.stop());
}

#[test]
fn unix_sockets_are_served_too() {
    let dir = TempDir::new("socket");
    let data = dir.path().join("data");
    let sockets = dir.path().to_str().unwrap();
    let setting = format!("unix_socket_directories={sockets}");
    let server = Server::start(&data, &[&setting]);
    let path = dir.path().join(format!(".s.PGSQL.{}", server.port));
    assert!(path.exists());
    let out = Command::new("psql")
        .args([
            "-h",
            sockets,
            "-p",
            &server.port.to_string(),
            "-U",
            "postgres",
            "-Atc",
            "SHOW port",
        ])
        .arg("postgres")
        .output()
        .expect("psql is installed");
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), server.port.to_string());
    assert!(server.stop());
    assert!(!path.exists());
}

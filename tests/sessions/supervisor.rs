//! The process above the server: it starts a crashed server again while clients wait in the socket's
//! queue, hands signals on, tells the service manager, and does not leave a server behind.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{Server, TempDir, text_of};

/// The process that serves the directory; None: nobody does.
fn serving(dir: &Path) -> Option<u32> {
    let out = Command::new(crate::support::BIN).args(["status", "-D"]).arg(dir).output();
    let text = text_of(&out.expect("the program runs"));
    let (_, rest) = text.split_once("running (process ")?;
    Some(rest.split_once(')')?.0.parse().expect("a process has a number"))
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not happen within a minute");
        std::thread::yield_now();
    }
}

fn kill(pid: u32, signal: &str) {
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(sent.expect("kill exists").success());
}

#[test]
fn a_crashed_server_is_started_again_and_clients_wait() {
    let dir = TempDir::new("supervisor");
    let data = dir.path().join("data");
    let server = Server::start_supervised(&data, &[]);
    server.query("CREATE TABLE survivors (n int)");
    let mut before = until("the start", || serving(&data));
    for n in 1..=3 {
        assert_ne!(before, server.pid(), "the server is a process of its own");
        server.query(&format!("INSERT INTO survivors VALUES ({n})"));
        kill(before, "-KILL");
        // Connects while nobody serves, or just again: either way it is answered.
        assert_eq!(server.query("SELECT count(*) FROM survivors"), n.to_string());
        before = until("another start", || serving(&data).filter(|pid| *pid != before));
    }
    let log = std::fs::read_to_string(data.with_extension("log")).expect("there is a log");
    assert_eq!(log.matches("was terminated by signal 9").count(), 3, "{log}");
    assert!(server.stop(), "told to stop, both end without an error");
    assert_eq!(serving(&data), None);
}

/// The first one already, and the log says where it came from.
#[test]
fn a_fault_signal_from_outside_ends_the_server_and_is_logged() {
    let dir = TempDir::new("supervisor-segv");
    let data = dir.path().join("data");
    let server = Server::start_supervised(&data, &[]);
    let mut before = until("the start", || serving(&data));
    for (signal, name) in [("-SEGV", "SIGSEGV"), ("-BUS", "SIGBUS")] {
        server.query("SELECT count(*) FROM generate_series(1, 1000)");
        kill(before, signal);
        let next = until("another start", || serving(&data).filter(|pid| *pid != before));
        let log = std::fs::read_to_string(data.with_extension("log")).expect("there is a log");
        assert!(log.contains(&format!("received {name} from process ")), "{log}");
        let ended = format!("(PID {before}) was terminated by signal ");
        assert!(log.lines().any(|l| l.contains(&ended) && l.contains(name)), "{log}");
        before = next;
    }
    assert_eq!(server.query("SELECT 1"), "1");
    assert!(server.stop());
}

#[test]
fn signals_go_on_to_the_server() {
    let dir = TempDir::new("supervisor-signals");
    let data = dir.path().join("data");
    let server = Server::start_supervised(&data, &[]);
    server.query("ALTER SYSTEM SET work_mem = '5MB'");
    kill(server.pid(), "-HUP");
    until("the reload", || (server.query("SHOW work_mem") == "5MB").then_some(()));
    kill(server.pid(), "-INT");
    until("the stop", || serving(&data).is_none().then_some(()));
    let out = Command::new(crate::support::BIN).args(["status", "-D"]).arg(&data).output();
    assert!(text_of(&out.expect("the program runs")).contains("stopped cleanly"));
}

#[test]
fn a_server_ends_with_its_supervisor() {
    let dir = TempDir::new("supervisor-killed");
    let data = dir.path().join("data");
    let server = Server::start_supervised(&data, &[]);
    server.query("SELECT 1");
    server.kill();
    until("the server's end", || serving(&data).is_none().then_some(()));
    // Nothing stands in the next one's way.
    let server = Server::start_supervised(&data, &[]);
    assert_eq!(server.query("SELECT 1"), "1");
}

#[test]
fn the_service_manager_is_told() {
    let dir = TempDir::new("supervisor-notify");
    let path = dir.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("the folder is writable");
    manager.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout can be set");
    let path = path.to_string_lossy().into_owned();
    let server = Server::start_supervised(&dir.path().join("data"), &[("NOTIFY_SOCKET", &path)]);
    let mut message = [0; 100];
    let mut next = || {
        let len = manager.recv(&mut message).expect("a message came");
        String::from_utf8_lossy(&message[..len]).trim().to_owned()
    };
    assert_eq!(next(), "READY=1");
    kill(server.pid(), "-TERM");
    assert_eq!(next(), "STOPPING=1");
}

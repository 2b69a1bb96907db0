//! Clients come: while workers are busy, while the system has no descriptor left, and with passwords that
//! take long to check. Nobody who is in notices. What is counted is what got done meanwhile, not how long
//! it took.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::raw::{Raw, message, query, startup};
use crate::support::{Server, TempDir, footprint};

fn hello(user: &str) -> Vec<u8> {
    startup(196_608, &[("user", user), ("database", "postgres")])
}

/// A statement that runs until somebody ends it, on whatever worker it is.
const LONG: &str = "SELECT count(*) FROM many a, many b, many c WHERE (a.n + b.n + c.n) % 7 = 3";

#[test]
fn clients_are_let_in_while_all_workers_have_long_statements() {
    let dir = TempDir::new("accepting-busy");
    let server = Server::start(&dir.path().join("data"), &["workers=2"]);
    let mut asking = Client::connect(server.port).expect("the server takes connections");
    server.query("CREATE TABLE many AS SELECT generate_series(1, 10000) AS n");
    let mut busy: Vec<Raw> = (0..4).map(|_| Raw::connect(server.port)).collect();
    busy.iter_mut().for_each(|raw| raw.send(&query(LONG)));
    let running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%% 7 = 3%' \
                   AND pid <> pg_backend_pid()";
    let mut count = || asking.query(running).expect("an answer").rows.remove(0).remove(0);
    while count().as_deref() != Some("4") {}
    for _ in 0..100 {
        let mut client = Client::connect(server.port).expect("the server takes connections");
        assert!(client.query("SELECT 1").is_ok_and(|a| a.error.is_none()));
    }
    assert_eq!(count().as_deref(), Some("4"), "they have been running all the time");
    for raw in &busy {
        asking.query(&format!("SELECT pg_cancel_backend({})", raw.key.0)).expect("an answer");
    }
    for raw in &mut busy {
        let lines = raw.until(|l| l.starts_with("Z "));
        assert!(lines.iter().any(|l| l.starts_with("E ERROR 57014")), "{lines:?}");
    }
}

#[test]
fn a_password_that_takes_long_to_check_holds_nobody_up() {
    let dir = TempDir::new("accepting-password");
    let settings = ["workers=1", "authentication_failure_delay=1"];
    let server = Server::start(&dir.path().join("data"), &settings);
    // No password fits; to find that out takes a hundred times what it usually takes.
    server.query(
        "CREATE ROLE slow LOGIN PASSWORD 'SCRAM-SHA-256$400000:W22ZaJ0SNY7soEsUEjb6gQ==$\
         WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU='",
    );
    let rules = "host all postgres all trust\nhost all slow all password\n";
    std::fs::write(server.dir.join("pg_hba.conf"), rules).expect("the rules can be written");
    assert_eq!(server.query("SELECT pg_reload_conf()"), "t");
    let mut asking = Client::connect(server.port).expect("the server takes connections");
    let mut slow = Raw::open(server.port);
    assert_eq!(slow.talk_until(&hello("slow"), "R ").last().map(String::as_str), Some("R 3"));
    slow.send(&message(b'p', b"wrong\0"));
    slow.stream.set_nonblocking(true).expect("a socket option");
    let mut statements = 0;
    while slow.stream.peek(&mut [0]).is_err() {
        assert!(asking.query("SELECT 1").is_ok_and(|a| a.error.is_none()));
        statements += 1;
    }
    slow.stream.set_nonblocking(false).expect("a socket option");
    let line = slow.line();
    assert!(line.starts_with("E FATAL 28P01"), "{line}");
    println!("{statements} statements ran while the one worker checked a password");
    assert!(statements >= 50, "{statements} statements while the password was checked");
}

#[test]
fn without_descriptors_clients_wait_until_there_are_some() {
    let dir = TempDir::new("accepting-descriptors");
    let server = Server::start(&dir.path().join("data"), &["workers=2", "autovacuum=off"]);
    let mut asking = Client::connect(server.port).expect("the server takes connections");
    let paused = "SELECT count(*) FROM pg_stat_activity \
                  WHERE backend_type = 'listener' AND wait_event = 'ListenerPause'";
    let mut pauses = |server: &Server, wanted: bool| {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let answer = asking.query(paused).expect("who is in stays in");
            if (answer.rows[0][0].as_deref() != Some("0")) == wanted {
                return;
            }
            assert!(Instant::now() < deadline, "a pause: {}", !wanted);
            let _ = footprint::descriptors(server.pid());
        }
    };
    pauses(&server, false);
    let limit = footprint::descriptors(server.pid()) + 5;
    let set = Command::new("prlimit")
        .args(["--pid", &server.pid().to_string(), &format!("--nofile={limit}:")])
        .status();
    assert!(set.expect("prlimit is installed").success());
    let mut clients: Vec<Raw> = (0..20).map(|_| Raw::open(server.port)).collect();
    clients.iter_mut().for_each(|c| c.send(&hello("postgres")));
    pauses(&server, true);
    let log = std::fs::read_to_string(server.dir.with_extension("log")).expect("there is a log");
    assert!(log.contains("could not accept new connection: Too many open files"), "{log}");
    // The first ones are in; when they go the others come, in their turn.
    for mut client in clients {
        let lines = client.until(|l| l.starts_with("Z "));
        assert_eq!(lines.first().map(String::as_str), Some("R 0"), "{lines:?}");
    }
    pauses(&server, false);
}

//! Profiles: stacks of what runs and of what waits, as text and as a picture, while the server works.

use std::process::Stdio;

use crate::support::http::get;
use crate::support::{Server, TempDir, free_port, pgbench_command};

/// The weight of all stacks that have this frame.
fn weight(stacks: &str, frame: &str) -> u64 {
    let has = |line: &&str| line.split(';').any(|f| f.contains(frame));
    let of = |line: &str| line.rsplit_once(' ').and_then(|(_, w)| w.parse::<u64>().ok());
    stacks.lines().filter(has).map(|l| of(l).expect("each line ends in a weight")).sum()
}

/// Sampling must not disturb what it looks at: sessions on coroutines and on threads of their own,
/// in the grammar's C code, between two coroutines, in deep recursion.
#[test]
fn running_stacks_are_seen_under_load() {
    for model in ["pooled", "thread"] {
        let dir = TempDir::new(&format!("profile-{model}"));
        let server = Server::start(
            &dir.path().join("data"),
            &[&format!("session_model={model}"), "fsync=off"],
        );
        server.pgbench(&["-i", "-q", "-s", "1"]);
        let script = dir.path().join("load.sql");
        // Half of it is parsed anew each time; the expression is nested.
        let nested = format!("{}1{}", "(1 + ".repeat(300), ")".repeat(300));
        std::fs::write(
            &script,
            format!(
                "\\set n random(1, 100000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :n;\n\
                 SELECT {nested} AS column_:n;\nSELECT count(*) FROM generate_series(1, 3000) AS s(i) \
                 JOIN generate_series(1, 100) AS t(i) USING (i);\n"
            ),
        )
        .unwrap();
        let mut load = pgbench_command(server.port)
            .args(["-n", "-c", "20", "-j", "2", "-T", "8", "-f"])
            .arg(&script)
            .arg("postgres")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut all = String::new();
        while load.try_wait().unwrap().is_none() {
            all += &server.query("SELECT pg_stacks(1, 'cpu')");
            all += "\n";
        }
        assert!(load.wait().unwrap().success(), "{model}: the load ended well");
        let all: String =
            all.lines().filter(|l| !l.is_empty()).map(|l| l.to_owned() + "\n").collect();
        for frame in ["client backend", "server::session", "exec::", "pg_query"] {
            assert!(weight(&all, frame) > 0, "{model}: no {frame} in\n{all}");
        }
        // Below the kind of task stands what it executed.
        let named = "client backend;SELECT count(*) FROM generate_series";
        assert!(all.lines().any(|l| l.starts_with(named)), "{model}: no statement in\n{all}");
        // Stacks are whole: what runs a plan was called by a session.
        let plans: Vec<&str> = all.lines().filter(|l| l.contains("exec::execute::run")).collect();
        let whole = plans.iter().filter(|l| l.contains("server::session")).count();
        assert!(
            whole * 10 >= plans.len() * 9,
            "{model}: {whole} of {} are whole\n{all}",
            plans.len()
        );
        assert!(server.stop());
    }
}

#[test]
fn waits_are_weighted_by_their_time() {
    let dir = TempDir::new("profile-waits");
    let port = free_port();
    let server = Server::start(&dir.path().join("data"), &[&format!("http_port={port}")]);
    server.query("CREATE TABLE shelf (id int PRIMARY KEY, n int); INSERT INTO shelf VALUES (1, 0)");
    let mut holder = crate::support::client::Client::connect(server.port).unwrap();
    holder.query("BEGIN; UPDATE shelf SET n = 1").unwrap();
    let address = server.port;
    let waiter = std::thread::spawn(move || {
        let mut waiter = crate::support::client::Client::connect(address).unwrap();
        waiter.query("UPDATE shelf SET n = n + 1").unwrap()
    });
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'transactionid'";
    while server.query(waits) != "1" {}
    // The wait lasts on while the profile is taken: all of its time, and no more, counts.
    let stacks = get(port, "/stacks.txt?kind=waits&seconds=0.5").body;
    let waited = weight(&stacks, "transactionid");
    assert!(waited >= 450_000, "{stacks}");
    assert!(stacks.contains("UPDATE shelf SET n = n + 1;Lock;transactionid"), "{stacks}");
    // Now it ends within the profile, so that the functions at the wait are known.
    let profile =
        std::thread::spawn(move || get(port, "/stacks.txt?kind=session_waits&seconds=2").body);
    let taken = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'ProfileSampling'";
    while server.query(taken) == "0" {}
    holder.query("COMMIT").unwrap();
    assert!(waiter.join().unwrap().error.is_none());
    let stacks = profile.join().unwrap();
    let line = stacks.lines().find(|l| l.contains("Lock;transactionid")).expect(&stacks);
    assert!(line.starts_with("session "), "{line}");
    assert!(line.contains("server::session") && line.contains("txn::lock"), "{line}");
    let svg = get(port, "/flamegraph.svg?kind=waits&seconds=0.1");
    assert!(svg.head.contains("image/svg+xml") && svg.body.contains("<svg"), "{}", svg.body);
}

#[test]
fn a_profile_is_a_statement_like_others() {
    let dir = TempDir::new("profile-sql");
    let server = Server::start(&dir.path().join("data"), &[]);
    assert!(server.query("SELECT pg_flamegraph(0.1)").contains("<svg"));
    assert!(server.query("SELECT pg_flamegraph(0.1, 'waits')").contains("</svg>"));
    for bad in ["pg_stacks(0)", "pg_stacks(1, 'x')", "pg_flamegraph(1e9)", "pg_stacks('NaN')"] {
        let error = server.psql(&["-Atq", "-v", "VERBOSITY=sqlstate"], &format!("SELECT {bad}"));
        assert!(error.contains("22023"), "{bad}: {error}");
    }
    // It shows what it does, and can be cancelled; then the next one can be taken.
    for kind in ["cpu", "waits"] {
        let port = server.port;
        let long = std::thread::spawn(move || {
            let mut client = crate::support::client::Client::connect(port).unwrap();
            client.query(&format!("SELECT pg_stacks(500, '{kind}')")).unwrap()
        });
        // The statement waits before the thread that samples for it has begun.
        let wait = "SELECT max(pid) FILTER (WHERE backend_type = 'client backend') FROM pg_stat_activity \
                    WHERE wait_event = 'ProfileSampling' HAVING bool_or(backend_type = 'profiler')";
        let mut pid = String::new();
        while pid.is_empty() {
            pid = server.query(wait);
        }
        let other = server
            .psql(&["-Atq", "-v", "VERBOSITY=sqlstate"], &format!("SELECT pg_stacks(1, '{kind}')"));
        assert!(other.contains("55006"), "{kind}: {other}");
        server.query(&format!("SELECT pg_cancel_backend({pid})"));
        assert_eq!(long.join().unwrap().error.unwrap().0, "57014");
        let again = format!("SELECT count(*) >= 0 FROM pg_stacks(0.01, '{kind}')");
        while server.psql(&["-Atq"], &again).trim() != "t" {}
    }
    server.query("SET statement_timeout = '50ms'; SELECT 1");
    let error = server.psql(
        &["-Atq", "-v", "VERBOSITY=sqlstate"],
        "SET statement_timeout = '50ms'; SELECT pg_stacks(100)",
    );
    assert!(error.contains("57014"), "{error}");
    assert!(server.stop());
}

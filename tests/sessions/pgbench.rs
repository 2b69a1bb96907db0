//! The real pgbench: every way of initialising, the built-in scripts in every protocol mode, many
//! clients, and its own consistency (the balances equal the history).

use crate::support::{Server, TempDir};

/// The three sums of balances and the sum of the history's deltas are one number.
fn assert_balanced(server: &Server) {
    let sums = server.query(
        "SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(bbalance) FROM pgbench_branches), (SELECT sum(tbalance) FROM pgbench_tellers), (SELECT coalesce(sum(delta), 0) FROM pgbench_history)",
    );
    let mut numbers: Vec<&str> = sums.split('|').collect();
    numbers.dedup();
    assert_eq!(numbers.len(), 1, "the sums differ: {sums}");
}

fn with_server(name: &str, settings: &[&str], test: impl FnOnce(&Server)) {
    let dir = TempDir::new(name);
    let server = Server::start(&dir.path().join("data"), settings);
    test(&server);
    assert!(server.stop(), "the server did not stop cleanly");
}

#[test]
fn every_way_of_initialising_gives_the_same_tables() {
    with_server("pgbench-init", &[], |server| {
        for steps in ["dtgvp", "dtGvp", "dtgvpf"] {
            server.pgbench(&["-i", "-q", "-s", "2", "-I", steps]);
            let counts = server.query(
                "SELECT (SELECT count(*) FROM pgbench_accounts), (SELECT count(*) FROM pgbench_tellers), (SELECT count(*) FROM pgbench_branches), (SELECT sum(aid) FROM pgbench_accounts)",
            );
            assert_eq!(counts, "200000|20|2|20000100000", "-I {steps}");
        }
        server.pgbench(&["-n", "-c", "8", "-t", "50"]);
        assert_balanced(server);
    });
}

#[test]
fn the_built_in_scripts_run_in_every_protocol_mode() {
    with_server("pgbench-modes", &[], |server| {
        server.pgbench(&["-i", "-q", "-s", "10"]);
        for mode in ["simple", "extended", "prepared"] {
            for script in ["tpcb-like", "simple-update", "select-only"] {
                for clients in ["1", "20"] {
                    server.pgbench(&["-n", "-M", mode, "-b", script, "-c", clients, "-t", "40"]);
                }
            }
        }
        let history = server.query("SELECT count(*) FROM pgbench_history");
        assert_eq!(history, (3 * 2 * 21 * 40).to_string());
        // simple-update leaves tellers and branches alone, so only the accounts must agree here.
        let accounts = server.query(
            "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history)",
        );
        assert_eq!(accounts, "t");
    });
}

#[test]
fn a_thousand_clients_see_no_error() {
    with_server("pgbench-1000", &[], |server| {
        server.pgbench(&["-i", "-q", "-s", "10"]);
        server.pgbench(&[
            "-n",
            "-M",
            "prepared",
            "-b",
            "tpcb-like",
            "-c",
            "1000",
            "-j",
            "2",
            "-t",
            "5",
        ]);
        assert_balanced(server);
        server.pgbench(&["-n", "-b", "select-only", "-c", "1000", "-j", "2", "-t", "20"]);
        assert_eq!(server.query("SELECT count(*) FROM pgbench_history"), "5000");
    });
}

#[test]
fn sessions_on_threads_of_their_own_do_the_same() {
    with_server("pgbench-threads", &["session_model=thread"], |server| {
        server.pgbench(&["-i", "-q", "-s", "2"]);
        server.pgbench(&[
            "-n",
            "-M",
            "prepared",
            "-b",
            "tpcb-like",
            "-c",
            "50",
            "-j",
            "2",
            "-t",
            "20",
        ]);
        assert_balanced(server);
    });
}

//! Settings that change while the server runs, under load: sizes of the log buffers and of the mapping
//! table, the session model, the number of connections, what is logged. What `pg_settings` says of a
//! setting's context is what the server does.

use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::raw::{Raw, startup};
use crate::support::{Server, TempDir, pgbench_command, text_of};

/// Settings that are read at the start only, and nothing else is.
const AT_START: [&str; 20] = [
    "cluster_name",
    "config_file",
    "data_directory",
    "debug_tiny",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "logging_collector",
    "port",
    "recovery_target",
    "recovery_target_action",
    "recovery_target_inclusive",
    "recovery_target_lsn",
    "recovery_target_name",
    "recovery_target_time",
    "unix_socket_directories",
    "unix_socket_group",
    "unix_socket_permissions",
    "wal_level",
];

fn set(server: &Server, name: &str, value: &str) {
    let script = format!("ALTER SYSTEM SET {name} = '{value}';\nSELECT pg_reload_conf();\n");
    assert_eq!(server.psql(&["-qAt"], &script), "t\n");
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "{what} did not happen within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn buffers_partitions_and_the_session_model_change_under_load() {
    let dir = TempDir::new("changing");
    let server = Server::start(&dir.path().join("data"), &["workers=2"]);
    server.pgbench(&["-i", "-q", "-s", "1"]);
    std::thread::scope(|scope| {
        let loads = [["-b", "tpcb-like", "-Mprepared"], ["-S", "-C", "-n"]].map(|args| {
            let port = server.port;
            scope.spawn(move || {
                let mut command = pgbench_command(port);
                command.args(args).args(["-c", "4", "-T", "6", "-n", "postgres"]);
                let out = command.output().expect("pgbench is installed");
                (out.status.success(), text_of(&out))
            })
        });
        let log_bytes = |bytes: u64| {
            let sql = "SELECT size FROM pg_shmem_allocations WHERE name = 'XLOG Buffers'";
            until("the change of wal_buffers", || server.query(sql) == bytes.to_string());
        };
        for (wal, bytes, partitions, model) in [
            ("64MB", 64 << 20, "1", "thread"),
            ("8MB", 8 << 20, "4096", "pooled"),
            ("256MB", 256 << 20, "16", "thread"),
            ("1MB", 8 << 20, "128", "pooled"),
            ("32MB", 32 << 20, "512", "pooled"),
        ] {
            set(&server, "wal_buffers", wal);
            set(&server, "buffer_partitions", partitions);
            set(&server, "session_model", model);
            log_bytes(bytes);
        }
        for load in loads {
            let (well, text) = load.join().expect("pgbench's output was read");
            assert!(well && text.contains("number of failed transactions: 0"), "{text}");
        }
    });
    let sums = "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = \
                (SELECT coalesce(sum(delta), 0) FROM pgbench_history)";
    assert_eq!(server.query(sums), "t");
    let log = std::fs::read_to_string(dir.path().join("data.log")).expect("there is a log");
    assert!(log.contains("buffer partitions changed from 512 to 1"), "{log}");
    assert!(server.stop());
}

#[test]
fn a_sessions_model_is_that_of_its_beginning() {
    let dir = TempDir::new("changing-model");
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    let threads = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("it runs");
        let names =
            tasks.flatten().filter_map(|t| std::fs::read_to_string(t.path().join("comm")).ok());
        names.filter(|name| name.trim() == "session").count()
    };
    let mut pooled = Raw::connect(server.port);
    set(&server, "session_model", "thread");
    let mut own = Raw::connect(server.port);
    assert_eq!(threads(), 1, "the new session has a thread, the old one has none");
    set(&server, "session_model", "pooled");
    for session in [&mut pooled, &mut own] {
        assert!(session.query("SELECT 7 AS n").contains(&"D 7".to_owned()));
    }
    drop(own);
    until("the end of the thread", || threads() == 0);
}

#[test]
fn places_come_and_go_while_sessions_are_there() {
    let dir = TempDir::new("changing-places");
    let server = Server::start(&dir.path().join("data"), &["max_connections=5"]);
    let mut sessions: Vec<Client> =
        (0..4).map(|_| Client::connect(server.port).expect("there is a place")).collect();
    let too_many = |port: u16| {
        let mut raw = Raw::open(port);
        let lines = raw.talk(&startup(196_608, &[("user", "postgres"), ("database", "postgres")]));
        lines.contains(&"E FATAL 53300 sorry, too many clients already".to_owned())
    };
    sessions
        .push(Client::connect(server.port).expect("the last place, which a superuser may have"));
    assert!(too_many(server.port));
    let mut change = |value: &str| {
        let admin = sessions.last_mut().expect("five are there");
        for sql in [
            format!("ALTER SYSTEM SET max_connections = {value}"),
            "SELECT pg_reload_conf()".into(),
        ] {
            let answer = admin.query(&sql).expect("the session goes on");
            assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
        }
    };
    // The command line wins over the file, so the limit is still that of the start.
    change("50");
    assert!(too_many(server.port));
    drop(sessions);
    assert!(server.stop());

    let server = Server::start(&dir.path().join("data"), &[]);
    let sessions: Vec<Client> =
        (0..20).map(|_| Client::connect(server.port).expect("there is a place")).collect();
    set(&server, "max_connections", "10");
    assert!(too_many(server.port), "those who are there stay, nobody else comes in");
    drop(sessions);
    until("a place", || !too_many(server.port));
}

#[test]
fn contexts_are_true() {
    let dir = TempDir::new("changing-contexts");
    let server = Server::start(&dir.path().join("data"), &[]);
    // Those that change nothing have PostgreSQL's context.
    let at_start = server.query(
        "SELECT name FROM pg_settings WHERE context = 'postmaster'
         AND short_desc NOT LIKE 'Accepted for %' ORDER BY 1",
    );
    assert_eq!(at_start.lines().collect::<Vec<_>>(), AT_START);
    set(&server, "log_min_duration_statement", "0");
    server.query("SELECT 'a statement to be logged'");
    let log = || std::fs::read_to_string(dir.path().join("data.log")).expect("there is a log");
    assert!(log().contains("a statement to be logged"));
    set(&server, "log_min_duration_statement", "-1");
    server.query("SELECT 'another one'");
    assert!(!log().contains("another one"));
}

#[test]
fn the_supervisor_follows_restart_after_crash() {
    let dir = TempDir::new("changing-restart");
    let data = dir.path().join("data");
    let server = Server::start_crashing(&data, &["debug_faults=checkpoint=panic"]);
    let crash = |table: &str| {
        let mut client = Client::connect(server.port).expect("the server runs");
        // Something to checkpoint.
        let made = client.query(&format!("CREATE TABLE {table} (n int)"));
        assert!(made.is_ok_and(|answer| answer.error.is_none()));
        assert!(client.query("CHECKPOINT").is_err(), "the server crashes");
    };
    crash("first");
    assert_eq!(server.query("SELECT 1"), "1", "it was started again");
    set(&server, "restart_after_crash", "off");
    crash("second");
    assert!(!server.wait().success(), "the supervisor ends with its server");
}

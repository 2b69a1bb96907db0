//! Waits as SQL shows them: now, lately, summed up, traced, and by plan node.

use crate::support::client::Client;
use crate::support::{Server, TempDir};

fn set(server: &Server, name: &str, value: &str) {
    let script = format!("ALTER SYSTEM SET {name} = '{value}';\nSELECT pg_reload_conf();\n");
    assert_eq!(server.psql(&["-qAt"], &script), "t\n");
}

struct Sessions {
    holder: Client,
    waiter: Client,
    watcher: Client,
    holder_pid: String,
    waiter_pid: String,
}

fn sessions(server: &Server) -> Sessions {
    let connect = || Client::connect(server.port).expect("the server takes connections");
    let (mut holder, mut waiter, watcher) = (connect(), connect(), connect());
    let holder_pid = holder.one("SELECT pg_backend_pid()");
    let waiter_pid = waiter.one("SELECT pg_backend_pid()");
    Sessions { holder, waiter, watcher, holder_pid, waiter_pid }
}

impl Sessions {
    /// The waiter waits for a lock that the holder gives up only when the watcher has seen it.
    fn conflict(&mut self) {
        self.holder.one("SELECT pg_advisory_lock(77)");
        let (waiter, watcher) = (&mut self.waiter, &mut self.watcher);
        std::thread::scope(|scope| {
            scope.spawn(|| waiter.one("SELECT pg_advisory_lock(77), pg_advisory_unlock(77)"));
            let current = format!(
                "SELECT wait_event_type || ':' || wait_event || ' ' || object || ' ' || blocker_pid
                 FROM pg_stat_wait_current WHERE pid = {}",
                self.waiter_pid
            );
            let wanted = format!("Lock:advisory advisory lock 77 in 5 {}", self.holder_pid);
            watcher.await_one(&current, &wanted);
            assert_eq!(self.holder.one("SELECT pg_advisory_unlock(77)"), "t");
        });
    }
}

#[test]
fn waits_are_seen_now_and_afterwards_with_object_blocker_and_exact_counts() {
    let dir = TempDir::new("waits");
    let server = Server::start(dir.path(), &[]);
    let mut s = sessions(&server);

    // An idle session of the pool waits for its client.
    let idle = format!(
        "SELECT event FROM pg_wait_sampling_current WHERE pid = {} AND event_type = 'Client'",
        s.holder_pid
    );
    s.watcher.await_one(&idle, "ClientRead");
    let activity = format!("SELECT wait_event FROM pg_stat_activity WHERE pid = {}", s.holder_pid);
    assert_eq!(s.watcher.one(&activity), "ClientRead");

    (0..3).for_each(|_| s.conflict());
    let history = format!(
        "SELECT count(*) || ' ' || bool_and(duration_ms > 0 AND query_id IS NOT NULL)
         FROM pg_stat_wait_history
         WHERE pid = {} AND blocker_pid = {} AND object = 'advisory lock 77 in 5'",
        s.waiter_pid, s.holder_pid
    );
    assert_eq!(s.watcher.one(&history), "3 true");
    let profile = format!(
        "SELECT count || ' ' || (total_ms >= longest_ms AND longest_ms >= mean_ms)
         FROM pg_stat_wait_profile WHERE pid = {} AND wait_event = 'advisory'",
        s.waiter_pid
    );
    assert_eq!(s.watcher.one(&profile), "3 true");
    let sampled = format!(
        "SELECT count(*) FROM pg_wait_sampling_history WHERE pid = {} AND event = 'advisory'",
        s.waiter_pid
    );
    assert_eq!(s.watcher.one(&sampled), "3");
    let sampled = sampled.replace("_history", "_profile");
    assert_eq!(s.watcher.one(&sampled), "1");

    s.watcher.one("SELECT pg_stat_wait_reset()");
    assert_eq!(s.watcher.one(&profile), "");

    // Nothing is recorded while watching is off; then only what fits.
    set(&server, "track_wait_timing", "off");
    s.conflict();
    assert_eq!(s.watcher.one(&history), "3 true");
    set(&server, "track_wait_timing", "on");
    set(&server, "pg_wait_sampling.history_size", "0");
    s.conflict();
    assert_eq!(s.watcher.one("SELECT count(*) FROM pg_stat_wait_history"), "0");
    assert_eq!(s.watcher.one(&profile), "1 true");

    assert_eq!(
        s.watcher.one("SELECT description FROM pg_wait_events WHERE name = 'ClientRead'"),
        "Waiting for the client to send."
    );
}

/// What goes on counts, and it counts once when it is over.
#[test]
fn waits_under_way_are_in_the_sums_and_in_traces() {
    let dir = TempDir::new("under-way");
    let server = Server::start(dir.path(), &[]);
    let mut s = sessions(&server);
    s.holder.one("SELECT pg_advisory_lock(78)");
    let profile = format!(
        "SELECT count || ' ' || (query_id IS NOT NULL) || ' ' || (total_ms > 0 AND longest_ms = total_ms)
         FROM pg_stat_wait_profile WHERE pid = {} AND wait_event = 'advisory'",
        s.waiter_pid
    );
    let trace = format!("SELECT * FROM pg_stat_wait_trace({}, 0)", s.waiter_pid);
    let (waiter, holder) = (&mut s.waiter, &mut s.holder);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| waiter.one("SELECT pg_advisory_lock(78)"));
        let current = format!(
            "SELECT count(*) FROM pg_stat_wait_current WHERE pid = {} AND wait_event = 'advisory'",
            s.waiter_pid
        );
        s.watcher.await_one(&current, "1");
        assert_eq!(s.watcher.one(&profile), "1 true true");
        let rows = s.watcher.query(&trace).expect("the server answers");
        let lines: Vec<String> =
            rows.rows.into_iter().filter_map(|mut row| row[0].take()).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[1].contains("still waits, so far "), "{lines:?}");
        let what = format!("for Lock:advisory, advisory lock 78 in 5, held by {}", s.holder_pid);
        assert!(lines[1].ends_with(&what), "{lines:?}");
        // A command that only looks says it, too.
        let url = format!("postgres://127.0.0.1:{}", server.port);
        let top = std::process::Command::new(crate::support::BIN)
            .args(["top", "--once", "-d", "0.2", "--url", &url])
            .output()
            .expect("top runs");
        let text = String::from_utf8_lossy(&top.stdout).into_owned();
        assert!(text.contains("Lock / advisory") && !text.contains("nobody waited"), "{text}");
        holder.one("SELECT pg_advisory_unlock(78)");
        waits.join().expect("the lock is had");
    });
    assert_eq!(s.watcher.one(&profile), "1 true true");
}

#[test]
fn latches_are_counted_by_tranche_and_each_tranche_has_its_limit() {
    let dir = TempDir::new("lwlocks");
    let server = Server::start(dir.path(), &[]);
    let of = |column: &str| {
        let sql = format!("SELECT {column} FROM pg_stat_lwlock WHERE tranche = 'BufferContent'");
        server.query(&sql).trim().to_owned()
    };
    let before: i64 = of("acquisitions").parse().expect("a number");
    server.query("CREATE TABLE t AS SELECT * FROM generate_series(1, 1000) g");
    let after: i64 = of("acquisitions").parse().expect("a number");
    assert!(after > before, "{after} after {before}");
    assert_eq!(of("shared_limit"), "16");
    set(&server, "lwlock_shared_limits", "buffer_content=3, BufferMapping=-1");
    assert_eq!(of("shared_limit"), "3");
    let wrong = server.psql(&["-qAt"], "ALTER SYSTEM SET lwlock_shared_limits = 'nonsense=1';");
    assert!(wrong.contains("\"nonsense=1\" is not a tranche"), "{wrong}");
}

#[test]
fn a_session_or_a_statement_is_traced_to_a_file_and_a_result() {
    let dir = TempDir::new("traces");
    let server = Server::start(dir.path(), &[]);
    let mut s = sessions(&server);
    s.holder.one("CREATE TABLE t (a int)");
    s.holder.one("INSERT INTO t VALUES (1)");
    let statement = "SELECT a, pg_sleep(0.01) FROM t WHERE a = 1";
    s.waiter.one(statement);
    let id = s
        .watcher
        .one(&format!("SELECT query_id FROM pg_stat_activity WHERE pid = {}", s.waiter_pid));

    // The next execution, in any session.
    let watcher = &mut s.watcher;
    let rows = std::thread::scope(|scope| {
        let sql = format!("SELECT * FROM pg_stat_wait_trace(NULL, 60, {id})");
        let traced = scope.spawn(move || watcher.query(&sql).expect("the server answers"));
        let waits = "SELECT count(*) FROM pg_stat_wait_current WHERE wait_event = 'WaitTrace'";
        s.holder.await_one(waits, "1");
        s.waiter.one(statement);
        traced.join().expect("the trace ends with the statement")
    });
    assert!(rows.error.is_none(), "{:?}", rows.error);
    let lines: Vec<String> = rows.rows.into_iter().filter_map(|mut row| row[0].take()).collect();
    let all = lines.join("\n");
    assert!(lines[1].ends_with(&format!("statement {id} begins")), "{all}");
    assert!(all.contains("for Timeout:PgSleep"), "{all}");
    assert!(all.contains("plan  Seq Scan on t"), "{all}");
    assert!(lines.last().expect("lines").ends_with(&format!("statement {id} ends")), "{all}");
    let kept = std::fs::read_to_string(dir.path().join(&lines[0])).expect("the trace has a file");
    assert_eq!(kept.trim_end(), lines[1..].join("\n"));

    let nothing = s.watcher.query("SELECT * FROM pg_stat_wait_trace(NULL)").expect("an answer");
    assert!(nothing.error.is_some_and(|(code, _)| code == "22023"));
    let nobody = s.watcher.query("SELECT * FROM pg_stat_wait_trace(987654, 0)").expect("an answer");
    let (code, message) = nobody.error.expect("there is no such session");
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("22023", "there is no session with process ID 987654")
    );
}

#[test]
fn explain_shows_what_each_node_waited_for() {
    let dir = TempDir::new("explain-waits");
    let server = Server::start(dir.path(), &[]);
    let plan = server.query("EXPLAIN (ANALYZE, WAITS, COSTS OFF) SELECT pg_sleep(0.01)");
    assert!(plan.contains("Waits: Timeout:PgSleep 1 in "), "{plan}");
    let plain = server.query("EXPLAIN (ANALYZE, COSTS OFF) SELECT pg_sleep(0.01)");
    assert!(!plain.contains("Waits"), "{plain}");
    let wrong = server.query("EXPLAIN (WAITS) SELECT 1");
    assert!(wrong.contains("EXPLAIN option WAITS requires ANALYZE"), "{wrong}");
}

//! Programs in the server under stress: a thousand sessions over two workers, each inside of a procedure with a cursor
//! open that outlives a COMMIT; and SIGKILL at random moments while procedures commit and triggers keep sums.
//!
//! `CRASH_SEED` and `CRASH_ROUNDS` are as in `tests/durability/crash.rs`.

use std::process::Command;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::client::Client;
use crate::support::random::Random;
use crate::support::raw::{self, Raw};
use crate::support::{BIN, Server, TempDir};

const SESSIONS: usize = 1000;
const CLIENTS: i64 = 8;

/// Functions of a session are its own, and nothing that outlives it calls them.
#[test]
fn functions_of_a_session_end_with_it() {
    let dir = TempDir::new("temporary-functions");
    let server = Server::start(&dir.path().join("data"), &["workers=2"]);
    let mut sessions: Vec<Client> = (0..2).map(|_| Client::connect(server.port).unwrap()).collect();
    for (name, client) in ["first", "second"].into_iter().zip(&mut sessions) {
        let make = format!(
            "CREATE FUNCTION pg_temp.who() RETURNS text LANGUAGE plpgsql AS $$BEGIN RETURN '{name}'; END$$"
        );
        assert!(client.query(&make).unwrap().error.is_none());
    }
    for _ in 0..3 {
        for (name, client) in ["first", "second"].into_iter().zip(&mut sessions) {
            assert_eq!(client.one("SELECT pg_temp.who()"), name);
        }
    }
    let client = &mut sessions[0];
    client.query("CREATE TABLE kept (a text, b text)").unwrap();
    for lasting in [
        "ALTER TABLE kept ALTER a SET DEFAULT pg_temp.who()",
        "ALTER TABLE kept ADD CHECK (a <> pg_temp.who())",
        "CREATE DOMAIN word AS text CHECK (VALUE <> pg_temp.who())",
        "CREATE FUNCTION calls() RETURNS text RETURN pg_temp.who()",
        "CREATE POLICY p ON kept USING (a = pg_temp.who())",
    ] {
        let error = client.query(lasting).unwrap().error.map(|e| e.0);
        assert_eq!(error.as_deref(), Some("0A000"), "{lasting}");
    }
    drop(sessions);
    let mut other = Client::connect(server.port).unwrap();
    other.await_one("SELECT count(*) FROM pg_proc WHERE proname = 'who'", "0");
    assert!(other.query("INSERT INTO kept DEFAULT VALUES").unwrap().error.is_none());
    assert!(server.stop());
}

#[test]
fn a_thousand_sessions_wait_inside_of_procedures_with_cursors_open() {
    let dir = TempDir::new("in-procedures");
    let settings = ["workers=2", "max_connections=1100", "deadlock_timeout=1h"];
    let server = Server::start(&dir.path().join("data"), &settings);
    let made = server.psql(
        &["-q", "-v", "ON_ERROR_STOP=1"],
        "CREATE TABLE numbers (n int PRIMARY KEY);
         INSERT INTO numbers SELECT generate_series(1, 40);
         CREATE TABLE seen (session int, n int);
         CREATE PROCEDURE walk(session int, INOUT total bigint DEFAULT 0) LANGUAGE plpgsql AS $$
         DECLARE r record; c refcursor; v int;
         BEGIN
             FOR r IN SELECT n FROM numbers ORDER BY n LOOP
                 total := total + r.n;
                 IF r.n = 20 THEN
                     -- Inside of a loop over a cursor, before and after a commit.
                     COMMIT;
                     PERFORM pg_advisory_lock_shared(7);
                     PERFORM pg_advisory_unlock_shared(7);
                     INSERT INTO seen VALUES (session, r.n);
                 END IF;
             END LOOP;
             COMMIT;
             OPEN c FOR SELECT n FROM numbers WHERE n > session % 40 ORDER BY n;
             FETCH c INTO v;
             total := total * 1000 + coalesce(v, 0);
         END $$;",
    );
    assert_eq!(made, "");
    let mut gate = Client::connect(server.port).expect("the server takes connections");
    gate.one("SELECT pg_advisory_lock(7)");
    let mut sessions: Vec<Raw> = (0..SESSIONS).map(|_| Raw::connect(server.port)).collect();
    for (n, session) in sessions.iter_mut().enumerate() {
        session.send(&raw::query(&format!("CALL walk({n})")));
    }
    let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    gate.await_one(waiting, &SESSIONS.to_string());
    // All are inside; others get through meanwhile.
    assert_eq!(gate.one("SELECT sum(n) FROM numbers"), "820");
    gate.one("SELECT pg_advisory_unlock(7)");
    for (n, session) in sessions.iter_mut().enumerate() {
        let lines = session.until(|line| line.starts_with('Z'));
        let wanted = format!("D {}", 820_000 + if n % 40 == 39 { 40 } else { n % 40 + 1 });
        assert!(lines.contains(&wanted), "session {n}: {lines:?} has no {wanted}");
    }
    let all = "SELECT count(DISTINCT session) || ' ' || count(*) FROM seen";
    assert_eq!(gate.one(all), format!("{SESSIONS} {SESSIONS}"));
    drop((sessions, gate));
    assert!(server.stop());
}

const SHOP: &str = "
    CREATE TABLE orders (client int, n bigint, amount int NOT NULL, PRIMARY KEY (client, n));
    CREATE TABLE totals (client int PRIMARY KEY, amount bigint NOT NULL, orders bigint NOT NULL);
    CREATE TABLE journal (client int, n bigint, what text);
    CREATE TABLE progress (client int PRIMARY KEY, n bigint NOT NULL);
    INSERT INTO totals SELECT g, 0, 0 FROM generate_series(0, 7) g;
    INSERT INTO progress SELECT g, 0 FROM generate_series(0, 7) g;
    CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN NEW.amount := NEW.amount + 1; RETURN NEW; END $$;
    CREATE FUNCTION sum_up() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            UPDATE totals t SET amount = t.amount + s.amount, orders = t.orders + s.orders
                FROM (SELECT client, sum(amount) AS amount, count(*) AS orders FROM fresh GROUP BY client) s
                WHERE t.client = s.client;
            RETURN NULL;
        END $$;
    CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO journal VALUES (NEW.client, NEW.n, TG_OP); RETURN NULL; END $$;
    CREATE TRIGGER stamp BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION stamp();
    CREATE TRIGGER sum_up AFTER INSERT ON orders REFERENCING NEW TABLE AS fresh
        FOR EACH STATEMENT EXECUTE FUNCTION sum_up();
    CREATE CONSTRAINT TRIGGER keep AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION keep();
    CREATE PROCEDURE work(who int, INOUT done bigint) LANGUAGE plpgsql AS $$
        BEGIN
            FOR i IN 1..4 LOOP
                UPDATE progress SET n = n + 1 WHERE client = who RETURNING n INTO done;
                INSERT INTO orders SELECT who, done * 10 + g, g FROM generate_series(1, 3) g;
                BEGIN
                    INSERT INTO orders VALUES (who, done * 10 + 1, 0);
                EXCEPTION WHEN unique_violation THEN NULL;
                END;
                IF done % 7 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
                IF done % 7 = 0 THEN
                    UPDATE progress SET n = n + 1 WHERE client = who;
                    COMMIT;
                END IF;
            END LOOP;
        END $$;";

/// Calls until the connection breaks; `known` is the progress that an answer has shown.
fn work(port: u16, who: i64, known: &AtomicI64) {
    let Ok(mut client) = Client::connect(port) else { return };
    loop {
        let Ok(answer) = client.query(&format!("CALL work({who}, 0)")) else { return };
        assert!(answer.error.is_none(), "{:?}", answer.error);
        let done = answer.rows.first().and_then(|row| row[0].as_deref()?.parse().ok());
        known.store(done.expect("a number"), Ordering::Relaxed);
    }
}

#[test]
fn procedures_that_commit_and_triggers_leave_nothing_half_done() {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64);
    let seed = number("CRASH_SEED").unwrap_or(now) | 1;
    println!("CRASH_SEED={seed}");
    let mut random = Random::new(seed);
    let dir = TempDir::new("crash-code");
    let data = dir.path().join("data");
    let settings = ["max_wal_size=8MB", "checkpoint_timeout=1s"];
    let mut server = Server::start(&data, &settings);
    assert_eq!(server.psql(&["-q", "-v", "ON_ERROR_STOP=1"], SHOP), "");
    let known: Vec<AtomicI64> = (0..CLIENTS).map(|_| AtomicI64::new(0)).collect();
    for _ in 0..number("CRASH_ROUNDS").unwrap_or(8) {
        let port = server.port;
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|who| {
                    let known = &known[who as usize];
                    scope.spawn(move || work(port, who, known))
                })
                .collect();
            std::thread::sleep(Duration::from_millis(100 + random.below(500)));
            server.kill();
            for client in clients {
                client.join().expect("a client saw an error");
            }
        });
        server = Server::start(&data, &settings);
        for (who, known) in known.iter().enumerate() {
            let there = server.query(&format!("SELECT n FROM progress WHERE client = {who}"));
            let there: i64 = there.parse().expect("a number");
            let known = known.load(Ordering::Relaxed);
            // What was rolled back and done again is not in the answer.
            assert!(there + 1 >= known, "client {who}: {there}, but {known} was acknowledged");
        }
        let differ = "SELECT count(*) FROM totals t WHERE (t.amount, t.orders) IS DISTINCT FROM \
            (SELECT (coalesce(sum(amount), 0), count(*)) FROM orders o WHERE o.client = t.client)";
        assert_eq!(server.query(differ), "0", "the sums of triggers");
        let journal = "SELECT (SELECT count(*) FROM (TABLE journal EXCEPT SELECT client, n, 'INSERT' FROM orders) x) \
            + (SELECT count(*) FROM orders) - (SELECT count(*) FROM journal)";
        assert_eq!(server.query(journal), "0", "the deferred triggers");
        let whole = "SELECT count(*) FROM orders WHERE n / 10 > (SELECT n FROM progress p WHERE p.client = orders.client)";
        assert_eq!(server.query(whole), "0", "orders without progress");
    }
    println!("{}", server.query("SELECT sum(orders) || ' orders' FROM totals"));
    assert!(server.query("SELECT count(*) > 0 FROM orders") == "t", "the load did nothing");
    assert!(server.stop());
    let out =
        Command::new(BIN).args(["check", "-D"]).arg(&data).output().expect("the binary is there");
    assert!(out.status.success(), "check found: {}", crate::support::text_of(&out));
}

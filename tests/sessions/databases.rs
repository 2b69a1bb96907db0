//! Several databases in one server: each has its own tables, plans, temporary objects, locks and
//! channels; CREATE DATABASE copies a template and is there as a whole or not at all; DROP DATABASE waits
//! for those inside, or ends them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::raw::{self, Raw};
use crate::support::{BIN, PG_BIN, Server, TempDir, text_of};

fn enter(server: &Server, database: &str) -> Client {
    Client::connect_to(server.port, "postgres", database).expect("the database takes connections")
}

/// Runs what must go well; the first column of the first row.
fn ask(client: &mut Client, sql: &str) -> String {
    let answer = client.query(sql).expect("the connection holds");
    assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
    let first = answer.rows.into_iter().next().and_then(|row| row.into_iter().next());
    first.flatten().unwrap_or_default()
}

/// Runs what must fail: SQLSTATE and message.
fn fails(client: &mut Client, sql: &str) -> (String, String) {
    let answer = client.query(sql).expect("the connection holds");
    answer.error.unwrap_or_else(|| panic!("{sql} went well"))
}

/// Why the server does not let a client in.
fn refusal(server: &Server, user: &str, database: &str) -> String {
    match Client::connect_to(server.port, user, database) {
        Ok(_) => panic!("{user} may enter {database}"),
        Err(error) => error.to_string(),
    }
}

/// Waits until a query, asked again and again, gives this.
fn until(client: &mut Client, sql: &str, wanted: &str) {
    let end = Instant::now() + Duration::from_secs(30);
    while ask(client, sql) != wanted {
        assert!(Instant::now() < end, "{sql} never gave {wanted}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Files of relations.
fn files(data: &Path) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let mut folders = vec![data.join("base")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder is there").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                out.insert(entry.file_name().to_string_lossy().into_owned());
            }
        }
    }
    out
}

/// The offline checker on a stopped server's directory.
fn check(dir: &Path) {
    let out = Command::new(BIN).args(["check", "-D"]).arg(dir).output();
    let out = out.expect("the binary is there");
    assert!(out.status.success(), "check found: {}", text_of(&out));
}

/// PostgreSQL's own client programs.
fn program(server: &Server, name: &str, args: &[&str]) -> String {
    let out = Command::new(format!("{PG_BIN}/{name}"))
        .args(["-h", "127.0.0.1", "-U", "postgres", "-p", &server.port.to_string()])
        .args(args)
        .output()
        .expect("PostgreSQL's programs are installed");
    assert!(out.status.success(), "{name} {args:?}: {}", text_of(&out));
    text_of(&out)
}

#[test]
fn databases_share_nothing_but_what_belongs_to_the_server() {
    let dir = TempDir::new("databases");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut home = enter(&server, "postgres");
    ask(&mut home, "CREATE DATABASE one");
    let mut one = enter(&server, "one");
    ask(&mut one, "CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'one')");
    drop(one);
    ask(&mut home, "CREATE DATABASE two TEMPLATE one");
    let (mut one, mut two) = (enter(&server, "one"), enter(&server, "two"));

    // The copy has the table under the same oid; a text means each one's own, whoever planned it first,
    // whatever changes in the other.
    let oid = "SELECT 't'::regclass::oid";
    assert_eq!(ask(&mut one, oid), ask(&mut two, oid));
    ask(&mut two, "UPDATE t SET b = 'two'");
    let row = "SELECT b FROM t WHERE a = 1";
    for _ in 0..3 {
        assert_eq!((ask(&mut one, row), ask(&mut two, row)), ("one".into(), "two".into()));
    }
    ask(&mut one, "PREPARE p AS SELECT * FROM t WHERE a = $1; EXECUTE p(1)");
    ask(&mut two, "PREPARE p AS SELECT * FROM t WHERE a = $1; EXECUTE p(1)");
    ask(&mut two, "ALTER TABLE t DROP COLUMN b; ALTER TABLE t ADD COLUMN b int DEFAULT 22");
    assert_eq!((ask(&mut one, row), ask(&mut two, row)), ("one".into(), "22".into()));
    assert_eq!(fails(&mut two, "EXECUTE p(1)").0, "0A000");
    ask(&mut one, "EXECUTE p(1)");
    ask(&mut two, "DROP TABLE t");
    assert_eq!(ask(&mut one, row), "one");
    assert_eq!(fails(&mut two, row).0, "42P01");
    ask(&mut two, "CREATE TABLE t (b text, a int); INSERT INTO t VALUES ('new', 1)");
    assert_eq!((ask(&mut one, row), ask(&mut two, row)), ("one".into(), "new".into()));
    assert_eq!(fails(&mut home, row).0, "42P01");

    // Locks, temporary objects, advisory locks and channels.
    drop(two);
    ask(&mut home, "DROP DATABASE two");
    drop(one);
    ask(&mut home, "CREATE DATABASE two TEMPLATE one");
    let (mut one, mut two) = (enter(&server, "one"), enter(&server, "two"));
    ask(&mut one, "BEGIN; LOCK TABLE t; SELECT pg_advisory_xact_lock(7)");
    ask(&mut two, "BEGIN; LOCK TABLE t NOWAIT; COMMIT");
    assert_eq!(ask(&mut two, "SELECT pg_try_advisory_lock(7)"), "t");
    let held = "SELECT string_agg(d.datname || ' ' || locktype, ',' ORDER BY d.datname, locktype) \
        FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE mode LIKE '%Exclusive%'";
    assert_eq!(ask(&mut home, held), "one advisory,one relation,two advisory");
    ask(&mut one, "COMMIT; CREATE TEMP TABLE mine (a int)");
    assert_eq!(fails(&mut two, "SELECT * FROM mine").0, "42P01");
    let temporary = "SELECT count(*) FROM pg_class WHERE relpersistence = 't'";
    assert_eq!((ask(&mut one, temporary), ask(&mut two, temporary)), ("1".into(), "0".into()));
    let (mut hears, mut deaf) = (Raw::open(server.port), Raw::open(server.port));
    for (raw, database) in [(&mut hears, "one"), (&mut deaf, "two")] {
        let packet = raw::startup(0x30000, &[("user", "postgres"), ("database", database)]);
        raw.send(&packet);
        raw.until(|line| line.starts_with('Z'));
        raw.query("LISTEN c");
    }
    ask(&mut two, "NOTIFY c, 'to two'");
    ask(&mut one, "NOTIFY c, 'to one'");
    let heard = hears.until(|line| line.starts_with('A'));
    assert!(heard.iter().any(|l| l.contains("to one")), "{heard:?}");
    assert!(!heard.iter().any(|l| l.contains("to two")), "{heard:?}");

    // Statistics.
    let scans = "SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 't'";
    assert_eq!((ask(&mut one, scans), ask(&mut two, scans)), ("1".into(), "0".into()));
    let backends = "SELECT numbackends FROM pg_stat_database WHERE datname = 'one'";
    assert_eq!(ask(&mut home, backends), "2");
    let activity = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'two'";
    assert_eq!(ask(&mut home, activity), "2");
    assert!(server.stop());
    check(&dir.path().join("data"));
}

#[test]
fn who_may_come_in() {
    let dir = TempDir::new("databases-doors");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut home = enter(&server, "postgres");
    for sql in ["CREATE DATABASE shut", "CREATE ROLE visitor LOGIN"] {
        ask(&mut home, sql);
    }
    assert!(
        refusal(&server, "postgres", "nosuch")
            .ends_with("3D000: database \"nosuch\" does not exist")
    );
    let why = "55000: database \"template0\" is not currently accepting connections";
    assert!(refusal(&server, "postgres", "template0").ends_with(why));
    ask(&mut home, "ALTER DATABASE shut ALLOW_CONNECTIONS false");
    assert!(refusal(&server, "postgres", "shut").starts_with("55000"));
    ask(&mut home, "ALTER DATABASE shut ALLOW_CONNECTIONS true");
    ask(&mut home, "REVOKE CONNECT ON DATABASE shut FROM PUBLIC");
    let why = "42501: permission denied for database \"shut\"";
    assert!(refusal(&server, "visitor", "shut").ends_with(why));
    ask(&mut home, "GRANT CONNECT ON DATABASE shut TO visitor");
    ask(&mut home, "ALTER DATABASE shut CONNECTION LIMIT 1");
    let first = Client::connect_to(server.port, "visitor", "shut").expect("there is a place");
    let why = "53300: too many connections for database \"shut\"";
    assert!(refusal(&server, "visitor", "shut").ends_with(why));
    drop(enter(&server, "shut"));
    drop(first);
    until(&mut home, "SELECT count(*) FROM pg_stat_activity WHERE datname = 'shut'", "0");
    Client::connect_to(server.port, "visitor", "shut").expect("the place is free");
}

#[test]
fn a_database_with_sessions_inside_is_not_dropped_under_them() {
    let dir = TempDir::new("databases-drop");
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    let mut home = enter(&server, "postgres");
    let before = files(&data);
    for name in ["busy", "leaving", "forced"] {
        ask(&mut home, &format!("CREATE DATABASE {name}"));
    }
    let mut forced = enter(&server, "forced");
    ask(
        &mut forced,
        "CREATE TABLE big AS SELECT n, repeat('x', 1000) AS t FROM generate_series(1, 500) n",
    );
    let mut busy = enter(&server, "busy");
    ask(&mut busy, "CREATE TABLE t (a int)");

    // Three commands that want the database alone wait for the session together, and give up.
    std::thread::scope(|scope| {
        for sql in [
            "DROP DATABASE busy",
            "ALTER DATABASE busy RENAME TO idle",
            "CREATE DATABASE copy TEMPLATE busy",
        ] {
            let mut own = enter(&server, "postgres");
            scope.spawn(move || {
                let (code, message) = fails(&mut own, sql);
                assert_eq!(code, "55006", "{sql}: {message}");
                assert!(message.contains("is being accessed by other users"), "{message}");
            });
        }
    });
    ask(&mut busy, "INSERT INTO t VALUES (1)");

    // One that leaves in time.
    let leaving = enter(&server, "leaving");
    let mut dropping = enter(&server, "postgres");
    let late = std::thread::scope(|scope| {
        let drop_it = scope.spawn(|| ask(&mut dropping, "DROP DATABASE leaving"));
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'DatabaseSessions'";
        until(&mut home, waits, "1");
        // Who comes now waits at the door and then finds nothing.
        let comes = scope.spawn(|| refusal(&server, "postgres", "leaving"));
        until(&mut home, waits, "2");
        drop(leaving);
        drop_it.join().expect("the database is dropped");
        comes.join().expect("the late one is told")
    });
    assert!(late.ends_with("3D000: database \"leaving\" does not exist"), "{late}");

    // FORCE ends them.
    ask(&mut home, "DROP DATABASE forced WITH (FORCE)");
    match forced.query("SELECT 1") {
        Ok(answer) => assert_eq!(answer.error.map(|e| e.0).as_deref(), Some("57P01")),
        Err(_) => {}
    }
    drop(busy);
    ask(&mut home, "DROP DATABASE busy");
    assert_eq!(files(&data), before, "files of dropped databases are left");
    assert_eq!(ask(&mut home, "SELECT count(*) FROM pg_database"), "3");
    assert!(server.stop());
}

#[test]
fn a_background_vacuum_makes_way_for_who_wants_the_database_alone() {
    let dir = TempDir::new("databases-vacuum");
    // One that would take a minute, and begins at once.
    let settings = [
        "autovacuum_vacuum_threshold=1",
        "autovacuum_vacuum_scale_factor=0",
        "autovacuum_naptime=1",
        "vacuum_cost_delay=100",
        "vacuum_cost_limit=1",
    ];
    let server = Server::start(&dir.path().join("data"), &settings);
    let mut home = enter(&server, "postgres");
    for round in ["first", "second"] {
        ask(&mut home, "CREATE DATABASE passing");
        let mut passing = enter(&server, "passing");
        ask(
            &mut passing,
            "CREATE TABLE big AS SELECT n, repeat('x', 1000) AS t FROM generate_series(1, 5000) n",
        );
        ask(&mut passing, "DELETE FROM big WHERE n % 2 = 0");
        until(&mut home, "SELECT count(*) FROM pg_stat_progress_vacuum", "1");
        drop(passing);
        // It gives up after five seconds, long before the vacuum would end.
        assert_eq!(ask(&mut home, "DROP DATABASE passing"), "", "{round}");
    }
    assert_eq!(ask(&mut home, "SELECT count(*) FROM pg_stat_progress_vacuum"), "0");
    assert!(server.stop());
}

#[test]
fn a_new_database_is_there_as_a_whole_or_not_at_all() {
    let dir = TempDir::new("databases-crash");
    let data = dir.path().join("data");
    let mut server = Server::start(&data, &["shared_buffers=4MB", "max_wal_size=8MB"]);
    let mut home = enter(&server, "postgres");
    ask(&mut home, "CREATE DATABASE model");
    let mut model = enter(&server, "model");
    ask(
        &mut model,
        "CREATE TABLE t (id int PRIMARY KEY, filler text); CREATE SEQUENCE s; \
         INSERT INTO t SELECT n, repeat('y', 500) FROM generate_series(1, 8000) n; \
         SELECT nextval('s'), nextval('s')",
    );
    drop(model);
    let before = files(&data);

    // It fails, or panics, when all has been copied.
    for fault in ["error", "panic"] {
        ask(&mut home, &format!("ALTER SYSTEM SET debug_faults = 'copy_database={fault}'"));
        ask(&mut home, "SELECT pg_reload_conf()");
        assert_eq!(fails(&mut home, "CREATE DATABASE copy TEMPLATE model").0, "XX000");
        assert_eq!(files(&data), before, "after {fault} files are left");
    }
    ask(&mut home, "ALTER SYSTEM SET debug_faults = ''");
    ask(&mut home, "SELECT pg_reload_conf()");
    assert!(refusal(&server, "postgres", "copy").starts_with("3D000"));

    // The server dies at some moment of it.
    let mut made = 0;
    for round in 0..8u64 {
        let mut creating = enter(&server, "postgres");
        let creates = std::thread::spawn(move || {
            let answer = creating.query("CREATE DATABASE copy TEMPLATE model");
            answer.is_ok_and(|answer| answer.error.is_none())
        });
        std::thread::sleep(Duration::from_millis(round * round * 12));
        server.kill();
        let acknowledged = creates.join().expect("the client does not panic");
        check(&data);
        server = Server::start(&data, &["shared_buffers=4MB", "max_wal_size=8MB"]);
        let mut home = enter(&server, "postgres");
        let there = ask(&mut home, "SELECT count(*) FROM pg_database WHERE datname = 'copy'");
        if there == "0" {
            assert!(!acknowledged, "an acknowledged database is lost");
            assert_eq!(files(&data), before, "files of a database that is not there");
            continue;
        }
        made += 1;
        let mut copy = enter(&server, "copy");
        assert_eq!(ask(&mut copy, "SELECT count(*) FROM t WHERE length(filler) = 500"), "8000");
        assert_eq!(ask(&mut copy, "SELECT id FROM t WHERE id = 7777"), "7777");
        assert!(ask(&mut copy, "SELECT nextval('s')").parse::<i64>().expect("a number") > 2);
        drop(copy);
        ask(&mut home, "DROP DATABASE copy");
        assert_eq!(files(&data), before, "files of a dropped database");
    }
    println!("{made} of 8 databases were made before the crash");
    assert!(server.stop());
    check(&data);
}

#[test]
fn postgresqls_programs_make_copy_and_drop_databases() {
    let dir = TempDir::new("databases-programs");
    let server = Server::start(&dir.path().join("data"), &[]);
    program(
        &server,
        "createdb",
        &["-E", "UTF8", "-T", "template0", "-O", "postgres", "shop", "goods"],
    );
    let mut shop = enter(&server, "shop");
    ask(
        &mut shop,
        "CREATE TYPE size AS ENUM ('s', 'm', 'l'); \
         CREATE TABLE item (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, size size, name text UNIQUE); \
         INSERT INTO item (size, name) SELECT 'm', 'item ' || n FROM generate_series(1, 100) n; \
         CREATE VIEW short AS SELECT id, name FROM item WHERE length(name) < 7; \
         COMMENT ON TABLE item IS 'what we sell'; ALTER DATABASE shop SET work_mem = '5MB'",
    );
    drop(shop);
    let dump = program(&server, "pg_dump", &["-C", "shop"]);
    assert!(dump.contains("CREATE DATABASE shop WITH TEMPLATE = template0"), "{dump}");
    program(&server, "dropdb", &["--if-exists", "shop"]);
    program(&server, "dropdb", &["--if-exists", "shop"]);
    assert!(refusal(&server, "postgres", "shop").starts_with("3D000"));
    let mut restore = Command::new("psql")
        .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "postgres"])
        .args(["-p", &server.port.to_string(), "postgres"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("psql is installed");
    let mut stdin = restore.stdin.take().expect("stdin is piped");
    std::io::Write::write_all(&mut stdin, dump.as_bytes()).expect("psql reads");
    drop(stdin);
    assert!(restore.wait().expect("psql ends").success(), "the dump can't be restored");
    let mut shop = enter(&server, "shop");
    assert_eq!(ask(&mut shop, "SELECT count(*) FROM short"), "9");
    assert_eq!(ask(&mut shop, "SHOW work_mem"), "5MB");
    assert_eq!(ask(&mut shop, "SELECT obj_description('item'::regclass)"), "what we sell");
    let again = program(&server, "pg_dump", &["-C", "shop"]);
    // Each dump has a secret of its own.
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|l| !l.contains("restrict ")).map(str::to_owned).collect()
    };
    assert_eq!(lines(&again), lines(&dump));
    drop(shop);
    program(&server, "dropdb", &["-f", "shop"]);
}

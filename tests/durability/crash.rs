//! The server is killed with SIGKILL at random moments under a load like TPC-B. After each restart
//! every acknowledged transaction is there, none is half there, the balances agree, no sequence gives a value
//! again that a client has got, an index in the order of a user's collation finds what it should, and a
//! checker that walks heap and indexes finds nothing.
//!
//! Rounds: `CRASH_ROUNDS` (50 when not set); the random moments come from `CRASH_SEED`, which is
//! printed.

use std::collections::HashSet;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::client::Client;
use crate::support::random::Random;
use crate::support::{BIN, Server, TempDir};

const CLIENTS: u64 = 16;
const ACCOUNTS: u64 = 20_000;

fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64);
    crate::support::number("CRASH_SEED", now) | 1
}

const SCHEMA: &str = "
    CREATE EXTENSION vector;
    CREATE EXTENSION bloom;
    CREATE TABLE branches (bid int PRIMARY KEY, balance int NOT NULL);
    CREATE TABLE accounts (aid int PRIMARY KEY, bid int NOT NULL, balance int NOT NULL, filler text);
    CREATE TABLE history (id bigint PRIMARY KEY, aid int NOT NULL, bid int NOT NULL, delta int NOT NULL);
    CREATE INDEX history_aid ON history (aid, id);
    CREATE INDEX history_hash ON history USING hash (aid);
    CREATE INDEX history_gist ON history USING gist (int8range(aid, aid + 3), point(aid, id));
    CREATE INDEX history_spgist ON history USING spgist (point(id, aid));
    CREATE INDEX history_brin ON history USING brin (id, aid) WITH (pages_per_range = 2);
    CREATE INDEX history_bloom ON history USING bloom (aid, bid);
    CREATE INDEX history_hnsw ON history USING hnsw ((ARRAY[aid, delta]::vector(2)) vector_l2_ops)
        WITH (m = 4, ef_construction = 8);
    CREATE INDEX history_ivfflat ON history USING ivfflat ((ARRAY[aid, delta]::vector(2)) vector_l2_ops);
    CREATE COLLATION by_number (provider = icu, locale = 'sv-u-kn-true');
    CREATE TABLE names (name text COLLATE by_number PRIMARY KEY);
    CREATE SEQUENCE one;
    CREATE SEQUENCE ahead INCREMENT -3 CACHE 5;
    CREATE TABLE numbered (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
    INSERT INTO names VALUES ('z'), ('ä'), ('a10'), ('å'), ('a9');
    INSERT INTO branches SELECT n, 0 FROM generate_series(1, 5) n;
    INSERT INTO accounts SELECT n, 1 + n % 5, 0, 'account' FROM generate_series(1, 20000) n;
";

/// What the clients know to be durable.
#[derive(Default)]
struct Known {
    acknowledged: Mutex<HashSet<u64>>,
    /// Values of each sequence that a client has got.
    values: Mutex<HashSet<(usize, String)>>,
    next: AtomicU64,
    stop: AtomicBool,
}

/// Transactions until the connection breaks.
fn load(port: u16, known: &Known, mut random: Random) {
    let Ok(mut client) = Client::connect(port) else { return };
    while !known.stop.load(Ordering::Relaxed) {
        let id = known.next.fetch_add(1, Ordering::Relaxed);
        let (aid, delta) = (1 + random.below(ACCOUNTS), random.below(1000) as i64 - 500);
        let bid = 1 + random.below(5);
        let statements = [
            "BEGIN".to_owned(),
            format!("UPDATE accounts SET balance = balance + {delta} WHERE aid = {aid}"),
            format!("UPDATE branches SET balance = balance + {delta} WHERE bid = {bid}"),
            format!("INSERT INTO history VALUES ({id}, {aid}, {bid}, {delta})"),
            format!("INSERT INTO names VALUES ('n{id}')"),
            if random.below(20) == 0 { "ROLLBACK" } else { "COMMIT" }.to_owned(),
        ];
        for sql in &statements {
            match client.query(sql) {
                Err(_) => return,
                Ok(answer) => {
                    assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
                    if answer.tags == ["COMMIT"] {
                        known.acknowledged.lock().expect("no client panics").insert(id);
                    }
                }
            }
        }
    }
}

/// Takes values of sequences until the connection breaks: what a client has got never comes again.
fn count(port: u16, known: &Known) {
    let Ok(mut client) = Client::connect(port) else { return };
    while !known.stop.load(Ordering::Relaxed) {
        for sql in [
            "SELECT nextval('one'), nextval('ahead')",
            "INSERT INTO numbered SELECT FROM generate_series(1, 3)",
        ] {
            let Ok(answer) = client.query(sql) else { return };
            assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
            let mut values = known.values.lock().expect("no client panics");
            for (sequence, value) in answer.rows.into_iter().flatten().flatten().enumerate() {
                let fresh = values.insert((sequence, value.clone()));
                assert!(fresh, "sequence {sequence} gave {value} again");
            }
        }
    }
}

/// Vacuums and makes checkpoints until the connection breaks, so that the visibility map is saved at all times.
fn maintain(port: u16, known: &Known) {
    let Ok(mut client) = Client::connect(port) else { return };
    while !known.stop.load(Ordering::Relaxed) {
        for sql in ["VACUUM accounts, history", "CHECKPOINT"] {
            let Ok(answer) = client.query(sql) else { return };
            assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
        }
    }
}

/// Everything that must hold after a restart.
fn verify(server: &Server, known: &Known) {
    let sums = server.query(
        "SELECT (SELECT sum(balance) FROM accounts), (SELECT sum(balance) FROM branches), (SELECT coalesce(sum(delta), 0) FROM history)",
    );
    let parts: Vec<&str> = sums.split('|').collect();
    assert!(parts.iter().all(|p| *p == parts[0]), "the sums differ: {sums}");
    let by_index = "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*), sum(id) FROM history WHERE aid > 0";
    let by_heap = "SET enable_indexonlyscan = off; SET enable_indexscan = off; SELECT count(*), sum(id) FROM history WHERE aid > 0";
    assert_eq!(server.query(by_index).lines().last(), server.query(by_heap).lines().last());
    let there: HashSet<u64> =
        server.query("SELECT id FROM history").lines().filter_map(|l| l.parse().ok()).collect();
    let acknowledged = known.acknowledged.lock().expect("no client panics");
    let lost: Vec<_> = acknowledged.difference(&there).take(10).collect();
    assert!(lost.is_empty(), "acknowledged transactions are lost: {lost:?}");
    let accounts = server.query("SELECT count(*) FROM accounts");
    assert_eq!(accounts, ACCOUNTS.to_string());
    // A collation that somebody made, and an index in its order.
    let names = server.query(
        "SET enable_seqscan = off; SELECT string_agg(name, ' ' ORDER BY name) FROM names WHERE name < 'b' OR name > 'y'",
    );
    assert_eq!(names.lines().last(), Some("a9 a10 z å ä"));
    let ranges = "SELECT (SELECT count(*) FROM names WHERE name >= 'n' AND name < 'o') = (SELECT count(*) FROM history)";
    assert_eq!(server.query(ranges), "t");
}

/// The offline checker on a stopped server's directory.
fn check(dir: &std::path::Path) {
    let out =
        Command::new(BIN).args(["check", "-D"]).arg(dir).output().expect("the binary is there");
    assert!(out.status.success(), "check found: {}", crate::support::text_of(&out));
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_half_there() {
    let (rounds, seed) = (crate::support::number("CRASH_ROUNDS", 50), seed());
    println!("CRASH_ROUNDS={rounds} CRASH_SEED={seed}");
    let mut random = Random::new(seed);
    let dir = TempDir::new("crash");
    let data = dir.path().join("data");
    // Small limits, so that checkpoints, evictions and segment switches happen in every round.
    let settings = ["shared_buffers=4MB", "max_wal_size=8MB", "checkpoint_timeout=1s"];
    let known = Arc::new(Known::default());
    let mut server = Server::start(&data, &settings);
    let made = server.psql(&["-q", "-v", "ON_ERROR_STOP=1"], SCHEMA);
    assert_eq!(made, "", "the schema was not made");
    for round in 0..rounds {
        let port = server.port;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (known, random) = (known.clone(), Random::new(random.below(u64::MAX)));
                std::thread::spawn(move || load(port, &known, random))
            })
            .collect();
        let counting: Vec<_> = (0..3)
            .map(|_| {
                let known = known.clone();
                std::thread::spawn(move || count(port, &known))
            })
            .collect();
        let maintaining = {
            let known = known.clone();
            std::thread::spawn(move || maintain(port, &known))
        };
        std::thread::sleep(Duration::from_millis(random.below(700)));
        server.kill();
        for client in clients.into_iter().chain(counting).chain([maintaining]) {
            client.join().expect("a client saw an error");
        }
        if round % 5 == 4 {
            check(&data);
        }
        server = Server::start(&data, &settings);
        verify(&server, &known);
    }
    let count = known.acknowledged.lock().expect("no client panics").len();
    println!("{count} acknowledged transactions in {rounds} rounds");
    assert!(count > 0, "the load did nothing");
    assert!(server.stop());
    check(&data);
}

/// Transaction `k` makes types and a table over them, changes those of the one before and drops those before it.
fn types_step(k: u64) -> Vec<String> {
    let mut all = vec![
        "BEGIN".to_owned(),
        format!("CREATE TYPE e{k} AS ENUM ('a{k}', 'b')"),
        format!("CREATE DOMAIN d{k} AS int CHECK (VALUE > {k})"),
        format!("CREATE TYPE c{k} AS (x int, y e{k}[])"),
        format!("CREATE TABLE t{k} (e e{k} PRIMARY KEY, d d{k}, c c{k})"),
        format!("INSERT INTO t{k} VALUES ('b', {k} + 1, ROW({k} + 2, ARRAY['a{k}', 'b']::e{k}[]))"),
    ];
    if let Some(j) = k.checked_sub(1) {
        all.extend([
            format!("ALTER TYPE e{j} RENAME VALUE 'b' TO 'late{j}'"),
            format!("ALTER TYPE e{j} ADD VALUE 'first{j}' BEFORE 'a{j}'"),
            format!("ALTER DOMAIN d{j} ADD CONSTRAINT small CHECK (VALUE < {j} + 100)"),
            format!("ALTER TYPE c{j} RENAME ATTRIBUTE x TO was_x"),
        ]);
    }
    if let Some(i) = k.checked_sub(2) {
        all.extend([
            format!("DROP TABLE t{i}"),
            format!("DROP TYPE c{i}, e{i}"),
            format!("DROP DOMAIN d{i}"),
        ]);
    }
    all.extend([format!("INSERT INTO done VALUES ({k})"), "COMMIT".to_owned()]);
    all
}

/// Steps until the connection breaks; the last one that was acknowledged.
fn define_types(port: u16, mut k: u64, acknowledged: &AtomicU64) {
    let Ok(mut client) = Client::connect(port) else { return };
    loop {
        for sql in types_step(k) {
            match client.query(&sql) {
                Err(_) => return,
                Ok(answer) => assert!(answer.error.is_none(), "{sql}: {:?}", answer.error),
            }
        }
        acknowledged.store(k, Ordering::Relaxed);
        k += 1;
    }
}

/// What the last two steps left, and nothing else.
fn verify_types(server: &Server, k: u64) {
    let j = k - 1;
    let names = "SELECT string_agg(typname, ' ' ORDER BY typname) FROM pg_type WHERE typname ~ '^[edct]\\d+$'";
    let mut wanted: Vec<String> =
        "cdet".chars().flat_map(|c| [format!("{c}{j}"), format!("{c}{k}")]).collect();
    wanted.sort();
    assert_eq!(server.query(names), wanted.join(" "));
    let (x, y) = (k + 1, k + 2);
    let row = server.query(&format!("SELECT e, d, (c).x, (c).y FROM t{k} WHERE e = 'b'"));
    assert_eq!(row, format!("b|{x}|{y}|{{a{k},b}}"));
    let labels = format!("SELECT enum_range(NULL::e{j})");
    assert_eq!(server.query(&labels), format!("{{first{j},a{j},late{j}}}"));
    let row = format!("SELECT e > 'first{j}', d, (c).was_x, (c).y FROM t{j} WHERE e = 'late{j}'");
    assert_eq!(server.query(&row), format!("t|{k}|{x}|{{a{j},late{j}}}"));
    let checked = format!("INSERT INTO t{j} VALUES ('a{j}', {j} + 100)");
    let refused = server.psql(&["-q"], &checked);
    assert!(refused.contains("violates check constraint \"small\""), "{refused}");
}

#[test]
fn types_of_users_are_made_changed_and_dropped_as_a_whole() {
    let seed = seed();
    println!("CRASH_SEED={seed}");
    let mut random = Random::new(seed);
    let dir = TempDir::new("crash-types");
    let data = dir.path().join("data");
    let settings = ["max_wal_size=8MB", "checkpoint_timeout=1s"];
    let mut server = Server::start(&data, &settings);
    server.query("CREATE TABLE done (k bigint)");
    let acknowledged = AtomicU64::new(0);
    let mut next = 0;
    for _ in 0..8 {
        let port = server.port;
        std::thread::scope(|scope| {
            let client = scope.spawn(|| define_types(port, next, &acknowledged));
            let least = acknowledged.load(Ordering::Relaxed) + 3;
            while acknowledged.load(Ordering::Relaxed) < least && !client.is_finished() {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(random.below(200)));
            server.kill();
            client.join().expect("the client saw an error");
        });
        server = Server::start(&data, &settings);
        let last: u64 = server.query("SELECT max(k) FROM done").parse().expect("a number");
        let known = acknowledged.load(Ordering::Relaxed);
        assert!(last == known || last == known + 1, "{last} is there, {known} was acknowledged");
        verify_types(&server, last);
        next = last + 1;
    }
    println!("{next} transactions");
    assert!(server.stop());
    check(&data);
}

//! Faults that a DBA would have to find, each provoked beside a light load of pgbench: `pg_why()` names the cause
//! as its first or second finding. Half of them are locks and sessions, half are load. In healthy runs it finds
//! nothing of weight; after `kill -9` it answers for the time before.
//!
//! `FAULT=name,name` provokes these alone. Each line that is printed says how long the answer took.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::{Server, TempDir, pgbench_command, text_of};

/// One session's part of a fault.
#[derive(Clone, Copy)]
enum Does {
    /// Runs each once, and stays connected; it has begun when the last is sent, which may wait for ever.
    Once(&'static [&'static str]),
    /// Runs them again and again; errors are part of it.
    Again(&'static [&'static str]),
    /// Runs one in a session of its own, again and again.
    Connects(&'static str),
    /// Sends one and never reads the answer.
    Forgets(&'static str),
}

/// See the module's documentation.
struct Fault {
    name: &'static str,
    /// Of the server.
    settings: &'static [&'static str],
    /// Run before; statements of their own.
    setup: &'static [&'static str],
    /// How many sessions do what; each kind begins when the one before has.
    sessions: &'static [(usize, Does)],
    /// Run when it is under way.
    then: &'static [&'static str],
    /// The findings that name the cause, any of them.
    kinds: &'static [&'static str],
    /// A part of the finding's sentence or cause that only the right one has.
    names: &'static str,
}

const PLAIN: Fault =
    Fault { name: "", settings: &[], setup: &[], sessions: &[], then: &[], kinds: &[], names: "" };

const BIG: &str = "CREATE TABLE big AS SELECT g AS id, g % 1000 AS k, repeat('x', 100) AS filler \
                   FROM generate_series(1, 30000) g";

const FAULTS: &[Fault] = &[
    Fault {
        name: "a session idle in its transaction behind which an ALTER and ten readers stand",
        setup: &["CREATE TABLE cust (id int)"],
        sessions: &[
            (1, Does::Once(&["BEGIN", "SELECT id FROM cust", "SELECT count(*) FROM cust"])),
            (1, Does::Once(&["ALTER TABLE cust ADD note text"])),
            (10, Does::Again(&["SELECT id FROM cust"])),
        ],
        kinds: &["lock_queue"],
        names: "SELECT count(*) FROM cust",
        ..PLAIN
    },
    Fault {
        name: "a statement that holds a row for long",
        setup: &[
            "CREATE TABLE seats (id int PRIMARY KEY, n int)",
            "INSERT INTO seats VALUES (1, 0)",
        ],
        sessions: &[
            (1, Does::Once(&["BEGIN", "UPDATE seats SET n = 1", "SELECT pg_sleep(300)"])),
            (6, Does::Once(&["UPDATE seats SET n = n + 1 WHERE id = 1"])),
        ],
        kinds: &["lock_queue"],
        names: "pg_sleep(300)",
        ..PLAIN
    },
    Fault {
        name: "an advisory lock that nobody gives back",
        sessions: &[
            (1, Does::Once(&["SELECT pg_advisory_lock(42)"])),
            (5, Does::Once(&["SELECT pg_advisory_lock(42)"])),
        ],
        kinds: &["lock_queue"],
        names: "pg_advisory_lock(42)",
        ..PLAIN
    },
    Fault {
        name: "a hot row",
        setup: &["CREATE TABLE hot (id int PRIMARY KEY, n int)", "INSERT INTO hot VALUES (1, 0)"],
        sessions: &[(
            12,
            Does::Again(&["BEGIN", "UPDATE hot SET n = n + 1 WHERE id = 1", "SELECT 1", "COMMIT"]),
        )],
        kinds: &["hot_row"],
        names: "hot",
        ..PLAIN
    },
    Fault {
        name: "deadlocks",
        settings: &["deadlock_timeout=100ms"],
        setup: &[
            "CREATE TABLE pair (id int PRIMARY KEY, n int)",
            "INSERT INTO pair VALUES (1, 0), (2, 0)",
        ],
        sessions: &[
            (
                2,
                Does::Again(&[
                    "BEGIN",
                    "UPDATE pair SET n = 1 WHERE id = 1",
                    "SELECT pg_sleep(0.05)",
                    "UPDATE pair SET n = 1 WHERE id = 2",
                    "ROLLBACK",
                ]),
            ),
            (
                2,
                Does::Again(&[
                    "BEGIN",
                    "UPDATE pair SET n = 2 WHERE id = 2",
                    "SELECT pg_sleep(0.05)",
                    "UPDATE pair SET n = 2 WHERE id = 1",
                    "ROLLBACK",
                ]),
            ),
        ],
        kinds: &["deadlock"],
        names: "eadlock",
        ..PLAIN
    },
    Fault {
        name: "a forgotten transaction",
        setup: &["CREATE TABLE left_open (id int)"],
        sessions: &[(1, Does::Once(&["BEGIN", "SELECT * FROM left_open"]))],
        kinds: &["idle_transaction"],
        names: "left_open",
        ..PLAIN
    },
    Fault {
        name: "a long snapshot beside many updates",
        settings: &["autovacuum_naptime=1s"],
        setup: &["CREATE TABLE churn AS SELECT g AS id, 0 AS n FROM generate_series(1, 2000) g"],
        sessions: &[
            (
                1,
                Does::Once(&[
                    "BEGIN ISOLATION LEVEL REPEATABLE READ",
                    "SELECT count(*), pg_sleep(300) FROM churn",
                ]),
            ),
            (1, Does::Again(&["UPDATE churn SET n = n + 1"])),
        ],
        kinds: &["long_snapshot"],
        names: "churn",
        ..PLAIN
    },
    Fault {
        name: "a client that does not read",
        setup: &[BIG],
        sessions: &[(2, Does::Forgets("SELECT a.filler FROM big a, generate_series(1, 1000) g"))],
        kinds: &["slow_client"],
        names: "a.filler",
        ..PLAIN
    },
    Fault {
        name: "transactions that fail",
        setup: &["CREATE TABLE uniq (id int PRIMARY KEY)", "INSERT INTO uniq VALUES (1)"],
        sessions: &[(4, Does::Again(&["INSERT INTO uniq VALUES (1)"]))],
        kinds: &["errors"],
        names: "uniq",
        ..PLAIN
    },
    Fault {
        name: "memory that is nearly used up",
        settings: &["server_memory_limit=150MB"],
        sessions: &[(
            1,
            Does::Once(&[
                "DO $$ DECLARE held text := repeat('x', 125000000); BEGIN PERFORM pg_sleep(300); END $$",
            ]),
        )],
        kinds: &["memory"],
        names: "server_memory_limit",
        ..PLAIN
    },
    Fault {
        name: "a session for each transaction",
        sessions: &[(4, Does::Connects("SELECT 1"))],
        kinds: &["connection_storm"],
        names: "sessions begin a second",
        ..PLAIN
    },
    Fault {
        name: "checkpoints because of one statement's log",
        settings: &["max_wal_size=32MB", "min_wal_size=32MB"],
        setup: &[BIG],
        // Two such sessions would lock rows in different orders, and deadlocks be the first to be named.
        sessions: &[(1, Does::Again(&["UPDATE big SET k = k + 1"]))],
        kinds: &["checkpoint", "wal_volume"],
        names: "UPDATE big",
        ..PLAIN
    },
    Fault {
        name: "the log of a bulk statement",
        settings: &["max_wal_size=4GB"],
        setup: &["CREATE TABLE sink (t text)"],
        sessions: &[(
            1,
            Does::Again(&[
                "INSERT INTO sink SELECT repeat('y', 1000) FROM generate_series(1, 20000)",
            ]),
        )],
        kinds: &["wal_volume"],
        names: "INSERT INTO sink",
        ..PLAIN
    },
    Fault {
        name: "full images of pages",
        settings: &["max_wal_size=4GB"],
        setup: &[BIG, "CREATE INDEX ON big (id)"],
        sessions: &[
            (
                2,
                Does::Again(&[
                    "UPDATE big SET k = k + 1 WHERE id = (SELECT (random() * 30000)::int)",
                ]),
            ),
            (1, Does::Again(&["CHECKPOINT"])),
        ],
        kinds: &["full_page_images", "checkpoint"],
        names: "UPDATE big",
        ..PLAIN
    },
    Fault {
        name: "a report that pushes pages out of memory",
        settings: &["shared_buffers=4MB"],
        setup: &[
            "CREATE TABLE wide AS SELECT g AS id, repeat('z', 1000) AS filler FROM generate_series(1, 20000) g",
        ],
        sessions: &[(2, Does::Again(&["SELECT count(filler) FROM wide"]))],
        kinds: &["buffer_misses"],
        names: "FROM wide",
        ..PLAIN
    },
    Fault {
        name: "an index that is missing",
        setup: &[BIG],
        sessions: &[(3, Does::Again(&["SELECT * FROM big WHERE id = 77"]))],
        kinds: &["sequential_scan"],
        names: "FROM big WHERE",
        ..PLAIN
    },
    Fault {
        name: "an index that is dropped",
        setup: &[BIG, "CREATE INDEX big_id ON big (id)", "ANALYZE big"],
        sessions: &[(3, Does::Again(&["SELECT max(k) FROM big WHERE id BETWEEN 70 AND 72"]))],
        then: &["SELECT pg_sleep(2)", "DROP INDEX big_id"],
        kinds: &["plan_change", "slower_plan", "sequential_scan"],
        names: "FROM big WHERE",
        ..PLAIN
    },
    Fault {
        name: "statistics of a table that has grown",
        setup: &[
            "CREATE TABLE item (id int, ref int)",
            "INSERT INTO item SELECT g, g FROM generate_series(1, 20) g",
            "ANALYZE item",
        ],
        sessions: &[(
            2,
            Does::Again(&["SELECT count(*) FROM item a, item b WHERE a.ref < 20 AND b.id = a.id"]),
        )],
        then: &[
            "SELECT pg_sleep(2)",
            "INSERT INTO item SELECT g, g FROM generate_series(1, 8000) g",
        ],
        kinds: &["stale_statistics"],
        names: "item",
        ..PLAIN
    },
    Fault {
        name: "a sort that spills",
        settings: &["work_mem=64kB"],
        setup: &[BIG],
        sessions: &[(
            2,
            Does::Again(&["SELECT id, filler FROM big ORDER BY k, filler OFFSET 29990"]),
        )],
        kinds: &["spill"],
        names: "ORDER BY",
        ..PLAIN
    },
    Fault {
        name: "four reports that use the processors",
        sessions: &[(
            4,
            Does::Again(&[
                "SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 3000) b WHERE a * b % 7 = 3",
            ]),
        )],
        kinds: &["cpu"],
        names: "generate_series",
        ..PLAIN
    },
    Fault {
        name: "dead rows that nobody removes",
        settings: &["autovacuum=off"],
        setup: &["CREATE TABLE bloat AS SELECT g AS id, 0 AS n FROM generate_series(1, 1000) g"],
        sessions: &[(1, Does::Again(&["UPDATE bloat SET n = n + 1"]))],
        kinds: &["autovacuum"],
        names: "bloat",
        ..PLAIN
    },
    Fault {
        name: "a table that grows slowly under many writers",
        settings: &["debug_faults=heap_extend=slow"],
        setup: &["CREATE TABLE growing (t text)"],
        sessions: &[(
            5,
            Does::Again(&[
                "INSERT INTO growing SELECT repeat('g', 1000) FROM generate_series(1, 40)",
            ]),
        )],
        kinds: &["extension"],
        names: "growing",
        ..PLAIN
    },
    Fault {
        name: "a page that many rows lie on",
        settings: &["debug_faults=heap_update=slow"],
        setup: &["CREATE TABLE spots AS SELECT g AS id, 0 AS n FROM generate_series(1, 8) g"],
        sessions: &[(
            6,
            Does::Again(&[
                "UPDATE spots SET n = n + 1 WHERE id = (SELECT pg_backend_pid() % 8 + 1)",
            ]),
        )],
        kinds: &["latch"],
        names: "spots",
        ..PLAIN
    },
    Fault {
        name: "a disk that has become slow",
        sessions: &[(3, Does::Again(&["INSERT INTO pgbench_history (tid) VALUES (1)"]))],
        then: &[
            "SELECT pg_sleep(2)",
            "ALTER SYSTEM SET debug_faults = 'wal_write=slow'",
            "SELECT pg_reload_conf()",
        ],
        kinds: &["slow_disk"],
        names: "The disk is slow",
        ..PLAIN
    },
];

/// How long an answer may take, with the machine busy elsewhere; the aim is ten seconds.
const PATIENCE: Duration = Duration::from_secs(40);

/// A data directory with pgbench's tables, to be copied.
fn template(name: &str) -> (TempDir, PathBuf) {
    let dir = TempDir::new(name);
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    server.pgbench(&["-i", "-q", "-s", "1"]);
    assert!(server.stop());
    (dir, data)
}

fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.expect("cp exists").success());
}

/// A light load in the background; ends with the test.
struct Load(Child);

impl Load {
    fn start(port: u16) -> Load {
        let mut command = pgbench_command(port);
        command.args(["-n", "-c", "2", "-R", "20", "-T", "600", "postgres"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Load(child.expect("pgbench is installed"))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Ends when the server is gone or `stop` says so.
fn run(port: u16, does: Does, stop: &AtomicBool, begun: &AtomicBool) {
    let stopped = || stop.load(Ordering::Acquire);
    match does {
        Does::Once(statements) => {
            let Ok(mut client) = Client::connect(port) else { return };
            for (n, sql) in statements.iter().enumerate() {
                if n + 1 == statements.len() {
                    begun.store(true, Ordering::Release);
                }
                if client.query(sql).is_err() {
                    return;
                }
            }
            while !stopped() {
                std::thread::park_timeout(Duration::from_millis(100));
            }
        }
        Does::Again(statements) => {
            let Ok(mut client) = Client::connect(port) else { return };
            begun.store(true, Ordering::Release);
            while !stopped() {
                for sql in statements {
                    if client.query(sql).is_err() {
                        return;
                    }
                }
            }
        }
        Does::Connects(sql) => {
            begun.store(true, Ordering::Release);
            while !stopped() {
                let Ok(mut client) = Client::connect(port) else { return };
                if client.query(sql).is_err() {
                    return;
                }
            }
        }
        Does::Forgets(sql) => {
            let Ok(mut client) = Client::connect(port) else { return };
            begun.store(true, Ordering::Release);
            let _ = client.send(sql);
            while !stopped() {
                std::thread::park_timeout(Duration::from_millis(100));
            }
        }
    }
}

/// Begins a fault on a server.
fn provoke(server: &Server, fault: &Fault, stop: &Arc<AtomicBool>) {
    for (count, does) in fault.sessions {
        for _ in 0..*count {
            let (port, does, stop) = (server.port, *does, stop.clone());
            let begun = Arc::new(AtomicBool::new(false));
            let told = begun.clone();
            std::thread::spawn(move || run(port, does, &stop, &told));
            let until = Instant::now() + PATIENCE;
            while !begun.load(Ordering::Acquire) && Instant::now() < until {
                std::thread::yield_now();
            }
        }
    }
    for sql in fault.then {
        let answer = server.query(sql);
        assert!(!answer.contains("ERROR"), "{}: {sql}: {answer}", fault.name);
    }
}

/// The first two findings: kind, cause and sentence.
fn first_two(server: &Server, call: &str) -> String {
    server.query(&format!("SELECT finding, cause, sentence FROM {call} LIMIT 2"))
}

fn is_named(fault: &Fault, findings: &str) -> bool {
    let of_kind =
        |line: &&str| fault.kinds.iter().any(|kind| line.starts_with(&format!("{kind}|")));
    findings.lines().filter(of_kind).any(|line| line.contains(fault.names))
}

/// Waits for the answer; how long it took, or what was answered last.
fn await_named(server: &Server, fault: &Fault) -> Result<Duration, String> {
    let began = Instant::now();
    let mut last = String::new();
    while began.elapsed() < PATIENCE {
        last = first_two(server, "pg_why()");
        if is_named(fault, &last) {
            return Ok(began.elapsed());
        }
    }
    Err(last)
}

fn wanted(fault: &Fault) -> bool {
    let names = std::env::var("FAULT");
    names.map_or(true, |names| names.split(',').any(|name| fault.name.contains(name)))
}

fn begin(dir: &TempDir, template: &Path, fault: &Fault) -> (Server, Load, Arc<AtomicBool>) {
    let data = dir.path().join("data");
    copy(template, &data);
    let server = Server::start(&data, fault.settings);
    for sql in fault.setup {
        let answer = server.query(sql);
        assert!(!answer.contains("ERROR"), "{}: {sql}: {answer}", fault.name);
    }
    let load = Load::start(server.port);
    let stop = Arc::new(AtomicBool::new(false));
    provoke(&server, fault, &stop);
    (server, load, stop)
}

#[test]
fn each_fault_is_named_first_or_second() {
    let (_kept, template) = template("faults-named-template");
    let mut missed = Vec::new();
    for fault in FAULTS.iter().filter(|fault| wanted(fault)) {
        let dir = TempDir::new("faults");
        let (server, load, stop) = begin(&dir, &template, fault);
        match await_named(&server, fault) {
            Ok(took) => println!("{:5.1} s  {}", took.as_secs_f64(), fault.name),
            Err(last) => {
                println!("  missed {}: {last}", fault.name);
                missed.push(format!("{}: {last}", fault.name));
            }
        }
        stop.store(true, Ordering::Release);
        drop((load, server));
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Killed while the fault goes on; the server that starts again says what it was.
#[test]
fn a_crash_does_not_hide_the_cause() {
    let (_kept, template) = template("faults-crash-template");
    let mut missed = Vec::new();
    let some = ["an ALTER", "a bulk statement", "sort that spills", "forgotten"];
    let of_these = |fault: &&Fault| some.iter().any(|name| fault.name.contains(name));
    for fault in FAULTS.iter().filter(of_these).filter(|fault| wanted(fault)) {
        let dir = TempDir::new("faults-crash");
        let (server, load, stop) = begin(&dir, &template, fault);
        let before = await_named(&server, fault);
        let range = server.query(
            "SELECT quote_literal(now() - interval '30 s') || ', ' || quote_literal(now() + interval '1 s')",
        );
        let (data, port) = (server.dir.clone(), server.port);
        stop.store(true, Ordering::Release);
        server.kill();
        drop(load);
        let server = Server::start_on(&data, port, &[]);
        let after = first_two(&server, &format!("pg_why({range})"));
        if before.is_err() || !is_named(fault, &after) {
            missed.push(format!("{}: {before:?}, after the crash {after}", fault.name));
        }
        let crash = "SELECT count(*) FROM pg_events WHERE kind = 'crash'";
        let mut client = Client::connect(server.port).expect("the server takes connections");
        client.await_one(crash, "1");
        assert_eq!(client.one("SELECT count(*) > 0 FROM pg_events WHERE kind = 'start'"), "t");
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// A witness beside the server: it writes and syncs a page of its own ten times a second, so that a finding about
/// a disk that really became slow, because of another program, is told from a false one.
struct Witness {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    /// When each sync began, and how long it took.
    syncs: Arc<std::sync::Mutex<Vec<(Instant, Duration)>>>,
}

impl Witness {
    fn start(dir: &Path) -> Witness {
        use std::io::{Seek, Write};
        let stop = Arc::new(AtomicBool::new(false));
        let syncs = Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut file = std::fs::File::create(dir.join("witness")).expect("the folder is writable");
        let (stopped, seen) = (stop.clone(), syncs.clone());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Acquire) {
                let began = Instant::now();
                file.rewind().expect("a file");
                file.write_all(&[7; 8192]).expect("there is room");
                file.sync_data().expect("the disk works");
                seen.lock().expect("nobody panicked").push((began, began.elapsed()));
                std::thread::park_timeout(Duration::from_millis(100));
            }
        });
        Witness { stop, thread: Some(thread), syncs }
    }

    /// Whether the disk became slow for others, too, since then: some second's mean is thrice the usual.
    fn saw_a_slow_disk(&self, since: Instant) -> bool {
        let syncs = self.syncs.lock().expect("nobody panicked").clone();
        let mut all: Vec<Duration> = syncs.iter().map(|(_, took)| *took).collect();
        all.sort();
        let usual = all.get(all.len() / 4).copied().unwrap_or_default();
        let late: Vec<Duration> = syncs.iter().filter(|s| s.0 >= since).map(|s| s.1).collect();
        late.chunks(10).any(|second| {
            let mean = second.iter().sum::<Duration>() / second.len() as u32;
            mean >= Duration::from_millis(2) && mean >= 3 * usual
        })
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// Ten runs of pgbench that nothing is wrong with. A run in which another program made the disk slow, by the witness's
/// measure, is repeated.
#[test]
fn nothing_of_weight_is_found_in_healthy_runs() {
    let dir = TempDir::new("faults-healthy");
    let server = Server::start(&dir.path().join("data"), &[]);
    server.pgbench(&["-i", "-q", "-s", "4"]);
    server.query("VACUUM ANALYZE");
    // Loading them is over.
    let mut client = Client::connect(server.port).expect("the server takes connections");
    client.await_one("SELECT count(*) FROM pg_why()", "0");
    let witness = Witness::start(dir.path());
    let runs: [&[&str]; 10] = [
        &["-S", "-c", "1"],
        &["-S", "-c", "4", "-R", "200"],
        &["-S", "-c", "8", "-R", "100", "-M", "prepared"],
        &["-N", "-c", "1"],
        &["-N", "-c", "4", "-R", "40"],
        &["-N", "-c", "2", "-M", "extended", "-R", "40"],
        &["-c", "1"],
        &["-c", "2", "-R", "20"],
        &["-c", "4", "-R", "30", "-M", "prepared"],
        &["-S", "-c", "2", "-M", "prepared"],
    ];
    const ATTEMPTS: usize = 5;
    for run in runs {
        for attempt in 1..=ATTEMPTS {
            let (began, from) = (Instant::now(), client.one("SELECT clock_timestamp()"));
            let mut command = pgbench_command(server.port);
            let out = command.args(["-n", "-T", "6"]).args(run).arg("postgres").output();
            let out = out.expect("pgbench is installed");
            assert!(out.status.success(), "{}", text_of(&out));
            let found = server.query(&format!(
                "SELECT finding, seconds_lost, share, sentence, evidence FROM pg_why('{from}', now())"
            ));
            if found.is_empty() {
                break;
            }
            assert!(witness.saw_a_slow_disk(began), "pgbench {run:?}: {found}");
            println!("pgbench {run:?}: the disk was slow for others, too: {found}");
            if attempt == ATTEMPTS {
                // The disk does not come to rest: this run says nothing.
                break;
            }
        }
    }
    drop(witness);
    assert!(server.stop());
}

/// Statements, waits and events of the last seconds, and who may see them.
#[test]
fn the_history_has_what_was_run_and_waited_for() {
    let dir = TempDir::new("faults-history");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    client.one("CREATE TABLE noted (id int PRIMARY KEY)");
    client.one("INSERT INTO noted SELECT g FROM generate_series(1, 500) g");
    let lately = "now() - interval '1 min', clock_timestamp() + interval '1 s'";
    let inserted = format!(
        "SELECT calls || ' ' || rows || ' ' || (wal_bytes > 20000) FROM pg_top_statements({lately}) \
         WHERE query LIKE 'INSERT INTO noted%'"
    );
    client.await_one(&inserted, "1 500 true");
    let defined = "SELECT event FROM pg_events WHERE kind = 'definition' AND event LIKE '%noted%'";
    client.await_one(defined, "CREATE TABLE noted (id int PRIMARY KEY)");
    // A statement that still runs has what it did so far, and once it is over no more than that.
    let mut other = Client::connect(server.port).expect("the server takes connections");
    other.send("SELECT pg_sleep(3)").expect("the connection holds");
    let slept = format!(
        "FROM pg_wait_history({lately}) WHERE event = 'PgSleep' AND object IS NULL AND queryid IS NOT NULL"
    );
    client.await_one(&format!("SELECT count(*) >= 2 {slept}"), "t");
    client.await_one(&format!("SELECT sum(total_ms) BETWEEN 2900 AND 3500 {slept}"), "t");
    client.await_one(
        &format!(
            "SELECT calls || ' ' || (total_ms BETWEEN 2900 AND 4500) || ' ' || (busy_ms < 500) \
             FROM pg_top_statements({lately}) WHERE query LIKE 'SELECT pg_sleep%'"
        ),
        "1 true true",
    );
    let error = |client: &mut Client, sql: &str| {
        client.query(sql).expect("the connection holds").error.expect(sql).0
    };
    assert_eq!(error(&mut client, "SELECT * FROM pg_why(now(), now() - interval '1 s')"), "22023");
    client.one("CREATE ROLE nobody LOGIN");
    let mut nobody = Client::connect_to(server.port, "nobody", "postgres")
        .expect("the server takes connections");
    for call in ["pg_why()", "pg_wait_history(now(), now())", "pg_top_statements(now(), now())"] {
        assert_eq!(error(&mut nobody, &format!("SELECT * FROM {call}")), "42501", "{call}");
    }
    assert_eq!(nobody.one("SELECT count(*) FROM pg_events"), "0");
    client.one("GRANT pg_monitor TO nobody");
    assert_eq!(nobody.one("SELECT count(*) > 0 FROM pg_events"), "t");
    // A session that stands in the way, asked for by its number and by the statement that waits.
    let mut holder = Client::connect(server.port).expect("the server takes connections");
    holder.one("BEGIN");
    holder.one("LOCK TABLE noted");
    let pid = holder.one("SELECT pg_backend_pid()");
    other = Client::connect(server.port).expect("the server takes connections");
    let waiting = other.one("SELECT pg_backend_pid()");
    other.send("SELECT max(id) FROM noted").expect("the connection holds");
    for call in [format!("pg_why({pid})"), format!("pg_why({waiting})")] {
        client.await_one(
            &format!("SELECT finding || ' ' || pid FROM {call} LIMIT 1"),
            &format!("lock_queue {pid}"),
        );
    }
    let by_statement = format!(
        "SELECT pid FROM pg_why((SELECT query_id FROM pg_stat_activity WHERE pid = {waiting})) LIMIT 1"
    );
    client.await_one(&by_statement, &pid);
    assert_eq!(client.one("SELECT count(*) FROM pg_why(1::bigint)"), "0");
    // It lasts: the log says so, and the history has it.
    let said =
        "SELECT count(*) > 0 FROM pg_events WHERE kind = 'finding' AND event LIKE 'lock_queue: %'";
    client.await_one(said, "t");
    let log = std::fs::read_to_string(server.dir.with_extension("log")).expect("there is a log");
    assert!(log.contains("lock_queue: 1 of"), "{log}");
    assert!(server.stop());
}

/// `auto_explain`'s settings: plans of statements that took long, as messages of their level.
#[test]
fn plans_of_long_statements_are_logged() {
    let dir = TempDir::new("faults-explain");
    let server = Server::start(&dir.path().join("data"), &[]);
    server.query("CREATE TABLE planned (id int)");
    server.query("CREATE FUNCTION inner_one() RETURNS void LANGUAGE plpgsql AS 'BEGIN UPDATE planned SET id = 8; END'");
    let script = "SET client_min_messages = log; SET auto_explain.log_min_duration = 0;\n\
                  SELECT * FROM planned WHERE id = 7;\n\
                  SET auto_explain.log_analyze = on; SELECT count(*) FROM planned;\n\
                  SELECT inner_one();\n\
                  SET auto_explain.log_nested_statements = on; SELECT inner_one();\n\
                  SET auto_explain.log_format = json; SELECT 1 FROM planned;\n\
                  SET auto_explain.log_min_duration = 60000; SELECT 2 FROM planned;";
    let text = server.psql(&["-Atq"], script);
    for part in [
        "plan:\nQuery Text: SELECT * FROM planned WHERE id = $1\nSeq Scan on planned  (cost=",
        "Query Text: SELECT count(*) FROM planned\nAggregate  (cost=",
        "(actual time=",
        "Query Text: SELECT inner_one()",
        "\"Plan\": {",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(!text.contains("SELECT 2"), "{text}");
    let nested = text.matches("Update on planned").count();
    assert_eq!(nested, 1, "that of the function's body when it is wanted: {text}");
    let log = std::fs::read_to_string(server.dir.with_extension("log")).expect("there is a log");
    assert!(log.contains("Query Text: SELECT * FROM planned WHERE id = $1"), "{log}");
    assert!(server.stop());
}

//! Fault points (docs/internals/fault-points.md) fail under load, hundreds of times: a panic in a statement ends that
//! statement and nothing else, and leaves nothing behind; a panic in a critical section stops the server,
//! which its supervisor starts again, with everything that was acknowledged.
//!
//! `FAULTS_EACH` failures of each point in statements (25 when not set), `FAULTS_CRASHES` crashes at each
//! critical point (2); `make storm` asks for more.

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::support::client::{Answer, Client};
use crate::support::footprint::{self, Footprint};
use crate::support::random::Random;
use crate::support::raw::{Raw, message, query};
use crate::support::{BIN, Server, TempDir, text_of};

const CLIENTS: u64 = 6;
const ROWS: u64 = 2000;

const SCHEMA: &str = "
    CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL, filler text);
    CREATE TABLE log (client int, n bigint, filler text);
    CREATE INDEX log_n ON log (client, n);
    CREATE TABLE copied (n int);
    CREATE TABLE hot (n bigint);
    CREATE TABLE done (client int PRIMARY KEY, n bigint NOT NULL);
    INSERT INTO accounts SELECT n, 0, repeat('x', 300) FROM generate_series(1, 2000) n;
    INSERT INTO hot VALUES (0);
    INSERT INTO done SELECT n, 0 FROM generate_series(0, 63) n;
";

/// Points in statements with what makes one fail and at every how many passages.
const IN_STATEMENTS: [(&str, &str, u32); 12] = [
    ("plan", "panic", 23),
    ("execute", "panic", 31),
    ("send_row", "panic", 71),
    ("copy_row", "panic", 11),
    ("sort", "panic", 3),
    ("define", "panic", 3),
    ("lock_wait", "panic", 5),
    ("heap_extend", "panic", 1),
    ("heap_insert", "panic", 13),
    ("heap_update", "panic", 13),
    ("index_insert", "panic", 13),
    ("page_read", "panic", 37),
];

const CRITICAL: [(&str, u32); 7] = [
    ("page_changed", 97),
    ("page_logged", 97),
    ("commit", 31),
    ("commit_logged", 31),
    ("rollback", 11),
    ("wal_write", 31),
    ("checkpoint", 1),
];

/// What the threads of a load share.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// Statements that a fault ended.
    failed: AtomicU64,
    /// Statements that went well.
    well: AtomicU64,
    /// Held by the clients while they work, for a pause between points.
    unexpected: Mutex<Vec<String>>,
}

impl Shared {
    fn unexpected(&self) -> MutexGuard<'_, Vec<String>> {
        self.unexpected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the statement went well; a fault's error is counted, any other is kept for the test.
    fn note(&self, sql: &str, error: Option<&(String, String)>) -> bool {
        let Some((code, text)) = error else {
            self.well.fetch_add(1, Ordering::Relaxed);
            return true;
        };
        let fault =
            text == "internal error; the log has the details" || text.contains("fault point");
        if code == "XX000" && fault {
            self.failed.fetch_add(1, Ordering::Relaxed);
        } else {
            self.unexpected().push(format!("{sql}: {code} {text}"));
        }
        false
    }
}

/// One client's session, which never ends while the load goes on.
struct Session<'a> {
    number: u64,
    client: Client,
    copying: Raw,
    random: Random,
    shared: &'a Shared,
    next: u64,
}

impl<'a> Session<'a> {
    fn new(server: &Server, shared: &'a Shared, number: u64) -> Session<'a> {
        let client = Client::connect(server.port).expect("the server takes connections");
        let copying = Raw::connect(server.port);
        let random = Random::new(number + 1);
        Session { number, client, copying, random, shared, next: 0 }
    }

    /// Runs a statement; false when a fault ended it.
    fn run(&mut self, sql: &str) -> bool {
        let answer = self.client.query(sql).expect("the session goes on");
        self.shared.note(sql, answer.error.as_ref())
    }

    /// Statements in one transaction, all or nothing.
    fn transaction(&mut self, statements: &[String]) {
        let well = self.run("BEGIN") && statements.iter().all(|sql| self.run(sql));
        if !(well && self.run("COMMIT")) {
            self.roll_back();
        }
    }

    /// Ends what is left of a transaction, though that may fail, too.
    fn roll_back(&mut self) {
        while !self.run("ROLLBACK") {}
    }

    fn step(&mut self) {
        let (number, next) = (self.number, self.next);
        self.next += 1;
        let (a, b) = (1 + self.random.below(ROWS), 1 + self.random.below(ROWS));
        let delta = self.random.below(100);
        match self.random.below(8) {
            0 => {
                let (a, b) = (a.min(b), a.max(b));
                let change = |id, sign| {
                    format!("UPDATE accounts SET balance = balance {sign} {delta} WHERE id = {id}")
                };
                self.transaction(&[change(a, '-'), change(b, '+')]);
            }
            1 => {
                let sql = format!("INSERT INTO log VALUES ({number}, {next}, repeat('y', 900))");
                self.run(&sql);
            }
            2 => {
                self.run(&format!("SELECT * FROM accounts WHERE id BETWEEN {a} AND {}", a + 30));
            }
            3 => {
                self.run(&format!(
                    "SELECT id FROM accounts WHERE id < {a} ORDER BY filler, balance LIMIT 5"
                ));
            }
            4 => self.copy(next),
            5 => {
                let name = format!("made_{number}");
                self.transaction(&[
                    format!("CREATE TABLE {name} (n int PRIMARY KEY)"),
                    format!("INSERT INTO {name} VALUES (1)"),
                    format!("DROP TABLE {name}"),
                ]);
            }
            6 => self.transaction(&[
                "LOCK TABLE copied IN SHARE ROW EXCLUSIVE MODE".to_owned(),
                "SELECT count(*) FROM copied".to_owned(),
            ]),
            _ => {
                self.run("UPDATE hot SET n = n + 1");
            }
        }
    }

    /// COPY of a few rows, sent whatever the server says meanwhile.
    fn copy(&mut self, next: u64) {
        let sql = "COPY copied FROM STDIN";
        self.copying.send(&query(sql));
        let begun = self.copying.until(|l| l.starts_with('G') || l.starts_with("Z "));
        let mut lines = begun;
        if lines.iter().any(|l| l.starts_with('G')) {
            let rows: String = (0..5).map(|n| format!("{}\n", next + n)).collect();
            let data = [message(b'd', rows.as_bytes()), message(b'c', b"")].concat();
            self.copying.send(&data);
            lines.extend(self.copying.until(|l| l.starts_with("Z ")));
        }
        assert!(lines.iter().any(|l| l == "Z I"), "the session goes on: {lines:?}");
        let error = lines.iter().find_map(|l| {
            let (code, text) = l.strip_prefix("E ERROR ")?.split_once(' ')?;
            Some((code.to_owned(), text.to_owned()))
        });
        self.shared.note(sql, error.as_ref());
    }
}

/// Sets `debug_faults`, though the statements that do it may fail, too.
fn arm(admin: &mut Client, faults: &str) {
    for sql in [
        format!("ALTER SYSTEM SET debug_faults = '{faults}'"),
        "SELECT pg_reload_conf()".to_owned(),
    ] {
        for attempt in 0.. {
            let answer = admin.query(&sql).expect("the session goes on");
            match answer.error {
                None => break,
                Some((code, _)) => assert!(code == "XX000" && attempt < 1000, "{sql}: {code}"),
            }
        }
    }
}

fn value(admin: &mut Client, sql: &str) -> String {
    let answer = admin.query(sql).expect("the session goes on");
    assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
    answer.rows[0][0].clone().expect("a value")
}

#[test]
fn a_panic_in_a_statement_ends_that_statement_and_nothing_else() {
    let each = crate::support::number("FAULTS_EACH", 25);
    let dir = TempDir::new("faults");
    // A small pool, so that pages are read, written and evicted all the time.
    let settings = ["shared_buffers=1MB", "workers=2", "autovacuum=off", "max_wal_size=16MB"];
    let server = Server::start(&dir.path().join("data"), &settings);
    assert_eq!(server.psql(&["-q", "-v", "ON_ERROR_STOP=1"], SCHEMA), "");
    let mut admin = Client::connect(server.port).expect("the server takes connections");
    let shared = Shared::default();
    let sessions: Vec<Session<'_>> =
        (0..CLIENTS).map(|n| Session::new(&server, &shared, n)).collect();
    let (before, grown, mut total) = std::thread::scope(|scope| {
        let sessions: Vec<_> = sessions
            .into_iter()
            .map(|mut session| {
                scope.spawn(move || {
                    while !session.shared.stop.load(Ordering::Relaxed) {
                        session.step();
                    }
                    session
                })
            })
            .collect();
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            await_count(&shared.well, 500, &shared, "statements without faults");
            let mut total = Vec::new();
            let mut resident = 0;
            for (point, kind, every) in IN_STATEMENTS {
                let target = shared.failed.load(Ordering::Relaxed) + each;
                arm(&mut admin, &format!("{point}={kind}/{every}"));
                await_count(&shared.failed, target, &shared, point);
                total.push(point);
                if total.len() == IN_STATEMENTS.len() / 2 {
                    // By now the names of functions are known, and all caches are filled.
                    resident = footprint::resident_kib(server.pid());
                }
            }
            arm(&mut admin, "");
            (total, resident)
        }));
        shared.stop.store(true, Ordering::Relaxed);
        let mut sessions: Vec<_> =
            sessions.into_iter().map(|s| s.join().expect("every session went on")).collect();
        let (points, resident) = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let idle = footprint::await_quiet(&server, &mut admin, 2 * CLIENTS as i64);
        // The very sessions that were hit go on.
        for session in &mut sessions {
            for _ in 0..50 {
                session.step();
            }
        }
        let grown = footprint::resident_kib(server.pid()) - resident;
        drop(sessions);
        (idle, grown, points)
    });
    let unexpected = std::mem::take(&mut *shared.unexpected());
    assert!(
        unexpected.is_empty(),
        "errors that no fault explains: {:#?}",
        &unexpected[..unexpected.len().min(10)]
    );
    println!("{} statements ended by faults at {total:?}", shared.failed.load(Ordering::Relaxed));
    total.sort_unstable();
    let nothing = Footprint {
        sessions: 2 * CLIENTS as i64,
        pins: 0,
        locks: 0,
        waits: 0,
        snapshots: 0,
        descriptors: before.descriptors,
    };
    assert_eq!(before, nothing, "while all are idle");
    assert!(grown < 32 << 10, "the server grew by {grown} KiB");
    // A page that can't be written stays as it is, and is written when it can be.
    arm(&mut admin, "page_write=error");
    let answer = admin.query("CHECKPOINT").expect("the session goes on");
    let (code, text) = answer.error.expect("pages can't be written");
    assert_eq!((code.as_str(), text.as_str()), ("XX000", "fault point page_write"));
    arm(&mut admin, "");
    // No latch is left: every row can be changed, every page written.
    for sql in ["UPDATE accounts SET filler = ''", "VACUUM log", "CHECKPOINT"] {
        let answer = admin.query(sql).expect("the session goes on");
        assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
    }
    assert_eq!(value(&mut admin, "SELECT sum(balance) FROM accounts"), "0");
    assert_eq!(value(&mut admin, "SELECT count(*) FROM accounts"), ROWS.to_string());
    let log = std::fs::read_to_string(dir.path().join("data.log")).expect("there is a log");
    for (point, _, _) in IN_STATEMENTS {
        assert!(log.contains(&format!("fault point {point}")), "{point} is not in the log");
    }
    assert!(log.contains("heap/insert.rs"), "stacks are in the log");
    drop(admin);
    assert!(server.stop());
    check(&dir.path().join("data"));
}

fn await_count(count: &AtomicU64, target: u64, shared: &Shared, what: &str) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while count.load(Ordering::Relaxed) < target {
        assert!(Instant::now() < deadline, "{what}: too few within two minutes");
        assert!(shared.unexpected().is_empty(), "{what}: {:?}", shared.unexpected());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The offline checker on a stopped server's directory.
fn check(dir: &Path) {
    let out = Command::new(BIN).args(["check", "-D"]).arg(dir).output();
    let out = out.expect("the binary is there");
    assert!(out.status.success(), "check found: {}", text_of(&out));
}

/// Transactions until the connection breaks; how many commits were acknowledged.
fn load_until_crash(port: u16, number: u64, mut random: Random) -> u64 {
    let mut acknowledged = 0;
    let mut work = || -> io::Result<()> {
        let mut client = Client::connect(port)?;
        loop {
            let (a, b) = (1 + random.below(ROWS), 1 + random.below(ROWS));
            let (a, b) = (a.min(b), a.max(b));
            let commits = random.below(4) != 0;
            let statements = [
                "BEGIN".to_owned(),
                format!("UPDATE accounts SET balance = balance - 1 WHERE id = {a}"),
                format!("UPDATE accounts SET balance = balance + 1 WHERE id = {b}"),
                format!("UPDATE done SET n = n + 1 WHERE client = {number}"),
                format!("INSERT INTO log VALUES ({number}, {acknowledged}, repeat('z', 200))"),
                if commits { "COMMIT" } else { "ROLLBACK" }.to_owned(),
            ];
            for sql in &statements {
                let answer: Answer = client.query(sql)?;
                assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
            }
            acknowledged += u64::from(commits);
        }
    };
    // It ends when the connection breaks.
    let _ = work();
    acknowledged
}

#[test]
fn a_panic_in_a_critical_section_is_followed_by_a_start_with_recovery() {
    let rounds = crate::support::number("FAULTS_CRASHES", 2);
    let dir = TempDir::new("faults-critical");
    let data = dir.path().join("data");
    let server = Server::start_crashing(&data, &["shared_buffers=4MB", "autovacuum=off"]);
    assert_eq!(server.psql(&["-q", "-v", "ON_ERROR_STOP=1"], SCHEMA), "");
    let mut counts = [0; CLIENTS as usize];
    let mut crashes = 0;
    for round in 0..rounds {
        for (point, every) in CRITICAL {
            let mut admin = Client::connect(server.port).expect("the server takes connections");
            arm(&mut admin, &format!("{point}=panic/{every}"));
            let acknowledged: Vec<u64> = std::thread::scope(|scope| {
                let start = |n: u64| {
                    let random = Random::new(round * 1000 + n * 7 + crashes);
                    let port = server.port;
                    scope.spawn(move || load_until_crash(port, n, random))
                };
                let clients: Vec<_> = (0..CLIENTS).map(start).collect();
                if point == "checkpoint" {
                    // It ends with the connection.
                    let _ = admin.query("CHECKPOINT");
                }
                clients.into_iter().map(|c| c.join().expect("no statement failed")).collect()
            });
            crashes += 1;
            // The server that was started again is still armed: nothing but this is asked of it.
            let mut admin = Client::connect(server.port).expect("it is started again");
            arm(&mut admin, "");
            assert_eq!(value(&mut admin, "SELECT sum(balance) FROM accounts"), "0", "{point}");
            for (n, known) in acknowledged.iter().enumerate() {
                let sql = format!("SELECT n FROM done WHERE client = {n}");
                let now: u64 = value(&mut admin, &sql).parse().expect("a number");
                let least = counts[n] + known;
                assert!(now == least || now == least + 1, "{point}: {now} of {least} commits");
                counts[n] = now;
            }
        }
    }
    let log = std::fs::read_to_string(data.with_extension("log")).expect("there is a log");
    assert_eq!(log.matches("it is started again").count() as u64, crashes, "one start a crash");
    for (point, _) in CRITICAL {
        assert!(log.contains(&format!("fault point {point}")), "{point} is not in the log");
    }
    println!("{crashes} crashes, {} commits", counts.iter().sum::<u64>());
    assert!(server.stop());
    check(&data);
}

//! A thousand sessions over two workers, each with settings, a prepared statement, a temporary table,
//! cursors, an advisory lock and a channel of its own, all under the same names, interleaved at random.
//! Every answer is what a model of that one session says; nothing leaks from one to another, and
//! nothing is left when they have gone.
//!
//! `SESSIONS_SEED=n` repeats a run.

use std::collections::BTreeSet;

use crate::support::random::Random;
use crate::support::raw::{self, Raw};
use crate::support::{Server, TempDir};

const SESSIONS: usize = 1000;
/// Threads that drive them; each has its sessions for itself.
const DRIVERS: usize = 4;
/// Random steps, by session on average.
const STEPS: usize = 14;

/// What a session's transaction has done that its end decides about.
#[derive(Clone)]
struct Undo {
    rows: BTreeSet<i64>,
    cursor: Option<i64>,
    setting: i64,
}

/// One session and what is expected of it.
struct One {
    client: Raw,
    id: i64,
    setting: i64,
    /// What SET LOCAL says inside the transaction.
    local: Option<i64>,
    prepared: i64,
    rows: BTreeSet<i64>,
    /// Position of the cursor in the transaction's.
    cursor: Option<i64>,
    /// Position of the held cursor.
    held: i64,
    locked: bool,
    /// Before the transaction, and at its savepoint.
    begun: Option<Undo>,
    savepoint: Option<Undo>,
    /// Payloads that are to come, and those that came.
    expected: Vec<String>,
    received: Vec<String>,
}

/// Rows of the answer; panics on an error.
fn rows(lines: &[String]) -> Vec<&str> {
    assert!(!lines.iter().any(|l| l.starts_with("E ")), "{lines:?}");
    lines.iter().filter_map(|l| l.strip_prefix("D ")).collect()
}

impl One {
    fn connect(port: u16, id: i64) -> One {
        let mut one = One {
            client: Raw::connect(port),
            id,
            setting: id,
            local: None,
            prepared: id * 1000,
            rows: BTreeSet::new(),
            cursor: None,
            held: 0,
            locked: true,
            begun: None,
            savepoint: None,
            expected: Vec::new(),
            received: Vec::new(),
        };
        one.run(&format!("SET my.number = {id}; SET application_name = 'session {id}'"));
        one.run(&format!("PREPARE p(int) AS SELECT $1 + {}", one.prepared));
        one.run("CREATE TEMP TABLE mine (id bigint PRIMARY KEY, owner int)");
        one.run(&format!("CREATE TEMP TABLE passing ON COMMIT DELETE ROWS AS SELECT {id} AS n"));
        one.run(&format!(
            "DECLARE held CURSOR WITH HOLD FOR SELECT g FROM generate_series({id}, {id} + 9) g"
        ));
        one.run(&format!("SELECT pg_advisory_lock({id}); LISTEN channel_{id}"));
        one
    }

    /// Runs a query string; its rows. Notifications are put aside.
    fn run(&mut self, text: &str) -> Vec<String> {
        let lines = self.client.query(text);
        let come = lines.iter().filter(|l| l.starts_with("A "));
        self.received.extend(come.filter_map(|l| l.rsplit(' ').next()).map(str::to_owned));
        rows(&lines).into_iter().map(str::to_owned).collect()
    }

    /// The one value that a query gives.
    fn value(&mut self, text: &str) -> String {
        let rows = self.run(text);
        assert_eq!(rows.len(), 1, "session {}: {text}: {rows:?}", self.id);
        rows[0].clone()
    }

    fn is(&mut self, text: &str, expected: impl ToString) {
        let value = self.value(text);
        assert_eq!(value, expected.to_string(), "session {}: {text}", self.id);
    }

    fn undo(&self) -> Undo {
        Undo { rows: self.rows.clone(), cursor: self.cursor, setting: self.setting }
    }

    /// One random step.
    fn step(&mut self, random: &mut Random) {
        let n = random.index(1000) as i64;
        match random.index(14) {
            0 => {
                self.setting = n;
                self.local = None;
                self.run(&format!("SET my.number = {n}"));
            }
            1 => {
                self.run("DEALLOCATE p");
                self.prepared = self.id * 1000 + n;
                self.run(&format!("PREPARE p(int) AS SELECT $1 + {}", self.prepared));
            }
            2 => self.is(&format!("EXECUTE p({n})"), self.prepared + n),
            3 | 4 => {
                self.rows.insert(n);
                let text = "INSERT INTO mine SELECT {n}, {i} WHERE NOT EXISTS \
                            (SELECT FROM mine WHERE id = {n})";
                let id = self.id.to_string();
                self.run(&text.replace("{n}", &n.to_string()).replace("{i}", &id));
            }
            5 => {
                self.rows.retain(|r| *r >= n / 2);
                self.run(&format!("DELETE FROM mine WHERE id < {}", n / 2));
            }
            6 => self.extended(n),
            7 => self.cursor_step(),
            8 => self.held_step(),
            9 => self.lock_step(),
            10 | 11 => self.block_step(random),
            12 if self.begun.is_some() => {
                self.local = Some(n);
                self.run(&format!("SET LOCAL my.number = {n}"));
            }
            _ => self.verify(),
        }
    }

    /// The extended protocol, with a plan that the session's statement keeps.
    fn extended(&mut self, n: i64) {
        let name = "by_id";
        let text = "SELECT owner FROM mine WHERE id = $1";
        let mut bytes = raw::close('S', name);
        bytes.extend(raw::parse(name, text, &[20]));
        for _ in 0..2 {
            bytes.extend(raw::bind("", name, &[Some(&n.to_string())], false));
            bytes.extend(raw::execute("", 0));
        }
        bytes.extend(raw::sync());
        let lines = self.client.talk(&bytes);
        let come = lines.iter().filter(|l| l.starts_with("A "));
        self.received.extend(come.filter_map(|l| l.rsplit(' ').next()).map(str::to_owned));
        let expected = if self.rows.contains(&n) { vec![self.id.to_string(); 2] } else { vec![] };
        assert_eq!(rows(&lines), expected, "session {}", self.id);
    }

    fn cursor_step(&mut self) {
        match (&self.begun, self.cursor) {
            (None, _) => {}
            (Some(_), None) => {
                let id = self.id;
                self.run(&format!(
                    "DECLARE c SCROLL CURSOR FOR SELECT g FROM generate_series({id}, {id} + 99) g"
                ));
                self.cursor = Some(0);
            }
            (Some(_), Some(at)) => {
                let next: Vec<i64> =
                    (at + 1..=(at + 2).min(100)).map(|r| self.id + r - 1).collect();
                let next: Vec<String> = next.iter().map(i64::to_string).collect();
                assert_eq!(self.run("FETCH 2 FROM c"), next, "session {}", self.id);
                self.cursor = Some((at + 2).min(101));
            }
        }
    }

    fn held_step(&mut self) {
        self.held = if self.held >= 10 { 1 } else { self.held + 1 };
        let expected = self.id + self.held - 1;
        self.is(&format!("FETCH ABSOLUTE {} FROM held", self.held), expected);
    }

    fn lock_step(&mut self) {
        let id = self.id;
        if self.locked {
            self.is(&format!("SELECT pg_advisory_unlock({id})"), "t");
        } else {
            self.is(&format!("SELECT pg_try_advisory_lock({id})"), "t");
        }
        self.locked = !self.locked;
    }

    /// BEGIN, SAVEPOINT, ROLLBACK TO, COMMIT, ROLLBACK.
    fn block_step(&mut self, random: &mut Random) {
        let Some(begun) = self.begun.clone() else {
            self.run("BEGIN");
            self.begun = Some(self.undo());
            return;
        };
        match (random.index(4), self.savepoint.clone()) {
            (0, None) => {
                self.run("SAVEPOINT s");
                self.savepoint = Some(self.undo());
            }
            (0, Some(savepoint)) => {
                // A cursor that is older than the savepoint stays where it is.
                let cursor = self.cursor.filter(|_| savepoint.cursor.is_some());
                let local = self.local;
                self.run("ROLLBACK TO s");
                self.restore(savepoint);
                (self.cursor, self.local) = (cursor, local);
                self.reset_number();
            }
            (1, _) => {
                self.run("ROLLBACK");
                self.restore(begun);
                self.end_block();
            }
            _ => {
                self.run(&format!("INSERT INTO passing VALUES ({})", self.id));
                self.run("COMMIT");
                self.end_block();
            }
        }
    }

    fn restore(&mut self, to: Undo) {
        (self.rows, self.cursor, self.setting) = (to.rows, to.cursor, to.setting);
    }

    fn end_block(&mut self) {
        (self.begun, self.savepoint, self.cursor, self.local) = (None, None, None, None);
    }

    /// After a rollback to a savepoint the model does not know what SET LOCAL had been.
    fn reset_number(&mut self) {
        self.local = None;
        self.run(&format!("SET my.number = {}", self.setting));
    }

    /// Everything that can be seen of the session's state.
    fn verify(&mut self) {
        let number = self.local.unwrap_or(self.setting);
        self.is("SHOW my.number", number);
        self.is("SHOW application_name", format!("session {}", self.id));
        self.is("EXECUTE p(0)", self.prepared);
        let (count, sum) = (self.rows.len(), self.rows.iter().sum::<i64>());
        self.is("SELECT count(*), coalesce(sum(id), 0) FROM mine", format!("{count}|{sum}"));
        let strange = format!("SELECT count(*) FROM mine WHERE owner <> {}", self.id);
        self.is(&strange, 0);
        self.is("SELECT count(*) FROM passing", 0);
        let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' \
                     AND pid = pg_backend_pid()";
        self.is(locks, i32::from(self.locked));
        let names = "SELECT string_agg(name, ' ' ORDER BY name) FROM pg_cursors";
        self.is(names, if self.cursor.is_some() { "c held" } else { "held" });
    }

    /// DISCARD ALL leaves a session as a new one is.
    fn forget(&mut self) {
        self.run("SET session_authorization = pg_monitor");
        self.run("DISCARD ALL");
        let number = "SELECT coalesce(current_setting('my.number', true), ''), session_user";
        self.is(number, "|postgres");
        self.is("SHOW application_name", "");
        let counts = "SELECT (SELECT count(*) FROM pg_prepared_statements), \
                      (SELECT count(*) FROM pg_cursors), \
                      (SELECT count(*) FROM pg_locks \
                       WHERE locktype = 'advisory' AND pid = pg_backend_pid()), \
                      to_regclass('mine') IS NULL";
        self.is(counts, "0|0|0|t");
        self.run(&format!("NOTIFY channel_{}, 'late'", self.id));
        self.run("SELECT 1");
        assert_eq!(self.received, self.expected, "session {} listens no more", self.id);
    }

    fn check_notifications(&mut self) {
        assert!(self.begun.is_none(), "only an idle session gets them all");
        self.run("SELECT 1");
        assert_eq!(self.received, self.expected, "session {}", self.id);
    }
}

/// Drives some sessions; they are idle afterwards.
fn drive(port: u16, ids: std::ops::Range<usize>, seed: u64) -> Vec<One> {
    let mut random = Random::new(seed);
    let mut all: Vec<One> = ids.map(|id| One::connect(port, id as i64 + 1)).collect();
    for step in 0..all.len() * STEPS {
        let which = random.index(all.len());
        if random.index(10) == 0 {
            // Somebody else's lock can't be had, and somebody else's channel is heard there only.
            let other = random.index(all.len());
            let (id, locked) = (all[other].id, all[other].locked);
            if other != which && all[which].begun.is_none() {
                let lock = format!("SELECT pg_try_advisory_xact_lock({id})");
                all[which].is(&lock, if locked { "f" } else { "t" });
                all[which].run(&format!("NOTIFY channel_{id}, 'step_{step}'"));
                all[other].expected.push(format!("step_{step}"));
            }
        } else {
            all[which].step(&mut random);
        }
    }
    for one in &mut all {
        if one.begun.is_some() {
            one.run("COMMIT");
            one.end_block();
        }
        one.verify();
        one.check_notifications();
    }
    all
}

fn temporary_files(server: &Server) -> usize {
    let files = std::fs::read_dir(server.dir.join("base")).expect("the data directory is there");
    let number = |e: std::fs::DirEntry| e.file_name().to_str()?.split('_').next()?.parse().ok();
    files.flatten().filter_map(number).filter(|n: &u32| *n >= 1 << 30).count()
}

#[test]
fn a_thousand_sessions_keep_their_own_state() {
    let seed = std::env::var("SESSIONS_SEED").ok().and_then(|s| s.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("SESSIONS_SEED={seed}");
    let dir = TempDir::new("sessions");
    let settings = ["workers=2", "max_connections=1100"];
    let server = Server::start(&dir.path().join("data"), &settings);
    let port = server.port;
    let each = SESSIONS / DRIVERS;
    let drivers: Vec<_> = (0..DRIVERS)
        .map(|n| std::thread::spawn(move || drive(port, n * each..(n + 1) * each, seed + n as u64)))
        .collect();
    let mut sessions: Vec<One> = Vec::new();
    for driver in drivers {
        sessions.extend(driver.join().expect("the driver says what went wrong"));
    }
    let tables = "SELECT count(*), count(DISTINCT relnamespace) FROM pg_class \
                  WHERE relpersistence = 't' AND relkind = 'r'";
    assert_eq!(server.query(tables), format!("{}|{SESSIONS}", 2 * SESSIONS));
    assert_eq!(
        server.query("SELECT to_regclass('mine') IS NULL"),
        "t",
        "by name it is nobody else's"
    );
    let mut watcher = Raw::connect(port);
    let locked = sessions.iter().filter(|s| s.locked).count();
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    assert_eq!(rows(&watcher.query(locks)), [locked.to_string()]);
    sessions.truncate(SESSIONS / 2);
    // The ones whose sockets closed go as their workers notice it; each leaves the list when it has
    // given everything back.
    let left = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'session %'";
    wait_for(&mut watcher, left, SESSIONS / 2);
    let locked = sessions.iter().filter(|s| s.locked).count();
    assert_eq!(rows(&watcher.query(locks)), [locked.to_string()]);
    assert_eq!(server.query(tables), format!("{SESSIONS}|{}", SESSIONS / 2));
    sessions.iter_mut().for_each(One::verify);
    sessions.iter_mut().step_by(10).for_each(One::forget);
    drop(sessions);
    wait_for(&mut watcher, left, 0);
    assert_eq!(server.query(tables), "0|0");
    assert_eq!(rows(&watcher.query(locks)), ["0"]);
    assert_eq!(
        server.query("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pg_temp%'"),
        "0"
    );
    assert_eq!(temporary_files(&server), 0);
    assert!(server.stop());
}

/// Asks until the count is so; the test's own time limit ends it otherwise.
fn wait_for(client: &mut Raw, query: &str, count: usize) {
    while rows(&client.query(query)) != [count.to_string()] {
        std::thread::yield_now();
    }
}

#[test]
fn temporary_tables_are_not_logged_and_leave_nothing_after_a_crash() {
    let dir = TempDir::new("temporary");
    let data = dir.path().join("data");
    let server = Server::start(&data, &["shared_buffers=1MB"]);
    let mut client = Raw::connect(server.port);
    client.query("CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)");
    // Nothing of what a table that fits in memory needs is on disk.
    client.query("CREATE TEMP TABLE small AS SELECT g FROM generate_series(1, 100) g");
    assert_eq!(temporary_files(&server), 0);
    let position = "SELECT pg_current_wal_lsn()::text";
    let lsn = |client: &mut Raw| {
        let text = rows(&client.query(position))[0].to_owned();
        text.parse::<u64>().unwrap_or_else(|_| {
            let (high, low) = text.split_once('/').expect("a log position");
            let hex = |t| u64::from_str_radix(t, 16).expect("hexadecimal");
            hex(high) << 32 | hex(low)
        })
    };
    let before = lsn(&mut client);
    client.query(
        "CREATE TEMP TABLE big (n int PRIMARY KEY, filler text);
         INSERT INTO big SELECT g, repeat('x', 200) FROM generate_series(1, 20000) g;
         UPDATE big SET filler = 'y' WHERE n % 10 = 0;
         CREATE INDEX ON big (filler, n)",
    );
    let written = lsn(&mut client) - before;
    assert!(written < 10_000, "{written} bytes were logged");
    // 4 MB of rows do not stay in 1 MB of buffers, and are read back as they were.
    assert!(temporary_files(&server) > 0);
    let sums = "SELECT count(*), sum(n), sum(length(filler)) FROM big";
    assert_eq!(rows(&client.query(sums)), ["20000|200010000|3602000"]);
    assert_eq!(rows(&client.query("SELECT length(filler) FROM big WHERE n = 10000")), ["1"]);
    server.query("CHECKPOINT");
    server.kill();
    let server = Server::start(&data, &["shared_buffers=1MB"]);
    assert_eq!(temporary_files(&server), 0);
    assert_eq!(server.query("SELECT count(*) FROM pg_class WHERE relpersistence = 't'"), "0");
    assert_eq!(server.query("SELECT n FROM kept"), "1");
    // A dropped table gives its files back at the transaction's end.
    let mut client = Raw::connect(server.port);
    client.query(
        "CREATE TEMP TABLE big AS SELECT g, repeat('x', 200) FROM generate_series(1, 20000) g",
    );
    assert!(temporary_files(&server) > 0);
    client.query("BEGIN; DROP TABLE big");
    assert!(temporary_files(&server) > 0);
    client.query("ROLLBACK");
    assert_eq!(rows(&client.query("SELECT count(*) FROM big")), ["20000"]);
    client.query("DISCARD TEMP");
    assert_eq!(temporary_files(&server), 0);
    assert!(server.stop());
}

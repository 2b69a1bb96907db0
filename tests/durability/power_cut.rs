//! The power is cut at every point. A server in this process serves sessions that crowd round two hot
//! rows, while the test decides when the log becomes durable; everything that reached the log is kept.
//! Then, for every length of the log between one record and the next, for a record that is torn, and for
//! one that is missing while later ones are there, a copy is recovered and must agree with what clients
//! had been told by then:
//!
//! * every transaction that was acknowledged is there, and so is all that an answer was made of: what a
//!   reader saw, a key that somebody's row collided with, a commit that a notification told of;
//! * no transaction is there without all those before it on its rows, and none in part.
//!
//! docs/internals/hot-rows.md has the rules that make it so.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::raw::{Raw, bind, execute, parse, query, sync};
use crate::support::{TempDir, free_port};
use base::settings::publish_live;
use base::{RelId, WaitEvent};
use server::config::Config;
use server::server::Server;
use server::{listener, run};
use storage::{Options, Storage};
use txn::{Isolation, TxnManager};

const SESSIONS: usize = 8;
const SEGMENT: u64 = 256 * 1024;
const PATIENCE: Duration = Duration::from_secs(60);

/// What a client learns when its answer comes.
#[derive(Clone, Copy, Debug)]
enum Ask {
    /// That its transaction is committed.
    Commit(i32),
    /// How often a row has been changed.
    Read(i32),
    /// That the transaction with this number is there already.
    Collision(i32),
    /// That the table which it made is there, without a row.
    Made(i32),
}

/// What a client was told.
#[derive(Clone, Copy, Debug)]
enum Fact {
    Committed(i32),
    Seen { row: i32, n: i32 },
}

/// A fact, how far the log was durable when the client asked, and when it was told.
struct Told {
    asked: u64,
    heard: u64,
    fact: Fact,
}

/// The files as they were when the log was durable up to `durable`; of the log only that much.
struct Image {
    durable: u64,
    files: Vec<(PathBuf, Vec<u8>)>,
}

/// What is in the tables: by row its changes and its sum, and the transactions' lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    hot: BTreeMap<i32, (i32, i32)>,
    /// By transaction and row: the row's count of changes with this one, and by how much it was changed.
    history: BTreeMap<(i32, i32), (i32, i32)>,
}

/// The server, its clients, and what has happened.
struct Machine {
    dir: TempDir,
    server: Arc<Server>,
    port: u16,
    sessions: Vec<Raw>,
    /// Who waits for an answer, and since when.
    pending: Vec<(usize, Ask, u64)>,
    told: Vec<Told>,
    images: Vec<Image>,
    /// The log from the first image's position on.
    log: Vec<u8>,
    next: i32,
}

impl Machine {
    fn start() -> Machine {
        let dir = TempDir::new("power");
        let data = dir.path().join("data");
        let port = free_port();
        let settings = [
            ("port", port.to_string().as_str()),
            ("listen_addresses", "127.0.0.1"),
            ("unix_socket_directories", ""),
            ("debug_tiny", "on"),
            ("fsync", "off"),
            ("autovacuum", "off"),
            ("shared_buffers", "8MB"),
            ("checkpoint_timeout", "1h"),
            ("workers", "2"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        std::fs::create_dir(&data).expect("the folder is there");
        let config = Config::load(&data, settings.into()).expect("the settings are good");
        publish_live(&config.values.settings);
        server::init::init(&data, &Default::default()).expect("a new directory");
        let config =
            Config::load(&data, config.overrides().clone()).expect("the settings are good");
        let listeners = listener::open(&config.values.settings).expect("the port is free");
        let (server, _) = run::start(&data, config).expect("the server starts");
        for listener in listeners {
            listener.listen().expect("the port is free");
            listener::start(&server, listener).expect("a socket can be prepared");
        }
        let mut machine = Machine {
            dir,
            server,
            port,
            sessions: Vec::new(),
            pending: Vec::new(),
            told: Vec::new(),
            images: Vec::new(),
            log: Vec::new(),
            next: 1,
        };
        let mut admin = Raw::connect(machine.port);
        for sql in [
            "CREATE TABLE hot (id int PRIMARY KEY, n int NOT NULL, total int NOT NULL)",
            "CREATE TABLE history (tx int, hot int, n int NOT NULL, delta int NOT NULL, PRIMARY KEY (tx, hot))",
            "CREATE TABLE cold (n int NOT NULL)",
            "INSERT INTO hot VALUES (1, 0, 0), (2, 0, 0)",
            "INSERT INTO cold VALUES (7)",
            "SELECT (SELECT sum(n) FROM hot), (SELECT sum(n) FROM cold)",
            "CHECKPOINT",
        ] {
            let lines = admin.query(sql);
            assert!(lines.iter().all(|l| !l.starts_with('E')), "{sql}: {lines:?}");
        }
        machine.sessions = (0..SESSIONS).map(|_| Raw::connect(port)).collect();
        machine.photograph();
        machine.hold(true);
        machine
    }

    fn durable(&self) -> u64 {
        self.server.engine.storage.wal.flushed().0
    }

    fn hold(&self, held: bool) {
        self.server.engine.storage.wal.hold_syncs(held);
    }

    /// The next transaction's number.
    fn number(&mut self) -> i32 {
        self.next += 1;
        self.next - 1
    }

    /// Keeps the files as they are now. Nothing goes on meanwhile.
    fn photograph(&mut self) {
        self.keep_log(self.durable());
        let data = self.dir.path().join("data");
        let (durable, mut files) = (self.durable(), Vec::new());
        read_files(&data, Path::new(""), &mut files);
        for (path, bytes) in &mut files {
            if let Some(number) = segment_number(path) {
                let kept = durable.saturating_sub(number * SEGMENT).min(SEGMENT);
                bytes[kept as usize..].fill(0);
            }
        }
        self.images.push(Image { durable, files });
    }

    /// Keeps the log up to here, once it is written: every record is whole.
    fn keep_log(&mut self, end: u64) {
        let Some(first) = self.images.first().map(|i| i.durable) else { return };
        let from = first + self.log.len() as u64;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let new = self.read_log(from, end);
            if boundaries(&new, from).last() == Some(&end) {
                return self.log.extend_from_slice(&new);
            }
            assert!(Instant::now() < deadline, "the log is not written up to {end}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn read_log(&self, mut at: u64, end: u64) -> Vec<u8> {
        let mut log = Vec::new();
        while at < end {
            let upto = end.min((at / SEGMENT + 1) * SEGMENT);
            let path = self.dir.path().join("data/wal").join(format!("{:016X}", at / SEGMENT));
            let bytes = std::fs::read(path).expect("the log is there");
            let (from, to) = (at % SEGMENT, (upto - 1) % SEGMENT + 1);
            log.extend_from_slice(&bytes[from as usize..to as usize]);
            at = upto;
        }
        log
    }

    /// Sends a query whose answer is yet to come.
    fn ask(&mut self, session: usize, sql: &str, ask: Ask) {
        self.ask_bytes(session, &query(sql), ask);
    }

    fn ask_bytes(&mut self, session: usize, bytes: &[u8], ask: Ask) {
        self.sessions[session].send(bytes);
        self.pending.push((session, ask, self.durable()));
    }

    /// Waits until the session waits for one of these; false: its answer is there.
    fn await_wait(&mut self, session: usize, wanted: &[WaitEvent]) -> bool {
        let raw = &self.sessions[session];
        let entry = self.server.sessions.get(raw.key.0).expect("the session lives");
        let deadline = Instant::now() + PATIENCE;
        loop {
            if entry.task.wait().is_some_and(|(event, _)| wanted.contains(&event)) {
                return true;
            }
            if has_answer(raw) {
                return false;
            }
            assert!(Instant::now() < deadline, "session {session}: {:?}", entry.task.wait());
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// The session stands in the queue for a row.
    fn is_queued(&mut self, session: usize) {
        let locks = [WaitEvent::LockTransactionid, WaitEvent::LockTuple];
        assert!(self.await_wait(session, &locks), "session {session} did not wait for the row");
    }

    /// All who asked have done their work and wait for the log. Who has been told before that is heard:
    /// the check at the end shows whether that was right.
    fn all_wait_for_the_log(&mut self) {
        for (session, ask, asked) in std::mem::take(&mut self.pending) {
            match self.await_wait(session, &[WaitEvent::IPCWalFlush]) {
                true => self.pending.push((session, ask, asked)),
                false => self.hear(session, ask, asked),
            }
        }
    }

    fn hear(&mut self, session: usize, ask: Ask, asked: u64) {
        let lines = self.sessions[session].until(|l| l.starts_with("Z "));
        let heard = self.durable();
        let has = |text: &str| lines.iter().any(|l| l.starts_with(text));
        let fact = match ask {
            Ask::Commit(tx) => {
                assert!(has("C COMMIT") && !has("E "), "{lines:?}");
                Fact::Committed(tx)
            }
            Ask::Collision(tx) => {
                assert!(has("E ERROR 23505"), "{lines:?}");
                Fact::Committed(tx)
            }
            Ask::Made(tx) => {
                assert!(has("D 0"), "{lines:?}");
                Fact::Committed(tx)
            }
            Ask::Read(row) => {
                let line = lines.iter().rfind(|l| l.starts_with("D ") || l.starts_with("d "));
                let line = line.unwrap_or_else(|| panic!("no row: {lines:?}"));
                let digits: String = line.chars().filter(char::is_ascii_digit).collect();
                Fact::Seen { row, n: digits.parse().expect("a number") }
            }
        };
        self.told.push(Told { asked, heard, fact });
    }

    /// Lets everything become durable; all who asked have their answers.
    fn flush(&mut self) {
        self.hold(false);
        let end = self.server.engine.storage.wal.insert_position();
        self.server.engine.storage.wal.flush(end).expect("the log can be written");
        self.hold(true);
        for (session, ask, asked) in std::mem::take(&mut self.pending) {
            self.hear(session, ask, asked);
        }
        self.keep_log(self.durable());
    }

    /// A statement whose answer does not wait for the log.
    fn at_once(&mut self, session: usize, sql: &str) -> Vec<String> {
        self.sessions[session].query(sql)
    }
}

/// Whether something has come.
fn has_answer(raw: &Raw) -> bool {
    raw.stream.set_nonblocking(true).expect("a socket option");
    let there = raw.stream.peek(&mut [0]).is_ok();
    raw.stream.set_nonblocking(false).expect("a socket option");
    there
}

fn read_files(root: &Path, below: &Path, into: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in std::fs::read_dir(root.join(below)).expect("the folder is there") {
        let entry = entry.expect("the folder can be read");
        let path = below.join(entry.file_name());
        if entry.path().is_dir() {
            read_files(root, &path, into);
        } else {
            into.push((path, std::fs::read(entry.path()).expect("the file can be read")));
        }
    }
}

fn segment_number(path: &Path) -> Option<u64> {
    let name = path.strip_prefix("wal").ok()?.to_str()?;
    u64::from_str_radix(name, 16).ok()
}

/// One change of a row with its line in the history.
fn change(tx: i32, row: i32, delta: i32) -> String {
    format!(
        "UPDATE hot SET n = n + 1, total = total + {delta} WHERE id = {row}; \
         INSERT INTO history SELECT {tx}, {row}, n, {delta} FROM hot WHERE id = {row};"
    )
}

/// A whole transaction that moves something from row 1 to row 2.
fn transfer(tx: i32) -> String {
    format!("BEGIN; {} {} COMMIT", change(tx, 1, -tx), change(tx, 2, tx))
}

/// Sessions change the rows one after the other, and others look, before anything is durable.
fn crowd(m: &mut Machine) {
    let syncs = m.server.engine.storage.stats().wal_syncs;
    for session in 0..4 {
        let tx = m.number();
        m.ask(session, &transfer(tx), Ask::Commit(tx));
        m.all_wait_for_the_log();
    }
    m.ask(4, "SELECT n FROM hot WHERE id = 1", Ask::Read(1));
    let extended =
        [parse("", "SELECT n FROM hot WHERE id = $1", &[23]), bind("", "", &[Some("2")], false)];
    let extended = [extended.concat(), execute("", 0), sync()].concat();
    m.ask_bytes(5, &extended, Ask::Read(2));
    m.ask(6, "COPY (SELECT n FROM hot WHERE id = 2) TO STDOUT", Ask::Read(2));
    let repeatable = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                      SELECT n FROM hot WHERE id = 1; COMMIT";
    m.ask(7, repeatable, Ask::Read(1));
    m.all_wait_for_the_log();
    assert_eq!(m.pending.len(), SESSIONS, "all go on before the flush, and none is told");
    m.flush();
    let syncs = m.server.engine.storage.stats().wal_syncs - syncs;
    assert!(syncs <= 2, "{syncs} flushes for all of them");
}

/// Sessions stand in the queue for a row whose holder commits: they go on at once.
fn queue(m: &mut Machine) {
    let holder = m.number();
    m.at_once(0, &format!("BEGIN; {}", change(holder, 1, 0)));
    let mut last = 0;
    for session in 1..4 {
        last = m.number();
        m.ask(session, &transfer(last), Ask::Commit(last));
        m.is_queued(session);
    }
    // Who reads meanwhile sees what was there before, and what nobody has touched: at once.
    assert!(m.at_once(7, "SELECT n FROM cold").contains(&"D 7".to_owned()));
    m.at_once(7, "SELECT n FROM hot WHERE id = 2");
    m.ask(0, "COMMIT", Ask::Commit(holder));
    m.all_wait_for_the_log();
    let again = format!("INSERT INTO history VALUES ({last}, 1, 0, 0)");
    m.ask(5, &again, Ask::Collision(last));
    m.all_wait_for_the_log();
    m.flush();
}

/// A client that talks to the server in the middle of its transaction gets the row before what it builds
/// on is durable; its commit waits.
fn step_by_step(m: &mut Machine) {
    let (first, second) = (m.number(), m.number());
    m.ask(0, &transfer(first), Ask::Commit(first));
    m.all_wait_for_the_log();
    m.at_once(1, "BEGIN");
    let lines = m.at_once(1, &change(second, 1, -second));
    assert!(lines.contains(&"C UPDATE 1".to_owned()), "{lines:?}");
    m.ask(1, &format!("{} COMMIT", change(second, 2, second)), Ask::Commit(second));
    m.all_wait_for_the_log();
    assert_eq!(m.pending.len(), 2);
    m.flush();
}

/// The holder rolls back, all of it or a part.
fn abort(m: &mut Machine) {
    let (holder, second, third) = (m.number(), m.number(), m.number());
    m.at_once(0, &format!("BEGIN; {}", change(holder, 1, 5)));
    m.ask(1, &transfer(second), Ask::Commit(second));
    m.is_queued(1);
    m.at_once(0, "ROLLBACK");
    m.all_wait_for_the_log();
    let part = format!(
        "BEGIN; SAVEPOINT s; {} ROLLBACK TO s; {} COMMIT",
        change(third, 1, 3),
        change(third, 2, 0)
    );
    m.ask(2, &part, Ask::Commit(third));
    m.all_wait_for_the_log();
    m.flush();
}

/// A commit that does not wait for the log, and who sees it.
fn asynchronous(m: &mut Machine) {
    let (tx, after) = (m.number(), m.number());
    m.at_once(0, "SET synchronous_commit = off");
    let lines = m.at_once(0, &format!("BEGIN; {} COMMIT", change(tx, 1, 0)));
    assert!(lines.contains(&"C COMMIT".to_owned()), "{lines:?}");
    m.ask(1, "SELECT n FROM hot WHERE id = 1", Ask::Read(1));
    m.all_wait_for_the_log();
    m.ask(2, &transfer(after), Ask::Commit(after));
    m.all_wait_for_the_log();
    m.flush();
    m.at_once(0, "RESET synchronous_commit");
}

/// A commit that makes a table, and who finds the table.
fn definition(m: &mut Machine) {
    let tx = m.number();
    let sql = format!("BEGIN; {} CREATE TABLE made_{tx} (n int); COMMIT", change(tx, 1, 0));
    m.ask(0, &sql, Ask::Commit(tx));
    m.all_wait_for_the_log();
    m.ask(1, &format!("SELECT count(*) + 0 * {tx} FROM made_{tx}"), Ask::Made(tx));
    m.all_wait_for_the_log();
    m.flush();
}

/// A commit that somebody is notified of.
fn notification(m: &mut Machine) {
    m.at_once(6, "LISTEN changes");
    let tx = m.number();
    let sql = transfer(tx).replace("COMMIT", &format!("NOTIFY changes, '{tx}'; COMMIT"));
    m.ask(0, &sql, Ask::Commit(tx));
    m.all_wait_for_the_log();
    let asked = m.durable();
    let early = !m.await_wait(6, &[WaitEvent::IPCWalFlush]);
    if !early {
        m.flush();
    }
    let line = m.sessions[6].line();
    assert!(line.starts_with("A changes"), "{line}");
    m.told.push(Told { asked, heard: m.durable(), fact: Fact::Committed(tx) });
    m.flush();
    m.at_once(6, "UNLISTEN *");
}

/// The log becomes durable while a transaction is half done; it commits later, or never.
fn half_done(m: &mut Machine, commits: bool) {
    let (half, other) = (m.number(), m.number());
    m.at_once(0, &format!("BEGIN; {}", change(half, 1, -half)));
    m.ask(1, &format!("BEGIN; {} COMMIT", change(other, 2, 0)), Ask::Commit(other));
    m.all_wait_for_the_log();
    m.flush();
    match commits {
        true => m.ask(0, &format!("{} COMMIT", change(half, 2, half)), Ask::Commit(half)),
        false => drop(m.at_once(0, "ROLLBACK")),
    }
    m.all_wait_for_the_log();
    m.flush();
}

/// The positions between records, from one position on.
fn boundaries(log: &[u8], from: u64) -> Vec<u64> {
    let (mut all, mut at) = (vec![from], 0);
    while let Some(length) = log.get(at..at + 4) {
        let length = length_of(length);
        if length == 0 || at + length > log.len() {
            break;
        }
        at += length;
        all.push(from + at as u64);
    }
    all
}

/// A record's length, by its first word.
fn length_of(word: &[u8]) -> usize {
    u32::from_le_bytes([word[0], word[1], word[2], 0]) as usize
}

/// Up to where the log was durable, at most, when the record at this place of it was written; see
/// `storage::wal::record`.
fn durable_at_most(record: &[u8], at: u64) -> u64 {
    match record[3] {
        0 | 1 => at,
        mark => at - 8 * (1 << (mark - 2)),
    }
}

/// The disk after a power cut: an image, and some bytes of the log.
struct Disk<'a> {
    dir: &'a Path,
    images: &'a [Image],
    log: &'a [u8],
    /// The tables' files.
    tables: [RelId; 2],
}

impl Disk<'_> {
    /// What is there when of the log beyond the image only these ranges have survived.
    fn after(&self, ranges: &[(u64, u64)]) -> State {
        let cut = ranges[0].1;
        let image =
            self.images.iter().rfind(|i| i.durable <= cut).expect("the first is before all");
        // What is not there any more is overwritten or in nobody's way, but for the log.
        let _ = std::fs::remove_dir_all(self.dir);
        for (path, bytes) in &image.files {
            let path = self.dir.join(path);
            std::fs::create_dir_all(path.parent().expect("in a folder")).expect("writable");
            std::fs::write(path, bytes).expect("writable");
        }
        for &(from, to) in ranges {
            self.put(from.max(image.durable), to);
        }
        self.recover()
    }

    fn put(&self, mut at: u64, end: u64) {
        use std::os::unix::fs::FileExt;
        let first = self.images[0].durable;
        while at < end {
            let upto = end.min((at / SEGMENT + 1) * SEGMENT);
            let path = self.dir.join("wal").join(format!("{:016X}", at / SEGMENT));
            let file =
                std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(path);
            let file = file.expect("writable");
            if file.metadata().expect("a file has a size").len() < SEGMENT {
                file.set_len(SEGMENT).expect("writable");
            }
            let bytes = &self.log[(at - first) as usize..(upto - first) as usize];
            file.write_all_at(bytes, at % SEGMENT).expect("writable");
            at = upto;
        }
    }

    fn recover(&self) -> State {
        let txn = TxnManager::new(self.dir);
        let options = Options {
            frames: 256,
            partitions: 16,
            wal_buffers: 1 << 20,
            ..Options::from_settings()
        };
        let storage = Storage::open_with(self.dir, txn.participant(None), options);
        let storage = storage.expect("recovery goes well");
        txn.attach(&storage);
        let owner = txn.new_owner(&sched::current(), 1);
        let tx = txn.begin(&owner, Isolation::ReadCommitted, true);
        let snapshot = tx.snapshot();
        let [hot, history] = self.tables.map(|rel| {
            let mut rows = Vec::new();
            let mut scan = access::Heap::open(&storage, rel).scan(&snapshot, None);
            while scan.next_page(&tx, |_, _, row| rows.push(ints(row))).expect("a good page") {}
            rows
        });
        drop(tx);
        storage.abandon();
        State {
            hot: hot.iter().map(|r| (r[0], (r[1], r[2]))).collect(),
            history: history.iter().map(|r| ((r[0], r[1]), (r[2], r[3]))).collect(),
        }
    }
}

/// The columns of a row that are all int4 and not null.
fn ints(row: &[u8]) -> Vec<i32> {
    row[2..].chunks_exact(4).map(|c| i32::from_le_bytes(c.try_into().expect("four"))).collect()
}

impl State {
    /// What does not hang together.
    fn contradiction(&self) -> Option<String> {
        for (&row, &(n, total)) in &self.hot {
            let lines = || self.history.iter().filter(move |((_, r), _)| *r == row);
            let counts: BTreeSet<i32> = lines().map(|(_, (n, _))| *n).collect();
            if !counts.iter().copied().eq(1..=n) || lines().count() != n as usize {
                return Some(format!("row {row} has been changed {n} times, but by {counts:?}"));
            }
            if lines().map(|(_, (_, delta))| delta).sum::<i32>() != total {
                return Some(format!("the sum of row {row} is another"));
            }
        }
        let sum: i32 = self.hot.values().map(|(_, total)| total).sum();
        (sum != 0 || self.hot.len() != 2).then(|| format!("the sum is {sum}"))
    }

    fn has(&self, fact: Fact) -> bool {
        match fact {
            Fact::Committed(tx) => self.history.keys().any(|(t, _)| *t == tx),
            Fact::Seen { row, n } => self.hot.get(&row).is_some_and(|known| known.0 >= n),
        }
    }
}

/// The facts that a client knew (`since`: from which position on) and that a cut takes back.
fn taken_back(states: &[(u64, State)], told: &[Told], since: impl Fn(&Told) -> u64) -> Vec<String> {
    let mut all = Vec::new();
    for (cut, state) in states {
        let known = told.iter().filter(|t| since(t) <= *cut);
        for lost in known.filter(|t| !state.has(t.fact)) {
            all.push(format!(
                "{:?} was known at {}, gone after a cut at {cut}",
                lost.fact,
                since(lost)
            ));
        }
    }
    all
}

#[test]
fn whatever_a_client_was_told_is_there_wherever_the_power_is_cut() {
    let mut m = Machine::start();
    let filenode = |m: &mut Machine, table: &str| {
        let lines = m.at_once(0, &format!("SELECT pg_relation_filenode('{table}')"));
        let found = lines.iter().find_map(|l| l.strip_prefix("D ")?.parse().ok());
        RelId(found.unwrap_or_else(|| panic!("{lines:?}")))
    };
    let tables = [filenode(&mut m, "hot"), filenode(&mut m, "history")];
    for turn in 0..2 {
        crowd(&mut m);
        queue(&mut m);
        step_by_step(&mut m);
        abort(&mut m);
        asynchronous(&mut m);
        notification(&mut m);
        definition(&mut m);
        half_done(&mut m, turn == 0);
        // From here on pages and the commit log's files are on disk, too.
        m.hold(false);
        let lines = m.at_once(0, "CHECKPOINT");
        assert!(lines.contains(&"C CHECKPOINT".to_owned()), "{lines:?}");
        m.photograph();
        m.hold(true);
    }
    // The last ones are never told.
    for session in 0..3 {
        let tx = m.number();
        m.ask(session, &transfer(tx), Ask::Commit(tx));
    }
    m.all_wait_for_the_log();
    let end = m.server.engine.storage.wal.insert_position().0;
    m.keep_log(end);
    let Machine { dir, server, told, images, log, .. } = m;
    server.engine.storage.abandon();

    let dir = dir.path().join("cut");
    let disk = Disk { dir: &dir, images: &images, log: &log, tables };
    let first = images[0].durable;
    let cuts = boundaries(&log, first);
    assert_eq!(cuts.last(), Some(&(first + log.len() as u64)), "the whole log was kept");
    let mut states: Vec<(u64, State)> = Vec::new();
    let mut lost = 0;
    for (i, &cut) in cuts.iter().enumerate() {
        let state = disk.after(&[(first, cut)]);
        assert_eq!(state.contradiction(), None, "after a cut at {cut}");
        if let Some((_, before)) = states.last() {
            assert!(before.history.iter().all(|line| state.history.get(line.0) == Some(line.1)));
        }
        if let Some(&end) = cuts.get(i + 1) {
            // Part of the record is there; then: none of it is, but what follows it.
            let torn = cut + (end - cut) / 16 * 8;
            assert_eq!(
                disk.after(&[(first, torn)]),
                state,
                "torn at {torn}, between {cut} and {end}"
            );
            // What was written when the lost record was durable, or in the next segment, can't be there.
            let could_be_there = |record: &&[u64]| {
                let bytes = &log[(record[0] - first) as usize..];
                durable_at_most(bytes, record[0]) <= cut && record[1] / SEGMENT == cut / SEGMENT
            };
            let later = cuts[i + 1..].windows(2).take(5).take_while(could_be_there).count();
            let after = cuts[i + 1 + later];
            lost += usize::from(later > 0);
            assert_eq!(disk.after(&[(first, cut), (end, after)]), state, "lost at {cut}");
        }
        states.push((cut, state));
    }
    println!("{} cuts, {lost} records lost before others, {} facts", cuts.len(), told.len());
    assert!(lost > cuts.len() / 3, "{lost} records lost before others");
    assert!(told.len() > 40 && states.last().is_some_and(|s| s.1.history.len() > 40));
    assert_eq!(taken_back(&states, &told, |t| t.heard), Vec::<String>::new());
    // The check would have found answers that left before the log was durable.
    let early = taken_back(&states, &told, |t| t.asked);
    assert!(early.len() >= told.len(), "{} of {} facts", early.len(), told.len());
}

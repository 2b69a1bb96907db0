//! A damaged directory says so. Every file of a directory that was stopped, of one whose server was killed under
//! load, and of a copy taken under load is removed, emptied, cut to half, and has one byte flipped at its start,
//! middle and end. Then the server either answers every question as before or names the file, at its start or
//! in the answer; never are there fewer rows, and no byte of another file changes. `threadgres check` finds it
//! too, or nothing is wrong, and changes nothing at all.
//!
//! `cargo test` tries a part of the cases, another each day; `DAMAGE=all` tries all of them.
//!
//! What a torn tail can look like is passed by: the log's last records, of which no later one says that they
//! were durable.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::{BIN, Server, TempDir, free_port};

/// What is asked of the database, and in which one.
const QUESTIONS: [(&str, &str); 9] = [
    ("postgres", "SELECT count(*), sum(id), md5(string_agg(note, ',' ORDER BY id)) FROM plain"),
    ("postgres", "SET enable_seqscan = off; SELECT count(*) FROM plain WHERE note >= ''"),
    ("postgres", "SET enable_seqscan = off; SELECT sum(id) FROM plain WHERE id > 0"),
    ("postgres", "SELECT id, md5(body), length(raw) FROM large ORDER BY id"),
    ("postgres", "SELECT count(*), sum(n) FROM load"),
    ("postgres", "SELECT last_value FROM numbers"),
    ("postgres", "SELECT count(*) FROM empty"),
    (
        "postgres",
        "SELECT string_agg(relname, ',' ORDER BY relname) FROM pg_class WHERE oid >= 16384",
    ),
    ("second", "SELECT count(*), sum(id), max(length(what)) FROM there"),
];

const FIRST: &str = "
    CREATE EXTENSION vector;
    CREATE EXTENSION bloom;
    CREATE TABLE plain (id int PRIMARY KEY, note text);
    INSERT INTO plain SELECT i, 'row ' || i FROM generate_series(1, 2000) i;
    CREATE INDEX plain_note ON plain (note);
    CREATE INDEX plain_hash ON plain USING hash (note);
    CREATE INDEX plain_gist ON plain USING gist (point(length(note), 1));
    CREATE INDEX plain_spgist ON plain USING spgist (note);
    CREATE INDEX plain_brin ON plain USING brin (note);
    CREATE INDEX plain_bloom ON plain USING bloom (id, note);
    CREATE INDEX plain_hnsw ON plain USING hnsw ((ARRAY[id, length(note)]::vector(2)) vector_l2_ops);
    CREATE INDEX plain_ivfflat ON plain
        USING ivfflat ((ARRAY[id, length(note)]::vector(2)) vector_l2_ops) WITH (lists = 5);
    CREATE TABLE large (id int PRIMARY KEY, body text, raw bytea);
    INSERT INTO large SELECT i, (SELECT string_agg(md5((i * 1000 + j)::text), '')
        FROM generate_series(1, 500) j), decode(repeat(md5(i::text), 900), 'hex')
        FROM generate_series(1, 5) i;
    CREATE TABLE load (n int);
    CREATE TABLE empty (n int);
    CREATE SEQUENCE numbers;
    SELECT nextval('numbers');";
const SECOND: &str = "
    CREATE TABLE there (id serial PRIMARY KEY, what text);
    INSERT INTO there (what) SELECT repeat('x', i) FROM generate_series(1, 300) i;";
/// After the last checkpoint.
const LATER: &str = "
    DELETE FROM plain WHERE id > 1500;
    INSERT INTO plain SELECT i, 'later ' || i FROM generate_series(3001, 3200) i;
    UPDATE large SET body = body || 'more' WHERE id < 3;
    CREATE TABLE gone (n int); DROP TABLE gone;";

const SETTINGS: [&str; 4] =
    ["debug_tiny=on", "autovacuum=off", "checkpoint_timeout=1h", "max_wal_size=1GB"];

/// How a file is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Removed,
    Emptied,
    Halved,
    FlippedAtStart,
    FlippedInTheMiddle,
    FlippedAtEnd,
}

use Damage::{Emptied, FlippedAtEnd, FlippedAtStart, FlippedInTheMiddle, Halved, Removed};

const ALL: [Damage; 6] =
    [Removed, Emptied, Halved, FlippedAtStart, FlippedInTheMiddle, FlippedAtEnd];

/// A directory's files.
type Files = BTreeMap<PathBuf, Vec<u8>>;

fn files(dir: &Path) -> Files {
    fn read(root: &Path, below: &Path, into: &mut Files) {
        for entry in std::fs::read_dir(root.join(below)).expect("the folder is there") {
            let entry = entry.expect("the folder can be read");
            let path = below.join(entry.file_name());
            if entry.path().is_dir() {
                read(root, &path, into);
            } else if let Ok(bytes) = std::fs::read(entry.path()) {
                // One that has gone meanwhile was temporary.
                into.insert(path, bytes);
            }
        }
    }
    let mut all = Files::new();
    read(dir, Path::new(""), &mut all);
    // Who has the directory and how the server is reached is no data.
    all.remove(Path::new("threadgres.lock"));
    all.remove(Path::new("threadgres.address"));
    all.remove(Path::new("postmaster.opts"));
    all.remove(Path::new("postmaster.pid"));
    all
}

fn write(dir: &Path, files: &Files) {
    let _ = std::fs::remove_dir_all(dir);
    for (path, bytes) in files {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("writable");
        std::fs::write(path, bytes).expect("writable");
    }
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(dir, private).expect("it is ours");
}

/// The answer to each question: rows, or the error's message.
fn ask(port: u16) -> Vec<Result<String, String>> {
    let answer = |(database, sql): &(&str, &str)| {
        let mut client =
            Client::connect_to(port, "postgres", database).map_err(|e| e.to_string())?;
        client.give_up_after(Duration::from_secs(60)).map_err(|e| e.to_string())?;
        let answer = client.query(sql).map_err(|e| e.to_string())?;
        match answer.error {
            Some((code, message)) => Err(format!("{code}: {message}")),
            None => Ok(format!("{:?}", answer.rows)),
        }
    };
    QUESTIONS.iter().map(answer).collect()
}

/// A server that may refuse to start.
struct Attempt {
    child: Child,
    port: u16,
    log: PathBuf,
}

impl Attempt {
    fn start(dir: &Path) -> Attempt {
        let (port, log) = (free_port(), dir.with_extension("log"));
        let file = std::fs::File::create(&log).expect("writable");
        let child = Command::new(BIN)
            .args([
                "serve",
                "--allow-root",
                "--single-process",
                "-c",
                "shared_buffers=8MB",
                "-c",
                "fsync=off",
            ])
            .args(["-c", "autovacuum=off", "-p", &port.to_string(), "-D"])
            .arg(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .expect("the server's binary was built with the tests");
        Attempt { child, port, log }
    }

    /// Whether it serves; else its exit code and what it said.
    fn await_service(&mut self) -> Result<(), (Option<i32>, String)> {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                let said = std::fs::read_to_string(&self.log).unwrap_or_default();
                return Err((status.code(), said));
            }
            if std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return Ok(());
            }
            assert!(Instant::now() < until, "the server neither serves nor ends");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `threadgres check`: whether it found nothing, and what it said.
fn check(dir: &Path) -> (bool, String) {
    let out = Command::new(BIN).args(["check", "-D"]).arg(dir).output().expect("it runs");
    (out.status.success(), crate::support::text_of(&out))
}

/// A directory to be damaged.
struct Specimen {
    name: &'static str,
    files: Files,
    /// Whether its server stopped by itself.
    is_clean: bool,
    answers: Vec<Result<String, String>>,
}

impl Specimen {
    fn new(name: &'static str, files: Files, is_clean: bool, dir: &Path) -> Specimen {
        write(dir, &files);
        assert_eq!(check(dir), (true, "no damage found\n".to_owned()), "{name}");
        assert!(self::files(dir) == files, "the check of {name} changed something");
        let mut attempt = Attempt::start(dir);
        attempt.await_service().expect("a good directory is served");
        let answers = ask(attempt.port);
        assert!(answers.iter().all(Result::is_ok), "{name}: {answers:?}");
        Specimen { name, files, is_clean, answers }
    }

    /// All cases of it.
    fn cases(&self) -> Vec<(PathBuf, Damage)> {
        let mut cases = Vec::new();
        for (path, bytes) in &self.files {
            for damage in ALL {
                if bytes.is_empty() && damage != Removed {
                    continue;
                }
                if !self.is_clean && self.is_tail(path, damage) {
                    continue;
                }
                cases.push((path.clone(), damage));
            }
        }
        cases
    }

    /// Whether the damage looks as what a crash may leave of the log's last records.
    fn is_tail(&self, path: &Path, damage: Damage) -> bool {
        const GROUP: usize = 48 * 1024;
        if !path.starts_with("wal") {
            return false;
        }
        let at = match place(path, &self.files[path], damage) {
            Some(at) => at,
            None => return false,
        };
        let later: usize = self
            .files
            .iter()
            .filter(|(other, _)| other.starts_with("wal") && *other > path)
            .filter(|(other, bytes)| is_of_now(other, bytes))
            .map(|(_, bytes)| used(bytes))
            .sum();
        is_of_now(path, &self.files[path]) && used(&self.files[path]) + later < at + GROUP
    }

    fn try_case(&self, dir: &Path, path: &Path, damage: Damage) {
        let case = format!("{}: {} {damage:?}", self.name, path.display());
        write(dir, &self.files);
        spoil(dir, path, damage, &self.files[path]);
        let before = files(dir);
        let (is_good, said) = check(dir);
        assert!(files(dir) == before, "{case}: the check changed something");
        assert!(is_good || names(&said, path), "{case}: the check says {said}");

        let mut attempt = Attempt::start(dir);
        match attempt.await_service() {
            Err((code, said)) => {
                assert_eq!(code, Some(1), "{case}: {said}");
                assert!(names(&said, path), "{case}: the server says {said}");
                let after = files(dir);
                assert!(!is_good || is_text(path), "{case}: the check found nothing");
                self.assert_untouched(&case, &before, &after);
            }
            Ok(()) => {
                let answers = ask(attempt.port);
                let mut refused = false;
                for ((question, answer), right) in QUESTIONS.iter().zip(&answers).zip(&self.answers)
                {
                    match answer {
                        Ok(_) => assert_eq!(answer, right, "{case}: {}", question.1),
                        Err(e) => {
                            refused = true;
                            assert!(names(e, path), "{case}: {}: {e}", question.1);
                        }
                    }
                }
                assert!(!(refused && is_good) || is_text(path), "{case}: the check found nothing");
                let after = files(dir);
                let kept = |p: &Path| p.starts_with("base") && p != path;
                for (other, _) in before.iter().filter(|(p, _)| kept(p)) {
                    let aside = Path::new("lost").join(other.file_name().expect("a file"));
                    let is_there = after.contains_key(other) || after.contains_key(&aside);
                    assert!(is_there, "{case}: {} is gone", other.display());
                }
            }
        }
    }

    /// A start that was refused has changed nothing; recovery may have made files longer, or made them.
    fn assert_untouched(&self, case: &str, before: &Files, after: &Files) {
        for (path, bytes) in before {
            let now =
                after.get(path).unwrap_or_else(|| panic!("{case}: {} is gone", path.display()));
            let same = if self.is_clean { now == bytes } else { now.starts_with(bytes) };
            assert!(same, "{case}: {} has changed", path.display());
        }
        assert!(!self.is_clean || before.len() == after.len(), "{case}: a file more");
    }
}

/// Bytes of a log segment up to its last one that is not zero.
fn used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1)
}

/// Whether a log segment holds records of its own number, and isn't one to be used again.
fn is_of_now(path: &Path, bytes: &[u8]) -> bool {
    let number = path.file_name().and_then(|n| u64::from_str_radix(n.to_str()?, 16).ok());
    let base = number.unwrap_or(0) * bytes.len() as u64;
    bytes
        .chunks_exact(8)
        .enumerate()
        .any(|(i, word)| i > 0 && word == (base + 8 * (i as u64 - 1)).to_le_bytes())
}

/// Which byte is the first to be damaged; None: all of them.
fn place(path: &Path, bytes: &[u8], damage: Damage) -> Option<usize> {
    let len = if path.starts_with("wal") { used(bytes).max(1) } else { bytes.len() };
    match damage {
        Removed | Emptied => None,
        Halved => None,
        FlippedAtStart => Some(0),
        FlippedInTheMiddle => Some(len / 2),
        FlippedAtEnd => Some(bytes.len() - 1),
    }
}

fn spoil(dir: &Path, path: &Path, damage: Damage, good: &[u8]) {
    let file = dir.join(path);
    let done = match damage {
        Removed => std::fs::remove_file(file),
        Emptied => std::fs::write(file, b""),
        Halved => std::fs::write(file, &good[..good.len() / 2]),
        _ => {
            let mut bytes = good.to_vec();
            bytes[place(path, good, damage).expect("a byte")] ^= 0x11;
            std::fs::write(file, bytes)
        }
    };
    done.expect("writable");
}

/// Files that are text for people.
fn is_text(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "conf")
}

/// Whether a message names the file. Damage in the log may be told by the place after it.
fn names(message: &str, path: &Path) -> bool {
    let name = path.file_name().expect("a file").to_string_lossy();
    message.contains(&*name)
        || (path.starts_with("wal") && message.contains("write-ahead log is damaged"))
}

/// A server with data, and a checkpoint in the middle of it.
fn fill(dir: &Path) -> Server {
    let server = Server::start(dir, &SETTINGS);
    let run = |database: &str, sql: &str| {
        let mut client = Client::connect_to(server.port, "postgres", database).expect("it serves");
        let answer = client.query(sql).expect("it answers");
        assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
    };
    run("postgres", FIRST);
    run("postgres", "CREATE DATABASE second");
    run("second", SECOND);
    run("postgres", "CHECKPOINT");
    run("postgres", LATER);
    server
}

/// Runs something while clients insert and commit.
fn under_load<R>(server: &Server, work: impl FnOnce() -> R) -> R {
    let (ends, committed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (ends, committed, port) = (ends.clone(), committed.clone(), server.port);
            std::thread::spawn(move || {
                let mut client = Client::connect(port).expect("it serves");
                while !ends.load(Ordering::Relaxed)
                    && client.query("INSERT INTO load VALUES (1)").is_ok()
                {
                    committed.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    while committed.load(Ordering::Relaxed) < 600 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let result = work();
    ends.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|c| c.join().expect("a client ends"));
    result
}

/// Copies as an administrator would: the log last.
fn copy_live(dir: &Path) -> Files {
    let mut all = files(dir);
    all.retain(|path, _| !path.starts_with("wal"));
    let log = files(&dir.join("wal"));
    all.extend(log.into_iter().map(|(path, bytes)| (Path::new("wal").join(path), bytes)));
    all.retain(|path, _| path.extension().is_none_or(|e| e != "tmp"));
    all
}

fn specimens(temp: &TempDir) -> Vec<Specimen> {
    let work = temp.path().join("work");
    let stopped = temp.path().join("stopped");
    let server = fill(&stopped);
    assert!(server.stop(), "it stops well");

    let crashed = temp.path().join("crashed");
    let server = fill(&crashed);
    let copied = under_load(&server, || copy_live(&crashed));
    let pid = server.pid();
    under_load(&server, || {
        let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        assert!(killed.is_ok_and(|s| s.success()));
    });
    drop(server);
    vec![
        Specimen::new("stopped", files(&stopped), true, &work),
        Specimen::new("crashed", files(&crashed), false, &work),
        Specimen::new("copied", copied, false, &work),
    ]
}

#[test]
fn whatever_is_damaged_is_named_and_never_read_as_less() {
    let temp = TempDir::new("damage");
    let specimens = specimens(&temp);
    let mut cases: Vec<_> =
        specimens.iter().flat_map(|s| s.cases().into_iter().map(move |c| (s, c))).collect();
    let total = cases.len();
    if std::env::var_os("DAMAGE").is_none_or(|v| v != "all") {
        const SHORT: usize = 13;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let day = now.expect("after 1970").as_secs() as usize / 86_400;
        // Neighbours are the damages of one file: each file has some of them.
        let mut number = day % SHORT;
        cases.retain(|_| {
            number += 1;
            number.is_multiple_of(SHORT)
        });
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..std::thread::available_parallelism().map_or(2, usize::from).min(4) {
            let (cases, next) = (&cases, &next);
            let dir = temp.path().join(format!("case{thread}"));
            scope.spawn(move || {
                while let Some((specimen, (path, damage))) =
                    cases.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    specimen.try_case(&dir, path, *damage);
                }
            });
        }
    });
    println!("{} of {total} cases", cases.len());
    assert!(total > 200, "{total} cases");
}

/// The first case of the report: without its catalog a directory must not be emptied.
#[test]
fn a_directory_without_its_catalog_or_its_commits_loses_nothing() {
    let temp = TempDir::new("catalog");
    let (dir, work) = (temp.path().join("data"), temp.path().join("work"));
    assert!(fill(&dir).stop());
    let good = files(&dir);
    for gone in ["base/1", "commitlog/0000000000", "threadgres.control"] {
        write(&work, &good);
        std::fs::remove_file(work.join(gone)).expect("it is there");
        let before = files(&work);
        let (is_good, said) = check(&work);
        assert!(!is_good && said.contains(gone), "{gone}: {said}");
        let (code, said) = Attempt::start(&work).await_service().expect_err("it is refused");
        assert!(code == Some(1) && said.contains(gone), "{gone}: {said}");
        assert!(files(&work) == before, "{gone}: something was changed");
    }
}

/// Damage in the middle of the log stops the start; said explicitly, what lies behind it is given up.
#[test]
fn damage_in_the_middle_of_the_log_is_accepted_only_when_its_place_is_said() {
    let temp = TempDir::new("accept");
    let dir = temp.path().join("data");
    let server = fill(&dir);
    let position = server.query("SELECT pg_current_wal_insert_lsn()");
    for n in 0..40 {
        server.query(&format!("INSERT INTO load VALUES ({n})"));
    }
    server.kill();
    let halves = position.trim().split_once('/').expect("a position");
    let at = usize::from_str_radix(halves.1, 16).expect("hexadecimal") + 1500;
    let segment = 256 * 1024;
    let path = dir.join(format!("wal/{:016X}", at / segment));
    let mut bytes = std::fs::read(&path).expect("the segment is there");
    bytes[at % segment] ^= 4;
    std::fs::write(&path, &bytes).expect("writable");

    let before = files(&dir);
    let (_, said) = Attempt::start(&dir).await_service().expect_err("it is refused");
    assert!(said.contains("write-ahead log is damaged at "), "{said}");
    let place = said.split("--accept-loss-from ").nth(1).expect("the choice is named");
    let place = place.split(|c: char| c == '.' || c.is_whitespace()).next().expect("a position");
    assert!(files(&dir) == before, "something was changed");

    let serve = |place: &str| {
        let port = free_port();
        let mut child = Command::new(BIN)
            .args([
                "serve",
                "--allow-root",
                "--single-process",
                "-p",
                &port.to_string(),
                "--accept-loss-from",
                place,
            ])
            .arg("-D")
            .arg(&dir)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the server's binary was built with the tests");
        let until = Instant::now() + Duration::from_secs(60);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Ok(Some(_)) = child.try_wait() {
                let mut said = String::new();
                let _ = child.stderr.take().expect("piped").read_to_string(&mut said);
                return Err(said);
            }
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok((Attempt { child, port, log: PathBuf::new() }, port))
    };
    let refused = serve("0/40000").err().expect("another place is not accepted");
    assert!(refused.contains("write-ahead log is damaged at "), "{refused}");
    let (attempt, port) = serve(place).map_err(|e| panic!("{e}")).expect("it serves");
    let mut client = Client::connect(port).expect("it serves");
    let left: i32 = client.one("SELECT count(*) FROM load").parse().expect("a number");
    assert!(left < 40, "{left} rows");
    assert_eq!(client.one("SELECT count(*) FROM plain"), "1700");
    // What is committed from now on stays, whatever pages the lost part had changed.
    for n in 0..50 {
        client.one(&format!("INSERT INTO load VALUES ({})", 1000 + n));
    }
    drop(attempt);
    assert!(std::fs::read_dir(dir.join("lost")).expect("it is there").count() > 0);
    let (is_good, said) = check(&dir);
    assert!(is_good, "{said}");
    let mut attempt = Attempt::start(&dir);
    attempt.await_service().expect("it serves again");
    let mut client = Client::connect(attempt.port).expect("it serves");
    assert_eq!(client.one("SELECT count(*) FROM load WHERE n >= 1000"), "50");
    assert_eq!(client.one("SELECT count(*) FROM load"), (left + 50).to_string());
}

/// A file that goes or shrinks while the server runs, before anybody has used it.
#[test]
fn files_that_go_while_the_server_runs_are_missed() {
    let temp = TempDir::new("running");
    let dir = temp.path().join("data");
    let server = fill(&dir);
    let node = |table: &str| server.query(&format!("SELECT pg_relation_filenode('{table}')"));
    let (plain, there) = (node("plain"), node("large"));
    assert!(server.stop());
    let server = Server::start(&dir, &["autovacuum=off"]);
    std::fs::remove_file(dir.join("base").join(&plain)).expect("it is there");
    let large = dir.join("base").join(&there);
    let bytes = std::fs::read(&large).expect("it is there");
    std::fs::write(&large, &bytes[..bytes.len() / 2]).expect("writable");
    let mut client = Client::connect(server.port).expect("it serves");
    let mut error = |sql: &str| client.query(sql).expect("an answer").error.expect("an error");
    let (code, message) = error("SELECT count(*) FROM plain");
    assert!(code == "58P01" && message.contains(&plain), "{code}: {message}");
    let (code, message) = error("SELECT count(*) FROM large");
    assert!(code == "XX001" && message.contains(&there) && message.contains("block"), "{message}");
    // What can't be read can be dropped, and the next start does not miss it.
    assert_eq!(server.query("DROP TABLE plain; SELECT 1"), "1");
    server.kill();
    let server = Server::start(&dir, &["autovacuum=off"]);
    assert_eq!(server.query("SELECT count(*) FROM load"), "0");
}

/// Files that nobody knows are set aside, not removed.
#[test]
fn a_file_that_nobody_knows_is_moved_and_never_removed() {
    let temp = TempDir::new("stray");
    let dir = temp.path().join("data");
    assert!(fill(&dir).stop());
    std::fs::write(dir.join("base/77777"), [7; 8192]).expect("writable");
    assert!(check(&dir).1.contains("77777"), "a page that is none");
    for turn in ["lost/77777", "lost/77777.2"] {
        std::fs::write(dir.join("base/77777"), [7; 8192]).expect("writable");
        let server = Server::start(&dir, &[]);
        assert_eq!(std::fs::read(dir.join(turn)).expect("it was moved"), [7; 8192]);
        assert!(!dir.join("base/77777").exists());
        let log = std::fs::read_to_string(dir.with_extension("log")).expect("a log");
        assert!(log.contains("77777"), "{log}");
        assert!(server.stop());
    }
    assert!(check(&dir).0);
}

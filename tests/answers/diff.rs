//! `make diff`: every statement under `tests/slt` gives on this server what it gives on PostgreSQL
//! 15: values, types of the columns, and the SQLSTATE of an error.
//!
//! A file is a topic, in sqllogictest's form: blocks apart by blank lines, comments after `#`.
//!
//! ```text
//! statement ok                       statement error 22012
//! CREATE TABLE t (a int)             SELECT 1 / 0
//!
//! query int4 text                    query int4 rowsort
//! SELECT 1, 'x'                      SELECT a FROM t
//! ----                               ----
//! 1<TAB>x                            …
//! ```
//!
//! What `COPY … FROM STDIN` is to read stands after a line `<<<<`: lines of text (`(blank)`: an empty
//! one), or hexadecimal digits for the binary format. What `COPY … TO STDOUT` writes is of the type
//! `copy`, one row a line, and never escaped; in the binary format, one row of hexadecimal digits.
//!
//! Values are apart by tabs; `NULL` and `(empty)` say so; a tab, line feed or backslash in a value
//! is `\t`, `\n`, `\\`. `rowsort` compares rows in any order.
//!
//! Nobody writes expectations by hand: write statements, each a block of its own without a head,
//! and let `make diff DIFF=topic REWRITE=1` add heads and rows from PostgreSQL. A comment right
//! above a block stays with it. `skipif threadgres` above a head marks a difference that
//! docs/compatibility.md explains; the block then runs on PostgreSQL only. `RECHECK=1` runs marked
//! blocks on both and takes the marks of those away that agree.
//!
//! Each file starts in an empty schema `public`. `DIFF=a,b` runs the files whose name has one of
//! these in it. `DIFF_SETTINGS="a=1 b=2"` starts this server with other settings, such as
//! `force_parallel_mode=on`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::client::{Answer, Client};
use crate::support::{Oracle, Server, TempDir, warn_moved};

/// Differences shown in full for each file.
const SHOWN_MAX: usize = 12;

/// A block of a file.
#[derive(Clone, Debug, Default)]
struct Block {
    /// Comments, kept as they are.
    comments: Vec<String>,
    /// Runs on PostgreSQL only.
    skip: bool,
    /// Rows in any order.
    sorted: bool,
    /// The statement; empty: only comments.
    sql: String,
    /// What the file expects.
    expected: Option<Outcome>,
}

/// What a statement gave.
#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    Done,
    Error(String),
    Rows { types: Vec<String>, rows: Vec<String> },
}

impl Outcome {
    /// The same, when the order of rows doesn't count.
    fn sorted(mut self, sorted: bool) -> Outcome {
        if let (Outcome::Rows { rows, .. }, true) = (&mut self, sorted) {
            rows.sort();
        }
        self
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Done => write!(f, "ok"),
            Outcome::Error(code) => write!(f, "error {code}"),
            Outcome::Rows { types, rows } => {
                write!(f, "({}) {}", types.join(" "), rows.join(" | "))
            }
        }
    }
}

fn parse(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    for part in text.split("\n\n").filter(|p| !p.trim().is_empty()) {
        let mut block = Block::default();
        let mut lines = part.trim_matches('\n').lines().peekable();
        while let Some(line) = lines.next_if(|l| l.starts_with('#')) {
            block.comments.push(line.to_owned());
        }
        block.skip = lines.next_if_eq(&"skipif threadgres").is_some();
        let head = lines.next_if(|l| {
            matches!(l.split(' ').next(), Some("statement" | "query")) && !l.ends_with(';')
        });
        let mut sql = Vec::new();
        let mut rows = None;
        for line in lines {
            match (&mut rows, line) {
                (None, "----") => rows = Some(Vec::new()),
                (None, line) => sql.push(line),
                (Some(rows), line) => rows.push(line.to_owned()),
            }
        }
        block.sql = sql.join("\n");
        if let Some(head) = head {
            let words: Vec<&str> = head.split_whitespace().skip(1).collect();
            block.sorted = words.last() == Some(&"rowsort");
            block.expected = Some(match (head.starts_with("statement"), words.as_slice()) {
                (true, ["error", code]) => Outcome::Error((*code).to_owned()),
                (true, _) => Outcome::Done,
                (false, words) => {
                    let types = words.iter().filter(|w| **w != "rowsort").map(|w| (*w).to_owned());
                    Outcome::Rows { types: types.collect(), rows: rows.unwrap_or_default() }
                }
            });
        }
        blocks.push(block);
    }
    blocks
}

fn print(blocks: &[Block]) -> String {
    let mut out = String::new();
    for block in blocks {
        for line in &block.comments {
            out += &format!("{line}\n");
        }
        if block.skip {
            out += "skipif threadgres\n";
        }
        match &block.expected {
            _ if block.sql.is_empty() => {}
            None => out += &format!("{}\n", block.sql),
            Some(Outcome::Done) => out += &format!("statement ok\n{}\n", block.sql),
            Some(Outcome::Error(code)) => {
                out += &format!("statement error {code}\n{}\n", block.sql);
            }
            Some(Outcome::Rows { types, rows }) => {
                let sort = if block.sorted { " rowsort" } else { "" };
                let head = format!("query {}{sort}", types.join(" "));
                out += &format!("{}\n{}\n----\n", head.trim_end(), block.sql);
                rows.iter().for_each(|row| out += &format!("{row}\n"));
            }
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// A server with one connection to it.
struct Side {
    port: u16,
    client: Client,
    names: HashMap<u32, String>,
}

impl Side {
    fn new(port: u16) -> Side {
        let mut client = Client::connect(port).expect("the server takes connections");
        let found = client.query("SELECT oid, typname FROM pg_catalog.pg_type WHERE oid < 16384");
        let mut names = HashMap::new();
        for row in found.map(|a| a.rows).unwrap_or_default() {
            if let [Some(oid), Some(name)] = row.as_slice() {
                names.insert(oid.parse().unwrap_or(0), name.clone());
            }
        }
        Side { port, client, names }
    }

    /// A new connection, and an empty schema.
    fn begin(&mut self) {
        self.client = Client::connect(self.port).expect("the server takes connections");
        let _ = self.client.give_up_after(Duration::from_secs(60));
        for sql in
            ["DROP SCHEMA IF EXISTS public CASCADE", "CREATE SCHEMA public", "SET TimeZone = 'UTC'"]
        {
            let answer = self.client.query(sql).expect("the connection holds");
            assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
        }
    }

    fn run(&mut self, sql: &str) -> Outcome {
        let (sql, data) = sql.split_once("\n<<<<\n").unwrap_or((sql, ""));
        match self.client.query_with(sql, |binary| copy_data(data, binary)) {
            Ok(answer) => self.outcome(answer),
            Err(error) => {
                self.client = Client::connect(self.port).expect("the server takes connections");
                Outcome::Error(format!("connection: {error}"))
            }
        }
    }

    fn outcome(&self, answer: Answer) -> Outcome {
        if let Some((code, _)) = answer.error {
            return Outcome::Error(code);
        }
        if let Some((data, binary)) = answer.copied {
            return Outcome::Rows { types: vec!["copy".to_owned()], rows: copied(&data, binary) };
        }
        let Some(types) = answer.types else { return Outcome::Done };
        let name = |oid: &u32| self.names.get(oid).cloned().unwrap_or_else(|| "user".to_owned());
        let rows = answer.rows.iter().map(|row| {
            let cells: Vec<String> = row.iter().map(|c| cell(c.as_deref())).collect();
            if cells.is_empty() { "(row)".to_owned() } else { cells.join("\t") }
        });
        Outcome::Rows { types: types.iter().map(name).collect(), rows: rows.collect() }
    }
}

/// The lines after `<<<<` as bytes.
fn copy_data(lines: &str, binary: bool) -> Vec<u8> {
    if binary {
        let digits: Vec<u8> = lines.bytes().filter(u8::is_ascii_hexdigit).collect();
        let value = |digit: u8| (digit as char).to_digit(16).unwrap_or(0) as u8;
        return digits
            .chunks(2)
            .map(|pair| pair.iter().fold(0, |b, d| b << 4 | value(*d)))
            .collect();
    }
    lines
        .lines()
        .map(|line| if line == "(blank)" { "" } else { line }.to_owned() + "\n")
        .collect::<String>()
        .into_bytes()
}

/// What COPY TO wrote as rows.
fn copied(data: &[u8], binary: bool) -> Vec<String> {
    if binary {
        return vec![data.iter().map(|b| format!("{b:02x}")).collect()];
    }
    let text = String::from_utf8_lossy(data);
    text.lines().map(|line| if line.is_empty() { "(blank)" } else { line }.to_owned()).collect()
}

fn cell(value: Option<&str>) -> String {
    match value {
        None => "NULL".to_owned(),
        Some("") => "(empty)".to_owned(),
        Some(text) => text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n"),
    }
}

/// The count of statements and what differs.
#[derive(Default)]
struct Report {
    statements: usize,
    differences: Vec<String>,
}

/// Compares the answers of both servers with the file's. Beside a release of PostgreSQL that the expectations were not
/// made with, the file alone judges this server, and what PostgreSQL answers otherwise is a warning.
fn compare(blocks: &[Block], ours: &mut Side, theirs: &mut Side, is_followed: bool) -> Report {
    let mut report = Report::default();
    ours.begin();
    theirs.begin();
    for block in blocks.iter().filter(|b| !b.sql.is_empty()) {
        let wanted = theirs.run(&block.sql).sorted(block.sorted);
        let expected = block.expected.clone().map(|e| e.sorted(block.sorted));
        let has_moved = expected.as_ref() != Some(&wanted);
        if has_moved {
            let expected =
                expected.as_ref().map_or("nothing".to_owned(), |e: &Outcome| e.to_string());
            let text = format!(
                "{}\n  the file expects: {expected}\n  PostgreSQL:       {wanted}",
                block.sql
            );
            if is_followed { report.differences.push(text) } else { warn_moved(&text) }
        }
        if block.skip {
            continue;
        }
        report.statements += 1;
        let wanted = expected.filter(|_| !is_followed).unwrap_or(wanted);
        let got = ours.run(&block.sql).sorted(block.sorted);
        if got != wanted {
            let judge = if is_followed { "PostgreSQL" } else { "the file" };
            report
                .differences
                .push(format!("{}\n  {judge}: {wanted}\n  ours:       {got}", block.sql));
        }
    }
    report
}

fn rewrite(path: &Path, mut blocks: Vec<Block>, theirs: &mut Side) {
    theirs.begin();
    for block in blocks.iter_mut().filter(|b| !b.sql.is_empty()) {
        block.expected = Some(theirs.run(&block.sql).sorted(block.sorted));
    }
    std::fs::write(path, print(&blocks)).expect("the folder is writable");
}

/// Takes away the marks of what agrees by now.
fn recheck(path: &Path, mut blocks: Vec<Block>, ours: &mut Side, theirs: &mut Side) {
    ours.begin();
    theirs.begin();
    let mut gone = 0;
    for block in blocks.iter_mut().filter(|b| !b.sql.is_empty()) {
        let same = ours.run(&block.sql).sorted(block.sorted)
            == theirs.run(&block.sql).sorted(block.sorted);
        gone += usize::from(block.skip && same);
        block.skip &= !same;
    }
    println!("{}: {gone} marks gone", path.display());
    std::fs::write(path, print(&blocks)).expect("the folder is writable");
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/slt");
    let wanted = std::env::var("DIFF").unwrap_or_default();
    let mut files: Vec<PathBuf> = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder is there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "slt")
                && wanted.split(',').any(|w| path.to_string_lossy().contains(w))
            {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[test]
fn statements_answer_as_on_postgresql() {
    let oracle = Oracle::start();
    let mut theirs = Side::new(oracle.port);
    let read = |path: &PathBuf| std::fs::read_to_string(path).expect("a file of text");
    if std::env::var("REWRITE").is_ok_and(|v| !v.is_empty()) {
        files().iter().for_each(|path| rewrite(path, parse(&read(path)), &mut theirs));
        return;
    }
    let dir = TempDir::new("diff");
    let settings = std::env::var("DIFF_SETTINGS").unwrap_or_default();
    let settings: Vec<&str> = settings.split_whitespace().collect();
    let server = Server::start(&dir.path().join("data"), &settings);
    let mut ours = Side::new(server.port);
    if std::env::var("RECHECK").is_ok_and(|v| !v.is_empty()) {
        for path in files() {
            recheck(&path, parse(&read(&path)), &mut ours, &mut theirs);
        }
        return;
    }
    let is_followed = oracle.is_followed();
    let (mut statements, mut failed) = (0, 0);
    for path in files() {
        let report = compare(&parse(&read(&path)), &mut ours, &mut theirs, is_followed);
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        println!("{name}: {} statements, {} differ", report.statements, report.differences.len());
        for difference in report.differences.iter().take(SHOWN_MAX) {
            println!("{difference}\n");
        }
        statements += report.statements;
        failed += report.differences.len();
    }
    println!("{statements} statements, {failed} differ");
    assert_eq!(failed, 0, "answers differ from PostgreSQL's");
    assert!(server.stop());
}

#[test]
fn files_print_as_they_were_read() {
    let text = "# Topic.\n\nstatement ok\nCREATE TABLE t (a int)\n\n# Why.\nquery int4 rowsort\n\
                SELECT a\nFROM t\n----\n1\n(empty)\n\nskipif threadgres\nstatement error 42P01\n\
                SELECT * FROM u\n";
    assert_eq!(print(&parse(text)), text);
    assert_eq!(parse("SELECT 1;\n")[0].sql, "SELECT 1;");
}

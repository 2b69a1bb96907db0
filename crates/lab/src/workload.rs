//! Workloads by name: their scripts in pgbench's syntax, and the tables that they need.
//!
//! `select-only`, `tpcb-like` and `simple-update` are pgbench's own scripts over its own tables, so that
//! figures can be held against anybody's. The ycsb mixes follow Cooper et al., "Benchmarking cloud
//! serving systems with YCSB" (2010): rows of ten fields of 100 bytes, keys by Zipf's distribution and
//! then scattered by a hash. Mixes D and E insert under keys that all clients agree on; scripts can't.

use std::path::Path;

use crate::driver::{Connection, Dialect, Failure};
use crate::script::{Program, Value};
use crate::{Error, Result};

/// What clients run.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its name in results.
    pub name: String,
    /// Scripts with their weights.
    pub scripts: Vec<(String, u32)>,
    /// What must be there.
    pub tables: Tables,
    /// Run before each point.
    pub before: Option<&'static str>,
}

/// Tables that a workload uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// Those of pgbench.
    Pgbench,
    /// `usertable`.
    Ycsb,
    /// `lab_hot`: one row that everybody updates.
    Hot,
    /// `lab_insert`: it only grows.
    Insert,
    /// The script's own affair.
    Unknown,
}

/// Names and what they are.
pub const NAMES: [(&str, &str); 9] = [
    ("select-only", "pgbench's: one row of pgbench_accounts by key"),
    ("tpcb-like", "pgbench's: three updates, a select and an insert in a transaction"),
    ("simple-update", "pgbench's: tpcb-like without the tables of few rows"),
    ("insert-extend", "a row of 1 kB at the end of a table without index"),
    ("hot-row", "everybody updates the same row"),
    ("ycsb-a", "half reads, half updates, by Zipf"),
    ("ycsb-b", "95 % reads, 5 % updates"),
    ("ycsb-c", "reads only"),
    ("ycsb-f", "half reads, half read-modify-write"),
];

const ACCOUNT: &str = "\\set aid random(1, 100000 * :scale)\n";
const ACCOUNT_AND_MORE: &str = "\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
";
const SELECT_ACCOUNT: &str = "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n";
const COUNTERS: &str = "UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
";
/// pgbench says END, which only PostgreSQL takes for COMMIT.
const HISTORY: &str = "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
    VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\nCOMMIT;\n";
/// The exponent is YCSB's 0.99, as near as pgbench can come to it.
const YCSB_KEY: &str = "\\set rank random_zipfian(1, :records, 1.001)
\\set key 1 + abs(hash_fnv1a(:rank, 42) % :records)
";
const YCSB_READ: &str = "SELECT * FROM usertable WHERE ycsb_key = :key;\n";
const YCSB_UPDATE: &str = "UPDATE usertable SET field0 = repeat('u', 100) WHERE ycsb_key = :key;\n";
const INSERT: &str = "INSERT INTO lab_insert VALUES (:client_id, repeat('x', 1000));\n";
const HOT: &str = "UPDATE lab_hot SET n = n + 1 WHERE id = 1;\n";

impl Workload {
    /// By name, or from a script's file.
    ///
    /// # Errors
    /// There is neither such a workload nor such a file.
    pub fn find(name: &str) -> Result<Workload> {
        let built_in = |tables, scripts: &[(&[&str], u32)]| Workload {
            name: name.to_owned(),
            scripts: scripts.iter().map(|(parts, weight)| (parts.concat(), *weight)).collect(),
            tables,
            before: (tables == Tables::Insert).then_some("TRUNCATE lab_insert"),
        };
        let read: &[&str] = &[YCSB_KEY, YCSB_READ];
        let update: &[&str] = &[YCSB_KEY, YCSB_UPDATE];
        let modify: &[&str] = &[YCSB_KEY, "BEGIN;\n", YCSB_READ, YCSB_UPDATE, "COMMIT;\n"];
        Ok(match name {
            "select-only" => built_in(Tables::Pgbench, &[(&[ACCOUNT, SELECT_ACCOUNT], 1)]),
            "tpcb-like" => {
                built_in(Tables::Pgbench, &[(&[ACCOUNT_AND_MORE, COUNTERS, HISTORY], 1)])
            }
            "simple-update" => built_in(Tables::Pgbench, &[(&[ACCOUNT_AND_MORE, HISTORY], 1)]),
            "insert-extend" => built_in(Tables::Insert, &[(&[INSERT], 1)]),
            "hot-row" => built_in(Tables::Hot, &[(&[HOT], 1)]),
            "ycsb-a" => built_in(Tables::Ycsb, &[(read, 50), (update, 50)]),
            "ycsb-b" => built_in(Tables::Ycsb, &[(read, 95), (update, 5)]),
            "ycsb-c" => built_in(Tables::Ycsb, &[(read, 1)]),
            "ycsb-f" => built_in(Tables::Ycsb, &[(read, 50), (modify, 50)]),
            _ => Workload::from_file(name)?,
        })
    }

    fn from_file(name: &str) -> Result<Workload> {
        let path = Path::new(name);
        let text = std::fs::read_to_string(path).map_err(|error| {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let but = if missing { "there is no such file".to_owned() } else { error.to_string() };
            Error::usage(format!("{name:?} is none of {} and {but}", names.join(", ")))
        })?;
        let file = path.file_name().map(|f| f.to_string_lossy().into_owned());
        Ok(Workload {
            name: file.unwrap_or_else(|| name.to_owned()),
            scripts: vec![(text, 1)],
            tables: Tables::Unknown,
            before: None,
        })
    }

    /// The scripts, compiled.
    ///
    /// # Errors
    /// A script that can't be: name, line and reason.
    pub fn compile(&self) -> Result<Program> {
        let mut program = Program::new();
        for (text, weight) in &self.scripts {
            program.add(&self.name, text, *weight)?;
        }
        Ok(program)
    }
}

/// Rows of `usertable` for each unit of scale.
const RECORDS: u32 = 10_000;

/// Sees to a workload's tables and answers its scripts' variables. Without `init` it only looks whether
/// they are there; with it they are made, also where they are of another scale.
///
/// # Errors
/// They are not there; the server's.
pub fn prepare(
    server: &mut Connection,
    tables: Tables,
    scale: Option<u32>,
    init: bool,
) -> Result<Vec<(&'static str, Value)>> {
    let (table, count) = match tables {
        Tables::Pgbench => ("pgbench_branches", "SELECT count(*) FROM pgbench_branches"),
        Tables::Ycsb => ("usertable", "SELECT count(*) / 10000 FROM usertable"),
        Tables::Hot => ("lab_hot", "SELECT count(*) FROM lab_hot"),
        Tables::Insert => ("lab_insert", "SELECT 1 FROM (SELECT count(*) FROM lab_insert) AS t"),
        Tables::Unknown => return Ok(vec![("scale", Value::Int(scale.unwrap_or(1).into()))]),
    };
    let scaled = matches!(tables, Tables::Pgbench | Tables::Ycsb);
    let found = match server.value(count) {
        Ok(count) => count.and_then(|c| c.parse::<u32>().ok()).filter(|c| *c > 0),
        // PostgreSQL's SQLSTATE for a missing table, and MySQL's.
        Err(failure) if matches!(failure.code.as_str(), "42P01" | "42S02") => None,
        Err(failure) => return Err(failure.into()),
    };
    let fits = found.is_some() && (!scaled || scale.is_none() || !init || found == scale);
    let scale = if fits {
        found.unwrap_or(1)
    } else if init {
        let scale = scale.unwrap_or(1);
        create(server, tables, scale).map_err(|failure| {
            Error::new(format!("the tables of {table} can't be made: {failure}"))
        })?;
        scale
    } else {
        return Err(Error::new(format!("the table {table} is missing or empty; --init makes it")));
    };
    let mut variables = vec![("scale", Value::Int(scale.into()))];
    if tables == Tables::Ycsb {
        variables.push(("records", Value::Int(i64::from(scale) * i64::from(RECORDS))));
    }
    Ok(variables)
}

fn create(server: &mut Connection, tables: Tables, scale: u32) -> Result<(), Failure> {
    match tables {
        Tables::Pgbench => create_pgbench(server, scale),
        Tables::Ycsb => create_ycsb(server, scale),
        Tables::Hot => {
            server.query("DROP TABLE IF EXISTS lab_hot")?;
            server.query("CREATE TABLE lab_hot (id int PRIMARY KEY, n bigint NOT NULL)")?;
            server.query("INSERT INTO lab_hot VALUES (1, 0)").map(drop)
        }
        Tables::Insert => {
            server.query("DROP TABLE IF EXISTS lab_insert")?;
            server.query("CREATE TABLE lab_insert (client int, filler text)").map(drop)
        }
        Tables::Unknown => Ok(()),
    }
}

/// The tables that `pgbench -i` makes.
fn create_pgbench(server: &mut Connection, scale: u32) -> Result<(), Failure> {
    for sql in [
        "DROP TABLE IF EXISTS pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers",
        "CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))",
        "CREATE TABLE pgbench_tellers (tid int NOT NULL, bid int, tbalance int, filler char(84)) WITH (fillfactor=100)",
        "CREATE TABLE pgbench_accounts (aid int NOT NULL, bid int, abalance int, filler char(84)) WITH (fillfactor=100)",
        "CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88)) WITH (fillfactor=100)",
    ] {
        server.query(sql.strip_suffix(STORAGE).filter(|_| is_mysql(server)).unwrap_or(sql))?;
    }
    let rows = |count: u32, row: fn(u32) -> String| blocks(count, row);
    let copies = [
        ("pgbench_branches (bid, bbalance)", rows(scale, |i| format!("{i}\t0\n"))),
        (
            "pgbench_tellers (tid, bid, tbalance)",
            rows(scale * 10, |i| format!("{i}\t{}\t0\n", (i - 1) / 10 + 1)),
        ),
        // char(84) is padded by the server; pgbench sends an empty text too.
        (
            "pgbench_accounts (aid, bid, abalance, filler)",
            rows(scale * 100_000, |i| format!("{i}\t{}\t0\t\n", (i - 1) / 100_000 + 1)),
        ),
    ];
    for (table, data) in copies {
        server.copy(table, data)?;
    }
    for sql in [
        "ALTER TABLE pgbench_branches ADD PRIMARY KEY (bid)",
        "ALTER TABLE pgbench_tellers ADD PRIMARY KEY (tid)",
        "ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid)",
    ] {
        server.query(sql)?;
    }
    let mut tables = ["pgbench_branches", "pgbench_tellers", "pgbench_accounts"].into_iter();
    tables.try_for_each(|table| analyze(server, table))
}

fn create_ycsb(server: &mut Connection, scale: u32) -> Result<(), Failure> {
    server.query("DROP TABLE IF EXISTS usertable")?;
    let fields: Vec<String> = (0..10).map(|i| format!("field{i} varchar(100)")).collect();
    let fields = fields.join(", ");
    server.query(&format!("CREATE TABLE usertable (ycsb_key bigint PRIMARY KEY, {fields})"))?;
    let row = |i: u32| {
        let letter = char::from(b'a' + (i % 26) as u8);
        let field = format!("\t{}", String::from(letter).repeat(100));
        format!("{i}{}\n", field.repeat(10))
    };
    server.copy("usertable", blocks(scale * RECORDS, row))?;
    analyze(server, "usertable")
}

/// What PostgreSQL's tables are made with.
const STORAGE: &str = " WITH (fillfactor=100)";

fn is_mysql(server: &Connection) -> bool {
    server.dialect() == Dialect::MySql
}

fn analyze(server: &mut Connection, table: &str) -> Result<(), Failure> {
    let command = if is_mysql(server) { "ANALYZE TABLE" } else { "VACUUM ANALYZE" };
    server.query(&format!("{command} {table}")).map(drop)
}

/// Rows 1 to `count` in blocks of some 64 kB.
fn blocks(count: u32, row: fn(u32) -> String) -> impl Iterator<Item = Vec<u8>> {
    let mut next = 1;
    std::iter::from_fn(move || {
        let mut block = Vec::with_capacity(70_000);
        while next <= count && block.len() < 65_536 {
            block.extend_from_slice(row(next).as_bytes());
            next += 1;
        }
        (!block.is_empty()).then_some(block)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_workload_whose_scripts_compile() {
        for (name, _) in NAMES {
            let workload = Workload::find(name).unwrap();
            assert_eq!(workload.name, name);
            workload.compile().unwrap();
        }
        let error = Workload::find("no/such.sql").unwrap_err();
        assert!(error.to_string().contains("no such file"), "{error}");
    }

    #[test]
    fn blocks_hold_all_rows_in_order() {
        let all: Vec<u8> = blocks(20_000, |i| format!("{i}\n")).flatten().collect();
        let text = String::from_utf8(all).unwrap();
        assert!(text.lines().map(|l| l.parse::<u32>().unwrap()).eq(1..=20_000));
    }
}

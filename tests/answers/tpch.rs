//! The 22 queries of TPC-H, with data from the `tpchgen` crate and the parameters with which the
//! specification validates answers, on this server and on a PostgreSQL 15 beside it.
//!
//! `make test` compares the answers at scale 0.01. `make bench-tpch` (the ignored test, in a release
//! build) does so at `SCALE` (1), takes times, each server's best of three in turns on a warm cache,
//! and prints the table that it keeps in `bench/results/`. Both servers have the same tables, keys,
//! indexes and memory, and as many helpers for a query (`HELPERS=0` for none); PostgreSQL has jit off, which is
//! faster in sum, unless `JIT=on`. `DUCKDB` names a Python that has DuckDB's package: it then answers the same queries
//! over the same rows by two threads. `PG` and `TG` name the ports of servers that run; those that have the tables are
//! taken as they are, so that a large scale is loaded once. `TIMES` (3) is how often each query is asked; once, and
//! rows are not counted.

use std::fmt::{Display, Write as _};
use std::io::{BufWriter, Write as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::support::client::Client;
use crate::support::work::work_of;
use crate::support::{Oracle, Server, TempDir};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use tpchgen::q_and_a::queries;

/// The specification's tables (section 1.4), with keys as most people declare them.
const TABLES: &str = "
CREATE TABLE region (r_regionkey int PRIMARY KEY, r_name char(25) NOT NULL, r_comment varchar(152));
CREATE TABLE nation (n_nationkey int PRIMARY KEY, n_name char(25) NOT NULL,
  n_regionkey int NOT NULL, n_comment varchar(152));
CREATE TABLE part (p_partkey int PRIMARY KEY, p_name varchar(55) NOT NULL, p_mfgr char(25) NOT NULL,
  p_brand char(10) NOT NULL, p_type varchar(25) NOT NULL, p_size int NOT NULL,
  p_container char(10) NOT NULL, p_retailprice decimal(15,2) NOT NULL, p_comment varchar(23) NOT NULL);
CREATE TABLE supplier (s_suppkey int PRIMARY KEY, s_name char(25) NOT NULL,
  s_address varchar(40) NOT NULL, s_nationkey int NOT NULL, s_phone char(15) NOT NULL,
  s_acctbal decimal(15,2) NOT NULL, s_comment varchar(101) NOT NULL);
CREATE TABLE partsupp (ps_partkey int NOT NULL, ps_suppkey int NOT NULL, ps_availqty int NOT NULL,
  ps_supplycost decimal(15,2) NOT NULL, ps_comment varchar(199) NOT NULL,
  PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE customer (c_custkey int PRIMARY KEY, c_name varchar(25) NOT NULL,
  c_address varchar(40) NOT NULL, c_nationkey int NOT NULL, c_phone char(15) NOT NULL,
  c_acctbal decimal(15,2) NOT NULL, c_mktsegment char(10) NOT NULL, c_comment varchar(117) NOT NULL);
CREATE TABLE orders (o_orderkey bigint PRIMARY KEY, o_custkey int NOT NULL,
  o_orderstatus char(1) NOT NULL, o_totalprice decimal(15,2) NOT NULL, o_orderdate date NOT NULL,
  o_orderpriority char(15) NOT NULL, o_clerk char(15) NOT NULL, o_shippriority int NOT NULL,
  o_comment varchar(79) NOT NULL);
CREATE TABLE lineitem (l_orderkey bigint NOT NULL, l_partkey int NOT NULL, l_suppkey int NOT NULL,
  l_linenumber int NOT NULL, l_quantity decimal(15,2) NOT NULL,
  l_extendedprice decimal(15,2) NOT NULL, l_discount decimal(15,2) NOT NULL,
  l_tax decimal(15,2) NOT NULL, l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL,
  l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL,
  l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL,
  PRIMARY KEY (l_orderkey, l_linenumber));";

/// What is made after loading: an index on each foreign key that no primary key begins with.
const INDEXES: &str = "
CREATE INDEX nation_region ON nation (n_regionkey);
CREATE INDEX supplier_nation ON supplier (s_nationkey);
CREATE INDEX partsupp_supplier ON partsupp (ps_suppkey);
CREATE INDEX customer_nation ON customer (c_nationkey);
CREATE INDEX orders_customer ON orders (o_custkey);
CREATE INDEX lineitem_part_supplier ON lineitem (l_partkey, l_suppkey);
CREATE INDEX lineitem_supplier ON lineitem (l_suppkey);";

/// Aggregates over a whole table, which should be twice as fast as PostgreSQL's.
const WHOLE: [(&str, &str); 5] = [
    ("count(*)", "SELECT count(*) FROM lineitem"),
    ("sum(int)", "SELECT sum(l_partkey) FROM lineitem"),
    ("sum(numeric)", "SELECT sum(l_extendedprice) FROM lineitem"),
    ("min, max, avg", "SELECT min(l_shipdate), max(l_shipdate), avg(l_quantity) FROM lineitem"),
    (
        "group by",
        "SELECT l_returnflag, l_linestatus, count(*), sum(l_quantity), sum(l_extendedprice), \
         avg(l_discount) FROM lineitem GROUP BY 1, 2 ORDER BY 1, 2",
    ),
];

/// The substitution parameters of a query's validation, and the number of rows that it asks for.
fn parameters(number: i32, scale: f64) -> (Vec<String>, Option<u32>) {
    let share = format!("{:.10}", 0.0001 / scale);
    let (list, limit): (&[&str], Option<u32>) = match number {
        1 => (&["90"], None),
        2 => (&["15", "BRASS", "EUROPE"], Some(100)),
        3 => (&["BUILDING", "1995-03-15"], Some(10)),
        4 => (&["1993-07-01"], None),
        5 => (&["ASIA", "1994-01-01"], None),
        6 => (&["1994-01-01", "0.06", "24"], None),
        7 => (&["FRANCE", "GERMANY"], None),
        8 => (&["BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"], None),
        9 => (&["green"], None),
        10 => (&["1993-10-01"], Some(20)),
        11 => (&["GERMANY", &share], None),
        12 => (&["MAIL", "SHIP", "1994-01-01"], None),
        13 => (&["special", "requests"], None),
        14 => (&["1995-09-01"], None),
        15 => (&["1996-01-01"], None),
        16 => {
            let sizes = &["49", "14", "23", "45", "19", "3", "36", "9"];
            let mut list = vec!["Brand#45".to_owned(), "MEDIUM POLISHED".to_owned()];
            list.extend(sizes.iter().map(|s| (*s).to_owned()));
            return (list, None);
        }
        17 => (&["Brand#23", "MED BOX"], None),
        18 => (&["300"], Some(100)),
        19 => (&["Brand#12", "Brand#23", "Brand#34", "1", "10", "20"], None),
        20 => (&["forest", "1994-01-01", "CANADA"], None),
        21 => (&["SAUDI ARABIA"], Some(100)),
        _ => (&["13", "31", "23", "29", "30", "18", "17"], None),
    };
    (list.iter().map(|s| (*s).to_owned()).collect(), limit)
}

/// A query's text, in PostgreSQL's dialect.
fn query(number: i32, scale: f64) -> String {
    let template = queries::query(number).expect("there are 22 queries");
    let mut text = template.replace(" day (3)", " day").replace("revenue:s", "revenue_0");
    let (list, limit) = parameters(number, scale);
    // `:10` before `:1`.
    for (n, value) in list.iter().enumerate().rev() {
        text = text.replace(&format!(":{}", n + 1), value);
    }
    let text = text.trim().trim_end_matches(';');
    match limit {
        Some(rows) => format!("{text} limit {rows}"),
        None => text.to_owned(),
    }
}

/// Streams rows into a table, by COPY.
fn copy(port: u16, table: &str, rows: impl Iterator<Item = impl Display>) {
    let mut child = Command::new("psql")
        .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "postgres"])
        .args(["-p", &port.to_string(), "-c", &format!("COPY {table} FROM STDIN (DELIMITER '|')")])
        .arg("postgres")
        .stdin(Stdio::piped())
        .spawn()
        .expect("psql is installed");
    let mut to = BufWriter::with_capacity(1 << 18, child.stdin.take().expect("stdin is piped"));
    let mut line = String::new();
    for row in rows {
        line.clear();
        write!(line, "{row}").expect("strings grow");
        // Each field ends in a bar, the last one too.
        line.pop();
        line.push('\n');
        to.write_all(line.as_bytes()).expect("psql reads");
    }
    drop(to);
    assert!(child.wait().expect("a child can be waited for").success(), "COPY {table} failed");
}

fn run(port: u16, script: &str) {
    let out = crate::support::psql(port, &["-q", "-v", "ON_ERROR_STOP=1"], script);
    assert!(!out.contains("ERROR"), "{out}");
}

/// Tables, rows, indexes, statistics, unless they are there. Returns the seconds that each part took.
fn load(port: u16, scale: f64) -> [f64; 3] {
    let begin = Instant::now();
    let mut seconds = [0.0; 3];
    if crate::support::psql(port, &["-A", "-t"], "SELECT to_regclass('lineitem_supplier')")
        .contains("lineitem")
    {
        return seconds;
    }
    run(port, TABLES);
    copy(port, "region", RegionGenerator::new(scale, 1, 1).iter());
    copy(port, "nation", NationGenerator::new(scale, 1, 1).iter());
    copy(port, "part", PartGenerator::new(scale, 1, 1).iter());
    copy(port, "supplier", SupplierGenerator::new(scale, 1, 1).iter());
    copy(port, "partsupp", PartSuppGenerator::new(scale, 1, 1).iter());
    copy(port, "customer", CustomerGenerator::new(scale, 1, 1).iter());
    copy(port, "orders", OrderGenerator::new(scale, 1, 1).iter());
    copy(port, "lineitem", LineItemGenerator::new(scale, 1, 1).iter());
    seconds[0] = begin.elapsed().as_secs_f64();
    run(port, INDEXES);
    seconds[1] = begin.elapsed().as_secs_f64() - seconds[0];
    run(port, "VACUUM ANALYZE; CHECKPOINT;");
    seconds[2] = begin.elapsed().as_secs_f64() - seconds[0] - seconds[1];
    seconds
}

/// An answer as text, and how long it took.
fn ask(client: &mut Client, sql: &str) -> (String, f64) {
    let begin = Instant::now();
    let answer = client.query(sql).expect("the connection holds");
    let seconds = begin.elapsed().as_secs_f64();
    if let Some((code, text)) = answer.error {
        return (format!("{code}: {text}"), seconds);
    }
    let field = |f: &Option<String>| f.clone().unwrap_or_else(|| "NULL".to_owned());
    let line = |row: &Vec<Option<String>>| row.iter().map(field).collect::<Vec<_>>().join("|");
    (answer.rows.iter().map(line).collect::<Vec<_>>().join("\n"), seconds)
}

/// Both servers, loaded.
struct Pair {
    ours: Client,
    theirs: Client,
    loading: [[f64; 3]; 2],
    oracle_port: u16,
    /// Those that are to end with it.
    _servers: Option<(Server, Oracle, TempDir)>,
}

impl Pair {
    fn new(scale: f64, settings: &[&str]) -> Pair {
        let dir = TempDir::new("tpch");
        let server = Server::start(&dir.path().join("data"), settings);
        let oracle = Oracle::start_with("C", settings);
        let ports = [server.port, oracle.port];
        Pair { _servers: Some((server, oracle, dir)), ..Pair::over(ports, scale, &[]) }
    }

    /// The same for servers that run, with settings for the sessions.
    fn over(ports: [u16; 2], scale: f64, settings: &[&str]) -> Pair {
        let loading = ports.map(|port| load(port, scale));
        let [ours, theirs] = ports.map(|port| {
            let mut client = Client::connect(port).expect("the server takes connections");
            for set in settings {
                let answer = client.query(&format!("SET {set}")).expect("the connection holds");
                assert!(answer.error.is_none(), "{set}");
            }
            client
        });
        Pair { ours, theirs, loading, oracle_port: ports[1], _servers: None }
    }

    /// Asks both, `times` times in turns. What differs, and each one's best time.
    fn compare(&mut self, sql: &str, times: usize) -> (Option<String>, [f64; 2]) {
        let mut best = [f64::INFINITY; 2];
        let mut difference = None;
        for _ in 0..times {
            let (a, ours) = ask(&mut self.ours, sql);
            let (b, theirs) = ask(&mut self.theirs, sql);
            best = [best[0].min(ours), best[1].min(theirs)];
            if a != b {
                difference = Some(format!("--- ours\n{a}\n--- PostgreSQL\n{b}"));
            }
        }
        (difference, best)
    }
}

#[test]
fn the_answers_are_those_of_postgresql() {
    let mut pair = Pair::new(0.01, &[]);
    let mut failures = Vec::new();
    for number in 1..=22 {
        if let (Some(difference), _) = pair.compare(&query(number, 0.01), 1) {
            failures.push(format!("query {number}\n{difference}"));
        }
    }
    for (name, sql) in WHOLE {
        if let (Some(difference), _) = pair.compare(sql, 1) {
            failures.push(format!("{name}\n{difference}"));
        }
    }
    // The same with helpers wherever there may be any, in memory and with files.
    for work_mem in ["4MB", "64kB"] {
        for set in ["force_parallel_mode = on", &format!("work_mem = '{work_mem}'")] {
            let answer = pair.ours.query(&format!("SET {set}")).expect("the connection holds");
            assert!(answer.error.is_none(), "{set}");
        }
        for number in 1..=22 {
            if let (Some(difference), _) = pair.compare(&query(number, 0.01), 1) {
                failures.push(format!("query {number}, parallel, {work_mem}\n{difference}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// A line of the table.
fn line(out: &mut String, name: &str, [ours, theirs]: [f64; 2], note: &str) {
    let text = format!(
        "| {name} | {:.1} | {:.1} | {:.2} | {note} |",
        ours * 1000.0,
        theirs * 1000.0,
        ours / theirs
    );
    println!("{text}");
    out.push_str(&text);
    out.push('\n');
}

/// Seconds of each query in DuckDB, by a Python that has its package, over PostgreSQL's rows.
fn duckdb(python: &str, port: u16, scale: f64, wanted: &dyn Fn(i32) -> bool) -> Vec<(i32, f64)> {
    let dir = TempDir::new("tpch-duckdb");
    let file = |name: String, text: &str| {
        std::fs::write(dir.path().join(name), text).expect("the folder is writable");
    };
    // Keys would only slow its loading down: it joins without indexes.
    let tables = TABLES.replace(" PRIMARY KEY", "").replace(",\n  (ps_partkey, ps_suppkey)", "");
    file("TABLES.sql".to_owned(), &tables.replace(",\n  (l_orderkey, l_linenumber)", ""));
    for number in (1..=22).filter(|n| wanted(*n)) {
        file(format!("{number:02}.sql"), &query(number, scale));
    }
    for table in
        ["region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem"]
    {
        let to = dir.path().join(format!("{table}.csv"));
        run(port, &format!("\\copy {table} to '{}' csv", to.display()));
    }
    let script =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/tpch/duckdb.py");
    let out = Command::new(python).arg(script).arg(dir.path()).arg("2").output();
    let out = out.expect("DUCKDB names a Python");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let line = |l: &str| {
        let (number, seconds) = l.split_once(' ')?;
        Some((number.parse().ok()?, seconds.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

#[test]
#[ignore = "a benchmark: make bench-tpch"]
fn benchmark() {
    let scale: f64 = std::env::var("SCALE").ok().and_then(|s| s.parse().ok()).unwrap_or(1.0);
    // Lineitem of scale 1 must fit a quarter of the buffers, or both servers read around them.
    let helpers = std::env::var("HELPERS").unwrap_or_else(|_| "2".to_owned());
    let helpers = format!("max_parallel_workers_per_gather={helpers}");
    let jit = format!("jit={}", std::env::var("JIT").unwrap_or_else(|_| "off".to_owned()));
    let [helpers, jit] = [helpers.as_str(), jit.as_str()];
    let settings = ["shared_buffers=4GB", "work_mem=64MB", "max_wal_size=8GB", helpers, jit];
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse().ok());
    let mut pair = match (number("TG"), number("PG")) {
        (Some(ours), Some(theirs)) => {
            Pair::over([ours, theirs], scale, &["work_mem='64MB'", helpers, jit])
        }
        _ => Pair::new(scale, &settings),
    };
    let times = number("TIMES").map_or(3, usize::from);
    let only = std::env::var("QUERIES").unwrap_or_default();
    let wanted = |n: i32| only.is_empty() || only.split(' ').any(|q| q == n.to_string());
    let mut out = format!(
        "# TPC-H, scale {scale}\n\nMilliseconds, best of {times}; ratio below 1: faster than PostgreSQL 15.\n\n"
    );
    let head =
        "| query | Threadgres | PostgreSQL 15 | ratio | |\n| --- | ---: | ---: | ---: | --- |\n";
    out.push_str(head);
    print!("{head}");
    let mut failures = Vec::new();
    let (mut sum, mut worst) = ([0.0; 2], 0.0f64);
    for number in (1..=22).filter(|n| wanted(*n)) {
        let (difference, best) = pair.compare(&query(number, scale), times);
        let sql = query(number, scale);
        let note = match sql.trim_end().trim_end_matches(';').contains(';') {
            _ if difference.is_some() => "**answers differ**".to_owned(),
            _ if times == 1 => String::new(),
            true => String::new(),
            false => {
                let work = [&mut pair.ours, &mut pair.theirs].map(|client| work_of(client, &sql));
                format!("{:.2} of the rows handled", work[0] / work[1].max(1.0))
            }
        };
        line(&mut out, &number.to_string(), best, &note);
        failures.extend(difference.map(|d| format!("query {number}\n{d}")));
        sum = [sum[0] + best[0], sum[1] + best[1]];
        worst = worst.max(best[0] / best[1]);
    }
    line(&mut out, "sum", sum, &format!("worst ratio {worst:.2}"));
    if let Ok(python) = std::env::var("DUCKDB") {
        let times = duckdb(&python, pair.oracle_port, scale, &wanted);
        let theirs: f64 = times.iter().map(|(_, seconds)| seconds).sum();
        let slowest = times.iter().map(|(n, s)| format!("{n}: {:.1}", s * 1000.0));
        let note = format!("DuckDB, two threads: {}", slowest.collect::<Vec<_>>().join(", "));
        line(&mut out, "sum beside DuckDB's", [sum[0], theirs], &note);
    }
    for (name, sql) in WHOLE {
        let (difference, best) = pair.compare(sql, times);
        let note = if difference.is_some() { "**answers differ**" } else { "" };
        line(&mut out, name, best, note);
        failures.extend(difference.map(|d| format!("{name}\n{d}")));
    }
    for (n, name) in ["COPY", "CREATE INDEX", "VACUUM ANALYZE"].iter().enumerate() {
        let loading = pair.loading.map(|seconds| seconds[n]);
        if loading[1] > 0.0 {
            line(&mut out, name, loading, "");
        }
    }
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/results");
    std::fs::write(folder.join(format!("tpch-{scale}.md")), out).expect("results are writable");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

//! Random queries over four ordinary tables, on this server and on a PostgreSQL 15 beside it: equal answers,
//! and plans of the same class.
//!
//! `make test` runs some hundred over a tenth of the rows and compares answers, that no table is read
//! whole here of which PostgreSQL reads a part, at half the expected cost, and that the operators of a plan handle
//! no more than four times the rows where the plan was expected to cost more. `make race` (the ignored test, in a release build) runs
//! `QUERIES` (600) over all rows, takes times, each server's best of three in turns on a warm cache, and
//! prints how the ratios lie, by class, and each query above 5 ms that takes more than twice PostgreSQL's
//! time. `SEED=n` makes others; `RACE_ON=port,port` takes servers (PostgreSQL's first) that run already.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::support::client::Client;
use crate::support::random::Random;
use crate::support::work::work_of;
use crate::support::{Oracle, Server, TempDir};

/// Rows of `customers`; `orders` has ten times as many, `items` thirty times.
const CUSTOMERS: u64 = 20_000;

/// Keys, values with and without skew, NULLs, all types that have neighbours.
const TABLES: &str = "
CREATE TABLE customers (id int PRIMARY KEY, name text, email varchar(60), score int2, country char(2),
  since date, balance numeric(10,2));
CREATE TABLE orders (id int PRIMARY KEY, customer_id int, placed timestamptz, shipped date, status text,
  total numeric(10,2), weight real, note text);
CREATE TABLE items (order_id int, line int2, product bigint, qty int, price numeric(8,2), tag varchar(20),
  PRIMARY KEY (order_id, line));
CREATE TABLE products (id bigint PRIMARY KEY, title text, price float8, added timestamp);
INSERT INTO customers SELECT i, 'Name ' || i, 'user' || i || '@mail' || i % 17 || '.org', i * 7919 % 100,
  substr('USDEFRGBITNL', 1 + 2 * (i * 31 % 6), 2), date '2020-01-01' + i * 37 % 1800, i * 7919 % 100000 / 7.0
  FROM generate_series(1, :c) i;
INSERT INTO orders SELECT i, 1 + i::bigint * 7919 * 13 % :c,
  timestamptz '2024-01-01 00:00+00' + (i::bigint * 17 % 900000) * interval '1 minute',
  CASE WHEN i % 5 > 0 THEN date '2024-01-01' + i % 620 + i % 7 END,
  (ARRAY['new','paid','sent','done','void'])[1 + i::bigint * i % 5], i::bigint * 104729 % 1000000 / 100.0,
  i * 31 % 1000 / 100.0, CASE WHEN i % 20 = 0 THEN 'note ' || i END
  FROM generate_series(1, :c * 10) i;
INSERT INTO items SELECT o, l, 1 + (o::bigint * 31 + l * 17) % 1000, 1 + o * l % 9,
  (o::bigint * 37 + l * 101) % 10000 / 100.0, CASE WHEN (o + l) % 4 > 0 THEN 'tag' || o * l % 50 END
  FROM generate_series(1, :c * 10) o, generate_series(1, 5) l WHERE (o + l) % 5 < 3;
INSERT INTO products SELECT i, 'Product ' || i, i * 1.37, timestamp '2022-01-01' + i * interval '9 hours'
  FROM generate_series(1, 1000) i;
CREATE INDEX ON customers (lower(name));
CREATE INDEX ON customers (score);
CREATE INDEX ON customers (since);
CREATE INDEX ON customers (email);
CREATE INDEX ON orders (customer_id, placed);
CREATE INDEX ON orders (status, placed);
CREATE INDEX ON orders (placed);
CREATE INDEX ON orders (weight);
CREATE INDEX ON orders (shipped);
CREATE INDEX ON orders (total) WHERE status = 'new';
CREATE INDEX ON items (product);
CREATE INDEX ON items (tag);
CREATE INDEX ON products (added);";

/// A query, and what is to be said of it.
struct Race {
    class: &'static str,
    sql: String,
    /// Types of its parameters and their values; none for most.
    params: Vec<(&'static str, String)>,
}

impl Race {
    /// Statements that make it ready, what runs it, and what ends it.
    fn statements(&self) -> (Option<String>, String) {
        if self.params.is_empty() {
            return (None, self.sql.clone());
        }
        let list = |f: &dyn Fn(&(&'static str, String)) -> String| {
            self.params.iter().map(f).collect::<Vec<_>>().join(", ")
        };
        let types = list(&|p| p.0.to_owned());
        let values = list(&|p| p.1.clone());
        (
            Some(format!("PREPARE race ({types}) AS {}", self.sql)),
            format!("EXECUTE race ({values})"),
        )
    }
}

/// Makes queries.
struct Maker {
    random: Random,
    customers: u64,
    params: Vec<(&'static str, String)>,
    /// Values become parameters.
    prepared: bool,
}

impl Maker {
    fn below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.index(of.len())]
    }

    /// A value of a type, as a constant with a cast or as a parameter.
    fn value(&mut self, ty: &'static str, text: String) -> String {
        if !self.prepared {
            return format!("{text}::{ty}");
        }
        self.params.push((ty, text));
        format!("${}", self.params.len())
    }

    fn integer(&mut self, n: u64) -> String {
        let ty = self.pick(&["int", "int", "bigint"]);
        match ty {
            "int" if !self.prepared => n.to_string(),
            ty => self.value(ty, n.to_string()),
        }
    }

    fn moment(&mut self) -> String {
        let day = self.below(620);
        let ty = self.pick(&["timestamptz", "date", "timestamp"]);
        let (year, month) = (2024 + day / 365, 1 + day / 31 % 12);
        self.value(ty, format!("'{year}-{month:02}-{:02}'", 1 + day % 28))
    }

    fn bounds(&mut self, column: &str, most: u64) -> String {
        let low = self.below(most);
        let width = [most / 2000 + 1, most / 50 + 1, most / 3 + 1];
        let high = low + self.pick(&width);
        let (low, high) = (self.integer(low), self.integer(high));
        match self.below(3) {
            0 => format!("{column} BETWEEN {low} AND {high}"),
            1 => format!("{column} >= {low} AND {column} < {high}"),
            _ => format!("{column} > {low} AND {column} <= {high}"),
        }
    }

    fn of_customer(&mut self) -> String {
        let n = self.customers;
        match self.below(9) {
            0 => self.bounds("c.id", n),
            1 => {
                let score = self.below(100);
                format!("c.score = {}", self.integer(score))
            }
            2 => self.bounds("c.score", 100),
            3 => {
                let name = self.below(n);
                format!("lower(c.name) = 'name {name}'")
            }
            4 => format!("c.since > {}", self.moment()),
            5 => format!("c.country = '{}'", self.pick(&["US", "DE", "NL"])),
            6 => {
                let id = self.below(n);
                format!("c.id = {}", self.integer(id))
            }
            7 => {
                let score = self.below(100);
                format!(
                    "c.since BETWEEN date '2022-01-01' AND date '2022-01-20' AND c.score < {score}"
                )
            }
            _ => {
                let ids: Vec<String> = (0..5).map(|_| (self.below(n)).to_string()).collect();
                format!("c.id IN ({})", ids.join(", "))
            }
        }
    }

    fn of_order(&mut self) -> String {
        let n = self.customers;
        match self.below(12) {
            0 => self.bounds("o.id", n * 10),
            1 => self.bounds("o.customer_id", n),
            2 => {
                let (a, b) = (self.moment(), self.pick(&["<", ">=", ">"]));
                format!("o.placed {b} {a}")
            }
            3 => {
                let weight = self.pick(&["9.9", "6", "0.5"]).to_owned();
                let op = self.pick(&[">", "<"]);
                format!("o.weight {op} {}", self.value("float8", weight))
            }
            4 => format!(
                "o.status = '{}' AND o.placed > {}",
                self.pick(&["new", "done"]),
                self.moment()
            ),
            5 => format!("o.shipped = {}", self.moment()),
            6 => "o.note IS NOT NULL".to_owned(),
            7 => format!("o.status = 'new' AND o.total > {}", 9000 + self.below(999)),
            8 => {
                let customer = self.below(n);
                format!("o.customer_id = {}", self.integer(customer))
            }
            9 => {
                let (a, b) = (self.bounds("o.id", n * 10), self.bounds("o.id", n * 10));
                format!("({a} OR {b})")
            }
            10 => {
                let (a, b) = (self.below(n), self.below(n * 10));
                format!("(o.customer_id = {a} OR o.id = {b})")
            }
            _ => {
                let (a, b) = (self.moment(), self.moment());
                format!("(o.status, o.placed) IN (('new', {a}), ('paid', {b}))")
            }
        }
    }

    fn rows_of_items(&mut self) -> String {
        let most = self.customers * 10;
        let count = 2 + self.below(12);
        let one = |m: &mut Maker| {
            let (order, line) = (m.below(most), m.below(5));
            format!("({order}, {line})")
        };
        let rows: Vec<String> = (0..count).map(|_| one(self)).collect();
        format!("(i.order_id, i.line) IN ({})", rows.join(", "))
    }

    fn query(&mut self) -> Race {
        self.params.clear();
        self.prepared = self.below(4) == 0;
        let n = self.customers;
        let limit = self.pick(&[1, 5, 20, 100]);
        let (class, sql) = match self.below(17) {
            0 => {
                let w = self.of_customer();
                ("one table", format!("SELECT c.* FROM customers c WHERE {w}"))
            }
            1 => {
                let w = self.of_order();
                (
                    "one table",
                    format!("SELECT count(*), sum(o.total), max(o.placed) FROM orders o WHERE {w}"),
                )
            }
            2 => {
                let w = self.rows_of_items();
                (
                    "row lists",
                    format!(
                        "SELECT i.qty, count(DISTINCT i.line) FROM items i WHERE {w} GROUP BY 1"
                    ),
                )
            }
            3 => {
                let (a, b) = (self.below(n), self.moment());
                let a = self.integer(a);
                (
                    "paging",
                    format!(
                        "SELECT o.id, o.placed FROM orders o WHERE (o.customer_id, o.placed) > ({a}, {b}) ORDER BY o.customer_id, o.placed, o.id LIMIT {limit}"
                    ),
                )
            }
            4 => {
                let w = self.of_order();
                let join = self.pick(&["JOIN", "LEFT JOIN"]);
                (
                    "order limit",
                    format!(
                        "SELECT i.qty, i.price, o.status FROM orders o {join} items i ON i.order_id = o.id WHERE {w} ORDER BY o.id, i.order_id, i.line LIMIT {limit}"
                    ),
                )
            }
            5 => {
                let w = self.of_customer();
                (
                    "order limit",
                    format!(
                        "SELECT c.name, o.id, i.line FROM customers c JOIN orders o ON o.customer_id = c.id JOIN items i ON i.order_id = o.id WHERE {w} ORDER BY o.id DESC, i.line LIMIT {limit}"
                    ),
                )
            }
            6 => {
                let w = self.of_order();
                (
                    "lateral",
                    format!(
                        "SELECT o.id, x.* FROM orders o CROSS JOIN LATERAL (SELECT i.line, i.qty FROM items i WHERE i.order_id = o.id ORDER BY i.qty DESC, i.line LIMIT 1) x WHERE {w} ORDER BY 1 LIMIT {limit}"
                    ),
                )
            }
            7 => {
                let w = self.of_customer();
                (
                    "lateral",
                    format!(
                        "SELECT c.id, x.id FROM customers c LEFT JOIN LATERAL (SELECT o.id FROM orders o WHERE o.customer_id = c.id ORDER BY o.placed DESC, o.id LIMIT 2) x ON true WHERE {w}"
                    ),
                )
            }
            8 => {
                let w = self.of_customer();
                let what = self.pick(&["max(o.total)", "count(*)", "min(o.placed)"]);
                (
                    "scalar subquery",
                    format!(
                        "SELECT c.id, (SELECT {what} FROM orders o WHERE o.customer_id = c.id) FROM customers c WHERE {w}"
                    ),
                )
            }
            9 => {
                let (w, v) = (self.of_customer(), self.of_order());
                let not = self.pick(&["", "NOT "]);
                (
                    "exists",
                    format!(
                        "SELECT count(*) FROM customers c WHERE {w} AND {not}EXISTS (SELECT FROM orders o WHERE o.customer_id = c.id AND {v})"
                    ),
                )
            }
            10 => {
                let w = self.of_order();
                (
                    "in subquery",
                    format!(
                        "SELECT c.id, c.name FROM customers c WHERE c.id IN (SELECT o.customer_id FROM orders o WHERE {w}) ORDER BY c.id LIMIT {limit}"
                    ),
                )
            }
            11 => {
                let w = self.of_order();
                let by = self.pick(&["o.status", "o.customer_id", "date_trunc('month', o.placed)"]);
                (
                    "grouping",
                    format!(
                        "SELECT {by}, count(*), avg(o.total) FROM orders o WHERE {w} GROUP BY 1"
                    ),
                )
            }
            12 => {
                let w = self.of_order();
                (
                    "windows",
                    format!(
                        "SELECT o.id, rank() OVER (PARTITION BY o.status ORDER BY o.total, o.id) FROM orders o WHERE {w}"
                    ),
                )
            }
            13 => {
                let w = self.of_order();
                (
                    "distinct on",
                    format!(
                        "SELECT DISTINCT ON (o.customer_id) o.customer_id, o.placed, o.id FROM orders o WHERE {w} ORDER BY o.customer_id, o.placed DESC, o.id"
                    ),
                )
            }
            14 => {
                let (w, v) = (self.of_customer(), self.of_order());
                (
                    "joins",
                    format!(
                        "SELECT c.country, count(*), sum(i.qty) FROM customers c JOIN orders o ON o.customer_id = c.id JOIN items i ON i.order_id = o.id WHERE {w} AND {v} GROUP BY 1"
                    ),
                )
            }
            15 => {
                let w = self.of_order();
                let of = self.pick(&["id", "placed", "total"]);
                ("one table", format!("SELECT min(o.{of}), max(o.{of}) FROM orders o WHERE {w}"))
            }
            _ => {
                let p = self.below(1000);
                let p = self.integer(p);
                let w = self.of_order();
                (
                    "joins",
                    format!(
                        "SELECT p.title, o.id, i.line FROM products p JOIN items i ON i.product = p.id JOIN orders o ON o.id = i.order_id WHERE p.id = {p} AND {w}"
                    ),
                )
            }
        };
        Race { class, sql, params: std::mem::take(&mut self.params) }
    }
}

/// The rows as text, in an order of their own unless the query has one, and how long it took.
fn ask(client: &mut Client, sql: &str, ordered: bool) -> (String, f64) {
    let begin = Instant::now();
    let answer = client.query(sql).expect("the connection holds");
    let ms = begin.elapsed().as_secs_f64() * 1000.0;
    if let Some((code, text)) = answer.error {
        return (format!("{code}: {text}"), ms);
    }
    let field = |f: &Option<String>| f.clone().unwrap_or_else(|| "NULL".to_owned());
    let line = |row: &Vec<Option<String>>| row.iter().map(field).collect::<Vec<_>>().join("|");
    let mut rows: Vec<String> = answer.rows.iter().map(line).collect();
    if !ordered {
        rows.sort_unstable();
    }
    (rows.join("\n"), ms)
}

/// The tables that a plan reads whole, and what it is expected to cost.
fn plan_of(client: &mut Client, run: &str) -> (Vec<String>, f64) {
    let plan = client.query(&format!("EXPLAIN {run}")).expect("the connection holds");
    let (mut tables, mut cost) = (Vec::new(), None);
    for line in plan.rows.iter().filter_map(|row| row.first()?.as_deref()) {
        if let Some((_, table)) = line.split_once("Seq Scan on ") {
            tables.push(table.split_whitespace().next().unwrap_or_default().to_owned());
        }
        let total =
            line.split_once("..").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        cost = cost.or(total);
    }
    (tables, cost.unwrap_or(0.0))
}

/// Both servers, loaded.
struct Pair {
    theirs: Client,
    ours: Client,
    _servers: Option<(Server, Oracle, TempDir)>,
}

impl Pair {
    fn new(customers: u64) -> Pair {
        let given = std::env::var("RACE_ON").ok();
        let (ports, servers) = match &given {
            Some(ports) => {
                let port = |n: usize| ports.split(',').nth(n).and_then(|p| p.parse().ok());
                ((port(0).expect("a port"), port(1).expect("two ports")), None)
            }
            None => {
                let dir = TempDir::new("race");
                let server = Server::start(&dir.path().join("data"), &["shared_buffers=256MB"]);
                let settings =
                    ["shared_buffers=256MB", "jit=off", "max_parallel_workers_per_gather=0"];
                let oracle = Oracle::start_with("C.UTF-8", &settings);
                ((oracle.port, server.port), Some((server, oracle, dir)))
            }
        };
        for port in [ports.0, ports.1] {
            let mut client = Client::connect(port).expect("a server listens");
            let there =
                client.query("SELECT 1 FROM products LIMIT 1").expect("the connection holds");
            if there.rows.is_empty() {
                let script = TABLES.replace(":c", &customers.to_string());
                let out = crate::support::psql(
                    port,
                    &["-q", "-v", "ON_ERROR_STOP=1"],
                    &format!("{script} VACUUM ANALYZE;"),
                );
                assert!(!out.contains("ERROR"), "{out}");
            }
        }
        let connect = |port| Client::connect(port).expect("a server listens");
        let (mut theirs, ours) = (connect(ports.0), connect(ports.1));
        for setting in ["jit = off", "max_parallel_workers_per_gather = 0"] {
            theirs.query(&format!("SET {setting}")).expect("the connection holds");
        }
        Pair { theirs, ours, _servers: servers }
    }

    fn both(&mut self, sql: &str) {
        for client in [&mut self.theirs, &mut self.ours] {
            client.query(sql).expect("the connection holds");
        }
    }
}

/// What one query showed.
struct Result {
    race: Race,
    theirs: f64,
    ours: f64,
    /// Tables read whole here and not there, in a plan that costs much more.
    whole: Vec<String>,
    /// Rows that operators handled there and here.
    work: (f64, f64),
    /// The plan is expected to cost more than PostgreSQL's.
    dearer: bool,
}

impl Result {
    /// Whether operators handle many more rows here, in a plan that was expected to cost more, or far more rows in
    /// any: rows that an index gives in order cost less than as many from a table.
    fn is_laborious(&self) -> bool {
        let (theirs, ours) = self.work;
        ours > 2000.0 && ours > 4.0 * theirs && self.dearer
            || ours > 20_000.0 && ours > 20.0 * theirs
    }
}

fn race(customers: u64, queries: usize, seed: u64, rounds: usize) -> Vec<Result> {
    let mut pair = Pair::new(customers);
    let mut maker =
        Maker { random: Random::new(seed), customers, params: Vec::new(), prepared: false };
    let mut results = Vec::with_capacity(queries);
    let mut different = Vec::new();
    for _ in 0..queries {
        let race = maker.query();
        let (prepare, run) = race.statements();
        if let Some(prepare) = &prepare {
            pair.both(prepare);
        }
        let ordered = race.sql.contains("LIMIT") && race.sql.contains("ORDER BY");
        let (mut theirs, mut ours) = (f64::INFINITY, f64::INFINITY);
        for round in 0..rounds {
            let (their, t) = ask(&mut pair.theirs, &run, ordered && race.class != "lateral");
            let (our, o) = ask(&mut pair.ours, &run, ordered && race.class != "lateral");
            (theirs, ours) = (theirs.min(t), ours.min(o));
            if round == 0 && their != our {
                different.push(format!(
                    "{}\n{prepare:?} {run}\ntheirs: {their:.300}\nours: {our:.300}\n",
                    race.class
                ));
            }
            if ours > 2000.0 {
                break;
            }
        }
        let (their, their_cost) = plan_of(&mut pair.theirs, &run);
        let (mut whole, cost) = plan_of(&mut pair.ours, &run);
        whole.retain(|table| !their.contains(table) && cost > 2.0 * their_cost);
        let work = (work_of(&mut pair.theirs, &run), work_of(&mut pair.ours, &run));
        if prepare.is_some() {
            pair.both("DEALLOCATE race");
        }
        let dearer = cost > their_cost;
        results.push(Result { race, theirs, ours, whole, work, dearer });
    }
    assert!(different.is_empty(), "answers differ:\n{}", different.join("\n"));
    results
}

fn at(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

#[test]
fn answers_are_postgresqls_and_so_are_the_plans() {
    let results = race(
        crate::support::number("CUSTOMERS", CUSTOMERS / 10),
        crate::support::number("QUERIES", 250) as usize,
        crate::support::number("SEED", 27),
        1,
    );
    let worse: Vec<String> = results
        .iter()
        .filter(|r| !r.whole.is_empty())
        .map(|r| format!("{:?}: {}", r.whole, r.race.sql))
        .collect();
    let most = results.len() / 100;
    assert!(worse.len() <= most, "read whole here, in part there:\n{}", worse.join("\n"));
    let laborious: Vec<String> = results
        .iter()
        .filter(|r| r.is_laborious())
        .map(|r| format!("{} rows there, {} here: {}", r.work.0, r.work.1, r.race.sql))
        .collect();
    assert!(laborious.len() <= most, "many more rows are handled:\n{}", laborious.join("\n"));
}

#[test]
#[ignore = "long, and times want a release build: make race"]
fn no_query_is_slower_than_there() {
    let queries = crate::support::number("QUERIES", 600) as usize;
    let results = race(CUSTOMERS, queries, crate::support::number("SEED", 1), 3);
    let mut classes: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for r in results.iter().filter(|r| r.theirs.max(r.ours) > 2.0) {
        classes.entry("all").or_default().push(r.ours / r.theirs);
        classes.entry(r.race.class).or_default().push(r.ours / r.theirs);
    }
    println!(
        "{:<16} {:>6} {:>8} {:>8} {:>8} {:>6}",
        "above 2 ms", "number", "median", "90 %", "most", "> 2"
    );
    for (class, ratios) in &mut classes {
        ratios.sort_by(f64::total_cmp);
        let slow = ratios.iter().filter(|r| **r > 2.0).count();
        println!(
            "{class:<16} {:>6} {:>8.2} {:>8.2} {:>8.1} {slow:>6}",
            ratios.len(),
            at(ratios, 0.5),
            at(ratios, 0.9),
            at(ratios, 1.0)
        );
    }
    let mut slow: Vec<&Result> =
        results.iter().filter(|r| r.ours > 5.0 && r.ours > 2.0 * r.theirs).collect();
    slow.sort_by(|a, b| (b.ours / b.theirs).total_cmp(&(a.ours / a.theirs)));
    let mut laborious: Vec<&Result> = results.iter().filter(|r| r.is_laborious()).collect();
    laborious.sort_by(|a, b| (b.work.1 / b.work.0).total_cmp(&(a.work.1 / a.work.0)));
    for r in laborious {
        let (theirs, ours) = r.work;
        println!(
            "{theirs:>9} rows there, {ours:>9} here  {}  {}",
            r.race.class,
            r.race.statements().1
        );
    }
    for r in slow {
        let params: Vec<String> = r.race.params.iter().map(|(t, v)| format!("{v}::{t}")).collect();
        println!(
            "{:>7.1} x  {:>8.2} ms there, {:>8.2} here  {} {}  {} [{}]",
            r.ours / r.theirs,
            r.theirs,
            r.ours,
            r.race.class,
            r.whole.join(","),
            r.race.sql,
            params.join(", ")
        );
    }
}

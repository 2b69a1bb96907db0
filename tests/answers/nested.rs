//! Random queries that nest everything in which an expression can stand: subqueries in FROM and in expressions, LATERAL,
//! WITH (recursive, materialised, read twice), VALUES, functions, views, outer joins, groups, windows, set operations.
//! Each is asked of PostgreSQL 15 and of this server, as it is and with fences (`OFFSET 0`, `MATERIALIZED`) that keep the
//! planner from merging subqueries: all three must answer alike.
//!
//! A run prints its seed, of which `cargo test` takes always the same; `NESTED_SEED=n` takes another one,
//! `NESTED_QUERIES=n` is for more than some (`make soak` does both). Each query has a seed of its own.

use std::time::Duration;

use crate::support::client::Client;
use crate::support::random::Random;
use crate::support::{Oracle, Server, TempDir, number};

const SEED: u64 = 20_261_128;
/// Queries of a short run.
const QUERIES: u64 = 300;
/// Differences after which a run ends.
const FAILURES_MAX: usize = 10;
/// Longer queries are left out.
const TEXT_MAX: usize = 9000;

const SCHEMA: &str = "
    CREATE TABLE t (id int PRIMARY KEY, a int, b text, c numeric);
    INSERT INTO t SELECT g, g % 4, CASE WHEN g % 5 = 0 THEN NULL ELSE 'x' || g % 3 END, g / 2.0
        FROM generate_series(1, 12) g;
    CREATE TABLE u (id int PRIMARY KEY, a int, b text, c numeric);
    INSERT INTO u SELECT g, g % 3, 'x' || g % 4, g FROM generate_series(1, 7) g;
    CREATE INDEX ON t (a);
    CREATE INDEX ON u (a);
    CREATE VIEW vt AS SELECT id, a, b, c FROM t WHERE a > 0;
    CREATE VIEW vu AS SELECT a AS id, count(*)::int AS a, max(b) AS b, sum(c) AS c FROM u GROUP BY a;
    CREATE FUNCTION ft(i int) RETURNS TABLE (id int, a int, b text, c numeric) LANGUAGE sql STABLE
        AS 'SELECT id, a, b, c FROM t WHERE t.a = i';
    ANALYZE t; ANALYZE u;";

/// A query under construction. Every relation has the columns `id int, a int, b text, c numeric`.
struct Query {
    random: Random,
    /// Says where fences stand; of its own, so that the query is the same without.
    fences: Random,
    fenced: bool,
    names: usize,
}

type Names = Vec<String>;

impl Query {
    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.random.index(all.len())]
    }

    fn of(&mut self, names: &[String]) -> String {
        names[self.random.index(names.len())].clone()
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn fence(&mut self, text: &'static str) -> &'static str {
        let stands = self.fences.below(100) < 60;
        if self.fenced && stands { text } else { "" }
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("q{}", self.names)
    }

    fn column(&mut self, rels: &[String]) -> String {
        match rels {
            [] => self.pick(&["1", "2"]).to_owned(),
            _ => {
                let rel = self.of(rels);
                format!("{rel}.{}", self.pick(&["id", "a"]))
            }
        }
    }

    fn int(&mut self, rels: &[String], depth: i32) -> String {
        if depth <= 0 {
            return match self.random.below(5) {
                0 => self.pick(&["1", "0", "3"]).to_owned(),
                _ => self.column(rels),
            };
        }
        let d = depth - 1;
        match self.random.below(14) {
            0..=2 => self.column(rels),
            3 => format!("({} + {})", self.int(rels, d), self.int(rels, d)),
            4 => format!("coalesce({}, {})", self.int(rels, d), self.int(rels, d)),
            5 => format!(
                "CASE {} WHEN {} THEN {} ELSE {} END",
                self.int(rels, d),
                self.int(rels, d),
                self.int(rels, d),
                self.int(rels, d)
            ),
            6 => format!("nullif({}, {})", self.int(rels, d), self.int(rels, d)),
            7 => format!("(SELECT max(z.a) FROM ({}) z)", self.select(rels, d)),
            8 => {
                let rows = self.select(rels, d);
                let test = self.bool(&[rels, &["z".to_owned()]].concat(), d - 1);
                format!("(SELECT count(*)::int FROM ({rows}) z WHERE {test})")
            }
            9 => format!("CASE WHEN {} THEN {} END", self.bool(rels, d), self.int(rels, d)),
            10 if !rels.is_empty() => {
                let test = self.pick(&["IS NULL", "IS NOT NULL", "IS DISTINCT FROM NULL"]);
                format!("(({} {test})::int)", self.of(rels))
            }
            11 => format!(
                "(SELECT z.id FROM ({}) z ORDER BY z.id, z.a, z.b, z.c LIMIT 1)",
                self.select(rels, d)
            ),
            12 => format!("cardinality(ARRAY(SELECT z.a FROM ({}) z))", self.select(rels, d)),
            _ => format!("({} * 2)", self.int(rels, d)),
        }
    }

    fn text(&mut self, rels: &[String]) -> String {
        match self.random.below(10) {
            0..=5 if !rels.is_empty() => format!("{}.b", self.of(rels)),
            6 | 7 if !rels.is_empty() => format!("row_to_json({})::text", self.of(rels)),
            _ => self.pick(&["'x1'", "NULL::text", "'y'"]).to_owned(),
        }
    }

    fn bool(&mut self, rels: &[String], depth: i32) -> String {
        let d = depth - 1;
        let choice = if depth <= 0 { 0 } else { self.random.below(11) };
        match choice {
            4 => format!("({} AND {})", self.bool(rels, d), self.bool(rels, d)),
            5 => format!("({} OR {})", self.bool(rels, d), self.bool(rels, d)),
            6 => format!("NOT {}", self.bool(rels, d)),
            7 => {
                let (value, test) = (self.int(rels, d), self.pick(&["IN", "NOT IN"]));
                format!("{value} {test} (SELECT z.id FROM ({}) z)", self.select(rels, d))
            }
            8 => {
                let test = self.pick(&["EXISTS", "NOT EXISTS"]);
                format!("{test} ({})", self.select(rels, d))
            }
            9 => format!("{} {}", self.int(rels, d), self.pick(&["IS NULL", "IS NOT NULL"])),
            10 => {
                let (x, op) = (self.text(rels), self.pick(&["=", "<>", "IS DISTINCT FROM"]));
                format!("{x} {op} {}", self.text(rels))
            }
            _ => {
                let (x, op) = (self.int(rels, d), self.pick(&["=", "<", ">", "<>", ">="]));
                format!("{x} {op} {}", self.int(rels, d))
            }
        }
    }

    /// An item of FROM that may use what is around (`outer`) and, LATERAL, what stands before it (`left`).
    fn item(&mut self, outer: &[String], left: &[String], depth: i32) -> (String, Names) {
        let (q, d) = (self.name(), depth - 1);
        let both = [outer, left].concat();
        let choice = if depth <= 0 { 0 } else { self.random.below(12) };
        let text = match choice {
            3 => {
                let rows = self.select(outer, d);
                format!("({rows}{}) {q}", self.fence(" OFFSET 0"))
            }
            4 | 5 => {
                let rows = self.select(&both, d);
                format!("LATERAL ({rows}{}) {q}", self.fence(" OFFSET 0"))
            }
            6 => format!(
                "(VALUES ({}, {}, 'v', 1.5), (2, 3, NULL, NULL)) {q}(id, a, b, c)",
                self.int(outer, d),
                self.int(outer, 0)
            ),
            7 => format!("LATERAL ft({}) {q}", self.int(&both, d)),
            8 => {
                let rows = self.select(&both, d);
                let kept = self.fence("MATERIALIZED ");
                format!(
                    "LATERAL (WITH w{q} AS {kept}({rows}) SELECT x.id, y.a, x.b, y.c FROM w{q} x \
                     JOIN w{q} y ON x.id = y.id{}) {q}",
                    self.fence(" OFFSET 0")
                )
            }
            9 => format!(
                "LATERAL (WITH RECURSIVE w{q}(id, a, b, c) AS (SELECT {}, 0, 'r', 1.0 UNION ALL \
                 SELECT w{q}.id + 1, w{q}.a + 1, {}, w{q}.c FROM w{q} WHERE w{q}.a < 2) \
                 SELECT * FROM w{q}{}) {q}",
                self.int(&both, d),
                self.text(&both),
                self.fence(" OFFSET 0")
            ),
            10 => return self.join(outer, left, depth),
            11 => {
                let (l, mut names) = self.item(outer, left, d);
                let (r, more) = self.item(outer, &[left, &names[..]].concat(), d);
                names.extend(more);
                return (format!("({l} LEFT JOIN {r} ON {})", self.bool(&names, d - 1)), names);
            }
            _ => format!("{} {q}", self.pick(&["t", "u", "vt", "vu"])),
        };
        (text, vec![q])
    }

    fn join(&mut self, outer: &[String], left: &[String], depth: i32) -> (String, Names) {
        let d = depth - 1;
        let (l, mut names) = self.item(outer, left, d);
        let kind = self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
        let sees_left = matches!(kind, "JOIN" | "LEFT JOIN");
        let seen = if sees_left { [left, &names[..]].concat() } else { left.to_vec() };
        let (r, more) = self.item(outer, &seen, d);
        let on = match kind {
            "FULL JOIN" => format!("{}.id = {}.id", names[0], more[0]),
            _ => self.bool(&[&names[..], &more[..]].concat(), d - 1),
        };
        names.extend(more);
        (format!("({l} {kind} {r} ON {on})"), names)
    }

    fn select(&mut self, outer: &[String], depth: i32) -> String {
        let d = depth - 1;
        let (mut from, mut rels) = self.item(outer, &[], depth);
        if depth > 0 && self.chance(40) {
            let (item, more) = self.item(outer, &rels, d);
            let all = [&rels[..], &more[..]].concat();
            from = match self.chance(50) {
                true => format!("{from}, {item}"),
                false => format!("{from} LEFT JOIN {item} ON {}", self.bool(&all, d - 1)),
            };
            rels = all;
        }
        let all = [outer, &rels[..]].concat();
        let filter = match self.chance(60) {
            true => format!(" WHERE {}", self.bool(&all, d)),
            false => String::new(),
        };
        let (id, a, b) = (self.int(&rels, 0), self.int(&all, d), self.text(&all));
        let first = rels[0].clone();
        let targets = format!("{id} AS id, {a} AS a, {b} AS b, {first}.c AS c");
        let choice = if depth <= 0 { 0 } else { self.random.below(10) };
        match choice {
            6 => format!(
                "SELECT {first}.id AS id, count({a})::int AS a, max({b}) AS b, sum({first}.c) AS c \
                 FROM {from}{filter} GROUP BY {first}.id HAVING count(*) < {} + 9",
                self.int(outer, 0)
            ),
            7 => {
                let all = self.pick(&["", "ALL "]);
                format!(
                    "(SELECT {targets} FROM {from}{filter}) UNION {all}({})",
                    self.select(outer, d)
                )
            }
            8 => format!("SELECT DISTINCT {targets} FROM {from}{filter}"),
            9 => format!(
                "SELECT id, a, b, sum(c) OVER (PARTITION BY a) AS c FROM (SELECT {targets} FROM {from}{filter}{}) z",
                self.fence(" OFFSET 0")
            ),
            _ => format!("SELECT {targets} FROM {from}{filter}"),
        }
    }
}

fn query(seed: u64, fenced: bool) -> String {
    let (random, fences) = (Random::new(seed), Random::new(!seed));
    let mut query = Query { random, fences, fenced, names: 0 };
    let depth = 1 + query.random.below(4) as i32;
    format!("SELECT id, a, b, c::numeric(12,3) FROM ({}) top", query.select(&[], depth))
}

/// What a query answers; None: it took too long.
fn run(client: &mut Client, sql: &str) -> Option<String> {
    let answer = client.query(sql).unwrap_or_else(|e| panic!("{e}: {sql}"));
    let state = answer.error.map(|(state, _)| state);
    let mut rows = answer.rows;
    rows.sort();
    (state.as_deref() != Some("57014")).then(|| format!("{rows:?} {state:?}"))
}

fn connect(port: u16) -> Client {
    let mut client = Client::connect(port).expect("the server takes connections");
    client.give_up_after(Duration::from_secs(60)).expect("sockets have time limits");
    client.query("SET statement_timeout = '5s'").expect("the connection holds");
    client
}

#[test]
fn nested_queries_agree_with_and_without_fences() {
    let seed = number("NESTED_SEED", SEED);
    let queries = number("NESTED_QUERIES", QUERIES);
    println!("NESTED_SEED={seed}");
    let dir = TempDir::new("nested");
    let server = Server::start(&dir.path().join("data"), &[]);
    let oracle = Oracle::start();
    let (mut theirs, mut ours) = (connect(oracle.port), connect(server.port));
    for client in [&mut theirs, &mut ours] {
        let made = client.query(SCHEMA).expect("the connection holds");
        assert!(made.error.is_none(), "{:?}", made.error);
    }
    let mut failures = Vec::new();
    for own in (0..queries).map(|n| seed.wrapping_add(n)) {
        let (plain, fenced) = (query(own, false), query(own, true));
        if plain.len() > TEXT_MAX {
            continue;
        }
        let Some(wanted) = run(&mut theirs, &plain) else { continue };
        for sql in [plain, fenced] {
            let given = run(&mut ours, &sql);
            if given.as_ref().is_some_and(|given| *given != wanted) {
                failures.push(format!(
                    "NESTED_SEED={own} NESTED_QUERIES=1: {sql}\nPostgreSQL: {wanted}\nours:       {given:?}"
                ));
            }
        }
        if failures.len() >= FAILURES_MAX {
            break;
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n\n"));
    drop((theirs, ours));
    assert!(server.stop());
}

//! Functions that count, put into every place where an expression can stand: what the statement answers must be the same
//! on PostgreSQL 15 and on this server, and how often and in which order they are called, too, as far as that is no
//! matter of the plan (which side of a join is read first, whether a filter is below a sort): a few of a hundred differ.
//!
//! A run prints its seed, of which `cargo test` takes always the same; `COUNTED_SEED=n` takes another one,
//! `COUNTED_STATEMENTS=n` is for more than some (`make soak` does both). Statements that differ are printed whole; each
//! has a seed of its own, so that it can be run alone.

use std::time::Duration;

use crate::support::client::Client;
use crate::support::random::Random;
use crate::support::{Oracle, Server, TempDir, number};

const SEED: u64 = 20_261_128;
/// Statements of a short run.
const STATEMENTS: u64 = 400;
/// Wrong answers after which a run ends.
const FAILURES_MAX: usize = 10;
/// Statements of a hundred whose calls may differ.
const OTHERWISE_MAX: usize = 15;

const SCHEMA: &str = "
    CREATE TABLE log (n serial, who text);
    CREATE FUNCTION k(who text, v int) RETURNS int LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO log (who) VALUES (who || ':' || coalesce(v::text, '~')); RETURN v; END $$;
    CREATE FUNCTION kb(who text, v bool) RETURNS bool LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO log (who) VALUES (who || ':' || coalesce(v::text, '~')); RETURN v; END $$;
    CREATE TABLE t (id int PRIMARY KEY, a int, b int);
    INSERT INTO t SELECT g, g % 3, CASE WHEN g % 4 = 0 THEN NULL ELSE g % 2 END FROM generate_series(1, 6) g;
    CREATE TABLE u (id int PRIMARY KEY, a int, b int);
    INSERT INTO u SELECT g, g % 2, g FROM generate_series(1, 4) g;
    CREATE TABLE w (id int, a int, b int);
    CREATE VIEW vt AS SELECT id, a, b FROM t WHERE id < 5;
    ANALYZE t; ANALYZE u;";

/// A statement under construction.
struct Statement {
    random: Random,
    /// Calls so far.
    calls: usize,
}

impl Statement {
    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.random.index(all.len())]
    }

    fn call(&mut self) -> String {
        self.calls += 1;
        format!("p{}", self.calls)
    }

    /// An integer over columns.
    fn int(&mut self, columns: &[&str], depth: i32) -> String {
        if depth <= 0 {
            return match self.random.index(columns.len() + 3) {
                0 => "1".to_owned(),
                1 => "2".to_owned(),
                2 => "NULL::int".to_owned(),
                n => columns[n - 3].to_owned(),
            };
        }
        let (d, e) = (depth - 1, depth - 2);
        match self.random.below(15) {
            0..=4 => {
                let who = self.call();
                format!("k('{who}', {})", self.int(columns, d))
            }
            5 => format!(
                "CASE {} WHEN {} THEN {} WHEN {} THEN 7 ELSE {} END",
                self.int(columns, d),
                self.int(columns, e),
                self.int(columns, e),
                self.int(columns, e),
                self.int(columns, e)
            ),
            6 => format!("nullif({}, {})", self.int(columns, d), self.int(columns, d)),
            7 => format!("coalesce({}, {}, 9)", self.int(columns, d), self.int(columns, e)),
            8 => format!("greatest({}, {})", self.int(columns, d), self.int(columns, e)),
            9 => {
                let inner = [columns, &["s.a"]].concat();
                let test = self.bool(&[&inner[..], &["s.id"]].concat(), e);
                let value = self.int(&inner, e);
                format!("(SELECT {value} FROM u s WHERE {test} ORDER BY s.id LIMIT 1)")
            }
            10 => {
                let value = self.int(&[columns, &["s.a"]].concat(), e);
                format!("(SELECT max({value}) FROM u s WHERE s.id <= 2)")
            }
            11 => format!("({} + {})", self.int(columns, d), self.int(columns, e)),
            12 => format!("(ARRAY[{}, {}])[1]", self.int(columns, d), self.int(columns, e)),
            13 => format!("({})::int", self.bool(columns, d)),
            _ => format!(
                "CASE WHEN {} THEN {} ELSE {} END",
                self.bool(columns, d),
                self.int(columns, e),
                self.int(columns, e)
            ),
        }
    }

    /// A condition over columns.
    fn bool(&mut self, columns: &[&str], depth: i32) -> String {
        if depth <= 0 {
            return format!("{} = {}", self.int(columns, 0), self.int(columns, 0));
        }
        let (d, e) = (depth - 1, depth - 2);
        match self.random.below(10) {
            0 | 1 => {
                let who = self.call();
                format!("kb('{who}', {})", self.bool(columns, d))
            }
            2 => format!("{} < {}", self.int(columns, d), self.int(columns, d)),
            3 => format!("({} AND {})", self.bool(columns, d), self.bool(columns, e)),
            4 => format!("({} OR {})", self.bool(columns, d), self.bool(columns, e)),
            5 => format!("{} IS DISTINCT FROM {}", self.int(columns, d), self.int(columns, e)),
            6 => {
                let test = self.bool(&[columns, &["s.id"]].concat(), e);
                format!("EXISTS (SELECT 1 FROM u s WHERE {test})")
            }
            7 => format!("NOT {}", self.bool(columns, d)),
            8 => format!("{} IS NULL", self.int(columns, d)),
            _ => format!("{} = {}", self.int(columns, d), self.int(columns, e)),
        }
    }

    /// An item of FROM under the name `q`, and its columns.
    fn from(&mut self, depth: i32) -> (String, Vec<&'static str>) {
        let (d, e) = (depth - 1, depth - 2);
        let all = vec!["q.id", "q.a", "q.b"];
        let text = match self.random.below(11) {
            0..=3 => "t q".to_owned(),
            4 => format!(
                "(SELECT id, {} AS a, b FROM t WHERE {} ORDER BY id) q",
                self.int(&["id", "a"], d),
                self.bool(&["id", "a", "b"], e)
            ),
            5 => format!(
                "(VALUES (1, {}, 3), (2, {}, 4)) q(id, a, b)",
                self.int(&[], d),
                self.int(&[], d)
            ),
            6 => {
                let value = self.int(&["q.a"], d);
                let text = format!("t q LEFT JOIN LATERAL (SELECT {value} AS z) l ON true");
                return (text, vec!["q.id", "q.a", "l.z"]);
            }
            7 => {
                return ("generate_series(1, 3) WITH ORDINALITY q(id, a)".to_owned(), vec!["q.id"]);
            }
            8 => format!(
                "(SELECT id, {} AS a, b FROM t ORDER BY id LIMIT {}) q",
                self.int(&["id", "a"], d),
                self.pick(&["1", "2", "3"])
            ),
            9 => "vt q".to_owned(),
            _ => format!(
                "(SELECT a AS id, count({})::int AS a, max({}) AS b FROM t GROUP BY a ORDER BY 1) q",
                self.int(&["b"], d),
                self.int(&["id"], d)
            ),
        };
        (text, all)
    }

    fn query(&mut self, depth: i32) -> String {
        let (from, columns) = self.from(depth);
        let limit = self.pick(&["", "", " LIMIT 1", " LIMIT 2", " OFFSET 1"]);
        let first = columns[0];
        let x = self.int(&columns, depth);
        match self.random.below(10) {
            0..=3 => {
                let y = self.int(&columns, depth);
                let test = self.bool(&columns, depth);
                let filter = match self.pick(&["", "some", "some"]) {
                    "" => String::new(),
                    _ => format!(" WHERE {test}"),
                };
                let key = self.int(&columns, depth - 1);
                let order = match self.random.below(3) {
                    0 => " ORDER BY q.id".to_owned(),
                    1 => format!(" ORDER BY {key}, q.id"),
                    _ => return format!("SELECT q.id, {x} AS x, {y} AS y FROM {from}{filter}"),
                };
                format!("SELECT q.id, {x} AS x, {y} AS y FROM {from}{filter}{order}{limit}")
            }
            4 => {
                let test = self.bool(&columns, depth);
                format!(
                    "SELECT {first} % 2 AS g, sum({x}), count(*) FILTER (WHERE {test}) FROM {from} GROUP BY 1 ORDER BY 1"
                )
            }
            5 => format!(
                "SELECT {first} % 2 AS g, array_agg({x} ORDER BY {first}) FROM {from} GROUP BY ROLLUP (1) ORDER BY 1"
            ),
            6 => {
                let y = self.int(&["c.x"], depth - 1);
                let kept = self.pick(&["", "MATERIALIZED "]);
                format!(
                    "WITH c AS {kept}(SELECT q.id, {x} AS x FROM {from}) SELECT c.id, c.x, {y} AS y FROM c ORDER BY c.id, c.x{limit}"
                )
            }
            7 => {
                let test = self.pick(&["true", "z.id < 3"]);
                format!("SELECT count(*) FROM (SELECT q.id, {x} AS x FROM {from}) z WHERE {test}")
            }
            8 => {
                let test = self.bool(&columns, depth);
                format!("SELECT EXISTS (SELECT {x} FROM {from} WHERE {test})")
            }
            _ => {
                let y = self.int(&["u.a"], depth);
                format!("SELECT q.id, {x} AS x FROM {from} UNION ALL SELECT u.id, {y} FROM u")
            }
        }
    }

    fn change(&mut self, depth: i32) -> String {
        let returned = self.int(&["id"], depth);
        match self.random.below(3) {
            0 => {
                let (from, columns) = self.from(depth);
                let value = self.int(&columns, depth);
                format!(
                    "INSERT INTO w (id, a) SELECT q.id, {value} FROM {from} RETURNING id, a, {returned}"
                )
            }
            1 => {
                let (a, b) = (self.int(&["id", "b"], depth), self.int(&["id"], depth));
                let test = self.bool(&["id", "a"], depth);
                format!("UPDATE t SET a = {a}, b = {b} WHERE {test} RETURNING id, a, b, {returned}")
            }
            _ => {
                let test = self.bool(&["id", "a"], depth);
                format!("DELETE FROM t WHERE {test} RETURNING id, {returned}")
            }
        }
    }
}

fn statement(seed: u64) -> String {
    let mut statement = Statement { random: Random::new(seed), calls: 0 };
    let depth = 1 + statement.random.below(3) as i32;
    match statement.random.below(4) {
        0 => statement.change(depth),
        _ => statement.query(depth),
    }
}

/// What a statement answers, and the calls that it made.
fn run(client: &mut Client, sql: &str) -> (String, String) {
    let mut ask = |sql: &str| client.query(sql).unwrap_or_else(|e| panic!("{e}: {sql}"));
    ask("BEGIN");
    ask("TRUNCATE log RESTART IDENTITY");
    let answer = ask(sql);
    let calls = match answer.error {
        Some(_) => String::new(),
        None => {
            let log = ask("SELECT string_agg(who, ' ' ORDER BY n) FROM log");
            format!("{:?}", log.rows)
        }
    };
    ask("ROLLBACK");
    let mut rows = answer.rows;
    rows.sort();
    (format!("{rows:?} {:?}", answer.error.map(|(state, _)| state)), calls)
}

fn connect(port: u16) -> Client {
    let mut client = Client::connect(port).expect("the server takes connections");
    client.give_up_after(Duration::from_secs(60)).expect("sockets have time limits");
    client.query("SET statement_timeout = '20s'").expect("the connection holds");
    client
}

#[test]
fn answers_agree_and_calls_but_for_plans() {
    let seed = number("COUNTED_SEED", SEED);
    let statements = number("COUNTED_STATEMENTS", STATEMENTS);
    println!("COUNTED_SEED={seed}");
    let dir = TempDir::new("counted");
    let server = Server::start(&dir.path().join("data"), &[]);
    let oracle = Oracle::start();
    let mut both = [connect(oracle.port), connect(server.port)];
    for client in &mut both {
        let made = client.query(SCHEMA).expect("the connection holds");
        assert!(made.error.is_none(), "{:?}", made.error);
    }
    let (mut failures, mut otherwise) = (Vec::new(), 0);
    for own in (0..statements).map(|n| seed.wrapping_add(n)) {
        let sql = statement(own);
        let [theirs, ours] = both.each_mut().map(|client| run(client, &sql));
        let shown = format!(
            "COUNTED_SEED={own} COUNTED_STATEMENTS=1: {sql}\nPostgreSQL: {theirs:?}\nours:       {ours:?}"
        );
        if theirs.0 != ours.0 {
            failures.push(shown);
        } else if theirs.1 != ours.1 {
            println!("{shown}");
            otherwise += 1;
        }
        if failures.len() == FAILURES_MAX {
            break;
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n\n"));
    let most = statements as usize * OTHERWISE_MAX / 100;
    assert!(otherwise <= most, "the calls of {otherwise} of {statements} statements differ");
    drop(both);
    assert!(server.stop());
}

//! Random statements from a compact grammar (`tests/random.grammar`): whatever they are, none may
//! end in an internal error (SQLSTATE class XX), break its connection or the server.
//!
//! A run prints its seed, of which `make test` always takes the same; `RANDOM_SEED=n` takes another one,
//! `RANDOM_SECONDS=n` is for longer than a few seconds (`make sqlsmith` does both). Statements that failed
//! so are printed whole.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::random::Random;
use crate::support::{Server, TempDir};

/// Small tables: every FROM of the grammar joins three of them.
const SCHEMA: &str = "
    CREATE TABLE n (id int PRIMARY KEY, i int, d numeric, ts timestamp, ok boolean, j jsonb, r int[]);
    INSERT INTO n VALUES (1, 1, 1.5, '2024-01-01', true, '{\"k\": 1, \"l\": [1, 2]}', '{1,2,3}'),
        (2, 2, -0.5, '2024-02-29 12:00', false, '[]', '{}'), (3, NULL, NULL, NULL, NULL, NULL, NULL),
        (4, 2147483647, 'NaN', 'infinity', true, 'null', '{{1,2},{3,4}}'), (5, 0, 0, 'epoch', false, '5', '{NULL}');
    CREATE TABLE t (id int PRIMARY KEY, s text);
    INSERT INTO t VALUES (1, 'x'), (2, ''), (3, NULL), (4, 'a,b'), (5, 'é%');
    CREATE INDEX ON t (s);
    CREATE TABLE e (x int, y text, z timestamp);
    CREATE TABLE k (id int PRIMARY KEY, v text);
    INSERT INTO k SELECT g, 'v' || g FROM generate_series(1, 9) g;
    CREATE VIEW v AS SELECT id, i, d, ts, ok, j, r FROM n WHERE i < 100;
    CREATE VIEW gv AS SELECT i, ok, grouping(i, ok) AS g, count(*) AS c, sum(d) AS s
        FROM n GROUP BY GROUPING SETS ((i), (ok), (i, ok), ());
    CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE TABLE parent (id int, v text, m int4multirange);
    CREATE TABLE child (extra int) INHERITS (parent);
    INSERT INTO parent VALUES (1, 'a', '{[1,3)}'), (2, NULL, NULL);
    INSERT INTO child VALUES (3, 'A', '{}', 7), (1, 'b', '{(,5),[9,)}', NULL);
    SET statement_timeout = '2s';";

/// Levels of the grammar before the first alternatives are taken.
const DEPTH_MAX: usize = 12;

/// Found the subquery beside a row in an index's expression.
const SEED: u64 = 1_795_534_119_749_942_301;

/// Failures after which a run ends.
const FAILURES_MAX: usize = 20;

/// Alternatives by the name of their rule.
pub type Grammar = HashMap<&'static str, Vec<&'static str>>;

/// The rules of a grammar's text.
pub fn grammar(text: &'static str) -> Grammar {
    let lines = text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    let rules = lines.map(|line| {
        let (name, body) =
            line.split_once(':').expect("a rule is a name, a colon and alternatives");
        // A lone bar parts them; `||` is an operator. What ends in a bar may be nothing, too.
        let body = body.trim();
        let mut parts: Vec<&str> = body.trim_end_matches(" |").split(" | ").collect();
        if body.ends_with(" |") {
            parts.push("");
        }
        (name, parts)
    });
    rules.collect()
}

/// Appends one of the rule's alternatives.
pub fn expand(grammar: &Grammar, rule: &str, depth: usize, random: &mut Random, out: &mut String) {
    let alternatives = grammar.get(rule).unwrap_or_else(|| panic!("the grammar has no {rule}"));
    let choice = if depth >= DEPTH_MAX { 0 } else { random.index(alternatives.len()) };
    let mut rest = alternatives[choice];
    while let Some(begin) = rest.find('<') {
        let name = rest[begin + 1..].split('>').next().unwrap_or_default();
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
            out.push_str(&rest[..=begin]);
            rest = &rest[begin + 1..];
            continue;
        }
        out.push_str(&rest[..begin]);
        expand(grammar, name, depth + 1, random, out);
        rest = &rest[begin + name.len() + 2..];
    }
    out.push_str(rest);
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn connect(port: u16) -> Client {
    let mut client = Client::connect(port).expect("the server takes connections");
    client.give_up_after(Duration::from_secs(30)).expect("sockets have time limits");
    client.query("SET statement_timeout = '2s'").expect("the connection holds");
    client
}

#[test]
fn random_statements_meet_no_internal_error() {
    let seed = number("RANDOM_SEED").unwrap_or(SEED);
    let until = Instant::now() + Duration::from_secs(number("RANDOM_SECONDS").unwrap_or(6));
    println!("RANDOM_SEED={seed}");
    let grammar = grammar(include_str!("../random.grammar"));
    let dir = TempDir::new("random");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut client = connect(server.port);
    let made = client.query(SCHEMA).expect("the connection holds");
    assert!(made.error.is_none(), "{:?}", made.error);
    let mut random = Random::new(seed);
    let mut states: BTreeMap<String, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    while Instant::now() < until && failures.len() < FAILURES_MAX {
        let mut sql = String::new();
        let depth = random.index(DEPTH_MAX - 3);
        expand(&grammar, "statement", depth, &mut random, &mut sql);
        let (state, message) = match client.query(&sql) {
            Ok(answer) => answer.error.unwrap_or_else(|| ("00000".to_owned(), String::new())),
            Err(error) => {
                failures.push(format!("{error}: {sql}"));
                client = connect(server.port);
                continue;
            }
        };
        if state.starts_with("XX") {
            failures.push(format!("{state}: {message}: {sql}"));
        }
        if state == "25P02" && client.query("ROLLBACK").is_err() {
            client = connect(server.port);
        }
        *states.entry(state).or_default() += 1;
    }
    println!("{} statements: {states:?}", states.values().sum::<usize>());
    assert!(failures.is_empty(), "seed {seed}:\n{}", failures.join("\n\n"));
    assert!(states.get("00000").is_some_and(|n| *n > 0), "some statements are right");
    let mut last = connect(server.port);
    assert!(last.query("SELECT 1").is_ok_and(|a| a.error.is_none()), "the server is alive");
    drop((client, last));
    assert!(server.stop());
}

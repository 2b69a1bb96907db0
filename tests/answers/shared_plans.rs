//! Plans are graphs: WITH queries that name the one before twice have 2^n ways through them, and subqueries in
//! subqueries may be planned in several ways each. Whatever goes through plans visits what is shared once, so that all of
//! these are planned, run and explained at once. A walk that doesn't runs into the time-out.

use crate::support::client::Client;
use crate::support::{Server, TempDir};

const LEVELS: usize = 60;

/// What one level does with the one before.
const STEPS: [(&str, &str); 12] = [
    ("join", "SELECT a.a FROM $p a, $p b"),
    ("expression", "SELECT least(a.a + b.a, 1) AS a FROM $p a, $p b"),
    ("left join", "SELECT a.a FROM $p a LEFT JOIN $p b USING (a)"),
    ("full join", "SELECT a.a FROM $p a FULL JOIN $p b USING (a)"),
    ("limit", "SELECT a.a FROM $p a LEFT JOIN $p b USING (a) ORDER BY a.a LIMIT 1"),
    ("exists", "SELECT a.a FROM $p a WHERE EXISTS (SELECT FROM $p b WHERE b.a = a.a)"),
    ("not exists", "SELECT a.a FROM $p a WHERE NOT EXISTS (SELECT FROM $p b WHERE b.a > a.a)"),
    ("in", "SELECT a FROM $p WHERE a IN (SELECT a FROM $p)"),
    ("groups", "SELECT max(a.a) AS a FROM $p a, $p b GROUP BY b.a"),
    ("scalar", "SELECT (SELECT max(b.a) FROM $p b WHERE b.a >= a.a) AS a FROM $p a"),
    ("union", "SELECT a FROM $p UNION SELECT a FROM $p"),
    ("lateral", "SELECT a.a FROM $p a, LATERAL (SELECT b.a FROM $p b WHERE b.a = a.a LIMIT 1) x"),
];

fn chain(step: &str, materialized: &str, base: &str) -> String {
    let mut text = format!("WITH c0 AS {materialized} ({base})");
    for n in 1..LEVELS {
        let below = format!("c{}", n - 1);
        text += &format!(", c{n} AS {materialized} ({})", step.replace("$p", &below));
    }
    text + &format!(" SELECT a FROM c{}", LEVELS - 1)
}

#[track_caller]
fn one(client: &mut Client, what: &str, text: &str, expected: &str) {
    let answer = client.query(text).expect("the server goes on");
    assert!(answer.error.is_none(), "{what}: {:?}", answer.error);
    let first = answer.rows.first().and_then(|row| row[0].clone()).unwrap_or_default();
    assert!(expected.is_empty() || first == expected, "{what}: {first}");
}

#[test]
fn queries_that_share_others_end_at_once() {
    let dir = TempDir::new("shared-plans");
    let server = Server::start(&dir.path().join("data"), &["workers=2"]);
    let mut client = Client::connect(server.port).expect("the server listens");
    client.one("SET statement_timeout = '60s'");
    for (name, step) in STEPS {
        for materialized in ["", "MATERIALIZED", "NOT MATERIALIZED"] {
            let text = chain(step, materialized, "SELECT 1 AS a");
            let what = format!("{name} {materialized}");
            one(&mut client, &what, &text, "1");
            for options in ["", "(VERBOSE)", "(FORMAT JSON)", "(ANALYZE, VERBOSE)"] {
                one(&mut client, &what, &format!("EXPLAIN {options} {text}"), "");
            }
            one(&mut client, &what, &format!("PREPARE p AS {text}"), "");
            one(&mut client, &what, "EXECUTE p", "1");
            one(&mut client, &what, "DEALLOCATE p", "");
        }
        // Each row of the outer query computes them anew.
        let inner = chain(step, "", "SELECT o.x AS a");
        let text = format!("SELECT l.a FROM (VALUES (1), (1)) o (x), LATERAL ({inner}) l LIMIT 1");
        one(&mut client, &format!("{name} in LATERAL"), &text, "1");
        one(
            &mut client,
            name,
            &format!("CREATE OR REPLACE VIEW v AS {}", chain(step, "", "SELECT 1 AS a")),
            "",
        );
        one(&mut client, name, "SELECT length(pg_get_viewdef('v'::regclass)) > 100", "t");
        one(&mut client, name, "DROP VIEW v", "");
    }
    assert!(server.stop());
}

/// The same without WITH: what one level does with the one before, which stands in it once.
const NESTED: [(&str, &str); 8] = [
    (
        "limit",
        "SELECT x.a FROM ($p) x LEFT JOIN (SELECT 1 AS b) y ON y.b = x.a ORDER BY x.a LIMIT 5",
    ),
    ("groups", "SELECT max(a) AS a, count(*) FROM ($p) x GROUP BY a"),
    ("twice", "SELECT least(a + a, 1) AS a FROM ($p OFFSET 0) x"),
    ("lateral", "SELECT y.a FROM (SELECT 1 AS a) x, LATERAL (SELECT x.a FROM ($p) z LIMIT 1) y"),
    ("window", "SELECT max(a) OVER (PARTITION BY a) AS a FROM ($p) x"),
    ("distinct", "SELECT DISTINCT ON (a) a FROM ($p) x ORDER BY a LIMIT 3"),
    (
        "semi join",
        "SELECT a FROM (SELECT 1 AS a) x WHERE a IN (SELECT a FROM ($p) y WHERE y.a = x.a)",
    ),
    ("scalar", "SELECT (SELECT a FROM ($p) y LIMIT 1) AS a"),
];

#[test]
fn queries_in_queries_end_at_once() {
    let dir = TempDir::new("nested-plans");
    let server = Server::start(&dir.path().join("data"), &["workers=2"]);
    let mut client = Client::connect(server.port).expect("the server listens");
    client.one("SET statement_timeout = '60s'");
    for (name, step) in NESTED {
        let mut text = "SELECT 1 AS a".to_owned();
        for _ in 0..LEVELS {
            text = step.replace("$p", &text);
        }
        one(&mut client, name, &text, "1");
        one(&mut client, name, &format!("EXPLAIN (VERBOSE) {text}"), "");
    }
    assert!(server.stop());
}

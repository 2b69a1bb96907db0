//! Views over random expressions (`tests/deparse.grammar`), printed by PostgreSQL 15 and by this server: the texts must be
//! the same, plain and pretty, and so must the types of the columns. What is printed makes a view again, which is printed
//! the same: so it is what a dump keeps.
//!
//! A run prints its seed, of which `cargo test` takes always the same; `DEPARSED_SEED=n` takes another one,
//! `DEPARSED_VIEWS=n` is for more than some (`make soak` does both). Each view has a seed of its own, so that one that
//! differs can be made alone.

use std::time::Duration;

use crate::random::{expand, grammar};
use crate::support::client::Client;
use crate::support::random::Random;
use crate::support::{Oracle, Server, TempDir, number};

const SEED: u64 = 20_261_128;
/// Views of a short run.
const VIEWS: u64 = 1_000;
/// Differences after which a run ends.
const FAILURES_MAX: usize = 20;
/// Levels of the grammar that a view has at most.
const DEPTH_MAX: usize = 12;

const SCHEMA: &str = "
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
    CREATE TYPE pair AS (x int, y text);
    CREATE DOMAIN posint AS int CHECK (value > 0);
    CREATE DOMAIN label AS varchar(10) DEFAULT 'q';
    CREATE TABLE t (id int PRIMARY KEY, i int, s smallint, b bigint, n numeric(10,2), f float8, x text, v varchar(20),
        c char(5), nm name, bo boolean, d date, ts timestamp, tz timestamptz(3), iv interval, j json, jb jsonb, ia int[],
        ta text[], va varchar(20)[], by bytea, bi bit(8), vb varbit(12), pt point, bx box, m mood, ma mood[], pr pair,
        po posint, la label, o oid, rc regclass, r int4range);
    CREATE TABLE u (id int, i int, x text, v varchar(20));
    CREATE FUNCTION plus(a int, b int DEFAULT 5) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT a + b';
    CREATE FUNCTION joined(VARIADIC xs text[]) RETURNS text LANGUAGE sql IMMUTABLE
        AS $$ SELECT array_to_string(xs, ',') $$;
    CREATE SEQUENCE sq;";

fn view(seed: u64) -> String {
    let rules = grammar(include_str!("../deparse.grammar"));
    let mut random = Random::new(seed);
    let depth = DEPTH_MAX - 1 - random.index(4);
    let mut out = String::new();
    expand(&rules, "query", depth, &mut random, &mut out);
    out
}

fn ask(client: &mut Client, sql: &str) -> Result<Vec<Vec<Option<String>>>, String> {
    let answer = client.query(sql).unwrap_or_else(|e| panic!("{e}: {sql}"));
    match answer.error {
        Some((state, message)) => Err(format!("{state}: {message}")),
        None => Ok(answer.rows),
    }
}

/// What a server shows of a view; the error when it can't be made.
fn shown(client: &mut Client, query: &str) -> Result<String, String> {
    ask(client, "DROP VIEW IF EXISTS again; DROP VIEW IF EXISTS made")?;
    ask(client, &format!("CREATE VIEW made AS {query}"))?;
    let texts = "SELECT pg_get_viewdef('made'), pg_get_viewdef('made', true),
        (SELECT string_agg(format('%s %s %s', attname, format_type(atttypid, atttypmod), attcollation), ', ' ORDER BY attnum)
         FROM pg_attribute WHERE attrelid = 'made'::regclass AND attnum > 0)";
    let rows = ask(client, texts)?;
    let text = rows.first().and_then(|row| row.first()).cloned().flatten().unwrap_or_default();
    ask(client, &format!("CREATE VIEW again AS {text}")).map_err(|e| format!("{e} in {text}"))?;
    let again = ask(client, "SELECT pg_get_viewdef('again')")?;
    Ok(format!("{rows:?}\n{again:?}"))
}

fn connect(port: u16) -> Client {
    let mut client = Client::connect(port).expect("the server takes connections");
    client.give_up_after(Duration::from_secs(60)).expect("sockets have time limits");
    ask(&mut client, SCHEMA).expect("the schema can be made");
    client
}

#[test]
#[ignore = "about 3 in 100 views are printed otherwise; see ROADMAP.md"]
fn views_are_printed_alike_and_survive() {
    let seed = number("DEPARSED_SEED", SEED);
    let views = number("DEPARSED_VIEWS", VIEWS);
    println!("DEPARSED_SEED={seed}");
    let dir = TempDir::new("deparsed");
    let server = Server::start(&dir.path().join("data"), &[]);
    let oracle = Oracle::start();
    let mut both = [connect(oracle.port), connect(server.port)];
    let (mut failures, mut made) = (Vec::new(), 0);
    for own in (0..views).map(|n| seed.wrapping_add(n)) {
        let sql = view(own);
        let [theirs, ours] = both.each_mut().map(|client| shown(client, &sql));
        // What PostgreSQL refuses is the business of other tests.
        let Ok(theirs) = theirs else { continue };
        made += 1;
        if ours.as_ref() != Ok(&theirs) {
            let ours = ours.unwrap_or_else(|e| e);
            failures.push(format!(
                "DEPARSED_SEED={own} DEPARSED_VIEWS=1: {sql}\nPostgreSQL: {theirs}\nours:       {ours}"
            ));
        }
        if failures.len() == FAILURES_MAX {
            break;
        }
    }
    println!("{made} views");
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n\n"));
    drop(both);
    assert!(server.stop());
}

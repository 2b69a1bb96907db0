//! Every relation of `pg_catalog` and `information_schema` that PostgreSQL 15 has is here, with the
//! same columns in the same order, of the same types, NOT NULL and indexed as there; and every
//! relation here can be read, and its values are of its columns' types.

use std::collections::BTreeMap;

use crate::support::client::Client;
use crate::support::{Oracle, Server, TempDir};

/// Relations and their columns as one text each.
const COLUMNS: &str = "SELECT n.nspname || '.' || c.relname, c.relkind::text || ': ' || string_agg( \
    a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN '!' ELSE '' END \
    || CASE WHEN a.attcollation = 950 AND c.relkind = 'r' AND c.relnamespace = 11 THEN '^' ELSE '' END, ', ' ORDER BY a.attnum) \
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid \
  WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') AND a.attnum > 0 \
  GROUP BY n.nspname, c.relname, c.relkind";

/// Indexes of system tables.
const INDEXES: &str = "SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) || ' ' \
    || i.indisunique::text || i.indisprimary::text || i.indkey::text || ' ' || i.indclass::text || ' ' || i.indcollation::text \
  FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = 11";

/// Types that are another here: domains of `information_schema`, and those of families that have no
/// room yet.
const TYPES: &[(&str, &str)] = &[
    ("information_schema.sql_identifier", "name"),
    ("information_schema.character_data", "character varying"),
    ("information_schema.yes_or_no", "character varying"),
    ("information_schema.cardinal_number", "integer"),
    ("information_schema.time_stamp", "timestamp with time zone"),
    ("pg_statistic[]", "text"),
];

fn ask(client: &mut Client, sql: &str) -> BTreeMap<String, String> {
    let answer = client.query(sql).expect("the connection holds");
    assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
    let pair = |row: Vec<Option<String>>| {
        let mut fields = row.into_iter().map(Option::unwrap_or_default);
        (fields.next().unwrap_or_default(), fields.next().unwrap_or_default())
    };
    answer.rows.into_iter().map(pair).collect()
}

/// What PostgreSQL has and is not the same here.
fn differing(theirs: BTreeMap<String, String>, ours: &BTreeMap<String, String>) -> Vec<String> {
    let mut out = Vec::new();
    for (name, mut there) in theirs {
        for (theirs, ours) in TYPES {
            there = there.replace(theirs, ours);
        }
        match ours.get(&name) {
            None => out.push(format!("{name} is missing")),
            Some(here) if *here != there => out.push(format!("{name}:\n  {here}\n  {there}")),
            Some(_) => {}
        }
    }
    out
}

#[test]
fn system_tables_are_postgresqls() {
    let oracle = Oracle::start();
    let dir = TempDir::new("catalogs");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut ours = Client::connect(server.port).expect("the server takes connections");
    let mut theirs = Client::connect(oracle.port).expect("PostgreSQL takes connections");

    let here = ask(&mut ours, COLUMNS);
    let there = ask(&mut theirs, COLUMNS);
    assert_documented(&there, &here);
    let mut differ = differing(there, &here);
    differ.extend(differing(ask(&mut theirs, INDEXES), &ask(&mut ours, INDEXES)));
    for name in here.keys() {
        let sql = format!("SELECT * FROM {name} LIMIT 5");
        let answer = ours.query(&sql).expect("the connection holds");
        differ.extend(answer.error.map(|e| format!("{sql}: {e:?}")));
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert!(server.stop());
}

/// Views that the reference leaves to the manuals of PostgreSQL 16 and of PostgreSQL's extensions.
const ELSEWHERE: [&str; 4] =
    ["pg_buffercache", "pg_stat_io", "pg_stat_statements", "pg_stat_statements_info"];

/// The views of a reference page: `name`, then `column type, column type …` as [`COLUMNS`] has it.
fn documented(page: &str) -> BTreeMap<String, String> {
    let view = |section: &str| {
        let (heading, body) = section.split_once("`\n")?;
        let column = |row: &str| {
            let mut fields = row.strip_prefix("| `")?.split('|');
            Some(format!(
                "{} {}",
                fields.next()?.trim().trim_end_matches('`'),
                fields.next()?.trim()
            ))
        };
        let columns: Vec<String> = body.lines().filter_map(column).collect();
        Some((format!("pg_catalog.{heading}"), columns.join(", ")))
    };
    page.split("\n## `").skip(1).filter_map(view).collect()
}

/// The reference has every column of the views that PostgreSQL has not.
fn assert_documented(theirs: &BTreeMap<String, String>, ours: &BTreeMap<String, String>) {
    let elsewhere = |name: &str| ELSEWHERE.iter().any(|e| name == format!("pg_catalog.{e}"));
    let own = ours.iter().filter(|(name, _)| !theirs.contains_key(*name) && !elsewhere(name));
    // Without the kind of relation.
    let own = own.map(|(name, columns)| (name.clone(), columns[3..].to_owned()));
    assert_eq!(documented(include_str!("../../docs/reference/views.md")), own.collect());
}

/// A value of each type that is compared with all values of such columns.
const VALUES: &[(&str, &str)] = &[
    ("\"char\"", "x"),
    ("bigint", "1"),
    ("boolean", "t"),
    ("bytea", "x"),
    ("character varying", "x"),
    ("double precision", "1"),
    ("inet", "1.1.1.1"),
    ("integer", "1"),
    ("interval", "1 s"),
    ("name", "x"),
    ("numeric", "1"),
    ("oid", "1"),
    ("pg_lsn", "0/1"),
    ("real", "1"),
    ("regproc", "now"),
    ("regtype", "int4"),
    ("smallint", "1"),
    ("text", "x"),
    ("timestamp with time zone", "2020-01-01"),
    ("xid", "1"),
];

#[test]
fn values_are_of_their_columns_types() {
    let dir = TempDir::new("catalog-types");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    let columns = "SELECT c.oid::regclass, string_agg(quote_ident(a.attname) || ':' \
            || format_type(a.atttypid, -1), ',' ORDER BY a.attnum) \
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid \
        WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') AND a.attnum > 0 \
        GROUP BY c.oid";
    let (mut compared, mut failed) = (0, Vec::new());
    for (relation, columns) in ask(&mut client, columns) {
        let comparison = |column: &str| {
            let (name, ty) = column.split_once(':')?;
            let known = VALUES.iter().find(|(known, _)| *known == ty).map(|(_, value)| *value);
            let value = known.or_else(|| ty.ends_with("[]").then_some("{}"))?;
            Some(format!("count({name} = '{value}'::{ty})"))
        };
        let all: Vec<String> = columns.split(',').filter_map(comparison).collect();
        compared += all.len();
        let sql = format!("SELECT {} FROM {relation}", all.join(", "));
        let answer = client.query(&sql).expect("the connection holds");
        failed.extend(answer.error.map(|e| format!("{sql}: {e:?}")));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(compared > 2000, "{compared}");
    assert!(server.stop());
}

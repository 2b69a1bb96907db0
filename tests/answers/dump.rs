//! pg_dump 15 of a database on this server: what it writes is what it writes of the same database on
//! PostgreSQL 15, and both servers take it back, as a script and through pg_restore with several
//! connections.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Oracle, PG_BIN, Server, TempDir, psql};

/// Everything that can be dumped, with rows.
const SCHEMA: &str = include_str!("../dump/schema.sql");

/// A client program of PostgreSQL 15; it must say nothing on standard error.
#[track_caller]
fn client(program: &str, port: u16, args: &[&str]) -> Output {
    let out = Command::new(format!("{PG_BIN}/{program}"))
        .args(["-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string()])
        .args(args)
        .output()
        .expect("PostgreSQL 15 is installed");
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && errors.is_empty(), "{program} {args:?}: {errors}");
    out
}

/// pg_dump's output without the lines that name servers and versions.
#[track_caller]
fn dump(port: u16, args: &[&str]) -> String {
    let out = client("pg_dump", port, &[args, &["postgres"]].concat());
    let text = String::from_utf8_lossy(&out.stdout);
    // The key of \restrict is a new one each time.
    let differs = ["-- Dumped", "\\restrict", "\\unrestrict"];
    let keep = |line: &&str| !differs.iter().any(|d| line.starts_with(d));
    text.lines().filter(keep).map(|l| format!("{l}\n")).collect()
}

/// A dump in pg_dump's own format goes from one server to another in place of what is there.
#[track_caller]
fn move_custom(from: u16, to: u16, folder: &Path) {
    let file = folder.join("dump").to_string_lossy().into_owned();
    client("pg_dump", from, &["-Fc", "-f", &file, "postgres"]);
    let how = ["--clean", "--if-exists", "--exit-on-error", "-j", "3", "-d", "postgres", &file];
    client("pg_restore", to, &how);
}

/// Runs a script; nothing may fail.
fn load(port: u16, what: &str, script: &str) {
    let said = psql(port, &["-q", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null"], script);
    assert!(!said.contains("ERROR") && !said.contains("FATAL"), "{what}: {said}");
}

/// The first lines that differ.
#[track_caller]
fn assert_same(what: &str, ours: &str, theirs: &str) {
    if ours == theirs {
        return;
    }
    let (a, b): (Vec<&str>, Vec<&str>) = (ours.lines().collect(), theirs.lines().collect());
    let at = a.iter().zip(&b).position(|(x, y)| x != y).unwrap_or(a.len().min(b.len()));
    let show = |lines: &[&str]| {
        lines[at.saturating_sub(8).min(lines.len())..lines.len().min(at + 12)].join("\n")
    };
    panic!("{what}: line {}\n--- ours\n{}\n--- PostgreSQL\n{}", at + 1, show(&a), show(&b));
}

const CLEAN: &str = "DROP EVENT TRIGGER at_start; DROP EVENT TRIGGER at_drop; DROP FUNCTION on_event(); \
     DROP TABLE guarded, guard_levels CASCADE; DROP SCHEMA shop, \"Odd Schema\" CASCADE; DROP TABLE plain;";

#[test]
fn a_dump_is_postgresqls_and_goes_back_into_both() {
    let oracle = Oracle::start();
    let dir = TempDir::new("dump");
    let server = Server::start(&dir.path().join("data"), &[]);
    load(oracle.port, "the schema on PostgreSQL", SCHEMA);
    load(server.port, "the schema here", SCHEMA);

    let whole = dump(oracle.port, &[]);
    let ours = dump(server.port, &[]);
    for args in [
        &["--schema-only"][..],
        &["--inserts", "--no-owner", "-x"],
        &["-n", "shop", "-t", "shop.item", "--column-inserts"],
        &["--section=pre-data", "--no-comments"],
        &["--data-only"],
        // Standard bodies of functions are kept as text.
        &["--quote-all-identifiers", "-t", "shop.*", "-t", "plain"],
        &["--clean", "--if-exists", "-T", "shop.line"],
    ] {
        let what = format!("pg_dump {args:?}");
        assert_same(&what, &dump(server.port, args), &dump(oracle.port, args));
    }
    assert_same("pg_dump", &ours, &whole);

    // Ours into PostgreSQL, and back.
    load(oracle.port, "cleaning PostgreSQL", CLEAN);
    load(oracle.port, "our dump into PostgreSQL", &ours);
    assert_same("what PostgreSQL restored", &dump(oracle.port, &[]), &whole);
    load(server.port, "cleaning ours", CLEAN);
    load(server.port, "the dump into ours", &whole);
    assert_same("what was restored here", &dump(server.port, &[]), &whole);

    move_custom(server.port, oracle.port, dir.path());
    assert_same("pg_restore into PostgreSQL", &dump(oracle.port, &[]), &whole);
    move_custom(oracle.port, server.port, dir.path());
    assert_same("pg_restore here", &dump(server.port, &[]), &whole);
    assert!(server.stop());
}

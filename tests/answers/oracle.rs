//! Every script in `tests/oracle/` is run by psql on this server and on a PostgreSQL 15; the two
//! outputs are the same, to the letter: values, headings, command tags, errors with their SQLSTATE,
//! positions, details and hints.
//!
//! A script is plain psql input. `ORACLE=name` runs one script.

use std::path::Path;

use crate::support::{Oracle, Server, TempDir, psql};

const PREAMBLE: &str = "\\set VERBOSITY verbose\n\\set SHOW_CONTEXT always\n";

/// Lines that name the server's source code, the number of the session's temporary schema or the time
/// (`\watch`) differ by nature.
fn comparable(output: &str) -> String {
    let differs = ["LOCATION:", "SCHEMA NAME:  pg_temp_"];
    let keep = |line: &&str| {
        !differs.iter().any(|d| line.starts_with(d)) && !line.contains(" (every 0.01s)")
    };
    output.lines().filter(keep).map(|l| format!("{l}\n")).collect()
}

/// The first lines that differ, with what came before.
fn difference(name: &str, ours: &str, theirs: &str) -> Option<String> {
    if ours == theirs {
        return None;
    }
    let (a, b): (Vec<&str>, Vec<&str>) = (ours.lines().collect(), theirs.lines().collect());
    let at = a.iter().zip(&b).position(|(x, y)| x != y).unwrap_or(a.len().min(b.len()));
    let from = at.saturating_sub(6);
    let show = |lines: &[&str]| lines[from.min(lines.len())..lines.len().min(at + 8)].join("\n");
    Some(format!("{name}: line {}\n--- ours\n{}\n--- PostgreSQL\n{}", at + 1, show(&a), show(&b)))
}

#[test]
fn scripts_print_what_postgresql_prints() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle");
    let mut scripts: Vec<_> = std::fs::read_dir(&folder)
        .expect("the scripts are part of the repository")
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "sql"))
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    let only = std::env::var("ORACLE").ok();
    let oracle = Oracle::start();
    let dir = TempDir::new("oracle-ours");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut failures = Vec::new();
    for path in scripts {
        let name = path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        if only.as_ref().is_some_and(|o| *o != name) {
            continue;
        }
        let script = std::fs::read_to_string(&path).expect("the script is text");
        let script = format!("{PREAMBLE}{script}");
        let ours = comparable(&psql(server.port, &["-a"], &script));
        let theirs = comparable(&psql(oracle.port, &["-a"], &script));
        failures.extend(difference(&name, &ours, &theirs));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(server.stop());
}

//! Sessions permuted by PostgreSQL's own `isolationtester`: every spec in `tests/isolation/specs` runs
//! on this server and on a PostgreSQL 15; the two outputs are the same, to the letter: results,
//! who waits and when it goes on, errors.
//!
//! A spec names sessions, their steps, and the permutations of steps to run. `ISOLATION=name` runs one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Oracle, Server, TempDir, text_of};

const TESTER: &str = "/usr/lib/postgresql/15/lib/pgxs/src/test/isolation/isolationtester";

fn specs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/isolation/specs");
    let only = std::env::var("ISOLATION").ok();
    let wanted = |path: &PathBuf| {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        only.is_none() || name == only
    };
    let entries = std::fs::read_dir(&folder).expect("the specs are part of the repository");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(wanted).collect();
    paths.sort();
    paths
}

fn run(spec: &Path, port: u16) -> String {
    let out = Command::new(TESTER)
        .arg(format!("host=127.0.0.1 port={port} user=postgres dbname=postgres"))
        .stdin(File::open(spec).expect("the spec can be read"))
        .output()
        .expect("isolationtester is installed with postgresql-server-dev-15");
    text_of(&out)
}

/// The first lines that differ, from the beginning of their permutation.
fn difference(spec: &Path, ours: &str, theirs: &str) -> Option<String> {
    if ours == theirs {
        return None;
    }
    let (a, b): (Vec<&str>, Vec<&str>) = (ours.lines().collect(), theirs.lines().collect());
    let at = a.iter().zip(&b).position(|(x, y)| x != y).unwrap_or(a.len().min(b.len()));
    let starts = |line: &&str| line.starts_with("starting permutation");
    let from = b[..at.min(b.len())].iter().rposition(starts).unwrap_or(0);
    let show = |lines: &[&str]| lines[from.min(lines.len())..lines.len().min(at + 6)].join("\n");
    let name = spec.file_name().unwrap_or_default().to_string_lossy();
    Some(format!("{name}: line {}\n--- ours\n{}\n--- PostgreSQL\n{}", at + 1, show(&a), show(&b)))
}

/// How often a spec whose output differs is run again.
const ATTEMPTS: u32 = 3;

#[test]
fn permuted_sessions_see_what_they_see_on_postgresql() {
    let specs = specs();
    assert!(!specs.is_empty());
    let oracle = Oracle::start_with("C.UTF-8", &["max_prepared_transactions=10"]);
    let dir = TempDir::new("isolation");
    let server =
        Server::start(&dir.path().join("data"), &["fsync=off", "max_prepared_transactions=10"]);
    let all = |port: u16| -> Vec<String> { specs.iter().map(|spec| run(spec, port)).collect() };
    let (ours, theirs) = std::thread::scope(|scope| {
        let theirs = scope.spawn(|| all(oracle.port));
        (all(server.port), theirs.join().expect("running the specs doesn't panic"))
    });
    let mut failures = Vec::new();
    for ((spec, ours), theirs) in specs.iter().zip(ours).zip(theirs) {
        assert!(theirs.contains("starting permutation"), "{}: {theirs}", spec.display());
        let mut differs = difference(spec, &ours, &theirs);
        // A step that another one's end lets go on is reported when the tester next looks, which may be a
        // step later: what differs must differ again.
        for _ in 0..ATTEMPTS {
            if differs.is_some() {
                differs = difference(spec, &run(spec, server.port), &run(spec, oracle.port));
            }
        }
        failures.extend(differs);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(server.stop());
}

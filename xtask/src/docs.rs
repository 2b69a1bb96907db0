//! `docs/reference/waits.md`, `docs/reference/settings.md` and `docs/internals/fault-points.md`, made from the tables of `base`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use crate::root;

/// Writes the documents.
pub fn write() -> Result<(), String> {
    for (path, text) in all()? {
        fs::write(root().join(&path), text).map_err(|e| format!("{path}: {e}"))?;
    }
    Ok(())
}

/// Names those that differ from what the tables say.
pub fn stale() -> Result<Vec<String>, String> {
    let same = |path: &str, text: &str| {
        fs::read_to_string(root().join(path)).is_ok_and(|there| there == text)
    };
    Ok(all()?.into_iter().filter(|(p, t)| !same(p, t)).map(|(p, _)| p).collect())
}

fn all() -> Result<Vec<(String, String)>, String> {
    let read = |name: &str| {
        let path = root().join("crates/base").join(name);
        fs::read_to_string(path).map_err(|e| format!("{name}: {e}"))
    };
    Ok(vec![
        ("docs/reference/waits.md".to_owned(), waits(&read("waits.txt")?)),
        ("docs/reference/settings.md".to_owned(), settings(&read("settings.txt")?)),
        ("docs/internals/fault-points.md".to_owned(), faults(&read("faults.txt")?)),
    ])
}

fn rows(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'))
}

fn waits(text: &str) -> String {
    let mut out = String::from(
        "# Wait events\n\nMade from `crates/base/waits.txt` by `cargo xtask docs`; do not edit. How to look at them:\n[monitoring](../guide/monitoring.md).\n\n| type | event | waiting for |\n| --- | --- | --- |\n",
    );
    for row in rows(text) {
        let Some((kind, rest)) = row.split_once(char::is_whitespace) else { continue };
        let Some((name, what)) = rest.trim().split_once(char::is_whitespace) else { continue };
        let _ = writeln!(out, "| {kind} | `{name}` | {} |", what.trim());
    }
    out
}

fn faults(text: &str) -> String {
    let mut out = String::from(
        "# Fault points\n\nMade from `crates/base/faults.txt` by `cargo xtask docs`; do not edit. In a server built with debug\nassertions `debug_faults = 'heap_insert=panic/50, plan=error'` makes them fail; in a release build they\nare no code at all. `tests/durability/faults.rs` shows what is left behind: nothing.\n\n| point | a panic ends | what is going on there |\n| --- | --- | --- |\n",
    );
    for row in rows(text) {
        let fields: Vec<&str> = row.splitn(3, '|').map(str::trim).collect();
        let [name, section, what] = fields[..] else { continue };
        let ends =
            if section == "critical" { "the server, which recovers" } else { "the statement" };
        let _ = writeln!(out, "| `{name}` | {ends} | {what} |");
    }
    out
}

fn settings(text: &str) -> String {
    let mut out = String::from(
        "# Settings\n\nMade from `crates/base/settings.txt` by `cargo xtask docs`; do not edit. Names, units, contexts and groups are\nPostgreSQL's. Where to begin: [install](../guide/install.md#settings).\n",
    );
    let mut groups: BTreeMap<&str, String> = BTreeMap::new();
    for row in rows(text) {
        let f: Vec<&str> = row.splitn(9, '|').map(str::trim).collect();
        let [name, kind, default, _, _, unit, context, group, what] = f[..] else { continue };
        let unit = if unit == "-" { "" } else { unit };
        let lines = groups.entry(group).or_default();
        let _ =
            writeln!(lines, "| `{name}` | {kind} | `{default}` | {unit} | {context} | {what} |");
    }
    for (group, lines) in groups {
        let _ = write!(
            out,
            "\n## {group}\n| setting | type | default | unit | changes | what it does |\n| --- | --- | --- | --- | --- | --- |\n{lines}"
        );
    }
    out
}

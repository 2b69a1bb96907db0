//! What Clippy can't say: layering, circles of files, file length, stubs, `SAFETY` lines, openings of
//! comments, documents made from tables, references in documents.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{circles, docs, links, root};

/// The crates from the lowest to the highest; each may use only those before it (the table in ARCHITECTURE.md).
const LAYERS: [&str; 25] = [
    "base",
    "sched",
    "storage",
    "txn",
    "postgresql-tools",
    "access",
    "types",
    "textsearch",
    "logical",
    "geometry",
    "catalog",
    "sql",
    "exec",
    "plpgsql",
    "javascript",
    "wasm",
    "java",
    "ddl",
    "ext-contrib",
    "ext-vector",
    "wire",
    "ext-postgres",
    "server",
    "lab",
    "threadgres",
];

/// Crates that may use `unsafe`.
const UNSAFE: [&str; 6] = ["sched", "storage", "server", "threadgres", "javascript", "java"];

/// What begins an unsafe part (put together here, so that this file has none).
const UNSAFE_WORDS: [&str; 2] = [concat!("unsafe", " {"), concat!("unsafe", " impl")];

/// Words with which no documentation comment begins: its subject is a thing that a reader would search for.
const OPENINGS: [&str; 3] = ["What ", "Who ", "Whose "];

/// Crates whose comments still begin so. Take one out when it is done; never add one. (Tests outside of `crates` may.)
const OPENINGS_LEFT: [&str; 3] = ["exec", "lab", "sql"];

/// Lines that a file may have. Lower it as files are split; never raise it.
const LONGEST: usize = 1200;

/// Runs every check; the error lists all findings.
pub fn run() -> Result<(), String> {
    let mut findings = Vec::new();
    for path in docs::stale()? {
        findings.push(format!("{path}: not what the tables say; run `cargo xtask docs`"));
    }
    for layer in LAYERS {
        check_layer(layer, &mut findings);
    }
    circles::check(&mut findings)?;
    for file in sources(&root(), ".rs")? {
        check_file(&file, &mut findings)?;
    }
    links::check(&sources(&root(), ".md")?, &mut findings)?;
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) }
}

/// Dependencies point downwards only.
fn check_layer(layer: &str, findings: &mut Vec<String>) {
    let path = root().join("crates").join(layer).join("Cargo.toml");
    let Ok(text) = fs::read_to_string(&path) else { return };
    let own = LAYERS.iter().position(|l| *l == layer).unwrap_or(0);
    let mut in_dependencies = false;
    for line in text.lines() {
        if line.starts_with('[') {
            in_dependencies = line == "[dependencies]";
        }
        let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
        let above = LAYERS.iter().position(|l| *l == name).is_some_and(|at| at >= own);
        if in_dependencies && above {
            findings.push(format!("crates/{layer}: uses {name}, which is not below it"));
        }
    }
}

fn sources(dir: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let mut out = Vec::new();
    let entries = fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() {
            if name != "target" && name != "data" && !name.starts_with('.') {
                out.extend(sources(&path, ending)?);
            }
        } else if name.ends_with(ending) {
            out.push(path);
        }
    }
    Ok(out)
}

fn check_file(path: &Path, findings: &mut Vec<String>) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let shown = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() > LONGEST {
        findings.push(format!("{shown}: {} lines, more than {LONGEST}", lines.len()));
    }
    if !text.starts_with("//!") && !shown.ends_with("tests.rs") {
        findings.push(format!("{shown}: does not open with what it is for"));
    }
    let exempt = UNSAFE.iter().any(|c| shown.starts_with(&format!("crates/{c}/")))
        || shown.starts_with("tests/")
        // Modules for WebAssembly have the host's bytes by address.
        || shown.starts_with("examples/");
    let is_left = !shown.starts_with("crates/")
        || OPENINGS_LEFT.iter().any(|c| shown.starts_with(&format!("crates/{c}/")));
    for (i, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        let comment = text.strip_prefix("/// ").or_else(|| text.strip_prefix("//! "));
        if !is_left && comment.is_some_and(|c| OPENINGS.iter().any(|w| c.starts_with(w))) {
            findings.push(format!("{shown}:{}: a comment begins with What, Who or Whose", i + 1));
        }
        let code = line.split("//").next().unwrap_or_default();
        let stub = ["todo", "unimplemented"].iter().any(|s| code.contains(&format!("{s}!(")));
        if stub {
            findings.push(format!("{shown}:{}: a stub", i + 1));
        }
        let block = UNSAFE_WORDS.iter().any(|w| code.contains(w));
        if block && !exempt {
            findings.push(format!("{shown}:{}: unsafe outside sched and storage", i + 1));
        }
        let from = i.saturating_sub(12);
        if block && !lines[from..=i].iter().any(|l| l.contains("SAFETY")) {
            findings.push(format!("{shown}:{}: unsafe without a SAFETY line", i + 1));
        }
    }
    Ok(())
}

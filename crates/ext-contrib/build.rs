//! Lists the files of `extensions/`, which become part of the binary.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root =
        Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../extensions");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in fs::read_dir(&root)? {
        let folder = folder?.path();
        if !folder.is_dir() {
            continue;
        }
        println!("cargo:rerun-if-changed={}", folder.display());
        for file in fs::read_dir(&folder)? {
            let file = file?.path();
            let kind = file.extension().and_then(|e| e.to_str()).unwrap_or_default();
            if matches!(kind, "control" | "sql") {
                files.push(fs::canonicalize(file)?);
            }
        }
    }
    files.sort();
    let mut out = String::from("&[\n");
    for file in files {
        let name = file.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        println!("cargo:rerun-if-changed={}", file.display());
        let _ = writeln!(out, "    ({name:?}, include_str!({:?})),", file.display().to_string());
    }
    out.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR").unwrap_or_default()).join("files.rs"), out)
}

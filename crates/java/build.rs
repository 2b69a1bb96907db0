//! Compiles the classes of `java/` where there is a compiler for Java, and packs their sources for where there is none:
//! then the server has them compiled by the JVM that it loads (see `src/classes.rs`).

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// The oldest Java that is served.
const RELEASE: &str = "11";

fn files(folder: &Path, ending: &str, out: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, ending, out)?;
        } else if path.extension().is_some_and(|e| e == ending) {
            out.push(path);
        }
    }
    Ok(())
}

fn compiler() -> PathBuf {
    let home = env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin/javac"));
    home.filter(|path| path.is_file()).unwrap_or_else(|| "javac".into())
}

/// Appends a name and bytes, each with its length before it, as `Boot.start` reads them.
fn pack(name: &str, bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(name.len() as u16).to_be_bytes());
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-env-changed=JAVA_HOME");
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("java");
    println!("cargo:rerun-if-changed={}", root.display());
    let target = PathBuf::from(env::var("OUT_DIR").unwrap_or_default());
    let classes = target.join("classes");
    let _ = fs::remove_dir_all(&classes);
    fs::create_dir_all(&classes)?;
    let mut sources = Vec::new();
    files(&root, "java", &mut sources)?;
    sources.sort();
    let made = Command::new(compiler())
        .args(["--release", RELEASE, "-Xlint:-options", "-nowarn", "-encoding", "UTF-8", "-d"])
        .arg(&classes)
        .args(&sources)
        .output();
    let mut compiled = Vec::new();
    match made {
        Ok(output) if output.status.success() => files(&classes, "class", &mut compiled)?,
        Ok(output) => panic!("javac: {}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => {}
    }
    compiled.sort();
    let (mut boot, mut others, mut count) = (Vec::new(), Vec::new(), 0u32);
    for file in &compiled {
        let bytes = fs::read(file)?;
        let name = file.strip_prefix(&classes).unwrap_or(file).with_extension("");
        let name = name.to_string_lossy().replace('/', ".");
        if name == "threadgres.Boot" {
            boot = bytes;
            continue;
        }
        pack(&name, &bytes, &mut others);
        count += 1;
    }
    let mut packed = count.to_be_bytes().to_vec();
    packed.extend(others);
    fs::write(target.join("boot.class"), boot)?;
    fs::write(target.join("classes.bin"), packed)?;
    let mut list = String::from("&[\n");
    for file in &sources {
        let name = file.strip_prefix(&root).unwrap_or(file).display().to_string();
        let _ = writeln!(list, "    ({name:?}, include_str!({:?})),", file.display().to_string());
    }
    list.push_str("]\n");
    fs::write(target.join("sources.rs"), list)
}

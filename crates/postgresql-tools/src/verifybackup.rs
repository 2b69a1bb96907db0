//! `pg_verifybackup`: compares a base backup with its manifest (manual, "Backup Manifest Format").

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::prelude::*;
use serde_json::Value as Json;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use crate::options::{Failure, parser, text};

pub const HELP: &str = "
pg_verifybackup verifies a backup against the backup manifest.

Usage:
  pg_verifybackup [OPTION]... BACKUPDIR

Options:
  -e, --exit-on-error         exit immediately on error
  -i, --ignore=RELATIVE_PATH  ignore indicated path
  -m, --manifest-path=PATH    use specified path for manifest
  -n, --no-parse-wal          is accepted: a start reads the log
  -q, --quiet                 do not print any output, except for errors
  -s, --skip-checksums        skip checksum verification";

/// Paths that a backup has beside what its manifest names: tools write them when they make it.
const ALWAYS_IGNORED: [&str; 5] =
    ["backup_manifest", "pg_wal", "postgresql.auto.conf", "recovery.signal", "standby.signal"];

#[derive(Default)]
struct Verify {
    dir: PathBuf,
    ignored: Vec<String>,
    skips_checksums: bool,
    stops_at_first: bool,
    errors: usize,
}

pub fn run(args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let mut verify = Verify::default();
    let (mut dir, mut manifest, mut quiet) = (None, None, false);
    verify.ignored.extend(ALWAYS_IGNORED.map(str::to_owned));
    let mut parser = parser(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('e') | Long("exit-on-error") => verify.stops_at_first = true,
            Short('i') | Long("ignore") => {
                verify.ignored.push(text(&mut parser)?.trim_end_matches('/').to_owned())
            }
            Short('m') | Long("manifest-path") => manifest = Some(PathBuf::from(parser.value()?)),
            Short('w') | Long("wal-directory") => drop(parser.value()?),
            Short('n' | 'P') | Long("no-parse-wal" | "progress") => {}
            Short('q') | Long("quiet") => quiet = true,
            Short('s') | Long("skip-checksums") => verify.skips_checksums = true,
            Value(value) if dir.is_none() => dir = Some(PathBuf::from(value)),
            other => return Err(other.unexpected().into()),
        }
    }
    verify.dir = dir.ok_or_else(|| Failure::from("error: no backup directory specified"))?;
    let path = manifest.unwrap_or_else(|| verify.dir.join("backup_manifest"));
    let bytes = std::fs::read(&path).map_err(|e| {
        Failure::from(format!("error: could not open file \"{}\": {e}", path.display()))
    })?;
    let manifest = parse(&bytes)?;
    verify.compare(&manifest)?;
    if verify.errors > 0 {
        return Ok(ExitCode::FAILURE);
    }
    if !quiet {
        println!("backup successfully verified");
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the manifest and checks its own checksum, which covers all lines before that of the checksum.
fn parse(bytes: &[u8]) -> Result<Json, Failure> {
    let invalid =
        |e: serde_json::Error| Failure::from(format!("error: parsing backup manifest failed: {e}"));
    let manifest: Json = serde_json::from_slice(bytes).map_err(invalid)?;
    let key = b"\"Manifest-Checksum\"";
    let at = bytes.windows(key.len()).rposition(|window| window == key);
    let at = at.ok_or_else(|| Failure::from("error: manifest has no checksum"))?;
    let line = bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let sum = hex(&Sha256::digest(&bytes[..line]));
    match manifest.get("Manifest-Checksum").and_then(Json::as_str) {
        Some(given) if given.eq_ignore_ascii_case(&sum) => Ok(manifest),
        _ => Err(Failure::from("error: manifest checksum mismatch")),
    }
}

impl Verify {
    fn compare(&mut self, manifest: &Json) -> Result<(), Failure> {
        let files = manifest.get("Files").and_then(Json::as_array);
        let files = files.ok_or_else(|| Failure::from("error: manifest has no files"))?;
        let mut named = BTreeSet::new();
        for file in files {
            let name = file.get("Path").and_then(Json::as_str).unwrap_or_default().to_owned();
            if !self.is_ignored(&name) {
                self.file(&name, file)?;
            }
            named.insert(name);
        }
        let mut found = Vec::new();
        list(&self.dir, "", &mut found);
        for name in found.iter().filter(|name| !named.contains(*name)) {
            if !self.is_ignored(name) {
                self.error(format!("\"{name}\" is present on disk but not in the manifest"))?;
            }
        }
        Ok(())
    }

    fn is_ignored(&self, name: &str) -> bool {
        let below = |path: &String| name == path || name.starts_with(&format!("{path}/"));
        self.ignored.iter().any(below)
    }

    fn error(&mut self, text: String) -> Result<(), Failure> {
        if self.stops_at_first {
            return Err(Failure::from(format!("error: {text}")));
        }
        eprintln!("pg_verifybackup: error: {text}");
        self.errors += 1;
        Ok(())
    }

    fn file(&mut self, name: &str, file: &Json) -> Result<(), Failure> {
        let path = self.dir.join(name);
        let Ok(about) = std::fs::metadata(&path) else {
            return self.error(format!("\"{name}\" is present in the manifest but not on disk"));
        };
        let size = file.get("Size").and_then(Json::as_u64).unwrap_or_default();
        if about.len() != size {
            let has = about.len();
            return self.error(format!(
                "\"{name}\" has size {has} on disk but size {size} in the manifest"
            ));
        }
        let text = |key| file.get(key).and_then(Json::as_str);
        let (Some(algorithm), Some(wanted)) = (text("Checksum-Algorithm"), text("Checksum")) else {
            return Ok(());
        };
        if self.skips_checksums {
            return Ok(());
        }
        let sum = sum(&path, algorithm)
            .map_err(|e| Failure::from(format!("error: could not read file \"{name}\": {e}")))?;
        if sum.is_none_or(|sum| sum.eq_ignore_ascii_case(wanted)) {
            return Ok(());
        }
        self.error(format!("checksum mismatch for file \"{name}\""))
    }
}

/// All files below a folder, as paths from the top.
fn list(dir: &Path, below: &str, out: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        match entry.path().is_dir() {
            true => list(&entry.path(), &format!("{name}/"), out),
            false => out.push(name),
        }
    }
}

/// A file's checksum; None: an algorithm that is not known.
fn sum(path: &Path, algorithm: &str) -> std::io::Result<Option<String>> {
    Ok(Some(match algorithm.to_ascii_uppercase().as_str() {
        "SHA224" => digest::<Sha224>(path)?,
        "SHA256" => digest::<Sha256>(path)?,
        "SHA384" => digest::<Sha384>(path)?,
        "SHA512" => digest::<Sha512>(path)?,
        "CRC32C" => {
            let mut crc = 0;
            each_part(path, &mut |bytes| crc = crc32c::crc32c_append(crc, bytes))?;
            // PostgreSQL prints the bytes as they lie in memory.
            hex(&crc.to_le_bytes())
        }
        _ => return Ok(None),
    }))
}

fn digest<D: Digest>(path: &Path) -> std::io::Result<String> {
    let mut digest = D::new();
    each_part(path, &mut |bytes| digest.update(bytes))?;
    Ok(hex(&digest.finalize()))
}

fn each_part(path: &Path, take: &mut dyn FnMut(&[u8])) -> std::io::Result<()> {
    let mut file = std::fs::File::open(path)?;
    let mut buffer = vec![0; 128 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            length => take(&buffer[..length]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

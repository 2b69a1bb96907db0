//! `pg_archivecleanup`: removes segments of an archive that come before one that is still needed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::prelude::*;

use crate::options::{Failure, parser, text};

pub const HELP: &str = "
pg_archivecleanup removes older WAL files from PostgreSQL archives.

Usage:
  pg_archivecleanup [OPTION]... ARCHIVELOCATION OLDESTKEPTWALFILE

Options:
  -d             generate debug output (verbose mode)
  -n             dry run, show the names of the files that would be removed
  -x EXT         clean up files if they have this extension";

pub fn run(args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let (mut tells, mut only_shows, mut ending) = (false, false, String::new());
    let mut words = Vec::new();
    let mut parser = parser(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('d') | Long("debug") => tells = true,
            Short('n') | Long("dry-run") => only_shows = true,
            Short('x') | Long("strip-extension") => ending = text(&mut parser)?,
            Value(word) => words.push(word),
            other => return Err(other.unexpected().into()),
        }
    }
    let [folder, kept] = words.as_slice() else {
        return Err(Failure::with_code(
            "error: must specify archive location and oldest kept WAL file",
            2,
        ));
    };
    let kept = kept.to_string_lossy();
    let Some(oldest) = segment_of(kept.strip_suffix(ending.as_str()).unwrap_or(&kept)) else {
        return Err(Failure::with_code("error: invalid file name argument", 2));
    };
    let folder = PathBuf::from(folder);
    let unreadable = |e| {
        Failure::with_code(
            format!("error: could not open archive location \"{}\": {e}", folder.display()),
            2,
        )
    };
    if tells {
        eprintln!(
            "pg_archivecleanup: keeping WAL file \"{}\" and later",
            folder.join(&oldest).display()
        );
    }
    for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !goes(name.strip_suffix(ending.as_str()).unwrap_or(&name), &oldest) {
            continue;
        }
        if only_shows {
            println!("{}", path.display());
            continue;
        }
        if tells {
            eprintln!("pg_archivecleanup: removing file \"{}\"", path.display());
        }
        std::fs::remove_file(&path).map_err(|e| {
            Failure::from(format!("error: could not remove file \"{}\": {e}", path.display()))
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn is_segment(name: &str) -> bool {
    name.len() == 24 && name.bytes().all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b))
}

/// The segment that a file of the archive names: itself, a part of it, or the backup that begins there.
fn segment_of(name: &str) -> Option<String> {
    let segment = name.get(..24).filter(|segment| is_segment(segment))?;
    let rest = &name[24..];
    let is_backup = rest.len() == 16 && rest.starts_with('.') && rest.ends_with(".backup");
    (rest.is_empty() || rest == ".partial" || is_backup).then(|| segment.to_owned())
}

/// Whether a file comes before the oldest that is kept, whatever its timeline.
fn goes(name: &str, oldest: &str) -> bool {
    let segment = name.strip_suffix(".partial").unwrap_or(name);
    is_segment(segment) && segment[8..] < oldest[8..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_before_goes() {
        let backup = "000000010000000000000005.00000028.backup";
        let oldest = segment_of(backup).unwrap();
        assert_eq!(oldest, "000000010000000000000005");
        assert!(goes("000000010000000000000004", &oldest));
        assert!(goes("000000020000000000000004.partial", &oldest));
        assert!(!goes("000000010000000000000005", &oldest));
        assert!(!goes("00000002.history", &oldest));
        assert_eq!(segment_of("x"), None);
    }
}

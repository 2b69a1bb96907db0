//! Log that came beside a copy of the directory: PostgreSQL's programs put the segments that they receive into `pg_wal`,
//! under PostgreSQL's names.
//!
//! ```text
//! pg_wal/TTTTTTTTXXXXXXXXYYYYYYYY           timeline, position / 4 GB, segment there
//! pg_wal/TTTTTTTTXXXXXXXXYYYYYYYY.partial   one that is not full; zeros behind what there is
//! ```
//! A start moves them to where the log lies, but for those that are there already, and removes the folder when it is
//! empty. Segments before the redo position are of no use, and go.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use base::{Error, Result};

use crate::control::Control;
use crate::wal::segment::Segments;

/// The number of a segment with PostgreSQL's name.
fn number_of(name: &str, size: u64) -> Option<u64> {
    let name = name.strip_suffix(".partial").unwrap_or(name);
    if name.len() != 24 || !name.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let part = |at: usize| u64::from_str_radix(&name[at..at + 8], 16).ok();
    Some(part(8)? * ((1 << 32) / size) + part(16)?)
}

/// Moves the segments in `pg_wal` to the log.
///
/// # Errors
/// I/O.
pub(crate) fn adopt_log(dir: &Path) -> Result<()> {
    let folder = dir.join("pg_wal");
    if !folder.is_dir() {
        return Ok(());
    }
    let control = Control::read(dir)?;
    let segments = Segments::new(dir, control.segment_size, None);
    move_all(&folder, &segments, control.redo.0)
        .map_err(|e| Error::io("take over the log in pg_wal", &e))?;
    // Directories that PostgreSQL's programs ask for have no use here.
    for empty in ["pg_wal/archive_status", "pg_wal", "pg_tblspc"] {
        let _ = fs::remove_dir(dir.join(empty));
    }
    Ok(())
}

fn move_all(folder: &Path, segments: &Segments, redo: u64) -> io::Result<()> {
    let size = segments.size;
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    // A whole one comes before its part.
    names.sort();
    fs::create_dir_all(segments.path(0).parent().unwrap_or(folder))?;
    for name in names {
        let Some(number) = number_of(&name, size) else { continue };
        let from = folder.join(&name);
        let place = segments.path(number);
        if number < redo / size || place.exists() {
            fs::remove_file(&from)?;
            continue;
        }
        let file = OpenOptions::new().write(true).open(&from)?;
        if file.metadata()?.len() < size {
            file.set_len(size)?;
        }
        file.sync_all()?;
        fs::rename(&from, &place)?;
    }
    if let Some(wal) = segments.path(0).parent() {
        File::open(wal)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_numbers() {
        let size = 16 << 20;
        assert_eq!(number_of("000000010000000000000001", size), Some(1));
        assert_eq!(number_of("000000010000000200000003", size), Some(2 * 256 + 3));
        assert_eq!(number_of("000000010000000200000003.partial", size), Some(2 * 256 + 3));
        for other in ["00000001.history", "archive_status", "00000001000000000000000G"] {
            assert_eq!(number_of(other, size), None);
        }
    }
}

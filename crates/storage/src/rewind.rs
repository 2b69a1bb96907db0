//! The directory of an old primary, made that of a standby of the new one without a whole copy.
//!
//! ```text
//!   old primary   ──────────fork────────► changes that no other server has
//!   new primary   ──────────┘────────────────────► backup begins … ends
//! ```
//! The outcome is a base backup of the new primary ([`crate::backup`]), byte by byte as far as relation files go: both sides
//! name the sums of their pages, and only pages that differ are sent. So it matters neither how far back the old primary's log
//! goes nor what was changed where.
//!
//! **Why not from the log**, as PostgreSQL's pg_rewind finds the pages that were changed behind the fork: hints are not logged
//! here. A page that nothing changed behind the fork may say that a transaction has committed which the new primary has
//! never heard of.
//!
//! Sums have 96 bits, of two functions that have nothing in common, so that pages which differ are not taken for equal.
//!
//! *Crashes.* The control file is moved aside first and comes last, so a directory that is half done is served by nobody, and
//! the rewind can be done again.

use std::fs::{self, File, OpenOptions};
use std::hash::Hasher;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use base::{Error, Lsn, Result, err};

use crate::control::{Control, DirLock};
use crate::page::PAGE_SIZE;
use crate::timeline::History;
use crate::wal::reader::LogReader;
use crate::wal::record::{CHANGES, LAST_PART, Record};
use crate::wal::segment::Segments;

/// Where the control file is meanwhile.
const ASIDE: &str = "threadgres.control.rewound";
const CONTROL: &str = "threadgres.control";

/// The sum of a page.
pub type PageSum = [u8; 12];

/// The sum of a page's bytes.
pub fn page_sum(page: &[u8]) -> PageSum {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(page);
    let mut out = [0; 12];
    out[..8].copy_from_slice(&hasher.finish().to_be_bytes());
    out[8..].copy_from_slice(&crc32c::crc32c(page).to_be_bytes());
    out
}

/// The part of a directory behind the place where its history and another one part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// The end of its log.
    pub end: Lsn,
    /// Commits there, as far back as its log goes.
    pub commits: u64,
}

/// A directory that is being made a standby's. No server may have it.
pub struct Rewind {
    dir: PathBuf,
    control: Control,
    /// One before did not come to its end: the directory is nobody's.
    interrupted: bool,
    _lock: DirLock,
}

/// Where two histories part; None: nowhere, as far as the first one goes.
pub fn fork_of(own: &History, other: &History) -> Option<Lsn> {
    let common = own.0.iter().zip(&other.0).take_while(|(a, b)| a == b).count();
    let ends = [own.0.get(common), other.0.get(common)];
    ends.into_iter().flatten().map(|switch| switch.until).min()
}

impl Rewind {
    /// Takes the directory.
    ///
    /// # Errors
    /// `55006` when a server has it; `55000` when it is none of ours; I/O.
    pub fn open(dir: &Path) -> Result<Rewind> {
        let aside = dir.join(ASIDE);
        let interrupted = aside.exists();
        if interrupted {
            fs::rename(&aside, dir.join(CONTROL))
                .map_err(|e| Error::io("move the control file", &e))?;
        }
        let lock = DirLock::take(dir)?;
        let control = Control::read(dir)?;
        Ok(Rewind { dir: dir.to_owned(), control, interrupted, _lock: lock })
    }

    /// Whether a rewind before did not come to its end, so that the directory has no history any more.
    pub fn was_interrupted(&self) -> bool {
        self.interrupted
    }

    /// The directory's identity.
    pub fn system_id(&self) -> u64 {
        self.control.system_id
    }

    /// The log behind a position at which a record begins. `is_commit`: whether a payload is that of a commit.
    ///
    /// # Errors
    /// I/O.
    pub fn behind(&self, fork: Lsn, is_commit: &dyn Fn(u8) -> bool) -> Result<Behind> {
        let segments = Segments::new(&self.dir, self.control.segment_size, None);
        // A checkpoint behind the fork may have let go of what lies before it.
        let kept = segments.path(fork.0 / segments.size).exists();
        let redo = self.control.redo;
        let from = if kept && fork < redo { fork } else { redo };
        let mut reader = LogReader::to_look(segments, from);
        let mut behind = Behind::default();
        while let Some((start, bytes)) = reader.next()? {
            if start >= fork.0 {
                behind.commits += commits_in(&Record::parse(bytes, start)?, is_commit)?;
            }
        }
        // The log from the fork on may be gone.
        behind.end = reader.position().max(redo).max(self.control.durable);
        Ok(behind)
    }

    /// From here on the directory is of no use until the rewind is done: takes away what belongs to its own history.
    ///
    /// # Errors
    /// I/O.
    pub fn begin(&self) -> Result<()> {
        let begin = || -> io::Result<()> {
            fs::rename(self.dir.join(CONTROL), self.dir.join(ASIDE))?;
            File::open(&self.dir)?.sync_all()?;
            let _ = fs::remove_file(self.dir.join(crate::maps::MAPS));
            for folder in ["wal", "commitlog", "slots", "pg_wal"] {
                empty(&self.dir.join(folder), |_| true)?;
            }
            empty(&self.dir, |name| name.starts_with("threadgres.files.") || name == "archived")?;
            empty(&self.dir, |name| name == crate::timeline::HISTORY)
        };
        begin().map_err(|e| Error::io("take away what the directory had of its own", &e))
    }

    /// Removes relation files that are not among these (`base/…`).
    ///
    /// # Errors
    /// I/O.
    pub fn keep_only(&self, names: &std::collections::HashSet<String>) -> Result<()> {
        empty(&self.dir.join("base"), |name| !names.contains(&format!("base/{name}")))
            .map_err(|e| Error::io("remove relation files", &e))
    }

    /// A relation file of the new primary's, with so many bytes.
    ///
    /// # Errors
    /// `XX001` for a name that is none; I/O.
    pub fn file(&self, name: &str, length: u64) -> Result<RewindFile> {
        let path = relation_path(&self.dir, name)?;
        let failed = |e| Error::io(format!("open \"{}\"", path.display()), &e);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(failed)?;
        let had = file.metadata().map_err(failed)?.len().min(length);
        file.set_len(length).map_err(failed)?;
        Ok(RewindFile { file, path, had })
    }

    /// The new primary's files are there, its control file among them.
    ///
    /// # Errors
    /// I/O.
    pub fn finish(self) -> Result<()> {
        let base = self.dir.join("base");
        let finish = || -> io::Result<()> {
            File::open(&base)?.sync_all()?;
            fs::remove_file(self.dir.join(ASIDE))?;
            File::open(&self.dir)?.sync_all()
        };
        finish().map_err(|e| Error::io("end the rewind", &e))
    }
}

/// A relation file of a directory that is being rewound.
pub struct RewindFile {
    file: File,
    path: PathBuf,
    /// Bytes of it that were there before.
    had: u64,
}

impl RewindFile {
    /// Sums of the pages from a block on, at most so many; fewer: the file had no more.
    ///
    /// # Errors
    /// I/O.
    pub fn sums(&self, first: u64, most: u64) -> Result<Vec<PageSum>> {
        let size = PAGE_SIZE as u64;
        let mut page = vec![0; PAGE_SIZE];
        let mut sums = Vec::new();
        for block in first..(first + most).min(self.had / size) {
            self.file
                .read_exact_at(&mut page, block * size)
                .map_err(|e| Error::io(format!("read \"{}\"", self.path.display()), &e))?;
            sums.push(page_sum(&page));
        }
        Ok(sums)
    }

    /// Puts a page of the new primary's in its place.
    ///
    /// # Errors
    /// I/O.
    pub fn put(&self, block: u64, page: &[u8]) -> Result<()> {
        let written = self.file.write_all_at(page, block * PAGE_SIZE as u64);
        written.map_err(|e| Error::io(format!("write \"{}\"", self.path.display()), &e))
    }

    /// Makes the file durable.
    ///
    /// # Errors
    /// I/O.
    pub fn finish(self) -> Result<()> {
        self.file.sync_all().map_err(|e| Error::io(format!("sync \"{}\"", self.path.display()), &e))
    }
}

/// The path of `base/NUMBER`, `base/NUMBER_fsm`, `base/NUMBER_vm`.
///
/// # Errors
/// `22023` for other names.
pub fn relation_path(dir: &Path, name: &str) -> Result<PathBuf> {
    let number = name
        .strip_prefix("base/")
        .map(|rest| rest.strip_suffix("_fsm").or_else(|| rest.strip_suffix("_vm")).unwrap_or(rest));
    match number {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            Ok(dir.join(name))
        }
        _ => Err(err!(INVALID_PARAMETER_VALUE, "\"{name}\" is no relation file")),
    }
}

fn commits_in(record: &Record<'_>, is_commit: &dyn Fn(u8) -> bool) -> Result<u64> {
    let (_, mut body) = record.pages()?;
    let mut count = 0;
    match record.kind {
        CHANGES => {
            while !body.is_empty() {
                let (code, len) = (body.u8()?, body.u32()? as usize);
                body.bytes(len)?;
                count += u64::from(is_commit(code));
            }
        }
        LAST_PART => {
            body.u64()?;
            count += u64::from(is_commit(body.u8()?));
        }
        _ => {}
    }
    Ok(count)
}

/// Removes the files of a folder whose names are such.
fn empty(folder: &Path, wanted: impl Fn(&str) -> bool) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_file() && wanted(&entry.file_name().to_string_lossy()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories_part_where_the_first_of_them_went_on_alone() {
        let history = |text| History::parse(text).unwrap();
        let (first, second) = (History::default(), history("1\t0/3000\tpromoted\n"));
        assert_eq!(fork_of(&first, &second), Some(Lsn(0x3000)));
        assert_eq!(fork_of(&first, &first), None);
        let (third, other) = (
            history("1\t0/3000\tpromoted\n2\t0/5000\tx\n"),
            history("1\t0/3000\tpromoted\n2\t0/4000\ty\n"),
        );
        assert_eq!(fork_of(&third, &other), Some(Lsn(0x4000)));
        assert_eq!(fork_of(&third, &second), Some(Lsn(0x5000)));
        assert_eq!(fork_of(&history("1\t0/2000\tx\n"), &second), Some(Lsn(0x2000)));
    }

    #[test]
    fn only_relation_files_are_written() {
        let dir = Path::new("/d");
        assert_eq!(relation_path(dir, "base/12_vm").unwrap(), Path::new("/d/base/12_vm"));
        for bad in ["base/../x", "base/", "base/1/2", "wal/1", "base/1_x", "/base/1"] {
            assert!(relation_path(dir, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sums_tell_pages_apart() {
        let (one, mut other) = (vec![1; PAGE_SIZE], vec![1; PAGE_SIZE]);
        assert_eq!(page_sum(&one), page_sum(&other));
        other[PAGE_SIZE - 1] = 2;
        let (a, b) = (page_sum(&one), page_sum(&other));
        assert!(a[..8] != b[..8] && a[8..] != b[8..]);
    }
}

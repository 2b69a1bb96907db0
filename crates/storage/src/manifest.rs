//! Which relation files there must be, and how long they were at the last checkpoint: what a missing or
//! shortened file is compared with, so that it never reads as an empty or shorter one.
//!
//! ```text
//! DIR/threadgres.files.<generation>
//!
//!  0         8         12     16          24           32
//!  +---------+---------+------+-----------+------------+----------------------------------------+
//!  |TG FILES |version  |  0   | system id | generation | entries of 24 bytes                    |
//!  +---------+---------+------+-----------+------------+----------------------------------------+
//!
//!  entry:  [relation u32][fork u8][0; 3][blocks u32]     blocks 0xFFFF_FFFF: the file is gone
//!          [newest page u32][its LSN u64]                LSN 0: not known
//!  version 1: entries of 12 bytes, without the second line
//! ```
//!
//! A checkpoint appends what has changed since the one before, syncs the file and then replaces the control
//! file, which says how many bytes of which generation count and what their CRC-32C is. Bytes behind them
//! are the rest of a checkpoint that did not end. When more than half of the entries are outdated a new
//! generation is written as a whole beside the old one. So a checkpoint costs what has changed, not what
//! there is, and a start reads one file.
//!
//! * An entry's length was durable before the control file that counts it. It is a lower bound: files grow
//!   without a word here, and a cut or a removal after the checkpoint is in the log ([`crate::wal::survey`]).
//! * The newest page is the one with the greatest LSN that was written to the file before a checkpoint. Pages only become newer, so a
//!   file in which this page is older is one from another time: its first use is an error. The LSN that is listed is at most
//!   the redo position of the control file that counts the entry: redo may put an image from behind that position over a
//!   newer page, for a while.
//! * A relation is listed here before any control file counts it, and leaves the list under the same lock
//!   under which it is marked as dropped, so that no checkpoint lists it anew.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use base::{Error, Fork, Lsn, RelId, Result, WaitEvent, err};
use sched::io_wait;

use crate::files::relation::FORKS;

const MAGIC: &[u8; 8] = b"TG FILES";
const VERSION: u32 = 2;
const HEADER: usize = 32;
const ENTRY: usize = 24;
/// Bytes of an entry by version.
const ENTRIES: [(u32, usize); 2] = [(1, 12), (VERSION, ENTRY)];
/// Blocks of a file that is gone.
const GONE: u32 = u32::MAX;
/// A generation may have so many outdated entries, and as many again as it has others.
const OUTDATED: usize = 4096;

/// The list as the control file names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    /// 0: there is none yet.
    pub generation: u64,
    pub length: u64,
    pub crc: u32,
}

/// The page of a file that was changed last, as of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Newest {
    pub block: u32,
    /// 0: not known.
    pub lsn: Lsn,
}

/// The facts about a file as of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Blocks that it has at least.
    pub blocks: u32,
    /// A page that is at least as new.
    pub newest: Newest,
}

/// See the module.
pub(crate) struct Manifest {
    dir: PathBuf,
    system_id: u64,
    entries: HashMap<(RelId, Fork), Expected>,
    /// The version of the file that `counted` names.
    version: u32,
    /// Changes that no control file counts yet.
    pending: Vec<u8>,
    counted: Listed,
}

/// The files that a checkpoint has written.
pub(crate) struct Written {
    pub listed: Listed,
    /// Bytes of `pending` that are in it.
    taken: usize,
}

fn name(generation: u64) -> String {
    format!("threadgres.files.{generation}")
}

fn entry(rel: RelId, fork: Fork, file: Expected) -> [u8; ENTRY] {
    let mut bytes = [0; ENTRY];
    bytes[..4].copy_from_slice(&rel.0.to_le_bytes());
    bytes[4] = fork as u8;
    bytes[8..12].copy_from_slice(&file.blocks.to_le_bytes());
    bytes[12..16].copy_from_slice(&file.newest.block.to_le_bytes());
    bytes[16..].copy_from_slice(&file.newest.lsn.0.to_le_bytes());
    bytes
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |n, b| n << 8 | u32::from(*b))
}

impl Manifest {
    /// An empty list, of a directory that has none yet.
    pub(crate) fn new(dir: &Path, system_id: u64) -> Manifest {
        Manifest {
            dir: dir.to_owned(),
            system_id,
            entries: HashMap::new(),
            version: VERSION,
            pending: Vec::new(),
            counted: Listed::default(),
        }
    }

    /// Reads the list that the control file names.
    ///
    /// # Errors
    /// `58P01` when it is missing; `XX001` when it is damaged.
    pub(crate) fn load(dir: &Path, system_id: u64, listed: Listed) -> Result<Manifest> {
        let mut manifest = Manifest { counted: listed, ..Manifest::new(dir, system_id) };
        if listed.generation == 0 {
            return Ok(manifest);
        }
        let name = name(listed.generation);
        let bytes = fs::read(dir.join(&name)).map_err(|e| {
            Error::io(format!("read file \"{name}\""), &e)
                .hint("Restore the data directory from a backup.")
        })?;
        let counted = usize::try_from(listed.length).ok().and_then(|len| bytes.get(..len));
        let decoded = counted
            .filter(|bytes| crc32c::crc32c(bytes) == listed.crc)
            .and_then(|bytes| manifest.decode(bytes, listed.generation));
        decoded.ok_or_else(|| {
            err!(DATA_CORRUPTED, "file \"{name}\" is damaged")
                .detail("It lists the relation files of the last checkpoint.")
                .hint("Restore the data directory from a backup.")
        })?;
        Ok(manifest)
    }

    fn decode(&mut self, bytes: &[u8], generation: u64) -> Option<()> {
        let (version, size) = ENTRIES
            .into_iter()
            .find(|(version, _)| bytes.starts_with(&self.header(*version, generation)))?;
        self.version = version;
        for entry in bytes[HEADER..].chunks(size) {
            if entry.len() != size {
                return None;
            }
            let fork = *FORKS.get(usize::from(entry[4]))?;
            let (rel, blocks) = (RelId(word(entry, 0)), word(entry, 8));
            if blocks == GONE {
                self.entries.remove(&(rel, fork));
                continue;
            }
            let mut newest = Newest::default();
            if size == ENTRY {
                let lsn = u64::from(word(entry, 20)) << 32 | u64::from(word(entry, 16));
                newest = Newest { block: word(entry, 12), lsn: Lsn(lsn) };
            }
            self.entries.insert((rel, fork), Expected { blocks, newest });
        }
        Some(())
    }

    fn header(&self, version: u32, generation: u64) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&version.to_le_bytes());
        header[16..24].copy_from_slice(&self.system_id.to_le_bytes());
        header[24..].copy_from_slice(&generation.to_le_bytes());
        header
    }

    /// The facts that the fork's file must agree with; None: there may be none.
    pub(crate) fn expected(&self, rel: RelId, fork: Fork) -> Option<Expected> {
        self.entries.get(&(rel, fork)).copied()
    }

    /// Whether the relation is listed.
    pub(crate) fn lists(&self, rel: RelId) -> bool {
        FORKS.iter().any(|fork| self.entries.contains_key(&(rel, *fork)))
    }

    /// All that are listed, in order.
    pub(crate) fn all(&self) -> Vec<(RelId, Fork)> {
        let mut all: Vec<_> = self.entries.keys().copied().collect();
        all.sort_unstable();
        all
    }

    /// The fork's file has so many blocks now, and that is durable.
    pub(crate) fn note(&mut self, rel: RelId, fork: Fork, blocks: u32) {
        let known = self.expected(rel, fork).map(|file| file.newest).unwrap_or_default();
        // A page that was cut off is no measure.
        let newest = if known.block < blocks { known } else { Newest::default() };
        self.set(rel, fork, Expected { blocks, newest });
    }

    /// A page of the fork's file is as new as that, durably, and stays so whatever redo does.
    pub(crate) fn note_newest(&mut self, rel: RelId, fork: Fork, newest: Newest) {
        if let Some(file) = self.expected(rel, fork)
            && newest.block < file.blocks
            && newest.lsn > file.newest.lsn
        {
            self.set(rel, fork, Expected { newest, ..file });
        }
    }

    fn set(&mut self, rel: RelId, fork: Fork, file: Expected) {
        if self.entries.insert((rel, fork), file) != Some(file) {
            self.pending.extend_from_slice(&entry(rel, fork, file));
        }
    }

    /// The fork's file has been made.
    pub(crate) fn note_made(&mut self, rel: RelId, fork: Fork) {
        if !self.entries.contains_key(&(rel, fork)) {
            self.note(rel, fork, 0);
        }
    }

    /// A cut that is in the log: the file may be as short as this.
    pub(crate) fn note_cut(&mut self, rel: RelId, fork: Fork, blocks: u32) {
        if self.expected(rel, fork).is_some_and(|expected| expected.blocks > blocks) {
            self.note(rel, fork, blocks);
        }
    }

    /// The relation's files are going.
    pub(crate) fn forget(&mut self, rel: RelId) {
        for fork in FORKS {
            if self.entries.remove(&(rel, fork)).is_some() {
                let gone = Expected { blocks: GONE, newest: Newest::default() };
                self.pending.extend_from_slice(&entry(rel, fork, gone));
            }
        }
    }

    /// Writes what no control file counts yet and makes it durable.
    ///
    /// # Errors
    /// I/O errors; the next attempt writes it again.
    pub(crate) fn write(&self, sync: bool) -> Result<Written> {
        let written =
            if self.wants_new_generation() { self.rewrite(sync) } else { self.append(sync) };
        let listed = written.map_err(|e| Error::io("write the list of relation files", &e))?;
        Ok(Written { listed, taken: self.pending.len() })
    }

    fn wants_new_generation(&self) -> bool {
        let written = (self.counted.length as usize).saturating_sub(HEADER) + self.pending.len();
        let is_old = self.counted.generation == 0 || self.version != VERSION;
        is_old || written / ENTRY > 2 * self.entries.len() + OUTDATED
    }

    fn append(&self, sync: bool) -> io::Result<Listed> {
        let counted = self.counted;
        if self.pending.is_empty() {
            return Ok(counted);
        }
        let file = OpenOptions::new().write(true).open(self.dir.join(name(counted.generation)))?;
        put(&file, &self.pending, counted.length, sync)?;
        Ok(Listed {
            length: counted.length + self.pending.len() as u64,
            crc: crc32c::crc32c_append(counted.crc, &self.pending),
            ..counted
        })
    }

    fn rewrite(&self, sync: bool) -> io::Result<Listed> {
        let generation = self.counted.generation + 1;
        let mut bytes = self.header(VERSION, generation).to_vec();
        for key in self.all() {
            bytes.extend_from_slice(&entry(key.0, key.1, self.entries[&key]));
        }
        let file = File::create(self.dir.join(name(generation)))?;
        put(&file, &bytes, 0, sync)?;
        if sync {
            File::open(&self.dir)?.sync_all()?;
        }
        Ok(Listed { generation, length: bytes.len() as u64, crc: crc32c::crc32c(&bytes) })
    }

    /// A control file counts what was written.
    pub(crate) fn note_written(&mut self, written: &Written) {
        self.pending.drain(..written.taken);
        let before = std::mem::replace(&mut self.counted, written.listed);
        if written.listed.generation != before.generation {
            self.version = VERSION;
        }
        if before.generation != 0 && before.generation != written.listed.generation {
            // One that stays is in nobody's way.
            let _ = fs::remove_file(self.dir.join(name(before.generation)));
        }
    }
}

fn put(file: &File, bytes: &[u8], at: u64, sync: bool) -> io::Result<()> {
    io_wait(WaitEvent::IOControlFileWrite, || file.write_all_at(bytes, at))?;
    if sync { io_wait(WaitEvent::IOControlFileSync, || file.sync_data()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: RelId = RelId(16384);
    const B: RelId = RelId(16385);

    fn dir(name: &str) -> PathBuf {
        let dir =
            std::env::temp_dir().join(format!("storage-manifest-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn checkpoint(manifest: &mut Manifest) -> Listed {
        let written = manifest.write(false).unwrap();
        manifest.note_written(&written);
        written.listed
    }

    #[test]
    fn changes_are_appended_and_come_back_and_what_is_not_counted_does_not() {
        let dir = dir("append");
        let mut manifest = Manifest::new(&dir, 7);
        manifest.note(A, Fork::Main, 3);
        manifest.note_made(B, Fork::Main);
        let first = checkpoint(&mut manifest);
        manifest.note(A, Fork::Main, 5);
        manifest.note_newest(A, Fork::Main, newest(4, 900));
        manifest.note(A, Fork::Fsm, 1);
        manifest.forget(B);
        let second = checkpoint(&mut manifest);
        assert_eq!((second.generation, second.length), (1, first.length + 96));
        manifest.note(A, Fork::Main, 9);
        manifest.write(false).unwrap();

        let back = Manifest::load(&dir, 7, second).unwrap();
        assert_eq!(back.all(), [(A, Fork::Main), (A, Fork::Fsm)]);
        let grown = Expected { blocks: 5, newest: Newest { block: 4, lsn: Lsn(900) } };
        assert_eq!(back.expected(A, Fork::Main), Some(grown));
        assert_eq!(back.expected(B, Fork::Main), None);
        let before = Manifest::load(&dir, 7, first).unwrap();
        let blocks = before.expected(A, Fork::Main).map(|file| file.blocks);
        assert_eq!((blocks, before.lists(B)), (Some(3), true));
        assert!(Manifest::load(&dir, 8, second).is_err(), "of another directory");
        fs::remove_dir_all(&dir).unwrap();
    }

    fn newest(block: u32, lsn: u64) -> Newest {
        Newest { block, lsn: Lsn(lsn) }
    }

    #[test]
    fn the_newest_page_stays_until_there_is_a_newer_one_or_it_is_cut_off() {
        let dir = dir("newest");
        let mut manifest = Manifest::new(&dir, 7);
        let of_file = |manifest: &Manifest| manifest.expected(A, Fork::Main).map(|f| f.newest);
        manifest.note(A, Fork::Main, 9);
        manifest.note_newest(A, Fork::Main, newest(7, 500));
        manifest.note_newest(A, Fork::Main, newest(2, 400));
        manifest.note_newest(A, Fork::Main, newest(9, 800));
        manifest.note_newest(B, Fork::Main, newest(0, 800));
        manifest.note(A, Fork::Main, 10);
        assert_eq!(of_file(&manifest), Some(newest(7, 500)));
        manifest.note_newest(A, Fork::Main, newest(3, 600));
        manifest.note_cut(A, Fork::Main, 4);
        assert_eq!(of_file(&manifest), Some(newest(3, 600)));
        manifest.note_cut(A, Fork::Main, 3);
        assert_eq!(of_file(&manifest), Some(Newest::default()));
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_list_of_version_1_is_read_and_becomes_one_of_version_2() {
        let dir = dir("old");
        let mut old = Manifest::new(&dir, 7).header(1, 3).to_vec();
        old.extend_from_slice(
            &entry(A, Fork::Main, Expected { blocks: 8, ..Expected::default() })[..12],
        );
        fs::write(dir.join(name(3)), &old).unwrap();
        let listed = Listed { generation: 3, length: old.len() as u64, crc: crc32c::crc32c(&old) };
        let mut manifest = Manifest::load(&dir, 7, listed).unwrap();
        assert_eq!(manifest.expected(A, Fork::Main).map(|file| file.blocks), Some(8));
        manifest.note(A, Fork::Main, 9);
        manifest.note_newest(A, Fork::Main, newest(8, 70));
        let listed = checkpoint(&mut manifest);
        assert_eq!(listed.generation, 4);
        manifest.note(B, Fork::Main, 1);
        let listed = checkpoint(&mut manifest);
        assert_eq!(listed.generation, 4, "from now on it is appended to");
        let back = Manifest::load(&dir, 7, listed).unwrap();
        assert_eq!(back.expected(A, Fork::Main).map(|file| file.newest), Some(newest(8, 70)));
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn outdated_entries_make_a_new_generation() {
        let dir = dir("generation");
        let mut manifest = Manifest::new(&dir, 7);
        let mut listed = Listed::default();
        for blocks in 0..3 * OUTDATED as u32 {
            manifest.note(A, Fork::Main, blocks);
            if blocks % 512 == 0 {
                listed = checkpoint(&mut manifest);
            }
        }
        assert!(listed.generation > 1 && listed.length < (2 * OUTDATED * ENTRY) as u64);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "the old ones are gone");
        assert!(Manifest::load(&dir, 7, listed).unwrap().lists(A));
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_flipped_bit_and_a_cut_file_are_noticed() {
        let dir = dir("damage");
        let mut manifest = Manifest::new(&dir, 7);
        (0..50).for_each(|n| manifest.note(RelId(16384 + n), Fork::Main, n));
        let listed = checkpoint(&mut manifest);
        let file = dir.join(name(listed.generation));
        let good = fs::read(&file).unwrap();
        let code = || Manifest::load(&dir, 7, listed).err().map(|e| e.code().as_str().to_owned());
        for at in [0, 9, 20, 40, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&file, bad).unwrap();
            assert_eq!(code().as_deref(), Some("XX001"), "byte {at}");
        }
        fs::write(&file, &good[..good.len() / 2]).unwrap();
        assert_eq!(code().as_deref(), Some("XX001"));
        fs::remove_file(&file).unwrap();
        assert_eq!(code().as_deref(), Some("58P01"));
        fs::remove_dir_all(&dir).unwrap();
    }
}

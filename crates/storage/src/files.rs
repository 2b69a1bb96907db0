//! Relation files: `base/<relid>`, `<relid>_fsm`, `<relid>_vm`; which there are, how long they are,
//! reading, writing, extending and syncing them.
//!
//! * A [`Relation`] entry comes to be when the relation is first used and lives as long as the
//!   directory is open, so that look-ups need no lock and no reference count: relation ids are never
//!   used twice, and an entry is 64 bytes.
//! * `blocks` never exceeds the file's length. It grows after the file did, and shrinks before.
//! * A temporary relation has no file until one of its pages leaves the pool: what was never written
//!   reads as zeros. Its id may come back ([`Files::begin_temporary`]) when the one that had it is
//!   gone; its files are never synced, and removed when the directory is opened.
//! * A relation that the list of the last checkpoint names ([`crate::manifest`]) has its files, at least as long
//!   as it says, and the page that was the newest then is not older now: else every use of it is an error.
//! * While the directory is only looked at, everything that would be written goes into an [`overlay`].
//! * A write marks its fork as needing a sync *after* it is done, so that a checkpoint which takes
//!   the mark away syncs what was written.

mod descriptors;
mod overlay;
pub(crate) mod relation;
mod table;

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use base::usage::Use;
use base::{Error, Fork, Lsn, PageId, RelId, Result, WaitEvent, err};
use descriptors::Descriptors;
use overlay::Overlay;
use sched::{Mutex, SpinLock, WaitObject, Waiting, io_wait};
use table::Table;

use crate::fatal;
use crate::files::relation::{FORKS, ForkState, Relation};
use crate::manifest::{Expected, Manifest, Newest, Written};
use crate::options::Options;
use crate::page::{self, PAGE_SIZE, Page};
use crate::stats::{Counters, bump};

/// See the module.
pub(crate) struct Files {
    dir: PathBuf,
    table: Table,
    descriptors: Descriptors,
    /// Held while an entry is made or a file comes or goes.
    naming: Mutex<()>,
    to_sync: SpinLock<Vec<(RelId, Fork)>>,
    /// The newest page that was written to a file since it was synced last.
    newest: SpinLock<HashMap<(RelId, Fork), Newest>>,
    /// How often a file was cut.
    cuts: AtomicU64,
    /// Such pages that are durable and not in the manifest yet.
    synced: SpinLock<HashMap<(RelId, Fork), Newest>>,
    /// Files that were made and are not in the manifest yet.
    made: SpinLock<Vec<(RelId, Fork)>>,
    manifest: Mutex<Manifest>,
    /// Where changes go while the directory is only looked at.
    overlay: Option<Overlay>,
    /// A file was made or removed since the directory was synced.
    names_changed: AtomicBool,
    options: Options,
    counters: Arc<Counters>,
}

impl Files {
    /// `looks`: nothing is to be changed on disk.
    pub(crate) fn new(
        dir: &Path,
        options: &Options,
        counters: &Arc<Counters>,
        manifest: Manifest,
        looks: bool,
    ) -> Files {
        Files {
            dir: dir.join("base"),
            table: Table::new(),
            descriptors: Descriptors::new(),
            naming: Mutex::new(WaitEvent::LWLockFdCache, ()),
            to_sync: SpinLock::new(Vec::new()),
            newest: SpinLock::new(HashMap::new()),
            cuts: AtomicU64::new(0),
            synced: SpinLock::new(HashMap::new()),
            made: SpinLock::new(Vec::new()),
            manifest: Mutex::new(WaitEvent::LWLockFdCache, manifest),
            overlay: looks.then(Overlay::default),
            names_changed: AtomicBool::new(false),
            options: options.clone(),
            counters: counters.clone(),
        }
    }

    fn path(&self, rel: RelId, fork: Fork) -> PathBuf {
        let suffix = match fork {
            Fork::Main => "",
            Fork::Fsm => "_fsm",
            Fork::Vm => "_vm",
        };
        self.dir.join(format!("{}{suffix}", rel.0))
    }

    /// The file's name in messages.
    fn name(&self, rel: RelId, fork: Fork) -> String {
        let path = self.path(rel, fork);
        format!("base/{}", path.file_name().unwrap_or_default().to_string_lossy())
    }

    /// The relation's entry.
    fn relation(&self, rel: RelId) -> Result<&Relation> {
        match self.table.get(rel) {
            Some(relation) => Ok(relation),
            None => self.load(rel, true),
        }
    }

    /// The relation's entry, even if its files are not what they should be: it is being dropped.
    fn relation_to_drop(&self, rel: RelId) -> Result<&Relation> {
        match self.table.get(rel) {
            Some(relation) => Ok(relation),
            None => self.load(rel, false),
        }
    }

    /// Makes the relation's entry. `checks`: its files must be as the manifest says.
    #[cold]
    fn load(&self, rel: RelId, checks: bool) -> Result<&Relation> {
        let _naming = self.naming.lock();
        if let Some(relation) = self.table.get(rel) {
            return Ok(relation);
        }
        let mut forks = Vec::with_capacity(3);
        for fork in FORKS {
            if rel.is_temporary() {
                forks.push(None);
                continue;
            }
            let blocks = match fs::metadata(self.path(rel, fork)) {
                Ok(meta) => Some((meta.len() / PAGE_SIZE as u64) as u32),
                Err(e) if e.kind() == io::ErrorKind::NotFound => None,
                Err(e) => {
                    let name = self.name(rel, fork);
                    return Err(Error::io(format!("stat file \"{name}\""), &e));
                }
            };
            if checks {
                let expected = self.manifest.lock().expected(rel, fork);
                self.compare(rel, fork, blocks, expected)?;
                if let Some(expected) = expected {
                    self.compare_age(rel, fork, expected.newest)?;
                }
            }
            forks.push(blocks);
        }
        let state = |fork: Fork| ForkState {
            blocks: AtomicU32::new(forks[fork as usize].unwrap_or(0)),
            exists: AtomicBool::new(forks[fork as usize].is_some()),
            needs_sync: AtomicBool::new(false),
        };
        let forks = FORKS.map(state);
        Ok(self.table.insert(rel, Relation { rel, dropped: AtomicBool::new(false), forks }))
    }

    /// Whether a file is as long as the last checkpoint left it.
    fn compare(
        &self,
        rel: RelId,
        fork: Fork,
        blocks: Option<u32>,
        expected: Option<Expected>,
    ) -> Result<()> {
        let Some(Expected { blocks: expected, .. }) = expected else { return Ok(()) };
        let error = match blocks {
            None => err!(UNDEFINED_FILE, "file \"{}\" is missing", self.name(rel, fork)),
            Some(blocks) if blocks < expected => err!(
                DATA_CORRUPTED,
                "file \"{}\" is too short: block {blocks} and those after it are missing",
                self.name(rel, fork)
            ),
            Some(_) => return Ok(()),
        };
        Err(error
            .detail(format!("It had {expected} blocks at the last checkpoint."))
            .hint("Restore the data directory from a backup."))
    }

    /// Whether a file is not from before the last checkpoint: the page that was the newest then has at least the LSN that it
    /// had. Only these eight bytes are looked at, which are in one sector, so that a torn page has them, too.
    fn compare_age(&self, rel: RelId, fork: Fork, newest: Newest) -> Result<()> {
        if newest.lsn == Lsn::ZERO {
            return Ok(());
        }
        let mut bytes = [0; 8];
        let at = u64::from(newest.block) * PAGE_SIZE as u64;
        let read = || File::open(self.path(rel, fork))?.read_exact_at(&mut bytes, at);
        let name = self.name(rel, fork);
        io_wait(on(WaitEvent::IODataFileRead, rel), read)
            .map_err(|e| Error::io(format!("read file \"{name}\""), &e))?;
        let found = Lsn(u64::from_le_bytes(bytes));
        if found >= newest.lsn {
            return Ok(());
        }
        Err(err!(DATA_CORRUPTED, "file \"{name}\" is from another time")
            .detail(format!(
                "Its block {} was changed at {} before the last checkpoint; in this file it was changed at {found}.",
                newest.block, newest.lsn
            ))
            .hint("Restore the data directory from a backup."))
    }

    /// Takes over what the log says of files since the manifest was written.
    pub(crate) fn expect_less(
        &self,
        cuts: impl IntoIterator<Item = ((RelId, Fork), u32)>,
        dropped: impl IntoIterator<Item = RelId>,
    ) {
        let mut manifest = self.manifest.lock();
        cuts.into_iter().for_each(|((rel, fork), blocks)| manifest.note_cut(rel, fork, blocks));
        dropped.into_iter().for_each(|rel| manifest.forget(rel));
    }

    /// Whether all files that there must be are there, and these relations' are as long as they must be.
    ///
    /// # Errors
    /// `58P01` and `XX001`, with the file.
    pub(crate) fn check_listed(&self, rels: impl IntoIterator<Item = RelId>) -> Result<()> {
        let present = self.names()?;
        let listed = self.manifest.lock().all();
        for (rel, fork) in listed {
            if !present.contains(&(rel, fork)) {
                let expected = self.manifest.lock().expected(rel, fork);
                self.compare(rel, fork, None, expected)?;
            }
        }
        rels.into_iter().try_for_each(|rel| self.relation(rel).map(drop))
    }

    /// Files in the folder.
    fn names(&self) -> Result<HashSet<(RelId, Fork)>> {
        let read = || -> io::Result<HashSet<(RelId, Fork)>> {
            let mut names = HashSet::new();
            for entry in fs::read_dir(&self.dir)? {
                names.extend(entry?.file_name().to_str().and_then(parse_name));
            }
            Ok(names)
        };
        read().map_err(|e| Error::io("read directory \"base\"", &e))
    }

    /// Every file that is there or must be, with what is wrong with its length.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn survey(&self) -> Result<Vec<(RelId, Fork, Result<u32>)>> {
        let mut all: Vec<_> = self.names()?.into_iter().collect();
        all.extend(self.manifest.lock().all());
        all.retain(|(rel, _)| !rel.is_temporary());
        all.sort_unstable();
        all.dedup();
        Ok(all.into_iter().map(|(rel, fork)| (rel, fork, self.block_count(rel, fork))).collect())
    }

    /// Whether the list of the last checkpoint has the relation, so that it would be missed.
    pub(crate) fn is_listed(&self, rel: RelId) -> bool {
        self.manifest.lock().lists(rel)
    }

    /// Whether the relation has a file.
    pub(crate) fn has_file(&self, rel: RelId) -> Result<bool> {
        let relation = self.relation_to_drop(rel)?;
        Ok(relation.forks.iter().any(|f| f.exists.load(Ordering::Acquire)))
    }

    /// Lists every file that there is: of a directory that has no list yet.
    pub(crate) fn list_all(&self) -> Result<()> {
        for (rel, fork) in self.names()? {
            if !rel.is_temporary() {
                let blocks = self.block_count(rel, fork)?;
                self.manifest.lock().note(rel, fork, blocks);
            }
        }
        Ok(())
    }

    /// Writes the list for the control file that is about to be written, with this redo position.
    pub(crate) fn write_manifest(&self, redo: Lsn) -> Result<Written> {
        let mut manifest = self.manifest.lock();
        let synced = std::mem::take(&mut *self.synced.lock());
        for ((rel, fork), newest) in synced {
            manifest.note_newest(rel, fork, Newest { lsn: newest.lsn.min(redo), ..newest });
        }
        manifest.write(self.options.fsync())
    }

    /// A control file counts what was written.
    pub(crate) fn note_in_manifest(&self, written: &Written) {
        self.manifest.lock().note_written(written);
    }

    /// An open file of the fork.
    fn file(&self, rel: RelId, fork: Fork, create: bool) -> Result<Arc<File>> {
        let limit = self.options.max_files();
        let changes = self.overlay.is_none();
        let opened = self.descriptors.get(rel, fork, limit, || {
            fs::OpenOptions::new()
                .read(true)
                .write(changes)
                .create(create)
                .truncate(false)
                .open(self.path(rel, fork))
        });
        opened.map_err(|e| Error::io(format!("open file \"{}\"", self.name(rel, fork)), &e))
    }

    fn note_change(&self, relation: &Relation, fork: Fork) {
        if relation.rel.is_temporary() {
            return;
        }
        let mark = &relation.fork(fork).needs_sync;
        if mark.load(Ordering::Acquire) {
            return;
        }
        // Mark and entry under one lock: who sees the mark can rely on the entry.
        let mut to_sync = self.to_sync.lock();
        if !mark.swap(true, Ordering::AcqRel) {
            to_sync.push((relation.rel, fork));
        }
    }

    /// Makes the fork's file if it isn't there.
    pub(crate) fn create(&self, rel: RelId, fork: Fork) -> Result<()> {
        let relation = self.relation(rel)?;
        if relation.fork(fork).exists.load(Ordering::Acquire) {
            return Ok(());
        }
        let _naming = self.naming.lock();
        if relation.dropped.load(Ordering::Acquire) {
            return Err(gone(&self.name(rel, fork)));
        }
        if self.overlay.is_none() {
            self.file(rel, fork, true)?;
            self.made.lock().push((rel, fork));
            self.names_changed.store(true, Ordering::Release);
        }
        relation.fork(fork).exists.store(true, Ordering::Release);
        Ok(())
    }

    /// A temporary relation comes to be, empty and without a file.
    pub(crate) fn begin_temporary(&self, rel: RelId) -> Result<()> {
        let relation = self.relation(rel)?;
        relation.forks.iter().for_each(|f| f.blocks.store(0, Ordering::Release));
        relation.dropped.store(false, Ordering::Release);
        Ok(())
    }

    /// Removes the files of temporary relations that a server left which did not stop by itself.
    pub(crate) fn sweep_temporary(&self) -> Result<()> {
        let sweep = || -> io::Result<()> {
            for entry in fs::read_dir(&self.dir)? {
                let entry = entry?;
                let name = entry.file_name();
                let number = name.to_str().and_then(|n| n.split('_').next()?.parse().ok());
                if number.is_some_and(|n| RelId(n).is_temporary()) {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        sweep().map_err(|e| Error::io("remove temporary relations", &e))
    }

    /// Pages in the fork.
    pub(crate) fn block_count(&self, rel: RelId, fork: Fork) -> Result<u32> {
        Ok(self.relation(rel)?.fork(fork).blocks.load(Ordering::Acquire))
    }

    /// Reads a page's bytes; they are not checked.
    pub(crate) fn read(&self, id: PageId, into: &mut Page) -> Result<()> {
        let temporary = id.rel.is_temporary();
        if temporary && !self.relation(id.rel)?.fork(id.fork).exists.load(Ordering::Acquire) {
            into.fill(0);
            return Ok(());
        }
        if let Some(overlay) = &self.overlay
            && overlay.read(id, into)?
        {
            return Ok(());
        }
        let file = self.file(id.rel, id.fork, false)?;
        let at = u64::from(id.block) * PAGE_SIZE as u64;
        bump(&self.counters.reads);
        let waiting = Waiting::on(WaitEvent::IODataFileRead, WaitObject::Page(id));
        let read = || sched::read_exact_at(waiting, &file, into, at);
        let done = counted((Use::BufferRead, 1), Use::ReadNs, read);
        if temporary && matches!(&done, Err(e) if e.kind() == io::ErrorKind::UnexpectedEof) {
            into.fill(0);
            return Ok(());
        }
        done.map_err(|e| {
            let name = self.name(id.rel, id.fork);
            match e.kind() {
                io::ErrorKind::UnexpectedEof => err!(
                    DATA_CORRUPTED,
                    "could not read block {} in file \"{name}\": it is beyond the end of the file",
                    id.block
                ),
                _ => Error::io(format!("read block {} in file \"{name}\"", id.block), &e),
            }
        })
    }

    /// Writes a sealed page's bytes.
    pub(crate) fn write(&self, id: PageId, page: &Page) -> Result<()> {
        if let Some(overlay) = &self.overlay {
            return overlay.write(id, page);
        }
        let relation = self.relation(id.rel)?;
        let temporary = id.rel.is_temporary();
        if temporary && !relation.fork(id.fork).exists.load(Ordering::Acquire) {
            self.make_temporary(relation, id.fork)?;
        }
        let file = match self.file(id.rel, id.fork, false) {
            // Somebody changed a page of a relation that is gone; nobody will miss it.
            Err(_) if relation.dropped.load(Ordering::Acquire) => return Ok(()),
            opened => opened?,
        };
        let at = u64::from(id.block) * PAGE_SIZE as u64;
        let waiting = Waiting::on(WaitEvent::IODataFileWrite, WaitObject::Page(id));
        let write = || file.write_all_at(page, at);
        let written = counted((Use::BufferWritten, 1), Use::WriteNs, || {
            sched::blocking_on_disk(waiting, write)
        });
        bump(&self.counters.writes);
        if written.is_ok() && !temporary {
            self.note_newest(id, page::lsn(page));
        }
        self.note_change(relation, id.fork);
        written.map_err(|e| {
            let name = self.name(id.rel, id.fork);
            Error::io(format!("write block {} in file \"{name}\"", id.block), &e)
        })
    }

    /// A page was written.
    fn note_newest(&self, id: PageId, lsn: Lsn) {
        let mut all = self.newest.lock();
        let newest = all.entry((id.rel, id.fork)).or_default();
        if newest.lsn <= lsn {
            *newest = Newest { block: id.block, lsn };
        }
    }

    /// Makes the file of a temporary relation when its first page leaves the pool.
    #[cold]
    fn make_temporary(&self, relation: &Relation, fork: Fork) -> Result<()> {
        let _naming = self.naming.lock();
        self.file(relation.rel, fork, true)?;
        relation.fork(fork).exists.store(true, Ordering::Release);
        Ok(())
    }

    /// Asks the system to start writing these blocks to the disk, so that the sync to come finds less
    /// to do. A hint.
    pub(crate) fn begin_writeback(&self, first: PageId, last: u32) {
        if !self.options.fsync() || first.rel.is_temporary() {
            return;
        }
        if let Ok(file) = self.file(first.rel, first.fork, false) {
            let page = PAGE_SIZE as i64;
            let (from, len) =
                (i64::from(first.block) * page, i64::from(last + 1 - first.block) * page);
            // SAFETY: a system call on an open descriptor.
            unsafe {
                libc::sync_file_range(file.as_raw_fd(), from, len, libc::SYNC_FILE_RANGE_WRITE)
            };
        }
    }

    /// Asks the system to read blocks ahead. A hint.
    pub(crate) fn prefetch(&self, rel: RelId, fork: Fork, blocks: Range<u32>) {
        if rel.is_temporary() {
            return;
        }
        if let Ok(file) = self.file(rel, fork, false) {
            let from = libc::off_t::from(blocks.start) * PAGE_SIZE as libc::off_t;
            let len = blocks.len() as libc::off_t * PAGE_SIZE as libc::off_t;
            let advice = libc::POSIX_FADV_WILLNEED;
            // SAFETY: a system call on an open descriptor.
            unsafe { libc::posix_fadvise(file.as_raw_fd(), from, len, advice) };
        }
    }

    /// Adds zero pages; returns the first one's number. One caller at a time for a fork.
    pub(crate) fn extend(&self, rel: RelId, fork: Fork, count: u32) -> Result<u32> {
        let relation = self.relation(rel)?;
        if fork != Fork::Main && !rel.is_temporary() {
            self.create(rel, fork)?;
        }
        let first = relation.fork(fork).blocks.load(Ordering::Acquire);
        let Some(blocks) = first.checked_add(count).filter(|b| *b < u32::MAX) else {
            let name = self.name(rel, fork);
            return Err(err!(
                PROGRAM_LIMIT_EXCEEDED,
                "cannot extend file \"{name}\" beyond {} blocks",
                u32::MAX - 1
            ));
        };
        if let Some(overlay) = &self.overlay {
            overlay.limit(rel, fork, first);
        }
        if rel.is_temporary() || self.overlay.is_some() {
            relation.fork(fork).blocks.store(blocks, Ordering::Release);
            sched::used(Use::Extended, u64::from(count));
            return Ok(first);
        }
        let file = self.file(rel, fork, false)?;
        let (old, new) =
            (u64::from(first) * PAGE_SIZE as u64, u64::from(blocks) * PAGE_SIZE as u64);
        let waiting = on(WaitEvent::IODataFileExtend, rel);
        let pages = (Use::Extended, u64::from(count));
        let add = || allocate(&file, old, new);
        let added = counted(pages, Use::ExtendNs, || sched::blocking_on_disk(waiting, add));
        if let Err(e) = added {
            // A part that was added is cut off again as well as may be: a rest does no harm.
            let _ = file.set_len(old);
            let error = Error::io(format!("extend file \"{}\"", self.name(rel, fork)), &e);
            return Err(match e.raw_os_error() {
                Some(libc::ENOSPC | libc::EDQUOT) => error.hint("Check free disk space."),
                _ => error,
            });
        }
        relation.fork(fork).blocks.store(blocks, Ordering::Release);
        self.note_change(relation, fork);
        self.counters.extended.fetch_add(u64::from(count), Ordering::Relaxed);
        Ok(first)
    }

    /// For redo: makes sure that file and block are there.
    pub(crate) fn ensure(&self, id: PageId) -> Result<()> {
        let relation = self.relation(id.rel)?;
        self.create(id.rel, id.fork)?;
        let blocks = relation.fork(id.fork).blocks.load(Ordering::Acquire);
        match id.block.checked_sub(blocks) {
            Some(missing) => self.extend(id.rel, id.fork, missing.saturating_add(1)).map(drop),
            None => Ok(()),
        }
    }

    /// Cuts the fork; its pages beyond have left the pool.
    pub(crate) fn cut(&self, rel: RelId, fork: Fork, blocks: u32) -> Result<()> {
        let relation = self.relation(rel)?;
        let state = relation.fork(fork);
        if state.blocks.load(Ordering::Acquire) <= blocks {
            return Ok(());
        }
        if let Some(overlay) = &self.overlay {
            overlay.cut(rel, fork, blocks);
            state.blocks.store(blocks, Ordering::Release);
            return Ok(());
        }
        if rel.is_temporary() && !state.exists.load(Ordering::Acquire) {
            state.blocks.store(blocks, Ordering::Release);
            return Ok(());
        }
        let file = self.file(rel, fork, false)?;
        state.blocks.store(blocks, Ordering::Release);
        self.forget_newest(rel, fork, blocks);
        let len = u64::from(blocks) * PAGE_SIZE as u64;
        let waiting = on(WaitEvent::IODataFileTruncate, rel);
        let cut = sched::blocking(waiting, || file.set_len(len));
        self.note_change(relation, fork);
        cut.map_err(|e| Error::io(format!("truncate file \"{}\"", self.name(rel, fork)), &e))
    }

    /// Pages from here on are about to be cut off: those that come in their place may be pages of zeros.
    fn forget_newest(&self, rel: RelId, fork: Fork, blocks: u32) {
        self.cuts.fetch_add(1, Ordering::AcqRel);
        for pages in [&self.newest, &self.synced] {
            let mut pages = pages.lock();
            if pages.get(&(rel, fork)).is_some_and(|newest| newest.block >= blocks) {
                pages.remove(&(rel, fork));
            }
        }
        self.manifest.lock().note_cut(rel, fork, blocks);
    }

    /// The fork's length is to be noted by the next checkpoint.
    pub(crate) fn note_length(&self, rel: RelId, fork: Fork) -> Result<()> {
        let relation = self.relation(rel)?;
        if relation.fork(fork).exists.load(Ordering::Acquire) && self.overlay.is_none() {
            self.note_change(relation, fork);
        }
        Ok(())
    }

    /// Marks the relation as gone, so that nothing is written to it any more.
    /// Answers how many pages each fork had.
    pub(crate) fn mark_dropped(&self, rel: RelId) -> Result<[(Fork, u32); 3]> {
        let relation = self.relation_to_drop(rel)?;
        relation.dropped.store(true, Ordering::Release);
        self.manifest.lock().forget(rel);
        Ok(FORKS.map(|fork| (fork, relation.fork(fork).blocks.swap(0, Ordering::AcqRel))))
    }

    /// Moves the files of a relation marked as gone into a directory.
    pub(crate) fn set_aside(&self, rel: RelId, into: &Path) -> Result<()> {
        let relation = self.relation(rel)?;
        let _naming = self.naming.lock();
        for fork in FORKS {
            self.descriptors.forget(rel, fork);
            let name = self.name(rel, fork);
            let from = self.path(rel, fork);
            let mut to = into.join(from.file_name().unwrap_or_default());
            let mut number = 1;
            while to.exists() {
                number += 1;
                let another =
                    format!("{}.{number}", from.file_name().unwrap_or_default().display());
                to = into.join(another);
            }
            match fs::rename(&from, &to) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::io(format!("move file \"{name}\""), &e));
                }
                Err(_) => {}
                Ok(()) => eprintln!(
                    "LOG:  file \"{name}\" belongs to no relation; it is now \"{}\"",
                    to.display()
                ),
            }
            relation.fork(fork).exists.store(false, Ordering::Release);
        }
        self.names_changed.store(true, Ordering::Release);
        Ok(())
    }

    /// Removes the files of a relation marked as gone.
    pub(crate) fn remove(&self, rel: RelId) -> Result<()> {
        let relation = self.relation_to_drop(rel)?;
        let made = relation.forks.iter().any(|f| f.exists.load(Ordering::Acquire));
        if (rel.is_temporary() && !made) || self.overlay.is_some() {
            return Ok(());
        }
        let _naming = self.naming.lock();
        for fork in FORKS {
            self.descriptors.forget(rel, fork);
            let path = self.path(rel, fork);
            let waiting = on(WaitEvent::IODataFileRemove, rel);
            match sched::blocking(waiting, || fs::remove_file(path)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    let name = self.name(rel, fork);
                    return Err(Error::io(format!("remove file \"{name}\""), &e));
                }
                _ => relation.fork(fork).exists.store(false, Ordering::Release),
            }
        }
        self.names_changed.store(true, Ordering::Release);
        Ok(())
    }

    /// Relations with a main file.
    pub(crate) fn list(&self) -> Result<Vec<RelId>> {
        let names = self.names()?;
        let mut rels: Vec<RelId> =
            names.into_iter().filter(|(_, fork)| *fork == Fork::Main).map(|(rel, _)| rel).collect();
        rels.sort_unstable();
        Ok(rels)
    }

    /// Makes all that was written, extended, made or removed so far durable. A sync that fails
    /// stops the server.
    pub(crate) fn sync_all(&self) -> Result<()> {
        let forks = std::mem::take(&mut *self.to_sync.lock());
        for (rel, fork) in forks {
            let relation = self.relation(rel)?;
            relation.fork(fork).needs_sync.swap(false, Ordering::AcqRel);
            // The file is at least as long when it is synced, but for a cut, which is in the log.
            let blocks = relation.fork(fork).blocks.load(Ordering::Acquire);
            let cuts = self.cuts.load(Ordering::Acquire);
            let newest = self.newest.lock().remove(&(rel, fork));
            let file = match self.file(rel, fork, false) {
                Err(_) if relation.dropped.load(Ordering::Acquire) => continue,
                Err(e) => fatal::stop(&format!("sync \"{}\"", self.name(rel, fork)), &e),
                Ok(file) => file,
            };
            let sync = || io_wait(on(WaitEvent::IODataFileFlush, rel), || file.sync_data());
            if self.options.fsync()
                && let Err(e) = counted((Use::Synced, 1), Use::SyncNs, sync)
            {
                fatal::stop(&format!("sync \"{}\"", self.name(rel, fork)), &e);
            }
            bump(&self.counters.file_syncs);
            let mut manifest = self.manifest.lock();
            if !relation.dropped.load(Ordering::Acquire) {
                manifest.note(rel, fork, blocks);
                let mut synced = self.synced.lock();
                // It may be the page that was cut off meanwhile.
                let newest = newest.filter(|_| self.cuts.load(Ordering::Acquire) == cuts);
                synced.extend(newest.map(|newest| ((rel, fork), newest)));
            }
        }
        // Apart from the loop, which would hold the lock to its end.
        let made = std::mem::take(&mut *self.made.lock());
        for (rel, fork) in made {
            let relation = self.relation(rel)?;
            let mut manifest = self.manifest.lock();
            if !relation.dropped.load(Ordering::Acquire) {
                manifest.note_made(rel, fork);
            }
        }
        if self.names_changed.swap(false, Ordering::AcqRel)
            && self.options.fsync()
            && let Err(e) = File::open(&self.dir).and_then(|d| d.sync_all())
        {
            fatal::stop("sync directory \"base\"", &e);
        }
        Ok(())
    }
}

/// The relation and the fork whose file has this name.
fn parse_name(name: &str) -> Option<(RelId, Fork)> {
    let (number, fork) = match name.split_once('_') {
        None => (name, Fork::Main),
        Some((number, "fsm")) => (number, Fork::Fsm),
        Some((number, "vm")) => (number, Fork::Vm),
        Some(_) => return None,
    };
    Some((RelId(number.parse().ok()?), fork))
}

/// A wait with its count and its time.
fn counted<R>(count: (Use, u64), time: Use, wait: impl FnOnce() -> R) -> R {
    let result = sched::timed(time, wait);
    sched::used(count.0, count.1);
    result
}

fn gone(name: &str) -> Error {
    err!(UNDEFINED_FILE, "file \"{name}\" belongs to a relation that was dropped")
}

/// Extends a file by allocated zeros, so that a full disk is found out here and not when a page is
/// written; where the file system can't do that, by a hole.
fn allocate(file: &File, old: u64, new: u64) -> io::Result<()> {
    // SAFETY: a system call on an open descriptor.
    let failed = unsafe {
        libc::fallocate(file.as_raw_fd(), 0, old as libc::off_t, (new - old) as libc::off_t) != 0
    };
    if !failed {
        return Ok(());
    }
    match io::Error::last_os_error() {
        e if e.raw_os_error() == Some(libc::EOPNOTSUPP) => file.set_len(new),
        e if e.kind() == io::ErrorKind::Interrupted => allocate(file, old, new),
        e => Err(e),
    }
}

/// A wait for I/O on a whole file.
fn on(event: WaitEvent, rel: RelId) -> Waiting {
    Waiting::on(event, WaitObject::File(rel))
}

//! Files, pages, the buffer pool, the write-ahead log, checkpoints and recovery. Knows nothing of
//! rows.
//!
//! All changes to pages go through a [`Mtr`] (mini-transaction): it holds the exclusive latches of
//! the pages it changes, applies each change at once and notes it as bytes, and its commit writes
//! ONE log record with the changes of all its pages. So redo is generic: it lives here and needs no
//! code from the access methods. The layers above add records with a payload of their own
//! (commits), which recovery hands to their [`Participant`].
//!
//! Pages of temporary relations ([`RelId::is_temporary`]) are changed in the same way, but nothing of
//! it is logged, and checkpoints pass them by.
//!
//! Hints (changes that may be lost) are written into a page under a shared latch and never make it
//! dirty, so they can't tear a page that the log would not repair.
//!
//! Where to read on: page header `page`, frames and eviction [`buffer`], mini-transactions [`mtr`],
//! the log [`wal`], record bytes `wal::record`, checkpoints `checkpoint`, the crash cases one by one
//! `recovery`, the directory's own files `control`.
//!
//! Order of locking: page latches first (in the access method's order); under them a partition of
//! the mapping or the descriptor cache, one at a time; the log needs none of these. The barrier of
//! [`Storage::create_relation`] and [`Storage::truncate`] comes before all of them.

// The modules' documentation leads into the private ones: it is written for those who work here.
#![allow(rustdoc::private_intra_doc_links)]

mod about;
mod adopt;
mod backup;
pub mod buffer;
mod check;
mod checkpoint;
mod control;
mod copy;
mod core;
mod fatal;
mod files;
mod follow;
mod held;
mod manifest;
mod maps;
mod memory;
#[cfg(test)]
mod model;
pub mod mtr;
mod options;
mod page;
mod participant;
mod recovery;
mod restore;
mod rewind;
mod signal;
mod slots;
mod standby;
mod stats;
mod timeline;
pub mod wal;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use base::{Error, Fork, Lsn, RelId, Result, WaitEvent};
use sched::Mutex;

use crate::checkpoint::Pace;
use crate::control::{Control, DirLock};
use crate::core::Core;
use crate::files::Files;
use crate::manifest::Manifest;
use crate::maps::SavedMaps;
use crate::signal::Signal;
use crate::stats::Counters;
use crate::wal::reader::LogReader;
use crate::wal::record;
use crate::wal::segment::Segments;
use crate::wal::survey::Survey;

pub use about::{About, ChangedPage, LogEntry, each_record};
pub use backup::{Backup, BackupEnd, BackupFile};
pub use buffer::{BufferPool, FrameInfo, PageView, Pinned, ReadGuard, WriteGuard};
pub use maps::PageMaps;
pub use memory::{memory_of_machine, prefetch_page};
pub use mtr::{Mtr, PageRef};
pub use options::Options;
pub use page::{PAGE_HEADER, PAGE_SIZE, Page};
pub use participant::Participant;
pub use restore::{Marks, RestoreTarget, restore};
pub use rewind::{Behind, PageSum, Rewind, RewindFile, fork_of, page_sum, relation_path};
pub use slots::{SlotRecord, Slots};
pub use standby::{LogReceiver, Replay};
pub use stats::Stats;
pub use timeline::{HISTORY, History, Switch};
pub use wal::Wal;
pub use wal::stream::{LogStream, Logged};

/// Everything on disk.
pub struct Storage {
    /// The buffer pool.
    pub pool: BufferPool,
    /// The write-ahead log.
    pub wal: Wal,
    dir: PathBuf,
    core: Arc<Core>,
    /// The WAL writer, and the other two.
    threads: Mutex<Vec<JoinHandle<()>>>,
    wal_thread: Mutex<Option<JoinHandle<()>>>,
    lock: Mutex<Option<DirLock>>,
    /// Whether changes may be made; before that the directory is as it was.
    serves: AtomicBool,
    /// The pages that recovery is to make durable.
    recovered: Mutex<Option<Recovered>>,
}

/// The findings and work of recovery, until service begins.
struct Recovered {
    /// The log ends here; what lies behind is wiped.
    end: Lsn,
    /// From where on the log goes on.
    goes_on: Lsn,
    /// Something was redone, or the directory was not left cleanly.
    must_write: bool,
    /// The message about the log's end.
    tail: Option<String>,
}

/// The facts that a data directory tells about itself without being opened.
#[derive(Clone, Debug)]
pub struct Status {
    /// Whether a server holds the directory's lock, and its process id.
    pub running: Option<u32>,
    /// Whether the last server stopped cleanly.
    pub clean: bool,
    /// The directory's random id.
    pub system_id: u64,
}

impl Storage {
    /// Makes the directory's files (control file, empty log). The directory is missing or empty.
    ///
    /// # Errors
    /// `55000` when it holds something else.
    pub fn create(dir: &Path) -> Result<()> {
        Storage::create_with(dir, &Options::from_settings())
    }

    /// As [`Storage::create`] with given sizes.
    ///
    /// # Errors
    /// As [`Storage::create`].
    pub fn create_with(dir: &Path, options: &Options) -> Result<()> {
        control::create(dir, options)
    }

    /// Locks and opens the directory, recovers it if it was not shut down cleanly, and starts the
    /// WAL writer, background writer and checkpointer threads.
    ///
    /// # Errors
    /// `55006` in use; `55000` not ours or another version; I/O errors.
    pub fn open(dir: &Path, participant: Arc<dyn Participant>) -> Result<Arc<Storage>> {
        Storage::open_with(dir, participant, Options::from_settings())
    }

    /// As [`Storage::open`] with given sizes.
    ///
    /// # Errors
    /// As [`Storage::open`].
    pub fn open_with(
        dir: &Path,
        participant: Arc<dyn Participant>,
        options: Options,
    ) -> Result<Arc<Storage>> {
        let storage = Storage::recover_with(dir, participant, options)?;
        storage.begin_service()?;
        Ok(storage)
    }

    /// Opens a directory that nobody serves to look at it; nothing in it is changed. What recovery would
    /// change is in memory, or in a temporary file elsewhere.
    ///
    /// # Errors
    /// As [`Storage::open`].
    pub fn look(dir: &Path, participant: Arc<dyn Participant>) -> Result<Arc<Storage>> {
        Storage::look_with(dir, participant, Options::from_settings())
    }

    /// As [`Storage::look`] with given sizes.
    ///
    /// # Errors
    /// As [`Storage::open`].
    pub fn look_with(
        dir: &Path,
        participant: Arc<dyn Participant>,
        options: Options,
    ) -> Result<Arc<Storage>> {
        Storage::recover(dir, participant, options, DirLock::share(dir)?, true)
    }

    /// As [`Storage::open`], but nothing is changed that was there, before [`Storage::begin_service`]: the
    /// caller looks at its own data first.
    ///
    /// # Errors
    /// As [`Storage::open`].
    pub fn recover_with(
        dir: &Path,
        participant: Arc<dyn Participant>,
        options: Options,
    ) -> Result<Arc<Storage>> {
        Control::read(dir)?;
        let lock = DirLock::take(dir)?;
        lock.sign(dir)?;
        adopt::adopt_log(dir)?;
        Storage::recover(dir, participant, options, lock, false)
    }

    fn recover(
        dir: &Path,
        participant: Arc<dyn Participant>,
        options: Options,
        lock: DirLock,
        looks: bool,
    ) -> Result<Arc<Storage>> {
        let control = Control::read(dir)?;
        let manifest = Manifest::load(dir, control.system_id, control.files)?;
        let counters = Arc::new(Counters::new());
        let signal = Arc::new(Signal::new());
        let log = Arc::new(wal::Log::new(&options, &signal, &counters)?);
        let segments = Segments::new(dir, control.segment_size, options.fsync);
        let survey =
            Survey::make(&segments, &control, (options.accept_loss_from, options.follows))?;
        let files = Arc::new(Files::new(dir, &options, &counters, manifest, looks));
        files.expect_less(
            survey.cuts.iter().map(|(key, blocks)| (*key, *blocks)),
            survey.dropped.iter().copied(),
        );
        let touched = survey.touched.difference(&survey.dropped).copied();
        files.check_listed(touched.chain([RelId::CATALOG]))?;
        participant.restore(&control.state)?;
        // Until here everything was only read.
        let pool = Arc::new(buffer::pool::Pool::new(&options, &files, &log, &counters)?);
        let buffers = BufferPool { pool: pool.clone() };

        let maps = match options.follows || survey.gives_up {
            true => SavedMaps::none(),
            false => SavedMaps::read(dir, &control, survey.end),
        };
        let mut redo = recovery::Redo::new(&files, &buffers, &*participant, &survey, &maps);
        let mut reader = match looks {
            true => LogReader::to_look(segments.clone(), control.redo),
            false => LogReader::new(segments.clone(), control.redo),
        };
        redo.run(&mut reader, &survey)?;
        let goes_on = match survey.gives_up {
            true => segments.far_behind(survey.end).map_err(|e| Error::io("list the log", &e))?,
            false => survey.end,
        };
        let recovered = Recovered {
            end: survey.end,
            goes_on,
            must_write: survey.records > 0 || survey.gives_up || !control.clean,
            tail: survey.tail,
        };
        log.start_at(goes_on, control.redo);
        if looks {
            log.discard_all();
        }
        let slots = Slots::open(dir)?;
        let timeline = History::read(dir)?.current();
        let core = Arc::new(Core::new(
            dir.to_owned(),
            options,
            counters,
            signal,
            log.clone(),
            segments,
            files,
            pool,
            control,
            participant.clone(),
            slots,
            maps,
            timeline,
        ));
        let storage = Arc::new(Storage {
            pool: buffers,
            wal: Wal { log },
            dir: dir.to_owned(),
            core,
            threads: Mutex::new(WaitEvent::LWLockOther, Vec::new()),
            wal_thread: Mutex::new(WaitEvent::LWLockOther, None),
            lock: Mutex::new(WaitEvent::LWLockOther, Some(lock)),
            serves: AtomicBool::new(false),
            recovered: Mutex::new(WaitEvent::LWLockOther, Some(recovered)),
        });
        if survey.gives_up {
            participant.lost();
        }
        participant.recovered(goes_on)?;
        Ok(storage)
    }

    /// Whether the directory may lack what every directory has, since nobody has put it in yet.
    pub fn is_new(&self) -> bool {
        !self.core.control.lock().filled
    }

    /// The directory has what every directory has, durably: from now on it is never taken for a new one.
    ///
    /// # Errors
    /// The failure of the checkpoint.
    pub fn set_filled(&self) -> Result<()> {
        if !self.is_new() {
            return Ok(());
        }
        self.checkpoint()?;
        self.core.change_control(|control| control.filled = true)
    }

    /// Whether service has begun. Before that nobody changes a page.
    #[inline]
    pub fn serves(&self) -> bool {
        self.serves.load(Ordering::Relaxed)
    }

    /// Recovery is over and what it left is good: makes its result durable, or at least says that the
    /// directory is in use, and starts the threads. Does nothing when service has begun.
    ///
    /// # Errors
    /// I/O errors.
    pub fn begin_service(&self) -> Result<()> {
        let core = &self.core;
        let Some(recovered) = self.recovered.lock().take() else { return Ok(()) };
        self.put_log_in_order(&recovered)?;
        core.files.sweep_temporary()?;
        let failed = |e| Error::io("start the WAL writer", &e);
        let wal_thread = wal::spawn_writer(&core.log, &core.segments).map_err(failed)?;
        *self.wal_thread.lock() = Some(wal_thread);
        self.serves.store(true, Ordering::Release);
        let (is_listed, is_old, clean) = {
            let control = core.control.lock();
            (control.is_listed(), control.is_old(), control.clean)
        };
        if !is_listed {
            core.files.list_all()?;
        }
        if recovered.must_write {
            checkpoint::make(core, &Pace::HURRY, false)?;
        }
        if clean || is_old {
            core.change_control(|control| control.clean = false)?;
        }
        let for_checkpoints = core.clone();
        let for_writing = core.clone();
        let mut threads = self.threads.lock();
        threads
            .push(sched::spawn_thread("checkpointer", move || checkpoint::run(&for_checkpoints)));
        threads.push(sched::spawn_thread("background writer", move || {
            core::run_background_writer(&for_writing);
        }));
        Ok(())
    }

    /// Wipes what lies behind the log's end, and says where that is.
    fn put_log_in_order(&self, recovered: &Recovered) -> Result<()> {
        let (core, segments) = (&self.core, &self.core.segments);
        debug_assert_eq!(core.log.insert_position(), recovered.goes_on, "nothing is logged yet");
        let at = recovered.end;
        if recovered.goes_on != at {
            let lost = core.dir.join("lost");
            segments
                .keep_rest(at.0, &lost)
                .map_err(|e| Error::io("keep the rest of the log", &e))?;
            eprintln!(
                "WARNING:  everything that was committed after {at} is given up, as asked for; the rest \
                 of the log is in \"{}\"",
                lost.display()
            );
        }
        match &recovered.tail {
            Some(tail) => eprintln!("LOG:  the write-ahead log ends at {at}: {tail}"),
            None if recovered.must_write => eprintln!("LOG:  the write-ahead log ends at {at}"),
            None => {}
        }
        if recovered.must_write {
            segments.cut_at(at.0).map_err(|e| Error::io("clear the end of the log", &e))?;
        }
        let current = recovered.goes_on.0 / segments.size;
        segments.prepare(current).map_err(|e| Error::io("prepare a log segment", &e))
    }

    /// Reads the control file and the lock.
    ///
    /// # Errors
    /// As [`Storage::open`].
    pub fn status(dir: &Path) -> Result<Status> {
        let control = Control::read(dir)?;
        let running = DirLock::holder(dir)?;
        Ok(Status { running, clean: control.clean, system_id: control.system_id })
    }

    /// The directory's identity, which its copies share.
    pub fn system_id(&self) -> u64 {
        self.core.control.lock().system_id
    }

    /// The data directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Counts of the work since the directory was opened.
    pub fn stats(&self) -> Stats {
        self.core.counters.read(self.core.log.bytes())
    }

    /// Makes the (empty) main fork of a new relation. Other forks come to be when extended. The
    /// file is there after a crash if anything that was logged later is. A temporary relation gets a
    /// file only if a page of it leaves the pool.
    ///
    /// # Errors
    /// I/O errors.
    pub fn create_relation(&self, rel: RelId) -> Result<()> {
        if rel.is_temporary() {
            return self.core.files.begin_temporary(rel);
        }
        self.core.log.within_one_checkpoint(|| {
            self.core.files.create(rel, Fork::Main)?;
            let mut scratch = mtr::scratch::Scratch::take();
            scratch.record.extend_from_slice(&rel.0.to_le_bytes());
            self.core.log.append(&mut scratch.record, record::CREATED, |_| ());
            scratch.give_back();
            Ok(())
        })
    }

    /// Forgets the relation's pages and removes its files. The caller knows that no one uses it
    /// and that the transaction which dropped it is durable.
    ///
    /// # Errors
    /// I/O errors.
    pub fn drop_relation(&self, rel: RelId) -> Result<()> {
        self.drop_relations(&[rel])
    }

    /// As [`Storage::drop_relation`], for several; those without files are passed by. The log is flushed once,
    /// if a checkpoint has seen any of them: a file that the last checkpoint lists may only be missing when
    /// the log says why.
    ///
    /// # Errors
    /// I/O errors.
    pub fn drop_relations(&self, rels: &[RelId]) -> Result<()> {
        const AT_ONCE: usize = 1024;
        let (files, log) = (&self.core.files, &self.core.log);
        let mut logged = Vec::with_capacity(rels.len());
        for &rel in rels {
            if rel.is_temporary() {
                self.remove_files(rel)?;
            } else if files.has_file(rel)? || files.is_listed(rel) {
                logged.push(rel);
            }
        }
        for some in logged.chunks(AT_ONCE) {
            log.within_one_checkpoint(|| {
                let mut missed = Lsn::ZERO;
                for rel in some {
                    let mut scratch = mtr::scratch::Scratch::take();
                    scratch.record.extend_from_slice(&rel.0.to_le_bytes());
                    let end = log.append(&mut scratch.record, record::DROPPED, |_| ());
                    scratch.give_back();
                    if files.is_listed(*rel) {
                        missed = end;
                    }
                }
                log.flush(missed)?;
                some.iter().try_for_each(|rel| self.remove_files(*rel))
            })?;
        }
        Ok(())
    }

    fn remove_files(&self, rel: RelId) -> Result<()> {
        self.core.maps.remove(rel);
        for (fork, blocks) in self.core.files.mark_dropped(rel)? {
            self.core.pool.forget(rel, fork, 0..blocks);
        }
        self.core.files.remove(rel)
    }

    /// Moves the files of relations that nobody knows into the directory `lost`, with a line in the log for
    /// each, after a checkpoint whose list does without them.
    ///
    /// # Errors
    /// I/O errors.
    pub fn set_aside(&self, rels: &[RelId]) -> Result<()> {
        let core = &self.core;
        for rel in rels {
            for (fork, blocks) in core.files.mark_dropped(*rel)? {
                core.pool.forget(*rel, fork, 0..blocks);
            }
        }
        core.change_control(|_| ())?;
        let lost = core.dir.join("lost");
        let made = std::fs::create_dir_all(&lost);
        made.map_err(|e| Error::io(format!("create directory \"{}\"", lost.display()), &e))?;
        rels.iter().try_for_each(|rel| core.files.set_aside(*rel, &lost))
    }

    /// Relations that have files (for the sweep of orphans after recovery).
    ///
    /// # Errors
    /// I/O errors.
    pub fn relations(&self) -> Result<Vec<RelId>> {
        self.core.files.list()
    }

    /// Pages in the fork; 0 if it has no file. One atomic load.
    ///
    /// # Errors
    /// I/O errors at the first use of a relation.
    pub fn block_count(&self, rel: RelId, fork: Fork) -> Result<u32> {
        self.core.files.block_count(rel, fork)
    }

    /// Adds `count` zero pages at the end of the fork's file and returns the first one's number.
    /// Not logged: a page comes to life with [`Mtr::init`]. The caller holds the extension lock.
    ///
    /// # Errors
    /// `53100` when the disk is full; `54000` beyond the largest block number; I/O errors.
    pub fn extend(&self, rel: RelId, fork: Fork, count: u32) -> Result<u32> {
        self.core.files.extend(rel, fork, count)
    }

    /// Cuts the fork to `blocks` pages (logged). The caller holds the relation exclusively.
    ///
    /// # Errors
    /// I/O errors.
    pub fn truncate(&self, rel: RelId, fork: Fork, blocks: u32) -> Result<()> {
        let before = self.core.files.block_count(rel, fork)?;
        if before <= blocks {
            return Ok(());
        }
        if rel.is_temporary() {
            self.core.pool.forget(rel, fork, blocks..before);
            return self.core.files.cut(rel, fork, blocks);
        }
        self.core.log.within_one_checkpoint(|| {
            let mut scratch = mtr::scratch::Scratch::take();
            scratch.record.extend_from_slice(&rel.0.to_le_bytes());
            scratch.record.push(fork as u8);
            scratch.record.extend_from_slice(&blocks.to_le_bytes());
            let end = self.core.log.append(&mut scratch.record, record::CUT, |_| ());
            scratch.give_back();
            // A cut file whose cut isn't in the log would lack pages that redo wants to change.
            self.core.log.flush(end)?;
            self.core.pool.forget(rel, fork, blocks..before);
            self.core.files.cut(rel, fork, blocks)
        })
    }

    /// Asks the system to read blocks ahead that a scan will want soon. A hint; errors are left for
    /// the read.
    pub fn prefetch(&self, rel: RelId, fork: Fork, blocks: Range<u32>) {
        self.core.files.prefetch(rel, fork, blocks);
    }

    /// Starts a mini-transaction.
    #[inline]
    pub fn mtr(&self) -> Mtr<'_> {
        Mtr::new(self)
    }

    pub(crate) fn count_images(&self, images: u64) {
        if images > 0 {
            sched::used(base::usage::Use::WalImages, images);
            self.core.counters.wal_images.fetch_add(images, Ordering::Relaxed);
        }
    }

    /// Makes a checkpoint now and waits for it.
    ///
    /// # Errors
    /// The failure of it; `57P01` while the server is being stopped.
    pub fn checkpoint(&self) -> Result<()> {
        self.core.requests.ask_and_wait(&self.core.signal)
    }

    /// Last checkpoint, marks the directory clean, ends the threads. Nothing else may be running.
    ///
    /// # Errors
    /// The failure of the checkpoint; the directory then needs recovery.
    pub fn shutdown(&self) -> Result<()> {
        self.end_helpers();
        let mut result = Ok(());
        // The participant may log something in a checkpoint; then one more makes it clean.
        for _ in 0..3 {
            result = checkpoint::make(&self.core, &Pace::HURRY, true);
            if result.is_err() || self.follows() || self.core.control.lock().clean {
                break;
            }
        }
        self.end_log(result.is_err());
        result
    }

    /// Ends the threads without a checkpoint, as after a kill (for tests and `stop -m immediate`).
    pub fn abandon(&self) {
        self.core.log.stop(true);
        self.end_helpers();
        self.end_log(true);
    }

    fn end_helpers(&self) {
        self.core.signal.stop();
        if let Some(task) = self.core.pool.refill.task.get() {
            task.unpark();
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // One that panicked has said so on stderr.
            let _ = thread.join();
        }
    }

    fn end_log(&self, abandon: bool) {
        self.core.log.stop(abandon);
        let thread = self.wal_thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        self.core.release_participant();
        self.lock.lock().take();
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        if self.wal_thread.get_mut().is_some() {
            self.abandon();
        }
    }
}

//! The write-ahead log: one stream of bytes; an LSN is a position in it.
//!
//! ```text
//!  inserters                 ring (wal_buffers)            writer thread          files
//!  fetch_add on `position` -> copy the record in -> length -> walk, write ------> wal/0000…
//!  flush(lsn): queue, park <------------------------- wake <- fdatasync, `flushed`
//! ```
//!
//! Positions, in order: `flushed <= written <= complete <= position`.
//!
//! * `position` is raised by one `fetch_add` a record. Its top four bits are the **epoch**, which
//!   the checkpointer raises in the same word when it takes a redo position: so a reservation tells
//!   whether a checkpoint began before it. A mini-transaction decides which pages need full images
//!   by the redo position of the epoch it knows; if its reservation comes back with another epoch
//!   it turns the space into a filler and decides anew. A page is marked dirty before the decision,
//!   and the checkpoint waits for its latch, so no second checkpoint can end in between: four bits
//!   are plenty.
//! * The ring's rules are in [`ring`]; the record's bytes in [`record`]; files in [`segment`], and how they
//!   are written past the system's cache in [`blocks`].
//! * Whoever waits registers first ([`Log::flush`]: in the heap of waiters, ordered by LSN), then
//!   looks again, then parks. The writer publishes first, then looks for waiters. It says that it
//!   sleeps before it looks a last time; who wants something looks whether it sleeps after
//!   asking. So no wake-up is lost, and nobody makes a system call to wake a writer that is awake. While it
//!   gathers commits, one commit more leaves it alone; who needs the ring's space ends that.
//! * A write or a sync that fails stops the server: what the system says later about those bytes
//!   can't be trusted.

mod blocks;
pub(crate) mod cursor;
mod followers;
pub(crate) mod image;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod ring;
pub(crate) mod segment;
pub mod stream;
pub(crate) mod survey;
mod writer;

use std::cmp::Ordering as Order;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};

use base::{Error, Lsn, Result, WaitEvent, err};
use crossbeam_utils::CachePadded;
use ring::Ring;
use sched::{RawLwLock, SpinLock, TaskRef, WaitObject, Waiting};

use crate::mtr::scratch::Scratch;
use crate::options::Options;
use crate::signal::{Signal, stopping};
use crate::stats::{Counters, bump};

pub(crate) use writer::{spawn as spawn_writer, trigger};

/// One logical stream of records in segment files.
pub struct Wal {
    pub(crate) log: Arc<Log>,
}

/// Longest part of a payload that is logged in parts.
const PART_BYTES_MAX: usize = 1 << 20;

const EPOCH_SHIFT: u32 = 60;
const LSN_MASK: u64 = (1 << EPOCH_SHIFT) - 1;

/// The state that keeps the writer going.
const RUNNING: u8 = 0;
/// Write and sync everything, then end.
const FINISH: u8 = 1;
/// End at once.
const ABANDONED: u8 = 2;

/// The writer's present work: writing and syncing.
const AWAKE: u8 = 0;
/// It waits for more commits before a sync.
const GATHERS: u8 = 1;
/// It waits until somebody wants something.
const SLEEPS: u8 = 2;

/// So many who wait for a sync do not wait for more.
const MANY: usize = 16;

/// The state that inserters, waiters and the writer share.
pub(crate) struct Log {
    position: CachePadded<AtomicU64>,
    /// The newest checkpoint's redo position with its epoch.
    redo: CachePadded<AtomicU64>,
    written: CachePadded<AtomicU64>,
    /// Records that end here or before may be copied in: `written` and the ring's size, but for the
    /// moment of a change of size.
    limit: CachePadded<AtomicU64>,
    /// The ring's size that is wanted.
    wanted_size: AtomicU64,
    flushed: CachePadded<AtomicU64>,
    /// [`AWAKE`], [`GATHERS`] or [`SLEEPS`].
    writer: CachePadded<AtomicU8>,
    ring: Ring,
    waiters: SpinLock<BinaryHeap<Waiter>>,
    space_waiters: SpinLock<Vec<SpaceWaiter>>,
    pub(crate) followers: followers::Followers,
    /// Somebody wants a flush up to here and doesn't wait.
    requested: AtomicU64,
    stop: AtomicU8,
    task: OnceLock<TaskRef>,
    signal: Arc<Signal>,
    counters: Arc<Counters>,
    options: Options,
    /// Where the log began when it was opened.
    opened_at: AtomicU64,
    /// Numbers payloads that come in parts.
    next_parts: AtomicU64,
    /// Taken shared by what must lie on one side of every redo position as a whole, exclusively
    /// by the checkpointer when it takes one.
    barrier: RawLwLock,
    /// The log is another server's: nothing is ever added to it here.
    follows: AtomicBool,
    /// See [`Wal::hold_syncs`].
    #[cfg(debug_assertions)]
    syncs_held: AtomicBool,
}

struct Waiter {
    lsn: u64,
    task: TaskRef,
}

/// Somebody who waits for space for a record.
struct SpaceWaiter {
    start: u64,
    end: u64,
    task: TaskRef,
}

impl Ord for Waiter {
    /// The heap's greatest is the one with the lowest LSN.
    fn cmp(&self, other: &Waiter) -> Order {
        other.lsn.cmp(&self.lsn)
    }
}
impl PartialOrd for Waiter {
    fn partial_cmp(&self, other: &Waiter) -> Option<Order> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Waiter {
    fn eq(&self, other: &Waiter) -> bool {
        self.lsn == other.lsn
    }
}
impl Eq for Waiter {}

/// The redo position by which full images are decided, and its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Redo {
    pub lsn: Lsn,
    epoch: u64,
}

/// The reservation fell into another epoch; the space has become a filler.
pub(crate) struct EpochChanged;

impl Wal {
    /// Bytes of a record beside its only payload: the header, the payload's code and length. The whole is rounded up to
    /// a multiple of 8.
    pub const AROUND_PAYLOAD: usize = record::HEADER + 5;

    /// Appends a record that has only a payload (a commit, say); returns its end. Space is reserved
    /// with one atomic add; `on_reserved` runs right after that with the record's end position,
    /// before the bytes are copied (it must be short and must not wait).
    pub fn append(&self, code: u8, payload: &[u8], on_reserved: impl FnOnce(Lsn)) -> Lsn {
        if payload.len() > self.log.part_size() {
            return self.log.append_in_parts(code, payload, on_reserved);
        }
        let mut scratch = Scratch::take();
        record::push_payload(&mut scratch.record, code, payload);
        let end = self.log.append(&mut scratch.record, record::CHANGES, on_reserved);
        scratch.give_back();
        end
    }

    /// Where the next record will begin.
    pub fn insert_position(&self) -> Lsn {
        self.log.insert_position()
    }

    /// Everything before this is durable. One atomic load.
    pub fn flushed(&self) -> Lsn {
        self.log.flushed()
    }

    /// Waits (parked, `IPC:WalFlush`) until the log is durable up to `upto`; flushes in groups.
    /// Uninterruptible. A failed sync stops the server.
    ///
    /// # Errors
    /// `57P01` when the server is being stopped at once; `XX001` for a position that the log has
    /// not reached.
    pub fn flush(&self, upto: Lsn) -> Result<()> {
        self.log.flush(upto)
    }

    /// Changes the size of the log buffers soon, without waiting; they are rounded up to a power of two.
    pub fn set_buffers(&self, bytes: usize) {
        let log = &*self.log;
        let wanted = ring::fitting(bytes);
        if log.wanted_size.swap(wanted, Ordering::AcqRel) != wanted {
            log.wake_writer(GATHERS);
        }
    }

    /// Bytes of log buffers now.
    pub fn buffers(&self) -> u64 {
        self.log.ring.size()
    }

    /// For tests that cut the power: from here on, until it is let go, nothing becomes durable.
    #[cfg(debug_assertions)]
    pub fn hold_syncs(&self, held: bool) {
        self.log.syncs_held.store(held, Ordering::SeqCst);
    }

    /// Asks for a flush soon, without waiting (`synchronous_commit = off`).
    pub fn request_flush(&self, upto: Lsn) {
        let log = &*self.log;
        if log.requested.fetch_max(upto.0, Ordering::AcqRel) < upto.0 {
            log.wake_writer(SLEEPS);
        }
    }
}

impl Log {
    /// A log that takes no records yet and says that everything is durable: for recovery.
    pub(crate) fn new(
        options: &Options,
        signal: &Arc<Signal>,
        counters: &Arc<Counters>,
    ) -> Result<Log> {
        let ring = Ring::new(options.wal_buffers)
            .map_err(|e| Error::io("allocate the log buffers", &e))?;
        let word = |v| CachePadded::new(AtomicU64::new(v));
        let wanted_size = AtomicU64::new(ring.size());
        Ok(Log {
            position: word(LSN_MASK),
            redo: word(0),
            written: word(0),
            limit: word(0),
            wanted_size,
            flushed: word(LSN_MASK),
            writer: CachePadded::new(AtomicU8::new(AWAKE)),
            ring,
            waiters: SpinLock::new(BinaryHeap::new()),
            space_waiters: SpinLock::new(Vec::new()),
            followers: Default::default(),
            requested: AtomicU64::new(0),
            stop: AtomicU8::new(RUNNING),
            task: OnceLock::new(),
            signal: signal.clone(),
            counters: counters.clone(),
            options: options.clone(),
            opened_at: AtomicU64::new(0),
            next_parts: AtomicU64::new(0),
            barrier: RawLwLock::new(WaitEvent::LWLockOther),
            follows: AtomicBool::new(false),
            #[cfg(debug_assertions)]
            syncs_held: AtomicBool::new(false),
        })
    }

    /// Recovery is over: records go on from here. `redo` is the last checkpoint's.
    pub(crate) fn start_at(&self, end: Lsn, redo: Lsn) {
        self.position.store(end.0, Ordering::Release);
        self.written.store(end.0, Ordering::Release);
        self.limit.store(end.0 + self.ring.size(), Ordering::Release);
        self.flushed.store(end.0, Ordering::Release);
        self.redo.store(redo.0, Ordering::Release);
        self.opened_at.store(end.0, Ordering::Release);
    }

    /// From here on, or no longer, the log is another server's.
    pub(crate) fn set_follows(&self, follows: bool) {
        self.follows.store(follows, Ordering::SeqCst);
    }

    /// Whether the log is another server's.
    #[inline]
    pub(crate) fn follows(&self) -> bool {
        self.follows.load(Ordering::Relaxed)
    }

    /// The other server's log is here, durably, up to a record's end.
    pub(crate) fn advance(&self, end: Lsn) {
        debug_assert!(self.follows());
        for word in [&self.position, &self.written, &self.flushed] {
            word.store(end.0, Ordering::Release);
        }
        self.limit.store(end.0 + self.ring.size(), Ordering::Release);
        self.followers.wake();
    }

    pub(crate) fn insert_position(&self) -> Lsn {
        Lsn(self.position.load(Ordering::Acquire) & LSN_MASK)
    }

    pub(crate) fn flushed(&self) -> Lsn {
        Lsn(self.flushed.load(Ordering::Acquire))
    }

    /// Up to where the log is known to be durable by the one who has reserved `start`.
    fn durable(&self, start: u64) -> u64 {
        self.flushed.load(Ordering::Relaxed).min(start)
    }

    /// From here on records are taken and forgotten: the directory is only looked at.
    pub(crate) fn discard_all(&self) {
        self.limit.store(u64::MAX, Ordering::Release);
        self.flushed.store(LSN_MASK, Ordering::Release);
    }

    /// Bytes logged since the directory was opened.
    pub(crate) fn bytes(&self) -> u64 {
        self.insert_position().0.saturating_sub(self.opened_at.load(Ordering::Relaxed))
    }

    /// The newest redo position.
    pub(crate) fn redo(&self) -> Redo {
        let word = self.redo.load(Ordering::Acquire);
        Redo { lsn: Lsn(word & LSN_MASK), epoch: word >> EPOCH_SHIFT }
    }

    /// A checkpoint begins: takes the redo position. Every record before it was reserved in the
    /// old epoch, every record from it on is in the new one.
    pub(crate) fn begin_checkpoint(&self) -> Lsn {
        self.barrier.lock_exclusive();
        let old = self.position.fetch_add(1 << EPOCH_SHIFT, Ordering::AcqRel);
        let redo = old & LSN_MASK;
        let epoch = (old >> EPOCH_SHIFT).wrapping_add(1) & 0xf;
        self.redo.store(epoch << EPOCH_SHIFT | redo, Ordering::Release);
        // SAFETY: taken above.
        unsafe { self.barrier.unlock_exclusive() };
        Lsn(redo)
    }

    /// Runs what must lie on one side of every redo position as a whole: records that belong
    /// together, a record and the change of files that it tells of.
    pub(crate) fn within_one_checkpoint<R>(&self, work: impl FnOnce() -> R) -> R {
        self.barrier.lock_shared();
        let result = work();
        // SAFETY: taken above.
        unsafe { self.barrier.unlock_shared() };
        result
    }

    /// Payloads above this size are logged in parts. A record that fits into some ring fits into the
    /// smallest that a server can have, so that the ring may shrink before the record is in it.
    fn part_size(&self) -> usize {
        (self.ring.size() as usize / 8).min(PART_BYTES_MAX)
    }

    #[cold]
    fn append_in_parts(&self, code: u8, payload: &[u8], on_reserved: impl FnOnce(Lsn)) -> Lsn {
        let id = self.next_parts.fetch_add(1, Ordering::Relaxed).to_le_bytes();
        let part = |kind: u8, tag: u8, bytes: &[u8], on_reserved: &mut dyn FnMut(Lsn)| {
            let mut scratch = Scratch::take();
            scratch.record.extend_from_slice(&id);
            scratch.record.push(tag);
            scratch.record.extend_from_slice(bytes);
            let end = self.append(&mut scratch.record, kind, on_reserved);
            scratch.give_back();
            end
        };
        let part_size = self.part_size();
        let (parts, last) = payload.split_at((payload.len() - 1) / part_size * part_size);
        let mut on_reserved = Some(on_reserved);
        self.within_one_checkpoint(|| {
            for (i, bytes) in parts.chunks(part_size).enumerate() {
                part(record::PART, u8::from(i == 0), bytes, &mut |_| ());
            }
            part(record::LAST_PART, code, last, &mut |end| {
                if let Some(f) = on_reserved.take() {
                    f(end);
                }
            })
        })
    }

    /// Finishes and inserts a record that holds no page changes, so that no epoch matters.
    pub(crate) fn append(
        &self,
        record: &mut Vec<u8>,
        kind: u8,
        on_reserved: impl FnOnce(Lsn),
    ) -> Lsn {
        let crc = record::finish(record, kind, 0, 0);
        match self.insert(record, crc, None, on_reserved) {
            Ok(end) => end,
            Err(EpochChanged) => unreachable!("no epoch was asked for"),
        }
    }

    /// Reserves space for a finished record, tells `on_reserved` where it ends, and copies it.
    pub(crate) fn insert(
        &self,
        record: &mut [u8],
        body_crc: u32,
        decided_by: Option<Redo>,
        on_reserved: impl FnOnce(Lsn),
    ) -> Result<Lsn, EpochChanged> {
        let len = record.len() as u64;
        // A record of the standby's own would stand where the primary's history goes on.
        assert!(!self.follows(), "a standby writes no log of its own");
        assert!(
            len <= self.ring.size() / 2,
            "a log record of {len} bytes needs larger wal_buffers"
        );
        let old = self.position.fetch_add(len, Ordering::AcqRel);
        let start = old & LSN_MASK;
        let end = start + len;
        if let Some(redo) = decided_by
            && redo.epoch != old >> EPOCH_SHIFT
        {
            self.copy_in(start, end, &record::filler(record.len(), start, self.durable(start)));
            self.await_redo(old >> EPOCH_SHIFT);
            return Err(EpochChanged);
        }
        on_reserved(Lsn(end));
        record::place(record, body_crc, start, self.durable(start));
        self.copy_in(start, end, record);
        self.counters.wal_records.add(1);
        sched::used(base::usage::Use::WalRecords, 1);
        sched::used(base::usage::Use::WalBytes, len);
        Ok(Lsn(end))
    }

    /// Waits the instant until the checkpointer has published the epoch's redo position.
    fn await_redo(&self, epoch: u64) {
        while self.redo().epoch != epoch {
            std::thread::yield_now();
        }
    }

    fn copy_in(&self, start: u64, end: u64, record: &[u8]) {
        if end > self.limit.load(Ordering::Acquire) && !self.await_space(start, end) {
            return;
        }
        // SAFETY: start..end was reserved by this very call's fetch_add, and there is space.
        unsafe { self.ring.copy_in(start, record) };
        let eighth = self.ring.size() / 8;
        if start / eighth != end / eighth {
            self.wake_writer(GATHERS);
        }
    }

    /// Parks until the ring has space up to `end`; false when the server stops at once.
    #[cold]
    fn await_space(&self, start: u64, end: u64) -> bool {
        bump(&self.counters.wal_buffers_full);
        let has_space = || end <= self.limit.load(Ordering::Acquire);
        while !has_space() {
            if self.is_abandoned() {
                return false;
            }
            let task = sched::current();
            self.space_waiters.lock().push(SpaceWaiter { start, end, task });
            self.wake_writer(GATHERS);
            if !has_space() && !self.is_abandoned() {
                sched::park_uninterruptible(WaitEvent::LWLockWALInsert, None);
            }
        }
        true
    }

    pub(crate) fn flush(&self, upto: Lsn) -> Result<()> {
        if self.flushed() >= upto {
            return Ok(());
        }
        self.flush_slow(upto)
    }

    #[cold]
    fn flush_slow(&self, upto: Lsn) -> Result<()> {
        let end = self.insert_position();
        if upto > end {
            return Err(err!(
                DATA_CORRUPTED,
                "position {upto} is beyond the end of the write-ahead log at {end}"
            ));
        }
        let task = sched::current();
        let waiting = {
            let mut waiters = self.waiters.lock();
            waiters.push(Waiter { lsn: upto.0, task });
            waiters.len()
        };
        self.wake_writer(if waiting < MANY { SLEEPS } else { GATHERS });
        while self.flushed() < upto {
            if self.is_abandoned() {
                return Err(stopping());
            }
            let waiting = Waiting::on(WaitEvent::IPCWalFlush, WaitObject::Position(upto));
            sched::park_uninterruptible(waiting, None);
        }
        Ok(())
    }

    /// After asking for something: wakes the writer if it is at this, or further from work.
    fn wake_writer(&self, from: u8) {
        fence(Ordering::SeqCst);
        if self.writer.load(Ordering::Relaxed) >= from
            && self.writer.swap(AWAKE, Ordering::AcqRel) != AWAKE
            && let Some(task) = self.task.get()
        {
            task.unpark();
        }
    }

    /// Whether a test lets nothing become durable now.
    fn are_syncs_held(&self) -> bool {
        #[cfg(debug_assertions)]
        return self.syncs_held.load(Ordering::SeqCst);
        #[cfg(not(debug_assertions))]
        false
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.stop.load(Ordering::Acquire) == ABANDONED
    }

    /// Ends the writer thread: after a last flush, or at once.
    pub(crate) fn stop(&self, abandon: bool) {
        self.stop.store(if abandon { ABANDONED } else { FINISH }, Ordering::SeqCst);
        self.writer.store(AWAKE, Ordering::SeqCst);
        if let Some(task) = self.task.get() {
            task.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mtr::scratch::Scratch;

    fn log() -> Arc<Log> {
        let mut options = Options::from_settings();
        options.wal_buffers = 1 << 20;
        let log = Log::new(&options, &Arc::new(Signal::new()), &Arc::new(Counters::new())).unwrap();
        log.start_at(Lsn(4096), Lsn(4096));
        Arc::new(log)
    }

    fn bytes(log: &Log, from: Lsn, to: Lsn) -> Vec<u8> {
        // SAFETY: no writer runs, and the records are complete.
        unsafe { log.ring.pieces(from.0, to.0) }.concat()
    }

    /// A thread that gathers commits in the writer's place, until somebody ends that (else it says so in the end).
    fn gathering(log: &Arc<Log>) -> std::thread::JoinHandle<sched::Wake> {
        let of_thread = log.clone();
        let thread = std::thread::spawn(move || {
            let _ = of_thread.task.set(sched::current());
            of_thread.writer.store(GATHERS, Ordering::SeqCst);
            let until = std::time::Instant::now() + std::time::Duration::from_secs(5);
            sched::park_uninterruptible(WaitEvent::TimeoutCommitDelay, Some(until))
        });
        while log.writer.load(Ordering::SeqCst) != GATHERS {
            std::thread::yield_now();
        }
        thread
    }

    #[test]
    fn who_needs_space_does_not_wait_for_more_commits() {
        let log = log();
        let gathering = gathering(&log);
        let inserter = log.clone();
        let inserter = std::thread::spawn(move || inserter.await_space(4096, 4096 + (2 << 20)));
        assert_ne!(gathering.join().unwrap(), sched::Wake::TimedOut, "it was not woken");
        log.stop(true);
        log.space_waiters.lock().iter().for_each(|w| w.task.unpark());
        assert!(!inserter.join().unwrap());
    }

    #[test]
    fn one_commit_more_does_not_end_the_gathering_and_many_do() {
        let log = log();
        let mut scratch = Scratch::take();
        scratch.record.extend_from_slice(&[1; 100]);
        let crc = record::finish(&mut scratch.record, record::CHANGES, 0, 0);
        assert!(log.insert(&mut scratch.record, crc, None, |_| ()).is_ok());
        let upto = log.insert_position();
        let gathering = gathering(&log);
        let mut commits = Vec::new();
        for number in 1..=MANY {
            assert_eq!(log.writer.load(Ordering::SeqCst), GATHERS, "before the commit {number}");
            let committer = log.clone();
            commits.push(std::thread::spawn(move || committer.flush(upto)));
            while log.waiters.lock().len() < number {
                std::thread::yield_now();
            }
        }
        assert_ne!(gathering.join().unwrap(), sched::Wake::TimedOut, "it was not woken");
        log.stop(true);
        log.waiters.lock().iter().for_each(|w| w.task.unpark());
        commits.into_iter().for_each(|c| assert!(c.join().unwrap().is_err()));
    }

    #[test]
    fn a_decision_made_before_a_checkpoint_is_refused_and_its_space_is_a_filler() {
        let log = log();
        let before = log.redo();
        let mut scratch = Scratch::take();
        scratch.record.extend_from_slice(&[1; 100]);
        let crc = record::finish(&mut scratch.record, record::CHANGES, 0, 0);
        let redo = log.begin_checkpoint();
        assert_eq!(redo, Lsn(4096));
        let refused = log.insert(&mut scratch.record, crc, Some(before), |_| ());
        assert!(refused.is_err());
        let filled = log.insert_position();
        let filler = bytes(&log, redo, filled);
        assert_eq!(filler.len(), scratch.record.len());
        assert!(record::is_valid(&filler, redo.0) && filler[16] == record::FILLER);
        let end = log.insert(&mut scratch.record, crc, Some(log.redo()), |_| ());
        let Ok(end) = end else { panic!("the decision was made anew") };
        assert!(record::is_valid(&bytes(&log, filled, end), filled.0));
    }

    #[test]
    fn epochs_wrap_round_without_touching_the_position() {
        let log = log();
        for i in 0..40_u64 {
            let redo = log.begin_checkpoint();
            assert_eq!((redo, log.redo().lsn, log.redo().epoch), (redo, redo, (i + 1) % 16));
            let mut record = vec![0; record::HEADER];
            assert_eq!(log.append(&mut record, record::CHANGES, |_| ()).0, redo.0 + 24);
        }
    }

    #[test]
    fn waiting_for_what_was_never_logged_is_an_error() {
        let log = log();
        assert!(log.flush(Lsn(4096)).is_ok());
        assert_eq!(log.flush(Lsn(4097)).unwrap_err().code().as_str(), "XX001");
        log.stop(true);
        let mut record = vec![0; record::HEADER];
        let end = log.append(&mut record, record::CHANGES, |_| ());
        assert_eq!(log.flush(end).unwrap_err().code().as_str(), "57P01");
    }
}

//! The WAL writer: one thread that moves complete records from the ring to the files, syncs them
//! when somebody wants that, and wakes exactly those whose position is covered.
//!
//! One round, when somebody waits for some of it or the ring fills, writes everything that is complete (in
//! chunks, so that inserters who wait for space get it soon), then syncs if anybody waits for what was written. Those who come during the sync are
//! the next round's group: the slower the disk, the larger the groups. Records for which nobody waits stay in the
//! ring until they fill an eighth of it (to write them by themselves is as much work as to write them with the
//! commit after them). While the workers have more than enough to do, a sync waits a little for more commits;
//! and when there is nothing to do the writer looks for more for a while before it sleeps.
//!
//! # Changing the ring's size
//!
//! A position's place in the ring depends on the size, so the size changes at a moment when the ring is
//! empty and nobody is copying. From when another size is wanted the writer leaves `limit` where it is
//! (`G`) and writes on, until one of these is so at `written` (`W`):
//!
//! * **Nobody has reserved anything.** The writer lowers `limit` to `W` and then, by a read-modify-write
//!   of `position`, finds it still at `W`: all records before are complete, and whoever reserves later
//!   comes after that operation, sees `limit`, and waits.
//! * **The record at `W` waits for space beyond `G`**, which its inserter has said. All records before it
//!   are complete, and all later ones end beyond `G` too, so their inserters wait or will.
//!
//! Then it changes the size and moves `limit`. Whoever passes reads the size after `limit`.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::WaitEvent;
use base::faults::{self, Fault};
use base::settings::{live_int, setting};
use sched::{TaskRef, io_wait};

use super::blocks::Blocks;
use super::segment::{Opened, Segments};
use super::{ABANDONED, AWAKE, FINISH, GATHERS, LSN_MASK, Log, MANY, SLEEPS, SpaceWaiter};
use crate::fatal;
use crate::stats::{add_time, bump};

/// At most so much is written before its space is given back to inserters.
const CHUNK: u64 = 1 << 20;

/// Time between two syncs when nobody waits for them (`synchronous_commit = off`).
const SOON: Duration = Duration::from_millis(10);

/// Time between two looks at whether a test still holds the log.
const HELD: Duration = Duration::from_micros(200);

struct Writer {
    log: Arc<Log>,
    segments: Segments,
    open: Option<(u64, Opened)>,
    /// The blocks of a segment that is written directly.
    blocks: Blocks,
    written: u64,
    flushed: u64,
    covered: Vec<TaskRef>,
    last_sync: Instant,
    /// It has waited for others since the last sync.
    has_let_join: bool,
}

/// Starts the thread; records go on from the log's position.
///
/// # Errors
/// When the system has no memory.
pub(crate) fn spawn(log: &Arc<Log>, segments: &Segments) -> std::io::Result<JoinHandle<()>> {
    let start = log.insert_position().0;
    let mut writer = Writer {
        log: log.clone(),
        segments: segments.clone(),
        open: None,
        blocks: Blocks::new()?,
        written: start,
        flushed: start,
        covered: Vec::new(),
        last_sync: Instant::now(),
        has_let_join: false,
    };
    Ok(sched::spawn_thread("walwriter", move || {
        let _end = EndOfThread;
        writer.run();
    }))
}

/// Without the writer nothing can be committed: a panic of its thread ends the server.
struct EndOfThread;

impl Drop for EndOfThread {
    fn drop(&mut self) {
        if std::thread::panicking() {
            fatal::broken("the WAL writer failed");
        }
    }
}

/// The work that a round found to do.
enum Due {
    Nothing,
    /// Somebody waits for durability up to here.
    Sync(u64),
    /// Somebody asked for a flush, but nobody waits.
    Soon,
}

impl Writer {
    fn run(&mut self) {
        // Only this thread sets it, once.
        let _ = self.log.task.set(sched::current());
        loop {
            if self.log.is_abandoned() {
                return self.wake_everybody();
            }
            let due = self.due();
            let now = match due {
                Due::Sync(_) => true,
                Due::Soon => self.last_sync.elapsed() >= SOON,
                Due::Nothing => false,
            };
            if let Due::Sync(_) = due {
                self.let_others_join();
            }
            let writes = now || self.is_behind();
            let progress = writes && self.write_complete();
            self.change_size();
            match due {
                Due::Sync(upto) if upto <= self.written => self.sync(),
                Due::Soon if now => self.sync(),
                Due::Nothing | Due::Soon if progress => {}
                Due::Nothing if self.may_end() => return,
                Due::Nothing if !self.is_behind() => {
                    if !self.look_again() {
                        self.sleep(None);
                    }
                }
                Due::Soon if !self.is_behind() => self.sleep(Some(self.last_sync + SOON)),
                // An inserter between reservation and completion has been put off its core.
                _ => std::thread::yield_now(),
            }
        }
    }

    /// Writes a chunk of complete records; false when there are none.
    fn write_complete(&mut self) -> bool {
        let (mut complete, limit) = (self.written, self.written + CHUNK);
        while complete < limit {
            match self.log.ring.complete_len(complete) {
                0 => break,
                len => complete += u64::from(len),
            }
            if complete >= self.written + self.log.ring.size() {
                break;
            }
        }
        if complete == self.written {
            return false;
        }
        let log = self.log.clone();
        // SAFETY: written..complete are complete records, and this is the writer.
        let pieces = unsafe { log.ring.pieces(self.written, complete) };
        let mut at = self.written;
        for piece in pieces {
            self.write(at, piece);
            at += piece.len() as u64;
        }
        // SAFETY: as above; the slices are gone.
        unsafe { self.log.ring.clear(self.written, complete) };
        self.written = complete;
        self.log.written.store(complete, Ordering::Release);
        if !self.wants_other_size() {
            self.give_space();
        }
        self.tell_checkpointer();
        true
    }

    /// Lets inserters have the space that has been written.
    fn give_space(&self) {
        self.log.limit.store(self.written + self.log.ring.size(), Ordering::Release);
        let waiting = std::mem::take(&mut *self.log.space_waiters.lock());
        waiting.iter().for_each(|w| w.task.unpark());
    }

    fn wants_other_size(&self) -> bool {
        self.log.wanted_size.load(Ordering::Acquire) != self.log.ring.size()
    }

    /// Changes the ring's size if that is wanted and this is the moment; see the module.
    fn change_size(&mut self) {
        if !self.wants_other_size() {
            return;
        }
        let log = self.log.clone();
        let frozen = log.limit.load(Ordering::Acquire);
        let beyond = |w: &SpaceWaiter| w.start == self.written && w.end > frozen;
        if !log.space_waiters.lock().iter().any(beyond) {
            log.limit.store(self.written, Ordering::SeqCst);
            let position = log.position.fetch_add(0, Ordering::SeqCst) & LSN_MASK;
            if position != self.written {
                // Somebody is copying, or about to wait.
                log.limit.store(frozen, Ordering::SeqCst);
                let waiting = std::mem::take(&mut *log.space_waiters.lock());
                waiting.iter().for_each(|w| w.task.unpark());
                return;
            }
        }
        let wanted = log.wanted_size.load(Ordering::Acquire);
        // SAFETY: this is the writer; everything before `written` was cleared and nothing after it is
        // copied in, as the module shows; `limit` is moved below.
        let changed = unsafe { log.ring.resize(wanted) };
        if let Err(e) = changed {
            eprintln!("WARNING:  could not change the size of the log buffers: {e}");
            log.wanted_size.store(log.ring.size(), Ordering::Release);
        }
        self.give_space();
    }

    fn write(&mut self, mut at: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (number, offset) = (at / self.segments.size, at % self.segments.size);
            let n = bytes.len().min((self.segments.size - offset) as usize);
            self.change_segment(number, offset);
            let Some((_, segment)) = &self.open else { unreachable!("it was opened just now") };
            let (file, blocks) = (&segment.file, &mut self.blocks);
            let began = Instant::now();
            faults::reach_critical(Fault::WalWrite);
            let result = io_wait(WaitEvent::IOWALWrite, || match segment.direct {
                true => blocks.write(file, offset, &bytes[..n]),
                false => file.write_all_at(&bytes[..n], offset),
            });
            add_time(&self.log.counters.wal_write_ns, began);
            if let Err(e) = result {
                fatal::stop("write to the write-ahead log", &e);
            }
            bump(&self.log.counters.wal_writes);
            bytes = &bytes[n..];
            at += n as u64;
        }
    }

    /// Sees to it that this segment is open, which the log goes on in at this offset; the one before is synced.
    fn change_segment(&mut self, number: u64, offset: u64) {
        if self.open.as_ref().is_some_and(|(n, _)| *n == number) {
            return;
        }
        self.sync_file();
        let mut opened = self.segments.open_write(number, self.segments.wants_direct());
        if let Ok(Opened { file, direct: true }) = &opened
            && self.blocks.begin(file, offset).is_err()
        {
            // The file system has it, but wants other blocks.
            opened = self.segments.open_write(number, false);
        }
        match opened {
            Ok(segment) => self.open = Some((number, segment)),
            Err(e) => fatal::stop("open a segment of the write-ahead log", &e),
        }
        self.log.signal.prepare_segment(number + 1);
    }

    fn sync_file(&self) {
        if let Some((_, segment)) = &self.open {
            let began = Instant::now();
            if let Err(e) = io_wait(WaitEvent::IOWALSync, || self.segments.sync(&segment.file)) {
                fatal::stop("sync the write-ahead log", &e);
            }
            add_time(&self.log.counters.wal_sync_ns, began);
            bump(&self.log.counters.wal_syncs);
        }
    }

    /// Makes everything written durable, says so, and wakes those who waited for it.
    fn sync(&mut self) {
        if self.log.are_syncs_held() {
            return std::thread::sleep(HELD);
        }
        self.sync_file();
        self.has_let_join = false;
        self.last_sync = Instant::now();
        self.flushed = self.written;
        self.log.flushed.store(self.flushed, Ordering::Release);
        self.pop_covered();
        self.covered.drain(..).for_each(|t| t.unpark());
        self.log.followers.wake();
        sched::observe::drain_waits();
    }

    /// Waits for more committers: while the workers have more than enough to do anyway, and, with
    /// `commit_delay`, when there is more than one already. Once before each sync, and not while somebody needs
    /// what is not written yet.
    fn let_others_join(&mut self) {
        if std::mem::replace(&mut self.has_let_join, true) {
            return;
        }
        self.log.writer.store(GATHERS, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let waiting = self.log.waiters.lock().len();
        let after = |us: i64| Instant::now() + Duration::from_micros(us.unsigned_abs());
        let (delay, longest) =
            (live_int(setting::COMMIT_DELAY), live_int(setting::COMMIT_GATHER_DELAY));
        if waiting >= MANY || self.is_behind() || self.log.stop.load(Ordering::SeqCst) != 0 {
            // No time to lose.
        } else if delay > 0 && waiting > 1 {
            sched::park_uninterruptible(WaitEvent::TimeoutCommitDelay, Some(after(delay)));
        } else if longest > 0 {
            sched::wait_while_saturated(WaitEvent::TimeoutCommitDelay, after(longest));
        }
        self.log.writer.store(AWAKE, Ordering::SeqCst);
    }

    fn pop_covered(&mut self) -> Option<u64> {
        let mut waiters = self.log.waiters.lock();
        while let Some(first) = waiters.peek() {
            if first.lsn > self.flushed {
                return Some(first.lsn);
            }
            self.covered.extend(waiters.pop().map(|w| w.task));
        }
        None
    }

    /// The lowest position that somebody wants durable and that isn't.
    fn due(&mut self) -> Due {
        let waiter = self.pop_covered();
        self.covered.drain(..).for_each(|t| t.unpark());
        let requested = self.log.requested.load(Ordering::Acquire);
        let end = self.log.insert_position().0;
        let requested = (requested > self.flushed && requested <= end).then_some(requested);
        let finish =
            (self.log.stop.load(Ordering::Acquire) == FINISH && end > self.flushed).then_some(end);
        match (waiter.or(finish), requested) {
            (Some(upto), _) => Due::Sync(upto),
            (None, Some(_)) => Due::Soon,
            (None, None) => Due::Nothing,
        }
    }

    fn may_end(&self) -> bool {
        self.log.stop.load(Ordering::Acquire) != 0
            && self.log.position.load(Ordering::Acquire) & LSN_MASK == self.flushed
    }

    /// Whether so much is waiting in the ring that it should be written though nobody asked, or the ring
    /// is to change.
    fn is_behind(&self) -> bool {
        if self.wants_other_size() {
            return true;
        }
        let waiting = self.log.insert_position().0 - self.written;
        waiting > self.log.ring.size() / 8 || !self.log.space_waiters.lock().is_empty()
    }

    /// Looks for something to do for a while before it sleeps: with a few busy clients the next commit comes
    /// sooner than the writer would be asleep and awake again. The processor is anybody's who wants it.
    fn look_again(&mut self) -> bool {
        let longest = Duration::from_micros(live_int(setting::WORKER_SPIN_TIME).unsigned_abs());
        let until = Instant::now() + longest;
        while Instant::now() < until {
            std::thread::yield_now();
            let stops = self.log.stop.load(Ordering::Acquire) != 0;
            if stops || self.is_behind() || !matches!(self.due(), Due::Nothing) {
                return true;
            }
        }
        false
    }

    fn sleep(&mut self, until: Option<Instant>) {
        sched::observe::drain_waits();
        self.log.writer.store(SLEEPS, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let due = match self.due() {
            Due::Sync(_) => true,
            Due::Soon => until.is_none(),
            Due::Nothing => false,
        };
        let idle = !due && !self.is_behind();
        if idle && self.log.stop.load(Ordering::SeqCst) == 0 {
            sched::park_uninterruptible(WaitEvent::ActivityWalWriterMain, until);
        }
        self.log.writer.store(AWAKE, Ordering::SeqCst);
    }

    fn tell_checkpointer(&self) {
        let since = self.written.saturating_sub(self.log.redo().lsn.0);
        self.log.signal.logged(since > trigger(self.log.options.max_wal_size()));
    }

    fn wake_everybody(&mut self) {
        debug_assert_eq!(self.log.stop.load(Ordering::Acquire), ABANDONED);
        std::mem::take(&mut *self.log.waiters.lock()).iter().for_each(|w| w.task.unpark());
        std::mem::take(&mut *self.log.space_waiters.lock()).iter().for_each(|w| w.task.unpark());
    }
}

/// Log volume since the last redo position at which a checkpoint is due: the files reach back to the
/// redo position before while it runs, so about half of the bound.
pub(crate) fn trigger(max_wal_size: u64) -> u64 {
    max_wal_size * 10 / 19
}

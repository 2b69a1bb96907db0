//! Checkpoints: the point from which recovery has to redo moves on.
//!
//! A checkpoint
//!
//! 1. takes the redo position while no relation is being created or cut (the **barrier**: such a
//!    change of files is made under its shared side, from its log record to the end of the change,
//!    so it lies as a whole on one side of the redo position);
//! 2. flushes the log up to there: now every record before it is complete, and every `on_reserved` of
//!    them has returned;
//! 3. has the participant make its own state durable;
//! 4. writes every page that was dirty, spread out when nobody is in a hurry: as far as
//!    `checkpoint_completion_target` of the way to the next checkpoint, be that in time or in log;
//! 5. syncs all files that were written, extended, made or removed;
//! 6. saves the maps of pages, adds to the list of relation files what has changed and replaces the control file; redo would now start
//!    at the new position;
//! 7. recycles log segments that nobody needs any more.
//!
//! Work goes on meanwhile ("fuzzy"). No checkpoint is made when nothing was logged since the last.
//! The checkpointer sleeps without a time limit until something is logged.

use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use base::faults::{self, Fault};
use base::settings::{live_int, live_real, setting};
use base::{Result, WaitEvent};

use crate::core::Core;
use crate::maps::SavedMaps;
use crate::signal::{Requests, stopping};
use crate::stats::{add_time, bump};

/// How much time and log the writes of a checkpoint may be spread over.
pub(crate) struct Pace(Option<Spread>);

struct Spread {
    begun: Instant,
    time: Duration,
    log: u64,
}

impl Pace {
    pub(crate) const HURRY: Pace = Pace(None);

    fn to_the_next(core: &Core) -> Pace {
        let share = live_real(setting::CHECKPOINT_COMPLETION_TARGET);
        let log = (crate::wal::trigger(core.options.max_wal_size()) as f64 * share) as u64;
        Pace(Some(Spread { begun: Instant::now(), time: timeout().mul_f64(share), log }))
    }

    /// Whether this share of the work may wait.
    fn is_ahead(&self, core: &Core, done: f64) -> bool {
        let Some(spread) = &self.0 else { return false };
        let logged = core.log.insert_position().0 - core.log.redo().lsn.0;
        spread.begun.elapsed() < spread.time.mul_f64(done)
            && (logged as f64) < spread.log as f64 * done
    }
}

fn timeout() -> Duration {
    Duration::from_secs(live_int(setting::CHECKPOINT_TIMEOUT) as u64)
}

/// Tells those who wait for checkpoints when the thread is gone. Without it the log would grow for
/// ever, so a panic ends the server.
struct EndOfThread<'a>(&'a Requests);

impl Drop for EndOfThread<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            crate::fatal::broken("the checkpointer failed");
        }
        self.0.thread_ended();
    }
}

/// The checkpointer thread's life.
pub(crate) fn run(core: &Core) {
    let signal = &core.signal;
    let _end = EndOfThread(&core.requests);
    let _ = signal.task.set(sched::current());
    let mut last = Instant::now();
    while !signal.is_stopped() {
        prepare_segment(core);
        let nothing_logged = nothing_logged(core);
        let asked = core.requests.is_wanted();
        let volume = signal.volume.swap(false, Ordering::AcqRel);
        let timed = !nothing_logged && last.elapsed() >= timeout();
        if asked || volume || timed {
            last = Instant::now();
            attempt(core, asked, timed);
        } else if nothing_logged {
            last = Instant::now();
            sleep_until_logged(core);
        } else if !core.requests.is_wanted() && !signal.is_told() {
            // Asked again, and last without a lock: whoever waits for a lock uses up the wake-up of what
            // was said meanwhile.
            let event = WaitEvent::ActivityCheckpointerMain;
            sched::park_uninterruptible(event, Some(last + timeout()));
        }
    }
}

/// Whether the last complete checkpoint has it all.
fn nothing_logged(core: &Core) -> bool {
    if core.log.follows() {
        return core.restart_at.load(Ordering::Acquire) <= core.control.lock().redo.0;
    }
    core.log.insert_position() == core.control.lock().redo
}

fn sleep_until_logged(core: &Core) {
    let signal = &core.signal;
    signal.idle.store(true, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    // The locks first, as above; `idle` is lowered by who has logged something.
    let due = !nothing_logged(core) || core.requests.is_wanted();
    if !due && !signal.is_told() && signal.idle.load(Ordering::SeqCst) {
        sched::park_uninterruptible(WaitEvent::ActivityCheckpointerMain, None);
    }
    signal.idle.store(false, Ordering::SeqCst);
}

fn prepare_segment(core: &Core) {
    let number = core.signal.segment.swap(0, Ordering::AcqRel);
    if number != 0
        && let Err(e) = core.segments.prepare(number)
    {
        // The writer makes the file itself then, or says what is wrong.
        eprintln!("WARNING:  could not prepare a log segment: {e}");
    }
    if number != 0 {
        note_durable(core);
    }
}

/// A segment is full: the control file learns how far the log is durable, so that a segment that gets lost is
/// missed.
fn note_durable(core: &Core) {
    /// Not for every one of the smallest.
    const WORTH_IT: u64 = 4 << 20;
    let known = core.control.lock().durable;
    if core.log.flushed().0.saturating_sub(known.0) >= WORTH_IT
        && let Err(e) = core.change_control(|_| ())
    {
        eprintln!("WARNING:  could not note how far the log is durable: {e}");
    }
}

fn attempt(core: &Core, hurry: bool, timed: bool) {
    core.requests.begin();
    let counters = &core.counters;
    bump(if timed { &counters.checkpoints_timed } else { &counters.checkpoints_requested });
    let pace = if hurry { Pace::HURRY } else { Pace::to_the_next(core) };
    let result = make(core, &pace, false);
    if let Err(e) = &result
        && !core.signal.is_stopped()
    {
        eprintln!("WARNING:  a checkpoint failed: {e}");
    }
    core.requests.end(result);
}

/// Makes a checkpoint; `last`: nothing runs any more, so the directory is clean afterwards.
pub(crate) fn make(core: &Core, pace: &Pace, last: bool) -> Result<()> {
    let _one = core.checkpointing.lock();
    if core.log.follows() {
        return crate::standby::make_restart_point(core, pace);
    }
    let before = core.control.lock().clone();
    if core.log.insert_position() == before.redo && before.clean == last {
        return Ok(());
    }
    let redo = core.log.begin_checkpoint();
    // The note about the log's volume was about the redo position before.
    core.signal.volume.store(false, Ordering::Release);
    core.log.flush(redo)?;
    let participant = core.participant()?;
    let state = participant.checkpoint(redo)?;
    write_out(core, pace)?;
    SavedMaps::save(core, redo);
    core.change_control(|control| {
        control.clean = last && core.log.insert_position() == redo;
        control.redo = redo;
        control.state = state;
    })?;
    let grown = redo.0 - before.redo.0;
    recycle(core, redo.0, grown);
    Ok(())
}

/// Writes every page that is dirty, and makes all files durable.
pub(crate) fn write_out(core: &Core, pace: &Pace) -> Result<()> {
    let began = Instant::now();
    write_pages(core, pace)?;
    add_time(&core.counters.checkpoint_write_ns, began);
    let began = Instant::now();
    core.files.sync_all()?;
    add_time(&core.counters.checkpoint_sync_ns, began);
    if core.log.is_abandoned() {
        return Err(stopping());
    }
    faults::reach_critical(Fault::Checkpoint);
    Ok(())
}

/// Pages that are written before the system is asked to begin with their way to the disk, and
/// before the checkpoint looks whether it may wait.
const BATCH: usize = 32;

fn write_pages(core: &Core, pace: &Pace) -> Result<()> {
    let mut dirty = core.pool.dirty();
    dirty.sort_unstable();
    let count = dirty.len();
    for (number, batch) in dirty.chunks(BATCH).enumerate() {
        for (id, index) in batch {
            if core.log.is_abandoned() {
                return Err(stopping());
            }
            if core.pool.write_if_dirty(*id, *index)? {
                bump(&core.counters.checkpoint_pages);
            }
        }
        for file in batch.chunk_by(|(a, _), (b, _)| (a.rel, a.fork) == (b.rel, b.fork)) {
            let (first, last) = (file[0].0, file[file.len() - 1].0);
            core.files.begin_writeback(first, last.block);
        }
        slow_down(core, pace, (number * BATCH + batch.len()) as f64 / count as f64);
    }
    Ok(())
}

/// Waits as long as the work is ahead, unless somebody is in a hurry.
fn slow_down(core: &Core, pace: &Pace, done: f64) {
    loop {
        prepare_segment(core);
        let hurry = core.signal.is_stopped()
            || core.signal.volume.load(Ordering::Acquire)
            || core.requests.is_wanted();
        if hurry || !pace.is_ahead(core, done) {
            return;
        }
        let soon = Instant::now() + Duration::from_millis(100);
        sched::park_uninterruptible(WaitEvent::TimeoutCheckpointWriteDelay, Some(soon));
    }
}

/// Keeps as many segments ready as the log grew by between two checkpoints, within `max_wal_size`.
pub(crate) fn recycle(core: &Core, redo: u64, grown: u64) {
    let size = core.segments.size;
    let current = core.log.flushed().0 / size;
    let spare = (grown.min(core.options.max_wal_size() / 2) / size).max(1) + 1;
    let end = core.log.insert_position().0;
    let asked = live_int(setting::WAL_KEEP_SIZE).max(0) as u64;
    let keep_from = core.slots.keep_from(redo, end, size).min(end.saturating_sub(asked << 20));
    let keep_from = core.held.lock().least().map_or(keep_from, |held| held.min(keep_from));
    if let Err(e) = core.segments.recycle(keep_from / size, current, spare) {
        eprintln!("WARNING:  could not recycle log segments: {e}");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::Lsn;

    use super::*;
    use crate::Options;
    use crate::Storage;
    use crate::participant::Participant;

    struct Nobody;

    impl Participant for Nobody {
        fn restore(&self, _state: &[u8]) -> Result<()> {
            Ok(())
        }
        fn redo(&self, _code: u8, _payload: &[u8], _lsn: Lsn) -> Result<()> {
            Ok(())
        }
        fn recovered(&self, _lsn: Lsn) -> Result<()> {
            Ok(())
        }
        fn checkpoint(&self, _redo: Lsn) -> Result<Vec<u8>> {
            Ok(Vec::new())
        }
    }

    /// Comes back when the condition holds; panics when it doesn't for long.
    fn eventually(what: &str, condition: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !condition() {
            assert!(Instant::now() < end, "{what}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_is_said_during_a_wait_for_a_lock_is_not_slept_through() {
        let dir = std::env::temp_dir().join(format!("storage-checkpointer-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let options = Options {
            frames: 24,
            wal_segment_size: 1 << 20,
            fsync: Some(false),
            ..Options::from_settings()
        };
        Storage::create_with(&dir, &options).unwrap();
        let storage = Storage::open_with(&dir, Arc::new(Nobody), options).unwrap();
        let core = &storage.core;
        // Something is logged, so the checkpointer does not wait for that.
        storage.wal.append(200, b"x", |_| ());
        eventually("the checkpointer begins", || core.signal.task.get().is_some());
        let task = core.signal.task.get().unwrap();
        let wait = || task.waiting().map(|(waiting, since)| (waiting.event, since));

        let requests = core.requests.state.lock();
        core.signal.wake();
        let waits_for_lock = || wait().is_some_and(|(event, _)| event == WaitEvent::LWLockOther);
        eventually("it looks at the requests", waits_for_lock);
        let first = wait();
        core.signal.prepare_segment(1);
        // The wake-up is used up: the wait for the lock begins again.
        eventually("it waits on", || waits_for_lock() && wait() != first);
        drop(requests);
        eventually("the segment is prepared", || core.signal.segment.load(Ordering::Acquire) == 0);

        storage.shutdown().unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

//! Changing the number of frames while they are in use.
//!
//! Growing makes frames (or takes them out of retirement) and puts them on the free list. Shrinking
//! lowers the bound first, so that the clock passes no frame beyond it and none goes back to the
//! free list; then empties the frames beyond one by one: written if dirty, claimed once nobody has a
//! pin, unlinked, retired. A frame in somebody's hand, between being claimed and being named, is
//! come back to. If pages stay pinned the frames go back to work.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use base::{Error, Result, WaitEvent, err};

use super::frame::{CLAIMED, Frame, RETIRED};
use super::pool::{FRAMES_MIN, Pool};

impl Pool {
    /// See [`super::BufferPool::resize`].
    pub(super) fn resize(&self, count: usize, patience: Duration) -> Result<()> {
        let _one_at_a_time = self.resizing.lock();
        let (now, most) = (self.arena.active(), self.arena.most());
        if count < FRAMES_MIN || count > most {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "the buffer pool can have {FRAMES_MIN} to {most} pages until the next restart"
            ));
        }
        if count >= now {
            self.grow(now, count)?
        } else {
            self.shrink(now, count, patience)?
        }
        self.fit_mapping(count, self.mapping.partitions())
    }

    fn fit_mapping(&self, frames: usize, partitions: usize) -> Result<()> {
        let fitted = self.mapping.resize(frames, partitions, self.arena.frames());
        fitted.map_err(|e| Error::io("allocate the buffer mapping", &e))
    }

    /// See [`super::BufferPool::set_partitions`].
    pub(super) fn set_partitions(&self, partitions: usize) -> Result<()> {
        let _one_at_a_time = self.resizing.lock();
        self.fit_mapping(self.arena.active(), partitions)
    }

    fn grow(&self, from: usize, to: usize) -> Result<()> {
        self.arena.make(to).map_err(|e| Error::io("allocate shared buffers", &e))?;
        let mut free = self.free.lock();
        self.arena.set_active(to);
        for frame in &self.arena.frames()[from..to] {
            frame.clear(RETIRED);
            free.push(frame.index);
        }
        self.free_len.store(free.len(), Ordering::Relaxed);
        Ok(())
    }

    fn shrink(&self, from: usize, to: usize, patience: Duration) -> Result<()> {
        self.lower_bound(to);
        let (mut deadline, mut least) = (Instant::now() + patience, usize::MAX);
        loop {
            let emptied = self.empty_frames(from, to);
            let left = match &emptied {
                Ok(left) => *left,
                Err(_) => usize::MAX,
            };
            if left == 0 {
                self.arena.release_retired();
                return Ok(());
            }
            if left < least {
                // Writing many pages takes its time: only what does not move is waited for in vain.
                (deadline, least) = (Instant::now() + patience, left);
            }
            if emptied.is_err() || Instant::now() > deadline {
                self.undo_shrink(from, to);
                emptied?;
                return Err(err!(
                    OBJECT_IN_USE,
                    "the buffer pool could not shrink: {left} of its last {} pages are in use",
                    from - to
                ));
            }
            // Pins are given back by tasks that don't know of us: look again soon.
            let soon = Instant::now() + Duration::from_millis(5);
            sched::park_uninterruptible(WaitEvent::IPCFreeBuffer, Some(soon));
        }
    }

    fn lower_bound(&self, to: usize) {
        let mut free = self.free.lock();
        self.arena.set_active(to);
        free.retain(|index| {
            let stays = (*index as usize) < to;
            if !stays {
                self.arena.frames()[*index as usize].set(RETIRED);
            }
            stays
        });
        self.free_len.store(free.len(), Ordering::Relaxed);
    }

    /// Retires what can be; returns how many frames are left.
    fn empty_frames(&self, from: usize, to: usize) -> Result<usize> {
        let mut left = 0;
        for frame in &self.arena.frames()[to..from] {
            if frame.state() & RETIRED == 0 && !self.empty_frame(frame)? {
                left += 1;
            }
        }
        Ok(left)
    }

    fn empty_frame(&self, frame: &Frame) -> Result<bool> {
        if frame.state() & CLAIMED != 0 || frame.pin_as(frame.id(), false).is_none() {
            return Ok(false);
        }
        let written = self.write_out(frame, true);
        if written.is_ok() && frame.claim_pinned_clean() {
            self.unlink(frame);
            self.give_back(frame);
            return Ok(true);
        }
        frame.unpin();
        written.map(|_| false)
    }

    /// The frames that were retired go back to work.
    fn undo_shrink(&self, from: usize, to: usize) {
        let mut free = self.free.lock();
        self.arena.set_active(from);
        for frame in &self.arena.frames()[to..from] {
            if frame.state() & RETIRED != 0 {
                frame.clear(RETIRED);
                free.push(frame.index);
            }
        }
        self.free_len.store(free.len(), Ordering::Relaxed);
    }
}

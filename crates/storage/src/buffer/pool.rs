//! Finding, reading, evicting and writing pages.
//!
//! * **Miss**: take a claimed frame; under the partition's lock look again, else name the frame,
//!   link it, open it for reading; read without any lock. Who comes meanwhile pins the frame and
//!   waits until READING is gone. A failed read leaves the frame linked but not VALID: the next
//!   one tries again.
//! * **Eviction**: the free list, then the clock. Who evicts may hold latches, so it never waits for one: a
//!   dirty victim whose latch is taken is passed by. Where pages must be written, an I/O worker writes and
//!   evicts some of them together, so that a session that finds none clean keeps no worker. A claimed victim
//!   is unlinked under its partition's lock; no two such locks are ever held.
//! * **Write-out**: WRITING first, then the shared latch, DIRTY off, copy, latch off; then the log
//!   is flushed up to the copy's LSN; then the copy gets its checksum and is written. The page can
//!   be changed meanwhile, which makes it dirty again.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::time::{Duration, Instant};

use base::faults::{self, Fault};
use base::settings::{live_int, setting};
use base::usage::Use;
use base::{Error, Fork, Lsn, PageId, RelId, Result, WaitEvent, err};
use crossbeam_utils::CachePadded;
use sched::{Mutex, SpinLock, TaskRef, WaitObject, Waiting};

use super::arena::Arena;
use super::frame::{CLAIMED, DIRTY, Frame, READING, RETIRED, VALID, WRITING};
use super::mapping::{Bucket, Mapping};
use super::{PageView, Pinned};
use crate::buffer::frame::FrameInfo;
use crate::files::Files;
use crate::memory::memory_of_machine;
use crate::options::Options;
use crate::page::{self, PAGE_SIZE, Page};
use crate::signal::stopping;
use crate::stats::{Counters, bump};
use crate::wal::Log;

const WAIT_QUEUES: usize = 64;
/// For how long who finds every frame pinned waits while others read, and how often it looks.
const FRAME_PATIENCE: Duration = Duration::from_secs(10);
const FRAME_LOOKS: Duration = Duration::from_millis(1);
/// Pages that are evicted together, if there is none that needs not be written for it.
const VICTIMS: usize = 16;
pub(super) const FRAMES_MIN: usize = 16;
const FRAMES_MAX: usize = 1 << 27;

/// How a missing page comes into its frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    Read,
    Zero,
}

/// Which pages a sweep may write.
enum Writes<'a> {
    None,
    AtMost(&'a mut i64),
    Any,
}

/// The result of a sweep.
enum Swept<'a> {
    /// A frame, now claimed and without a page.
    Frame(&'a Frame),
    /// This page is to be written first, and the sweep may not.
    Dirty(PageId),
    Nothing,
}

/// See the module.
pub(crate) struct Pool {
    pub(super) arena: Arena,
    pub(super) mapping: Mapping,
    /// Claimed, clean, unlinked frames.
    pub(super) free: SpinLock<Vec<u32>>,
    pub(super) free_len: CachePadded<AtomicUsize>,
    hand: CachePadded<AtomicUsize>,
    io_waiters: Vec<SpinLock<Vec<(u32, TaskRef)>>>,
    copies: SpinLock<Vec<Box<Page>>>,
    /// The background writer sleeps, and its task.
    pub(crate) refill: Refill,
    /// Held while the number of frames changes.
    pub(super) resizing: Mutex<()>,
    files: Arc<Files>,
    log: Arc<Log>,
    counters: Arc<Counters>,
}

/// How the background writer is woken.
pub(crate) struct Refill {
    pub(crate) sleeping: AtomicBool,
    pub(crate) task: std::sync::OnceLock<TaskRef>,
}

impl Pool {
    pub(crate) fn new(
        options: &Options,
        files: &Arc<Files>,
        log: &Arc<Log>,
        counters: &Arc<Counters>,
    ) -> Result<Pool> {
        let count = options.frames.clamp(FRAMES_MIN, FRAMES_MAX);
        // Addresses are reserved for a pool as large as the machine's memory.
        let most = memory_of_machine().div_ceil(PAGE_SIZE).clamp(1 << 17, FRAMES_MAX).max(count);
        let allocated = |e| Error::io("allocate the shared buffers", &e);
        let arena = Arena::new(count, most).map_err(allocated)?;
        Ok(Pool {
            arena,
            mapping: Mapping::new(count, most, options.partitions).map_err(allocated)?,
            free: SpinLock::new((0..count as u32).rev().collect()),
            free_len: CachePadded::new(AtomicUsize::new(count)),
            hand: CachePadded::new(AtomicUsize::new(0)),
            io_waiters: (0..WAIT_QUEUES).map(|_| SpinLock::new(Vec::new())).collect(),
            copies: SpinLock::new(Vec::new()),
            refill: Refill { sleeping: AtomicBool::new(false), task: std::sync::OnceLock::new() },
            resizing: Mutex::new(WaitEvent::LWLockOther, ()),
            files: files.clone(),
            log: log.clone(),
            counters: counters.clone(),
        })
    }

    /// Number of frames.
    pub(crate) fn len(&self) -> usize {
        self.arena.active()
    }

    #[inline]
    pub(super) fn pin(&self, id: PageId, load: Load, raise: bool) -> Result<Pinned> {
        let bucket = self.mapping.bucket(id);
        if let Some((frame, state)) = self.mapping.pin(&self.arena, bucket, id, raise) {
            // SAFETY: the pin was taken just now and is the new value's.
            let pinned = unsafe { Pinned::from_pinned(frame) };
            if state & VALID == 0 {
                let _wait = sched::DiskWait::begin();
                self.await_valid(frame, load)?;
            }
            self.counters.hits.add(1);
            sched::used(Use::BufferHit, 1);
            return Ok(pinned);
        }
        self.pin_missing(id, bucket, load, raise)
    }

    /// See [`super::BufferPool::read_optimistic`].
    #[inline]
    pub(super) fn read_optimistic<R>(
        &self,
        id: PageId,
        f: impl FnOnce(PageView<'_>) -> R,
    ) -> Option<R> {
        let frame = self.mapping.find(&self.arena, self.mapping.bucket(id), id)?;
        let version = frame.stable_version()?;
        if !frame.is(id) || !frame.is_in_use() {
            return None;
        }
        // SAFETY: frames and the addresses of their pages stay for as long as the pool. If the page
        // leaves, other bytes (or zeros, after the pool shrank) are read and the version has moved.
        let result = f(unsafe { PageView::of(frame.page()) });
        frame.still(version).then_some(result)
    }

    /// See [`super::BufferPool::prefetch`].
    pub(super) fn prefetch(&self, ids: &[PageId], missing: &mut dyn FnMut(PageId)) {
        for id in ids {
            match self.mapping.first_in_chain(*id) {
                Some(frame) => self.arena.prefetch_with_frame(frame),
                None => missing(*id),
            }
        }
    }

    /// See [`super::BufferPool::peek`].
    #[inline]
    pub(super) fn peek<R>(&self, id: PageId, f: impl FnOnce(PageView<'_>) -> R) -> Option<R> {
        let frame = self.mapping.find(&self.arena, self.mapping.bucket(id), id)?;
        // SAFETY: as in `read_optimistic`.
        Some(f(unsafe { PageView::of(frame.page()) }))
    }

    #[inline]
    pub(super) fn count_optimistic(&self, pages: u64) {
        self.counters.optimistic.add(pages);
    }

    pub(super) fn shared_words(&self, id: PageId) -> Option<[u64; 3]> {
        let frame = self.mapping.find(&self.arena, self.mapping.bucket(id), id)?;
        Some(frame.shared_words())
    }

    #[cold]
    fn pin_missing(&self, id: PageId, bucket: Bucket, load: Load, raise: bool) -> Result<Pinned> {
        let _wait = sched::DiskWait::begin();
        let mut spare = None;
        loop {
            let partition = self.mapping.lock(bucket);
            if let Some(frame) = partition.find(self.arena.frames(), bucket, id) {
                let pinned = frame.pin_as(id, raise);
                drop(partition);
                if pinned.is_none() {
                    // It is being evicted; that ends without waiting for anything of ours.
                    sched::yield_now();
                    continue;
                }
                // SAFETY: pinned just now.
                let pinned = unsafe { Pinned::from_pinned(frame) };
                if let Some(unneeded) = spare {
                    self.give_back(unneeded);
                }
                self.await_valid(frame, load)?;
                return Ok(pinned);
            }
            if let Some(frame) = spare {
                let frame: &Frame = frame;
                frame.rename(id);
                partition.link(bucket, frame);
                frame.open_for_reading(raise);
                drop(partition);
                // SAFETY: opening it for reading left one pin, which is ours.
                let pinned = unsafe { Pinned::from_pinned(frame) };
                self.fill(frame, id, load)?;
                return Ok(pinned);
            }
            drop(partition);
            spare = Some(self.take_frame()?);
        }
    }

    /// Fills a frame for which the caller has READING.
    fn fill(&self, frame: &Frame, id: PageId, load: Load) -> Result<()> {
        let _turn = IoTurn { pool: self, frame, flag: READING };
        // SAFETY: READING is ours and VALID is off, so nobody looks at the page.
        let page = unsafe { frame.page().as_mut() };
        match load {
            Load::Zero => page.fill(0),
            Load::Read => {
                faults::reach(Fault::PageRead)?;
                self.files.read(id, page)?;
                check(page, id)?;
            }
        }
        frame.filled();
        Ok(())
    }

    /// Waits until somebody has filled the pinned frame, or fills it.
    #[cold]
    fn await_valid(&self, frame: &Frame, load: Load) -> Result<()> {
        loop {
            let state = frame.state();
            if state & VALID != 0 {
                return Ok(());
            }
            if state & READING != 0 {
                self.await_io(frame, READING);
            } else if frame.begin(READING, 0) {
                if frame.state() & VALID != 0 {
                    frame.clear(READING);
                    self.wake_io(frame);
                    return Ok(());
                }
                return self.fill(frame, frame.id(), load);
            }
        }
    }

    fn io_queue(&self, frame: &Frame) -> &SpinLock<Vec<(u32, TaskRef)>> {
        &self.io_waiters[frame.index as usize % WAIT_QUEUES]
    }

    fn await_io(&self, frame: &Frame, flag: u64) {
        while frame.state() & flag != 0 {
            let task = sched::current();
            self.io_queue(frame).lock().push((frame.index, task));
            if frame.state() & flag == 0 {
                return;
            }
            let waiting = Waiting::on(WaitEvent::IPCBufferIO, frame.wait_object());
            sched::park_uninterruptible(waiting, None);
        }
    }

    fn wake_io(&self, frame: &Frame) {
        let mut woken = Vec::new();
        self.io_queue(frame).lock().retain(|(index, task)| {
            let ours = *index == frame.index;
            if ours {
                woken.push(task.clone());
            }
            !ours
        });
        woken.iter().for_each(|t| t.unpark());
    }

    // ---- eviction

    /// A claimed frame without a page.
    fn take_frame(&self) -> Result<&Frame> {
        if let Some(frame) = self.take_free() {
            return Ok(frame);
        }
        let mut patience = None;
        for round in 0.. {
            if let Some(frame) = self.evict()? {
                return Ok(frame);
            }
            if let Some(frame) = self.take_free() {
                return Ok(frame);
            }
            // Pins are short: let their holders run. Those that wait for the disk take a little longer.
            if (3..64).contains(&round) {
                sched::yield_now();
            } else if round >= 64 {
                let now = Instant::now();
                let until = *patience.get_or_insert(now + FRAME_PATIENCE);
                if now >= until || !sched::DiskWait::are_others() {
                    break;
                }
                sched::park_uninterruptible(WaitEvent::IPCFreeBuffer, Some(now + FRAME_LOOKS));
            }
        }
        Err(err!(OUT_OF_MEMORY, "no unpinned buffers available")
            .hint("Raise shared_buffers, or run fewer statements at the same time."))
    }

    fn take_free(&self) -> Option<&Frame> {
        let len = self.free_len.load(Ordering::Relaxed);
        if len < self.low_mark() {
            self.ask_refill();
        }
        if len == 0 {
            return None;
        }
        let mut free = self.free.lock();
        let index = free.pop()?;
        self.free_len.store(free.len(), Ordering::Relaxed);
        Some(&self.arena.frames()[index as usize])
    }

    /// Puts a claimed, unlinked frame on the free list, or into retirement.
    pub(super) fn give_back(&self, frame: &Frame) {
        let mut free = self.free.lock();
        if frame.index as usize >= self.arena.active() {
            frame.set(RETIRED);
            return;
        }
        free.push(frame.index);
        self.free_len.store(free.len(), Ordering::Relaxed);
    }

    /// See [`super::BufferPool::make_room`].
    pub(super) fn make_room(&self, frames: usize) -> Result<()> {
        let wanted = frames.min(self.arena.active() / 4);
        while self.free_len.load(Ordering::Relaxed) < wanted {
            match self.evict()? {
                Some(frame) => self.give_back(frame),
                None => break,
            }
        }
        Ok(())
    }

    /// See [`super::BufferPool::contents`].
    pub(super) fn contents(&self) -> impl Iterator<Item = FrameInfo> {
        // In this order: the pool may grow meanwhile, and then there are more frames than asked for.
        let active = self.arena.active();
        self.arena.frames()[..active].iter().map(Frame::info)
    }

    /// Free frames below which the background writer is asked for more.
    fn low_mark(&self) -> usize {
        (self.arena.active() / 64).min(256)
    }

    fn ask_refill(&self) {
        fence(Ordering::SeqCst);
        if self.refill.sleeping.load(Ordering::Relaxed)
            && self.refill.sleeping.swap(false, Ordering::AcqRel)
            && let Some(task) = self.refill.task.get()
        {
            task.unpark();
        }
    }

    /// Whether the background writer has something to do.
    pub(crate) fn wants_refill(&self) -> bool {
        self.free_len.load(Ordering::Relaxed) < self.low_mark()
    }

    /// The background writer's round: fills the free list, writing at most `bgwriter_lru_maxpages`;
    /// false when that was not enough or nothing could be evicted.
    pub(crate) fn refill(&self) -> Result<bool> {
        let mut writes = live_int(setting::BGWRITER_LRU_MAXPAGES);
        while self.free_len.load(Ordering::Relaxed) < 2 * self.low_mark() {
            match self.sweep(Writes::AtMost(&mut writes))? {
                Swept::Frame(frame) => self.give_back(frame),
                _ => {
                    if writes == 0 {
                        bump(&self.counters.rounds_cut);
                    }
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// A claimed frame whose page was not needed; None after some rounds of the clock without one. Where
    /// pages must be written for that, some are, and their frames freed for others.
    fn evict(&self) -> Result<Option<&Frame>> {
        let page = match self.sweep(Writes::None)? {
            Swept::Frame(frame) => return Ok(Some(frame)),
            Swept::Nothing => return Ok(None),
            Swept::Dirty(page) => page,
        };
        let waiting = Waiting::on(WaitEvent::IODataFileWrite, WaitObject::Page(page));
        sched::elsewhere(waiting, || self.evict_some())
    }

    fn evict_some(&self) -> Result<Option<&Frame>> {
        let Swept::Frame(first) = self.sweep(Writes::Any)? else { return Ok(None) };
        for _ in 1..VICTIMS {
            if !self.wants_refill() {
                break;
            }
            match self.sweep(Writes::Any) {
                Ok(Swept::Frame(frame)) => self.give_back(frame),
                // Whoever needs one more will find out why.
                _ => break,
            }
        }
        Ok(Some(first))
    }

    /// Moves the clock until it finds a victim, for some rounds.
    fn sweep(&self, mut writes: Writes<'_>) -> Result<Swept<'_>> {
        let count = self.arena.active();
        // It is worth looking a little further for a clean page, but not forever.
        let mut dirty_to_pass = 32.min(count / 4);
        for step in 0..count * 7 {
            let at = self.hand.fetch_add(1, Ordering::Relaxed) % count;
            let frame = &self.arena.frames()[at];
            let state = frame.state();
            if state & (CLAIMED | READING | WRITING) != 0 || frame.is_pinned() || !frame.age() {
                continue;
            }
            if state & DIRTY != 0 {
                match &mut writes {
                    Writes::None if dirty_to_pass > 0 && step < count => {
                        dirty_to_pass -= 1;
                        continue;
                    }
                    Writes::None => return Ok(Swept::Dirty(frame.id())),
                    Writes::AtMost(0) => continue,
                    Writes::AtMost(left) => **left -= 1,
                    Writes::Any => {}
                }
                if !self.write_victim(frame, matches!(writes, Writes::Any))? {
                    continue;
                }
            }
            if frame.claim() {
                self.unlink(frame);
                bump(&self.counters.evictions);
                sched::used(Use::Evicted, 1);
                return Ok(Swept::Frame(frame));
            }
        }
        Ok(Swept::Nothing)
    }

    /// Takes a claimed frame out of the mapping.
    pub(super) fn unlink(&self, frame: &Frame) {
        let bucket = self.mapping.bucket(frame.id());
        self.mapping.lock(bucket).unlink(self.arena.frames(), bucket, frame);
    }

    fn write_victim(&self, frame: &Frame, foreground: bool) -> Result<bool> {
        let Some(_) = frame.pin_as(frame.id(), false) else { return Ok(false) };
        // SAFETY: pinned just now.
        let _pinned = unsafe { Pinned::from_pinned(frame) };
        let written = self.write_out(frame, false)?;
        if written && foreground {
            bump(&self.counters.foreground_writes);
        }
        Ok(written)
    }

    // ---- write-out

    /// Writes a pinned frame's page if it is dirty. With `wait`: waits for latch and for another
    /// writer, so that on return everything that was dirty at the call is in the file (the caller
    /// holds no latch); without: passes it by and returns false.
    pub(super) fn write_out(&self, frame: &Frame, wait: bool) -> Result<bool> {
        while !frame.begin(WRITING, DIRTY) {
            let state = frame.state();
            if state & (DIRTY | WRITING) == 0 || !wait {
                return Ok(false);
            }
            self.await_io(frame, WRITING);
        }
        let _turn = IoTurn { pool: self, frame, flag: WRITING };
        let mut copy = self.copies.lock().pop().unwrap_or_else(new_page);
        let Some(lsn) = self.copy_out(frame, &mut copy, wait) else { return Ok(false) };
        let unwritten = Unwritten(frame);
        self.write_copy(frame.id(), &mut copy, lsn)?;
        std::mem::forget(unwritten);
        let mut copies = self.copies.lock();
        if copies.len() < 64 {
            copies.push(copy);
        }
        Ok(true)
    }

    /// Copies the page under the shared latch and takes DIRTY away.
    fn copy_out(&self, frame: &Frame, copy: &mut Page, wait: bool) -> Option<Lsn> {
        if wait {
            frame.latch.lock_shared_on(|| frame.wait_object());
        } else if !frame.latch.try_lock_shared() {
            return None;
        }
        frame.clear(DIRTY);
        // SAFETY: the shared latch keeps writers out. Hints may change bits meanwhile; the copy
        // has them or not.
        unsafe { frame.page().as_ptr().copy_to_nonoverlapping(copy, 1) };
        // SAFETY: taken above.
        unsafe { frame.latch.unlock_shared() };
        Some(page::lsn(copy))
    }

    fn write_copy(&self, id: PageId, copy: &mut Page, lsn: Lsn) -> Result<()> {
        self.log.flush(lsn)?;
        if self.log.is_abandoned() {
            return Err(stopping());
        }
        page::seal(copy, id);
        faults::reach(Fault::PageWrite)?;
        self.files.write(id, copy)
    }

    /// Frames that hold logged changes now, or whose changes are on their way to the file.
    pub(crate) fn dirty(&self) -> Vec<(PageId, u32)> {
        let mut dirty = Vec::new();
        for frame in self.arena.frames().iter() {
            let state = frame.state();
            let dirty_now = state & (DIRTY | WRITING) != 0 && state & CLAIMED == 0;
            if dirty_now && !frame.id().rel.is_temporary() {
                dirty.push((frame.id(), frame.index));
            }
        }
        dirty
    }

    /// Writes a page that [`Pool::dirty`] named, if it still needs that.
    pub(crate) fn write_if_dirty(&self, id: PageId, index: u32) -> Result<bool> {
        let frame = &self.arena.frames()[index as usize];
        if frame.pin_as(id, false).is_none() {
            // Evicted since, so it was written.
            return Ok(false);
        }
        // SAFETY: pinned just now.
        let _pinned = unsafe { Pinned::from_pinned(frame) };
        self.write_out(frame, true)
    }

    /// Forgets these pages of a fork, changes and all. Waits for pins to go.
    pub(crate) fn forget(&self, rel: RelId, fork: Fork, blocks: Range<u32>) {
        if blocks.len() < self.arena.active() / 4 {
            blocks.for_each(|block| self.forget_page(PageId { rel, fork, block }));
            return;
        }
        for frame in self.arena.frames() {
            let id = frame.id();
            if (id.rel, id.fork) == (rel, fork) && blocks.contains(&id.block) {
                self.forget_page(id);
            }
        }
    }

    fn forget_page(&self, id: PageId) {
        let bucket = self.mapping.bucket(id);
        loop {
            let partition = self.mapping.lock(bucket);
            let Some(frame) = partition.find(self.arena.frames(), bucket, id) else { return };
            let pinned = frame.pin_as(id, false).is_some();
            drop(partition);
            if pinned && frame.claim_pinned() {
                self.unlink(frame);
                self.give_back(frame);
                return;
            }
            if pinned {
                frame.unpin();
            }
            sched::yield_now();
        }
    }
}

/// READING or WRITING, ours until this is dropped, however the reading or writing ends.
struct IoTurn<'a> {
    pool: &'a Pool,
    frame: &'a Frame,
    flag: u64,
}

impl Drop for IoTurn<'_> {
    fn drop(&mut self) {
        self.frame.clear(self.flag);
        self.pool.wake_io(self.frame);
    }
}

/// A page whose changes are in a copy only: it is dirty again unless the copy was written.
struct Unwritten<'a>(&'a Frame);

impl Drop for Unwritten<'_> {
    fn drop(&mut self) {
        self.0.set(DIRTY);
    }
}

/// A page off the stack.
fn new_page() -> Box<Page> {
    match vec![0; PAGE_SIZE].into_boxed_slice().try_into() {
        Ok(page) => page,
        Err(_) => unreachable!("the length is a page's"),
    }
}

fn check(page: &Page, id: PageId) -> Result<()> {
    if page::is_valid(page, id) {
        return Ok(());
    }
    let suffix = ["", "_fsm", "_vm"][id.fork as usize];
    Err(err!(
        DATA_CORRUPTED,
        "invalid page in block {} of file \"base/{}{suffix}\"",
        id.block,
        id.rel.0
    )
    .detail("The page's checksum does not match its contents."))
}

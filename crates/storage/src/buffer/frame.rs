//! A frame: the place of one page in memory, and its state in one atomic word.
//!
//! ```text
//! bits  0..24  pins
//! bits 24..40  usage: raised by pins up to five, lowered by the clock
//! bit  40      CLAIMED: belongs to one thread or to the free list; no page lives here
//! bit  41      VALID: the page's bytes are here
//! bit  42      DIRTY: they are newer than the file's
//! bit  43      READING: somebody fills the frame
//! bit  44      WRITING: somebody writes it to its file
//! bit  45      RETIRED: claimed for good, since the pool has shrunk
//! ```
//!
//! * A pin is one add, taken before it is known what lives in the frame: then the pinner looks
//!   whether the frame is the one it means and isn't claimed, and else takes the pin back. So
//!   everybody else changes the word by operations that keep foreign pins (add, or, and), or by a
//!   compare-and-swap.
//! * Claiming is a compare-and-swap from a word without pins, DIRTY, READING and WRITING. From then
//!   on every pinner takes its pin back, so page and name are the claimer's.
//! * The name (relation, block, fork) changes only while claimed: a pin on an unclaimed frame
//!   keeps it.
//! * `version` is odd from claiming until the next page's bytes are there, and while somebody holds
//!   the exclusive latch: so an even version that has not moved vouches for name and bytes.
//! * DIRTY is set under the exclusive latch and cleared under the shared latch by the one that has
//!   WRITING. Until WRITING is gone the file's sync mark may not be set yet, so a checkpoint waits.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use base::settings::{live_enum, setting};
use base::{Fork, PageId, RelId, WaitEvent};
use sched::{RawLwLock, WaitObject};

use crate::page::Page;

pub(super) const PIN: u64 = 1;
const PINS: u64 = (1 << 24) - 1;
const USAGE: u64 = 1 << 24;
const USAGES: u64 = 0xffff << 24;
const USAGE_MAX: u64 = 5 * USAGE;
pub(super) const CLAIMED: u64 = 1 << 40;
pub(super) const VALID: u64 = 1 << 41;
pub(super) const DIRTY: u64 = 1 << 42;
pub(super) const READING: u64 = 1 << 43;
pub(super) const WRITING: u64 = 1 << 44;
pub(super) const RETIRED: u64 = 1 << 45;

/// See the module.
#[repr(align(64))]
pub(super) struct Frame {
    state: AtomicU64,
    /// Relation and block.
    name: AtomicU64,
    /// Odd while somebody holds the exclusive latch or no page lives here.
    version: AtomicU64,
    page: NonNull<Page>,
    /// The frame's own number, and the next one in its bucket's chain (plus one; 0: none).
    pub(super) index: u32,
    pub(super) next: AtomicU32,
    fork: AtomicU8,
    pub(super) latch: RawLwLock,
}

// SAFETY: the page's memory lives as long as the frame and is guarded by latch and state.
unsafe impl Send for Frame {}
// SAFETY: as above.
unsafe impl Sync for Frame {}

fn name_of(id: PageId) -> u64 {
    u64::from(id.rel.0) << 32 | u64::from(id.block)
}

impl Frame {
    /// A claimed frame without a page.
    pub(super) fn new(index: u32, page: NonNull<Page>) -> Frame {
        Frame {
            state: AtomicU64::new(CLAIMED),
            name: AtomicU64::new(0),
            version: AtomicU64::new(1),
            page,
            index,
            next: AtomicU32::new(0),
            fork: AtomicU8::new(0),
            latch: RawLwLock::new(WaitEvent::LWLockBufferContent),
        }
    }

    /// The page's memory.
    pub(super) fn page(&self) -> NonNull<Page> {
        self.page
    }

    pub(super) fn state(&self) -> u64 {
        self.state.load(Ordering::Acquire)
    }

    /// Whether the frame has this name just now.
    pub(super) fn is(&self, id: PageId) -> bool {
        self.name.load(Ordering::Relaxed) == name_of(id)
            && self.fork.load(Ordering::Relaxed) == id.fork as u8
    }

    /// The name; steady while pinned or claimed by the caller.
    pub(super) fn id(&self) -> PageId {
        let name = self.name.load(Ordering::Relaxed);
        let fork = match self.fork.load(Ordering::Relaxed) {
            0 => Fork::Main,
            1 => Fork::Fsm,
            _ => Fork::Vm,
        };
        PageId { rel: RelId((name >> 32) as u32), fork, block: name as u32 }
    }

    /// The page as the object of a wait; the caller has a pin.
    #[cold]
    pub(super) fn wait_object(&self) -> WaitObject {
        WaitObject::Page(self.id())
    }

    /// Adds a pin, raises the usage if that is wanted, and returns the state before.
    #[inline]
    fn add_pin(&self, raise: bool) -> u64 {
        let mut seen = self.state.load(Ordering::Relaxed);
        let step = |s: u64| if raise && s & USAGES < USAGE_MAX { PIN + USAGE } else { PIN };
        if live_enum(setting::BUFFER_PIN_MODE) == 0 {
            return self.state.fetch_add(step(seen), Ordering::AcqRel);
        }
        loop {
            let new = seen + step(seen);
            let (done, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            match self.state.compare_exchange_weak(seen, new, done, failed) {
                Ok(before) => return before,
                Err(now) => seen = now,
            }
        }
    }

    /// Pins the frame if this page lives in it.
    #[inline]
    pub(super) fn pin_as(&self, id: PageId, raise: bool) -> Option<u64> {
        let before = self.add_pin(raise);
        if before & CLAIMED == 0 && self.is(id) {
            debug_assert!(before & PINS < PINS);
            return Some(before);
        }
        self.unpin();
        None
    }

    /// One more pin for somebody who has one.
    pub(super) fn pin_again(&self) {
        let before = self.state.fetch_add(PIN, Ordering::Relaxed);
        debug_assert!(before & PINS > 0 && before & CLAIMED == 0);
    }

    /// Takes a pin back.
    #[inline]
    pub(super) fn unpin(&self) {
        let before = self.state.fetch_sub(PIN, Ordering::Release);
        debug_assert!(before & PINS > 0, "unpinned more often than pinned");
    }

    /// Whether the clock has found it used lately.
    #[inline]
    pub(super) fn is_in_use(&self) -> bool {
        self.state.load(Ordering::Relaxed) & USAGES != 0
    }

    /// State, version, and whether the latch is held or waited for.
    pub(super) fn shared_words(&self) -> [u64; 3] {
        let latch = u64::from(self.latch.is_locked()) | u64::from(self.latch.has_waiters()) << 1;
        [self.state(), self.version.load(Ordering::Acquire), latch]
    }

    /// The frame's content. The name counts only if the page didn't leave while it was read.
    pub(super) fn info(&self) -> FrameInfo {
        let version = self.version.load(Ordering::Acquire);
        let state = self.state();
        let id = self.id();
        let here = state & (CLAIMED | VALID) == VALID && self.state() & CLAIMED == 0;
        // Somebody who changes the page moves the version as well, but then it is pinned and stays.
        let same = self.still(version) || self.is(id);
        FrameInfo {
            number: self.index,
            page: (here && same).then_some(id),
            dirty: state & DIRTY != 0,
            usage: ((state & USAGES) / USAGE).min(USAGE_MAX / USAGE) as u16,
            pins: (state & PINS) as u32,
        }
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.state() & PINS != 0
    }

    /// Claims the frame unless somebody uses it or it holds changes.
    pub(super) fn claim(&self) -> bool {
        let seen = self.state();
        seen & (PINS | CLAIMED | READING | WRITING | DIRTY) == 0 && self.claim_from(seen)
    }

    /// Claims the frame on which the caller has the only pin, changes or not; the pin is used up.
    pub(super) fn claim_pinned(&self) -> bool {
        let seen = self.state();
        seen & (PINS | CLAIMED | READING | WRITING) == PIN && self.claim_from(seen)
    }

    /// As [`Frame::claim_pinned`], but only without changes.
    pub(super) fn claim_pinned_clean(&self) -> bool {
        let seen = self.state();
        seen & (PINS | CLAIMED | READING | WRITING | DIRTY) == PIN && self.claim_from(seen)
    }

    fn claim_from(&self, seen: u64) -> bool {
        let (done, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        let claimed = self.state.compare_exchange(seen, CLAIMED, done, failed).is_ok();
        if claimed {
            // Without pins there is no latch: the version is the claimer's. It is odd already when
            // the page that was meant to live here could not be read.
            self.version.store(self.version.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
            fence(Ordering::Release);
        }
        claimed
    }

    /// The page's bytes are there: from now on they can be read.
    pub(super) fn filled(&self) {
        self.end_changes();
        self.set(VALID);
    }

    /// Gives a claimed frame a name.
    pub(super) fn rename(&self, id: PageId) {
        debug_assert!(self.state() & CLAIMED != 0);
        self.name.store(name_of(id), Ordering::Relaxed);
        self.fork.store(id.fork as u8, Ordering::Relaxed);
    }

    /// From claimed to pinned once and being read.
    pub(super) fn open_for_reading(&self, raise: bool) {
        let usage = if raise { USAGE } else { 0 };
        let step = (PIN + usage + READING).wrapping_sub(CLAIMED);
        self.state.fetch_add(step, Ordering::AcqRel);
    }

    /// Sets a flag that means "I do it"; false when somebody has it or the state lacks `needed`.
    pub(super) fn begin(&self, flag: u64, needed: u64) -> bool {
        let mut seen = self.state();
        loop {
            if seen & flag != 0 || seen & needed != needed {
                return false;
            }
            let (done, failed) = (Ordering::AcqRel, Ordering::Acquire);
            match self.state.compare_exchange_weak(seen, seen | flag, done, failed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    pub(super) fn set(&self, flags: u64) {
        self.state.fetch_or(flags, Ordering::AcqRel);
    }

    pub(super) fn clear(&self, flags: u64) {
        self.state.fetch_and(!flags, Ordering::AcqRel);
    }

    /// The clock passes: lowers the usage. True when it was down already.
    pub(super) fn age(&self) -> bool {
        let seen = self.state();
        let usage = seen & USAGES;
        if usage == 0 {
            return true;
        }
        let lower = (seen & !USAGES) | (usage.min(USAGE_MAX) - USAGE);
        let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.state.compare_exchange(seen, lower, done, failed);
        false
    }

    /// After the exclusive latch was taken, before the first change.
    pub(super) fn begin_changes(&self) {
        let version = self.version.load(Ordering::Relaxed);
        debug_assert!(version.is_multiple_of(2));
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
    }

    /// Before the exclusive latch is given back.
    pub(super) fn end_changes(&self) {
        let version = self.version.load(Ordering::Relaxed);
        debug_assert!(!version.is_multiple_of(2));
        self.version.store(version + 1, Ordering::Release);
    }

    /// The version for an optimistic read; None while somebody writes.
    pub(super) fn stable_version(&self) -> Option<u64> {
        let version = self.version.load(Ordering::Acquire);
        version.is_multiple_of(2).then_some(version)
    }

    /// Whether nobody took the exclusive latch since.
    pub(super) fn still(&self, version: u64) -> bool {
        fence(Ordering::Acquire);
        self.version.load(Ordering::Relaxed) == version
    }
}

/// The content of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameInfo {
    /// The frame, from 0.
    pub number: u32,
    /// Its page; None: free, or about to change its page.
    pub page: Option<PageId>,
    /// Newer than the file.
    pub dirty: bool,
    /// Usage count, 0 to 5.
    pub usage: u16,
    /// Pins.
    pub pins: u32,
}

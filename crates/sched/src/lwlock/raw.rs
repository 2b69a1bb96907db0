//! The state machine of the lightweight locks: a reader-writer lock on one atomic word, with a FIFO of
//! parked waiters that lie on their own stacks.
//!
//! ```text
//!   63        56 55              32 31    30      29     28    27                   0
//!  | tranche    | passes           |WOKEN|QUEUED |QLOCK |EXCL | shared count or holder |
//! ```
//!
//! * `shared count`, `EXCL`: who has the lock. With EXCL, when there are no shared holders, the
//!   count's place says who: the low bits of the holder's task id.
//! * `QUEUED`: the queue is not empty. `QLOCK`: a spin lock over the queue's pointers, held for a
//!   few instructions. `WOKEN`: the queue's head is an exclusive waiter that was woken and has not
//!   answered yet.
//! * `passes`: how often the queue's head was passed: acquisitions by newcomers since the head
//!   queued.
//!
//! # How a waiter gets the lock
//! A newcomer takes a lock whose state allows it when nobody queues, or when the queue's head was
//! passed fewer times than the tranche's limit (`lwlock_shared_limit`, `lwlock_shared_limits`); it
//! then counts one pass. Otherwise it spins a little, then queues and parks.
//!
//! Whoever makes the lock available while somebody queues (and WOKEN is not set) serves the queue's
//! head: leading shared waiters are given the lock, all at once, and leave the queue; a leading
//! exclusive waiter is only woken, keeps its place and takes the lock itself when it runs, without
//! regard to the limit. So a lock is not idle while a parked exclusive waiter waits for its turn
//! on a worker: newcomers may use it meanwhile, within the limit.
//!
//! # No wake-up is lost
//! Invariant, whenever QLOCK is free: QUEUED and not WOKEN implies that the lock's state does not
//! admit the head, or that the one who made it admissible is on its way to take QLOCK. Every change
//! of the queue ends in `RawLwLock::release_queue_lock`, whose one compare-and-swap frees QLOCK only in a
//! state that keeps the invariant, and serves the head otherwise. A release that makes the lock
//! available sees QUEUED and WOKEN in the same atomic operation. With WOKEN, the woken waiter will
//! take QLOCK: it takes the lock, or finds it taken and clears WOKEN in the same operation.
//!
//! # Fairness is bounded
//! Let W wait, and let p(W) count the acquisitions by newcomers after W queued. Claim: p(W) never
//! exceeds the limit L. Each node notes, when it queues, the count of passes so far on a scale that
//! is common to the nodes in the queue (`mark`); `passes` is that count less the head's mark. A
//! newcomer passes only while `passes < L`, and since marks ascend along the queue, no waiter's
//! count is larger than the head's. When the head leaves, `passes` is lowered by the distance of
//! the marks, so it is then exactly the new head's count (a newcomer that passes while a waiter is
//! being queued may be counted for it too soon, never too late). Counting and taking are one
//! compare-and-swap, so of two newcomers at the limit's edge only one passes.
//!
//! Waiters leave in order, so W is passed by at most L newcomers and by the finite number of those
//! who queued before it. And the head gets its turn: when it was passed L times nobody but it can
//! take the lock, so once the holders have released it (each does, in bounded time), the last of
//! them serves the head, as no wake-up is lost; a shared head then has the lock, and an exclusive one
//! that was woken finds it free, or held by newcomers of which there can be at most L in all. So
//! neither kind of waiter starves. (The limit is read when it is used; lowering it takes effect at once. With -1
//! newcomers are never held back, which shows the starvation of PostgreSQL's locks.)
//!
//! # What this leaves out
//! Upgrading, timeouts and interrupts: lightweight locks are held for microseconds, and a waiter is
//! never cancelled.

use std::ptr;

use base::WaitEvent;

use super::tranche::{MOST_SPINS, Tranche};
use crate::clock::now_ns;
use crate::observe::{WaitObject, Waiting};
use crate::seam::{
    AtomicBool, AtomicU64, Backoff, Cell, Me, Ordering, TaskRef, assert_may_wait, current,
    park_uninterruptible,
};

const SHARED_ONE: u64 = 1;
const SHARED_MASK: u64 = (1 << 28) - 1;
/// The same bits while EXCL is set.
const HOLDER_MASK: u64 = SHARED_MASK;
const EXCL: u64 = 1 << 28;
const QLOCK: u64 = 1 << 29;
const QUEUED: u64 = 1 << 30;
const WOKEN: u64 = 1 << 31;
const PASS_SHIFT: u32 = 32;
const PASS_MAX: u64 = (1 << 24) - 1;
const PASS_ONE: u64 = 1 << PASS_SHIFT;
const PASS_MASK: u64 = PASS_MAX << PASS_SHIFT;
const TRANCHE_SHIFT: u32 = 56;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Shared,
    Exclusive,
}

impl Mode {
    /// Whether the lock's holders leave room for one more of this mode.
    fn fits(self, word: u64) -> bool {
        match self {
            Mode::Shared => word & EXCL == 0,
            Mode::Exclusive => word & (EXCL | SHARED_MASK) == 0,
        }
    }

    /// The word's change when this task takes it.
    fn taken(self, me: Me) -> u64 {
        match self {
            Mode::Shared => SHARED_ONE,
            Mode::Exclusive => EXCL | me.tag(),
        }
    }
}

/// One waiter, on its own stack. All but `granted` and `task` belong to QLOCK.
struct Waiter {
    mode: Mode,
    task: TaskRef,
    /// Passes so far when it queued, on the queue's scale.
    mark: Cell<u64>,
    next: Cell<*const Waiter>,
    /// In the head only: the last of the queue.
    tail: Cell<*const Waiter>,
    /// Shared: it has the lock, and its waker touches it no more.
    granted: AtomicBool,
    /// Exclusive: it was woken to take the lock.
    woken: AtomicBool,
}

/// A reader-writer lock on one atomic word with a FIFO of parked waiters, without data. 16 bytes.
pub struct RawLwLock {
    word: AtomicU64,
    head: Cell<*const Waiter>,
}

// SAFETY: `head` and what it points to are used under QLOCK only, and a waiter stays in place while
// it is queued.
unsafe impl Sync for RawLwLock {}
// SAFETY: as above; a lock that moves has no waiters, since they borrow it.
unsafe impl Send for RawLwLock {}

impl RawLwLock {
    /// `tranche` is a wait event of type LWLock.
    #[cfg(not(loom))]
    pub const fn new(tranche: WaitEvent) -> RawLwLock {
        RawLwLock {
            word: AtomicU64::new((tranche as u64) << TRANCHE_SHIFT),
            head: Cell::new(ptr::null()),
        }
    }

    /// The same; loom's atomics can't be made at compile time.
    #[cfg(loom)]
    pub fn new(tranche: WaitEvent) -> RawLwLock {
        RawLwLock {
            word: AtomicU64::new((tranche as u64) << TRANCHE_SHIFT),
            head: Cell::new(ptr::null()),
        }
    }

    /// Waits for shared access.
    #[inline]
    pub fn lock_shared(&self) {
        self.lock(Mode::Shared, || self.as_object());
    }

    /// Waits for exclusive access.
    #[inline]
    pub fn lock_exclusive(&self) {
        self.lock(Mode::Exclusive, || self.as_object());
    }

    /// Waits for shared access to an object, which is asked for only when there is a wait.
    #[inline]
    pub fn lock_shared_on(&self, object: impl FnOnce() -> WaitObject) {
        self.lock(Mode::Shared, object);
    }

    /// Waits for exclusive access to an object, which is asked for only when there is a wait.
    #[inline]
    pub fn lock_exclusive_on(&self, object: impl FnOnce() -> WaitObject) {
        self.lock(Mode::Exclusive, object);
    }

    /// Without waiting; does not pass anybody who waits.
    #[inline]
    pub fn try_lock_shared(&self) -> bool {
        self.try_lock(Mode::Shared)
    }

    /// Without waiting; does not pass anybody who waits.
    #[inline]
    pub fn try_lock_exclusive(&self) -> bool {
        self.try_lock(Mode::Exclusive)
    }

    #[inline]
    fn lock(&self, mode: Mode, object: impl FnOnce() -> WaitObject) {
        let mut me = Me::now();
        if !self.take_uncontended(mode, me) {
            self.lock_slow(mode, me, object());
            me = Me::now(); // it may have waited
        }
        me.took((self.word.load(Ordering::Relaxed) >> TRANCHE_SHIFT) as usize);
    }

    #[inline]
    fn try_lock(&self, mode: Mode) -> bool {
        let me = Me::now();
        let taken = self.take_uncontended(mode, me);
        if taken {
            me.took((self.word.load(Ordering::Relaxed) >> TRANCHE_SHIFT) as usize);
        }
        taken
    }

    fn as_object(&self) -> WaitObject {
        WaitObject::Latch(ptr::from_ref(self).addr() as u64)
    }

    /// # Safety
    /// The caller holds it shared.
    #[inline]
    pub unsafe fn unlock_shared(&self) {
        Me::now().released();
        let before = self.word.fetch_sub(SHARED_ONE, Ordering::Release);
        debug_assert_ne!(before & SHARED_MASK, 0, "a shared lock that nobody holds is released");
        if before & (QUEUED | WOKEN) == QUEUED && before & SHARED_MASK == SHARED_ONE {
            self.serve();
        }
    }

    /// # Safety
    /// The caller holds it exclusively.
    #[inline]
    pub unsafe fn unlock_exclusive(&self) {
        Me::now().released();
        let before = self.word.fetch_and(!(EXCL | HOLDER_MASK), Ordering::Release);
        debug_assert_ne!(before & EXCL, 0, "an exclusive lock that nobody holds is released");
        if before & (QUEUED | WOKEN) == QUEUED {
            self.serve();
        }
    }

    /// Whether somebody holds it exclusively just now (for assertions).
    pub fn is_locked_exclusive(&self) -> bool {
        self.word.load(Ordering::Relaxed) & EXCL != 0
    }

    /// Whether somebody holds it just now (for assertions).
    pub fn is_locked(&self) -> bool {
        self.word.load(Ordering::Relaxed) & (EXCL | SHARED_MASK) != 0
    }

    /// The task that holds it exclusively just now: the low 28 bits of its id.
    pub fn holder(&self) -> Option<u64> {
        let word = self.word.load(Ordering::Relaxed);
        (word & EXCL != 0).then_some(word & HOLDER_MASK)
    }

    /// Whether somebody queues for it just now.
    pub fn has_waiters(&self) -> bool {
        self.word.load(Ordering::Relaxed) & QUEUED != 0
    }

    /// The wait event it was made with.
    pub fn tranche(&self) -> WaitEvent {
        let code = (self.word.load(Ordering::Relaxed) >> TRANCHE_SHIFT) as u8;
        WaitEvent::from_u8(code).unwrap_or(WaitEvent::LWLockOther)
    }

    /// The fast path: takes it when nobody is in the way and nobody queues.
    #[inline]
    fn take_uncontended(&self, mode: Mode, me: Me) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while mode.fits(word) && word & QUEUED == 0 {
            match self.word.compare_exchange_weak(
                word,
                word + mode.taken(me),
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Takes it if the holders leave room and the queue's head may be passed once more. The word
    /// that a caller with QLOCK leaves behind has `clear` cleared.
    fn take_as_newcomer(&self, mode: Mode, me: Me, clear: u64) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while mode.fits(word) {
            let mut taken = (word + mode.taken(me)) & !clear;
            if word & QUEUED != 0 {
                let passes = (word & PASS_MASK) >> PASS_SHIFT;
                let limit = counters(word).limit();
                if limit >= 0 && passes >= limit as u64 {
                    return false;
                }
                if passes < PASS_MAX {
                    taken += PASS_ONE;
                }
            }
            match self.word.compare_exchange_weak(word, taken, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => {
                    if word & QUEUED != 0 {
                        counters(word).passed();
                    }
                    return true;
                }
                Err(now) => word = now,
            }
        }
        false
    }

    #[cold]
    fn lock_slow(&self, mode: Mode, me: Me, object: WaitObject) {
        let counters = counters(self.word.load(Ordering::Relaxed));
        if self.spin(mode, me, counters) {
            return;
        }
        assert_may_wait();
        let waiter = Waiter {
            mode,
            task: current(),
            mark: Cell::new(0),
            next: Cell::new(ptr::null()),
            tail: Cell::new(ptr::null()),
            granted: AtomicBool::new(false),
            woken: AtomicBool::new(false),
        };
        self.lock_queue();
        if self.take_as_newcomer(mode, me, QLOCK) {
            return;
        }
        let waiting = Waiting { event: self.tranche(), object, blocker: self.blocker() };
        // SAFETY: QLOCK is held, and this function does not return before the waiter has left the
        // queue (parking does not unwind).
        unsafe { self.enqueue(&waiter) };
        self.release_queue_lock(0);
        let began = now_ns();
        self.await_turn(&waiter, waiting);
        counters.waited(now_ns() - began);
    }

    /// Tries for a while that follows how long it took others of the tranche lately.
    fn spin(&self, mode: Mode, me: Me, counters: &Tranche) -> bool {
        if self.take_as_newcomer(mode, me, 0) {
            return true;
        }
        let usual = counters.usual_spins();
        for spins in 0..(usual * 2 + 8).min(MOST_SPINS) {
            std::hint::spin_loop();
            if mode.fits(self.word.load(Ordering::Relaxed)) && self.take_as_newcomer(mode, me, 0) {
                counters.spun(usual, spins);
                return true;
            }
        }
        counters.spun(usual, 0);
        false
    }

    /// The task in the way of one that queues now: the exclusive holder, or else the queue's head.
    /// QLOCK is held.
    fn blocker(&self) -> u64 {
        // SAFETY: QLOCK is held, and queued waiters are in place.
        let head = unsafe { self.head.get().as_ref() };
        self.holder().or_else(|| head.map(|h| h.task.id())).unwrap_or(0)
    }

    /// Parks until the lock is this waiter's.
    fn await_turn(&self, waiter: &Waiter, mut waiting: Waiting) {
        loop {
            park_uninterruptible(waiting, None);
            let me = Me::now();
            match waiter.mode {
                Mode::Shared if waiter.granted.load(Ordering::Acquire) => return,
                Mode::Exclusive
                    if waiter.woken.load(Ordering::Acquire) && self.take_as_head(waiter, me) =>
                {
                    return;
                }
                _ => {} // a wake-up that was meant for something else
            }
            waiting.blocker = self.holder().unwrap_or(0);
        }
    }

    /// The woken exclusive head answers: takes the lock and leaves the queue, or waits on.
    fn take_as_head(&self, waiter: &Waiter, me: Me) -> bool {
        self.lock_queue();
        waiter.woken.store(false, Ordering::Relaxed);
        let mut word = self.word.load(Ordering::Relaxed);
        while Mode::Exclusive.fits(word) {
            let taken = (word + Mode::Exclusive.taken(me)) & !WOKEN;
            match self.word.compare_exchange_weak(word, taken, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => {
                    // SAFETY: QLOCK is held; the woken waiter is the head.
                    unsafe { self.dequeue_head() };
                    self.release_queue_lock(0);
                    return true;
                }
                Err(now) => word = now,
            }
        }
        self.release_queue_lock(WOKEN);
        false
    }

    /// After a release that left the lock to the queue.
    #[cold]
    fn serve(&self) {
        self.lock_queue();
        self.release_queue_lock(0);
    }

    fn lock_queue(&self) {
        let mut backoff = Backoff::new();
        while self.word.fetch_or(QLOCK, Ordering::Acquire) & QLOCK != 0 {
            while self.word.load(Ordering::Relaxed) & QLOCK != 0 {
                backoff.wait();
            }
        }
    }

    /// # Safety
    /// QLOCK is held; `waiter` stays in place until it has left the queue.
    unsafe fn enqueue(&self, waiter: &Waiter) {
        // SAFETY: QLOCK is held, and queued waiters are in place.
        unsafe {
            match self.head.get().as_ref() {
                None => {
                    self.head.set(waiter);
                    waiter.tail.set(waiter);
                    // Until now the queue was empty, so nobody counted passes.
                    self.word.fetch_and(!PASS_MASK, Ordering::Relaxed);
                    self.word.fetch_or(QUEUED, Ordering::Relaxed);
                }
                Some(first) => {
                    let passes = (self.word.load(Ordering::Relaxed) & PASS_MASK) >> PASS_SHIFT;
                    waiter.mark.set(first.mark.get() + passes);
                    (*first.tail.get()).next.set(waiter);
                    first.tail.set(waiter);
                }
            }
        }
    }

    /// Takes the head out; the next one inherits the count of passes that are its own.
    ///
    /// # Safety
    /// QLOCK is held and the queue is not empty.
    unsafe fn dequeue_head(&self) -> *const Waiter {
        // SAFETY: QLOCK is held, and queued waiters are in place.
        unsafe {
            let first = &*self.head.get();
            let next = first.next.get();
            self.head.set(next);
            match next.as_ref() {
                None => {
                    self.word.fetch_and(!(QUEUED | PASS_MASK), Ordering::Relaxed);
                }
                Some(second) => {
                    second.tail.set(first.tail.get());
                    self.forget_passes(second.mark.get() - first.mark.get());
                }
            }
            first
        }
    }

    /// Lowers the count of passes, which newcomers may be raising.
    fn forget_passes(&self, count: u64) {
        let lowered = |word: u64| {
            let passes = (word & PASS_MASK) >> PASS_SHIFT;
            Some((word & !PASS_MASK) | passes.saturating_sub(count) << PASS_SHIFT)
        };
        // The closure never refuses.
        let _ = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lowered);
    }

    /// Frees QLOCK (and clears `clear`) in a state that keeps the invariant: serves the head if
    /// the lock admits it and no woken head is about to look for itself.
    fn release_queue_lock(&self, clear: u64) {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let then = word & !clear;
            // SAFETY: QLOCK is held, and queued waiters are in place.
            let head = unsafe { self.head.get().as_ref() };
            let served = head.filter(|h| then & WOKEN == 0 && h.mode.fits(then));
            let swap = |target| {
                self.word.compare_exchange(word, target, Ordering::AcqRel, Ordering::Relaxed)
            };
            let swapped = match served {
                None => swap(then & !QLOCK),
                Some(head) if head.mode == Mode::Exclusive => {
                    // Marked before QLOCK goes: after that the waiter may answer and be gone.
                    head.woken.store(true, Ordering::Release);
                    let task = TaskRef::clone(&head.task);
                    let swapped = swap((then | WOKEN) & !QLOCK);
                    match swapped {
                        Ok(_) => task.unpark(),
                        Err(_) => head.woken.store(false, Ordering::Relaxed),
                    }
                    swapped
                }
                // The first one's share keeps exclusive newcomers out while the rest is counted.
                Some(_) => swap(then + SHARED_ONE).inspect(|_| self.grant_shared()),
            };
            match swapped {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// QLOCK is held and the head has been given its share: gives one to each shared waiter that
    /// follows it, and frees QLOCK.
    fn grant_shared(&self) {
        // SAFETY: QLOCK is held, the head is shared, and the detached waiters stay in place until
        // they are granted.
        unsafe {
            let first = self.dequeue_head();
            let mut last = first;
            while let Some(next) = self.head.get().as_ref() {
                if next.mode != Mode::Shared {
                    break;
                }
                self.word.fetch_add(SHARED_ONE, Ordering::Relaxed);
                last = self.dequeue_head();
            }
            (*last).next.set(ptr::null());
            // Now the head, if any, is exclusive and can't be served: this only frees QLOCK.
            self.release_queue_lock(0);
            wake_granted(first);
        }
    }
}

/// The counters of the lock with this word.
fn counters(word: u64) -> &'static Tranche {
    Tranche::at((word >> TRANCHE_SHIFT) as usize)
}

/// # Safety
/// The list was taken out of a queue, and each has its share of the lock.
unsafe fn wake_granted(mut waiter: *const Waiter) {
    // SAFETY: a waiter stays in place until `granted` is set, and is not touched after that.
    while let Some(w) = unsafe { waiter.as_ref() } {
        waiter = w.next.get();
        let task = TaskRef::clone(&w.task);
        w.granted.store(true, Ordering::Release);
        task.unpark();
    }
}

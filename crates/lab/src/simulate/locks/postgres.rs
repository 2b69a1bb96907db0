//! PostgreSQL's LWLock, before and after 9.5.
//!
//! Both wake the queue's head (all leading shared waiters, or one exclusive) and let the woken ones
//! try again with everybody else, and neither keeps shared newcomers back while an exclusive locker
//! waits: a stream of shared lockers starves it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use super::super::coherence::{LineId, Word};
use super::super::engine::{Core, Simulation};
use super::spin::PostgresSpin;

/// A waiter: the processor, and whether it waits for exclusive access.
type Waiters = RefCell<VecDeque<(usize, bool)>>;

/// Takes those out of the queue that are woken together.
fn leaders(waiters: &Waiters) -> Vec<usize> {
    let mut queue = waiters.borrow_mut();
    let Some((first, exclusive)) = queue.pop_front() else { return Vec::new() };
    let mut leaders = vec![first];
    while !exclusive && queue.front().is_some_and(|(_, exclusive)| !exclusive) {
        leaders.extend(queue.pop_front().map(|(cpu, _)| cpu));
    }
    leaders
}

/// To 9.4: a spin lock on the line of the counts that it protects; each acquisition and each
/// release takes it.
pub struct MutexLock {
    mutex: PostgresSpin,
    exclusive: Word,
    shared: Word,
    queue: Waiters,
    /// Waking is pointless while somebody is woken already.
    release_ok: Cell<bool>,
}

impl MutexLock {
    /// On this line.
    pub fn on(simulation: &mut Simulation, line: LineId) -> MutexLock {
        MutexLock {
            mutex: PostgresSpin::on(simulation, line),
            exclusive: simulation.word_on(line),
            shared: simulation.word_on(line),
            queue: RefCell::default(),
            release_ok: Cell::new(true),
        }
    }

    /// Waits until it has it.
    pub async fn acquire(&self, core: &Core, exclusive: bool) {
        loop {
            self.mutex.acquire(core).await;
            let others = core.load(self.exclusive).await;
            let readers = core.load(self.shared).await;
            if others == 0 && (!exclusive || readers == 0) {
                if exclusive {
                    core.store(self.exclusive, 1).await;
                } else {
                    core.store(self.shared, readers + 1).await;
                }
                self.mutex.release(core).await;
                return;
            }
            self.queue.borrow_mut().push_back((core.id, exclusive));
            self.mutex.release(core).await;
            core.park().await;
            // Once woken, the next release may wake somebody again.
            self.release_ok.set(true);
        }
    }

    /// Gives it back.
    pub async fn release(&self, core: &Core, exclusive: bool) {
        self.mutex.acquire(core).await;
        let readers = core.load(self.shared).await;
        if exclusive {
            core.store(self.exclusive, 0).await;
        } else {
            core.store(self.shared, readers - 1).await;
        }
        let free = exclusive || readers == 1;
        let mut woken = Vec::new();
        if free && self.release_ok.get() {
            woken = leaders(&self.queue);
            if !woken.is_empty() {
                self.release_ok.set(false);
            }
        }
        self.mutex.release(core).await;
        for cpu in woken {
            core.unpark(cpu).await;
        }
    }
}

const EXCLUSIVE: u64 = 1 << 24;
const HOLDERS: u64 = (1 << 25) - 1;
const LOCKED: u64 = 1 << 28;
const RELEASE_OK: u64 = 1 << 29;
const HAS_WAITERS: u64 = 1 << 30;

/// Since 9.5: the counts in one atomic word; only the queue has a spin lock, a bit of the word.
pub struct AtomicLock {
    word: Word,
    queue: Waiters,
}

impl AtomicLock {
    /// On this line.
    pub fn on(simulation: &mut Simulation, line: LineId) -> AtomicLock {
        AtomicLock { word: simulation.word_with(line, RELEASE_OK), queue: RefCell::default() }
    }

    /// One try, without waiting. (It swaps even when that changes nothing, as the original does.)
    async fn attempt(&self, core: &Core, exclusive: bool) -> bool {
        let (in_the_way, taken) = if exclusive { (HOLDERS, EXCLUSIVE) } else { (EXCLUSIVE, 1) };
        let mut word = core.load(self.word).await;
        loop {
            let free = word & in_the_way == 0;
            let new = if free { word + taken } else { word };
            match core.cas(self.word, word, new).await {
                Ok(_) => return free,
                Err(now) => word = now,
            }
        }
    }

    async fn lock_queue(&self, core: &Core) {
        while core.or(self.word, LOCKED).await & LOCKED != 0 {
            core.until(self.word, |w| w & LOCKED == 0, None).await;
        }
    }

    /// Waits until it has it.
    pub async fn acquire(&self, core: &Core, exclusive: bool) {
        loop {
            if self.attempt(core, exclusive).await {
                return;
            }
            self.lock_queue(core).await;
            core.or(self.word, HAS_WAITERS).await;
            self.queue.borrow_mut().push_back((core.id, exclusive));
            core.and(self.word, !LOCKED).await;
            // It may have become free before the entry in the queue was seen.
            if self.attempt(core, exclusive).await {
                self.leave_queue(core).await;
                return;
            }
            core.park().await;
            core.or(self.word, RELEASE_OK).await;
        }
    }

    /// It has the lock, so its entry goes; or the wake-up is awaited of whoever took it out already.
    async fn leave_queue(&self, core: &Core) {
        self.lock_queue(core).await;
        let before = self.queue.borrow().len();
        self.queue.borrow_mut().retain(|(cpu, _)| *cpu != core.id);
        let found = self.queue.borrow().len() < before;
        let empty = self.queue.borrow().is_empty();
        let clear = if empty { LOCKED | HAS_WAITERS } else { LOCKED };
        core.and(self.word, !clear).await;
        if !found {
            core.park().await;
            core.or(self.word, RELEASE_OK).await;
        }
    }

    /// Gives it back.
    pub async fn release(&self, core: &Core, exclusive: bool) {
        let taken = if exclusive { EXCLUSIVE } else { 1 };
        let word = core.add(self.word, -(taken as i64)).await - taken;
        let wakes = HAS_WAITERS | RELEASE_OK;
        if word & wakes != wakes || word & HOLDERS != 0 {
            return;
        }
        self.lock_queue(core).await;
        let woken = leaders(&self.queue);
        let empty = self.queue.borrow().is_empty();
        let mut word = core.load(self.word).await;
        loop {
            let mut new = word & !(LOCKED | RELEASE_OK | HAS_WAITERS);
            new |= if woken.is_empty() { RELEASE_OK } else { 0 };
            new |= if empty { 0 } else { HAS_WAITERS };
            match core.cas(self.word, word, new).await {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        for cpu in woken {
            core.unpark(cpu).await;
        }
    }
}

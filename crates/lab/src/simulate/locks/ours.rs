//! The server's `LwLock` (`sched::lwlock::raw`, where its rules are proven): one word, a queue under
//! a bit of it, newcomers may pass the queue's head as often as the limit says, shared waiters are
//! given the lock, an exclusive one is woken and keeps its place until it has answered.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::super::coherence::{LineId, Word};
use super::super::engine::{Core, Simulation};

const SHARED_MASK: u64 = (1 << 20) - 1;
const EXCL: u64 = 1 << 20;
const QLOCK: u64 = 1 << 21;
const QUEUED: u64 = 1 << 22;
const WOKEN: u64 = 1 << 23;
const PASS_SHIFT: u32 = 24;
const PASS_MAX: u64 = (1 << 24) - 1;
const PASS_MASK: u64 = PASS_MAX << PASS_SHIFT;
const MOST_SPINS: u32 = 200;

fn fits(word: u64, exclusive: bool) -> bool {
    word & if exclusive { EXCL | SHARED_MASK } else { EXCL } == 0
}

fn taken(exclusive: bool) -> u64 {
    if exclusive { EXCL } else { 1 }
}

struct Waiter {
    cpu: usize,
    exclusive: bool,
    mark: Cell<u64>,
    granted: Cell<bool>,
    woken: Cell<bool>,
}

/// See the module.
pub struct OurLock {
    word: Word,
    limit: i64,
    queue: RefCell<VecDeque<Rc<Waiter>>>,
    /// The running mean of spins that ended well.
    spins: Cell<u32>,
}

impl OurLock {
    /// On this line; `limit` as `lwlock_shared_limit`.
    pub fn on(simulation: &mut Simulation, line: LineId, limit: i64) -> OurLock {
        OurLock {
            word: simulation.word_on(line),
            limit,
            queue: RefCell::default(),
            spins: Cell::new(50),
        }
    }

    /// Waits until it has it.
    pub async fn acquire(&self, core: &Core, exclusive: bool) {
        let mut word = core.load(self.word).await;
        while fits(word, exclusive) && word & QUEUED == 0 {
            match core.cas(self.word, word, word + taken(exclusive)).await {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
        self.acquire_slowly(core, exclusive).await;
    }

    /// Gives it back.
    pub async fn release(&self, core: &Core, exclusive: bool) {
        let serve = if exclusive {
            core.and(self.word, !EXCL).await & (QUEUED | WOKEN) == QUEUED
        } else {
            let before = core.add(self.word, -1).await;
            before & (QUEUED | WOKEN) == QUEUED && before & SHARED_MASK == 1
        };
        if serve {
            self.lock_queue(core).await;
            self.settle(core, 0).await;
        }
    }

    /// Takes it if the holders leave room and the queue's head may be passed once more.
    async fn take_as_newcomer(&self, core: &Core, exclusive: bool, clear: u64) -> bool {
        let mut word = core.load(self.word).await;
        while fits(word, exclusive) {
            let mut new = (word + taken(exclusive)) & !clear;
            if word & QUEUED != 0 {
                let passes = (word & PASS_MASK) >> PASS_SHIFT;
                if self.limit >= 0 && passes >= self.limit as u64 {
                    return false;
                }
                if passes < PASS_MAX {
                    new += 1 << PASS_SHIFT;
                }
            }
            match core.cas(self.word, word, new).await {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    async fn acquire_slowly(&self, core: &Core, exclusive: bool) {
        if self.spin(core, exclusive).await {
            return;
        }
        self.lock_queue(core).await;
        if self.take_as_newcomer(core, exclusive, QLOCK).await {
            return;
        }
        let waiter = Rc::new(Waiter {
            cpu: core.id,
            exclusive,
            mark: Cell::new(0),
            granted: Cell::new(false),
            woken: Cell::new(false),
        });
        self.enqueue(core, &waiter).await;
        self.settle(core, 0).await;
        loop {
            core.park().await;
            if waiter.granted.get()
                || (waiter.woken.get() && self.take_as_head(core, &waiter).await)
            {
                return;
            }
        }
    }

    /// Tries for a while that follows how long it took others lately.
    async fn spin(&self, core: &Core, exclusive: bool) -> bool {
        if self.take_as_newcomer(core, exclusive, 0).await {
            return true;
        }
        let usual = self.spins.get();
        let most = (usual * 2 + 8).min(MOST_SPINS);
        let one = core.machine(|m| m.costs.pause + m.costs.hit);
        let began = core.now();
        loop {
            let spun = ((core.now() - began) as f64 / 1e3 / one) as u32;
            let patience = f64::from(most.saturating_sub(spun)) * one;
            let free = |word| fits(word, exclusive);
            if core.until(self.word, free, Some(patience)).await.is_none() {
                break;
            }
            if self.take_as_newcomer(core, exclusive, 0).await {
                self.spun(usual, spun);
                return true;
            }
            if spun >= most {
                break;
            }
            core.pause(1).await;
        }
        self.spun(usual, 0);
        false
    }

    fn spun(&self, usual: u32, spins: u32) {
        self.spins.set(if spins >= usual {
            usual + (spins - usual) / 8
        } else {
            usual - (usual - spins).div_ceil(8)
        });
    }

    async fn lock_queue(&self, core: &Core) {
        while core.or(self.word, QLOCK).await & QLOCK != 0 {
            core.until(self.word, |w| w & QLOCK == 0, None).await;
        }
    }

    async fn enqueue(&self, core: &Core, waiter: &Rc<Waiter>) {
        let first = self.queue.borrow().front().cloned();
        match first {
            None => {
                core.and(self.word, !PASS_MASK).await;
                core.or(self.word, QUEUED).await;
            }
            Some(first) => {
                let passes = (core.load(self.word).await & PASS_MASK) >> PASS_SHIFT;
                waiter.mark.set(first.mark.get() + passes);
            }
        }
        self.queue.borrow_mut().push_back(Rc::clone(waiter));
    }

    async fn dequeue_head(&self, core: &Core) -> Rc<Waiter> {
        let first = self.queue.borrow_mut().pop_front().expect("the caller has seen the head");
        let second = self.queue.borrow().front().cloned();
        match second {
            None => {
                core.and(self.word, !(QUEUED | PASS_MASK)).await;
            }
            Some(second) => self.forget_passes(core, second.mark.get() - first.mark.get()).await,
        }
        first
    }

    async fn forget_passes(&self, core: &Core, count: u64) {
        let mut word = core.load(self.word).await;
        loop {
            let passes = (word & PASS_MASK) >> PASS_SHIFT;
            let new = (word & !PASS_MASK) | passes.saturating_sub(count) << PASS_SHIFT;
            match core.cas(self.word, word, new).await {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// Frees QLOCK in a state in which nobody waits in vain; serves the head if that is possible.
    async fn settle(&self, core: &Core, clear: u64) {
        let mut word = core.load(self.word).await;
        loop {
            let then = word & !clear;
            let head = self.queue.borrow().front().cloned();
            let served = head.filter(|h| then & WOKEN == 0 && fits(then, h.exclusive));
            let result = match &served {
                None => core.cas(self.word, word, then & !QLOCK).await,
                Some(head) if head.exclusive => {
                    head.woken.set(true);
                    core.cas(self.word, word, (then | WOKEN) & !QLOCK).await
                }
                Some(_) => core.cas(self.word, word, then + 1).await,
            };
            match (result, served) {
                (Ok(_), None) => return,
                (Ok(_), Some(head)) if head.exclusive => return core.unpark(head.cpu).await,
                (Ok(_), Some(_)) => return self.grant_shared(core).await,
                (Err(now), served) => {
                    if let Some(head) = served.filter(|h| h.exclusive) {
                        head.woken.set(false);
                    }
                    word = now;
                }
            }
        }
    }

    /// The head has its share: gives one to each shared waiter that follows, and frees QLOCK.
    async fn grant_shared(&self, core: &Core) {
        let mut granted = vec![self.dequeue_head(core).await];
        while self.queue.borrow().front().is_some_and(|next| !next.exclusive) {
            core.add(self.word, 1).await;
            granted.push(self.dequeue_head(core).await);
        }
        // Now the head, if any, is exclusive and can't be served: this only frees QLOCK.
        Box::pin(self.settle(core, 0)).await;
        for waiter in granted {
            waiter.granted.set(true);
            core.unpark(waiter.cpu).await;
        }
    }

    /// The woken exclusive head answers: takes the lock and leaves the queue, or waits on.
    async fn take_as_head(&self, core: &Core, waiter: &Waiter) -> bool {
        self.lock_queue(core).await;
        waiter.woken.set(false);
        let mut word = core.load(self.word).await;
        while fits(word, true) {
            match core.cas(self.word, word, (word | EXCL) & !WOKEN).await {
                Ok(_) => {
                    self.dequeue_head(core).await;
                    self.settle(core, 0).await;
                    return true;
                }
                Err(now) => word = now,
            }
        }
        self.settle(core, WOKEN).await;
        false
    }
}

//! One lock: who holds it, who waits, in which order. No synchronisation here: the partition's mutex
//! is held by the caller.
//!
//! Invariants:
//!
//! * A request that conflicts with a holder (not itself) or with a request ahead of it waits; every
//!   other is granted at once. So nobody is passed by a request that conflicts with his.
//! * The one exception is PostgreSQL's: who holds this lock already, and would queue behind somebody
//!   who waits for *him*, goes in front of that one, as the two would otherwise wait for each other.
//! * Who watches a lock waits for those who held it when the watch began, and stands in nobody's way.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sched::TaskRef;

use super::{CONFLICTS, LockMode, ModeSet};

/// Somebody waits for a lock.
pub(super) struct Request {
    pub(super) owner: u32,
    pub(super) mode: LockMode,
    pub(super) task: TaskRef,
    granted: AtomicBool,
}

impl Request {
    pub(super) fn new(owner: u32, mode: LockMode, task: TaskRef) -> Arc<Request> {
        Arc::new(Request { owner, mode, task, granted: AtomicBool::new(false) })
    }

    /// Whether the lock has been granted.
    pub(super) fn granted(&self) -> bool {
        self.granted.load(Ordering::Acquire)
    }
}

/// Somebody waits for those who held conflicting modes when the watch began.
struct Watch {
    owner: u32,
    conflicts: ModeSet,
    /// Those who have not given them up since.
    left: Vec<u32>,
    over: Arc<AtomicBool>,
    task: TaskRef,
}

/// The fate of a new request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// The lock is held now.
    Granted,
    /// It has to wait, at this place in the queue.
    Queue(usize),
    /// It has to wait, and already it is clear that it would wait for ever.
    Deadlock,
}

#[derive(Clone, Copy)]
struct Holder {
    owner: u32,
    modes: ModeSet,
}

/// The state of one lock.
#[derive(Default)]
pub(super) struct Entry {
    /// Sorted by owner.
    holders: Vec<Holder>,
    /// How many hold each mode.
    granted: [u32; 9],
    queue: VecDeque<Arc<Request>>,
    /// How many wait for each mode.
    waiting: [u32; 9],
    watches: Vec<Watch>,
}

impl Entry {
    /// Nobody holds it or waits.
    pub(super) fn is_unused(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }

    /// The modes that a session holds.
    pub(super) fn modes(&self, owner: u32) -> ModeSet {
        match self.holders.binary_search_by_key(&owner, |h| h.owner) {
            Ok(at) => self.holders[at].modes,
            Err(_) => 0,
        }
    }

    /// Holders and their modes.
    pub(super) fn holders(&self) -> impl Iterator<Item = (u32, ModeSet)> {
        self.holders.iter().map(|h| (h.owner, h.modes))
    }

    /// Waiters, in order.
    pub(super) fn queue(&self) -> &VecDeque<Arc<Request>> {
        &self.queue
    }

    /// Whether another session holds a conflicting mode.
    fn is_blocked(&self, owner: u32, mode: LockMode) -> bool {
        let own = self.modes(owner);
        LockMode::ALL.iter().any(|other| {
            let mine = u32::from(own & other.bit() != 0);
            mode.conflicts(*other) && self.granted[*other as usize] > mine
        })
    }

    /// A new request: grants it if nothing is in its way, else says where it has to queue.
    pub(super) fn admit(&mut self, owner: u32, mode: LockMode) -> Admission {
        let own = self.modes(owner);
        if own & mode.bit() != 0 {
            return Admission::Granted;
        }
        let (ahead, place) = match own {
            0 => (self.waiting_modes(), self.queue.len()),
            own => match self.before_those_who_wait_for(own, mode) {
                Some(place) => place,
                None => return Admission::Deadlock,
            },
        };
        if mode.conflict_set() & ahead != 0 || self.is_blocked(owner, mode) {
            return Admission::Queue(place);
        }
        self.grant(owner, mode);
        Admission::Granted
    }

    /// The place of who holds `own` and wants `mode`: before the first waiter whom that holds up, with
    /// the modes wanted ahead of it. None when that waiter holds up `mode` in turn.
    fn before_those_who_wait_for(&self, own: ModeSet, mode: LockMode) -> Option<(ModeSet, usize)> {
        let mut ahead = 0;
        for (place, waiter) in self.queue.iter().enumerate() {
            if own & waiter.mode.conflict_set() != 0 {
                let mutual = mode.conflict_set() & self.modes(waiter.owner) != 0;
                return (!mutual).then_some((ahead, place));
            }
            ahead |= waiter.mode.bit();
        }
        Some((ahead, self.queue.len()))
    }

    /// The modes that anybody waits for.
    fn waiting_modes(&self) -> ModeSet {
        (1..=8).filter(|&mode| self.waiting[mode] > 0).fold(0, |set, mode| set | 1 << mode)
    }

    /// Notes that a session holds a mode.
    pub(super) fn grant(&mut self, owner: u32, mode: LockMode) {
        let at = match self.holders.binary_search_by_key(&owner, |h| h.owner) {
            Ok(at) => at,
            Err(at) => {
                self.holders.insert(at, Holder { owner, modes: 0 });
                at
            }
        };
        let modes = &mut self.holders[at].modes;
        if *modes & mode.bit() == 0 {
            *modes |= mode.bit();
            self.granted[mode as usize] += 1;
        }
    }

    /// A session gives a mode up. Returns whom to wake.
    pub(super) fn release(&mut self, owner: u32, mode: LockMode) -> Vec<TaskRef> {
        if let Ok(at) = self.holders.binary_search_by_key(&owner, |h| h.owner)
            && self.holders[at].modes & mode.bit() != 0
        {
            self.holders[at].modes &= !mode.bit();
            self.granted[mode as usize] -= 1;
            if self.holders[at].modes == 0 {
                self.holders.remove(at);
            }
        }
        let mut woken = self.advance();
        if !self.watches.is_empty() {
            self.tell_watches(owner, &mut woken);
        }
        woken
    }

    /// Begins to watch those who hold what conflicts with a mode. The flag says when all of them have
    /// given it up; None: nobody holds such a mode.
    pub(super) fn watch(
        &mut self,
        owner: u32,
        mode: LockMode,
        task: TaskRef,
    ) -> Option<Arc<AtomicBool>> {
        let conflicts = mode.conflict_set();
        let rival = |h: &&Holder| h.owner != owner && h.modes & conflicts != 0;
        let left: Vec<u32> = self.holders.iter().filter(rival).map(|h| h.owner).collect();
        if left.is_empty() {
            return None;
        }
        let over = Arc::new(AtomicBool::new(false));
        self.watches.push(Watch { owner, conflicts, left, over: over.clone(), task });
        Some(over)
    }

    /// Ends a session's watch.
    pub(super) fn unwatch(&mut self, owner: u32) {
        self.watches.retain(|w| w.owner != owner);
    }

    /// Whom a session that watches the lock waits for.
    pub(super) fn watched_by(&self, owner: u32) -> Option<&[u32]> {
        self.watches.iter().find(|w| w.owner == owner).map(|w| &w.left[..])
    }

    /// A session has given something up: adds those to wake whose watch is over.
    fn tell_watches(&mut self, owner: u32, woken: &mut Vec<TaskRef>) {
        let modes = self.modes(owner);
        self.watches.retain_mut(|watch| {
            if modes & watch.conflicts == 0 {
                watch.left.retain(|left| *left != owner);
            }
            if watch.left.is_empty() {
                watch.over.store(true, Ordering::Release);
                woken.push(watch.task.clone());
            }
            !watch.left.is_empty()
        });
    }

    /// Puts a request at a place of the queue.
    pub(super) fn enqueue(&mut self, place: usize, request: Arc<Request>) {
        self.waiting[request.mode as usize] += 1;
        self.queue.insert(place, request);
    }

    /// Takes a request out that is not to be granted any more; if it was granted meanwhile, the lock
    /// is released. Returns whom to wake.
    pub(super) fn cancel(&mut self, request: &Arc<Request>) -> Vec<TaskRef> {
        match self.queue.iter().position(|r| Arc::ptr_eq(r, request)) {
            Some(at) => {
                self.queue.remove(at);
                self.waiting[request.mode as usize] -= 1;
                self.advance()
            }
            None => self.release(request.owner, request.mode),
        }
    }

    /// Moves a waiter to another place of the queue.
    pub(super) fn reorder(&mut self, from: usize, to: usize) {
        if let Some(request) = self.queue.remove(from) {
            self.queue.insert(to, request);
        }
    }

    /// Grants, in order, what can be granted. Returns whom to wake.
    pub(super) fn advance(&mut self) -> Vec<TaskRef> {
        let (mut woken, mut ahead, mut i) = (Vec::new(), 0, 0);
        while i < self.queue.len() {
            let (owner, mode) = (self.queue[i].owner, self.queue[i].mode);
            if mode.conflict_set() & ahead == 0 && !self.is_blocked(owner, mode) {
                self.grant(owner, mode);
                self.waiting[mode as usize] -= 1;
                let request = self.queue.remove(i).expect("i is inside the queue");
                request.granted.store(true, Ordering::Release);
                woken.push(request.task.clone());
                continue;
            }
            ahead |= mode.bit();
            if !self.anyone_can_pass(ahead) {
                break;
            }
            i += 1;
        }
        woken
    }

    /// Whether a mode that somebody waits for conflicts with none of these.
    fn anyone_can_pass(&self, ahead: ModeSet) -> bool {
        (1..=8).any(|mode| self.waiting[mode] > 0 && CONFLICTS[mode] & ahead == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::LockMode::*;
    use super::*;

    /// Sessions ask and release; the script's answers are the order of grants.
    struct Script {
        entry: Entry,
        requests: Vec<Arc<Request>>,
    }

    impl Script {
        fn new() -> Script {
            Script { entry: Entry::default(), requests: Vec::new() }
        }
        fn ask(&mut self, owner: u32, mode: LockMode) -> Admission {
            let answer = self.entry.admit(owner, mode);
            if let Admission::Queue(place) = answer {
                let request = Request::new(owner, mode, sched::Task::new("test"));
                self.requests.push(request.clone());
                self.entry.enqueue(place, request);
            }
            answer
        }
        fn waiting(&self) -> Vec<u32> {
            self.entry.queue.iter().map(|r| r.owner).collect()
        }
    }

    #[test]
    fn a_reader_queues_behind_a_waiting_writer() {
        let mut s = Script::new();
        assert_eq!(s.ask(1, AccessShare), Admission::Granted);
        assert_eq!(s.ask(2, AccessExclusive), Admission::Queue(0));
        assert_eq!(s.ask(3, AccessShare), Admission::Queue(1));
        assert_eq!(s.entry.release(1, AccessShare).len(), 1, "only the writer");
        assert_eq!(s.waiting(), [3]);
        assert_eq!(s.entry.release(2, AccessExclusive).len(), 1);
        assert!(s.waiting().is_empty());
    }

    #[test]
    fn compatible_requests_are_granted_together_and_in_order() {
        let mut s = Script::new();
        s.ask(1, Exclusive);
        for (owner, mode) in [(2, Share), (3, Share), (4, RowExclusive), (5, Share)] {
            assert!(matches!(s.ask(owner, mode), Admission::Queue(_)));
        }
        assert_eq!(s.entry.release(1, Exclusive).len(), 2);
        assert_eq!(s.waiting(), [4, 5], "5 does not pass 4, with which it conflicts");
    }

    #[test]
    fn a_request_that_conflicts_with_nobody_ahead_passes() {
        let mut s = Script::new();
        s.ask(1, Share);
        assert_eq!(s.ask(2, RowExclusive), Admission::Queue(0));
        assert_eq!(s.ask(3, AccessShare), Admission::Granted);
    }

    #[test]
    fn a_holder_goes_before_those_who_wait_for_it() {
        let mut s = Script::new();
        s.ask(1, AccessShare);
        s.ask(2, AccessExclusive);
        assert_eq!(s.ask(1, RowExclusive), Admission::Granted);
        s.ask(3, RowShare);
        assert_eq!(s.waiting(), [2, 3]);
    }

    #[test]
    fn who_watches_waits_for_the_holders_of_the_moment_and_lets_others_by() {
        let mut s = Script::new();
        s.ask(1, RowExclusive);
        s.ask(2, AccessShare);
        let over = s.entry.watch(9, Share, sched::Task::new("test")).expect("1 is in the way");
        assert_eq!(s.ask(3, RowExclusive), Admission::Granted);
        assert_eq!(s.entry.watched_by(9), Some(&[1][..]));
        assert!(s.entry.release(2, AccessShare).is_empty());
        assert_eq!(s.entry.release(1, RowExclusive).len(), 1, "the watcher");
        assert!(over.load(Ordering::Acquire), "though 3 has come meanwhile");
        assert!(
            s.entry.watch(3, Share, sched::Task::new("test")).is_none(),
            "one's own don't count"
        );
        s.entry.release(3, RowExclusive);
        assert!(s.entry.is_unused());
    }

    #[test]
    fn two_upgrades_are_a_deadlock_at_once() {
        let mut s = Script::new();
        s.ask(1, Share);
        s.ask(2, Share);
        assert_eq!(s.ask(1, Exclusive), Admission::Queue(0));
        assert_eq!(s.ask(2, Exclusive), Admission::Deadlock);
    }

    #[test]
    fn a_cancelled_waiter_lets_those_behind_it_go_on() {
        let mut s = Script::new();
        s.ask(1, AccessShare);
        s.ask(2, AccessExclusive);
        s.ask(3, AccessShare);
        let writer = s.requests[0].clone();
        assert_eq!(s.entry.cancel(&writer).len(), 1);
        assert!(s.requests[1].granted());
        s.entry.release(1, AccessShare);
        s.entry.release(3, AccessShare);
        assert!(s.entry.is_unused());
    }

    #[test]
    fn random_histories_keep_the_table_conflict_free_and_never_leave_a_grantable_head() {
        let mut seed = 1u64;
        let mut random = move |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        let mut s = Script::new();
        for _ in 0..20_000 {
            let owner = random(12) as u32;
            let queued = s.entry.queue.iter().any(|r| r.owner == owner);
            let own = s.entry.modes(owner);
            let mode = LockMode::ALL[random(8) as usize];
            if !queued && random(2) == 0 {
                s.ask(owner, mode);
            } else if own & mode.bit() != 0 {
                s.entry.release(owner, mode);
            } else if queued && random(4) == 0 {
                let request = s.entry.queue.iter().find(|r| r.owner == owner).unwrap().clone();
                s.entry.cancel(&request);
            }
            for a in &s.entry.holders {
                for b in s.entry.holders.iter().filter(|b| b.owner != a.owner) {
                    for mode in LockMode::ALL.iter().filter(|m| a.modes & m.bit() != 0) {
                        assert_eq!(mode.conflict_set() & b.modes, 0);
                    }
                }
            }
            if let Some(head) = s.entry.queue.front() {
                assert!(s.entry.is_blocked(head.owner, head.mode));
            }
        }
    }
}

//! The threads that run one part of a plan at the same time, each with operators of its own: what they share.
//!
//! A scan's pages are taken piece by piece by whoever has time, and the table of a hash join is made together
//! ([`sched::joint`]) or by the leader before the others begin. Both are found by the address of their node in the plan,
//! which is the same for all threads.
//!
//! The leader is the statement's own thread. A helper stops taking pieces when sessions wait for workers
//! ([`sched::helpers::should_yield`]); the leader never does, so what helpers leave is read by it. When no helper is left
//! the leader is alone, and only then does it hand up what needs the work of all to be done: rows of a join's right side
//! that have no partner.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use base::Result;
use sched::SpinLock;

/// Pages of a piece.
const PIECE_PAGES: u32 = 32;
/// Pieces before the scan began.
const UNKNOWN: u32 = u32::MAX;

/// See the module's documentation.
#[derive(Default)]
pub struct Team {
    /// State that the threads' operators of one node share, by its address.
    nodes: SpinLock<Vec<(usize, Arc<dyn Any + Send + Sync>)>>,
    /// No pieces are taken any more: the statement fails.
    closed: AtomicBool,
    /// No helper runs or will run.
    alone: AtomicBool,
    /// Threads that there may be.
    most: usize,
}

/// A scan's pages, of which whoever has time takes the next ones.
#[derive(Debug)]
struct Pages {
    next: AtomicU32,
    /// [`UNKNOWN`] before the first has asked.
    end: AtomicU32,
}

impl Default for Pages {
    fn default() -> Pages {
        Pages { next: AtomicU32::new(0), end: AtomicU32::new(UNKNOWN) }
    }
}

/// A thread's place in a team.
#[derive(Clone)]
pub struct Member {
    team: Arc<Team>,
    leads: bool,
    /// It takes no pieces for now.
    stopped: Arc<AtomicBool>,
    /// It was refused work that may be there.
    refused: Arc<AtomicBool>,
}

impl Member {
    /// The leader of a new team of at most this many threads.
    pub fn leader(most: usize) -> Member {
        let team = Arc::new(Team { most, ..Team::default() });
        Member { team, leads: true, stopped: Arc::default(), refused: Arc::default() }
    }

    /// A helper of the same team.
    pub fn helper(&self) -> Member {
        let team = self.team.clone();
        Member { team, leads: false, stopped: Arc::default(), refused: Arc::default() }
    }

    /// How many threads there may be.
    pub fn most(&self) -> usize {
        self.team.most
    }

    /// Whether it is the statement's own thread.
    pub fn leads(&self) -> bool {
        self.leads
    }

    /// The pieces of a scan, by its address in the plan.
    pub fn pieces(&self, at: usize) -> Pieces {
        Pieces { pages: self.shared(at), member: self.clone() }
    }

    /// State that the operators of a node share, by its address in the plan: one type for each.
    pub fn shared<T: Default + Send + Sync + 'static>(&self, at: usize) -> Arc<T> {
        let find = |nodes: &[(usize, Arc<dyn Any + Send + Sync>)]| {
            let of_node = nodes.iter().filter(|(place, _)| *place == at);
            of_node.filter_map(|(_, thing)| thing.clone().downcast::<T>().ok()).next()
        };
        if let Some(known) = find(&self.team.nodes.lock()) {
            return known;
        }
        let fresh: Arc<T> = Arc::default();
        let mut nodes = self.team.nodes.lock();
        match find(&nodes) {
            Some(known) => known,
            None => {
                nodes.push((at, fresh.clone()));
                fresh
            }
        }
    }

    /// This thread takes no pieces any more, or (false) does again.
    pub fn stop(&self, stopped: bool) {
        self.stopped.store(stopped, Ordering::Relaxed);
        if !stopped {
            self.refused.store(false, Ordering::Relaxed);
        }
    }

    /// There is more work below than this thread may do for now: what it has is not all.
    pub fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    /// Whether this thread has left work to others, or to a later time.
    pub fn was_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Nobody takes pieces any more: the statement fails.
    pub fn close(&self) {
        self.team.closed.store(true, Ordering::Relaxed);
    }

    /// Whether all that is left is this thread's.
    pub fn is_alone(&self) -> bool {
        self.leads && self.team.alone.load(Ordering::Acquire)
    }

    /// No helper runs, and none is started any more.
    pub fn go_on_alone(&self) {
        self.stop(false);
        self.team.alone.store(true, Ordering::Release);
    }

    /// The plan is run again.
    pub fn begin_again(&self) {
        self.stop(false);
        self.team.closed.store(false, Ordering::Relaxed);
        self.team.alone.store(false, Ordering::Relaxed);
    }

    /// Whether this thread may take a piece now.
    pub fn may_take(&self) -> bool {
        let stops = self.stopped.load(Ordering::Relaxed)
            || self.team.closed.load(Ordering::Relaxed)
            || (!self.leads && sched::helpers::should_yield());
        if stops {
            self.refused.store(true, Ordering::Relaxed);
        }
        !stops
    }
}

/// One thread's access to the pieces of a scan.
#[derive(Clone)]
pub struct Pieces {
    pages: Arc<Pages>,
    member: Member,
}

impl Pieces {
    /// The next pages to read; `count` tells how many the table has.
    ///
    /// # Errors
    /// The function's.
    pub fn take(&self, count: impl FnOnce() -> Result<u32>) -> Result<Option<Range<u32>>> {
        if !self.member.may_take() {
            return Ok(None);
        }
        if self.pages.end.load(Ordering::Acquire) == UNKNOWN {
            // The first count decides.
            let count = count()?.min(UNKNOWN - 1);
            let (order, failed) = (Ordering::AcqRel, Ordering::Acquire);
            let _ = self.pages.end.compare_exchange(UNKNOWN, count, order, failed);
        }
        let end = self.pages.end.load(Ordering::Acquire);
        let take = |next: u32| (next < end).then(|| end.min(next.saturating_add(PIECE_PAGES)));
        Ok(match self.pages.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(from) => Some(from..end.min(from.saturating_add(PIECE_PAGES))),
            Err(_) => None,
        })
    }

    /// The scan begins again.
    pub fn rewind(&self) {
        self.pages.end.store(UNKNOWN, Ordering::Release);
        self.pages.next.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_in_one_piece() {
        let leader = Member::leader(2);
        let (own, other) = (leader.pieces(7), leader.helper().pieces(7));
        let mut seen = Vec::new();
        loop {
            let taken = own.take(|| Ok(100)).unwrap().into_iter();
            let taken: Vec<u32> = taken.chain(other.take(|| Ok(7)).unwrap()).flatten().collect();
            if taken.is_empty() {
                break;
            }
            seen.extend(taken);
        }
        assert_eq!(seen, (0..100).collect::<Vec<u32>>());
        assert!(!leader.was_refused(), "there was no other");
        own.rewind();
        leader.stop(true);
        assert_eq!(own.take(|| Ok(100)).unwrap(), None);
        assert!(leader.was_refused());
        assert_eq!(other.take(|| Ok(10)).unwrap(), Some(0..10));
        assert_eq!(leader.pieces(8).take(|| Ok(3)).unwrap(), None);
        leader.stop(false);
        assert_eq!(leader.pieces(8).take(|| Ok(3)).unwrap(), Some(0..3));
        leader.close();
        assert_eq!(leader.pieces(9).take(|| Ok(10)).unwrap(), None);
    }
}

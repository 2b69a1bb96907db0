//! One thing that several threads make together: each makes a part of it, and the last to finish joins the
//! parts. A hash table that the threads of a parallel plan build is one.
//!
//! ```text
//!   enter ─▶ Inside ── finish(part) ─▶ others are inside: wait ──▶ Done
//!     │         │                      none is: join all parts ──▶ Done
//!     │         ├── leave(part)        goes without the result; the part counts
//!     │         ├── abandon(part)      nothing is made together any more: Abandoned
//!     │         └── dropped            an error or a panic: Failed
//!     └─▶ Done, or Closed
//! ```
//!
//! * Nobody waits for threads that have not entered: those that come late find what there is, and those that
//!   never come are not missed. So a thread waits only for threads that are at work inside, and stories nest
//!   without a deadlock as long as all threads visit them in one order.
//! * A thread that finds no more work finishes; one that stops before calls `leave`, and somebody must finish after
//!   it: the leader, who never leaves.
//! * The leader alone gets the parts of what was abandoned, when nobody is inside any more.

use std::sync::Arc;

use base::WaitEvent;

use crate::condvar::Condvar;
use crate::mutex::{Mutex, MutexGuard};
use crate::seam::Wake;

/// See the module's documentation: parts `P` become a `T`.
pub struct Joint<P, T> {
    state: Mutex<State<P, T>>,
    changed: Condvar,
    event: WaitEvent,
}

struct State<P, T> {
    stage: Stage<T>,
    /// The parts made so far.
    parts: Vec<P>,
    /// Threads between `enter` and the end of their parts.
    inside: usize,
}

enum Stage<T> {
    Open,
    /// The last thread joins the parts.
    Joining,
    Done(Arc<T>),
    Abandoned,
    Failed,
}

/// How it stands for a thread.
pub enum Turn<'a, P, T> {
    /// It makes a part.
    Inside(Inside<'a, P, T>),
    /// It is done.
    Done(Arc<T>),
    /// The leader goes on alone with these parts.
    Alone(Vec<P>),
    /// There is nothing in it for this thread: the leader goes on alone, or another thread has failed.
    Closed,
}

/// A thread that makes a part.
pub struct Inside<'a, P, T> {
    joint: Option<&'a Joint<P, T>>,
    leads: bool,
}

impl<P, T> Joint<P, T> {
    /// Nothing is made yet; waits are told as `event`.
    pub fn new(event: WaitEvent) -> Joint<P, T> {
        let state = State { stage: Stage::Open, parts: Vec::new(), inside: 0 };
        Joint { state: Mutex::new(event, state), changed: Condvar::new(), event }
    }

    /// A thread comes, the statement's own (`leads`) or a helper. `check` tells whether it goes on waiting after an
    /// interrupt.
    ///
    /// # Errors
    /// Those of `check`.
    pub fn enter<E>(
        &self,
        leads: bool,
        check: impl FnMut() -> Result<(), E>,
    ) -> Result<Turn<'_, P, T>, E> {
        let mut state = self.state.lock();
        if matches!(state.stage, Stage::Open) {
            state.inside += 1;
            return Ok(Turn::Inside(Inside { joint: Some(self), leads }));
        }
        self.wait(state, leads, check)
    }

    /// The leader has made all of it.
    pub fn set(&self, made: Arc<T>) {
        self.end(Stage::Done(made));
    }

    /// The leader goes on alone, from the beginning.
    pub fn close(&self) {
        self.end(Stage::Abandoned);
    }

    /// As new; nobody is inside.
    pub fn reset(&self) {
        let mut state = self.state.lock();
        state.stage = Stage::Open;
        state.parts.clear();
    }

    fn end(&self, stage: Stage<T>) {
        self.state.lock().stage = stage;
        self.changed.notify_all();
    }

    /// Waits until there is a result, or none to come.
    fn wait<'a, E>(
        &'a self,
        mut state: MutexGuard<'a, State<P, T>>,
        leads: bool,
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<Turn<'a, P, T>, E> {
        loop {
            match &state.stage {
                Stage::Done(made) => return Ok(Turn::Done(made.clone())),
                Stage::Failed => return Ok(Turn::Closed),
                Stage::Abandoned if !leads => return Ok(Turn::Closed),
                Stage::Abandoned if state.inside == 0 => {
                    return Ok(Turn::Alone(std::mem::take(&mut state.parts)));
                }
                Stage::Abandoned | Stage::Open | Stage::Joining => {}
            }
            state = self.wait_for_change(state, &mut check)?;
        }
    }

    fn wait_for_change<'a, E>(
        &'a self,
        state: MutexGuard<'a, State<P, T>>,
        check: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<MutexGuard<'a, State<P, T>>, E> {
        let (state, wake) = self.changed.wait(&self.state, state, self.event, None);
        if wake != Wake::Interrupted {
            return Ok(state);
        }
        drop(state);
        check()?;
        Ok(self.state.lock())
    }
}

impl<'a, P, T> Inside<'a, P, T> {
    /// Adds a part; the guard that it leaves with.
    fn put(&mut self, part: P) -> Option<(&'a Joint<P, T>, MutexGuard<'a, State<P, T>>)> {
        let joint = self.joint.take()?;
        let mut state = joint.state.lock();
        state.parts.push(part);
        state.inside -= 1;
        if state.inside == 0 {
            joint.changed.notify_all();
        }
        Some((joint, state))
    }

    /// The part is finished, and no work is left for others. When nobody is inside any more a thread that has finished
    /// joins the parts; the others wait for it.
    ///
    /// # Errors
    /// Those of `join`, for the thread that calls it; those of `check`.
    pub fn finish<E>(
        mut self,
        part: P,
        join: impl FnOnce(Vec<P>) -> Result<T, E>,
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<Turn<'a, P, T>, E> {
        let Some((joint, mut state)) = self.put(part) else { return Ok(Turn::Closed) };
        while matches!(state.stage, Stage::Open) && state.inside > 0 {
            state = joint.wait_for_change(state, &mut check)?;
        }
        if !matches!(state.stage, Stage::Open) {
            return joint.wait(state, self.leads, check);
        }
        state.stage = Stage::Joining;
        let parts = std::mem::take(&mut state.parts);
        drop(state);
        let failing = Failing(joint);
        let made = Arc::new(join(parts)?);
        std::mem::forget(failing);
        joint.set(made.clone());
        Ok(Turn::Done(made))
    }

    /// The thread goes before all work is done, and does not need the result.
    pub fn leave(mut self, part: P) {
        drop(self.put(part));
    }

    /// It can't be made together: the leader gets the parts, when all threads have left.
    ///
    /// # Errors
    /// Those of `check`.
    pub fn abandon<E>(
        mut self,
        part: P,
        check: impl FnMut() -> Result<(), E>,
    ) -> Result<Turn<'a, P, T>, E> {
        let Some((joint, mut state)) = self.put(part) else { return Ok(Turn::Closed) };
        if matches!(state.stage, Stage::Open) {
            state.stage = Stage::Abandoned;
            joint.changed.notify_all();
        }
        joint.wait(state, self.leads, check)
    }
}

/// A thread that neither finishes nor leaves has failed.
impl<P, T> Drop for Inside<'_, P, T> {
    fn drop(&mut self) {
        if let Some(joint) = self.joint {
            joint.state.lock().inside -= 1;
            joint.end(Stage::Failed);
        }
    }
}

/// Joining the parts has failed when this is dropped.
struct Failing<'a, P, T>(&'a Joint<P, T>);

impl<P, T> Drop for Failing<'_, P, T> {
    fn drop(&mut self) {
        self.0.end(Stage::Failed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    type Sum = Joint<Vec<u32>, u32>;

    fn sum(parts: Vec<Vec<u32>>) -> Result<u32, ()> {
        Ok(parts.iter().flatten().sum())
    }

    fn check() -> Result<(), ()> {
        Ok(())
    }

    fn enter(joint: &Sum, leads: bool) -> Turn<'_, Vec<u32>, u32> {
        joint.enter(leads, check).expect("nothing interrupts")
    }

    /// Adds what is left of the numbers up to 1,000.
    fn work(joint: &Sum, left: &AtomicU32, leads: bool) -> Option<u32> {
        let inside = match enter(joint, leads) {
            Turn::Inside(inside) => inside,
            Turn::Done(sum) => return Some(*sum),
            _ => return None,
        };
        let take = |n: u32| n.checked_sub(1);
        let mut part = Vec::new();
        while let Ok(n) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            part.push(n);
        }
        match inside.finish(part, sum, check).expect("sums do not fail") {
            Turn::Done(sum) => Some(*sum),
            _ => None,
        }
    }

    #[test]
    fn every_thread_gets_what_all_have_made() {
        for _ in 0..100 {
            let (joint, left) = (Sum::new(WaitEvent::IPCParallelFinish), AtomicU32::new(1000));
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4)
                    .map(|n| {
                        scope.spawn({
                            let (joint, left) = (&joint, &left);
                            move || work(joint, left, n == 0)
                        })
                    })
                    .collect();
                for thread in threads {
                    assert_eq!(thread.join().expect("no thread panics"), Some(500_500));
                }
            });
        }
    }

    #[test]
    fn a_part_counts_whose_thread_has_left() {
        let joint = Sum::new(WaitEvent::IPCParallelFinish);
        let Turn::Inside(helper) = enter(&joint, false) else { panic!("it is open") };
        helper.leave(vec![3]);
        let Turn::Inside(leader) = enter(&joint, true) else { panic!("it is open") };
        let Ok(Turn::Done(sum)) = leader.finish(vec![4], sum, check) else { panic!("it is done") };
        assert_eq!(*sum, 7);
        joint.reset();
        assert!(matches!(enter(&joint, false), Turn::Inside(_)));
    }

    #[test]
    fn the_leader_gets_the_parts_of_what_is_abandoned() {
        let joint = Sum::new(WaitEvent::IPCParallelFinish);
        let Turn::Inside(helper) = enter(&joint, false) else { panic!("it is open") };
        assert!(matches!(helper.abandon(vec![3], check), Ok(Turn::Closed)));
        let Turn::Alone(parts) = enter(&joint, true) else { panic!("it is the leader's") };
        assert_eq!(parts, [[3]]);
    }

    #[test]
    fn who_fails_ends_it_for_all() {
        let joint = Sum::new(WaitEvent::IPCParallelFinish);
        drop(enter(&joint, false));
        assert!(matches!(enter(&joint, true), Turn::Closed));
        joint.reset();
        let Turn::Inside(leader) = enter(&joint, true) else { panic!("it is open") };
        assert!(leader.finish(vec![], |_| Err(()), check).is_err());
        assert!(matches!(enter(&joint, false), Turn::Closed));
    }
}

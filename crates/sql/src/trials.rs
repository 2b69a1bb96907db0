//! The trials of a generic plan beside custom ones ([`crate::custom`]).

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use sched::SpinLock;

use crate::parse::RawStatement;

/// Custom plans like the generic one that prove it.
const PROOF: u32 = 5;
/// Runs of a proven plan from one trial to the next.
const TRIAL_EVERY: u32 = 64;

/// A generic plan's record beside custom ones.
#[derive(Default)]
pub struct Trials {
    /// Custom plans like it, one after another.
    alike: AtomicU32,
    /// Runs since it is proven.
    runs: AtomicU32,
    /// A hash of the values of the last trial: the same ones prove nothing more.
    values: AtomicU64,
    /// Whether another plan may be worth its planning.
    dear: OnceLock<bool>,
    /// Whether it has run.
    ran: AtomicBool,
    /// Plans made for the statement that nobody has counted yet, and the time that they took, nanoseconds.
    planned: AtomicU32,
    planned_ns: AtomicU64,
    /// The statement, parsed, and its text, while custom plans come out otherwise.
    parsed: SpinLock<Option<Parsed>>,
}

/// A text and its statement.
type Parsed = (Box<str>, Arc<RawStatement>);

/// Bytes of a text whose tree is kept, at most.
const KEPT_TEXT_MAX: usize = 1024;

impl Trials {
    /// Whether the plan has never been asked this: true once, or a few times where sessions ask at once.
    #[inline]
    pub fn is_first_run(&self) -> bool {
        !self.ran.load(Ordering::Relaxed) && !self.ran.swap(true, Ordering::Relaxed)
    }

    /// A plan was made, which took so many nanoseconds.
    pub(crate) fn add_planned(&self, count: u32, ns: u64) {
        self.planned_ns.fetch_add(ns, Ordering::Relaxed);
        self.planned.fetch_add(count, Ordering::Relaxed);
    }

    /// Plans that were made since this was last asked, and the time that they took, nanoseconds; None: none.
    #[inline]
    pub fn take_planned(&self) -> Option<(u32, u64)> {
        if self.planned.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let count = self.planned.swap(0, Ordering::Relaxed);
        (count > 0).then(|| (count, self.planned_ns.swap(0, Ordering::Relaxed)))
    }

    /// Whether another plan may be worth its planning, as it was found when first asked.
    pub(crate) fn is_dear(&self, find: impl FnOnce() -> bool) -> bool {
        *self.dear.get_or_init(find)
    }

    /// Whether the next run tries a custom plan.
    pub(crate) fn go_on(&self) -> bool {
        self.alike.load(Ordering::Relaxed) < PROOF
            || self.runs.fetch_add(1, Ordering::Relaxed) % TRIAL_EVERY == TRIAL_EVERY - 1
    }

    /// The statement of this text, if it was kept.
    pub(crate) fn parsed(&self, text: &str) -> Option<Arc<RawStatement>> {
        let kept = self.parsed.lock();
        let (_, statement) = kept.as_ref().filter(|(of, _)| **of == *text)?;
        Some(statement.clone())
    }

    /// Keeps a statement for the next custom plan; with None, there is no use of one.
    pub(crate) fn keep_parsed(&self, parsed: Option<(&str, Arc<RawStatement>)>) {
        let new = parsed.filter(|(text, _)| text.len() <= KEPT_TEXT_MAX);
        let mut kept = self.parsed.lock();
        let is_same = match (&*kept, &new) {
            (None, None) => true,
            (Some((of, _)), Some((text, _))) => **of == **text,
            _ => false,
        };
        let old = match is_same {
            true => None,
            false => std::mem::replace(&mut *kept, new.map(|(text, tree)| (text.into(), tree))),
        };
        // Trees are freed behind the lock.
        drop(kept);
        drop(old);
    }

    /// Whether the last custom plan was for values with this hash, and like the generic one.
    pub(crate) fn is_known_alike(&self, values: u64) -> bool {
        self.alike.load(Ordering::Relaxed) > 0 && self.values.load(Ordering::Relaxed) == values
    }

    /// A custom plan for values with this hash came out, like the generic one or not.
    pub(crate) fn note(&self, alike: bool, values: u64) {
        if self.values.swap(values, Ordering::Relaxed) == values && alike {
            return;
        }
        let before = self.alike.load(Ordering::Relaxed);
        self.alike.store(if alike { (before + 1).min(PROOF) } else { 0 }, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_counted_once() {
        let trials = Trials::default();
        assert_eq!(trials.take_planned(), None);
        trials.add_planned(1, 300);
        trials.add_planned(1, 200);
        assert_eq!((trials.take_planned(), trials.take_planned()), (Some((2, 500)), None));
    }

    #[test]
    fn plans_alike_prove_the_one_for_any_values() {
        let trials = Trials::default();
        for n in 0..PROOF {
            assert!(trials.go_on());
            trials.note(true, u64::from(n) + 1);
            assert!(trials.is_known_alike(u64::from(n) + 1));
            // The same values again say nothing.
            trials.note(true, u64::from(n) + 1);
        }
        let later = (0..TRIAL_EVERY).filter(|_| trials.go_on()).count();
        assert_eq!(later, 1);
        // A trial that came out otherwise begins anew.
        trials.note(false, 1);
        assert!(!trials.is_known_alike(1));
        assert!((0..TRIAL_EVERY).all(|_| trials.go_on()));
    }
}

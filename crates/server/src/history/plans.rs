//! Plans of statements: a plan is noted when a statement first runs by it, so that a plan that changed can be shown
//! beside the one before.
//!
//! Plans are told apart by their shape (nodes, their tables and indexes), not by costs: [`sql::custom::shape`]. It is computed
//! once for each plan that is made, and its text only for a shape that the statement has not had. A statement that goes to
//! and fro between plans that it has had, because its values differ, is noted at most every ten seconds.

use std::sync::Arc;

use base::WaitEvent;
use rustc_hash::FxHashMap;
use sched::{Mutex, SpinLock};

/// Plans that a slice keeps.
pub(super) const PLANS_MAX: usize = 64;
/// Statements of which the plans are remembered.
const STATEMENTS_MAX: usize = 10_000;
/// Plans that are remembered of a statement.
const SHAPES_MAX: usize = 8;
/// Longest text of a plan, bytes.
pub(super) const PLAN_BYTES_MAX: usize = 4000;
/// Notes that wait to be written.
const NOTES_MAX: usize = 1000;
/// A plan that has lasted so long is one that was changed when another takes its place, microseconds.
const LASTED_US: i64 = 10_000_000;

/// A plan that a statement ran by for the first time, or again after another.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanNote {
    /// When, in microseconds since 2000.
    pub at: i64,
    /// The database's oid.
    pub database: u32,
    /// The statement's query identifier.
    pub statement: u64,
    /// Its text without constants.
    pub query: Arc<str>,
    /// The plan as EXPLAIN shows it.
    pub plan: Arc<str>,
    /// The plan before; empty: none since the server started.
    pub before: Arc<str>,
}

/// The plans of a statement.
struct Known {
    shape: u64,
    /// All that it has had, by shape.
    texts: Vec<(u64, Arc<str>)>,
    /// When it last went from one to another, in microseconds since 2000.
    changed: i64,
}

impl Known {
    fn text(&self, shape: u64) -> Option<Arc<str>> {
        self.texts.iter().find(|(known, _)| *known == shape).map(|(_, text)| text.clone())
    }
}

/// The plans of the statements that have run since the server started.
pub struct Plans {
    known: Mutex<FxHashMap<(u32, u64), Known>>,
    notes: SpinLock<Vec<PlanNote>>,
}

impl Default for Plans {
    fn default() -> Plans {
        let known = Mutex::new(WaitEvent::LWLockStatistics, FxHashMap::default());
        Plans { known, notes: SpinLock::default() }
    }
}

impl Plans {
    /// A statement of a database ran by a plan that was made for it. `text`: the plan's.
    pub fn note(
        &self,
        (database, statement): (u32, u64),
        query: &Arc<str>,
        shape: u64,
        now: i64,
        text: impl FnOnce() -> String,
    ) {
        let short = |text: String| -> Arc<str> {
            let text = sql::secrets::in_message(&text);
            text[..text.floor_char_boundary(PLAN_BYTES_MAX)].into()
        };
        let mut all = self.known.lock();
        if all.len() >= STATEMENTS_MAX && !all.contains_key(&(database, statement)) {
            all.clear();
        }
        let (plan, before) = match all.get_mut(&(database, statement)) {
            None => {
                let plan = short(text());
                let known = Known { shape, texts: vec![(shape, plan.clone())], changed: now };
                all.insert((database, statement), known);
                (plan, Arc::default())
            }
            Some(known) if known.shape == shape => return,
            Some(known) => {
                let before = known.text(known.shape).unwrap_or_default();
                let lasted = now - known.changed >= LASTED_US;
                (known.shape, known.changed) = (shape, now);
                match known.text(shape) {
                    Some(plan) if lasted => (plan, before),
                    Some(_) => return,
                    None => {
                        let is_full = known.texts.len() >= SHAPES_MAX;
                        if is_full {
                            known.texts.remove(0);
                        }
                        let plan = short(text());
                        known.texts.push((shape, plan.clone()));
                        if is_full && !lasted {
                            return;
                        }
                        (plan, before)
                    }
                }
            }
        };
        drop(all);
        let mut notes = self.notes.lock();
        if notes.len() < NOTES_MAX {
            notes.push(PlanNote {
                at: now,
                database,
                statement,
                query: query.clone(),
                plan,
                before,
            });
        }
    }

    /// Takes the oldest notes, as many as a slice keeps.
    pub(super) fn take(&self) -> Vec<PlanNote> {
        let mut notes = self.notes.lock();
        let count = notes.len().min(PLANS_MAX);
        let surplus = notes.split_off(count);
        std::mem::replace(&mut notes, surplus)
    }
}

/// The first lines in which two plans differ, without their costs.
pub fn difference(before: &str, after: &str) -> Option<(String, String)> {
    let plain = |line: &str| {
        let line = line.split("  (cost=").next().unwrap_or_default();
        line.trim().trim_start_matches("->").trim().to_owned()
    };
    let mut lines = (before.lines().map(plain), after.lines().map(plain));
    loop {
        match (lines.0.next(), lines.1.next()) {
            (None, None) => return None,
            (one, other) if one == other => {}
            (one, other) => {
                let none = || "nothing".to_owned();
                return Some((one.unwrap_or_else(none), other.unwrap_or_else(none)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(plans: &Plans, shape: u64, at: i64) -> Vec<(String, String)> {
        plans.note((5, 7), &"select".into(), shape, at, || format!("plan {shape}"));
        plans.take().into_iter().map(|n| (n.before.to_string(), n.plan.to_string())).collect()
    }

    fn pair(before: &str, plan: &str) -> Vec<(String, String)> {
        vec![(before.to_owned(), plan.to_owned())]
    }

    #[test]
    fn a_plan_that_takes_anothers_place_is_noted_with_it() {
        let plans = Plans::default();
        assert_eq!(note(&plans, 1, 0), pair("", "plan 1"));
        assert_eq!(note(&plans, 1, 1), []);
        assert_eq!(note(&plans, 2, 2), pair("plan 1", "plan 2"));
        assert_eq!(note(&plans, 1, 3), [], "to and fro");
        assert_eq!(note(&plans, 2, 4), [], "to and fro");
        assert_eq!(note(&plans, 1, 4 + LASTED_US), pair("plan 2", "plan 1"));
    }

    #[test]
    fn plans_differ_in_a_line() {
        let before =
            "Limit  (cost=1..2 rows=1 width=4)\n  ->  Index Scan using t_a on t  (cost=1..2)";
        let after =
            "Limit  (cost=3..4 rows=1 width=4)\n  ->  Seq Scan on t  (cost=1..2)\n      Filter: x";
        let (was, is) = difference(before, after).unwrap();
        assert_eq!((&*was, &*is), ("Index Scan using t_a on t", "Seq Scan on t"));
        assert_eq!(difference(before, before), None);
    }
}

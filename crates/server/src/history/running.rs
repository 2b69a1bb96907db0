//! Statements that still run, second by second.
//!
//! ```text
//!   second      1         2         3         4
//!   statement      [------------------------]  ends: counted as a whole
//!   given               seen  +1 s  +1 s        whole − what it was given
//! ```
//!
//! When a statement is first seen its task's readings are noted; from then on each second gets what the task
//! used in it. When it is over its counts come as a whole ([`crate::counters`]), and what was given is taken off
//! them. A statement that fails is not counted, so what it was given stays.

use std::collections::HashMap;
use std::sync::Arc;

use base::usage::{USES, Usage};
use sched::TaskRef;

use super::slice::{Slice, StatementSum};
use crate::registry::SessionActivity;
use crate::server::Server;

/// Seconds after which what has not been taken off stays given.
const PATIENCE: u8 = 3;

/// A statement that was seen to run.
struct Seen {
    id: u64,
    application: Arc<str>,
    /// When it began: another execution has another.
    began: i64,
    /// The readings of its task at the last look.
    at_ns: u64,
    waited_ns: u64,
    used: Usage,
    given: Given,
}

/// The part of a statement that seconds have been given.
#[derive(Clone, Copy)]
struct Given {
    ns: u64,
    waited_ns: u64,
    used: Usage,
}

/// No use of anything.
const NOTHING: Usage = Usage([0; USES]);
const NONE: Given = Given { ns: 0, waited_ns: 0, used: NOTHING };

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Running {
    /// By session.
    seen: HashMap<i32, Seen>,
    /// Of statements that have ended: by identifier and application, with the looks that it has been here.
    over: Vec<(u64, Arc<str>, u8, Given)>,
}

/// How long a task has waited so far, the wait under way included.
fn waited_ns(task: &TaskRef) -> u64 {
    let under_way = task.wait().map_or(0, |(_, since)| since.elapsed().as_nanos() as u64);
    task.wait_totals().1 + under_way
}

impl Running {
    /// Gives the slice what running statements did since the last look, and takes off what those that have
    /// ended were given. `text`: of a statement that has run before.
    pub fn look(
        &mut self,
        server: &Server,
        slice: &mut Slice,
        text: impl Fn(u64) -> Option<Arc<str>>,
    ) {
        let mut before = std::mem::take(&mut self.seen);
        let now_ns = sched::clock::now_ns();
        for entry in server.sessions.all() {
            let ((state, began, user, database), _) =
                entry.look(|a| (a.state, a.query_start, a.user_oid, a.database.1));
            let id = entry.query_id();
            if state != SessionActivity::Active || id == 0 {
                continue;
            }
            let (application, _) = entry.look(|a| Arc::<str>::from(&*a.application));
            let fresh = Seen {
                id,
                application: application.clone(),
                began,
                at_ns: now_ns,
                waited_ns: waited_ns(&entry.task),
                used: entry.task.usage(),
                given: NONE,
            };
            let Some(then) = before.remove(&entry.pid) else {
                self.seen.insert(entry.pid, fresh);
                continue;
            };
            if (then.id, then.began) != (id, began) {
                self.over.push((then.id, then.application, 0, then.given));
                self.seen.insert(entry.pid, fresh);
                continue;
            }
            let more = Given {
                ns: now_ns.saturating_sub(then.at_ns),
                waited_ns: fresh.waited_ns.saturating_sub(then.waited_ns),
                used: fresh.used.since(&then.used),
            };
            let text = text(id).unwrap_or_else(|| entry.activity().query.text().into());
            give(slice, (id, user, database), (text, application), &more);
            let mut given = then.given;
            given.ns += more.ns;
            given.waited_ns += more.waited_ns;
            given.used.add(&more.used);
            self.seen.insert(entry.pid, Seen { given, ..fresh });
        }
        let over = |then: Seen| (then.id, then.application, 0, then.given);
        self.over.extend(before.into_values().map(over));
        self.take_off(slice);
    }

    fn take_off(&mut self, slice: &mut Slice) {
        self.over.retain_mut(|(id, application, looks, given)| {
            *looks += 1;
            let is_it =
                |s: &&mut StatementSum| s.id == *id && s.application == *application && s.calls > 0;
            let counted = slice.statements.iter_mut().find(is_it);
            if let Some(sum) = counted {
                sum.ns = sum.ns.saturating_sub(given.ns);
                sum.waited_ns = sum.waited_ns.saturating_sub(given.waited_ns).min(sum.ns);
                sum.used = sum.used.since(&given.used);
                return false;
            }
            given.ns > 0 && *looks < PATIENCE
        });
    }
}

fn give(
    slice: &mut Slice,
    (id, user, database): (u64, u32, u32),
    (text, application): (Arc<str>, Arc<str>),
    more: &Given,
) {
    let is_it = |s: &StatementSum| {
        (s.id, s.user, s.database) == (id, user, database) && s.application == application
    };
    let at = match slice.statements.iter().position(is_it) {
        Some(at) => at,
        None => {
            let mut new = StatementSum::new(id, user, database, text);
            new.application = application;
            slice.statements.push(new);
            slice.statements.len() - 1
        }
    };
    let sum = &mut slice.statements[at];
    sum.ns += more.ns;
    sum.waited_ns += more.waited_ns.min(more.ns);
    sum.used.add(&more.used);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(calls: u64, ns: u64) -> Slice {
        let mut slice = Slice::new(0, 1);
        let mut sum = StatementSum::new(7, 10, 5, "x".into());
        (sum.calls, sum.ns) = (calls, ns);
        slice.statements.push(sum);
        slice
    }

    #[test]
    fn what_was_given_is_taken_off_once() {
        let given = Given { ns: 80, ..NONE };
        let mut running =
            Running { over: vec![(7, Arc::default(), 0, given)], ..Running::default() };
        let mut slice = counted(1, 100);
        running.take_off(&mut slice);
        assert_eq!((slice.statements[0].ns, running.over.len()), (20, 0));
        let mut slice = counted(1, 100);
        running.take_off(&mut slice);
        assert_eq!(slice.statements[0].ns, 100);
    }

    #[test]
    fn a_statement_that_failed_keeps_what_it_was_given() {
        let given = Given { ns: 80, ..NONE };
        let mut running =
            Running { over: vec![(7, Arc::default(), 0, given)], ..Running::default() };
        // Other executions go on; none ends.
        for _ in 0..PATIENCE {
            let mut slice = counted(0, 100);
            running.take_off(&mut slice);
            assert_eq!(slice.statements[0].ns, 100);
        }
        assert!(running.over.is_empty());
    }
}

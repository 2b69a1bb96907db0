//! Checks that wait: those of constraints that are DEFERRED now, until the transaction commits or SET
//! CONSTRAINTS makes them IMMEDIATE.
//!
//! ```text
//!   statement ──► Writer::finish ──┬─ immediate: checked there and then
//!                                  └─ deferred:  Deferred::push ──► COMMIT, SET CONSTRAINTS: fire
//! ```
//!
//! A session has one [`Deferred`]; it is empty between transactions. Its parts are persistent, so a
//! savepoint's state to come back to is a pointer: a rollback to it takes back checks that were queued
//! since, modes that were set since, and that checks were done which then had to wait.
//!
//! What waits is a key or the places of a row's versions, never the row.

use std::sync::Arc;

use base::{Result, TupleId};
use catalog::{Constraint, Trigger};
use imbl::{OrdMap, Vector};
use types::Datum;

use super::event_list::EventList;
use crate::context::ExecContext;
use crate::event::Event;
use crate::ops::grouping::RowSet;
use crate::security;

/// See the module's documentation.
#[derive(Clone, Default)]
pub struct Deferred {
    /// SET CONSTRAINTS ALL.
    all: Option<bool>,
    /// SET CONSTRAINTS by name, later than the one of ALL: by the constraint's oid.
    named: OrdMap<u32, bool>,
    waiting: Vector<Arc<Waiting>>,
    /// How many triggers are running, one inside the other.
    pub(crate) trigger_depth: u32,
    /// Tables with triggers whose rows statements are changing, one inside the other.
    pub(crate) changing: Vec<u32>,
    /// Events whose triggers are running, one inside the other.
    pub(crate) events: Vec<Event>,
    /// Tags of the statements that define something now, one inside the other.
    pub running: Vec<String>,
    /// The thread's role in the running statement.
    pub(crate) parallel: crate::parallel::Role,
}

/// One statement's checks for one constraint.
pub struct Waiting {
    /// The table that the statement changed.
    pub table: u32,
    /// The constraint's oid.
    pub constraint: u32,
    /// In whose name the statement ran: so does the check.
    pub role: u32,
    /// What is to be checked.
    pub what: Check,
}

impl Waiting {
    /// Puts checks off that the running statement asks for.
    ///
    /// # Errors
    /// `42501` within a security-restricted operation: they would run when it is over.
    pub fn put_off(
        cx: &mut ExecContext<'_>,
        table: u32,
        constraint: u32,
        what: Check,
    ) -> Result<()> {
        security::expect_unrestricted(cx, "fire deferred trigger")?;
        let role = cx.role;
        cx.hooks.deferred().push(Waiting { table, constraint, role, what });
        Ok(())
    }
}

/// See [`Waiting`].
pub enum Check {
    /// New keys of a foreign key: each must be there in the other table.
    Referring(RowSet),
    /// Keys that are gone from the table that a foreign key refers to: nobody may refer to them.
    Referred(Vec<GoneKey>),
    /// Rows of a unique constraint, by the roots of their chains, that had a rival when they came.
    Unique(Vec<TupleId>),
    /// Rows for which a constraint trigger fires, by its oid.
    Trigger(u32, EventList),
}

impl Deferred {
    /// That of a helper of a parallel statement, to which nothing is put off.
    pub(crate) fn of_helper() -> Deferred {
        Deferred { parallel: crate::parallel::Role::Helper, ..Deferred::default() }
    }

    /// Whether a constraint's checks wait for the transaction's end.
    pub fn defers(&self, constraint: &Constraint) -> bool {
        constraint.deferrable && self.mode(constraint.oid).unwrap_or(constraint.deferred)
    }

    /// Whether a constraint trigger waits for the transaction's end.
    pub fn defers_trigger(&self, trigger: &Trigger) -> bool {
        trigger.deferrable && self.mode(trigger.constraint).unwrap_or(trigger.deferred)
    }

    fn mode(&self, constraint: u32) -> Option<bool> {
        self.named.get(&constraint).copied().or(self.all)
    }

    /// SET CONSTRAINTS ALL.
    pub fn set_all(&mut self, deferred: bool) {
        self.named = OrdMap::new();
        self.all = Some(deferred);
    }

    /// SET CONSTRAINTS by name.
    pub fn set(&mut self, constraint: u32, deferred: bool) {
        self.named.insert(constraint, deferred);
    }

    /// Adds checks.
    pub fn push(&mut self, checks: Waiting) {
        self.waiting.push_back(Arc::new(checks));
    }

    /// Whether there is nothing to check.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether checks wait for what was done to a table.
    pub fn concerns(&self, table: u32) -> bool {
        self.waiting.iter().any(|w| w.table == table)
    }

    /// Whether a statement is changing a table's rows, and triggers may see that.
    pub fn is_changing(&self, table: u32) -> bool {
        self.changing.contains(&table)
    }

    /// The transaction has ended.
    pub fn clear(&mut self) {
        if self.all.is_some()
            || !self.named.is_empty()
            || !self.is_idle()
            || !self.changing.is_empty()
            || self.trigger_depth > 0
            || self.parallel != crate::parallel::Role::Alone
        {
            *self = Deferred::default();
        }
    }

    /// Takes out what is to be checked now: all of it at a commit, else what need not wait any more.
    pub(super) fn take(
        &mut self,
        commit: bool,
        deferred: impl Fn(&Deferred, u32) -> bool,
    ) -> Vec<Arc<Waiting>> {
        let (stay, go): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|w| !commit && deferred(self, w.constraint));
        self.waiting = stay.into_iter().collect();
        go
    }
}

/// A key that was referred to and is gone, and what came in its place if the row is still there.
pub type GoneKey = (Vec<Datum>, Option<Vec<Datum>>);

#[cfg(test)]
mod tests {
    use catalog::ConstraintKind;

    use super::*;

    fn constraint(oid: u32, deferrable: bool, deferred: bool) -> Constraint {
        let mut c = Constraint::new(oid, String::new(), ConstraintKind::Unique { index: 1 });
        (c.deferrable, c.deferred) = (deferrable, deferred);
        c
    }

    #[test]
    fn the_last_set_constraints_decides_and_only_for_deferrable_ones() {
        let mut deferred = Deferred::default();
        let (fixed, now, later) =
            (constraint(1, false, false), constraint(2, true, false), constraint(3, true, true));
        assert_eq!([&fixed, &now, &later].map(|c| deferred.defers(c)), [false, false, true]);
        deferred.set(2, true);
        assert!(deferred.defers(&now));
        deferred.set_all(false);
        assert_eq!([&fixed, &now, &later].map(|c| deferred.defers(c)), [false, false, false]);
        deferred.set_all(true);
        assert_eq!([&fixed, &now, &later].map(|c| deferred.defers(c)), [false, true, true]);
    }

    #[test]
    fn a_copy_keeps_what_was_taken_out_since() {
        let mut deferred = Deferred::default();
        let what = Check::Unique(vec![]);
        deferred.push(Waiting { table: 7, constraint: 3, role: 10, what });
        let savepoint = deferred.clone();
        assert_eq!(deferred.take(false, |_, _| true).len(), 0);
        assert_eq!(deferred.take(true, |_, _| true).len(), 1);
        assert!(deferred.is_idle() && savepoint.concerns(7) && !savepoint.concerns(8));
    }
}

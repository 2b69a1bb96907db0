//! Counts that a session keeps while it works and passes on when it begins to wait for its client: rows
//! and pages by table ([`crate::counters`]), transactions, times; and what each statement took
//! ([`crate::statements`]). Between the statements of a transaction that goes well it does so
//! once a second at most.
//!
//! Which rows of a transaction's changes live is known when it ends, or when a savepoint is rolled
//! back to; until then they are pending.

use std::sync::Arc;

use base::usage::Usage;
use exec::tally::Tally;
use sched::Task;

use crate::counters::{Changes, Counters, Report};
use crate::statements::{Sample, StatementKey, Work};

/// Entries that are kept room for between statements.
const KEPT: usize = 8;
/// For so long a transaction may keep what its statements count to itself, microseconds.
const PATIENCE_US: i64 = 1_000_000;

/// The changes of a transaction that has not ended, by table.
pub type Pending = Vec<(u32, Changes)>;

/// See the module's documentation.
#[derive(Default)]
pub struct Account {
    /// The running statement counts here.
    pub tally: Tally,
    /// The counts that will be passed on next.
    pub report: Report,
    pending: Pending,
    /// The tally of the transaction's statements so far.
    transaction: Tally,
    /// The task's usage when that was last asked.
    used: Usage,
    /// How long it had waited when its statement began, in nanoseconds.
    waited_ns: u64,
    /// For what its statements are counted, and the number of changes of the session's settings at which that was seen.
    pub work: Arc<Work>,
    /// See [`Account::work`].
    pub work_seen: Option<u64>,
    /// Since when the session does what it does now, and since when its time has not been passed
    /// on (microseconds since 2000).
    since: i64,
    reported: i64,
}

impl Account {
    /// A session begins.
    pub fn begin_session(&mut self, now: i64) {
        (self.since, self.reported) = (now, now);
        self.report.database.sessions += 1;
    }

    /// The server's own work begins, which is no session of the database's counts.
    pub fn begin_work(&mut self, now: i64) {
        (self.since, self.reported) = (now, now);
    }

    /// The client's next statement is there.
    pub fn begin_statement(&mut self, in_transaction: bool, now: i64) {
        if in_transaction {
            self.report.database.idle_in_transaction_time += (now - self.since).max(0) as u64;
        }
        self.since = now;
    }

    /// The session begins to wait for its client.
    pub fn begin_waiting(&mut self, now: i64) {
        self.report.database.active_time += (now - self.since).max(0) as u64;
        self.since = now;
    }

    /// The tally of the transaction's statements before the one that is about to run, which then counts
    /// into the tally.
    pub fn begin_tally(&mut self) -> (&Tally, &mut Tally) {
        if !self.tally.is_empty() {
            self.absorb();
        }
        (&self.transaction, &mut self.tally)
    }

    /// Makes the statement's changes part of the transaction's, and what it did of what is passed on.
    fn absorb(&mut self) {
        for (oid, counts) in self.tally.iter() {
            self.transaction.of(*oid).add(counts);
        }
        self.absorb_last();
    }

    /// As [`Account::absorb`] at a transaction's end.
    fn absorb_last(&mut self) {
        for (oid, counts) in self.tally.iter().filter(|(_, c)| c.changed()) {
            let changes = Changes {
                inserted: counts.inserted,
                updated: counts.updated,
                deleted: counts.deleted,
            };
            match self.pending.iter_mut().find(|(known, _)| known == oid) {
                Some((_, sum)) => {
                    sum.inserted += changes.inserted;
                    sum.updated += changes.updated;
                    sum.deleted += changes.deleted;
                }
                None => self.pending.push((*oid, changes)),
            }
        }
        if self.report.tally.is_empty() {
            std::mem::swap(&mut self.report.tally, &mut self.tally);
            return;
        }
        for (oid, counts) in self.tally.iter() {
            self.report.tally.of(*oid).add(counts);
        }
        self.tally.clear();
    }

    /// The transaction has ended.
    pub fn end_transaction(&mut self, committed: bool) {
        self.absorb_last();
        self.transaction.clear();
        let counter = &mut self.report.database;
        *(if committed { &mut counter.commits } else { &mut counter.rollbacks }) += 1;
        for (oid, changes) in self.pending.drain(..) {
            self.report.settled.push(changes.settled(oid, committed));
        }
    }

    /// The state that a savepoint comes back to.
    pub fn savepoint(&mut self) -> Pending {
        self.absorb();
        self.pending.clone()
    }

    /// Undoes the counts since a savepoint.
    pub fn rollback_to(&mut self, savepoint: &Pending) {
        self.absorb();
        for (oid, changes) in &self.pending {
            let kept = savepoint.iter().find(|(known, _)| known == oid).map(|(_, c)| *c);
            let undone = changes.since(&kept.unwrap_or_default());
            self.report.settled.push(undone.settled(*oid, false));
        }
        self.pending.clone_from(savepoint);
    }

    /// Passes on what an autonomous transaction has counted; its pages and times are counted by the
    /// session that it worked for. True when the vacuum should be woken.
    pub fn pass_on_transaction(&mut self, counters: &Counters, database: u32) -> bool {
        self.absorb();
        counters.take(database, &mut self.report, |_| ())
    }

    /// A statement of the task begins: its waits are counted from here on.
    #[inline]
    pub fn mark_waits(&mut self, task: &Task) {
        self.waited_ns = task.wait_totals().1;
    }

    /// How long the task has waited since [`Account::mark_waits`], in nanoseconds.
    #[inline]
    pub fn waited_ns(&self, task: &Task) -> u64 {
        task.wait_totals().1 - self.waited_ns
    }

    /// Counts a statement of the task, with what it has used since this was last asked. `text`: without
    /// constants.
    #[inline]
    pub fn count_statement(
        &mut self,
        counters: &Counters,
        task: &Task,
        key: StatementKey,
        sample: Sample,
        text: &Arc<str>,
    ) {
        let counted = counters.in_place(&key, |place| {
            let few = task.add_first_usage(&mut self.used, &mut place.used);
            if few {
                place.count(sample);
            }
            few
        });
        if !counted {
            self.count_apart(counters, task, key, sample, text);
        }
    }

    /// As [`Account::count_statement`] for a statement that has no place yet, or used more than usual.
    #[cold]
    #[inline(never)]
    fn count_apart(
        &mut self,
        counters: &Counters,
        task: &Task,
        key: StatementKey,
        sample: Sample,
        text: &Arc<str>,
    ) {
        let mut used = Usage::default();
        task.usage_since(&mut self.used, |what, grown| used.0[what] = grown);
        counters.statement(key, sample, &used, (text, &self.work));
    }

    /// Whether what has been counted should be passed on though the transaction goes on.
    #[inline]
    pub fn is_due(&self, now: i64) -> bool {
        now - self.reported >= PATIENCE_US
    }

    /// Passes on what has been counted in a database; true when the vacuum should be woken.
    pub fn pass_on(&mut self, counters: &Counters, database: u32, task: &Task, now: i64) -> bool {
        self.absorb();
        self.report.database.session_time += (now - self.reported).max(0) as u64;
        self.reported = now;
        let wake = counters.take(database, &mut self.report, |of_database| {
            task.usage_since(&mut self.used, |what, grown| of_database.0[what] += grown);
        });
        self.report.settled.shrink_to(KEPT);
        self.pending.shrink_to(KEPT);
        wake
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_undone_to_a_savepoint_is_dead() {
        let (counters, task) = (Counters::default(), sched::Task::new("test"));
        let mut account = Account::default();
        account.tally.of(7).inserted += 5;
        let savepoint = account.savepoint();
        account.tally.of(7).inserted += 2;
        account.tally.of(7).updated += 1;
        account.rollback_to(&savepoint);
        account.tally.of(7).deleted += 1;
        let (done, _) = account.begin_tally();
        let so_far: Vec<_> = done.iter().map(|(oid, c)| (*oid, c.inserted, c.deleted)).collect();
        assert_eq!(so_far, [(7, 7, 1)], "what was undone was done all the same");
        account.end_transaction(true);
        assert!(account.begin_tally().0.is_empty());
        account.pass_on(&counters, 5, &task, 10);
        let all = counters.relations();
        assert_eq!((all[&(5, 7)].counts.inserted, all[&(5, 7)].counts.deleted), (7, 1));
        assert_eq!((all[&(5, 7)].table.live, all[&(5, 7)].table.dead), (4, 4));
        assert_eq!(counters.database(5).0.commits, 1);
    }
}

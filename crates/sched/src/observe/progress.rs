//! Progress of long commands, for `pg_stat_progress_*`.
//!
//! ```text
//!   the command          Progress            the views
//!   begin ──► Reporting ─┬─ kind, who, which relation ─── running()
//!   set, add, phase ────►└─ phase, counts                 (copies)
//!   drop ──► no longer listed
//! ```
//! The task that runs the command writes its counts with plain atomic stores; others read them whenever they
//! like. Counts of one command need not fit together to the last row.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::spin::SpinLock;
use crate::task::with_current;

/// A kind of command that reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// VACUUM, in the background, too.
    Vacuum,
    /// ANALYZE.
    Analyze,
    /// CREATE INDEX, and index builds of other commands.
    CreateIndex,
    /// COPY.
    Copy,
}

/// The things counted; each kind of command uses some of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Count {
    /// Pages there are to go through.
    BlocksTotal,
    /// Pages gone through.
    BlocksDone,
    /// Pages freed of dead rows.
    BlocksVacuumed,
    /// Times that all indexes were gone through.
    IndexPasses,
    /// Dead rows that can be remembered.
    DeadMax,
    /// Dead rows remembered now.
    Dead,
    /// Rows there are to work on.
    RowsTotal,
    /// Rows worked on.
    RowsDone,
    /// Rows left out by a condition.
    RowsExcluded,
    /// Bytes read or written.
    BytesDone,
    /// The index, when others can see it.
    Index,
    /// Sessions that have to be waited for.
    LockersTotal,
    /// Those that were.
    LockersDone,
    /// The one that is.
    Locker,
}

const COUNTS: usize = Count::Locker as usize + 1;

/// A command that runs.
pub struct Progress {
    /// Its kind.
    pub kind: Kind,
    /// Its words: `CREATE INDEX`, `COPY FROM`.
    pub command: &'static str,
    /// The database's oid.
    pub database: u32,
    /// The table's oid; 0: none.
    pub relation: u32,
    /// Number of the session or background thread.
    pub pid: i32,
    phase: SpinLock<&'static str>,
    counts: [AtomicU64; COUNTS],
}

impl Progress {
    /// The command's present phase.
    pub fn phase(&self) -> &'static str {
        *self.phase.lock()
    }

    /// It begins to do something else.
    pub fn set_phase(&self, phase: &'static str) {
        *self.phase.lock() = phase;
    }

    /// A count.
    pub fn get(&self, what: Count) -> u64 {
        self.counts[what as usize].load(Relaxed)
    }

    /// Sets a count.
    pub fn set(&self, what: Count, value: u64) {
        self.counts[what as usize].store(value, Relaxed);
    }

    /// Raises a count; only the command itself does.
    pub fn add(&self, what: Count, amount: u64) {
        self.set(what, self.get(what) + amount);
    }
}

/// The running task's command; listed until this is dropped.
pub struct Reporting(Arc<Progress>);

static RUNNING: SpinLock<Vec<Arc<Progress>>> = SpinLock::new(Vec::new());

impl Reporting {
    /// The running task begins a command, in its first phase; on a relation of a database, by oid.
    pub fn begin(kind: Kind, command: &'static str, of: (u32, u32)) -> Reporting {
        let reporting = Reporting::unlisted(kind, command, of);
        RUNNING.lock().push(reporting.0.clone());
        reporting
    }

    /// The same for a part of another command, which nobody is shown.
    pub fn unlisted(
        kind: Kind,
        command: &'static str,
        (database, relation): (u32, u32),
    ) -> Reporting {
        let progress = Arc::new(Progress {
            kind,
            command,
            database,
            relation,
            pid: with_current(|task| task.pid()),
            phase: SpinLock::new("initializing"),
            counts: [const { AtomicU64::new(0) }; COUNTS],
        });
        Reporting(progress)
    }
}

impl std::ops::Deref for Reporting {
    type Target = Progress;

    fn deref(&self) -> &Progress {
        &self.0
    }
}

impl Drop for Reporting {
    fn drop(&mut self) {
        RUNNING.lock().retain(|other| !Arc::ptr_eq(other, &self.0));
    }
}

/// All commands of a kind that run now.
pub fn running(kind: Kind) -> Vec<Arc<Progress>> {
    RUNNING.lock().iter().filter(|p| p.kind == kind).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_listed_while_it_runs() {
        let seen = |relation| running(Kind::Analyze).into_iter().find(|p| p.relation == relation);
        let (one, other) = (77_001, 77_002);
        let first = Reporting::begin(Kind::Analyze, "ANALYZE", (5, one));
        let _second = Reporting::begin(Kind::Analyze, "ANALYZE", (5, other));
        first.set(Count::BlocksTotal, 5);
        first.add(Count::BlocksDone, 2);
        first.add(Count::BlocksDone, 1);
        first.set_phase("computing statistics");
        let progress = seen(one).expect("it runs");
        assert_eq!(progress.phase(), "computing statistics");
        assert_eq!([Count::BlocksTotal, Count::BlocksDone].map(|c| progress.get(c)), [5, 3]);
        assert!(running(Kind::Copy).iter().all(|p| p.relation != one));
        drop(first);
        assert!(seen(one).is_none() && seen(other).is_some());
    }
}

//! Serializable snapshot isolation: SERIALIZABLE for transactions that never wait for readers.
//!
//! A serializable transaction runs under one snapshot, as REPEATABLE READ. What it reads is noted
//! ([`reads`]), and so are the rw-conflicts that follow: it meets a version that its snapshot does not
//! see ([`Transaction::met`]), or writes what another has read ([`Transaction::writes_row`] and kin).
//! When two conflicts in a row could close a cycle, one transaction fails with `40001` ([`graph`]).
//!
//! * Other isolation levels pay one branch: they have no [`Sxact`].
//! * **Where the check at commit stands**: before the commit record goes into the log
//!   ([`Transaction::prepare_commit`]). From then on the transaction can't fail any more, and counts
//!   as `prepared` until its commit is published. See decision 0006.
//! * Committed transactions stay as long as an active one is concurrent with them; beyond a number
//!   the oldest are kept only in summary.
//! * A READ ONLY transaction whose concurrent writers all ended without a conflict out to a commit
//!   before its snapshot has a **safe snapshot**: it needs no watching, can't fail and fails nobody.
//!   DEFERRABLE waits for one before the first statement.
//! * Locks here are short, and taken under page latches: nothing is waited for while holding them.
//!   Order: a page's latch, the graph, a shard of the reads, a transaction's own list.
//!
//! Source: Cahill, Röhm, Fekete, *Serializable Isolation for Snapshot Databases* (2008); Ports,
//! Grittner, *Serializable Snapshot Isolation in PostgreSQL* (2012). Granularity follows PostgreSQL,
//! so that the same transactions fail.

mod graph;
mod reads;
#[cfg(test)]
mod tests;
mod transaction;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use base::{Error, RelId, WaitEvent, Xid, err};
use graph::{Graph, Reason, Work};
use reads::{Reads, Targets};
use sched::Mutex;

pub use reads::ReadTarget;

/// Committed transactions that are kept one by one.
const RETAINED: usize = 2000;

/// A serializable transaction, as all parts know it.
pub(crate) struct Sxact {
    /// Ascending in order of begin.
    id: u64,
    /// The session's process id; [`crate::PREPARED_PID`].
    pid: AtomicI32,
    /// It must fail. Set under the graph's mutex.
    doomed: AtomicBool,
    /// Its snapshot turned out to be safe.
    safe: AtomicBool,
    wrote: AtomicBool,
    xids: Mutex<Vec<Xid>>,
    targets: Mutex<Targets>,
}

impl Sxact {
    fn new(id: u64, pid: i32) -> Sxact {
        let event = WaitEvent::LWLockPredicateLockManager;
        Sxact {
            id,
            pid: AtomicI32::new(pid),
            doomed: AtomicBool::new(false),
            safe: AtomicBool::new(false),
            wrote: AtomicBool::new(false),
            xids: Mutex::new(event, Vec::new()),
            targets: Mutex::new(event, Targets::default()),
        }
    }

    fn pid(&self) -> i32 {
        self.pid.load(Ordering::Relaxed)
    }

    fn is_doomed(&self) -> bool {
        self.doomed.load(Ordering::Acquire)
    }

    fn doom(&self) {
        self.doomed.store(true, Ordering::Release);
    }

    fn make_safe(&self) {
        self.safe.store(true, Ordering::Release);
    }

    fn is_safe(&self) -> bool {
        self.safe.load(Ordering::Acquire)
    }

    fn wrote(&self) -> bool {
        self.wrote.load(Ordering::Acquire)
    }

    fn xids(&self) -> Vec<Xid> {
        self.xids.lock().clone()
    }
}

/// One line of `pg_locks` for what a serializable transaction has read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadRow {
    /// The thing that was read.
    pub target: ReadTarget,
    /// By which session.
    pub pid: i32,
}

/// All serializable transactions of the server.
pub struct Serial {
    graph: Mutex<Graph>,
    reads: Reads,
}

impl Serial {
    pub(crate) fn new() -> Serial {
        let graph = Mutex::new(WaitEvent::LWLockSerializableXactHash, Graph::new(RETAINED));
        Serial { graph, reads: Reads::new() }
    }

    /// Does the work that the graph left to do.
    fn finish(&self, work: Work) {
        for xact in &work.release {
            self.reads.release(xact);
        }
        for (xact, committed) in &work.summarise {
            self.reads.summarise(xact, *committed);
        }
        self.reads.forget_old(work.forget_old);
        work.wake.iter().for_each(|task| task.unpark());
    }

    fn remove(&self, xact: &Arc<Sxact>) {
        let work = self.graph.lock().remove(xact.id);
        self.finish(work);
    }

    /// An index page's upper keys move to a new page. The caller holds the latches of both.
    #[inline]
    pub fn page_split(&self, rel: RelId, page: u32, new: u32) {
        if !self.reads.is_empty() {
            self.reads.copy_page(ReadTarget::page(rel, page), ReadTarget::page(rel, new));
        }
    }

    /// Reads in `from` count from now on as reads of all of `to`: a table's rows have moved to other
    /// files, or an index (whose table `to` is) goes away.
    pub fn transfer(&self, from: RelId, to: RelId) {
        if !self.reads.is_empty() {
            self.reads.transfer(from, to);
        }
    }

    /// The reads of active and retained transactions, for `pg_locks`.
    pub fn rows(&self) -> Vec<ReadRow> {
        if self.reads.is_empty() {
            return Vec::new();
        }
        let xacts = self.graph.lock().all();
        let rows = |xact: &Arc<Sxact>| {
            let pid = xact.pid();
            self.reads.list(xact).into_iter().map(move |target| ReadRow { target, pid })
        };
        xacts.iter().flat_map(rows).collect()
    }

    /// The sessions for which a session's DEFERRABLE transaction waits.
    pub fn safe_snapshot_blocking_pids(&self, pid: i32) -> Vec<i32> {
        self.graph.lock().safe_snapshot_blockers(pid)
    }
}

fn failure(reason: Reason) -> Error {
    let pivot = "Canceled on identification as a pivot";
    let code = match reason {
        Reason::PivotDuringWrite => format!("{pivot}, during write."),
        Reason::OutToPivot(xid) => format!("Canceled on conflict out to pivot {xid}, during read."),
        Reason::OutToOldPivot(Some(xid)) => format!("Canceled on conflict out to old pivot {xid}."),
        Reason::OutToOldPivot(None) => "Canceled on conflict out to old pivot.".to_owned(),
        Reason::PivotOutToOld(xid) => {
            format!("{pivot}, with conflict out to old committed transaction {xid}.")
        }
        Reason::DoomedReading => format!("{pivot}, during conflict out checking."),
        Reason::DoomedWriting => format!("{pivot}, during conflict in checking."),
        Reason::DoomedCommitting => format!("{pivot}, during commit attempt."),
        Reason::InFromPrepared => {
            "Canceled on commit attempt with conflict in from prepared pivot.".to_owned()
        }
    };
    err!(
        T_R_SERIALIZATION_FAILURE,
        "could not serialize access due to read/write dependencies among transactions"
    )
    .detail(format!("Reason code: {code}"))
    .hint("The transaction might succeed if retried.")
}

/// Whether conflicts over a relation can be: not over the catalog's own, nor over one that only its
/// session reads.
fn is_watched(rel: RelId) -> bool {
    rel.0 >= base::Oid::FIRST_USER.0 && !rel.is_temporary()
}

//! The graph of rw-conflicts between serializable transactions, and the rules by which one of them
//! is made to fail. No synchronisation in here: the whole graph lies under one mutex.
//!
//! ```text
//!   T1 ──rw──▶ T2 ──rw──▶ T3         T1 may be T3. T2 is the pivot.
//! ```
//!
//! `A ──rw──▶ B`: A read what B, concurrent with it, replaced; so A comes before B in any serial
//! order. Every cycle of dependencies has two such edges in a row, and the T3 of one such pair is the
//! first of the whole cycle to commit. So it suffices to fail somebody when T3 is about to be, or
//! was, the first of the three to commit. Two refinements avoid needless failures: if T1 committed
//! before T3, there is no cycle; if T1 is read-only, there is one only when T3 had committed before
//! T1 took its snapshot.
//!
//! # Before and after
//!
//! A counter orders events: `prepared` is a transaction's number when it passed its check at commit
//! (its record is not in the log yet), `committed` when its commit had been published,
//! `snapshot` the counter's value when its snapshot was taken. The order in the log, which is the
//! order of visibility, lies somewhere between the first two: what is `prepared` and not yet
//! `committed` counts as committed where that is the cautious view and as running where that is. See
//! decision 0006.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use base::Xid;
use sched::TaskRef;

use super::Sxact;
use crate::lock::FastMap;

/// Why a transaction fails, as DETAIL says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It is doomed, or turns out to be a pivot, when it writes.
    PivotDuringWrite,
    /// It reads what a pivot wrote that has committed.
    OutToPivot(u64),
    /// Likewise; the pivot is only known in summary.
    OutToOldPivot(Option<u64>),
    /// It is a pivot with a conflict out to a transaction known only in summary.
    PivotOutToOld(u64),
    /// It is doomed: found while reading.
    DoomedReading,
    /// It is doomed: found while writing.
    DoomedWriting,
    /// It is doomed: found at commit.
    DoomedCommitting,
    /// It would commit as T3 of a pivot that can't be failed any more.
    InFromPrepared,
}

/// A number larger than any.
const NEVER: u64 = u64::MAX;

/// One serializable transaction.
struct Node {
    xact: Arc<Sxact>,
    /// Commits numbered up to here came before its snapshot.
    snapshot: u64,
    /// It passed its check at commit; 0: not yet.
    prepared: u64,
    /// It is committed; 0: not yet.
    committed: u64,
    /// Declared READ ONLY.
    declared_read_only: bool,
    /// Declared READ ONLY, or committed without having written.
    read_only: bool,
    /// It committed with a conflict out to one that had committed earlier: the first such commit.
    earliest_out: u64,
    /// It has conflicts in from, out to transactions that are known only in summary.
    summary_in: bool,
    summary_out: bool,
    ins: Vec<u64>,
    outs: Vec<u64>,
    /// Of a read-only one: the concurrent writers that can still make its snapshot unsafe. Of
    /// others: the read-only ones that list it.
    unsafe_with: Vec<u64>,
    /// Its snapshot turned out to be unsafe.
    spoilt: bool,
    /// DEFERRABLE, waiting to know.
    waiter: Option<TaskRef>,
}

/// The transaction that wrote under an id.
#[derive(Clone, Copy)]
enum Writer {
    Known(u64),
    /// Known in summary: its first conflict out to an earlier commit.
    Old(u64),
}

/// The work that the graph's owner has to do once it has left the mutex.
#[derive(Default)]
pub(super) struct Work {
    /// Transactions whose read locks are of no use any more.
    pub(super) release: Vec<Arc<Sxact>>,
    /// A transaction whose read locks are to be kept in summary, and when it committed.
    pub(super) summarise: Vec<(Arc<Sxact>, u64)>,
    /// Read locks kept in summary for commits up to here are of no use any more.
    pub(super) forget_old: u64,
    /// Waiters for a safe snapshot that know now.
    pub(super) wake: Vec<TaskRef>,
}

/// See the module's head.
#[derive(Default)]
pub(super) struct Graph {
    sequence: u64,
    last_id: u64,
    nodes: FastMap<u64, Node>,
    writers: FastMap<u64, Writer>,
    /// Not finished; ascending in age, so the first has the oldest snapshot.
    active: BTreeSet<u64>,
    /// Not finished and not declared read-only.
    writable: usize,
    /// Committed, in that order; some active one is concurrent with each.
    finished: VecDeque<u64>,
    /// Read locks of those that had committed by then have been released.
    released: u64,
    /// How many of those are kept one by one.
    pub(super) retain: usize,
    /// Writers known in summary, by commit.
    old: VecDeque<(u64, Vec<Xid>)>,
}

/// The kind of a new transaction.
pub(super) enum Begun {
    /// It needs no watching: read-only with no writer running.
    Safe,
    Watched(Arc<Sxact>),
}

impl Graph {
    /// Empty; that many committed transactions are kept one by one.
    pub(super) fn new(retain: usize) -> Graph {
        Graph { retain, ..Graph::default() }
    }

    /// Registers a transaction; its snapshot is being taken under the same mutex.
    pub(super) fn begin(&mut self, read_only: bool, pid: i32, waiter: Option<TaskRef>) -> Begun {
        if read_only && self.writable == 0 {
            return Begun::Safe;
        }
        self.last_id += 1;
        let id = self.last_id;
        let xact = Arc::new(Sxact::new(id, pid));
        let mut unsafe_with = Vec::new();
        if read_only {
            let writes = |other: &&u64| {
                let node = &self.nodes[other];
                !node.declared_read_only && !node.xact.is_doomed()
            };
            unsafe_with.extend(self.active.iter().filter(writes));
            if unsafe_with.is_empty() {
                return Begun::Safe;
            }
            for other in &unsafe_with {
                self.node(*other).unsafe_with.push(id);
            }
        } else {
            self.writable += 1;
        }
        let node = Node {
            xact: xact.clone(),
            snapshot: self.sequence,
            prepared: 0,
            committed: 0,
            declared_read_only: read_only,
            read_only,
            earliest_out: NEVER,
            summary_in: false,
            summary_out: false,
            ins: Vec::new(),
            outs: Vec::new(),
            unsafe_with,
            spoilt: false,
            waiter,
        };
        self.nodes.insert(id, node);
        self.active.insert(id);
        Begun::Watched(xact)
    }

    /// Registers a transaction that was prepared before the server started: it has passed its check, and had any
    /// conflicts that there were.
    pub(super) fn revive(&mut self, pid: i32) -> Option<Arc<Sxact>> {
        let Begun::Watched(xact) = self.begin(false, pid, None) else { return None };
        self.sequence += 1;
        let now = self.sequence;
        let node = self.node(xact.id);
        (node.prepared, node.summary_in, node.summary_out) = (now, true, true);
        Some(xact)
    }

    /// A node that is known to be there: edges and lists name only such.
    fn node(&mut self, id: u64) -> &mut Node {
        self.nodes.get_mut(&id).expect("edges and lists name nodes of the graph")
    }

    /// Notes that the transaction writes under this id.
    pub(super) fn wrote_as(&mut self, id: u64, xid: Xid) {
        self.writers.insert(xid.0, Writer::Known(id));
    }

    /// `me` met a version made or ended by `xid` that it does not see.
    pub(super) fn conflict_out(&mut self, me: u64, xid: Xid) -> Result<(), Reason> {
        match self.writers.get(&xid.0) {
            None => Ok(()),
            Some(&Writer::Old(earliest_out)) => self.out_to_old(me, xid, earliest_out),
            Some(&Writer::Known(writer)) => self.out_to(me, writer, xid),
        }
    }

    fn out_to(&mut self, me: u64, writer: u64, xid: Xid) -> Result<(), Reason> {
        let (Some(mine), Some(other)) = (self.nodes.get(&me), self.nodes.get(&writer)) else {
            return Ok(());
        };
        if me == writer || other.xact.is_doomed() || mine.outs.contains(&writer) {
            return Ok(());
        }
        if other.summary_out {
            if other.prepared != 0 {
                return Err(Reason::OutToOldPivot(None));
            }
            other.xact.doom();
            return Ok(());
        }
        // A reader that can run before the writer and all that the writer comes before.
        if mine.read_only && other.committed != 0 && mine.snapshot < other.earliest_out {
            return Ok(());
        }
        self.flag(me, writer, me, xid)
    }

    fn out_to_old(&mut self, me: u64, xid: Xid, earliest_out: u64) -> Result<(), Reason> {
        let Some(mine) = self.nodes.get_mut(&me) else { return Ok(()) };
        if earliest_out != NEVER && (!mine.read_only || earliest_out <= mine.snapshot) {
            return Err(Reason::OutToOldPivot(Some(xid.0)));
        }
        if mine.summary_in || !mine.ins.is_empty() {
            return Err(Reason::PivotOutToOld(xid.0));
        }
        mine.summary_out = true;
        Ok(())
    }

    /// `me` writes what `reader` has read.
    pub(super) fn conflict_in(&mut self, me: u64, reader: u64) -> Result<(), Reason> {
        let (Some(mine), Some(other)) = (self.nodes.get(&me), self.nodes.get(&reader)) else {
            return Ok(());
        };
        let concurrent = other.committed == 0 || other.committed > mine.snapshot;
        if me == reader || other.xact.is_doomed() || !concurrent || mine.ins.contains(&reader) {
            return Ok(());
        }
        self.flag(reader, me, me, Xid::INVALID)
    }

    /// `me` writes what a transaction known only in summary has read, that committed at the latest
    /// at `committed`.
    pub(super) fn conflict_in_old(&mut self, me: u64, committed: u64) -> Result<(), Reason> {
        let Some(mine) = self.nodes.get_mut(&me) else { return Ok(()) };
        if committed <= mine.snapshot {
            return Ok(());
        }
        mine.summary_in = true;
        let pivot = self.pivot_out(me, |third| third <= committed);
        if pivot { Err(Reason::PivotDuringWrite) } else { Ok(()) }
    }

    /// Whether `writer` has a conflict out to one that passed its check at a time which `earlier`
    /// accepts, and before `writer` committed.
    fn pivot_out(&self, writer: u64, earlier: impl Fn(u64) -> bool) -> bool {
        let node = &self.nodes[&writer];
        node.summary_out
            || node.outs.iter().any(|third| {
                let prepared = self.nodes[third].prepared;
                prepared != 0
                    && earlier(prepared)
                    && (node.committed == 0 || prepared <= node.committed)
            })
    }

    /// Adds the edge, and fails somebody if that makes a dangerous structure.
    fn flag(&mut self, reader: u64, writer: u64, me: u64, xid: Xid) -> Result<(), Reason> {
        if self.is_dangerous(reader, writer) {
            let pivot = &self.nodes[&writer];
            if me == writer {
                return Err(Reason::PivotDuringWrite);
            }
            if pivot.prepared != 0 {
                return Err(Reason::OutToPivot(xid.0));
            }
            pivot.xact.doom();
        }
        self.node(reader).outs.push(writer);
        self.node(writer).ins.push(reader);
        Ok(())
    }

    /// Whether the edge completes a dangerous structure in which somebody must fail now: with the
    /// writer as pivot, or with the reader as pivot and the writer as T3.
    fn is_dangerous(&self, reader: u64, writer: u64) -> bool {
        let (r, w) = (&self.nodes[&reader], &self.nodes[&writer]);
        if w.committed != 0 && w.earliest_out != NEVER {
            return true;
        }
        let before_reader = |third: u64| {
            (r.committed == 0 || third <= r.committed) && (!r.read_only || third <= r.snapshot)
        };
        if self.pivot_out(writer, before_reader) {
            return true;
        }
        if w.prepared == 0 || r.read_only {
            return false;
        }
        r.summary_in
            || r.ins.iter().map(|first| &self.nodes[first]).any(|first| {
                !first.xact.is_doomed()
                    && (first.committed == 0 || first.committed >= w.prepared)
                    && (!first.read_only || first.snapshot >= w.prepared)
            })
    }

    /// The check at commit, before the record goes into the log: nobody may be left who would be the
    /// T1 and the T2 of a structure whose T3 this is, the first to commit.
    pub(super) fn prepare(&mut self, me: u64) -> Result<(), Reason> {
        let Some(mine) = self.nodes.get(&me) else { return Ok(()) };
        if mine.xact.is_doomed() {
            return Err(Reason::DoomedCommitting);
        }
        for second in mine.ins.iter().map(|id| &self.nodes[id]) {
            if second.committed != 0 || second.xact.is_doomed() {
                continue;
            }
            let is_pivot = second.ins.iter().any(|first| {
                let node = &self.nodes[first];
                *first == me || (node.committed == 0 && !node.read_only && !node.xact.is_doomed())
            });
            if is_pivot && second.prepared != 0 {
                return Err(Reason::InFromPrepared);
            }
            if is_pivot {
                second.xact.doom();
            }
        }
        self.sequence += 1;
        let now = self.sequence;
        self.node(me).prepared = now;
        Ok(())
    }

    /// The transaction has committed (and its commit is published).
    pub(super) fn commit(&mut self, me: u64) -> Work {
        let mut work = Work::default();
        if !self.nodes.contains_key(&me) {
            return work;
        }
        self.sequence += 1;
        let now = self.sequence;
        let outs = std::mem::take(&mut self.node(me).outs);
        let committed = |id: &u64| Some(self.nodes[id].prepared).filter(|&at| at != 0);
        let earliest = outs.iter().filter_map(committed).min().unwrap_or(NEVER);
        let node = self.node(me);
        // Which commit it was that is known only in summary nobody knows: the first of all, then.
        let earliest = if node.summary_out { 0 } else { earliest };
        node.outs = outs;
        node.committed = now;
        if !node.read_only {
            node.earliest_out = earliest;
        }
        node.read_only |= !node.xact.wrote();
        let wrote = node.xact.wrote();
        self.tell_read_only(me, wrote.then_some(earliest), &mut work);
        self.leave(me);
        self.finished.push_back(me);
        self.clear(&mut work);
        while self.finished.len() > self.retain {
            self.summarise_oldest(&mut work);
        }
        work
    }

    /// The transaction has rolled back, or needs no watching any more.
    pub(super) fn remove(&mut self, me: u64) -> Work {
        let mut work = Work::default();
        if !self.nodes.contains_key(&me) {
            return work;
        }
        self.tell_read_only(me, None, &mut work);
        self.leave(me);
        work.release.extend(self.take(me));
        self.clear(&mut work);
        work
    }

    fn leave(&mut self, me: u64) {
        self.active.remove(&me);
        if !self.nodes[&me].declared_read_only {
            self.writable -= 1;
        }
    }

    /// Tells the read-only transactions that depended on `me` what became of it: `earliest` is its
    /// first conflict out to an earlier commit, if it committed writes.
    fn tell_read_only(&mut self, me: u64, earliest: Option<u64>, work: &mut Work) {
        let node = self.node(me);
        let declared = node.declared_read_only;
        let others = std::mem::take(&mut node.unsafe_with);
        for other in others {
            let reader = self.node(other);
            reader.unsafe_with.retain(|id| *id != me);
            if declared {
                continue;
            }
            let writers = if earliest.is_some_and(|seq| seq <= reader.snapshot) {
                reader.spoilt = true;
                std::mem::take(&mut reader.unsafe_with)
            } else {
                if reader.unsafe_with.is_empty() && !reader.spoilt {
                    reader.xact.make_safe();
                }
                Vec::new()
            };
            if reader.spoilt || reader.unsafe_with.is_empty() {
                work.wake.extend(reader.waiter.take());
            }
            for writer in writers {
                self.node(writer).unsafe_with.retain(|id| *id != other);
            }
        }
    }

    /// For a read-only transaction: whether its snapshot is known to be safe, or unsafe.
    pub(super) fn verdict(&self, id: u64) -> Option<bool> {
        let node = self.nodes.get(&id)?;
        if node.spoilt {
            return Some(false);
        }
        node.unsafe_with.is_empty().then_some(true)
    }

    /// Forgets committed transactions with which no active one is concurrent. When no writer is
    /// active, read locks of committed ones are of no use either.
    fn clear(&mut self, work: &mut Work) {
        let oldest = self.active.first().map_or(NEVER, |id| self.nodes[id].snapshot);
        while let Some(&id) = self.finished.front()
            && self.nodes[&id].committed <= oldest
        {
            self.finished.pop_front();
            work.release.extend(self.take(id));
        }
        while let Some((committed, _)) = self.old.front()
            && *committed <= oldest
        {
            let (_, xids) = self.old.pop_front().expect("it was just looked at");
            for xid in xids {
                self.writers.remove(&xid.0);
            }
        }
        work.forget_old = if self.writable == 0 { NEVER } else { oldest };
        if self.writable == 0 {
            let nodes = self.finished.iter().rev().map(|id| &self.nodes[id]);
            let new = nodes.take_while(|node| node.committed > self.released);
            work.release.extend(new.map(|node| node.xact.clone()));
            self.released = self.sequence;
        }
    }

    /// Takes a node out, with its edges and its transaction ids.
    fn take(&mut self, id: u64) -> Option<Arc<Sxact>> {
        let node = self.nodes.remove(&id)?;
        for other in &node.outs {
            self.node(*other).ins.retain(|other| *other != id);
        }
        for other in &node.ins {
            let reader = self.node(*other);
            reader.outs.retain(|other| *other != id);
            if reader.committed != 0 && node.prepared != 0 && node.prepared <= reader.committed {
                reader.earliest_out = reader.earliest_out.min(node.prepared);
            }
        }
        for xid in node.xact.xids() {
            self.writers.remove(&xid.0);
        }
        Some(node.xact)
    }

    /// Too many are kept: what is left of the oldest are flags at those that it conflicts with, its
    /// ids, and its read locks under nobody's name.
    fn summarise_oldest(&mut self, work: &mut Work) {
        let Some(id) = self.finished.pop_front() else { return };
        let Some(node) = self.nodes.get(&id) else { return };
        let (earliest_out, committed) = (node.earliest_out, node.committed);
        let (outs, ins) = (node.outs.clone(), node.ins.clone());
        outs.iter().for_each(|other| self.node(*other).summary_in = true);
        for other in ins {
            // Those that committed note the commit itself, in `take`.
            let reader = self.node(other);
            reader.summary_out |= reader.committed == 0;
        }
        let Some(xact) = self.take(id) else { return };
        let xids = xact.xids();
        for xid in &xids {
            self.writers.insert(xid.0, Writer::Old(earliest_out));
        }
        self.old.push_back((committed, xids));
        work.summarise.push((xact, committed));
    }

    /// All transactions known one by one.
    pub(super) fn all(&self) -> Vec<Arc<Sxact>> {
        self.nodes.values().map(|node| node.xact.clone()).collect()
    }

    /// For whom the session's DEFERRABLE transaction waits.
    pub(super) fn safe_snapshot_blockers(&self, pid: i32) -> Vec<i32> {
        let waits = |node: &&Node| node.waiter.is_some() && node.xact.pid() == pid;
        let Some(node) = self.nodes.values().find(waits) else { return Vec::new() };
        node.unsafe_with.iter().map(|id| self.nodes[id].xact.pid().max(0)).collect()
    }

    /// How many transactions and ids are remembered.
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        (self.nodes.len(), self.writers.len())
    }
}

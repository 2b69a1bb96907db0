//! The part of a serializable transaction in the conflicts: beginning, reading, writing, committing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::{RelId, Result, TupleId, WaitEvent, Xid};
use sched::Wake;

use crate::XidStatus;
use crate::prepared::PREPARED_PID;
use crate::serial::graph::{Begun, Reason};
use crate::serial::reads::{ReadTarget, Reader};
use crate::serial::{Serial, Sxact, failure, is_watched};
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;

/// The serializable part of a transaction.
impl Transaction {
    fn serial_manager(&self) -> &Serial {
        &self.manager().serial
    }

    /// Takes the first snapshot of a serializable transaction, registered with the others under one
    /// mutex.
    #[cold]
    pub(crate) fn serializable_snapshot(&self) -> Snapshot {
        let serial = self.serial_manager();
        let (begun, snapshot) = {
            let mut graph = serial.graph.lock();
            (graph.begin(self.read_only(), self.locks().pid(), None), self.register_onwards())
        };
        self.watch(begun);
        snapshot
    }

    fn watch(&self, begun: Begun) {
        if let Begun::Watched(xact) = begun {
            if let Some(xid) = self.top_xid() {
                self.note_xid(&xact, xid);
            }
            let first = self.serial.set(xact).is_ok();
            debug_assert!(first, "a transaction takes its first snapshot once");
        }
    }

    /// For DEFERRABLE READ ONLY: waits for a safe snapshot, unless there is a snapshot already.
    ///
    /// # Errors
    /// Interrupts.
    pub fn await_safe_snapshot(&self) -> Result<()> {
        let serial = self.serial_manager();
        while !self.has_snapshot() {
            let task = sched::current();
            let (begun, snapshot) = {
                let mut graph = serial.graph.lock();
                let begun = graph.begin(true, self.locks().pid(), Some(task));
                (begun, self.register_snapshot())
            };
            let safe = match begun {
                Begun::Safe => true,
                Begun::Watched(xact) => {
                    let verdict = self.await_verdict(&xact);
                    serial.remove(&xact);
                    verdict.inspect_err(|_| self.unregister_snapshot())?
                }
            };
            if safe {
                self.keep_snapshot(&snapshot);
            } else {
                self.unregister_snapshot();
            }
        }
        Ok(())
    }

    /// Waits until all writers that were running have ended, or one made the snapshot unsafe.
    fn await_verdict(&self, xact: &Arc<Sxact>) -> Result<bool> {
        loop {
            if let Some(safe) = self.serial_manager().graph.lock().verdict(xact.id) {
                return Ok(safe);
            }
            if let Wake::Interrupted = sched::park(WaitEvent::IPCSafeSnapshot, None) {
                sched::check_interrupts()?;
            }
        }
    }

    /// The transaction's record while it is watched.
    #[inline]
    fn watched(&self) -> Option<&Arc<Sxact>> {
        self.serial.get()
    }

    /// Whether what it reads must be noted: it is serializable and its snapshot is not known to be
    /// safe.
    #[inline]
    pub fn tracks_reads(&self) -> bool {
        self.watched().is_some_and(|xact| !xact.is_safe() || !self.release_safe(xact))
    }

    #[cold]
    fn release_safe(&self, xact: &Arc<Sxact>) -> bool {
        if !self.serial_released.swap(true, Ordering::AcqRel) {
            self.serial_manager().remove(xact);
        }
        true
    }

    /// Notes that the whole relation is read. Before the first page is.
    #[inline]
    pub fn reads_relation(&self, rel: RelId) {
        self.reads(|| ReadTarget::relation(rel));
    }

    /// Notes that an index page is read. Before it is, or under its latch.
    #[inline]
    pub fn reads_page(&self, rel: RelId, block: u32) {
        self.reads(|| ReadTarget::page(rel, block));
    }

    /// Notes that a row version made by `xmin` is read. Under its page's latch.
    #[inline]
    pub fn reads_row(&self, rel: RelId, tid: TupleId, xmin: Xid) {
        if self.tracks_reads() && !self.is_mine(xmin) {
            self.reads(|| ReadTarget::row(rel, tid));
        }
    }

    #[inline]
    fn reads(&self, target: impl FnOnce() -> ReadTarget) {
        if self.tracks_reads()
            && let Some(xact) = self.watched()
        {
            let target = target();
            if is_watched(target.rel) {
                self.serial_manager().reads.add(xact, target);
            }
        }
    }

    /// Notes that it met a version made or ended by another transaction that its snapshot does not
    /// see.
    ///
    /// # Errors
    /// `40001`.
    pub fn record_rw_conflict(&self, xid: Xid) -> Result<()> {
        let Some(xact) = self.watched().filter(|_| self.tracks_reads()) else { return Ok(()) };
        if self.manager().status(xid) == XidStatus::Aborted {
            return Ok(());
        }
        if xact.is_doomed() {
            return Err(failure(Reason::DoomedReading));
        }
        let mut graph = self.serial_manager().graph.lock();
        graph.conflict_out(xact.id, xid).map_err(failure)
    }

    /// Is about to end this row version. Under its page's exclusive latch, held until it is done.
    ///
    /// # Errors
    /// `40001`.
    #[inline]
    pub fn writes_row(&self, rel: RelId, tid: TupleId) -> Result<()> {
        if self.watched().is_none() {
            return Ok(());
        }
        let row = ReadTarget::row(rel, tid);
        self.writes(&[row, ReadTarget::page(rel, tid.block), ReadTarget::relation(rel)])
    }

    /// Is about to add an entry to this index page. Under its exclusive latch, held until it is done.
    ///
    /// # Errors
    /// `40001`.
    #[inline]
    pub fn writes_page(&self, rel: RelId, block: u32) -> Result<()> {
        if self.watched().is_none() {
            return Ok(());
        }
        self.writes(&[ReadTarget::page(rel, block), ReadTarget::relation(rel)])
    }

    /// Is about to add a row: nobody has read that but who has read the relation. Under the exclusive
    /// latch of the row's page, held until it is done.
    ///
    /// # Errors
    /// `40001`.
    #[inline]
    pub fn adds_row(&self, rel: RelId) -> Result<()> {
        if self.watched().is_none() {
            return Ok(());
        }
        self.writes(&[ReadTarget::relation(rel)])
    }

    /// Is about to throw away or to replace all rows of a relation.
    ///
    /// # Errors
    /// `40001`.
    pub fn replaces_relation(&self, rel: RelId) -> Result<()> {
        let Some(xact) = self.watched() else { return Ok(()) };
        let mut found = Vec::new();
        self.begin_write(xact)?;
        self.serial_manager().reads.readers_of_parts(rel, xact.id, &mut found);
        self.conflicts_in(xact, found)
    }

    fn begin_write(&self, xact: &Sxact) -> Result<()> {
        if xact.is_doomed() {
            return Err(failure(Reason::DoomedWriting));
        }
        xact.wrote.store(true, Ordering::Release);
        Ok(())
    }

    /// Finest target first: see [`reads`].
    fn writes(&self, targets: &[ReadTarget]) -> Result<()> {
        let Some(xact) = self.watched() else { return Ok(()) };
        if !is_watched(targets[0].rel) {
            return Ok(());
        }
        self.begin_write(xact)?;
        let reads = &self.serial_manager().reads;
        let mut found = Vec::new();
        for target in targets {
            reads.readers(*target, xact.id, &mut found);
        }
        self.conflicts_in(xact, found)?;
        // The rollback of a savepoint would undo the write, and leave the read.
        if targets[0].place().1.is_some() && !self.in_savepoint() {
            reads.drop_own(xact, targets[0]);
        }
        Ok(())
    }

    fn conflicts_in(&self, xact: &Sxact, found: Vec<Reader>) -> Result<()> {
        if found.is_empty() {
            return Ok(());
        }
        let mut graph = self.serial_manager().graph.lock();
        for reader in found {
            match reader {
                Reader::Known(reader) => graph.conflict_in(xact.id, reader.id),
                Reader::Old(committed) => graph.conflict_in_old(xact.id, committed),
            }
            .map_err(failure)?;
        }
        Ok(())
    }

    /// A (sub)transaction id was given to it.
    #[inline]
    pub(crate) fn serial_assigned(&self, xid: Xid) {
        if let Some(xact) = self.watched() {
            self.note_xid(xact, xid);
        }
    }

    fn note_xid(&self, xact: &Sxact, xid: Xid) {
        let mut graph = self.serial_manager().graph.lock();
        xact.xids.lock().push(xid);
        graph.wrote_as(xact.id, xid);
    }

    /// The check before the commit record goes into the log.
    ///
    /// # Errors
    /// `40001`.
    #[inline]
    pub(crate) fn prepare_commit(&self) -> Result<()> {
        match self.watched() {
            Some(xact) if !self.serial_released.load(Ordering::Acquire) => {
                self.serial_manager().graph.lock().prepare(xact.id).map_err(failure)
            }
            _ => Ok(()),
        }
    }

    /// The reads of a watched transaction, for the record that it is prepared.
    pub(crate) fn serial_reads(&self) -> Option<Vec<ReadTarget>> {
        let xact = self.watched()?;
        let released = self.serial_released.load(Ordering::Acquire);
        (!released).then(|| self.serial_manager().reads.list(xact))
    }

    /// It is prepared, and no session's any more; whether it is watched.
    pub(crate) fn serial_prepared(&self) -> bool {
        let watched = self.watched().filter(|_| !self.serial_released.load(Ordering::Acquire));
        if let Some(xact) = watched {
            xact.pid.store(PREPARED_PID, Ordering::Relaxed);
        }
        watched.is_some()
    }

    /// It was prepared before the server started, and had read that.
    pub(crate) fn serial_revived(&self, xids: &[Xid], reads: &[ReadTarget]) {
        let serial = self.serial_manager();
        let (xact, snapshot) = {
            let mut graph = serial.graph.lock();
            let Some(xact) = graph.revive(PREPARED_PID) else { return };
            (xact, self.register_onwards())
        };
        xact.wrote.store(true, Ordering::Release);
        xids.iter().for_each(|&xid| self.note_xid(&xact, xid));
        reads.iter().for_each(|&target| serial.reads.add(&xact, target));
        let first = self.serial.set(xact).is_ok();
        debug_assert!(first, "nothing has begun it before");
        self.keep_snapshot(&snapshot);
    }

    /// Its outcome has been published.
    #[inline]
    pub(crate) fn serial_ended(&self, committed: bool) {
        if let Some(xact) = self.watched() {
            self.end_watch(xact, committed);
        }
    }

    #[cold]
    fn end_watch(&self, xact: &Arc<Sxact>, committed: bool) {
        if self.serial_released.swap(true, Ordering::AcqRel) {
            return;
        }
        let serial = self.serial_manager();
        let work = {
            let mut graph = serial.graph.lock();
            if committed { graph.commit(xact.id) } else { graph.remove(xact.id) }
        };
        serial.finish(work);
    }
}

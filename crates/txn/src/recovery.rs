//! Checkpoints and recovery of transactions: this crate's side of [`storage::Participant`].
//!
//! A checkpoint with redo position R makes durable (in `commit_file`) every commit with a CSN up to R;
//! later ones come back by redo of their records. Its state is small:
//!
//! ```text
//! version (1) | first id never handed out (8) | first oid never handed out (4) | files of the commit log (8) |
//! number of prepared transactions (4), each as in its record behind its length (4) | the upper layers' state
//! ```
//! Version 1 has no number of files, version 2 no prepared transactions.
//!
//! * A record that precedes R was reserved after its transaction had been marked `committing`; the
//!   checkpoint waits until those have been published. It then asks the upper layers for their state,
//!   which therefore includes what such commits published.
//! * What had not committed and was not prepared when the log ends has aborted. Ids start again above every id that the
//!   log or the checkpoint knows to have been handed out, so no aborted id is used twice.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use base::{Csn, Error, Lsn, Result, WaitEvent, Xid};
use sched::Mutex;
use storage::Participant;

use crate::commit_file::{self, FILE_CHUNKS};
use crate::commit_log::CHUNK;
use crate::log::{self, Commit};
use crate::manager::{Core, TxnManager};
use crate::prepared::Prepared;

const VERSION: u8 = 3;

/// When part of the log was given up, ids go on as far beyond those that it tells of: more than can have been
/// handed out in it.
const LOST_XIDS: u64 = 1 << 24;
const LOST_OIDS: u32 = 1 << 20;

pub(crate) struct Recovery {
    manager: Weak<TxnManager>,
    upper: Option<Arc<dyn Participant>>,
    next_xid: AtomicU64,
    next_oid: AtomicU32,
    /// The lowest id that redo has marked committed: what lies below is in the files already.
    lowest_redone: AtomicU64,
    written: Mutex<Written>,
}

/// The transactions that the files are known to hold.
#[derive(Clone, Copy, Default)]
struct Written {
    /// Outcomes below this are in the files for good.
    upto: Xid,
    /// When the last checkpoint ran, everything below this had ended, with commits up to `csn`.
    ended: Xid,
    csn: Csn,
}

impl Recovery {
    pub(crate) fn new(manager: &Arc<TxnManager>, upper: Option<Arc<dyn Participant>>) -> Recovery {
        Recovery {
            manager: Arc::downgrade(manager),
            upper,
            next_xid: AtomicU64::new(Xid::FIRST.0),
            next_oid: AtomicU32::new(base::Oid::FIRST_USER.0),
            lowest_redone: AtomicU64::new(u64::MAX),
            written: Mutex::new(WaitEvent::LWLockCommitLog, Written::default()),
        }
    }

    fn manager(&self) -> Result<Arc<TxnManager>> {
        self.manager.upgrade().ok_or_else(|| Error::internal("the transaction manager is gone"))
    }

    fn redo_commit(&self, core: &Core, code: u8, payload: &[u8], lsn: Lsn) -> Result<()> {
        let commit = Commit::decode(code, payload)?;
        if core.standby.follows() {
            return self.follow_commit(core, &commit, lsn);
        }
        for &xid in commit.subs.iter().chain([&commit.top]) {
            core.commits.restore_commit(xid);
            self.next_xid.fetch_max(xid.0 + 1, Ordering::Relaxed);
            self.lowest_redone.fetch_min(xid.0, Ordering::Relaxed);
        }
        core.prepared.lock().all.remove(&commit.top);
        match &self.upper {
            Some(upper) if !commit.upper.is_empty() => upper.redo(log::UPPER, commit.upper, lsn),
            _ => Ok(()),
        }
    }

    /// A commit of the server that is followed.
    fn follow_commit(&self, core: &Core, commit: &Commit<'_>, lsn: Lsn) -> Result<()> {
        let last = commit.subs.iter().fold(commit.top, |last, xid| last.max(*xid));
        self.next_xid.fetch_max(last.0 + 1, Ordering::Relaxed);
        core.prepared.lock().all.remove(&commit.top);
        core.follow_commit(&commit.subs, commit.top, commit.upper == log::PUBLISHES, Csn(lsn.0))
    }

    fn redo_prepared(&self, core: &Core, payload: &[u8]) -> Result<()> {
        let prepared = Prepared::decode(payload)?;
        for xid in &prepared.xids {
            self.next_xid.fetch_max(xid.0 + 1, Ordering::Relaxed);
        }
        core.prepared.lock().all.insert(prepared.top(), Arc::new(prepared));
        Ok(())
    }

    /// The part of a checkpoint's state that lists the prepared transactions.
    fn restore_prepared(&self, core: &Core, state: &mut &[u8]) -> Result<()> {
        for _ in 0..log::take_u32(state)? {
            let length = log::take_u32(state)? as usize;
            let (bytes, rest) = state
                .split_at_checked(length)
                .ok_or_else(|| Error::internal("the state of a checkpoint is cut"))?;
            self.redo_prepared(core, bytes)?;
            *state = rest;
        }
        Ok(())
    }

    /// Adds the list, and sees to it that what is missing there has ended for good.
    fn list_prepared(core: &Core, state: &mut Vec<u8>) -> Result<()> {
        let (all, ended) = {
            let table = core.prepared.lock();
            (table.all.values().cloned().collect::<Vec<_>>(), table.ended)
        };
        if let Some(log) = core.attached_log() {
            log.flush(ended)?;
        }
        state.extend((all.len() as u32).to_le_bytes());
        for prepared in all {
            let bytes = prepared.encode();
            state.extend((bytes.len() as u32).to_le_bytes());
            state.extend(bytes);
        }
        Ok(())
    }

    /// Answers how many files there are.
    fn write_files(&self, manager: &TxnManager, redo: Lsn) -> Result<u64> {
        let core = &manager.core;
        let mut written = self.written.lock();
        if written.csn.0 <= redo.0 {
            written.upto = written.ended;
        }
        // In this order: what `oldest` covers was published before.
        let ended = manager.oldest_running();
        let csn = core.horizon.last_csn();
        let next = core.next_xid();
        for xid in (ended.0..next.0).filter(|xid| !core.commits.is_reduced(xid / CHUNK)) {
            core.state(Xid(xid));
        }
        let file = |xid: Xid| xid.0 / CHUNK / FILE_CHUNKS;
        let bits = |chunk| core.commits.bits(chunk, Csn(redo.0));
        commit_file::write(&manager.dir, file(written.upto)..=file(next), bits)?;
        (written.ended, written.csn) = (ended, csn);
        Ok(file(next) + 1)
    }
}

/// The next transaction id and the next oid, out of the state that a checkpoint has kept of the transactions.
pub fn counters_of(mut state: &[u8]) -> Option<(u64, u32)> {
    let (_, rest) = state.split_first()?;
    state = rest;
    Some((log::take_u64(&mut state).ok()?, log::take_u32(&mut state).ok()?))
}

impl Participant for Recovery {
    fn restore(&self, mut state: &[u8]) -> Result<()> {
        let manager = self.manager()?;
        let mut files = 0;
        if let Some((&version, rest)) = state.split_first() {
            if version == 0 || version > VERSION {
                return Err(Error::internal(format!("transaction state of version {version}")));
            }
            state = rest;
            self.next_xid.store(log::take_u64(&mut state)?, Ordering::Relaxed);
            self.next_oid.store(log::take_u32(&mut state)?, Ordering::Relaxed);
            if version > 1 {
                files = log::take_u64(&mut state)?;
            }
            if version > 2 {
                self.restore_prepared(&manager.core, &mut state)?;
            }
        }
        commit_file::read(&manager.dir, files, |chunk, bits| {
            manager.core.commits.restore_bits(chunk, bits);
        })?;
        self.upper.as_ref().map_or(Ok(()), |upper| upper.restore(state))
    }

    fn redo(&self, code: u8, mut payload: &[u8], lsn: Lsn) -> Result<()> {
        let manager = self.manager()?;
        match code {
            log::COMMIT | log::COMMIT_MORE => self.redo_commit(&manager.core, code, payload, lsn),
            log::XIDS => {
                let limit = log::take_u64(&mut payload)?;
                self.next_xid.fetch_max(limit, Ordering::Relaxed);
                if manager.core.standby.follows() {
                    manager.core.follow_xids(limit);
                }
                Ok(())
            }
            log::OIDS => {
                let limit = log::take_u32(&mut payload)?;
                self.next_oid.fetch_max(limit, Ordering::Relaxed);
                if manager.core.standby.follows() {
                    manager.core.oid_announced.fetch_max(limit, Ordering::SeqCst);
                }
                Ok(())
            }
            log::PREPARED => self.redo_prepared(&manager.core, payload),
            log::TIME | log::PADDING => Ok(()),
            log::ROLLED_BACK => {
                let top = Xid(log::take_u64(&mut payload)?);
                manager.core.prepared.lock().all.remove(&top);
                Ok(())
            }
            log::UPPER.. => {
                self.upper.as_ref().map_or(Ok(()), |upper| upper.redo(code, payload, lsn))
            }
            _ => Err(Error::internal(format!("transaction record with the unknown code {code}"))),
        }
    }

    fn before(&self, code: u8, mut payload: &[u8]) -> Result<()> {
        if code != log::REMOVED {
            return Ok(());
        }
        let ended = Csn(log::take_u64(&mut payload)?);
        self.manager()?.core.follow_removal(ended)
    }

    fn lost(&self) {
        // The files are written from here on, so that they have no gap.
        let known = self.next_xid.fetch_add(LOST_XIDS, Ordering::Relaxed);
        self.lowest_redone.fetch_min(known, Ordering::Relaxed);
        let oid = self.next_oid.load(Ordering::Relaxed);
        self.next_oid.store(oid.saturating_add(LOST_OIDS), Ordering::Relaxed);
        if let Some(upper) = &self.upper {
            upper.lost();
        }
    }

    fn recovered(&self, lsn: Lsn) -> Result<()> {
        let (xid, oid) = (&self.next_xid, &self.next_oid);
        let (xid, oid) = (xid.load(Ordering::Relaxed), oid.load(Ordering::Relaxed));
        let manager = self.manager()?;
        manager.core.start(xid, oid, lsn);
        let prepared = manager.core.prepared.lock().lowest().map_or(xid, |lowest| lowest.0);
        let upto = Xid(self.lowest_redone.load(Ordering::Relaxed).min(xid).min(prepared));
        *self.written.lock() = Written { upto, ended: upto, csn: Csn(0) };
        self.upper.as_ref().map_or(Ok(()), |upper| upper.recovered(lsn))
    }

    fn checkpoint(&self, redo: Lsn) -> Result<Vec<u8>> {
        let manager = self.manager()?;
        if let Some(log) = manager.core.attached_log()
            && !manager.core.standby.follows()
        {
            log.flush(redo)?;
        }
        let (next_xid, next_oid) = manager.core.announced();
        let files = self.write_files(&manager, redo)?;
        let mut state = vec![VERSION];
        state.extend(next_xid.to_le_bytes());
        state.extend(next_oid.to_le_bytes());
        state.extend(files.to_le_bytes());
        Self::list_prepared(&manager.core, &mut state)?;
        if let Some(upper) = &self.upper {
            state.extend(upper.checkpoint(redo)?);
        }
        Ok(state)
    }
}

//! A database as its sessions share it: its version of the catalog, and the gate that they come in by.
//!
//! ```text
//!            what all share: roles, databases, their settings, rights and comments
//!                 │                      │                        │
//!   [SHARED] ─ Snapshot      [postgres] ─ Snapshot      [other] ─ Snapshot
//!   before a session has       schemas, tables, …         schemas, tables, …
//!   said where it goes
//! ```
//!
//! * Each snapshot holds everything that its sessions see, so that a look-up never asks where an object
//!   belongs. Versions are numbers of the server: no two databases ever have the same one, and a plan that
//!   was made for a version is of one database.
//! * Who changes a database as a whole (DROP, RENAME, a copy of it) closes the gate and waits until the
//!   others have left; who comes meanwhile waits. Background threads inside are told to cancel what they do. One transaction closes a gate at a time: it holds a
//!   heavyweight lock on the database, so that deadlocks are found.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base::{Csn, Lsn, Result, WaitEvent};
use sched::{LwLock, SpinLock, TaskRef};
use storage::Storage;

use crate::object::Id;
use crate::snapshot::Snapshot;

/// Stands for what all databases share.
pub const SHARED: Id = 0;

/// See the module's documentation.
pub struct OpenDatabase {
    oid: Id,
    storage: Arc<Storage>,
    current: LwLock<Arc<Snapshot>>,
    /// The current version's number.
    version: AtomicU64,
    /// The CSN of the commit that published it; written with it. 0: before the start.
    published: AtomicU64,
    /// See [`OpenDatabase::newest_index`].
    newest_index: AtomicU64,
    gate: SpinLock<AttachGate>,
}

#[derive(Default)]
struct AttachGate {
    sessions: u32,
    /// Background threads at work inside.
    helpers: Vec<TaskRef>,
    closed: bool,
    /// The database has been dropped.
    gone: bool,
    /// The task that waits for the others to leave.
    closer: Option<TaskRef>,
    /// Tasks that wait to come in.
    waiters: Vec<TaskRef>,
}

/// Why a session does not come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachRefused {
    /// The database has been dropped.
    Gone,
    /// It has as many sessions as it may have.
    Full,
}

/// A place in a database; dropping it leaves.
pub struct Attachment {
    database: Arc<OpenDatabase>,
    /// The background thread that sits here; None: a session.
    helper: Option<TaskRef>,
}

/// A closed gate; dropping it opens it, unless the database has gone.
pub struct Closed(Arc<OpenDatabase>);

impl OpenDatabase {
    pub(crate) fn new(storage: &Arc<Storage>, oid: Id, snapshot: Snapshot) -> Arc<OpenDatabase> {
        Arc::new(OpenDatabase {
            oid,
            storage: storage.clone(),
            version: AtomicU64::new(snapshot.version),
            current: LwLock::new(WaitEvent::LWLockCatalogSnapshot, Arc::new(snapshot)),
            published: AtomicU64::new(0),
            newest_index: AtomicU64::new(0),
            gate: SpinLock::default(),
        })
    }

    /// The database's oid; [`SHARED`].
    pub fn oid(&self) -> Id {
        self.oid
    }

    /// The published version, once it is durable.
    pub fn current(&self) -> Arc<Snapshot> {
        let (snapshot, published) = {
            let current = self.current.read();
            (current.clone(), self.published.load(Ordering::Acquire))
        };
        while self.storage.wal.flush(Lsn(published)).is_err() {
            // The server is ending without a flush: whether the version lasts nobody learns any more.
            sched::park_uninterruptible(WaitEvent::IPCWalFlush, None);
        }
        snapshot
    }

    /// The same, durable or not, for a commit that builds on it.
    pub(crate) fn latest(&self) -> Arc<Snapshot> {
        self.current.read().clone()
    }

    /// The published version's number; one atomic load.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The CSN of the last commit that made an index on a table that was there already; 0: none since
    /// the start. Transactions with an older snapshot plan with [`Snapshot::for_snapshot`].
    pub fn newest_index(&self) -> u64 {
        self.newest_index.load(Ordering::Acquire)
    }

    /// Puts the version that `change` makes of the current one in its place; it says whether the commit
    /// made an index on a table that was there already.
    pub(crate) fn publish(&self, csn: Csn, change: impl FnOnce(&Snapshot) -> (Snapshot, bool)) {
        let mut current = self.current.write();
        let (next, has_new_index) = change(&current);
        let version = next.version;
        if has_new_index {
            self.newest_index.store(csn.0, Ordering::Release);
        }
        *current = Arc::new(next);
        self.published.store(csn.0, Ordering::Release);
        self.version.store(version, Ordering::Release);
    }

    /// A session comes in, when the gate is open; below 0 there may be any number.
    ///
    /// # Errors
    /// Interrupts while it waits.
    pub fn enter(
        self: &Arc<Self>,
        limit: i32,
    ) -> Result<std::result::Result<Attachment, AttachRefused>> {
        loop {
            {
                let mut gate = self.gate.lock();
                if gate.gone {
                    return Ok(Err(AttachRefused::Gone));
                }
                if !gate.closed {
                    if usize::try_from(limit).is_ok_and(|limit| gate.sessions as usize >= limit) {
                        return Ok(Err(AttachRefused::Full));
                    }
                    gate.sessions += 1;
                    return Ok(Ok(Attachment { database: self.clone(), helper: None }));
                }
                gate.waiters.push(sched::current());
            }
            sched::check_interrupts()?;
            sched::park(WaitEvent::IPCDatabaseSessions, None);
        }
    }

    /// A background thread comes in; None while the gate is closed. When it closes, the thread has
    /// [`sched::Interrupt::Cancel`] set, maybe just after it has left.
    pub fn attach_background(self: &Arc<Self>) -> Option<Attachment> {
        let task = sched::current();
        let mut gate = self.gate.lock();
        if gate.closed {
            return None;
        }
        gate.helpers.push(task.clone());
        Some(Attachment { database: self.clone(), helper: Some(task) })
    }

    /// Closes the gate to those who come; sessions that are inside stay, background threads are told to
    /// leave. The caller has the database locked.
    pub fn close(self: &Arc<Self>) -> Closed {
        let closer = sched::current();
        let helpers = {
            let mut gate = self.gate.lock();
            gate.closed = true;
            gate.closer = Some(closer);
            gate.helpers.clone()
        };
        helpers.iter().for_each(|task| task.interrupt(sched::Interrupt::Cancel));
        Closed(self.clone())
    }

    /// The database has been dropped: nobody comes in any more.
    pub(crate) fn bury(&self) {
        let waiters = {
            let mut gate = self.gate.lock();
            (gate.gone, gate.closed) = (true, true);
            std::mem::take(&mut gate.waiters)
        };
        waiters.iter().for_each(|task| task.unpark());
    }

    fn open(&self) {
        let waiters = {
            let mut gate = self.gate.lock();
            gate.closed = gate.gone;
            gate.closer = None;
            std::mem::take(&mut gate.waiters)
        };
        waiters.iter().for_each(|task| task.unpark());
    }

    fn leave(&self, helper: Option<&TaskRef>) {
        let closer = {
            let mut gate = self.gate.lock();
            match helper {
                Some(task) => gate.helpers.retain(|h| !Arc::ptr_eq(h, task)),
                None => gate.sessions -= 1,
            }
            gate.closer.clone()
        };
        if let Some(closer) = closer {
            closer.unpark();
        }
    }
}

impl Closed {
    /// Waits until nobody is inside but `own` sessions, or the time is up. Returns how many others there
    /// still are.
    ///
    /// # Errors
    /// Interrupts.
    pub fn wait_until_empty(&self, own: u32, patience: Duration) -> Result<u32> {
        let until = Instant::now() + patience;
        loop {
            let others = {
                let gate = self.0.gate.lock();
                (gate.sessions + gate.helpers.len() as u32).saturating_sub(own)
            };
            if others == 0 || Instant::now() >= until {
                return Ok(others);
            }
            sched::check_interrupts()?;
            sched::park(WaitEvent::IPCDatabaseSessions, Some(until));
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.database.leave(self.helper.as_ref());
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.open();
    }
}

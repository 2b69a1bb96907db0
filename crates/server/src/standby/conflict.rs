//! Readers in the way of what is applied: they are waited for, and cancelled when that has taken too long.
//!
//! * **Row versions that go** (pruning and vacuum in the primary): a snapshot that may see them. The record says how late the last
//!   of them ended ([`txn::REMOVED`]); with `hot_standby_feedback` the primary keeps them.
//! * **Definitions**: whoever uses a table of which files, columns or indexes go. The applier takes the lock that the
//!   definition took in the primary, and keeps it until the new version of the catalog is visible.
//! * **Databases that are dropped**: their sessions end.
//!
//! The time is `max_standby_streaming_delay`, from when the log that is to be applied came; -1: for ever. A session that
//! holds its snapshot or lock while it waits for its client loses its connection, since there is no statement to cancel.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use base::settings::{live_int, setting};
use base::{Csn, Oid, RelId, Result, WaitEvent};
use sched::{Interrupt, SpinLock};
use txn::{Following, LockMode, LockOwner, LockTag, LockWait, Snapshot};

use crate::registry::SessionActivity;
use crate::server::Server;

/// Looks at those who are in the way before the first pause: most statements are over at once.
const GLIMPSES: u64 = 20;
/// The first pause between two looks, and the longest.
const LOOK: Duration = Duration::from_micros(50);
const LOOK_MAX: Duration = Duration::from_millis(2);
/// For how long a lock is waited for before the settings and the time are looked at.
const QUEUED: Duration = Duration::from_millis(50);
/// Between two requests to the same session to end.
const AGAIN: Duration = Duration::from_millis(100);

const LOCKS: usize = 0;
const SNAPSHOTS: usize = 1;

/// The applier's side of conflicts.
pub struct Conflicts {
    server: Arc<Server>,
    /// Has the locks of the definition that is being applied.
    locks: SpinLock<Option<Arc<LockOwner>>>,
}

/// Time to cancel; None: never.
fn deadline(server: &Server) -> Option<Instant> {
    if server.standby.is_promoted() {
        return Some(Instant::now());
    }
    let ms = u64::try_from(live_int(setting::MAX_STANDBY_STREAMING_DELAY)).ok()?;
    let since = server.standby.behind_since().unwrap_or_else(Instant::now);
    Some(since + Duration::from_millis(ms))
}

/// Waits until nobody is left whom `who` names; cancels those after the deadline.
fn wait_for(server: &Server, kind: usize, mut who: impl FnMut() -> Result<Vec<i32>>) -> Result<()> {
    let until = deadline(server);
    let mut asked: Option<Instant> = None;
    let mut pause = LOOK;
    for look in 0_u64.. {
        let pids = who()?;
        if pids.is_empty() {
            return Ok(());
        }
        sched::check_interrupts()?;
        let late =
            server.standby.is_promoted() || until.is_some_and(|until| Instant::now() >= until);
        if late && asked.is_none_or(|at| at.elapsed() >= AGAIN) {
            if asked.is_none() {
                server.standby.conflicts[kind].fetch_add(pids.len() as u64, Ordering::Relaxed);
            }
            asked = Some(Instant::now());
            pids.iter().for_each(|pid| cancel(server, *pid));
        }
        if look < GLIMPSES {
            std::thread::yield_now();
            continue;
        }
        sched::park(WaitEvent::IPCRecoveryConflictSnapshot, Some(Instant::now() + pause));
        pause = (pause * 2).min(LOOK_MAX);
    }
    Ok(())
}

/// Ends what a session does, or the session when it does nothing.
fn cancel(server: &Server, pid: i32) {
    let Some(entry) = server.sessions.get(pid) else { return };
    match entry.activity().state {
        SessionActivity::IdleInTransaction | SessionActivity::IdleInFailed => {
            entry.task.interrupt(Interrupt::RecoveryConflictIdle);
        }
        _ => entry.task.interrupt(Interrupt::RecoveryConflict),
    }
    server.workers.wake(&entry.task);
}

impl Conflicts {
    /// For this server.
    pub fn new(server: &Arc<Server>) -> Arc<Conflicts> {
        Arc::new(Conflicts { server: server.clone(), locks: SpinLock::new(None) })
    }

    /// Locks tables (database and oid) against every reader, until [`Conflicts::unlock`].
    fn lock(&self, tables: &BTreeSet<(u32, u32)>) -> Result<()> {
        if tables.is_empty() {
            return Ok(());
        }
        let (server, task) = (&self.server, sched::current());
        let txn = &server.engine.txn;
        let owner = txn.new_owner(&task, task.pid());
        owner.lock_timeout_ms.store(QUEUED.as_millis() as u64, Ordering::Relaxed);
        for (database, table) in tables {
            owner.set_database(Oid(*database));
            let tag = LockTag::Relation(Oid(*database), Oid(*table));
            wait_for(server, LOCKS, || {
                // In the queue, so that those who come later wait.
                let mode = LockMode::AccessExclusive;
                match txn.locks.lock(&owner, tag, mode, LockWait::Block) {
                    Ok(_) => return Ok(Vec::new()),
                    Err(error) if error.code() == base::sqlstate::LOCK_NOT_AVAILABLE => {}
                    Err(error) => return Err(error),
                }
                let rows = txn.locks.snapshot();
                let mut holders: Vec<i32> = rows
                    .iter()
                    .filter(|row| row.tag == tag && row.granted)
                    .map(|row| row.pid)
                    .collect();
                // Somebody is there, even if it has just gone.
                if holders.is_empty() {
                    holders.push(0);
                }
                Ok(holders)
            })?;
        }
        *self.locks.lock() = Some(owner);
        Ok(())
    }

    /// Gives the locks back.
    pub fn unlock(&self) {
        let owner = self.locks.lock().take();
        drop(owner);
    }

    /// The end of a relation's file is about to be cut off.
    ///
    /// # Errors
    /// Interrupts.
    pub fn before_cut(&self, rel: RelId) -> Result<()> {
        match self.server.engine.catalog.table_of(rel) {
            Some(table) => self.lock(&BTreeSet::from([table])),
            None => Ok(()),
        }
    }

    fn clear_database(&self, database: u32) -> Result<()> {
        let server = &self.server;
        loop {
            let inside: Vec<_> = server
                .sessions
                .all()
                .into_iter()
                .filter(|entry| entry.activity().database.1 == database)
                .collect();
            if inside.is_empty() {
                return Ok(());
            }
            for entry in inside {
                entry.task.interrupt(Interrupt::RecoveryConflictIdle);
                server.workers.wake(&entry.task);
            }
            sched::check_interrupts()?;
            sched::park(WaitEvent::IPCRecoveryConflictSnapshot, Some(Instant::now() + AGAIN));
        }
    }
}

impl Following for Conflicts {
    fn removes(&self, ended: Csn) -> Result<()> {
        let txn = &self.server.engine.txn;
        let holders = || txn.holders_before(ended);
        if holders().is_empty() {
            return Ok(());
        }
        wait_for(&self.server, SNAPSHOTS, || {
            Ok(holders().iter().map(|holder| holder.pid).collect())
        })
    }

    fn publishes(&self, snapshot: &Snapshot) -> Result<()> {
        let engine = &self.server.engine;
        let followed = {
            let tx = engine.txn.reader_at(&sched::current(), snapshot);
            engine.catalog.follow(&tx)?
        };
        if followed.is_empty() {
            return Ok(());
        }
        for database in followed.dropped_databases() {
            self.clear_database(database)?;
        }
        self.lock(&followed.relations())?;
        followed.publish(snapshot.csn)
    }

    fn published(&self) {
        self.unlock();
    }
}

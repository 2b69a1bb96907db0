//! Shared row locks (FOR SHARE, FOR KEY SHARE), in memory only.
//!
//! ```text
//! shard of (relation, page) -> page -> [row version, mode, session, transaction id], ...
//! session                   -> [transaction id, row version], ...     (to find them at the end)
//! ```
//!
//! * An entry counts as long as its transaction (or subtransaction) is running; so the moment that a
//!   transaction's outcome is published ends all its locks at once, and taking the entries out is
//!   only housekeeping.
//! * The page's latch orders takers (shared) and askers (exclusive). Therefore the count of all
//!   entries, which askers look at first, may be read without further ado.
//! * When a lock is carried over to the row's next version, its session may be ending. The copy goes
//!   into the shard first and then into the session's list, unless the transaction has ended; a
//!   session publishes its end first and then takes its list. So no copy is left behind.
//!
//! Nothing is written to disk: after a crash no transaction runs that could hold a lock. See decision
//! 0002 for what else was considered. A transaction that share-locks very many rows pays about 60
//! bytes for each.

use std::sync::atomic::{AtomicUsize, Ordering};

use base::{RelId, TupleId, WaitEvent, Xid};
use crossbeam_utils::CachePadded;
use sched::Mutex;

use super::local::SharedRow;
use super::{FastMap, LockManager, LockOwner, RowLockMode};
use crate::commit_log::XidState;
use crate::prepared::PreparedRow;

const SHARDS: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Sharer {
    offset: u16,
    mode: RowLockMode,
    owner: u32,
    xid: Xid,
}

type Pages = FastMap<(RelId, u32), Vec<Sharer>>;

/// All shared row locks.
pub(super) struct SharedRows {
    count: CachePadded<AtomicUsize>,
    shards: Box<[CachePadded<Mutex<Pages>>]>,
}

impl SharedRows {
    pub(super) fn new() -> SharedRows {
        let shard = || CachePadded::new(Mutex::new(WaitEvent::LWLockLockManager, Pages::default()));
        SharedRows {
            count: CachePadded::new(AtomicUsize::new(0)),
            shards: (0..SHARDS).map(|_| shard()).collect(),
        }
    }

    fn shard(&self, rel: RelId, block: u32) -> &Mutex<Pages> {
        let mixed = (u64::from(rel.0) << 32 | u64::from(block)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.shards[(mixed >> 40) as usize % SHARDS]
    }

    /// Adds a lock, unless the session has one of that strength that lives as long: one under an
    /// older id of the same transaction.
    fn add(&self, rel: RelId, block: u32, sharer: Sharer) -> bool {
        let mut shard = self.shard(rel, block).lock();
        let page = shard.entry((rel, block)).or_default();
        let covers = |old: &Sharer| {
            old.owner == sharer.owner
                && old.offset == sharer.offset
                && old.mode >= sharer.mode
                && old.xid <= sharer.xid
        };
        if page.iter().any(covers) {
            return false;
        }
        page.push(sharer);
        self.count.fetch_add(1, Ordering::SeqCst);
        true
    }

    /// The locks on a row version.
    fn of_row(&self, rel: RelId, tid: TupleId) -> Vec<Sharer> {
        if self.count.load(Ordering::SeqCst) == 0 {
            return Vec::new();
        }
        let shard = self.shard(rel, tid.block).lock();
        let page = shard.get(&(rel, tid.block));
        page.into_iter().flatten().filter(|s| s.offset == tid.offset).copied().collect()
    }

    /// How many locks there are, by counter and by counting.
    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        let counted: usize =
            self.shards.iter().map(|s| s.lock().values().map(Vec::len).sum::<usize>()).sum();
        assert_eq!(counted, self.count.load(Ordering::SeqCst));
        counted
    }

    /// A session's locks on these row versions with their strengths.
    pub(super) fn strengths(&self, owner: u32, rows: &[SharedRow]) -> Vec<PreparedRow> {
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            let of_row = self.of_row(row.rel, row.tid).into_iter();
            let own = of_row.filter(|s| s.owner == owner && s.xid == row.xid);
            let (rel, tid) = (row.rel, row.tid);
            found.extend(own.map(|s| PreparedRow { rel, tid, mode: s.mode, xid: s.xid }));
        }
        found
    }

    /// Takes a session's locks out.
    pub(super) fn remove(&self, owner: u32, rows: &[SharedRow]) {
        for row in rows {
            let mut shard = self.shard(row.rel, row.tid.block).lock();
            let Some(page) = shard.get_mut(&(row.rel, row.tid.block)) else { continue };
            let before = page.len();
            page.retain(|s| s.owner != owner || s.xid != row.xid || s.offset != row.tid.offset);
            self.count.fetch_sub(before - page.len(), Ordering::SeqCst);
            if page.is_empty() {
                shard.remove(&(row.rel, row.tid.block));
            }
        }
    }
}

impl LockManager {
    /// Notes a FOR SHARE / FOR KEY SHARE lock on a row version, held in memory until the
    /// (sub)transaction `xid` ends. The caller holds the page's latch (shared suffices).
    pub fn share_row(
        &self,
        owner: &LockOwner,
        xid: Xid,
        rel: RelId,
        tid: TupleId,
        mode: RowLockMode,
    ) {
        let sharer = Sharer { offset: tid.offset, mode, owner: owner.number(), xid };
        if self.rows.add(rel, tid.block, sharer) {
            owner.slot().local.lock().rows.push(SharedRow { xid, rel, tid });
        }
    }

    /// Transactions (not `me`) that hold a shared lock on the row version which conflicts with
    /// `mode`. The caller holds the page's latch exclusively. One atomic load when there are none.
    pub fn row_sharers(
        &self,
        rel: RelId,
        tid: TupleId,
        mode: RowLockMode,
        me: &LockOwner,
    ) -> Vec<Xid> {
        let mut sharers = self.rows.of_row(rel, tid);
        sharers.retain(|s| s.owner != me.number() && s.mode.conflicts(mode) && self.holds(s));
        sharers.into_iter().map(|s| s.xid).collect()
    }

    /// Whether the session's own transaction holds a shared lock on the row version.
    pub fn shares_row(&self, rel: RelId, tid: TupleId, me: &LockOwner) -> bool {
        let sharers = self.rows.of_row(rel, tid);
        sharers.iter().any(|s| s.owner == me.number() && self.holds(s))
    }

    /// Carries shared row locks over to the next version of the row.
    pub fn copy_row_sharers(&self, rel: RelId, from: TupleId, to: TupleId) {
        for sharer in self.rows.of_row(rel, from) {
            let copy = Sharer { offset: to.offset, ..sharer };
            if !self.holds(&copy) || !self.rows.add(rel, to.block, copy) {
                continue;
            }
            let row = SharedRow { xid: copy.xid, rel, tid: to };
            let slot = self.core.registry.get(copy.owner);
            let mut local = slot.local.lock();
            if self.holds(&copy) {
                local.rows.push(row);
            } else {
                drop(local);
                self.rows.remove(copy.owner, &[row]);
            }
        }
    }

    /// Whether the sharer's transaction is still running. One that is committing counts: the asker
    /// finds out by waiting for it.
    fn holds(&self, sharer: &Sharer) -> bool {
        matches!(self.core.commits.get(sharer.xid), XidState::Running(_) | XidState::Committing(_))
    }
}

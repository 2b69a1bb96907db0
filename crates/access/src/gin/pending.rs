//! The pending list: rows whose entries are not at their places yet, at the right end of the tree, in the
//! order of the rows.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use base::{Result, TupleId};
use txn::{Transaction, TxnManager};

use super::posting::ANCHOR;
use super::{GinIndex, PENDING, entries_of, posting};
use crate::btree::{KeyRange, Rewritten, node};

/// Rows that are moved at a time.
const BATCH: usize = 1024;

/// The pending list's part of the tree.
pub(super) fn range() -> KeyRange {
    KeyRange::prefix(&[PENDING])
}

/// The row and its key in an entry of the pending list; None: it is none.
pub(super) fn read(key: &[u8]) -> Option<(TupleId, &[u8])> {
    let rest = key.strip_prefix(&[PENDING])?;
    let (row, key) = rest.split_first_chunk::<ANCHOR>()?;
    Some((TupleId::from_bytes(*row), key))
}

fn pending_key(row: TupleId, key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + ANCHOR + key.len());
    out.push(PENDING);
    out.extend_from_slice(&row.to_bytes());
    out.extend_from_slice(key);
    out
}

impl GinIndex {
    /// Calls `each` with the entries of the pending list.
    pub(crate) fn each_pending(&self, each: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.tree.read_range(&range(), &mut |key| {
            each(key);
            true
        })
    }

    /// Adds a row to the pending list, and empties that when it has more than `limit` bytes.
    pub(super) fn add_later(
        &self,
        tx: &Transaction,
        key: &[u8],
        root: TupleId,
        limit: u64,
    ) -> Result<()> {
        let whole = pending_key(root, key);
        if whole.len() > node::MAX_KEY / 2 {
            return self.add_all(tx, key, root);
        }
        let before_write = |_block: u32| tx.writes_page(self.rel, super::PENDING_LIST);
        let place = &whole[..1 + ANCHOR];
        self.tree.rewrite(tx.manager(), place, &before_write, &mut |around| {
            // A row that has changed in place comes again, with other entries.
            let known = around.behind.filter(|k| k.starts_with(place));
            let mut key = whole.clone();
            if let Some(known) = known {
                let new = entries_of(&known[place.len()..]);
                for entry in new.filter(|e| !entries_of(&whole[place.len()..]).any(|n| n == *e)) {
                    super::put_entry(&mut key, entry);
                }
                if key == known {
                    return Ok(None);
                }
            }
            Ok(Some(Rewritten { before: false, behind: known.is_some(), keys: vec![key] }))
        })?;
        let size = self.pending_bytes(tx)? + whole.len() as i64;
        self.shared().pending.fetch_add(whole.len() as i64, Relaxed);
        if size as u64 > limit {
            let Some(_turn) = self.shared().flushing.try_lock() else { return Ok(()) };
            self.flush_locked(tx.manager(), u64::MAX)?;
        }
        Ok(())
    }

    fn pending_bytes(&self, tx: &Transaction) -> Result<i64> {
        let known = self.shared().pending.load(Relaxed);
        if known >= 0 {
            return Ok(known);
        }
        let mut bytes = 0;
        let mut cursor = self.tree.scan(range(), false).untracked();
        while let Some((key, _)) = cursor.next(tx)? {
            bytes += key.len() as i64;
        }
        let _ = self.shared().pending.compare_exchange(known, bytes, Relaxed, Relaxed);
        Ok(bytes)
    }

    /// Moves up to `most` rows of the pending list to their places; returns how many pages' worth.
    ///
    /// # Errors
    /// I/O, interrupts.
    pub fn flush(&self, manager: &TxnManager, most: u64) -> Result<u64> {
        let _turn = self.shared().flushing.lock();
        self.flush_locked(manager, most)
    }

    fn flush_locked(&self, manager: &TxnManager, most: u64) -> Result<u64> {
        let mut bytes = 0;
        let mut moved = 0;
        while moved < most {
            let rows = self.pending_rows()?;
            if rows.is_empty() {
                break;
            }
            let mut by_entry: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
            for (row, key) in &rows {
                for entry in entries_of(key) {
                    by_entry.entry(entry.to_vec()).or_default().push(posting::number(*row));
                }
            }
            for (entry, rows) in &mut by_entry {
                rows.sort_unstable();
                rows.dedup();
                self.add(manager, entry, rows, &|_| Ok(()))?;
            }
            for (row, key) in &rows {
                bytes += key.len() as u64;
                self.take_out(manager, *row, key)?;
            }
            moved += rows.len() as u64;
        }
        let known = self.shared().pending.load(Relaxed);
        self.shared().pending.store((known - bytes as i64).max(0), Relaxed);
        Ok(bytes.div_ceil(storage::PAGE_SIZE as u64))
    }

    /// The first rows of the list with their keys.
    fn pending_rows(&self) -> Result<Vec<(TupleId, Vec<u8>)>> {
        let mut out = Vec::new();
        self.tree.read_range(&range(), &mut |key| {
            if let Some((row, key)) = read(key) {
                out.push((row, key.to_vec()));
            }
            out.len() < BATCH
        })?;
        Ok(out)
    }

    /// Removes a row from the list, unless it came again meanwhile with other entries.
    fn take_out(&self, manager: &TxnManager, row: TupleId, key: &[u8]) -> Result<()> {
        let whole = pending_key(row, key);
        self.tree.rewrite(manager, &whole[..1 + ANCHOR], &|_| Ok(()), &mut |around| {
            let same = around.behind == Some(&whole[..]);
            Ok(same.then(|| Rewritten { before: false, behind: true, keys: Vec::new() }))
        })
    }
}

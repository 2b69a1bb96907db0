//! Unique constraints that are DEFERRABLE: a row goes in beside its rivals, and is looked at again when
//! the statement or the transaction ends.
//!
//! Of two sessions that insert the same key at once at least one sees the other: each looks for rivals
//! after its own entry is in the index.

use std::sync::Arc;

use access::{BTree, Heap, Rival};
use base::{RelId, Result, TupleId, Xid};
use catalog::{Index, Table};
use txn::LockWait;

use super::errors;
use crate::run::Run;
use crate::table::{KeyCodec, TableHandle};

/// Another row with the key.
enum Found {
    None,
    Live,
    /// The transaction that will decide.
    Undecided(Xid),
}

fn rival(heap: &Heap, tree: &BTree, key: &[u8], own: TupleId, run: &Run<'_, '_>) -> Result<Found> {
    let tx = run.cx.tx;
    let mut others = Vec::new();
    tree.lookup(tx, key, |root| {
        if root != own {
            others.push(root);
        }
        true
    })?;
    let mut found = Found::None;
    for root in others {
        match heap.rival(tx, root)? {
            Rival::Live => return Ok(Found::Live),
            Rival::InProgress(xid) => found = Found::Undecided(xid),
            Rival::Dead | Rival::Removed => {}
        }
    }
    Ok(found)
}

/// Whether a row that has just got its entry may have a rival.
///
/// # Errors
/// I/O.
pub fn may_conflict(
    heap: &Heap,
    tree: &BTree,
    key: &[u8],
    own: TupleId,
    run: &Run<'_, '_>,
) -> Result<bool> {
    Ok(!matches!(rival(heap, tree, key, own, run)?, Found::None))
}

/// Looks at rows again; those that are gone by now don't matter.
///
/// # Errors
/// `23505`; deadlocks and time-outs of waiting for others to decide.
pub fn recheck(
    table: &Arc<Table>,
    index: &Arc<Index>,
    rows: &[TupleId],
    run: &mut Run<'_, '_>,
) -> Result<()> {
    let handle = TableHandle::open(run.cx.engine, table, run.cx.format)?;
    let tree = BTree::open(&run.cx.engine.storage, RelId(index.rel));
    let codec = KeyCodec::new(table, index);
    let mut key = Vec::new();
    for root in rows {
        sched::check_interrupts()?;
        while let Some(version) = handle.heap.live_version(run.cx.tx, *root)? {
            let row = handle.decode_all(&version.data)?;
            key.clear();
            codec.encode(&row, &mut key)?;
            match rival(&handle.heap, &tree, &key, *root, run)? {
                Found::None => break,
                Found::Undecided(xid) => {
                    let tx = run.cx.tx;
                    tx.manager().locks.wait_for_xid(tx.locks(), xid, LockWait::Block)?;
                }
                Found::Live => {
                    let view = run.cx.catalog_tx.view();
                    return Err(errors::duplicate(&view, table, index, &row, run.cx.format));
                }
            }
        }
    }
    Ok(())
}

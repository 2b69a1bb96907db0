//! Unique keys that are checked after their entry is in the index. With a DEFERRABLE constraint a row goes
//! in beside its rivals, and is looked at again when the statement or the transaction ends; an index that
//! is built beside writers gets all entries first.
//!
//! Of two sessions that insert the same key at once at least one sees the other: each looks for rivals
//! after its own entry is in the index.

use std::sync::Arc;

use access::{BTree, Heap, Rival};
use base::{RelId, Result, TupleId, Xid};
use catalog::{Index, Table};
use sql::expr::Expr;
use txn::LockWait;
use types::Datum;

use super::errors;
use crate::eval;
use crate::rows::Row;
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
    let Some(row) = find_duplicate(table, index, &[], rows, run)? else { return Ok(()) };
    Err(errors::duplicate(run.cx, table, index, &row))
}

/// Of these rows (roots) the first that has a live rival. `computed`: the index's expressions, over a row
/// in table order.
///
/// # Errors
/// Deadlocks and time-outs of waiting for others to decide; those of the expressions.
pub fn find_duplicate(
    table: &Arc<Table>,
    index: &Index,
    computed: &[Expr],
    rows: &[TupleId],
    run: &mut Run<'_, '_>,
) -> Result<Option<Vec<Datum>>> {
    let handle = TableHandle::open(run.cx.engine, table, run.cx.format)?;
    let tree = BTree::open(&run.cx.engine.storage, RelId(index.rel));
    let codec = KeyCodec::new(table, index);
    let mut key = Vec::new();
    for root in rows {
        sched::check_interrupts()?;
        loop {
            let tx = run.cx.tx;
            if let Rival::InProgress(xid) = handle.heap.rival(tx, *root)? {
                tx.manager().locks.wait_for_xid(tx.locks(), xid, LockWait::Block)?;
                continue;
            }
            let Some(version) = handle.heap.live_version(tx, *root)? else { break };
            let mut row = handle.decode_all(&version.data)?;
            let columns = row.len();
            for expr in computed {
                let value = eval::eval(expr, Row::Values(&row[..columns]), run)?;
                row.push(value);
            }
            key.clear();
            if !codec.holds(&row) || codec.encode(&row, &mut key)? && !index.nulls_equal {
                break;
            }
            match rival(&handle.heap, &tree, &key, *root, run)? {
                Found::None => break,
                Found::Undecided(xid) => {
                    tx.manager().locks.wait_for_xid(tx.locks(), xid, LockWait::Block)?;
                }
                Found::Live => return Ok(Some(row)),
            }
        }
    }
    Ok(None)
}

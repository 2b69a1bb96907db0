//! From the bounds of a plan's index scan to what its index looks for ([`Search`]), for every method.

use std::sync::Arc;

use access::{AnyIndex, Search};
use base::{AccessMethod, Error, RelId, Result, TupleId};
use catalog::{Index, Table};
use sql::plan::{IndexBounds, KeyStep};
use storage::Storage;

use crate::ops::index_bounds;
use crate::run::Run;
use crate::table::KeyCodec;
use crate::tally;

/// Names an index's files; no I/O.
pub fn open(index: &Index, storage: &Arc<Storage>) -> AnyIndex {
    AnyIndex::open(index.method, storage, RelId(index.rel))
}

/// What the bounds look for; none when no row can match.
///
/// # Errors
/// Those of the bounds' expressions.
pub fn searches(
    table: &Table,
    index: &Index,
    bounds: &IndexBounds,
    run: &mut Run<'_, '_>,
) -> Result<Vec<Search>> {
    let codec = KeyCodec::new(table, index);
    match index.method {
        AccessMethod::BTree => {
            let ranges = index_bounds::ranges(&codec, bounds, false, run)?;
            Ok(ranges.into_iter().map(Search::Range).collect())
        }
        AccessMethod::Hash => equal(&codec, bounds, run),
    }
}

/// The keys that a hash index is asked for.
fn equal(codec: &KeyCodec, bounds: &IndexBounds, run: &mut Run<'_, '_>) -> Result<Vec<Search>> {
    let (ty, order) = match codec.columns.first() {
        Some((_, ty, order)) => (*ty, *order),
        None => return Err(Error::internal("an index without columns")),
    };
    if let [KeyStep::Any(list)] = &bounds.steps[..] {
        let keys = index_bounds::any_of(list, ty, order, run)?;
        return Ok(keys.into_iter().map(Search::Equal).collect());
    }
    let mut key = Vec::with_capacity(16);
    let found = index_bounds::point(codec, &bounds.equal, run, &mut key)?;
    Ok(found.then_some(Search::Equal(key)).into_iter().collect())
}

/// Calls `found` with the rows that the bounds lead to, and whether each must be asked again. Rows may
/// come more than once. Returns how many came.
///
/// # Errors
/// Those of the bounds' expressions; I/O; interrupts.
pub fn collect(
    table: &Table,
    index: &Index,
    bounds: &IndexBounds,
    run: &mut Run<'_, '_>,
    found: &mut dyn FnMut(TupleId, bool),
) -> Result<u64> {
    let searches = searches(table, index, bounds, run)?;
    let files = open(index, &run.cx.engine.storage);
    let before = tally::Pages::now(run.cx.task());
    let mut entries = 0;
    for search in &searches {
        sched::check_interrupts()?;
        files.collect(run.cx.tx, search, &mut |one| {
            entries += 1;
            found(one.root, one.recheck);
        })?;
    }
    let tx = run.cx.tx;
    let counts = run.cx.tally.of(index.oid);
    counts.scans += searches.len() as u64;
    counts.returned += entries;
    before.count(tx.locks().task(), counts);
    Ok(entries)
}

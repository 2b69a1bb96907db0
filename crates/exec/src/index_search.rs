//! From the bounds of a plan's index scan to what its index looks for ([`Search`]), for every method.

use std::sync::Arc;

use access::gin::{self, Category, EntrySearch, GinKey, GinSearch};
use access::{AnyIndex, KeyRange, Search};
use base::settings::{live_int, setting};
use base::{AccessMethod, Error, RelId, Result, TupleId};
use catalog::{Index, Table};
use sql::plan::{IndexBounds, KeyStep};
use storage::Storage;
use types::gin::{GinQuery, QueryKey};

use crate::eval;
use crate::ops::index_bounds;
use crate::rows::Row;
use crate::run::Run;
use crate::table::KeyCodec;
use crate::tally;

/// Names an index's files; no I/O.
pub fn open(index: &Index, storage: &Arc<Storage>) -> AnyIndex {
    let mut files = AnyIndex::open(index.method, storage, RelId(index.rel));
    if let AnyIndex::Gin(gin) = &mut files {
        gin.pending_limit = pending_limit(index);
    }
    files
}

/// How many bytes the pending list of a GIN index may have; None: there is to be none.
fn pending_limit(index: &Index) -> Option<u64> {
    let option = |name: &str| index.options.iter().find(|o| o.0 == name).map(|o| o.1.as_str());
    if option("fastupdate").is_some_and(|value| !is_on(value)) {
        return None;
    }
    let own = option("gin_pending_list_limit").and_then(|value| value.parse().ok());
    Some(own.unwrap_or_else(|| live_int(setting::GIN_PENDING_LIST_LIMIT) as u64) * 1024)
}

fn is_on(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "on" | "true" | "yes" | "1" | "t" | "y")
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
        AccessMethod::Gin => entries(&codec, bounds, run),
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

/// What a GIN index is asked for: all of the conditions at once.
fn entries(codec: &KeyCodec, bounds: &IndexBounds, run: &mut Run<'_, '_>) -> Result<Vec<Search>> {
    let mut search = GinSearch::default();
    for key in &bounds.keys {
        let value = eval::eval(&key.value, Row::Empty, run)?;
        if value.is_null() {
            return Ok(Vec::new());
        }
        let class = codec.gin.get(usize::from(key.column));
        let class = class.ok_or_else(|| Error::internal("a column without a class"))?;
        let query = class.query(key.strategy, &value)?;
        search.keys.push(gin_key(key.column as u8, query));
    }
    Ok(vec![Search::Entries(search)])
}

fn gin_key(column: u8, query: GinQuery) -> GinKey {
    let beginning = |bytes: &[u8]| {
        let mut out = Vec::with_capacity(bytes.len() + 2);
        gin::put_beginning(&mut out, column, Category::Key, bytes);
        out
    };
    let entry = |key: QueryKey| match key {
        QueryKey::Key(bytes) => EntrySearch::Exact(gin::entry(column, Category::Key, &bytes)),
        QueryKey::Null => EntrySearch::Exact(gin::entry(column, Category::NullKey, &[])),
        QueryKey::Beginning(bytes) => EntrySearch::Range(KeyRange::prefix(&beginning(&bytes))),
        QueryKey::Range(from, to) => EntrySearch::Range(KeyRange {
            from: beginning(&from),
            to: Some(match to {
                Some(to) => beginning(&to),
                None => vec![column, Category::NullKey as u8],
            }),
        }),
    };
    let entries = query.keys.into_iter().map(entry).collect();
    GinKey { column, entries, mode: query.mode, check: query.check }
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

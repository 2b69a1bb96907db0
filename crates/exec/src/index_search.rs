//! From the bounds of a plan's index scan to what its index looks for ([`Search`]), for every method.

use std::sync::Arc;

use access::brin::{BrinSearch, SummaryOps};
use access::gin::{self, Category, EntrySearch, GinKey, GinSearch};
use access::gist::{TreeOps, TreeSearch};
use access::index::BloomSearch;
use access::{AnyIndex, KeyRange, Search};
use base::settings::{live_int, setting};
use base::{AccessMethod, Error, RelId, Result, TupleId};
use catalog::{Index, Table};
use sql::plan::{IndexBounds, KeyStep};
use storage::Storage;
use types::Datum;
use types::gin::{GinQuery, QueryKey};

use crate::covering;
use crate::eval;
use crate::neighbors;
use crate::ops::index_bounds;
use crate::rows::Row;
use crate::run::Run;
use crate::summaries;
use crate::table::KeyCodec;
use crate::tally;

/// Names an index's files; no I/O. For trees and summaries that are to be changed: [`open_for`].
pub fn open(index: &Index, storage: &Arc<Storage>) -> AnyIndex {
    let mut files = AnyIndex::open(index.method, storage, RelId(index.rel));
    match &mut files {
        AnyIndex::Gin(gin) => gin.pending_limit = pending_limit(index),
        AnyIndex::Brin(brin) => brin.pages_per_range = pages_per_range(index),
        AnyIndex::Hnsw(graph) => {
            graph.ops = neighbors::ops(index);
            graph.m = number(index, "m").unwrap_or(graph.m);
            graph.ef_construction =
                number(index, "ef_construction").unwrap_or(graph.ef_construction);
        }
        AnyIndex::IvfFlat(lists) => {
            lists.ops = neighbors::ops(index);
            lists.lists = number(index, "lists").unwrap_or(lists.lists);
        }
        _ => {}
    }
    files
}

/// The same, with what its method must know of keys.
pub fn open_for(codec: &KeyCodec, index: &Index, storage: &Arc<Storage>) -> AnyIndex {
    let mut files = open(index, storage);
    match &mut files {
        AnyIndex::Gist(tree) | AnyIndex::SpGist(tree) => {
            tree.ops = codec.tree.clone().map(|ops| ops as Arc<dyn TreeOps>);
        }
        AnyIndex::Brin(brin) => {
            brin.ops = codec.summaries.clone().map(|ops| ops as Arc<dyn SummaryOps>);
        }
        _ => {}
    }
    files
}

fn option<'i>(index: &'i Index, name: &str) -> Option<&'i str> {
    index.options.iter().find(|o| o.0 == name).map(|o| o.1.as_str())
}

fn number<N: std::str::FromStr>(index: &Index, name: &str) -> Option<N> {
    option(index, name).and_then(|value| value.parse().ok())
}

/// Pages that a BRIN index makes one summary of.
fn pages_per_range(index: &Index) -> u32 {
    let own = option(index, "pages_per_range").and_then(|value| value.parse().ok());
    own.unwrap_or(access::brin::PAGES_PER_RANGE).max(1)
}

/// How many bytes the pending list of a GIN index may have; None: there is to be none.
fn pending_limit(index: &Index) -> Option<u64> {
    if option(index, "fastupdate").is_some_and(|value| !is_on(value)) {
        return None;
    }
    let own = option(index, "gin_pending_list_limit").and_then(|value| value.parse().ok());
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
        AccessMethod::Gist | AccessMethod::SpGist => {
            Ok(tree(&codec, bounds, run)?.map(Search::Tree).into_iter().collect())
        }
        AccessMethod::Brin => summaries(table, &codec, bounds, run),
        AccessMethod::Bloom => signature(&codec, bounds, run),
        AccessMethod::Hnsw | AccessMethod::IvfFlat => {
            Err(Error::internal("vectors are searched by their distances"))
        }
    }
}

/// The search of a tree of keys that cover each other; None: no row can match.
///
/// # Errors
/// Those of the bounds' expressions.
pub fn tree(
    codec: &KeyCodec,
    bounds: &IndexBounds,
    run: &mut Run<'_, '_>,
) -> Result<Option<TreeSearch>> {
    let without = || Error::internal("a column without a class");
    let classes = codec.tree.as_ref().ok_or_else(without)?;
    let mut asked = Vec::with_capacity(bounds.keys.len());
    for key in &bounds.keys {
        let column = usize::from(key.column);
        asked.push((
            column,
            match key.null_test() {
                Some(true) => covering::Asked::Null,
                Some(false) => covering::Asked::NotNull,
                None => {
                    let value = eval::eval(&key.value, Row::Empty, run)?;
                    if value.is_null() {
                        return Ok(None);
                    }
                    let class = classes.classes.get(column).ok_or_else(without)?;
                    covering::Asked::Key(class.check(key.strategy, &value)?)
                }
            },
        ));
    }
    let mut distances = Vec::with_capacity(bounds.nearest.len());
    for key in &bounds.nearest {
        let column = usize::from(key.column);
        let value = eval::eval(&key.value, Row::Empty, run)?;
        let class = classes.classes.get(column).ok_or_else(without)?;
        let distance = match value.is_null() {
            true => None,
            false => class.distance(key.strategy, &value)?,
        };
        // From nowhere all rows are equally far.
        distances.push((column, distance.unwrap_or_else(|| Arc::new(|_, _| (f64::NAN, false)))));
    }
    Ok(Some(covering::search(asked, distances)))
}

/// The search of a summary index.
fn summaries(
    table: &Table,
    codec: &KeyCodec,
    bounds: &IndexBounds,
    run: &mut Run<'_, '_>,
) -> Result<Vec<Search>> {
    let without = || Error::internal("a column without a class");
    let classes = codec.summaries.as_ref().ok_or_else(without)?;
    let mut values = Vec::with_capacity(bounds.keys.len());
    for key in &bounds.keys {
        values.push(match key.null_test() {
            Some(_) => Datum::Null,
            None => match eval::eval(&key.value, Row::Empty, run)? {
                Datum::Null => return Ok(Vec::new()),
                value => value,
            },
        });
    }
    let asked = bounds.keys.iter().zip(&values).map(|(key, value)| {
        (
            usize::from(key.column),
            match key.null_test() {
                Some(true) => summaries::Asked::Null,
                Some(false) => summaries::Asked::NotNull,
                None => summaries::Asked::Operator(key.strategy, value),
            },
        )
    });
    let check = classes.check(asked.collect())?;
    let heap = access::Heap::open(&run.cx.engine.storage, RelId(table.rel));
    Ok(vec![Search::Summaries(BrinSearch { check, pages: heap.pages()? })])
}

/// The bits that the rows of a bloom index must have.
fn signature(codec: &KeyCodec, bounds: &IndexBounds, run: &mut Run<'_, '_>) -> Result<Vec<Search>> {
    let without = || Error::internal("a column without a class");
    let signatures = codec.signatures.as_ref().ok_or_else(without)?;
    let mut bits = vec![0; signatures.bytes()];
    for key in &bounds.keys {
        let value = eval::eval(&key.value, Row::Empty, run)?;
        if value.is_null() {
            return Ok(Vec::new());
        }
        let n = usize::from(key.column);
        let column = codec.columns.get(n).ok_or_else(without)?;
        signatures.set((n, column), &value, &mut bits)?;
    }
    Ok(vec![Search::Signature(BloomSearch { bits })])
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

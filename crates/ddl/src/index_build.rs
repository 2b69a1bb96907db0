//! Fills a new index: keys of all rows that are live now, sorted, into full pages.
//!
//! The caller's lock keeps writers out, or (CREATE INDEX CONCURRENTLY, [`fill_beside_writers`]) all who
//! write know the index. Rows are indexed by the root of their chain. Versions that
//! only older snapshots see get no entry; a transaction with such a snapshot plans without the index
//! (`catalog::Index::since`).

use access::index::entries;
use access::{AnyIndex, BTree, KeyRange};
use base::settings::setting;
use base::{AccessMethod, RelId, Result, TupleId};
use catalog::{Index, Table};
use sched::memory::Use;
use sched::observe::progress::{Count, Kind, Reporting};
use sql::expr::Expr;
use types::{Datum, row};

use super::index_collect::collect;
use super::index_keys::{KeySorter, Place, SortedKeys};
use exec::context::ExecContext;
use exec::eval;
use exec::index_search;
use exec::modify::{duplicated_in_build, excluded_in_build, exclusion, find_duplicate};
use exec::rows::Row;
use exec::run::Run;
use exec::security::restricted;
use exec::spi::{with_context, with_run};
use exec::table::{KeyCodec, TableHandle};

/// Sorts keys within `maintenance_work_mem`.
fn sorter(cx: &ExecContext<'_>, method: AccessMethod) -> KeySorter {
    let limit = cx.settings.int(setting::MAINTENANCE_WORK_MEM) as usize * 1024;
    KeySorter::of(method, cx.engine.storage.dir(), limit)
}

/// Sorted keys, how many there are, and a column that is NULL somewhere.
pub(super) struct Collected {
    pub(super) keys: SortedKeys,
    pub(super) count: u64,
    pub(super) null_in: Option<u16>,
}

/// Keys of all rows that an index with expressions or a condition holds.
fn collect_computed(
    cx: &mut ExecContext<'_>,
    table: &Table,
    index: &Index,
    handle: &TableHandle,
    codec: &KeyCodec,
) -> Result<Collected> {
    let mut keys = sorter(cx, codec.method);
    let exprs = computed_by(cx, table, index)?;
    for_each_computed(cx, &exprs, handle, codec, &mut |key, root, null| {
        if codec.method == AccessMethod::Brin {
            // In the table's order: page by page.
            keys.push(&[&root.block.to_be_bytes(), key].concat(), Place { root, null });
        }
        if codec.method.is_of_vectors() {
            // In an order that has nothing to do with the vectors.
            keys.push(&[&shuffled(root).to_be_bytes(), key].concat(), Place { root, null });
            return keys.make_room();
        }
        entries(codec.method, key, &mut |entry| keys.push(entry, Place { root, null }));
        keys.make_room()
    })?;
    let count = keys.count();
    Ok(Collected { keys: keys.finish()?, count, null_in: None })
}

/// A number by which rows have no order.
pub(super) fn shuffled(row: TupleId) -> u64 {
    let number = u64::from(row.block) << 16 | u64::from(row.offset);
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// `23505` for a row whose key is there twice; `root` is that of its chain.
fn duplicated(
    cx: &mut ExecContext<'_>,
    table: &Table,
    index: &Index,
    handle: &TableHandle,
    root: TupleId,
) -> base::Error {
    let mut snapshot = cx.tx.latest_snapshot();
    snapshot.command = cx.tx.command() + 1;
    let row = (|| {
        let exprs = computed_by(cx, table, index)?;
        let data = handle.heap.fetch(cx.tx, &snapshot, root, |_, data| data.to_vec())?;
        let row = data.map_or_else(
            || Ok(vec![Datum::Null; handle.table.columns.len()]),
            |data| handle.decode_all(&data),
        )?;
        with_run(cx, |run| with_computed(row, &exprs, run))
    })();
    match row {
        Ok(row) => duplicated_in_build(cx, table, index, &row),
        Err(error) => error,
    }
}

/// Entries after which a build says how far it has come.
const TOLD: u64 = 1024;

/// Fills the index's new files.
///
/// # Errors
/// `23505` when a unique key is there twice, `23P01` when rows exclude each other; I/O; interrupts.
pub fn fill(cx: &mut ExecContext<'_>, table: &Table, index: &Index) -> Result<()> {
    restricted(cx, table.owner, |cx| fill_as_owner(cx, table, index))?;
    if index.exclude.is_empty() { Ok(()) } else { check_exclusion(cx, table, index) }
}

fn fill_as_owner(cx: &mut ExecContext<'_>, table: &Table, index: &Index) -> Result<()> {
    let _memory = sched::memory::for_use(Use::Sort);
    let handle = TableHandle::open(cx.engine, &std::sync::Arc::new(table.clone()), cx.format)?;
    let codec = KeyCodec::new(table, index);
    require_classes(index, &codec)?;
    let progress = Reporting::begin(Kind::CreateIndex, "CREATE INDEX", (cx.database.1, table.oid));
    progress.set_phase("building index: scanning table");
    let collected = if index.is_plain() && index.method != AccessMethod::Brin {
        collect(cx, &handle, &codec, &progress)?
    } else {
        collect_computed(cx, table, index, &handle, &codec)?
    };
    let Collected { mut keys, count: rows, null_in } = collected;
    progress.set(Count::RowsTotal, rows);
    if let Some(column) = null_in.filter(|_| index.primary) {
        let name = &table.columns[usize::from(column)].name;
        return Err(super::constraint::contains_nulls(cx, table, name));
    }
    progress.set_phase("building index: loading tuples in tree");
    let storage = &cx.engine.storage;
    let (mut last, mut before): (Vec<u8>, Option<Place>) = (Vec::new(), None);
    let mut duplicate = None;
    let mut files = index_search::open_for(&codec, index, storage);
    let memory = cx.settings.int(setting::MAINTENANCE_WORK_MEM).max(1) as usize * 1024;
    let most = cx.settings.int(setting::MAX_PARALLEL_MAINTENANCE_WORKERS).max(0) as usize;
    let wanted = if index.method.is_of_vectors() { most } else { 0 };
    let helpers = exec::parallel::available_to(wanted, cx);
    match &mut files {
        AnyIndex::Hnsw(graph) => graph.build_with = (memory, helpers.count()),
        AnyIndex::IvfFlat(lists) => lists.build_with = (memory, helpers.count()),
        _ => {}
    }
    let mut given = 0;
    let built = files.fill(rows, &mut |key| {
        let Some(place) = keys.next(key)? else { return Ok(None) };
        given += 1;
        if given % TOLD == 0 {
            progress.add(Count::RowsDone, TOLD);
        }
        if index.unique {
            if let Some(before) = before
                && last == *key
                && (!before.null || index.nulls_equal)
            {
                duplicate = Some(before.root);
                return Ok(None);
            }
            last.clone_from(key);
            before = Some(place);
        }
        if index.method == AccessMethod::Brin {
            key.drain(..size_of::<u32>());
        }
        if index.method.is_of_vectors() {
            key.drain(..size_of::<u64>());
        }
        Ok(Some(place.root))
    });
    progress.add(Count::RowsDone, given % TOLD);
    match duplicate {
        Some(root) => Err(duplicated(cx, table, index, &handle, root)),
        None => built,
    }
}

/// Whether the columns' types, which may have changed, still have the index's classes.
fn require_classes(index: &Index, codec: &KeyCodec) -> Result<()> {
    if codec.classes() == index.columns.len() {
        return Ok(());
    }
    let lacks = |(c, key): &(&catalog::IndexColumn, &exec::table::KeyColumn)| {
        let class = types::opclass::class(c.class_of(index.method, key.1.0));
        class.is_none_or(|class| !types::opclass::accepts(class, key.1))
    };
    let column = index.columns.iter().zip(&codec.columns).find(lacks);
    let ty = column.map_or(base::Oid(0), |(_, key)| key.1);
    Err(base::err!(
        UNDEFINED_OBJECT,
        "data type {} has no default operator class for access method \"{}\"",
        types::io::format_type(ty, -1),
        index.method.name()
    )
    .hint(
        "You must specify an operator class for the index or define a default operator class for the \
         data type.",
    ))
}

/// Calls `each` with key, root and whether a key column is NULL, for all rows that the index holds. The
/// expressions are evaluated between pages.
fn for_each_computed(
    cx: &mut ExecContext<'_>,
    exprs: &[Expr],
    handle: &TableHandle,
    codec: &KeyCodec,
    each: &mut dyn FnMut(&[u8], TupleId, bool) -> Result<()>,
) -> Result<()> {
    let wanted: Vec<u16> = (0..handle.table.columns.len() as u16).collect();
    let mut snapshot = cx.tx.latest_snapshot();
    snapshot.command = cx.tx.command() + 1;
    with_run(cx, |run| {
        let mut scan = handle.heap.scan(&snapshot, None);
        let mut key = Vec::new();
        loop {
            sched::check_interrupts()?;
            let (mut page, mut failed) = (Vec::new(), None);
            let more = scan.next_page(run.cx.tx, |_, root, data| {
                let mut row = Vec::with_capacity(wanted.len());
                match row::decode(&handle.columns, data, &wanted, &mut row) {
                    Ok(()) => page.push((root, row)),
                    Err(error) => failed = Some(error),
                }
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
            for (root, row) in page {
                let row = with_computed(row, exprs, run)?;
                if codec.holds(&row) {
                    key.clear();
                    let null = codec.encode(&row, &mut key)?;
                    each(&key, root, null)?;
                }
            }
            if !more {
                return Ok(());
            }
        }
    })
}

/// A row in table order with what an index computes behind it.
fn with_computed(mut row: Vec<Datum>, exprs: &[Expr], run: &mut Run<'_, '_>) -> Result<Vec<Datum>> {
    let columns = row.len();
    for expr in exprs {
        let value = eval::eval(expr, Row::Values(&row[..columns]), run)?;
        row.push(value);
    }
    Ok(row)
}

/// The index's expressions over a row in table order.
///
/// # Errors
/// When one can't be bound: a function is gone.
pub fn computed_by(cx: &mut ExecContext<'_>, table: &Table, index: &Index) -> Result<Vec<Expr>> {
    let texts: Vec<&str> = index.expressions().collect();
    with_context(cx, |context| sql::stored::row_expressions(context, table, &texts))
}

/// Adds what an index lacks that has been kept up to date by all who wrote since before the running
/// transaction began: the rows that this one sees. An entry that a writer has put in meanwhile is met
/// and left as it is.
///
/// Two rows with a unique key are found when all entries are in, since whoever adds one later sees
/// these: neighbours with equal keys are looked at again, dead ones left aside.
///
/// # Errors
/// As [`fill`].
pub fn fill_beside_writers(cx: &mut ExecContext<'_>, table: &Table, index: &Index) -> Result<()> {
    restricted(cx, table.owner, |cx| fill_beside_as_owner(cx, table, index))
}

fn fill_beside_as_owner(cx: &mut ExecContext<'_>, table: &Table, index: &Index) -> Result<()> {
    let _memory = sched::memory::for_use(Use::Sort);
    let shared = std::sync::Arc::new(table.clone());
    let handle = TableHandle::open(cx.engine, &shared, cx.format)?;
    let codec = KeyCodec::new(table, index);
    require_classes(index, &codec)?;
    let progress = Reporting::begin(
        Kind::CreateIndex,
        "CREATE INDEX CONCURRENTLY",
        (cx.database.1, table.oid),
    );
    progress.set_phase("building index: scanning table");
    if index.method == AccessMethod::Brin {
        return exec::session::brin::summarize(cx, &shared, index, None, true).map(drop);
    }
    let collected = if index.is_plain() && index.method != AccessMethod::Brin {
        collect(cx, &handle, &codec, &progress)?
    } else {
        collect_computed(cx, table, index, &handle, &codec)?
    };
    let Collected { mut keys, count, .. } = collected;
    progress.set(Count::RowsTotal, count);
    progress.set_phase("building index: loading tuples in tree");
    let files = index_search::open_for(&codec, index, &cx.engine.storage);
    let mut key = Vec::new();
    while let Some(Place { root, .. }) = keys.next(&mut key)? {
        sched::check_interrupts()?;
        if index.method.is_of_vectors() {
            key.drain(..size_of::<u64>());
        }
        files.insert_entry(cx.tx, &key, root)?;
        progress.add(Count::RowsDone, 1);
    }
    if !index.unique {
        return Ok(());
    }
    progress.set_phase("index validation: scanning index");
    let rivals = equal_entries(cx, &BTree::open(&cx.engine.storage, RelId(index.rel)))?;
    let computed = computed_by(cx, table, index)?;
    let found = with_run(cx, |run| find_duplicate(&shared, index, &computed, &rivals, run))?;
    match found {
        Some(row) => Err(duplicated_in_build(cx, table, index, &row)),
        None => Ok(()),
    }
}

/// Looks for rows of a table that exclude each other by a constraint whose index has just been filled.
///
/// # Errors
/// `23P01`; those of expressions and operators.
fn check_exclusion(cx: &mut ExecContext<'_>, table: &Table, index: &Index) -> Result<()> {
    restricted(cx, table.owner, |cx| {
        let computed = computed_by(cx, table, index)?;
        let shared = std::sync::Arc::new(table.clone());
        let found = with_run(cx, |run| {
            let rows = exclusion::live_rows(table, run)?;
            exclusion::find(&shared, index, &computed, &rows, run)
        })?;
        match found {
            Some((row, there)) => Err(excluded_in_build(cx, table, index, &row, &there)),
            None => Ok(()),
        }
    })
}

/// The rows of entries that have the same key as another one.
fn equal_entries(cx: &ExecContext<'_>, tree: &BTree) -> Result<Vec<TupleId>> {
    let mut cursor = tree.scan(KeyRange::default(), false);
    let mut out = Vec::new();
    let mut last: Option<(Vec<u8>, TupleId, bool)> = None;
    while let Some((key, root)) = cursor.next(cx.tx)? {
        match &mut last {
            Some((before, first, noted)) if before == key => {
                if !std::mem::replace(noted, true) {
                    out.push(*first);
                }
                out.push(root);
            }
            last => *last = Some((key.to_vec(), root, false)),
        }
    }
    Ok(out)
}

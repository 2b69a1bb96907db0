//! Fills a new index: keys of all rows that are live now, sorted, into full pages.
//!
//! The caller's lock keeps writers out, or (CREATE INDEX CONCURRENTLY, [`fill_beside_writers`]) all who
//! write know the index. Rows are indexed by the root of their chain. Versions that
//! only older snapshots see get no entry; a transaction with such a snapshot plans without the index
//! (`catalog::Index::since`).
//!
//! Short keys of equal length are packed with their row id into one 128-bit number, so that ten
//! million of them sort without touching memory elsewhere.

use access::{BTree, KeyRange, Unique};
use base::{RelId, Result, TupleId};
use catalog::{Index, Table};
use sched::observe::progress::{Count, Kind, Progress, Reporting};
use sql::expr::Expr;
use types::{Datum, row};

use super::inner::{with_context, with_run};
use crate::context::ExecContext;
use crate::eval;
use crate::modify::{duplicated_in_build, find_duplicate};
use crate::rows::Row;
use crate::table::{KeyCodec, TableHandle};

/// Key bytes that fit beside a row id.
const PACKED: usize = 10;

/// Keys with their row ids.
enum Keys {
    /// All keys have this length: key, zeros, row id, as one big-endian number.
    Packed(usize, Vec<u128>),
    /// Keys one after the other: (begin, length, row id).
    Long(Vec<u8>, Vec<(usize, u32, TupleId)>),
}

fn pack(key: &[u8], root: TupleId) -> u128 {
    let mut bytes = [0; 16];
    bytes[..key.len()].copy_from_slice(key);
    bytes[PACKED..].copy_from_slice(&root.to_bytes());
    u128::from_be_bytes(bytes)
}

fn unpack(number: u128, length: usize) -> (Vec<u8>, TupleId) {
    let bytes = number.to_be_bytes();
    let mut root = [0; 6];
    root.copy_from_slice(&bytes[PACKED..]);
    (bytes[..length].to_vec(), TupleId::from_bytes(root))
}

impl Keys {
    fn push(&mut self, key: &[u8], root: TupleId) {
        match self {
            Keys::Packed(length, all) if all.is_empty() && key.len() <= PACKED => {
                *length = key.len();
                all.push(pack(key, root));
            }
            Keys::Packed(length, all) if !all.is_empty() && key.len() == *length => {
                all.push(pack(key, root));
            }
            Keys::Packed(length, all) => {
                let (mut bytes, mut entries) = (Vec::new(), Vec::with_capacity(all.len() + 1));
                for number in all.iter() {
                    let (key, root) = unpack(*number, *length);
                    entries.push((bytes.len(), key.len() as u32, root));
                    bytes.extend_from_slice(&key);
                }
                *self = Keys::Long(bytes, entries);
                self.push(key, root);
            }
            Keys::Long(bytes, entries) => {
                entries.push((bytes.len(), key.len() as u32, root));
                bytes.extend_from_slice(key);
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Keys::Packed(_, all) => all.len(),
            Keys::Long(_, entries) => entries.len(),
        }
    }

    fn sort(&mut self) {
        match self {
            Keys::Packed(_, all) => all.sort_unstable(),
            Keys::Long(bytes, entries) => {
                let key = |e: &(usize, u32, TupleId)| &bytes[e.0..e.0 + e.1 as usize];
                entries.sort_unstable_by(|a, b| key(a).cmp(key(b)).then(a.2.cmp(&b.2)));
            }
        }
    }

    /// Calls `f` for each pair of neighbours with equal keys.
    fn equal_neighbours(&self, mut f: impl FnMut(TupleId, TupleId) -> Result<()>) -> Result<()> {
        match self {
            Keys::Packed(length, all) => {
                for pair in all.windows(2) {
                    if (pair[0] ^ pair[1]) >> (8 * (16 - PACKED)) == 0 {
                        f(unpack(pair[0], *length).1, unpack(pair[1], *length).1)?;
                    }
                }
            }
            Keys::Long(bytes, entries) => {
                let key = |e: &(usize, u32, TupleId)| &bytes[e.0..e.0 + e.1 as usize];
                for pair in entries.windows(2) {
                    if key(&pair[0]) == key(&pair[1]) {
                        f(pair[0].2, pair[1].2)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn into_iter(self) -> Box<dyn Iterator<Item = Result<(Vec<u8>, TupleId)>>> {
        match self {
            Keys::Packed(length, all) => {
                Box::new(all.into_iter().map(move |n| Ok(unpack(n, length))))
            }
            Keys::Long(bytes, entries) => {
                Box::new(entries.into_iter().map(move |(begin, length, root)| {
                    Ok((bytes[begin..begin + length as usize].to_vec(), root))
                }))
            }
        }
    }
}

/// Keys of all rows.
fn collect(
    cx: &ExecContext<'_>,
    handle: &TableHandle,
    codec: &KeyCodec,
    null_in: &mut Option<u16>,
    progress: &Progress,
) -> Result<Keys> {
    let mut wanted: Vec<u16> = codec.columns.iter().map(|(n, _, _)| *n).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let places: Vec<usize> =
        codec.columns.iter().map(|(n, _, _)| wanted.binary_search(n).unwrap_or_default()).collect();
    let mut snapshot = cx.tx.latest_snapshot();
    snapshot.command = cx.tx.command() + 1;
    let mut keys = Keys::Packed(0, Vec::new());
    let (mut values, mut bytes): (Vec<Datum>, Vec<u8>) = (Vec::new(), Vec::new());
    let mut failed = None;
    let mut scan = handle.heap.scan(&snapshot, None);
    progress.set(Count::BlocksTotal, u64::from(handle.heap.pages()?));
    loop {
        sched::check_interrupts()?;
        let more = scan.next_page(cx.tx, |_, root, data| {
            values.clear();
            bytes.clear();
            let encoded = row::decode(&handle.columns, data, &wanted, &mut values).and_then(|()| {
                places.iter().zip(&codec.columns).try_for_each(|(place, (_, ty, order))| {
                    types::key::encode(*ty, &values[*place], *order, &mut bytes)
                })
            });
            match encoded {
                Ok(()) => {
                    if let Some(n) = values.iter().position(Datum::is_null) {
                        *null_in = Some(wanted[n]);
                    }
                    keys.push(&bytes, root);
                }
                Err(error) => failed = Some(error),
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if !more {
            return Ok(keys);
        }
        progress.add(Count::BlocksDone, 1);
    }
}

/// The row behind a root, in table order.
fn row_at(cx: &ExecContext<'_>, handle: &TableHandle, root: TupleId) -> Result<Vec<Datum>> {
    let mut snapshot = cx.tx.latest_snapshot();
    snapshot.command = cx.tx.command() + 1;
    match handle.heap.fetch(cx.tx, &snapshot, root, |_, data| data.to_vec())? {
        Some(data) => handle.decode_all(&data),
        None => Ok(vec![Datum::Null; handle.table.columns.len()]),
    }
}

/// Fills the index's new files.
///
/// # Errors
/// `23505` when a unique key is there twice; I/O; interrupts.
pub fn fill(cx: &mut ExecContext<'_>, table: &Table, index: &Index) -> Result<()> {
    let handle = TableHandle::open(cx.engine, &std::sync::Arc::new(table.clone()), cx.format)?;
    let codec = KeyCodec::new(table, index);
    if !index.is_plain() {
        return fill_computed(cx, table, index, &handle, &codec);
    }
    let progress = Reporting::begin(Kind::CreateIndex, "CREATE INDEX", (cx.database.1, table.oid));
    progress.set_phase("building index: scanning table");
    let mut null_in = None;
    let mut keys = collect(cx, &handle, &codec, &mut null_in, &progress)?;
    progress.set(Count::RowsTotal, keys.len() as u64);
    if let Some(column) = null_in.filter(|_| index.primary) {
        let name = &table.columns[usize::from(column)].name;
        return Err(super::constraint::contains_nulls(cx, table, name));
    }
    progress.set_phase("building index: sorting live tuples");
    keys.sort();
    sched::check_interrupts()?;
    if index.unique {
        let view = cx.catalog_tx.view();
        let cx = &*cx;
        keys.equal_neighbours(|first, _| {
            let row = row_at(cx, &handle, first)?;
            let null = codec.columns.iter().any(|(n, _, _)| row[usize::from(*n)].is_null());
            if null && !index.nulls_equal {
                return Ok(());
            }
            Err(duplicated_in_build(&view, table, index, &row, cx.format))
        })?;
    }
    progress.set_phase("building index: loading tuples in tree");
    let mut keys = keys.into_iter().inspect(|_| progress.add(Count::RowsDone, 1));
    BTree::build(&cx.engine.storage, RelId(index.rel), &mut keys)?;
    Ok(())
}

/// As [`fill`], for an index with expressions or a condition. They are evaluated between pages.
fn fill_computed(
    cx: &mut ExecContext<'_>,
    table: &Table,
    index: &Index,
    handle: &TableHandle,
    codec: &KeyCodec,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    // Keys with their rows, to tell which one was there twice.
    let mut keys: Vec<(Vec<u8>, TupleId, Option<Vec<Datum>>)> = Vec::new();
    for_each_computed(cx, table, index, handle, codec, &mut |bytes, root, null, row| {
        let rival = index.unique && (!null || index.nulls_equal);
        keys.push((bytes, root, rival.then_some(row)));
    })?;
    keys.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    for pair in keys.windows(2) {
        if let ([(a, _, Some(row)), (b, _, Some(_))], true) = (pair, index.unique)
            && a == b
        {
            return Err(duplicated_in_build(&view, table, index, row, cx.format));
        }
    }
    let mut all = keys.into_iter().map(|(key, root, _)| Ok((key, root)));
    BTree::build(&cx.engine.storage, RelId(index.rel), &mut all)?;
    Ok(())
}

/// Calls `each` with key, root, whether a key column is NULL, and the row with what the index computes,
/// for all rows that the index holds.
fn for_each_computed(
    cx: &mut ExecContext<'_>,
    table: &Table,
    index: &Index,
    handle: &TableHandle,
    codec: &KeyCodec,
    each: &mut dyn FnMut(Vec<u8>, TupleId, bool, Vec<Datum>),
) -> Result<()> {
    let exprs = computed_by(cx, table, index)?;
    let wanted: Vec<u16> = (0..table.columns.len() as u16).collect();
    let mut snapshot = cx.tx.latest_snapshot();
    snapshot.command = cx.tx.command() + 1;
    with_run(cx, |run| {
        let mut scan = handle.heap.scan(&snapshot, None);
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
            for (root, mut row) in page {
                for expr in &exprs {
                    let value = eval::eval(expr, Row::Values(&row[..wanted.len()]), run)?;
                    row.push(value);
                }
                if codec.holds(&row) {
                    let mut bytes = Vec::new();
                    let null = codec.encode(&row, &mut bytes)?;
                    each(bytes, root, null, row);
                }
            }
            if !more {
                return Ok(());
            }
        }
    })
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
    let shared = std::sync::Arc::new(table.clone());
    let handle = TableHandle::open(cx.engine, &shared, cx.format)?;
    let codec = KeyCodec::new(table, index);
    let progress = Reporting::begin(
        Kind::CreateIndex,
        "CREATE INDEX CONCURRENTLY",
        (cx.database.1, table.oid),
    );
    progress.set_phase("building index: scanning table");
    let mut keys = Keys::Packed(0, Vec::new());
    if index.is_plain() {
        keys = collect(cx, &handle, &codec, &mut None, &progress)?;
    } else {
        for_each_computed(cx, table, index, &handle, &codec, &mut |bytes, root, _, _| {
            keys.push(&bytes, root);
        })?;
    }
    progress.set(Count::RowsTotal, keys.len() as u64);
    progress.set_phase("building index: sorting live tuples");
    keys.sort();
    progress.set_phase("building index: loading tuples in tree");
    let tree = BTree::open(&cx.engine.storage, RelId(index.rel));
    for entry in keys.into_iter() {
        sched::check_interrupts()?;
        let (key, root) = entry?;
        tree.insert(cx.tx, &key, root, Unique::No)?;
        progress.add(Count::RowsDone, 1);
    }
    if !index.unique {
        return Ok(());
    }
    progress.set_phase("index validation: scanning index");
    let rivals = equal_entries(cx, &tree)?;
    let computed = computed_by(cx, table, index)?;
    let found = with_run(cx, |run| find_duplicate(&shared, index, &computed, &rivals, run))?;
    match found {
        Some(row) => {
            let view = cx.catalog_tx.view();
            Err(duplicated_in_build(&view, table, index, &row, cx.format))
        }
        None => Ok(()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tid(block: u32) -> TupleId {
        TupleId { block, offset: 1 }
    }

    fn sorted(keys: &[(&[u8], u32)]) -> Vec<(Vec<u8>, TupleId)> {
        let mut all = Keys::Packed(0, vec![]);
        keys.iter().for_each(|(k, b)| all.push(k, tid(*b)));
        all.sort();
        all.into_iter().map(|e| e.unwrap_or_else(|e| panic!("{e}"))).collect()
    }

    #[test]
    fn packed_and_long_keys_sort_alike() {
        let short: [(&[u8], u32); 3] = [(&[2, 1], 1), (&[1, 9], 2), (&[2, 1], 0)];
        let order: Vec<u32> = sorted(&short).iter().map(|(_, t)| t.block).collect();
        assert_eq!(order, [2, 0, 1]);
        let mut mixed = short.to_vec();
        mixed.push((&[1, 9, 0], 3));
        let order: Vec<u32> = sorted(&mixed).iter().map(|(_, t)| t.block).collect();
        assert_eq!(order, [2, 3, 0, 1]);
    }

    #[test]
    fn equal_neighbours_are_found_in_both_forms() {
        for extra in [&b"zz"[..], &b"longer than ten bytes"[..]] {
            let mut keys = Keys::Packed(0, vec![]);
            for (key, block) in [(&b"aa"[..], 1), (b"bb", 2), (b"aa", 3), (extra, 4)] {
                keys.push(key, tid(block));
            }
            keys.sort();
            let mut found = vec![];
            let result = keys.equal_neighbours(|a, b| {
                found.push((a.block, b.block));
                Ok(())
            });
            assert_eq!((result, found), (Ok(()), vec![(1, 3)]));
        }
    }
}

//! `brin_summarize_new_values` and kin: summaries of ranges that have none, and ranges without one.

use std::sync::Arc;

use access::{AnyIndex, Heap};
use base::{RelId, Result, err};
use catalog::{AclKind, Index, Table};
use types::func::SessionFunction as F;
use types::{Datum, row};

use crate::context::ExecContext;
use crate::rows::Row;
use crate::run::Run;
use crate::spi::{with_context, with_run};
use crate::table::{KeyCodec, TableHandle};
use crate::{eval, index_search, rights, security};

/// A number that stands for all ranges.
const ALL: i64 = u32::MAX as i64;

/// Calls one of the functions.
///
/// # Errors
/// `42809`, `42501`, `22003`; those of [`summarize`].
pub(super) fn call(function: F, args: &[Datum], run: &mut Run<'_, '_>) -> Result<Datum> {
    let id = super::oid_at(args, 0);
    let block = match args.get(1) {
        Some(Datum::Int8(block)) => *block,
        _ => ALL,
    };
    if !(0..=ALL).contains(&block) || (function == F::BrinDesummarizeRange && block == ALL) {
        base::bail!(NUMERIC_VALUE_OUT_OF_RANGE, "block number out of range: {block}");
    }
    let view = run.cx.catalog_tx.view();
    let Some(index) = view.index(id) else {
        return Err(match view.table(id) {
            Some(table) => err!(WRONG_OBJECT_TYPE, "\"{}\" is not an index", table.name),
            None => err!(UNDEFINED_TABLE, "could not open index with OID {id}"),
        });
    };
    let Some(table) = view.table(index.table).cloned() else { return Ok(Datum::Null) };
    if index.method != base::AccessMethod::Brin {
        base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a BRIN index", index.name);
    }
    rights::require_owner(run.cx, AclKind::Table, table.oid, "index", &index.name)?;
    if function == F::BrinDesummarizeRange {
        let codec = KeyCodec::new(&table, index);
        let files = index_search::open_for(&codec, index, &run.cx.engine.storage);
        if let AnyIndex::Brin(brin) = files {
            brin.desummarize(run.cx.tx.manager(), brin.range_of(block as u32))?;
        }
        return Ok(Datum::text(""));
    }
    let only = (block != ALL).then_some(block as u32);
    let count = summarize(run.cx, &table, index, only, true)?;
    Ok(Datum::Int4(i32::try_from(count).unwrap_or(i32::MAX)))
}

/// Summarizes ranges that have no summary: the one with a page, or all; `partial`: also the last one while the table
/// doesn't fill it yet. Returns how many.
///
/// # Errors
/// I/O, interrupts, those of the index's expressions.
pub fn summarize(
    cx: &mut ExecContext<'_>,
    table: &Arc<Table>,
    index: &Index,
    only: Option<u32>,
    partial: bool,
) -> Result<u32> {
    let texts: Vec<&str> = index.expressions().collect();
    let computed = with_context(cx, |cx| sql::stored::row_expressions(cx, table, &texts))?;
    security::restricted(cx, table.owner, |cx| {
        with_run(cx, |run| {
            let codec = KeyCodec::new(table, index);
            let storage = &run.cx.engine.storage;
            let AnyIndex::Brin(brin) = index_search::open_for(&codec, index, storage) else {
                return Ok(0);
            };
            let heap = Heap::open(storage, RelId(table.rel));
            let pages = heap.pages()?;
            let ranges = match only {
                Some(block) if block >= pages => 0..0,
                Some(block) => brin.range_of(block)..brin.range_of(block) + 1,
                None => 0..pages.div_ceil(brin.pages_per_range.max(1)),
            };
            let handle = TableHandle::open(run.cx.engine, table, run.cx.format)?;
            let mut count = 0;
            for range in ranges {
                let blocks = brin.pages_of(range);
                if blocks.end > pages && !partial {
                    break;
                }
                let manager = run.cx.engine.txn.clone();
                if !brin.begin_summary(&manager, range)? {
                    continue;
                }
                let done = (blocks.start..blocks.end.min(pages)).try_for_each(|block| {
                    sched::check_interrupts()?;
                    for bytes in heap.versions(&manager, block)? {
                        let row = whole(&handle, &bytes, &computed, run)?;
                        if codec.holds(&row) {
                            let mut key = Vec::new();
                            codec.encode(&row, &mut key)?;
                            brin.widen(&manager, range, &key)?;
                        }
                    }
                    Ok(())
                });
                if let Err(error) = done {
                    // Half a summary would hide rows.
                    brin.desummarize(&manager, range)?;
                    return Err(error);
                }
                brin.finish_summary(&manager, range)?;
                count += 1;
            }
            Ok(count)
        })
    })
}

/// A row in table order with what the index computes behind it.
fn whole(
    handle: &TableHandle,
    bytes: &[u8],
    computed: &[sql::Expr],
    run: &mut Run<'_, '_>,
) -> Result<Vec<Datum>> {
    let width = handle.table.columns.len();
    let wanted: Vec<u16> = (0..width as u16).collect();
    let mut row = Vec::with_capacity(width + computed.len());
    row::decode(&handle.columns, bytes, &wanted, &mut row)?;
    for expr in computed {
        let value = eval::eval(expr, Row::Values(&row[..width]), run)?;
        row.push(value);
    }
    Ok(row)
}

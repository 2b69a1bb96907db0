//! CLUSTER: writes a table anew in the order of an index, and notes the index for the next time.

use base::{Result, err};
use catalog::{Index, Table};
use exec::context::ExecContext;
use exec::relation_lock;
use exec::session::quote_identifier;
use sql::utility::Name;
use txn::LockMode;

use crate::maintain::clustered::{index_of, note};

/// CLUSTER of a table by an index, or by the one that it was clustered by before; of all such tables
/// that are the session's role's.
///
/// # Errors
/// `42704`, `42809`, `0A000`; those of the rewrite.
pub fn run(
    table: Option<&Name>,
    index: Option<&str>,
    verbose: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let Some(name) = table else {
        let view = cx.catalog_tx.view();
        let tables: Vec<u32> = view.indexes().filter(|i| i.clustered).map(|i| i.table).collect();
        for id in tables {
            sched::check_interrupts()?;
            if !is_own(cx, id) {
                continue;
            }
            relation_lock::lock(cx, id, LockMode::AccessExclusive)?;
            let view = cx.catalog_tx.view();
            let Some(table) = view.table(id) else { continue };
            let found = view.indexes_of(table).into_iter().find(|i| i.clustered);
            if let Some(index) = found {
                cluster(cx, Table::clone(table), &index, verbose)?;
            }
        }
        return Ok(());
    };
    let table = relation_lock::open_owned(cx, name, LockMode::AccessExclusive)?;
    if table.is_partitioned() {
        return cluster_partitions(cx, &table, index, verbose);
    }
    if table.rel == 0 {
        base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table or materialized view", table.name);
    }
    relation_lock::expect_checked(cx, &table, "CLUSTER")?;
    let index = match index {
        Some(name) => index_of(cx, &table, name)?,
        None => {
            let view = cx.catalog_tx.view();
            let found = view.indexes_of(&table).into_iter().find(|i| i.clustered);
            let found = found.ok_or_else(|| {
                err!(
                    UNDEFINED_OBJECT,
                    "there is no previously clustered index for table \"{}\"",
                    table.name
                )
            });
            Index::clone(&*found?)
        }
    };
    note(cx, table.oid, Some(index.oid))?;
    let table = relation_lock::refresh(cx, table.oid)?;
    cluster(cx, table, &index, verbose)
}

/// Each partition with rows by its part of the index. The whole's own index is not noted: partitions to come would not
/// be in its order.
fn cluster_partitions(
    cx: &mut ExecContext<'_>,
    table: &Table,
    index: Option<&str>,
    verbose: bool,
) -> Result<()> {
    let Some(name) = index else {
        base::bail!(
            UNDEFINED_OBJECT,
            "there is no previously clustered index for table \"{}\"",
            table.name
        );
    };
    let whole = index_of(cx, table, name)?.oid;
    for id in crate::inherit::all_below(cx, table.oid)? {
        sched::check_interrupts()?;
        // Somebody else's is passed over, and not waited for.
        if !is_own(cx, id) {
            continue;
        }
        relation_lock::lock(cx, id, LockMode::AccessExclusive)?;
        let Some(part) = cx.catalog_tx.view().table(id).cloned() else { continue };
        if part.is_partitioned() || !is_own(cx, id) {
            continue;
        }
        let view = cx.catalog_tx.view();
        let Some(index) = view.part_of_index(&part, whole).cloned() else { continue };
        relation_lock::expect_checked(cx, &part, "CLUSTER")?;
        note(cx, id, Some(index.oid))?;
        let part = relation_lock::refresh(cx, id)?;
        cluster(cx, part, &index, verbose)?;
    }
    Ok(())
}

/// Whether a table is the session's role's.
fn is_own(cx: &mut ExecContext<'_>, id: u32) -> bool {
    let view = cx.catalog_tx.view();
    exec::rights::of(cx, &view).owns(cx.role, catalog::AclKind::Table, id)
}

/// Writes the table anew.
fn cluster(cx: &mut ExecContext<'_>, table: Table, index: &Index, verbose: bool) -> Result<()> {
    let name = super::qualified(cx, &table);
    super::tell(cx, verbose, format!("clustering \"{name}\" using sequential scan and sort"));
    let before = super::versions(cx, &table, verbose)?;
    let meter = super::verbose::Meter::new();
    let view = cx.catalog_tx.view();
    let quoted = |n: u16| quote_identifier(&table.columns[usize::from(n) - 1].name);
    let key = |c: &catalog::IndexColumn| {
        let what = match &c.expression {
            Some(e) => format!("({})", e.sql),
            None => quoted(c.column),
        };
        let way = if c.descending { "DESC" } else { "ASC" };
        let nulls = if c.nulls_first { "FIRST" } else { "LAST" };
        format!("{what} {way} NULLS {nulls}")
    };
    // A tree without an order of its own: the table keeps the one that it has.
    let keys = index.columns.iter().filter(|_| index.method.properties().ordered);
    let order: Vec<String> = keys.map(key).collect();
    let list: Vec<String> = (1..=table.columns.len() as u16)
        .map(|n| match table.columns[usize::from(n) - 1].dropped {
            true => "NULL".to_owned(),
            false => quoted(n),
        })
        .collect();
    let list = if list.is_empty() { String::new() } else { list.join(", ") };
    let from = exec::spi::rows_of(&view, &table);
    let order = match order.is_empty() {
        true => String::new(),
        false => format!(" ORDER BY {}", order.join(", ")),
    };
    let select = format!("SELECT {list} FROM {from}{order}");
    let rows = crate::rewrite(cx, table, &select, None)?;
    if let Some(before) = before {
        super::verbose::rewritten(cx, &name, before, rows, &meter);
    }
    Ok(())
}

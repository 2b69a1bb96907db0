//! VACUUM, ANALYZE and CLUSTER.

mod analyze;
pub mod cluster;

use std::sync::Arc;
use std::time::Duration;

use access::vacuum::Pace;
use access::{BTree, Heap};
use base::settings::{Settings, setting};
use base::{Fork, RelId, Result};
use catalog::{AclKind, Object, Table, TableStats};
use sched::observe::progress::{Kind, Reporting};
use sql::utility::Name;
use txn::LockMode;

use exec::context::ExecContext;
use exec::overflow::Overflow;
use exec::session::quote_identifier;
use exec::{relation_lock, rights, security};

/// VACUUM and ANALYZE of some tables, or of all.
///
/// # Errors
/// I/O, interrupts, `42P01`.
pub fn run(
    names: &[Name],
    vacuum: bool,
    analyze: bool,
    full: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let mode = if full { LockMode::AccessExclusive } else { LockMode::ShareUpdateExclusive };
    let mut tables = Vec::new();
    let what = if vacuum { "vacuum" } else { "analyze" };
    if names.is_empty() {
        for table in cx.catalog_tx.view().tables().filter(|t| t.rel != 0) {
            if is_allowed(cx, table, what) {
                tables.push(table.oid);
            }
        }
    }
    for name in names {
        let table = relation_lock::named_table(cx, name)?;
        if !is_allowed(cx, &table, what) {
            continue;
        }
        let table = relation_lock::open_table(cx, name, mode)?;
        if table.rel == 0 {
            let message = format!(
                "skipping \"{}\" --- cannot {what} non-tables or special system tables",
                table.name
            );
            cx.hooks.notice("WARNING", base::err!(WARNING, "{message}"));
            continue;
        }
        tables.push(table.oid);
    }
    for id in tables {
        sched::check_interrupts()?;
        relation_lock::lock(cx, id, mode)?;
        let view = cx.catalog_tx.view();
        let Some(table) = view.table(id).cloned() else {
            continue;
        };
        match (vacuum, full) {
            (true, true) => vacuum_full(cx, &table)?,
            (true, false) => vacuum_plain(cx, &table)?,
            (false, _) => {}
        }
        if analyze {
            security::restricted(cx, table.owner, |cx| analyze::run(cx, &table))?;
        }
    }
    Ok(())
}

/// Whether the session's role may; warns if not. The owner of the database may, too.
fn is_allowed(cx: &mut ExecContext<'_>, table: &Table, what: &str) -> bool {
    let view = cx.catalog_tx.view();
    let rights = rights::of(cx, &view);
    if rights.owns(cx.role, AclKind::Table, table.oid)
        || rights.owns(cx.role, AclKind::Database, cx.database.1)
    {
        return true;
    }
    let name = &table.name;
    let message = format!("skipping \"{name}\" --- only table or database owner can {what} it");
    cx.hooks.notice("WARNING", base::Error::new(base::sqlstate::WARNING, message));
    false
}

fn vacuum_plain(cx: &mut ExecContext<'_>, table: &Arc<Table>) -> Result<()> {
    let storage = &cx.engine.storage;
    let heap = Heap::open(storage, RelId(table.rel));
    let view = cx.catalog_tx.view();
    let indexes: Vec<BTree> =
        view.indexes_of(table).iter().map(|i| BTree::open(storage, RelId(i.rel))).collect();
    let progress = Reporting::begin(Kind::Vacuum, "VACUUM", (cx.database.1, table.oid));
    let mut pace = pace(cx.settings);
    let done = access::vacuum::vacuum(cx.tx.manager(), &heap, &indexes, &mut pace, &progress)?;
    let overflow = Overflow::new(storage, RelId(table.rel));
    if overflow.exists()? {
        let pieces = overflow.heap();
        access::vacuum::vacuum(cx.tx.manager(), &pieces, &[], &mut pace, &progress)?;
    }
    let mut stats = match view.stats(table.oid) {
        Some(stats) => TableStats::clone(stats),
        None => TableStats { table: table.oid, ..TableStats::default() },
    };
    let (rows, visible) = (done.live as f64, heap.visible_pages());
    if (stats.rows, stats.pages, stats.visible) != (rows, done.pages, visible) {
        stats.rows = rows;
        stats.pages = done.pages;
        stats.visible = visible;
        cx.catalog_tx.put(cx.tx, Object::Stats(Box::new(stats)))?;
    }
    Ok(())
}

/// What the session's settings say about resting.
fn pace(settings: &Settings) -> Pace {
    let cost = |id| settings.int(id).unsigned_abs();
    Pace::new(
        Duration::from_secs_f64(settings.real(setting::VACUUM_COST_DELAY) / 1000.0),
        cost(setting::VACUUM_COST_LIMIT),
        [
            setting::VACUUM_COST_PAGE_HIT,
            setting::VACUUM_COST_PAGE_MISS,
            setting::VACUUM_COST_PAGE_DIRTY,
        ]
        .map(cost),
    )
}

/// Writes the table anew without its dead rows.
fn vacuum_full(cx: &mut ExecContext<'_>, table: &Arc<Table>) -> Result<()> {
    let view = cx.catalog_tx.view();
    let schema = view.schema(table.schema).map_or("public", |s| s.name.as_str());
    let list: Vec<String> = table
        .columns
        .iter()
        .map(|c| if c.dropped { "NULL".to_owned() } else { quote_identifier(&c.name) })
        .collect();
    let list = if list.is_empty() { String::new() } else { list.join(", ") };
    let select = format!(
        "SELECT {list} FROM ONLY {}.{}",
        quote_identifier(schema),
        quote_identifier(&table.name)
    );
    crate::rewrite(cx, Table::clone(table), &select, None)
}

/// Pages of a table's main fork.
fn pages(cx: &ExecContext<'_>, table: &Table) -> Result<u32> {
    cx.engine.storage.block_count(RelId(table.rel), Fork::Main)
}

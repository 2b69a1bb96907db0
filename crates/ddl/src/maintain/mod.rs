//! VACUUM, ANALYZE and CLUSTER.

mod analyze;
pub mod cluster;
pub mod clustered;
mod elements;
mod extended;
mod file_end;
pub mod relation_statistics;
pub mod verbose;

use std::sync::Arc;
use std::time::Duration;

use access::vacuum::Pace;
use access::{AnyIndex, Heap};
use base::settings::{Settings, setting};
use base::{Fork, RelId, Result};
use catalog::{AclKind, Object, Table, TableStats};
use exec::context::ExecContext;
use exec::overflow::Overflow;
use exec::session::quote_identifier;
use exec::{index_search, relation_lock, rights, security};
use sched::observe::progress::{Kind, Reporting};
use sql::utility::Name;
use txn::LockMode;

/// The work that VACUUM and ANALYZE are to do.
#[derive(Clone, Copy)]
pub struct Work {
    /// VACUUM.
    pub vacuum: bool,
    /// ANALYZE.
    pub analyze: bool,
    /// FULL.
    pub full: bool,
    /// VERBOSE: say what was done.
    pub verbose: bool,
    /// PARALLEL.
    pub parallel: Option<u16>,
    /// TRUNCATE.
    pub truncate: Option<bool>,
    /// SKIP_LOCKED.
    pub skip_locked: bool,
}

impl Work {
    fn what(self) -> &'static str {
        if self.vacuum { "vacuum" } else { "analyze" }
    }

    fn mode(self) -> LockMode {
        if self.full { LockMode::AccessExclusive } else { LockMode::ShareUpdateExclusive }
    }
}

/// A table to work at.
struct Task {
    table: u32,
    /// The statement names it: a partition of a table that it names is passed over in silence.
    named: bool,
}

/// Warns that a table is passed over.
fn skip(cx: &mut ExecContext<'_>, message: String) {
    cx.hooks.notice("WARNING", base::Error::new(base::sqlstate::WARNING, message));
}

fn lock_missing(cx: &mut ExecContext<'_>, what: &str, name: &str) {
    skip(cx, format!("skipping {what} of \"{name}\" --- lock not available"));
}

/// The tables that a name stands for: one, or those with the rows of a partitioned one and itself.
fn named(cx: &mut ExecContext<'_>, name: &Name, work: Work, tasks: &mut Vec<Task>) -> Result<()> {
    let what = work.what();
    if is_system(cx, name, what) {
        return Ok(());
    }
    let table = relation_lock::named_table(cx, name)?;
    if work.skip_locked && !relation_lock::try_lock(cx, table.oid, LockMode::AccessShare)? {
        lock_missing(cx, what, &table.name);
        return Ok(());
    }
    if !is_allowed(cx, &table, what) {
        return Ok(());
    }
    let table = match work.skip_locked {
        true => table,
        false => relation_lock::open_table(cx, name, work.mode())?,
    };
    if table.kind == catalog::TableKind::Foreign {
        let message = match work.vacuum {
            true => format!(
                "skipping \"{}\" --- cannot vacuum non-tables or special system tables",
                table.name
            ),
            false => format!("skipping \"{}\" --- cannot analyze this foreign table", table.name),
        };
        skip(cx, message);
        return Ok(());
    }
    if table.is_partitioned() {
        let below = match work.skip_locked {
            true => crate::inherit::all_below(cx, table.oid)?,
            false => crate::inherit::descendants(cx, table.oid, LockMode::AccessShare)?,
        };
        for id in below {
            let view = cx.catalog_tx.view();
            let has_rows = |t: &Table| !t.is_partitioned() && t.foreign.is_none();
            if view.table(id).is_some_and(|t| has_rows(t)) {
                tasks.push(Task { table: id, named: false });
            }
        }
    } else if table.rel == 0 {
        let message = format!(
            "skipping \"{}\" --- cannot {what} non-tables or special system tables",
            table.name
        );
        skip(cx, message);
        return Ok(());
    }
    tasks.push(Task { table: table.oid, named: true });
    Ok(())
}

/// VACUUM and ANALYZE of some tables, or of all.
///
/// # Errors
/// I/O, interrupts, `42P01`.
pub fn run(names: &[Name], work: Work, cx: &mut ExecContext<'_>) -> Result<()> {
    let mut tasks = Vec::new();
    if names.is_empty() {
        for table in cx
            .catalog_tx
            .view()
            .tables()
            .filter(|t| t.rel != 0 || work.analyze && t.is_partitioned())
        {
            if is_allowed(cx, table, work.what()) {
                tasks.push(Task { table: table.oid, named: false });
            }
        }
    }
    for name in names {
        named(cx, name, work, &mut tasks)?;
    }
    for task in tasks {
        sched::check_interrupts()?;
        if !work.skip_locked {
            relation_lock::lock(cx, task.table, work.mode())?;
        } else if !relation_lock::try_lock(cx, task.table, work.mode())? {
            if let (true, Some(table)) = (task.named, cx.catalog_tx.view().table(task.table)) {
                let name = table.name.clone();
                lock_missing(cx, work.what(), &name);
            }
            continue;
        }
        let view = cx.catalog_tx.view();
        if let Some(table) = view.table(task.table).cloned() {
            maintain(cx, &table, work)?;
        }
    }
    Ok(())
}

/// Does the work at one table, which is locked.
fn maintain(cx: &mut ExecContext<'_>, table: &Arc<Table>, work: Work) -> Result<()> {
    let Work { vacuum, analyze, full, verbose, .. } = work;
    if table.is_partitioned() {
        if analyze {
            let message = format!("analyzing \"{}\" inheritance tree", qualified(cx, table));
            tell(cx, verbose, message);
            let found = security::restricted(cx, table.owner, |cx| analyze::run_whole(cx, table))?;
            tell(cx, verbose, found);
        }
        return Ok(());
    }
    match (vacuum, full) {
        (true, true) => {
            let name = qualified(cx, table);
            tell(cx, verbose, format!("vacuuming \"{name}\""));
            let before = versions(cx, table, verbose)?;
            let meter = verbose::Meter::new();
            let rows = vacuum_full(cx, table)?;
            if let Some(before) = before {
                verbose::rewritten(cx, &name, before, rows, &meter);
            }
        }
        (true, false) => vacuum_plain(cx, table, work)?,
        (false, _) => {}
    }
    if analyze {
        let message = format!("analyzing \"{}\"", qualified(cx, table));
        tell(cx, verbose, message);
        let found = security::restricted(cx, table.owner, |cx| analyze::run(cx, table))?;
        tell(cx, verbose, found);
    }
    Ok(())
}

/// Whether a name is a table of the catalog, which is computed and wants no maintenance; warns where it would
/// not be allowed, or is no table.
fn is_system(cx: &mut ExecContext<'_>, name: &Name, what: &str) -> bool {
    let view = cx.catalog_tx.view();
    let schema = name.schema.as_deref();
    if schema.is_none() && view.relation(cx.search_path, None, &name.name).is_some() {
        return false;
    }
    let Some(found) = catalog::system::find(schema, &name.name) else { return false };
    let (name, oid) = (&found.name, base::Oid(found.oid));
    let message = if catalog::system::by_oid(oid).is_some_and(|t| t.is_view) {
        format!("skipping \"{name}\" --- cannot {what} non-tables or special system tables")
    } else if !rights::of(cx, &view).is_superuser(cx.role) {
        format!("skipping \"{name}\" --- only superuser can {what} it")
    } else {
        return true;
    };
    cx.hooks.notice("WARNING", base::err!(WARNING, "{message}"));
    true
}

/// Sends a line of VERBOSE.
fn tell(cx: &mut ExecContext<'_>, verbose: bool, message: String) {
    if verbose {
        cx.hooks.notice("INFO", base::Error::new(base::sqlstate::SUCCESSFUL_COMPLETION, message));
    }
}

/// The row versions and pages of a table before it is written anew, if VERBOSE is to say them.
fn versions(cx: &ExecContext<'_>, table: &Table, verbose: bool) -> Result<Option<(u64, u32)>> {
    if !verbose {
        return Ok(None);
    }
    let heap = Heap::open(&cx.engine.storage, RelId(table.rel));
    Ok(Some((access::vacuum::versions(&heap)?, pages(cx, table)?)))
}

fn qualified(cx: &mut ExecContext<'_>, table: &Table) -> String {
    let view = cx.catalog_tx.view();
    let schema = view.schema(table.schema).map_or("", |s| s.name.as_str());
    format!("{schema}.{}", table.name)
}

fn full_name(cx: &mut ExecContext<'_>, table: &Table) -> String {
    let name = qualified(cx, table);
    format!("{}.{name}", cx.database.0)
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

/// How many helpers go through indexes beside the statement's own thread: one for each further index that is large
/// enough (`min_parallel_index_scan_size`). A VACUUM that rests now and then (`vacuum_cost_delay`) has none: it is to be
/// slow.
fn index_helpers(
    cx: &mut ExecContext<'_>,
    table: &Table,
    indexes: &[AnyIndex],
    asked: Option<u16>,
) -> Result<usize> {
    if asked == Some(0) || indexes.len() < 2 {
        return Ok(0);
    }
    if base::Oid(table.oid).is_temporary() {
        if asked.is_some() {
            let message = format!(
                "disabling parallel option of vacuum on \"{}\" --- cannot vacuum temporary tables \
                 in parallel",
                table.name
            );
            cx.hooks.notice("WARNING", base::err!(WARNING, "{message}"));
        }
        return Ok(0);
    }
    let least = cx.settings.int(setting::MIN_PARALLEL_INDEX_SCAN_SIZE).max(0) as u64;
    let mut large = 0usize;
    for index in indexes {
        let pages = cx.engine.storage.block_count(index.rel(), Fork::Main)?;
        large += usize::from(u64::from(pages) >= least);
    }
    let most = cx.settings.int(setting::MAX_PARALLEL_MAINTENANCE_WORKERS).max(0) as usize;
    let asked = asked.map_or(usize::MAX, usize::from);
    let rests = cx.settings.real(setting::VACUUM_COST_DELAY) > 0.0;
    Ok(if rests { 0 } else { large.saturating_sub(1).min(most).min(asked) })
}

fn vacuum_plain(cx: &mut ExecContext<'_>, table: &Arc<Table>, work: Work) -> Result<()> {
    let (speaks, parallel) = (work.verbose, work.parallel);
    let name = full_name(cx, table);
    tell(cx, speaks, format!("vacuuming \"{name}\""));
    let before = pages(cx, table)?;
    let meter = verbose::Meter::new();
    let storage = &cx.engine.storage;
    let heap = Heap::open(storage, RelId(table.rel));
    let view = cx.catalog_tx.view();
    let indexes: Vec<AnyIndex> =
        view.indexes_of(table).iter().map(|i| index_search::open(i, storage)).collect();
    let progress = Reporting::begin(Kind::Vacuum, "VACUUM", (cx.database.1, table.oid));
    let mut pace = pace(cx.settings);
    let wanted = index_helpers(cx, table, &indexes, parallel)?;
    let (manager, launched) = (cx.tx.manager(), std::cell::Cell::new(0));
    let together = |work: &(dyn Fn(bool) -> Result<()> + Sync)| -> Result<()> {
        launched.set(exec::parallel::on_all(wanted, cx, work)?.max(launched.get()));
        Ok(())
    };
    let done = access::vacuum::vacuum(manager, &heap, &indexes, &together, &mut pace, &progress)?;
    let truncates = work.truncate.unwrap_or_else(|| table.is_truncated_by_vacuum());
    if truncates {
        file_end::truncate(cx, table, &heap, 0, speaks)?;
    }
    let overflow = Overflow::new(storage, RelId(table.rel));
    if overflow.exists()? {
        let pieces = overflow.heap();
        let alone = |work: &(dyn Fn(bool) -> Result<()> + Sync)| work(true);
        access::vacuum::vacuum(manager, &pieces, &[], &alone, &mut pace, &progress)?;
        if truncates {
            // One page stays: a file without any would count as one that has yet to be made.
            file_end::truncate(cx, table, &pieces, 1, speaks)?;
        }
    }
    let left = pages(cx, table)?;
    for index in view.indexes_of(table) {
        if index.method == base::AccessMethod::Brin && !index.invalid {
            exec::session::brin::summarize(cx, table, &index, None, false)?;
        }
    }
    let mut stats = match view.stats(table.oid) {
        Some(stats) => TableStats::clone(stats),
        None => TableStats { table: table.oid, ..TableStats::default() },
    };
    let (rows, visible) = (done.live as f64, heap.visible_pages());
    if (stats.rows, stats.pages, stats.visible) != (rows, left, visible) {
        stats.rows = rows;
        stats.pages = left;
        stats.visible = visible;
        cx.catalog_tx.put(cx.tx, Object::Stats(Box::new(stats)))?;
    }
    if speaks {
        if done.index_passes > 0 && wanted > 0 {
            tell(cx, true, verbose::launched(launched.get(), wanted));
        }
        let named = view.indexes_of(table).into_iter().map(|index| index.name.clone());
        let indexes: Vec<(String, AnyIndex)> = named.zip(indexes).collect();
        let message = verbose::vacuumed(cx, &name, (before, left), &done, &indexes, &meter)?;
        tell(cx, true, message);
    }
    Ok(())
}

/// The pace that the session's settings ask for.
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

/// Writes the table anew without its dead rows; how many rows it has.
fn vacuum_full(cx: &mut ExecContext<'_>, table: &Arc<Table>) -> Result<u64> {
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

//! Extended statistics: CREATE STATISTICS, ALTER STATISTICS … SET STATISTICS, and what becomes of them when columns of
//! their table change. ANALYZE fills them ([`crate::maintain`]).

use base::{Result, err};
use catalog::{AclKind, Defined, ExtendedStatistics, Object, Table, TableStats};
use exec::context::ExecContext;
use exec::rights;
use exec::spi::with_context;
use sql::define_statement::{DefineTarget, StatisticsDef};
use sql::utility::Persistence;

use super::open;
use crate::defined::place::{full, put};
use crate::{lock, name, notice, refresh};

/// CREATE STATISTICS.
///
/// # Errors
/// `42710`, `42501`.
pub fn create(def: &StatisticsDef, cx: &mut ExecContext<'_>) -> Result<()> {
    lock(cx, def.table, txn::LockMode::ShareUpdateExclusive)?;
    let table = refresh(cx, def.table)?;
    rights::require_table_owner(cx, &table)?;
    let (schema, chosen) = match &def.name {
        Some(name) => (name::creation_schema(cx, name, Persistence::Permanent)?, name.name.clone()),
        None => {
            rights::require_creation(cx, cx.role, table.schema)?;
            let names: Vec<&str> = def.names.iter().map(String::as_str).collect();
            let view = cx.catalog_tx.view();
            let taken = |name: &str| {
                view.extended_statistics().any(|s| s.schema == table.schema && s.name == name)
            };
            (table.schema, name::choose(&table.name, &names, "stat", &taken))
        }
    };
    name::reserve(cx, schema, &format!("statistics object {chosen}"))?;
    let view = cx.catalog_tx.view();
    if view.extended_statistics().any(|s| s.schema == schema && s.name == chosen) {
        let message = format!("statistics object \"{chosen}\" already exists");
        if def.if_not_exists {
            notice(cx, base::sqlstate::DUPLICATE_OBJECT, format!("{message}, skipping"));
            return Ok(());
        }
        return Err(err!(DUPLICATE_OBJECT, "{message}"));
    }
    let texts: Vec<&str> = def.expressions.iter().map(|e| e.sql.as_str()).collect();
    let uses = with_context(cx, |cx| sql::print::objects_in(cx, &table, texts))?;
    let oid = crate::new_oid(cx, table.oid)?;
    let made = ExtendedStatistics {
        oid,
        name: chosen,
        schema,
        owner: cx.role,
        table: table.oid,
        columns: def.columns.clone(),
        expressions: def.expressions.clone(),
        kinds: def.kinds.clone(),
        target: -1,
        uses,
    };
    put(cx, Defined::Statistics(made))
}

/// ALTER STATISTICS … SET STATISTICS.
///
/// # Errors
/// `42704`, `42501`.
pub fn set_target(
    wanted: &DefineTarget,
    rows: i32,
    if_exists: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    if if_exists && let Err(error) = super::find(wanted, cx) {
        let message = format!("{}, skipping", error.message());
        notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
        return Ok(());
    }
    let Defined::Statistics(mut found) = open(wanted, cx)? else {
        return Err(base::Error::internal("no statistics"));
    };
    found.target = rows;
    put(cx, Defined::Statistics(found))
}

/// The oid of statistics that a statement names.
///
/// # Errors
/// `42704`, `3F000`.
pub(super) fn lookup(
    name: &sql::utility::Name,
    view: &catalog::Snapshot,
    path: &[u32],
) -> Result<u32> {
    if let Some(schema) = &name.schema
        && view.schema_named(schema).is_none()
    {
        return Err(err!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist"));
    }
    match view.statistics_named(path, name.schema.as_deref(), &name.name) {
        Some(found) => Ok(found.oid),
        None => Err(err!(UNDEFINED_OBJECT, "statistics object \"{}\" does not exist", full(name))),
    }
}

/// `42501` unless the session's role owns the statistics.
pub(super) fn require_owner(
    id: u32,
    name: &sql::utility::Name,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let name = full(name);
    rights::require_owner(cx, AclKind::Defined, id, "statistics object", &name)
}

/// Forgets what ANALYZE found about a column whose type is another one now, alone and together with others.
///
/// # Errors
/// Those of the catalog.
pub fn forget_column(cx: &mut ExecContext<'_>, table: &Table, number: u16) -> Result<()> {
    let view = cx.catalog_tx.view();
    let Some(stats) = view.stats(table.oid) else { return Ok(()) };
    let mut stats = TableStats::clone(stats);
    let about = |id: u32| view.statistics_object(id).is_none_or(|s| s.uses_column(number));
    stats.extended.retain(|data| !about(data.statistics));
    let of_key = |id: u32| view.index(id).is_none_or(|i| i.uses_column(number));
    stats.keys.retain(|key| !of_key(key.index));
    if let Some(column) = stats.columns.get_mut(usize::from(number) - 1) {
        *column = catalog::object::ColumnStats::default();
    }
    cx.catalog_tx.put(cx.tx, Object::Stats(Box::new(stats)))
}

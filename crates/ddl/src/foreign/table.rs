//! Foreign tables: their making, and what ALTER TABLE may do to one.

use base::{Result, err};
use catalog::{Column, ForeignTable, Object, Table, TableKind};
use exec::context::ExecContext;
use sql::foreign::{ForeignClause, OptionChange};
use sql::utility::{AlterTable, ColumnDef};

use super::options::changed;
use super::place::{require_use, server_named, validator_of};
use crate::refresh;

/// `pg_attribute` and `pg_foreign_table`, as validators name what has options.
const COLUMN: u32 = 1249;
const TABLE: u32 = 3118;

/// The server and options of a new foreign table, and those of its columns.
///
/// # Errors
/// `42704`, `42501`, and those of options.
pub fn begin(
    clause: &ForeignClause,
    defs: &[ColumnDef],
    table: &mut Table,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let server = server_named(&clause.server, cx)?;
    require_use(&server, cx)?;
    let validator = validator_of(&cx.catalog_tx.view(), server.wrapper);
    let options = changed(&[], &clause.options, TABLE, validator, cx)?;
    for (column, def) in table.columns.iter_mut().zip(defs) {
        if !def.foreign_options.is_empty() {
            column.foreign_options = changed(&[], &def.foreign_options, COLUMN, validator, cx)?;
        }
    }
    table.foreign = Some(Box::new(ForeignTable { server: server.oid, options }));
    Ok(())
}

fn validator(table: &Table, cx: &mut ExecContext<'_>) -> u32 {
    let view = cx.catalog_tx.view();
    let server = table.foreign.as_ref().and_then(|f| view.foreign_server(f.server));
    server.map_or(0, |s| validator_of(&view, s.wrapper))
}

fn put(cx: &mut ExecContext<'_>, table: Table) -> Result<()> {
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

/// OPTIONS of ALTER FOREIGN TABLE.
///
/// # Errors
/// Those of options.
pub fn set_options(cx: &mut ExecContext<'_>, id: u32, changes: &[OptionChange]) -> Result<()> {
    let mut table = refresh(cx, id)?;
    let validator = validator(&table, cx);
    let Some(foreign) = &mut table.foreign else { return Ok(()) };
    foreign.options = changed(&foreign.options, changes, TABLE, validator, cx)?;
    put(cx, table)
}

/// ALTER COLUMN … OPTIONS.
///
/// # Errors
/// `42703`, `0A000`, and those of options.
pub fn set_column_options(
    cx: &mut ExecContext<'_>,
    id: u32,
    name: &str,
    changes: &[OptionChange],
) -> Result<()> {
    let mut table = refresh(cx, id)?;
    if crate::column::check_column_name(name).is_err() {
        base::bail!(FEATURE_NOT_SUPPORTED, "cannot alter system column \"{name}\"");
    }
    let Some((number, _)) = table.column(name) else {
        base::bail!(
            UNDEFINED_COLUMN,
            "column \"{name}\" of relation \"{}\" does not exist",
            table.name
        );
    };
    let validator = validator(&table, cx);
    let column = &mut table.columns[usize::from(number) - 1];
    column.foreign_options = changed(&column.foreign_options, changes, COLUMN, validator, cx)?;
    put(cx, table)
}

/// OPTIONS of a column that is added.
///
/// # Errors
/// Those of options.
pub fn new_column(
    table: &Table,
    column: &mut Column,
    def: &ColumnDef,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    if !def.foreign_options.is_empty() && table.foreign.is_some() {
        let validator = validator(table, cx);
        column.foreign_options = changed(&[], &def.foreign_options, COLUMN, validator, cx)?;
    }
    Ok(())
}

/// `42809` for steps that only foreign tables take, or that they don't.
///
/// # Errors
/// See above.
pub fn check_step(table: &Table, step: &AlterTable) -> Result<()> {
    let foreign = table.kind == TableKind::Foreign;
    let action =
        match step {
            AlterTable::ForeignOptions(_) if !foreign => "OPTIONS",
            AlterTable::ColumnForeignOptions { .. } if !foreign => "ALTER COLUMN ... OPTIONS",
            AlterTable::SetLogged(true) if foreign => "SET LOGGED",
            AlterTable::SetLogged(false) if foreign => "SET UNLOGGED",
            AlterTable::SetMethod(_) if foreign => "SET ACCESS METHOD",
            AlterTable::ReplicaIdentity(..) if foreign => "REPLICA IDENTITY",
            AlterTable::ClusterOn(Some(_)) if foreign => "CLUSTER ON",
            AlterTable::ClusterOn(None) if foreign => "SET WITHOUT CLUSTER",
            AlterTable::RowSecurity(true) if foreign => "ENABLE ROW SECURITY",
            AlterTable::RowSecurity(false) if foreign => "DISABLE ROW SECURITY",
            AlterTable::ForceRowSecurity(true) if foreign => "FORCE ROW SECURITY",
            AlterTable::ForceRowSecurity(false) if foreign => "NO FORCE ROW SECURITY",
            AlterTable::SetOptions(_) if foreign => "SET",
            AlterTable::ResetOptions(_) if foreign => "RESET",
            AlterTable::AlterConstraint { .. } if foreign => "ALTER CONSTRAINT",
            AlterTable::AddIdentity { .. } if foreign => return Ok(()),
            AlterTable::Keep {
                how: sql::column_keeping::ColumnKeeping::Compression(_), ..
            } if foreign => "ALTER COLUMN ... SET COMPRESSION",
            AlterTable::EnableRule { enabled, .. } if foreign => match enabled {
                'O' => "ENABLE RULE",
                'A' => "ENABLE ALWAYS RULE",
                'R' => "ENABLE REPLICA RULE",
                _ => "DISABLE RULE",
            },
            _ => return Ok(()),
        };
    let what = match table.kind {
        TableKind::Foreign => "foreign tables",
        TableKind::View => "views",
        TableKind::Materialized => "materialized views",
        TableKind::System => "system tables",
        TableKind::Table if table.is_partitioned() => "partitioned tables",
        TableKind::Table => "tables",
    };
    Err(err!(
        WRONG_OBJECT_TYPE,
        "ALTER action {action} cannot be performed on relation \"{}\"",
        table.name
    )
    .detail(format!("This operation is not supported for {what}.")))
}

//! Columns as statements declare them, and the files of a new relation.

use base::{Error, RelId, Result, err};
use catalog::{Column, Table};
use exec::context::ExecContext;
use sql::utility::{AlterTable, ColumnDef};
use types::row::MAX_COLUMNS;

/// A column as the catalog keeps it.
pub fn column(def: &ColumnDef) -> Column {
    Column {
        not_null: def.not_null,
        default: def.default.clone(),
        default_uses: def.default_uses.clone(),
        generated: def.generated,
        collation: def.collation,
        inherited: def.inherited,
        only_inherited: def.only_inherited,
        ..Column::new(&def.name, def.ty.0, def.typmod)
    }
}

/// Names of system columns can't be used.
pub fn check_column_name(name: &str) -> Result<()> {
    if ["tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"].contains(&name) {
        base::bail!(DUPLICATE_COLUMN, "column name \"{name}\" conflicts with a system column name");
    }
    Ok(())
}

/// A table has room for so many columns; dropped ones count.
///
/// # Errors
/// `54011`
pub fn check_count(columns: usize) -> Result<()> {
    if columns > MAX_COLUMNS {
        base::bail!(TOO_MANY_COLUMNS, "tables can have at most {MAX_COLUMNS} columns");
    }
    Ok(())
}

/// Empty files for a table or index, which go away if the transaction rolls back.
///
/// # Errors
/// I/O.
pub fn new_files(cx: &mut ExecContext<'_>, relation: u32) -> Result<RelId> {
    if base::Oid(relation).is_temporary() {
        let rel = RelId(cx.catalog_tx.new_temporary_id(true)?);
        cx.engine.storage.create_relation(rel)?;
        return Ok(rel);
    }
    // A new relation is the transaction's own: it needs an id for the files to be swept after a
    // crash.
    cx.tx.xid()?;
    let rel = RelId(cx.engine.txn.next_oid()?);
    cx.catalog_tx.drop_files_at_abort(rel);
    cx.engine.storage.create_relation(rel)?;
    Ok(rel)
}

/// The name of a step that only tables take.
pub(super) fn table_action(step: &AlterTable) -> Option<&'static str> {
    Some(match step {
        AlterTable::AddColumn { .. } => "ADD COLUMN",
        AlterTable::DropColumn { .. } => "DROP COLUMN",
        AlterTable::SetNotNull { not_null: true, .. } => "ALTER COLUMN ... SET NOT NULL",
        AlterTable::SetNotNull { not_null: false, .. } => "ALTER COLUMN ... DROP NOT NULL",
        AlterTable::SetType { .. } => "ALTER COLUMN ... SET DATA TYPE",
        AlterTable::AddConstraint(_) => "ADD CONSTRAINT",
        AlterTable::DropConstraint { .. } => "DROP CONSTRAINT",
        AlterTable::SetLogged(true) => "SET LOGGED",
        AlterTable::SetLogged(false) => "SET UNLOGGED",
        AlterTable::SetMethod(_) => "SET ACCESS METHOD",
        AlterTable::ReplicaIdentity(..) => "REPLICA IDENTITY",
        AlterTable::RowSecurity(true) => "ENABLE ROW SECURITY",
        AlterTable::RowSecurity(false) => "DISABLE ROW SECURITY",
        AlterTable::ForceRowSecurity(true) => "FORCE ROW SECURITY",
        AlterTable::ForceRowSecurity(false) => "NO FORCE ROW SECURITY",
        _ => return None,
    })
}

/// `42703` for a column that a table doesn't have.
pub(crate) fn missing_column(table: &Table, column: &str) -> Error {
    err!(UNDEFINED_COLUMN, "column \"{column}\" of relation \"{}\" does not exist", table.name)
}

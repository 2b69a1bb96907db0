//! CREATE VIEW, and what follows when something that views use gets another name.

use base::{Result, err};
use catalog::{AclKind, Object, Snapshot, Table, TableKind, ViewQuery};
use exec::context::ExecContext;
use exec::rights;
use sql::utility::{ColumnDef, Name, Persistence};
use txn::LockMode;

use super::{lock, name};
use crate::column::column;

/// CREATE [OR REPLACE] VIEW.
///
/// # Errors
/// `42P07`; `42P16` for a replacement that changes columns.
pub fn create(
    cx: &mut ExecContext<'_>,
    view_name: &Name,
    columns: &[ColumnDef],
    query: &ViewQuery,
    replace: bool,
    (options, mut persistence): (&[(String, String)], Persistence),
) -> Result<()> {
    let uses_temporary = query.uses.iter().any(|(id, _)| base::Oid(*id).is_temporary());
    if uses_temporary && persistence == Persistence::Permanent {
        persistence = Persistence::Temporary(Default::default());
        let message = format!("view \"{}\" will be a temporary view", view_name.name);
        super::notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
        if view_name.schema.is_some() {
            base::bail!(
                INVALID_TABLE_DEFINITION,
                "cannot create temporary relation in non-temporary schema"
            );
        }
    }
    let schema = name::creation_schema(cx, &view_name.unplaced(), persistence)?;
    name::reserve(cx, schema, &view_name.name)?;
    for column in columns {
        if types::TypeIo::get(column.ty).is_none_or(|io| io.category == b'P') {
            base::bail!(
                INVALID_TABLE_DEFINITION,
                "column \"{}\" has pseudo-type {}",
                column.name,
                types::io::format_type(column.ty, -1)
            );
        }
    }
    let mut is_new = false;
    let mut table = match cx.catalog_tx.view().relation_in(schema, &view_name.name) {
        None => {
            is_new = true;
            super::user_types::check_row_type(cx, schema, &view_name.name)?;
            let row_type = super::user_types::row_type(cx, schema)?;
            Table {
                row_type,
                oid: super::new_oid(cx, schema)?,
                name: view_name.name.clone(),
                schema,
                owner: cx.role,
                kind: TableKind::View,
                ..Table::default()
            }
        }
        Some(_) if !replace => {
            base::bail!(DUPLICATE_TABLE, "relation \"{}\" already exists", view_name.name);
        }
        Some(catalog::snapshot::Relation::Table(old)) if old.kind == TableKind::View => {
            rights::require_table_owner(cx, &old)?;
            lock(cx, old.oid, LockMode::AccessExclusive)?;
            check_replacement(&cx.catalog_tx.view(), &old, columns)?;
            Table::clone(&old)
        }
        Some(_) => base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a view", view_name.name),
    };
    let old = std::mem::replace(&mut table.columns, columns.iter().map(column).collect());
    // A column that stays keeps its default.
    for (column, known) in table.columns.iter_mut().zip(old) {
        (column.default, column.default_uses) = (known.default, known.default_uses);
    }
    table.query = Some(Box::new(query.clone()));
    table.options = options.to_vec();
    let (id, owner) = (table.oid, table.owner);
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))?;
    if is_new {
        rights::begin(cx, AclKind::Table, id, owner, schema)?;
    }
    Ok(())
}

/// A replacement keeps the columns and may add some behind them.
fn check_replacement(view: &Snapshot, old: &Table, columns: &[ColumnDef]) -> Result<()> {
    if columns.len() < old.columns.len() {
        base::bail!(INVALID_TABLE_DEFINITION, "cannot drop columns from view");
    }
    for (old, new) in old.columns.iter().zip(columns) {
        if old.name != new.name {
            return Err(err!(
                INVALID_TABLE_DEFINITION,
                "cannot change name of view column \"{}\" to \"{}\"",
                old.name,
                new.name
            )
            .hint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead."));
        }
        if old.ty != new.ty.0 || old.typmod != new.typmod {
            let ty = |ty: u32, typmod| types::io::format_type(base::Oid(ty), typmod);
            base::bail!(
                INVALID_TABLE_DEFINITION,
                "cannot change data type of view column \"{}\" from {} to {}",
                old.name,
                ty(old.ty, old.typmod),
                ty(new.ty.0, new.typmod)
            );
        }
        let usual = |own: u32| if own == 0 { view.type_collation(old.ty) } else { own };
        let (before, after) = (usual(old.collation), usual(new.collation));
        if before != after && new.collation != sql::plan::NO_COLLATION {
            let name = |id: u32| view.collation(id).map_or("", |c| c.name.as_str());
            base::bail!(
                INVALID_TABLE_DEFINITION,
                "cannot change collation of view column \"{}\" from \"{}\" to \"{}\"",
                old.name,
                name(before),
                name(after)
            );
        }
    }
    Ok(())
}

/// The views that use one of these objects.
pub(crate) fn users(view: &Snapshot, ids: &[u32]) -> Vec<u32> {
    let uses = |t: &&std::sync::Arc<Table>| {
        t.query.as_ref().is_some_and(|q| q.uses.iter().any(|(o, _)| ids.contains(o)))
    };
    view.tables().filter(uses).map(|t| t.oid).collect()
}

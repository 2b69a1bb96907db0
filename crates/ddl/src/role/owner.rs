//! Giving one object another owner.

use base::Result;
use catalog::{AclKind, Database, Object, Schema, Sequence, Table};
use exec::context::ExecContext;
use exec::rights;

/// Gives a schema to another role.
pub(crate) fn set_schema_owner(schema: &Schema, to: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    rights::change_owner(cx, AclKind::Schema, schema.oid, schema.owner, to)?;
    cx.catalog_tx.put(cx.tx, Object::Schema(Schema { owner: to, ..schema.clone() }))
}

pub(crate) fn set_database_owner(
    database: &Database,
    to: u32,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    rights::change_owner(cx, AclKind::Database, database.oid, database.owner, to)?;
    cx.catalog_tx.put(cx.tx, Object::Database(Database { owner: to, ..database.clone() }))
}

/// `42501` unless the session's role may give an object in a schema to another one, which must be
/// allowed to have it there.
pub fn check_new_owner(to: u32, schema: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    if rights::is_superuser(cx) {
        return Ok(());
    }
    rights::require_membership(cx, to)?;
    rights::require_creation(cx, to, schema)
}

/// Gives a table to another role, with the sequences of its columns. The caller has it locked.
pub fn reassign_table(mut table: Table, to: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    let id = table.oid;
    rights::change_owner(cx, AclKind::Table, id, table.owner, to)?;
    table.owner = to;
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))?;
    let view = cx.catalog_tx.view();
    let mut own = view.sequences().filter(|s| s.owned_by.is_some_and(|(table, _)| table == id));
    own.try_for_each(|sequence| reassign_sequence(sequence, to, cx))
}

/// Gives a sequence to another role.
pub fn reassign_sequence(sequence: &Sequence, to: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    rights::change_owner(cx, AclKind::Sequence, sequence.oid, sequence.owner, to)?;
    let changed = Sequence { owner: to, ..sequence.clone() };
    cx.catalog_tx.put(cx.tx, Object::Sequence(Box::new(changed)))
}

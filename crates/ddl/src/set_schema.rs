//! ALTER … SET SCHEMA.

use base::{Result, err};
use catalog::snapshot::Relation;
use catalog::{Index, Object, Sequence};
use exec::context::ExecContext;
use exec::rights;
use sql::utility::Name;
use txn::LockMode;

use super::{lock, name, notice, refresh, relation};
use crate::follow::follow;

/// ALTER TABLE, VIEW, SEQUENCE, MATERIALIZED VIEW … SET SCHEMA.
///
/// # Errors
/// `42P01`, `3F000`, `42P07` when the name is taken there.
pub fn run(
    cx: &mut ExecContext<'_>,
    kind: &str,
    object: &Name,
    to: &str,
    if_exists: bool,
) -> Result<()> {
    let catalog = cx.catalog_tx.view();
    let found = catalog.relation(cx.search_path, object.schema.as_deref(), &object.name);
    let Some(found) = found else {
        if !if_exists {
            return Err(catalog.missing_relation(object.schema.as_deref(), &object.name));
        }
        let message = format!("relation \"{}\" does not exist, skipping", object.name);
        notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
        return Ok(());
    };
    relation::require_owner(cx, &found)?;
    relation::expect(kind, &found)?;
    if let Relation::Index(index) = &found {
        let message = format!("cannot change schema of index \"{}\"", index.name);
        return Err(base::Error::new(base::sqlstate::WRONG_OBJECT_TYPE, message)
            .hint("Change the schema of the table instead."));
    }
    lock(cx, found.oid(), LockMode::AccessExclusive)?;
    if let Relation::Sequence(sequence) = &found
        && let Some((table, _)) = sequence.owned_by
    {
        let table = refresh(cx, table)?;
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "cannot move an owned sequence into another schema"
        )
        .detail(format!("Sequence \"{}\" is linked to table \"{}\".", sequence.name, table.name)));
    }
    let schema = catalog
        .schema_named(to)
        .ok_or_else(|| err!(UNDEFINED_SCHEMA, "schema \"{to}\" does not exist"))?
        .oid;
    rights::require_creation(cx, cx.role, schema)?;
    match found {
        Relation::Index(_) => Ok(()),
        Relation::Sequence(sequence) => move_sequence(cx, &sequence, schema, to),
        Relation::Table(table) => {
            if table.schema == schema {
                return Ok(());
            }
            free(cx, schema, &table.name, to)?;
            for id in &table.indexes {
                let Some(index) = catalog.index(*id) else { continue };
                free(cx, schema, &index.name, to)?;
                let moved = Index { schema, ..Index::clone(index) };
                cx.catalog_tx.put(cx.tx, Object::Index(moved))?;
            }
            for sequence in catalog.sequences() {
                if sequence.owned_by.is_some_and(|(t, _)| t == table.oid) {
                    move_sequence(cx, sequence, schema, to)?;
                }
            }
            let mut moved = refresh(cx, table.oid)?;
            moved.schema = schema;
            follow(cx, &[table.oid], Object::Table(Box::new(moved)))
        }
    }
}

fn move_sequence(
    cx: &mut ExecContext<'_>,
    sequence: &Sequence,
    schema: u32,
    to: &str,
) -> Result<()> {
    if sequence.schema == schema {
        return Ok(());
    }
    free(cx, schema, &sequence.name, to)?;
    let moved = Sequence { schema, ..sequence.clone() };
    cx.catalog_tx.put(cx.tx, Object::Sequence(Box::new(moved)))
}

/// The name is not taken in the new schema.
fn free(cx: &mut ExecContext<'_>, schema: u32, name: &str, to: &str) -> Result<()> {
    name::reserve(cx, schema, name)?;
    if cx.catalog_tx.view().relation_in(schema, name).is_some() {
        base::bail!(DUPLICATE_TABLE, "relation \"{name}\" already exists in schema \"{to}\"");
    }
    Ok(())
}

//! ALTER TABLE … REPLICA IDENTITY.

use base::{Result, err};
use catalog::snapshot::Relation;
use catalog::{Object, ReplicaIdentity, Snapshot, Table};
use exec::context::ExecContext;

use crate::refresh;

/// Sets what identifies the rows of a table; `letter` as in `pg_class.relreplident`, `index` for USING INDEX.
///
/// # Errors
/// `42704`, `42809`, `0A000` for an index that can't.
pub fn set(cx: &mut ExecContext<'_>, id: u32, letter: char, index: &str) -> Result<()> {
    let mut table = refresh(cx, id)?;
    table.replica_identity = match letter {
        'f' => ReplicaIdentity::Full,
        'n' => ReplicaIdentity::Nothing,
        'i' => ReplicaIdentity::Index(candidate(&cx.catalog_tx.view(), &table, index)?),
        _ => ReplicaIdentity::Default,
    };
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

/// An index whose columns identify each row: unique, at once, of all rows, over columns that are never null.
fn candidate(view: &Snapshot, table: &Table, name: &str) -> Result<u32> {
    let Some(Relation::Index(index)) = view.relation_in(table.schema, name) else {
        return Err(err!(
            UNDEFINED_OBJECT,
            "index \"{name}\" for table \"{}\" does not exist",
            table.name
        ));
    };
    if index.table != table.oid {
        return Err(err!(
            WRONG_OBJECT_TYPE,
            "\"{name}\" is not an index for table \"{}\"",
            table.name
        ));
    }
    let refused = |kind: &str| format!("cannot use {kind} index \"{name}\" as replica identity");
    if !index.unique {
        return Err(err!(WRONG_OBJECT_TYPE, "{}", refused("non-unique")));
    }
    if index.deferrable {
        return Err(err!(FEATURE_NOT_SUPPORTED, "{}", refused("non-immediate")));
    }
    if index.columns.iter().any(|c| c.expression.is_some()) {
        return Err(err!(FEATURE_NOT_SUPPORTED, "{}", refused("expression")));
    }
    if index.predicate.is_some() {
        return Err(err!(FEATURE_NOT_SUPPORTED, "{}", refused("partial")));
    }
    for key in &index.columns {
        let Some(column) = table.columns.get(usize::from(key.column).wrapping_sub(1)) else {
            continue;
        };
        if !column.not_null {
            return Err(err!(
                WRONG_OBJECT_TYPE,
                "index \"{name}\" cannot be used as replica identity because column \"{}\" is nullable",
                column.name
            ));
        }
    }
    Ok(index.oid)
}

/// `42P16` when DROP NOT NULL is for a column of the index that identifies rows.
///
/// # Errors
/// See above.
pub fn keep_not_null(view: &Snapshot, table: &Table, number: u16, column: &str) -> Result<()> {
    let ReplicaIdentity::Index(id) = table.replica_identity else { return Ok(()) };
    let names = |i: &std::sync::Arc<catalog::Index>| i.columns.iter().any(|c| c.column == number);
    if view.index(id).is_some_and(names) {
        base::bail!(
            INVALID_TABLE_DEFINITION,
            "column \"{column}\" is in index used as replica identity"
        );
    }
    Ok(())
}

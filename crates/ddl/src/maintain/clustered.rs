//! The index by which a table is clustered.

use base::{Result, sqlstate};
use catalog::{Index, Object, Table};
use exec::context::ExecContext;
use exec::relation_lock;

/// Notes by which index a table is clustered.
///
/// # Errors
/// Those of the catalog.
pub fn note(cx: &mut ExecContext<'_>, table: u32, index: Option<u32>) -> Result<()> {
    let table = relation_lock::refresh(cx, table)?;
    for known in cx.catalog_tx.view().indexes_of(&table) {
        let clustered = Some(known.oid) == index;
        if known.clustered != clustered {
            let known = Index { clustered, ..Index::clone(&known) };
            cx.catalog_tx.put(cx.tx, Object::Index(known))?;
        }
    }
    Ok(())
}

/// The index of a table that CLUSTER names.
///
/// # Errors
/// `42704`, `42809`, `0A000`.
pub fn index_of(cx: &mut ExecContext<'_>, table: &Table, name: &str) -> Result<Index> {
    use catalog::snapshot::Relation;
    let view = cx.catalog_tx.view();
    let index = match view.relation_in(table.schema, name) {
        Some(Relation::Index(index)) if index.table == table.oid => index,
        Some(_) => base::bail!(
            WRONG_OBJECT_TYPE,
            "\"{name}\" is not an index for table \"{}\"",
            table.name
        ),
        None => base::bail!(
            UNDEFINED_OBJECT,
            "index \"{name}\" for table \"{}\" does not exist",
            table.name
        ),
    };
    if !index.method.properties().clusterable {
        base::bail!(
            FEATURE_NOT_SUPPORTED,
            "cannot cluster on index \"{name}\" because access method does not support clustering"
        );
    }
    if index.predicate.is_some() {
        base::bail!(FEATURE_NOT_SUPPORTED, "cannot cluster on partial index \"{name}\"");
    }
    if index.invalid {
        return Err(base::Error::new(
            sqlstate::FEATURE_NOT_SUPPORTED,
            format!("cannot cluster on invalid index \"{name}\""),
        ));
    }
    Ok(Index::clone(&index))
}

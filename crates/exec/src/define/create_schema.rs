//! CREATE SCHEMA.

use base::Result;
use catalog::{Object, Schema};

use super::{create_table, name, notice};
use crate::context::ExecContext;

/// CREATE SCHEMA.
pub fn run(schema: &str, if_not_exists: bool, cx: &mut ExecContext<'_>) -> Result<()> {
    if schema.starts_with("pg_") {
        return Err(base::err!(RESERVED_NAME, "unacceptable schema name \"{schema}\"")
            .detail("The prefix \"pg_\" is reserved for system schemas."));
    }
    name::reserve(cx, 0, schema)?;
    if cx.catalog_tx.view().schema_named(schema).is_some() {
        let message = format!("schema \"{schema}\" already exists");
        if !if_not_exists {
            base::bail!(DUPLICATE_SCHEMA, "{message}");
        }
        notice(cx, base::sqlstate::DUPLICATE_SCHEMA, format!("{message}, skipping"));
        return Ok(());
    }
    let oid = cx.engine.txn.next_oid()?;
    let owner = create_table::owner(cx);
    let object = Object::Schema(Schema { oid, name: schema.to_owned(), owner });
    cx.catalog_tx.put(cx.tx, object)
}

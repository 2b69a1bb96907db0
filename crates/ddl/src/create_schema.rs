//! CREATE SCHEMA.

use base::Result;
use catalog::acl::privilege;
use catalog::{AclKind, Object, Schema};
use sql::role::RoleRef;

use super::{name, notice};
use exec::context::ExecContext;
use exec::rights;
use exec::spi::{As, statement_as};

/// CREATE SCHEMA.
pub fn run(
    schema: &str,
    owner: Option<&RoleRef>,
    if_not_exists: bool,
    elements: &[String],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let owner = match owner {
        Some(owner) => rights::role(cx, owner)?,
        None => cx.role,
    };
    let (database, id) = cx.database;
    rights::require(cx, AclKind::Database, id, privilege::CREATE, database)?;
    rights::require_membership(cx, owner)?;
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
    let object = Object::Schema(Schema { oid, name: schema.to_owned(), owner });
    cx.catalog_tx.put(cx.tx, object)?;
    rights::begin(cx, AclKind::Schema, oid, owner, 0)?;
    let name = cx.catalog_tx.view().role(owner).map_or_else(String::new, |r| r.name.clone());
    let path = [catalog::object::ids::PG_CATALOG, oid];
    let path = path.into_iter().chain(cx.search_path.iter().copied()).collect();
    let who = As { path: Some(path), role: Some((owner, name)), ..As::default() };
    elements.iter().try_for_each(|text| statement_as(text, &who, cx))
}

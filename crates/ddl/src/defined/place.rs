//! Where objects of the further kinds are made.

use base::{Error, Oid, Result, err};
use catalog::{Defined, Object, Snapshot};
use exec::context::ExecContext;
use exec::rights;
use sql::utility::{Name, Persistence};

use crate::name;

/// A name with its schema as written.
pub(crate) fn full(name: &Name) -> String {
    match &name.schema {
        Some(schema) => format!("{schema}.{}", name.name),
        None => name.name.clone(),
    }
}

/// The schemas in which a name is searched.
///
/// # Errors
/// `3F000`.
pub(super) fn schemas_of(view: &Snapshot, path: &[u32], name: &Name) -> Result<Vec<u32>> {
    match &name.schema {
        Some(schema) => match view.schema_named(schema) {
            Some(found) => Ok(vec![found.oid]),
            None => Err(err!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist")),
        },
        None => {
            let first = (!path.contains(&catalog::object::ids::PG_CATALOG))
                .then_some(catalog::object::ids::PG_CATALOG);
            Ok(first.into_iter().chain(path.iter().copied()).collect())
        }
    }
}

/// The schema for a new object, whose name others can't take until the transaction ends.
pub(super) fn place(cx: &mut ExecContext<'_>, name: &Name, kind: &str) -> Result<u32> {
    let plain = Name { position: 0, ..name.clone() };
    let schema = name::creation_schema(cx, &plain, Persistence::Permanent)?;
    if Oid(schema).is_temporary() {
        return Err(Error::unsupported(format!("a temporary {kind}")));
    }
    name::reserve(cx, schema, &format!("{kind} {}", name.name))?;
    Ok(schema)
}

/// Puts an object into the catalog.
///
/// # Errors
/// Those of the catalog.
pub fn put(cx: &mut ExecContext<'_>, object: Defined) -> Result<()> {
    cx.catalog_tx.put(cx.tx, Object::Defined(Box::new(object)))
}

/// `42501` unless the session's role is a superuser.
pub(super) fn require_superuser(cx: &mut ExecContext<'_>, message: &str) -> Result<()> {
    if rights::is_superuser(cx) {
        return Ok(());
    }
    Err(Error::new(base::sqlstate::INSUFFICIENT_PRIVILEGE, message))
}

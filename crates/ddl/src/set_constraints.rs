//! SET CONSTRAINTS: when the transaction's checks are done.

use std::sync::Arc;

use base::{Result, err};
use catalog::Table;
use exec::context::ExecContext;
use sql::utility::Name;

/// SET CONSTRAINTS; no names: ALL. Checks that waited and are IMMEDIATE now are done at once.
///
/// # Errors
/// `42704`, `42809`, `3F000`; `23503` and `23505` of the checks.
pub fn run(cx: &mut ExecContext<'_>, names: &[Name], deferred: bool) -> Result<()> {
    if names.is_empty() {
        cx.hooks.deferred().set_all(deferred);
    } else {
        let mut found = Vec::new();
        for name in names {
            constraints(cx, name, deferred, &mut found)?;
        }
        found.into_iter().for_each(|oid| cx.hooks.deferred().set(oid, deferred));
    }
    if deferred { Ok(()) } else { exec::modify::fire::fire_immediate(cx) }
}

/// The constraints that a name means: all of that name in the first schema that has one.
fn constraints(
    cx: &mut ExecContext<'_>,
    name: &Name,
    deferred: bool,
    out: &mut Vec<u32>,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let schemas: Vec<u32> = match &name.schema {
        Some(schema) => {
            let found = view.schema_named(schema).map(|s| s.oid);
            vec![
                found
                    .ok_or_else(|| err!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist"))?,
            ]
        }
        None => {
            let first = view.implicit_temporary(cx.search_path);
            first.into_iter().chain(cx.search_path.iter().copied()).collect()
        }
    };
    for schema in schemas {
        let tables = view.tables().filter(|t| t.schema == schema);
        let constraints = |t: &Arc<Table>| {
            let own = t.constraints.iter().map(|c| (c.name.clone(), c.oid, c.deferrable));
            let triggers = t.triggers.iter().filter(|t| t.constraint != 0);
            let triggers = triggers.map(|t| (t.name.clone(), t.constraint, t.deferrable));
            own.chain(triggers).collect::<Vec<_>>()
        };
        let mut named = tables.flat_map(constraints).filter(|c| c.0 == name.name).peekable();
        if named.peek().is_none() {
            continue;
        }
        for (_, oid, deferrable) in named {
            if deferrable {
                out.push(oid);
            } else if deferred {
                base::bail!(WRONG_OBJECT_TYPE, "constraint \"{}\" is not deferrable", name.name);
            }
        }
        return Ok(());
    }
    Err(err!(UNDEFINED_OBJECT, "constraint \"{}\" does not exist", name.name))
}

//! Bodies and signatures of functions as they are stored and shown.

use std::sync::Arc;

use base::{Oid, Result};
use catalog::{Function, Object, Snapshot};
use exec::context::ExecContext;
use exec::session::quote_identifier;
use exec::spi::with_context;

pub(crate) fn type_list(types: &[Oid], separator: &str) -> String {
    let names: Vec<String> = types.iter().map(|t| types::io::format_type(*t, -1)).collect();
    names.join(separator)
}

/// `name(argument types)`, as messages name a function.
pub fn signature(view: &Snapshot, path: &[u32], function: &Function) -> String {
    let name = quote_identifier(&function.name);
    let name = match view.schema(function.schema) {
        Some(s) if !path.contains(&s.oid) => format!("{}.{name}", quote_identifier(&s.name)),
        _ => name,
    };
    format!("{name}({})", type_list(&function.input_types(), ","))
}

/// The functions with a standard body that uses one of these objects.
pub fn with_body_over(view: &Snapshot, ids: &[u32]) -> Vec<u32> {
    let about = |f: &&Arc<Function>| {
        f.standard_body && f.uses.iter().any(|(object, _)| ids.contains(object))
    };
    view.functions().filter(about).map(|f| f.oid).collect()
}

/// The bodies of functions under the names of `naming`.
///
/// # Errors
/// A body that can't be bound any more.
pub fn renamed_bodies(
    cx: &mut ExecContext<'_>,
    functions: Vec<u32>,
    naming: &Snapshot,
) -> Result<Vec<(u32, String)>> {
    let view = cx.catalog_tx.view();
    let mut out = Vec::with_capacity(functions.len());
    for id in functions {
        let Some(function) = view.function(id) else { continue };
        out.push((id, with_context(cx, |c| sql::view::body::renamed(c, function, naming))?));
    }
    Ok(out)
}

/// Stores bodies under their new names.
///
/// # Errors
/// Those of the catalog.
pub fn store_bodies(cx: &mut ExecContext<'_>, all: Vec<(u32, String)>) -> Result<()> {
    for (id, body) in all {
        let view = cx.catalog_tx.view();
        let Some(function) = view.function(id) else { continue };
        let function = Function { body, ..Function::clone(function) };
        cx.catalog_tx.put(cx.tx, Object::Function(Box::new(function)))?;
    }
    Ok(())
}

//! Functions that users define.

use catalog::{Function, Snapshot};

use crate::session::quote_identifier;

/// `name(argument types)`, as messages name a function.
pub fn signature(view: &Snapshot, path: &[u32], function: &Function) -> String {
    let types: Vec<String> = function
        .args
        .iter()
        .filter(|a| matches!(a.mode, 'i' | 'b' | 'v'))
        .map(|a| types::io::format_type(base::Oid(a.ty), -1))
        .collect();
    let name = quote_identifier(&function.name);
    let name = match view.schema(function.schema) {
        Some(s) if !path.contains(&s.oid) => format!("{}.{name}", quote_identifier(&s.name)),
        _ => name,
    };
    format!("{name}({})", types.join(","))
}

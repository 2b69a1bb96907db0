//! CREATE ACCESS METHOD: another name of a method that the server has, which its handler names.

use base::{Error, Oid, Result, err};
use catalog::system::named;
use catalog::{Defined, NamedMethod, Snapshot};
use exec::context::ExecContext;
use exec::rights;
use sql::utility::Name;
use types::oids::INTERNAL;

use super::operator;
use crate::defined::place::{full, put};
use crate::name;

/// The types of handlers: `index_am_handler` and `table_am_handler`.
const HANDLERS: [(char, Oid, &str); 2] =
    [('i', Oid(325), "index_am_handler"), ('t', Oid(269), "table_am_handler")];

/// CREATE ACCESS METHOD.
///
/// # Errors
/// `42501`, `42710`; `42883` no such handler; `42809` one of another kind; `0A000` one that is not the server's.
pub fn create(method: &str, kind: char, handler: &Name, cx: &mut ExecContext<'_>) -> Result<()> {
    if !rights::is_superuser(cx) {
        return Err(err!(
            INSUFFICIENT_PRIVILEGE,
            "permission denied to create access method \"{method}\""
        )
        .hint("Must be superuser to create an access method."));
    }
    name::reserve(cx, 0, &format!("access method {method}"))?;
    if cx.catalog_tx.view().access_method_named(method).is_some() {
        base::bail!(DUPLICATE_OBJECT, "access method \"{method}\" already exists");
    }
    let found = operator::function(handler, &[INTERNAL], cx)?;
    let wanted = HANDLERS.iter().find(|h| h.0 == kind);
    if let Some((_, _, word)) = wanted.filter(|h| h.1 != found.result) {
        base::bail!(WRONG_OBJECT_TYPE, "function {} must return type {word}", handler.name);
    }
    if named::handled_method(found.oid).is_none_or(|m| m.1 != kind) {
        return Err(Error::unsupported(format!(
            "an access method whose handler {} is not the server's own",
            full(handler)
        )));
    }
    let oid = crate::new_oid(cx, 0)?;
    let made = NamedMethod { oid, name: method.to_owned(), kind, handler: found.oid };
    put(cx, Defined::Method(made))
}

/// The access method of a new table: that of USING, else the session's default. 0: `heap`.
///
/// # Errors
/// `42704`; `55000` one of indexes.
pub fn of_table(view: &Snapshot, using: Option<&str>, cx: &ExecContext<'_>) -> Result<u32> {
    let default = cx.settings.str(base::settings::setting::DEFAULT_TABLE_ACCESS_METHOD);
    table_method(view, using.unwrap_or(default))
}

/// An access method of tables by its name; 0: `heap`.
///
/// # Errors
/// As [`of_table`].
pub fn table_method(view: &Snapshot, method: &str) -> Result<u32> {
    match view.access_method_named(method) {
        _ if method == "heap" => Ok(0),
        Some(found) if found.kind == 't' => Ok(found.oid),
        Some(_) => Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "access method \"{method}\" is not of type TABLE"
        )),
        None => Err(err!(UNDEFINED_OBJECT, "access method \"{method}\" does not exist")),
    }
}

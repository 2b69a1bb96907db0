//! Foreign-data wrappers and servers by name.

use base::{Result, err};
use catalog::acl::privilege;
use catalog::{AclKind, ForeignServer, Snapshot};
use exec::context::ExecContext;
use exec::rights;

pub fn word(server: bool) -> &'static str {
    if server { "server" } else { "foreign-data wrapper" }
}

pub fn missing(server: bool, name: &str) -> base::Error {
    err!(UNDEFINED_OBJECT, "{} \"{name}\" does not exist", word(server))
}

pub fn oid_of(view: &Snapshot, server: bool, name: &str) -> Option<u32> {
    match server {
        true => view.foreign_server_named(name).map(|s| s.oid),
        false => view.wrapper_named(name).map(|w| w.oid),
    }
}

/// A server by name.
///
/// # Errors
/// `42704`.
pub fn server_named(name: &str, cx: &mut ExecContext<'_>) -> Result<ForeignServer> {
    let view = cx.catalog_tx.view();
    view.foreign_server_named(name).cloned().ok_or_else(|| missing(true, name))
}

/// The validator of a wrapper; 0: none.
pub fn validator_of(view: &Snapshot, wrapper: u32) -> u32 {
    view.wrapper(wrapper).map_or(0, |w| w.validator)
}

/// `42501` unless the session's role may use a server.
///
/// # Errors
/// See above.
pub fn require_use(server: &ForeignServer, cx: &mut ExecContext<'_>) -> Result<()> {
    rights::require(cx, AclKind::Server, server.oid, privilege::USAGE, &server.name)
}

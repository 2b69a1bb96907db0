//! The functions of postgres_fdw.

use std::sync::Arc;

use base::{Result, err};
use exec::context::ExecContext;
use exec::native::{Native, SetCall, Symbols};
use types::Datum;
use types::datum::Shape;
use types::oids::{BOOL, RECORD, TEXT};

use crate::connection::all;
use crate::options;

/// By symbol.
pub const SYMBOLS: Symbols = &[
    ("postgres_fdw_handler", Native::Scalar(handler)),
    ("postgres_fdw_validator", Native::Scalar(|args, cx| options::validate(args, cx))),
    ("postgres_fdw_get_connections", Native::Set(connections)),
    ("postgres_fdw_disconnect", Native::Scalar(disconnect)),
    ("postgres_fdw_disconnect_all", Native::Scalar(disconnect_all)),
];

fn handler(_args: &[Datum], _cx: &mut ExecContext<'_>) -> Result<Datum> {
    Err(err!(FEATURE_NOT_SUPPORTED, "cannot display a value of type fdw_handler"))
}

/// `postgres_fdw_get_connections()`: those that are open, and whether they may serve the next transaction.
fn connections(_call: &SetCall<'_>, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    let view = cx.catalog_tx.view();
    let columns = vec![("server_name".into(), TEXT), ("valid".into(), BOOL)];
    let shape = Arc::new(Shape { ty: RECORD, columns });
    let mut out = Vec::new();
    for (server, _, connection) in all(cx)?.list() {
        let server = view.foreign_server(server);
        let mapping = view.user_mappings().find(|m| m.oid == connection.mapping());
        let valid = connection.is_valid(server, mapping);
        let name = server.map_or(Datum::Null, |s| Datum::text(&s.name));
        out.push(Datum::record(shape.clone(), vec![name, Datum::Bool(valid)]));
    }
    Ok(out)
}

fn close(wanted: &dyn Fn(&str) -> bool, cx: &mut ExecContext<'_>) -> Result<Datum> {
    let (closed, in_use) = all(cx)?.close(wanted);
    for name in in_use {
        let message =
            format!("cannot close connection for server \"{name}\" because it is still in use");
        cx.hooks.notice("WARNING", base::Error::new(base::sqlstate::WARNING, message));
    }
    Ok(Datum::Bool(closed))
}

/// `postgres_fdw_disconnect(server)`.
fn disconnect(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let name = args[0].as_str().to_owned();
    if cx.catalog_tx.view().foreign_server_named(&name).is_none() {
        base::bail!(UNDEFINED_OBJECT, "server \"{name}\" does not exist");
    }
    close(&|server| server == name, cx)
}

/// `postgres_fdw_disconnect_all()`.
fn disconnect_all(_args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    close(&|_| true, cx)
}

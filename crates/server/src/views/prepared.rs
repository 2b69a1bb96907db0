//! `pg_prepared_xacts`: transactions that are prepared.

use types::Datum;

use crate::server::Server;
use crate::views::text::text;

/// Rows of `pg_prepared_xacts`.
pub(super) fn rows(server: &Server) -> Vec<Vec<Datum>> {
    let catalog = server.engine.catalog.shared().current();
    let named = |name: Option<&str>| name.map_or(Datum::Null, text);
    server.prepared.each(|xid, name| {
        let role = catalog.role(name.role.0);
        let database = catalog.databases().find(|d| d.oid == name.database.0);
        vec![
            Datum::Oid(xid as u32),
            text(&name.gid),
            Datum::Timestamptz(name.at),
            named(role.map(|role| &*role.name)),
            named(database.map(|database| &*database.name)),
        ]
    })
}

/// Rows of `pg_prepared_xact()`.
pub(super) fn function(server: &Server) -> Vec<Vec<Datum>> {
    server.prepared.each(|xid, name| {
        vec![
            Datum::Oid(xid as u32),
            text(&name.gid),
            Datum::Timestamptz(name.at),
            Datum::Oid(name.role.0),
            Datum::Oid(name.database.0),
        ]
    })
}

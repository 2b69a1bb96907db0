//! Rows of the statistics views that the running server fills.

mod activity;
mod blocking;
mod buffers;
mod database;
mod extension;
pub mod functions;
mod locks;
mod lwlock;
mod memory;
mod past;
mod prepared;
mod progress;
mod replication;
pub mod rows;
mod session;
pub(crate) mod shares;
mod snapshots;
mod statements;
mod storage;
mod tables;
mod text;
mod trace;
mod waits;
mod workers;
mod zones;

use std::collections::HashMap;
use std::sync::Arc;

use catalog::Snapshot;
use types::Datum;

use crate::server::Server;

pub(crate) use waits::Names;

pub use past::history;
pub use session::{cursors, prepared_statements};
pub use tables::{called, pages, transaction};
pub use trace::trace;

/// An address as a value.
pub(crate) fn inet(ip: std::net::IpAddr) -> Datum {
    let text = ip.to_string();
    types::io::input(types::oids::INET, -1, &text, &Default::default()).unwrap_or(Datum::Null)
}

/// A database's catalog as it is committed; what all share when there is no such database.
fn catalog_of(server: &Server, database: u32) -> Arc<Snapshot> {
    let catalog = &server.engine.catalog;
    catalog.database(database).as_ref().unwrap_or(catalog.shared()).current()
}

/// The database and the oid of the table, index or sequence that each file belongs to.
pub(crate) fn owners_of_files(server: &Server) -> HashMap<u32, (u32, u32)> {
    let mut owners = HashMap::new();
    for database in server.engine.catalog.databases() {
        let (oid, catalog) = (database.oid(), database.current());
        owners.extend(catalog.tables().map(|t| (t.rel, (oid, t.oid))));
        owners.extend(catalog.indexes().map(|i| (i.rel, (oid, i.oid))));
        owners.extend(catalog.sequences().map(|s| (s.rel, (oid, s.oid))));
    }
    owners
}

fn time(value: i64) -> Datum {
    if value == 0 { Datum::Null } else { Datum::Timestamptz(value) }
}

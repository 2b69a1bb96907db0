//! `pg_catalog` and `information_schema`: tables computed from a [`Snapshot`]. One small file a
//! group of tables; a table is one [`SystemTable`] row and one function.

use std::sync::Arc;

use base::settings::Settings;
use base::{Oid, Result};
use types::Datum;

use crate::object::{Id, Table};
use crate::snapshot::Snapshot;

/// What the functions that compute rows get.
pub struct SystemCx<'a> {
    /// The catalog as the transaction sees it.
    pub catalog: &'a Snapshot,
    /// The session's settings.
    pub settings: &'a Settings,
    /// What only the running server knows.
    pub server: &'a dyn ServerInfo,
    /// The session's database.
    pub database: Id,
    /// Equality conditions on columns known when the scan starts: (column number from 0, value).
    /// A function may use them to compute fewer rows; the scan filters in any case.
    pub equal: &'a [(u16, Datum)],
}

/// What only the running server knows: the rows of its statistics views and the like.
pub trait ServerInfo: Send + Sync {
    /// Rows of a view such as `pg_stat_activity`, `pg_locks`; empty when it isn't kept.
    fn rows(&self, view: &str) -> Vec<Vec<Datum>>;
    /// Pages of a relation's main fork.
    fn pages(&self, rel: u32) -> u32;
}

/// A computed table.
pub struct SystemTable {
    /// PostgreSQL's oid.
    pub oid: Oid,
    /// Schema's oid.
    pub schema: Id,
    /// Name.
    pub name: &'static str,
    /// Columns with their types.
    pub columns: &'static [(&'static str, Oid)],
    /// Its rows.
    pub rows: fn(&SystemCx<'_>) -> Result<Vec<Vec<Datum>>>,
}

/// All of them.
pub fn tables() -> &'static [&'static SystemTable] {
    &[]
}

/// A computed table as the binder sees a table ([`crate::TableKind::System`]).
pub fn find(_schema: Option<&str>, _name: &str) -> Option<Arc<Table>> {
    None
}

/// By oid.
pub fn by_oid(_oid: Oid) -> Option<&'static SystemTable> {
    None
}

//! The context in which rows of computed tables are made.

use base::Result;
use base::settings::Settings;
use types::Datum;

use crate::object::Id;
use crate::snapshot::Snapshot;

/// The arguments of functions that compute rows.
pub struct SystemCx<'a> {
    /// The catalog as the transaction sees it.
    pub catalog: &'a Snapshot,
    /// The session's settings.
    pub settings: &'a Settings,
    /// The facts that only the running server knows.
    pub server: &'a dyn ServerInfo,
    /// The session's database.
    pub database: Id,
    /// The session's role.
    pub role: Id,
    /// Equality conditions on columns known when the scan starts: (column number from 0, value).
    /// A function may use them to compute fewer rows; the scan filters in any case.
    pub equal: &'a [(u16, Datum)],
}

impl SystemCx<'_> {
    /// The oid that a column of the first table that is filled must have, if the statement says so.
    pub(crate) fn wanted_at(&self, column: u16) -> Option<Id> {
        self.equal.iter().find(|(n, _)| *n == column).and_then(|(_, value)| match value {
            Datum::Oid(id) => Some(*id),
            _ => None,
        })
    }
}

/// The facts that only the running server knows: the rows of its statistics views and the like.
pub trait ServerInfo: Send + Sync {
    /// Rows of a view such as `pg_stat_activity`, `pg_locks`, as a role may see them; empty when it isn't
    /// kept.
    fn rows(&self, view: &str, role: Id) -> Vec<Vec<Datum>>;
    /// Pages of a relation's main fork.
    fn pages(&self, rel: u32) -> u32;
    /// A sequence's value by its file: last, how many more the log covers, is_called.
    ///
    /// # Errors
    /// Damage of the file, I/O errors.
    fn sequence(&self, _rel: u32) -> Result<Option<(i64, i64, bool)>> {
        Ok(None)
    }
}

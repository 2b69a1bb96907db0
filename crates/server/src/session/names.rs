//! Names behind the oids of `regclass` and kin, as a client is shown them.

use base::{Oid, Result};
use catalog::Snapshot;
use catalog::system::reg::Names;

/// The object's name, qualified where the search path does not find it; the number when there is no
/// such object.
pub fn of(ty: Oid, oid: u32, catalog: &Snapshot, path: &[u32]) -> String {
    Names { catalog, path, database: None }.shown(ty, oid)
}

/// The oid of what a parameter of such a type names.
pub fn lookup(ty: Oid, words: &str, catalog: &Snapshot, path: &[u32]) -> Result<u32> {
    Names { catalog, path, database: None }.expect(ty, words)
}

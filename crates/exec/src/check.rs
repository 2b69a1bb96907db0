//! Walks every table with its indexes and says where they disagree (`threadgres check`): the access
//! methods' checker, with rows and keys as the catalog says that they are.

use access::check::KeyOf;
use access::{BTree, Heap};
use base::{RelId, Result};
use catalog::Snapshot;
use types::FormatContext;

use crate::context::Engine;
use crate::table::{KeyCodec, TableHandle};

/// Findings of all tables of all databases, each with the table's name; empty when all is well. Nobody may change
/// anything meanwhile.
///
/// # Errors
/// I/O errors.
pub fn check(engine: &Engine) -> Result<Vec<String>> {
    let mut findings = access::check::check(&engine.txn, engine.catalog.heap(), &[])?;
    for database in engine.catalog.databases() {
        check_database(engine, &database.current(), &mut findings)?;
    }
    Ok(findings)
}

fn check_database(engine: &Engine, snapshot: &Snapshot, findings: &mut Vec<String>) -> Result<()> {
    for table in snapshot.tables().filter(|t| t.rel != 0) {
        let handle = TableHandle::open(engine, table, &FormatContext::default())?;
        // What an index computes can't be computed without a session; one that is not valid lacks rows.
        let indexes: Vec<_> =
            snapshot.indexes_of(table).into_iter().filter(|i| i.is_plain() && !i.invalid).collect();
        let codecs: Vec<KeyCodec> = indexes.iter().map(|i| KeyCodec::new(table, i)).collect();
        let keys: Vec<_> = codecs
            .iter()
            .map(|codec| {
                let handle = &handle;
                move |bytes: &[u8]| {
                    let mut key = Vec::new();
                    let row = handle.decode_all(bytes).ok()?;
                    codec.encode(&row, &mut key).ok().map(|_| key)
                }
            })
            .collect();
        let trees: Vec<(BTree, KeyOf<'_>)> = indexes
            .iter()
            .zip(&keys)
            .map(|(i, key)| (BTree::open(&engine.storage, RelId(i.rel)), key as KeyOf<'_>))
            .collect();
        let heap = Heap::open(&engine.storage, RelId(table.rel));
        for finding in access::check::check(&engine.txn, &heap, &trees)? {
            findings.push(format!("table {}: {finding}", table.name));
        }
    }
    Ok(())
}

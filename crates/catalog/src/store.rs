//! Persistence and change of the catalog.

use std::sync::Arc;

use base::Result;
use storage::Storage;
use txn::{Transaction, TxnManager};

use crate::object::{Id, Object};
use crate::snapshot::Snapshot;

/// The server's catalog.
pub struct Catalog {}

/// A transaction's view of the catalog, with its own changes.
pub struct CatalogTx {}

impl Catalog {
    /// Reads the internal heap; in a new directory writes the initial objects first.
    pub fn open(_storage: &Arc<Storage>, _txn: &Arc<TxnManager>) -> Result<Arc<Catalog>> {
        todo!()
    }

    /// The published version; cheap.
    pub fn current(&self) -> Arc<Snapshot> {
        todo!()
    }

    /// The published version's number; one atomic load.
    pub fn version(&self) -> u64 {
        todo!()
    }
}

impl CatalogTx {
    /// For a new transaction; no cost until it changes something.
    pub fn new(_catalog: &Arc<Catalog>) -> CatalogTx {
        todo!()
    }

    /// What the transaction sees now: the published version with its own changes.
    pub fn view(&mut self) -> Arc<Snapshot> {
        todo!()
    }

    /// Whether it has changes of its own (then plans are not shared).
    pub fn changed(&self) -> bool {
        todo!()
    }

    /// Puts an object in (new or changed): into the heap and into the private version.
    pub fn put(&mut self, _tx: &Transaction, _object: Object) -> Result<()> {
        todo!()
    }

    /// Takes an object out.
    pub fn remove(&mut self, _tx: &Transaction, _id: Id) -> Result<()> {
        todo!()
    }

    /// Files to remove if the transaction commits (old files of TRUNCATE, of dropped tables).
    pub fn drop_files_at_commit(&mut self, _rel: base::RelId) {
        todo!()
    }

    /// Files to remove if it (or the savepoint's level) rolls back.
    pub fn drop_files_at_abort(&mut self, _rel: base::RelId) {
        todo!()
    }

    /// State to come back to.
    pub fn savepoint(&self) -> CatalogMark {
        todo!()
    }

    /// Undoes changes since the mark.
    pub fn rollback_to(&mut self, _mark: &CatalogMark) {
        todo!()
    }

    /// To be called from [`Transaction::commit`]'s `before_publish`.
    pub fn publish(&mut self) {
        todo!()
    }

    /// After the commit is durable: removes the files that are no longer used.
    pub fn committed(&mut self) {
        todo!()
    }

    /// After a rollback: forgets the changes, removes new files.
    pub fn aborted(&mut self) {
        todo!()
    }
}

/// See [`CatalogTx::savepoint`].
#[derive(Clone)]
pub struct CatalogMark {}

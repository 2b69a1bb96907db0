//! The catalog's part of two-phase commit: what a prepared transaction has changed in the catalog.
//!
//! The session gives its changes away ([`CatalogTx::give_away`]), to whoever ends the transaction. For a restart the
//! record of the transaction in the log names the objects that it changed and the files that go with its end
//! ([`CatalogTx::for_the_log`]); the objects themselves are rows of the internal heap, which the transaction, running
//! again, sees there.

use std::sync::Arc;

use base::{RelId, Result, err};
use serde::{Deserialize, Serialize};
use txn::{Prepared, Transaction, TxnManager};

use crate::store::{Catalog, CatalogTx, Key, read};

/// A transaction that was prepared before the server started.
pub struct Restored {
    /// Its record.
    pub prepared: Arc<Prepared>,
    /// It, running.
    pub tx: Transaction,
    /// Its changes of the catalog.
    pub catalog_tx: CatalogTx,
}

/// The catalog's part of the record.
#[derive(Default, Serialize, Deserialize)]
struct Logged {
    changed: Vec<Key>,
    drop_at_commit: Vec<u32>,
    drop_at_abort: Vec<u32>,
}

impl Catalog {
    /// Makes the changes of prepared transactions anew, from their records and the heap.
    pub(crate) fn restore_prepared(self: &Arc<Self>, txn: &Arc<TxnManager>) -> Result<()> {
        for (prepared, tx) in txn.take_restored() {
            let catalog_tx = self.changes_of(&prepared, &tx)?;
            self.restored.lock().push(Restored { prepared, tx, catalog_tx });
        }
        Ok(())
    }

    fn changes_of(self: &Arc<Self>, prepared: &Prepared, tx: &Transaction) -> Result<CatalogTx> {
        let database = self.database(prepared.name.database.0);
        let database = database.ok_or_else(|| {
            err!(DATA_CORRUPTED, "a prepared transaction is of a database that does not exist")
        })?;
        let mut catalog_tx = CatalogTx::new(self, &database);
        if prepared.upper.is_empty() {
            return Ok(catalog_tx);
        }
        let logged: Logged = serde_json::from_slice(&prepared.upper).map_err(|_| {
            err!(DATA_CORRUPTED, "the record of a prepared transaction cannot be read")
        })?;
        let changes = &mut catalog_tx.changes;
        changes.drop_at_commit = logged.drop_at_commit.into_iter().map(RelId).collect();
        changes.drop_at_abort = logged.drop_at_abort.into_iter().map(RelId).collect();
        if logged.changed.is_empty() {
            return Ok(catalog_tx);
        }
        let contents = read(&self.heap, tx)?;
        for key in logged.changed {
            let objects = contents.objects.get(&key.0);
            let object = objects.and_then(|all| all.iter().find(|object| object.oid() == key.1));
            changes.objects.insert(key, object.cloned().map(Arc::new));
            let places = contents.places.get(&key).cloned();
            changes.places.insert(key, places.unwrap_or_else(|| Arc::from([])));
        }
        Ok(catalog_tx)
    }

    /// The transactions that were prepared before the server started, once.
    pub fn take_restored(&self) -> Vec<Restored> {
        std::mem::take(&mut *self.restored.lock())
    }

    /// The files that such transactions have made.
    pub(crate) fn files_of_restored(&self) -> Vec<RelId> {
        let restored = self.restored.lock();
        restored.iter().flat_map(|one| one.catalog_tx.changes.drop_at_abort.clone()).collect()
    }
}

impl CatalogTx {
    /// The catalog's part of the transaction's record; empty without changes.
    ///
    /// # Errors
    /// `XX000` when it can't be written down.
    pub fn for_the_log(&self) -> Result<Vec<u8>> {
        if !self.has_work() {
            return Ok(Vec::new());
        }
        let numbers = |rels: &imbl::Vector<RelId>| rels.iter().map(|rel| rel.0).collect();
        let logged = Logged {
            changed: self.changes.objects.keys().copied().collect(),
            drop_at_commit: numbers(&self.changes.drop_at_commit),
            drop_at_abort: numbers(&self.changes.drop_at_abort),
        };
        serde_json::to_vec(&logged)
            .map_err(|e| base::Error::internal(format!("could not write catalog changes: {e}")))
    }

    /// Gives the transaction's changes to whoever ends it.
    pub fn give_away(&mut self) -> CatalogTx {
        let mut given = CatalogTx::new(&self.catalog, &self.database);
        given.changes = std::mem::take(&mut self.changes);
        given.doors = std::mem::take(&mut self.doors);
        self.private = None;
        self.pending.clear();
        given
    }

    /// Whether the transaction has made, changed or dropped temporary objects.
    pub fn changed_temporary(&self) -> bool {
        self.temp.as_ref().is_some_and(|temp| temp.is_changed())
    }
}

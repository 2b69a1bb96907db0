//! The catalog of a server that follows another one: when a commit of the primary that publishes a version is applied,
//! the internal heap is read as of that commit, and the rows that differ make the new version.
//!
//! Left out: who would wait for the locks of a definition. [`Followed::relations`] says which relations have changed so
//! that those who use them must have gone before [`Followed::publish`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{Csn, Error, RelId, Result, err};
use txn::{Transaction, TxnManager};

use crate::database::SHARED;
use crate::object::{Id, Object, Table};
use crate::store::{Catalog, CatalogTx, Key, Places, rows};

/// The changes that a commit of the primary has made.
pub struct Followed(CatalogTx);

impl Catalog {
    /// Reads what differs from the published versions, as the transaction sees the heap.
    ///
    /// # Errors
    /// I/O errors; `XX001` when a row can't be read.
    pub fn follow(self: &Arc<Self>, tx: &Transaction) -> Result<Followed> {
        let damaged = || err!(DATA_CORRUPTED, "the catalog has a row that cannot be read");
        let found = rows(&self.heap, tx)?;
        let known: BTreeMap<Key, Places> =
            self.places.lock().iter().map(|(key, places)| (*key, places.clone())).collect();
        let mut followed = CatalogTx::new(self, self.shared());
        let changes = &mut followed.changes;
        for key in known.keys().filter(|key| !found.contains_key(key)) {
            changes.objects.insert(*key, None);
            changes.places.insert(*key, Arc::from([]));
        }
        for (key, row) in found {
            if known.get(&key).is_some_and(|places| places[..] == row.places[..]) {
                continue;
            }
            if !row.is_whole {
                return Err(damaged());
            }
            let object: Object = serde_json::from_slice(&row.json).map_err(|_| damaged())?;
            changes.objects.insert(key, Some(Arc::new(object)));
            changes.places.insert(key, row.places.into());
        }
        Ok(Followed(followed))
    }

    /// The table of a relation's file, or of that of its large values: its database and oid.
    pub fn table_of(&self, rel: RelId) -> Option<(Id, Id)> {
        let file = rel.0 & !(1 << 31);
        for database in self.databases() {
            let current = database.latest();
            if let Some(table) = current.tables().find(|table| table.rel == file) {
                return Some((database.oid(), table.oid));
            }
            if let Some(index) = current.indexes().find(|index| index.rel == file) {
                return Some((database.oid(), index.table));
            }
        }
        None
    }

    /// The server does not follow any more: takes over the transactions that were prepared in the primary.
    ///
    /// # Errors
    /// As [`Catalog::open`].
    pub fn end_following(self: &Arc<Self>, txn: &Arc<TxnManager>) -> Result<()> {
        self.restore_prepared(txn)
    }
}

fn same_columns(a: &Table, b: &Table) -> bool {
    let written = |table: &Table| serde_json::to_vec(&table.columns).unwrap_or_default();
    written(a) == written(b)
}

impl Followed {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        !self.0.changed()
    }

    /// Tables of which files, columns or indexes have gone or are others: database and oid.
    pub fn relations(&self) -> BTreeSet<(Id, Id)> {
        let mut changed = BTreeSet::new();
        for ((database, id), object) in &self.0.changes.objects {
            let Some(open) = self.0.catalog.database(*database) else { continue };
            let before = open.latest();
            if let Some(table) = before.table(*id) {
                let same = matches!(object.as_deref(), Some(Object::Table(now))
                    if now.rel == table.rel && same_columns(now, table));
                if !same {
                    changed.insert((*database, *id));
                }
            } else if let Some(index) = before.index(*id) {
                let same =
                    matches!(object.as_deref(), Some(Object::Index(now)) if now.rel == index.rel);
                if !same {
                    changed.insert((*database, index.table));
                }
            }
        }
        changed
    }

    /// Databases that are gone.
    pub fn dropped_databases(&self) -> Vec<Id> {
        let gone = |id: &Id| self.0.catalog.database(*id).is_some();
        let of_shared = self.0.changes.objects.range((SHARED, 0)..=(SHARED, Id::MAX));
        of_shared
            .filter(|(_, object)| object.is_none())
            .map(|((_, id), _)| *id)
            .filter(gone)
            .collect()
    }

    /// Makes them the published version.
    ///
    /// # Errors
    /// `XX000` for changes of a database that does not exist.
    pub fn publish(self, csn: Csn) -> Result<()> {
        let databases: BTreeSet<Id> =
            self.0.changes.objects.keys().map(|(database, _)| *database).collect();
        self.0.publish_followed(csn, &databases).ok_or_else(|| {
            Error::internal("the catalog has objects of a database that does not exist")
        })
    }
}

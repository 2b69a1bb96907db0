//! Sums by table and index (read by `tables.rs`).

use std::sync::Arc;

/// Relations that a slice keeps.
pub(super) const RELATIONS_MAX: usize = 64;

/// A table or an index, and the work on it.
#[derive(Clone, Debug, PartialEq)]
pub struct RelationSum {
    /// Its database's oid.
    pub database: u32,
    /// Its own.
    pub oid: u32,
    /// Its name.
    pub name: Arc<str>,
    /// An index's table; empty for a table.
    pub table: Arc<str>,
    /// Scans of the whole table, or of the index.
    pub scans: u64,
    /// Rows or entries that these read.
    pub returned: u64,
    /// Rows found through the index.
    pub fetched: u64,
    /// Rows inserted.
    pub inserted: u64,
    /// Rows updated.
    pub updated: u64,
    /// Of these: without new index entries.
    pub hot_updated: u64,
    /// Rows deleted.
    pub deleted: u64,
    /// Pages found in memory.
    pub blocks_hit: u64,
    /// Pages read.
    pub blocks_read: u64,
    /// Time that statements waited for it: for locks on it and its rows, its pages, its growth, nanoseconds.
    pub waited_ns: u64,
}

impl RelationSum {
    /// Nothing of a relation.
    pub fn new(database: u32, oid: u32) -> RelationSum {
        RelationSum {
            database,
            oid,
            name: Arc::default(),
            table: Arc::default(),
            scans: 0,
            returned: 0,
            fetched: 0,
            inserted: 0,
            updated: 0,
            hot_updated: 0,
            deleted: 0,
            blocks_hit: 0,
            blocks_read: 0,
            waited_ns: 0,
        }
    }

    /// Its counts, in the order of the fields.
    pub(super) fn counts(&mut self) -> [&mut u64; 10] {
        [
            &mut self.scans,
            &mut self.returned,
            &mut self.fetched,
            &mut self.inserted,
            &mut self.updated,
            &mut self.hot_updated,
            &mut self.deleted,
            &mut self.blocks_hit,
            &mut self.blocks_read,
            &mut self.waited_ns,
        ]
    }

    /// Adds a later time.
    pub(super) fn add(&mut self, later: &RelationSum) {
        let mut later = later.clone();
        self.counts().into_iter().zip(later.counts()).for_each(|(mine, its)| *mine += *its);
        (self.name, self.table) = (later.name, later.table);
    }

    /// By what it is kept: a page read for 100 µs, another page for one, a row for one.
    pub fn weight(&self) -> u64 {
        let rows = self.returned + self.inserted + self.updated + self.deleted;
        self.waited_ns + 100_000 * self.blocks_read + 1000 * (self.blocks_hit + rows)
    }

    /// Whether nothing was done to it.
    pub(super) fn is_empty(&mut self) -> bool {
        self.counts().iter().all(|count| **count == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_the_latest_name_stays() {
        let mut sum = RelationSum { name: "old".into(), ..RelationSum::new(5, 7) };
        let later = RelationSum {
            name: "new".into(),
            scans: 2,
            blocks_read: 3,
            waited_ns: 9,
            ..RelationSum::new(5, 7)
        };
        sum.add(&later);
        sum.add(&later);
        assert_eq!((sum.scans, sum.blocks_read, sum.waited_ns, &*sum.name), (4, 6, 18, "new"));
    }
}

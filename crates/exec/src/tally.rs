//! Counts of a statement's effects on each table and index, kept by whoever causes them, in
//! memory of the session's own. The session passes it on when the statement is over.
//!
//! As in PostgreSQL, `returned` counts what a scan looked at (rows of a table that are visible,
//! entries of an index) and `fetched` the visible rows that were found through an index.

use base::usage::Use;
use sched::Task;

/// Counts for one table or index. Pages are those of its own files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelationCounts {
    /// Scans begun.
    pub scans: u64,
    /// Rows or entries that they read.
    pub returned: u64,
    /// Rows found through this index.
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
}

impl RelationCounts {
    /// Whether rows were changed.
    #[inline]
    pub fn changed(&self) -> bool {
        self.inserted | self.updated | self.deleted != 0
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &RelationCounts) {
        self.scans += other.scans;
        self.returned += other.returned;
        self.fetched += other.fetched;
        self.inserted += other.inserted;
        self.updated += other.updated;
        self.hot_updated += other.hot_updated;
        self.deleted += other.deleted;
        self.blocks_hit += other.blocks_hit;
        self.blocks_read += other.blocks_read;
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Tally {
    relations: Vec<(u32, RelationCounts)>,
}

/// More relations than this and the memory is given back when the tally is emptied.
const KEPT: usize = 16;

impl Tally {
    /// The counts of a table or index, by oid.
    #[inline]
    pub fn of(&mut self, oid: u32) -> &mut RelationCounts {
        let at = match self.relations.iter().position(|(known, _)| *known == oid) {
            Some(at) => at,
            None => {
                self.relations.push((oid, RelationCounts::default()));
                self.relations.len() - 1
            }
        };
        &mut self.relations[at].1
    }

    /// Notes a call of a user's function: functions have oids of their own among those of relations. The calls
    /// stand in `scans`, the microseconds of calls in `returned`, those outside of other functions in `fetched`.
    pub fn called(&mut self, function: u32, total_us: u64, self_us: u64) {
        let counts = self.of(function);
        counts.scans += 1;
        counts.returned += total_us;
        counts.fetched += self_us;
    }

    /// All counts.
    pub fn iter(&self) -> impl Iterator<Item = &(u32, RelationCounts)> {
        self.relations.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.relations.is_empty()
    }

    /// Forgets all counts.
    pub fn clear(&mut self) {
        self.relations.clear();
        self.relations.shrink_to(KEPT);
    }
}

/// The pages that a task has pinned so far: found in memory, read.
#[derive(Clone, Copy)]
pub struct Pages(u64, u64);

impl Pages {
    /// Now.
    #[inline]
    pub fn now(task: &Task) -> Pages {
        Pages(task.used(Use::BufferHit), task.used(Use::BufferRead))
    }

    /// Puts what came since down to a relation; the new reading.
    #[inline]
    pub fn count(self, task: &Task, counts: &mut RelationCounts) -> Pages {
        let now = Pages::now(task);
        counts.blocks_hit += now.0 - self.0;
        counts.blocks_read += now.1 - self.1;
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_relation_has_its_counts() {
        let mut tally = Tally::default();
        tally.of(7).scans += 1;
        tally.of(8).returned += 2;
        tally.of(7).scans += 1;
        let all: Vec<_> = tally.iter().map(|(oid, c)| (*oid, c.scans, c.returned)).collect();
        assert_eq!(all, [(7, 2, 0), (8, 0, 2)]);
        tally.clear();
        assert!(tally.is_empty());
    }
}

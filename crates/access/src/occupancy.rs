//! How full the pages of indexes are, for those who look at an index as a whole (`pgstattuple`).
//!
//! Each page is read under its latch for itself: others may change the index meanwhile, and what they split or empty may
//! be counted as it was or as it is.

use base::{Fork, Result};

use crate::btree::BTree;
use crate::btree::node::{self, Node};
use crate::gin::GinIndex;
use crate::hash::HashIndex;
use crate::hash::page::{self as bucket, Chained};

pub use crate::method::IndexContents;

/// The pages of a B-tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct TreePages {
    /// Levels above the leaves.
    pub level: u16,
    /// The root's block.
    pub root: u32,
    /// All of the file.
    pub all: u64,
    /// Above the leaves, the root included.
    pub inner: u64,
    /// Leaves with entries.
    pub leaves: u64,
    /// Leaves without.
    pub empty: u64,
    /// In no level.
    pub unused: u64,
    /// Bytes of the leaves that no entry has.
    pub free_bytes: u64,
    /// Bytes of the leaves that entries could have.
    pub leaf_bytes: u64,
    /// Leaves whose right neighbour stands before them in the file.
    pub out_of_order: u64,
}

/// The pages of a hash index.
#[derive(Clone, Copy, Debug, Default)]
pub struct HashPages {
    /// First pages of buckets.
    pub buckets: u64,
    /// Further pages of buckets.
    pub overflows: u64,
    /// In no bucket.
    pub unused: u64,
    /// Entries.
    pub entries: u64,
    /// Entries that the pages of buckets have room for.
    pub room: u64,
}

impl BTree {
    /// Counts its entries and what is free.
    ///
    /// # Errors
    /// I/O, checksums, interrupts.
    pub fn contents(&self) -> Result<IndexContents> {
        let blocks = self.storage.block_count(self.rel, Fork::Main)?;
        let mut all = IndexContents { pages: u64::from(blocks), ..IndexContents::default() };
        for block in 1..blocks {
            sched::check_interrupts()?;
            let pinned = self.pin(block)?;
            let guard = pinned.read();
            let node = Node(guard.page());
            if !node.is_node() || node.is_deleted() {
                all.free_bytes += storage::PAGE_SIZE as u64;
            } else if node.level() == 0 {
                all.entries += node.count() as u64;
                let bytes = node.entries().map(|e| node::entry_size(e.key.len(), false) as u64);
                all.entry_bytes += bytes.sum::<u64>();
                all.free_bytes += (node.room() + node.garbage()) as u64;
            }
        }
        Ok(all)
    }

    /// Counts its pages and their contents.
    ///
    /// # Errors
    /// I/O, checksums, interrupts.
    pub fn occupancy(&self) -> Result<TreePages> {
        let (root, level) = node::read_meta(self.pin(0)?.read().page()).unwrap_or_default();
        let blocks = self.storage.block_count(self.rel, Fork::Main)?;
        let mut pages = TreePages { level, root, all: u64::from(blocks), ..TreePages::default() };
        for block in 1..blocks {
            sched::check_interrupts()?;
            let pinned = self.pin(block)?;
            let guard = pinned.read();
            let node = Node(guard.page());
            match (node.is_node() && !node.is_deleted(), node.level()) {
                (false, _) => pages.unused += 1,
                (true, 0) => {
                    let is_empty = node.count() == 0;
                    pages.empty += u64::from(is_empty);
                    pages.leaves += u64::from(!is_empty);
                    pages.free_bytes += (node.room() + node.garbage()) as u64;
                    pages.leaf_bytes += node::CAPACITY as u64;
                    pages.out_of_order += u64::from(node.right() != 0 && node.right() < block);
                }
                (true, _) => pages.inner += 1,
            }
        }
        Ok(pages)
    }
}

impl HashIndex {
    /// Counts its entries and what is free.
    ///
    /// # Errors
    /// I/O, checksums, interrupts.
    pub fn contents(&self) -> Result<IndexContents> {
        let pages = self.occupancy()?;
        let entry = bucket::ENTRY as u64;
        let blocks = self.storage.block_count(self.rel, Fork::Main)?;
        Ok(IndexContents {
            pages: u64::from(blocks),
            entries: pages.entries,
            entry_bytes: pages.entries * entry,
            free_bytes: (pages.room - pages.entries) * entry
                + pages.unused * storage::PAGE_SIZE as u64,
        })
    }

    /// Counts its pages and their contents.
    ///
    /// # Errors
    /// I/O, checksums, interrupts.
    pub fn occupancy(&self) -> Result<HashPages> {
        let mut pages = HashPages::default();
        for block in 1..self.storage.block_count(self.rel, Fork::Main)? {
            sched::check_interrupts()?;
            let pinned = self.pin(block)?;
            let guard = pinned.read();
            let chained = Chained(guard.page());
            match (chained.is_primary(), chained.is_overflow()) {
                (true, _) => pages.buckets += 1,
                (_, true) => pages.overflows += 1,
                _ => {
                    let is_directory = bucket::kind(guard.page()) == bucket::KIND_DIRECTORY;
                    pages.unused += u64::from(!is_directory);
                    continue;
                }
            }
            pages.entries += chained.count() as u64;
            pages.room += bucket::CAPACITY as u64;
        }
        Ok(pages)
    }
}

impl GinIndex {
    /// Rows of the pending list, and their bytes.
    ///
    /// # Errors
    /// I/O, checksums, interrupts.
    pub fn pending(&self) -> Result<(u64, u64)> {
        let (mut rows, mut bytes) = (0, 0);
        self.each_pending(&mut |key| {
            rows += 1;
            bytes += key.len() as u64;
        })?;
        Ok((rows, bytes))
    }
}

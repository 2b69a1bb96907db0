//! Vacuum: removes dead versions and their index entries, fills the free space map, cuts the tail.

use base::Result;
use txn::TxnManager;

use crate::btree::BTree;
use crate::heap::Heap;

/// What a vacuum did.
#[derive(Clone, Copy, Debug, Default)]
pub struct VacuumStats {
    /// Pages of the table.
    pub pages: u32,
    /// Row versions left.
    pub live: u64,
    /// Row versions removed.
    pub removed: u64,
    /// Row versions that are dead but still seen by somebody.
    pub kept: u64,
}

/// Vacuums a table with its indexes. The caller holds ShareUpdateExclusive on the table.
pub fn vacuum(_manager: &TxnManager, _heap: &Heap, _indexes: &[BTree]) -> Result<VacuumStats> {
    todo!()
}

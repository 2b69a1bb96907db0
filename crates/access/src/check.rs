//! A checker that walks heap and indexes and says where they disagree (`amcheck`'s job).

use base::Result;

use crate::btree::BTree;
use crate::heap::Heap;

/// Checks page structure, order, links and that index entries and rows match; returns findings.
/// `key_of` gives the row bytes' key for each index.
pub fn check(
    _heap: &Heap,
    _indexes: &[(BTree, &dyn Fn(&[u8]) -> Option<Vec<u8>>)],
) -> Result<Vec<String>> {
    todo!()
}

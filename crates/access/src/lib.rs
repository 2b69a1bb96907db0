//! Heap, B-tree, free space map, relation extension, vacuum. Rows and keys are bytes here: what
//! they mean is known above. (Interface agreed first; bodies follow.)

pub mod btree;
pub mod check;
pub mod heap;
pub mod vacuum;

pub use btree::{BTree, KeyRange, Unique};
pub use heap::{Heap, HeapScan, HeapTuple, LockResult, WriteResult};

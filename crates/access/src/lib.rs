//! Heap, B-tree, hash index, GIN, GiST, BRIN, HNSW, IVFFlat, bloom, free space map, relation extension, vacuum. Rows and keys are bytes here: what
//! they mean is known above.
//!
//! Files of a relation are made by whoever names it (`Storage::create_relation`); [`Heap::open`]
//! needs nothing else, an index is begun with [`BTree::create`] or [`BTree::build`].

#![forbid(unsafe_code)]

pub mod bloom;
pub mod brin;
pub mod btree;
mod cells;
pub mod check;
pub mod extension;
mod found;
pub mod gin;
pub mod gist;
pub mod hash;
pub mod heap;
pub mod hnsw;
pub mod index;
pub mod ivf;
mod method;
pub mod occupancy;
mod registry;
mod space;
mod state;
pub mod vacuum;
pub mod vector;
mod visibility_map;

pub use btree::{BTree, Cursor, Inserted, KeyRange, Rival, Unique};
pub use heap::{
    Estimate, Heap, HeapScan, HeapTuple, InsertHint, Keep, LockResult, RowBatch, RowWait,
    SystemColumns, WriteResult,
};
pub use index::{AnyIndex, IndexMethod, Search};
pub use registry::{forget, reset};
pub use vacuum::{VacuumStats, vacuum};
pub use visibility_map::VacuumEpoch;

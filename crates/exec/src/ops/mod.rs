//! Operators: one small file each, all of one shape.
//!
//! An operator is the state of one plan node while it runs. It gets its node with every call, hands
//! batches up, and forgets everything when it is told to begin again.

mod accumulate;
pub mod aggregate;
mod append;
mod before_error;
mod bitmap;
pub mod bitmap_heap_scan;
pub mod build;
mod covering_only_scan;
mod cte;
mod distinct;
mod filter;
mod foreign_scan;
mod function_scan;
pub mod gather;
mod group_sorted;
pub mod grouping;
pub mod hash_join;
pub mod hashed_rows;
mod incremental_sort;
pub mod index_bounds;
pub mod index_only_scan;
mod index_pieces;
mod index_scan;
pub mod kept;
mod key_filter;
mod limit;
mod lock_rows;
pub mod measure;
pub mod memoize;
mod merge_join;
mod nearest_scan;
mod nested_loop;
pub mod one_by_one;
pub mod operator;
mod ordered_set;
mod own_aggregate;
mod partition;
pub mod partition_scan;
pub mod partition_wise;
mod project;
mod project_set;
mod recursive;
mod rewritten;
mod sample_scan;
mod seq_scan;
mod set_op;
pub mod sort;
pub mod spill;
mod system_scan;
pub(crate) mod system_tables;
pub mod team;
mod unordered_index_scan;
mod values;
mod window;

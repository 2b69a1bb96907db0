//! The state of index methods that the handles of one index share.

use std::sync::OnceLock;

use crate::btree::TreeState;
use crate::cells::CellState;
use crate::gin::GinState;
use crate::gist::GistState;
use crate::hash::HashState;

/// State that all handles of one index share; made by the first that needs it. A relation's method never changes.
#[derive(Default)]
pub struct IndexState(OnceLock<MethodState>);

enum MethodState {
    Tree(TreeState),
    Hash(HashState),
    Gin(GinState),
    Gist(GistState),
    Cells(CellState),
}

impl IndexState {
    /// Of a B-tree.
    #[inline]
    pub(crate) fn tree(&self) -> &TreeState {
        match self.0.get_or_init(|| MethodState::Tree(TreeState::default())) {
            MethodState::Tree(state) => state,
            // Its entries are in one.
            MethodState::Gin(state) => &state.tree,
            _ => unreachable!("another index was opened as a B-tree"),
        }
    }

    /// Of a hash index.
    pub(crate) fn hash(&self) -> &HashState {
        match self.0.get_or_init(|| MethodState::Hash(HashState::default())) {
            MethodState::Hash(state) => state,
            _ => unreachable!("another index was opened as a hash index"),
        }
    }

    /// Of a GIN index.
    pub(crate) fn gin(&self) -> &GinState {
        match self.0.get_or_init(|| MethodState::Gin(GinState::default())) {
            MethodState::Gin(state) => state,
            _ => unreachable!("another index was opened as a GIN index"),
        }
    }

    /// Of a GiST or SP-GiST index.
    pub(crate) fn gist(&self) -> &GistState {
        match self.0.get_or_init(|| MethodState::Gist(GistState::default())) {
            MethodState::Gist(state) => state,
            _ => unreachable!("another index was opened as a GiST index"),
        }
    }

    /// Of an index of cells: HNSW, IVFFlat, bloom.
    pub(crate) fn cells(&self) -> &CellState {
        match self.0.get_or_init(|| MethodState::Cells(CellState::default())) {
            MethodState::Cells(state) => state,
            _ => unreachable!("another index was opened as one of cells"),
        }
    }

    /// As new: the file is empty.
    pub(crate) fn reset(&self) {
        match self.0.get() {
            Some(MethodState::Tree(state)) => state.reset(),
            Some(MethodState::Hash(state)) => state.reset(),
            Some(MethodState::Gin(state)) => state.reset(),
            Some(MethodState::Gist(state)) => state.reset(),
            Some(MethodState::Cells(state)) => state.reset(),
            None => {}
        }
    }
}

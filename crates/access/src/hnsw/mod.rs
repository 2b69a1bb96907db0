//! HNSW: a graph of vectors in which near ones are neighbours (Malkov and Yashunin, "Efficient and robust approximate
//! nearest neighbor search using Hierarchical Navigable Small World graphs", 2016).
//!
//! ```text
//!  layer 2        a ─────────────── d            few elements, far from each other
//!  layer 1        a ───── c ─────── d ── e
//!  layer 0        a ─ b ─ c ─ … ─── d ── e ─ f   all elements
//!  a search goes down from the entry point (a), on each layer to the nearest that it finds
//! ```
//!
//! * [`page`]: the cells. `graph`: the algorithms. `insert`, `build` (in memory, by several threads), `scan`, `vacuum`,
//!   `verify`.
//! * An element has up to ten rows whose vectors are the same. Its cells stay where they are, so that links are addresses.
//! * Writers search without a lock and write one at a time. First the element, then the links to it, each a
//!   mini-transaction of its own: wherever a crash cuts, the graph is one, and what lacks links belongs to a transaction
//!   that has not committed.
//! * Readers hold one page's latch at a time.
//! * Vacuum takes rows away first; elements without rows are a way to others, no neighbours of new ones. Then it gives their
//!   neighbours others, and when no element leads to them their cells are free. A writer that has searched before
//!   rows were taken away (`CellState::epoch`) searches again.
//! * Serializable transactions lock the whole index: what a search finds depends on all of it.

mod build;
mod graph;
mod insert;
mod page;
mod scan;
mod vacuum;
mod verify;

use std::collections::HashSet;
use std::sync::Arc;

use base::{AccessMethod, RelId, Result, TupleId, err};
use graph::{At, Graph};
use page::{Element, KIND_META, Meta};
use storage::Storage;
use txn::Transaction;

use crate::btree::{Inserted, Unique};
use crate::cells::{CellFile, CellState, Cells, Place};
use crate::method::{IndexMethod, NextEntry, Report};
use crate::registry::{self, RelState};
use crate::vector::{PlaceHash, VectorOps, VectorSearch, ops_of, scrambled};

pub use scan::HnswScan;

/// Neighbours on each layer, by default.
pub const M: u16 = 16;
/// Candidates among which an element's neighbours are chosen, by default.
pub const EF_CONSTRUCTION: u16 = 64;

/// One HNSW index.
#[derive(Clone)]
pub struct HnswIndex {
    /// The files.
    pub rel: RelId,
    /// The distances.
    pub ops: Option<Arc<dyn VectorOps>>,
    /// Neighbours on each layer, for a new index.
    pub m: u16,
    /// Candidates among which they are chosen, for a new index.
    pub ef_construction: u16,
    /// Bytes that a build may use, and helpers that it may start.
    pub build_with: (usize, usize),
    file: CellFile,
    state: Arc<RelState>,
}

impl HnswIndex {
    /// Names an index; no I/O.
    pub fn open(storage: &Arc<Storage>, rel: RelId) -> HnswIndex {
        let state = registry::state_of(storage, rel);
        let file = CellFile { rel, storage: storage.clone() };
        let (m, ef_construction) = (M, EF_CONSTRUCTION);
        HnswIndex { rel, ops: None, m, ef_construction, build_with: (usize::MAX, 0), file, state }
    }

    fn shared(&self) -> &CellState {
        self.state.index.cells()
    }

    fn ops(&self) -> Result<&dyn VectorOps> {
        ops_of(self.ops.as_ref())
    }

    fn meta(&self) -> Result<Meta> {
        self.file.meta(KIND_META, Meta::read)
    }

    /// A level, by a number that is different for each element: each is 1/m as likely as the one below.
    fn level(m: usize, number: u64) -> usize {
        let chance = (scrambled(number) >> 11) as f64 / (1_u64 << 53) as f64;
        let level = -(1.0 - chance).ln() / (m as f64).ln();
        (level as usize).min(page::level_max(m))
    }

    /// Reads an element; None when it is free.
    fn element<R>(
        &self,
        place: Place,
        read: impl FnOnce(Element<'_>, Cells<'_>) -> R,
    ) -> Result<Option<R>> {
        let pinned = self.file.pin(place.block)?;
        let guard = pinned.read();
        let cells = Cells(guard.page());
        let element = Element::of(cells, place.number);
        let element = element.ok_or_else(|| self.file.corrupted(place.block))?;
        Ok((!element.is_free()).then(|| read(element, cells)))
    }

    /// Puts the neighbours of an element on a layer into the list.
    fn neighbors(&self, m: usize, of: Place, layer: usize, out: &mut Vec<Place>) -> Result<()> {
        let elsewhere = self.element(of, |element, cells| {
            let links = element.links();
            if links.block != of.block {
                return Some(links);
            }
            let links = cells.cell(links.number.into()).unwrap_or_default();
            out.extend(page::neighbors(links, m, layer));
            None
        })?;
        if let Some(Some(links)) = elsewhere {
            let pinned = self.file.pin(links.block)?;
            let guard = pinned.read();
            let cell = Cells(guard.page()).cell(links.number.into());
            let cell = cell.ok_or_else(|| self.file.corrupted(links.block))?;
            out.extend(page::neighbors(cell, m, layer));
        }
        Ok(())
    }

    fn vector(&self, place: Place) -> Result<Option<Vec<u8>>> {
        self.element(place, |element, _| element.vector().to_vec())
    }

    /// The elements nearest to the entry point's way down, at which a search of `layer` begins.
    fn descend(&self, view: &mut View<'_>, meta: &Meta, layer: usize) -> Result<Vec<At<Place>>> {
        view.navigate = true;
        let mut entries: Vec<At<Place>> = view.at(meta.entry)?.into_iter().collect();
        let mut level = meta.level;
        while level > layer && !entries.is_empty() {
            view.begin(&entries);
            entries = graph::search_layer(view, &entries, 1, level, None)?;
            level -= 1;
        }
        view.navigate = false;
        // Whether the last one is live was not asked.
        let last = entries.first().map(|e| view.at(e.id)).transpose()?.flatten();
        Ok(last.into_iter().collect())
    }
}

/// The graph as one search sees it.
struct View<'a> {
    index: &'a HnswIndex,
    ops: &'a dyn VectorOps,
    search: &'a VectorSearch,
    m: usize,
    visited: HashSet<Place, PlaceHash>,
    /// All elements are as good as those with rows.
    navigate: bool,
}

impl<'a> View<'a> {
    fn new(index: &'a HnswIndex, search: &'a VectorSearch, m: usize) -> Result<View<'a>> {
        let ops = index.ops()?;
        Ok(View { index, ops, search, m, visited: HashSet::default(), navigate: false })
    }

    /// Forgets what was visited but these.
    fn begin(&mut self, entries: &[At<Place>]) {
        self.visited.clear();
        self.visited.extend(entries.iter().map(|e| e.id));
    }
}

impl Graph for View<'_> {
    type Id = Place;

    fn visit(&mut self, id: Place) -> bool {
        self.visited.insert(id)
    }

    fn neighbors(&mut self, id: Place, layer: usize, out: &mut Vec<Place>) -> Result<()> {
        self.index.neighbors(self.m, id, layer, out)
    }

    fn at(&mut self, id: Place) -> Result<Option<At<Place>>> {
        let (search, ops, navigate) = (self.search, self.ops, self.navigate);
        self.index.element(id, |element, _| {
            let distance = search.distance(ops, element.vector());
            At { distance, id, live: navigate || element.count() > 0 }
        })
    }
}

impl IndexMethod for HnswIndex {
    const METHOD: AccessMethod = AccessMethod::Hnsw;

    fn fill(&self, _rows: u64, next: &mut NextEntry<'_>) -> Result<()> {
        HnswIndex::fill(self, next)
    }

    fn insert(
        &self,
        tx: &Transaction,
        key: &[u8],
        root: TupleId,
        _unique: Unique<'_>,
    ) -> Result<Inserted> {
        tx.writes_page(self.rel, 0)?;
        self.add(key, root, false)?;
        Ok(Inserted::Done)
    }

    fn insert_entry(&self, tx: &Transaction, entry: &[u8], root: TupleId) -> Result<()> {
        tx.writes_page(self.rel, 0)?;
        self.add(entry, root, true)
    }

    fn bulk_delete(&self, dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        self.delete_dead(dead)
    }

    fn check(&self) -> Result<Report> {
        self.verify()
    }
}

/// Whether a vector's cell fits a page.
fn check_len(vector: &[u8]) -> Result<()> {
    if vector.len() > page::VECTOR_MAX {
        return Err(err!(
            PROGRAM_LIMIT_EXCEEDED,
            "index row size {} exceeds maximum {} for an HNSW index",
            vector.len(),
            page::VECTOR_MAX
        ));
    }
    Ok(())
}

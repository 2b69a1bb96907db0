//! Vacuum: rows go, elements without rows lose those who lead to them, then their cells are free.

use std::collections::{HashMap, HashSet, VecDeque};

use base::{PageId, Result, TupleId};

use super::graph::{At, search_layer};
use super::insert::Known;
use super::page::{self, Element, KIND_CELLS, Meta};
use super::{HnswIndex, View};
use crate::cells::{self, Cells, Place};
use crate::vector::{Iterative, PlaceHash, VectorSearch};

/// Elements without rows that are looked through for the neighbours behind them, by candidates that are wanted.
const LOOKED_THROUGH: usize = 8;

type Places = HashSet<Place, PlaceHash>;

/// A page's elements: address, level, whether it has rows, whether it is free.
type Listed = Vec<(Place, usize, bool, bool)>;

impl HnswIndex {
    /// Takes rows away; returns how many.
    pub(super) fn delete_dead(&self, dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        let blocks = self.file.blocks()?;
        let (mut removed, mut gone) = (0, Places::default());
        let mut free: HashMap<(usize, u8), Vec<Place>> = HashMap::new();
        for block in 1..blocks {
            sched::check_interrupts()?;
            removed += self.take_rows(block, dead)?;
            for (place, level, live, is_free) in self.list(block)? {
                if is_free {
                    let len = self.cell_len(place)?;
                    free.entry((len, level as u8)).or_default().push(place);
                } else if !live {
                    gone.insert(place);
                }
            }
        }
        {
            // Inserts that searched before this search again.
            let mut room = self.shared().writing.lock();
            self.shared().next_epoch();
            room.free = free;
        }
        if !gone.is_empty() {
            self.repair(&gone)?;
            self.release(&gone)?;
        }
        Ok(removed)
    }

    fn cell_len(&self, place: Place) -> Result<usize> {
        let pinned = self.file.pin(place.block)?;
        let guard = pinned.read();
        Ok(Cells(guard.page()).cell(place.number.into()).map_or(0, <[u8]>::len))
    }

    fn list(&self, block: u32) -> Result<Listed> {
        let pinned = self.file.pin(block)?;
        let guard = pinned.read();
        let cells = Cells(guard.page());
        let numbers = 0..cells.count() as u16;
        let of = |number| {
            let e = Element::of(cells, number)?;
            Some((Place { block, number }, e.level(), e.count() > 0, e.is_free()))
        };
        Ok(numbers.filter_map(of).collect())
    }

    /// Takes the dead rows of a page's elements away.
    fn take_rows(&self, block: u32, dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        let _turn = self.shared().writing.lock();
        let mut mtr = self.file.storage.mtr();
        let guard = self.file.storage.pool.pin_scan(PageId::main(self.rel, block))?.write();
        let page = mtr.add(guard);
        let cells = Cells(mtr.page(page));
        match cells.kind() {
            0 => return Ok(0),
            KIND_CELLS => {}
            _ => return Err(self.file.corrupted(block)),
        }
        let mut changes = Vec::new();
        let mut removed = 0;
        for number in 0..cells.count() as u16 {
            let Some(element) = Element::of(cells, number) else { continue };
            if element.is_free() {
                continue;
            }
            let left: Vec<TupleId> = element.rows().filter(|row| !dead(*row)).collect();
            if left.len() < element.count() {
                removed += (element.count() - left.len()) as u64;
                changes.push((number, left));
            }
        }
        for (number, left) in changes {
            for (at, bytes) in page::with_rows(&left) {
                cells::put(&mut mtr, page, number, at, &bytes);
            }
        }
        mtr.commit();
        Ok(removed)
    }

    /// Gives all whose neighbours are gone others, and the index an entry point.
    fn repair(&self, gone: &Places) -> Result<()> {
        let mut highest: Option<(Place, usize)> = None;
        let mut block = 1;
        while block < self.file.blocks()? {
            for (place, level, live, is_free) in self.list(block)? {
                sched::check_interrupts()?;
                if !live || is_free {
                    continue;
                }
                if highest.is_none_or(|(_, known)| level > known) {
                    highest = Some((place, level));
                }
                let _turn = self.shared().writing.lock();
                let meta = self.meta()?;
                for layer in 0..=level {
                    self.repair_layer(&meta, place, layer, gone)?;
                }
            }
            block += 1;
        }
        let _turn = self.shared().writing.lock();
        let meta = self.meta()?;
        if gone.contains(&meta.entry) {
            let (entry, level) = highest.unwrap_or((Place::NOWHERE, 0));
            self.put_entry(Meta { entry, level, ..meta })?;
        }
        Ok(())
    }

    /// Gives an element other neighbours on a layer than those that are gone.
    fn repair_layer(&self, meta: &Meta, of: Place, layer: usize, gone: &Places) -> Result<()> {
        let m = meta.m;
        let mut neighbors = Vec::new();
        self.neighbors(m, of, layer, &mut neighbors)?;
        let whole = !neighbors.iter().any(|n| gone.contains(n));
        if whole && !neighbors.is_empty() {
            return Ok(());
        }
        let width = page::width(m, layer);
        let mut met: Places = neighbors.iter().copied().chain([of]).collect();
        let mut candidates: Vec<Place> = Vec::new();
        // Behind those that are gone are others, which are near as well.
        let mut todo = VecDeque::new();
        for neighbor in neighbors {
            if gone.contains(&neighbor) {
                todo.push_back(neighbor)
            } else {
                candidates.push(neighbor)
            }
        }
        let mut looked = 0;
        let mut behind = Vec::new();
        while let Some(next) = todo.pop_front()
            && looked < width * LOOKED_THROUGH
            && candidates.len() < 3 * width
        {
            looked += 1;
            behind.clear();
            self.neighbors(m, next, layer, &mut behind)?;
            for place in behind.iter().filter(|place| met.insert(**place)) {
                if gone.contains(place) { todo.push_back(*place) } else { candidates.push(*place) }
            }
        }
        let Some((vector, links)) = self.element(of, |e, _| (e.vector().to_vec(), e.links()))?
        else {
            return Ok(());
        };
        if candidates.len() < m / 2 {
            candidates.extend(self.look_around(meta, &vector, layer)?);
            candidates.sort_unstable();
            candidates.dedup();
            candidates.retain(|place| *place != of && !gone.contains(place));
        }
        let ops = self.ops()?;
        let mut known = Vec::with_capacity(candidates.len());
        for id in candidates {
            let other = self.element(id, |e, _| {
                (e.count() > 0 && e.level() >= layer).then(|| e.vector().to_vec())
            })?;
            let Some(other) = other.flatten() else { continue };
            let distance = ops.distance(&vector, &other);
            known.push(Known { at: At { distance, id, live: true }, vector: other });
        }
        known.sort_by(|a, b| a.at.cmp(&b.at));
        let chosen = self.choose(&known, width)?;
        self.put_links(links, page::begin(m, layer), &page::layer_bytes(m, layer, &chosen))
    }

    /// The nearest elements of a layer by a search from the entry point.
    fn look_around(&self, meta: &Meta, vector: &[u8], layer: usize) -> Result<Vec<Place>> {
        if meta.entry == Place::NOWHERE || meta.level < layer {
            return Ok(Vec::new());
        }
        let search = VectorSearch {
            query: Some(vector.to_vec()),
            breadth: meta.ef_construction,
            iterative: Iterative::Off,
            most: 0,
        };
        let mut view = View::new(self, &search, meta.m)?;
        let entries = self.descend(&mut view, meta, layer)?;
        view.begin(&entries);
        let found = search_layer(&mut view, &entries, meta.ef_construction, layer, None)?;
        Ok(found.into_iter().map(|at| at.id).collect())
    }

    /// Frees cells to which nothing leads any more.
    fn release(&self, gone: &Places) -> Result<()> {
        let mut places: Vec<Place> = gone.iter().copied().collect();
        places.sort_unstable();
        for of_page in places.chunk_by(|a, b| a.block == b.block) {
            sched::check_interrupts()?;
            let mut room = self.shared().writing.lock();
            let mut mtr = self.file.storage.mtr();
            let page = mtr.latch(PageId::main(self.rel, of_page[0].block))?;
            let mut freed = Vec::with_capacity(of_page.len());
            for place in of_page {
                let Some(element) = Element::of(Cells(mtr.page(page)), place.number) else {
                    continue;
                };
                freed.push((*place, element.0.len(), element.level() as u8));
                let (at, flag) = page::FREED;
                cells::put(&mut mtr, page, place.number, at, &flag);
            }
            mtr.commit();
            for (place, len, level) in freed {
                room.free.entry((len, level)).or_default().push(place);
            }
        }
        Ok(())
    }
}

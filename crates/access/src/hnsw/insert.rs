//! Adding a vector: its neighbours are looked for without a lock, then it is written, then they are told.

use base::faults::{self, Fault};
use base::{PageId, Result, TupleId};

use super::graph::{self, At, search_layer};
use super::page::{self, Element, KIND_CELLS, Meta, ROWS};
use super::{HnswIndex, View, check_len};
use crate::cells::{self, Cells, Place, Room};
use crate::vector::{Iterative, VectorSearch};

/// Pages that take the last cells: of elements, and of links that have no room beside theirs.
const ELEMENTS: usize = 0;
const LINKS: usize = 1;

/// An element and its vector.
pub(super) struct Known {
    pub at: At<Place>,
    pub vector: Vec<u8>,
}

/// The findings about a new vector.
struct Looked {
    meta: Meta,
    level: usize,
    /// By layers, the neighbours that it is to have.
    layers: Vec<Vec<Place>>,
    /// An element with the same vector that has room for a row.
    same: Option<Place>,
    /// The row is there already.
    known: bool,
    /// All that leads on from the entry point has no rows any more.
    alone: bool,
}

impl HnswIndex {
    /// Adds a row. `unless_known`: it may be there.
    pub(super) fn add(&self, vector: &[u8], row: TupleId, unless_known: bool) -> Result<()> {
        check_len(vector)?;
        let number = u64::from(row.block) << 16 | u64::from(row.offset);
        loop {
            let epoch = self.shared().epoch();
            let looked = self.look(vector, row, number)?;
            if unless_known && looked.known {
                return Ok(());
            }
            let mut room = self.shared().writing.lock();
            // A vacuum may have taken the elements that the search found, or another insert has made the first one.
            let first = looked.alone && self.meta()?.entry != looked.meta.entry;
            if self.shared().epoch() != epoch || first {
                continue;
            }
            faults::reach(Fault::IndexInsert)?;
            if let Some(same) = looked.same
                && self.add_row(same, vector, row)?
            {
                return Ok(());
            }
            return self.write_element(&mut room, vector, row, looked);
        }
    }

    fn look(&self, vector: &[u8], row: TupleId, number: u64) -> Result<Looked> {
        let meta = self.meta()?;
        let level = HnswIndex::level(meta.m, number);
        let layers = vec![Vec::new(); level + 1];
        let mut looked = Looked { meta, level, layers, same: None, known: false, alone: true };
        if meta.entry == Place::NOWHERE {
            return Ok(looked);
        }
        let search = VectorSearch {
            query: Some(vector.to_vec()),
            breadth: meta.ef_construction,
            iterative: Iterative::Off,
            most: 0,
        };
        let ops = self.ops()?;
        self.element(meta.entry, |e, _| ops.check(vector, e.vector()))?.transpose()?;
        let mut view = View::new(self, &search, meta.m)?;
        let mut entries = self.descend(&mut view, &meta, level)?;
        for layer in (0..=level.min(meta.level)).rev() {
            view.begin(&entries);
            let found = search_layer(&mut view, &entries, meta.ef_construction, layer, None)?;
            let known = self.known(&found)?;
            if layer == 0 {
                self.look_for_same(&known, vector, row, &mut looked)?;
            }
            looked.layers[layer] = self.choose(&known, page::width(meta.m, layer))?;
            looked.alone &= found.is_empty();
            if !found.is_empty() {
                entries = found;
            }
        }
        Ok(looked)
    }

    /// Elements with their vectors.
    pub(super) fn known(&self, found: &[At<Place>]) -> Result<Vec<Known>> {
        let mut out = Vec::with_capacity(found.len());
        for at in found {
            if let Some(vector) = self.vector(at.id)? {
                out.push(Known { at: *at, vector });
            }
        }
        Ok(out)
    }

    /// Of candidates, the nearest first, those that are to be neighbours.
    pub(super) fn choose(&self, known: &[Known], most: usize) -> Result<Vec<Place>> {
        let ops = self.ops()?;
        let candidates: Vec<At<Place>> = known.iter().map(|k| k.at).collect();
        let chosen = graph::choose(&candidates, most, |a, b| {
            Ok(ops.distance(&known[a].vector, &known[b].vector))
        })?;
        Ok(chosen.into_iter().map(|n| candidates[n].id).collect())
    }

    fn look_for_same(
        &self,
        known: &[Known],
        vector: &[u8],
        row: TupleId,
        looked: &mut Looked,
    ) -> Result<()> {
        for one in known.iter().filter(|k| k.vector == vector) {
            let rows = self.element(one.at.id, |e, _| e.rows().collect::<Vec<_>>())?;
            let rows = rows.unwrap_or_default();
            looked.known |= rows.contains(&row);
            if !rows.is_empty() && rows.len() < ROWS {
                looked.same = looked.same.or(Some(one.at.id));
            }
        }
        Ok(())
    }

    /// Adds a row to an element with the same vector; false: it can't be.
    fn add_row(&self, place: Place, vector: &[u8], row: TupleId) -> Result<bool> {
        let mut mtr = self.file.storage.mtr();
        let page = mtr.latch(PageId::main(self.rel, place.block))?;
        let Some(element) = Element::of(Cells(mtr.page(page)), place.number) else {
            return Ok(false);
        };
        let mut rows: Vec<TupleId> = element.rows().collect();
        let full = rows.is_empty() || rows.len() >= ROWS;
        if full || element.is_free() || element.vector() != vector {
            return Ok(false);
        }
        rows.push(row);
        for (at, bytes) in page::with_rows(&rows) {
            cells::put(&mut mtr, page, place.number, at, &bytes);
        }
        mtr.commit();
        Ok(true)
    }

    fn write_element(
        &self,
        room: &mut Room,
        vector: &[u8],
        row: TupleId,
        looked: Looked,
    ) -> Result<()> {
        let m = looked.meta.m;
        let links = page::links_bytes(m, looked.level, &looked.layers);
        let place = self.put_cells(room, looked.level, &[row], vector, &links)?;
        for (layer, neighbors) in looked.layers.iter().enumerate() {
            for neighbor in neighbors {
                sched::check_interrupts()?;
                self.tell(m, *neighbor, layer, place, vector)?;
            }
        }
        // Others may have been there first.
        let meta = self.meta()?;
        let higher = meta.entry == Place::NOWHERE || looked.level > meta.level;
        let lost = looked.alone
            && !higher
            && self.element(meta.entry, |e, _| e.count() == 0)? != Some(false);
        if higher || lost {
            self.put_entry(Meta { entry: place, level: looked.level, ..meta })?;
        }
        Ok(())
    }

    pub(super) fn put_entry(&self, meta: Meta) -> Result<()> {
        self.file.put_meta(page::META_ENTRY, &meta.entry_bytes())
    }

    /// Writes an element and its links into pages with room.
    fn put_cells(
        &self,
        room: &mut Room,
        level: usize,
        rows: &[TupleId],
        vector: &[u8],
        links: &[u8],
    ) -> Result<Place> {
        let len = page::HEAD + vector.len();
        if let Some(place) = room.free.get_mut(&(len, level as u8)).and_then(Vec::pop)
            && self.put_again(place, rows, vector, links)?
        {
            return Ok(place);
        }
        // Both on one page, where a page has room for both.
        let together = len + links.len() + 2 * cells::SLOT <= cells::CAPACITY;
        let needed = if together { len + links.len() + cells::SLOT } else { len };
        let links_at = match together {
            true => None,
            false => Some(self.put_cell(room, LINKS, links)?),
        };
        let block = self.page_with_room(room, ELEMENTS, needed)?;
        let mut mtr = self.file.storage.mtr();
        let page = mtr.latch(PageId::main(self.rel, block))?;
        self.begin_page(&mut mtr, (page, block))?;
        let number = Cells(mtr.page(page)).count() as u16;
        let links_at = links_at.unwrap_or(Place { block, number: number + 1 });
        let head = page::head(level, links_at, rows);
        let mut put = cells::add(&mut mtr, page, &[&head, vector]).is_some();
        if together {
            put &= cells::add(&mut mtr, page, &[links]).is_some();
        }
        assert!(put, "the page was asked whether it takes them");
        mtr.commit();
        Ok(Place { block, number })
    }

    /// Puts a cell into a page with room.
    fn put_cell(&self, room: &mut Room, which: usize, cell: &[u8]) -> Result<Place> {
        let block = self.page_with_room(room, which, cell.len())?;
        let mut mtr = self.file.storage.mtr();
        let page = mtr.latch(PageId::main(self.rel, block))?;
        self.begin_page(&mut mtr, (page, block))?;
        let Some(number) = cells::add(&mut mtr, page, &[cell]) else {
            unreachable!("the page was asked whether it takes it")
        };
        mtr.commit();
        Ok(Place { block, number })
    }

    fn begin_page(
        &self,
        mtr: &mut storage::Mtr<'_>,
        (page, block): (storage::PageRef, u32),
    ) -> Result<()> {
        if Cells(mtr.page(page)).kind() == 0 {
            self.file.begin_page(mtr, (page, block), KIND_CELLS, 0)?;
        }
        Ok(())
    }

    /// The page that took the last cell if it has room, else one that is not in use.
    fn page_with_room(&self, room: &mut Room, which: usize, len: usize) -> Result<u32> {
        let open = room.open[which];
        if open != 0 {
            let pinned = self.file.pin(open)?;
            let guard = pinned.read();
            let cells = Cells(guard.page());
            if cells.kind() == 0 || cells.kind() == KIND_CELLS && cells.takes(len) {
                return Ok(open);
            }
        }
        let block = self.file.allocate(room)?;
        room.open[which] = block;
        Ok(block)
    }

    /// Writes an element in the place of one that is free; false: its cells don't fit.
    fn put_again(
        &self,
        place: Place,
        rows: &[TupleId],
        vector: &[u8],
        links: &[u8],
    ) -> Result<bool> {
        let (level, own) = {
            let pinned = self.file.pin(place.block)?;
            let guard = pinned.read();
            match Element::of(Cells(guard.page()), place.number) {
                Some(e) if e.is_free() && e.vector().len() == vector.len() => {
                    (e.level(), e.links())
                }
                _ => return Ok(false),
            }
        };
        let mut mtr = self.file.storage.mtr();
        let page = mtr.latch(PageId::main(self.rel, place.block))?;
        let other = match own.block == place.block {
            true => page,
            false => mtr.latch(PageId::main(self.rel, own.block))?,
        };
        let fits = Cells(mtr.page(other)).cell(own.number.into()).map(<[u8]>::len);
        if fits != Some(links.len()) {
            return Ok(false);
        }
        cells::put(&mut mtr, other, own.number, 0, links);
        cells::put(&mut mtr, page, place.number, 0, &page::head(level, own, rows));
        cells::put(&mut mtr, page, place.number, page::HEAD, vector);
        mtr.commit();
        Ok(true)
    }

    /// Tells a neighbour of a new element: it takes it in, perhaps in the place of another one.
    fn tell(
        &self,
        m: usize,
        neighbor: Place,
        layer: usize,
        new: Place,
        vector: &[u8],
    ) -> Result<()> {
        let Some((own, links)) = self.element(neighbor, |e, _| (e.vector().to_vec(), e.links()))?
        else {
            return Ok(());
        };
        let slots: Vec<Place> = {
            let pinned = self.file.pin(links.block)?;
            let guard = pinned.read();
            let cell = Cells(guard.page()).cell(links.number.into());
            let cell = cell.ok_or_else(|| self.file.corrupted(links.block))?;
            page::slots(cell, m, layer).collect()
        };
        if slots.contains(&new) {
            return Ok(());
        }
        let slot = match slots.iter().position(|place| *place == Place::NOWHERE) {
            Some(unused) => Some(unused),
            None => self.slot_to_give(&own, &slots, new, vector)?,
        };
        let Some(slot) = slot else { return Ok(()) };
        let at = page::begin(m, layer) + slot * Place::BYTES;
        self.put_links(links, at, &new.to_bytes())
    }

    /// Writes bytes of links.
    pub(super) fn put_links(&self, links: Place, at: usize, bytes: &[u8]) -> Result<()> {
        let mut mtr = self.file.storage.mtr();
        let page = mtr.latch(PageId::main(self.rel, links.block))?;
        cells::put(&mut mtr, page, links.number, at, bytes);
        mtr.commit();
        Ok(())
    }

    /// Which of an element's neighbours goes for a new one; None: the new one isn't better than any.
    fn slot_to_give(
        &self,
        own: &[u8],
        slots: &[Place],
        new: Place,
        vector: &[u8],
    ) -> Result<Option<usize>> {
        let ops = self.ops()?;
        let at = |id, vector: &[u8]| At { distance: ops.distance(own, vector), id, live: true };
        let mut known = vec![Known { at: at(new, vector), vector: vector.to_vec() }];
        for (n, place) in slots.iter().enumerate() {
            let vector =
                self.element(*place, |e, _| (e.count() > 0).then(|| e.vector().to_vec()))?;
            let Some(vector) = vector.flatten() else { return Ok(Some(n)) };
            known.push(Known { at: at(*place, &vector), vector });
        }
        known.sort_by(|a, b| a.at.cmp(&b.at));
        let chosen = self.choose(&known, slots.len())?;
        if !chosen.contains(&new) {
            return Ok(None);
        }
        Ok(slots.iter().position(|place| !chosen.contains(place)))
    }
}

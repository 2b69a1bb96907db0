//! Building an index from sorted entries: leaf after leaf, in full pages, then the levels above. Nobody else knows
//! of the index yet. Where neighbours by their bytes are none by their keys, entries are added one by one.

use base::{Fork, PageId, Result};

use super::page::{self, CAPACITY, Cell, Head, Target};
use super::{GistIndex, ROOT};
use crate::extension::{Searched, next_of_build};
use crate::method::NextEntry;

/// Bytes of a page that a build fills.
const FILL: usize = CAPACITY * 9 / 10;

struct Builder<'a> {
    index: &'a GistIndex,
    spare: std::ops::Range<u32>,
}

impl GistIndex {
    /// Fills an index whose file is empty.
    ///
    /// # Errors
    /// As [`crate::IndexMethod::fill`].
    pub fn fill(&self, next: &mut NextEntry<'_>) -> Result<()> {
        if self.storage.extend(self.rel, Fork::Main, 2)? != 0 {
            return Err(base::Error::internal(format!("index {} is not empty", self.rel.0)));
        }
        self.shared().last_split.store(-1, std::sync::atomic::Ordering::Release);
        let page = self.storage.pool.pin_new(PageId::main(self.rel, 0))?.write();
        let mut mtr = self.storage.mtr();
        let page = mtr.add(page);
        page::init_meta(&mut mtr, page);
        mtr.commit();
        let mut bytes = Vec::new();
        if self.ops.as_ref().is_none_or(|ops| !ops.is_sortable()) {
            self.write_new(ROOT, 0, &[])?;
            while let Some(row) = next(&mut bytes)? {
                sched::check_interrupts()?;
                self.add(None, &bytes, row)?;
            }
            return Ok(());
        }
        let mut builder = Builder { index: self, spare: 0..0 };
        builder.pack(next)?;
        *self.shared().writing.lock() = Searched::ALL;
        self.shared().spare.lock().extend(builder.spare.rev());
        Ok(())
    }

    fn write_new(&self, block: u32, level: u16, cells: &[Cell]) -> Result<()> {
        let page = self.storage.pool.pin_new(PageId::main(self.rel, block))?.write();
        let mut mtr = self.storage.mtr();
        let page = mtr.add(page);
        mtr.init(page);
        page::write(&mut mtr, page, Head { level, ..Head::default() }, cells);
        mtr.commit();
        Ok(())
    }
}

impl Builder<'_> {
    fn allocate(&mut self) -> Result<u32> {
        next_of_build(&self.index.storage, self.index.rel, &mut self.spare)
    }

    fn pack(&mut self, next: &mut NextEntry<'_>) -> Result<()> {
        let mut bytes = Vec::new();
        let mut ended = false;
        let mut level = 0;
        let mut leaves = || {
            if ended {
                return Ok(None);
            }
            sched::check_interrupts()?;
            let Some(row) = next(&mut bytes)? else {
                ended = true;
                return Ok(None);
            };
            Ok(Some(Cell { target: Target::Row(row), key: bytes.clone() }))
        };
        let mut above = self.level(0, &mut leaves)?;
        while let Some(cells) = above {
            level += 1;
            let mut cells = cells.into_iter();
            above = self.level(level, &mut || Ok(cells.next()))?;
        }
        Ok(())
    }

    /// Writes the pages of a level; the cells of the next one, or None when this is the root.
    fn level(
        &mut self,
        level: u16,
        next: &mut dyn FnMut() -> Result<Option<Cell>>,
    ) -> Result<Option<Vec<Cell>>> {
        let (mut page, mut size, mut above) = (Vec::new(), 0, Vec::new());
        while let Some(cell) = next()? {
            self.index.check_key(&cell.key)?;
            if size + cell.size() > FILL && page.len() > 1 {
                above.push(self.page(level, &page)?);
                (page, size) = (Vec::new(), 0);
            }
            size += cell.size();
            page.push(cell);
        }
        if above.is_empty() {
            self.index.write_new(ROOT, level, &page)?;
            return Ok(None);
        }
        above.push(self.page(level, &page)?);
        Ok(Some(above))
    }

    fn page(&mut self, level: u16, cells: &[Cell]) -> Result<Cell> {
        sched::check_interrupts()?;
        let block = self.allocate()?;
        self.index.write_new(block, level, cells)?;
        let keys: Vec<&[u8]> = cells.iter().map(|cell| &cell.key[..]).collect();
        let key = self.index.ops()?.union(&keys)?;
        self.index.check_key(&key)?;
        Ok(Cell { target: Target::Child(block), key })
    }
}

//! Copies of whole relations, for a database that is made of another one.

use base::{Fork, PageId, RelId, Result};

use crate::Storage;
use crate::page::{PAGE_HEADER, PAGE_SIZE};

/// The new file grows by so many pages at a time.
const PORTION: u32 = 128;

impl Storage {
    /// Fills the new, empty relation `to` with the pages of another one. Each goes to the log as a whole,
    /// so that the copy is as safe as any change. Nobody changes the one or uses the other meanwhile.
    ///
    /// # Errors
    /// I/O errors, a full disk, interrupts: then `to` is half filled.
    pub fn copy_relation(&self, from: RelId, to: RelId) -> Result<()> {
        let blocks = self.block_count(from, Fork::Main)?;
        let mut body = vec![0; PAGE_SIZE - PAGE_HEADER];
        let mut done = 0;
        while done < blocks {
            let count = PORTION.min(blocks - done);
            let first = self.extend(to, Fork::Main, count)?;
            assert_eq!(first, done, "somebody else writes to a new relation");
            for block in done..done + count {
                sched::check_interrupts()?;
                self.copy_page(PageId::main(from, block), PageId::main(to, block), &mut body)?;
            }
            done += count;
        }
        Ok(())
    }

    /// `body`: room for a page without its header.
    fn copy_page(&self, from: PageId, to: PageId, body: &mut [u8]) -> Result<()> {
        let source = self.pool.pin_scan(from)?;
        body.copy_from_slice(&source.read().page()[PAGE_HEADER..]);
        drop(source);
        // A page of zeros was never used; that is what the new file has there.
        if body.iter().any(|byte| *byte != 0) {
            let target = self.pool.pin_new(to)?.write();
            let mut mtr = self.mtr();
            let page = mtr.add(target);
            mtr.replace(page, body);
            mtr.commit();
        }
        Ok(())
    }
}

//! Taking entries out in bulk. What is left of a bucket moves together, and pages that become empty go to
//! the list of free ones.

use std::sync::atomic::Ordering::Relaxed;

use base::{Result, TupleId};
use storage::WriteGuard;

use super::HashIndex;
use super::page::{self, CAPACITY, Chained, Entry, FILLING, SPLITTING};

impl HashIndex {
    /// Removes all entries whose row `dead` accepts; returns how many.
    pub(super) fn delete_dead(&self, dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        let mut removed = 0;
        let mut bucket = 0;
        // Buckets that are split off meanwhile come later, with their entries.
        while bucket <= self.meta()?.shape.max {
            sched::check_interrupts()?;
            removed += self.clean_bucket(bucket, dead)?;
            bucket += 1;
        }
        self.note_rows(-(removed as i64))?;
        self.write_rows()?;
        Ok(removed)
    }

    fn write_rows(&self) -> Result<()> {
        let guard = self.pin(0)?.write();
        let mut meta = page::read_meta(guard.page()).ok_or_else(|| self.corrupted(0))?;
        meta.rows = self.shared().rows.load(Relaxed).max(0) as u64;
        let mut mtr = self.storage.mtr();
        let target = mtr.add(guard);
        page::put_meta(&mut mtr, target, &meta);
        mtr.commit();
        Ok(())
    }

    fn clean_bucket(&self, bucket: u32, dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        let mut before = loop {
            let first = self.pin(self.block_of(bucket)?)?.write();
            if !Chained(first.page()).is_primary() {
                return Err(self.corrupted(first.id().block));
            }
            if Chained(first.page()).flags() & (SPLITTING | FILLING) == 0 {
                break first;
            }
            drop(first);
            self.finish_split_of(bucket)?;
        };
        // The first page stays latched, so that nobody is in the chain.
        let mut first = None;
        let mut removed = 0;
        (before, removed) = self.sift(before, dead, removed);
        loop {
            let next = Chained(before.page()).next();
            if next == 0 {
                return Ok(removed);
            }
            let page = self.pin(next)?.write();
            if !Chained(page.page()).is_overflow() {
                return Err(self.corrupted(next));
            }
            let (page, now) = self.sift(page, dead, removed);
            removed = now;
            let room = CAPACITY - Chained(before.page()).count();
            if Chained(page.page()).count() <= room {
                before = self.unite(before, page)?;
            } else {
                let left = std::mem::replace(&mut before, page);
                first.get_or_insert(left);
            }
        }
    }

    /// Takes dead entries out of a page.
    fn sift(
        &self,
        page: WriteGuard,
        dead: &dyn Fn(TupleId) -> bool,
        removed: u64,
    ) -> (WriteGuard, u64) {
        let entries = Chained(page.page()).entries();
        let live: Vec<Entry> = entries.iter().filter(|e| !dead(page::row_of(e))).copied().collect();
        let gone = entries.len() - live.len();
        if gone == 0 {
            return (page, removed);
        }
        let mut mtr = self.storage.mtr();
        let target = mtr.add(page);
        page::put_entries(&mut mtr, target, &live);
        let (_, mut guards) = mtr.commit_keep();
        match guards.pop() {
            Some(page) => (page, removed + gone as u64),
            None => unreachable!("the mini-transaction has one page"),
        }
    }

    /// Moves the entries of a page into the one before it, and frees it.
    fn unite(&self, before: WriteGuard, page: WriteGuard) -> Result<WriteGuard> {
        let mut all = [Chained(before.page()).entries(), Chained(page.page()).entries()].concat();
        all.sort_unstable();
        let next = Chained(page.page()).next();
        let block = page.id().block;
        let meta = self.pin(0)?.write();
        let free = page::read_meta(meta.page()).ok_or_else(|| self.corrupted(0))?.free;
        let mut mtr = self.storage.mtr();
        let (before, page, meta) = (mtr.add(before), mtr.add(page), mtr.add(meta));
        page::put_entries(&mut mtr, before, &all);
        page::put_next(&mut mtr, before, next);
        page::put_free_page(&mut mtr, page, free);
        page::put_free(&mut mtr, meta, block);
        let (_, guards) = mtr.commit_keep();
        guards.into_iter().next().ok_or_else(|| base::Error::internal("a latch got lost"))
    }
}

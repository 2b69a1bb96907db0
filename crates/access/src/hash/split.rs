//! One bucket more: the next in turn is split into itself and a new one behind the last.

use base::{PageId, Result};
use storage::{Mtr, PageRef, WriteGuard};

use super::HashIndex;
use super::insert::FILL;
use super::page::{
    self, CAPACITY, Chained, DIRECTORIES_MAX, Entry, FILLING, Head, KIND_BUCKET, KIND_OVERFLOW,
    PER_DIRECTORY, SPLITTING, Shape,
};

impl HashIndex {
    /// Splits a bucket if the index has become full; not when somebody else does it.
    pub(super) fn grow(&self) -> Result<()> {
        let Some(_turn) = self.shared().splitting.try_lock() else { return Ok(()) };
        let rows = self.rows()?;
        let meta = self.meta()?;
        let buckets = i64::from(meta.shape.max) + 1;
        let last = DIRECTORIES_MAX.saturating_mul(PER_DIRECTORY) - 1;
        if rows <= buckets * FILL as i64 || meta.shape.max >= last {
            return Ok(());
        }
        self.split(meta.shape)
    }

    /// Splits the next bucket; the caller has the turn.
    fn split(&self, before: Shape) -> Result<()> {
        let (shape, origin) = before.grown();
        let old = loop {
            let guard = self.pin(self.block_of(origin)?)?.write();
            let chained = Chained(guard.page());
            if !chained.is_primary() {
                return Err(self.corrupted(guard.id().block));
            }
            if chained.flags() & (SPLITTING | FILLING) == 0 {
                break guard;
            }
            drop(guard);
            self.finish_locked(origin)?;
            sched::check_interrupts()?;
        };
        if !self.has_reserve() {
            drop(old);
            self.refill()?;
            return Ok(()); // the next insert that overflows comes back
        }
        let Some(new) = self.take_spare() else { return Ok(()) };
        let directory_number = shape.max / PER_DIRECTORY;
        let begins = shape.max.is_multiple_of(PER_DIRECTORY);
        let (directory, fresh) = if begins {
            let Some(block) = self.take_spare() else { return Ok(()) };
            (block, self.storage.pool.pin_new(PageId::main(self.rel, block))?)
        } else {
            let meta = self.pin(0)?;
            let block = page::directory_block(meta.read().page(), directory_number);
            (block, self.pin(block)?)
        };
        let new_page = self.storage.pool.pin_new(PageId::main(self.rel, new))?.write();
        let directory_page = fresh.write();
        let meta_page = self.pin(0)?.write();
        let mut meta = page::read_meta(meta_page.page()).ok_or_else(|| self.corrupted(0))?;
        let mut mtr = self.storage.mtr();
        let (old, new_ref) = (mtr.add(old), mtr.add(new_page));
        let (directory_ref, meta_ref) = (mtr.add(directory_page), mtr.add(meta_page));
        let head = Head {
            kind: KIND_BUCKET,
            flags: FILLING,
            next: 0,
            bucket: shape.max,
            mask: shape.high,
        };
        page::init(&mut mtr, new_ref, head, &[]);
        page::put_flags(&mut mtr, old, SPLITTING);
        page::put_mask(&mut mtr, old, shape.high);
        if begins {
            page::init_directory(&mut mtr, directory_ref);
            page::put_directory_block(&mut mtr, meta_ref, directory_number, directory);
            meta.directories += 1;
        }
        page::put_bucket_block(&mut mtr, directory_ref, shape.max, new);
        meta.used = meta.used.max(new + 1);
        if begins {
            meta.used = meta.used.max(directory + 1);
        }
        meta.shape = shape;
        meta.rows = self.shared().rows.load(std::sync::atomic::Ordering::Relaxed).max(0) as u64;
        page::put_meta(&mut mtr, meta_ref, &meta);
        let (_, mut guards) = mtr.commit_keep();
        guards.truncate(2);
        self.move_entries(guards)
    }

    /// Finishes the split that a bucket is part of, if it is.
    pub(super) fn finish_split_of(&self, bucket: u32) -> Result<()> {
        let _turn = self.shared().splitting.lock();
        self.finish_locked(bucket)
    }

    /// The same for one who has the turn.
    fn finish_locked(&self, bucket: u32) -> Result<()> {
        let (flags, mask) = {
            let pinned = self.pin(self.block_of(bucket)?)?;
            let guard = pinned.read();
            (Chained(guard.page()).flags(), Chained(guard.page()).mask())
        };
        let top = mask ^ (mask >> 1);
        let (origin, new) = match flags {
            SPLITTING => (bucket, bucket | top),
            FILLING => (bucket & !top, bucket),
            _ => return Ok(()),
        };
        let old = self.pin(self.block_of(origin)?)?.write();
        let new = self.pin(self.block_of(new)?)?.write();
        self.move_entries(vec![old, new])
    }

    /// Moves all entries that belong to the new bucket out of the old one's chain, page by page, and
    /// takes the flags off. `pair`: the first pages of both.
    fn move_entries(&self, mut pair: Vec<WriteGuard>) -> Result<()> {
        let new = Chained(pair[1].page());
        let (bucket, mask) = (new.bucket(), new.mask());
        let origin = Chained(pair[0].page()).bucket();
        let belongs = |e: &Entry| page::code_of(e).reverse_bits() & mask == bucket;
        // The page that entries are taken from, but for the first one.
        let mut source: Option<WriteGuard> = None;
        loop {
            let from = Chained(source.as_ref().unwrap_or(&pair[0]).page());
            let next = from.next();
            let (go, stay): (Vec<Entry>, Vec<Entry>) =
                from.entries().iter().copied().partition(belongs);
            if go.len() > CAPACITY - Chained(pair[1].page()).count() {
                pair = self.push_down(pair)?;
                continue;
            }
            if !go.is_empty() {
                let mut there = [Chained(pair[1].page()).entries(), &go].concat();
                there.sort_unstable();
                pair.extend(source.take());
                pair = self.changed(pair, |mtr, pages| {
                    page::put_entries(mtr, pages[1], &there);
                    page::put_entries(mtr, *pages.get(2).unwrap_or(&pages[0]), &stay);
                });
                pair.truncate(2);
            }
            if next == 0 {
                break;
            }
            let page = self.pin(next)?.write();
            self.check_overflow(&page, origin)?;
            source = Some(page);
        }
        self.changed(pair, |mtr, pages| {
            page::put_flags(mtr, pages[0], 0);
            page::put_flags(mtr, pages[1], 0);
        });
        Ok(())
    }

    /// Changes pages in one mini-transaction; they stay latched.
    fn changed(
        &self,
        guards: Vec<WriteGuard>,
        change: impl FnOnce(&mut Mtr<'_>, &[PageRef]),
    ) -> Vec<WriteGuard> {
        let mut mtr = self.storage.mtr();
        let pages: Vec<PageRef> = guards.into_iter().map(|guard| mtr.add(guard)).collect();
        change(&mut mtr, &pages);
        mtr.commit_keep().1
    }

    /// Moves the entries of the new bucket's first page into another page behind it.
    fn push_down(&self, mut pair: Vec<WriteGuard>) -> Result<Vec<WriteGuard>> {
        let taken = loop {
            match self.take_page()? {
                Some(taken) => break taken,
                None => self.refill()?,
            }
        };
        let first = Chained(pair[1].page());
        let entries = first.entries().to_vec();
        let head = Head {
            kind: KIND_OVERFLOW,
            flags: 0,
            next: first.next(),
            bucket: first.bucket(),
            mask: first.mask(),
        };
        let block = taken.page.id().block;
        let mut mtr = self.storage.mtr();
        let pages: Vec<PageRef> = pair.drain(..).map(|guard| mtr.add(guard)).collect();
        let added = taken.add(&mut mtr);
        page::init(&mut mtr, added.page, head, &entries);
        page::put_entries(&mut mtr, pages[1], &[]);
        page::put_next(&mut mtr, pages[1], block);
        added.note(&mut mtr);
        let mut guards = mtr.commit_keep().1;
        guards.truncate(2);
        Ok(guards)
    }
}

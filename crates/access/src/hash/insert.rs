//! Adding an entry: into the bucket's first page, else the one behind it, else a new one between these.

use std::sync::atomic::Ordering::Relaxed;

use base::faults::{self, Fault};
use base::{PageId, Result, TupleId};
use storage::{Mtr, PageRef, WriteGuard};
use txn::Transaction;

use super::page::{self, Chained, Entry, FILLING, Head, KIND_OVERFLOW, SPLITTING};
use super::{HashIndex, RESERVE};

/// Entries for each bucket from which on there is to be one more.
pub(super) const FILL: usize = page::CAPACITY * 3 / 4;

enum Attempt {
    Done,
    /// In a new overflow page.
    Overflowed,
    NeedPages,
    /// A crash ended a split of this bucket.
    Unfinished(u32),
}

/// A page that nobody uses, latched, and the meta page, on which that is noted.
pub(super) struct Taken {
    pub page: WriteGuard,
    meta: WriteGuard,
    /// The next free page, when it comes from the list of those.
    from_list: Option<u32>,
}

/// A page taken into a mini-transaction.
pub(super) struct Added {
    pub page: PageRef,
    block: u32,
    meta: PageRef,
    from_list: Option<u32>,
}

impl Taken {
    /// Takes the latches into a mini-transaction.
    pub fn add(self, mtr: &mut Mtr<'_>) -> Added {
        let block = self.page.id().block;
        let (page, meta) = (mtr.add(self.page), mtr.add(self.meta));
        Added { page, block, meta, from_list: self.from_list }
    }
}

impl Added {
    /// Notes that the page is in use.
    pub fn note(&self, mtr: &mut Mtr<'_>) {
        match self.from_list {
            Some(next) => page::put_free(mtr, self.meta, next),
            None => page::put_used(mtr, self.meta, self.block),
        }
    }
}

impl HashIndex {
    /// Adds an entry.
    pub(super) fn add(&self, tx: &Transaction, code: u32, root: TupleId) -> Result<()> {
        let entry = page::entry(code, root);
        loop {
            match self.attempt(tx, code, &entry)? {
                Attempt::Done => break,
                Attempt::Overflowed => {
                    self.note_rows(1)?;
                    return self.grow();
                }
                Attempt::NeedPages => self.refill()?,
                Attempt::Unfinished(bucket) => self.finish_split_of(bucket)?,
            }
            sched::check_interrupts()?;
        }
        self.note_rows(1)
    }

    pub(super) fn note_rows(&self, change: i64) -> Result<()> {
        self.rows()?;
        self.shared().rows.fetch_add(change, Relaxed);
        Ok(())
    }

    fn attempt(&self, tx: &Transaction, code: u32, entry: &Entry) -> Result<Attempt> {
        let first = self.latch_bucket(code)?;
        let chained = Chained(first.page());
        if chained.flags() & (SPLITTING | FILLING) != 0 {
            return Ok(Attempt::Unfinished(chained.bucket()));
        }
        tx.writes_page(self.rel, super::read_of_code(code))?;
        faults::reach(Fault::IndexInsert)?;
        if chained.has_room() {
            self.put(first, entry);
            return Ok(Attempt::Done);
        }
        let head = Head {
            kind: KIND_OVERFLOW,
            flags: 0,
            next: chained.next(),
            bucket: chained.bucket(),
            mask: chained.mask(),
        };
        if head.next != 0 {
            let second = self.pin(head.next)?.write();
            self.check_overflow(&second, head.bucket)?;
            if Chained(second.page()).has_room() {
                self.put(second, entry);
                return Ok(Attempt::Done);
            }
        }
        let Some(taken) = self.take_page()? else { return Ok(Attempt::NeedPages) };
        let block = taken.page.id().block;
        let mut mtr = self.storage.mtr();
        let first = mtr.add(first);
        let added = taken.add(&mut mtr);
        page::init(&mut mtr, added.page, head, &[*entry]);
        page::put_next(&mut mtr, first, block);
        added.note(&mut mtr);
        mtr.commit();
        Ok(Attempt::Overflowed)
    }

    /// Whether a page is one of a bucket's chain.
    pub(super) fn check_overflow(&self, page: &WriteGuard, bucket: u32) -> Result<()> {
        let chained = Chained(page.page());
        if !chained.is_overflow() || chained.bucket() != bucket {
            return Err(self.corrupted(page.id().block));
        }
        Ok(())
    }

    fn put(&self, page: WriteGuard, entry: &Entry) {
        let mut mtr = self.storage.mtr();
        let page = mtr.add(page);
        page::add(&mut mtr, page, entry);
        mtr.commit();
    }

    /// A page that nobody uses; None when the reserve must be filled first. Latches of buckets may be held,
    /// that of the meta page not.
    pub(super) fn take_page(&self) -> Result<Option<Taken>> {
        let meta = self.pin(0)?.write();
        let content = page::read_meta(meta.page()).ok_or_else(|| self.corrupted(0))?;
        if content.free != 0 {
            let page = self.pin(content.free)?.write();
            if page::kind(page.page()) != page::KIND_FREE {
                return Err(self.corrupted(content.free));
            }
            let next = Chained(page.page()).next();
            return Ok(Some(Taken { page, meta, from_list: Some(next) }));
        }
        let Some(block) = self.take_spare() else { return Ok(None) };
        let page = self.storage.pool.pin_new(PageId::main(self.rel, block))?.write();
        Ok(Some(Taken { page, meta, from_list: None }))
    }

    /// A block from the reserve.
    pub(super) fn take_spare(&self) -> Option<u32> {
        self.shared().spare.lock().pop()
    }

    /// Whether the reserve has enough for any one step.
    pub(super) fn has_reserve(&self) -> bool {
        self.shared().spare.lock().len() >= RESERVE
    }
}

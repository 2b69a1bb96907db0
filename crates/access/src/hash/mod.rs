//! Hash index: equality by hash codes, in buckets that are split one at a time as the index grows (Litwin,
//! "Linear hashing", 1980; buckets numbered by reversed bits as in Shalev and Shavit, "Split-ordered
//! lists", 2006).
//!
//! ```text
//!  meta ─► directory ─► bucket ─► overflow page ─► …        free pages: a list from the meta page
//!  shape,  bucket →     codes in
//!  lists   block        its range
//! ```
//!
//! * [`page`]: the pages. `insert`; `split`: one bucket more; `build`: from sorted entries; `vacuum`.
//! * Codes are kept, not keys, so whoever reads asks again (`recheck`). Rows with a NULL key are not in it.
//! * A bucket's chain is read and changed under the latch of its first page. That page says which codes
//!   it takes, so one who comes by an older shape of the index sees that and looks at the meta page anew.
//! * A split is several mini-transactions, of which each leaves every entry in exactly one place. The first
//!   makes the new bucket known, with flags on both buckets: as long as these stand, who reads the new
//!   one reads the old one, too, and who would change either first finishes the split. The one who splits
//!   keeps the old bucket's latch to the end, so the flags are only ever seen after a crash.
//! * Latches are taken in this order: the old bucket's first page, the new one's, further pages of
//!   a chain, directory, meta page, a free page.

mod build;
mod insert;
pub(crate) mod page;
mod split;
mod vacuum;
mod verify;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use base::{AccessMethod, Fork, PageId, RelId, Result, TupleId, WaitEvent, err};
use sched::{Mutex, SpinLock};
use storage::{PageView, Pinned, Storage, WriteGuard};
use txn::Transaction;

use crate::btree::{Inserted, Unique};
use crate::method::{Found, IndexMethod, NextEntry, Report, Search, wrong_search};
use crate::registry::{self, RelState};
use page::{Chained, FILLING, Meta};

/// Tries to read a page without a latch before taking the shared one.
const OPTIMISTIC_TRIES: usize = 4;
/// Pages at the file's end that are looked at for leftovers of a crash.
const SEARCH_PAGES: u32 = 64;
/// Pages that any one step needs, at most.
const RESERVE: usize = 4;
/// Most pages added to the file at a time.
const CHUNK: u32 = 128;

/// One hash index.
#[derive(Clone)]
pub struct HashIndex {
    /// The files.
    pub rel: RelId,
    pub(crate) storage: Arc<Storage>,
    state: Arc<RelState>,
}

/// State that all handles of one index share.
pub struct HashState {
    /// About how many entries there are; below 0: not known yet.
    rows: AtomicI64,
    /// Pages of the file that are not in use yet.
    spare: SpinLock<Vec<u32>>,
    /// Held while extending; whether the file's end has been searched for pages that a crash left.
    extending: Mutex<bool>,
    /// Held while a bucket is split.
    splitting: Mutex<()>,
}

impl Default for HashState {
    fn default() -> HashState {
        HashState {
            rows: AtomicI64::new(-1),
            spare: SpinLock::new(Vec::new()),
            extending: Mutex::new(WaitEvent::LWLockRelationExtensionLatch, false),
            splitting: Mutex::new(WaitEvent::LWLockRelationExtensionLatch, ()),
        }
    }
}

impl HashState {
    /// As new: the file is empty.
    pub(crate) fn reset(&self) {
        self.rows.store(-1, Relaxed);
        *self.spare.lock() = Vec::new();
        *self.extending.lock() = false;
    }
}

/// Serializable transactions note this of a look-up: not its bucket's page, but the code, so that those with others
/// in the same bucket are no conflict. One bit is left out: all ones stand for the whole index.
fn read_of_code(code: u32) -> u32 {
    code >> 1
}

/// The hash code of a key.
pub fn code(key: &[u8]) -> u32 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = key.len() as u64 ^ MULTIPLIER;
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(MULTIPLIER).rotate_left(29);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(MULTIPLIER);
    // The finalizer of MurmurHash3: every bit of the sum changes half of the code's.
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (hash ^ hash >> 33) as u32
}

impl HashIndex {
    pub(crate) fn pin(&self, block: u32) -> Result<Pinned> {
        self.storage.pool.pin(PageId::main(self.rel, block))
    }

    fn shared(&self) -> &HashState {
        self.state.index.hash()
    }

    fn corrupted(&self, block: u32) -> base::Error {
        err!(INDEX_CORRUPTED, "index {} has an invalid page at block {block}", self.rel.0)
            .hint("Please REINDEX it.")
    }

    /// Reads a page where it lies if possible.
    fn peek<R>(&self, block: u32, f: impl Fn(PageView<'_>) -> Option<R>) -> Result<R> {
        let id = PageId::main(self.rel, block);
        for _ in 0..OPTIMISTIC_TRIES {
            if let Some(Some(seen)) = self.storage.pool.read_optimistic(id, &f) {
                return Ok(seen);
            }
        }
        let pinned = self.pin(block)?;
        f(pinned.read().view()).ok_or_else(|| self.corrupted(block))
    }

    fn meta(&self) -> Result<Meta> {
        let pinned = self.pin(0)?;
        let guard = pinned.read();
        page::read_meta(guard.page()).ok_or_else(|| self.corrupted(0))
    }

    /// The block of a code's bucket, as the meta page has it now.
    fn locate(&self, code: u32) -> Result<u32> {
        let (bucket, directory) = self.peek(0, |page| page::locate(page, code))?;
        self.peek(directory, |page| page::bucket_block(page, bucket))
    }

    /// A bucket's block.
    fn block_of(&self, bucket: u32) -> Result<u32> {
        let meta = self.pin(0)?;
        let directory = page::directory_block(meta.read().page(), bucket / page::PER_DIRECTORY);
        self.peek(directory, |page| page::bucket_block(page, bucket))
    }

    /// Latches the first page of a code's bucket exclusively.
    fn latch_bucket(&self, code: u32) -> Result<WriteGuard> {
        loop {
            let guard = self.pin(self.locate(code)?)?.write();
            let first = Chained(guard.page());
            if !first.is_primary() {
                return Err(self.corrupted(guard.id().block));
            }
            if first.takes(code) {
                return Ok(guard);
            }
            sched::check_interrupts()?;
        }
    }

    /// Calls `each` with the rows of all entries with a code.
    fn look_up(&self, tx: &Transaction, code: u32, each: &mut dyn FnMut(TupleId)) -> Result<()> {
        loop {
            sched::check_interrupts()?;
            let pinned = self.pin(self.locate(code)?)?;
            tx.reads_page(self.rel, read_of_code(code));
            let guard = pinned.read();
            let first = Chained(guard.page());
            if !first.is_primary() {
                return Err(self.corrupted(pinned.id().block));
            }
            if !first.takes(code) {
                continue;
            }
            if first.flags() & FILLING == 0 {
                return self.read_chain(first, code, each);
            }
            // A split that a crash ended: entries may be in the other bucket still.
            let origin = first.bucket() & (first.mask() >> 1);
            drop(guard);
            let old = self.pin(self.block_of(origin)?)?;
            let old_guard = old.read();
            let guard = pinned.read();
            let first = Chained(guard.page());
            if !first.takes(code) {
                continue;
            }
            self.read_chain(Chained(old_guard.page()), code, each)?;
            return self.read_chain(first, code, each);
        }
    }

    /// The same in a chain whose first page the caller has latched.
    fn read_chain(
        &self,
        first: Chained<'_>,
        code: u32,
        each: &mut dyn FnMut(TupleId),
    ) -> Result<()> {
        first.with_code(code).iter().for_each(|e| each(page::row_of(e)));
        let mut next = first.next();
        while next != 0 {
            let pinned = self.pin(next)?;
            let guard = pinned.read();
            let chained = Chained(guard.page());
            if !chained.is_overflow() || chained.bucket() != first.bucket() {
                return Err(self.corrupted(next));
            }
            chained.with_code(code).iter().for_each(|e| each(page::row_of(e)));
            next = chained.next();
        }
        Ok(())
    }

    /// Fills the reserve: with pages that a crash left unused at the file's end, else by extending.
    fn refill(&self) -> Result<()> {
        let state = self.shared();
        let mut searched = state.extending.lock();
        if state.spare.lock().len() >= RESERVE {
            return Ok(());
        }
        let blocks = self.storage.block_count(self.rel, Fork::Main)?;
        if !*searched {
            self.search_end(blocks)?;
            *searched = true;
        }
        let count = (blocks / 8).clamp(RESERVE as u32 * 2, CHUNK);
        let first = self.storage.extend(self.rel, Fork::Main, count)?;
        // Those of lower numbers are used first.
        state.spare.lock().splice(0..0, (first..first + count).rev());
        Ok(())
    }

    /// Takes pages at the end of a file of so many into the reserve that were never in use. Where that is not known:
    /// zero pages, unless a directory leads to one, which was damaged.
    fn search_end(&self, blocks: u32) -> Result<()> {
        let used = self.meta()?.used;
        if used > 0 {
            self.shared().spare.lock().extend((used..blocks).rev());
            return Ok(());
        }
        let mut from = blocks;
        while from > blocks.saturating_sub(SEARCH_PAGES).max(1) {
            if page::kind(self.pin(from - 1)?.read().page()) != 0 {
                break;
            }
            from -= 1;
        }
        if from == blocks {
            return Ok(());
        }
        for bucket in 0..=self.meta()?.shape.max {
            let block = self.block_of(bucket)?;
            if block >= from {
                return Err(self.corrupted(block));
            }
        }
        self.shared().spare.lock().extend((from..blocks).rev());
        Ok(())
    }

    /// About how many entries there are.
    fn rows(&self) -> Result<i64> {
        let known = self.shared().rows.load(Relaxed);
        if known >= 0 {
            return Ok(known);
        }
        let rows = self.meta()?.rows as i64;
        if self.storage.follows() {
            return Ok(rows);
        }
        let _ = self.shared().rows.compare_exchange(known, rows, Relaxed, Relaxed);
        Ok(rows)
    }
}

impl HashIndex {
    /// Names an index; no I/O.
    pub fn open(storage: &Arc<Storage>, rel: RelId) -> HashIndex {
        HashIndex { rel, storage: storage.clone(), state: registry::state_of(storage, rel) }
    }
}

impl IndexMethod for HashIndex {
    const METHOD: AccessMethod = AccessMethod::Hash;

    fn fill(&self, rows: u64, next: &mut NextEntry<'_>) -> Result<()> {
        build::build(self.clone(), rows, next).map(drop)
    }

    fn entries(key: &[u8], each: &mut dyn FnMut(&[u8])) {
        each(&code(key).to_be_bytes());
    }

    fn insert(
        &self,
        tx: &Transaction,
        key: &[u8],
        root: TupleId,
        _unique: Unique<'_>,
    ) -> Result<Inserted> {
        self.add(tx, code(key), root)?;
        Ok(Inserted::Done)
    }

    fn insert_entry(&self, tx: &Transaction, entry: &[u8], root: TupleId) -> Result<()> {
        let code = entry.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        let code = code.ok_or_else(|| base::Error::internal("an entry that is no hash code"))?;
        let mut known = false;
        self.look_up(tx, code, &mut |row| known |= row == root)?;
        if known { Ok(()) } else { self.add(tx, code, root) }
    }

    fn collect(
        &self,
        tx: &Transaction,
        search: &Search,
        found: &mut dyn FnMut(Found),
    ) -> Result<()> {
        let Search::Equal(key) = search else { return Err(wrong_search(Self::METHOD)) };
        self.look_up(tx, code(key), &mut |root| found(Found { root, recheck: true }))
    }

    fn bulk_delete(&self, dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        self.delete_dead(dead)
    }

    fn check(&self) -> Result<Report> {
        self.verify()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_spread_and_stay_what_they_are() {
        // They are on disk.
        assert_eq!(code(b""), code(b""));
        let mut seen = std::collections::HashSet::new();
        for n in 0..100_000u32 {
            seen.insert(code(&n.to_be_bytes()));
        }
        assert!(seen.len() > 99_990, "{}", seen.len());
        let low = (0..64_000u32).filter(|n| code(&n.to_be_bytes()) >> 26 == 0).count();
        assert!((800..1200).contains(&low), "{low}");
    }
}

//! Building an index from entries sorted by hash code: bucket after bucket, in full pages, each written once
//! by one mini-transaction; the meta page comes last. Nobody else knows of the index yet.

use std::sync::atomic::Ordering::Relaxed;

use base::{Fork, PageId, Result};

use super::HashIndex;
use super::insert::FILL;
use super::page::{
    self, CAPACITY, DIRECTORIES_MAX, Entry, Head, KIND_BUCKET, KIND_OVERFLOW, Meta, PER_DIRECTORY,
    Shape,
};
use crate::extension::next_of_build;
use crate::method::NextEntry;

struct Builder {
    index: HashIndex,
    shape: Shape,
    spare: std::ops::Range<u32>,
    /// The buckets' blocks.
    blocks: Vec<u32>,
    rows: u64,
}

/// Fills an index whose file is empty.
pub(super) fn build(index: HashIndex, rows: u64, next: &mut NextEntry<'_>) -> Result<HashIndex> {
    let most = u64::from(DIRECTORIES_MAX) * u64::from(PER_DIRECTORY) / 2;
    let buckets = rows.div_ceil(FILL as u64).clamp(1, most).next_power_of_two() as u32;
    let shape = Shape { max: buckets - 1, high: buckets - 1 };
    if index.storage.extend(index.rel, Fork::Main, 1)? != 0 {
        return Err(base::Error::internal(format!("index {} is not empty", index.rel.0)));
    }
    *index.shared().extending.lock() = true;
    let blocks = vec![0; buckets as usize];
    let mut builder = Builder { index, shape, spare: 0..0, blocks, rows: 0 };
    builder.fill(next)?;
    builder.finish()
}

impl Builder {
    fn allocate(&mut self) -> Result<u32> {
        next_of_build(&self.index.storage, self.index.rel, &mut self.spare)
    }

    fn fill(&mut self, next: &mut NextEntry<'_>) -> Result<()> {
        let mut bytes = Vec::new();
        let mut current = None;
        let mut entries: Vec<Entry> = Vec::with_capacity(CAPACITY);
        // The page that was written last for the current bucket.
        let mut behind = 0;
        while let Some(row) = next(&mut bytes)? {
            let Some(code) = bytes.first_chunk().map(|b| u32::from_be_bytes(*b)) else {
                return Err(base::Error::internal("an entry that is no hash code"));
            };
            let bucket = self.shape.bucket_of(code);
            if let Some(before) = current
                && (before != bucket || entries.len() == CAPACITY)
            {
                let ends = before != bucket;
                behind = self.write(before, behind, ends, &mut entries)?;
            }
            current = Some(bucket);
            entries.push(page::entry(code, row));
            self.rows += 1;
        }
        if let Some(bucket) = current {
            self.write(bucket, behind, true, &mut entries)?;
        }
        for bucket in 0..self.blocks.len() {
            if self.blocks[bucket] == 0 {
                self.write(bucket as u32, 0, true, &mut entries)?;
            }
        }
        Ok(())
    }

    /// Writes a page of a bucket, before the one at `behind`; the bucket's first page is the last to be
    /// written. Returns what the next page lies before.
    fn write(
        &mut self,
        bucket: u32,
        behind: u32,
        is_first: bool,
        entries: &mut Vec<Entry>,
    ) -> Result<u32> {
        let block = self.allocate()?;
        let head = Head {
            kind: if is_first { KIND_BUCKET } else { KIND_OVERFLOW },
            flags: 0,
            next: behind,
            bucket,
            mask: self.shape.mask_of(bucket),
        };
        let storage = &self.index.storage;
        let guard = storage.pool.pin_new(PageId::main(self.index.rel, block))?.write();
        let mut mtr = storage.mtr();
        let target = mtr.add(guard);
        page::init(&mut mtr, target, head, entries);
        mtr.commit();
        entries.clear();
        sched::check_interrupts()?;
        if is_first {
            self.blocks[bucket as usize] = block;
            return Ok(0);
        }
        Ok(block)
    }

    fn finish(mut self) -> Result<HashIndex> {
        let mut directories = Vec::new();
        let blocks = std::mem::take(&mut self.blocks);
        for part in blocks.chunks(PER_DIRECTORY as usize) {
            let block = self.allocate()?;
            let storage = &self.index.storage;
            let guard = storage.pool.pin_new(PageId::main(self.index.rel, block))?.write();
            let mut mtr = storage.mtr();
            let target = mtr.add(guard);
            page::init_directory(&mut mtr, target);
            for (n, block) in part.iter().enumerate() {
                page::put_bucket_block(&mut mtr, target, n as u32, *block);
            }
            mtr.commit();
            directories.push(block);
        }
        let storage = &self.index.storage;
        let meta = Meta {
            shape: self.shape,
            free: 0,
            directories: directories.len() as u32,
            used: self.spare.start,
            rows: self.rows,
        };
        let guard = storage.pool.pin_new(PageId::main(self.index.rel, 0))?.write();
        let mut mtr = storage.mtr();
        let target = mtr.add(guard);
        mtr.init(target);
        page::put_meta(&mut mtr, target, &meta);
        for (n, block) in directories.iter().enumerate() {
            page::put_directory_block(&mut mtr, target, n as u32, *block);
        }
        mtr.commit();
        self.index.shared().rows.store(self.rows as i64, Relaxed);
        self.index.shared().spare.lock().extend(self.spare.clone().rev());
        Ok(self.index)
    }
}

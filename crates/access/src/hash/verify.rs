//! Checks a hash index's structure: shape, directories, chains, free pages. Nobody changes it meanwhile.

use std::collections::HashSet;

use base::{Fork, Result};

use super::HashIndex;
use super::page::{
    self, Chained, FILLING, KIND_DIRECTORY, KIND_FREE, Meta, PER_DIRECTORY, SPLITTING,
};
use crate::method::Report;

struct Walk<'i> {
    index: &'i HashIndex,
    meta: Meta,
    report: Report,
    seen: HashSet<u32>,
}

impl HashIndex {
    /// Walks all buckets.
    pub(super) fn verify(&self) -> Result<Report> {
        let meta = self.meta()?;
        let seen = HashSet::from([0]);
        let mut walk = Walk { index: self, meta, report: Report::default(), seen };
        walk.shape();
        walk.directories()?;
        for bucket in 0..=meta.shape.max {
            sched::check_interrupts()?;
            walk.bucket(bucket)?;
        }
        walk.free_pages()?;
        walk.lost_pages()?;
        Ok(walk.report)
    }
}

impl Walk<'_> {
    fn say(&mut self, block: u32, what: &str) {
        self.report.findings.push(format!("block {block}: {what}"));
    }

    fn shape(&mut self) {
        let shape = self.meta.shape;
        let fits = shape.high.wrapping_add(1).is_power_of_two() || shape.high == u32::MAX;
        if !fits || shape.max > shape.high || shape.max < shape.high >> 1 {
            self.say(0, "its number of buckets makes no sense");
        }
        if self.meta.directories != shape.max / PER_DIRECTORY + 1 {
            self.say(0, "its number of directory pages makes no sense");
        }
    }

    fn directories(&mut self) -> Result<()> {
        for n in 0..self.meta.directories.min(page::DIRECTORIES_MAX) {
            let block = page::directory_block(self.index.pin(0)?.read().page(), n);
            if !self.visit(block)? {
                continue;
            }
            if page::kind(self.index.pin(block)?.read().page()) != KIND_DIRECTORY {
                self.say(block, "is no directory");
            }
        }
        Ok(())
    }

    /// Notes a page as one of the index's; false when it can't be, or is there twice.
    fn visit(&mut self, block: u32) -> Result<bool> {
        if block == 0 || block >= self.index.storage.block_count(self.index.rel, Fork::Main)? {
            self.say(block, "is not in the file");
            return Ok(false);
        }
        if !self.seen.insert(block) {
            self.say(block, "is in use twice");
            return Ok(false);
        }
        Ok(true)
    }

    fn bucket(&mut self, bucket: u32) -> Result<()> {
        let mut block = self.index.block_of(bucket)?;
        let mut is_first = true;
        let mut splitting = false;
        while block != 0 && self.visit(block)? {
            let pinned = self.index.pin(block)?;
            let guard = pinned.read();
            let chained = Chained(guard.page());
            let fits = if is_first { chained.is_primary() } else { chained.is_overflow() };
            if !fits || chained.bucket() != bucket {
                self.say(block, &format!("is no page of bucket {bucket}"));
                return Ok(());
            }
            if is_first {
                splitting = chained.flags() & SPLITTING != 0;
                if chained.flags() & !(SPLITTING | FILLING) != 0 {
                    self.say(block, "has unknown flags");
                }
                if chained.mask() != self.meta.shape.mask_of(bucket) {
                    self.say(block, "takes other codes than its bucket");
                }
            }
            if !chained.entries().is_sorted() {
                self.say(block, "its entries are out of order");
            }
            for entry in chained.entries() {
                let own = self.meta.shape.bucket_of(page::code_of(entry));
                let of_twin = splitting && own & (chained.mask() >> 1) == bucket;
                if own != bucket && !of_twin {
                    self.say(block, "an entry belongs to another bucket");
                }
                self.report.entries.push((entry[..4].to_vec(), page::row_of(entry)));
            }
            (block, is_first) = (chained.next(), false);
        }
        Ok(())
    }

    fn free_pages(&mut self) -> Result<()> {
        let mut block = self.meta.free;
        while block != 0 && self.visit(block)? {
            let pinned = self.index.pin(block)?;
            let guard = pinned.read();
            if page::kind(guard.page()) != KIND_FREE {
                self.say(block, "is in the list of free pages");
                return Ok(());
            }
            block = Chained(guard.page()).next();
        }
        Ok(())
    }

    /// Pages that are nobody's, though they were used.
    fn lost_pages(&mut self) -> Result<()> {
        for block in 1..self.index.storage.block_count(self.index.rel, Fork::Main)? {
            sched::check_interrupts()?;
            if !self.seen.contains(&block) && page::kind(self.index.pin(block)?.read().page()) != 0
            {
                self.say(block, "is in no bucket and not free");
            }
        }
        Ok(())
    }
}

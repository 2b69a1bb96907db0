//! Sequential scans: page by page, all visible rows of a page under one shared latch.

use std::ops::Range;

use base::{Result, TupleId};
use txn::{Snapshot, Transaction};

use super::page;
use super::visible::{View, is_root};
use super::{Heap, wants_pruning};

/// A scan in progress: pins one page at a time, none between calls.
pub struct HeapScan {
    heap: Heap,
    snapshot: Snapshot,
    blocks: Option<Range<u32>>,
    limit: Option<Range<u32>>,
    /// The table takes a good part of the buffer pool: passing by is no reason to keep a page.
    large: bool,
}

impl Heap {
    /// All rows that the snapshot sees, page by page, in `blocks` (all pages when None).
    pub fn scan(&self, snapshot: &Snapshot, blocks: Option<Range<u32>>) -> HeapScan {
        HeapScan {
            heap: self.clone(),
            snapshot: *snapshot,
            blocks: None,
            limit: blocks,
            large: false,
        }
    }
}

impl HeapScan {
    /// Reads the next page that has visible rows and calls `f(tid, root, row bytes)` for each, under
    /// the page's shared latch (it must not wait). Returns false at the end.
    pub fn next_page(
        &mut self,
        tx: &Transaction,
        mut f: impl FnMut(TupleId, TupleId, &[u8]),
    ) -> Result<bool> {
        if self.blocks.is_none() {
            if self.limit.is_none() {
                tx.reads_relation(self.heap.rel);
            }
            // Pages added from now on hold nothing that the snapshot sees.
            let pages = self.heap.pages()?;
            self.large = pages as usize > self.heap.storage.pool.frames() / 4;
            let limit = self.limit.clone().unwrap_or(0..pages);
            self.blocks = Some(limit.start.min(pages)..limit.end.min(pages));
        }
        while let Some(block) = self.blocks.as_mut().and_then(Iterator::next) {
            sched::check_interrupts()?;
            if self.read_page(tx, block, &mut f)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn read_page(
        &self,
        tx: &Transaction,
        block: u32,
        f: &mut impl FnMut(TupleId, TupleId, &[u8]),
    ) -> Result<bool> {
        let pinned = if self.large { self.heap.pin_scan(block)? } else { self.heap.pin(block)? };
        let mut any = false;
        let mut view = View::new(tx, &self.snapshot, pinned.id());
        let crowded = {
            let guard = pinned.read();
            let page = guard.page();
            for number in 1..=page::line_count(page) {
                if !is_root(page, number) {
                    continue;
                }
                if let (Some(seen), _) = view.visible_in_chain(&guard, number) {
                    any = true;
                    let tid = TupleId { block, offset: seen.line };
                    let root = TupleId { block, offset: number };
                    f(tid, root, page::row(page, seen.offset, seen.len));
                }
            }
            wants_pruning(page)
        };
        if crowded {
            self.heap.prune_if_useful(tx, pinned, 0);
        }
        view.settle()?;
        Ok(any)
    }
}

//! Sequential scans: page by page, all visible rows of a page under one shared latch.

use std::ops::Range;

use base::{Result, TupleId};
use storage::ReadGuard;
use txn::{Snapshot, Transaction};

use super::page::{self, Line};
use super::visible::{Seen, View, is_plain};
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

/// Rows copied out of their pages, to be decoded without a latch.
#[derive(Default)]
pub struct RowBatch {
    /// Parts of pages.
    pub bytes: Vec<u8>,
    /// Where each row begins and ends in `bytes`; empty when only ids are kept.
    pub places: Vec<(u32, u32)>,
    /// Each row's version and the root of its chain, if they are kept.
    pub ids: Vec<(TupleId, TupleId)>,
    /// How many rows.
    pub rows: usize,
}

impl RowBatch {
    /// Removes all rows, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
        self.ids.clear();
        self.rows = 0;
    }
}

/// The parts of each row that a scan keeps in a [`RowBatch`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Keep {
    /// The bytes.
    pub bytes: bool,
    /// Version and root.
    pub ids: bool,
}

impl HeapScan {
    /// Reads the next page that has visible rows and calls `f(tid, root, row bytes)` for each, under
    /// the page's shared latch (it must not wait). Returns false at the end.
    ///
    /// # Errors
    /// I/O, `40001`, `57014`.
    pub fn next_page(
        &mut self,
        tx: &Transaction,
        mut f: impl FnMut(TupleId, TupleId, &[u8]),
    ) -> Result<bool> {
        while let Some(block) = self.next_block(tx)? {
            let any = self.read_page(tx, block, |view, guard| {
                let mut any = false;
                for_visible(view, guard, |root, seen| {
                    any = true;
                    let tid = TupleId { block, offset: seen.line };
                    let root = TupleId { block, offset: root };
                    f(tid, root, page::row(guard.page(), seen.offset, seen.len));
                });
                any
            })?;
            if any {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds the visible rows of the next page that has some. Returns false at the end.
    ///
    /// # Errors
    /// As [`HeapScan::next_page`].
    pub fn next_rows(&mut self, tx: &Transaction, keep: Keep, out: &mut RowBatch) -> Result<bool> {
        while let Some(block) = self.next_block(tx)? {
            let before = out.rows;
            self.read_page(tx, block, |view, guard| {
                // Under the page's latch, so that it is true of what is copied.
                if self.heap.state.visible.has(block) && !keep.ids && view.plain_before().is_some()
                {
                    copy_all(guard, keep, out);
                } else {
                    copy_rows(view, guard, block, keep, out);
                }
            })?;
            if out.rows > before {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The next page's number.
    fn next_block(&mut self, tx: &Transaction) -> Result<Option<u32>> {
        sched::check_interrupts()?;
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
        Ok(self.blocks.as_mut().and_then(Iterator::next))
    }

    /// Calls `f` under the page's shared latch.
    fn read_page<R>(
        &self,
        tx: &Transaction,
        block: u32,
        f: impl FnOnce(&mut View<'_>, &ReadGuard<'_>) -> R,
    ) -> Result<R> {
        let pinned = if self.large { self.heap.pin_scan(block)? } else { self.heap.pin(block)? };
        let mut view = View::new(tx, &self.snapshot, pinned.id());
        let (result, crowded) = {
            let guard = pinned.read();
            self.heap.check_used(block, guard.page())?;
            let result = f(&mut view, &guard);
            (result, wants_pruning(guard.page()))
        };
        if crowded {
            self.heap.prune_if_useful(tx, pinned, 0);
        }
        view.record_conflicts()?;
        Ok(result)
    }
}

/// Calls `f(number of the root, version)` for each row of a page that is seen.
#[inline]
fn for_visible(view: &mut View<'_>, guard: &ReadGuard<'_>, mut f: impl FnMut(u16, Seen)) {
    let page = guard.page();
    let before = view.plain_before();
    for (number, line) in page::lines(page) {
        match line {
            Line::Normal(offset, len) => {
                if before.is_some_and(|before| is_plain(page, offset, before)) {
                    f(number, Seen { line: number, offset, len });
                    continue;
                }
                if page::mask(page, offset) & page::IN_CHAIN != 0 {
                    continue;
                }
            }
            Line::Redirect(_) => {}
            Line::Unused | Line::Dead => continue,
        }
        if let (Some(seen), _) = view.visible_in_chain(guard, number) {
            f(number, seen);
        }
    }
}

/// Adds all versions of a page that everybody sees: each is a row.
fn copy_all(guard: &ReadGuard<'_>, keep: Keep, out: &mut RowBatch) {
    let page = guard.page();
    let from = page::upper(page).min(page.len());
    let base = out.bytes.len();
    for (_, line) in page::lines(page) {
        let Line::Normal(offset, len) = line else { continue };
        out.rows += 1;
        if keep.bytes {
            let at = base + offset.saturating_sub(from);
            out.places.push(((at + page::HEADER) as u32, (at + len) as u32));
        }
    }
    if keep.bytes {
        out.bytes.extend_from_slice(&page[from..]);
    }
}

/// Adds a page's visible rows.
fn copy_rows(
    view: &mut View<'_>,
    guard: &ReadGuard<'_>,
    block: u32,
    keep: Keep,
    out: &mut RowBatch,
) {
    let page = guard.page();
    let from = page::upper(page).min(page.len());
    // Where the page's beginning would be in the copy.
    let (base, before) = (out.bytes.len(), out.rows);
    for_visible(view, guard, |root, seen| {
        out.rows += 1;
        if keep.bytes {
            let at = base + seen.offset.saturating_sub(from);
            out.places.push(((at + page::HEADER) as u32, (at + seen.len) as u32));
        }
        if keep.ids {
            let id = |offset| TupleId { block, offset };
            out.ids.push((id(seen.line), id(root)));
        }
    });
    if keep.bytes && out.rows > before {
        out.bytes.extend_from_slice(&page[from..]);
    }
}

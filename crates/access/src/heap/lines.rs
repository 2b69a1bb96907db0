//! Reads chosen rows of one page under one latch, for scans that know which rows they want.

use base::{PageId, Result, TupleId};
use smallvec::SmallVec;
use txn::{Snapshot, Transaction};

use super::visible::{View, is_root};
use super::{Heap, page, wants_pruning};

/// Bytes of a version that are prefetched.
const PREFETCHED: usize = 256;

impl Heap {
    /// Prefetches rows that are about to be read one after another, each of a page of its own: pages that are in memory
    /// into the processor's cache, the others from the disk.
    pub fn prefetch(&self, rows: &[TupleId]) {
        let ids: SmallVec<[PageId; 16]> =
            rows.iter().map(|row| PageId::main(self.rel, row.block)).collect();
        let mut in_memory = true;
        self.storage.pool.prefetch(&ids, &mut |id| {
            in_memory = false;
            self.storage.prefetch(id.rel, id.fork, id.block..id.block + 1);
        });
        if in_memory {
            for (id, row) in ids.iter().zip(rows) {
                let pool = &self.storage.pool;
                pool.peek(*id, |page| page::prefetch_version(page, row.offset, PREFETCHED));
            }
        }
    }

    /// Calls `f(tid, root, row bytes)` for each row of the page that the snapshot sees, of those whose
    /// chains begin at these lines (all when None), under the page's shared latch (it must not wait).
    ///
    /// # Errors
    /// I/O; `40001`.
    pub fn fetch_lines(
        &self,
        tx: &Transaction,
        snapshot: &Snapshot,
        block: u32,
        lines: Option<&mut dyn Iterator<Item = u16>>,
        mut f: impl FnMut(TupleId, TupleId, &[u8]),
    ) -> Result<()> {
        let pinned = self.pin(block)?;
        let mut view = View::new(tx, snapshot, pinned.id());
        let crowded = {
            let guard = pinned.read();
            let page = guard.page();
            let mut look = |root: u16| {
                if let (Some(seen), _) = view.visible_in_chain(&guard, root) {
                    let tid = TupleId { block, offset: seen.line };
                    let root = TupleId { block, offset: root };
                    f(tid, root, page::row(page, seen.offset, seen.len));
                }
            };
            match lines {
                Some(lines) => lines.for_each(&mut look),
                None => (1..=page::line_count(page)).filter(|n| is_root(page, *n)).for_each(look),
            }
            wants_pruning(page)
        };
        if crowded {
            self.prune_if_useful(tx, pinned, 0);
        }
        view.record_conflicts()
    }
}

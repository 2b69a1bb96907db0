//! The heap's part in index-only scans.

use base::{Result, TupleId};
use txn::{Snapshot, Transaction};

use super::prune::VisibilityHorizon;
use super::visible::View;
use super::{Heap, LONG_CHAIN, wants_pruning};
use crate::visibility_map::{VacuumEpoch, is_all_visible};

impl Heap {
    /// Whether the snapshot sees a version of the row whose chain begins at `root`. With `set_all_visible` the
    /// visibility map hears of it when everybody sees all rows of the page.
    ///
    /// # Errors
    /// I/O; `40001`.
    pub fn is_visible(
        &self,
        tx: &Transaction,
        snapshot: &Snapshot,
        root: TupleId,
        set_all_visible: bool,
    ) -> Result<bool> {
        let pinned = self.pin(root.block)?;
        let mut view = View::new(tx, snapshot, pinned.id());
        let (found, crowded) = {
            let guard = pinned.read();
            self.check_used(root.block, guard.page())?;
            let (seen, passed) = view.visible_in_chain(&guard, root.offset);
            // Changes that a standby applies clear no bits.
            if set_all_visible
                && !self.storage.follows()
                && !super::page::is_new(guard.page())
                && is_all_visible(guard.page(), &mut VisibilityHorizon::new(tx.manager()))
            {
                self.state.visible.set(root.block);
            }
            (seen.is_some(), passed >= LONG_CHAIN || wants_pruning(guard.page()))
        };
        if crowded {
            self.prune_if_useful(tx, pinned, root.offset);
        }
        view.record_conflicts()?;
        Ok(found)
    }

    /// The vacuum epoch, for [`Heap::is_known_visible`]: to be read before the index is searched.
    pub fn vacuum_epoch(&self) -> VacuumEpoch {
        self.state.visible.epoch()
    }

    /// Whether the visibility map has a page whose index entries were read since `epoch` began.
    pub fn is_known_visible(&self, block: u32, epoch: VacuumEpoch) -> bool {
        self.state.visible.has_since(block, epoch)
    }

    /// How many pages hold only rows that everybody sees, as far as is known.
    pub fn visible_pages(&self) -> u32 {
        self.state.visible.count()
    }
}

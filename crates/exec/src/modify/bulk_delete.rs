//! DELETE of many rows of a page at a time.
//!
//! Where nobody asks for the old rows (RETURNING, triggers, foreign keys that refer to them, values outside of
//! them), consecutive rows of one page are deleted under one latch and with one record of the log. Those that
//! others hold or have changed take the way of a single row, as all do otherwise.

use base::{Oid, Result, TupleId};
use sql::plan::{Modify, ModifyAction};
use types::Batch;

use super::pipeline::Changed;
use super::{ModifyOp, change_own_row, target};
use crate::rows;
use crate::run::Run;
use crate::tally::Pages;

impl ModifyOp {
    /// Whether the statement's rows may be deleted a page at a time.
    pub(super) fn deletes_by_page(&self, modify: &Modify) -> Result<bool> {
        Ok(matches!(modify.action, ModifyAction::Delete { .. })
            && modify.returning.is_none()
            && self.parts.is_none()
            && self.children.is_empty()
            && self.writer.triggers.is_none()
            && self.writer.references.ignores_deletes()
            && !crate::change_log::is_told(&self.writer.target.handle.table)
            && !self.writer.target.handle.columns.has_outside()?)
    }

    /// Deletes the rows of a batch.
    pub(super) fn delete_by_page(
        &mut self,
        modify: &Modify,
        batch: &Batch,
        types: &[Oid],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let mut tids: Vec<TupleId> = Vec::new();
        let mut first = 0;
        while first < batch.rows {
            sched::check_interrupts()?;
            tids.clear();
            for n in first..batch.rows {
                let places = [0, 1].map(|c: usize| batch.columns[c].get(n, types[c]));
                match target(&places) {
                    Some((tid, _)) if tids.first().is_none_or(|t| t.block == tid.block) => {
                        tids.push(tid);
                    }
                    _ => break,
                }
            }
            let done = if tids.len() > 1 { self.delete_page(&tids, run)? } else { Vec::new() };
            let count = tids.len().max(1);
            for n in 0..count {
                if done.get(n).copied().unwrap_or(false) {
                    self.changed += 1;
                    continue;
                }
                let mut input = rows::get(batch, first + n, types);
                let result = change_own_row(&mut self.writer, modify, &mut input, run)?;
                self.changed += u64::from(matches!(result, Changed::Row(_)));
            }
            first += count;
        }
        Ok(())
    }

    /// Deletes what it can of these rows of one page.
    fn delete_page(&mut self, tids: &[TupleId], run: &mut Run<'_, '_>) -> Result<Vec<bool>> {
        let before = Pages::now(run.cx.task());
        let done = self.writer.target.handle.heap.delete_in_page(run.cx.tx, tids)?;
        let counts = run.cx.tally.of(self.writer.target.handle.table.oid);
        before.count(run.cx.tx.locks().task(), counts);
        counts.deleted += done.iter().filter(|done| **done).count() as u64;
        Ok(done)
    }
}

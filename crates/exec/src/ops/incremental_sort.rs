//! Sorts rows that come sorted by the first keys already: whenever one of these changes, all rows
//! before are complete and go out in order, so that a LIMIT reads little and little is held.
//!
//! Rows of several complete groups are sorted together: the whole key keeps the groups apart.

use base::settings::setting;
use base::{Oid, Result};
use sched::memory::Use;
use sql::Plan;
use sql::expr::SortKey;
use sql::plan::Node;
use types::Batch;
use types::batch::BATCH_ROWS;

use super::sort::{Sorted, Sorter, encode};
use crate::ops::operator::{Operator, types, wrong_node};
use crate::run::Run;
use crate::{rows, vector};

/// See the module's documentation.
pub struct IncrementalSort {
    input: Box<dyn Operator>,
    /// Rows of the group in the making.
    sorter: Option<Sorter>,
    /// Its presorted key.
    group: Vec<u8>,
    /// Complete groups, and how many of their rows are gone.
    ready: Option<(Sorted, usize)>,
    ended: bool,
}

/// Where the last group of a batch begins (0: it began before), and its key. `group`: the key of the
/// row before.
fn last_group(
    batch: &Batch,
    keys: &[SortKey],
    group: &[u8],
    run: &mut Run<'_, '_>,
) -> Result<(usize, Vec<u8>)> {
    let mut columns = Vec::with_capacity(keys.len());
    for key in keys {
        columns.push(vector::values(&key.expr, batch, run)?.filled(key.expr.ty(), batch.rows)?);
    }
    let (mut begin, mut last, mut bytes) = (0, group.to_vec(), Vec::new());
    for row in 0..batch.rows {
        bytes.clear();
        for (key, column) in keys.iter().zip(&columns) {
            encode(key, &column.get(row, key.expr.ty()), &mut bytes)?;
        }
        if bytes != last {
            begin = row;
            std::mem::swap(&mut last, &mut bytes);
        }
    }
    Ok((begin, last))
}

impl IncrementalSort {
    /// Over an input.
    pub fn new(input: Box<dyn Operator>) -> IncrementalSort {
        IncrementalSort { input, sorter: None, group: vec![], ready: None, ended: false }
    }

    /// Takes a batch in; whole groups become ready.
    fn add(
        &mut self,
        batch: &Batch,
        keys: &[SortKey],
        presorted: usize,
        types: &[Oid],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let (begin, group) = last_group(batch, &keys[..presorted], &self.group, run)?;
        let storage = &run.cx.engine.storage.clone();
        let changed = group != self.group;
        self.group = group;
        let mut rest = None;
        match self.sorter.take() {
            Some(mut sorter) if changed => {
                if begin > 0 {
                    sorter.add(&rows::slice(batch, 0, begin), keys, run)?;
                }
                self.ready = Some((sorter.finish(types, storage)?, 0));
                rest = (begin > 0).then(|| rows::slice(batch, begin, batch.rows - begin));
            }
            Some(sorter) => self.sorter = Some(sorter),
            None if begin > 0 => {
                let mut sorter = Sorter::new(types);
                sorter.add(&rows::slice(batch, 0, begin), keys, run)?;
                self.ready = Some((sorter.finish(types, storage)?, 0));
                rest = Some(rows::slice(batch, begin, batch.rows - begin));
            }
            None => {}
        }
        let sorter = self.sorter.get_or_insert_with(|| Sorter::new(types));
        sorter.add(rest.as_ref().unwrap_or(batch), keys, run)?;
        let limit = run.cx.settings.int(setting::WORK_MEM) as usize * 1024;
        if sorter.memory() > limit {
            sorter.spill(types, storage)?;
        }
        Ok(())
    }

    /// The next rows of what is ready.
    fn next_ready(&mut self, types: &[Oid]) -> Result<Option<Batch>> {
        let Some((sorted, gone)) = &mut self.ready else { return Ok(None) };
        let batch = match sorted {
            Sorted::Memory(all, order) => {
                let end = order.len().min(*gone + BATCH_ROWS);
                let batch = rows::take(all, &order[*gone..end]);
                *gone = end;
                batch
            }
            Sorted::Files(merge) => merge.next(types, BATCH_ROWS)?,
        };
        if batch.rows == 0 {
            self.ready = None;
            return Ok(None);
        }
        Ok(Some(batch))
    }
}

impl Operator for IncrementalSort {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::IncrementalSort { input, keys, presorted } = &plan.node else {
            return Err(wrong_node());
        };
        let _memory = sched::memory::for_use(Use::Sort);
        let types = types(input, run.prepared);
        loop {
            sched::check_interrupts()?;
            if let Some(batch) = self.next_ready(&types)? {
                return Ok(Some(batch));
            }
            if self.ended {
                return Ok(None);
            }
            match self.input.next(input, run)? {
                Some(batch) if batch.rows == 0 => {}
                Some(batch) => self.add(&batch, keys, *presorted, &types, run)?,
                None => {
                    self.ended = true;
                    if let Some(sorter) = self.sorter.take() {
                        let sorted = sorter.finish(&types, &run.cx.engine.storage)?;
                        self.ready = Some((sorted, 0));
                    }
                }
            }
        }
    }

    fn hasten(&mut self) {
        self.input.hasten();
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::IncrementalSort { input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        (self.sorter, self.ready, self.ended) = (None, None, false);
        self.group.clear();
        self.input.rescan(input, run)
    }
}

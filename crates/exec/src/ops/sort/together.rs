//! A sort by several threads: each sorts the rows of its pieces of the input, and the statement's own thread merges what
//! they have made. Rows are handed over by pointer; what went to files is merged from there.
//!
//! A thread's sorter holds `work_mem`, as each process's does in PostgreSQL.

use base::Result;
use base::settings::setting;
use sched::SpinLock;
use sched::memory::Use;
use sql::Plan;
use sql::plan::Node;

use super::super::gather::LAUNCHED;
use super::{Bounds, Sort, Sorter};
use crate::ops::measure::count;
use crate::ops::operator::{build_for, types, wrong_node};
use crate::parallel::{self, Results, Shared};
use crate::rows;
use crate::run::Run;

impl Sorter {
    /// Brings the entries in order, of the first rows only.
    fn settle(&mut self, bounds: Bounds) {
        if let Some(bound) = bounds.rows {
            self.cut(bound as usize);
        }
        let mut entries = std::mem::take(&mut self.entries);
        self.arrange(&mut entries);
        self.entries = entries;
    }

    /// Adds the rows of another thread.
    ///
    /// # Errors
    /// I/O; keys beyond what entries can say.
    pub(super) fn merge(
        &mut self,
        mut other: Sorter,
        (types, bounds): (&[base::Oid], Bounds),
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        sched::check_interrupts()?;
        (self.all, self.most) = (self.all + other.all, self.most.max(other.most));
        let bytes = self.bytes.len() + other.bytes.len();
        let work_mem = run.cx.settings.int(setting::WORK_MEM) as usize * 1024;
        let storage = &run.cx.engine.storage;
        let spills = !self.runs.is_empty() || !other.runs.is_empty() || bytes > u32::MAX as usize;
        if spills && bounds.rows.is_none() {
            // Both are written in order, and runs are merged as ever.
            if self.memory() > work_mem / 2 {
                self.spill(types, storage)?;
            }
            other.spill(types, storage)?;
            self.spilled += other.spilled;
            self.runs.append(&mut other.runs);
            return Ok(());
        }
        let (row, begin) = (self.rows.rows as u32, self.bytes.len() as u32);
        self.bytes.append(&mut other.bytes);
        let moved = other.entries.iter().map(|entry| super::Entry {
            begin: entry.begin + begin,
            end: entry.end + begin,
            row: entry.row + row,
            ..*entry
        });
        self.entries.extend(moved);
        self.merged = true;
        self.held += other.held;
        rows::append(&mut self.rows, &other.rows)?;
        if let Some(bound) = bounds.rows {
            self.cut(bound as usize);
        }
        Ok(())
    }
}

impl Sort {
    /// Sorts what several threads read of the input's pieces: the own thread's rows are in `sorter`, those of the
    /// helpers are returned.
    pub(super) fn fill_together(
        &mut self,
        plan: &Plan,
        sorter: &mut Sorter,
        bounds: Bounds,
        run: &mut Run<'_, '_>,
    ) -> Result<Vec<Sorter>> {
        let Node::Sort { input: gather, keys, .. } = &plan.node else { return Err(wrong_node()) };
        let Node::Gather { input, workers, .. } = &gather.node else { return Ok(Vec::new()) };
        let Some(leader) = self.input.absorb() else { return Ok(Vec::new()) };
        self.input.prepare(gather, run)?;
        let helpers = parallel::available(*workers, run);
        count(gather, LAUNCHED, helpers.count() as u64, run);
        if helpers.count() == 0 {
            leader.go_on_alone();
            return Ok(Vec::new());
        }
        let shared = Shared::of(run);
        let results: Results<Sorter> = SpinLock::new(Vec::new());
        let help = || {
            let made = shared.with_run(|run| {
                let _memory = sched::memory::for_use(Use::Sort);
                let mut op = build_for(&leader.helper(), input, run)?;
                let mut own = Sorter::new(&types(input, run.prepared));
                own.fill(op.as_mut(), (input, keys), bounds, run)?;
                own.settle(bounds);
                Ok(own)
            });
            let (own, counted) = made.inspect_err(|_| leader.close())?;
            results.lock().push((own, counted));
            Ok(())
        };
        let op = &mut self.input;
        let lead = |run: &mut Run<'_, '_>| {
            let led = sorter.fill(op.as_mut(), (gather, keys), bounds, run);
            sorter.settle(bounds);
            led.inspect_err(|_| leader.close())
        };
        parallel::together(helpers.count(), &help, lead, run)?;
        leader.go_on_alone();
        let results = std::mem::take(&mut *results.lock());
        let mut others = Vec::with_capacity(results.len());
        for (number, (sorter, counted)) in results.into_iter().enumerate() {
            counted.add_to(number, run);
            others.push(sorter);
        }
        Ok(others)
    }
}

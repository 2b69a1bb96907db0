//! Partial aggregation by several threads: helpers group the rows of their pieces of a scan, and the statement's own
//! thread adds their groups to its own. Nothing is copied but pointers.
//!
//! Many groups are put together by several threads, too, when nothing is left of the scan ([`super::parts`]).
//! Each thread has memory of its own for its groups, and puts the rows of further groups aside in files by their hashes.
//! So a group may be in the memory of one thread and in the files of others: the parts into which the hashes fall
//! are worked on one after the other then, each by whoever has time.

use std::borrow::Cow;

use base::Result;
use sched::SpinLock;
use sched::memory::Use;
use sql::Plan;
use sql::plan::Node;

use super::super::gather::LAUNCHED;
use super::super::grouping::hash_columns;
use super::parts::{self, Part, Source};
use super::{Aggregate, Groups, start};
use crate::ops::measure::count;
use crate::ops::operator::{build_for, wrong_node};
use crate::parallel::{self, Counted, Helpers, Results, Shared};
use crate::run::Run;

/// Fewer groups are put together by the own thread.
const MANY_GROUPS: usize = 16 << 10;
/// Parts for each thread, so that all end at about the same time.
const PARTS_A_THREAD: usize = 4;

impl Aggregate {
    /// Groups what several threads read of the input's pieces; afterwards the own thread goes on with what is left. The
    /// helpers' groups are returned.
    pub(super) fn load_together(
        &mut self,
        plan: &Plan,
        run: &mut Run<'_, '_>,
    ) -> Result<Vec<Aggregate>> {
        let Node::Aggregate { input: gather, .. } = &plan.node else { return Err(wrong_node()) };
        let Node::Gather { input, workers, absorbed: true, .. } = &gather.node else {
            return Ok(Vec::new());
        };
        let Some(leader) = self.input.absorb() else { return Ok(Vec::new()) };
        self.input.prepare(gather, run)?;
        let helpers = parallel::available(*workers, run);
        count(gather, LAUNCHED, helpers.count() as u64, run);
        if helpers.count() == 0 {
            leader.go_on_alone();
            return Ok(Vec::new());
        }
        let shared = Shared::of(run);
        let results: Results<Aggregate> = SpinLock::new(Vec::new());
        let help = || {
            let own = leader.helper();
            let made = shared.with_run(|run| {
                let mut partial = Aggregate::new(build_for(&own, input, run)?);
                partial.begin(plan);
                partial.add_pieces(plan, input, run)?;
                Ok(partial)
            });
            // Nobody need go on.
            let (partial, counted) = made.inspect_err(|_| leader.close())?;
            results.lock().push((partial, counted));
            Ok(())
        };
        let lead = |run: &mut Run<'_, '_>| {
            let led = self.add_pieces(plan, gather, run);
            led.inspect_err(|_| leader.close())
        };
        parallel::together(helpers.count(), &help, lead, run)?;
        leader.go_on_alone();
        let results: Vec<(Aggregate, Counted)> = std::mem::take(&mut *results.lock());
        let mut others = Vec::with_capacity(results.len());
        for (number, (partial, counted)) in results.into_iter().enumerate() {
            counted.add_to(number, run);
            others.push(partial);
        }
        Ok(others)
    }

    /// Puts the groups of several threads together, to which no rows come any more; with helpers if they are many.
    pub(super) fn merge_all(
        &mut self,
        plan: &Plan,
        others: Vec<Aggregate>,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        if others.iter().any(|other| other.aside.is_some())
            || self.aside.is_some() && !others.is_empty()
        {
            return self.divide(plan, others, run);
        }
        let Node::Aggregate { plain, aggs, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let count = |one: &Aggregate| one.keyed.as_ref().map_or(0, Groups::len);
        let all = count(self) + others.iter().map(count).sum::<usize>();
        let helpers = match !plain && all >= MANY_GROUPS && self.aside.is_none() {
            true => self.helpers(plan, run),
            false => Helpers::none(),
        };
        if helpers.count() == 0 {
            return others.into_iter().try_for_each(|other| self.merge(plan, other, run));
        }
        self.held += others.iter().map(|other| other.held).sum::<usize>();
        let own = (self.keyed.take(), std::mem::take(&mut self.states));
        let others = others.into_iter().map(|other| (other.keyed, other.states));
        let sources: Vec<Source> = std::iter::once(own)
            .chain(others)
            .filter_map(|(keyed, states)| Some(SpinLock::new(Some((keyed?, states)))))
            .collect();
        let parts = PARTS_A_THREAD * (helpers.count() + 1);
        let part_of = |hash| parts::part_of(hash, parts);
        let by_part = parts::split_all(&sources, (aggs.len(), parts), &part_of, &helpers, run)?;
        let by_part: Vec<SpinLock<Vec<Part>>> = by_part.into_iter().map(SpinLock::new).collect();
        let merge = |n: usize, run: &mut Run<'_, '_>| {
            let _memory = sched::memory::for_use(Use::Aggregate);
            let sources = std::mem::take(&mut *by_part[n].lock());
            let merged = parts::merged(sources, aggs, run)?;
            parts::finished(plan, merged, run)
        };
        let merged = parallel::each_in(parts, &helpers, run, &merge)?;
        self.finished.extend(merged.into_iter().flatten());
        Ok(())
    }

    /// Groups rows until no piece is left.
    fn add_pieces(&mut self, plan: &Plan, input: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        while let Some(batch) = self.input.next(input, run)? {
            sched::check_interrupts()?;
            self.add(plan, batch, run)?;
        }
        Ok(())
    }

    /// Adds another thread's groups.
    pub(super) fn merge(
        &mut self,
        plan: &Plan,
        other: Aggregate,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let Node::Aggregate { groups, aggs, plain, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let width = aggs.len();
        if *plain {
            let mut pairs = self.states.iter_mut().zip(other.states).zip(aggs);
            return pairs.try_for_each(|((own, other), call)| own.merge(other, call, run));
        }
        let Some(keyed) = other.keyed else { return Ok(()) };
        let rows = keyed.len();
        let key: Vec<_> = keyed.columns.iter().map(Cow::Borrowed).collect();
        let hashes = hash_columns(&key, rows);
        let own =
            self.keyed.get_or_insert_with(|| super::Groups::new(groups.iter().map(|g| g.ty())));
        let mut states = other.states.into_iter();
        for (row, hash) in hashes.into_iter().enumerate() {
            sched::check_interrupts()?;
            let number = match own.find(hash, &key, row) {
                Some(number) => number as usize,
                None => {
                    self.states.extend(start(aggs));
                    own.add(hash, &key, row)? as usize
                }
            };
            let of_group = &mut self.states[number * width..][..width];
            let others = states.by_ref().take(width);
            for ((state, other), call) in of_group.iter_mut().zip(others).zip(aggs) {
                state.merge(other, call, run)?;
            }
        }
        self.held += other.held;
        Ok(())
    }
}

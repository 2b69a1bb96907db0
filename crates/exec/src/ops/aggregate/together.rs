//! Partial aggregation by several threads: helpers group the rows of their pieces of a scan, and the statement's own
//! thread adds their groups to its own. Nothing is copied but pointers.
//!
//! While they work together nobody puts rows aside: a thread whose groups outgrow their memory takes no further piece.
//! So a group that somebody has in memory is in no file, and what is left of the scan then the statement's own thread
//! groups alone, with files as ever.

use std::borrow::Cow;

use base::Result;
use sched::SpinLock;
use sql::Plan;
use sql::plan::Node;

use super::super::gather::LAUNCHED;
use super::super::grouping::hash_columns;
use super::{Aggregate, start};
use crate::ops::measure::count;
use crate::ops::operator::{build_for, wrong_node};
use crate::ops::team::Member;
use crate::parallel::{self, Counted, Results, Shared};
use crate::run::Run;

impl Aggregate {
    /// Groups what several threads read of the input's pieces; afterwards the own thread goes on with what is left.
    pub(super) fn load_together(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Aggregate { input: gather, .. } = &plan.node else { return Err(wrong_node()) };
        let Node::Gather { input, workers, absorbed: true, .. } = &gather.node else {
            return Ok(());
        };
        let Some(leader) = self.input.absorb() else { return Ok(()) };
        self.input.prepare(gather, run)?;
        let helpers = parallel::available(*workers, run);
        count(gather, LAUNCHED, helpers.count() as u64, run);
        if helpers.count() == 0 {
            leader.go_on_alone();
            return Ok(());
        }
        let shared = Shared::of(run);
        let results: Results<Aggregate> = SpinLock::new(Vec::new());
        let help = || {
            let own = leader.helper();
            let made = shared.with_run(|run| {
                let mut partial = Aggregate::new(build_for(&own, input, run)?);
                partial.begin(plan);
                partial.add_pieces(plan, input, &own, run)?;
                Ok(partial)
            });
            // Nobody need go on.
            let (partial, counted) = made.inspect_err(|_| leader.close())?;
            results.lock().push((partial, counted));
            Ok(())
        };
        let lead = || {
            let led = self.add_pieces(plan, gather, &leader, run);
            led.inspect_err(|_| leader.close())
        };
        sched::helpers::together(helpers.count(), &help, lead)?;
        leader.go_on_alone();
        let results: Vec<(Aggregate, Counted)> = std::mem::take(&mut *results.lock());
        for (number, (partial, counted)) in results.into_iter().enumerate() {
            counted.add_to(number, run);
            self.merge(plan, partial)?;
        }
        Ok(())
    }

    /// Groups rows until no piece is left or the groups outgrow their memory.
    fn add_pieces(
        &mut self,
        plan: &Plan,
        input: &Plan,
        member: &Member,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        self.together = true;
        let limit = super::partition::limit(run);
        while let Some(batch) = self.input.next(input, run)? {
            sched::check_interrupts()?;
            self.add(plan, batch, run)?;
            if self.held > limit {
                member.stop(true);
            }
        }
        self.together = false;
        Ok(())
    }

    /// Adds another thread's groups.
    fn merge(&mut self, plan: &Plan, other: Aggregate) -> Result<()> {
        let Node::Aggregate { groups, aggs, plain, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let width = aggs.len();
        if *plain {
            let pairs = self.states.iter_mut().zip(other.states);
            return pairs.into_iter().try_for_each(|(own, other)| own.merge(other));
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
            for (state, other) in of_group.iter_mut().zip(states.by_ref().take(width)) {
                state.merge(other)?;
            }
        }
        self.held += other.held;
        Ok(())
    }
}

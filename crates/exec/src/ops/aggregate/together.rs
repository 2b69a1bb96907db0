//! Partial aggregation by several threads: helpers group the rows of their pieces of a scan, and the statement's own
//! thread adds their groups to its own. Nothing is copied but pointers.
//!
//! While they work together nobody puts rows aside: a thread whose groups outgrow their memory takes no further piece.
//! So a group that somebody has in memory is in no file, and what is left of the scan then the statement's own thread
//! groups alone, with files as ever.
//!
//! Many groups are put together by several threads, too, when nothing is left of the scan: each thread's groups are
//! split by their hashes into parts, and whoever has time merges all threads' groups of the next part and finishes
//! them:
//!
//! ```text
//!   groups of thread 1 ─ split ─▶ 1a 1b 1c 1d        1a + 2a ─▶ batches
//!   groups of thread 2 ─ split ─▶ 2a 2b 2c 2d        1b + 2b ─▶ batches  …
//! ```

use std::borrow::Cow;

use base::{Error, Result};
use sched::SpinLock;
use sched::memory::Use;
use sql::plan::Node;
use sql::{AggCall, Plan};
use types::batch::BATCH_ROWS;
use types::{Batch, Column};

use super::super::gather::LAUNCHED;
use super::super::grouping::hash_columns;
use super::{AggState, Aggregate, Groups, start};
use crate::ops::measure::count;
use crate::ops::operator::{build_for, types, wrong_node};
use crate::ops::team::Member;
use crate::parallel::{self, Counted, Results, Shared};
use crate::rows;
use crate::run::Run;

/// Fewer groups are put together by the own thread.
const MANY_GROUPS: usize = 16 << 10;
/// Parts for each thread, so that all end at about the same time.
const PARTS_A_THREAD: usize = 4;

/// A thread's groups, which are split once.
type Source = SpinLock<Option<(Groups, Vec<AggState>)>>;

/// Groups whose hashes fall into one part: their keys, hashes and states.
struct Part {
    columns: Vec<Column>,
    hashes: Vec<u64>,
    states: Vec<AggState>,
}

/// The part into which a hash falls: by bits that the tables don't use.
fn part_of(hash: u64, parts: usize) -> usize {
    let spread = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (spread as usize * parts) >> 32
}

/// Splits groups of which each has so many states.
fn split(keyed: &Groups, states: Vec<AggState>, width: usize, parts: usize) -> Result<Vec<Part>> {
    let hashes = keyed.hashes();
    let mut rows: Vec<Vec<u32>> = vec![Vec::with_capacity(hashes.len() / parts + 64); parts];
    let mut out: Vec<Part> = (0..parts)
        .map(|_| Part { columns: Vec::new(), hashes: Vec::new(), states: Vec::new() })
        .collect();
    let mut states = states.into_iter();
    for (row, hash) in hashes.into_iter().enumerate() {
        if row.is_multiple_of(BATCH_ROWS) {
            sched::check_interrupts()?;
        }
        let part = part_of(hash, parts);
        rows[part].push(row as u32);
        out[part].hashes.push(hash);
        out[part].states.extend(states.by_ref().take(width));
    }
    for (part, rows) in out.iter_mut().zip(rows) {
        part.columns = keyed.columns.iter().map(|column| column.take(&rows)).collect();
    }
    Ok(out)
}

/// Puts the groups of one part together, of all threads.
fn merged(
    sources: Vec<Part>,
    aggs: &[AggCall],
    run: &mut Run<'_, '_>,
) -> Result<(Groups, Vec<AggState>)> {
    let width = aggs.len();
    let more = sources.iter().skip(1).map(|part| part.hashes.len()).sum();
    let mut sources = sources.into_iter();
    let Some(first) = sources.next() else {
        return Ok((Groups::new(std::iter::empty()), Vec::new()));
    };
    let (mut groups, mut states) = (Groups::of(first.columns, &first.hashes), first.states);
    groups.reserve(more);
    for part in sources {
        let key: Vec<_> = part.columns.iter().map(Cow::Borrowed).collect();
        let mut others = part.states.into_iter();
        for (row, hash) in part.hashes.iter().enumerate() {
            if row.is_multiple_of(BATCH_ROWS) {
                sched::check_interrupts()?;
            }
            let of_row = others.by_ref().take(width);
            match groups.find(*hash, &key, row) {
                Some(number) => {
                    let own = &mut states[number as usize * width..][..width];
                    for ((own, other), call) in own.iter_mut().zip(of_row).zip(aggs) {
                        own.merge(other, call, run)?;
                    }
                }
                None => {
                    groups.add(*hash, &key, row)?;
                    states.extend(of_row);
                }
            }
        }
    }
    Ok((groups, states))
}

/// The output rows of groups.
fn finished(
    plan: &Plan,
    (groups, mut states): (Groups, Vec<AggState>),
    run: &mut Run<'_, '_>,
) -> Result<Vec<Batch>> {
    let Node::Aggregate { aggs, .. } = &plan.node else { return Err(wrong_node()) };
    let types = types(plan, run.prepared);
    let (width, count) = (groups.columns.len(), groups.len());
    let mut out = Vec::with_capacity(count.div_ceil(BATCH_ROWS));
    for begin in (0..count).step_by(BATCH_ROWS) {
        sched::check_interrupts()?;
        let end = count.min(begin + BATCH_ROWS);
        let chosen: Vec<u32> = (begin as u32..end as u32).collect();
        let mut batch = rows::empty(&types);
        for (to, from) in batch.columns.iter_mut().zip(&groups.columns) {
            *to = from.take(&chosen);
        }
        for (n, call) in aggs.iter().enumerate() {
            let column = &mut batch.columns[width + n];
            for number in begin..end {
                column.push(states[number * aggs.len() + n].finish(call, run)?)?;
            }
        }
        batch.rows = chosen.len();
        out.push(batch);
    }
    Ok(out)
}

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
                partial.add_pieces(plan, input, &own, run)?;
                Ok(partial)
            });
            // Nobody need go on.
            let (partial, counted) = made.inspect_err(|_| leader.close())?;
            results.lock().push((partial, counted));
            Ok(())
        };
        let lead = |run: &mut Run<'_, '_>| {
            let led = self.add_pieces(plan, gather, &leader, run);
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
        let Node::Aggregate { input, plain, aggs, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let count = |one: &Aggregate| one.keyed.as_ref().map_or(0, Groups::len);
        let all = count(self) + others.iter().map(count).sum::<usize>();
        let planned = match &input.node {
            Node::Gather { workers, absorbed: true, .. }
                if !plain
                    && all >= MANY_GROUPS
                    && self.aside.is_none()
                    // The final functions of users' aggregates are the own thread's to call.
                    && aggs.iter().all(|call| call.own.is_none()) =>
            {
                *workers
            }
            _ => 0,
        };
        let helpers = parallel::available(planned, run);
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
        let split = |n: usize, _: &mut Run<'_, '_>| {
            let source = sources[n].lock().take();
            let twice = || Error::internal("groups are split twice");
            let (keyed, states) = source.ok_or_else(twice)?;
            split(&keyed, states, aggs.len(), parts)
        };
        let split = parallel::each_in(sources.len(), &helpers, run, &split)?;
        let mut by_part: Vec<Vec<Part>> = (0..parts).map(|_| Vec::new()).collect();
        for source in split {
            by_part.iter_mut().zip(source).for_each(|(part, one)| part.push(one));
        }
        let by_part: Vec<SpinLock<Vec<Part>>> = by_part.into_iter().map(SpinLock::new).collect();
        let merge = |n: usize, run: &mut Run<'_, '_>| {
            let _memory = sched::memory::for_use(Use::Aggregate);
            let sources = std::mem::take(&mut *by_part[n].lock());
            let merged = merged(sources, aggs, run)?;
            finished(plan, merged, run)
        };
        let merged = parallel::each_in(parts, &helpers, run, &merge)?;
        self.finished.extend(merged.into_iter().flatten());
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

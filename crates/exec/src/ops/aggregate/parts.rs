//! Groups of several threads put together part by part: each thread's groups are split by their hashes into parts, and
//! whoever has time merges all threads' groups of the next part and finishes them:
//!
//! ```text
//!   groups of thread 1 ─ split ─▶ 1a 1b 1c 1d        1a + 2a ─▶ batches
//!   groups of thread 2 ─ split ─▶ 2a 2b 2c 2d        1b + 2b ─▶ batches  …
//! ```
//!
//! Where threads have put rows aside, the parts are those of their files: a part's groups are merged, and the rows of
//! its files are added. That is done for a few parts at a time, so that their output stays small. What outgrows memory
//! once more goes to files of the next level, which the statement's own thread works on at the end.

use std::borrow::Cow;

use base::{Error, Result};
use sched::SpinLock;
use sched::memory::Use;
use sql::plan::Node;
use sql::{AggCall, Plan};
use types::Batch;
use types::Column;
use types::batch::BATCH_ROWS;

use super::{AggState, Aggregate, File, Groups};
use crate::ops::measure::{count, note_most};
use crate::ops::operator::{types, wrong_node};
use crate::ops::partition::{self, FILES, Reader};
use crate::ops::values::Nothing;
use crate::parallel::{self, Helpers};
use crate::rows;
use crate::run::Run;

/// Parts with files that are worked on at a time, for each thread.
const AT_A_TIME: usize = 2;

/// A thread's groups, which are split once.
pub(super) type Source = SpinLock<Option<(Groups, Vec<AggState>)>>;

/// Groups whose hashes fall into one part: their keys, hashes and states.
pub(super) struct Part {
    columns: Vec<Column>,
    hashes: Vec<u64>,
    states: Vec<AggState>,
}

/// The part into which a hash falls: by bits that the tables don't use.
pub(super) fn part_of(hash: u64, parts: usize) -> usize {
    let spread = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (spread as usize * parts) >> 32
}

/// Splits groups of which each has so many states.
fn split(
    keyed: &Groups,
    states: Vec<AggState>,
    (width, parts): (usize, usize),
    part_of: &dyn Fn(u64) -> usize,
) -> Result<Vec<Part>> {
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
        let part = part_of(hash);
        rows[part].push(row as u32);
        out[part].hashes.push(hash);
        out[part].states.extend(states.by_ref().take(width));
    }
    for (part, rows) in out.iter_mut().zip(rows) {
        part.columns = keyed.columns.iter().map(|column| column.take(&rows)).collect();
    }
    Ok(out)
}

/// Splits the groups of all threads: for each part, those of each thread.
pub(super) fn split_all(
    sources: &[Source],
    (width, parts): (usize, usize),
    part_of: &(dyn Fn(u64) -> usize + Sync),
    helpers: &Helpers,
    run: &mut Run<'_, '_>,
) -> Result<Vec<Vec<Part>>> {
    let split = |n: usize, _: &mut Run<'_, '_>| {
        let source = sources[n].lock().take();
        let twice = || Error::internal("groups are split twice");
        let (keyed, states) = source.ok_or_else(twice)?;
        split(&keyed, states, (width, parts), part_of)
    };
    let split = parallel::each_in(sources.len(), helpers, run, &split)?;
    let mut by_part: Vec<Vec<Part>> = (0..parts).map(|_| Vec::new()).collect();
    for source in split {
        by_part.iter_mut().zip(source).for_each(|(part, one)| part.push(one));
    }
    Ok(by_part)
}

/// Puts the groups of one part together, of all threads.
pub(super) fn merged(
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
pub(super) fn finished(
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

/// The groups of one part, and the rows that threads have put aside of it.
pub(super) struct Rest {
    groups: Vec<Part>,
    files: Vec<File>,
    /// Bytes that the groups hold, about.
    held: usize,
}

impl Rest {
    /// Its output, and the files of what has found no memory.
    fn finish(self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<(Vec<Batch>, Vec<File>)> {
        let Node::Aggregate { input, aggs, .. } = &plan.node else { return Err(wrong_node()) };
        let _memory = sched::memory::for_use(Use::Aggregate);
        let mut part = Aggregate::new(Box::new(Nothing));
        let (keyed, states) = merged(self.groups, aggs, run)?;
        if keyed.len() > 0 {
            (part.keyed, part.states, part.held) = (Some(keyed), states, self.held);
        }
        part.level = 1;
        let mut reader = Reader::of(self.files, &types(input, run.prepared))?;
        while let Some(batch) = reader.next()? {
            sched::check_interrupts()?;
            part.add(plan, batch, run)?;
        }
        note_most(plan, super::MEMORY, part.held.div_ceil(1024) as u64, run);
        count(plan, super::BATCHES, 1, run);
        let batches = match part.keyed.take() {
            Some(keyed) => finished(plan, (keyed, part.states), run)?,
            None => Vec::new(),
        };
        Ok((batches, part.aside.map_or(Ok(Vec::new()), partition::Partitions::finish)?))
    }
}

impl Aggregate {
    /// Splits what several threads have, in memory and put aside, into the parts of their files.
    pub(super) fn divide(
        &mut self,
        plan: &Plan,
        others: Vec<Aggregate>,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let Node::Aggregate { aggs, .. } = &plan.node else { return Err(wrong_node()) };
        let (mut held, mut sources) = (0, Vec::<Source>::new());
        let mut files: Vec<Vec<File>> = (0..FILES).map(|_| Vec::new()).collect();
        let own = (self.keyed.take(), std::mem::take(&mut self.states), self.aside.take());
        let own = (own, std::mem::replace(&mut self.held, 0));
        let others =
            others.into_iter().map(|other| ((other.keyed, other.states, other.aside), other.held));
        for ((keyed, states, aside), bytes) in std::iter::once(own).chain(others) {
            held += bytes;
            note_most(plan, super::MEMORY, bytes.div_ceil(1024) as u64, run);
            sources.extend(keyed.map(|keyed| SpinLock::new(Some((keyed, states)))));
            let aside = aside.map_or(Ok(Vec::new()), partition::Partitions::finish)?;
            files.iter_mut().zip(aside).for_each(|(files, file)| files.push(file));
        }
        let helpers = self.helpers(plan, run);
        let part_of = |hash| partition::file_of(hash, 0);
        let parts = split_all(&sources, (aggs.len(), FILES), &part_of, &helpers, run)?;
        let rest = |(groups, files)| Rest { groups, files, held: held / FILES };
        self.rest = parts.into_iter().zip(files).map(rest).collect();
        Ok(())
    }

    /// Works on the next parts; false when there are none.
    pub(super) fn next_parts(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<bool> {
        if self.rest.is_empty() {
            return Ok(false);
        }
        let helpers = self.helpers(plan, run);
        let count = self.rest.len().min(AT_A_TIME * (helpers.count() + 1));
        let parts = self.rest.drain(..count).map(|rest| SpinLock::new(Some(rest)));
        let parts: Vec<SpinLock<Option<Rest>>> = parts.collect();
        let finish = |n: usize, run: &mut Run<'_, '_>| {
            let part = parts[n].lock().take();
            let twice = || Error::internal("a part is finished twice");
            part.ok_or_else(twice)?.finish(plan, run)
        };
        for (batches, files) in parallel::each_in(count, &helpers, run, &finish)? {
            self.finished.extend(batches);
            self.files.extend(files.into_iter().map(|file| (file, 2)));
        }
        Ok(true)
    }

    /// Helpers for work on groups.
    pub(super) fn helpers(&self, plan: &Plan, run: &mut Run<'_, '_>) -> Helpers {
        match &plan.node {
            // The final functions of users' aggregates are the own thread's to call.
            Node::Aggregate { input, aggs, .. } if aggs.iter().all(|call| call.own.is_none()) => {
                match &input.node {
                    Node::Gather { workers, absorbed: true, .. } => {
                        parallel::available(*workers, run)
                    }
                    _ => Helpers::none(),
                }
            }
            _ => Helpers::none(),
        }
    }
}

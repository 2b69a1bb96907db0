//! Groups and aggregates: output is group values, then aggregates.
//!
//! A batch is worked on column by column: the hashes of its keys, each row's group, then one aggregate
//! after the other. Sorted input, grouping sets and volatile arguments go row by row.
//!
//! Groups that outgrow their memory stay, but get no company: rows of further groups are put aside in
//! files by the hash of their key ([`super::partition`]), and each file is grouped by itself later.

mod once;
mod parts;
mod together;

use std::borrow::Cow;
use std::collections::VecDeque;

use base::Result;
use sched::memory::Use;
use sql::plan::{Node, Sets};
use sql::{AggCall, Plan};
use types::batch::BATCH_ROWS;
use types::{Batch, Column, Datum};

use super::accumulate::{self, AggState};
use super::grouping::{Groups, RowSet, hash_columns, same};
use super::partition::{self, Partitions, Reader};
use super::spill::Run as File;
use crate::ops::measure::{count, note_most};
use crate::ops::operator::{Operator, types, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;
use crate::{eval, vector};
use once::SharedInputs;
use parts::Rest;

/// What EXPLAIN says of the groups' table: parts, and kilobytes of the largest.
pub const BATCHES: &str = "HashAgg Batches";
/// See [`BATCHES`].
pub const MEMORY: &str = "Peak Memory Usage";

/// Bytes of a group's place in the hash table, about.
const PLACE_BYTES: usize = 24;
/// In place of a group's number: the row was put aside.
const NOWHERE: u32 = u32::MAX;

/// See the module's documentation.
pub struct Aggregate {
    input: Box<dyn Operator>,
    /// Groups in the order of their coming, of grouping sets.
    groups: RowSet,
    /// The same without grouping sets; None before the first row.
    keyed: Option<Groups>,
    /// States, one for each aggregate of each group.
    states: Vec<AggState>,
    /// Sorted input: the group in the making.
    current: Option<(Vec<Datum>, Vec<AggState>)>,
    loaded: bool,
    next: usize,
    /// Bytes that the groups hold, about.
    held: usize,
    /// Rows of groups that found no room, and how often they have been put aside.
    aside: Option<Partitions>,
    files: Vec<(File, u32)>,
    level: u32,
    /// The file that is read instead of the input.
    reader: Option<Reader>,
    /// Output that several threads have made of groups.
    finished: VecDeque<Batch>,
    /// Parts of what several threads have put aside, which are to be worked on.
    rest: VecDeque<Rest>,
}

fn start(aggs: &[AggCall]) -> impl Iterator<Item = AggState> + '_ {
    aggs.iter().map(AggState::new)
}

impl Aggregate {
    /// Over an input.
    pub fn new(input: Box<dyn Operator>) -> Aggregate {
        Aggregate {
            input,
            groups: RowSet::default(),
            keyed: None,
            states: vec![],
            current: None,
            loaded: false,
            next: 0,
            held: 0,
            aside: None,
            files: vec![],
            level: 0,
            reader: None,
            finished: VecDeque::new(),
            rest: VecDeque::new(),
        }
    }

    /// Reads the whole input.
    fn load(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let _memory = sched::memory::for_use(Use::Aggregate);
        let Node::Aggregate { input, groups, aggs, plain, sets, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if let Some(sets) = sets {
            // A set without groups has its one row even of no rows.
            for (n, set) in sets.sets.iter().enumerate().filter(|(_, set)| set.is_empty()) {
                self.group(&set_key(n, set, &vec![Datum::Null; groups.len()]), aggs);
            }
        }
        self.begin(plan);
        let others = match self.reader {
            None => self.load_together(plan, run)?,
            Some(_) => Vec::new(),
        };
        let shared: Vec<Option<SharedInputs>> = match sets {
            Some(_) => aggs.iter().map(SharedInputs::of).collect(),
            None => Vec::new(),
        };
        loop {
            sched::check_interrupts_now()?;
            let batch = match &mut self.reader {
                Some(reader) => reader.next()?,
                None => self.input.next(input, run)?,
            };
            let Some(batch) = batch else { break };
            let Some(sets) = sets else {
                self.add(plan, batch, run)?;
                continue;
            };
            for row in 0..batch.rows {
                let row = Row::Batch(&batch, row);
                let key = eval::eval_all(groups, row, run)?;
                self.add_to_sets(sets, aggs, (&key, row), &shared, run)?;
            }
        }
        self.merge_all(plan, others, run)?;
        if !*plain {
            note_most(plan, MEMORY, self.held.div_ceil(1024) as u64, run);
            count(plan, BATCHES, 1, run);
        }
        if let Some(aside) = self.aside.take() {
            let level = self.level + 1;
            self.files.extend(aside.finish()?.into_iter().map(|f| (f, level)));
        }
        self.reader = None;
        self.loaded = true;
        Ok(())
    }

    /// Without GROUP BY there is a group even of no rows.
    fn begin(&mut self, plan: &Plan) {
        if let Node::Aggregate { aggs, plain: true, .. } = &plan.node {
            self.groups.insert(&[]);
            self.states.extend(start(aggs));
        }
    }

    /// Adds a batch, without grouping sets.
    fn add(&mut self, plan: &Plan, batch: Batch, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Aggregate { aggs, plain, .. } = &plan.node else { return Err(wrong_node()) };
        let by_column = accumulate::by_column(aggs);
        match plain {
            true => self.add_whole(aggs, by_column, &batch, run),
            false => self.add_groups(plan, by_column, batch, run),
        }
    }

    /// Forgets the groups and begins with the next file of rows that were put aside; false when
    /// there is none.
    fn next_file(&mut self, input: &Plan, run: &mut Run<'_, '_>) -> Result<bool> {
        let Some((file, level)) = self.files.pop() else { return Ok(false) };
        self.groups = RowSet::default();
        self.keyed = None;
        self.states.clear();
        (self.held, self.level, self.next, self.loaded) = (0, level, 0, false);
        self.reader = Some(Reader::new(file, &types(input, run.prepared))?);
        Ok(true)
    }

    /// Adds a batch to the only group.
    fn add_whole(
        &mut self,
        aggs: &[AggCall],
        by_column: bool,
        batch: &Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        if by_column {
            let pairs = self.states.iter_mut().zip(aggs);
            for (state, call) in pairs {
                accumulate::add_whole(state, call, batch, run)?;
            }
            return Ok(());
        }
        (0..batch.rows).try_for_each(|row| self.add_row(0, aggs, Row::Batch(batch, row), run))
    }

    /// Adds a batch to the groups of its rows; puts rows aside whose groups find no room.
    fn add_groups(
        &mut self,
        plan: &Plan,
        by_column: bool,
        mut batch: Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let Node::Aggregate { aggs, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let mut numbers = self.numbers(plan, &batch, run)?;
        if numbers.contains(&NOWHERE) {
            let kept = |row: &u32| numbers[*row as usize] != NOWHERE;
            let kept: Vec<u32> = (0..batch.rows as u32).filter(kept).collect();
            batch = rows::take(&batch, &kept);
            numbers.retain(|n| *n != NOWHERE);
        }
        if !by_column {
            for (row, number) in numbers.into_iter().enumerate() {
                self.add_row(number as usize, aggs, Row::Batch(&batch, row), run)?;
            }
            return Ok(());
        }
        for (n, call) in aggs.iter().enumerate() {
            let width = (aggs.len(), n);
            accumulate::add_batch(&mut self.states, width, &numbers, call, &batch, run)?;
        }
        Ok(())
    }

    /// The number of each row's group, or [`NOWHERE`] when the row was put aside.
    fn numbers(&mut self, plan: &Plan, batch: &Batch, run: &mut Run<'_, '_>) -> Result<Vec<u32>> {
        let Node::Aggregate { input, groups, aggs, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let key = vector::columns(groups, batch, run)?;
        let hashes = hash_columns(&key, batch.rows);
        let keyed = self.keyed.get_or_insert_with(|| Groups::new(groups.iter().map(|g| g.ty())));
        let limit = partition::limit(run);
        let mut numbers = Vec::with_capacity(batch.rows);
        for (row, hash) in hashes.into_iter().enumerate() {
            if let Some(number) = keyed.find(hash, &key, row) {
                numbers.push(number);
                continue;
            }
            if self.held > limit {
                let types = types(input, run.prepared);
                let aside = match &mut self.aside {
                    Some(aside) => aside,
                    None => self.aside.insert(Partitions::new(&types, self.level, run)),
                };
                aside.add(hash, &rows::get(batch, row, &types))?;
                numbers.push(NOWHERE);
                continue;
            }
            numbers.push(keyed.add(hash, &key, row)?);
            self.states.extend(start(aggs));
            let width = |column: &Cow<'_, Column>| rows::value_bytes(column, row);
            let states = aggs.len() * size_of::<AggState>();
            self.held += key.iter().map(width).sum::<usize>() + PLACE_BYTES + states;
        }
        Ok(numbers)
    }

    /// Groups that have not been returned yet.
    fn next_keyed(
        &mut self,
        aggs: &[AggCall],
        out: &mut Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let Some(keyed) = &self.keyed else { return Ok(()) };
        let end = keyed.len().min(self.next + BATCH_ROWS);
        let chosen: Vec<u32> = (self.next as u32..end as u32).collect();
        for (to, from) in out.columns.iter_mut().zip(&keyed.columns) {
            *to = from.take(&chosen);
        }
        let values = &mut out.columns[keyed.columns.len()..];
        for number in self.next..end {
            for (n, call) in aggs.iter().enumerate() {
                values[n].push(self.states[number * aggs.len() + n].finish(call, run)?)?;
            }
        }
        (self.next, out.rows) = (end, chosen.len());
        Ok(())
    }

    /// The number of the group with this key.
    fn group(&mut self, key: &[Datum], aggs: &[AggCall]) -> usize {
        let (number, new) = self.groups.insert(key);
        if new {
            self.states.extend(start(aggs));
            self.held += key.iter().map(rows::width).sum::<usize>() + 48 + aggs.len() * 64;
        }
        number
    }

    fn add_row(
        &mut self,
        group: usize,
        aggs: &[AggCall],
        row: Row<'_>,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let states = &mut self.states[group * aggs.len()..][..aggs.len()];
        for (state, call) in states.iter_mut().zip(aggs) {
            state.add(call, row, run)?;
        }
        Ok(())
    }

    /// Adds a row with its groups' values to its group in each set.
    fn add_to_sets(
        &mut self,
        sets: &Sets,
        aggs: &[AggCall],
        (key, row): (&[Datum], Row<'_>),
        shared: &[Option<SharedInputs>],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let keys = sets.sets.iter().enumerate().map(|(n, set)| set_key(n, set, key));
        let groups: Vec<usize> = keys.map(|key| self.group(&key, aggs)).collect();
        for (n, (call, shared)) in aggs.iter().zip(shared).enumerate() {
            let inputs = match shared {
                Some(shared) => shared.values(row, run)?.map(|values| (&shared.call, values)),
                None => Some((call, Vec::new())),
            };
            let Some((call, values)) = inputs else { continue };
            let row = if shared.is_some() { Row::Values(&values) } else { row };
            for group in &groups {
                self.states[group * aggs.len() + n].add(call, row, run)?;
            }
        }
        Ok(())
    }

    /// Sorted input: groups end as soon as another begins.
    fn next_sorted(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Aggregate { input, groups, aggs, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let mut out = rows::empty(&types(plan, run.prepared));
        while !self.loaded && out.rows == 0 {
            let Some(batch) = self.input.next(input, run)? else {
                self.loaded = true;
                break;
            };
            sched::check_interrupts_now()?;
            for row in 0..batch.rows {
                let row = Row::Batch(&batch, row);
                let key = eval::eval_all(groups, row, run)?;
                if self.current.as_ref().is_none_or(|(k, _)| !same(k, &key)) {
                    let fresh = (key, start(aggs).collect());
                    if let Some(done) = self.current.replace(fresh) {
                        push_group(&mut out, done, aggs, run)?;
                    }
                }
                if let Some((_, states)) = &mut self.current {
                    for (state, call) in states.iter_mut().zip(aggs) {
                        state.add(call, row, run)?;
                    }
                }
            }
        }
        if self.loaded
            && let Some(done) = self.current.take()
        {
            push_group(&mut out, done, aggs, run)?;
        }
        Ok((out.rows > 0).then_some(out))
    }
}

/// A group's key among several sets: the set's number, and NULL for what doesn't count in it.
fn set_key(number: usize, set: &[usize], key: &[Datum]) -> Vec<Datum> {
    let mut out = Vec::with_capacity(key.len() + 1);
    out.push(Datum::Int4(number as i32));
    out.extend(
        key.iter().enumerate().map(
            |(n, value)| {
                if set.contains(&n) { value.clone() } else { Datum::Null }
            },
        ),
    );
    out
}

/// The values of `grouping()` in a set: a bit for each argument that doesn't count in it.
fn masks(sets: &Sets, number: usize) -> impl Iterator<Item = Datum> + '_ {
    let set = &sets.sets[number];
    sets.masks.iter().map(move |args| {
        Datum::Int4(args.iter().fold(0, |mask, arg| mask << 1 | i32::from(!set.contains(arg))))
    })
}

fn push_group(
    out: &mut Batch,
    (key, mut states): (Vec<Datum>, Vec<AggState>),
    aggs: &[AggCall],
    run: &mut Run<'_, '_>,
) -> Result<()> {
    let mut values = key;
    for (state, call) in states.iter_mut().zip(aggs) {
        values.push(state.finish(call, run)?);
    }
    rows::push(out, values)?;
    Ok(())
}

impl Operator for Aggregate {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Aggregate { aggs, plain, sorted, sets, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if *sorted && !*plain {
            return self.next_sorted(plan, run);
        }
        let Node::Aggregate { input, .. } = &plan.node else { return Err(wrong_node()) };
        loop {
            if !self.loaded {
                self.load(plan, run)?;
            }
            if let Some(batch) = self.finished.pop_front() {
                return Ok(Some(batch));
            }
            if self.next_parts(plan, run)? {
                continue;
            }
            let known = self.groups.len() + self.keyed.as_ref().map_or(0, Groups::len);
            if self.next < known || !self.next_file(input, run)? {
                break;
            }
        }
        let mut out = rows::empty(&types(plan, run.prepared));
        if sets.is_none() && !*plain {
            self.next_keyed(aggs, &mut out, run)?;
            return Ok((out.rows > 0).then_some(out));
        }
        let end = self.groups.len().min(self.next + BATCH_ROWS);
        for number in self.next..end {
            let mut values = self.groups.row(number).to_vec();
            let set = sets.as_ref().map(|sets| (sets, values.remove(0)));
            for (n, call) in aggs.iter().enumerate() {
                values.push(self.states[number * aggs.len() + n].finish(call, run)?);
            }
            if let Some((sets, Datum::Int4(set))) = set {
                values.extend(masks(sets, set as usize));
            }
            rows::push(&mut out, values)?;
        }
        self.next = end;
        Ok((out.rows > 0).then_some(out))
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Aggregate { input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.groups = RowSet::default();
        self.keyed = None;
        self.states.clear();
        self.current = None;
        self.loaded = false;
        self.next = 0;
        (self.held, self.level) = (0, 0);
        (self.aside, self.reader) = (None, None);
        self.finished.clear();
        self.rest.clear();
        self.files.clear();
        self.input.rescan(input, run)
    }
}

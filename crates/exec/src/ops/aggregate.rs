//! Groups and aggregates: output is group values, then aggregates.
//!
//! Groups that outgrow their memory stay, but get no company: rows of further groups are put aside in
//! files by the hash of their key ([`super::partition`]), and each file is grouped by itself later.

use base::Result;
use sched::memory::Use;
use sql::plan::{Node, Sets};
use sql::{AggCall, Plan};
use types::batch::{BATCH_ROWS, Vector};
use types::{Batch, Datum};

use super::accumulate::AggState;
use super::grouping::{RowSet, hash, same};
use super::partition::{self, Partitions, Reader};
use super::spill::Run as File;
use super::{Operator, wrong_node};
use crate::eval;
use crate::rows::{self, Row};
use crate::run::Run;

/// See the module's documentation.
pub struct Aggregate {
    input: Box<dyn Operator>,
    /// Groups in the order of their coming.
    groups: RowSet,
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
}

/// `count(*)`, and `count`, over whole batches without looking at rows.
fn add_whole(
    states: &mut [AggState],
    aggs: &[AggCall],
    batch: &Batch,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    for (state, call) in states.iter_mut().zip(aggs) {
        if let AggState::Count(n) = state
            && call.filter.is_none()
        {
            match &call.args[..] {
                [] => {
                    *n += batch.rows as i64;
                    continue;
                }
                [sql::Expr::Column(c, _)] => {
                    let column = &batch.columns[usize::from(*c)];
                    let nulls = column.nulls.iter().filter(|null| **null).count();
                    *n += (batch.rows - nulls) as i64;
                    continue;
                }
                _ => {}
            }
        }
        if add_integers(state, call, batch)? {
            continue;
        }
        for row in 0..batch.rows {
            state.add(call, Row::Batch(batch, row), run)?;
        }
    }
    Ok(())
}

/// A whole column of integers at once; false when that isn't the case at hand.
fn add_integers(state: &mut AggState, call: &AggCall, batch: &Batch) -> Result<bool> {
    if !matches!(state, AggState::Sum(_) | AggState::Extreme { .. }) || call.filter.is_some() {
        return Ok(false);
    }
    let [sql::Expr::Column(c, _)] = &call.args[..] else {
        return Ok(false);
    };
    let column = &batch.columns[usize::from(*c)];
    fn each<T: Copy + Into<i64>>(state: &mut AggState, values: &[T], nulls: &[bool]) -> Result<()> {
        for (n, value) in values.iter().enumerate() {
            if nulls.is_empty() || !nulls[n] {
                state.add_integer((*value).into())?;
            }
        }
        Ok(())
    }
    match &column.data {
        Vector::Int2(v) => each(state, v, &column.nulls)?,
        Vector::Int4(v) => each(state, v, &column.nulls)?,
        Vector::Int8(v) => each(state, v, &column.nulls)?,
        _ => return Ok(false),
    }
    Ok(true)
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
            states: vec![],
            current: None,
            loaded: false,
            next: 0,
            held: 0,
            aside: None,
            files: vec![],
            level: 0,
            reader: None,
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
        if *plain {
            self.groups.insert(&[]);
            self.states.extend(start(aggs));
        }
        let mut key = Vec::with_capacity(groups.len());
        let limit = partition::limit(run);
        let types = super::types(input, run.prepared);
        loop {
            sched::check_interrupts()?;
            let batch = match &mut self.reader {
                Some(reader) => reader.next()?,
                None => self.input.next(input, run)?,
            };
            let Some(batch) = batch else { break };
            if *plain {
                add_whole(&mut self.states, aggs, &batch, run)?;
                continue;
            }
            for row in 0..batch.rows {
                let at = row;
                let row = Row::Batch(&batch, row);
                key.clear();
                for group in groups {
                    key.push(eval::eval(group, row, run)?);
                }
                let Some(sets) = sets else {
                    if self.held > limit && self.groups.find(&key).is_none() {
                        let aside = match &mut self.aside {
                            Some(aside) => aside,
                            None => self.aside.insert(Partitions::new(&types, self.level, run)?),
                        };
                        aside.add(hash(&key), &rows::get(&batch, at, &types))?;
                        continue;
                    }
                    let number = self.group(&key, aggs);
                    self.add_row(number, aggs, row, run)?;
                    continue;
                };
                for (n, set) in sets.sets.iter().enumerate() {
                    let number = self.group(&set_key(n, set, &key), aggs);
                    self.add_row(number, aggs, row, run)?;
                }
            }
        }
        if let Some(aside) = self.aside.take() {
            let level = self.level + 1;
            self.files.extend(aside.finish()?.into_iter().map(|f| (f, level)));
        }
        self.reader = None;
        self.loaded = true;
        Ok(())
    }

    /// Forgets the groups and begins with the next file of rows that were put aside; false when
    /// there is none.
    fn next_file(&mut self, input: &Plan, run: &mut Run<'_, '_>) -> Result<bool> {
        let Some((file, level)) = self.files.pop() else { return Ok(false) };
        self.groups = RowSet::default();
        self.states.clear();
        (self.held, self.level, self.next, self.loaded) = (0, level, 0, false);
        self.reader = Some(Reader::new(file, &super::types(input, run.prepared))?);
        Ok(true)
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

    /// Sorted input: groups end as soon as another begins.
    fn next_sorted(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Aggregate { input, groups, aggs, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let mut out = rows::empty(&super::types(plan, run.prepared));
        while !self.loaded && out.rows == 0 {
            let Some(batch) = self.input.next(input, run)? else {
                self.loaded = true;
                break;
            };
            sched::check_interrupts()?;
            for row in 0..batch.rows {
                let row = Row::Batch(&batch, row);
                let key = eval::eval_all(groups, row, run)?;
                if self.current.as_ref().is_none_or(|(k, _)| !same(k, &key)) {
                    let fresh = (key, start(aggs).collect());
                    if let Some(done) = self.current.replace(fresh) {
                        push_group(&mut out, done, aggs)?;
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
            push_group(&mut out, done, aggs)?;
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
) -> Result<()> {
    let mut values = key;
    for (state, call) in states.iter_mut().zip(aggs) {
        values.push(state.finish(call)?);
    }
    rows::push(out, values);
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
            if self.next < self.groups.len() || !self.next_file(input, run)? {
                break;
            }
        }
        let mut out = rows::empty(&super::types(plan, run.prepared));
        let end = self.groups.len().min(self.next + BATCH_ROWS);
        for number in self.next..end {
            let mut values = self.groups.row(number).to_vec();
            let set = sets.as_ref().map(|sets| (sets, values.remove(0)));
            for (n, call) in aggs.iter().enumerate() {
                values.push(self.states[number * aggs.len() + n].finish(call)?);
            }
            if let Some((sets, Datum::Int4(set))) = set {
                values.extend(masks(sets, set as usize));
            }
            rows::push(&mut out, values);
        }
        self.next = end;
        Ok((out.rows > 0).then_some(out))
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Aggregate { input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.groups = RowSet::default();
        self.states.clear();
        self.current = None;
        self.loaded = false;
        self.next = 0;
        (self.held, self.level) = (0, 0);
        (self.aside, self.reader) = (None, None);
        self.files.clear();
        self.input.rescan(input, run)
    }
}

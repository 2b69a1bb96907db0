//! Memoize: keeps what the right side of a nested loop gave for the values of the slots that it uses, so
//! that it isn't run again for values that come again.
//!
//! All rows lie in one batch, one run's behind the other's; a table says where the rows for which values are.
//! ```text
//! values → (first row, count)        store: | rows of run 1 | rows of run 2 | rows of a run that broke off | …
//! ```
//! When twice `work_mem` is used up, all of it is dropped and the cache begins anew; what
//! would not fit an empty cache is passed through. A run that its consumer broke off leaves no entry.

use base::{Oid, Result};
use sched::memory::Use;
use sql::Plan;
use sql::plan::Node;
use types::{Batch, Datum};

use super::grouping::RowSet;
use super::partition;
use crate::ops::measure::{count, note_most};
use crate::ops::operator::{Operator, wrong_node};
use crate::rows;
use crate::run::Run;

/// EXPLAIN's names for what a cache counts: runs that it spared, runs of the input, entries that were dropped,
/// runs that did not fit, kilobytes.
pub const COUNTS: [&str; 5] =
    ["Cache Hits", "Cache Misses", "Cache Evictions", "Cache Overflows", "Peak Memory Usage"];

/// See the module's documentation.
pub struct Memoize {
    input: Box<dyn Operator>,
    /// The input has run at least once.
    ran: bool,
    types: Vec<Oid>,
    store: Batch,
    /// Bytes of it and of the values, about.
    held: usize,
    known: RowSet,
    /// By the number of the values: the first row, and how many.
    places: Vec<(usize, usize)>,
    /// Values of the run under way.
    key: Vec<Datum>,
    state: State,
}

/// How far a run is.
#[derive(Clone, Copy)]
enum State {
    /// It hasn't begun.
    New,
    /// Rows that are kept, from here to there.
    Kept(usize, usize),
    /// The input runs, and its rows are kept from this one on.
    Filling(usize),
    /// The input runs, and its rows are passed on.
    Passing,
    /// At its end.
    Done,
}

impl Memoize {
    /// Over an input with columns of these types.
    pub fn new(input: Box<dyn Operator>, types: Vec<Oid>) -> Memoize {
        Memoize {
            input,
            ran: false,
            store: rows::empty(&types),
            types,
            held: 0,
            known: RowSet::default(),
            places: Vec::new(),
            key: Vec::new(),
            state: State::New,
        }
    }

    /// Looks whether the rows for the slots' values are there; begins the input if not.
    fn begin(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<State> {
        let Node::Memoize { input, keys, .. } = &plan.node else { return Err(wrong_node()) };
        self.key.clear();
        for (slot, _) in keys {
            self.key.push(run.state.slots[usize::from(*slot)].clone());
        }
        if let Some(n) = self.known.find(&self.key) {
            count(plan, COUNTS[0], 1, run);
            let (first, rows) = self.places[n];
            return Ok(State::Kept(first, first + rows));
        }
        count(plan, COUNTS[1], 1, run);
        if std::mem::replace(&mut self.ran, true) {
            self.input.rescan(input, run)?;
        }
        Ok(State::Filling(self.store.rows))
    }

    /// Forgets all entries; the rows of the run under way, from `begin` on, become the first.
    fn forget(&mut self, plan: &Plan, begin: usize, run: &mut Run<'_, '_>) -> usize {
        count(plan, COUNTS[2], self.places.len() as u64, run);
        self.store = rows::slice(&self.store, begin, self.store.rows - begin);
        self.known = RowSet::default();
        self.places.clear();
        self.held = rows::batch_bytes(&self.store);
        0
    }

    /// Reads on in the input, keeps the rows and passes them on. True at its end.
    fn fill(
        &mut self,
        plan: &Plan,
        mut begin: usize,
        (one, most): (bool, usize),
        out: &mut Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let Node::Memoize { input, .. } = &plan.node else { return Err(wrong_node()) };
        let _memory = sched::memory::for_use(Use::Hash);
        let before = self.store.rows;
        let room = most.saturating_sub(out.rows).max(1);
        let done = self.input.drain(input, (one, before + room), &mut self.store, run)?;
        let new: Vec<u32> = (before as u32..self.store.rows as u32).collect();
        rows::append_some(out, &self.store, &new)?;
        for column in &self.store.columns {
            let bytes = new.iter().map(|row| rows::value_bytes(column, *row as usize));
            self.held += bytes.sum::<usize>();
        }
        let limit = partition::limit(run);
        if self.held > limit && !self.places.is_empty() {
            begin = self.forget(plan, begin, run);
        }
        if self.held > limit {
            count(plan, COUNTS[3], 1, run);
            self.store = rows::empty(&self.types);
            self.held = 0;
            self.state = if done { State::Done } else { State::Passing };
            return Ok(done);
        }
        note_most(plan, COUNTS[4], (self.held as u64).div_ceil(1024), run);
        self.state = State::Filling(begin);
        if done {
            /// Bytes of an entry beside its rows and values, about.
            const ENTRY: usize = 64;
            self.held += ENTRY + self.key.iter().map(rows::width).sum::<usize>();
            self.known.insert(&self.key);
            self.places.push((begin, self.store.rows - begin));
            self.state = State::Done;
        }
        Ok(done)
    }
}

impl Operator for Memoize {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        if matches!(self.state, State::Done) {
            return Ok(None);
        }
        let mut out = rows::empty(&self.types);
        self.drain(plan, (false, types::batch::BATCH_ROWS), &mut out, run)?;
        Ok(Some(out))
    }

    fn drain(
        &mut self,
        plan: &Plan,
        (one, most): (bool, usize),
        out: &mut Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let Node::Memoize { input, .. } = &plan.node else { return Err(wrong_node()) };
        if matches!(self.state, State::New) {
            self.state = self.begin(plan, run)?;
        }
        match self.state {
            State::Kept(at, end) => {
                let room = most.saturating_sub(out.rows).max(1);
                let next = end.min(at + room);
                let wanted: Vec<u32> = (at as u32..next as u32).collect();
                rows::append_some(out, &self.store, &wanted)?;
                self.state = if next == end { State::Done } else { State::Kept(next, end) };
                Ok(next == end)
            }
            State::Filling(begin) => self.fill(plan, begin, (one, most), out, run),
            State::Passing => {
                let done = self.input.drain(input, (one, most), out, run)?;
                if done {
                    self.state = State::Done;
                }
                Ok(done)
            }
            State::New | State::Done => Ok(true),
        }
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        self.state = State::New;
        Ok(())
    }
}

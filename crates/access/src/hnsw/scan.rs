//! Rows in the order of their distances: some of the nearest at a time.

use std::cmp::Reverse;
use std::collections::HashSet;

use base::{Result, TupleId};
use txn::Transaction;

use super::graph::{At, Discarded, search_layer};
use super::{HnswIndex, View};
use crate::cells::Place;
use crate::found::{Found, Near};
use crate::vector::{ByDistance, Iterative, PlaceHash, VectorSearch};

/// A scan by distance. The search of layer 0 finds so many elements; when they are given and the search is iterative,
/// it goes on from the nearest of those that it has met and left aside.
pub struct HnswScan {
    index: HnswIndex,
    search: VectorSearch,
    begun: bool,
    m: usize,
    visited: HashSet<Place, PlaceHash>,
    discarded: Discarded<Place>,
    /// Elements that are to be given, the nearest last.
    found: Vec<At<Place>>,
    /// Rows of the last element, with its distance.
    rows: Vec<TupleId>,
    distance: f32,
    /// Rows that were given: a row may be met twice.
    given: HashSet<TupleId>,
}

impl HnswIndex {
    /// Rows by distance, the nearest first.
    pub fn nearest(&self, search: VectorSearch) -> HnswScan {
        HnswScan {
            index: self.clone(),
            search,
            begun: false,
            m: 0,
            visited: HashSet::default(),
            discarded: Discarded::new(),
            found: Vec::new(),
            rows: Vec::new(),
            distance: f32::NEG_INFINITY,
            given: HashSet::new(),
        }
    }
}

impl HnswScan {
    /// The first elements.
    fn begin(&mut self) -> Result<()> {
        let meta = self.index.meta()?;
        self.m = meta.m;
        if meta.entry == Place::NOWHERE {
            return Ok(());
        }
        let mut view = View::new(&self.index, &self.search, self.m)?;
        let ops = view.ops;
        let check =
            |e: super::Element<'_>, _: crate::cells::Cells<'_>| self.search.check(ops, e.vector());
        self.index.element(meta.entry, check)?.transpose()?;
        let entries = self.index.descend(&mut view, &meta, 0)?;
        view.begin(&entries);
        let kept = (self.search.iterative != Iterative::Off).then_some(&mut self.discarded);
        self.found = search_layer(&mut view, &entries, self.search.breadth, 0, kept)?;
        self.visited = view.visited;
        self.found.reverse();
        Ok(())
    }

    /// Further elements; false: there are none.
    fn go_on(&mut self) -> Result<bool> {
        if self.search.iterative == Iterative::Off || self.discarded.is_empty() {
            return Ok(false);
        }
        if self.visited.len() as u64 >= self.search.most {
            // No more are looked for: what is left comes as it is.
            self.found.extend(self.discarded.pop().map(|Reverse(at)| at));
            return Ok(true);
        }
        let mut entries = Vec::with_capacity(self.search.breadth);
        while entries.len() < self.search.breadth
            && let Some(Reverse(at)) = self.discarded.pop()
        {
            entries.push(at);
        }
        let mut view = View::new(&self.index, &self.search, self.m)?;
        view.visited = std::mem::take(&mut self.visited);
        let breadth = self.search.breadth;
        let found = search_layer(&mut view, &entries, breadth, 0, Some(&mut self.discarded));
        self.visited = view.visited;
        self.found = found?;
        self.found.reverse();
        Ok(true)
    }
}

impl ByDistance for HnswScan {
    fn next(&mut self, tx: &Transaction) -> Result<Option<Near>> {
        if !std::mem::replace(&mut self.begun, true) {
            tx.reads_relation(self.index.rel);
            self.begin()?;
        }
        loop {
            while let Some(root) = self.rows.pop() {
                if self.given.insert(root) {
                    return Ok(Some(Near {
                        found: Found { root, recheck: false },
                        distances: smallvec::smallvec![Some(f64::from(self.distance))],
                        recheck_distance: false,
                        key: Vec::new(),
                    }));
                }
            }
            sched::check_interrupts()?;
            let Some(at) = self.found.pop() else {
                if self.go_on()? {
                    continue;
                }
                return Ok(None);
            };
            if self.search.iterative == Iterative::Strict && at.distance < self.distance {
                continue;
            }
            self.distance = at.distance;
            let rows = self.index.element(at.id, |element, _| element.rows().collect())?;
            self.rows = rows.unwrap_or_default();
        }
    }
}

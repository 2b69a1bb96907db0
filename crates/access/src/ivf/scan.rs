//! Rows in the order of their distances, list after list.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use base::{Result, TupleId};
use txn::Transaction;

use super::IvfIndex;
use crate::found::{Found, Near};
use crate::vector::{ByDistance, Iterative, VectorSearch};

/// A row by its distance.
struct Row(f32, TupleId);

impl Ord for Row {
    fn cmp(&self, other: &Row) -> Ordering {
        self.0.total_cmp(&other.0).then_with(|| self.1.cmp(&other.1))
    }
}

impl PartialOrd for Row {
    fn partial_cmp(&self, other: &Row) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Row) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Row {}

/// A scan by distance. It reads the rows of some lists at a time, those with the nearest centres first.
pub struct IvfScan {
    index: IvfIndex,
    search: VectorSearch,
    begun: bool,
    /// First pages of the lists that were not read, the nearest last.
    lists: Vec<u32>,
    /// How many were.
    read: u64,
    rows: BinaryHeap<Reverse<Row>>,
}

impl IvfIndex {
    /// Rows by distance, the nearest first.
    pub fn nearest(&self, search: VectorSearch) -> IvfScan {
        let index = self.clone();
        IvfScan { index, search, begun: false, lists: Vec::new(), read: 0, rows: BinaryHeap::new() }
    }
}

impl IvfScan {
    fn begin(&mut self) -> Result<()> {
        let (search, ops) = (&self.search, self.index.ops()?);
        let mut lists: Vec<(f32, u32)> = Vec::new();
        self.index.each_list(&mut |_, first, _, centre| {
            if lists.is_empty() {
                search.check(ops, centre)?;
            }
            lists.push((search.distance(ops, centre), first));
            Ok(())
        })?;
        lists.sort_by(|a, b| b.0.total_cmp(&a.0));
        self.lists = lists.into_iter().map(|(_, first)| first).collect();
        Ok(())
    }

    /// Reads further lists; false: there are none.
    fn read_some(&mut self) -> Result<bool> {
        let again = self.search.iterative != Iterative::Off && self.read < self.search.most;
        if self.read > 0 && !again {
            return Ok(false);
        }
        let ops = self.index.ops()?;
        let mut some = false;
        let mut rows = Vec::new();
        for _ in 0..self.search.breadth.max(1) {
            let Some(first) = self.lists.pop() else { break };
            some = true;
            self.read += 1;
            self.index.each_row(first, &mut |row, vector| {
                rows.push(Reverse(Row(self.search.distance(ops, vector), row)));
            })?;
        }
        self.rows.extend(rows);
        Ok(some)
    }
}

impl ByDistance for IvfScan {
    fn next(&mut self, tx: &Transaction) -> Result<Option<Near>> {
        if !std::mem::replace(&mut self.begun, true) {
            tx.reads_relation(self.index.rel);
            self.begin()?;
        }
        loop {
            if let Some(Reverse(Row(distance, root))) = self.rows.pop() {
                return Ok(Some(Near {
                    found: Found { root, recheck: false },
                    distances: smallvec::smallvec![Some(f64::from(distance))],
                    recheck_distance: false,
                    key: Vec::new(),
                }));
            }
            if !self.read_some()? {
                return Ok(None);
            }
        }
    }
}

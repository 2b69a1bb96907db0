//! Counts and times by plan node, for EXPLAIN ANALYZE and traces.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use base::usage::Usage;
use sched::observe::{self, Metered};
use sql::Plan;

use crate::run::Run;

/// Measurements of a node for EXPLAIN ANALYZE.
#[derive(Clone, Debug, Default)]
pub struct Measure {
    /// Address of the plan node.
    pub node: usize,
    /// Times that it began.
    pub loops: u64,
    /// Rows in all.
    pub rows: u64,
    /// Seconds until the first row, in all.
    pub startup: f64,
    /// Seconds, in all.
    pub total: f64,
    /// Waits of the node and those below it, if they are wanted.
    pub waits: Vec<Metered>,
    /// Resources used by the node and those below it, if they are wanted.
    pub used: Usage,
    /// Counts of the node itself, under EXPLAIN's names.
    pub counts: Vec<(&'static str, u64)>,
    /// The helpers' parts of it.
    pub workers: Vec<OfWorker>,
}

/// A helper's part of a node's work.
#[derive(Clone, Copy, Debug)]
pub struct OfWorker {
    /// The helper's number, from 0.
    pub number: usize,
    /// See [`Measure`].
    pub loops: u64,
    /// See [`Measure`].
    pub rows: u64,
    /// See [`Measure`].
    pub startup: f64,
    /// See [`Measure`].
    pub total: f64,
}

/// A partition's own scan that was measured: its nodes stand for those of the scan of the whole.
pub struct MeasuredPart {
    /// Address of the scan of the partitioned table.
    pub scan: usize,
    /// The partition.
    pub table: u32,
    /// Addresses of its nodes, from the top.
    pub nodes: Vec<usize>,
    /// Keeps the nodes where they are.
    _plan: Arc<dyn Any + Send + Sync>,
}

impl MeasuredPart {
    /// The `plan` of a partition, which `kept` holds.
    pub fn new(
        scan: &sql::plan::PartitionScan,
        table: u32,
        plan: &Plan,
        kept: Arc<dyn Any + Send + Sync>,
    ) -> MeasuredPart {
        MeasuredPart::at(std::ptr::from_ref(scan) as usize, table, plan, kept)
    }

    /// The same of what has this address.
    pub fn at(
        scan: usize,
        table: u32,
        plan: &Plan,
        kept: Arc<dyn Any + Send + Sync>,
    ) -> MeasuredPart {
        let mut nodes = Vec::new();
        plan.walk(&mut |plan| nodes.push(std::ptr::from_ref(plan) as usize));
        MeasuredPart { scan, table, nodes, _plan: kept }
    }
}

impl Measure {
    /// Adds what was measured of another scan in the same place.
    pub fn absorb(&mut self, other: &Measure) {
        self.loops += other.loops;
        self.rows += other.rows;
        self.startup += other.startup;
        self.total += other.total;
        self.used.add(&other.used);
        observe::add_metered(&mut self.waits, &other.waits);
        for (name, amount) in &other.counts {
            match self.counts.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += amount,
                None => self.counts.push((name, *amount)),
            }
        }
        self.workers.extend_from_slice(&other.workers);
    }

    /// Adds what a helper measured of the same node.
    pub fn add(&mut self, number: usize, other: Measure) {
        let Measure { loops, rows, startup, total, .. } = other;
        self.workers.push(OfWorker { number, loops, rows, startup, total });
        self.loops += other.loops;
        self.rows += other.rows;
        self.startup += other.startup;
        self.total += other.total;
        self.used.add(&other.used);
        observe::add_metered(&mut self.waits, &other.waits);
        for (name, amount) in other.counts {
            match self.counts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += amount,
                None => self.counts.push((name, amount)),
            }
        }
    }
}

/// EXPLAIN's name for rows that a filter kept out.
pub const REMOVED_BY_FILTER: &str = "Rows Removed by Filter";

/// EXPLAIN's name for pairs of rows that a join's condition kept out.
pub const REMOVED_BY_JOIN: &str = "Rows Removed by Join Filter";

/// Adds to what a node counts of its own, if it is measured.
#[inline]
pub fn count(plan: &Plan, name: &'static str, amount: u64, run: &mut Run<'_, '_>) {
    let Some(measures) = run.state.measure.as_mut() else { return };
    let node = std::ptr::from_ref(plan) as usize;
    let Some(measure) = measures.iter_mut().rev().find(|m| m.node == node) else { return };
    match measure.counts.iter_mut().find(|(known, _)| *known == name) {
        Some((_, sum)) => *sum += amount,
        None => measure.counts.push((name, amount)),
    }
}

/// Keeps the most of what a node tells of its own under a name, if it is measured.
pub fn note_most(plan: &Plan, name: &'static str, amount: u64, run: &mut Run<'_, '_>) {
    let Some(measures) = run.state.measure.as_mut() else { return };
    let node = std::ptr::from_ref(plan) as usize;
    let Some(measure) = measures.iter_mut().rev().find(|m| m.node == node) else { return };
    match measure.counts.iter_mut().find(|(known, _)| *known == name) {
        Some((_, most)) => *most = amount.max(*most),
        None => measure.counts.push((name, amount)),
    }
}

/// Measures a node that has no operator.
pub struct Measuring(Option<Instant>);

impl Measuring {
    /// Begins, once more perhaps.
    pub fn begin(plan: &Plan, run: &mut Run<'_, '_>) -> Measuring {
        let Some(measures) = run.state.measure.as_mut() else { return Measuring(None) };
        let node = std::ptr::from_ref(plan) as usize;
        match measures.iter_mut().find(|m| m.node == node) {
            Some(measure) => measure.loops += 1,
            None => measures.push(Measure { node, loops: 1, ..Measure::default() }),
        }
        Measuring(Some(Instant::now()))
    }

    /// It is done and made so many rows.
    pub fn end(self, plan: &Plan, rows: u64, run: &mut Run<'_, '_>) {
        let node = std::ptr::from_ref(plan) as usize;
        let measures = run.state.measure.iter_mut().flatten();
        if let (Some(begin), Some(measure)) =
            (self.0, measures.into_iter().find(|m| m.node == node))
        {
            let seconds = begin.elapsed().as_secs_f64();
            measure.startup += seconds;
            measure.total += seconds;
            measure.rows += rows;
        }
    }
}

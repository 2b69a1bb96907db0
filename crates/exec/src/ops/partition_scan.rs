//! Reads a partitioned table: which partitions, is decided when it begins, by the values that are known then;
//! one after the other is opened when its turn comes.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use base::{Oid, Result};
use catalog::Table;
use sched::SpinLock;
use sql::Plan;
use sql::plan::Node;
use txn::LockMode;
use types::batch::BATCH_ROWS;
use types::{Batch, Datum};

use crate::ops::measure::MeasuredPart;
use crate::ops::operator::{Operator, build, build_for, not_prepared, types, wrong_node};
use crate::ops::team::Member;
use crate::rows::{self, Row};
use crate::run::Run;
use crate::{eval, partition};

/// Scans of partitions that are kept open for the next run.
const KEPT: usize = 32;

/// A partition's scan.
struct Part {
    table: u32,
    /// Its own plan: the operator is given it with every call.
    plan: Arc<Plan>,
    scan: Box<dyn Operator>,
}

/// See the module's documentation.
#[derive(Default)]
pub struct PartitionScan {
    /// The partitions to read; None before it has begun.
    parts: Option<Vec<Arc<Table>>>,
    current: usize,
    /// The scan that is being read.
    open: Option<Part>,
    /// Scans of earlier partitions and runs.
    kept: Vec<Part>,
    hasty: bool,
    /// The partitions are read side by side, in the order of their rows.
    merge: Option<Merge>,
    /// Several threads read pieces of the partitions.
    team: Option<Team>,
}

/// A thread's place among those that read the same partitions.
struct Team {
    member: Member,
    plans: Arc<Plans>,
    /// The scan that is being read.
    scan: Option<Box<dyn Operator>>,
}

/// The scans of all partitions; the leader opens them before there are helpers.
#[derive(Default)]
struct Plans(SpinLock<Option<Arc<Vec<Plan>>>>);

/// Partitions whose rows are merged.
struct Merge {
    heads: BinaryHeap<Head>,
    inputs: Vec<Input>,
    types: Vec<Oid>,
    /// How many rows are given up next.
    target: usize,
}

/// A partition with the rows that were read of it.
struct Input {
    part: Part,
    batch: Batch,
    at: usize,
}

/// The next row of an input.
struct Head {
    key: Vec<Datum>,
    /// DESC, NULLS FIRST of each value.
    how: Arc<[(bool, bool)]>,
    input: usize,
}

impl Ord for Head {
    /// The heap gives the greatest: the first row must be that.
    fn cmp(&self, other: &Head) -> Ordering {
        let pairs = self.key.iter().zip(&other.key).zip(&*self.how);
        for ((a, b), (descending, nulls_first)) in pairs {
            let order = match (a.is_null(), b.is_null()) {
                (true, true) => Ordering::Equal,
                (true, false) if *nulls_first => Ordering::Less,
                (true, false) => Ordering::Greater,
                (false, true) if *nulls_first => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) if *descending => types::io::compare(b, a),
                (false, false) => types::io::compare(a, b),
            };
            if order != Ordering::Equal {
                return order.reverse();
            }
        }
        other.input.cmp(&self.input)
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head {}

impl Merge {
    /// Puts the next row of an input among the others; none is left: nothing happens.
    fn advance(
        &mut self,
        plan: &sql::plan::PartitionScan,
        number: usize,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let input = &mut self.inputs[number];
        while input.at >= input.batch.rows {
            match input.part.scan.next(&input.part.plan, run)? {
                Some(batch) => (input.batch, input.at) = (batch, 0),
                None => return Ok(()),
            }
        }
        let row = rows::get(&input.batch, input.at, &self.types);
        let mut key = Vec::with_capacity(plan.order.len());
        for k in &plan.order {
            key.push(eval::eval(&k.expr, Row::Values(&row), run)?);
        }
        let how = match self.heads.peek() {
            Some(head) => head.how.clone(),
            None => plan.order.iter().map(|k| (k.descending, k.nulls_first)).collect(),
        };
        self.heads.push(Head { key, how, input: number });
        Ok(())
    }

    fn next(
        &mut self,
        plan: &sql::plan::PartitionScan,
        run: &mut Run<'_, '_>,
    ) -> Result<Option<Batch>> {
        let mut out = rows::empty(&self.types);
        while out.rows < self.target {
            let Some(head) = self.heads.pop() else { break };
            let input = &mut self.inputs[head.input];
            rows::push(&mut out, rows::get(&input.batch, input.at, &self.types))?;
            input.at += 1;
            self.advance(plan, head.input, run)?;
        }
        self.target = (self.target * 4).min(BATCH_ROWS);
        Ok((out.rows > 0).then_some(out))
    }
}

impl PartitionScan {
    /// Of a node, before the first row.
    pub fn new(plan: &Plan, run: &Run<'_, '_>) -> PartitionScan {
        let team = run.state.member.clone().map(|member| {
            let plans = member.shared(std::ptr::from_ref(plan) as usize);
            Team { member, plans, scan: None }
        });
        PartitionScan { team, ..PartitionScan::default() }
    }

    /// The next rows of this thread's pieces.
    fn next_shared(&mut self, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Some(Team { member, plans, scan }) = &mut self.team else { return Ok(None) };
        let plans = plans.0.lock().clone().ok_or_else(|| not_prepared("a partitioned table"))?;
        while let Some(plan) = plans.get(self.current) {
            sched::check_interrupts()?;
            // Another server's rows come to one thread: a foreign partition has no pieces.
            if !member.leads() && !matches!(plan.node, Node::SeqScan(_)) {
                self.current += 1;
                continue;
            }
            let open = match scan {
                Some(open) => open,
                None => scan.insert(build_for(member, plan, run)?),
            };
            if let Some(batch) = open.next(plan, run)? {
                return Ok(Some(batch));
            }
            if member.was_refused() {
                break;
            }
            *scan = None;
            self.current += 1;
        }
        Ok(None)
    }

    fn begin(&mut self, plan: &sql::plan::PartitionScan, run: &mut Run<'_, '_>) -> Result<()> {
        let view = view_of(run);
        let format = run.cx.format;
        let mut value = |e: &sql::Expr| eval::eval(e, Row::Empty, run).map(Some);
        let parts = sql::prune::leaves(&view, &plan.table, &plan.prune, format, &mut value)?;
        let is_default =
            |t: &Arc<Table>| matches!(t.bound.as_deref(), Some(catalog::PartitionBound::Default));
        let mut parts = parts;
        self.merge = None;
        if !plan.order.is_empty() && parts.len() > 1 {
            match plan.by_bounds.filter(|_| !parts.iter().any(is_default)) {
                Some(true) => parts.reverse(),
                Some(false) => {}
                None => self.begin_merge(plan, &parts, run)?,
            }
        }
        self.parts = Some(parts);
        self.current = 0;
        Ok(())
    }

    fn begin_merge(
        &mut self,
        plan: &sql::plan::PartitionScan,
        parts: &[Arc<Table>],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let types = types(&plan.scan, run.prepared);
        let mut merge = Merge { heads: BinaryHeap::new(), inputs: Vec::new(), types, target: 16 };
        for (number, table) in parts.iter().enumerate() {
            sched::check_interrupts()?;
            let part = self.open(plan, table.oid, run)?;
            merge.inputs.push(Input { part, batch: rows::empty(&merge.types), at: 0 });
            merge.advance(plan, number, run)?;
        }
        self.merge = Some(merge);
        Ok(())
    }

    fn open(
        &mut self,
        plan: &sql::plan::PartitionScan,
        id: u32,
        run: &mut Run<'_, '_>,
    ) -> Result<Part> {
        if let Some(at) = self.kept.iter().position(|part| part.table == id) {
            let mut part = self.kept.swap_remove(at);
            part.scan.rescan(&part.plan, run)?;
            return Ok(part);
        }
        let table = partition::open(run.cx, id, LockMode::AccessShare)?;
        let view = run.cx.catalog_tx.view();
        let own = Arc::new(partition::instantiate(plan, &table, &view)?);
        if run.state.measure.is_some() {
            run.state.parts.push(MeasuredPart::new(plan, id, &own, own.clone()));
        }
        let mut scan = build(&own, run)?;
        if self.hasty {
            scan.hasten();
        }
        Ok(Part { table: id, plan: own, scan })
    }

    fn keep(&mut self, part: Part) {
        if self.kept.len() < KEPT {
            self.kept.push(part);
        }
    }
}

impl Operator for PartitionScan {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::PartitionScan(plan) = &plan.node else { return Err(wrong_node()) };
        if self.team.is_some() {
            return self.next_shared(run);
        }
        if self.parts.is_none() {
            self.begin(plan, run)?;
        }
        if let Some(merge) = &mut self.merge {
            sched::check_interrupts()?;
            return merge.next(plan, run);
        }
        loop {
            sched::check_interrupts()?;
            if let Some(part) = &mut self.open {
                if let Some(batch) = part.scan.next(&part.plan, run)? {
                    return Ok(Some(batch));
                }
                self.current += 1;
                if let Some(part) = self.open.take() {
                    self.keep(part);
                }
            }
            let next = self.parts.as_ref().and_then(|parts| parts.get(self.current));
            let Some(id) = next.map(|table| table.oid) else { return Ok(None) };
            self.open = Some(self.open(plan, id, run)?);
        }
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        self.parts = None;
        if let Some(team) = &mut self.team {
            team.scan = None;
        }
        self.current = 0;
        for input in self.merge.take().into_iter().flat_map(|m| m.inputs) {
            self.keep(input.part);
        }
        if let Some(part) = self.open.take() {
            self.keep(part);
        }
        Ok(())
    }

    fn prepare(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::PartitionScan(plan) = &plan.node else { return Err(wrong_node()) };
        let Some(Team { plans, .. }) = &self.team else { return Ok(()) };
        let plans = plans.clone();
        self.begin(plan, run)?;
        let mut all = Vec::new();
        for part in self.parts.take().unwrap_or_default() {
            sched::check_interrupts()?;
            let table = partition::open(run.cx, part.oid, LockMode::AccessShare)?;
            let view = run.cx.catalog_tx.view();
            all.push(partition::instantiate(plan, &table, &view)?);
        }
        let all = Arc::new(all);
        if run.state.measure.is_some() {
            for own in all.iter() {
                let id = table_of(own);
                run.state.parts.push(MeasuredPart::new(plan, id, own, all.clone()));
            }
        }
        *plans.0.lock() = Some(all);
        Ok(())
    }

    fn hasten(&mut self) {
        self.hasty = true;
    }
}

/// The partitions that the statement's snapshot has: also those that are being detached, if it is old enough.
pub fn view_of(run: &mut Run<'_, '_>) -> Arc<catalog::Snapshot> {
    let view = run.cx.catalog_tx.view();
    if view.has_detaching()
        && let Some(csn) = run.cx.tx.lasting_snapshot()
    {
        return Arc::new(catalog::Snapshot::clone(&view).with_detaching(|since| since > csn.0));
    }
    view
}

/// The table that a partition's scan reads.
pub fn table_of(plan: &Plan) -> u32 {
    let mut found = 0;
    plan.walk(&mut |plan| {
        if let Node::SeqScan(scan)
        | Node::SampleScan { scan, .. }
        | Node::IndexScan { scan, .. }
        | Node::IndexOnlyScan { scan, .. }
        | Node::BitmapHeapScan { scan, .. } = &plan.node
        {
            found = scan.table.oid;
        }
        if let Node::ForeignScan(foreign) = &plan.node {
            found = foreign.scan.table.oid;
        }
    });
    found
}

/// The partitions that a scan would read, with their plans, for EXPLAIN: `value` says what is known.
///
/// # Errors
/// As [`partition::instantiate`].
pub fn expanded(
    plan: &sql::plan::PartitionScan,
    view: &catalog::Snapshot,
    format: &types::FormatContext,
    value: &mut dyn FnMut(&sql::Expr) -> Result<Option<Datum>>,
) -> Result<Vec<Plan>> {
    let parts = sql::prune::leaves(view, &plan.table, &plan.prune, format, value)?;
    parts.iter().map(|part| partition::instantiate(plan, part, view)).collect()
}

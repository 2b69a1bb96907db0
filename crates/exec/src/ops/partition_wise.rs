//! Runs a plan over partitioned tables partition by partition: first with the first partition of each table, then with the
//! second of each. Which are read is decided when it begins, as by [`super::partition_scan`]; where the conditions leave
//! out a table's partition, that table has no rows this time.

use std::sync::Arc;

use base::Result;
use catalog::{Snapshot, Table};
use sql::plan::{Node, PartitionScan};
use sql::{Expr, Plan};
use txn::LockMode;
use types::{Batch, Datum};

use super::partition_scan::table_of;
use crate::ops::measure::MeasuredPart;
use crate::ops::operator::{Operator, build, wrong_node};
use crate::ops::partition_scan;
use crate::rows::Row;
use crate::run::Run;
use crate::{eval, partition};

/// For each of the tables, in the order of their scans, the partition that is read.
type Set = Vec<Option<Arc<Table>>>;

/// See the module's documentation.
#[derive(Default)]
pub struct PartitionWise {
    /// Sets of partitions that are still to be read, the last one first; None before it has begun.
    sets: Option<Vec<Set>>,
    open: Option<(Arc<Plan>, Box<dyn Operator>)>,
    hasty: bool,
}

impl PartitionWise {
    fn open_next(&mut self, input: &Plan, set: Set, run: &mut Run<'_, '_>) -> Result<()> {
        for table in set.iter().flatten() {
            partition::open(run.cx, table.oid, LockMode::AccessShare)?;
        }
        let view = run.cx.catalog_tx.view();
        let own = Arc::new(of_set(input, set, &view, run, None)?);
        if run.state.measure.is_some() {
            let place = std::ptr::from_ref(input) as usize;
            run.state.parts.push(MeasuredPart::at(place, table_of(&own), &own, own.clone()));
        }
        let mut op = build(&own, run)?;
        if self.hasty {
            op.hasten();
        }
        self.open = Some((own, op));
        Ok(())
    }
}

impl Operator for PartitionWise {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::PartitionWise { input, places } = &plan.node else { return Err(wrong_node()) };
        if self.sets.is_none() {
            let view = partition_scan::view_of(run);
            let format = run.cx.format;
            let mut value = |e: &Expr| eval::eval(e, Row::Empty, run).map(Some);
            let mut sets = sets(input, places, &view, format, &mut value)?;
            sets.reverse();
            self.sets = Some(sets);
        }
        loop {
            sched::check_interrupts()?;
            if let Some((own, op)) = &mut self.open {
                if let Some(batch) = op.next(own, run)? {
                    return Ok(Some(batch));
                }
                self.open = None;
            }
            let Some(set) = self.sets.as_mut().and_then(Vec::pop) else { return Ok(None) };
            self.open_next(input, set, run)?;
        }
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        (self.sets, self.open) = (None, None);
        Ok(())
    }

    fn hasten(&mut self) {
        self.hasty = true;
    }
}

/// The scans of partitioned tables in a plan.
fn scans(plan: &Plan) -> Vec<&PartitionScan> {
    let mut found = Vec::new();
    plan.walk(&mut |plan| {
        if let Node::PartitionScan(scan) = &plan.node {
            found.push(&**scan);
        }
    });
    found
}

/// The sets of partitions to read, in the order of the bounds: `value` says what is known.
///
/// # Errors
/// Those of values that are computed to find them.
pub fn sets(
    input: &Plan,
    places: &[(u32, u32)],
    view: &Snapshot,
    format: &types::FormatContext,
    value: &mut dyn FnMut(&Expr) -> Result<Option<Datum>>,
) -> Result<Vec<Set>> {
    let scans = scans(input);
    let mut sets: std::collections::BTreeMap<u32, Set> = Default::default();
    for (n, scan) in scans.iter().enumerate() {
        for table in sql::prune::leaves(view, &scan.table, &scan.prune, format, value)? {
            let found = places.binary_search_by_key(&table.oid, |(oid, _)| *oid);
            // The plan is made anew where partitions have been added.
            let Ok(at) = found else { return Err(wrong_node()) };
            let set = sets.entry(places[at].1).or_insert_with(|| vec![None; scans.len()]);
            set[n] = Some(table);
        }
    }
    Ok(sets.into_values().collect())
}

/// A copy of a plan with the scans of partitions in place of those of their tables; with a number, they are named as
/// EXPLAIN shows them.
///
/// # Errors
/// As [`partition::instantiate`].
pub fn of_set(
    input: &Plan,
    set: Set,
    view: &Snapshot,
    run: &Run<'_, '_>,
    name: Option<&dyn Fn(&mut Plan, &str)>,
) -> Result<Plan> {
    let mut own = input.clone();
    fill(&mut own, &mut set.into_iter(), view, run, name)?;
    Ok(own)
}

fn fill(
    plan: &mut Plan,
    set: &mut dyn Iterator<Item = Option<Arc<Table>>>,
    view: &Snapshot,
    run: &Run<'_, '_>,
    name: Option<&dyn Fn(&mut Plan, &str)>,
) -> Result<()> {
    sched::check_stack()?;
    let Node::PartitionScan(scan) = &plan.node else {
        return plan
            .children_mut()
            .into_iter()
            .try_for_each(|child| fill(child, set, view, run, name));
    };
    *plan = match set.next().flatten() {
        Some(table) => {
            let mut own = partition::instantiate(scan, &table, view)?;
            if let Some(name) = name {
                name(&mut own, &scan.table.name);
            }
            own
        }
        None => {
            let estimate = plan.estimate;
            let null = |ty| Expr::Const(Datum::Null, ty);
            let exprs = plan.output_types(&run.prepared.subplans).into_iter().map(null).collect();
            let input = Box::new(Plan { node: Node::Nothing, estimate });
            Plan { node: Node::Project { input, exprs }, estimate }
        }
    };
    Ok(())
}

//! Scans of partitioned tables as EXPLAIN shows them: an Append over those partitions that are left over.

use std::collections::HashMap;

use base::Result;
use sql::plan::{Node, PartitionScan};
use sql::{Expr, Plan, walk};
use types::Datum;

use crate::context::ExecContext;
use crate::eval;
use crate::ops::measure::Measure;
use crate::ops::partition_scan::{expanded, table_of};
use crate::ops::partition_wise::{of_set, sets};
use crate::rows::Row;
use crate::run::{ExecState, Run};

/// Whether a plan reads partitioned tables.
pub fn concerns(plan: &Plan) -> bool {
    let mut found = false;
    plan.walk(&mut |plan| found |= matches!(plan.node, Node::PartitionScan(_)));
    found
}

/// How many partitions parameters and functions of the session leave out when a scan begins, by [`place`]: a plan for
/// all values would read them.
pub type Removed = HashMap<usize, u64>;

/// A number that tells a scan from others in one plan, however the plan is moved.
pub fn place(node: &Node) -> usize {
    match node {
        Node::Append(inputs) => inputs.as_ptr() as usize,
        Node::PartitionScan(scan) => std::ptr::from_ref(&**scan) as usize,
        _ => 0,
    }
}

/// A copy of a plan in which the partitions stand.
///
/// # Errors
/// Those of values that are computed to find them.
pub fn shown(plan: &Plan, cx: &mut ExecContext<'_>) -> Result<(Box<Plan>, Removed)> {
    let (mut plan, mut removed) = (Box::new(plan.clone()), Removed::new());
    crate::spi::with_run(cx, |run| expand(&mut plan, &mut removed, run))?;
    Ok((plan, removed))
}

/// Copies the measurements of a plan to its copy in which the partitions stand.
pub fn measured(from: &Plan, to: &Plan, state: &ExecState) -> Vec<Measure> {
    let mut out = Vec::new();
    carry(from, to, state, &mut out);
    // Plans of subqueries are shown as they are.
    out.extend(state.measure.iter().flatten().cloned());
    out
}

fn carry(from: &Plan, to: &Plan, state: &ExecState, out: &mut Vec<Measure>) {
    let scan = match &from.node {
        Node::PartitionScan(scan) => std::ptr::from_ref(&**scan) as usize,
        Node::PartitionWise { input, .. } => address(input),
        _ => {
            add(address(from), to, state, out);
            let pairs = from.children().into_iter().zip(to.children());
            return pairs.for_each(|(from, to)| carry(from, to, state, out));
        }
    };
    let leaves: Vec<&Plan> = match &to.node {
        Node::Append(parts) => parts.iter().collect(),
        Node::PartitionScan(_) | Node::PartitionWise { .. } | Node::Nothing => Vec::new(),
        _ => vec![to],
    };
    if !matches!(leaves[..], [one] if std::ptr::eq(one, to)) {
        add(address(from), to, state, out);
    }
    for leaf in leaves {
        let table = table_of(leaf);
        let mut nodes = Vec::new();
        leaf.walk(&mut |plan| nodes.push(plan));
        for part in state.parts.iter().filter(|p| p.scan == scan && p.table == table) {
            part.nodes.iter().zip(&nodes).for_each(|(from, to)| add(*from, to, state, out));
        }
    }
}

fn address(plan: &Plan) -> usize {
    std::ptr::from_ref(plan) as usize
}

/// Gives the measurements of a node to another one, too.
fn add(from: usize, to: &Plan, state: &ExecState, out: &mut Vec<Measure>) {
    let Some(found) = state.measure.iter().flatten().rev().find(|m| m.node == from) else { return };
    let node = address(to);
    match out.iter_mut().find(|m| m.node == node) {
        Some(known) => known.absorb(found),
        None => out.push(Measure { node, ..found.clone() }),
    }
}

/// The plans of the partitions that are read, and how many more a plan for all values would read.
fn left_out(scan: &PartitionScan, run: &mut Run<'_, '_>) -> Result<(Vec<Plan>, u64)> {
    let view = run.cx.catalog_tx.view();
    let format = run.cx.format;
    let late = |e: &Expr| walk::any(e, &|x| matches!(x, Expr::Slot(..) | Expr::Subquery(_)));
    let mut planned = |e: &Expr| {
        let known = !late(e) && walk::max_param(e).is_none() && !walk::is_changeable(e);
        if known { eval::eval(e, Row::Empty, run).map(Some) } else { Ok(None::<Datum>) }
    };
    let before = sql::prune::leaves(&view, &scan.table, &scan.prune, format, &mut planned)?.len();
    let mut value = |e: &Expr| {
        let known = !late(e) && walk::max_param(e).is_none_or(|n| (n as usize) < run.params.len());
        if known { eval::eval(e, Row::Empty, run).map(Some) } else { Ok(None::<Datum>) }
    };
    let parts = expanded(scan, &view, format, &mut value)?;
    let number = before.saturating_sub(parts.len()) as u64;
    Ok((parts, number))
}

fn expand(plan: &mut Plan, removed: &mut Removed, run: &mut Run<'_, '_>) -> Result<()> {
    sched::check_stack()?;
    if let Node::PartitionScan(scan) = &plan.node {
        let (parts, number) = left_out(scan, run)?;
        if number > 0 && parts.is_empty() {
            removed.insert(place(&plan.node), number);
            return Ok(());
        }
        *plan = append(scan, plan, parts, number > 0);
        if number > 0 {
            removed.insert(place(&plan.node), number);
        }
        return Ok(());
    }
    if let Node::PartitionWise { input, places } = &plan.node {
        plan.node = set_by_set(input, places, run)?;
        return Ok(());
    }
    for child in plan.children_mut() {
        expand(child, removed, run)?;
    }
    Ok(())
}

/// A plan that runs partition by partition, once for each set of partitions.
fn set_by_set(input: &Plan, places: &[(u32, u32)], run: &mut Run<'_, '_>) -> Result<Node> {
    let view = run.cx.catalog_tx.view();
    let format = run.cx.format;
    let late = |e: &Expr| walk::any(e, &|x| matches!(x, Expr::Slot(..) | Expr::Subquery(_)));
    let mut value = |e: &Expr| {
        let known = !late(e) && walk::max_param(e).is_none_or(|n| (n as usize) < run.params.len());
        if known { eval::eval(e, Row::Empty, run).map(Some) } else { Ok(None::<Datum>) }
    };
    let sets = sets(input, places, &view, format, &mut value)?;
    let count = sets.len().max(1) as f64;
    let mut plans = Vec::with_capacity(sets.len());
    for (n, set) in sets.into_iter().enumerate() {
        let named = |part: &mut Plan, table: &str| name(part, table, Some(n + 1));
        let mut own = of_set(input, set, &view, run, Some(&named))?;
        own.estimate.total /= count;
        own.estimate.startup /= count;
        own.estimate.rows = (own.estimate.rows / count).max(1.0);
        plans.push(own);
    }
    Ok(match plans.len() {
        0 => Node::Nothing,
        1 => match plans.pop() {
            Some(one) => one.node,
            None => Node::Nothing,
        },
        _ => Node::Append(plans),
    })
}

/// Names a partition's scan as the table that the statement names, with its number.
fn name(part: &mut Plan, table: &str, number: Option<usize>) {
    if let Node::SeqScan(scan)
    | Node::IndexScan { scan, .. }
    | Node::IndexOnlyScan { scan, .. }
    | Node::BitmapHeapScan { scan, .. } = &mut part.node
    {
        let name = scan.alias.as_deref().unwrap_or(table);
        scan.alias = Some(match number {
            Some(number) => format!("{name}_{number}").into(),
            None => name.into(),
        });
    }
    if let Node::ForeignScan(foreign) = &mut part.node {
        let name = foreign.scan.alias.as_deref().unwrap_or(table);
        foreign.scan.alias = Some(match number {
            Some(number) => format!("{name}_{number}").into(),
            None => name.into(),
        });
    }
    part.children_mut().into_iter().for_each(|child| name(child, table, number));
}

/// The plans of partitions as one; `whole`: even one of them stands below an Append.
fn append(scan: &PartitionScan, plan: &Plan, mut parts: Vec<Plan>, whole: bool) -> Plan {
    let count = parts.len().max(1) as f64;
    let alone = parts.len() == 1 && !whole;
    for (n, part) in parts.iter_mut().enumerate() {
        name(part, &scan.table.name, (!alone).then_some(n + 1));
        part.estimate.total = plan.estimate.total / count;
        part.estimate.rows = (plan.estimate.rows / count).max(1.0);
    }
    let estimate = plan.estimate;
    match parts.len() {
        0 => Plan { node: Node::Nothing, estimate },
        1 if alone => match parts.pop() {
            Some(part) => Plan { estimate, ..part },
            None => Plan { node: Node::Nothing, estimate },
        },
        _ => Plan { node: Node::Append(parts), estimate },
    }
}

//! Scans of partitioned tables as EXPLAIN shows them: an Append over those partitions that are left over.

use base::Result;
use sql::plan::{Node, PartitionScan};
use sql::{Expr, Plan, walk};
use types::Datum;

use crate::context::ExecContext;
use crate::eval;
use crate::ops::partition_scan::expanded;
use crate::rows::Row;
use crate::run::Run;

/// Whether a plan reads partitioned tables.
pub fn concerns(plan: &Plan) -> bool {
    let mut found = false;
    plan.walk(&mut |plan| found |= matches!(plan.node, Node::PartitionScan(_)));
    found
}

/// A copy of a plan in which the partitions stand.
///
/// # Errors
/// Those of values that are computed to find them.
pub fn shown(plan: &Plan, cx: &mut ExecContext<'_>) -> Result<Plan> {
    let mut plan = plan.clone();
    crate::spi::with_run(cx, |run| expand(&mut plan, run))?;
    Ok(plan)
}

fn expand(plan: &mut Plan, run: &mut Run<'_, '_>) -> Result<()> {
    sched::check_stack()?;
    if let Node::PartitionScan(scan) = &plan.node {
        *plan = append(scan, plan, run)?;
        return Ok(());
    }
    for child in plan.children_mut() {
        expand(child, run)?;
    }
    Ok(())
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
    part.children_mut().into_iter().for_each(|child| name(child, table, number));
}

fn append(scan: &PartitionScan, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Plan> {
    let view = run.cx.catalog_tx.view();
    let mut value = |e: &Expr| {
        let late = walk::any(e, &|x| matches!(x, Expr::Slot(..) | Expr::Subquery(_)));
        let known = !late && walk::max_param(e).is_none_or(|n| (n as usize) < run.params.len());
        if known { eval::eval(e, Row::Empty, run).map(Some) } else { Ok(None::<Datum>) }
    };
    let mut parts = expanded(scan, &view, &mut value)?;
    let count = parts.len().max(1) as f64;
    let alone = parts.len() == 1;
    for (n, part) in parts.iter_mut().enumerate() {
        name(part, &scan.table.name, (!alone).then_some(n + 1));
        part.estimate.total = plan.estimate.total / count;
        part.estimate.rows = (plan.estimate.rows / count).max(1.0);
    }
    let estimate = plan.estimate;
    Ok(match parts.len() {
        0 => Plan { node: Node::Nothing, estimate },
        1 => match parts.pop() {
            Some(part) => Plan { estimate, ..part },
            None => Plan { node: Node::Nothing, estimate },
        },
        _ => Plan { node: Node::Append(parts), estimate },
    })
}

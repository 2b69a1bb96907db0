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

fn append(scan: &PartitionScan, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Plan> {
    let view = run.cx.catalog_tx.view();
    let mut value = |e: &Expr| {
        let late = walk::any(e, &|x| matches!(x, Expr::Slot(..) | Expr::Subquery(_)));
        let known = !late && walk::max_param(e).is_none_or(|n| usize::from(n) < run.params.len());
        if known { eval::eval(e, Row::Empty, run).map(Some) } else { Ok(None::<Datum>) }
    };
    let mut parts = expanded(scan, &view, &mut value)?;
    let count = parts.len().max(1) as f64;
    for part in &mut parts {
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

//! Conditions as EXPLAIN shows them.

use sql::plan::Node;
use sql::{Expr, Plan};

/// A condition above a scan together with the scan's own, which are one to a reader of the plan.
pub(super) fn with_scans_own(input: &Plan, condition: &Expr) -> Option<Expr> {
    let own = match &input.node {
        Node::SeqScan(scan)
        | Node::IndexScan { scan, .. }
        | Node::IndexOnlyScan { scan, .. }
        | Node::BitmapHeapScan { scan, .. }
        | Node::SampleScan { scan, .. } => scan.filter.as_ref()?,
        Node::SystemScan { filter, .. } | Node::FunctionScan { filter, .. } => filter.as_ref()?,
        _ => return None,
    };
    let mut all = Vec::new();
    for e in [own, condition] {
        match e {
            Expr::And(items) => all.extend(items.iter().cloned()),
            other => all.push(other.clone()),
        }
    }
    Some(Expr::And(all))
}

//! What any thread of a statement can compute: it needs neither the session nor the catalog, and is the same each time.

use types::func::{Body, InHelpers, Volatility};

use crate::expr::{AggCall, Expr, OwnAggregate, SubqueryExpr, SubqueryKind};
use crate::plan::{IndexBounds, KeyStep, Node, Plan, Scan};
use crate::walk;
use crate::window::{FrameBound, WindowCall, WindowFunction};

/// Aggregates whose partial states can be merged in any order.
const MERGEABLE: [&str; 27] = [
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "bool_and",
    "bool_or",
    "every",
    "bit_and",
    "bit_or",
    "bit_xor",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "variance",
    "var_pop",
    "var_samp",
    "corr",
    "covar_pop",
    "covar_samp",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
];

/// Whether threads can compute the aggregate of parts of the rows. A user's aggregate needs a function that combines
/// two states, and to be PARALLEL SAFE.
pub(super) fn is_mergeable(call: &AggCall) -> bool {
    let known = match call.own.as_deref() {
        None => MERGEABLE.contains(&call.aggregate.name),
        Some(own) if !own.parallel => false,
        Some(OwnAggregate { steps: Some(steps), .. }) => {
            let mut functions = steps.combine.iter().chain([&steps.transition]);
            steps.combine.is_some() && functions.all(|e| is_computed_by(e, InHelpers::AsStep))
        }
        // It is computed as a built-in one.
        Some(_) => MERGEABLE.contains(&call.aggregate.name),
    };
    known
        && !call.distinct
        && call.order.is_empty()
        && call.direct.is_none()
        && call.args.iter().chain(&call.filter).all(is_plain)
}

/// Whether any thread can compute a window function's values.
pub(super) fn is_plain_call(call: &WindowCall) -> bool {
    let of_rows = match &call.function {
        WindowFunction::Aggregate(call) => call.own.is_none() && is_mergeable(call),
        WindowFunction::Own(_) => true,
    };
    let offsets = [&call.frame.start, &call.frame.end].into_iter().filter_map(FrameBound::offset);
    let key = call.frame.range.iter().map(|range| &range.key);
    of_rows && call.args.iter().chain(offsets).chain(key).all(is_plain)
}

/// Whether any thread can compute it: a subquery whose value is the same all the time is computed before.
pub(super) fn is_safe(e: &Expr) -> bool {
    let known = |query: &SubqueryExpr| {
        query.once && matches!(query.kind, SubqueryKind::Scalar | SubqueryKind::Exists)
            || query.is_hashed()
    };
    let mut all = true;
    walk::for_subqueries(e, &mut |query| all &= known(query));
    all && is_computed(e)
}

/// Whether any thread can compute it, and it has no subquery.
pub(super) fn is_plain(e: &Expr) -> bool {
    !walk::has_subquery(e) && is_computed(e)
}

/// The same without a look at subqueries. Slots are those of nested loops below the Gather, or were filled before
/// it began.
fn is_computed(e: &Expr) -> bool {
    is_computed_by(e, InHelpers::Safe)
}

/// The same with users' functions that are at least so safe.
fn is_computed_by(e: &Expr, least: InHelpers) -> bool {
    !walk::any(e, &|e| match e {
        // A user's function is what its definition says, whatever its volatility.
        Expr::Call { function, .. } if matches!(function.body, Body::User) => {
            function.returns_set || function.helpers < least
        }
        Expr::Call { function, .. } => {
            function.volatility == Volatility::Volatile
                || function.returns_set
                || matches!(function.body, Body::Session(_) | Body::Set(_))
        }
        // Texts of names and of users' types are looked up.
        Expr::InOutCast { arg, ty, .. } => {
            !types::io::writes_immutably(arg.ty()) || !types::io::reads_immutably(*ty)
        }
        Expr::SessionValue(..) => true,
        _ => false,
    })
}

/// Whether any thread can read the table: temporary ones are the session's.
pub(super) fn is_safe_scan(scan: &Scan) -> bool {
    scan.filter.as_ref().is_none_or(is_safe) && !base::Oid(scan.table.oid).is_temporary()
}

/// The same without subqueries.
fn is_plain_scan(scan: &Scan) -> bool {
    scan.filter.as_ref().is_none_or(is_plain) && is_safe_scan(scan)
}

/// Whether any thread can say where to look in an index.
pub(super) fn are_safe_bounds(bounds: &IndexBounds) -> bool {
    let ends = bounds.lower.iter().chain(&bounds.upper).flat_map(|(values, _)| values);
    let steps = bounds.steps.iter().filter_map(|step| match step {
        KeyStep::Equal(e) | KeyStep::Any(e) => Some(e),
        KeyStep::Null | KeyStep::Each(_) => None,
    });
    let begins = bounds.begins.iter().map(|(e, _)| e);
    let keys = bounds.keys.iter().map(|key| &key.value);
    let all = bounds.equal.iter().chain(ends).chain(steps).chain(begins).chain(keys);
    all.chain(&bounds.recheck).all(is_plain)
        && bounds.nearest.is_empty()
        && bounds.either.iter().all(are_safe_bounds)
}

/// Whether each thread can run the whole plan by itself: the right side of a nested loop.
pub(super) fn runs_anywhere(plan: &Plan) -> bool {
    if sched::check_stack().is_err() {
        return false;
    }
    let own = match &plan.node {
        Node::OneRow | Node::Nothing => true,
        Node::Values(rows) => rows.iter().flatten().all(is_plain),
        Node::SeqScan(scan) => is_plain_scan(scan),
        Node::IndexScan { scan, bounds, .. } | Node::IndexOnlyScan { scan, bounds, .. } => {
            is_plain_scan(scan) && are_safe_bounds(bounds)
        }
        Node::BitmapHeapScan { scan, recheck, .. } => {
            is_plain_scan(scan) && recheck.iter().all(is_plain)
        }
        Node::BitmapIndexScan { bounds, .. } => are_safe_bounds(bounds),
        Node::BitmapAnd(_) | Node::BitmapOr(_) | Node::Memoize { .. } => true,
        Node::Filter { condition, .. } => is_plain(condition),
        Node::Project { exprs, .. } => exprs.iter().all(is_plain),
        Node::Limit { count, offset, ties, .. } => {
            count.iter().chain(offset).chain(ties).all(is_plain)
        }
        Node::NestedLoop { slots, condition, .. } => {
            slots.iter().map(|(_, e)| e).chain(condition).all(is_plain)
        }
        Node::HashJoin { keys, condition, .. } => {
            keys.iter().all(|(l, r)| is_plain(l) && is_plain(r)) && condition.iter().all(is_plain)
        }
        _ => false,
    };
    own && plan.children().into_iter().all(runs_anywhere)
}

//! Parallel plans: a pass over a finished plan puts a Gather between an aggregate and a large sequential
//! scan below it, when everything in between can be computed by several threads at once. Settings and the number of
//! helpers by the table's size are PostgreSQL's (manual, chapter 15).

use base::settings::{Settings, setting};
use types::func::{Body, Volatility};

use crate::PrepareContext;
use crate::expr::{AggCall, Expr};
use crate::plan::{Node, Plan, Scan, Statement};
use crate::walk;

/// What the statement's own thread does of the work beside this many helpers, of one helper's part: it
/// hands out, collects and finishes, too.
const LEADER_LOSS: f64 = 0.3;

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

/// Adds Gather nodes to a query's plan.
pub(crate) fn add_gathers(statement: &mut Statement, cx: &PrepareContext<'_>) {
    let settings = cx.settings;
    let most = settings.int(setting::MAX_PARALLEL_WORKERS_PER_GATHER).clamp(0, 1024) as u16;
    if let (Statement::Query(plan), true) = (statement, most > 0) {
        let forced = settings.str(setting::FORCE_PARALLEL_MODE) != "off";
        Pass { cx, settings, most, forced }.visit(plan);
    }
}

struct Pass<'a> {
    cx: &'a PrepareContext<'a>,
    settings: &'a Settings,
    most: u16,
    /// `force_parallel_mode`: whatever it costs.
    forced: bool,
}

impl Pass<'_> {
    /// Looks for aggregates in what runs once.
    fn visit(&self, plan: &mut Plan) {
        if sched::check_stack().is_err() {
            return;
        }
        match &mut plan.node {
            Node::Aggregate { .. } => self.aggregate(plan),
            Node::Filter { input, .. }
            | Node::Project { input, .. }
            | Node::ProjectSet { input, .. }
            | Node::Window { input, .. }
            | Node::Sort { input, .. }
            | Node::IncrementalSort { input, .. }
            | Node::Limit { input, .. }
            | Node::Distinct { input, .. } => self.visit(input),
            // The right side of a nested loop may run often.
            Node::NestedLoop { left, .. } => self.visit(left),
            Node::HashJoin { left, right, .. }
            | Node::MergeJoin { left, right, .. }
            | Node::SetOp { left, right, .. } => {
                self.visit(left);
                self.visit(right);
            }
            Node::Append(inputs) => inputs.iter_mut().for_each(|input| self.visit(input)),
            _ => {}
        }
    }

    fn aggregate(&self, plan: &mut Plan) {
        let Node::Aggregate { input, groups, aggs, plain, sorted, sets } = &mut plan.node else {
            return;
        };
        let mergeable = sets.is_none()
            && (*plain || !*sorted)
            && groups.iter().all(is_safe)
            && aggs.iter().all(is_mergeable);
        let scan = driving_scan(input);
        let (Some(scan), true) = (scan, mergeable) else { return self.visit(input) };
        let workers = self.workers(scan);
        if workers == 0 {
            return;
        }
        let mut estimate = input.estimate;
        let share = f64::from(workers) + (1.0 - LEADER_LOSS * f64::from(workers)).max(0.0);
        estimate.startup += self.settings.real(setting::PARALLEL_SETUP_COST);
        estimate.total = estimate.startup + input.estimate.total / share;
        let rest = plan.estimate.total - input.estimate.total;
        let gained = input.estimate.total - estimate.total;
        if !self.forced && gained <= 0.0 {
            return;
        }
        plan.estimate.startup = (plan.estimate.startup - gained).max(estimate.startup);
        plan.estimate.total = estimate.total + rest;
        let below = Plan { node: Node::Nothing, estimate };
        let below = std::mem::replace(&mut **input, below);
        input.node = Node::Gather { input: Box::new(below), workers };
    }

    /// How many helpers for a scan: one at the least size, one more each time that the table is three times as large.
    fn workers(&self, scan: &Scan) -> u16 {
        if self.forced {
            return self.most;
        }
        let least = self.settings.int(setting::MIN_PARALLEL_TABLE_SCAN_SIZE).max(1) as f64;
        let pages = f64::from((self.cx.table_size)(&scan.table).0);
        let mut workers = 0;
        let mut size = least;
        while pages >= size && workers < self.most {
            workers += 1;
            size *= 3.0;
        }
        workers
    }
}

/// The only scan below filters and projections, if all of it can be computed by several threads.
fn driving_scan(plan: &Plan) -> Option<&Scan> {
    match &plan.node {
        Node::SeqScan(scan) => {
            let safe = scan.filter.as_ref().is_none_or(is_safe);
            (safe && !base::Oid(scan.table.oid).is_temporary()).then_some(scan)
        }
        Node::Filter { input, condition } if is_safe(condition) => driving_scan(input),
        Node::Project { input, exprs } if exprs.iter().all(is_safe) => driving_scan(input),
        _ => None,
    }
}

fn is_mergeable(call: &AggCall) -> bool {
    MERGEABLE.contains(&call.aggregate.name)
        && call.own.is_none()
        && !call.distinct
        && call.order.is_empty()
        && call.direct.is_none()
        && call.args.iter().chain(&call.filter).all(is_safe)
}

/// Whether any thread can compute it: it needs neither the session nor the catalog, and is the same each time.
fn is_safe(e: &Expr) -> bool {
    !walk::any(e, &|e| match e {
        Expr::Call { function, .. } => {
            function.volatility == Volatility::Volatile
                || function.returns_set
                || matches!(function.body, Body::Session(_) | Body::User | Body::Set(_))
        }
        // Texts of names and of users' types are looked up.
        Expr::InOutCast { .. } | Expr::Slot(..) | Expr::Subquery(_) | Expr::SessionValue(..) => {
            true
        }
        _ => false,
    })
}

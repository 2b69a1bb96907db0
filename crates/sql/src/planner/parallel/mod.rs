//! Parallel plans: a pass over a finished plan puts a Gather where several threads can compute what is below: pieces
//! of a scan, filtered, joined with the right sides of joins. Pieces of an index come in no order, so they are for
//! consumers that ask for none (groups, sorts, hash joins below them). Settings and the number of helpers by the
//! table's size are PostgreSQL's (manual, chapter 15).

mod safe;

use base::settings::{Settings, setting};

use crate::PrepareContext;
use crate::expr::Expr;
use crate::plan::{
    Estimate, JoinKind, KeyStep, ModifyAction, Node, Plan, Prepared, Scan, Statement,
};
use crate::walk;
use safe::{
    are_safe_bounds, is_mergeable, is_plain, is_plain_call, is_safe, is_safe_scan, runs_anywhere,
};

/// What the statement's own thread does of the work beside this many helpers, of one helper's part: it
/// hands out, collects and finishes, too.
const LEADER_LOSS: f64 = 0.3;
/// Bytes of a page, and those of a row beside its columns, about.
const PAGE_BYTES: f64 = 8192.0;
const ROW_BYTES: f64 = 24.0;

/// Cost of merging one thread's group with those of others, in units of handing over a row.
const MERGE_COST: f64 = 0.05;
/// Bytes of a group beside its values, and of an aggregate's state, about.
const GROUP_BYTES: f64 = 24.0;
const STATE_BYTES: f64 = 48.0;

/// A consumer's demand on the order of its rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// They come as they do without helpers, if that is in an index's order.
    Kept,
    /// Nothing: pieces of an index may come in any order.
    Any,
}

/// Adds Gather nodes to the plan of a query, or of the rows that an INSERT adds.
pub(crate) fn add_gathers(prepared: &mut Prepared, cx: &PrepareContext<'_>) {
    let (Some(pass), true) = (Pass::new(cx), prepared.changes.is_empty()) else { return };
    let Statement::Query(plan) = &mut prepared.statement else { return };
    match &mut plan.node {
        Node::Modify(modify) => {
            if let ModifyAction::Insert { input, .. } = &mut modify.action {
                pass.visit(input, 1.0);
            }
        }
        _ => pass.visit(plan, 1.0),
    }
}

/// Adds Gather nodes to those subplans that run once, of which so many rows are read.
pub(crate) fn add_to_subplans(
    subplans: &mut [Plan],
    run_once: &[(usize, Option<f64>)],
    cx: &PrepareContext<'_>,
) {
    let Some(pass) = Pass::new(cx) else { return };
    for (number, rows) in run_once {
        if let Some(plan) = subplans.get_mut(*number) {
            let share = rows.map_or(1.0, |rows| rows / plan.estimate.rows.max(1.0));
            pass.visit(plan, share.min(1.0));
        }
    }
}

struct Pass<'a> {
    cx: &'a PrepareContext<'a>,
    settings: &'a Settings,
    most: u16,
    /// `force_parallel_mode`: whatever it costs.
    forced: bool,
}

/// A plan that several threads can run, each for some of the rows.
#[derive(Clone, Copy)]
struct Partial {
    /// Its cost when they do.
    cost: f64,
    /// Some rows come at the end only: those of a join's right side, by their partners.
    tail: bool,
}

impl<'a> Pass<'a> {
    /// None when no plan may be parallel.
    fn new(cx: &'a PrepareContext<'a>) -> Option<Pass<'a>> {
        let settings = cx.settings;
        let most = settings.int(setting::MAX_PARALLEL_WORKERS_PER_GATHER).clamp(0, 1024) as u16;
        let forced = settings.str(setting::FORCE_PARALLEL_MODE) != "off";
        (most > 0).then_some(Pass { cx, settings, most, forced })
    }

    /// Looks in what runs once for plans that several threads can run. Of the rows this share is read, about.
    fn visit(&self, plan: &mut Plan, share: f64) {
        self.look_in(plan, share, Order::Kept);
    }

    /// The same for a consumer to which the order of the rows is nothing.
    fn visit_unordered(&self, plan: &mut Plan, share: f64) {
        self.look_in(plan, share, Order::Any);
    }

    fn look_in(&self, plan: &mut Plan, share: f64, order: Order) {
        if sched::check_stack().is_err() || self.gather_rows(plan, share, order) {
            return;
        }
        match &mut plan.node {
            Node::Aggregate { .. } => self.aggregate(plan, order),
            Node::Sort { .. } => self.sort(plan, share),
            Node::Distinct { .. } => self.distinct(plan, share),
            Node::Limit { input, .. } => {
                let share = share * plan.estimate.rows / input.estimate.rows.max(1.0);
                self.visit(input, share.min(1.0));
            }
            Node::Filter { input, .. }
            | Node::Project { input, .. }
            | Node::ProjectSet { input, .. } => self.look_in(input, share, order),
            Node::IncrementalSort { input, .. } => self.visit(input, share),
            Node::Window { .. } => self.window(plan),
            // The right side of a nested loop may run often.
            Node::NestedLoop { left, .. } => self.look_in(left, share, order),
            Node::HashJoin { left, right, .. } => {
                self.look_in(left, share, order);
                self.visit_unordered(right, 1.0);
            }
            Node::MergeJoin { left, right, .. } => {
                self.visit(left, share);
                self.visit(right, 1.0);
            }
            Node::SetOp { left, right, .. } => {
                self.visit(left, 1.0);
                self.visit(right, 1.0);
            }
            Node::Append(inputs) => {
                inputs.iter_mut().for_each(|input| self.look_in(input, share, order));
            }
            _ => {}
        }
    }

    /// Threads make groups of their own, which are merged. Groups of sorted rows are made by hash then.
    fn aggregate(&self, plan: &mut Plan, order: Order) {
        let (groups_made, width) = (plan.estimate.rows, plan.estimate.width);
        let Node::Aggregate { input, groups, aggs, plain, sorted, sets } = &mut plan.node else {
            return;
        };
        let bytes =
            groups_made * (f64::from(width) + GROUP_BYTES + STATE_BYTES * aggs.len() as f64);
        let fits = bytes < self.settings.int(setting::WORK_MEM) as f64 * 1024.0 * 2.0;
        let by_hash = *plain || !*sorted || (fits && order == Order::Any);
        let mergeable = sets.is_none()
            && by_hash
            && groups.iter().all(is_plain)
            && aggs.iter().all(is_mergeable);
        // Each thread hands over its groups, which are put together by all of them if they are many.
        let handed = groups_made * MERGE_COST;
        let rows_before = input.estimate.rows;
        if !mergeable || !self.gather(input, handed, 1.0, Order::Any) {
            return match *plain || !*sorted {
                true if !groups.is_empty() && aggs.iter().all(is_mergeable) => {
                    self.visit_unordered(input, 1.0);
                }
                _ => self.visit(input, 1.0),
            };
        }
        let hashing = match std::mem::replace(sorted, false) && !*plain {
            true => rows_before * self.settings.real(setting::CPU_OPERATOR_COST),
            false => 0.0,
        };
        let Node::Gather { input: below, absorbed, .. } = &mut input.node else { return };
        *absorbed = true;
        let gained = below.estimate.total - input.estimate.total - hashing;
        plan.estimate.startup = (plan.estimate.startup - gained).max(input.estimate.startup);
        plan.estimate.total -= gained;
    }

    /// Threads sort rows of their own, which are merged: the sort's own cost is shared, too.
    fn sort(&self, plan: &mut Plan, share: f64) {
        let Node::Sort { input, keys, .. } = &mut plan.node else { return };
        let enabled = self.settings.bool(setting::ENABLE_GATHERMERGE);
        if !enabled || !keys.iter().all(|key| is_plain(&key.expr)) {
            return self.visit_unordered(input, 1.0);
        }
        let own = (plan.estimate.startup - input.estimate.total).max(0.0);
        let before = input.estimate;
        let shared = own / 2.0;
        input.estimate.total += shared;
        let gathered = self.gather(input, plan.estimate.rows * share, 1.0, Order::Any);
        match &mut input.node {
            Node::Gather { input: below, absorbed, .. } if gathered => {
                *absorbed = true;
                below.estimate = before;
                let gained = before.total + shared - input.estimate.total;
                plan.estimate.startup =
                    (plan.estimate.startup - gained).max(input.estimate.startup);
                plan.estimate.total -= gained;
            }
            _ => {
                input.estimate = before;
                self.visit_unordered(input, 1.0);
            }
        }
    }

    /// Threads drop duplicates among their own rows first.
    fn distinct(&self, plan: &mut Plan, share: f64) {
        let Node::Distinct { input, keys, sorted } = &mut plan.node else { return };
        if *sorted || !keys.iter().all(is_plain) {
            return self.visit(input, share);
        }
        let estimate = plan.estimate;
        if !self.gather(input, estimate.rows, share, Order::Any) {
            return self.visit(input, share);
        }
        let Node::Gather { input: below, .. } = &mut input.node else { return };
        let rows = std::mem::replace(&mut **below, Plan { node: Node::Nothing, estimate });
        let saved = rows.estimate.total - input.estimate.total;
        below.node = Node::Distinct { input: Box::new(rows), keys: keys.clone(), sorted: false };
        plan.estimate.total -= saved;
        plan.estimate.startup = plan.estimate.startup.min(plan.estimate.total);
    }

    /// Threads compute the calls of partitions of their own, which the leader has read.
    fn window(&self, plan: &mut Plan) {
        let total = plan.estimate.total;
        let Node::Window { input, partition, order, calls, workers } = &mut plan.node else {
            return;
        };
        let Estimate { rows, width, total: before, .. } = input.estimate;
        let pages = rows * (f64::from(width) + ROW_BYTES) / PAGE_BYTES;
        let helpers = self.workers(pages);
        let own = (total - before).max(0.0);
        let gained = own - own / share(helpers);
        let setup = self.settings.real(setting::PARALLEL_SETUP_COST);
        let is_safe = !partition.is_empty()
            && partition.iter().chain(order.iter().map(|key| &key.expr)).all(is_plain)
            && calls.iter().all(is_plain_call);
        if is_safe && helpers > 0 && (self.forced || gained > setup) {
            *workers = helpers;
        }
        self.visit(input, 1.0);
    }

    /// Threads hand over all rows.
    fn gather_rows(&self, plan: &mut Plan, share: f64, order: Order) -> bool {
        // Anything that is worth it below is better than the rows of this.
        let rows = plan.estimate.rows;
        !matches!(plan.node, Node::OneRow | Node::Nothing) && self.gather(plan, rows, share, order)
    }

    /// Puts a Gather above a plan, if that is worth it where it hands over so many rows, and this share of its rows
    /// is read.
    fn gather(&self, plan: &mut Plan, rows: f64, read: f64, order: Order) -> bool {
        let Some(workers) = self.driving_pages(plan).map(|pages| self.workers(pages)) else {
            return false;
        };
        if workers == 0 {
            return false;
        }
        let share = share(workers);
        let Some(partial) = self.partial(plan, share, order) else { return false };
        let mut estimate = plan.estimate;
        let setup = self.settings.real(setting::PARALLEL_SETUP_COST);
        let handed = rows * self.settings.real(setting::PARALLEL_TUPLE_COST);
        estimate.total = partial.cost + setup + handed;
        estimate.startup = (estimate.startup + setup).min(estimate.total);
        if !self.forced && estimate.until(read) >= plan.estimate.until(read) {
            return false;
        }
        let mut first = Vec::new();
        self.prepare(plan, &mut first);
        let below = Plan { node: Node::Nothing, estimate };
        let below = std::mem::replace(plan, below);
        plan.node = Node::Gather { input: Box::new(below), workers, absorbed: false, first };
        true
    }

    /// What it costs when threads that do `share` of the work share it; None when they can't.
    fn partial(&self, plan: &Plan, share: f64, order: Order) -> Option<Partial> {
        sched::check_stack().ok()?;
        let total = plan.estimate.total;
        Some(match &plan.node {
            Node::SeqScan(scan) if is_safe_scan(scan) => {
                Partial { cost: total / share, tail: false }
            }
            Node::BitmapHeapScan { scan, recheck, input, .. } => {
                if !is_safe_scan(scan) || !recheck.iter().all(is_safe) {
                    return None;
                }
                // The leader makes the bitmap.
                let bitmap = input.estimate.total.min(total);
                Partial { cost: bitmap + (total - bitmap) / share, tail: false }
            }
            Node::IndexScan { scan, index, bounds, .. }
            | Node::IndexOnlyScan { scan, index, bounds, .. }
                if order == Order::Any =>
            {
                let skips = |step: &KeyStep| matches!(step, KeyStep::Each(_));
                if !is_safe_scan(scan)
                    || !is_btree(index)
                    || !are_safe_bounds(bounds)
                    || bounds.steps.iter().any(skips)
                {
                    return None;
                }
                Partial { cost: total / share, tail: false }
            }
            Node::PartitionScan(parts) if parts.order.is_empty() => match &parts.scan.node {
                Node::SeqScan(scan) if is_safe_scan(scan) => {
                    Partial { cost: total / share, tail: false }
                }
                _ => return None,
            },
            Node::Append(inputs) => {
                let mut all = Partial { cost: 0.0, tail: false };
                for input in inputs {
                    let part = self.partial(input, share, order)?;
                    all.cost += part.cost;
                    all.tail |= part.tail;
                }
                all
            }
            Node::Filter { input, condition } if is_safe(condition) => {
                self.above(plan, input, share, order)?
            }
            Node::Project { input, exprs } if exprs.iter().all(is_safe) => {
                self.above(plan, input, share, order)?
            }
            Node::HashJoin { left, right, kind, keys, condition, .. } => {
                let safe = keys.iter().all(|(l, r)| is_safe(l) && is_safe(r));
                if !safe || !condition.iter().all(is_safe) {
                    return None;
                }
                let left_part = self.partial(left, share, order)?;
                let (left, right_cost) = (left.estimate.total, right.estimate.total);
                let own = (total - left - right_cost).max(0.0) / share;
                let right = self.shares(right, share).map_or(right_cost, |part| part.cost);
                let tail = left_part.tail || asks_right(*kind);
                Partial { cost: left_part.cost + right + own, tail }
            }
            Node::NestedLoop { left, right, kind, slots, condition } => {
                let whole = slots.iter().map(|(_, e)| e).chain(condition).all(is_safe)
                    && !matches!(kind, JoinKind::Full)
                    && runs_anywhere(right);
                if !whole {
                    return None;
                }
                let part = self.partial(left, share, order)?;
                // A right side without slots is read by each thread.
                let kept = if slots.is_empty() { right.estimate.total } else { 0.0 };
                let own = (total - left.estimate.total - kept).max(0.0) / share;
                Partial { cost: part.cost + kept + own, tail: part.tail }
            }
            _ => return None,
        })
    }

    /// The cost of a plan of which all but the input is the node's own.
    fn above(&self, plan: &Plan, input: &Plan, share: f64, order: Order) -> Option<Partial> {
        let part = self.partial(input, share, order)?;
        let own = (plan.estimate.total - input.estimate.total).max(0.0) / share;
        Some(Partial { cost: part.cost + own, ..part })
    }

    /// The right side of a hash join, if all threads read it.
    fn shares(&self, right: &Plan, share: f64) -> Option<Partial> {
        if !self.settings.bool(setting::ENABLE_PARALLEL_HASH) {
            return None;
        }
        let large = self.driving_pages(right).is_some_and(|pages| self.workers(pages) > 0);
        let part = if large { self.partial(right, share, Order::Any)? } else { return None };
        (!part.tail).then_some(part)
    }

    /// Notes in a partial plan which right sides all threads read, and looks for other work in those that they don't;
    /// collects the subqueries of what the threads compute.
    fn prepare(&self, plan: &mut Plan, first: &mut Vec<Expr>) {
        let mut collect = |e: &Expr| {
            walk::for_subqueries(e, &mut |query| {
                first.push(Expr::Subquery(Box::new(query.clone())));
            });
        };
        match &mut plan.node {
            Node::SeqScan(scan)
            | Node::IndexScan { scan, .. }
            | Node::IndexOnlyScan { scan, .. } => scan.filter.iter().for_each(collect),
            Node::BitmapHeapScan { scan, recheck, .. } => {
                scan.filter.iter().chain(&*recheck).for_each(collect);
            }
            Node::PartitionScan(parts) => {
                if let Node::SeqScan(scan) = &parts.scan.node {
                    scan.filter.iter().for_each(collect);
                }
            }
            Node::Filter { input, condition } => {
                collect(condition);
                self.prepare(input, first);
            }
            Node::Project { input, exprs } => {
                exprs.iter().for_each(collect);
                self.prepare(input, first);
            }
            Node::NestedLoop { left, slots, condition, .. } => {
                slots.iter().map(|(_, e)| e).chain(&*condition).for_each(collect);
                self.prepare(left, first);
            }
            Node::Append(inputs) => inputs.iter_mut().for_each(|input| self.prepare(input, first)),
            Node::HashJoin { left, right, shared, keys, condition, .. } => {
                keys.iter().flat_map(|(l, r)| [l, r]).chain(&*condition).for_each(collect);
                self.prepare(left, first);
                *shared = self.shares(right, 2.0).is_some();
                match *shared {
                    true => self.prepare(right, first),
                    false => self.visit_unordered(right, 1.0),
                }
            }
            _ => {}
        }
    }

    /// How many helpers for a scan of so many pages: one at the least size, one more each time that it is three times
    /// as large.
    fn workers(&self, pages: f64) -> u16 {
        if self.forced {
            return self.most;
        }
        let least = self.settings.int(setting::MIN_PARALLEL_TABLE_SCAN_SIZE) as f64;
        if pages < least {
            return 0;
        }
        let mut workers = 1;
        let mut size = least.max(1.0) * 3.0;
        while pages >= size && workers < self.most {
            workers += 1;
            size *= 3.0;
        }
        workers
    }

    /// Pages of the scan whose pieces the threads take.
    fn driving_pages(&self, plan: &Plan) -> Option<f64> {
        let Estimate { rows, width, .. } = plan.estimate;
        let size = |scan: &Scan| f64::from((self.cx.table_size)(&scan.table).0);
        match &plan.node {
            Node::SeqScan(scan) if scan.tids().is_some() => None,
            Node::SeqScan(scan) => Some(size(scan)),
            // About one page for each row, where they are few.
            Node::BitmapHeapScan { scan, .. } | Node::IndexScan { scan, .. } => {
                Some(size(scan).min(rows))
            }
            Node::IndexOnlyScan { .. } => Some(rows * (f64::from(width) + ROW_BYTES) / PAGE_BYTES),
            Node::PartitionScan(_) => Some(rows * (f64::from(width) + ROW_BYTES) / PAGE_BYTES),
            Node::Filter { input, .. } | Node::Project { input, .. } => self.driving_pages(input),
            Node::HashJoin { left, .. } | Node::NestedLoop { left, .. } => self.driving_pages(left),
            Node::Append(inputs) => {
                let mut most: Option<f64> = None;
                for input in inputs {
                    let pages = self.driving_pages(input)?;
                    most = Some(most.map_or(pages, |most| most.max(pages)));
                }
                most
            }
            _ => None,
        }
    }
}

/// Whether it is read leaf by leaf.
fn is_btree(index: &catalog::Index) -> bool {
    index.method == base::AccessMethod::BTree
}

/// The work of so many helpers and the statement's own thread, in that of a helper.
fn share(workers: u16) -> f64 {
    f64::from(workers) + (1.0 - LEADER_LOSS * f64::from(workers)).max(0.0)
}

/// Whether a join marks the rows of its right side.
fn asks_right(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Right | JoinKind::Full) || !kind.gives_left()
}

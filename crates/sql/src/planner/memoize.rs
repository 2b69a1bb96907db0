//! Memoize: a nested loop whose right side is run with values of the left row keeps what it gave for them,
//! where the same values come often enough. Costs are PostgreSQL's (`cost_memoize_rescan`), but that a full
//! cache begins anew.
//!
//! Nobody knows how often values come again whose statistics nobody has: there is no cache then.

use base::settings::setting;

use crate::expr::Expr;
use crate::logical::{Col, Rel, TableRel};
use crate::plan::{Estimate, Node, Plan};
use crate::walk;

use super::cols::Cols;
use super::cost::{self, Costs};
use super::{PhysicalPlan, Planner, is_exact};

/// Bytes of a cache's entry beside its rows' values, about.
const ENTRY: f64 = 96.0;

/// A nested loop's cost, where a run of its right side costs less than the right side's plan says.
pub(crate) fn with_run_cost(mut joined: PhysicalPlan, run: Option<Estimate>) -> PhysicalPlan {
    if let (Some(run), Node::NestedLoop { left, right, .. }) = (run, &joined.plan.node) {
        let spared = (right.estimate.total - run.total).max(0.0) * left.estimate.rows.max(1.0);
        let least = left.estimate.total + run.total;
        joined.plan.estimate.total = (joined.plan.estimate.total - spared).max(least);
    }
    joined
}

impl Planner<'_> {
    /// The columns with whose values a table is read again and again under these conditions; none where it
    /// depends on anything else.
    pub fn run_keys(&self, table: &TableRel, conditions: &[Expr]) -> Cols {
        if !self.may_memoize(&Rel::OneRow, conditions) {
            return Cols::default();
        }
        let used = conditions.iter().flat_map(|e| Cols::of(e).iter().collect::<Vec<_>>());
        used.filter(|c| table.column(*c).is_none()).collect()
    }

    /// What one run of a right side costs on average when its rows are kept, if that is less; `keys`: the
    /// columns whose values it is run with.
    pub fn memoized_run(&self, calls: f64, run: &Estimate, keys: &Cols) -> Option<Estimate> {
        if !self.cx.settings.bool(setting::ENABLE_MEMOIZE) || calls < 2.0 || keys.is_empty() {
            return None;
        }
        let mut distinct = 1.0;
        let mut key_bytes = 0.0;
        for col in keys.iter() {
            let var = &self.vars[usize::from(col)];
            if !is_exact(var.ty) {
                return None;
            }
            distinct *= self.distinct_among(col, calls)?.max(1.0);
            key_bytes += f64::from(cost::type_width(var));
        }
        let costs = Costs::of(self.cx.settings);
        let distinct = distinct.min(calls);
        let entry = run.rows * f64::from(run.width.max(8)) + key_bytes + ENTRY;
        // `hash_mem_multiplier` is two.
        let entries = (costs.work_mem * 2.0 / entry).floor().max(1.0);
        let kept = (entries / distinct).min(1.0);
        let hits = (calls - distinct) / calls * kept;
        let evicted = 1.0 - kept;
        let caching = costs.tuple + costs.operator * run.rows;
        let total = run.total * (1.0 - hits) + costs.operator + evicted * costs.tuple + caching;
        let startup = run.startup * (1.0 - hits) + costs.operator;
        (total < run.total).then_some(Estimate { startup, total, ..*run })
    }

    /// Puts a cache above a right side that costs less with one; `outer`: the columns of other relations that
    /// it uses, all of which are in slots now. Returns what a run costs.
    pub fn memoize(
        &self,
        left: &PhysicalPlan,
        right: PhysicalPlan,
        outer: &Cols,
        binary: bool,
    ) -> (PhysicalPlan, Option<Estimate>) {
        let of_left: Cols = outer.iter().filter(|c| left.cols.contains(c)).collect();
        let calls = left.plan.estimate.rows;
        let Some(run) = self.memoized_run(calls, &right.plan.estimate, &of_left) else {
            return (right, None);
        };
        let slot = |col: Col| {
            let (_, slot) = self.env.iter().rev().find(|(c, _)| *c == col)?;
            let ty = self.vars[usize::from(col)].ty;
            is_exact(ty).then_some((*slot, ty))
        };
        let Some(keys) = outer.iter().map(slot).collect::<Option<Vec<_>>>() else {
            return (right, None);
        };
        let costs = Costs::of(self.cx.settings);
        let inner = right.plan.estimate;
        let estimate = Estimate {
            startup: inner.startup + costs.tuple,
            total: inner.total + costs.tuple,
            ..inner
        };
        let node = Node::Memoize { input: Box::new(right.plan), keys, binary };
        (PhysicalPlan { plan: Plan { node, estimate }, ..right }, Some(run))
    }

    /// How many different values of a column so many rows have.
    fn distinct_among(&self, col: Col, rows: f64) -> Option<f64> {
        let (table, _) = self.vars[usize::from(col)].origin?;
        let all = self.cx.catalog.stats(table)?.rows.max(1.0);
        let distinct = self.known_distinct(&self.column(col))?.clamp(1.0, all);
        let missing = (1.0 - (rows / all).min(1.0)).powf(all / distinct);
        Some(distinct * (1.0 - missing))
    }

    /// Whether what the conditions keep of a relation depends only on the values of the columns in them.
    pub fn may_memoize(&self, rel: &Rel, conditions: &[Expr]) -> bool {
        let plain = |e: &Expr| !walk::is_volatile(e) && !walk::has_subquery(e);
        conditions.iter().all(plain) && self.is_repeatable(rel)
    }
}

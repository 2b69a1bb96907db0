//! Grouping and removing duplicates: by a hash table, or over rows that come sorted by the groups
//! (from an index, a join, or a sort) where that is cheaper.

use base::Result;
use types::Datum;

use crate::expr::{AggCall, Expr, SortKey};
use crate::logical::{Col, GroupingSets, Rel};
use crate::plan::{Estimate, Node, Plan, Sets};
use crate::walk;

use super::cols::Cols;
use super::cost::{self, Costs};
use super::order::By;
use super::{OrderKey, PhysicalPlan, Planner, RequiredProperties, merge, order};

/// So many `min` and `max` are each looked up by themselves.
const EXTREMES_MAX: usize = 8;

/// Rows to group, and whether they come sorted by the groups.
struct Grouped {
    phys: PhysicalPlan,
    sorted: bool,
    estimate: Estimate,
}

impl Planner<'_> {
    /// Plans GROUP BY and aggregates.
    #[allow(clippy::too_many_arguments)]
    pub fn aggregate(
        &mut self,
        input: Rel,
        groups: Vec<(Col, Expr)>,
        aggs: Vec<(Col, AggCall)>,
        plain: bool,
        sets: Option<GroupingSets>,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        let acts = |agg: &AggCall| {
            let mut found = false;
            agg.for_exprs(&mut |e| found = found || walk::acts(e));
            found
        };
        let aggs: Vec<_> =
            aggs.into_iter().filter(|(c, agg)| need.contains(*c) || acts(agg)).collect();
        if !plain
            && sets.is_none()
            && self.may_choose()
            && let Some(eager) = self.eager(&input, &groups, &aggs)?
        {
            // The estimates decide.
            let way = (groups.clone(), plain, sets.clone());
            let late =
                |planner: &mut Self| planner.aggregate_here(input, way, aggs, need, required);
            let late = self.one_way(late)?;
            let way = (groups, plain, sets);
            let early = |planner: &mut Self| {
                planner.aggregate_here(eager.input, way, eager.aggs, need, required)
            };
            let early = self.one_way(early)?;
            let cost = |phys: &PhysicalPlan| until(&phys.plan.estimate, required);
            return Ok(if cost(&early) < cost(&late) { early } else { late });
        }
        self.aggregate_here(input, (groups, plain, sets), aggs, need, required)
    }

    /// The same, of the input as it is.
    fn aggregate_here(
        &mut self,
        input: Rel,
        (groups, plain, sets): (Vec<(Col, Expr)>, bool, Option<GroupingSets>),
        aggs: Vec<(Col, AggCall)>,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        if plain
            && sets.is_none()
            && let Some(all) = self.extremes(&input, &aggs, need)?
        {
            return Ok(all);
        }
        let mut inner_need = Cols::default();
        groups.iter().for_each(|(_, e)| inner_need.add(&Cols::of(e)));
        for (_, agg) in &aggs {
            agg.for_exprs(&mut |e| inner_need.add(&Cols::of(e)));
        }
        let exprs: Vec<Expr> = groups.iter().map(|(_, e)| e.clone()).collect();
        let mut cols: Vec<Col> = groups.iter().map(|(c, _)| *c).collect();
        cols.extend(aggs.iter().map(|(c, _)| *c));
        let masks = sets.iter().flat_map(|s| s.masks.iter().map(|(c, _)| *c));
        cols.extend(masks);
        let width = self.width(&cols);
        let Grouped { phys, sorted, estimate } = if plain || sets.is_some() || exprs.is_empty() {
            let phys = self.aggregate_input(input, &inner_need, &aggs, plain)?;
            let distinct = self.distinct_rows(&exprs, phys.plan.estimate.rows);
            let e = &phys.plan.estimate;
            let estimate = cost::aggregate(e, aggs.len(), exprs.len(), distinct, plain, width);
            Grouped { phys, sorted: false, estimate }
        } else {
            let below = order::through(required, &groups);
            self.grouped(input, &exprs, aggs.len(), width, &inner_need, &below)?
        };
        let group_exprs = self.resolve_all(exprs, &phys.cols)?;
        let mut calls = Vec::with_capacity(aggs.len());
        for (_, mut agg) in aggs {
            let mut failure = None;
            agg.for_exprs_mut(&mut |e| {
                let old = std::mem::replace(e, Expr::Row(Vec::new()));
                match self.resolve(old, &phys.cols) {
                    Ok(new) => *e = new,
                    Err(error) => failure = Some(error),
                }
            });
            if let Some(error) = failure {
                return Err(error);
            }
            calls.push(agg);
        }
        let sets = sets.map(|sets| {
            let masks = sets.masks.into_iter().map(|(_, places)| places);
            Sets { masks: masks.collect(), sets: sets.sets }
        });
        let order = if sorted { order::after(&phys.order, &groups) } else { Vec::new() };
        let node = Node::Aggregate {
            input: Box::new(phys.plan),
            groups: group_exprs,
            aggs: calls,
            plain,
            sorted,
            sets,
        };
        Ok(PhysicalPlan { plan: Plan { node, estimate }, cols, order })
    }

    /// Several `min` and `max` of one table, each from the first row in its column's order, if that is
    /// cheaper than all rows.
    fn extremes(
        &mut self,
        input: &Rel,
        aggs: &[(Col, AggCall)],
        need: &Cols,
    ) -> Result<Option<PhysicalPlan>> {
        let is_extreme = |(_, agg): &(Col, AggCall)| {
            matches!(agg.aggregate.name, "min" | "max")
                && matches!(agg.args.as_slice(), [Expr::Column(..)])
                && agg.own.is_none()
        };
        if aggs.len() < 2 || aggs.len() > EXTREMES_MAX || !aggs.iter().all(is_extreme) {
            return Ok(None);
        }
        let mut inner_need = Cols::default();
        aggs.iter().flat_map(|(_, agg)| &agg.args).for_each(|e| inner_need.add(&Cols::of(e)));
        let mut all: Option<PhysicalPlan> = None;
        for agg in aggs {
            let (none, once) = (Vec::new(), RequiredProperties::default());
            let agg = vec![agg.clone()];
            let one = self.aggregate(input.clone(), none, agg, true, None, need, &once)?;
            let first = match &one.plan.node {
                Node::Aggregate { input, .. } => matches!(input.node, Node::Limit { .. }),
                _ => false,
            };
            if !first {
                return Ok(None);
            }
            all = Some(match all {
                None => one,
                Some(left) => {
                    let kind = crate::plan::JoinKind::Inner;
                    self.loop_phys(left, one, kind, Vec::new(), None, 1.0, false)
                }
            });
        }
        let whole = self.rel(input.clone(), &inner_need, &RequiredProperties::default())?;
        Ok(all.filter(|all| all.plan.estimate.total < whole.plan.estimate.total))
    }

    /// The rows to group, in the cheapest way. `required`: of the groups, in terms of the input's columns.
    fn grouped(
        &mut self,
        input: Rel,
        exprs: &[Expr],
        calls: usize,
        width: i32,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<Grouped> {
        let costs = Costs::of(self.cx.settings);
        let again = merge::one_table(&input, &[]);
        let phys = self.rel(input, need, &RequiredProperties::default())?;
        let rows = phys.plan.estimate.rows;
        let distinct = self.distinct_rows(exprs, rows);
        let mut best = {
            let e = &phys.plan.estimate;
            let mut hashed = cost::aggregate(e, calls, exprs.len(), distinct, false, width);
            if !costs.hashagg {
                hashed.startup += cost::DISABLED;
                hashed.total += cost::DISABLED;
            }
            (until(&self.sorted_estimate(&hashed, &[], required), required), None, hashed)
        };
        let over = |e: &Estimate| cost::group_sorted(e, calls, exprs.len(), distinct, width);
        let mut ways = vec![None];
        // In an order of the input's own, or of an index.
        if let (Some(rel), Some(wanted)) = (again, group_order(exprs, required)) {
            let part = (rows / distinct.max(1.0)).max(1.0);
            let inner = RequiredProperties {
                order: wanted,
                rows: required.rows.map(|groups| groups * part),
            };
            ways.push(Some(self.rel(rel, need, &inner)?));
        }
        for (n, way) in ways.iter().enumerate() {
            let way = way.as_ref().unwrap_or(&phys);
            if !is_grouped(&way.order, exprs) {
                continue;
            }
            let estimate = over(&way.plan.estimate);
            let cost = until(&self.sorted_estimate(&estimate, &way.order, required), required);
            if cost < best.0 {
                best = (cost, Some(Some(n)), estimate);
            }
        }
        let keys = sort_keys(exprs, required);
        let sorted = over(&cost::sort_all(&phys.plan.estimate, None, &costs));
        let cost = until(&sorted, required);
        if cost < best.0 && exprs.iter().all(merge::has_sort_key) {
            best = (cost, Some(None), sorted);
        }
        let (_, way, estimate) = best;
        let phys = match way {
            None => return Ok(Grouped { phys, sorted: false, estimate }),
            Some(None) => self.sort_phys(phys, keys, None)?,
            Some(Some(n)) => ways.swap_remove(n).unwrap_or(phys),
        };
        Ok(Grouped { phys, sorted: true, estimate })
    }

    /// The rows to aggregate. A lone `min` or `max` of a column needs only the first row in the
    /// column's order, if an index has that.
    fn aggregate_input(
        &mut self,
        input: Rel,
        need: &Cols,
        aggs: &[(Col, AggCall)],
        plain: bool,
    ) -> Result<PhysicalPlan> {
        let [(_, agg)] = aggs else { return self.rel(input, need, &RequiredProperties::default()) };
        let name = agg.aggregate.name;
        let [Expr::Column(col, ty)] = agg.args.as_slice() else {
            return self.rel(input, need, &RequiredProperties::default());
        };
        let table = match &input {
            Rel::Table(_) => true,
            Rel::Filter { input, conditions } => {
                matches!(**input, Rel::Table(_)) && !conditions.iter().any(walk::has_subquery)
            }
            _ => false,
        };
        if agg.direct.is_some() {
            return self.rel(input, need, &RequiredProperties::default());
        }
        if !plain || !table || !matches!(name, "min" | "max") || agg.filter.is_some() {
            return self.rel(input, need, &RequiredProperties::default());
        }
        let whole = self.rel(input.clone(), need, &RequiredProperties::default())?;
        let arg = Expr::Column(*col, *ty);
        let not_null = Expr::IsNull { arg: Box::new(arg), negated: true };
        let known = Rel::Filter { input: Box::new(input), conditions: vec![not_null] };
        let order = vec![(By::values(*col), name == "max", name == "max")];
        let first =
            self.rel(known, need, &RequiredProperties { order: order.clone(), rows: Some(1.0) })?;
        let limited = cost::limit(&first.plan.estimate, Some(1.0), 0.0);
        if !order::satisfies(&first.order, &order) || limited.total >= whole.plan.estimate.total {
            return Ok(whole);
        }
        let count = Some(Expr::Const(Datum::Int8(1), types::oids::INT8));
        let input = Box::new(first.plan);
        let node = Node::Limit { input, count, offset: None, ties: Vec::new() };
        Ok(PhysicalPlan {
            plan: Plan { node, estimate: limited },
            cols: first.cols,
            order: first.order,
        })
    }

    /// Plans DISTINCT.
    pub fn distinct(
        &mut self,
        input: Rel,
        keys: Vec<Expr>,
        sorted: bool,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        let mut inner_need = need.clone();
        keys.iter().for_each(|k| inner_need.add(&Cols::of(k)));
        let Grouped { phys, sorted, mut estimate } = if sorted || keys.is_empty() {
            let phys = self.rel(input, &inner_need, &RequiredProperties::default())?;
            let distinct = self.distinct_rows(&keys, phys.plan.estimate.rows);
            let estimate = cost::distinct(&phys.plan.estimate, distinct);
            Grouped { phys, sorted, estimate }
        } else {
            let width = 0;
            self.grouped(input, &keys, 0, width, &inner_need, required)?
        };
        estimate.width = phys.plan.estimate.width;
        let keys = self.resolve_all(keys, &phys.cols)?;
        let order = if sorted { phys.order } else { Vec::new() };
        let node = Node::Distinct { input: Box::new(phys.plan), keys, sorted };
        Ok(PhysicalPlan { plan: Plan { node, estimate }, cols: phys.cols, order })
    }
}

/// What rows cost of which only the required's are read.
fn until(e: &Estimate, required: &RequiredProperties) -> f64 {
    match required.rows {
        Some(rows) => e.until(rows / e.rows.max(1.0)),
        None => e.total,
    }
}

/// The order in which rows are grouped: first as it is wanted above. None when a group is no column.
fn group_order(exprs: &[Expr], required: &RequiredProperties) -> Option<Vec<OrderKey>> {
    let mut groups = Vec::with_capacity(exprs.len());
    for e in exprs {
        groups.push(By::of(e)?);
    }
    let wanted = required.order.iter().filter(|(by, ..)| groups.contains(by)).copied();
    let mut out: Vec<OrderKey> = wanted.collect();
    for group in groups {
        if !out.iter().any(|(by, ..)| *by == group) {
            out.push((group, false, false));
        }
    }
    Some(out)
}

/// The same as keys of a sort, of any groups.
fn sort_keys(exprs: &[Expr], required: &RequiredProperties) -> Vec<SortKey> {
    let plain = |e: &Expr| SortKey { expr: e.clone(), descending: false, nulls_first: false };
    let Some(order) = group_order(exprs, required) else {
        return exprs.iter().map(plain).collect();
    };
    let key = |(by, descending, nulls_first): &OrderKey| {
        let is = |e: &&Expr| By::of(e) == Some(*by);
        let expr = exprs.iter().find(is)?.clone();
        Some(SortKey { expr, descending: *descending, nulls_first: *nulls_first })
    };
    order.iter().filter_map(key).collect()
}

/// Whether rows in this order have those of one group together.
fn is_grouped(order: &[OrderKey], exprs: &[Expr]) -> bool {
    let is = |by: &By| exprs.iter().any(|e| By::of(e) == Some(*by));
    let first = order.iter().take_while(|(by, ..)| is(by)).count();
    let first = &order[..first];
    exprs.iter().all(|e| By::of(e).is_some_and(|by| first.iter().any(|(f, ..)| *f == by)))
}

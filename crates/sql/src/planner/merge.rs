//! Merge joins: where both sides come sorted by the join's keys, or are cheap to sort.
//!
//! Which join it shall be is asked when both sides are planned: the hash join's cost is known then,
//! and a side that is one table may be read in another order. A merge join ends with the side that
//! ends first, so statistics say how much of the other one is read.

use base::Result;
use types::Datum;

use crate::bind::select::filter;
use crate::expr::{Expr, SortKey};
use crate::logical::{Col, Rel};
use crate::plan::{Estimate, JoinKind, MergeKey, Node, Plan};
use crate::walk;

use super::cols::Cols;
use super::cost::{self, Costs};
use super::join::outer_rows;
use super::order::By;
use super::{OrderKey, PhysicalPlan, Planner, RequiredProperties, order};

/// A side of a join: planned, and what it was planned from if it can be planned again.
pub(crate) struct Side {
    pub phys: PhysicalPlan,
    pub again: Option<Rel>,
}

/// A key by its place in the list, DESC, NULLS FIRST.
type Turn = (usize, bool, bool);

/// A side in the order of the keys.
enum Ordered {
    AsItIs,
    Again(Box<PhysicalPlan>),
    Sorted,
}

/// What is left to build a merge join.
struct Merge {
    turns: Vec<Turn>,
    left: (Ordered, Estimate),
    right: (Ordered, Estimate),
    estimate: Estimate,
}

impl Side {
    /// A side that is planned for good.
    pub fn planned(phys: PhysicalPlan) -> Side {
        Side { phys, again: None }
    }
}

/// The relation with its conditions, if planning it twice does no harm: one table, no subqueries.
pub(crate) fn one_table(rel: &Rel, conditions: &[Expr]) -> Option<Rel> {
    let table = match rel {
        Rel::Table(_) => true,
        Rel::Filter { input, conditions } => {
            matches!(**input, Rel::Table(_)) && !conditions.iter().any(walk::has_subquery)
        }
        _ => false,
    };
    let plain = table && !conditions.iter().any(walk::has_subquery);
    plain.then(|| filter(rel.clone(), conditions.to_vec()))
}

/// The order of one side by the join's keys, turned so.
fn sort_keys(keys: &[(Expr, Expr)], turns: &[Turn], left: bool) -> Vec<SortKey> {
    let one = |(n, descending, nulls_first): &Turn| SortKey {
        expr: if left { keys[*n].0.clone() } else { keys[*n].1.clone() },
        descending: *descending,
        nulls_first: *nulls_first,
    };
    turns.iter().map(one).collect()
}

/// Whether equal values of a type are those with equal sort keys.
pub(crate) fn has_sort_key(e: &Expr) -> bool {
    let ty = e.ty();
    let element = types::TypeIo::get(ty).map_or(base::Oid::INVALID, |io| io.element);
    element == base::Oid::INVALID && ty != types::oids::RECORD && types::user::shape(ty).is_none()
}

impl Planner<'_> {
    /// A merge join, if it costs less than what would stand in its place (`limit`); else the two sides
    /// again. `read`: the share of the rows that will be read, to which the costs are compared.
    #[allow(clippy::too_many_arguments)]
    pub fn merge_join(
        &mut self,
        left: Side,
        right: Side,
        kind: JoinKind,
        keys: &[(Expr, Expr)],
        rest: &[Expr],
        share: f64,
        (limit, read): (f64, f64),
        need: &Cols,
    ) -> Result<std::result::Result<PhysicalPlan, (PhysicalPlan, PhysicalPlan)>> {
        let costs = Costs::of(self.cx.settings);
        let usable = costs.mergejoin
            && !keys.is_empty()
            && keys.iter().all(|(l, r)| has_sort_key(l) && has_sort_key(r));
        if !usable {
            return Ok(Err((left.phys, right.phys)));
        }
        let (l, r) = (left.phys.plan.estimate, right.phys.plan.estimate);
        let rows = (l.rows * r.rows * share).max(1.0);
        let mut best: Option<Merge> = None;
        for turns in self.orders(&left, &right, keys) {
            let merge = self.merge_by(&left, &right, kind, keys, turns, (rows, read), need)?;
            if best.as_ref().is_none_or(|b| merge.estimate.until(read) < b.estimate.until(read)) {
                best = Some(merge);
            }
        }
        match best {
            Some(merge) if merge.estimate.until(read) < limit => {
                let mut estimate = merge.estimate;
                outer_rows(&mut estimate, kind, &l, &r);
                let merge = Merge { estimate, ..merge };
                self.build_merge(left, right, kind, keys, rest, merge).map(Ok)
            }
            _ => Ok(Err((left.phys, right.phys))),
        }
    }

    /// Orders of the keys that are worth trying.
    fn orders(&self, left: &Side, right: &Side, keys: &[(Expr, Expr)]) -> Vec<Vec<Turn>> {
        let of = |order: &[OrderKey], first: bool| -> Option<Vec<Turn>> {
            let turn = |(by, descending, nulls_first): &OrderKey| {
                let is = |(l, r): &(Expr, Expr)| By::of(if first { l } else { r }) == Some(*by);
                Some((keys.iter().position(is)?, *descending, *nulls_first))
            };
            let turns: Vec<Turn> = order.iter().map_while(turn).take(keys.len()).collect();
            let all = (0..keys.len()).all(|n| turns.iter().any(|(key, ..)| *key == n));
            all.then_some(turns)
        };
        let mut out = vec![(0..keys.len()).map(|n| (n, false, false)).collect()];
        for (side, first) in [(left, true), (right, false)] {
            let mut orders = vec![side.phys.order.clone()];
            if keys.len() > 1 {
                orders.extend(side.again.iter().flat_map(|rel| self.index_orders(rel)));
            }
            for turns in orders.iter().filter_map(|order| of(order, first)) {
                if !out.contains(&turns) {
                    out.push(turns);
                }
            }
        }
        out
    }

    /// The orders that a table's indexes have.
    fn index_orders(&self, rel: &Rel) -> Vec<Vec<OrderKey>> {
        let table = match rel {
            Rel::Table(table) => table,
            Rel::Filter { input, .. } => match &**input {
                Rel::Table(table) => table,
                _ => return Vec::new(),
            },
            _ => return Vec::new(),
        };
        let key = |k: &catalog::IndexColumn| super::index::key_order(table, k);
        let indexes = self.cx.catalog.indexes_of(&table.table);
        let ordered = indexes.iter().filter(|i| i.method.properties().ordered);
        ordered.map(|i| i.columns.iter().map_while(key).collect()).collect()
    }

    #[allow(clippy::too_many_arguments)]
    fn merge_by(
        &mut self,
        left: &Side,
        right: &Side,
        kind: JoinKind,
        keys: &[(Expr, Expr)],
        turns: Vec<Turn>,
        (rows, read_share): (f64, f64),
        need: &Cols,
    ) -> Result<Merge> {
        let costs = Costs::of(self.cx.settings);
        let l = self.in_order(left, &sort_keys(keys, &turns, true), read_share, need)?;
        let r = self.in_order(right, &sort_keys(keys, &turns, false), read_share, need)?;
        let (mut of_left, mut of_right) = match turns.first() {
            Some((n, false, _)) => self.read_shares(&keys[*n]),
            _ => (1.0, 1.0),
        };
        if matches!(kind, JoinKind::Left | JoinKind::Anti | JoinKind::Full) {
            of_left = 1.0;
        }
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            of_right = 1.0;
        }
        let read = |e: &Estimate, share: f64| (e.total - e.startup) * share;
        let startup = l.1.startup + r.1.startup;
        let compared =
            (l.1.rows * of_left + r.1.rows * of_right) * costs.operator * keys.len() as f64;
        let total =
            startup + read(&l.1, of_left) + read(&r.1, of_right) + compared + rows * costs.tuple;
        let width = l.1.width + r.1.width;
        let estimate = Estimate { startup, total, rows: rows.round().max(1.0), width };
        Ok(Merge { turns, left: l, right: r, estimate })
    }

    /// The cheapest way to have a side sorted of which this share is read.
    fn in_order(
        &mut self,
        side: &Side,
        keys: &[SortKey],
        read: f64,
        need: &Cols,
    ) -> Result<(Ordered, Estimate)> {
        let costs = Costs::of(self.cx.settings);
        let estimate = side.phys.plan.estimate;
        let sorted = cost::sort_all(&estimate, None, &costs);
        let Some(wanted) = order::of_keys(keys) else { return Ok((Ordered::Sorted, sorted)) };
        if order::satisfies(&side.phys.order, &wanted) {
            return Ok((Ordered::AsItIs, estimate));
        }
        if let Some(rel) = &side.again {
            let output = Cols::output(rel);
            let need: Cols = need.iter().filter(|c| output.contains(*c)).collect();
            let rows = (read < 1.0).then_some((estimate.rows * read).max(1.0));
            let required = RequiredProperties { order: wanted.clone(), rows };
            let again = self.rel(rel.clone(), &need, &required)?;
            let estimate = again.plan.estimate;
            if order::satisfies(&again.order, &wanted) && estimate.until(read) < sorted.until(read)
            {
                return Ok((Ordered::Again(Box::new(again)), estimate));
            }
        }
        Ok((Ordered::Sorted, sorted))
    }

    fn ordered(&mut self, side: Side, how: Ordered, keys: Vec<SortKey>) -> Result<PhysicalPlan> {
        match how {
            Ordered::AsItIs => Ok(side.phys),
            Ordered::Again(phys) => Ok(*phys),
            Ordered::Sorted => self.sort_phys(side.phys, keys, None),
        }
    }

    fn build_merge(
        &mut self,
        left: Side,
        right: Side,
        kind: JoinKind,
        keys: &[(Expr, Expr)],
        rest: &[Expr],
        merge: Merge,
    ) -> Result<PhysicalPlan> {
        let turned = |left: bool| sort_keys(keys, &merge.turns, left);
        let left = self.ordered(left, merge.left.0, turned(true))?;
        let right = self.ordered(right, merge.right.0, turned(false))?;
        let mut list = Vec::with_capacity(keys.len());
        for (n, descending, nulls_first) in &merge.turns {
            list.push(MergeKey {
                left: self.resolve(keys[*n].0.clone(), &left.cols)?,
                right: self.resolve(keys[*n].1.clone(), &right.cols)?,
                descending: *descending,
                nulls_first: *nulls_first,
            });
        }
        let mut layout: Vec<Col> = left.cols.clone();
        layout.extend(&right.cols);
        let condition = self.condition(rest.to_vec(), &layout)?;
        let order = match kind {
            JoinKind::Right | JoinKind::Full => Vec::new(),
            _ => left.order,
        };
        let cols = if kind.gives_right() { layout } else { left.cols };
        let node = Node::MergeJoin {
            left: Box::new(left.plan),
            right: Box::new(right.plan),
            kind,
            keys: list,
            condition,
        };
        Ok(PhysicalPlan { plan: Plan { node, estimate: merge.estimate }, cols, order })
    }

    /// How much of each side is read before the other one is at its end.
    fn read_shares(&self, (left, right): &(Expr, Expr)) -> (f64, f64) {
        let last = |e: &Expr| self.bounds_of(e)?.pop();
        let share = |e: &Expr, end: Option<Datum>| {
            let (bounds, end) = (self.bounds_of(e)?, end?);
            let within = bounds.iter().filter(|b| types::io::compare(b, &end).is_le()).count();
            Some((within as f64 / bounds.len() as f64).max(0.01))
        };
        let of_left = share(left, last(right)).unwrap_or(1.0);
        let of_right = share(right, last(left)).unwrap_or(1.0);
        (of_left, of_right)
    }

    /// The bounds of a column's histogram, in order; None when it has none that speak for all values.
    fn bounds_of(&self, e: &Expr) -> Option<Vec<Datum>> {
        let Expr::Column(col, ty) = e else { return None };
        let (table, column) = self.vars[usize::from(*col)].origin?;
        let stats = self.cx.catalog.stats(table)?.columns.get(usize::from(column) - 1)?;
        if stats.histogram.len() < 2 || !stats.common.is_empty() {
            return None;
        }
        let value = |text: &String| types::io::input(*ty, -1, text, self.cx.format).ok();
        stats.histogram.iter().map(value).collect()
    }
}

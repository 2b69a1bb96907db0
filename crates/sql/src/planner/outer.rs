//! Outer joins, and EXISTS and IN as joins.
//!
//! An outer join keeps its sides: conditions from above sink into the side that is kept, never
//! into the one that may be NULL, unless one of them is false for NULLs anyway: then the join is
//! an inner one.

use base::Result;

use crate::expr::{Expr, SubqueryKind};
use crate::logical::{Col, Rel, TableRel};
use crate::plan::{Estimate, JoinKind, ScanColumn};
use crate::walk;

use super::cols::Cols;
use super::cost::{self, Costs};
use super::graph::Graph;
use super::join::split_equi;
use super::leaf::{carried_over, equal_columns};
use super::memoize::with_run_cost;
use super::merge::{Side, one_table};
use super::reduce::reduced_full;
use super::scan::Path;
use super::{PhysicalPlan, Planner, RequiredProperties, filtered};

/// A join that only tests for matches.
#[derive(Clone)]
pub(crate) struct SemiJoin {
    kind: JoinKind,
    right: Rel,
    on: Vec<Expr>,
    /// The only column of a right side that uses nothing of the left one.
    column: Option<Col>,
    /// The only column of a right side that the join's condition is about.
    key: Option<Col>,
}

/// A right side that can be read through an index for each left row.
struct LookedUp {
    path: Path,
    /// Columns of the left side with whose values it is read, if nothing else changes what is read.
    keys: Cols,
    /// The whole right side, read once.
    whole: Estimate,
}

impl LookedUp {
    /// What the join costs. A test leaves off at the first partner, on average after two of those that
    /// a row has and one more.
    fn cost(&self, planner: &Planner<'_>, kind: JoinKind, left: &Estimate, partners: f64) -> f64 {
        let rows = left.rows * self.path.estimate.rows;
        let all = planner.index_loop_cost(left, &self.path, rows, &self.keys);
        if kind.gives_right() {
            return all;
        }
        let part = partners * 2.0 / (self.path.estimate.rows + 1.0) + (1.0 - partners);
        left.total + (all - left.total) * part.min(1.0)
    }
}

impl SemiJoin {
    /// Rows without a partner.
    pub fn anti(right: Rel, on: Vec<Expr>) -> SemiJoin {
        SemiJoin { kind: JoinKind::Anti, right, on, column: None, key: None }
    }
}

/// A table without its conditions, which go to the others about it.
fn bare_table(rel: Rel, mut others: Vec<Expr>) -> (Rel, Vec<Expr>) {
    match rel {
        Rel::Filter { input, conditions }
            if matches!(*input, Rel::Table(_))
                && !conditions.iter().any(|e| walk::is_volatile(e) || walk::has_subquery(e)) =>
        {
            others.splice(0..0, conditions);
            (*input, others)
        }
        other => (other, others),
    }
}

/// Share of the left rows that a test leaves when this share of them has partners.
fn kept(kind: JoinKind, partners: f64) -> f64 {
    match kind {
        // A wrong guess of none would be the costlier one.
        JoinKind::Anti => (1.0 - partners).max(0.1),
        _ => partners,
    }
}

/// Corrects how many rows a test is expected to leave.
fn with_partners(
    mut phys: PhysicalPlan,
    kind: JoinKind,
    left_rows: f64,
    partners: f64,
) -> PhysicalPlan {
    if !kind.gives_right() {
        phys.plan.estimate.rows = (left_rows * kept(kind, partners)).round().max(1.0);
    }
    phys
}

/// Columns for which the expression is NULL when they are.
fn strict_columns(e: &Expr, out: &mut Cols) {
    match e {
        Expr::Column(col, _) => out.insert(*col),
        Expr::Call { function, args, .. } if function.strict => {
            args.iter().for_each(|a| strict_columns(a, out));
        }
        Expr::Relabel(arg, _) | Expr::InOutCast { arg, .. } | Expr::Typmod { arg, .. } => {
            strict_columns(arg, out)
        }
        Expr::Not(arg) => strict_columns(arg, out),
        // With an empty array it is false, or true, whatever the left side is.
        Expr::ArrayOp { function, left, array, .. } if function.strict && has_items(array) => {
            strict_columns(left, out)
        }
        _ => {}
    }
}

/// Whether an array is known to have an item.
fn has_items(array: &Expr) -> bool {
    match array {
        Expr::Const(types::Datum::Array(array), _) => !array.items.is_empty(),
        Expr::Array { items, .. } => !items.is_empty(),
        _ => false,
    }
}

/// Columns that can't be NULL where the condition is true.
pub(crate) fn not_null_columns(e: &Expr, out: &mut Cols) {
    match e {
        Expr::And(items) => items.iter().for_each(|i| not_null_columns(i, out)),
        Expr::IsNull { arg, negated: true } => strict_columns(arg, out),
        Expr::BooleanTest { arg, is: Some(_), negated: false } => strict_columns(arg, out),
        // NULL where the left side is, or false where the array is empty.
        Expr::ArrayOp { function, left, all: false, .. } if function.strict => {
            strict_columns(left, out)
        }
        other => strict_columns(other, out),
    }
}

impl Planner<'_> {
    /// Outer joins whose NULL rows a condition throws away become inner joins.
    pub fn simplify(&mut self, graph: &mut Graph) -> Result<()> {
        loop {
            let mut not_null = Cols::default();
            graph.conditions.iter().for_each(|e| not_null_columns(e, &mut not_null));
            let found = graph.leaves.iter().position(|leaf| match leaf {
                Rel::Join { kind: JoinKind::Left, right, .. } => {
                    Cols::output(right).intersects(&not_null)
                }
                Rel::Join { kind: JoinKind::Full, .. } => Cols::output(leaf).intersects(&not_null),
                _ => false,
            });
            let Some(at) = found else { return Ok(()) };
            match reduced_full(graph.leaves.remove(at), &not_null) {
                Ok(reduced) => graph.add_late(reduced)?,
                Err(Rel::Join { left, right, on, .. }) => {
                    graph.add_late(Rel::Join { kind: JoinKind::Inner, left, right, on })?;
                }
                Err(_) => return Ok(()),
            }
        }
    }

    /// Plans an outer join with the conditions that stand above it.
    pub fn outer_join(
        &mut self,
        kind: JoinKind,
        left: Rel,
        right: Rel,
        on: Vec<Expr>,
        conditions: Vec<Expr>,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        let (left_cols, right_cols) = (Cols::output(&left), Cols::output(&right));
        let mut total_need = need.clone();
        on.iter().chain(&conditions).for_each(|e| total_need.add(&Cols::of(e)));
        let lateral: Cols =
            right.outer_columns().into_iter().filter(|c| left_cols.contains(*c)).collect();
        total_need.add(&lateral);
        // Into the kept side.
        let sinks = |e: &Expr| {
            kind != JoinKind::Full && !Cols::of(e).intersects(&right_cols) && !walk::is_volatile(e)
        };
        let (below, above): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(sinks);
        // Of ON, what is only about the right side filters it before the join.
        let (on_right, on): (Vec<Expr>, Vec<Expr>) = on.into_iter().partition(|e| {
            kind != JoinKind::Full && !Cols::of(e).intersects(&left_cols) && !walk::is_volatile(e)
        });
        let left = crate::bind::select::filter(left, below);
        let on_right = self.told_by_kept_side(kind, &left, &on, &right_cols, on_right);
        let share = self.selectivity(None, &above);
        let build = |planner: &mut Self, required: &RequiredProperties| {
            let again = if required.rows.is_none() { one_table(&left, &[]) } else { None };
            let phys = planner.side(left.clone(), &left_cols, &total_need, required)?;
            let sides = planner.join_sides(
                kind,
                Side { phys, again },
                &left_cols,
                right.clone(),
                &right_cols,
                on_right.clone(),
                on.clone(),
                &lateral,
                &total_need,
                required,
            )?;
            let condition = planner.condition(above.clone(), &sides.cols)?;
            Ok(filtered(sides, condition, share))
        };
        let early = match kind {
            JoinKind::Left => early_goal(required, &left_cols, share),
            _ => None,
        };
        let build = &build;
        let whole = |planner: &mut Self| build(planner, &RequiredProperties::default());
        self.either(
            required,
            whole,
            early.map(|early| move |planner: &mut Self| build(planner, &early)),
        )
    }

    /// What ON asks of the right side, with what follows from the kept side's conditions: no other rows are
    /// partners.
    fn told_by_kept_side(
        &self,
        kind: JoinKind,
        left: &Rel,
        on: &[Expr],
        right_cols: &Cols,
        mut on_right: Vec<Expr>,
    ) -> Vec<Expr> {
        if kind != JoinKind::Left {
            return on_right;
        }
        for (a, b, ty) in on.iter().filter_map(equal_columns) {
            let (own, other) = if right_cols.contains(a) { (b, a) } else { (a, b) };
            let told = carried_over(conditions_of(left), own, &Expr::Column(other, ty));
            if told.is_empty() || !right_cols.contains(other) || right_cols.contains(own) {
                continue;
            }
            let known = carried_over(conditions_of(left), own, &Expr::Column(own, ty));
            let share = self.selectivity(table_of(left), &known);
            self.narrowed.borrow_mut().extend([(own, share), (other, share)]);
            self.add_implied(&mut on_right, told);
        }
        on_right
    }

    fn side(
        &mut self,
        rel: Rel,
        cols: &Cols,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        let wanted: Cols = need.iter().filter(|c| cols.contains(*c)).collect();
        self.rel(rel, &wanted, required)
    }

    #[allow(clippy::too_many_arguments)]
    fn join_sides(
        &mut self,
        kind: JoinKind,
        left: Side,
        left_cols: &Cols,
        right: Rel,
        right_cols: &Cols,
        on_right: Vec<Expr>,
        on: Vec<Expr>,
        lateral: &Cols,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        let wanted: Cols = need.iter().filter(|c| right_cols.contains(*c)).collect();
        let (right, on_right) = bare_table(right, on_right);
        if !lateral.is_empty() {
            let mark = self.env.len();
            let left = left.phys;
            let slots = self.bind_slots(lateral, &left)?;
            let right = crate::bind::select::filter(right, on_right);
            let outer = self.may_memoize(&right, &[]).then(|| right.outer_columns());
            let right = self.rel(right, &wanted, &RequiredProperties::default())?;
            let (right, run) = match outer {
                Some(outer) => self.memoize(&left, right, &outer.into_iter().collect(), true),
                None => (right, None),
            };
            self.env.truncate(mark);
            let layout = both(&left, &right);
            let condition = self.condition(on, &layout)?;
            let joined = self.loop_phys(left, right, kind, slots, condition, 0.1, true);
            return Ok(with_run_cost(joined, run));
        }
        // Where the first rows are wanted soon, both ways are planned, and what each costs until then counts.
        let mut early = None;
        let first = self.mark();
        if let Rel::Table(table) = &right
            && let Some(found) =
                self.looked_up(kind, table, &on_right, &on, &wanted, left.phys.plan.estimate.rows)
        {
            let split = split_equi(on.clone(), left_cols, right_cols);
            let l = left.phys.plan.estimate;
            let share = self.key_share(&split.0, l.rows, found.whole.rows);
            let partners = self.partner_share(&split.0, &split.1, found.whole.rows);
            let cost = found.cost(self, kind, &l, partners);
            let soon = required.rows.is_some();
            if soon || cost < self.unsorted_cost(kind, &l, &found.whole, &split.0, share) {
                let all = [self.without_implied(&on_right, &on), on.clone()].concat();
                let left = left.phys.clone();
                let mut phys = self.look_up(left, table, kind, all, found.path, &wanted)?;
                phys.plan.estimate.total = cost;
                let phys = with_partners(phys, kind, l.rows, partners);
                if !soon {
                    return Ok(phys);
                }
                early = Some(phys);
            }
        }
        let second = self.mark();
        let right = crate::bind::select::filter(right, on_right);
        let again = one_table(&right, &[]);
        let right = Side { phys: self.rel(right, &wanted, &RequiredProperties::default())?, again };
        let (keys, rest) = split_equi(on, left_cols, right_cols);
        let (l, r) = (left.phys.plan.estimate, right.phys.plan.estimate);
        let partners = self.partner_share(&keys, &rest, r.rows);
        let ordered = !required.order.is_empty();
        let read = required.rows.map_or(1.0, |rows| (rows / l.rows.max(1.0)).min(1.0));
        let phys = self.join_whole(kind, left, right, keys, rest, need, (ordered, read))?;
        let whole = with_partners(phys, kind, l.rows, partners);
        Ok(match early {
            Some(early) => self.cheaper([early, whole], [first, second], required),
            None => whole,
        })
    }

    /// Joins two sides that are each read once; `ordered`: the left side's order is wanted; `read`: the share
    /// of the rows that will be read.
    #[allow(clippy::too_many_arguments)]
    fn join_whole(
        &mut self,
        kind: JoinKind,
        left: Side,
        right: Side,
        keys: Vec<(Expr, Expr)>,
        rest: Vec<Expr>,
        need: &Cols,
        (ordered, read): (bool, f64),
    ) -> Result<PhysicalPlan> {
        let (l, r) = (left.phys.plan.estimate, right.phys.plan.estimate);
        let share = self.key_share(&keys, l.rows, r.rows);
        let (hashed, flipped) = self.hash_cost(kind, &l, &r, (share, read));
        // A hash join doesn't keep the order that the left side comes in.
        let hashed = if ordered { f64::INFINITY } else { hashed };
        let limit = (hashed, read);
        let merged = self.merge_join(left, right, kind, &keys, &rest, share, limit, need)?;
        let (left, right) = match merged {
            Ok(merged) => return Ok(merged),
            Err(sides) => sides,
        };
        if keys.is_empty() {
            let layout = both(&left, &right);
            let condition = self.condition(rest, &layout)?;
            return Ok(self.loop_phys(left, right, kind, Vec::new(), condition, 0.1, false));
        }
        self.hash_join_of(left, right, kind, keys, rest, share, flipped)
    }

    /// How the right side can be read through an index for each left row, if it can be.
    fn looked_up(
        &self,
        kind: JoinKind,
        table: &TableRel,
        on_right: &[Expr],
        on: &[Expr],
        wanted: &Cols,
        runs: f64,
    ) -> Option<LookedUp> {
        if kind == JoinKind::Full {
            return None;
        }
        let own = self.without_implied(on_right, on);
        let all = [&own[..], on].concat();
        let path = self.path_of_a_run(table, &all, wanted, runs);
        let uses_left = path.uses_from(own.len());
        let mut whole =
            self.best_path(table, on_right, wanted, &RequiredProperties::default()).estimate;
        whole.width = self.width(&wanted.iter().collect::<Vec<Col>>());
        let keys = self.run_keys(table, &all);
        uses_left.then_some(LookedUp { path, keys, whole })
    }

    /// Reads the right side through an index for each left row.
    pub fn look_up(
        &mut self,
        left: PhysicalPlan,
        table: &TableRel,
        kind: JoinKind,
        conditions: Vec<Expr>,
        path: Path,
        wanted: &Cols,
    ) -> Result<PhysicalPlan> {
        let mut outer = Cols::default();
        conditions.iter().for_each(|e| outer.add(&Cols::of(e)));
        let mark = self.env.len();
        let slots = self.bind_slots(&outer, &left)?;
        let keeps = self.may_memoize(&Rel::OneRow, &conditions);
        let compares =
            |e: &Expr| matches!(e, Expr::Call { function, .. } if walk::is_equality(function));
        let foreign = |e: &Expr| Cols::of(e).iter().any(|c| table.column(c).is_none());
        let binary = conditions.iter().any(|e| foreign(e) && !compares(e));
        let mut right = self.table_scan(table, conditions, wanted, path)?;
        if keeps {
            let outer: Cols = outer.iter().filter(|c| table.column(*c).is_none()).collect();
            right = self.memoize(&left, right, &outer, binary).0;
        }
        self.env.truncate(mark);
        Ok(self.loop_phys(left, right, kind, slots, None, 1.0, true))
    }

    /// What the cheapest join costs that reads both sides once, in any order.
    fn unsorted_cost(
        &self,
        kind: JoinKind,
        left: &Estimate,
        right: &Estimate,
        keys: &[(Expr, Expr)],
        share: f64,
    ) -> f64 {
        if keys.is_empty() {
            let rows = left.rows * right.rows * 0.1;
            return cost::loop_join(left, right, rows, false, &Costs::of(self.cx.settings)).total;
        }
        self.hash_cost(kind, left, right, (share, 1.0)).0
    }

    /// `IN` as an inner join with the different values of the subquery, so that it takes part in
    /// choosing the order: where several tables are joined and the subquery depends on none of them.
    pub fn semi_as_inner(&mut self, graph: &mut Graph, joins: Vec<SemiJoin>) -> Vec<SemiJoin> {
        if graph.leaves.len() < 2 {
            return joins;
        }
        let mut kept = Vec::new();
        for join in joins {
            let key =
                join.column.filter(|col| join.kind == JoinKind::Semi && is_join(&join.on, *col));
            let Some(col) = key else {
                kept.push(join);
                continue;
            };
            let keys = vec![self.column(col)];
            graph.leaves.push(Rel::Distinct { input: Box::new(join.right), keys, sorted: false });
            graph.conditions.extend(join.on);
        }
        kept
    }

    /// A table of which a subquery says by one column which rows are wanted, as an inner join with the
    /// subquery's different values: few of these may find theirs by an index, or in the pages of a `ctid`.
    pub fn turned_semi_join(
        &self,
        graph: &Graph,
        joins: &[SemiJoin],
        late: &[Expr],
    ) -> Option<Graph> {
        let ([Rel::Table(table)], [join]) = (&graph.leaves[..], joins) else { return None };
        let col = join.key.filter(|col| join.kind == JoinKind::Semi && is_join(&join.on, *col))?;
        let own: Cols =
            join.on.iter().flat_map(|e| Cols::of(e).iter().collect::<Vec<_>>()).collect();
        let leads = self.cx.catalog.indexes_of(&table.table).iter().any(|index| {
            let first = index.columns.first().filter(|c| c.column > 0);
            first.is_some_and(|c| own.contains(table.col(ScanColumn::Attr(c.column))))
        }) || own.contains(table.col(ScanColumn::Tid));
        leads.then(|| {
            let mut turned = graph.clone();
            let input = Box::new(join.right.clone());
            turned.leaves.push(Rel::Distinct {
                input,
                keys: vec![self.column(col)],
                sorted: false,
            });
            turned.conditions.extend(join.on.iter().cloned());
            turned.conditions.extend(late.iter().cloned());
            turned
        })
    }

    /// Takes EXISTS, NOT EXISTS and IN out of the conditions where they can be joins.
    pub fn take_semi_joins(&mut self, graph: &mut Graph) -> Result<Vec<SemiJoin>> {
        if graph.leaves.is_empty() {
            return Ok(Vec::new());
        }
        let mut all = Cols::default();
        graph.leaves.iter().for_each(|l| all.add(&Cols::output(l)));
        let mut out = Vec::new();
        let mut kept = Vec::with_capacity(graph.conditions.len());
        for condition in std::mem::take(&mut graph.conditions) {
            match self.as_semi_join(&condition, &all)? {
                Some(join) => out.push(join),
                None => kept.push(condition),
            }
        }
        graph.conditions = kept;
        Ok(out)
    }

    fn as_semi_join(&mut self, e: &Expr, all: &Cols) -> Result<Option<SemiJoin>> {
        let (sub, kind) = match e {
            Expr::Subquery(sub) => (sub, JoinKind::Semi),
            Expr::Not(inner) => match &**inner {
                Expr::Subquery(sub) if matches!(sub.kind, SubqueryKind::Exists) => {
                    (sub, JoinKind::Anti)
                }
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let query = &self.subqueries[sub.plan];
        if sub.slots.iter().any(|(_, e)| !Cols::of(e).is_subset(all)) {
            // It also uses columns of queries further out: left to slots.
            return Ok(None);
        }
        match &sub.kind {
            SubqueryKind::Exists if sub.slots.is_empty() => Ok(None),
            // Each row asks for itself, up to the first row that it finds.
            SubqueryKind::Exists if rows_of(&query.rel).acts() => Ok(None),
            SubqueryKind::Exists => {
                let Some((right, on)) = decorrelated(query.rel.clone(), &sub.slots)? else {
                    return Ok(None);
                };
                let key = only_key(&right, &on);
                Ok(Some(SemiJoin { kind, right, on, column: None, key }))
            }
            SubqueryKind::Compare { test, all: false, .. } => {
                if walk::has_subquery(test) {
                    return Ok(None);
                }
                let test = with_columns((**test).clone(), &query.cols);
                if sub.slots.is_empty() {
                    let mut on = Vec::new();
                    let column = match query.cols.as_slice() {
                        [col] => Some(*col),
                        _ => None,
                    };
                    // A plain subquery is read as what it joins, which an index may give.
                    let Some((right, _, exprs)) = plain_rows(query.rel.clone(), &[])? else {
                        let right = query.rel.clone();
                        walk::conjuncts(test, &mut on);
                        return Ok(Some(SemiJoin { kind, right, on, column, key: column }));
                    };
                    let below =
                        |col: Col| exprs.iter().find(|(c, _)| *c == col).map(|(_, e)| e.clone());
                    let column = column.and_then(|col| match below(col) {
                        Some(Expr::Column(col, _)) => Some(col),
                        Some(_) => None,
                        None => Some(col),
                    });
                    walk::conjuncts(walk::substitute(test, &below), &mut on);
                    return Ok(Some(SemiJoin { kind, right, on, column, key: column }));
                }
                let Some((right, mut on, exprs)) =
                    decorrelated_with(query.rel.clone(), &sub.slots)?
                else {
                    return Ok(None);
                };
                let test = walk::substitute(test, &|col| {
                    exprs.iter().find(|(c, _)| *c == col).map(|(_, e)| e.clone())
                });
                walk::conjuncts(test, &mut on);
                Ok(Some(SemiJoin { kind, right, on, column: None, key: None }))
            }
            _ => Ok(None),
        }
    }

    /// What one side of a test says of a key, it says of what equals it on the other one, too: `b.y > 5` of
    /// `a.x = b.y` implies `a.x > 5`; and no row of `b` that `a.x < 7` keeps out is a partner.
    fn tell_each_other(&self, graph: &mut Graph, join: &mut SemiJoin) {
        let right_cols = Cols::output(&join.right);
        for e in &join.on {
            let Some((a, b, ty)) = equal_columns(e) else { continue };
            let (own, other) = if right_cols.contains(a) { (b, a) } else { (a, b) };
            if right_cols.contains(own) || !right_cols.contains(other) {
                continue;
            }
            if join.kind == JoinKind::Semi {
                let known = conditions_of(&join.right);
                let told = carried_over(known, other, &Expr::Column(own, ty));
                self.add_implied(&mut graph.conditions, told);
            }
            let told = carried_over(&graph.conditions, own, &Expr::Column(other, ty));
            if told.is_empty() {
                continue;
            }
            let has_it = |table: &&TableRel| table.column(own).is_some();
            let leaf = graph.leaves.iter().filter_map(table_of).find(has_it);
            let known: Vec<Expr> = carried_over(&graph.conditions, own, &Expr::Column(own, ty));
            let share = self.selectivity(leaf, &known);
            self.narrowed.borrow_mut().extend([(own, share), (other, share)]);
            match &mut join.right {
                Rel::Filter { conditions, .. } => self.add_implied(conditions, told),
                Rel::Table(_) => {
                    let mut conditions = Vec::new();
                    self.add_implied(&mut conditions, told);
                    let table = std::mem::replace(&mut join.right, Rel::Nothing);
                    join.right = crate::bind::select::filter(table, conditions);
                }
                _ => {}
            }
        }
    }

    /// Plans the joins, then the conditions that come after them.
    pub fn semi_joins_then(
        &mut self,
        mut graph: Graph,
        joins: Vec<SemiJoin>,
        late: Vec<Expr>,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        let mut joins = joins;
        for join in &mut joins {
            self.tell_each_other(&mut graph, join);
        }
        let mut total = need.clone();
        late.iter().for_each(|e| total.add(&Cols::of(e)));
        let share = self.selectivity(None, &late);
        let phys = self.semi_joins(graph, joins, &total, &required.below(share))?;
        let condition = self.condition(late, &phys.cols)?;
        Ok(filtered(phys, condition, share))
    }

    /// Share of the rows that a test is expected to leave.
    fn share_left(&self, join: &SemiJoin, left: &Cols) -> f64 {
        let on = join.on.iter().filter(|e| Cols::of(e).intersects(left)).cloned().collect();
        let (keys, rest) = split_equi(on, left, &Cols::output(&join.right));
        kept(join.kind, self.partner_share(&keys, &rest, f64::INFINITY))
    }

    /// Plans the rest of the graph, then the tests.
    pub fn semi_joins(
        &mut self,
        graph: Graph,
        mut joins: Vec<SemiJoin>,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        let mut total = need.clone();
        for join in &joins {
            join.on.iter().for_each(|e| total.add(&Cols::of(e)));
        }
        let mut left_cols = Cols::default();
        graph.leaves.iter().for_each(|l| left_cols.add(&Cols::output(l)));
        let left_need: Cols = total.iter().filter(|c| left_cols.contains(*c)).collect();
        // Those that leave few rows come first.
        joins.sort_by(|a, b| {
            self.share_left(a, &left_cols).total_cmp(&self.share_left(b, &left_cols))
        });
        let rebuilt = rebuild(graph);
        let share = joins.iter().map(|join| self.share_left(join, &left_cols)).product();
        let build = |planner: &mut Self, required: &RequiredProperties| -> Result<PhysicalPlan> {
            let mut again = if required.rows.is_none() { one_table(&rebuilt, &[]) } else { None };
            let mut phys = planner.rel(rebuilt.clone(), &left_need, required)?;
            for join in joins.iter().cloned() {
                let right_cols = Cols::output(&join.right);
                let (on_right, on): (Vec<Expr>, Vec<Expr>) = join
                    .on
                    .into_iter()
                    .partition(|e| !Cols::of(e).intersects(&left_cols) && !walk::is_volatile(e));
                debug_assert!(!join.kind.gives_right());
                let left = Side { phys, again: again.take() };
                phys = planner.join_sides(
                    join.kind,
                    left,
                    &left_cols,
                    join.right,
                    &right_cols,
                    on_right,
                    on,
                    &Cols::default(),
                    &total,
                    required,
                )?;
            }
            Ok(phys)
        };
        let early = early_goal(required, &left_cols, share);
        let build = &build;
        let whole = |planner: &mut Self| build(planner, &RequiredProperties::default());
        self.either(
            required,
            whole,
            early.map(|early| move |planner: &mut Self| build(planner, &early)),
        )
    }
}

/// The required of a join's left side when the joined rows, of which this share is left, have one: the order
/// as far as it is by the left side's columns.
fn early_goal(
    required: &RequiredProperties,
    left: &Cols,
    share: f64,
) -> Option<RequiredProperties> {
    required.rows?;
    let mut early = required.below(share);
    let own = early.order.iter().take_while(|(by, ..)| left.contains(by.col)).count();
    early.order.truncate(own);
    (own > 0 || required.order.is_empty()).then_some(early)
}

/// The one table that is read.
fn table_of(rel: &Rel) -> Option<&TableRel> {
    match rel {
        Rel::Table(table) => Some(table),
        Rel::Filter { input, .. } => table_of(input),
        _ => None,
    }
}

/// The conditions of a filter.
fn conditions_of(rel: &Rel) -> &[Expr] {
    match rel {
        Rel::Filter { conditions, .. } => conditions,
        _ => &[],
    }
}

/// The column of the right side that the only condition of a join equates with one of the left side.
fn only_key(right: &Rel, on: &[Expr]) -> Option<Col> {
    let [Expr::Call { function, args, .. }] = on else { return None };
    let [Expr::Column(a, _), Expr::Column(b, _)] = &**args else { return None };
    let own = Cols::output(right);
    let (inside, outside) = if own.contains(*a) { (*a, *b) } else { (*b, *a) };
    let equal = walk::is_equality(function) && own.contains(inside) && !own.contains(outside);
    equal.then_some(inside)
}

/// Whether the condition is that something equals the column as it is.
fn is_join(on: &[Expr], col: Col) -> bool {
    let [Expr::Call { function, args, .. }] = on else { return false };
    let [a, b] = &**args else { return false };
    let plain = |e: &Expr| matches!(e, Expr::Column(c, _) if *c == col);
    walk::is_equality(function) && a.ty() == b.ty() && (plain(a) || plain(b)) && {
        let other = if plain(a) { b } else { a };
        !Cols::of(other).contains(col) && !walk::is_volatile(other)
    }
}

/// The rows of a query of which only their being there counts.
fn rows_of(rel: &Rel) -> &Rel {
    match rel {
        Rel::Project { input, set: false, .. } => input,
        other => other,
    }
}

fn both(left: &PhysicalPlan, right: &PhysicalPlan) -> Vec<Col> {
    let mut layout = left.cols.clone();
    layout.extend(&right.cols);
    layout
}

/// Slots of a comparison's test as the subquery's columns.
fn with_columns(e: Expr, cols: &[Col]) -> Expr {
    match e {
        Expr::Slot(n, ty) => Expr::Column(cols[usize::from(n)], ty),
        other => {
            let kept = other.clone();
            walk::map_children(other, &mut |c| Ok(with_columns(c, cols))).unwrap_or(kept)
        }
    }
}

/// A graph as a tree again.
fn rebuild(graph: Graph) -> Rel {
    let mut rel = None;
    for leaf in graph.leaves {
        rel = Some(match rel {
            None => leaf,
            Some(left) => crate::bind::from::join(JoinKind::Inner, left, leaf, Vec::new()),
        });
    }
    crate::bind::select::filter(rel.unwrap_or(Rel::OneRow), graph.conditions)
}

type Decorrelated = (Rel, Vec<Expr>);

/// A subquery's rows without the conditions that use outer columns, and those conditions over the
/// outer row. None when outer columns are used elsewhere in it.
fn decorrelated(rel: Rel, slots: &[(Col, Expr)]) -> Result<Option<Decorrelated>> {
    Ok(decorrelated_with(rel, slots)?.map(|(rel, on, _)| (rel, on)))
}

type DecorrelatedWith = (Rel, Vec<Expr>, Vec<(Col, Expr)>);

fn decorrelated_with(rel: Rel, slots: &[(Col, Expr)]) -> Result<Option<DecorrelatedWith>> {
    let plain = plain_rows(rel, slots)?;
    Ok(plain.filter(|(_, on, _)| !on.is_empty() || !slots.is_empty()))
}

/// [`decorrelated_with`], or what is not correlated.
fn plain_rows(rel: Rel, slots: &[(Col, Expr)]) -> Result<Option<DecorrelatedWith>> {
    let mut graph = Graph::default();
    graph.add(rel)?;
    let outer: Cols = slots.iter().map(|(c, _)| *c).collect();
    let plain = graph.leaves.iter().all(|leaf| {
        matches!(leaf, Rel::Table(_) | Rel::System { .. } | Rel::Values { .. } | Rel::Join { .. })
            && !leaf.outer_columns().iter().any(|c| outer.contains(*c))
    });
    if !plain || graph.leaves.is_empty() {
        return Ok(None);
    }
    let over_outer = |e: Expr| {
        walk::substitute(e, &|col| slots.iter().find(|(c, _)| *c == col).map(|(_, e)| e.clone()))
    };
    let mut on = Vec::new();
    let mut own = Vec::new();
    for condition in std::mem::take(&mut graph.conditions) {
        if Cols::of(&condition).intersects(&outer) {
            if walk::has_subquery(&condition) {
                return Ok(None);
            }
            on.push(over_outer(condition));
        } else {
            own.push(condition);
        }
    }
    graph.conditions = own;
    let exprs = graph.pulled.iter().map(|(c, e)| (*c, over_outer(e.clone()))).collect();
    Ok(Some((rebuild(graph), on, exprs)))
}

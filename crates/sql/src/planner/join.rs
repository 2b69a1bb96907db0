//! FROM and WHERE: inner joins are taken apart into leaves and conditions, conditions sink to their
//! leaves, and the leaves are joined again in the order that costs least.
//!
//! The order is found greedily from each possible first leaf: always the next leaf that makes the
//! cheapest join. A step is a join by keys (hash, or merge: [`super::merge`]), a nested loop whose
//! right side is read through an index with values of the left row, or a plain nested loop.
//!
//! When only the first rows will be read ([`RequiredProperties::rows`]), what counts is the cost until then: nested loops
//! over a first leaf that is read in the wanted order may then win over joins that read everything.

use base::Result;
use base::settings::setting;

use crate::expr::Expr;
use crate::logical::{Col, Rel};
use crate::plan::{Estimate, JoinKind, Node, Plan};
use crate::walk;

use super::cols::Cols;
use super::cost::{self, Costs};
use super::graph::Graph;
use super::leaf::{Leaf, infer_equal_constants, infer_from_arms, infer_ranges};
use super::memoize::with_run_cost;
use super::merge::{Side, one_table};
use super::scan::Path;
use super::{OrderKey, PhysicalPlan, Planner, RequiredProperties, filtered, order};

/// How the next leaf is joined.
enum Method {
    /// By the equalities among the conditions: a hash join whose table is made of the leaf, or
    /// (`flipped`) of what is joined already, or a merge join.
    Hash { flipped: bool },
    /// Through an index, with values of the left side.
    Index(Path),
    /// Every pair; the right side again for each left row if it depends on it.
    Loop,
}

/// What is asked of an order of joins.
struct Wish<'g> {
    /// Share of the rows that will be read.
    share: f64,
    /// The first leaf is to be read in this order, which the joins keep.
    order: &'g [OrderKey],
}

impl Wish<'_> {
    fn cost(&self, e: &Estimate) -> f64 {
        e.until(self.share)
    }
}

/// An order of joins.
struct Steps {
    steps: Vec<(usize, Method)>,
    estimate: Estimate,
    /// Of the rows, from the first leaf.
    order: Vec<OrderKey>,
    /// What it was chosen for.
    share: f64,
}

/// A leaf that is ready to be joined.
struct Ready {
    leaf: Leaf,
    /// Planned already, where that depends on nothing else.
    phys: Option<PhysicalPlan>,
}

impl Planner<'_> {
    /// Plans FROM with WHERE.
    pub fn from(
        &mut self,
        rel: Rel,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        let mut graph = Graph::default();
        graph.add(rel)?;
        self.simplify(&mut graph)?;
        let mut used = need.clone();
        let merged = graph.pulled.iter().filter(|(c, _)| need.contains(*c));
        merged.for_each(|(_, e)| used.add(&Cols::of(e)));
        self.remove_joins(&mut graph, &used)?;
        graph.anti = self.take_anti_joins(&mut graph, &used)?;
        // What was merged is computed above the joins.
        let pulled: Vec<(Col, Expr)> =
            graph.pulled.iter().filter(|(c, _)| need.contains(*c)).cloned().collect();
        let mut inner_need = need.clone();
        pulled.iter().for_each(|(_, e)| inner_need.add(&Cols::of(e)));
        if pulled.is_empty() {
            return self.graph(graph, &inner_need, required);
        }
        let computed: Cols = pulled.iter().map(|(c, _)| *c).collect();
        let mut exprs = pulled;
        let mut available = Cols::default();
        graph.leaves.iter().for_each(|l| available.add(&Cols::output(l)));
        for col in need.iter().filter(|c| !computed.contains(*c) && available.contains(*c)) {
            exprs.push((col, self.column(col)));
        }
        let inner_goal = super::order::through(required, &exprs);
        let phys = self.graph(graph, &inner_need, &inner_goal)?;
        self.project_phys(phys, exprs)
    }

    /// A projection over a planned step.
    pub fn project_phys(
        &mut self,
        mut phys: PhysicalPlan,
        exprs: Vec<(Col, Expr)>,
    ) -> Result<PhysicalPlan> {
        if super::order::rename(&mut phys, &exprs) {
            return Ok(phys);
        }
        let order = super::order::after(&phys.order, &exprs);
        let cols: Vec<Col> = exprs.iter().map(|(c, _)| *c).collect();
        let mut list = Vec::with_capacity(exprs.len());
        for (_, e) in exprs {
            list.push(self.resolve(e, &phys.cols)?);
        }
        let estimate = cost::project(&phys.plan.estimate, list.len(), self.width(&cols), false);
        let node = Node::Project { input: Box::new(phys.plan), exprs: list };
        Ok(PhysicalPlan { plan: Plan { node, estimate }, cols, order })
    }

    fn graph(
        &mut self,
        mut graph: Graph,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        let never =
            |e: &Expr| matches!(e, Expr::Const(types::Datum::Bool(false) | types::Datum::Null, _));
        if graph.conditions.iter().any(never) {
            return Ok(self.nothing(need));
        }
        let conditions = std::mem::take(&mut graph.conditions);
        let (once, conditions) = split_once(&graph.leaves, conditions);
        graph.conditions = conditions.into_iter().map(|e| self.with_pattern(e)).collect();
        if !once.is_empty() {
            let phys = self.graph(graph, need, required)?;
            let condition = self.condition(once, &[])?;
            return Ok(filtered(phys, condition, 1.0));
        }
        let mut semi = self.take_semi_joins(&mut graph)?;
        semi.append(&mut graph.anti);
        let semi = self.semi_as_inner(&mut graph, semi);
        if !semi.is_empty() {
            // Subqueries that are run for each row wait until the joins have left few rows.
            let (late, early): (Vec<Expr>, Vec<Expr>) =
                graph.conditions.into_iter().partition(|e| walk::any(e, &is_correlated));
            graph.conditions = early;
            let turned = self.turned_semi_join(&graph, &semi, &late);
            return self.either(
                required,
                |planner| planner.semi_joins_then(graph, semi, late, need, required),
                turned
                    .map(|turned| |planner: &mut Self| planner.join_leaves(turned, need, required)),
            );
        }
        if graph.leaves.is_empty() {
            let condition = self.condition(graph.conditions, &[])?;
            let plan = Plan { node: Node::OneRow, estimate: cost::one_row() };
            let phys = PhysicalPlan { plan, cols: Vec::new(), order: Vec::new() };
            return Ok(filtered(phys, condition, 1.0));
        }
        if graph.leaves.len() == 1
            && let Some(leaf) = graph.leaves.pop()
        {
            return self.leaf(leaf, graph.conditions, need, required);
        }
        self.join_leaves(graph, need, required)
    }

    /// Joins several leaves.
    fn join_leaves(
        &mut self,
        graph: Graph,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        let outputs: Vec<Cols> = graph.leaves.iter().map(Cols::output).collect();
        let mut all = Cols::default();
        outputs.iter().for_each(|o| all.add(o));
        let mut leaves: Vec<Leaf> = Vec::with_capacity(graph.leaves.len());
        for (rel, cols) in graph.leaves.into_iter().zip(outputs) {
            let depends = rel.outer_columns().into_iter().filter(|c| all.contains(*c)).collect();
            leaves.push(Leaf {
                rel,
                cols,
                depends,
                need: Cols::default(),
                conditions: Vec::new(),
                guarded: false,
                estimate: Estimate::default(),
            });
        }
        // A condition on one leaf sinks into it; others wait until their leaves are joined.
        let mut joins = Vec::new();
        let mut constant = Vec::new();
        let mut total_need = need.clone();
        for condition in graph.conditions {
            // What is run for each row waits until the joins have left few of them.
            if walk::any(&condition, &is_correlated) {
                total_need.add(&Cols::of(&condition));
                constant.push(condition);
                continue;
            }
            let used: Cols = Cols::of(&condition).iter().filter(|c| all.contains(*c)).collect();
            if used.is_empty() {
                constant.push(condition);
                continue;
            }
            match leaves.iter_mut().find(|l| used.is_subset(&l.cols)) {
                Some(leaf) => leaf.conditions.push(condition),
                None => joins.push(condition),
            }
        }
        infer_equal_constants(&mut leaves, &joins);
        let implied = infer_ranges(&mut leaves, &joins);
        self.implied.borrow_mut().extend(implied);
        self.note_narrowed(&leaves, &joins);
        joins.iter().for_each(|e| infer_from_arms(&mut leaves, e));
        for leaf in &mut leaves {
            for late in self.open_barrier(leaf) {
                total_need.add(&Cols::of(&late));
                constant.push(late);
            }
        }
        joins.iter().for_each(|e| total_need.add(&Cols::of(e)));
        leaves.iter().for_each(|l| total_need.add(&l.depends));
        let mut planned: Vec<Option<PhysicalPlan>> = Vec::with_capacity(leaves.len());
        for leaf in &mut leaves {
            leaf.need = total_need.iter().filter(|c| leaf.cols.contains(*c)).collect();
            leaf.estimate = self.leaf_estimate(leaf);
            planned.push(self.planned_leaf(leaf, &total_need)?);
        }
        let kept = self.selectivity(None, &constant).max(0.01);
        let required = RequiredProperties {
            order: required.order.clone(),
            rows: required.rows.map(|rows| rows / kept),
        };
        let Steps { steps, order: first_order, share: read, .. } =
            self.choose_order(&leaves, &joins, &required);
        let mut slots: Vec<Option<Ready>> = leaves
            .into_iter()
            .zip(planned)
            .map(|(leaf, phys)| Some(Ready { leaf, phys }))
            .collect();
        let mut joined: Option<Side> = None;
        let mut pending = joins;
        let mut covered = Cols::default();
        for (at, method) in steps {
            let Some(Ready { leaf, phys }) = slots[at].take() else { continue };
            covered.add(&leaf.cols);
            let (ready, later): (Vec<Expr>, Vec<Expr>) = pending.into_iter().partition(|e| {
                let used: Cols = Cols::of(e).iter().filter(|c| all.contains(*c)).collect();
                joined.is_some() && used.is_subset(&covered)
            });
            pending = later;
            joined = Some(match joined {
                None if read < 1.0 => {
                    let rows = Some((leaf.estimate.rows * read).max(1.0));
                    let required = RequiredProperties { order: first_order.clone(), rows };
                    Side::planned(match phys {
                        Some(phys) if required.order.is_empty() => phys,
                        _ => self.leaf(leaf.rel, leaf.conditions, &total_need, &required)?,
                    })
                }
                None => self.leaf_side(leaf, phys, &total_need)?,
                Some(left) => {
                    let ready_leaf = Ready { leaf, phys };
                    let streams = read < 1.0;
                    Side::planned(self.join_step(
                        left,
                        ready_leaf,
                        ready,
                        &total_need,
                        method,
                        streams,
                    )?)
                }
            });
        }
        let Some(Side { mut phys, .. }) = joined else {
            return Err(base::err!(INTERNAL_ERROR, "join of nothing"));
        };
        constant.extend(pending);
        let condition = self.condition(constant, &phys.cols)?;
        phys = filtered(phys, condition, 1.0);
        Ok(phys)
    }

    /// Plans a leaf that is a query of its own before the joins are ordered: nothing else tells as well
    /// what it costs. Where it depends on other leaves the plan serves for that alone.
    fn planned_leaf(&mut self, leaf: &mut Leaf, need: &Cols) -> Result<Option<PhysicalPlan>> {
        /// Queries in queries are planned again and again: further in, a guess must do.
        const DEPTH_MAX: usize = 2;
        if matches!(
            leaf.rel,
            Rel::Table(_) | Rel::System { .. } | Rel::Function { .. } | Rel::Values { .. }
        ) {
            return Ok(None);
        }
        let (rel, conditions) = (leaf.rel.clone(), leaf.conditions.clone());
        if leaf.depends.is_empty() {
            let phys = self.leaf(rel, conditions, need, &RequiredProperties::default())?;
            leaf.estimate = phys.plan.estimate;
            return Ok(Some(phys));
        }
        if self.depth >= DEPTH_MAX {
            return Ok(None);
        }
        let (env, slots, mark) = (self.env.len(), self.slots, self.mark());
        for col in leaf.depends.iter() {
            let slot = self.new_slot()?;
            self.env.push((col, slot));
        }
        self.depth += 1;
        let phys = self.leaf(rel, conditions, need, &RequiredProperties::default());
        self.depth -= 1;
        self.env.truncate(env);
        self.slots = slots;
        self.forget_since(mark);
        leaf.estimate = phys?.plan.estimate;
        Ok(None)
    }

    /// The order of joining, and how each leaf is joined.
    fn choose_order(
        &self,
        leaves: &[Leaf],
        joins: &[Expr],
        required: &RequiredProperties,
    ) -> Steps {
        let all = Wish { share: 1.0, order: &[] };
        let whole = self.cheapest(leaves, joins, &all).unwrap_or_else(|| Steps {
            steps: (0..leaves.len()).map(|i| (i, Method::Loop)).collect(),
            estimate: Estimate { total: f64::INFINITY, rows: 1.0, ..Estimate::default() },
            order: Vec::new(),
            share: 1.0,
        });
        let share = required.rows.map_or(1.0, |rows| rows / whole.estimate.rows.max(1.0));
        if share >= 1.0 {
            return whole;
        }
        let early = self.cheapest(leaves, joins, &Wish { share, order: &required.order });
        let cost = |steps: &Steps| self.goal_cost(&steps.estimate, &steps.order, required);
        match early {
            Some(early) if cost(&early) < cost(&whole) => early,
            _ => whole,
        }
    }

    fn cheapest(&self, leaves: &[Leaf], joins: &[Expr], wish: &Wish<'_>) -> Option<Steps> {
        let mut best: Option<Steps> = None;
        // More than a dozen relations: only the smallest may come first.
        let mut starts: Vec<usize> = (0..leaves.len()).collect();
        starts.sort_by(|a, b| leaves[*a].estimate.rows.total_cmp(&leaves[*b].estimate.rows));
        if wish.order.is_empty() {
            starts.truncate(if leaves.len() > 12 { 2 } else { 12 });
        }
        for start in starts {
            if !leaves[start].depends.is_empty() {
                continue;
            }
            let limit = best.as_ref().map_or(f64::INFINITY, |b| wish.cost(&b.estimate));
            if let Some(steps) = self.greedy(leaves, joins, start, limit, wish)
                && wish.cost(&steps.estimate) < limit
            {
                best = Some(steps);
            }
        }
        best
    }

    /// The first leaf, in the wanted order as far as that is its own; None when it can't give that.
    fn first_leaf(&self, leaf: &Leaf, wish: &Wish<'_>) -> Option<(Estimate, Vec<OrderKey>)> {
        if wish.order.is_empty() {
            return Some((leaf.estimate, Vec::new()));
        }
        let own = |(by, ..): &&OrderKey| leaf.cols.contains(by.col);
        let order: Vec<OrderKey> = wish.order.iter().take_while(own).copied().collect();
        let (Rel::Table(table), false) = (&leaf.rel, order.is_empty()) else { return None };
        let rows = Some((leaf.estimate.rows * wish.share).max(1.0));
        let required = RequiredProperties { order, rows };
        let path = self.best_path(table, &leaf.conditions, &leaf.need, &required);
        let common = order::common(&path.order, &required.order);
        let width = leaf.estimate.width;
        (common > 0)
            .then(|| (Estimate { width, ..path.estimate }, required.order[..common].to_vec()))
    }

    fn greedy(
        &self,
        leaves: &[Leaf],
        joins: &[Expr],
        start: usize,
        limit: f64,
        wish: &Wish<'_>,
    ) -> Option<Steps> {
        let (mut current, order) = self.first_leaf(&leaves[start], wish)?;
        let mut steps = vec![(start, Method::Loop)];
        let mut covered = leaves[start].cols.clone();
        let mut left: Vec<usize> = (0..leaves.len()).filter(|i| *i != start).collect();
        while !left.is_empty() {
            let mut best: Option<(usize, Method, Estimate, bool)> = None;
            for (place, at) in left.iter().enumerate() {
                let leaf = &leaves[*at];
                if !leaf.depends.is_subset(&covered) {
                    continue;
                }
                let mut both = covered.clone();
                both.add(&leaf.cols);
                let ready: Vec<&Expr> = joins
                    .iter()
                    .filter(|e| {
                        let used = Cols::of(e);
                        used.intersects(&leaf.cols)
                            && used.iter().all(|c| both.contains(c) || !is_any(leaves, c))
                    })
                    .collect();
                let (method, estimate) = self.best_method(&current, leaf, &ready, &covered, wish);
                let linked = !ready.is_empty() || !leaf.depends.is_empty();
                let better = best.as_ref().is_none_or(|(_, _, e, l)| {
                    (linked, -wish.cost(&estimate)) > (*l, -wish.cost(e))
                });
                if better {
                    best = Some((place, method, estimate, linked));
                }
            }
            let (place, method, estimate, _) = best?;
            let at = left.swap_remove(place);
            covered.add(&leaves[at].cols);
            current = estimate;
            steps.push((at, method));
            if wish.cost(&current) >= limit {
                return None;
            }
        }
        Some(Steps { steps, estimate: current, order, share: wish.share })
    }

    fn best_method(
        &self,
        left: &Estimate,
        leaf: &Leaf,
        ready: &[&Expr],
        covered: &Cols,
        wish: &Wish<'_>,
    ) -> (Method, Estimate) {
        let costs = Costs::of(self.cx.settings);
        let share = self.joint_share(ready, left.rows, leaf);
        let rows = (left.rows * leaf.estimate.rows * share).max(1.0);
        let lateral = !leaf.depends.is_empty();
        let estimate = cost::loop_join(left, &leaf.estimate, rows, lateral, &costs);
        let mut best = (Method::Loop, estimate);
        let by_keys = || ready.iter().any(|e| equi_sides(e, covered, &leaf.cols).is_some());
        // What is hashed may go to a file in parts, and comes in no order then.
        if !lateral && wish.order.is_empty() && by_keys() {
            for flipped in [false, true] {
                let (probe, build) =
                    if flipped { (&leaf.estimate, left) } else { (left, &leaf.estimate) };
                let estimate = cost::hash_join(probe, build, rows, &costs);
                if wish.cost(&estimate) < wish.cost(&best.1) {
                    best = (Method::Hash { flipped }, estimate);
                }
            }
            let merged = cost::merge_sorted(left, &leaf.estimate, rows, &costs);
            if wish.share >= 1.0 && merged.total < best.1.total {
                best = (Method::Hash { flipped: false }, merged);
            }
        }
        if let Rel::Table(table) = &leaf.rel
            && !ready.is_empty()
            && (!leaf.guarded || ready.iter().all(|e| self.is_leakproof(e)))
        {
            let ready: Vec<Expr> = ready.iter().map(|e| (*e).clone()).collect();
            let own = self.without_implied(&leaf.conditions, &ready);
            let all = [&own[..], &ready[..]].concat();
            let path = self.path_of_a_run(table, &all, &leaf.need, left.rows);
            if path.uses_from(own.len()) {
                let mut estimate = cost::loop_join(left, &path.estimate, rows, true, &costs);
                let keys = self.run_keys(table, &all);
                estimate.total = self.index_loop_cost(left, &path, rows, &keys);
                if wish.cost(&estimate) < wish.cost(&best.1) {
                    best = (Method::Index(path), estimate);
                }
            }
        }
        best
    }

    /// Share of the pairs that the join conditions keep together. When they equate all columns of a
    /// unique index with something, no row of the other side finds more than one partner; and since
    /// that is mostly a reference, it is taken to find one.
    fn joint_share(&self, ready: &[&Expr], left_rows: f64, leaf: &Leaf) -> f64 {
        let mut share = 1.0;
        let mut equated: Vec<Col> = Vec::new();
        for e in ready {
            share *= self.join_share(e, left_rows, leaf);
            if let Expr::Call { function, args, .. } = e
                && walk::is_equality(function)
            {
                equated.extend(args.iter().filter_map(super::selectivity::plain_column));
            }
        }
        // A single condition's share knows of unique columns by itself.
        if equated.len() <= 2 {
            return share;
        }
        self.unique_rows(&equated).map_or(share, |rows| share.max(1.0 / rows.max(1.0)))
    }

    /// Rows of the smallest table of which these are all columns of a unique index.
    fn unique_rows(&self, cols: &[Col]) -> Option<f64> {
        let origins: Vec<(u32, u16)> =
            cols.iter().filter_map(|c| self.vars[usize::from(*c)].origin).collect();
        let covered = |oid: u32| {
            let table = self.cx.catalog.table(oid)?;
            let unique = self.cx.catalog.indexes_of(table).into_iter().any(|index| {
                let has = |c: &catalog::IndexColumn| origins.contains(&(oid, c.column));
                index.unique && index.is_plain() && index.columns.iter().all(has)
            });
            unique.then(|| (self.cx.table_size)(table).1)
        };
        origins.iter().filter_map(|(oid, _)| covered(*oid)).reduce(f64::min)
    }

    /// Share of the pairs that a join condition keeps.
    fn join_share(&self, e: &Expr, left_rows: f64, leaf: &Leaf) -> f64 {
        let Expr::Call { function, args, .. } = e else { return 0.3 };
        if !walk::is_equality(function) {
            return 0.333;
        }
        let [a, b] = &**args else { return 0.3 };
        let (inner, outer) = if Cols::of(a).is_subset(&leaf.cols) { (a, b) } else { (b, a) };
        if let Some(share) = self.common_pairs(inner, outer) {
            return share;
        }
        let rows = match &leaf.rel {
            Rel::Table(table) => {
                let unique = 1.0 / self.equal_share(Some(table), inner, None).max(1e-12);
                (unique * self.narrowed(inner)).max(self.distinct_values(outer, left_rows))
            }
            _ => self
                .distinct_values(inner, leaf.estimate.rows)
                .max(leaf.estimate.rows.min(200.0))
                .max(self.known_distinct(outer).map_or(0.0, |count| count.min(left_rows))),
        };
        1.0 / rows.max(1.0)
    }

    /// Adds what follows from other conditions by a join's key.
    pub fn add_implied(&self, conditions: &mut Vec<Expr>, more: Vec<Expr>) {
        let new = more.into_iter().filter(|e| super::leaf::add_new(conditions, e));
        self.implied.borrow_mut().extend(new);
    }

    /// The conditions but those about a key that the row which looks for partners has proved.
    pub fn without_implied(&self, conditions: &[Expr], on: &[Expr]) -> Vec<Expr> {
        let implied = self.implied.borrow();
        let keys = || on.iter().filter_map(super::leaf::equal_columns);
        let proved = |e: &Expr| {
            let used = Cols::of(e);
            keys().any(|(a, b, _)| used.contains(a) || used.contains(b))
                && implied.iter().any(|known| walk::same(known, e))
        };
        match implied.is_empty() {
            true => conditions.to_vec(),
            false => conditions.iter().filter(|e| !proved(e)).cloned().collect(),
        }
    }

    /// Notes of the columns that joins equate what share of their values the conditions about them alone
    /// leave: so many partners fewer each side has.
    fn note_narrowed(&self, leaves: &[Leaf], joins: &[Expr]) {
        for e in joins {
            let Expr::Call { function, args, .. } = e else { continue };
            if !walk::is_equality(function) {
                continue;
            }
            for col in args.iter().filter_map(super::selectivity::plain_column) {
                let leaf = leaves.iter().find(|l| l.cols.contains(col));
                let Some((Rel::Table(table), leaf)) = leaf.map(|l| (&l.rel, l)) else { continue };
                let about_it = |e: &&Expr| is_about(e, col, &leaf.cols);
                let own: Vec<Expr> = leaf.conditions.iter().filter(about_it).cloned().collect();
                if !own.is_empty() {
                    let share = self.selectivity(Some(table), &own);
                    self.narrowed.borrow_mut().insert(col, share);
                }
            }
        }
    }

    /// What a nested loop costs that reads a table through an index for each left row.
    /// `keys`: see [`Self::run_keys`].
    pub fn index_loop_cost(&self, left: &Estimate, path: &Path, rows: f64, keys: &Cols) -> f64 {
        let forbidden = match self.cx.settings.bool(setting::ENABLE_NESTLOOP) {
            true => 0.0,
            false => cost::DISABLED,
        };
        let costs = Costs::of(self.cx.settings);
        let run = self.memoized_run(left.rows, &path.estimate, keys).unwrap_or(path.estimate);
        left.total + left.rows.max(1.0) * run.total + rows * costs.tuple + forbidden
    }

    /// What the cheapest hash join costs until a share of its rows has been read, and whether its table is
    /// made of the left side.
    pub fn hash_cost(
        &self,
        kind: JoinKind,
        left: &Estimate,
        right: &Estimate,
        (share, read): (f64, f64),
    ) -> (f64, bool) {
        let costs = Costs::of(self.cx.settings);
        let rows = (left.rows * right.rows * share).max(1.0);
        let straight = cost::hash_join(left, right, rows, &costs).until(read);
        let mut flipped = cost::hash_join(right, left, rows, &costs);
        if !kind.flipped().gives_left() {
            // Rows of the table come when the other side is at its end.
            flipped.startup = flipped.total;
        }
        let flipped = flipped.until(read);
        match kind {
            JoinKind::Full => (straight, false),
            _ => (straight.min(flipped), flipped < straight),
        }
    }

    /// Plans a leaf that may be planned in another order yet.
    fn leaf_side(&mut self, leaf: Leaf, phys: Option<PhysicalPlan>, need: &Cols) -> Result<Side> {
        if let Some(phys) = phys {
            return Ok(Side::planned(phys));
        }
        let again = one_table(&leaf.rel, &leaf.conditions);
        let phys = self.leaf(leaf.rel, leaf.conditions, need, &RequiredProperties::default())?;
        Ok(Side { phys, again })
    }

    /// `streams`: the first rows are wanted soon.
    fn join_step(
        &mut self,
        left: Side,
        Ready { leaf, phys }: Ready,
        ready: Vec<Expr>,
        need: &Cols,
        method: Method,
        streams: bool,
    ) -> Result<PhysicalPlan> {
        let share = {
            let ready: Vec<&Expr> = ready.iter().collect();
            self.joint_share(&ready, left.phys.plan.estimate.rows, &leaf)
        };
        match method {
            Method::Hash { flipped } => {
                let leaf = Ready { leaf, phys };
                self.join_by_keys(left, leaf, ready, need, flipped, share, streams)
            }
            Method::Index(path) => {
                let left = left.phys;
                let Rel::Table(table) = leaf.rel else {
                    return Err(base::err!(INTERNAL_ERROR, "index of something else than a table"));
                };
                let all = [self.without_implied(&leaf.conditions, &ready), ready].concat();
                let rows = (left.plan.estimate.rows * leaf.estimate.rows * share).round().max(1.0);
                let keys = self.run_keys(&table, &all);
                let total = self.index_loop_cost(&left.plan.estimate, &path, rows, &keys);
                let mut joined = self.look_up(left, &table, JoinKind::Inner, all, path, need)?;
                (joined.plan.estimate.rows, joined.plan.estimate.total) = (rows, total);
                Ok(joined)
            }
            Method::Loop => {
                let left = left.phys;
                let mark = self.env.len();
                let lateral = !leaf.depends.is_empty();
                let slots = self.bind_slots(&leaf.depends, &left)?;
                let keeps = lateral && self.may_memoize(&leaf.rel, &leaf.conditions);
                let mut outer: Cols = leaf.rel.outer_columns().into_iter().collect();
                leaf.conditions.iter().for_each(|e| outer.add(&Cols::of(e)));
                let outer: Cols = outer.iter().filter(|c| !leaf.cols.contains(*c)).collect();
                let right = match phys {
                    Some(phys) => phys,
                    None => {
                        self.leaf(leaf.rel, leaf.conditions, need, &RequiredProperties::default())?
                    }
                };
                let (right, run) = match keeps {
                    true => self.memoize(&left, right, &outer, true),
                    false => (right, None),
                };
                self.env.truncate(mark);
                let mut layout = left.cols.clone();
                layout.extend(&right.cols);
                let condition = self.condition(ready, &layout)?;
                let kind = JoinKind::Inner;
                let joined = self.loop_phys(left, right, kind, slots, condition, share, lateral);
                Ok(with_run_cost(joined, run))
            }
        }
    }

    /// A hash or merge join.
    #[allow(clippy::too_many_arguments)]
    fn join_by_keys(
        &mut self,
        left: Side,
        Ready { leaf, phys }: Ready,
        ready: Vec<Expr>,
        need: &Cols,
        flipped: bool,
        share: f64,
        streams: bool,
    ) -> Result<PhysicalPlan> {
        let covered: Cols = left.phys.cols.iter().copied().collect();
        let (keys, rest) = split_equi(ready, &covered, &leaf.cols);
        let mut wanted = need.clone();
        rest.iter().for_each(|e| wanted.add(&Cols::of(e)));
        let right = self.leaf_side(leaf, phys, &wanted)?;
        let kind = JoinKind::Inner;
        if streams {
            return self.hash_join_of(left.phys, right.phys, kind, keys, rest, share, flipped);
        }
        let (l, r) = (&left.phys.plan.estimate, &right.phys.plan.estimate);
        let (hashed, _) = self.hash_cost(kind, l, r, (share, 1.0));
        let (left, right) = match self.merge_join(
            left,
            right,
            kind,
            &keys,
            &rest,
            share,
            (hashed, 1.0),
            &wanted,
        )? {
            Ok(merged) => return Ok(merged),
            Err(sides) => sides,
        };
        self.hash_join_of(left, right, kind, keys, rest, share, flipped)
    }

    /// A hash join whose table is made of the right side, or (`flipped`) of the left one.
    #[allow(clippy::too_many_arguments)]
    pub fn hash_join_of(
        &mut self,
        left: PhysicalPlan,
        right: PhysicalPlan,
        kind: JoinKind,
        keys: Vec<(Expr, Expr)>,
        rest: Vec<Expr>,
        share: f64,
        flipped: bool,
    ) -> Result<PhysicalPlan> {
        if !flipped {
            return self.hash_join(left, right, kind, keys, rest, share);
        }
        let keys = keys.into_iter().map(|(l, r)| (r, l)).collect();
        self.hash_join(right, left, kind.flipped(), keys, rest, share)
    }

    /// Gives slots to those of the columns that the left side has.
    pub fn bind_slots(&mut self, outer: &Cols, left: &PhysicalPlan) -> Result<Vec<(u16, Expr)>> {
        let mut slots = Vec::new();
        for (at, col) in left.cols.iter().enumerate() {
            if outer.contains(*col) {
                let slot = self.new_slot()?;
                let ty = self.vars[usize::from(*col)].ty;
                slots.push((slot, Expr::Column(at as u16, ty)));
                self.env.push((*col, slot));
            }
        }
        Ok(slots)
    }

    /// A hash join of two planned sides.
    fn hash_join(
        &mut self,
        left: PhysicalPlan,
        right: PhysicalPlan,
        kind: JoinKind,
        keys: Vec<(Expr, Expr)>,
        rest: Vec<Expr>,
        share: f64,
    ) -> Result<PhysicalPlan> {
        let mut layout = left.cols.clone();
        layout.extend(&right.cols);
        let mut resolved = Vec::with_capacity(keys.len());
        for (l, r) in keys {
            resolved.push((self.resolve(l, &left.cols)?, self.resolve(r, &right.cols)?));
        }
        let condition = self.condition(rest, &layout)?;
        let (l, r) = (&left.plan.estimate, &right.plan.estimate);
        let rows = (l.rows * r.rows * share).max(1.0);
        let mut estimate = cost::hash_join(l, r, rows, &Costs::of(self.cx.settings));
        outer_rows(&mut estimate, kind, l, r);
        if !kind.gives_left() {
            // The table's rows come when the other side is at its end.
            estimate.startup = estimate.total;
        }
        let cols = match (kind.gives_left(), kind.gives_right()) {
            (_, false) => left.cols,
            (false, _) => right.cols,
            (true, true) => layout,
        };
        let node = Node::HashJoin {
            left: Box::new(left.plan),
            right: Box::new(right.plan),
            kind,
            keys: resolved,
            condition,
            shared: false,
        };
        Ok(PhysicalPlan { plan: Plan { node, estimate }, cols, order: Vec::new() })
    }

    /// A nested loop of two planned sides.
    #[allow(clippy::too_many_arguments)]
    pub fn loop_phys(
        &mut self,
        left: PhysicalPlan,
        right: PhysicalPlan,
        kind: JoinKind,
        slots: Vec<(u16, Expr)>,
        condition: Option<Expr>,
        share: f64,
        rerun: bool,
    ) -> PhysicalPlan {
        let (l, r) = (&left.plan.estimate, &right.plan.estimate);
        // Through an index the right side's estimate has the join condition in it already.
        let share = if rerun && condition.is_none() { 1.0 } else { share };
        let rows = (l.rows * r.rows * share).max(1.0);
        let mut estimate = cost::loop_join(l, r, rows, rerun, &Costs::of(self.cx.settings));
        outer_rows(&mut estimate, kind, l, r);
        let mut cols = left.cols;
        if kind.gives_right() {
            cols.extend(&right.cols);
        }
        let node = Node::NestedLoop {
            left: Box::new(left.plan),
            right: Box::new(right.plan),
            kind,
            slots,
            condition,
        };
        PhysicalPlan { plan: Plan { node, estimate }, cols, order: left.order }
    }
}

/// Whether a condition is about this one of a leaf's columns alone.
fn is_about(e: &Expr, col: Col, of_leaf: &Cols) -> bool {
    let used = Cols::of(e);
    used.contains(col) && used.iter().all(|c| c == col || !of_leaf.contains(c))
}

/// The conditions that are about no row of the leaves, so that they hold for all rows or for none, and the others:
/// they are computed before anything is read. (A table's own conditions are its scan's.)
fn split_once(leaves: &[Rel], conditions: Vec<Expr>) -> (Vec<Expr>, Vec<Expr>) {
    if matches!(leaves, [] | [Rel::Table(_) | Rel::System { .. } | Rel::Barrier { .. }]) {
        return (Vec::new(), conditions);
    }
    let mut own = Cols::default();
    leaves.iter().for_each(|leaf| own.add(&Cols::output(leaf)));
    conditions.into_iter().partition(|e| own.leave_constant(e))
}

/// A subquery that depends on the row.
fn is_correlated(e: &Expr) -> bool {
    matches!(e, Expr::Subquery(s) if !s.slots.is_empty())
}

fn is_any(leaves: &[Leaf], col: Col) -> bool {
    leaves.iter().any(|l| l.cols.contains(col))
}

pub(crate) fn outer_rows(
    estimate: &mut Estimate,
    kind: JoinKind,
    left: &Estimate,
    right: &Estimate,
) {
    match kind {
        JoinKind::Left => estimate.rows = estimate.rows.max(left.rows),
        JoinKind::Right => estimate.rows = estimate.rows.max(right.rows),
        JoinKind::Full => estimate.rows = estimate.rows.max(left.rows + right.rows),
        JoinKind::Semi | JoinKind::Anti => {
            estimate.rows = (left.rows * 0.5).max(1.0);
            estimate.width = left.width;
        }
        JoinKind::RightSemi | JoinKind::RightAnti => {
            estimate.rows = (right.rows * 0.5).max(1.0);
            estimate.width = right.width;
        }
        JoinKind::Inner => {}
    }
}

/// Both sides of an equality between the left columns and the right ones, of one hashable type (integers of
/// several widths are brought to the widest).
pub(crate) fn equi_sides(e: &Expr, left: &Cols, right: &Cols) -> Option<(Expr, Expr)> {
    let Expr::Call { function, args, .. } = e else { return None };
    let [a, b] = &**args else { return None };
    if !walk::is_equality(function) || walk::is_volatile(e) {
        return None;
    }
    let (a, b) = &super::index::of_one_type(a, b)?;
    let sides = |l: &Expr, r: &Expr| {
        let (lc, rc) = (Cols::of(l), Cols::of(r));
        lc.intersects(left) && !lc.intersects(right) && rc.intersects(right) && !rc.intersects(left)
    };
    if sides(a, b) {
        return Some((a.clone(), b.clone()));
    }
    sides(b, a).then(|| (b.clone(), a.clone()))
}

/// Splits join conditions into hash keys and the rest.
pub(crate) fn split_equi(
    list: Vec<Expr>,
    left: &Cols,
    right: &Cols,
) -> (Vec<(Expr, Expr)>, Vec<Expr>) {
    let mut keys = Vec::new();
    let mut rest = Vec::new();
    for e in list {
        match equi_sides(&e, left, right) {
            Some(pair) => keys.push(pair),
            None => rest.push(e),
        }
    }
    (keys, rest)
}

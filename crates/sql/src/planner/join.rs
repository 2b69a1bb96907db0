//! FROM and WHERE: inner joins are taken apart into leaves and conditions, conditions sink to their
//! leaves, and the leaves are joined again in the order that costs least.
//!
//! The order is found greedily from each possible first leaf: always the next leaf that makes the
//! cheapest join. A step is a hash join, a nested loop whose right side is read through an index
//! with values of the left row, or a plain nested loop.

use base::Result;

use crate::expr::Expr;
use crate::logical::{Col, Rel};
use crate::plan::{Estimate, JoinKind, Node, Plan};
use crate::walk;

use super::cols::Cols;
use super::cost::{self, Costs};
use super::scan::Path;
use super::{Goal, Phys, Planner, filtered};

/// Inner joins taken apart.
#[derive(Default)]
pub(crate) struct Graph {
    /// What is joined.
    pub leaves: Vec<Rel>,
    /// All conditions.
    pub conditions: Vec<Expr>,
    /// Computed columns of subqueries that were merged into this one.
    pub pulled: Vec<(Col, Expr)>,
}

/// How the next leaf is joined.
enum Method {
    /// Hash join on the equalities among the conditions; the table is made of the leaf, or
    /// (`flipped`) of what is joined already.
    Hash { flipped: bool },
    /// Through an index, with values of the left side.
    Index(Path),
    /// Every pair; the right side again for each left row if it depends on it.
    Loop,
}

/// A leaf with what is known about it.
struct Leaf {
    rel: Rel,
    cols: Cols,
    /// Columns of other leaves that it uses (LATERAL).
    depends: Cols,
    conditions: Vec<Expr>,
    estimate: Estimate,
}

impl Graph {
    /// Takes a tree apart.
    pub fn add(&mut self, rel: Rel) -> Result<()> {
        sched::check_stack()?;
        match rel {
            Rel::Filter { input, conditions } => {
                self.add(*input)?;
                for condition in conditions {
                    let condition = self.current(condition);
                    self.conditions.push(condition);
                }
            }
            Rel::Join { kind: JoinKind::Inner, left, right, on } => {
                self.add(*left)?;
                self.add(*right)?;
                for condition in on {
                    let condition = self.current(condition);
                    self.conditions.push(condition);
                }
            }
            Rel::Project { input, exprs, set: false }
                if !exprs.iter().any(|(_, e)| walk::is_volatile(e)) =>
            {
                self.add(*input)?;
                for (col, e) in exprs {
                    let e = self.current(e);
                    self.pulled.push((col, e));
                }
            }
            Rel::OneRow => {}
            mut other => {
                if !self.pulled.is_empty() {
                    let pulled = std::mem::take(&mut self.pulled);
                    other.map_exprs(&|e| replace(e, &pulled));
                    self.pulled = pulled;
                }
                self.leaves.push(other);
            }
        }
        Ok(())
    }

    /// Takes a tree apart to whose columns the rest of the graph may refer already: what is merged
    /// of it is replaced there.
    pub fn add_late(&mut self, rel: Rel) -> Result<()> {
        let (pulled, leaves) = (self.pulled.len(), self.leaves.len());
        let conditions = self.conditions.len();
        self.add(rel)?;
        let merged = self.pulled[pulled..].to_vec();
        if merged.is_empty() {
            return Ok(());
        }
        for condition in &mut self.conditions[..conditions] {
            *condition = replace(condition.clone(), &merged);
        }
        for (_, e) in &mut self.pulled[..pulled] {
            *e = replace(e.clone(), &merged);
        }
        self.leaves[..leaves].iter_mut().for_each(|leaf| leaf.map_exprs(&|e| replace(e, &merged)));
        Ok(())
    }

    /// An expression in terms of the leaves' columns.
    pub fn current(&self, e: Expr) -> Expr {
        if self.pulled.is_empty() { e } else { replace(e, &self.pulled) }
    }
}

fn replace(e: Expr, pulled: &[(Col, Expr)]) -> Expr {
    walk::substitute(e, &|col| pulled.iter().find(|(c, _)| *c == col).map(|(_, e)| e.clone()))
}

impl Planner<'_> {
    /// Plans FROM with WHERE.
    pub fn from(&mut self, rel: Rel, need: &Cols, goal: &Goal) -> Result<Phys> {
        let mut graph = Graph::default();
        graph.add(rel)?;
        self.simplify(&mut graph)?;
        // What was merged is computed above the joins.
        let pulled: Vec<(Col, Expr)> =
            graph.pulled.iter().filter(|(c, _)| need.contains(*c)).cloned().collect();
        let mut inner_need = need.clone();
        pulled.iter().for_each(|(_, e)| inner_need.add(&Cols::of(e)));
        if pulled.is_empty() {
            return self.graph(graph, &inner_need, goal);
        }
        let computed: Cols = pulled.iter().map(|(c, _)| *c).collect();
        let mut exprs = pulled;
        let mut available = Cols::default();
        graph.leaves.iter().for_each(|l| available.add(&Cols::output(l)));
        for col in need.iter().filter(|c| !computed.contains(*c) && available.contains(*c)) {
            exprs.push((col, self.column(col)));
        }
        let inner_goal = super::order::through(goal, &exprs);
        let phys = self.graph(graph, &inner_need, &inner_goal)?;
        self.project_phys(phys, exprs)
    }

    /// A projection over a planned step.
    pub fn project_phys(&mut self, mut phys: Phys, exprs: Vec<(Col, Expr)>) -> Result<Phys> {
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
        Ok(Phys { plan: Plan { node, estimate }, cols, order })
    }

    fn graph(&mut self, mut graph: Graph, need: &Cols, goal: &Goal) -> Result<Phys> {
        let never =
            |e: &Expr| matches!(e, Expr::Const(types::Datum::Bool(false) | types::Datum::Null, _));
        if graph.conditions.iter().any(never) {
            return Ok(self.nothing(need));
        }
        let semi = self.take_semi_joins(&mut graph)?;
        let semi = self.semi_as_inner(&mut graph, semi);
        if !semi.is_empty() {
            // Subqueries that are run for each row wait until the joins have left few rows.
            let (late, early) = graph.conditions.into_iter().partition(walk::has_subquery);
            graph.conditions = early;
            return self.semi_joins_then(graph, semi, late, need);
        }
        if graph.leaves.is_empty() {
            let condition = self.condition(graph.conditions, &[])?;
            let plan = Plan { node: Node::OneRow, estimate: cost::one_row() };
            let phys = Phys { plan, cols: Vec::new(), order: Vec::new() };
            return Ok(filtered(phys, condition, 1.0));
        }
        if graph.leaves.len() == 1
            && let Some(leaf) = graph.leaves.pop()
        {
            return self.leaf(leaf, graph.conditions, need, goal);
        }
        self.join_leaves(graph, need)
    }

    /// Joins several leaves.
    fn join_leaves(&mut self, graph: Graph, need: &Cols) -> Result<Phys> {
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
                conditions: Vec::new(),
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
        joins.iter().for_each(|e| infer_from_arms(&mut leaves, e));
        joins.iter().for_each(|e| total_need.add(&Cols::of(e)));
        leaves.iter().for_each(|l| total_need.add(&l.depends));
        for leaf in &mut leaves {
            leaf.estimate = self.leaf_estimate(leaf);
        }
        let steps = self.choose_order(&leaves, &joins);
        let mut slots: Vec<Option<Leaf>> = leaves.into_iter().map(Some).collect();
        let mut joined: Option<Phys> = None;
        let mut pending = joins;
        let mut covered = Cols::default();
        for (at, method) in steps {
            let Some(leaf) = slots[at].take() else { continue };
            covered.add(&leaf.cols);
            let (ready, later): (Vec<Expr>, Vec<Expr>) = pending.into_iter().partition(|e| {
                let used: Cols = Cols::of(e).iter().filter(|c| all.contains(*c)).collect();
                joined.is_some() && used.is_subset(&covered)
            });
            pending = later;
            joined = Some(match joined {
                None => self.leaf(leaf.rel, leaf.conditions, &total_need, &Goal::default())?,
                Some(left) => self.join_step(left, leaf, ready, &total_need, method)?,
            });
        }
        let Some(mut phys) = joined else {
            return Err(base::err!(INTERNAL_ERROR, "join of nothing"));
        };
        constant.extend(pending);
        let condition = self.condition(constant, &phys.cols)?;
        phys = filtered(phys, condition, 1.0);
        Ok(phys)
    }

    fn leaf_estimate(&self, leaf: &Leaf) -> Estimate {
        match &leaf.rel {
            Rel::Table(table) => self.best_path(table, &leaf.conditions, &Goal::default()).estimate,
            Rel::System { .. } => {
                let share = self.selectivity(None, &leaf.conditions);
                let share = if leaf.conditions.is_empty() { 1.0 } else { share };
                cost::system(share, 64)
            }
            Rel::Function { calls, .. } => cost::function(most_rows(calls), 8),
            Rel::Values { rows, .. } => cost::values(rows.len(), 8),
            Rel::Join { left, .. } => {
                let mut tables = 0.0;
                count_rows(self, left, &mut tables);
                Estimate {
                    startup: 0.0,
                    total: tables * 0.05 + 100.0,
                    rows: tables.max(1.0),
                    width: 64,
                }
            }
            other => {
                let mut rows = 0.0;
                count_rows(self, other, &mut rows);
                let share = self.selectivity(None, &leaf.conditions);
                let rows = match other {
                    Rel::Aggregate { plain: true, .. } => 1.0,
                    Rel::Aggregate { .. } | Rel::Distinct { .. } => (rows * 0.1).max(1.0),
                    _ => rows,
                };
                Estimate {
                    startup: 0.0,
                    total: rows * 0.1 + 10.0,
                    rows: (rows * share).max(1.0),
                    width: 64,
                }
            }
        }
    }

    /// The order of joining, and how each leaf is joined.
    fn choose_order(&self, leaves: &[Leaf], joins: &[Expr]) -> Vec<(usize, Method)> {
        let mut best: Option<(f64, Vec<(usize, Method)>)> = None;
        // More than a dozen relations: only the smallest may come first.
        let mut starts: Vec<usize> = (0..leaves.len()).collect();
        starts.sort_by(|a, b| leaves[*a].estimate.rows.total_cmp(&leaves[*b].estimate.rows));
        starts.truncate(if leaves.len() > 12 { 2 } else { 12 });
        for start in starts {
            if !leaves[start].depends.is_empty() {
                continue;
            }
            let limit = best.as_ref().map_or(f64::INFINITY, |b| b.0);
            if let Some((cost, steps)) = self.greedy(leaves, joins, start, limit)
                && cost < limit
            {
                best = Some((cost, steps));
            }
        }
        match best {
            Some((_, steps)) => steps,
            None => (0..leaves.len()).map(|i| (i, Method::Loop)).collect(),
        }
    }

    fn greedy(
        &self,
        leaves: &[Leaf],
        joins: &[Expr],
        start: usize,
        limit: f64,
    ) -> Option<(f64, Vec<(usize, Method)>)> {
        let mut steps = vec![(start, Method::Loop)];
        let mut covered = leaves[start].cols.clone();
        let mut current = leaves[start].estimate;
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
                let (method, estimate) = self.best_method(&current, leaf, &ready, &covered);
                let linked = !ready.is_empty() || !leaf.depends.is_empty();
                let better = best
                    .as_ref()
                    .is_none_or(|(_, _, e, l)| (linked, -estimate.total) > (*l, -e.total));
                if better {
                    best = Some((place, method, estimate, linked));
                }
            }
            let (place, method, estimate, _) = best?;
            let at = left.swap_remove(place);
            covered.add(&leaves[at].cols);
            current = estimate;
            steps.push((at, method));
            if current.total >= limit {
                return None;
            }
        }
        Some((current.total, steps))
    }

    fn best_method(
        &self,
        left: &Estimate,
        leaf: &Leaf,
        ready: &[&Expr],
        covered: &Cols,
    ) -> (Method, Estimate) {
        let costs = Costs::of(self.cx.settings);
        let share = self.joint_share(ready, left.rows, leaf);
        let rows = (left.rows * leaf.estimate.rows * share).max(1.0);
        let lateral = !leaf.depends.is_empty();
        let mut estimate = cost::loop_join(left, &leaf.estimate, rows, lateral);
        if !costs.nestloop {
            estimate.total += cost::DISABLED;
        }
        let mut best = (Method::Loop, estimate);
        if !lateral && ready.iter().any(|e| equi_sides(e, covered, &leaf.cols).is_some()) {
            for flipped in [false, true] {
                let (probe, build) =
                    if flipped { (&leaf.estimate, left) } else { (left, &leaf.estimate) };
                let mut estimate = cost::hash_join(probe, build, rows);
                if !costs.hashjoin {
                    estimate.total += cost::DISABLED;
                }
                if estimate.total < best.1.total {
                    best = (Method::Hash { flipped }, estimate);
                }
            }
        }
        if let Rel::Table(table) = &leaf.rel
            && !ready.is_empty()
        {
            let mut all = leaf.conditions.clone();
            all.extend(ready.iter().map(|e| (*e).clone()));
            let path = self.best_path(table, &all, &Goal::default());
            let uses_left = path
                .index
                .as_ref()
                .is_some_and(|(_, m)| m.used.iter().any(|i| *i >= leaf.conditions.len()));
            if uses_left {
                let mut estimate = cost::loop_join(left, &path.estimate, rows, true);
                estimate.total = left.total + left.rows.max(1.0) * self.run_cost(table, &path);
                if !costs.nestloop {
                    estimate.total += cost::DISABLED;
                }
                estimate.rows = rows.round().max(1.0);
                if estimate.total < best.1.total {
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
        let rows = match &leaf.rel {
            Rel::Table(table) => {
                let unique = 1.0 / self.equal_share(Some(table), inner, None).max(1e-12);
                unique.max(self.distinct_values(outer, left_rows))
            }
            _ => self.distinct_values(inner, leaf.estimate.rows).max(leaf.estimate.rows.min(200.0)),
        };
        1.0 / rows.max(1.0)
    }

    fn join_step(
        &mut self,
        left: Phys,
        leaf: Leaf,
        ready: Vec<Expr>,
        need: &Cols,
        method: Method,
    ) -> Result<Phys> {
        let covered: Cols = left.cols.iter().copied().collect();
        let share = {
            let ready: Vec<&Expr> = ready.iter().collect();
            self.joint_share(&ready, left.plan.estimate.rows, &leaf)
        };
        match method {
            Method::Hash { flipped } => {
                let (keys, rest) = split_equi(ready, &covered, &leaf.cols);
                let mut wanted = need.clone();
                rest.iter().for_each(|e| wanted.add(&Cols::of(e)));
                let right = self.leaf(leaf.rel, leaf.conditions, &wanted, &Goal::default())?;
                if flipped {
                    let keys = keys.into_iter().map(|(l, r)| (r, l)).collect();
                    return self.hash_join(right, left, JoinKind::Inner, keys, rest, share);
                }
                self.hash_join(left, right, JoinKind::Inner, keys, rest, share)
            }
            Method::Index(path) => {
                let Rel::Table(table) = leaf.rel else {
                    return Err(base::err!(INTERNAL_ERROR, "index of something else than a table"));
                };
                let mut all = leaf.conditions;
                all.extend(ready);
                let mut outer = Cols::default();
                all.iter().for_each(|e| outer.add(&Cols::of(e)));
                let mark = self.env.len();
                let slots = self.bind_slots(&outer, &left)?;
                let right = self.table_scan(&table, all, need, path)?;
                self.env.truncate(mark);
                Ok(self.loop_phys(left, right, JoinKind::Inner, slots, None, share, true))
            }
            Method::Loop => {
                let mark = self.env.len();
                let lateral = !leaf.depends.is_empty();
                let slots = self.bind_slots(&leaf.depends, &left)?;
                let right = self.leaf(leaf.rel, leaf.conditions, need, &Goal::default())?;
                self.env.truncate(mark);
                let mut layout = left.cols.clone();
                layout.extend(&right.cols);
                let condition = self.condition(ready, &layout)?;
                Ok(self.loop_phys(left, right, JoinKind::Inner, slots, condition, share, lateral))
            }
        }
    }

    /// Gives slots to those of the columns that the left side has.
    pub fn bind_slots(&mut self, outer: &Cols, left: &Phys) -> Result<Vec<(u16, Expr)>> {
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
    pub fn hash_join(
        &mut self,
        left: Phys,
        right: Phys,
        kind: JoinKind,
        keys: Vec<(Expr, Expr)>,
        rest: Vec<Expr>,
        share: f64,
    ) -> Result<Phys> {
        let mut layout = left.cols.clone();
        layout.extend(&right.cols);
        let mut resolved = Vec::with_capacity(keys.len());
        for (l, r) in keys {
            resolved.push((self.resolve(l, &left.cols)?, self.resolve(r, &right.cols)?));
        }
        let condition = self.condition(rest, &layout)?;
        let (l, r) = (&left.plan.estimate, &right.plan.estimate);
        let rows = (l.rows * r.rows * share).max(1.0);
        let mut estimate = cost::hash_join(l, r, rows);
        outer_rows(&mut estimate, kind, l, r);
        let cols = if left_only(kind) { left.cols } else { layout };
        let node = Node::HashJoin {
            left: Box::new(left.plan),
            right: Box::new(right.plan),
            kind,
            keys: resolved,
            condition,
        };
        Ok(Phys { plan: Plan { node, estimate }, cols, order: Vec::new() })
    }

    /// A nested loop of two planned sides.
    #[allow(clippy::too_many_arguments)]
    pub fn loop_phys(
        &mut self,
        left: Phys,
        right: Phys,
        kind: JoinKind,
        slots: Vec<(u16, Expr)>,
        condition: Option<Expr>,
        share: f64,
        rerun: bool,
    ) -> Phys {
        let (l, r) = (&left.plan.estimate, &right.plan.estimate);
        // Through an index the right side's estimate has the join condition in it already.
        let share = if rerun && condition.is_none() { 1.0 } else { share };
        let rows = (l.rows * r.rows * share).max(1.0);
        let mut estimate = cost::loop_join(l, r, rows, rerun);
        outer_rows(&mut estimate, kind, l, r);
        let mut cols = left.cols;
        if !left_only(kind) {
            cols.extend(&right.cols);
        }
        let node = Node::NestedLoop {
            left: Box::new(left.plan),
            right: Box::new(right.plan),
            kind,
            slots,
            condition,
        };
        Phys { plan: Plan { node, estimate }, cols, order: left.order }
    }

    /// Plans one leaf with the conditions that belong to it.
    pub fn leaf(
        &mut self,
        rel: Rel,
        conditions: Vec<Expr>,
        need: &Cols,
        goal: &Goal,
    ) -> Result<Phys> {
        match rel {
            Rel::Table(table) => {
                let mut conditions = conditions;
                conditions.retain(|e| !is_never_null(e, &table));
                let path = self.best_path(&table, &conditions, goal);
                self.table_scan(&table, conditions, need, path)
            }
            Rel::System { table, base } => self.system_scan(table, base, conditions, need),
            Rel::Function { calls, ordinality, cols } => {
                let filter = self.condition(conditions, &cols)?;
                let estimate = cost::function(most_rows(&calls), self.width(&cols));
                let calls = self.resolve_all(calls, &[])?;
                let node = Node::FunctionScan { calls, ordinality, filter };
                Ok(Phys { plan: Plan { node, estimate }, cols, order: Vec::new() })
            }
            Rel::Join { kind, left, right, on } => {
                self.outer_join(kind, *left, *right, on, conditions, need)
            }
            Rel::Append { mut inputs, cols } if !conditions.is_empty() => {
                // UNION ALL: each branch filters for itself.
                for input in &mut inputs {
                    let below = |col: Col| {
                        let at = cols.iter().position(|c| *c == col)?;
                        Some(self.column(input.cols[at]))
                    };
                    let list =
                        conditions.iter().map(|e| walk::substitute(e.clone(), &below)).collect();
                    let rel = std::mem::replace(&mut input.rel, Rel::Nothing);
                    input.rel = Rel::Filter { input: Box::new(rel), conditions: list };
                }
                self.rel(Rel::Append { inputs, cols }, need, goal)
            }
            Rel::Sample { table, method, percent, seed } => {
                let path = self.whole_table(&table, &conditions);
                let mut phys = self.table_scan(&table, conditions, need, path)?;
                let percent = self.resolve(percent, &[])?;
                let seed = seed.map(|e| self.resolve(e, &[])).transpose()?;
                if let Node::SeqScan(scan) = phys.plan.node {
                    phys.plan.node = Node::SampleScan { scan, method, percent, seed };
                }
                Ok(phys)
            }
            Rel::Aggregate { input, groups, aggs, plain: false, sets: None } => {
                // Conditions on the groups' values hold before grouping too.
                let known: Cols = groups.iter().map(|(c, _)| *c).collect();
                let agg_cols: Cols = aggs.iter().map(|(c, _)| *c).collect();
                let (below, above): (Vec<Expr>, Vec<Expr>) =
                    conditions.into_iter().partition(|e| {
                        let used = Cols::of(e);
                        used.intersects(&known)
                            && !used.intersects(&agg_cols)
                            && !walk::is_volatile(e)
                    });
                let below: Vec<Expr> = below
                    .into_iter()
                    .map(|e| {
                        walk::substitute(e, &|col| {
                            groups.iter().find(|(c, _)| *c == col).map(|(_, g)| g.clone())
                        })
                    })
                    .collect();
                let input = crate::bind::select::filter(*input, below);
                let input = Box::new(input);
                let rel = Rel::Aggregate { input, groups, aggs, plain: false, sets: None };
                self.filter_above(rel, above, need, goal)
            }
            Rel::Cte { index, cols, .. } => {
                let phys = self.cte(index, cols)?;
                let share = self.selectivity(None, &conditions);
                let condition = self.condition(conditions, &phys.cols)?;
                Ok(filtered(phys, condition, share))
            }
            other => self.filter_above(other, conditions, need, goal),
        }
    }

    fn filter_above(
        &mut self,
        rel: Rel,
        conditions: Vec<Expr>,
        need: &Cols,
        goal: &Goal,
    ) -> Result<Phys> {
        let mut wanted = need.clone();
        conditions.iter().for_each(|e| wanted.add(&Cols::of(e)));
        let output = Cols::output(&rel);
        let wanted: Cols = wanted.iter().filter(|c| output.contains(*c)).collect();
        let goal = if conditions.is_empty() { goal.clone() } else { Goal::default() };
        let phys = self.rel(rel, &wanted, &goal)?;
        let share = self.selectivity(None, &conditions);
        let condition = self.condition(conditions, &phys.cols)?;
        Ok(filtered(phys, condition, share))
    }

    fn system_scan(
        &mut self,
        table: &'static catalog::system::SystemTable,
        base: Col,
        conditions: Vec<Expr>,
        need: &Cols,
    ) -> Result<Phys> {
        let mut wanted = need.clone();
        conditions.iter().for_each(|e| wanted.add(&Cols::of(e)));
        let last = base + table.columns.len() as Col;
        let cols: Vec<Col> = wanted.iter().filter(|c| (base..last).contains(c)).collect();
        let columns: Vec<u16> = cols.iter().map(|c| c - base).collect();
        let mut equal = Vec::new();
        for e in &conditions {
            let Expr::Call { function, args, .. } = e else { continue };
            let [a, b] = &**args else { continue };
            if !walk::is_equality(function) {
                continue;
            }
            for (column, value) in [(a, b), (b, a)] {
                let Some(col) = super::selectivity::plain_column(column) else { continue };
                let known = !Cols::of(value).iter().any(|c| (base..last).contains(&c))
                    && !walk::has_subquery(value)
                    && !walk::is_volatile(value);
                if (base..last).contains(&col) && known && column.ty() == value.ty() {
                    equal.push((col - base, self.resolve(value.clone(), &[])?));
                }
            }
        }
        let share = if conditions.is_empty() { 1.0 } else { self.selectivity(None, &conditions) };
        let filter = self.condition(conditions, &cols)?;
        let estimate = cost::system(share, self.width(&cols));
        let node = Node::SystemScan { table, columns, equal, filter };
        Ok(Phys { plan: Plan { node, estimate }, cols, order: Vec::new() })
    }
}

/// A subquery that depends on the row.
fn is_correlated(e: &Expr) -> bool {
    matches!(e, Expr::Subquery(s) if !s.slots.is_empty())
}

fn is_any(leaves: &[Leaf], col: Col) -> bool {
    leaves.iter().any(|l| l.cols.contains(col))
}

pub(crate) fn left_only(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Semi | JoinKind::Anti)
}

fn outer_rows(estimate: &mut Estimate, kind: JoinKind, left: &Estimate, right: &Estimate) {
    match kind {
        JoinKind::Left => estimate.rows = estimate.rows.max(left.rows),
        JoinKind::Right => estimate.rows = estimate.rows.max(right.rows),
        JoinKind::Full => estimate.rows = estimate.rows.max(left.rows + right.rows),
        JoinKind::Semi | JoinKind::Anti => {
            estimate.rows = (left.rows * 0.5).max(1.0);
            estimate.width = left.width;
        }
        JoinKind::Inner => {}
    }
}

/// Both sides of an equality between the left columns and the right ones, of one hashable type.
pub(crate) fn equi_sides(e: &Expr, left: &Cols, right: &Cols) -> Option<(Expr, Expr)> {
    let Expr::Call { function, args, .. } = e else { return None };
    let [a, b] = &**args else { return None };
    if !walk::is_equality(function) || a.ty() != b.ty() || walk::is_volatile(e) {
        return None;
    }
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

/// `a.x = b.y` and `a.x = 5` imply `b.y = 5`, which an index of `b` may use.
fn infer_equal_constants(leaves: &mut [Leaf], joins: &[Expr]) {
    for e in joins {
        let Expr::Call { function, args, .. } = e else { continue };
        let [a, b] = &**args else { continue };
        if !walk::is_equality(function) || a.ty() != b.ty() {
            continue;
        }
        for (from, to) in [(a, b), (b, a)] {
            let (Expr::Column(f, _), Expr::Column(t, _)) = (from, to) else { continue };
            let value = leaves.iter().find(|l| l.cols.contains(*f)).and_then(|l| {
                l.conditions.iter().find_map(|c| match c {
                    Expr::Call { function: g, args, .. }
                        if g.oid == function.oid && args.len() == 2 =>
                    {
                        match (&args[0], &args[1]) {
                            (Expr::Column(c, _), v) if c == f && !walk::has_columns(v) => {
                                Some(v.clone())
                            }
                            _ => None,
                        }
                    }
                    _ => None,
                })
            });
            let Some(value) = value else { continue };
            let Some(leaf) = leaves.iter_mut().find(|l| l.cols.contains(*t)) else { continue };
            let implied = Expr::Call {
                function,
                args: Box::new([to.clone(), value]),
                ty: types::oids::BOOL,
                position: 0,
            };
            if !leaf.conditions.iter().any(|c| walk::same(c, &implied)) {
                leaf.conditions.push(implied);
            }
        }
    }
}

/// `(a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4)` implies `a.x = 1 OR a.x = 3`: when every arm says
/// something about one leaf alone, that leaf's rows can be fewer before they are joined.
fn infer_from_arms(leaves: &mut [Leaf], e: &Expr) {
    let Expr::Or(arms) = e else { return };
    for leaf in leaves {
        let about = |part: &&Expr| {
            let used = Cols::of(part);
            !used.is_empty()
                && used.is_subset(&leaf.cols)
                && !walk::is_volatile(part)
                && !walk::has_subquery(part)
        };
        let parts = |arm: &Expr| -> Vec<Expr> {
            match arm {
                Expr::And(parts) => parts.iter().filter(about).cloned().collect(),
                part => Some(part).filter(about).cloned().into_iter().collect(),
            }
        };
        let mut lists: Vec<Vec<Expr>> = arms.iter().map(parts).collect();
        if lists.iter().any(Vec::is_empty) {
            continue;
        }
        let arm = |list: &mut Vec<Expr>| match list.len() {
            1 => list.remove(0),
            _ => Expr::And(std::mem::take(list)),
        };
        leaf.conditions.push(Expr::Or(lists.iter_mut().map(arm).collect()));
    }
}

/// `IS NOT NULL` of a column that can't be.
fn is_never_null(e: &Expr, table: &crate::logical::TableRel) -> bool {
    let Expr::IsNull { arg, negated: true } = e else { return false };
    let Expr::Column(col, _) = **arg else { return false };
    match table.column(col) {
        Some(crate::plan::ScanColumn::Attr(n)) => table.table.columns[usize::from(n) - 1].not_null,
        _ => false,
    }
}

/// Rows that functions side by side give.
fn most_rows(calls: &[Expr]) -> f64 {
    calls.iter().map(set_rows).fold(1.0, f64::max)
}

/// Rows that a function in FROM gives.
fn set_rows(call: &Expr) -> f64 {
    let Expr::Call { function, args, .. } = call else { return 1.0 };
    if !function.returns_set {
        return 1.0;
    }
    let number = |e: &Expr| match e {
        Expr::Const(types::Datum::Int4(n), _) => Some(f64::from(*n)),
        Expr::Const(types::Datum::Int8(n), _) => Some(*n as f64),
        _ => None,
    };
    match (function.name, &**args) {
        ("generate_series", [from, to]) => match (number(from), number(to)) {
            (Some(from), Some(to)) => (to - from + 1.0).max(1.0),
            _ => 1000.0,
        },
        _ => 1000.0,
    }
}

fn count_rows(planner: &Planner<'_>, rel: &Rel, rows: &mut f64) {
    match rel {
        Rel::Table(table) | Rel::Sample { table, .. } => {
            *rows += (planner.cx.table_size)(&table.table).1
        }
        Rel::System { .. } => *rows += 500.0,
        Rel::Function { .. } => *rows += 1000.0,
        Rel::Values { rows: list, .. } => *rows += list.len() as f64,
        other => other.for_inputs(&mut |input| count_rows(planner, input, rows)),
    }
}

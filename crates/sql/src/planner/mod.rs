//! The planner: from the bound query to operators that run.
//!
//! It works top down. Each step is told which columns are needed above and which order would be
//! welcome ([`RequiredProperties`]), and answers with an operator, the columns that it gives, in order, and the
//! order that they come in ([`PhysicalPlan`]). Conditions sink to where their columns are ([`join`]);
//! tables are read by the cheapest way ([`scan`]); joins are ordered by estimated cost.
//!
//! Columns of outer queries, and of the left side of a nested loop whose right side is run with
//! its values, are read from slots: [`Planner::env`] says which slot holds which column.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use base::{Result, err};
use cols::Cols;
use order::By;
use types::Datum;

use crate::expr::{Expr, SubqueryExpr, SubqueryKind};
use crate::logical::{Col, Cte, Input, Query, Rel, Var};
use crate::plan::{Estimate, Node, Plan, Scan, ScanColumn};
use crate::prepare::PrepareContext;
use crate::walk;

pub(crate) mod barrier;
pub(crate) mod bitmap;
pub(crate) mod change;
pub(crate) mod children;
pub(crate) mod cols;
mod contained;
pub(crate) mod cost;
mod eager;
mod extended;
pub(crate) mod foreign;
mod graph;
pub(crate) mod group;
mod groups;
pub(crate) mod index;
pub(crate) mod join;
pub(crate) mod leaf;
pub(crate) mod memoize;
pub(crate) mod merge;
mod nearest;
pub(crate) mod order;
pub(crate) mod outer;
pub(crate) mod parallel;
pub(crate) mod partial;
pub(crate) mod partition;
pub(crate) mod partition_wise;
pub(crate) mod reduce;
pub(crate) mod scan;
pub(crate) mod selectivity;
pub(crate) mod sort;
pub(crate) mod unknown_share;
mod window;
pub(crate) mod with;

/// One key of an order: what, DESC, NULLS FIRST.
pub(crate) type OrderKey = (By, bool, bool);

/// Properties that the step above requires of a plan.
#[derive(Clone, Default)]
pub(crate) struct RequiredProperties {
    /// The order that would spare a sort; empty: none.
    pub order: Vec<OrderKey>,
    /// How many rows will be read, if not all.
    pub rows: Option<f64>,
}

impl RequiredProperties {
    /// The properties of the rows of which this share is left.
    pub fn below(&self, share: f64) -> RequiredProperties {
        let rows = self.rows.map(|rows| rows / share.max(0.0001));
        RequiredProperties { order: self.order.clone(), rows }
    }
}

/// Choices between two ways of planning within others, at most: what lies below them is planned once for each way.
const NESTED_MAX: u32 = 6;

/// The plan of a WITH query. It is made once for all ways of planning what reads it: each reference fills the slots in
/// which it finds the values of outer columns.
#[derive(Clone)]
struct CtePlan {
    /// Its number among the subplans; from `first` on before it are those of its own subqueries.
    plan: usize,
    first: usize,
    /// Those columns, in slots of its own.
    slots: Vec<(Col, u16)>,
}

/// Which subqueries and WITH queries were planned at a time.
pub(crate) struct Mark {
    subplans: usize,
    ctes: Vec<Option<CtePlan>>,
}

/// A physical plan: an operator with the columns and the order of its rows.
#[derive(Clone)]
pub(crate) struct PhysicalPlan {
    /// The operator.
    pub plan: Plan,
    /// Its columns, in order.
    pub cols: Vec<Col>,
    /// The order of its rows.
    pub order: Vec<OrderKey>,
}

/// Plans one statement.
pub(crate) struct Planner<'a> {
    pub cx: &'a PrepareContext<'a>,
    pub vars: Vec<Var>,
    subqueries: Vec<Query>,
    ctes: Vec<Cte>,
    cte_plans: Vec<Option<CtePlan>>,
    /// Recursive WITH queries whose step is being planned, outermost first.
    stepping: Vec<usize>,
    /// Recursive WITH queries and the subplans whose rows each of their rounds changes.
    by_round: Vec<(usize, usize)>,
    /// Finished plans of subqueries.
    pub subplans: Vec<Plan>,
    /// Numbers of those that run once, with the number of rows that are read if that is known.
    pub run_once: Vec<(usize, Option<f64>)>,
    /// Number of slots given out.
    pub slots: u16,
    /// Columns that are in slots, innermost last.
    pub env: Vec<(Col, u16)>,
    /// Values of literals that became parameters, where knowing them may help.
    pub known: Vec<Option<Datum>>,
    /// Leaves within leaves that are planned for their estimates alone.
    pub depth: usize,
    /// Choices between two ways of planning within which the planner is.
    choices: u32,
    /// Statistics of columns, by table and number.
    pub read_stats: RefCell<HashMap<(u32, u16), Option<Rc<selectivity::ReadStats>>>>,
    /// Above 0 while shares are found by statistics of single columns alone.
    pub alone: std::cell::Cell<u32>,
    /// Extended statistics of tables.
    pub extended: RefCell<HashMap<u32, Option<Rc<extended::Extended>>>>,
    /// Share of the values of a column that conditions about it alone leave, where that isn't all.
    pub narrowed: RefCell<HashMap<Col, f64>>,
    /// Conditions that follow from those on columns which joins equate with theirs.
    pub implied: RefCell<Vec<Expr>>,
    /// Parameters whose values the plan relies on.
    pub bound: RefCell<Vec<u32>>,
    /// Distances that a sort above wants a table's rows by, and an index may give them by.
    pub nearest: Option<nearest::Wanted>,
}

impl<'a> Planner<'a> {
    pub fn new(
        cx: &'a PrepareContext<'a>,
        vars: Vec<Var>,
        subqueries: Vec<Query>,
        ctes: Vec<Cte>,
    ) -> Planner<'a> {
        let cte_plans = vec![None; ctes.len()];
        let mut planner = Planner {
            cx,
            vars,
            subqueries,
            ctes,
            cte_plans,
            stepping: Vec::new(),
            by_round: Vec::new(),
            nearest: None,
            subplans: Vec::new(),
            run_once: Vec::new(),
            slots: 0,
            env: Vec::new(),
            known: Vec::new(),
            depth: 0,
            choices: 0,
            read_stats: RefCell::default(),
            alone: std::cell::Cell::default(),
            extended: RefCell::default(),
            narrowed: RefCell::default(),
            implied: RefCell::default(),
            bound: RefCell::default(),
        };
        planner.inline_subqueries();
        planner
    }

    /// Makes the subqueries of expressions ready: they may become part of the query around them.
    fn inline_subqueries(&mut self) {
        let mut subqueries = std::mem::take(&mut self.subqueries);
        for query in &mut subqueries {
            // A query nested too deeply fails again, with its error, when it is planned.
            let _ = self.prepare_rows(&mut query.rel);
        }
        self.subqueries = subqueries;
    }

    /// Plans a query; its output is the query's columns.
    pub fn query(&mut self, mut query: Query, required: &RequiredProperties) -> Result<Plan> {
        self.prepare_rows(&mut query.rel)?;
        let need: Cols = query.cols.iter().copied().collect();
        let phys = self.rel(query.rel, &need, required)?;
        self.arrange(phys, &query.cols)
    }

    /// Which subqueries and WITH queries are planned so far.
    pub fn mark(&self) -> Mark {
        Mark { subplans: self.subplans.len(), ctes: self.cte_plans.clone() }
    }

    /// Forgets what was planned since the mark.
    pub fn forget_since(&mut self, mark: Mark) {
        self.subplans.truncate(mark.subplans);
        self.run_once.retain(|(plan, _)| *plan < mark.subplans);
        self.cte_plans = mark.ctes;
    }

    /// Whether there is still room for a choice: see [`NESTED_MAX`].
    pub fn may_choose(&self) -> bool {
        self.choices < NESTED_MAX
    }

    /// Plans one of the ways of a choice.
    pub fn one_way<R>(&mut self, plan: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        self.choices += 1;
        let planned = plan(self);
        self.choices -= 1;
        planned
    }

    /// The cheaper one of two plans for the same rows. Without a second way, the first.
    ///
    /// # Errors
    /// Those of planning.
    pub fn either(
        &mut self,
        required: &RequiredProperties,
        first: impl FnOnce(&mut Self) -> Result<PhysicalPlan>,
        second: Option<impl FnOnce(&mut Self) -> Result<PhysicalPlan>>,
    ) -> Result<PhysicalPlan> {
        let Some(second) = second.filter(|_| self.may_choose()) else { return first(self) };
        let begin = self.mark();
        let first = self.one_way(first)?;
        let middle = self.mark();
        let second = self.one_way(second)?;
        Ok(self.cheaper([first, second], [begin, middle], required))
    }

    /// The plan that costs less until the required is reached, of two that were planned from the marks on; the
    /// other one's subqueries are forgotten.
    pub fn cheaper(
        &mut self,
        plans: [PhysicalPlan; 2],
        marks: [Mark; 2],
        required: &RequiredProperties,
    ) -> PhysicalPlan {
        let cost = |phys: &PhysicalPlan| self.goal_cost(&phys.plan.estimate, &phys.order, required);
        let ([first, second], [begin, middle]) = (plans, marks);
        if cost(&second) < cost(&first) {
            for number in begin.subplans..middle.subplans {
                // The second plan reads the WITH queries that the first one has planned.
                let shared = |cte: &CtePlan| (cte.first..=cte.plan).contains(&number);
                if !self.cte_plans.iter().flatten().any(shared) {
                    let nothing = Plan { node: Node::Nothing, estimate: Estimate::default() };
                    self.subplans[number] = nothing;
                }
            }
            return second;
        }
        self.forget_since(middle);
        first
    }

    /// A slot for a value.
    pub fn new_slot(&mut self) -> Result<u16> {
        let slot = self.slots;
        self.slots = slot
            .checked_add(1)
            .ok_or_else(|| err!(STATEMENT_TOO_COMPLEX, "statement uses too many outer values"))?;
        Ok(slot)
    }

    /// Replaces column numbers by places in a row with this layout, or by slots.
    pub fn resolve(&mut self, e: Expr, layout: &[Col]) -> Result<Expr> {
        self.resolve_in(e, layout, None)
    }

    fn resolve_in(&mut self, e: Expr, layout: &[Col], base: Option<u16>) -> Result<Expr> {
        sched::check_stack()?;
        match e {
            Expr::Column(col, ty) => {
                if let Some(at) = layout.iter().position(|c| *c == col) {
                    return Ok(Expr::Column(at as u16, ty));
                }
                match self.env.iter().rev().find(|(c, _)| *c == col) {
                    Some((_, slot)) => Ok(Expr::Slot(*slot, ty)),
                    None => Err(err!(
                        INTERNAL_ERROR,
                        "column \"{}\" is not available where it is used",
                        self.vars[usize::from(col)].name
                    )),
                }
            }
            Expr::Slot(n, ty) => Ok(Expr::Slot(n + base.unwrap_or(0), ty)),
            Expr::Subquery(sub) => self.subquery(*sub, layout, base),
            // A NULL decides, and nothing of the other arguments is computed.
            Expr::Call { function, args, ty, .. }
                if function.strict
                    && !function.returns_set
                    && args.iter().any(|arg| matches!(arg, Expr::Const(Datum::Null, _)))
                    && !args.iter().any(walk::has_set) =>
            {
                Ok(Expr::Const(Datum::Null, ty))
            }
            other => walk::map_children(other, &mut |c| self.resolve_in(c, layout, base)),
        }
    }

    pub fn resolve_all(&mut self, list: Vec<Expr>, layout: &[Col]) -> Result<Vec<Expr>> {
        list.into_iter().map(|e| self.resolve(e, layout)).collect()
    }

    /// Conditions as one expression over a layout; None when there are none.
    pub fn condition(&mut self, list: Vec<Expr>, layout: &[Col]) -> Result<Option<Expr>> {
        let mut list = list;
        if list.len() > 1 {
            list.sort_by_cached_key(|e| self.cost_of(e));
        }
        let mut list = self.resolve_all(list, layout)?;
        Ok(match list.len() {
            0 => None,
            1 => list.pop(),
            _ => Some(Expr::And(list)),
        })
    }

    /// What an expression costs for each row, in operators. Of several conditions the cheap ones come first.
    pub fn cost_of(&self, e: &Expr) -> u64 {
        /// Of a subquery, which is run.
        const SUBQUERY: u64 = 10_000;
        let mut all = match e {
            Expr::Call { function, .. } if matches!(function.body, types::func::Body::User) => {
                self.cx.catalog.function(function.oid.0).map_or(100, |f| f.cost.max(0.0) as u64)
            }
            Expr::Subquery(_) => SUBQUERY,
            Expr::Call { .. } | Expr::Distinct { .. } | Expr::NullIf { .. } => 1,
            Expr::ArrayOp { array, .. } => (selectivity::array_length(array) * 0.5) as u64,
            Expr::InOutCast { .. } => 2,
            _ => 0,
        };
        walk::for_children(e, &mut |child| all = all.saturating_add(self.cost_of(child)));
        all
    }

    /// Plans a subquery of an expression.
    fn subquery(&mut self, s: SubqueryExpr, layout: &[Col], base: Option<u16>) -> Result<Expr> {
        let number = s.plan;
        let mut query = self.subqueries[number].clone();
        if matches!(s.kind, SubqueryKind::Exists) {
            query = without_targets(query);
        }
        let memo = matches!(s.kind, SubqueryKind::Scalar | SubqueryKind::Exists)
            && !s.slots.is_empty()
            && s.slots.iter().all(|(_, value)| is_exact(value.ty()))
            && self.is_repeatable(&query.rel);
        let width = query.cols.len() as u16;
        let mut slots = Vec::with_capacity(s.slots.len());
        let mut env = Vec::with_capacity(s.slots.len());
        for (col, value) in s.slots {
            let value = self.resolve_in(value, layout, base)?;
            let slot = self.new_slot()?;
            slots.push((slot, value));
            env.push((col, slot));
        }
        let mark = self.env.len();
        self.env.extend(env);
        let rows = match s.kind {
            SubqueryKind::Exists => Some(1.0),
            _ => None,
        };
        let plan = self.query(query, &RequiredProperties { order: Vec::new(), rows });
        self.env.truncate(mark);
        self.subplans.push(plan?);
        let plan = self.subplans.len() - 1;
        let rel = &self.subqueries[number].rel;
        let rounds = self.rounds_of(&|of| with::RoundReaders::new(self, of).is_rel(rel));
        if slots.is_empty() && rounds.is_empty() {
            self.run_once.push((plan, rows));
        }
        self.by_round.extend(rounds.into_iter().map(|of| (of, plan)));
        let kind = match s.kind {
            SubqueryKind::Compare { test, all, hash_left, .. } => {
                let first_slot = self.slots;
                for _ in 0..width {
                    self.new_slot()?;
                }
                let test = Box::new(self.resolve_in(*test, layout, Some(first_slot))?);
                let hash_left = match hash_left {
                    Some(left) => {
                        let left = left.into_iter().map(|e| self.resolve_in(e, layout, base));
                        Some(left.collect::<Result<_>>()?)
                    }
                    None => None,
                };
                SubqueryKind::Compare { test, first_slot, all, hash_left }
            }
            other => other,
        };
        let once = slots.is_empty();
        Ok(Expr::Subquery(Box::new(SubqueryExpr {
            plan,
            twin: plan,
            slots,
            once,
            memo,
            acts: s.acts,
            kind,
            ty: s.ty,
        })))
    }

    /// Whether a query gives the same rows whenever it is run in a statement with the same values of
    /// outer columns.
    fn is_repeatable(&self, rel: &Rel) -> bool {
        let mut same = !matches!(
            rel,
            Rel::Cte { .. }
                | Rel::WorkTable { .. }
                | Rel::Lock { .. }
                | Rel::Sample { .. }
                | Rel::System { .. }
        );
        let nested = |e: &Expr| match e {
            Expr::Subquery(s) => !self.is_repeatable(&self.subqueries[s.plan].rel),
            _ => false,
        };
        rel.for_exprs(&mut |e| same = same && !walk::is_volatile(e) && !walk::any(e, &nested));
        rel.for_inputs(&mut |input| same = same && self.is_repeatable(input));
        same
    }

    /// Plans an operator.
    pub fn rel(
        &mut self,
        rel: Rel,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        sched::check_stack()?;
        sched::check_interrupts()?;
        match rel {
            Rel::OneRow => Ok(leaf(Node::OneRow, Vec::new(), cost::one_row())),
            Rel::Nothing => Ok(self.nothing(need)),
            Rel::Values { cols, rows } => self.values(cols, rows),
            Rel::Table(_)
            | Rel::System { .. }
            | Rel::Function { .. }
            | Rel::Sample { .. }
            | Rel::Join { .. }
            | Rel::Filter { .. }
            | Rel::Barrier { .. }
            | Rel::Cte { .. } => self.from(rel, need, required),
            Rel::Project { input, exprs, set } => self.project(*input, exprs, set, need, required),
            Rel::Aggregate { input, groups, aggs, plain, sets } => {
                self.aggregate(*input, groups, aggs, plain, sets, need, required)
            }
            Rel::Window { input, partition, order, calls } => {
                self.window(*input, partition, order, calls, need)
            }
            Rel::WorkTable { index, cols } => Ok(self.work_table(index, cols)),
            Rel::Sort { input, keys } => self.sort(*input, keys, need, required),
            Rel::Limit { input, count, offset, ties } => {
                self.limit(*input, (count, offset, ties), need, required)
            }
            Rel::Distinct { input, keys, sorted } => {
                self.distinct(*input, keys, sorted, need, required)
            }
            Rel::Append { inputs, cols } => self.append(inputs, cols, need, required),
            Rel::SetOp { left, right, except, all, cols } => {
                let left = self.input(*left)?;
                let right = self.input(*right)?;
                let estimate = cost::set_op(&left, &right);
                let node =
                    Node::SetOp { left: Box::new(left), right: Box::new(right), except, all };
                Ok(leaf(node, cols, estimate))
            }
            Rel::Lock { input, targets, recheck } => {
                self.lock_rows(*input, targets, recheck, need, required)
            }
        }
    }

    fn input(&mut self, input: Input) -> Result<Plan> {
        let need: Cols = input.cols.iter().copied().collect();
        let phys = self.rel(input.rel, &need, &RequiredProperties::default())?;
        self.arrange(phys, &input.cols)
    }

    /// No rows, of columns whose types a join above needs for its NULLs.
    fn nothing(&self, need: &Cols) -> PhysicalPlan {
        let cols: Vec<Col> = need.iter().collect();
        let exprs = cols.iter().map(|c| Expr::Const(types::Datum::Null, self.column(*c).ty()));
        let exprs: Vec<Expr> = exprs.collect();
        let input = Plan { node: Node::Nothing, estimate: Estimate::default() };
        let node = match exprs.is_empty() {
            true => input.node,
            false => Node::Project { input: Box::new(input), exprs },
        };
        leaf(node, cols, Estimate::default())
    }

    fn values(&mut self, cols: Vec<Col>, rows: Vec<Vec<Expr>>) -> Result<PhysicalPlan> {
        let mut out = Vec::with_capacity(rows.len());
        for row in rows {
            out.push(self.resolve_all(row, &[])?);
        }
        let estimate = cost::values(out.len(), self.width(&cols));
        if out.len() == 1
            && let Some(exprs) = out.pop()
        {
            let input = Plan { node: Node::OneRow, estimate: cost::one_row() };
            let node = Node::Project { input: Box::new(input), exprs };
            return Ok(leaf(node, cols, estimate));
        }
        Ok(leaf(Node::Values(out), cols, estimate))
    }

    fn append(
        &mut self,
        mut inputs: Vec<Input>,
        mut cols: Vec<Col>,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        if inputs.iter().all(|i| reads_table(&i.rel)) {
            // What nobody asks for is not read.
            let wanted: Vec<bool> = cols.iter().map(|c| need.contains(*c)).collect();
            for list in inputs.iter_mut().map(|i| &mut i.cols).chain([&mut cols]) {
                let mut wanted = wanted.iter();
                list.retain(|_| wanted.next() == Some(&true));
            }
        }
        let mut plans = Vec::with_capacity(inputs.len());
        for input in inputs {
            let need: Cols = input.cols.iter().copied().collect();
            let inner = RequiredProperties { order: Vec::new(), rows: required.rows };
            let phys = self.rel(input.rel, &need, &inner)?;
            plans.push(self.arrange(phys, &input.cols)?);
        }
        let estimate = cost::append(&plans);
        Ok(leaf(Node::Append(plans), cols, estimate))
    }

    fn project(
        &mut self,
        input: Rel,
        exprs: Vec<(Col, Expr)>,
        set: bool,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        let exprs: Vec<(Col, Expr)> = if set {
            exprs
        } else {
            exprs.into_iter().filter(|(c, e)| need.contains(*c) || walk::acts(e)).collect()
        };
        let mut inner_need = Cols::default();
        exprs.iter().for_each(|(_, e)| inner_need.add(&Cols::of(e)));
        let inner_goal =
            if set { RequiredProperties::default() } else { order::through(required, &exprs) };
        let mut phys = self.rel(input, &inner_need, &inner_goal)?;
        if !set && order::rename(&mut phys, &exprs) {
            return Ok(phys);
        }
        let order = if set { Vec::new() } else { order::after(&phys.order, &exprs) };
        let cols: Vec<Col> = exprs.iter().map(|(c, _)| *c).collect();
        let list = exprs.into_iter().map(|(_, e)| e).collect();
        let list = self.resolve_all(list, &phys.cols)?;
        let width = self.width(&cols);
        let estimate = cost::project(&phys.plan.estimate, list.len(), width, set);
        let input = Box::new(phys.plan);
        let node = if set {
            Node::ProjectSet { input, exprs: list }
        } else {
            Node::Project { input, exprs: list }
        };
        Ok(PhysicalPlan { plan: Plan { node, estimate }, cols, order })
    }

    fn limit(
        &mut self,
        input: Rel,
        (count, offset, ties): (Option<Expr>, Option<Expr>, Vec<Expr>),
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        let rows = match (&count, &offset) {
            (None, _) => required.rows,
            (Some(count), offset) => {
                Some(self.guess(count) + offset.as_ref().map_or(0.0, |e| self.guess(e)))
            }
        };
        let inner_goal = RequiredProperties { order: required.order.clone(), rows };
        let mut wanted = need.clone();
        ties.iter().for_each(|e| wanted.add(&Cols::of(e)));
        let mut phys = self.rel(input, &wanted, &inner_goal)?;
        let limited = count.is_some() && ties.is_empty();
        if let Node::Sort { top, .. } = &mut phys.plan.node {
            *top = limited;
        }
        let estimate = cost::limit(
            &phys.plan.estimate,
            count.as_ref().map(|e| self.guess(e)),
            offset.as_ref().map_or(0.0, |e| self.guess(e)),
        );
        let count = count.map(|e| self.resolve(e, &[])).transpose()?;
        let offset = offset.map(|e| self.resolve(e, &[])).transpose()?;
        let ties = self.resolve_all(ties, &phys.cols)?;
        let node = Node::Limit { input: Box::new(phys.plan), count, offset, ties };
        Ok(PhysicalPlan { plan: Plan { node, estimate }, cols: phys.cols, order: phys.order })
    }

    /// A column as an expression.
    pub fn column(&self, col: Col) -> Expr {
        Expr::Column(col, self.vars[usize::from(col)].ty)
    }

    /// A row count from an expression; ten where nothing is known.
    fn guess(&self, e: &Expr) -> f64 {
        match self.estimated(e) {
            Some(Datum::Int8(n)) => n as f64,
            _ => 10.0,
        }
    }

    /// Brings columns into this order, by the scan itself or by a projection.
    pub fn arrange(&mut self, mut phys: PhysicalPlan, wanted: &[Col]) -> Result<Plan> {
        if phys.cols == wanted {
            return Ok(phys.plan);
        }
        if let Some(scan) = scan_of(&mut phys.plan.node)
            && let Some((columns, filter)) = rearranged(scan, &phys.cols, wanted)
        {
            scan.columns = columns;
            scan.filter = filter;
            phys.plan.estimate.width = self.width(wanted);
            return Ok(phys.plan);
        }
        let exprs: Vec<Expr> = wanted.iter().map(|c| self.column(*c)).collect();
        let exprs = self.resolve_all(exprs, &phys.cols)?;
        let width = self.width(wanted);
        let estimate = cost::project(&phys.plan.estimate, 0, width, false);
        Ok(Plan { node: Node::Project { input: Box::new(phys.plan), exprs }, estimate })
    }

    /// Average width of a row with these columns.
    pub fn width(&self, cols: &[Col]) -> i32 {
        cols.iter().map(|c| cost::type_width(&self.vars[usize::from(*c)])).sum()
    }
}

/// A table's rows, perhaps under a condition.
fn reads_table(rel: &Rel) -> bool {
    match rel {
        Rel::Table(_) | Rel::Sample { .. } => true,
        Rel::Filter { input, .. } | Rel::Barrier { input } => reads_table(input),
        _ => false,
    }
}

/// A query of which nobody wants to know more than whether it has rows: what it would compute of them is left out.
fn without_targets(query: Query) -> Query {
    match query.rel {
        Rel::Project { input, set: false, .. } if is_of_rows(&input) => {
            Query { rel: *input, cols: Vec::new(), output: Vec::new() }
        }
        rel => Query { rel, ..query },
    }
}

/// Whether a query's targets are computed of each row alone: no groups, windows or limits are below.
fn is_of_rows(rel: &Rel) -> bool {
    match rel {
        Rel::Filter { input, .. } | Rel::Sort { input, .. } => is_of_rows(input),
        Rel::Aggregate { .. }
        | Rel::Window { .. }
        | Rel::Limit { .. }
        | Rel::Distinct { .. }
        | Rel::Lock { .. } => false,
        _ => true,
    }
}

/// Types whose equal values can't be told apart (1.0 and 1.00 can).
fn is_exact(ty: base::Oid) -> bool {
    use types::oids::*;
    matches!(ty, INT2 | INT4 | INT8 | OID | BOOL | DATE | TIMESTAMP | TIMESTAMPTZ | TEXT | VARCHAR)
}

fn leaf(node: Node, cols: Vec<Col>, estimate: Estimate) -> PhysicalPlan {
    PhysicalPlan { plan: Plan { node, estimate }, cols, order: Vec::new() }
}

/// A filter above an operator.
pub(crate) fn filtered(
    phys: PhysicalPlan,
    condition: Option<Expr>,
    selectivity: f64,
) -> PhysicalPlan {
    let Some(condition) = condition else { return phys };
    let estimate = cost::filter(&phys.plan.estimate, selectivity);
    let node = Node::Filter { input: Box::new(phys.plan), condition };
    PhysicalPlan { plan: Plan { node, estimate }, ..phys }
}

fn scan_of(node: &mut Node) -> Option<&mut Scan> {
    match node {
        // What is asked again of rows counts the columns as they are.
        Node::IndexScan { bounds, .. } if bounds.recheck.is_some() => None,
        Node::SeqScan(scan) | Node::IndexScan { scan, .. } | Node::IndexOnlyScan { scan, .. } => {
            Some(scan)
        }
        Node::PartitionScan(parts) if parts.order.is_empty() => scan_of(&mut parts.scan.node),
        _ => None,
    }
}

/// A scan's columns in another order, with its filter; None when the filter needs one that is not
/// wanted.
fn rearranged(
    scan: &Scan,
    cols: &[Col],
    wanted: &[Col],
) -> Option<(Vec<ScanColumn>, Option<Expr>)> {
    let mut columns = Vec::with_capacity(wanted.len());
    for col in wanted {
        let at = cols.iter().position(|c| c == col)?;
        columns.push(scan.columns[at]);
    }
    let Some(filter) = &scan.filter else { return Some((columns, None)) };
    let mut used = Vec::new();
    walk::columns_of(filter, &mut used);
    let mut map = Vec::with_capacity(used.len());
    for at in used {
        let col = cols.get(usize::from(at))?;
        map.push((at, wanted.iter().position(|c| c == col)? as Col));
    }
    let moved = |at: Col| map.iter().find(|(from, _)| *from == at).map(|(_, to)| *to);
    Some((columns, Some(renumber(filter.clone(), &moved))))
}

/// Moves the columns of a resolved expression.
fn renumber(e: Expr, moved: &dyn Fn(Col) -> Option<Col>) -> Expr {
    match e {
        Expr::Column(at, ty) => Expr::Column(moved(at).unwrap_or(at), ty),
        other => {
            let kept = other.clone();
            walk::map_children(other, &mut |c| Ok(renumber(c, moved))).unwrap_or(kept)
        }
    }
}

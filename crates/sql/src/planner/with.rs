//! WITH: what is put in place, what is computed once and kept, what changes data.

use base::Result;

use crate::expr::Expr;
use crate::logical::{Col, Cte, CteKind, Rel};
use crate::plan::{Estimate, Node, Plan};
use crate::walk;

use super::{CtePlan, PhysicalPlan, Planner, RequiredProperties, cost, leaf};

/// How many times the base's rows a recursive query is expected to give, as in PostgreSQL.
const ROUNDS: f64 = 10.0;

/// Whether a WITH query may stand where it is used.
fn may_inline(cte: &Cte) -> bool {
    let plain = matches!(cte.kind, CteKind::Plain);
    plain && cte.uses <= 1 && cte.materialized != Some(true) && !cte.query.rel.acts()
}

/// Puts WITH queries that are used once where they are used.
fn inline(rel: &mut Rel, ctes: &[Cte], column: &dyn Fn(Col) -> Expr) -> Result<()> {
    sched::check_stack()?;
    if let Rel::Cte { index, cols, outer, .. } = rel {
        let cte = &ctes[*index];
        if !may_inline(cte) {
            return Ok(());
        }
        let exprs = cols.iter().zip(&cte.query.cols).map(|(new, old)| (*new, column(*old)));
        let exprs = exprs.collect();
        let mut input = Box::new(cte.query.rel.clone());
        inline(&mut input, ctes, column)?;
        let moved = |(col, e): &(Col, Expr)| !matches!(e, Expr::Column(c, _) if c == col);
        if outer.iter().any(moved) {
            let here = |col| outer.iter().find(|(c, _)| *c == col).map(|(_, e)| e.clone());
            input.map_exprs(&|e| walk::substitute(e, &here));
        }
        *rel = Rel::Project { input, exprs, set: false };
        return Ok(());
    }
    let mut failure = None;
    rel.for_inputs_mut(&mut |input| {
        if let Err(error) = inline(input, ctes, column) {
            failure = Some(error);
        }
    });
    failure.map_or(Ok(()), Err)
}

/// Finds what reads the last round's rows of one recursive WITH query: itself, through other WITH
/// queries, or in subqueries of expressions.
pub(super) struct RoundReaders<'p> {
    planner: &'p Planner<'p>,
    /// The recursive query.
    of: usize,
    /// WITH queries that were looked at.
    seen: Vec<bool>,
}

impl<'p> RoundReaders<'p> {
    /// For the recursive WITH query `of`.
    pub fn new(planner: &'p Planner<'p>, of: usize) -> RoundReaders<'p> {
        RoundReaders { planner, of, seen: vec![false; planner.ctes.len()] }
    }

    /// Whether a WITH query is among them.
    pub fn is_cte(&mut self, index: usize) -> bool {
        if index == self.of || std::mem::replace(&mut self.seen[index], true) {
            return false;
        }
        let cte = &self.planner.ctes[index];
        let in_step = match &cte.kind {
            CteKind::Recursive { step, .. } => self.is_rel(&step.rel),
            CteKind::Plain | CteKind::Change(_) => false,
        };
        in_step || self.is_rel(&cte.query.rel)
    }

    /// Whether a query's rows are among them.
    pub fn is_rel(&mut self, rel: &Rel) -> bool {
        let mut found = match rel {
            Rel::WorkTable { index, .. } => *index == self.of,
            Rel::Cte { index, .. } => self.is_cte(*index),
            _ => false,
        };
        let mut subqueries = Vec::new();
        rel.for_exprs(&mut |e| walk::for_subqueries(e, &mut |s| subqueries.push(s.plan)));
        found = found || subqueries.iter().any(|n| self.is_rel(&self.planner.subqueries[*n].rel));
        rel.for_inputs(&mut |input| found = found || self.is_rel(input));
        found
    }
}

impl Planner<'_> {
    /// Conditions in the order in which they are computed, those before the first one that acts
    /// apart from it and what follows: these wait for the rows that the others leave, one by one.
    pub fn split_at_action(&self, mut list: Vec<Expr>) -> (Vec<Expr>, Vec<Expr>) {
        if !list.iter().any(walk::is_volatile) {
            return (list, Vec::new());
        }
        list.sort_by_cached_key(|e| self.cost_of(e));
        let at = list.iter().position(walk::is_volatile).unwrap_or(list.len());
        let late = list.split_off(at);
        (list, late)
    }

    /// Puts WITH queries that are used once in place, below `rel`.
    pub fn inline_ctes(&self, rel: &mut Rel) -> Result<()> {
        if self.ctes.is_empty() {
            return Ok(());
        }
        inline(rel, &self.ctes, &|col| self.column(col))
    }

    /// A reference to a WITH query that is computed once and kept.
    pub fn cte(
        &mut self,
        index: usize,
        (alias, cols): (Option<String>, Vec<Col>),
        outer: Vec<(Col, Expr)>,
    ) -> Result<PhysicalPlan> {
        let CtePlan { plan, slots: own, .. } = self.cte_plan(index)?;
        let name = self.ctes[index].name.clone();
        // Each reference computes what stands for the outer columns where it is.
        let mut slots = Vec::with_capacity(own.len());
        for (col, value) in outer {
            if let Some((_, slot)) = own.iter().find(|(c, _)| *c == col) {
                slots.push((*slot, self.resolve(value, &[])?));
            }
        }
        let columns = cols.iter().map(|col| self.vars[usize::from(*col)].name.clone()).collect();
        let estimate = cost::cte(&self.subplans[plan].estimate);
        Ok(leaf(Node::Cte { plan, name, alias, columns, slots }, cols, estimate))
    }

    /// A WITH query's plan, made at the first call. Its outer columns are in slots of its own, which its
    /// references fill.
    fn cte_plan(&mut self, index: usize) -> Result<CtePlan> {
        if let Some(planned) = &self.cte_plans[index] {
            return Ok(planned.clone());
        }
        let first = self.subplans.len();
        let outer = self.ctes[index].outer.clone();
        let slots = outer.into_iter().map(|col| Ok((col, self.new_slot()?)));
        let slots = slots.collect::<Result<Vec<(Col, u16)>>>()?;
        let mark = self.env.len();
        self.env.extend(&slots);
        let plan = self.cte_node(index);
        self.env.truncate(mark);
        self.subplans.push(plan?);
        let plan = self.subplans.len() - 1;
        let rounds = self.rounds_of(&|of| RoundReaders::new(self, of).is_cte(index));
        if rounds.is_empty() && slots.is_empty() {
            self.run_once.push((plan, None));
        }
        self.by_round.extend(rounds.into_iter().map(|of| (of, plan)));
        let planned = CtePlan { plan, first, slots };
        self.cte_plans[index] = Some(planned.clone());
        Ok(planned)
    }

    fn cte_node(&mut self, index: usize) -> Result<Plan> {
        let query = self.ctes[index].query.clone();
        Ok(match self.ctes[index].kind.clone() {
            CteKind::Plain => self.query(query, &RequiredProperties::default())?,
            CteKind::Change(change) => self.change(*change)?,
            CteKind::Recursive { step, all } => {
                let base = self.query(query, &RequiredProperties::default())?;
                self.stepping.push(index);
                let step = self.query(step, &RequiredProperties::default());
                self.stepping.pop();
                let step = step?;
                let (b, s) = (&base.estimate, &step.estimate);
                let estimate = Estimate {
                    startup: b.startup,
                    total: b.total + s.total * ROUNDS,
                    rows: b.rows + s.rows * ROUNDS,
                    width: b.width,
                };
                let (base, step) = (Box::new(base), Box::new(step));
                let anew = self.by_round.iter().filter(|(of, _)| *of == index);
                let anew = anew.map(|(_, plan)| *plan).collect();
                Plan {
                    node: Node::RecursiveUnion { base, step, all, table: index, anew },
                    estimate,
                }
            }
        })
    }

    /// Of the recursive WITH queries whose step is being planned, those for which `reads` holds.
    pub fn rounds_of(&self, reads: &dyn Fn(usize) -> bool) -> Vec<usize> {
        self.stepping.iter().copied().filter(|index| reads(*index)).collect()
    }

    /// The last round's rows of a recursive WITH query.
    pub fn work_table(&mut self, index: usize, cols: Vec<Col>) -> PhysicalPlan {
        let cte = &self.ctes[index];
        let node = Node::WorkTable {
            table: index,
            name: cte.name.clone(),
            columns: cte.query.output.iter().map(|c| (c.name.clone(), c.ty)).collect(),
        };
        let estimate = cost::values(100, self.width(&cols));
        leaf(node, cols, estimate)
    }

    /// Plans the WITH queries that change data, whether anybody reads them or not; their subplans.
    pub fn changing_ctes(&mut self) -> Result<Vec<usize>> {
        let changes = |cte: &Cte| matches!(cte.kind, CteKind::Change(_));
        let all: Vec<usize> = (0..self.ctes.len()).filter(|n| changes(&self.ctes[*n])).collect();
        all.into_iter().map(|index| Ok(self.cte_plan(index)?.plan)).collect()
    }
}

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
    plain && cte.uses <= 1 && cte.materialized != Some(true) && !has_effects(&cte.query.rel)
}

/// Whether it matters how often the rows are computed.
fn has_effects(rel: &Rel) -> bool {
    let mut found = matches!(rel, Rel::Lock { .. });
    rel.for_exprs(&mut |e| found = found || walk::is_volatile(e));
    rel.for_inputs(&mut |input| found = found || has_effects(input));
    found
}

/// Puts WITH queries that are used once where they are used.
fn inline(rel: &mut Rel, ctes: &[Cte], column: &dyn Fn(Col) -> Expr) -> Result<()> {
    sched::check_stack()?;
    if let Rel::Cte { index, cols, .. } = rel {
        let cte = &ctes[*index];
        if !may_inline(cte) {
            return Ok(());
        }
        let exprs = cols.iter().zip(&cte.query.cols).map(|(new, old)| (*new, column(*old)));
        let exprs = exprs.collect();
        let mut input = Box::new(cte.query.rel.clone());
        inline(&mut input, ctes, column)?;
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
        alias: Option<String>,
        cols: Vec<Col>,
    ) -> Result<PhysicalPlan> {
        let plan = self.cte_plan(index)?;
        let cte = &self.ctes[index];
        let name = cte.name.clone();
        let slots = self.slots_of(cte).into_iter().flatten().collect();
        let columns = cols.iter().map(|col| self.vars[usize::from(*col)].name.clone()).collect();
        let estimate = cost::cte(&self.subplans[plan].estimate);
        Ok(leaf(Node::Cte { plan, name, alias, columns, slots }, cols, estimate))
    }

    /// The number of a WITH query's subplan, made at the first call.
    fn cte_plan(&mut self, index: usize) -> Result<usize> {
        let slots = self.slots_of(&self.ctes[index]);
        if let Some(known) = self.cte_plans[index].as_ref().filter(|known| known.slots == slots) {
            return Ok(known.plan);
        }
        let first = self.subplans.len();
        let query = self.ctes[index].query.clone();
        let plan = match self.ctes[index].kind.clone() {
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
        };
        self.subplans.push(plan);
        let plan = self.subplans.len() - 1;
        let rounds = self.rounds_of(&|of| RoundReaders::new(self, of).is_cte(index));
        if rounds.is_empty() && self.ctes[index].outer.iter().next().is_none() {
            self.run_once.push((plan, None));
        }
        self.by_round.extend(rounds.into_iter().map(|of| (of, plan)));
        self.cte_plans[index] = Some(CtePlan { plan, first, slots });
        Ok(plan)
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
        all.into_iter().map(|index| self.cte_plan(index)).collect()
    }
}

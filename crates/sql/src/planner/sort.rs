//! Sorts: none where the rows come in order, the whole, or group by group where they are sorted by the
//! first keys already.

use base::Result;

use crate::expr::{Expr, SortKey};
use crate::logical::Rel;
use crate::plan::{Estimate, Node, Plan};

use super::cols::Cols;
use super::cost::{self, Costs};
use super::{Goal, OrderKey, Phys, Planner, order};

impl Planner<'_> {
    /// Plans ORDER BY.
    pub fn sort(
        &mut self,
        input: Rel,
        keys: Vec<SortKey>,
        need: &Cols,
        goal: &Goal,
    ) -> Result<Phys> {
        let mut inner_need = need.clone();
        keys.iter().for_each(|k| inner_need.add(&Cols::of(&k.expr)));
        // Constants (and lifted literals) sort nothing.
        let keys: Vec<SortKey> = keys
            .into_iter()
            .filter(|k| !matches!(k.expr, Expr::Const(..) | Expr::Param(..)))
            .collect();
        let wanted = order::of_keys(&keys);
        let inner_goal = match &wanted {
            Some(order) => Goal { order: order.clone(), rows: goal.rows },
            None => Goal::default(),
        };
        let phys = self.rel(input, &inner_need, &inner_goal)?;
        if wanted.as_ref().is_some_and(|w| order::satisfies(&phys.order, w)) {
            return Ok(phys);
        }
        self.sort_phys(phys, keys, goal.rows)
    }

    /// Sorts what is planned; `rows`: how many will be read.
    pub fn sort_phys(
        &mut self,
        phys: Phys,
        mut keys: Vec<SortKey>,
        rows: Option<f64>,
    ) -> Result<Phys> {
        let order = order::of_keys(&keys).unwrap_or_default();
        let goal = Goal { order, rows };
        let (estimate, presorted) = self.sorting(&phys.plan.estimate, &phys.order, &goal);
        for key in &mut keys {
            key.expr = self.resolve(key.expr.clone(), &phys.cols)?;
        }
        let input = Box::new(phys.plan);
        let node = match presorted {
            0 => Node::Sort { input, keys, top: rows.is_some() },
            presorted => Node::IncrementalSort { input, keys, presorted },
        };
        Ok(Phys { plan: Plan { node, estimate }, cols: phys.cols, order: goal.order })
    }

    /// What is spent for the rows that the goal asks for, in its order.
    pub fn goal_cost(&self, input: &Estimate, given: &[OrderKey], goal: &Goal) -> f64 {
        let e = self.sorted_estimate(input, given, goal);
        match goal.rows {
            Some(rows) => e.until(rows / e.rows.max(1.0)),
            None => e.total,
        }
    }

    /// What rows that come in one order cost in the goal's.
    pub fn sorted_estimate(&self, input: &Estimate, given: &[OrderKey], goal: &Goal) -> Estimate {
        if order::satisfies(given, &goal.order) {
            return *input;
        }
        self.sorting(input, given, goal).0
    }

    /// The cheaper sort and by how many keys its input is sorted (0: a whole sort).
    fn sorting(&self, input: &Estimate, given: &[OrderKey], goal: &Goal) -> (Estimate, usize) {
        let costs = Costs::of(self.cx.settings);
        let whole = cost::sort_all(input, goal.rows, &costs);
        let presorted = order::common(given, &goal.order);
        if presorted == 0 || presorted == goal.order.len() || !costs.incremental_sort {
            return (whole, 0);
        }
        let distinct = |(by, ..): &OrderKey| self.distinct_values(&self.column(by.col), input.rows);
        let groups: f64 = goal.order[..presorted].iter().map(distinct).product();
        let partly = cost::sort_groups(input, groups.min(input.rows), &costs);
        let until = |e: &Estimate| match goal.rows {
            Some(rows) => e.until(rows / e.rows.max(1.0)),
            None => e.total,
        };
        if until(&partly) < until(&whole) { (partly, presorted) } else { (whole, 0) }
    }
}

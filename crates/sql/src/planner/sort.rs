//! Sorts: none where the rows come in order, the whole, or group by group where they are sorted by the
//! first keys already.

use base::Result;

use crate::expr::{Expr, SortKey};
use crate::logical::Rel;
use crate::plan::{Estimate, Node, Plan};

use super::cols::Cols;
use super::cost::{self, Costs};
use super::{OrderKey, PhysicalPlan, Planner, RequiredProperties, order};

impl Planner<'_> {
    /// Plans ORDER BY.
    pub fn sort(
        &mut self,
        input: Rel,
        keys: Vec<SortKey>,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        let mut inner_need = need.clone();
        keys.iter().for_each(|k| inner_need.add(&Cols::of(&k.expr)));
        // Constants (and lifted literals) sort nothing.
        let keys: Vec<SortKey> = keys
            .into_iter()
            .filter(|k| !matches!(k.expr, Expr::Const(..) | Expr::Param(..)))
            .collect();
        let wanted = order::of_keys(&keys);
        let inner_goal = match &wanted {
            Some(order) => RequiredProperties { order: order.clone(), rows: required.rows },
            None => RequiredProperties::default(),
        };
        let nearest = self.nearest_wanted(&input, &keys, required.rows);
        let outer = std::mem::replace(&mut self.nearest, nearest);
        let phys = self.rel(input, &inner_need, &inner_goal);
        let nearest = std::mem::replace(&mut self.nearest, outer);
        let phys = phys?;
        if nearest.is_some_and(|nearest| nearest.given) {
            return Ok(phys);
        }
        if wanted.as_ref().is_some_and(|w| order::satisfies(&phys.order, w)) {
            return Ok(phys);
        }
        self.sort_phys(phys, keys, required.rows)
    }

    /// Sorts what is planned; `rows`: how many will be read.
    pub fn sort_phys(
        &mut self,
        phys: PhysicalPlan,
        mut keys: Vec<SortKey>,
        rows: Option<f64>,
    ) -> Result<PhysicalPlan> {
        let order = order::of_keys(&keys).unwrap_or_default();
        let required = RequiredProperties { order, rows };
        let (estimate, presorted) = self.sorting(&phys.plan.estimate, &phys.order, &required);
        for key in &mut keys {
            key.expr = self.resolve(key.expr.clone(), &phys.cols)?;
        }
        let input = Box::new(phys.plan);
        let node = match presorted {
            0 => Node::Sort { input, keys, top: rows.is_some() },
            presorted => Node::IncrementalSort { input, keys, presorted },
        };
        Ok(PhysicalPlan { plan: Plan { node, estimate }, cols: phys.cols, order: required.order })
    }

    /// What is spent for the rows that the required asks for, in its order.
    pub fn goal_cost(
        &self,
        input: &Estimate,
        given: &[OrderKey],
        required: &RequiredProperties,
    ) -> f64 {
        let e = self.sorted_estimate(input, given, required);
        match required.rows {
            Some(rows) => e.until(rows / e.rows.max(1.0)),
            None => e.total,
        }
    }

    /// What rows that come in one order cost in the required's.
    pub fn sorted_estimate(
        &self,
        input: &Estimate,
        given: &[OrderKey],
        required: &RequiredProperties,
    ) -> Estimate {
        if order::satisfies(given, &required.order) {
            return *input;
        }
        self.sorting(input, given, required).0
    }

    /// The cheaper sort and by how many keys its input is sorted (0: a whole sort).
    fn sorting(
        &self,
        input: &Estimate,
        given: &[OrderKey],
        required: &RequiredProperties,
    ) -> (Estimate, usize) {
        let costs = Costs::of(self.cx.settings);
        let whole = cost::sort_all(input, required.rows, &costs);
        let presorted = order::common(given, &required.order);
        if presorted == 0 || presorted == required.order.len() || !costs.incremental_sort {
            return (whole, 0);
        }
        let distinct = |(by, ..): &OrderKey| self.distinct_values(&self.column(by.col), input.rows);
        let groups: f64 = required.order[..presorted].iter().map(distinct).product();
        let partly = cost::sort_groups(input, groups.min(input.rows), &costs);
        let until = |e: &Estimate| match required.rows {
            Some(rows) => e.until(rows / e.rows.max(1.0)),
            None => e.total,
        };
        if until(&partly) < until(&whole) { (partly, presorted) } else { (whole, 0) }
    }
}

//! Barriers: of the conditions above one only those go below that can't tell what they see. The others are checked
//! on the rows that come through.

use base::Result;

use crate::expr::Expr;
use crate::logical::Rel;
use crate::plan::Estimate;
use crate::walk;

use super::cols::Cols;
use super::leaf::Leaf;
use super::{PhysicalPlan, Planner, RequiredProperties};

impl Planner<'_> {
    /// Plans what is behind a barrier, with the conditions above it.
    pub(super) fn barrier(
        &mut self,
        input: Rel,
        conditions: Vec<Expr>,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        let (below, above) = self.divided(conditions);
        let rel = crate::bind::select::filter(input, below);
        if above.is_empty() {
            return self.rel(rel, need, required);
        }
        self.filter_above(rel, above, need, required)
    }

    /// Those conditions that may go below a barrier, and those that stay above.
    fn divided(&self, conditions: Vec<Expr>) -> (Vec<Expr>, Vec<Expr>) {
        conditions.into_iter().partition(|e| self.is_leakproof(e))
    }

    /// Whether nobody learns from an expression what rows it was computed for, but for its result: no errors, no
    /// notices that tell of its arguments.
    pub(super) fn is_leakproof(&self, e: &Expr) -> bool {
        let own = match e {
            Expr::Const(..)
            | Expr::Param(..)
            | Expr::Column(..)
            | Expr::Slot(..)
            | Expr::Held(_)
            | Expr::Relabel(..)
            | Expr::Collate(..)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull { .. }
            | Expr::BooleanTest { .. }
            | Expr::Case { .. }
            | Expr::Array { .. }
            | Expr::Row(_)
            | Expr::SessionValue(..) => true,
            Expr::Call { function, .. } => self.is_leakproof_function(function.oid.0),
            Expr::Distinct { equal, .. } | Expr::NullIf { equal, .. } => {
                self.is_leakproof_function(equal.oid.0)
            }
            Expr::ArrayOp { function, .. } => self.is_leakproof_function(function.oid.0),
            Expr::InOutCast { .. }
            | Expr::Typmod { .. }
            | Expr::Coalesce(..)
            | Expr::MinMax { .. }
            | Expr::Subscript { .. }
            | Expr::RowCompare { .. }
            | Expr::Subquery(_) => false,
        };
        if !own {
            return !walk::has_columns(e) && !walk::has_subquery(e);
        }
        let mut all = true;
        walk::for_children(e, &mut |child| all = all && self.is_leakproof(child));
        all
    }

    fn is_leakproof_function(&self, oid: u32) -> bool {
        match self.cx.catalog.function(oid) {
            Some(own) => own.leakproof,
            None => catalog::system::facts::is_leakproof(oid),
        }
    }

    /// Expected rows and cost of what is behind a barrier.
    pub(super) fn barrier_estimate(&self, input: &Rel, leaf: &Leaf) -> Estimate {
        let (table, own) = match input {
            Rel::Table(table) => (table, &[][..]),
            Rel::Filter { input, conditions } => match &**input {
                Rel::Table(table) => (table, &conditions[..]),
                _ => return self.general_estimate(input, leaf),
            },
            other => return self.general_estimate(other, leaf),
        };
        let safe = leaf.conditions.iter().filter(|e| self.is_leakproof(e));
        let all: Vec<Expr> = own.iter().chain(safe).cloned().collect();
        let path = self.best_path(table, &all, &leaf.need, &RequiredProperties::default());
        let width = self.width(&leaf.need.iter().collect::<Vec<_>>());
        Estimate { width, ..path.estimate }
    }

    /// Makes a leaf of a join that is a table behind a barrier a leaf of the table, with the barrier's conditions.
    /// Returns the conditions that must wait until the row has come through.
    pub(super) fn open_barrier(&self, leaf: &mut Leaf) -> Vec<Expr> {
        let Rel::Barrier { input } = &mut leaf.rel else { return Vec::new() };
        let (table, mut conditions) = match &mut **input {
            Rel::Table(table) => (table.clone(), Vec::new()),
            Rel::Filter { input, conditions } => match &**input {
                Rel::Table(table) if !conditions.iter().any(walk::has_subquery) => {
                    (table.clone(), std::mem::take(conditions))
                }
                _ => return Vec::new(),
            },
            _ => return Vec::new(),
        };
        let (below, above) = self.divided(std::mem::take(&mut leaf.conditions));
        conditions.extend(below);
        leaf.rel = Rel::Table(table);
        leaf.conditions = conditions;
        leaf.guarded = true;
        above
    }
}

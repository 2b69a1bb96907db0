//! Inner joins taken apart into leaves and conditions; projections between them are merged away.

use base::Result;

use crate::expr::Expr;
use crate::logical::{Col, Rel};
use crate::plan::JoinKind;
use crate::walk;

use super::outer::SemiJoin;

/// Inner joins taken apart.
#[derive(Clone, Default)]
pub(crate) struct Graph {
    /// What is joined.
    pub leaves: Vec<Rel>,
    /// All conditions.
    pub conditions: Vec<Expr>,
    /// Tests that come after the joins.
    pub anti: Vec<SemiJoin>,
    /// Computed columns of subqueries that were merged into this one.
    pub pulled: Vec<(Col, Expr)>,
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
                if !exprs.iter().any(|(_, e)| walk::acts(e)) =>
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

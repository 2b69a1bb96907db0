//! Set-returning calls outside of FROM.
//!
//! A call becomes a column of a projection ([`Rel::Project`] with `set`), and what stands around it is computed above. Calls
//! whose arguments are calls themselves wait for a projection of their own, so that calls of one depth run side by side.
//! Where the projections stand follows from what refers to a call:
//!
//! ```text
//!   LIMIT
//!   projections of calls that nothing refers to, when there is an ORDER BY
//!   ORDER BY, DISTINCT
//!   projections of all other calls
//!   windows
//!   projections of calls in PARTITION BY or a window's ORDER BY
//!   groups
//!   projections of calls in GROUP BY
//!   FROM, WHERE
//! ```

use base::Result;

use crate::expr::{AggCall, Expr};
use crate::logical::{Col, Rel};
use crate::walk;

use super::select::TargetEntry;
use super::{Binder, Scope};

/// Set-returning calls and the columns that their values have.
#[derive(Default)]
pub(crate) struct SetCalls {
    /// The calls over the projections below: inner ones stand before those around them.
    calls: Vec<(Col, Expr)>,
    /// The calls as they were written.
    written: Vec<(Expr, Col)>,
}

impl SetCalls {
    fn column_of(&self, call: &Expr) -> Option<Expr> {
        let found = self.written.iter().find(|(written, _)| walk::same(written, call))?;
        Some(Expr::Column(found.1, call.ty()))
    }

    /// An expression in which the calls that have columns are those.
    fn replaced_in(&self, e: Expr) -> Result<Expr> {
        sched::check_stack()?;
        match self.column_of(&e) {
            Some(column) => Ok(column),
            None => walk::map_children(e, &mut |child| self.replaced_in(child)),
        }
    }
}

impl Binder<'_> {
    /// A projection of a target list with set-returning calls.
    pub(crate) fn project_set(
        &mut self,
        rel: Rel,
        targets: &[TargetEntry],
    ) -> Result<(Rel, Vec<Col>)> {
        let mut sets = SetCalls::default();
        let mut rest = Vec::with_capacity(targets.len());
        let mut kept = Vec::new();
        for target in targets {
            let expr = self.take_sets(target.expr.clone(), &mut sets)?;
            walk::columns_of(&expr, &mut kept);
            rest.push(TargetEntry { name: target.name.clone(), expr, typmod: target.typmod });
        }
        let rel = self.expand_sets(rel, sets, kept);
        self.project(rel, &rest)
    }

    /// The rows that are grouped, when set-returning calls stand in GROUP BY.
    pub(crate) fn sets_below_groups(
        &mut self,
        rel: Rel,
        groups: &mut [(Col, Expr)],
        aggs: &[(Col, AggCall)],
    ) -> Result<Rel> {
        if !groups.iter().any(|(_, e)| walk::has_set(e)) {
            return Ok(rel);
        }
        let mut sets = SetCalls::default();
        let mut kept = Vec::new();
        for (_, group) in groups {
            let expr = std::mem::replace(group, Expr::Row(Vec::new()));
            *group = self.take_sets(expr, &mut sets)?;
            walk::columns_of(group, &mut kept);
        }
        for (_, agg) in aggs {
            agg.for_exprs(&mut |e| walk::columns_of(e, &mut kept));
        }
        Ok(self.expand_sets(rel, sets, kept))
    }

    /// The rows that windows are computed of, when set-returning calls stand in the definitions of
    /// windows; the same calls of the target list are those.
    pub(crate) fn sets_below_windows(
        &mut self,
        scope: &Scope<'_>,
        rel: Rel,
        targets: &mut [TargetEntry],
    ) -> Result<Rel> {
        let mut any = false;
        let look = |e: &Expr, any: &mut bool| *any |= walk::has_set(e);
        scope.windows.borrow().iter().for_each(|w| w.for_exprs(&mut |e| look(e, &mut any)));
        if !any {
            return Ok(rel);
        }
        let mut windows = scope.windows.take();
        let mut sets = SetCalls::default();
        let mut kept = Vec::new();
        for window in &mut windows {
            window.map(&mut |e| self.take_sets(e, &mut sets))?;
            window.for_exprs(&mut |e| walk::columns_of(e, &mut kept));
        }
        scope.windows.replace(windows);
        for target in targets {
            let expr = std::mem::replace(&mut target.expr, Expr::Row(Vec::new()));
            target.expr = sets.replaced_in(expr)?;
            walk::columns_of(&target.expr, &mut kept);
        }
        Ok(self.expand_sets(rel, sets, kept))
    }

    /// An expression with columns in the place of its set-returning calls. A call that is there already is computed once,
    /// unless it may give other rows each time.
    fn take_sets(&mut self, e: Expr, sets: &mut SetCalls) -> Result<Expr> {
        sched::check_stack()?;
        if !walk::has_set(&e) {
            return Ok(e);
        }
        let written = match &e {
            Expr::Call { function, .. } if function.returns_set => {
                if !walk::is_volatile(&e)
                    && let Some(column) = sets.column_of(&e)
                {
                    return Ok(column);
                }
                Some(e.clone())
            }
            _ => None,
        };
        let e = walk::map_children(e, &mut |child| self.take_sets(child, sets))?;
        let (Some(written), Expr::Call { function, ty, .. }) = (written, &e) else { return Ok(e) };
        let ty = *ty;
        let col = self.new_var(function.name, ty, -1)?;
        self.note_row(col, &e);
        self.pass_collation(col, &e)?;
        sets.written.push((written, col));
        sets.calls.push((col, e));
        Ok(Expr::Column(col, ty))
    }

    /// The projections of set-returning calls over `rel`. `kept`: the columns that are read above.
    fn expand_sets(&self, mut rel: Rel, sets: SetCalls, kept: Vec<Col>) -> Rel {
        let mut calls = sets.calls;
        while !calls.is_empty() {
            let waiting: Vec<Col> = calls.iter().map(|(c, _)| *c).collect();
            let (later, mut exprs): (Vec<_>, Vec<_>) = calls.into_iter().partition(|(_, e)| {
                let mut used = Vec::new();
                walk::columns_of(e, &mut used);
                used.iter().any(|c| waiting.contains(c))
            });
            let mut passed = kept.clone();
            later.iter().for_each(|(_, e)| walk::columns_of(e, &mut passed));
            let mut available = Vec::new();
            rel.output(&mut available);
            passed.sort_unstable();
            passed.dedup();
            passed.retain(|c| available.contains(c));
            exprs.extend(passed.iter().map(|c| (*c, self.column(*c))));
            rel = Rel::Project { input: Box::new(rel), exprs, set: true };
            calls = later;
        }
        rel
    }
}

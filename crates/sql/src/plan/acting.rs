//! Finds what others can see of a plan's run ([`super::effects`]).

use types::Datum;
use types::func::{Body, Volatility};

use super::effects::Effects;
use super::{Modify, Node, Plan};
use crate::expr::Expr;
use crate::walk;

/// The effects of one place of a plan.
#[derive(Default)]
struct Seen {
    /// Calls of which nobody knows what they do or look at.
    unknown: bool,
    /// Rows are written or locked.
    rows: bool,
    /// Sequences that move on.
    sequences: Vec<u32>,
}

impl Seen {
    fn is_empty(&self) -> bool {
        !self.unknown && !self.rows && self.sequences.is_empty()
    }

    /// Whether the order of these and those can be seen.
    fn crosses(&self, other: &Seen) -> bool {
        self.unknown && !other.is_empty()
            || other.unknown && !self.is_empty()
            || self.sequences.iter().any(|one| other.sequences.contains(one))
    }

    fn add(&mut self, other: Seen) {
        self.unknown |= other.unknown;
        self.rows |= other.rows;
        self.sequences.extend(other.sequences);
    }

    fn look_at(&mut self, e: &Expr) {
        if let Expr::Call { function, args, .. } = e
            && function.volatility == Volatility::Volatile
            && !is_private(function.name, matches!(function.body, Body::User))
        {
            match (function.name, &**args) {
                ("nextval", [Expr::Const(Datum::Oid(sequence), _)]) => {
                    self.sequences.push(*sequence);
                }
                _ => self.unknown = true,
            }
        }
        walk::for_children(e, &mut |child| self.look_at(child));
    }
}

/// Volatile functions of which nobody sees when and how often they are called.
fn is_private(name: &str, of_user: bool) -> bool {
    !of_user
        && matches!(
            name,
            "drandom"
                | "random"
                | "gen_random_uuid"
                | "uuid_generate_v1"
                | "uuid_generate_v4"
                | "clock_timestamp"
                | "timeofday"
        )
}

impl Plan {
    /// What others can see of a statement's run, of which this is the plan and those are the subplans.
    pub fn effects(&self, subplans: &[Plan]) -> Effects {
        let mut all = Seen::default();
        let mut effects = Effects::default();
        let mut note = |seen: Seen| {
            effects.crossed |= seen.crosses(&all);
            all.add(seen);
        };
        // Each subplan is looked at once, whoever reads it.
        for plan in std::iter::once(self).chain(subplans) {
            look_at(plan, &mut note);
        }
        effects.any = !all.is_empty();
        effects
    }

    /// Whether the node has effects of its own, so that it is to be given one row at a time: by its expressions, the
    /// subqueries in them included.
    pub fn acts(&self, subplans: &[Plan]) -> bool {
        let mut seen = Seen::default();
        let mut subqueries = Vec::new();
        self.for_exprs(&mut |e| {
            seen.look_at(e);
            walk::for_subqueries(e, &mut |s| subqueries.push(s.plan));
        });
        !seen.is_empty()
            || matches!(self.node, Node::LockRows { .. } | Node::Modify(_))
            || subqueries.iter().any(|n| acts_below(&subplans[*n], subplans))
    }
}

fn look_at(plan: &Plan, note: &mut dyn FnMut(Seen)) {
    if sched::check_stack().is_err() {
        // A plan that deep is refused when it runs.
        return;
    }
    let mut seen = Seen::default();
    match &plan.node {
        Node::LockRows { .. } => seen.rows = true,
        Node::Modify(modify) => {
            seen.rows = true;
            seen.unknown = has_triggers(modify);
        }
        _ => {}
    }
    if !seen.is_empty() {
        note(std::mem::take(&mut seen));
    }
    plan.for_exprs(&mut |e| seen.look_at(e));
    note(seen);
    plan.children().into_iter().for_each(|child| look_at(child, note));
}

fn has_triggers(modify: &Modify) -> bool {
    let children = modify.children.iter().map(|child| &child.table);
    let mut tables = std::iter::once(&modify.table).chain(children);
    tables.any(|table| !table.triggers.is_empty())
}

fn acts_below(plan: &Plan, subplans: &[Plan]) -> bool {
    sched::check_stack().is_ok()
        && (plan.acts(subplans)
            || plan.children().into_iter().any(|child| acts_below(child, subplans)))
}

impl super::Prepared {
    /// Computes the constants that may not be come to when the statement runs, though nothing leaves them out when
    /// it is planned: PostgreSQL says then that one fails.
    ///
    /// # Errors
    /// Those of the expressions.
    pub fn check_conditional_constants(
        &self,
        params: &[types::Datum],
        format: &types::FormatContext,
    ) -> base::Result<()> {
        let certain = |one: &&super::ConstantCall| one.conditional && !one.guarded;
        let mut all = self.constant_calls.iter().filter(certain);
        all.try_for_each(|one| super::constant(&one.call, params, format).map(drop))
    }
}

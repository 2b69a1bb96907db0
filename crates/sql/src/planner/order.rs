//! Orders: what a sort wants, what an operator gives.

use crate::expr::{Expr, SortKey};
use crate::logical::Col;

use super::{Goal, OrderKey, Phys};

/// The order of plain columns; None when a key is an expression.
pub(crate) fn of_keys(keys: &[SortKey]) -> Option<Vec<OrderKey>> {
    keys.iter()
        .map(|k| match &k.expr {
            Expr::Column(col, _) => Some((*col, k.descending, k.nulls_first)),
            _ => None,
        })
        .collect()
}

/// Whether rows in one order are in the wanted order too.
pub(crate) fn satisfies(given: &[OrderKey], wanted: &[OrderKey]) -> bool {
    given.len() >= wanted.len() && given.iter().zip(wanted).all(|(g, w)| g == w)
}

/// How many of the wanted keys rows in one order are sorted by already.
pub(crate) fn common(given: &[OrderKey], wanted: &[OrderKey]) -> usize {
    given.iter().zip(wanted).take_while(|(g, w)| g == w).count()
}

/// The goal below a projection: the order in terms of the input's columns.
pub(crate) fn through(goal: &Goal, exprs: &[(Col, Expr)]) -> Goal {
    let mut order = Vec::with_capacity(goal.order.len());
    for (col, descending, nulls_first) in &goal.order {
        match exprs.iter().find(|(c, _)| c == col) {
            Some((_, Expr::Column(below, _))) => order.push((*below, *descending, *nulls_first)),
            // It is sorted above: all rows are read.
            _ => return Goal::default(),
        }
    }
    Goal { order, rows: goal.rows }
}

/// The order above a projection, as far as its columns are passed on.
pub(crate) fn after(order: &[OrderKey], exprs: &[(Col, Expr)]) -> Vec<OrderKey> {
    let mut out = Vec::with_capacity(order.len());
    for (col, descending, nulls_first) in order {
        let above = exprs.iter().find(|(_, e)| matches!(e, Expr::Column(c, _) if c == col));
        match above {
            Some((above, _)) => out.push((*above, *descending, *nulls_first)),
            None => break,
        }
    }
    out
}

/// A projection that only renames columns needs no operator. False: it does more.
pub(crate) fn rename(phys: &mut Phys, exprs: &[(Col, Expr)]) -> bool {
    let mut names: Vec<Option<Col>> = vec![None; phys.cols.len()];
    for (new, e) in exprs {
        let Expr::Column(old, _) = e else { return false };
        let Some(at) = phys.cols.iter().position(|c| c == old) else { return false };
        if names[at].is_some_and(|n| n != *new) {
            return false;
        }
        names[at] = Some(*new);
    }
    phys.order = after(&phys.order, exprs);
    for (col, name) in phys.cols.iter_mut().zip(names) {
        if let Some(name) = name {
            *col = name;
        }
    }
    true
}

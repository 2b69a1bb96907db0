//! Orders: what a sort wants, what an operator gives.

use types::Datum;
use types::collation::Slot;
use types::func::internal;

use crate::expr::{Expr, SortKey};
use crate::logical::Col;

use super::{OrderKey, PhysicalPlan, RequiredProperties};

/// What rows are sorted by: a column's values, or their keys under a collation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct By {
    /// The column.
    pub col: Col,
    /// The collation: [`Slot::BYTES`] for the values as they are.
    pub slot: Slot,
}

impl By {
    /// A column's values.
    pub fn values(col: Col) -> By {
        By { col, slot: Slot::BYTES }
    }

    /// What an expression is, if it is such a thing.
    pub fn of(e: &Expr) -> Option<By> {
        if let Expr::Column(col, _) = e {
            return Some(By::values(*col));
        }
        match e {
            Expr::Call { function, args, .. } if function.oid == internal::SORT_KEY.oid => {
                match (&args[0], &args[1]) {
                    (Expr::Column(col, _), Expr::Const(Datum::Oid(slot), _)) => {
                        Some(By { col: *col, slot: Slot(u16::try_from(*slot).ok()?) })
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// The order of columns; None when a key is another expression.
pub(crate) fn of_keys(keys: &[SortKey]) -> Option<Vec<OrderKey>> {
    keys.iter().map(|k| Some((By::of(&k.expr)?, k.descending, k.nulls_first))).collect()
}

/// Whether rows in one order are in the wanted order too.
pub(crate) fn satisfies(given: &[OrderKey], wanted: &[OrderKey]) -> bool {
    given.len() >= wanted.len() && given.iter().zip(wanted).all(|(g, w)| g == w)
}

/// How many of the wanted keys rows in one order are sorted by already.
pub(crate) fn common(given: &[OrderKey], wanted: &[OrderKey]) -> usize {
    given.iter().zip(wanted).take_while(|(g, w)| g == w).count()
}

/// The required below a projection: the order in terms of the input's columns.
pub(crate) fn through(required: &RequiredProperties, exprs: &[(Col, Expr)]) -> RequiredProperties {
    let mut order = Vec::with_capacity(required.order.len());
    for (by, descending, nulls_first) in &required.order {
        let e = exprs.iter().find(|(c, _)| *c == by.col).map(|(_, e)| e);
        let below = match (e, e.and_then(By::of)) {
            (Some(Expr::Column(col, _)), _) => By { col: *col, slot: by.slot },
            (_, Some(below)) if by.slot == Slot::BYTES => below,
            // It is sorted above: all rows are read.
            _ => return RequiredProperties::default(),
        };
        order.push((below, *descending, *nulls_first));
    }
    RequiredProperties { order, rows: required.rows }
}

/// The order above a projection, as far as its columns are passed on.
pub(crate) fn after(order: &[OrderKey], exprs: &[(Col, Expr)]) -> Vec<OrderKey> {
    let mut out = Vec::with_capacity(order.len());
    for (by, descending, nulls_first) in order {
        let above = exprs.iter().find_map(|(above, e)| match e {
            Expr::Column(col, _) if *col == by.col => Some(By { col: *above, slot: by.slot }),
            e => (By::of(e)? == *by).then(|| By::values(*above)),
        });
        match above {
            Some(above) => out.push((above, *descending, *nulls_first)),
            None => break,
        }
    }
    out
}

/// A projection that only renames columns needs no operator. False: it does more.
pub(crate) fn rename(phys: &mut PhysicalPlan, exprs: &[(Col, Expr)]) -> bool {
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

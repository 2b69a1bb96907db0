//! Conditions on `ctid`: in which pages of a table rows may be.

use base::Oid;

use crate::expr::Expr;

/// `tideq`, `tidgt`, `tidlt`, `tidge` and `tidle`.
const EQ: Oid = Oid(1292);
const GT: Oid = Oid(2790);
const LT: Oid = Oid(2791);
const GE: Oid = Oid(2792);
const LE: Oid = Oid(2793);

/// The rows to which conditions on `ctid` restrict a scan. A bound or place that is NULL leaves none.
pub enum Tids {
    /// One row.
    Is(Expr),
    /// Those in an array.
    AnyOf(Expr),
    /// Rows from the last of these up to the first of those.
    Between {
        /// Lower bounds.
        lower: Vec<Expr>,
        /// Upper bounds.
        upper: Vec<Expr>,
    },
}

impl Tids {
    /// From conditions that all hold. `is_tid`: whether a column is the table's `ctid`; `is_known`: whether a value is
    /// known before the table is read.
    pub fn of<'a>(
        conditions: impl Iterator<Item = &'a Expr>,
        is_tid: &dyn Fn(u16) -> bool,
        is_known: &dyn Fn(&Expr) -> bool,
    ) -> Option<Tids> {
        let tid = |e: &Expr| matches!(e, Expr::Column(column, _) if is_tid(*column));
        let (mut any, mut lower, mut upper) = (None, Vec::new(), Vec::new());
        for condition in conditions {
            match condition {
                Expr::Call { function, args, .. } => {
                    let ([left, right], EQ | GT | LT | GE | LE) = (&args[..], function.oid) else {
                        continue;
                    };
                    let (place, turned) = match (tid(left), tid(right)) {
                        (true, _) => (right, false),
                        (_, true) => (left, true),
                        _ => continue,
                    };
                    if !is_known(place) {
                        continue;
                    }
                    match (function.oid, turned) {
                        (EQ, _) => return Some(Tids::Is(place.clone())),
                        (GT | GE, false) | (LT | LE, true) => lower.push(place.clone()),
                        _ => upper.push(place.clone()),
                    }
                }
                Expr::ArrayOp { function, left, array, all: false }
                    if function.oid == EQ && tid(left) && is_known(array) =>
                {
                    any = Some(Tids::AnyOf((**array).clone()));
                }
                _ => {}
            }
        }
        let bounded = !lower.is_empty() || !upper.is_empty();
        any.or(bounded.then_some(Tids::Between { lower, upper }))
    }
}

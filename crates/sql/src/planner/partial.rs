//! Whether the conditions of a query imply one of a partial index's.
//!
//! A condition is implied when it stands among them; when one of them compares the same value with a
//! constant of the same type in a way that leaves nothing else (`x > 10` implies `x > 5`, `x = 3`
//! implies `x IN (1, 3)`); when it is IS NOT NULL of something that one of them is NULL for; when it
//! is an OR of which one arm is implied.
//!
//! Literals that became parameters count by their values, which the plan is then bound to
//! ([`Planner::known`]).

use types::Datum;

use crate::expr::Expr;
use crate::walk;

use super::Planner;
use super::cols::Cols;
use super::outer::not_null_columns;
use super::selectivity::{comparison_name, flipped};

impl Planner<'_> {
    /// Whether `wanted` is true for all rows for which all the conditions are.
    pub fn is_implied(&self, wanted: &Expr, conditions: &[Expr]) -> bool {
        if conditions.iter().any(|given| self.same_value(given, wanted)) {
            return true;
        }
        match wanted {
            Expr::Const(Datum::Bool(true), _) => true,
            Expr::And(parts) => parts.iter().all(|part| self.is_implied(part, conditions)),
            Expr::Or(arms) => arms.iter().any(|arm| self.is_implied(arm, conditions)),
            Expr::IsNull { arg, negated: true } => {
                let Expr::Column(col, _) = **arg else { return false };
                let mut not_null = Cols::default();
                conditions.iter().for_each(|e| not_null_columns(e, &mut not_null));
                not_null.contains(col)
            }
            Expr::Call { .. } | Expr::ArrayOp { all: false, .. } => {
                conditions.iter().any(|given| self.leaves_only(given, wanted).unwrap_or(false))
            }
            _ => false,
        }
    }

    /// The value of a constant, or of a literal that became a parameter.
    fn value_of(&self, e: &Expr) -> Option<Datum> {
        match e {
            Expr::Const(value, _) => Some(value.clone()),
            Expr::Param(n, _) => {
                let value = self.known.get(*n as usize)?.clone()?;
                self.bound.borrow_mut().push(*n);
                Some(value)
            }
            Expr::Relabel(inner, _) => self.value_of(inner),
            _ => None,
        }
    }

    /// [`walk::same`], with parameters by their values.
    fn same_value(&self, given: &Expr, wanted: &Expr) -> bool {
        if walk::same(given, wanted) {
            return true;
        }
        if self.known.is_empty() {
            return false;
        }
        let (mut values, mut fits) = (Vec::new(), true);
        let filled = walk::map_params(given.clone(), &mut |n| {
            let value = self.known.get(n as usize).cloned().flatten();
            fits &= value.is_some();
            values.push(n);
            value
        });
        let same = fits && !values.is_empty() && walk::same(&filled, wanted);
        if same {
            self.bound.borrow_mut().extend(values);
        }
        same
    }

    /// Whether a comparison leaves only values that another one of the same expression takes.
    fn leaves_only(&self, given: &Expr, wanted: &Expr) -> Option<bool> {
        let (op, subject, value) = comparison(given)?;
        if let Expr::ArrayOp { function, left, array, all: false } = wanted {
            if op != "=" || !walk::is_equality(function) || !walk::same(subject, left) {
                return None;
            }
            let (value, Datum::Array(array)) = (self.value_of(value)?, self.value_of(array)?)
            else {
                return None;
            };
            let equal = |other: &Datum| {
                !other.is_null() && !value.is_null() && types::io::compare(&value, other).is_eq()
            };
            return Some(subject.ty() == array.element && array.items.iter().any(equal));
        }
        let (wanted_op, wanted_subject, limit) = comparison(wanted)?;
        if !walk::same(subject, wanted_subject) {
            return None;
        }
        let (value, limit) = (self.value_of(value)?, self.value_of(limit)?);
        if value.is_null() || limit.is_null() {
            return None;
        }
        let order = types::io::compare(&value, &limit);
        Some(match (op, wanted_op) {
            ("=", "=") => order.is_eq(),
            ("=" | ">=" | ">", ">=") | (">", ">") => order.is_ge(),
            ("=" | ">=", ">") => order.is_gt(),
            ("=" | "<=" | "<", "<=") | ("<", "<") => order.is_le(),
            ("=" | "<=", "<") => order.is_lt(),
            _ => false,
        })
    }
}

/// Operator, what is compared, and with which value; both sides of one type.
fn comparison(e: &Expr) -> Option<(&'static str, &Expr, &Expr)> {
    let Expr::Call { function, args, .. } = e else { return None };
    let [left, right] = &**args else { return None };
    let op = comparison_name(function)?;
    if left.ty() != right.ty() {
        return None;
    }
    match walk::has_columns(left) {
        true => Some((op, left, right)),
        false => Some((flipped(op), right, left)),
    }
}

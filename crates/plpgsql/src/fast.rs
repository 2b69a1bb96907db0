//! Integer arithmetic and comparisons over a frame's slots, without the executor's evaluator: what counters,
//! bounds and tests of loops are made of. Whatever is not plain (NULL, overflow, another type of value) answers
//! None, and the expression is evaluated in the general way, which has the errors.

use sql::Expr;
use types::Datum;
use types::oids::{BOOL, INT4, INT8};

use crate::program::Slot;

/// An integer.
pub enum Int {
    /// A variable.
    Slot(Slot),
    /// A constant.
    Const(i64),
    /// Of two others.
    Of(Operation, Box<(Int, Int)>, Width),
}

/// The operation that is computed.
#[derive(Clone, Copy)]
pub enum Operation {
    /// `+`.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `%`.
    Remainder,
}

/// The type of the result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// integer.
    Four,
    /// bigint.
    Eight,
}

/// How two integers compare.
#[derive(Clone, Copy)]
pub enum Comparison {
    /// `=`.
    Equal,
    /// `<>`.
    Unequal,
    /// `<`.
    Less,
    /// `<=`.
    AtMost,
    /// `>`.
    Greater,
    /// `>=`.
    AtLeast,
}

/// An expression of the kinds above.
pub enum Fast {
    /// An integer.
    Int(Int, Width),
    /// A comparison.
    Compare(Comparison, Int, Int),
    /// An item of an array of one dimension.
    Item(Slot, Int),
}

/// The value that an assignment adds to the end of the variable that it is made to.
pub enum Append {
    /// `a := a || item`.
    Item(Expr),
    /// `s := s || text`.
    Text(Expr),
}

/// `array_append`, `textcat`.
const ARRAY_APPEND: u32 = 378;
const TEXTCAT: u32 = 1258;

impl Append {
    /// The form of an expression that is assigned to a slot; None for others.
    pub fn of(expr: &Expr, slot: Slot) -> Option<Append> {
        let Expr::Call { function, args, .. } = expr else { return None };
        let [Expr::Param(first, _), added] = &args[..] else { return None };
        let slot = u32::from(slot);
        if *first != slot
            || sql::walk::any(added, &|e| matches!(e, Expr::Param(n, _) if *n == slot))
        {
            return None;
        }
        match function.oid.0 {
            ARRAY_APPEND => Some(Append::Item(added.clone())),
            TEXTCAT => Some(Append::Text(added.clone())),
            _ => None,
        }
    }
}

impl Fast {
    /// The form of an expression; None for those of other kinds.
    pub fn of(expr: &Expr) -> Option<Fast> {
        match expr {
            Expr::Call { function, args, ty, .. } if *ty == BOOL => {
                let [left, right] = &args[..] else { return None };
                let comparison = comparison(function.name)?;
                Some(Fast::Compare(comparison, int(left)?, int(right)?))
            }
            Expr::Call { ty, .. } => Some(Fast::Int(int(expr)?, width(*ty)?)),
            Expr::Subscript { array, indexes, .. } => match (&**array, &indexes[..]) {
                (Expr::Param(slot, _), [index]) => {
                    Some(Fast::Item(Slot::try_from(*slot).ok()?, int(index)?))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The value.
    #[inline]
    pub fn value(&self, slots: &[Datum]) -> Option<Datum> {
        match self {
            Fast::Int(int, Width::Eight) => Some(Datum::Int8(int.value(slots)?)),
            Fast::Int(int, Width::Four) => {
                Some(Datum::Int4(i32::try_from(int.value(slots)?).ok()?))
            }
            Fast::Compare(comparison, left, right) => {
                let (a, b) = (left.value(slots)?, right.value(slots)?);
                Some(Datum::Bool(match comparison {
                    Comparison::Equal => a == b,
                    Comparison::Unequal => a != b,
                    Comparison::Less => a < b,
                    Comparison::AtMost => a <= b,
                    Comparison::Greater => a > b,
                    Comparison::AtLeast => a >= b,
                }))
            }
            Fast::Item(slot, index) => {
                let Datum::Array(array) = &slots[usize::from(*slot)] else { return None };
                let &[(length, low)] = &array.dims[..] else { return None };
                let at = index.value(slots)? - i64::from(low);
                match at >= 0 && at < i64::from(length) {
                    true => Some(array.items[at as usize].clone()),
                    false => Some(Datum::Null),
                }
            }
        }
    }
}

impl Int {
    fn value(&self, slots: &[Datum]) -> Option<i64> {
        match self {
            Int::Const(value) => Some(*value),
            Int::Slot(slot) => match slots[usize::from(*slot)] {
                Datum::Int4(value) => Some(i64::from(value)),
                Datum::Int8(value) => Some(value),
                _ => None,
            },
            Int::Of(operation, both, width) => {
                let (a, b) = (both.0.value(slots)?, both.1.value(slots)?);
                let value = match operation {
                    Operation::Add => a.checked_add(b)?,
                    Operation::Subtract => a.checked_sub(b)?,
                    Operation::Multiply => a.checked_mul(b)?,
                    Operation::Remainder => a.checked_rem(b)?,
                };
                match width {
                    Width::Four => i32::try_from(value).ok().map(i64::from),
                    Width::Eight => Some(value),
                }
            }
        }
    }
}

fn width(ty: base::Oid) -> Option<Width> {
    match ty {
        INT4 => Some(Width::Four),
        INT8 => Some(Width::Eight),
        _ => None,
    }
}

fn int(expr: &Expr) -> Option<Int> {
    match expr {
        Expr::Const(Datum::Int4(value), _) => Some(Int::Const(i64::from(*value))),
        Expr::Const(Datum::Int8(value), _) => Some(Int::Const(*value)),
        Expr::Param(slot, ty) => width(*ty).and(Slot::try_from(*slot).ok()).map(Int::Slot),
        Expr::Call { function, args, ty, .. } => {
            let width = width(*ty)?;
            let operation = match function.name {
                "int4pl" | "int8pl" | "int48pl" | "int84pl" => Operation::Add,
                "int4mi" | "int8mi" | "int48mi" | "int84mi" => Operation::Subtract,
                "int4mul" | "int8mul" | "int48mul" | "int84mul" => Operation::Multiply,
                "int4mod" | "int8mod" => Operation::Remainder,
                // int4 to int8.
                "int8" => match &args[..] {
                    [arg] if arg.ty() == INT4 => return int(arg),
                    _ => return None,
                },
                _ => return None,
            };
            let [left, right] = &args[..] else { return None };
            Some(Int::Of(operation, Box::new((int(left)?, int(right)?)), width))
        }
        _ => None,
    }
}

fn comparison(name: &str) -> Option<Comparison> {
    let rest = ["int4", "int8", "int48", "int84"]
        .iter()
        .rev()
        .find_map(|prefix| name.strip_prefix(prefix))?;
    Some(match rest {
        "eq" => Comparison::Equal,
        "ne" => Comparison::Unequal,
        "lt" => Comparison::Less,
        "le" => Comparison::AtMost,
        "gt" => Comparison::Greater,
        "ge" => Comparison::AtLeast,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_plain_is_left_to_the_evaluator() {
        let add = |width| {
            let both = Box::new((Int::Slot(0), Int::Const(1)));
            Fast::Int(Int::Of(Operation::Add, both, width), width)
        };
        assert_eq!(add(Width::Four).value(&[Datum::Int4(1)]), Some(Datum::Int4(2)));
        assert_eq!(add(Width::Four).value(&[Datum::Int4(i32::MAX)]), None);
        assert_eq!(add(Width::Eight).value(&[Datum::Int8(i64::MAX)]), None);
        assert_eq!(add(Width::Eight).value(&[Datum::Null]), None);
        assert!(comparison("int84lt").is_some() && comparison("int4larger").is_none());
    }
}

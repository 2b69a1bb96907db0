//! Numerics whose digits stand in 64 bits with one scale for the whole column: comparisons, sum,
//! difference and product. Whatever leaves the 64 bits is left to the row-by-row way, which has
//! numbers of any size.

use std::cmp::Ordering;

use base::Result;

use super::{Operand, VectorBody, all_null, nulls};
use crate::batch::{Column, Vector};
use crate::datum::{Datum, Numeric};
use crate::numeric::POW10;

/// An argument's digits.
#[derive(Clone, Copy)]
enum Digits<'a> {
    Many(&'a [i64]),
    One(i64),
}

/// An argument's digits and scale; None when they aren't in 64 bits.
fn digits(operand: Operand<'_>) -> Option<(Digits<'_>, u16)> {
    match operand {
        Operand::Column(Column { data: Vector::Numeric(v, scale), .. }) => {
            Some((Digits::Many(v), *scale))
        }
        Operand::Value(Datum::Numeric(Numeric::Small { value, scale })) => {
            Some((Digits::One(*value), *scale))
        }
        _ => None,
    }
}

/// Applies `op` to each pair of digits.
#[inline]
fn each<O>(a: Digits<'_>, b: Digits<'_>, rows: usize, op: impl Fn(i64, i64) -> O) -> Vec<O> {
    match (a, b) {
        (Digits::Many(x), Digits::Many(y)) => x.iter().zip(y).map(|(x, y)| op(*x, *y)).collect(),
        (Digits::Many(x), Digits::One(y)) => x.iter().map(|x| op(*x, y)).collect(),
        (Digits::One(x), Digits::Many(y)) => y.iter().map(|y| op(x, *y)).collect(),
        (Digits::One(x), Digits::One(y)) => (0..rows).map(|_| op(x, y)).collect(),
    }
}

/// The factors that give each side the larger of both scales.
fn factors(s: u16, t: u16) -> Option<(i64, i64)> {
    let power = |n: u16| POW10.get(usize::from(n)).copied();
    Some((power(t.saturating_sub(s))?, power(s.saturating_sub(t))?))
}

fn compare(
    a: Operand<'_>,
    b: Operand<'_>,
    rows: usize,
    test: impl Fn(Ordering) -> bool,
) -> Result<Option<Column>> {
    if let Some(column) = all_null(a, b, rows, |n| Vector::Bool(vec![false; n])) {
        return Ok(Some(column));
    }
    let (Some((x, s)), Some((y, t))) = (digits(a), digits(b)) else { return Ok(None) };
    let Some((f, g)) = factors(s, t) else { return Ok(None) };
    let data = if (f, g) == (1, 1) {
        each(x, y, rows, |x, y| test(x.cmp(&y)))
    } else {
        let (f, g) = (i128::from(f), i128::from(g));
        each(x, y, rows, |x, y| test((i128::from(x) * f).cmp(&(i128::from(y) * g))))
    };
    Ok(Some(Column { data: Vector::Bool(data), nulls: nulls(a, b) }))
}

/// `op` over digits of one scale, or (`product`) of both scales together.
fn compute(
    a: Operand<'_>,
    b: Operand<'_>,
    rows: usize,
    product: bool,
    op: impl Fn(i64, i64) -> Option<i64>,
) -> Result<Option<Column>> {
    if let Some(column) = all_null(a, b, rows, |n| Vector::Numeric(vec![0; n], 0)) {
        return Ok(Some(column));
    }
    let (Some((x, s)), Some((y, t))) = (digits(a), digits(b)) else { return Ok(None) };
    // A scale that a numeric can't have goes the other way, which rounds.
    if u32::from(s) + u32::from(t) > crate::numeric::MAX_SCALE {
        return Ok(None);
    }
    let overflow = std::cell::Cell::new(false);
    let checked = |v: Option<i64>| {
        v.unwrap_or_else(|| {
            overflow.set(true);
            0
        })
    };
    let (data, scale) = if product {
        (each(x, y, rows, |x, y| checked(op(x, y))), s + t)
    } else {
        let Some((f, g)) = factors(s, t) else { return Ok(None) };
        let aligned = |x: i64, y: i64| op(x.checked_mul(f)?, y.checked_mul(g)?);
        (each(x, y, rows, |x, y| checked(aligned(x, y))), s.max(t))
    };
    if overflow.get() {
        return Ok(None);
    }
    Ok(Some(Column { data: Vector::Numeric(data, scale), nulls: nulls(a, b) }))
}

/// The kernels of numeric functions.
pub(super) fn named() -> Vec<(&'static str, VectorBody)> {
    vec![
        ("numeric_eq", |a, b, n| compare(a, b, n, Ordering::is_eq)),
        ("numeric_ne", |a, b, n| compare(a, b, n, Ordering::is_ne)),
        ("numeric_lt", |a, b, n| compare(a, b, n, Ordering::is_lt)),
        ("numeric_le", |a, b, n| compare(a, b, n, Ordering::is_le)),
        ("numeric_gt", |a, b, n| compare(a, b, n, Ordering::is_gt)),
        ("numeric_ge", |a, b, n| compare(a, b, n, Ordering::is_ge)),
        ("numeric_add", |a, b, n| compute(a, b, n, false, i64::checked_add)),
        ("numeric_sub", |a, b, n| compute(a, b, n, false, i64::checked_sub)),
        ("numeric_mul", |a, b, n| compute(a, b, n, true, i64::checked_mul)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oids;

    fn column(list: &[&str]) -> Column {
        let mut column = Column::new(oids::NUMERIC);
        for text in list {
            let value = match *text {
                "null" => Datum::Null,
                text => Datum::Numeric(Numeric::parse(text).unwrap()),
            };
            column.push(value).unwrap();
        }
        column
    }

    fn shown(column: &Column) -> Vec<String> {
        let show = |row| match column.get(row, oids::NUMERIC) {
            Datum::Numeric(n) => n.to_string(),
            other => format!("{other:?}"),
        };
        (0..column.len()).map(show).collect()
    }

    #[test]
    fn digits_of_one_scale_are_computed_with_and_others_are_not() {
        let price = column(&["100.10", "null", "7.00"]);
        let discount = Datum::Numeric(Numeric::parse("0.5").unwrap());
        let of = |name: &str| named().into_iter().find(|(n, _)| *n == name).unwrap().1;
        let run = |name, b| of(name)(Operand::Column(&price), b, 3).unwrap();
        let product = run("numeric_mul", Operand::Value(&discount)).unwrap();
        assert_eq!(shown(&product), ["50.050", "Null", "3.500"]);
        let sum = run("numeric_add", Operand::Value(&discount)).unwrap();
        assert_eq!(shown(&sum), ["100.60", "Null", "7.50"]);
        let huge = column(&["9000000000000000000", "1", "1"]);
        assert!(run("numeric_mul", Operand::Column(&huge)).is_none());
        let mixed = column(&["1", "2.0", "3"]);
        assert!(matches!(mixed.data, Vector::Datum(_)));
        assert!(run("numeric_add", Operand::Column(&mixed)).is_none());
    }
}

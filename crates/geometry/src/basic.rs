//! Numbers that are compared with some tolerance, arithmetic that says when it overflows, points.

use base::{Result, err};

/// Numbers that differ by no more are equal.
pub const EPSILON: f64 = 1.0e-6;

pub(crate) fn zero(a: f64) -> bool {
    a.abs() <= EPSILON
}
pub(crate) fn eq(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= EPSILON
}
pub(crate) fn ne(a: f64, b: f64) -> bool {
    a != b && (a - b).abs() > EPSILON
}
pub(crate) fn lt(a: f64, b: f64) -> bool {
    a + EPSILON < b
}
pub(crate) fn le(a: f64, b: f64) -> bool {
    a <= b + EPSILON
}
pub(crate) fn gt(a: f64, b: f64) -> bool {
    lt(b, a)
}
pub(crate) fn ge(a: f64, b: f64) -> bool {
    le(b, a)
}

/// Equality of float8: NaN equals itself.
pub(crate) fn same(a: f64, b: f64) -> bool {
    a == b || a.is_nan() && b.is_nan()
}

/// The larger one in the order of float8, where NaN is above all.
pub(crate) fn max(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b { a } else { b }
}

pub(crate) fn min(a: f64, b: f64) -> f64 {
    if b.is_nan() || a < b { a } else { b }
}

fn checked(value: f64, overflows: bool) -> Result<f64> {
    if value.is_infinite() && overflows {
        return Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"));
    }
    Ok(value)
}

pub(crate) fn add(a: f64, b: f64) -> Result<f64> {
    checked(a + b, a.is_finite() && b.is_finite())
}
pub(crate) fn sub(a: f64, b: f64) -> Result<f64> {
    add(a, -b)
}
pub(crate) fn mul(a: f64, b: f64) -> Result<f64> {
    let value = checked(a * b, a.is_finite() && b.is_finite())?;
    if value == 0.0 && a != 0.0 && b != 0.0 {
        return Err(underflow());
    }
    Ok(value)
}
pub(crate) fn div(a: f64, b: f64) -> Result<f64> {
    if b == 0.0 && !a.is_nan() {
        return Err(err!(DIVISION_BY_ZERO, "division by zero"));
    }
    let value = checked(a / b, a.is_finite())?;
    if value == 0.0 && a != 0.0 && b.is_finite() {
        return Err(underflow());
    }
    Ok(value)
}

fn underflow() -> base::Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}

/// The length of the diagonal.
///
/// # Errors
/// `22003` when it is out of range.
pub(crate) fn hypot(a: f64, b: f64) -> Result<f64> {
    let length = diagonal(a, b);
    if !a.is_finite() || !b.is_finite() || a == 0.0 || b == 0.0 {
        return Ok(length);
    }
    let length = checked(length, true)?;
    if length == 0.0 { Err(underflow()) } else { Ok(length) }
}

/// The same without a look at its range: infinite when a side is, else NaN when a side is.
pub(crate) fn diagonal(a: f64, b: f64) -> f64 {
    let (a, b) = (a.abs(), b.abs());
    // Neither sees NaN if there is another number.
    let (x, y) = (a.max(b), a.min(b));
    if x.is_infinite() {
        return x;
    }
    if a.is_nan() | b.is_nan() {
        return f64::NAN;
    }
    if y == 0.0 {
        return x;
    }
    let ratio = y / x;
    x * (1.0 + ratio * ratio).sqrt()
}

/// A point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

impl Point {
    pub(crate) fn new(x: f64, y: f64) -> Point {
        Point { x, y }
    }

    /// The same place.
    pub(crate) fn is(self, other: Point) -> bool {
        let nan = [self.x, self.y, other.x, other.y].iter().any(|v| v.is_nan());
        if nan {
            return same(self.x, other.x) && same(self.y, other.y);
        }
        eq(self.x, other.x) && eq(self.y, other.y)
    }

    pub(crate) fn plus(self, p: Point) -> Result<Point> {
        Ok(Point::new(add(self.x, p.x)?, add(self.y, p.y)?))
    }

    pub(crate) fn minus(self, p: Point) -> Result<Point> {
        Ok(Point::new(sub(self.x, p.x)?, sub(self.y, p.y)?))
    }

    /// The product of complex numbers: turned and stretched.
    pub(crate) fn times(self, p: Point) -> Result<Point> {
        Ok(Point::new(
            sub(mul(self.x, p.x)?, mul(self.y, p.y)?)?,
            add(mul(self.x, p.y)?, mul(self.y, p.x)?)?,
        ))
    }

    pub(crate) fn over(self, p: Point) -> Result<Point> {
        let by = add(mul(p.x, p.x)?, mul(p.y, p.y)?)?;
        Ok(Point::new(
            div(add(mul(self.x, p.x)?, mul(self.y, p.y)?)?, by)?,
            div(sub(mul(self.y, p.x)?, mul(self.x, p.y)?)?, by)?,
        ))
    }

    pub(crate) fn distance(self, p: Point) -> Result<f64> {
        hypot(sub(self.x, p.x)?, sub(self.y, p.y)?)
    }

    /// The slope of the line through both; infinite when it is vertical.
    pub(crate) fn slope(self, p: Point) -> Result<f64> {
        if eq(self.x, p.x) {
            Ok(f64::INFINITY)
        } else if eq(self.y, p.y) {
            Ok(0.0)
        } else {
            div(sub(self.y, p.y)?, sub(self.x, p.x)?)
        }
    }

    /// The slope of what is perpendicular to that line.
    pub(crate) fn inverse_slope(self, p: Point) -> Result<f64> {
        if eq(self.x, p.x) {
            Ok(0.0)
        } else if eq(self.y, p.y) {
            Ok(f64::INFINITY)
        } else {
            div(sub(self.x, p.x)?, sub(p.y, self.y)?)
        }
    }
}

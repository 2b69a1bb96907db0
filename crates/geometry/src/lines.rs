//! Lines and line segments.

use base::{Result, err};

use crate::basic::*;

/// `Ax + By + C = 0`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    pub a: f64,
    pub b: f64,
    pub c: f64,
}

/// From one point to the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lseg {
    pub p: [Point; 2],
}

fn plain_zero(v: f64) -> f64 {
    if v == 0.0 { 0.0 } else { v }
}

impl Line {
    /// Through a point with a slope.
    pub(crate) fn sloped(p: Point, slope: f64) -> Result<Line> {
        Ok(if slope == 0.0 {
            Line { a: 0.0, b: -1.0, c: p.y }
        } else if slope.is_infinite() {
            Line { a: -1.0, b: 0.0, c: p.x }
        } else {
            Line { a: slope, b: -1.0, c: plain_zero(sub(p.y, mul(slope, p.x)?)?) }
        })
    }

    /// Through two points.
    ///
    /// # Errors
    /// `22023`: they are one.
    pub(crate) fn through(p: Point, q: Point) -> Result<Line> {
        if p.is(q) {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "invalid line specification: must be two distinct points"
            ));
        }
        Line::sloped(p, p.slope(q)?)
    }

    pub(crate) fn slope(&self) -> Result<f64> {
        if zero(self.a) {
            Ok(0.0)
        } else if zero(self.b) {
            Ok(f64::INFINITY)
        } else {
            div(self.a, -self.b)
        }
    }

    pub(crate) fn inverse_slope(&self) -> Result<f64> {
        if zero(self.a) {
            Ok(f64::INFINITY)
        } else if zero(self.b) {
            Ok(0.0)
        } else {
            div(self.b, self.a)
        }
    }

    pub(crate) fn is(&self, l: &Line) -> Result<bool> {
        let (x, y) = ([self.a, self.b, self.c], [l.a, l.b, l.c]);
        if x.iter().chain(&y).any(|v| v.is_nan()) {
            return Ok(x.iter().zip(&y).all(|(a, b)| same(*a, *b)));
        }
        let ratio = match (0..3).find(|n| !zero(y[*n])) {
            Some(n) => div(x[n], y[n])?,
            None => 1.0,
        };
        for (a, b) in x.iter().zip(&y) {
            if !eq(*a, mul(ratio, *b)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(crate) fn is_perpendicular(&self, l: &Line) -> Result<bool> {
        Ok(if zero(self.a) {
            zero(l.b)
        } else if zero(l.a) {
            zero(self.b)
        } else if zero(self.b) {
            zero(l.a)
        } else if zero(l.b) {
            zero(self.a)
        } else {
            eq(div(mul(self.a, l.a)?, mul(self.b, l.b)?)?, -1.0)
        })
    }

    /// Where two lines meet; None: they are parallel.
    pub(crate) fn meets(&self, l: &Line) -> Result<Option<Point>> {
        let (one, other) = match (zero(self.b), zero(l.b)) {
            (false, _) => (self, l),
            (true, false) => (l, self),
            (true, true) => return Ok(None),
        };
        if eq(other.a, mul(other.b, div(one.a, one.b)?)?) {
            return Ok(None);
        }
        let x = div(
            sub(mul(one.b, other.c)?, mul(other.b, one.c)?)?,
            sub(mul(one.a, other.b)?, mul(other.a, one.b)?)?,
        )?;
        let y = div(-add(mul(one.a, x)?, one.c)?, one.b)?;
        Ok(Some(Point::new(plain_zero(x), plain_zero(y))))
    }

    pub(crate) fn contains(&self, p: Point) -> Result<bool> {
        Ok(zero(add(add(mul(self.a, p.x)?, mul(self.b, p.y)?)?, self.c)?))
    }

    /// The point of the line that is nearest, and how far it is.
    pub(crate) fn nearest(&self, p: Point) -> Result<(Point, f64)> {
        let across = Line::sloped(p, self.inverse_slope()?)?;
        match self.meets(&across)? {
            Some(near) => Ok((near, near.distance(p)?)),
            None => Ok((Point::new(f64::NAN, f64::NAN), f64::NAN)),
        }
    }

    pub(crate) fn distance(&self, l: &Line) -> Result<f64> {
        if self.meets(l)?.is_some() {
            return Ok(0.0);
        }
        let ratio = if !zero(self.a) && !self.a.is_nan() && !zero(l.a) && !l.a.is_nan() {
            div(self.a, l.a)?
        } else if !zero(self.b) && !self.b.is_nan() && !zero(l.b) && !l.b.is_nan() {
            div(self.b, l.b)?
        } else {
            1.0
        };
        div(sub(self.c, mul(ratio, l.c)?)?.abs(), hypot(self.a, self.b)?)
    }
}

impl Lseg {
    pub(crate) fn new(a: Point, b: Point) -> Lseg {
        Lseg { p: [a, b] }
    }

    pub(crate) fn slope(&self) -> Result<f64> {
        self.p[0].slope(self.p[1])
    }

    pub(crate) fn inverse_slope(&self) -> Result<f64> {
        self.p[0].inverse_slope(self.p[1])
    }

    pub(crate) fn length(&self) -> Result<f64> {
        self.p[0].distance(self.p[1])
    }

    pub(crate) fn center(&self) -> Result<Point> {
        let half = |a: f64, b: f64| div(add(a, b)?, 2.0);
        Ok(Point::new(half(self.p[0].x, self.p[1].x)?, half(self.p[0].y, self.p[1].y)?))
    }

    pub(crate) fn line(&self) -> Result<Line> {
        Line::sloped(self.p[0], self.slope()?)
    }

    pub(crate) fn contains(&self, p: Point) -> Result<bool> {
        let around = add(p.distance(self.p[0])?, p.distance(self.p[1])?)?;
        Ok(eq(around, self.length()?))
    }

    /// Where it meets a line.
    pub(crate) fn meets_line(&self, l: &Line) -> Result<Option<Point>> {
        let Some(at) = self.line()?.meets(l)? else { return Ok(None) };
        if !self.contains(at)? {
            return Ok(None);
        }
        // An end that is so near is what is meant.
        Ok(Some(self.p.into_iter().find(|p| p.is(at)).unwrap_or(at)))
    }

    /// Where two segments meet.
    pub(crate) fn meets(&self, s: &Lseg) -> Result<Option<Point>> {
        match self.meets_line(&s.line()?)? {
            Some(at) if s.contains(at)? => Ok(Some(at)),
            _ => Ok(None),
        }
    }

    /// The point of the segment that is nearest to a line.
    pub(crate) fn nearest_to_line(&self, l: &Line) -> Result<(Point, f64)> {
        if let Some(at) = self.meets_line(l)? {
            return Ok((at, 0.0));
        }
        let (a, b) = (l.nearest(self.p[0])?.1, l.nearest(self.p[1])?.1);
        Ok(if a < b { (self.p[0], a) } else { (self.p[1], b) })
    }

    /// The point of the segment that is nearest to another.
    pub(crate) fn nearest(&self, p: Point) -> Result<(Point, f64)> {
        let across = Line::sloped(p, self.inverse_slope()?)?;
        let (at, _) = self.nearest_to_line(&across)?;
        Ok((at, at.distance(p)?))
    }

    /// The point of the segment that is nearest to another segment.
    pub(crate) fn nearest_to(&self, s: &Lseg) -> Result<(Point, f64)> {
        if let Some(at) = self.meets(s)? {
            return Ok((at, 0.0));
        }
        let mut best = self.nearest(s.p[0])?;
        let other = self.nearest(s.p[1])?;
        if other.1 < best.1 {
            best = other;
        }
        for end in self.p {
            let (_, distance) = s.nearest(end)?;
            if distance < best.1 {
                best = (end, distance);
            }
        }
        Ok(best)
    }
}

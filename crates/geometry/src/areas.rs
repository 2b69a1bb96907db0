//! Boxes, circles, paths and polygons.

use base::Result;

use crate::basic::*;
use crate::lines::Lseg;

/// A box by its corners: no coordinate of `high` is below that of `low`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    pub high: Point,
    pub low: Point,
}

/// A circle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Circle {
    pub center: Point,
    pub radius: f64,
}

impl Rect {
    pub(crate) fn new(a: Point, b: Point) -> Rect {
        Rect {
            high: Point::new(max(a.x, b.x), max(a.y, b.y)),
            low: Point::new(min(a.x, b.x), min(a.y, b.y)),
        }
    }

    /// The smallest box around points.
    pub(crate) fn around(points: &[Point]) -> Rect {
        let first = points.first().copied().unwrap_or(Point::new(0.0, 0.0));
        points.iter().fold(Rect { high: first, low: first }, |r, p| Rect {
            high: Point::new(max(r.high.x, p.x), max(r.high.y, p.y)),
            low: Point::new(min(r.low.x, p.x), min(r.low.y, p.y)),
        })
    }

    pub(crate) fn width(&self) -> Result<f64> {
        sub(self.high.x, self.low.x)
    }
    pub(crate) fn height(&self) -> Result<f64> {
        sub(self.high.y, self.low.y)
    }
    pub(crate) fn area(&self) -> Result<f64> {
        mul(self.width()?, self.height()?)
    }
    pub(crate) fn center(&self) -> Result<Point> {
        Lseg::new(self.high, self.low).center()
    }
    pub(crate) fn overlaps(&self, r: &Rect) -> bool {
        le(self.low.x, r.high.x)
            && le(r.low.x, self.high.x)
            && le(self.low.y, r.high.y)
            && le(r.low.y, self.high.y)
    }
    pub(crate) fn contains(&self, r: &Rect) -> bool {
        ge(self.high.x, r.high.x)
            && le(self.low.x, r.low.x)
            && ge(self.high.y, r.high.y)
            && le(self.low.y, r.low.y)
    }
    pub(crate) fn has(&self, p: Point) -> bool {
        self.high.x >= p.x && self.low.x <= p.x && self.high.y >= p.y && self.low.y <= p.y
    }
    /// Left, bottom, top and right side.
    pub(crate) fn sides(&self) -> [Lseg; 4] {
        let (top_left, bottom_right) =
            (Point::new(self.low.x, self.high.y), Point::new(self.high.x, self.low.y));
        [
            Lseg::new(self.low, top_left),
            Lseg::new(self.low, bottom_right),
            Lseg::new(self.high, top_left),
            Lseg::new(self.high, bottom_right),
        ]
    }

    /// The nearest point of the box.
    pub(crate) fn nearest(&self, p: Point) -> Result<(Point, f64)> {
        if self.has(p) {
            return Ok((p, 0.0));
        }
        best(self.sides().iter().map(|s| s.nearest(p)))
    }

    pub(crate) fn meets(&self, s: &Lseg) -> Result<bool> {
        if !self.overlaps(&Rect::new(s.p[0], s.p[1])) {
            return Ok(false);
        }
        if self.has(s.p[0]) || self.has(s.p[1]) {
            return Ok(true);
        }
        for side in self.sides() {
            if side.meets(s)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The point of the box that is nearest to a segment.
    pub(crate) fn nearest_to(&self, s: &Lseg) -> Result<(Point, f64)> {
        if self.meets(s)? {
            return Ok((s.nearest(self.center()?)?.0, 0.0));
        }
        best(self.sides().iter().map(|side| side.nearest_to(s)))
    }
}

/// The first of the nearest.
fn best(all: impl Iterator<Item = Result<(Point, f64)>>) -> Result<(Point, f64)> {
    let mut best: Option<(Point, f64)> = None;
    for found in all {
        let found = found?;
        if best.is_none_or(|b| found.1 < b.1) {
            best = Some(found);
        }
    }
    Ok(best.unwrap_or((Point::new(f64::NAN, f64::NAN), f64::NAN)))
}

impl Circle {
    pub(crate) fn area(&self) -> Result<f64> {
        mul(mul(self.radius, self.radius)?, std::f64::consts::PI)
    }
    pub(crate) fn distance(&self, c: &Circle) -> Result<f64> {
        sub(self.center.distance(c.center)?, add(self.radius, c.radius)?)
    }
}

/// The segments of a path.
pub(crate) fn segments(points: &[Point], closed: bool) -> impl Iterator<Item = Lseg> + '_ {
    let count = points.len();
    let from = usize::from(!closed);
    (from..count).map(move |n| {
        let before = if n == 0 { count - 1 } else { n - 1 };
        Lseg::new(points[before], points[n])
    })
}

/// Where a point is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Inside {
    No,
    Yes,
    Border,
}

/// Where a point is in relation to a polygon: edges that a ray to the right crosses upwards and downwards.
pub(crate) fn inside(p: Point, polygon: &[Point]) -> Result<Inside> {
    if p.x.is_nan() || p.y.is_nan() {
        return Ok(Inside::Border);
    }
    let mut winding = 0;
    for edge in segments(polygon, true) {
        sched::check_interrupts()?;
        let relative = |q: Point| Point::new(q.x - p.x, q.y - p.y);
        let (a, b) = (relative(edge.p[0]), relative(edge.p[1]));
        let cross = a.x * b.y - a.y * b.x;
        let on = zero(cross)
            && le(min(a.x, b.x), 0.0)
            && ge(max(a.x, b.x), 0.0)
            && le(min(a.y, b.y), 0.0)
            && ge(max(a.y, b.y), 0.0);
        if on {
            return Ok(Inside::Border);
        }
        if a.y <= 0.0 && b.y > 0.0 && cross > 0.0 {
            winding += 1;
        } else if a.y > 0.0 && b.y <= 0.0 && cross < 0.0 {
            winding -= 1;
        }
    }
    Ok(if winding == 0 { Inside::No } else { Inside::Yes })
}

/// Whether a polygon has a segment inside: also between the places at which edges meet it.
fn has_segment(polygon: &[Point], s: &Lseg) -> Result<bool> {
    let mut cuts = vec![s.p[0], s.p[1]];
    for edge in segments(polygon, true) {
        sched::check_interrupts()?;
        for p in edge.p {
            if s.contains(p)? {
                cuts.push(p);
            }
        }
        cuts.extend(edge.meets(s)?);
    }
    let start = s.p[0];
    let mut sorted = Vec::new();
    for p in cuts {
        sorted.push((p.distance(start)?, p));
    }
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    for pair in sorted.windows(2) {
        if !pair[0].1.is(pair[1].1) {
            let middle = Lseg::new(pair[0].1, pair[1].1).center()?;
            if inside(middle, polygon)? == Inside::No {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Whether a polygon has another one inside.
pub(crate) fn contains(polygon: &[Point], part: &[Point]) -> Result<bool> {
    if !Rect::around(polygon).contains(&Rect::around(part)) {
        return Ok(false);
    }
    for p in part {
        if inside(*p, polygon)? == Inside::No {
            return Ok(false);
        }
    }
    for s in segments(part, true) {
        if !has_segment(polygon, &s)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether two polygons have a point in common.
pub(crate) fn overlap(a: &[Point], b: &[Point]) -> Result<bool> {
    if !Rect::around(a).overlaps(&Rect::around(b)) {
        return Ok(false);
    }
    for x in segments(a, true) {
        for y in segments(b, true) {
            sched::check_interrupts()?;
            if x.meets(&y)?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(inside(a[0], b)? != Inside::No || inside(b[0], a)? != Inside::No)
}

/// Whether polygons have the same points in the same or the opposite order, wherever they begin.
pub(crate) fn alike(a: &[Point], b: &[Point]) -> bool {
    let n = a.len();
    n == b.len()
        && (0..n).any(|shift| {
            (0..n).all(|i| a[i].is(b[(i + shift) % n]))
                || (0..n).all(|i| a[i].is(b[(shift + n - i) % n]))
        })
}

/// The nearest distance between the segments of two paths; None: there are no segments.
pub(crate) fn distance(a: (&[Point], bool), b: (&[Point], bool)) -> Result<Option<f64>> {
    let mut nearest = None;
    for x in segments(a.0, a.1) {
        for y in segments(b.0, b.1) {
            sched::check_interrupts()?;
            let distance = x.nearest_to(&y)?.1;
            if nearest.is_none_or(|n| distance < n) {
                nearest = Some(distance);
            }
        }
    }
    Ok(nearest)
}

/// The nearest distance from a point to the segments of a path.
pub(crate) fn point_distance(p: Point, points: &[Point], closed: bool) -> Result<Option<f64>> {
    let mut nearest = None;
    for s in segments(points, closed) {
        sched::check_interrupts()?;
        let distance = s.nearest(p)?.1;
        if nearest.is_none_or(|n| distance < n) {
            nearest = Some(distance);
        }
    }
    Ok(nearest)
}

/// The circle around a polygon: its center is the points' mean, its radius their mean distance.
pub(crate) fn circle_of(points: &[Point]) -> Result<Circle> {
    let n = points.len() as f64;
    let mut center = Point::new(0.0, 0.0);
    for p in points {
        center = center.plus(*p)?;
    }
    let center = Point::new(div(center.x, n)?, div(center.y, n)?);
    let mut radius = 0.0;
    for p in points {
        radius = add(radius, p.distance(center)?)?;
    }
    Ok(Circle { center, radius: div(radius, n)? })
}

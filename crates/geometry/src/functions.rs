//! The bodies of functions, by key.

use base::{Result, err};
use types::Datum;
use types::func::Body;
use types::io::FormatContext;

use crate::areas::{self, Circle, Inside, Rect, segments};
use crate::basic::*;
use crate::lines::{Line, Lseg};
use crate::shape::{Kind, Shape};

type Args<'a> = &'a [Datum];

fn shape(d: &Datum) -> &Shape {
    d.as_open()
}

#[cold]
fn wrong(s: &Shape) -> ! {
    panic!("a shape of another type than the plan says: {s:?}")
}

macro_rules! getters { ($($name:ident: $variant:ident => $ty:ty;)*) => { $(
    fn $name(d: &Datum) -> $ty {
        match shape(d) {
            Shape::$variant(v) => v.clone(),
            other => wrong(other),
        }
    } )* };
}

getters! {
    pt: Point => Point;
    lseg: Lseg => Lseg;
    line: Line => Line;
    rect: Box => Rect;
    circle: Circle => Circle;
}

fn poly(d: &Datum) -> &[Point] {
    match shape(d) {
        Shape::Polygon(points) => points,
        other => wrong(other),
    }
}

/// Closed, points.
fn path(d: &Datum) -> (bool, &[Point]) {
    match shape(d) {
        Shape::Path(closed, points) => (*closed, points),
        other => wrong(other),
    }
}

fn bounds(d: &Datum) -> Rect {
    Rect::around(poly(d))
}

/// The result of a body, as a datum.
trait Give {
    fn give(self) -> Datum;
}
macro_rules! gives { ($($ty:ty: $v:ident => $e:expr;)*) => { $(
    impl Give for $ty {
        fn give(self) -> Datum {
            let $v = self;
            $e
        }
    } )* };
}
gives! {
    bool: v => Datum::Bool(v);
    f64: v => Datum::Float8(v);
    i32: v => Datum::Int4(v);
    Point: v => Datum::open(Shape::Point(v));
    Lseg: v => Datum::open(Shape::Lseg(v));
    Line: v => Datum::open(Shape::Line(v));
    Rect: v => Datum::open(Shape::Box(v));
    Circle: v => Datum::open(Shape::Circle(v));
    Shape: v => Datum::open(v);
}
impl<T: Give> Give for Option<T> {
    fn give(self) -> Datum {
        self.map_or(Datum::Null, Give::give)
    }
}

/// `key: a, b => body` of what can fail; arguments are read by the functions that are named.
macro_rules! bodies { ($out:ident; $($key:literal ($($get:ident $arg:ident),*) $body:expr;)*) => { $(
    $out.push(($key, Body::Scalar(|args: Args<'_>, _cx: &FormatContext| {
        let mut at = 0..;
        $(let $arg = $get(&args[at.next().unwrap_or(0)]);)*
        let _ = (&args, at);
        let value: Result<_> = (|| Ok($body))();
        value.map(Give::give)
    })));
)* } }

fn float(d: &Datum) -> f64 {
    d.as_float8()
}
fn int(d: &Datum) -> i32 {
    d.as_int4()
}

fn near(found: (Point, f64)) -> Option<Point> {
    (!found.1.is_nan()).then_some(found.0)
}

fn each(points: &[Point], mut f: impl FnMut(Point) -> Result<Point>) -> Result<Vec<Point>> {
    points
        .iter()
        .map(|p| {
            sched::check_interrupts()?;
            f(*p)
        })
        .collect()
}

fn on_path(p: Point, (closed, points): (bool, &[Point])) -> Result<bool> {
    if closed {
        return Ok(areas::inside(p, points)? != Inside::No);
    }
    for s in segments(points, false) {
        sched::check_interrupts()?;
        if s.contains(p)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn paths_meet(a: (bool, &[Point]), b: (bool, &[Point])) -> Result<bool> {
    if !Rect::around(a.1).overlaps(&Rect::around(b.1)) {
        return Ok(false);
    }
    for x in segments(a.1, a.0) {
        for y in segments(b.1, b.0) {
            sched::check_interrupts()?;
            if x.meets(&y)?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn path_length((closed, points): (bool, &[Point])) -> Result<f64> {
    segments(points, closed).try_fold(0.0, |sum, s| add(sum, s.length()?))
}

fn path_area(points: &[Point]) -> Result<f64> {
    let mut area = 0.0;
    for (n, p) in points.iter().enumerate() {
        let q = points[(n + 1) % points.len()];
        area = add(area, mul(p.x, q.y)?)?;
        area = sub(area, mul(p.y, q.x)?)?;
    }
    Ok(area.abs() / 2.0)
}

/// A polygon of points on a circle.
fn circle_polygon(n: i32, c: &Circle) -> Result<Shape> {
    if zero(c.radius) {
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "cannot convert circle with radius zero to polygon"
        ));
    }
    if n < 2 {
        return Err(err!(INVALID_PARAMETER_VALUE, "must request at least 2 points"));
    }
    // As many as fit PostgreSQL's 32-bit lengths.
    if n > (i32::MAX - 40) / 16 {
        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "too many points requested"));
    }
    if n as usize > types::bulk::PIECE_BYTES {
        types::bulk::ask(n as usize * 16)?;
    }
    let step = div(2.0 * std::f64::consts::PI, f64::from(n))?;
    let mut points = Vec::new();
    for i in 0..n {
        sched::check_interrupts()?;
        let angle = mul(step, f64::from(i))?;
        points.push(Point::new(
            sub(c.center.x, mul(c.radius, angle.cos())?)?,
            add(c.center.y, mul(c.radius, angle.sin())?)?,
        ));
    }
    Ok(Shape::Polygon(points))
}

fn circle_to_polygon(c: &Circle, points: &[Point]) -> Result<f64> {
    let distance = to_polygon(c.center, points)?;
    Ok(sub(distance, c.radius)?.max(0.0))
}

fn to_polygon(p: Point, points: &[Point]) -> Result<f64> {
    if areas::inside(p, points)? != Inside::No {
        return Ok(0.0);
    }
    Ok(areas::point_distance(p, points, true)?.unwrap_or(0.0))
}

fn line_meets_box(l: &Line, r: &Rect) -> Result<bool> {
    for side in r.sides() {
        if side.meets_line(l)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn outside(distance: f64) -> f64 {
    if distance < 0.0 { 0.0 } else { distance }
}

pub(crate) fn bodies() -> Vec<(&'static str, Body)> {
    let mut out = Vec::new();
    points(&mut out);
    lines(&mut out);
    boxes(&mut out);
    paths(&mut out);
    circles(&mut out);
    out
}

type Bodies = Vec<(&'static str, Body)>;

fn points(out: &mut Bodies) {
    macro_rules! reads { ($($key:literal $kind:ident),*) => { $(
        out.push(($key, Body::Scalar(|a, _| {
            crate::io::read(Kind::$kind, a[0].as_str()).map(Datum::open)
        })));
    )* } }
    reads!("point_in" Point, "lseg_in" Lseg, "line_in" Line, "box_in" Box, "path_in" Path,
        "poly_in" Polygon, "circle_in" Circle);
    bodies! { out;
        "construct_point" (float x, float y) Point::new(x, y);
        "point_left" (pt a, pt b) lt(a.x, b.x);
        "point_right" (pt a, pt b) gt(a.x, b.x);
        "point_above" (pt a, pt b) gt(a.y, b.y);
        "point_below" (pt a, pt b) lt(a.y, b.y);
        "point_vert" (pt a, pt b) eq(a.x, b.x);
        "point_horiz" (pt a, pt b) eq(a.y, b.y);
        "point_eq" (pt a, pt b) a.is(b);
        "point_ne" (pt a, pt b) !a.is(b);
        "point_add" (pt a, pt b) a.plus(b)?;
        "point_sub" (pt a, pt b) a.minus(b)?;
        "point_mul" (pt a, pt b) a.times(b)?;
        "point_div" (pt a, pt b) a.over(b)?;
        "point_distance" (pt a, pt b) a.distance(b)?;
        "point_slope" (pt a, pt b) a.slope(b)?;
        "dist_pl" (pt p, line l) l.nearest(p)?.1;
        "dist_lp" (line l, pt p) l.nearest(p)?.1;
        "dist_ps" (pt p, lseg s) s.nearest(p)?.1;
        "dist_sp" (lseg s, pt p) s.nearest(p)?.1;
        "dist_pb" (pt p, rect r) r.nearest(p)?.1;
        "dist_bp" (rect r, pt p) r.nearest(p)?.1;
        "on_pb" (pt p, rect r) r.has(p);
        "on_pl" (pt p, line l) l.contains(p)?;
        "on_ps" (pt p, lseg s) s.contains(p)?;
        "on_ppath" (pt p, path a) on_path(p, a)?;
        "close_pl" (pt p, line l) near(l.nearest(p)?);
        "close_ps" (pt p, lseg s) near(s.nearest(p)?);
        "close_pb" (pt p, rect r) near(r.nearest(p)?);
    }
}

fn lines(out: &mut Bodies) {
    bodies! { out;
        "line_construct_pp" (pt a, pt b) Line::through(a, b)?;
        "line_intersect" (line a, line b) a.meets(&b)?.is_some();
        "line_interpt" (line a, line b) a.meets(&b)?;
        "line_parallel" (line a, line b) a.meets(&b)?.is_none();
        "line_perp" (line a, line b) a.is_perpendicular(&b)?;
        "line_vertical" (line l) zero(l.b);
        "line_horizontal" (line l) zero(l.a);
        "line_eq" (line a, line b) a.is(&b)?;
        "line_distance" (line a, line b) a.distance(&b)?;
        "lseg_construct" (pt a, pt b) Lseg::new(a, b);
        "lseg_intersect" (lseg a, lseg b) a.meets(&b)?.is_some();
        "lseg_interpt" (lseg a, lseg b) a.meets(&b)?;
        "lseg_parallel" (lseg a, lseg b) eq(a.slope()?, b.slope()?);
        "lseg_perp" (lseg a, lseg b) eq(a.slope()?, b.inverse_slope()?);
        "lseg_vertical" (lseg s) eq(s.p[0].x, s.p[1].x);
        "lseg_horizontal" (lseg s) eq(s.p[0].y, s.p[1].y);
        "lseg_eq" (lseg a, lseg b) a.p[0].is(b.p[0]) && a.p[1].is(b.p[1]);
        "lseg_ne" (lseg a, lseg b) !(a.p[0].is(b.p[0]) && a.p[1].is(b.p[1]));
        "lseg_lt" (lseg a, lseg b) lt(a.length()?, b.length()?);
        "lseg_le" (lseg a, lseg b) le(a.length()?, b.length()?);
        "lseg_gt" (lseg a, lseg b) gt(a.length()?, b.length()?);
        "lseg_ge" (lseg a, lseg b) ge(a.length()?, b.length()?);
        "lseg_length" (lseg s) s.length()?;
        "lseg_center" (lseg s) s.center()?;
        "lseg_distance" (lseg a, lseg b) a.nearest_to(&b)?.1;
        "dist_sl" (lseg s, line l) s.nearest_to_line(&l)?.1;
        "dist_ls" (line l, lseg s) s.nearest_to_line(&l)?.1;
        "dist_sb" (lseg s, rect r) r.nearest_to(&s)?.1;
        "dist_bs" (rect r, lseg s) r.nearest_to(&s)?.1;
        "on_sl" (lseg s, line l) l.contains(s.p[0])? && l.contains(s.p[1])?;
        "on_sb" (lseg s, rect r) r.has(s.p[0]) && r.has(s.p[1]);
        "inter_sl" (lseg s, line l) s.meets_line(&l)?.is_some();
        "inter_sb" (lseg s, rect r) r.meets(&s)?;
        "inter_lb" (line l, rect r) line_meets_box(&l, &r)?;
        "close_ls" (line l, lseg s) match l.slope()? == s.slope()? {
            true => None,
            false => near(s.nearest_to_line(&l)?),
        };
        "close_lseg" (lseg a, lseg b) match a.slope()? == b.slope()? {
            true => None,
            false => near(b.nearest_to(&a)?),
        };
        "close_sb" (lseg s, rect r) near(r.nearest_to(&s)?);
    }
}

fn boxes(out: &mut Bodies) {
    /// The same comparison of boxes, and of the boxes around polygons.
    macro_rules! both { ($($box:literal $poly:literal ($a:ident, $b:ident) $e:expr;)*) => {
        bodies! { out; $(
            $box (rect $a, rect $b) $e;
            $poly (bounds $a, bounds $b) $e;
        )* }
    } }
    both! {
        "box_left" "poly_left" (a, b) lt(a.high.x, b.low.x);
        "box_overleft" "poly_overleft" (a, b) le(a.high.x, b.high.x);
        "box_right" "poly_right" (a, b) gt(a.low.x, b.high.x);
        "box_overright" "poly_overright" (a, b) ge(a.low.x, b.low.x);
        "box_below" "poly_below" (a, b) lt(a.high.y, b.low.y);
        "box_overbelow" "poly_overbelow" (a, b) le(a.high.y, b.high.y);
        "box_above" "poly_above" (a, b) gt(a.low.y, b.high.y);
        "box_overabove" "poly_overabove" (a, b) ge(a.low.y, b.low.y);
    }
    bodies! { out;
        "box_below_eq" (rect a, rect b) le(a.high.y, b.low.y);
        "box_above_eq" (rect a, rect b) ge(a.low.y, b.high.y);
        "box_same" (rect a, rect b) a.high.is(b.high) && a.low.is(b.low);
        "box_overlap" (rect a, rect b) a.overlaps(&b);
        "box_contain" (rect a, rect b) a.contains(&b);
        "box_contained" (rect a, rect b) b.contains(&a);
        "box_contain_pt" (rect r, pt p) r.has(p);
        "box_lt" (rect a, rect b) lt(a.area()?, b.area()?);
        "box_le" (rect a, rect b) le(a.area()?, b.area()?);
        "box_eq" (rect a, rect b) eq(a.area()?, b.area()?);
        "box_gt" (rect a, rect b) gt(a.area()?, b.area()?);
        "box_ge" (rect a, rect b) ge(a.area()?, b.area()?);
        "box_area" (rect r) r.area()?;
        "box_width" (rect r) r.width()?;
        "box_height" (rect r) r.height()?;
        "box_center" (rect r) r.center()?;
        "box_distance" (rect a, rect b) a.center()?.distance(b.center()?)?;
        "box_diagonal" (rect r) Lseg::new(r.high, r.low);
        "box_intersect" (rect a, rect b) a.overlaps(&b).then(|| Rect {
            high: Point::new(min(a.high.x, b.high.x), min(a.high.y, b.high.y)),
            low: Point::new(max(a.low.x, b.low.x), max(a.low.y, b.low.y)),
        });
        "boxes_bound_box" (rect a, rect b) Rect::around(&[a.high, a.low, b.high, b.low]);
        "box_add" (rect r, pt p) Rect { high: r.high.plus(p)?, low: r.low.plus(p)? };
        "box_sub" (rect r, pt p) Rect { high: r.high.minus(p)?, low: r.low.minus(p)? };
        "box_mul" (rect r, pt p) Rect::new(r.high.times(p)?, r.low.times(p)?);
        "box_div" (rect r, pt p) Rect::new(r.high.over(p)?, r.low.over(p)?);
        "points_box" (pt a, pt b) Rect::new(a, b);
        "point_box" (pt p) Rect { high: p, low: p };
        "poly_box" (bounds r) r;
        "box_circle" (rect r) Circle { center: r.center()?, radius: r.center()?.distance(r.high)? };
        "box_poly" (rect r) Shape::Polygon(vec![
            r.low,
            Point::new(r.low.x, r.high.y),
            r.high,
            Point::new(r.high.x, r.low.y),
        ]);
        "spg_poly_quad_compress" (bounds r) r;
    }
}

fn paths(out: &mut Bodies) {
    bodies! { out;
        "path_npoints" (path a) a.1.len() as i32;
        "path_isclosed" (path a) a.0;
        "path_isopen" (path a) !a.0;
        "path_close" (path a) Shape::Path(true, types::bulk::copied(a.1)?);
        "path_open" (path a) Shape::Path(false, types::bulk::copied(a.1)?);
        "path_n_lt" (path a, path b) a.1.len() < b.1.len();
        "path_n_le" (path a, path b) a.1.len() <= b.1.len();
        "path_n_eq" (path a, path b) a.1.len() == b.1.len();
        "path_n_gt" (path a, path b) a.1.len() > b.1.len();
        "path_n_ge" (path a, path b) a.1.len() >= b.1.len();
        "path_inter" (path a, path b) paths_meet(a, b)?;
        "path_distance" (path a, path b) areas::distance((a.1, a.0), (b.1, b.0))?;
        "path_length" (path a) path_length(a)?;
        "path_area" (path a) match a.0 {
            true => Some(path_area(a.1)?),
            false => None,
        };
        "path_add" (path a, path b) match a.0 || b.0 {
            true => None,
            false => Some(Shape::Path(false, [types::bulk::copied(a.1)?.as_slice(), b.1].concat())),
        };
        "path_add_pt" (path a, pt p) Shape::Path(a.0, each(a.1, |q| q.plus(p))?);
        "path_sub_pt" (path a, pt p) Shape::Path(a.0, each(a.1, |q| q.minus(p))?);
        "path_mul_pt" (path a, pt p) Shape::Path(a.0, each(a.1, |q| q.times(p))?);
        "path_div_pt" (path a, pt p) Shape::Path(a.0, each(a.1, |q| q.over(p))?);
        "path_contain_pt" (path a, pt p) on_path(p, a)?;
        "dist_ppath" (pt p, path a) match areas::point_distance(p, a.1, a.0)? {
            // An open path of one point has no segment.
            None => Some(0.0),
            found => found,
        };
        "dist_pathp" (path a, pt p) match areas::point_distance(p, a.1, a.0)? {
            // An open path of one point has no segment.
            None => Some(0.0),
            found => found,
        };
        "path_poly" (path a) match a.0 {
            true => Shape::Polygon(types::bulk::copied(a.1)?),
            false => {
                return Err(err!(
                    INVALID_PARAMETER_VALUE,
                    "open path cannot be converted to polygon"
                ));
            }
        };
        "poly_path" (poly p) Shape::Path(true, types::bulk::copied(p)?);
        "poly_npoints" (poly p) p.len() as i32;
        "poly_center" (poly p) areas::circle_of(p)?.center;
        "poly_circle" (poly p) areas::circle_of(p)?;
        "poly_same" (poly a, poly b) areas::alike(a, b);
        "poly_overlap" (poly a, poly b) areas::overlap(a, b)?;
        "poly_contain" (poly a, poly b) areas::contains(a, b)?;
        "poly_contained" (poly a, poly b) areas::contains(b, a)?;
        "poly_contain_pt" (poly a, pt p) areas::inside(p, a)? != Inside::No;
        "pt_contained_poly" (pt p, poly a) areas::inside(p, a)? != Inside::No;
        "poly_distance" (poly a, poly b) match areas::overlap(a, b)? {
            true => Some(0.0),
            false => areas::distance((a, true), (b, true))?,
        };
        "dist_ppoly" (pt p, poly a) to_polygon(p, a)?;
        "dist_polyp" (poly a, pt p) to_polygon(p, a)?;
        "dist_cpoly" (circle c, poly p) circle_to_polygon(&c, p)?;
        "dist_polyc" (poly p, circle c) circle_to_polygon(&c, p)?;
    }
}

fn circles(out: &mut Bodies) {
    bodies! { out;
        "cr_circle" (pt p, float r) Circle { center: p, radius: r };
        "circle_center" (circle c) c.center;
        "circle_radius" (circle c) c.radius;
        "circle_diameter" (circle c) mul(c.radius, 2.0)?;
        "circle_area" (circle c) c.area()?;
        "circle_same" (circle a, circle b)
            (a.radius.is_nan() && b.radius.is_nan() || eq(a.radius, b.radius)) && a.center.is(b.center);
        "circle_overlap" (circle a, circle b)
            le(a.center.distance(b.center)?, add(a.radius, b.radius)?);
        "circle_overleft" (circle a, circle b)
            le(add(a.center.x, a.radius)?, add(b.center.x, b.radius)?);
        "circle_left" (circle a, circle b)
            lt(add(a.center.x, a.radius)?, sub(b.center.x, b.radius)?);
        "circle_right" (circle a, circle b)
            gt(sub(a.center.x, a.radius)?, add(b.center.x, b.radius)?);
        "circle_overright" (circle a, circle b)
            ge(sub(a.center.x, a.radius)?, sub(b.center.x, b.radius)?);
        "circle_below" (circle a, circle b)
            lt(add(a.center.y, a.radius)?, sub(b.center.y, b.radius)?);
        "circle_above" (circle a, circle b)
            gt(sub(a.center.y, a.radius)?, add(b.center.y, b.radius)?);
        "circle_overbelow" (circle a, circle b)
            le(add(a.center.y, a.radius)?, add(b.center.y, b.radius)?);
        "circle_overabove" (circle a, circle b)
            ge(sub(a.center.y, a.radius)?, sub(b.center.y, b.radius)?);
        "circle_contain" (circle a, circle b)
            le(a.center.distance(b.center)?, sub(a.radius, b.radius)?);
        "circle_contained" (circle a, circle b)
            le(a.center.distance(b.center)?, sub(b.radius, a.radius)?);
        "circle_eq" (circle a, circle b) eq(a.area()?, b.area()?);
        "circle_ne" (circle a, circle b) ne(a.area()?, b.area()?);
        "circle_lt" (circle a, circle b) lt(a.area()?, b.area()?);
        "circle_le" (circle a, circle b) le(a.area()?, b.area()?);
        "circle_gt" (circle a, circle b) gt(a.area()?, b.area()?);
        "circle_ge" (circle a, circle b) ge(a.area()?, b.area()?);
        "circle_add_pt" (circle c, pt p) Circle { center: c.center.plus(p)?, ..c };
        "circle_sub_pt" (circle c, pt p) Circle { center: c.center.minus(p)?, ..c };
        "circle_mul_pt" (circle c, pt p)
            Circle { center: c.center.times(p)?, radius: mul(c.radius, hypot(p.x, p.y)?)? };
        "circle_div_pt" (circle c, pt p)
            Circle { center: c.center.over(p)?, radius: div(c.radius, hypot(p.x, p.y)?)? };
        "circle_distance" (circle a, circle b) outside(a.distance(&b)?);
        "dist_pc" (pt p, circle c) outside(sub(p.distance(c.center)?, c.radius)?);
        "dist_cpoint" (circle c, pt p) outside(sub(p.distance(c.center)?, c.radius)?);
        "circle_contain_pt" (circle c, pt p) c.center.distance(p)? <= c.radius;
        "pt_contained_circle" (pt p, circle c) c.center.distance(p)? <= c.radius;
        "circle_box" (circle c) {
            let delta = div(c.radius, std::f64::consts::SQRT_2)?;
            let by = Point::new(delta, delta);
            Rect { high: c.center.plus(by)?, low: c.center.minus(by)? }
        };
        "circle_poly" (int n, circle c) circle_polygon(n, &c)?;
        "circle_poly_of_12" (circle c) circle_polygon(12, &c)?;
    }
}

//! The values.
//!
//! ```text
//! in a row   the numbers, little-endian; in front of a path's one byte: 1 when it is closed
//! ```

use std::any::Any;

use base::{Oid, Result};
use types::Datum;
use types::io::FormatContext;
use types::open::{OpenType, OpenValue};

use crate::areas::{Circle, Rect};
use crate::basic::Point;
use crate::lines::{Line, Lseg};

/// The types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Point,
    Lseg,
    Line,
    Box,
    Path,
    Polygon,
    Circle,
}

impl Kind {
    pub(crate) const fn oid(self) -> Oid {
        Oid(match self {
            Kind::Point => 600,
            Kind::Lseg => 601,
            Kind::Path => 602,
            Kind::Box => 603,
            Kind::Polygon => 604,
            Kind::Line => 628,
            Kind::Circle => 718,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Point => "point",
            Kind::Lseg => "lseg",
            Kind::Path => "path",
            Kind::Box => "box",
            Kind::Polygon => "polygon",
            Kind::Line => "line",
            Kind::Circle => "circle",
        }
    }
}

/// A value of one of the types.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A point.
    Point(Point),
    /// A segment.
    Lseg(Lseg),
    /// A line.
    Line(Line),
    /// A box.
    Box(Rect),
    /// Closed or open.
    Path(bool, Vec<Point>),
    /// A polygon, by its corners.
    Polygon(Vec<Point>),
    /// A circle.
    Circle(Circle),
}

impl Shape {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Shape::Point(_) => Kind::Point,
            Shape::Lseg(_) => Kind::Lseg,
            Shape::Line(_) => Kind::Line,
            Shape::Box(_) => Kind::Box,
            Shape::Path(..) => Kind::Path,
            Shape::Polygon(_) => Kind::Polygon,
            Shape::Circle(_) => Kind::Circle,
        }
    }

    /// The numbers that it consists of.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        let of = |points: &[Point]| points.iter().flat_map(|p| [p.x, p.y]).collect();
        match self {
            Shape::Point(p) => of(&[*p]),
            Shape::Lseg(s) => of(&s.p),
            Shape::Line(l) => vec![l.a, l.b, l.c],
            Shape::Box(r) => of(&[r.high, r.low]),
            Shape::Path(_, points) | Shape::Polygon(points) => of(points),
            Shape::Circle(c) => vec![c.center.x, c.center.y, c.radius],
        }
    }

    /// Of its numbers; None: there are too few or too many.
    pub(crate) fn of(kind: Kind, closed: bool, n: &[f64]) -> Option<Shape> {
        let points =
            || -> Vec<Point> { n.chunks_exact(2).map(|c| Point::new(c[0], c[1])).collect() };
        Some(match (kind, n) {
            (Kind::Point, [x, y]) => Shape::Point(Point::new(*x, *y)),
            (Kind::Lseg, [_, _, _, _]) => Shape::Lseg(Lseg::new(points()[0], points()[1])),
            (Kind::Line, [a, b, c]) => Shape::Line(Line { a: *a, b: *b, c: *c }),
            (Kind::Box, [_, _, _, _]) => Shape::Box(Rect::new(points()[0], points()[1])),
            (Kind::Circle, [x, y, r]) => {
                Shape::Circle(Circle { center: Point::new(*x, *y), radius: *r })
            }
            (Kind::Path, n) if n.len() % 2 == 0 => Shape::Path(closed, points()),
            (Kind::Polygon, n) if n.len() % 2 == 0 => Shape::Polygon(points()),
            _ => return None,
        })
    }
}

impl OpenValue for Shape {
    fn ty(&self) -> Oid {
        self.kind().oid()
    }

    fn write(&self, cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
        crate::io::write(self, cx, out)
    }

    fn send(&self, out: &mut Vec<u8>) -> Result<()> {
        if let Shape::Path(closed, _) = self {
            out.push(u8::from(*closed));
        }
        if let Shape::Path(_, points) | Shape::Polygon(points) = self {
            out.extend_from_slice(&(points.len() as i32).to_be_bytes());
        }
        self.numbers().iter().for_each(|n| out.extend_from_slice(&n.to_be_bytes()));
        Ok(())
    }

    fn store(&self, out: &mut Vec<u8>) {
        if let Shape::Path(closed, _) = self {
            out.push(u8::from(*closed));
        }
        self.numbers().iter().for_each(|n| out.extend_from_slice(&n.to_le_bytes()));
    }

    /// Coordinates of a point or a line, ends of a segment, corners of a box.
    fn item(&self, index: i32) -> Option<Datum> {
        let index = usize::try_from(index).ok()?;
        let point = |p: Point| Datum::open(Shape::Point(p));
        match self {
            Shape::Point(_) | Shape::Line(_) => {
                self.numbers().get(index).map(|n| Datum::Float8(*n))
            }
            Shape::Lseg(s) => s.p.get(index).map(|p| point(*p)),
            Shape::Box(r) => [r.high, r.low].get(index).map(|p| point(*p)),
            _ => None,
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Shape::Path(_, points) | Shape::Polygon(points) => size_of_val(points.as_slice()) + 48,
            _ => 48,
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl OpenType for Kind {
    fn input(&self, _ty: Oid, _typmod: i32, text: &str, _cx: &FormatContext) -> Result<Datum> {
        crate::io::read(*self, text).map(Datum::open)
    }

    fn receive(&self, _ty: Oid, _typmod: i32, bytes: &[u8], _cx: &FormatContext) -> Result<Datum> {
        crate::io::receive(*self, bytes).map(Datum::open)
    }

    fn load(&self, _ty: Oid, bytes: &[u8]) -> Option<Datum> {
        let (closed, bytes) = match self {
            Kind::Path => bytes.split_first().map(|(c, rest)| (*c != 0, rest))?,
            _ => (false, bytes),
        };
        let (numbers, rest) = bytes.as_chunks::<8>();
        let numbers: Vec<f64> = numbers.iter().map(|n| f64::from_le_bytes(*n)).collect();
        // The corners of a stored box are in order.
        rest.is_empty().then(|| Shape::of(*self, closed, &numbers).map(Datum::open))?
    }

    fn element(&self) -> Option<Oid> {
        match self {
            Kind::Point | Kind::Line => Some(types::oids::FLOAT8),
            Kind::Lseg | Kind::Box => Some(Kind::Point.oid()),
            _ => None,
        }
    }

    fn delimiter(&self) -> u8 {
        if *self == Kind::Box { b';' } else { b',' }
    }
}

//! Classes of GiST and SP-GiST over the plane: a key is the box around a value, as four numbers: least x and y, greatest
//! x and y. NaN counts as greater than all numbers.

use std::sync::Arc;

use base::ternary::Ternary;
use base::{Error, Oid, Result};
use types::Datum;
use types::gist::{GistClass, KeyCheck, KeyDistance, possible};

use crate::areas::Rect;
use crate::basic::{EPSILON, Point, diagonal};
use crate::shape::{Kind, Shape};

/// Classes by their oids: `box_ops`, `point_ops`, `poly_ops`, `circle_ops` of GiST; `box_ops`, `quad_point_ops`,
/// `kd_point_ops`, `poly_ops` of SP-GiST.
const CLASSES: [u32; 8] = [10_060, 10_061, 10_062, 10_063, 10_083, 10_084, 10_085, 10_087];

/// Makes the classes known.
pub fn register() {
    for class in CLASSES {
        types::gist::register(class, |ty: Oid| Arc::new(AreaOps { ty }));
    }
}

/// How far apart coordinates must be to be told apart for sure: comparisons of shapes add up several fuzzy ones.
const SLACK: f64 = 4.0 * EPSILON;

struct AreaOps {
    ty: Oid,
}

/// The box around values.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Area {
    min: [f64; 2],
    max: [f64; 2],
}

fn less(a: f64, b: f64) -> bool {
    a.total_cmp(&b).is_lt()
}

impl Area {
    fn read(key: &[u8]) -> Area {
        let mut n = [f64::NEG_INFINITY, f64::NEG_INFINITY, f64::NAN, f64::NAN];
        let (numbers, _) = key.as_chunks::<8>();
        n.iter_mut().zip(numbers).for_each(|(n, bytes)| *n = f64::from_le_bytes(*bytes));
        Area { min: [n[0], n[1]], max: [n[2], n[3]] }
    }

    fn write(self) -> Vec<u8> {
        let numbers = [self.min[0], self.min[1], self.max[0], self.max[1]];
        numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
    }

    fn of(value: &Datum) -> Result<Area> {
        let shape = match value {
            Datum::Open(open) => open.get::<Shape>(),
            _ => None,
        };
        let shape = shape.ok_or_else(|| Error::internal("a class of areas over another type"))?;
        let of_rect = |r: &Rect| Area { min: [r.low.x, r.low.y], max: [r.high.x, r.high.y] };
        let area = match shape {
            Shape::Point(p) => Area { min: [p.x, p.y], max: [p.x, p.y] },
            Shape::Box(r) => of_rect(r),
            Shape::Circle(c) => Area {
                min: [c.center.x - c.radius, c.center.y - c.radius],
                max: [c.center.x + c.radius, c.center.y + c.radius],
            },
            Shape::Polygon(points) | Shape::Path(_, points) => of_rect(&Rect::around(points)),
            Shape::Lseg(_) | Shape::Line(_) => {
                return Err(Error::internal("a class of areas over another shape"));
            }
        };
        // One NaN, and one zero, so that keys are equal as bytes.
        let plain = |n: f64| if n.is_nan() { f64::NAN } else { n + 0.0 };
        Ok(Area { min: area.min.map(plain), max: area.max.map(plain) })
    }

    fn with(self, other: Area) -> Area {
        let mut out = self;
        for n in 0..2 {
            if less(other.min[n], out.min[n]) {
                out.min[n] = other.min[n];
            }
            if less(out.max[n], other.max[n]) {
                out.max[n] = other.max[n];
            }
        }
        out
    }

    /// Its size; a side of no length counts little, so that lines and points are told apart, too.
    fn size(self) -> f64 {
        let side = |n: usize| match self.max[n] - self.min[n] {
            d if d.is_nan() || d.is_infinite() => 1e150,
            d => d.min(1e150),
        };
        side(0) * side(1) + (side(0) + side(1)) * 1e-6
    }

    fn near(self, axis: usize, other: Area) -> bool {
        !(self.min[axis] > other.max[axis] + SLACK || self.max[axis] < other.min[axis] - SLACK)
    }

    /// Whether it overlaps another one, as far as coordinates are told apart.
    fn overlaps(self, other: Area) -> bool {
        self.near(0, other) && self.near(1, other)
    }

    fn contains(self, other: Area) -> bool {
        (0..2)
            .all(|n| !(self.min[n] > other.min[n] + SLACK) && !(self.max[n] < other.max[n] - SLACK))
    }

    fn distance(self, p: Point) -> f64 {
        let off = |n: usize, v: f64| (self.min[n] - v).max(v - self.max[n]).max(0.0);
        diagonal(off(0, p.x), off(1, p.y))
    }
}

/// The place of an area's middle on a curve that fills the plane (Hilbert's), for sorting: what comes together on it lies
/// together (Kamel and Faloutsos, "Hilbert R-tree", 1994).
fn curve(area: Area) -> u64 {
    // Numbers in the order of the coordinates.
    let word = |n: usize| {
        let bits = ((area.min[n] / 2.0 + area.max[n] / 2.0) as f32).to_bits();
        if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
    };
    let (mut x, mut y, mut place) = (word(0), word(1), 0);
    for bit in (0..32).rev() {
        let (right, upper) = (x >> bit & 1, y >> bit & 1);
        place = place << 2 | u64::from((3 * right) ^ upper);
        if upper == 0 {
            if right == 1 {
                (x, y) = (!x, !y);
            }
            (x, y) = (y, x);
        }
    }
    place
}

impl GistClass for AreaOps {
    fn key(&self, value: &Datum) -> Result<Vec<u8>> {
        Ok(Area::of(value)?.write())
    }

    fn union(&self, keys: &[&[u8]]) -> Vec<u8> {
        let mut areas = keys.iter().map(|key| Area::read(key));
        let first = areas.next().unwrap_or_else(|| Area::read(&[]));
        areas.fold(first, Area::with).write()
    }

    fn penalty(&self, cover: &[u8], new: &[u8]) -> f64 {
        let cover = Area::read(cover);
        (cover.with(Area::read(new)).size() - cover.size()).max(0.0)
    }

    /// Along the axis on which the middles lie farther apart, where the two boxes become smallest.
    fn split(&self, keys: &[&[u8]]) -> Vec<bool> {
        let areas: Vec<Area> = keys.iter().map(|key| Area::read(key)).collect();
        let middle = |a: &Area, n: usize| a.min[n] / 2.0 + a.max[n] / 2.0;
        let mut best: Option<(f64, Vec<usize>, usize)> = None;
        for axis in 0..2 {
            let mut order: Vec<usize> = (0..areas.len()).collect();
            order.sort_by(|a, b| middle(&areas[*a], axis).total_cmp(&middle(&areas[*b], axis)));
            let mut behind = vec![areas[order[order.len() - 1]]; order.len()];
            for n in (0..order.len() - 1).rev() {
                behind[n] = behind[n + 1].with(areas[order[n]]);
            }
            let (least, most) = (order.len().div_ceil(3), order.len() - order.len() / 3);
            let mut before = areas[order[0]];
            for at in 1..order.len() {
                if at >= least.max(1) && at <= most.max(1) {
                    let size = before.size() + behind[at].size();
                    if best.as_ref().is_none_or(|(known, ..)| size < *known) {
                        best = Some((size, order.clone(), at));
                    }
                }
                before = before.with(areas[order[at]]);
            }
        }
        let mut right = vec![false; keys.len()];
        match best {
            Some((_, order, at)) => order[at..].iter().for_each(|n| right[*n] = true),
            None => right[keys.len() / 2..].fill(true),
        }
        right
    }

    fn check(&self, strategy: u16, value: &Datum) -> Result<KeyCheck> {
        let of = Area::of(value)?;
        Ok(Arc::new(move |key, leaf| {
            let own = Area::read(key);
            if !of_numbers(own) || !of_numbers(of) {
                return Ternary::Maybe;
            }
            // Of a leaf its own sides, else the ones that reach farthest.
            let (upper, lower) = match leaf {
                true => (own.max, own.min),
                false => (own.min, own.max),
            };
            possible(match strategy {
                1 => upper[0] <= of.min[0] + SLACK,
                2 => upper[0] <= of.max[0] + SLACK,
                4 => lower[0] >= of.min[0] - SLACK,
                5 => lower[0] >= of.max[0] - SLACK,
                9 => upper[1] <= of.max[1] + SLACK,
                10 | 29 => upper[1] <= of.min[1] + SLACK,
                11 | 30 => lower[1] >= of.max[1] - SLACK,
                12 => lower[1] >= of.min[1] - SLACK,
                6 | 7 => own.contains(of),
                8 | 28 | 48 | 68 if leaf => of.contains(own),
                _ => own.overlaps(of),
            })
        }))
    }

    fn distance(&self, _strategy: u16, value: &Datum) -> Result<Option<KeyDistance>> {
        let point = match value {
            Datum::Open(open) => open.get::<Shape>(),
            _ => None,
        };
        let Some(Shape::Point(point)) = point.cloned() else { return Ok(None) };
        // Boxes and points are what their keys are.
        let exact = self.ty == Kind::Point.oid() || self.ty == Kind::Box.oid();
        Ok(Some(Arc::new(move |key, leaf| {
            let area = Area::read(key);
            let distance = match of_numbers(area) && !point.x.is_nan() && !point.y.is_nan() {
                true => area.distance(point),
                // An infinite coordinate, or none.
                false if leaf => {
                    let (dx, dy) = (area.min[0] - point.x, area.min[1] - point.y);
                    diagonal(dx, dy)
                }
                false => 0.0,
            };
            (distance, leaf && !exact)
        })))
    }

    fn place(&self, key: &[u8]) -> Option<Vec<u8>> {
        Some(curve(Area::read(key)).to_be_bytes().to_vec())
    }

    fn is_sortable(&self) -> bool {
        true
    }

    fn returns_values(&self) -> bool {
        self.ty == Kind::Point.oid() || self.ty == Kind::Box.oid()
    }

    fn value(&self, key: &[u8]) -> Option<Datum> {
        let area = Area::read(key);
        let (min, max) = (area.min, area.max);
        let shape = match self.ty {
            ty if ty == Kind::Point.oid() => Shape::Point(Point::new(min[0], min[1])),
            ty if ty == Kind::Box.oid() => Shape::Box(Rect {
                high: Point::new(max[0], max[1]),
                low: Point::new(min[0], min[1]),
            }),
            _ => return None,
        };
        Some(Datum::open(shape))
    }
}

fn of_numbers(area: Area) -> bool {
    let nan = |n: usize| area.min[n].is_nan() | area.max[n].is_nan();
    !(nan(0) | nan(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(x: f64, y: f64) -> Vec<u8> {
        Area { min: [x, y], max: [x, y] }.write()
    }

    #[test]
    fn areas_grow_and_are_parted() {
        let ops = AreaOps { ty: Kind::Point.oid() };
        let keys: Vec<Vec<u8>> =
            (0..10).map(|n| key(f64::from(n % 2) * 100.0, f64::from(n))).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|k| &k[..]).collect();
        let right = ops.split(&keys);
        assert!((0..10).all(|n| right[n] == right[n % 2]) && right[0] != right[1]);
        let all = ops.union(&keys);
        assert!(keys.iter().all(|key| ops.penalty(&all, key) == 0.0));
        assert_eq!(ops.union(&[&all, keys[3]]), all);
    }

    #[test]
    fn neighbors_on_the_curve_are_neighbors() {
        // Sixteen numbers that follow each other as coordinates, each way.
        let at = |n: u32| f64::from(f32::from_bits(0x4700_0000 + n));
        let area = |x: f64, y: f64| Area { min: [x, y], max: [x, y] };
        let mut places: Vec<(u64, u32, u32)> =
            (0..256).map(|n| (curve(area(at(n % 16), at(n / 16))), n % 16, n / 16)).collect();
        places.sort_unstable();
        for pair in places.windows(2) {
            let [(a, ax, ay), (b, bx, by)] = [pair[0], pair[1]];
            assert_eq!((b - a, ax.abs_diff(bx) + ay.abs_diff(by)), (1, 1), "{pair:?}");
        }
    }

    #[test]
    fn a_distance_is_that_to_the_nearest_point() {
        let area = Area { min: [0.0, 0.0], max: [10.0, 10.0] };
        assert_eq!(area.distance(Point::new(13.0, 14.0)), 5.0);
        assert_eq!(area.distance(Point::new(5.0, 5.0)), 0.0);
    }
}

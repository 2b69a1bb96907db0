//! cube: boxes of up to a hundred dimensions.
//!
//! ```text
//!   text      (1, 2),(3, 4)       a point: (1, 2)
//!   stored    1 byte: whether it is a point; then one corner's numbers and, unless it is a point, the other's
//!   key       all least numbers, end, all greatest numbers, end; dimensions that a box lacks count as zero
//! ```

use std::any::Any;
use std::cmp::Ordering;
use std::sync::Arc;

use base::ternary::Ternary;
use base::{Oid, Result, bail, err};
use types::extension::Library;
use types::func::Body;
use types::gist::{GistClass, KeyCheck, KeyDistance, possible};
use types::oids::FLOAT8;
use types::open::{OpenType, OpenValue};
use types::{Datum, FormatContext};

use crate::common::Bodies;
use crate::spans;

/// The extension's code.
pub static LIBRARY: Library = Library {
    name: "cube",
    bodies,
    types: &[("cube_in", &CubeType)],
    gist: &[("g_cube_consistent", |ty| Arc::new(CubeOps { ty }))],
    silent: &["cube_in", "cube_out", "cube_recv"],
    ..Library::EMPTY
};

const DIMENSIONS_MAX: usize = 100;

/// A box; both corners are the same list of numbers if it is a point.
#[derive(Clone, Debug, PartialEq)]
struct Cube {
    ty: Oid,
    a: Vec<f64>,
    b: Vec<f64>,
}

impl Cube {
    fn dims(&self) -> usize {
        self.a.len()
    }

    fn is_point(&self) -> bool {
        let same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
        self.a.iter().zip(&self.b).all(same)
    }

    /// The least number in a dimension; beyond the last one it is zero.
    fn low(&self, n: usize) -> f64 {
        self.a.get(n).map_or(0.0, |a| a.min(self.b[n]))
    }

    fn high(&self, n: usize) -> f64 {
        self.a.get(n).map_or(0.0, |a| a.max(self.b[n]))
    }

    fn datum(self) -> Datum {
        Datum::open(self)
    }

    fn contains(&self, other: &Cube) -> bool {
        (0..self.dims().max(other.dims()))
            .all(|n| self.low(n) <= other.low(n) && self.high(n) >= other.high(n))
    }

    fn overlaps(&self, other: &Cube) -> bool {
        (0..self.dims().max(other.dims()))
            .all(|n| self.low(n) <= other.high(n) && self.high(n) >= other.low(n))
    }

    fn combined(&self, other: &Cube, low: fn(f64, f64) -> f64, high: fn(f64, f64) -> f64) -> Cube {
        let dims = self.dims().max(other.dims());
        let a = (0..dims).map(|n| low(self.low(n), other.low(n))).collect();
        let b = (0..dims).map(|n| high(self.high(n), other.high(n))).collect();
        Cube { ty: self.ty, a, b }
    }

    fn union(&self, other: &Cube) -> Cube {
        self.combined(other, f64::min, f64::max)
    }

    /// How far two boxes are from each other in each dimension.
    fn gaps<'a>(&'a self, other: &'a Cube) -> impl Iterator<Item = f64> + 'a {
        (0..self.dims().max(other.dims()))
            .map(|n| (self.low(n) - other.high(n)).max(other.low(n) - self.high(n)).max(0.0))
    }

    fn distance(&self, other: &Cube) -> f64 {
        self.gaps(other).map(|gap| gap * gap).sum::<f64>().sqrt()
    }

    fn taxicab(&self, other: &Cube) -> f64 {
        self.gaps(other).sum()
    }

    fn chebyshev(&self, other: &Cube) -> f64 {
        self.gaps(other).fold(0.0, f64::max)
    }

    fn size(&self) -> f64 {
        if self.dims() == 0 || self.is_point() {
            return 0.0;
        }
        self.a.iter().zip(&self.b).map(|(a, b)| (a - b).abs()).product()
    }

    fn read(ty: Oid, bytes: &[u8]) -> Option<Cube> {
        let (is_point, numbers) = bytes.split_first()?;
        let (numbers, rest) = numbers.as_chunks::<8>();
        let numbers: Vec<f64> = numbers.iter().map(|n| f64::from_le_bytes(*n)).collect();
        if !rest.is_empty() || numbers.len() > 2 * DIMENSIONS_MAX {
            return None;
        }
        if *is_point == 1 {
            return Some(Cube { ty, a: numbers.clone(), b: numbers });
        }
        let (a, b) = numbers.split_at(numbers.len() / 2);
        (a.len() == b.len()).then(|| Cube { ty, a: a.to_vec(), b: b.to_vec() })
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.is_point())];
        let corners = if self.is_point() { vec![&self.a] } else { vec![&self.a, &self.b] };
        corners.into_iter().flatten().for_each(|n| out.extend_from_slice(&n.to_le_bytes()));
        out
    }
}

/// Appends numbers so that bytes are in their order, and the end is in the place of zeros.
fn in_order(numbers: impl Iterator<Item = f64>, out: &mut Vec<u8>) {
    for number in numbers {
        let number = number + 0.0;
        out.push(if number < 0.0 { 0 } else { 2 });
        out.extend_from_slice(&spans::ordered(number));
    }
    out.push(1);
}

impl OpenValue for Cube {
    fn ty(&self) -> Oid {
        self.ty
    }

    fn write(&self, cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
        let corner = |numbers: &[f64], out: &mut Vec<u8>| -> Result<()> {
            out.push(b'(');
            for (n, number) in numbers.iter().enumerate() {
                if n > 0 {
                    out.extend_from_slice(b", ");
                }
                types::io::output(FLOAT8, &Datum::Float8(*number), cx, out)?;
            }
            out.push(b')');
            Ok(())
        };
        corner(&self.a, out)?;
        if !self.is_point() {
            out.push(b',');
            corner(&self.b, out)?;
        }
        Ok(())
    }

    fn send(&self, out: &mut Vec<u8>) -> Result<()> {
        let point = if self.is_point() { 0x8000_0000 } else { 0 };
        out.extend_from_slice(&(self.dims() as u32 | point).to_be_bytes());
        let corners = if self.is_point() { vec![&self.a] } else { vec![&self.a, &self.b] };
        corners.into_iter().flatten().for_each(|n| out.extend_from_slice(&n.to_be_bytes()));
        Ok(())
    }

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }

    fn key(&self, out: &mut Vec<u8>) {
        in_order((0..self.dims()).map(|n| self.low(n)), out);
        in_order((0..self.dims()).map(|n| self.high(n)), out);
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Cube>() + 16 * self.dims()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct CubeType;

fn invalid(detail: String) -> base::Error {
    err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for cube").detail(detail)
}

/// Reads the text form.
struct Reader<'a> {
    rest: &'a str,
    cx: &'a FormatContext,
}

impl<'a> Reader<'a> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn wrong(&mut self) -> base::Error {
        match self.peek() {
            None => invalid("syntax error at end of input".into()),
            Some(c) => invalid(format!("syntax error at or near \"{c}\"")),
        }
    }

    fn sign(&mut self, wanted: char) -> Result<()> {
        if self.peek() != Some(wanted) {
            return Err(self.wrong());
        }
        self.rest = &self.rest[1..];
        Ok(())
    }

    fn number(&mut self) -> Result<f64> {
        self.peek();
        let bytes = self.rest.as_bytes();
        let mut at = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
        let word = |at: usize, name: &str| {
            self.rest.get(at..at + name.len()).is_some_and(|w| w.eq_ignore_ascii_case(name))
        };
        if let Some(name) = ["infinity", "inf", "nan"].into_iter().find(|name| word(at, name)) {
            at += name.len();
        } else {
            let digits = |at: &mut usize| {
                let start = *at;
                while bytes.get(*at).is_some_and(u8::is_ascii_digit) {
                    *at += 1;
                }
                *at > start
            };
            let mut any = digits(&mut at);
            if bytes.get(at) == Some(&b'.') {
                at += 1;
                any |= digits(&mut at);
            }
            if !any {
                return Err(self.wrong());
            }
            if matches!(bytes.get(at), Some(b'e' | b'E')) {
                let mut after = at + 1;
                after += usize::from(matches!(bytes.get(after), Some(b'+' | b'-')));
                if digits(&mut after) {
                    at = after;
                }
            }
        }
        let (number, rest) = self.rest.split_at(at);
        self.rest = rest;
        match types::io::input(FLOAT8, -1, number, self.cx)? {
            Datum::Float8(number) => Ok(number),
            _ => Err(invalid(String::new())),
        }
    }

    fn list(&mut self) -> Result<Vec<f64>> {
        let mut out = vec![self.number()?];
        while self.peek() == Some(',') {
            self.rest = &self.rest[1..];
            out.push(self.number()?);
        }
        if out.len() > DIMENSIONS_MAX {
            return Err(too_many());
        }
        Ok(out)
    }

    /// Numbers in parentheses, and their text.
    fn corner(&mut self) -> Result<(Vec<f64>, &'a str)> {
        self.sign('(')?;
        let start = self.rest;
        let list = if self.peek() == Some(')') { Vec::new() } else { self.list()? };
        let text = &start[..start.len() - self.rest.len()];
        self.sign(')')?;
        Ok((list, text))
    }

    fn cube(&mut self, ty: Oid) -> Result<Cube> {
        let in_brackets = self.peek() == Some('[');
        if in_brackets {
            self.rest = &self.rest[1..];
        }
        let is_list = !in_brackets && self.peek().is_some_and(|c| c != '(');
        let (a, mut b) = if is_list || self.peek().is_none() {
            (self.list()?, None)
        } else {
            let (a, text_a) = self.corner()?;
            if in_brackets || self.peek() == Some(',') {
                self.sign(',')?;
                let (b, text_b) = self.corner()?;
                if a.len() != b.len() {
                    return Err(invalid(format!(
                        "Different point dimensions in ({text_a}) and ({text_b})."
                    )));
                }
                (a, Some(b))
            } else {
                (a, None)
            }
        };
        if in_brackets {
            self.sign(']')?;
        }
        if self.peek().is_some() {
            return Err(self.wrong());
        }
        let b = b.take().unwrap_or_else(|| a.clone());
        Ok(Cube { ty, a, b })
    }
}

fn too_many() -> base::Error {
    invalid(format!("A cube cannot have more than {DIMENSIONS_MAX} dimensions."))
}

impl OpenType for CubeType {
    fn input(&self, ty: Oid, _typmod: i32, text: &str, cx: &FormatContext) -> Result<Datum> {
        Ok(Reader { rest: text, cx }.cube(ty)?.datum())
    }

    fn receive(&self, ty: Oid, _typmod: i32, bytes: &[u8], _cx: &FormatContext) -> Result<Datum> {
        let wrong = || err!(INVALID_BINARY_REPRESENTATION, "insufficient data left in message");
        let (head, rest) = bytes.split_first_chunk::<4>().ok_or_else(wrong)?;
        let head = u32::from_be_bytes(*head);
        let (numbers, _) = rest.as_chunks::<8>();
        let numbers: Vec<f64> = numbers.iter().map(|n| f64::from_be_bytes(*n)).collect();
        let (dims, is_point) = ((head & 0x7fff_ffff) as usize, head >> 31 == 1);
        if dims > DIMENSIONS_MAX {
            return Err(err!(PROGRAM_LIMIT_EXCEEDED, "cube dimension is too large")
                .detail(format!("A cube cannot have more than {DIMENSIONS_MAX} dimensions.")));
        }
        let (a, b) = numbers.split_at_checked(dims).ok_or_else(wrong)?;
        let b = if is_point { a } else { b };
        if a.len() != b.len() {
            return Err(wrong());
        }
        Ok(Cube { ty, a: a.to_vec(), b: b.to_vec() }.datum())
    }

    fn load(&self, ty: Oid, bytes: &[u8]) -> Option<Datum> {
        Cube::read(ty, bytes).map(Cube::datum)
    }
}

fn own(value: &Datum) -> &Cube {
    value.as_open()
}

fn float(value: &Datum) -> f64 {
    if let Datum::Float8(n) = value { *n } else { 0.0 }
}

fn index(value: &Datum) -> i64 {
    value.to_i64().unwrap_or_default()
}

fn extended(cube: &Cube, a: f64, b: f64) -> Result<Datum> {
    if cube.dims() + 1 > DIMENSIONS_MAX {
        return Err(cant_extend());
    }
    let mut out = cube.clone();
    out.a.push(a);
    out.b.push(b);
    Ok(out.datum())
}

fn cant_extend() -> base::Error {
    err!(PROGRAM_LIMIT_EXCEEDED, "can't extend cube")
        .detail(format!("A cube cannot have more than {DIMENSIONS_MAX} dimensions."))
}

fn numbers(array: &Datum) -> Result<Vec<f64>> {
    let items = &array.as_array().items;
    if items.iter().any(Datum::is_null) {
        bail!(ARRAY_SUBSCRIPT_ERROR, "cannot work with arrays containing NULLs");
    }
    if items.len() > DIMENSIONS_MAX {
        return Err(cant_extend());
    }
    Ok(items.iter().map(float).collect())
}

fn of_arrays(args: &[Datum], ty: Oid) -> Result<Datum> {
    // The first array is the upper corner, but it is written first.
    let a = numbers(&args[0])?;
    let b = match args.get(1) {
        Some(other) => numbers(other)?,
        None => a.clone(),
    };
    if a.len() != b.len() {
        bail!(ARRAY_SUBSCRIPT_ERROR, "UR and LL arrays must be of same length");
    }
    Ok(Cube { ty, a, b }.datum())
}

fn subset(cube: &Cube, wanted: &Datum) -> Result<Datum> {
    let wanted = wanted.as_array();
    if wanted.items.len() > DIMENSIONS_MAX {
        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "array is too long")
            .detail(format!("A cube cannot have more than {DIMENSIONS_MAX} dimensions.")));
    }
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for item in &wanted.items {
        if item.is_null() {
            bail!(ARRAY_SUBSCRIPT_ERROR, "cannot work with arrays containing NULLs");
        }
        let at = usize::try_from(index(item) - 1).ok().filter(|at| *at < cube.dims());
        let Some(at) = at else { bail!(ARRAY_SUBSCRIPT_ERROR, "Index out of bounds") };
        a.push(cube.a[at]);
        b.push(cube.b[at]);
    }
    Ok(Cube { ty: cube.ty, a, b }.datum())
}

fn enlarged(cube: &Cube, by: f64, dims: i64) -> Datum {
    let wanted = dims.clamp(0, DIMENSIONS_MAX as i64) as usize;
    let dims = if by > 0.0 { cube.dims().max(wanted) } else { cube.dims() };
    let (mut a, mut b) = (Vec::with_capacity(dims), Vec::with_capacity(dims));
    for n in 0..dims {
        let (low, high) = (cube.low(n) - by, cube.high(n) + by);
        let middle = (low + high) / 2.0;
        a.push(if low > high { middle } else { low });
        b.push(if low > high { middle } else { high });
    }
    Cube { ty: cube.ty, a, b }.datum()
}

fn coordinate(cube: &Cube, n: i64) -> Result<Datum> {
    let at = usize::try_from(n - 1).ok().filter(|at| *at < 2 * cube.dims());
    let Some(at) = at else {
        bail!(ARRAY_SUBSCRIPT_ERROR, "cube index {n} is out of bounds");
    };
    let dims = cube.dims();
    Ok(Datum::Float8(if at < dims { cube.a[at] } else { cube.b[at - dims] }))
}

/// A coordinate by its number among least and greatest ones in turn; negative numbers turn the sign.
fn normal_coordinate(cube: &Cube, n: i64) -> f64 {
    let at = n.unsigned_abs() as usize - 1;
    let value = if at % 2 == 1 { cube.high(at / 2) } else { cube.low(at / 2) };
    if n < 0 && at / 2 < cube.dims() { -value } else { value }
}

fn order(args: &[Datum]) -> Ordering {
    own(&args[0]).compare(own(&args[1]))
}

macro_rules! comparisons { ($($name:literal $test:ident)*) => {
    [$(($name, Body::Scalar(|args, _| Ok(Datum::Bool(order(args).$test()))))),*]
} }

macro_rules! floats { ($($name:literal $a:ident $cube:ident $body:expr)*) => {
    [$(($name, Body::Scalar(|$a, _| {
        let $cube = own(&$a[0]);
        Ok(Datum::Float8($body))
    }))),*]
} }

fn bodies() -> Bodies {
    let mut out: Bodies = vec![
        ("cube_cmp", Body::Scalar(|a, _| Ok(Datum::Int4(order(a) as i32)))),
        (
            "cube_send",
            Body::Scalar(|a, _| {
                let mut bytes = Vec::new();
                own(&a[0]).send(&mut bytes)?;
                Ok(Datum::bytea(&bytes))
            }),
        ),
        ("cube_contains", Body::Scalar(|a, _| Ok(Datum::Bool(own(&a[0]).contains(own(&a[1])))))),
        ("cube_contained", Body::Scalar(|a, _| Ok(Datum::Bool(own(&a[1]).contains(own(&a[0])))))),
        ("cube_overlap", Body::Scalar(|a, _| Ok(Datum::Bool(own(&a[0]).overlaps(own(&a[1])))))),
        ("cube_union", Body::Scalar(|a, _| Ok(own(&a[0]).union(own(&a[1])).datum()))),
        (
            "cube_inter",
            Body::Scalar(|a, _| Ok(own(&a[0]).combined(own(&a[1]), f64::max, f64::min).datum())),
        ),
        ("cube_subset", Body::Scalar(|a, _| subset(own(&a[0]), &a[1]))),
        ("cube_dim", Body::Scalar(|a, _| Ok(Datum::Int4(own(&a[0]).dims() as i32)))),
        ("cube_is_point", Body::Scalar(|a, _| Ok(Datum::Bool(own(&a[0]).is_point())))),
        ("cube_enlarge", Body::Scalar(|a, _| Ok(enlarged(own(&a[0]), float(&a[1]), index(&a[2]))))),
        ("cube_coord", Body::Scalar(|a, _| coordinate(own(&a[0]), index(&a[1])))),
        (
            "cube_coord_llur",
            Body::Scalar(|a, _| match index(&a[1]) {
                0 => bail!(ARRAY_SUBSCRIPT_ERROR, "zero cube index is not defined"),
                n => Ok(Datum::Float8(normal_coordinate(own(&a[0]), n))),
            }),
        ),
        (
            "cube_f8",
            Body::Typed(|a, types, _| {
                let n = float(&a[0]);
                Ok(Cube { ty: types.result, a: vec![n], b: vec![n] }.datum())
            }),
        ),
        (
            "cube_f8_f8",
            Body::Typed(|a, types, _| {
                let [a, b] = [0, 1].map(|n| vec![float(&a[n])]);
                Ok(Cube { ty: types.result, a, b }.datum())
            }),
        ),
        ("cube_c_f8", Body::Scalar(|a, _| extended(own(&a[0]), float(&a[1]), float(&a[1])))),
        ("cube_c_f8_f8", Body::Scalar(|a, _| extended(own(&a[0]), float(&a[1]), float(&a[2])))),
        ("cube_a_f8", Body::Typed(|a, types, _| of_arrays(a, types.result))),
        ("cube_a_f8_f8", Body::Typed(|a, types, _| of_arrays(a, types.result))),
    ];
    out.extend(floats! {
        "cube_size" a cube { let _ = a; cube.size() }
        "cube_distance" a cube cube.distance(own(&a[1]))
        "distance_taxicab" a cube cube.taxicab(own(&a[1]))
        "distance_chebyshev" a cube cube.chebyshev(own(&a[1]))
        "cube_ll_coord" a cube usize::try_from(index(&a[1]) - 1).map_or(0.0, |n| cube.low(n))
        "cube_ur_coord" a cube usize::try_from(index(&a[1]) - 1).map_or(0.0, |n| cube.high(n))
    });
    out.extend(comparisons! {
        "cube_eq" is_eq "cube_ne" is_ne "cube_lt" is_lt "cube_le" is_le "cube_gt" is_gt "cube_ge" is_ge
    });
    out
}

/// `gist_cube_ops`: keys are boxes as rows have them.
struct CubeOps {
    ty: Oid,
}

impl CubeOps {
    fn read(&self, key: &[u8]) -> Cube {
        read_key(self.ty, key)
    }
}

/// A key; one that makes no sense is a box of everything.
fn read_key(ty: Oid, key: &[u8]) -> Cube {
    Cube::read(ty, key).unwrap_or_else(|| Cube {
        ty,
        a: vec![f64::NEG_INFINITY; DIMENSIONS_MAX],
        b: vec![f64::INFINITY; DIMENSIONS_MAX],
    })
}

impl GistClass for CubeOps {
    fn key(&self, value: &Datum) -> Result<Vec<u8>> {
        Ok(own(value).bytes())
    }

    fn union(&self, keys: &[&[u8]]) -> Vec<u8> {
        let all = keys.iter().map(|key| self.read(key));
        let whole = all.reduce(|a, b| a.union(&b));
        whole.map(|cube| cube.bytes()).unwrap_or_default()
    }

    fn penalty(&self, cover: &[u8], new: &[u8]) -> f64 {
        let cover = self.read(cover);
        let both = cover.union(&self.read(new));
        let extent = |c: &Cube| (0..c.dims()).map(|n| c.high(n) - c.low(n)).sum::<f64>();
        extent(&both) - extent(&cover)
    }

    fn split(&self, keys: &[&[u8]]) -> Vec<bool> {
        let cubes: Vec<Cube> = keys.iter().map(|key| self.read(key)).collect();
        let dims = cubes.iter().map(Cube::dims).max().unwrap_or_default();
        let middles = |n: usize| cubes.iter().map(move |c| c.low(n) / 2.0 + c.high(n) / 2.0);
        let spread = |n: usize| {
            let (low, high) = middles(n)
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), m| (l.min(m), h.max(m)));
            high - low
        };
        let widest = (0..dims).max_by(|a, b| spread(*a).total_cmp(&spread(*b))).unwrap_or(0);
        spans::halves(&middles(widest).collect::<Vec<f64>>())
    }

    fn check(&self, strategy: u16, value: &Datum) -> Result<KeyCheck> {
        let (query, ty) = (own(value).clone(), self.ty);
        Ok(Arc::new(move |key, leaf| {
            let key = read_key(ty, key);
            possible(match strategy {
                3 => key.overlaps(&query),
                6 if leaf => key.compare(&query).is_eq(),
                6 | 7 => key.contains(&query),
                8 if leaf => query.contains(&key),
                8 => key.overlaps(&query),
                _ => return Ternary::Maybe,
            })
        }))
    }

    fn distance(&self, strategy: u16, value: &Datum) -> Result<Option<KeyDistance>> {
        let ty = self.ty;
        if strategy == 15 {
            let n = index(value);
            if n == 0 {
                bail!(ARRAY_SUBSCRIPT_ERROR, "zero cube index is not defined");
            }
            return Ok(Some(Arc::new(move |key, leaf| {
                let key = read_key(ty, key);
                let at = (n.unsigned_abs() as usize - 1) / 2;
                let least = if n < 0 { -key.high(at) } else { key.low(at) };
                (if leaf { normal_coordinate(&key, n) } else { least }, false)
            })));
        }
        let far = match strategy {
            16 => Cube::taxicab,
            17 => Cube::distance,
            18 => Cube::chebyshev,
            _ => return Ok(None),
        };
        let query = own(value).clone();
        Ok(Some(Arc::new(move |key, _| (far(&read_key(ty, key), &query), false))))
    }
}

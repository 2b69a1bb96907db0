//! Text and binary forms.

use base::{Error, Result, err};
use types::io::FormatContext;
use types::{Datum, oids};

use crate::basic::Point;
use crate::lines::Line;
use crate::shape::{Kind, Shape};

fn put(n: f64, cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
    types::io::output(oids::FLOAT8, &Datum::Float8(n), cx, out)
}

fn put_points(points: &[f64], cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
    for (n, p) in points.chunks_exact(2).enumerate() {
        sched::check_interrupts()?;
        out.extend_from_slice(if n > 0 { b",(" } else { b"(" });
        put(p[0], cx, out)?;
        out.push(b',');
        put(p[1], cx, out)?;
        out.push(b')');
    }
    Ok(())
}

pub(crate) fn write(shape: &Shape, cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
    let numbers = shape.numbers();
    let around: [u8; 2] = match shape {
        Shape::Point(_) | Shape::Box(_) => return put_points(&numbers, cx, out),
        Shape::Line(_) => {
            out.push(b'{');
            for (n, v) in numbers.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                put(*v, cx, out)?;
            }
            out.push(b'}');
            return Ok(());
        }
        Shape::Circle(c) => {
            out.push(b'<');
            put_points(&numbers[..2], cx, out)?;
            out.push(b',');
            put(c.radius, cx, out)?;
            out.push(b'>');
            return Ok(());
        }
        Shape::Lseg(_) | Shape::Path(false, _) => *b"[]",
        Shape::Path(true, _) | Shape::Polygon(_) => *b"()",
    };
    out.push(around[0]);
    put_points(&numbers, cx, out)?;
    out.push(around[1]);
    Ok(())
}

/// Reads a literal from its start.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    kind: Kind,
}

impl Reader<'_> {
    fn error(&self) -> Error {
        err!(
            INVALID_TEXT_REPRESENTATION,
            "invalid input syntax for type {}: \"{}\"",
            self.kind.name(),
            self.text
        )
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        let blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c');
        self.at += rest.len() - rest.trim_start_matches(blank).len();
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.rest().starts_with(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    /// A number, blanks around it.
    fn number(&mut self) -> Result<f64> {
        self.blanks();
        let rest = self.rest();
        let len = number_len(rest);
        if len == 0 {
            return Err(self.error());
        }
        let number = types::io::parse_float8(&rest[..len])?;
        self.at += len;
        self.blanks();
        Ok(number)
    }

    /// `x,y` or `(x,y)`.
    fn pair(&mut self) -> Result<Point> {
        self.blanks();
        let open = self.eat('(');
        let x = self.number()?;
        if !self.eat(',') {
            return Err(self.error());
        }
        let y = self.number()?;
        if open && !self.eat(')') {
            return Err(self.error());
        }
        self.blanks();
        Ok(Point::new(x, y))
    }

    /// So many points, in brackets or parentheses or without; says whether they were brackets.
    fn points(&mut self, count: usize, brackets: bool) -> Result<(Vec<Point>, bool)> {
        self.blanks();
        let mut depth = 0;
        let open = self.eat('[');
        if open {
            if !brackets {
                return Err(self.error());
            }
            depth = 1;
        } else if self.rest().starts_with('(') {
            let inner = self.rest()[1..].trim_start();
            let single = self.text.rfind('(') == Some(self.at);
            if inner.starts_with('(') || single {
                self.at = self.text.len() - inner.len();
                depth = 1;
            }
        }
        let mut points = Vec::new();
        for _ in 0..count {
            sched::check_interrupts()?;
            points.push(self.pair()?);
            self.eat(',');
        }
        while depth > 0 {
            if self.eat(')') || open && depth == 1 && self.eat(']') {
                depth -= 1;
                self.blanks();
            } else {
                return Err(self.error());
            }
        }
        Ok((points, open))
    }

    fn end(&self) -> Result<()> {
        if self.at == self.text.len() { Ok(()) } else { Err(self.error()) }
    }
}

/// Bytes of the number that a text begins with.
fn number_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let sign = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    for word in ["infinity", "inf", "nan"] {
        if text.get(sign..sign + word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word)) {
            return sign + word.len();
        }
    }
    let digits = |from: usize| {
        bytes[from.min(bytes.len())..].iter().take_while(|b| b.is_ascii_digit()).count()
    };
    let whole = digits(sign);
    let mut at = sign + whole;
    let mut any = whole;
    if bytes.get(at) == Some(&b'.') {
        let part = digits(at + 1);
        any += part;
        at += 1 + part;
    }
    if any == 0 {
        return 0;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'-' | b'+')));
        let exponent = digits(at + 1 + sign);
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    at
}

/// How many points a text has, by its commas; None: one number is over.
fn count(text: &str) -> Option<usize> {
    let commas = text.matches(',').count();
    (commas % 2 == 1).then_some(commas.div_ceil(2))
}

pub(crate) fn read(kind: Kind, text: &str) -> Result<Shape> {
    let mut r = Reader { text, at: 0, kind };
    let shape = match kind {
        Kind::Point => Shape::Point(r.pair()?),
        Kind::Lseg | Kind::Box => {
            let (p, _) = r.points(2, kind == Kind::Lseg)?;
            Shape::of(kind, false, &[p[0].x, p[0].y, p[1].x, p[1].y]).ok_or_else(|| r.error())?
        }
        Kind::Polygon => {
            let n = count(text).ok_or_else(|| r.error())?;
            Shape::Polygon(r.points(n, false)?.0)
        }
        Kind::Path => {
            let n = count(text).ok_or_else(|| r.error())?;
            r.blanks();
            let outer = r.rest().starts_with('(') && text.rfind('(') == Some(r.at);
            if outer {
                r.at += 1;
            }
            let (points, open) = r.points(n, true)?;
            if outer {
                if !r.eat(')') {
                    return Err(r.error());
                }
                r.blanks();
            }
            Shape::Path(!open, points)
        }
        Kind::Circle => circle(&mut r)?,
        Kind::Line => line(&mut r)?,
    };
    r.end()?;
    Ok(shape)
}

fn circle(r: &mut Reader<'_>) -> Result<Shape> {
    r.blanks();
    let mut depth = 0;
    let angle = r.eat('<');
    if angle {
        depth = 1;
    } else if r.rest().starts_with('(') {
        let inner = r.rest()[1..].trim_start();
        if inner.starts_with('(') {
            r.at = r.text.len() - inner.len();
            depth = 1;
        }
    }
    let center = r.pair()?;
    r.eat(',');
    let radius = r.number()?;
    if radius < 0.0 {
        return Err(r.error());
    }
    while depth > 0 {
        if r.eat(')') || angle && r.eat('>') {
            depth -= 1;
            r.blanks();
        } else {
            return Err(r.error());
        }
    }
    Shape::of(Kind::Circle, false, &[center.x, center.y, radius]).ok_or_else(|| r.error())
}

fn line(r: &mut Reader<'_>) -> Result<Shape> {
    r.blanks();
    if !r.eat('{') {
        let (p, _) = r.points(2, true)?;
        r.end()?;
        return Line::through(p[0], p[1])
            .map_err(|e| if e.message().starts_with("invalid line") { distinct() } else { e })
            .map(Shape::Line);
    }
    let mut n = [0.0; 3];
    for (at, v) in n.iter_mut().enumerate() {
        if at > 0 && !r.eat(',') {
            return Err(r.error());
        }
        *v = r.number()?;
    }
    if !r.eat('}') {
        return Err(r.error());
    }
    r.blanks();
    r.end()?;
    if crate::basic::zero(n[0]) && crate::basic::zero(n[1]) {
        return Err(err!(
            INVALID_TEXT_REPRESENTATION,
            "invalid line specification: A and B cannot both be zero"
        ));
    }
    Ok(Shape::Line(Line { a: n[0], b: n[1], c: n[2] }))
}

fn distinct() -> Error {
    err!(INVALID_TEXT_REPRESENTATION, "invalid line specification: must be two distinct points")
}

pub(crate) fn receive(kind: Kind, bytes: &[u8]) -> Result<Shape> {
    let short = || err!(INVALID_BINARY_REPRESENTATION, "insufficient data left in message");
    let invalid = |what: &str| {
        err!(INVALID_BINARY_REPRESENTATION, "invalid {what} in external \"{}\" value", kind.name())
    };
    let mut bytes = bytes;
    let mut closed = false;
    if kind == Kind::Path {
        let (first, rest) = bytes.split_first().ok_or_else(short)?;
        (closed, bytes) = (*first != 0, rest);
    }
    if matches!(kind, Kind::Path | Kind::Polygon) {
        let (count, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
        let count = i32::from_be_bytes(*count);
        if count <= 0 || count as usize >= (i32::MAX as usize - 64) / 16 {
            return Err(invalid("number of points"));
        }
        if rest.len() != count as usize * 16 {
            return Err(short());
        }
        bytes = rest;
    }
    let (numbers, rest) = bytes.as_chunks::<8>();
    let numbers: Vec<f64> = numbers.iter().map(|n| f64::from_be_bytes(*n)).collect();
    let shape = Shape::of(kind, closed, &numbers).filter(|_| rest.is_empty()).ok_or_else(short)?;
    match &shape {
        Shape::Circle(c) if c.radius < 0.0 => Err(invalid("radius")),
        Shape::Line(l) if crate::basic::zero(l.a) && crate::basic::zero(l.b) => Err(err!(
            INVALID_BINARY_REPRESENTATION,
            "invalid line specification: A and B cannot both be zero"
        )),
        _ => Ok(shape),
    }
}

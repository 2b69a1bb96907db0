//! Text forms of arrays (`{1,NULL,"a b"}`), of int2vector and oidvector, and of row values.

use base::{Oid, Result, err};

use super::{FormatContext, input, natural_type, output};
use crate::datum::{Array, Datum, Record};
use crate::oids;

/// Elements of an array, at most (`MaxArraySize`).
pub(crate) const MAX_ITEMS: usize = 134_217_727;
/// Dimensions of an array, at most (`MAXDIM`).
const MAX_DIMS: usize = 6;

/// Whether an array may have so many dimensions.
///
/// # Errors
/// `54000`.
pub fn check_dimensions(dims: usize) -> Result<()> {
    if dims > MAX_DIMS {
        return Err(err!(
            PROGRAM_LIMIT_EXCEEDED,
            "number of array dimensions ({dims}) exceeds the maximum allowed ({MAX_DIMS})"
        ));
    }
    Ok(())
}

#[cold]
fn malformed(text: &str, detail: &str) -> base::Error {
    err!(INVALID_TEXT_REPRESENTATION, "malformed array literal: \"{text}\"").detail(detail)
}

/// Reads an array literal.
pub(super) fn parse(element: Oid, typmod: i32, text: &str, cx: &FormatContext) -> Result<Datum> {
    let (bounds, body) = parse_bounds(text)?;
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: body,
        element,
        delimiter: delimiter(element),
        typmod,
        cx,
        items: Vec::new(),
        lens: Vec::new(),
    };
    reader.skip_blanks();
    if reader.peek() != Some(b'{') {
        return Err(malformed(text, "Array value must start with \"{\" or dimension information."));
    }
    reader.braces(0)?;
    reader.skip_blanks();
    if reader.at != text.len() {
        return Err(malformed(text, "Junk after closing right brace."));
    }
    let (items, lens) = (reader.items, reader.lens);
    let lens: Vec<i32> = lens.into_iter().map(|l| l.unwrap_or(0)).collect();
    if items.is_empty() {
        return Ok(Datum::array(element, items));
    }
    let dims = match bounds {
        None => lens.iter().map(|l| (*l, 1)).collect(),
        Some(b) if b.iter().map(|(l, _)| *l).eq(lens.iter().copied()) => b,
        Some(_) => {
            return Err(malformed(text, "Specified array dimensions do not match array contents."));
        }
    };
    Ok(Datum::Array(Array { element, dims, items }.into()))
}

/// (length, lower bound) of each dimension.
type Dims = Vec<(i32, i32)>;

/// The optional `[2:3][1:4]=` in front; answers where the body starts.
fn parse_bounds(text: &str) -> Result<(Option<Dims>, usize)> {
    let trimmed = text.trim_start();
    if !trimmed.starts_with('[') {
        return Ok((None, text.len() - trimmed.len()));
    }
    let fail = || malformed(text, "\"[\" must introduce explicitly-specified array dimensions.");
    let (spec, _) = trimmed
        .split_once('=')
        .ok_or_else(|| malformed(text, "Missing \"=\" after array dimensions."))?;
    let mut dims = Vec::new();
    for part in spec.trim_end().split(']').map(str::trim).filter(|p| !p.is_empty()) {
        let range = part.strip_prefix('[').ok_or_else(fail)?;
        let (low, high) = range.split_once(':').unwrap_or(("1", range));
        let number = |s: &str| s.trim().parse::<i32>().map_err(|_| fail());
        let (low, high) = (number(low)?, number(high)?);
        let len = i64::from(high) - i64::from(low) + 1;
        if len <= 0 {
            return Err(err!(ARRAY_SUBSCRIPT_ERROR, "upper bound cannot be less than lower bound"));
        }
        let len =
            i32::try_from(len).ok().filter(|l| *l as usize <= MAX_ITEMS).ok_or_else(|| {
                err!(PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed ({MAX_ITEMS})")
            })?;
        dims.push((len, low));
    }
    Ok((Some(dims), text.len() - trimmed.len() + spec.len() + 1))
}

/// The separator of the items of an array (`typdelim`).
fn delimiter(element: Oid) -> u8 {
    crate::open::get(element).map_or(b',', |class| class.delimiter())
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    element: Oid,
    delimiter: u8,
    typmod: i32,
    cx: &'a FormatContext,
    items: Vec<Datum>,
    /// Length of each dimension, once a first run of it is complete.
    lens: Vec<Option<i32>>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)) {
            self.at += 1;
        }
    }

    fn end_of_input(&self) -> base::Error {
        malformed(self.text, "Unexpected end of input.")
    }

    fn unexpected(&self, what: u8) -> base::Error {
        let detail = format!("Unexpected \"{}\" character.", what as char);
        malformed(self.text, &detail)
    }

    /// One `{…}` of dimension `depth`; the next byte is its brace.
    fn braces(&mut self, depth: usize) -> Result<()> {
        if depth >= MAX_DIMS {
            return Err(err!(
                PROGRAM_LIMIT_EXCEEDED,
                "number of array dimensions ({}) exceeds the maximum allowed ({MAX_DIMS})",
                depth + 1
            ));
        }
        if self.lens.len() <= depth {
            if !self.items.is_empty() {
                return Err(self.ragged());
            }
            self.lens.push(None);
        }
        self.at += 1;
        let mut count = 0;
        self.skip_blanks();
        if self.peek() == Some(b'}') {
            if depth > 0 {
                return Err(self.unexpected(b'}'));
            }
            self.at += 1;
            return self.close(depth, 0);
        }
        loop {
            self.skip_blanks();
            match self.peek() {
                None => return Err(self.end_of_input()),
                Some(b'{') => self.braces(depth + 1)?,
                Some(b) if b == b'}' || b == self.delimiter => return Err(self.unexpected(b)),
                Some(_) if self.lens.len() > depth + 1 => return Err(self.ragged()),
                Some(_) => self.item()?,
            }
            count += 1;
            self.skip_blanks();
            match self.peek() {
                None => return Err(self.end_of_input()),
                Some(b) if b == self.delimiter => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return self.close(depth, count);
                }
                Some(_) => return Err(malformed(self.text, "Unexpected array element.")),
            }
        }
    }

    fn ragged(&self) -> base::Error {
        malformed(
            self.text,
            "Multidimensional arrays must have sub-arrays with matching dimensions.",
        )
    }

    fn close(&mut self, depth: usize, count: i32) -> Result<()> {
        match self.lens[depth] {
            None => self.lens[depth] = Some(count),
            Some(n) if n == count => {}
            Some(_) => return Err(self.ragged()),
        }
        Ok(())
    }

    fn item(&mut self) -> Result<()> {
        if self.items.len() >= MAX_ITEMS {
            return Err(err!(
                PROGRAM_LIMIT_EXCEEDED,
                "array size exceeds the maximum allowed ({MAX_ITEMS})"
            ));
        }
        sched::check_interrupts()?;
        let quoted = self.peek() == Some(b'"');
        let word = if quoted { self.quoted()? } else { self.bare()? };
        let item = if !quoted && word.eq_ignore_ascii_case("null") {
            Datum::Null
        } else {
            input(self.element, self.typmod, &word, self.cx)?
        };
        self.items.push(item);
        Ok(())
    }

    fn quoted(&mut self) -> Result<String> {
        let mut word = Vec::new();
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.end_of_input()),
                Some(b'"') => break,
                Some(b'\\') => {
                    self.at += 1;
                    word.push(self.peek().ok_or_else(|| self.end_of_input())?);
                }
                Some(b) => word.push(b),
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(String::from_utf8_lossy(&word).into_owned())
    }

    fn bare(&mut self) -> Result<String> {
        let mut word = Vec::new();
        // Blanks at the end don't count, but escaped ones do.
        let mut keep = 0;
        loop {
            match self.peek() {
                None => return Err(self.end_of_input()),
                Some(b'}') => break,
                Some(b) if b == self.delimiter => break,
                Some(b @ (b'{' | b'"')) => return Err(self.unexpected(b)),
                Some(b'\\') => {
                    self.at += 1;
                    word.push(self.peek().ok_or_else(|| self.end_of_input())?);
                    keep = word.len();
                }
                Some(b) => {
                    word.push(b);
                    if !b.is_ascii_whitespace() {
                        keep = word.len();
                    }
                }
            }
            self.at += 1;
        }
        word.truncate(keep);
        Ok(String::from_utf8_lossy(&word).into_owned())
    }
}

/// Appends an array's text.
pub(super) fn write(array: &Array, cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
    if array.dims.is_empty() {
        out.extend_from_slice(b"{}");
        return Ok(());
    }
    if array.dims.iter().any(|(_, low)| *low != 1) {
        for (len, low) in &array.dims {
            out.extend_from_slice(format!("[{low}:{}]", low + len - 1).as_bytes());
        }
        out.push(b'=');
    }
    let mut items = array.items.iter();
    let delimiter = delimiter(array.element);
    write_level(array, &array.dims, &mut items, (delimiter, cx), out)
}

fn write_level(
    array: &Array,
    dims: &[(i32, i32)],
    items: &mut std::slice::Iter<'_, Datum>,
    (delimiter, cx): (u8, &FormatContext),
    out: &mut Vec<u8>,
) -> Result<()> {
    let Some(((len, _), inner)) = dims.split_first() else {
        return match items.next() {
            None | Some(Datum::Null) => {
                out.extend_from_slice(b"NULL");
                Ok(())
            }
            Some(item) => write_item(array.element, item, (delimiter, cx), out),
        };
    };
    out.push(b'{');
    for i in 0..*len {
        sched::check_interrupts()?;
        if i > 0 {
            out.push(delimiter);
        }
        write_level(array, inner, items, (delimiter, cx), out)?;
    }
    out.push(b'}');
    Ok(())
}

fn write_item(
    element: Oid,
    item: &Datum,
    (delimiter, cx): (u8, &FormatContext),
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    output(element, item, cx, out)?;
    let word = &out[start..];
    let special =
        |b: &u8| *b == delimiter || matches!(b, b'"' | b'\\' | b'{' | b'}' | b' ' | b'\t'..=b'\r');
    if word.is_empty() || word.eq_ignore_ascii_case(b"null") || word.iter().any(special) {
        let word = out.split_off(start);
        out.push(b'"');
        for b in word {
            if matches!(b, b'"' | b'\\') {
                out.push(b'\\');
            }
            out.push(b);
        }
        out.push(b'"');
    }
    Ok(())
}

/// Reads `1 2 3`.
pub(super) fn parse_vector(element: Oid, text: &str) -> Result<Datum> {
    let mut items = Vec::new();
    for word in text.split_ascii_whitespace() {
        items.push(match element {
            oids::INT2 => Datum::Int2(super::parse_int2(word)?),
            _ => Datum::Oid(super::number::parse_oid("oid", word)?),
        });
    }
    let dims = if items.is_empty() { Vec::new() } else { vec![(items.len() as i32, 0)] };
    Ok(Datum::Array(Array { element, dims, items }.into()))
}

/// Appends `1 2 3`.
pub(super) fn write_vector(array: &Array, cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
    for (i, item) in array.items.iter().enumerate() {
        if i > 0 {
            out.push(b' ');
        }
        output(array.element, item, cx, out)?;
    }
    Ok(())
}

/// The type of a row's column.
pub(super) fn column_type(r: &Record, at: usize) -> Oid {
    r.shape.columns.get(at).map_or_else(|| natural_type(&r.fields[at]), |c| c.1)
}

/// Appends `(1,"a b",)`.
pub(super) fn write_record(r: &Record, cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'(');
    for (i, field) in r.fields.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if !field.is_null() {
            let start = out.len();
            output(column_type(r, i), field, cx, out)?;
            quote_record_field(start, out);
        }
    }
    out.push(b')');
    Ok(())
}

/// Quotes what stands in `out` from `start` as a field of a row's text, where it must be.
pub(crate) fn quote_record_field(start: usize, out: &mut Vec<u8>) {
    let special = |b: &u8| matches!(b, b'"' | b'\\' | b'(' | b')' | b',' | b' ' | b'\t'..=b'\r');
    if out.len() > start && !out[start..].iter().any(special) {
        return;
    }
    let word = out.split_off(start);
    out.push(b'"');
    for b in word {
        if matches!(b, b'"' | b'\\') {
            out.push(b);
        }
        out.push(b);
    }
    out.push(b'"');
}

//! Row bytes in the heap.
//!
//! ```text
//! u16      number of columns; top bit: a null bitmap follows
//! bitmap   one bit a column, low bit first, 1 = NULL             (only if there is a NULL)
//! values   without padding, NULLs left out:
//!          fixed width as they are (little-endian),
//!          others as length (1 byte below 128, else 4 bytes big-endian with the top bit set), bytes
//! ```
//!
//! A row with fewer columns than the table (column added later) reads the missing ones' default.
//! In a row without NULLs the offsets of all columns up to the first one of variable width are
//! known beforehand ([`RowLayout`]), so that reading `id` of a `pgbench` row is one load.
//!
//! Inside arrays and records items have a tag each, since a record's types aren't known.

mod columns;
mod outside;
mod tagged;

use std::borrow::Cow;
use std::sync::Arc;

use base::{Error, Oid, Result, TupleId};

use crate::batch::{Column, Vector};
use crate::datum::{Bits, Datum, Inet, Interval, Numeric, Text};
use crate::jsonb::Json;
use crate::jsonb::path::Path;
use crate::oids;

pub use columns::decode_rows;
pub use outside::{Outside, TARGET_BYTES, pointers, reuse, shrink};
use tagged::{tagged, untag};

/// A column as the codec needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct RowColumn {
    /// Type.
    pub ty: Oid,
    /// Value for rows older than the column.
    pub missing: Datum,
}

/// How a column's values stand in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    Char,
    Int2,
    Int4,
    Date,
    Oid,
    Int8,
    Time,
    Timestamp,
    Timestamptz,
    Float4,
    Float8,
    Tid,
    Uuid,
    Interval,
    Timetz,
    Money,
    Macaddr,
    Macaddr8,
    // From here on with a length.
    Text,
    Bpchar,
    Bytea,
    Numeric,
    Inet,
    Bits,
    Jsonb,
    Jsonpath,
    /// A type of another crate with a fixed oid.
    Open,
    /// Arrays, records, ranges and values of users' types, with tags.
    Tagged,
}

impl Kind {
    fn of(ty: Oid) -> Kind {
        match ty {
            oids::BOOL => Kind::Bool,
            oids::CHAR => Kind::Char,
            oids::INT2 => Kind::Int2,
            oids::INT4 => Kind::Int4,
            oids::INT8 | oids::XID8 | oids::PG_LSN => Kind::Int8,
            oids::FLOAT4 => Kind::Float4,
            oids::FLOAT8 => Kind::Float8,
            oids::NUMERIC => Kind::Numeric,
            oids::BPCHAR => Kind::Bpchar,
            oids::BYTEA => Kind::Bytea,
            oids::DATE => Kind::Date,
            oids::TIME => Kind::Time,
            oids::TIMESTAMP => Kind::Timestamp,
            oids::TIMESTAMPTZ => Kind::Timestamptz,
            oids::INTERVAL => Kind::Interval,
            oids::UUID => Kind::Uuid,
            oids::TID => Kind::Tid,
            oids::TIMETZ => Kind::Timetz,
            oids::MONEY => Kind::Money,
            oids::MACADDR => Kind::Macaddr,
            oids::MACADDR8 => Kind::Macaddr8,
            oids::INET | oids::CIDR => Kind::Inet,
            oids::BIT | oids::VARBIT => Kind::Bits,
            oids::JSONB => Kind::Jsonb,
            oids::JSONPATH => Kind::Jsonpath,
            oids::REFCURSOR | oids::PG_SNAPSHOT | oids::TXID_SNAPSHOT => Kind::Text,
            oids::OID | oids::XID | oids::CID => Kind::Oid,
            oids::TEXT | oids::VARCHAR | oids::NAME | oids::JSON | oids::UNKNOWN => Kind::Text,
            oids::CSTRING | oids::ACLITEM | oids::PG_NODE_TREE | oids::VOID => Kind::Text,
            oids::PG_NDISTINCT | oids::PG_DEPENDENCIES | oids::PG_MCV_LIST => Kind::Text,
            _ if crate::io::is_reg(ty) => Kind::Oid,
            _ if !crate::user::is_user(ty) && crate::open::built_in(ty).is_some() => Kind::Open,
            _ => Kind::Tagged,
        }
    }

    /// Bytes of a value; None when it has a length in front.
    const fn width(self) -> Option<usize> {
        Some(match self {
            Kind::Bool | Kind::Char => 1,
            Kind::Int2 => 2,
            Kind::Int4 | Kind::Date | Kind::Oid | Kind::Float4 => 4,
            Kind::Int8 | Kind::Time | Kind::Timestamp | Kind::Timestamptz | Kind::Float8 => 8,
            Kind::Tid | Kind::Macaddr => 6,
            Kind::Money | Kind::Macaddr8 => 8,
            Kind::Timetz => 12,
            Kind::Uuid | Kind::Interval => 16,
            _ => return None,
        })
    }
}

/// Whether values of both types are the same datums.
pub fn same_form(a: Oid, b: Oid) -> bool {
    a == b || Kind::of(a) == Kind::of(b) && Kind::of(a) != Kind::Open
}

/// The columns of a relation, prepared for the codec. Made once for each version of a relation.
#[derive(Clone, Debug)]
pub struct RowLayout {
    columns: Box<[RowColumn]>,
    kinds: Box<[Kind]>,
    /// Where each value starts in a row without NULLs, counted from the first value; known for the
    /// columns up to the first of variable width, and for that one.
    starts: Box<[u32]>,
    /// Where values are that rows only point at.
    outside: Option<Arc<dyn Outside>>,
}

impl RowLayout {
    /// The layout of these columns.
    pub fn new(columns: Vec<RowColumn>) -> RowLayout {
        let kinds: Box<[Kind]> = columns.iter().map(|c| Kind::of(c.ty)).collect();
        let (mut starts, mut at) = (Vec::new(), 0);
        for kind in &kinds {
            starts.push(at);
            match kind.width() {
                Some(width) => at += width as u32,
                None => break,
            }
        }
        RowLayout { columns: columns.into(), kinds, starts: starts.into(), outside: None }
    }

    /// A layout of columns that have no default for older rows.
    pub fn of_types(types: &[Oid]) -> RowLayout {
        RowLayout::new(types.iter().map(|ty| RowColumn { ty: *ty, missing: Datum::Null }).collect())
    }

    /// The columns.
    pub fn columns(&self) -> &[RowColumn] {
        &self.columns
    }
}

const HAS_NULLS: u16 = 0x8000;
/// Columns of a row, at most.
pub const MAX_COLUMNS: usize = 1600;

#[cold]
fn corrupt() -> Error {
    base::err!(DATA_CORRUPTED, "row bytes are damaged")
}

/// Appends a row's bytes.
///
/// # Errors
/// Internal, when a value isn't of its column's type.
pub fn encode(layout: &RowLayout, values: &[Datum], out: &mut Vec<u8>) -> Result<()> {
    debug_assert!(values.len() <= layout.kinds.len() && values.len() <= MAX_COLUMNS);
    let nulls = values.iter().any(Datum::is_null);
    let head = values.len() as u16 | if nulls { HAS_NULLS } else { 0 };
    out.extend_from_slice(&head.to_le_bytes());
    if nulls {
        let bitmap = out.len();
        out.resize(bitmap + values.len().div_ceil(8), 0);
        for (i, value) in values.iter().enumerate() {
            if value.is_null() {
                out[bitmap + i / 8] |= 1 << (i % 8);
            }
        }
    }
    for (i, value) in values.iter().enumerate() {
        if !value.is_null() {
            encode_value(layout.kinds[i], value, out)?;
        }
    }
    Ok(())
}

fn encode_value(kind: Kind, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    match (kind, value) {
        (Kind::Int4, Datum::Int4(v)) | (Kind::Date, Datum::Date(v)) => {
            out.extend_from_slice(&v.to_le_bytes());
        }
        (Kind::Int8, Datum::Int8(v))
        | (Kind::Time, Datum::Time(v))
        | (Kind::Timestamp, Datum::Timestamp(v))
        | (Kind::Timestamptz, Datum::Timestamptz(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (Kind::Text | Kind::Bpchar, Datum::Text(s) | Datum::Bpchar(s)) => {
            outside::check_length(s.len())?;
            put_length(s.len(), out);
            out.extend_from_slice(s.as_bytes());
        }
        (Kind::Bool, Datum::Bool(v)) => out.push(u8::from(*v)),
        (Kind::Char, Datum::Char(v)) => out.push(*v),
        (Kind::Int2, Datum::Int2(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (Kind::Oid, Datum::Oid(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (Kind::Float4, Datum::Float4(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (Kind::Float8, Datum::Float8(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (Kind::Tid, Datum::Tid(v)) => out.extend_from_slice(&v.to_bytes()),
        (Kind::Uuid, Datum::Uuid(v)) => out.extend_from_slice(&**v),
        (Kind::Interval, Datum::Interval(v)) => {
            out.extend_from_slice(&v.micros.to_le_bytes());
            out.extend_from_slice(&v.days.to_le_bytes());
            out.extend_from_slice(&v.months.to_le_bytes());
        }
        (Kind::Bytea, Datum::Bytea(b)) => {
            outside::check_length(b.len())?;
            put_length(b.len(), out);
            out.extend_from_slice(b);
        }
        (Kind::Numeric, Datum::Numeric(n)) => {
            with_length(out, |out| {
                n.store(out);
                Ok(())
            })?;
        }
        (Kind::Timetz, Datum::Timetz(t, west)) => {
            out.extend_from_slice(&t.to_le_bytes());
            out.extend_from_slice(&west.to_le_bytes());
        }
        (Kind::Money, Datum::Money(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (Kind::Macaddr, Datum::Macaddr(m)) => out.extend_from_slice(m),
        (Kind::Macaddr8, Datum::Macaddr8(m)) => out.extend_from_slice(m),
        (Kind::Inet, Datum::Inet(i)) => {
            let len = if i.v6 { 16 } else { 4 };
            put_length(len + 2, out);
            out.extend_from_slice(&[u8::from(i.cidr), i.bits]);
            out.extend_from_slice(&i.addr[..len]);
        }
        (Kind::Bits, Datum::Bits(b)) => {
            put_length(b.bytes.len() + 4, out);
            out.extend_from_slice(&b.len.to_le_bytes());
            out.extend_from_slice(&b.bytes);
        }
        (Kind::Jsonb, Datum::Jsonb(j)) => {
            with_length(out, |out| {
                j.store(out);
                Ok(())
            })?;
        }
        (Kind::Jsonpath, Datum::Jsonpath(p)) => {
            put_length(p.text().len(), out);
            out.extend_from_slice(p.text().as_bytes());
        }
        (Kind::Open, Datum::Open(v)) => with_length(out, |out| {
            v.0.store(out);
            Ok(())
        })?,
        (Kind::Tagged, value) => with_length(out, |out| tagged(value, out))?,
        (kind, value) => {
            return Err(Error::internal(format!("{value:?} does not fit a column of {kind:?}")));
        }
    }
    Ok(())
}

fn put_length(len: usize, out: &mut Vec<u8>) {
    if len < 128 {
        out.push(len as u8);
    } else {
        out.extend_from_slice(&(len as u32 | 1 << 31).to_be_bytes());
    }
}

/// Appends what `write` appends, with its length in front.
fn with_length(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
    let start = out.len();
    out.push(0);
    write(out)?;
    let len = out.len() - start - 1;
    outside::check_length(len)?;
    if len < 128 {
        out[start] = len as u8;
    } else {
        let head = (len as u32 | 1 << 31).to_be_bytes();
        out.splice(start..=start, head);
    }
    Ok(())
}

/// A row as the codec walks it.
struct Walk<'a> {
    layout: &'a RowLayout,
    bytes: &'a [u8],
    /// Columns that the row has.
    columns: usize,
    bitmap: Option<&'a [u8]>,
    /// Offset of the first value.
    first: usize,
    /// The column that starts at `at`.
    column: usize,
    at: usize,
}

impl<'a> Walk<'a> {
    #[inline]
    fn new(layout: &'a RowLayout, bytes: &'a [u8]) -> Result<Walk<'a>> {
        let head = bytes.get(..2).ok_or_else(corrupt)?;
        let head = u16::from_le_bytes([head[0], head[1]]);
        let columns = usize::from(head & !HAS_NULLS);
        if columns > layout.kinds.len() {
            return Err(corrupt());
        }
        let (bitmap, first) = if head & HAS_NULLS == 0 {
            (None, 2)
        } else {
            let end = 2 + columns.div_ceil(8);
            (Some(bytes.get(2..end).ok_or_else(corrupt)?), end)
        };
        Ok(Walk { layout, bytes, columns, bitmap, first, column: 0, at: first })
    }

    #[inline]
    fn is_null(&self, column: usize) -> bool {
        self.bitmap.is_some_and(|b| b[column / 8] >> (column % 8) & 1 == 1)
    }

    /// Moves to a column at or after the current one; answers false where the value is NULL. The
    /// row must have the column.
    #[inline]
    fn seek(&mut self, column: usize) -> Result<bool> {
        if self.bitmap.is_none()
            && let Some(start) = self.layout.starts.get(column)
        {
            self.at = self.first + *start as usize;
            self.column = column;
            return Ok(true);
        }
        while self.column < column {
            if !self.is_null(self.column) {
                self.skip()?;
            }
            self.column += 1;
        }
        Ok(!self.is_null(column))
    }

    fn skip(&mut self) -> Result<()> {
        match self.layout.kinds[self.column].width() {
            Some(width) => self.at += width,
            None => {
                let (len, head, _) = self.length()?;
                self.at += head + len;
            }
        }
        Ok(())
    }

    /// Length of the value here and of its head, and whether it is a special one (see
    /// [`outside`]).
    #[inline]
    fn length(&self) -> Result<(usize, usize, bool)> {
        let b = self.bytes.get(self.at).ok_or_else(corrupt)?;
        if *b < 128 {
            return Ok((usize::from(*b), 1, false));
        }
        let head = u32::from_be_bytes(self.fixed()?);
        Ok(((head & !outside::SPECIAL) as usize, 4, head >= outside::SPECIAL))
    }

    #[inline]
    fn fixed<const N: usize>(&self) -> Result<[u8; N]> {
        let bytes = self.bytes.get(self.at..self.at + N).ok_or_else(corrupt)?;
        bytes.try_into().map_err(|_| corrupt())
    }

    #[inline]
    fn varying(&self) -> Result<Cow<'a, [u8]>> {
        let (len, head, special) = self.length()?;
        let from = self.at + head;
        let bytes = self.bytes.get(from..from + len).ok_or_else(corrupt)?;
        if special { outside::expand(self.layout, bytes) } else { Ok(Cow::Borrowed(bytes)) }
    }

    fn text(&self) -> Result<Text> {
        Ok(Text::from(std::str::from_utf8(&self.varying()?).map_err(|_| corrupt())?))
    }

    /// The value here.
    #[inline]
    fn value(&self) -> Result<Datum> {
        Ok(match self.layout.kinds[self.column] {
            Kind::Int4 => Datum::Int4(i32::from_le_bytes(self.fixed()?)),
            Kind::Int8 => Datum::Int8(i64::from_le_bytes(self.fixed()?)),
            Kind::Text => Datum::Text(self.text()?),
            Kind::Bpchar => Datum::Bpchar(self.text()?),
            Kind::Bool => Datum::Bool(self.fixed::<1>()?[0] != 0),
            Kind::Char => Datum::Char(self.fixed::<1>()?[0]),
            Kind::Int2 => Datum::Int2(i16::from_le_bytes(self.fixed()?)),
            Kind::Date => Datum::Date(i32::from_le_bytes(self.fixed()?)),
            Kind::Oid => Datum::Oid(u32::from_le_bytes(self.fixed()?)),
            Kind::Time => Datum::Time(i64::from_le_bytes(self.fixed()?)),
            Kind::Timestamp => Datum::Timestamp(i64::from_le_bytes(self.fixed()?)),
            Kind::Timestamptz => Datum::Timestamptz(i64::from_le_bytes(self.fixed()?)),
            Kind::Float4 => Datum::Float4(f32::from_le_bytes(self.fixed()?)),
            Kind::Float8 => Datum::Float8(f64::from_le_bytes(self.fixed()?)),
            Kind::Tid => Datum::Tid(TupleId::from_bytes(self.fixed()?)),
            Kind::Uuid => Datum::Uuid(Arc::new(self.fixed()?)),
            Kind::Interval => Datum::Interval(Arc::new(interval(self.fixed()?))),
            Kind::Bytea => Datum::Bytea(Arc::from(&*self.varying()?)),
            Kind::Numeric => Datum::Numeric(Numeric::load(&self.varying()?).ok_or_else(corrupt)?),
            Kind::Timetz => {
                let b: [u8; 12] = self.fixed()?;
                let (micros, west) = b.split_at(8);
                let micros = i64::from_le_bytes(micros.try_into().map_err(|_| corrupt())?);
                Datum::Timetz(micros, i32::from_le_bytes(west.try_into().map_err(|_| corrupt())?))
            }
            Kind::Money => Datum::Money(i64::from_le_bytes(self.fixed()?)),
            Kind::Macaddr => Datum::Macaddr(self.fixed()?),
            Kind::Macaddr8 => Datum::Macaddr8(self.fixed()?),
            Kind::Inet => Datum::Inet(load_inet(&self.varying()?).ok_or_else(corrupt)?),
            Kind::Bits => Datum::Bits(Arc::new(load_bits(&self.varying()?).ok_or_else(corrupt)?)),
            Kind::Jsonb => Datum::jsonb(Json::load(&mut &*self.varying()?).ok_or_else(corrupt)?),
            Kind::Jsonpath => Datum::Jsonpath(Arc::new(Path::parse(&self.text()?)?)),
            Kind::Open => load_open(self.layout.columns[self.column].ty, &self.varying()?)?,
            Kind::Tagged => untag(&mut &*self.varying()?)?,
        })
    }
}

fn load_open(ty: Oid, bytes: &[u8]) -> Result<Datum> {
    let missing = || Error::internal(format!("type {ty} is not known here"));
    crate::open::get(ty).ok_or_else(missing)?.load(ty, bytes).ok_or_else(corrupt)
}

fn load_inet(bytes: &[u8]) -> Option<Inet> {
    let ([cidr, bits], host) = bytes.split_first_chunk::<2>()?;
    let mut inet = Inet { addr: [0; 16], bits: *bits, v6: host.len() == 16, cidr: *cidr != 0 };
    inet.addr.get_mut(..host.len())?.copy_from_slice(host);
    Some(inet)
}

fn load_bits(bytes: &[u8]) -> Option<Bits> {
    let (len, bytes) = bytes.split_first_chunk::<4>()?;
    let len = u32::from_le_bytes(*len);
    (bytes.len() == (len as usize).div_ceil(8)).then(|| Bits { len, bytes: bytes.to_vec() })
}

fn interval(b: [u8; 16]) -> Interval {
    let four = |i: usize| i32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
    let micros = i64::from(four(0) as u32) | i64::from(four(4)) << 32;
    Interval { micros, days: four(8), months: four(12) }
}

/// Reads the columns with the given indexes (ascending) into `out` (pushed in that order).
///
/// # Errors
/// `XX001`: damaged bytes.
pub fn decode(
    layout: &RowLayout,
    bytes: &[u8],
    wanted: &[u16],
    out: &mut Vec<Datum>,
) -> Result<()> {
    let mut walk = Walk::new(layout, bytes)?;
    for &column in wanted {
        let column = usize::from(column);
        let value = if column >= walk.columns {
            layout.columns.get(column).ok_or_else(corrupt)?.missing.clone()
        } else if walk.seek(column)? {
            walk.value()?
        } else {
            Datum::Null
        };
        out.push(value);
    }
    Ok(())
}

/// As [`decode`], into column vectors of a batch.
///
/// # Errors
/// As [`decode`].
pub fn decode_into(
    layout: &RowLayout,
    bytes: &[u8],
    wanted: &[u16],
    out: &mut [Column],
) -> Result<()> {
    let mut walk = Walk::new(layout, bytes)?;
    for (column, to) in wanted.iter().zip(out) {
        push_value(&mut walk, usize::from(*column), to)?;
    }
    Ok(())
}

/// Adds the value of a column at or after the current one.
#[inline]
fn push_value(walk: &mut Walk<'_>, column: usize, to: &mut Column) -> Result<()> {
    if column >= walk.columns {
        return to.push(walk.layout.columns.get(column).ok_or_else(corrupt)?.missing.clone());
    }
    if !walk.seek(column)? {
        to.push_null();
        return Ok(());
    }
    match &mut to.data {
        Vector::Int4(v) => v.push(i32::from_le_bytes(walk.fixed()?)),
        Vector::Int8(v) => v.push(i64::from_le_bytes(walk.fixed()?)),
        Vector::Float8(v) => v.push(f64::from_le_bytes(walk.fixed()?)),
        Vector::Text(v) | Vector::Bpchar(v) => v.push(walk.text()?),
        Vector::Numeric(..) => {
            to.push_numeric(Numeric::load(&walk.varying()?).ok_or_else(corrupt)?);
            return Ok(());
        }
        _ => return to.push(walk.value()?),
    }
    to.pushed();
    Ok(())
}

#[cfg(test)]
mod tests;

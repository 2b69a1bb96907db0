//! One value, 24 bytes wide. The common types stand in place; long text, big numerics, arrays and
//! the like are shared by reference count, so that a copy never costs more than an addition.

use std::sync::Arc;

use base::Oid;

use crate::jsonb::Json;
use crate::jsonb::path::Path;
pub use crate::numeric::Numeric;

/// Text: 15 bytes in place, longer ones shared; 16 bytes wide.
pub type Text = ecow::EcoString;

/// A value of any type, NULL included. Its SQL type is known from the plan, not from the value:
/// text, varchar and name are all `Text`; oid, regclass and kin are all `Oid`. Only `bpchar` has
/// its own variant, because it compares without trailing blanks.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Datum {
    /// NULL.
    #[default]
    Null,
    /// bool.
    Bool(bool),
    /// int2.
    Int2(i16),
    /// int4.
    Int4(i32),
    /// int8, xid8, pg_lsn.
    Int8(i64),
    /// float4.
    Float4(f32),
    /// float8.
    Float8(f64),
    /// numeric; in place while its digits fit 64 bits. `==` compares the display scale too.
    Numeric(Numeric),
    /// text, varchar, name, unknown, json, cstring.
    Text(Text),
    /// char(n), with its trailing blanks.
    Bpchar(Text),
    /// bytea.
    Bytea(Arc<[u8]>),
    /// "char".
    Char(u8),
    /// date: days since 2000-01-01 (i32::MIN and MAX are the infinities).
    Date(i32),
    /// time: microseconds since midnight.
    Time(i64),
    /// timestamp: microseconds since 2000-01-01 (i64::MIN and MAX are the infinities).
    Timestamp(i64),
    /// timestamptz: the same, in UTC.
    Timestamptz(i64),
    /// interval.
    Interval(Arc<Interval>),
    /// oid, regclass, regtype, regproc, xid.
    Oid(u32),
    /// tid.
    Tid(base::TupleId),
    /// uuid.
    Uuid(Arc<[u8; 16]>),
    /// An array; elements carry their own nulls. int2vector and oidvector are arrays from 0.
    Array(Arc<Array>),
    /// A row value.
    Record(Arc<Record>),
    /// time with time zone: microseconds since local midnight, seconds west of Greenwich.
    Timetz(i64, i32),
    /// money, in hundredths.
    Money(i64),
    /// inet, cidr.
    Inet(Inet),
    /// macaddr.
    Macaddr([u8; 6]),
    /// macaddr8.
    Macaddr8([u8; 8]),
    /// bit, bit varying.
    Bits(Arc<Bits>),
    /// jsonb.
    Jsonb(Arc<Json>),
    /// jsonpath.
    Jsonpath(Arc<Path>),
    /// A range.
    Range(Arc<Range>),
    /// A multirange.
    Multirange(Arc<Multirange>),
    /// An enum's value: its type, and the rank of its label ([`crate::user`]).
    Enum(Oid, u64),
    /// A value of a type that is defined in another crate.
    Open(crate::open::Open),
}

/// A row value with what is known of its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its type and columns.
    pub shape: Arc<Shape>,
    /// One value a column.
    pub fields: Box<[Datum]>,
}

/// The columns of a row value.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// `record`, or the composite type.
    pub ty: Oid,
    /// Name and type of each column.
    pub columns: Vec<(Text, Oid)>,
}

impl Shape {
    /// An anonymous row's: columns `f1`, `f2`, …
    pub fn anonymous(types: impl Iterator<Item = Oid>) -> Shape {
        let name = |i: usize| Text::from(format!("f{}", i + 1));
        let columns = types.enumerate().map(|(i, ty)| (name(i), ty)).collect();
        Shape { ty: crate::oids::RECORD, columns }
    }
}

/// A network address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inet {
    /// The address, in the first 4 bytes for version 4.
    pub addr: [u8; 16],
    /// Bits of the network.
    pub bits: u8,
    /// Version 6.
    pub v6: bool,
    /// cidr rather than inet.
    pub cidr: bool,
}

/// A bit string; the last byte's low bits are 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Bits.
    pub len: u32,
    /// Eight a byte, the first one highest.
    pub bytes: Vec<u8>,
}

/// A range of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The range's type.
    pub ty: Oid,
    /// Where it starts and ends; None when it is empty.
    pub bounds: Option<(Bound, Bound)>,
}

/// One end of a range.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The value; NULL for infinity.
    pub value: Datum,
    /// Whether the value itself belongs to the range.
    pub inclusive: bool,
}

/// Ranges that neither overlap nor touch, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Multirange {
    /// The multirange's type.
    pub ty: Oid,
    /// The ranges, none of them empty.
    pub ranges: Vec<Range>,
}

/// An interval, in PostgreSQL's three parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interval {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

/// An array of any dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Element type.
    pub element: Oid,
    /// (length, lower bound) of each dimension; none for an empty array.
    pub dims: Vec<(i32, i32)>,
    /// Elements, row-major.
    pub items: Vec<Datum>,
}

impl Array {
    /// A one-dimensional array from 1 (without dimensions when there are no items).
    pub fn of(element: Oid, items: Vec<Datum>) -> Array {
        let dims = if items.is_empty() { Vec::new() } else { vec![(items.len() as i32, 1)] };
        Array { element, dims, items }
    }
}

impl Datum {
    /// About how many bytes its text or its items take, found without looking at them; 0 for types whose
    /// values are never large.
    #[inline]
    pub fn bulk(&self) -> usize {
        match self {
            Datum::Text(s) | Datum::Bpchar(s) => s.len(),
            Datum::Bytea(b) => b.len(),
            Datum::Bits(b) => b.bytes.len(),
            Datum::Array(a) => size_of_val(a.items.as_slice()),
            Datum::Jsonb(j) => j.bulk(),
            Datum::Multirange(m) => size_of_val(m.ranges.as_slice()),
            Datum::Open(v) => v.0.heap_bytes(),
            _ => 0,
        }
    }
}

macro_rules! getters { ($($(#[$doc:meta])* $name:ident: $variant:ident => $ty:ty;)*) => { $(
    $(#[$doc])*
    ///
    /// # Panics
    /// When it is of another type: the binder has let a wrong plan through.
    #[inline]
    pub fn $name(&self) -> $ty {
        match self {
            Datum::$variant(v) => *v,
            other => other.mismatch(stringify!($variant)),
        }
    } )* };
}

impl Datum {
    /// Whether it is NULL.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    /// A text value.
    pub fn text(s: &str) -> Datum {
        if s.len() > crate::bulk::PIECE_BYTES {
            let mut out = Text::with_capacity(s.len());
            crate::bulk::unhurried(s).for_each(|piece| out.push_str(piece));
            return Datum::Text(out);
        }
        Datum::Text(Text::from(s))
    }

    /// A bytea value.
    pub fn bytea(bytes: &[u8]) -> Datum {
        Datum::Bytea(Arc::from(bytes))
    }

    /// A one-dimensional array.
    pub fn array(element: Oid, items: Vec<Datum>) -> Datum {
        Datum::Array(Arc::new(Array::of(element, items)))
    }

    /// An interval.
    pub fn interval(months: i32, days: i32, micros: i64) -> Datum {
        Datum::Interval(Arc::new(Interval { months, days, micros }))
    }

    getters! {
        /// The bool.
        as_bool: Bool => bool;
        /// The int2.
        as_int2: Int2 => i16;
        /// The int4.
        as_int4: Int4 => i32;
        /// The int8.
        as_int8: Int8 => i64;
        /// The float4.
        as_float4: Float4 => f32;
        /// The float8.
        as_float8: Float8 => f64;
        /// The "char".
        as_char: Char => u8;
        /// The date.
        as_date: Date => i32;
        /// The time.
        as_time: Time => i64;
        /// The timestamp.
        as_timestamp: Timestamp => i64;
        /// The timestamptz.
        as_timestamptz: Timestamptz => i64;
        /// The oid.
        as_oid: Oid => u32;
        /// The tuple id.
        as_tid: Tid => base::TupleId;
        /// The money, in hundredths.
        as_money: Money => i64;
        /// The macaddr.
        as_macaddr: Macaddr => [u8; 6];
        /// The macaddr8.
        as_macaddr8: Macaddr8 => [u8; 8];
    }

    /// The characters of text, varchar, bpchar, name.
    ///
    /// # Panics
    /// When it is of another type.
    #[inline]
    pub fn as_str(&self) -> &str {
        match self {
            Datum::Text(s) | Datum::Bpchar(s) => s,
            other => other.mismatch("Text"),
        }
    }

    /// The numeric.
    ///
    /// # Panics
    /// When it is of another type.
    #[inline]
    pub fn as_numeric(&self) -> &Numeric {
        match self {
            Datum::Numeric(n) => n,
            other => other.mismatch("Numeric"),
        }
    }

    /// The bytes of a bytea.
    ///
    /// # Panics
    /// When it is of another type.
    pub fn as_bytea(&self) -> &[u8] {
        match self {
            Datum::Bytea(b) => b,
            other => other.mismatch("Bytea"),
        }
    }

    /// The interval.
    ///
    /// # Panics
    /// When it is of another type.
    pub fn as_interval(&self) -> Interval {
        match self {
            Datum::Interval(i) => **i,
            other => other.mismatch("Interval"),
        }
    }

    /// The array.
    ///
    /// # Panics
    /// When it is of another type.
    pub fn as_array(&self) -> &Array {
        match self {
            Datum::Array(a) => a,
            other => other.mismatch("Array"),
        }
    }

    /// The fields of a row value.
    ///
    /// # Panics
    /// When it is of another type.
    pub fn as_record(&self) -> &[Datum] {
        match self {
            Datum::Record(r) => &r.fields,
            other => other.mismatch("Record"),
        }
    }

    /// The jsonb document.
    ///
    /// # Panics
    /// When it is of another type.
    pub fn as_jsonb(&self) -> &Json {
        match self {
            Datum::Jsonb(j) => j,
            other => other.mismatch("Jsonb"),
        }
    }

    /// The network address.
    ///
    /// # Panics
    /// When it is of another type.
    pub fn as_inet(&self) -> &Inet {
        match self {
            Datum::Inet(i) => i,
            other => other.mismatch("Inet"),
        }
    }

    /// The bit string.
    ///
    /// # Panics
    /// When it is of another type.
    pub fn as_bits(&self) -> &Bits {
        match self {
            Datum::Bits(b) => b,
            other => other.mismatch("Bits"),
        }
    }

    /// The range.
    ///
    /// # Panics
    /// When it is of another type.
    pub fn as_range(&self) -> &Range {
        match self {
            Datum::Range(r) => r,
            other => other.mismatch("Range"),
        }
    }

    /// The multirange.
    ///
    /// # Panics
    /// When it is of another type.
    pub fn as_multirange(&self) -> &Multirange {
        match self {
            Datum::Multirange(m) => m,
            other => other.mismatch("Multirange"),
        }
    }

    /// Microseconds and seconds west of a time with time zone.
    ///
    /// # Panics
    /// When it is of another type.
    pub fn as_timetz(&self) -> (i64, i32) {
        match self {
            Datum::Timetz(t, west) => (*t, *west),
            other => other.mismatch("Timetz"),
        }
    }

    /// A row value.
    pub fn record(shape: Arc<Shape>, fields: Vec<Datum>) -> Datum {
        Datum::Record(Arc::new(Record { shape, fields: fields.into() }))
    }

    /// A jsonb value.
    pub fn jsonb(json: Json) -> Datum {
        Datum::Jsonb(Arc::new(json))
    }

    /// The value of int2, int4, int8, date or oid as a wide integer; None for the rest.
    pub fn to_i64(&self) -> Option<i64> {
        Some(match self {
            Datum::Int2(v) => i64::from(*v),
            Datum::Int4(v) => i64::from(*v),
            Datum::Int8(v) => *v,
            Datum::Oid(v) => i64::from(*v),
            _ => return None,
        })
    }

    /// Bytes held beyond the 24 of the value itself (for accounting).
    pub fn heap_bytes(&self) -> usize {
        match self {
            Datum::Text(s) | Datum::Bpchar(s) if s.len() > 15 => s.len() + 16,
            Datum::Bytea(b) => b.len() + 16,
            Datum::Numeric(n) => n.heap_bytes(),
            Datum::Interval(_) | Datum::Uuid(_) => 32,
            Datum::Array(a) => {
                64 + a.items.iter().map(|d| size_of::<Datum>() + d.heap_bytes()).sum::<usize>()
            }
            Datum::Record(r) => {
                40 + r.fields.iter().map(|d| size_of::<Datum>() + d.heap_bytes()).sum::<usize>()
            }
            Datum::Bits(b) => b.bytes.len() + 48,
            Datum::Jsonb(j) => 40 + j.heap_bytes(),
            Datum::Jsonpath(p) => p.text().len() * 8,
            Datum::Range(r) => 80 + r.heap_bytes(),
            Datum::Multirange(m) => {
                48 + m.ranges.iter().map(|r| 72 + r.heap_bytes()).sum::<usize>()
            }
            Datum::Open(v) => 16 + v.0.heap_bytes(),
            _ => 0,
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn mismatch(&self, wanted: &str) -> ! {
        panic!("datum is {self:?}, wanted {wanted}")
    }
}

impl From<bool> for Datum {
    fn from(v: bool) -> Datum {
        Datum::Bool(v)
    }
}
impl From<i16> for Datum {
    fn from(v: i16) -> Datum {
        Datum::Int2(v)
    }
}
impl From<i32> for Datum {
    fn from(v: i32) -> Datum {
        Datum::Int4(v)
    }
}
impl From<i64> for Datum {
    fn from(v: i64) -> Datum {
        Datum::Int8(v)
    }
}
impl From<f32> for Datum {
    fn from(v: f32) -> Datum {
        Datum::Float4(v)
    }
}
impl From<f64> for Datum {
    fn from(v: f64) -> Datum {
        Datum::Float8(v)
    }
}
impl From<&str> for Datum {
    fn from(v: &str) -> Datum {
        Datum::text(v)
    }
}
impl From<String> for Datum {
    fn from(v: String) -> Datum {
        Datum::Text(Text::from(v))
    }
}
impl From<Text> for Datum {
    fn from(v: Text) -> Datum {
        Datum::Text(v)
    }
}
impl From<Numeric> for Datum {
    fn from(v: Numeric) -> Datum {
        Datum::Numeric(v)
    }
}
impl From<Oid> for Datum {
    fn from(v: Oid) -> Datum {
        Datum::Oid(v.0)
    }
}
impl<T: Into<Datum>> From<Option<T>> for Datum {
    fn from(v: Option<T>) -> Datum {
        v.map_or(Datum::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datum_is_24_bytes() {
        assert_eq!(size_of::<Datum>(), 24);
        assert_eq!(size_of::<Numeric>(), 16);
    }
}

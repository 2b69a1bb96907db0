//! One value.

use std::sync::Arc;

/// Text: 15 bytes in place, longer ones shared; 16 bytes wide.
pub type Text = ecow::EcoString;

/// A numeric value; representation is `types::numeric`'s business (helper: move it there).
#[derive(Clone, Debug, PartialEq)]
pub struct Numeric {}

/// A value of any type, NULL included. Its SQL type is known from the plan, not from the value:
/// text, varchar, bpchar and name are all `Text`; oid, regclass and kin are all `Oid`.
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
    /// int8.
    Int8(i64),
    /// float4.
    Float4(f32),
    /// float8.
    Float8(f64),
    /// numeric.
    Numeric(Arc<Numeric>),
    /// text, varchar, bpchar, name, unknown, json, cstring.
    Text(Text),
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
    /// An array; elements carry their own nulls.
    Array(Arc<Array>),
    /// A row value.
    Record(Arc<[Datum]>),
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
    pub element: base::Oid,
    /// (length, lower bound) of each dimension; none for an empty array.
    pub dims: Vec<(i32, i32)>,
    /// Elements, row-major.
    pub items: Vec<Datum>,
}

impl Datum {
    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }
}

//! One value, 24 bytes wide. The common types stand in place; long text, big numerics, arrays and
//! the like are shared by reference count, so that a copy never costs more than an addition.

use std::sync::Arc;

use base::Oid;

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
            Datum::Record(r) => r,
            other => other.mismatch("Record"),
        }
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
                16 + r.iter().map(|d| size_of::<Datum>() + d.heap_bytes()).sum::<usize>()
            }
            _ => 0,
        }
    }

    #[cold]
    #[inline(never)]
    fn mismatch(&self, wanted: &str) -> ! {
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

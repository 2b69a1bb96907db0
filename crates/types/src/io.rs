//! Text and binary input and output of values, and what is known about each built-in type.

use base::{Oid, Result};

use crate::datum::Datum;

/// The session's settings that input and output depend on, and the statement's clock.
#[derive(Clone, Debug)]
pub struct FormatContext {
    /// `DateStyle`'s output part: ISO, SQL, Postgres or German.
    pub date_style: DateStyle,
    /// `DateStyle`'s input order.
    pub date_order: DateOrder,
    /// `TimeZone`.
    pub time_zone: TimeZone,
    /// `extra_float_digits`.
    pub extra_float_digits: i32,
    /// `bytea_output = hex`.
    pub bytea_hex: bool,
    /// Start of the transaction, for `'now'` and `'today'`: microseconds since 2000-01-01 UTC.
    pub now: i64,
}

/// See [`FormatContext`]. A cheap handle; the zone rules are a library's (jiff).
#[derive(Clone, Debug, Default)]
pub struct TimeZone {}

/// See [`FormatContext`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DateStyle {
    /// 2026-11-21 20:00:00+00.
    #[default]
    Iso,
    /// 11/21/2026.
    Sql,
    /// Sat Nov 21 20:00:00 2026.
    Postgres,
    /// 21.11.2026.
    German,
}

/// See [`FormatContext`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DateOrder {
    /// Month first.
    #[default]
    Mdy,
    /// Day first.
    Dmy,
    /// Year first.
    Ymd,
}

/// What is known about a built-in type (a row of `pg_type`).
#[derive(Clone, Copy)]
pub struct TypeIo {
    /// Its oid.
    pub oid: Oid,
    /// Internal name (`int4`).
    pub name: &'static str,
    /// Name as `format_type` prints it (`integer`).
    pub sql_name: &'static str,
    /// The array type over it.
    pub array: Oid,
    /// Element type when it is an array.
    pub element: Oid,
    /// `typlen`: bytes, -1 variable, -2 cstring.
    pub len: i16,
    /// `typcategory`.
    pub category: u8,
    /// `typispreferred`.
    pub preferred: bool,
    /// Whether it passes by value in PostgreSQL (`typbyval`), for the catalog.
    pub by_value: bool,
    /// `typalign`.
    pub align: u8,
}

impl TypeIo {
    /// The type with this oid (arrays of built-in types included).
    pub fn get(_oid: Oid) -> Option<&'static TypeIo> {
        todo!()
    }
    /// By internal name.
    pub fn by_name(_name: &str) -> Option<&'static TypeIo> {
        todo!()
    }
    /// All.
    pub fn all() -> &'static [TypeIo] {
        todo!()
    }
}

/// Reads a value from text; `typmod` as in PostgreSQL (-1: none) is applied.
///
/// # Errors
/// `22P02` and kin, with PostgreSQL's wording.
pub fn input(_ty: Oid, _typmod: i32, _text: &str, _cx: &FormatContext) -> Result<Datum> {
    todo!()
}

/// Appends a non-NULL value's text.
pub fn output(_ty: Oid, _value: &Datum, _cx: &FormatContext, _out: &mut Vec<u8>) -> Result<()> {
    todo!()
}

/// Reads a value from its binary form.
///
/// # Errors
/// `22P03`.
pub fn receive(_ty: Oid, _typmod: i32, _bytes: &[u8], _cx: &FormatContext) -> Result<Datum> {
    todo!()
}

/// Appends a non-NULL value's binary form.
pub fn send(_ty: Oid, _value: &Datum, _out: &mut Vec<u8>) -> Result<()> {
    todo!()
}

/// Applies a length or precision to a value (`varchar(n)`, `numeric(p,s)`, …): the function behind
/// length-coercion casts. `explicit` truncates where PostgreSQL does.
pub fn apply_typmod(_ty: Oid, _typmod: i32, _value: Datum, _explicit: bool) -> Result<Datum> {
    todo!()
}

/// Name of a type with its typmod, as `format_type(oid, typmod)` prints it.
pub fn format_type(_ty: Oid, _typmod: i32) -> String {
    todo!()
}

/// SQL comparison of two non-NULL values of the same type (B-tree order).
pub fn compare(_a: &Datum, _b: &Datum) -> std::cmp::Ordering {
    todo!()
}

/// Hash consistent with [`compare`] (1 and 1.0 of different numeric scales hash alike).
pub fn hash(_value: &Datum, _state: &mut impl std::hash::Hasher) {
    todo!()
}

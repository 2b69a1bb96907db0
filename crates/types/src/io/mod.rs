//! Text and binary input and output of values, and what is known about each built-in type.
//!
//! One dispatch here; the forms of each family of types stand in their own files.

mod array;
mod binary;
mod bits;
mod bytes;
mod money;
mod network;
mod number;
mod record;
pub mod snapshot;
mod types;

use base::{Oid, Result, err};
use snapshot::XidSnapshot;

use crate::datetime;
use crate::datum::{Datum, Numeric, Text};
use crate::jsonb::Json;
use crate::jsonb::path::Path;
use crate::user::{self, UserKind, UserType};
use crate::{oids, open, range};

pub use crate::datetime::TimeZone;
pub use crate::order::{compare, hash};
pub use array::check_dimensions;
pub use binary::{receive, send};
pub(crate) use bytes::{parse_char, write_char};
pub use number::{parse_float8, parse_int2, parse_int4, parse_int8};
pub use types::{TypeIo, TypeRef, reads_immutably, writes_immutably};

/// The error of bytes that are not UTF-8 from an offset on.
pub fn invalid_utf8(bytes: &[u8], from: usize) -> base::Error {
    binary::bad_character(&bytes[from..bytes.len().min(from + 1)])
}

pub(crate) use network::{clear_host, host, widen, width};

pub(crate) use bytes::{parse_bytea, parse_escaped, parse_hex, write_hex};
pub(crate) use number::{write_float4, write_float8};

/// The session's settings that input and output depend on, and the statement's clock.
#[derive(Clone, Debug)]
pub struct FormatContext {
    /// `DateStyle`'s output part: ISO, SQL, Postgres or German.
    pub date_style: DateStyle,
    /// `DateStyle`'s input order.
    pub date_order: DateOrder,
    /// `IntervalStyle`.
    pub interval_style: IntervalStyle,
    /// `TimeZone`.
    pub time_zone: TimeZone,
    /// `extra_float_digits`.
    pub extra_float_digits: i32,
    /// `bytea_output = hex`.
    pub bytea_hex: bool,
    /// `default_text_search_config`.
    pub text_search_config: std::sync::Arc<str>,
    /// `client_encoding`, in which texts come and go; COPY's too, unless it has another.
    pub client_encoding: crate::encodings::Encoding,
    /// `isn.weak`.
    pub isn_weak: bool,
    /// Labels of enums are written as their ranks, which stay when a label is renamed.
    pub labels_by_rank: bool,
    /// Start of the transaction, for `'now'` and `'today'`: microseconds since 2000-01-01 UTC.
    pub now: i64,
}

impl Default for FormatContext {
    /// PostgreSQL's defaults, with UTC and a clock that stands at 2000-01-01.
    fn default() -> FormatContext {
        FormatContext {
            date_style: DateStyle::Iso,
            date_order: DateOrder::Mdy,
            interval_style: IntervalStyle::Postgres,
            time_zone: TimeZone::default(),
            extra_float_digits: 1,
            bytea_hex: true,
            text_search_config: "pg_catalog.english".into(),
            client_encoding: crate::encodings::Encoding::UTF8,
            isn_weak: false,
            labels_by_rank: false,
            now: 0,
        }
    }
}

impl FormatContext {
    /// For texts that are kept: every session reads them as the same values, whatever its settings and whatever labels
    /// are renamed.
    pub fn stored(&self) -> FormatContext {
        FormatContext {
            time_zone: self.time_zone.clone(),
            labels_by_rank: true,
            now: self.now,
            ..FormatContext::default()
        }
    }
}

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

/// See [`FormatContext`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum IntervalStyle {
    /// 1 year 2 mons 3 days 04:05:06.
    #[default]
    Postgres,
    /// @ 1 year 2 mons 3 days 4 hours 5 mins 6 secs.
    PostgresVerbose,
    /// +1-2 +3 +4:05:06.
    SqlStandard,
    /// P1Y2M3DT4H5M6S.
    Iso8601,
}

/// Longest name, in bytes (`NAMEDATALEN - 1`).
pub const NAME_MAX_BYTES: usize = 63;

#[cold]
pub(crate) fn invalid_syntax(kind: &str, text: &str) -> base::Error {
    err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type {kind}: \"{text}\"")
}

/// Blanks that number and boolean input ignores around the value.
pub(crate) fn trim_blanks(text: &str) -> &str {
    text.trim_matches(|c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c'))
}

/// Reads a plain number of some digits for an integer type: what most parameters are. None: it must be
/// read as text ([`input`]), which also finds what is wrong with it.
#[inline]
pub fn input_digits(ty: Oid, bytes: &[u8]) -> Option<Datum> {
    if !matches!(ty, oids::INT4 | oids::INT8) {
        return None;
    }
    let (negative, digits) = match bytes.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, bytes),
    };
    // Nine digits fit both types.
    if digits.is_empty() || digits.len() > 9 {
        return None;
    }
    let mut value = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i32::from(digit);
    }
    let value = if negative { -value } else { value };
    Some(if ty == oids::INT4 { Datum::Int4(value) } else { Datum::Int8(value.into()) })
}

/// Reads a value from text; `typmod` as in PostgreSQL (-1: none) is applied.
///
/// # Errors
/// `22P02` and kin, with PostgreSQL's wording.
pub fn input(ty: Oid, typmod: i32, text: &str, cx: &FormatContext) -> Result<Datum> {
    Ok(match ty {
        oids::TEXT | oids::UNKNOWN | oids::CSTRING | oids::ACLITEM | oids::PG_NODE_TREE => {
            Datum::text(text)
        }
        oids::VARCHAR => return limit_varchar(typmod, Text::from(text), false),
        oids::BPCHAR => return limit_bpchar(typmod, Text::from(text), false),
        oids::NAME => Datum::text(cut_name(text)),
        oids::BOOL => Datum::Bool(parse_bool(text)?),
        oids::INT2 => Datum::Int2(parse_int2(text)?),
        oids::INT4 => Datum::Int4(parse_int4(text)?),
        oids::INT8 => Datum::Int8(parse_int8(text)?),
        oids::FLOAT4 => Datum::Float4(number::parse_float4(text)?),
        oids::FLOAT8 => Datum::Float8(parse_float8(text)?),
        oids::NUMERIC => Datum::Numeric(Numeric::parse(text)?.apply_typmod(typmod)?),
        oids::CHAR => Datum::Char(bytes::parse_char(text)),
        oids::BYTEA => Datum::Bytea(parse_bytea(text)?.into()),
        oids::OID => Datum::Oid(number::parse_oid("oid", text)?),
        oids::XID => Datum::Oid(number::parse_xid(text) as u32),
        oids::CID => Datum::Oid(number::parse_oid("cid", text)?),
        oids::XID8 => Datum::Int8(number::parse_xid(text) as i64),
        oids::PG_LSN => Datum::Int8(number::parse_lsn(text)?),
        oids::TID => Datum::Tid(number::parse_tid(text)?),
        oids::UUID => Datum::Uuid(bytes::parse_uuid(text)?.into()),
        oids::JSON => {
            crate::json::check(text)?;
            Datum::text(text)
        }
        oids::DATE => Datum::Date(datetime::parse_date(text, cx)?),
        oids::TIME => Datum::Time(datetime::round_time(datetime::parse_time(text, cx)?, typmod)),
        oids::TIMESTAMP => Datum::Timestamp(datetime::round_timestamp(
            datetime::parse_timestamp(text, cx)?,
            typmod,
        )),
        oids::TIMESTAMPTZ => Datum::Timestamptz(datetime::round_timestamp(
            datetime::parse_timestamptz(text, cx)?,
            typmod,
        )),
        oids::INTERVAL => Datum::Interval(datetime::parse_interval(text, typmod, cx)?.into()),
        oids::VOID => Datum::text(""),
        oids::JSONB => Datum::jsonb(Json::parse(text)?),
        oids::JSONPATH => Datum::Jsonpath(Path::parse(text)?.into()),
        oids::TIMETZ => {
            let (micros, west) = datetime::parse_timetz(text, cx)?;
            Datum::Timetz(datetime::round_time(micros, typmod), west)
        }
        oids::BIT | oids::VARBIT => {
            let bits = bits::parse(text)?;
            let fitted = bits::fit(ty, typmod, &bits, false)?;
            Datum::Bits(fitted.unwrap_or(bits).into())
        }
        oids::INET | oids::CIDR => Datum::Inet(network::parse_inet(text, ty == oids::CIDR)?),
        oids::MACADDR => Datum::Macaddr(network::parse_macaddr(text)?),
        oids::MACADDR8 => Datum::Macaddr8(network::parse_macaddr8(text)?),
        oids::MONEY => Datum::Money(money::parse(text)?),
        oids::REFCURSOR => Datum::text(text),
        oids::PG_SNAPSHOT | oids::TXID_SNAPSHOT => Datum::from(XidSnapshot::parse(text)?.text()),
        oids::RECORD => {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "input of anonymous composite types is not implemented"
            ));
        }
        _ if range::subtype(ty).is_some() => range::parse(ty, typmod, text, cx)?.into(),
        _ if range::range_of(ty).is_some() => range::parse_multirange(ty, typmod, text, cx)?.into(),
        oids::INT2VECTOR => array::parse_vector(oids::INT2, text)?,
        oids::OIDVECTOR => array::parse_vector(oids::OID, text)?,
        _ if is_reg(ty) => Datum::Oid(number::parse_reg(ty, text)?),
        _ if open::built_in(ty).is_some() => return open_type(ty)?.input(ty, typmod, text, cx),
        _ => match TypeIo::get(ty) {
            Some(t) if t.element != Oid::INVALID => array::parse(t.element, typmod, text, cx)?,
            Some(TypeRef::User(user)) => return user_input(&user, typmod, text, cx),
            Some(t) if t.category == b'P' => {
                return Err(err!(
                    FEATURE_NOT_SUPPORTED,
                    "cannot accept a value of type {}",
                    t.sql_name
                ));
            }
            _ => return Err(base::Error::unsupported(format!("input of type {ty}"))),
        },
    })
}

/// The maker of values of a type that is defined elsewhere.
fn open_type(ty: Oid) -> Result<&'static dyn open::OpenType> {
    open::get(ty).ok_or_else(|| base::Error::internal(format!("type {ty} is not known here")))
}

fn user_input(ty: &UserType, typmod: i32, text: &str, cx: &FormatContext) -> Result<Datum> {
    match &ty.kind {
        UserKind::Enum(labels) => user::enum_input(ty, labels, text),
        UserKind::Domain { base, typmod: inner } => {
            input(*base, if typmod < 0 { *inner } else { typmod }, text, cx)
        }
        UserKind::Composite { shape, typmods, .. } => record::parse(shape, typmods, text, cx),
        UserKind::Base { form } => input(*form, typmod, text, cx),
        UserKind::Shell => {
            Err(err!(FEATURE_NOT_SUPPORTED, "cannot accept a value of a shell type"))
        }
        UserKind::Array | UserKind::Range { .. } | UserKind::Multirange { .. } => {
            Err(base::Error::internal("a type of another family"))
        }
        UserKind::Open(class) => class.0.input(ty.io.oid, typmod, text, cx),
    }
}

/// Appends a non-NULL value's text.
pub fn output(ty: Oid, value: &Datum, cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
    let ty = match value {
        // Their text hangs on the type, which may be a domain.
        Datum::Int8(_) | Datum::Oid(_) | Datum::Array(_) if user::is_user(ty) => {
            user::base_type(ty, -1).0
        }
        _ => ty,
    };
    match value {
        Datum::Null => return Err(base::Error::internal("NULL has no text form")),
        Datum::Bool(b) => out.push(if *b { b't' } else { b'f' }),
        Datum::Int2(v) => write_int(i64::from(*v), out),
        Datum::Int4(v) => write_int(i64::from(*v), out),
        Datum::Int8(v) => match ty {
            oids::XID8 => write_unsigned(*v as u64, out),
            oids::PG_LSN => {
                let text = format!("{:X}/{:X}", *v as u64 >> 32, *v as u32);
                out.extend_from_slice(text.as_bytes());
            }
            _ => write_int(*v, out),
        },
        Datum::Float4(v) => write_float4(*v, cx.extra_float_digits, out),
        Datum::Float8(v) => write_float8(*v, cx.extra_float_digits, out),
        Datum::Numeric(n) => n.write(out),
        Datum::Text(s) | Datum::Bpchar(s) => put_bytes(s.as_bytes(), out)?,
        Datum::Bytea(b) => {
            crate::bulk::ask(2 * b.len())?;
            bytes::write_bytea(b, cx.bytea_hex, out);
        }
        Datum::Char(c) => bytes::write_char(*c, out),
        Datum::Date(d) => datetime::write_date(*d, cx, out),
        Datum::Time(t) => datetime::write_time(*t, out),
        Datum::Timestamp(t) => datetime::write_timestamp(*t, cx, out),
        Datum::Timestamptz(t) => datetime::write_timestamptz(*t, cx, out),
        Datum::Interval(i) => datetime::write_interval(i, cx.interval_style, out),
        Datum::Oid(0) if is_reg(ty) => out.push(b'-'),
        Datum::Oid(v) if is_reg(ty) => match user::object_name(ty, *v) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => write_unsigned(u64::from(*v), out),
        },
        Datum::Oid(v) => write_unsigned(u64::from(*v), out),
        Datum::Tid(t) => out.extend_from_slice(t.to_string().as_bytes()),
        Datum::Uuid(u) => bytes::write_uuid(u, out),
        Datum::Array(a) if ty == oids::INT2VECTOR || ty == oids::OIDVECTOR => {
            array::write_vector(a, cx, out)?;
        }
        Datum::Array(a) => array::write(a, cx, out)?,
        Datum::Record(record) => array::write_record(record, cx, out)?,
        Datum::Timetz(t, west) => datetime::write_timetz(*t, *west, out),
        Datum::Money(v) => money::write(*v, out),
        Datum::Inet(i) => network::write_inet(i, out),
        Datum::Macaddr(m) => network::write_mac(m, out),
        Datum::Macaddr8(m) => network::write_mac(m, out),
        Datum::Bits(b) => bits::write(b, out),
        Datum::Jsonb(j) => j.write(out)?,
        Datum::Jsonpath(p) => out.extend_from_slice(p.text().as_bytes()),
        Datum::Range(r) => r.write(cx, out)?,
        Datum::Multirange(m) => m.write(cx, out)?,
        Datum::Enum(_, rank) if cx.labels_by_rank => user::write_rank(*rank, out),
        Datum::Enum(ty, rank) => out.extend_from_slice(user::enum_text(*ty, *rank)?.as_bytes()),
        Datum::Open(v) => v.0.write(cx, out)?,
    }
    Ok(())
}

/// Appends bytes; of many, asks for the memory.
#[inline]
fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if bytes.len() > crate::bulk::PIECE_BYTES {
        return crate::bulk::push_bytes(out, bytes);
    }
    out.extend_from_slice(bytes);
    Ok(())
}

/// The text of a value; convenience over [`output`].
///
/// # Errors
/// As [`output`].
pub fn to_text(ty: Oid, value: &Datum, cx: &FormatContext) -> Result<Text> {
    if let Datum::Text(s) | Datum::Bpchar(s) = value {
        return Ok(s.clone());
    }
    let mut out = Vec::new();
    output(ty, value, cx, &mut out)?;
    crate::bulk::text(out)
}

/// The type that a value has when nothing else is known (fields of anonymous rows).
pub fn natural_type(value: &Datum) -> Oid {
    match value {
        Datum::Null | Datum::Text(_) => oids::TEXT,
        Datum::Bool(_) => oids::BOOL,
        Datum::Int2(_) => oids::INT2,
        Datum::Int4(_) => oids::INT4,
        Datum::Int8(_) => oids::INT8,
        Datum::Float4(_) => oids::FLOAT4,
        Datum::Float8(_) => oids::FLOAT8,
        Datum::Numeric(_) => oids::NUMERIC,
        Datum::Bpchar(_) => oids::BPCHAR,
        Datum::Bytea(_) => oids::BYTEA,
        Datum::Char(_) => oids::CHAR,
        Datum::Date(_) => oids::DATE,
        Datum::Time(_) => oids::TIME,
        Datum::Timestamp(_) => oids::TIMESTAMP,
        Datum::Timestamptz(_) => oids::TIMESTAMPTZ,
        Datum::Interval(_) => oids::INTERVAL,
        Datum::Oid(_) => oids::OID,
        Datum::Tid(_) => oids::TID,
        Datum::Uuid(_) => oids::UUID,
        Datum::Array(a) => TypeIo::get(a.element).map_or(oids::ANYARRAY, |t| t.array),
        Datum::Record(r) => r.shape.ty,
        Datum::Timetz(..) => oids::TIMETZ,
        Datum::Money(_) => oids::MONEY,
        Datum::Inet(i) if i.cidr => oids::CIDR,
        Datum::Inet(_) => oids::INET,
        Datum::Macaddr(_) => oids::MACADDR,
        Datum::Macaddr8(_) => oids::MACADDR8,
        Datum::Bits(_) => oids::VARBIT,
        Datum::Jsonb(_) => oids::JSONB,
        Datum::Jsonpath(_) => oids::JSONPATH,
        Datum::Range(r) => r.ty,
        Datum::Multirange(m) => m.ty,
        Datum::Enum(ty, _) => *ty,
        Datum::Open(v) => v.0.ty(),
    }
}

/// Whether values of the type have the text of [`natural_type`]: not `regclass` and kin, which are
/// oids by their form, nor others whose form another type has.
pub fn shows_by_form(ty: Oid) -> bool {
    !is_reg(ty) && !matches!(ty, oids::XID8 | oids::PG_LSN | oids::INT2VECTOR | oids::OIDVECTOR)
}

/// Whether the type is one of `regclass` and kin.
pub fn is_reg(ty: Oid) -> bool {
    matches!(
        ty,
        oids::REGCLASS
            | oids::REGTYPE
            | oids::REGPROC
            | oids::REGPROCEDURE
            | oids::REGOPER
            | oids::REGOPERATOR
            | oids::REGNAMESPACE
            | oids::REGROLE
            | oids::REGCOLLATION
            | oids::REGCONFIG
            | oids::REGDICTIONARY
    )
}

pub(crate) fn write_int(v: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(v).as_bytes());
}

pub(crate) fn write_unsigned(v: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(v).as_bytes());
}

/// Reads a boolean: any unambiguous beginning of true, false, yes, no, on, off; 1 or 0.
///
/// # Errors
/// `22P02`.
pub fn parse_bool(text: &str) -> Result<bool> {
    let word = trim_blanks(text).to_ascii_lowercase();
    let begins = |full: &str, least: usize| word.len() >= least && full.starts_with(&word);
    if word == "1" || begins("true", 1) || begins("yes", 1) || begins("on", 2) {
        Ok(true)
    } else if word == "0" || begins("false", 1) || begins("no", 1) || begins("off", 2) {
        Ok(false)
    } else {
        Err(invalid_syntax("boolean", text))
    }
}

/// A name's first 63 bytes, whole characters only.
pub fn cut_name(text: &str) -> &str {
    if text.len() <= NAME_MAX_BYTES {
        return text;
    }
    let mut end = NAME_MAX_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Byte position after `n` characters, if the text has more than that.
fn after_chars(text: &str, n: usize) -> Option<usize> {
    if text.len() <= n {
        return None;
    }
    text.char_indices().nth(n).map(|(at, _)| at)
}

/// Cuts text to the typmod's length: allowed where blanks are lost, or when `explicit`.
fn limit_chars(typmod: i32, text: Text, explicit: bool, kind: &str) -> Result<Text> {
    let limit = (typmod - 4) as usize;
    match after_chars(&text, limit) {
        None => Ok(text),
        Some(at) if explicit || text[at..].bytes().all(|b| b == b' ') => {
            Ok(Text::from(&text[..at]))
        }
        Some(_) => {
            Err(err!(STRING_DATA_RIGHT_TRUNCATION, "value too long for type {kind}({limit})"))
        }
    }
}

fn limit_varchar(typmod: i32, text: Text, explicit: bool) -> Result<Datum> {
    if typmod < 4 {
        return Ok(Datum::Text(text));
    }
    limit_chars(typmod, text, explicit, "character varying").map(Datum::Text)
}

fn limit_bpchar(typmod: i32, text: Text, explicit: bool) -> Result<Datum> {
    if typmod < 4 {
        return Ok(Datum::Bpchar(text));
    }
    let mut text = limit_chars(typmod, text, explicit, "character")?;
    let chars = if text.is_ascii() { text.len() } else { text.chars().count() };
    let missing = (typmod - 4) as usize - chars;
    if missing > 0 {
        text.push_str(&" ".repeat(missing));
    }
    Ok(Datum::Bpchar(text))
}

/// Applies a length or precision to a value (`varchar(n)`, `numeric(p,s)`, …): the function behind
/// length-coercion casts. `explicit` truncates where PostgreSQL does.
pub fn apply_typmod(ty: Oid, typmod: i32, value: Datum, explicit: bool) -> Result<Datum> {
    if typmod < 0 || value.is_null() {
        return Ok(match (ty, value) {
            (oids::BPCHAR, Datum::Text(s)) => Datum::Bpchar(s),
            (_, value) => value,
        });
    }
    Ok(match (ty, value) {
        (oids::VARCHAR, Datum::Text(s) | Datum::Bpchar(s)) => {
            return limit_varchar(typmod, s, explicit);
        }
        (oids::BPCHAR, Datum::Text(s) | Datum::Bpchar(s)) => {
            return limit_bpchar(typmod, s, explicit);
        }
        (oids::NUMERIC, Datum::Numeric(n)) => Datum::Numeric(n.apply_typmod(typmod)?),
        (_, value @ Datum::Open(_)) => return open_type(ty)?.fit(ty, typmod, value, explicit),
        (_, Datum::Time(t)) => Datum::Time(datetime::round_time(t, typmod)),
        (_, Datum::Timetz(t, west)) => Datum::Timetz(datetime::round_time(t, typmod), west),
        (oids::BIT | oids::VARBIT, Datum::Bits(b)) => match bits::fit(ty, typmod, &b, explicit)? {
            Some(fitted) => Datum::Bits(fitted.into()),
            None => Datum::Bits(b),
        },
        (_, Datum::Timestamp(t)) => Datum::Timestamp(datetime::round_timestamp(t, typmod)),
        (_, Datum::Timestamptz(t)) => Datum::Timestamptz(datetime::round_timestamp(t, typmod)),
        (_, Datum::Interval(i)) => Datum::Interval(datetime::fit_interval(*i, typmod)?.into()),
        (_, Datum::Array(a)) => {
            let mut a = std::sync::Arc::unwrap_or_clone(a);
            for item in &mut a.items {
                *item = apply_typmod(a.element, typmod, std::mem::take(item), explicit)?;
            }
            Datum::Array(a.into())
        }
        (_, value) => value,
    })
}

/// Name of a type with its typmod, as `format_type(oid, typmod)` prints it.
pub fn format_type(ty: Oid, typmod: i32) -> String {
    if ty == Oid::INVALID {
        return "-".to_owned();
    }
    let Some(t) = TypeIo::get(ty) else {
        // One that the catalog knows, although its values are not here.
        return user::name(ty).unwrap_or_else(|| "???".to_owned());
    };
    if let TypeRef::User(user) = &t
        && !matches!(user.kind, UserKind::Array)
    {
        let name = user::name(ty).unwrap_or_else(|| t.sql_name.to_string());
        return match &user.kind {
            UserKind::Open(class) if typmod >= 0 => name + &class.0.typmod_text(typmod),
            _ => name,
        };
    }
    if t.element != Oid::INVALID && ty != oids::INT2VECTOR && ty != oids::OIDVECTOR {
        return format!("{}[]", format_type(t.element, typmod));
    }
    if user::quotes_all() && t.name == t.sql_name && !is_keyword(ty) {
        return crate::func::quote_ident(&t.name);
    }
    if typmod < 0 {
        return t.sql_name.to_string();
    }
    match ty {
        oids::VARCHAR | oids::BPCHAR if typmod >= 4 => format!("{}({})", t.sql_name, typmod - 4),
        oids::NUMERIC => match crate::numeric::unpack_typmod(typmod) {
            Some((p, s)) => format!("numeric({p},{s})"),
            None => "numeric".to_owned(),
        },
        oids::BIT | oids::VARBIT => format!("{}({typmod})", t.sql_name),
        oids::TIME | oids::TIMETZ | oids::TIMESTAMP | oids::TIMESTAMPTZ => {
            let (base, zone) = t.sql_name.split_once(' ').unwrap_or((&t.sql_name, ""));
            format!("{base}({typmod}) {zone}")
        }
        oids::INTERVAL => datetime::interval_typmod_name(typmod),
        oids::BPCHAR => "bpchar".to_owned(),
        _ => t.sql_name.to_string(),
    }
}

/// Types whose name is a word of SQL and that have no other.
fn is_keyword(ty: Oid) -> bool {
    matches!(ty, oids::NUMERIC | oids::INTERVAL | oids::BIT)
}

#[cfg(test)]
mod tests;

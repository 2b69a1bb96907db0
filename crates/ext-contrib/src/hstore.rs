//! hstore: sets of keys with texts or NULLs.
//!
//! ```text
//!   text     "a"=>"1", "b"=>NULL
//!   stored   count, then per pair: length of the key, key, length of the value (-1: NULL), value; big-endian
//!            (that is the binary form, too)
//! ```
//!
//! Pairs are in order of the keys' lengths, then of the keys.

use std::any::Any;
use std::cmp::Ordering;
use std::sync::Arc;

use base::ternary::{Mode, Ternary};
use base::{Oid, Result, err};
use types::bulk::Pace;
use types::datum::Array;
use types::extension::Library;
use types::func::Body;
use types::gin::{GinClass, GinQuery, QueryKey};
use types::oids::{JSONB, TEXT};
use types::open::{OpenType, OpenValue};
use types::{Datum, FormatContext};

use crate::common::{Bodies, KeyType, Signatures};

/// The extension's code.
pub static LIBRARY: Library = Library {
    name: "hstore",
    bodies,
    types: &[("hstore_in", &HstoreType), ("ghstore_in", &KeyType)],
    gin: &[("gin_extract_hstore", |_| Arc::new(HstoreOps))],
    gist: &[("ghstore_consistent", |_| Arc::new(Signatures(Arc::new(HstoreOps))))],
    silent: &["hstore_in", "hstore_out", "hstore_recv", "ghstore_in", "ghstore_out"],
    ..Library::EMPTY
};

type Pair = (String, Option<String>);

#[derive(Debug)]
struct Hstore {
    ty: Oid,
    pairs: Vec<Pair>,
}

fn key_order(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

impl Hstore {
    /// Of several pairs with one key the first stays.
    fn new(ty: Oid, mut pairs: Vec<Pair>) -> Datum {
        pairs.sort_by(sched::unhurried(|a: &Pair, b: &Pair| key_order(&a.0, &b.0)));
        pairs.dedup_by(|later, first| later.0 == first.0);
        Datum::open(Hstore { ty, pairs })
    }

    fn find(&self, key: &str) -> Option<&Pair> {
        let at = self.pairs.binary_search_by(|p| key_order(&p.0, key)).ok()?;
        self.pairs.get(at)
    }

    fn contains(&self, other: &Hstore) -> bool {
        other.pairs.iter().all(|p| self.find(&p.0).is_some_and(|own| own.1 == p.1))
    }
}

fn quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

impl OpenValue for Hstore {
    fn ty(&self) -> Oid {
        self.ty
    }

    fn write(&self, _cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
        let mut pace = Pace::default();
        for (n, (key, value)) in self.pairs.iter().enumerate() {
            pace.step()?;
            if n > 0 {
                out.extend_from_slice(b", ");
            }
            quoted(key, out);
            out.extend_from_slice(b"=>");
            match value {
                Some(value) => quoted(value, out),
                None => out.extend_from_slice(b"NULL"),
            }
        }
        Ok(())
    }

    fn send(&self, out: &mut Vec<u8>) -> Result<()> {
        self.store(out);
        Ok(())
    }

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.pairs.len() as i32).to_be_bytes());
        for (n, (key, value)) in self.pairs.iter().enumerate() {
            if n & 0xff == 0xff {
                sched::give_way();
            }
            out.extend_from_slice(&(key.len() as i32).to_be_bytes());
            out.extend_from_slice(key.as_bytes());
            match value {
                Some(value) => {
                    out.extend_from_slice(&(value.len() as i32).to_be_bytes());
                    out.extend_from_slice(value.as_bytes());
                }
                None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
            }
        }
    }

    fn heap_bytes(&self) -> usize {
        let pair = |(key, value): &Pair| key.len() + value.as_ref().map_or(0, String::len) + 48;
        self.pairs.iter().map(pair).sum::<usize>() + 48
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Reads the text form.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    pace: Pace,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn blanks(&mut self) {
        while let Some(c) = self.peek().filter(|c| c.is_ascii_whitespace()) {
            self.at += c.len_utf8();
        }
    }

    fn wrong(&self) -> base::Error {
        let Some(c) = self.peek() else {
            return err!(SYNTAX_ERROR, "syntax error in hstore: unexpected end of string");
        };
        err!(SYNTAX_ERROR, "syntax error in hstore, near \"{c}\" at position {}", self.at)
    }

    /// A key or value, and whether it was in quotes. `is_key`: an arrow ends it.
    fn word(&mut self, is_key: bool) -> Result<(String, bool)> {
        self.blanks();
        let mut out = String::new();
        let is_quoted = self.peek() == Some('"');
        if is_quoted {
            self.at += 1;
        }
        let start = self.at;
        loop {
            self.pace.step()?;
            let Some(c) = self.peek() else {
                if is_quoted || self.at == start {
                    return Err(self.wrong());
                }
                break;
            };
            if is_quoted && c == '"' {
                self.at += 1;
                break;
            }
            if !is_quoted {
                let arrow = is_key && c == '=';
                if c.is_ascii_whitespace() || c == ',' && !is_key || arrow {
                    if self.at == start {
                        return Err(self.wrong());
                    }
                    break;
                }
            }
            self.at += c.len_utf8();
            if c == '\\' {
                let Some(next) = self.peek() else { return Err(self.wrong()) };
                out.push(next);
                self.at += next.len_utf8();
            } else {
                out.push(c);
            }
        }
        Ok((out, is_quoted))
    }

    fn pairs(&mut self) -> Result<Vec<Pair>> {
        let mut out = Vec::new();
        self.blanks();
        if self.peek().is_none() {
            return Ok(out);
        }
        loop {
            let key = self.word(true)?.0;
            self.blanks();
            for wanted in ['=', '>'] {
                if self.peek() != Some(wanted) {
                    return Err(self.wrong());
                }
                self.at += 1;
            }
            let (value, is_quoted) = self.word(false)?;
            let null = !is_quoted && value.eq_ignore_ascii_case("null");
            out.push((key, (!null).then_some(value)));
            self.blanks();
            match self.peek() {
                None => return Ok(out),
                Some(',') => self.at += 1,
                Some(_) => return Err(self.wrong()),
            }
        }
    }
}

struct HstoreType;

impl OpenType for HstoreType {
    fn input(&self, ty: Oid, _typmod: i32, text: &str, _cx: &FormatContext) -> Result<Datum> {
        Ok(Hstore::new(ty, Reader { text, at: 0, pace: Pace::default() }.pairs()?))
    }

    fn receive(&self, ty: Oid, _typmod: i32, bytes: &[u8], _cx: &FormatContext) -> Result<Datum> {
        let wrong = || err!(INVALID_BINARY_REPRESENTATION, "invalid hstore in message");
        self.load(ty, bytes).ok_or_else(wrong)
    }

    fn load(&self, ty: Oid, bytes: &[u8]) -> Option<Datum> {
        let mut rest = bytes;
        let number = |rest: &mut &[u8]| {
            let (head, tail) = rest.split_first_chunk::<4>()?;
            *rest = tail;
            Some(i32::from_be_bytes(*head))
        };
        let text = |rest: &mut &[u8], len: i32| {
            let (head, tail) = rest.split_at_checked(usize::try_from(len).ok()?)?;
            *rest = tail;
            Some(std::str::from_utf8(head).ok()?.to_owned())
        };
        let count = number(&mut rest)?;
        let mut pairs = Vec::new();
        for _ in 0..count {
            let len = number(&mut rest)?;
            let key = text(&mut rest, len)?;
            let len = number(&mut rest)?;
            pairs.push((key, if len < 0 { None } else { Some(text(&mut rest, len)?) }));
        }
        rest.is_empty().then(|| Hstore::new(ty, pairs))
    }
}

fn own(value: &Datum) -> &Hstore {
    value.as_open()
}

fn text(value: Option<&str>) -> Datum {
    value.map_or(Datum::Null, Datum::text)
}

fn item(value: &Datum) -> Option<String> {
    (!value.is_null()).then(|| value.as_str().to_owned())
}

/// The texts of an array that are not NULL.
fn keys(array: &Datum) -> Vec<String> {
    array.as_array().items.iter().filter_map(item).collect()
}

fn null_key() -> base::Error {
    err!(NULL_VALUE_NOT_ALLOWED, "null value not allowed for hstore key")
}

/// The pairs of an array of keys and values in turn, or of rows of two.
fn of_array(array: &Array, ty: Oid) -> Result<Datum> {
    match &array.dims[..] {
        [] => return Ok(Hstore::new(ty, Vec::new())),
        [(len, _)] if len % 2 == 0 => {}
        [_] => base::bail!(ARRAY_SUBSCRIPT_ERROR, "array must have even number of elements"),
        [_, (2, _)] => {}
        [_, _] => base::bail!(ARRAY_SUBSCRIPT_ERROR, "array must have two columns"),
        _ => base::bail!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts"),
    }
    let pair = |two: &[Datum]| Ok((item(&two[0]).ok_or_else(null_key)?, item(&two[1])));
    Ok(Hstore::new(ty, array.items.chunks_exact(2).map(pair).collect::<Result<_>>()?))
}

fn of_arrays(args: &[Datum], ty: Oid) -> Result<Datum> {
    if args[0].is_null() {
        return Ok(Datum::Null);
    }
    let names = args[0].as_array();
    let values = (!args[1].is_null()).then(|| args[1].as_array());
    if names.dims.len() > 1 || values.is_some_and(|v| v.dims.len() > 1) {
        base::bail!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts");
    }
    if values.is_some_and(|v| v.items.len() != names.items.len()) {
        base::bail!(ARRAY_SUBSCRIPT_ERROR, "arrays must have same bounds");
    }
    let value = |n: usize| values.and_then(|v| item(&v.items[n]));
    let pair = |(n, name): (usize, &Datum)| Ok((item(name).ok_or_else(null_key)?, value(n)));
    Ok(Hstore::new(ty, names.items.iter().enumerate().map(pair).collect::<Result<_>>()?))
}

/// The columns of a row, or of its type when it is NULL.
fn columns(row: &Datum, ty: Oid) -> Result<Arc<types::datum::Shape>> {
    let own = match row {
        Datum::Record(record) => Some(record.shape.clone()),
        _ => None,
    };
    types::user::shape(ty)
        .or(own)
        .ok_or_else(|| err!(DATATYPE_MISMATCH, "could not determine the row type of the argument"))
}

fn of_record(row: &Datum, ty: Oid, result: Oid, cx: &FormatContext) -> Result<Datum> {
    let shape = columns(row, ty)?;
    let mut pairs = Vec::with_capacity(shape.columns.len());
    for (n, (name, ty)) in shape.columns.iter().enumerate() {
        let value = match row {
            Datum::Record(record) => record.fields.get(n).unwrap_or(&Datum::Null),
            _ => &Datum::Null,
        };
        let mut text = Vec::new();
        if !value.is_null() {
            types::io::output(*ty, value, cx, &mut text)?;
        }
        let text = (!value.is_null()).then(|| String::from_utf8_lossy(&text).into_owned());
        pairs.push((name.as_str().to_owned(), text));
    }
    Ok(Hstore::new(result, pairs))
}

/// A row with the values that a set has for its columns.
fn populated(row: &Datum, ty: Oid, set: &Datum, cx: &FormatContext) -> Result<Datum> {
    if set.is_null() {
        return Ok(row.clone());
    }
    let set = own(set);
    if row.is_null() && set.pairs.is_empty() && types::user::shape(ty).is_none() {
        return Ok(Datum::Null);
    }
    if !row.is_null() && set.pairs.is_empty() {
        return Ok(row.clone());
    }
    if types::user::has_domains(ty) {
        return Err(base::Error::unsupported("populate_record of a row with values of domains"));
    }
    let shape = columns(row, ty)?;
    let typmods = match types::user::get(ty).map(|user| user.kind.clone()) {
        Some(types::user::UserKind::Composite { typmods, .. }) => typmods,
        _ => Vec::new(),
    };
    let mut fields = Vec::with_capacity(shape.columns.len());
    for (n, (name, ty)) in shape.columns.iter().enumerate() {
        let before = match row {
            Datum::Record(record) => record.fields.get(n).cloned().unwrap_or_default(),
            _ => Datum::Null,
        };
        let typmod = typmods.get(n).copied().unwrap_or(-1);
        fields.push(match set.find(name.as_str()) {
            None => before,
            Some((_, None)) => Datum::Null,
            Some((_, Some(text))) => types::io::input(*ty, typmod, text, cx)?,
        });
    }
    Ok(Datum::record(shape, fields))
}

/// All pairs but some.
fn without(value: &Hstore, gone: impl Fn(&Pair) -> bool) -> Datum {
    Hstore::new(value.ty, value.pairs.iter().filter(|p| !gone(p)).cloned().collect())
}

fn concat(a: &Hstore, b: &Hstore) -> Datum {
    Hstore::new(a.ty, b.pairs.iter().chain(&a.pairs).cloned().collect())
}

fn flat(value: &Hstore) -> Vec<Datum> {
    let pair = |(key, value): &Pair| [Datum::text(key), text(value.as_deref())];
    value.pairs.iter().flat_map(pair).collect()
}

fn matrix(value: &Hstore) -> Datum {
    let rows = value.pairs.len() as i32;
    let dims = if rows == 0 { Vec::new() } else { vec![(rows, 1), (2, 1)] };
    Datum::Array(Arc::new(Array { element: TEXT, dims, items: flat(value) }))
}

/// Whether JSON takes a text for a number as it stands.
fn is_number(text: &str) -> bool {
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let exponent_fits = exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)));
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let whole_fits = digits(whole) && (whole == "0" || !whole.starts_with('0'));
    whole_fits && fraction.is_none_or(digits) && exponent_fits
}

fn json_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// `loose`: numbers and truth values as such.
fn json(value: &Hstore, loose: bool) -> String {
    let mut out = String::from("{");
    for (n, (key, value)) in value.pairs.iter().enumerate() {
        if n > 0 {
            out.push_str(", ");
        }
        json_text(key, &mut out);
        out.push_str(": ");
        match value.as_deref() {
            None => out.push_str("null"),
            Some("t") if loose => out.push_str("true"),
            Some("f") if loose => out.push_str("false"),
            Some(text) if loose && is_number(text) => out.push_str(text),
            Some(text) => json_text(text, &mut out),
        }
    }
    out.push('}');
    out
}

fn jsonb(value: &Datum, loose: bool, cx: &FormatContext) -> Result<Datum> {
    types::io::input(JSONB, -1, &json(own(value), loose), cx)
}

fn hash32(value: &Datum) -> u32 {
    let mut bytes = Vec::new();
    own(value).store(&mut bytes);
    bytes.iter().fold(0x811c_9dc5, |h, b| (h ^ u32::from(*b)).wrapping_mul(0x0100_0193))
}

/// PostgreSQL's order: it has no meaning, but empty ones come first.
fn order(args: &[Datum]) -> Ordering {
    own(&args[0]).compare(own(&args[1]))
}

macro_rules! comparisons { ($($name:literal $test:ident)*) => {
    [$(($name, Body::Scalar(|args, _| Ok(Datum::Bool(order(args).$test()))))),*]
} }

fn array(items: impl Iterator<Item = Datum>) -> Datum {
    Datum::array(TEXT, items.collect())
}

fn bodies() -> Bodies {
    let mut out: Bodies = vec![
        ("hstore_version_diag", Body::Scalar(|_, _| Ok(Datum::Int4(2)))),
        (
            "hstore_send",
            Body::Scalar(|a, _| {
                let mut bytes = Vec::new();
                own(&a[0]).store(&mut bytes);
                Ok(Datum::bytea(&bytes))
            }),
        ),
        (
            "hstore_fetchval",
            Body::Scalar(|a, _| {
                Ok(text(own(&a[0]).find(a[1].as_str()).and_then(|p| p.1.as_deref())))
            }),
        ),
        (
            "hstore_slice_to_array",
            Body::Scalar(|a, _| {
                let of = own(&a[0]);
                let one = |key: &Datum| match key.is_null() {
                    true => Datum::Null,
                    false => text(of.find(key.as_str()).and_then(|p| p.1.as_deref())),
                };
                let wanted = a[1].as_array();
                let (dims, items) = (wanted.dims.clone(), wanted.items.iter().map(one).collect());
                Ok(Datum::Array(Arc::new(Array { element: TEXT, dims, items })))
            }),
        ),
        (
            "hstore_slice_to_hstore",
            Body::Scalar(|a, _| {
                let wanted = keys(&a[1]);
                Ok(without(own(&a[0]), |p| !wanted.contains(&p.0)))
            }),
        ),
        (
            "hstore_exists",
            Body::Scalar(|a, _| Ok(Datum::Bool(own(&a[0]).find(a[1].as_str()).is_some()))),
        ),
        (
            "hstore_exists_any",
            Body::Scalar(|a, _| {
                Ok(Datum::Bool(keys(&a[1]).iter().any(|k| own(&a[0]).find(k).is_some())))
            }),
        ),
        (
            "hstore_exists_all",
            Body::Scalar(|a, _| {
                Ok(Datum::Bool(keys(&a[1]).iter().all(|k| own(&a[0]).find(k).is_some())))
            }),
        ),
        (
            "hstore_defined",
            Body::Scalar(|a, _| {
                let found = own(&a[0]).find(a[1].as_str());
                Ok(Datum::Bool(found.is_some_and(|p| p.1.is_some())))
            }),
        ),
        ("hstore_delete", Body::Scalar(|a, _| Ok(without(own(&a[0]), |p| p.0 == a[1].as_str())))),
        (
            "hstore_delete_array",
            Body::Scalar(|a, _| {
                let gone = keys(&a[1]);
                Ok(without(own(&a[0]), |p| gone.contains(&p.0)))
            }),
        ),
        (
            "hstore_delete_hstore",
            Body::Scalar(|a, _| {
                let gone = own(&a[1]);
                Ok(without(own(&a[0]), |p| gone.find(&p.0).is_some_and(|g| g.1 == p.1)))
            }),
        ),
        ("hstore_concat", Body::Scalar(|a, _| Ok(concat(own(&a[0]), own(&a[1]))))),
        ("hstore_contains", Body::Scalar(|a, _| Ok(Datum::Bool(own(&a[0]).contains(own(&a[1])))))),
        ("hstore_contained", Body::Scalar(|a, _| Ok(Datum::Bool(own(&a[1]).contains(own(&a[0])))))),
        (
            "hstore_from_text",
            Body::Typed(|a, types, _| match item(&a[0]) {
                Some(key) => Ok(Hstore::new(types.result, vec![(key, item(&a[1]))])),
                None => Ok(Datum::Null),
            }),
        ),
        ("hstore_from_arrays", Body::Typed(|a, types, _| of_arrays(a, types.result))),
        ("hstore_from_array", Body::Typed(|a, types, _| of_array(a[0].as_array(), types.result))),
        (
            "hstore_from_record",
            Body::Typed(|a, types, cx| {
                let ty = types.args.first().copied().unwrap_or(Oid::INVALID);
                of_record(&a[0], ty, types.result, cx)
            }),
        ),
        (
            "hstore_populate_record",
            Body::Typed(|a, types, cx| {
                let ty = types.args.first().copied().unwrap_or(Oid::INVALID);
                populated(&a[0], ty, &a[1], cx)
            }),
        ),
        ("hstore_to_json", Body::Scalar(|a, _| Ok(Datum::text(&json(own(&a[0]), false))))),
        ("hstore_to_json_loose", Body::Scalar(|a, _| Ok(Datum::text(&json(own(&a[0]), true))))),
        ("hstore_to_jsonb", Body::Scalar(|a, cx| jsonb(&a[0], false, cx))),
        ("hstore_to_jsonb_loose", Body::Scalar(|a, cx| jsonb(&a[0], true, cx))),
        ("hstore_to_array", Body::Scalar(|a, _| Ok(array(flat(own(&a[0])).into_iter())))),
        ("hstore_to_matrix", Body::Scalar(|a, _| Ok(matrix(own(&a[0]))))),
        (
            "hstore_akeys",
            Body::Scalar(|a, _| Ok(array(own(&a[0]).pairs.iter().map(|p| Datum::text(&p.0))))),
        ),
        (
            "hstore_avals",
            Body::Scalar(|a, _| Ok(array(own(&a[0]).pairs.iter().map(|p| text(p.1.as_deref()))))),
        ),
        (
            "hstore_skeys",
            Body::Set(|a, _| Ok(own(&a[0]).pairs.iter().map(|p| Datum::text(&p.0)).collect())),
        ),
        (
            "hstore_svals",
            Body::Set(|a, _| Ok(own(&a[0]).pairs.iter().map(|p| text(p.1.as_deref())).collect())),
        ),
        (
            "hstore_each",
            Body::Set(|a, _| {
                let columns = vec![("key".into(), TEXT), ("value".into(), TEXT)];
                let shape = Arc::new(types::datum::Shape { ty: types::oids::RECORD, columns });
                let row = |p: &Pair| {
                    let fields = vec![Datum::text(&p.0), text(p.1.as_deref())];
                    Datum::record(shape.clone(), fields)
                };
                Ok(own(&a[0]).pairs.iter().map(row).collect())
            }),
        ),
        ("hstore_cmp", Body::Scalar(|a, _| Ok(Datum::Int4(order(a) as i32)))),
        ("hstore_hash", Body::Scalar(|a, _| Ok(Datum::Int4(hash32(&a[0]) as i32)))),
        (
            "hstore_hash_extended",
            Body::Scalar(|a, _| {
                let seed = a[1].to_i64().unwrap_or_default();
                Ok(Datum::Int8(i64::from(hash32(&a[0])) ^ seed))
            }),
        ),
    ];
    out.extend(comparisons! {
        "hstore_eq" is_eq "hstore_ne" is_ne "hstore_lt" is_lt
        "hstore_le" is_le "hstore_gt" is_gt "hstore_ge" is_ge
    });
    out
}

/// `gin_hstore_ops`: keys, and values with their kind in front. Which value belongs to which key must be asked again.
struct HstoreOps;

fn entry(kind: u8, text: &str) -> Vec<u8> {
    [&[kind], text.as_bytes()].concat()
}

fn value_entry(value: Option<&str>) -> Vec<u8> {
    value.map_or_else(|| vec![b'N'], |v| entry(b'V', v))
}

impl GinClass for HstoreOps {
    fn value_keys(&self, value: &Datum, keys: &mut Vec<Option<Vec<u8>>>) -> Result<()> {
        for (key, value) in &own(value).pairs {
            keys.push(Some(entry(b'K', key)));
            keys.push(Some(value_entry(value.as_deref())));
        }
        Ok(())
    }

    fn query(&self, strategy: u16, value: &Datum) -> Result<GinQuery> {
        // 7 @>, 9 ?, 10 ?|, 11 ?&
        let mut wanted: Vec<Vec<u8>> = match strategy {
            7 => own(value)
                .pairs
                .iter()
                .flat_map(|(k, v)| [entry(b'K', k), value_entry(v.as_deref())])
                .collect(),
            9 => vec![entry(b'K', value.as_str())],
            _ => keys(value).iter().map(|k| entry(b'K', k)).collect(),
        };
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.is_empty() {
            return Ok(if strategy == 10 { GinQuery::nothing() } else { GinQuery::everything() });
        }
        let check: base::ternary::Check = match strategy {
            10 => Arc::new(|p: &[Ternary]| p.iter().copied().max().unwrap_or(Ternary::False)),
            7 => Arc::new(|p: &[Ternary]| {
                p.iter().copied().min().unwrap_or(Ternary::False).min(Ternary::Maybe)
            }),
            _ => Arc::new(|p: &[Ternary]| p.iter().copied().min().unwrap_or(Ternary::False)),
        };
        let keys = wanted.into_iter().map(QueryKey::Key).collect();
        Ok(GinQuery { keys, mode: Mode::Default, check })
    }
}

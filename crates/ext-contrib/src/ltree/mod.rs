//! ltree: paths of labels (`Top.Science.Astronomy`), patterns and text queries over them.
//!
//! ```text
//!   stored    the text
//!   key       labels with a byte of 1 between them: ancestors stand before their descendants, with nothing between
//! ```

mod index;
mod lquery;
mod ltxtquery;

use std::any::Any;
use std::cmp::Ordering;
use std::sync::Arc;

use base::{Oid, Result, bail, err};
use types::extension::Library;
use types::func::Body;
use types::open::{OpenType, OpenValue};
use types::{Datum, FormatContext};

use crate::common::{Bodies, KeyType, Signatures};
use lquery::{LQuery, LQueryType};
use ltxtquery::{LTxtQuery, LTxtQueryType};

/// The extension's code.
pub static LIBRARY: Library = Library {
    name: "ltree",
    bodies,
    types: &[
        ("ltree_in", &LtreeType),
        ("lquery_in", &LQueryType),
        ("ltxtq_in", &LTxtQueryType),
        ("ltree_gist_in", &KeyType),
    ],
    gist: &[
        ("ltree_consistent", |_| Arc::new(index::PathOps)),
        ("_ltree_consistent", |_| Arc::new(Signatures(Arc::new(index::PathsOps)))),
    ],
    silent: &[
        "ltree_in",
        "ltree_out",
        "ltree_recv",
        "lquery_in",
        "lquery_out",
        "lquery_recv",
        "ltxtq_in",
        "ltxtq_out",
        "ltxtq_recv",
        "ltree_gist_in",
        "ltree_gist_out",
        "ltreeparentsel",
    ],
    ..Library::EMPTY
};

/// Letters of a label, at most.
const LETTERS_MAX: usize = 255;
/// Labels of a path, at most.
const LABELS_MAX: usize = 65_535;

/// Whether a label may have this letter.
fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A path.
#[derive(Clone, Debug)]
struct Ltree {
    ty: Oid,
    labels: Vec<Box<str>>,
}

impl Ltree {
    fn text(&self) -> String {
        self.labels.join(".")
    }

    fn datum(self) -> Datum {
        Datum::open(self)
    }

    fn of(&self, labels: &[Box<str>]) -> Ltree {
        Ltree { ty: self.ty, labels: labels.to_vec() }
    }

    /// Whether this path is the other one or lies above it.
    fn covers(&self, other: &Ltree) -> bool {
        other.labels.starts_with(&self.labels)
    }

    fn parse(ty: Oid, text: &str) -> Result<Ltree> {
        let mut labels: Vec<Box<str>> = Vec::new();
        if text.is_empty() {
            return Ok(Ltree { ty, labels });
        }
        let mut label = String::new();
        let mut letters = 0;
        let mut at = 0;
        let too_long = |letters: usize, at: usize| {
            err!(NAME_TOO_LONG, "label string is too long").detail(format!(
                "Label length is {letters}, must be at most {LETTERS_MAX}, at character {at}."
            ))
        };
        for c in text.chars() {
            at += 1;
            if is_letter(c) {
                label.push(c);
                letters += 1;
            } else if c == '.' && letters > 0 {
                if letters > LETTERS_MAX {
                    return Err(too_long(letters, at));
                }
                labels.push(std::mem::take(&mut label).into());
                letters = 0;
            } else {
                return Err(syntax("ltree", at));
            }
        }
        if letters == 0 {
            return Err(unexpected_end("ltree"));
        }
        if letters > LETTERS_MAX {
            return Err(too_long(letters, at + 1));
        }
        labels.push(label.into());
        if labels.len() > LABELS_MAX {
            return Err(err!(
                PROGRAM_LIMIT_EXCEEDED,
                "number of ltree labels ({}) exceeds the maximum allowed ({LABELS_MAX})",
                labels.len()
            ));
        }
        Ok(Ltree { ty, labels })
    }
}

fn syntax(kind: &str, at: usize) -> base::Error {
    err!(SYNTAX_ERROR, "{kind} syntax error at character {at}")
}

fn unexpected_end(kind: &str) -> base::Error {
    err!(SYNTAX_ERROR, "{kind} syntax error").detail("Unexpected end of input.")
}

/// The version byte and the text of a binary value.
fn received<'a>(kind: &str, bytes: &'a [u8]) -> Result<&'a str> {
    let (version, text) =
        bytes.split_first().ok_or_else(|| err!(PROTOCOL_VIOLATION, "no data left in message"))?;
    if *version != 1 {
        return Err(base::Error::internal(format!("unsupported {kind} version number {version}")));
    }
    std::str::from_utf8(text).map_err(|e| types::io::invalid_utf8(text, e.valid_up_to()))
}

fn sent(text: &str) -> Datum {
    Datum::bytea(&[&[1], text.as_bytes()].concat())
}

impl OpenValue for Ltree {
    fn ty(&self) -> Oid {
        self.ty
    }

    fn write(&self, _cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(self.text().as_bytes());
        Ok(())
    }

    fn send(&self, out: &mut Vec<u8>) -> Result<()> {
        out.push(1);
        out.extend_from_slice(self.text().as_bytes());
        Ok(())
    }

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.text().as_bytes());
    }

    fn key(&self, out: &mut Vec<u8>) {
        for (n, label) in self.labels.iter().enumerate() {
            if n > 0 {
                out.push(1);
            }
            out.extend_from_slice(label.as_bytes());
        }
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Ltree>() + self.labels.iter().map(|l| l.len() + 16).sum::<usize>()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct LtreeType;

impl OpenType for LtreeType {
    fn input(&self, ty: Oid, _typmod: i32, text: &str, _cx: &FormatContext) -> Result<Datum> {
        Ltree::parse(ty, text).map(Ltree::datum)
    }

    fn receive(&self, ty: Oid, _typmod: i32, bytes: &[u8], _cx: &FormatContext) -> Result<Datum> {
        Ltree::parse(ty, received("ltree", bytes)?).map(Ltree::datum)
    }

    fn load(&self, ty: Oid, bytes: &[u8]) -> Option<Datum> {
        Ltree::parse(ty, std::str::from_utf8(bytes).ok()?).ok().map(Ltree::datum)
    }
}

fn own(value: &Datum) -> &Ltree {
    value.as_open()
}

/// The paths of an array.
fn paths(value: &Datum) -> Result<Vec<&Ltree>> {
    let array = value.as_array();
    if array.dims.len() > 1 {
        bail!(ARRAY_SUBSCRIPT_ERROR, "array must be one-dimensional");
    }
    if array.items.iter().any(Datum::is_null) {
        bail!(NULL_VALUE_NOT_ALLOWED, "array must not contain nulls");
    }
    Ok(array.items.iter().map(own).collect())
}

/// How two paths compare: label by label, an ancestor before its descendants.
fn compared(a: &Ltree, b: &Ltree) -> Ordering {
    a.labels.cmp(&b.labels)
}

fn number(value: &Datum) -> i64 {
    value.to_i64().unwrap_or_default()
}

fn part(path: &Ltree, start: i64, end: i64) -> Result<Datum> {
    let count = path.labels.len() as i64;
    if start < 0 || end < 0 || start >= count || start > end {
        bail!(INVALID_PARAMETER_VALUE, "invalid positions");
    }
    Ok(path.of(&path.labels[start as usize..end.min(count) as usize]).datum())
}

fn subpath(args: &[Datum]) -> Result<Datum> {
    let path = own(&args[0]);
    let count = path.labels.len() as i64;
    let mut start = number(&args[1]);
    for _ in 0..2 {
        if start < 0 {
            start += count;
        }
    }
    let end = match args.get(2).map(number) {
        None => i64::from(u16::MAX),
        Some(len) if len < 0 => count + len,
        Some(len) => start + len,
    };
    part(path, start, end)
}

fn index_of(args: &[Datum]) -> Datum {
    let (path, wanted) = (own(&args[0]), own(&args[1]));
    let count = path.labels.len() as i64;
    let start = match args.get(2).map(number).unwrap_or_default() {
        start if start < 0 => (count + start).max(0),
        start => start,
    };
    let len = wanted.labels.len() as i64;
    let none = Datum::Int4(-1);
    if len == 0 || count == 0 || count - start < len {
        return none;
    }
    let mut windows = path.labels.windows(len as usize).enumerate().skip(start as usize);
    windows.find(|(_, w)| *w == &wanted.labels[..]).map_or(none, |(n, _)| Datum::Int4(n as i32))
}

/// The longest path above all of these.
fn common_ancestor(paths: &[&Ltree]) -> Datum {
    let Some((first, rest)) = paths.split_first() else { return Datum::Null };
    if paths.iter().any(|p| p.labels.is_empty()) {
        return Datum::Null;
    }
    let mut len = first.labels.len() - 1;
    for path in rest {
        let same = first.labels.iter().zip(&path.labels).take_while(|(a, b)| a == b).count();
        len = len.min(same).min(path.labels.len() - 1);
    }
    first.of(&first.labels[..len]).datum()
}

fn joined(a: &Ltree, b: &Ltree) -> Result<Datum> {
    let labels = [&a.labels[..], &b.labels[..]].concat();
    if labels.len() > LABELS_MAX {
        return Err(err!(
            PROGRAM_LIMIT_EXCEEDED,
            "number of ltree labels ({}) exceeds the maximum allowed ({LABELS_MAX})",
            labels.len()
        ));
    }
    Ok(Ltree { ty: a.ty, labels }.datum())
}

/// A condition between a path and something else.
type Test = fn(&Ltree, &Datum) -> Result<bool>;

fn is_above(path: &Ltree, other: &Datum) -> Result<bool> {
    Ok(path.covers(own(other)))
}

fn is_below(path: &Ltree, other: &Datum) -> Result<bool> {
    Ok(own(other).covers(path))
}

fn fits_pattern(path: &Ltree, pattern: &Datum) -> Result<bool> {
    pattern.as_open::<LQuery>().matches(path)
}

fn fits_any(path: &Ltree, patterns: &Datum) -> Result<bool> {
    let array = patterns.as_array();
    if array.dims.len() > 1 {
        bail!(ARRAY_SUBSCRIPT_ERROR, "array must be one-dimensional");
    }
    if array.items.iter().any(Datum::is_null) {
        bail!(NULL_VALUE_NOT_ALLOWED, "array must not contain nulls");
    }
    for pattern in &array.items {
        if fits_pattern(path, pattern)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn fits_query(path: &Ltree, query: &Datum) -> Result<bool> {
    Ok(query.as_open::<LTxtQuery>().matches(path))
}

fn test(path: &Datum, other: &Datum, test: Test) -> Result<Datum> {
    test(own(path), other).map(Datum::Bool)
}

fn first(array: &Datum, other: &Datum, test: Test) -> Result<Option<Datum>> {
    for path in paths(array)? {
        if test(path, other)? {
            return Ok(Some(path.clone().datum()));
        }
    }
    Ok(None)
}

fn any(array: &Datum, other: &Datum, test: Test) -> Result<Datum> {
    Ok(Datum::Bool(first(array, other, test)?.is_some()))
}

fn extract(array: &Datum, other: &Datum, test: Test) -> Result<Datum> {
    Ok(first(array, other, test)?.unwrap_or_default())
}

macro_rules! calls { ($($name:literal $how:ident $a:literal $b:literal $test:ident)*) => {
    [$(($name, Body::Scalar(|args, _| $how(&args[$a], &args[$b], $test)))),*]
} }

macro_rules! comparisons { ($($name:literal $test:ident)*) => {
    [$(($name, Body::Scalar(|args, _| {
        Ok(Datum::Bool(compared(own(&args[0]), own(&args[1])).$test()))
    }))),*]
} }

fn bodies() -> Bodies {
    let mut out: Bodies = vec![
        (
            "ltree_cmp",
            Body::Scalar(|a, _| Ok(Datum::Int4(compared(own(&a[0]), own(&a[1])) as i32))),
        ),
        ("ltree_send", Body::Scalar(|a, _| Ok(sent(&own(&a[0]).text())))),
        ("lquery_send", Body::Scalar(|a, _| Ok(sent(&a[0].as_open::<LQuery>().text())))),
        ("ltxtq_send", Body::Scalar(|a, _| Ok(sent(&a[0].as_open::<LTxtQuery>().text())))),
        ("subltree", Body::Scalar(|a, _| part(own(&a[0]), number(&a[1]), number(&a[2])))),
        ("subpath", Body::Scalar(|a, _| subpath(a))),
        ("ltree_index", Body::Scalar(|a, _| Ok(index_of(a)))),
        ("nlevel", Body::Scalar(|a, _| Ok(Datum::Int4(own(&a[0]).labels.len() as i32)))),
        ("ltree2text", Body::Scalar(|a, _| Ok(Datum::text(&own(&a[0]).text())))),
        (
            "text2ltree",
            Body::Typed(|a, types, _| Ok(Ltree::parse(types.result, a[0].as_str())?.datum())),
        ),
        ("_lca", Body::Scalar(|a, _| Ok(common_ancestor(&paths(&a[0])?)))),
        ("lca", Body::Scalar(|a, _| Ok(common_ancestor(&a.iter().map(own).collect::<Vec<_>>())))),
        ("ltree_addltree", Body::Scalar(|a, _| joined(own(&a[0]), own(&a[1])))),
        (
            "ltree_addtext",
            Body::Scalar(|a, _| joined(own(&a[0]), &Ltree::parse(own(&a[0]).ty, a[1].as_str())?)),
        ),
        (
            "ltree_textadd",
            Body::Scalar(|a, _| joined(&Ltree::parse(own(&a[1]).ty, a[0].as_str())?, own(&a[1]))),
        ),
    ];
    out.extend(comparisons! {
        "ltree_eq" is_eq "ltree_ne" is_ne "ltree_lt" is_lt
        "ltree_le" is_le "ltree_gt" is_gt "ltree_ge" is_ge
    });
    out.extend(calls! {
        "ltree_isparent" test 0 1 is_above "ltree_risparent" test 0 1 is_below
        "ltq_regex" test 0 1 fits_pattern "ltq_rregex" test 1 0 fits_pattern
        "lt_q_regex" test 0 1 fits_any "lt_q_rregex" test 1 0 fits_any
        "ltxtq_exec" test 0 1 fits_query "ltxtq_rexec" test 1 0 fits_query
        "_ltree_isparent" any 0 1 is_above "_ltree_r_isparent" any 1 0 is_above
        "_ltree_risparent" any 0 1 is_below "_ltree_r_risparent" any 1 0 is_below
        "_ltq_regex" any 0 1 fits_pattern "_ltq_rregex" any 1 0 fits_pattern
        "_lt_q_regex" any 0 1 fits_any "_lt_q_rregex" any 1 0 fits_any
        "_ltxtq_exec" any 0 1 fits_query "_ltxtq_rexec" any 1 0 fits_query
        "_ltree_extract_isparent" extract 0 1 is_above
        "_ltree_extract_risparent" extract 0 1 is_below
        "_ltq_extract_regex" extract 0 1 fits_pattern
        "_ltxtq_extract_exec" extract 0 1 fits_query
    });
    out
}

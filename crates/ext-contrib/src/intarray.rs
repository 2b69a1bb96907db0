//! intarray: arrays of integers as sets, and queries over them (`1 & ( 2 | !3 )`).
//!
//! A query is kept as it is computed: operands before their operator.

use std::any::Any;
use std::sync::Arc;

use base::ternary::{Mode, Ternary};
use base::{Oid, Result, bail, err};
use types::datum::Array;
use types::extension::Library;
use types::func::Body;
use types::gin::{GinClass, GinQuery, QueryKey};
use types::oids::INT4;
use types::open::{OpenType, OpenValue};
use types::{Datum, FormatContext};

use crate::common::{Bodies, Signatures};

/// The extension's code.
pub static LIBRARY: Library = Library {
    name: "intarray",
    bodies,
    types: &[("bqarr_in", &QueryType), ("_intbig_in", &BigKey)],
    gin: &[("ginint4_queryextract", |_| Arc::new(IntOps))],
    gist: &[
        ("g_int_consistent", |_| Arc::new(Signatures(Arc::new(IntOps)))),
        ("g_intbig_consistent", |_| Arc::new(Signatures(Arc::new(IntOps)))),
    ],
    vectors: &[],
    silent: &[
        "bqarr_in",
        "bqarr_out",
        "_intbig_in",
        "_intbig_out",
        "_int_matchsel",
        "_int_contains_sel",
        "_int_contained_sel",
        "_int_overlap_sel",
        "_int_contains_joinsel",
        "_int_contained_joinsel",
        "_int_overlap_joinsel",
    ],
};

struct BigKey;

impl OpenType for BigKey {
    fn input(&self, _ty: Oid, _typmod: i32, _text: &str, _cx: &FormatContext) -> Result<Datum> {
        Err(err!(FEATURE_NOT_SUPPORTED, "_intbig_in() not implemented"))
    }

    fn load(&self, _ty: Oid, _bytes: &[u8]) -> Option<Datum> {
        None
    }
}

/// A step of a query.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Value(i32),
    Not,
    And,
    Or,
}

#[derive(Clone, Debug)]
struct Query {
    ty: Oid,
    steps: Vec<Step>,
}

/// How a written operand must be put into another one.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Value,
    Not,
    And,
    Or,
}

impl Query {
    /// Whether the query holds; `has` says it of its values, by their number among the values.
    fn holds(&self, has: &dyn Fn(usize, i32) -> Ternary) -> Ternary {
        let mut stack = Vec::new();
        let mut number = 0;
        for step in &self.steps {
            match step {
                Step::Value(value) => {
                    stack.push(has(number, *value));
                    number += 1;
                }
                Step::Not => {
                    let of = stack.pop().unwrap_or(Ternary::Maybe);
                    stack.push(match of {
                        Ternary::False => Ternary::True,
                        Ternary::Maybe => Ternary::Maybe,
                        Ternary::True => Ternary::False,
                    });
                }
                Step::And | Step::Or => {
                    let b = stack.pop().unwrap_or(Ternary::Maybe);
                    let a = stack.pop().unwrap_or(Ternary::Maybe);
                    stack.push(if *step == Step::And { a.min(b) } else { a.max(b) });
                }
            }
        }
        stack.pop().unwrap_or(Ternary::Maybe)
    }

    fn text(&self) -> String {
        let mut stack: Vec<(String, Form)> = Vec::new();
        for step in &self.steps {
            let next = match step {
                Step::Value(value) => (value.to_string(), Form::Value),
                Step::Not => match stack.pop() {
                    Some((text, Form::Value)) => (format!("!{text}"), Form::Not),
                    Some((text, _)) => (format!("!( {text} )"), Form::Not),
                    None => continue,
                },
                Step::And | Step::Or => {
                    let (Some(b), Some(a)) = (stack.pop(), stack.pop()) else { continue };
                    let inside = |(text, form): (String, Form)| match form {
                        Form::Or => format!("( {text} )"),
                        _ => text,
                    };
                    let (sign, form) = match step {
                        Step::And => ('&', Form::And),
                        _ => ('|', Form::Or),
                    };
                    (format!("{} {sign} {}", inside(a), inside(b)), form)
                }
            };
            stack.push(next);
        }
        stack.pop().map(|(text, _)| text).unwrap_or_default()
    }
}

impl OpenValue for Query {
    fn ty(&self) -> Oid {
        self.ty
    }

    fn write(&self, _cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(self.text().as_bytes());
        Ok(())
    }

    fn store(&self, out: &mut Vec<u8>) {
        for step in &self.steps {
            match step {
                Step::Value(value) => {
                    out.push(b'v');
                    out.extend_from_slice(&value.to_le_bytes());
                }
                Step::Not => out.push(b'!'),
                Step::And => out.push(b'&'),
                Step::Or => out.push(b'|'),
            }
        }
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Query>() + self.steps.len() * size_of::<Step>()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct QueryType;

fn wrong() -> base::Error {
    err!(SYNTAX_ERROR, "syntax error")
}

/// Makes steps of a text: values at once, operators when what binds less comes (E. Dijkstra's shunting yard).
fn parse(text: &str) -> Result<Vec<Step>> {
    let mut out = Vec::new();
    // Operators, and None for an open parenthesis.
    let mut waiting: Vec<Option<Step>> = Vec::new();
    let mut wants_value = true;
    let mut rest = text.trim_start_matches(' ');
    let binds = |step: Step| match step {
        Step::Or => 1,
        Step::And => 2,
        _ => 3,
    };
    while let Some(first) = rest.chars().next() {
        let mut used = first.len_utf8();
        match (first, wants_value) {
            ('!', true) => waiting.push(Some(Step::Not)),
            ('(', true) => waiting.push(None),
            ('-' | '0'..='9', true) => {
                let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
                used += digits;
                out.push(Step::Value(rest[..used].parse().map_err(|_| wrong())?));
                wants_value = false;
            }
            ('&' | '|', false) => {
                let own = if first == '&' { Step::And } else { Step::Or };
                while let Some(Some(step)) = waiting.last().copied() {
                    if binds(step) < binds(own) {
                        break;
                    }
                    out.push(step);
                    waiting.pop();
                }
                waiting.push(Some(own));
                wants_value = true;
            }
            (')', false) => loop {
                match waiting.pop().ok_or_else(wrong)? {
                    Some(step) => out.push(step),
                    None => break,
                }
            },
            _ => return Err(wrong()),
        }
        rest = rest[used..].trim_start_matches(' ');
    }
    if wants_value {
        return Err(wrong());
    }
    while let Some(step) = waiting.pop() {
        out.push(step.ok_or_else(wrong)?);
    }
    Ok(out)
}

impl OpenType for QueryType {
    fn input(&self, ty: Oid, _typmod: i32, text: &str, _cx: &FormatContext) -> Result<Datum> {
        Ok(Datum::open(Query { ty, steps: parse(text)? }))
    }

    fn load(&self, ty: Oid, bytes: &[u8]) -> Option<Datum> {
        let mut steps = Vec::new();
        let mut rest = bytes;
        while let Some((first, tail)) = rest.split_first() {
            rest = tail;
            steps.push(match first {
                b'v' => {
                    let (value, tail) = rest.split_first_chunk::<4>()?;
                    rest = tail;
                    Step::Value(i32::from_le_bytes(*value))
                }
                b'!' => Step::Not,
                b'&' => Step::And,
                b'|' => Step::Or,
                _ => return None,
            });
        }
        Some(Datum::open(Query { ty, steps }))
    }
}

/// The integers of an array.
fn items(value: &Datum) -> Result<Vec<i32>> {
    let one = |item: &Datum| match item {
        Datum::Int4(n) => Ok(*n),
        _ => Err(err!(NULL_VALUE_NOT_ALLOWED, "array must not contain nulls")),
    };
    value.as_array().items.iter().map(one).collect()
}

/// The different ones, sorted.
fn set(value: &Datum) -> Result<Vec<i32>> {
    let mut out = items(value)?;
    out.sort_unstable();
    out.dedup();
    Ok(out)
}

fn array(items: Vec<i32>) -> Datum {
    Datum::array(INT4, items.into_iter().map(Datum::Int4).collect())
}

fn integer(value: &Datum) -> i32 {
    value.to_i64().unwrap_or_default() as i32
}

fn sorted(args: &[Datum], ascending: bool) -> Result<Datum> {
    let mut list = items(&args[0])?;
    list.sort_unstable();
    if !ascending {
        list.reverse();
    }
    Ok(shaped(&args[0], list))
}

/// Items in an array of another one's form.
fn shaped(like: &Datum, items: Vec<i32>) -> Datum {
    let dims = like.as_array().dims.clone();
    let items = items.into_iter().map(Datum::Int4).collect();
    Datum::Array(Arc::new(Array { element: INT4, dims, items }))
}

fn sort(args: &[Datum]) -> Result<Datum> {
    let word = args.get(1).map(|w| w.as_str().to_ascii_lowercase());
    if args[0].as_array().items.len() < 2 {
        items(&args[0])?;
        return Ok(args[0].clone());
    }
    match word.as_deref() {
        None | Some("asc") => sorted(args, true),
        Some("desc") => sorted(args, false),
        _ => bail!(INVALID_PARAMETER_VALUE, "second parameter must be \"ASC\" or \"DESC\""),
    }
}

fn subarray(args: &[Datum]) -> Result<Datum> {
    let list = items(&args[0])?;
    let count = list.len() as i64;
    let start = i64::from(integer(&args[1]));
    let len = args.get(2).map_or(0, |n| i64::from(integer(n)));
    let start = match start {
        1.. => start - 1,
        0 => 0,
        _ => count + start,
    };
    let end = match len {
        0 => count,
        1.. => start + len,
        _ => count + len,
    };
    let (start, end) = (start.max(0), end.min(count));
    if start >= end {
        return Ok(array(Vec::new()));
    }
    Ok(array(list[start as usize..end as usize].to_vec()))
}

fn matches(array: &Datum, query: &Datum) -> Result<Datum> {
    let own = set(array)?;
    let query: &Query = query.as_open();
    let has = |_, value| match own.binary_search(&value) {
        Ok(_) => Ternary::True,
        Err(_) => Ternary::False,
    };
    Ok(Datum::Bool(query.holds(&has) == Ternary::True))
}

fn contains(a: &Datum, b: &Datum) -> Result<Datum> {
    let (a, b) = (set(a)?, set(b)?);
    Ok(Datum::Bool(b.iter().all(|n| a.binary_search(n).is_ok())))
}

fn same(args: &[Datum]) -> Result<bool> {
    let sorted = |value: &Datum| {
        items(value).map(|mut list| {
            list.sort_unstable();
            list
        })
    };
    Ok(sorted(&args[0])? == sorted(&args[1])?)
}

fn bodies() -> Bodies {
    vec![
        ("boolop", Body::Scalar(|a, _| matches(&a[0], &a[1]))),
        ("rboolop", Body::Scalar(|a, _| matches(&a[1], &a[0]))),
        (
            "querytree",
            Body::Scalar(|_, _| Err(base::Error::internal("querytree is no longer implemented"))),
        ),
        ("_int_contains", Body::Scalar(|a, _| contains(&a[0], &a[1]))),
        ("_int_contained", Body::Scalar(|a, _| contains(&a[1], &a[0]))),
        (
            "_int_overlap",
            Body::Scalar(|a, _| {
                let (a, b) = (set(&a[0])?, set(&a[1])?);
                Ok(Datum::Bool(b.iter().any(|n| a.binary_search(n).is_ok())))
            }),
        ),
        ("_int_same", Body::Scalar(|a, _| Ok(Datum::Bool(same(a)?)))),
        ("_int_different", Body::Scalar(|a, _| Ok(Datum::Bool(!same(a)?)))),
        (
            "_int_union",
            Body::Scalar(|a, _| {
                let mut all = [set(&a[0])?, set(&a[1])?].concat();
                all.sort_unstable();
                all.dedup();
                Ok(array(all))
            }),
        ),
        (
            "_int_inter",
            Body::Scalar(|a, _| {
                let (mut a, b) = (set(&a[0])?, set(&a[1])?);
                a.retain(|n| b.binary_search(n).is_ok());
                Ok(array(a))
            }),
        ),
        (
            "intset_subtract",
            Body::Scalar(|a, _| {
                let (mut a, b) = (set(&a[0])?, set(&a[1])?);
                a.retain(|n| b.binary_search(n).is_err());
                Ok(array(a))
            }),
        ),
        ("intset", Body::Scalar(|a, _| Ok(array(vec![integer(&a[0])])))),
        ("icount", Body::Scalar(|a, _| Ok(Datum::Int4(a[0].as_array().items.len() as i32)))),
        ("sort", Body::Scalar(|a, _| sort(a))),
        ("sort_asc", Body::Scalar(|a, _| sorted(a, true))),
        ("sort_desc", Body::Scalar(|a, _| sorted(a, false))),
        (
            "uniq",
            Body::Scalar(|a, _| {
                let mut list = items(&a[0])?;
                list.dedup();
                let from = a[0].as_array().dims.first().map_or(1, |(_, from)| *from);
                let dims = if list.is_empty() { vec![] } else { vec![(list.len() as i32, from)] };
                let items = list.into_iter().map(Datum::Int4).collect();
                Ok(Datum::Array(Arc::new(Array { element: INT4, dims, items })))
            }),
        ),
        (
            "idx",
            Body::Scalar(|a, _| {
                let at = items(&a[0])?.iter().position(|n| *n == integer(&a[1]));
                Ok(Datum::Int4(at.map_or(0, |at| at as i32 + 1)))
            }),
        ),
        ("subarray", Body::Scalar(|a, _| subarray(a))),
        (
            "intarray_push_elem",
            Body::Scalar(|a, _| {
                let mut list = items(&a[0])?;
                list.push(integer(&a[1]));
                Ok(array(list))
            }),
        ),
        (
            "intarray_push_array",
            Body::Scalar(|a, _| Ok(array([items(&a[0])?, items(&a[1])?].concat()))),
        ),
        (
            "intarray_del_elem",
            Body::Scalar(|a, _| {
                let mut list = items(&a[0])?;
                list.retain(|n| *n != integer(&a[1]));
                Ok(array(list))
            }),
        ),
        (
            "intset_union_elem",
            Body::Scalar(|a, _| {
                let mut list = items(&a[0])?;
                list.push(integer(&a[1]));
                list.sort_unstable();
                list.dedup();
                Ok(array(list))
            }),
        ),
    ]
}

/// `gin__int_ops`, and by signatures the classes of GiST.
struct IntOps;

/// Four bytes in whose order integers are.
fn key(value: i32) -> Vec<u8> {
    (value as u32 ^ 1 << 31).to_be_bytes().to_vec()
}

impl GinClass for IntOps {
    fn value_keys(&self, value: &Datum, keys: &mut Vec<Option<Vec<u8>>>) -> Result<()> {
        keys.extend(set(value)?.into_iter().map(|n| Some(key(n))));
        Ok(())
    }

    fn query(&self, strategy: u16, value: &Datum) -> Result<GinQuery> {
        if strategy == 20 {
            let query: &Query = value.as_open();
            let values = query.steps.iter().filter_map(|step| match step {
                Step::Value(value) => Some(QueryKey::Key(key(*value))),
                _ => None,
            });
            let keys = values.collect();
            let without = query.holds(&|_, _| Ternary::False);
            let mode = if without == Ternary::False { Mode::Default } else { Mode::All };
            let query = query.clone();
            let check: base::ternary::Check = Arc::new(move |present: &[Ternary]| {
                query.holds(&|n, _| present.get(n).copied().unwrap_or(Ternary::Maybe))
            });
            return Ok(GinQuery { keys, mode, check });
        }
        let wanted = set(value)?;
        let keys: Vec<QueryKey> = wanted.iter().map(|n| QueryKey::Key(key(*n))).collect();
        let (mode, check): (Mode, base::ternary::Check) = match strategy {
            3 if wanted.is_empty() => return Ok(GinQuery::nothing()),
            7 if wanted.is_empty() => return Ok(GinQuery::everything()),
            3 => (
                Mode::Default,
                Arc::new(|p: &[Ternary]| p.iter().copied().max().unwrap_or(Ternary::False)),
            ),
            7 => (
                Mode::Default,
                Arc::new(|p: &[Ternary]| p.iter().copied().min().unwrap_or(Ternary::True)),
            ),
            _ => (Mode::IncludeEmpty, Arc::new(|_: &[Ternary]| Ternary::Maybe)),
        };
        Ok(GinQuery { keys, mode, check })
    }
}

//! Functions that json and jsonb have alike: taking a document apart, building one, and turning it
//! into rows. (What only jsonb has stands in `jsonb.rs`.)
//!
//! Type json keeps its text, so a part of a document is a part of that text ([`Doc::Text`]); a part
//! of a jsonb is a value ([`Doc::Tree`]).

use std::sync::Arc;

use base::{Oid, Result, err};

use super::aggregate::{as_any, same};
use super::{Accumulator, Body, CallTypes, NamedBody, S};
use crate::bulk::{self, Pace};
use crate::datum::{Array, Datum, Shape, Text};
use crate::io::{self, FormatContext, TypeIo};
use crate::json::{self, Kind};
use crate::jsonb::{self, Json};
use crate::oids;
use crate::user::UserKind;

/// A document, or a part of one.
#[derive(Clone)]
enum Doc<'a> {
    Text(&'a str),
    Tree(&'a Json),
}

impl<'a> Doc<'a> {
    fn of(d: &'a Datum) -> Doc<'a> {
        match d {
            Datum::Jsonb(j) => Doc::Tree(j),
            other => Doc::Text(other.as_str()),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Doc::Text(text) => json::kind(text),
            Doc::Tree(Json::Null) => Kind::Null,
            Doc::Tree(Json::Bool(_)) => Kind::Bool,
            Doc::Tree(Json::Number(_)) => Kind::Number,
            Doc::Tree(Json::String(_)) => Kind::String,
            Doc::Tree(Json::Array(_)) => Kind::Array,
            Doc::Tree(Json::Object(_)) => Kind::Object,
        }
    }

    fn items(&self) -> Result<Vec<Doc<'a>>> {
        Ok(match self {
            Doc::Text(text) => json::items(text)?.into_iter().map(Doc::Text).collect(),
            Doc::Tree(Json::Array(items)) => items.iter().map(Doc::Tree).collect(),
            Doc::Tree(_) => Vec::new(),
        })
    }

    fn members(&self) -> Result<Vec<(Text, Doc<'a>)>> {
        Ok(match self {
            Doc::Text(text) => {
                json::members(text)?.into_iter().map(|(k, v)| (k, Doc::Text(v))).collect()
            }
            Doc::Tree(Json::Object(m)) => {
                m.iter().map(|(k, v)| (k.clone(), Doc::Tree(v))).collect()
            }
            Doc::Tree(_) => Vec::new(),
        })
    }

    fn member(&self, key: &str) -> Result<Option<Doc<'a>>> {
        Ok(match self {
            Doc::Tree(tree) => tree.member(key).map(Doc::Tree),
            // Of members with one key the last counts.
            Doc::Text(_) => self.members()?.into_iter().rev().find(|m| m.0 == key).map(|m| m.1),
        })
    }

    fn item(&self, index: i64) -> Result<Option<Doc<'a>>> {
        if let Doc::Tree(tree) = self {
            return Ok(tree.item(index).map(Doc::Tree));
        }
        let items = self.items()?;
        let at = if index < 0 { index + items.len() as i64 } else { index };
        Ok(usize::try_from(at).ok().and_then(|at| items.get(at).cloned()))
    }

    /// As json or jsonb.
    fn value(&self) -> Datum {
        match self {
            Doc::Text(text) => Datum::text(text.trim()),
            Doc::Tree(tree) => Datum::jsonb((*tree).clone()),
        }
    }

    /// As text; None for null.
    fn plain(&self) -> Result<Option<Text>> {
        Ok(match self {
            Doc::Text(text) => json::plain_text(text)?.map(|t| Text::from(t.as_ref())),
            Doc::Tree(tree) => tree.to_plain_text()?,
        })
    }

    /// Its JSON text.
    fn text(&self) -> Result<Text> {
        match self {
            Doc::Text(text) => bulk::text(text.trim()),
            Doc::Tree(tree) => tree.to_text(),
        }
    }

    fn give(&self, as_text: bool) -> Result<Datum> {
        if as_text { Ok(self.plain()?.into()) } else { Ok(self.value()) }
    }
}

fn give(doc: Option<Doc<'_>>, as_text: bool) -> Result<Datum> {
    doc.map_or(Ok(Datum::Null), |d| d.give(as_text))
}

fn field(a: &[Datum], as_text: bool) -> Result<Datum> {
    give(Doc::of(&a[0]).member(a[1].as_str())?, as_text)
}

fn element(a: &[Datum], as_text: bool) -> Result<Datum> {
    // A scalar jsonb is an array of one item here.
    if matches!(&a[0], Datum::Jsonb(j) if j.is_scalar()) && matches!(a[1].as_int4(), 0 | -1) {
        return Doc::of(&a[0]).give(as_text);
    }
    give(Doc::of(&a[0]).item(a[1].as_int4().into())?, as_text)
}

fn path(a: &[Datum], as_text: bool) -> Result<Datum> {
    let mut here = Doc::of(&a[0]);
    for step in &a[1].as_array().items {
        if step.is_null() {
            return Ok(Datum::Null);
        }
        let word = step.as_str();
        let next = match here.kind() {
            Kind::Object => here.member(word)?,
            Kind::Array => match word.trim().parse::<i32>() {
                Ok(i) => here.item(i.into())?,
                Err(_) => None,
            },
            _ => None,
        };
        match next {
            Some(next) => here = next,
            None => return Ok(Datum::Null),
        }
    }
    here.give(as_text)
}

/// `extract_path` takes its steps one by one.
fn extract(a: &[Datum], as_text: bool) -> Result<Datum> {
    let steps = match &a[1..] {
        [steps @ Datum::Array(_)] => steps.clone(),
        steps => Datum::array(oids::TEXT, steps.to_vec()),
    };
    path(&[a[0].clone(), steps], as_text)
}

fn type_name(d: &Datum) -> &'static str {
    match Doc::of(d).kind() {
        Kind::Null => "null",
        Kind::Bool => "boolean",
        Kind::Number => "number",
        Kind::String => "string",
        Kind::Array => "array",
        Kind::Object => "object",
    }
}

/// Refuses what is no array.
fn need_array(d: &Datum, object: &str, scalar: &str) -> Result<()> {
    match Doc::of(d).kind() {
        Kind::Array => Ok(()),
        Kind::Object => Err(err!(INVALID_PARAMETER_VALUE, "{object}")),
        _ => Err(err!(INVALID_PARAMETER_VALUE, "{scalar}")),
    }
}

fn length(d: &Datum) -> Result<Datum> {
    need_array(d, "cannot get array length of a non-array", "cannot get array length of a scalar")?;
    Ok((Doc::of(d).items()?.len() as i32).into())
}

fn elements(d: &Datum, as_text: bool) -> Result<Vec<Datum>> {
    if matches!(d, Datum::Jsonb(_)) {
        let [object, scalar] =
            ["cannot extract elements from an object", "cannot extract elements from a scalar"];
        need_array(d, object, scalar)?;
    } else {
        let name = if as_text { "json_array_elements_text" } else { "json_array_elements" };
        let [object, scalar] =
            ["a non-array", "a scalar"].map(|kind| format!("cannot call {name} on {kind}"));
        need_array(d, &object, &scalar)?;
    }
    let mut pace = Pace::default();
    Doc::of(d).items()?.iter().map(|i| pace.step().and_then(|()| i.give(as_text))).collect()
}

/// Refuses what is no object.
fn need_object(d: &Datum, name: &str) -> Result<()> {
    match Doc::of(d).kind() {
        Kind::Object => Ok(()),
        Kind::Array => Err(err!(INVALID_PARAMETER_VALUE, "cannot call {name} on an array")),
        _ => Err(err!(INVALID_PARAMETER_VALUE, "cannot call {name} on a scalar")),
    }
}

fn each(d: &Datum, as_text: bool) -> Result<Vec<Datum>> {
    let jsonb = matches!(d, Datum::Jsonb(_));
    let refusal = match (Doc::of(d).kind(), jsonb, as_text) {
        (Kind::Object, ..) => None,
        (_, true, false) => Some("cannot call jsonb_each on a non-object"),
        (_, true, true) => Some("cannot call jsonb_each_text on a non-object"),
        (Kind::Array, ..) => Some("cannot deconstruct an array as an object"),
        _ => Some("cannot deconstruct a scalar"),
    };
    if let Some(refusal) = refusal {
        return Err(err!(INVALID_PARAMETER_VALUE, "{refusal}"));
    }
    let value = match (as_text, jsonb) {
        (true, _) => oids::TEXT,
        (_, true) => oids::JSONB,
        _ => oids::JSON,
    };
    let columns = vec![(Text::from("key"), oids::TEXT), (Text::from("value"), value)];
    let shape = Arc::new(Shape { ty: oids::RECORD, columns });
    let pair = |(key, value): (Text, Doc<'_>)| {
        Ok(Datum::record(shape.clone(), vec![Datum::Text(key), value.give(as_text)?]))
    };
    let mut pace = Pace::default();
    Doc::of(d).members()?.into_iter().map(|m| pace.step().and_then(|()| pair(m))).collect()
}

fn keys(d: &Datum) -> Result<Vec<Datum>> {
    let jsonb = matches!(d, Datum::Jsonb(_));
    need_object(d, if jsonb { "jsonb_object_keys" } else { "json_object_keys" })?;
    Ok(Doc::of(d).members()?.into_iter().map(|(k, _)| Datum::Text(k)).collect())
}

fn strip_nulls(text: &str, out: &mut Vec<u8>) -> Result<()> {
    match json::kind(text) {
        Kind::Array => {
            out.push(b'[');
            for (i, item) in json::items(text)?.into_iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                strip_nulls(item, out)?;
            }
            out.push(b']');
        }
        Kind::Object => {
            out.push(b'{');
            let kept = json::members(text)?;
            let kept = kept.into_iter().filter(|(_, v)| json::kind(v) != Kind::Null);
            for (i, (key, value)) in kept.enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                json::put_string(&key, out)?;
                out.push(b':');
                strip_nulls(value, out)?;
            }
            out.push(b'}');
        }
        _ => bulk::push_bytes(out, text.trim().as_bytes())?,
    }
    Ok(())
}

fn text_of(out: &[u8]) -> Result<Datum> {
    bulk::text(out).map(Datum::Text)
}

/// Whether an argument's values are rows or arrays, which aggregates put on lines of their own.
fn is_composite(value: &Datum) -> bool {
    matches!(value, Datum::Array(_) | Datum::Record(_))
}

/// A key of `json_build_object` as text.
fn key_text(ty: Oid, value: &Datum, cx: &FormatContext) -> Result<Text> {
    if is_composite(value) || ty == oids::JSON || matches!(value, Datum::Jsonb(_)) {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "key value must be scalar, not array, composite, or json"
        ));
    }
    match value {
        Datum::Bool(b) => Ok(Text::from(if *b { "true" } else { "false" })),
        Datum::Date(_) | Datum::Timestamp(_) | Datum::Timestamptz(_) => {
            let mut out = Vec::new();
            crate::datetime::write_xsd(value, cx, &mut out);
            Ok(Text::from(String::from_utf8_lossy(&out).as_ref()))
        }
        _ => io::to_text(ty, value, cx),
    }
}

/// Arguments with their types; a variadic array is spread out.
fn spread(a: &[Datum], types: CallTypes<'_>) -> Vec<(Oid, Datum)> {
    a.iter().cloned().zip(types.args).map(|(d, ty)| (*ty, d)).collect()
}

fn odd(name: &str) -> base::Error {
    err!(INVALID_PARAMETER_VALUE, "argument list must have even number of elements")
        .hint(format!("The arguments of {name}() must consist of alternating keys and values."))
}

fn build_object(a: &[Datum], types: CallTypes<'_>, cx: &FormatContext) -> Result<Datum> {
    if a.len() % 2 != 0 {
        return Err(odd("json_build_object"));
    }
    let mut out = vec![b'{'];
    for (i, pair) in spread(a, types).chunks(2).enumerate() {
        sched::check_interrupts()?;
        let ((key_type, key), (ty, value)) = (&pair[0], &pair[1]);
        if key.is_null() {
            return Err(err!(INVALID_PARAMETER_VALUE, "argument {} cannot be null", i * 2 + 1)
                .hint("Object keys should be text."));
        }
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        json::put_string(&key_text(*key_type, key, cx)?, &mut out)?;
        out.extend_from_slice(b" : ");
        jsonb::write_datum(*ty, value, false, cx, &mut out)?;
    }
    out.push(b'}');
    text_of(&out)
}

fn build_array(a: &[Datum], types: CallTypes<'_>, cx: &FormatContext) -> Result<Datum> {
    let mut out = vec![b'['];
    for (i, (ty, value)) in spread(a, types).iter().enumerate() {
        sched::check_interrupts()?;
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        jsonb::write_datum(*ty, value, false, cx, &mut out)?;
    }
    out.push(b']');
    text_of(&out)
}

fn jsonb_build_object(a: &[Datum], types: CallTypes<'_>, cx: &FormatContext) -> Result<Datum> {
    if a.len() % 2 != 0 {
        return Err(odd("jsonb_build_object"));
    }
    let mut members = Vec::with_capacity(a.len() / 2);
    for (i, pair) in spread(a, types).chunks(2).enumerate() {
        sched::check_interrupts()?;
        let ((key_type, key), (ty, value)) = (&pair[0], &pair[1]);
        if key.is_null() {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "argument {}: key must not be null",
                i * 2 + 1
            ));
        }
        members.push((key_text(*key_type, key, cx)?, jsonb::from_datum(*ty, value, cx)?));
    }
    Ok(Datum::jsonb(Json::object(members)))
}

fn jsonb_build_array(a: &[Datum], types: CallTypes<'_>, cx: &FormatContext) -> Result<Datum> {
    let items = spread(a, types);
    let mut made = Vec::with_capacity(items.len());
    for (ty, value) in &items {
        sched::check_interrupts()?;
        made.push(jsonb::from_datum(*ty, value, cx)?);
    }
    drop(items);
    bulk::ask(size_of_val(made.as_slice()))?;
    Ok(Datum::jsonb(Json::array(made)))
}

/// Keys and values of `json_object(text[])` and `json_object(text[], text[])`.
fn object_pairs(a: &[Datum]) -> Result<Vec<(Text, Option<Text>)>> {
    let subscripts = |what: &str| err!(ARRAY_SUBSCRIPT_ERROR, "{what}");
    let text = |d: &Datum| (!d.is_null()).then(|| Text::from(d.as_str()));
    let first = a[0].as_array();
    let cells: Vec<(&Datum, &Datum)> = match a.get(1) {
        None => {
            match first.dims.as_slice() {
                [] => {}
                [(len, _)] if len % 2 != 0 => {
                    return Err(subscripts("array must have even number of elements"));
                }
                [_] => {}
                [_, (2, _)] => {}
                [_, _] => return Err(subscripts("array must have two columns")),
                _ => return Err(subscripts("wrong number of array subscripts")),
            }
            first.items.chunks(2).map(|c| (&c[0], &c[1])).collect()
        }
        Some(second) => {
            let second = second.as_array();
            if first.dims.len() > 1 || first.dims.len() != second.dims.len() {
                return Err(subscripts("wrong number of array subscripts"));
            }
            if first.items.len() != second.items.len() {
                return Err(subscripts("mismatched array dimensions"));
            }
            first.items.iter().zip(&second.items).collect()
        }
    };
    let mut out = Vec::with_capacity(cells.len());
    for (key, value) in cells {
        let key = text(key)
            .ok_or_else(|| err!(NULL_VALUE_NOT_ALLOWED, "null value not allowed for object key"))?;
        out.push((key, text(value)));
    }
    Ok(out)
}

fn json_object(a: &[Datum]) -> Result<Datum> {
    let mut out = vec![b'{'];
    for (i, (key, value)) in object_pairs(a)?.into_iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        json::put_string(&key, &mut out)?;
        out.extend_from_slice(b" : ");
        match value {
            Some(value) => json::put_string(&value, &mut out)?,
            None => out.extend_from_slice(b"null"),
        }
    }
    out.push(b'}');
    text_of(&out)
}

fn jsonb_object(a: &[Datum]) -> Result<Datum> {
    let pairs = object_pairs(a)?;
    let value = |v: Option<Text>| v.map_or(Json::Null, Json::String);
    Ok(Datum::jsonb(Json::object(pairs.into_iter().map(|(k, v)| (k, value(v))).collect())))
}

fn to_json(a: &[Datum], ty: Oid, pretty: bool, cx: &FormatContext) -> Result<Datum> {
    let mut out = Vec::new();
    jsonb::write_datum(ty, &a[0], pretty, cx, &mut out)?;
    text_of(&out)
}

/// A column that a JSON value is for.
struct Target<'t> {
    name: &'t str,
    ty: Oid,
    typmod: i32,
    /// The value that it has already: fields that the JSON object doesn't name stay.
    now: &'t Datum,
}

impl Target<'_> {
    /// The error for what is no array, at a place in one.
    #[cold]
    fn no_array(&self, at: &[usize]) -> base::Error {
        let error = err!(INVALID_TEXT_REPRESENTATION, "expected JSON array");
        let place: String = at.iter().map(|n| format!("[{n}]")).collect();
        error.hint(match at {
            [] => format!("See the value of key \"{}\".", self.name),
            _ => format!("See the array element {place} of key \"{}\".", self.name),
        })
    }
}

/// A value of SQL from a JSON value, as `json_populate_record` reads it.
fn populate(to: &Target<'_>, doc: &Doc<'_>, cx: &FormatContext) -> Result<Datum> {
    if doc.kind() == Kind::Null {
        return Ok(Datum::Null);
    }
    match to.ty {
        oids::JSON => return doc.text().map(Datum::Text),
        oids::JSONB => {
            return match doc {
                Doc::Tree(tree) => Ok(Datum::jsonb((*tree).clone())),
                Doc::Text(text) => Json::parse(text).map(Datum::jsonb),
            };
        }
        _ => {}
    }
    if let Some(element) = TypeIo::array_element(to.ty) {
        match doc.kind() {
            Kind::Array => return populate_array(&Target { ty: element, ..*to }, doc, cx),
            Kind::String => {}
            _ => return Err(to.no_array(&[])),
        }
    }
    if let Some(user) = crate::user::get(to.ty) {
        match (&user.kind, doc.kind()) {
            (UserKind::Domain { .. }, _) => {
                let (ty, typmod) = crate::user::base_type(to.ty, to.typmod);
                return populate(&Target { ty, typmod, ..*to }, doc, cx);
            }
            (UserKind::Composite { .. }, Kind::String) => {}
            (UserKind::Composite { shape, .. }, _) => {
                let nulls = || Datum::record(shape.clone(), vec![Datum::Null; shape.columns.len()]);
                let base = match to.now {
                    Datum::Record(_) => to.now.clone(),
                    _ => nulls(),
                };
                return populate_row(&base, doc, "populate_composite", cx);
            }
            _ => {}
        }
    }
    let text = doc.plain()?.unwrap_or_default();
    io::input(to.ty, to.typmod, &text, cx)
}

/// An array, of items for which the target stands.
fn populate_array(to: &Target<'_>, doc: &Doc<'_>, cx: &FormatContext) -> Result<Datum> {
    // The first path down tells the number of dimensions.
    let mut depth = 0;
    let mut probe = Some(doc.clone());
    while let Some(level) = probe.filter(|d| d.kind() == Kind::Array) {
        depth += 1;
        probe = level.items()?.into_iter().next();
    }
    io::check_dimensions(depth)?;
    let mut filling = Filling { to, depth, dims: Vec::new(), items: Vec::new(), at: Vec::new() };
    filling.fill(doc, cx)?;
    let Filling { mut dims, items, .. } = filling;
    if items.is_empty() {
        dims.clear();
    }
    Ok(Datum::Array(Arc::new(Array { element: to.ty, dims, items })))
}

/// An array under construction.
struct Filling<'t> {
    to: &'t Target<'t>,
    depth: usize,
    dims: Vec<(i32, i32)>,
    items: Vec<Datum>,
    /// Where in the arrays: the items' numbers from 0.
    at: Vec<usize>,
}

impl Filling<'_> {
    fn fill(&mut self, doc: &Doc<'_>, cx: &FormatContext) -> Result<()> {
        let ragged = || {
            err!(INVALID_TEXT_REPRESENTATION, "malformed JSON array")
                .detail("Multidimensional arrays must have sub-arrays with matching dimensions.")
        };
        let (level, element) = (self.at.len(), self.to.ty);
        if level == self.depth {
            if doc.kind() == Kind::Array && element != oids::JSON && element != oids::JSONB {
                return Err(ragged());
            }
            self.items.push(populate(&Target { now: &Datum::Null, ..*self.to }, doc, cx)?);
            return Ok(());
        }
        if doc.kind() != Kind::Array {
            return Err(self.to.no_array(&self.at));
        }
        let parts = doc.items()?;
        match self.dims.get(level) {
            None => self.dims.push((parts.len() as i32, 1)),
            Some((len, _)) if *len as usize == parts.len() => {}
            Some(_) => return Err(ragged()),
        }
        for (n, part) in parts.iter().enumerate() {
            self.at.push(n);
            self.fill(part, cx)?;
            self.at.pop();
        }
        Ok(())
    }
}

/// A row from an object; columns that it doesn't have keep their value.
fn populate_row(base: &Datum, doc: &Doc<'_>, name: &str, cx: &FormatContext) -> Result<Datum> {
    let Datum::Record(base) = base else {
        return Err(err!(
            DATATYPE_MISMATCH,
            "could not determine row type for result of {name}"
        )
        .hint("Provide a non-null record argument, or call the function in the FROM clause using a column definition list."));
    };
    match doc.kind() {
        Kind::Object => {}
        Kind::Array => {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "cannot call populate_composite on an array"
            ));
        }
        _ => {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "cannot call populate_composite on a scalar"
            ));
        }
    }
    let typmods = match crate::user::get(base.shape.ty).map(|user| user.kind.clone()) {
        Some(UserKind::Composite { typmods, .. }) => typmods,
        _ => Vec::new(),
    };
    let mut fields = Vec::with_capacity(base.fields.len());
    for (n, (now, (name, ty))) in base.fields.iter().zip(&base.shape.columns).enumerate() {
        let typmod = typmods.get(n).copied().unwrap_or(-1);
        fields.push(match doc.member(name)? {
            Some(value) => populate(&Target { name, ty: *ty, typmod, now }, &value, cx)?,
            None => now.clone(),
        });
    }
    Ok(Datum::record(base.shape.clone(), fields))
}

/// `json_to_record(json)`: the executor adds the wanted row as another argument.
fn to_record(a: &[Datum], cx: &FormatContext, name: &str) -> Result<Datum> {
    let (base, doc) = order_of(a);
    let doc = match doc {
        Datum::Null => return Ok(base.clone()),
        doc => doc,
    };
    populate_row(base, &Doc::of(doc), name, cx)
}

fn order_of(a: &[Datum]) -> (&Datum, &Datum) {
    match a {
        [doc, base @ Datum::Record(_)] | [Datum::Null, doc, .., base @ Datum::Record(_)] => {
            (base, doc)
        }
        [base, doc, ..] => (base, doc),
        _ => (&Datum::Null, &a[0]),
    }
}

fn to_recordset(a: &[Datum], cx: &FormatContext, name: &str) -> Result<Vec<Datum>> {
    let (base, doc) = order_of(a);
    if doc.is_null() {
        return Ok(Vec::new());
    }
    let jsonb = matches!(doc, Datum::Jsonb(_));
    let doc = Doc::of(doc);
    match doc.kind() {
        Kind::Array => {}
        _ if jsonb => {
            return Err(err!(INVALID_PARAMETER_VALUE, "cannot call {name} on a non-array"));
        }
        Kind::Object => {
            return Err(err!(INVALID_PARAMETER_VALUE, "cannot call {name} on an object"));
        }
        _ => return Err(err!(INVALID_PARAMETER_VALUE, "cannot call {name} on a scalar")),
    }
    let mut pace = Pace::default();
    doc.items()?
        .iter()
        .map(|item| match item.kind() {
            Kind::Object => pace.step().and_then(|()| populate_row(base, item, name, cx)),
            _ => {
                Err(err!(INVALID_PARAMETER_VALUE, "argument of {name} must be an array of objects"))
            }
        })
        .collect()
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    let mut all = parts();
    all.extend(building());
    all.extend(rows());
    all
}

fn parts() -> Vec<NamedBody> {
    const FIELD: Body = S(|a, _| field(a, false));
    const FIELD_TEXT: Body = S(|a, _| field(a, true));
    const ELEMENT: Body = S(|a, _| element(a, false));
    const ELEMENT_TEXT: Body = S(|a, _| element(a, true));
    const EXTRACT: Body = S(|a, _| extract(a, false));
    const EXTRACT_TEXT: Body = S(|a, _| extract(a, true));
    const LENGTH: Body = S(|a, _| length(&a[0]));
    const TYPE: Body = S(|a, _| Ok(type_name(&a[0]).into()));
    const ELEMENTS: Body = Body::Set(|a, _| elements(&a[0], false));
    const ELEMENTS_TEXT: Body = Body::Set(|a, _| elements(&a[0], true));
    const EACH: Body = Body::Set(|a, _| each(&a[0], false));
    const EACH_TEXT: Body = Body::Set(|a, _| each(&a[0], true));
    const KEYS: Body = Body::Set(|a, _| keys(&a[0]));
    vec![
        ("json_object_field", FIELD),
        ("json_object_field_text", FIELD_TEXT),
        ("json_array_element", ELEMENT),
        ("json_array_element_text", ELEMENT_TEXT),
        ("json_extract_path", EXTRACT),
        ("json_extract_path_text", EXTRACT_TEXT),
        ("json_array_length", LENGTH),
        ("json_typeof", TYPE),
        ("json_array_elements", ELEMENTS),
        ("json_array_elements_text", ELEMENTS_TEXT),
        ("json_each", EACH),
        ("json_each_text", EACH_TEXT),
        ("json_object_keys", KEYS),
        ("jsonb_object_field", FIELD),
        ("jsonb_object_field_text", FIELD_TEXT),
        ("jsonb_array_element", ELEMENT),
        ("jsonb_array_element_text", ELEMENT_TEXT),
        ("jsonb_extract_path", EXTRACT),
        ("jsonb_extract_path_text", EXTRACT_TEXT),
        ("jsonb_array_length", LENGTH),
        ("jsonb_typeof", TYPE),
        ("jsonb_array_elements", ELEMENTS),
        ("jsonb_array_elements_text", ELEMENTS_TEXT),
        ("jsonb_each", EACH),
        ("jsonb_each_text", EACH_TEXT),
        ("jsonb_object_keys", KEYS),
        (
            "json_strip_nulls",
            S(|a, _| {
                let mut out = Vec::new();
                strip_nulls(a[0].as_str(), &mut out)?;
                text_of(&out)
            }),
        ),
    ]
}

fn building() -> Vec<NamedBody> {
    use Body::Typed as T;
    vec![
        ("to_json", T(|a, types, cx| to_json(a, types.args[0], false, cx))),
        ("array_to_json", T(|a, types, cx| to_json(a, types.args[0], false, cx))),
        ("row_to_json", T(|a, types, cx| to_json(a, types.args[0], false, cx))),
        ("array_to_json_pretty", T(|a, t, cx| to_json(a, t.args[0], a[1].as_bool(), cx))),
        ("row_to_json_pretty", T(|a, t, cx| to_json(a, t.args[0], a[1].as_bool(), cx))),
        ("to_jsonb", T(|a, t, cx| jsonb::from_datum(t.args[0], &a[0], cx).map(Datum::jsonb))),
        ("json_build_object", T(build_object)),
        ("json_build_object_noargs", S(|_, _| Ok("{}".into()))),
        ("json_build_array", T(build_array)),
        ("json_build_array_noargs", S(|_, _| Ok("[]".into()))),
        ("jsonb_build_object", T(jsonb_build_object)),
        ("jsonb_build_object_noargs", S(|_, _| Ok(Datum::jsonb(Json::object(Vec::new()))))),
        ("jsonb_build_array", T(jsonb_build_array)),
        ("jsonb_build_array_noargs", S(|_, _| Ok(Datum::jsonb(Json::array(Vec::new()))))),
        ("json_object", S(|a, _| json_object(a))),
        ("json_object_two_arg", S(|a, _| json_object(a))),
        ("jsonb_object", S(|a, _| jsonb_object(a))),
        ("jsonb_object_two_arg", S(|a, _| jsonb_object(a))),
    ]
}

fn rows() -> Vec<NamedBody> {
    vec![
        ("json_populate_record", S(|a, cx| to_record(a, cx, "json_populate_record"))),
        ("jsonb_populate_record", S(|a, cx| to_record(a, cx, "jsonb_populate_record"))),
        ("json_to_record", S(|a, cx| to_record(a, cx, "json_to_record"))),
        ("jsonb_to_record", S(|a, cx| to_record(a, cx, "jsonb_to_record"))),
        (
            "json_populate_recordset",
            Body::Set(|a, cx| to_recordset(a, cx, "json_populate_recordset")),
        ),
        (
            "jsonb_populate_recordset",
            Body::Set(|a, cx| to_recordset(a, cx, "jsonb_populate_recordset")),
        ),
        ("json_to_recordset", Body::Set(|a, cx| to_recordset(a, cx, "json_to_recordset"))),
        ("jsonb_to_recordset", Body::Set(|a, cx| to_recordset(a, cx, "jsonb_to_recordset"))),
    ]
}

/// `json_agg`, `jsonb_agg`, `json_object_agg`, `jsonb_object_agg`: JSON text so far, or values. The
/// binder has made JSON of the arguments ([`super::internal::JSON_ITEM`] and kin).
#[derive(Default)]
pub(super) struct Gather {
    text: Vec<u8>,
    members: Vec<(Text, Json)>,
    items: Vec<Json>,
    rows: usize,
    binary: bool,
    object: bool,
}

impl Gather {
    /// A fresh state.
    pub(super) fn start<const BINARY: bool, const OBJECT: bool>() -> Box<dyn Accumulator> {
        Box::new(Gather { binary: BINARY, object: OBJECT, ..Gather::default() })
    }

    fn add_text(&mut self, args: &[Datum]) -> Result<()> {
        if self.rows > 0 {
            self.text.extend_from_slice(b", ");
        }
        if self.object {
            json::put_string(key(&args[0])?, &mut self.text)?;
            self.text.extend_from_slice(b" : ");
        }
        match &args[args.len() - 1] {
            // A row or an array: on a line of its own.
            Datum::Record(r) => {
                if self.rows > 0 && !self.object {
                    self.text.extend_from_slice(b"\n ");
                }
                bulk::push_bytes(&mut self.text, r.fields[0].as_str().as_bytes())
            }
            value => bulk::push_bytes(&mut self.text, value.as_str().as_bytes()),
        }
    }
}

fn key(d: &Datum) -> Result<&str> {
    match d {
        Datum::Null => Err(err!(INVALID_PARAMETER_VALUE, "field name must not be null")),
        key => Ok(key.as_str()),
    }
}

/// `(value)`: what `json_agg` collects; of a row or an array, a row with its text.
pub(super) fn json_item(a: &[Datum], types: CallTypes<'_>, cx: &FormatContext) -> Result<Datum> {
    let text = to_json(a, types.args[0], false, cx)?;
    if !is_composite(&a[0]) {
        return Ok(text);
    }
    Ok(Datum::record(Arc::new(Shape::anonymous([oids::TEXT].into_iter())), vec![text]))
}

/// `(value)`: what `jsonb_agg` collects.
pub(super) fn jsonb_item(a: &[Datum], types: CallTypes<'_>, cx: &FormatContext) -> Result<Datum> {
    jsonb::from_datum(types.args[0], &a[0], cx).map(Datum::jsonb)
}

/// `(value)`: the key that it is in an object.
pub(super) fn json_key(a: &[Datum], types: CallTypes<'_>, cx: &FormatContext) -> Result<Datum> {
    key_text(types.args[0], &a[0], cx).map(Datum::Text)
}

impl Accumulator for Gather {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        if !self.binary {
            self.add_text(args)?;
        } else {
            let value = args[args.len() - 1].as_jsonb().clone();
            if self.object {
                self.members.push((Text::from(key(&args[0])?), value));
            } else {
                self.items.push(value);
            }
        }
        self.rows += 1;
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        let mut other = same::<Gather>(other)?;
        if self.rows > 0 && other.rows > 0 {
            self.text.extend_from_slice(b", ");
        }
        self.text.append(&mut other.text);
        self.members.append(&mut other.members);
        self.items.append(&mut other.items);
        self.rows += other.rows;
        Ok(())
    }
    fn finish(&self) -> Result<Datum> {
        if self.rows == 0 {
            return Ok(Datum::Null);
        }
        Ok(match (self.binary, self.object) {
            (true, true) => Datum::jsonb(Json::object(bulk::copied(&self.members)?)),
            (true, false) => {
                // Copied once more into the array.
                bulk::ask(size_of_val(self.items.as_slice()))?;
                Datum::jsonb(Json::array(bulk::copied(&self.items)?))
            }
            (false, object) => {
                let (open, close): (&[u8], &[u8]) =
                    if object { (b"{ ", b" }") } else { (b"[", b"]") };
                let mut whole = Vec::new();
                for part in [open, &self.text, close] {
                    bulk::push_bytes(&mut whole, part)?;
                }
                text_of(&whole)?
            }
        })
    }
    fn memory(&self) -> usize {
        self.text.capacity()
            + self.items.capacity() * 2 * size_of::<Json>()
            + self.members.capacity() * 2 * size_of::<(Text, Json)>()
    }
    as_any!();
}

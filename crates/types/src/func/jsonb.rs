//! Functions that only jsonb has: comparison, containment, change, and the path language.

use base::Result;

use super::{Body, NamedBody, S};
use crate::bulk;
use crate::datum::Datum;
use crate::jsonb::path::Path;
use crate::jsonb::path::eval;
use crate::jsonb::{self, Change, Json};

fn json(j: Json) -> Datum {
    Datum::jsonb(j)
}

/// Texts of an array, NULLs left out.
fn words(d: &Datum) -> Vec<&str> {
    d.as_array().items.iter().filter(|i| !i.is_null()).map(Datum::as_str).collect()
}

fn as_path(d: &Datum) -> &Path {
    match d {
        Datum::Jsonpath(p) => p,
        other => panic!("{other:?} is no jsonpath"),
    }
}

/// Path steps; they have one dimension.
fn steps(d: &Datum) -> Result<&[Datum]> {
    let a = d.as_array();
    if a.dims.len() > 1 {
        return Err(base::err!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts"));
    }
    Ok(&a.items)
}

fn set(a: &[Datum], change: Change) -> Result<Datum> {
    jsonb::set_path(a[0].as_jsonb(), steps(&a[1])?, a[2].as_jsonb(), change).map(json)
}

fn set_lax(a: &[Datum]) -> Result<Datum> {
    if a[0].is_null() || a[1].is_null() || a[3].is_null() {
        return Ok(Datum::Null);
    }
    if !a[2].is_null() {
        return set(a, Change::Set { create: a[3].as_bool() });
    }
    if a[4].is_null() {
        return Err(base::err!(
            INVALID_PARAMETER_VALUE,
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\""
        ));
    }
    match a[4].as_str() {
        "raise_exception" => Err(base::err!(NULL_VALUE_NOT_ALLOWED, "JSON value must not be null")
            .detail("Exception was raised because null_value_treatment is \"raise_exception\".")
            .hint("To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.")),
        "use_json_null" => {
            let change = Change::Set { create: a[3].as_bool() };
            jsonb::set_path(a[0].as_jsonb(), steps(&a[1])?, &Json::Null, change).map(json)
        }
        "return_target" => Ok(a[0].clone()),
        "delete_key" => jsonb::delete_path(a[0].as_jsonb(), steps(&a[1])?).map(json),
        _ => Err(base::err!(
            INVALID_PARAMETER_VALUE,
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\""
        )),
    }
}

/// A scalar jsonb as a number or boolean of SQL.
fn scalar<'a>(a: &'a [Datum], target: &str, wanted: &str) -> Result<&'a Json> {
    let j = a[0].as_jsonb();
    if j.type_name() == wanted {
        return Ok(j);
    }
    let found = match j {
        Json::Null => "jsonb null",
        Json::Bool(_) => "jsonb boolean",
        Json::Number(_) => "jsonb numeric",
        Json::String(_) => "jsonb string",
        Json::Array(_) => "jsonb array",
        Json::Object(_) => "jsonb object",
    };
    Err(base::err!(INVALID_PARAMETER_VALUE, "cannot cast {found} to type {target}"))
}

/// A number through a cast's function of numeric.
fn number(a: &[Datum], target: &str, cast: u32, cx: &crate::FormatContext) -> Result<Datum> {
    let Json::Number(n) = scalar(a, target, "number")? else { return Ok(Datum::Null) };
    let value = Datum::Numeric(n.clone());
    let function = super::function(base::Oid(cast));
    let types = super::CallTypes { args: &[crate::oids::NUMERIC], result: crate::oids::NUMERIC };
    match function.and_then(|f| f.body.run(std::slice::from_ref(&value), types, cx)) {
        Some(result) => result,
        None => Ok(value),
    }
}

/// The document, the path, and how it runs.
fn how(a: &[Datum]) -> (&Path, &Json, (&Json, bool)) {
    (as_path(&a[1]), a[0].as_jsonb(), (a[2].as_jsonb(), a[3].as_bool()))
}

fn query(a: &[Datum], zone: Option<&crate::FormatContext>) -> Result<Vec<Json>> {
    let (path, target, options) = how(a);
    eval::query(path, target, options, zone)
}

fn exists(a: &[Datum], zone: Option<&crate::FormatContext>) -> Result<Datum> {
    let (path, target, options) = how(a);
    Ok(eval::exists(path, target, options, zone)?.into())
}

fn matches(a: &[Datum], zone: Option<&crate::FormatContext>) -> Result<Datum> {
    let (path, target, options) = how(a);
    Ok(eval::matches(path, target, options, zone)?.into())
}

fn first(a: &[Datum], zone: Option<&crate::FormatContext>) -> Result<Datum> {
    Ok(query(a, zone)?.into_iter().next().map_or(Datum::Null, json))
}

fn no_vars() -> Json {
    Json::object(Vec::new())
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    let mut all = basics();
    all.extend(paths());
    all
}

fn basics() -> Vec<NamedBody> {
    vec![
        ("jsonb_contains", S(|a, _| Ok(a[0].as_jsonb().contains(a[1].as_jsonb()).into()))),
        ("jsonb_contained", S(|a, _| Ok(a[1].as_jsonb().contains(a[0].as_jsonb()).into()))),
        ("jsonb_exists", S(|a, _| Ok(a[0].as_jsonb().has_key(a[1].as_str()).into()))),
        (
            "jsonb_exists_any",
            S(|a, _| Ok(words(&a[1]).iter().any(|w| a[0].as_jsonb().has_key(w)).into())),
        ),
        (
            "jsonb_exists_all",
            S(|a, _| Ok(words(&a[1]).iter().all(|w| a[0].as_jsonb().has_key(w)).into())),
        ),
        ("jsonb_concat", S(|a, _| Ok(json(a[0].as_jsonb().concat(a[1].as_jsonb()))))),
        ("jsonb_delete", S(|a, _| a[0].as_jsonb().without_keys(&[a[1].as_str()]).map(json))),
        ("jsonb_delete_idx", S(|a, _| a[0].as_jsonb().without_item(a[1].as_int4()).map(json))),
        (
            "jsonb_delete_array",
            S(|a, _| match &a[1..] {
                [keys @ Datum::Array(_)] => {
                    steps(keys)?;
                    a[0].as_jsonb().without_keys(&words(keys)).map(json)
                }
                keys => {
                    let keys: Vec<&str> = keys.iter().map(Datum::as_str).collect();
                    a[0].as_jsonb().without_keys(&keys).map(json)
                }
            }),
        ),
        (
            "jsonb_delete_path",
            S(|a, _| jsonb::delete_path(a[0].as_jsonb(), steps(&a[1])?).map(json)),
        ),
        ("jsonb_set", S(|a, _| set(a, Change::Set { create: a[3].as_bool() }))),
        ("jsonb_set_lax", S(|a, _| set_lax(a))),
        ("jsonb_insert", S(|a, _| set(a, Change::Insert { after: a[3].as_bool() }))),
        ("jsonb_strip_nulls", S(|a, _| a[0].as_jsonb().strip_nulls().map(json))),
        (
            "jsonb_pretty",
            S(|a, _| {
                let mut out = Vec::new();
                a[0].as_jsonb().write_pretty(0, &mut out)?;
                bulk::text(out).map(Datum::Text)
            }),
        ),
        (
            "jsonb_bool",
            S(|a, _| Ok(Datum::Bool(*scalar(a, "boolean", "boolean")? == Json::Bool(true)))),
        ),
        ("jsonb_numeric", S(|a, cx| number(a, "numeric", 0, cx))),
        ("jsonb_int2", S(|a, cx| number(a, "smallint", 1783, cx))),
        ("jsonb_int4", S(|a, cx| number(a, "integer", 1744, cx))),
        ("jsonb_int8", S(|a, cx| number(a, "bigint", 1779, cx))),
        ("jsonb_float4", S(|a, cx| number(a, "real", 1745, cx))),
        ("jsonb_float8", S(|a, cx| number(a, "double precision", 1746, cx))),
    ]
}

fn paths() -> Vec<NamedBody> {
    vec![
        ("jsonb_path_exists", S(|a, _| exists(a, None))),
        ("jsonb_path_exists_tz", S(|a, cx| exists(a, Some(cx)))),
        ("jsonb_path_match", S(|a, _| matches(a, None))),
        ("jsonb_path_match_tz", S(|a, cx| matches(a, Some(cx)))),
        ("jsonb_path_query", Body::Set(|a, _| Ok(query(a, None)?.into_iter().map(json).collect()))),
        (
            "jsonb_path_query_tz",
            Body::Set(|a, cx| Ok(query(a, Some(cx))?.into_iter().map(json).collect())),
        ),
        ("jsonb_path_query_array", S(|a, _| Ok(json(Json::array(query(a, None)?))))),
        ("jsonb_path_query_array_tz", S(|a, cx| Ok(json(Json::array(query(a, Some(cx))?))))),
        ("jsonb_path_query_first", S(|a, _| first(a, None))),
        ("jsonb_path_query_first_tz", S(|a, cx| first(a, Some(cx)))),
        (
            "jsonb_path_exists_opr",
            S(|a, _| {
                Ok(eval::exists(as_path(&a[1]), a[0].as_jsonb(), (&no_vars(), true), None)?.into())
            }),
        ),
        (
            "jsonb_path_match_opr",
            S(|a, _| {
                Ok(eval::matches(as_path(&a[1]), a[0].as_jsonb(), (&no_vars(), true), None)?.into())
            }),
        ),
    ]
}

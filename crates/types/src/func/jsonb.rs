//! Functions that only jsonb has: comparison, containment, change, and the path language.

use std::cmp::Ordering;

use base::{Error, Result, err};

use super::template::read::standard;
use super::{Body, NamedBody, S};
use crate::bulk;
use crate::datetime::{self, SECOND};
use crate::datum::Datum;
use crate::io::DateStyle;
use crate::jsonb::path::Path;
use crate::jsonb::path::eval::{self, Clock, Moment};
use crate::jsonb::{self, Change, Json};
use crate::order::timetz_utc;

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
    eval::query(path, target, options, &SessionClock(zone))
}

fn exists(a: &[Datum], zone: Option<&crate::FormatContext>) -> Result<Datum> {
    let (path, target, options) = how(a);
    Ok(eval::exists(path, target, options, &SessionClock(zone))?.into())
}

fn matches(a: &[Datum], zone: Option<&crate::FormatContext>) -> Result<Datum> {
    let (path, target, options) = how(a);
    Ok(eval::matches(path, target, options, &SessionClock(zone))?.into())
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
                Ok(eval::exists(
                    as_path(&a[1]),
                    a[0].as_jsonb(),
                    (&no_vars(), true),
                    &SessionClock(None),
                )?
                .into())
            }),
        ),
        (
            "jsonb_path_match_opr",
            S(|a, _| {
                Ok(eval::matches(
                    as_path(&a[1]),
                    a[0].as_jsonb(),
                    (&no_vars(), true),
                    &SessionClock(None),
                )?
                .into())
            }),
        ),
    ]
}

/// The clock of a session; none: values without a zone are not compared with others that have one.
struct SessionClock<'a>(Option<&'a crate::FormatContext>);

/// The templates of `.datetime()` without one, in this order: ISO 8601 with a blank or a T between date and time.
fn templates() -> impl Iterator<Item = String> {
    const CLOCKS: [&str; 6] = [
        "HH24:MI:SS.USTZH:TZM",
        "HH24:MI:SS.USTZH",
        "HH24:MI:SSTZH:TZM",
        "HH24:MI:SSTZH",
        "HH24:MI:SS.US",
        "HH24:MI:SS",
    ];
    let with_time = ["", "yyyy-mm-dd ", "yyyy-mm-dd\"T\""]
        .into_iter()
        .flat_map(|date| CLOCKS.iter().map(move |clock| format!("{date}{clock}")));
    std::iter::once("yyyy-mm-dd".to_owned()).chain(with_time)
}

fn needs_zone(from: &str, to: &str) -> Error {
    err!(FEATURE_NOT_SUPPORTED, "cannot convert value from {from} to {to} without time zone usage")
        .hint("Use *_tz() function for time zone support.")
}

impl Clock for SessionClock<'_> {
    fn read(&self, text: &str, template: Option<&str>) -> Result<Moment> {
        if let Some(template) = template {
            return standard(text, template);
        }
        let found = templates().find_map(|template| standard(text, &template).ok());
        found.ok_or_else(|| {
            err!(
                INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION,
                "datetime format is not recognized: \"{text}\""
            )
            .hint("Use a datetime template argument to specify the input data format.")
        })
    }

    fn type_name(&self, moment: &Moment) -> &'static str {
        match moment.value {
            Datum::Date(_) => "date",
            Datum::Time(_) => "time without time zone",
            Datum::Timetz(..) => "time with time zone",
            Datum::Timestamp(_) => "timestamp without time zone",
            _ => "timestamp with time zone",
        }
    }

    fn text(&self, moment: &Moment) -> String {
        let mut out = Vec::new();
        let iso =
            crate::FormatContext { date_style: DateStyle::Iso, ..crate::FormatContext::default() };
        match moment.value {
            Datum::Date(d) => datetime::write_date(d, &iso, &mut out),
            Datum::Time(t) | Datum::Timetz(t, _) => datetime::write_time(t, &mut out),
            Datum::Timestamp(t) => datetime::write_timestamp(t, &iso, &mut out),
            Datum::Timestamptz(t) => {
                let east = i64::from(moment.east.unwrap_or(0));
                datetime::write_timestamp(t.saturating_add(east * SECOND), &iso, &mut out);
            }
            _ => {}
        }
        if matches!(moment.value, Datum::Timestamp(_) | Datum::Timestamptz(_))
            && let Some(blank) = out.iter().position(|b| *b == b' ')
        {
            out[blank] = b'T';
        }
        let mut text = String::from_utf8_lossy(&out).into_owned();
        if let Some(east) = moment.east {
            let (sign, east) = (if east < 0 { '-' } else { '+' }, east.abs());
            text += &format!("{sign}{:02}:{:02}", east / 3600, east / 60 % 60);
        }
        text
    }

    fn order(&self, a: &Moment, b: &Moment) -> Result<Option<Ordering>> {
        let (a, b, zone) = (&a.value, &b.value, self.0);
        Ok(match (a, b) {
            (Datum::Time(x), Datum::Time(y)) => Some(x.cmp(y)),
            (Datum::Time(_) | Datum::Timetz(..), Datum::Time(_) | Datum::Timetz(..)) => {
                let ((x, v), (y, w)) = (with_zone(a, zone)?, with_zone(b, zone)?);
                Some(timetz_utc(x, v).cmp(&timetz_utc(y, w)).then(v.cmp(&w)))
            }
            (Datum::Time(_) | Datum::Timetz(..), _) | (_, Datum::Time(_) | Datum::Timetz(..)) => {
                None
            }
            (Datum::Timestamptz(_), _) | (_, Datum::Timestamptz(_)) => {
                Some(instant(a, zone)?.cmp(&instant(b, zone)?))
            }
            _ => Some(local(a)?.cmp(&local(b)?)),
        })
    }
}

/// Time of day and zone in seconds west.
fn with_zone(value: &Datum, zone: Option<&crate::FormatContext>) -> Result<(i64, i32)> {
    match value {
        Datum::Timetz(t, west) => Ok((*t, *west)),
        Datum::Time(t) => {
            let zone = zone.ok_or_else(|| needs_zone("time", "timetz"))?;
            Ok((*t, -zone.time_zone.seconds_at(zone.now)))
        }
        _ => Ok((0, 0)),
    }
}

fn local(value: &Datum) -> Result<i64> {
    match value {
        Datum::Date(d) => datetime::date_to_timestamp(*d),
        Datum::Timestamp(t) => Ok(*t),
        _ => Ok(0),
    }
}

fn instant(value: &Datum, zone: Option<&crate::FormatContext>) -> Result<i64> {
    let from = match value {
        Datum::Timestamptz(t) => return Ok(*t),
        Datum::Date(_) => "date",
        _ => "timestamp",
    };
    let zone = zone.ok_or_else(|| needs_zone(from, "timestamptz"))?;
    datetime::local_to_utc(local(value)?, &zone.time_zone)
}

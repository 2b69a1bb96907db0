//! Types, functions, operators, casts and aggregates: the tables of `types`, as rows.

use base::{Oid, Result};
use types::func::{CastContext, CastMethod, Volatility};
use types::{Datum, TypeIo, func, oids};

use super::SystemCx;
use super::roles::acl_datum;
use super::row::{Row, array, oid, row};
use crate::acl::Rights;
use crate::object::AclKind;
use crate::object::ids::{PG_CATALOG, SUPERUSER};

type Rows = Result<Vec<Vec<Datum>>>;

/// The collation that a type's values have by default: of its elements for an array.
pub(super) fn collation_of(t: &TypeIo) -> u32 {
    match TypeIo::get(t.element).filter(|_| t.category == b'A').unwrap_or(t) {
        t if t.oid == oids::NAME => 950,
        t if t.category == b'S' && t.oid != oids::CHAR => 100,
        _ => 0,
    }
}

/// Where a type's values may be kept: plain, main or extended.
pub(super) fn storage_of(t: &TypeIo) -> char {
    match t.len {
        _ if t.oid == oids::NUMERIC => 'm',
        0.. => 'p',
        _ => 'x',
    }
}

fn type_row(t: &TypeIo) -> Vec<Datum> {
    let kind = match t.category {
        b'P' | b'X' => 'p',
        _ if types::range::subtype(t.oid).is_some() => 'r',
        _ if types::range::range_of(t.oid).is_some() => 'm',
        _ => 'b',
    };
    row(PG_CATALOG, "pg_type")
        .set("oid", oid(t.oid.0))
        .set("typname", t.name)
        .set("typnamespace", oid(PG_CATALOG))
        .set("typowner", oid(SUPERUSER))
        .set("typlen", t.len)
        .set("typbyval", t.by_value)
        .set("typtype", kind)
        .set("typcategory", t.category as char)
        .set("typispreferred", t.preferred)
        .set("typisdefined", true)
        .set("typdelim", ',')
        .set("typrelid", oid(0))
        .fill(
            &[
                "typsubscript",
                "typinput",
                "typoutput",
                "typreceive",
                "typsend",
                "typmodin",
                "typmodout",
                "typanalyze",
                "typbasetype",
            ],
            oid(0),
        )
        .set("typcollation", oid(collation_of(t)))
        .set("typelem", oid(t.element.0))
        .set("typarray", oid(t.array.0))
        .set("typalign", t.align as char)
        .set("typstorage", storage_of(t))
        .set("typnotnull", false)
        .set("typtypmod", -1)
        .set("typndims", 0)
        .done()
}

pub(super) fn pg_type(_cx: &SystemCx<'_>) -> Rows {
    Ok(TypeIo::all().iter().map(type_row).collect())
}

fn oid_list(list: &[Oid]) -> Datum {
    array(oids::OID, 0, list.iter().map(|o| Datum::Oid(o.0)).collect())
}

fn proc_row(id: Oid, name: &str, args: &[Oid], result: Oid, kind: char) -> Row {
    row(PG_CATALOG, "pg_proc")
        .set("oid", oid(id.0))
        .set("proname", name)
        .set("pronamespace", oid(PG_CATALOG))
        .set("proowner", oid(SUPERUSER))
        .set("prolang", oid(12))
        .set("procost", 1f32)
        .set("prorows", 0f32)
        .fill(&["provariadic", "prosupport"], oid(0))
        .set("prokind", kind)
        .fill(&["prosecdef", "proleakproof", "proisstrict", "proretset"], Datum::Bool(false))
        .set("provolatile", 'i')
        .set("proparallel", 's')
        .set("pronargs", args.len() as i16)
        .set("pronargdefaults", 0i16)
        .set("prorettype", oid(result.0))
        .set("proargtypes", oid_list(args))
        .set("prosrc", name)
}

/// The rights on a function, when not everybody may call it.
fn function_acl(cx: &SystemCx<'_>, id: u32) -> Datum {
    if cx.catalog.acl(AclKind::Function, id, 0).is_none() && !crate::acl::is_restricted(id) {
        return Datum::Null;
    }
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    acl_datum(cx, &rights.items(AclKind::Function, id))
}

pub(super) fn pg_proc(cx: &SystemCx<'_>) -> Rows {
    let function = |f: &func::FunctionRow| {
        let variadic = if f.variadic { f.args.last().map_or(0, |a| a.0) } else { 0 };
        proc_row(f.oid, f.name, f.args, f.result, 'f')
            .set("provariadic", oid(variadic))
            .set("proisstrict", f.strict)
            .set("proretset", f.returns_set)
            .set("pronargdefaults", f.defaults.len() as i16)
            .set("proacl", function_acl(cx, f.oid.0))
            .set(
                "provolatile",
                match f.volatility {
                    Volatility::Immutable => 'i',
                    Volatility::Stable => 's',
                    Volatility::Volatile => 'v',
                },
            )
            .done()
    };
    let aggregate = |a: &func::AggregateRow| proc_row(a.oid, a.name, a.args, a.result, 'a').done();
    let mut out: Vec<_> = func::functions().iter().map(function).collect();
    out.extend(func::aggregates().iter().map(aggregate));
    Ok(out)
}

pub(super) fn pg_operator(_cx: &SystemCx<'_>) -> Rows {
    let one = |o: &func::OperatorRow| {
        row(PG_CATALOG, "pg_operator")
            .set("oid", oid(o.oid.0))
            .set("oprname", o.name)
            .set("oprnamespace", oid(PG_CATALOG))
            .set("oprowner", oid(SUPERUSER))
            .set("oprkind", if o.left.0 == 0 { 'l' } else { 'b' })
            .fill(&["oprcanmerge", "oprcanhash"], Datum::Bool(o.name == "="))
            .set("oprleft", oid(o.left.0))
            .set("oprright", oid(o.right.0))
            .set("oprresult", oid(o.result.0))
            .set("oprcom", oid(o.commutator.0))
            .set("oprnegate", oid(o.negator.0))
            .set("oprcode", oid(o.function.0))
            .fill(&["oprrest", "oprjoin"], oid(0))
            .done()
    };
    Ok(func::operators().iter().map(one).collect())
}

pub(super) fn pg_cast(_cx: &SystemCx<'_>) -> Rows {
    let one = |(i, c): (usize, &func::CastRow)| {
        let (method, function) = match c.method {
            CastMethod::Function(f) => ('f', f.0),
            CastMethod::Binary => ('b', 0),
            CastMethod::InOut => ('i', 0),
        };
        let context = match c.context {
            CastContext::Explicit => 'e',
            CastContext::Assignment => 'a',
            CastContext::Implicit => 'i',
        };
        row(PG_CATALOG, "pg_cast")
            .set("oid", oid(10000 + i as u32))
            .set("castsource", oid(c.source.0))
            .set("casttarget", oid(c.target.0))
            .set("castfunc", oid(function))
            .set("castcontext", context)
            .set("castmethod", method)
            .done()
    };
    Ok(func::casts().iter().enumerate().map(one).collect())
}

pub(super) fn pg_aggregate(_cx: &SystemCx<'_>) -> Rows {
    let one = |a: &func::AggregateRow| {
        row(PG_CATALOG, "pg_aggregate")
            .set("aggfnoid", oid(a.oid.0))
            .set("aggkind", 'n')
            .set("aggnumdirectargs", 0i16)
            .done()
    };
    Ok(func::aggregates().iter().map(one).collect())
}

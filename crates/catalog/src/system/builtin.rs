//! Types, functions, operators, casts and aggregates: the tables of `types`, as rows, with what
//! [`facts`] adds to them; operator classes.

use base::{Oid, Result};
use types::func::{self, Volatility};
use types::{Datum, TypeIo, oids};

use super::facts::{self, Fact, field, kind, operator};
use super::row::{Row, array, oid, row};
use crate::acl::Rights;
use crate::collation::of_built_in;
use crate::object::ids::{INFORMATION_SCHEMA, PG_CATALOG, SUPERUSER};
use crate::object::{AclKind, Id};
use crate::system::acl_rows::acl_datum;
use crate::system::cx::SystemCx;
use crate::system::names::storage_of;
use crate::system::tables::{SystemTable, tables};

type Rows = Result<Vec<Vec<Datum>>>;

fn type_row(t: &TypeIo) -> Vec<Datum> {
    let kind = match t.category {
        b'P' | b'X' => 'p',
        _ if types::range::subtype(t.oid).is_some() => 'r',
        _ if types::range::range_of(t.oid).is_some() => 'm',
        _ => 'b',
    };
    let mut out = row(PG_CATALOG, "pg_type")
        .set("oid", oid(t.oid.0))
        .set("typname", t.name.as_str())
        .set("typnamespace", oid(PG_CATALOG))
        .set("typowner", oid(SUPERUSER))
        .set("typlen", t.len)
        .set("typbyval", t.by_value)
        .set("typtype", kind)
        .set("typcategory", t.category as char)
        .set("typispreferred", t.preferred)
        .set("typisdefined", true)
        .set("typdelim", ',')
        .fill(&["typrelid", "typbasetype"], oid(0))
        .set("typcollation", oid(of_built_in(t)))
        .set("typelem", oid(t.element.0))
        .set("typarray", oid(t.array.0))
        .set("typalign", t.align as char)
        .set("typstorage", storage_of(t))
        .set("typnotnull", false)
        .set("typtypmod", -1)
        .set("typndims", 0);
    let fact = facts::kinds().get(t.oid.0);
    for (n, column) in TYPE_FUNCTIONS.iter().enumerate() {
        out = out.set(column, fact.map_or(oid(0), |f| f.oid(n + 4)));
    }
    if let Some(f) = fact {
        // Types that can be subscripted have one, though they are no arrays.
        out = out.set("typelem", f.oid(kind::ELEMENT));
        out = out.set("typdelim", f.letter(3));
    }
    out.done()
}

/// The functions behind a type, in the order of `facts/types.txt`.
const TYPE_FUNCTIONS: [&str; 8] = [
    "typsubscript",
    "typinput",
    "typoutput",
    "typreceive",
    "typsend",
    "typmodin",
    "typmodout",
    "typanalyze",
];

/// A type whose values there are not here: by what PostgreSQL's catalog says.
fn absent_type(f: Fact) -> Vec<Datum> {
    let schema = match f.text(kind::SCHEMA) {
        "pg_catalog" => PG_CATALOG,
        _ => INFORMATION_SCHEMA,
    };
    let mut out = row(PG_CATALOG, "pg_type")
        .set("oid", f.oid(0))
        .set("typname", f.text(kind::NAME))
        .set("typnamespace", oid(schema))
        .set("typowner", oid(SUPERUSER))
        .set("typlen", f.small(kind::LENGTH))
        .set("typbyval", f.flag(kind::BY_VALUE))
        .set("typtype", f.letter(1))
        .set("typcategory", f.letter(kind::CATEGORY))
        .set("typispreferred", f.flag(kind::PREFERRED))
        .set("typisdefined", true)
        .set("typdelim", f.letter(3))
        .set("typrelid", f.oid(kind::RELATION))
        .set("typelem", f.oid(kind::ELEMENT))
        .set("typarray", f.oid(kind::ARRAY))
        .set("typalign", f.letter(kind::ALIGNMENT))
        .set("typstorage", f.letter(2))
        .set("typnotnull", f.flag(kind::NOT_NULL))
        .set("typbasetype", f.oid(kind::BASE))
        .set("typtypmod", f.text(kind::TYPMOD).parse().unwrap_or(-1))
        .set("typndims", 0)
        .set("typcollation", f.oid(kind::COLLATION));
    for (n, column) in TYPE_FUNCTIONS.iter().enumerate() {
        out = out.set(column, f.oid(n + 4));
    }
    out.done()
}

/// The row of one type; None: it is none of the common ones.
fn type_of_id(cx: &SystemCx<'_>, id: Id) -> Option<Vec<Datum>> {
    match id >= Oid::FIRST_USER.0 {
        true => super::user_types::type_row(cx, id),
        false => TypeIo::all().iter().find(|t| t.oid.0 == id).map(type_row),
    }
}

pub(super) fn pg_type(cx: &SystemCx<'_>) -> Rows {
    if let Some(one) = cx.wanted_at(0).and_then(|id| type_of_id(cx, id)) {
        return Ok(vec![one]);
    }
    let absent = facts::kinds().iter().filter(|f| !has_type(f.id(0)) && facts::is_kind_here(*f));
    let mut out: Vec<_> =
        TypeIo::all().iter().map(type_row).chain(absent.map(absent_type)).collect();
    out.extend(tables().iter().filter_map(|t| {
        let id = facts::own_row_types().get(&t.oid.0)?;
        Some(own_row_type(*id, t))
    }));
    super::user_types::pg_type(cx, &mut out);
    Ok(out)
}

/// The row type of a system table that PostgreSQL does not have.
fn own_row_type(id: Id, table: &SystemTable) -> Vec<Datum> {
    row(PG_CATALOG, "pg_type")
        .set("oid", oid(id))
        .set("typname", table.name)
        .set("typnamespace", oid(table.schema))
        .set("typowner", oid(SUPERUSER))
        .set("typlen", -1i16)
        .set("typtype", 'c')
        .set("typcategory", 'C')
        .set("typdelim", ',')
        .set("typrelid", oid(table.oid.0))
        .set("typalign", 'd')
        .set("typstorage", 'x')
        .set("typisdefined", true)
        .fill(&["typbyval", "typispreferred", "typnotnull"], Datum::Bool(false))
        .fill(&["typelem", "typarray", "typbasetype", "typcollation"], oid(0))
        .fill(&TYPE_FUNCTIONS, oid(0))
        .set("typinput", oid(2290))
        .set("typoutput", oid(2291))
        .set("typreceive", oid(2402))
        .set("typsend", oid(2403))
        .set("typtypmod", -1)
        .set("typndims", 0)
        .done()
}

fn oid_list(list: &[Oid]) -> Datum {
    facts::oid_vector(list.iter().map(|o| o.0))
}

fn proc_row(id: Id, name: &str) -> Row {
    row(PG_CATALOG, "pg_proc")
        .set("oid", oid(id))
        .set("proname", name)
        .set("pronamespace", oid(PG_CATALOG))
        .set("proowner", oid(SUPERUSER))
        .set("prolang", oid(12))
        .set("procost", 1f32)
        .set("prorows", 0f32)
        .fill(&["provariadic", "prosupport"], oid(0))
        .fill(&["prosecdef", "proleakproof"], Datum::Bool(false))
        .set("pronargdefaults", 0i16)
        .set("proparallel", 's')
}

/// A function of PostgreSQL's, by what its catalog says.
fn builtin_function(f: Fact) -> Row {
    let flags = f.text(field::FLAGS).as_bytes();
    let flag = |n: usize| flags.get(n).copied().unwrap_or(b'-');
    let number = |n: usize, usual: f32| f.text(n).parse().unwrap_or(usual);
    let names = |n: usize, element: Oid, value: &dyn Fn(&str) -> Datum| match f.text(n) {
        "" => Datum::Null,
        list => array(element, 1, list.split(' ').map(value).collect()),
    };
    let modes: Vec<Datum> = f.text(field::MODES).bytes().map(Datum::Char).collect();
    proc_row(f.id(0), f.text(field::NAME))
        .set("prokind", f.letter(field::KIND))
        .set("prolang", oid(f.text(field::LANGUAGE).parse().unwrap_or(12)))
        .set("procost", number(field::COST, 1.0))
        .set("prorows", number(field::ROWS, 0.0))
        .set("provariadic", f.oid(field::VARIADIC))
        .set("prosupport", f.oid(field::SUPPORT))
        .set("proisstrict", flag(0) == b's')
        .set("proretset", flag(1) == b'r')
        .set("provolatile", char::from(flag(2)))
        .set("proparallel", char::from(flag(3)))
        .set("proleakproof", flag(4) == b'l')
        .set("pronargs", f.ids(field::ARGUMENTS).count() as i16)
        .set("prorettype", f.oid(field::RESULT))
        .set("proargtypes", facts::oid_vector(f.ids(field::ARGUMENTS)))
        .set(
            "proallargtypes",
            names(field::ALL_TYPES, oids::OID, &|t| oid(t.parse().unwrap_or_default())),
        )
        .set(
            "proargmodes",
            if modes.is_empty() { Datum::Null } else { array(oids::CHAR, 1, modes) },
        )
        .set("proargnames", names(field::NAMES, oids::TEXT, &|t| Datum::Text(t.into())))
        .set(
            "prosrc",
            match f.text(field::SOURCE) {
                "" => "see system_functions.sql",
                source => source,
            },
        )
        .set(
            "probin",
            super::libraries::of_function(f.text(field::NAME))
                .filter(|_| f.text(field::LANGUAGE) == "13")
                .map_or(Datum::Null, |library| Datum::text(&format!("$libdir/{library}"))),
        )
}

/// The defaults of a function's arguments, from how it writes them.
fn defaults_of(arguments: &str) -> String {
    let defaults = arguments.split(" DEFAULT ").skip(1);
    // An argument ends where the next one begins: with a name, or with the list.
    let one = |text: &'_ str| match text.rsplit_once(", ") {
        Some((value, _)) => value.to_owned(),
        None => text.to_owned(),
    };
    defaults.map(one).collect::<Vec<_>>().join(", ")
}

/// A function that PostgreSQL does not have.
fn own_function(f: &func::FunctionRow) -> Row {
    let variadic = if f.variadic { f.args.last().map_or(0, |a| a.0) } else { 0 };
    let volatility = match f.volatility {
        Volatility::Immutable => 'i',
        Volatility::Stable => 's',
        Volatility::Volatile => 'v',
    };
    let (schema, name) = match f.name.split_once('.') {
        Some((_, name)) => (INFORMATION_SCHEMA, name),
        None => (PG_CATALOG, f.name),
    };
    proc_row(f.oid.0, name)
        .set("pronamespace", oid(schema))
        .set("prokind", 'f')
        .set("provariadic", oid(variadic))
        .set("proisstrict", f.strict)
        .set("proretset", f.returns_set)
        .set("prorows", if f.returns_set { 1000f32 } else { 0f32 })
        .set("provolatile", volatility)
        .set("pronargs", f.args.len() as i16)
        .set("prorettype", oid(f.result.0))
        .set("proargtypes", oid_list(f.args))
        .set(
            "prosrc",
            match f.args.len() {
                0 => f.name.to_owned(),
                // Of one name there may be several.
                count => format!("{}_{count}", f.name),
            }
            .as_str(),
        )
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
    let with_rights = |row: Row, f: &func::FunctionRow| {
        let defaults = f.defaults.len() as i16;
        row.set("pronargdefaults", defaults).set("proacl", function_acl(cx, f.oid.0)).done()
    };
    let one = |f: Fact| {
        let row = builtin_function(f);
        match func::function(Oid(f.id(0))) {
            Some(function) if !function.defaults.is_empty() => {
                let defaults = defaults_of(f.text(field::SIGNATURE));
                with_rights(row.set("proargdefaults", defaults.as_str()), function)
            }
            Some(function) => with_rights(row, function),
            None => row.set("proacl", function_acl(cx, f.id(0))).done(),
        }
    };
    if let Some(id) = cx.wanted_at(0) {
        let own = || cx.catalog.function(id).map(|f| user_proc(cx, f));
        if let Some(one) = facts::functions().get(id).map(one).or_else(own) {
            return Ok(vec![one]);
        }
    }
    let known = facts::functions().iter().map(one);
    let own = func::functions().iter().filter(|f| facts::functions().get(f.oid.0).is_none());
    let own_function = |f: &func::FunctionRow| match f.defaults.len() {
        0 => own_function(f),
        count => own_function(f).set("proargdefaults", vec!["NULL"; count].join(", ").as_str()),
    };
    let mut out: Vec<_> = known.chain(own.map(|f| with_rights(own_function(f), f))).collect();
    out.extend(cx.catalog.functions().map(|f| user_proc(cx, f)));
    Ok(out)
}

/// A user's function or procedure.
fn user_proc(cx: &SystemCx<'_>, f: &crate::Function) -> Vec<Datum> {
    let kind = match &f.aggregate {
        Some(_) => 'a',
        None if f.procedure => 'p',
        None => 'f',
    };
    let inputs = f.input_types();
    let variadic = f.args.iter().find(|a| a.mode == 'v').map_or(0, |a| match Oid(a.ty) {
        oids::ANYARRAY => oids::ANYELEMENT.0,
        oids::ANYCOMPATIBLEARRAY => oids::ANYCOMPATIBLE.0,
        oids::ANY => oids::ANY.0,
        array => TypeIo::get(array).map_or(0, |t| t.element.0),
    });
    let text = |s: &str| Datum::Text(s.into());
    let mut row = proc_row(f.oid, &f.name)
        .set("prokind", kind)
        .set("pronargs", inputs.len() as i16)
        .set("prorettype", oid(f.result))
        .set("proargtypes", oid_list(&inputs))
        .set("pronamespace", oid(f.schema))
        .set("proowner", oid(f.owner))
        .set("prolang", oid(super::named::language(&f.language).unwrap_or(14)))
        .set("procost", f.cost)
        .set("prorows", f.rows)
        .set("provariadic", oid(variadic))
        .set("prosupport", oid(f.support))
        .set("prosecdef", f.security_definer)
        .set("proleakproof", f.leakproof)
        .set("proisstrict", f.strict)
        .set("proretset", f.set)
        .set("provolatile", f.volatility)
        .set("proparallel", f.parallel)
        .set("pronargdefaults", f.inputs().filter(|a| a.default.is_some()).count() as i16)
        .set("prosrc", if f.standard_body { "" } else { f.body.as_str() })
        .set("proacl", function_acl(cx, f.oid));
    if !f.library.is_empty() {
        row = row.set("probin", f.library.as_str());
    }
    if f.args.iter().any(|a| a.mode != 'i') {
        let types = f.args.iter().map(|a| oid(a.ty)).collect();
        let modes = f.args.iter().map(|a| Datum::Char(a.mode as u8)).collect();
        row = row.set("proallargtypes", array(oids::OID, 1, types));
        row = row.set("proargmodes", array(oids::CHAR, 1, modes));
    }
    if f.args.iter().any(|a| !a.name.is_empty()) {
        let names = f.args.iter().map(|a| text(&a.name)).collect();
        row = row.set("proargnames", array(oids::TEXT, 1, names));
    }
    let defaults: Vec<&str> = f.inputs().filter_map(|a| a.default.as_deref()).collect();
    if !defaults.is_empty() {
        row = row.set("proargdefaults", defaults.join(", ").as_str());
    }
    if let Some(body) = crate::routine::standard_body(f) {
        row = row.set("prosqlbody", body.as_str());
    }
    if !f.settings.is_empty() {
        let all = f.settings.iter().map(|(n, v)| text(&format!("{n}={v}"))).collect();
        row = row.set("proconfig", array(oids::TEXT, 1, all));
    }
    row.done()
}

pub(super) fn pg_operator(cx: &SystemCx<'_>) -> Rows {
    let one = |f: Fact| {
        row(PG_CATALOG, "pg_operator")
            .set("oid", f.oid(0))
            .set("oprname", f.text(operator::NAME))
            .set("oprnamespace", oid(PG_CATALOG))
            .set("oprowner", oid(SUPERUSER))
            .set("oprkind", f.letter(operator::KIND))
            .set("oprcanmerge", f.flag(1))
            .set("oprcanhash", f.flag(2))
            .set("oprleft", f.oid(operator::LEFT))
            .set("oprright", f.oid(operator::RIGHT))
            .set("oprresult", f.oid(operator::RESULT))
            .set("oprcom", f.oid(operator::COMMUTATOR))
            .set("oprnegate", f.oid(operator::NEGATOR))
            .set("oprcode", f.oid(operator::FUNCTION))
            .set("oprrest", f.oid(3))
            .set("oprjoin", f.oid(4))
            .done()
    };
    let mut out = facts::operators().iter().map(one).collect();
    super::defined::operators(cx, &mut out);
    Ok(out)
}

pub(super) fn pg_cast(cx: &SystemCx<'_>) -> Rows {
    let one = |f: Fact| {
        row(PG_CATALOG, "pg_cast")
            .set("oid", f.oid(0))
            .set("castsource", f.oid(1))
            .set("casttarget", f.oid(2))
            .set("castfunc", f.oid(3))
            .set("castcontext", f.letter(4))
            .set("castmethod", f.letter(5))
            .done()
    };
    let mut out = facts::casts().iter().map(one).collect();
    super::defined::casts(cx, &mut out);
    Ok(out)
}

/// The columns of `pg_aggregate` that name functions, in the order of `facts/aggregates.txt`.
const AGGREGATE_FUNCTIONS: [&str; 8] = [
    "aggtransfn",
    "aggfinalfn",
    "aggcombinefn",
    "aggserialfn",
    "aggdeserialfn",
    "aggmtransfn",
    "aggminvtransfn",
    "aggmfinalfn",
];

pub(super) fn pg_aggregate(cx: &SystemCx<'_>) -> Rows {
    let one = |f: Fact| {
        let mut out = row(PG_CATALOG, "pg_aggregate")
            .set("aggfnoid", f.oid(0))
            .set("aggkind", f.letter(1))
            .set("aggnumdirectargs", f.small(2))
            .set("aggfinalextra", f.flag(11))
            .set("aggmfinalextra", f.flag(12))
            .set("aggfinalmodify", f.letter(13))
            .set("aggmfinalmodify", f.letter(14))
            .set("aggsortop", f.oid(15))
            .set("aggtranstype", f.oid(16))
            .set("aggtransspace", i32::from(f.small(17)))
            .set("aggmtranstype", f.oid(18))
            .set("aggmtransspace", i32::from(f.small(19)))
            .set("agginitval", f.optional(20))
            .set("aggminitval", f.optional(21));
        for (n, column) in AGGREGATE_FUNCTIONS.iter().enumerate() {
            out = out.set(column, f.oid(n + 3));
        }
        out.done()
    };
    let mut out = facts::aggregates().iter().map(one).collect();
    super::defined::aggregates(cx, &mut out);
    Ok(out)
}

/// Whether the server has a type; the polymorphic ones stand for many.
pub(super) fn has_type(id: Id) -> bool {
    TypeIo::get(Oid(id)).is_some()
}

pub(super) fn pg_opclass(cx: &SystemCx<'_>) -> Rows {
    let one = |f: Fact| {
        row(PG_CATALOG, "pg_opclass")
            .set("oid", f.oid(0))
            .set("opcmethod", f.oid(6))
            .set("opcname", f.text(1))
            .set("opcnamespace", oid(PG_CATALOG))
            .set("opcowner", oid(SUPERUSER))
            .set("opcfamily", f.oid(2))
            .set("opcintype", f.oid(3))
            .set("opcdefault", f.flag(4))
            .set("opckeytype", f.oid(5))
            .done()
    };
    let mut out = facts::classes().iter().map(one).collect();
    super::defined::classes(cx, &mut out);
    Ok(out)
}

pub(super) fn pg_opfamily(cx: &SystemCx<'_>) -> Rows {
    let one = |f: Fact| {
        row(PG_CATALOG, "pg_opfamily")
            .set("oid", f.oid(0))
            .set("opfmethod", f.oid(2))
            .set("opfname", f.text(1))
            .set("opfnamespace", oid(PG_CATALOG))
            .set("opfowner", oid(SUPERUSER))
            .done()
    };
    let mut out = facts::families().iter().map(one).collect();
    super::defined::families(cx, &mut out);
    Ok(out)
}

pub(super) fn pg_amop(cx: &SystemCx<'_>) -> Rows {
    let one = |f: Fact| {
        row(PG_CATALOG, "pg_amop")
            .set("oid", f.oid(0))
            .set("amopfamily", f.oid(1))
            .set("amoplefttype", f.oid(2))
            .set("amoprighttype", f.oid(3))
            .set("amopstrategy", f.small(4))
            .set("amoppurpose", f.letter(6))
            .set("amopopr", f.oid(5))
            .set("amopmethod", f.oid(7))
            .set("amopsortfamily", f.oid(8))
            .done()
    };
    let mut out = facts::family_operators().iter().map(one).collect();
    super::defined::family_operators(cx, &mut out);
    Ok(out)
}

pub(super) fn pg_amproc(cx: &SystemCx<'_>) -> Rows {
    let one = |f: Fact| {
        row(PG_CATALOG, "pg_amproc")
            .set("oid", f.oid(0))
            .set("amprocfamily", f.oid(1))
            .set("amproclefttype", f.oid(2))
            .set("amprocrighttype", f.oid(3))
            .set("amprocnum", f.small(4))
            .set("amproc", f.oid(5))
            .done()
    };
    let mut out = facts::family_functions().iter().map(one).collect();
    super::defined::family_functions(cx, &mut out);
    Ok(out)
}

pub(super) fn pg_range(cx: &SystemCx<'_>) -> Rows {
    let one = |f: Fact| {
        row(PG_CATALOG, "pg_range")
            .set("rngtypid", f.oid(0))
            .set("rngsubtype", f.oid(1))
            .set("rngmultitypid", f.oid(2))
            .set("rngcollation", f.oid(3))
            .set("rngsubopc", f.oid(4))
            .set("rngcanonical", f.oid(5))
            .set("rngsubdiff", f.oid(6))
            .done()
    };
    let mut out = facts::ranges().iter().map(one).collect();
    super::defined::ranges(cx, &mut out);
    Ok(out)
}

/// `pg_get_keywords`: the words of PostgreSQL 15's grammar.
pub(super) fn pg_get_keywords(_cx: &SystemCx<'_>) -> Rows {
    let one = |f: Fact| {
        let category = match f.letter(1) {
            'U' => "unreserved",
            'C' => "unreserved (cannot be function or type name)",
            'T' => "reserved (can be function or type name)",
            _ => "reserved",
        };
        row(PG_CATALOG, "pg_get_keywords()")
            .set("word", f.text(0))
            .set("catcode", f.letter(1))
            .set("barelabel", f.flag(2))
            .set("catdesc", category)
            .set("baredesc", if f.flag(2) { "can be bare label" } else { "requires AS" })
            .done()
    };
    Ok(facts::keywords().iter().map(one).collect())
}

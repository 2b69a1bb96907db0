//! Types that users made, the row types of tables, and the arrays over both: their rows in `pg_type`,
//! `pg_enum`, `pg_class`, `pg_attribute` and `pg_constraint`, and their views in `information_schema`.

use base::{Oid, Result};
use types::func::functions_named;
use types::io::format_type;
use types::user::{UserKind, UserType as Known};
use types::{Datum, TypeIo, oids};

use super::row::{Row, oid, row};
use crate::acl::Rights;
use crate::object::ids::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::object::{AclKind, BaseKind, Constraint, ConstraintKind, Id, UserType, UserTypeKind};
use crate::snapshot::TypeId;
use crate::system::acl_rows::acl_datum;
use crate::system::cx::SystemCx;
use crate::system::names::{database_name, storage_of};
use crate::system::relation_rows::{attribute, class_row};

type Rows = Result<Vec<Vec<Datum>>>;

/// All oids of such types, in order.
fn all(cx: &SystemCx<'_>) -> Vec<Id> {
    let mut out = Vec::new();
    cx.catalog.user_types().for_each(|t| match t.kind {
        UserTypeKind::Shell => out.push(t.oid),
        _ => out.extend([t.oid, t.array]),
    });
    let rows = cx.catalog.tables().filter(|t| t.row_type[0] != 0);
    rows.for_each(|t| out.extend(t.row_type));
    out.sort_unstable();
    out
}

/// The rows of `pg_type` for them.
pub(super) fn pg_type(cx: &SystemCx<'_>, out: &mut Vec<Vec<Datum>>) {
    out.extend(all(cx).into_iter().filter_map(|ty| type_row(cx, ty)));
}

/// The storage that a base type which somebody made was given, also of domains over it.
pub(super) fn storage_of_own(cx: &SystemCx<'_>, ty: Id) -> Option<char> {
    (ty >= base::Oid::FIRST_USER.0).then(|| base_below(cx, ty)).flatten().map(|b| b.storage)
}

/// The function of this name, by its oid; 0 for none.
fn function(name: &str) -> Datum {
    oid(functions_named(name).first().map_or(0, |f| f.oid.0))
}

/// The row of a type that somebody made, of its array, or of a table's rows.
pub(super) fn type_row(cx: &SystemCx<'_>, ty: Id) -> Option<Vec<Datum>> {
    let known = cx.catalog.known_type(ty)?;
    let (namespace, owner, name) = cx.catalog.type_place(ty)?;
    let class = match cx.catalog.type_id(ty)? {
        TypeId::User(id, false) => cx.catalog.user_type(id)?.class,
        TypeId::Row(table, false) => table,
        _ => 0,
    };
    let io = &known.io;
    let domain = match cx.catalog.user_type(ty).map(|t| &t.kind) {
        Some(UserTypeKind::Domain { base, typmod, not_null, default, .. }) => {
            Some((*base, *typmod, *not_null, default.clone()))
        }
        _ => None,
    };
    let below = domain.as_ref().and_then(|d| built_in_below(cx, d.0));
    let (kind, [input, output, receive, send]) = match &known.kind {
        UserKind::Enum(_) => ('e', [3506, 3507, 3532, 3533]),
        UserKind::Composite { .. } => ('c', [2290, 2291, 2402, 2403]),
        UserKind::Array => ('b', [750, 751, 2400, 2401]),
        UserKind::Domain { .. } => ('d', [2597, 0, 2598, 0]),
        UserKind::Range { .. } => ('r', [3834, 3835, 3836, 3837]),
        UserKind::Multirange { .. } => ('m', [4231, 4232, 4233, 4234]),
        UserKind::Base { .. } => ('b', [0; 4]),
        UserKind::Shell => ('p', [0; 4]),
        // Its functions are those that the statement named which created it.
        UserKind::Open(_) => ('b', [0; 4]),
    };
    // A domain takes these over from a base type that a user made; an array the functions of typmods.
    let made = match &domain {
        Some((base, ..)) => base_below(cx, *base),
        None => base_below(cx, io.element.0).filter(|_| matches!(known.kind, UserKind::Array)),
    };
    let taken = made.map_or([0; 8], |base| base.functions);
    let (output, send) = match &below {
        Some(io) => (function(&format!("{}out", io.name)), function(&format!("{}send", io.name))),
        None if domain.is_some() && made.is_some() => (oid(taken[1]), oid(taken[3])),
        None => (oid(output), oid(send)),
    };
    let array = matches!(known.kind, UserKind::Array);
    let storage = match &known.kind {
        UserKind::Enum(_) => 'p',
        UserKind::Domain { .. } if made.is_some() => made.map_or('x', |base| base.storage),
        _ => below.as_ref().map_or('x', |io| storage_of(io)),
    };
    let out = row(PG_CATALOG, "pg_type")
        .set("oid", oid(ty))
        .set("typname", name.as_str())
        .set("typnamespace", oid(namespace))
        .set("typowner", oid(owner))
        .set("typlen", io.len)
        .set("typbyval", io.by_value)
        .set("typtype", kind)
        .set("typcategory", io.category as char)
        .set("typispreferred", false)
        .set("typisdefined", true)
        .set("typdelim", ',')
        .set("typrelid", oid(class))
        .set("typsubscript", oid(if array { 6179 } else { 0 }))
        .set("typelem", oid(io.element.0))
        .set("typarray", oid(io.array.0))
        .set("typinput", oid(input))
        .set("typoutput", output)
        .set("typreceive", oid(receive))
        .set("typsend", send)
        .set("typmodin", oid(if array { taken[4] } else { 0 }))
        .set("typmodout", oid(if array { taken[5] } else { 0 }))
        .set("typanalyze", oid(if array { 3816 } else { taken[6] }))
        .set("typalign", io.align as char)
        .set("typstorage", storage)
        .set("typnotnull", domain.as_ref().is_some_and(|d| d.2))
        .set("typbasetype", oid(domain.as_ref().map_or(0, |d| d.0)))
        .set("typtypmod", domain.as_ref().map_or(-1, |d| d.1))
        .set("typndims", i32::from(domain.is_some() && io.category == b'A'))
        .set("typcollation", oid(cx.catalog.type_collation(ty)));
    let out = match cx.catalog.acl(AclKind::Type, ty, 0) {
        Some(_) => {
            let rights = Rights { catalog: cx.catalog, database: cx.database };
            out.set("typacl", acl_datum(cx, &rights.items(AclKind::Type, ty)))
        }
        None => out,
    };
    let default = domain.and_then(|d| {
        let labels = types::user::labels(Oid(d.0));
        Some(Datum::text(&types::user::with_labels(&d.3?, &labels)))
    });
    let default = default.unwrap_or(Datum::Null);
    let out = out.fill(&["typdefaultbin", "typdefault"], default);
    Some(match cx.catalog.user_type(ty).map(|t| &t.kind) {
        Some(UserTypeKind::Base(base)) => base_row(out, base),
        Some(UserTypeKind::Shell) => shell_row(out),
        Some(UserTypeKind::Range(_)) => out.set("typanalyze", oid(3916)).done(),
        Some(UserTypeKind::Multirange { .. }) => out.set("typanalyze", oid(4242)).done(),
        _ => out.done(),
    })
}

/// The columns of a base type's row that are its own.
fn base_row(mut out: Row, base: &BaseKind) -> Vec<Datum> {
    const COLUMNS: [&str; 8] = [
        "typinput",
        "typoutput",
        "typreceive",
        "typsend",
        "typmodin",
        "typmodout",
        "typanalyze",
        "typsubscript",
    ];
    for (column, function) in COLUMNS.iter().zip(base.functions) {
        out = out.set(column, oid(function));
    }
    out.set("typdelim", base.delimiter)
        .set("typelem", oid(base.element))
        .set("typstorage", base.storage)
        .set("typispreferred", base.preferred)
        .set("typcollation", oid(if base.collatable { 100 } else { 0 }))
        .set("typdefault", base.default.as_deref().map_or(Datum::Null, Datum::text))
        .done()
}

/// A type that is only announced.
fn shell_row(out: Row) -> Vec<Datum> {
    out.set("typlen", 4i16)
        .set("typbyval", true)
        .set("typisdefined", false)
        .set("typarray", oid(0))
        .set("typinput", oid(2398))
        .set("typoutput", oid(2399))
        .set("typalign", 'i')
        .set("typstorage", 'p')
        .done()
}

/// The base type that a user made, below domains.
fn base_below<'c>(cx: &SystemCx<'c>, ty: Id) -> Option<&'c BaseKind> {
    let user = cx.catalog.user_type(ty).filter(|user| user.oid == ty)?;
    match &user.kind {
        UserTypeKind::Base(base) => Some(base),
        UserTypeKind::Domain { base, .. } => base_below(cx, *base),
        _ => None,
    }
}

/// The built-in type below a domain, if it is one.
fn built_in_below(cx: &SystemCx<'_>, base: Id) -> Option<TypeIo> {
    match cx.catalog.known_type(base).as_deref() {
        None => TypeIo::get(Oid(base)).map(|io| TypeIo::clone(&io)),
        Some(Known { kind: UserKind::Domain { base, .. }, .. }) => built_in_below(cx, base.0),
        Some(_) => None,
    }
}

pub(super) fn pg_enum(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for ty in cx.catalog.user_types() {
        let UserTypeKind::Enum(labels) = &ty.kind else { continue };
        for label in labels {
            out.push(
                row(PG_CATALOG, "pg_enum")
                    .set("oid", oid(label.oid))
                    .set("enumtypid", oid(ty.oid))
                    .set("enumsortorder", label.order)
                    .set("enumlabel", label.name.as_str())
                    .done(),
            );
        }
    }
    Ok(out)
}

/// Composite types as `pg_class` lists them.
pub(super) fn classes(cx: &SystemCx<'_>, out: &mut Vec<Vec<Datum>>) {
    for ty in cx.catalog.user_types() {
        let UserTypeKind::Composite(columns) = &ty.kind else { continue };
        out.push(
            class_row(cx, ty.class, &ty.name, ty.schema, 0)
                .set("reltype", oid(ty.oid))
                .set("relowner", oid(ty.owner))
                .set("relkind", 'c')
                .set("relreplident", 'n')
                .set("reltuples", -1f32)
                .set("relnatts", columns.len() as i16)
                .done(),
        );
    }
}

/// Their columns.
pub(super) fn attributes(cx: &SystemCx<'_>, take: impl Fn(Id) -> bool, out: &mut Vec<Vec<Datum>>) {
    for ty in cx.catalog.user_types().filter(|ty| take(ty.class)) {
        let UserTypeKind::Composite(columns) = &ty.kind else { continue };
        for (i, c) in columns.iter().enumerate() {
            let (id, typmod) = if c.dropped { (0, -1) } else { (c.ty, c.typmod) };
            let one = attribute(ty.class, i as i16 + 1, &c.name, id, typmod);
            out.push(one.set("attisdropped", c.dropped).done());
        }
    }
}

/// Constraints of domains.
pub(super) fn constraints(cx: &SystemCx<'_>, out: &mut Vec<Vec<Datum>>) {
    for (ty, c) in domain_checks(cx) {
        let ConstraintKind::Check(sql) = &c.kind else { continue };
        out.push(
            row(PG_CATALOG, "pg_constraint")
                .set("oid", oid(c.oid))
                .set("conname", c.name.as_str())
                .set("connamespace", oid(ty.schema))
                .set("contype", 'c')
                .fill(&["condeferrable", "condeferred", "connoinherit"], Datum::Bool(false))
                .set("convalidated", !c.unvalidated)
                .fill(&["conrelid", "conindid", "conparentid", "confrelid"], oid(0))
                .set("contypid", oid(ty.oid))
                .fill(&["confupdtype", "confdeltype", "confmatchtype"], Datum::Char(b' '))
                .set("conislocal", true)
                .set("coninhcount", 0)
                .set("conbin", sql.as_str())
                .done(),
        );
    }
}

fn domain_checks<'c>(cx: &SystemCx<'c>) -> impl Iterator<Item = (&'c UserType, &'c Constraint)> {
    cx.catalog.user_types().flat_map(|ty| {
        let checks = match &ty.kind {
            UserTypeKind::Domain { checks, .. } => checks.as_slice(),
            _ => &[],
        };
        checks.iter().map(move |c| (&**ty, c))
    })
}

fn schema_name<'c>(cx: &SystemCx<'c>, id: Id) -> &'c str {
    cx.catalog.schema(id).map_or("pg_catalog", |s| s.name.as_str())
}

/// A type as `information_schema` describes it: `data_type`, and the type's schema and name.
pub(super) struct Described {
    /// Domains as the type below them, other types of users as `USER-DEFINED`.
    pub data_type: String,
    /// Schema.
    pub schema: String,
    /// Internal name.
    pub name: String,
    /// The type below domains, with its typmod.
    pub base: (Id, i32),
    /// The domain: schema and name.
    pub domain: Option<(String, String)>,
}

/// See [`Described`].
pub(super) fn described(cx: &SystemCx<'_>, ty: Id, typmod: i32) -> Described {
    let mut base = (ty, typmod);
    while let Some(UserTypeKind::Domain { base: below, typmod: inner, .. }) =
        cx.catalog.user_type(base.0).map(|t| &t.kind)
    {
        base = (*below, if base.1 < 0 { *inner } else { base.1 });
    }
    let place = |ty: Id| {
        let place = cx.catalog.type_place(ty);
        place.map(|(schema, _, name)| (schema_name(cx, schema).to_owned(), name))
    };
    let below = match cx.catalog.user_type(ty).map(|t| &t.kind) {
        Some(UserTypeKind::Domain { base, .. }) => Some(*base),
        _ => None,
    };
    let domain = below.and_then(|_| place(ty));
    // Of domains over domains only the first step is taken.
    if let Some(next) = below.filter(|id| cx.catalog.user_type(*id).is_some()) {
        let (schema, name) = place(next).unwrap_or_default();
        let data_type = "USER-DEFINED".to_owned();
        return Described { data_type, schema, name, base: (0, -1), domain };
    }
    let io = TypeIo::get(Oid(base.0));
    let (data_type, (schema, name)) = match place(base.0) {
        Some(place) => {
            let array = io.is_some_and(|io| io.category == b'A');
            (if array { "ARRAY" } else { "USER-DEFINED" }.to_owned(), place)
        }
        None => {
            let name = io.as_ref().map_or_else(String::new, |io| io.name.to_string());
            let array = io.is_some_and(|io| io.category == b'A');
            let shown = format_type(Oid(base.0), -1);
            let data_type = if array { "ARRAY".to_owned() } else { shown };
            (data_type, ("pg_catalog".to_owned(), name))
        }
    };
    Described { data_type, schema, name, base, domain }
}

/// Lengths and precisions of a type.
pub(super) fn type_facts(out: Row, (ty, typmod): (Id, i32)) -> Row {
    let numeric = |out: Row, precision: i32, radix: i32, scale: Option<i32>| {
        let out = out.set("numeric_precision", precision).set("numeric_precision_radix", radix);
        out.set("numeric_scale", scale.map_or(Datum::Null, Datum::Int4))
    };
    match Oid(ty) {
        oids::INT2 => numeric(out, 16, 2, Some(0)),
        oids::INT4 => numeric(out, 32, 2, Some(0)),
        oids::INT8 => numeric(out, 64, 2, Some(0)),
        oids::FLOAT4 => numeric(out, 24, 2, None),
        oids::FLOAT8 => numeric(out, 53, 2, None),
        oids::NUMERIC => match types::numeric::unpack_typmod(typmod) {
            Some((precision, scale)) => numeric(out, precision, 10, Some(scale)),
            None => out.set("numeric_precision_radix", 10),
        },
        oids::VARCHAR | oids::BPCHAR if typmod >= 4 => out
            .set("character_maximum_length", typmod - 4)
            .set("character_octet_length", (typmod - 4) * 4),
        oids::TEXT | oids::VARCHAR => out.set("character_octet_length", 1_073_741_824),
        oids::BIT | oids::VARBIT if typmod > 0 => out.set("character_maximum_length", typmod),
        oids::DATE => out.set("datetime_precision", 0),
        oids::TIME | oids::TIMETZ | oids::TIMESTAMP | oids::TIMESTAMPTZ => {
            out.set("datetime_precision", if typmod < 0 { 6 } else { typmod })
        }
        oids::INTERVAL => out.set("datetime_precision", 6),
        _ => out,
    }
}

pub(super) fn info_domains(cx: &SystemCx<'_>) -> Rows {
    let catalog = database_name(cx);
    let mut out = Vec::new();
    for ty in cx.catalog.user_types() {
        let UserTypeKind::Domain { base, typmod, default, .. } = &ty.kind else { continue };
        let below = described(cx, *base, *typmod);
        let mut one = row(INFORMATION_SCHEMA, "domains")
            .set("domain_catalog", catalog.clone())
            .set("domain_schema", schema_name(cx, ty.schema))
            .set("domain_name", ty.name.as_str())
            .set("data_type", below.data_type.as_str())
            .set("udt_catalog", catalog.clone())
            .set("udt_schema", below.schema.as_str())
            .set("udt_name", below.name.as_str())
            .set("dtd_identifier", "1");
        one = super::collations::named_in(cx, one, cx.catalog.type_collation(ty.oid));
        if let Some(default) = default {
            one = one.set("domain_default", default.as_str());
        }
        out.push(type_facts(one, below.base).done());
    }
    Ok(out)
}

pub(super) fn info_domain_constraints(cx: &SystemCx<'_>) -> Rows {
    let catalog = database_name(cx);
    let one = |(ty, c): (&UserType, &Constraint)| {
        let place = schema_name(cx, ty.schema);
        row(INFORMATION_SCHEMA, "domain_constraints")
            .set("constraint_catalog", catalog.clone())
            .set("constraint_schema", place)
            .set("constraint_name", c.name.as_str())
            .set("domain_catalog", catalog.clone())
            .set("domain_schema", place)
            .set("domain_name", ty.name.as_str())
            .fill(&["is_deferrable", "initially_deferred"], "NO".into())
            .done()
    };
    Ok(domain_checks(cx).map(one).collect())
}

pub(super) fn info_user_defined_types(cx: &SystemCx<'_>) -> Rows {
    let composite =
        cx.catalog.user_types().filter(|t| matches!(t.kind, UserTypeKind::Composite(_)));
    let one = |ty: &UserType| {
        row(INFORMATION_SCHEMA, "user_defined_types")
            .set("user_defined_type_catalog", database_name(cx))
            .set("user_defined_type_schema", schema_name(cx, ty.schema))
            .set("user_defined_type_name", ty.name.as_str())
            .set("user_defined_type_category", "STRUCTURED")
            .set("is_instantiable", "YES")
            .done()
    };
    Ok(composite.map(|ty| one(ty)).collect())
}

pub(super) fn info_attributes(cx: &SystemCx<'_>) -> Rows {
    let catalog = database_name(cx);
    let mut out = Vec::new();
    for ty in cx.catalog.user_types() {
        let UserTypeKind::Composite(columns) = &ty.kind else { continue };
        for (i, c) in columns.iter().enumerate().filter(|(_, c)| !c.dropped) {
            let what = described(cx, c.ty, c.typmod);
            let one = row(INFORMATION_SCHEMA, "attributes")
                .set("udt_catalog", catalog.clone())
                .set("udt_schema", schema_name(cx, ty.schema))
                .set("udt_name", ty.name.as_str())
                .set("attribute_name", c.name.as_str())
                .set("ordinal_position", i as i32 + 1)
                .set("is_nullable", "YES")
                .set("data_type", what.data_type.as_str())
                .set("attribute_udt_catalog", catalog.clone())
                .set("attribute_udt_schema", what.schema.as_str())
                .set("attribute_udt_name", what.name.as_str())
                .set("dtd_identifier", (i + 1).to_string().as_str())
                .set("is_derived_reference_attribute", "NO");
            out.push(type_facts(one, what.base).done());
        }
    }
    Ok(out)
}

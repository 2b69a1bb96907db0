//! Operators, casts, operator classes and families, conversions: CREATE, ALTER, DROP and what all have in common.
//! Aggregates are functions ([`super::function`]).

mod cast;
pub mod class;
pub mod method;
pub mod operator;
pub mod place;
pub mod statements;
pub mod statistics;
mod text_search;

use std::sync::Arc;

use base::{Error, Oid, Result, err};
use catalog::system::named;
use catalog::{AclKind, Conversion, Defined, Snapshot, UserTypeKind};
use exec::context::ExecContext;
use exec::rights;
use sql::define_statement::{DefineTarget, TextSearchKind};
use sql::role::RoleRef;
use sql::utility::Name;

use super::{name, notice};
use crate::defined::place::{full, place, put, schemas_of};
use crate::extension_files::not_available;
use crate::forget::remove_comments;
use crate::item::Item;

fn extension_named(name: &str, cx: &mut ExecContext<'_>) -> Option<u32> {
    named::extension(&cx.catalog_tx.view(), name)
}

/// The object that a statement names.
pub(super) enum DefinedTarget {
    /// A user's.
    Own(Arc<Defined>),
    /// PostgreSQL's own, by its oid.
    BuiltIn(u32),
}

impl DefinedTarget {
    fn oid(&self) -> u32 {
        match self {
            DefinedTarget::Own(own) => own.oid(),
            DefinedTarget::BuiltIn(id) => *id,
        }
    }
}

fn target(view: &Snapshot, id: u32) -> DefinedTarget {
    match view.defined_by_oid(id) {
        Some(own) => DefinedTarget::Own(own.clone()),
        None => DefinedTarget::BuiltIn(id),
    }
}

/// Looks an object up.
///
/// # Errors
/// The kind's "does not exist"; `3F000`.
pub(super) fn find(wanted: &DefineTarget, cx: &mut ExecContext<'_>) -> Result<DefinedTarget> {
    let view = cx.catalog_tx.view();
    let path = cx.search_path;
    match wanted {
        DefineTarget::Operator(operator) => {
            operator::find(&view, path, operator).map(|id| target(&view, id))
        }
        DefineTarget::Cast(source, to) => {
            let own = view.cast(source.0, to.0).map(|c| c.oid);
            match own.or_else(|| named::cast(*source, *to)) {
                Some(id) => Ok(target(&view, id)),
                None => Err(err!(
                    UNDEFINED_OBJECT,
                    "cast from type {} to type {} does not exist",
                    types::io::format_type(*source, -1),
                    types::io::format_type(*to, -1)
                )),
            }
        }
        DefineTarget::Class(name, method) => {
            class::find_class(&view, path, name, method).map(|id| target(&view, id))
        }
        DefineTarget::Family(name, method) => {
            class::find_family(&view, path, name, method).map(|id| target(&view, id))
        }
        DefineTarget::Conversion(name) => {
            let schemas = schemas_of(&view, path, name)?;
            let own = |schema: u32| {
                let mut all = view.conversions();
                let found = all.find(|c| c.schema == schema && c.name == name.name);
                let built_in = (schema == catalog::object::ids::PG_CATALOG)
                    .then(|| named::conversion(&name.name))
                    .flatten();
                found.map(|c| c.oid).or(built_in)
            };
            match schemas.into_iter().find_map(own) {
                Some(id) => Ok(target(&view, id)),
                None => Err(err!(UNDEFINED_OBJECT, "conversion \"{}\" does not exist", full(name))),
            }
        }
        DefineTarget::Statistics(name) => {
            statistics::lookup(name, &view, path).map(|id| target(&view, id))
        }
        DefineTarget::TextSearch(kind, name) => {
            text_search::lookup(*kind, name, cx).map(|id| target(&view, id))
        }
        DefineTarget::Method(name) => match view.access_method_named(name) {
            Some(found) => Ok(target(&view, found.oid)),
            None => Err(err!(UNDEFINED_OBJECT, "access method \"{name}\" does not exist")),
        },
        DefineTarget::Transform(ty, language) => {
            Err(super::comment_builtin::no_transform(*ty, language))
        }
        DefineTarget::Missing(message, _) => Err(err!(UNDEFINED_OBJECT, "{message}")),
    }
}

fn kind_word(wanted: &DefineTarget) -> &'static str {
    match wanted {
        DefineTarget::Operator(_) => "operator",
        DefineTarget::Cast(..) => "cast",
        DefineTarget::Class(..) => "operator class",
        DefineTarget::Family(..) => "operator family",
        DefineTarget::Conversion(_) => "conversion",
        DefineTarget::Statistics(_) => "statistics object",
        DefineTarget::Method(_) => "access method",
        DefineTarget::TextSearch(kind, _) => kind.words().1,
        _ => "object",
    }
}

/// `42501` unless the session's role owns the object.
fn require_owner(
    wanted: &DefineTarget,
    found: &DefinedTarget,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    if let DefineTarget::Cast(source, target) = wanted {
        return cast::require_owner(*source, *target, cx);
    }
    if matches!(wanted, DefineTarget::Method(_)) {
        return place::require_superuser(cx, "must be superuser");
    }
    if let DefineTarget::Statistics(name) = wanted {
        return statistics::require_owner(found.oid(), name, cx);
    }
    if let DefineTarget::TextSearch(kind, name) = wanted {
        return text_search::require_owner(*kind, found.oid(), name, cx);
    }
    let name = wanted.name().map_or_else(String::new, full);
    rights::require_owner(cx, AclKind::Defined, found.oid(), kind_word(wanted), &name)
}

/// Whether a statement names an object that a user made.
pub fn is_own(wanted: &DefineTarget, cx: &mut ExecContext<'_>) -> bool {
    matches!(find(wanted, cx), Ok(DefinedTarget::Own(_)))
}

/// The oid of an object, for its owner.
///
/// # Errors
/// Those of [`find`]; `42501`.
pub fn find_owned(wanted: &DefineTarget, cx: &mut ExecContext<'_>) -> Result<u32> {
    let found = find(wanted, cx)?;
    require_owner(wanted, &found, cx)?;
    Ok(found.oid())
}

/// A user's object that its owner changes.
fn open(wanted: &DefineTarget, cx: &mut ExecContext<'_>) -> Result<Defined> {
    let found = find(wanted, cx)?;
    require_owner(wanted, &found, cx)?;
    match found {
        DefinedTarget::Own(own) => {
            name::reserve(cx, own.oid(), "")?;
            let view = cx.catalog_tx.view();
            match view.defined_by_oid(own.oid()) {
                Some(own) => Ok(Defined::clone(own)),
                None => find(wanted, cx).and_then(|_| Err(Error::internal("it is gone"))),
            }
        }
        DefinedTarget::BuiltIn(_) => Err(Error::unsupported("changing an object of the server")),
    }
}

fn class_of(wanted: &DefineTarget) -> u32 {
    use catalog::system::class;
    match wanted {
        DefineTarget::Operator(_) => class::OPERATOR,
        DefineTarget::Cast(..) => class::CAST,
        DefineTarget::Class(..) => class::OPERATOR_CLASS,
        DefineTarget::Family(..) => class::OPERATOR_FAMILY,
        DefineTarget::Method(_) => class::ACCESS_METHOD,
        DefineTarget::TextSearch(TextSearchKind::Configuration, _) => class::TS_CONFIG,
        DefineTarget::TextSearch(TextSearchKind::Dictionary, _) => class::TS_DICT,
        DefineTarget::TextSearch(TextSearchKind::Parser, _) => class::TS_PARSER,
        DefineTarget::TextSearch(TextSearchKind::Template, _) => class::TS_TEMPLATE,
        _ => class::CONVERSION,
    }
}

/// Deletes an object; operators that name it as their partner forget it.
///
/// # Errors
/// Those of the catalog.
pub fn remove(cx: &mut ExecContext<'_>, id: u32) -> Result<()> {
    remove_comments(cx, id)?;
    let view = cx.catalog_tx.view();
    if view.operator(id).is_some() {
        operator::forget(&view, id, cx)?;
    }
    if view.wrapper(id).is_some() || view.foreign_server(id).is_some() {
        rights::forget(cx, id)?;
    }
    cx.catalog_tx.remove(cx.tx, id)
}

/// `42710` when an object of this kind has the name in the schema.
fn check_free(object: &Defined, schema: u32, to: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    name::reserve(cx, schema, &format!("{} {to}", object.word()))?;
    let view = cx.catalog_tx.view();
    let place = view.schema(schema).map_or("", |s| s.name.as_str());
    let in_place = |d: &&Arc<Defined>| d.schema() == Some(schema) && d.name() == to;
    let taken = view.defined().filter(in_place).any(|other| match (&**other, object) {
        (Defined::Operator(a), Defined::Operator(b)) => (a.left, a.right) == (b.left, b.right),
        (Defined::Class(a), Defined::Class(b)) => a.method == b.method,
        (Defined::Family(a), Defined::Family(b)) => a.method == b.method,
        (Defined::Conversion(_), Defined::Conversion(_))
        | (Defined::Statistics(_), Defined::Statistics(_))
        | (Defined::TextSearchConfig(_), Defined::TextSearchConfig(_))
        | (Defined::TextSearchTemplate(_), Defined::TextSearchTemplate(_))
        | (Defined::TextSearchParser(_), Defined::TextSearchParser(_))
        | (Defined::TextSearchDictionary(_), Defined::TextSearchDictionary(_)) => true,
        _ => false,
    });
    if !taken {
        return Ok(());
    }
    let method = match object {
        Defined::Class(c) => Some(c.method),
        Defined::Family(f) => Some(f.method),
        _ => None,
    };
    let method = method.and_then(|m| view.access_method_name(m));
    let of = method.map_or_else(String::new, |m| format!(" for access method \"{m}\""));
    base::bail!(
        DUPLICATE_OBJECT,
        "{} \"{to}\"{of} already exists in schema \"{place}\"",
        object.word()
    )
}

fn rename(wanted: &DefineTarget, to: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    let mut object = open(wanted, cx)?;
    if let Some(schema) = object.schema() {
        rights::require_creation(cx, cx.role, schema)?;
        check_free(&object, schema, to, cx)?;
    }
    if let Some((_, _, name)) = object.place_mut() {
        to.clone_into(name);
    }
    put(cx, object)
}

fn set_schema(wanted: &DefineTarget, to: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    let mut object = open(wanted, cx)?;
    let view = cx.catalog_tx.view();
    let schema = view
        .schema_named(to)
        .ok_or_else(|| err!(UNDEFINED_SCHEMA, "schema \"{to}\" does not exist"))?
        .oid;
    if object.schema() == Some(schema) {
        return Ok(());
    }
    rights::require_creation(cx, cx.role, schema)?;
    let name = object.name().to_owned();
    check_free(&object, schema, &name, cx)?;
    if let Some((Some(place), _, _)) = object.place_mut() {
        *place = schema;
    }
    put(cx, object)
}

fn set_owner(wanted: &DefineTarget, role: &RoleRef, cx: &mut ExecContext<'_>) -> Result<()> {
    let to = rights::role(cx, role)?;
    let found = find(wanted, cx)?;
    if let DefinedTarget::Own(own) = &found
        && own.owner() == Some(to)
    {
        return Ok(());
    }
    let object = open(wanted, cx)?;
    rights::require_membership(cx, to)?;
    if !rights::is_superuser(cx)
        && let Some(schema) = object.schema()
    {
        rights::require_creation(cx, to, schema)?;
    }
    give(object, to, cx)
}

/// Gives an object to another role, without asking.
///
/// # Errors
/// Those of the catalog.
pub fn give(mut object: Defined, to: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    let kind = match &object {
        Defined::Wrapper(_) => Some(AclKind::Wrapper),
        Defined::Server(_) => Some(AclKind::Server),
        _ => None,
    };
    if let (Some(kind), Some(old)) = (kind, object.owner()) {
        rights::change_owner(cx, kind, object.oid(), old, to)?;
    }
    if let Some((_, owner, _)) = object.place_mut() {
        *owner = to;
    }
    put(cx, object)
}

fn create_conversion(
    name: &Name,
    (from, to): (&str, &str),
    function: &Name,
    default: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let schema = place(cx, name, "conversion")?;
    let number = |side: &str, name: &str| {
        types::encodings::number(name)
            .ok_or_else(|| err!(UNDEFINED_OBJECT, "{side} encoding \"{name}\" does not exist"))
    };
    let (from_id, to_id) = (number("source", from)?, number("destination", to)?);
    if from_id == 0 || to_id == 0 {
        base::bail!(
            INVALID_OBJECT_DEFINITION,
            "encoding conversion to or from \"SQL_ASCII\" is not supported"
        );
    }
    let args = [
        types::oids::INT4,
        types::oids::INT4,
        types::oids::CSTRING,
        types::oids::INTERNAL,
        types::oids::INT4,
        types::oids::BOOL,
    ];
    let found = operator::function(function, &args, cx)?;
    if found.result != types::oids::INT4 {
        base::bail!(
            INVALID_OBJECT_DEFINITION,
            "encoding conversion function {} must return type integer",
            full(function)
        );
    }
    let view = cx.catalog_tx.view();
    if view.conversions().any(|c| c.schema == schema && c.name == name.name) {
        base::bail!(DUPLICATE_OBJECT, "conversion \"{}\" already exists", name.name);
    }
    let taken =
        |c: &Conversion| c.default && c.schema == schema && (c.from, c.to) == (from_id, to_id);
    if default && view.conversions().any(taken) {
        base::bail!(DUPLICATE_OBJECT, "default conversion for {from} to {to} already exists");
    }
    let oid = super::new_oid(cx, schema)?;
    let made = Conversion {
        oid,
        name: name.name.clone(),
        schema,
        owner: cx.role,
        from: from_id,
        to: to_id,
        function: found.oid,
        default,
    };
    put(cx, Defined::Conversion(made))
}

/// CREATE LANGUAGE: those that there are are there; a handler would have to be written in C.
fn create_language(
    name: &str,
    replace: bool,
    handler: Option<&Name>,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    if let Some(handler) = handler {
        let found = operator::function(handler, &[], cx)?;
        if found.result != Oid(2280) {
            base::bail!(
                WRONG_OBJECT_TYPE,
                "function {} must return type language_handler",
                full(handler)
            );
        }
    }
    match (named::language(name), handler) {
        // Without a handler it is the extension of that name.
        (Some(_), None) if name == "plpgsql" => {
            let message = format!("extension \"{name}\" already exists");
            if !replace {
                base::bail!(DUPLICATE_OBJECT, "{message}");
            }
            notice(cx, base::sqlstate::DUPLICATE_OBJECT, format!("{message}, skipping"));
            Ok(())
        }
        (Some(_), Some(_)) if !replace => {
            Err(err!(DUPLICATE_OBJECT, "language \"{name}\" already exists"))
        }
        (_, Some(_)) => Err(Error::unsupported("CREATE LANGUAGE with a handler")),
        (_, None) => Err(not_available(name)),
    }
}

/// As messages describe such an object.
pub fn describe(view: &Snapshot, path: &[u32], id: u32) -> String {
    let Some(own) = view.defined_by_oid(id) else { return format!("object {id}") };
    let names = catalog::system::reg::Names { catalog: view, path, database: None };
    let address = catalog::system::address::Address { class: own.class(), object: id, column: 0 };
    names.identify(address).map_or_else(|| own.word().to_owned(), |found| found.description)
}

/// Such objects that use another one, and whether they go along with it.
pub fn users(view: &Snapshot, id: u32) -> Vec<(Item, bool)> {
    let mut out = Vec::new();
    for object in view.defined().filter(|d| d.oid() != id && d.uses().contains(&id)) {
        // A class goes with its family, a family with its access method.
        let along = match &**object {
            Defined::Class(c) => c.family == id,
            Defined::Family(f) => f.method == id,
            _ => false,
        };
        out.push((Item::Defined(object.oid()), along));
    }
    for ty in view.user_types() {
        let uses = match &ty.kind {
            UserTypeKind::Base(base) => base.functions.contains(&id),
            // A domain takes over what sends and analyzes values.
            UserTypeKind::Domain { base, .. } => match view.user_type(*base).map(|t| &t.kind) {
                Some(UserTypeKind::Base(base)) => {
                    [1, 3, 6].iter().any(|at| base.functions[*at] == id)
                }
                _ => false,
            },
            UserTypeKind::Range(r) => [r.class, r.canonical, r.diff].contains(&id),
            _ => false,
        };
        if uses {
            out.push((Item::Type(ty.oid), false));
        }
    }
    for function in view.functions() {
        let Some(a) = &function.aggregate else { continue };
        let steps = [Some(&a.plain), a.moving.as_ref()];
        let uses = steps
            .into_iter()
            .flatten()
            .any(|s| [s.transition, s.inverse, s.finish, s.state].contains(&id));
        if uses || [a.combine, a.serial, a.deserial, a.sort_operator].contains(&id) {
            out.push((Item::Function(function.oid), false));
        }
    }
    out
}

//! CREATE TYPE of shells, base types and ranges.
//!
//! A base type's values have the form of the built-in type whose input and output functions it names, in
//! LANGUAGE internal; there is no other way to make one. A range type comes with a multirange type and with the
//! functions that make values of both.

use base::{Error, Oid, Result, err};
use catalog::system::{facts, named};
use catalog::{
    AclKind, BaseKind, Function, FunctionArg, Object, RangeKind, UserType, UserTypeKind,
};
use sql::type_statement::{BaseChange, BaseDef, RangeDef};
use sql::utility::{Name, Persistence};
use types::TypeIo;
use types::oids::*;

use super::defined::{class, operator};
use super::{name, user_types};
use exec::context::ExecContext;
use exec::rights;

fn bad(message: impl std::fmt::Display) -> Error {
    err!(INVALID_OBJECT_DEFINITION, "{message}")
}

/// CREATE TYPE with a name only.
pub fn create_shell(cx: &mut ExecContext<'_>, name: &Name) -> Result<()> {
    user_types::create(cx, name, UserTypeKind::Shell).map(|_| ())
}

/// The shell with this name, if there is one.
fn shell(cx: &mut ExecContext<'_>, name: &Name) -> Result<Option<UserType>> {
    let plain = Name { position: 0, ..name.clone() };
    let schema = name::creation_schema(cx, &plain, Persistence::Permanent)?;
    let view = cx.catalog_tx.view();
    let found = view.type_in(schema, &name.name);
    Ok(found.filter(|t| matches!(t.kind, UserTypeKind::Shell)).map(|t| UserType::clone(t)))
}

/// CREATE TYPE with functions.
pub fn create_base(cx: &mut ExecContext<'_>, def: &BaseDef) -> Result<()> {
    let Some(name) = &def.name else { return Ok(()) };
    if !rights::is_superuser(cx) {
        base::bail!(INSUFFICIENT_PRIVILEGE, "must be superuser to create a base type");
    }
    let Some(known) = shell(cx, name)? else {
        let view = cx.catalog_tx.view();
        let path = cx.search_path;
        if view.type_oid(path, name.schema.as_deref(), &name.name).is_some() {
            base::bail!(DUPLICATE_OBJECT, "type \"{}\" already exists", name.name);
        }
        return Err(err!(DUPLICATE_OBJECT, "type \"{}\" does not exist", name.name).hint(
            "Create the type as a shell type, then create its I/O functions, then do a full CREATE TYPE.",
        ));
    };
    for (word, at) in &def.unknown {
        let unknown = err!(SYNTAX_ERROR, "type attribute \"{word}\" not recognized");
        cx.hooks.notice("WARNING", unknown.at(*at));
    }
    let ty = Oid(known.oid);
    let [input, output, ..] = &def.functions;
    let (Some(input), Some(output)) = (input, output) else {
        let what = if input.is_none() { "input" } else { "output" };
        return Err(bad(format_args!("type {what} function must be specified")));
    };
    let from = match operator::function(input, &[CSTRING], cx) {
        Err(error) => operator::function(input, &[CSTRING, OID, INT4], cx).map_err(|_| error)?,
        found => found?,
    };
    let expect = |found: Oid, wanted: Oid, what: &str, name: &Name| {
        if found == wanted {
            return Ok(());
        }
        let wanted = types::io::format_type(wanted, -1);
        Err(bad(format_args!("type {what} function {} must return type {wanted}", name.name)))
    };
    expect(from.result, ty, "input", input)?;
    let to = operator::function(output, &[ty], cx)?;
    expect(to.result, CSTRING, "output", output)?;
    let open = open_class(cx, from.oid);
    let form = match &open {
        Some(_) => Oid::INVALID,
        None => built_in_form(cx, from.oid, to.oid)?,
    };
    let mut functions = [from.oid, to.oid, 0, 0, 0, 0, 0, 0];
    for (at, name) in def.functions.iter().enumerate().skip(2) {
        if let Some(name) = name {
            functions[at] = support_function(at, name, ty, cx)?;
        }
    }
    let like = def.like.and_then(types::TypeIo::get);
    let kind = BaseKind {
        form: form.0,
        functions,
        length: def.length.or(like.as_ref().map(|io| io.len)).unwrap_or(-1),
        by_value: def.by_value.or(like.as_ref().map(|io| io.by_value)).unwrap_or(false),
        align: def.align.or(like.as_ref().map(|io| io.align as char)).unwrap_or('i'),
        storage: def.storage.unwrap_or('p'),
        category: def.category.unwrap_or('U'),
        preferred: def.preferred,
        default: def.default.clone(),
        element: def.element.map_or(0, |ty| ty.0),
        delimiter: def.delimiter.unwrap_or(','),
        collatable: def.collatable,
        open: open.unwrap_or_default(),
    };
    let made = UserType { kind: UserTypeKind::Base(Box::new(kind)), ..known };
    cx.catalog_tx.put(cx.tx, Object::Type(Box::new(made)))
}

/// A function of a base type besides input and output, by its place in [`BaseDef::functions`].
fn support_function(at: usize, name: &Name, ty: Oid, cx: &mut ExecContext<'_>) -> Result<u32> {
    let (what, args, result): (&str, &[Oid], Oid) = match at {
        2 => ("type receive", &[INTERNAL], ty),
        3 => ("type send", &[ty], BYTEA),
        4 => ("typmod_in", &[Oid(1263)], INT4),
        5 => ("typmod_out", &[INT4], CSTRING),
        6 => ("type analyze", &[INTERNAL], BOOL),
        _ => ("type subscripting", &[INTERNAL], INTERNAL),
    };
    let found = match operator::function(name, args, cx) {
        Err(error) if at == 2 => {
            operator::function(name, &[INTERNAL, OID, INT4], cx).map_err(|_| error)?
        }
        found => found?,
    };
    if found.result != result {
        let result = types::io::format_type(result, -1);
        let shown = &name.name;
        return Err(bad(format_args!("{what} function {shown} must return type {result}")));
    }
    Ok(found.oid)
}

/// ALTER TYPE … SET.
pub fn set(cx: &mut ExecContext<'_>, change: &BaseChange) -> Result<()> {
    let name = &change.name;
    let view = cx.catalog_tx.view();
    let Some(id) = view.type_oid(cx.search_path, name.schema.as_deref(), &name.name) else {
        return Err(user_types::missing(&view, name));
    };
    let found = view.user_type(id).cloned();
    if found.as_ref().is_some_and(|ty| matches!(ty.kind, UserTypeKind::Shell)) {
        base::bail!(UNDEFINED_OBJECT, "type \"{}\" is only a shell", name.name);
    }
    let known = TypeIo::get(Oid(id));
    let base = match found.as_ref().map(|ty| &ty.kind) {
        Some(UserTypeKind::Base(base)) if found.as_ref().is_some_and(|ty| ty.oid == id) => {
            Some(base.clone())
        }
        _ => None,
    };
    let before = base.as_ref().map_or('p', |base| base.storage);
    let mut privileged = !change.functions.is_empty();
    if let Some(storage) = change.storage {
        if storage != 'p' && known.as_ref().is_some_and(|io| io.len != -1) {
            return Err(bad("fixed-size types must have storage PLAIN"));
        }
        if storage == 'p' && before != 'p' {
            return Err(bad("cannot change type's storage to PLAIN"));
        }
        privileged |= storage != 'p' && before == 'p';
    }
    let mut functions = Vec::with_capacity(change.functions.len());
    for (at, name) in &change.functions {
        functions.push(match name {
            Some(name) => (*at, support_function(*at, name, Oid(id), cx)?),
            None => (*at, 0),
        });
    }
    if privileged {
        if !rights::is_superuser(cx) {
            base::bail!(INSUFFICIENT_PRIVILEGE, "must be superuser to alter a type");
        }
    } else {
        rights::require_owner(cx, AclKind::Type, id, "type", &name.name)?;
    }
    let shown = types::io::format_type(Oid(id), -1);
    let (Some(ty), Some(mut base)) = (found, base) else {
        if known
            .as_ref()
            .is_some_and(|io| view.user_type(id).is_none() && io.element == Oid::INVALID)
        {
            return Err(Error::unsupported("a change of a built-in type"));
        }
        return Err(err!(WRONG_OBJECT_TYPE, "{shown} is not a base type"));
    };
    base.storage = change.storage.unwrap_or(base.storage);
    for (at, function) in functions {
        base.functions[at] = function;
    }
    name::reserve(cx, id, "")?;
    user_types::put(cx, UserType { kind: UserTypeKind::Base(base), ..UserType::clone(&ty) })
}

/// The maker of a type's values when its input function is an extension's: library and symbol.
fn open_class(cx: &mut ExecContext<'_>, input: u32) -> Option<String> {
    let view = cx.catalog_tx.view();
    let function = view.function(input).filter(|f| f.language == "c")?;
    let library = types::extension::library_name(&function.library);
    let name = format!("{library}/{}", function.body);
    types::extension::open_type(&name).map(|_| name)
}

/// The built-in type whose input and output two functions are.
fn built_in_form(cx: &mut ExecContext<'_>, input: u32, output: u32) -> Result<Oid> {
    let view = cx.catalog_tx.view();
    let source = |id: u32| match view.function(id) {
        Some(f) if f.language == "internal" => Some(f.body.clone()),
        Some(_) => None,
        None => facts::function_name(id).map(str::to_owned),
    };
    let form = match (source(input), source(output)) {
        (Some(input), Some(output)) => facts::type_with_functions(&input, &output),
        _ => None,
    };
    let form = form.map(Oid).filter(|ty| types::TypeIo::get(*ty).is_some());
    form.ok_or_else(|| {
        Error::unsupported(
            "a base type whose input and output functions are not those of a built-in type",
        )
    })
}

/// The name of the multirange type over a range type that nobody named.
fn multirange_name(range: &str) -> String {
    let name = match range.find("range") {
        Some(at) => format!("{}multi{}", &range[..at], &range[at..]),
        None => format!("{range}_multirange"),
    };
    types::io::cut_name(&name).to_owned()
}

/// CREATE TYPE … AS RANGE.
pub fn create_range(cx: &mut ExecContext<'_>, def: &RangeDef) -> Result<()> {
    let name = &def.name;
    let known = shell(cx, name)?;
    let Some(subtype) = def.subtype else {
        return Err(err!(SYNTAX_ERROR, "type attribute \"subtype\" is required"));
    };
    let class = subtype_class(cx, def, subtype)?;
    let collation = subtype_collation(cx, def, subtype)?;
    if def.canonical.is_some() {
        if known.is_none() {
            return Err(bad(
                "cannot specify a canonical function without a pre-created shell type",
            )
            .hint("Create the type as a shell type, then create its canonicalization function, then do a full CREATE TYPE."));
        }
        return Err(Error::unsupported("a canonical function of a range type"));
    }
    let diff = match &def.diff {
        Some(name) => subtype_diff(cx, name, subtype)?,
        None => 0,
    };
    let range = match known {
        Some(known) => known,
        None => user_types::create(cx, name, UserTypeKind::Shell)?,
    };
    let own = def.multirange.clone();
    let multirange =
        own.clone().unwrap_or_else(|| Name { name: multirange_name(&name.name), ..name.clone() });
    let over = UserTypeKind::Multirange { range: range.oid };
    let made = user_types::create(cx, &multirange, over).map_err(|error| {
        match own.is_none() && error.code() == base::sqlstate::DUPLICATE_OBJECT {
            true => error
                .detail(format!(
                    "Failed while creating a multirange type for type \"{}\".",
                    name.name
                ))
                .hint(
                    "You can manually specify a multirange type name using the \"multirange_type_name\" attribute.",
                ),
            false => error,
        }
    })?;
    let kind = RangeKind {
        subtype: subtype.0,
        multirange: made.oid,
        class,
        collation,
        canonical: 0,
        diff,
    };
    let range = UserType { kind: UserTypeKind::Range(Box::new(kind)), ..range };
    cx.catalog_tx.put(cx.tx, Object::Type(Box::new(range.clone())))?;
    constructors(cx, &range, &made, subtype)
}

/// The operator class that orders the bounds: their type's own.
fn subtype_class(cx: &mut ExecContext<'_>, def: &RangeDef, subtype: Oid) -> Result<u32> {
    let view = cx.catalog_tx.view();
    let shown = types::io::format_type(subtype, -1);
    let usual = facts::default_class(types::user::base_type(subtype, -1).0.0);
    match &def.class {
        Some(name) => {
            let id = class::find_class(&view, cx.search_path, name, "btree")?;
            if let Some(other) = named::class_input(id).filter(|ty| {
                !sql::is_binary_coercible(&view, subtype, Oid(*ty))
            }) {
                let _ = other;
                base::bail!(
                    DATATYPE_MISMATCH,
                    "operator class \"{}\" does not accept data type {shown}",
                    name.name
                );
            }
            if id != usual && !name.name.ends_with("_pattern_ops") {
                return Err(Error::unsupported(
                    "a range over another operator class than the type's own",
                ));
            }
            Ok(id)
        }
        None if usual != 0 => Ok(usual),
        None if types::user::is_enum(subtype) || types::user::shape(subtype).is_some() => Ok(0),
        None => Err(err!(
            UNDEFINED_OBJECT,
            "data type {shown} has no default operator class for access method \"btree\""
        )
        .hint(
            "You must specify an operator class for the range type or define a default operator class for the subtype.",
        )),
    }
}

fn subtype_collation(cx: &mut ExecContext<'_>, def: &RangeDef, subtype: Oid) -> Result<u32> {
    let view = cx.catalog_tx.view();
    let usual = view.type_collation(subtype.0);
    let Some(id) = def.collation else { return Ok(usual) };
    if usual == 0 {
        base::bail!(
            WRONG_OBJECT_TYPE,
            "range collation specified but subtype does not support collation"
        );
    }
    if view.collation(id).is_some_and(|c| c.icu_locale.is_some()) {
        return Err(Error::unsupported("a range over a collation of ICU"));
    }
    Ok(id)
}

fn subtype_diff(cx: &mut ExecContext<'_>, name: &Name, subtype: Oid) -> Result<u32> {
    let found = operator::function(name, &[subtype, subtype], cx)?;
    let shown = &name.name;
    if found.result != FLOAT8 {
        return Err(bad(format_args!(
            "range subtype diff function {shown} must return type double precision"
        )));
    }
    if found.volatility != 'i' {
        return Err(bad(format_args!("range subtype diff function {shown} must be immutable")));
    }
    Ok(found.oid)
}

/// The functions that make values of a range and of its multirange.
fn constructors(
    cx: &mut ExecContext<'_>,
    range: &UserType,
    multirange: &UserType,
    subtype: Oid,
) -> Result<()> {
    let all: [(&UserType, &[(u32, char)], &str); 5] = [
        (range, &[(subtype.0, 'i'), (subtype.0, 'i')], "range_constructor2"),
        (range, &[(subtype.0, 'i'), (subtype.0, 'i'), (TEXT.0, 'i')], "range_constructor3"),
        (multirange, &[], "multirange_constructor0"),
        (multirange, &[(range.oid, 'i')], "multirange_constructor1"),
        (multirange, &[(range.array, 'v')], "multirange_constructor2"),
    ];
    for (of, args, body) in all {
        let oid = super::new_oid(cx, of.schema)?;
        let arg = |(ty, mode): &(u32, char)| FunctionArg {
            name: String::new(),
            ty: *ty,
            mode: *mode,
            default: None,
        };
        let function = Function {
            oid,
            name: of.name.clone(),
            schema: of.schema,
            owner: of.owner,
            args: args.iter().map(arg).collect(),
            result: of.oid,
            set: false,
            language: "internal".to_owned(),
            body: body.to_owned(),
            volatility: 'i',
            strict: body.starts_with("multirange"),
            procedure: false,
            security_definer: false,
            leakproof: false,
            parallel: 's',
            cost: 1.0,
            rows: 0.0,
            standard_body: false,
            path: Vec::new(),
            uses: Vec::new(),
            settings: Vec::new(),
            row_of: None,
            aggregate: None,
            support: 0,
            library: String::new(),
        };
        cx.catalog_tx.put(cx.tx, Object::Function(Box::new(function)))?;
        rights::begin(cx, AclKind::Function, oid, of.owner, of.schema)?;
    }
    Ok(())
}

//! CREATE CAST.

use base::{Error, Oid, Result, err};
use catalog::{AclKind, Cast, Defined, UserTypeKind, system};
use exec::context::ExecContext;
use exec::rights;
use sql::define_statement::{CastDef, CastHow};
use types::TypeIo;
use types::oids::*;

use super::operator;
use crate::defined::place::{full, put, require_superuser};

fn bad(message: impl std::fmt::Display) -> Error {
    err!(INVALID_OBJECT_DEFINITION, "{message}")
}

fn name_of(ty: Oid) -> String {
    types::io::format_type(ty, -1)
}

/// Whether the session's role owns a type.
fn owns(ty: Oid, cx: &mut ExecContext<'_>) -> bool {
    let view = cx.catalog_tx.view();
    rights::of(cx, &view).owns(cx.role, AclKind::Type, ty.0)
}

/// `42501` unless the session's role owns one of a cast's types.
///
/// # Errors
/// See above.
pub fn require_owner(source: Oid, target: Oid, cx: &mut ExecContext<'_>) -> Result<()> {
    if owns(source, cx) || owns(target, cx) {
        return Ok(());
    }
    base::bail!(
        INSUFFICIENT_PRIVILEGE,
        "must be owner of type {} or type {}",
        name_of(source),
        name_of(target)
    )
}

/// CREATE CAST.
pub fn create(def: &CastDef, cx: &mut ExecContext<'_>) -> Result<()> {
    let (source, target) = (def.source, def.target);
    let view = cx.catalog_tx.view();
    let pseudo = |ty: Oid| TypeIo::get(ty).is_none_or(|io| io.category == b'P');
    for (ty, what) in [(source, "source"), (target, "target")] {
        if pseudo(ty) {
            base::bail!(WRONG_OBJECT_TYPE, "{what} data type {} is a pseudo-type", name_of(ty));
        }
    }
    require_owner(source, target, cx)?;
    let is_domain = |ty: Oid| {
        matches!(view.user_type(ty.0).map(|t| &t.kind), Some(UserTypeKind::Domain { .. }))
    };
    for (ty, what) in [(source, "source"), (target, "target")] {
        if is_domain(ty) {
            let message = format!("cast will be ignored because the {what} data type is a domain");
            cx.hooks.notice("WARNING", Error::new(base::sqlstate::WRONG_OBJECT_TYPE, message));
            break;
        }
    }
    let (function, method) = match &def.how {
        CastHow::Function(name, args) => (by_function(def, name, args.as_deref(), cx)?, 'f'),
        CastHow::Binary => {
            check_binary(source, target, cx)?;
            (0, 'b')
        }
        CastHow::InOut => (0, 'i'),
    };
    if source == target && function == 0 {
        return Err(bad("source data type and target data type are the same"));
    }
    let known =
        view.cast(source.0, target.0).is_some() || system::named::cast(source, target).is_some();
    if known {
        base::bail!(
            DUPLICATE_OBJECT,
            "cast from type {} to type {} already exists",
            name_of(source),
            name_of(target)
        );
    }
    let oid = cx.engine.txn.next_oid()?;
    let (source, target) = (source.0, target.0);
    put(cx, Defined::Cast(Cast { oid, source, target, function, context: def.context, method }))
}

/// The function of a cast: one to three arguments, of which the first is the source.
fn by_function(
    def: &CastDef,
    name: &sql::utility::Name,
    args: Option<&[Oid]>,
    cx: &mut ExecContext<'_>,
) -> Result<u32> {
    let view = cx.catalog_tx.view();
    let found = match args {
        Some(args) => operator::function(name, args, cx)?,
        None => {
            let schema = name.schema.as_deref();
            let all = catalog::routine::named(&view, cx.search_path, schema, &name.name);
            let [id] = all[..] else {
                let name = full(name);
                return Err(match all.is_empty() {
                    true => err!(UNDEFINED_FUNCTION, "could not find a function named \"{name}\""),
                    false => err!(AMBIGUOUS_FUNCTION, "function name \"{name}\" is not unique")
                        .hint("Specify the argument list to select the function unambiguously."),
                });
            };
            catalog::routine::info(&view, id)
                .ok_or_else(|| Error::internal("a function that is not there"))?
        }
    };
    let fits = |from: Oid, to: Oid| sql::is_binary_coercible(&view, from, to);
    let [first, rest @ ..] = &found.args[..] else {
        return Err(bad("cast function must take one to three arguments"));
    };
    if rest.len() > 2 {
        return Err(bad("cast function must take one to three arguments"));
    }
    if !fits(def.source, *first) {
        return Err(bad(
            "argument of cast function must match or be binary-coercible from source data type",
        ));
    }
    if rest.first().is_some_and(|ty| *ty != INT4) {
        return Err(bad("second argument of cast function must be type integer"));
    }
    if rest.get(1).is_some_and(|ty| *ty != BOOL) {
        return Err(bad("third argument of cast function must be type boolean"));
    }
    if !fits(found.result, def.target) {
        return Err(bad(
            "return data type of cast function must match or be binary-coercible to target data type",
        ));
    }
    if found.kind != 'f' {
        return Err(bad("cast function must be a normal function"));
    }
    if found.set {
        return Err(bad("cast function must not return a set"));
    }
    Ok(found.oid)
}

/// Checks that WITHOUT FUNCTION can be said of a cast.
fn check_binary(source: Oid, target: Oid, cx: &mut ExecContext<'_>) -> Result<()> {
    require_superuser(cx, "must be superuser to create a cast WITHOUT FUNCTION")?;
    let (Some(from), Some(to)) = (TypeIo::get(source), TypeIo::get(target)) else {
        return Ok(());
    };
    let form = |io: &TypeIo| (io.len, io.by_value, io.align);
    if form(&from) != form(&to) {
        return Err(bad("source and target data types are not physically compatible"));
    }
    let view = cx.catalog_tx.view();
    for ty in [source, target] {
        let what = match view.user_type(ty.0).map(|t| &t.kind) {
            Some(UserTypeKind::Composite(_)) => "composite",
            Some(UserTypeKind::Enum(_)) => "enum",
            Some(UserTypeKind::Domain { .. }) => {
                return Err(bad("domain data types must not be marked binary-compatible"));
            }
            _ if from.category == b'A' && ty == source || to.category == b'A' && ty == target => {
                "array"
            }
            _ => continue,
        };
        return Err(bad(format_args!("{what} data types are not binary-compatible")));
    }
    // Values of an extension's type may have a built-in type's form, or be read as such.
    let form = |ty: Oid| match types::user::get(ty).map(|user| user.kind.clone()) {
        Some(types::user::UserKind::Open(class)) => class.0.plain_type().unwrap_or(ty),
        _ => types::user::form(ty),
    };
    let (from, to) = (form(source), form(target));
    let texts = [from, to].iter().all(|ty| matches!(*ty, TEXT | VARCHAR | BPCHAR));
    if !texts && !types::row::same_form(from, to) {
        return Err(Error::unsupported(
            "a cast WITHOUT FUNCTION between types whose values have different forms",
        ));
    }
    Ok(())
}

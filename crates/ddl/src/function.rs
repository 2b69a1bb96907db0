//! Functions and procedures that users define: CREATE, ALTER, DROP.

use std::sync::Arc;

use base::{Oid, Result, err};
use catalog::{AclKind, Function, Object};
use exec::context::ExecContext;
use exec::rights;
use sql::role::RoleRef;
use sql::utility::{AlterRoutine, Persistence, RoutineDef, RoutineRef};

use super::{name, notice};
use crate::extension_files::no_library;
use crate::follow::follow;
use crate::function_body::type_list;

/// The lock class of functions' names.
const NAME_KIND: &str = "function ";

fn word(function: &Function) -> &'static str {
    match &function.aggregate {
        Some(_) => "aggregate",
        None if function.procedure => "procedure",
        None => "function",
    }
}

/// As messages about owners call a routine.
pub(crate) fn owned_word(function: &Function) -> &'static str {
    if function.procedure { "procedure" } else { "function" }
}

/// The kind of a routine, as messages say it at length.
fn kind_sentence(function: &Function) -> String {
    let what = match function.aggregate.as_deref().map(|a| a.kind) {
        Some('n') => "an ordinary aggregate function",
        Some('o') => "an ordered-set aggregate",
        Some(_) => "a hypothetical-set aggregate",
        None if function.procedure => "a procedure",
        None => "a function",
    };
    format!("\"{}\" is {what}.", function.name)
}

/// The role may write functions and blocks in a language. The binder has refused untrusted ones.
///
/// # Errors
/// `42501`.
pub fn require_language(language: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    match catalog::system::named::language(language) {
        Some(id) if catalog::system::named::is_trusted_language(id) => {
            rights::require(cx, AclKind::Language, id, catalog::acl::privilege::USAGE, language)
        }
        _ => Ok(()),
    }
}

/// CREATE [OR REPLACE] FUNCTION and PROCEDURE.
///
/// # Errors
/// `42723`, `42809`, `42P13`, `42501`.
pub fn create(def: &RoutineDef, cx: &mut ExecContext<'_>) -> Result<()> {
    for message in &def.notices {
        notice(cx, base::sqlstate::WRONG_OBJECT_TYPE, message.clone());
    }
    for warning in &def.warnings {
        cx.hooks.notice("WARNING", err!(SYNTAX_ERROR, "{warning}"));
    }
    let schema = name::creation_schema(cx, &def.name, Persistence::Permanent)?;
    require_language(&def.function.language, cx)?;
    name::reserve(cx, schema, &format!("{NAME_KIND}{}", def.name.name))?;
    let view = cx.catalog_tx.view();
    let mut function = def.function.clone();
    function.schema = schema;
    function.owner = cx.role;
    let types = function.input_types();
    let known = view
        .functions_named(&function.name)
        .find(|f| f.schema == schema && f.input_types() == types)
        .cloned();
    let Some(known) = known else {
        function.oid = exec::relation_lock::new_oid(cx, schema)?;
        let oid = function.oid;
        cx.catalog_tx.put(cx.tx, Object::Function(Box::new(function)))?;
        rights::begin(cx, AclKind::Function, oid, cx.role, schema)?;
        return validate(oid, def, cx);
    };
    if !def.replace {
        base::bail!(
            DUPLICATE_FUNCTION,
            "function \"{}\" already exists with same argument types",
            function.name
        );
    }
    check_replacement(&known, &function)?;
    rights::require_owner(cx, AclKind::Function, known.oid, owned_word(&known), &known.name)?;
    (function.oid, function.owner) = (known.oid, known.owner);
    cx.catalog_tx.put(cx.tx, Object::Function(Box::new(function)))?;
    validate(known.oid, def, cx)
}

/// The body makes sense. It may call the function itself, which is there by now.
fn validate(oid: u32, def: &RoutineDef, cx: &mut ExecContext<'_>) -> Result<()> {
    if def.function.aggregate.is_some() {
        return Ok(());
    }
    check_settings(&def.function, cx)?;
    let view = cx.catalog_tx.view();
    let Some(function) = view.function(oid) else { return Ok(()) };
    let function = function.clone();
    if function.language == "internal" {
        return match catalog::system::facts::with_source(&function.body) {
            Some(_) => Ok(()),
            None => Err(err!(
                UNDEFINED_FUNCTION,
                "there is no built-in function named \"{}\"",
                function.body
            )),
        };
    }
    if function.language == "c" {
        return validate_symbol(&function);
    }
    exec::routine::validate(&function, def.body_at, cx)
}

/// A function in LANGUAGE c is one of an extension's library.
fn validate_symbol(function: &Function) -> Result<()> {
    let library = types::extension::library_name(&function.library);
    if !types::extension::has_library(library) {
        return Err(no_library(&function.library));
    }
    let internal = |ty: u32| Oid(ty) == types::oids::INTERNAL;
    // A function of internal values is the index methods' and the planner's to call: they have their own.
    let silent = internal(function.result) || function.args.iter().any(|a| internal(a.ty));
    let known = types::extension::symbol(library, &function.body).is_some()
        || exec::native::find(library, &function.body).is_some();
    if known || silent {
        return Ok(());
    }
    Err(err!(
        UNDEFINED_FUNCTION,
        "could not find function \"{}\" in file \"{}\"",
        function.body,
        function.library
    ))
}

/// Checks the parts that CREATE OR REPLACE may not change.
fn check_replacement(old: &Function, new: &Function) -> Result<()> {
    let kind = |f: &Function| (f.procedure, f.aggregate.as_deref().map(|a| a.kind));
    if kind(old) != kind(new) {
        return Err(
            err!(WRONG_OBJECT_TYPE, "cannot change routine kind").detail(kind_sentence(old))
        );
    }
    if let (Some(was), Some(is)) = (&old.aggregate, &new.aggregate)
        && was.direct != is.direct
    {
        base::bail!(
            INVALID_FUNCTION_DEFINITION,
            "cannot change number of direct arguments of an aggregate function"
        );
    }
    let hint = format!(
        "Use DROP {} {}({}) first.",
        word(old).to_uppercase(),
        old.name,
        type_list(&old.input_types(), ",")
    );
    let row = |f: &Function| -> Vec<(String, u32)> {
        f.outputs().map(|a| (a.name.clone(), a.ty)).collect()
    };
    if old.result != new.result || old.set != new.set || old.row_of != new.row_of {
        return Err(err!(
            INVALID_FUNCTION_DEFINITION,
            "cannot change return type of existing function"
        )
        .hint(hint));
    }
    if row(old) != row(new) {
        return Err(err!(
            INVALID_FUNCTION_DEFINITION,
            "cannot change return type of existing function"
        )
        .detail("Row type defined by OUT parameters is different.")
        .hint(hint));
    }
    for (was, is) in old.inputs().zip(new.inputs()) {
        if !was.name.is_empty() && was.name != is.name {
            return Err(err!(
                INVALID_FUNCTION_DEFINITION,
                "cannot change name of input parameter \"{}\"",
                was.name
            )
            .hint(hint));
        }
        if was.default.is_some() && is.default.is_none() {
            return Err(err!(
                INVALID_FUNCTION_DEFINITION,
                "cannot remove parameter defaults from existing function"
            )
            .hint(hint));
        }
    }
    Ok(())
}

/// The function that a statement names; an error when there is none, or several.
///
/// # Errors
/// `42883`, `42725`, `42809`.
pub fn find(routine: &RoutineRef, cx: &mut ExecContext<'_>) -> Result<Arc<Function>> {
    let view = cx.catalog_tx.view();
    let wanted = &routine.name;
    let in_schema = |schema: u32| {
        let all = view.functions_named(&wanted.name).filter(move |f| f.schema == schema);
        let fits = all.filter(|f| match &routine.args {
            None => true,
            Some(args) => {
                let all = || f.args.iter().map(|a| Oid(a.ty));
                let standard = routine.all_args.as_ref().filter(|_| f.procedure);
                f.input_types() == *args
                    || standard.is_some_and(|args| all().eq(args.iter().copied()))
            }
        });
        fits.cloned().collect::<Vec<_>>()
    };
    let schemas: Vec<u32> = match &wanted.schema {
        Some(schema) => match view.schema_named(schema) {
            Some(s) => vec![s.oid],
            None => base::bail!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist"),
        },
        None => cx.search_path.to_vec(),
    };
    let kind = routine.kind.to_lowercase();
    let mut all: Vec<Arc<Function>> = schemas.into_iter().flat_map(in_schema).collect();
    if routine.args.is_some() {
        // Those of later schemas are hidden.
        let first = all.first().map(|f| f.schema);
        all.retain(|f| Some(f.schema) == first);
    } else if all.len() > 1 && routine.kind != "ROUTINE" {
        all.retain(|f| f.procedure == (routine.kind == "PROCEDURE"));
        if routine.kind == "AGGREGATE" {
            all.retain(|f| f.aggregate.is_some());
        }
    }
    let name = match &wanted.schema {
        Some(schema) => format!("{schema}.{}", wanted.name),
        None => wanted.name.clone(),
    };
    let aggregate = routine.kind == "AGGREGATE";
    let full = match &routine.args {
        Some(args) if args.is_empty() && aggregate && all.is_empty() => format!("{name}(*)"),
        Some(args) => format!("{name}({})", type_list(args, ", ")),
        None => name.clone(),
    };
    match all.as_slice() {
        [one] if routine.kind == "PROCEDURE" && !one.procedure => {
            Err(err!(WRONG_OBJECT_TYPE, "{full} is not a procedure"))
        }
        [one] if aggregate && one.aggregate.is_none() => {
            Err(err!(WRONG_OBJECT_TYPE, "function {full} is not an aggregate"))
        }
        [one] if routine.kind == "FUNCTION" && one.procedure => {
            Err(err!(WRONG_OBJECT_TYPE, "{full} is not a function"))
        }
        [one] => Ok(one.clone()),
        [] if routine.args.is_some() => {
            Err(err!(UNDEFINED_FUNCTION, "{kind} {full} does not exist"))
        }
        [] => {
            let a = if aggregate { "an" } else { "a" };
            Err(err!(UNDEFINED_FUNCTION, "could not find {a} {kind} named \"{name}\""))
        }
        _ => {
            let error = err!(AMBIGUOUS_FUNCTION, "{kind} name \"{name}\" is not unique");
            Err(match routine.args {
                Some(_) => error,
                None => error
                    .hint(format!("Specify the argument list to select the {kind} unambiguously.")),
            })
        }
    }
}

pub(crate) fn is_missing(error: &base::Error) -> bool {
    [base::sqlstate::UNDEFINED_FUNCTION, base::sqlstate::UNDEFINED_SCHEMA].contains(&error.code())
}

/// ALTER FUNCTION, PROCEDURE, ROUTINE.
///
/// # Errors
/// As [`find`]; `42501`, `42723`.
pub fn alter(routine: &RoutineRef, change: &AlterRoutine, cx: &mut ExecContext<'_>) -> Result<()> {
    if let AlterRoutine::Owner(role) = change {
        // The new owner is looked up before the routine.
        rights::role(cx, role)?;
    }
    let known = find(routine, cx)?;
    rights::require_owner(cx, AclKind::Function, known.oid, owned_word(&known), &known.name)?;
    let mut function = Function::clone(&known);
    match change {
        AlterRoutine::Rename(to) => {
            rights::require_creation(cx, cx.role, function.schema)?;
            to.clone_into(&mut function.name);
            check_free(&function, cx)?;
            return follow(cx, &[known.oid], Object::Function(Box::new(function)));
        }
        AlterRoutine::Schema(to) => {
            let view = cx.catalog_tx.view();
            let Some(schema) = view.schema_named(to) else {
                base::bail!(UNDEFINED_SCHEMA, "schema \"{to}\" does not exist");
            };
            if schema.oid == function.schema {
                return Ok(());
            }
            rights::require_creation(cx, cx.role, schema.oid)?;
            function.schema = schema.oid;
            check_free(&function, cx)?;
            return follow(cx, &[known.oid], Object::Function(Box::new(function)));
        }
        AlterRoutine::Owner(role) => return change_owner(function, role, cx),
        AlterRoutine::Options(_) if known.aggregate.is_some() => {
            base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is an aggregate function", known.name);
        }
        AlterRoutine::Options(options) => {
            for (word, changed) in options {
                set_option(&mut function, word, changed)?;
            }
            check_settings(&function, cx)?;
        }
    }
    cx.catalog_tx.put(cx.tx, Object::Function(Box::new(function)))
}

/// SET takes the function's settings.
fn check_settings(function: &Function, cx: &mut ExecContext<'_>) -> Result<()> {
    if !function.settings.is_empty() {
        let (_, mark) = cx.hooks.enter(&function.settings, (cx.settings, cx.format))?;
        cx.hooks.leave(&function.settings, mark);
    }
    Ok(())
}

fn set_option(function: &mut Function, word: &str, changed: &Function) -> Result<()> {
    if function.procedure
        && !word.starts_with("set")
        && !word.starts_with("reset")
        && word != "security"
    {
        base::bail!(INVALID_FUNCTION_DEFINITION, "invalid attribute in procedure definition");
    }
    match word {
        "volatility" => function.volatility = changed.volatility,
        "strict" => function.strict = changed.strict,
        "security" => function.security_definer = changed.security_definer,
        "leakproof" => function.leakproof = changed.leakproof,
        "cost" => function.cost = changed.cost,
        "rows" if !function.set => base::bail!(
            INVALID_PARAMETER_VALUE,
            "ROWS is not applicable when function does not return a set"
        ),
        "rows" => function.rows = changed.rows,
        "parallel" => function.parallel = changed.parallel,
        "support" => function.support = changed.support,
        "set" => {
            for (name, value) in &changed.settings {
                function.settings.retain(|s| s.0 != *name);
                function.settings.push((name.clone(), value.clone()));
            }
        }
        "reset " => function.settings.clear(),
        other => {
            let name = other.strip_prefix("reset ").unwrap_or(other);
            function.settings.retain(|s| !s.0.eq_ignore_ascii_case(name));
        }
    }
    Ok(())
}

/// `42723` when a function of this name and these arguments is there.
fn check_free(function: &Function, cx: &mut ExecContext<'_>) -> Result<()> {
    name::reserve(cx, function.schema, &format!("{NAME_KIND}{}", function.name))?;
    let view = cx.catalog_tx.view();
    let types = function.input_types();
    let taken = view
        .functions_named(&function.name)
        .any(|f| f.schema == function.schema && f.input_types() == types);
    if !taken {
        return Ok(());
    }
    let schema = view.schema(function.schema).map_or("", |s| s.name.as_str());
    base::bail!(
        DUPLICATE_FUNCTION,
        "function {}({}) already exists in schema \"{schema}\"",
        function.name,
        type_list(&types, ", ")
    )
}

fn change_owner(mut function: Function, role: &RoleRef, cx: &mut ExecContext<'_>) -> Result<()> {
    let owner = rights::role(cx, role)?;
    let old = function.owner;
    if old == owner {
        return Ok(());
    }
    rights::require_membership(cx, owner)?;
    if !rights::is_superuser(cx) {
        rights::require_creation(cx, owner, function.schema)?;
    }
    function.owner = owner;
    let oid = function.oid;
    cx.catalog_tx.put(cx.tx, Object::Function(Box::new(function)))?;
    rights::change_owner(cx, AclKind::Function, oid, old, owner)
}

/// Another owner for a function, as REASSIGN OWNED gives it: no questions.
///
/// # Errors
/// Those of the catalog.
pub fn reassign(function: &Function, owner: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    let (oid, old) = (function.oid, function.owner);
    let function = Function { owner, ..function.clone() };
    cx.catalog_tx.put(cx.tx, Object::Function(Box::new(function)))?;
    rights::change_owner(cx, AclKind::Function, oid, old, owner)
}

//! CREATE and ALTER OPERATOR.

use base::{Error, Oid, Result, err};
use catalog::routine::RoutineInfo;
use catalog::{Defined, Operator, Snapshot, system};
use exec::context::ExecContext;
use exec::rights;
use sql::define_statement::{OperatorDef, OperatorName};
use sql::utility::Name;
use types::oids::*;

use crate::defined::place::{full, place, put, schemas_of};

fn bad(message: impl std::fmt::Display) -> Error {
    err!(INVALID_FUNCTION_DEFINITION, "{message}")
}

fn list(types: &[Oid]) -> String {
    types.iter().map(|t| types::io::format_type(*t, -1)).collect::<Vec<_>>().join(", ")
}

/// The function with this name and these arguments, exactly.
///
/// # Errors
/// `42883`, `3F000`.
pub fn function(name: &Name, args: &[Oid], cx: &mut ExecContext<'_>) -> Result<RoutineInfo> {
    let view = cx.catalog_tx.view();
    schemas_of(&view, cx.search_path, name)?;
    let schema = name.schema.as_deref();
    let found = catalog::routine::with_types(&view, cx.search_path, schema, &name.name, args);
    found.and_then(|id| catalog::routine::info(&view, id)).ok_or_else(|| {
        err!(UNDEFINED_FUNCTION, "function {}({}) does not exist", full(name), list(args))
    })
}

/// An operator by name and types.
///
/// # Errors
/// `42883`, `3F000`.
pub fn find(view: &Snapshot, path: &[u32], wanted: &OperatorName) -> Result<u32> {
    schemas_of(view, path, &wanted.name)?;
    let types = [wanted.left.map_or(0, |ty| ty.0), wanted.right.0];
    let schema = wanted.name.schema.as_deref();
    view.operator_named(path, schema, &wanted.name.name, types).ok_or_else(|| missing(wanted))
}

fn missing(wanted: &OperatorName) -> Error {
    let (name, right) = (full(&wanted.name), types::io::format_type(wanted.right, -1));
    match wanted.left {
        Some(left) => {
            let left = types::io::format_type(left, -1);
            err!(UNDEFINED_FUNCTION, "operator does not exist: {left} {name} {right}")
        }
        None => err!(UNDEFINED_FUNCTION, "operator does not exist: {name} {right}"),
    }
}

/// The estimator of a restriction or a join: its oid.
fn estimator(name: &Name, join: bool, cx: &mut ExecContext<'_>) -> Result<u32> {
    let args: &[Oid] = match join {
        true => &[INTERNAL, OID, INTERNAL, INT2, INTERNAL],
        false => &[INTERNAL, OID, INTERNAL, INT4],
    };
    let found = match function(name, args, cx) {
        // Join estimators of old take no special join information.
        Err(error) if join => function(name, &args[..4], cx).map_err(|_| error)?,
        found => found?,
    };
    if found.result != FLOAT8 {
        let what = if join { "join" } else { "restriction" };
        base::bail!(
            INVALID_OBJECT_DEFINITION,
            "{what} estimator function {} must return type double precision",
            full(name)
        );
    }
    Ok(found.oid)
}

/// Checks the attributes of an operator with these operands and this result.
fn check_attributes(operator: &Operator) -> Result<()> {
    if operator.left == 0 {
        let binary = [
            (operator.commutator != 0, "have commutators"),
            (operator.join != 0, "have join selectivity"),
            (operator.merges, "merge join"),
            (operator.hashes, "hash"),
        ];
        if let Some((_, what)) = binary.iter().find(|(given, _)| *given) {
            return Err(bad(format_args!("only binary operators can {what}")));
        }
    }
    if operator.result != BOOL.0 {
        let boolean = [
            (operator.negator != 0, "have negators"),
            (operator.restrict != 0, "have restriction selectivity"),
            (operator.join != 0, "have join selectivity"),
            (operator.merges, "merge join"),
            (operator.hashes, "hash"),
        ];
        if let Some((_, what)) = boolean.iter().find(|(given, _)| *given) {
            return Err(bad(format_args!("only boolean operators can {what}")));
        }
    }
    Ok(())
}

/// `42501` unless the session's role may use a type.
fn require_type(ty: Oid, cx: &mut ExecContext<'_>) -> Result<()> {
    let usage = catalog::acl::privilege::USAGE;
    let name = types::io::format_type(ty, -1);
    rights::require(cx, catalog::AclKind::Type, ty.0, usage, &name)
}

/// CREATE OPERATOR.
pub fn create(def: &OperatorDef, cx: &mut ExecContext<'_>) -> Result<()> {
    for name in &def.unknown {
        cx.hooks
            .notice("WARNING", err!(SYNTAX_ERROR, "operator attribute \"{name}\" not recognized"));
    }
    let Some(name) = &def.name else { return Ok(()) };
    let Some(function_name) = &def.function else {
        return Err(bad("operator function must be specified"));
    };
    let right = match (def.left, def.right) {
        (None, None) => return Err(bad("operator argument types must be specified")),
        (Some(_), None) => {
            return Err(bad("operator right argument type must be specified")
                .detail("Postfix operators are not supported."));
        }
        (_, Some(right)) => right,
    };
    let args: Vec<Oid> = def.left.into_iter().chain([right]).collect();
    args.iter().try_for_each(|ty| require_type(*ty, cx))?;
    let found = function(function_name, &args, cx)?;
    let execute = catalog::acl::privilege::EXECUTE;
    let function_kind = catalog::AclKind::Function;
    rights::require(cx, function_kind, found.oid, execute, &full(function_name))?;
    require_type(found.result, cx)?;
    let restrict = def.restrict.as_ref().map(|n| estimator(n, false, cx)).transpose()?;
    let join = def.join.as_ref().map(|n| estimator(n, true, cx)).transpose()?;
    let schema = place(cx, name, "operator")?;
    let mut made = Operator {
        name: name.name.clone(),
        schema,
        owner: cx.role,
        left: def.left.map_or(0, |ty| ty.0),
        right: right.0,
        result: found.result.0,
        function: found.oid,
        // Marks until the partners are known.
        commutator: u32::from(def.commutator.is_some()),
        negator: u32::from(def.negator.is_some()),
        restrict: restrict.unwrap_or(0),
        join: join.unwrap_or(0),
        hashes: def.hashes,
        merges: def.merges,
        ..Operator::default()
    };
    check_attributes(&made)?;
    (made.commutator, made.negator) = (0, 0);
    let known = in_schema(cx, &made);
    made.oid = match &known {
        Some(shell) if shell.function == 0 => {
            rights::require_owner(
                cx,
                catalog::AclKind::Defined,
                shell.oid,
                "operator",
                &name.name,
            )?;
            (made.commutator, made.negator) = (shell.commutator, shell.negator);
            shell.oid
        }
        Some(_) => {
            base::bail!(DUPLICATE_FUNCTION, "operator {} already exists", name.name);
        }
        None => super::super::new_oid(cx, schema)?,
    };
    put(cx, Defined::Operator(made.clone()))?;
    if let Some(other) = &def.commutator {
        made.commutator = partner(other, &made, [made.right, made.left], false, cx)?;
    }
    if let Some(other) = &def.negator {
        made.negator = partner(other, &made, [made.left, made.right], true, cx)?;
    }
    let view = cx.catalog_tx.view();
    for (id, negator) in [(made.commutator, false), (made.negator, true)] {
        check_partner(&view, &made, id, negator)?;
    }
    put(cx, Defined::Operator(made.clone()))?;
    link_back(&made, cx)
}

/// Refuses a partner that has another one already, or gives another type: whoever puts one operator in the other's place
/// would get values of a type that nothing around them expects.
fn check_partner(view: &Snapshot, made: &Operator, id: u32, negator: bool) -> Result<()> {
    let word = if negator { "negator" } else { "commutator" };
    let own = view.operator(id).filter(|o| o.oid != made.oid);
    let built_in = types::func::operator(Oid(id));
    let (name, back, result) = match (own, built_in) {
        (Some(o), _) => (o.name.as_str(), if negator { o.negator } else { o.commutator }, o.result),
        (None, Some(o)) => (o.name, if negator { o.negator.0 } else { o.commutator.0 }, o.result.0),
        (None, None) => return Ok(()),
    };
    if back != 0 && back != made.oid {
        let owner = view.operator(back).map(|o| o.name.as_str());
        let owner = owner.or_else(|| types::func::operator(Oid(back)).map(|o| o.name));
        return Err(bad(format_args!(
            "{word} operator {name} is already the {word} of operator {}",
            owner.unwrap_or_default()
        )));
    }
    let is_shell = own.is_some_and(|o| o.function == 0);
    if !is_shell && result != made.result {
        return Err(bad(format_args!(
            "{word} operator {name} does not return the same data type as operator {}",
            made.name
        )));
    }
    Ok(())
}

/// The operator of the same name and types in its schema.
fn in_schema(cx: &mut ExecContext<'_>, like: &Operator) -> Option<Operator> {
    let view = cx.catalog_tx.view();
    let same =
        |o: &&Operator| o.schema == like.schema && (o.left, o.right) == (like.left, like.right);
    view.operators_named(&like.name).find(same).cloned()
}

/// The operator that another one names as its commutator or negator; a shell when it is still to come.
fn partner(
    name: &Name,
    of: &Operator,
    types: [u32; 2],
    negator: bool,
    cx: &mut ExecContext<'_>,
) -> Result<u32> {
    let view = cx.catalog_tx.view();
    let found = view.operator_named(cx.search_path, name.schema.as_deref(), &name.name, types);
    if let Some(id) = found {
        if id == of.oid && negator {
            return Err(bad("operator cannot be its own negator"));
        }
        return Ok(id);
    }
    let schema = match &name.schema {
        Some(_) => place(cx, name, "operator")?,
        None => of.schema,
    };
    let own = name.name == of.name && schema == of.schema && types == [of.left, of.right];
    if own {
        if negator {
            return Err(bad("operator cannot be its own negator"));
        }
        return Ok(of.oid);
    }
    let oid = super::super::new_oid(cx, schema)?;
    let shell = Operator {
        oid,
        name: name.name.clone(),
        schema,
        owner: cx.role,
        left: types[0],
        right: types[1],
        ..Operator::default()
    };
    put(cx, Defined::Operator(shell))?;
    Ok(oid)
}

/// The partners of an operator name it, unless they name another one already.
fn link_back(made: &Operator, cx: &mut ExecContext<'_>) -> Result<()> {
    for (id, negator) in [(made.commutator, false), (made.negator, true)] {
        let view = cx.catalog_tx.view();
        let Some(mut other) = view.operator(id).filter(|o| o.oid != made.oid).cloned() else {
            continue;
        };
        let slot = if negator { &mut other.negator } else { &mut other.commutator };
        if *slot == 0 {
            *slot = made.oid;
            put(cx, Defined::Operator(other))?;
        }
    }
    Ok(())
}

/// An operator goes: its partners forget it.
///
/// # Errors
/// Those of the catalog.
pub fn forget(view: &Snapshot, id: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    for other in view.operators().filter(|o| o.oid != id) {
        if other.commutator != id && other.negator != id {
            continue;
        }
        let Some(now) = cx.catalog_tx.view().operator(other.oid).cloned() else { continue };
        let mut changed = now;
        if changed.commutator == id {
            changed.commutator = 0;
        }
        if changed.negator == id {
            changed.negator = 0;
        }
        put(cx, Defined::Operator(changed))?;
    }
    Ok(())
}

/// ALTER OPERATOR … SET.
pub fn alter(
    wanted: &OperatorName,
    restrict: Option<&Option<Name>>,
    join: Option<&Option<Name>>,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let id = find(&view, cx.search_path, wanted)?;
    rights::require_owner(cx, catalog::AclKind::Defined, id, "operator", &full(&wanted.name))?;
    let Some(mut operator) = view.operator(id).cloned() else {
        let name = system::facts::regoperator(id).unwrap_or_default();
        return Err(Error::unsupported(format!("changing the operator {name} of the server")));
    };
    if let Some(name) = restrict {
        operator.restrict =
            name.as_ref().map(|n| estimator(n, false, cx)).transpose()?.unwrap_or(0);
    }
    if let Some(name) = join {
        operator.join = name.as_ref().map(|n| estimator(n, true, cx)).transpose()?.unwrap_or(0);
    }
    check_attributes(&operator)?;
    put(cx, Defined::Operator(operator))
}

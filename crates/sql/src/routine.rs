//! Functions and procedures that users made, as the binder knows functions: rows of the same shape as
//! those of the table in `types`.
//!
//! Rows are made when a function is first named and kept for as long as the server runs, as those of
//! the table are: a plan may hold one whatever happens to the catalog. They say how a function is
//! called, not what it does, so a CREATE OR REPLACE that changes the body only finds the row that
//! there is. What a row takes (some hundred bytes) is never given back; nobody defines functions by
//! the million.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use base::{Error, Oid, Result, err};
use catalog::{Function, Snapshot};
use pg_query::NodeEnum;
use types::func::{Body, CastContext, FunctionRow, InHelpers, Volatility};
use types::oids::{RECORD, VOID};

use crate::bind::Binder;
use crate::bind::coerce::is_polymorphic;
use crate::expr::Expr;
use crate::parse::parse;
use crate::plan::{Prepared, Statement};
use crate::prepare::{Arguments, PrepareContext};
use crate::utility::Utility;

type Rows = HashMap<u32, Vec<&'static FunctionRow>>;

/// The row of a function.
pub fn row(catalog: &Snapshot, function: &Function) -> &'static FunctionRow {
    static ROWS: OnceLock<Mutex<Rows>> = OnceLock::new();
    let args: Vec<Oid> = function.called_with().map(|a| Oid(a.ty)).collect();
    let defaults: Vec<&str> = function.inputs().filter_map(|a| a.default.as_deref()).collect();
    let columns = columns(catalog, function);
    let body = body_of(function);
    let fits = |row: &&FunctionRow| {
        row.name == function.name
            && row.args == args
            && row.defaults == defaults
            && row.variadic == function.is_variadic()
            && row.result.0 == function.result
            && row.columns.iter().copied().eq(columns.iter().map(|(n, t)| (n.as_str(), *t)))
            && row.returns_set == function.set
            && row.strict == function.strict
            && row.volatility == volatility(function)
            && row.helpers == in_helpers(function)
            && matches!(row.body, Body::User) == matches!(body, Body::User)
    };
    // Held for a look into a small map: nothing waits meanwhile.
    let mut rows = ROWS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let known = rows.entry(function.oid).or_default();
    if let Some(row) = known.iter().copied().find(fits) {
        return row;
    }
    let text = |s: &str| -> &'static str { String::leak(s.to_owned()) };
    let row: &'static FunctionRow = Box::leak(Box::new(FunctionRow {
        oid: Oid(function.oid),
        name: text(&function.name),
        args: Vec::leak(args),
        defaults: Vec::leak(defaults.into_iter().map(text).collect()),
        variadic: function.is_variadic(),
        result: Oid(function.result),
        columns: Vec::leak(columns.iter().map(|(n, t)| (text(n), *t)).collect()),
        returns_set: function.set,
        strict: function.strict,
        volatility: volatility(function),
        body,
        operator: Oid::INVALID,
        helpers: in_helpers(function),
    }));
    known.push(row);
    row
}

/// Which threads may call it. Other languages have contexts of the session's, and settings are the session's to change.
fn in_helpers(function: &Function) -> InHelpers {
    let able = function.settings.is_empty()
        && function.aggregate.is_none()
        && matches!(function.language.as_str(), "sql" | "plpgsql");
    match (able, function.parallel) {
        (false, _) => InHelpers::Never,
        (true, 's') => InHelpers::Safe,
        (true, _) => InHelpers::AsStep,
    }
}

/// How a function runs: in LANGUAGE internal as the built-in one that it names.
fn body_of(function: &Function) -> Body {
    if function.language == "c" && function.aggregate.is_none() {
        let library = types::extension::library_name(&function.library);
        return match types::extension::symbol(library, &function.body) {
            Some(body @ (Body::Scalar(_) | Body::Typed(_) | Body::Set(_))) => body,
            _ => Body::User,
        };
    }
    if function.language != "internal" || function.aggregate.is_some() {
        return Body::User;
    }
    match catalog::system::facts::runs_with_source(&function.body).map(|row| row.body) {
        Some(body @ (Body::Scalar(_) | Body::Typed(_) | Body::Set(_))) => body,
        _ => Body::User,
    }
}

/// What is called for a function's oid: a built-in row or a user's function. None: there is no such function,
/// or PostgreSQL has it and this server not.
pub fn callable(catalog: &Snapshot, id: u32) -> Option<&'static FunctionRow> {
    match catalog.function(id) {
        Some(function) => Some(row(catalog, function)),
        None => types::func::function(Oid(id)),
    }
}

/// The row behind a user's operator: its function's, with the operator's oid. Kept as [`row`]'s are.
pub fn operator_row(operator: u32, function: &'static FunctionRow) -> &'static FunctionRow {
    static ROWS: OnceLock<Mutex<OperatorRows>> = OnceLock::new();
    // Held for a look into a small map: nothing waits meanwhile.
    let mut rows = ROWS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let key = (operator, std::ptr::from_ref(function) as usize);
    rows.entry(key).or_insert_with(|| {
        Box::leak(Box::new(FunctionRow { operator: Oid(operator), ..*function }))
    })
}

type OperatorRows = HashMap<(u32, usize), &'static FunctionRow>;

fn volatility(function: &Function) -> Volatility {
    match function.volatility {
        'i' => Volatility::Immutable,
        's' => Volatility::Stable,
        _ => Volatility::Volatile,
    }
}

/// Names and types of the result's columns: its OUT parameters, or those of the table whose rows it
/// returns.
pub fn columns(catalog: &Snapshot, function: &Function) -> Vec<(String, Oid)> {
    if let Some(table) = function.row_of.and_then(|id| catalog.table(id)) {
        return table.live_columns().map(|(_, c)| (c.name.clone(), Oid(c.ty))).collect();
    }
    let unnamed = |n: usize, name: &str| match name {
        "" => format!("column{}", n + 1),
        name => name.to_owned(),
    };
    let outputs: Vec<_> = function.outputs().collect();
    if outputs.len() == 1 && outputs[0].name.is_empty() {
        return Vec::new();
    }
    outputs.iter().enumerate().map(|(n, a)| (unnamed(n, &a.name), Oid(a.ty))).collect()
}

/// What a type of a function's signature is in a call with inputs of these types.
pub fn real_type(function: &Function, types: &[Oid], ty: Oid) -> Oid {
    let given = function.inputs().map(|a| Oid(a.ty)).zip(types.iter().copied());
    crate::bind::polymorphic::real_in_call(ty, given)
}

/// A body that can be run.
pub struct RoutineBody {
    /// Its statements.
    pub statements: Vec<std::sync::Arc<Prepared>>,
    /// What the last statement's columns become: over its rows. None: nothing is returned.
    pub result: Option<Vec<Expr>>,
    /// Names and types of the result's columns.
    pub columns: Vec<(types::Text, Oid)>,
    /// The columns are those of the composite type that the function returns.
    pub composite: bool,
}

/// The statements of a body as plain SQL.
pub(crate) fn text_of(function: &Function) -> String {
    match function.body.strip_prefix("RETURN ") {
        Some(expr) if function.standard_body => format!("SELECT {expr}"),
        _ => function.body.clone(),
    }
}

/// Binds and plans a function's body. `types`: of the inputs, with real types for polymorphic ones;
/// `result`: likewise. `running`: it is about to run, so statements that may not are refused.
///
/// # Errors
/// Those of the statements; `42P13` when they don't give what the function declares; `0A000` for
/// statements that can't stand in a function. Positions are in the body.
pub fn prepare_body(
    function: &Function,
    types: &[Oid],
    result: Oid,
    running: bool,
    cx: &PrepareContext<'_>,
) -> Result<RoutineBody> {
    sched::check_stack()?;
    let text = text_of(function);
    let names = Arguments {
        function: function.name.clone(),
        names: function.inputs().map(|a| a.name.clone()).collect(),
    };
    let cx = &PrepareContext { arguments: Some(&names), values: &[], ..*cx };
    let mut statements = Vec::new();
    for one in parse(&text)? {
        if running {
            check_statement(&one.node)?;
        }
        let (prepared, _) = crate::statement::prepare(&one.node, &text, types, cx, None)?;
        if matches!(&*one.node, NodeEnum::CallStmt(_)) && !prepared.columns.is_empty() {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "calling procedures with output arguments is not supported in SQL functions"
            )
            .context(format!("SQL function \"{}\"", function.name)));
        }
        if running && function.volatility != 'v' && prepared.writes {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "{} is not allowed in a non-volatile function",
                prepared.tag
            ));
        }
        statements.push(prepared);
    }
    let composite = fills_row(result, statements.last());
    let (result, columns) = returned(function, types, result, statements.last(), cx)?;
    let statements = statements.into_iter().map(std::sync::Arc::new).collect();
    Ok(RoutineBody { statements, result, columns, composite })
}

/// Whether a new function's body, given as a string, makes sense; not asked when `check_function_bodies` is off. `body_at`: where it begins in the
/// statement's text.
///
/// # Errors
/// Those of the statements; `42P13` when they don't give what the function declares.
pub fn validate(function: &Function, body_at: Option<u32>, cx: &PrepareContext<'_>) -> Result<()> {
    let checks = cx.settings.bool(base::settings::setting::CHECK_FUNCTION_BODIES);
    if function.standard_body || !checks {
        return Ok(());
    }
    let polymorphic = function.args.iter().any(|a| is_polymorphic(Oid(a.ty)));
    let checked = if polymorphic {
        parse(&function.body).map(drop)
    } else {
        let (types, result) = (function.input_types(), Oid(function.result));
        prepare_body(function, &types, result, false, cx).map(drop)
    };
    checked.map_err(|error| match (error.fields().position, body_at) {
        (0, _) => error.context(format!("SQL function \"{}\"", function.name)),
        (_, Some(at)) => error.shift(at - 1),
        (_, None) => error.without_position(),
    })
}

/// `0A000` for what can't stand in a function's body.
fn check_statement(node: &NodeEnum) -> Result<()> {
    use pg_query::protobuf::TransactionStmtKind as K;
    let word = match node {
        NodeEnum::TransactionStmt(s) => match K::try_from(s.kind) {
            Ok(K::TransStmtBegin) => "BEGIN",
            Ok(K::TransStmtStart) => "START TRANSACTION",
            Ok(K::TransStmtCommit) => "COMMIT",
            Ok(K::TransStmtRollback | K::TransStmtRollbackTo) => "ROLLBACK",
            Ok(K::TransStmtSavepoint) => "SAVEPOINT",
            Ok(K::TransStmtRelease) => "RELEASE",
            _ => "PREPARE TRANSACTION",
        },
        NodeEnum::CopyStmt(s) if s.filename.is_empty() => {
            base::bail!(FEATURE_NOT_SUPPORTED, "cannot COPY to/from client in an SQL function")
        }
        _ => return Ok(()),
    };
    base::bail!(FEATURE_NOT_SUPPORTED, "{word} is not allowed in an SQL function")
}

fn mismatch(function: &Function, result: Oid, catalog: &Snapshot, detail: String) -> Error {
    let declared = match function.row_of.and_then(|id| catalog.table(id)) {
        Some(table) => table.name.clone(),
        None => types::io::format_type(result, -1),
    };
    err!(
        INVALID_FUNCTION_DEFINITION,
        "return type mismatch in function declared to return {declared}"
    )
    .detail(detail)
}

/// Whether the last statement's columns are the fields of the composite type that a function returns, and
/// not one value of that type.
fn fills_row(result: Oid, last: Option<&Prepared>) -> bool {
    let Some(last) = last.filter(|_| result != RECORD && types::user::shape(result).is_some())
    else {
        return false;
    };
    let is_row =
        |ty: Oid| ty == RECORD || types::user::base_type(ty, -1).0 == result || ty == result;
    !matches!(&last.columns[..], [one] if is_row(one.ty)) && !last.columns.is_empty()
}

/// What becomes of the last statement's columns, and the names and types that they have then.
#[allow(clippy::type_complexity)]
fn returned(
    function: &Function,
    types: &[Oid],
    result: Oid,
    last: Option<&Prepared>,
    cx: &PrepareContext<'_>,
) -> Result<(Option<Vec<Expr>>, Vec<(types::Text, Oid)>)> {
    if result == VOID {
        return Ok((None, Vec::new()));
    }
    let wrong = |detail: String| mismatch(function, result, cx.catalog, detail);
    let last = last.filter(|p| matches!(p.statement, Statement::Query(_)) && !p.columns.is_empty());
    let Some(last) = last else {
        let detail = "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.";
        return Err(wrong(detail.to_owned()));
    };
    let given = &last.columns;
    let mut binder = Binder::new(cx, "", &[]);
    let mut convert = |n: usize, to: Oid| -> Result<Option<Expr>> {
        let column = Expr::Column(n as u16, given[n].ty);
        binder.coerce(column, to, CastContext::Assignment, 0)
    };
    if fills_row(result, Some(last)) {
        return composite_row(function, result, last, cx);
    }
    if result != RECORD {
        if given.len() != 1 {
            return Err(wrong("Final statement must return exactly one column.".to_owned()));
        }
        let actual = types::io::format_type(given[0].ty, -1);
        let expr =
            convert(0, result)?.ok_or_else(|| wrong(format!("Actual return type is {actual}.")))?;
        return Ok((Some(vec![expr]), vec![(given[0].name.as_str().into(), result)]));
    }
    let real = |(name, ty): (String, Oid)| (name, real_type(function, types, ty));
    let wanted: Vec<_> = columns(cx.catalog, function).into_iter().map(real).collect();
    if wanted.is_empty() {
        let columns = given.iter().map(|c| (c.name.as_str().into(), c.ty)).collect();
        let exprs = given.iter().enumerate().map(|(n, c)| Expr::Column(n as u16, c.ty)).collect();
        return Ok((Some(exprs), columns));
    }
    let rows = function.row_of.and_then(|id| cx.catalog.table(id)).map_or(0, |t| t.row_type[0]);
    if given.len() == 1 && (given[0].ty == RECORD || rows != 0 && given[0].ty == Oid(rows)) {
        // One row value instead of its columns.
        let columns = wanted.into_iter().map(|(name, ty)| (name.into(), ty)).collect();
        return Ok((Some(vec![Expr::Column(0, RECORD)]), columns));
    }
    if given.len() < wanted.len() {
        return Err(wrong("Final statement returns too few columns.".to_owned()));
    }
    if given.len() > wanted.len() {
        return Err(wrong("Final statement returns too many columns.".to_owned()));
    }
    let mut exprs = Vec::with_capacity(wanted.len());
    let mut columns = Vec::with_capacity(wanted.len());
    for (n, (name, ty)) in wanted.into_iter().enumerate() {
        let expr = convert(n, ty)?.ok_or_else(|| {
            wrong(format!(
                "Final statement returns {} instead of {} at column {}.",
                types::io::format_type(given[n].ty, -1),
                types::io::format_type(ty, -1),
                n + 1
            ))
        })?;
        exprs.push(expr);
        columns.push((name.into(), ty));
    }
    Ok((Some(exprs), columns))
}

/// The last statement's columns as the fields of a composite type.
#[allow(clippy::type_complexity)]
fn composite_row(
    function: &Function,
    result: Oid,
    last: &Prepared,
    cx: &PrepareContext<'_>,
) -> Result<(Option<Vec<Expr>>, Vec<(types::Text, Oid)>)> {
    let wrong = |detail: String| mismatch(function, result, cx.catalog, detail);
    let columns: Vec<(types::Text, Oid)> =
        types::user::shape(result).map_or_else(Vec::new, |shape| shape.columns.to_vec());
    let given = &last.columns;
    if given.len() != columns.len() {
        let word = if given.len() < columns.len() { "few" } else { "many" };
        return Err(wrong(format!("Final statement returns too {word} columns.")));
    }
    let mut binder = Binder::new(cx, "", &[]);
    let mut exprs = Vec::with_capacity(columns.len());
    for (n, (_, ty)) in columns.iter().enumerate() {
        let column = Expr::Column(n as u16, given[n].ty);
        let value = binder.coerce(column, *ty, CastContext::Assignment, 0)?.ok_or_else(|| {
            wrong(format!(
                "Final statement returns {} instead of {} at column {}.",
                types::io::format_type(given[n].ty, -1),
                types::io::format_type(*ty, -1),
                n + 1
            ))
        })?;
        let typmod = crate::bind::coerce::typmod_of_field(result, n);
        exprs.push(binder.with_typmod(value, typmod, false, 0)?);
    }
    Ok((Some(exprs), columns))
}

/// The settings that a statement of a body would change; None for statements that change none.
pub fn setting_of(prepared: &Prepared) -> Option<(&str, Option<&str>, bool)> {
    match &prepared.statement {
        Statement::Utility(Utility::Set { name, value, local }) => {
            Some((name.as_str(), value.as_deref(), *local))
        }
        _ => None,
    }
}

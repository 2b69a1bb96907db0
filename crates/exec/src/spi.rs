//! SQL inside the server: checks of existing rows, rewrites, defaults.

use std::sync::Arc;

use base::{Oid, Result};
use catalog::object::ids;
use catalog::{Snapshot, Table};
use sql::plan::{Node, RowRules};
use sql::prepare::{PrepareContext, prepare};
use sql::{Prepared, Statement};
use types::{Batch, Datum};

use crate::context::{ExecContext, RowSink, Values};
use crate::nested;
use crate::rows;
use crate::run::{ExecState, Run};
use crate::security;
use crate::session::quote_identifier;
use crate::stored_plans::{self, PlanOf};

/// Gives each row to a function.
struct Each<'f> {
    types: Vec<Oid>,
    f: &'f mut dyn FnMut(&[Datum]) -> Result<()>,
}

impl RowSink for Each<'_> {
    fn batch(&mut self, batch: &Batch) -> Result<()> {
        for row in 0..batch.rows {
            (self.f)(&rows::get(batch, row, &self.types))?;
        }
        Ok(())
    }

    fn row(&mut self, row: &[Datum]) -> Result<()> {
        (self.f)(row)
    }

    fn copy_data(&mut self, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// Plans a statement of the server's own: rights on relations aren't asked for, those on functions are.
///
/// # Errors
/// Those of binding; `42501`.
pub fn plan(text: &str, cx: &mut ExecContext<'_>) -> Result<Arc<Prepared>> {
    own_statement(text, cx).map(Arc::new)
}

fn own_statement(text: &str, cx: &mut ExecContext<'_>) -> Result<Prepared> {
    let own = As { trusted: true, ..As::default() };
    with_context_as(cx, &own, |context| Ok(prepare(text, &[], context, None)?.0))
}

/// In whose name something is bound, where it looks for names, and under which settings; None: as the
/// session.
#[derive(Default)]
pub struct As {
    /// Schemas.
    pub path: Option<Vec<u32>>,
    /// Oid and name.
    pub role: Option<(u32, String)>,
    /// Settings.
    pub values: Option<Box<Values>>,
    /// [`PrepareContext::trusted`].
    pub trusted: bool,
}

/// Calls `f` with what binding needs, without questions about rights: the statement around it has been
/// checked.
pub fn with_context<R>(cx: &mut ExecContext<'_>, f: impl FnOnce(&PrepareContext<'_>) -> R) -> R {
    let role = Some((ids::SUPERUSER, cx.user.to_owned()));
    with_context_as(cx, &As { role, ..As::default() }, f)
}

/// Calls `f` with what binding needs in somebody's name, whose rights are checked.
pub fn with_context_as<R>(
    cx: &mut ExecContext<'_>,
    who: &As,
    f: impl FnOnce(&PrepareContext<'_>) -> R,
) -> R {
    let view = cx.catalog_tx.view();
    let engine = cx.engine;
    let table_size = |table: &Table| nested::table_size(engine, &view, table);
    let context = PrepareContext {
        catalog: &view,
        settings: who.values.as_ref().map_or(cx.settings, |v| &v.settings),
        search_path: who.path.as_deref().unwrap_or(cx.search_path),
        format: who.values.as_ref().map_or(cx.format, |v| &v.format),
        user: who.role.as_ref().map_or(cx.user, |r| r.1.as_str()),
        role: who.role.as_ref().map_or(cx.role, |r| r.0),
        trusted: who.trusted,
        database: cx.database.0,
        environment: 0,
        arguments: None,
        variables: None,
        values: &[],
        table_size: &table_size,
    };
    f(&context)
}

/// Runs a query over everything that is committed and the transaction's own changes so far.
///
/// # Errors
/// The query's, and `each`'s.
pub fn query(
    text: &str,
    cx: &mut ExecContext<'_>,
    each: &mut dyn FnMut(&[Datum]) -> Result<()>,
) -> Result<()> {
    let prepared = plan(text, cx)?;
    run_prepared(&prepared, cx, each)
}

/// As [`query`], with what the statement around it says in it: planned in the session's name, run as an
/// operation of the owner of what the expressions belong to.
///
/// # Errors
/// The query's, and `each`'s.
pub fn query_of(
    owner: u32,
    text: &str,
    cx: &mut ExecContext<'_>,
    each: &mut dyn FnMut(&[Datum]) -> Result<()>,
) -> Result<()> {
    let prepared = plan(text, cx)?;
    security::restricted(cx, owner, |cx| run_prepared(&prepared, cx, each))
}

/// As [`query`], as an operation of a role whose rights on everything are asked for.
///
/// # Errors
/// The query's, and `each`'s.
pub fn query_as(
    role: u32,
    text: &str,
    cx: &mut ExecContext<'_>,
    each: &mut dyn FnMut(&[Datum]) -> Result<()>,
) -> Result<()> {
    security::restricted(cx, role, |cx| {
        let prepared = with_context_as(cx, &As::default(), |context| {
            Ok(Arc::new(prepare(text, &[], context, None)?.0))
        })?;
        run_prepared(&prepared, cx, each)
    })
}

/// As [`query`], for a plan.
///
/// # Errors
/// The query's, and `each`'s.
pub fn run_prepared(
    prepared: &Arc<Prepared>,
    cx: &mut ExecContext<'_>,
    each: &mut dyn FnMut(&[Datum]) -> Result<()>,
) -> Result<()> {
    run_with(prepared, &[], cx, each)
}

/// As [`run_prepared`], with parameters.
///
/// # Errors
/// The query's, and `each`'s.
pub fn run_with(
    prepared: &Arc<Prepared>,
    params: &[Datum],
    cx: &mut ExecContext<'_>,
    each: &mut dyn FnMut(&[Datum]) -> Result<()>,
) -> Result<()> {
    let mut snapshot = cx.tx.latest_snapshot();
    snapshot.command = cx.tx.command() + 1;
    let run = cx.engine.calls.run;
    let mut inner = ExecContext { snapshot, params, ..cx.inner() };
    let types = prepared.columns.iter().map(|c| c.ty).collect();
    run(prepared, &mut inner, &mut Each { types, f: each })?;
    Ok(())
}

/// Runs a definition statement in somebody's name.
///
/// # Errors
/// The statement's.
pub fn statement_as(text: &str, who: &As, cx: &mut ExecContext<'_>) -> Result<()> {
    let prepared =
        with_context_as(cx, who, |context| Ok(Arc::new(prepare(text, &[], context, None)?.0)))?;
    let outer = (cx.user, cx.role, cx.search_path);
    let mut inner = ExecContext {
        search_path: who.path.as_deref().unwrap_or(outer.2),
        user: who.role.as_ref().map_or(outer.0, |r| r.1.as_str()),
        role: who.role.as_ref().map_or(outer.1, |r| r.0),
        ..cx.inner()
    };
    crate::execution::run_utility(
        &prepared,
        &mut inner,
        &mut Each { types: vec![], f: &mut |_| Ok(()) },
    )?;
    Ok(())
}

/// Calls `f` with what evaluating expressions outside of a statement's plan needs.
///
/// # Errors
/// `f`'s.
pub fn with_run<R>(
    cx: &mut ExecContext<'_>,
    f: impl FnOnce(&mut Run<'_, '_>) -> Result<R>,
) -> Result<R> {
    let prepared = plan("SELECT 1", cx)?;
    let mut state = ExecState::new(&prepared);
    let (params, snapshot) = (cx.params, cx.snapshot);
    f(&mut Run { cx, prepared: &prepared, params, snapshot, state: &mut state })
}

/// A table's qualified name, quoted.
pub fn qualified(view: &Snapshot, table: &Table) -> String {
    let schema = view.schema(table.schema).map_or("public", |s| s.name.as_str());
    format!("{}.{}", quote_identifier(schema), quote_identifier(&table.name))
}

/// The same for FROM, without the rows of tables that inherit from it; those of partitions are its own.
pub fn rows_of(view: &Snapshot, table: &Table) -> String {
    match table.is_partitioned() {
        true => qualified(view, table),
        false => format!("ONLY {}", qualified(view, table)),
    }
}

/// The value of a column's default, NULL without one.
///
/// # Errors
/// The expression's.
pub fn default_value(table: &Table, column: u16, cx: &mut ExecContext<'_>) -> Result<Datum> {
    let column = &table.columns[usize::from(column) - 1];
    match &column.default {
        None if types::user::is_user(Oid(column.ty)) => type_default(Oid(column.ty), cx),
        None => Ok(Datum::Null),
        Some(sql) => stored_value(sql, Oid(column.ty), column.typmod, cx),
    }
}

/// What a column of a user's type begins with: its domain's default, or NULL where that may be.
///
/// # Errors
/// The expression's, and those of the domain's constraints.
pub fn type_default(ty: Oid, cx: &mut ExecContext<'_>) -> Result<Datum> {
    let view = cx.catalog_tx.view();
    if types::user::base_type(ty, -1).0 == ty {
        let kind = view.user_type(ty.0).map(|t| &t.kind);
        return match kind {
            Some(catalog::UserTypeKind::Base(base)) if base.default.is_some() => {
                let text = base.default.as_deref().unwrap_or_default();
                types::io::input(ty, -1, text, cx.format)
            }
            _ => Ok(Datum::Null),
        };
    }
    let mut at = ty.0;
    while let Some(catalog::UserTypeKind::Domain { base, default, .. }) =
        view.user_type(at).map(|t| &t.kind)
    {
        if let Some(sql) = default {
            return stored_value(sql, ty, -1, cx);
        }
        at = *base;
    }
    stored_value("NULL", ty, -1, cx)
}

/// The value of an expression of a definition, as a type: planned once for all sessions.
///
/// # Errors
/// The expression's.
fn stored_value(sql: &str, ty: Oid, typmod: i32, cx: &mut ExecContext<'_>) -> Result<Datum> {
    let text = format!("SELECT CAST(({sql}) AS {})", types::io::format_type(ty, typmod));
    let of = PlanOf::Statement(cx.database.1, text.as_str().into());
    let prepared = stored_plans::get(of, cx, |cx| own_statement(&text, cx))?;
    let (role, mut value) = (cx.role, Datum::Null);
    security::restricted(cx, role, |cx| {
        run_prepared(&prepared, cx, &mut |row| {
            value = row[0].clone();
            Ok(())
        })
    })?;
    Ok(value)
}

/// The value of an expression without columns, as a type; computed as an operation of an owner.
///
/// # Errors
/// The expression's.
pub fn expression_value(
    sql: &str,
    ty: Oid,
    typmod: i32,
    owner: u32,
    cx: &mut ExecContext<'_>,
) -> Result<Datum> {
    let ty = types::io::format_type(ty, typmod);
    let mut value = Datum::Null;
    query_of(owner, &format!("SELECT CAST(({sql}) AS {ty})"), cx, &mut |row| {
        value = row[0].clone();
        Ok(())
    })?;
    Ok(value)
}

/// What each new row of a table must be, bound over its rows once for all sessions.
///
/// # Errors
/// When an expression no longer binds.
pub fn check_expressions(table: &Table, cx: &mut ExecContext<'_>) -> Result<RowRules> {
    let any = table.constraints.iter().any(|c| matches!(c.kind, catalog::ConstraintKind::Check(_)))
        || table.live_columns().any(|(_, c)| c.generated)
        || table.triggers.iter().any(|t| t.when.is_some())
        || cx.catalog_tx.view().indexes_of(table).iter().any(|i| !i.is_plain());
    if !any {
        return Ok(RowRules::default());
    }
    let rules = stored_plans::get(PlanOf::Rows(cx.database.1, table.oid), cx, |cx| {
        let view = cx.catalog_tx.view();
        let insert = format!("INSERT INTO {} DEFAULT VALUES", qualified(&view, table));
        let prepared = own_statement(&insert, cx)?;
        match &prepared.statement {
            Statement::Query(plan) => match &plan.node {
                Node::Modify(modify) => Ok(modify.checks.clone()),
                _ => Err(base::Error::internal("an insert has no Modify node")),
            },
            _ => Err(base::Error::internal("an insert has no plan")),
        }
    })?;
    Ok(RowRules::clone(&rules))
}

/// The rows of a query in the session's own name and under its settings, with its plan, which says its columns.
/// Rights are asked for.
///
/// # Errors
/// The query's.
pub fn rows_in_session(
    text: &str,
    cx: &mut ExecContext<'_>,
) -> Result<(Arc<Prepared>, Vec<Vec<Datum>>)> {
    let prepared = with_context_as(cx, &As::default(), |context| {
        Ok(Arc::new(prepare(text, &[], context, None)?.0))
    })?;
    let mut rows = Vec::new();
    run_prepared(&prepared, cx, &mut |row| {
        rows.push(row.to_vec());
        Ok(())
    })?;
    Ok((prepared, rows))
}

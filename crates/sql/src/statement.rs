//! Binds and plans one parsed statement of any kind.

use std::sync::Arc;
use std::time::Instant;

use base::{Error, Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};
use types::oids::TEXT;

use crate::bind::copy::BoundCopy;
use crate::bind::{Binder, ast, inner};
use crate::logical::{Change, Query};
use crate::plan::{OutputColumn, Prepared, Statement};
use crate::planner::{Planner, RequiredProperties};
use crate::prepare::{Lift, Lifted, PrepareContext};
use crate::utility::{ExplainFormat, LargeObjectStatement, Name, Utility};

/// Prepares one statement's tree. See [`crate::prepare::prepare`].
pub(crate) fn prepare(
    node: &NodeEnum,
    text: &str,
    declared: &[Oid],
    cx: &PrepareContext<'_>,
    lift: Option<&Lift<'_>>,
) -> Result<(Prepared, Vec<Lifted>)> {
    sched::check_stack()?;
    let mut binder = Binder::new(cx, text, declared);
    binder.variables = cx.variables;
    if let Some(lift) = lift {
        binder.lift(lift);
    }
    match node {
        NodeEnum::SelectStmt(select) => {
            if let Some(into) = &select.into_clause {
                let (query, lifted) = prepare_into(binder, select)?;
                let binder = Binder::new(cx, text, declared);
                return Ok((create_as(binder, query, into, false, None)?, lifted));
            }
            let locking = !select.locking_clause.is_empty();
            let query = binder.select(select, None, true)?;
            let (mut prepared, lifted) = plan_query(binder, query)?;
            prepared.writes |= locking;
            Ok((prepared, lifted))
        }
        NodeEnum::InsertStmt(_) | NodeEnum::UpdateStmt(_) | NodeEnum::DeleteStmt(_)
            if crate::rewrite::concerns(&binder, node)? =>
        {
            if lift.is_some() {
                return Err(Error::unsupported("literals of rewritten statements"));
            }
            Ok((crate::rewrite::prepare(node, text, declared, cx)?, Vec::new()))
        }
        NodeEnum::InsertStmt(stmt) => {
            let (change, output) = binder.insert(stmt)?;
            plan_change(binder, change, output, "INSERT")
        }
        NodeEnum::UpdateStmt(stmt) if binder.sets_statistics(stmt) => {
            let utility = binder.relation_statistics(stmt)?;
            Ok((plain(binder, utility), Vec::new()))
        }
        NodeEnum::UpdateStmt(stmt) => {
            let (change, output) = binder.update(stmt)?;
            plan_change(binder, change, output, "UPDATE")
        }
        NodeEnum::DeleteStmt(stmt) => {
            let (change, output) = binder.delete(stmt)?;
            plan_change(binder, change, output, "DELETE")
        }
        NodeEnum::MergeStmt(stmt) => {
            let (change, output) = binder.merge(stmt)?;
            plan_change(binder, change, output, "MERGE")
        }
        NodeEnum::ViewStmt(stmt) => {
            let utility = binder.create_view(stmt)?;
            Ok((plain(binder, utility), Vec::new()))
        }
        NodeEnum::ExplainStmt(stmt) => explain(binder, stmt, text, declared),
        NodeEnum::CopyStmt(stmt) => copy(binder, stmt),
        NodeEnum::CreateTableAsStmt(stmt) => {
            let materialized = stmt.objtype == pb::ObjectType::ObjectMatview as i32;
            let Some(query) = inner(&stmt.query) else {
                return Err(err!(SYNTAX_ERROR, "CREATE TABLE AS without a query"));
            };
            let Some(into) = &stmt.into else {
                return Err(err!(SYNTAX_ERROR, "CREATE TABLE AS without a table"));
            };
            if let NodeEnum::SelectStmt(select) = query
                && let Some(into) = &select.into_clause
            {
                return Err(binder.no_into(into));
            }
            if !matches!(query, NodeEnum::SelectStmt(_) | NodeEnum::ExecuteStmt(_)) {
                return Err(Error::unsupported("CREATE TABLE AS of this statement"));
            }
            let view = match materialized {
                false => None,
                true => {
                    let mut binder = Binder::new(cx, text, declared);
                    let defined = binder.defined_query(query, &into.col_names)?.1;
                    if crate::bind::cte::changes_data(query) {
                        return Err(err!(
                            FEATURE_NOT_SUPPORTED,
                            "materialized views must not use data-modifying statements in WITH"
                        ));
                    }
                    Some(defined)
                }
            };
            let (query, _) = prepare(query, text, declared, cx, None)?;
            Ok((create_as(binder, query, into, stmt.if_not_exists, view)?, Vec::new()))
        }
        NodeEnum::CallStmt(stmt) => {
            let (select, returns) = binder.call_statement(stmt)?;
            let query = binder.select(&select, None, true)?;
            let (mut prepared, lifted) = plan_query(binder, query)?;
            prepared.tag = "CALL";
            prepared.writes = true;
            if !returns {
                prepared.columns = Vec::new();
            }
            Ok((prepared, lifted))
        }
        NodeEnum::RefreshMatViewStmt(stmt) => {
            let utility = Utility::RefreshView {
                name: binder.name_of_range(&stmt.relation)?,
                concurrently: stmt.concurrent,
                no_data: stmt.skip_data,
            };
            Ok((plain(binder, utility), Vec::new()))
        }
        NodeEnum::DeclareCursorStmt(stmt) => {
            let (hold, scroll) = binder.cursor_options(stmt)?;
            let Some(query) = inner(&stmt.query) else {
                return Err(err!(SYNTAX_ERROR, "cursor without a query"));
            };
            if let NodeEnum::SelectStmt(select) = query
                && let Some(into) = &select.into_clause
            {
                return Err(binder.no_into(into));
            }
            if crate::bind::cte::changes_data(query) {
                prepare(query, text, declared, cx, None)?;
                return Err(err!(
                    FEATURE_NOT_SUPPORTED,
                    "DECLARE CURSOR must not contain data-modifying statements in WITH"
                ));
            }
            let (query, tables) = cursor_query(query, text, declared, cx)?;
            let (params, locks) = (query.params.clone(), query.locks.clone());
            let utility = Utility::DeclareCursor {
                tables,
                name: stmt.portalname.clone(),
                query: Arc::new(query),
                hold,
                scroll,
            };
            let mut prepared = plain(binder, utility);
            (prepared.params, prepared.locks) = (params, locks);
            Ok((prepared, Vec::new()))
        }
        other => match binder.plain_utility(other)? {
            Some(utility) => {
                // EXECUTE's arguments may be queries of the session's parameters: none are.
                binder.finish_params()?;
                if let Some(error) = binder.elsewhere.take() {
                    return Err(error);
                }
                if matches!(utility, Utility::AlterTable { .. } | Utility::CreateIndex { .. }) {
                    // Its expressions are run over all rows, with no further check.
                    binder.check_calls()?;
                }
                Ok((plain_with_subqueries(binder, utility)?, Vec::new()))
            }
            None => Err(Error::unsupported(crate::bind::words::statement(other))),
        },
    }
}

/// A cursor's query. If it is of a form that WHERE CURRENT OF takes, its rows end with where they are in
/// its tables; these with their children.
pub(crate) fn cursor_query(
    query: &NodeEnum,
    text: &str,
    declared: &[Oid],
    cx: &PrepareContext<'_>,
) -> Result<(Prepared, Vec<Vec<u32>>)> {
    if let NodeEnum::SelectStmt(select) = query
        && let Some((select, tables)) = crate::bind::current::with_places(select, cx)
        && let Ok((mut query, _)) =
            prepare(&NodeEnum::SelectStmt(Box::new(select)), text, declared, cx, None)
    {
        let own = query.columns.len() - 2 * tables.len();
        query.columns.truncate(own);
        return Ok((query, tables));
    }
    Ok((prepare(query, text, declared, cx, None)?.0, Vec::new()))
}

pub(crate) fn plan_query(mut binder: Binder<'_>, query: Query) -> Result<(Prepared, Vec<Lifted>)> {
    let mut lifted = binder.finish_params()?;
    let columns = query.output.clone();
    let cx = binder.cx;
    let (plan, mut prepared) =
        plan_with(binder, &mut lifted, |p| p.query(query, &RequiredProperties::default()))?;
    prepared.effects = plan.effects(&prepared.subplans);
    prepared.statement = Statement::Query(plan);
    crate::planner::foreign::push_down(&mut prepared, cx);
    if !prepared.writes {
        crate::planner::partition_wise::add(&mut prepared, cx);
        crate::planner::parallel::add_gathers(&mut prepared, cx);
    }
    prepared.columns = columns;
    prepared.tag = "SELECT";
    Ok((prepared, lifted))
}

pub(crate) fn plan_change(
    mut binder: Binder<'_>,
    change: Change,
    columns: Vec<OutputColumn>,
    tag: &'static str,
) -> Result<(Prepared, Vec<Lifted>)> {
    let mut lifted = binder.finish_params()?;
    let cx = binder.cx;
    let (plan, mut prepared) = plan_with(binder, &mut lifted, |p| p.change(change))?;
    prepared.effects = plan.effects(&prepared.subplans);
    prepared.statement = Statement::Query(plan);
    crate::planner::partition_wise::add(&mut prepared, cx);
    crate::planner::parallel::add_gathers(&mut prepared, cx);
    prepared.columns = columns;
    prepared.tag = tag;
    prepared.writes = true;
    Ok((prepared, lifted))
}

/// Runs the planner over what the binder collected; the statement itself is still to be filled in.
pub(crate) fn plan_with<R>(
    binder: Binder<'_>,
    lifted: &mut [Lifted],
    f: impl FnOnce(&mut Planner<'_>) -> Result<R>,
) -> Result<(R, Prepared)> {
    binder.check_rights()?;
    let cx = binder.cx;
    let known = match cx.values {
        [] => binder.lifted_values(lifted),
        values => values.iter().cloned().map(Some).collect(),
    };
    let mut planner = Planner::new(cx, binder.vars, binder.subqueries, binder.ctes);
    planner.known = known;
    let result = f(&mut planner)?;
    let changes = planner.changing_ctes()?;
    for param in planner.bound.take() {
        if let Some(one) = lifted.get_mut(param as usize) {
            one.relied = true;
        }
    }
    if changes.is_empty() {
        crate::planner::parallel::add_to_subplans(&mut planner.subplans, &planner.run_once, cx);
    }
    let prepared = Prepared {
        writes: !changes.is_empty(),
        changes,
        statement: Statement::Empty,
        params: binder.params,
        columns: Vec::new(),
        subplans: planner.subplans,
        slots: usize::from(planner.slots),
        locks: binder.locks,
        catalog_version: cx.catalog.version,
        tag: "",
        identity: Default::default(),
        constant_calls: binder.constant_calls.into_inner(),
        effects: Default::default(),
        executor: Default::default(),
        trials: Default::default(),
        stack: sched::stack_bytes(),
    };
    Ok((result, prepared))
}

fn plain(binder: Binder<'_>, utility: Utility) -> Prepared {
    let (tag, writes) = tag_of(&utility);
    Prepared {
        columns: utility_columns(&utility),
        statement: Statement::Utility(utility),
        params: binder.params,
        subplans: Vec::new(),
        changes: Vec::new(),
        slots: 0,
        locks: binder.locks,
        catalog_version: binder.cx.catalog.version,
        tag,
        writes,
        identity: Default::default(),
        constant_calls: Vec::new(),
        effects: Default::default(),
        executor: Default::default(),
        trials: Default::default(),
        stack: sched::stack_bytes(),
    }
}

/// A statement of the executor's about a plan that is there already.
pub(crate) fn around(utility: Utility, plan: &Arc<Prepared>) -> Prepared {
    let (tag, mut writes) = tag_of(&utility);
    if let Utility::Explain { options, .. } = &utility {
        writes = plan.writes && options.analyze;
    }
    Prepared {
        columns: utility_columns(&utility),
        statement: Statement::Utility(utility),
        params: plan.params.clone(),
        subplans: Vec::new(),
        changes: Vec::new(),
        slots: 0,
        locks: plan.locks.clone(),
        catalog_version: plan.catalog_version,
        tag,
        writes,
        identity: Default::default(),
        constant_calls: Vec::new(),
        effects: Default::default(),
        executor: Default::default(),
        trials: Default::default(),
        stack: sched::stack_bytes(),
    }
}

/// EXECUTE's arguments may hold subqueries, which need plans.
fn plain_with_subqueries(binder: Binder<'_>, utility: Utility) -> Result<Prepared> {
    let Utility::Execute { name, args } = utility else { return Ok(plain(binder, utility)) };
    let (args, mut prepared) = plan_with(binder, &mut [], |p| {
        args.into_iter().map(|e| p.resolve(e, &[])).collect::<Result<Vec<_>>>()
    })?;
    prepared.statement = Statement::Utility(Utility::Execute { name, args });
    prepared.tag = "EXECUTE";
    Ok(prepared)
}

fn text_column(name: &str) -> OutputColumn {
    OutputColumn {
        name: name.to_owned(),
        ty: TEXT,
        typmod: -1,
        table: Oid::INVALID,
        column: 0,
        collation: 0,
    }
}

fn utility_columns(utility: &Utility) -> Vec<OutputColumn> {
    match utility {
        Utility::Show(Some(name)) => {
            let name =
                base::settings::SettingId::find(name).map_or(name.as_str(), |s| s.def().name);
            vec![text_column(name)]
        }
        Utility::Show(None) => {
            vec![text_column("name"), text_column("setting"), text_column("description")]
        }
        Utility::Explain { options, .. } => {
            let mut column = text_column("QUERY PLAN");
            if options.format == ExplainFormat::Json {
                column.ty = types::oids::JSON;
            }
            vec![column]
        }
        _ => Vec::new(),
    }
}

fn explain(
    binder: Binder<'_>,
    stmt: &pb::ExplainStmt,
    text: &str,
    declared: &[Oid],
) -> Result<(Prepared, Vec<Lifted>)> {
    let options = binder.explain_options(&stmt.options)?;
    let Some(query) = inner(&stmt.query) else {
        return Err(err!(SYNTAX_ERROR, "EXPLAIN without a statement"));
    };
    let began = Instant::now();
    let (statement, _) = prepare(query, text, declared, binder.cx, None)?;
    let planning = began.elapsed();
    let (params, locks) = (statement.params.clone(), statement.locks.clone());
    let writes = statement.writes && options.analyze;
    let utility = Utility::Explain { planning, statement: Arc::new(statement), options };
    let mut prepared = plain(binder, utility);
    prepared.params = params;
    prepared.locks = locks;
    prepared.writes = writes;
    Ok((prepared, Vec::new()))
}

fn copy(mut binder: Binder<'_>, stmt: &pb::CopyStmt) -> Result<(Prepared, Vec<Lifted>)> {
    match binder.copy(stmt)? {
        BoundCopy::To { query, options } => {
            let locks = binder.locks.clone();
            let table =
                if stmt.relation.is_some() { locks.first().map_or(0, |l| l.0.0) } else { 0 };
            let cx = binder.cx;
            let (query, _) = plan_query(binder, query)?;
            let utility = Utility::CopyTo { table, query: Box::new(query), options };
            let mut prepared = plain(Binder::new(cx, "", &[]), utility);
            prepared.locks = locks;
            Ok((prepared, Vec::new()))
        }
        BoundCopy::Change { change, output, options } => {
            let (cx, locks) = (binder.cx, binder.locks.clone());
            let (query, _) = plan_change(binder, *change, output, "COPY")?;
            let utility = Utility::CopyTo { table: 0, query: Box::new(query), options };
            let mut prepared = plain(Binder::new(cx, "", &[]), utility);
            prepared.locks = locks;
            prepared.writes = true;
            Ok((prepared, Vec::new()))
        }
        BoundCopy::From { modify, columns, defaults, filter, row, options } => {
            let (utility, mut prepared) = plan_with(binder, &mut [], |p| {
                let defaults = defaults
                    .into_iter()
                    .map(|d| d.map(|e| p.resolve(e, &[])).transpose())
                    .collect::<Result<_>>()?;
                let filter = filter.map(|e| p.resolve(e, &row)).transpose()?;
                Ok(Utility::CopyFrom { modify, columns, defaults, filter, options })
            })?;
            prepared.statement = Statement::Utility(utility);
            prepared.tag = "COPY";
            prepared.writes = true;
            Ok((prepared, Vec::new()))
        }
    }
}

/// The query of SELECT … INTO.
fn prepare_into(
    mut binder: Binder<'_>,
    select: &pb::SelectStmt,
) -> Result<(Prepared, Vec<Lifted>)> {
    binder.allow_into();
    let query = binder.select(select, None, true)?;
    plan_query(binder, query)
}

fn create_as(
    binder: Binder<'_>,
    query: Prepared,
    into: &pb::IntoClause,
    if_not_exists: bool,
    view: Option<catalog::ViewQuery>,
) -> Result<Prepared> {
    let Some(range) = &into.rel else {
        return Err(err!(SYNTAX_ERROR, "CREATE TABLE AS without a table"));
    };
    let persistence = binder.persistence(Some(range), into.on_commit)?;
    let name: Name = binder.name_of_range(&Some(range.clone()))?;
    let columns = ast::owned_strings(&into.col_names);
    // What EXECUTE runs is known later.
    let executes = matches!(query.statement, Statement::Utility(_));
    if columns.len() > query.columns.len() && !executes {
        return Err(err!(SYNTAX_ERROR, "too many column names were specified"));
    }
    let locks = query.locks.clone();
    let params = query.params.clone();
    let utility = Utility::CreateTableAs {
        name,
        columns,
        query: Arc::new(query),
        no_data: into.skip_data,
        if_not_exists,
        persistence,
        view: view.map(Box::new),
        method: (!into.access_method.is_empty()).then(|| into.access_method.clone()),
        options: binder.options(&into.options)?,
    };
    let mut prepared = plain(binder, utility);
    prepared.locks = locks;
    prepared.params = params;
    Ok(prepared)
}

/// The command tag, and whether the statement may change data or definitions.
fn tag_of(utility: &Utility) -> (&'static str, bool) {
    match utility {
        Utility::Begin(_) => ("BEGIN", false),
        Utility::Commit { .. } => ("COMMIT", false),
        Utility::Rollback { .. } | Utility::RollbackTo(_) => ("ROLLBACK", false),
        Utility::Savepoint(_) => ("SAVEPOINT", false),
        Utility::Release(_) => ("RELEASE", false),
        Utility::TwoPhase(words, _) => (words, false),
        Utility::LargeObject(LargeObjectStatement::Owner(..)) => ("ALTER LARGE OBJECT", true),
        Utility::LargeObject(LargeObjectStatement::Grant { grant: true, .. }) => ("GRANT", true),
        Utility::LargeObject(LargeObjectStatement::Grant { .. }) => ("REVOKE", true),
        Utility::SetTransaction { .. } | Utility::ImportSnapshot(_) | Utility::Set { .. } => {
            ("SET", false)
        }
        Utility::SetConstraints { .. } => ("SET CONSTRAINTS", false),
        Utility::Show(_) => ("SHOW", false),
        Utility::Reset(_) => ("RESET", false),
        Utility::AlterSystem { .. } => ("ALTER SYSTEM", false),
        Utility::Discard(what) => (
            match *what {
                "PLANS" => "DISCARD PLANS",
                "SEQUENCES" => "DISCARD SEQUENCES",
                "TEMP" => "DISCARD TEMP",
                _ => "DISCARD ALL",
            },
            false,
        ),
        Utility::Listen(_) => ("LISTEN", false),
        Utility::Unlisten(_) => ("UNLISTEN", false),
        Utility::Notify { .. } => ("NOTIFY", false),
        Utility::Prepare { .. } => ("PREPARE", false),
        Utility::Execute { .. } => ("EXECUTE", false),
        Utility::Deallocate(Some(_)) => ("DEALLOCATE", false),
        Utility::Deallocate(None) => ("DEALLOCATE ALL", false),
        Utility::CreateTable { foreign: Some(_), .. } => ("CREATE FOREIGN TABLE", true),
        Utility::CreateTable { .. } => ("CREATE TABLE", true),
        Utility::Foreign(statement) => (statement.tag(), true),
        Utility::SetSchema { kind, .. } => (alter_tag(kind), true),
        Utility::CreateView { .. } => ("CREATE VIEW", true),
        Utility::CreateRule(_) => ("CREATE RULE", true),
        Utility::DropRule(_) => ("DROP RULE", true),
        Utility::EventTrigger(statement) => (statement.tag(), true),
        Utility::Publication(statement) => (statement.tag(), true),
        Utility::Subscription(statement) => (statement.tag(), true),
        Utility::CreatePolicy(_) => ("CREATE POLICY", true),
        Utility::AlterPolicy(_) => ("ALTER POLICY", true),
        Utility::DropPolicy(_) => ("DROP POLICY", true),
        Utility::CreateTrigger(_) => ("CREATE TRIGGER", true),
        Utility::DropTrigger(_) => ("DROP TRIGGER", true),
        Utility::RefreshView { .. } => ("REFRESH MATERIALIZED VIEW", true),
        Utility::CreateSequence { .. } => ("CREATE SEQUENCE", true),
        Utility::AlterSequence { .. } => ("ALTER SEQUENCE", true),
        Utility::CreateTableAs { .. } => ("SELECT", true),
        Utility::Drop { kind, .. } => (
            match *kind {
                "TABLE" => "DROP TABLE",
                "INDEX" => "DROP INDEX",
                "SCHEMA" => "DROP SCHEMA",
                "VIEW" => "DROP VIEW",
                "MATERIALIZED VIEW" => "DROP MATERIALIZED VIEW",
                "FOREIGN TABLE" => "DROP FOREIGN TABLE",
                "TYPE" => "DROP TYPE",
                "DOMAIN" => "DROP DOMAIN",
                "COLLATION" => "DROP COLLATION",
                _ => "DROP SEQUENCE",
            },
            true,
        ),
        Utility::AlterTable { kind, .. } => (alter_tag(kind), true),
        Utility::Rename { kind: "COLUMN", of, .. } => (alter_tag(of), true),
        Utility::Rename { kind, .. } => (alter_tag(kind), true),
        Utility::CreateRoutine(def) if def.function.procedure => ("CREATE PROCEDURE", true),
        Utility::CreateRoutine(def) if def.function.aggregate.is_some() => {
            ("CREATE AGGREGATE", true)
        }
        Utility::CreateRoutine(_) => ("CREATE FUNCTION", true),
        Utility::DropRoutine { routines, .. } => (
            match routines.first().map(|r| r.kind) {
                Some("PROCEDURE") => "DROP PROCEDURE",
                Some("AGGREGATE") => "DROP AGGREGATE",
                Some("ROUTINE") => "DROP ROUTINE",
                _ => "DROP FUNCTION",
            },
            true,
        ),
        Utility::AlterRoutine { routine, .. } => (
            match routine.kind {
                "PROCEDURE" => "ALTER PROCEDURE",
                "AGGREGATE" => "ALTER AGGREGATE",
                "ROUTINE" => "ALTER ROUTINE",
                _ => "ALTER FUNCTION",
            },
            true,
        ),
        Utility::Do { .. } => ("DO", false),
        Utility::Nothing { tag, .. } => (tag, true),
        Utility::CreateIndex { .. } => ("CREATE INDEX", true),
        Utility::Reindex(_) => ("REINDEX", true),
        Utility::Cluster { .. } => ("CLUSTER", true),
        Utility::RelationStatistics(_) => ("UPDATE", true),
        Utility::CreateSchema { .. } => ("CREATE SCHEMA", true),
        Utility::Truncate { .. } => ("TRUNCATE TABLE", true),
        Utility::CopyFrom { .. } => ("COPY", true),
        Utility::CopyTo { .. } => ("COPY", false),
        Utility::Vacuum { vacuum: true, .. } => ("VACUUM", false),
        Utility::Vacuum { .. } => ("ANALYZE", false),
        Utility::Explain { .. } => ("EXPLAIN", false),
        Utility::LockTable { .. } => ("LOCK TABLE", false),
        Utility::Checkpoint => ("CHECKPOINT", false),
        Utility::Comment(_) => ("COMMENT", true),
        Utility::DeclareCursor { .. } => ("DECLARE CURSOR", false),
        Utility::Fetch { moving: false, .. } => ("FETCH", false),
        Utility::Fetch { .. } => ("MOVE", false),
        Utility::ClosePortal(Some(_)) => ("CLOSE CURSOR", false),
        Utility::ClosePortal(None) => ("CLOSE CURSOR ALL", false),
        Utility::Role(statement) => (statement.tag(), true),
        Utility::Database(statement) => (statement.tag(), true),
        Utility::Type(statement) => (statement.tag(), true),
        Utility::Collation(statement) => (statement.tag(), true),
        Utility::Define(statement) => (statement.tag(), true),
        Utility::Extension(statement) => (statement.tag(), true),
        Utility::NoOp(_) => ("SET", false),
    }
}

fn alter_tag(kind: &str) -> &'static str {
    match kind {
        "INDEX" => "ALTER INDEX",
        "SCHEMA" => "ALTER SCHEMA",
        "SEQUENCE" => "ALTER SEQUENCE",
        "POLICY" => "ALTER POLICY",
        "RULE" => "ALTER RULE",
        "TRIGGER" => "ALTER TRIGGER",
        "VIEW" => "ALTER VIEW",
        "MATERIALIZED VIEW" => "ALTER MATERIALIZED VIEW",
        "FOREIGN TABLE" => "ALTER FOREIGN TABLE",
        "TYPE" => "ALTER TYPE",
        "DOMAIN" => "ALTER DOMAIN",
        "FUNCTION" => "ALTER FUNCTION",
        "PROCEDURE" => "ALTER PROCEDURE",
        _ => "ALTER TABLE",
    }
}

//! The way from a statement to the file that runs it.

use std::sync::Arc;

use base::faults::{self, Fault};
use base::{Error, Oid, Result};
use catalog::Table;
use exec::context::{ExecContext, Outcome, RowSink, Utilities};
use exec::relation_lock::{named_table, open_if};
use exec::{copy, explain, rights};
use sql::Prepared;
use sql::utility::{Name, Utility};
use txn::{LockMode, LockTag, LockWait};

use crate::{
    alter_table, collation, comment, create_index, create_schema, create_table, create_table_as,
    database, defined, drop, event_trigger, extension, foreign, function, inherit, large_object,
    maintain, policy, publication, rename, role, rule, sequence, set_constraints, set_schema,
    steps, subscription, trigger, truncate, type_statements, view,
};

/// The executor's way to them.
pub struct Statements;

impl Utilities for Statements {
    fn run(
        &self,
        utility: &Utility,
        prepared: &Arc<Prepared>,
        cx: &mut ExecContext<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<Outcome> {
        event_trigger::around(utility, prepared.tag, cx, |cx| run(utility, prepared, cx, sink))
    }
}

/// Runs the statement.
///
/// # Errors
/// Whatever it raises; `0A000` for what isn't supported.
fn run(
    utility: &Utility,
    prepared: &Arc<Prepared>,
    cx: &mut ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Outcome> {
    super::type_usage::check(utility, cx)?;
    match utility {
        Utility::CreateTable { .. } => create_table::run(utility, cx)?,
        Utility::SetConstraints { names, deferred } => {
            set_constraints::run(cx, names, *deferred)?;
        }
        Utility::SetSchema { kind, object, to, if_exists } => {
            set_schema::run(cx, kind, object, to, *if_exists)?;
        }
        Utility::RefreshView { name, concurrently, no_data } => {
            create_table_as::refresh(cx, name, *concurrently, *no_data)?;
        }
        Utility::CreateRule(def) => rule::create(def, cx)?,
        Utility::DropRule(def) => drop::rule::drop(def, cx)?,
        Utility::EventTrigger(statement) => event_trigger::run(statement, cx)?,
        Utility::Foreign(statement) => foreign::run(statement, cx)?,
        Utility::Publication(statement) => publication::run(statement, cx)?,
        Utility::Subscription(statement) => subscription::run(statement, cx)?,
        Utility::CreatePolicy(def) => policy::create(def, cx)?,
        Utility::AlterPolicy(def) => policy::alter(def, cx)?,
        Utility::DropPolicy(def) => drop::policy::drop(def, cx)?,
        Utility::CreateTrigger(def) => trigger::create(def, cx)?,
        Utility::DropTrigger(def) => drop::trigger::drop(def, cx)?,
        Utility::CreateView { name, columns, query, replace, options, persistence } => {
            view::create(cx, name, columns, query, *replace, (options, *persistence))?;
        }
        Utility::CreateSequence { name, options, if_not_exists, persistence } => {
            sequence::create(cx, name, options, *if_not_exists, *persistence)?;
        }
        Utility::AlterSequence { name, options, if_exists } => {
            sequence::alter(cx, name, options, *if_exists)?;
        }
        Utility::CreateRoutine(def) => function::create(def, cx)?,
        Utility::DropRoutine { routines, if_exists, cascade } => {
            drop::function::drop(routines, *if_exists, *cascade, cx)?;
        }
        Utility::AlterRoutine { routine, change } => function::alter(routine, change, cx)?,
        Utility::Do { body, language, body_at } => {
            function::require_language(language, cx)?;
            let nonatomic = cx.nonatomic;
            let mut inner = ExecContext { nonatomic, ..cx.inner() };
            exec::routine::run_block(language, body, &mut inner).map_err(|e| match body_at {
                Some(at) => e.shift(at - 1),
                None => e.inside(body),
            })?;
        }
        Utility::Nothing { notices, .. } => {
            notices.iter().for_each(|one| cx.hooks.notice("NOTICE", one.clone()));
        }
        Utility::CreateTableAs { .. } => return create_table_as::run(utility, cx),
        Utility::CreateIndex { .. } => create_index::run(utility, cx)?,
        Utility::Reindex(reindex) => steps::reindex(reindex, cx)?,
        Utility::RelationStatistics(query) => {
            let rows = maintain::relation_statistics::set(query, cx)?;
            return Ok(Outcome { rows, tag: Some("UPDATE") });
        }
        Utility::Cluster { table, index, verbose } => {
            maintain::cluster::run(table.as_ref(), index.as_deref(), *verbose, cx)?;
        }
        Utility::CreateSchema { name, owner, if_not_exists, elements } => {
            create_schema::run(name, owner.as_ref(), *if_not_exists, elements, cx)?;
        }
        Utility::Role(statement) => role::run(statement, cx)?,
        Utility::Database(statement) => database::run(statement, cx)?,
        Utility::Type(statement) => type_statements::run(statement, cx)?,
        Utility::Collation(statement) => collation::run(statement, cx)?,
        Utility::Define(statement) => defined::statements::run(statement, cx)?,
        Utility::Extension(statement) => extension::run(statement, cx)?,
        Utility::Drop { kind, names, if_exists, cascade, .. } => {
            drop::run(kind, names, *if_exists, *cascade, cx)?;
        }
        Utility::AlterTable { kind, table, if_exists, steps, later } => {
            alter_table::run(kind, table, *if_exists, (steps, later.as_ref()), cx)?;
        }
        Utility::Rename { kind, table, part, to, if_exists, .. } => {
            rename::run(kind, table, part.as_deref(), to, *if_exists, cx)?;
        }
        Utility::Truncate { tables, cascade, restart } => {
            truncate::run(tables, *cascade, *restart, cx)?;
        }
        Utility::Comment(statement) => comment::run(statement, cx)?,
        Utility::LargeObject(statement) => large_object::run(statement, cx)?,
        Utility::CopyFrom { .. } => return copy::from::run(utility, prepared, cx),
        Utility::CopyTo { table, query, options } => {
            return copy::to::run(*table, query, options, cx, sink);
        }
        Utility::Vacuum {
            tables,
            vacuum,
            analyze,
            full,
            verbose,
            parallel,
            truncate,
            skip_locked,
        } => {
            let work = maintain::Work {
                vacuum: *vacuum,
                analyze: *analyze,
                full: *full,
                verbose: *verbose,
                parallel: *parallel,
                truncate: *truncate,
                skip_locked: *skip_locked,
            };
            maintain::run(tables, work, cx)?;
        }
        Utility::Explain { planning, statement, options } => {
            return explain::run(statement, *planning, options, cx, sink);
        }
        Utility::LockTable { tables, mode, nowait } => lock_tables(tables, *mode, *nowait, cx)?,
        Utility::Checkpoint => {
            let view = cx.catalog_tx.view();
            if !rights::of(cx, &view).has_rights_of(cx.role, catalog::object::ids::CHECKPOINT) {
                base::bail!(
                    INSUFFICIENT_PRIVILEGE,
                    "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT"
                );
            }
            cx.engine.storage.checkpoint()?;
        }
        _ => return Err(Error::internal("the session's statement reached the executor")),
    }
    faults::reach(Fault::Define)?;
    Ok(Outcome::default())
}

/// Rights that allow a lock: those to change the table, or with the weaker modes less.
fn check_lock(cx: &mut ExecContext<'_>, table: &Table, mode: LockMode) -> Result<()> {
    use catalog::acl::privilege as p;
    let change = p::UPDATE | p::DELETE | p::TRUNCATE;
    let enough = match mode {
        LockMode::AccessShare => p::SELECT | change,
        LockMode::RowExclusive => p::INSERT | change,
        _ => change,
    };
    let view = cx.catalog_tx.view();
    let held = rights::of(cx, &view).held(cx.role, catalog::AclKind::Table, table.oid);
    if held.privileges & enough != 0 {
        return Ok(());
    }
    Err(catalog::acl::denied("table", &table.name))
}

/// LOCK TABLE.
fn lock_tables(
    tables: &[Name],
    mode: LockMode,
    nowait: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    for name in tables {
        let check = |cx: &mut ExecContext<'_>, table: &Table| check_lock(cx, table, mode);
        if !nowait {
            let table = open_if(cx, name, mode, check)?;
            if !name.only {
                inherit::descendants(cx, table.oid, mode)?;
            }
            continue;
        }
        let table = named_table(cx, name)?;
        check(cx, &table)?;
        let mut next = vec![table];
        while let Some(table) = next.pop() {
            let locks = &cx.tx.manager().locks;
            let tag = LockTag::Relation(Oid(cx.database.1), Oid(table.oid));
            if !locks.lock(cx.tx.locks(), tag, mode, LockWait::Try)? {
                base::bail!(
                    LOCK_NOT_AVAILABLE,
                    "could not obtain lock on relation \"{}\"",
                    table.name
                );
            }
            if !name.only {
                let view = cx.catalog_tx.view();
                let below = view.children(&table);
                next.extend(below.iter().filter_map(|id| view.table(*id).cloned()));
            }
        }
    }
    Ok(())
}

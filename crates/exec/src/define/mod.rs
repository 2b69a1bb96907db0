//! Statements that are not queries: definitions, COPY, maintenance, EXPLAIN. One small file each.
//!
//! A definition changes objects through the transaction's [`catalog::CatalogTx`]; nobody else sees
//! them before it commits. Locks come first, then the view is looked at (again), then the change.

mod alter_table;
mod collation;
mod comment;
mod comment_builtin;
mod composite;
mod constraint;
mod create_index;
mod create_schema;
mod create_table;
mod create_table_as;
pub mod database;
mod depend;
mod domain;
mod drop;
mod function;
mod identity;
mod index_build;
mod index_keys;
mod inherit;
pub mod inner;
mod name;
mod relation;
mod rename;
mod rewrite;
mod role;
mod sequence;
mod set_constraints;
mod set_schema;
mod steps;
mod truncate;
mod user_types;
mod view;

use std::sync::Arc;

use base::faults::{self, Fault};
use base::{Error, Oid, Result};
use catalog::Table;
use sql::Prepared;
use sql::utility::{Name, Utility};
use txn::{LockMode, LockTag, LockWait};

use crate::context::{ExecContext, Outcome, RowSink};
use crate::{copy, explain, maintain, rights};

pub use depend::kind_word;
pub(crate) use index_build::computed_by;
pub use inner::{check_expressions, default_value};
pub use rewrite::{rewrite, rewrite_with};
pub use steps::Job;

/// Runs the statement.
///
/// # Errors
/// Whatever it raises; `0A000` for what isn't supported.
pub fn run(
    utility: &Utility,
    prepared: &Arc<Prepared>,
    cx: &mut ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Outcome> {
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
            function::drop(routines, *if_exists, *cascade, cx)?;
        }
        Utility::AlterRoutine { routine, change } => function::alter(routine, change, cx)?,
        Utility::Nothing { notices, .. } => {
            notices.iter().for_each(|one| cx.hooks.notice("NOTICE", one.clone()));
        }
        Utility::CreateTableAs { .. } => return create_table_as::run(utility, cx),
        Utility::CreateIndex { .. } => create_index::run(utility, cx)?,
        Utility::Reindex(reindex) => steps::reindex(reindex, cx)?,
        Utility::Cluster { table, index } => {
            maintain::cluster::run(table.as_ref(), index.as_deref(), cx)?;
        }
        Utility::CreateSchema { name, owner, if_not_exists, elements } => {
            create_schema::run(name, owner.as_ref(), *if_not_exists, elements, cx)?;
        }
        Utility::Role(statement) => role::run(statement, cx)?,
        Utility::Database(statement) => database::run(statement, cx)?,
        Utility::Type(statement) => user_types::run(statement, cx)?,
        Utility::Collation(statement) => collation::run(statement, cx)?,
        Utility::Drop { kind, names, if_exists, cascade, .. } => {
            drop::run(kind, names, *if_exists, *cascade, cx)?;
        }
        Utility::AlterTable { kind, table, if_exists, steps } => {
            alter_table::run(kind, table, *if_exists, steps, cx)?;
        }
        Utility::Rename { kind, table, part, to, if_exists } => {
            rename::run(kind, table, part.as_deref(), to, *if_exists, cx)?;
        }
        Utility::Truncate { tables, cascade, restart } => {
            truncate::run(tables, *cascade, *restart, cx)?;
        }
        Utility::Comment(statement) => comment::run(statement, cx)?,
        Utility::CopyFrom { .. } => return copy::from::run(utility, prepared, cx),
        Utility::CopyTo { table, query, options } => {
            return copy::to::run(*table, query, options, cx, sink);
        }
        Utility::Vacuum { tables, vacuum, analyze, full } => {
            maintain::run(tables, *vacuum, *analyze, *full, cx)?;
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

/// Whether a statement is the executor's, not the session's.
pub fn is_own(utility: &Utility) -> bool {
    !matches!(
        utility,
        Utility::Begin(_)
            | Utility::Commit { .. }
            | Utility::Rollback { .. }
            | Utility::Savepoint(_)
            | Utility::Release(_)
            | Utility::RollbackTo(_)
            | Utility::SetTransaction { .. }
            | Utility::Set { .. }
            | Utility::Show(_)
            | Utility::Reset(_)
            | Utility::AlterSystem { .. }
            | Utility::Listen(_)
            | Utility::Unlisten(_)
            | Utility::Notify { .. }
            | Utility::Discard(_)
            | Utility::Prepare { .. }
            | Utility::Execute { .. }
            | Utility::Deallocate(_)
            | Utility::DeclareCursor { .. }
            | Utility::Fetch { .. }
            | Utility::ClosePortal(_)
            | Utility::Vacuum { vacuum: true, .. }
            | Utility::NoOp(_)
    ) && utility.executes().is_none()
}

/// Takes a relation's lock until the transaction ends.
///
/// # Errors
/// Deadlocks, time-outs, interrupts.
pub fn lock(cx: &ExecContext<'_>, relation: u32, mode: LockMode) -> Result<()> {
    let locks = &cx.tx.manager().locks;
    let tag = LockTag::Relation(Oid(cx.database.1), Oid(relation));
    locks.lock(cx.tx.locks(), tag, mode, LockWait::Block)?;
    Ok(())
}

/// Finds a table and locks it; looks again once the lock is there, since it may have been dropped
/// or renamed meanwhile.
///
/// # Errors
/// `42P01`, `42809`, those of locking.
pub fn open_table(cx: &mut ExecContext<'_>, name: &Name, mode: LockMode) -> Result<Arc<Table>> {
    open_if(cx, name, mode, |_, _| Ok(()))
}

/// As [`open_table`], for the table's owner: who may not change it does not wait for it, nor make others
/// wait.
///
/// # Errors
/// And `42501`.
pub fn open_owned(cx: &mut ExecContext<'_>, name: &Name, mode: LockMode) -> Result<Arc<Table>> {
    open_if(cx, name, mode, rights::require_table_owner)
}

/// As [`open_table`], if the check has nothing against it.
///
/// # Errors
/// And the check's.
pub fn open_if(
    cx: &mut ExecContext<'_>,
    name: &Name,
    mode: LockMode,
    check: impl Fn(&mut ExecContext<'_>, &Table) -> Result<()>,
) -> Result<Arc<Table>> {
    loop {
        let table = named_table(cx, name)?;
        check(cx, &table)?;
        lock(cx, table.oid, mode)?;
        let again = named_table(cx, name)?;
        if again.oid == table.oid {
            return Ok(again);
        }
    }
}

/// The table with this name, not locked.
///
/// # Errors
/// `42P01`, `42809`.
pub fn named_table(cx: &mut ExecContext<'_>, name: &Name) -> Result<Arc<Table>> {
    let view = cx.catalog_tx.view();
    let schema = name.schema.as_deref();
    view.expect_table(cx.search_path, schema, &name.name).map_err(|error| {
        if catalog::system::find(schema, &name.name).is_some() {
            return base::err!(
                INSUFFICIENT_PRIVILEGE,
                "permission denied: \"{}\" is a system catalog",
                name.name
            );
        }
        error
    })
}

/// `42809` for what only a table has.
///
/// # Errors
/// See above.
pub fn expect_plain(table: &Table) -> Result<()> {
    if table.kind == catalog::TableKind::View {
        base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table", table.name);
    }
    Ok(())
}

/// The table as the transaction sees it now, after changes of its own.
///
/// # Errors
/// `42P01` when it is gone.
pub fn refresh(cx: &mut ExecContext<'_>, id: u32) -> Result<Table> {
    let view = cx.catalog_tx.view();
    view.table(id)
        .map(|t| Table::clone(t))
        .ok_or_else(|| base::err!(UNDEFINED_TABLE, "relation with OID {id} does not exist"))
}

/// `55006` when a cursor reads a table, or checks wait for what the transaction did to it. `what`: the
/// statement.
///
/// # Errors
/// See above.
pub fn expect_checked(cx: &mut ExecContext<'_>, table: &Table, what: &str) -> Result<()> {
    if cx.hooks.is_read(table.oid) {
        base::bail!(
            OBJECT_IN_USE,
            "cannot {what} \"{}\" because it is being used by active queries in this session",
            table.name
        );
    }
    if cx.hooks.deferred().concerns(table.oid) {
        base::bail!(
            OBJECT_IN_USE,
            "cannot {what} \"{}\" because it has pending trigger events",
            table.name
        );
    }
    Ok(())
}

/// A new object's id: a temporary one beside a temporary schema, table or index.
///
/// # Errors
/// When none is left.
pub fn new_oid(cx: &mut ExecContext<'_>, beside: u32) -> Result<u32> {
    if Oid(beside).is_temporary() {
        return cx.catalog_tx.new_temporary_id(false);
    }
    cx.engine.txn.next_oid()
}

/// A NOTICE.
pub fn notice(cx: &mut ExecContext<'_>, code: base::SqlState, message: String) {
    cx.hooks.notice("NOTICE", Error::new(code, message));
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
                next.extend(table.children.iter().filter_map(|id| view.table(*id).cloned()));
            }
        }
    }
    Ok(())
}

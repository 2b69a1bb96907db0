//! Relations by name: found, locked, and looked at again once the lock is there.

use std::sync::Arc;

use base::{Error, Oid, Result};
use catalog::Table;
use sql::utility::Name;
use txn::{LockMode, LockTag, LockWait};

use crate::context::ExecContext;
use crate::rights;

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

/// Takes a relation's lock until the transaction ends, if nobody holds one against it; whether it did.
///
/// # Errors
/// Interrupts.
pub fn try_lock(cx: &ExecContext<'_>, relation: u32, mode: LockMode) -> Result<bool> {
    let locks = &cx.tx.manager().locks;
    let tag = LockTag::Relation(Oid(cx.database.1), Oid(relation));
    locks.lock(cx.tx.locks(), tag, mode, LockWait::Try)
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
    if cx.hooks.is_read(table.oid) || cx.hooks.deferred().is_changing(table.oid) {
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
    // Extensions' scripts say nothing below a warning.
    let mark = crate::native::SCRIPT_MARK;
    if cx.hooks.deferred().running.last().is_some_and(|tag| tag.starts_with(mark)) {
        return;
    }
    cx.hooks.notice("NOTICE", Error::new(code, message));
}

/// The word for a relation's kind.
pub fn kind_word(table: &Table) -> &'static str {
    match table.kind {
        catalog::TableKind::View => "view",
        catalog::TableKind::Materialized => "materialized view",
        catalog::TableKind::Foreign => "foreign table",
        _ => "table",
    }
}

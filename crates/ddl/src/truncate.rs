//! TRUNCATE: new, empty files. The old ones go when the transaction commits.

use std::sync::Arc;

use access::AnyIndex;
use base::{RelId, Result, err};
use catalog::acl::privilege;
use catalog::{AclKind, Index, Object, Table};
use exec::context::ExecContext;
use exec::language::TriggerTiming;
use exec::modify::triggers;
use exec::rights;
use sql::utility::Name;
use txn::LockMode;

use super::{lock, notice, open_if, refresh};
use crate::column::new_files;

fn check(cx: &mut ExecContext<'_>, table: &Table) -> Result<()> {
    rights::require(cx, AclKind::Table, table.oid, privilege::TRUNCATE, &table.name)
}

/// TRUNCATE.
pub fn run(names: &[Name], cascade: bool, restart: bool, cx: &mut ExecContext<'_>) -> Result<()> {
    let mut tables: Vec<Arc<Table>> = Vec::new();
    for name in names {
        let table = open_if(cx, name, LockMode::AccessExclusive, check)?;
        super::expect_plain(&table)?;
        if table.kind == catalog::TableKind::Materialized {
            base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table", table.name);
        }
        let mut all = vec![table.oid];
        if !name.only {
            all.extend(super::inherit::descendants(cx, table.oid, LockMode::AccessExclusive)?);
        }
        for id in all {
            if !tables.iter().any(|t| t.oid == id) {
                tables.push(Arc::new(refresh(cx, id)?));
            }
        }
    }
    for table in &tables {
        super::expect_checked(cx, table, "TRUNCATE")?;
    }
    let mut next = 0;
    while next < tables.len() {
        for other in tables[next].referenced_by.clone() {
            if tables.iter().any(|t| t.oid == other) {
                continue;
            }
            let child = refresh(cx, other)?;
            if cascade {
                check(cx, &child)?;
            }
            lock(cx, other, LockMode::AccessExclusive)?;
            let child = Arc::new(refresh(cx, other)?);
            if !cascade {
                let parent = &tables[next].name;
                return Err(err!(
                    FEATURE_NOT_SUPPORTED,
                    "cannot truncate a table referenced in a foreign key constraint"
                )
                .detail(format!("Table \"{}\" references \"{parent}\".", child.name))
                .hint(format!(
                    "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.",
                    child.name
                )));
            }
            let message = format!("truncate cascades to table \"{}\"", child.name);
            notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
            tables.push(child);
        }
        next += 1;
    }
    for table in &tables {
        triggers::truncated(table, TriggerTiming::Before, cx)?;
    }
    for table in &tables {
        if table.kind == catalog::TableKind::Foreign {
            let code = sql::foreign::code_of(&cx.catalog_tx.view(), table)?;
            exec::foreign::find(&code)?.truncate(table, cascade, restart, cx)?;
            continue;
        }
        truncate(cx, table.oid)?;
        if restart {
            super::sequence::restart_owned(cx, table.oid)?;
        }
    }
    exec::change_log::truncated(&tables, cascade, restart, cx)?;
    for table in &tables {
        triggers::truncated(&Arc::new(refresh(cx, table.oid)?), TriggerTiming::After, cx)?;
    }
    Ok(())
}

fn truncate(cx: &mut ExecContext<'_>, id: u32) -> Result<()> {
    let mut table = refresh(cx, id)?;
    if table.is_partitioned() {
        return Ok(());
    }
    let rel = new_files(cx, id)?;
    cx.tx.replaces_relation(RelId(table.rel))?;
    cx.engine.txn.serial.transfer(RelId(table.rel), rel);
    cx.catalog_tx.drop_files_at_commit(RelId(table.rel));
    table.rel = rel.0;
    let view = cx.catalog_tx.view();
    for index in view.indexes_of(&table) {
        let mut index = Index::clone(&index);
        let rel = new_files(cx, id)?;
        cx.engine.txn.serial.transfer(RelId(index.rel), RelId(table.rel));
        cx.catalog_tx.drop_files_at_commit(RelId(index.rel));
        index.rel = rel.0;
        AnyIndex::create(index.method, &cx.engine.storage, rel)?;
        cx.catalog_tx.put(cx.tx, Object::Index(index))?;
    }
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

//! CREATE, DROP and RENAME of triggers; ENABLE and DISABLE.

use std::sync::Arc;

use base::{Error, Oid, Result, err};
use catalog::acl::privilege;
use catalog::snapshot::Relation;
use catalog::system::facts;
use catalog::{AclKind, Object, Snapshot, Table, TableKind, Trigger, trigger_type as t};
use exec::context::ExecContext;
use exec::rights;
use exec::spi::with_context;
use sql::trigger::{CreateTrigger, TriggerSelection};
use sql::utility::Name;
use txn::LockMode;
use types::oids;

use super::{lock, refresh};
use crate::describe::describe;
use crate::forget::remove_comments;
use crate::item::Item;

/// CREATE TRIGGER.
///
/// # Errors
/// `42809`, `42710`, `42P17`, `0A000`, `42883`, `42501`.
pub fn create(def: &CreateTrigger, cx: &mut ExecContext<'_>) -> Result<()> {
    let table = open(&def.table, cx)?;
    check_kind(&table, &def.trigger, def.constraint)?;
    let other = match &def.other {
        Some(name) => open_other(name, cx)?,
        None => 0,
    };
    rights::require(cx, AclKind::Table, table.oid, privilege::TRIGGER, &table.name)?;
    lock(cx, table.oid, LockMode::ShareRowExclusive)?;
    let mut table = refresh(cx, table.oid)?;
    let mut trigger = Trigger { other, ..def.trigger.clone() };
    check_transitions(&table, &trigger, !def.columns.is_empty())?;
    check_instead(&trigger, !def.columns.is_empty())?;
    for name in &def.columns {
        let found = table.column(name).map(|(n, _)| n).ok_or_else(|| {
            let relation = &table.name;
            err!(UNDEFINED_COLUMN, "column \"{name}\" of relation \"{relation}\" does not exist")
        })?;
        if trigger.columns.contains(&found) {
            base::bail!(DUPLICATE_COLUMN, "column \"{name}\" specified more than once");
        }
        trigger.columns.push(found);
    }
    if let Some(sql) = trigger.when.take() {
        let (sql, uses) = with_context(cx, |cx| sql::trigger::check(cx, &table, &trigger, &sql))?;
        (trigger.when, trigger.uses) = (Some(sql), uses);
    }
    trigger.function = function(&def.function, cx)?;
    let known = table.trigger(&trigger.name).map(|old| (old.oid, old.constraint, old.enabled));
    if def.replace && def.constraint {
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "CREATE OR REPLACE CONSTRAINT TRIGGER is not supported"
        ));
    }
    match known {
        Some(_) if !def.replace => return Err(exists(&trigger.name, &table)),
        Some((_, constraint, _)) if constraint != 0 => {
            base::bail!(
                DUPLICATE_OBJECT,
                "trigger \"{}\" for relation \"{}\" is a constraint trigger",
                trigger.name,
                table.name
            );
        }
        Some((oid, ..)) => trigger.oid = oid,
        None => trigger.oid = super::new_oid(cx, table.oid)?,
    }
    if def.constraint {
        trigger.constraint = super::new_oid(cx, table.oid)?;
    }
    table.triggers.retain(|old| old.name != trigger.name);
    table.triggers.push(trigger);
    sort(&mut table);
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table.clone())))?;
    match table.triggers.iter().find(|t| t.name == def.trigger.name).filter(|_| !def.replace) {
        Some(whole) => super::partition::spread_trigger(cx, &table, whole),
        None => Ok(()),
    }
}

/// Triggers fire in the order of their names.
fn sort(table: &mut Table) {
    table.triggers.sort_by(|a, b| a.name.cmp(&b.name));
}

fn exists(name: &str, table: &Table) -> Error {
    err!(DUPLICATE_OBJECT, "trigger \"{name}\" for relation \"{}\" already exists", table.name)
}

fn missing(name: &str, table: &Table) -> Error {
    err!(UNDEFINED_OBJECT, "trigger \"{name}\" for table \"{}\" does not exist", table.name)
}

/// The relation that a trigger is to stand on.
fn open(name: &Name, cx: &mut ExecContext<'_>) -> Result<Arc<Table>> {
    let view = cx.catalog_tx.view();
    let found = view.relation(cx.search_path, name.schema.as_deref(), &name.name);
    let of = |what: &str| {
        err!(WRONG_OBJECT_TYPE, "relation \"{}\" cannot have triggers", name.name)
            .detail(format!("This operation is not supported for {what}."))
    };
    match found {
        Some(Relation::Sequence(_)) => Err(of("sequences")),
        Some(Relation::Index(_)) => Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is an index", name.name)),
        Some(Relation::Table(t)) if t.kind == TableKind::Materialized => {
            Err(of("materialized views"))
        }
        _ => exec::relation_lock::named_table(cx, name),
    }
}

fn open_other(name: &Name, cx: &mut ExecContext<'_>) -> Result<u32> {
    Ok(super::open_table(cx, name, LockMode::AccessShare)?.oid)
}

/// Checks that a table, or a view, may have the trigger.
fn check_kind(table: &Table, trigger: &Trigger, constraint: bool) -> Result<()> {
    let wrong = |is: &str, why: &str| {
        Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is a {is}", table.name).detail(why.to_owned()))
    };
    if table.kind == TableKind::Foreign {
        let what = match () {
            () if trigger.has(t::INSTEAD) => "INSTEAD OF",
            () if trigger.has(t::TRUNCATE) => "TRUNCATE",
            () if constraint => "constraint",
            () => return Ok(()),
        };
        return wrong("foreign table", &format!("Foreign tables cannot have {what} triggers."));
    }
    if table.kind != TableKind::View {
        return match trigger.has(t::INSTEAD) {
            true => wrong("table", "Tables cannot have INSTEAD OF triggers."),
            false => Ok(()),
        };
    }
    if trigger.is_row() && !trigger.has(t::INSTEAD) {
        return wrong("view", "Views cannot have row-level BEFORE or AFTER triggers.");
    }
    if trigger.has(t::TRUNCATE) {
        return wrong("view", "Views cannot have TRUNCATE triggers.");
    }
    Ok(())
}

fn check_instead(trigger: &Trigger, columns: bool) -> Result<()> {
    let refused = |why: &str| Err(err!(FEATURE_NOT_SUPPORTED, "{why}"));
    if trigger.has(t::TRUNCATE) && trigger.is_row() {
        return refused("TRUNCATE FOR EACH ROW triggers are not supported");
    }
    if !trigger.has(t::INSTEAD) {
        return Ok(());
    }
    if !trigger.is_row() {
        return refused("INSTEAD OF triggers must be FOR EACH ROW");
    }
    if trigger.when.is_some() {
        return refused("INSTEAD OF triggers cannot have WHEN conditions");
    }
    if columns {
        return refused("INSTEAD OF triggers cannot have column lists");
    }
    Ok(())
}

/// REFERENCING.
fn check_transitions(table: &Table, trigger: &Trigger, columns: bool) -> Result<()> {
    if trigger.old_table.is_none() && trigger.new_table.is_none() {
        return Ok(());
    }
    let refused = |why: &str| Err(err!(FEATURE_NOT_SUPPORTED, "{why}"));
    let wrong = |why: &str| Err(err!(INVALID_OBJECT_DEFINITION, "{why}"));
    if table.kind == TableKind::View {
        return Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is a view", table.name)
            .detail("Triggers on views cannot have transition tables."));
    }
    if table.kind == TableKind::Foreign {
        return Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is a foreign table", table.name)
            .detail("Triggers on foreign tables cannot have transition tables."));
    }
    if trigger.is_row() && table.is_partitioned() {
        return Err(err!(FEATURE_NOT_SUPPORTED, "\"{}\" is a partitioned table", table.name)
            .detail(
                "ROW triggers with transition tables are not supported on partitioned tables.",
            ));
    }
    if trigger.is_row() && !table.parents.is_empty() {
        return refused(match table.partition_of().is_some() {
            true => "ROW triggers with transition tables are not supported on partitions",
            false => {
                "ROW triggers with transition tables are not supported on inheritance children"
            }
        });
    }
    if !trigger.is_after() {
        return wrong("transition table name can only be specified for an AFTER trigger");
    }
    if trigger.has(t::TRUNCATE) {
        return refused("TRUNCATE triggers with transition tables are not supported");
    }
    if trigger.events().count() > 1 {
        return refused(
            "transition tables cannot be specified for triggers with more than one event",
        );
    }
    if columns {
        return refused("transition tables cannot be specified for triggers with column lists");
    }
    if trigger.old_table.is_some() && !(trigger.has(t::DELETE) || trigger.has(t::UPDATE)) {
        return wrong("OLD TABLE can only be specified for a DELETE or UPDATE trigger");
    }
    if trigger.new_table.is_some() && !(trigger.has(t::INSERT) || trigger.has(t::UPDATE)) {
        return wrong("NEW TABLE can only be specified for an INSERT or UPDATE trigger");
    }
    Ok(())
}

/// The function that a trigger is to call, which the session's role may call.
fn function(name: &Name, cx: &mut ExecContext<'_>) -> Result<u32> {
    let view = cx.catalog_tx.view();
    let shown = match &name.schema {
        Some(schema) => format!("{schema}.{}", name.name),
        None => name.name.clone(),
    };
    let schemas = match &name.schema {
        Some(schema) => vec![
            view.schema_named(schema)
                .ok_or_else(|| err!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist"))?
                .oid,
        ],
        None => cx.search_path.to_vec(),
    };
    let own = schemas.iter().find_map(|schema| {
        let mut all = view.functions_named(&name.name).filter(|f| f.schema == *schema);
        all.find(|f| f.inputs().next().is_none() && !f.procedure)
    });
    let undefined = || err!(UNDEFINED_FUNCTION, "function {shown}() does not exist");
    let not_trigger =
        || err!(INVALID_OBJECT_DEFINITION, "function {} must return type trigger", name.name);
    let Some(own) = own else {
        let oid = built_in(name).ok_or_else(undefined)?;
        let returns = facts::function_result(oid);
        return if returns.as_deref() == Some("trigger") { Ok(oid) } else { Err(not_trigger()) };
    };
    rights::require(cx, AclKind::Function, own.oid, privilege::EXECUTE, &own.name)?;
    if Oid(own.result) != oids::TRIGGER {
        return Err(not_trigger());
    }
    Ok(own.oid)
}

/// PostgreSQL's own function without parameters of this name.
fn built_in(name: &Name) -> Option<u32> {
    if name.schema.as_deref().is_some_and(|s| s != "pg_catalog") {
        return None;
    }
    let bare = |id: &u32| facts::function_arguments(*id, true).is_some_and(|a| a.is_empty());
    facts::named(&name.name).into_iter().find(bare)
}

/// A partition's part of a trigger goes with the whole only.
pub(crate) fn expect_whole(cx: &mut ExecContext<'_>, table: &Table, trigger: u32) -> Result<()> {
    let own = table.triggers.iter().find(|t| t.oid == trigger).filter(|t| t.parent != 0);
    let (Some(own), Some(above)) = (own, table.partition_of()) else { return Ok(()) };
    let (view, path) = (cx.catalog_tx.view(), cx.search_path);
    let what = describe(&view, path, Item::Trigger(table.oid, own.oid));
    let by = describe(&view, path, Item::Trigger(above, own.parent));
    Err(err!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot drop {what} because {by} requires it")
        .hint(format!("You can drop {by} instead.")))
}

/// Takes a trigger off its table.
///
/// # Errors
/// Those of changing the catalog.
pub fn remove(cx: &mut ExecContext<'_>, table: u32, trigger: u32) -> Result<()> {
    remove_comments(cx, trigger)?;
    let Ok(mut table) = refresh(cx, table) else { return Ok(()) };
    table.triggers.retain(|one| one.oid != trigger);
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

/// ALTER TRIGGER … RENAME.
///
/// # Errors
/// `42P01`, `42704`, `42710`, `42501`.
pub fn rename(table: &Name, from: &str, to: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    let table = super::open_owned(cx, table, LockMode::AccessExclusive)?;
    let mut table = Table::clone(&table);
    if table.trigger(from).is_none() {
        return Err(missing(from, &table));
    }
    if table.trigger(to).is_some() {
        return Err(exists(to, &table));
    }
    for one in table.triggers.iter_mut().filter(|one| one.name == from) {
        to.clone_into(&mut one.name);
    }
    sort(&mut table);
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

/// ALTER TABLE … ENABLE and DISABLE TRIGGER; without ONLY those of a partitioned table's rows in its partitions, too.
///
/// # Errors
/// `42704`; `42501` for the triggers of constraints, which are a superuser's; `0A000` to disable those.
pub fn enable(
    id: u32,
    which: &TriggerSelection,
    enabled: char,
    only: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    sched::check_stack()?;
    let mut table = refresh(cx, id)?;
    if let TriggerSelection::Named(name) = which
        && table.trigger(name).is_none()
    {
        return Err(missing(name, &table));
    }
    if matches!(which, TriggerSelection::All) {
        enable_system(&mut table, enabled != 'D', cx)?;
    }
    let chosen = |one: &Trigger| match which {
        TriggerSelection::Named(name) => one.name == *name,
        TriggerSelection::All | TriggerSelection::User => true,
    };
    table.triggers.iter_mut().filter(|one| chosen(one)).for_each(|one| one.enabled = enabled);
    let goes_down = table.is_partitioned() && !only;
    let of_rows = table.triggers.iter().filter(|t| goes_down && chosen(t) && t.is_row());
    let rows: Vec<String> = of_rows.map(|t| t.name.clone()).collect();
    let parts = if rows.is_empty() { Vec::new() } else { cx.catalog_tx.view().children(&table) };
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))?;
    for part in parts {
        lock(cx, part, LockMode::ShareRowExclusive)?;
        let known = refresh(cx, part)?;
        for name in rows.iter().filter(|name| known.trigger(name).is_some()) {
            enable(part, &TriggerSelection::Named(name.clone()), enabled, only, cx)?;
        }
    }
    Ok(())
}

/// The triggers of a table's foreign keys, and of those that refer to it: they are the system's, and a
/// superuser's to enable or disable.
fn enable_system(table: &mut Table, enabled: bool, cx: &mut ExecContext<'_>) -> Result<()> {
    if table.triggers_off != enabled {
        return Ok(());
    }
    let key = table.foreign_keys().next().map(|(c, _)| c.oid);
    let view = cx.catalog_tx.view();
    if let Some(key) = key.or(table.referenced_by.first().copied())
        && !exec::rights::of(cx, &view).is_superuser(cx.role)
    {
        base::bail!(
            INSUFFICIENT_PRIVILEGE,
            "permission denied: \"RI_ConstraintTrigger_a_{key}\" is a system trigger"
        );
    }
    table.triggers_off = !enabled;
    Ok(())
}

/// Triggers that call a function or name an object in their condition.
pub fn users(view: &Snapshot, id: u32) -> Vec<Item> {
    let uses = |one: &&Trigger| {
        one.function == id || one.uses.iter().any(|(object, column)| *object == id && *column == 0)
    };
    let of = |table: &Arc<Table>| {
        let oid = table.oid;
        let all = table.triggers.iter().filter(uses);
        all.map(move |one| Item::Trigger(oid, one.oid)).collect::<Vec<_>>()
    };
    view.tables().flat_map(of).collect()
}

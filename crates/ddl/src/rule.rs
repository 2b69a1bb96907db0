//! CREATE, DROP and RENAME of rules; ENABLE and DISABLE.

use std::sync::Arc;

use base::{Error, Result, err, sqlstate};
use catalog::snapshot::Relation;
use catalog::{Object, Rule, Snapshot, Table, TableKind};
use exec::context::ExecContext;
use exec::rights;
use exec::spi::with_context;
use sql::rule::CreateRule;
use sql::utility::Name;
use txn::LockMode;

use super::{lock, refresh};
use crate::forget::{drop_files, remove_comments};
use crate::item::Item;

/// The name of the rule that is a view's query.
pub const RETURN: &str = "_RETURN";

/// CREATE [OR REPLACE] RULE.
///
/// # Errors
/// `42809`, `42501`, `42710`, `42P17`.
pub fn create(def: &CreateRule, cx: &mut ExecContext<'_>) -> Result<()> {
    let table = exec::relation_lock::named_table(cx, &def.table)?;
    rights::require_table_owner(cx, &table)?;
    lock(cx, table.oid, LockMode::AccessExclusive)?;
    let mut table = refresh(cx, table.oid)?;
    if let Some((columns, query)) = &def.select {
        return select_rule(table, def, columns, query, cx);
    }
    let name = &def.rule.name;
    if table.query.is_some() && name == RETURN || name == RETURN && table.kind == TableKind::Table {
        base::bail!(
            INVALID_OBJECT_DEFINITION,
            "non-view rule for \"{}\" must not be named \"{RETURN}\"",
            table.name
        );
    }
    let known = table.rule(name).map(|r| (r.oid, r.event));
    let oid = match known {
        Some(_) if !def.replace => {
            base::bail!(
                DUPLICATE_OBJECT,
                "rule \"{name}\" for relation \"{}\" already exists",
                table.name
            );
        }
        Some((oid, _)) => oid,
        None => super::new_oid(cx, table.oid)?,
    };
    table.rules.retain(|r| r.name != *name);
    table.rules.push(Rule { oid, ..def.rule.clone() });
    put(table, cx)
}

/// An ON SELECT rule: a view's query anew, or a table that becomes a view.
fn select_rule(
    mut table: Table,
    def: &CreateRule,
    columns: &[sql::utility::ColumnDef],
    query: &catalog::ViewQuery,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    check_columns(&table, columns)?;
    if table.kind == TableKind::View {
        if !def.replace {
            base::bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "\"{}\" is already a view", table.name);
        }
    } else {
        let why = |what: &str| {
            Err(err!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "could not convert table \"{}\" to a view because {what}",
                table.name
            ))
        };
        let of = |what: &str| {
            let name = &table.name;
            Err(err!(WRONG_OBJECT_TYPE, "cannot convert {what} \"{name}\" to a view"))
        };
        if table.is_partitioned() {
            return of("partitioned table");
        }
        if table.bound.is_some() {
            return of("partition");
        }
        if !is_empty(&table, cx)? {
            return why("it is not empty");
        }
        if !table.triggers.is_empty() {
            return Err(err!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "could not convert table \"{}\" to a view because it has triggers",
                table.name
            )
            .hint(
                "In particular, the table cannot be involved in any foreign key relationships.",
            ));
        }
        if !table.indexes.is_empty() {
            return why("it has indexes");
        }
        if !cx.catalog_tx.view().children(&table).is_empty() {
            return why("it has child tables");
        }
        if !table.parents.is_empty() {
            return why("it has parent tables");
        }
        if table.row_security {
            return why("it has row security enabled");
        }
        if !table.policies.is_empty() {
            return why("it has row security policies");
        }
        drop_files(cx, table.rel)?;
        table.kind = TableKind::View;
        table.rel = 0;
        table.constraints.clear();
        for column in &mut table.columns {
            column.not_null = false;
        }
    }
    if def.rule.name != RETURN {
        base::bail!(
            INVALID_OBJECT_DEFINITION,
            "view rule for \"{}\" must be named \"{RETURN}\"",
            table.name
        );
    }
    table.query = Some(Box::new(query.clone()));
    put(table, cx)
}

fn is_empty(table: &Table, cx: &mut ExecContext<'_>) -> Result<bool> {
    let mut empty = true;
    let sql = format!("SELECT 1 FROM ONLY {} LIMIT 1", qualified(table, cx));
    exec::spi::query_of(table.owner, &sql, cx, &mut |_| {
        empty = false;
        Ok(())
    })?;
    Ok(empty)
}

fn qualified(table: &Table, cx: &mut ExecContext<'_>) -> String {
    let view = cx.catalog_tx.view();
    let quoted = catalog::definition::quote_ident;
    let schema = view.schema(table.schema).map_or_else(String::new, |s| quoted(&s.name));
    format!("{schema}.{}", quoted(&table.name))
}

/// The query gives the relation's columns.
fn check_columns(table: &Table, columns: &[sql::utility::ColumnDef]) -> Result<()> {
    let wrong = |text: String| Error::new(sqlstate::INVALID_OBJECT_DEFINITION, text);
    let live: Vec<_> = table.live_columns().map(|(_, c)| c).collect();
    for (n, given) in columns.iter().enumerate() {
        let n1 = n + 1;
        let Some(own) = live.get(n) else {
            return Err(wrong("SELECT rule's target list has too many entries".to_owned()));
        };
        if given.name != own.name {
            return Err(wrong(format!(
                "SELECT rule's target entry {n1} has different column name from column \"{}\"",
                own.name
            ))
            .detail(format!("SELECT target entry is named \"{}\".", given.name)));
        }
        let format = |ty, typmod| types::io::format_type(ty, typmod);
        if given.ty.0 != own.ty {
            return Err(wrong(format!(
                "SELECT rule's target entry {n1} has different type from column \"{}\"",
                own.name
            ))
            .detail(format!(
                "SELECT target entry has type {}, but column has type {}.",
                format(given.ty, -1),
                format(base::Oid(own.ty), -1)
            )));
        }
        if given.typmod != own.typmod && given.typmod != -1 {
            return Err(wrong(format!(
                "SELECT rule's target entry {n1} has different size from column \"{}\"",
                own.name
            ))
            .detail(format!(
                "SELECT target entry has type {}, but column has type {}.",
                format(given.ty, given.typmod),
                format(base::Oid(own.ty), own.typmod)
            )));
        }
    }
    if columns.len() < live.len() {
        return Err(wrong("SELECT rule's target list has too few entries".to_owned()));
    }
    Ok(())
}

/// ALTER RULE … RENAME.
///
/// # Errors
/// `42P01`, `42704`, `42710`, `42P17`, `42501`.
pub fn rename(table: &Name, from: &str, to: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    let view = cx.catalog_tx.view();
    let found = view.relation(cx.search_path, table.schema.as_deref(), &table.name);
    if let Some(Relation::Sequence(_) | Relation::Index(_)) = &found {
        base::bail!(WRONG_OBJECT_TYPE, "relation \"{}\" cannot have rules", table.name);
    }
    let table = super::open_owned(cx, table, LockMode::AccessExclusive)?;
    let mut table = Table::clone(&table);
    let is_query = table.query.is_some() && from == RETURN;
    if table.rule(from).is_none() && !is_query {
        return Err(missing(from, &table));
    }
    if table.rule(to).is_some() || table.query.is_some() && to == RETURN {
        base::bail!(
            DUPLICATE_OBJECT,
            "rule \"{to}\" for relation \"{}\" already exists",
            table.name
        );
    }
    if is_query {
        base::bail!(INVALID_OBJECT_DEFINITION, "renaming an ON SELECT rule is not allowed");
    }
    if to == RETURN {
        base::bail!(
            INVALID_OBJECT_DEFINITION,
            "non-view rule for \"{}\" must not be named \"{RETURN}\"",
            table.name
        );
    }
    for one in table.rules.iter_mut().filter(|one| one.name == from) {
        to.clone_into(&mut one.name);
    }
    put(table, cx)
}

/// ALTER TABLE … ENABLE and DISABLE RULE.
///
/// # Errors
/// `42704`.
pub fn enable(id: u32, name: &str, enabled: char, cx: &mut ExecContext<'_>) -> Result<()> {
    let mut table = refresh(cx, id)?;
    if table.query.is_some() && name == RETURN {
        return Ok(());
    }
    if table.rule(name).is_none() {
        return Err(missing(name, &table));
    }
    table.rules.iter_mut().filter(|one| one.name == name).for_each(|one| one.enabled = enabled);
    put(table, cx)
}

/// Takes a rule off its relation.
///
/// # Errors
/// Those of the catalog.
pub fn remove(cx: &mut ExecContext<'_>, table: u32, rule: u32) -> Result<()> {
    remove_comments(cx, rule)?;
    let Ok(mut table) = refresh(cx, table) else { return Ok(()) };
    table.rules.retain(|r| r.oid != rule);
    put(table, cx)
}

/// Rules that name an object, or one column of it.
pub fn users(view: &Snapshot, id: u32, column: Option<u16>) -> Vec<Item> {
    let uses = |r: &&Rule| {
        r.uses.iter().any(|(object, n)| *object == id && column.is_none_or(|c| *n == c))
    };
    let of = |table: &Arc<Table>| {
        let all = table.rules.iter().filter(uses);
        all.map(|r| Item::Rule(table.oid, r.oid)).collect::<Vec<_>>()
    };
    view.tables().flat_map(of).collect()
}

/// The rules on a relation, or that name it, under the names of `naming`.
///
/// # Errors
/// A rule that can't be bound any more.
pub fn renamed(
    cx: &mut ExecContext<'_>,
    ids: &[u32],
    naming: &Snapshot,
) -> Result<Vec<(u32, Rule)>> {
    let view = cx.catalog_tx.view();
    let mut out = Vec::new();
    for table in view.tables() {
        let about = |r: &&Rule| {
            ids.contains(&table.oid) || r.uses.iter().any(|(object, _)| ids.contains(object))
        };
        for rule in table.rules.iter().filter(about) {
            let new = with_context(cx, |c| sql::rule::renamed(c, table, rule, naming))?;
            out.push((table.oid, new));
        }
    }
    Ok(out)
}

/// Stores rules under their new names.
///
/// # Errors
/// Those of the catalog.
pub fn store_renamed(cx: &mut ExecContext<'_>, all: Vec<(u32, Rule)>) -> Result<()> {
    for (table, rule) in all {
        let mut table = refresh(cx, table)?;
        table.rules.iter_mut().filter(|r| r.oid == rule.oid).for_each(|r| *r = rule.clone());
        put(table, cx)?;
    }
    Ok(())
}

fn put(mut table: Table, cx: &mut ExecContext<'_>) -> Result<()> {
    table.rules.sort_by(|a, b| a.name.cmp(&b.name));
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

fn missing(name: &str, table: &Table) -> Error {
    err!(UNDEFINED_OBJECT, "rule \"{name}\" for relation \"{}\" does not exist", table.name)
}

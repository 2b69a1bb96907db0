//! CREATE, ALTER, DROP and RENAME of policies; ENABLE and FORCE ROW LEVEL SECURITY.

use std::sync::Arc;

use base::{Result, err};
use catalog::{Object, Policy, Snapshot, Table, TableKind};
use exec::context::ExecContext;
use exec::rights;
use exec::spi::with_context;
use sql::policy::{AlterPolicy, CreatePolicy};
use sql::role::RoleRef;
use sql::utility::Name;
use txn::LockMode;

use super::{lock, refresh};
use crate::forget::remove_comments;
use crate::item::Item;

/// CREATE POLICY.
///
/// # Errors
/// `42809`, `42501`, `42710`, `42704`, and those of the conditions.
pub fn create(def: &CreatePolicy, cx: &mut ExecContext<'_>) -> Result<()> {
    let mut table = open(&def.table, cx)?;
    let mut policy = Policy { roles: roles(&def.roles, cx)?, ..def.policy.clone() };
    if table.policy(&policy.name).is_some() {
        return Err(exists(&policy.name, &table));
    }
    let (using, check) = (policy.using.take(), policy.check.take());
    set_conditions(&mut policy, &table, (using, check), cx)?;
    policy.oid = super::new_oid(cx, table.oid)?;
    table.policies.push(policy);
    put(table, cx)
}

/// ALTER POLICY, but for RENAME.
///
/// # Errors
/// As [`create`], and `42601` for a condition that policies for the command don't have.
pub fn alter(def: &AlterPolicy, cx: &mut ExecContext<'_>) -> Result<()> {
    let mut table = open(&def.table, cx)?;
    let roles = roles(&def.roles, cx)?;
    let known = table.policy(&def.name).cloned().ok_or_else(|| {
        let name = &table.name;
        err!(UNDEFINED_OBJECT, "policy \"{}\" for table \"{name}\" does not exist", def.name)
    })?;
    let mut changed = known.clone();
    if matches!(known.command, 'r' | 'd') && def.check.is_some() {
        base::bail!(SYNTAX_ERROR, "only USING expression allowed for SELECT, DELETE");
    }
    if known.command == 'a' && def.using.is_some() {
        base::bail!(SYNTAX_ERROR, "only WITH CHECK expression allowed for INSERT");
    }
    if !def.roles.is_empty() {
        changed.roles = roles;
    }
    if def.using.is_some() || def.check.is_some() {
        set_conditions(&mut changed, &table, (def.using.clone(), def.check.clone()), cx)?;
    }
    table.policies.iter_mut().filter(|p| p.oid == known.oid).for_each(|p| *p = changed.clone());
    put(table, cx)
}

/// ALTER POLICY … RENAME.
///
/// # Errors
/// `42704`, `42710`, `42501`.
pub fn rename(table: &Name, from: &str, to: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    let mut table = open(table, cx)?;
    if table.policy(to).is_some() {
        return Err(exists(to, &table));
    }
    let missing = missing(from, &table);
    let found = table.policies.iter_mut().find(|p| p.name == from).ok_or(missing)?;
    to.clone_into(&mut found.name);
    put(table, cx)
}

/// ALTER TABLE … ENABLE, DISABLE, FORCE and NO FORCE ROW LEVEL SECURITY.
///
/// # Errors
/// Those of the catalog.
pub fn enable(
    id: u32,
    enabled: Option<bool>,
    forced: Option<bool>,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let mut table = refresh(cx, id)?;
    table.row_security = enabled.unwrap_or(table.row_security);
    table.force_row_security = forced.unwrap_or(table.force_row_security);
    put(table, cx)
}

/// Takes a policy off its table.
///
/// # Errors
/// Those of the catalog.
pub fn remove(cx: &mut ExecContext<'_>, table: u32, policy: u32) -> Result<()> {
    remove_comments(cx, policy)?;
    let Ok(mut table) = refresh(cx, table) else { return Ok(()) };
    table.policies.retain(|p| p.oid != policy);
    put(table, cx)
}

/// Takes these roles out of the policies that name them; one that is left without goes.
///
/// # Errors
/// Those of locking and of the catalog.
pub fn forget_roles(roles: &[u32], cx: &mut ExecContext<'_>) -> Result<()> {
    let view = cx.catalog_tx.view();
    let names = |p: &Policy| p.roles.iter().any(|role| roles.contains(role));
    for known in view.tables().filter(|t| t.policies.iter().any(names)) {
        // A role cannot remove itself from a policy on a table that it does not own.
        if !rights::of(cx, &view).owns(cx.role, catalog::AclKind::Table, known.oid) {
            warn_kept(&view, known, roles, cx);
            continue;
        }
        lock(cx, known.oid, LockMode::AccessExclusive)?;
        let mut table = refresh(cx, known.oid)?;
        table.policies.iter_mut().for_each(|p| p.roles.retain(|role| !roles.contains(role)));
        let left: Vec<u32> =
            table.policies.iter().filter(|p| p.roles.is_empty()).map(|p| p.oid).collect();
        table.policies.retain(|p| !p.roles.is_empty());
        left.into_iter().try_for_each(|oid| remove_comments(cx, oid))?;
        put(table, cx)?;
    }
    Ok(())
}

/// Says of each policy that the roles stay named by it.
fn warn_kept(view: &Snapshot, table: &Table, roles: &[u32], cx: &mut ExecContext<'_>) {
    for role in roles {
        let name = view.role(*role).map_or("", |r| r.name.as_str());
        for policy in table.policies.iter().filter(|p| p.roles.contains(role)) {
            let kept = err!(
                WARNING_PRIVILEGE_NOT_REVOKED,
                "role \"{name}\" could not be removed from policy \"{}\" for table \"{}\"",
                policy.name,
                table.name
            );
            cx.hooks.notice("WARNING", kept);
        }
    }
}

/// Policies that name an object, or one column of it, in a condition.
pub fn users(view: &Snapshot, id: u32, column: Option<u16>) -> Vec<Item> {
    let uses = |p: &&Policy| {
        p.uses.iter().any(|(object, n)| *object == id && column.is_none_or(|c| *n == c))
    };
    let of = |table: &Arc<Table>| {
        let all = table.policies.iter().filter(uses);
        all.map(|p| Item::Policy(table.oid, p.oid)).collect::<Vec<_>>()
    };
    view.tables().flat_map(of).collect()
}

/// The policies on a table, or whose conditions name it: with their conditions under the names of `naming`.
///
/// # Errors
/// A condition that can't be bound any more.
pub fn renamed(cx: &mut ExecContext<'_>, ids: &[u32], naming: &Snapshot) -> Result<Vec<Renamed>> {
    let view = cx.catalog_tx.view();
    let mut out = Vec::new();
    for table in view.tables() {
        let about = |p: &&Policy| {
            ids.contains(&table.oid) || p.uses.iter().any(|(object, _)| ids.contains(object))
        };
        for policy in table.policies.iter().filter(about) {
            let mut text = |sql: &Option<String>| match sql {
                Some(sql) => with_context(cx, |c| sql::policy::renamed(c, sql, naming)).map(Some),
                None => Ok(None),
            };
            let conditions = (text(&policy.using)?, text(&policy.check)?);
            out.push(Renamed { table: table.oid, policy: policy.oid, conditions });
        }
    }
    Ok(out)
}

/// See [`renamed`].
pub struct Renamed {
    table: u32,
    policy: u32,
    conditions: (Option<String>, Option<String>),
}

/// Stores conditions under their new names.
///
/// # Errors
/// Those of the catalog.
pub fn store_renamed(cx: &mut ExecContext<'_>, all: Vec<Renamed>) -> Result<()> {
    for one in all {
        let mut table = refresh(cx, one.table)?;
        for policy in table.policies.iter_mut().filter(|p| p.oid == one.policy) {
            (policy.using, policy.check) = one.conditions.clone();
        }
        put(table, cx)?;
    }
    Ok(())
}

/// The table of a policy, which the session's role owns, locked.
fn open(name: &Name, cx: &mut ExecContext<'_>) -> Result<Table> {
    let table = exec::relation_lock::named_table(cx, name)?;
    if table.kind != TableKind::Table {
        base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table", table.name);
    }
    rights::require_table_owner(cx, &table)?;
    lock(cx, table.oid, LockMode::AccessExclusive)?;
    refresh(cx, table.oid)
}

fn put(mut table: Table, cx: &mut ExecContext<'_>) -> Result<()> {
    table.policies.sort_by(|a, b| a.name.cmp(&b.name));
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

/// TO; 0: PUBLIC.
fn roles(list: &[RoleRef], cx: &mut ExecContext<'_>) -> Result<Vec<u32>> {
    if list.iter().any(|role| matches!(role, RoleRef::Public)) {
        if list.len() > 1 {
            let warning =
                err!(INVALID_PARAMETER_VALUE, "ignoring specified roles other than PUBLIC")
                    .hint("All roles are members of the PUBLIC role.");
            cx.hooks.notice("WARNING", warning);
        }
        return Ok(vec![0]);
    }
    list.iter().map(|role| rights::role(cx, role)).collect()
}

/// Gives a policy new conditions, where there are any, and notes what it uses now.
fn set_conditions(
    policy: &mut Policy,
    table: &Table,
    (using, check): (Option<String>, Option<String>),
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let mut uses = Vec::new();
    for (given, place) in [(using, &mut policy.using), (check, &mut policy.check)] {
        let (text, own) = match (given, &*place) {
            (Some(sql), _) => with_context(cx, |c| sql::policy::stored(c, table, &sql))?,
            (None, Some(known)) => with_context(cx, |c| sql::policy::uses(c, known))?,
            (None, None) => continue,
        };
        *place = Some(text);
        uses.extend(own);
    }
    uses.sort_unstable();
    uses.dedup();
    // A column of a table says that the table is used, too.
    let columns: Vec<u32> = uses.iter().filter(|(_, n)| *n != 0).map(|(id, _)| *id).collect();
    uses.retain(|(id, n)| *n != 0 || *id != table.oid && !columns.contains(id));
    policy.uses = uses;
    Ok(())
}

fn exists(name: &str, table: &Table) -> base::Error {
    err!(DUPLICATE_OBJECT, "policy \"{name}\" for table \"{}\" already exists", table.name)
}

fn missing(name: &str, table: &Table) -> base::Error {
    err!(UNDEFINED_OBJECT, "policy \"{name}\" for table \"{}\" does not exist", table.name)
}

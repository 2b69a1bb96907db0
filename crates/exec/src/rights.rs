//! Whether the session's role may do what a definition statement wants, and the rights that new objects
//! begin with. Queries are checked when they are planned (`sql`).
//!
//! To add a kind of object: its owner in [`catalog::Rights::owner`]; [`require_owner`] where it is
//! changed, [`begin`] where it is made, [`forget`] where it is dropped.

use std::sync::Arc;

use base::{Oid, Result, err};
use catalog::acl::{self, privilege};
use catalog::{Acl, AclItem, AclKind, Object, Rights, Snapshot, Table};
use sql::role::RoleRef;
use txn::{LockMode, LockTag, LockWait};

use crate::context::ExecContext;

/// The lock class of rights.
const ACL_CLASS: Oid = Oid(826);

/// The questions that can be asked of this version of the catalog.
pub fn of<'a>(cx: &ExecContext<'_>, view: &'a Snapshot) -> Rights<'a> {
    Rights { catalog: view, database: cx.database.1 }
}

/// Whether the session's role may do everything.
pub fn is_superuser(cx: &mut ExecContext<'_>) -> bool {
    let view = cx.catalog_tx.view();
    of(cx, &view).is_superuser(cx.role)
}

/// `42501` unless the session's role has these rights on an object.
///
/// # Errors
/// See above.
pub fn require(
    cx: &mut ExecContext<'_>,
    kind: AclKind,
    object: u32,
    privileges: u16,
    name: &str,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    of(cx, &view).require(cx.role, kind, object, privileges, name)
}

/// `42501` unless the session's role owns an object; `word` as the message calls it.
///
/// # Errors
/// See above.
pub fn require_owner(
    cx: &mut ExecContext<'_>,
    kind: AclKind,
    object: u32,
    word: &str,
    name: &str,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    if of(cx, &view).owns(cx.role, kind, object) {
        return Ok(());
    }
    Err(acl::not_owner(word, name))
}

/// The same for a table.
///
/// # Errors
/// `42501`.
pub fn require_table_owner(cx: &mut ExecContext<'_>, table: &Table) -> Result<()> {
    let word = crate::relation_lock::kind_word(table);
    require_owner(cx, AclKind::Table, table.oid, word, &table.name)
}

/// `42501` unless the role may make objects in a schema.
///
/// # Errors
/// See above.
pub fn require_creation(cx: &mut ExecContext<'_>, role: u32, schema: u32) -> Result<()> {
    let view = cx.catalog_tx.view();
    let name = view.schema(schema).map_or("", |s| s.name.as_str());
    of(cx, &view).require(role, AclKind::Schema, schema, privilege::CREATE, name)
}

/// `42501` unless the session's role may become this one.
///
/// # Errors
/// See above.
pub fn require_membership(cx: &mut ExecContext<'_>, role: u32) -> Result<()> {
    let view = cx.catalog_tx.view();
    if of(cx, &view).is_member(cx.role, role) {
        return Ok(());
    }
    let name = view.role(role).map_or("", |r| r.name.as_str());
    Err(err!(INSUFFICIENT_PRIVILEGE, "must be member of role \"{name}\""))
}

/// The role that a statement names.
///
/// # Errors
/// `42704`.
pub fn role(cx: &mut ExecContext<'_>, role: &RoleRef) -> Result<u32> {
    let name = match role {
        RoleRef::Current => return Ok(cx.role),
        RoleRef::Session => return Ok(cx.session_user.1),
        RoleRef::Public => "public",
        RoleRef::Named(name) => name,
    };
    match cx.catalog_tx.view().role_named(name) {
        Some(role) => Ok(role.oid),
        None => Err(err!(UNDEFINED_OBJECT, "role \"{name}\" does not exist")),
    }
}

/// Keeps others from changing the rights on an object until the transaction ends; then the rights as
/// they are. A column's number, or 0.
///
/// # Errors
/// Those of locking.
pub fn lock_acl(
    cx: &mut ExecContext<'_>,
    kind: AclKind,
    object: u32,
    column: u16,
) -> Result<Option<Arc<Acl>>> {
    let database = if kind.is_shared() { catalog::SHARED } else { cx.database.1 };
    let object_key = u64::from(object) | u64::from(column) << 32 | (kind as u64) << 48;
    // Two that meet by chance wait for each other needlessly, no more.
    let key = object_key ^ u64::from(database).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let locks = &cx.tx.manager().locks;
    let tag = LockTag::Object(ACL_CLASS, key);
    locks.lock(cx.tx.locks(), tag, LockMode::Exclusive, LockWait::Block)?;
    Ok(cx.catalog_tx.view().acl(kind, object, column).cloned())
}

/// Puts rights in the place of those that there are. The caller has them locked.
///
/// # Errors
/// Those of changing the catalog.
pub fn store(
    cx: &mut ExecContext<'_>,
    kind: AclKind,
    object: u32,
    column: u16,
    items: Vec<AclItem>,
) -> Result<()> {
    let known = cx.catalog_tx.view().acl(kind, object, column).map(|a| a.oid);
    if column != 0 && items.is_empty() {
        return known.map_or(Ok(()), |oid| cx.catalog_tx.remove(cx.tx, oid));
    }
    let oid = match known {
        Some(oid) => oid,
        None => crate::relation_lock::new_oid(cx, object)?,
    };
    cx.catalog_tx.put(cx.tx, Object::Acl(Acl { oid, kind, object, column, items }))
}

/// Gives a new object the rights that ALTER DEFAULT PRIVILEGES says, if it does.
///
/// # Errors
/// Those of changing the catalog.
pub fn begin(
    cx: &mut ExecContext<'_>,
    kind: AclKind,
    object: u32,
    owner: u32,
    schema: u32,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    match of(cx, &view).initial_items(kind, owner, schema) {
        Some(items) => store(cx, kind, object, 0, items),
        None => Ok(()),
    }
}

/// An object is gone: so are the rights on it and its columns.
///
/// # Errors
/// Those of changing the catalog.
pub fn forget(cx: &mut ExecContext<'_>, object: u32) -> Result<()> {
    let view = cx.catalog_tx.view();
    let ids: Vec<u32> = view.acls().filter(|a| a.object == object).map(|a| a.oid).collect();
    ids.into_iter().try_for_each(|id| cx.catalog_tx.remove(cx.tx, id))
}

/// A column is gone: so are the rights on it.
///
/// # Errors
/// Those of changing the catalog.
pub fn forget_column(cx: &mut ExecContext<'_>, table: u32, column: u16) -> Result<()> {
    match cx.catalog_tx.view().acl(AclKind::Table, table, column).map(|a| a.oid) {
        Some(oid) => cx.catalog_tx.remove(cx.tx, oid),
        None => Ok(()),
    }
}

/// An object has another owner, who takes the old one's place in all rights.
///
/// # Errors
/// Those of changing the catalog.
pub fn change_owner(
    cx: &mut ExecContext<'_>,
    kind: AclKind,
    object: u32,
    old: u32,
    new: u32,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let all: Vec<Arc<Acl>> =
        view.acls().filter(|a| (a.kind, a.object) == (kind, object)).cloned().collect();
    for known in all {
        let items = acl::new_owner(&known.items, old, new);
        store(cx, kind, object, known.column, items)?;
    }
    Ok(())
}

//! Roles by name, and who may change them.

use base::{Result, err};
use catalog::Role;
use exec::context::ExecContext;
use exec::rights;
use sql::role::RoleRef;

/// The session's role, if it is there (a role may be dropped while a session has it).
pub fn me(cx: &mut ExecContext<'_>) -> Role {
    let view = cx.catalog_tx.view();
    view.role(cx.role).map_or_else(|| Role::new(cx.role, cx.user), |r| Role::clone(r))
}

pub(crate) fn denied(message: &str) -> base::Error {
    err!(INSUFFICIENT_PRIVILEGE, "{message}")
}

pub(crate) fn find(cx: &mut ExecContext<'_>, name: &RoleRef) -> Result<Role> {
    let id = rights::role(cx, name)?;
    match cx.catalog_tx.view().role(id) {
        Some(role) => Ok(Role::clone(role)),
        None => Err(err!(UNDEFINED_OBJECT, "role with OID {id} does not exist")),
    }
}

/// Whether the session's role, which has CREATEROLE, may change this role, too; `message` when it may not.
pub(crate) fn check_management(role: &Role, message: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    let view = cx.catalog_tx.view();
    let questions = rights::of(cx, &view);
    if !questions.is_privileged(role.oid) || questions.is_admin(cx.role, role.oid) {
        return Ok(());
    }
    Err(denied(message).detail(format!(
        "Role \"{}\" has privileges of a predefined or superuser role: changing it takes the ADMIN option on it.",
        role.name
    )))
}

//! Roles: CREATE, ALTER and DROP ROLE, memberships, settings of roles and databases. Rights are in
//! [`grant`], owners in [`owned`].
//!
//! A role with CREATEROLE manages all roles but those from which more than a user's own rights can be
//! reached ([`catalog::Rights::is_privileged`]): these ask for the ADMIN option, as every role does from
//! PostgreSQL 16 on. Every way to a membership asks [`check_admin`].

pub mod find;
mod grant;
mod owned;
pub mod owner;
mod settings;

use base::{Result, err};
use catalog::object::ids;
use catalog::{Membership, Object, Role};
use exec::context::ExecContext;
use exec::rights;
use sql::role::{RoleOption, RoleRef, RoleStatement};

use super::{name, notice};
use crate::role::find::{check_management, denied, find, me};

/// Runs the statement.
///
/// # Errors
/// `42501`, `42704`, `42710` and kin, as PostgreSQL raises them.
pub fn run(statement: &RoleStatement, cx: &mut ExecContext<'_>) -> Result<()> {
    match statement {
        RoleStatement::Create { name, options } => create(name, options, cx),
        RoleStatement::Alter { role, options } => alter(role, options, cx),
        RoleStatement::Rename { from, to } => rename(from, to, cx),
        RoleStatement::Set { role, database, setting } => {
            settings::run(role.as_ref(), database.as_deref(), setting, cx)
        }
        RoleStatement::Drop { roles, if_exists } => drop(roles, *if_exists, cx),
        RoleStatement::Membership { grant, roles, members, admin, grantor, group } => {
            if *group && let Some(name) = roles.iter().find(|name| is_reserved(name)) {
                return Err(reserved(name));
            }
            membership(*grant, roles, members, *admin, grantor.as_ref(), cx)
        }
        RoleStatement::Grant(statement) => grant::run(statement, cx),
        RoleStatement::Owner { kind, object, owner } => owned::owner(kind, object, owner, cx),
        RoleStatement::Reassign { roles, to } => owned::reassign(roles, to, cx),
        RoleStatement::DropOwned { roles, cascade } => owned::drop(roles, *cascade, cx),
    }
}

fn is_reserved(name: &str) -> bool {
    name.starts_with("pg_")
}

fn reserved(name: &str) -> base::Error {
    err!(RESERVED_NAME, "role name \"{name}\" is reserved").detail("Cannot alter reserved roles.")
}

/// Names that mean something else.
fn check_name(name: &str) -> Result<()> {
    if is_reserved(name) {
        return Err(err!(RESERVED_NAME, "role name \"{name}\" is reserved")
            .detail("Role names starting with \"pg_\" are reserved."));
    }
    if name == "public" || name == "none" {
        base::bail!(RESERVED_NAME, "role name \"{name}\" is reserved");
    }
    Ok(())
}

fn check_free(name: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    name::reserve(cx, name::ROLES, name)?;
    if cx.catalog_tx.view().role_named(name).is_some() {
        base::bail!(DUPLICATE_OBJECT, "role \"{name}\" already exists");
    }
    Ok(())
}

fn wants(options: &[RoleOption], what: RoleOption) -> bool {
    options.contains(&what)
}

fn create(name: &str, options: &[RoleOption], cx: &mut ExecContext<'_>) -> Result<()> {
    let me = me(cx);
    if !me.superuser {
        for (option, what) in [
            (RoleOption::Superuser(true), "superusers"),
            (RoleOption::Replication(true), "replication users"),
            (RoleOption::BypassRls(true), "bypassrls users"),
        ] {
            if wants(options, option) {
                return Err(denied(&format!("must be superuser to create {what}")));
            }
        }
        if !me.createrole {
            return Err(denied("permission denied to create role"));
        }
    }
    check_name(name)?;
    check_free(name, cx)?;
    let mut role = Role::new(cx.engine.txn.next_oid()?, name);
    apply(&mut role, options, cx)?;
    let id = role.oid;
    cx.catalog_tx.put(cx.tx, Object::Role(role))?;
    for option in options {
        match option {
            RoleOption::InRole(roles) => {
                for of in roles {
                    let of = find(cx, of)?;
                    check_admin(&of, cx.role, cx)?;
                    add_member(cx, of.oid, id, false, cx.role)?;
                }
            }
            RoleOption::Members(members) => add_members(cx, id, members, false)?,
            RoleOption::Admins(members) => add_members(cx, id, members, true)?,
            _ => {}
        }
    }
    Ok(())
}

fn add_members(
    cx: &mut ExecContext<'_>,
    role: u32,
    members: &[RoleRef],
    admin: bool,
) -> Result<()> {
    for member in members {
        let member = rights::role(cx, member)?;
        add_member(cx, role, member, admin, cx.role)?;
    }
    Ok(())
}

/// Everything of the options that is the role's own.
fn apply(role: &mut Role, options: &[RoleOption], cx: &mut ExecContext<'_>) -> Result<()> {
    for option in options {
        match option {
            RoleOption::Superuser(on) => role.superuser = *on,
            RoleOption::CreateDb(on) => role.createdb = *on,
            RoleOption::CreateRole(on) => role.createrole = *on,
            RoleOption::Inherit(on) => role.inherit = *on,
            RoleOption::Login(on) => role.login = *on,
            RoleOption::Replication(on) => role.replication = *on,
            RoleOption::BypassRls(on) => role.bypassrls = *on,
            RoleOption::ConnectionLimit(limit) => role.connection_limit = *limit,
            RoleOption::Password(None) => role.password = None,
            RoleOption::Password(Some(password)) => {
                role.password = cx.hooks.password(&role.name, password)?;
                if role.password.is_none() {
                    let message = "empty string is not a valid password, clearing password";
                    notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message.to_owned());
                }
            }
            RoleOption::ValidUntil(text) => {
                let ty = types::oids::TIMESTAMPTZ;
                let types::Datum::Timestamptz(at) = types::io::input(ty, -1, text, cx.format)?
                else {
                    return Err(base::Error::internal("a time of another type"));
                };
                role.valid_until = Some(at);
            }
            RoleOption::InRole(_) | RoleOption::Members(_) | RoleOption::Admins(_) => {}
        }
    }
    Ok(())
}

fn alter(name: &RoleRef, options: &[RoleOption], cx: &mut ExecContext<'_>) -> Result<()> {
    if let RoleRef::Named(name) = name
        && is_reserved(name)
    {
        return Err(reserved(name));
    }
    let mut role = find(cx, name)?;
    let me = me(cx);
    let changes = |f: fn(&RoleOption) -> bool| options.iter().any(f);
    if !me.superuser {
        if role.superuser || changes(|o| matches!(o, RoleOption::Superuser(_))) {
            return Err(denied(
                "must be superuser to alter superuser roles or change superuser attribute",
            ));
        }
        if role.replication || changes(|o| matches!(o, RoleOption::Replication(_))) {
            return Err(denied(
                "must be superuser to alter replication roles or change replication attribute",
            ));
        }
        if changes(|o| matches!(o, RoleOption::BypassRls(_))) {
            return Err(denied("must be superuser to change bypassrls attribute"));
        }
        // Everybody may change the own password.
        let own =
            role.oid == cx.role && options.iter().all(|o| matches!(o, RoleOption::Password(_)));
        if !me.createrole && !own {
            return Err(denied("permission denied"));
        }
        if !own {
            check_management(&role, "permission denied", cx)?;
        }
    }
    apply(&mut role, options, cx)?;
    cx.catalog_tx.put(cx.tx, Object::Role(role))
}

fn rename(from: &str, to: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    let mut role = find(cx, &RoleRef::Named(from.to_owned()))?;
    if role.oid == cx.session_user.1 {
        base::bail!(FEATURE_NOT_SUPPORTED, "session user cannot be renamed");
    }
    if role.oid == cx.role {
        base::bail!(FEATURE_NOT_SUPPORTED, "current user cannot be renamed");
    }
    for name in [from, to] {
        if is_reserved(name) {
            return Err(err!(RESERVED_NAME, "role name \"{name}\" is reserved")
                .detail("Role names starting with \"pg_\" are reserved."));
        }
    }
    check_name(to)?;
    check_free(to, cx)?;
    let me = me(cx);
    if role.superuser && !me.superuser {
        return Err(denied("must be superuser to rename superusers"));
    }
    if !me.superuser && !me.createrole {
        return Err(denied("permission denied to rename role"));
    }
    check_management(&role, "permission denied to rename role", cx)?;
    to.clone_into(&mut role.name);
    // Its hash has the name in it.
    if role.password.as_ref().is_some_and(|p| p.starts_with("md5")) {
        role.password = None;
        let message = "MD5 password cleared because of role rename".to_owned();
        notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
    }
    cx.catalog_tx.put(cx.tx, Object::Role(role))
}

fn drop(roles: &[RoleRef], if_exists: bool, cx: &mut ExecContext<'_>) -> Result<()> {
    let me = me(cx);
    if !me.superuser && !me.createrole {
        return Err(denied("permission denied to drop role"));
    }
    for name in roles {
        let RoleRef::Named(name) = name else {
            base::bail!(INVALID_PARAMETER_VALUE, "cannot use special role specifier in DROP ROLE");
        };
        let view = cx.catalog_tx.view();
        let Some(role) = view.role_named(name) else {
            let message = format!("role \"{name}\" does not exist");
            if !if_exists {
                base::bail!(UNDEFINED_OBJECT, "{message}");
            }
            notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
            continue;
        };
        if role.oid == cx.role {
            base::bail!(OBJECT_IN_USE, "current user cannot be dropped");
        }
        if role.oid == cx.session_user.1 {
            base::bail!(OBJECT_IN_USE, "session user cannot be dropped");
        }
        if role.superuser && !me.superuser {
            return Err(denied("must be superuser to drop superusers"));
        }
        if role.oid < base::Oid::FIRST_USER.0 {
            base::bail!(
                DEPENDENT_OBJECTS_STILL_EXIST,
                "cannot drop role {name} because it is required by the database system"
            );
        }
        let role = Role::clone(role);
        check_management(&role, "permission denied to drop role", cx)?;
        owned::check_nothing_left(role.oid, name, cx)?;
        remove(role.oid, cx)?;
    }
    Ok(())
}

/// Takes a role out, and what only it needs: memberships, settings.
fn remove(id: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    let view = cx.catalog_tx.view();
    for member in view.roles().filter(|r| r.member_of.iter().any(|m| m.role == id)) {
        let mut member = Role::clone(member);
        member.member_of.retain(|m| m.role != id);
        cx.catalog_tx.put(cx.tx, Object::Role(member))?;
    }
    for defaults in view.session_defaults().filter(|d| d.role == id) {
        cx.catalog_tx.remove(cx.tx, defaults.oid)?;
    }
    for comment in view.comments().filter(|c| c.object == id) {
        cx.catalog_tx.remove(cx.tx, comment.oid)?;
    }
    cx.catalog_tx.remove(cx.tx, id)
}

/// GRANT role TO role, and back.
fn membership(
    grant: bool,
    roles: &[String],
    members: &[RoleRef],
    admin: bool,
    grantor: Option<&RoleRef>,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let grantor = match grantor {
        Some(role) => rights::role(cx, role)?,
        None => cx.role,
    };
    let mut ids = Vec::with_capacity(members.len());
    for member in members {
        ids.push(rights::role(cx, member)?);
    }
    for name in roles {
        let role = find(cx, &RoleRef::Named(name.clone()))?;
        check_admin(&role, grantor, cx)?;
        for member in &ids {
            if grant {
                add_member(cx, role.oid, *member, admin, grantor)?;
            } else {
                remove_member(cx, role.oid, *member, admin)?;
            }
        }
    }
    Ok(())
}

/// Whether the session's role may change who is a member.
fn check_admin(role: &Role, grantor: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    let me = me(cx);
    if me.superuser {
        return Ok(());
    }
    if role.superuser {
        return Err(denied("must be superuser to alter superusers"));
    }
    let view = cx.catalog_tx.view();
    let questions = rights::of(cx, &view);
    let may_all = me.createrole && !questions.is_privileged(role.oid);
    if !may_all && !questions.is_admin(cx.role, role.oid) {
        return Err(denied(&format!("must have admin option on role \"{}\"", role.name)));
    }
    if grantor != cx.role {
        return Err(denied("must be superuser to set grantor"));
    }
    Ok(())
}

fn role_name(cx: &mut ExecContext<'_>, id: u32) -> String {
    cx.catalog_tx.view().role(id).map_or_else(|| id.to_string(), |r| r.name.clone())
}

fn add_member(
    cx: &mut ExecContext<'_>,
    role: u32,
    member: u32,
    admin: bool,
    grantor: u32,
) -> Result<()> {
    let (role_name, member_name) = (role_name(cx, role), role_name(cx, member));
    if role == ids::DATABASE_OWNER {
        base::bail!(INVALID_GRANT_OPERATION, "role \"{role_name}\" cannot have explicit members");
    }
    if member == ids::DATABASE_OWNER {
        base::bail!(
            INVALID_GRANT_OPERATION,
            "role \"{member_name}\" cannot be a member of any role"
        );
    }
    let view = cx.catalog_tx.view();
    if rights::of(cx, &view).roles_of(role, false).contains(&member) {
        base::bail!(
            INVALID_GRANT_OPERATION,
            "role \"{role_name}\" is a member of role \"{member_name}\""
        );
    }
    let Some(known) = view.role(member) else {
        base::bail!(UNDEFINED_OBJECT, "role with OID {member} does not exist");
    };
    let mut changed = Role::clone(known);
    match changed.member_of.iter_mut().find(|m| m.role == role) {
        Some(of) if !admin || of.admin => {
            let message =
                format!("role \"{member_name}\" is already a member of role \"{role_name}\"");
            notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
            return Ok(());
        }
        Some(of) => (of.admin, of.grantor) = (true, grantor),
        None => changed.member_of.push(Membership { role, grantor, admin }),
    }
    cx.catalog_tx.put(cx.tx, Object::Role(changed))
}

fn remove_member(cx: &mut ExecContext<'_>, role: u32, member: u32, only_admin: bool) -> Result<()> {
    let view = cx.catalog_tx.view();
    let Some(known) = view.role(member) else { return Ok(()) };
    let mut changed = Role::clone(known);
    let Some(at) = changed.member_of.iter().position(|m| m.role == role) else {
        let (role, member) = (role_name(cx, role), role_name(cx, member));
        let warning = err!(WARNING, "role \"{member}\" is not a member of role \"{role}\"");
        cx.hooks.notice("WARNING", warning);
        return Ok(());
    };
    if only_admin {
        changed.member_of[at].admin = false;
    } else {
        changed.member_of.remove(at);
    }
    cx.catalog_tx.put(cx.tx, Object::Role(changed))
}

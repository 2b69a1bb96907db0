//! Foreign data: CREATE, ALTER and DROP of foreign-data wrappers, servers and user mappings, and what makes a
//! table a foreign one.
//!
//! The code behind a wrapper is found by its handler's name (`exec::foreign`); a wrapper without one can have
//! servers and tables, which can't be read.

mod import;
pub mod options;
mod place;
pub mod table;

use base::{Result, err, sqlstate};
use catalog::acl::privilege;
use catalog::system::class;
use catalog::{AclKind, Defined, ForeignServer, ForeignWrapper, UserMapping};
use exec::context::ExecContext;
use exec::rights;
use sql::foreign::{ForeignStatement as F, OptionChange, WrapperFunction};
use sql::role::RoleRef;
use types::oids;

use self::options::changed;
use self::place::{missing, oid_of, require_use, server_named, validator_of, word};
use crate::defined::operator::function;
use crate::defined::place::{full, put};
use crate::depend::drop_items;
use crate::item::Item;
use crate::{name, notice};

/// Runs a statement about foreign data.
///
/// # Errors
/// `42501`, `42601`, `42704`, `42710`, `42883`, `42809`, `2BP01`, and those of validators.
pub fn run(statement: &F, cx: &mut ExecContext<'_>) -> Result<()> {
    match statement {
        F::CreateWrapper { name, functions, options } => {
            create_wrapper(name, functions, options, cx)
        }
        F::AlterWrapper { name, functions, options } => alter_wrapper(name, functions, options, cx),
        F::CreateServer { .. } => create_server(statement, cx),
        F::AlterServer { name, version, options } => {
            let mut server = own_server(name, cx)?;
            if let Some(version) = version {
                server.version.clone_from(version);
            }
            if !options.is_empty() {
                let validator = validator_of(&cx.catalog_tx.view(), server.wrapper);
                server.options = changed(&server.options, options, class::SERVER, validator, cx)?;
            }
            put(cx, Defined::Server(server))
        }
        F::CreateMapping { role, server, if_not_exists, options } => {
            create_mapping(role, server, *if_not_exists, options, cx)
        }
        F::AlterMapping { role, server, options } => alter_mapping(role, server, options, cx),
        F::DropMapping { role, server, if_exists } => drop_mapping(role, server, *if_exists, cx),
        F::Rename { server, name, to } => rename(*server, name, to, cx),
        F::Drop { server, names, if_exists, cascade } => {
            drop(*server, names, *if_exists, *cascade, cx)
        }
        F::Import(import) => import::run(import, cx),
    }
}

fn check_free(server: bool, name: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    name::reserve(cx, 0, &format!("{} {name}", word(server)))?;
    if oid_of(&cx.catalog_tx.view(), server, name).is_some() {
        base::bail!(DUPLICATE_OBJECT, "{} \"{name}\" already exists", word(server));
    }
    Ok(())
}

/// The oid of a wrapper or server, for its owner.
///
/// # Errors
/// `42704`, `42501`.
pub fn owned(server: bool, name: &str, cx: &mut ExecContext<'_>) -> Result<u32> {
    let view = cx.catalog_tx.view();
    let id = oid_of(&view, server, name).ok_or_else(|| missing(server, name))?;
    let (kind, word) = match server {
        true => (AclKind::Server, "foreign server"),
        false => (AclKind::Wrapper, "foreign-data wrapper"),
    };
    rights::require_owner(cx, kind, id, word, name)?;
    Ok(id)
}

fn wrapper_named(name: &str, cx: &mut ExecContext<'_>) -> Result<ForeignWrapper> {
    let view = cx.catalog_tx.view();
    view.wrapper_named(name).cloned().ok_or_else(|| missing(false, name))
}

/// A server that its owner changes; nobody else does until the transaction ends.
fn own_server(name: &str, cx: &mut ExecContext<'_>) -> Result<ForeignServer> {
    let id = owned(true, name, cx)?;
    name::reserve(cx, id, "")?;
    server_named(name, cx)
}

fn require_superuser(what: &str, name: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    if rights::is_superuser(cx) {
        return Ok(());
    }
    Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to {what} foreign-data wrapper \"{name}\"")
        .hint(format!("Must be superuser to {what} a foreign-data wrapper.")))
}

/// The function that HANDLER or VALIDATOR names; 0: none.
fn function_of(of: &WrapperFunction, cx: &mut ExecContext<'_>) -> Result<u32> {
    let Some(wanted) = &of.function else { return Ok(0) };
    if of.validator {
        return Ok(function(wanted, &[base::Oid(TEXT_ARRAY), oids::OID], cx)?.oid);
    }
    let found = function(wanted, &[], cx)?;
    if found.result != oids::FDW_HANDLER {
        base::bail!(WRONG_OBJECT_TYPE, "function {} must return type fdw_handler", full(wanted));
    }
    Ok(found.oid)
}

/// `text[]`.
const TEXT_ARRAY: u32 = 1009;

fn create_wrapper(
    name: &str,
    functions: &[WrapperFunction],
    options: &[OptionChange],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    require_superuser("create", name, cx)?;
    check_free(false, name, cx)?;
    let mut made = ForeignWrapper {
        oid: crate::new_oid(cx, 0)?,
        name: name.to_owned(),
        owner: cx.role,
        ..ForeignWrapper::default()
    };
    for of in functions {
        let id = function_of(of, cx)?;
        *(if of.validator { &mut made.validator } else { &mut made.handler }) = id;
    }
    made.options = changed(&[], options, class::WRAPPER, made.validator, cx)?;
    put(cx, Defined::Wrapper(made))
}

fn alter_wrapper(
    name: &str,
    functions: &[WrapperFunction],
    options: &[OptionChange],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    require_superuser("alter", name, cx)?;
    let found = wrapper_named(name, cx)?;
    name::reserve(cx, found.oid, "")?;
    let mut wrapper = wrapper_named(name, cx)?;
    for of in functions {
        let id = function_of(of, cx)?;
        let warning = match of.validator {
            true => {
                "changing the foreign-data wrapper validator can cause the options for dependent objects to become invalid"
            }
            false => {
                "changing the foreign-data wrapper handler can change behavior of existing foreign tables"
            }
        };
        *(if of.validator { &mut wrapper.validator } else { &mut wrapper.handler }) = id;
        if !of.validator || id != 0 {
            cx.hooks.notice("WARNING", err!(WARNING, "{warning}"));
        }
    }
    if !options.is_empty() {
        wrapper.options =
            changed(&wrapper.options, options, class::WRAPPER, wrapper.validator, cx)?;
    }
    put(cx, Defined::Wrapper(wrapper))
}

/// ALTER … OWNER TO.
///
/// # Errors
/// `42704`, `42501`.
pub fn set_owner(server: bool, name: &str, to: &RoleRef, cx: &mut ExecContext<'_>) -> Result<()> {
    let to = rights::role(cx, to)?;
    let view = cx.catalog_tx.view();
    let superuser = rights::is_superuser(cx);
    if server {
        let found = server_named(name, cx)?;
        if found.owner == to {
            return Ok(());
        }
        if !superuser {
            let found = own_server(name, cx)?;
            rights::require_membership(cx, to)?;
            let wrapper = view.wrapper(found.wrapper).map_or("", |w| w.name.as_str());
            rights::of(cx, &view).require(
                to,
                AclKind::Wrapper,
                found.wrapper,
                privilege::USAGE,
                wrapper,
            )?;
        }
        return crate::defined::give(Defined::Server(found), to, cx);
    }
    let wrapper = wrapper_named(name, cx)?;
    let denied = |hint: &'static str| {
        err!(
            INSUFFICIENT_PRIVILEGE,
            "permission denied to change owner of foreign-data wrapper \"{name}\""
        )
        .hint(hint)
    };
    if !superuser {
        return Err(denied("Must be superuser to change owner of a foreign-data wrapper."));
    }
    if !rights::of(cx, &view).is_superuser(to) {
        return Err(denied("The owner of a foreign-data wrapper must be a superuser."));
    }
    if wrapper.owner == to {
        return Ok(());
    }
    crate::defined::give(Defined::Wrapper(wrapper), to, cx)
}

fn rename(server: bool, name: &str, to: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    let id = owned(server, name, cx)?;
    name::reserve(cx, id, "")?;
    check_free(server, to, cx)?;
    let view = cx.catalog_tx.view();
    let Some(found) = view.defined_by_oid(id) else { return Err(missing(server, name)) };
    let mut changed = Defined::clone(found);
    if let Some((_, _, name)) = changed.place_mut() {
        to.clone_into(name);
    }
    put(cx, changed)
}

fn drop(
    server: bool,
    names: &[String],
    if_exists: bool,
    cascade: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let mut items = Vec::with_capacity(names.len());
    for name in names {
        if if_exists && oid_of(&cx.catalog_tx.view(), server, name).is_none() {
            let message = format!("{} \"{name}\" does not exist, skipping", word(server));
            notice(cx, sqlstate::SUCCESSFUL_COMPLETION, message);
            continue;
        }
        let item = Item::Defined(owned(server, name, cx)?);
        if !items.contains(&item) {
            items.push(item);
        }
    }
    drop_items(cx, &items, cascade)
}

fn create_server(statement: &F, cx: &mut ExecContext<'_>) -> Result<()> {
    let F::CreateServer { name, kind, version, wrapper, if_not_exists, options } = statement else {
        return Err(base::Error::internal("not a CREATE SERVER"));
    };
    if *if_not_exists && oid_of(&cx.catalog_tx.view(), true, name).is_some() {
        let message = format!("server \"{name}\" already exists, skipping");
        notice(cx, sqlstate::DUPLICATE_OBJECT, message);
        return Ok(());
    }
    check_free(true, name, cx)?;
    let found = wrapper_named(wrapper, cx)?;
    rights::require(cx, AclKind::Wrapper, found.oid, privilege::USAGE, wrapper)?;
    let options = changed(&[], options, class::SERVER, found.validator, cx)?;
    let made = ForeignServer {
        oid: crate::new_oid(cx, 0)?,
        name: name.clone(),
        owner: cx.role,
        wrapper: found.oid,
        kind: kind.clone(),
        version: version.clone(),
        options,
    };
    put(cx, Defined::Server(made))
}

/// The role of a user mapping, 0 for PUBLIC, with its name.
fn mapped(role: &RoleRef, cx: &mut ExecContext<'_>) -> Result<(u32, String)> {
    if matches!(role, RoleRef::Public) {
        return Ok((0, "public".to_owned()));
    }
    let id = rights::role(cx, role)?;
    let view = cx.catalog_tx.view();
    Ok((id, view.role(id).map_or_else(String::new, |r| r.name.clone())))
}

/// `42501` unless the session's role may change the mapping of a role on a server: the server's owner all, others
/// their own.
fn require_mapping(role: u32, server: &ForeignServer, cx: &mut ExecContext<'_>) -> Result<()> {
    let view = cx.catalog_tx.view();
    if rights::of(cx, &view).owns(cx.role, AclKind::Server, server.oid) {
        return Ok(());
    }
    if role == cx.role {
        return require_use(server, cx);
    }
    Err(catalog::acl::not_owner("foreign server", &server.name))
}

fn create_mapping(
    role: &RoleRef,
    server: &str,
    if_not_exists: bool,
    options: &[OptionChange],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let (role, role_name) = mapped(role, cx)?;
    let found = server_named(server, cx)?;
    require_mapping(role, &found, cx)?;
    name::reserve(cx, found.oid, &format!("user mapping {role}"))?;
    if cx.catalog_tx.view().user_mapping(role, found.oid).is_some() {
        let message =
            format!("user mapping for \"{role_name}\" already exists for server \"{server}\"");
        if !if_not_exists {
            base::bail!(DUPLICATE_OBJECT, "{message}");
        }
        notice(cx, sqlstate::DUPLICATE_OBJECT, format!("{message}, skipping"));
        return Ok(());
    }
    let validator = validator_of(&cx.catalog_tx.view(), found.wrapper);
    let options = changed(&[], options, class::MAPPING, validator, cx)?;
    let made = UserMapping { oid: crate::new_oid(cx, 0)?, role, server: found.oid, options };
    put(cx, Defined::Mapping(made))
}

fn no_mapping(role: &str, server: &str) -> base::Error {
    err!(UNDEFINED_OBJECT, "user mapping for \"{role}\" does not exist for server \"{server}\"")
}

fn alter_mapping(
    role: &RoleRef,
    server: &str,
    options: &[OptionChange],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let (role, role_name) = mapped(role, cx)?;
    let found = server_named(server, cx)?;
    let view = cx.catalog_tx.view();
    let known = view.user_mapping(role, found.oid);
    let id = known.ok_or_else(|| no_mapping(&role_name, server))?.oid;
    require_mapping(role, &found, cx)?;
    name::reserve(cx, id, "")?;
    let view = cx.catalog_tx.view();
    let known = view.user_mapping(role, found.oid);
    let mut mapping = known.ok_or_else(|| no_mapping(&role_name, server))?.clone();
    if !options.is_empty() {
        let validator = validator_of(&view, found.wrapper);
        mapping.options = changed(&mapping.options, options, class::MAPPING, validator, cx)?;
    }
    put(cx, Defined::Mapping(mapping))
}

fn drop_mapping(
    role: &RoleRef,
    server: &str,
    if_exists: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let skip = |cx: &mut ExecContext<'_>, message: String| {
        notice(cx, sqlstate::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
    };
    let (role, role_name) = match mapped(role, cx) {
        Err(error) if if_exists && error.code() == sqlstate::UNDEFINED_OBJECT => {
            skip(cx, error.message().to_owned());
            return Ok(());
        }
        found => found?,
    };
    let found = match server_named(server, cx) {
        Err(error) if if_exists => {
            skip(cx, error.message().to_owned());
            return Ok(());
        }
        found => found?,
    };
    let view = cx.catalog_tx.view();
    let Some(mapping) = view.user_mapping(role, found.oid) else {
        let error = no_mapping(&role_name, server);
        if !if_exists {
            return Err(error);
        }
        skip(cx, error.message().to_owned());
        return Ok(());
    };
    require_mapping(role, &found, cx)?;
    drop_items(cx, &[Item::Defined(mapping.oid)], false)
}

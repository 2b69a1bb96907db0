//! ALTER ROLE … SET and ALTER DATABASE … SET: what sessions begin with.

use base::settings::{self, Context, SettingId};
use base::{Result, err};
use catalog::{AclKind, Object, SessionDefaults};
use exec::context::ExecContext;
use exec::rights;
use sql::role::RoleRef;

use crate::role::find::{check_management, denied, find, me};

/// See the module's documentation.
pub fn run(
    role: Option<&RoleRef>,
    database: Option<&str>,
    (name, value): &(Option<String>, Option<String>),
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let role = match role {
        Some(role) => Some(find(cx, role)?),
        None => None,
    };
    let view = cx.catalog_tx.view();
    let database = match database {
        Some(name) => Some(
            view.database_named(name)
                .cloned()
                .ok_or_else(|| err!(UNDEFINED_DATABASE, "database \"{name}\" does not exist"))?,
        ),
        None => None,
    };
    let me = me(cx);
    match (&role, &database) {
        (Some(role), _) => {
            if role.superuser && !me.superuser {
                return Err(denied("must be superuser to alter superusers"));
            }
            if !me.superuser && !me.createrole && role.oid != cx.role {
                return Err(denied("permission denied"));
            }
            if role.oid != cx.role {
                check_management(role, "permission denied", cx)?;
            }
        }
        (None, Some(database)) => {
            let (id, name) = (database.oid, database.name.as_str());
            rights::require_owner(cx, AclKind::Database, id, "database", name)?;
        }
        (None, None) if !me.superuser => {
            return Err(denied("must be superuser to alter settings globally"));
        }
        (None, None) => {}
    }
    if let Some(name) = name {
        check(name, value.as_deref(), me.superuser)?;
    }
    let key = (role.map_or(0, |r| r.oid), database.map_or(0, |d| d.oid));
    let known = view.session_defaults().find(|d| (d.role, d.database) == key);
    let mut changed = match known {
        Some(known) => SessionDefaults::clone(known),
        None => {
            let oid = cx.engine.txn.next_oid()?;
            SessionDefaults { oid, role: key.0, database: key.1, settings: Vec::new() }
        }
    };
    match (name, value) {
        (None, _) => changed.settings.clear(),
        (Some(name), None) => changed.settings.retain(|(n, _)| !n.eq_ignore_ascii_case(name)),
        (Some(name), Some(value)) => {
            match changed.settings.iter_mut().find(|(n, _)| n.eq_ignore_ascii_case(name)) {
                Some((_, old)) => value.clone_into(old),
                None => changed.settings.push((spelled(name), value.clone())),
            }
        }
    }
    match (changed.settings.is_empty(), known) {
        (true, Some(known)) => cx.catalog_tx.remove(cx.tx, known.oid),
        (true, None) => Ok(()),
        _ => cx.catalog_tx.put(cx.tx, Object::SessionDefaults(changed)),
    }
}

/// A setting's name as the table spells it.
fn spelled(name: &str) -> String {
    SettingId::find(name).map_or_else(|| name.to_lowercase(), |id| id.def().name.to_owned())
}

/// Whether sessions may begin with this value.
fn check(name: &str, value: Option<&str>, superuser: bool) -> Result<()> {
    let Some(id) = SettingId::find(name) else {
        return if name.contains('.') { Ok(()) } else { Err(settings::unrecognized(name)) };
    };
    let name = id.def().name;
    match id.def().context {
        Context::User | Context::Backend => {}
        Context::Superuser | Context::SuperuserBackend if superuser => {}
        Context::Superuser | Context::SuperuserBackend => {
            return Err(denied(&format!("permission denied to set parameter \"{name}\"")));
        }
        _ => {
            let why = "cannot be changed now";
            base::bail!(CANT_CHANGE_RUNTIME_PARAM, "parameter \"{name}\" {why}");
        }
    }
    value.map_or(Ok(()), |value| settings::parse(id, value).map(drop))
}

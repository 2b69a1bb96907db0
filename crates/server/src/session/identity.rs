//! A session's roles: SET ROLE, SET SESSION AUTHORIZATION.
//!
//! The two are settings (`role`, `session_authorization`), so that a rollback takes them back and SET
//! LOCAL ends with its transaction. What follows from them is worked out with the search path, whenever
//! a setting or the catalog has changed ([`super::settings::SessionSettings::resolve_path`]): a statement
//! pays nothing for it.

use std::sync::Arc;

use base::settings::setting;
use base::{Result, err};
use catalog::object::ids;
use catalog::{Rights, Snapshot};

use super::SessionState;

/// A role: its oid and name.
pub type RoleName = (u32, Arc<str>);

/// See the module's documentation.
#[derive(Clone)]
pub struct Identity {
    /// The role that logged in.
    pub login: RoleName,
    /// The session's role.
    pub session: RoleName,
    /// In whose name statements run.
    pub current: RoleName,
    /// Whether that one is a superuser.
    pub superuser: bool,
}

impl Default for Identity {
    fn default() -> Identity {
        Identity::of((ids::SUPERUSER, "".into()), true)
    }
}

impl Identity {
    /// Someone who has just logged in.
    pub fn of(login: RoleName, superuser: bool) -> Identity {
        Identity { session: login.clone(), current: login.clone(), login, superuser }
    }

    /// Works out who the settings say. A role that is gone keeps what it had: nothing.
    pub fn resolve(&mut self, session: &str, role: &str, catalog: &Snapshot) {
        let named = |name: &str, known: &RoleName| match catalog.role_named(name) {
            _ if name == &*known.1 => known.clone(),
            Some(found) => (found.oid, found.name.as_str().into()),
            None => (0, name.into()),
        };
        self.session = match session {
            "" => self.login.clone(),
            name => named(name, &self.login),
        };
        self.current = match role {
            "none" => self.session.clone(),
            name => named(name, &self.current),
        };
        self.superuser = catalog.role(self.current.0).is_some_and(|r| r.superuser);
    }
}

impl SessionState {
    /// In whose name statements run.
    pub(super) fn role(&self) -> u32 {
        self.settings.identity.current.0
    }

    /// SET of any setting, from a statement or a function; those that say who the session is are
    /// checked here.
    ///
    /// # Errors
    /// `22023` no such role; `42501` one that the session may not become; those of SET.
    pub(super) fn assign(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<()> {
        let id = match base::settings::SettingId::find(name) {
            Some(id) if id == setting::ROLE || id == setting::SESSION_AUTHORIZATION => id,
            Some(setting::DEFAULT_TABLE_ACCESS_METHOD) => {
                if let Some(method) = value {
                    super::checks::existing_table_method(method, &self.catalog_tx.view())?;
                }
                return self.settings.set(name, value, local);
            }
            _ => return self.settings.set(name, value, local),
        };
        let catalog = self.catalog_tx.view();
        let rights = Rights { catalog: &catalog, database: self.database.1 };
        let identity = &self.settings.identity;
        let find = |name: &str| match catalog.role_named(name) {
            Some(role) => Ok(role.oid),
            None => Err(err!(INVALID_PARAMETER_VALUE, "role \"{name}\" does not exist")),
        };
        if id == setting::ROLE {
            let value = value.unwrap_or("none");
            if value != "none" {
                let role = find(value)?;
                if !rights.is_member(identity.session.0, role) {
                    return Err(err!(
                        INSUFFICIENT_PRIVILEGE,
                        "permission denied to set role \"{value}\""
                    ));
                }
            }
            return self.settings.set_identity(id, value, local);
        }
        let login = identity.login.clone();
        let value = value.unwrap_or(&login.1);
        let role = find(value)?;
        if role != login.0 && !rights.is_superuser(login.0) {
            return Err(err!(
                INSUFFICIENT_PRIVILEGE,
                "permission denied to set session authorization"
            ));
        }
        self.settings.set_identity(id, value, local)?;
        self.settings.set_identity(setting::ROLE, "none", local)
    }
}

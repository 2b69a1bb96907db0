//! The beginning of a session.

use std::sync::Arc;

use base::settings::{Value, live_int, setting};
use base::{Result, err, sqlstate};
use catalog::object::ids;
use wire::auth;
use wire::startup::{Parameters, Startup, split_options};

use super::{End, Phase, State};
use crate::connection::Patience;
use crate::{registry, server};

impl State {
    /// Answers a first packet.
    pub(super) fn startup(&mut self, startup: Startup<'_>) -> Result<(), End> {
        match startup {
            Startup::SslRequest | Startup::GssEncRequest => {
                let out = self.out.get_mut();
                out.buffer.push(b'N');
                out.complete = out.buffer.len();
                self.flush = true;
                Ok(())
            }
            Startup::Cancel { pid, secret } => {
                self.server.sessions.cancel(pid, secret);
                Err(End::Quiet)
            }
            Startup::Session(parameters) => Ok(self.begin_session(&parameters)?),
        }
    }

    fn begin_session(&mut self, parameters: &Parameters<'_>) -> Result<()> {
        let known = parameters.minor == 0 && parameters.protocol_options.is_empty();
        if !known {
            let out = self.out.get_mut();
            auth::negotiate(&mut out.buffer, &parameters.protocol_options);
        }
        self.admit()?;
        self.identify(parameters)?;
        self.check_reserved()?;
        self.apply_settings(parameters).map_err(base::Error::fatal)?;
        if self.patience() != Patience::default() {
            self.set_patience();
        }
        self.settings.resolve_path(&self.catalog_tx.view(), &self.user, None);
        let application = self.settings.get().str(setting::APPLICATION_NAME).to_owned();
        self.entry.update(|a| {
            a.user = self.user.clone();
            a.database = self.database.clone();
            a.application = application;
            a.state = registry::State::Idle;
            a.user_oid = self.role;
        });
        self.account.begin_session(server::now());
        let out = self.out.get_mut();
        auth::ok(&mut out.buffer);
        self.settings.report(&mut out.buffer);
        auth::key_data(&mut out.buffer, self.entry.pid, self.entry.secret);
        out.complete = out.buffer.len();
        self.phase = Phase::Serving;
        self.idle_deadline = None;
        self.server.workers.wake_at(&self.entry.task, None);
        self.ready()
    }

    /// Whether there is a place.
    fn admit(&self) -> Result<()> {
        if self.server.stopping() {
            return Err(err!(CANNOT_CONNECT_NOW, "the database system is shutting down").fatal());
        }
        if !self.server.sessions.admit(&self.entry, self.server.max_connections()) {
            return Err(err!(TOO_MANY_CONNECTIONS, "sorry, too many clients already").fatal());
        }
        Ok(())
    }

    /// Keeps the last places for superusers.
    fn check_reserved(&mut self) -> Result<()> {
        let reserved = live_int(setting::SUPERUSER_RESERVED_CONNECTIONS) as usize;
        let free = self.server.max_connections().saturating_sub(self.server.sessions.count());
        if free >= reserved {
            return Ok(());
        }
        let catalog = self.catalog_tx.view();
        if catalog.roles().any(|r| r.oid == self.role && r.superuser) {
            return Ok(());
        }
        let message =
            "remaining connection slots are reserved for non-replication superuser connections";
        Err(err!(TOO_MANY_CONNECTIONS, "{message}").fatal())
    }

    /// Who wants in, and where. Every name is taken for now: only this machine can connect.
    fn identify(&mut self, parameters: &Parameters<'_>) -> Result<()> {
        let user = parameters.get("user").filter(|u| !u.is_empty()).ok_or_else(|| {
            let message = "no PostgreSQL user name specified in startup packet";
            err!(INVALID_AUTHORIZATION_SPECIFICATION, "{message}").fatal()
        })?;
        let name = parameters.get("database").filter(|d| !d.is_empty()).unwrap_or(user);
        if let Some("true" | "on" | "yes" | "1" | "database") = parameters.get("replication") {
            return Err(base::Error::unsupported("replication").fatal());
        }
        let catalog = self.catalog_tx.view();
        let Some(database) = catalog.databases().find(|d| d.name == name) else {
            return Err(err!(UNDEFINED_DATABASE, "database \"{name}\" does not exist").fatal());
        };
        if !database.connect {
            return Err(base::Error::new(
                sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("database \"{name}\" is not currently accepting connections"),
            )
            .fatal());
        }
        self.user = types::io::cut_name(user).into();
        let role = catalog.roles().find(|r| r.name == *self.user);
        self.role = role.map_or(ids::SUPERUSER, |r| r.oid);
        self.database = (Arc::from(database.name.as_str()), database.oid);
        Ok(())
    }

    fn apply_settings(&mut self, parameters: &Parameters<'_>) -> Result<()> {
        let mut pairs = Vec::new();
        for (name, value) in &parameters.values {
            match *name {
                "user" | "database" | "replication" => {}
                "options" => pairs.extend(split_options(value)?),
                name => pairs.push((name.to_owned(), (*value).to_owned())),
            }
        }
        self.settings.start_up(&pairs)?;
        let user = Value::Str(self.user.clone());
        self.settings.set_internal(setting::SESSION_AUTHORIZATION, user);
        Ok(())
    }
}

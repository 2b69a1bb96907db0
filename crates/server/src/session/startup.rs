//! The beginning of a session.

use std::sync::Arc;

use base::settings::{Value, live_int, setting};
use base::{Oid, Result, err, sqlstate};
use catalog::acl::privilege;
use catalog::{AclKind, AttachRefused, Attachment, Database, OpenDatabase, Rights};
use wire::auth;
use wire::startup::{LONG_SECRETS, NEWEST_MINOR, Parameters, Startup};

use super::auth::Login;
use super::identity::{Identity, RoleName};
use super::known::{self, Known};
use super::{End, Phase, SessionState};
use crate::connection::{Patience, Socket};
use crate::{log, registry, server};

impl SessionState {
    /// Answers a first packet; `more` has come behind it.
    pub(super) fn startup(&mut self, startup: Startup<'_>, more: bool) -> Result<(), End> {
        match startup {
            Startup::SslRequest => self.begin_encryption(more),
            Startup::GssEncRequest => {
                self.answer(b'N');
                Ok(())
            }
            Startup::Cancel { pid, secret } => {
                self.server.sessions.cancel(pid, secret);
                Err(End::Quiet)
            }
            Startup::Session(parameters) => Ok(self.begin_session(&parameters)?),
        }
    }

    fn answer(&mut self, byte: u8) {
        let out = self.out.get_mut();
        out.buffer.push(byte);
        out.complete = out.buffer.len();
        self.flush = true;
    }

    /// The client wants TLS: if there is a certificate, everything from here on goes through it.
    fn begin_encryption(&mut self, more: bool) -> Result<(), End> {
        let client_auth = self.server.client_auth();
        let is_tcp = matches!(*self.socket, Socket::Tcp(_));
        let Some(tls) = client_auth.tls.as_ref().filter(|_| is_tcp) else {
            self.answer(b'N');
            return Ok(());
        };
        if more {
            return Err(wire::violation("received unencrypted data after SSL request")
                .detail(
                    "This could be either a client-software bug or evidence of an attempted \
                     man-in-the-middle attack.",
                )
                .into());
        }
        let out = self.out.get_mut();
        out.buffer.push(b'S');
        out.complete = out.buffer.len();
        out.send()?;
        self.socket = Arc::new(Socket::encrypted(self.socket.clone(), tls.clone())?);
        self.out.get_mut().set_socket(self.socket.clone());
        Ok(())
    }

    fn begin_session(&mut self, parameters: &Parameters<'_>) -> Result<()> {
        let minor = parameters.minor.min(NEWEST_MINOR);
        if parameters.minor > minor || !parameters.protocol_options.is_empty() {
            let out = self.out.get_mut();
            auth::negotiate(&mut out.buffer, minor, &parameters.protocol_options);
            out.complete = out.buffer.len();
        }
        if minor >= LONG_SECRETS {
            let secret = self.server.random()?;
            // Set once: a connection begins one session.
            let _ = self.entry.long_secret.set(Box::new(secret));
        }
        self.admit()?;
        if let Some(tls) = self.socket.tls_info() {
            // Set once: a connection says who it is once.
            let _ = self.entry.tls.set(tls);
        }
        self.begin_authentication(Login::new(parameters)?)
    }

    /// The client has shown who it is, as far as it had to.
    pub(super) fn admit_login(&mut self, login: Login) -> Result<()> {
        self.replication = login.replication;
        let report = match known::find(&login, &self.settings) {
            Some(known) => self.begin_like(&known)?,
            None => None,
        };
        let report = match report {
            Some(report) => report,
            None => self.begin_anew(login)?,
        };
        self.check_replication()?;
        if self.patience() != Patience::default() {
            self.set_patience();
        }
        let application = self.settings.get().str(setting::APPLICATION_NAME).to_owned();
        self.entry.update(|a| {
            a.user = self.settings.identity.login.1.clone();
            a.database = self.database.clone();
            a.application = application;
            a.state = registry::SessionActivity::Idle;
            a.user_oid = self.settings.identity.login.0;
        });
        self.account.begin_session(server::now());
        let out = self.out.get_mut();
        auth::ok(&mut out.buffer);
        out.buffer.extend_from_slice(&report);
        auth::key_data(&mut out.buffer, self.entry.pid, &self.entry.secret());
        out.complete = out.buffer.len();
        self.phase = Phase::Serving;
        self.idle_deadline = None;
        self.server.workers.wake_at(&self.entry.task, None);
        self.ready()
    }

    /// The session begins as another one did; what tells the client its settings. None: the database
    /// has just been dropped.
    fn begin_like(&mut self, known: &Arc<Known>) -> Result<Option<Report>> {
        let login = &known.settings.identity.login;
        self.check_limit(login, known.superuser, known.connection_limit)?;
        match known.open.enter(known.database_limit)? {
            Ok(attachment) => self.attach(known.open.clone(), attachment, known.database.clone()),
            Err(AttachRefused::Full) => return Err(full(&known.database.0)),
            Err(AttachRefused::Gone) => return Ok(None),
        }
        self.settings = known.settings.clone();
        self.check_reserved(known.superuser)?;
        Ok(Some(Report::Known(known.clone())))
    }

    /// The session begins as none did lately; the same.
    fn begin_anew(&mut self, login: Login) -> Result<Report> {
        let (connection_limit, database_limit) = self.identify(&login)?;
        let version = self.catalog_tx.published().version;
        let superuser = self.settings.identity.superuser;
        self.check_reserved(superuser)?;
        let asked = &login.settings;
        let settled = self.apply_settings(asked).map_err(base::Error::fatal)?;
        self.settings.resolve_path(&self.catalog_tx.view(), self.database.1, None);
        let mut report = Vec::new();
        self.settings.report(&mut report);
        if settled {
            let (settings, database) = (self.settings.clone(), self.database.clone());
            let report = report.clone();
            known::keep(Known {
                login,
                open: self.open.clone(),
                version,
                settings,
                database,
                superuser,
                connection_limit,
                database_limit,
                report,
            });
        }
        Ok(Report::New(report))
    }

    /// Whether there is a place.
    fn admit(&self) -> Result<()> {
        if self.server.stopping() {
            return Err(err!(CANNOT_CONNECT_NOW, "the database system is shutting down").fatal());
        }
        if !self.server.standby.is_ready() {
            return Err(err!(
                CANNOT_CONNECT_NOW,
                "the database system is not yet accepting connections"
            )
            .detail("Consistent recovery state has not been yet reached.")
            .fatal());
        }
        if !self.server.sessions.admit(&self.entry, self.server.max_connections()) {
            return Err(err!(TOO_MANY_CONNECTIONS, "sorry, too many clients already").fatal());
        }
        Ok(())
    }

    /// Keeps the last places for superusers.
    fn check_reserved(&self, superuser: bool) -> Result<()> {
        let reserved = live_int(setting::SUPERUSER_RESERVED_CONNECTIONS) as usize;
        let free = self.server.max_connections().saturating_sub(self.server.sessions.count());
        if free >= reserved || superuser {
            return Ok(());
        }
        let message =
            "remaining connection slots are reserved for non-replication superuser connections";
        Err(err!(TOO_MANY_CONNECTIONS, "{message}").fatal())
    }

    /// Finds the session's role and database. Returns how many sessions the role and the database may have; below
    /// 0: any number.
    fn identify(&mut self, login: &Login) -> Result<(i32, i32)> {
        let catalog = self.catalog_tx.view();
        let Some(role) = catalog.role_named(&login.user) else {
            let message = format!("role \"{}\" does not exist", login.user);
            return Err(not_authorized(message).hint(
                "Say who you are: user=..., or psql -U ...; a new server has \"postgres\".",
            ));
        };
        let name = &role.name;
        if !role.login {
            return Err(not_authorized(format!("role \"{name}\" is not permitted to log in")));
        }
        let whom = (role.oid, Arc::from(role.name.as_str()));
        self.check_limit(&whom, role.superuser, role.connection_limit)?;
        self.settings.identity = Identity::of(whom, role.superuser);
        Ok((role.connection_limit, self.enter(&login.database, role.superuser)?))
    }

    /// CONNECTION LIMIT.
    fn check_limit(&self, role: &RoleName, superuser: bool, limit: i32) -> Result<()> {
        let Ok(limit) = usize::try_from(limit) else { return Ok(()) };
        if superuser || self.server.sessions.count_of(role.0) < limit {
            return Ok(());
        }
        Err(err!(TOO_MANY_CONNECTIONS, "too many connections for role \"{}\"", role.1).fatal())
    }

    /// Goes into the database that the client wants, when nobody works with it as a whole. Returns how
    /// many sessions it may have.
    fn enter(&mut self, name: &str, superuser: bool) -> Result<i32> {
        let mut waited = false;
        loop {
            let database = self.find_database(name, waited)?;
            let limit = if superuser { -1 } else { database.connection_limit };
            let Some(open) = self.server.engine.catalog.database(database.oid) else {
                waited = true;
                continue;
            };
            match open.enter(limit)? {
                Err(AttachRefused::Full) => return Err(full(name)),
                Err(AttachRefused::Gone) => {}
                // It may have been renamed while its gate was closed.
                Ok(attachment)
                    if open.current().database(open.oid()).is_some_and(|d| d.name == name) =>
                {
                    self.attach(open, attachment, (Arc::from(name), database.oid));
                    return Ok(limit);
                }
                Ok(_) => {}
            }
            waited = true;
        }
    }

    /// The database with this name, if the session may go there.
    fn find_database(&mut self, name: &str, waited: bool) -> Result<Arc<Database>> {
        let catalog = self.catalog_tx.view();
        let Some(database) = catalog.database_named(name) else {
            let error = err!(UNDEFINED_DATABASE, "database \"{name}\" does not exist").fatal();
            return Err(match waited {
                true => error.detail("It seems to have just been dropped or renamed."),
                false => error,
            });
        };
        if !database.connect {
            return Err(base::Error::new(
                sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("database \"{name}\" is not currently accepting connections"),
            )
            .fatal());
        }
        let rights = Rights { catalog: &catalog, database: database.oid };
        let role = self.settings.identity.login.0;
        if !rights.may(role, AclKind::Database, database.oid, privilege::CONNECT) {
            return Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied for database \"{name}\"")
                .detail("User does not have CONNECT privilege.")
                .fatal());
        }
        Ok(database.clone())
    }

    /// The session is in its database.
    pub(super) fn attach(
        &mut self,
        open: Arc<OpenDatabase>,
        attachment: Attachment,
        database: (Arc<str>, u32),
    ) {
        self.catalog_tx.enter(&open);
        self.owner.set_database(Oid(open.oid()));
        (self.open, self.attachment, self.database) = (open, Some(attachment), database);
    }

    /// The settings that the session begins with: of the database, of the role, of the client; later
    /// ones win. False: the log was told of some that could not be set.
    pub(super) fn apply_settings(&mut self, asked: &[(String, String)]) -> Result<bool> {
        let mut settled = true;
        let user = Value::Str(self.settings.identity.login.1.clone());
        self.settings.set_internal(setting::SESSION_AUTHORIZATION, user);
        let follows = self.server.standby.follows();
        self.settings.set_internal(setting::IN_HOT_STANDBY, Value::Bool(follows));
        let catalog = self.catalog_tx.view();
        let (role, database) = (self.settings.identity.login.0, self.database.1);
        if catalog.session_defaults().next().is_some() {
            for key in [(0, 0), (0, database), (role, 0), (role, database)] {
                let fits = |d: &&Arc<catalog::SessionDefaults>| (d.role, d.database) == key;
                let Some(defaults) = catalog.session_defaults().find(fits) else { continue };
                for (name, value) in &defaults.settings {
                    let set = match name.as_str() {
                        "role" => self.assign(name, Some(value), false),
                        _ => self.settings.set_trusted(name, value),
                    };
                    if let Err(error) = set {
                        log::error(self.entry.pid, &error, None);
                        settled = false;
                    }
                }
            }
        }
        for (name, value) in asked {
            self.assign(name, Some(value), false)?;
        }
        self.settings.started_up();
        Ok(settled)
    }
}

/// The messages that tell a client its settings.
enum Report {
    New(Vec<u8>),
    Known(Arc<Known>),
}

impl std::ops::Deref for Report {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Report::New(bytes) => bytes,
            Report::Known(known) => &known.report,
        }
    }
}

/// CONNECTION LIMIT of a database.
fn full(name: &str) -> base::Error {
    err!(TOO_MANY_CONNECTIONS, "too many connections for database \"{name}\"").fatal()
}

fn not_authorized(message: String) -> base::Error {
    base::Error::new(sqlstate::INVALID_AUTHORIZATION_SPECIFICATION, message).fatal()
}

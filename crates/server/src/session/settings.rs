//! A session's settings: SET, SET LOCAL, RESET, SHOW, and what of them a rollback takes back.
//!
//! A set of values is immutable and shared. A session that changes nothing shares the server's (or
//! that of its start-up packet); SET makes a copy. So a transaction's or savepoint's state to come
//! back to is a handful of pointers:
//!
//! * `lasting`: what holds after COMMIT (SET);
//! * `current`: what holds now (SET and SET LOCAL);
//! * `before`: `lasting` as it was when the transaction first changed something.

use std::sync::Arc;

use base::error::Severity;
use base::settings::{self, Context, SETTINGS, SettingId, Settings, Value, setting};
use base::{Result, err};
use catalog::object::ids;
use catalog::{AclKind, Rights};
use txn::Isolation;
use types::FormatContext;

use super::checks;
use super::identity::{Identity, RoleName};
use super::transaction::isolation;
use crate::config::Values;

/// Settings that the client is told of, at the start and whenever they change.
const REPORTED: &[SettingId] = &[
    setting::APPLICATION_NAME,
    setting::CLIENT_ENCODING,
    setting::DATESTYLE,
    setting::DEFAULT_TRANSACTION_READ_ONLY,
    setting::IN_HOT_STANDBY,
    setting::INTEGER_DATETIMES,
    setting::INTERVALSTYLE,
    setting::IS_SUPERUSER,
    setting::SERVER_ENCODING,
    setting::SERVER_VERSION,
    setting::SESSION_AUTHORIZATION,
    setting::STANDARD_CONFORMING_STRINGS,
    setting::TIMEZONE,
];

const WORDS: usize = SETTINGS.len().div_ceil(64);

/// Settings that have a value of the session's own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Own([u64; WORDS]);

impl Own {
    fn add(&mut self, id: SettingId) {
        self.0[usize::from(id.0) / 64] |= 1 << (id.0 % 64);
    }
    fn remove(&mut self, id: SettingId) {
        self.0[usize::from(id.0) / 64] &= !(1 << (id.0 % 64));
    }
    fn has(&self, id: SettingId) -> bool {
        self.0[usize::from(id.0) / 64] & 1 << (id.0 % 64) != 0
    }
}

/// A state to come back to.
#[derive(Clone)]
pub struct Mark {
    lasting: Arc<Values>,
    current: Arc<Values>,
    own: Own,
}

/// See the module's documentation. Cheap to copy: the values are shared.
#[derive(Clone)]
pub struct SessionSettings {
    /// The values that RESET goes back to: the server's with those of the start-up packet.
    reset: Arc<Values>,
    reset_own: Own,
    lasting: Arc<Values>,
    current: Arc<Values>,
    own: Own,
    before: Option<Mark>,
    reported: Option<Arc<Values>>,
    generation: u64,
    /// Changes whenever a value does.
    pub epoch: u64,
    /// The context that formatting values depends on.
    pub format: FormatContext,
    /// The session's roles; after [`SessionSettings::resolve_path`].
    pub identity: Identity,
    path: Vec<u32>,
    path_key: (u64, u64, Option<u32>),
    /// The environment that plans depend on; after [`SessionSettings::resolve_path`].
    pub environment: u64,
    /// Timeouts, in milliseconds, 0: none; read at every statement.
    pub statement_timeout: u64,
    /// `lock_timeout`, likewise.
    pub lock_timeout: u64,
    /// `deadlock_timeout`, likewise.
    pub deadlock_timeout: u64,
    /// `transaction_timeout`, likewise.
    pub transaction_timeout: u64,
    /// `session_memory_limit` in bytes.
    pub memory_limit: i64,
    /// `log_lock_waits`.
    pub log_lock_waits: bool,
    /// `log_min_duration_statement`, in milliseconds; None: off.
    pub log_min_duration: Option<u64>,
    /// `log_statement`.
    pub log_statement: LogStatement,
    /// Somebody wants to know what statements take.
    pub measures_statements: bool,
    /// `pg_stat_statements.track` isn't none.
    pub track_statements: bool,
    /// The same, and `pg_stat_statements.track_utility`.
    pub track_utility: bool,
    /// The same, and `pg_stat_statements.track_planning`.
    pub track_planning: bool,
    /// `compute_query_id` isn't off.
    pub compute_query_id: bool,
    /// `synchronous_commit` isn't off.
    pub synchronous_commit: bool,
    /// It is `remote_apply`.
    pub remote_apply: bool,
    /// `default_transaction_isolation`.
    pub isolation: Isolation,
    /// `default_transaction_read_only`.
    pub read_only: bool,
    /// `default_transaction_deferrable`.
    pub deferrable: bool,
    /// The session has not begun: what can be set at its beginning only still can.
    is_beginning: bool,
}

/// Which statements are logged before they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogStatement {
    /// None.
    None,
    /// Those that define something.
    Ddl,
    /// And those that change data.
    Mod,
    /// All.
    All,
}

impl LogStatement {
    fn of(word: &str) -> LogStatement {
        match word {
            "ddl" => LogStatement::Ddl,
            "mod" => LogStatement::Mod,
            "all" => LogStatement::All,
            _ => LogStatement::None,
        }
    }
}

/// A change that a function asked for in the middle of a statement.
pub struct Change {
    /// Name.
    pub name: String,
    /// Value; None: the default.
    pub value: Option<String>,
    /// Until the end of the transaction.
    pub local: bool,
    /// Its number among the statement's changes, from 1.
    pub serial: u64,
    /// A transaction that the statement committed made it, so no rollback takes it back.
    pub committed: bool,
}

impl SessionSettings {
    /// The server's values.
    pub fn new(values: Arc<Values>, generation: u64) -> SessionSettings {
        let mut new = SessionSettings {
            reset: values.clone(),
            reset_own: Own::default(),
            lasting: values.clone(),
            current: values,
            own: Own::default(),
            before: None,
            reported: None,
            generation,
            epoch: 0,
            format: FormatContext::default(),
            identity: Identity::default(),
            path: Vec::new(),
            path_key: (u64::MAX, u64::MAX, None),
            environment: 0,
            statement_timeout: 0,
            lock_timeout: 0,
            deadlock_timeout: 0,
            transaction_timeout: 0,
            memory_limit: 0,
            log_lock_waits: false,
            log_min_duration: None,
            log_statement: LogStatement::None,
            measures_statements: true,
            track_statements: true,
            track_utility: true,
            track_planning: false,
            compute_query_id: true,
            synchronous_commit: true,
            remote_apply: false,
            isolation: Isolation::ReadCommitted,
            read_only: false,
            deferrable: false,
            is_beginning: true,
        };
        new.changed();
        new
    }

    /// For a session that works for this one: the values in force here are where it begins.
    pub fn inherited(&self) -> SessionSettings {
        let mut inner = SessionSettings::new(self.current.clone(), self.generation);
        inner.identity = self.identity.clone();
        inner
    }

    /// Makes the session that of a role, from which there is no way back.
    pub fn become_role(&mut self, role: RoleName, superuser: bool) {
        self.set_internal(setting::SESSION_AUTHORIZATION, Value::Str(role.1.clone()));
        self.set_internal(setting::ROLE, Value::Str("none".into()));
        self.identity = Identity::of(role, superuser);
    }

    /// The values in force.
    pub fn get(&self) -> &Settings {
        &self.current.settings
    }

    /// Derives what follows from the values.
    fn changed(&mut self) {
        self.epoch += 1;
        let now = self.format.now;
        let settings = &self.current.settings;
        self.format = FormatContext { now, ..checks::format_context(settings) };
        if settings.bool(setting::QUOTE_ALL_IDENTIFIERS) {
            types::user::some_quote_all();
        }
        self.statement_timeout = settings.int(setting::STATEMENT_TIMEOUT) as u64;
        self.lock_timeout = settings.int(setting::LOCK_TIMEOUT) as u64;
        self.deadlock_timeout = settings.int(setting::DEADLOCK_TIMEOUT) as u64;
        self.transaction_timeout = settings.int(setting::TRANSACTION_TIMEOUT) as u64;
        self.memory_limit = settings.int(setting::SESSION_MEMORY_LIMIT) << 10;
        self.log_lock_waits = settings.bool(setting::LOG_LOCK_WAITS);
        self.log_min_duration =
            u64::try_from(settings.int(setting::LOG_MIN_DURATION_STATEMENT)).ok();
        self.log_statement = LogStatement::of(settings.str(setting::LOG_STATEMENT));
        self.track_statements = settings.str(setting::PG_STAT_STATEMENTS_TRACK) != "none";
        self.track_utility =
            self.track_statements && settings.bool(setting::PG_STAT_STATEMENTS_TRACK_UTILITY);
        self.track_planning =
            self.track_statements && settings.bool(setting::PG_STAT_STATEMENTS_TRACK_PLANNING);
        self.measures_statements = self.track_statements || self.log_min_duration.is_some();
        self.compute_query_id = settings.str(setting::COMPUTE_QUERY_ID) != "off";
        self.remote_apply = settings.str(setting::SYNCHRONOUS_COMMIT) == "remote_apply";
        self.synchronous_commit = settings.str(setting::SYNCHRONOUS_COMMIT) != "off";
        self.isolation = isolation(settings.str(setting::DEFAULT_TRANSACTION_ISOLATION));
        self.read_only = settings.bool(setting::DEFAULT_TRANSACTION_READ_ONLY);
        self.deferrable = settings.bool(setting::DEFAULT_TRANSACTION_DEFERRABLE);
    }

    /// The values that the session begins with are set: RESET goes back to them.
    pub fn started_up(&mut self) {
        self.is_beginning = false;
        self.before = None;
        self.reset = self.lasting.clone();
        self.reset_own = self.own;
    }

    /// Puts values in that are nobody's to set.
    pub fn set_internal(&mut self, id: SettingId, value: Value) {
        if self.current.settings.get(id) == &value && self.lasting.settings.get(id) == &value {
            return;
        }
        let shared = Arc::ptr_eq(&self.lasting, &self.current);
        Arc::make_mut(&mut self.lasting).settings.set(id, value.clone());
        if shared {
            self.current = self.lasting.clone();
        } else {
            Arc::make_mut(&mut self.current).settings.set(id, value);
        }
        self.own.add(id);
        self.changed();
    }

    /// SET (`value` None: to the default), SET LOCAL.
    ///
    /// # Errors
    /// `42704` unknown, `22023` bad value, `55P02` not to be changed by a session.
    pub fn set(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<()> {
        let Some(id) = SettingId::find(name) else {
            return self.set_custom(name, value, local);
        };
        self.changeable(id)?;
        if id == setting::ROLE || id == setting::SESSION_AUTHORIZATION {
            // The session checks who may become whom.
            return Err(err!(
                CANT_CHANGE_RUNTIME_PARAM,
                "parameter \"{}\" cannot be set here",
                id.def().name
            ));
        }
        self.set_known(id, value, local)
    }

    /// `role` or `session_authorization`, to a role that the session may become.
    ///
    /// # Errors
    /// As SET.
    pub fn set_identity(&mut self, id: SettingId, value: &str, local: bool) -> Result<()> {
        self.set_known(id, Some(value), local)
    }

    /// ALTER ROLE … SET and ALTER DATABASE … SET, when the session begins: who set it was asked then.
    ///
    /// # Errors
    /// As SET.
    pub fn set_trusted(&mut self, name: &str, value: &str) -> Result<()> {
        let superuser = std::mem::replace(&mut self.identity.superuser, true);
        let result = self.set(name, Some(value), false);
        self.identity.superuser = superuser;
        result
    }

    fn set_known(&mut self, id: SettingId, value: Option<&str>, local: bool) -> Result<()> {
        let new = match value {
            Some(text) => checks::parse_over(id, text, &self.format)?,
            None => self.reset.settings.get(id).clone(),
        };
        self.remember();
        if !local {
            Arc::make_mut(&mut self.lasting).settings.set(id, new.clone());
            match value {
                None if !self.reset_own.has(id) => self.own.remove(id),
                _ => self.own.add(id),
            }
        }
        self.set_current(local, |values| values.settings.set(id, new));
        Ok(())
    }

    fn set_custom(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<()> {
        let part = |p: &str| {
            p.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && p.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$')
        };
        if !name.contains('.') {
            return Err(settings::unrecognized(name));
        }
        if !name.split('.').all(part) {
            return Err(err!(INVALID_NAME, "invalid configuration parameter name \"{name}\"").detail(
                "Custom parameter names must be two or more simple identifiers separated by dots.",
            ));
        }
        let name = name.to_lowercase();
        let text = value.or(self.reset.custom.get(&name).map(String::as_str)).map(str::to_owned);
        let change = |values: &mut Values| {
            values.custom.insert(name, text.unwrap_or_default());
        };
        self.remember();
        if !local {
            change.clone()(Arc::make_mut(&mut self.lasting));
        }
        self.set_current(local, change);
        Ok(())
    }

    /// Changes the values in force. When they are the lasting ones they stay shared with them.
    fn set_current(&mut self, local: bool, change: impl FnOnce(&mut Values)) {
        change(Arc::make_mut(&mut self.current));
        if !local && *self.current == *self.lasting {
            self.current = self.lasting.clone();
        }
        self.changed();
    }

    fn remember(&mut self) {
        if self.before.is_none() {
            self.before = Some(self.mark());
        }
    }

    /// Checks a value as SET would.
    ///
    /// # Errors
    /// As SET.
    pub fn check(&self, name: &str, value: Option<&str>) -> Result<()> {
        self.check_for(self.identity.superuser, name, value)
    }

    /// As [`SessionSettings::check`], for code that runs in a superuser's name or another's.
    ///
    /// # Errors
    /// As there.
    pub fn check_for(&self, superuser: bool, name: &str, value: Option<&str>) -> Result<()> {
        match (SettingId::find(name), value) {
            (Some(id), Some(value)) => {
                changeable_by(superuser, id)?;
                checks::parse_over(id, value, &self.format).map(drop)
            }
            (Some(id), None) => changeable_by(superuser, id),
            (None, _) if name.contains('.') => Ok(()),
            (None, _) => Err(settings::unrecognized(name)),
        }
    }

    /// RESET ALL.
    pub fn reset_all(&mut self) {
        self.remember();
        let mut values = (*self.reset).clone();
        for (i, def) in SETTINGS.iter().enumerate() {
            let id = SettingId(i as u16);
            let identity = id == setting::SESSION_AUTHORIZATION || id == setting::ROLE;
            if matches!(def.context, Context::Internal) || identity {
                values.settings.set(id, self.current.settings.get(id).clone());
            }
        }
        self.lasting = Arc::new(values);
        if *self.lasting == *self.reset {
            self.lasting = self.reset.clone();
        }
        self.current = self.lasting.clone();
        self.own = self.reset_own;
        self.changed();
    }

    /// SHOW: the value as text.
    ///
    /// # Errors
    /// `42704` unknown.
    pub fn show(&self, name: &str) -> Result<String> {
        match SettingId::find(name) {
            Some(id) => Ok(settings::show(id, self.get().get(id))),
            None => match self.current.custom.get(&name.to_lowercase()) {
                Some(value) => Ok(value.clone()),
                None => Err(settings::unrecognized(name)),
            },
        }
    }

    /// A savepoint's state to come back to.
    pub fn mark_here(&mut self) -> Mark {
        self.remember();
        self.mark()
    }

    fn mark(&self) -> Mark {
        Mark { lasting: self.lasting.clone(), current: self.current.clone(), own: self.own }
    }

    /// ROLLBACK TO.
    pub fn rollback_to(&mut self, mark: &Mark) {
        if !Arc::ptr_eq(&self.current, &mark.current) || !Arc::ptr_eq(&self.lasting, &mark.lasting)
        {
            self.lasting = mark.lasting.clone();
            self.current = mark.current.clone();
            self.own = mark.own;
            self.changed();
        }
    }

    /// The transaction committed: SET LOCAL ends.
    pub fn commit(&mut self) {
        if self.before.take().is_some() && !Arc::ptr_eq(&self.current, &self.lasting) {
            self.current = self.lasting.clone();
            self.changed();
        }
    }

    /// The transaction rolled back: SET ends too.
    pub fn abort(&mut self) {
        if let Some(before) = self.before.take() {
            self.lasting = before.lasting.clone();
            self.current = before.lasting;
            self.own = before.own;
            self.changed();
        }
    }

    /// Whether the server has read its files again since.
    pub fn stale(&self, generation: u64) -> bool {
        self.generation != generation
    }

    /// Whether both come from the same reading of the server's files.
    pub fn is_of_same_reload(&self, other: &SessionSettings) -> bool {
        self.generation == other.generation
    }

    /// Takes the server's new values where the session has none of its own. Between transactions.
    pub fn reload(&mut self, values: &Arc<Values>, generation: u64) {
        self.generation = generation;
        let merge = |old: &Arc<Values>, own: &Own| {
            let mut merged = (**values).clone();
            merged.custom.extend(old.custom.clone());
            let mut shared = merged.custom == values.custom;
            for i in 0..SETTINGS.len() {
                let id = SettingId(i as u16);
                if own.has(id) {
                    shared = false;
                    merged.settings.set(id, old.settings.get(id).clone());
                }
            }
            if shared { values.clone() } else { Arc::new(merged) }
        };
        self.reset = merge(&self.reset, &self.reset_own);
        self.lasting = merge(&self.lasting, &self.own);
        self.current = self.lasting.clone();
        self.changed();
    }

    /// ParameterStatus for what the client has not been told yet.
    pub fn report(&mut self, out: &mut Vec<u8>) {
        if self.reported.as_ref().is_some_and(|r| Arc::ptr_eq(r, &self.current)) {
            return;
        }
        let start = out.len();
        for id in REPORTED {
            let value = self.current.settings.get(*id);
            if self.reported.as_ref().is_none_or(|r| r.settings.get(*id) != value) {
                wire::auth::parameter_status(out, id.def().name, &settings::show(*id, value));
            }
        }
        super::recode::lossy(out, start, self.format.client_encoding);
        self.reported = Some(self.current.clone());
    }

    /// Works `search_path` out against a version of the catalog: ids, `pg_catalog` first unless it
    /// is named. Private versions are never remembered. `temporary` is what `pg_temp` stands for.
    pub fn resolve_path(
        &mut self,
        catalog: &catalog::Snapshot,
        database: u32,
        temporary: Option<u32>,
    ) {
        let key = (self.epoch, catalog.version, temporary);
        if self.path_key == key && catalog.version != 0 {
            return;
        }
        self.resolve_identity(catalog);
        let key = (self.epoch, catalog.version, temporary);
        let rights = Rights { catalog, database };
        let (role, user) = (self.identity.current.0, &*self.identity.current.1);
        let superuser = self.identity.superuser;
        // A schema that the role may not look into is as if it were not there.
        let usable = |id: &u32| {
            superuser || rights.may(role, AclKind::Schema, *id, catalog::acl::privilege::USAGE)
        };
        let text = self.current.settings.str(setting::SEARCH_PATH);
        let mut path = Vec::new();
        for name in base::settings::split_names(text).unwrap_or_default() {
            let name = if name == "$user" { user } else { &name };
            match name {
                "pg_catalog" => path.push(ids::PG_CATALOG),
                "pg_temp" => path.extend(temporary),
                _ => path.extend(catalog.schema_named(name).map(|s| s.oid).filter(usable)),
            }
        }
        if !path.contains(&ids::PG_CATALOG) {
            path.insert(0, ids::PG_CATALOG);
        }
        // A schema that is named twice is searched once.
        let mut known = std::collections::HashSet::new();
        path.retain(|id| known.insert(*id));
        // Plans that other sessions use, too, mean no temporary object.
        let shared: Vec<u32> = path.iter().copied().filter(|id| Some(*id) != temporary).collect();
        self.environment = sql::environment(&self.current.settings, &shared, user, database);
        self.path = path;
        self.path_key = key;
    }

    fn resolve_identity(&mut self, catalog: &catalog::Snapshot) {
        let settings = &self.current.settings;
        let (session, role) =
            (settings.str(setting::SESSION_AUTHORIZATION), settings.str(setting::ROLE));
        self.identity.resolve(session, role, catalog);
        self.set_internal(setting::IS_SUPERUSER, Value::Bool(self.identity.superuser));
    }

    /// Whether the session may change it at all.
    fn changeable(&self, id: SettingId) -> Result<()> {
        match id.def().context {
            Context::Backend if self.is_beginning => Ok(()),
            Context::SuperuserBackend if self.is_beginning && self.identity.superuser => Ok(()),
            _ => changeable_by(self.identity.superuser, id),
        }
    }

    /// Schemas to search; after [`SessionSettings::resolve_path`].
    pub fn path(&self) -> &[u32] {
        &self.path
    }
}

/// Whether it can be changed by a superuser, or by others.
fn changeable_by(superuser: bool, id: SettingId) -> Result<()> {
    let wants_superuser =
        matches!(id.def().context, Context::Superuser | Context::SuperuserBackend);
    if wants_superuser && !superuser {
        return Err(err!(
            INSUFFICIENT_PRIVILEGE,
            "permission denied to set parameter \"{}\"",
            id.def().name
        ));
    }
    changeable(id)
}

/// Whether any session may change it.
fn changeable(id: SettingId) -> Result<()> {
    let def = id.def();
    let why = match def.context {
        Context::User | Context::Superuser => return Ok(()),
        Context::Backend | Context::SuperuserBackend => "cannot be set after connection start",
        Context::Sighup => "cannot be changed now",
        Context::Postmaster => "cannot be changed without restarting the server",
        Context::Internal => "cannot be changed",
    };
    Err(err!(CANT_CHANGE_RUNTIME_PARAM, "parameter \"{}\" {why}", def.name))
}

/// Whether messages of this severity go to the client.
pub fn notice_wanted(settings: &Settings, severity: &str) -> bool {
    let words = ["DEBUG5", "DEBUG4", "DEBUG3", "DEBUG2", "DEBUG1", "LOG", "NOTICE", "WARNING"];
    if severity == "INFO" || severity == Severity::Error.as_str() {
        return true;
    }
    let rank = |word: &str| words.iter().position(|w| w.eq_ignore_ascii_case(word));
    let severity = if severity == "DEBUG" { "DEBUG1" } else { severity };
    match rank(settings.str(setting::CLIENT_MIN_MESSAGES)) {
        Some(least) => rank(severity).is_none_or(|r| r >= least),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new() -> SessionSettings {
        SessionSettings::new(Arc::default(), 1)
    }

    fn work_mem(s: &SessionSettings) -> i64 {
        s.get().int(setting::WORK_MEM)
    }

    #[test]
    fn a_local_value_ends_with_its_transaction() {
        let mut s = new();
        s.set("work_mem", Some("1MB"), false).unwrap();
        s.set("work_mem", Some("2MB"), true).unwrap();
        assert_eq!(work_mem(&s), 2048);
        s.commit();
        assert_eq!(work_mem(&s), 1024);
        s.set("work_mem", Some("3MB"), true).unwrap();
        s.set("work_mem", Some("4MB"), false).unwrap();
        s.commit();
        assert_eq!(work_mem(&s), 4096);
    }

    #[test]
    fn a_rollback_takes_back_what_its_transaction_set() {
        let mut s = new();
        s.set("work_mem", Some("1MB"), false).unwrap();
        s.commit();
        s.set("work_mem", Some("2MB"), false).unwrap();
        let mark = s.mark_here();
        s.set("work_mem", Some("3MB"), false).unwrap();
        s.rollback_to(&mark);
        assert_eq!(work_mem(&s), 2048);
        s.abort();
        assert_eq!(work_mem(&s), 1024);
        s.set("work_mem", None, false).unwrap();
        s.commit();
        assert_eq!(work_mem(&s), 4096);
    }

    #[test]
    fn a_reload_changes_what_the_session_did_not_set() {
        let mut s = new();
        s.set("work_mem", Some("1MB"), false).unwrap();
        s.commit();
        let mut values = Values::default();
        values.settings.set(setting::WORK_MEM, Value::Int(7));
        values.settings.set(setting::LOCK_TIMEOUT, Value::Int(8));
        s.reload(&Arc::new(values), 2);
        assert_eq!((work_mem(&s), s.get().int(setting::LOCK_TIMEOUT)), (1024, 8));
        s.set("work_mem", None, false).unwrap();
        assert_eq!(work_mem(&s), 7);
        assert!(!s.stale(2));
    }

    #[test]
    fn changes_are_reported_once() {
        let mut s = new();
        let mut out = Vec::new();
        s.report(&mut out);
        assert_eq!(out.iter().filter(|b| **b == b'S').count() >= REPORTED.len(), true);
        out.clear();
        s.set("work_mem", Some("1MB"), false).unwrap();
        s.report(&mut out);
        assert!(out.is_empty());
        s.set("application_name", Some("x"), false).unwrap();
        s.report(&mut out);
        assert_eq!(out, b"S\0\0\0\x17application_name\0x\0");
    }

    #[test]
    fn names_and_contexts_are_checked() {
        let mut s = new();
        let code = |s: &mut SessionSettings, n: &str| {
            s.set(n, Some("1"), false).unwrap_err().code().as_str().to_owned()
        };
        assert_eq!(code(&mut s, "nope"), "42704");
        assert_eq!(code(&mut s, "a.1b"), "42602");
        assert_eq!(code(&mut s, "port"), "55P02");
        s.set("My.Thing", Some("1"), true).unwrap();
        assert_eq!(s.show("my.thing").unwrap(), "1");
        s.commit();
        assert!(s.show("my.thing").is_err());
    }

    #[test]
    fn notices_below_the_threshold_are_kept_from_the_client() {
        let mut s = new();
        s.set("client_min_messages", Some("warning"), false).unwrap();
        assert!(!notice_wanted(s.get(), "NOTICE"));
        assert!(notice_wanted(s.get(), "WARNING"));
        assert!(notice_wanted(s.get(), "INFO"));
        s.set("client_min_messages", Some("error"), false).unwrap();
        assert!(!notice_wanted(s.get(), "WARNING"));
    }
}

//! The session's side of [`SessionHooks`]: services for a running statement.

use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::Arc;

use base::settings::{SettingId, Settings, setting};
use base::{Error, Oid, Result, err};
use catalog::Rights;
use catalog::object::ids;
use catalog::system::ServerInfo;
use exec::SessionHooks;
use exec::context::{
    Acting, Guard, OpenCursor, SessionCursor, SessionMark, TransactionEnd, Values,
};
use exec::tally::Tally;
use sched::Interrupt;
use types::datum::Array;
use types::func::SessionFunction as F;
use types::{Datum, FormatContext, oids};
use wire::password::StoredPassword;
use wire::response;
use wire::scram::{self, Verifier};

use super::autonomous::Outer;
use super::blocking;
use super::copy::CopyReader;
use super::portal::{Portals, Statements};
use super::recode;
use super::settings::{self, Change, SessionSettings};
use super::transaction::isolation_name;
use crate::connection::Output;
use crate::log;
use crate::notify::Pending;
use crate::profiler::profile::Request;
use crate::registry::Entry;
use crate::server::Server;
use crate::views;
use crate::views::rows::rows;

/// See the module's documentation.
pub struct Hooks<'a> {
    /// The server.
    pub server: &'a Server,
    /// The session's database.
    pub database: u32,
    /// The session.
    pub entry: &'a Entry,
    /// Its settings as the statement began.
    pub settings: &'a SessionSettings,
    /// The statement's transaction.
    pub tx: &'a txn::Transaction,
    /// The changes that the statement made to them.
    pub changes: &'a mut Vec<Change>,
    /// [`Change::serial`] of the last one that was made.
    pub serial: u64,
    /// The values in force after the change with the number.
    pub current: Option<(u64, Arc<Values>)>,
    /// For `pg_notify`.
    pub notify: &'a mut Option<Box<Pending>>,
    /// The tally of the transaction's statements before this one.
    pub done: &'a Tally,
    /// The session's knowledge of sequences.
    pub sequences: &'a mut exec::SessionSequences,
    /// Checks that wait for the transaction's end.
    pub deferred: &'a mut exec::Deferred,
    /// The transaction's open large objects.
    pub large_objects: &'a mut exec::LargeObjects,
    /// The state that foreign-data wrappers keep.
    pub foreign: &'a mut exec::foreign::SessionParts,
    /// The origin of the session's transactions.
    pub own_origin: &'a mut exec::session_origin::SessionOrigin,
    /// Why the statement can't commit by itself: the words behind "cannot"; None: it can.
    pub inside: Option<&'static str>,
    /// Its cursors.
    pub portals: &'a mut Portals,
    /// For notices.
    pub out: &'a RefCell<Output>,
    /// For COPY FROM.
    pub copy: CopyReader<'a>,
    /// For `pg_autonomous`.
    pub outer: Outer<'a>,
}

fn text(value: Option<&Datum>) -> Result<&str> {
    match value {
        Some(Datum::Text(text)) => Ok(text),
        _ => Err(Error::internal("a session function got an argument of the wrong type")),
    }
}

/// Null is as good as empty.
fn optional(value: Option<&Datum>) -> &str {
    match value {
        Some(Datum::Text(text)) => text,
        _ => "",
    }
}

fn pid(value: Option<&Datum>) -> Result<i32> {
    match value {
        Some(Datum::Int4(pid)) => Ok(*pid),
        _ => Err(Error::internal("a session function got an argument of the wrong type")),
    }
}

fn profile_request(args: &[Datum]) -> Result<Request> {
    match args.first() {
        Some(Datum::Float8(seconds)) => Request::new(*seconds, text(args.get(1))?),
        _ => Err(Error::internal("a profile without its length")),
    }
}

impl Hooks<'_> {
    fn current_setting(&self, name: &str, missing_ok: bool) -> Result<Datum> {
        if let Some(value) = self.show(name)? {
            return Ok(Datum::Text(value.into()));
        }
        let secret = SettingId::find(name).is_some_and(SettingId::is_secret);
        if secret && !self.settings.identity.superuser {
            let catalog = self.server.engine.catalog.shared().current();
            let rights = Rights { catalog: &catalog, database: self.database };
            let role = self.settings.identity.current.0;
            if !rights.has_rights_of(role, ids::READ_ALL_SETTINGS) {
                return Err(super::control::secret_setting(name));
            }
        }
        match self.settings.show(name) {
            Ok(value) => Ok(Datum::Text(value.into())),
            Err(_) if missing_ok => Ok(Datum::Null),
            Err(error) => Err(error),
        }
    }

    /// A value that this statement changed, or that the transaction knows better.
    fn show(&self, name: &str) -> Result<Option<String>> {
        let changed = self.changes.iter().rev().find(|c| c.name.eq_ignore_ascii_case(name));
        if let Some(Change { value: Some(value), .. }) = changed {
            return Ok(Some(match SettingId::find(name) {
                Some(id) => {
                    let value = super::checks::parse_over(id, value, &self.settings.format)?;
                    base::settings::show(id, &value)
                }
                None => value.clone(),
            }));
        }
        Ok(transaction_setting(name, Some(self.tx), self.settings))
    }

    fn set_config(&mut self, args: &[Datum], acting: Acting) -> Result<Datum> {
        if args.first().is_none_or(Datum::is_null) {
            return Err(err!(NULL_VALUE_NOT_ALLOWED, "SET requires parameter name"));
        }
        let name = text(args.first())?;
        let value = match args.get(1) {
            Some(Datum::Text(value)) => Some(value.to_string()),
            _ => None,
        };
        let local = matches!(args.get(2), Some(Datum::Bool(true)));
        exec::security::check_setting(acting, name)?;
        self.settings.check_for(self.is_superuser(acting.role), name, value.as_deref())?;
        let serial = self.next_serial();
        self.changes.push(Change { name: name.to_owned(), value, local, serial, committed: false });
        let name = name.to_owned();
        self.current_setting(&name, true)
    }

    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Earlier changes went, so the last one stands for another state.
    fn renumber_last(&mut self) {
        let serial = self.next_serial();
        self.changes.last_mut().into_iter().for_each(|c| c.serial = serial);
    }

    fn is_superuser(&self, role: u32) -> bool {
        let catalog = self.server.engine.catalog.shared().current();
        catalog.role(role).is_some_and(|r| r.superuser)
    }

    /// `42501` unless a role may disturb a session.
    fn check_signal(&self, entry: &Entry, interrupt: Interrupt, me: u32) -> Result<()> {
        let catalog = self.server.engine.catalog.shared().current();
        let rights = Rights { catalog: &catalog, database: self.database };
        let owner = entry.activity().user_oid;
        let (query, process, canceled) = match interrupt {
            Interrupt::Terminate => ("terminate superuser process", "process", "terminated"),
            _ => ("cancel superuser query", "query", "canceled"),
        };
        if rights.is_superuser(owner) && !rights.is_superuser(me) {
            return Err(err!(INSUFFICIENT_PRIVILEGE, "must be a superuser to {query}"));
        }
        if !rights.has_rights_of(me, owner) && !rights.has_rights_of(me, ids::SIGNAL_BACKEND) {
            return Err(err!(
                INSUFFICIENT_PRIVILEGE,
                "must be a member of the role whose {process} is being {canceled} or member of \
                 pg_signal_backend"
            ));
        }
        Ok(())
    }

    fn signal(&self, pid: i32, interrupt: Interrupt, role: u32) -> Result<Datum> {
        let Some(entry) = self.server.sessions.get(pid) else {
            let warning = err!(WARNING, "PID {pid} is not a PostgreSQL backend process");
            self.warn("WARNING", &warning);
            return Ok(Datum::Bool(false));
        };
        self.check_signal(&entry, interrupt, role)?;
        entry.task.interrupt(interrupt);
        if interrupt == Interrupt::Terminate {
            self.server.workers.wake(&entry.task);
        }
        Ok(Datum::Bool(true))
    }

    /// `age(xid)`: transactions since that one, seen from this one. Those of the same number modulo
    /// 2^32 can't be told apart.
    fn age(&self, args: &[Datum]) -> Datum {
        match args.first() {
            Some(Datum::Oid(xid)) if *xid < 3 => Datum::Int4(i32::MAX),
            Some(Datum::Oid(xid)) => {
                let now = self.tx.top_xid().unwrap_or_else(|| self.server.engine.txn.next_xid());
                Datum::Int4((now.0 as u32).wrapping_sub(*xid) as i32)
            }
            _ => Datum::Null,
        }
    }

    fn notify_mut(&mut self) -> &mut Pending {
        let (task, database) = (&self.entry.task, self.database);
        self.notify.get_or_insert_with(|| Box::new(Pending::new(task, database)))
    }

    /// Commits as the session does between statements.
    fn commit(&mut self, tx: &txn::Transaction, catalog_tx: &mut catalog::CatalogTx) -> Result<()> {
        catalog_tx.before_commit();
        let changed = catalog_tx.has_work();
        if changed {
            tx.set_publishes();
        }
        let notifying = match &self.notify {
            Some(notify) => notify.begin_commit(&self.server.channels),
            None => Ok(None),
        };
        let committed = notifying.and_then(|notifying| {
            let publish = |csn| {
                if changed {
                    catalog_tx.publish(csn);
                }
            };
            let when = (crate::server::now(), None);
            exec::change_log::committing(&self.server.engine, tx, self.database, changed, when);
            tx.commit(&[], publish).map(|lsn| (lsn, notifying))
        });
        let (lsn, notifying) = match committed {
            Ok(committed) => committed,
            Err(error) => {
                self.roll_back(tx, catalog_tx);
                return Err(error);
            }
        };
        if let (Some(committing), Some(notify)) = (notifying, self.notify.as_mut()) {
            let server = self.server;
            let pid = self.entry.pid;
            notify.committed(&server.channels, pid, lsn, &server.workers, committing);
        }
        {
            let mut out = self.out.borrow_mut();
            out.need_durable(tx.durability_needed());
            if self.settings.synchronous_commit || changed {
                out.need_durable(lsn);
                if self.settings.remote_apply {
                    out.need_applied(lsn);
                }
            } else if lsn > base::Lsn::ZERO {
                self.server.engine.storage.wal.request_flush(lsn);
            }
        }
        if changed {
            self.server.engine.storage.wal.flush(lsn)?;
            catalog_tx.committed();
        }
        catalog_tx.end_temporary(true);
        Ok(())
    }

    fn roll_back(&mut self, tx: &txn::Transaction, catalog_tx: &mut catalog::CatalogTx) {
        self.out.borrow_mut().need_durable(tx.durability_needed());
        tx.abort();
        if catalog_tx.has_work() || catalog_tx.changed() {
            catalog_tx.aborted();
        }
        catalog_tx.end_temporary(false);
        if let Some(notify) = self.notify.as_mut() {
            notify.rollback_to(0);
        }
    }

    fn reload(&self) -> Datum {
        let result = self.server.reload();
        if let Err(error) = &result {
            log::error(self.entry.pid, error, None);
            self.warn("WARNING", error);
        }
        Datum::Bool(result.is_ok())
    }

    /// Whether `client_min_messages` lets a message through, as what runs has set it by now.
    fn notice_wanted(&self, severity: &str) -> bool {
        let name = "client_min_messages";
        let set = self.changes.iter().rev().find(|c| c.name.eq_ignore_ascii_case(name));
        let Some(change) = set else {
            return settings::notice_wanted(self.settings.get(), severity);
        };
        let mut settings = self.settings.clone();
        // Whether it is a value was asked when it was set.
        let _ = settings.set(name, change.value.as_deref(), change.local);
        settings::notice_wanted(settings.get(), severity)
    }

    fn warn(&self, severity: &'static str, notice: &Error) {
        if severity == "LOG" {
            crate::log::session(
                self.entry.pid,
                notice.message(),
                notice.fields().detail.as_deref(),
            );
        }
        if self.notice_wanted(severity) {
            let mut out = self.out.borrow_mut();
            let start = out.buffer.len();
            // The levels of DEBUG differ for client_min_messages only.
            let shown = if severity.starts_with("DEBUG") { "DEBUG" } else { severity };
            response::notice(&mut out.buffer, shown, notice);
            recode::lossy(&mut out.buffer, start, self.settings.format.client_encoding);
            out.complete = out.buffer.len();
        }
    }
}

/// Settings that are really the transaction's state.
pub fn transaction_setting(
    name: &str,
    tx: Option<&txn::Transaction>,
    settings: &SessionSettings,
) -> Option<String> {
    if !name.get(..12).is_some_and(|p| p.eq_ignore_ascii_case("transaction_")) {
        return None;
    }
    match name.to_ascii_lowercase().as_str() {
        "transaction_isolation" => {
            let level = tx.map_or(settings.isolation, txn::Transaction::isolation);
            Some(isolation_name(level).to_owned())
        }
        "transaction_deferrable" => {
            let deferrable = tx.map_or(settings.deferrable, txn::Transaction::deferrable);
            Some(if deferrable { "on" } else { "off" }.to_owned())
        }
        "transaction_read_only" => {
            let read_only = tx.map_or(settings.read_only, txn::Transaction::read_only);
            Some(if read_only { "on" } else { "off" }.to_owned())
        }
        _ => None,
    }
}

fn address(ip: Option<(IpAddr, u16)>) -> Datum {
    ip.map_or(Datum::Null, |(ip, _)| crate::views::inet(ip))
}

fn port(ip: Option<(IpAddr, u16)>) -> Datum {
    ip.map_or(Datum::Null, |(_, port)| Datum::Int4(i32::from(port)))
}

impl SessionHooks for Hooks<'_> {
    fn prevent_in_block(&self, what: &str) -> Result<()> {
        match self.inside {
            None => Ok(()),
            Some(how) => Err(err!(ACTIVE_SQL_TRANSACTION, "{what} cannot {how}")),
        }
    }

    fn publisher(
        &mut self,
        connection: &str,
        subscription: &str,
        request: &exec::publisher::PublisherRequest,
    ) -> Result<Vec<Vec<String>>> {
        if matches!(request, exec::publisher::PublisherRequest::DropSlot(_)) {
            // Its worker has the slot.
            let all = self.server.subscriptions.progress();
            let own = all
                .iter()
                .find(|((database, _), p)| *database == self.database && p.name == subscription);
            if let Some((key, _)) = own {
                let workers = &self.server.subscriptions;
                sched::blocking(base::WaitEvent::ActivityThreadMain, || {
                    workers.stop(*key);
                });
            }
        }
        crate::subscription::publisher::ask(connection, subscription, request)
    }

    fn subscriptions_changed(&mut self) {
        self.server.subscriber.wake();
    }

    fn is_read(&self, table: u32) -> bool {
        self.portals.read(Oid(table))
    }

    fn call(&mut self, function: F, args: &[Datum], acting: Acting) -> Result<Datum> {
        let peer = self.entry.peer;
        Ok(match function {
            F::SetConfig => return self.set_config(args, acting),
            F::CurrentSetting => {
                let missing_ok = matches!(args.get(1), Some(Datum::Bool(true)));
                return self.current_setting(text(args.first())?, missing_ok);
            }
            F::PgFlamegraph => {
                let request = profile_request(args)?;
                let folded = request.take_for_statement(self.server)?;
                Datum::Text(folded.svg(request.kind, request.seconds)?.into())
            }
            F::PgStacks => {
                let folded = profile_request(args)?.take_for_statement(self.server)?;
                let items: Vec<Datum> = folded.lines().map(|l| Datum::Text(l.into())).collect();
                let dims = vec![(items.len() as i32, 1)];
                Datum::Array(Arc::new(Array { element: oids::TEXT, dims, items }))
            }
            F::PgServerStatus => {
                let part = text(args.first())?;
                let status = crate::http::status(self.server, part).ok_or_else(|| {
                    err!(INVALID_PARAMETER_VALUE, "invalid part of the status: \"{part}\"")
                        .hint("Available parts: now, figures, waits.")
                })?;
                Datum::Text(status.to_string().into())
            }
            F::CurrentOf => {
                let Some(Datum::Oid(table)) = args.get(1) else { return Ok(Datum::Null) };
                let (cursor, known) = (text(args.first())?, text(args.get(2))?);
                return super::cursor::current_of(self.portals, cursor, *table, known);
            }
            F::XidAge => self.age(args),
            F::PgCatalogXmin => Datum::Oid(self.server.engine.txn.next_xid().0 as u32),
            F::PgAutonomous => {
                return match args {
                    [Datum::Text(sql), params @ ..] => {
                        self.outer.run(self.settings, acting, self.out, sql, params)
                    }
                    _ => Ok(Datum::Null),
                };
            }
            F::PgExportSnapshot => {
                let (exports, pid) = (&self.server.exports, self.entry.pid);
                Datum::Text(exports.export(self.tx, self.database, pid)?.into())
            }
            F::PgBackendPid => Datum::Int4(self.entry.pid),
            F::CurrentQuery => Datum::text(&self.entry.activity().query.text()),
            F::PgCancelBackend => {
                self.signal(pid(args.first())?, Interrupt::Cancel, acting.role)?
            }
            F::PgTerminateBackend => {
                self.signal(pid(args.first())?, Interrupt::Terminate, acting.role)?
            }
            F::PgReloadConf => self.reload(),
            F::PgNotify => {
                let (task, database) = (&self.entry.task, self.database);
                let pending = || Box::new(Pending::new(task, database));
                let (channel, payload) = (optional(args.first()), optional(args.get(1)));
                self.notify.get_or_insert_with(pending).notify(channel, payload)?;
                Datum::Text("".into())
            }
            F::PgListeningChannels => {
                let channels = self.notify.iter().flat_map(|notify| notify.channels());
                Datum::array(oids::TEXT, channels.map(|channel| Datum::text(channel)).collect())
            }
            F::PgNotificationQueueUsage => Datum::Float8(self.server.channels.usage()),
            F::PgStatWaitTrace => return views::trace(self.server, args),
            F::PgStatWaitReset | F::PgWaitSamplingResetProfile => {
                sched::observe::reset_profile();
                Datum::Text("".into())
            }
            F::PgPostmasterStartTime | F::PgConfLoadTime => Datum::Timestamptz(self.server.started),
            F::PgBlockingPids | F::PgSafeSnapshotBlockingPids => {
                let pids = blocking::pids(function.name(), self.server, pid(args.first())?);
                Datum::array(oids::INT4, pids.into_iter().map(Datum::Int4).collect())
            }
            F::PgIsolationTestSessionIsBlocked => {
                let by = args.get(1).map(|pids| &pids.as_array().items[..]).unwrap_or_default();
                Datum::Bool(blocking::is_blocked(self.server, pid(args.first())?, by))
            }
            F::PgIsInRecovery => Datum::Bool(self.server.standby.follows()),
            F::InetClientAddr => address(peer.client),
            F::InetClientPort => port(peer.client),
            F::InetServerAddr => address(peer.server),
            F::InetServerPort => port(peer.server),
            other => {
                let (database, name) = (self.database, other.name());
                match views::functions::call(self.server, database, self.done, name, args)? {
                    Some(value) => value,
                    None => return Err(Error::unsupported(format_args!("function {name}"))),
                }
            }
        })
    }

    fn history(&mut self, function: F, args: &[Datum]) -> Result<Vec<Vec<Datum>>> {
        views::history(self.server, function, args)
    }

    fn enter(
        &mut self,
        settings: &[(String, String)],
        (around, format): (&Settings, &FormatContext),
    ) -> Result<(Box<Values>, usize)> {
        let mut values = around.clone();
        for (name, value) in settings {
            self.settings.check(name, Some(value))?;
            if let Some(id) = SettingId::find(name) {
                values.set(id, super::checks::parse_over(id, value, format)?);
            }
        }
        let mark = self.changes.len();
        let serial = self.next_serial();
        let change = |(name, value): &(String, String)| Change {
            name: name.clone(),
            value: Some(value.clone()),
            local: true,
            serial,
            committed: false,
        };
        self.changes.extend(settings.iter().map(change));
        let format = FormatContext { now: format.now, ..super::checks::format_context(&values) };
        Ok((Box::new(Values { settings: values, format }), mark))
    }

    fn leave(&mut self, settings: &[(String, String)], mark: usize) {
        let inside = self.changes.split_off(mark.min(self.changes.len()));
        let own = |c: &Change| settings.iter().any(|(name, _)| name.eq_ignore_ascii_case(&c.name));
        let stays = |c: &Change| !(c.local && own(c));
        let before = self.changes.len();
        self.changes.extend(inside.into_iter().skip(settings.len()).filter(stays));
        if self.changes.len() > before {
            // Without the function's own this is no state that was there.
            self.renumber_last();
        }
    }

    fn undo(&mut self, mark: usize) {
        self.changes.truncate(mark);
    }

    fn settings_version(&self) -> u64 {
        self.changes.last().map_or(0, |c| c.serial)
    }

    fn current_values(&mut self, (_, format): (&Settings, &FormatContext)) -> Arc<Values> {
        let version = self.settings_version();
        if let Some((at, values)) = &self.current
            && *at == version
        {
            return values.clone();
        }
        let mut settings = self.settings.clone();
        for change in &*self.changes {
            // Whether the session may was asked when the change was made; of a role it is asked again by those that
            // would run in its name.
            let value = change.value.as_deref();
            let _ = match change.name.eq_ignore_ascii_case("role") {
                true => settings.set_identity(setting::ROLE, value.unwrap_or("none"), change.local),
                false => settings.set(&change.name, value, change.local),
            };
        }
        let format = FormatContext { now: format.now, ..settings.format.clone() };
        let values = Arc::new(Values { settings: settings.get().clone(), format });
        self.current = Some((version, values.clone()));
        values
    }

    fn see_types(&mut self, catalog: &Arc<catalog::Snapshot>, path: &[u32]) {
        self.entry.types.see(catalog, path);
    }

    fn savepoint(&mut self) -> SessionMark {
        SessionMark {
            notify: self.notify.as_ref().map_or(0, |n| n.mark()),
            changes: self.changes.len(),
            deferred: Some(self.deferred.clone()),
            portals: self.portals.made(),
        }
    }

    fn rollback_to(&mut self, mark: &SessionMark, tx: &txn::Transaction) {
        let pins = self.portals.rollback_to(mark.portals);
        pins.into_iter().for_each(|pin| tx.unpin_snapshot(pin));
        self.changes.truncate(mark.changes);
        if let Some(deferred) = &mark.deferred {
            self.deferred.clone_from(deferred);
        }
        if let Some(notify) = self.notify {
            notify.rollback_to(mark.notify);
        }
    }

    fn end_transaction(
        &mut self,
        end: TransactionEnd,
        tx: &txn::Transaction,
        catalog_tx: &mut catalog::CatalogTx,
    ) -> Result<()> {
        if tx.isolation() == txn::Isolation::Serializable {
            return Err(Error::unsupported("ending a SERIALIZABLE transaction in a procedure"));
        }
        self.deferred.clear();
        let ready = if end.commit { self.foreign.before_commit() } else { Ok(()) };
        let commits = end.commit && ready.is_ok();
        let ended = match commits {
            true => {
                self.portals.commit();
                self.changes.retain(|c| !c.local);
                self.changes.iter_mut().for_each(|c| c.committed = true);
                self.renumber_last();
                self.commit(tx, catalog_tx)
            }
            false => {
                self.portals.end_transaction();
                self.changes.retain(|c| c.committed);
                self.renumber_last();
                self.roll_back(tx, catalog_tx);
                ready
            }
        };
        self.foreign.ended(commits && ended.is_ok());
        let own = self.settings;
        let modes = match end.chain {
            true => (tx.isolation(), tx.read_only(), tx.deferrable()),
            false => (own.isolation, own.read_only, own.deferrable),
        };
        tx.restart(modes.0, modes.1 || self.server.standby.follows(), modes.2);
        ended
    }

    fn open_cursor(&mut self, cursor: OpenCursor) -> Result<String> {
        super::cursor::open(self.portals, cursor, self.settings.format.now)
    }

    fn take_cursor(&mut self, name: &str) -> Option<Box<dyn SessionCursor>> {
        let portal = self.portals.take(name)?;
        Some(Box::new(super::cursor::Taken { name: name.to_owned(), portal }))
    }

    fn put_cursor(&mut self, name: &str, cursor: Box<dyn SessionCursor>) {
        if let Ok(taken) = cursor.into_any().downcast::<super::cursor::Taken>() {
            self.portals.put(name, taken.portal);
        }
    }

    fn cursors(&self) -> Vec<String> {
        self.portals.names()
    }

    fn close_cursor(&mut self, name: &str) -> bool {
        let portal = self.portals.take(name);
        if let Some(pin) = portal.as_ref().and_then(|p| p.pin()) {
            self.tx.unpin_snapshot(pin);
        }
        portal.is_some()
    }

    fn run_own(&mut self, prepared: &sql::Prepared, acting: Acting) -> Result<()> {
        use sql::Utility as U;
        let sql::Statement::Utility(utility) = &prepared.statement else { return Ok(()) };
        if acting.guard == Guard::Restricted
            && matches!(utility, U::Listen(_) | U::Unlisten(_) | U::Discard(_) | U::Prepare { .. })
        {
            return Err(err!(
                INSUFFICIENT_PRIVILEGE,
                "cannot execute {} within security-restricted operation",
                prepared.tag
            ));
        }
        if matches!(utility, U::Listen(_) | U::Unlisten(_) | U::Notify { .. }) {
            self.server.standby.refuse(prepared.tag)?;
        }
        match utility {
            U::Reset(Some(name)) => {
                self.set_config(&[Datum::text(name), Datum::Null, Datum::Bool(false)], acting)?;
            }
            U::Listen(channel) => self.notify_mut().listen(channel),
            U::Unlisten(channel) => self.notify_mut().unlisten(channel.as_deref()),
            U::Notify { channel, payload } => self.notify_mut().notify(channel, payload)?,
            U::NoOp(notice) => {
                if let Some(text) = notice {
                    self.warn("NOTICE", &err!(SUCCESSFUL_COMPLETION, "{text}"));
                }
            }
            U::Show(_) => {}
            U::Vacuum { vacuum: true, .. } => {
                base::bail!(ACTIVE_SQL_TRANSACTION, "VACUUM cannot be executed from a function")
            }
            _ => return Err(Error::unsupported(format_args!("{} in a function", prepared.tag))),
        }
        Ok(())
    }

    fn notice(&mut self, severity: &'static str, error: Error) {
        self.warn(severity, &error);
    }

    fn send_notices(&mut self, durable: base::Lsn) -> Result<()> {
        let mut out = self.out.borrow_mut();
        // Notices of an autonomous transaction follow what the outer session has to say.
        if self.outer.is_inner() || out.complete != out.buffer.len() {
            return Ok(());
        }
        out.need_durable(durable);
        out.send()
    }

    fn sequences(&mut self) -> &mut exec::SessionSequences {
        self.sequences
    }

    fn deferred(&mut self) -> &mut exec::Deferred {
        self.deferred
    }

    fn large_objects(&mut self) -> Option<&mut exec::LargeObjects> {
        Some(self.large_objects)
    }

    fn origin(&mut self) -> Option<&mut exec::session_origin::SessionOrigin> {
        Some(self.own_origin)
    }

    fn foreign(&mut self) -> Option<&mut exec::foreign::SessionParts> {
        Some(self.foreign)
    }

    fn copy_read(&mut self) -> Result<Option<Vec<u8>>> {
        self.copy.read(self.out)
    }

    fn end_sessions(&mut self, database: u32) -> Result<()> {
        let all = self.server.sessions.all().into_iter();
        let inside: Vec<_> = all.filter(|entry| entry.activity().database.1 == database).collect();
        for entry in &inside {
            self.check_signal(entry, Interrupt::Terminate, self.settings.identity.current.0)?;
        }
        for entry in &inside {
            entry.task.interrupt(Interrupt::Terminate);
            self.server.workers.wake(&entry.task);
        }
        Ok(())
    }

    fn password(&mut self, role: &str, password: &str) -> Result<Option<String>> {
        if let Some(kept) = StoredPassword::parse(password) {
            let empty = kept.fits(role, "", &mut super::auth::let_others_run)?;
            return Ok((!empty).then(|| password.to_owned()));
        }
        if password.is_empty() {
            return Ok(None);
        }
        if self.settings.get().str(setting::PASSWORD_ENCRYPTION) == "md5" {
            return Ok(Some(wire::password::md5(role, password)));
        }
        let salt: [u8; scram::SALT_BYTES] = self.server.random()?;
        let pause = &mut super::auth::let_others_run;
        Ok(Some(Verifier::new(password, &salt, scram::ITERATIONS, pause)?.to_string()))
    }
}

/// The running server as system tables ask it, on behalf of one session.
pub struct Info<'a> {
    /// The server.
    pub server: &'a Server,
    /// The session's database.
    pub database: u32,
    /// The session's prepared statements.
    pub statements: &'a Statements,
    /// Rows of `pg_cursors`.
    pub cursors: Vec<Vec<Datum>>,
    /// The tally of the transaction's statements before this one.
    pub done: &'a Tally,
}

impl Info<'_> {
    /// Hides the activity of other roles, unless this one may read all statistics.
    fn hide(&self, view: &str, role: u32, rows: &mut [Vec<Datum>]) {
        let catalog = self.server.engine.catalog.shared().current();
        let rights = Rights { catalog: &catalog, database: self.database };
        if rights.has_rights_of(role, ids::READ_ALL_STATS) {
            return;
        }
        let Some(table) = catalog::system::find(None, view) else { return };
        let at = |names: &[&str]| table.columns.iter().position(|c| names.contains(&&*c.name));
        let (Some(owner), Some(query)) = (at(&["usesysid", "userid"]), at(&["query"])) else {
            return;
        };
        const HIDDEN: &[&str] = &[
            "backend_start",
            "backend_type",
            "client_addr",
            "client_hostname",
            "client_port",
            "query_id",
            "query_start",
            "queryid",
            "state",
            "state_change",
            "wait_event",
            "wait_event_type",
            "xact_start",
        ];
        let hidden = |c: &(usize, &catalog::Column)| HIDDEN.contains(&&*c.1.name);
        let hidden: Vec<usize> =
            table.columns.iter().enumerate().filter(hidden).map(|(n, _)| n).collect();
        for row in rows {
            // The server's own threads are nobody's.
            if let Datum::Oid(owner) = row[owner]
                && rights.has_rights_of(role, owner)
            {
                continue;
            }
            hidden.iter().for_each(|n| row[*n] = Datum::Null);
            row[query] = Datum::Text("<insufficient privilege>".into());
        }
    }
}

impl Info<'_> {
    /// Statements of who waits and who blocks: of other roles' sessions, and of sessions that are gone, they
    /// are theirs.
    fn hide_queries(&self, view: &str, role: u32, rows: &mut [Vec<Datum>]) {
        let catalog = self.server.engine.catalog.shared().current();
        let rights = Rights { catalog: &catalog, database: self.database };
        if rights.has_rights_of(role, ids::READ_ALL_STATS) {
            return;
        }
        let Some(table) = catalog::system::find(None, view) else { return };
        let at = |name: &str| table.columns.iter().position(|c| c.name == name);
        for side in ["waiting", "blocking"] {
            let (Some(pid), Some(query)) =
                (at(&format!("{side}_pid")), at(&format!("{side}_query")))
            else {
                continue;
            };
            for row in rows.iter_mut().filter(|row| !row[query].is_null()) {
                let owner = match row[pid] {
                    Datum::Int4(pid) if view == "pg_stat_blocking" => {
                        self.server.sessions.get(pid).map(|entry| entry.activity().user_oid)
                    }
                    _ => None,
                };
                if owner.is_none_or(|owner| !rights.has_rights_of(role, owner)) {
                    row[query] = Datum::Text("<insufficient privilege>".into());
                }
            }
        }
    }
}

impl ServerInfo for Info<'_> {
    fn rows(&self, view: &str, role: u32) -> Vec<Vec<Datum>> {
        match view {
            "pg_prepared_statements" => views::prepared_statements(self.statements),
            "pg_cursors" => self.cursors.clone(),
            "pg_stat_activity" | "pg_stat_get_activity()" | "pg_stat_statements" => {
                let mut rows = rows(self.server, self.database, view);
                self.hide(view, role, &mut rows);
                rows
            }
            "pg_events" | "pg_plans" | "pg_plan_changes" | "pg_alerts" | "pg_alert_rules" => {
                let catalog = self.server.engine.catalog.shared().current();
                let rights = Rights { catalog: &catalog, database: self.database };
                match rights.has_rights_of(role, ids::READ_ALL_STATS) {
                    true => rows(self.server, self.database, view),
                    false => Vec::new(),
                }
            }
            "pg_stat_blocking" | "pg_stat_blocking_history" => {
                let mut rows = rows(self.server, self.database, view);
                self.hide_queries(view, role, &mut rows);
                rows
            }
            "pg_stat_xact_all_tables" => {
                views::transaction(self.server, self.database, "pg_stat_xact_all_tables", self.done)
            }
            "pg_stat_xact_sys_tables" => {
                views::transaction(self.server, self.database, "pg_stat_xact_sys_tables", self.done)
            }
            "pg_stat_xact_user_tables" => views::transaction(
                self.server,
                self.database,
                "pg_stat_xact_user_tables",
                self.done,
            ),
            "pg_stat_xact_user_functions" => views::called(self.server, self.database, self.done),
            view => rows(self.server, self.database, view),
        }
    }

    fn pages(&self, rel: u32) -> u32 {
        views::pages(self.server, rel)
    }

    fn sequence(&self, rel: u32) -> Result<Option<(i64, i64, bool)>> {
        let (value, covered) = self.server.engine.catalog.sequences.peek(rel)?;
        Ok(Some((value.last, covered, value.is_called)))
    }
}

//! Statements that are the session's own: transaction control, settings, prepared statements,
//! cursors.

use std::sync::Arc;

use base::settings::{SETTINGS, SettingId, setting};
use base::{Oid, Result, err};
use exec::RowSink;
use exec::context::Outcome;
use sql::expr::Expr;
use sql::plan::{Estimate, Node, OutputColumn, Plan};
use sql::utility::TransactionModes;
use sql::{Prepared, Statement, Utility};
use types::func::{CastContext, CastMethod};
use types::{Datum, oids};

use super::SessionState;
use super::hooks::transaction_setting;
use super::portal::{PlanOf, Planned, PreparedStatement, ResultFormats};
use super::rows::{self, Rows};
use crate::connection::Patience;
use crate::session::statement_run::Run;
use crate::{log, server};

/// A prepared statement with its arguments.
struct Executed {
    statement: Arc<PreparedStatement>,
    plan: PlanOf,
    params: Vec<Datum>,
}

/// `42501`: the setting's value is not for everybody.
pub(super) fn secret_setting(name: &str) -> base::Error {
    let name = SettingId::find(name).map_or(name, |id| id.def().name);
    base::err!(
        INSUFFICIENT_PRIVILEGE,
        "must be superuser or have privileges of pg_read_all_settings to examine \"{name}\""
    )
}

impl SessionState {
    /// Runs the statement, which is `run`'s, if it is the session's own; None if it is the executor's.
    pub(super) fn control(&mut self, utility: &Utility, run: &Run<'_>) -> Result<Option<Outcome>> {
        let mut outcome = Outcome::default();
        match utility {
            Utility::Begin(modes) => {
                self.begin_block(modes)?;
                let word = run.text.trim_start().get(..5);
                if word.is_some_and(|w| w.eq_ignore_ascii_case("start")) {
                    outcome.tag = Some("START TRANSACTION");
                }
            }
            Utility::Commit { chain } => outcome.tag = Some(self.commit_block(*chain)?),
            Utility::Rollback { chain } => outcome.tag = Some(self.rollback_block(*chain)?),
            Utility::Savepoint(name) => self.savepoint(name)?,
            Utility::Release(name) => self.release_savepoint(name)?,
            Utility::RollbackTo(name) => self.rollback_to_savepoint(name)?,
            Utility::TwoPhase("PREPARE TRANSACTION", gid) => {
                outcome.tag = Some(self.prepare_block(gid)?);
            }
            Utility::TwoPhase(words, gid) => self.finish_prepared(gid, words)?,
            Utility::SetTransaction { modes, session } => {
                self.set_transaction(modes, *session)?;
            }
            Utility::ImportSnapshot(name) => self.import_snapshot(name)?,
            Utility::Set { name, value, local } => {
                self.set_setting(name, value.as_deref(), *local)?;
            }
            Utility::Show(name) => self.show(name.as_deref(), run.formats, run.describe)?,
            Utility::Reset(Some(name)) => self.set_setting(name, None, false)?,
            Utility::Reset(None) => {
                self.ensure_transaction();
                self.settings.reset_all();
            }
            Utility::AlterSystem { name, value } => {
                self.prevent_in_block("ALTER SYSTEM")?;
                self.check_alter_system(name.as_deref())?;
                self.server.alter_system(name.as_deref(), value.as_deref())?;
            }
            Utility::Listen(channel) => {
                self.server.standby.refuse("LISTEN")?;
                self.ensure_transaction();
                self.notify_mut().listen(channel);
            }
            Utility::Unlisten(channel) => {
                self.server.standby.refuse("UNLISTEN")?;
                self.ensure_transaction();
                // A session that never listened has nothing to forget.
                if let Some(notify) = &mut self.notify {
                    notify.unlisten(channel.as_deref());
                }
            }
            Utility::Notify { channel, payload } => {
                self.server.standby.refuse("NOTIFY")?;
                self.ensure_transaction();
                self.notify_mut().notify(channel, payload)?;
            }
            Utility::Discard(what) => self.discard(what)?,
            Utility::Prepare { name, params, text } => self.prepare_sql(name, params, text)?,
            Utility::Execute { name, args } => {
                return self.execute_sql(name, args, run).map(Some);
            }
            Utility::Deallocate(None) => self.statements.clear(),
            Utility::Deallocate(Some(name)) => {
                self.statements.get(name)?;
                self.statements.remove(name);
            }
            Utility::DeclareCursor { .. } => self.declare(run)?,
            Utility::Fetch { name, how, moving } => {
                return self.fetch_sql(name, *how, *moving, run.formats, run.describe).map(Some);
            }
            Utility::ClosePortal(name) => self.close_sql(name.as_deref())?,
            Utility::NoOp(notice) => {
                if let Some(text) = notice {
                    let notice = err!(SUCCESSFUL_COMPLETION, "{text}");
                    self.notice("NOTICE", &notice);
                }
            }
            Utility::SetConstraints { .. } => {
                self.warn_outside("SET CONSTRAINTS");
                return Ok(None);
            }
            _ => match utility.executes() {
                Some((name, args)) => {
                    return self.about_executed(utility, name, args, run).map(Some);
                }
                None => return Ok(None),
            },
        }
        Ok(Some(outcome))
    }

    /// EXPLAIN and CREATE TABLE AS of an EXECUTE.
    fn about_executed(
        &mut self,
        utility: &Utility,
        name: &str,
        args: &[Expr],
        run: &Run<'_>,
    ) -> Result<Outcome> {
        let Executed { statement, mut plan, params } = self.executed(name, args)?;
        let query = plan.prepared.tag == "SELECT";
        if !query && matches!(utility, Utility::CreateTableAs { .. }) {
            return Err(err!(WRONG_OBJECT_TYPE, "prepared statement is not a SELECT"));
        }
        let (text, declared) = (&*statement.text, Some(&*statement.declared));
        let mut run = Run { text, declared, plan: &mut plan, params, ..*run };
        self.lock(&mut run)?;
        let about = utility.about(&run.plan.prepared);
        let about = about.ok_or_else(|| base::Error::internal("a statement without EXECUTE"))?;
        self.check_read_only(&about)?;
        let tag = about.tag;
        *run.plan = PlanOf::new(Arc::new(about), run.plan.version, run.plan.epoch);
        let outcome = self.run_locked(&run, None)?;
        Ok(Outcome { tag: Some(outcome.tag.unwrap_or(tag)), ..outcome })
    }

    fn check_alter_system(&self, name: Option<&str>) -> Result<()> {
        match name {
            _ if self.settings.identity.superuser => Ok(()),
            Some(name) => {
                Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to set parameter \"{name}\""))
            }
            None => Err(err!(
                INSUFFICIENT_PRIVILEGE,
                "permission denied to perform ALTER SYSTEM RESET ALL"
            )),
        }
    }

    fn warn_outside(&mut self, what: &str) {
        if !self.outlasts_statement() {
            let warning =
                err!(NO_ACTIVE_SQL_TRANSACTION, "{what} can only be used in transaction blocks");
            self.notice("WARNING", &warning);
        }
    }

    /// SET TRANSACTION SNAPSHOT.
    fn import_snapshot(&mut self, name: &str) -> Result<()> {
        self.warn_outside("SET TRANSACTION");
        self.ensure_transaction();
        if self.transaction.has_snapshot {
            return Err(base::err!(
                ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION SNAPSHOT must be called before any query"
            ));
        }
        let Some(tx) = &self.transaction.current else { return Ok(()) };
        self.server.exports.import(name, tx, self.database.1)?;
        self.transaction.has_snapshot = true;
        Ok(())
    }

    fn set_transaction(&mut self, modes: &TransactionModes, session: bool) -> Result<()> {
        if !session {
            self.warn_outside("SET TRANSACTION");
            return self.set_modes(modes);
        }
        self.ensure_transaction();
        if let Some(isolation) = modes.isolation {
            self.settings.set("default_transaction_isolation", Some(isolation), false)?;
        }
        let words = |on: bool| Some(if on { "on" } else { "off" });
        if let Some(read_only) = modes.read_only {
            self.settings.set("default_transaction_read_only", words(read_only), false)?;
        }
        if let Some(deferrable) = modes.deferrable {
            self.settings.set("default_transaction_deferrable", words(deferrable), false)?;
        }
        Ok(())
    }

    fn set_setting(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<()> {
        if local {
            self.warn_outside("SET LOCAL");
        }
        self.ensure_transaction();
        let lower = name.to_ascii_lowercase();
        match (lower.as_str(), value) {
            ("transaction_isolation", Some(value)) => {
                let id = base::settings::setting::TRANSACTION_ISOLATION;
                base::settings::parse(id, value)?;
                let level = super::transaction::isolation(&value.to_ascii_lowercase());
                let isolation = Some(super::transaction::isolation_name(level));
                self.set_modes(&TransactionModes { isolation, ..Default::default() })
            }
            ("transaction_read_only", Some(value)) => {
                let read_only = base::settings::parse_bool(value);
                self.set_modes(&TransactionModes { read_only, ..Default::default() })
            }
            ("transaction_deferrable", Some(value)) => {
                let deferrable = base::settings::parse_bool(value);
                self.set_modes(&TransactionModes { deferrable, ..Default::default() })
            }
            _ => {
                self.assign(name, value, local)?;
                if lower.starts_with("tcp_") {
                    self.set_patience();
                }
                if lower == "application_name" {
                    let text = self.settings.show("application_name")?;
                    self.entry.update(|a| a.application = text);
                }
                Ok(())
            }
        }
    }

    /// The values of `tcp_keepalives_*` and `tcp_user_timeout` now.
    pub(super) fn patience(&self) -> Patience {
        let settings = self.settings.get();
        Patience {
            idle_s: settings.int(setting::TCP_KEEPALIVES_IDLE) as u64,
            interval_s: settings.int(setting::TCP_KEEPALIVES_INTERVAL) as u64,
            count: settings.int(setting::TCP_KEEPALIVES_COUNT) as u32,
            timeout_ms: settings.int(setting::TCP_USER_TIMEOUT) as u64,
        }
    }

    /// Tells the socket. As in PostgreSQL, what the system does not take is only logged.
    pub(super) fn set_patience(&self) {
        if let Err(error) = self.socket.set_patience(&self.patience()) {
            log::error(self.entry.pid, &base::Error::io("set TCP time-outs", &error), None);
        }
    }

    fn show_value(&self, name: &str) -> Result<String> {
        let tx = self.transaction.current.as_ref();
        match transaction_setting(name, tx, &self.settings) {
            Some(text) => Ok(text),
            None => self.settings.show(name),
        }
    }

    /// `42501` for the value of a setting that not everybody may see.
    fn may_see(&mut self, name: &str) -> Result<()> {
        if !SettingId::find(name).is_some_and(SettingId::is_secret) {
            return Ok(());
        }
        let (view, role) = (self.view(), self.settings.identity.current.0);
        let rights = catalog::Rights { catalog: &view, database: self.database.1 };
        if rights.has_rights_of(role, catalog::object::ids::READ_ALL_SETTINGS) {
            return Ok(());
        }
        Err(secret_setting(name))
    }

    fn show(&mut self, name: Option<&str>, formats: &ResultFormats, describe: bool) -> Result<()> {
        self.check_not_failed()?;
        let text = |s: &str| Datum::Text(s.into());
        let columns = show_columns(name);
        let rows = match name {
            Some(name) => {
                self.may_see(name)?;
                vec![vec![text(&self.show_value(name)?)]]
            }
            None => {
                let row = |(i, def): (usize, &base::settings::SettingDef)| {
                    let value = self.settings.get().get(SettingId(i as u16));
                    let shown = base::settings::show(SettingId(i as u16), value);
                    vec![text(def.name), text(&shown), text(def.description)]
                };
                SETTINGS.iter().enumerate().map(row).collect()
            }
        };
        self.ensure_transaction();
        self.send_rows(&columns, formats, describe, &rows)
    }

    /// Sends rows that the session made itself.
    fn send_rows(
        &mut self,
        columns: &[OutputColumn],
        formats: &ResultFormats,
        describe: bool,
        rows: &[Vec<Datum>],
    ) -> Result<()> {
        if describe {
            let encoding = self.encoding();
            let out = self.out.get_mut();
            rows::describe(&mut out.buffer, columns, formats, encoding)?;
            out.complete = out.buffer.len();
        }
        let Some(tx) = &self.transaction.current else { return Ok(()) };
        let context = &self.settings.format;
        let mut sink =
            Rows { out: &self.out, columns, formats, context, tx, names: None, discard: false };
        rows.iter().try_for_each(|row| sink.row(row))
    }

    fn discard(&mut self, what: &str) -> Result<()> {
        match what {
            "PLANS" => return Ok(self.statements.forget_plans()),
            "TEMP" => {
                self.ensure_transaction();
                return Ok(self.catalog_tx.discard_temporary());
            }
            "SEQUENCES" => return Ok(self.sequences.clear()),
            "ALL" => {}
            _ => return Ok(()),
        }
        self.prevent_in_block("DISCARD ALL")?;
        self.portals.clear();
        self.statements.clear();
        self.ensure_transaction();
        self.assign("session_authorization", None, false)?;
        self.settings.reset_all();
        self.catalog_tx.discard_temporary();
        self.sequences.clear();
        if self.notify.is_some() {
            self.ensure_transaction();
            self.notify_mut().unlisten(None);
        }
        self.server.engine.txn.locks.unlock_session_all(&self.owner);
        Ok(())
    }

    fn prepare_sql(&mut self, name: &str, params: &[Oid], text: &str) -> Result<()> {
        self.ensure_transaction();
        self.statements.check_new(name)?;
        let plan = self.plan(text, params)?;
        self.statements.add(PreparedStatement {
            name: name.into(),
            plan: Planned::clone(&plan),
            text: text.into(),
            declared: params.into(),
            from_sql: true,
            since: server::now(),
        })
    }

    /// EXECUTE.
    fn execute_sql(&mut self, name: &str, args: &[Expr], run: &Run<'_>) -> Result<Outcome> {
        let Executed { statement, mut plan, params } = self.executed(name, args)?;
        self.identify_statement(&plan.prepared);
        let tag = plan.prepared.tag;
        let (text, declared) = (&*statement.text, Some(&*statement.declared));
        let mut run = Run { text, declared, plan: &mut plan, params, ..*run };
        if let Statement::Utility(utility) = &run.plan.prepared.statement
            && let Some(outcome) = self.control(utility, &run)?
        {
            return Ok(Outcome { tag: Some(outcome.tag.unwrap_or(tag)), ..outcome });
        }
        let outcome = self.run(&mut run)?;
        Ok(Outcome { tag: Some(outcome.tag.unwrap_or(tag)), ..outcome })
    }

    /// The statement that EXECUTE is to run.
    fn executed(&mut self, name: &str, args: &[Expr]) -> Result<Executed> {
        self.ensure_transaction();
        let mut statement = self.statements.get(name)?.clone();
        if !self.is_fresh(&statement.plan) {
            self.renew(&mut statement)?;
        }
        let prepared = &statement.plan.prepared;
        let params = self.arguments(name, args, &prepared.params)?;
        if let Statement::Utility(Utility::Execute { .. }) = prepared.statement {
            return Err(base::Error::unsupported("EXECUTE of an EXECUTE"));
        }
        Ok(Executed { plan: self.plan_for(&statement, &params)?, statement, params })
    }

    /// Values of EXECUTE's arguments, as the parameters' types.
    fn arguments(&mut self, name: &str, args: &[Expr], types: &[Oid]) -> Result<Vec<Datum>> {
        if args.len() != types.len() {
            return Err(err!(
                SYNTAX_ERROR,
                "wrong number of parameters for prepared statement \"{name}\""
            )
            .detail(format!(
                "Expected {} parameters but got {}.",
                types.len(),
                args.len()
            )));
        }
        if args.is_empty() {
            return Ok(Vec::new());
        }
        let cast = |(arg, ty): (&Expr, &Oid)| {
            if arg.ty() == *ty {
                return arg.clone();
            }
            if let Some(cast) = types::func::cast(arg.ty(), *ty)
                && cast.context >= CastContext::Assignment
                && let CastMethod::Function(oid) = cast.method
                && let Some(function) = types::func::function(oid)
                && function.args.len() == 1
            {
                let args = Box::new([arg.clone()]);
                return Expr::Call { function, args, ty: *ty, position: 0 };
            }
            Expr::InOutCast { arg: Box::new(arg.clone()), ty: *ty, typmod: -1 }
        };
        let values = vec![args.iter().zip(types).map(cast).collect()];
        let plan = Plan { node: Node::Values(values), estimate: Estimate::default() };
        let prepared = Arc::new(Prepared {
            statement: Statement::Query(plan),
            params: Vec::new(),
            columns: types.iter().map(|ty| column("", *ty)).collect(),
            subplans: Vec::new(),
            changes: Vec::new(),
            slots: 0,
            locks: Vec::new(),
            catalog_version: 0,
            tag: "SELECT",
            writes: false,
            identity: Default::default(),
            constant_calls: Vec::new(),
            effects: Default::default(),
            executor: Default::default(),
            trials: Default::default(),
            stack: sched::stack_bytes(),
        });
        let mut rows = self.run_kept(&prepared)?;
        rows.pop().ok_or_else(|| base::Error::internal("the arguments gave no row"))
    }
}

pub(super) fn column(name: &str, ty: Oid) -> OutputColumn {
    OutputColumn {
        name: name.to_owned(),
        ty,
        typmod: -1,
        table: Oid::INVALID,
        column: 0,
        collation: 0,
    }
}

/// Columns of SHOW.
pub(super) fn show_columns(name: Option<&str>) -> Vec<OutputColumn> {
    match name {
        Some(name) => {
            let name = SettingId::find(name).map_or(name, |id| id.def().name);
            vec![column(name, oids::TEXT)]
        }
        None => ["name", "setting", "description"].map(|n| column(n, oids::TEXT)).into(),
    }
}

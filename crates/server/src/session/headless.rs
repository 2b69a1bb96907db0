//! A session without a client: SQL that a thread of the server runs in a role's name.
//!
//! ```text
//!   background thread ─ Headless::attach(database, role) ─ run(text, params) ─ run(…) ─ drop
//!                                                          └ plan, lock, snapshot, execute, commit, flush
//! ```
//!
//! * It is a [`SessionState`] like any client's: its plans come from the shared cache, its rights are the
//!   role's, its settings those of the server, the database and the role; its transactions, counts and
//!   locks are seen in the views. Only its rows stay here, and its notices are dropped.
//! * Each statement is a transaction of its own, and durable when [`Headless::run`] returns.
//! * A database that somebody wants for himself alone (DROP, RENAME, a copy) cancels its statement: the
//!   caller gets `57014` and lets go of the session.
//! * Statements that control a session (BEGIN, SET, cursors, LISTEN) have no place in it.
//!
//! Autonomous transactions ([`super::autonomous`]) run by the same [`SessionState::run_alone`], in a
//! session that lasts for one call and works for another one.

use std::sync::Arc;

use base::settings::{Value, setting};
use base::{Error, Oid, Result, err};
use catalog::OpenDatabase;
use exec::context::Outcome;
use sql::{Prepared, Statement, Utility};
use txn::{LockMode, LockTag, LockWait};
use types::Datum;

use super::SessionState;
use super::identity::Identity;
use super::portal::ResultFormats;
use super::rows::CollectedRows;
use crate::connection::Socket;
use crate::registry::SessionActivity;
use crate::server::{self, Server};
use crate::session::statement_run::Run;

/// The answer of a statement.
pub struct Answer {
    /// The statement as it was planned: its columns, its tag.
    pub prepared: Arc<Prepared>,
    /// Its rows.
    pub rows: Vec<Vec<Datum>>,
    /// The statement's outcome.
    pub outcome: Outcome,
}

impl Answer {
    /// The command tag as a client sees it.
    pub fn tag(&self) -> String {
        let (tag, rows) = (self.outcome.tag.unwrap_or(self.prepared.tag), self.outcome.rows);
        match tag {
            "INSERT" => format!("INSERT 0 {rows}"),
            "SELECT" | "UPDATE" | "DELETE" | "MERGE" => format!("{tag} {rows}"),
            tag => tag.to_owned(),
        }
    }
}

/// See the module's documentation. It belongs to the thread that made it.
pub struct Headless {
    state: Box<SessionState>,
}

impl Headless {
    /// Begins a session of a role in a database, on the calling thread's task. None while the database is
    /// closed to newcomers.
    ///
    /// # Errors
    /// `42704` when there is no such role; those of settings.
    pub fn attach(
        server: &Arc<Server>,
        database: &Arc<OpenDatabase>,
        role: u32,
    ) -> Result<Option<Headless>> {
        let Some(attachment) = database.attach_background() else { return Ok(None) };
        let catalog = database.current();
        let role = catalog
            .role(role)
            .ok_or_else(|| err!(UNDEFINED_OBJECT, "role with OID {role} does not exist"))?;
        let name: Arc<str> = match catalog.database(database.oid()) {
            Some(known) => known.name.as_str().into(),
            None => return Ok(None),
        };
        let task = sched::current();
        let now = server::now();
        let entry = server.sessions.background(&task, server.secret(), now);
        let owner = server.engine.txn.new_owner(&task, task.pid());
        let socket = Arc::new(Socket::Nobody);
        let state = SessionState::new(server.clone(), entry, socket, owner, database.clone());
        // From here on dropping it gives everything back.
        let mut headless = Headless { state: Box::new(state) };
        let state = &mut *headless.state;
        let identity = Identity::of((role.oid, role.name.as_str().into()), role.superuser);
        state.settings.identity = identity;
        state.attach(database.clone(), attachment, (name.clone(), database.oid()));
        state.apply_settings(&[])?;
        // How long a client's statements may take says nothing about a job's.
        for timeout in
            [setting::STATEMENT_TIMEOUT, setting::LOCK_TIMEOUT, setting::TRANSACTION_TIMEOUT]
        {
            state.settings.set_internal(timeout, Value::Int(0));
        }
        state.account.begin_work(now);
        state.entry.update(|activity| {
            activity.state = SessionActivity::Idle;
            activity.user = role.name.as_str().into();
            activity.user_oid = role.oid;
            activity.database = (name, database.oid());
            activity.session_start = now;
            activity.state_change = now;
        });
        Ok(Some(headless))
    }

    /// Makes its maintenance the server's own: a table that somebody works with is not waited for
    /// (`55P03`), and the caller counts what was vacuumed.
    pub fn make_automatic(&mut self) {
        self.state.automatic = true;
    }

    /// Gives a setting a value for the session.
    pub fn set(&mut self, setting: base::settings::SettingId, value: Value) {
        self.state.settings.set_internal(setting, value);
    }

    /// Calls `f` in a transaction and commits; what it did is durable then. `origin`: the server and position that the
    /// transaction comes from.
    ///
    /// # Errors
    /// `f`'s, and those of the commit: then it is rolled back.
    pub fn within<R>(
        &mut self,
        origin: Option<(String, u64)>,
        f: impl FnOnce(&mut exec::context::ExecContext<'_>) -> Result<R>,
    ) -> Result<R> {
        let state = &mut *self.state;
        state.reload_if_stale();
        state.begin_statement("");
        state.origin = origin;
        let result = state.guarded(|s| s.in_context(f));
        state.origin = None;
        if result.is_err() {
            state.fail_transaction();
        }
        let out = state.out.get_mut();
        out.buffer.clear();
        out.complete = 0;
        let durable = out.wait_durable();
        let now = server::now();
        state.account.begin_waiting(now);
        state.pass_on_counts(now);
        state.entry.end_statement(SessionActivity::Idle, now);
        let answer = result?;
        durable?;
        Ok(answer)
    }

    /// Runs one statement and commits; what it did is durable then.
    ///
    /// # Errors
    /// The statement's, and those of its commit: then it is rolled back. `57014` also when somebody wants
    /// the database alone; `0A000` for statements that control a session.
    pub fn run(&mut self, text: &str, params: &[Datum]) -> Result<Answer> {
        let state = &mut *self.state;
        state.reload_if_stale();
        state.begin_statement(text);
        state.arm_timeout();
        let result = state.guarded(|s| s.run_alone(text, params, check));
        state.disarm_timeout();
        if result.is_err() {
            state.fail_transaction();
        }
        let out = state.out.get_mut();
        out.buffer.clear();
        out.complete = 0;
        // An error may tell of what others committed, too.
        let durable = out.wait_durable();
        let now = server::now();
        state.account.begin_waiting(now);
        state.pass_on_counts(now);
        state.entry.end_statement(SessionActivity::Idle, now);
        let answer = result?;
        durable?;
        Ok(answer)
    }
}

impl Drop for Headless {
    fn drop(&mut self) {
        self.state.release();
        self.state.entry.update(|activity| activity.state = SessionActivity::Starting);
    }
}

/// `0A000` for what only a client can ask for.
fn check(prepared: &Prepared) -> Result<()> {
    let allowed = match &prepared.statement {
        Statement::Query(_) => true,
        Statement::Empty => false,
        Statement::Utility(Utility::Vacuum { .. }) => true,
        Statement::Utility(utility) => utility.is_own(),
    };
    if allowed {
        return Ok(());
    }
    let what = if prepared.tag.is_empty() { "an empty statement" } else { prepared.tag };
    Err(Error::unsupported(format_args!("{what} in a session without a client")))
}

impl SessionState {
    /// Runs one statement as a transaction of its own; its rows are kept. `check` says which statements may
    /// run.
    ///
    /// # Errors
    /// The statement's, and those of its commit. The caller rolls back.
    pub(super) fn run_alone(
        &mut self,
        text: &str,
        params: &[Datum],
        check: fn(&Prepared) -> Result<()>,
    ) -> Result<Answer> {
        let began = self.watch();
        let mut plan = self.plan(text, &[])?;
        let prepared = plan.prepared.clone();
        check(&prepared)?;
        self.identify_statement(&prepared);
        let params = self.values_of_parameters(&prepared.params, params)?;
        let mut run = Run {
            text,
            declared: Some(&[]),
            plan: &mut plan,
            params,
            formats: &ResultFormats::default(),
            rest: &[],
            describe: false,
            discard: true,
        };
        self.check_utility(&run.plan.prepared)?;
        let in_steps = match &prepared.statement {
            Statement::Utility(utility) => utility.runs_in_steps().is_some(),
            _ => false,
        };
        if in_steps {
            let outcome = self.run_in_steps(&mut run, began)?;
            self.commit()?;
            return Ok(Answer { prepared, rows: Vec::new(), outcome });
        }
        self.begin_run(&mut run)?;
        let prepared = run.plan.prepared.clone();
        self.lock_at_once(&prepared)?;
        let snapshot = self.snapshot()?;
        let types: Vec<Oid> = prepared.columns.iter().map(|c| c.ty).collect();
        let mut kept = CollectedRows { rows: Vec::new(), types };
        let outcome = self.with_context(&run, snapshot, |cx, _| match &prepared.statement {
            Statement::Query(_) => exec::run(&prepared, cx, &mut kept),
            _ => exec::run_utility(&prepared, cx, &mut kept),
        })?;
        self.end_command(&prepared, 0);
        self.note_effect(&prepared);
        self.commit()?;
        if let Some(began) = began
            && self.nesting == 0
            && !self.automatic
        {
            self.count_statement(began, &prepared, outcome.rows, true);
        }
        Ok(Answer { prepared, rows: kept.rows, outcome })
    }

    /// Takes the locks of automatic maintenance, which waits for nobody.
    ///
    /// # Errors
    /// `55P03` when somebody works with a table.
    fn lock_at_once(&self, prepared: &Prepared) -> Result<()> {
        let (Some(tx), true) = (&self.transaction.current, self.automatic) else { return Ok(()) };
        let Statement::Utility(Utility::Vacuum { tables, .. }) = &prepared.statement else {
            return Ok(());
        };
        for table in self.tables_named(tables) {
            let tag = LockTag::Relation(Oid(self.database.1), Oid(table));
            let locks = &self.server.engine.txn.locks;
            if !locks.lock(tx.locks(), tag, LockMode::ShareUpdateExclusive, LockWait::Try)? {
                return Err(err!(
                    LOCK_NOT_AVAILABLE,
                    "could not obtain lock on relation with OID {table}"
                ));
            }
        }
        Ok(())
    }

    /// Values of a statement's parameters, which need not have their types yet.
    fn values_of_parameters(&self, types: &[Oid], given: &[Datum]) -> Result<Vec<Datum>> {
        if given.len() != types.len() {
            return Err(err!(
                SYNTAX_ERROR,
                "the statement has {} parameters, but {} values were given",
                types.len(),
                given.len()
            ));
        }
        let format = &self.settings.format;
        let read = |(ty, value): (&Oid, &Datum)| match value {
            Datum::Null => Ok(Datum::Null),
            value => {
                let text = types::io::to_text(types::io::natural_type(value), value, format)?;
                types::io::input(*ty, -1, &text, format)
            }
        };
        types.iter().zip(given).map(read).collect()
    }
}

//! The execution context of a statement, and the sink of its rows.

use std::sync::Arc;

use base::Result;
use base::settings::Settings;
use catalog::system::ServerInfo;
use catalog::{Catalog, CatalogTx};
use sched::Task;
use sql::Prepared;
use sql::utility::Utility;
use storage::Storage;
use txn::{Snapshot, Transaction, TxnManager};
use types::func::SessionFunction;
use types::{Batch, Datum, FormatContext};

use crate::calls::Calls;
use crate::compiled::{Routines, SessionRoutines};
use crate::execution::Execution;
use crate::language::Languages;
use crate::modify::deferred::Deferred;
use crate::session::open_large_objects::LargeObjects;
use crate::session::sequence_values::SessionSequences;
use crate::stored_plans::StoredPlans;
use crate::tally::Tally;

/// The server's parts below the session, made once.
pub struct Engine {
    /// Files, buffers, log.
    pub storage: Arc<Storage>,
    /// Transactions and locks.
    pub txn: Arc<TxnManager>,
    /// Definitions.
    pub catalog: Arc<Catalog>,
    /// Languages of functions, beside SQL.
    pub languages: Languages,
    /// Plans of statements.
    pub plans: sql::PlanCache,
    /// Compiled functions.
    pub routines: Routines,
    /// Plans of definitions.
    pub stored_plans: StoredPlans,
    /// The upper half of the executor.
    pub calls: &'static Calls,
    /// What runs statements that are not queries.
    pub utilities: &'static dyn Utilities,
}

/// Runs statements that are not queries. The crate above implements it, so that bodies of functions
/// can hold such statements, too.
pub trait Utilities: Sync {
    /// Runs one.
    ///
    /// # Errors
    /// Whatever it raises; `0A000` for what isn't supported.
    fn run(
        &self,
        utility: &Utility,
        prepared: &Arc<Prepared>,
        cx: &mut ExecContext<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<Outcome>;
}

/// What a statement may ask of the session that runs it.
pub trait SessionHooks {
    /// A function of the families [`types::func::Family::Server`] and `Statistics` (set_config, pg_backend_pid, pg_cancel_backend, current_setting …), for code that runs in
    /// somebody's name.
    fn call(&mut self, function: SessionFunction, args: &[Datum], acting: Acting) -> Result<Datum>;
    /// Rows of a function of the family [`types::func::Family::History`].
    ///
    /// # Errors
    /// Those of reading the history; `0A000` where there is none.
    fn history(&mut self, function: SessionFunction, _args: &[Datum]) -> Result<Vec<Vec<Datum>>> {
        Err(base::Error::unsupported(format_args!("function {}", function.name())))
    }
    /// NOTICE, WARNING and kin.
    fn notice(&mut self, severity: &'static str, error: base::Error);
    /// Sends the notices so far, so that they are there before the session waits. The log must be durable up to
    /// `durable` before.
    ///
    /// # Errors
    /// Fatal ones: the connection broke.
    fn send_notices(&mut self, _durable: base::Lsn) -> Result<()> {
        Ok(())
    }
    /// What the session knows of sequences.
    fn sequences(&mut self) -> &mut SessionSequences;
    /// Checks that wait for the transaction's end.
    fn deferred(&mut self) -> &mut Deferred;
    /// The transaction's open large objects; None where there is no session.
    fn large_objects(&mut self) -> Option<&mut LargeObjects> {
        None
    }
    /// State of foreign-data wrappers for the session; None where there is no session.
    fn foreign(&mut self) -> Option<&mut crate::foreign::SessionParts> {
        None
    }
    /// The origin that the session's transactions come from; None where there is no session.
    fn origin(&mut self) -> Option<&mut crate::session_origin::SessionOrigin> {
        None
    }
    /// `25001` unless the statement is the only one of its transaction.
    ///
    /// # Errors
    /// See above.
    fn prevent_in_block(&self, what: &str) -> Result<()> {
        Err(base::err!(ACTIVE_SQL_TRANSACTION, "{what} cannot be executed from a function"))
    }
    /// Asks the publisher of a subscription; rows of texts.
    ///
    /// # Errors
    /// `08006`, and what the publisher answers.
    fn publisher(
        &mut self,
        _connection: &str,
        _subscription: &str,
        _request: &crate::publisher::PublisherRequest,
    ) -> Result<Vec<Vec<String>>> {
        Err(base::Error::unsupported("subscriptions outside of a session"))
    }
    /// Subscriptions are others than before once the transaction commits.
    fn subscriptions_changed(&mut self) {}
    /// Whether a cursor of the transaction reads the table.
    fn is_read(&self, _table: u32) -> bool {
        false
    }
    /// The next piece of COPY data from the client; None at its end.
    fn copy_read(&mut self) -> Result<Option<Vec<u8>>>;
    /// Puts settings in force while a function runs, over those in force around it; says what they are
    /// then, and what [`SessionHooks::leave`] wants to know.
    ///
    /// # Errors
    /// As SET.
    fn enter(
        &mut self,
        settings: &[(String, String)],
        (around, format): (&Settings, &FormatContext),
    ) -> Result<(Box<Values>, usize)> {
        let mut values = around.clone();
        for (name, value) in settings {
            if let Some(id) = base::settings::SettingId::find(name) {
                values.set(id, base::settings::parse(id, value)?);
            }
        }
        Ok((Box::new(Values { settings: values, format: format.clone() }), 0))
    }
    /// Makes the types of a view of the catalog the ones that the task's values are read and printed by.
    fn see_types(&mut self, _catalog: &Arc<catalog::Snapshot>, _path: &[u32]) {}
    /// Number of the last change of settings that stands; 0: none since the statement began.
    fn settings_version(&self) -> u64 {
        0
    }
    /// The settings in force now, with what changed since the statement began.
    fn current_values(&mut self, around: (&Settings, &FormatContext)) -> Arc<Values> {
        Arc::new(Values { settings: around.0.clone(), format: around.1.clone() })
    }
    /// Marks what a rollback to here undoes of the session's own.
    fn savepoint(&mut self) -> SessionMark {
        SessionMark::default()
    }
    /// Undoes what the session did since.
    fn rollback_to(&mut self, _mark: &SessionMark, _tx: &Transaction) {}
    /// Commits (or rolls back) the transaction, and begins the next one in its place, with the same
    /// modes if it is `chained`.
    ///
    /// # Errors
    /// Those of a commit: then the transaction is rolled back, and the next one has begun.
    fn end_transaction(
        &mut self,
        _end: TransactionEnd,
        _tx: &Transaction,
        _catalog_tx: &mut CatalogTx,
    ) -> Result<()> {
        Err(base::Error::internal("a transaction ends outside of sessions"))
    }
    /// Opens a cursor under a name, or under one that is made up; says which.
    ///
    /// # Errors
    /// `42P03`.
    fn open_cursor(&mut self, _cursor: OpenCursor) -> Result<String> {
        Err(base::Error::internal("a cursor outside of sessions"))
    }
    /// Takes a cursor out, to fetch from it.
    fn take_cursor(&mut self, _name: &str) -> Option<Box<dyn SessionCursor>> {
        None
    }
    /// Puts it back.
    fn put_cursor(&mut self, _name: &str, _cursor: Box<dyn SessionCursor>) {}
    /// The names of those that are open.
    fn cursors(&self) -> Vec<String> {
        Vec::new()
    }
    /// Closes it; false when there is none.
    fn close_cursor(&mut self, _name: &str) -> bool {
        false
    }
    /// Runs a statement that is the session's own (LISTEN, NOTIFY …).
    ///
    /// # Errors
    /// `0A000` for those that can't stand inside another statement.
    fn run_own(&mut self, prepared: &sql::Prepared, _acting: Acting) -> Result<()> {
        Err(base::Error::unsupported(format_args!("{} in a function", prepared.tag)))
    }
    /// Ends what [`SessionHooks::enter`] began.
    fn leave(&mut self, _settings: &[(String, String)], _mark: usize) {}
    /// Takes back all changes of settings since [`SessionHooks::enter`] gave this mark.
    fn undo(&mut self, _mark: usize) {}
    /// Tells all sessions in a database to end (DROP DATABASE … FORCE).
    ///
    /// # Errors
    /// `42501` when the session's role may not end one of them: then it ends none.
    fn end_sessions(&mut self, database: u32) -> Result<()>;
    /// What the catalog keeps of a role's password; None when it is empty.
    ///
    /// # Errors
    /// When it can't be made.
    fn password(&mut self, role: &str, password: &str) -> Result<Option<String>>;
}

/// How much of the session code may touch that runs in another's name than the session's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guard {
    /// It is the session's own.
    #[default]
    None,
    /// A function with SECURITY DEFINER: it can't change who the session is.
    Definer,
    /// A security-restricted operation ([`crate::security`]).
    Restricted,
}

/// In whose name code runs.
#[derive(Clone, Copy, Debug)]
pub struct Acting {
    /// The role.
    pub role: u32,
    /// What it may not touch.
    pub guard: Guard,
}

/// See [`SessionHooks::savepoint`].
#[derive(Default)]
pub struct SessionMark {
    /// Notifications so far.
    pub notify: usize,
    /// Settings changed so far.
    pub changes: usize,
    /// Checks that wait.
    pub deferred: Option<Deferred>,
    /// Portals so far.
    pub portals: u64,
}

/// How a transaction ends inside a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionEnd {
    /// COMMIT.
    pub commit: bool,
    /// AND CHAIN.
    pub chain: bool,
}

/// A cursor that a function opens.
pub struct OpenCursor {
    /// Its name; None: one is made up.
    pub name: Option<String>,
    /// Its query.
    pub prepared: Arc<sql::Prepared>,
    /// Its text.
    pub text: String,
    /// The query's parameters.
    pub params: Vec<Datum>,
    /// The query, begun.
    pub execution: Box<Execution>,
    /// What it sees.
    pub snapshot: Snapshot,
    /// The snapshot's registration with the transaction.
    pub pin: u64,
    /// SCROLL, or NO SCROLL; None: whatever the query allows.
    pub scroll: Option<bool>,
    /// Where rows of WHERE CURRENT OF come from: see [`sql::Utility::DeclareCursor`].
    pub tables: Vec<Vec<u32>>,
}

/// A cursor of the session.
pub trait SessionCursor {
    /// The columns of its rows.
    fn columns(&self) -> Vec<sql::plan::OutputColumn>;
    /// Moves it; the rows on the way go to the sink, unless it only `moving`. Says how many there were.
    ///
    /// # Errors
    /// The query's; `55000` when it can't go that way.
    fn fetch(
        &mut self,
        how: sql::utility::FetchHow,
        moving: bool,
        cx: &mut ExecContext<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<u64>;
    /// For the session, which knows its own.
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any>;
}

/// Settings in force, and what follows from them.
pub struct Values {
    /// The settings.
    pub settings: Settings,
    /// For input and output of values.
    pub format: FormatContext,
}

/// Everything that executing one statement needs.
pub struct ExecContext<'a> {
    /// The server.
    pub engine: &'a Engine,
    /// The session's transaction.
    pub tx: &'a Transaction,
    /// Its view of the definitions.
    pub catalog_tx: &'a mut CatalogTx,
    /// The statement's snapshot.
    pub snapshot: Snapshot,
    /// The session's settings.
    pub settings: &'a Settings,
    /// [`SessionHooks::settings_version`] of them.
    pub settings_version: u64,
    /// For input and output of values.
    pub format: &'a FormatContext,
    /// Rows of statistics views.
    pub server: &'a dyn ServerInfo,
    /// The session.
    pub hooks: &'a mut dyn SessionHooks,
    /// Schemas to search, for names at run time (regclass input).
    pub search_path: &'a [u32],
    /// The session's role.
    pub user: &'a str,
    /// Its oid.
    pub role: u32,
    /// What code that runs in that name may not touch.
    pub guard: Guard,
    /// The session's role, whatever SET ROLE says (name, oid).
    pub session_user: (&'a str, u32),
    /// The session's database (name, oid).
    pub database: (&'a str, u32),
    /// The statement's parameters.
    pub params: &'a [Datum],
    /// What it does to each table and index.
    pub tally: &'a mut Tally,
    /// What plans depend on beside the catalog: [`sql::environment`] of the settings, path and role here.
    pub environment: u64,
    /// Whether it may end the transaction: a procedure that a CALL outside of blocks runs, or DO.
    pub nonatomic: bool,
    /// What the session knows of functions.
    pub routines: &'a mut SessionRoutines,
}

impl ExecContext<'_> {
    /// The session's task.
    #[inline]
    pub fn task(&self) -> &Task {
        self.tx.locks().task()
    }

    /// In whose name it runs.
    pub fn acting(&self) -> Acting {
        Acting { role: self.role, guard: self.guard }
    }

    /// The same for a statement inside this one, which the caller makes differ where it does.
    pub fn inner(&mut self) -> ExecContext<'_> {
        ExecContext {
            engine: self.engine,
            tx: self.tx,
            catalog_tx: &mut *self.catalog_tx,
            snapshot: self.snapshot,
            settings: self.settings,
            settings_version: self.settings_version,
            format: self.format,
            server: self.server,
            hooks: &mut *self.hooks,
            search_path: self.search_path,
            user: self.user,
            role: self.role,
            guard: self.guard,
            session_user: self.session_user,
            database: self.database,
            params: &[],
            tally: &mut *self.tally,
            environment: self.environment,
            nonatomic: false,
            routines: &mut *self.routines,
        }
    }
}

/// Takes result rows: the session encodes them straight into its output buffer.
pub trait RowSink {
    /// A batch with the statement's output columns.
    fn batch(&mut self, batch: &Batch) -> Result<()>;
    /// One row, from the short path of statements that touch one row.
    fn row(&mut self, row: &[Datum]) -> Result<()>;
    /// COPY TO: bytes of the data stream.
    fn copy_data(&mut self, bytes: &[u8]) -> Result<()>;
}

/// What a statement did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Rows returned or changed, for the command tag.
    pub rows: u64,
    /// A tag that differs from the plan's (`SELECT` of CREATE TABLE AS).
    pub tag: Option<&'static str>,
}

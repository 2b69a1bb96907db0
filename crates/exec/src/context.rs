//! What running a statement needs, and the way rows go out.

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
use types::{Batch, Datum, FormatContext};

use crate::language::Languages;
use crate::modify::deferred::Deferred;
use crate::session::sequence::SessionSequences;
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
    /// A function whose row says [`types::func::Body::Session`] and that the executor does not know
    /// itself (set_config, pg_backend_pid, pg_cancel_backend, current_setting …), for code that runs in
    /// somebody's name.
    fn call(&mut self, name: &str, args: &[Datum], acting: Acting) -> Result<Datum>;
    /// NOTICE, WARNING and kin.
    fn notice(&mut self, severity: &'static str, error: base::Error);
    /// What the session knows of sequences.
    fn sequences(&mut self) -> &mut SessionSequences;
    /// Checks that wait for the transaction's end.
    fn deferred(&mut self) -> &mut Deferred;
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
    /// Who the session is, whatever SET ROLE says (name, oid).
    pub session_user: (&'a str, u32),
    /// The session's database (name, oid).
    pub database: (&'a str, u32),
    /// The statement's parameters.
    pub params: &'a [Datum],
    /// What it does to each table and index.
    pub tally: &'a mut Tally,
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

pub use crate::execute::{Execution, run, run_utility};

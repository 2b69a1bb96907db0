//! Transactions of a session: begun when a statement first needs one, and blocks around them.
//!
//! ```text
//!              BEGIN                        error
//!   None ─────────────────▶ Explicit ───────────────▶ Failed
//!    ▲ │ several statements    │ COMMIT, ROLLBACK        │ COMMIT, ROLLBACK (rolls back),
//!    │ ▼ that came together    ▼                         ▼ ROLLBACK TO goes back to Explicit
//!   Implicit, Pipeline ─ end ▶ None ◀───────────────────
//! ```
//!
//! A failed block without savepoints has no transaction any more: its locks are free at once. With
//! savepoints the innermost level is undone, and the levels around it wait for ROLLBACK TO.

use std::time::{Duration, Instant};

use base::usage::Use;
use base::{Result, err};
use catalog::store::CatalogMark;
use sql::utility::TransactionModes;
use txn::transaction::SavepointLevel;
use txn::{Isolation, Transaction};
use wire::response::TransactionStatus;

use super::SessionState;
use super::account::Pending;
use super::settings::Mark;
use crate::server;

/// See the module's documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Block {
    /// Each statement is its own transaction.
    #[default]
    None,
    /// The statements of one query string are one transaction.
    Implicit,
    /// The messages up to a Sync are one.
    Pipeline,
    /// BEGIN.
    Explicit,
    /// A statement of an explicit block failed.
    Failed,
}

impl Block {
    /// As ReadyForQuery tells it.
    pub fn status(self) -> TransactionStatus {
        match self {
            Block::None | Block::Implicit | Block::Pipeline => TransactionStatus::Idle,
            Block::Explicit => TransactionStatus::InBlock,
            Block::Failed => TransactionStatus::Failed,
        }
    }
}

pub(super) struct Savepoint {
    name: String,
    level: SavepointLevel,
    /// Whether the transaction was read-only when it was set.
    read_only: bool,
    catalog: CatalogMark,
    settings: Mark,
    /// The notifications there were.
    notify: usize,
    changes: Pending,
    /// Checks that wait for the transaction's end.
    deferred: exec::Deferred,
    /// Portals made before ([`super::portal::Portals::made`]).
    portals: u64,
}

/// Isolation level, READ ONLY, DEFERRABLE.
type Modes = (Isolation, bool, bool);

/// The session's transaction.
#[derive(Default)]
pub struct TransactionState {
    /// The block around it.
    pub block: Block,
    /// The transaction, once a statement needed one.
    pub current: Option<Transaction>,
    /// A snapshot was taken: isolation can't change any more.
    pub has_snapshot: bool,
    /// An Execute of the pipeline is done, which only the Sync commits.
    pub pipelined: bool,
    /// When it ends, if it has not ended before.
    pub deadline: Option<Instant>,
    /// How many log records the session had written when it began.
    logged: u64,
    pub(super) savepoints: Vec<Savepoint>,
}

impl TransactionState {
    /// Whether there is a transaction or a block.
    pub fn begun(&self) -> bool {
        self.current.is_some() || self.block != Block::None
    }
}

/// The level that a setting's word means.
pub fn isolation(word: &str) -> Isolation {
    match word {
        "serializable" => Isolation::Serializable,
        "repeatable read" => Isolation::RepeatableRead,
        "read uncommitted" => Isolation::ReadUncommitted,
        _ => Isolation::ReadCommitted,
    }
}

/// The setting's word for a level.
pub fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadUncommitted => "read uncommitted",
        Isolation::ReadCommitted => "read committed",
        Isolation::RepeatableRead => "repeatable read",
        Isolation::Serializable => "serializable",
    }
}

impl SessionState {
    /// Begins a transaction if there is none.
    pub(super) fn ensure_transaction(&mut self) {
        if self.transaction.current.is_none() {
            self.start(self.default_modes());
        }
    }

    fn start(&mut self, (isolation, read_only, deferrable): Modes) {
        let now = server::at(sched::clock::recent_ns());
        self.settings.format.now = now;
        (self.transaction.has_snapshot, self.transaction.pipelined) = (false, false);
        let timeout = self.settings.transaction_timeout;
        if timeout > 0 && self.nesting == 0 {
            let deadline = Instant::now() + Duration::from_millis(timeout);
            self.transaction.deadline = Some(deadline);
            self.end_statement_at(deadline);
        }
        self.transaction.logged = self.entry.task.used(Use::WalRecords);
        let read_only = read_only || self.server.standby.follows();
        let tx = self.server.engine.txn.begin(&self.owner, isolation, read_only);
        tx.set_deferrable(deferrable);
        self.transaction.current = Some(tx);
        self.entry.begin_transaction(now);
    }

    /// Whether what is done lasts beyond its statement: in a block, and among the statements of one query.
    pub(super) fn outlasts_statement(&self) -> bool {
        matches!(self.transaction.block, Block::Explicit | Block::Failed | Block::Implicit)
    }

    /// `25P01` for what would be undone at the end of its statement.
    pub(super) fn require_block(&self, what: &str) -> Result<()> {
        match self.outlasts_statement() {
            true => Ok(()),
            false => Err(err!(
                NO_ACTIVE_SQL_TRANSACTION,
                "{what} can only be used in transaction blocks"
            )),
        }
    }

    /// `25P01` outside of a block that BEGIN began.
    fn require_explicit_block(&self, what: &str) -> Result<()> {
        if self.transaction.block == Block::Explicit || self.transaction.block == Block::Failed {
            return Ok(());
        }
        Err(err!(NO_ACTIVE_SQL_TRANSACTION, "{what} can only be used in transaction blocks"))
    }

    /// `25001` inside a block, and after other statements of a pipeline.
    pub(super) fn prevent_in_block(&self, what: &str) -> Result<()> {
        match self.inside() {
            None => Ok(()),
            Some(how) => Err(err!(ACTIVE_SQL_TRANSACTION, "{what} cannot {how}")),
        }
    }

    /// The reason why a statement that commits by itself can't run here; None: it can.
    pub(super) fn inside(&self) -> Option<&'static str> {
        match self.transaction.block {
            Block::None => None,
            Block::Pipeline if !self.transaction.pipelined => None,
            Block::Pipeline => Some("be executed within a pipeline"),
            Block::Implicit | Block::Explicit | Block::Failed => {
                Some("run inside a transaction block")
            }
        }
    }

    pub(super) fn warn_no_transaction(&mut self) {
        let warning = err!(NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress");
        self.notice("WARNING", &warning);
    }

    /// BEGIN.
    pub(super) fn begin_block(&mut self, modes: &TransactionModes) -> Result<()> {
        match self.transaction.block {
            Block::None | Block::Implicit | Block::Pipeline => {
                self.transaction.block = Block::Explicit;
                self.ensure_transaction();
            }
            Block::Explicit | Block::Failed => {
                let warning =
                    err!(ACTIVE_SQL_TRANSACTION, "there is already a transaction in progress");
                self.notice("WARNING", &warning);
            }
        }
        self.set_modes(modes)
    }

    /// SET TRANSACTION, and the modes of BEGIN.
    pub(super) fn set_modes(&mut self, modes: &TransactionModes) -> Result<()> {
        if *modes == TransactionModes::default() {
            return Ok(());
        }
        self.ensure_transaction();
        let has_snapshot = self.transaction.has_snapshot;
        let Some(tx) = &self.transaction.current else { return Ok(()) };
        let level = modes.isolation.map_or(tx.isolation(), isolation);
        if level != tx.isolation() && has_snapshot {
            return Err(err!(
                ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION ISOLATION LEVEL must be called before any query"
            ));
        }
        let inside = !self.transaction.savepoints.is_empty();
        if level != tx.isolation() && inside {
            return Err(err!(
                ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction"
            ));
        }
        let read_only = modes.read_only.unwrap_or(tx.read_only());
        if modes.read_only == Some(false) && self.server.standby.follows() {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "cannot set transaction read-write mode during recovery"
            ));
        }
        if level == Isolation::Serializable && self.server.standby.follows() {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "cannot use serializable mode in a hot standby"
            )
            .hint("You can use REPEATABLE READ instead."));
        }
        if tx.read_only() && !read_only && inside {
            return Err(err!(
                ACTIVE_SQL_TRANSACTION,
                "cannot set transaction read-write mode inside a read-only transaction"
            ));
        }
        if tx.read_only() && !read_only && has_snapshot {
            return Err(err!(
                ACTIVE_SQL_TRANSACTION,
                "transaction read-write mode must be set before any query"
            ));
        }
        if modes.deferrable.is_some() && inside {
            return Err(err!(
                ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction"
            ));
        }
        if modes.deferrable.is_some() && has_snapshot {
            return Err(err!(
                ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION [NOT] DEFERRABLE must be called before any query"
            ));
        }
        tx.set_modes(level, read_only);
        tx.set_deferrable(modes.deferrable.unwrap_or(tx.deferrable()));
        Ok(())
    }

    /// COMMIT; returns the command tag.
    pub(super) fn commit_block(&mut self, chain: bool) -> Result<&'static str> {
        match self.transaction.block {
            Block::None | Block::Implicit | Block::Pipeline if chain => {
                return Err(err!(
                    NO_ACTIVE_SQL_TRANSACTION,
                    "COMMIT AND CHAIN can only be used in transaction blocks"
                ));
            }
            Block::None | Block::Implicit | Block::Pipeline => {
                self.warn_no_transaction();
                self.commit()?;
                return Ok("COMMIT");
            }
            Block::Failed => return self.rollback_block(chain),
            Block::Explicit => {}
        }
        let modes = self.modes();
        self.commit()?;
        self.chain(chain, modes);
        Ok("COMMIT")
    }

    /// ROLLBACK; returns the command tag.
    pub(super) fn rollback_block(&mut self, chain: bool) -> Result<&'static str> {
        if matches!(self.transaction.block, Block::None | Block::Implicit | Block::Pipeline) {
            if chain {
                return Err(err!(
                    NO_ACTIVE_SQL_TRANSACTION,
                    "ROLLBACK AND CHAIN can only be used in transaction blocks"
                ));
            }
            self.warn_no_transaction();
        }
        let modes = self.modes();
        self.abort();
        self.chain(chain, modes);
        Ok("ROLLBACK")
    }

    fn default_modes(&self) -> Modes {
        (self.settings.isolation, self.settings.read_only, self.settings.deferrable)
    }

    fn modes(&self) -> Modes {
        match &self.transaction.current {
            Some(tx) => (tx.isolation(), tx.read_only(), tx.deferrable()),
            None => self.default_modes(),
        }
    }

    fn chain(&mut self, chain: bool, modes: Modes) {
        if chain {
            self.transaction.block = Block::Explicit;
            self.start(modes);
        }
    }

    /// Ends the transaction of a statement that has no block of its own.
    pub(super) fn end_implicit(&mut self) -> Result<()> {
        match self.transaction.block {
            Block::None | Block::Implicit | Block::Pipeline => self.commit(),
            Block::Explicit | Block::Failed => Ok(()),
        }
    }

    /// Commits. What the client is told afterwards leaves when the commit is durable.
    pub(super) fn commit(&mut self) -> Result<()> {
        let checked = if self.deferred.is_idle() { Ok(()) } else { self.fire_deferred() };
        let checked = checked.and_then(|()| self.keep_held());
        if let Err(error) = checked.and_then(|()| self.foreign.before_commit()) {
            self.abort();
            return Err(error);
        }
        self.deferred.clear();
        self.large_objects.clear();
        self.portals.commit();
        self.transaction.savepoints.clear();
        self.transaction.block = Block::None;
        self.transaction.deadline = None;
        let Some(tx) = self.transaction.current.take() else {
            self.settings.commit();
            return Ok(());
        };
        self.server.exports.end(self.entry.pid);
        self.catalog_tx.before_commit();
        let changed = self.catalog_tx.has_work();
        // Changes to temporary tables leave nothing in the log that anybody has to wait for.
        let logged = self.entry.task.used(Use::WalRecords) > self.transaction.logged;
        if changed {
            tx.set_publishes();
        }
        let server = self.notify.is_some().then(|| self.server.clone());
        let notifying = match (&self.notify, &server) {
            (Some(notify), Some(server)) => notify.begin_commit(&server.channels),
            _ => Ok(None),
        };
        let notifying = match notifying {
            Ok(notifying) => notifying,
            Err(error) => {
                self.out.get_mut().need_durable(tx.durability_needed());
                tx.abort();
                self.after_abort();
                return Err(error);
            }
        };
        exec::change_log::committing(
            &self.server.engine,
            &tx,
            self.database.1,
            changed,
            (crate::server::now(), self.origin_of_transaction()),
        );
        let committed = {
            let catalog_tx = &mut self.catalog_tx;
            tx.commit(&[], |csn| {
                if changed {
                    catalog_tx.publish(csn);
                }
            })
        };
        let lsn = match committed {
            Ok(lsn) => lsn,
            Err(error) => {
                self.out.get_mut().need_durable(tx.durability_needed());
                tx.abort();
                self.after_abort();
                return Err(error);
            }
        };
        if let (Some(committing), Some(notify)) = (notifying, &mut self.notify) {
            let (server, pid) = (&self.server, self.entry.pid);
            notify.committed(&server.channels, pid, lsn, &server.workers, committing);
        }
        self.own_origin.end_transaction();
        self.foreign.ended(true);
        self.account.end_transaction(true);
        let out = self.out.get_mut();
        out.need_durable(tx.durability_needed());
        if (self.settings.synchronous_commit && logged) || changed {
            out.need_durable(lsn);
            if self.settings.remote_apply {
                out.need_applied(lsn);
            }
        } else if lsn > base::Lsn::ZERO {
            self.server.engine.storage.wal.request_flush(lsn);
        }
        if changed {
            self.server.engine.storage.wal.flush(lsn)?;
            self.catalog_tx.committed();
        }
        self.catalog_tx.end_temporary(true);
        self.settings.commit();
        self.entry.set_transaction_start(0);
        Ok(())
    }

    /// The server that the transaction comes from, and where it ended there.
    fn origin_of_transaction(&self) -> Option<(&str, u64)> {
        let applied = self.origin.as_ref().map(|(name, at)| (name.as_str(), *at));
        applied.or_else(|| self.own_origin.of_transaction())
    }

    /// Rolls back, whatever there is.
    pub(super) fn abort(&mut self) {
        self.deferred.clear();
        self.large_objects.clear();
        self.portals.end_transaction();
        self.transaction.savepoints.clear();
        self.transaction.block = Block::None;
        self.transaction.deadline = None;
        if let Some(tx) = self.transaction.current.take() {
            // An error may tell of another one's commit: a key that is there, a row that has changed.
            self.out.get_mut().need_durable(tx.durability_needed());
            self.server.exports.end(self.entry.pid);
            tx.abort();
            self.after_abort();
        }
        self.settings.abort();
    }

    fn after_abort(&mut self) {
        self.own_origin.end_transaction();
        self.foreign.ended(false);
        self.account.end_transaction(false);
        if self.catalog_tx.has_work() || self.catalog_tx.changed() {
            self.catalog_tx.aborted();
        }
        self.catalog_tx.end_temporary(false);
        self.settings.abort();
        if let Some(notify) = &mut self.notify {
            notify.rollback_to(0);
        }
        self.entry.set_transaction_start(0);
    }

    /// A statement failed.
    pub(super) fn fail_transaction(&mut self) {
        if self.transaction.block == Block::Failed {
            return;
        }
        if self.transaction.block != Block::Explicit {
            return self.abort();
        }
        if let Some(tx) = &self.transaction.current {
            self.out.get_mut().need_durable(tx.durability_needed());
            tx.end_statement();
        }
        match self.transaction.savepoints.len() {
            0 => self.abort(),
            count => self.undo_to(count - 1),
        }
        self.transaction.block = Block::Failed;
    }

    /// Undoes what came after a savepoint. Cursors that are older than it stay as they are.
    fn undo_to(&mut self, index: usize) {
        let savepoint = &self.transaction.savepoints[index];
        let pins = self.portals.rollback_to(savepoint.portals);
        if let Some(tx) = &self.transaction.current {
            pins.into_iter().for_each(|pin| tx.unpin_snapshot(pin));
            tx.rollback_to(savepoint.level);
            tx.set_modes(tx.isolation(), savepoint.read_only);
        }
        self.foreign.rolled_back(savepoint.level.0 as usize - 1);
        self.deferred.clone_from(&savepoint.deferred);
        self.catalog_tx.rollback_to(&savepoint.catalog);
        self.settings.rollback_to(&savepoint.settings);
        if let Some(notify) = &mut self.notify {
            notify.rollback_to(savepoint.notify);
        }
        self.account.rollback_to(&savepoint.changes);
    }

    /// SAVEPOINT.
    pub(super) fn savepoint(&mut self, name: &str) -> Result<()> {
        self.require_explicit_block("SAVEPOINT")?;
        self.ensure_transaction();
        if let Some(tx) = &self.transaction.current {
            self.transaction.savepoints.push(Savepoint {
                name: name.to_owned(),
                level: tx.savepoint(),
                read_only: tx.read_only(),
                catalog: self.catalog_tx.savepoint(),
                settings: self.settings.mark_here(),
                notify: self.notify.as_ref().map_or(0, |n| n.mark()),
                changes: self.account.savepoint(),
                deferred: self.deferred.clone(),
                portals: self.portals.made(),
            });
        }
        Ok(())
    }

    fn find_savepoint(&self, name: &str) -> Result<usize> {
        self.transaction
            .savepoints
            .iter()
            .rposition(|s| s.name == name)
            .ok_or_else(|| err!(S_E_INVALID_SPECIFICATION, "savepoint \"{name}\" does not exist"))
    }

    /// RELEASE SAVEPOINT.
    pub(super) fn release_savepoint(&mut self, name: &str) -> Result<()> {
        self.require_explicit_block("RELEASE SAVEPOINT")?;
        let index = self.find_savepoint(name)?;
        if let Some(tx) = &self.transaction.current {
            let savepoint = &self.transaction.savepoints[index];
            tx.release(savepoint.level);
            self.foreign.released(savepoint.level.0 as usize - 1);
            // As in PostgreSQL, READ ONLY inside it ends with it.
            tx.set_modes(tx.isolation(), savepoint.read_only);
        }
        self.transaction.savepoints.truncate(index);
        Ok(())
    }

    /// ROLLBACK TO SAVEPOINT.
    pub(super) fn rollback_to_savepoint(&mut self, name: &str) -> Result<()> {
        self.require_explicit_block("ROLLBACK TO SAVEPOINT")?;
        let index = self.find_savepoint(name)?;
        self.undo_to(index);
        self.transaction.savepoints.truncate(index + 1);
        self.transaction.block = Block::Explicit;
        Ok(())
    }
}

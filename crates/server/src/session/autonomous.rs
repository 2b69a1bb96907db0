//! Autonomous transactions: `pg_autonomous(sql)` runs a statement in a second session, which commits
//! while the transaction that asked for it goes on, and stays committed whatever becomes of that one.
//! See `docs/guide/autonomous-transactions.md` for the rules.
//!
//! ```text
//!   outer session:  BEGIN ─ INSERT ─ SELECT pg_autonomous(…) ┐        ┌─ … ─ COMMIT or ROLLBACK
//!   inner session:                                           └ INSERT ┘ its own commit
//! ```
//!
//! The inner session is a [`SessionState`] like any other: own transaction, snapshot, locks, view of the
//! catalog; it lasts for the one call. It runs on the outer one's task, so the outer one waits for it
//! by nature, cancel and time-outs reach it, and its memory is the outer session's. Nothing of it goes
//! to the client but notices: its rows are kept.
//!
//! Since the outer transaction can't go on before the inner one ends, an inner one that waits for a
//! lock of the outer one would wait for ever: the lock manager knows who works for whom
//! ([`txn::TxnManager::new_inner_owner`]) and answers `40P01` at once.

use std::cell::RefCell;
use std::sync::Arc;

use base::{Error, Result, err};
use catalog::OpenDatabase;
use exec::context::{Acting, Guard};
use sql::{Prepared, Statement, Utility};
use txn::LockOwner;
use types::{Datum, io};

use super::SessionState;
use super::settings::SessionSettings;
use crate::connection::{Output, Socket};
use crate::registry::Entry;
use crate::server::Server;

/// How deep autonomous transactions nest.
const NESTING_MAX: u32 = 8;

/// The parts that an inner session takes from the one that it works for.
pub struct Outer<'a> {
    /// The server.
    pub server: &'a Arc<Server>,
    /// As what others see it.
    pub entry: &'a Arc<Entry>,
    /// The client; only notices go there.
    pub socket: &'a Arc<Socket>,
    /// The database.
    pub database: &'a (Arc<str>, u32),
    /// The same as all its sessions share it.
    pub open: &'a Arc<OpenDatabase>,
    /// The outer session's locks.
    pub owner: &'a LockOwner,
    /// How many sessions the outer one works for itself.
    pub nesting: u32,
}

impl Outer<'_> {
    /// Runs one statement and commits. The first column of the first row as text (NULL without a
    /// row), or the command tag of a statement that returns no rows.
    ///
    /// # Errors
    /// The statement's, and those of its commit: then it is rolled back. `54001` nested too deeply;
    /// `42501` within a security-restricted operation.
    pub fn run(
        &self,
        settings: &SessionSettings,
        acting: Acting,
        out: &RefCell<Output>,
        text: &str,
        params: &[Datum],
    ) -> Result<Datum> {
        if acting.guard == Guard::Restricted {
            return Err(err!(
                INSUFFICIENT_PRIVILEGE,
                "cannot run an autonomous transaction within security-restricted operation"
            ));
        }
        if self.nesting == NESTING_MAX {
            return Err(err!(
                STATEMENT_TOO_COMPLEX,
                "autonomous transactions are nested too deeply"
            )
            .detail(format!("At most {NESTING_MAX} may run inside one another.")));
        }
        let before = (self.entry.transaction_start(), self.entry.xmin());
        let types = self.entry.types.seen();
        let mut inner = self.session(settings);
        if acting.role != settings.identity.current.0 {
            let catalog = self.server.engine.catalog.shared().current();
            let role = catalog.role(acting.role).ok_or_else(|| {
                err!(UNDEFINED_OBJECT, "role with OID {} does not exist", acting.role)
            })?;
            inner.settings.become_role((role.oid, role.name.as_str().into()), role.superuser);
        }
        let result = inner.guarded(|s| s.run_autonomous(text, params));
        inner.release();
        if inner.account.pass_on_transaction(&self.server.counters, self.database.1) {
            self.server.autovacuum.wake();
        }
        self.entry.set_transaction_start(before.0);
        self.entry.set_xmin(before.1);
        self.entry.types.restore(types);
        let (notices, durable) = (inner.out.get_mut(), out);
        let mut out = durable.borrow_mut();
        out.buffer.extend_from_slice(&notices.buffer);
        out.complete = out.buffer.len();
        out.need_durable(notices.needed());
        result.map_err(|e| foreign(e, text))
    }

    /// Whether the session is itself one of an autonomous transaction.
    pub(super) fn is_inner(&self) -> bool {
        self.nesting > 0
    }

    fn session(&self, settings: &SessionSettings) -> Box<SessionState> {
        let owner = self.server.engine.txn.new_inner_owner(self.owner);
        let (server, entry, socket) = (self.server, self.entry, self.socket);
        let open = self.open.clone();
        let mut inner =
            SessionState::new(server.clone(), entry.clone(), socket.clone(), owner, open);
        inner.settings = settings.inherited();
        inner.database = self.database.clone();
        inner.nesting = self.nesting + 1;
        Box::new(inner)
    }
}

/// An error of a statement inside another: its position is none in the client's text.
fn foreign(error: Error, text: &str) -> Error {
    error.without_position().context(format!("autonomous transaction \"{text}\""))
}

impl SessionState {
    fn run_autonomous(&mut self, text: &str, params: &[Datum]) -> Result<Datum> {
        let answer = self.run_alone(text, params, check)?;
        match answer.prepared.columns.first() {
            None => Ok(Datum::Text(answer.tag().into())),
            Some(column) => match answer.rows.first().and_then(|row| row.first()) {
                None | Some(Datum::Null) => Ok(Datum::Null),
                Some(value) => {
                    Ok(Datum::Text(io::to_text(column.ty, value, &self.settings.format)?.into()))
                }
            },
        }
    }
}

/// Refuses statements that can't run in a session that lasts for one statement and has no client.
fn check(prepared: &Prepared) -> Result<()> {
    let allowed = match &prepared.statement {
        Statement::Query(_) => true,
        Statement::Empty => false,
        Statement::Utility(utility) if utility.executes().is_some() => false,
        // A statement that commits while it goes on has no place inside another.
        Statement::Utility(utility) if utility.runs_in_steps().is_some() => false,
        Statement::Utility(utility) => matches!(
            utility,
            Utility::CreateTable { .. }
                | Utility::CreateTableAs { .. }
                | Utility::CreateIndex { .. }
                | Utility::CreateSchema { .. }
                | Utility::Reindex(_)
                | Utility::Drop { .. }
                | Utility::AlterTable { .. }
                | Utility::Rename { .. }
                | Utility::Truncate { .. }
                | Utility::Comment(_)
                | Utility::Vacuum { .. }
                | Utility::Checkpoint
        ),
    };
    if allowed {
        return Ok(());
    }
    let what = if prepared.tag.is_empty() { "an empty statement" } else { prepared.tag };
    Err(Error::unsupported(format_args!("{what} in an autonomous transaction")))
}

//! PREPARE TRANSACTION, COMMIT PREPARED, ROLLBACK PREPARED.

use base::{Oid, Result, err};
use txn::PreparedName;

use super::SessionState;
use super::transaction::Block;
use crate::prepared::Held;
use crate::server;

/// `0A000`: what the transaction has done can't be kept for others.
fn refused(what: &str) -> base::Error {
    err!(FEATURE_NOT_SUPPORTED, "cannot PREPARE a transaction that has {what}")
}

impl SessionState {
    /// PREPARE TRANSACTION; returns the command tag.
    pub(super) fn prepare_block(&mut self, gid: &str) -> Result<&'static str> {
        match self.transaction.block {
            Block::None | Block::Implicit | Block::Pipeline => {
                self.warn_no_transaction();
                Ok("ROLLBACK")
            }
            Block::Failed => self.rollback_block(false),
            Block::Explicit => match self.prepare(gid) {
                Ok(()) => Ok("PREPARE TRANSACTION"),
                Err(error) => {
                    self.abort();
                    Err(error)
                }
            },
        }
    }

    fn prepare(&mut self, gid: &str) -> Result<()> {
        self.ensure_transaction();
        if !self.deferred.is_idle() {
            self.fire_deferred()?;
        }
        if !self.portals.to_be_held().is_empty() {
            return Err(refused("created a cursor WITH HOLD"));
        }
        if self.catalog_tx.changed_temporary()
            || self.server.engine.txn.locks.holds_temporary(&self.owner)
        {
            return Err(refused("operated on temporary objects"));
        }
        if !self.server.exports.of(self.entry.pid).is_empty() {
            return Err(refused("exported snapshots"));
        }
        self.server.prepared.reserve(gid)?;
        let name = PreparedName {
            gid: gid.to_owned(),
            at: server::now(),
            role: Oid(self.settings.identity.current.0),
            database: Oid(self.database.1),
        };
        self.give_away(name).inspect_err(|_| self.server.prepared.forget(gid))
    }

    /// Logs the transaction and gives it to whoever ends it. After an error it is still the session's.
    fn give_away(&mut self, name: PreparedName) -> Result<()> {
        self.foreign.before_prepare()?;
        if self.notify.as_ref().is_some_and(|notify| notify.has_actions()) {
            return Err(refused("executed LISTEN, UNLISTEN, or NOTIFY"));
        }
        let txn = self.server.engine.txn.clone();
        if txn.locks.mixes_levels(&self.owner) {
            base::bail!(
                FEATURE_NOT_SUPPORTED,
                "cannot PREPARE while holding both session-level and transaction-level locks on the same object"
            );
        }
        let Some(tx) = &self.transaction.current else {
            return Err(base::Error::internal("no transaction is there to be prepared"));
        };
        let defines = self.catalog_tx.has_work();
        let when = (crate::server::now(), None);
        exec::change_log::committing(&self.server.engine, tx, self.database.1, defines, when);
        let durable = tx.prepare(name.clone(), self.catalog_tx.for_the_log()?)?;
        let owner = txn.new_owner(&self.entry.task, self.entry.pid);
        owner.set_database(Oid(self.database.1));
        txn.locks.move_session_locks(&self.owner, &owner);
        self.owner = owner;
        let catalog_tx = self.catalog_tx.give_away();
        if let Some(tx) = self.transaction.current.take() {
            self.server.prepared.put(name, Held { tx, catalog_tx });
        }
        self.deferred.clear();
        self.large_objects.clear();
        self.portals.commit();
        self.transaction.savepoints.clear();
        self.transaction.block = Block::None;
        self.transaction.deadline = None;
        self.account.end_transaction(true);
        self.catalog_tx.end_temporary(true);
        self.settings.commit();
        self.entry.set_transaction_start(0);
        self.out.get_mut().need_durable(durable);
        Ok(())
    }

    /// COMMIT PREPARED and ROLLBACK PREPARED.
    pub(super) fn finish_prepared(&mut self, gid: &str, words: &str) -> Result<()> {
        self.check_not_failed()?;
        self.prevent_in_block(words)?;
        let commit = words == "COMMIT PREPARED";
        let identity = &self.settings.identity;
        let (role, superuser) = (identity.current.0, identity.superuser);
        let server = self.server.clone();
        let Held { tx, mut catalog_tx } =
            server.prepared.take(gid, role, superuser, self.database.1)?;
        let changed = catalog_tx.has_work();
        if commit {
            // Of one that was prepared before a restart nobody knows whether the log tells of its rows: told always.
            let when = (server::now(), None);
            exec::change_log::committing(&server.engine, &tx, self.database.1, true, when);
        }
        let durable = match commit {
            true => tx.commit_prepared(changed, |csn| catalog_tx.publish(csn))?,
            false => tx.rollback_prepared()?,
        };
        server.prepared.forget(gid);
        self.out.get_mut().need_durable(durable);
        if changed {
            // Files go only after what says so is durable.
            server.engine.storage.wal.flush(durable)?;
            if commit {
                catalog_tx.committed();
            } else {
                catalog_tx.aborted();
            }
        }
        Ok(())
    }
}

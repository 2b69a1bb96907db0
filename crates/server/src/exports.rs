//! Snapshots that transactions have exported (`pg_export_snapshot`), for others to take over
//! (`SET TRANSACTION SNAPSHOT`). An entry lives as long as the transaction that made it; while one is taken
//! over, the table's lock keeps its transaction from ending.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Result, err};
use sched::SpinLock;
use txn::{Isolation, Snapshot, Transaction};

struct Export {
    snapshot: Snapshot,
    database: u32,
    pid: i32,
}

/// See the module's documentation.
#[derive(Default)]
pub struct Exports {
    all: SpinLock<HashMap<String, Export>>,
    /// How many there are, so that most commits need no lock.
    count: AtomicU64,
    made: AtomicU64,
}

impl Exports {
    /// Exports the transaction's snapshot, which it keeps to its end; the name to import it by.
    ///
    /// # Errors
    /// `25001` with a savepoint open.
    pub fn export(&self, tx: &Transaction, database: u32, pid: i32) -> Result<String> {
        if tx.in_savepoint() {
            return Err(err!(
                ACTIVE_SQL_TRANSACTION,
                "cannot export a snapshot from a subtransaction"
            ));
        }
        let snapshot = tx.snapshot();
        tx.pin_snapshot(&snapshot);
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        let name = format!("{pid:08X}-{number:08X}-1");
        let mut all = self.all.lock();
        all.insert(name.clone(), Export { snapshot, database, pid });
        self.count.store(all.len() as u64, Ordering::Release);
        Ok(name)
    }

    /// Gives a transaction an exported snapshot.
    ///
    /// # Errors
    /// `0A000` for isolation levels that can't, and another database's; `22023` for a name that is none.
    pub fn import(&self, name: &str, tx: &Transaction, database: u32) -> Result<()> {
        match tx.isolation() {
            Isolation::RepeatableRead => {}
            Isolation::Serializable => {
                base::bail!(
                    FEATURE_NOT_SUPPORTED,
                    "a serializable transaction cannot import a snapshot from a non-serializable transaction"
                )
            }
            Isolation::ReadCommitted | Isolation::ReadUncommitted => base::bail!(
                FEATURE_NOT_SUPPORTED,
                "a snapshot-importing transaction must have isolation level SERIALIZABLE or REPEATABLE READ"
            ),
        }
        let all = self.all.lock();
        let Some(export) = all.get(name) else {
            base::bail!(INVALID_PARAMETER_VALUE, "invalid snapshot identifier: \"{name}\"");
        };
        if export.database != database {
            base::bail!(
                FEATURE_NOT_SUPPORTED,
                "cannot import a snapshot from a different database"
            );
        }
        tx.adopt_snapshot(&export.snapshot);
        Ok(())
    }

    /// The snapshots that a session's transaction has exported.
    pub fn of(&self, pid: i32) -> Vec<base::Csn> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let all = self.all.lock();
        all.values().filter(|export| export.pid == pid).map(|export| export.snapshot.csn).collect()
    }

    /// A session's transaction ends, and its exports with it.
    pub fn end(&self, pid: i32) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut all = self.all.lock();
        all.retain(|_, export| export.pid != pid);
        self.count.store(all.len() as u64, Ordering::Release);
    }
}

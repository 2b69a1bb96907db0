//! The prepared transactions of the server, by the names that clients gave them (manual: PREPARE TRANSACTION).
//!
//! A name is taken before the transaction is prepared, so that two never have the same; from then on the entry holds
//! the transaction, until somebody takes it to end it. What becomes of them over a restart is [`txn::prepared`]'s.

use std::collections::BTreeMap;

use base::settings::{live_int, setting};
use base::{Result, WaitEvent, err};
use catalog::{Catalog, CatalogTx};
use sched::Mutex;
use txn::{PreparedName, Transaction};

/// Longest name, in bytes.
const GID_MAX: usize = 199;

/// A prepared transaction, for whoever ends it.
pub struct Held {
    /// Its ids, locks and snapshot.
    pub tx: Transaction,
    /// Its changes of the catalog.
    pub catalog_tx: CatalogTx,
}

/// The entry under a name.
struct Entry {
    /// None while it is being prepared.
    name: Option<PreparedName>,
    /// The transaction's id.
    xid: u64,
    /// None while it is being prepared or ended.
    held: Option<Box<Held>>,
}

/// See the module's documentation.
pub struct PreparedTransactions(Mutex<BTreeMap<String, Entry>>);

impl PreparedTransactions {
    /// With those that were prepared before the server started.
    pub fn restored(catalog: &Catalog) -> PreparedTransactions {
        let none = Mutex::new(WaitEvent::LWLockTwoPhaseState, BTreeMap::new());
        let all = PreparedTransactions(none);
        all.restore(catalog);
        all
    }

    /// Takes those over that the catalog has found.
    pub fn restore(&self, catalog: &Catalog) {
        let entry = |one: catalog::Restored| {
            let held = Held { tx: one.tx, catalog_tx: one.catalog_tx };
            let name = one.prepared.name.clone();
            let xid = one.prepared.top().0;
            (name.gid.clone(), Entry { name: Some(name), xid, held: Some(Box::new(held)) })
        };
        self.0.lock().extend(catalog.take_restored().into_iter().map(entry));
    }

    /// Takes a name.
    ///
    /// # Errors
    /// `22023` for one that is too long, `55000` when none may be prepared, `42710` for one that is in use,
    /// `53200` when there are as many as there may be.
    pub fn reserve(&self, gid: &str) -> Result<()> {
        if gid.len() > GID_MAX {
            base::bail!(INVALID_PARAMETER_VALUE, "transaction identifier \"{gid}\" is too long");
        }
        let most = live_int(setting::MAX_PREPARED_TRANSACTIONS);
        if most == 0 {
            return Err(err!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "prepared transactions are disabled"
            )
            .hint("Set max_prepared_transactions to a nonzero value."));
        }
        let mut all = self.0.lock();
        if all.contains_key(gid) {
            base::bail!(DUPLICATE_OBJECT, "transaction identifier \"{gid}\" is already in use");
        }
        if all.len() as i64 >= most {
            return Err(err!(OUT_OF_MEMORY, "maximum number of prepared transactions reached")
                .hint(format!("Increase max_prepared_transactions (currently {most}).")));
        }
        all.insert(gid.to_owned(), Entry { name: None, xid: 0, held: None });
        Ok(())
    }

    /// Gives a name back: nothing was prepared, or the transaction has ended.
    pub fn forget(&self, gid: &str) {
        self.0.lock().remove(gid);
    }

    /// The transaction whose name was taken is prepared, or could not be ended.
    pub fn put(&self, name: PreparedName, held: Held) {
        let xid = held.tx.top_xid().unwrap_or_default().0;
        let gid = name.gid.clone();
        let entry = Entry { name: Some(name), xid, held: Some(Box::new(held)) };
        self.0.lock().insert(gid, entry);
    }

    /// Takes a transaction to end it: [`PreparedTransactions::forget`] it then.
    ///
    /// # Errors
    /// `42704` when there is none of the name, `55000` when somebody else ends it, `42501` for another role than its
    /// own and superusers, `0A000` from another database.
    pub fn take(&self, gid: &str, role: u32, superuser: bool, database: u32) -> Result<Held> {
        let mut all = self.0.lock();
        let known = all.get_mut(gid).and_then(|e| e.name.as_ref().map(|name| (name, &mut e.held)));
        let Some((name, held)) = known else {
            base::bail!(
                UNDEFINED_OBJECT,
                "prepared transaction with identifier \"{gid}\" does not exist"
            );
        };
        if held.is_none() {
            base::bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "prepared transaction with identifier \"{gid}\" is busy"
            );
        }
        if name.role.0 != role && !superuser {
            return Err(err!(
                INSUFFICIENT_PRIVILEGE,
                "permission denied to finish prepared transaction"
            )
            .hint("Must be superuser or the user that prepared the transaction."));
        }
        if name.database.0 != database {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "prepared transaction belongs to another database"
            )
            .hint("Connect to the database where the transaction was prepared to finish it."));
        }
        match held.take() {
            Some(held) => Ok(*held),
            None => Err(base::Error::internal("a prepared transaction is gone")),
        }
    }

    /// A row for each, by its transaction id and name.
    pub(crate) fn each<T>(&self, row: impl Fn(u64, &PreparedName) -> T) -> Vec<T> {
        let all = self.0.lock();
        all.values().filter_map(|e| e.name.as_ref().map(|name| row(e.xid, name))).collect()
    }
}

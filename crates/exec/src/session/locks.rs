//! Advisory locks.

use base::{Error, Oid, Result};
use txn::{LockMode, LockTag, LockWait};
use types::Datum;
use types::func::SessionFunction as F;

use crate::run::Run;
use crate::session::args::{int_at, text};

/// `pg_advisory_lock` and its family, told apart by the parts of their names.
pub fn call(function: F, args: &[Datum], run: &mut Run<'_, '_>) -> Result<Option<Datum>> {
    let mode = match function {
        F::PgAdvisoryLockShared
        | F::PgAdvisoryXactLockShared
        | F::PgTryAdvisoryLockShared
        | F::PgTryAdvisoryXactLockShared
        | F::PgAdvisoryUnlockShared => LockMode::Share,
        _ => LockMode::Exclusive,
    };
    let wait = match function {
        F::PgTryAdvisoryLock
        | F::PgTryAdvisoryLockShared
        | F::PgTryAdvisoryXactLock
        | F::PgTryAdvisoryXactLockShared => LockWait::Try,
        _ => LockWait::Block,
    };
    let cx = &*run.cx;
    let (locks, owner) = (&cx.tx.manager().locks, cx.tx.locks());
    if function == F::PgAdvisoryUnlockAll {
        locks.unlock_session_all(owner);
        return Ok(Some(text("")));
    }
    let database = Oid(cx.database.1);
    let tag = match args.len() {
        1 => LockTag::Advisory(database, int_at(args, 0)),
        _ => LockTag::Advisory2(database, int_at(args, 0) as i32, int_at(args, 1) as i32),
    };
    if matches!(function, F::PgAdvisoryUnlock | F::PgAdvisoryUnlockShared) {
        let held = locks.unlock_session(owner, tag, mode);
        if !held {
            let kind = if mode == LockMode::Share { "ShareLock" } else { "ExclusiveLock" };
            let warning =
                Error::new(base::sqlstate::WARNING, format!("you don't own a lock of type {kind}"));
            run.cx.hooks.notice("WARNING", warning);
        }
        return Ok(Some(Datum::Bool(held)));
    }
    let got = match function {
        F::PgAdvisoryXactLock
        | F::PgAdvisoryXactLockShared
        | F::PgTryAdvisoryXactLock
        | F::PgTryAdvisoryXactLockShared => locks.lock(owner, tag, mode, wait)?,
        _ => locks.lock_session(owner, tag, mode, wait)?,
    };
    Ok(Some(match wait {
        LockWait::Try => Datum::Bool(got),
        LockWait::Block => text(""),
    }))
}

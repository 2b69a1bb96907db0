//! Advisory locks.

use base::{Error, Oid, Result};
use txn::{LockMode, LockTag, LockWait};
use types::Datum;

use super::{int_at, text};
use crate::run::Run;

/// `pg_advisory_lock` and its family, told apart by the parts of their names.
pub fn call(name: &str, args: &[Datum], run: &mut Run<'_, '_>) -> Result<Option<Datum>> {
    let (rest, wait) = match name.strip_prefix("pg_try_advisory_") {
        Some(rest) => (rest, LockWait::Try),
        None => match name.strip_prefix("pg_advisory_") {
            Some(rest) => (rest, LockWait::Block),
            None => return Ok(None),
        },
    };
    let cx = &*run.cx;
    let (locks, owner) = (&cx.tx.manager().locks, cx.tx.locks());
    if rest == "unlock_all" {
        locks.unlock_session_all(owner);
        return Ok(Some(text("")));
    }
    let database = Oid(cx.database.1);
    let tag = match args.len() {
        1 => LockTag::Advisory(database, int_at(args, 0)),
        _ => LockTag::Advisory2(database, int_at(args, 0) as i32, int_at(args, 1) as i32),
    };
    let mode = if rest.ends_with("_shared") { LockMode::Share } else { LockMode::Exclusive };
    if rest.starts_with("unlock") {
        let held = locks.unlock_session(owner, tag, mode);
        if !held {
            let kind = if mode == LockMode::Share { "ShareLock" } else { "ExclusiveLock" };
            let warning =
                Error::new(base::sqlstate::WARNING, format!("you don't own a lock of type {kind}"));
            run.cx.hooks.notice("WARNING", warning);
        }
        return Ok(Some(Datum::Bool(held)));
    }
    let got = if rest.starts_with("xact_") {
        locks.lock(owner, tag, mode, wait)?
    } else {
        locks.lock_session(owner, tag, mode, wait)?
    };
    Ok(Some(match wait {
        LockWait::Try => Datum::Bool(got),
        LockWait::Block => text(""),
    }))
}

//! Cutting empty pages off the end of a table's file, after VACUUM.
//!
//! It needs the table exclusively, for a moment, and nobody shall wait for that: the lock is only tried for, again and
//! again for some seconds, and given back as soon as somebody else waits for the table. The rest is then cut at the next
//! try, if it comes to one (as in PostgreSQL). Why the cut itself is safe: [`access::vacuum::truncate`].

use std::time::{Duration, Instant};

use access::{Heap, vacuum};
use base::{Oid, Result, WaitEvent};
use catalog::Table;
use exec::context::ExecContext;
use txn::{LockMode, LockTag, LockWait};

use super::tell;

/// For how long the lock is tried for, and how often.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);

/// Cuts the file of a table, or of its large values, if that is worth it; `least` pages stay.
pub(super) fn truncate(
    cx: &mut ExecContext<'_>,
    table: &Table,
    heap: &Heap,
    least: u32,
    speaks: bool,
) -> Result<()> {
    while vacuum::is_worth_truncating(heap, least)? {
        let Some(lock) = Exclusively::lock(cx, table)? else {
            let message = "stopping truncate due to conflicting lock request";
            tell(cx, speaks, format!("\"{}\": {message}", table.name));
            return Ok(());
        };
        let before = heap.pages()?;
        let (cut, gave_way) = vacuum::truncate(heap, least, &|| lock.is_waited_for())?;
        drop(lock);
        if cut > 0 {
            let after = before - cut;
            tell(
                cx,
                speaks,
                format!("table \"{}\": truncated {before} to {after} pages", table.name),
            );
        }
        if !gave_way {
            break;
        }
        tell(
            cx,
            speaks,
            format!(
                "table \"{}\": suspending truncate due to conflicting lock request",
                table.name
            ),
        );
    }
    Ok(())
}

/// AccessExclusive on a table, on top of VACUUM's own lock.
struct Exclusively<'a> {
    tx: &'a txn::Transaction,
    tag: LockTag,
}

impl<'a> Exclusively<'a> {
    fn lock(cx: &ExecContext<'a>, table: &Table) -> Result<Option<Exclusively<'a>>> {
        let tx = cx.tx;
        let tag = LockTag::Relation(Oid(cx.database.1), Oid(table.oid));
        let until = Instant::now() + PATIENCE;
        let locks = &tx.manager().locks;
        while !locks.lock(tx.locks(), tag, LockMode::AccessExclusive, LockWait::Try)? {
            let now = Instant::now();
            if now >= until {
                return Ok(None);
            }
            sched::park(WaitEvent::TimeoutVacuumTruncate, Some(until.min(now + PAUSE)));
            sched::check_interrupts()?;
        }
        Ok(Some(Exclusively { tx, tag }))
    }

    fn is_waited_for(&self) -> bool {
        self.tx.manager().locks.has_waiters(self.tag)
    }
}

impl Drop for Exclusively<'_> {
    fn drop(&mut self) {
        self.tx.manager().locks.unlock(self.tx.locks(), self.tag, LockMode::AccessExclusive);
    }
}

//! Waiting for a lock or for a transaction's end: the only place in this crate where a session parks
//! for another.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};

use base::faults::{self, Fault};
use base::{Error, Result, Xid, err};
use sched::{LongWait, Waiting, Wake};

use super::deadlock::Verdict;
use super::{LockManager, LockMode, LockOwner, LockTag, LockWait};
use crate::commit_log::XidState;
use crate::lock::wait_info::WaitInfo;

#[cold]
fn panicked() -> Error {
    Error::internal("internal error; the log has the details")
}

impl LockManager {
    /// Waits until the transaction has ended (queued, deadlock-checked). False only with
    /// [`LockWait::Try`]. Who waits for a subtransaction waits for its rollback or for the end of the
    /// transaction around it.
    ///
    /// # Errors
    /// `40P01` deadlock; `55P03` lock_timeout; interrupts; `XX000` for one's own transaction.
    pub fn wait_for_xid(&self, owner: &LockOwner, xid: Xid, wait: LockWait) -> Result<bool> {
        match self.core.state(xid) {
            state if state.ended() => return Ok(true),
            XidState::Running(other) if other == owner.number() => {
                return Err(Error::internal(format!(
                    "transaction {} would wait for itself",
                    xid.0
                )));
            }
            XidState::Unassigned if xid >= self.core.next_xid() => return Ok(true),
            _ => {}
        }
        if wait == LockWait::Try {
            return Ok(false);
        }
        let task = sched::current();
        self.core.waiters.add(xid, &task);
        let done = || self.core.commits.get(xid).ended();
        let result = self.wait_until(owner, LockTag::Xid(xid), LockMode::Share, false, &done);
        self.core.waiters.remove(xid, &task);
        result.map(|()| true)
    }

    /// Parks until `done`. The caller has registered the running task where its waker looks. With
    /// `doomed` the deadlock check comes at once.
    pub(super) fn wait_until(
        &self,
        owner: &LockOwner,
        tag: LockTag,
        mode: LockMode,
        doomed: bool,
        done: &dyn Fn() -> bool,
    ) -> Result<()> {
        let serial = self.wait_serial.fetch_add(1, Ordering::Relaxed);
        let info = WaitInfo { tag, mode, since: SystemTime::now(), serial };
        *owner.slot().waiting.lock() = Some(info);
        // A panic becomes the wait's error, so that callers give up their places in queues as after any
        // other: they can't while it unwinds, since that may have to wait for a latch.
        let wait = || {
            faults::reach(Fault::LockWait)?;
            self.park_until(owner, info, doomed, done)
        };
        let result = catch_unwind(AssertUnwindSafe(wait)).unwrap_or_else(|_| Err(panicked()));
        *owner.slot().waiting.lock() = None;
        result
    }

    fn park_until(
        &self,
        owner: &LockOwner,
        info: WaitInfo,
        doomed: bool,
        done: &dyn Fn() -> bool,
    ) -> Result<()> {
        let (began, checks) = (Instant::now(), self.checks.begun());
        let give_up = owner.lock_timeout().map(|timeout| began + timeout);
        let patience = owner.deadlock_timeout();
        let at_once = doomed || owner.is_inner();
        let mut check = Some(if at_once { began } else { began + patience });
        let logs = owner.log_lock_waits.load(Ordering::Relaxed);
        let mut logged = false;
        let mut wait = LongWait::new(Waiting::on(info.tag.wait_event(), info.tag.wait_object()));
        loop {
            // Before the look at the condition: it may wait for a latch, and that would use up the
            // wake-up that comes after the look.
            let blocker = self.blocking_task(info.tag, owner.number(), info.mode);
            if done() {
                if logged {
                    self.log_wait(owner, info, "acquired", began);
                }
                return Ok(());
            }
            let deadline = [give_up, check].into_iter().flatten().min();
            match wait.park(blocker, deadline) {
                Wake::Unparked => continue,
                Wake::Interrupted => sched::check_interrupts()?,
                Wake::TimedOut => {}
            }
            let now = Instant::now();
            if done() {
                if logged {
                    self.log_wait(owner, info, "acquired", began);
                }
                return Ok(());
            }
            if give_up.is_some_and(|at| now >= at) {
                return Err(err!(LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout"));
            }
            if check.is_some_and(|at| now >= at) {
                let verdict = match self.is_cleared(checks) {
                    true => Verdict::None,
                    false => self.check_deadlock(owner),
                };
                let what = match &verdict {
                    Verdict::Deadlock(_) => "detected deadlock while waiting for",
                    Verdict::Resolved => "avoided deadlock for",
                    Verdict::None | Verdict::Unsure => "still waiting for",
                };
                if logs && !matches!(verdict, Verdict::Unsure) {
                    self.log_wait(owner, info, what, began);
                    logged = true;
                }
                check = match verdict {
                    Verdict::Deadlock(error) => return Err(error),
                    Verdict::Unsure => Some(Instant::now() + patience),
                    Verdict::None if now < began + patience => Some(began + patience),
                    Verdict::None | Verdict::Resolved => None,
                };
            }
        }
    }

    /// A line about a long wait, as PostgreSQL writes it.
    #[cold]
    fn log_wait(&self, owner: &LockOwner, info: WaitInfo, what: &str, began: Instant) {
        let Some(log) = self.log.get() else { return };
        let (pid, mode) = (owner.pid(), info.mode.name());
        let object = info.tag.describe(owner.database());
        let ms = began.elapsed().as_secs_f64() * 1e3;
        let tail = match what {
            "avoided deadlock for" => " by rearranging queue order",
            _ => "",
        };
        let message = format!("process {pid} {what} {mode} on {object}{tail} after {ms:.3} ms");
        if what == "acquired" {
            return log(pid, &message, None);
        }
        let (holders, queue) = self.around(info.tag, owner.number(), info.mode);
        let list = |pids: Vec<i32>| pids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
        let word = if holders.len() == 1 { "Process" } else { "Processes" };
        let (holders, queue) = (list(holders), list(queue));
        log(
            pid,
            &message,
            Some(&format!("{word} holding the lock: {holders}. Wait queue: {queue}.")),
        );
    }
}

//! Waits that are not over yet, as who reads sums and traces counts them.
//!
//! The waiter does nothing for it: its slot says for what it waits and since when. A wait's end first
//! clears the slot and then puts the wait down, so a wait that a slot still shows after the sums were read is not in
//! them and is never counted twice. A wait that ends while the sums are read may be in neither; the sums are read
//! again when it was a long one.

use std::sync::atomic::{AtomicU64, Ordering};

use base::settings::setting;

use super::{WaitRecord, is_idle, task_by_id};
use crate::clock::{now_ns, to_ns};
use crate::task::{Task, TaskRef};

/// Waits that had lasted so long before the sums were read must not get lost.
const LONG_NS: u64 = 100_000_000;
/// Times that the sums are read at most.
const READS_MAX: usize = 3;

/// When the sums were last reset: only what was waited after it counts.
static RESET_NS: AtomicU64 = AtomicU64::new(0);

/// All sums are reset now.
pub(super) fn reset() {
    RESET_NS.store(now_ns(), Ordering::Relaxed);
}

/// The part of a wait that lies after the last reset.
pub(super) fn since_reset(began_ns: u64, duration_ns: u64) -> u64 {
    after(RESET_NS.load(Ordering::Relaxed), began_ns, duration_ns)
}

/// The part of a wait that lies after `from_ns`.
fn after(from_ns: u64, began_ns: u64, duration_ns: u64) -> u64 {
    duration_ns.saturating_sub(from_ns.saturating_sub(began_ns))
}

/// The wait of a task, as if it ended now; None: the task doesn't wait, or no clock was read.
pub(super) fn of_task(task: &Task) -> Option<WaitRecord> {
    // The statement is read between two looks at one wait.
    let (waiting, began) = task.waiting()?;
    let statement = if is_idle(waiting.event) { 0 } else { task.statement() };
    if task.waiting()?.1 != began {
        return None;
    }
    let began_ns = to_ns(began);
    if began_ns == 0 {
        return None;
    }
    let blocker = if waiting.blocker == 0 { None } else { task_by_id(waiting.blocker) };
    Some(WaitRecord {
        task: task.id(),
        pid: task.pid(),
        event: waiting.event,
        object: waiting.object,
        blocker: waiting.blocker,
        blocker_pid: blocker.map_or(0, |blocker| blocker.pid()),
        statement,
        began_ns,
        duration_ns: now_ns().saturating_sub(began_ns),
    })
}

/// The finished waits that `read` returns, and the waits of these tasks that are in none of it.
pub(super) fn beside<T>(tasks: &[TaskRef], read: impl Fn() -> T) -> (T, Vec<WaitRecord>) {
    if !base::settings::live_bool(setting::TRACK_WAIT_TIMING) {
        return (read(), Vec::new());
    }
    let all = || -> Vec<WaitRecord> { tasks.iter().filter_map(|t| of_task(t)).collect() };
    let mut before = all();
    let mut reads = 1;
    loop {
        before.retain(|wait| wait.duration_ns >= LONG_NS);
        let sums = read();
        let after = all();
        // Both are in the order of the tasks.
        let mut left = after.iter();
        let is_there = |long: &WaitRecord| {
            left.by_ref()
                .find(|wait| wait.task >= long.task)
                .is_some_and(|wait| (wait.task, wait.began_ns) == (long.task, long.began_ns))
        };
        if reads == READS_MAX || before.iter().all(is_there) {
            return (sums, after);
        }
        reads += 1;
        before = after;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use base::WaitEvent;

    use super::super::{WaitSums, profile};
    use super::*;
    use crate::task::{park, spawn_task};

    fn sums_of(pid: i32) -> WaitSums {
        let mut sums = WaitSums::default();
        let of_pid = |row: &super::super::ProfileRow| row.key.is_some_and(|key| key.pid == pid);
        profile().iter().filter(|row| of_pid(row)).for_each(|row| sums.merge(&row.sums));
        sums
    }

    #[test]
    fn a_wait_counts_while_it_lasts_and_once_when_it_is_over() {
        let task = Task::new("test");
        task.set_pid(-780);
        task.set_statement(4711);
        let (waiter, (told, tell)) = (task.clone(), mpsc::channel());
        let thread = spawn_task(task, move || {
            park(WaitEvent::ExtensionExtension, None);
            told.send(()).unwrap();
            park(WaitEvent::IPCTaskJoin, None);
        });
        while waiter.waiting().is_none() {
            std::thread::yield_now();
        }
        let (first, second) = (sums_of(-780), sums_of(-780));
        assert_eq!((first.count, second.count), (1, 1));
        assert!(second.total_ns > first.total_ns && second.longest_ns == second.total_ns);
        let key = profile().into_iter().filter_map(|r| r.key).find(|key| key.pid == -780).unwrap();
        assert_eq!((key.statement, key.event), (4711, WaitEvent::ExtensionExtension));
        waiter.unpark();
        tell.recv().unwrap();
        while waiter.waiting().is_none() {
            std::thread::yield_now();
        }
        let both = sums_of(-780);
        assert_eq!(both.count, 2);
        assert!(both.total_ns > second.total_ns);
        waiter.unpark();
        thread.join().unwrap();
        assert_eq!(sums_of(-780).count, 2);
    }

    #[test]
    fn only_what_was_waited_after_a_reset_counts() {
        assert_eq!([after(100, 50, 55), after(100, 50, 20), after(100, 150, 7)], [5, 0, 7]);
    }
}

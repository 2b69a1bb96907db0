//! Threads that work for the server beside its sessions: started, woken and ended in one way.
//!
//! A panic ends such a thread's work of the moment, not the thread: it is logged with its stack (by the
//! panic hook), what the work held is given back by unwinding, and after a pause the work begins anew.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::WaitEvent;
use sched::{SpinLock, TaskRef, Wake};

use crate::log;
use crate::server::Server;

/// After a panic.
const PAUSE: Duration = Duration::from_secs(1);

/// One of these threads, or its place before it has started and after it has ended.
pub struct Background {
    kind: &'static str,
    thread: SpinLock<Option<(TaskRef, JoinHandle<()>)>>,
    told: AtomicBool,
}

impl Background {
    /// A place for a thread with this `backend_type`.
    pub const fn new(kind: &'static str) -> Background {
        Background { kind, thread: SpinLock::new(None), told: AtomicBool::new(false) }
    }

    /// Starts the thread. `work` returns when [`sched::check_interrupts`] tells it to end.
    pub fn start(&self, server: &Arc<Server>, work: fn(&Arc<Server>)) {
        let task = sched::Task::new(self.kind);
        let (shared, kind) = (server.clone(), self.kind);
        let thread = sched::spawn_task(task.clone(), move || {
            while catch_unwind(AssertUnwindSafe(|| work(&shared))).is_err() {
                log::info(format_args!("{kind} begins anew"));
                sched::park(WaitEvent::ActivityThreadMain, Some(Instant::now() + PAUSE));
                if sched::check_interrupts().is_err() {
                    return;
                }
            }
        });
        *self.thread.lock() = Some((task, thread));
    }

    /// The thread itself waits until there is something to do, for an interrupt or until then. What was
    /// said since the last time counts, also when a wait for a lock has used up its wake-up.
    pub fn await_work(&self, event: WaitEvent, until: Option<Instant>) -> Wake {
        while !self.told.swap(false, Ordering::AcqRel) {
            match sched::park(event, until) {
                Wake::Unparked => {}
                ended => return ended,
            }
        }
        Wake::Unparked
    }

    /// There is something to do.
    pub fn wake(&self) {
        self.told.store(true, Ordering::Release);
        if let Some((task, _)) = &*self.thread.lock() {
            task.unpark();
        }
    }

    /// Ends the thread and waits for it.
    pub fn stop(&self) {
        let thread = self.thread.lock().take();
        if let Some((task, thread)) = thread {
            task.interrupt(sched::Interrupt::Terminate);
            // It can't have panicked: its work is caught.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_not_slept_through_when_its_wake_up_was_used_up() {
        let place = Arc::new(Background::new("test"));
        let task = sched::Task::new("test");
        let (seen, saw) = std::sync::mpsc::channel();
        let sleeper = place.clone();
        let thread = sched::spawn_task(task.clone(), move || {
            // As a wait for a lock does, which it then goes on with.
            sched::park_uninterruptible(WaitEvent::LWLockOther, None);
            let until = Instant::now() + Duration::from_secs(60);
            let wake = sleeper.await_work(WaitEvent::ActivityThreadMain, Some(until));
            seen.send(wake).unwrap();
        });
        *place.thread.lock() = Some((task, thread));
        place.wake();
        assert_eq!(saw.recv().unwrap(), Wake::Unparked);
        place.stop();
    }
}

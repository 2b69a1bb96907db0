//! Threads that work for the server beside its sessions: started, woken and ended in one way.
//!
//! A panic ends such a thread's work of the moment, not the thread: it is logged with its stack (by the
//! panic hook), what the work held is given back by unwinding, and after a pause the work begins anew.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::WaitEvent;
use sched::{SpinLock, TaskRef};

use crate::log;
use crate::server::Server;

/// After a panic.
const PAUSE: Duration = Duration::from_secs(1);

/// One of these threads, or its place before it has started and after it has ended.
pub struct Background {
    kind: &'static str,
    thread: SpinLock<Option<(TaskRef, JoinHandle<()>)>>,
}

impl Background {
    /// A place for a thread with this `backend_type`.
    pub const fn new(kind: &'static str) -> Background {
        Background { kind, thread: SpinLock::new(None) }
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

    /// There is something to do.
    pub fn wake(&self) {
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

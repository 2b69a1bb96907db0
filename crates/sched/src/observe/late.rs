//! Waits that a thread records later than they end.
//!
//! Who makes others' work durable is waited for by them, and what it records of a wait meanwhile costs them as much
//! time as it takes. Such a thread keeps its finished waits until it has let the others go on. No worker
//! does so: its sessions' waits are recorded when they end. Nothing is lost but at a crash, and of a thread that
//! keeps records nobody else reads the list.

use std::cell::RefCell;
use std::ptr;

use super::{WaitRecord, finished};
use crate::local::local;

/// More are not kept.
const MOST: usize = 32;

/// While it lives, the calling thread's waits are recorded when it says so ([`record_late_waits`]), at the
/// latest when there are 32 of them; the rest when it goes.
pub struct LateRecords(Box<Late>);

/// What [`crate::local::Local`] points to.
pub(crate) struct Late(RefCell<Vec<WaitRecord>>);

impl LateRecords {
    /// From now on.
    #[must_use]
    pub fn begin() -> LateRecords {
        let late = Box::new(Late(RefCell::new(Vec::with_capacity(MOST))));
        local().late.set(&raw const *late);
        LateRecords(late)
    }
}

impl Drop for LateRecords {
    fn drop(&mut self) {
        local().late.set(ptr::null());
        self.0.record();
    }
}

impl Late {
    fn record(&self) {
        // Taken out: should recording have to wait itself, that wait is kept for the next time.
        let mut records = self.0.take();
        records.iter_mut().for_each(finished);
        records.clear();
        if self.0.borrow().is_empty() {
            self.0.replace(records); // with its memory
        }
    }

    /// A wait of the thread is over.
    pub fn keep(&self, record: WaitRecord) {
        let full = {
            let mut records = self.0.borrow_mut();
            records.push(record);
            records.len() >= MOST
        };
        if full {
            self.record();
        }
    }
}

/// Records what the calling thread has kept; see [`LateRecords`].
pub fn record_late_waits() {
    // SAFETY: the pointer is cleared before what it points to goes.
    if let Some(late) = unsafe { local().late.get().as_ref() } {
        late.record();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use base::WaitEvent;

    use super::*;
    use crate::observe::{HistoryCursor, history_since};

    #[test]
    fn a_wait_is_recorded_when_the_thread_says_so() {
        let waits = || {
            let all = history_since(&mut HistoryCursor::default(), true);
            let me = crate::with_current(|task| task.id());
            all.iter().filter(|r| r.task == me).count()
        };
        let wait = || {
            crate::park(WaitEvent::TimeoutPgSleep, Some(Instant::now()));
        };
        wait();
        let before = waits();
        let late = LateRecords::begin();
        wait();
        wait();
        assert_eq!(waits(), before);
        record_late_waits();
        assert_eq!(waits(), before + 2);
        wait();
        drop(late);
        assert_eq!(waits(), before + 3);
        wait();
        assert_eq!(waits(), before + 4);
    }
}

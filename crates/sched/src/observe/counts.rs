//! Acquisitions of latches by tranche, counted by thread: counting must not make a cache line hot
//! that the latch itself doesn't. Each thread writes a block of its own, and a reader adds them up.
//! A thread that ends leaves its block, counts and all, to the next one.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use base::WaitEvent;
use base::waits::WAITS;

use crate::local::{Local, local};
use crate::spin::SpinLock;

/// One thread's counts by wait event; only that thread writes.
#[repr(align(128))]
pub(crate) struct Block([AtomicU64; WAITS.len()]);

/// Every block there ever was, and those that no thread has now.
struct Blocks {
    all: Vec<&'static Block>,
    free: Vec<&'static Block>,
}

static BLOCKS: SpinLock<Blocks> = SpinLock::new(Blocks { all: Vec::new(), free: Vec::new() });

thread_local! {
    static OWN: Own = const { Own(Cell::new(None)) };
}

/// Gives the thread's block back when the thread ends.
struct Own(Cell<Option<&'static Block>>);

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(block) = self.0.take() {
            local().counts.set(std::ptr::null());
            BLOCKS.lock().free.push(block);
        }
    }
}

/// The running thread took a latch of this tranche (the wait event's number).
#[inline]
pub(crate) fn count_acquisition(local: &Local, tranche: usize) {
    // SAFETY: blocks are never freed.
    let block = unsafe { local.counts.get().as_ref() };
    if let Some(cell) = block.unwrap_or_else(|| attach(local)).0.get(tranche) {
        cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

#[cold]
fn attach(local: &Local) -> &'static Block {
    let used = BLOCKS.lock().free.pop();
    let block = used.unwrap_or_else(|| {
        let block: &'static Block = Box::leak(Box::new(Block([const { AtomicU64::new(0) }; _])));
        BLOCKS.lock().all.push(block);
        block
    });
    local.counts.set(block);
    // A thread that is ending has no OWN any more: its block is then not used again.
    let _ = OWN.try_with(|own| own.0.set(Some(block)));
    block
}

/// How often latches of this tranche were taken since the start, by anybody.
pub fn lwlock_acquisitions(tranche: WaitEvent) -> u64 {
    let blocks = BLOCKS.lock().all.clone();
    blocks.iter().map(|block| block.0[tranche as usize].load(Ordering::Relaxed)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_outlive_their_thread() {
        let event = WaitEvent::LWLockStatistics;
        let before = lwlock_acquisitions(event);
        for _ in 0..3 {
            let count = move || (0..100).for_each(|_| count_acquisition(local(), event as usize));
            std::thread::spawn(count).join().unwrap();
        }
        assert_eq!(lwlock_acquisitions(event) - before, 300);
    }
}

//! Buffers that mini-transactions use again: a few for each thread, so that none is allocated on
//! the hot path.

use std::cell::RefCell;

use crate::buffer::WriteGuard;
use crate::wal::record::HEADER;

/// Buffers larger than this are not kept.
const KEEP_BYTES: usize = 256 * 1024;
const KEEP: usize = 16;

thread_local! {
    // Boxed, so that a mini-transaction carries one word of it.
    #[allow(clippy::vec_box)]
    static SPARE: RefCell<Vec<Box<Scratch>>> = const { RefCell::new(Vec::new()) };
}

/// The buffers that one mini-transaction (or append) writes into.
pub(crate) struct Scratch {
    /// The record: space for its header, then the operations.
    pub record: Vec<u8>,
    /// The record once more, when some page's operations give way to its image.
    pub with_images: Vec<u8>,
    /// Payloads, with code and length.
    pub payload: Vec<u8>,
    /// The pages.
    pub pages: Vec<Slot>,
}

/// A page in a mini-transaction.
pub(crate) struct Slot {
    /// None once it was given back.
    pub guard: Option<WriteGuard>,
    /// Something was changed.
    pub changed: bool,
    /// The record's flags for it.
    pub flags: u8,
}

// Neither function is inlined, and neither parks: a task that moved to another thread would still
// find that thread's buffers.
impl Scratch {
    #[inline(never)]
    pub(crate) fn take() -> Box<Scratch> {
        let spare = SPARE.with(|s| s.borrow_mut().pop());
        spare.unwrap_or_else(|| {
            Box::new(Scratch {
                record: vec![0; HEADER],
                with_images: Vec::new(),
                payload: Vec::new(),
                pages: Vec::new(),
            })
        })
    }

    #[inline(never)]
    pub(crate) fn give_back(mut self: Box<Self>) {
        self.pages.clear();
        self.payload.clear();
        self.with_images.clear();
        self.record.truncate(HEADER);
        let bytes = self.record.capacity() + self.with_images.capacity() + self.payload.capacity();
        SPARE.with(|s| {
            let mut spare = s.borrow_mut();
            if spare.len() < KEEP && bytes <= KEEP_BYTES {
                spare.push(self);
            }
        });
    }
}

//! Pieces of a table, handed out to the threads that scan it together.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use base::Result;

/// Pages of a piece.
const PIECE_PAGES: u32 = 32;

/// Pieces before the scan began.
const UNKNOWN: u32 = u32::MAX;

/// A scan's pages, of which whoever has time takes the next ones.
#[derive(Debug)]
struct Pages {
    next: AtomicU32,
    /// [`UNKNOWN`] before the first has asked.
    end: AtomicU32,
}

/// One thread's access to the pieces of a scan.
#[derive(Clone, Debug)]
pub struct Pieces {
    pages: Arc<Pages>,
    /// This thread takes no further ones.
    stopped: Arc<AtomicBool>,
    /// It ends when sessions wait for workers.
    gives_way: bool,
}

impl Pieces {
    /// All pages of a table that is yet to be read.
    pub fn new() -> Pieces {
        let pages = Pages { next: AtomicU32::new(0), end: AtomicU32::new(UNKNOWN) };
        Pieces { pages: Arc::new(pages), stopped: Arc::default(), gives_way: false }
    }

    /// The same scan's pieces, for a helper.
    pub fn for_helper(&self) -> Pieces {
        Pieces { pages: self.pages.clone(), stopped: Arc::default(), gives_way: true }
    }

    /// The next pages to read; `count` tells how many the table has.
    ///
    /// # Errors
    /// The function's.
    pub fn take(&self, count: impl FnOnce() -> Result<u32>) -> Result<Option<Range<u32>>> {
        if self.stopped.load(Ordering::Relaxed)
            || (self.gives_way && sched::helpers::should_yield())
        {
            return Ok(None);
        }
        if self.pages.end.load(Ordering::Acquire) == UNKNOWN {
            // The first count decides.
            let count = count()?.min(UNKNOWN - 1);
            let _ = self.pages.end.compare_exchange(
                UNKNOWN,
                count,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
        }
        let end = self.pages.end.load(Ordering::Acquire);
        let take = |next: u32| (next < end).then(|| end.min(next.saturating_add(PIECE_PAGES)));
        Ok(match self.pages.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(from) => Some(from..end.min(from.saturating_add(PIECE_PAGES))),
            Err(_) => None,
        })
    }

    /// This thread takes no pieces any more, or (false) does again.
    pub fn stop(&self, stopped: bool) {
        self.stopped.store(stopped, Ordering::Relaxed);
    }

    /// Nobody takes any: the statement fails.
    pub fn close(&self) {
        self.pages.next.store(u32::MAX, Ordering::Relaxed);
    }

    /// The scan begins again.
    pub fn rewind(&self) {
        self.pages.end.store(UNKNOWN, Ordering::Release);
        self.pages.next.store(0, Ordering::Release);
        self.stop(false);
    }
}

impl Default for Pieces {
    fn default() -> Pieces {
        Pieces::new()
    }
}

//! Extension of relations: by how many pages at a time, and what the time goes into.
//!
//! ```text
//!  make room in memory ── wait for the right to extend ── extend the file ── pages to the free space map
//!  (evictions, written    (heavyweight lock, or for an     (one system call    (used outside of the lock)
//!   before the lock)       index its mutex)                 for all pages)
//! ```
//!
//! An extension adds more pages the larger the file is and the more tasks wait for it; who waited then
//! finds pages in the map and extends no more. Nobody evicts while holding the right to extend, so
//! one who waits for a latch of the buffer pool holds up nobody else. `heap_extension = locked` is
//! there to be compared with: each page is brought into memory under the lock, as PostgreSQL 15 does.
//!
//! While a task does one of these it says so ([`sched::at_work`]: `RelationExtendSearch`, `…Evict`,
//! `…Fill`); the wait for the lock and the file's growth are waits of their own (`extend`,
//! `DataFileExtend`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use base::settings::{live_enum, setting};
use base::{Fork, RelId, Result};
use storage::Storage;

use crate::registry;

/// Most pages that one extension adds.
pub(crate) const EXTEND_MAX: u32 = 512;
/// Fewest and most pages that the build of an index adds at a time.
const BUILD_PAGES: std::ops::RangeInclusive<u32> = 4..=128;
/// Extensions are counted by the power of two of their pages: 1, 2, 3-4, 5-8, ... 257-512.
pub const SIZES: usize = 10;

/// Pages that one extension is to add to a heap of so many. `waiting`: tasks that wait for the same;
/// `bulk`: pages that the caller is going to fill.
pub(crate) fn pages_to_add(blocks: u32, waiting: u32, bulk: u32) -> u32 {
    if is_locked() {
        // PostgreSQL 15's rule: one, and 20 for each who waits.
        return (1 + waiting.saturating_mul(20)).min(EXTEND_MAX);
    }
    let own = (blocks / 8).clamp(1, 8).max(bulk.max(1));
    let ahead = if bulk > 0 { (blocks / 8).min(EXTEND_MAX / 4) } else { 0 };
    own.max(ahead).saturating_add(waiting.saturating_mul(8)).min(EXTEND_MAX)
}

/// Whether pages come into memory under the extension lock.
pub(crate) fn is_locked() -> bool {
    live_enum(setting::HEAP_EXTENSION) != 0
}

/// Runs `f` and adds its time to `time`.
pub(crate) fn timed<R>(time: &mut Duration, f: impl FnOnce() -> Result<R>) -> Result<R> {
    let began = Instant::now();
    let result = f();
    *time += began.elapsed();
    result
}

/// How far an index's file has been searched for pages that nobody uses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Searched {
    /// Pages from this block on are known: they were there at the start and unused, or came later; 0: nothing has been
    /// searched.
    pub from: u32,
    /// Pages below it, too.
    pub everywhere: bool,
}

impl Searched {
    /// Of an index that was made just now.
    pub const ALL: Searched = Searched { from: 1, everywhere: true };
}

/// One extension, as it goes on.
#[derive(Default)]
pub(crate) struct Extension {
    pub pages: u32,
    /// Somebody else had the right to extend.
    pub waited: bool,
    pub evict: Duration,
    pub lock: Duration,
    pub io: Duration,
}

/// The live counters of one relation.
#[derive(Default)]
pub(crate) struct Counters {
    sizes: [AtomicU64; SIZES],
    pages: AtomicU64,
    largest: AtomicU64,
    waits: AtomicU64,
    longest_ns: AtomicU64,
    evict_ns: AtomicU64,
    lock_ns: AtomicU64,
    io_ns: AtomicU64,
}

/// How one relation grew since the server started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionCounters {
    /// Extensions by the number of pages that they added; see [`SIZES`].
    pub sizes: [u64; SIZES],
    /// Pages added.
    pub pages: u64,
    /// Most pages added at once.
    pub largest: u64,
    /// Times that somebody had to wait for the right to extend.
    pub waits: u64,
    /// The longest of these waits.
    pub longest: Duration,
    /// Time spent on making room in memory.
    pub evict: Duration,
    /// Time spent on waiting for the right to extend.
    pub lock: Duration,
    /// Time spent on extending the file.
    pub io: Duration,
}

impl ExtensionCounters {
    /// How many extensions there were.
    pub fn extensions(&self) -> u64 {
        self.sizes.iter().sum()
    }
}

impl Counters {
    pub fn add(&self, one: &Extension) {
        let ns = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        if one.pages > 0 {
            let class = one.pages.next_power_of_two().trailing_zeros() as usize;
            self.sizes[class.min(SIZES - 1)].fetch_add(1, Relaxed);
            self.pages.fetch_add(u64::from(one.pages), Relaxed);
            self.largest.fetch_max(u64::from(one.pages), Relaxed);
        }
        if one.waited {
            self.waits.fetch_add(1, Relaxed);
            self.longest_ns.fetch_max(ns(one.lock), Relaxed);
        }
        self.evict_ns.fetch_add(ns(one.evict), Relaxed);
        self.lock_ns.fetch_add(ns(one.lock), Relaxed);
        self.io_ns.fetch_add(ns(one.io), Relaxed);
    }

    fn read(&self) -> ExtensionCounters {
        let get = |c: &AtomicU64| c.load(Relaxed);
        let time = |c: &AtomicU64| Duration::from_nanos(get(c));
        ExtensionCounters {
            sizes: std::array::from_fn(|i| get(&self.sizes[i])),
            pages: get(&self.pages),
            largest: get(&self.largest),
            waits: get(&self.waits),
            longest: time(&self.longest_ns),
            evict: time(&self.evict_ns),
            lock: time(&self.lock_ns),
            io: time(&self.io_ns),
        }
    }
}

/// How the relations grew that have been used since the server started.
pub fn extension_counters(storage: &Arc<Storage>) -> Vec<(RelId, ExtensionCounters)> {
    let states = registry::states(storage);
    let mut rows: Vec<_> = states.iter().map(|s| (s.rel(), s.extension.read())).collect();
    // A temporary relation's counters go on with the next one that gets its id.
    rows.retain(|(rel, counters)| {
        !rel.is_temporary() && (counters.extensions() > 0 || counters.waits > 0)
    });
    rows.sort_by_key(|(rel, _)| *rel);
    rows
}

/// The next block for the build of an index, of which nobody else knows yet; `spare` are those that the file has
/// already.
///
/// # Errors
/// Those of extending the file.
pub(crate) fn next_of_build(
    storage: &Storage,
    rel: RelId,
    spare: &mut std::ops::Range<u32>,
) -> Result<u32> {
    if spare.start == spare.end {
        let blocks = storage.block_count(rel, Fork::Main)?;
        let count = blocks.clamp(*BUILD_PAGES.start(), *BUILD_PAGES.end());
        let first = storage.extend(rel, Fork::Main, count)?;
        *spare = first..first + count;
    }
    let block = spare.start;
    spare.start += 1;
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_grows_with_the_file_and_with_those_who_wait() {
        assert_eq!(pages_to_add(0, 0, 0), 1);
        assert_eq!(pages_to_add(1000, 0, 0), 8);
        assert_eq!(pages_to_add(1000, 3, 0), 32);
        assert_eq!(pages_to_add(1000, 1000, 0), EXTEND_MAX);
        assert_eq!(pages_to_add(8, 0, 100), 100);
        assert_eq!(pages_to_add(10_000, 0, 1), 128);
    }

    #[test]
    fn extensions_are_counted_by_their_size() {
        let counters = Counters::default();
        for pages in [1, 2, 3, 4, 512] {
            counters.add(&Extension { pages, ..Extension::default() });
        }
        let lock = Duration::from_millis(3);
        counters.add(&Extension { waited: true, lock, ..Extension::default() });
        let read = counters.read();
        assert_eq!(read.sizes, [1, 1, 2, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!((read.pages, read.largest, read.extensions()), (522, 512, 5));
        assert_eq!((read.waits, read.longest, read.lock), (1, lock, lock));
    }
}

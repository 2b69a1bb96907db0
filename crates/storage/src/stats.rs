//! Storage's statistics. Counters that hot paths touch are spread over lines of their own.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

const SHARDS: usize = 32;

/// A count that many threads raise: each adds to a cell of its own.
pub(crate) struct Sharded([CachePadded<AtomicU64>; SHARDS]);

thread_local! {
    // Read only: the number of a thread where a task was before is as good.
    static SHARD: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS
    };
}

impl Sharded {
    pub(crate) fn new() -> Sharded {
        Sharded(std::array::from_fn(|_| CachePadded::new(AtomicU64::new(0))))
    }
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0[SHARD.with(|s| *s)].fetch_add(n, Ordering::Relaxed);
    }
    fn total(&self) -> u64 {
        self.0.iter().map(|c| c.load(Ordering::Relaxed)).sum()
    }
}

/// The live counters.
pub(crate) struct Counters {
    pub hits: Sharded,
    pub optimistic: Sharded,
    pub reads: AtomicU64,
    pub writes: AtomicU64,
    pub foreground_writes: AtomicU64,
    pub evictions: AtomicU64,
    pub extended: AtomicU64,
    pub file_syncs: AtomicU64,
    pub wal_records: Sharded,
    pub wal_images: AtomicU64,
    pub wal_writes: AtomicU64,
    pub wal_syncs: AtomicU64,
    pub wal_buffers_full: AtomicU64,
    pub checkpoints_timed: AtomicU64,
    pub checkpoints_requested: AtomicU64,
    pub checkpoint_pages: AtomicU64,
    pub wal_write_ns: AtomicU64,
    pub wal_sync_ns: AtomicU64,
    pub checkpoint_write_ns: AtomicU64,
    pub checkpoint_sync_ns: AtomicU64,
    pub rounds_cut: AtomicU64,
}

/// One reading of storage's counters since the directory was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Times that a page was wanted and found in memory.
    pub hits: u64,
    /// Of these: read without a pin.
    pub optimistic: u64,
    /// Pages read from files.
    pub reads: u64,
    /// Pages written to files, by anyone.
    pub writes: u64,
    /// Of these: by somebody who needed the frame at once.
    pub foreground_writes: u64,
    /// Pages that had to leave their frame.
    pub evictions: u64,
    /// Pages by which files were extended.
    pub extended: u64,
    /// Syncs of relation files.
    pub file_syncs: u64,
    /// Log records.
    pub wal_records: u64,
    /// Full images of pages in the log.
    pub wal_images: u64,
    /// Bytes of log.
    pub wal_bytes: u64,
    /// Write calls of the WAL writer.
    pub wal_writes: u64,
    /// Sync calls of the WAL writer.
    pub wal_syncs: u64,
    /// Times that a record had to wait for space in the log buffers.
    pub wal_buffers_full: u64,
    /// Checkpoints because of the time.
    pub checkpoints_timed: u64,
    /// Checkpoints because of the log's volume, or asked for.
    pub checkpoints_requested: u64,
    /// Pages written by checkpoints.
    pub checkpoint_pages: u64,
    /// Time of the WAL writer's writes, in nanoseconds.
    pub wal_write_ns: u64,
    /// Time of its syncs, in nanoseconds.
    pub wal_sync_ns: u64,
    /// Time that checkpoints spent on writing, in nanoseconds.
    pub checkpoint_write_ns: u64,
    /// Time that they spent on syncing, in nanoseconds.
    pub checkpoint_sync_ns: u64,
    /// Rounds of the background writer that ended at `bgwriter_lru_maxpages`.
    pub rounds_cut: u64,
}

/// Adds the time since `began`.
pub(crate) fn add_time(counter: &AtomicU64, began: std::time::Instant) {
    counter.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
}

/// Adds one.
pub(crate) fn bump(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counters {
    pub(crate) fn new() -> Counters {
        let zero = || AtomicU64::new(0);
        Counters {
            hits: Sharded::new(),
            optimistic: Sharded::new(),
            reads: zero(),
            writes: zero(),
            foreground_writes: zero(),
            evictions: zero(),
            extended: zero(),
            file_syncs: zero(),
            wal_records: Sharded::new(),
            wal_images: zero(),
            wal_writes: zero(),
            wal_syncs: zero(),
            wal_buffers_full: zero(),
            checkpoints_timed: zero(),
            checkpoints_requested: zero(),
            checkpoint_pages: zero(),
            wal_write_ns: zero(),
            wal_sync_ns: zero(),
            checkpoint_write_ns: zero(),
            checkpoint_sync_ns: zero(),
            rounds_cut: zero(),
        }
    }

    pub(crate) fn read(&self, wal_bytes: u64) -> Stats {
        let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
        Stats {
            hits: self.hits.total() + self.optimistic.total(),
            optimistic: self.optimistic.total(),
            reads: get(&self.reads),
            writes: get(&self.writes),
            foreground_writes: get(&self.foreground_writes),
            evictions: get(&self.evictions),
            extended: get(&self.extended),
            file_syncs: get(&self.file_syncs),
            wal_records: self.wal_records.total(),
            wal_images: get(&self.wal_images),
            wal_bytes,
            wal_writes: get(&self.wal_writes),
            wal_syncs: get(&self.wal_syncs),
            wal_buffers_full: get(&self.wal_buffers_full),
            checkpoints_timed: get(&self.checkpoints_timed),
            checkpoints_requested: get(&self.checkpoints_requested),
            checkpoint_pages: get(&self.checkpoint_pages),
            wal_write_ns: get(&self.wal_write_ns),
            wal_sync_ns: get(&self.wal_sync_ns),
            checkpoint_write_ns: get(&self.checkpoint_write_ns),
            checkpoint_sync_ns: get(&self.checkpoint_sync_ns),
            rounds_cut: get(&self.rounds_cut),
        }
    }
}

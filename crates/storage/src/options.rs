//! Sizes that are fixed while a directory is open.

use base::Lsn;
use base::settings::{live_bool, live_int, setting};

use crate::page::PAGE_SIZE;

/// How to open a directory. [`Options::from_settings`] is what a server uses; tests make their own,
/// so that tiny pools and logs cross every limit.
#[derive(Clone, Debug)]
pub struct Options {
    /// Frames in the buffer pool.
    pub frames: usize,
    /// Partitions of the mapping table (rounded up to a power of two).
    pub partitions: usize,
    /// Bytes of log buffers (rounded up to a power of two).
    pub wal_buffers: usize,
    /// Bytes in a log segment; counts only when the directory is created.
    pub wal_segment_size: u64,
    /// Log volume that triggers a checkpoint; None: the live setting.
    pub max_wal_size: Option<u64>,
    /// Whether to sync files; None: the live setting.
    pub fsync: Option<bool>,
    /// Open relation files; None: the live setting.
    pub max_files: Option<usize>,
    /// Damage of the log at this position, and at no other, is accepted: what was committed after it is lost.
    pub accept_loss_from: Option<Lsn>,
    /// The directory is a standby's: records behind the end of its log were durable in the primary, not here.
    pub follows: bool,
}

impl Options {
    /// The server's settings as they are now.
    pub fn from_settings() -> Options {
        let tiny = live_bool(setting::DEBUG_TINY);
        let segment = live_int(setting::WAL_SEGMENT_SIZE) as u64;
        Options {
            frames: live_int(setting::SHARED_BUFFERS) as usize,
            partitions: live_int(setting::BUFFER_PARTITIONS) as usize,
            // The largest record, images of 255 pages, has to fit twice.
            wal_buffers: (live_int(setting::WAL_BUFFERS) as usize * PAGE_SIZE).max(8 << 20),
            wal_segment_size: if tiny { 256 * 1024 } else { segment },
            max_wal_size: None,
            fsync: None,
            max_files: None,
            accept_loss_from: None,
            follows: false,
        }
    }

    pub(crate) fn max_wal_size(&self) -> u64 {
        self.max_wal_size.unwrap_or_else(|| (live_int(setting::MAX_WAL_SIZE) as u64) << 20)
    }

    pub(crate) fn fsync(&self) -> bool {
        self.fsync.unwrap_or_else(|| live_bool(setting::FSYNC))
    }

    pub(crate) fn max_files(&self) -> usize {
        self.max_files.unwrap_or_else(|| live_int(setting::MAX_FILES_PER_PROCESS) as usize)
    }
}

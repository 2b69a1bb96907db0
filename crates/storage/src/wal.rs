//! The write-ahead log.

use base::{Lsn, Result};

/// One logical stream of records in segment files.
pub struct Wal {}

impl Wal {
    /// Appends a record that has only a payload (a commit, say); returns its end. Space is reserved
    /// with one atomic add; `on_reserved` runs right after that with the record's end position,
    /// before the bytes are copied (it must be short and must not wait).
    pub fn append(&self, _code: u8, _payload: &[u8], _on_reserved: impl FnOnce(Lsn)) -> Lsn {
        todo!()
    }
    /// Where the next record will begin.
    pub fn insert_position(&self) -> Lsn {
        todo!()
    }
    /// Everything before this is durable. One atomic load.
    pub fn flushed(&self) -> Lsn {
        todo!()
    }
    /// Waits (parked, `IPC:WalFlush`) until the log is durable up to `upto`; flushes in groups.
    /// Uninterruptible. A failed sync stops the server.
    pub fn flush(&self, _upto: Lsn) -> Result<()> {
        todo!()
    }
    /// Asks for a flush soon, without waiting (`synchronous_commit = off`).
    pub fn request_flush(&self, _upto: Lsn) {
        todo!()
    }
}

//! A task's use of the storage below it, as counts that only grow. Each task has its own and is
//! the only one to raise them, so that counting costs a load and a store; statistics take
//! differences between two readings.

/// One count. Times are in nanoseconds, amounts of pages in pages, of data in bytes. Those that most
/// statements raise come first, so that they share a cache line wherever counts are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Use {
    /// Pins that found their page in memory.
    BufferHit,
    /// Pages that were clean and were changed.
    BufferDirtied,
    /// Log records.
    WalRecords,
    /// Bytes of log.
    WalBytes,
    /// Full images of pages in the log.
    WalImages,
    /// Pages read into memory.
    BufferRead,
    /// Time of these reads.
    ReadNs,
    /// Pages written to files.
    BufferWritten,
    /// Time of these writes.
    WriteNs,
    /// Pages by which files were extended.
    Extended,
    /// Time of that.
    ExtendNs,
    /// Pages put out of memory to make room.
    Evicted,
    /// Syncs of files.
    Synced,
    /// Time of these.
    SyncNs,
    /// Temporary files made.
    TempFiles,
    /// Bytes written to them.
    TempWritten,
    /// Bytes read from them.
    TempRead,
    /// Time of writing them.
    TempWriteNs,
    /// Time of reading them.
    TempReadNs,
}

/// Number of counts.
pub const USES: usize = Use::TempReadNs as usize + 1;

/// A reading of all counts, or the difference between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage(pub [u64; USES]);

impl Usage {
    /// One count.
    pub fn get(&self, what: Use) -> u64 {
        self.0[what as usize]
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Usage) {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a += b);
    }

    /// The counts since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage(std::array::from_fn(|i| self.0[i].saturating_sub(earlier.0[i])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_add_up() {
        let mut early = Usage::default();
        early.0[Use::BufferHit as usize] = 3;
        let mut late = early;
        late.0[Use::BufferHit as usize] = 10;
        late.0[Use::TempRead as usize] = 1;
        let between = late.since(&early);
        assert_eq!((between.get(Use::BufferHit), between.get(Use::TempRead)), (7, 1));
        early.add(&between);
        assert_eq!(early, late);
    }
}

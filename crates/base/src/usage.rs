//! What a task uses of the storage below it, as counts that only grow. Each task has its own and is
//! the only one to raise them, so that counting costs a load and a store; statistics take
//! differences between two readings.

/// One count. Times are in nanoseconds, amounts of pages in pages, of data in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Use {
    /// Pins that found their page in memory.
    BufferHit,
    /// Pages read into memory.
    BufferRead,
    /// Time of these reads.
    ReadNs,
    /// Pages that were clean and were changed.
    BufferDirtied,
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
    /// Log records.
    WalRecords,
    /// Full images of pages in the log.
    WalImages,
    /// Bytes of log.
    WalBytes,
    /// Temporary files made.
    TempFiles,
    /// Bytes written to them.
    TempWritten,
    /// Bytes read from them.
    TempRead,
}

/// Number of counts.
pub const USES: usize = Use::TempRead as usize + 1;

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

    /// What came since an earlier reading of the same counts.
    #[must_use]
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage(std::array::from_fn(|i| self.0[i].saturating_sub(earlier.0[i])))
    }
}

/// What came since a reading: few of the counts change from one reading to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// The counts.
    pub counts: Usage,
    /// Bits of those that are not zero.
    pub changed: u32,
}

impl Used {
    /// The counts that are not zero, by number.
    #[inline]
    fn each(changed: u32, mut of: impl FnMut(usize)) {
        let mut changed = changed;
        while changed != 0 {
            of(changed.trailing_zeros() as usize % 32);
            changed &= changed - 1;
        }
    }

    /// Adds them to a sum.
    #[inline]
    pub fn add_to(&self, sum: &mut Usage) {
        Used::each(self.changed, |i| {
            if let (Some(sum), Some(count)) = (sum.0.get_mut(i), self.counts.0.get(i)) {
                *sum += count;
            }
        });
    }

    /// Adds what came later.
    #[inline]
    pub fn add(&mut self, later: &Used) {
        later.add_to(&mut self.counts);
        self.changed |= later.changed;
    }

    /// Adds them to a sum and begins anew.
    #[inline]
    pub fn move_to(&mut self, sum: &mut Usage) {
        self.add_to(sum);
        Used::each(std::mem::take(&mut self.changed), |i| {
            if let Some(count) = self.counts.0.get_mut(i) {
                *count = 0;
            }
        });
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

    #[test]
    fn only_what_changed_is_added() {
        let mut sum = Usage([1; USES]);
        let mut used = Used::default();
        used.counts.0[Use::BufferHit as usize] = 3;
        used.counts.0[Use::TempRead as usize] = 4;
        used.changed = 1 << Use::BufferHit as u32 | 1 << Use::TempRead as u32;
        used.add_to(&mut sum);
        let mut expected = Usage([1; USES]);
        expected.add(&used.counts);
        assert_eq!(sum, expected);
        let mut both = used;
        both.add(&Used { changed: 1, ..Used::default() });
        both.add(&used);
        assert_eq!((both.counts.get(Use::TempRead), both.changed), (8, used.changed | 1));
        both.move_to(&mut sum);
        assert_eq!((both, sum.get(Use::TempRead)), (Used::default(), 13));
    }
}

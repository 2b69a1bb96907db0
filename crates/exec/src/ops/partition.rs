//! Rows in temporary files, apart by the hash of their key: what a hash table that outgrows its
//! memory puts aside. Rows with equal keys land in the same file, so each file can be worked on by
//! itself later.

use base::settings::setting;
use base::{Oid, Result};
use types::{Batch, Datum};

use super::spill::{Merge, Run as File, RunWriter};
use crate::run::Run;

/// Files at one level.
pub const FILES: usize = 32;
/// Bytes of each file's buffer.
const BUFFER: usize = 32 * 1024;
/// Rows to read at once.
const ROWS: usize = types::batch::BATCH_ROWS;

/// Bytes that a hash table may hold: twice `work_mem`, as PostgreSQL's `hash_mem_multiplier` has it.
pub fn limit(run: &Run<'_, '_>) -> usize {
    run.cx.settings.int(setting::WORK_MEM) as usize * 1024 * 2
}

/// The file into which a row with this hash goes. Each level takes other bits.
pub fn file_of(hash: u64, level: u32) -> usize {
    (hash.rotate_right(level * 5).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59) as usize
}

/// Rows being put aside.
pub struct Partitions {
    writers: Vec<RunWriter>,
    level: u32,
}

impl Partitions {
    /// New files for rows of these types.
    pub fn new(types: &[Oid], level: u32, run: &Run<'_, '_>) -> Partitions {
        let storage = &run.cx.engine.storage;
        let writers = (0..FILES).map(|_| RunWriter::one_of_many(storage, types, BUFFER));
        Partitions { writers: writers.collect(), level }
    }

    /// Puts a row aside.
    ///
    /// # Errors
    /// I/O, a full disk.
    pub fn add(&mut self, hash: u64, values: &[Datum]) -> Result<()> {
        self.writers[file_of(hash, self.level)].add(&[], values)
    }

    /// The files, to be read from their beginnings.
    ///
    /// # Errors
    /// I/O.
    pub fn finish(self) -> Result<Vec<File>> {
        self.writers.into_iter().map(RunWriter::finish).collect()
    }
}

/// Reads one file's rows.
pub struct Reader {
    merge: Merge,
    types: Vec<Oid>,
}

impl Reader {
    /// From a file's beginning.
    ///
    /// # Errors
    /// I/O.
    pub fn new(file: File, types: &[Oid]) -> Result<Reader> {
        Ok(Reader { merge: Merge::new(vec![file], types)?, types: types.to_vec() })
    }

    /// From the beginnings of several, one after the other.
    ///
    /// # Errors
    /// I/O.
    pub fn of(files: Vec<File>, types: &[Oid]) -> Result<Reader> {
        Ok(Reader { merge: Merge::new(files, types)?, types: types.to_vec() })
    }

    /// The next rows; None at the end.
    ///
    /// # Errors
    /// I/O.
    pub fn next(&mut self) -> Result<Option<Batch>> {
        let batch = self.merge.next(&self.types, ROWS)?;
        Ok((batch.rows > 0).then_some(batch))
    }
}

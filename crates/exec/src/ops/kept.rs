//! Batches that are read again and again, by their numbers: in memory up to `work_mem`, those that
//! come later in a temporary file.
//!
//! ```text
//! | row length u32 | row (types::row) | row length u32 | …        places: where each batch begins
//! ```

use std::io::Write;

use base::settings::setting;
use base::usage::Use;
use base::{Error, Oid, Result};
use types::Batch;
use types::row::{self, RowLayout};

use super::spill::{TemporaryFile, failed};
use crate::rows;
use crate::run::Run;

/// See the module's documentation.
#[derive(Default)]
pub struct StoredBatches {
    memory: Vec<Batch>,
    /// Bytes of these, about.
    held: usize,
    file: Option<Spilled>,
}

struct Spilled {
    file: TemporaryFile,
    types: Vec<Oid>,
    layout: RowLayout,
    wanted: Vec<u16>,
    /// Where each batch begins, and the file's end.
    places: Vec<u64>,
}

impl StoredBatches {
    /// How many batches.
    pub fn len(&self) -> usize {
        self.memory.len() + self.file.as_ref().map_or(0, |file| file.places.len() - 1)
    }

    /// Adds a batch of these types.
    ///
    /// # Errors
    /// I/O, a full disk.
    pub fn push(&mut self, batch: Batch, types: &[Oid], run: &Run<'_, '_>) -> Result<()> {
        let limit = run.cx.settings.int(setting::WORK_MEM) as usize * 1024;
        if self.file.is_none() {
            let bytes = rows::batch_bytes(&batch);
            if self.held + bytes <= limit {
                self.held += bytes;
                self.memory.push(batch);
                return Ok(());
            }
            self.file = Some(Spilled {
                file: TemporaryFile::new(&run.cx.engine.storage)?,
                types: types.to_vec(),
                layout: RowLayout::of_types(types),
                wanted: (0..types.len() as u16).collect(),
                places: vec![0],
            });
        }
        self.file.as_mut().map_or(Ok(()), |file| file.push(&batch))
    }

    /// A batch that is there.
    ///
    /// # Errors
    /// I/O.
    pub fn get(&self, number: usize) -> Result<Batch> {
        match (self.memory.get(number), &self.file) {
            (Some(batch), _) => Ok(batch.clone()),
            (None, Some(file)) => file.get(number - self.memory.len()),
            (None, None) => Err(Error::internal("a batch that nobody kept")),
        }
    }
}

impl Spilled {
    fn push(&mut self, batch: &Batch) -> Result<()> {
        let mut bytes = Vec::new();
        for row in 0..batch.rows {
            let begin = bytes.len();
            bytes.extend_from_slice(&[0; 4]);
            row::encode(&self.layout, &rows::get(batch, row, &self.types), &mut bytes)?;
            let length = (bytes.len() - begin - 4) as u32;
            bytes[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
        }
        let at = self.places[self.places.len() - 1];
        sched::used(Use::TempWritten, bytes.len() as u64);
        self.file.write_all(&bytes).map_err(|e| failed("write", &e))?;
        self.places.push(at + bytes.len() as u64);
        Ok(())
    }

    fn get(&self, number: usize) -> Result<Batch> {
        let (begin, end) = (self.places[number], self.places[number + 1]);
        let mut bytes = vec![0; (end - begin) as usize];
        sched::used(Use::TempRead, bytes.len() as u64);
        self.file.read_exact_at(&mut bytes, begin)?;
        let mut batch = rows::empty(&self.types);
        let mut left = &bytes[..];
        while let Some((length, rest)) = left.split_first_chunk::<4>() {
            // It was written so.
            let (row, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
            row::decode_into(&self.layout, row, &self.wanted, &mut batch.columns)?;
            batch.rows += 1;
            left = rest;
        }
        Ok(batch)
    }
}

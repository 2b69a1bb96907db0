//! The bytes of a sorted run in a file, read a chunk at a time.

use std::ops::Range;

use base::usage::Use;
use base::{Error, Result};
use exec::ops::spill::TemporaryFile;

/// See the module's documentation.
pub(super) struct RunBytes {
    /// The part that is still in the file.
    rest: Range<u64>,
    buffer: Vec<u8>,
    /// Bytes of the buffer that have been given out.
    used: usize,
}

impl RunBytes {
    /// Those of a part of the file.
    pub(super) fn new(rest: Range<u64>) -> RunBytes {
        RunBytes { rest, buffer: Vec::new(), used: 0 }
    }

    /// Whether all have been given out.
    pub(super) fn is_at_end(&self) -> bool {
        self.used == self.buffer.len() && self.rest.is_empty()
    }

    /// Bytes that were taken last.
    pub(super) fn get(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// The place of the next bytes, for [`RunBytes::get`] until the next ones are taken.
    ///
    /// # Errors
    /// I/O, interrupts; internal, when there are fewer.
    pub(super) fn take(
        &mut self,
        count: usize,
        file: &TemporaryFile,
        chunk: usize,
    ) -> Result<Range<usize>> {
        let left = self.buffer.len() - self.used;
        if left < count {
            self.buffer.drain(..self.used);
            self.used = 0;
            let more = (chunk.max(count - left) as u64).min(self.rest.end - self.rest.start);
            self.buffer.resize(left + more as usize, 0);
            if self.buffer.len() < count {
                return Err(Error::internal("a run of index keys ends too early"));
            }
            file.read_exact_at(&mut self.buffer[left..], self.rest.start)?;
            sched::used(Use::TempRead, more);
            self.rest.start += more;
            sched::check_interrupts()?;
        }
        self.used += count;
        Ok(self.used - count..self.used)
    }
}

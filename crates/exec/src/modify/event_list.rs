//! The queue of a statement's row events: what happened to which row, for AFTER triggers. What is beyond
//! `work_mem` lies in a temporary file, in the order in which it came.
//!
//! ```text
//!   file (no name):  | event | event | …          then, in memory:  event, event, …
//!   an event:        | kind u8 | old tid 6 | new tid 6 | fires u64 |   21 bytes, little end first but for tids
//! ```
//!
//! A list that is complete is read in pieces, as often as wanted: a deferred one is kept over savepoints.

use std::io::Write;

use base::{Error, Result, TupleId};
use storage::Storage;

use crate::ops::spill::{TemporaryFile, failed};

/// A row that was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowEvent {
    /// A number for the kind of change.
    pub kind: u8,
    /// The place of its old version.
    pub old: TupleId,
    /// The place of its new version.
    pub new: TupleId,
    /// The triggers that fire for it, as bits of their places in the list.
    pub fires: u64,
}

/// Bytes of an event in the file.
const EVENT_BYTES: usize = 21;
/// Events of a piece.
const PIECE: u64 = 4096;

/// See the module's documentation.
#[derive(Default)]
pub struct EventList {
    file: Option<TemporaryFile>,
    /// Events in the file.
    spilled: u64,
    latest: Vec<RowEvent>,
}

impl EventList {
    /// Adds an event; at most `limit` bytes stay in memory.
    ///
    /// # Errors
    /// I/O errors of the temporary file.
    pub fn push(&mut self, event: RowEvent, limit: usize, storage: &Storage) -> Result<()> {
        self.latest.push(event);
        if self.latest.len() * size_of::<RowEvent>() >= limit {
            self.spill(storage)?;
        }
        Ok(())
    }

    fn spill(&mut self, storage: &Storage) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(TemporaryFile::new(storage)?),
        };
        let mut bytes = Vec::with_capacity(PIECE as usize * EVENT_BYTES);
        for events in self.latest.chunks(PIECE as usize) {
            sched::check_interrupts()?;
            bytes.clear();
            events.iter().for_each(|event| encode(event, &mut bytes));
            sched::used(base::usage::Use::TempWritten, bytes.len() as u64);
            file.write_all(&bytes).map_err(|e| failed("write", &e))?;
        }
        self.spilled += self.latest.len() as u64;
        self.latest.clear();
        Ok(())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.spilled == 0 && self.latest.is_empty()
    }

    /// How many pieces there are to be read.
    pub fn pieces(&self) -> u64 {
        self.spilled.div_ceil(PIECE) + u64::from(!self.latest.is_empty())
    }

    /// The events of one piece, from 0.
    ///
    /// # Errors
    /// I/O errors of the temporary file.
    pub fn piece(&self, number: u64) -> Result<Vec<RowEvent>> {
        let first = number * PIECE;
        let Some(file) = self.file.as_ref().filter(|_| first < self.spilled) else {
            return Ok(self.latest.clone());
        };
        let count = (self.spilled - first).min(PIECE) as usize;
        let mut bytes = vec![0; count * EVENT_BYTES];
        file.read_exact_at(&mut bytes, first * EVENT_BYTES as u64)?;
        sched::used(base::usage::Use::TempRead, bytes.len() as u64);
        bytes.chunks_exact(EVENT_BYTES).map(decode).collect()
    }
}

fn encode(event: &RowEvent, out: &mut Vec<u8>) {
    out.push(event.kind);
    out.extend(event.old.to_bytes());
    out.extend(event.new.to_bytes());
    out.extend(event.fires.to_le_bytes());
}

fn decode(bytes: &[u8]) -> Result<RowEvent> {
    let damaged = || Error::internal("a temporary file of trigger events is damaged");
    let part = |from: usize| {
        bytes.get(from..from + 6).and_then(|b| <[u8; 6]>::try_from(b).ok()).ok_or_else(damaged)
    };
    let fires = bytes.get(13..).and_then(|b| <[u8; 8]>::try_from(b).ok()).ok_or_else(damaged)?;
    Ok(RowEvent {
        kind: *bytes.first().ok_or_else(damaged)?,
        old: TupleId::from_bytes(part(1)?),
        new: TupleId::from_bytes(part(7)?),
        fires: u64::from_le_bytes(fires),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_as_it_was_written() {
        let tid = |block, offset| TupleId { block, offset };
        for kind in 0..3 {
            let given = RowEvent {
                kind,
                old: if kind == 0 { TupleId::INVALID } else { tid(70_000, 3) },
                new: tid(u32::from(kind), u16::MAX),
                fires: u64::MAX - u64::from(kind),
            };
            let mut bytes = Vec::new();
            encode(&given, &mut bytes);
            assert_eq!(bytes.len(), EVENT_BYTES);
            assert_eq!(decode(&bytes).unwrap(), given);
        }
        assert!(decode(&[9; EVENT_BYTES - 1]).is_err());
    }
}

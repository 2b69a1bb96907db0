//! Reads the log from its files, record by record, for recovery and for the survey before it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use base::{Error, Lsn, Result};

use super::record::{self, HEADER};
use super::segment::Segments;

const CHUNK: usize = 256 * 1024;

/// Reads forward from a position.
pub(crate) struct LogReader {
    segments: Segments,
    file: Option<(u64, File)>,
    /// Bytes from `at` on.
    buffer: Vec<u8>,
    /// How many of them are used up.
    used: usize,
    at: u64,
    /// Whether a file is made durable before it is read.
    syncs: bool,
    /// Nothing from here on is read.
    limit: u64,
}

impl LogReader {
    /// For redo.
    pub(crate) fn new(segments: Segments, from: Lsn) -> LogReader {
        let (buffer, limit) = (Vec::new(), u64::MAX);
        LogReader { segments, file: None, buffer, used: 0, at: from.0, syncs: true, limit }
    }

    /// For who only looks.
    pub(crate) fn to_look(segments: Segments, from: Lsn) -> LogReader {
        LogReader { syncs: false, ..LogReader::new(segments, from) }
    }

    /// For who follows: reads the log that is there up to a position, and more when that has moved.
    pub(crate) fn to_follow(segments: Segments, from: Lsn) -> LogReader {
        LogReader { limit: from.0, ..LogReader::to_look(segments, from) }
    }

    /// The log is there up to here.
    pub(crate) fn set_limit(&mut self, limit: Lsn) {
        self.limit = limit.0;
    }

    /// Where the next record would begin.
    pub(crate) fn position(&self) -> Lsn {
        Lsn(self.at)
    }

    /// The next record's bytes; None at the end of the log: the first place that holds no complete
    /// record which says it belongs there.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, &[u8])>> {
        let at = self.at;
        if !self.fill(HEADER)? {
            return Ok(None);
        }
        let header = &self.buffer[self.used..];
        let word = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let len = record::len_of(word) as usize;
        let in_place = header[8..16] == at.to_le_bytes();
        if !in_place || len < HEADER || !len.is_multiple_of(8) || !self.fill(len)? {
            return Ok(None);
        }
        let start = self.used;
        if !record::is_valid(&self.buffer[start..start + len], at) {
            return Ok(None);
        }
        self.used += len;
        self.at += len as u64;
        Ok(Some((at, &self.buffer[start..start + len])))
    }

    /// Makes `need` unused bytes available; false when the files end before.
    fn fill(&mut self, need: usize) -> Result<bool> {
        while self.buffer.len() - self.used < need {
            if self.used > 0 {
                self.buffer.drain(..self.used);
                self.used = 0;
            }
            if !self.read_chunk().map_err(|e| Error::io("read the write-ahead log", &e))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn read_chunk(&mut self) -> io::Result<bool> {
        let from = self.at + self.buffer.len() as u64;
        let number = from / self.segments.size;
        if self.file.as_ref().is_none_or(|(n, _)| *n != number) {
            self.file = match self.segments.open_read(number) {
                Ok(file) => {
                    // The log that redo is about to rely on has to be durable first: a page written from
                    // it must never be ahead of the log on disk.
                    if self.syncs {
                        self.segments.sync(&file)?;
                    }
                    Some((number, file))
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(e) => return Err(e),
            };
        }
        let Some((_, file)) = &self.file else { return Ok(false) };
        let offset = from % self.segments.size;
        let left = self.limit.saturating_sub(from).min(self.segments.size - offset);
        let want = CHUNK.min(left as usize);
        if want == 0 {
            return Ok(false);
        }
        let old = self.buffer.len();
        self.buffer.resize(old + want, 0);
        let got = file.read_at(&mut self.buffer[old..], offset)?;
        self.buffer.truncate(old + got);
        Ok(got > 0)
    }
}

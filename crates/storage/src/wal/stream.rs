//! Payloads of the log as a stream, for those who follow it: change streams, not recovery.

use std::collections::HashMap;

use base::{Lsn, Result};

use super::reader::LogReader;
use super::record::{CHANGES, LAST_PART, PART, Record};
use super::segment::Segments;

/// A payload that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// Where its record begins.
    pub begin: Lsn,
    /// Where its record ends.
    pub end: Lsn,
    /// The payload's code.
    pub code: u8,
    /// The payload.
    pub bytes: Vec<u8>,
}

/// Reads forward from the beginning of a record, as far as the caller says that the log is durable.
pub struct LogStream {
    reader: LogReader,
    segments: Segments,
    parts: HashMap<u64, (Lsn, Vec<u8>)>,
    /// Payloads of the last record that were not handed out yet, in reverse.
    ready: Vec<Logged>,
}

impl LogStream {
    pub(crate) fn new(segments: Segments, from: Lsn) -> LogStream {
        let reader = LogReader::to_look(segments.clone(), from);
        LogStream { reader, segments, parts: HashMap::new(), ready: Vec::new() }
    }

    /// Everything before this was handed out.
    pub fn position(&self) -> Lsn {
        self.reader.position()
    }

    /// The next payload whose record ends at or before `upto`, up to which the log is durable; None: there is none
    /// yet. Codes that `wanted` refuses are left out.
    ///
    /// # Errors
    /// I/O; damaged records.
    pub fn next(&mut self, upto: Lsn, wanted: impl Fn(u8) -> bool) -> Result<Option<Logged>> {
        loop {
            if let Some(logged) = self.ready.pop() {
                return Ok(Some(logged));
            }
            if self.reader.position() >= upto {
                return Ok(None);
            }
            let at = self.reader.position();
            match self.reader.next()? {
                Some((lsn, bytes)) => {
                    let record = Record::parse(bytes, lsn)?;
                    read(&record, &mut self.parts, &mut self.ready, &wanted)?;
                }
                None => {
                    // The buffer may hold bytes from before they were written.
                    self.reader = LogReader::to_look(self.segments.clone(), at);
                    match self.reader.next()? {
                        Some((lsn, bytes)) => {
                            let record = Record::parse(bytes, lsn)?;
                            read(&record, &mut self.parts, &mut self.ready, &wanted)?;
                        }
                        None => {
                            return Err(base::err!(
                                DATA_CORRUPTED,
                                "the write-ahead log has no record at {:X}/{:X}",
                                at.0 >> 32,
                                at.0 & 0xffff_ffff
                            ));
                        }
                    }
                }
            }
        }
    }
}

fn read(
    record: &Record<'_>,
    parts: &mut HashMap<u64, (Lsn, Vec<u8>)>,
    ready: &mut Vec<Logged>,
    wanted: &impl Fn(u8) -> bool,
) -> Result<()> {
    let (begin, end) = (record.start, record.end);
    match record.kind {
        CHANGES => {
            let (_, mut payloads) = record.pages()?;
            while !payloads.is_empty() {
                let (code, len) = (payloads.u8()?, payloads.u32()? as usize);
                let bytes = payloads.bytes(len)?;
                if wanted(code) {
                    ready.push(Logged { begin, end, code, bytes: bytes.to_vec() });
                }
            }
            ready.reverse();
        }
        PART => {
            let (_, mut body) = record.pages()?;
            let (id, first) = (body.u64()?, body.u8()? != 0);
            let payload = parts.entry(id).or_insert_with(|| (begin, Vec::new()));
            if first {
                *payload = (begin, Vec::new());
            }
            payload.1.extend_from_slice(body.0);
        }
        LAST_PART => {
            let (_, mut body) = record.pages()?;
            let (id, code) = (body.u64()?, body.u8()?);
            // One whose beginning is before the stream's belongs to a transaction that the stream leaves out.
            if let Some((_, mut bytes)) = parts.remove(&id)
                && wanted(code)
            {
                bytes.extend_from_slice(body.0);
                ready.push(Logged { begin, end, code, bytes });
            }
        }
        _ => {}
    }
    Ok(())
}

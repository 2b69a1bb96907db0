//! A data directory and its log, looked at by programs that only print what there is: nothing is locked or changed.

use std::path::Path;
use std::time::SystemTime;

use base::{Error, Fork, Lsn, Result};

use crate::control::{CONTROL, Control, DirLock};
use crate::timeline::History;
use crate::wal::reader::LogReader;
use crate::wal::record::{self, Record};
use crate::wal::segment::Segments;

/// The control file's facts.
#[derive(Clone, Debug)]
pub struct About {
    /// The directory's format.
    pub format: u32,
    /// The directory's random id.
    pub system_id: u64,
    /// The process that serves it.
    pub running: Option<u32>,
    /// The last server stopped by itself.
    pub clean: bool,
    /// Where recovery begins.
    pub redo: Lsn,
    /// The log was durable up to here, at least.
    pub durable: Lsn,
    /// Bytes of a segment of the log.
    pub segment_size: u64,
    /// The timeline, and the one before.
    pub timelines: (u32, u32),
    /// When the file was written.
    pub written: SystemTime,
    /// The state of the transactions at [`About::redo`], which only `txn` can read.
    pub transactions: Vec<u8>,
}

impl About {
    /// Reads the directory's own files.
    ///
    /// # Errors
    /// `55000` when it is not a data directory; `XX001` damage; I/O.
    pub fn read(dir: &Path) -> Result<About> {
        let control = Control::read(dir)?;
        let history = History::read(dir)?;
        let current = history.current();
        let written = std::fs::metadata(dir.join(CONTROL)).and_then(|about| about.modified());
        Ok(About {
            format: control.version,
            system_id: control.system_id,
            running: DirLock::holder(dir)?,
            clean: control.clean,
            redo: control.redo,
            durable: control.durable,
            segment_size: control.segment_size,
            timelines: (current, history.0.last().map_or(current, |last| last.timeline)),
            written: written.map_err(|e| Error::io("ask for the control file's time", &e))?,
            transactions: control.state,
        })
    }

    /// The name that PostgreSQL's programs have for the segment with this position.
    pub fn segment_name(&self, at: Lsn) -> String {
        let (number, in_each) = (at.0 / self.segment_size, (1 << 32) / self.segment_size);
        format!("{:08X}{:08X}{:08X}", self.timelines.0, number / in_each, number % in_each)
    }
}

/// A page that a record changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedPage {
    /// The relation's number.
    pub relation: u32,
    /// Its fork.
    pub fork: Fork,
    /// The block.
    pub block: u32,
    /// Redo begins with a page of zeros.
    pub is_new: bool,
    /// The record has all of the page.
    pub has_image: bool,
}

/// A record of the log.
#[derive(Clone, Debug)]
pub struct LogEntry<'a> {
    /// Where it begins.
    pub start: Lsn,
    /// Where the next one begins.
    pub end: Lsn,
    /// Its kind.
    pub kind: &'static str,
    /// The pages that it changes.
    pub pages: Vec<ChangedPage>,
    /// The payloads of the layers above: codes and bytes.
    pub payloads: Vec<(u8, &'a [u8])>,
}

/// Hands out the records from a position on, until `take` says false or the log ends; where that is.
///
/// # Errors
/// `XX001`, I/O; those of `take`.
pub fn each_record(
    dir: &Path,
    segment_size: u64,
    from: Lsn,
    take: &mut dyn FnMut(LogEntry<'_>) -> Result<bool>,
) -> Result<Lsn> {
    let mut reader = LogReader::to_look(Segments::new(dir, segment_size, None), from);
    while let Some((at, bytes)) = reader.next()? {
        if !take(entry(&Record::parse(bytes, at)?)?)? {
            break;
        }
    }
    Ok(reader.position())
}

fn entry<'a>(record: &Record<'a>) -> Result<LogEntry<'a>> {
    let mut entry = LogEntry {
        start: record.start,
        end: record.end,
        kind: kind(record.kind),
        pages: Vec::new(),
        payloads: Vec::new(),
    };
    if record.kind != record::CHANGES {
        return Ok(entry);
    }
    let (pages, mut rest) = record.pages()?;
    for page in pages.iter().filter(|page| page.flags & record::UNCHANGED == 0) {
        entry.pages.push(ChangedPage {
            relation: page.id.rel.0,
            fork: page.id.fork,
            block: page.id.block,
            is_new: page.flags & record::INIT != 0,
            has_image: page.image.is_some(),
        });
    }
    while !rest.is_empty() {
        let (code, len) = (rest.u8()?, rest.u32()? as usize);
        entry.payloads.push((code, rest.bytes(len)?));
    }
    Ok(entry)
}

fn kind(kind: u8) -> &'static str {
    match kind {
        record::FILLER => "FILLER",
        record::CHANGES => "CHANGES",
        record::CREATED => "CREATE",
        record::CUT => "TRUNCATE",
        record::PART => "PART",
        record::LAST_PART => "LAST_PART",
        record::DROPPED => "DROP",
        _ => "UNKNOWN",
    }
}

//! The log of an archive for a copy of the directory, and the position at which it is cut off.
//!
//! A copy is whole once the log up to its end has been applied ([`crate::backup`]); any later record's end is a moment to
//! which it can be brought. So a restore is three steps, before any start: segments are fetched, records are read up to the
//! target, and the rest is wiped. The start that follows is one after a crash.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use base::{Error, Lsn, Result, err};

use crate::adopt::adopt_log;
use crate::control::{Control, DirLock};
use crate::timeline::History;
use crate::wal::reader::LogReader;
use crate::wal::record::{CHANGES, Record};
use crate::wal::segment::Segments;

/// Where a restore ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreTarget {
    /// At the end of the log.
    End,
    /// As soon as the copy is whole.
    Immediate,
    /// With the last record that ends here or before.
    Position(Lsn),
    /// With the last mark of a time that is not later, in microseconds since 2000-01-01 UTC.
    Time(i64),
    /// With the first point of this name.
    Name(String),
}

/// Gets a segment by the name that PostgreSQL's programs give it, into a file; false: there is none.
pub type Fetch<'a> = &'a mut dyn FnMut(&str, &Path) -> Result<bool>;

/// The marks in the log: the time, and the name, of a payload with this code.
#[derive(Clone, Copy)]
pub struct Marks<'a> {
    /// Microseconds since 2000-01-01 UTC.
    pub time_of: &'a dyn Fn(u8, &[u8]) -> Option<i64>,
    /// A point's name.
    pub name_of: &'a dyn Fn(u8, &[u8]) -> Option<String>,
}

/// Fetches the log for a copy, and cuts it at the target; where that is.
///
/// # Errors
/// `55006` when a server has the directory; `58P01`, `XX001` when the log does not reach the end of the copy;
/// `22023` for a target before that or behind the end of the log; I/O.
pub fn restore(
    dir: &Path,
    target: &RestoreTarget,
    fetch: Fetch<'_>,
    marks: Marks<'_>,
) -> Result<Lsn> {
    Control::read(dir)?;
    let _lock = DirLock::take(dir)?;
    adopt_log(dir)?;
    let mut control = Control::read(dir)?;
    let segments = Segments::new(dir, control.segment_size, None);
    fetch_all(dir, &segments, control.redo, fetch)?;
    let end = find(&segments, &control, target, marks)?;
    segments.cut_at(end.0).map_err(|e| Error::io("cut the write-ahead log", &e))?;
    begin_timeline(dir, end, target)?;
    (control.durable, control.clean) = (end, false);
    control.write(dir, true)?;
    Ok(end)
}

/// The log goes on in a timeline of its own from here, so that nobody who has the log that was cut off takes the new one for
/// its continuation.
fn begin_timeline(dir: &Path, end: Lsn, target: &RestoreTarget) -> Result<()> {
    let mut history = History::read(dir)?;
    let reason = match target {
        RestoreTarget::End => "no recovery target specified".to_owned(),
        RestoreTarget::Immediate => "reached consistency".to_owned(),
        RestoreTarget::Position(position) => format!("after LSN {position}"),
        RestoreTarget::Time(_) => "before a time".to_owned(),
        RestoreTarget::Name(name) => format!("at restore point \"{name}\""),
    };
    history.switch(end, reason);
    history.write(dir)
}

/// Segments of the archive go before those that came with the copy, of which the last is not full.
fn fetch_all(dir: &Path, segments: &Segments, redo: Lsn, fetch: Fetch<'_>) -> Result<()> {
    let failed = |e: io::Error| Error::io("keep a segment of the archive", &e);
    let in_each = (1 << 32) / segments.size;
    let newest = History::read(dir)?.current();
    let folder = dir.join("wal");
    fs::create_dir_all(&folder).map_err(failed)?;
    for number in redo.0 / segments.size.. {
        let aside = folder.join("restored.tmp");
        let mut found = None;
        // The newest timeline that the copy has been on has the segment, or one before.
        for timeline in (1..=newest).rev() {
            let name = format!("{timeline:08X}{:08X}{:08X}", number / in_each, number % in_each);
            let _ = fs::remove_file(&aside);
            if fetch(&name, &aside)? {
                found = Some(name);
                break;
            }
        }
        let Some(name) = found else { break };
        let length = fs::metadata(&aside).map_err(failed)?.len();
        if length != segments.size {
            return Err(err!(
                DATA_CORRUPTED,
                "archive file \"{name}\" has wrong size: {length} instead of {}",
                segments.size
            ));
        }
        OpenOptions::new().write(true).open(&aside).and_then(|f| f.sync_all()).map_err(failed)?;
        fs::rename(&aside, segments.path(number)).map_err(failed)?;
    }
    File::open(&folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

fn find(
    segments: &Segments,
    control: &Control,
    target: &RestoreTarget,
    marks: Marks<'_>,
) -> Result<Lsn> {
    let whole = control.durable;
    let mut reader = LogReader::to_look(segments.clone(), control.redo);
    let (mut end, mut marked_end, mut reached) = (control.redo, None, false);
    while let Some((at, bytes)) = reader.next()? {
        let record = Record::parse(bytes, at)?;
        reached = match target {
            RestoreTarget::End => false,
            RestoreTarget::Immediate => Lsn(at) >= whole,
            RestoreTarget::Position(position) => record.end > *position,
            RestoreTarget::Name(name) => {
                let found = marked(&record, marks.name_of)?.is_some_and(|found| found == *name);
                if found {
                    marked_end = Some(record.end);
                }
                found
            }
            RestoreTarget::Time(time) => match marked(&record, marks.time_of)? {
                Some(mark) if mark > *time => true,
                Some(_) => {
                    marked_end = Some(record.end);
                    false
                }
                None => false,
            },
        };
        if reached {
            break;
        }
        end = record.end;
    }
    let before = || {
        err!(
            INVALID_PARAMETER_VALUE,
            "requested recovery stop point is before consistent recovery point"
        )
        .detail(format!("The backup is whole from position {whole} on."))
    };
    let wanted = match target {
        RestoreTarget::Time(_) => marked_end.ok_or_else(before)?,
        RestoreTarget::Name(_) => marked_end.unwrap_or(end),
        _ => end,
    };
    if reached && wanted < whole {
        return Err(before());
    }
    if end < whole {
        return Err(err!(
            DATA_CORRUPTED,
            "the log ends at {end}, before the end of the backup at {whole}"
        )
        .hint("Segments are missing in the archive."));
    }
    let behind = matches!(target, RestoreTarget::Position(position) if *position > end);
    let marks_it = matches!(target, RestoreTarget::Time(_) | RestoreTarget::Name(_));
    if behind || marks_it && !reached {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "recovery ended before configured recovery target was reached"
        )
        .detail(format!("The log ends at {end}.")));
    }
    Ok(wanted)
}

/// The mark of a record.
fn marked<T>(record: &Record<'_>, of: &dyn Fn(u8, &[u8]) -> Option<T>) -> Result<Option<T>> {
    if record.kind != CHANGES {
        return Ok(None);
    }
    let (_, mut payloads) = record.pages()?;
    let mut found = None;
    while !payloads.is_empty() {
        let (code, len) = (payloads.u8()?, payloads.u32()? as usize);
        found = of(code, payloads.bytes(len)?).or(found);
    }
    Ok(found)
}

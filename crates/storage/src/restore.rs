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
use crate::wal::reader::LogReader;
use crate::wal::record::{CHANGES, Record};
use crate::wal::segment::Segments;

/// Where a restore ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreTarget {
    /// At the end of the log.
    End,
    /// As soon as the copy is whole.
    Immediate,
    /// With the last record that ends here or before.
    Position(Lsn),
    /// With the last mark of a time that is not later, in microseconds since 2000-01-01 UTC.
    Time(i64),
}

/// Gets a segment by the name that PostgreSQL's programs give it, into a file; false: there is none.
pub type Fetch<'a> = &'a mut dyn FnMut(&str, &Path) -> Result<bool>;

/// The time that a payload with this code marks.
pub type TimeOf<'a> = &'a dyn Fn(u8, &[u8]) -> Option<i64>;

/// Fetches the log for a copy, and cuts it at the target; where that is.
///
/// # Errors
/// `55006` when a server has the directory; `58P01`, `XX001` when the log does not reach the end of the copy;
/// `22023` for a target before that or behind the end of the log; I/O.
pub fn restore(
    dir: &Path,
    target: RestoreTarget,
    fetch: Fetch<'_>,
    time_of: TimeOf<'_>,
) -> Result<Lsn> {
    Control::read(dir)?;
    let _lock = DirLock::take(dir)?;
    adopt_log(dir)?;
    let mut control = Control::read(dir)?;
    let segments = Segments::new(dir, control.segment_size, None);
    fetch_all(dir, &segments, control.redo, fetch)?;
    let end = find(&segments, &control, target, time_of)?;
    segments.cut_at(end.0).map_err(|e| Error::io("cut the write-ahead log", &e))?;
    (control.durable, control.clean) = (end, false);
    control.write(dir, true)?;
    Ok(end)
}

/// Segments of the archive go before those that came with the copy, of which the last is not full.
fn fetch_all(dir: &Path, segments: &Segments, redo: Lsn, fetch: Fetch<'_>) -> Result<()> {
    let failed = |e: io::Error| Error::io("keep a segment of the archive", &e);
    let in_each = (1 << 32) / segments.size;
    let folder = dir.join("wal");
    fs::create_dir_all(&folder).map_err(failed)?;
    for number in redo.0 / segments.size.. {
        let name = format!("{:08X}{:08X}{:08X}", 1, number / in_each, number % in_each);
        let aside = folder.join("restored.tmp");
        let _ = fs::remove_file(&aside);
        if !fetch(&name, &aside)? {
            break;
        }
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
    target: RestoreTarget,
    time_of: TimeOf<'_>,
) -> Result<Lsn> {
    let whole = control.durable;
    let mut reader = LogReader::to_look(segments.clone(), control.redo);
    let (mut end, mut marked, mut reached) = (control.redo, None, false);
    while let Some((at, bytes)) = reader.next()? {
        let record = Record::parse(bytes, at)?;
        reached = match target {
            RestoreTarget::End => false,
            RestoreTarget::Immediate => Lsn(at) >= whole,
            RestoreTarget::Position(position) => record.end > position,
            RestoreTarget::Time(time) => match marks(&record, time_of)? {
                Some(mark) if mark > time => true,
                Some(_) => {
                    marked = Some(record.end);
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
        RestoreTarget::Time(_) => marked.ok_or_else(before)?,
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
    let behind = matches!(target, RestoreTarget::Position(position) if position > end);
    if behind || matches!(target, RestoreTarget::Time(_)) && !reached {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "recovery ended before configured recovery target was reached"
        )
        .detail(format!("The log ends at {end}.")));
    }
    Ok(wanted)
}

/// The time that a record marks.
fn marks(record: &Record<'_>, time_of: TimeOf<'_>) -> Result<Option<i64>> {
    if record.kind != CHANGES {
        return Ok(None);
    }
    let (_, mut payloads) = record.pages()?;
    let mut found = None;
    while !payloads.is_empty() {
        let (code, len) = (payloads.u8()?, payloads.u32()? as usize);
        found = time_of(code, payloads.bytes(len)?).or(found);
    }
    Ok(found)
}

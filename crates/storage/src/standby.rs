//! Following another server's log while serving: the log is received, made durable, and applied record by record under
//! the latches that a change takes, beside readers.
//!
//! ```text
//!  stream ─► LogReceiver::write ─► wal/…        Replay::next ─► pages, Participant
//!                  flush ──► `flushed` (ends of records only) ──▲
//! ```
//!
//! * **Nothing is ever added to the log here** before [`Storage::end_following`]: [`crate::wal::Log`] and the
//!   mini-transactions refuse it. The log is the primary's, byte by byte.
//! * A record is applied only when it is durable here, so a page on the disk is never ahead of the log on the disk.
//! * All pages of a record are latched before the first one changes, as the one who made the record held them. So a
//!   reader never finds half of a split.
//! * The log counts as far as its records are complete. A record of which a part has come is asked for again, and the
//!   primary is told of whole records only, so that it keeps what will be asked for. But a record whose first part is in
//!   a segment before ([`LogReceiver::is_across`]) is gone on with as long as this server runs: a primary without a slot
//!   may have let that segment go, and an archive has no more than whole segments. A primary sends durable records only,
//!   so the rest of the record is what follows.
//! * **A restart begins where a checkpoint of the primary does** ([`Storage::offer_restart`]): from there on the log has an image
//!   of each page at its first change, which a page needs that is torn when this server stops. A position between two
//!   checkpoints of the primary would not do.
//!
//! Left out: files that the primary set aside as nobody's stay here until this server is a primary and starts again.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::{Error, Lsn, RelId, Result, WaitEvent, err};
use sched::io_wait;

use crate::checkpoint::{self, Pace};
use crate::recovery::Redo;
use crate::wal::reader::LogReader;
use crate::wal::record::{self, CUT, HEADER, Record};
use crate::wal::segment::Opened;
use crate::{Storage, core, fatal, wal};

/// Where records begin in a stream of bytes.
#[derive(Debug)]
struct Boundaries {
    /// The record that is not complete, or has not begun.
    begun: u64,
    /// Where the next one begins, once the first word of this one is known.
    next: u64,
    /// Bytes of the first word of the record at `next`.
    word: Vec<u8>,
}

impl Boundaries {
    fn new(at: u64) -> Boundaries {
        Boundaries { begun: at, next: at, word: Vec::with_capacity(4) }
    }

    /// Takes bytes that follow those before.
    fn pass(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let end = at + bytes.len() as u64;
        loop {
            let from = self.next + self.word.len() as u64;
            if from >= end {
                return Ok(());
            }
            let rest = &bytes[(from - at) as usize..];
            let wanted = (4 - self.word.len()).min(rest.len());
            self.word.extend_from_slice(&rest[..wanted]);
            let Ok(word) = <[u8; 4]>::try_from(&*self.word) else { return Ok(()) };
            let len = u64::from(record::len_of(u32::from_le_bytes(word)));
            if len < HEADER as u64 || !len.is_multiple_of(8) {
                return Err(damaged(Lsn(self.next)));
            }
            self.begun = self.next;
            self.next += len;
            self.word.clear();
        }
    }

    /// The end of the last record that is complete in a stream up to `end`.
    fn complete(&self, end: u64) -> u64 {
        if self.next <= end { self.next } else { self.begun }
    }
}

fn damaged(at: Lsn) -> Error {
    err!(DATA_CORRUPTED, "the primary's log has no valid record at {at}")
}

/// Takes the bytes of the primary's log in.
pub struct LogReceiver {
    storage: Arc<Storage>,
    open: Option<(u64, Opened)>,
    written: u64,
    flushed: u64,
    boundaries: Boundaries,
}

impl LogReceiver {
    /// Where the next byte belongs.
    pub fn position(&self) -> Lsn {
        Lsn(self.written)
    }

    /// Whether the last record began in a segment before the one in which the log goes on. The primary may have let
    /// that segment go, so that the rest of the record has to follow here.
    pub fn is_across(&self) -> bool {
        let size = self.storage.core.segments.size;
        self.boundaries.complete(self.written) / size < self.written / size
    }

    /// Writes bytes of the log, which are not durable yet.
    ///
    /// # Errors
    /// `08P01` for bytes that do not follow those before; `XX001` for what is no record.
    pub fn write(&mut self, at: Lsn, mut bytes: &[u8]) -> Result<()> {
        if at.0 != self.written {
            return Err(err!(
                PROTOCOL_VIOLATION,
                "the primary sent the log from {at} on where {} follows",
                Lsn(self.written)
            ));
        }
        self.boundaries.pass(at.0, bytes)?;
        let size = self.storage.core.segments.size;
        while !bytes.is_empty() {
            let (number, offset) = (self.written / size, self.written % size);
            let n = bytes.len().min((size - offset) as usize);
            self.change_segment(number);
            let Some((_, segment)) = &self.open else { unreachable!("it was opened just now") };
            let write = || segment.file.write_all_at(&bytes[..n], offset);
            if let Err(e) = io_wait(WaitEvent::IOWALWrite, write) {
                fatal::stop("write to the write-ahead log", &e);
            }
            self.written += n as u64;
            bytes = &bytes[n..];
        }
        Ok(())
    }

    fn change_segment(&mut self, number: u64) {
        if self.open.as_ref().is_some_and(|(n, _)| *n == number) {
            return;
        }
        self.sync();
        match self.storage.core.segments.open_write(number, false) {
            Ok(segment) => self.open = Some((number, segment)),
            Err(e) => fatal::stop("open a segment of the write-ahead log", &e),
        }
        self.storage.core.signal.prepare_segment(number + 1);
    }

    fn sync(&self) {
        if let Some((_, segment)) = &self.open {
            let sync = || self.storage.core.segments.sync(&segment.file);
            if let Err(e) = io_wait(WaitEvent::IOWALSync, sync) {
                fatal::stop("sync the write-ahead log", &e);
            }
        }
    }

    /// Makes durable what was written; up to where whole records are.
    pub fn flush(&mut self) -> Lsn {
        if self.flushed < self.written {
            self.sync();
            self.flushed = self.written;
            self.storage.core.log.advance(Lsn(self.boundaries.complete(self.written)));
        }
        self.storage.core.log.flushed()
    }
}

/// Applies the log that was received.
pub struct Replay {
    storage: Arc<Storage>,
    reader: LogReader,
    parts: HashMap<u64, Vec<u8>>,
}

/// Waits until nobody uses the end of a relation that is about to be cut off.
pub type BeforeCut<'a> = &'a mut dyn FnMut(RelId) -> Result<()>;

impl Replay {
    /// Everything before this has been applied.
    pub fn position(&self) -> Lsn {
        self.reader.position()
    }

    /// Applies the next record, if it is here; its end.
    ///
    /// # Errors
    /// I/O, damaged records; those of the participant. The record then comes again.
    pub fn next(&mut self, before_cut: BeforeCut<'_>) -> Result<Option<Lsn>> {
        let storage = self.storage.clone();
        let core = &storage.core;
        let end = core.log.flushed();
        self.reader.set_limit(end);
        if self.reader.position() >= end {
            return Ok(None);
        }
        let at = self.reader.position();
        let Some((start, bytes)) = self.reader.next()? else { return Err(damaged(at)) };
        let participant = core.participant()?;
        let record = Record::parse(bytes, start)?;
        let applied = prepare(&record, &*participant, before_cut).and_then(|()| {
            let parts = std::mem::take(&mut self.parts);
            let mut redo =
                Redo::following(&core.files, &storage.pool, &*participant, parts, core.nothing());
            let applied = redo.apply(&record);
            self.parts = redo.into_parts();
            applied
        });
        let (start, end) = (record.start, record.end);
        match applied {
            Ok(()) => Ok(Some(end)),
            Err(error) => {
                self.reader = LogReader::to_follow(core.segments.clone(), start);
                Err(error.context(format!("replay of the log record at {start}")))
            }
        }
    }
}

/// Waits for those who would miss what the record takes away.
fn prepare(
    record: &Record<'_>,
    participant: &dyn crate::Participant,
    before_cut: BeforeCut<'_>,
) -> Result<()> {
    let (_, mut rest) = record.pages()?;
    match record.kind {
        record::CHANGES => {
            while !rest.is_empty() {
                let (code, len) = (rest.u8()?, rest.u32()? as usize);
                participant.before(code, rest.bytes(len)?)?;
            }
            Ok(())
        }
        CUT => before_cut(RelId(rest.u32()?)),
        _ => Ok(()),
    }
}

impl Storage {
    /// Whether the log is another server's, which is applied here.
    #[inline]
    pub fn follows(&self) -> bool {
        self.core.log.follows()
    }

    /// As [`Storage::begin_service`], for a server that follows another one: nothing is written to the log, no
    /// checkpoint is made, and pages change by [`Replay`] only.
    ///
    /// # Errors
    /// I/O errors.
    pub fn begin_following(&self) -> Result<()> {
        let core = &self.core;
        let Some(recovered) = self.recovered.lock().take() else { return Ok(()) };
        if recovered.goes_on != recovered.end {
            return Err(err!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "a standby cannot give up part of the log"
            ));
        }
        core.log.set_follows(true);
        crate::maps::remove_file(&core.dir)?;
        self.put_log_in_order(&recovered)?;
        core.files.sweep_temporary()?;
        let (is_listed, clean) = {
            let control = core.control.lock();
            (control.is_listed(), control.clean)
        };
        if !is_listed {
            core.files.list_all()?;
        }
        if clean {
            core.change_control(|control| control.clean = false)?;
        }
        let for_checkpoints = core.clone();
        let for_writing = core.clone();
        let mut threads = self.threads.lock();
        threads
            .push(sched::spawn_thread("checkpointer", move || checkpoint::run(&for_checkpoints)));
        threads.push(sched::spawn_thread("background writer", move || {
            core::run_background_writer(&for_writing);
        }));
        Ok(())
    }

    /// For the thread that receives the log.
    pub fn receiver(self: &Arc<Storage>) -> LogReceiver {
        let at = self.core.log.flushed().0;
        LogReceiver {
            storage: self.clone(),
            open: None,
            written: at,
            flushed: at,
            boundaries: Boundaries::new(at),
        }
    }

    /// For the thread that applies the log: everything before this has been applied.
    pub fn replay_from(self: &Arc<Storage>, from: Lsn) -> Replay {
        let reader = LogReader::to_follow(self.core.segments.clone(), from);
        Replay { storage: self.clone(), reader, parts: HashMap::new() }
    }

    /// The primary has a checkpoint with this redo position, and everything up to there has been applied: a restart
    /// may begin there.
    pub fn offer_restart(&self, redo: Lsn) {
        let core = &self.core;
        if core.restart_at.fetch_max(redo.0, Ordering::AcqRel) < redo.0 {
            core.signal.logged(true);
        }
    }

    /// Ends following: from here on the log is this server's own. Everything that was received has been applied, and
    /// nothing is received any more; the layers above have made their state that of a server that has recovered.
    ///
    /// # Errors
    /// I/O errors; `XX000` when something is left to be applied.
    pub fn end_following(&self, replay: &Replay) -> Result<Lsn> {
        let core = &self.core;
        let end = replay.position();
        if end != core.log.flushed() {
            return Err(Error::internal("part of the log was not applied"));
        }
        // One that is under way takes no more time than it needs.
        core.signal.logged(true);
        let _no_checkpoint = core.checkpointing.lock();
        let failed = |e: io::Error| Error::io("put the write-ahead log in order", &e);
        core.segments.cut_at(end.0).map_err(failed)?;
        core.segments.prepare(end.0 / core.segments.size).map_err(failed)?;
        core.log.start_at(end, core.control.lock().redo);
        let thread = wal::spawn_writer(&core.log, &core.segments);
        *self.wal_thread.lock() = Some(thread.map_err(|e| Error::io("start the WAL writer", &e))?);
        self.serves.store(true, Ordering::Release);
        core.log.set_follows(false);
        core.signal.wake();
        Ok(end)
    }
}

/// Moves the position at which a restart begins to the newest checkpoint of the primary that was offered.
pub(crate) fn make_restart_point(core: &core::Core, pace: &Pace) -> Result<()> {
    let before = core.control.lock().redo;
    let redo = Lsn(core.restart_at.load(Ordering::Acquire));
    if redo <= before {
        return Ok(());
    }
    let state = core.participant()?.checkpoint(redo)?;
    checkpoint::write_out(core, pace)?;
    core.change_control(|control| {
        control.clean = false;
        control.redo = redo;
        control.state = state;
    })?;
    checkpoint::recycle(core, redo.0, redo.0 - before.0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_records_are_found_however_the_bytes_come() {
        let mut log = Vec::new();
        for len in [24_u32, 48, 1024] {
            let at = log.len();
            log.resize(at + len as usize, 7);
            log[at..at + 4].copy_from_slice(&(len | 3 << 24).to_le_bytes());
        }
        for step in [1, 3, 7, 25, 2000] {
            let mut boundaries = Boundaries::new(4096);
            let mut at = 4096_u64;
            for bytes in log.chunks(step) {
                boundaries.pass(at, bytes).unwrap();
                at += bytes.len() as u64;
                let whole = [0_u64, 24, 72, 1096].into_iter().rev().find(|end| 4096 + end <= at);
                assert_eq!(Some(boundaries.complete(at) - 4096), whole, "{step} {at}");
            }
        }
        assert!(Boundaries::new(0).pass(0, &[9, 0, 0, 0]).is_err());
    }
}

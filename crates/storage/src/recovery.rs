//! Redo: applies the log from the last checkpoint's redo position to its end.
//!
//! Crash cases, one by one:
//!
//! * **A page torn by the crash.** The first record that touched it after the redo position has its
//!   image or starts it from zero, so it is overwritten without being read. (Hints never make
//!   a page dirty, so no page is written that no record has touched.)
//! * **A page that was written and is newer than a record.** Its LSN says so, and the record is passed
//!   by. Images and inits are applied whatever the page says: the records that follow are all there.
//! * **A page that was not written.** Every record applies.
//! * **A file that is missing or too short**: made and extended here; a file whose creation was
//!   logged but that has no page yet, too.
//! * **A file that was cut**: a cut is logged and the log flushed before the file is cut, and no
//!   checkpoint takes its redo position in between; redo cuts again.
//! * **A relation that was dropped**: its records make files again that nobody knows; the layer
//!   above, which knows its relations, sweeps them.
//! * **The log's last record half written**, or one missing before others that reached the disk: the
//!   log ends at the first place without a valid record; nothing from there on was acknowledged. The
//!   rest is wiped before anything new is logged, so that no record of the lost part can ever
//!   follow a new one ([`crate::wal::segment::Segments::cut_at`]).
//! * **A crash during recovery**: the control file is as before, and redo starts again. Pages
//!   written meanwhile carry the LSNs of records that were synced before they were applied.
//! * **A crash during a checkpoint**: the control file names the one before until the new one is
//!   complete.

use std::collections::HashMap;

use base::{Error, Lsn, Result, err};

use crate::buffer::WriteGuard;
use crate::files::Files;
use crate::wal::reader::LogReader;
use crate::wal::record::{
    self, CHANGES, CREATED, CUT, FILLER, IMAGE, INIT, LAST_PART, PART, PageEntry, Record,
};
use crate::{BufferPool, Participant, page};

/// What redo works on.
pub(crate) struct Redo<'a> {
    files: &'a Files,
    pool: &'a BufferPool,
    participant: &'a dyn Participant,
    /// Large payloads of which not all parts have come.
    parts: HashMap<u64, Vec<u8>>,
}

impl<'a> Redo<'a> {
    pub(crate) fn new(
        files: &'a Files,
        pool: &'a BufferPool,
        participant: &'a dyn Participant,
    ) -> Redo<'a> {
        Redo { files, pool, participant, parts: HashMap::new() }
    }

    /// Applies all records; returns where the log ends and how many there were.
    pub(crate) fn run(&mut self, reader: &mut LogReader) -> Result<(Lsn, u64)> {
        let mut records = 0;
        while let Some((start, bytes)) = reader.next()? {
            let record = Record::parse(bytes, start)?;
            self.apply(&record).map_err(|e| in_record(e, &record))?;
            records += 1;
        }
        Ok((reader.position(), records))
    }

    fn apply(&mut self, record: &Record<'_>) -> Result<()> {
        match record.kind {
            FILLER => Ok(()),
            CHANGES => self.apply_changes(record),
            CREATED => {
                let (_, mut body) = record.pages()?;
                self.files.create(base::RelId(body.u32()?), base::Fork::Main)
            }
            CUT => {
                let (_, mut body) = record.pages()?;
                let (rel, fork, blocks) = (base::RelId(body.u32()?), body.fork()?, body.u32()?);
                let before = self.files.block_count(rel, fork)?;
                self.pool.pool.forget(rel, fork, blocks..before.max(blocks));
                self.files.cut(rel, fork, blocks)
            }
            PART => {
                let (_, mut body) = record.pages()?;
                let (id, first) = (body.u64()?, body.u8()? != 0);
                let payload = self.parts.entry(id).or_default();
                if first {
                    payload.clear();
                }
                payload.extend_from_slice(body.0);
                Ok(())
            }
            LAST_PART => {
                let (_, mut body) = record.pages()?;
                let (id, code) = (body.u64()?, body.u8()?);
                let mut payload = self.parts.remove(&id).unwrap_or_default();
                payload.extend_from_slice(body.0);
                self.participant.redo(code, &payload, record.end)
            }
            other => Err(err!(DATA_CORRUPTED, "unknown kind of log record: {other}")),
        }
    }

    fn apply_changes(&self, record: &Record<'_>) -> Result<()> {
        let (pages, mut payloads) = record.pages()?;
        for (index, entry) in pages.iter().enumerate() {
            if entry.flags & record::UNCHANGED == 0 {
                self.apply_page(record, index, entry)?;
            }
        }
        while !payloads.is_empty() {
            let (code, len) = (payloads.u8()?, payloads.u32()? as usize);
            self.participant.redo(code, payloads.bytes(len)?, record.end)?;
        }
        Ok(())
    }

    fn apply_page(&self, record: &Record<'_>, index: usize, entry: &PageEntry<'_>) -> Result<()> {
        self.files.ensure(entry.id)?;
        let whole = entry.flags & (INIT | IMAGE) != 0;
        let pinned = if whole { self.pool.pin_new(entry.id)? } else { self.pool.pin(entry.id)? };
        let mut guard: WriteGuard = pinned.write();
        if !whole && guard.lsn() >= record.end {
            return Ok(());
        }
        guard.make_dirty();
        let page = guard.page_mut();
        match &entry.image {
            Some(image) => image.restore(page)?,
            None => {
                if entry.flags & INIT != 0 {
                    page.fill(0);
                }
                record::apply_ops(record.ops, index, page)?;
            }
        }
        page::set_lsn(page, record.end);
        Ok(())
    }
}

fn in_record(error: Error, record: &Record<'_>) -> Error {
    error.context(format!("redo of the log record at {}", record.start))
}

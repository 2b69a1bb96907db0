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
//! * **A file that the last checkpoint's list names and that is missing or shorter**: a removal or a cut that
//!   is in the log explains it; anything else is damage, which stops the start before anything is written.
//! * **A relation that was dropped**: its records are passed by, and what is left of its files is removed.
//!   Where the record of that is lost, its files are made again by records before it, and nobody knows
//!   them; the layer above, which knows its relations, has them set aside.
//! * **The log's last record half written**, or one missing before others that reached the disk: the
//!   log ends at the first place without a valid record; nothing from there on was acknowledged, which
//!   [`crate::wal::survey`] has made sure of. The rest is wiped before anything new is logged, so that no
//!   record of the lost part can ever follow a new one ([`crate::wal::segment::Segments::cut_at`]).
//! * **A crash during recovery**: the control file is as before, and redo starts again. Pages
//!   written meanwhile carry the LSNs of records that were synced before they were applied.
//! * **A crash during a checkpoint**: the control file names the one before until the new one is
//!   complete.
//!
//! When the user has given up what lies behind a damaged place, pages may be newer than the log, and ids may
//! have been given out that it does not tell of: the log goes on far behind every position that there was,
//! and so do ids ([`crate::Participant::lost`]).

use std::collections::{HashMap, HashSet};

use base::{Error, RelId, Result, err};

use crate::BufferPool;
use crate::buffer::WriteGuard;
use crate::files::Files;
use crate::maps::SavedMaps;
use crate::page;
use crate::participant::Participant;
use crate::wal::reader::LogReader;
use crate::wal::record::{
    self, CHANGES, CREATED, CUT, DROPPED, FILLER, IMAGE, INIT, LAST_PART, PART, PageEntry, Record,
};
use crate::wal::survey::Survey;

/// The state that redo works on.
pub(crate) struct Redo<'a> {
    files: &'a Files,
    pool: &'a BufferPool,
    participant: &'a dyn Participant,
    /// Large payloads of which not all parts have come.
    parts: HashMap<u64, Vec<u8>>,
    /// Relations whose files are going to be removed.
    dropped: &'a HashSet<RelId>,
    /// To be told of the pages that change. None beside readers.
    maps: Option<&'a SavedMaps>,
    /// Readers are there: see [`crate::standby`].
    follows: bool,
}

impl<'a> Redo<'a> {
    pub(crate) fn new(
        files: &'a Files,
        pool: &'a BufferPool,
        participant: &'a dyn Participant,
        survey: &'a Survey,
        maps: &'a SavedMaps,
    ) -> Redo<'a> {
        let (dropped, maps) = (&survey.dropped, Some(maps));
        Redo { files, pool, participant, parts: HashMap::new(), dropped, maps, follows: false }
    }

    /// For records that are applied beside readers.
    pub(crate) fn following(
        files: &'a Files,
        pool: &'a BufferPool,
        participant: &'a dyn Participant,
        parts: HashMap<u64, Vec<u8>>,
        dropped: &'a HashSet<RelId>,
    ) -> Redo<'a> {
        Redo { files, pool, participant, parts, dropped, maps: None, follows: true }
    }

    /// Large payloads of which not all parts have come.
    pub(crate) fn into_parts(self) -> HashMap<u64, Vec<u8>> {
        self.parts
    }

    /// Applies the records that the survey has seen.
    pub(crate) fn run(&mut self, reader: &mut LogReader, survey: &Survey) -> Result<()> {
        while reader.position() < survey.end
            && let Some((start, bytes)) = reader.next()?
        {
            let record = Record::parse(bytes, start)?;
            self.apply(&record).map_err(|e| in_record(e, &record))?;
        }
        Ok(())
    }

    pub(crate) fn apply(&mut self, record: &Record<'_>) -> Result<()> {
        match record.kind {
            FILLER => Ok(()),
            CHANGES => self.apply_changes(record),
            CREATED => {
                let (_, mut body) = record.pages()?;
                match RelId(body.u32()?) {
                    rel if self.dropped.contains(&rel) => Ok(()),
                    rel => self.files.create(rel, base::Fork::Main),
                }
            }
            CUT => {
                let (_, mut body) = record.pages()?;
                let (rel, fork, blocks) = (RelId(body.u32()?), body.fork()?, body.u32()?);
                if self.dropped.contains(&rel) {
                    return Ok(());
                }
                let before = self.files.block_count(rel, fork)?;
                self.pool.pool.forget(rel, fork, blocks..before.max(blocks));
                if let Some(maps) = self.maps.filter(|_| fork == base::Fork::Main) {
                    maps.cut(rel, blocks);
                }
                self.files.cut(rel, fork, blocks)?;
                self.files.note_length(rel, fork)
            }
            DROPPED => {
                let (_, mut body) = record.pages()?;
                let rel = RelId(body.u32()?);
                if let Some(maps) = self.maps {
                    maps.remove(rel);
                }
                let forks = self.files.mark_dropped(rel)?;
                if self.follows {
                    for (fork, blocks) in forks {
                        self.pool.pool.forget(rel, fork, 0..blocks);
                    }
                }
                self.files.remove(rel)
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

    fn apply_changes(&mut self, record: &Record<'_>) -> Result<()> {
        let (pages, mut payloads) = record.pages()?;
        // While others read, all pages are latched before the first one changes.
        let mut latched = Vec::new();
        for (index, entry) in pages.iter().enumerate() {
            if let Some(maps) = self.maps {
                maps.clear(entry.id);
            }
            if entry.flags & record::UNCHANGED != 0 || self.dropped.contains(&entry.id.rel) {
                continue;
            }
            let guard = self.latch(entry)?;
            match self.follows {
                true => latched.push((index, guard)),
                false => apply_page(record, index, entry, guard)?,
            }
        }
        let mut kept = Vec::with_capacity(latched.len());
        for (index, guard) in latched {
            kept.push(apply_latched(record, index, &pages[index], guard)?);
        }
        drop(kept);
        while !payloads.is_empty() {
            let (code, len) = (payloads.u8()?, payloads.u32()? as usize);
            self.participant.redo(code, payloads.bytes(len)?, record.end)?;
        }
        Ok(())
    }

    /// The page of an entry, latched.
    fn latch(&self, entry: &PageEntry<'_>) -> Result<WriteGuard> {
        self.files.ensure(entry.id)?;
        // A page that is not read is one of zeros until its record is applied: nobody may look at it meanwhile.
        let unread = entry.flags & (INIT | IMAGE) != 0 && !self.follows;
        let pinned = if unread { self.pool.pin_new(entry.id)? } else { self.pool.pin(entry.id)? };
        Ok(pinned.write())
    }
}

fn apply_page(
    record: &Record<'_>,
    index: usize,
    entry: &PageEntry<'_>,
    guard: WriteGuard,
) -> Result<()> {
    apply_latched(record, index, entry, guard).map(drop)
}

/// Brings a page to the record's end.
fn apply_latched(
    record: &Record<'_>,
    index: usize,
    entry: &PageEntry<'_>,
    mut guard: WriteGuard,
) -> Result<WriteGuard> {
    let whole = entry.flags & (INIT | IMAGE) != 0;
    if !whole && guard.lsn() >= record.end {
        return Ok(guard);
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
    Ok(guard)
}

fn in_record(error: Error, record: &Record<'_>) -> Error {
    error.context(format!("redo of the log record at {}", record.start))
}

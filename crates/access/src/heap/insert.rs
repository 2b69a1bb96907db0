//! Adding rows, and finding or making the pages that take them.
//!
//! A worker fills its own page ([`crate::space`]); bulk loads fill the page of their
//! [`InsertHint`]. When no page has room the file is extended under the heavyweight lock
//! [`LockTag::Extend`] (see [`crate::extension`]). Latches are never held meanwhile.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use base::faults::{self, Fault};
use base::{Fork, PageId, Result, TupleId, WaitEvent, Xid, err};
use storage::{Mtr, PageRef, WriteGuard};
use txn::{LockMode, LockTag, LockWait, Transaction};

use super::page::{self, HEADER, MAX_ROW};
use super::{Heap, InsertHint};
use crate::extension::{self, Extension, timed};
use crate::space::{Space, Taken};

/// Pages at the file's end that are looked at after a start.
const SEED_PAGES: u32 = 16;

/// Refuses rows that no page can hold.
pub(super) fn check_size(len: usize) -> Result<()> {
    if len > MAX_ROW {
        return Err(err!(
            PROGRAM_LIMIT_EXCEEDED,
            "row is too big: size {}, maximum size {}",
            len + HEADER,
            MAX_ROW + HEADER
        ));
    }
    Ok(())
}

impl Heap {
    /// Adds a row.
    ///
    /// # Errors
    /// `54000` when the row is larger than a page.
    pub fn insert(&self, tx: &Transaction, data: &[u8], hint: &mut InsertHint) -> Result<TupleId> {
        check_size(data.len())?;
        let head = page::new_header(tx.xid()?, tx.command(), 0);
        let guard = self.page_with_room(tx, page::space_for(data.len()), None)?;
        tx.adds_row(self.rel)?;
        faults::reach(Fault::HeapInsert)?;
        let block = guard.id().block;
        self.check_used(block, guard.page())?;
        let mut mtr = self.storage.mtr();
        let target = mtr.add(guard);
        page::init_if_new(&mut mtr, target);
        self.state.visible.clear(block);
        let offset = page::add_version(&mut mtr, target, &head, data);
        mtr.commit();
        hint.block = Some(block);
        Ok(TupleId { block, offset })
    }

    /// Adds many rows, filling each page with one log record. Returns their places in order.
    pub fn insert_many(
        &self,
        tx: &Transaction,
        rows: &[&[u8]],
        hint: &mut InsertHint,
    ) -> Result<Vec<TupleId>> {
        for row in rows {
            check_size(row.len())?;
        }
        let (xid, command) = (tx.xid()?, tx.command());
        let mut places = Vec::with_capacity(rows.len());
        let mut left = rows;
        while let Some(first) = left.first() {
            let bytes: usize = left.iter().map(|r| page::space_for(r.len())).sum();
            let guard = self.bulk_page(tx, hint, page::space_for(first.len()), bytes)?;
            tx.adds_row(self.rel)?;
            faults::reach(Fault::HeapInsert)?;
            let block = guard.id().block;
            self.check_used(block, guard.page())?;
            let mut mtr = self.storage.mtr();
            let target = mtr.add(guard);
            page::init_if_new(&mut mtr, target);
            self.state.visible.clear(block);
            let count = fill(&mut mtr, target, block, left, (xid, command), &mut places);
            let room = page::room(mtr.page(target));
            mtr.commit();
            left = &left[count..];
            hint.block = Some(block);
            if left.is_empty() && !self.state.space.is_target(block) {
                // Others may fill what is left of the last page.
                self.state.space.give(block, room);
            }
            sched::check_interrupts()?;
        }
        Ok(places)
    }

    /// The page of the hint if it has room, else the emptiest that the map has, else a fresh one.
    fn bulk_page(
        &self,
        tx: &Transaction,
        hint: &mut InsertHint,
        need: usize,
        bytes: usize,
    ) -> Result<WriteGuard> {
        // Vacuum may have cut the file since; and then it may have grown again.
        if let Some(block) = hint.block.take()
            && block < self.storage.block_count(self.rel, Fork::Main)?
            && !self.state.space.is_fresh(block)
        {
            // Also one that workers fill: it has the rows before these.
            let guard = self.pin(block)?.write();
            let room = page::room(guard.page());
            if room >= need {
                return Ok(guard);
            }
            if !self.state.space.is_target(block) {
                self.state.space.give(block, room);
            }
        }
        let pages = (bytes / (storage::PAGE_SIZE - 512)) as u32;
        if pages == 0 {
            return self.page_with_room(tx, need, None);
        }
        let space = &self.state.space;
        loop {
            match space.take_roomy(need) {
                Some(taken) => {
                    let guard = self.pin_taken(taken)?.write();
                    let room = page::room(guard.page());
                    if room >= need {
                        return Ok(guard);
                    }
                    // The map was older than the page.
                    space.give(taken.block, room);
                }
                None if !space.seeded.swap(true, Relaxed) => {
                    sched::at_work(WaitEvent::IORelationExtendSearch, || self.seed())?;
                }
                None => self.extend(tx, pages)?,
            }
        }
    }

    pub(crate) fn pin(&self, block: u32) -> Result<storage::Pinned> {
        self.storage.pool.pin(PageId::main(self.rel, block))
    }

    /// Pins a page in passing: by a scan of a large table, or vacuum.
    pub(crate) fn pin_scan(&self, block: u32) -> Result<storage::Pinned> {
        self.storage.pool.pin_scan(PageId::main(self.rel, block))
    }

    fn pin_taken(&self, taken: Taken) -> Result<storage::Pinned> {
        let id = PageId::main(self.rel, taken.block);
        if !taken.fresh {
            return self.storage.pool.pin(id);
        }
        let mut arrival = Arrival { space: &self.state.space, block: taken.block, arrived: false };
        let pinned = self.storage.pool.pin_new(id)?;
        arrival.arrived = true;
        Ok(pinned)
    }

    /// A page, latched, with at least `need` bytes of room; not `except`.
    pub(super) fn page_with_room(
        &self,
        tx: &Transaction,
        need: usize,
        except: Option<u32>,
    ) -> Result<WriteGuard> {
        let space = &self.state.space;
        loop {
            let target = space.target();
            if let Some(block) = target
                && Some(block) != except
            {
                let guard = match self.pin(block)?.try_write() {
                    Ok(guard) => guard,
                    Err(pinned) => {
                        space.note_meeting();
                        if space.target() != Some(block) {
                            continue;
                        }
                        pinned.write()
                    }
                };
                let room = page::room(guard.page());
                if room >= need {
                    return Ok(guard);
                }
                drop(guard);
                space.retire_target(block, room);
            }
            match space.take(need) {
                Some(taken) if Some(taken.block) == except => continue,
                Some(taken) => {
                    // Bring it in before it becomes the target of others.
                    let guard = self.pin_taken(taken)?.write();
                    let room = page::room(guard.page());
                    let seen = target.filter(|t| Some(*t) == except);
                    if !space.set_target(seen, taken.block) {
                        // Another worker was faster: both fill its page.
                        drop(guard);
                        space.give(taken.block, room);
                    } else if room >= need {
                        return Ok(guard);
                    }
                }
                None if !space.seeded.swap(true, Relaxed) => {
                    sched::at_work(WaitEvent::IORelationExtendSearch, || self.seed())?;
                }
                None => self.extend(tx, 0)?,
            }
        }
    }

    /// After a start: registers the room in the file's last pages.
    fn seed(&self) -> Result<()> {
        let blocks = self.storage.block_count(self.rel, Fork::Main)?;
        for block in blocks.saturating_sub(SEED_PAGES)..blocks {
            if self.state.space.is_target(block) {
                continue;
            }
            let pinned = self.pin(block)?;
            let room = page::room(pinned.read().page());
            self.state.space.give(block, room);
        }
        Ok(())
    }

    /// Adds pages to the file, unless another task did while this one waited. `bulk`: pages that
    /// the caller is going to fill.
    fn extend(&self, tx: &Transaction, bulk: u32) -> Result<()> {
        let mut extension = Extension::default();
        let (turn, before) = Extender::new(&self.state.space.extenders);
        let prepared = timed(&mut extension.evict, || {
            sched::at_work(WaitEvent::IORelationExtendEvict, || self.evict_ahead(before, bulk))
        });
        let granted = prepared.and_then(|()| self.lock_extension(tx, &mut extension));
        let waiting = turn.others();
        drop(turn);
        let done = granted.and_then(|()| {
            let done = self.extend_locked(waiting, bulk, &mut extension);
            let tag = LockTag::Extend(self.rel);
            tx.manager().locks.unlock(tx.locks(), tag, LockMode::Exclusive);
            done
        });
        self.state.extension.add(&extension);
        done
    }

    /// Evicts what has to go for the pages that are about to be added.
    fn evict_ahead(&self, waiting: u32, bulk: u32) -> Result<()> {
        if extension::is_locked() {
            return Ok(());
        }
        let blocks = self.storage.block_count(self.rel, Fork::Main)?;
        let pages = extension::pages_to_add(blocks, waiting, bulk);
        self.storage.pool.make_room(pages as usize)
    }

    fn lock_extension(&self, tx: &Transaction, extension: &mut Extension) -> Result<()> {
        let locks = &tx.manager().locks;
        let tag = LockTag::Extend(self.rel);
        if locks.lock(tx.locks(), tag, LockMode::Exclusive, LockWait::Try)? {
            return Ok(());
        }
        extension.waited = true;
        timed(&mut extension.lock, || {
            locks.lock(tx.locks(), tag, LockMode::Exclusive, LockWait::Block).map(drop)
        })
    }

    fn extend_locked(&self, waiting: u32, bulk: u32, extension: &mut Extension) -> Result<()> {
        let space = &self.state.space;
        if space.fresh_count() > 0 {
            return Ok(());
        }
        let blocks = self.storage.block_count(self.rel, Fork::Main)?;
        let count = extension::pages_to_add(blocks, waiting, bulk);
        space.begin_extension(blocks);
        let coming = Coming(space);
        let extended = timed(&mut extension.io, || {
            faults::reach(Fault::HeapExtend)?;
            self.storage.extend(self.rel, Fork::Main, count)
        });
        std::mem::forget(coming);
        let first = *extended.as_ref().unwrap_or(&0);
        extension.pages = if extended.is_ok() { count } else { 0 };
        let added = first..first + extension.pages;
        let brought_in = if extension::is_locked() {
            timed(&mut extension.evict, || {
                sched::at_work(WaitEvent::IORelationExtendFill, || self.bring_in(added.clone()))
            })
        } else {
            Ok(())
        };
        space.add_fresh(added);
        extended.and(brought_in)
    }

    /// Gives fresh pages their place in memory.
    fn bring_in(&self, blocks: std::ops::Range<u32>) -> Result<()> {
        for block in blocks {
            self.storage.pool.pin_new(PageId::main(self.rel, block))?;
        }
        Ok(())
    }
}

/// One of those who want to extend the file, until dropped.
struct Extender<'a>(&'a AtomicU32);

impl<'a> Extender<'a> {
    /// With the number of those before it.
    fn new(count: &'a AtomicU32) -> (Extender<'a>, u32) {
        let before = count.fetch_add(1, Relaxed);
        (Extender(count), before)
    }

    fn others(&self) -> u32 {
        self.0.load(Relaxed) - 1
    }
}

impl Drop for Extender<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// A fresh page on its way into memory.
struct Arrival<'a> {
    space: &'a Space,
    block: u32,
    arrived: bool,
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        self.space.fresh_arrived(self.block, self.arrived);
    }
}

/// Pages that are about to be fresh; dropped by unwinding: none came.
struct Coming<'a>(&'a Space);

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        self.0.add_fresh(0..0);
    }
}

/// Fills a page with as many of the rows as fit; at least one does.
fn fill(
    mtr: &mut Mtr<'_>,
    target: PageRef,
    block: u32,
    rows: &[&[u8]],
    (xid, command): (Xid, u32),
    places: &mut Vec<TupleId>,
) -> usize {
    let head = page::new_header(xid, command, 0);
    let now = mtr.page(target);
    if page::flags(now) & page::FREE_LINES != 0 {
        // Line pointers that vacuum freed are taken one by one.
        let mut count = 0;
        while let Some(row) = rows.get(count)
            && page::space_for(row.len()) <= page::room(mtr.page(target))
        {
            let offset = page::add_version(mtr, target, &head, row);
            places.push(TupleId { block, offset });
            count += 1;
        }
        debug_assert!(count > 0);
        return count;
    }
    let (lower, upper, before) = (page::lower(now), page::upper(now), page::line_count(now));
    let mut room = page::room(now);
    let mut count = 0;
    while let Some(row) = rows.get(count)
        && page::space_for(row.len()) <= room
    {
        room -= page::space_for(row.len());
        count += 1;
    }
    let bytes: usize = rows[..count].iter().map(|r| page::align(HEADER + r.len())).sum();
    let mut versions = vec![0; bytes];
    let mut lines = Vec::with_capacity(count);
    let mut at = bytes;
    for (i, row) in rows[..count].iter().enumerate() {
        at -= page::align(HEADER + row.len());
        versions[at..at + HEADER].copy_from_slice(&head);
        versions[at + HEADER..at + HEADER + row.len()].copy_from_slice(row);
        lines.push(page::Line::Normal(upper - bytes + at, HEADER + row.len()));
        places.push(TupleId { block, offset: before + 1 + i as u16 });
    }
    debug_assert!(count > 0 && lower + 4 * count <= upper - bytes);
    page::put_bounds(mtr, target, lower + 4 * count, upper - bytes);
    page::put_lines(mtr, target, before + 1, &lines);
    mtr.put(target, upper - bytes, &versions);
    count
}

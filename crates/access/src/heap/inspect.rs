//! The contents of a table's pages, for those who look at them: versions alive and dead, room, faults.

use base::{Result, TupleId, Xid};
use storage::Page;
use txn::{TxnManager, XidStatus};

use super::Heap;
use super::page::{self, Line};
use super::prune::VisibilityHorizon;
use crate::visibility_map::is_all_visible;

/// The versions of a table or a page, with their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Contents {
    /// Versions that are not ended, or being inserted.
    pub live: u64,
    /// Their bytes, headers included.
    pub live_bytes: u64,
    /// Versions that are ended or rolled back.
    pub dead: u64,
    /// Their bytes.
    pub dead_bytes: u64,
    /// Bytes between line pointers and versions.
    pub free_bytes: u64,
}

impl Heap {
    /// The contents of a page.
    ///
    /// # Errors
    /// I/O.
    pub fn contents(&self, manager: &TxnManager, block: u32) -> Result<Contents> {
        let pinned = self.pin_scan(block)?;
        let guard = pinned.read();
        let page = guard.page();
        let mut out = Contents::default();
        if page::is_new(page) {
            out.free_bytes = page::EMPTY_PAGE as u64;
            return Ok(out);
        }
        out.free_bytes = page::upper(page).saturating_sub(page::lower(page)) as u64;
        for (_, line) in page::lines(page) {
            let Line::Normal(at, len) = line else { continue };
            let mask = page::mask(page, at);
            let aborted = manager.status(Xid(page::xmin(page, at))) == XidStatus::Aborted;
            let xmax = page::xmax(page, at);
            let ended = xmax != 0
                && mask & page::LOCK_ONLY == 0
                && matches!(manager.status(Xid(xmax)), XidStatus::Committed(_));
            if aborted || ended || mask & page::STUB != 0 {
                out.dead += 1;
                out.dead_bytes += len as u64;
            } else {
                out.live += 1;
                out.live_bytes += len as u64;
            }
        }
        Ok(out)
    }

    /// Whether a page is noted as seen whole by everybody, and whether it is.
    ///
    /// # Errors
    /// I/O.
    pub fn visibility(&self, manager: &TxnManager, block: u32) -> Result<(bool, bool)> {
        let pinned = self.pin_scan(block)?;
        let guard = pinned.read();
        let mut horizon = VisibilityHorizon::now(manager);
        // A page without rows hides none.
        let empty = page::is_new(guard.page()) || page::line_count(guard.page()) == 0;
        let is = empty || is_all_visible(guard.page(), &mut horizon);
        Ok((empty || self.state.visible.has(block), is))
    }

    /// The versions of a page that running transactions have locked, or are ending: where each is, by whom, and its mode as
    /// PostgreSQL words it. Locks that share a row are elsewhere, in memory.
    ///
    /// # Errors
    /// I/O.
    pub fn locked(
        &self,
        manager: &TxnManager,
        own: Xid,
        block: u32,
    ) -> Result<Vec<(TupleId, Xid, &'static str)>> {
        let pinned = self.pin_scan(block)?;
        let guard = pinned.read();
        let page = guard.page();
        let mut out = Vec::new();
        for (offset, line) in page::lines(page) {
            let Line::Normal(at, _) = line else { continue };
            let (xmax, mask) = (Xid(page::xmax(page, at)), page::mask(page, at));
            let only = mask & page::LOCK_ONLY != 0;
            let running = xmax.0 != 0 && manager.status(xmax) == XidStatus::Running;
            if !running || xmax == own && !only {
                continue;
            }
            let mode = match (only, mask & page::KEYS != 0) {
                (true, true) => "For Update",
                (true, false) => "For No Key Update",
                (false, true) => "Update",
                (false, false) => "No Key Update",
            };
            out.push((TupleId { block, offset }, xmax, mode));
        }
        Ok(out)
    }

    /// A page's bytes as they are in memory.
    ///
    /// # Errors
    /// I/O.
    pub fn raw(&self, block: u32) -> Result<Vec<u8>> {
        Ok(self.pin(block)?.read().page().to_vec())
    }

    /// Reads pages into memory; returns how many.
    ///
    /// # Errors
    /// I/O, interrupts.
    pub fn read_pages(&self, blocks: std::ops::RangeInclusive<u32>) -> Result<u64> {
        let mut read = 0;
        for block in blocks {
            sched::check_interrupts()?;
            drop(self.pin(block)?);
            read += 1;
        }
        Ok(read)
    }
}

/// A line pointer and its version, as a page has them.
#[derive(Clone, Debug)]
pub struct Item {
    /// The line pointer's number, from 1.
    pub number: u16,
    /// 0: unused, 1: a version, 2: the chain goes on elsewhere in the page, 3: dead.
    pub state: u8,
    /// Where the version is, or the number of the line pointer at which the chain goes on.
    pub offset: u16,
    /// The version's bytes.
    pub len: u16,
    /// Its header and the row's bytes.
    pub version: Option<Version>,
}

/// A version, as a page has it.
#[derive(Clone, Debug)]
pub struct Version {
    /// See [`page::Header`].
    pub header: page::Header,
    /// The row's bytes.
    pub row: Vec<u8>,
}

/// Line pointers and versions of a page; None: it is no page of a table.
pub fn items(page: &Page) -> Option<Vec<Item>> {
    let sound = page::kind(page) == page::KIND_HEAP
        && page::lower(page) <= page::upper(page)
        && page::upper(page) <= page.len();
    if !sound {
        return page::is_new(page).then(Vec::new);
    }
    let item = |(number, line)| {
        let (state, offset, len) = match line {
            Line::Unused => (0, 0, 0),
            Line::Normal(at, len) => (1, at, len),
            Line::Redirect(to) => (2, usize::from(to), 0),
            Line::Dead => (3, 0, 0),
        };
        let inside = state == 1 && len >= page::HEADER && offset + len <= page.len();
        let version = inside.then(|| Version {
            header: page::header(page, offset),
            row: page::row(page, offset, len).to_vec(),
        });
        Item { number, state, offset: offset as u16, len: len as u16, version }
    };
    Some(page::lines(page).map(item).collect())
}

/// Where free space begins and ends in a page of a table, and its flags.
pub fn bounds(page: &Page) -> (usize, usize, u16) {
    (page::lower(page), page::upper(page), page::flags(page))
}

impl Version {
    /// The next version, or the version itself.
    pub fn next(&self, own: TupleId) -> TupleId {
        if self.header.mask & page::HAS_NEXT != 0 { self.header.next } else { own }
    }
}

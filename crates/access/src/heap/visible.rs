//! Visibility: what a snapshot sees of a version (and hints that save the next one the question).
//!
//! A hint that a transaction committed is trusted without a look-up only when the transaction had
//! ended before the snapshot was taken (`xid < snapshot.xmin`); otherwise the commit log decides by
//! CSN. Hints are set only for outcomes that a crash can't change: aborted, or committed durably.

use base::{PageId, Result, TupleId, Xid};
use storage::{Page, ReadGuard};
use txn::{Snapshot, Transaction, XidStatus};

use super::page::{
    self, IN_CHAIN, LOCK_ONLY, Line, NEXT_IN_CHAIN, XMAX_ABORTED, XMAX_COMMITTED, XMIN_ABORTED,
    XMIN_COMMITTED,
};

/// More versions don't fit a page.
const VERSIONS_MAX: usize = storage::PAGE_SIZE / page::space_for(0);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Unknown,
    Committed,
    Aborted,
}

/// A snapshot's eyes, with a memory for the last transaction met.
pub struct View<'a> {
    tx: &'a Transaction,
    snapshot: &'a Snapshot,
    last: (Xid, bool, Outcome),
    /// For a serializable transaction: those who made or ended a version without its seeing it.
    met: Option<Vec<Xid>>,
    id: PageId,
}

impl super::Heap {
    /// The place of the version that a row has for a snapshot, found from an older one's on.
    ///
    /// # Errors
    /// I/O.
    pub fn latest(&self, tx: &Transaction, snapshot: &Snapshot, from: TupleId) -> Result<TupleId> {
        let mut at = from;
        let mut made_by = None;
        loop {
            sched::check_interrupts()?;
            let pinned = self.pin(at.block)?;
            let mut view = View::new(tx, snapshot, pinned.id());
            let guard = pinned.read();
            let head = match page::line(guard.page(), at.offset) {
                Line::Normal(offset, _) => Some((offset, page::header(guard.page(), offset))),
                _ => None,
            };
            let made = |head: &page::Header| made_by.is_none_or(|xmin| head.xmin == xmin);
            let Some((offset, head)) = head.filter(|(_, head)| made(head)) else {
                if made_by.take().is_none() {
                    return Ok(at);
                }
                // It went meanwhile: the first one leads past it now.
                at = from;
                continue;
            };
            if head.mask & page::HAS_NEXT == 0 || !view.ended(&guard, offset, head.mask) {
                return Ok(at);
            }
            (at, made_by) = (head.next, Some(head.xmax));
        }
    }
}

/// A version that a snapshot sees.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Line number.
    pub line: u16,
    /// Byte offset.
    pub offset: usize,
    /// Length with header.
    pub len: usize,
}

impl<'a> View<'a> {
    /// Looks through `snapshot` as `tx` at the page `id`.
    pub fn new(tx: &'a Transaction, snapshot: &'a Snapshot, id: PageId) -> View<'a> {
        let met = tx.tracks_reads().then(Vec::new);
        View { tx, snapshot, last: (Xid::INVALID, false, Outcome::Unknown), met, id }
    }

    /// Notes the read of a version that is seen, and who has ended it unseen. Under the page's latch.
    #[cold]
    fn note_read(&mut self, page: &Page, seen: &Seen) {
        let Some(met) = &mut self.met else { return };
        let head = page::header(page, seen.offset);
        let tid = TupleId { block: self.id.block, offset: seen.line };
        self.tx.reads_row(self.id.rel, tid, Xid(head.xmin));
        let ended = head.xmax != 0 && head.mask & (XMAX_ABORTED | LOCK_ONLY) == 0;
        if ended && met.last() != Some(&Xid(head.xmax)) {
            met.push(Xid(head.xmax));
        }
    }

    /// Records the conflicts that the reads mean for a serializable transaction. Without the latch.
    ///
    /// # Errors
    /// `40001`.
    #[inline]
    pub fn record_conflicts(self) -> Result<()> {
        match self.met {
            None => Ok(()),
            Some(met) => met.into_iter().try_for_each(|xid| self.tx.record_rw_conflict(xid)),
        }
    }

    /// The transaction before which whoever is hinted to have committed is seen; None when each
    /// read must be noted.
    #[inline]
    pub fn plain_before(&self) -> Option<Xid> {
        self.met.is_none().then_some(self.snapshot.xmin)
    }

    /// Whether another transaction's commit is seen, and what may be hinted.
    fn other(&mut self, xid: Xid) -> (bool, Outcome) {
        if self.last.0 == xid {
            return (self.last.1, self.last.2);
        }
        let seen = self.tx.sees(xid, self.snapshot);
        let mut outcome = Outcome::Unknown;
        if xid < self.snapshot.xmin {
            let manager = self.tx.manager();
            outcome = match manager.status(xid) {
                XidStatus::Committed(csn) if manager.is_durable(csn) => Outcome::Committed,
                XidStatus::Aborted => Outcome::Aborted,
                _ => Outcome::Unknown,
            };
        }
        self.last = (xid, seen, outcome);
        (seen, outcome)
    }

    /// Whether the version's making is seen.
    fn made(&mut self, guard: &ReadGuard<'_>, offset: usize, mask: u16) -> bool {
        if mask & XMIN_ABORTED != 0 {
            return false;
        }
        let xmin = Xid(page::xmin(guard.page(), offset));
        if mask & XMIN_COMMITTED != 0 {
            return xmin < self.snapshot.xmin || self.other(xmin).0;
        }
        if self.tx.is_mine(xmin) {
            return page::cmin(guard.page(), offset) < self.snapshot.command;
        }
        let (seen, outcome) = self.other(xmin);
        hint(guard, offset, outcome, XMIN_COMMITTED, XMIN_ABORTED);
        seen
    }

    /// Whether the version's end is seen.
    fn ended(&mut self, guard: &ReadGuard<'_>, offset: usize, mask: u16) -> bool {
        if mask & (XMAX_ABORTED | LOCK_ONLY) != 0 {
            return false;
        }
        let xmax = Xid(page::xmax(guard.page(), offset));
        if !xmax.is_valid() {
            return false;
        }
        if mask & XMAX_COMMITTED != 0 {
            return xmax < self.snapshot.xmin || self.other(xmax).0;
        }
        if self.tx.is_mine(xmax) {
            return page::cmax(guard.page(), offset) < self.snapshot.command;
        }
        let (seen, outcome) = self.other(xmax);
        hint(guard, offset, outcome, XMAX_COMMITTED, XMAX_ABORTED);
        seen
    }

    /// As [`View::visible_in_chain`] for a chain of several versions, of which the first one's making is
    /// seen. Most snapshots see one of the newest versions, so it looks from that end: the newest version
    /// whose making is seen is the one, unless it has no successor and its end is seen, too. However many
    /// versions an old snapshot keeps, new ones ask about the outcome of one or two transactions.
    fn newest_in_chain(&mut self, guard: &ReadGuard<'_>, first: u16) -> (Option<Seen>, usize) {
        let page = guard.page();
        let mut lines = [first; VERSIONS_MAX];
        let last = collect(page, &mut lines);
        for at in (0..=last).rev() {
            let Line::Normal(offset, len) = page::line(page, lines[at]) else { continue };
            let mask = page::mask(page, offset);
            if at == 0 || self.made(guard, offset, mask) {
                let ended = at == last && self.ended(guard, offset, mask);
                return ((!ended).then_some(Seen { line: lines[at], offset, len }), at);
            }
        }
        (None, 0)
    }

    /// The version of the chain at `root` that the snapshot sees, and how many it passed.
    ///
    /// Along a chain each version's `xmin` is the `xmax` of the one before, so only ends are
    /// looked at after the first.
    pub fn visible_in_chain(&mut self, guard: &ReadGuard<'_>, root: u16) -> (Option<Seen>, usize) {
        let page = guard.page();
        let Some((mut line, mut offset, mut len)) = page::first_of_chain(page, root) else {
            return (None, 0);
        };
        let mut mask = page::mask(page, offset);
        if !self.made(guard, offset, mask) {
            if let Some(met) = &mut self.met {
                met.push(Xid(page::xmin(page, offset)));
            }
            return (None, 0);
        }
        if mask & NEXT_IN_CHAIN != 0 && self.met.is_none() {
            return self.newest_in_chain(guard, line);
        }
        let mut passed = 0;
        while self.ended(guard, offset, mask) {
            if mask & NEXT_IN_CHAIN == 0 {
                return (None, passed);
            }
            line = page::next_line(page, offset);
            let Line::Normal(at, length) = page::line(page, line) else {
                return (None, passed);
            };
            (offset, len) = (at, length);
            mask = page::mask(page, offset);
            passed += 1;
        }
        let seen = Seen { line, offset, len };
        if self.met.is_some() {
            self.note_read(page, &seen);
        }
        (Some(seen), passed)
    }
}

/// Continues the chain whose first line is in `lines[0]`; the position of its last one. A version that a
/// rolled-back update made may be gone, and its line somebody else's: what follows must have been made by
/// whoever ended the one before.
fn collect(page: &Page, lines: &mut [u16; VERSIONS_MAX]) -> usize {
    let Line::Normal(mut offset, _) = page::line(page, lines[0]) else { return 0 };
    let mut last = 0;
    while last + 1 < VERSIONS_MAX && page::mask(page, offset) & NEXT_IN_CHAIN != 0 {
        let next = page::next_line(page, offset);
        let Line::Normal(at, _) = page::line(page, next) else { break };
        let follows = page::mask(page, at) & IN_CHAIN != 0
            && page::xmin(page, at) == page::xmax(page, offset);
        if !follows {
            break;
        }
        last += 1;
        (lines[last], offset) = (next, at);
    }
    last
}

fn hint(guard: &ReadGuard<'_>, offset: usize, outcome: Outcome, committed: u16, aborted: u16) {
    match outcome {
        Outcome::Unknown => {}
        Outcome::Committed => guard.hint_or_u16(page::mask_at(offset), committed),
        Outcome::Aborted => guard.hint_or_u16(page::mask_at(offset), aborted),
    }
}

/// Whether one look at a version's header tells that it is seen, and is all of its chain: made
/// before `before` (see [`View::plain_before`]) and never ended. False tells nothing.
#[inline]
pub fn is_plain(page: &Page, offset: usize, before: Xid) -> bool {
    page::mask(page, offset) & (XMIN_COMMITTED | XMIN_ABORTED | IN_CHAIN) == XMIN_COMMITTED
        && page::xmax(page, offset) == 0
        && Xid(page::xmin(page, offset)) < before
}

/// Whether a chain begins at this line pointer.
pub fn is_root(page: &Page, number: u16) -> bool {
    match page::line(page, number) {
        Line::Normal(offset, _) => page::mask(page, offset) & IN_CHAIN == 0,
        Line::Redirect(_) => true,
        Line::Unused | Line::Dead => false,
    }
}

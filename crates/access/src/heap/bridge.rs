//! Bridging: a version that some snapshot sees, and that was followed by one in another chain which
//! nobody sees, comes to lead past it.
//!
//! ```text
//! before   v1 ──► stub of v2 ──► stub of v3 ──► v4        each in a chain of its own
//! after    v1 ─────────────────────────────────► v4       the stubs' line pointers are dead
//! ```
//!
//! The old version takes over the stub's end in the same mini-transaction in which the stub's line
//! pointer dies; what index entries still lead to that is vacuum's, as with any dead row. Whoever had
//! read the old `next` just before finds no version there that its `xmax` made, and begins anew.

use base::{Result, TupleId};
use storage::{Mtr, Page, PageRef};
use txn::XidStatus;

use super::Heap;
use super::page::{
    self, FOLLOWS, HAS_NEXT, Header, IN_CHAIN, KEYS, LOCK_ONLY, Line, NEXT_IN_CHAIN, STUB,
    XMAX_ABORTED,
};
use super::prune::{self, Scope, VisibilityHorizon};

/// Lines of a page's versions that have ended and lead to another chain.
pub(crate) fn leading_on(page: &Page) -> Vec<u16> {
    let leads = |line: &Line| match *line {
        Line::Normal(at, _) => leads_on(&page::header(page, at)),
        _ => false,
    };
    page::lines(page).filter(|(_, line)| leads(line)).map(|(number, _)| number).collect()
}

/// Stubs lead on as well, but those that lead to them are led past them.
fn leads_on(head: &Header) -> bool {
    head.mask & (HAS_NEXT | NEXT_IN_CHAIN | LOCK_ONLY | XMAX_ABORTED | STUB) == HAS_NEXT
}

/// A version's offset and header.
fn version(page: &Page, tid: TupleId) -> Option<(usize, Header)> {
    match page::line(page, tid.offset) {
        Line::Normal(at, _) => Some((at, page::header(page, at))),
        _ => None,
    }
}

/// Whether a version has ended for good and nothing of its chain is left behind it.
fn is_last_of_chain(head: &Header) -> bool {
    head.xmax != 0
        && head.mask & (FOLLOWS | IN_CHAIN | NEXT_IN_CHAIN | LOCK_ONLY | XMAX_ABORTED) == FOLLOWS
}

impl Heap {
    /// Leads the version at `from` past those that nobody sees; how many went.
    ///
    /// # Errors
    /// I/O errors, interrupts.
    pub(crate) fn bridge(
        &self,
        visibility: &mut VisibilityHorizon<'_>,
        from: TupleId,
    ) -> Result<u32> {
        let mut passed = 0;
        loop {
            sched::check_interrupts()?;
            let found = version(self.pin_scan(from.block)?.read().page(), from);
            let Some((_, head)) = found.filter(|(_, head)| leads_on(head)) else { break };
            if !self.make_stub(visibility, &head)? || !self.pass(visibility, from, &head)? {
                break;
            }
            passed += 1;
        }
        Ok(passed)
    }

    /// Whether what a version leads to is a stub, or could be made one.
    fn make_stub(&self, visibility: &mut VisibilityHorizon<'_>, from: &Header) -> Result<bool> {
        if from.next.block >= self.pages()? {
            return Ok(false);
        }
        let pinned = self.pin_scan(from.next.block)?;
        {
            let guard = pinned.read();
            let Some((at, head)) = version(guard.page(), from.next) else { return Ok(false) };
            let ended = head.xmax != 0 && head.mask & (LOCK_ONLY | XMAX_ABORTED) == 0;
            if head.xmin != from.xmax || !ended || !visibility.is_garbage(guard.page(), at) {
                return Ok(false);
            }
            if head.mask & STUB != 0 && is_last_of_chain(&head) {
                return Ok(true);
            }
        }
        let mut mtr = self.storage.mtr();
        let target = mtr.add(pinned.write());
        prune::prune(&mut mtr, target, visibility, Scope::Visit);
        self.give_room(from.next.block, mtr.page(target));
        mtr.commit();
        Ok(true)
    }

    /// Leads past one stub, if everything is as it was found without a latch.
    fn pass(
        &self,
        visibility: &mut VisibilityHorizon<'_>,
        from: TupleId,
        seen: &Header,
    ) -> Result<bool> {
        let mut mtr = self.storage.mtr();
        let (own, other) = self.latch_both(&mut mtr, from.block, seen.next.block)?;
        let Some((at, head)) = version(mtr.page(own), from) else { return Ok(false) };
        let Some((stub_at, stub)) = version(mtr.page(other), seen.next) else { return Ok(false) };
        let unchanged = leads_on(&head) && head.next == seen.next && head.xmax == seen.xmax;
        let committed = matches!(visibility.status(head.xmax), XidStatus::Committed(_));
        let is_stub = stub.mask & STUB != 0 && stub.xmin == head.xmax && is_last_of_chain(&stub);
        if !unchanged || !committed || !is_stub || !visibility.is_garbage(mtr.page(other), stub_at)
        {
            return Ok(false);
        }
        visibility.log_removed(&mut mtr, own);
        page::put_end_of(&mut mtr, own, at, (other, stub_at), stub.mask & KEYS);
        prune::write_lines(&mut mtr, other, &[(seen.next.offset, Line::Dead)]);
        self.give_room(seen.next.block, mtr.page(other));
        mtr.commit();
        Ok(true)
    }

    /// Latches two pages, which may be one, in ascending order.
    fn latch_both(&self, mtr: &mut Mtr<'_>, a: u32, b: u32) -> Result<(PageRef, PageRef)> {
        let (low, high) = (self.pin_scan(a.min(b))?, self.pin_scan(a.max(b))?);
        let first = mtr.add(low.write());
        if a == b {
            return Ok((first, first));
        }
        let second = mtr.add(high.write());
        Ok(if a < b { (first, second) } else { (second, first) })
    }

    /// Registers what room pruning left in a page.
    fn give_room(&self, block: u32, page: &Page) {
        if !self.state.space.is_target(block) {
            self.state.space.give(block, page::room(page));
        }
    }
}

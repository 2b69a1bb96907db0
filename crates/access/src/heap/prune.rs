//! Pruning: removes versions that nobody can see any more from one page, and closes the gaps.
//!
//! ```text
//! before   root → v1 → v2 → v3 → v4 → v5      an old snapshot sees v2, new ones see v5
//! after    root ═══════► v2 ───────► v5       v1: before every snapshot; v3, v4: between them
//! ```
//!
//! A chain loses its dead beginning: its root becomes a redirect to the first version that is left,
//! or *dead* when none is (index entries still point at it; vacuum frees it after them). It loses as
//! well what lies **between** the live snapshots ([`txn::LiveSnapshots`]), however old the oldest is:
//! the version before takes over the end (`xmax`, `next`) of the last one that goes. That prolongs its
//! life over a time in which no snapshot lies, so nobody sees a difference, and along the chain each
//! `xmin` still is the `xmax` before it. Versions that only a rolled-back update made are in no chain
//! any more and go too.
//!
//! The first version of a chain that continues one elsewhere ([`FOLLOWS`]) can't go by itself, since
//! that one's `next` leads to it: only its bytes go, and a [`STUB`] is left. [`crate::vacuum`] goes by
//! those links, lets the version before take over the stub's end, and frees the stub.
//!
//! The log gets the changed line pointers as one write and the compaction as moves, a few bytes for
//! each run of neighbouring versions, so pruning costs little log even for a full page.
//!
//! Invariant: a version that a registered snapshot sees stays, with its line number, and its `next`
//! leads to the newest version over versions that are there. Those in between may go while nobody
//! holds the latch: whoever finds that the version it comes to wasn't made by the `xmax` of the one that
//! it comes from begins anew from the version that its snapshot sees.
//! Decision 0022 has the reasons.

use std::sync::Arc;

use base::{Csn, Xid};
use storage::{Mtr, PAGE_SIZE, Page, PageRef};
use txn::{LiveSnapshots, TxnManager, XidStatus};

use super::page::{
    self, FOLLOWS, FREE_LINES, HEADER, IN_CHAIN, KEYS, LOCK_ONLY, Line, NEXT_IN_CHAIN, PRUNABLE,
    STUB, XMAX_ABORTED, XMIN_ABORTED, XMIN_COMMITTED,
};

/// Whether the version at `to` continues the chain of the one at `from`.
fn follows(page: &Page, from: usize, to: usize) -> bool {
    page::mask(page, to) & IN_CHAIN != 0 && page::xmin(page, to) == page::xmax(page, from)
}

/// Whether a version elsewhere leads to this one.
fn is_followed(page: &Page, offset: usize) -> bool {
    page::mask(page, offset) & (IN_CHAIN | FOLLOWS) == FOLLOWS
}

/// The work that a pruning did or would do.
#[derive(Clone, Debug, Default)]
pub struct Pruned {
    /// Versions removed.
    pub removed: u32,
    /// Dead versions that some snapshot may still see.
    pub kept: u32,
    /// Versions that are left and not ended.
    pub live: u32,
    /// Dead line pointers, old and new.
    pub dead: Vec<u16>,
    /// Vacuum: for whom versions are kept.
    pub held_back: Vec<HeldBack>,
}

/// The versions kept for a snapshot, of those that see them the oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// The snapshot.
    pub csn: Csn,
    /// Versions.
    pub versions: u64,
    /// Their bytes, heads included.
    pub bytes: u64,
}

impl HeldBack {
    /// Adds to a list what is kept for one snapshot.
    pub fn add_to(self, list: &mut Vec<HeldBack>) {
        match list.iter_mut().rev().find(|held| held.csn == self.csn) {
            Some(held) => {
                held.versions += self.versions;
                held.bytes += self.bytes;
            }
            None => list.push(self),
        }
    }
}

/// Outcomes that a visibility remembers.
const REMEMBERED: usize = 8;

/// Which versions are visible to somebody: the horizon of all snapshots and what is known of transactions.
pub struct VisibilityHorizon<'a> {
    manager: &'a TxnManager,
    horizon: Csn,
    bound: Csn,
    /// Asked for when a version ended after the horizon.
    live: Option<Arc<LiveSnapshots>>,
    /// Of versions that were found to be seen by nobody, the end of the one that ended last.
    gone: Csn,
    known: [(u64, XidStatus); REMEMBERED],
}

/// The state of a version for everybody.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Rolled back: never was.
    NeverWas,
    /// Ended before every snapshot.
    Dead,
    /// Ended after the oldest snapshot, but none sees it.
    Unseen,
    /// Ended, but some snapshot may see it.
    Recent,
    /// Being inserted, or not ended, or being ended.
    Live,
}

impl<'a> VisibilityHorizon<'a> {
    /// With the horizon at hand, which may be a little old.
    pub fn new(manager: &'a TxnManager) -> VisibilityHorizon<'a> {
        VisibilityHorizon::with(manager, manager.horizon())
    }

    /// With the horizon as of now, which takes a visit to every session.
    pub fn now(manager: &'a TxnManager) -> VisibilityHorizon<'a> {
        VisibilityHorizon::with(manager, manager.horizon_now())
    }

    fn with(manager: &'a TxnManager, horizon: Csn) -> VisibilityHorizon<'a> {
        let known = [(0, XidStatus::Aborted); REMEMBERED];
        let (bound, gone) = (manager.live_bound(), Csn(0));
        VisibilityHorizon { manager, horizon, bound, live: None, gone, known }
    }

    /// Whatever ended after this may be seen by somebody.
    pub fn bound(&self) -> Csn {
        self.bound
    }

    /// The fate of a transaction.
    pub fn status(&mut self, xid: u64) -> XidStatus {
        let known = &mut self.known[xid as usize % REMEMBERED];
        if known.0 != xid || known.1 == XidStatus::Running {
            *known = (xid, self.manager.status(Xid(xid)));
        }
        known.1
    }

    /// Whether nobody sees the version, which has ended.
    pub fn is_garbage(&mut self, page: &Page, offset: usize) -> bool {
        match self.status(page::xmax(page, offset)) {
            XidStatus::Committed(csn) => {
                let garbage = csn <= self.horizon || self.is_unseen(page::xmin(page, offset), csn);
                if garbage {
                    self.note_gone(csn);
                }
                garbage
            }
            _ => false,
        }
    }

    fn note_gone(&mut self, ended: Csn) {
        let ended = if ended == Csn(0) { self.manager.reduced_upto() } else { ended };
        self.gone = self.gone.max(ended);
    }

    /// Says in the record that is being made that versions go: readers of a standby may still see them.
    pub(super) fn log_removed(&mut self, mtr: &mut Mtr<'_>, page: PageRef) {
        let gone = std::mem::replace(&mut self.gone, Csn(0));
        let rel = mtr.id(page).rel;
        // Nobody reads the catalog's heap by a snapshot of a statement.
        if gone != Csn(0) && !rel.is_temporary() && rel != base::RelId::CATALOG {
            mtr.payload(txn::REMOVED, &gone.0.to_le_bytes());
        }
    }

    /// Whether no snapshot lies between a version's making and its end.
    fn is_unseen(&mut self, xmin: u64, ended: Csn) -> bool {
        if ended > self.bound {
            return false;
        }
        let XidStatus::Committed(made) = self.status(xmin) else { return false };
        let manager = self.manager;
        self.live.get_or_insert_with(|| manager.live_snapshots()).none_sees(made, ended)
    }

    /// The oldest snapshot that may see a version which has ended.
    fn holder(&mut self, page: &Page, offset: usize) -> Csn {
        let status = |visibility: &mut Self, xid| match visibility.status(xid) {
            XidStatus::Committed(csn) => csn,
            _ => Csn(u64::MAX),
        };
        let made = status(self, page::xmin(page, offset));
        let ended = status(self, page::xmax(page, offset));
        let manager = self.manager;
        self.live.get_or_insert_with(|| manager.live_snapshots()).holder(made, ended)
    }

    /// Whether the version is committed durably and every snapshot sees it, and nobody ended it. The answer is the same
    /// whether or not the page has a hint: a crash may lose hints, and the visibility map keeps what they led to.
    pub fn is_seen_by_all(&mut self, page: &Page, offset: usize) -> bool {
        let (mask, xmax) = (page::mask(page, offset), page::xmax(page, offset));
        let ended = xmax != 0 && mask & (LOCK_ONLY | XMAX_ABORTED) == 0;
        if ended && self.status(xmax) != XidStatus::Aborted {
            return false;
        }
        match self.status(page::xmin(page, offset)) {
            XidStatus::Committed(csn) => csn <= self.horizon && self.manager.is_durable(csn),
            _ => false,
        }
    }

    /// The version's fate, and whether its chain goes on from it. Unless `thorough`, a version that
    /// nobody ended counts as live without asking who made it.
    #[inline]
    fn fate(&mut self, page: &Page, offset: usize, thorough: bool) -> (Fate, bool) {
        let mask = page::mask(page, offset);
        let xmax = page::xmax(page, offset);
        let ended = xmax != 0 && mask & (LOCK_ONLY | XMAX_ABORTED) == 0;
        if ended {
            let goes_on = mask & NEXT_IN_CHAIN != 0;
            match self.status(xmax) {
                XidStatus::Aborted => {}
                XidStatus::Running => return (Fate::Live, goes_on),
                XidStatus::Committed(csn) if csn <= self.horizon => {
                    self.note_gone(csn);
                    return (Fate::Dead, goes_on);
                }
                XidStatus::Committed(csn) => {
                    let unseen = self.is_unseen(page::xmin(page, offset), csn);
                    if unseen {
                        self.note_gone(csn);
                    }
                    return (if unseen { Fate::Unseen } else { Fate::Recent }, goes_on);
                }
            }
        }
        if (thorough || ended || mask & XMIN_ABORTED != 0) && self.never_was(page, offset, mask) {
            return (Fate::NeverWas, false);
        }
        (Fate::Live, false)
    }

    fn never_was(&mut self, page: &Page, offset: usize, mask: u16) -> bool {
        mask & XMIN_ABORTED != 0
            || (mask & XMIN_COMMITTED == 0
                && self.status(page::xmin(page, offset)) == XidStatus::Aborted)
    }
}

/// How far a pruning goes.
#[derive(Clone, Copy)]
pub enum Scope<'a> {
    /// A writer or reader passes by: chains of versions that somebody ended.
    Visit,
    /// Vacuum: rolled-back inserts too, and a list of the dead line pointers.
    Vacuum,
    /// As vacuum, and dead line pointers that the function accepts become free: no index entry
    /// leads to them any more.
    Free(&'a dyn Fn(u16) -> bool),
}

impl Scope<'_> {
    fn is_thorough(&self) -> bool {
        !matches!(self, Scope::Visit)
    }
}

/// Line pointers of a page, one bit each.
struct Lines([u64; 33]);

impl Lines {
    /// Adds one; whether it was in already.
    fn add(&mut self, number: u16) -> bool {
        let (word, bit) = (usize::from(number) / 64 % 33, 1 << (number % 64));
        let old = self.0[word] & bit != 0;
        self.0[word] |= bit;
        old
    }

    fn has(&self, number: u16) -> bool {
        self.0[usize::from(number) / 64 % 33] & 1 << (number % 64) != 0
    }
}

/// A version that takes over the end of a later one.
struct Mend {
    /// Where it is.
    offset: usize,
    /// Where the later one is.
    last: usize,
    /// [`KEYS`], if one of those that go changed a key.
    keys: u16,
}

/// Line pointers that shall change, and why.
struct Plan {
    changes: Vec<(u16, Line)>,
    mends: Vec<Mend>,
    /// Offsets of versions that become stubs.
    stubs: Vec<usize>,
    result: Pruned,
    reached: Lines,
    thorough: bool,
}

fn plan(page: &Page, visibility: &mut VisibilityHorizon<'_>, thorough: bool) -> Plan {
    let result = Pruned::default();
    let (mends, stubs) = (Vec::new(), Vec::new());
    let reached = Lines([0; 33]);
    let mut plan = Plan { changes: Vec::new(), mends, stubs, result, reached, thorough };
    let mut in_chains = 0;
    for (root, line) in page::lines(page) {
        match line {
            Line::Dead if thorough => plan.result.dead.push(root),
            Line::Dead => {}
            Line::Redirect(to) => plan.chain(page, visibility, root, to),
            Line::Normal(at, _) if page::mask(page, at) & IN_CHAIN == 0 => {
                // Most versions are alone and not ended.
                if thorough || page::xmax(page, at) != 0 {
                    plan.chain(page, visibility, root, root);
                } else {
                    plan.result.live += 1;
                }
            }
            Line::Normal(..) => in_chains += 1,
            Line::Unused => {}
        }
    }
    for (number, line) in page::lines(page) {
        if in_chains == 0 {
            break;
        }
        if let Line::Normal(at, _) = line
            && page::mask(page, at) & IN_CHAIN != 0
        {
            in_chains -= 1;
            if !plan.reached.has(number) {
                plan.orphan(page, visibility, number, at);
            }
        }
    }
    plan
}

impl Plan {
    fn set(&mut self, number: u16, line: Line) {
        self.changes.push((number, line));
    }

    /// Cuts the dead beginning of the chain that starts with the version at line `first`, and what no
    /// snapshot sees in its middle.
    fn chain(
        &mut self,
        page: &Page,
        visibility: &mut VisibilityHorizon<'_>,
        root: u16,
        first: u16,
    ) {
        let mut at = Some(first);
        let mut survivor = None;
        let mut gap: Option<Mend> = None;
        let mut kept = 0;
        let mut came_from = None;
        while let Some(number) = at {
            let Line::Normal(offset, len) = page::line(page, number) else { break };
            if came_from.is_some_and(|from| !follows(page, from, offset))
                || self.reached.add(number)
            {
                break;
            }
            let (fate, goes_on) = visibility.fate(page, offset, self.thorough);
            match fate {
                Fate::NeverWas | Fate::Dead if survivor.is_none() => self.remove(number),
                Fate::Unseen if survivor.is_none() && !is_followed(page, offset) => {
                    self.remove(number);
                }
                Fate::Unseen if survivor.is_some() => {
                    self.remove(number);
                    let keys = page::mask(page, offset) & KEYS;
                    let keys = keys | gap.as_ref().map_or(0, |gap| gap.keys);
                    gap = Some(Mend { offset: kept, last: offset, keys });
                }
                Fate::NeverWas => {}
                Fate::Unseen | Fate::Dead | Fate::Recent | Fate::Live => {
                    self.mends.extend(gap.take());
                    survivor.get_or_insert(number);
                    kept = offset;
                    self.keep(page, number, (offset, len), fate);
                    if self.thorough && fate != Fate::Live {
                        let (csn, bytes) = (visibility.holder(page, offset), len as u64);
                        HeldBack { csn, versions: 1, bytes }.add_to(&mut self.result.held_back);
                    }
                }
            }
            came_from = Some(offset);
            at = goes_on.then(|| page::next_line(page, offset));
        }
        self.mends.extend(gap);
        match survivor {
            Some(number) if number == first => {}
            Some(number) => self.set(root, Line::Redirect(number)),
            None => {
                self.set(root, Line::Dead);
                if self.thorough {
                    self.result.dead.push(root);
                }
            }
        }
    }

    fn remove(&mut self, number: u16) {
        self.set(number, Line::Unused);
        self.result.removed += 1;
    }

    /// Counts a version that stays. Of one that nobody sees only the head does.
    fn keep(&mut self, page: &Page, number: u16, (offset, len): (usize, usize), fate: Fate) {
        if fate == Fate::Live {
            self.result.live += 1;
            return;
        }
        self.result.kept += 1;
        if fate == Fate::Unseen && page::mask(page, offset) & STUB == 0 {
            self.stubs.push(offset);
            self.result.removed += 1;
            if len > HEADER {
                self.set(number, Line::Normal(offset, HEADER));
            }
        }
    }

    /// A version inside a chain that no chain reaches: its update was rolled back.
    fn orphan(
        &mut self,
        page: &Page,
        visibility: &mut VisibilityHorizon<'_>,
        number: u16,
        offset: usize,
    ) {
        if visibility.fate(page, offset, true).0 == Fate::NeverWas {
            self.set(number, Line::Unused);
            self.result.removed += 1;
        } else {
            self.result.live += 1;
        }
    }
}

/// Prunes a page inside a mini-transaction.
pub fn prune(
    mtr: &mut Mtr<'_>,
    page: PageRef,
    visibility: &mut VisibilityHorizon<'_>,
    scope: Scope<'_>,
) -> Pruned {
    visibility.gone = Csn(0);
    let mut plan = plan(mtr.page(page), visibility, scope.is_thorough());
    if plan.result.removed > 0 || !plan.changes.is_empty() {
        visibility.log_removed(mtr, page);
    }
    if let Scope::Free(may_free) = scope {
        let dead = std::mem::take(&mut plan.result.dead);
        for number in dead {
            if may_free(number) {
                plan.set(number, Line::Unused);
            } else {
                plan.result.dead.push(number);
            }
        }
    }
    for mend in &plan.mends {
        page::put_end_of(mtr, page, mend.offset, (page, mend.last), mend.keys);
    }
    for &offset in &plan.stubs {
        let mask = page::mask(mtr.page(page), offset);
        mtr.put_u16(page, page::mask_at(offset), mask | STUB);
    }
    if !plan.changes.is_empty() {
        write_lines(mtr, page, &plan.changes);
    }
    if plan.result.kept == 0 {
        page::put_flags(mtr, page, 0, PRUNABLE);
    }
    plan.result
}

/// Writes the changed line pointers and closes the gaps.
pub(super) fn write_lines(mtr: &mut Mtr<'_>, page: PageRef, changes: &[(u16, Line)]) {
    let now = mtr.page(page);
    let mut lines: Vec<Line> = Vec::with_capacity(usize::from(page::line_count(now)));
    lines.extend(page::lines(now).map(|(_, line)| line));
    for &(number, line) in changes {
        lines[usize::from(number) - 1] = line;
    }
    while lines.last() == Some(&Line::Unused) {
        lines.pop();
    }
    let (moves, upper) = close_gaps(&mut lines);
    // The lines beyond the new end of the array need no writing.
    let old = page::lines(now).zip(&lines);
    let mut differs = old.filter(|((_, old), new)| old != *new).map(|((number, _), _)| number);
    let first = differs.next();
    let last = differs.last().or(first);
    let has_unused = changes
        .iter()
        .any(|&(n, _)| lines.get(usize::from(n) - 1).is_some_and(|line| *line == Line::Unused));
    for (from, to, len) in moves {
        mtr.shift(page, from, to, len);
    }
    if let (Some(first), Some(last)) = (first, last) {
        page::put_lines(mtr, page, first, &lines[usize::from(first) - 1..usize::from(last)]);
    }
    page::put_bounds(mtr, page, page::lower_for(lines.len() as u16), upper);
    if has_unused {
        page::put_flags(mtr, page, FREE_LINES, 0);
    }
}

/// A move inside the page: from, to, length.
type Move = (usize, usize, usize);

/// Moves versions to the end of the page; returns the moves, highest first, and where the versions
/// begin afterwards, and corrects the line pointers. Each move goes upwards into space that earlier
/// moves left.
fn close_gaps(lines: &mut [Line]) -> (Vec<Move>, usize) {
    // Offset and index in one word each: offsets come first in the order.
    let mut versions: Vec<u32> = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        if let Line::Normal(at, _) = line {
            versions.push((*at as u32) << 16 | index as u32);
        }
    }
    versions.sort_unstable_by(|a, b| b.cmp(a));
    let mut moves: Vec<Move> = Vec::new();
    let mut end = PAGE_SIZE;
    for version in versions {
        let (at, index) = ((version >> 16) as usize, version as usize & 0xffff);
        let Line::Normal(_, len) = lines[index] else { continue };
        let to = end - page::align(len);
        end = to;
        if to == at {
            continue;
        }
        lines[index] = Line::Normal(to, len);
        match moves.last_mut() {
            Some((from, onto, run))
                if at + page::align(len) == *from && *onto - *from == to - at =>
            {
                (*from, *onto, *run) = (at, to, *run + page::align(len));
            }
            _ => moves.push((at, to, page::align(len))),
        }
    }
    (moves, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_close_upwards_and_neighbours_move_together() {
        let mut lines = [
            Line::Normal(8192 - 40, 40),
            Line::Unused,
            Line::Normal(8192 - 120, 38),
            Line::Normal(8192 - 160, 40),
        ];
        let (moves, upper) = close_gaps(&mut lines);
        assert_eq!((moves, upper), (vec![(8192 - 160, 8192 - 120, 80)], 8192 - 120));
        assert_eq!(lines[2], Line::Normal(8192 - 80, 38));
        assert_eq!(lines[3], Line::Normal(8192 - 120, 40));
    }

    #[test]
    fn a_compact_page_needs_no_moves() {
        let mut lines = [Line::Normal(8192 - 40, 40), Line::Redirect(1)];
        assert_eq!(close_gaps(&mut lines), (vec![], 8192 - 40));
    }
}

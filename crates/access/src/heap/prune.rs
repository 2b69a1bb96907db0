//! Pruning: removes versions that nobody can see any more from one page, and closes the gaps.
//!
//! A chain loses its dead beginning: its root becomes a redirect to the first version that is left,
//! or *dead* when none is (index entries still point at it; vacuum frees it after them). Versions
//! that only a rolled-back update made are in no chain any more and go too.
//!
//! The log gets the changed line pointers as one write and the compaction as moves, a few bytes for
//! each run of neighbouring versions, so pruning costs little log even for a full page.
//!
//! Invariant: a version that a registered snapshot sees stays, with its line number, and so do all
//! later versions of its row. So whoever found a version with a registered snapshot can follow its
//! chain to the newest version at any time.

use base::{Csn, Xid};
use storage::{Mtr, PAGE_SIZE, Page, PageRef};
use txn::{TxnManager, XidStatus};

use super::page::{
    self, FREE_LINES, IN_CHAIN, LOCK_ONLY, Line, NEXT_IN_CHAIN, PRUNABLE, XMAX_ABORTED,
    XMIN_ABORTED, XMIN_COMMITTED,
};

/// What a pruning did or would do.
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
}

/// Outcomes that a judge remembers.
const REMEMBERED: usize = 8;

/// Whose opinion on transactions counts.
pub struct Judge<'a> {
    manager: &'a TxnManager,
    horizon: Csn,
    known: [(u64, XidStatus); REMEMBERED],
}

/// What a version is to everybody.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Rolled back: never was.
    NeverWas,
    /// Ended before every snapshot.
    Dead,
    /// Ended, but some snapshot may see it.
    Recent,
    /// Being inserted, or not ended, or being ended.
    Live,
}

impl<'a> Judge<'a> {
    /// Judges by the horizon at hand, which may be a little old.
    pub fn new(manager: &'a TxnManager) -> Judge<'a> {
        Judge::with(manager, manager.horizon())
    }

    /// Judges by the horizon as of now, which takes a visit to every session.
    pub fn now(manager: &'a TxnManager) -> Judge<'a> {
        Judge::with(manager, manager.horizon_now())
    }

    fn with(manager: &'a TxnManager, horizon: Csn) -> Judge<'a> {
        Judge { manager, horizon, known: [(0, XidStatus::Aborted); REMEMBERED] }
    }

    /// The horizon.
    pub fn horizon(&self) -> Csn {
        self.horizon
    }

    /// What became of a transaction.
    pub fn status(&mut self, xid: u64) -> XidStatus {
        let known = &mut self.known[xid as usize % REMEMBERED];
        if known.0 != xid || known.1 == XidStatus::Running {
            *known = (xid, self.manager.status(Xid(xid)));
        }
        known.1
    }

    /// Whether a version ended by this transaction is dead for everybody.
    pub fn is_dead(&mut self, xmax: u64) -> bool {
        matches!(self.status(xmax), XidStatus::Committed(csn) if csn <= self.horizon)
    }

    /// Whether the version is committed durably and every snapshot sees it, and nobody ended it.
    pub fn is_seen_by_all(&mut self, page: &Page, offset: usize) -> bool {
        let mask = page::mask(page, offset);
        if page::xmax(page, offset) != 0 && mask & (LOCK_ONLY | XMAX_ABORTED) == 0 {
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
                XidStatus::Committed(csn) if csn <= self.horizon => return (Fate::Dead, goes_on),
                XidStatus::Committed(_) => return (Fate::Recent, goes_on),
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

/// Line pointers that shall change, and why.
struct Plan {
    changes: Vec<(u16, Line)>,
    result: Pruned,
    reached: Lines,
    thorough: bool,
}

fn plan(page: &Page, judge: &mut Judge<'_>, thorough: bool) -> Plan {
    let result = Pruned::default();
    let mut plan = Plan { changes: Vec::new(), result, reached: Lines([0; 33]), thorough };
    let mut in_chains = 0;
    for (root, line) in page::lines(page) {
        match line {
            Line::Dead if thorough => plan.result.dead.push(root),
            Line::Dead => {}
            Line::Redirect(to) => plan.chain(page, judge, root, to),
            Line::Normal(at, _) if page::mask(page, at) & IN_CHAIN == 0 => {
                // Most versions are alone and not ended.
                if thorough || page::xmax(page, at) != 0 {
                    plan.chain(page, judge, root, root);
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
                plan.orphan(page, judge, number, at);
            }
        }
    }
    plan
}

impl Plan {
    fn set(&mut self, number: u16, line: Line) {
        self.changes.push((number, line));
    }

    /// Cuts the dead beginning of the chain that starts with the version at line `first`.
    fn chain(&mut self, page: &Page, judge: &mut Judge<'_>, root: u16, first: u16) {
        let mut at = Some(first);
        let mut survivor = None;
        let before = self.changes.len();
        while let Some(number) = at {
            let Line::Normal(offset, _) = page::line(page, number) else { break };
            if self.reached.add(number) {
                break;
            }
            let (fate, goes_on) = judge.fate(page, offset, self.thorough);
            match fate {
                Fate::NeverWas | Fate::Dead if survivor.is_none() => {
                    self.set(number, Line::Unused);
                }
                Fate::NeverWas => {}
                Fate::Dead | Fate::Recent => {
                    survivor.get_or_insert(number);
                    self.result.kept += 1;
                }
                Fate::Live => {
                    survivor.get_or_insert(number);
                    self.result.live += 1;
                }
            }
            at = goes_on.then(|| page::next_line(page, offset));
        }
        let gone = self.changes.len() - before;
        if gone == 0 && survivor.is_some() {
            return;
        }
        self.result.removed += gone as u32;
        match survivor {
            Some(number) => self.set(root, Line::Redirect(number)),
            None => {
                self.set(root, Line::Dead);
                if self.thorough {
                    self.result.dead.push(root);
                }
            }
        }
    }

    /// A version inside a chain that no chain reaches: its update was rolled back.
    fn orphan(&mut self, page: &Page, judge: &mut Judge<'_>, number: u16, offset: usize) {
        if judge.fate(page, offset, true).0 == Fate::NeverWas {
            self.set(number, Line::Unused);
            self.result.removed += 1;
        } else {
            self.result.live += 1;
        }
    }
}

/// Prunes a page inside a mini-transaction.
pub fn prune(mtr: &mut Mtr<'_>, page: PageRef, judge: &mut Judge<'_>, scope: Scope<'_>) -> Pruned {
    let mut plan = plan(mtr.page(page), judge, scope.is_thorough());
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
    if !plan.changes.is_empty() {
        write_lines(mtr, page, &plan.changes);
    }
    if plan.result.kept == 0 {
        page::put_flags(mtr, page, 0, PRUNABLE);
    }
    plan.result
}

/// Writes the changed line pointers and closes the gaps.
fn write_lines(mtr: &mut Mtr<'_>, page: PageRef, changes: &[(u16, Line)]) {
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
    // What lies beyond the new end of the array needs no writing.
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

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

/// Whose opinion on transactions counts.
pub struct Judge<'a> {
    manager: &'a TxnManager,
    horizon: Csn,
    last: (u64, XidStatus),
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
    /// Judges by the present horizon.
    pub fn new(manager: &'a TxnManager) -> Judge<'a> {
        Judge { manager, horizon: manager.horizon(), last: (0, XidStatus::Aborted) }
    }

    /// Judges by the horizon as of now, which takes a visit to every session.
    pub fn now(manager: &'a TxnManager) -> Judge<'a> {
        Judge { manager, horizon: manager.horizon_now(), last: (0, XidStatus::Aborted) }
    }

    /// The horizon.
    pub fn horizon(&self) -> Csn {
        self.horizon
    }

    /// What became of a transaction.
    pub fn status(&mut self, xid: u64) -> XidStatus {
        if self.last.0 != xid || self.last.1 == XidStatus::Running {
            self.last = (xid, self.manager.status(Xid(xid)));
        }
        self.last.1
    }

    /// Whether a version ended by this transaction is dead for everybody.
    pub fn is_dead(&mut self, xmax: u64) -> bool {
        matches!(self.status(xmax), XidStatus::Committed(csn) if csn <= self.horizon)
    }

    /// The version's fate, and whether its chain goes on from it.
    fn fate(&mut self, page: &Page, offset: usize) -> (Fate, bool) {
        let mask = page::mask(page, offset);
        if mask & XMIN_ABORTED != 0 {
            return (Fate::NeverWas, false);
        }
        if mask & XMIN_COMMITTED == 0 && self.status(page::xmin(page, offset)) == XidStatus::Aborted
        {
            return (Fate::NeverWas, false);
        }
        let xmax = page::xmax(page, offset);
        if xmax == 0 || mask & (LOCK_ONLY | XMAX_ABORTED) != 0 {
            return (Fate::Live, false);
        }
        let goes_on = mask & NEXT_IN_CHAIN != 0;
        match self.status(xmax) {
            XidStatus::Aborted => (Fate::Live, false),
            XidStatus::Running => (Fate::Live, goes_on),
            XidStatus::Committed(csn) if csn <= self.horizon => (Fate::Dead, goes_on),
            XidStatus::Committed(_) => (Fate::Recent, goes_on),
        }
    }
}

/// Line pointers as they shall be.
struct Plan {
    lines: Vec<Line>,
    changed: bool,
    result: Pruned,
}

fn plan(page: &Page, judge: &mut Judge<'_>) -> Plan {
    let count = page::line_count(page);
    let lines: Vec<Line> = (1..=count).map(|n| page::line(page, n)).collect();
    let mut reached = vec![false; lines.len() + 1];
    let mut plan = Plan { lines, changed: false, result: Pruned::default() };
    for root in 1..=count {
        match page::line(page, root) {
            Line::Dead => plan.result.dead.push(root),
            Line::Redirect(to) => plan.chain(page, judge, root, to, &mut reached),
            Line::Normal(at, _) if page::mask(page, at) & IN_CHAIN == 0 => {
                plan.chain(page, judge, root, root, &mut reached);
            }
            Line::Normal(..) | Line::Unused => {}
        }
    }
    for number in 1..=count {
        if reached[usize::from(number)] {
            continue;
        }
        if let Line::Normal(at, _) = page::line(page, number) {
            plan.orphan(page, judge, number, at);
        }
    }
    plan
}

impl Plan {
    fn set(&mut self, number: u16, line: Line) {
        self.lines[usize::from(number) - 1] = line;
        self.changed = true;
    }

    /// Cuts the dead beginning of the chain that starts with the version at line `first`.
    fn chain(
        &mut self,
        page: &Page,
        judge: &mut Judge<'_>,
        root: u16,
        first: u16,
        reached: &mut [bool],
    ) {
        let mut at = Some(first);
        let mut survivor = None;
        let mut gone = Vec::new();
        while let Some(number) = at {
            let Line::Normal(offset, _) = page::line(page, number) else { break };
            if std::mem::replace(&mut reached[usize::from(number)], true) {
                break;
            }
            let (fate, goes_on) = judge.fate(page, offset);
            match fate {
                Fate::NeverWas | Fate::Dead if survivor.is_none() => gone.push(number),
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
        if gone.is_empty() && survivor.is_some() {
            return;
        }
        self.result.removed += gone.len() as u32;
        for number in gone {
            self.set(number, Line::Unused);
        }
        match survivor {
            Some(number) => self.set(root, Line::Redirect(number)),
            None => {
                self.set(root, Line::Dead);
                self.result.dead.push(root);
            }
        }
    }

    /// A version inside a chain that no chain reaches: its update was rolled back.
    fn orphan(&mut self, page: &Page, judge: &mut Judge<'_>, number: u16, offset: usize) {
        if judge.fate(page, offset).0 == Fate::NeverWas {
            self.set(number, Line::Unused);
            self.result.removed += 1;
        } else {
            self.result.live += 1;
        }
    }
}

/// Prunes a page inside a mini-transaction. `free_dead`: the index entries of dead line pointers
/// are gone (or there are no indexes), so those in `free_dead` become unused.
pub fn prune(
    mtr: &mut Mtr<'_>,
    page: PageRef,
    judge: &mut Judge<'_>,
    free_dead: Option<&dyn Fn(u16) -> bool>,
) -> Pruned {
    let mut plan = plan(mtr.page(page), judge);
    if let Some(may_free) = free_dead {
        let dead = std::mem::take(&mut plan.result.dead);
        for number in dead {
            if may_free(number) {
                plan.set(number, Line::Unused);
            } else {
                plan.result.dead.push(number);
            }
        }
    }
    if plan.changed {
        write_lines(mtr, page, plan.lines);
    }
    if plan.result.kept == 0 {
        page::put_flags(mtr, page, 0, PRUNABLE);
    }
    plan.result
}

/// Writes the changed line pointers and closes the gaps.
fn write_lines(mtr: &mut Mtr<'_>, page: PageRef, mut lines: Vec<Line>) {
    while lines.last() == Some(&Line::Unused) {
        lines.pop();
    }
    let now = mtr.page(page);
    let old: Vec<Line> = (1..=lines.len() as u16).map(|n| page::line(now, n)).collect();
    let moves = close_gaps(&mut lines);
    let upper = lines
        .iter()
        .filter_map(|l| if let Line::Normal(at, _) = l { Some(*at) } else { None })
        .min()
        .unwrap_or(PAGE_SIZE);
    for (from, to, len) in moves {
        mtr.shift(page, from, to, len);
    }
    let first = old.iter().zip(&lines).position(|(a, b)| a != b);
    if let Some(first) = first {
        let last = old.iter().zip(&lines).rposition(|(a, b)| a != b).unwrap_or(first);
        page::put_lines(mtr, page, first as u16 + 1, &lines[first..=last]);
    }
    page::put_bounds(mtr, page, page::lower_for(lines.len() as u16), upper);
    if lines.contains(&Line::Unused) {
        page::put_flags(mtr, page, FREE_LINES, 0);
    }
}

/// Moves versions to the end of the page; returns the moves `(from, to, len)`, highest first, and
/// corrects the line pointers. Each move goes upwards into space that earlier moves left.
fn close_gaps(lines: &mut [Line]) -> Vec<(usize, usize, usize)> {
    let mut versions: Vec<(usize, usize)> = lines
        .iter()
        .enumerate()
        .filter_map(|(i, l)| if let Line::Normal(at, _) = l { Some((*at, i)) } else { None })
        .collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    let mut moves: Vec<(usize, usize, usize)> = Vec::new();
    let mut end = PAGE_SIZE;
    for (at, index) in versions {
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
    moves
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
        let moves = close_gaps(&mut lines);
        assert_eq!(moves, [(8192 - 160, 8192 - 120, 80)]);
        assert_eq!(lines[2], Line::Normal(8192 - 80, 38));
        assert_eq!(lines[3], Line::Normal(8192 - 120, 40));
    }

    #[test]
    fn a_compact_page_needs_no_moves() {
        let mut lines = [Line::Normal(8192 - 40, 40), Line::Redirect(1)];
        assert!(close_gaps(&mut lines).is_empty());
    }
}

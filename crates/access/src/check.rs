//! A checker that walks heap and indexes and says where they disagree (`amcheck`'s job).
//!
//! For a table that nobody changes meanwhile. It checks
//! * heap pages: bounds, line pointers inside the page, versions that overlap, chains that lead
//!   somewhere and are not circular; that everybody sees all rows of a page that the visibility map has;
//! * indexes: order inside and across pages, upper bounds, links in both directions, that each page
//!   has its entry in its parent;
//! * both: every row that lives is in each index with its key (one that was deleted may be older than the
//!   index), and each index entry leads to a line pointer that is in use, whose row has that key.

use std::collections::HashSet;

use base::{Result, TupleId, Xid};
use storage::{PAGE_SIZE, Page};
use txn::{TxnManager, XidStatus};

use crate::heap::page::{self, IN_CHAIN, Line, NEXT_IN_CHAIN};
use crate::heap::prune::VisibilityHorizon;
use crate::heap::{Heap, visible};
use crate::index::AnyIndex;
use crate::visibility_map::is_all_visible;

/// Stops listing findings after so many.
const FINDINGS_MAX: usize = 100;

/// Key of a row's bytes for one index; None when the row is not in it.
pub type KeyOf<'a> = &'a dyn Fn(&[u8]) -> Option<Vec<u8>>;

struct Checker<'a> {
    manager: &'a TxnManager,
    heap: &'a Heap,
    findings: Vec<String>,
}

/// Checks page structure, order, links and that index entries and rows match; returns findings.
/// `key_of` gives the row bytes' key for each index.
///
/// # Errors
/// I/O errors, checksums, interrupts.
pub fn check(
    manager: &TxnManager,
    heap: &Heap,
    indexes: &[(AnyIndex, KeyOf<'_>)],
) -> Result<Vec<String>> {
    let mut checker = Checker { manager, heap, findings: Vec::new() };
    let mut entries = Vec::new();
    for (index, key_of) in indexes {
        let mut found = HashSet::new();
        for (key, row) in checker.index(index)? {
            checker.entry(index, *key_of, &key, row)?;
            if !found.insert((key, row)) {
                checker.say(format!("index {}: {row} is in it twice", index.rel().0));
            }
        }
        entries.push(found);
    }
    for block in 0..heap.pages()? {
        sched::check_interrupts()?;
        checker.heap_page(block, indexes, &entries)?;
    }
    Ok(checker.findings)
}

/// A row's versions on its page.
struct Chain {
    /// Those that are not rolled back.
    rows: Vec<Vec<u8>>,
    /// The last of them was deleted, or followed by one elsewhere.
    dead: bool,
}

impl Checker<'_> {
    fn say(&mut self, finding: String) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }

    fn heap_page(
        &mut self,
        block: u32,
        indexes: &[(AnyIndex, KeyOf<'_>)],
        entries: &[HashSet<(Vec<u8>, TupleId)>],
    ) -> Result<()> {
        let pinned = self.heap.pin(block)?;
        let guard = pinned.read();
        let page = guard.page();
        if page::is_new(page) {
            if self.heap.state.visible.has(block) {
                self.say(format!("heap block {block} has nothing but zeros, though it was in use"));
            }
            return Ok(());
        }
        for finding in structure(page) {
            self.say(format!("heap block {block}: {finding}"));
        }
        let mut horizon = VisibilityHorizon::new(self.manager);
        if self.heap.state.visible.has(block) && !is_all_visible(page, &mut horizon) {
            self.say(format!(
                "heap block {block} is in the visibility map, and not everybody sees all its rows"
            ));
        }
        for root in 1..=page::line_count(page) {
            if !visible::is_root(page, root) {
                continue;
            }
            let tid = TupleId { block, offset: root };
            // Older versions may lack the key of an index that was made after them.
            let chain = self.chain(page, tid);
            if let Some(row) = chain.rows.last().filter(|_| !chain.dead) {
                for ((index, key_of), found) in indexes.iter().zip(entries) {
                    let Some(key) = key_of(row) else { continue };
                    let mut missing = false;
                    index.entries(&key, &mut |e| missing |= !found.contains(&(e.to_vec(), tid)));
                    if missing {
                        self.say(format!("row {tid} is not in index {}", index.rel().0));
                    }
                }
            }
        }
        Ok(())
    }

    /// The versions of a row.
    fn chain(&mut self, page: &Page, root: TupleId) -> Chain {
        let mut chain = Chain { rows: Vec::new(), dead: false };
        let Some((_, mut offset, mut len)) = page::first_of_chain(page, root.offset) else {
            self.say(format!("row {root} redirects to nothing"));
            return chain;
        };
        for _ in 0..=page::line_count(page) {
            let head = page::header(page, offset);
            if self.manager.status(Xid(head.xmin)) == XidStatus::Aborted {
                return chain;
            }
            if head.mask & page::STUB == 0 {
                chain.rows.push(page::row(page, offset, len).to_vec());
            }
            let ended = head.xmax != 0
                && head.mask & page::LOCK_ONLY == 0
                && self.manager.status(Xid(head.xmax)) != XidStatus::Aborted;
            if !ended || head.mask & NEXT_IN_CHAIN == 0 {
                chain.dead = ended;
                return chain;
            }
            let next = page::line(page, head.next.offset);
            let Line::Normal(at, length) = next else {
                self.say(format!("the chain of row {root} leads to {next:?}"));
                return chain;
            };
            if page::mask(page, at) & IN_CHAIN == 0 || page::xmin(page, at) != head.xmax {
                self.say(format!("the chain of row {root} leads to another row's version"));
                return chain;
            }
            (offset, len) = (at, length);
        }
        self.say(format!("the chain of row {root} is circular"));
        chain
    }

    /// Whether an index entry leads to a row with its key.
    fn entry(
        &mut self,
        index: &AnyIndex,
        key_of: KeyOf<'_>,
        key: &[u8],
        row: TupleId,
    ) -> Result<()> {
        let rel = index.rel().0;
        if row.block >= self.heap.pages()? {
            self.say(format!("index {rel}: entry leads to {row}, beyond the heap"));
            return Ok(());
        }
        let pinned = self.heap.pin(row.block)?;
        let guard = pinned.read();
        match page::first_of_chain(guard.page(), row.offset) {
            Some((_, offset, _)) if page::mask(guard.page(), offset) & page::STUB != 0 => {}
            Some((_, offset, len)) => {
                let first = page::row(guard.page(), offset, len).to_vec();
                let mut rows = self.chain(guard.page(), row).rows;
                rows.push(first);
                let mut known = false;
                for whole in rows.iter().filter_map(|r| key_of(r)) {
                    index.entries(&whole, &mut |entry| known |= entry == key);
                }
                if !known {
                    self.say(format!("index {rel}: the key of {row} is not its row's"));
                }
            }
            None if page::line(guard.page(), row.offset) == Line::Dead => {}
            None => self.say(format!("index {rel}: entry leads to {row}, where nothing is")),
        }
        Ok(())
    }

    /// Checks an index's own structure; returns its entries.
    fn index(&mut self, index: &AnyIndex) -> Result<Vec<(Vec<u8>, TupleId)>> {
        let report = index.check()?;
        for finding in report.findings {
            self.say(format!("index {}: {finding}", index.rel().0));
        }
        Ok(report.entries)
    }
}

/// Faults of a heap page's layout.
fn structure(page: &Page) -> Vec<String> {
    let mut findings = Vec::new();
    let (lower, upper) = (page::lower(page), page::upper(page));
    if page::kind(page) != page::KIND_HEAP || lower > upper || upper > PAGE_SIZE {
        return vec![format!("kind {:x}, bounds {lower} to {upper}", page::kind(page))];
    }
    let mut versions = Vec::new();
    for number in 1..=page::line_count(page) {
        if let Line::Normal(at, len) = page::line(page, number) {
            if at < upper || at + len > PAGE_SIZE || len < page::HEADER {
                findings.push(format!("version {number} at {at}, length {len}"));
            }
            versions.push((at, len, number));
        }
    }
    versions.sort_unstable();
    for pair in versions.windows(2) {
        if pair[0].0 + pair[0].1 > pair[1].0 {
            findings.push(format!("versions {} and {} overlap", pair[0].2, pair[1].2));
        }
    }
    findings
}

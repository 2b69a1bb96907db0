//! Searches: all rows whose keys satisfy a condition, in any order or by distance.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet};
use std::fmt;
use std::sync::Arc;

use base::ternary::Ternary;
use base::{Result, TupleId};
use txn::Transaction;

use super::page::{Node, Target};
use super::{GistIndex, ROOT};
use crate::found::{Distances, Found, Near};
use crate::vector::{ByDistance, PlaceHash};

/// Whether a row with this key (leaf) satisfies a condition, or one below it (inner page) can.
pub type KeyCheck = Arc<dyn Fn(&[u8], bool) -> Result<Ternary> + Send + Sync>;

/// Distances of a row with this key, or the least ones of those below it, by which rows are ordered; and
/// whether the row's own may be greater. NaN stands for NULL, which comes last.
pub type KeyDistance = Arc<dyn Fn(&[u8], bool) -> Result<(Distances, bool)> + Send + Sync>;

/// The conditions that rows must satisfy.
#[derive(Clone)]
pub struct TreeSearch {
    /// The condition.
    pub check: KeyCheck,
    /// The order, for [`GistIndex::nearest`].
    pub distance: Option<KeyDistance>,
}

impl fmt::Debug for TreeSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tree search, ordered: {}", self.distance.is_some())
    }
}

impl GistIndex {
    /// Calls `found` with all rows that a search finds, and their keys.
    pub fn find(
        &self,
        tx: &Transaction,
        search: &TreeSearch,
        found: &mut dyn FnMut(Found, &[u8]),
    ) -> Result<()> {
        let mut todo = vec![(ROOT, self.last_split()?)];
        while let Some((block, known)) = todo.pop() {
            self.visit(tx, block, known, &mut |visited| match visited {
                Visited::Right(right) => {
                    todo.push((right, known));
                    Ok(())
                }
                Visited::Cell(target, key, split) => {
                    let leaf = matches!(target, Target::Row(_));
                    let held = (search.check)(key, leaf)?;
                    match target {
                        _ if held == Ternary::False => {}
                        Target::Child(child) => todo.push((child, split)),
                        Target::Row(root) => {
                            found(Found { root, recheck: held == Ternary::Maybe }, key);
                        }
                    }
                    Ok(())
                }
            })?;
        }
        Ok(())
    }

    /// Reads a page, found when `known` was the last split.
    fn visit(
        &self,
        tx: &Transaction,
        block: u32,
        known: u64,
        each: &mut dyn FnMut(Visited<'_>) -> Result<()>,
    ) -> Result<()> {
        sched::check_interrupts()?;
        tx.reads_page(self.rel, block);
        let now = self.last_split()?;
        let pinned = self.pin(block)?;
        let guard = pinned.read();
        let node = Node(guard.page());
        if !node.is_node() {
            return Err(self.corrupted(block));
        }
        if node.split() > known && node.right() != 0 {
            each(Visited::Right(node.right()))?;
        }
        for n in 0..node.count() {
            let (target, key) = node.cell(n).ok_or_else(|| self.corrupted(block))?;
            each(Visited::Cell(target, key, now))?;
        }
        Ok(())
    }

    /// Rows by distance, the nearest first.
    pub fn nearest(&self, search: TreeSearch) -> Nearest {
        Nearest {
            index: self.clone(),
            search,
            heap: BinaryHeap::new(),
            begun: false,
            seen: HashSet::default(),
            with_keys: false,
        }
    }
}

enum Visited<'p> {
    /// The page was split since; the rest is there.
    Right(u32),
    /// A cell, and the last split before the page was read.
    Cell(Target, &'p [u8], u64),
}

struct Waiting {
    distances: Distances,
    what: What,
}

enum What {
    Page(u32, u64),
    /// A row, whether its distances may be less than the row's own, and its key, if that is wanted.
    Row(Found, bool, Vec<u8>),
}

impl Ord for Waiting {
    /// The heap gives its greatest: the nearest, and of these rows before pages.
    fn cmp(&self, other: &Waiting) -> Ordering {
        let compared = by_distance(&other.distances, &self.distances);
        let is_row = |w: &Waiting| matches!(w.what, What::Row(..));
        compared.then_with(|| is_row(self).cmp(&is_row(other)))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

/// The order of distances; NaN comes last.
pub fn by_distance(a: &[f64], b: &[f64]) -> Ordering {
    let pairs = a.iter().zip(b);
    pairs.map(|(a, b)| compare(*a, *b)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

fn compare(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (a, b) => a.cmp(&b),
    }
}

/// A scan by distance (Hjaltason and Samet, "Distance Browsing in Spatial Databases", 1999): pages and rows wait in one
/// heap, and what is nearest is looked at next.
pub struct Nearest {
    index: GistIndex,
    search: TreeSearch,
    heap: BinaryHeap<Waiting>,
    begun: bool,
    /// Rows that were returned: a page that is split meanwhile may be come by twice.
    seen: HashSet<TupleId, PlaceHash>,
    with_keys: bool,
}

impl Nearest {
    /// The rows come with their keys.
    #[must_use]
    pub fn with_keys(mut self) -> Nearest {
        self.with_keys = true;
        self
    }
}

impl ByDistance for Nearest {
    fn next(&mut self, tx: &Transaction) -> Result<Option<Near>> {
        if !std::mem::replace(&mut self.begun, true) {
            let split = self.index.last_split()?;
            self.heap.push(Waiting { distances: Distances::new(), what: What::Page(ROOT, split) });
        }
        while let Some(Waiting { distances, what }) = self.heap.pop() {
            let (block, known) = match what {
                What::Row(found, ..) if !self.seen.insert(found.root) => continue,
                What::Row(found, recheck_distance, key) => {
                    return Ok(Some(Near { found, distances, recheck_distance, key }));
                }
                What::Page(block, known) => (block, known),
            };
            let (heap, search) = (&mut self.heap, &self.search);
            let with_keys = self.with_keys;
            self.index.visit(tx, block, known, &mut |visited| {
                let (target, key, split) = match visited {
                    Visited::Right(right) => {
                        let what = What::Page(right, known);
                        heap.push(Waiting { distances: distances.clone(), what });
                        return Ok(());
                    }
                    Visited::Cell(target, key, split) => (target, key, split),
                };
                let leaf = matches!(target, Target::Row(_));
                let held = (search.check)(key, leaf)?;
                if held == Ternary::False {
                    return Ok(());
                }
                let (distances, doubt) = match &search.distance {
                    Some(distance) => distance(key, leaf)?,
                    None => (Distances::new(), false),
                };
                let what = match target {
                    Target::Child(child) => What::Page(child, split),
                    Target::Row(root) => {
                        let found = Found { root, recheck: held == Ternary::Maybe };
                        What::Row(found, doubt, if with_keys { key.to_vec() } else { Vec::new() })
                    }
                };
                heap.push(Waiting { distances, what });
                Ok(())
            })?;
        }
        Ok(None)
    }
}

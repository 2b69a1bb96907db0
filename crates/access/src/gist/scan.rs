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

/// Adds the distances of a row with this key, or the least ones of those below it, by which rows are ordered; says
/// whether the row's own may be greater.
pub type KeyDistance = Arc<dyn Fn(&[u8], bool, &mut Distances) -> Result<bool> + Send + Sync>;

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
        while !self.find_once(tx, search, found)? {
            sched::check_interrupts()?;
        }
        Ok(())
    }

    /// A search from the root; false: pages were freed meanwhile, and it is to begin anew.
    fn find_once(
        &self,
        tx: &Transaction,
        search: &TreeSearch,
        found: &mut dyn FnMut(Found, &[u8]),
    ) -> Result<bool> {
        let freed = self.freed()?;
        let mut todo = vec![(ROOT, self.last_split()?)];
        while let Some((block, known)) = todo.pop() {
            let is_read = self.visit(tx, block, (known, freed), &mut |visited| match visited {
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
            if !is_read {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads a page, found when `known` was the last split and pages had been freed so often. False: they have been
    /// since, and it may be another page.
    fn visit(
        &self,
        tx: &Transaction,
        block: u32,
        (known, freed): (u64, u64),
        each: &mut dyn FnMut(Visited<'_>) -> Result<()>,
    ) -> Result<bool> {
        sched::check_interrupts()?;
        tx.reads_page(self.rel, block);
        let now = self.last_split()?;
        let pinned = self.pin(block)?;
        let guard = pinned.read();
        if self.freed()? != freed {
            return Ok(false);
        }
        storage::prefetch_page(guard.page());
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
        Ok(true)
    }

    /// Rows by distance, the nearest first.
    pub fn nearest(&self, search: TreeSearch) -> Nearest {
        Nearest {
            index: self.clone(),
            search,
            heap: BinaryHeap::new(),
            pruned: Vec::new(),
            nearest: KNearest::default(),
            begun: false,
            freed: 0,
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

/// An entry of the queue, made of each cell of the pages that a search reads.
struct Waiting {
    /// The first distance, if there are any.
    distance: Option<f64>,
    what: What,
    more: Option<Box<More>>,
}

enum What {
    /// A page, and the last split before its number was read.
    Page(u32, u64),
    Row {
        root: TupleId,
        /// Its condition must be asked.
        recheck: bool,
        /// Its distances may be less than the row's own.
        recheck_distance: bool,
    },
}

/// The parts of a cell that few searches need.
#[derive(Clone)]
struct More {
    /// The distances behind the first.
    distances: Distances,
    /// A row's key.
    key: Vec<u8>,
}

impl Waiting {
    fn further(&self) -> &[Option<f64>] {
        self.more.as_ref().map_or(&[], |more| &more.distances)
    }
}

impl Ord for Waiting {
    /// The heap gives its greatest: the nearest, and of these rows before pages.
    fn cmp(&self, other: &Waiting) -> Ordering {
        let is_row = |w: &Waiting| matches!(w.what, What::Row { .. });
        compare(other.distance, self.distance)
            .then_with(|| by_distance(other.further(), self.further()))
            .then_with(|| is_row(self).cmp(&is_row(other)))
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

/// The order of distances.
pub fn by_distance(a: &[Option<f64>], b: &[Option<f64>]) -> Ordering {
    let pairs = a.iter().zip(b);
    pairs.map(|(a, b)| compare(*a, *b)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

fn compare(a: Option<f64>, b: Option<f64>) -> Ordering {
    let (Some(a), Some(b)) = (a, b) else { return a.is_none().cmp(&b.is_none()) };
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// A scan by distance (Hjaltason and Samet, "Distance Browsing in Spatial Databases", 1999): pages and rows wait in one
/// heap, and what is nearest is looked at next.
pub struct Nearest {
    index: GistIndex,
    search: TreeSearch,
    heap: BinaryHeap<Waiting>,
    /// Entries beyond the pruning bound, in no order.
    pruned: Vec<Waiting>,
    nearest: KNearest,
    begun: bool,
    /// How often pages had been freed when it was begun.
    freed: u64,
    /// Rows that were returned: a page that is split meanwhile may be come by twice.
    seen: HashSet<TupleId, PlaceHash>,
    with_keys: bool,
}

/// The distances of the k nearest rows that a search has come across, where k rows are expected to be enough. The
/// greatest is the pruning bound: entries beyond it stay out of the queue until more rows are asked for.
#[derive(Default)]
struct KNearest {
    /// Ascending.
    distances: Vec<f64>,
    k: usize,
}

/// Above this k nothing is pruned: keeping the distances in order would cost more than it saves.
const K_MAX: usize = 64;

impl KNearest {
    fn bound(&self) -> f64 {
        match self.distances.last() {
            Some(last) if self.distances.len() == self.k => *last,
            _ => f64::INFINITY,
        }
    }

    /// Whether a distance is within the bound. NULL and NaN are so only while there is none.
    fn has(&self, distance: Option<f64>) -> bool {
        let bound = self.bound();
        bound == f64::INFINITY || distance.is_some_and(|distance| distance <= bound)
    }

    fn add(&mut self, distance: f64) {
        if self.k == 0 || distance.is_nan() || distance >= self.bound() {
            return;
        }
        let place = self.distances.partition_point(|known| *known <= distance);
        self.distances.truncate(self.k - 1);
        self.distances.insert(place, distance);
    }
}

impl Nearest {
    /// Begins at the root.
    fn begin(&mut self) -> Result<()> {
        self.heap.clear();
        self.pruned.clear();
        self.freed = self.index.freed()?;
        let what = What::Page(ROOT, self.index.last_split()?);
        self.heap.push(Waiting { distance: None, what, more: None });
        Ok(())
    }

    /// The rows come with their keys.
    #[must_use]
    pub fn with_keys(mut self) -> Nearest {
        self.with_keys = true;
        self
    }
}

impl ByDistance for Nearest {
    fn expect(&mut self, rows: usize) {
        if !self.begun && rows <= K_MAX {
            self.nearest.k = rows;
        }
    }

    fn next(&mut self, tx: &Transaction) -> Result<Option<Near>> {
        if !std::mem::replace(&mut self.begun, true) {
            self.begin()?;
        }
        loop {
            let next = match self.heap.pop() {
                Some(next) if self.nearest.has(next.distance) || self.pruned.is_empty() => next,
                next => {
                    // More than k rows are asked for.
                    self.nearest = KNearest::default();
                    self.heap.extend(next);
                    self.heap.extend(self.pruned.drain(..));
                    match self.heap.pop() {
                        Some(next) => next,
                        None => return Ok(None),
                    }
                }
            };
            let Waiting { distance, what, more } = next;
            let (block, known) = match what {
                What::Row { root, .. } if !self.seen.insert(root) => continue,
                What::Row { root, recheck, recheck_distance } => {
                    let found = Found { root, recheck };
                    let mut distances = Distances::new();
                    if self.search.distance.is_some() {
                        distances.push(distance);
                    }
                    let mut key = Vec::new();
                    if let Some(more) = more {
                        distances.extend_from_slice(&more.distances);
                        key = more.key;
                    }
                    return Ok(Some(Near { found, distances, recheck_distance, key }));
                }
                What::Page(block, known) => (block, known),
            };
            let (heap, pruned) = (&mut self.heap, &mut self.pruned);
            let (search, nearest) = (&self.search, &mut self.nearest);
            let with_keys = self.with_keys;
            let mut distances = Distances::new();
            let is_read = self.index.visit(tx, block, (known, self.freed), &mut |visited| {
                let (target, key, split) = match visited {
                    Visited::Right(right) => {
                        let what = What::Page(right, known);
                        heap.push(Waiting { distance, what, more: more.clone() });
                        return Ok(());
                    }
                    Visited::Cell(target, key, split) => (target, key, split),
                };
                let leaf = matches!(target, Target::Row(_));
                let held = (search.check)(key, leaf)?;
                if held == Ternary::False {
                    return Ok(());
                }
                distances.clear();
                let recheck_distance = match &search.distance {
                    Some(distance) => distance(key, leaf, &mut distances)?,
                    None => false,
                };
                let what = match target {
                    Target::Child(child) => What::Page(child, split),
                    Target::Row(root) => {
                        What::Row { root, recheck: held == Ternary::Maybe, recheck_distance }
                    }
                };
                let with_key = leaf && with_keys;
                let more = (distances.len() > 1 || with_key).then(|| {
                    let key = if with_key { key.to_vec() } else { Vec::new() };
                    Box::new(More { distances: distances.iter().skip(1).copied().collect(), key })
                });
                let distance = distances.first().copied().flatten();
                if let Some(distance) = distance
                    && leaf
                    && held == Ternary::True
                    && !recheck_distance
                {
                    nearest.add(distance);
                }
                let waiting = Waiting { distance, what, more };
                match nearest.has(distance) {
                    true => heap.push(waiting),
                    false => pruned.push(waiting),
                }
                Ok(())
            })?;
            if !is_read {
                // Queued pages may have been freed. Returned rows are known; keeping the bound would count rows twice.
                self.nearest = KNearest::default();
                self.begin()?;
            }
        }
    }
}

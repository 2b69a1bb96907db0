//! Free space for new rows: a map in memory, and the pages that the workers fill.
//!
//! Pages with room are listed by class (room / 256 bytes). A worker *takes* a page out of the lists
//! and fills it until it is full; then it gives it back with what room is left. At first all workers
//! fill one page: what a single client inserts lies in the order in which it came, whichever worker
//! ran its statements, and a small table has one page. Each time that inserters have met at its latch
//! [`MEETINGS`] times, the pages that are filled at the same time double, until those on different
//! workers fill different pages. Pages fresh from an extension are kept as ranges.
//!
//! Each checkpoint saves the classes ([`Storage::take_maps`](storage::Storage::take_maps)). After a crash they may be old,
//! which an inserter notices when it looks at the page. The first one after a start that finds no page in the map looks at the
//! last few pages of the file. What a crash can cost is therefore space, until the next vacuum, never rows.
//!
//! Invariant: a page is listed at most once with its current class; older mentions of it in other
//! lists are recognised because `class[block]` differs, and dropped when met.
//!
//! Invariant: a page in a fresh range is in no list. A fresh page is not read but taken for empty, so
//! who gets it must be the first ever: were it listed too (by a vacuum that came by, even between
//! the file's extension and the range's registration), a second taker would wipe out the first one's
//! rows once the page has been evicted. That holds until the page is in memory: a page that was taken out
//! of its range and has yet to arrive there is in no list either. An inserter that remembers a page from before the file was
//! cut and has grown again asks whether it is fresh now.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};

use sched::SpinLock;

use crate::heap::page::EMPTY_PAGE;
use crate::heap::prune::HeldBack;

/// Bytes of room per class; the last class is that of empty pages.
const CLASS_BYTES: usize = 256;
const CLASSES: usize = 33;
/// Pages being filled at the same time, at most.
const TARGETS: usize = 16;
/// Inserters met so often at the latch of a page that is filled, times the number of such pages: they
/// fill twice as many. A reader or the checkpointer that holds it counts too: few are chance.
const MEETINGS: usize = 8;
/// No page.
const NONE: u32 = u32::MAX;
/// Class of a page that is in no list.
const UNLISTED: u8 = 0;

/// One heap's free space.
pub struct Space {
    map: SpinLock<Map>,
    targets: [AtomicU32; TARGETS],
    /// How many of the targets are in use: a power of two.
    spread: AtomicUsize,
    /// Meetings at the latches of targets since `spread` was last changed.
    met: AtomicUsize,
    /// Whether the file's last pages have been looked at.
    pub seeded: AtomicBool,
    /// Tasks that wait for the right to extend the file.
    pub extenders: AtomicU32,
    /// Rows that vacuum counted, plus 1; 0: not known.
    pub rows: AtomicU64,
    /// Pages when they were counted.
    pub rows_pages: AtomicU32,
    /// Versions ended (updates, deletes) since vacuum last ran.
    pub ended: AtomicU64,
    /// The versions that vacuum had to keep when it last ran, and for whom.
    pub held_back: SpinLock<Vec<HeldBack>>,
    /// The bound of the live snapshots at the last futile attempt to prune a page, by block; saves
    /// repeating it.
    pub futile: [(AtomicU32, AtomicU64); TARGETS],
}

#[derive(Default)]
struct Map {
    class: Vec<u8>,
    /// One list a class, the lowest block first.
    lists: Vec<BinaryHeap<Reverse<u32>>>,
    fresh: Vec<std::ops::Range<u32>>,
    /// The file is being extended: pages from here on are about to be fresh.
    extending: Option<u32>,
    /// Fresh pages that were taken and are not in memory yet.
    arriving: Vec<u32>,
}

/// A page taken from the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its number.
    pub block: u32,
    /// Nobody ever used it: it need not be read.
    pub fresh: bool,
}

impl Default for Space {
    fn default() -> Space {
        Space {
            map: SpinLock::new(Map { lists: vec![BinaryHeap::new(); CLASSES], ..Map::default() }),
            targets: std::array::from_fn(|_| AtomicU32::new(NONE)),
            spread: AtomicUsize::new(1),
            met: AtomicUsize::new(0),
            seeded: AtomicBool::new(false),
            extenders: AtomicU32::new(0),
            rows: AtomicU64::new(0),
            rows_pages: AtomicU32::new(0),
            ended: AtomicU64::new(0),
            held_back: SpinLock::new(Vec::new()),
            futile: std::array::from_fn(|_| (AtomicU32::new(NONE), AtomicU64::new(0))),
        }
    }
}

/// The running thread's number below [`TARGETS`]. Never inlined: a task may come back from a wait
/// on another thread, so no address of a thread-local may be kept across calls.
#[inline(never)]
fn slot() -> usize {
    use std::cell::Cell;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local!(static SLOT: Cell<usize> = const { Cell::new(usize::MAX) });
    SLOT.with(|slot| {
        if slot.get() == usize::MAX {
            slot.set(NEXT.fetch_add(1, Relaxed) as usize % TARGETS);
        }
        slot.get()
    })
}

impl Space {
    fn own_target(&self) -> &AtomicU32 {
        &self.targets[slot() % self.spread.load(Relaxed)]
    }

    /// The page that this worker fills at present.
    pub fn target(&self) -> Option<u32> {
        let block = self.own_target().load(Relaxed);
        (block != NONE).then_some(block)
    }

    /// From now on this worker fills `block`, unless what it fills is no longer `seen`.
    pub fn set_target(&self, seen: Option<u32>, block: u32) -> bool {
        let seen = seen.unwrap_or(NONE);
        self.own_target().compare_exchange(seen, block, Relaxed, Relaxed).is_ok()
    }

    /// Another held the latch of the page that this worker fills.
    pub fn note_meeting(&self) {
        let spread = self.spread.load(Relaxed);
        if spread == TARGETS || self.met.fetch_add(1, Relaxed) + 1 < MEETINGS * spread {
            return;
        }
        if self.spread.compare_exchange(spread, spread * 2, Relaxed, Relaxed).is_ok() {
            self.met.store(0, Relaxed);
        }
    }

    /// This worker's page is full: it goes back to the map with what room it has left.
    pub fn retire_target(&self, block: u32, room: usize) {
        let target = self.own_target();
        if target.compare_exchange(block, NONE, Relaxed, Relaxed).is_ok() {
            self.give(block, room);
        }
    }

    /// Whether a worker fills this page.
    pub fn is_target(&self, block: u32) -> bool {
        self.targets.iter().any(|t| t.load(Relaxed) == block)
    }

    /// Takes a page with at least `need` bytes of room out of the map.
    pub fn take(&self, need: usize) -> Option<Taken> {
        let mut map = self.map.lock();
        let listed = (first_class(need)..CLASSES).find_map(|class| map.pop_listed(class));
        listed.or_else(|| map.pop_fresh())
    }

    /// The same for a caller with rows for some pages: the page with the most room comes first.
    pub fn take_roomy(&self, need: usize) -> Option<Taken> {
        let mut map = self.map.lock();
        let listed = (first_class(need)..CLASSES).rev().find_map(|class| map.pop_listed(class));
        listed.or_else(|| map.pop_fresh())
    }

    /// A fresh page that was taken is in memory, or (`arrived` is false) could not be brought there and
    /// is fresh as before.
    pub fn fresh_arrived(&self, block: u32, arrived: bool) {
        let mut map = self.map.lock();
        map.arriving.retain(|b| *b != block);
        if !arrived {
            map.fresh.push(block..block + 1);
        }
    }

    /// Notes the room of a page that nobody fills.
    pub fn give(&self, block: u32, room: usize) {
        self.map.lock().list(block, room);
    }

    /// The class of each page, for [`Space::fill`]; 0: it is not known, or filled at present.
    pub(crate) fn classes(&self) -> Vec<u8> {
        // In parts, since inserters wait meanwhile.
        const PART: usize = 1 << 15;
        let mut all = Vec::new();
        loop {
            let map = self.map.lock();
            let left = map.class.get(all.len()..).unwrap_or_default();
            if left.is_empty() {
                break;
            }
            all.extend_from_slice(&left[..left.len().min(PART)]);
        }
        let map = self.map.lock();
        for range in &map.fresh {
            // After a start it is a page of zeros like any other.
            all.resize(all.len().max(range.end as usize), UNLISTED);
            all[range.start as usize..range.end as usize].fill(CLASSES as u8 - 1);
        }
        all
    }

    /// Takes in what [`Space::classes`] gave, before anybody uses the map.
    pub(crate) fn fill(&self, classes: &[u8]) {
        let mut map = self.map.lock();
        for (block, class) in (0..).zip(classes).filter(|(_, class)| **class != UNLISTED) {
            map.list(block, usize::from(*class) * CLASS_BYTES);
        }
    }

    /// An extension begins: pages from `first` on will be [`Space::add_fresh`]'s. Paired with it.
    pub fn begin_extension(&self, first: u32) {
        self.map.lock().extending = Some(first);
    }

    /// Adds pages that an extension made (none when it failed).
    pub fn add_fresh(&self, range: std::ops::Range<u32>) {
        let mut map = self.map.lock();
        map.extending = None;
        if !range.is_empty() {
            map.fresh.push(range);
        }
    }

    /// Whether a page is fresh and yet to be taken, or about to be: it is nobody's until then.
    pub fn is_fresh(&self, block: u32) -> bool {
        self.map.lock().is_fresh(block)
    }

    /// Pages fresh from extensions.
    pub fn fresh_count(&self) -> usize {
        self.map.lock().fresh.iter().map(|r| r.len()).sum()
    }

    /// Whether pruning this page was futile with this bound or a later one.
    pub fn prune_is_futile(&self, block: u32, bound: u64) -> bool {
        let (noted, at) = &self.futile[block as usize % TARGETS];
        noted.load(Relaxed) == block && at.load(Relaxed) >= bound
    }

    /// Notes that pruning this page with this bound freed nothing.
    pub fn note_futile_prune(&self, block: u32, bound: u64) {
        let (noted, at) = &self.futile[block as usize % TARGETS];
        noted.store(block, Relaxed);
        at.store(bound, Relaxed);
    }

    /// As new: the file is empty.
    pub fn reset(&self) {
        *self.map.lock() = Map { lists: vec![BinaryHeap::new(); CLASSES], ..Map::default() };
        self.targets.iter().for_each(|t| t.store(NONE, Relaxed));
        self.spread.store(1, Relaxed);
        self.met.store(0, Relaxed);
        self.futile.iter().for_each(|(block, _)| block.store(NONE, Relaxed));
        self.seeded.store(false, Relaxed);
        self.rows.store(0, Relaxed);
        self.ended.store(0, Relaxed);
    }

    /// Forgets pages from `blocks` on: the file was cut there.
    pub fn cut(&self, blocks: u32) {
        let mut map = self.map.lock();
        map.class.truncate(blocks as usize);
        for list in &mut map.lists {
            list.retain(|Reverse(b)| *b < blocks);
        }
        map.fresh.retain_mut(|r| {
            r.end = r.end.min(blocks);
            r.start < r.end
        });
        for target in &self.targets {
            if target.load(Relaxed) != NONE && target.load(Relaxed) >= blocks {
                target.store(NONE, Relaxed);
            }
        }
    }
}

/// The first class whose pages all have so much room.
fn first_class(need: usize) -> usize {
    need.div_ceil(CLASS_BYTES).clamp(1, CLASSES - 1)
}

impl Map {
    /// The lowest page of a class.
    fn pop_listed(&mut self, class: usize) -> Option<Taken> {
        while let Some(Reverse(block)) = self.lists[class].pop() {
            let listed = &mut self.class[block as usize];
            if usize::from(*listed) == class {
                *listed = UNLISTED;
                return Some(Taken { block, fresh: false });
            }
        }
        None
    }

    fn pop_fresh(&mut self) -> Option<Taken> {
        let range = self.fresh.first_mut()?;
        let block = range.start;
        range.start += 1;
        if range.start >= range.end {
            self.fresh.remove(0);
        }
        self.arriving.push(block);
        Some(Taken { block, fresh: true })
    }

    fn is_fresh(&self, block: u32) -> bool {
        self.extending.is_some_and(|first| block >= first)
            || self.arriving.contains(&block)
            || self.fresh.iter().any(|range| range.contains(&block))
    }

    fn list(&mut self, block: u32, room: usize) {
        if self.is_fresh(block) {
            return;
        }
        let class = if room >= EMPTY_PAGE { CLASSES - 1 } else { room / CLASS_BYTES };
        let index = block as usize;
        if self.class.len() <= index {
            self.class.resize(index + 1, UNLISTED);
        }
        if usize::from(self.class[index]) == class {
            return;
        }
        self.class[index] = class as u8;
        if class == usize::from(UNLISTED) {
            return;
        }
        if self.lists[class].len() > self.class.len() + 64 {
            self.sweep(class);
        }
        self.lists[class].push(Reverse(block));
    }

    /// Drops outdated and repeated mentions from one list.
    fn sweep(&mut self, class: usize) {
        let mut list = std::mem::take(&mut self.lists[class]).into_vec();
        list.sort_unstable();
        list.dedup();
        list.retain(|Reverse(b)| usize::from(self.class[*b as usize]) == class);
        self.lists[class] = list.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_taken_once_and_only_with_enough_room() {
        let space = Space::default();
        space.give(3, 1000);
        assert_eq!(space.take(2000), None);
        assert_eq!(space.take(700), Some(Taken { block: 3, fresh: false }));
        assert_eq!(space.take(1), None);
        space.give(4, EMPTY_PAGE - 1);
        assert_eq!(space.take(EMPTY_PAGE), None, "the largest row needs an empty page");
        space.give(4, EMPTY_PAGE);
        assert_eq!(space.take(EMPTY_PAGE).map(|t| t.block), Some(4));
    }

    #[test]
    fn low_pages_come_first_and_bulk_loads_begin_with_the_emptiest() {
        let space = Space::default();
        for block in [9, 4, 7] {
            space.give(block, 3000);
        }
        [8, 2].into_iter().for_each(|block| space.give(block, EMPTY_PAGE));
        space.add_fresh(10..11);
        let blocks = |take: &dyn Fn() -> Option<Taken>, n| -> Vec<u32> {
            (0..n).filter_map(|_| take()).map(|taken| taken.block).collect()
        };
        assert_eq!(blocks(&|| space.take(2000), 2), [4, 7]);
        assert_eq!(blocks(&|| space.take_roomy(2000), 5), [2, 8, 9, 10]);
    }

    /// The pages that each of four threads fills.
    fn targets(space: &Space) -> Vec<Option<u32>> {
        let look = || std::thread::scope(|s| s.spawn(|| space.target()).join().ok().flatten());
        (0..4).map(|_| look()).collect()
    }

    #[test]
    fn threads_fill_one_page_until_they_have_met_often() {
        let space = Space::default();
        assert!(space.set_target(None, 7));
        assert!(!space.set_target(None, 8), "another was faster");
        assert_eq!(targets(&space), [Some(7); 4]);
        (1..MEETINGS).for_each(|_| space.note_meeting());
        assert_eq!(targets(&space), [Some(7); 4]);
        space.note_meeting();
        let apart = targets(&space);
        assert_eq!(apart.iter().filter(|t| t.is_none()).count(), 2, "{apart:?}");
        assert!(space.is_target(7));
        (0..1000).for_each(|_| space.note_meeting());
        assert_eq!(space.spread.load(Relaxed), TARGETS);
        space.reset();
        assert!(space.set_target(None, 7));
        assert_eq!(targets(&space), [Some(7); 4]);
    }

    #[test]
    fn the_latest_room_counts() {
        let space = Space::default();
        space.give(0, 5000);
        space.give(0, 300);
        assert_eq!(space.take(4000), None);
        assert_eq!(space.take(200).map(|t| t.block), Some(0));
        assert_eq!(space.take(200), None);
    }

    #[test]
    fn mentions_of_a_page_that_changes_often_stay_bounded() {
        let space = Space::default();
        for i in 0..10_000 {
            space.give(1, 300 + 512 * (i % 2));
        }
        let total: usize = space.map.lock().lists.iter().map(BinaryHeap::len).sum();
        assert!(total < 200, "{total} mentions of one page");
    }

    #[test]
    fn a_fresh_page_is_never_listed() {
        let space = Space::default();
        space.begin_extension(4);
        space.give(5, EMPTY_PAGE);
        space.add_fresh(4..6);
        space.give(4, EMPTY_PAGE);
        let taken: Vec<_> = std::iter::from_fn(|| space.take(8000)).collect();
        let fresh = |block| Taken { block, fresh: true };
        assert_eq!(taken, [fresh(4), fresh(5)]);
        space.give(4, EMPTY_PAGE);
        assert_eq!(space.take(8000), None, "it has yet to arrive in memory");
        assert!([4, 5].into_iter().all(|block| space.is_fresh(block)));
        space.fresh_arrived(5, false);
        assert_eq!(space.take(8000), Some(fresh(5)));
        space.fresh_arrived(4, true);
        assert!(!space.is_fresh(4) && space.is_fresh(5));
        space.give(4, EMPTY_PAGE);
        assert_eq!(space.take(8000), Some(Taken { block: 4, fresh: false }));
    }

    #[test]
    fn saved_classes_are_those_of_before_and_fresh_pages_are_empty_ones() {
        let space = Space::default();
        space.give(1, 1000);
        space.give(3, EMPTY_PAGE);
        space.add_fresh(5..7);
        let again = Space::default();
        again.fill(&space.classes());
        assert_eq!(again.classes(), space.classes());
        let old = |block| Some(Taken { block, fresh: false });
        assert_eq!([again.take(700), again.take(700)], [old(1), old(3)]);
        assert_eq!([again.take(EMPTY_PAGE), again.take(EMPTY_PAGE)], [old(5), old(6)]);
        assert_eq!(again.take(1), None);
    }

    #[test]
    fn fresh_pages_come_in_order_and_a_cut_forgets_them() {
        let space = Space::default();
        space.add_fresh(4..6);
        assert_eq!(space.take(8000), Some(Taken { block: 4, fresh: true }));
        space.cut(5);
        assert_eq!(space.take(8000), None);
    }
}

//! The visibility map: which pages of a heap hold only rows that every snapshot sees, so that a scan
//! that has its values from an index need not visit them.
//!
//! It is in memory, a bit a page. Vacuum sets the bit of a page that it finds so, and so does an
//! index-only scan that had to visit one ([`crate::Heap::is_visible`]). Each checkpoint saves the bits, and recovery
//! clears those of the pages that the log has changed since ([`Storage::take_maps`](storage::Storage::take_maps)).
//!
//! Why a set bit can be trusted:
//!
//! * It is set under a latch on the page, by whoever has just looked at all its rows and has logged its own changes,
//!   and cleared under the exclusive latch by whoever adds or ends a version, before that is logged. So it never says
//!   more than the page, also after a crash.
//! * A scan asks it for an entry's page *under the latch of the index leaf* that the entry stands in,
//!   or later, if vacuum has freed no line pointer since the scan began ([`VisibilityMap::has_since`]).
//!   A row that was added since the bit was set has cleared it before its entry came into the leaf.
//!   An entry whose row is dead keeps a dead line pointer in its page until vacuum has taken the
//!   entry out of the leaf, and a page with a dead line pointer has no bit.
//! * A deletion that the scan's snapshot sees has committed, and cleared the bit before that, when
//!   the snapshot was taken.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use storage::Page;

use crate::heap::page::{self, Line};
use crate::heap::prune::VisibilityHorizon;

/// Pages that the first piece covers, as a power of two; each further piece doubles what there is.
const FIRST_BITS: u32 = 15;
const PIECES: usize = (32 - FIRST_BITS) as usize + 1;

/// See the module's documentation.
#[derive(Default)]
pub struct VisibilityMap {
    pieces: [OnceLock<Box<[AtomicU64]>>; PIECES],
    set: AtomicU32,
    /// The current epoch's number.
    epoch: AtomicU64,
}

/// A time in which vacuum freed no line pointers of the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VacuumEpoch(u64);

/// The piece that a page is in, its number there, and how many pages the piece covers.
fn place(block: u32) -> (usize, u32, u32) {
    match block.checked_ilog2() {
        Some(top) if top >= FIRST_BITS => {
            ((top - FIRST_BITS) as usize + 1, block - (1 << top), 1 << top)
        }
        _ => (0, block, 1 << FIRST_BITS),
    }
}

impl VisibilityMap {
    fn word(&self, block: u32) -> Option<(&AtomicU64, u64)> {
        let (piece, at, _) = place(block);
        let words = self.pieces[piece].get()?;
        Some((&words[at as usize / 64], 1 << (at % 64)))
    }

    /// Whether everybody sees all rows of the page.
    pub fn has(&self, block: u32) -> bool {
        self.word(block).is_some_and(|(word, bit)| word.load(Relaxed) & bit != 0)
    }

    /// The current epoch, for a scan that is about to search an index.
    pub fn epoch(&self) -> VacuumEpoch {
        VacuumEpoch(self.epoch.load(Acquire))
    }

    /// Whether everybody sees all rows of a page whose index entries were read since `epoch` began. Also false once that
    /// epoch is over: vacuum may have removed rows that those entries point at.
    pub fn has_since(&self, block: u32, epoch: VacuumEpoch) -> bool {
        // Acquire, with the Release of `set`: a bit that was set after lines became free comes with the new epoch.
        self.word(block).is_some_and(|(word, bit)| word.load(Acquire) & bit != 0)
            && self.epoch.load(Relaxed) == epoch.0
    }

    /// Begins the next epoch: vacuum has removed index entries and is about to free the line pointers.
    pub(crate) fn begin_epoch(&self) {
        self.epoch.fetch_add(1, Relaxed);
    }

    /// The page was found so. Under a latch on it.
    pub fn set(&self, block: u32) {
        let (piece, at, pages) = place(block);
        let words =
            self.pieces[piece].get_or_init(|| (0..pages / 64).map(|_| AtomicU64::new(0)).collect());
        let bit = 1 << (at % 64);
        if words[at as usize / 64].fetch_or(bit, Release) & bit == 0 {
            self.set.fetch_add(1, Relaxed);
        }
    }

    /// The page is about to change. Under its exclusive latch.
    #[inline]
    pub fn clear(&self, block: u32) {
        if let Some((word, bit)) = self.word(block)
            && word.load(Relaxed) & bit != 0
            && word.fetch_and(!bit, Relaxed) & bit != 0
        {
            self.set.fetch_sub(1, Relaxed);
        }
    }

    /// Forgets everything.
    pub fn reset(&self) {
        for word in self.pieces.iter().filter_map(OnceLock::get).flat_map(|words| words.iter()) {
            let old = word.swap(0, Relaxed);
            self.set.fetch_sub(old.count_ones(), Relaxed);
        }
    }

    /// All bits: page 64 n + i is bit i of word n.
    pub(crate) fn words(&self) -> Vec<u64> {
        let mut all = Vec::new();
        for (piece, words) in self.pieces.iter().enumerate() {
            let pages = 1_usize << (FIRST_BITS as usize + piece.saturating_sub(1));
            match words.get() {
                Some(words) => all.extend(words.iter().map(|word| word.load(Acquire))),
                None if self.pieces[piece..].iter().all(|words| words.get().is_none()) => break,
                None => all.resize(all.len() + pages / 64, 0),
            }
        }
        all
    }

    /// Takes in what [`VisibilityMap::words`] gave, before anybody uses the map.
    pub(crate) fn fill(&self, words: &[u64]) {
        for (block, word) in (0_u32..).step_by(64).zip(words) {
            (0..64).filter(|bit| word >> bit & 1 != 0).for_each(|bit| self.set(block + bit));
        }
    }

    /// How many pages have the bit.
    pub fn count(&self) -> u32 {
        self.set.load(Relaxed)
    }
}

/// Whether everybody sees all rows of a page, and index entries lead to nothing else in it.
pub(crate) fn is_all_visible(page: &Page, visibility: &mut VisibilityHorizon<'_>) -> bool {
    page::line_count(page) > 0
        && page::lines(page).all(|(_, line)| match line {
            Line::Unused | Line::Redirect(_) => true,
            Line::Dead => false,
            Line::Normal(offset, _) => visibility.is_seen_by_all(page, offset),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_all_pages_once() {
        assert_eq!(place(0), (0, 0, 1 << 15));
        assert_eq!(place((1 << 15) - 1), (0, (1 << 15) - 1, 1 << 15));
        assert_eq!(place(1 << 15), (1, 0, 1 << 15));
        assert_eq!(place((1 << 17) + 5), (3, 5, 1 << 17));
        assert_eq!(place(u32::MAX), (PIECES - 1, (1 << 31) - 1, 1 << 31));
    }

    #[test]
    fn bits_are_set_cleared_and_counted() {
        let map = VisibilityMap::default();
        for block in [0, 63, 64, 40_000] {
            assert!(!map.has(block));
            map.clear(block);
            map.set(block);
            map.set(block);
            assert!(map.has(block) && !map.has(block + 1));
        }
        assert_eq!(map.count(), 4);
        map.clear(64);
        map.clear(64);
        assert_eq!((map.count(), map.has(64), map.has(63)), (3, false, true));
        let copy = VisibilityMap::default();
        copy.fill(&map.words());
        assert_eq!(
            (copy.count(), copy.has(63), copy.has(40_000), copy.has(64)),
            (3, true, true, false)
        );
        map.set(1 << 20);
        let copy = VisibilityMap::default();
        copy.fill(&map.words());
        assert_eq!((copy.count(), copy.has(1 << 20)), (4, true));
        map.clear(1 << 20);
        let before = map.epoch();
        assert!(map.has_since(63, before) && !map.has_since(64, before));
        map.begin_epoch();
        assert!(!map.has_since(63, before) && map.has_since(63, map.epoch()));
        map.reset();
        assert_eq!((map.count(), map.has(0)), (0, false));
    }
}

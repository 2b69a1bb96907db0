//! The B-tree page.
//!
//! ```text
//! 0         16     18      20      22      24      28     32      34        36     40      lower
//! | storage | kind | lower | upper | flags | right | left | level | garbage | high | slots → |
//!                                                     upper                               8192
//!                                           free space | ← cells                             |
//! ```
//!
//! A slot is the u16 offset of a cell; slots are in order of their cells' entries. A cell is
//! `key length u16, key, row id (6 bytes)`, and in an inner page the child's block (4 bytes) after
//! that. Entries are ordered by key, then row id. An inner entry's key and row id are a lower bound
//! of what is in its child, the first one's counts as minus infinity; a bound cut short by suffix
//! truncation has row id 0, which is below all real ones. `high` is the offset of a cell that is an
//! upper bound (exclusive) of the page, 0 in the rightmost page of a level. `right` and `left` are
//! the neighbours, 0 for none (block 0 is the meta page). A page that is free is one of zeros behind storage's header.
//!
//! Look-ups read pages without a latch, so what they use ([`Bytes`] and what stands on it) survives
//! torn bytes: every offset is checked, and what makes no sense is None.

use std::cmp::Ordering;

use base::TupleId;
use storage::{Mtr, PAGE_HEADER, PAGE_SIZE, Page, PageRef, PageView};

/// Kind of the meta page, block 0.
pub const KIND_META: u16 = 0x424D;
/// Kind of all other pages.
pub const KIND_NODE: u16 = 0x4254;

const KIND: usize = PAGE_HEADER;
const LOWER: usize = PAGE_HEADER + 2;
const UPPER: usize = PAGE_HEADER + 4;
const FLAGS: usize = PAGE_HEADER + 6;
const RIGHT: usize = PAGE_HEADER + 8;
const LEFT: usize = PAGE_HEADER + 12;
const LEVEL: usize = PAGE_HEADER + 16;
const GARBAGE: usize = PAGE_HEADER + 18;
const HIGH: usize = PAGE_HEADER + 20;
const SLOTS: usize = PAGE_HEADER + 24;
const SLOT: usize = 2;

/// In the meta page: the root's block and, after it, its level.
const META_ROOT: usize = PAGE_HEADER + 4;
/// In the meta page: how often pages were freed.
const META_FREED: usize = PAGE_HEADER + 16;

/// Flag: the page is the root.
pub const ROOT: u16 = 1;
/// Flag: the page is in no level any more, and leads to the page that was its right neighbour. It has no entries, and its
/// upper bound is below everything, so that whoever comes to it goes on to the right.
pub const DELETED: u16 = 2;

/// Bytes of a page that entries can use.
pub const CAPACITY: usize = PAGE_SIZE - SLOTS;
/// The longest key: three entries and a high key of this length fit a page.
pub const MAX_KEY: usize = CAPACITY / 3 - 16;

/// A row id's bytes in a cell.
pub type Tid = [u8; 6];
/// Below all row ids.
pub const LOWEST: Tid = [0; 6];

/// An entry's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Key.
    pub key: &'a [u8],
    /// Row id.
    pub tid: &'a [u8],
    /// Child (inner pages).
    pub child: u32,
}

impl Entry<'_> {
    /// Key first, then row id.
    #[inline]
    pub fn order(&self, key: &[u8], tid: &[u8]) -> Ordering {
        self.key.cmp(key).then_with(|| self.tid.cmp(tid))
    }

    /// The row id.
    pub fn row(&self) -> TupleId {
        let mut bytes = LOWEST;
        bytes.copy_from_slice(self.tid);
        TupleId::from_bytes(bytes)
    }
}

/// Where somebody wants to go: a key and a row id.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The row id.
    pub tid: &'a [u8],
    /// The first eight bytes of both in a row, as a number; None: they are fewer. Most entries differ
    /// from the probe in these.
    head: Option<u64>,
    bounds: Option<Bounds>,
}

/// Heads of a page's lower and upper bound, as its parent has them; the page may have been split since.
pub type Bounds = [u64; 2];

impl<'a> Probe<'a> {
    /// For this key and row id.
    #[inline]
    pub fn new(key: &'a [u8], tid: &'a [u8]) -> Probe<'a> {
        let head = match key.first_chunk() {
            Some(chunk) => Some(u64::from_be_bytes(*chunk)),
            None if key.len() + tid.len() >= HEAD => {
                let bytes = key.iter().chain(tid).take(HEAD);
                Some(bytes.fold(0, |head, b| head << 8 | u64::from(*b)))
            }
            None => None,
        };
        Probe { key, tid, head, bounds: None }
    }

    /// The same, to be looked for in a page with these bounds: the search there begins with a guess that
    /// needs no look at the page's ends, which are in other lines than all else.
    #[inline]
    pub fn within(self, bounds: Option<Bounds>) -> Probe<'a> {
        Probe { bounds, ..self }
    }

    /// The order of a cell's beginning and the probe's, if it is that of the whole: keys of one length
    /// with their row ids compare as strings, and so do keys that are longer than the beginning.
    #[inline]
    fn order_of_heads<P: Bytes>(&self, page: P, at: usize, len: usize) -> Option<Ordering> {
        let own = self.key.len();
        if len != own && len.min(own) < HEAD || at + len > PAGE_SIZE {
            return None;
        }
        Some(page.head(at)?.cmp(&self.head?)).filter(|order| order.is_ne())
    }
}

/// Bytes of [`Probe`]'s head.
const HEAD: usize = 8;

/// Entries of a page from which on a search begins with a guess.
const WORTH_A_GUESS: usize = 32;
/// How far the first step from a guess goes.
const FIRST_STEP: usize = 2;
/// How many times longer each step is than the one before.
const LONGER: usize = 4;

/// Where a node's bytes are: in a latched page, or in one that may change while it is read. What
/// lies beyond the page is zero, or None.
pub trait Bytes: Copy {
    /// A little-endian u16.
    fn u16_at(self, at: usize) -> u16;
    /// A little-endian u32.
    fn u32_at(self, at: usize) -> u32;
    /// Compares `len` bytes with `other`.
    fn compare(self, at: usize, len: usize, other: &[u8]) -> Option<Ordering>;
    /// A row id's bytes.
    fn tid_at(self, at: usize) -> Option<Tid>;
    /// Eight bytes, as a big-endian number.
    fn head(self, at: usize) -> Option<u64>;
}

impl Bytes for &Page {
    #[inline]
    fn u16_at(self, at: usize) -> u16 {
        self.get(at..at + 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]))
    }
    #[inline]
    fn u32_at(self, at: usize) -> u32 {
        self.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }
    #[inline]
    fn compare(self, at: usize, len: usize, other: &[u8]) -> Option<Ordering> {
        self.get(at..at + len).map(|bytes| bytes.cmp(other))
    }
    fn tid_at(self, at: usize) -> Option<Tid> {
        self.get(at..at + 6).and_then(|b| b.try_into().ok())
    }
    #[inline]
    fn head(self, at: usize) -> Option<u64> {
        self.get(at..)?.first_chunk().map(|b| u64::from_be_bytes(*b))
    }
}

impl Bytes for PageView<'_> {
    #[inline]
    fn u16_at(self, at: usize) -> u16 {
        self.u16(at)
    }
    #[inline]
    fn u32_at(self, at: usize) -> u32 {
        self.u32(at)
    }
    #[inline]
    fn compare(self, at: usize, len: usize, other: &[u8]) -> Option<Ordering> {
        PageView::compare(self, at, len, other)
    }
    #[inline]
    fn tid_at(self, at: usize) -> Option<Tid> {
        self.copy(at)
    }
    #[inline]
    fn head(self, at: usize) -> Option<u64> {
        self.copy(at).map(u64::from_be_bytes)
    }
}

/// Where a look-up goes from an inner page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InnerStep {
    /// To the page's right neighbour.
    Right(u32),
    /// To this child, which has these bounds if they are known.
    Child(u32, Option<Bounds>),
}

/// A page seen as a node.
#[derive(Clone, Copy)]
pub struct Node<P>(pub P);

/// The meta page's root and its level; None in a page that is no meta page.
pub fn read_meta(page: &Page) -> Option<(u32, u16)> {
    (page.u16_at(KIND) == KIND_META).then(|| (page.u32_at(META_ROOT), page.u16_at(META_ROOT + 4)))
}

/// How often pages were freed, from the meta page, which may change while it is read.
pub fn freed<P: Bytes>(page: P) -> Option<u64> {
    let [low, high] = [META_FREED, META_FREED + 4].map(|at| u64::from(page.u32_at(at)));
    (page.u16_at(KIND) == KIND_META).then_some(high << 32 | low)
}

/// Writes it.
pub fn put_freed(mtr: &mut Mtr<'_>, page: PageRef, freed: u64) {
    mtr.put_u64(page, META_FREED, freed);
}

/// Writes the meta page's content.
pub fn put_meta(mtr: &mut Mtr<'_>, page: PageRef, root: u32, level: u16) {
    mtr.put_u16(page, KIND, KIND_META);
    mtr.put_u32(page, META_ROOT, root);
    mtr.put_u16(page, META_ROOT + 4, level);
}

impl<P: Bytes> Node<P> {
    /// Whether this is a B-tree node (a page never used is not).
    #[inline]
    pub fn is_node(self) -> bool {
        self.0.u16_at(KIND) == KIND_NODE
    }
    /// Whether the page was never used.
    pub fn is_new(self) -> bool {
        self.0.u16_at(KIND) == 0
    }
    /// 0 for leaves.
    pub fn level(self) -> u16 {
        self.0.u16_at(LEVEL)
    }
    /// Right neighbour, 0: none.
    #[inline]
    pub fn right(self) -> u32 {
        self.0.u32_at(RIGHT)
    }
    /// Left neighbour, 0: none.
    pub fn left(self) -> u32 {
        self.0.u32_at(LEFT)
    }
    /// Whether it is the root.
    pub fn is_root(self) -> bool {
        self.0.u16_at(FLAGS) & ROOT != 0
    }
    /// Whether it was taken out of the tree.
    pub fn is_deleted(self) -> bool {
        self.0.u16_at(FLAGS) & DELETED != 0
    }
    /// How many entries.
    #[inline]
    pub fn count(self) -> usize {
        usize::from(self.0.u16_at(LOWER)).min(PAGE_SIZE).saturating_sub(SLOTS) / SLOT
    }
    /// Bytes in cells that no slot points at.
    pub fn garbage(self) -> usize {
        usize::from(self.0.u16_at(GARBAGE))
    }
    /// Bytes between slots and cells.
    pub fn room(self) -> usize {
        usize::from(self.0.u16_at(UPPER)).saturating_sub(usize::from(self.0.u16_at(LOWER)))
    }

    /// Where entry `index` is and how long its key.
    #[inline]
    fn place(self, index: usize) -> (usize, usize) {
        let at = usize::from(self.0.u16_at(SLOTS + index * SLOT));
        (at + 2, usize::from(self.0.u16_at(at)))
    }

    /// How the cell compares with the probe; None when it makes no sense.
    #[inline]
    fn order_at(self, (at, len): (usize, usize), probe: &Probe<'_>) -> Option<Ordering> {
        match probe.order_of_heads(self.0, at, len) {
            Some(unequal) => Some(unequal),
            None => self.order_of_all(at, len, probe),
        }
    }

    fn order_of_all(self, at: usize, len: usize, probe: &Probe<'_>) -> Option<Ordering> {
        match self.0.compare(at, len, probe.key)? {
            Ordering::Equal => self.0.compare(at + len, probe.tid.len(), probe.tid),
            unequal => Some(unequal),
        }
    }

    /// Where the upper bound is; None in the rightmost page of a level.
    #[inline]
    fn high_place(self) -> Option<(usize, usize)> {
        match usize::from(self.0.u16_at(HIGH)) {
            0 => None,
            at => Some((at + 2, usize::from(self.0.u16_at(at)))),
        }
    }

    /// Whether the page has an upper bound whose key is at or below `key`: entries with this key may
    /// be further right.
    #[inline]
    pub fn ends_within(self, key: &[u8]) -> bool {
        let order = self.high_place().and_then(|(at, len)| self.0.compare(at, len, key));
        order.is_some_and(|o| o != Ordering::Greater)
    }

    /// Whether the probe belongs to a page further right.
    #[inline]
    pub fn is_beyond(self, probe: &Probe<'_>) -> bool {
        let order = self.high_place().and_then(|place| self.order_at(place, probe));
        order.is_some_and(|o| o != Ordering::Greater) && self.right() != 0
    }

    /// Index of the first entry at or above the probe.
    #[inline]
    pub fn lower_bound(self, probe: &Probe<'_>) -> Option<usize> {
        self.first_not(0, probe, |order| order == Ordering::Less)
    }

    /// Index of the first entry from `first` on that is not `before` the place that is looked for. Begins
    /// where the entry would be if all were spread evenly, and takes longer and longer steps from there: in
    /// a page that is in no cache, each entry that is looked at is a line or two from memory, and of
    /// even keys two or three are looked at instead of nine. (Interpolation search; Graefe, "B-tree
    /// indexes, interpolation search, and skew", 2006.)
    #[inline]
    fn first_not(
        self,
        first: usize,
        probe: &Probe<'_>,
        before: impl Fn(Ordering) -> bool,
    ) -> Option<usize> {
        let is_before = |at: usize| self.order_at(self.place(at), probe).map(&before);
        let (mut low, mut high) = (first, self.count());
        if let Some(mut at) = self.guess(low, high, probe) {
            let mut step = FIRST_STEP;
            if is_before(at)? {
                low = at + 1;
                while at + step < high {
                    at += step;
                    if !is_before(at)? {
                        high = at;
                        break;
                    }
                    (low, step) = (at + 1, step * LONGER);
                }
            } else {
                high = at;
                while at >= low + step {
                    at -= step;
                    if is_before(at)? {
                        low = at + 1;
                        break;
                    }
                    (high, step) = (at, step * LONGER);
                }
            }
        }
        while low < high {
            let middle = (low + high) / 2;
            if is_before(middle)? {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    /// Which of the entries from `first` on is probably nearest to the probe, if heads can tell.
    #[inline]
    fn guess(self, first: usize, count: usize, probe: &Probe<'_>) -> Option<usize> {
        let many = count.saturating_sub(first);
        if many < WORTH_A_GUESS {
            return None;
        }
        let own = probe.head?;
        let [lowest, highest] = match probe.bounds {
            Some(bounds) => bounds,
            None => {
                let last = self.high_place().unwrap_or_else(|| self.place(count - 1));
                [self.0.head(self.place(first).0)?, self.0.head(last.0)?]
            }
        };
        if own <= lowest || own >= highest {
            return None; // a bound that says nothing, or bytes that make no sense
        }
        let share = (own - lowest) as f64 / (highest - lowest) as f64;
        Some(first + ((share * many as f64) as usize).min(many - 1))
    }

    /// Where to go for the probe from an inner page: to the child of the last entry at or below it (the first
    /// entry counts as below everything), or to the right.
    #[inline]
    pub fn way_to(self, probe: &Probe<'_>) -> Option<InnerStep> {
        let above = self.first_not(1, probe, |order| order != Ordering::Greater)?;
        // An entry above it would be within the page's upper bound, which need not be looked at then.
        let is_last = above >= self.count();
        if is_last && self.is_beyond(probe) {
            return Some(InnerStep::Right(self.right()));
        }
        let (at, len) = self.place(above - 1);
        let child = Some(self.0.u32_at(at + len + 6)).filter(|&child| child != 0)?;
        let own = |i: usize| probe.bounds.map(|bounds| bounds[i]);
        let low = if above == 1 { own(0) } else { self.0.head(at) };
        let high = if is_last { own(1) } else { self.0.head(self.place(above).0) };
        Some(InnerStep::Child(child, low.zip(high).map(|(low, high)| [low, high])))
    }

    /// The row id of entry `index`, or None inside if its key is another one; None outside when the
    /// entry makes no sense.
    #[inline]
    pub fn row_with(self, index: usize, key: &[u8]) -> Option<Option<TupleId>> {
        let (at, len) = self.place(index);
        if self.0.compare(at, len, key)? != Ordering::Equal {
            return Some(None);
        }
        Some(Some(TupleId::from_bytes(self.0.tid_at(at + len)?)))
    }
}

impl<'a> Node<&'a Page> {
    fn cell(self, (at, len): (usize, usize)) -> Option<Entry<'a>> {
        let page: &'a [u8] = self.0;
        let key = page.get(at..at + len)?;
        let tid = page.get(at + len..at + len + 6)?;
        Some(Entry { key, tid, child: self.0.u32_at(at + len + 6) })
    }

    /// Entry `index`.
    #[inline]
    pub fn entry(self, index: usize) -> Option<Entry<'a>> {
        self.cell(self.place(index))
    }

    /// The upper bound; None in the rightmost page of a level.
    #[inline]
    pub fn high(self) -> Option<Entry<'a>> {
        self.high_place().and_then(|place| self.cell(place))
    }

    /// Index of the entry that leads to a child.
    pub fn index_of_child(self, child: u32) -> Option<usize> {
        self.entries().position(|entry| entry.child == child)
    }

    /// All entries.
    pub fn entries(self) -> impl Iterator<Item = Entry<'a>> {
        (0..self.count()).map_while(move |i| self.entry(i))
    }
}

/// An entry's cell as bytes.
pub fn cell_bytes(key: &[u8], tid: &[u8], child: Option<u32>) -> Vec<u8> {
    let mut cell = Vec::with_capacity(key.len() + 12);
    push_cell(&mut cell, key, tid, child);
    cell
}

fn push_cell(out: &mut Vec<u8>, key: &[u8], tid: &[u8], child: Option<u32>) {
    out.extend_from_slice(&(key.len() as u16).to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(tid);
    if let Some(child) = child {
        out.extend_from_slice(&child.to_le_bytes());
    }
}

/// Bytes that an entry with a key of this length takes, slot included.
pub const fn entry_size(key_len: usize, inner: bool) -> usize {
    2 + key_len + 6 + if inner { 4 } else { 0 } + SLOT
}

/// Inserts a cell at `index` into a page that has room for it and its slot.
pub fn insert_cell(mtr: &mut Mtr<'_>, page: PageRef, index: usize, cell: &[u8]) {
    let now = mtr.page(page);
    let lower = usize::from(now.u16_at(LOWER));
    let at = usize::from(now.u16_at(UPPER)) - cell.len();
    assert!(lower + SLOT <= at, "a B-tree page overflows");
    mtr.put(page, at, cell);
    let slot = SLOTS + index * SLOT;
    if slot < lower {
        mtr.shift(page, slot, slot + SLOT, lower - slot);
    }
    mtr.put_u16(page, slot, at as u16);
    put_bounds(mtr, page, lower + SLOT, at);
}

fn put_bounds(mtr: &mut Mtr<'_>, page: PageRef, lower: usize, upper: usize) {
    let mut bytes = [0; 4];
    bytes[..2].copy_from_slice(&(lower as u16).to_le_bytes());
    bytes[2..].copy_from_slice(&(upper as u16).to_le_bytes());
    mtr.put(page, LOWER, &bytes);
}

/// Takes entries out; their cells become garbage. `keep` tells which stay, by index.
pub fn retain(mtr: &mut Mtr<'_>, page: PageRef, keep: impl Fn(usize) -> bool) -> usize {
    let node = Node(mtr.page(page));
    let inner = node.level() > 0;
    let count = node.count();
    let mut slots = Vec::with_capacity(count * SLOT);
    let mut garbage = node.garbage();
    for i in 0..count {
        let at = SLOTS + i * SLOT;
        if keep(i) {
            slots.extend_from_slice(&node.0[at..at + SLOT]);
        } else if let Some(entry) = node.entry(i) {
            garbage += entry_size(entry.key.len(), inner) - SLOT;
        }
    }
    let left = slots.len() / SLOT;
    if left == count {
        return 0;
    }
    let upper = usize::from(node.0.u16_at(UPPER));
    mtr.put(page, SLOTS, &slots);
    put_bounds(mtr, page, SLOTS + slots.len(), upper);
    mtr.put_u16(page, GARBAGE, garbage as u16);
    count - left
}

/// A page's content in the making: for splits, compaction and building.
pub struct Body {
    level: u16,
    /// Right neighbour.
    pub right: u32,
    /// Left neighbour.
    pub left: u32,
    /// Whether it is the root.
    pub root: bool,
    deleted: bool,
    high: Option<(Vec<u8>, Tid)>,
    slots: Vec<u16>,
    cells: Vec<u8>,
}

impl Body {
    /// An empty page of this level.
    pub fn new(level: u16) -> Body {
        Body {
            level,
            right: 0,
            left: 0,
            root: false,
            deleted: false,
            high: None,
            slots: Vec::new(),
            cells: Vec::new(),
        }
    }

    /// A page with the links and flags of `node`, without its entries and high key.
    pub fn like(node: Node<&Page>) -> Body {
        let mut body = Body::new(node.level());
        (body.right, body.left, body.root) = (node.right(), node.left(), node.is_root());
        body
    }

    /// The rest of a page that is taken out of the tree: see [`DELETED`].
    pub fn deleted(node: Node<&Page>) -> Body {
        let mut body = Body { root: false, deleted: true, ..Body::like(node) };
        body.set_high(&[], &LOWEST);
        body
    }

    /// Sets the upper bound.
    pub fn set_high(&mut self, key: &[u8], tid: &[u8]) {
        let mut bytes = LOWEST;
        bytes.copy_from_slice(tid);
        self.high = Some((key.to_vec(), bytes));
    }

    /// Adds an entry at the end.
    pub fn push(&mut self, entry: Entry<'_>) {
        // Offsets count from the cells' beginning until it is known where that is.
        self.slots.push(self.cells.len() as u16);
        let child = (self.level > 0).then_some(entry.child);
        push_cell(&mut self.cells, entry.key, entry.tid, child);
    }

    /// Bytes used so far.
    pub fn size(&self) -> usize {
        let high = self.high.as_ref().map_or(0, |(key, _)| entry_size(key.len(), false) - SLOT);
        self.slots.len() * SLOT + self.cells.len() + high
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Writes the page. `fresh`: the page was never used.
    pub fn write(mut self, mtr: &mut Mtr<'_>, page: PageRef, fresh: bool) {
        assert!(self.size() <= CAPACITY, "a B-tree page overflows");
        let high_at = self.high.take().map(|(key, tid)| {
            let at = self.cells.len();
            push_cell(&mut self.cells, &key, &tid, None);
            at
        });
        let upper = PAGE_SIZE - self.cells.len();
        let lower = SLOTS + self.slots.len() * SLOT;
        let mut head = vec![0; lower - PAGE_HEADER];
        let mut set = |at: usize, bytes: &[u8]| {
            head[at - PAGE_HEADER..at - PAGE_HEADER + bytes.len()].copy_from_slice(bytes);
        };
        set(KIND, &KIND_NODE.to_le_bytes());
        set(LOWER, &(lower as u16).to_le_bytes());
        set(UPPER, &(upper as u16).to_le_bytes());
        let flag = |on: bool, bit: u16| if on { bit } else { 0 };
        set(FLAGS, &(flag(self.root, ROOT) | flag(self.deleted, DELETED)).to_le_bytes());
        set(RIGHT, &self.right.to_le_bytes());
        set(LEFT, &self.left.to_le_bytes());
        set(LEVEL, &self.level.to_le_bytes());
        set(HIGH, &high_at.map_or(0, |at| (upper + at) as u16).to_le_bytes());
        for (i, slot) in self.slots.iter().enumerate() {
            set(SLOTS + i * SLOT, &(upper as u16 + slot).to_le_bytes());
        }
        if fresh {
            mtr.init(page);
        }
        mtr.put(page, PAGE_HEADER, &head);
        if !self.cells.is_empty() {
            mtr.put(page, upper, &self.cells);
        }
    }
}

/// Changes the child of an entry of an inner page.
pub fn put_child(mtr: &mut Mtr<'_>, page: PageRef, index: usize, child: u32) {
    let (at, len) = Node(mtr.page(page)).place(index);
    mtr.put_u32(page, at + len + 6, child);
}

/// Changes the right neighbour.
pub fn put_right(mtr: &mut Mtr<'_>, page: PageRef, right: u32) {
    mtr.put_u32(page, RIGHT, right);
}

/// Changes the left neighbour.
pub fn put_left(mtr: &mut Mtr<'_>, page: PageRef, left: u32) {
    mtr.put_u32(page, LEFT, left);
}

/// The shortest bound that is above everything in the left page and not above the right page's
/// first entry.
pub fn separator<'a>(left: Entry<'_>, right: Entry<'a>) -> (&'a [u8], Tid) {
    let common = left.key.iter().zip(right.key).take_while(|(a, b)| a == b).count();
    if common < right.key.len() && left.key != right.key {
        return (&right.key[..common + 1], LOWEST);
    }
    let mut tid = LOWEST;
    tid.copy_from_slice(right.tid);
    (right.key, tid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry<'a>(key: &'a [u8], tid: &'a [u8]) -> Entry<'a> {
        Entry { key, tid, child: 0 }
    }

    #[test]
    fn separators_are_short_and_lie_between() {
        let (a, b) = ([0, 0, 0, 1, 0, 1], [0, 0, 0, 2, 0, 1]);
        for (left, right, expected) in [
            (entry(b"apple", &b), entry(b"banana", &a), (&b"b"[..], LOWEST)),
            (entry(b"app", &b), entry(b"apple", &a), (b"appl", LOWEST)),
            (entry(b"app", &a), entry(b"app", &b), (b"app", b)),
        ] {
            let (key, tid) = separator(left, right);
            assert_eq!((key, tid), expected);
            assert_eq!(left.order(key, &tid), Ordering::Less);
            assert_ne!(right.order(key, &tid), Ordering::Less);
        }
    }

    #[test]
    fn a_probe_compares_as_key_and_row_id_do() {
        // Few different bytes and all lengths around the head's.
        let mut x = 5_u64;
        let mut random = |below: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (x >> 33) % below
        };
        let mut page: Box<Page> = vec![0; PAGE_SIZE].into_boxed_slice().try_into().unwrap();
        for _ in 0..20_000 {
            let bytes: [u8; 40] = std::array::from_fn(|_| random(2) as u8);
            let (own, other) = (random(12) as usize, random(12) as usize);
            let (key, tid) = (&bytes[..own], &bytes[12..18]);
            let at = PAGE_SIZE - own - 6 - random(2) as usize;
            page[at..at + own].copy_from_slice(key);
            page[at + own..at + own + 6].copy_from_slice(tid);
            let probe = Probe::new(&bytes[18..18 + other], &bytes[30..36]);
            let expected = entry(key, tid).order(probe.key, probe.tid);
            assert_eq!(Node(&*page).order_at((at, own), &probe), Some(expected));
        }
    }

    /// A page with cells of these keys, in an order of their own, and perhaps a high key.
    fn node_of(keys: &[u64], high: Option<u64>) -> Box<Page> {
        let mut page: Box<Page> = vec![0; PAGE_SIZE].into_boxed_slice().try_into().unwrap();
        let mut at = PAGE_SIZE;
        let mut put = |page: &mut Page, key: u64| {
            let mut cell = Vec::new();
            push_cell(&mut cell, &key.to_be_bytes(), &[0, 0, 0, 0, 0, 1], Some(key as u32 | 1));
            at -= cell.len();
            page[at..at + cell.len()].copy_from_slice(&cell);
            (at as u16).to_le_bytes()
        };
        for (index, key) in keys.iter().enumerate() {
            let slot = SLOTS + index * SLOT;
            let place = put(&mut page, *key);
            page[slot..slot + SLOT].copy_from_slice(&place);
        }
        if let Some(high) = high {
            let place = put(&mut page, high);
            page[HIGH..HIGH + 2].copy_from_slice(&place);
        }
        page[LOWER..LOWER + 2].copy_from_slice(&((SLOTS + keys.len() * SLOT) as u16).to_le_bytes());
        page
    }

    #[test]
    fn searches_find_what_one_entry_after_the_other_finds() {
        // Even keys, keys of growing distance, most keys alike, two heaps far apart.
        let spreads: [fn(u64) -> u64; 4] = [
            |i| 1_000 + i * 7,
            |i| (i * i * i) << 20,
            |i| if i < 150 { 5 } else { i << 32 },
            |i| if i % 200 < 100 { i } else { u64::MAX - 400 + i },
        ];
        for spread in spreads {
            for count in [0_u64, 1, 2, 31, 32, 33, 200, 300] {
                let mut keys: Vec<u64> = (0..count).map(spread).collect();
                keys.sort_unstable();
                for high in [None, keys.last().map(|last| last.saturating_add(3))] {
                    let page = node_of(&keys, high);
                    let node = Node(&*page);
                    let around =
                        keys.iter().flat_map(|k| [k.saturating_sub(1), *k, k.saturating_add(1)]);
                    for wanted in around.chain([0, u64::MAX]) {
                        let bytes = wanted.to_be_bytes();
                        let probe = Probe::new(&bytes, &LOWEST);
                        let expected = keys.iter().filter(|k| **k < wanted).count();
                        let after = keys.iter().skip(1).filter(|k| **k < wanted).count();
                        // Whatever the way there said of the page's bounds.
                        let said = [[0, u64::MAX], [wanted - wanted.min(9), wanted | 8], [5, 5]];
                        for bounds in said.map(Some).into_iter().chain([None]) {
                            let probe = probe.within(bounds);
                            let of = format!("{wanted} of {count} within {bounds:?}");
                            assert_eq!(node.lower_bound(&probe), Some(expected), "{of}");
                            let Some(child) = keys.get(after) else { continue };
                            let Some(InnerStep::Child(found, low_high)) = node.way_to(&probe)
                            else {
                                panic!("{of}");
                            };
                            assert_eq!(found, *child as u32 | 1, "{of}");
                            if let (1.., Some([low, _])) = (after, low_high) {
                                assert_eq!(low, keys[after], "{of}");
                            }
                            if let (Some(next), Some([_, high])) = (keys.get(after + 1), low_high) {
                                assert_eq!(high, *next, "{of}");
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_beyond_a_page_is_to_its_right() {
        let keys: Vec<u64> = (0..100).map(|i| i * 10).collect();
        let mut page = node_of(&keys, Some(995));
        page[RIGHT..RIGHT + 4].copy_from_slice(&77_u32.to_le_bytes());
        let node = Node(&*page);
        for (wanted, beyond) in [(0, false), (500, false), (990, false), (994, false), (996, true)]
        {
            let bytes = u64::to_be_bytes(wanted);
            for bounds in [None, Some([0, 995]), Some([0, 2000])] {
                let way = node.way_to(&Probe::new(&bytes, &LOWEST).within(bounds));
                assert_eq!(way == Some(InnerStep::Right(77)), beyond, "{wanted}");
            }
        }
    }

    #[test]
    fn a_deleted_page_leads_everybody_to_the_right() {
        let mut page = node_of(&[], None);
        page[HIGH..HIGH + 2].copy_from_slice(&((PAGE_SIZE - 8) as u16).to_le_bytes());
        page[RIGHT..RIGHT + 4].copy_from_slice(&77_u32.to_le_bytes());
        let node = Node(&*page);
        let (long, short) = ([0_u8; 9], [0_u8; 0]);
        for key in [&long[..], &short, b"abc", &[0xff; 12]] {
            for tid in [LOWEST, [0xff; 6]] {
                let probe = Probe::new(key, &tid);
                assert!(node.is_beyond(&probe), "{key:?}");
                assert_eq!(node.lower_bound(&probe), Some(0));
                for bounds in [None, Some([0, u64::MAX])] {
                    let way = node.way_to(&probe.within(bounds));
                    assert_eq!(way, Some(InnerStep::Right(77)), "{key:?}");
                }
            }
        }
    }

    #[test]
    fn a_node_of_garbage_is_survived() {
        let mut page: Box<Page> = vec![0xff; PAGE_SIZE].into_boxed_slice().try_into().unwrap();
        let node = Node(&*page);
        let x = Probe::new(b"x", &LOWEST);
        assert_eq!(node.way_to(&x), None);
        assert_eq!(node.lower_bound(&x), None);
        assert!(!node.is_beyond(&x));
        page.fill(0);
        assert_eq!(Node(&*page).lower_bound(&x), Some(0));
    }
}

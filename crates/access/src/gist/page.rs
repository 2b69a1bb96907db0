//! Pages of a search tree.
//!
//! ```text
//! meta  | storage | kind | … | last split's number | how often pages were freed         |
//! node  | storage | kind | level | count | lowest cell | right | … | split | slots → … ← cells |
//! ```
//!
//! A slot is a cell's place and length, two bytes each. A cell is four bytes of child (inner pages) or six of row
//! id (leaves, level 0), and a key. Cells that no slot names are garbage until the page is written anew.
//! `split` is the number of the split that last moved cells from this page to the one at `right`. A page that vacuum took
//! out of the tree is of level [`DELETED`] and without cells; a free one is of zeros behind storage's header.

use base::TupleId;
use storage::{Mtr, PAGE_HEADER, PAGE_SIZE, Page, PageRef};

/// Kinds of pages.
pub const KIND_META: u16 = 0x474D;
pub const KIND_NODE: u16 = 0x474E;

/// The level of a page that is in the tree no more.
pub const DELETED: u16 = u16::MAX;

const KIND: usize = PAGE_HEADER;
const META_SPLIT: usize = PAGE_HEADER + 8;
const META_FREED: usize = PAGE_HEADER + 16;
const LEVEL: usize = PAGE_HEADER + 2;
const COUNT: usize = PAGE_HEADER + 4;
const LOWEST: usize = PAGE_HEADER + 6;
const RIGHT: usize = PAGE_HEADER + 8;
const SPLIT: usize = PAGE_HEADER + 16;
const SLOTS: usize = PAGE_HEADER + 24;
const SLOT: usize = 4;

/// Bytes of a page that slots and cells have.
pub const CAPACITY: usize = PAGE_SIZE - SLOTS;
/// The longest key: three must fit a page.
pub const KEY_MAX: usize = CAPACITY / 3 - SLOT - 6;

/// The page or row that a cell leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A page of the level below.
    Child(u32),
    /// A row.
    Row(TupleId),
}

/// A cell, taken out of its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub target: Target,
    pub key: Vec<u8>,
}

impl Cell {
    /// Bytes that it needs of a page.
    pub fn size(&self) -> usize {
        let target = match self.target {
            Target::Child(_) => 4,
            Target::Row(_) => 6,
        };
        SLOT + target + self.key.len()
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.key.len() + 6);
        match self.target {
            Target::Child(block) => out.extend_from_slice(&block.to_le_bytes()),
            Target::Row(row) => out.extend_from_slice(&row.to_bytes()),
        }
        out.extend_from_slice(&self.key);
        out
    }
}

fn u16_at(page: &Page, at: usize) -> u16 {
    u16::from_le_bytes([page[at], page[at + 1]])
}

fn u32_at(page: &Page, at: usize) -> u32 {
    u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

fn u64_at(page: &Page, at: usize) -> u64 {
    u64::from(u32_at(page, at)) | u64::from(u32_at(page, at + 4)) << 32
}

/// The kind of a page; 0: never used.
pub fn kind(page: &Page) -> u16 {
    u16_at(page, KIND)
}

/// The number of the last split, from the meta page; None when it is none.
pub fn last_split(page: &Page) -> Option<u64> {
    (kind(page) == KIND_META).then(|| u64_at(page, META_SPLIT))
}

/// How often pages were freed, from the meta page; None when it is none.
pub fn freed(page: &Page) -> Option<u64> {
    (kind(page) == KIND_META).then(|| u64_at(page, META_FREED))
}

/// Writes it.
pub fn put_freed(mtr: &mut Mtr<'_>, page: PageRef, freed: u64) {
    mtr.put_u64(page, META_FREED, freed);
}

/// Begins the meta page.
pub fn init_meta(mtr: &mut Mtr<'_>, page: PageRef) {
    mtr.init(page);
    mtr.put_u16(page, KIND, KIND_META);
    mtr.put_u64(page, META_SPLIT, 0);
}

/// Writes the number of the last split.
pub fn put_last_split(mtr: &mut Mtr<'_>, page: PageRef, split: u64) {
    mtr.put_u64(page, META_SPLIT, split);
}

/// A node of the tree.
#[derive(Clone, Copy)]
pub struct Node<'p>(pub &'p Page);

impl<'p> Node<'p> {
    pub fn is_node(self) -> bool {
        kind(self.0) == KIND_NODE
    }

    pub fn level(self) -> u16 {
        u16_at(self.0, LEVEL)
    }

    pub fn is_deleted(self) -> bool {
        self.level() == DELETED
    }

    pub fn is_leaf(self) -> bool {
        self.level() == 0
    }

    pub fn count(self) -> usize {
        usize::from(u16_at(self.0, COUNT)).min(CAPACITY / SLOT)
    }

    /// Where the cells begin.
    fn lowest(self) -> usize {
        usize::from(u16_at(self.0, LOWEST))
    }

    /// The page that took the upper part of this one; 0: none.
    pub fn right(self) -> u32 {
        u32_at(self.0, RIGHT)
    }

    /// The number of the split that did.
    pub fn split(self) -> u64 {
        u64_at(self.0, SPLIT)
    }

    fn slot(self, n: usize) -> (usize, usize) {
        let at = SLOTS + n * SLOT;
        (usize::from(u16_at(self.0, at)), usize::from(u16_at(self.0, at + 2)))
    }

    /// A cell's target and key; None when the page makes no sense.
    pub fn cell(self, n: usize) -> Option<(Target, &'p [u8])> {
        let (at, len) = self.slot(n);
        let bytes = self.0.get(at..at.checked_add(len)?)?;
        if at < SLOTS {
            return None;
        }
        if self.is_leaf() {
            let (row, key) = bytes.split_first_chunk::<6>()?;
            return Some((Target::Row(TupleId::from_bytes(*row)), key));
        }
        let (child, key) = bytes.split_first_chunk::<4>()?;
        Some((Target::Child(u32::from_le_bytes(*child)), key))
    }

    /// All cells; None when the page makes no sense.
    pub fn cells(self) -> Option<Vec<(Target, &'p [u8])>> {
        (0..self.count()).map(|n| self.cell(n)).collect()
    }

    /// All cells, taken out.
    pub fn owned(self) -> Option<Vec<Cell>> {
        let own = |n| self.cell(n).map(|(target, key)| Cell { target, key: key.to_vec() });
        (0..self.count()).map(own).collect()
    }

    /// Whether a cell in the place of another, and further ones, go between slots and cells as they are.
    pub fn takes(self, own: Option<&(usize, Cell)>, more: &[Cell]) -> bool {
        let replaced = own.map_or(0, |(n, cell)| match cell.size() - SLOT {
            same if same == self.slot(*n).1 => 0,
            other => other,
        });
        self.room() >= replaced + more.iter().map(Cell::size).sum::<usize>()
    }

    /// Bytes between slots and cells.
    fn room(self) -> usize {
        self.lowest().saturating_sub(SLOTS + self.count() * SLOT)
    }
}

/// The head of a node.
#[derive(Clone, Copy, Default)]
pub struct Head {
    pub level: u16,
    pub right: u32,
    pub split: u64,
}

impl Head {
    pub fn of(node: Node<'_>) -> Head {
        Head { level: node.level(), right: node.right(), split: node.split() }
    }
}

/// Whether cells fit a page.
pub fn fit(cells: &[Cell]) -> bool {
    cells.iter().map(Cell::size).sum::<usize>() <= CAPACITY
}

/// Writes a node anew.
pub fn write(mtr: &mut Mtr<'_>, page: PageRef, head: Head, cells: &[Cell]) {
    let mut body = vec![0; PAGE_SIZE - PAGE_HEADER];
    let mut lowest = PAGE_SIZE;
    for (n, cell) in cells.iter().enumerate() {
        let bytes = cell.bytes();
        lowest -= bytes.len();
        let slot = SLOTS + n * SLOT - PAGE_HEADER;
        body[slot..slot + 2].copy_from_slice(&(lowest as u16).to_le_bytes());
        body[slot + 2..slot + 4].copy_from_slice(&(bytes.len() as u16).to_le_bytes());
        body[lowest - PAGE_HEADER..][..bytes.len()].copy_from_slice(&bytes);
    }
    let mut put = |at: usize, bytes: &[u8]| {
        body[at - PAGE_HEADER..][..bytes.len()].copy_from_slice(bytes);
    };
    put(KIND, &KIND_NODE.to_le_bytes());
    put(LEVEL, &head.level.to_le_bytes());
    put(COUNT, &(cells.len() as u16).to_le_bytes());
    put(LOWEST, &(lowest as u16).to_le_bytes());
    put(RIGHT, &head.right.to_le_bytes());
    put(SPLIT, &head.split.to_le_bytes());
    mtr.replace(page, &body);
}

/// Adds a cell behind the others, or puts it in the place of one; false, and nothing is done, when there is no
/// room between slots and cells.
pub fn put(mtr: &mut Mtr<'_>, page: PageRef, place: Option<usize>, cell: &Cell) -> bool {
    let node = Node(mtr.page(page));
    let (count, room, lowest) = (node.count(), node.room(), node.lowest());
    let bytes = cell.bytes();
    if let Some(n) = place {
        let (at, len) = node.slot(n);
        if len == bytes.len() {
            mtr.put(page, at, &bytes);
            return true;
        }
    }
    let needed = bytes.len() + if place.is_none() { SLOT } else { 0 };
    if room < needed {
        return false;
    }
    let at = lowest - bytes.len();
    mtr.put(page, at, &bytes);
    let slot = SLOTS + place.unwrap_or(count) * SLOT;
    mtr.put_u16(page, slot, at as u16);
    mtr.put_u16(page, slot + 2, bytes.len() as u16);
    mtr.put_u16(page, LOWEST, at as u16);
    if place.is_none() {
        mtr.put_u16(page, COUNT, count as u16 + 1);
    }
    true
}

//! The heap page.
//!
//! ```text
//! 0         16     18      20      22      24                lower        upper            8192
//! | storage | kind | lower | upper | flags | line pointers → | free space | ← row versions |
//! ```
//!
//! A line pointer (4 bytes) is `offset u16, state and length u16`: the two high bits are the state
//! ([`Line`]), the low 14 the length of the version with its header. A redirect's offset field is the
//! number of another line pointer. Numbers count from 1, as in `ctid`.
//!
//! A version's header:
//!
//! ```text
//! 0      8      12     20     24          30     32
//! | xmin | cmin | xmax | cmax | next tid  | mask | the row's bytes
//! ```
//!
//! The fields that end a version (`xmax` to `mask`) are contiguous, so that stamping it is one logged write.
//!
//! Invariants: `lower <= upper`; versions begin at multiples of 4 and do not overlap; a page that is
//! all zero after storage's header is an empty page that was never used ([`is_new`]).

use base::{TupleId, Xid};
use storage::{Mtr, PAGE_HEADER, PAGE_SIZE, Page, PageRef, PageView};

/// Tells heap pages from others.
pub const KIND_HEAP: u16 = 0x4850;
const KIND: usize = PAGE_HEADER;
const LOWER: usize = PAGE_HEADER + 2;
const UPPER: usize = PAGE_HEADER + 4;
const FLAGS: usize = PAGE_HEADER + 6;
/// Where line pointers begin.
const LINES: usize = PAGE_HEADER + 8;
const LINE_SIZE: usize = 4;

/// Page flag: some version may be dead; worth a look when space is short.
pub const PRUNABLE: u16 = 1;
/// Page flag: there are unused line pointers below the last one.
pub const FREE_LINES: u16 = 2;

/// Bytes of a version's header.
pub const HEADER: usize = 32;
const CMIN: usize = 8;
const XMAX: usize = 12;
const NEXT: usize = 24;
const MASK: usize = 30;

/// `xmin` is known to be committed, durably.
pub const XMIN_COMMITTED: u16 = 1;
/// `xmin` is known to be rolled back.
pub const XMIN_ABORTED: u16 = 2;
/// `xmax` is known to be committed, durably.
pub const XMAX_COMMITTED: u16 = 4;
/// `xmax` is known to be rolled back.
pub const XMAX_ABORTED: u16 = 8;
/// `xmax` only locked the row.
pub const LOCK_ONLY: u16 = 16;
/// `xmax` deleted the row, changed a key, or locked it FOR UPDATE (else: NO KEY UPDATE).
pub const KEYS: u16 = 32;
/// `xmax` updated the row; `next` is the new version.
pub const HAS_NEXT: u16 = 64;
/// The new version is in the same page and in the same chain.
pub const NEXT_IN_CHAIN: u16 = 128;
/// This version is inside a chain: no index entry points at it.
pub const IN_CHAIN: u16 = 256;

/// This version begins a chain and was made by an update: another one's `next` leads here.
pub const FOLLOWS: u16 = 512;
/// The row's bytes are gone: no snapshot sees the version, but an older one's `next` leads here.
pub const STUB: u16 = 1024;
/// `xmax` deleted the row because it belongs into another partition now.
pub const MOVED: u16 = 2048;

/// The bits about `xmin` and the version's own place, which a new `xmax` leaves alone.
pub const KEEP: u16 = XMIN_COMMITTED | XMIN_ABORTED | IN_CHAIN | FOLLOWS | STUB;

/// Bytes that an empty page has for versions and their line pointers.
pub const EMPTY_PAGE: usize = PAGE_SIZE - LINES;
/// The largest row (without header) that fits a page.
pub const MAX_ROW: usize = PAGE_SIZE - LINES - LINE_SIZE - HEADER;
/// A page with this many line pointers takes no new ones: walks over a page stay short.
const MAX_LINES: u16 = 512;

/// A line pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Free for any use.
    Unused,
    /// A version at this byte offset, with this length (header included).
    Normal(usize, usize),
    /// The chain goes on (its beginning was pruned) at this line pointer.
    Redirect(u16),
    /// The row is gone; index entries may still point here.
    Dead,
}

impl Line {
    #[inline]
    fn decode(word: u32) -> Line {
        let (offset, rest) = (word as u16, (word >> 16) as u16);
        match rest >> 14 {
            0 => Line::Unused,
            1 => Line::Normal(usize::from(offset), usize::from(rest & 0x3fff)),
            2 => Line::Redirect(offset),
            _ => Line::Dead,
        }
    }

    fn encode(self) -> u32 {
        match self {
            Line::Unused => 0,
            Line::Normal(offset, len) => (offset as u32) | (1 << 30) | ((len as u32) << 16),
            Line::Redirect(to) => u32::from(to) | (2 << 30),
            Line::Dead => 3 << 30,
        }
    }
}

/// A version's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Inserting transaction.
    pub xmin: u64,
    /// Its command.
    pub cmin: u32,
    /// Ending or locking transaction; 0: none.
    pub xmax: u64,
    /// Its command.
    pub cmax: u32,
    /// The next version, with [`HAS_NEXT`].
    pub next: TupleId,
    /// The bits above.
    pub mask: u16,
}

/// The end (or lock) of a version.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// The transaction.
    pub xmax: Xid,
    /// Its command.
    pub cmax: u32,
    /// The next version.
    pub next: Option<TupleId>,
    /// Bits about `xmax`.
    pub bits: u16,
}

/// Rounds up to the alignment of versions.
pub const fn align(len: usize) -> usize {
    (len + 3) & !3
}

/// Space that a row of `len` bytes takes in a page, line pointer included.
pub const fn space_for(len: usize) -> usize {
    align(HEADER + len) + LINE_SIZE
}

/// The bytes at an offset; one check of bounds for all of them.
#[inline]
fn get<const N: usize>(page: &Page, at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&page[at..at + N]);
    bytes
}

/// Little-endian u16 at an offset.
#[inline]
pub fn get_u16(page: &Page, at: usize) -> u16 {
    u16::from_le_bytes(get(page, at))
}

/// Little-endian u32 at an offset.
#[inline]
pub fn get_u32(page: &Page, at: usize) -> u32 {
    u32::from_le_bytes(get(page, at))
}

/// Little-endian u64 at an offset.
#[inline]
pub fn get_u64(page: &Page, at: usize) -> u64 {
    u64::from_le_bytes(get(page, at))
}

/// Whether the page was never used.
#[inline]
pub fn is_new(page: &Page) -> bool {
    get_u16(page, KIND) == 0
}

/// The page's kind.
#[inline]
pub fn kind(page: &Page) -> u16 {
    get_u16(page, KIND)
}

/// End of the line pointers.
#[inline]
pub fn lower(page: &Page) -> usize {
    usize::from(get_u16(page, LOWER))
}

/// Beginning of the versions.
#[inline]
pub fn upper(page: &Page) -> usize {
    usize::from(get_u16(page, UPPER))
}

/// Page flags.
#[inline]
pub fn flags(page: &Page) -> u16 {
    get_u16(page, FLAGS)
}

/// How many line pointers there are; their numbers are `1..=count`.
#[inline]
pub fn line_count(page: &Page) -> u16 {
    (lower(page).saturating_sub(LINES) / LINE_SIZE) as u16
}

/// A line pointer; [`Line::Unused`] when there is none of this number.
#[inline]
pub fn line(page: &Page, number: u16) -> Line {
    if number == 0 || number > line_count(page) {
        return Line::Unused;
    }
    Line::decode(get_u32(page, LINES + (usize::from(number) - 1) * LINE_SIZE))
}

/// Prefetches the first bytes of the version that a line pointer leads to.
#[inline]
pub fn prefetch_version(page: PageView<'_>, number: u16, bytes: usize) {
    let offset = page.u16(LINES + usize::from(number).saturating_sub(1) * LINE_SIZE);
    page.prefetch(usize::from(offset), bytes);
}

/// All line pointers with their numbers.
#[inline]
pub fn lines(page: &Page) -> impl Iterator<Item = (u16, Line)> {
    let words = page[LINES..lower(page).max(LINES)].chunks_exact(LINE_SIZE);
    words
        .zip(1..)
        .map(|(w, number)| (number, Line::decode(u32::from_le_bytes([w[0], w[1], w[2], w[3]]))))
}

/// Bytes that a new version with its line pointer can take, without pruning.
#[inline]
pub fn room(page: &Page) -> usize {
    if is_new(page) {
        return EMPTY_PAGE;
    }
    if flags(page) & FREE_LINES == 0 && line_count(page) >= MAX_LINES {
        return 0;
    }
    upper(page).saturating_sub(lower(page))
}

/// Bytes in versions and line pointers as they would be after a compaction.
pub fn used(page: &Page) -> usize {
    let versions: usize = (1..=line_count(page))
        .map(|n| match line(page, n) {
            Line::Normal(_, len) => align(len),
            _ => 0,
        })
        .sum();
    versions + lower(page)
}

/// A version's header.
#[inline]
pub fn header(page: &Page, offset: usize) -> Header {
    let next =
        TupleId { block: get_u32(page, offset + NEXT), offset: get_u16(page, offset + NEXT + 4) };
    Header {
        xmin: get_u64(page, offset),
        cmin: get_u32(page, offset + CMIN),
        xmax: get_u64(page, offset + XMAX),
        cmax: get_u32(page, offset + XMAX + 8),
        next,
        mask: mask(page, offset),
    }
}

/// A version's `xmin`.
#[inline]
pub fn xmin(page: &Page, offset: usize) -> u64 {
    get_u64(page, offset)
}

/// A version's `cmin`.
#[inline]
pub fn cmin(page: &Page, offset: usize) -> u32 {
    get_u32(page, offset + CMIN)
}

/// A version's `xmax`.
#[inline]
pub fn xmax(page: &Page, offset: usize) -> u64 {
    get_u64(page, offset + XMAX)
}

/// A version's `cmax`.
#[inline]
pub fn cmax(page: &Page, offset: usize) -> u32 {
    get_u32(page, offset + XMAX + 8)
}

/// The line pointer of the next version, with [`NEXT_IN_CHAIN`].
#[inline]
pub fn next_line(page: &Page, offset: usize) -> u16 {
    get_u16(page, offset + NEXT + 4)
}

/// A version's bits.
#[inline]
pub fn mask(page: &Page, offset: usize) -> u16 {
    get_u16(page, mask_at(offset))
}

/// Where a version's bits are, for hints.
pub const fn mask_at(offset: usize) -> usize {
    offset + MASK
}

/// The row's bytes.
#[inline]
pub fn row(page: &Page, offset: usize, len: usize) -> &[u8] {
    &page[offset + HEADER..offset + len]
}

/// Follows a root to the byte offset and line number of the first version of its chain.
#[inline]
pub fn first_of_chain(page: &Page, root: u16) -> Option<(u16, usize, usize)> {
    match line(page, root) {
        Line::Normal(offset, len) => Some((root, offset, len)),
        Line::Redirect(to) => match line(page, to) {
            Line::Normal(offset, len) => Some((to, offset, len)),
            _ => None,
        },
        Line::Unused | Line::Dead => None,
    }
}

/// The root of the chain that has the version at this line pointer.
pub fn root_of(page: &Page, number: u16) -> u16 {
    let Line::Normal(offset, _) = line(page, number) else { return number };
    if mask(page, offset) & IN_CHAIN == 0 {
        return number;
    }
    for root in 1..=line_count(page) {
        let start = match line(page, root) {
            Line::Normal(at, _) if mask(page, at) & IN_CHAIN == 0 => root,
            Line::Redirect(to) => to,
            _ => continue,
        };
        if chain_has(page, start, number) {
            return root;
        }
    }
    number
}

fn chain_has(page: &Page, start: u16, wanted: u16) -> bool {
    let mut at = start;
    for _ in 0..line_count(page) {
        if at == wanted {
            return true;
        }
        match line(page, at) {
            Line::Normal(offset, _) if mask(page, offset) & NEXT_IN_CHAIN != 0 => {
                at = next_line(page, offset);
            }
            _ => return false,
        }
    }
    false
}

/// Gives a new page its header; nothing when it has one.
pub fn init_if_new(mtr: &mut Mtr<'_>, page: PageRef) {
    if !is_new(mtr.page(page)) {
        return;
    }
    mtr.init(page);
    let mut head = [0; 8];
    head[..2].copy_from_slice(&KIND_HEAP.to_le_bytes());
    head[2..4].copy_from_slice(&(LINES as u16).to_le_bytes());
    head[4..6].copy_from_slice(&(PAGE_SIZE as u16).to_le_bytes());
    mtr.put(page, KIND, &head);
}

/// Sets or clears page flags.
pub fn put_flags(mtr: &mut Mtr<'_>, page: PageRef, set: u16, clear: u16) {
    let old = flags(mtr.page(page));
    let new = (old | set) & !clear;
    if new != old {
        mtr.put_u16(page, FLAGS, new);
    }
}

/// Writes a line pointer that exists.
pub fn put_line(mtr: &mut Mtr<'_>, page: PageRef, number: u16, line: Line) {
    mtr.put_u32(page, LINES + (usize::from(number) - 1) * LINE_SIZE, line.encode());
}

/// Writes several consecutive line pointers from `first` on.
pub fn put_lines(mtr: &mut Mtr<'_>, page: PageRef, first: u16, lines: &[Line]) {
    let mut bytes = Vec::with_capacity(lines.len() * LINE_SIZE);
    for line in lines {
        bytes.extend_from_slice(&line.encode().to_le_bytes());
    }
    mtr.put(page, LINES + (usize::from(first) - 1) * LINE_SIZE, &bytes);
}

/// Writes `lower` and `upper`.
pub fn put_bounds(mtr: &mut Mtr<'_>, page: PageRef, lower: usize, upper: usize) {
    let mut bytes = [0; 4];
    bytes[..2].copy_from_slice(&(lower as u16).to_le_bytes());
    bytes[2..].copy_from_slice(&(upper as u16).to_le_bytes());
    mtr.put(page, LOWER, &bytes);
}

/// Byte position of the line pointers' end when there are `count`.
pub fn lower_for(count: u16) -> usize {
    LINES + usize::from(count) * LINE_SIZE
}

/// A new version's header as bytes.
pub fn new_header(xmin: Xid, cmin: u32, bits: u16) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&xmin.0.to_le_bytes());
    bytes[CMIN..CMIN + 4].copy_from_slice(&cmin.to_le_bytes());
    bytes[MASK..].copy_from_slice(&bits.to_le_bytes());
    bytes
}

/// Adds a version to a page that has [`room`] for it; returns its line number.
pub fn add_version(mtr: &mut Mtr<'_>, page: PageRef, head: &[u8; HEADER], row: &[u8]) -> u16 {
    let now = mtr.page(page);
    let len = HEADER + row.len();
    let count = line_count(now);
    let at = upper(now) - align(len);
    let reused = if flags(now) & FREE_LINES == 0 {
        None
    } else {
        (1..=count).find(|&n| line(now, n) == Line::Unused)
    };
    let (number, lower) = match reused {
        Some(number) => (number, lower(now)),
        None => (count + 1, lower_for(count + 1)),
    };
    assert!(lower <= at, "a heap page overflows");
    if reused.is_none() && flags(now) & FREE_LINES != 0 {
        put_flags(mtr, page, 0, FREE_LINES);
    }
    put_bounds(mtr, page, lower, at);
    put_line(mtr, page, number, Line::Normal(at, len));
    mtr.put(page, at, head);
    mtr.put(page, at + HEADER, row);
    number
}

/// Stamps what ends (or locks) the version at `offset`.
pub fn put_end(mtr: &mut Mtr<'_>, page: PageRef, offset: usize, end: &End) {
    let old = mask(mtr.page(page), offset);
    let next = end.next.unwrap_or(TupleId { block: 0, offset: 0 });
    let mut bytes = [0; HEADER - XMAX];
    bytes[..8].copy_from_slice(&end.xmax.0.to_le_bytes());
    bytes[8..12].copy_from_slice(&end.cmax.to_le_bytes());
    bytes[12..16].copy_from_slice(&next.block.to_le_bytes());
    bytes[16..18].copy_from_slice(&next.offset.to_le_bytes());
    bytes[18..20].copy_from_slice(&(old & KEEP | end.bits).to_le_bytes());
    mtr.put(page, offset + XMAX, &bytes);
}

/// Lets the version at `offset` end as the one at `last` did, which is `(page, offset)` of one that
/// followed it: those between are about to go. `keys`: one of them changed a key.
pub fn put_end_of(
    mtr: &mut Mtr<'_>,
    page: PageRef,
    offset: usize,
    last: (PageRef, usize),
    keys: u16,
) {
    let mut bytes: [u8; HEADER - XMAX] = get(mtr.page(last.0), last.1 + XMAX);
    let bits = mask(mtr.page(last.0), last.1) & !KEEP | keys;
    let old = mask(mtr.page(page), offset);
    bytes[MASK - XMAX..].copy_from_slice(&(old & KEEP | old & KEYS | bits).to_le_bytes());
    mtr.put(page, offset + XMAX, &bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_pointers_survive_their_encoding() {
        for line in [Line::Unused, Line::Normal(8188, 8000), Line::Redirect(291), Line::Dead] {
            assert_eq!(Line::decode(line.encode()), line);
        }
    }

    #[test]
    fn the_largest_row_fills_an_empty_page() {
        assert_eq!(space_for(MAX_ROW), PAGE_SIZE - LINES);
        assert!(space_for(MAX_ROW + 1) > PAGE_SIZE - LINES);
    }
}

//! Pages of a hash index.
//!
//! ```text
//! meta      | storage | kind | … | max bucket | high mask | free list | directories | used | rows | directory blocks → |
//! directory | storage | kind | … | blocks of buckets →                                                         |
//! bucket,   | storage | kind | flags | count | … | next | bucket | mask | … | entries →                        |
//! overflow
//! ```
//!
//! An entry is the hash code (4 bytes, big-endian) and the row id (6 bytes); a page's entries are in order,
//! so that those with one code are found by bisection. `next` is the next page of the bucket's chain, or
//! of the list of free pages; 0: none.
//!
//! `used`: pages from there on were never in use; 0: not known.

use base::TupleId;
use storage::{Mtr, PAGE_HEADER, PAGE_SIZE, Page, PageRef, PageView};

/// Kinds of pages.
pub const KIND_META: u16 = 0x484D;
pub const KIND_DIRECTORY: u16 = 0x4844;
pub const KIND_BUCKET: u16 = 0x4842;
pub const KIND_OVERFLOW: u16 = 0x484F;
pub const KIND_FREE: u16 = 0x4846;

const KIND: usize = PAGE_HEADER;
const FLAGS: usize = PAGE_HEADER + 2;
const COUNT: usize = PAGE_HEADER + 4;
const NEXT: usize = PAGE_HEADER + 8;
const BUCKET: usize = PAGE_HEADER + 12;
const MASK: usize = PAGE_HEADER + 16;
const ENTRIES: usize = PAGE_HEADER + 24;

const META_MAX: usize = PAGE_HEADER + 4;
const META_HIGH: usize = PAGE_HEADER + 8;
const META_FREE: usize = PAGE_HEADER + 12;
const META_DIRECTORIES: usize = PAGE_HEADER + 16;
const META_USED: usize = PAGE_HEADER + 20;
const META_ROWS: usize = PAGE_HEADER + 24;
const META_BLOCKS: usize = PAGE_HEADER + 32;
const DIRECTORY_BLOCKS: usize = PAGE_HEADER + 8;

/// Flag: entries of the bucket that was split off are still here.
pub const SPLITTING: u16 = 1;
/// Flag: entries of this bucket are still in the one that it is split from.
pub const FILLING: u16 = 2;

/// Bytes of an entry.
pub const ENTRY: usize = 10;
/// Entries of a page.
pub const CAPACITY: usize = (PAGE_SIZE - ENTRIES) / ENTRY;
/// Buckets of a directory page.
pub const PER_DIRECTORY: u32 = ((PAGE_SIZE - DIRECTORY_BLOCKS) / 4) as u32;
/// Directory pages, at most.
pub const DIRECTORIES_MAX: u32 = ((PAGE_SIZE - META_BLOCKS) / 4) as u32;

/// A hash code and a row, as bytes.
pub type Entry = [u8; ENTRY];

/// An entry's bytes.
pub fn entry(code: u32, row: TupleId) -> Entry {
    let mut bytes = [0; ENTRY];
    bytes[..4].copy_from_slice(&code.to_be_bytes());
    bytes[4..].copy_from_slice(&row.to_bytes());
    bytes
}

/// Its hash code.
pub fn code_of(entry: &Entry) -> u32 {
    u32::from_be_bytes([entry[0], entry[1], entry[2], entry[3]])
}

/// Its row.
pub fn row_of(entry: &Entry) -> TupleId {
    TupleId::from_bytes([entry[4], entry[5], entry[6], entry[7], entry[8], entry[9]])
}

fn u16_at(page: &Page, at: usize) -> u16 {
    u16::from_le_bytes([page[at], page[at + 1]])
}

fn u32_at(page: &Page, at: usize) -> u32 {
    u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

/// The kind of a page; 0: never used.
pub fn kind(page: &Page) -> u16 {
    u16_at(page, KIND)
}

/// How buckets are numbered: a code's bucket is the reverse of its bits under `high`, or without the
/// highest of them when there is no such bucket yet. So codes in order are buckets one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The last bucket.
    pub max: u32,
    /// One less than a power of two, at least `max`.
    pub high: u32,
}

impl Shape {
    /// A code's bucket.
    pub fn bucket_of(self, code: u32) -> u32 {
        let bucket = code.reverse_bits() & self.high;
        if bucket > self.max { bucket & (self.high >> 1) } else { bucket }
    }

    /// The bits that a bucket's codes have in common.
    pub fn mask_of(self, bucket: u32) -> u32 {
        let twin = bucket | (self.high ^ (self.high >> 1));
        if twin > self.max { self.high >> 1 } else { self.high }
    }

    /// With one bucket more, and the bucket that it is split from.
    pub fn grown(self) -> (Shape, u32) {
        let max = self.max + 1;
        let high = if max > self.high { self.high << 1 | 1 } else { self.high };
        (Shape { max, high }, max & (high >> 1))
    }
}

/// The meta page's content.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    pub shape: Shape,
    /// First free page; 0: none.
    pub free: u32,
    /// How many directory pages there are.
    pub directories: u32,
    /// Pages from here on were never in use; 0: not known.
    pub used: u32,
    /// About how many entries.
    pub rows: u64,
}

/// Reads the meta page; None when it is none.
pub fn read_meta(page: &Page) -> Option<Meta> {
    if kind(page) != KIND_META {
        return None;
    }
    let rows = u64::from(u32_at(page, META_ROWS)) | u64::from(u32_at(page, META_ROWS + 4)) << 32;
    Some(Meta {
        shape: Shape { max: u32_at(page, META_MAX), high: u32_at(page, META_HIGH) },
        free: u32_at(page, META_FREE),
        directories: u32_at(page, META_DIRECTORIES),
        used: u32_at(page, META_USED),
        rows,
    })
}

/// The block of a directory page, from the meta page.
pub fn directory_block(page: &Page, n: u32) -> u32 {
    u32_at(page, META_BLOCKS + 4 * n as usize)
}

/// A code's bucket, and the block of the directory page that has its block; from the meta page, which may
/// change while it is read.
pub fn locate(page: PageView<'_>, code: u32) -> Option<(u32, u32)> {
    if page.u16(KIND) != KIND_META {
        return None;
    }
    let bucket = Shape { max: page.u32(META_MAX), high: page.u32(META_HIGH) }.bucket_of(code);
    let n = bucket / PER_DIRECTORY;
    (n < DIRECTORIES_MAX).then(|| (bucket, page.u32(META_BLOCKS + 4 * n as usize)))
}

/// A bucket's block, from its directory page, which may change while it is read.
pub fn bucket_block(page: PageView<'_>, bucket: u32) -> Option<u32> {
    let at = DIRECTORY_BLOCKS + 4 * (bucket % PER_DIRECTORY) as usize;
    (page.u16(KIND) == KIND_DIRECTORY).then(|| page.u32(at)).filter(|block| *block != 0)
}

/// Writes the meta page.
pub fn put_meta(mtr: &mut Mtr<'_>, page: PageRef, meta: &Meta) {
    mtr.put_u16(page, KIND, KIND_META);
    mtr.put_u32(page, META_MAX, meta.shape.max);
    mtr.put_u32(page, META_HIGH, meta.shape.high);
    mtr.put_u32(page, META_FREE, meta.free);
    mtr.put_u32(page, META_DIRECTORIES, meta.directories);
    mtr.put_u32(page, META_USED, meta.used);
    mtr.put_u64(page, META_ROWS, meta.rows);
}

/// Notes on the meta page that a page is in use.
pub fn put_used(mtr: &mut Mtr<'_>, meta: PageRef, block: u32) {
    if u32_at(mtr.page(meta), META_USED) <= block {
        mtr.put_u32(meta, META_USED, block + 1);
    }
}

/// Writes the first free page into the meta page.
pub fn put_free(mtr: &mut Mtr<'_>, page: PageRef, free: u32) {
    mtr.put_u32(page, META_FREE, free);
}

/// Writes a directory page's block into the meta page.
pub fn put_directory_block(mtr: &mut Mtr<'_>, page: PageRef, n: u32, block: u32) {
    mtr.put_u32(page, META_BLOCKS + 4 * n as usize, block);
}

/// Begins a directory page.
pub fn init_directory(mtr: &mut Mtr<'_>, page: PageRef) {
    mtr.init(page);
    mtr.put_u16(page, KIND, KIND_DIRECTORY);
}

/// Writes a bucket's block into its directory page.
pub fn put_bucket_block(mtr: &mut Mtr<'_>, page: PageRef, bucket: u32, block: u32) {
    mtr.put_u32(page, DIRECTORY_BLOCKS + 4 * (bucket % PER_DIRECTORY) as usize, block);
}

/// A page of a bucket's chain.
#[derive(Clone, Copy)]
pub struct Chained<'p>(pub &'p Page);

impl<'p> Chained<'p> {
    pub fn is_primary(self) -> bool {
        kind(self.0) == KIND_BUCKET
    }

    pub fn is_overflow(self) -> bool {
        kind(self.0) == KIND_OVERFLOW
    }

    pub fn flags(self) -> u16 {
        u16_at(self.0, FLAGS)
    }

    /// The next page; 0: none.
    pub fn next(self) -> u32 {
        u32_at(self.0, NEXT)
    }

    pub fn bucket(self) -> u32 {
        u32_at(self.0, BUCKET)
    }

    /// The bits that all codes of the bucket have in common.
    pub fn mask(self) -> u32 {
        u32_at(self.0, MASK)
    }

    /// Whether a code belongs here.
    pub fn takes(self, code: u32) -> bool {
        code.reverse_bits() & self.mask() == self.bucket()
    }

    pub fn count(self) -> usize {
        usize::from(u16_at(self.0, COUNT)).min(CAPACITY)
    }

    pub fn has_room(self) -> bool {
        self.count() < CAPACITY
    }

    pub fn entries(self) -> &'p [Entry] {
        let (entries, _) = self.0[ENTRIES..].as_chunks::<ENTRY>();
        &entries[..self.count()]
    }

    /// The entries with a code.
    pub fn with_code(self, code: u32) -> &'p [Entry] {
        let all = self.entries();
        let first = all.partition_point(|e| code_of(e) < code);
        let many = all[first..].iter().take_while(|e| code_of(e) == code).count();
        &all[first..first + many]
    }
}

/// The head of a page of a chain.
#[derive(Clone, Copy)]
pub struct Head {
    pub kind: u16,
    pub flags: u16,
    pub next: u32,
    pub bucket: u32,
    pub mask: u32,
}

/// Begins a page with these entries, in order.
pub fn init(mtr: &mut Mtr<'_>, page: PageRef, head: Head, entries: &[Entry]) {
    mtr.init(page);
    let mut bytes = [0; ENTRIES - KIND];
    bytes[..2].copy_from_slice(&head.kind.to_le_bytes());
    bytes[2..4].copy_from_slice(&head.flags.to_le_bytes());
    bytes[4..6].copy_from_slice(&(entries.len() as u16).to_le_bytes());
    bytes[8..12].copy_from_slice(&head.next.to_le_bytes());
    bytes[12..16].copy_from_slice(&head.bucket.to_le_bytes());
    bytes[16..20].copy_from_slice(&head.mask.to_le_bytes());
    mtr.put(page, KIND, &bytes);
    put_entries(mtr, page, entries);
}

/// Replaces a page's entries.
pub fn put_entries(mtr: &mut Mtr<'_>, page: PageRef, entries: &[Entry]) {
    if !entries.is_empty() {
        mtr.put(page, ENTRIES, entries.as_flattened());
    }
    mtr.put_u16(page, COUNT, entries.len() as u16);
}

/// Adds an entry to a page that has room.
pub fn add(mtr: &mut Mtr<'_>, page: PageRef, entry: &Entry) {
    let chained = Chained(mtr.page(page));
    let (count, place) = (chained.count(), chained.entries().partition_point(|e| e < entry));
    let at = ENTRIES + place * ENTRY;
    if place < count {
        mtr.shift(page, at, at + ENTRY, (count - place) * ENTRY);
    }
    mtr.put(page, at, entry);
    mtr.put_u16(page, COUNT, count as u16 + 1);
}

pub fn put_next(mtr: &mut Mtr<'_>, page: PageRef, next: u32) {
    mtr.put_u32(page, NEXT, next);
}

pub fn put_flags(mtr: &mut Mtr<'_>, page: PageRef, flags: u16) {
    mtr.put_u16(page, FLAGS, flags);
}

pub fn put_mask(mtr: &mut Mtr<'_>, page: PageRef, mask: u32) {
    mtr.put_u32(page, MASK, mask);
}

/// Makes a page a free one.
pub fn put_free_page(mtr: &mut Mtr<'_>, page: PageRef, next: u32) {
    let head = Head { kind: KIND_FREE, flags: 0, next, bucket: 0, mask: 0 };
    init(mtr, page, head, &[]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_split_into_itself_and_the_new_one() {
        let mut shape = Shape { max: 0, high: 0 };
        let codes: Vec<u32> = (0..5000u32).map(|n| n.wrapping_mul(2_654_435_761)).collect();
        for _ in 0..200 {
            let (grown, old) = shape.grown();
            for code in &codes {
                let (before, after) = (shape.bucket_of(*code), grown.bucket_of(*code));
                assert!(after == before || (before == old && after == grown.max));
                assert_eq!(code.reverse_bits() & grown.mask_of(after), after);
            }
            shape = grown;
        }
    }

    #[test]
    fn codes_in_order_are_buckets_one_after_the_other() {
        let mut codes: Vec<u32> = (0..5000u32).map(|n| n.wrapping_mul(2_654_435_761)).collect();
        codes.sort_unstable();
        for shape in
            [Shape { max: 0, high: 0 }, Shape { max: 15, high: 15 }, Shape { max: 21, high: 31 }]
        {
            let mut buckets: Vec<u32> = codes.iter().map(|c| shape.bucket_of(*c)).collect();
            buckets.dedup();
            let runs = buckets.len();
            buckets.sort_unstable();
            buckets.dedup();
            assert_eq!(buckets.len(), runs);
        }
    }
}

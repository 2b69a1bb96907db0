//! Log records as bytes.
//!
//! ```text
//!  0   len u24      all of the record, a multiple of 8
//!  3   durable u8   how far the log was durable when the record was placed; see [`durable_mark`]
//!  4   crc u32      CRC-32C of bytes 16..len, then 8..16, then 0..4
//!  8   lsn u64      where the record begins
//! 16   kind u8      0 filler, 1 changes, 2 relation created, 3 relation cut, 4 part, 5 last part,
//!                  6 relation dropped
//! 17   pages u8     entries in the page table
//! 18   pad u8       zero bytes at the end (0..=7)
//! 19   0
//! 20   ops u32      bytes of operations
//! 24   operations   in the order in which they were made
//!      page table   one entry a page, each with its image if it has one
//!      payloads     [code u8][len u32][bytes] until len - pad
//!
//! operation:   [page u8][kind << 13 | offset u16] then
//!              kind 0, put:   [len u16][bytes]
//!              kind 1, shift: [to u16][len u16]
//! page entry:  [rel u32][block u32][fork u8][flags u8]
//!              flags 1, init:  redo starts from a zero page
//!              flags 2, image: as in [`super::image`]
//!              flags 4, unchanged: an entry that only keeps its number
//! ```
//!
//! * The first word, with the length, is the last to be written, so that it tells the WAL writer that the record is
//!   complete (see [`super::ring`]).
//! * A record that is not at the place it says it is at is the rest of an older log.
//! * Of a filler only the header counts: its CRC covers bytes 16..24 in place of 16..len.
//! * The durable mark tells a torn tail from damage: a valid record behind an invalid place that was
//!   placed when the log was durable beyond that place proves that the place was whole once. Records of
//!   format 2 have no mark (0).
//! * A payload too large for one record is in several, with records of others in between:
//!   [id u64][first u8][bytes] in each part, [id u64][code u8][bytes] in the last.
//! * Offsets are below 8192 (13 bits). A page with an image has no operations.

use base::{Lsn, PageId, RelId, Result};

use super::image::Image;
use crate::page::{PAGE_SIZE, Page};
use crate::wal::cursor::{Cursor, malformed};

/// Bytes in a record's header; also the smallest record.
pub const HEADER: usize = 24;
/// Nothing: space that was reserved but not used.
pub const FILLER: u8 = 0;
/// Changes of pages, payloads.
pub const CHANGES: u8 = 1;
/// A relation's main file was made; body: [rel u32].
pub const CREATED: u8 = 2;
/// A fork was cut; body: [rel u32][fork u8][blocks u32].
pub const CUT: u8 = 3;

/// A piece of a large payload; body: [id u64][first u8][bytes].
pub const PART: u8 = 4;
/// Its last piece; body: [id u64][code u8][bytes].
pub const LAST_PART: u8 = 5;

/// A relation's files are about to be removed; body: [rel u32].
pub const DROPPED: u8 = 6;

/// Bytes of the longest record that the length has room for.
const LEN_MASK: u32 = 0xff_ffff;

/// The length in a record's first word.
pub fn len_of(word: u32) -> u32 {
    word & LEN_MASK
}

/// The note in a record at `lsn` of how far the log is durable: 0 nothing, else `n` when fewer than
/// `2^(n - 1)` times 8 bytes before the record were not.
fn durable_mark(lsn: u64, durable: u64) -> u8 {
    let units = lsn.saturating_sub(durable) / 8;
    1 + (u64::BITS - units.leading_zeros()) as u8
}

/// Up to where the log was durable, at least, when the record at `lsn` with this first word was placed;
/// None: it does not say.
pub fn durable_before(word: u32, lsn: u64) -> Option<u64> {
    let mark = word >> 24;
    let units = 1_u64.checked_shl(mark.checked_sub(1)?)? - 1;
    Some(lsn.saturating_sub(units.saturating_mul(8)))
}

/// Redo starts from a zero page.
pub const INIT: u8 = 1;
/// The page's image is here.
pub const IMAGE: u8 = 2;
/// The page was latched but not changed; the entry only keeps its number.
pub const UNCHANGED: u8 = 4;

/// Operation: bytes at an offset.
pub const PUT: u16 = 0;
/// Operation: move inside the page.
pub const SHIFT: u16 = 1;

/// Completes the bytes of a record whose body is in place: padding, and the header but for length,
/// CRC and LSN. Returns the CRC of what is known so far.
pub fn finish(record: &mut Vec<u8>, kind: u8, pages: u8, ops: usize) -> u32 {
    let pad = record.len().next_multiple_of(8) - record.len();
    record.resize(record.len() + pad, 0);
    record[16] = kind;
    record[17] = pages;
    record[18] = pad as u8;
    record[19] = 0;
    record[20..24].copy_from_slice(&(ops as u32).to_le_bytes());
    crc32c::crc32c(&record[16..])
}

/// The first word of a record of `len` bytes at `lsn`.
fn first_word(len: usize, lsn: u64, durable: u64) -> [u8; 4] {
    debug_assert!(len as u32 <= LEN_MASK);
    (len as u32 | u32::from(durable_mark(lsn, durable)) << 24).to_le_bytes()
}

/// Fills in LSN, CRC, length and mark of a finished record. The log is `durable` up to there.
pub fn place(record: &mut [u8], body_crc: u32, lsn: u64, durable: u64) {
    let word = first_word(record.len(), lsn, durable);
    record[8..16].copy_from_slice(&lsn.to_le_bytes());
    record[..4].copy_from_slice(&word);
    let crc = crc32c::crc32c_append(body_crc, &record[8..16]);
    let crc = crc32c::crc32c_append(crc, &record[..4]);
    record[4..8].copy_from_slice(&crc.to_le_bytes());
}

/// The header of a filler of `len` bytes.
pub fn filler(len: usize, lsn: u64, durable: u64) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[8..16].copy_from_slice(&lsn.to_le_bytes());
    header[..4].copy_from_slice(&first_word(len, lsn, durable));
    let crc = crc32c::crc32c(&header[16..]);
    let crc = crc32c::crc32c_append(crc, &header[8..16]);
    let crc = crc32c::crc32c_append(crc, &header[..4]);
    header[4..8].copy_from_slice(&crc.to_le_bytes());
    header
}

/// A record that was read back: its pieces, still as bytes.
pub struct Record<'a> {
    /// Where it begins.
    pub start: Lsn,
    /// Where the next one begins.
    pub end: Lsn,
    /// The record's kind.
    pub kind: u8,
    /// The operations.
    pub ops: &'a [u8],
    pages: u8,
    rest: &'a [u8],
}

/// One entry of the page table.
pub struct PageEntry<'a> {
    /// The page.
    pub id: PageId,
    /// [`INIT`], [`IMAGE`].
    pub flags: u8,
    /// Its image.
    pub image: Option<Image<'a>>,
}

/// Whether these are the complete bytes of a record that belongs at `lsn`; `bytes` holds as many as
/// the length says.
pub fn is_valid(bytes: &[u8], lsn: u64) -> bool {
    let mut header = Cursor(bytes);
    let (Ok(word), Ok(crc), Ok(own)) = (header.u32(), header.u32(), header.u64()) else {
        return false;
    };
    if own != lsn || len_of(word) as usize != bytes.len() || bytes.len() < HEADER {
        return false;
    }
    let body = if bytes[16] == FILLER { &bytes[16..HEADER] } else { &bytes[16..] };
    let sum = crc32c::crc32c(body);
    let sum = crc32c::crc32c_append(sum, &bytes[8..16]);
    crc32c::crc32c_append(sum, &bytes[..4]) == crc
}

impl<'a> Record<'a> {
    /// Takes a valid record apart.
    pub fn parse(bytes: &'a [u8], lsn: u64) -> Result<Record<'a>> {
        let mut header = Cursor(bytes.get(16..).ok_or_else(malformed)?);
        let (kind, pages, pad) = (header.u8()?, header.u8()?, header.u8()?);
        header.u8()?;
        let ops_len = header.u32()? as usize;
        let mut body = Cursor(header.0);
        let whole = body.0.len().checked_sub(usize::from(pad)).ok_or_else(malformed)?;
        body.0 = &body.0[..whole];
        let ops = body.bytes(ops_len)?;
        let end = Lsn(lsn + bytes.len() as u64);
        Ok(Record { start: Lsn(lsn), end, kind, ops, pages, rest: body.0 })
    }

    /// The page table, and what comes after it.
    pub fn pages(&self) -> Result<(Vec<PageEntry<'a>>, Cursor<'a>)> {
        let mut rest = Cursor(self.rest);
        let mut pages = Vec::with_capacity(usize::from(self.pages));
        for _ in 0..self.pages {
            let (rel, block) = (RelId(rest.u32()?), rest.u32()?);
            let fork = rest.fork()?;
            let flags = rest.u8()?;
            let image = match flags & IMAGE {
                0 => None,
                _ => Some(Image::read(&mut rest)?),
            };
            pages.push(PageEntry { id: PageId { rel, fork, block }, flags, image });
        }
        Ok((pages, rest))
    }
}

/// Appends a page's entry.
pub fn push_entry(record: &mut Vec<u8>, id: PageId, flags: u8) {
    record.extend_from_slice(&id.rel.0.to_le_bytes());
    record.extend_from_slice(&id.block.to_le_bytes());
    record.push(id.fork as u8);
    record.push(flags);
}

/// Appends an entry for a page that was not changed.
pub fn push_unchanged(record: &mut Vec<u8>) {
    push_entry(record, PageId::main(RelId(0), 0), UNCHANGED);
}

/// Appends a payload.
pub fn push_payload(record: &mut Vec<u8>, code: u8, bytes: &[u8]) {
    record.push(code);
    record.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    record.extend_from_slice(bytes);
}

/// Applies one page's operations out of a record's.
pub fn apply_ops(ops: &[u8], index: usize, page: &mut Page) -> Result<()> {
    let mut ops = Cursor(ops);
    while !ops.is_empty() {
        let op = read_op(&mut ops)?;
        if op.page() != index {
            continue;
        }
        match op {
            Op::Put { offset, bytes, .. } => {
                let place = page.get_mut(offset..offset + bytes.len()).ok_or_else(malformed)?;
                place.copy_from_slice(bytes);
            }
            Op::Shift { from, to, len, .. } => {
                if from + len > PAGE_SIZE || to + len > PAGE_SIZE {
                    return Err(malformed());
                }
                page.copy_within(from..from + len, to);
            }
        }
    }
    Ok(())
}

/// One operation.
pub enum Op<'a> {
    /// Bytes at an offset.
    Put {
        /// Index in the page table.
        page: usize,
        /// Where.
        offset: usize,
        /// The bytes to be written.
        bytes: &'a [u8],
    },
    /// Move inside the page.
    Shift {
        /// Index in the page table.
        page: usize,
        /// Source.
        from: usize,
        /// Target.
        to: usize,
        /// Bytes.
        len: usize,
    },
}

impl Op<'_> {
    /// Index in the page table.
    pub fn page(&self) -> usize {
        match self {
            Op::Put { page, .. } | Op::Shift { page, .. } => *page,
        }
    }
}

/// Takes the next operation off.
pub fn read_op<'a>(ops: &mut Cursor<'a>) -> Result<Op<'a>> {
    let page = usize::from(ops.u8()?);
    let word = ops.u16()?;
    let offset = usize::from(word & 0x1fff);
    match word >> 13 {
        PUT => {
            let len = usize::from(ops.u16()?);
            Ok(Op::Put { page, offset, bytes: ops.bytes(len)? })
        }
        SHIFT => {
            let (to, len) = (usize::from(ops.u16()?), usize::from(ops.u16()?));
            Ok(Op::Shift { page, from: offset, to, len })
        }
        _ => Err(malformed()),
    }
}

#[cfg(test)]
mod tests {
    use base::Fork;

    use super::*;
    use crate::page::PAGE_SIZE;

    fn sample() -> (Vec<u8>, Page) {
        let mut record = vec![0; HEADER];
        record.extend_from_slice(&[1, 40, 0, 3, 0, 7, 8, 9]);
        let ops = record.len() - HEADER;
        let mut page = [0; PAGE_SIZE];
        page[16] = 1;
        page[8191] = 2;
        let id = PageId { rel: RelId(70), fork: Fork::Fsm, block: 9 };
        push_entry(&mut record, id, IMAGE);
        crate::wal::image::push(&mut record, &page);
        push_entry(&mut record, PageId::main(RelId(71), 0), INIT);
        push_payload(&mut record, 33, b"hello");
        let crc = finish(&mut record, CHANGES, 2, ops);
        place(&mut record, crc, 4096, 4000);
        (record, page)
    }

    #[test]
    fn a_record_comes_back_as_it_was() {
        let (record, page) = sample();
        assert!(record.len() < 120, "the image's zeros are left out");
        assert!(is_valid(&record, 4096));
        let back = Record::parse(&record, 4096).unwrap();
        let (pages, mut rest) = back.pages().unwrap();
        let mut again = [0xFF; PAGE_SIZE];
        pages[0].image.as_ref().unwrap().restore(&mut again).unwrap();
        assert_eq!(again, page);
        assert_eq!((pages[1].id, pages[1].flags), (PageId::main(RelId(71), 0), INIT));
        let mut target = [0; PAGE_SIZE];
        apply_ops(back.ops, 1, &mut target).unwrap();
        assert_eq!(target[40..44], [7, 8, 9, 0]);
        assert_eq!((rest.u8().unwrap(), rest.u32().unwrap()), (33, 5));
        assert_eq!(rest.0, b"hello");
    }

    #[test]
    fn a_changed_moved_or_cut_record_is_refused() {
        let (record, _) = sample();
        assert!(!is_valid(&record, 4104));
        assert!(!is_valid(&record[..record.len() - 8], 4096));
        for at in [0, 5, 9, 16, 30, record.len() - 1] {
            let mut bad = record.clone();
            bad[at] ^= 16;
            assert!(!is_valid(&bad, 4096), "byte {at}");
        }
        let header = filler(64, 800, 800);
        let mut bytes = [0xAA; 64];
        bytes[..HEADER].copy_from_slice(&header);
        assert!(is_valid(&bytes, 800));
    }

    #[test]
    fn a_record_tells_how_far_the_log_was_durable_at_least() {
        for (lsn, durable) in
            [(4096, 4096), (4096, 4088), (1 << 40, 8), (1 << 40, (1 << 40) - 4104)]
        {
            let word = u32::from_le_bytes(first_word(64, lsn, durable));
            let told = durable_before(word, lsn).unwrap();
            assert!(told <= durable && lsn - told <= 2 * (lsn - durable), "{lsn} {durable} {told}");
            assert_eq!(len_of(word), 64);
        }
        assert_eq!(durable_before(64, 4096), None, "format 2 says nothing");
    }

    #[test]
    fn operations_outside_the_page_are_errors() {
        let mut page = [0; PAGE_SIZE];
        let put = [0, 0xff, 0x1f, 2, 0, 1, 1];
        assert!(apply_ops(&put, 0, &mut page).is_err());
        let shift = [0, 0x10, 0x20, 0xff, 0x1f, 2, 0];
        assert!(apply_ops(&shift, 0, &mut page).is_err());
    }

    #[test]
    fn damage_behind_a_right_checksum_is_an_error_and_never_a_panic() {
        let (record, _) = sample();
        let mut seed = 3_u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            (seed >> 40) as usize
        };
        let mut page = [0; PAGE_SIZE];
        let mut refused = 0;
        for _ in 0..20_000 {
            let mut bad = record.clone();
            for _ in 0..1 + random() % 4 {
                let at = 16 + random() % (bad.len() - 16);
                bad[at] = random() as u8;
            }
            let mut apply = || -> Result<()> {
                let record = Record::parse(&bad, 4096)?;
                let (pages, mut payloads) = record.pages()?;
                for (index, entry) in pages.iter().enumerate() {
                    match &entry.image {
                        Some(image) => image.restore(&mut page)?,
                        None => apply_ops(record.ops, index, &mut page)?,
                    }
                }
                while !payloads.is_empty() {
                    payloads.u8()?;
                    let len = payloads.u32()? as usize;
                    payloads.bytes(len)?;
                }
                Ok(())
            };
            refused += u32::from(apply().is_err());
        }
        assert!(refused > 1000, "{refused}");
    }
}

//! Segments of posting lists: a run of rows that have one entry, in order, as the key of a leaf entry.
//!
//! ```text
//! | entry, terminated | anchor, 6 bytes | distance, distance, … (LEB128) |
//! ```
//!
//! The first distance counts from the anchor and is 0 for a row that is the anchor itself. The anchor
//! stays when that row goes, so that the segment's place in the tree does not change.

use base::TupleId;

/// Bits of a row number that are the line's.
const LINE_BITS: u32 = 11;
/// Bytes of an anchor.
pub const ANCHOR: usize = 6;
/// Bytes of distances to which segments are filled.
pub const TARGET: usize = 256;
/// Bytes of distances beyond which a segment is cut.
pub const MAX: usize = 384;

/// A row as a number, in the order of the table.
pub fn number(row: TupleId) -> u64 {
    debug_assert!(u32::from(row.offset) < 1 << LINE_BITS);
    u64::from(row.block) << LINE_BITS | u64::from(row.offset)
}

/// The row with a number.
pub fn row(number: u64) -> TupleId {
    let offset = (number & ((1 << LINE_BITS) - 1)) as u16;
    TupleId { block: (number >> LINE_BITS) as u32, offset }
}

/// Adds an anchor to an entry: where a row's place in the tree is.
pub fn place(entry: &[u8], number: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(entry.len() + ANCHOR);
    key.extend_from_slice(entry);
    key.extend_from_slice(&row(number).to_bytes());
    key
}

fn put(out: &mut Vec<u8>, mut distance: u64) {
    while distance >= 0x80 {
        out.push(distance as u8 | 0x80);
        distance >>= 7;
    }
    out.push(distance as u8);
}

/// Bytes of a distance.
fn width(distance: u64) -> usize {
    (64 - (distance | 1).leading_zeros() as usize).div_ceil(7)
}

/// A segment's key. Rows are in order, at or above the anchor.
pub fn encode(entry: &[u8], anchor: u64, rows: &[u64]) -> Vec<u8> {
    let mut key = place(entry, anchor);
    let mut last = anchor;
    for row in rows {
        put(&mut key, row - last);
        last = *row;
    }
    key
}

/// Cuts rows into segments of about [`TARGET`] bytes if they need more than [`MAX`]; the first one keeps the
/// anchor.
pub fn segments(entry: &[u8], anchor: u64, rows: &[u64]) -> Vec<Vec<u8>> {
    if bytes(anchor, rows) <= MAX {
        return vec![encode(entry, anchor, rows)];
    }
    let mut out = Vec::new();
    let (mut anchor, mut begin, mut size, mut last) = (anchor, 0, 0, anchor);
    for (n, row) in rows.iter().enumerate() {
        let more = width(row - last);
        if size + more > TARGET && n > begin {
            out.push(encode(entry, anchor, &rows[begin..n]));
            (anchor, begin, size) = (*row, n, 1);
        } else {
            size += more;
        }
        last = *row;
    }
    out.push(encode(entry, anchor, &rows[begin..]));
    out
}

/// Bytes that the distances take.
pub fn bytes(anchor: u64, rows: &[u64]) -> usize {
    let mut last = anchor;
    rows.iter().map(|row| width(row - std::mem::replace(&mut last, *row))).sum()
}

/// Where the entry in a segment's key ends, its terminator included; None when it makes no sense.
pub fn entry_len(key: &[u8]) -> Option<usize> {
    let mut at = 2;
    loop {
        at += key.get(at..)?.iter().position(|b| *b == 0)?;
        match key.get(at + 1)? {
            1 => return Some(at + 2),
            _ => at += 2,
        }
    }
}

/// A segment's anchor.
pub fn anchor(key: &[u8], entry_len: usize) -> Option<u64> {
    let bytes = key.get(entry_len..)?.first_chunk::<ANCHOR>()?;
    Some(number(TupleId::from_bytes(*bytes)))
}

/// Adds the rows of a segment; None when it makes no sense.
pub fn decode(key: &[u8], entry_len: usize, out: &mut Vec<u64>) -> Option<()> {
    let mut last = anchor(key, entry_len)?;
    let mut rest = key.get(entry_len + ANCHOR..)?;
    out.reserve(rest.len());
    loop {
        // Most distances have one byte: eight at a time.
        while let Some((eight, behind)) = rest.split_first_chunk::<8>()
            && u64::from_le_bytes(*eight) & 0x8080_8080_8080_8080 == 0
        {
            for distance in eight {
                last = last.checked_add(u64::from(*distance))?;
                out.push(last);
            }
            rest = behind;
        }
        if rest.is_empty() {
            break;
        }
        let (mut distance, mut shift) = (0u64, 0);
        loop {
            let (byte, behind) = rest.split_first()?;
            rest = behind;
            distance |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if shift > 56 {
                return None;
            }
        }
        last = last.checked_add(distance)?;
        out.push(last);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_give_back_their_rows() {
        let entry = [0, 0, b'a', 0, 0xff, b'b', 0, 1];
        let rows: Vec<u64> = (0..3000u64).map(|n| n * n * 7 + 5).collect();
        for (anchor, count) in [(5, 1), (3, 10), (5, 3000), (0, 100)] {
            let cut = segments(&entry, anchor, &rows[..count]);
            let mut back = Vec::new();
            for key in &cut {
                let len = entry_len(key).unwrap();
                assert_eq!(len, entry.len());
                assert!(key.len() <= entry.len() + ANCHOR + MAX);
                decode(key, len, &mut back).unwrap();
            }
            assert_eq!(back, rows[..count]);
            assert!(cut.is_sorted());
        }
    }

    #[test]
    fn bytes_that_are_no_segment_are_told() {
        assert_eq!(entry_len(&[0, 0, 5, 0]), None);
        assert_eq!(entry_len(&[]), None);
        let mut rows = Vec::new();
        let key = [0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0x80];
        assert_eq!(decode(&key, 4, &mut rows), None);
        assert_eq!(row(number(TupleId { block: u32::MAX, offset: 300 })).offset, 300);
    }
}

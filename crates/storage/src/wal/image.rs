//! Full images of pages in log records: the bytes after the page's header, without its long runs of one
//! byte (the hole between line pointers and rows, padding with blanks).
//!
//! ```text
//! [runs u16] then for each, in order: [start u16][length u16][byte u8]; then all other bytes
//! ```
//!
//! After a checkpoint every page that is changed goes to the log like this, so a microsecond spent here
//! saves many in the copying, summing and writing of what is left out.

use base::{Result, err};

use crate::page::{PAGE_HEADER, PAGE_SIZE, Page};
use crate::wal::cursor::Cursor;

/// Shorter runs stay as they are: a run costs five bytes.
const RUN_MIN: usize = 16;
const RUN_BYTES: usize = 5;

/// An image as it was read back.
pub struct Image<'a> {
    runs: &'a [u8],
    others: &'a [u8],
}

struct Run {
    start: usize,
    end: usize,
    byte: u8,
}

/// The first run that begins at or after `from`, or in the word before.
fn next_run(page: &Page, from: usize) -> Option<Run> {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&page[at..at + 8]);
        u64::from_ne_bytes(bytes)
    };
    let mut at = from.next_multiple_of(8);
    while at < PAGE_SIZE {
        let first = word(at);
        // All bytes are the same.
        if first != first.rotate_left(8) {
            at += 8;
            continue;
        }
        let (mut start, mut end, byte) = (at, at + 8, page[at]);
        while end < PAGE_SIZE && word(end) == first {
            end += 8;
        }
        while start > from && page[start - 1] == byte {
            start -= 1;
        }
        while end < PAGE_SIZE && page[end] == byte {
            end += 1;
        }
        if end - start >= RUN_MIN {
            return Some(Run { start, end, byte });
        }
        at = end.next_multiple_of(8);
    }
    None
}

/// Appends a page's image.
pub fn push(record: &mut Vec<u8>, page: &Page) {
    let count_at = record.len();
    record.extend_from_slice(&[0; 2]);
    let (mut count, mut from) = (0_u16, PAGE_HEADER);
    while let Some(run) = next_run(page, from) {
        record.extend_from_slice(&(run.start as u16).to_le_bytes());
        record.extend_from_slice(&((run.end - run.start) as u16).to_le_bytes());
        record.push(run.byte);
        count += 1;
        from = run.end;
    }
    record[count_at..count_at + 2].copy_from_slice(&count.to_le_bytes());
    let mut from = PAGE_HEADER;
    for i in 0..usize::from(count) {
        let at = count_at + 2 + i * RUN_BYTES;
        let number = |at: usize| usize::from(u16::from_le_bytes([record[at], record[at + 1]]));
        let (start, len) = (number(at), number(at + 2));
        record.extend_from_slice(&page[from..start]);
        from = start + len;
    }
    record.extend_from_slice(&page[from..]);
}

impl<'a> Image<'a> {
    /// Takes an image off.
    ///
    /// # Errors
    /// `XX001` when it isn't one.
    pub fn read(from: &mut Cursor<'a>) -> Result<Image<'a>> {
        let count = usize::from(from.u16()?);
        let runs = from.bytes(count * RUN_BYTES)?;
        let (mut end, mut others) = (PAGE_HEADER, PAGE_SIZE - PAGE_HEADER);
        let mut rest = Cursor(runs);
        while !rest.is_empty() {
            let (start, len) = (usize::from(rest.u16()?), usize::from(rest.u16()?));
            rest.u8()?;
            if start < end || start + len > PAGE_SIZE {
                return Err(err!(DATA_CORRUPTED, "malformed page image in the write-ahead log"));
            }
            end = start + len;
            others -= len;
        }
        Ok(Image { runs, others: from.bytes(others)? })
    }

    /// Makes the page as it was.
    ///
    /// # Errors
    /// None for an image that was read.
    pub fn restore(&self, page: &mut Page) -> Result<()> {
        let (mut runs, mut others, mut at) = (Cursor(self.runs), Cursor(self.others), PAGE_HEADER);
        page[..PAGE_HEADER].fill(0);
        while !runs.is_empty() {
            let (start, len) = (usize::from(runs.u16()?), usize::from(runs.u16()?));
            page[at..start].copy_from_slice(others.bytes(start - at)?);
            at = start + len;
            page[start..at].fill(runs.u8()?);
        }
        page[at..].copy_from_slice(others.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(page: &Page) -> usize {
        let mut record = vec![0xEE; 3];
        push(&mut record, page);
        let len = record.len() - 3;
        record.extend_from_slice(b"rest");
        let mut cursor = Cursor(&record[3..]);
        let image = Image::read(&mut cursor).unwrap();
        assert_eq!(cursor.0, b"rest");
        let mut back = [0x77; PAGE_SIZE];
        image.restore(&mut back).unwrap();
        assert_eq!(back[PAGE_HEADER..], page[PAGE_HEADER..]);
        len
    }

    #[test]
    fn runs_of_any_length_place_and_byte_come_back() {
        assert_eq!(round_trip(&[0; PAGE_SIZE]), 2 + RUN_BYTES);
        assert_eq!(round_trip(&std::array::from_fn(|i| (i % 255) as u8)), 2 + 8176);
        let mut seed = 1_u64;
        let mut random = |n: usize| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n
        };
        for _ in 0..300 {
            let mut page = [0; PAGE_SIZE];
            let mut at = 0;
            while at < PAGE_SIZE {
                let end = (at + 1 + random(100)).min(PAGE_SIZE);
                match random(3) {
                    0 => page[at..end].fill(random(3) as u8),
                    _ => page[at..end].iter_mut().for_each(|b| *b = random(256) as u8),
                }
                at = end;
            }
            round_trip(&page);
        }
    }

    #[test]
    fn rows_padded_with_blanks_shrink_to_a_third() {
        let mut page = [b' '; PAGE_SIZE];
        for row in page.chunks_mut(121) {
            let len = row.len().min(37);
            row[..len].iter_mut().enumerate().for_each(|(i, b)| *b = i as u8 + 40);
        }
        assert!(round_trip(&page) < PAGE_SIZE * 2 / 5);
    }

    #[test]
    fn images_that_do_not_fit_are_refused() {
        for runs in [[0_u16, 20, 9], [8000, 500, 0], [10, 20, 0]] {
            let mut bytes = vec![1, 0];
            bytes.extend_from_slice(&runs[0].to_le_bytes());
            bytes.extend_from_slice(&runs[1].to_le_bytes());
            bytes.push(0);
            assert!(Image::read(&mut Cursor(&bytes)).is_err());
        }
    }
}

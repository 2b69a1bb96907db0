//! The sixteen bytes of every page that belong to storage.
//!
//! ```text
//! 0        8         12       16                                        8192
//! | LSN u64 | CRC u32 | flags  | the access method's bytes               |
//! ```
//!
//! * LSN: the end of the last log record that changed the page. All numbers are little-endian.
//! * CRC: CRC-32C of the page without these four bytes, and of the page's name, so that a page
//!   written to the wrong place is found out. It is right on disk only: in memory it is stale.
//! * flags: zero for now.
//!
//! A page of zeros is valid: that is what a file holds after it was extended.

use base::{Lsn, PageId};

const CRC_AT: usize = 8;
const CRC_END: usize = 12;

/// The page's LSN.
pub(crate) fn lsn(page: &Page) -> Lsn {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&page[..8]);
    Lsn(u64::from_le_bytes(bytes))
}

/// Stamps the page.
pub(crate) fn set_lsn(page: &mut Page, lsn: Lsn) {
    page[..8].copy_from_slice(&lsn.0.to_le_bytes());
}

/// The checksum that the page should have at this place.
pub(crate) fn checksum(page: &Page, id: PageId) -> u32 {
    let crc = crc32c::crc32c(&page[..CRC_AT]);
    let crc = crc32c::crc32c_append(crc, &page[CRC_END..]);
    let mut name = [0; 9];
    name[..4].copy_from_slice(&id.rel.0.to_le_bytes());
    name[4..8].copy_from_slice(&id.block.to_le_bytes());
    name[8] = id.fork as u8;
    crc32c::crc32c_append(crc, &name)
}

/// Writes the checksum into a copy that is about to go to disk.
pub(crate) fn seal(page: &mut Page, id: PageId) {
    let crc = checksum(page, id);
    page[CRC_AT..CRC_END].copy_from_slice(&crc.to_le_bytes());
}

fn is_zero(page: &Page) -> bool {
    let (words, _) = page.as_chunks::<8>();
    words.iter().all(|w| *w == [0; 8])
}

/// Whether bytes read from disk are a page of this name, or all zero.
pub(crate) fn is_valid(page: &Page, id: PageId) -> bool {
    page[CRC_AT..CRC_END] == checksum(page, id).to_le_bytes() || is_zero(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    use base::RelId;

    #[test]
    fn a_sealed_page_is_valid_only_in_its_own_place_and_untouched() {
        let mut page = [0; PAGE_SIZE];
        let id = PageId::main(RelId(7), 3);
        assert!(is_valid(&page, id), "a zero page is valid");
        page[5000] = 1;
        assert!(!is_valid(&page, id));
        set_lsn(&mut page, Lsn(99));
        seal(&mut page, id);
        assert!(is_valid(&page, id));
        assert!(!is_valid(&page, PageId::main(RelId(7), 4)));
        page[8000] ^= 4;
        assert!(!is_valid(&page, id));
        assert_eq!(lsn(&page), Lsn(99));
    }
}

/// Bytes at the start of each page that belong to storage: LSN (8), CRC-32C (4), flags (4). The
/// rest is the access method's.
pub const PAGE_HEADER: usize = 16;

/// Bytes in a page.
pub const PAGE_SIZE: usize = 8192;

/// One page's bytes.
pub type Page = [u8; PAGE_SIZE];

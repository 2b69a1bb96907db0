//! Sets of rows: what bitmap index scans make, and what is met and united of it.
//!
//! A row is a number, its page in the upper bits, so that a sorted list is in the table's order. Rows
//! beyond the memory that a set may hold become pages of which the rows are not known (*lossy*).

use std::cmp::Ordering;

use base::TupleId;

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Bitmap {
    /// Rows, `page << 16 | line`; in order and once each when [`Bitmap::finish`] has been called.
    rows: Vec<u64>,
    /// Pages whose rows are not known, likewise; none of the rows is in one of these.
    pages: Vec<u32>,
    /// Rows to hold at most.
    limit: usize,
    /// Rows may be in it that don't match.
    doubtful: bool,
}

fn page(row: u64) -> u32 {
    (row >> 16) as u32
}

/// What is in both of two sorted lists.
fn common<T: Ord + Copy>(a: &[T], b: &[T]) -> Vec<T> {
    let (mut out, mut i, mut j) = (Vec::new(), 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        match x.cmp(y) {
            Ordering::Less => i += 1,
            Ordering::Greater => j += 1,
            Ordering::Equal => {
                out.push(*x);
                (i, j) = (i + 1, j + 1);
            }
        }
    }
    out
}

fn in_order<T: Ord>(list: &mut Vec<T>) {
    list.sort_unstable();
    list.dedup();
}

impl Bitmap {
    /// Empty, for so many bytes of rows.
    pub fn new(bytes: usize) -> Bitmap {
        Bitmap { limit: (bytes / size_of::<u64>()).max(1024), ..Bitmap::default() }
    }

    /// Adds a row.
    pub fn add(&mut self, row: TupleId) {
        if self.rows.len() >= self.limit {
            self.shrink();
        }
        self.rows.push(u64::from(row.block) << 16 | u64::from(row.offset));
    }

    /// Adds a page, of whose rows nothing is known.
    pub fn add_page(&mut self, block: u32) {
        self.pages.push(block);
    }

    /// Some of the rows may not match: all are to be asked again.
    pub fn doubt(&mut self) {
        self.doubtful = true;
    }

    /// Whether its rows are to be asked again.
    pub fn is_doubtful(&self) -> bool {
        self.doubtful
    }

    /// Makes room: rows that are there twice go; when most are still there, their pages take their
    /// place.
    fn shrink(&mut self) {
        in_order(&mut self.rows);
        if self.rows.len() > self.limit / 2 {
            self.pages.extend(self.rows.drain(..).map(page));
            in_order(&mut self.pages);
        }
    }

    /// Brings everything in order.
    pub fn finish(&mut self) {
        in_order(&mut self.rows);
        in_order(&mut self.pages);
        let pages = &self.pages;
        if !pages.is_empty() {
            self.rows.retain(|row| pages.binary_search(&page(*row)).is_err());
        }
    }

    /// Keeps what is in both.
    pub fn meet(&mut self, other: &Bitmap) {
        let rows = common(&self.rows, &other.rows);
        let mut pages = common(&self.pages, &other.pages);
        // Rows on a page of which the other side knows no rows: it must be asked again.
        for (rows, known) in [(&self.rows, &other.pages), (&other.rows, &self.pages)] {
            let on = rows.iter().map(|row| page(*row));
            pages.extend(on.filter(|p| known.binary_search(p).is_ok()));
        }
        (self.rows, self.pages) = (rows, pages);
        self.doubtful |= other.doubtful;
        self.finish();
    }

    /// Adds what is in the other one.
    pub fn unite(&mut self, other: Bitmap) {
        self.rows.extend(other.rows);
        self.pages.extend(other.pages);
        self.doubtful |= other.doubtful;
        if self.rows.len() > self.limit {
            self.shrink();
        }
        self.finish();
    }

    /// The pages in order, each with its lines, or None where these are not known.
    pub fn into_pages(self) -> Pages {
        Pages { bitmap: self, row: 0, page: 0 }
    }
}

/// A finished bitmap being read.
#[derive(Debug)]
pub struct Pages {
    bitmap: Bitmap,
    row: usize,
    page: usize,
}

impl Pages {
    /// The next page, and its rows unless they are not known.
    pub fn next_page(&mut self) -> Option<(u32, Option<impl Iterator<Item = u16> + '_>)> {
        let exact = self.bitmap.rows.get(self.row).map(|row| page(*row));
        let lossy = self.bitmap.pages.get(self.page).copied();
        if let Some(block) = lossy
            && exact.is_none_or(|exact| block < exact)
        {
            self.page += 1;
            return Some((block, None));
        }
        let block = exact?;
        let first = self.row;
        let rest = &self.bitmap.rows[first..];
        let count = rest.iter().take_while(|row| page(**row) == block).count();
        self.row += count;
        Some((block, Some(rest[..count].iter().map(|row| *row as u16))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(rows: &[(u32, u16)], pages: &[u32]) -> Bitmap {
        let mut bitmap = Bitmap::new(1 << 20);
        rows.iter()
            .for_each(|(block, offset)| bitmap.add(TupleId { block: *block, offset: *offset }));
        bitmap.pages.extend(pages);
        bitmap.finish();
        bitmap
    }

    fn listed(bitmap: Bitmap) -> Vec<(u32, Option<Vec<u16>>)> {
        let mut pages = bitmap.into_pages();
        let mut out = Vec::new();
        while let Some((block, lines)) = pages.next_page() {
            out.push((block, lines.map(Iterator::collect)));
        }
        out
    }

    #[test]
    fn rows_come_in_the_order_of_the_table_once_each() {
        let all = listed(set(&[(7, 2), (1, 9), (7, 1), (1, 9)], &[]));
        assert_eq!(all, [(1, Some(vec![9])), (7, Some(vec![1, 2]))]);
    }

    #[test]
    fn sets_meet_and_unite() {
        let mut both = set(&[(1, 1), (1, 2), (3, 1)], &[5]);
        both.meet(&set(&[(1, 2), (5, 4)], &[3]));
        // Of pages 3 and 5 one side knows no rows.
        assert_eq!(listed(both), [(1, Some(vec![2])), (3, None), (5, None)]);
        let mut either = set(&[(1, 1), (3, 1)], &[5]);
        either.unite(set(&[(1, 2), (5, 4)], &[3]));
        assert_eq!(listed(either), [(1, Some(vec![1, 2])), (3, None), (5, None)]);
    }

    #[test]
    fn beyond_the_limit_pages_are_known_only() {
        let mut bitmap = Bitmap::new(0);
        for n in 0..3000u32 {
            bitmap.add(TupleId { block: n / 10, offset: (n % 10 + 1) as u16 });
        }
        bitmap.finish();
        let all = listed(bitmap);
        assert_eq!(all.len(), 300);
        assert!(all.iter().any(|(_, lines)| lines.is_none()));
    }
}

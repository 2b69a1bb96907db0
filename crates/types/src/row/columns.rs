//! Many rows decoded column by column: the kind of a column is looked at once for all rows, and what
//! is skipped is walked over without being looked at.
//!
//! This is for rows that have all columns up to the last one wanted and no NULL; when one of them
//! isn't so, all go row by row.

use base::Result;

use super::{HAS_NULLS, Kind, RowLayout, Walk, corrupt, outside, push_value};
use crate::batch::{Column, Vector};
use crate::datum::{Numeric, Text};

/// Reads columns of rows that stand in `bytes` at `places` (begin, end): each of `wanted` is a column
/// of the rows (ascending) and the one of `out` that its values are added to.
///
/// # Errors
/// `XX001`: damaged bytes.
pub fn decode_rows(
    layout: &RowLayout,
    bytes: &[u8],
    places: &[(u32, u32)],
    wanted: &[(u16, usize)],
    out: &mut [Column],
) -> Result<()> {
    let Some((last, _)) = wanted.last() else { return Ok(()) };
    let last = usize::from(*last);
    let all_plain = last < layout.kinds.len() && places.iter().all(|p| is_plain(bytes, *p, last));
    if !all_plain {
        return places
            .iter()
            .try_for_each(|place| by_row(layout, row(bytes, *place)?, wanted, out));
    }
    let at = places.iter().map(|(begin, _)| begin + FIRST).collect();
    let mut rows = Rows { layout, bytes, places, column: 0, at };
    for (column, to) in wanted {
        rows.seek(usize::from(*column))?;
        rows.read(&mut out[*to])?;
    }
    Ok(())
}

/// Where values begin in a row without NULLs.
const FIRST: u32 = 2;

fn row(bytes: &[u8], (begin, end): (u32, u32)) -> Result<&[u8]> {
    bytes.get(begin as usize..end as usize).ok_or_else(corrupt)
}

/// Whether a row has no NULL, and the column `last`.
#[inline]
fn is_plain(bytes: &[u8], (begin, end): (u32, u32), last: usize) -> bool {
    let begin = begin as usize;
    match bytes.get(begin..begin + 2) {
        Some(head) if begin + 2 <= end as usize => {
            let head = u16::from_le_bytes([head[0], head[1]]);
            head & HAS_NULLS == 0 && usize::from(head) > last
        }
        _ => false,
    }
}

fn by_row(
    layout: &RowLayout,
    bytes: &[u8],
    wanted: &[(u16, usize)],
    out: &mut [Column],
) -> Result<()> {
    let mut walk = Walk::new(layout, bytes)?;
    wanted
        .iter()
        .try_for_each(|(column, to)| push_value(&mut walk, usize::from(*column), &mut out[*to]))
}

/// Rows without NULLs, all walked to the same column.
struct Rows<'a> {
    layout: &'a RowLayout,
    bytes: &'a [u8],
    places: &'a [(u32, u32)],
    column: usize,
    /// Where the column begins in each row.
    at: Vec<u32>,
}

/// A part of the way from one column to another.
enum Step {
    /// Columns of fixed width, bytes in all.
    Fixed(usize),
    /// One column with a length.
    Varying,
}

impl Rows<'_> {
    /// Walks to a column at or after the current one.
    fn seek(&mut self, column: usize) -> Result<()> {
        let from = std::mem::replace(&mut self.column, column);
        if let Some(start) = self.layout.starts.get(column) {
            for (at, (begin, _)) in self.at.iter_mut().zip(self.places) {
                *at = begin + FIRST + start;
            }
            return Ok(());
        }
        let mut steps = Vec::new();
        for kind in &self.layout.kinds[from..column] {
            match (kind.width(), steps.last_mut()) {
                (Some(width), Some(Step::Fixed(before))) => *before += width,
                (Some(width), _) => steps.push(Step::Fixed(width)),
                (None, _) => steps.push(Step::Varying),
            }
        }
        if steps.is_empty() {
            return Ok(());
        }
        for (at, (_, end)) in self.at.iter_mut().zip(self.places) {
            let mut place = *at as usize;
            for step in &steps {
                match step {
                    Step::Fixed(width) => place += width,
                    Step::Varying => match self.bytes.get(place) {
                        Some(len) if *len < 128 => place += 1 + usize::from(*len),
                        _ => place += long_value(self.bytes, place)?,
                    },
                }
            }
            if place > *end as usize {
                return Err(corrupt());
            }
            *at = place as u32;
        }
        Ok(())
    }

    /// Adds the column's values to a vector.
    fn read(&self, to: &mut Column) -> Result<()> {
        use Kind as K;
        match (self.layout.kinds[self.column], &mut to.data) {
            (K::Int4 | K::Date, Vector::Int4(v)) => self.fixed(v, i32::from_le_bytes)?,
            (K::Int8 | K::Time | K::Timestamp | K::Timestamptz, Vector::Int8(v)) => {
                self.fixed(v, i64::from_le_bytes)?;
            }
            (K::Int2, Vector::Int2(v)) => self.fixed(v, i16::from_le_bytes)?,
            (K::Float8, Vector::Float8(v)) => self.fixed(v, f64::from_le_bytes)?,
            (K::Bool, Vector::Bool(v)) => self.fixed(v, |b: [u8; 1]| b[0] != 0)?,
            (K::Text, Vector::Text(v)) | (K::Bpchar, Vector::Bpchar(v)) => self.texts(v)?,
            (K::Numeric, Vector::Numeric(..)) => return self.numbers(to),
            _ => {
                return (0..self.at.len()).try_for_each(|n| to.push(self.walk(n)?.value()?));
            }
        }
        in_step(to);
        Ok(())
    }

    /// One row as the codec walks it, at the current column.
    fn walk(&self, n: usize) -> Result<Walk<'_>> {
        let bytes = row(self.bytes, self.places[n])?;
        let (columns, at) = (self.layout.kinds.len(), self.at[n] - self.places[n].0);
        let (column, at) = (self.column, at as usize);
        Ok(Walk { layout: self.layout, bytes, columns, bitmap: None, first: 2, column, at })
    }

    fn fixed<const N: usize, T>(&self, to: &mut Vec<T>, of: impl Fn([u8; N]) -> T) -> Result<()> {
        to.reserve(self.at.len());
        for (at, (_, end)) in self.at.iter().zip(self.places) {
            let at = *at as usize;
            match self.bytes.get(at..at + N).and_then(|b| b.first_chunk()) {
                Some(value) if at + N <= *end as usize => to.push(of(*value)),
                _ => return Err(corrupt()),
            }
        }
        Ok(())
    }

    fn texts(&self, to: &mut Vec<Text>) -> Result<()> {
        to.reserve(self.at.len());
        for (n, (at, (_, end))) in self.at.iter().zip(self.places).enumerate() {
            let at = *at as usize;
            let short = match self.bytes.get(at) {
                Some(len) if *len < 128 && at + usize::from(*len) < *end as usize => {
                    self.bytes.get(at + 1..at + 1 + usize::from(*len))
                }
                _ => None,
            };
            match short.map(std::str::from_utf8) {
                Some(Ok(text)) => to.push(Text::from(text)),
                _ => to.push(self.walk(n)?.text()?),
            }
        }
        Ok(())
    }

    /// Numbers, of one scale as long as they are.
    fn numbers(&self, to: &mut Column) -> Result<()> {
        let mut done = 0;
        let known = to.len();
        if let Vector::Numeric(values, common) = &mut to.data {
            values.reserve(self.at.len());
            for (n, (at, (_, end))) in self.at.iter().zip(self.places).enumerate() {
                let (value, scale) = match Numeric::load_small(self.bytes, *at as usize, *end) {
                    Some(small) => small,
                    None => match self.number(n)? {
                        Numeric::Small { value, scale } => (value, scale),
                        _ => break,
                    },
                };
                if known == 0 && n == 0 {
                    *common = scale;
                }
                if scale != *common {
                    break;
                }
                values.push(value);
                done += 1;
            }
        }
        in_step(to);
        (done..self.at.len()).try_for_each(|n| {
            to.push_numeric(self.number(n)?);
            Ok(())
        })
    }

    fn number(&self, n: usize) -> Result<Numeric> {
        Numeric::load(&self.walk(n)?.varying()?).ok_or_else(corrupt)
    }
}

/// Keeps a column's flags in step with its values, of which none is NULL that was added.
fn in_step(column: &mut Column) {
    if !column.nulls.is_empty() {
        column.nulls.resize(column.len(), false);
    }
}

/// Bytes of a value with a long head.
#[cold]
fn long_value(bytes: &[u8], at: usize) -> Result<usize> {
    let head = bytes.get(at..at + 4).and_then(|b| b.first_chunk()).ok_or_else(corrupt)?;
    Ok(4 + (u32::from_be_bytes(*head) & !outside::SPECIAL) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datum::Datum;
    use crate::oids;
    use crate::row::{decode, encode};
    use crate::testing::{Random, random_value};

    #[test]
    fn rows_by_column_are_those_by_row() {
        let types = [
            oids::INT8,
            oids::INT4,
            oids::NUMERIC,
            oids::TEXT,
            oids::DATE,
            oids::BPCHAR,
            oids::BOOL,
            oids::FLOAT8,
            oids::UUID,
            oids::INT2,
            oids::NUMERIC,
        ];
        let layout = RowLayout::of_types(&types);
        let mut random = Random::new(5);
        for round in 0..40 {
            let (mut bytes, mut places) = (vec![7; 3], Vec::new());
            for _ in 0..20 {
                let mut values: Vec<Datum> =
                    types.iter().map(|ty| random_value(*ty, &mut random)).collect();
                if round % 2 == 0 {
                    // The quick ways are for these: no NULL, one scale, here and there a long text.
                    values[2] = Datum::Numeric(Numeric::new(random.below(1 << 40) as i64 - 77, 2));
                    let long = "é".repeat(random.below(100) as usize);
                    values[3] = Datum::Text(Text::from(long.as_str()));
                }
                if round % 4 == 3 {
                    values[4] = Datum::Null;
                }
                let begin = bytes.len();
                encode(&layout, &values, &mut bytes).unwrap();
                places.push((begin as u32, bytes.len() as u32));
            }
            for wanted in [vec![2, 3, 4, 5, 10], vec![0, 1, 9], vec![4, 6, 7, 8], vec![3, 3]] {
                let mut out: Vec<Column> =
                    wanted.iter().map(|n| Column::new(types[usize::from(*n)])).collect();
                let pairs: Vec<(u16, usize)> =
                    wanted.iter().enumerate().map(|(to, n)| (*n, to)).collect();
                decode_rows(&layout, &bytes, &places, &pairs, &mut out).unwrap();
                for (n, (begin, end)) in places.iter().enumerate() {
                    let mut values = Vec::new();
                    let row = &bytes[*begin as usize..*end as usize];
                    decode(&layout, row, &wanted, &mut values).unwrap();
                    for (to, value) in values.iter().enumerate() {
                        let got = out[to].get(n, types[usize::from(wanted[to])]);
                        assert_eq!(format!("{got:?}"), format!("{value:?}"));
                    }
                }
                // Rows that end too early are found out.
                let cut: Vec<(u32, u32)> = places.iter().map(|(b, _)| (*b, b + 6)).collect();
                let mut out: Vec<Column> =
                    wanted.iter().map(|n| Column::new(types[usize::from(*n)])).collect();
                assert!(decode_rows(&layout, &bytes, &cut, &pairs, &mut out).is_err());
            }
        }
    }
}

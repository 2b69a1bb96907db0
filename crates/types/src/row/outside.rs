//! Values too large for a row: compressed, or kept elsewhere with a pointer in the row.
//!
//! A value in a row may have a special head: the length's two top bits are set, and what follows is
//!
//! ```text
//! u8 flags (1 compressed, 2 outside)   u32 length as it was   then
//! outside: u32 stored bytes, 6 bytes place of the first piece        else: the compressed bytes
//! ```
//!
//! Rows above [`TARGET_BYTES`] are made smaller: the largest values are compressed first (LZ4), and
//! what is then still too large moves outside, the largest first. Reading a column expands its
//! value; columns that nobody asks for cost nothing.
//! The keeper of the pieces is not known here: see [`Outside`].

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use base::{Result, TupleId, err};

use super::{RowLayout, Walk, corrupt};

/// Rows larger than this are made smaller.
pub const TARGET_BYTES: usize = 2000;
/// Values smaller than this stay as they are.
const WORTHWHILE_BYTES: usize = 64;
/// Bytes of a value, at most.
const VALUE_BYTES_MAX: usize = (1 << 30) - 1;
/// Marks a special head.
pub(super) const SPECIAL: u32 = 0b11 << 30;

const COMPRESSED: u8 = 1;
const OUTSIDE: u8 = 2;

/// Where values stand that a row only points at.
pub trait Outside: Debug + Send + Sync {
    /// The `len` bytes that begin at a place.
    ///
    /// # Errors
    /// I/O; damaged pieces.
    fn read(&self, first: TupleId, len: usize) -> Result<Vec<u8>>;

    /// Whether anything was ever kept there.
    ///
    /// # Errors
    /// I/O.
    fn any(&self) -> Result<bool>;
}

impl RowLayout {
    /// With the place where large values are.
    pub fn with_outside(mut self, outside: Arc<dyn Outside>) -> RowLayout {
        self.outside = Some(outside);
        self
    }

    /// Whether values of these rows may be outside.
    ///
    /// # Errors
    /// I/O.
    pub fn has_outside(&self) -> Result<bool> {
        self.outside.as_ref().map_or(Ok(false), |o| o.any())
    }

    /// Whether any column's values have a length, so that they can be large.
    pub fn has_varying(&self) -> bool {
        self.kinds.iter().any(|k| k.width().is_none())
    }
}

/// The value behind a special head.
struct Special<'a> {
    flags: u8,
    raw_len: usize,
    rest: &'a [u8],
}

impl<'a> Special<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Special<'a>> {
        let (head, rest) = bytes.split_first_chunk::<5>()?;
        let raw_len = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        Some(Special { flags: head[0], raw_len, rest })
    }

    /// Stored bytes and first piece, when it is outside.
    fn pointer(&self) -> Option<(usize, TupleId)> {
        let (len, place) = self.rest.split_first_chunk::<4>()?;
        let place = TupleId::from_bytes(place.try_into().ok()?);
        (self.flags & OUTSIDE != 0).then_some((u32::from_le_bytes(*len) as usize, place))
    }
}

/// The value behind a special head.
#[cold]
pub(super) fn expand<'a>(layout: &RowLayout, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>> {
    let special = Special::parse(bytes).ok_or_else(corrupt)?;
    let stored = match special.pointer() {
        Some((len, first)) => {
            let outside = layout.outside.as_ref().ok_or_else(corrupt)?;
            Cow::Owned(outside.read(first, len)?)
        }
        None => Cow::Borrowed(special.rest),
    };
    if special.flags & COMPRESSED == 0 {
        return Ok(stored);
    }
    let raw = lz4_flex::block::decompress(&stored, special.raw_len).map_err(|_| corrupt())?;
    if raw.len() == special.raw_len { Ok(Cow::Owned(raw)) } else { Err(corrupt()) }
}

/// A value of variable width in an encoded row.
struct Part {
    column: usize,
    /// Where its head starts and its bytes end.
    from: usize,
    to: usize,
    head: usize,
    special: bool,
    /// Nothing more can be done to it.
    done: bool,
}

/// The values of variable width.
fn parts(layout: &RowLayout, bytes: &[u8]) -> Result<Vec<Part>> {
    let mut walk = Walk::new(layout, bytes)?;
    let mut out = Vec::new();
    for column in 0..walk.columns {
        if layout.kinds[column].width().is_some() || !walk.seek(column)? {
            continue;
        }
        let (len, head, special) = walk.length()?;
        let to = walk.at + head + len;
        out.push(Part { column, from: walk.at, to, head, special, done: false });
    }
    Ok(out)
}

/// Puts other bytes in a part's place, and moves those after it.
fn replace(bytes: &mut Vec<u8>, all: &mut [Part], at: usize, payload: &[u8]) {
    let head = (payload.len() as u32 | SPECIAL).to_be_bytes();
    let (from, to) = (all[at].from, all[at].to);
    bytes.splice(from..to, head.iter().chain(payload).copied());
    let end = from + 4 + payload.len();
    for part in &mut all[at + 1..] {
        part.from = part.from - to + end;
        part.to = part.to - to + end;
    }
    (all[at].to, all[at].head, all[at].special) = (end, 4, true);
}

fn largest(parts: &[Part]) -> Option<usize> {
    let open = parts.iter().enumerate().filter(|(_, p)| !p.done);
    open.filter(|(_, p)| p.to - p.from > WORTHWHILE_BYTES)
        .max_by_key(|(_, p)| p.to - p.from)
        .map(|(i, _)| i)
}

/// Makes an encoded row smaller than [`TARGET_BYTES`], if it can be; `store` keeps a value outside
/// and answers its first piece's place.
///
/// # Errors
/// Those of `store`.
pub fn shrink(
    layout: &RowLayout,
    bytes: &mut Vec<u8>,
    store: &mut dyn FnMut(&[u8]) -> Result<TupleId>,
) -> Result<()> {
    let mut all = parts(layout, bytes)?;
    all.iter_mut().for_each(|p| p.done = p.special);
    while bytes.len() > TARGET_BYTES
        && let Some(at) = largest(&all)
    {
        let part = &all[at];
        let value = &bytes[part.from + part.head..part.to];
        let packed = lz4_flex::block::compress(value);
        all[at].done = true;
        if packed.len() + 9 < (value.len() - value.len() / 8) {
            let raw_len = (value.len() as u32).to_le_bytes();
            replace(bytes, &mut all, at, &[&[COMPRESSED], &raw_len[..], &packed].concat());
        }
    }
    all.iter_mut().for_each(|p| p.done = false);
    while bytes.len() > TARGET_BYTES
        && let Some(at) = largest(&all)
    {
        let part = &all[at];
        let value = &bytes[part.from + part.head..part.to];
        let (flags, raw_len, stored) = match part.special.then(|| Special::parse(value)).flatten() {
            Some(special) => (special.flags | OUTSIDE, special.raw_len, special.rest),
            None => (OUTSIDE, value.len(), value),
        };
        let first = store(stored)?;
        let raw_len = (raw_len as u32).to_le_bytes();
        let len = (stored.len() as u32).to_le_bytes();
        let pointer = [&[flags], &raw_len[..], &len, &first.to_bytes()].concat();
        replace(bytes, &mut all, at, &pointer);
        all[at].done = true;
    }
    Ok(())
}

/// Lets an encoded row have as they are what an older version of it has compressed or outside, where the
/// values are the same; answers the first pieces of those outside.
///
/// # Errors
/// I/O; `XX001`: damaged bytes.
pub fn reuse(layout: &RowLayout, bytes: &mut Vec<u8>, old: &[u8]) -> Result<Vec<TupleId>> {
    let mut all = parts(layout, bytes)?;
    let mut taken = Vec::new();
    for before in parts(layout, old)?.iter().filter(|p| p.special) {
        let Some(at) = all.iter().position(|p| p.column == before.column) else { continue };
        let stored = &old[before.from + before.head..before.to];
        let special = Special::parse(stored).ok_or_else(corrupt)?;
        let value = &bytes[all[at].from + all[at].head..all[at].to];
        if special.raw_len == value.len() && *expand(layout, stored)? == *value {
            taken.extend(special.pointer().map(|p| p.1));
            replace(bytes, &mut all, at, stored);
        }
    }
    Ok(taken)
}

/// First pieces of the values that an encoded row keeps outside.
///
/// # Errors
/// `XX001`: damaged bytes.
pub fn pointers(layout: &RowLayout, bytes: &[u8]) -> Result<Vec<TupleId>> {
    let mut out = Vec::new();
    for part in parts(layout, bytes)?.iter().filter(|p| p.special) {
        let special = Special::parse(&bytes[part.from + part.head..part.to]);
        out.extend(special.and_then(|s| s.pointer()).map(|p| p.1));
    }
    Ok(out)
}

/// Refuses a value that no row can have.
pub(super) fn check_length(len: usize) -> Result<()> {
    if len > VALUE_BYTES_MAX {
        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "a value of {len} bytes is larger than 1 GB"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::{decode, encode};
    use super::*;
    use crate::{Datum, oids};

    /// Keeps values in memory; a piece's number is its block.
    #[derive(Debug, Default)]
    struct Shelf(Mutex<Vec<Vec<u8>>>);

    impl Outside for Shelf {
        fn read(&self, first: TupleId, len: usize) -> Result<Vec<u8>> {
            let bytes = self.0.lock().unwrap()[first.block as usize].clone();
            assert_eq!(bytes.len(), len);
            Ok(bytes)
        }

        fn any(&self) -> Result<bool> {
            Ok(!self.0.lock().unwrap().is_empty())
        }
    }

    fn noise(len: usize) -> Vec<u8> {
        let mut random = crate::testing::Random::new(5);
        (0..len).map(|_| random.next() as u8).collect()
    }

    #[test]
    fn large_rows_become_small_and_read_back_the_same() {
        let shelf = Arc::new(Shelf::default());
        let types = [oids::INT4, oids::TEXT, oids::BYTEA, oids::TEXT, oids::BYTEA];
        let layout = RowLayout::of_types(&types).with_outside(shelf.clone());
        for size in [10, 500, 3000, 100_000] {
            let row = [
                Datum::Int4(7),
                Datum::from("ab".repeat(size)),
                Datum::bytea(&noise(size)),
                Datum::Null,
                Datum::bytea(&noise(size / 2)),
            ];
            let mut bytes = Vec::new();
            encode(&layout, &row, &mut bytes).unwrap();
            let before = bytes.len();
            let mut store = |value: &[u8]| {
                let mut all = shelf.0.lock().unwrap();
                all.push(value.to_vec());
                Ok(TupleId { block: all.len() as u32 - 1, offset: 1 })
            };
            shrink(&layout, &mut bytes, &mut store).unwrap();
            assert!(bytes.len() <= TARGET_BYTES, "{size}: {}", bytes.len());
            assert_eq!(before <= TARGET_BYTES, bytes.len() == before);
            let mut back = Vec::new();
            decode(&layout, &bytes, &[0, 1, 2, 3, 4], &mut back).unwrap();
            assert_eq!(back, row, "{size}");
            let mut one = Vec::new();
            decode(&layout, &bytes, &[4], &mut one).unwrap();
            assert_eq!(one[0], row[4]);
            let outside = pointers(&layout, &bytes).unwrap();
            assert_eq!(outside.is_empty(), size < 3000, "{size}");
        }
    }

    #[test]
    fn a_new_version_takes_over_what_stays_the_same() {
        let shelf = Arc::new(Shelf::default());
        let types = [oids::INT4, oids::TEXT, oids::BYTEA, oids::BYTEA];
        let layout = RowLayout::of_types(&types).with_outside(shelf.clone());
        let mut store = |value: &[u8]| {
            let mut all = shelf.0.lock().unwrap();
            all.push(value.to_vec());
            Ok(TupleId { block: all.len() as u32 - 1, offset: 1 })
        };
        let thin = Datum::from("ab".repeat(4000));
        let row = |n, last: &[u8]| {
            [Datum::Int4(n), thin.clone(), Datum::bytea(&noise(9000)), Datum::bytea(last)]
        };
        let mut old = Vec::new();
        encode(&layout, &row(1, &noise(5000)), &mut old).unwrap();
        shrink(&layout, &mut old, &mut store).unwrap();
        let places = pointers(&layout, &old).unwrap();
        assert_eq!(places.len(), 2);

        let mut new = Vec::new();
        let other = noise(5001);
        encode(&layout, &row(2, &other), &mut new).unwrap();
        assert_eq!(reuse(&layout, &mut new, &old).unwrap(), [places[0]]);
        shrink(&layout, &mut new, &mut store).unwrap();
        assert_eq!(pointers(&layout, &new).unwrap()[0], places[0]);
        assert_eq!(shelf.0.lock().unwrap().len(), 3, "only the value that differs is stored anew");
        let mut back = Vec::new();
        decode(&layout, &new, &[0, 1, 2, 3], &mut back).unwrap();
        assert_eq!(back, row(2, &other));
    }
}

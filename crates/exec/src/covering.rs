//! Keys of GiST and SP-GiST indexes: what their columns' classes say of each value, column after column.
//!
//! ```text
//!  | length (1) | place | flags (1), length (2), key | … for each column
//! ```
//!
//! The place, which only leaves have, sorts the entries of a build. Flags say whether there are NULLs and whether
//! there is a key of values.

use std::sync::Arc;

use access::gist::{Distances, TreeOps, TreeSearch};
use base::ternary::Ternary;
use base::{Error, Result};
use types::Datum;
use types::gist::{GistClass, KeyCheck, KeyDistance};

/// Flag: rows with NULL are below.
const NULLS: u8 = 1;
/// Flag: there is a key.
const KEY: u8 = 2;

/// The classes of an index's columns.
pub struct TreeKeys {
    /// One for each column.
    pub classes: Vec<Arc<dyn GistClass>>,
}

/// A column's part of a key.
#[derive(Clone, Copy, Default)]
struct Part<'k> {
    flags: u8,
    key: &'k [u8],
}

impl Part<'_> {
    fn has_key(self) -> bool {
        self.flags & KEY != 0
    }
}

fn put_part(out: &mut Vec<u8>, flags: u8, key: &[u8]) {
    out.push(flags);
    out.extend_from_slice(&(key.len() as u16).to_le_bytes());
    out.extend_from_slice(key);
}

/// The columns' parts.
fn parts(bytes: &[u8]) -> impl Iterator<Item = Part<'_>> {
    let place = usize::from(bytes.first().copied().unwrap_or_default());
    let mut rest = bytes.get(1 + place..).unwrap_or_default();
    std::iter::from_fn(move || {
        let ([flags, a, b], behind) = rest.split_first_chunk::<3>()?;
        let (key, behind) = behind.split_at_checked(usize::from(u16::from_le_bytes([*a, *b])))?;
        rest = behind;
        Some(Part { flags: *flags, key })
    })
}

fn part(bytes: &[u8], column: usize) -> Part<'_> {
    // A missing value may be anything.
    parts(bytes).nth(column).unwrap_or(Part { flags: NULLS | KEY, key: &[] })
}

impl TreeKeys {
    /// Appends the key of a row, by the values of its key columns.
    ///
    /// # Errors
    /// Those of the classes.
    pub fn encode<'v>(
        &self,
        values: impl Iterator<Item = &'v Datum>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let begin = out.len();
        out.push(0);
        for (n, (class, value)) in self.classes.iter().zip(values).enumerate() {
            if value.is_null() {
                put_part(out, NULLS, &[]);
                continue;
            }
            let key = class.key(value)?;
            if let Some(mut place) = class.place(&key).filter(|_| n == 0) {
                place.truncate(32);
                out[begin] = place.len() as u8;
                out.extend_from_slice(&place);
            }
            put_part(out, KEY, &key);
        }
        Ok(())
    }

    /// A value of a leaf's key; None: the class doesn't keep it.
    pub fn value(&self, key: &[u8], column: usize) -> Option<Datum> {
        let part = part(key, column);
        match part.has_key() {
            true => self.classes.get(column)?.value(part.key),
            false => Some(Datum::Null),
        }
    }
}

impl TreeOps for TreeKeys {
    fn choose(&self, covers: &[&[u8]], new: &[u8]) -> Result<usize> {
        if let [class] = &self.classes[..] {
            return choose_by_one(&**class, covers, part(new, 0));
        }
        let new: Vec<Part<'_>> = parts(new).collect();
        let mut best: Option<(usize, Vec<f64>)> = None;
        for (n, cover) in covers.iter().enumerate() {
            let mut costs = Vec::with_capacity(new.len());
            for ((class, own), new) in self.classes.iter().zip(parts(cover)).zip(&new) {
                let nulls = f64::from((new.flags & !own.flags).count_ones());
                costs.push(match own.has_key() && new.has_key() {
                    true => nulls + class.penalty(own.key, new.key),
                    false => nulls,
                });
            }
            let better = |known: &Vec<f64>| {
                let first =
                    costs.iter().zip(known).map(|(a, b)| a.total_cmp(b)).find(|o| o.is_ne());
                first.is_some_and(|o| o.is_lt())
            };
            if best.as_ref().is_none_or(|(_, known)| better(known)) {
                let perfect = costs.iter().all(|cost| *cost == 0.0);
                best = Some((n, costs));
                if perfect {
                    break;
                }
            }
        }
        best.map(|(n, _)| n).ok_or_else(|| Error::internal("an inner page without keys"))
    }

    fn union(&self, keys: &[&[u8]]) -> Result<Vec<u8>> {
        let mut out = vec![0];
        for (n, class) in self.classes.iter().enumerate() {
            let own = keys.iter().map(|key| part(key, n));
            let flags = own.clone().fold(0, |all, part| all | part.flags);
            let keys: Vec<&[u8]> = own.filter(|part| part.has_key()).map(|part| part.key).collect();
            match keys.is_empty() {
                true => put_part(&mut out, flags, &[]),
                false => put_part(&mut out, flags, &class.union(&keys)),
            }
        }
        Ok(out)
    }

    fn split(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        for (n, class) in self.classes.iter().enumerate() {
            let own: Vec<Part<'_>> = keys.iter().map(|key| part(key, n)).collect();
            let with_key: Vec<usize> = (0..own.len()).filter(|n| own[*n].has_key()).collect();
            if with_key.len() < own.len() && !with_key.is_empty() {
                // Rows with NULL on a page of their own.
                return Ok(own.iter().map(|part| !part.has_key()).collect());
            }
            let differ = with_key.windows(2).any(|w| own[w[0]].key != own[w[1]].key);
            if differ {
                let keys: Vec<&[u8]> = own.iter().map(|part| part.key).collect();
                return Ok(class.split(&keys));
            }
        }
        Ok((0..keys.len()).map(|n| n >= keys.len() / 2).collect())
    }

    fn is_sortable(&self) -> bool {
        self.classes.first().is_some_and(|class| class.is_sortable())
    }
}

/// The place of the key that must grow least, of an index of one column.
fn choose_by_one(class: &dyn GistClass, covers: &[&[u8]], new: Part<'_>) -> Result<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (n, cover) in covers.iter().enumerate() {
        let own = part(cover, 0);
        let mut cost = f64::from((new.flags & !own.flags).count_ones());
        if own.has_key() && new.has_key() {
            cost += class.penalty(own.key, new.key);
        }
        if best.is_none_or(|(_, known)| cost.total_cmp(&known).is_lt()) {
            best = Some((n, cost));
        }
        if cost == 0.0 {
            break;
        }
    }
    best.map(|(n, _)| n).ok_or_else(|| Error::internal("an inner page without keys"))
}

/// A question of a search about one column.
pub enum Asked {
    /// An operator of its class.
    Key(KeyCheck),
    /// IS NULL.
    Null,
    /// IS NOT NULL.
    NotNull,
}

/// A search for rows that satisfy all of these, in the order of the distances.
pub fn search(asked: Vec<(usize, Asked)>, distances: Vec<(usize, KeyDistance)>) -> TreeSearch {
    let check = move |key: &[u8], leaf: bool| {
        let mut all = Ternary::True;
        for (column, asked) in &asked {
            let part = part(key, *column);
            let held = match asked {
                Asked::Key(check) if part.has_key() => check(part.key, leaf),
                Asked::Null if part.flags & NULLS != 0 => Ternary::True,
                Asked::NotNull if part.has_key() => Ternary::True,
                _ => Ternary::False,
            };
            all = all.min(held);
            if all == Ternary::False {
                break;
            }
        }
        Ok(all)
    };
    let ordered = !distances.is_empty();
    let distance = move |key: &[u8], leaf: bool, all: &mut Distances| {
        let mut doubt = false;
        for (column, distance) in &distances {
            let part = part(key, *column);
            all.push(if part.has_key() {
                let (off, may_be_more) = distance(part.key, leaf);
                doubt |= may_be_more;
                Some(off)
            } else {
                None
            });
        }
        Ok(doubt)
    };
    TreeSearch {
        check: Arc::new(check),
        distance: ordered.then(|| Arc::new(distance) as access::gist::KeyDistance),
    }
}

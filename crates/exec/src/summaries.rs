//! Summaries of BRIN indexes, column after column:
//!
//! ```text
//!  | flags (1), length (2), summary | … for each column
//! ```
//!
//! A row's key has the same form: the summary of its own values. `minmax` and `inclusion` classes keep one key that
//! covers all values, as GiST's classes make them; `minmax_multi` several intervals; `bloom` a filter of bits.

use std::sync::Arc;

use access::brin::{SummaryCheck, SummaryOps};
use base::ternary::Ternary;
use base::{Oid, Result};
use catalog::Index;
use types::Datum;
use types::gist::{GistClass, KeyCheck, interval};
use types::key::{self, KeyOrder};

use crate::table::KeyColumn;

/// Flag: there are NULLs.
const NULLS: u8 = 1;
/// Flag: there are values.
const KEY: u8 = 2;
/// Intervals of a `minmax_multi` summary, at most.
const INTERVALS_MAX: usize = 16;
/// Bytes of a filter.
const FILTER: usize = 1024;
/// Bits of a filter that a value sets.
const HASHES: u32 = 5;

/// How a column is summarized.
pub enum Class {
    /// By one key that covers all values.
    Cover(Arc<dyn GistClass>, fn(u16) -> u16),
    /// By several intervals.
    Multi(interval::ScalarOps),
    /// By a filter.
    Bloom(Oid),
}

/// The classes of an index's columns.
pub struct Summaries {
    /// One for each column; fewer when the house lacks one.
    pub classes: Vec<Class>,
}

/// A class by its oid, for values of a type; None: the house doesn't have it.
pub fn class(oid: u32, ty: Oid) -> Option<Class> {
    let oid = types::opclass::resolved(oid);
    let name = types::opclass::class(oid).filter(|c| c.method == 3580)?.name;
    let same = |strategy| strategy;
    if name.ends_with("_minmax_multi_ops") {
        return Some(Class::Multi(interval::ScalarOps { ty }));
    }
    if name.ends_with("_minmax_ops") {
        return Some(Class::Cover(Arc::new(interval::ScalarOps { ty }), same));
    }
    if name.ends_with("_bloom_ops") {
        return Some(Class::Bloom(ty));
    }
    match name {
        "inet_inclusion_ops" => Some(Class::Cover(Arc::new(interval::InetOps), |s| match s {
            7 => 27,
            8 => 25,
            24 => 26,
            26 => 24,
            s => s,
        })),
        "range_inclusion_ops" => Some(Class::Cover(Arc::new(interval::RangeOps), |s| match s {
            17 => 6,
            s => s,
        })),
        "box_inclusion_ops" => {
            // As GiST's `box_ops`.
            Some(Class::Cover(types::gist::class(10_060, ty)?, same))
        }
        _ => None,
    }
}

fn put_part(out: &mut Vec<u8>, flags: u8, key: &[u8]) {
    out.push(flags);
    out.extend_from_slice(&(key.len() as u16).to_le_bytes());
    out.extend_from_slice(key);
}

/// A column's part.
#[derive(Clone, Copy)]
struct Part<'k> {
    flags: u8,
    key: &'k [u8],
}

fn parts(bytes: &[u8]) -> impl Iterator<Item = Part<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let ([flags, a, b], behind) = rest.split_first_chunk::<3>()?;
        let (key, behind) = behind.split_at_checked(usize::from(u16::from_le_bytes([*a, *b])))?;
        rest = behind;
        Some(Part { flags: *flags, key })
    })
}

/// The intervals of a `minmax_multi` summary: each after its length.
fn intervals(bytes: &[u8]) -> Vec<&[u8]> {
    let mut rest = bytes;
    let mut out = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length));
        let Some((one, behind)) = behind.split_at_checked(length) else { break };
        out.push(one);
        rest = behind;
    }
    out
}

fn put_intervals(all: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for one in all {
        out.extend_from_slice(&(one.len() as u16).to_le_bytes());
        out.extend_from_slice(one);
    }
    out
}

/// Intervals of both, those that overlap as one, and the nearest ones as one until there are few enough.
fn unite_intervals(a: &[u8], b: &[u8], room: usize) -> Vec<u8> {
    let mut all: Vec<Vec<u8>> =
        intervals(a).into_iter().chain(intervals(b)).map(<[u8]>::to_vec).collect();
    all.sort_by(|a, b| interval::read(a).ends().cmp(&interval::read(b).ends()));
    let mut out: Vec<Vec<u8>> = Vec::with_capacity(all.len());
    for one in all {
        match out.last_mut() {
            Some(last) if interval::touch(last, &one) => *last = interval::union(&[last, &one]),
            _ => out.push(one),
        }
    }
    let size = |all: &[Vec<u8>]| all.iter().map(|one| one.len() + 2).sum::<usize>();
    while out.len() > 1 && (out.len() > INTERVALS_MAX || size(&out) > room) {
        let gaps = out.windows(2).map(|w| interval::gap(&w[0], &w[1]));
        let nearest = gaps.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |g| g.0);
        let next = out.remove(nearest + 1);
        out[nearest] = interval::union(&[&out[nearest], &next]);
    }
    put_intervals(&out)
}

fn value_bytes(ty: Oid, value: &Datum) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(16);
    key::encode(ty, value, KeyOrder::default(), &mut out)?;
    Ok(out)
}

/// The bits of a filter that a value sets.
fn filter_bits(bytes: &[u8], room: usize) -> impl Iterator<Item = usize> + use<> {
    let first = types::gist::signature::code(bytes);
    let second = access::hash::code(bytes) | 1;
    (0..HASHES).map(move |n| first.wrapping_add(second.wrapping_mul(n)) as usize % (room * 8))
}

impl Class {
    /// The summary of one value; `room`: bytes that it may have.
    fn key(&self, value: &Datum, room: usize) -> Result<Vec<u8>> {
        Ok(match self {
            Class::Cover(class, _) => class.key(value)?,
            Class::Multi(class) => put_intervals(&[class.key(value)?]),
            Class::Bloom(ty) => {
                let len = FILTER.min(room);
                // The places of the bits; a range's summary has the bits themselves.
                let bits = filter_bits(&value_bytes(*ty, value)?, len);
                bits.flat_map(|bit| (bit as u16).to_le_bytes()).collect()
            }
        })
    }

    /// A summary with what another one has; of no values: empty bytes.
    fn unite(&self, a: &[u8], b: &[u8], room: usize) -> Vec<u8> {
        match self {
            Class::Cover(class, _) => match (a.is_empty(), b.is_empty()) {
                (true, _) => b.to_vec(),
                (_, true) => a.to_vec(),
                _ => class.union(&[a, b]),
            },
            Class::Multi(_) => unite_intervals(a, b, room),
            Class::Bloom(_) => {
                let len = FILTER.min(room);
                let mut out = vec![0; len];
                for part in [a, b] {
                    if part.len() == len {
                        out.iter_mut().zip(part).for_each(|(to, from)| *to |= from);
                        continue;
                    }
                    for bit in part.as_chunks::<2>().0 {
                        let bit = usize::from(u16::from_le_bytes(*bit)) % (len * 8);
                        out[bit / 8] |= 1 << (bit % 8);
                    }
                }
                out
            }
        }
    }

    /// The question that a condition asks of summaries.
    fn check(&self, strategy: u16, value: &Datum, room: usize) -> Result<KeyCheck> {
        Ok(match self {
            Class::Cover(class, number) => {
                let check = class.check(number(strategy), value)?;
                Arc::new(move |key, _| check(key, false))
            }
            Class::Multi(class) => {
                let check = class.check(strategy, value)?;
                Arc::new(move |key, _| {
                    let held = intervals(key).into_iter().map(|one| check(one, false));
                    held.max().unwrap_or(Ternary::False)
                })
            }
            Class::Bloom(ty) => {
                let len = FILTER.min(room);
                let bits: Vec<usize> = match interval::is_of(*ty, value) {
                    true => filter_bits(&value_bytes(*ty, value)?, len).collect(),
                    false => Vec::new(),
                };
                Arc::new(move |key, _| {
                    let has = |bit: &usize| {
                        key.get(bit / 8).is_none_or(|byte| byte & (1 << (bit % 8)) != 0)
                    };
                    types::gist::possible(bits.iter().all(has))
                })
            }
        })
    }
}

impl Summaries {
    /// Of an index.
    pub fn new(index: &Index, columns: &[KeyColumn]) -> Summaries {
        let of = |(c, (_, ty, _)): (&catalog::IndexColumn, &KeyColumn)| {
            class(c.class_of(index.method, ty.0), *ty)
        };
        Summaries { classes: index.columns.iter().zip(columns).map_while(of).collect() }
    }

    /// Bytes that a column's summary may have.
    fn room(&self) -> usize {
        access::brin::SUMMARY_MAX / self.classes.len().max(1) - 8
    }

    /// Appends the key of a row, by the values of its key columns.
    ///
    /// # Errors
    /// Those of the classes.
    pub fn encode<'v>(
        &self,
        values: impl Iterator<Item = &'v Datum>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        for (class, value) in self.classes.iter().zip(values) {
            match value.is_null() {
                true => put_part(out, NULLS, &[]),
                false => put_part(out, KEY, &class.key(value, self.room())?),
            }
        }
        Ok(())
    }

    /// The question of a search: all of these, by the columns' numbers.
    ///
    /// # Errors
    /// Those of the classes.
    pub fn check(&self, asked: Vec<(usize, Asked<'_>)>) -> Result<SummaryCheck> {
        let mut checks = Vec::with_capacity(asked.len());
        for (column, asked) in asked {
            let check = match (asked, self.classes.get(column)) {
                (Asked::Operator(strategy, value), Some(class)) => {
                    Some(class.check(strategy, value, self.room())?)
                }
                (Asked::NotNull, _) => {
                    Some(Arc::new(|_: &[u8], _: bool| Ternary::Maybe) as KeyCheck)
                }
                _ => None,
            };
            checks.push((column, check));
        }
        Ok(Arc::new(move |summary| {
            let own: Vec<Part<'_>> = parts(summary).collect();
            Ok(checks.iter().all(|(column, check)| {
                let Some(part) = own.get(*column) else { return true };
                match check {
                    Some(check) => {
                        part.flags & KEY != 0 && check(part.key, false) != Ternary::False
                    }
                    None => part.flags & NULLS != 0,
                }
            }))
        }))
    }
}

/// A question of a search about one column.
pub enum Asked<'v> {
    /// An operator, by its strategy number, with this value.
    Operator(u16, &'v Datum),
    /// IS NULL.
    Null,
    /// IS NOT NULL.
    NotNull,
}

impl SummaryOps for Summaries {
    fn empty(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.classes.iter().for_each(|_| put_part(&mut out, 0, &[]));
        out
    }

    fn add(&self, summary: &[u8], key: &[u8]) -> Result<Option<Vec<u8>>> {
        let wider = self.union(summary, key)?;
        Ok((wider != summary).then_some(wider))
    }

    fn union(&self, a: &[u8], b: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(a.len());
        for ((class, a), b) in self.classes.iter().zip(parts(a)).zip(parts(b)) {
            let flags = a.flags | b.flags;
            match flags & KEY {
                0 => put_part(&mut out, flags, &[]),
                _ => put_part(&mut out, flags, &class.unite(a.key, b.key, self.room())),
            }
        }
        Ok(out)
    }
}

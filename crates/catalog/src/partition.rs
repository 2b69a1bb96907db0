//! The partitions of a table, as one array in the order of their bounds.
//!
//! ```text
//!   range   [from, to) [from, to) [from, to) …    sorted by `from`; they do not overlap, so by `to`, too
//!   list    (value → part) (value → part) …       sorted by value
//!   hash    remainder → part                      as long as the greatest modulus
//! ```
//!
//! A [`Family`] belongs to one version of the catalog. The array is made at its first use, by whoever comes
//! first: decoding bounds needs the directory of users' types, which a task that serves a session has. Levels
//! nest: a partition may have a family of its own.
//!
//! Invariant: `parts` is ordered as its rows are where the order of the key says so: ranges ascending, lists by
//! least value, hashes by modulus and remainder; a list's partition for NULL alone and the default come last.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use base::{Oid, Result};
use imbl::{OrdMap, Vector};
use types::{Datum, FormatContext};

use crate::object::{Edge, Id, PartitionBound, PartitionKey, Partitioning, Strategy, Table};

/// A table's partitions.
#[derive(Clone, Default)]
pub struct Family {
    members: OrdMap<Id, Arc<Table>>,
    bounds: OnceLock<Arc<Bounds>>,
    register: OnceLock<Arc<Register>>,
    /// The register of an earlier version, and whose entries there may be old.
    earlier: Option<(Arc<Register>, Vector<Id>)>,
}

impl Family {
    /// With a partition more, or a new version of one.
    pub(crate) fn with(&self, member: &Arc<Table>) -> Family {
        let mut members = self.members.clone();
        members.insert(member.oid, member.clone());
        Family { members, earlier: self.to_follow(member.oid), ..Family::default() }
    }

    /// With one less.
    pub(crate) fn without(&self, id: Id) -> Family {
        let mut members = self.members.clone();
        members.remove(&id);
        Family { members, earlier: self.to_follow(id), ..Family::default() }
    }

    /// The register from which a version makes its own in which one member changes.
    fn to_follow(&self, id: Id) -> Option<(Arc<Register>, Vector<Id>)> {
        let (register, mut changed) = match self.register.get() {
            Some(register) => (register.clone(), Vector::new()),
            None => self.earlier.clone()?,
        };
        changed.push_back(id);
        (changed.len() <= self.members.len() + 16).then_some((register, changed))
    }

    /// The bounds of all partitions, to look up one. From one version of the catalog to the next it costs as
    /// much as there are changes, not as there are partitions.
    ///
    /// # Errors
    /// A bound that can't be read.
    pub fn register(&self, by: &Partitioning) -> Result<&Arc<Register>> {
        if let Some(register) = self.register.get() {
            return Ok(register);
        }
        let mut made = Register::default();
        match &self.earlier {
            Some((earlier, changed)) => {
                made = Register::clone(earlier);
                for id in changed {
                    made.take(*id);
                    if let Some(table) = self.members.get(id) {
                        made.add(by, table)?;
                    }
                }
            }
            None => {
                for table in self.members.values() {
                    made.add(by, table)?;
                }
            }
        }
        let made = Arc::new(made);
        Ok(self.register.get_or_init(|| made))
    }

    /// A partition by its oid.
    pub fn member(&self, id: Id) -> Option<&Arc<Table>> {
        self.members.get(&id)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The partitions by oid.
    pub fn members(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.members.values()
    }

    /// The partitions in the order of their bounds.
    ///
    /// # Errors
    /// A bound that can't be read.
    pub fn bounds(&self, by: &Partitioning) -> Result<&Arc<Bounds>> {
        if let Some(bounds) = self.bounds.get() {
            return Ok(bounds);
        }
        let register = self.register(by)?;
        let held = |table: &Arc<Table>| {
            let held = register.held.get(&table.oid)?;
            Some((Held::clone(held), table.clone()))
        };
        let made = Arc::new(Bounds::new(by, self.members.values().filter_map(held).collect()));
        Ok(self.bounds.get_or_init(|| made))
    }
}

/// See [`Family::register`]. Maps are persistent: a version shares all but the changes with the one before.
#[derive(Clone, Default)]
pub struct Register {
    held: OrdMap<Id, Arc<Held>>,
    ranges: OrdMap<Sorted<EdgeRow>, (EdgeRow, Id)>,
    values: OrdMap<Sorted<Datum>, Id>,
    hashes: OrdMap<(u32, u32), Id>,
    /// The partition that holds NULL (lists).
    pub null: Option<Id>,
    /// The default partition.
    pub default: Option<Id>,
}

/// Something in the order in which partitions are.
#[derive(Clone)]
struct Sorted<T>(T);

impl Ord for Sorted<EdgeRow> {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_edges(&self.0, &other.0)
    }
}

impl Ord for Sorted<Datum> {
    fn cmp(&self, other: &Self) -> Ordering {
        types::io::compare(&self.0, &other.0)
    }
}

impl<T> PartialOrd for Sorted<T>
where
    Sorted<T>: Ord,
{
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Sorted<T>
where
    Sorted<T>: Ord,
{
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Sorted<T> where Sorted<T>: Ord {}

impl Register {
    fn add(&mut self, by: &Partitioning, table: &Table) -> Result<()> {
        let Some(bound) = &table.bound else { return Ok(()) };
        let (id, held) = (table.oid, held(by, bound)?);
        match &held {
            Held::Default => self.default = Some(id),
            Held::Range(from, to) => {
                self.ranges.insert(Sorted(from.clone()), (to.clone(), id));
            }
            Held::Hash(modulus, remainder) => {
                self.hashes.insert((*modulus, *remainder), id);
            }
            Held::List(values, null) => {
                for value in values {
                    self.values.insert(Sorted(value.clone()), id);
                }
                self.null = self.null.or(null.then_some(id));
            }
        }
        self.held.insert(id, Arc::new(held));
        Ok(())
    }

    /// Takes a partition out, if it is there.
    fn take(&mut self, id: Id) {
        let Some(held) = self.held.remove(&id) else { return };
        match &*held {
            Held::Default => self.default = self.default.filter(|d| *d != id),
            Held::Range(from, _) => {
                let key = Sorted(from.clone());
                if self.ranges.get(&key).is_some_and(|(_, of)| *of == id) {
                    self.ranges.remove(&key);
                }
            }
            Held::Hash(modulus, remainder) => {
                if self.hashes.get(&(*modulus, *remainder)) == Some(&id) {
                    self.hashes.remove(&(*modulus, *remainder));
                }
            }
            Held::List(values, _) => {
                for value in values {
                    let key = Sorted(value.clone());
                    if self.values.get(&key) == Some(&id) {
                        self.values.remove(&key);
                    }
                }
                self.null = self.null.filter(|n| *n != id);
            }
        }
    }

    /// The partition that holds a value of a list, as [`sort_key`] makes it.
    pub fn list_part(&self, value: &Datum) -> Option<Id> {
        self.values.get(&Sorted(value.clone())).copied()
    }

    /// A partition with a part of a range, the first one, with its lower bound; true: it holds the range's
    /// beginning.
    pub fn range_part(&self, from: &EdgeRow, to: &EdgeRow) -> Option<(Id, EdgeRow, bool)> {
        let before = self.ranges.range(..=Sorted(from.clone())).next_back();
        let after = self.ranges.range(Sorted(from.clone())..).next();
        let reaches = |(_, (end, _)): &(_, &(EdgeRow, Id))| compare_edges(end, from).is_gt();
        let begins = |(begin, _): &(&Sorted<EdgeRow>, _)| compare_edges(&begin.0, to).is_lt();
        let found = before.filter(reaches).map(|found| (found, true));
        let found = found.or_else(|| Some((after.filter(begins)?, false)));
        found.map(|((begin, (_, id)), inside)| (*id, begin.0.clone(), inside))
    }

    /// Modulus and remainder of the partitions, ascending, with their ids.
    pub fn hashes(&self) -> impl DoubleEndedIterator<Item = ((u32, u32), Id)> {
        self.hashes.iter().map(|(hash, id)| (*hash, *id))
    }
}

/// A bound's values, decoded.
pub type EdgeRow = Vec<Edge<Datum>>;

/// The rows that a partition holds.
#[derive(Clone, Debug)]
pub enum Held {
    /// The rows that no other partition holds.
    Default,
    /// These values, and whether NULL.
    List(Vec<Datum>, bool),
    /// From the first, to before the second.
    Range(EdgeRow, EdgeRow),
    /// Modulus and remainder.
    Hash(u32, u32),
}

/// Partitions in the order of their bounds.
pub struct Bounds {
    /// The partitions.
    pub parts: Vec<Arc<Table>>,
    /// The place of the default partition.
    pub default: Option<usize>,
    /// The places of partitions that are partitioned themselves.
    pub nested: Vec<usize>,
    /// The place of the partition that holds NULL (lists).
    pub null: Option<usize>,
    index: Index,
}

enum Index {
    Range(Vec<(EdgeRow, EdgeRow)>),
    List(Vec<(Datum, usize)>),
    Hash(Vec<Option<usize>>),
}

/// A value as comparisons want it.
pub fn sort_key(key: &PartitionKey, value: &Datum) -> Datum {
    match &key.slot {
        Some(slot) => slot.slot().map_or_else(|_| value.clone(), |slot| slot.key(value)),
        None => value.clone(),
    }
}

fn decode(key: &PartitionKey, text: &str) -> Result<Datum> {
    let value = types::io::input(Oid(key.ty), key.typmod, text, &FormatContext::default())?;
    Ok(sort_key(key, &value))
}

/// A partition's bound, decoded, with values as [`sort_key`] makes them.
///
/// # Errors
/// A value that can't be read.
pub fn held(by: &Partitioning, bound: &PartitionBound) -> Result<Held> {
    let row = |edges: &[Edge<String>]| -> Result<EdgeRow> {
        let one = |(edge, key): (&Edge<String>, &PartitionKey)| {
            Ok(match edge {
                Edge::Min => Edge::Min,
                Edge::Max => Edge::Max,
                Edge::Value(text) => Edge::Value(decode(key, text)?),
            })
        };
        edges.iter().zip(&by.keys).map(one).collect()
    };
    Ok(match bound {
        PartitionBound::Default => Held::Default,
        PartitionBound::Range { from, to } => Held::Range(row(from)?, row(to)?),
        PartitionBound::Hash { modulus, remainder } => Held::Hash(*modulus, *remainder),
        PartitionBound::List(values) => {
            let some = values.iter().flatten();
            let key = by.keys.first();
            let decoded = some
                .map(|text| key.map_or(Ok(Datum::Null), |key| decode(key, text)))
                .collect::<Result<_>>()?;
            Held::List(decoded, values.iter().any(Option::is_none))
        }
    })
}

/// Compares two bounds.
pub fn compare_edges(a: &[Edge<Datum>], b: &[Edge<Datum>]) -> Ordering {
    for (x, y) in a.iter().zip(b) {
        let order = match (x, y) {
            (Edge::Min, Edge::Min) | (Edge::Max, Edge::Max) => return Ordering::Equal,
            (Edge::Min, _) | (_, Edge::Max) => Ordering::Less,
            (_, Edge::Min) | (Edge::Max, _) => Ordering::Greater,
            (Edge::Value(x), Edge::Value(y)) => types::io::compare(x, y),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

/// Compares a bound with the first values of a key (made by [`sort_key`]); Equal when all of these agree.
pub fn compare_to_key(edges: &[Edge<Datum>], key: &[Datum]) -> Ordering {
    for (edge, value) in edges.iter().zip(key) {
        let order = match edge {
            Edge::Min => Ordering::Less,
            Edge::Max => Ordering::Greater,
            Edge::Value(x) => types::io::compare(x, value),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

impl Bounds {
    fn new(by: &Partitioning, mut all: Vec<(Held, Arc<Table>)>) -> Bounds {
        let class = |held: &Held| match held {
            Held::Default => 2,
            Held::List(values, true) if values.is_empty() => 1,
            _ => 0,
        };
        for (held, _) in &mut all {
            if let Held::List(values, _) = held {
                values.sort_by(types::io::compare);
            }
        }
        all.sort_by(|(a, _), (b, _)| {
            class(a).cmp(&class(b)).then_with(|| match (a, b) {
                (Held::Range(x, _), Held::Range(y, _)) => compare_edges(x, y),
                (Held::List(x, _), Held::List(y, _)) => match (x.first(), y.first()) {
                    (Some(x), Some(y)) => types::io::compare(x, y),
                    _ => Ordering::Equal,
                },
                (Held::Hash(m, r), Held::Hash(n, s)) => (m, r).cmp(&(n, s)),
                _ => Ordering::Equal,
            })
        });
        let default = all.iter().position(|(held, _)| matches!(held, Held::Default));
        let null = all.iter().position(|(held, _)| matches!(held, Held::List(_, true)));
        let parts: Vec<Arc<Table>> = all.iter().map(|(_, table)| table.clone()).collect();
        let nested = (0..parts.len()).filter(|at| parts[*at].is_partitioned()).collect();
        let index = match by.strategy {
            Strategy::Range => Index::Range(
                all.into_iter()
                    .filter_map(|(held, _)| match held {
                        Held::Range(from, to) => Some((from, to)),
                        _ => None,
                    })
                    .collect(),
            ),
            Strategy::List => {
                let mut values: Vec<(Datum, usize)> = Vec::new();
                for (at, (held, _)) in all.into_iter().enumerate() {
                    if let Held::List(list, _) = held {
                        values.extend(list.into_iter().map(|value| (value, at)));
                    }
                }
                values.sort_by(|a, b| types::io::compare(&a.0, &b.0));
                Index::List(values)
            }
            Strategy::Hash => Index::Hash(remainders(&all)),
        };
        Bounds { parts, default, nested, null, index }
    }

    /// The place of the partition that holds a row with this key; None: there is none.
    pub fn find(&self, by: &Partitioning, key: &[Datum]) -> Option<usize> {
        self.find_near(by, key, 0)
    }

    /// The same; the place `near` is compared first, since successive rows often belong to one partition.
    pub fn find_near(&self, by: &Partitioning, key: &[Datum], near: usize) -> Option<usize> {
        let found = match &self.index {
            Index::Range(_) if key.iter().any(Datum::is_null) => None,
            Index::Range(ranges) => {
                let made: Vec<Datum>;
                let key = if by.keys.iter().all(|k| k.slot.is_none()) {
                    key
                } else {
                    made = by.keys.iter().zip(key).map(|(k, value)| sort_key(k, value)).collect();
                    &made
                };
                let starts_by = |(from, _): &(EdgeRow, EdgeRow)| compare_to_key(from, key).is_le();
                let ends_after = |(_, to): &(EdgeRow, EdgeRow)| compare_to_key(to, key).is_gt();
                if ranges.get(near).is_some_and(|range| starts_by(range) && ends_after(range)) {
                    return Some(near);
                }
                let at = ranges.partition_point(starts_by).checked_sub(1);
                at.filter(|at| ends_after(&ranges[*at]))
            }
            Index::List(_) if key[0].is_null() => self.null,
            Index::List(values) => {
                let key = sort_key(&by.keys[0], &key[0]);
                let at = values.binary_search_by(|(v, _)| types::io::compare(v, &key));
                at.ok().map(|at| values[at].1)
            }
            Index::Hash(slots) => match slots.len() as u64 {
                0 => None,
                n => slots[(hash_of(by, key) % n) as usize],
            },
        };
        found.or(self.default)
    }

    /// The place of the partition with a hash of [`hash_with`].
    pub fn place_of_hash(&self, hash: u64) -> Option<usize> {
        match &self.index {
            Index::Hash(slots) => {
                slots.get((hash % slots.len().max(1) as u64) as usize).copied()?
            }
            _ => None,
        }
    }

    /// The places of ranges that may hold keys whose first values lie between these (included or not).
    /// Second: whether keys between them may lie in no range.
    pub fn range_places(
        &self,
        lower: Option<(&[Datum], bool)>,
        upper: Option<(&[Datum], bool)>,
    ) -> (Range<usize>, bool) {
        let Index::Range(ranges) = &self.index else { return (0..self.parts.len(), true) };
        let begin = match lower {
            None => 0,
            Some((key, included)) => ranges.partition_point(|(_, to)| {
                let order = compare_to_key(to, key);
                // With all columns given the upper bound itself is not held.
                order.is_lt() || (order.is_eq() && (key.len() == to.len() || !included))
            }),
        };
        let end = match upper {
            None => ranges.len(),
            Some((key, included)) => ranges.partition_point(|(from, _)| {
                let order = compare_to_key(from, key);
                order.is_lt() || (order.is_eq() && (included || key.len() < from.len()))
            }),
        };
        let end = end.max(begin);
        let part = &ranges[begin..end];
        let covers_begin = part.first().is_some_and(|(from, _)| match lower {
            Some((key, _)) => compare_to_key(from, key).is_le() && key.len() == from.len(),
            None => from.first() == Some(&Edge::Min),
        });
        let covers_end = part.last().is_some_and(|(_, to)| match upper {
            Some((key, included)) => {
                let order = compare_to_key(to, key);
                key.len() == to.len() && (order.is_gt() || (order.is_eq() && !included))
            }
            None => to.first() == Some(&Edge::Max),
        });
        let whole = covers_begin
            && covers_end
            && part.windows(2).all(|pair| compare_edges(&pair[0].1, &pair[1].0).is_eq());
        (begin..end, !whole)
    }

    /// A list's values in order with the places of their partitions.
    pub fn list_values(&self) -> &[(Datum, usize)] {
        match &self.index {
            Index::List(values) => values,
            _ => &[],
        }
    }

    /// The ranges in order: `parts[n]` holds the `n`th.
    pub fn ranges(&self) -> &[(EdgeRow, EdgeRow)] {
        match &self.index {
            Index::Range(ranges) => ranges,
            _ => &[],
        }
    }

    /// Which remainders of the greatest modulus are held, by which partition.
    pub fn remainders(&self) -> &[Option<usize>] {
        match &self.index {
            Index::Hash(slots) => slots,
            _ => &[],
        }
    }
}

fn remainders(all: &[(Held, Arc<Table>)]) -> Vec<Option<usize>> {
    let moduli = all.iter().filter_map(|(held, _)| match held {
        Held::Hash(modulus, _) => Some(*modulus),
        _ => None,
    });
    let most = moduli.max().unwrap_or(0) as usize;
    let mut slots = vec![None; most];
    for (at, (held, _)) in all.iter().enumerate() {
        if let Held::Hash(modulus, remainder) = held {
            let step = (*modulus).max(1) as usize;
            (*remainder as usize..most).step_by(step).for_each(|slot| slots[slot] = Some(at));
        }
    }
    slots
}

/// The hash of a key by which partitions BY HASH are chosen.
pub fn hash_of(by: &Partitioning, key: &[Datum]) -> u64 {
    let values: Vec<Datum> = by.keys.iter().zip(key).map(|(k, v)| sort_key(k, v)).collect();
    types::partition_hash(&values)
}

/// The same when users' functions have hashed some of the key's values.
pub fn hash_with(by: &Partitioning, key: &[Datum], hashed: &[Option<u64>]) -> u64 {
    let parts = by.keys.iter().zip(key).zip(hashed).filter(|((_, value), _)| !value.is_null());
    parts.fold(0, |sum, ((key, value), hash)| {
        let hash = hash.unwrap_or_else(|| types::partition_hash_of(&sort_key(key, value)));
        types::add_partition_hash(sum, hash)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by() -> Partitioning {
        let key = PartitionKey {
            column: 1,
            ty: types::oids::INT4.0,
            typmod: -1,
            ..PartitionKey::default()
        };
        Partitioning { strategy: Strategy::Range, keys: vec![key], ..Partitioning::default() }
    }

    fn range(oid: Id, from: i32, to: i32) -> Arc<Table> {
        let edge = |n: i32| vec![Edge::Value(n.to_string())];
        let bound = PartitionBound::Range { from: edge(from), to: edge(to) };
        Arc::new(Table { oid, bound: Some(Box::new(bound)), ..Table::default() })
    }

    fn row(n: i32) -> EdgeRow {
        vec![Edge::Value(Datum::Int4(n))]
    }

    fn found(register: &Register, from: i32, to: i32) -> Option<Id> {
        register.range_part(&row(from), &row(to)).map(|(id, ..)| id)
    }

    #[test]
    fn a_place_that_is_looked_at_first_changes_nothing() {
        let by = by();
        let mut family = Family::default();
        // Every third ten is of nobody.
        for n in (0..30).filter(|n| n % 3 != 2) {
            family = family.with(&range(n as Id + 1, n * 10, n * 10 + 10));
        }
        let bounds = family.bounds(&by).unwrap();
        for n in -5..310 {
            let key = [Datum::Int4(n)];
            let ten = n.div_euclid(10);
            let expected = ((0..30).contains(&ten) && ten % 3 != 2).then(|| ten as Id + 1);
            for near in 0..25 {
                let at = bounds.find_near(&by, &key, near);
                assert_eq!(at.map(|at| bounds.parts[at].oid), expected, "{n}, {near} first");
            }
        }
    }

    #[test]
    fn the_register_follows_from_version_to_version() {
        let by = by();
        let mut family = Family::default();
        for n in 0..100 {
            family = family.with(&range(n as Id + 1, n * 10, n * 10 + 10));
            let register = family.register(&by).unwrap();
            assert_eq!(found(&register, n * 10, n * 10 + 1), Some(n as Id + 1));
            assert_eq!(found(&register, n * 10 + 10, n * 10 + 11), None);
        }
        let family = family.without(50).with(&range(60, 2000, 2010));
        let register = family.register(&by).unwrap();
        assert_eq!(found(&register, 490, 500), None);
        assert_eq!(found(&register, 590, 600), None);
        assert_eq!(found(&register, 595, 2001), Some(61));
        assert_eq!(found(&register, 2009, 3000), Some(60));
        assert_eq!(family.bounds(&by).unwrap().parts.len(), 99);
    }
}

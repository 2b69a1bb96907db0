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
use imbl::OrdMap;
use types::{Datum, FormatContext};

use crate::object::{Edge, Id, PartitionBound, PartitionKey, Partitioning, Strategy, Table};

/// A table's partitions.
#[derive(Clone, Default)]
pub struct Family {
    members: OrdMap<Id, Arc<Table>>,
    bounds: OnceLock<Arc<Bounds>>,
}

impl Family {
    /// With a partition more, or a new version of one.
    pub(crate) fn with(&self, member: &Arc<Table>) -> Family {
        let mut members = self.members.clone();
        members.insert(member.oid, member.clone());
        Family { members, bounds: OnceLock::new() }
    }

    /// With one less.
    pub(crate) fn without(&self, id: Id) -> Family {
        let mut members = self.members.clone();
        members.remove(&id);
        Family { members, bounds: OnceLock::new() }
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
        let members = self.members.values().cloned().collect();
        let made = Arc::new(Bounds::new(by, members)?);
        Ok(self.bounds.get_or_init(|| made))
    }
}

/// A bound's values, decoded.
pub type EdgeRow = Vec<Edge<Datum>>;

/// What a partition holds.
#[derive(Clone, Debug)]
pub enum Held {
    /// What no other partition holds.
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

/// What a partition's bound says, decoded, with values as [`sort_key`] makes them.
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
    fn new(by: &Partitioning, members: Vec<Arc<Table>>) -> Result<Bounds> {
        let mut all = Vec::with_capacity(members.len());
        for table in members {
            let Some(bound) = &table.bound else { continue };
            all.push((held(by, bound)?, table));
        }
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
        Ok(Bounds { parts, default, nested, null, index })
    }

    /// The place of the partition that holds a row with this key; None: there is none.
    pub fn find(&self, by: &Partitioning, key: &[Datum]) -> Option<usize> {
        let found = match &self.index {
            Index::Range(_) if key.iter().any(Datum::is_null) => None,
            Index::Range(ranges) => {
                let key: Vec<Datum> =
                    by.keys.iter().zip(key).map(|(k, value)| sort_key(k, value)).collect();
                let after = ranges.partition_point(|(from, _)| compare_to_key(from, &key).is_le());
                let at = after.checked_sub(1);
                at.filter(|at| compare_to_key(&ranges[*at].1, &key).is_gt())
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

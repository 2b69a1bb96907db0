//! Which partitions a condition leaves over.
//!
//! The planner makes a [`Prune`] of the conditions on a table, whose values are expressions without columns of
//! it. Its values become known when the statement is planned (constants), when it starts (parameters), or while
//! it runs (slots that a join fills); then [`leaves`] finds the partitions by binary search or hash, level by
//! level. What is not known, or not understood, leaves all of them.

use std::ops::Range;
use std::sync::Arc;

use base::{Oid, Result};
use catalog::object::Strategy;
use catalog::partition::{Bounds, sort_key};
use catalog::{PartitionKey, Partitioning, Snapshot, Table};
use types::cross::{self, Place};
use types::{Datum, FormatContext, oids};

use crate::expr::Expr;

/// A condition on partition keys.
#[derive(Clone)]
pub enum Prune {
    /// Says nothing.
    All,
    /// Never holds.
    Never,
    /// All of them.
    And(Vec<Prune>),
    /// Any of them.
    Or(Vec<Prune>),
    /// One key.
    Test(PruneKey, Test<Expr>),
}

/// What is tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PruneKey {
    /// A column, by the number that it has in the table that the statement names.
    Column(u16),
    /// That table's key with this number (from 0), an expression.
    Expression(u16),
}

/// A test of a key; `V` is an expression, or its value.
#[derive(Clone)]
pub enum Test<V> {
    /// Equal.
    Equal(V),
    /// Not equal.
    NotEqual(V),
    /// Above the value, or (true) at it.
    Lower(V, bool),
    /// Below the value, or (true) at it.
    Upper(V, bool),
    /// Equal to an element of the array.
    Any(V),
    /// NULL.
    Null,
    /// Not NULL.
    NotNull,
}

/// A condition whose values are known.
enum Known {
    All,
    Never,
    And(Vec<Known>),
    Or(Vec<Known>),
    Test(PruneKey, Test<Datum>),
}

impl Prune {
    /// Whether it says nothing.
    pub fn is_all(&self) -> bool {
        matches!(self, Prune::All)
    }

    /// Calls `f` with each value.
    pub fn for_exprs<'p>(&'p self, f: &mut dyn FnMut(&'p Expr)) {
        match self {
            Prune::All | Prune::Never => {}
            Prune::And(list) | Prune::Or(list) => list.iter().for_each(|p| p.for_exprs(f)),
            Prune::Test(_, test) => match test {
                Test::Equal(e)
                | Test::NotEqual(e)
                | Test::Lower(e, _)
                | Test::Upper(e, _)
                | Test::Any(e) => f(e),
                Test::Null | Test::NotNull => {}
            },
        }
    }

    /// The same with other values.
    ///
    /// # Errors
    /// The function's.
    pub fn map(self, f: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<Prune> {
        let all = |list: Vec<Prune>, f: &mut dyn FnMut(Expr) -> Result<Expr>| {
            list.into_iter().map(|p| p.map(f)).collect::<Result<Vec<_>>>()
        };
        Ok(match self {
            Prune::And(list) => Prune::And(all(list, f)?),
            Prune::Or(list) => Prune::Or(all(list, f)?),
            Prune::Test(key, test) => Prune::Test(
                key,
                match test {
                    Test::Equal(e) => Test::Equal(f(e)?),
                    Test::NotEqual(e) => Test::NotEqual(f(e)?),
                    Test::Lower(e, i) => Test::Lower(f(e)?, i),
                    Test::Upper(e, i) => Test::Upper(f(e)?, i),
                    Test::Any(e) => Test::Any(f(e)?),
                    other => other,
                },
            ),
            other => other,
        })
    }

    /// With values for a table's keys; `value` says None where one is not known yet.
    fn known(
        &self,
        table: &Table,
        format: &FormatContext,
        value: &mut dyn FnMut(&Expr) -> Result<Option<Datum>>,
    ) -> Result<Known> {
        sched::check_stack()?;
        Ok(match self {
            Prune::All => Known::All,
            Prune::Never => Known::Never,
            Prune::And(list) => {
                let known = list.iter().map(|p| p.known(table, format, value));
                Known::And(known.collect::<Result<_>>()?)
            }
            Prune::Or(list) => {
                let known = list.iter().map(|p| p.known(table, format, value));
                Known::Or(known.collect::<Result<_>>()?)
            }
            Prune::Test(key, test) => {
                let mut of = |e: &Expr, make: &dyn Fn(Datum) -> Test<Datum>| {
                    Ok::<_, base::Error>(match value(e)? {
                        None => Known::All,
                        // Comparisons with NULL hold for no row.
                        Some(Datum::Null) => Known::Never,
                        Some(datum) => placed(table, *key, datum, make, format)?,
                    })
                };
                match test {
                    Test::Equal(e) => of(e, &Test::Equal)?,
                    Test::NotEqual(e) => of(e, &Test::NotEqual)?,
                    Test::Lower(e, i) => of(e, &|d| Test::Lower(d, *i))?,
                    Test::Upper(e, i) => of(e, &|d| Test::Upper(d, *i))?,
                    Test::Any(e) => of(e, &Test::Any)?,
                    Test::Null => Known::Test(*key, Test::Null),
                    Test::NotNull => Known::Test(*key, Test::NotNull),
                }
            }
        })
    }
}

/// A test by a value that may be of another type of the key's family: by its place among the key's own.
fn placed(
    table: &Table,
    key: PruneKey,
    value: Datum,
    test: &dyn Fn(Datum) -> Test<Datum>,
    format: &FormatContext,
) -> Result<Known> {
    let ty = match key {
        PruneKey::Column(n) => table.columns.get(usize::from(n) - 1).map_or(0, |c| c.ty),
        PruneKey::Expression(_) => 0,
    };
    let (ty, _) = types::user::base_type(Oid(ty), -1);
    let same = match &value {
        Datum::Date(_) => ty == oids::DATE,
        Datum::Timestamp(_) => ty == oids::TIMESTAMP,
        Datum::Timestamptz(_) => ty == oids::TIMESTAMPTZ,
        _ => true,
    };
    if same || !matches!(ty, oids::DATE | oids::TIMESTAMP | oids::TIMESTAMPTZ) {
        return Ok(Known::Test(key, test(value)));
    }
    let one = |test| Known::Test(key, test);
    let kind = test(Datum::Null);
    Ok(match (cross::place(ty, value, format)?, kind) {
        (Place::Null, _) => Known::Never,
        (Place::At(value), _) => one(test(value)),
        (_, Test::NotEqual(_) | Test::Any(_) | Test::Null | Test::NotNull) => Known::All,
        (Place::Behind(value), Test::Lower(..)) => one(Test::Lower(value, false)),
        (Place::Behind(value), Test::Upper(..)) => one(Test::Upper(value, true)),
        (Place::Near(low, _), Test::Lower(..)) => one(Test::Lower(low, true)),
        (Place::Near(_, high), Test::Upper(..)) => one(Test::Upper(high, true)),
        (Place::Near(low, high), Test::Equal(_)) => {
            Known::And(vec![one(Test::Lower(low, true)), one(Test::Upper(high, true))])
        }
        (Place::Below, Test::Lower(..)) | (Place::Above, Test::Upper(..)) => one(Test::NotNull),
        (Place::Below | Place::Above | Place::Behind(_), _) => Known::Never,
    })
}

/// Places of partitions, ascending, and whether the default one is among them.
#[derive(Clone, Debug, PartialEq)]
struct Places {
    ranges: Vec<Range<usize>>,
    default: bool,
}

impl Places {
    fn all(bounds: &Bounds) -> Places {
        let whole = bounds.parts.len() - usize::from(bounds.default.is_some());
        Places { ranges: vec![0..whole], default: true }
    }

    fn none() -> Places {
        Places { ranges: Vec::new(), default: false }
    }

    fn of(mut places: Vec<usize>, default: bool) -> Places {
        places.sort_unstable();
        places.dedup();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for at in places {
            match ranges.last_mut() {
                Some(last) if last.end == at => last.end = at + 1,
                _ => ranges.push(at..at + 1),
            }
        }
        Places { ranges, default }
    }

    fn and(&self, other: &Places) -> Places {
        let (mut a, mut b) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        let mut ranges = Vec::new();
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            let both = x.start.max(y.start)..x.end.min(y.end);
            if !both.is_empty() {
                ranges.push(both);
            }
            if x.end < y.end {
                a.next();
            } else {
                b.next();
            }
        }
        Places { ranges, default: self.default && other.default }
    }

    fn or(&self, other: &Places) -> Places {
        let mut all: Vec<Range<usize>> = self.ranges.iter().chain(&other.ranges).cloned().collect();
        all.sort_by_key(|r| r.start);
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for range in all {
            match ranges.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => ranges.push(range),
            }
        }
        Places { ranges, default: self.default || other.default }
    }
}

/// A level of the hierarchy.
struct Level<'l> {
    by: &'l Partitioning,
    bounds: &'l Bounds,
    /// What each key is called in conditions.
    keys: Vec<Option<PruneKey>>,
}

/// The tests of one conjunction about one key.
#[derive(Default)]
struct OfKey<'k> {
    equal: Option<&'k Datum>,
    lower: Option<(&'k Datum, bool)>,
    upper: Option<(&'k Datum, bool)>,
    any: Option<Vec<Datum>>,
    different: Vec<&'k Datum>,
    null: bool,
    not_null: bool,
}

impl Level<'_> {
    fn places(&self, known: &Known) -> Places {
        match known {
            Known::All => Places::all(self.bounds),
            Known::Never => Places::none(),
            Known::Or(list) => list
                .iter()
                .map(|k| self.places(k))
                .reduce(|a, b| a.or(&b))
                .unwrap_or_else(Places::none),
            Known::And(_) | Known::Test(..) => {
                let (mut tests, mut others) = (Vec::new(), Vec::new());
                flatten(known, &mut tests, &mut others);
                let mut places = self.conjunction(&tests);
                for other in others {
                    places = places.and(&self.places(other));
                }
                places
            }
        }
    }

    fn conjunction(&self, tests: &[(PruneKey, &Test<Datum>)]) -> Places {
        let of_key = |key: &Option<PruneKey>| {
            let mut found = OfKey::default();
            for (about, test) in tests {
                if key.is_some_and(|k| k == *about) {
                    found.add(test);
                }
            }
            found
        };
        let keys: Vec<OfKey<'_>> = self.keys.iter().map(of_key).collect();
        match self.by.strategy {
            Strategy::Range => self.of_range(&keys),
            Strategy::List => self.of_list(&keys[0]),
            Strategy::Hash => self.of_hash(&keys),
        }
    }

    fn key(&self, at: usize, value: &Datum) -> Datum {
        sort_key(&self.by.keys[at], value)
    }

    fn of_range(&self, keys: &[OfKey<'_>]) -> Places {
        if keys.iter().any(|k| k.null) {
            return Places { ranges: Vec::new(), default: true };
        }
        let mut prefix: Vec<Datum> = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            if let Some(value) = key.equal {
                prefix.push(self.key(at, value));
                continue;
            }
            if let Some(values) = &key.any {
                let one = |value: &Datum| {
                    let mut whole = prefix.clone();
                    whole.push(self.key(at, value));
                    self.between(Some((&whole, true)), Some((&whole, true)))
                };
                return values.iter().map(one).reduce(|a, b| a.or(&b)).unwrap_or_else(Places::none);
            }
            let bound = |edge: Option<(&Datum, bool)>| match edge {
                Some((value, included)) => {
                    let mut whole = prefix.clone();
                    whole.push(self.key(at, value));
                    Some((whole, included))
                }
                None => (!prefix.is_empty()).then(|| (prefix.clone(), true)),
            };
            let (lower, upper) = (bound(key.lower), bound(key.upper));
            let (lower, upper) = (
                lower.as_ref().map(|(row, included)| (&row[..], *included)),
                upper.as_ref().map(|(row, included)| (&row[..], *included)),
            );
            if lower.is_none() && upper.is_none() {
                return Places::all(self.bounds);
            }
            return self.between(lower, upper);
        }
        self.between(Some((&prefix, true)), Some((&prefix, true)))
    }

    fn between(&self, lower: Option<(&[Datum], bool)>, upper: Option<(&[Datum], bool)>) -> Places {
        let (range, gaps) = self.bounds.range_places(lower, upper);
        Places { ranges: if range.is_empty() { Vec::new() } else { vec![range] }, default: gaps }
    }

    fn of_list(&self, key: &OfKey<'_>) -> Places {
        let values = self.bounds.list_values();

        if key.null {
            if key.is_strict() {
                return Places::none();
            }
            return match self.bounds.null {
                Some(at) => Places::of(vec![at], false),
                None => Places { ranges: Vec::new(), default: true },
            };
        }
        let find = |value: &Datum| {
            let value = self.key(0, value);
            values
                .binary_search_by(|(other, _)| types::io::compare(other, &value))
                .ok()
                .map(|at| values[at].1)
        };
        let mut places = match (&key.equal, &key.any) {
            (Some(value), _) => match find(value) {
                Some(at) => Places::of(vec![at], false),
                None => Places { ranges: Vec::new(), default: true },
            },
            (None, Some(list)) => {
                let found: Vec<Option<usize>> = list.iter().map(find).collect();
                let default = found.iter().any(Option::is_none);
                Places::of(found.into_iter().flatten().collect(), default)
            }
            (None, None) if key.lower.is_some() || key.upper.is_some() => {
                let begin = key.lower.map_or(0, |(value, included)| {
                    let value = self.key(0, value);
                    values.partition_point(|(v, _)| {
                        let order = types::io::compare(v, &value);
                        order.is_lt() || (order.is_eq() && !included)
                    })
                });
                let end = key.upper.map_or(values.len(), |(value, included)| {
                    let value = self.key(0, value);
                    values.partition_point(|(v, _)| {
                        let order = types::io::compare(v, &value);
                        order.is_lt() || (order.is_eq() && included)
                    })
                });
                let found = values[begin..end.max(begin)].iter().map(|(_, at)| *at).collect();
                Places::of(found, true)
            }
            (None, None) => Places::all(self.bounds),
        };
        if (key.not_null || !key.different.is_empty())
            && let Some(null) = self.bounds.null
            && !values.iter().any(|(_, at)| *at == null)
        {
            places = places.and(&self.without(null));
        }
        if !key.different.is_empty() {
            // A partition goes whose values are all among those that are excluded.
            let excluded: Vec<Datum> = key.different.iter().map(|v| self.key(0, v)).collect();
            let is_out = |v: &Datum| excluded.iter().any(|e| types::io::compare(e, v).is_eq());
            let mut touched: Vec<usize> =
                values.iter().filter(|(v, _)| is_out(v)).map(|(_, at)| *at).collect();
            touched.dedup();
            for at in touched {
                if values.iter().filter(|(_, a)| *a == at).all(|(v, _)| is_out(v)) {
                    places = places.and(&self.without(at));
                }
            }
        }
        places
    }

    fn without(&self, at: usize) -> Places {
        let mut all = Places::all(self.bounds);
        let end = all.ranges[0].end;
        all.ranges = [0..at, at + 1..end].into_iter().filter(|r| !r.is_empty()).collect();
        all
    }

    fn of_hash(&self, keys: &[OfKey<'_>]) -> Places {
        // What users' functions make of values is not known here.
        if self.by.keys.iter().any(|key| key.hash_function != 0) {
            return Places::all(self.bounds);
        }
        let slots = self.bounds.remainders();
        let mut rows: Vec<Vec<Datum>> = vec![Vec::new()];
        for (key, of) in self.by.keys.iter().zip(keys) {
            let values: Vec<Datum> = match (of.equal, &of.any, of.null) {
                (Some(value), ..) => vec![value.clone()],
                (None, Some(values), _) if values.len() * rows.len() <= 1024 => values.clone(),
                (None, None, true) => vec![Datum::Null],
                _ => return Places::all(self.bounds),
            };
            let Some(values) =
                values.into_iter().map(|v| as_key(key, v)).collect::<Option<Vec<_>>>()
            else {
                return Places::all(self.bounds);
            };
            let with = |row: &Vec<Datum>, value: &Datum| {
                let mut row = row.clone();
                row.push(value.clone());
                row
            };
            rows = rows.iter().flat_map(|row| values.iter().map(move |v| with(row, v))).collect();
        }
        let place = |row: &Vec<Datum>| match slots.len() as u64 {
            0 => None,
            n => slots[(catalog::partition::hash_of(self.by, row) % n) as usize],
        };
        Places::of(rows.iter().filter_map(place).collect(), false)
    }
}

impl<'k> OfKey<'k> {
    fn add(&mut self, test: &'k Test<Datum>) {
        let tighter = |old: Option<(&'k Datum, bool)>, new: (&'k Datum, bool), up: bool| match old {
            None => Some(new),
            Some(old) => {
                let order = types::io::compare(new.0, old.0);
                let wins = match order {
                    std::cmp::Ordering::Equal => !new.1,
                    order => order.is_gt() == up,
                };
                Some(if wins { new } else { old })
            }
        };
        match test {
            Test::Equal(value) => self.equal = Some(value),
            Test::NotEqual(value) => self.different.push(value),
            Test::Lower(value, i) => self.lower = tighter(self.lower, (value, *i), true),
            Test::Upper(value, i) => self.upper = tighter(self.upper, (value, *i), false),
            Test::Any(Datum::Array(array)) => {
                let values = array.items.iter().filter(|v| !v.is_null()).cloned().collect();
                self.any.get_or_insert(values);
            }
            Test::Any(_) => {}
            Test::Null => self.null = true,
            Test::NotNull => self.not_null = true,
        }
    }

    /// Whether NULL fails a test.
    fn is_strict(&self) -> bool {
        self.not_null
            || self.equal.is_some()
            || self.lower.is_some()
            || self.upper.is_some()
            || self.any.is_some()
            || !self.different.is_empty()
    }
}

/// A value as one of the key's type; None: it is of another one.
fn as_key(key: &PartitionKey, value: Datum) -> Option<Datum> {
    let wide = match value {
        Datum::Int2(n) => Some(i64::from(n)),
        Datum::Int4(n) => Some(i64::from(n)),
        Datum::Int8(n) => Some(n),
        _ => None,
    };
    match (Oid(key.ty), wide) {
        // A value that the type can't have has no partition: any will do.
        (oids::INT2, Some(n)) => Some(Datum::Int2(i16::try_from(n).ok()?)),
        (oids::INT4, Some(n)) => Some(Datum::Int4(i32::try_from(n).ok()?)),
        (oids::INT8, Some(n)) => Some(Datum::Int8(n)),
        (_, Some(_)) => None,
        (oids::NUMERIC, None) if !matches!(value, Datum::Numeric(_) | Datum::Null) => None,
        (oids::TIMESTAMP, None) if !matches!(value, Datum::Timestamp(_) | Datum::Null) => None,
        (oids::TIMESTAMPTZ, None) if !matches!(value, Datum::Timestamptz(_) | Datum::Null) => None,
        (oids::DATE, None) if !matches!(value, Datum::Date(_) | Datum::Null) => None,
        (oids::FLOAT8, None) if !matches!(value, Datum::Float8(_) | Datum::Null) => None,
        (oids::FLOAT4, None) if !matches!(value, Datum::Float4(_) | Datum::Null) => None,
        _ => Some(value),
    }
}

fn flatten<'k>(
    known: &'k Known,
    tests: &mut Vec<(PruneKey, &'k Test<Datum>)>,
    others: &mut Vec<&'k Known>,
) {
    match known {
        Known::And(list) => list.iter().for_each(|k| flatten(k, tests, others)),
        Known::Test(key, test) => tests.push((*key, test)),
        Known::All => {}
        other => others.push(other),
    }
}

/// A partition that has rows, with the numbers that the columns of the table at the top have in it; None: the
/// same as there.
#[derive(Clone)]
pub struct LeafPart {
    /// The partition.
    pub table: Arc<Table>,
}

/// The partitions with rows of a table that a condition leaves over, in the order of their bounds.
///
/// # Errors
/// Those of the values, and of bounds that can't be read.
pub fn leaves(
    view: &Snapshot,
    table: &Table,
    prune: &Prune,
    format: &FormatContext,
    value: &mut dyn FnMut(&Expr) -> Result<Option<Datum>>,
) -> Result<Vec<Arc<Table>>> {
    let known = prune.known(table, format, value)?;
    let mut out = Vec::new();
    collect(view, table, table, &known, &mut out)?;
    Ok(out)
}

/// How many [`leaves`] would list, without a look at each.
///
/// # Errors
/// As those of `leaves`.
pub fn leaf_count(
    view: &Snapshot,
    table: &Table,
    prune: &Prune,
    format: &FormatContext,
    value: &mut dyn FnMut(&Expr) -> Result<Option<Datum>>,
) -> Result<usize> {
    let known = prune.known(table, format, value)?;
    count(view, table, table, &known)
}

fn count(view: &Snapshot, root: &Table, table: &Table, known: &Known) -> Result<usize> {
    sched::check_stack()?;
    let (Some(by), Some(family)) = (&table.partitioning, view.family(table.oid)) else {
        return Ok(0);
    };
    let bounds = family.bounds(by)?;
    let level = Level { by, bounds, keys: names(root, table, by) };
    let places = level.places(known);
    let default = bounds.default.filter(|_| places.default);
    let is_left = |at: &usize| default == Some(*at) || places.ranges.iter().any(|r| r.contains(at));
    let direct: usize = places.ranges.iter().map(Range::len).sum();
    let mut found = direct + usize::from(default.is_some());
    for at in bounds.nested.iter().copied().filter(is_left) {
        found = found - 1 + count(view, root, &bounds.parts[at], known)?;
    }
    Ok(found)
}

fn collect(
    view: &Snapshot,
    root: &Table,
    table: &Table,
    known: &Known,
    out: &mut Vec<Arc<Table>>,
) -> Result<()> {
    sched::check_stack()?;
    let (Some(by), Some(family)) = (&table.partitioning, view.family(table.oid)) else {
        return Ok(());
    };
    let bounds = family.bounds(by)?;
    let level = Level { by, bounds, keys: names(root, table, by) };
    let places = level.places(known);
    let all = places.ranges.into_iter().flatten();
    let default = bounds.default.filter(|_| places.default);
    for at in all.chain(default) {
        let part = &bounds.parts[at];
        match part.is_partitioned() {
            true => collect(view, root, part, known, out)?,
            false => out.push(part.clone()),
        }
    }
    Ok(())
}

/// What the keys of a table are called in conditions on the one at the top.
fn names(root: &Table, table: &Table, by: &Partitioning) -> Vec<Option<PruneKey>> {
    let top = root.oid == table.oid;
    let name = |(at, key): (usize, &PartitionKey)| match key.column {
        0 => top.then_some(PruneKey::Expression(at as u16)),
        n if top => Some(PruneKey::Column(n)),
        n => {
            let column = table.columns.get(usize::from(n) - 1)?;
            root.column(&column.name).map(|(n, _)| PruneKey::Column(n))
        }
    };
    by.keys.iter().enumerate().map(name).collect()
}

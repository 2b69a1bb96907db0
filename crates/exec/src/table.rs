//! A table as the operators use it: codec, heap, scan columns.

use std::sync::Arc;

use access::Heap;
use access::gin::{self, Category};
use access::heap::{InsertHint, SystemColumns};
use base::{AccessMethod, Oid, RelId, Result, TupleId};
use catalog::{Index, Table};
use sql::plan::ScanColumn;
use types::gin::GinClass;
use types::gist::GistClass;
use types::row::{self, RowColumn, RowLayout};
use types::{Batch, Datum, FormatContext};

use crate::context::Engine;
use crate::covering::TreeKeys;
use crate::neighbors::VectorKeys;
use crate::ops::grouping::same_value;
use crate::overflow::Overflow;
use crate::signatures::Signatures;
use crate::summaries::Summaries;

/// An open table.
pub struct TableHandle {
    /// The definition.
    pub table: Arc<Table>,
    /// Its columns as the row codec needs them.
    pub columns: RowLayout,
    /// Its rows.
    pub heap: Heap,
}

impl TableHandle {
    /// Names the files and reads the missing values; no I/O.
    ///
    /// # Errors
    /// When a column's missing value can't be read.
    pub fn open(
        engine: &Engine,
        table: &Arc<Table>,
        format: &FormatContext,
    ) -> Result<TableHandle> {
        let mut columns = RowLayout::new(row_columns(table, format)?);
        if columns.has_varying() {
            let overflow = Overflow::new(&engine.storage, RelId(table.rel));
            columns = columns.with_outside(Arc::new(overflow));
        }
        let heap = Heap::open(&engine.storage, RelId(table.rel));
        Ok(TableHandle { table: table.clone(), columns, heap })
    }

    /// All columns of a row (dropped ones as NULL).
    ///
    /// # Errors
    /// When the bytes are no row.
    pub fn decode_all(&self, bytes: &[u8]) -> Result<Vec<Datum>> {
        let wanted: Vec<u16> = self.table.live_columns().map(|(n, _)| n - 1).collect();
        let mut values = Vec::with_capacity(wanted.len());
        row::decode(&self.columns, bytes, &wanted, &mut values)?;
        let mut out = vec![Datum::Null; self.table.columns.len()];
        for (n, value) in wanted.iter().zip(values) {
            out[usize::from(*n)] = value;
        }
        Ok(out)
    }
}

/// A table's columns as the row codec needs them.
///
/// # Errors
/// When a missing value can't be read.
pub fn row_columns(table: &Table, format: &FormatContext) -> Result<Vec<RowColumn>> {
    let column = |c: &catalog::Column| {
        let missing = match &c.missing {
            Some(text) => types::io::input(Oid(c.ty), -1, text, format)?,
            None => Datum::Null,
        };
        Ok(RowColumn { ty: Oid(c.ty), missing })
    };
    table.columns.iter().map(column).collect()
}

/// Where a scan's output columns come from.
pub struct Projection {
    /// Row columns to decode, from 0, ascending.
    pub wanted: Vec<u16>,
    /// The row columns stand together in ascending order, after this many others (and before the
    /// rest of them): then rows are decoded straight into place.
    straight: Option<usize>,
    places: Vec<Place>,
    table: u32,
    /// Whether a row's transaction ids are asked for.
    pub system: bool,
}

#[derive(Clone, Copy)]
enum Place {
    /// Index into the decoded values.
    Decoded(usize),
    System(ScanColumn),
    /// NULL.
    Unread,
}

impl Projection {
    /// For these columns of a table.
    pub fn new(table: &Table, columns: &[ScanColumn]) -> Projection {
        Projection::without(table, columns, &[])
    }

    /// The same with NULL at these places of the columns: nobody asks for them.
    pub fn without(table: &Table, columns: &[ScanColumn], unread: &[usize]) -> Projection {
        let is_read = |n: usize| matches!(columns[n], ScanColumn::Attr(_)) && !unread.contains(&n);
        let mut wanted: Vec<u16> = columns
            .iter()
            .enumerate()
            .filter_map(|(n, c)| match c {
                ScanColumn::Attr(attr) if is_read(n) => Some(attr - 1),
                _ => None,
            })
            .collect();
        let leading = (0..columns.len()).find(|n| is_read(*n)).unwrap_or(columns.len());
        let ascending = wanted.windows(2).all(|w| w[0] < w[1])
            && (leading..columns.len()).take(wanted.len()).all(is_read);
        if !ascending {
            wanted.sort_unstable();
            wanted.dedup();
        }
        let place = |(n, c): (usize, &ScanColumn)| match c {
            _ if unread.contains(&n) => Place::Unread,
            // `wanted` has each column that is asked for, so the search finds it.
            ScanColumn::Attr(n) => {
                Place::Decoded(wanted.binary_search(&(n - 1)).unwrap_or_default())
            }
            other => Place::System(*other),
        };
        let places: Vec<Place> = columns.iter().enumerate().map(place).collect();
        let system = columns.iter().any(|c| {
            matches!(c, ScanColumn::Xmin | ScanColumn::Xmax | ScanColumn::Cmin | ScanColumn::Cmax)
        });
        Projection {
            straight: ascending.then_some(leading),
            wanted,
            places,
            table: table.oid,
            system,
        }
    }

    /// Adds a row to a batch.
    ///
    /// # Errors
    /// When the bytes are no row.
    pub fn push(
        &self,
        columns: &RowLayout,
        at: Version,
        bytes: &[u8],
        batch: &mut Batch,
    ) -> Result<()> {
        if self.places.is_empty() {
            batch.rows += 1;
            return Ok(());
        }
        if let Some(leading) = self.straight {
            let end = leading + self.wanted.len();
            row::decode_into(columns, bytes, &self.wanted, &mut batch.columns[leading..end])?;
            for (n, place) in self.places.iter().enumerate() {
                if !(leading..end).contains(&n) {
                    batch.columns[n].push(self.value(*place, at, &[]))?;
                }
            }
        } else {
            let mut values = Vec::with_capacity(self.wanted.len());
            row::decode(columns, bytes, &self.wanted, &mut values)?;
            for (place, column) in self.places.iter().zip(&mut batch.columns) {
                column.push(self.value(*place, at, &values))?;
            }
        }
        batch.rows += 1;
        Ok(())
    }

    /// Whether rows are counted only.
    pub fn reads_nothing(&self) -> bool {
        self.places.iter().all(|place| matches!(place, Place::Unread))
    }

    /// Appends a row's output values to `out`.
    ///
    /// # Errors
    /// When the bytes are no row.
    pub fn row(
        &self,
        columns: &RowLayout,
        at: Version,
        bytes: &[u8],
        out: &mut Vec<Datum>,
    ) -> Result<()> {
        if let Some(leading) = self.straight {
            let trailing = leading + self.wanted.len();
            out.extend(self.places[..leading].iter().map(|p| self.value(*p, at, &[])));
            row::decode(columns, bytes, &self.wanted, out)?;
            out.extend(self.places[trailing..].iter().map(|p| self.value(*p, at, &[])));
            return Ok(());
        }
        let mut values = Vec::with_capacity(self.wanted.len());
        row::decode(columns, bytes, &self.wanted, &mut values)?;
        out.extend(self.places.iter().map(|p| self.value(*p, at, &values)));
        Ok(())
    }

    fn value(&self, place: Place, at: Version, decoded: &[Datum]) -> Datum {
        match place {
            Place::Decoded(n) => decoded[n].clone(),
            Place::System(column) => system_value(column, self.table, at),
            Place::Unread => Datum::Null,
        }
    }
}

/// What a row of a table has beside its stored columns.
pub fn system_value(column: ScanColumn, table: u32, at: Version) -> Datum {
    match column {
        ScanColumn::Tid => Datum::Tid(at.tid),
        ScanColumn::Root => Datum::Tid(at.root),
        ScanColumn::TableOid => Datum::Oid(table),
        ScanColumn::Xmin => Datum::Oid(at.system.xmin as u32),
        ScanColumn::Xmax => Datum::Oid(at.system.xmax as u32),
        ScanColumn::Cmin => Datum::Oid(at.system.cmin),
        ScanColumn::Cmax => Datum::Oid(at.system.cmax),
        ScanColumn::Attr(_) => Datum::Null,
    }
}

/// Which version of a row.
#[derive(Clone, Copy)]
pub struct Version {
    /// The version.
    pub tid: TupleId,
    /// The root of its chain.
    pub root: TupleId,
    /// Its transaction ids, when they were asked for.
    pub system: SystemColumns,
}

impl Version {
    /// Without transaction ids.
    pub fn new(tid: TupleId, root: TupleId) -> Version {
        Version { tid, root, system: SystemColumns::default() }
    }
}

/// A key column: column from 0, type (the one below a domain), order.
pub type KeyColumn = (u16, Oid, types::key::KeyOrder);

/// A table's row in table order as key bytes of an index; `None` as the second value when a key
/// column is NULL does not happen: the flag says whether one is.
///
/// Behind the table's columns a row may have what its indexes compute
/// ([`catalog::Index::expressions`], index after index): keys that are expressions, conditions of
/// partial indexes.
pub struct KeyCodec {
    /// The key's columns.
    pub columns: Vec<KeyColumn>,
    /// Where the condition of a partial index is.
    pub condition: Option<u16>,
    /// The index's file.
    pub rel: RelId,
    /// The index's method, which says what keys look like.
    pub method: AccessMethod,
    /// Of a GIN index, the columns' classes.
    pub gin: Vec<Arc<dyn GinClass>>,
    /// Of a GiST or SP-GiST index, the columns' classes.
    pub tree: Option<Arc<TreeKeys>>,
    /// Of a BRIN index, the columns' classes.
    pub summaries: Option<Arc<Summaries>>,
    /// Of an HNSW or IVFFlat index, the column's class.
    pub vectors: Option<Arc<VectorKeys>>,
    /// Of a bloom index, its parameters.
    pub signatures: Option<Arc<Signatures>>,
}

impl KeyCodec {
    /// For an index.
    pub fn new(table: &Table, index: &Index) -> KeyCodec {
        KeyCodec::with_computed(table, index, &mut (table.columns.len() as u16))
    }

    /// For an index of a table whose rows have computed values behind them; `next` is the place of
    /// this index's first one, and then of the next index's.
    pub fn with_computed(table: &Table, index: &Index, next: &mut u16) -> KeyCodec {
        let mut computed = || {
            *next += 1;
            *next - 1
        };
        let columns: Vec<KeyColumn> = index
            .columns
            .iter()
            .map(|c| {
                let order = types::key::KeyOrder {
                    descending: c.descending,
                    nulls_first: c.nulls_first,
                    // It was opened when the index was made, and when the statement was planned.
                    collation: c.slot().unwrap_or_default(),
                };
                let (place, ty) = match &c.expression {
                    Some(e) => (computed(), e.ty),
                    None => (c.column - 1, table.columns[usize::from(c.column) - 1].ty),
                };
                (place, types::user::base_type(Oid(ty), -1).0, order)
            })
            .collect();
        let condition = index.predicate.as_ref().map(|_| computed());
        let gin = match index.method {
            AccessMethod::Gin => gin_classes(index, &columns),
            _ => Vec::new(),
        };
        let (mut tree, mut summaries) = (None, None);
        match index.method {
            AccessMethod::Gist | AccessMethod::SpGist => {
                let classes = gist_classes(index, &columns);
                tree = Some(Arc::new(TreeKeys { classes }));
            }
            AccessMethod::Brin => summaries = Some(Arc::new(Summaries::new(index, &columns))),
            _ => {}
        }
        let (mut vectors, mut signatures) = (None, None);
        match index.method {
            AccessMethod::Hnsw | AccessMethod::IvfFlat => {
                vectors = VectorKeys::new(index).map(Arc::new);
            }
            AccessMethod::Bloom => signatures = Some(Arc::new(Signatures::new(index))),
            _ => {}
        }
        let (rel, method) = (RelId(index.rel), index.method);
        KeyCodec { columns, condition, rel, method, gin, tree, summaries, vectors, signatures }
    }

    /// Whether keys are the columns' values one after the other.
    pub fn is_simple(&self) -> bool {
        matches!(self.method, AccessMethod::BTree | AccessMethod::Hash)
    }

    /// How many of the columns have a class that the house knows.
    pub fn classes(&self) -> usize {
        match (&self.tree, &self.summaries) {
            (Some(tree), _) => tree.classes.len(),
            (_, Some(summaries)) => summaries.classes.len(),
            _ if self.method.is_of_vectors() => usize::from(self.vectors.is_some()),
            _ if self.method == AccessMethod::Gin => self.gin.len(),
            _ => self.columns.len(),
        }
    }

    /// Whether the index has an entry for a row.
    pub fn holds(&self, row: &[Datum]) -> bool {
        let has_key = match self.method {
            AccessMethod::BTree
            | AccessMethod::Gin
            | AccessMethod::Gist
            | AccessMethod::SpGist
            | AccessMethod::Brin
            | AccessMethod::Bloom => true,
            AccessMethod::Hnsw | AccessMethod::IvfFlat => {
                let value = self.columns.first().map(|c| &row[usize::from(c.0)]);
                let keys = self.vectors.as_ref().zip(value);
                keys.is_some_and(|(keys, value)| keys.holds(value))
            }
            AccessMethod::Hash => !self.columns.iter().any(|c| row[usize::from(c.0)].is_null()),
        };
        has_key && self.condition.is_none_or(|n| row[usize::from(n)] == Datum::Bool(true))
    }

    /// Whether an index's entry differs between two versions of a row.
    pub fn differs(&self, old: &[Datum], new: &[Datum]) -> bool {
        match (self.holds(old), self.holds(new)) {
            (false, false) => false,
            (true, true) => !self.same(old, new),
            _ => true,
        }
    }

    /// Appends the key of a row in table order; true when a key column is NULL.
    ///
    /// # Errors
    /// For types without an order.
    pub fn encode(&self, row: &[Datum], out: &mut Vec<u8>) -> Result<bool> {
        if !self.gin.is_empty() {
            return self.encode_entries(row, out).map(|()| false);
        }
        if let Some(tree) = &self.tree {
            let values = self.columns.iter().map(|c| &row[usize::from(c.0)]);
            return tree.encode(values, out).map(|()| false);
        }
        if let Some(summaries) = &self.summaries {
            let values = self.columns.iter().map(|c| &row[usize::from(c.0)]);
            return summaries.encode(values, out).map(|()| false);
        }
        if let (Some(vectors), Some((column, ..))) = (&self.vectors, self.columns.first()) {
            return vectors.encode(&row[usize::from(*column)], out).map(|()| false);
        }
        if let Some(signatures) = &self.signatures {
            let begin = out.len();
            out.resize(begin + signatures.bytes(), 0);
            for (n, column) in self.columns.iter().enumerate() {
                let value = &row[usize::from(column.0)];
                signatures.set((n, column), value, &mut out[begin..])?;
            }
            return Ok(false);
        }
        let mut null = false;
        for (column, ty, order) in &self.columns {
            let value = &row[usize::from(*column)];
            null |= value.is_null();
            types::key::encode(*ty, value, *order, out)?;
        }
        Ok(null)
    }

    /// Appends the entries of a row in a GIN index.
    #[cold]
    fn encode_entries(&self, row: &[Datum], out: &mut Vec<u8>) -> Result<()> {
        let mut keys = Vec::new();
        for (n, ((place, ..), class)) in self.columns.iter().zip(&self.gin).enumerate() {
            let mut put = |category, key: &[u8]| {
                gin::put_entry(out, &gin::entry(n as u8, category, key));
            };
            let value = &row[usize::from(*place)];
            if value.is_null() {
                put(Category::NullValue, &[]);
                continue;
            }
            keys.clear();
            class.value_keys(value, &mut keys)?;
            keys.sort_unstable();
            keys.dedup();
            if keys.is_empty() {
                put(Category::Empty, &[]);
            }
            for key in &keys {
                match key {
                    Some(key) => put(Category::Key, key),
                    None => put(Category::NullKey, &[]),
                }
            }
        }
        Ok(())
    }

    /// Whether two rows in table order have the same key.
    pub fn same(&self, a: &[Datum], b: &[Datum]) -> bool {
        self.columns.iter().all(|(n, _, _)| same_value(&a[usize::from(*n)], &b[usize::from(*n)]))
    }
}

/// The classes of a GIN index's columns, which there are: CREATE INDEX has asked.
fn gin_classes(index: &Index, columns: &[KeyColumn]) -> Vec<Arc<dyn GinClass>> {
    let class = |(c, (_, ty, _)): (&catalog::IndexColumn, &KeyColumn)| {
        types::gin::class(c.class_of(index.method, ty.0), *ty)
    };
    index.columns.iter().zip(columns).filter_map(class).collect()
}

/// The same of a GiST or SP-GiST index.
fn gist_classes(index: &Index, columns: &[KeyColumn]) -> Vec<Arc<dyn GistClass>> {
    let class = |(c, (_, ty, _)): (&catalog::IndexColumn, &KeyColumn)| {
        types::gist::class(c.class_of(index.method, ty.0), *ty)
    };
    index.columns.iter().zip(columns).filter_map(class).collect()
}

const HINTS: usize = 16;
std::thread_local! {
    /// Page that took the last row of a table, by worker: workers fill pages of their own.
    static INSERT_HINTS: std::cell::Cell<[(u32, u32); HINTS]> =
        const { std::cell::Cell::new([(0, 0); HINTS]) };
}

// Neither is inlined: a task that waits between the two may go on on another thread.

/// Where this worker last put a row of the relation.
#[inline(never)]
pub fn insert_hint(rel: RelId) -> InsertHint {
    let (owner, block) = INSERT_HINTS.get()[rel.0 as usize % HINTS];
    InsertHint { block: (owner == rel.0).then_some(block) }
}

/// Remembers it.
#[inline(never)]
pub fn keep_insert_hint(rel: RelId, hint: InsertHint) {
    if let Some(block) = hint.block {
        let mut hints = INSERT_HINTS.get();
        hints[rel.0 as usize % HINTS] = (rel.0, block);
        INSERT_HINTS.set(hints);
    }
}

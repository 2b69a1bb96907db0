//! Partitions while statements run: scans of one from a template, keys of rows, the way of a row to its partition.
//!
//! A plan holds a partitioned table once. A partition is looked up, locked and opened when its first row is read
//! or written; its lock is asked for before its definition is looked at, since others may have changed it
//! meanwhile (its table is locked all the time, so that it is still a partition).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use base::{Result, err};
use catalog::partition::Bounds;
use catalog::{Partitioning, Snapshot, Table};
use sql::plan::{Node, Scan, ScanColumn};
use sql::{Expr, Plan};
use txn::LockMode;
use types::Datum;

use crate::context::ExecContext;
use crate::ops::operator::wrong_node;
use crate::relation_lock::lock;
use crate::rows::Row;
use crate::run::Run;
use crate::{eval, interval};

/// A partition as it is now, locked.
///
/// # Errors
/// Those of locking; `42P01` when it is gone.
pub fn open(cx: &mut ExecContext<'_>, id: u32, mode: LockMode) -> Result<Arc<Table>> {
    lock(cx, id, mode)?;
    let view = cx.catalog_tx.view();
    view.table(id)
        .cloned()
        .ok_or_else(|| err!(UNDEFINED_TABLE, "relation with OID {id} does not exist"))
}

/// The numbers of a table's columns in another one that has columns of the same names; 0 for dropped ones.
pub fn numbers(table: &Table, there: &Table) -> Vec<u16> {
    let number = |(at, c): (usize, &catalog::Column)| match c.dropped {
        true => 0,
        false => match there.columns.get(at).filter(|o| !o.dropped && o.name == c.name) {
            Some(_) => at as u16 + 1,
            None => there.column(&c.name).map_or(0, |(n, _)| n),
        },
    };
    table.columns.iter().enumerate().map(number).collect()
}

/// The number of a partition, from 1, among all of a table, each before those below it, in the order of their bounds.
pub fn number_among(view: &Snapshot, whole: &Table, part: u32) -> Option<usize> {
    let (mut next, mut number) = (vec![whole.oid], 0);
    while let Some(id) = next.pop() {
        if id == part {
            return Some(number);
        }
        number += 1;
        let Some(table) = view.table(id) else { continue };
        let (Some(by), Some(family)) = (&table.partitioning, view.family(id)) else { continue };
        let bounds = family.bounds(by).ok()?;
        next.extend(bounds.parts.iter().rev().map(|part| part.oid));
    }
    None
}

/// Whether numbers change nothing.
pub fn is_identity(numbers: &[u16], there: &Table) -> bool {
    numbers.len() == there.columns.len()
        && numbers.iter().enumerate().all(|(at, n)| *n == 0 || usize::from(*n) == at + 1)
}

/// A template scan for one partition. None: it lacks an index of the template.
///
/// # Errors
/// For a node that is no scan.
pub fn instantiate(
    parts: &sql::plan::PartitionScan,
    part: &Arc<Table>,
    view: &Snapshot,
) -> Result<Plan> {
    let mut plan = parts.scan.clone();
    let numbers = numbers(&parts.table, part);
    let identity = is_identity(&numbers, part);
    let change = |scan: &mut Scan| {
        scan.table = part.clone();
        if identity {
            return;
        }
        for column in &mut scan.columns {
            if let ScanColumn::Attr(n) = column {
                *n = numbers[usize::from(*n) - 1];
            }
        }
    };
    let index = |index: &mut Arc<catalog::Index>| match view.part_of_index(part, index.oid) {
        Some(own) => {
            *index = own.clone();
            Ok(())
        }
        None => Err(err!(
            INTERNAL_ERROR,
            "partition \"{}\" has no part of index \"{}\"",
            part.name,
            index.name
        )),
    };
    rewrite(&mut plan, part, &change, &index)?;
    if part.kind == catalog::TableKind::Foreign
        && let Node::SeqScan(scan) = plan.node
    {
        let code = sql::foreign::code_of(view, part)?;
        let (scan, remote) = sql::foreign::left_to_server(scan, &code);
        let foreign = sql::plan::ForeignScan { scan, remote, code, role: parts.role };
        plan.node = Node::ForeignScan(Box::new(foreign));
    }
    Ok(plan)
}

fn rewrite(
    plan: &mut Plan,
    part: &Arc<Table>,
    change: &dyn Fn(&mut Scan),
    to_own: &dyn Fn(&mut Arc<catalog::Index>) -> Result<()>,
) -> Result<()> {
    match &mut plan.node {
        Node::SeqScan(scan) | Node::SampleScan { scan, .. } => change(scan),
        Node::IndexScan { scan, index, .. } | Node::IndexOnlyScan { scan, index, .. } => {
            change(scan);
            to_own(index)?;
        }
        Node::BitmapHeapScan { scan, input, .. } => {
            change(scan);
            rewrite(input, part, change, to_own)?;
        }
        Node::BitmapIndexScan { table, index, .. } => {
            *table = part.clone();
            to_own(index)?;
        }
        Node::BitmapAnd(inputs) | Node::BitmapOr(inputs) => {
            for input in inputs {
                rewrite(input, part, change, to_own)?;
            }
        }
        _ => return Err(wrong_node()),
    }
    Ok(())
}

/// Where a part of a key comes from.
enum KeySource {
    /// A column of the row, from 0.
    Column(usize),
    /// An expression over it.
    Computed(Expr),
}

/// Calls of users' hash functions over a partitioned table's rows, for the keys that have one.
fn hash_calls(table: &Table, by: &Partitioning, cx: &mut ExecContext<'_>) -> Vec<Option<String>> {
    if by.keys.iter().all(|key| key.hash_function == 0) {
        return vec![None; by.keys.len()];
    }
    let view = cx.catalog_tx.view();
    let call = |key: &catalog::PartitionKey| {
        let function = view.function(key.hash_function)?;
        let schema = view.schema(function.schema).map_or("pg_catalog", |s| s.name.as_str());
        Some(format!(
            "{}.{}({}, {}::int8)",
            crate::session::quote_identifier(schema),
            crate::session::quote_identifier(&function.name),
            catalog::partition_text::operand(&view, table, key),
            types::PARTITION_SEED as i64
        ))
    };
    by.keys.iter().map(call).collect()
}

/// Reads keys of a partitioned table out of rows, which may be those of another table of its hierarchy.
pub struct KeyReader(Vec<KeySource>, Vec<Option<Expr>>);

impl KeyReader {
    /// The keys of `table` in rows as `rows` has them.
    ///
    /// # Errors
    /// An expression that can't be bound any more.
    pub fn new(
        table: &Table,
        by: &Partitioning,
        rows: &Table,
        cx: &mut ExecContext<'_>,
    ) -> Result<KeyReader> {
        let there = numbers(table, rows);
        let hashes = hash_calls(table, by, cx);
        let texts = by.keys.iter().filter_map(|k| k.expression.as_deref());
        let texts: Vec<&str> = texts.chain(hashes.iter().flatten().map(String::as_str)).collect();
        let bound = match texts.is_empty() {
            true => Vec::new(),
            false => {
                crate::spi::with_context(cx, |cx| sql::stored::row_expressions(cx, table, &texts))?
            }
        };
        let place = |n: u16| {
            let column = &table.columns[usize::from(n)];
            let at = there[usize::from(n)].checked_sub(1)?;
            Some(Expr::Column(at, base::Oid(column.ty)))
        };
        let mut bound = bound.into_iter().map(|e| sql::walk::substitute(e, &place));
        let mut sources = Vec::with_capacity(by.keys.len());
        for key in &by.keys {
            sources.push(match usize::from(key.column) {
                0 => match bound.next() {
                    Some(e) => KeySource::Computed(e),
                    None => return Err(base::Error::internal("a key without an expression")),
                },
                n => KeySource::Column(usize::from(there[n - 1].max(1)) - 1),
            });
        }
        let hashes = hashes.iter().map(|call| call.as_ref().and_then(|_| bound.next()));
        Ok(KeyReader(sources, hashes.collect()))
    }

    /// The place of the partition that holds a row with this key; `near` is looked at first.
    ///
    /// # Errors
    /// Those of users' hash functions.
    pub fn place(
        &self,
        bounds: &Bounds,
        by: &Partitioning,
        (key, row): (&[Datum], &[Datum]),
        near: usize,
        run: &mut Run<'_, '_>,
    ) -> Result<Option<usize>> {
        if self.1.iter().all(Option::is_none) {
            return Ok(bounds.find_near(by, key, near));
        }
        let mut hashed = Vec::with_capacity(self.1.len());
        for call in &self.1 {
            let hash = match call {
                Some(call) => eval::eval(call, Row::Values(row), run)?,
                None => Datum::Null,
            };
            hashed.push(match hash {
                Datum::Int8(hash) => Some(hash as u64),
                _ => None,
            });
        }
        Ok(bounds.place_of_hash(catalog::partition::hash_with(by, key, &hashed)))
    }

    /// The key of a row.
    ///
    /// # Errors
    /// Those of its expressions.
    pub fn key(&self, row: &[Datum], run: &mut Run<'_, '_>) -> Result<Vec<Datum>> {
        let mut key = Vec::with_capacity(self.0.len());
        self.key_into(row, &mut key, run)?;
        Ok(key)
    }

    /// The same in a vector that is there.
    fn key_into(&self, row: &[Datum], key: &mut Vec<Datum>, run: &mut Run<'_, '_>) -> Result<()> {
        key.clear();
        for source in &self.0 {
            key.push(match source {
                KeySource::Column(at) => row[*at].clone(),
                KeySource::Computed(e) => eval::eval(e, Row::Values(row), run)?,
            });
        }
        Ok(())
    }
}

/// One partitioned table on the way of rows.
struct Level {
    table: Arc<Table>,
    bounds: Option<Arc<Bounds>>,
    reader: KeyReader,
    /// Where the last row's partition was.
    last: usize,
    /// The last row's key.
    key: Vec<Datum>,
}

/// Finds the partitions of rows.
pub struct Router {
    root: Arc<Table>,
    first: Option<Level>,
    below: HashMap<u32, Level>,
    mode: LockMode,
    /// Partitions by interval that it has made.
    made: usize,
}

impl Router {
    /// For rows as this partitioned table has them.
    pub fn new(root: &Arc<Table>) -> Router {
        Router {
            root: root.clone(),
            first: None,
            below: HashMap::new(),
            mode: LockMode::RowExclusive,
            made: 0,
        }
    }

    /// The same for who only reads.
    pub fn reading(root: &Arc<Table>) -> Router {
        Router { mode: LockMode::RowShare, ..Router::new(root) }
    }

    /// Whether it has found no partition that is partitioned itself: then it holds no locks for others.
    pub fn is_plain(&self) -> bool {
        self.first.is_some() && self.below.is_empty()
    }

    /// Whether the bounds are still those that it knows.
    pub fn is_current(&self, run: &mut Run<'_, '_>) -> bool {
        let view = run.cx.catalog_tx.view();
        self.first.iter().chain(self.below.values()).all(|level| {
            let table = view.table(level.table.oid).is_some_and(|t| Arc::ptr_eq(t, &level.table));
            let by = level.table.partitioning.as_ref();
            let now = by.and_then(|by| view.family(level.table.oid)?.bounds(by).ok());
            let same = match (now, &level.bounds) {
                (Some(now), Some(known)) => Arc::ptr_eq(now, known),
                _ => false,
            };
            table && same
        })
    }

    /// The oid of the partition that holds a row.
    ///
    /// # Errors
    /// `23514` when there is none.
    pub fn route(&mut self, row: &[Datum], run: &mut Run<'_, '_>) -> Result<u32> {
        loop {
            let id = match self.search(row, run)? {
                Ok(id) => return Ok(id),
                Err(id) => id,
            };
            let level = self.below.get(&id).or(self.first.as_ref());
            let Some(level) = level else { return Err(wrong_node()) };
            let (table, key) = (level.table.clone(), level.key.clone());
            if !interval::make(&table, &key, run)? {
                return Err(no_partition(&table, &key, run));
            }
            interval::count(&mut self.made)?;
            self.first = None;
            self.below.clear();
        }
    }

    /// The same; None: there is none.
    ///
    /// # Errors
    /// Those of key expressions.
    pub fn find(&mut self, row: &[Datum], run: &mut Run<'_, '_>) -> Result<Option<u32>> {
        Ok(self.search(row, run)?.ok())
    }

    /// The partition; or the table that has none for the row.
    fn search(
        &mut self,
        row: &[Datum],
        run: &mut Run<'_, '_>,
    ) -> Result<std::result::Result<u32, u32>> {
        let root = &self.root;
        let mut level = match &mut self.first {
            Some(level) => level,
            none => none.insert(Level::open(root, root, self.mode, run.cx)?),
        };
        loop {
            let part = match level.find(row, run)? {
                Some(part) if part.is_partitioned() => part.clone(),
                Some(part) => return Ok(Ok(part.oid)),
                None => return Ok(Err(level.table.oid)),
            };
            level = match self.below.entry(part.oid) {
                Entry::Occupied(level) => level.into_mut(),
                Entry::Vacant(place) => place.insert(Level::open(&part, root, self.mode, run.cx)?),
            };
        }
    }
}

impl Level {
    fn open(
        table: &Arc<Table>,
        rows: &Table,
        mode: LockMode,
        cx: &mut ExecContext<'_>,
    ) -> Result<Level> {
        if rows.oid != table.oid {
            lock(cx, table.oid, mode)?;
        }
        let view = cx.catalog_tx.view();
        let Some(by) = &table.partitioning else { return Err(wrong_node()) };
        let family = view.family(table.oid);
        let bounds = family.map(|f| f.bounds(by).cloned()).transpose()?;
        let reader = KeyReader::new(table, by, rows, cx)?;
        Ok(Level { table: table.clone(), bounds, reader, last: 0, key: Vec::new() })
    }

    /// The partition of a row, whose key it keeps.
    fn find(&mut self, row: &[Datum], run: &mut Run<'_, '_>) -> Result<Option<&Arc<Table>>> {
        self.reader.key_into(row, &mut self.key, run)?;
        let (Some(bounds), Some(by)) = (&self.bounds, &self.table.partitioning) else {
            return Ok(None);
        };
        let place = self.reader.place(bounds, by, (&self.key, row), self.last, run)?;
        self.last = place.unwrap_or(self.last);
        Ok(place.map(|place| &bounds.parts[place]))
    }
}

fn no_partition(table: &Table, key: &[Datum], run: &mut Run<'_, '_>) -> base::Error {
    let view = run.cx.catalog_tx.view();
    let schema = view.schema(table.schema).map_or(String::new(), |s| s.name.clone());
    let error = err!(CHECK_VIOLATION, "no partition of relation \"{}\" found for row", table.name)
        .table(&schema, &table.name);
    let Some(by) = &table.partitioning else { return error };
    let mut columns = by.keys.iter().flat_map(|k| match k.column {
        0 => k.columns.clone(),
        n => vec![n],
    });
    if !crate::modify::may_read(run.cx, table, &mut columns) {
        return error;
    }
    let shown = catalog::partition_text::shown_key(table, by, key, run.cx.format, &|sql| {
        catalog::partition_text::enclosed(sql)
    });
    error.detail(format!("Partition key of the failing row contains {shown}."))
}

/// Whether rows belong into a partition, for those who write into it by its own name, or change its rows.
pub struct Belongs(Vec<Above>);

/// A table above a partition.
struct Above {
    by: Partitioning,
    bounds: Arc<Bounds>,
    reader: KeyReader,
    /// The partition of it that the rows must be in.
    part: u32,
}

impl Belongs {
    /// For rows of a partition, up to a table of its hierarchy (0: the top). None: it is no partition.
    ///
    /// # Errors
    /// Bounds or expressions that can't be read.
    pub fn open(
        table: &Table,
        up_to: u32,
        cx: &mut ExecContext<'_>,
    ) -> Result<Option<Box<Belongs>>> {
        if table.bound.is_none() || table.oid == up_to {
            return Ok(None);
        }
        let mut view = cx.catalog_tx.view();
        if view.has_detaching() {
            view = Arc::new(Snapshot::clone(&view).with_detaching(|_| true));
        }
        let (mut part, mut levels) = (table.oid, Vec::new());
        for id in view.partition_ancestors(table.oid) {
            let (Some(above), Some(family)) = (view.table(id).cloned(), view.family(id).cloned())
            else {
                break;
            };
            let Some(by) = above.partitioning.as_deref() else { break };
            let bounds = family.bounds(by)?.clone();
            let reader = KeyReader::new(&above, by, table, cx)?;
            levels.push(Above { by: by.clone(), bounds, reader, part });
            part = id;
            if id == up_to {
                break;
            }
        }
        Ok(Some(Box::new(Belongs(levels))))
    }

    /// Whether a row of the partition's may be in it.
    ///
    /// # Errors
    /// Those of key expressions.
    pub fn holds(&self, row: &[Datum], run: &mut Run<'_, '_>) -> Result<bool> {
        for above in &self.0 {
            let key = above.reader.key(row, run)?;
            let place = above.reader.place(&above.bounds, &above.by, (&key, row), 0, run)?;
            if place.is_none_or(|at| above.bounds.parts[at].oid != above.part) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

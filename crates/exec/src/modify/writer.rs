//! Rows into a table: constraints, the heap, every index, and notes for the foreign keys.

use std::sync::{Arc, OnceLock};

use access::btree::Inserted;
use access::{AnyIndex, BTree, HeapTuple, RowWait, Unique, WriteResult};
use base::{Result, TupleId};
use catalog::{Constraint, ConstraintKind, Index, ReplicaIdentity, Table};
use logical::record::Operation;
use sql::Expr;
use sql::plan::RowRules;
use txn::Snapshot;
use types::{Datum, row};

use super::deferred::{Check, Waiting};
use super::errors::{self, Written};
use super::exclusion::{Excluding, Met};
use super::foreign_key::{self, References};
use super::triggers::Triggers;
use super::unique;
use crate::change_log::{self, Told};
use crate::context::ExecContext;
use crate::eval;
use crate::index_search;
use crate::language::{TriggerEvent, TriggerTiming};
use crate::overflow::Overflow;
use crate::partition::Belongs;
use crate::rows::Row;
use crate::run::Run;
use crate::table::{self, KeyCodec, TableHandle};
use crate::tally::Pages;

/// One index of the table.
pub struct IndexWriter {
    /// The definition.
    pub index: Arc<Index>,
    /// Its files.
    pub files: AnyIndex,
    /// Its keys.
    pub codec: KeyCodec,
}

impl IndexWriter {
    /// The B-tree that a unique index is.
    ///
    /// # Errors
    /// Internal when it is another index.
    pub fn tree(&self) -> Result<&BTree> {
        let other = || base::Error::internal("a unique index that is no B-tree");
        self.files.as_btree().ok_or_else(other)
    }
}

/// A table and its indexes, opened: shared by all who run the same plan.
pub struct WriteTarget {
    /// The table.
    pub handle: TableHandle,
    /// Its indexes.
    pub indexes: Vec<IndexWriter>,
    /// Its definition as the log tells of it, once a row has changed.
    told: OnceLock<Told>,
}

/// The table that a statement names, for a child of it whose rows it changes, too.
pub struct Root {
    /// The table.
    pub table: Arc<Table>,
    /// The numbers of its columns in the child ([`sql::plan::ModifyChild::numbers`]).
    pub numbers: Vec<u16>,
}

/// A table that rows go into.
pub struct Writer {
    /// The table and its indexes.
    pub target: Arc<WriteTarget>,
    /// Its foreign keys and those that refer to it, with what is to be checked at the end.
    pub references: References,
    /// Its triggers, if any fires.
    pub triggers: Option<Box<Triggers>>,
    /// What an update or delete does when somebody else holds the row.
    pub wait: RowWait,
    /// What the indexes compute ([`RowRules::keys`]).
    pub keys: Vec<Expr>,
    /// The statement's table, when this is a child of it: errors tell of rows as of its own.
    pub root: Option<Root>,
    /// Whether rows must fit a partition's bound.
    pub membership: Membership,
    /// Which row of the last [`Writer::insert_many`] is (or failed) being indexed, from 0.
    pub at: usize,
    /// Rows that may have a rival in an index of a DEFERRABLE constraint: the index's place, the row's.
    rivals: Vec<(usize, TupleId)>,
    /// For encoding rows and keys, one after the other.
    buffer: Vec<u8>,
}

/// An exclusion constraint of a table, by its index.
pub(super) fn excluding<'a>(
    target: &'a WriteTarget,
    entry: &'a IndexWriter,
    computed: &'a [Expr],
) -> Excluding<'a> {
    let (index, codec, files) = (&*entry.index, &entry.codec, &entry.files);
    Excluding { handle: &target.handle, index, codec, files, computed }
}

/// Looks at rows of a constraint that is DEFERRABLE again.
///
/// # Errors
/// `23505`, `23P01`; deadlocks and time-outs of waiting for others to decide.
pub(super) fn recheck(
    table: &Arc<Table>,
    index: &Arc<Index>,
    rows: &[TupleId],
    run: &mut Run<'_, '_>,
) -> Result<()> {
    if index.exclude.is_empty() {
        return unique::recheck(table, index, rows, run);
    }
    let texts: Vec<&str> = index.expressions().collect();
    let computed = match texts.is_empty() {
        true => Vec::new(),
        false => {
            crate::spi::with_context(run.cx, |cx| sql::stored::row_expressions(cx, table, &texts))?
        }
    };
    super::exclusion::recheck(table, index, &computed, rows, run)
}

/// What a partition's bound asks of new rows.
pub enum Membership {
    /// Nothing: it is none, or the rows were led here by their keys.
    Any,
    /// Rows that don't fit are errors: the statement names the partition.
    Checked(Box<Belongs>),
    /// Rows that don't fit go elsewhere: the statement names the partitioned table.
    Moves(Box<Belongs>),
}

/// What became of an update or delete.
pub enum Change {
    /// Done.
    Done,
    /// The row is gone.
    Gone,
    /// The row was changed by this very command.
    SelfChanged,
    /// There is a newer version, locked by now: look at it again.
    Newer(Box<HeapTuple>),
    /// Somebody else holds it, and [`Writer::wait`] says not to wait. Nothing was done.
    Busy,
}

impl WriteTarget {
    /// Names the files; no I/O.
    ///
    /// # Errors
    /// When a column's missing value can't be read.
    pub fn open(
        table: &Arc<Table>,
        indexes: &[Arc<Index>],
        cx: &ExecContext<'_>,
    ) -> Result<WriteTarget> {
        let mut computed = table.columns.len() as u16;
        let writer = |index: &Arc<Index>| {
            let codec = KeyCodec::with_computed(table, index, &mut computed);
            let files = index_search::open_for(&codec, index, &cx.engine.storage);
            IndexWriter { index: index.clone(), files, codec }
        };
        Ok(WriteTarget {
            handle: TableHandle::open(cx.engine, table, cx.format)?,
            indexes: indexes.iter().map(writer).collect(),
            told: OnceLock::new(),
        })
    }
}

impl WriteTarget {
    /// Tells those who follow the log of a change.
    #[inline]
    fn tell(
        &self,
        operation: Operation,
        old: Option<&[Datum]>,
        new: Option<&[Datum]>,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        match change_log::is_told(&self.handle.table) {
            true => self.tell_of(operation, old, new, run),
            false => Ok(()),
        }
    }

    #[cold]
    fn tell_of(
        &self,
        operation: Operation,
        old: Option<&[Datum]>,
        new: Option<&[Datum]>,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let told = match self.told.get() {
            Some(told) => told,
            None => {
                let view = run.cx.catalog_tx.view();
                let indexes: Vec<Arc<Index>> =
                    self.indexes.iter().map(|i| i.index.clone()).collect();
                let database = run.cx.database.1;
                let fresh = Told::new(&view, database, &self.handle.table, &indexes);
                self.told.get_or_init(|| fresh)
            }
        };
        told.row(operation, old, new, run.cx)
    }

    /// The whole of a row that is about to be deleted, if the log is to tell of it: statements read no more columns
    /// than they need.
    fn whole_old(&self, tid: TupleId) -> Result<Option<Vec<Datum>>> {
        let table = &self.handle.table;
        if !change_log::is_told(table) || table.replica_identity == ReplicaIdentity::Nothing {
            return Ok(None);
        }
        match self.handle.heap.fetch_version(tid)? {
            Some(version) => self.handle.decode_all(&version.data).map(Some),
            None => Ok(None),
        }
    }

    fn overflow(&self, run: &Run<'_, '_>) -> Overflow {
        Overflow::new(&run.cx.engine.storage, self.handle.heap.rel)
    }

    /// Makes a large row small: values compressed, or moved out of it.
    #[cold]
    fn shrink(&self, bytes: &mut Vec<u8>, run: &mut Run<'_, '_>) -> Result<()> {
        let overflow = self.overflow(run);
        let tx = run.cx.tx;
        row::shrink(&self.handle.columns, bytes, &mut |value| overflow.store(tx, value))
    }

    /// The bytes of a version that is about to end, if the table has values outside its rows.
    fn large_values(&self, tid: TupleId) -> Result<Option<Vec<u8>>> {
        if !self.handle.columns.has_outside()? {
            return Ok(None);
        }
        Ok(self.handle.heap.fetch_version(tid)?.map(|version| version.data))
    }

    /// Deletes what a version that has ended kept outside, but for what the next one has `taken` over.
    fn delete_large(
        &self,
        version: Option<Vec<u8>>,
        taken: &[TupleId],
        snapshot: &Snapshot,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        match version {
            Some(bytes) => {
                let columns = &self.handle.columns;
                self.overflow(run).delete(run.cx.tx, snapshot, columns, &bytes, taken)
            }
            None => Ok(()),
        }
    }
}

impl Writer {
    /// Without its references.
    pub fn new(target: Arc<WriteTarget>) -> Writer {
        Writer {
            target,
            references: References::default(),
            triggers: None,
            wait: RowWait::Block,
            keys: Vec::new(),
            root: None,
            membership: Membership::Any,
            at: 0,
            rivals: Vec::new(),
            buffer: Vec::with_capacity(256),
        }
    }

    /// Opens table and indexes; without references.
    ///
    /// # Errors
    /// As [`WriteTarget::open`].
    pub fn open(
        table: &Arc<Table>,
        indexes: &[Arc<Index>],
        cx: &ExecContext<'_>,
    ) -> Result<Writer> {
        Ok(Writer::new(Arc::new(WriteTarget::open(table, indexes, cx)?)))
    }

    /// Computes generated columns; then policies, NOT NULL, CHECK, WITH CHECK OPTION.
    ///
    /// # Errors
    /// `42501`, `23502`, `23514`, `44000`, and those of the expressions.
    pub fn check_row(
        &self,
        row: &mut [Datum],
        rules: &RowRules,
        event: TriggerEvent,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        for (column, expr) in &rules.generated {
            row[usize::from(*column) - 1] = eval::eval(expr, Row::Values(row), run)?;
        }
        if let Some(policies) = &rules.policies {
            let checks = match event {
                TriggerEvent::Insert => &policies.insert,
                _ => &policies.update,
            };
            super::policies::check(policies, checks, super::policies::Row::New, row, run)?;
        }
        let table = &self.target.handle.table;
        for (column, value) in table.columns.iter().zip(&*row) {
            if column.not_null && !column.dropped && value.is_null() {
                return Err(errors::not_null(run.cx, &column.name, &self.written(row, rules)));
            }
        }
        for (name, expr) in &rules.checks {
            if matches!(eval::eval(expr, Row::Values(row), run)?, Datum::Bool(false)) {
                return Err(errors::check(run.cx, name, &self.written(row, rules)));
            }
        }
        for (name, expr) in &rules.options {
            if !matches!(eval::eval(expr, Row::Values(row), run)?, Datum::Bool(true)) {
                return Err(errors::check_option(run.cx, name, &self.written(row, rules)));
            }
        }
        if let Membership::Checked(belongs) = &self.membership
            && !belongs.holds(row, run)?
        {
            return Err(errors::partition(run.cx, &self.written(row, rules)));
        }
        Ok(())
    }

    /// Nothing waits in it for the statement's end.
    pub fn is_idle(&self) -> bool {
        self.rivals.is_empty() && self.references.is_idle() && self.triggers.is_none()
    }

    /// Opens what a partition's bound asks of rows that are written by the partition's own name.
    ///
    /// # Errors
    /// Bounds that can't be read.
    pub fn check_membership(&mut self, cx: &mut ExecContext<'_>) -> Result<()> {
        let table = self.target.handle.table.clone();
        if let Some(belongs) = Belongs::open(&table, 0, cx)? {
            self.membership = Membership::Checked(belongs);
        }
        Ok(())
    }

    /// What an error tells of a row.
    pub(super) fn written<'a>(&'a self, row: &'a [Datum], rules: &'a RowRules) -> Written<'a> {
        let (table, root) = (&*self.target.handle.table, self.root.as_ref());
        Written { table, row, columns: &rules.written, root }
    }

    /// Adds a checked row.
    ///
    /// # Errors
    /// `23505`, `54000`, I/O.
    pub fn insert(&mut self, row: &[Datum], run: &mut Run<'_, '_>) -> Result<TupleId> {
        self.buffer.clear();
        row::encode(&self.target.handle.columns, row, &mut self.buffer)?;
        if self.buffer.len() > row::TARGET_BYTES {
            self.target.shrink(&mut self.buffer, run)?;
        }
        let rel = self.target.handle.heap.rel;
        let mut hint = table::insert_hint(rel);
        let before = Pages::now(run.cx.task());
        let tid = self.target.handle.heap.insert(run.cx.tx, &self.buffer, &mut hint)?;
        let counts = run.cx.tally.of(self.target.handle.table.oid);
        counts.inserted += 1;
        before.count(run.cx.tx.locks().task(), counts);
        table::keep_insert_hint(rel, hint);
        self.insert_keys(row, tid, run)?;
        self.note_place(tid, run)?;
        self.target.tell(Operation::Insert, None, Some(row), run)?;
        self.references.inserted(row);
        self.note_insert(row, tid, run)?;
        Ok(tid)
    }

    /// Adds a checked row unless one of the `arbiters` (places in the indexes) has its key by now;
    /// false, and nothing is left of it, if so.
    ///
    /// # Errors
    /// As [`Writer::insert`].
    pub fn insert_unless(
        &mut self,
        row: &[Datum],
        arbiters: &[usize],
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        self.buffer.clear();
        row::encode(&self.target.handle.columns, row, &mut self.buffer)?;
        let mut large = None;
        if self.buffer.len() > row::TARGET_BYTES {
            self.target.shrink(&mut self.buffer, run)?;
            large = Some(self.buffer.clone());
        }
        let rel = self.target.handle.heap.rel;
        let mut hint = table::insert_hint(rel);
        let before = Pages::now(run.cx.task());
        let tid = self.target.handle.heap.insert(run.cx.tx, &self.buffer, &mut hint)?;
        before.count(run.cx.tx.locks().task(), run.cx.tally.of(self.target.handle.table.oid));
        table::keep_insert_hint(rel, hint);
        if !self.insert_keys_unless(row, tid, arbiters, run)? {
            let snapshot = run.snapshot;
            self.target.handle.heap.delete(run.cx.tx, &snapshot, tid, tid, RowWait::Block)?;
            self.target.delete_large(large, &[], &snapshot, run)?;
            return Ok(false);
        }
        run.cx.tally.of(self.target.handle.table.oid).inserted += 1;
        self.note_place(tid, run)?;
        self.target.tell(Operation::Insert, None, Some(row), run)?;
        self.references.inserted(row);
        self.note_insert(row, tid, run)?;
        Ok(true)
    }

    /// Adds checked rows.
    ///
    /// # Errors
    /// As [`Writer::insert`].
    pub fn insert_many<R: AsRef<[Datum]>>(
        &mut self,
        rows: &[R],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        self.at = 0;
        if let [row] = rows {
            return self.insert(row.as_ref(), run).map(drop);
        }
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        let mut ends = Vec::with_capacity(rows.len());
        for row in rows {
            let start = bytes.len();
            row::encode(&self.target.handle.columns, row.as_ref(), &mut bytes)?;
            if bytes.len() - start > row::TARGET_BYTES {
                let mut large = bytes.split_off(start);
                self.target.shrink(&mut large, run)?;
                bytes.append(&mut large);
            }
            ends.push(bytes.len());
        }
        let mut begin = 0;
        let encoded: Vec<&[u8]> =
            ends.iter().map(|end| &bytes[std::mem::replace(&mut begin, *end)..*end]).collect();
        let rel = self.target.handle.heap.rel;
        let mut hint = table::insert_hint(rel);
        let before = Pages::now(run.cx.task());
        let tids = self.target.handle.heap.insert_many(run.cx.tx, &encoded, &mut hint)?;
        let counts = run.cx.tally.of(self.target.handle.table.oid);
        counts.inserted += tids.len() as u64;
        before.count(run.cx.tx.locks().task(), counts);
        table::keep_insert_hint(rel, hint);
        drop(encoded);
        self.buffer = bytes;
        for (n, (row, tid)) in rows.iter().zip(tids).enumerate() {
            self.at = n;
            self.insert_keys(row.as_ref(), tid, run)?;
            self.target.tell(Operation::Insert, None, Some(row.as_ref()), run)?;
            self.references.inserted(row.as_ref());
            self.note_insert(row.as_ref(), tid, run)?;
        }
        if self.references.is_full() {
            foreign_key::check_parents(self, run)?;
        }
        Ok(())
    }

    /// Notes where a row is that was written, if RETURNING asks for it.
    #[inline]
    fn note_place(&self, tid: TupleId, run: &mut Run<'_, '_>) -> Result<()> {
        if !run.state.asks_places {
            return Ok(());
        }
        let version = self.target.handle.heap.fetch_version(tid)?;
        run.state.placed = version.map(|version| (tid, version.system));
        Ok(())
    }

    /// Notes a new row for the triggers.
    fn note_insert(&mut self, row: &[Datum], tid: TupleId, run: &mut Run<'_, '_>) -> Result<()> {
        match &mut self.triggers {
            Some(triggers) => {
                triggers.note(TriggerEvent::Insert, (TupleId::INVALID, tid), None, Some(row), run)
            }
            None => Ok(()),
        }
    }

    /// A row with what the indexes compute behind it; None when they compute nothing.
    pub(super) fn computed(
        &self,
        row: &[Datum],
        run: &mut Run<'_, '_>,
    ) -> Result<Option<Vec<Datum>>> {
        if self.keys.is_empty() {
            return Ok(None);
        }
        let mut whole = Vec::with_capacity(row.len() + self.keys.len());
        whole.extend_from_slice(row);
        for key in &self.keys {
            whole.push(eval::eval(key, Row::Values(row), run)?);
        }
        Ok(Some(whole))
    }

    /// Adds a row's entries to all indexes.
    fn insert_keys(&mut self, row: &[Datum], root: TupleId, run: &mut Run<'_, '_>) -> Result<()> {
        self.insert_keys_unless(row, root, &[], run).map(drop)
    }

    /// The same; false when one of the `arbiters` has the key already.
    fn insert_keys_unless(
        &mut self,
        row: &[Datum],
        root: TupleId,
        arbiters: &[usize],
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let computed = self.computed(row, run)?;
        let row = computed.as_deref().unwrap_or(row);
        let tx = run.cx.tx;
        for (place, entry) in self.target.indexes.iter().enumerate() {
            if !entry.codec.holds(row) {
                continue;
            }
            let before = Pages::now(run.cx.task());
            self.buffer.clear();
            let null = entry.codec.encode(row, &mut self.buffer)?;
            let heap = &self.target.handle.heap;
            let mut rival = |other: TupleId| heap.rival(tx, other);
            let unique = if entry.index.deferrable {
                Unique::No
            } else if entry.index.unique && (!null || entry.index.nulls_equal) {
                Unique::Yes(&mut rival)
            } else {
                Unique::No
            };
            if let Inserted::Conflict(_) = entry.files.insert(tx, &self.buffer, root, unique)? {
                if arbiters.contains(&place) {
                    return Ok(false);
                }
                let table = &self.target.handle.table;
                return Err(errors::duplicate(run.cx, table, &entry.index, row));
            }
            if !entry.index.exclude.is_empty() {
                let own = excluding(&self.target, entry, &self.keys);
                if entry.index.deferrable || arbiters.contains(&place) {
                    match own.met(row, Some(root), run)? {
                        Met::None => {}
                        _ if arbiters.contains(&place) => return Ok(false),
                        _ => self.rivals.push((place, root)),
                    }
                } else if let Some((_, there)) = own.met_for_sure(row, Some(root), run)? {
                    let table = &self.target.handle.table;
                    return Err(errors::excluded(run.cx, table, &entry.index, row, &there));
                }
            } else if entry.index.deferrable
                && (!null || entry.index.nulls_equal)
                && unique::may_conflict(heap, entry.tree()?, &self.buffer, root, run)?
            {
                self.rivals.push((place, root));
            }
            before.count(tx.locks().task(), run.cx.tally.of(entry.index.oid));
        }
        Ok(true)
    }

    /// Replaces a row version by a checked row.
    ///
    /// # Errors
    /// As [`Writer::insert`], and `40001`, deadlocks, time-outs.
    pub fn update(
        &mut self,
        tid: TupleId,
        root: TupleId,
        old: &[Datum],
        new: &[Datum],
        snapshot: &Snapshot,
        run: &mut Run<'_, '_>,
    ) -> Result<Change> {
        let mut key_changed = false;
        let mut indexed_changed = false;
        if self.keys.is_empty() {
            for entry in &self.target.indexes {
                if !entry.codec.same(old, new) {
                    indexed_changed = true;
                    key_changed |= entry.index.unique;
                }
            }
        } else {
            let (before, after) = (self.computed(old, run)?, self.computed(new, run)?);
            let before = before.as_deref().unwrap_or(old);
            let after = after.as_deref().unwrap_or(new);
            for entry in &self.target.indexes {
                if entry.codec.differs(before, after) {
                    indexed_changed = true;
                    key_changed |= entry.index.unique && entry.index.is_plain();
                }
            }
        }
        self.buffer.clear();
        row::encode(&self.target.handle.columns, new, &mut self.buffer)?;
        let mut wait = self.wait;
        let large = self.target.large_values(tid)?;
        let mut taken = Vec::new();
        if let Some(before) = large.as_ref().filter(|_| self.buffer.len() > row::TARGET_BYTES) {
            taken = row::reuse(&self.target.handle.columns, &mut self.buffer, before)?;
        }
        if self.buffer.len() > row::TARGET_BYTES {
            self.target.shrink(&mut self.buffer, run)?;
            wait = RowWait::Block; // what was moved out of the row would have to go again
        }
        let before = Pages::now(run.cx.task());
        let result = self.target.handle.heap.update(
            run.cx.tx,
            snapshot,
            tid,
            root,
            &self.buffer,
            key_changed,
            indexed_changed,
            wait,
        )?;
        let counts = run.cx.tally.of(self.target.handle.table.oid);
        before.count(run.cx.tx.locks().task(), counts);
        match result {
            WriteResult::Done { tid: place, in_chain } => {
                counts.updated += 1;
                counts.hot_updated += u64::from(in_chain);
                if !in_chain {
                    self.insert_keys(new, place, run)?;
                }
                self.note_place(place, run)?;
                self.target.delete_large(large, &taken, snapshot, run)?;
                self.target.tell(Operation::Update, Some(old), Some(new), run)?;
                self.references.updated(old, new);
                if let Some(triggers) = &mut self.triggers {
                    let event = TriggerEvent::Update;
                    triggers.note(event, (tid, place), Some(old), Some(new), run)?;
                }
                Ok(Change::Done)
            }
            WriteResult::Changed { newest } => Ok(Change::Newer(newest)),
            WriteResult::Gone => Ok(Change::Gone),
            WriteResult::SelfChanged => Ok(Change::SelfChanged),
            WriteResult::Busy => Ok(Change::Busy),
        }
    }

    /// Deletes a row version. `moved`: what the row is in the partition that it goes into.
    ///
    /// # Errors
    /// `40001`, deadlocks, time-outs.
    pub fn delete(
        &mut self,
        (tid, root): (TupleId, TupleId),
        old: &[Datum],
        moved: Option<&[Datum]>,
        snapshot: &Snapshot,
        run: &mut Run<'_, '_>,
    ) -> Result<Change> {
        let large = self.target.large_values(tid)?;
        let whole = self.target.whole_old(tid)?;
        let before = Pages::now(run.cx.task());
        let heap = &self.target.handle.heap;
        let result = match moved {
            Some(_) => heap.move_away(run.cx.tx, tid, root, self.wait)?,
            None => heap.delete(run.cx.tx, snapshot, tid, root, self.wait)?,
        };
        let counts = run.cx.tally.of(self.target.handle.table.oid);
        before.count(run.cx.tx.locks().task(), counts);
        match result {
            WriteResult::Done { .. } => {
                counts.deleted += 1;
                self.note_place(tid, run)?;
                self.target.delete_large(large, &[], snapshot, run)?;
                self.target.tell(Operation::Delete, whole.as_deref(), None, run)?;
                self.references.deleted(old, moved);
                if let Some(triggers) = &mut self.triggers {
                    let event = TriggerEvent::Delete;
                    triggers.moving = moved.is_some();
                    let noted = triggers.note(event, (tid, TupleId::INVALID), Some(old), None, run);
                    triggers.moving = false;
                    noted?;
                }
                Ok(Change::Done)
            }
            WriteResult::Changed { newest } => Ok(Change::Newer(newest)),
            WriteResult::Gone => Ok(Change::Gone),
            WriteResult::SelfChanged => Ok(Change::SelfChanged),
            WriteResult::Busy => Ok(Change::Busy),
        }
    }

    /// The statement's end: DEFERRABLE unique constraints, foreign keys, AFTER triggers of the rows.
    ///
    /// # Errors
    /// `23505`, `23503`, and whatever their actions raise.
    pub fn finish(&mut self, run: &mut Run<'_, '_>) -> Result<()> {
        if !self.rivals.is_empty() {
            self.finish_unique(run)?;
        }
        if !self.references.is_idle() {
            foreign_key::finish(self, run)?;
        }
        match &mut self.triggers {
            Some(triggers) => triggers.finish(&self.target.handle, run),
            None => Ok(()),
        }
    }

    /// Opens the table's triggers. `set`: columns that the statement sets; None: any.
    pub fn open_triggers(&mut self, rules: &RowRules, set: Option<Vec<u16>>, cx: &ExecContext<'_>) {
        self.triggers = Triggers::open(&self.target.handle.table, rules, set, cx);
    }

    /// Fires the statement-level triggers of an event.
    ///
    /// # Errors
    /// The triggers'.
    pub fn statement_triggers(
        &mut self,
        event: TriggerEvent,
        timing: TriggerTiming,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        match &mut self.triggers {
            Some(triggers) => triggers.statement(event, timing, run),
            None => Ok(()),
        }
    }

    /// Looks again at the rows that had rivals, or puts that off to the transaction's end.
    fn finish_unique(&mut self, run: &mut Run<'_, '_>) -> Result<()> {
        let rivals = std::mem::take(&mut self.rivals);
        let table = &self.target.handle.table;
        for (place, entry) in self.target.indexes.iter().enumerate() {
            let rows: Vec<TupleId> =
                rivals.iter().filter(|(p, _)| *p == place).map(|(_, row)| *row).collect();
            if rows.is_empty() {
                continue;
            }
            let backed = |c: &&Constraint| {
                matches!(c.kind, ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index }
                    if index == entry.index.oid)
            };
            let constraint = table.constraints.iter().find(backed);
            match constraint.filter(|c| run.cx.hooks.deferred().defers(c)) {
                Some(c) => {
                    let what = Check::Unique(rows);
                    Waiting::put_off(run.cx, table.oid, c.oid, what)?;
                }
                None => recheck(table, &entry.index, &rows, run)?,
            }
        }
        Ok(())
    }
}

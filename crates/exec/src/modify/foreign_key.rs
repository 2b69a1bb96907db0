//! Foreign keys, both directions.
//!
//! * A new key in the referring table: the referred row is sought with the latest snapshot and
//!   locked FOR KEY SHARE, which conflicts only with its deletion and with a change of its key.
//! * A referred key that goes away: rows that refer to it are sought with a snapshot taken after
//!   the change (whoever adds one holds the lock above until it commits, so the change has waited
//!   for it); then the key's action.
//!
//! Both happen at the statement's end, or with the checks that wait for the transaction's
//! ([`super::deferred`]).

use std::sync::Arc;

use access::heap::RowWait;
use access::{BTree, HeapTuple, LockResult};
use base::{Oid, RelId, Result, TupleId};
use catalog::publication::Touching;
use catalog::{Constraint, ForeignKey, ForeignKeyAction, Index, Table};
use sql::plan::RowRules;
use txn::{LockMode, LockTag, LockWait, RowLockMode, Snapshot};
use types::Datum;

use super::deferred::{Check, Waiting};
use super::errors;
use super::key_types::{KeyTypes, Referrers};
use super::pipeline::{self, Changed, Proposal, Source};
use super::writer::{Membership, Writer};
use crate::context::ExecContext;
use crate::language::{TriggerEvent, TriggerTiming};
use crate::modify::deferred::GoneKey;
use crate::ops::grouping::{RowSet, same_value};
use crate::partition::{Belongs, Router};
use crate::run::Run;
use crate::security::in_name_of;
use crate::table::{KeyCodec, TableHandle};
use crate::tally::Pages;

/// Keys to check before memory is given back in the midst of a statement.
const PENDING: usize = 8192;

/// What a statement does to a table: decides which foreign keys it can touch.
#[derive(Clone, Copy)]
pub enum Touched<'a> {
    /// Adds rows.
    Insert,
    /// Removes rows.
    Delete,
    /// Sets these columns (from 1).
    Update(&'a [(u16, sql::Expr)]),
    /// Anything.
    All,
}

impl Touched<'_> {
    /// Of an INSERT, UPDATE or DELETE.
    pub fn of(action: &sql::plan::ModifyAction) -> Touched<'_> {
        use sql::plan::ModifyAction;
        match action {
            ModifyAction::Insert { conflict: None, .. } => Touched::Insert,
            ModifyAction::Insert { conflict: Some(conflict), .. } => match conflict.update {
                Some(_) => Touched::All,
                None => Touched::Insert,
            },
            ModifyAction::Merge { .. } => Touched::All,
            ModifyAction::Delete { .. } => Touched::Delete,
            ModifyAction::Update { set, .. } => Touched::Update(set),
        }
    }

    /// Whether a key of the table itself over these columns can become another.
    fn outgoing(self, columns: &[u16]) -> bool {
        match self {
            Touched::Insert | Touched::All => true,
            Touched::Delete => false,
            Touched::Update(set) => set.iter().any(|(n, _)| columns.contains(n)),
        }
    }

    /// Whether a key that others refer to can go away.
    fn incoming(self, columns: &[u16]) -> bool {
        match self {
            Touched::Delete | Touched::All => true,
            Touched::Insert => false,
            Touched::Update(set) => set.iter().any(|(n, _)| columns.contains(n)),
        }
    }
}

/// A table's foreign keys and those that refer to it.
#[derive(Default)]
pub struct References {
    /// Of the table itself: constraint, and new keys to check.
    outgoing: Vec<Outgoing>,
    /// Of others (or itself) to it: and keys that have gone.
    incoming: Vec<Incoming>,
}

struct Outgoing {
    constraint: u32,
    name: String,
    key: ForeignKey,
    types: KeyTypes,
    parent: Arc<Table>,
    index: Arc<Index>,
    /// Checked when the transaction ends.
    deferred: bool,
    pending: RowSet,
}

struct Incoming {
    constraint: u32,
    name: String,
    key: ForeignKey,
    types: KeyTypes,
    child: Arc<Table>,
    /// NO ACTION is checked when the transaction ends.
    deferred: bool,
    /// See [`Referring::whole`].
    whole: Option<Arc<Table>>,
    pending: Vec<GoneKey>,
}

impl Outgoing {
    fn new(
        constraint: &Constraint,
        key: &ForeignKey,
        child: &Table,
        (parent, index): (&Arc<Table>, &Arc<Index>),
    ) -> Outgoing {
        Outgoing {
            constraint: constraint.oid,
            name: constraint.name.clone(),
            key: key.clone(),
            types: KeyTypes::new(key, child, parent),
            parent: parent.clone(),
            index: index.clone(),
            deferred: false,
            pending: RowSet::default(),
        }
    }

    /// Notes a row's new key. With NULLs in it there is nothing to check, but for MATCH FULL, where all
    /// columns are NULL or none.
    fn note(&mut self, row: &[Datum]) {
        let key = pick(row, &self.key.columns);
        let nulls = key.iter().filter(|v| v.is_null()).count();
        if nulls == 0 || self.key.match_full && nulls < key.len() {
            self.pending.insert(&key);
        }
    }
}

impl Incoming {
    fn new(
        constraint: &Constraint,
        key: &ForeignKey,
        child: &Arc<Table>,
        parent: &Table,
    ) -> Incoming {
        Incoming {
            constraint: constraint.oid,
            name: constraint.name.clone(),
            key: key.clone(),
            types: KeyTypes::new(key, child, parent),
            child: child.clone(),
            deferred: false,
            whole: None,
            pending: vec![],
        }
    }

    /// What is to be done about a key that is gone.
    fn action(&self, gone: &GoneKey) -> ForeignKeyAction {
        if gone.1.is_some() { self.key.on_update } else { self.key.on_delete }
    }
}

fn pick(row: &[Datum], columns: &[u16]) -> Vec<Datum> {
    columns.iter().map(|n| row[usize::from(*n) - 1].clone()).collect()
}

fn same_key(a: &[Datum], b: &[Datum], columns: &[u16]) -> bool {
    columns.iter().all(|n| same_value(&a[usize::from(*n) - 1], &b[usize::from(*n) - 1]))
}

fn lock_table(cx: &ExecContext<'_>, table: u32, mode: LockMode) -> Result<()> {
    let locks = &cx.tx.manager().locks;
    let tag = LockTag::Relation(Oid(cx.database.1), Oid(table));
    locks.lock(cx.tx.locks(), tag, mode, LockWait::Block)?;
    Ok(())
}

/// A foreign key that refers to a table, by the table's own columns.
struct Referring {
    constraint: Constraint,
    key: ForeignKey,
    /// The partitioned table that it names, when the table is a partition of it.
    whole: Option<Arc<Table>>,
}

/// Whether foreign keys refer to a table, or to one that it is a partition of.
fn is_referred_to(view: &catalog::Snapshot, table: &Table) -> bool {
    let above = |id: &u32| view.table(*id).is_some_and(|t| !t.referenced_by.is_empty());
    !table.referenced_by.is_empty()
        || table.bound.is_some() && view.partition_ancestors(table.oid).iter().any(above)
}

/// The foreign keys of tables with rows that refer to a table, or to one that it is a partition of.
fn referring(view: &catalog::Snapshot, table: &Table) -> Vec<(u32, Referring)> {
    let mut out = Vec::new();
    let mut add = |to: &Table, whole: Option<&Arc<Table>>| {
        for child in to.referenced_by.iter().filter_map(|id| view.table(*id)) {
            // Their partitions have parts of the key.
            if child.is_partitioned() {
                continue;
            }
            for (constraint, key) in child.foreign_keys().filter(|(_, k)| k.table == to.oid) {
                let mut key = key.clone();
                if whole.is_some() {
                    let numbers = crate::partition::numbers(to, table);
                    key.referenced.iter_mut().for_each(|n| *n = numbers[usize::from(*n) - 1]);
                }
                let (constraint, whole) = (constraint.clone(), whole.cloned());
                out.push((child.oid, Referring { constraint, key, whole }));
            }
        }
    };
    add(table, None);
    if table.bound.is_some() {
        for above in view.partition_ancestors(table.oid) {
            if let Some(above) = view.table(above) {
                add(above, Some(above));
            }
        }
    }
    out
}

impl References {
    /// Looks up those that matter, with locks on the other tables.
    ///
    /// # Errors
    /// Those of locking.
    pub fn open(
        table: &Table,
        touched: Touched<'_>,
        cx: &mut ExecContext<'_>,
    ) -> Result<References> {
        let mut references = References::default();
        if table.triggers_off || super::triggers::is_replica(cx) {
            return Ok(references);
        }
        for (constraint, key) in table.foreign_keys() {
            if !touched.outgoing(&key.columns) {
                continue;
            }
            lock_table(cx, key.table, LockMode::RowShare)?;
            let view = cx.catalog_tx.view();
            let (Some(parent), Some(index)) = (view.table(key.table), view.index(key.index)) else {
                continue;
            };
            let mut outgoing = Outgoing::new(constraint, key, table, (parent, index));
            outgoing.deferred = constraint.deferrable && cx.hooks.deferred().defers(constraint);
            references.outgoing.push(outgoing);
        }
        let view = cx.catalog_tx.view();
        if matches!(touched, Touched::Insert) || !is_referred_to(&view, table) {
            return Ok(references);
        }
        for (id, key) in referring(&view, table) {
            if !touched.incoming(&key.key.referenced) {
                continue;
            }
            lock_table(cx, id, LockMode::RowShare)?;
            let view = cx.catalog_tx.view();
            let Some(child) = view.table(id) else { continue };
            let mut incoming = Incoming::new(&key.constraint, &key.key, child, table);
            incoming.whole = key.whole;
            incoming.deferred =
                key.constraint.deferrable && cx.hooks.deferred().defers(&key.constraint);
            references.incoming.push(incoming);
        }
        Ok(references)
    }

    /// Notes a new row.
    pub fn inserted(&mut self, row: &[Datum]) {
        self.outgoing.iter_mut().for_each(|fk| fk.note(row));
    }

    /// Notes the keys of a row that have columns among those that an action set, to whatever value.
    fn assigned(&mut self, row: &[Datum], set: &[u16]) {
        let keys = self.outgoing.iter_mut();
        keys.filter(|fk| fk.key.columns.iter().any(|n| set.contains(n)))
            .for_each(|fk| fk.note(row));
    }

    /// Notes a changed row.
    pub fn updated(&mut self, old: &[Datum], new: &[Datum]) {
        for fk in &mut self.outgoing {
            if !same_key(old, new, &fk.key.columns) {
                fk.note(new);
            }
        }
        for fk in &mut self.incoming {
            if !same_key(old, new, &fk.key.referenced) {
                let new = pick(new, &fk.key.referenced);
                fk.pending.push((pick(old, &fk.key.referenced), Some(new)));
            }
        }
    }

    /// Notes a row that is gone. `moved`: what it is in another partition, which is an update to those who refer
    /// to the partitioned table.
    pub fn deleted(&mut self, old: &[Datum], moved: Option<&[Datum]>) {
        for fk in &mut self.incoming {
            let new = moved.filter(|_| fk.whole.is_some());
            if new.is_some_and(|new| same_key(old, new, &fk.key.referenced)) {
                continue;
            }
            let new = new.map(|row| pick(row, &fk.key.referenced));
            fk.pending.push((pick(old, &fk.key.referenced), new));
        }
    }

    /// Whether so many keys wait that they should be checked now. Keys that refer to the table
    /// itself wait for the statement's end.
    pub fn is_full(&self) -> bool {
        self.outgoing.iter().any(|fk| !fk.deferred && fk.pending.len() > PENDING)
    }

    /// Whether nothing refers to rows that go.
    pub fn ignores_deletes(&self) -> bool {
        self.incoming.is_empty()
    }

    /// Nothing to check.
    pub fn is_idle(&self) -> bool {
        self.outgoing.iter().all(|fk| fk.pending.len() == 0)
            && self.incoming.iter().all(|fk| fk.pending.is_empty())
    }
}

/// What everything that is committed, and all of the own transaction so far, looks like.
fn everything(run: &Run<'_, '_>) -> Snapshot {
    let mut snapshot = run.cx.tx.latest_snapshot();
    snapshot.command = run.cx.tx.command() + 1;
    snapshot
}

/// The same; above READ COMMITTED the transaction's own view of the others, by which a parent that came later is not
/// there and one that went later can't be locked.
fn own_view(run: &Run<'_, '_>) -> Snapshot {
    let snapshot = everything(run);
    match run.cx.tx.isolation().is_by_statement() {
        true => snapshot,
        false => Snapshot { command: snapshot.command, ..run.cx.tx.snapshot() },
    }
}

/// Checks the new keys that wait, but for those that refer to the table itself.
///
/// # Errors
/// `23503`.
pub fn check_parents(writer: &mut Writer, run: &mut Run<'_, '_>) -> Result<()> {
    let own = writer.target.handle.table.oid;
    for n in 0..writer.references.outgoing.len() {
        let fk = &writer.references.outgoing[n];
        if fk.parent.oid != own && !fk.deferred {
            check_outgoing(writer, n, run)?;
        }
    }
    Ok(())
}

/// The statement's end.
///
/// # Errors
/// `23503`, and whatever the actions raise.
pub fn finish(writer: &mut Writer, run: &mut Run<'_, '_>) -> Result<()> {
    sched::check_stack()?;
    defer(writer, run)?;
    if writer.references.incoming.iter().any(|fk| !fk.pending.is_empty()) {
        run.cx.tx.next_command();
    }
    for n in 0..writer.references.incoming.len() {
        let pending = std::mem::take(&mut writer.references.incoming[n].pending);
        let (parent, fk) = (&writer.target.handle, &writer.references.incoming[n]);
        for gone in &pending {
            key_gone(parent, fk, gone, run)?;
        }
    }
    for n in 0..writer.references.outgoing.len() {
        check_outgoing(writer, n, run)?;
    }
    Ok(())
}

/// Puts what need not be checked yet aside.
fn defer(writer: &mut Writer, run: &mut Run<'_, '_>) -> Result<()> {
    let table = writer.target.handle.table.oid;
    for fk in writer.references.outgoing.iter_mut().filter(|fk| fk.deferred) {
        let keys = std::mem::take(&mut fk.pending);
        if keys.len() > 0 {
            let what = Check::Referring(keys);
            Waiting::put_off(run.cx, table, fk.constraint, what)?;
        }
    }
    for fk in writer.references.incoming.iter_mut().filter(|fk| fk.deferred) {
        let (wait, now): (Vec<_>, Vec<_>) = std::mem::take(&mut fk.pending)
            .into_iter()
            .partition(|gone| fk.action(gone) == ForeignKeyAction::NoAction);
        fk.pending = now;
        if !wait.is_empty() {
            let what = Check::Referred(wait);
            Waiting::put_off(run.cx, table, fk.constraint, what)?;
        }
    }
    Ok(())
}

fn check_outgoing(writer: &mut Writer, n: usize, run: &mut Run<'_, '_>) -> Result<()> {
    let pending = std::mem::take(&mut writer.references.outgoing[n].pending);
    if pending.len() == 0 {
        return Ok(());
    }
    check_keys(&writer.target.handle, &writer.references.outgoing[n], &pending, run)
}

/// Each key must be there in the other table.
fn check_keys(
    child: &TableHandle,
    fk: &Outgoing,
    keys: &RowSet,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    let parent = TableHandle::open(run.cx.engine, &fk.parent, run.cx.format)?;
    for number in 0..keys.len() {
        sched::check_interrupts()?;
        let key = keys.row(number);
        let mixed = key.iter().any(Datum::is_null);
        let found = match (mixed, fk.parent.is_partitioned()) {
            (true, _) => false,
            (false, true) => lock_in_partition(fk, key, run)?,
            (false, false) => {
                let snapshot = own_view(run);
                lock_parent(fk, &parent, key, snapshot, run)?
            }
        };
        if found {
            continue;
        }
        if fk.deferred && find_rows(child, &fk.key.columns, key, true, run)?.is_empty() {
            // Whoever referred to it is gone by now.
            continue;
        }
        let table = &child.table;
        if mixed {
            return Err(errors::mixed_nulls(&run.cx.catalog_tx.view(), table, &fk.name));
        }
        let key = (&fk.key.columns[..], key);
        return Err(errors::missing_parent(run.cx, table, &fk.parent, &fk.name, key));
    }
    Ok(())
}

/// The checks of new keys that waited. A constraint that is gone by now demands nothing.
///
/// # Errors
/// `23503`.
pub fn check_deferred_keys(
    table: &Arc<Table>,
    constraint: u32,
    keys: &RowSet,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    let view = run.cx.catalog_tx.view();
    let Some((constraint, key)) = table.foreign_keys().find(|(c, _)| c.oid == constraint) else {
        return Ok(());
    };
    let (Some(parent), Some(index)) = (view.table(key.table), view.index(key.index)) else {
        return Ok(());
    };
    let mut fk = Outgoing::new(constraint, key, table, (parent, index));
    fk.deferred = true;
    let child = TableHandle::open(run.cx.engine, table, run.cx.format)?;
    check_keys(&child, &fk, keys, run)
}

/// The checks of keys that are gone from a table that others refer to, which waited.
///
/// # Errors
/// `23503`.
pub fn check_deferred_gone(
    table: &Arc<Table>,
    constraint: u32,
    keys: &[GoneKey],
    run: &mut Run<'_, '_>,
) -> Result<()> {
    let view = run.cx.catalog_tx.view();
    let parent = TableHandle::open(run.cx.engine, table, run.cx.format)?;
    for (child, key) in referring(&view, table) {
        let Some(child) = view.table(child).filter(|_| key.constraint.oid == constraint) else {
            continue;
        };
        let mut fk = Incoming::new(&key.constraint, &key.key, child, table);
        fk.whole = key.whole;
        keys.iter().try_for_each(|gone| key_gone(&parent, &fk, gone, run))?;
    }
    Ok(())
}

/// The key as a row of the referred table that has only those columns.
fn as_row(width: usize, columns: &[u16], key: &[Datum]) -> Vec<Datum> {
    let mut row = vec![Datum::Null; width];
    for (n, value) in columns.iter().zip(key) {
        row[usize::from(*n) - 1] = value.clone();
    }
    row
}

/// The partition of a partitioned table that has a key of its own columns' types, with the key's columns there; None: there is none.
fn partition_with(
    whole: &Arc<Table>,
    columns: &[u16],
    key: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<Option<(Arc<Table>, Vec<u16>)>> {
    let row = as_row(whole.columns.len(), columns, key);
    let mut router = crate::partition::Router::reading(whole);
    let Some(id) = router.find(&row, run)? else { return Ok(None) };
    let part = crate::partition::open(run.cx, id, LockMode::RowShare)?;
    let numbers = crate::partition::numbers(whole, &part);
    let columns = columns.iter().map(|n| numbers[usize::from(*n) - 1]).collect();
    Ok(Some((part, columns)))
}

/// As [`lock_parent`], in the partition where the key belongs.
fn lock_in_partition(fk: &Outgoing, key: &[Datum], run: &mut Run<'_, '_>) -> Result<bool> {
    let Some(row) = fk.types.referred(key, run.cx.format)? else { return Ok(false) };
    let Some((part, referenced)) = partition_with(&fk.parent, &fk.key.referenced, &row, run)?
    else {
        return Ok(false);
    };
    let view = run.cx.catalog_tx.view();
    let Some(index) = view.part_of_index(&part, fk.index.oid).cloned() else { return Ok(false) };
    let own = Outgoing {
        constraint: fk.constraint,
        name: fk.name.clone(),
        key: ForeignKey { referenced, ..fk.key.clone() },
        types: fk.types.clone(),
        parent: part.clone(),
        index,
        deferred: fk.deferred,
        pending: RowSet::default(),
    };
    let handle = TableHandle::open(run.cx.engine, &part, run.cx.format)?;
    // PostgreSQL looks for new rows in partitioned tables at every level.
    let snapshot = everything(run);
    lock_parent(&own, &handle, key, snapshot, run)
}

/// Whether a key that has gone from a table is there again, maybe in another partition.
fn is_there_again(
    parent: &TableHandle,
    fk: &Incoming,
    key: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<bool> {
    let Some(whole) = &fk.whole else {
        return Ok(!find_rows(parent, &fk.key.referenced, key, true, run)?.is_empty());
    };
    let back = crate::partition::numbers(&parent.table, whole);
    let columns: Vec<u16> = fk.key.referenced.iter().map(|n| back[usize::from(*n) - 1]).collect();
    let Some((part, columns)) = partition_with(whole, &columns, key, run)? else {
        return Ok(false);
    };
    let handle = TableHandle::open(run.cx.engine, &part, run.cx.format)?;
    Ok(!find_rows(&handle, &columns, key, true, run)?.is_empty())
}

/// Finds the referred row and locks it; false when there is none in the snapshot.
fn lock_parent(
    fk: &Outgoing,
    parent: &TableHandle,
    key: &[Datum],
    snapshot: Snapshot,
    run: &mut Run<'_, '_>,
) -> Result<bool> {
    let Some(key) = fk.types.referred(key, run.cx.format)? else {
        return Ok(false);
    };
    let row = as_row(fk.parent.columns.len(), &fk.key.referenced, &key);
    let codec = KeyCodec::new(&fk.parent, &fk.index);
    let mut bytes = Vec::with_capacity(32);
    codec.encode(&row, &mut bytes)?;
    let tree = BTree::open(&run.cx.engine.storage, RelId(fk.index.rel));
    // The snapshot is older than the look-up: a version that a running update takes out of these roots later is
    // still seen, and the lock follows it to the newest one.
    let before = Pages::now(run.cx.task());
    let mut roots = Vec::new();
    tree.lookup(run.cx.tx, &bytes, |root| {
        roots.push(root);
        true
    })?;
    let tx = run.cx.tx;
    let counts = run.cx.tally.of(fk.index.oid);
    counts.scans += 1;
    counts.returned += roots.len() as u64;
    let before = before.count(tx.locks().task(), counts);
    let result = lock_first(fk, parent, &roots, (&snapshot, &row), run);
    before.count(tx.locks().task(), run.cx.tally.of(fk.parent.oid));
    result
}

/// Locks the first visible row; false when there is none with this key any more.
fn lock_first(
    fk: &Outgoing,
    parent: &TableHandle,
    roots: &[TupleId],
    (snapshot, row): (&Snapshot, &[Datum]),
    run: &mut Run<'_, '_>,
) -> Result<bool> {
    let tx = run.cx.tx;
    for &root in roots {
        let Some(tid) = parent.heap.fetch(tx, snapshot, root, |tid, _| tid)? else {
            continue;
        };
        run.cx.tally.of(fk.index.oid).fetched += 1;
        let mode = RowLockMode::KeyShare;
        match parent.heap.lock(tx, snapshot, tid, root, mode, RowWait::Block)? {
            LockResult::Locked => return Ok(true),
            LockResult::Changed { newest } => {
                let now = parent.decode_all(&newest.data)?;
                if same_key(&now, row, &fk.key.referenced) {
                    return Ok(true);
                }
            }
            LockResult::Gone | LockResult::WouldBlock => {}
        }
    }
    Ok(false)
}

/// A row with the places of its version and of its root.
type FoundRow = (TupleId, TupleId, Vec<Datum>);

/// Rows of a table with these values, with their places.
fn find_rows(
    handle: &TableHandle,
    columns: &[u16],
    key: &[Datum],
    first_only: bool,
    run: &mut Run<'_, '_>,
) -> Result<Vec<FoundRow>> {
    let wanted = as_row(handle.table.columns.len(), columns, key);
    let view = run.cx.catalog_tx.view();
    let indexes = view.indexes_of(&handle.table);
    let covering = indexes.iter().find(|index| {
        index.is_plain()
            && index.method.is_btree()
            && !index.invalid
            && index.columns.len() >= columns.len()
            && index.columns[..columns.len()].iter().all(|c| columns.contains(&c.column))
    });
    let snapshot = everything(run);
    let mut found = Vec::new();
    match covering {
        Some(index) => {
            let mut codec = KeyCodec::new(&handle.table, index);
            codec.columns.truncate(columns.len());
            let mut bytes = Vec::new();
            codec.encode(&wanted, &mut bytes)?;
            let tree = BTree::open(&run.cx.engine.storage, RelId(index.rel));
            run.cx.tally.of(index.oid).scans += 1;
            let mut cursor = tree.scan(access::KeyRange::prefix(&bytes), false);
            while let Some((_, root)) = cursor.next(run.cx.tx)? {
                sched::check_interrupts()?;
                run.cx.tally.of(index.oid).returned += 1;
                let hit = handle
                    .heap
                    .fetch(run.cx.tx, &snapshot, root, |tid, data| (tid, data.to_vec()))?;
                if let Some((tid, data)) = hit {
                    run.cx.tally.of(index.oid).fetched += 1;
                    found.push((tid, root, handle.decode_all(&data)?));
                    if first_only {
                        return Ok(found);
                    }
                }
            }
        }
        None => {
            let same = |row: &[Datum]| Ok(same_key(row, &wanted, columns));
            found = search(handle, &snapshot, first_only, &same, run)?;
        }
    }
    Ok(found)
}

/// Rows that fit, with their places, by a look at every row of a table.
fn search(
    handle: &TableHandle,
    snapshot: &Snapshot,
    first_only: bool,
    fits: &dyn Fn(&[Datum]) -> Result<bool>,
    run: &mut Run<'_, '_>,
) -> Result<Vec<FoundRow>> {
    let (mut found, mut failed) = (Vec::new(), None);
    let mut scan = handle.heap.scan(snapshot, None);
    let counts = run.cx.tally.of(handle.table.oid);
    counts.scans += 1;
    loop {
        sched::check_interrupts()?;
        let more = scan.next_page(run.cx.tx, |tid, root, data| {
            counts.returned += 1;
            let row = handle.decode_all(data).and_then(|row| Ok((fits(&row)?, row)));
            match row {
                Ok((true, row)) => found.push((tid, root, row)),
                Ok((false, _)) => {}
                Err(error) => failed = Some(error),
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if !more || first_only && !found.is_empty() {
            return Ok(found);
        }
    }
}

/// Rows that refer to a key, with their places.
fn find_referring(
    child: &TableHandle,
    fk: &Incoming,
    key: &[Datum],
    first_only: bool,
    run: &mut Run<'_, '_>,
) -> Result<Vec<FoundRow>> {
    let format = run.cx.format;
    match fk.types.referrers(key, format)? {
        Referrers::None => Ok(vec![]),
        Referrers::With(own) => find_rows(child, &fk.key.columns, &own, first_only, run),
        Referrers::Anywhere => {
            let columns = &fk.key.columns;
            let refers = |row: &[Datum]| fk.types.refers(&pick(row, columns), key, format);
            let snapshot = everything(run);
            search(child, &snapshot, first_only, &refers, run)
        }
    }
}

/// A referred key went away: does what the foreign key says.
fn key_gone(
    parent: &TableHandle,
    fk: &Incoming,
    gone: &GoneKey,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    let (old, new) = (&gone.0[..], gone.1.as_deref());
    if old.iter().any(Datum::is_null) {
        return Ok(());
    }
    let action = fk.action(gone);
    // Another row may have the key by now.
    if action == ForeignKeyAction::NoAction && is_there_again(parent, fk, old, run)? {
        return Ok(());
    }
    let child = TableHandle::open(run.cx.engine, &fk.child, run.cx.format)?;
    let forbids = matches!(action, ForeignKeyAction::NoAction | ForeignKeyAction::Restrict);
    let rows = find_referring(&child, fk, old, forbids, run)?;
    if rows.is_empty() {
        return Ok(());
    }
    let still_referenced = |run: &mut Run<'_, '_>| {
        if let (Some(whole), Some(new)) = (&fk.whole, new) {
            let back = crate::partition::numbers(&parent.table, whole);
            let columns: Vec<u16> =
                fk.key.referenced.iter().map(|n| back[usize::from(*n) - 1]).collect();
            let to = partition_with(whole, &columns, new, run)?;
            if to.is_some_and(|(part, _)| part.oid != parent.table.oid) {
                // The row has moved to another partition: a change of the whole.
                let key = (&columns[..], old);
                return Err(errors::still_referenced(run.cx, whole, &fk.child, &fk.name, key));
            }
        }
        let key = (&fk.key.referenced[..], old);
        Err(errors::still_referenced(run.cx, &parent.table, &fk.child, &fk.name, key))
    };
    if forbids {
        return still_referenced(run);
    }
    let columns = match &fk.key.set_columns[..] {
        some @ [_, ..] if new.is_none() => some,
        _ => &fk.key.columns,
    };
    let owner = fk.child.owner;
    let values = in_name_of(run, owner, |run| replacement(fk, action, columns, new, run))?;
    if action == ForeignKeyAction::SetDefault
        && let Some(values) = &values
        && values.len() == old.len()
        && fk.types.refers(values, old, run.cx.format)?
        && !is_there_again(parent, fk, old, run)?
    {
        // The default is the key that goes away.
        return still_referenced(run);
    }
    let set = values.as_deref().map(|v| (columns, v));
    in_name_of(run, owner, |run| act(fk, old, set, rows, run))
}

/// What the referring columns become; None: the row is deleted.
fn replacement(
    fk: &Incoming,
    action: ForeignKeyAction,
    columns: &[u16],
    new: Option<&[Datum]>,
    run: &mut Run<'_, '_>,
) -> Result<Option<Vec<Datum>>> {
    let mut values = match (action, new) {
        (ForeignKeyAction::Cascade, None) => return Ok(None),
        (ForeignKeyAction::Cascade, Some(new)) => {
            fk.types.assigned((&fk.child, &fk.key.columns), new, run.cx.format)?
        }
        (ForeignKeyAction::SetDefault, _) => {
            let mut values = Vec::new();
            // The defaults are those of the table that has the key as a whole.
            let whole = whole_of_key(&run.cx.catalog_tx.view(), &fk.child, fk.constraint);
            for n in columns {
                let name = &fk.child.columns[usize::from(*n) - 1].name;
                let above = whole.as_ref().and_then(|t| Some((t, t.column(name)?.0)));
                let (table, n) = above.unwrap_or((&fk.child, *n));
                values.push(crate::spi::default_value(table, n, run.cx)?);
            }
            values
        }
        _ => vec![Datum::Null; columns.len()],
    };
    for (n, value) in columns.iter().zip(&mut values) {
        let ty = Oid(fk.child.columns[usize::from(*n) - 1].ty);
        if types::user::has_domains(ty) {
            *value = crate::domain::check(ty, std::mem::take(value), run)?;
        }
    }
    Ok(Some(values))
}

/// Deletes or changes the referring rows, and then what depends on them.
fn act(
    fk: &Incoming,
    old_key: &[Datum],
    set: Option<(&[u16], &[Datum])>,
    rows: Vec<FoundRow>,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    let table = &fk.child;
    lock_table(run.cx, table.oid, LockMode::RowExclusive)?;
    let view = run.cx.catalog_tx.view();
    let touching = if set.is_some() { Touching::Update } else { Touching::Delete };
    view.check_published(table, touching)?;
    let indexes = view.indexes_of(table);
    let mut writer = Writer::open(table, &indexes, run.cx)?;
    let whole = whole_of_key(&run.cx.catalog_tx.view(), table, fk.constraint);
    match &whole {
        Some(whole) => {
            let belongs = Belongs::open(table, whole.oid, run.cx)?;
            writer.membership = belongs.map_or(Membership::Any, Membership::Moves);
        }
        None => writer.check_membership(run.cx)?,
    }
    writer.references = References::open(table, Touched::All, run.cx)?;
    let mut checks = if set.is_some() || !table.triggers.is_empty() {
        crate::spi::check_expressions(table, run.cx)?
    } else {
        Default::default()
    };
    writer.keys.clone_from(&checks.keys);
    checks.written = set.map_or_else(Vec::new, |(columns, _)| columns.to_vec());
    let (event, columns_set) = match set {
        Some((columns, _)) => (TriggerEvent::Update, columns.to_vec()),
        None => (TriggerEvent::Delete, Vec::new()),
    };
    writer.open_triggers(&checks, Some(columns_set), run.cx);
    // BEFORE triggers fire inside of the foreign key's, as PostgreSQL counts.
    let depth = run.cx.hooks.deferred().trigger_depth;
    run.cx.hooks.deferred().trigger_depth = depth + 1;
    let result = change_referring(&mut writer, &checks, (fk, old_key), (event, set), rows, run);
    run.cx.hooks.deferred().trigger_depth = depth;
    let moved = result?;
    if let Some(whole) = whole.filter(|_| !moved.is_empty()) {
        insert_moved(table, &whole, moved, run)?;
    }
    writer.finish(run)?;
    writer.statement_triggers(event, TriggerTiming::After, run)
}

/// The partitioned table whose foreign key a partition's is a part of.
fn whole_of_key(view: &catalog::Snapshot, table: &Table, constraint: u32) -> Option<Arc<Table>> {
    let mut part = table.constraints.iter().find(|c| c.oid == constraint)?.parent;
    let mut whole = None;
    for id in view.partition_ancestors(table.oid) {
        let above = view.table(id)?;
        let Some(own) = above.constraints.iter().find(|c| c.oid == part && part != 0) else {
            break;
        };
        part = own.parent;
        whole = Some(above.clone());
    }
    whole
}

/// Rows that an action has taken out of a partition go where they belong.
fn insert_moved(
    from: &Arc<Table>,
    whole: &Arc<Table>,
    rows: Vec<Vec<Datum>>,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    let mut router = Router::new(whole);
    let back = crate::partition::numbers(whole, from);
    for row in rows {
        sched::check_interrupts()?;
        let value = |n: &u16| match n {
            0 => Datum::Null,
            n => row[usize::from(*n) - 1].clone(),
        };
        let row: Vec<Datum> = back.iter().map(value).collect();
        let id = router.route(&row, run)?;
        let part = crate::partition::open(run.cx, id, LockMode::RowExclusive)?;
        let numbers = crate::partition::numbers(whole, &part);
        let mut own = vec![Datum::Null; part.columns.len()];
        for (value, n) in row.into_iter().zip(&numbers) {
            if *n > 0 {
                own[usize::from(*n) - 1] = value;
            }
        }
        let indexes = run.cx.catalog_tx.view().indexes_of(&part);
        let mut writer = Writer::open(&part, &indexes, run.cx)?;
        writer.references = References::open(&part, Touched::All, run.cx)?;
        let checks = crate::spi::check_expressions(&part, run.cx)?;
        writer.keys.clone_from(&checks.keys);
        writer.open_triggers(&checks, None, run.cx);
        pipeline::insert_moved(&mut writer, &mut own, &checks, run)?;
        writer.finish(run)?;
    }
    Ok(())
}

/// The changes themselves; gives the rows that belong into another partition now.
fn change_referring(
    writer: &mut Writer,
    checks: &RowRules,
    (fk, old_key): (&Incoming, &[Datum]),
    (event, set): (TriggerEvent, Option<(&[u16], &[Datum])>),
    rows: Vec<FoundRow>,
    run: &mut Run<'_, '_>,
) -> Result<Vec<Vec<Datum>>> {
    let mut moved = Vec::new();
    writer.statement_triggers(event, TriggerTiming::Before, run)?;
    let (snapshot, own) = (everything(run), own_view(run));
    let by_statement = run.cx.tx.isolation().is_by_statement();
    for (tid, root, row) in rows {
        sched::check_interrupts()?;
        // A version that others made since the transaction's snapshot: it must not be changed unseen.
        let seen = |tx| writer.target.handle.heap.fetch(tx, &own, root, |tid, _| tid);
        if !by_statement && seen(run.cx.tx)? != Some(tid) {
            base::bail!(
                T_R_SERIALIZATION_FAILURE,
                "could not serialize access due to concurrent update"
            );
        }
        let mut source = ReferringRow { fk, old_key, set, tid, root, row };
        let changed = pipeline::change(writer, checks, &mut source, &snapshot, run)?;
        match (changed, set) {
            // The default may be the very key that went away.
            (Changed::Row(new), Some((columns, _))) => writer.references.assigned(&new, columns),
            (Changed::Moved(new), _) => moved.push(new),
            _ => {}
        }
    }
    Ok(moved)
}

/// A row that refers to a key that is gone.
struct ReferringRow<'p> {
    fk: &'p Incoming,
    /// The key that is gone.
    old_key: &'p [Datum],
    /// What these columns become; None: it is deleted.
    set: Option<(&'p [u16], &'p [Datum])>,
    tid: TupleId,
    root: TupleId,
    row: Vec<Datum>,
}

impl Source for ReferringRow<'_> {
    fn propose(&mut self, _writer: &Writer, _run: &mut Run<'_, '_>) -> Result<Option<Proposal>> {
        let new = self.set.map(|(changed, values)| {
            let mut new = self.row.clone();
            for (n, value) in changed.iter().zip(values) {
                new[usize::from(*n) - 1] = value.clone();
            }
            new
        });
        Ok(Some(Proposal { tid: self.tid, root: self.root, old: self.row.clone(), new }))
    }

    fn follow(
        &mut self,
        writer: &Writer,
        newest: &HeapTuple,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        (self.tid, self.root) = (newest.tid, newest.root);
        self.row = writer.target.handle.decode_all(&newest.data)?;
        self.fk.types.refers(&pick(&self.row, &self.fk.key.columns), self.old_key, run.cx.format)
    }
}

//! INSERT … ON CONFLICT.
//!
//! ```text
//! look for the row's key in the deciding indexes ── found ──► DO NOTHING, or lock that row and update it
//!       ▲                    │ not there                        (it changed meanwhile: look again)
//!       │                    ▼
//!       └── too late ── insert the row, then its keys
//! ```
//!
//! Between the look and the insert somebody else may insert the key. The unique check of the index
//! decides, under its leaf's latch, who came first; who came too late ends its own row again, which
//! is then nobody's rival ([`access::Heap::rival`]), and begins anew. So of any number of sessions
//! with one key, one inserts and the others see its row: nobody fails with a duplicate key.
//!
//! Above READ COMMITTED a row that the snapshot doesn't see is a serialization failure, as in
//! PostgreSQL.

use access::heap::RowWait;
use access::{HeapTuple, LockResult, Rival};
use base::{Error, Oid, Result, TupleId, Xid, err};
use sql::plan::{Conflict, ConflictUpdate, Modify, ModifyChild, RowRules};
use txn::{LockWait, RowLockMode};
use types::{Batch, Datum};

use super::ModifyOp;
use super::pipeline::{self, Changed, Proposal, Source};
use super::policies;
use super::writer::Writer;
use crate::eval;
use crate::rows::{self, Row};
use crate::run::Run;

/// What became of a row that is there already.
enum Resolved {
    /// Updated: the new row.
    Updated(Vec<Datum>),
    /// Left as it is.
    Kept,
    /// It changed or went meanwhile.
    Again,
}

impl ModifyOp {
    /// Inserts a batch, row by row.
    pub(super) fn insert_or_resolve(
        &mut self,
        modify: &Modify,
        conflict: &Conflict,
        batch: &Batch,
        types: &[Oid],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let counting;
        let conflict = if conflict.assumed.is_empty() {
            conflict
        } else {
            counting = that_count(conflict, run)?;
            &counting
        };
        if self.parts.is_some() {
            return self.insert_or_resolve_routed(modify, conflict, batch, types, run);
        }
        let deferrable = |place: &&usize| self.writer.target.indexes[**place].index.deferrable;
        if let Some(place) = conflict.arbiters.iter().find(deferrable) {
            return Err(deferrable_arbiter(&self.writer, *place, run));
        }
        for n in 0..batch.rows {
            let mut row = rows::get(batch, n, types);
            if !pipeline::prepare_insert(&mut self.writer, &mut row, &modify.checks, run)? {
                continue;
            }
            let how = (modify, &modify.checks, None);
            if let Some((row, xmax)) = insert_one(&mut self.writer, how, conflict, row, run)? {
                self.changed += 1;
                self.give_back(modify, row, &[Datum::Oid(xmax)], run)?;
            }
        }
        Ok(())
    }
}

impl ModifyOp {
    /// The same for a partitioned table, by the partitions' own indexes.
    fn insert_or_resolve_routed(
        &mut self,
        modify: &Modify,
        conflict: &Conflict,
        batch: &Batch,
        types: &[Oid],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        for n in 0..batch.rows {
            let row = rows::get(batch, n, types);
            let Some(parts) = &mut self.parts else { return Ok(()) };
            let at = parts.route(modify, &row, run)?;
            let part = parts.at(at);
            let mut own = part.own(row);
            let (child, writer) = (&part.child, &mut part.writer);
            if !pipeline::prepare_insert(writer, &mut own, &child.checks, run)? {
                continue;
            }
            let view = run.cx.catalog_tx.view();
            let place = |at: &usize| {
                let part = view.part_of_index(&child.table, modify.indexes[*at].oid)?;
                child.indexes.iter().position(|i| i.oid == part.oid)
            };
            let arbiters: Vec<usize> = match conflict.any {
                true => (0..child.indexes.len())
                    .filter(|n| child.indexes[*n].unique || !child.indexes[*n].exclude.is_empty())
                    .collect(),
                false => conflict.arbiters.iter().filter_map(place).collect(),
            };
            let any = conflict.any;
            let update = conflict.update.clone();
            let conflict = Conflict { arbiters, assumed: Vec::new(), any, update };
            let deferrable = |place: &&usize| child.indexes[**place].deferrable;
            if let Some(place) = conflict.arbiters.iter().find(deferrable) {
                return Err(deferrable_arbiter(writer, *place, run));
            }
            let how = (modify, &child.checks, Some(child));
            let changed = insert_one(writer, how, &conflict, own, run)?;
            if let Some((row, xmax)) = changed {
                let (row, oid) = (part.named(row), part.child.table.oid);
                self.changed += 1;
                self.give_back(modify, row, &[Datum::Oid(xmax), Datum::Oid(oid)], run)?;
            }
        }
        Ok(())
    }
}

/// The same with the indexes only that the values of parameters let count.
///
/// # Errors
/// `42P10` when none is left.
fn that_count(conflict: &Conflict, run: &Run<'_, '_>) -> Result<Conflict> {
    let counts = |place: &usize| {
        let mut assumed = conflict.assumed.iter().filter(|(n, _)| n == place).flat_map(|(_, a)| a);
        assumed.all(|(n, value)| run.params.get(*n as usize) == Some(value))
    };
    let arbiters: Vec<usize> = conflict.arbiters.iter().copied().filter(|n| counts(n)).collect();
    if arbiters.is_empty() {
        return Err(sql::no_arbiter());
    }
    Ok(Conflict { arbiters, assumed: Vec::new(), ..conflict.clone() })
}

/// The statement, the rules of the table that its rows are in, and that table if it is a partition.
type How<'p> = (&'p Modify, &'p RowRules, Option<&'p ModifyChild>);

/// `55000`: whether there is a conflict must be known at once.
fn deferrable_arbiter(writer: &Writer, place: usize, run: &mut Run<'_, '_>) -> Error {
    let table = &writer.target.handle.table;
    let schema = super::errors::schema_name(&run.cx.catalog_tx.view(), table);
    err!(
        OBJECT_NOT_IN_PREREQUISITE_STATE,
        "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters"
    )
    .table(&schema, &table.name)
    .constraint(&writer.target.indexes[place].index.name)
}

/// Inserts one row or resolves its conflict; the row that is there now if it was changed, and its
/// `xmax`.
fn insert_one(
    writer: &mut Writer,
    how: How<'_>,
    conflict: &Conflict,
    row: Vec<Datum>,
    run: &mut Run<'_, '_>,
) -> Result<Option<(Vec<Datum>, u32)>> {
    loop {
        sched::check_interrupts()?;
        let Some(root) = find(writer, conflict, &row, run)? else {
            if writer.insert_unless(&row, &conflict.arbiters, run)? {
                return Ok(Some((row, 0)));
            }
            continue;
        };
        let Some(found) = writer.target.handle.heap.live_version(run.cx.tx, root)? else {
            continue;
        };
        let Some(update) = &conflict.update else {
            check_seen(writer, &found, run)?;
            return Ok(None);
        };
        match resolve(writer, how, update, &found, &row, run)? {
            Resolved::Updated(new) => return Ok(Some((new, run.cx.tx.xid()?.0 as u32))),
            Resolved::Kept => return Ok(None),
            Resolved::Again => {}
        }
    }
}

/// The chain of a live row with one of the row's keys. Waits for transactions that are about to
/// decide.
fn find(
    writer: &Writer,
    conflict: &Conflict,
    row: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<Option<TupleId>> {
    let computed = writer.computed(row, run)?;
    let row = computed.as_deref().unwrap_or(row);
    let tx = run.cx.tx;
    let heap = &writer.target.handle.heap;
    let mut key = Vec::new();
    for place in &conflict.arbiters {
        let entry = &writer.target.indexes[*place];
        key.clear();
        if !entry.codec.holds(row) {
            continue;
        }
        if !entry.index.exclude.is_empty() {
            let own = super::writer::excluding(&writer.target, entry, &writer.keys);
            match own.met_for_sure(row, None, run)? {
                Some((root, _)) => return Ok(Some(root)),
                None => continue,
            }
        }
        if entry.codec.encode(row, &mut key)? && !entry.index.nulls_equal {
            continue;
        }
        loop {
            let mut candidates = Vec::new();
            entry.tree()?.lookup(tx, &key, |tid| {
                candidates.push(tid);
                true
            })?;
            let mut rival = None;
            for tid in candidates {
                match heap.rival(tx, tid)? {
                    Rival::Live => return Ok(Some(tid)),
                    Rival::InProgress(xid) => rival = Some(xid),
                    Rival::Dead | Rival::Removed => {}
                }
            }
            let Some(xid) = rival else { break };
            tx.manager().locks.wait_for_xid(tx.locks(), xid, LockWait::Block)?;
        }
    }
    Ok(None)
}

/// Above READ COMMITTED the snapshot must see the row that stands in the way. What a serializable transaction does depends on
/// that row, which counts as read.
fn check_seen(writer: &Writer, found: &HeapTuple, run: &Run<'_, '_>) -> Result<()> {
    let (tx, xmin) = (run.cx.tx, Xid(found.system.xmin));
    let seen = tx.isolation().is_by_statement() || tx.is_mine(xmin) || tx.sees(xmin, &run.snapshot);
    if seen {
        if tx.tracks_reads() {
            writer.target.handle.heap.fetch(tx, &run.snapshot, found.root, |_, _| ())?;
        }
        return Ok(());
    }
    Err(err!(T_R_SERIALIZATION_FAILURE, "could not serialize access due to concurrent update"))
}

/// DO UPDATE of the row that was found.
fn resolve(
    writer: &mut Writer,
    (modify, rules, part): How<'_>,
    update: &ConflictUpdate,
    found: &HeapTuple,
    row: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<Resolved> {
    let tx = run.cx.tx;
    if tx.is_mine(Xid(found.system.xmin)) && found.system.cmin >= run.snapshot.command {
        return Err(err!(
            CARDINALITY_VIOLATION,
            "ON CONFLICT DO UPDATE command cannot affect row a second time"
        )
        .hint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values."));
    }
    check_seen(writer, found, run)?;
    let snapshot = run.snapshot;
    let mode = lock_mode(modify, update);
    let heap = &writer.target.handle.heap;
    match heap.lock(tx, &snapshot, found.tid, found.root, mode, RowWait::Block)? {
        LockResult::Locked => {}
        LockResult::Changed { .. } | LockResult::Gone | LockResult::WouldBlock => {
            return Ok(Resolved::Again);
        }
    }
    let old = writer.target.handle.decode_all(&found.data)?;
    let named = |row: &[Datum]| match part {
        Some(child) => super::inherited::as_named(child, row),
        None => row.to_vec(),
    };
    let mut both = named(&old);
    both.extend(named(row));
    // Before the statement's own condition, whose functions could tell of rows that are hidden from the role.
    check_visible(rules, &old, run)?;
    if let Some(condition) = &update.condition
        && !eval::holds(condition, Row::Values(&both), run)?
    {
        return Ok(Resolved::Kept);
    }
    let mut new = old.clone();
    for (column, expr) in &update.set {
        let own = part.map_or(*column, |child| child.numbers[usize::from(*column) - 1]);
        new[usize::from(own) - 1] = eval::eval(expr, Row::Values(&both), run)?;
    }
    let (tid, root) = (found.tid, found.root);
    let mut row = LockedRow(Some(Proposal { tid, root, old, new: Some(new) }));
    match pipeline::change(writer, rules, &mut row, &snapshot, run)? {
        Changed::Moved(_) => Err(err!(FEATURE_NOT_SUPPORTED, "invalid ON UPDATE specification")
            .detail(
                "The result tuple would appear in a different partition than the original tuple.",
            )),
        Changed::Row(new) => Ok(Resolved::Updated(new)),
        Changed::Nothing if row.0.is_none() => Ok(Resolved::Kept),
        _ => Ok(Resolved::Again),
    }
}

/// Refuses a row in conflict that policies or a view hide.
fn check_visible(rules: &RowRules, old: &[Datum], run: &mut Run<'_, '_>) -> Result<()> {
    if let Some(policies) = &rules.policies {
        policies::check(policies, &policies.conflict, policies::Row::Conflicting, old, run)?;
    }
    for (view, condition) in &rules.shown {
        if !eval::holds(condition, Row::Values(old), run)? {
            return Err(err!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "conflicting row is not visible through view \"{view}\""
            ));
        }
    }
    Ok(())
}

/// The row that is locked already, and what DO UPDATE makes of it; a newer version is a new conflict.
struct LockedRow(Option<Proposal>);

impl Source for LockedRow {
    fn propose(&mut self, _writer: &Writer, _run: &mut Run<'_, '_>) -> Result<Option<Proposal>> {
        Ok(self.0.take())
    }

    fn follow(
        &mut self,
        _writer: &Writer,
        newest: &HeapTuple,
        _run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let (tid, root) = (newest.tid, newest.root);
        self.0 = Some(Proposal { tid, root, old: Vec::new(), new: None });
        Ok(false)
    }
}

/// As strong a lock as the update will need.
fn lock_mode(modify: &Modify, update: &ConflictUpdate) -> RowLockMode {
    let sets = |column: u16| update.set.iter().any(|(n, _)| *n == column);
    let key = modify.indexes.iter().any(|i| i.unique && i.columns.iter().any(|c| sets(c.column)));
    if key { RowLockMode::Update } else { RowLockMode::NoKeyUpdate }
}

//! The way of a row into its table, the same for INSERT, UPDATE, DELETE, MERGE, ON CONFLICT, the actions of
//! foreign keys, and COPY.
//!
//! ```text
//!   before-row triggers ──► generated columns, policies, NOT NULL, CHECK, CHECK OPTION ──► heap ──► indexes
//!          │ skipped                                                                                  │
//!          ▼                                                                                          ▼
//!       nothing happens          queue of after-events, keys for foreign keys and unique checks
//! ```
//!
//! * What is particular to a statement is a [`Source`]: what a row's version becomes, and whether a newer version
//!   is still to be changed. The loop that follows a row to its newest version is [`change`], once.
//! * A BEFORE trigger sees the row's newest version, which is locked before it fires; so it fires once a row.
//! * [`Writer::finish`] ends the statement: unique and foreign keys, then the after-events.

use access::{HeapTuple, LockResult};
use base::{Result, TupleId, Xid, err};
use sql::plan::RowRules;
use txn::{RowLockMode, Snapshot};
use types::Datum;

use super::writer::{Change, Membership, Writer};
use crate::language::TriggerEvent;
use crate::run::Run;

/// A version of a row, and what a statement makes of it.
pub struct Proposal {
    /// Its place.
    pub tid: TupleId,
    /// Its chain's root.
    pub root: TupleId,
    /// Its values, in table order.
    pub old: Vec<Datum>,
    /// The new row, not checked yet; None: it is deleted.
    pub new: Option<Vec<Datum>>,
}

/// A statement's side of the change of one row.
pub trait Source {
    /// What becomes of the row as it is now known; None: it is left alone.
    ///
    /// # Errors
    /// Those of the statement's expressions.
    fn propose(&mut self, writer: &Writer, run: &mut Run<'_, '_>) -> Result<Option<Proposal>>;

    /// Takes a newer version for the one that was known; false: the row is left alone.
    ///
    /// # Errors
    /// Those of the statement's conditions.
    fn follow(
        &mut self,
        writer: &Writer,
        newest: &HeapTuple,
        run: &mut Run<'_, '_>,
    ) -> Result<bool>;
}

/// What became of a row.
pub enum Changed {
    /// Changed: the new row, of a delete the old one.
    Row(Vec<Datum>),
    /// Taken out of its partition: the new row belongs into another one.
    Moved(Vec<Datum>),
    /// Left as it is: its condition holds no longer, or a trigger says so.
    Nothing,
    /// It is gone.
    Gone,
    /// This very command has changed it before.
    SelfChanged,
    /// As [`Change::Busy`].
    Busy,
}

/// The BEFORE INSERT triggers of a row, then its checks; false: a trigger says not to insert it.
///
/// # Errors
/// As [`Writer::check_row`], and the triggers'.
pub fn prepare_insert(
    writer: &mut Writer,
    row: &mut [Datum],
    rules: &RowRules,
    run: &mut Run<'_, '_>,
) -> Result<bool> {
    prepare(writer, row, rules, TriggerEvent::Insert, run)
}

/// The same. `statement`: what the statement does to the row, which is an update of one that comes from another
/// partition; the policies for that must let it pass.
fn prepare(
    writer: &mut Writer,
    row: &mut [Datum],
    rules: &RowRules,
    statement: TriggerEvent,
    run: &mut Run<'_, '_>,
) -> Result<bool> {
    if let Some(triggers) = &mut writer.triggers
        && triggers.has_before_row(TriggerEvent::Insert)
        && !triggers.before_row(TriggerEvent::Insert, None, Some(row), run)?
    {
        return Ok(false);
    }
    if let Membership::Moves(belongs) = &writer.membership
        && writer.triggers.as_ref().is_some_and(|t| t.has_before_row(TriggerEvent::Insert))
        && !belongs.holds(row, run)?
    {
        let table = &writer.target.handle.table;
        if first_before_insert(table).is_some_and(|t| t.parent != 0) {
            return Err(moved_by_trigger(writer, run));
        }
        return Err(super::errors::partition(run.cx, &writer.written(row, rules)));
    }
    writer.check_row(row, rules, statement, run)?;
    Ok(true)
}

/// Inserts a row that an update has taken out of another partition; false: a trigger says not to.
///
/// # Errors
/// As [`insert`].
pub fn insert_moved(
    writer: &mut Writer,
    row: &mut [Datum],
    rules: &RowRules,
    run: &mut Run<'_, '_>,
) -> Result<bool> {
    if !prepare(writer, row, rules, TriggerEvent::Update, run)? {
        return Ok(false);
    }
    if let Some(triggers) = &mut writer.triggers {
        triggers.moving = true;
    }
    let inserted = writer.insert(row, run);
    if let Some(triggers) = &mut writer.triggers {
        triggers.moving = false;
    }
    inserted?;
    Ok(true)
}

fn first_before_insert(table: &catalog::Table) -> Option<&catalog::Trigger> {
    use catalog::trigger_type as kind;
    let is_one = |t: &&catalog::Trigger| t.is_row() && t.has(kind::BEFORE) && t.has(kind::INSERT);
    table.triggers.iter().find(is_one)
}

/// `0A000` for a BEFORE trigger after which a row belongs into another partition.
fn moved_by_trigger(writer: &Writer, run: &mut Run<'_, '_>) -> base::Error {
    let table = &writer.target.handle.table;
    let view = run.cx.catalog_tx.view();
    let schema = view.schema(table.schema).map_or(String::new(), |s| s.name.clone());
    let trigger = first_before_insert(table).map_or("", |t| t.name.as_str());
    err!(
        FEATURE_NOT_SUPPORTED,
        "moving row to another partition during a BEFORE FOR EACH ROW trigger is not supported"
    )
    .detail(format!(
        "Before executing trigger \"{trigger}\", the row was to be in partition \"{schema}.{}\".",
        table.name
    ))
}

/// Inserts one row; false: a trigger says not to.
///
/// # Errors
/// As [`prepare_insert`] and [`Writer::insert`].
pub fn insert(
    writer: &mut Writer,
    row: &mut [Datum],
    rules: &RowRules,
    run: &mut Run<'_, '_>,
) -> Result<bool> {
    if !prepare_insert(writer, row, rules, run)? {
        return Ok(false);
    }
    writer.insert(row, run)?;
    Ok(true)
}

/// Inserts rows, together where no BEFORE trigger can see the difference; those that triggers leave out are
/// taken out of the list.
///
/// # Errors
/// As [`insert`].
pub fn insert_many(
    writer: &mut Writer,
    rows: &mut Vec<Vec<Datum>>,
    rules: &RowRules,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    if writer.triggers.as_ref().is_some_and(|t| t.has_before_row(TriggerEvent::Insert)) {
        let mut kept = Vec::with_capacity(rows.len());
        for mut row in rows.drain(..) {
            sched::check_interrupts()?;
            if insert(writer, &mut row, rules, run)? {
                kept.push(row);
            }
        }
        *rows = kept;
        return Ok(());
    }
    for row in rows.iter_mut() {
        writer.check_row(row, rules, TriggerEvent::Insert, run)?;
    }
    writer.insert_many(rows, run)
}

/// Changes one row, following it to its newest version.
///
/// # Errors
/// Those of the source, the triggers, the checks and the writer.
pub fn change(
    writer: &mut Writer,
    rules: &RowRules,
    source: &mut dyn Source,
    snapshot: &Snapshot,
    run: &mut Run<'_, '_>,
) -> Result<Changed> {
    loop {
        let Some(mut row) = source.propose(writer, run)? else { return Ok(Changed::Nothing) };
        let event = match row.new {
            Some(_) => TriggerEvent::Update,
            None => TriggerEvent::Delete,
        };
        let fires = writer.triggers.as_ref().is_some_and(|t| t.has_before_row(event));
        if fires {
            match lock(writer, &row, event, snapshot, run)? {
                LockResult::Locked => {}
                LockResult::Changed { newest } => {
                    if !source.follow(writer, &newest, run)? {
                        return Ok(Changed::Nothing);
                    }
                    continue;
                }
                LockResult::Gone if is_own_change(writer, &row, snapshot, run)? => {
                    return Ok(Changed::SelfChanged);
                }
                LockResult::Gone => return Ok(Changed::Gone),
                LockResult::WouldBlock => return Ok(Changed::Busy),
            }
            // What is computed of the row is computed when the triggers are through with it.
            if let Some(new) = &mut row.new {
                rules.generated.iter().for_each(|(n, _)| new[usize::from(*n) - 1] = Datum::Null);
            }
            if !before_change(writer, event, &mut row, run)? {
                return Ok(Changed::Nothing);
            }
        }
        let mut moves = false;
        if let Some(new) = &mut row.new {
            match &writer.membership {
                Membership::Moves(belongs) if !belongs.holds(new, run)? => moves = true,
                _ => writer.check_row(new, rules, TriggerEvent::Update, run)?,
            }
        }
        if moves && !before_leaving(writer, &mut row, run)? {
            return Ok(Changed::Nothing);
        }
        let Proposal { tid, root, old, new } = row;
        let result = match &new {
            Some(new) if !moves => writer.update(tid, root, &old, new, snapshot, run)?,
            _ => writer.delete((tid, root), &old, new.as_deref(), snapshot, run)?,
        };
        match result {
            Change::Done if moves => return Ok(Changed::Moved(new.unwrap_or(old))),
            Change::Done => return Ok(Changed::Row(new.unwrap_or(old))),
            Change::Gone | Change::SelfChanged if fires => return Err(changed_by_trigger(event)),
            Change::Gone => return Ok(Changed::Gone),
            Change::SelfChanged => return Ok(Changed::SelfChanged),
            Change::Busy => return Ok(Changed::Busy),
            Change::Newer(newest) => {
                if !source.follow(writer, &newest, run)? {
                    return Ok(Changed::Nothing);
                }
            }
        }
    }
}

/// The BEFORE DELETE triggers of a row that leaves its partition; false: it stays as it is.
fn before_leaving(writer: &mut Writer, row: &mut Proposal, run: &mut Run<'_, '_>) -> Result<bool> {
    match &mut writer.triggers {
        Some(triggers) if triggers.has_before_row(TriggerEvent::Delete) => {
            triggers.before_row(TriggerEvent::Delete, Some(&row.old), None, run)
        }
        _ => Ok(true),
    }
}

/// The BEFORE triggers of a row that is locked; false: it is left alone.
///
/// # Errors
/// The triggers'.
pub fn before_change(
    writer: &mut Writer,
    event: TriggerEvent,
    row: &mut Proposal,
    run: &mut Run<'_, '_>,
) -> Result<bool> {
    match &mut writer.triggers {
        Some(triggers) => triggers.before_row(event, Some(&row.old), row.new.as_deref_mut(), run),
        None => Ok(true),
    }
}

/// Locks the version that BEFORE triggers are about to see.
fn lock(
    writer: &Writer,
    row: &Proposal,
    event: TriggerEvent,
    snapshot: &Snapshot,
    run: &mut Run<'_, '_>,
) -> Result<LockResult> {
    let mode = match event {
        TriggerEvent::Update => RowLockMode::NoKeyUpdate,
        _ => RowLockMode::Update,
    };
    writer.target.handle.heap.lock(run.cx.tx, snapshot, row.tid, row.root, mode, writer.wait)
}

/// Whether a version was ended by this very command.
fn is_own_change(
    writer: &Writer,
    row: &Proposal,
    snapshot: &Snapshot,
    run: &Run<'_, '_>,
) -> Result<bool> {
    let version = writer.target.handle.heap.fetch_version(row.tid)?;
    Ok(version.is_some_and(|version| {
        let system = version.system;
        run.cx.tx.is_mine(Xid(system.xmax)) && system.cmax >= snapshot.command
    }))
}

fn changed_by_trigger(event: TriggerEvent) -> base::Error {
    let what = if event == TriggerEvent::Update { "updated" } else { "deleted" };
    err!(
        TRIGGERED_DATA_CHANGE_VIOLATION,
        "tuple to be {what} was already modified by an operation triggered by the current command"
    )
    .hint("Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows.")
}

//! Triggers of a table on the way of its rows.
//!
//! ```text
//!   statement begins ──► before_statement
//!     each row ──► before_row ──► (the row is written) ──► note: the queue of after-events
//!   statement ends ──► finish: the queue, row by row, trigger by trigger; or deferred to the transaction's
//!                      end ([`super::deferred`]); then after_statement with the transition tables
//! ```
//!
//! * An after-event holds the places of the old and the new version, not the rows: both versions stay as long as
//!   the transaction runs.
//! * WHEN of an AFTER trigger is looked at when the event happens: the event keeps which triggers it fires.
//! * A table without triggers has no [`Triggers`], so nothing is asked of it row by row.
//!
//! The queue ([`super::event_list`]) and transition tables ([`super::row_store`]) spill beyond `work_mem`.

use std::sync::Arc;

use base::{Error, Oid, Result, TupleId, err};
use catalog::{Table, Trigger, trigger_type as kind};
use sql::Expr;
use sql::plan::RowRules;
use types::Datum;

use super::deferred::{Check, Waiting};
use super::event_list::{EventList, RowEvent};
use super::row_store::RowStore;
use super::text_search;
use crate::context::ExecContext;
use crate::eval;
use crate::language::{TransitionTable, TriggerCall, TriggerEvent, TriggerResult, TriggerTiming};
use crate::rows::Row;
use crate::run::Run;
use crate::table::TableHandle;

/// The oid of `suppress_redundant_updates_trigger`.
const SUPPRESS_REDUNDANT: u32 = 1291;

/// A trigger that may fire, with its condition.
struct Ready {
    trigger: Trigger,
    condition: Option<Expr>,
}

/// Rows for transition tables: by what was done to them.
#[derive(Default)]
pub struct Captured {
    inserted: Arc<RowStore>,
    /// Before and after.
    updated: [Arc<RowStore>; 2],
    deleted: Arc<RowStore>,
}

/// The triggers of a table that a statement changes.
pub struct Triggers {
    table: Arc<Table>,
    list: Vec<Ready>,
    /// Columns that the statement sets, from 1; None: any.
    set: Option<Vec<u16>>,
    /// Kinds of the row-level BEFORE and INSTEAD OF triggers, all together.
    before: i16,
    /// Those of the row-level AFTER triggers.
    after: i16,
    /// Those of which transition tables must have rows.
    captures: i16,
    events: EventList,
    captured: Captured,
    /// The row goes from one partition to another: the statement's transition tables have it as updated.
    pub moving: bool,
}

/// The events by their numbers in a queue.
const EVENTS: [TriggerEvent; 4] =
    [TriggerEvent::Insert, TriggerEvent::Update, TriggerEvent::Delete, TriggerEvent::Truncate];

/// Bytes that a queue or a transition table may have in memory.
fn work_mem(cx: &ExecContext<'_>) -> usize {
    cx.settings.int(base::settings::setting::WORK_MEM).max(64) as usize * 1024
}

fn bit(event: TriggerEvent) -> i16 {
    match event {
        TriggerEvent::Insert => kind::INSERT,
        TriggerEvent::Update => kind::UPDATE,
        TriggerEvent::Delete => kind::DELETE,
        TriggerEvent::Truncate => kind::TRUNCATE,
    }
}

fn timing(trigger: &Trigger) -> TriggerTiming {
    match trigger.kind & (kind::BEFORE | kind::INSTEAD) {
        0 => TriggerTiming::After,
        kind::BEFORE => TriggerTiming::Before,
        _ => TriggerTiming::InsteadOf,
    }
}

/// Whether the session applies what was changed elsewhere (`session_replication_role`).
pub fn is_replica(cx: &ExecContext<'_>) -> bool {
    cx.settings.str(base::settings::setting::SESSION_REPLICATION_ROLE) == "replica"
}

/// The columns that a statement sets, with those that are computed of them.
fn with_generated(mut set: Vec<u16>, rules: &RowRules) -> Vec<u16> {
    for (number, expr) in &rules.generated {
        let mut used = Vec::new();
        sql::walk::columns_of(expr, &mut used);
        if used.iter().any(|col| set.contains(&(col + 1))) {
            set.push(*number);
        }
    }
    set
}

impl Triggers {
    /// Those that fire in this session; None without any. `conditions`: WHEN by trigger
    /// ([`RowRules::conditions`]). `set`: columns that the statement sets; None: any.
    pub fn open(
        table: &Arc<Table>,
        rules: &RowRules,
        set: Option<Vec<u16>>,
        cx: &ExecContext<'_>,
    ) -> Option<Box<Triggers>> {
        if table.triggers.is_empty() {
            return None;
        }
        let replica = is_replica(cx);
        let set = set.map(|set| with_generated(set, rules));
        let ready = |trigger: &Trigger| Ready {
            trigger: trigger.clone(),
            condition: rules.conditions.iter().find(|c| c.0 == trigger.oid).map(|c| c.1.clone()),
        };
        let enabled = table.triggers.iter().filter(|t| t.is_enabled(replica));
        let list: Vec<Ready> = enabled.map(ready).collect();
        (!list.is_empty()).then(|| Box::new(Triggers::of(table, list, set)))
    }

    /// One without triggers of its own, which only keeps rows for another table's transition tables.
    pub fn capturing(table: &Arc<Table>, captures: i16) -> Box<Triggers> {
        let mut triggers = Triggers::of(table, Vec::new(), None);
        triggers.captures = captures;
        Box::new(triggers)
    }

    fn of(table: &Arc<Table>, list: Vec<Ready>, set: Option<Vec<u16>>) -> Triggers {
        let union = |fits: &dyn Fn(&Trigger) -> bool| {
            list.iter().filter(|r| fits(&r.trigger)).fold(0, |all, r| all | r.trigger.kind)
        };
        Triggers {
            table: table.clone(),
            before: union(&|t| t.is_row() && !t.is_after()),
            after: union(&|t| t.is_row() && t.is_after()),
            captures: union(&|t| t.old_table.is_some() || t.new_table.is_some()),
            list,
            set,
            events: EventList::default(),
            captured: Captured::default(),
            moving: false,
        }
    }

    /// Whether row-level BEFORE or INSTEAD OF triggers may fire for an event.
    pub fn has_before_row(&self, event: TriggerEvent) -> bool {
        self.before & bit(event) != 0
    }

    /// Events whose rows transition tables need.
    pub fn captures(&self) -> i16 {
        self.captures
    }

    /// Also keeps rows for another table's transition tables.
    pub fn capture(&mut self, events: i16) {
        self.captures |= events;
    }

    /// The rows kept so far.
    pub fn take_captured(&mut self) -> Captured {
        std::mem::take(&mut self.captured)
    }

    /// Adds rows of another table; `as_named` makes them this one's.
    ///
    /// # Errors
    /// I/O errors of temporary files.
    pub fn add_captured(
        &mut self,
        other: Captured,
        as_named: &dyn Fn(&[Datum]) -> Vec<Datum>,
        cx: &ExecContext<'_>,
    ) -> Result<()> {
        let table = &self.table;
        let add = |into: &mut Arc<RowStore>, rows: &RowStore| {
            for piece in 0..rows.pieces() {
                sched::check_interrupts()?;
                for row in rows.piece(piece)? {
                    keep(into, as_named(&row), table, cx)?;
                }
            }
            Ok::<(), Error>(())
        };
        let [old, new] = other.updated;
        add(&mut self.captured.inserted, &other.inserted)?;
        add(&mut self.captured.updated[0], &old)?;
        add(&mut self.captured.updated[1], &new)?;
        add(&mut self.captured.deleted, &other.deleted)
    }

    /// Whether a trigger is for this event, columns included.
    fn is_for(&self, trigger: &Trigger, event: TriggerEvent) -> bool {
        trigger.has(bit(event))
            && (event != TriggerEvent::Update
                || trigger.columns.is_empty()
                || self
                    .set
                    .as_ref()
                    .is_none_or(|set| set.iter().any(|n| trigger.columns.contains(n))))
    }

    fn holds(
        &self,
        condition: Option<&Expr>,
        old: Option<&[Datum]>,
        new: Option<&[Datum]>,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let Some(condition) = condition else { return Ok(true) };
        let width = self.table.columns.len();
        let mut both = vec![Datum::Null; 2 * width];
        if let Some(old) = old {
            both[..width].clone_from_slice(old);
        }
        if let Some(new) = new {
            both[width..].clone_from_slice(new);
        }
        eval::holds(condition, Row::Values(&both), run)
    }

    /// Fires the BEFORE (or INSTEAD OF) triggers of a row. `new` becomes what they make of it. False: the row
    /// is left alone.
    ///
    /// # Errors
    /// The triggers'.
    pub fn before_row(
        &mut self,
        event: TriggerEvent,
        old: Option<&[Datum]>,
        mut new: Option<&mut [Datum]>,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        for n in 0..self.list.len() {
            let trigger = &self.list[n].trigger;
            if !trigger.is_row() || trigger.is_after() || !self.is_for(trigger, event) {
                continue;
            }
            let condition = self.list[n].condition.as_ref();
            if !self.holds(condition, old, new.as_deref(), run)? {
                continue;
            }
            match self.fire(n, event, old, new.as_deref(), [None, None], run)? {
                TriggerResult::Skip => return Ok(false),
                TriggerResult::Unchanged => {}
                TriggerResult::Row(mut row) => {
                    if let Some(new) = &mut new {
                        self.fit(&mut row)?;
                        new.clone_from_slice(&row);
                        // Generated columns are computed after the last BEFORE trigger.
                        for (n, _) in self.table.live_columns().filter(|(_, c)| c.generated) {
                            new[usize::from(n) - 1] = Datum::Null;
                        }
                    }
                }
            }
        }
        Ok(true)
    }

    /// Fires the AFTER triggers of a foreign table's row.
    ///
    /// # Errors
    /// Those of WHEN, and of the triggers' functions.
    pub fn after_foreign(
        &mut self,
        event: TriggerEvent,
        old: Option<&[Datum]>,
        new: Option<&[Datum]>,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        for n in 0..self.list.len() {
            let trigger = &self.list[n].trigger;
            if !trigger.is_row() || !trigger.is_after() || !self.is_for(trigger, event) {
                continue;
            }
            let condition = self.list[n].condition.as_ref();
            if self.holds(condition, old, new, run)? {
                self.fire(n, event, old, new, [None, None], run)?;
            }
        }
        Ok(())
    }

    /// Makes a trigger's row fit the lengths and precisions of its columns.
    fn fit(&self, row: &mut [Datum]) -> Result<()> {
        for (n, column) in self.table.live_columns().filter(|(_, c)| c.typmod >= 0) {
            let value = &mut row[usize::from(n) - 1];
            if !value.is_null() {
                let (ty, given) = (Oid(column.ty), std::mem::take(value));
                *value = types::io::apply_typmod(ty, column.typmod, given, false)?;
            }
        }
        Ok(())
    }

    /// Notes that a row was written.
    ///
    /// # Errors
    /// Those of WHEN.
    pub fn note(
        &mut self,
        event: TriggerEvent,
        (old_at, new_at): (TupleId, TupleId),
        old: Option<&[Datum]>,
        new: Option<&[Datum]>,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let kept = if self.moving { TriggerEvent::Update } else { event };
        if self.captures & bit(kept) != 0 {
            let (captured, table, cx) = (&mut self.captured, &self.table, &*run.cx);
            match (kept, old, new) {
                (TriggerEvent::Insert, _, Some(new)) => {
                    keep(&mut captured.inserted, new.to_vec(), table, cx)?;
                }
                (TriggerEvent::Update, old, new) => {
                    for (store, row) in captured.updated.iter_mut().zip([old, new]) {
                        if let Some(row) = row {
                            keep(store, row.to_vec(), table, cx)?;
                        }
                    }
                }
                (TriggerEvent::Delete, Some(old), _) => {
                    keep(&mut captured.deleted, old.to_vec(), table, cx)?;
                }
                _ => {}
            }
        }
        if self.after & bit(event) == 0 {
            return Ok(());
        }
        let mut fires = 0;
        for (n, ready) in self.list.iter().enumerate() {
            let trigger = &ready.trigger;
            if trigger.is_row()
                && trigger.is_after()
                && self.is_for(trigger, event)
                && self.holds(ready.condition.as_ref(), old, new, run)?
            {
                fires |= 1 << n.min(63);
            }
        }
        if fires != 0 {
            let noted = RowEvent { kind: event as u8, old: old_at, new: new_at, fires };
            self.events.push(noted, work_mem(run.cx), &run.cx.engine.storage)?;
        }
        Ok(())
    }

    /// Fires the statement-level triggers.
    ///
    /// # Errors
    /// The triggers'.
    pub fn statement(
        &mut self,
        event: TriggerEvent,
        when: TriggerTiming,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let captured = std::mem::take(&mut self.captured);
        let mut result = Ok(());
        for n in 0..self.list.len() {
            let trigger = &self.list[n].trigger;
            if trigger.is_row() || timing(trigger) != when || !self.is_for(trigger, event) {
                continue;
            }
            result =
                self.holds(self.list[n].condition.as_ref(), None, None, run).and_then(|holds| {
                    match holds {
                        true => self.fire(n, event, None, None, captured.of(event), run).map(drop),
                        false => Ok(()),
                    }
                });
            if result.is_err() {
                break;
            }
        }
        self.captured = captured;
        result
    }

    /// The statement's end: fires the AFTER triggers of the rows, or puts them off to the transaction's end.
    ///
    /// # Errors
    /// The triggers'.
    pub fn finish(&mut self, handle: &TableHandle, run: &mut Run<'_, '_>) -> Result<()> {
        let events = std::mem::take(&mut self.events);
        if events.is_empty() {
            return Ok(());
        }
        run.cx.tx.next_command();
        let mut waits = 0u64;
        for (n, ready) in self.list.iter().enumerate() {
            let trigger = &ready.trigger;
            if trigger.deferrable && run.cx.hooks.deferred().defers_trigger(trigger) {
                let mine = 1 << n.min(63);
                let mut own = EventList::default();
                for piece in 0..events.pieces() {
                    for event in events.piece(piece)?.into_iter().filter(|e| e.fires & mine != 0) {
                        own.push(event, work_mem(run.cx), &run.cx.engine.storage)?;
                    }
                }
                waits |= mine;
                if !own.is_empty() {
                    let what = Check::Trigger(trigger.oid, own);
                    Waiting::put_off(run.cx, self.table.oid, trigger.constraint, what)?;
                }
            }
        }
        for piece in 0..events.pieces() {
            for event in events.piece(piece)? {
                let fires = event.fires & !waits;
                if fires != 0 {
                    sched::check_interrupts()?;
                    self.fire_row(handle, RowEvent { fires, ..event }, run)?;
                }
            }
        }
        Ok(())
    }

    /// Fires the AFTER triggers of one row.
    fn fire_row(
        &mut self,
        handle: &TableHandle,
        event: RowEvent,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let read = |at: TupleId| -> Result<Option<Vec<Datum>>> {
            if at == TupleId::INVALID {
                return Ok(None);
            }
            let version = handle.heap.fetch_version(at)?;
            let version = version.ok_or_else(|| {
                Error::internal("a trigger's row is gone before its transaction ends")
            })?;
            Ok(Some(handle.decode_all(&version.data)?))
        };
        let (old, new) = (read(event.old)?, read(event.new)?);
        let what = EVENTS[usize::from(event.kind).min(EVENTS.len() - 1)];
        for n in 0..self.list.len() {
            if event.fires & 1 << n.min(63) == 0 || !self.list[n].trigger.is_row() {
                continue;
            }
            let captured = std::mem::take(&mut self.captured);
            let tables = captured.of(what);
            let result = self.fire(n, what, old.as_deref(), new.as_deref(), tables, run);
            self.captured = captured;
            result?;
        }
        Ok(())
    }

    /// Calls one trigger's function.
    fn fire(
        &self,
        n: usize,
        event: TriggerEvent,
        old: Option<&[Datum]>,
        new: Option<&[Datum]>,
        tables: [Option<&Arc<RowStore>>; 2],
        run: &mut Run<'_, '_>,
    ) -> Result<TriggerResult> {
        sched::check_stack()?;
        let trigger = &self.list[n].trigger;
        let nothing = Arc::default();
        let transition = |name: &Option<String>, at: usize| {
            let rows = tables[at].unwrap_or(&nothing);
            name.as_ref().map(|_| rows)
        };
        let rows = [transition(&trigger.old_table, 0), transition(&trigger.new_table, 1)];
        let table = |name: &'_ Option<String>, at: usize| {
            let name: Option<&str> = name.as_deref();
            name.zip(rows[at]).map(|(name, rows)| (name.to_owned(), rows))
        };
        let (old_table, new_table) = (table(&trigger.old_table, 0), table(&trigger.new_table, 1));
        let call = TriggerCall {
            event,
            timing: timing(trigger),
            row_level: trigger.is_row(),
            name: &trigger.name,
            table: &self.table,
            old,
            new,
            args: &trigger.args,
            old_table: old_table.as_ref().map(|(name, rows)| TransitionTable { name, rows }),
            new_table: new_table.as_ref().map(|(name, rows)| TransitionTable { name, rows }),
        };
        let reads_tables = rows.iter().any(Option::is_some);
        let result = match trigger.function < Oid::FIRST_USER.0 {
            true => call_built_in(trigger.function, &call)?,
            false if reads_tables => call_with_tables(trigger.function, &call, run.cx)?,
            false => call_user(trigger.function, &call, run.cx)?,
        };
        match &result {
            TriggerResult::Row(row) if row.len() != self.table.columns.len() => {
                Err(Error::internal("a trigger's row has another width than its table"))
            }
            _ => Ok(result),
        }
    }
}

impl Captured {
    /// The old and the new rows of an event.
    fn of(&self, event: TriggerEvent) -> [Option<&Arc<RowStore>>; 2] {
        match event {
            TriggerEvent::Insert => [None, Some(&self.inserted)],
            TriggerEvent::Update => [Some(&self.updated[0]), Some(&self.updated[1])],
            TriggerEvent::Delete => [Some(&self.deleted), None],
            TriggerEvent::Truncate => [None, None],
        }
    }
}

/// Calls a function that may read transition tables: they end with the call, and with them the cursors that it opened.
fn call_with_tables(
    function: u32,
    call: &TriggerCall<'_>,
    cx: &mut ExecContext<'_>,
) -> Result<TriggerResult> {
    let before = cx.hooks.cursors();
    let result = call_user(function, call, cx)?;
    for name in cx.hooks.cursors().into_iter().filter(|name| !before.contains(name)) {
        cx.hooks.close_cursor(&name);
    }
    Ok(result)
}

/// Keeps a row for a transition table. Nobody reads the table before all are there.
fn keep(
    store: &mut Arc<RowStore>,
    row: Vec<Datum>,
    table: &Table,
    cx: &ExecContext<'_>,
) -> Result<()> {
    match Arc::get_mut(store) {
        Some(store) => store.push(row, table, work_mem(cx), &cx.engine.storage),
        None => Err(Error::internal("a transition table is read before its statement ends")),
    }
}

/// Calls a user's function, one level deeper.
fn call_user(
    function: u32,
    call: &TriggerCall<'_>,
    cx: &mut ExecContext<'_>,
) -> Result<TriggerResult> {
    let depth = cx.hooks.deferred().trigger_depth;
    cx.hooks.deferred().trigger_depth = depth + 1;
    let result = crate::routine::fire(function, call, cx);
    cx.hooks.deferred().trigger_depth = depth;
    result
}

fn call_built_in(function: u32, call: &TriggerCall<'_>) -> Result<TriggerResult> {
    if let text_search::BY_NAME | text_search::BY_COLUMN = function {
        return text_search::fire(function, call);
    }
    let name = catalog::system::facts::function_name(function).unwrap_or_default();
    if function != SUPPRESS_REDUNDANT {
        return Err(Error::unsupported(format!("the trigger function {name}")));
    }
    let wrong = |what: &str| err!(E_R_I_E_TRIGGER_PROTOCOL_VIOLATED, "{name}: {what}");
    if call.event != TriggerEvent::Update {
        return Err(wrong("must be called on update"));
    }
    if call.timing != TriggerTiming::Before {
        return Err(wrong("must be called before update"));
    }
    if !call.row_level {
        return Err(wrong("must be called for each row"));
    }
    let (Some(old), Some(new)) = (call.old, call.new) else { return Ok(TriggerResult::Unchanged) };
    let same = old.iter().zip(new).all(|(a, b)| crate::ops::grouping::same_value(a, b));
    Ok(if same { TriggerResult::Skip } else { TriggerResult::Unchanged })
}

/// Fires the TRUNCATE triggers of a table.
///
/// # Errors
/// The triggers'.
pub fn truncated(
    table: &Arc<Table>,
    timing: TriggerTiming,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    if !table.triggers.iter().any(|t| t.has(kind::TRUNCATE)) {
        return Ok(());
    }
    let rules = crate::spi::check_expressions(table, cx)?;
    let Some(mut triggers) = Triggers::open(table, &rules, None, cx) else { return Ok(()) };
    if timing == TriggerTiming::After {
        cx.tx.next_command();
    }
    crate::spi::with_run(cx, |run| triggers.statement(TriggerEvent::Truncate, timing, run))
}

/// Fires a constraint trigger for rows that waited. A trigger that is gone by now does nothing.
///
/// # Errors
/// The trigger's.
pub fn fire_deferred(
    table: &Arc<Table>,
    trigger: u32,
    events: &EventList,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    // WHEN was looked at when the rows were changed.
    let Some(mut triggers) = Triggers::open(table, &RowRules::default(), None, run.cx) else {
        return Ok(());
    };
    triggers.list.retain(|ready| ready.trigger.oid == trigger);
    let handle = TableHandle::open(run.cx.engine, table, run.cx.format)?;
    run.cx.tx.next_command();
    for piece in 0..events.pieces() {
        for event in events.piece(piece)? {
            sched::check_interrupts()?;
            triggers.fire_row(&handle, RowEvent { fires: 1, ..event }, run)?;
        }
    }
    Ok(())
}

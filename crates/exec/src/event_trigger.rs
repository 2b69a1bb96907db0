//! Event triggers: what the functions that they call may ask, and the calling.
//!
//! ```text
//!   ddl_command_start ──► the statement ──► sql_drop ──► ddl_command_end
//!                            └─► table_rewrite, before each table that it writes anew
//! ```

use base::{Result, err};
use types::func::SessionFunction as F;
use types::{Datum, oids};

use crate::context::ExecContext;
use crate::event::{Command, Dropped, Event};
use crate::run::Run;

/// Whether an event has triggers that fire for a command's tag.
pub fn has(event: &str, tag: &str, cx: &mut ExecContext<'_>) -> bool {
    let view = cx.catalog_tx.view();
    let replica = is_replica(cx);
    view.event_triggers().any(|t| t.event == event && t.is_for(tag, replica))
}

fn is_replica(cx: &ExecContext<'_>) -> bool {
    crate::modify::triggers::is_replica(cx)
}

/// Fires an event's triggers, in the order of their names.
///
/// # Errors
/// Those of their functions.
pub fn fire(event: Event, cx: &mut ExecContext<'_>) -> Result<()> {
    sched::check_stack()?;
    let view = cx.catalog_tx.view();
    let replica = is_replica(cx);
    let wanted = |t: &&std::sync::Arc<catalog::EventTrigger>| {
        t.event == event.name && t.is_for(&event.tag, replica)
    };
    let mut all: Vec<_> = view.event_triggers().filter(wanted).cloned().collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    for trigger in all {
        cx.tx.next_command();
        let (name, tag) = (event.name, event.tag.clone());
        cx.hooks.deferred().events.push(event.clone());
        let result = crate::routine::fire_event(trigger.function, name, &tag, cx);
        cx.hooks.deferred().events.pop();
        result?;
    }
    Ok(())
}

fn text(value: &str) -> Datum {
    Datum::text(value)
}

fn optional(value: &Option<String>) -> Datum {
    value.as_deref().map_or(Datum::Null, text)
}

fn list(words: &[String]) -> Datum {
    Datum::array(oids::TEXT, words.iter().map(|w| text(w)).collect())
}

fn misplaced(function: &str, event: &str) -> base::Error {
    err!(
        E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED,
        "{function}() can only be called in {event} event trigger function"
    )
}

/// The rows of a function that only event triggers call; None: it is another one.
///
/// # Errors
/// `39P03` outside of an event trigger.
pub fn rows(function: &str, run: &mut Run<'_, '_>) -> Result<Option<Vec<Vec<Datum>>>> {
    let event = run.cx.hooks.deferred().events.last().cloned();
    match function {
        "pg_event_trigger_ddl_commands()" => {
            let event = event.filter(|e| e.name == "ddl_command_end" || e.name == "sql_drop");
            let event = event.ok_or_else(|| {
                err!(
                    E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED,
                    "pg_event_trigger_ddl_commands() can only be called in an event trigger function"
                )
            })?;
            Ok(Some(event.commands.iter().map(command_row).collect()))
        }
        "pg_event_trigger_dropped_objects()" => {
            let event = event.filter(|e| e.name == "sql_drop").ok_or_else(|| {
                err!(
                    E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED,
                    "pg_event_trigger_dropped_objects() can only be called in a sql_drop event trigger function"
                )
            })?;
            Ok(Some(event.dropped.iter().map(dropped_row).collect()))
        }
        _ => Ok(None),
    }
}

fn command_row(c: &Command) -> Vec<Datum> {
    let (class, object, column) = match c.class {
        0 => (Datum::Null, Datum::Null, Datum::Null),
        class => (Datum::Oid(class), Datum::Oid(c.object), Datum::Int4(0)),
    };
    vec![
        class,
        object,
        column,
        text(&c.tag),
        text(&c.kind),
        optional(&c.schema),
        optional(&c.identity),
        Datum::Bool(false),
        Datum::Null,
    ]
}

fn dropped_row(d: &Dropped) -> Vec<Datum> {
    vec![
        Datum::Oid(d.class),
        Datum::Oid(d.object),
        Datum::Int4(d.column),
        Datum::Bool(d.original),
        Datum::Bool(d.normal),
        Datum::Bool(d.temporary),
        text(&d.kind),
        optional(&d.schema),
        optional(&d.name),
        text(&d.identity),
        list(&d.names),
        list(&d.args),
    ]
}

/// Functions that only triggers of `table_rewrite` call.
///
/// # Errors
/// `39P03` outside of one.
pub fn call(function: F, run: &mut Run<'_, '_>) -> Result<Datum> {
    let rewrite = run.cx.hooks.deferred().events.last().and_then(|e| e.rewrite);
    let missing = || misplaced(function.name(), "a table_rewrite");
    let (table, reason) = rewrite.ok_or_else(missing)?;
    Ok(match function {
        F::PgEventTriggerTableRewriteOid => Datum::Oid(table),
        _ => Datum::Int4(reason),
    })
}

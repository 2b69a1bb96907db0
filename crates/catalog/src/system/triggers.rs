//! Triggers: users', and those by which foreign keys and deferrable unique constraints show.

use std::sync::Arc;

use base::Result;
use types::{Datum, oids};

use super::row::{Row, array, oid, row};
use crate::acl::Rights;
use crate::definition;
use crate::object::ids::PG_CATALOG;
use crate::object::{
    AclKind, Constraint, ConstraintKind, ForeignKey, ForeignKeyAction, Id, Table, Trigger,
    trigger_type as t,
};
use crate::privilege;
use crate::system::cx::SystemCx;
use crate::system::names::{database_name, info, info_visible, schema_name};

type Rows = Result<Vec<Vec<Datum>>>;

/// The function behind the triggers of deferrable unique constraints.
const UNIQUE_KEY_RECHECK: Id = 1250;
/// The functions that check a new key of a foreign key: on INSERT, on UPDATE.
const FKEY_CHECK: [Id; 2] = [1644, 1645];

/// A constraint's internal triggers have no object of their own: their oids are made from the constraint's.
fn internal_id(constraint: Id, number: u32) -> Id {
    constraint.wrapping_mul(4).wrapping_add(number) | 1 << 31
}

pub(super) fn pg_event_trigger(cx: &SystemCx<'_>) -> Rows {
    let text = |tag: &String| Datum::Text(tag.as_str().into());
    let one = |t: &crate::object::EventTrigger| {
        let tags = match t.tags.is_empty() {
            true => Datum::Null,
            false => array(oids::TEXT, 1, t.tags.iter().map(text).collect()),
        };
        row(PG_CATALOG, "pg_event_trigger")
            .set("oid", oid(t.oid))
            .set("evtname", t.name.as_str())
            .set("evtevent", t.event.as_str())
            .set("evtowner", oid(t.owner))
            .set("evtfoid", oid(t.function))
            .set("evtenabled", t.enabled)
            .set("evttags", tags)
            .done()
    };
    Ok(cx.catalog.event_triggers().map(|t| one(t)).collect())
}

/// Rows that only the executor knows.
pub(super) fn of_events(_cx: &SystemCx<'_>) -> Rows {
    Ok(Vec::new())
}

/// The functions behind a foreign key's action: on DELETE, on UPDATE.
fn action_function(action: ForeignKeyAction) -> [Id; 2] {
    match action {
        ForeignKeyAction::Cascade => [1646, 1647],
        ForeignKeyAction::Restrict => [1648, 1649],
        ForeignKeyAction::SetNull => [1650, 1651],
        ForeignKeyAction::SetDefault => [1652, 1653],
        ForeignKeyAction::NoAction => [1654, 1655],
    }
}

fn base_row(id: Id, table: Id, name: &str, function: Id, kind: i16) -> Row {
    row(PG_CATALOG, "pg_trigger")
        .set("oid", oid(id))
        .set("tgrelid", oid(table))
        .set("tgparentid", oid(0))
        .set("tgname", name)
        .set("tgfoid", oid(function))
        .set("tgtype", kind)
}

fn own(table: &Table, trigger: &Trigger) -> Vec<Datum> {
    let mut bytes = Vec::new();
    for arg in &trigger.args {
        bytes.extend_from_slice(arg.as_bytes());
        bytes.push(0);
    }
    let columns = trigger.columns.iter().map(|n| Datum::Int2(*n as i16)).collect();
    let text = |value: &Option<String>| match value {
        Some(value) => Datum::Text(value.as_str().into()),
        None => Datum::Null,
    };
    base_row(trigger.oid, table.oid, &trigger.name, trigger.function, trigger.kind)
        .set("tgparentid", oid(trigger.parent))
        .set("tgenabled", trigger.enabled)
        .set("tgisinternal", false)
        .set("tgconstrrelid", oid(trigger.other))
        .set("tgconstrindid", oid(0))
        .set("tgconstraint", oid(trigger.constraint))
        .set("tgdeferrable", trigger.deferrable)
        .set("tginitdeferred", trigger.deferred)
        .set("tgnargs", trigger.args.len() as i16)
        .set("tgattr", array(oids::INT2, 0, columns))
        .set("tgargs", Datum::Bytea(Arc::from(bytes)))
        .set("tgqual", text(&trigger.when))
        .set("tgoldtable", text(&trigger.old_table))
        .set("tgnewtable", text(&trigger.new_table))
        .done()
}

/// A constraint's trigger: on which table, its number among the constraint's, the letter in its name, the
/// function, its type, the other table, whether it may wait.
type Internal = (Id, u32, char, Id, i16, Id, bool);

fn internal(
    cx: &SystemCx<'_>,
    constraint: &Constraint,
    index: Id,
    (table, number, letter, function, kind, other, waits): Internal,
) -> Vec<Datum> {
    let id = internal_id(constraint.oid, number);
    let off = cx.catalog.table(table).is_some_and(|t| t.triggers_off);
    let name = match letter {
        'p' => format!("PK_ConstraintTrigger_{id}"),
        letter => format!("RI_ConstraintTrigger_{letter}_{id}"),
    };
    base_row(id, table, &name, function, kind)
        .set("tgenabled", if off { 'D' } else { 'O' })
        .set("tgisinternal", true)
        .set("tgconstrrelid", oid(other))
        .set("tgconstrindid", oid(index))
        .set("tgconstraint", oid(constraint.oid))
        .set("tgdeferrable", waits && constraint.deferrable)
        .set("tginitdeferred", waits && constraint.deferred)
        .set("tgnargs", 0i16)
        .set("tgattr", array(oids::INT2, 0, Vec::new()))
        .set("tgargs", Datum::Bytea(Arc::from(Vec::new())))
        .done()
}

fn foreign_key(
    cx: &SystemCx<'_>,
    child: &Table,
    constraint: &Constraint,
    key: &ForeignKey,
    out: &mut Vec<Vec<Datum>>,
) {
    let waits = |action: ForeignKeyAction| action == ForeignKeyAction::NoAction;
    let [delete, _] = action_function(key.on_delete);
    let [_, update] = action_function(key.on_update);
    let (row, of, to) = (t::ROW, child.oid, key.table);
    let all: [Internal; 4] = [
        (to, 0, 'a', delete, row | t::DELETE, of, waits(key.on_delete)),
        (to, 1, 'a', update, row | t::UPDATE, of, waits(key.on_update)),
        (of, 2, 'c', FKEY_CHECK[0], row | t::INSERT, to, true),
        (of, 3, 'c', FKEY_CHECK[1], row | t::UPDATE, to, true),
    ];
    out.extend(all.map(|one| internal(cx, constraint, key.index, one)));
}

pub(super) fn pg_trigger(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for table in cx.catalog.tables() {
        for c in &table.constraints {
            match &c.kind {
                ConstraintKind::ForeignKey(key) => foreign_key(cx, table, c, key, &mut out),
                ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index }
                    if c.deferrable =>
                {
                    let kind = t::ROW | t::INSERT | t::UPDATE;
                    let one = (table.oid, 0, 'p', UNIQUE_KEY_RECHECK, kind, 0, true);
                    out.push(internal(cx, c, *index, one));
                }
                _ => {}
            }
        }
        out.extend(table.triggers.iter().map(|one| own(table, one)));
    }
    Ok(out)
}

/// `pg_constraint` of a constraint trigger.
pub(super) fn constraint_row(table: &Table, trigger: &Trigger) -> Vec<Datum> {
    row(PG_CATALOG, "pg_constraint")
        .set("oid", oid(trigger.constraint))
        .set("conname", trigger.name.as_str())
        .set("connamespace", oid(table.schema))
        .set("contype", 't')
        .set("condeferrable", trigger.deferrable)
        .set("condeferred", trigger.deferred)
        .set("convalidated", true)
        .set("conrelid", oid(table.oid))
        .fill(&["contypid", "conindid", "conparentid", "confrelid"], oid(0))
        .fill(&["confupdtype", "confdeltype", "confmatchtype"], Datum::Char(b' '))
        .set("conislocal", true)
        .set("coninhcount", 0)
        .set("connoinherit", true)
        .done()
}

/// The triggers that `information_schema` shows.
fn shown<'a>(cx: &'a SystemCx<'_>) -> impl Iterator<Item = (&'a Arc<Table>, &'a Trigger)> {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    let change = privilege::ALL.iter().fold(0, |all, (_, bit, _)| all | bit) & !privilege::SELECT;
    let visible = info_visible(cx).filter(move |t| {
        rights.has_rights_of(cx.role, t.owner) || rights.may(cx.role, AclKind::Table, t.oid, change)
    });
    visible.flat_map(|t| t.triggers.iter().map(move |one| (t, one)))
}

/// A trigger's events other than TRUNCATE, which the standard doesn't know.
fn standard_events(trigger: &Trigger) -> impl Iterator<Item = &'static str> {
    trigger.events().filter(|word| *word != "TRUNCATE")
}

pub(super) fn info_triggers(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for (table, trigger) in shown(cx) {
        for event in standard_events(trigger) {
            let alike = |other: &&Trigger| {
                let same = t::ROW | t::BEFORE | t::INSTEAD;
                other.kind & same == trigger.kind & same
                    && standard_events(other).any(|e| e == event)
                    && other.name <= trigger.name
            };
            let call = definition::trigger_call(cx.catalog, &[], trigger);
            let text = |value: &Option<String>| match value {
                Some(value) => Datum::Text(value.as_str().into()),
                None => Datum::Null,
            };
            out.push(
                info(cx, "triggers", "trigger", table.schema, &trigger.name)
                    .set("event_manipulation", event)
                    .set("event_object_catalog", database_name(cx))
                    .set("event_object_schema", schema_name(cx, table.schema))
                    .set("event_object_table", table.name.as_str())
                    .set("action_order", table.triggers.iter().filter(alike).count() as i32)
                    .set("action_condition", text(&trigger.when))
                    .set("action_statement", call.as_str())
                    .set("action_orientation", if trigger.is_row() { "ROW" } else { "STATEMENT" })
                    .set("action_timing", trigger.timing())
                    .set("action_reference_old_table", text(&trigger.old_table))
                    .set("action_reference_new_table", text(&trigger.new_table))
                    .done(),
            );
        }
    }
    Ok(out)
}

pub(super) fn info_update_columns(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for (table, trigger) in shown(cx) {
        for n in &trigger.columns {
            let Some(column) = table.columns.get(usize::from(*n) - 1) else { continue };
            out.push(
                info(cx, "triggered_update_columns", "trigger", table.schema, &trigger.name)
                    .set("event_object_catalog", database_name(cx))
                    .set("event_object_schema", schema_name(cx, table.schema))
                    .set("event_object_table", table.name.as_str())
                    .set("event_object_column", column.name.as_str())
                    .done(),
            );
        }
    }
    Ok(out)
}

//! Trigger functions of small extensions: `autoinc`, `insert_username`, `moddatetime`, `refint`, `lo` and `tcn`.

use base::{Oid, Result, bail, err};
use catalog::Table;
use exec::context::ExecContext;
use exec::language::{TriggerCall, TriggerEvent, TriggerResult, TriggerTiming};
use exec::native::{Native, Symbols};
use exec::spi;
use types::Datum;
use types::extension::Library;
use types::func::quote_literal;
use types::oids::{INT4, TEXT, TIMESTAMP, TIMESTAMPTZ};

use crate::common::text_of;

/// The libraries, whose functions all need the session.
pub static LIBRARIES: [Library; 6] = [
    Library { name: "autoinc", ..Library::EMPTY },
    Library { name: "insert_username", ..Library::EMPTY },
    Library { name: "moddatetime", ..Library::EMPTY },
    Library { name: "refint", ..Library::EMPTY },
    Library { name: "lo", ..Library::EMPTY },
    Library { name: "tcn", ..Library::EMPTY },
];

/// Their functions.
pub const SYMBOLS: [(&str, Symbols); 6] = [
    ("autoinc", &[("autoinc", Native::Trigger(autoinc))]),
    ("insert_username", &[("insert_username", Native::Trigger(insert_username))]),
    ("moddatetime", &[("moddatetime", Native::Trigger(moddatetime))]),
    (
        "refint",
        &[
            ("check_primary_key", Native::Trigger(check_primary_key)),
            ("check_foreign_key", Native::Trigger(check_foreign_key)),
        ],
    ),
    ("lo", &[("lo_manage", Native::Trigger(lo_manage))]),
    ("tcn", &[("triggered_change_notification", Native::Trigger(notify))]),
];

/// A condition that the manual puts to a trigger, as an internal error.
fn must(holds: bool, message: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(base::Error::internal(message)) }
}

/// The place and type of a column.
fn column(table: &Table, name: &str) -> Result<(usize, Oid)> {
    match table.column(name) {
        Some((number, column)) => Ok((usize::from(number) - 1, Oid(column.ty))),
        None => bail!(TRIGGERED_ACTION_EXCEPTION, "\"{}\" has no attribute \"{name}\"", table.name),
    }
}

fn wrong_type(table: &Table, name: &str, wanted: &str) -> base::Error {
    err!(
        TRIGGERED_ACTION_EXCEPTION,
        "attribute \"{name}\" of \"{}\" must be type {wanted}",
        table.name
    )
}

/// Checks how a trigger that sets values of new rows is fired.
fn for_new_rows(call: &TriggerCall<'_>, name: &str) -> Result<()> {
    must(call.row_level, &format!("{name}: must be fired for row"))?;
    must(call.timing == TriggerTiming::Before, &format!("{name}: must be fired before event"))
}

fn autoinc(call: &TriggerCall<'_>, cx: &mut ExecContext<'_>) -> Result<TriggerResult> {
    must(call.row_level, "not fired by trigger manager")?;
    must(call.timing == TriggerTiming::Before, "must be fired before event")?;
    let Some(new) = call.new else {
        return Err(base::Error::internal("cannot process DELETE events"));
    };
    let table = call.table;
    must(
        !call.args.is_empty() && call.args.len().is_multiple_of(2),
        &format!("autoinc ({}): even number gt 0 of arguments was expected", table.name),
    )?;
    let mut row = new.to_vec();
    let mut changed = false;
    for pair in call.args.chunks_exact(2) {
        let (at, ty) = column(table, &pair[0])?;
        if ty != INT4 {
            return Err(wrong_type(table, &pair[0], "INT4"));
        }
        if !matches!(row[at], Datum::Null | Datum::Int4(0)) {
            continue;
        }
        let next = |cx: &mut ExecContext<'_>| {
            let query = format!("SELECT nextval({})", quote_literal(&pair[1]));
            let (_, rows) = spi::rows_in_session(&query, cx)?;
            let value = rows.first().and_then(|row| row[0].to_i64()).unwrap_or_default();
            Ok::<i32, base::Error>(value as i32)
        };
        let mut value = next(cx)?;
        if value == 0 {
            value = next(cx)?;
        }
        row[at] = Datum::Int4(value);
        changed = true;
    }
    Ok(if changed { TriggerResult::Row(row) } else { TriggerResult::Unchanged })
}

fn insert_username(call: &TriggerCall<'_>, cx: &mut ExecContext<'_>) -> Result<TriggerResult> {
    for_new_rows(call, "insert_username")?;
    let Some(new) = call.new else {
        return Err(base::Error::internal("insert_username: cannot process DELETE events"));
    };
    let [name] = call.args else {
        let name = &call.table.name;
        return Err(base::Error::internal(format!(
            "insert_username ({name}): one argument was expected"
        )));
    };
    let (at, ty) = column(call.table, name)?;
    if ty != TEXT {
        return Err(wrong_type(call.table, name, "TEXT"));
    }
    let mut row = new.to_vec();
    row[at] = Datum::text(cx.user);
    Ok(TriggerResult::Row(row))
}

fn moddatetime(call: &TriggerCall<'_>, cx: &mut ExecContext<'_>) -> Result<TriggerResult> {
    for_new_rows(call, "moddatetime")?;
    let new = match (call.event, call.new) {
        (TriggerEvent::Update, Some(new)) => new,
        (event, _) => {
            let word = event.word();
            return Err(base::Error::internal(format!(
                "moddatetime: cannot process {word} events"
            )));
        }
    };
    let [name] = call.args else {
        let name = &call.table.name;
        return Err(base::Error::internal(format!(
            "moddatetime ({name}): A single argument was expected"
        )));
    };
    let (at, ty) = column(call.table, name)?;
    if ty != TIMESTAMP && ty != TIMESTAMPTZ {
        return Err(wrong_type(call.table, name, "TIMESTAMP or TIMESTAMPTZ"));
    }
    let mut row = new.to_vec();
    row[at] = types::io::input(ty, -1, "now", cx.format)?;
    Ok(TriggerResult::Row(row))
}

/// A value as an expression of its type.
fn literal(ty: Oid, value: &Datum, cx: &ExecContext<'_>) -> Result<String> {
    let text = text_of(ty, value, cx.format)?;
    Ok(format!("{}::{}", quote_literal(&text), types::io::format_type(ty, -1)))
}

/// Values of a row's columns as expressions; None: one of them is NULL.
fn literals(
    table: &Table,
    columns: &[String],
    row: &[Datum],
    cx: &ExecContext<'_>,
) -> Result<Option<Vec<String>>> {
    let mut out = Vec::with_capacity(columns.len());
    for name in columns {
        let (number, known) = table.column(name).ok_or_else(|| {
            err!(
                UNDEFINED_COLUMN,
                "there is no attribute \"{name}\" in relation \"{}\"",
                table.name
            )
        })?;
        let value = &row[usize::from(number) - 1];
        if value.is_null() {
            return Ok(None);
        }
        out.push(literal(Oid(known.ty), value, cx)?);
    }
    Ok(Some(out))
}

fn equal_all(columns: &[String], values: &[String]) -> String {
    let one = |(column, value): (&String, &String)| format!("{column} = {value}");
    columns.iter().zip(values).map(one).collect::<Vec<_>>().join(" AND ")
}

fn check_primary_key(call: &TriggerCall<'_>, cx: &mut ExecContext<'_>) -> Result<TriggerResult> {
    must(call.row_level, "check_primary_key: must be fired for row")?;
    let Some(row) = call.new else {
        return Err(base::Error::internal("check_primary_key: cannot process DELETE events"));
    };
    let args = call.args;
    must(
        args.len() % 2 == 1 && args.len() >= 3,
        "check_primary_key: odd number of arguments should be specified",
    )?;
    let keys = (args.len() - 1) / 2;
    let Some(values) = literals(call.table, &args[..keys], row, cx)? else {
        return Ok(TriggerResult::Unchanged);
    };
    let referenced = &args[keys];
    let condition = equal_all(&args[keys + 1..], &values);
    let query = format!("SELECT 1 FROM {referenced} WHERE {condition} LIMIT 1");
    if spi::rows_in_session(&query, cx)?.1.is_empty() {
        return Err(err!(TRIGGERED_ACTION_EXCEPTION, "tuple references non-existent key").detail(
            format!(
                "Trigger \"{}\" found tuple referencing non-existent key in \"{referenced}\".",
                call.name
            ),
        ));
    }
    Ok(TriggerResult::Unchanged)
}

fn check_foreign_key(call: &TriggerCall<'_>, cx: &mut ExecContext<'_>) -> Result<TriggerResult> {
    must(call.row_level, "check_foreign_key: must be fired for row")?;
    let Some(old) = call.old else {
        return Err(base::Error::internal("check_foreign_key: cannot process INSERT events"));
    };
    let args = call.args;
    must(
        args.len() >= 5,
        &format!("check_foreign_key: too short {} (< 5) list of arguments", args.len()),
    )?;
    let count: usize = args[0].trim().parse().unwrap_or(0);
    must(
        count > 0,
        &format!("check_foreign_key: {} (< 1) number of references specified", args[0]),
    )?;
    let action = args[1].chars().next().unwrap_or_default().to_ascii_lowercase();
    must(
        matches!(action, 'r' | 'c' | 's'),
        &format!("check_foreign_key: invalid action {}", args[1]),
    )?;
    let rest = &args[2..];
    let keys = rest.len().saturating_sub(count) / (count + 1);
    must(
        keys > 0 && rest.len() == keys + count * (keys + 1),
        &format!(
            "check_foreign_key: invalid number of arguments {} for {count} references",
            args.len()
        ),
    )?;
    let own = &rest[..keys];
    let Some(before) = literals(call.table, own, old, cx)? else {
        return Ok(TriggerResult::Unchanged);
    };
    let after = match call.new {
        Some(new) => literals(call.table, own, new, cx)?,
        None => None,
    };
    if after.as_ref() == Some(&before) {
        return Ok(TriggerResult::Unchanged);
    }
    for reference in rest[keys..].chunks_exact(keys + 1) {
        let (table, columns) = (&reference[0], &reference[1..]);
        let condition = equal_all(columns, &before);
        let set = |values: &[String]| {
            let one = |(column, value): (&String, &String)| format!("{column} = {value}");
            let all: Vec<String> = columns.iter().zip(values).map(one).collect();
            format!("UPDATE {table} SET {} WHERE {condition}", all.join(", "))
        };
        let query = match (action, &after) {
            ('r', _) => format!("SELECT 1 FROM {table} WHERE {condition} LIMIT 1"),
            ('c', Some(after)) => set(after),
            ('c', None) => format!("DELETE FROM {table} WHERE {condition}"),
            _ => set(&vec!["NULL".to_owned(); keys]),
        };
        let found = !spi::rows_in_session(&query, cx)?.1.is_empty();
        if action == 'r' && found {
            return Err(err!(
                TRIGGERED_ACTION_EXCEPTION,
                "\"{}\": tuple is referenced in \"{table}\"",
                call.name
            ));
        }
    }
    Ok(TriggerResult::Unchanged)
}

fn lo_manage(call: &TriggerCall<'_>, cx: &mut ExecContext<'_>) -> Result<TriggerResult> {
    must(call.row_level, &format!("{}: must be fired for row", call.name))?;
    let Some(name) = call.args.first() else {
        return Err(base::Error::internal(format!(
            "{}: no column name provided in the trigger definition",
            call.name
        )));
    };
    let Some((number, _)) = call.table.column(name) else {
        return Err(base::Error::internal(format!(
            "{}: column \"{name}\" does not exist",
            call.name
        )));
    };
    let at = usize::from(number) - 1;
    let Some(old) = call.old else { return Ok(TriggerResult::Unchanged) };
    let (before, after) = (&old[at], call.new.map(|new| &new[at]));
    if let (Some(oid), true) = (before.to_i64(), after != Some(before)) {
        spi::rows_in_session(&format!("SELECT pg_catalog.lo_unlink({oid})"), cx)?;
    }
    Ok(TriggerResult::Unchanged)
}

/// A text between quotes, which are doubled in it.
fn quoted(text: &str, quote: char) -> String {
    let doubled = text.replace(quote, &format!("{quote}{quote}"));
    format!("{quote}{doubled}{quote}")
}

fn notify(call: &TriggerCall<'_>, cx: &mut ExecContext<'_>) -> Result<TriggerResult> {
    let protocol = |message: &str| {
        err!(E_R_I_E_TRIGGER_PROTOCOL_VIOLATED, "triggered_change_notification: {message}")
    };
    if !(call.timing == TriggerTiming::After && call.row_level) {
        return Err(protocol("must be called after the change"));
    }
    let (operation, row) = match (call.event, call.new, call.old) {
        (TriggerEvent::Insert, Some(row), _) => ('I', row),
        (TriggerEvent::Update, _, Some(row)) => ('U', row),
        (TriggerEvent::Delete, _, Some(row)) => ('D', row),
        _ => return Err(protocol("trigger fired by unrecognized operation")),
    };
    let channel = match call.args {
        [] => "tcn",
        [channel] => channel.as_str(),
        _ => return Err(protocol("must not be called with more than one parameter")),
    };
    let view = cx.catalog_tx.view();
    let key = view.indexes_of(call.table).into_iter().find(|index| index.primary);
    let key = key.ok_or_else(|| protocol("must be called on a table with a primary key"))?;
    let mut payload = format!("{},{operation}", quoted(&call.table.name, '"'));
    for number in key.columns.iter().map(|k| usize::from(k.column)) {
        let column = &call.table.columns[number - 1];
        let value = &row[number - 1];
        let text = match value.is_null() {
            true => String::new(),
            false => text_of(Oid(column.ty), value, cx.format)?,
        };
        payload.push_str(&format!(",{}={}", quoted(&column.name, '"'), quoted(&text, '\'')));
    }
    let (channel, payload) = (quote_literal(channel), quote_literal(&payload));
    spi::rows_in_session(&format!("SELECT pg_catalog.pg_notify({channel}, {payload})"), cx)?;
    Ok(TriggerResult::Unchanged)
}

//! Interval partitions: `PARTITION BY RANGE (key) WITH (interval = '1 day')`. The partition for a row that has none
//! is made by the insert that needs it.
//!
//! ```text
//!   insert ─ no partition ─ lock of the table's making ─ still none? ─ CREATE TABLE … PARTITION OF, autonomous
//!                                                      └ another session made it ─────┐
//!   insert goes on ◄──────────────────────────────────────────────────────────────────┘
//! ```
//!
//! * It is made by an autonomous transaction and stays, whatever becomes of the row: other sessions wait for its
//!   making, not for the transaction that asked. A transaction that has changed definitions itself makes it as part
//!   of its own.
//! * Intervals are counted from 2000-01-01 (UTC for `timestamptz`) or from 0, and give way to neighbours that were
//!   made by hand: a partition never overlaps another one.
//! * A table with a default partition has a place for each row: nothing is made.

use base::{Error, Oid, Result, err};
use catalog::object::{Edge, Strategy};
use catalog::partition::EdgeRow;
use catalog::{PartitionKey, Partitioning, Table};
use txn::{LockMode, LockTag, LockWait};
use types::{Datum, FormatContext, oids};

use crate::context::{Acting, ExecContext, Guard};
use crate::redistribute::{self, EMPTY_DEFAULT};
use crate::run::Run;
use crate::session::quote_identifier;
use crate::spi;

/// The storage parameters that only a partitioned table takes.
const OPTIONS: [&str; 6] =
    ["interval", "partition_name", "retain", "retain_by", "premake", EMPTY_DEFAULT];
/// Partitions that one statement makes, at most.
pub const MADE_MAX: usize = 10_000;
/// The lock class of a table whose partitions are being made.
const MAKING: Oid = Oid(2604);
/// Bytes of an identifier, at most.
const NAME_MAX: usize = 63;

fn option<'t>(table: &'t Table, name: &str) -> Option<&'t str> {
    table.options.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
}

/// The table's interval and the key that it is of, if it has one.
fn interval(table: &Table) -> Option<(&str, &Partitioning, &PartitionKey)> {
    let step = option(table, "interval")?;
    let by = table.partitioning.as_deref()?;
    match (by.strategy, &by.keys[..]) {
        (Strategy::Range, [key]) => Some((step, by, key)),
        _ => None,
    }
}

/// What a key's type counts intervals in.
enum Unit {
    Number,
    Time,
}

fn unit(key: &PartitionKey) -> Option<Unit> {
    match Oid(key.ty) {
        oids::INT2 | oids::INT4 | oids::INT8 | oids::NUMERIC => Some(Unit::Number),
        oids::DATE | oids::TIMESTAMP | oids::TIMESTAMPTZ => Some(Unit::Time),
        _ => None,
    }
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// `22023` for parameters that the table can't have.
///
/// # Errors
/// See above, and those of reading the interval.
pub fn check(table: &Table, cx: &mut ExecContext<'_>) -> Result<()> {
    let given = table.options.iter().find(|(name, _)| OPTIONS.contains(&name.as_str()));
    let Some((name, _)) = given else { return Ok(()) };
    if table.partitioning.is_none() {
        base::bail!(INVALID_PARAMETER_VALUE, "unrecognized parameter \"{name}\"");
    }
    let Some(step) = option(table, "interval") else {
        if name == EMPTY_DEFAULT {
            base::bail!(
                INVALID_PARAMETER_VALUE,
                "\"{EMPTY_DEFAULT}\" needs partitions by interval"
            );
        }
        return Ok(());
    };
    let found = interval(table).and_then(|(_, _, key)| unit(key));
    let Some(unit) = found else {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "table \"{}\" cannot have partitions by interval",
            table.name
        )
        .detail(
            "Intervals need a range partition key of one column: a number, a date or a timestamp.",
        ));
    };
    let positive = match unit {
        Unit::Number => format!("{}::numeric > 0", literal(step)),
        Unit::Time => format!("{}::interval > '0'::interval", literal(step)),
    };
    if let Some(retain) = option(table, "retain") {
        if !matches!(unit, Unit::Time) {
            base::bail!(
                INVALID_PARAMETER_VALUE,
                "only partitions by time can be retained for a time"
            );
        }
        let read = format!("{}::interval", literal(retain));
        spi::expression_value(&read, oids::INTERVAL, -1, table.owner, cx)?;
    }
    if let Some(by) = option(table, "retain_by")
        && !["drop", "detach"].contains(&by)
    {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "invalid value for \"retain_by\" option: \"{by}\""
        )
        .detail("Valid values are \"drop\" and \"detach\"."));
    }
    if let Some(ahead) = option(table, "premake")
        && !ahead.parse::<u32>().is_ok_and(|n| n <= 1000)
    {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "value {ahead} out of bounds for option \"premake\""
        )
        .detail("Valid values are between \"0\" and \"1000\"."));
    }
    if spi::expression_value(&positive, oids::BOOL, -1, table.owner, cx)? != Datum::Bool(true) {
        base::bail!(INVALID_PARAMETER_VALUE, "the interval of partitions must be positive");
    }
    Ok(())
}

/// The expression for the beginning of the interval that holds a key.
fn beginning(ty: Oid, key: &str, step: &str) -> String {
    let at = match ty {
        oids::TIMESTAMPTZ => format!("({key}::timestamptz AT TIME ZONE 'UTC')"),
        oids::DATE => format!("({key}::date::timestamp)"),
        oids::TIMESTAMP => format!("({key}::timestamp)"),
        _ => return format!("floor({key}::numeric / {step}::numeric) * {step}::numeric"),
    };
    let epoch = "'2000-01-01'::timestamp";
    let months = format!(
        "(extract(year FROM {step}::interval) * 12 + extract(month FROM {step}::interval))::int"
    );
    let since = format!("((extract(year FROM {at}) - 2000) * 12 + extract(month FROM {at}) - 1)");
    let begin = format!(
        "CASE WHEN {months} > 0 THEN {epoch} + make_interval(months => \
         (floor({since} / {months}) * {months})::int) ELSE date_bin({step}::interval, {at}, {epoch}) END"
    );
    match ty {
        oids::TIMESTAMPTZ => format!("({begin}) AT TIME ZONE 'UTC'"),
        _ => begin,
    }
}

/// The end of the interval that begins there.
fn end(ty: Oid, begin: &str, step: &str) -> String {
    match ty {
        oids::TIMESTAMPTZ => {
            format!("(({begin}) AT TIME ZONE 'UTC' + {step}::interval) AT TIME ZONE 'UTC'")
        }
        oids::DATE | oids::TIMESTAMP => format!("({begin}) + {step}::interval"),
        _ => format!("({begin}) + {step}::numeric"),
    }
}

/// The bounds of the partition that a key needs, as SQL literals, and the key's place among names.
fn bounds(
    table: &Table,
    (step, by, key): (&str, &Partitioning, &PartitionKey),
    value: &Datum,
    cx: &mut ExecContext<'_>,
) -> Result<(String, String, String)> {
    let ty = Oid(key.ty);
    let format = FormatContext::default();
    let text = |value: &Datum| types::io::to_text(ty, value, &format).map(|text| text.to_string());
    let (shown, step) = (literal(&text(value)?), literal(step));
    let computed = |sql: &str, cx: &mut ExecContext<'_>| {
        spi::expression_value(sql, ty, key.typmod, table.owner, cx)
    };
    let begin = beginning(ty, &shown, &step);
    let from = computed(&begin, cx)?;
    // Where the type ends there is no end.
    let mut to: EdgeRow = match computed(&end(ty, &begin, &step), cx) {
        Ok(value) => vec![Edge::Value(value)],
        Err(error) if error.code() == base::sqlstate::NUMERIC_VALUE_OUT_OF_RANGE => vec![Edge::Max],
        Err(error) if error.code() == base::sqlstate::DATETIME_FIELD_OVERFLOW => vec![Edge::Max],
        Err(error) => return Err(error),
    };
    let mut from: EdgeRow = vec![Edge::Value(from)];
    let view = cx.catalog_tx.view();
    if let Some(family) = view.family(table.oid) {
        let all = family.bounds(by)?;
        let wanted = [catalog::partition::sort_key(key, value)];
        let place = all.ranges().partition_point(|(begin, _)| {
            catalog::partition::compare_to_key(begin, &wanted).is_le()
        });
        if let Some((_, before)) = place.checked_sub(1).and_then(|at| all.ranges().get(at))
            && catalog::partition::compare_edges(before, &from).is_gt()
        {
            from.clone_from(before);
        }
        if let Some((after, _)) = all.ranges().get(place)
            && catalog::partition::compare_edges(after, &to).is_lt()
        {
            to.clone_from(after);
        }
    }
    let edge = |edge: &EdgeRow| match edge.first() {
        Some(Edge::Value(value)) => text(value).map(|text| (literal(&text), text)),
        Some(Edge::Min) => Ok(("MINVALUE".to_owned(), "min".to_owned())),
        _ => Ok(("MAXVALUE".to_owned(), "max".to_owned())),
    };
    let ((from, label), (to, _)) = (edge(&from)?, edge(&to)?);
    Ok((from, to, label))
}

/// The key of a table's intervals as an expression over the table's rows.
pub fn key_of(view: &catalog::Snapshot, table: &Table) -> Option<String> {
    let (_, _, key) = interval(table)?;
    Some(catalog::partition_text::operand(view, table, key))
}

/// The bounds of the partition that a key needs, as SQL literals, and the key's place among names.
///
/// # Errors
/// Those of computing them; an internal one for a table without intervals.
pub fn bounds_of(
    table: &Table,
    value: &Datum,
    cx: &mut ExecContext<'_>,
) -> Result<(String, String, String)> {
    match interval(table) {
        Some(of) => bounds(table, of, value, cx),
        None => Err(Error::internal("a table without intervals")),
    }
}

/// The name of a partition that is told from others by a label, after the table's own.
pub fn part_name(table: &Table, label: &str) -> String {
    match interval(table) {
        Some(_) => name(table, label),
        None => name(&Table { options: Vec::new(), ..table.clone() }, label),
    }
}

/// A partition's name: `partition_name` with `{table}` and `{from}` filled in.
fn name(table: &Table, from: &str) -> String {
    let from = from.strip_suffix(" 00:00:00").unwrap_or(from);
    let from = from.strip_suffix(" 00:00:00+00").unwrap_or(from);
    let mut label = String::with_capacity(from.len());
    for c in from.chars() {
        match c {
            '0'..='9' | 'a'..='z' => label.push(c),
            '-' if label.is_empty() => label.push('m'),
            ' ' | '.' | '_' => label.push('_'),
            _ => {}
        }
    }
    let pattern = option(table, "partition_name").unwrap_or("{table}_{from}");
    let fixed = pattern.replace("{from}", &label).replace("{table}", "").len();
    let mut room = NAME_MAX.saturating_sub(fixed).min(table.name.len());
    while !table.name.is_char_boundary(room) {
        room -= 1;
    }
    pattern.replace("{from}", &label).replace("{table}", &table.name[..room])
}

/// Makes the partition that a row with this key needs; false: the table is none whose partitions are made, or
/// another session has just made it.
///
/// # Errors
/// Those of making it.
pub fn make(table: &Table, key: &[Datum], run: &mut Run<'_, '_>) -> Result<bool> {
    let ([value], Some(of)) = (key, interval(table)) else { return Ok(false) };
    if value.is_null() {
        return Ok(false);
    }
    let inside =
        run.cx.catalog_tx.changed() || table.is_temporary() || run.cx.guard == Guard::Restricted;
    if inside {
        let text = statement(table, of, value, run.cx)?;
        let role = run.cx.catalog_tx.view().role(table.owner).map(|r| (r.oid, r.name.clone()));
        spi::statement_as(&text, &spi::As { role, ..spi::As::default() }, run.cx)?;
        return Ok(true);
    }
    let locks = &run.cx.tx.manager().locks;
    let tag = LockTag::Object(MAKING, u64::from(run.cx.database.1) << 32 | u64::from(table.oid));
    locks.lock(run.cx.tx.locks(), tag, LockMode::Exclusive, LockWait::Block)?;
    let made = make_alone(table, of, value, run);
    run.cx.tx.manager().locks.unlock(run.cx.tx.locks(), tag, LockMode::Exclusive);
    made
}

fn make_alone(
    table: &Table,
    of: (&str, &Partitioning, &PartitionKey),
    value: &Datum,
    run: &mut Run<'_, '_>,
) -> Result<bool> {
    let view = run.cx.catalog_tx.view();
    let found = match view.family(table.oid) {
        Some(family) => family.bounds(of.1)?.find(of.1, std::slice::from_ref(value)),
        None => None,
    };
    if found.is_some() {
        return Ok(true);
    }
    let text = statement(table, of, value, run.cx)?;
    let acting = Acting { role: table.owner, guard: Guard::None };
    run.cx.hooks.call(
        types::func::SessionFunction::PgAutonomous,
        &[Datum::Text(text.into())],
        acting,
    )?;
    Ok(true)
}

fn statement(
    table: &Table,
    of: (&str, &Partitioning, &PartitionKey),
    value: &Datum,
    cx: &mut ExecContext<'_>,
) -> Result<String> {
    let (from, to, label) = bounds(table, of, value, cx)?;
    let view = cx.catalog_tx.view();
    let schema = view.schema(table.schema).map_or("public", |s| s.name.as_str());
    Ok(format!(
        "CREATE TABLE {}.{} PARTITION OF {} FOR VALUES FROM ({from}) TO ({to})",
        quote_identifier(schema),
        quote_identifier(&name(table, &label)),
        spi::qualified(&view, table)
    ))
}

/// `54000` when a statement has made too many.
///
/// # Errors
/// See above.
pub fn count(made: &mut usize) -> Result<()> {
    *made += 1;
    if *made > MADE_MAX {
        return Err(Error::new(
            base::sqlstate::PROGRAM_LIMIT_EXCEEDED,
            format!("one statement cannot make more than {MADE_MAX} partitions"),
        )
        .hint("Make them before, or insert fewer rows at a time."));
    }
    Ok(())
}

/// Makes a table's partitions ahead of time (`premake`) and takes away those that are past (`retain`), each in an
/// autonomous transaction. How many were made and taken away.
///
/// # Errors
/// `42501` for somebody else's table; those of making, detaching and dropping.
pub fn maintain(id: u32, run: &mut Run<'_, '_>) -> Result<i64> {
    let view = run.cx.catalog_tx.view();
    let Some(table) = view.table(id).cloned() else {
        base::bail!(UNDEFINED_TABLE, "relation with OID {id} does not exist");
    };
    crate::rights::require_table_owner(run.cx, &table)?;
    let mut done = redistribute(&table, run)?;
    let Some((step, by, key)) = interval(&table) else { return Ok(done) };
    let ahead = option(&table, "premake").and_then(|n| n.parse::<u32>().ok()).unwrap_or(0);
    if matches!(unit(key), Some(Unit::Time)) && ahead > 0 {
        for n in 0..=ahead {
            sched::check_interrupts()?;
            let at = format!("clock_timestamp() + {n} * {}::interval", literal(step));
            let at = spi::expression_value(&at, Oid(key.ty), key.typmod, table.owner, run.cx)?;
            let view = run.cx.catalog_tx.view();
            let found = match view.family(id) {
                Some(family) => family.bounds(by)?.find(by, std::slice::from_ref(&at)),
                None => None,
            };
            if found.is_none() && make(&table, &[at], run)? {
                done += 1;
            }
        }
    }
    let Some(retain) = option(&table, "retain") else { return Ok(done) };
    let last = format!("clock_timestamp() - {}::interval", literal(retain));
    let last = [spi::expression_value(&last, Oid(key.ty), key.typmod, table.owner, run.cx)?];
    let last = [catalog::partition::sort_key(key, &last[0])];
    let view = run.cx.catalog_tx.view();
    let Some(family) = view.family(id) else { return Ok(done) };
    let bounds = family.bounds(by)?;
    for ((_, to), part) in bounds.ranges().iter().zip(&bounds.parts) {
        sched::check_interrupts()?;
        if catalog::partition::compare_to_key(to, &last).is_gt() {
            break;
        }
        let part = spi::qualified(&view, part);
        let text = match option(&table, "retain_by") {
            Some("detach") => {
                let whole = spi::qualified(&view, &table);
                format!("ALTER TABLE {whole} DETACH PARTITION {part}")
            }
            _ => format!("DROP TABLE {part}"),
        };
        let acting = Acting { role: table.owner, guard: Guard::None };
        run.cx.hooks.call(
            types::func::SessionFunction::PgAutonomous,
            &[Datum::Text(text.into())],
            acting,
        )?;
        done += 1;
    }
    Ok(done)
}

/// Whether a table has something to be maintained.
pub fn is_maintained(table: &Table) -> bool {
    redistribute::is_pending(table)
        || interval(table).is_some()
            && (option(table, "retain").or(option(table, "premake"))).is_some()
}

/// The steps that move rows into other partitions, each in an autonomous transaction; how many there were.
fn redistribute(table: &Table, run: &mut Run<'_, '_>) -> Result<i64> {
    let mut steps = 0;
    while run.cx.catalog_tx.view().table(table.oid).is_some_and(|t| redistribute::is_pending(t)) {
        sched::check_interrupts()?;
        let text = format!("SELECT pg_catalog.pg_step_partitions({}::regclass)", table.oid);
        let acting = Acting { role: table.owner, guard: Guard::None };
        let text = [Datum::Text(text.into())];
        let more = run.cx.hooks.call(types::func::SessionFunction::PgAutonomous, &text, acting)?;
        if !matches!(more, Datum::Text(ref t) if &**t == "t") {
            break;
        }
        steps += 1;
    }
    Ok(steps)
}

/// The number of partitions that `WITH (partitions = n)` of a table BY HASH says; the parameter is not kept.
///
/// # Errors
/// `22023`.
pub fn take_partitions(
    options: &mut Vec<(String, String)>,
    by: Option<&Partitioning>,
) -> Result<u32> {
    let Some(at) = options.iter().position(|(name, _)| name == "partitions") else { return Ok(0) };
    let (_, value) = options.remove(at);
    let Some(by) = by else {
        base::bail!(INVALID_PARAMETER_VALUE, "unrecognized parameter \"partitions\"");
    };
    let number = value.parse::<u32>().ok().filter(|n| (1..=MADE_MAX as u32).contains(n));
    match (by.strategy, number) {
        (Strategy::Hash, Some(number)) => Ok(number),
        (Strategy::Hash, None) => Err(err!(
            INVALID_PARAMETER_VALUE,
            "value {value} out of bounds for option \"partitions\""
        )
        .detail(format!("Valid values are between \"1\" and \"{MADE_MAX}\"."))),
        _ => Err(err!(
            INVALID_PARAMETER_VALUE,
            "a number of partitions needs a table that is partitioned by hash"
        )),
    }
}

/// Makes the partitions of a new table BY HASH.
///
/// # Errors
/// Those of making them.
pub fn make_hash(id: u32, number: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    let table = crate::relation_lock::refresh(cx, id)?;
    for n in 0..number {
        sched::check_interrupts()?;
        let view = cx.catalog_tx.view();
        let schema = view.schema(table.schema).map_or("public", |s| s.name.as_str());
        let text = format!(
            "CREATE TABLE {}.{} PARTITION OF {} FOR VALUES WITH (MODULUS {number}, REMAINDER {n})",
            quote_identifier(schema),
            quote_identifier(&name(
                &Table { options: Vec::new(), ..table.clone() },
                &n.to_string()
            )),
            spi::qualified(&view, &table)
        );
        let role = view.role(table.owner).map(|r| (r.oid, r.name.clone()));
        spi::statement_as(&text, &spi::As { role, ..spi::As::default() }, cx)?;
    }
    Ok(())
}

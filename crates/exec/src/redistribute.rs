//! Rows of a partitioned table that go into other partitions in the background: `ALTER TABLE … SET (partitions = n)` of a
//! table by hash, and `SET (empty_default)` of one by interval.
//!
//! ```text
//!   one step = one transaction:
//!   writers of the table wait ─ new tables filled from the old ones ─ old ones detached, new ones attached ─ commit
//! ```
//!
//! The aim is a storage parameter, and the partitions that there are tell how far it has come. So a crash, a cancel or
//! RESET between two steps loses nothing, and the next step goes on from there. Readers see each row once: until the
//! commit in its old partition, then in its new one. They wait only for the exchange at the step's end, since the
//! table's lock is strengthened for it; nobody holds a lock on a partition without one on the table, so that this
//! cannot become a deadlock of the step with a writer.
//!
//! Moduli of hash partitions divide one another, at every moment. From `m` to `n` partitions:
//!
//! ```text
//!   m divides n    each (m, r) is split into (n, r), (n, r + m), …
//!   n divides m    all (m, r), (m, r + n), … become (n, r)
//!   else           by way of the least common multiple
//! ```

use std::sync::Arc;

use base::{Result, err};
use catalog::object::Strategy;
use catalog::{PartitionBound, Snapshot, Table};
use txn::LockMode;
use types::Datum;

use crate::context::ExecContext;
use crate::interval::{self, MADE_MAX};
use crate::relation_lock::{lock, refresh};
use crate::session::quote_identifier;
use crate::spi;

/// The parameter that asks for another number of hash partitions.
pub const PARTITIONS: &str = "partitions";
/// The parameter that asks for the default partition's rows to go into partitions by interval.
pub const EMPTY_DEFAULT: &str = "empty_default";

fn parameter<'t>(table: &'t Table, name: &str) -> Option<&'t str> {
    table.options.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
}

/// The number of hash partitions that the table is to have.
fn target(table: &Table) -> Option<u32> {
    parameter(table, PARTITIONS)?.parse().ok()
}

/// Whether something is to be done.
pub fn is_pending(table: &Table) -> bool {
    table.partitioning.is_some()
        && (target(table).is_some() || parameter(table, EMPTY_DEFAULT).is_some_and(|v| !is_off(v)))
}

fn is_off(value: &str) -> bool {
    matches!(value, "false" | "off" | "no" | "0")
}

/// A hash partition.
#[derive(Clone)]
struct Part {
    modulus: u32,
    remainder: u32,
    table: Arc<Table>,
}

fn parts(view: &Snapshot, table: &Table) -> Vec<Part> {
    let part = |t: &Arc<Table>| match t.bound.as_deref() {
        Some(PartitionBound::Hash { modulus, remainder }) => {
            Some(Part { modulus: *modulus, remainder: *remainder, table: t.clone() })
        }
        _ => None,
    };
    let family = view.family(table.oid);
    let mut all: Vec<Part> = family.iter().flat_map(|f| f.members()).filter_map(part).collect();
    all.sort_by_key(|p| (p.remainder, p.modulus));
    all
}

fn least_common_multiple(a: u32, b: u32) -> u64 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    u64::from(a) / u64::from(x.max(1)) * u64::from(b)
}

/// The partitions that a step exchanges.
struct Exchange {
    old: Vec<Part>,
    /// Modulus and remainder.
    new: Vec<(u32, u32)>,
}

/// The next exchange on the way to `target` partitions; None: they are there.
fn next(parts: &[Part], target: u32) -> Option<Exchange> {
    let split = |part: &Part, modulus: u32| Exchange {
        old: vec![part.clone()],
        new: (part.remainder..modulus)
            .step_by(part.modulus as usize)
            .map(|r| (modulus, r))
            .collect(),
    };
    let foreign = |p: &&Part| target % p.modulus != 0 && p.modulus % target != 0;
    if let Some(part) = parts.iter().find(foreign) {
        let through = least_common_multiple(part.modulus, target);
        return Some(split(part, u32::try_from(through).unwrap_or(u32::MAX)));
    }
    if let Some(part) = parts.iter().find(|p| p.modulus < target) {
        return Some(split(part, target));
    }
    let large = parts.iter().find(|p| p.modulus > target)?;
    let remainder = large.remainder % target;
    let old = parts.iter().filter(|p| p.modulus > target && p.remainder % target == remainder);
    Some(Exchange { old: old.cloned().collect(), new: vec![(target, remainder)] })
}

/// Checks another number of hash partitions; false: the table has that number.
///
/// # Errors
/// `22023`; `0A000` where rows can't be moved.
pub fn check(view: &Snapshot, table: &Table) -> Result<bool> {
    let Some(value) = parameter(table, PARTITIONS) else { return Ok(false) };
    let by = table.partitioning.as_deref();
    let mut options = vec![(PARTITIONS.to_owned(), value.to_owned())];
    let number = interval::take_partitions(&mut options, by)?;
    if table.is_temporary() {
        return Err(base::Error::unsupported("another number of partitions of a temporary table"));
    }
    if !table.referenced_by.is_empty() {
        return Err(base::Error::unsupported(
            "another number of partitions of a table that foreign keys refer to",
        ));
    }
    let parts = parts(view, table);
    if parts.iter().any(|p| p.table.is_partitioned()) {
        return Err(base::Error::unsupported(
            "another number of partitions that are partitioned themselves",
        ));
    }
    for part in &parts {
        if least_common_multiple(part.modulus, number) > MADE_MAX as u64 {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "cannot change from {} to {number} partitions",
                part.modulus
            )
            .detail(format!(
                "The least common multiple of both would be more than {MADE_MAX} partitions."
            ))
            .hint("Choose a multiple or a divisor."));
        }
    }
    Ok(next(&parts, number).is_some())
}

/// How far it has come: the phase, partitions there are to be exchanged or made, and how many are.
pub fn progress(view: &Snapshot, table: &Table) -> Option<(&'static str, u64, u64)> {
    if let Some(target) = target(table) {
        let parts = parts(view, table);
        let done = parts.iter().filter(|p| p.modulus == target).count();
        return Some(("redistributing rows", u64::from(target), done as u64));
    }
    is_pending(table).then(|| {
        let made = view.family(table.oid).map_or(0, |f| f.len().saturating_sub(1));
        ("emptying the default partition", 0, made as u64)
    })
}

/// Takes one step in the transaction that runs; false: nothing is left to do.
///
/// # Errors
/// `42501` for somebody else's table; those of making, filling, attaching and dropping.
pub fn step(id: u32, cx: &mut ExecContext<'_>) -> Result<bool> {
    let view = cx.catalog_tx.view();
    let Some(table) = view.table(id).cloned() else {
        base::bail!(UNDEFINED_TABLE, "relation with OID {id} does not exist");
    };
    crate::rights::require_table_owner(cx, &table)?;
    lock(cx, id, LockMode::ShareRowExclusive)?;
    let table = refresh(cx, id)?;
    match target(&table) {
        Some(target) => hash_step(&table, target, cx),
        None if is_pending(&table) => default_step(&table, cx),
        None => Ok(false),
    }
}

fn run(text: &str, table: &Table, cx: &mut ExecContext<'_>) -> Result<()> {
    let role = cx.catalog_tx.view().role(table.owner).map(|r| (r.oid, r.name.clone()));
    spi::statement_as(text, &spi::As { role, ..spi::As::default() }, cx)
}

/// The same for INSERT and DELETE.
fn change(text: &str, table: &Table, cx: &mut ExecContext<'_>) -> Result<()> {
    spi::query_of(table.owner, text, cx, &mut |_| Ok(()))?;
    cx.tx.next_command();
    Ok(())
}

/// A table like the partitioned one, with nothing in it.
fn make(name: &str, table: &Table, cx: &mut ExecContext<'_>) -> Result<String> {
    let view = cx.catalog_tx.view();
    let schema = view.schema(table.schema).map_or("public", |s| s.name.as_str());
    let new = format!("{}.{}", quote_identifier(schema), quote_identifier(name));
    let whole = spi::qualified(&view, table);
    let text = format!(
        "CREATE TABLE {new} (LIKE {whole} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED INCLUDING STORAGE)"
    );
    run(&text, table, cx)?;
    Ok(new)
}

/// Copies the rows for which a condition holds.
fn fill(
    new: &str,
    old: &Table,
    condition: &str,
    table: &Table,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let columns = table.live_columns().filter(|(_, c)| !c.generated);
    let columns: Vec<String> =
        columns.map(|(_, c)| quote_identifier(&c.name).to_string()).collect();
    let columns = columns.join(", ");
    let old = spi::qualified(&cx.catalog_tx.view(), old);
    let text = format!(
        "INSERT INTO {new} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {old}{condition}"
    );
    change(&text, table, cx)
}

fn hash_step(table: &Table, target: u32, cx: &mut ExecContext<'_>) -> Result<bool> {
    let view = cx.catalog_tx.view();
    let whole = spi::qualified(&view, table);
    let Some(exchange) = next(&parts(&view, table), target) else {
        run(&format!("ALTER TABLE {whole} RESET ({PARTITIONS})"), table, cx)?;
        return Ok(false);
    };
    let mut made = Vec::with_capacity(exchange.new.len());
    for (modulus, remainder) in &exchange.new {
        sched::check_interrupts()?;
        let name = interval::part_name(table, &format!("{modulus}_{remainder}"));
        let new = make(&name, table, cx)?;
        let bound = PartitionBound::Hash { modulus: *modulus, remainder: *remainder };
        let view = cx.catalog_tx.view();
        let condition = match exchange.new.len() {
            1 => None,
            _ => catalog::partition_text::condition(&view, table, &bound)?,
        };
        let condition = condition.map_or(String::new(), |c| format!(" WHERE {c}"));
        for old in &exchange.old {
            fill(&new, &old.table, &condition, table, cx)?;
        }
        made.push((new, *modulus, *remainder));
    }
    let view = cx.catalog_tx.view();
    let old: Vec<String> = exchange.old.iter().map(|p| spi::qualified(&view, &p.table)).collect();
    for old in &old {
        run(&format!("ALTER TABLE {whole} DETACH PARTITION {old}"), table, cx)?;
    }
    for (new, modulus, remainder) in made {
        let bound = format!("WITH (MODULUS {modulus}, REMAINDER {remainder})");
        run(&format!("ALTER TABLE {whole} ATTACH PARTITION {new} FOR VALUES {bound}"), table, cx)?;
    }
    for old in &old {
        run(&format!("DROP TABLE {old}"), table, cx)?;
    }
    Ok(true)
}

/// The default partition's rows of one interval, that of the least key, go into a partition of their own. When none is
/// left the default partition is dropped.
fn default_step(table: &Table, cx: &mut ExecContext<'_>) -> Result<bool> {
    let view = cx.catalog_tx.view();
    let whole = spi::qualified(&view, table);
    let stop = format!("ALTER TABLE {whole} RESET ({EMPTY_DEFAULT})");
    let default = match (&table.partitioning, view.family(table.oid)) {
        (Some(by), Some(family)) if by.strategy == Strategy::Range => {
            family.register(by)?.default.and_then(|id| family.member(id)).cloned()
        }
        _ => None,
    };
    let (Some(default), Some(operand)) = (default, interval::key_of(&view, table)) else {
        run(&stop, table, cx)?;
        return Ok(false);
    };
    let rows = spi::qualified(&view, &default);
    let mut least = None;
    let sql = format!("SELECT min({operand}), count(*) FROM {rows}");
    spi::query_of(table.owner, &sql, cx, &mut |row| {
        least = row.first().cloned().zip(row.get(1).cloned());
        Ok(())
    })?;
    let value = match least {
        Some((Datum::Null, Datum::Int8(0))) | None => {
            run(&stop, table, cx)?;
            run(&format!("ALTER TABLE {whole} DETACH PARTITION {rows}"), table, cx)?;
            run(&format!("DROP TABLE {rows}"), table, cx)?;
            return Ok(false);
        }
        // Keys that are NULL have their place there.
        Some((Datum::Null, _)) => {
            run(&stop, table, cx)?;
            return Ok(false);
        }
        Some((value, _)) => value,
    };
    let (from, to, label) = interval::bounds_of(table, &value, cx)?;
    let new = make(&interval::part_name(table, &label), table, cx)?;
    let mut tests = Vec::new();
    if from != "MINVALUE" {
        tests.push(format!("{operand} >= {from}"));
    }
    if to != "MAXVALUE" {
        tests.push(format!("{operand} < {to}"));
    }
    tests.push(format!("{operand} IS NOT NULL"));
    let condition = format!(" WHERE {}", tests.join(" AND "));
    fill(&new, &default, &condition, table, cx)?;
    change(&format!("DELETE FROM {rows}{condition}"), table, cx)?;
    let bound = format!("FROM ({from}) TO ({to})");
    run(&format!("ALTER TABLE {whole} ATTACH PARTITION {new} FOR VALUES {bound}"), table, cx)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(parts: &[(u32, u32)]) -> Vec<Part> {
        let one = |(modulus, remainder): &(u32, u32)| Part {
            modulus: *modulus,
            remainder: *remainder,
            table: Arc::new(Table::default()),
        };
        parts.iter().map(one).collect()
    }

    /// Moduli divide one another at every moment, no remainder is lost, and the way ends.
    fn walk(from: u32, to: u32) -> usize {
        let mut parts = hash(&(0..from).map(|r| (from, r)).collect::<Vec<_>>());
        let mut steps = 0;
        while let Some(exchange) = next(&parts, to) {
            steps += 1;
            assert!(steps < 10_000, "{from} to {to} does not end");
            let old: Vec<(u32, u32)> =
                exchange.old.iter().map(|p| (p.modulus, p.remainder)).collect();
            parts.retain(|p| !old.contains(&(p.modulus, p.remainder)));
            parts.extend(hash(&exchange.new));
            let whole = parts.iter().map(|p| 1.0 / f64::from(p.modulus)).sum::<f64>();
            assert!((whole - 1.0).abs() < 1e-9, "{from} to {to}: a share is missing");
            let mut moduli: Vec<u32> = parts.iter().map(|p| p.modulus).collect();
            moduli.sort_unstable();
            assert!(moduli.windows(2).all(|w| w[1] % w[0] == 0), "{moduli:?}");
        }
        assert!(parts.iter().all(|p| p.modulus == to));
        steps
    }

    #[test]
    fn every_number_leads_to_every_other() {
        assert_eq!(walk(4, 4), 0);
        assert_eq!(walk(4, 8), 4);
        assert_eq!(walk(8, 4), 4);
        assert_eq!(walk(1, 7), 1);
        for (from, to) in [(4, 6), (6, 4), (3, 5), (16, 24), (12, 1)] {
            walk(from, to);
        }
    }
}

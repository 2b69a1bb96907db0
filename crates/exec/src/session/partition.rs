//! Functions about partitions.

use base::{Oid, Result, err};
use catalog::{PartitionBound, Snapshot, Table};
use types::func::SessionFunction as F;
use types::{Datum, FunctionRow, oids};

use crate::run::Run;
use crate::session::args::{int_at, oid_at, text};

/// The value, if it is one of them.
///
/// # Errors
/// Those of bounds that can't be read; `22023`.
pub fn call(
    function: F,
    row: &'static FunctionRow,
    args: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<Option<Datum>> {
    let view = run.cx.catalog_tx.view();
    let id = oid_at(args, 0);
    Ok(Some(match function {
        F::PgGetPartkeydef => key(&view, id, run),
        F::PgGetPartitionConstraintdef => match view.table(id) {
            Some(table) => {
                let sql = catalog::partition_text::whole_condition(&view, table)?;
                sql.map_or(Datum::Null, text)
            }
            None => Datum::Null,
        },
        F::PgPartitionRoot => match is_in_hierarchy(&view, id) {
            true => Datum::Oid(top(&view, id)),
            false => Datum::Null,
        },
        F::PgPartitionAncestors => {
            let list = match is_in_hierarchy(&view, id) {
                true => std::iter::once(id).chain(above(&view, id)).map(Datum::Oid).collect(),
                false => Vec::new(),
            };
            Datum::array(oids::REGCLASS, list)
        }
        F::PgPartitionTree => {
            let mut rows = Vec::new();
            if is_in_hierarchy(&view, id) {
                let record = |fields| super::objects::record(row, fields);
                tree(&view, id, &record, &mut rows)?;
            }
            Datum::array(oids::RECORD, rows)
        }
        F::PgMaintainPartitions => Datum::Int8(crate::interval::maintain(id, run)?),
        F::PgStepPartitions => Datum::Bool(crate::redistribute::step(id, run.cx)?),
        F::SatisfiesHashPartition => return satisfies(&view, args, run).map(Some),
        _ => return Ok(None),
    }))
}

fn key(view: &Snapshot, id: u32, run: &mut Run<'_, '_>) -> Datum {
    let Some(table) = view.table(id) else { return Datum::Null };
    let Some(by) = &table.partitioning else { return Datum::Null };
    let mut printed = Vec::new();
    for sql in by.keys.iter().filter_map(|k| k.expression.as_deref()) {
        let shown = super::definition::stored_expression(sql, id, false, run);
        printed.push((sql.to_owned(), shown));
    }
    let expression = |sql: &str| {
        let found = printed.iter().find(|(own, _)| own == sql);
        let shown = found.map_or_else(|| sql.to_owned(), |(_, shown)| shown.clone());
        catalog::partition_text::enclosed(&shown)
    };
    text(catalog::partition_text::key(view, table, by, &expression))
}

fn is_partitioned_index(view: &Snapshot, id: u32) -> bool {
    view.index(id).is_some_and(|i| view.table(i.table).is_some_and(|t| t.is_partitioned()))
}

fn is_in_hierarchy(view: &Snapshot, id: u32) -> bool {
    view.table(id).is_some_and(|t| t.is_partitioned() || t.bound.is_some())
        || view.index(id).is_some_and(|i| i.parent != 0)
        || is_partitioned_index(view, id)
}

/// What is above a table or an index, from the nearest on.
fn above<'v>(view: &'v Snapshot, id: u32) -> impl Iterator<Item = u32> + 'v {
    let parent = |id: &u32| match view.index(*id) {
        Some(index) => Some(index.parent).filter(|parent| *parent != 0),
        None => view.table(*id).and_then(|t| t.partition_of()),
    };
    std::iter::successors(parent(&id), parent)
}

fn top(view: &Snapshot, id: u32) -> u32 {
    above(view, id).last().unwrap_or(id)
}

fn below(view: &Snapshot, id: u32) -> Vec<u32> {
    if let Some(table) = view.table(id) {
        return if table.is_partitioned() { view.children(table) } else { Vec::new() };
    }
    let Some(table) = view.index(id).and_then(|i| view.table(i.table)) else { return Vec::new() };
    let part = |id: &u32| view.table(*id);
    view.children(table)
        .iter()
        .filter_map(part)
        .flat_map(|t| view.indexes_of(t))
        .filter(|i| i.parent == id)
        .map(|i| i.oid)
        .collect()
}

/// Level by level, as PostgreSQL lists them.
fn tree(
    view: &Snapshot,
    id: u32,
    record: &dyn Fn(Vec<Datum>) -> Datum,
    out: &mut Vec<Datum>,
) -> Result<()> {
    let mut next = vec![(id, above(view, id).next(), 0)];
    let mut at = 0;
    while at < next.len() {
        sched::check_interrupts()?;
        let (id, parent, level) = next[at];
        at += 1;
        let leaf =
            !view.table(id).is_some_and(|t| t.is_partitioned()) && !is_partitioned_index(view, id);
        out.push(record(vec![
            Datum::Oid(id),
            parent.map_or(Datum::Null, Datum::Oid),
            Datum::Bool(leaf),
            Datum::Int4(level),
        ]));
        next.extend(below(view, id).into_iter().map(|child| (child, Some(id), level + 1)));
    }
    Ok(())
}

/// `satisfies_hash_partition(table, modulus, remainder, VARIADIC key)`.
fn satisfies(view: &Snapshot, args: &[Datum], run: &mut Run<'_, '_>) -> Result<Datum> {
    if args.len() < 3 || args[..3].iter().any(Datum::is_null) {
        return Ok(Datum::Bool(false));
    }
    let (id, modulus, remainder) = (oid_at(args, 0), int_at(args, 1), int_at(args, 2));
    let invalid = |message: &str| Err(err!(INVALID_PARAMETER_VALUE, "{message}"));
    if modulus <= 0 {
        return invalid("modulus for hash partition must be an integer value greater than zero");
    }
    if remainder < 0 {
        return invalid(
            "remainder for hash partition must be an integer value greater than or equal to zero",
        );
    }
    if remainder >= modulus {
        return invalid("remainder for hash partition must be less than modulus");
    }
    let Some(table) = view.table(id) else {
        base::bail!(UNDEFINED_TABLE, "could not open relation with OID {id}");
    };
    let by =
        table.partitioning.as_ref().filter(|by| by.strategy == catalog::object::Strategy::Hash);
    let Some(by) = by else {
        base::bail!(INVALID_PARAMETER_VALUE, "\"{}\" is not a hash partitioned table", table.name);
    };
    let (spread, variadic) = match &args[3..] {
        [Datum::Array(array)] if !is_array_key(by) => (array.items.clone(), true),
        list => (list.to_vec(), false),
    };
    if spread.len() != by.keys.len() {
        base::bail!(
            INVALID_PARAMETER_VALUE,
            "number of partitioning columns ({}) does not match number of partition keys provided ({})",
            by.keys.len(),
            spread.len()
        );
    }
    for (n, (key, value)) in by.keys.iter().zip(&spread).enumerate() {
        check_type(n, key.ty, value, variadic)?;
    }
    let mut hashed = vec![None; spread.len()];
    for ((key, value), hash) in by.keys.iter().zip(&spread).zip(&mut hashed) {
        if key.hash_function != 0 && !value.is_null() {
            *hash = own_hash(view, key, value, run)?;
        }
    }
    let hash = catalog::partition::hash_with(by, &spread, &hashed);
    Ok(Datum::Bool(hash % modulus as u64 == remainder as u64))
}

/// The hash of a user's operator class.
fn own_hash(
    view: &Snapshot,
    key: &catalog::PartitionKey,
    value: &Datum,
    run: &mut Run<'_, '_>,
) -> Result<Option<u64>> {
    let Some(function) = view.function(key.hash_function) else { return Ok(None) };
    let schema = view.schema(function.schema).map_or("pg_catalog", |s| s.name.as_str());
    let text = types::io::to_text(Oid(key.ty), value, &types::FormatContext::default())?;
    let sql = format!(
        "{}.{}('{}'::{}, {}::int8)",
        super::quote_identifier(schema),
        super::quote_identifier(&function.name),
        text.replace("'", "''"),
        types::io::format_type(Oid(key.ty), -1),
        types::PARTITION_SEED as i64
    );
    let role = run.cx.role;
    Ok(match crate::spi::expression_value(&sql, oids::INT8, -1, role, run.cx)? {
        Datum::Int8(hash) => Some(hash as u64),
        _ => None,
    })
}

fn is_array_key(by: &catalog::Partitioning) -> bool {
    by.keys
        .first()
        .is_some_and(|k| types::TypeIo::get(Oid(k.ty)).is_some_and(|io| io.element != Oid::INVALID))
}

fn check_type(n: usize, ty: u32, value: &Datum, variadic: bool) -> Result<()> {
    let own = match value {
        Datum::Null => return Ok(()),
        Datum::Int2(_) => oids::INT2,
        Datum::Int4(_) => oids::INT4,
        Datum::Int8(_) => oids::INT8,
        Datum::Text(_) => oids::TEXT,
        Datum::Numeric(_) => oids::NUMERIC,
        Datum::Timestamptz(_) => oids::TIMESTAMPTZ,
        Datum::Timestamp(_) => oids::TIMESTAMP,
        Datum::Date(_) => oids::DATE,
        _ => return Ok(()),
    };
    let base = types::user::base_type(Oid(ty), -1).0;
    let same = own == base || (own == oids::TEXT && [oids::VARCHAR, oids::NAME].contains(&base));
    if !same {
        let named = |ty| match variadic {
            true => format!("\"{}\"", types::io::format_type(ty, -1)),
            false => types::io::format_type(ty, -1).to_string(),
        };
        base::bail!(
            INVALID_PARAMETER_VALUE,
            "column {} of the partition key has type {}, but supplied value is of type {}",
            n + 1,
            named(base),
            named(own)
        );
    }
    Ok(())
}

/// A partition's bound, as it is.
pub fn is_bound(sql: &str) -> bool {
    sql == "DEFAULT" || sql.starts_with("FOR VALUES ")
}

/// The words of a partition's bound in the session's formats.
pub fn bound(view: &Snapshot, table: &Table, run: &Run<'_, '_>) -> Option<String> {
    let parent = view.table(table.partition_of()?)?;
    let (by, bound) = (parent.partitioning.as_deref()?, table.bound.as_deref()?);
    let PartitionBound::Default = bound else {
        return Some(catalog::partition_text::bound(by, bound, Some(run.cx.format)));
    };
    Some("DEFAULT".to_owned())
}

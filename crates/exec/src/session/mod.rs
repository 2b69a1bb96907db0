//! Functions and values that need the session, the transaction or the catalog.

mod clock;
mod definition;
pub mod large_object;
mod locks;
mod names;
mod objects;
mod partition;
mod rights;
pub mod sequence;
mod text_search;

use std::sync::Arc;

use base::{Oid, Result, err};
use types::datum::Array;
use types::{Datum, FunctionRow, oids};

use crate::run::Run;
use crate::table::TableHandle;

pub use clock::random;
pub use definition::{print_definition, quote_identifier};
pub use names::split_name;

/// A text datum.
pub fn text(value: impl Into<types::Text>) -> Datum {
    Datum::Text(value.into())
}

fn oid_at(args: &[Datum], n: usize) -> u32 {
    match args.get(n) {
        Some(Datum::Oid(v)) => *v,
        Some(Datum::Int4(v)) => *v as u32,
        Some(Datum::Int8(v)) => *v as u32,
        _ => 0,
    }
}

fn text_at(args: &[Datum], n: usize) -> &str {
    match args.get(n) {
        Some(Datum::Text(v)) => v,
        _ => "",
    }
}

fn int_at(args: &[Datum], n: usize) -> i64 {
    match args.get(n) {
        Some(Datum::Int2(v)) => i64::from(*v),
        Some(Datum::Int4(v)) => i64::from(*v),
        Some(Datum::Int8(v)) => *v,
        _ => 0,
    }
}

/// The body of a function that the types crate leaves to us; the session has the rest.
///
/// # Errors
/// The function's.
pub fn call(
    function: &'static FunctionRow,
    args: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    if function.oid == types::func::internal::DOMAIN_CHECK.oid {
        return crate::domain::check(Oid(oid_at(args, 1)), args[0].clone(), run);
    }
    let name = function.name;
    if function.oid == sql::CURRENT_OF.oid {
        return current_of(args, run);
    }
    if std::ptr::eq(function, &types::func::internal::NEXT_VALUE) {
        return sequence::next_of_identity(oid_at(args, 0), run);
    }
    if let Some(value) = clock::call(name, args, run)? {
        return Ok(value);
    }
    if let Some(value) = locks::call(name, args, run)? {
        return Ok(value);
    }
    if let Some(value) = sequence::call(name, args, run)? {
        return Ok(value);
    }
    if name.starts_with("lo")
        && let Some(value) = large_object::call(name, args, run)?
    {
        return Ok(value);
    }
    if let Some(value) = objects::call(function, args, run)? {
        return Ok(value);
    }
    if let Some(value) = partition::call(function, args, run)? {
        return Ok(value);
    }
    if let Some(value) = definition::call(name, args, run)? {
        return Ok(value);
    }
    if let Some(value) = names::call(name, args, run)? {
        return Ok(value);
    }
    if let Some(value) = rights::call(name, args, run)? {
        return Ok(value);
    }
    if let Some(value) = crate::event_trigger::call(name, run)? {
        return Ok(value);
    }
    if let Some(value) = text_search::call(function, args, run)? {
        return Ok(value);
    }
    if let Some(value) = plain(name, args, run)? {
        return Ok(value);
    }
    run.cx.hooks.call(name, args, run.cx.acting())
}

/// Where a cursor's row is now: changes that this statement sees have moved it.
fn current_of(args: &[Datum], run: &mut Run<'_, '_>) -> Result<Datum> {
    let Datum::Tid(tid) = run.cx.hooks.call("current_of", args, run.cx.acting())? else {
        return Ok(Datum::Null);
    };
    let view = run.cx.catalog_tx.view();
    let Some(table) = view.table(oid_at(args, 1)) else { return Ok(Datum::Null) };
    let handle = TableHandle::open(run.cx.engine, table, run.cx.format)?;
    Ok(Datum::Tid(handle.heap.latest(run.cx.tx, &run.snapshot, tid)?))
}

/// A set-returning function that needs the session.
///
/// # Errors
/// `0A000` for those that have no body.
pub fn call_set(
    function: &'static FunctionRow,
    args: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<Vec<Datum>> {
    match call(function, args, run)? {
        Datum::Array(array) => Ok(array.items.clone()),
        Datum::Null => Ok(vec![]),
        value => Ok(vec![value]),
    }
}

/// Names of session values and functions without a family.
fn plain(name: &str, args: &[Datum], run: &mut Run<'_, '_>) -> Result<Option<Datum>> {
    let cx = &mut *run.cx;
    Ok(Some(match name {
        "version" => text("PostgreSQL 15.18 (Threadgres 0.1), 64-bit"),
        "current_database" | "current_catalog" => text(cx.database.0),
        "current_user" | "user" | "current_role" => text(cx.user),
        "session_user" => text(cx.session_user.0),
        "current_schema" => {
            let view = cx.catalog_tx.view();
            let first = cx.search_path.iter().find(|id| **id != catalog::object::ids::PG_CATALOG);
            first.and_then(|id| view.schema(*id)).map_or(Datum::Null, |s| text(s.name.as_str()))
        }
        "current_schemas" => {
            let view = cx.catalog_tx.view();
            let implicit = matches!(args.first(), Some(Datum::Bool(true)));
            let shown = |id: &&u32| implicit || **id != catalog::object::ids::PG_CATALOG;
            let temporary = view.implicit_temporary(cx.search_path).filter(|_| implicit);
            let items: Vec<Datum> = temporary
                .iter()
                .chain(cx.search_path)
                .filter(shown)
                .filter_map(|id| view.schema(*id))
                .map(|s| text(s.name.as_str()))
                .collect();
            let dims = if items.is_empty() { vec![] } else { vec![(items.len() as i32, 1)] };
            Datum::Array(Arc::new(Array { element: oids::NAME, dims, items }))
        }
        "pg_is_in_recovery" => Datum::Bool(false),
        "pg_my_temp_schema" => Datum::Oid(cx.catalog_tx.temporary_schema().unwrap_or(0)),
        "pg_is_other_temp_schema" => {
            let (all, id) = (cx.catalog_tx.view_of_all(), oid_at(args, 0));
            let other = cx.catalog_tx.temporary_schema() != Some(id);
            Datum::Bool(other && Oid(id).is_temporary() && all.schema(id).is_some())
        }
        "txid_current" | "pg_current_xact_id" => {
            cx.tx.xid()?;
            Datum::Int8(cx.tx.top_xid().map_or(0, |x| x.0 as i64))
        }
        "txid_current_if_assigned" | "pg_current_xact_id_if_assigned" => {
            cx.tx.top_xid().map_or(Datum::Null, |x| Datum::Int8(x.0 as i64))
        }
        "pg_encoding_to_char" => text(match int_at(args, 0) {
            0 => "SQL_ASCII",
            6 => "UTF8",
            8 => "LATIN1",
            _ => "",
        }),
        "pg_char_to_encoding" => {
            Datum::Int4(match text_at(args, 0).to_ascii_uppercase().replace('-', "").as_str() {
                "SQL_ASCII" => 0,
                "UTF8" | "UNICODE" => 6,
                "LATIN1" => 8,
                _ => -1,
            })
        }
        "pg_current_wal_lsn" | "pg_current_wal_insert_lsn" => {
            Datum::Int8(cx.engine.storage.wal.insert_position().0 as i64)
        }
        "pg_current_wal_flush_lsn" => Datum::Int8(cx.engine.storage.wal.flushed().0 as i64),
        "pg_column_size" => match args.first() {
            None | Some(Datum::Null) => Datum::Null,
            Some(value) => Datum::Int4(column_size(value, cx.format)?),
        },
        "getdatabaseencoding" | "pg_client_encoding" => text("UTF8"),
        _ => return Ok(None),
    }))
}

/// Bytes of a value in a row: its type's width, or its text with a short header.
fn column_size(value: &Datum, format: &types::FormatContext) -> Result<i32> {
    let ty = types::io::natural_type(value);
    match types::TypeIo::get(ty) {
        Some(io) if io.len > 0 => Ok(i32::from(io.len)),
        _ => {
            let bytes = types::io::to_text(ty, value, format)?.len();
            Ok((bytes + if bytes < 127 { 1 } else { 4 }) as i32)
        }
    }
}

/// `current_user`, `current_timestamp(p)` and kin.
///
/// # Errors
/// For names that nobody knows.
pub fn value(name: &str, ty: Oid, run: &mut Run<'_, '_>) -> Result<Datum> {
    let (base, precision) = match name.split_once('(') {
        Some((base, rest)) => (base, rest.trim_end_matches(')').trim().parse::<i32>().ok()),
        None => (name, None),
    };
    if let Some(value) = clock::value(base, precision, ty, run)? {
        return Ok(value);
    }
    match plain(base, &[], run)? {
        Some(value) => Ok(value),
        None => run.cx.hooks.call(base, &[], run.cx.acting()),
    }
}

/// An array of oids or of `regclass` and kin as one of oids, of these, or of integers: their numbers stay.
fn relabeled(value: &Datum, to: Oid) -> Option<Datum> {
    let Datum::Array(array) = value else { return None };
    let element = types::TypeIo::array_element(to)?;
    let numbers = matches!(element, oids::INT4 | oids::INT8);
    if !numbers && element != oids::OID && !types::io::is_reg(element) {
        return None;
    }
    let one = |item: &Datum| match (item, element) {
        (Datum::Null, _) => Some(Datum::Null),
        (Datum::Oid(id), oids::INT4) => Some(Datum::Int4(*id as i32)),
        (Datum::Oid(id), oids::INT8) => Some(Datum::Int8(i64::from(*id))),
        (Datum::Oid(id), _) => Some(Datum::Oid(*id)),
        _ => None,
    };
    let items = array.items.iter().map(one).collect::<Option<Vec<Datum>>>()?;
    Some(Datum::Array(Arc::new(Array { element, dims: array.dims.clone(), items })))
}

/// A cast by way of text: the types that name catalog objects are ours, the others have their
/// input and output in `types`.
///
/// # Errors
/// `22P02` and kin; `42P01` for a relation that isn't there.
pub fn cast_through_text(
    value: Datum,
    from: Oid,
    to: Oid,
    typmod: i32,
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    if let Some(array) = relabeled(&value, to) {
        return Ok(array);
    }
    let words = match value {
        Datum::Null => return Ok(Datum::Null),
        Datum::Text(words) | Datum::Bpchar(words) => words,
        Datum::Oid(id) if names::is_registered(from) => names::output(from, id, run).into(),
        value => {
            let mut out = Vec::new();
            types::io::output(from, &value, run.cx.format, &mut out)?;
            String::from_utf8(out)
                .map_err(|_| err!(CHARACTER_NOT_IN_REPERTOIRE, "value is not valid UTF-8"))?
                .into()
        }
    };
    if names::is_registered(to) {
        return names::input(to, &words, run);
    }
    types::io::input(to, typmod, &words, run.cx.format)
}

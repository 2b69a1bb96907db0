//! Functions and values that need the session, the transaction or the catalog.

mod args;
pub mod brin;
mod clock;
mod definition;
mod files;
pub mod large_object;
mod locks;
mod names;
mod objects;
pub mod open_large_objects;
mod partition;
mod replication;
mod rights;
pub mod sequence;
pub mod sequence_values;
mod text_search;

use std::sync::Arc;

use base::{Error, Oid, Result, err};
use types::datum::Array;
use types::func::{Family, SessionFunction as F};
use types::{Datum, FunctionRow, oids};

use crate::context::ExecContext;
use crate::run::Run;
use crate::session::args::{int_at, oid_at, text, text_at};
use crate::table::TableHandle;

pub use clock::random;
pub use definition::{print_definition, prints_definition, quote_identifier};
pub use names::split_name;

/// Runs the body of a function that the types crate leaves to the executor or to the session.
///
/// # Errors
/// The function's; `0A000` for those that have no body.
pub fn call(
    function: F,
    row: &'static FunctionRow,
    args: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    let value = match function.family() {
        Family::Statement => return of_statement(function, args, run),
        Family::Server | Family::Statistics => {
            return run.cx.hooks.call(function, args, run.cx.acting());
        }
        Family::History => {
            let rows = run.cx.hooks.history(function, args)?;
            let record = |fields| objects::record(row, fields);
            return Ok(Datum::array(oids::RECORD, rows.into_iter().map(record).collect()));
        }
        Family::EventTrigger => return crate::event_trigger::call(function, run),
        Family::Clock => clock::call(function, args, run)?,
        Family::Locks => locks::call(function, args, run)?,
        Family::Sequence => sequence::call(function, args, run)?,
        Family::LargeObject => large_object::call(function, args, run)?,
        Family::Objects => objects::call(function, row, args, run)?,
        Family::Files => files::call(function, row, args, run)?,
        Family::Replication => replication::call(function, row, args, run)?,
        Family::Partition => partition::call(function, row, args, run)?,
        Family::Definition => definition::call(function, args, run)?,
        Family::Names => names::call(function, args, run)?,
        Family::Rights => rights::call(function, args, run)?,
        Family::TextSearch => text_search::call(function, row, args, run)?,
        Family::Plain => plain(function, args, run)?,
        Family::Unsupported => None,
    };
    value.ok_or_else(|| Error::unsupported(format_args!("function {}", row.name)))
}

/// What the binder makes of syntax.
fn of_statement(function: F, args: &[Datum], run: &mut Run<'_, '_>) -> Result<Datum> {
    match function {
        F::DomainCheck => crate::domain::check(Oid(oid_at(args, 1)), args[0].clone(), run),
        F::CurrentOf => current_of(args, run),
        _ => sequence::next_of_identity(oid_at(args, 0), run),
    }
}

/// Where a cursor's row is now: changes that this statement sees have moved it.
fn current_of(args: &[Datum], run: &mut Run<'_, '_>) -> Result<Datum> {
    let Datum::Tid(tid) = run.cx.hooks.call(F::CurrentOf, args, run.cx.acting())? else {
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
    function: F,
    row: &'static FunctionRow,
    args: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<Vec<Datum>> {
    match call(function, row, args, run)? {
        Datum::Array(array) => Ok(array.items.clone()),
        Datum::Null => Ok(vec![]),
        value => Ok(vec![value]),
    }
}

/// Names of session values and functions without a family.
fn plain(function: F, args: &[Datum], run: &mut Run<'_, '_>) -> Result<Option<Datum>> {
    let cx = &mut *run.cx;
    Ok(Some(match function {
        F::Version => text("PostgreSQL 15.20 (Threadgres 0.2), 64-bit"),
        F::CurrentDatabase => text(cx.database.0),
        F::CurrentUser => text(cx.user),
        F::SessionUser => text(cx.session_user.0),
        F::CurrentSchema => {
            let view = cx.catalog_tx.view();
            let first = cx.search_path.iter().find(|id| **id != catalog::object::ids::PG_CATALOG);
            first.and_then(|id| view.schema(*id)).map_or(Datum::Null, |s| text(s.name.as_str()))
        }
        F::CurrentSchemas => {
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
        F::PgIsInRecovery => Datum::Bool(cx.engine.storage.follows()),
        F::PgMyTempSchema => Datum::Oid(cx.catalog_tx.temporary_schema().unwrap_or(0)),
        F::PgIsOtherTempSchema => {
            let (all, id) = (cx.catalog_tx.view_of_all(), oid_at(args, 0));
            let other = cx.catalog_tx.temporary_schema() != Some(id);
            Datum::Bool(other && Oid(id).is_temporary() && all.schema(id).is_some())
        }
        F::TxidCurrent | F::PgCurrentXactId if cx.engine.storage.follows() => {
            return Err(base::err!(
                READ_ONLY_SQL_TRANSACTION,
                "cannot execute {}() during recovery",
                function.name()
            ));
        }
        F::TxidCurrent | F::PgCurrentXactId => {
            if crate::parallel::is_parallel(cx) {
                base::bail!(
                    INVALID_TRANSACTION_STATE,
                    "cannot assign XIDs during a parallel operation"
                );
            }
            cx.tx.xid()?;
            Datum::Int8(cx.tx.top_xid().map_or(0, |x| x.0 as i64))
        }
        F::TxidCurrentIfAssigned | F::PgCurrentXactIdIfAssigned => {
            cx.tx.top_xid().map_or(Datum::Null, |x| Datum::Int8(x.0 as i64))
        }
        F::PgCurrentSnapshot => text(current_snapshot(cx)?),
        F::PgXactStatus => xact_status(int_at(args, 0) as u64, cx)?,
        F::PgEncodingToChar => {
            text(types::encodings::of_number(int_at(args, 0) as i32).map_or("", |e| e.0))
        }
        F::PgCharToEncoding => {
            Datum::Int4(types::encodings::number(text_at(args, 0)).unwrap_or(-1))
        }
        F::PgCurrentWalLsn | F::PgCurrentWalInsertLsn | F::PgCurrentWalFlushLsn
            if cx.engine.storage.follows() =>
        {
            return Err(base::err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "recovery is in progress")
                .hint("WAL control functions cannot be executed during recovery."));
        }
        F::PgCurrentWalLsn | F::PgCurrentWalInsertLsn => {
            Datum::Int8(cx.engine.storage.wal.insert_position().0 as i64)
        }
        F::PgCurrentWalFlushLsn => Datum::Int8(cx.engine.storage.wal.flushed().0 as i64),
        F::PgColumnSize => match args.first() {
            None | Some(Datum::Null) => Datum::Null,
            Some(value) => Datum::Int4(column_size(value, cx.format)?),
        },
        F::Getdatabaseencoding => text("UTF8"),
        F::PgClientEncoding => text(cx.format.client_encoding.name()),
        _ => return Ok(None),
    }))
}

/// The statement's snapshot by transaction ids.
fn current_snapshot(cx: &ExecContext<'_>) -> Result<String> {
    let manager = cx.tx.manager();
    let snapshot = cx.tx.snapshot();
    let (xmin, xmax) = (manager.oldest_running().0, manager.next_xid().0);
    let mut running = Vec::new();
    for xid in xmin..xmax {
        sched::check_interrupts()?;
        let xid = base::Xid(xid);
        let ended = match manager.status(xid) {
            txn::XidStatus::Aborted => true,
            txn::XidStatus::Committed(_) => cx.tx.sees(xid, &snapshot),
            txn::XidStatus::Running => false,
        };
        if !ended {
            running.push(xid.0);
        }
    }
    Ok(types::io::snapshot::XidSnapshot { xmin, xmax, running }.text())
}

/// The fate of a transaction.
fn xact_status(xid: u64, cx: &ExecContext<'_>) -> Result<Datum> {
    let manager = cx.tx.manager();
    if xid >= manager.next_xid().0 {
        base::bail!(INVALID_PARAMETER_VALUE, "transaction ID {xid} is in the future");
    }
    // The first ones are the system's own.
    if xid < 3 {
        return Ok(if xid == 0 { Datum::Null } else { Datum::text("committed") });
    }
    Ok(Datum::text(match manager.status(base::Xid(xid)) {
        txn::XidStatus::Running => "in progress",
        txn::XidStatus::Committed(_) => "committed",
        txn::XidStatus::Aborted => "aborted",
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
    let function = match base {
        "current_database" | "current_catalog" => F::CurrentDatabase,
        "current_user" | "user" | "current_role" => F::CurrentUser,
        "session_user" => F::SessionUser,
        "current_schema" => F::CurrentSchema,
        _ => return Err(Error::unsupported(format_args!("function {base}"))),
    };
    Ok(plain(function, &[], run)?.unwrap_or_default())
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

//! nextval, currval, lastval, setval, and what else asks for a sequence's value.

use base::{Csn, Result, bail, err};
use catalog::Sequence;
use catalog::acl::privilege;
use catalog::sequence::Value;
use catalog::snapshot::Relation;
use txn::LockMode;
use types::func::SessionFunction as F;
use types::{Datum, oids};

use super::definition::quote_identifier;
use super::names::regclass_from_name;
use crate::run::Run;
use crate::session::args::{int_at, oid_at, text, text_at};
use crate::session::sequence_values::Last;

/// Functions over sequences.
pub fn call(function: F, args: &[Datum], run: &mut Run<'_, '_>) -> Result<Option<Datum>> {
    Ok(Some(match function {
        F::Nextval => {
            let sequence = open(oid_at(args, 0), run)?;
            permit(&sequence, privilege::USAGE | privilege::UPDATE, run)?;
            Datum::Int8(nextval(&sequence, run)?)
        }
        F::Currval => {
            let sequence = open(oid_at(args, 0), run)?;
            permit(&sequence, privilege::USAGE | privilege::SELECT, run)?;
            Datum::Int8(currval(&sequence, run)?)
        }
        F::Lastval => Datum::Int8(lastval(run)?),
        F::Setval => {
            let is_called = args.get(2) != Some(&Datum::Bool(false));
            let sequence = open(oid_at(args, 0), run)?;
            permit(&sequence, privilege::UPDATE, run)?;
            Datum::Int8(setval(&sequence, int_at(args, 1), is_called, run)?)
        }
        F::PgSequenceLastValue => {
            let sequence = open(oid_at(args, 0), run)?;
            permit(&sequence, privilege::USAGE | privilege::SELECT, run)?;
            let (value, _) = run.cx.engine.catalog.sequences.peek(sequence.rel)?;
            if value.is_called { Datum::Int8(value.last) } else { Datum::Null }
        }
        F::PgGetSerialSequence => owned(text_at(args, 0), text_at(args, 1), run)?,
        _ => return Ok(None),
    }))
}

/// The next value of an identity column's sequence.
///
/// # Errors
/// As nextval's, but for rights.
pub fn next_of_identity(id: u32, run: &mut Run<'_, '_>) -> Result<Datum> {
    let sequence = open(id, run)?;
    nextval(&sequence, run).map(Datum::Int8)
}

/// The sequence with this oid, locked: a definition that another transaction is changing is waited for.
fn open(id: u32, run: &mut Run<'_, '_>) -> Result<std::sync::Arc<Sequence>> {
    crate::relation_lock::lock(run.cx, id, LockMode::RowExclusive)?;
    find(id, run)
}

/// The sequence with this oid.
fn find(id: u32, run: &mut Run<'_, '_>) -> Result<std::sync::Arc<Sequence>> {
    let view = run.cx.catalog_tx.view();
    match view.sequence(id) {
        Some(sequence) => Ok(std::sync::Arc::clone(sequence)),
        None => match view.relation_by_oid(id) {
            Some(Relation::Table(t)) => {
                bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a sequence", t.name)
            }
            Some(Relation::Index(i)) => {
                bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a sequence", i.name)
            }
            _ => bail!(UNDEFINED_TABLE, "could not open relation with OID {id}"),
        },
    }
}

fn forbid_read_only(sequence: &Sequence, run: &mut Run<'_, '_>, what: &str) -> Result<()> {
    crate::parallel::expect_alone(&format!("{what}()"), run.cx)?;
    if run.cx.tx.read_only() && !base::Oid(sequence.oid).is_temporary() {
        bail!(READ_ONLY_SQL_TRANSACTION, "cannot execute {what}() in a read-only transaction");
    }
    Ok(())
}

/// `42501` unless the role has one of these rights.
fn permit(sequence: &Sequence, any: u16, run: &mut Run<'_, '_>) -> Result<()> {
    let role = run.cx.role;
    let view = run.cx.catalog_tx.view();
    let rights = crate::rights::of(run.cx, &view);
    if rights.held(role, catalog::AclKind::Sequence, sequence.oid).privileges & any != 0 {
        return Ok(());
    }
    Err(catalog::acl::denied("sequence", &sequence.name))
}

fn nextval(sequence: &Sequence, run: &mut Run<'_, '_>) -> Result<i64> {
    forbid_read_only(sequence, run, "nextval")?;
    if let Some(value) = run.cx.hooks.sequences().cached(sequence) {
        return Ok(value);
    }
    let taken = run.cx.engine.catalog.sequences.next(sequence)?;
    run.cx.tx.note_seen(Csn(taken.lsn.0));
    let known = run.cx.hooks.sequences().known();
    known.latest = Some(sequence.oid);
    let left = if taken.first == taken.last {
        0
    } else {
        (i128::from(taken.last) - i128::from(taken.first)) / i128::from(sequence.increment)
    };
    known.by_oid.insert(
        sequence.oid,
        Last {
            rel: sequence.rel,
            value: Some(taken.first),
            next: taken.first.wrapping_add(sequence.increment),
            left: left as i64,
        },
    );
    Ok(taken.first)
}

fn currval(sequence: &Sequence, run: &mut Run<'_, '_>) -> Result<i64> {
    let known = run.cx.hooks.sequences().0.as_ref();
    known.and_then(|k| k.by_oid.get(&sequence.oid)).and_then(|l| l.value).ok_or_else(|| {
        err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "currval of sequence \"{}\" is not yet defined in this session",
            sequence.name
        )
    })
}

fn lastval(run: &mut Run<'_, '_>) -> Result<i64> {
    let undefined =
        || err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "lastval is not yet defined in this session");
    let view = run.cx.catalog_tx.view();
    let known = run.cx.hooks.sequences().0.as_ref().ok_or_else(undefined)?;
    let latest = known.latest.and_then(|id| view.sequence(id)).ok_or_else(undefined)?;
    let value = known.by_oid.get(&latest.oid).and_then(|l| l.value).ok_or_else(undefined)?;
    permit(latest, privilege::USAGE | privilege::SELECT, run)?;
    Ok(value)
}

fn setval(sequence: &Sequence, value: i64, is_called: bool, run: &mut Run<'_, '_>) -> Result<i64> {
    forbid_read_only(sequence, run, "setval")?;
    if !(sequence.min..=sequence.max).contains(&value) {
        bail!(
            NUMERIC_VALUE_OUT_OF_RANGE,
            "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
            sequence.name,
            sequence.min,
            sequence.max
        );
    }
    let value_now = Value { last: value, is_called };
    let lsn = run.cx.engine.catalog.sequences.set(sequence.rel, value_now)?;
    run.cx.tx.note_seen(Csn(lsn.0));
    let known = run.cx.hooks.sequences().known();
    let rel = sequence.rel;
    let last =
        known.by_oid.entry(sequence.oid).or_insert(Last { rel, value: None, next: 0, left: 0 });
    last.left = 0;
    last.rel = rel;
    if is_called {
        last.value = Some(value);
    }
    Ok(value)
}

/// The sequence that a column owns, by name.
fn owned(table: &str, column: &str, run: &mut Run<'_, '_>) -> Result<Datum> {
    let id = regclass_from_name(table, run)?;
    let view = run.cx.catalog_tx.view();
    let Some(table) = view.table(id) else { return Ok(Datum::Null) };
    let Some((number, _)) = table.column(column) else {
        bail!(
            UNDEFINED_COLUMN,
            "column \"{column}\" of relation \"{}\" does not exist",
            table.name
        );
    };
    let found = view.sequences().find(|s| s.owned_by == Some((id, number)));
    Ok(found.map_or(Datum::Null, |s| {
        let schema = view.schema(s.schema).map_or("", |s| s.name.as_str());
        text(format!("{}.{}", quote_identifier(schema), quote_identifier(&s.name)))
    }))
}

/// The least and greatest value of a sequence's type.
pub fn type_range(ty: base::Oid) -> (i64, i64) {
    match ty {
        oids::INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        oids::INT4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    }
}

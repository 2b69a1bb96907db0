//! The trigger functions `tsvector_update_trigger` and `tsvector_update_trigger_column`: they keep a column of
//! lexemes in step with columns of text.

use base::{Oid, Result, err};
use catalog::{Column, Table};
use textsearch::config::Config;
use textsearch::document::Parsed;
use textsearch::vector::TSVECTOR;
use types::{Datum, oids};

use crate::language::{TriggerCall, TriggerEvent, TriggerResult, TriggerTiming};

/// `tsvector_update_trigger`.
pub const BY_NAME: u32 = 3752;
/// `tsvector_update_trigger_column`.
pub const BY_COLUMN: u32 = 3753;

fn column<'a>(table: &'a Table, name: &str) -> Option<(usize, &'a Column)> {
    table.columns.iter().enumerate().find(|(_, c)| !c.dropped && c.name == name)
}

/// Fires for a row.
///
/// # Errors
/// What is wrong with the trigger's arguments; those of dictionaries.
pub fn fire(function: u32, call: &TriggerCall<'_>) -> Result<TriggerResult> {
    let protocol =
        |what: &str| err!(E_R_I_E_TRIGGER_PROTOCOL_VIOLATED, "tsvector_update_trigger: {what}");
    if !call.row_level {
        return Err(protocol("must be fired for row"));
    }
    if call.timing != TriggerTiming::Before {
        return Err(protocol("must be fired BEFORE event"));
    }
    let (Some(new), TriggerEvent::Insert | TriggerEvent::Update) = (call.new, call.event) else {
        return Err(protocol("must be fired for INSERT or UPDATE"));
    };
    let [target, config, texts @ ..] = call.args else {
        return Err(protocol("arguments must be tsvector_field, ts_config, text_field1, ...)"));
    };
    let missing = |name: &str| err!(UNDEFINED_COLUMN, "column \"{name}\" does not exist");
    let (to, found) = match column(call.table, target) {
        Some(found) => found,
        None => {
            return Err(err!(UNDEFINED_COLUMN, "tsvector column \"{target}\" does not exist"));
        }
    };
    if Oid(found.ty) != TSVECTOR {
        return Err(err!(DATATYPE_MISMATCH, "column \"{target}\" is not of tsvector type"));
    }
    let config = match function {
        BY_COLUMN => config_in(call.table, new, config)?,
        _ => config_named(config)?,
    };
    let mut config = Config::get(config)?;
    let mut parsed = Parsed::default();
    let mut changed = call.old.is_none_or(|old| old[to].is_null());
    for name in texts {
        let (at, found) = column(call.table, name).ok_or_else(|| missing(name))?;
        if !matches!(Oid(found.ty), oids::TEXT | oids::VARCHAR | oids::BPCHAR) {
            return Err(err!(DATATYPE_MISMATCH, "column \"{name}\" is not of a character type"));
        }
        changed |= call.old.is_none_or(|old| old[at] != new[at]);
        if let Datum::Text(text) | Datum::Bpchar(text) = &new[at] {
            parsed.add(&mut config, text)?;
        }
    }
    if !changed && function == BY_NAME {
        return Ok(TriggerResult::Unchanged);
    }
    let mut row = new.to_vec();
    row[to] = Datum::open(parsed.into_vector()?);
    Ok(TriggerResult::Row(row))
}

fn config_named(name: &str) -> Result<Oid> {
    if !name.contains('.') {
        return Err(err!(
            INVALID_SCHEMA_NAME,
            "text search configuration name \"{name}\" must be schema-qualified"
        ));
    }
    types::user::object_named(oids::REGCONFIG, name).map(Oid)
}

fn config_in(table: &Table, row: &[Datum], name: &str) -> Result<Oid> {
    let (at, found) = column(table, name)
        .ok_or_else(|| err!(UNDEFINED_COLUMN, "configuration column \"{name}\" does not exist"))?;
    if Oid(found.ty) != oids::REGCONFIG {
        return Err(err!(DATATYPE_MISMATCH, "column \"{name}\" is not of regconfig type"));
    }
    match &row[at] {
        Datum::Oid(id) => Ok(Oid(*id)),
        _ => Err(err!(NULL_VALUE_NOT_ALLOWED, "configuration column \"{name}\" must not be null")),
    }
}

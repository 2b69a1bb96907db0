//! ALTER COLUMN … GENERATED, and what takes it back.

use base::{Result, err};
use catalog::{Column, Object, Table};
use sql::utility::{ColumnSequence, SequenceOptions};

use super::{notice, refresh, sequence};
use exec::context::ExecContext;

fn put(cx: &mut ExecContext<'_>, table: Table) -> Result<()> {
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

/// The table and its column's number.
fn find(cx: &mut ExecContext<'_>, id: u32, name: &str) -> Result<(Table, u16)> {
    let table = refresh(cx, id)?;
    match table.column(name) {
        Some((number, _)) => Ok((table, number)),
        None => Err(err!(
            UNDEFINED_COLUMN,
            "column \"{name}\" of relation \"{}\" does not exist",
            table.name
        )),
    }
}

fn column(table: &mut Table, number: u16) -> &mut Column {
    &mut table.columns[usize::from(number) - 1]
}

/// ADD GENERATED … AS IDENTITY.
///
/// # Errors
/// `55000` when the column doesn't allow it.
pub fn add(
    cx: &mut ExecContext<'_>,
    id: u32,
    name: &str,
    always: bool,
    options: &SequenceOptions,
) -> Result<()> {
    let (mut table, number) = find(cx, id, name)?;
    let relation = table.name.clone();
    let target = column(&mut table, number);
    let error = |what: &str| {
        err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "column \"{name}\" of relation \"{relation}\" {what}"
        )
    };
    if ![types::oids::INT2, types::oids::INT4, types::oids::INT8].contains(&base::Oid(target.ty)) {
        base::bail!(
            INVALID_PARAMETER_VALUE,
            "identity column type must be smallint, integer, or bigint"
        );
    }
    if !target.not_null {
        return Err(error("must be declared NOT NULL before identity can be added"));
    }
    if target.identity.is_some() {
        return Err(error("is already an identity column"));
    }
    if target.default.is_some() {
        return Err(error("already has a default value"));
    }
    let mut options = options.clone();
    options.ty.get_or_insert(base::Oid(target.ty));
    let def = ColumnSequence { identity: Some(always), options };
    sequence::add_to_column(cx, &mut table, number, &def)?;
    put(cx, table)
}

/// SET GENERATED, and the sequence's options.
///
/// # Errors
/// `55000` for other columns.
pub fn set(
    cx: &mut ExecContext<'_>,
    id: u32,
    name: &str,
    always: Option<bool>,
    options: &SequenceOptions,
) -> Result<()> {
    let (mut table, number) = find(cx, id, name)?;
    let relation = table.name.clone();
    let target = column(&mut table, number);
    let Some(identity) = &mut target.identity else {
        return Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "column \"{name}\" of relation \"{relation}\" is not an identity column"
        ));
    };
    identity.always = always.unwrap_or(identity.always);
    let sequence = sequence::of_identity(cx, *identity)?;
    put(cx, table)?;
    sequence::change(cx, sequence, options)
}

/// DROP IDENTITY.
///
/// # Errors
/// `55000` for other columns.
pub fn drop(cx: &mut ExecContext<'_>, id: u32, name: &str, if_exists: bool) -> Result<()> {
    let (mut table, number) = find(cx, id, name)?;
    let relation = table.name.clone();
    let Some(identity) = column(&mut table, number).identity.take() else {
        let message =
            format!("column \"{name}\" of relation \"{relation}\" is not an identity column");
        return no_such(cx, message, if_exists);
    };
    put(cx, table)?;
    sequence::remove(cx, identity.sequence)
}

/// DROP EXPRESSION: a generated column becomes a plain one; its values stay.
///
/// # Errors
/// `55000` for other columns.
pub fn drop_expression(
    cx: &mut ExecContext<'_>,
    id: u32,
    name: &str,
    if_exists: bool,
) -> Result<()> {
    let (mut table, number) = find(cx, id, name)?;
    let relation = table.name.clone();
    let target = column(&mut table, number);
    if !target.generated {
        let message = format!(
            "column \"{name}\" of relation \"{relation}\" is not a stored generated column"
        );
        return no_such(cx, message, if_exists);
    }
    target.generated = false;
    target.default = None;
    target.default_uses.clear();
    put(cx, table)
}

fn no_such(cx: &mut ExecContext<'_>, message: String, if_exists: bool) -> Result<()> {
    if !if_exists {
        return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{message}"));
    }
    notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
    Ok(())
}

/// `22023` for a type that no identity column has.
///
/// # Errors
/// That.
pub fn check_type(ty: base::Oid) -> Result<()> {
    if matches!(ty, types::oids::INT2 | types::oids::INT4 | types::oids::INT8) {
        return Ok(());
    }
    base::bail!(
        INVALID_PARAMETER_VALUE,
        "identity column type must be smallint, integer, or bigint"
    )
}

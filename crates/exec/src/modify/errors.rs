//! Errors of constraints, in PostgreSQL's words.

use base::{Error, Oid, err};
use catalog::{Snapshot, Table};
use types::{Datum, FormatContext};

/// A schema's name.
pub fn schema_name(view: &Snapshot, table: &Table) -> String {
    view.schema(table.schema).map_or_else(|| "public".to_owned(), |s| s.name.clone())
}

/// A value as text for a message; `null` for NULL.
fn text(ty: Oid, value: &Datum, format: &FormatContext) -> String {
    if value.is_null() {
        return "null".to_owned();
    }
    let mut out = Vec::new();
    match types::io::output(ty, value, format, &mut out) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(_) => "?".to_owned(),
    }
}

/// `Failing row contains (…).`
fn failing_row(table: &Table, row: &[Datum], format: &FormatContext) -> String {
    let mut values = Vec::new();
    for (n, column) in table.live_columns() {
        let mut value = text(Oid(column.ty), &row[usize::from(n) - 1], format);
        if value.len() > 64 {
            let cut = (0..=64).rev().find(|i| value.is_char_boundary(*i)).unwrap_or(0);
            value.truncate(cut);
            value.push_str("...");
        }
        values.push(value);
    }
    format!("Failing row contains ({}).", values.join(", "))
}

/// `23502`.
pub fn not_null(
    view: &Snapshot,
    table: &Table,
    column: &str,
    row: &[Datum],
    format: &FormatContext,
) -> Error {
    err!(
        NOT_NULL_VIOLATION,
        "null value in column \"{column}\" of relation \"{}\" violates not-null constraint",
        table.name
    )
    .detail(failing_row(table, row, format))
    .table(&schema_name(view, table), &table.name)
    .column(column)
}

/// `44000`: a row that the view it goes through would not show.
pub fn check_option(table: &Table, view: &str, row: &[Datum], format: &FormatContext) -> Error {
    err!(WITH_CHECK_OPTION_VIOLATION, "new row violates check option for view \"{view}\"")
        .detail(failing_row(table, row, format))
}

/// `23514`.
pub fn check(
    view: &Snapshot,
    table: &Table,
    constraint: &str,
    row: &[Datum],
    format: &FormatContext,
) -> Error {
    err!(
        CHECK_VIOLATION,
        "new row for relation \"{}\" violates check constraint \"{constraint}\"",
        table.name
    )
    .detail(failing_row(table, row, format))
    .table(&schema_name(view, table), &table.name)
    .constraint(constraint)
}

/// `(a, b)=(1, 2)` for some columns (from 1) of a table.
pub fn key_text(
    table: &Table,
    columns: impl Iterator<Item = u16> + Clone,
    values: &[&Datum],
    format: &FormatContext,
) -> String {
    let names: Vec<&str> =
        columns.clone().map(|n| table.columns[usize::from(n) - 1].name.as_str()).collect();
    let texts: Vec<String> = columns
        .zip(values)
        .map(|(n, v)| text(Oid(table.columns[usize::from(n) - 1].ty), v, format))
        .collect();
    format!("({})=({})", names.join(", "), texts.join(", "))
}

/// Whether an expression's text is a call, which needs no parentheses as an index's key.
fn is_call(sql: &str) -> bool {
    let name = sql.split('(').next().unwrap_or_default();
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    sql.ends_with(')') && !name.is_empty() && name.chars().all(plain)
}

/// `(a, lower(b))=(1, x)` of a row; computed values stand behind the table's columns.
fn index_key_text(
    table: &Table,
    index: &catalog::Index,
    row: &[Datum],
    format: &FormatContext,
) -> String {
    let codec = crate::table::KeyCodec::new(table, index);
    let (mut names, mut texts) = (Vec::new(), Vec::new());
    for (key, (place, ty, _)) in index.columns.iter().zip(&codec.columns) {
        names.push(match &key.expression {
            Some(e) if is_call(&e.sql) => e.sql.clone(),
            Some(e) => format!("({})", e.sql),
            None => table.columns[usize::from(key.column) - 1].name.clone(),
        });
        let value = row.get(usize::from(*place)).unwrap_or(&Datum::Null);
        texts.push(text(*ty, value, format));
    }
    format!("({})=({})", names.join(", "), texts.join(", "))
}

/// `23505` for a row.
pub fn duplicate(
    view: &Snapshot,
    table: &Table,
    index: &catalog::Index,
    row: &[Datum],
    format: &FormatContext,
) -> Error {
    err!(UNIQUE_VIOLATION, "duplicate key value violates unique constraint \"{}\"", index.name)
        .detail(format!("Key {} already exists.", index_key_text(table, index, row, format)))
        .table(&schema_name(view, table), &table.name)
        .constraint(&index.name)
}

/// `23505` while an index is built.
pub fn duplicated_in_build(
    view: &Snapshot,
    table: &Table,
    index: &catalog::Index,
    row: &[Datum],
    format: &FormatContext,
) -> Error {
    err!(UNIQUE_VIOLATION, "could not create unique index \"{}\"", index.name)
        .detail(format!("Key {} is duplicated.", index_key_text(table, index, row, format)))
        .table(&schema_name(view, table), &table.name)
        .constraint(&index.name)
}

/// `23503`: the other table has no such row.
pub fn missing_parent(
    view: &Snapshot,
    child: &Table,
    parent: &Table,
    constraint: &str,
    key: String,
) -> Error {
    err!(
        FOREIGN_KEY_VIOLATION,
        "insert or update on table \"{}\" violates foreign key constraint \"{constraint}\"",
        child.name
    )
    .detail(format!("Key {key} is not present in table \"{}\".", parent.name))
    .table(&schema_name(view, child), &child.name)
    .constraint(constraint)
}

/// `23503`: a key of MATCH FULL that is NULL in part.
pub fn mixed_nulls(view: &Snapshot, child: &Table, constraint: &str) -> Error {
    err!(
        FOREIGN_KEY_VIOLATION,
        "insert or update on table \"{}\" violates foreign key constraint \"{constraint}\"",
        child.name
    )
    .detail("MATCH FULL does not allow mixing of null and nonnull key values.")
    .table(&schema_name(view, child), &child.name)
    .constraint(constraint)
}

/// `23503`: rows of another table still refer to the row.
pub fn still_referenced(
    view: &Snapshot,
    parent: &Table,
    child: &Table,
    constraint: &str,
    key: String,
) -> Error {
    err!(
        FOREIGN_KEY_VIOLATION,
        "update or delete on table \"{}\" violates foreign key constraint \"{constraint}\" on table \"{}\"",
        parent.name,
        child.name
    )
    .detail(format!("Key {key} is still referenced from table \"{}\".", child.name))
    .table(&schema_name(view, child), &child.name)
    .constraint(constraint)
}

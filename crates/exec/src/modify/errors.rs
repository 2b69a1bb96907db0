//! Errors of constraints, in PostgreSQL's words.
//!
//! A detail shows what the session's role may read, and what its statement has written: of a row the
//! columns, of a key all columns or none. So no constraint tells a column's values to those who may
//! only write it.

use base::{Error, Oid, err};
use catalog::acl::privilege;
use catalog::{AclKind, Snapshot, Table};
use types::{Datum, FormatContext};

use super::writer::Root;
use crate::context::ExecContext;
use crate::rights;

/// Which columns of a table the session's role may read.
enum Readable {
    All,
    /// By number, from 1.
    Columns(Vec<u16>),
    /// Nothing: policies say which rows are shown.
    Nothing,
}

impl Readable {
    fn of(cx: &mut ExecContext<'_>, table: &Table) -> Readable {
        let view = cx.catalog_tx.view();
        let rights = rights::of(cx, &view);
        let select = privilege::SELECT;
        if rights.is_guarded(cx.role, table) {
            return Readable::Nothing;
        }
        if rights.is_superuser(cx.role) || rights.may(cx.role, AclKind::Table, table.oid, select) {
            return Readable::All;
        }
        let may = |n: &u16| rights.held_on_column(cx.role, table.oid, *n).privileges & select != 0;
        Readable::Columns(table.live_columns().map(|(n, _)| n).filter(may).collect())
    }

    /// Whether all of these are.
    fn are(&self, mut columns: impl Iterator<Item = u16>) -> bool {
        match self {
            Readable::All => true,
            Readable::Nothing => false,
            Readable::Columns(some) => columns.all(|n| some.contains(&n)),
        }
    }
}

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

/// A row that a statement writes.
pub struct Written<'a> {
    /// The table that it goes into.
    pub table: &'a Table,
    /// In the table's order.
    pub row: &'a [Datum],
    /// The columns that the statement gives values, from 1.
    pub columns: &'a [u16],
    /// The statement's table, when the row is in a child of it.
    pub root: Option<&'a Root>,
}

/// `Failing row contains (…).`, of what the session's role may see; None: nothing.
fn failing_row(cx: &mut ExecContext<'_>, written: &Written<'_>) -> Option<String> {
    let (table, place): (&Table, &dyn Fn(u16) -> u16) = match written.root {
        Some(root) => (&root.table, &|n| root.numbers[usize::from(n) - 1]),
        None => (written.table, &|n| n),
    };
    let readable = Readable::of(cx, table);
    if matches!(readable, Readable::Nothing) {
        return None;
    }
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for (n, column) in table.live_columns() {
        let n = place(n);
        let given = || written.columns.contains(&n);
        if let Readable::Columns(some) = &readable
            && !given()
            && !some.iter().any(|s| place(*s) == n)
        {
            continue;
        }
        let mut value = text(Oid(column.ty), &written.row[usize::from(n) - 1], cx.format);
        if value.len() > 64 {
            let cut = (0..=64).rev().find(|i| value.is_char_boundary(*i)).unwrap_or(0);
            value.truncate(cut);
            value.push_str("...");
        }
        names.push(column.name.as_str());
        values.push(value);
    }
    let values = values.join(", ");
    match readable {
        Readable::All => Some(format!("Failing row contains ({values}).")),
        Readable::Nothing => None,
        Readable::Columns(_) if names.is_empty() => None,
        Readable::Columns(_) => {
            Some(format!("Failing row contains ({}) = ({values}).", names.join(", ")))
        }
    }
}

/// The error, with the row as its detail.
fn with_row(error: Error, cx: &mut ExecContext<'_>, written: &Written<'_>) -> Error {
    match failing_row(cx, written) {
        Some(row) => error.detail(row),
        None => error,
    }
}

/// `23502`.
pub fn not_null(cx: &mut ExecContext<'_>, column: &str, written: &Written<'_>) -> Error {
    let table = written.table;
    let error = err!(
        NOT_NULL_VIOLATION,
        "null value in column \"{column}\" of relation \"{}\" violates not-null constraint",
        table.name
    );
    let schema = schema_name(&cx.catalog_tx.view(), table);
    with_row(error, cx, written).table(&schema, &table.name).column(column)
}

/// `44000`: a row that the view it goes through would not show.
pub fn check_option(cx: &mut ExecContext<'_>, view: &str, written: &Written<'_>) -> Error {
    let error =
        err!(WITH_CHECK_OPTION_VIOLATION, "new row violates check option for view \"{view}\"");
    with_row(error, cx, written)
}

/// `23514`.
pub fn check(cx: &mut ExecContext<'_>, constraint: &str, written: &Written<'_>) -> Error {
    let table = written.table;
    let error = err!(
        CHECK_VIOLATION,
        "new row for relation \"{}\" violates check constraint \"{constraint}\"",
        table.name
    );
    let schema = schema_name(&cx.catalog_tx.view(), table);
    with_row(error, cx, written).table(&schema, &table.name).constraint(constraint)
}

/// `(a, b)=(1, 2)` for some columns (from 1) of a table; None when the session's role may not read them
/// all.
fn key_text(
    cx: &mut ExecContext<'_>,
    table: &Table,
    columns: impl Iterator<Item = u16> + Clone,
    values: &[&Datum],
) -> Option<String> {
    if !Readable::of(cx, table).are(columns.clone()) {
        return None;
    }
    let names: Vec<&str> =
        columns.clone().map(|n| table.columns[usize::from(n) - 1].name.as_str()).collect();
    let texts: Vec<String> = columns
        .zip(values)
        .map(|(n, v)| text(Oid(table.columns[usize::from(n) - 1].ty), v, cx.format))
        .collect();
    Some(format!("({})=({})", names.join(", "), texts.join(", ")))
}

/// Whether an expression's text is a call, which needs no parentheses as an index's key.
fn is_call(sql: &str) -> bool {
    let name = sql.split('(').next().unwrap_or_default();
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    sql.ends_with(')') && !name.is_empty() && name.chars().all(plain)
}

/// `(a, lower(b))=(1, x)` of a row, whose computed values stand behind the table's columns; None when the
/// session's role may not read all of them. What is computed is shown to those who may read the table.
fn index_key_text(
    cx: &mut ExecContext<'_>,
    table: &Table,
    index: &catalog::Index,
    row: &[Datum],
) -> Option<String> {
    // The number 0 is that of an expression, and no column's.
    if !Readable::of(cx, table).are(index.columns.iter().map(|c| match c.expression {
        Some(_) => 0,
        None => c.column,
    })) {
        return None;
    }
    let codec = crate::table::KeyCodec::new(table, index);
    let (mut names, mut texts) = (Vec::new(), Vec::new());
    for (key, (place, ty, _)) in index.columns.iter().zip(&codec.columns) {
        names.push(match &key.expression {
            Some(e) if is_call(&e.sql) => e.sql.clone(),
            Some(e) => format!("({})", e.sql),
            None => table.columns[usize::from(key.column) - 1].name.clone(),
        });
        let value = row.get(usize::from(*place)).unwrap_or(&Datum::Null);
        texts.push(text(*ty, value, cx.format));
    }
    Some(format!("({})=({})", names.join(", "), texts.join(", ")))
}

/// `23505` for a row.
pub fn duplicate(
    cx: &mut ExecContext<'_>,
    table: &Table,
    index: &catalog::Index,
    row: &[Datum],
) -> Error {
    let mut error =
        err!(UNIQUE_VIOLATION, "duplicate key value violates unique constraint \"{}\"", index.name);
    if let Some(key) = index_key_text(cx, table, index, row) {
        error = error.detail(format!("Key {key} already exists."));
    }
    let schema = schema_name(&cx.catalog_tx.view(), table);
    error.table(&schema, &table.name).constraint(&index.name)
}

/// `23505` while an index is built.
pub fn duplicated_in_build(
    cx: &mut ExecContext<'_>,
    table: &Table,
    index: &catalog::Index,
    row: &[Datum],
) -> Error {
    let detail = match index_key_text(cx, table, index, row) {
        Some(key) => format!("Key {key} is duplicated."),
        None => "Duplicate keys exist.".to_owned(),
    };
    let schema = schema_name(&cx.catalog_tx.view(), table);
    err!(UNIQUE_VIOLATION, "could not create unique index \"{}\"", index.name)
        .detail(detail)
        .table(&schema, &table.name)
        .constraint(&index.name)
}

/// `23P01` for a row that another one, which is `there`, excludes.
pub fn excluded(
    cx: &mut ExecContext<'_>,
    table: &Table,
    index: &catalog::Index,
    row: &[Datum],
    there: &[Datum],
) -> Error {
    let own = index_key_text(cx, table, index, row);
    let other = index_key_text(cx, table, index, there);
    let detail = match (own, other) {
        (Some(own), Some(other)) => format!("Key {own} conflicts with existing key {other}."),
        _ => "Key conflicts with existing key.".to_owned(),
    };
    let schema = schema_name(&cx.catalog_tx.view(), table);
    err!(
        EXCLUSION_VIOLATION,
        "conflicting key value violates exclusion constraint \"{}\"",
        index.name
    )
    .detail(detail)
    .table(&schema, &table.name)
    .constraint(&index.name)
}

/// `23P01` for rows that are there when a constraint is made.
pub fn excluded_in_build(
    cx: &mut ExecContext<'_>,
    table: &Table,
    index: &catalog::Index,
    row: &[Datum],
    there: &[Datum],
) -> Error {
    let own = index_key_text(cx, table, index, row);
    let other = index_key_text(cx, table, index, there);
    let detail = match (own, other) {
        (Some(own), Some(other)) => format!("Key {own} conflicts with key {other}."),
        _ => "Key conflicts exist.".to_owned(),
    };
    let schema = schema_name(&cx.catalog_tx.view(), table);
    err!(EXCLUSION_VIOLATION, "could not create exclusion constraint \"{}\"", index.name)
        .detail(detail)
        .table(&schema, &table.name)
        .constraint(&index.name)
}

/// `23503`: the other table has no row with the `key` of these columns.
pub fn missing_parent(
    cx: &mut ExecContext<'_>,
    child: &Table,
    parent: &Table,
    constraint: &str,
    (columns, key): (&[u16], &[Datum]),
) -> Error {
    let values: Vec<&Datum> = key.iter().collect();
    let key = key_text(cx, child, columns.iter().copied(), &values);
    let key = key.map_or_else(String::new, |k| format!(" {k}"));
    let schema = schema_name(&cx.catalog_tx.view(), child);
    err!(
        FOREIGN_KEY_VIOLATION,
        "insert or update on table \"{}\" violates foreign key constraint \"{constraint}\"",
        child.name
    )
    .detail(format!("Key{key} is not present in table \"{}\".", parent.name))
    .table(&schema, &child.name)
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

/// The constraint of which a partition's is a part, with its table.
fn topmost<'v>(view: &'v Snapshot, table: &'v Table, name: &'v str) -> (&'v Table, &'v str) {
    let (mut table, mut name) = (table, name);
    while let Some(part) = table.constraints.iter().find(|c| c.name == name && c.parent != 0)
        && let Some(above) = table.partition_of().and_then(|id| view.table(id))
        && let Some(whole) = above.constraints.iter().find(|c| c.oid == part.parent)
    {
        (table, name) = (above, whole.name.as_str());
    }
    (table, name)
}

/// The name of a foreign key's part for a partition of the table that it refers to: the key's, with the partition's
/// number among all.
pub fn named_for_part<'n>(
    view: &Snapshot,
    child: &Table,
    constraint: &'n str,
    part: u32,
) -> std::borrow::Cow<'n, str> {
    let key = child.foreign_keys().find(|(c, k)| c.name == constraint && k.table != part);
    let whole = key.and_then(|(_, key)| view.table(key.table)).filter(|t| t.is_partitioned());
    match whole.and_then(|whole| crate::partition::number_among(view, whole, part)) {
        Some(number) => format!("{constraint}{number}").into(),
        None => constraint.into(),
    }
}

/// `23503`: rows of another table still refer to the row with the `key` of these columns.
pub fn still_referenced(
    cx: &mut ExecContext<'_>,
    parent: &Table,
    child: &Table,
    constraint: &str,
    (columns, key): (&[u16], &[Datum]),
) -> Error {
    let values: Vec<&Datum> = key.iter().collect();
    let key = key_text(cx, parent, columns.iter().copied(), &values);
    let key = key.map_or_else(String::new, |k| format!(" {k}"));
    let view = cx.catalog_tx.view();
    let (child, constraint) = topmost(&view, child, constraint);
    let constraint = &*named_for_part(&view, child, constraint, parent.oid);
    let schema = schema_name(&view, child);
    err!(
        FOREIGN_KEY_VIOLATION,
        "update or delete on table \"{}\" violates foreign key constraint \"{constraint}\" on table \"{}\"",
        parent.name,
        child.name
    )
    .detail(format!("Key{key} is still referenced from table \"{}\".", child.name))
    .table(&schema, &child.name)
    .constraint(constraint)
}

/// `23514`: a row does not fit the bound of the partition that a statement names.
pub fn partition(cx: &mut ExecContext<'_>, written: &Written<'_>) -> Error {
    let (table, schema) = (written.table, schema_name(&cx.catalog_tx.view(), written.table));
    let error = err!(
        CHECK_VIOLATION,
        "new row for relation \"{}\" violates partition constraint",
        table.name
    )
    .table(&schema, &table.name);
    with_row(error, cx, written)
}

/// Whether the session's role may read these columns of a table.
pub fn may_read(
    cx: &mut ExecContext<'_>,
    table: &Table,
    columns: &mut dyn Iterator<Item = u16>,
) -> bool {
    Readable::of(cx, table).are(columns)
}

//! Names and values that rows of several tables show.

use types::{Datum, TypeIo};

use crate::object::ids::INFORMATION_SCHEMA;
use crate::object::{Id, Table};
use crate::system::row::{Row, row, text};
use crate::system::{SystemCx, facts};

pub(super) fn schema_name(cx: &SystemCx<'_>, id: Id) -> Datum {
    cx.catalog.schema(id).map_or(Datum::Null, |s| text(&s.name))
}

pub(super) fn role_name(cx: &SystemCx<'_>, id: Id) -> Datum {
    cx.catalog.roles().find(|r| r.oid == id).map_or(Datum::Null, |r| text(&r.name))
}

pub(super) fn database_name(cx: &SystemCx<'_>) -> Datum {
    cx.catalog.databases().find(|d| d.oid == cx.database).map_or(Datum::Null, |d| text(&d.name))
}

pub(super) fn info(
    cx: &SystemCx<'_>,
    name: &'static str,
    prefix: &str,
    schema: Id,
    table: &str,
) -> Row {
    row(INFORMATION_SCHEMA, name)
        .set(&format!("{prefix}_catalog"), database_name(cx))
        .set(&format!("{prefix}_schema"), schema_name(cx, schema))
        .set(&format!("{prefix}_name"), table)
}

/// The tables that `information_schema` shows: not the temporary ones of other sessions.
pub(super) fn info_visible<'a>(
    cx: &'a SystemCx<'_>,
) -> impl Iterator<Item = &'a std::sync::Arc<Table>> {
    let own = cx.catalog.temporary();
    cx.catalog.tables().filter(move |t| !t.is_temporary() || Some(t.schema) == own)
}

/// Where a type's values may be kept: plain, main or extended.
pub(super) fn storage_of(t: &TypeIo) -> char {
    match facts::kinds().get(t.oid.0) {
        Some(fact) => fact.letter(2),
        None if t.len >= 0 => 'p',
        None => 'x',
    }
}

//! `pg_collation` and the views of `information_schema` over it.

use base::Result;
use types::Datum;

use super::row::{Row, oid, row};
use crate::collation::UTF8;
use crate::object::ids::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::object::{Collation, Id};
use crate::system::cx::SystemCx;
use crate::system::names::{database_name, schema_name};

type Rows = Result<Vec<Vec<Datum>>>;

pub(super) fn pg_collation(cx: &SystemCx<'_>) -> Rows {
    let one = |c: &Collation| {
        let mut out = row(PG_CATALOG, "pg_collation")
            .set("oid", oid(c.oid))
            .set("collname", c.name.as_str())
            .set("collnamespace", oid(c.schema))
            .set("collowner", oid(c.owner))
            .set("collprovider", c.provider)
            .set("collisdeterministic", c.deterministic)
            .set("collencoding", c.encoding);
        if let Some((collate, ctype)) = &c.libc {
            out = out.set("collcollate", collate.as_str()).set("collctype", ctype.as_str());
        }
        if let Some(locale) = &c.icu_locale {
            out = out.set("colliculocale", locale.as_str());
        }
        if let Some(version) = &c.version {
            out = out.set("collversion", version.as_str());
        }
        out.done()
    };
    Ok(cx.catalog.collations().map(|c| one(c)).collect())
}

fn named(cx: &SystemCx<'_>, view: &'static str, c: &Collation) -> Row {
    row(INFORMATION_SCHEMA, view)
        .set("collation_catalog", database_name(cx))
        .set("collation_schema", schema_name(cx, c.schema))
        .set("collation_name", c.name.as_str())
}

/// A column's or type's collation in a row of `information_schema`; not `default`.
pub(super) fn named_in(cx: &SystemCx<'_>, row: Row, id: Id) -> Row {
    match cx.catalog.collation(id).filter(|c| c.provider != 'd') {
        Some(c) => row
            .set("collation_catalog", database_name(cx))
            .set("collation_schema", schema_name(cx, c.schema))
            .set("collation_name", c.name.as_str()),
        None => row,
    }
}

/// Those that can be used in a database in UTF-8: all but `default`.
fn usable<'c>(cx: &SystemCx<'c>) -> impl Iterator<Item = &'c Collation> {
    let fits = |c: &&Collation| c.provider != 'd' && matches!(c.encoding, -1 | UTF8);
    cx.catalog.collations().map(|c| &**c).filter(fits)
}

pub(super) fn info_collations(cx: &SystemCx<'_>) -> Rows {
    let one = |c| named(cx, "collations", c).set("pad_attribute", "NO PAD").done();
    let all = cx.catalog.collations().map(|c| &**c);
    Ok(all.filter(|c| matches!(c.encoding, -1 | UTF8)).map(one).collect())
}

pub(super) fn info_applicability(cx: &SystemCx<'_>) -> Rows {
    let view = "collation_character_set_applicability";
    let one = |c| named(cx, view, c).set("character_set_name", "UTF8").done();
    Ok(usable(cx).map(one).collect())
}

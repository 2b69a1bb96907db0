//! Sequences.

use base::Result;
use types::{Datum, oids};

use super::row::{oid, row};
use crate::acl::Rights;
use crate::object::ids::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::object::{AclKind, Sequence};
use crate::privilege;
use crate::system::cx::SystemCx;
use crate::system::names::{database_name, role_name, schema_name};

type Rows = Result<Vec<Vec<Datum>>>;

pub(super) fn pg_sequence(cx: &SystemCx<'_>) -> Rows {
    let one = |s: &Sequence| {
        row(PG_CATALOG, "pg_sequence")
            .set("seqrelid", oid(s.oid))
            .set("seqtypid", oid(s.ty))
            .set("seqstart", s.start)
            .set("seqincrement", s.increment)
            .set("seqmax", s.max)
            .set("seqmin", s.min)
            .set("seqcache", s.cache)
            .set("seqcycle", s.cycle)
            .done()
    };
    Ok(cx.catalog.sequences().map(|s| one(s)).collect())
}

pub(super) fn pg_sequences(cx: &SystemCx<'_>) -> Rows {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    let enough = privilege::USAGE | privilege::SELECT;
    let may =
        |s: &Sequence| rights.held(cx.role, AclKind::Sequence, s.oid).privileges & enough != 0;
    let one = |s: &Sequence| {
        let out = row(PG_CATALOG, "pg_sequences")
            .set("schemaname", schema_name(cx, s.schema))
            .set("sequencename", s.name.as_str())
            .set("sequenceowner", role_name(cx, s.owner))
            .set("data_type", oid(s.ty))
            .set("start_value", s.start)
            .set("min_value", s.min)
            .set("max_value", s.max)
            .set("increment_by", s.increment)
            .set("cycle", s.cycle)
            .set("cache_size", s.cache);
        Ok(match cx.server.sequence(s.rel)? {
            Some((last, _, true)) if may(s) => out.set("last_value", last).done(),
            _ => out.done(),
        })
    };
    cx.catalog.sequences().map(|s| one(s)).collect()
}

/// The rows of `SELECT … FROM sequence`, of all sequences.
pub(super) fn data(cx: &SystemCx<'_>) -> Rows {
    let wanted = cx.equal.iter().find_map(|(column, value)| match (column, value) {
        (0, Datum::Oid(id)) => Some(*id),
        _ => None,
    });
    let one = |s: &Sequence| {
        let value = cx.server.sequence(s.rel)?;
        Ok(value.map(|(last, covered, called)| {
            row(PG_CATALOG, "pg_sequence_data()")
                .set("seqrelid", oid(s.oid))
                .set("last_value", last)
                .set("log_cnt", covered)
                .set("is_called", called)
                .done()
        }))
    };
    let all = cx.catalog.sequences().filter(|s| wanted.is_none_or(|w| w == s.oid));
    all.filter_map(|s| one(s).transpose()).collect()
}

pub(super) fn info_sequences(cx: &SystemCx<'_>) -> Rows {
    let text = |n: i64| Datum::Text(n.to_string().into());
    let one = |s: &Sequence| {
        let bits = match base::Oid(s.ty) {
            oids::INT2 => 16,
            oids::INT4 => 32,
            _ => 64,
        };
        row(INFORMATION_SCHEMA, "sequences")
            .set("sequence_catalog", database_name(cx))
            .set("sequence_schema", schema_name(cx, s.schema))
            .set("sequence_name", s.name.as_str())
            .set("data_type", types::io::format_type(base::Oid(s.ty), -1).as_str())
            .set("numeric_precision", bits)
            .set("numeric_precision_radix", 2)
            .set("numeric_scale", 0)
            .set("start_value", text(s.start))
            .set("minimum_value", text(s.min))
            .set("maximum_value", text(s.max))
            .set("increment", text(s.increment))
            .set("cycle_option", if s.cycle { "YES" } else { "NO" })
            .done()
    };
    // As in PostgreSQL, those of identity columns are not shown.
    Ok(cx.catalog.sequences().filter(|s| !s.identity).map(|s| one(s)).collect())
}

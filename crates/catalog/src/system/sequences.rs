//! Sequences.

use base::Result;
use types::{Datum, oids};

use super::SystemCx;
use super::row::{oid, row};
use super::views::{database_name, role_name, schema_name};
use crate::acl::{Rights, privilege};
use crate::object::ids::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::object::{AclKind, Sequence};

type Rows = Result<Vec<Vec<Datum>>>;

/// Classes, as `pg_depend` and `pg_description` name them.
pub mod class {
    use crate::object::Id;
    /// `pg_class`.
    pub const RELATION: Id = 1259;
    /// `pg_type`.
    pub const TYPE: Id = 1247;
    /// `pg_proc`.
    pub const FUNCTION: Id = 1255;
    /// `pg_constraint`.
    pub const CONSTRAINT: Id = 2606;
    /// `pg_attrdef`.
    pub const DEFAULT: Id = 2604;
    /// `pg_namespace`.
    pub const SCHEMA: Id = 2615;
    /// `pg_trigger`.
    pub const TRIGGER: Id = 2620;
    /// `pg_event_trigger`.
    pub const EVENT_TRIGGER: Id = 3466;
    /// `pg_policy`.
    pub const POLICY: Id = 3256;
    /// `pg_rewrite`.
    pub const REWRITE: Id = 2618;
    /// `pg_authid`.
    pub const ROLE: Id = 1260;
    /// `pg_database`.
    pub const DATABASE: Id = 1262;
    /// `pg_tablespace`.
    pub const TABLESPACE: Id = 1213;
    /// `pg_collation`.
    pub const COLLATION: Id = 3456;
    /// `pg_am`.
    pub const ACCESS_METHOD: Id = 2601;
    /// `pg_cast`.
    pub const CAST: Id = 2605;
    /// `pg_language`.
    pub const LANGUAGE: Id = 2612;
    /// `pg_opclass`.
    pub const OPERATOR_CLASS: Id = 2616;
    /// `pg_operator`.
    pub const OPERATOR: Id = 2617;
    /// `pg_opfamily`.
    pub const OPERATOR_FAMILY: Id = 2753;
    /// `pg_statistic_ext`.
    pub const STATISTICS: Id = 3381;
    /// `pg_amop`.
    pub const FAMILY_OPERATOR: Id = 2602;
    /// `pg_amproc`.
    pub const FAMILY_FUNCTION: Id = 2603;
    /// `pg_conversion`.
    pub const CONVERSION: Id = 2607;
    /// `pg_ts_config`.
    pub const TS_CONFIG: Id = 3602;
    /// `pg_ts_dict`.
    pub const TS_DICT: Id = 3600;
    /// `pg_ts_parser`.
    pub const TS_PARSER: Id = 3601;
    /// `pg_ts_template`.
    pub const TS_TEMPLATE: Id = 3764;
    /// `pg_extension`.
    pub const EXTENSION: Id = 3079;
    /// `pg_largeobject`.
    pub const LARGE_OBJECT: Id = 2613;
}

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

/// What `SELECT … FROM sequence` shows, of all sequences.
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

//! Sequences, and what depends on what.

use base::Result;
use types::{Datum, oids};

use super::SystemCx;
use super::row::{oid, row};
use super::views::{database_name, role_name, schema_name};
use crate::acl::{Rights, privilege};
use crate::object::ids::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::object::{AclKind, ConstraintKind, Id, Sequence};

type Rows = Result<Vec<Vec<Datum>>>;

/// Classes, as `pg_depend` and `pg_description` name them.
pub(super) mod class {
    use crate::object::Id;
    pub const RELATION: Id = 1259;
    pub const TYPE: Id = 1247;
    pub const FUNCTION: Id = 1255;
    pub const CONSTRAINT: Id = 2606;
    pub const DEFAULT: Id = 2604;
    pub const SCHEMA: Id = 2615;
    pub const REWRITE: Id = 2618;
    pub const ROLE: Id = 1260;
    pub const DATABASE: Id = 1262;
    pub const TABLESPACE: Id = 1213;
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
        match cx.server.sequence(s.rel) {
            Some((last, _, true)) if may(s) => out.set("last_value", last).done(),
            _ => out.done(),
        }
    };
    Ok(cx.catalog.sequences().map(|s| one(s)).collect())
}

/// What `SELECT … FROM sequence` shows, of all sequences.
pub(super) fn data(cx: &SystemCx<'_>) -> Rows {
    let wanted = cx.equal.iter().find_map(|(column, value)| match (column, value) {
        (0, Datum::Oid(id)) => Some(*id),
        _ => None,
    });
    let one = |s: &Sequence| {
        let (last, covered, called) = cx.server.sequence(s.rel)?;
        Some(
            row(PG_CATALOG, "pg_sequence_data()")
                .set("seqrelid", oid(s.oid))
                .set("last_value", last)
                .set("log_cnt", covered)
                .set("is_called", called)
                .done(),
        )
    };
    let all = cx.catalog.sequences().filter(|s| wanted.is_none_or(|w| w == s.oid));
    Ok(all.filter_map(|s| one(s)).collect())
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

/// An object in `pg_depend`: class, oid, column.
type End = (Id, Id, u16);

pub(super) fn pg_depend(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    let mut tie = |from: End, to: End, kind: char| {
        out.push(
            row(PG_CATALOG, "pg_depend")
                .set("classid", oid(from.0))
                .set("objid", oid(from.1))
                .set("objsubid", i32::from(from.2))
                .set("refclassid", oid(to.0))
                .set("refobjid", oid(to.1))
                .set("refobjsubid", i32::from(to.2))
                .set("deptype", kind)
                .done(),
        );
    };
    let class_of = |id: Id| super::schema::class_of(cx, id);
    for s in cx.catalog.sequences() {
        let own = (class::RELATION, s.oid, 0);
        tie(own, (class::SCHEMA, s.schema, 0), 'n');
        if let Some((table, column)) = s.owned_by {
            let kind = if s.identity { 'i' } else { 'a' };
            tie(own, (class::RELATION, table, column), kind);
        }
    }
    for t in cx.catalog.tables() {
        let own = (class::RELATION, t.oid, 0);
        tie(own, (class::SCHEMA, t.schema, 0), 'n');
        for (n, column) in t.live_columns() {
            if cx.catalog.user_type(column.ty).is_some() {
                tie((class::RELATION, t.oid, n), (class::TYPE, column.ty, 0), 'n');
            }
            if column.default.is_some() {
                let default = (class::DEFAULT, super::relations::default_id(t.oid, n), 0);
                tie(default, (class::RELATION, t.oid, n), 'a');
                for id in &column.default_uses {
                    tie(default, (class_of(*id), *id, 0), 'n');
                }
            }
        }
        for constraint in &t.constraints {
            let from = (class::CONSTRAINT, constraint.oid, 0);
            match &constraint.kind {
                ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index } => {
                    tie((class::RELATION, *index, 0), from, 'i');
                    for key in cx.catalog.index(*index).iter().flat_map(|i| &i.columns) {
                        tie(from, (class::RELATION, t.oid, key.column), 'a');
                    }
                }
                ConstraintKind::ForeignKey(key) => {
                    for n in &key.columns {
                        tie(from, (class::RELATION, t.oid, *n), 'a');
                    }
                    for n in &key.referenced {
                        tie(from, (class::RELATION, key.table, *n), 'n');
                    }
                    tie(from, (class::RELATION, key.index, 0), 'n');
                }
                ConstraintKind::Check(_) => tie(from, own, 'a'),
            }
        }
        if let Some(query) = &t.query {
            let rule = (class::REWRITE, super::relations::rule_id(t.oid), 0);
            tie(rule, own, 'i');
            for (id, column) in &query.uses {
                tie(rule, (class_of(*id), *id, *column), 'n');
            }
        }
    }
    Ok(out)
}

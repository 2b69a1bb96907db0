//! Views of PostgreSQL over the tables of the other files, and `information_schema`.

use base::Result;
use base::settings::{Context, Kind, SETTINGS, SettingId, Source, Unit, Value, is_mode, show};
use types::{Datum, oids};

use super::row::{Row, array, row, text};
use crate::acl::Rights;
use crate::definition;
use crate::object::ids::{INFORMATION_SCHEMA, PG_CATALOG, READ_ALL_SETTINGS, SUPERUSER};
use crate::object::{AclKind, ColumnStats, Elements, Table, TableKind};
use crate::privilege;
use crate::system::cx::SystemCx;
use crate::system::names::{database_name, info, info_visible, role_name, schema_name};
use crate::system::tables::{by_oid, tables};
use crate::trigger_type;

type Rows = Result<Vec<Vec<Datum>>>;

pub(super) fn pg_tables(cx: &SystemCx<'_>) -> Rows {
    let one = |t: &Table| {
        row(PG_CATALOG, "pg_tables")
            .set("schemaname", schema_name(cx, t.schema))
            .set("tablename", t.name.as_str())
            .set("tableowner", role_name(cx, t.owner))
            .set("hasindexes", !t.indexes.is_empty())
            .set("hasrules", !t.rules.is_empty())
            .set("rowsecurity", t.row_security)
            .set("hastriggers", t.has_triggers())
            .done()
    };
    let system = tables().iter().filter(|t| !t.is_view).map(|t| {
        row(PG_CATALOG, "pg_tables")
            .set("schemaname", schema_name(cx, t.schema))
            .set("tablename", t.name)
            .set("tableowner", "postgres")
            .fill(&["hasindexes", "hasrules", "rowsecurity", "hastriggers"], Datum::Bool(false))
            .done()
    });
    let tables = cx.catalog.tables().filter(|t| t.kind == TableKind::Table);
    Ok(tables.map(|t| one(t)).chain(system).collect())
}

/// The text that marks a view's definition for the executor, which prints it.
fn definition_of(t: &Table) -> Datum {
    t.query.as_ref().map_or(Datum::Null, |q| text(&q.sql))
}

pub(super) fn pg_views(cx: &SystemCx<'_>) -> Rows {
    let one = |t: &Table| {
        row(PG_CATALOG, "pg_views")
            .set("schemaname", schema_name(cx, t.schema))
            .set("viewname", t.name.as_str())
            .set("viewowner", role_name(cx, t.owner))
            .set("definition", definition_of(t))
            .done()
    };
    let system = tables().iter().filter(|t| t.is_view).map(|t| {
        row(PG_CATALOG, "pg_views")
            .set("schemaname", schema_name(cx, t.schema))
            .set("viewname", t.name)
            .set("viewowner", role_name(cx, SUPERUSER))
            .set("definition", t.definition().as_str())
            .done()
    });
    let own = cx.catalog.tables().filter(|t| t.kind == TableKind::View).map(|t| one(t));
    Ok(own.chain(system).collect())
}

pub(super) fn pg_matviews(cx: &SystemCx<'_>) -> Rows {
    let one = |t: &Table| {
        row(PG_CATALOG, "pg_matviews")
            .set("schemaname", schema_name(cx, t.schema))
            .set("matviewname", t.name.as_str())
            .set("matviewowner", role_name(cx, t.owner))
            .set("hasindexes", !t.indexes.is_empty())
            .set("ispopulated", t.query.as_ref().is_none_or(|q| !q.unpopulated))
            .set("definition", definition_of(t))
            .done()
    };
    Ok(cx.catalog.tables().filter(|t| t.kind == TableKind::Materialized).map(|t| one(t)).collect())
}

pub(super) fn info_views(cx: &SystemCx<'_>) -> Rows {
    let one = |t: &Table| {
        let check = match t.query.as_ref().map(|q| q.check) {
            Some(crate::CheckOption::Local) => "LOCAL",
            Some(crate::CheckOption::Cascaded) => "CASCADED",
            _ => "NONE",
        };
        let updatable = t.query.as_ref().is_some_and(|q| q.updatable);
        let yes = text(if updatable { "YES" } else { "NO" });
        let instead = |event| if t.has_instead(event) { "YES" } else { "NO" };
        info(cx, "views", "table", t.schema, &t.name)
            .set("view_definition", definition_of(t))
            .set("check_option", check)
            .fill(&["is_updatable", "is_insertable_into"], yes)
            .set("is_trigger_updatable", instead(trigger_type::UPDATE))
            .set("is_trigger_deletable", instead(trigger_type::DELETE))
            .set("is_trigger_insertable_into", instead(trigger_type::INSERT))
            .done()
    };
    let system = tables().iter().filter(|t| t.is_view).map(|t| {
        info(cx, "views", "table", t.schema, t.name)
            .set("view_definition", t.definition().as_str())
            .set("check_option", "NONE")
            .fill(&["is_updatable", "is_insertable_into"], text("NO"))
            .fill(
                &["is_trigger_updatable", "is_trigger_deletable", "is_trigger_insertable_into"],
                text("NO"),
            )
            .done()
    });
    let own = info_visible(cx).filter(|t| t.kind == TableKind::View).map(|t| one(t));
    Ok(own.chain(system).collect())
}

pub(super) fn pg_indexes(cx: &SystemCx<'_>) -> Rows {
    let one = |i: &crate::object::Index| {
        let table = cx.catalog.table(i.table)?;
        Some(
            row(PG_CATALOG, "pg_indexes")
                .set("schemaname", schema_name(cx, table.schema))
                .set("tablename", table.name.as_str())
                .set("indexname", i.name.as_str())
                .set(
                    "indexdef",
                    definition::index(cx.catalog, &[], i, &|sql, _| format!("({sql})")).as_str(),
                )
                .done(),
        )
    };
    let system = super::facts::indexes().iter().filter_map(|i| {
        Some(
            row(PG_CATALOG, "pg_indexes")
                .set("schemaname", "pg_catalog")
                .set("tablename", by_oid(base::Oid(i.table))?.name)
                .set("indexname", i.name)
                .set("indexdef", i.definition().as_str())
                .done(),
        )
    });
    Ok(cx.catalog.indexes().filter_map(|i| one(i)).chain(system).collect())
}

pub(super) fn pg_settings(cx: &SystemCx<'_>) -> Rows {
    let server_wide = base::settings::server_wide();
    // The places of files are told to those only who may read all settings.
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    let all = rights.has_rights_of(cx.role, READ_ALL_SETTINGS);
    let one = |n: usize| {
        let (id, def) = (SettingId(n as u16), &SETTINGS[n]);
        let origin = server_wide.origins.get(n).cloned().unwrap_or_default();
        let plain = |value: &Value| match value {
            Value::Int(v) if !is_mode(id) => v.to_string(),
            Value::Real(v) => v.to_string(),
            other => show(id, other),
        };
        let value = plain(cx.settings.get(id));
        let (boot, reset) = (plain(&def.default.value()), plain(server_wide.settings.get(id)));
        let source = match cx.settings.get(id) == server_wide.settings.get(id) {
            true => origin.source,
            // The server sets it for each session, nobody else can.
            false if def.context == Context::Internal => Source::Override,
            false => Source::Session,
        };
        let (kind, range, words) = match def.kind {
            Kind::Bool => ("bool", None, None),
            Kind::String => ("string", None, None),
            Kind::Int { min, max } => ("integer", Some((min.to_string(), max.to_string())), None),
            Kind::Real { min, max } => ("real", Some((bound(min), bound(max))), None),
            Kind::Enum(words) => ("enum", None, Some(words)),
        };
        let mut out = row(PG_CATALOG, "pg_settings")
            .set("name", def.name)
            .set("setting", value.as_str())
            .set("category", def.group)
            .set("short_desc", def.description)
            .set("context", def.context.as_str())
            .set("vartype", kind)
            .set("source", source.as_str())
            .set("boot_val", boot.as_str())
            .set("reset_val", reset.as_str())
            .set("pending_restart", origin.pending_restart);
        if let Some((file, line)) = origin.place.filter(|_| all && source == Source::File) {
            out = out.set("sourcefile", &*file).set("sourceline", line as i32);
        }
        // PostgreSQL has no unit below a millisecond.
        if !matches!(def.unit, Unit::None | Unit::Us) {
            out = out.set("unit", def.unit.suffix());
        }
        if let Some((min, max)) = range {
            out = out.set("min_val", min.as_str()).set("max_val", max.as_str());
        }
        if let Some(words) = words {
            out =
                out.set("enumvals", array(oids::TEXT, 1, words.iter().map(|w| text(w)).collect()));
        }
        out.done()
    };
    let shown = |n: &usize| all || !SettingId(*n as u16).is_secret();
    Ok((0..SETTINGS.len()).filter(shown).map(one).collect())
}

/// A real number's least or greatest value, as `%g` prints it.
fn bound(value: f64) -> String {
    if value.abs() < 1e6 {
        return value.to_string();
    }
    let text = format!("{value:.5e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let digits = digits.trim_end_matches('0').trim_end_matches('.');
            format!("{digits}e+{exponent:0>2}")
        }
        None => text,
    }
}

pub(super) fn pg_stats(cx: &SystemCx<'_>) -> Rows {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    let mut out = Vec::new();
    for t in cx.catalog.tables() {
        let Some(stats) = cx.catalog.stats(t.oid) else { continue };
        if rights.is_guarded(cx.role, t) {
            continue;
        }
        let whole = rights.held(cx.role, AclKind::Table, t.oid).privileges;
        for (n, column) in t.live_columns() {
            let Some(s) = stats.columns.get(usize::from(n) - 1) else { continue };
            let own = || rights.held_on_column(cx.role, t.oid, n).privileges;
            if (whole | own()) & privilege::SELECT == 0 {
                continue;
            }
            let row = row(PG_CATALOG, "pg_stats")
                .set("schemaname", schema_name(cx, t.schema))
                .set("tablename", t.name.as_str())
                .set("attname", column.name.as_str())
                .set("inherited", t.is_partitioned());
            out.push(column_statistics(row, s).done());
        }
    }
    Ok(out)
}

/// The findings of ANALYZE about a column or expression, in the columns that `pg_stats` has for them.
pub(super) fn column_statistics(row: Row, s: &ColumnStats) -> Row {
    let row = row
        .set("null_frac", s.null_fraction as f32)
        .set("avg_width", s.width)
        .set("n_distinct", s.distinct as f32);
    let texts = |values: Vec<&str>| {
        let values: Vec<Datum> = values.into_iter().map(text).collect();
        if values.is_empty() { Datum::Null } else { array(oids::TEXT, 1, values) }
    };
    let shares: Vec<Datum> = s.common.iter().map(|c| Datum::Float4(c.1 as f32)).collect();
    let shares = if shares.is_empty() { Datum::Null } else { array(oids::FLOAT4, 1, shares) };
    row.set("most_common_vals", texts(s.common.iter().map(|c| c.0.as_str()).collect()))
        .set("most_common_freqs", shares)
        .set("histogram_bounds", texts(s.histogram.iter().map(String::as_str).collect()))
        .set("correlation", s.correlation as f32)
        .set("most_common_elems", texts(s.elements.common.iter().map(|e| e.0.as_str()).collect()))
        .set("most_common_elem_freqs", element_shares(&s.elements))
}

/// The shares of common elements; behind them the least and the greatest, and of arrays that of NULLs.
fn element_shares(elements: &Elements) -> Datum {
    if elements.common.is_empty() {
        return Datum::Null;
    }
    let bounds = [elements.least, elements.most].into_iter().chain(elements.null);
    let shares = elements.common.iter().map(|(_, share)| *share).chain(bounds);
    array(oids::FLOAT4, 1, shares.map(|share| Datum::Float4(share as f32)).collect())
}

pub(super) fn info_tables(cx: &SystemCx<'_>) -> Rows {
    let shown = info_visible(cx).filter(|t| t.kind != TableKind::Materialized);
    let user = shown.map(|t| {
        let kind = match t.kind {
            _ if t.is_temporary() => "LOCAL TEMPORARY",
            TableKind::View => "VIEW",
            TableKind::Foreign => "FOREIGN",
            _ => "BASE TABLE",
        };
        let action = t.is_temporary().then_some("PRESERVE");
        info(cx, "tables", "table", t.schema, &t.name)
            .set("table_type", kind)
            .set("commit_action", action.map_or(Datum::Null, |a| Datum::Text(a.into())))
            .set(
                "is_insertable_into",
                if t.query.as_ref().is_none_or(|q| q.updatable) { "YES" } else { "NO" },
            )
            .set("is_typed", "NO")
            .done()
    });
    let system = tables().iter().map(|t| {
        info(cx, "tables", "table", t.schema, t.name)
            .set("table_type", if t.is_view { "VIEW" } else { "BASE TABLE" })
            .set("is_insertable_into", "NO")
            .set("is_typed", "NO")
            .done()
    });
    Ok(user.chain(system).collect())
}

pub(super) fn info_columns(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for t in info_visible(cx) {
        for (number, c) in t.live_columns() {
            let what = super::user_types::described(cx, c.ty, c.typmod);
            let mut one = info(cx, "columns", "table", t.schema, &t.name)
                .set("column_name", c.name.as_str())
                .set("ordinal_position", i32::from(number))
                .set("is_nullable", if c.not_null { "NO" } else { "YES" })
                .set("data_type", what.data_type.as_str())
                .set("udt_catalog", database_name(cx))
                .set("udt_schema", what.schema.as_str())
                .set("udt_name", what.name.as_str())
                .set("is_updatable", if t.kind == TableKind::Table { "YES" } else { "NO" })
                .set("is_identity", if c.identity.is_some() { "YES" } else { "NO" })
                .set("is_generated", if c.generated { "ALWAYS" } else { "NEVER" });
            one = super::collations::named_in(cx, one, cx.catalog.column_collation(c));
            if let Some(identity) = c.identity {
                one = one.set(
                    "identity_generation",
                    if identity.always { "ALWAYS" } else { "BY DEFAULT" },
                );
                if let Some(s) = cx.catalog.sequence(identity.sequence) {
                    let number = |n: i64| text(&n.to_string());
                    one = one
                        .set("identity_start", number(s.start))
                        .set("identity_increment", number(s.increment))
                        .set("identity_maximum", number(s.max))
                        .set("identity_minimum", number(s.min));
                }
            }
            let cycle = c.identity.and_then(|i| cx.catalog.sequence(i.sequence));
            one = one
                .set("identity_cycle", if cycle.is_some_and(|s| s.cycle) { "YES" } else { "NO" });
            if let Some((schema, name)) = &what.domain {
                one = one
                    .set("domain_catalog", database_name(cx))
                    .set("domain_schema", schema.as_str())
                    .set("domain_name", name.as_str());
            }
            if let Some(default) = &c.default {
                let place = if c.generated { "generation_expression" } else { "column_default" };
                one = one.set(place, default.as_str());
            }
            out.push(super::user_types::type_facts(one, what.base).done());
        }
    }
    for t in tables() {
        for (n, (name, ty)) in t.columns.iter().enumerate() {
            let what = super::user_types::described(cx, ty.0, -1);
            let one = info(cx, "columns", "table", t.schema, t.name)
                .set("column_name", *name)
                .set("ordinal_position", n as i32 + 1)
                .set("is_nullable", if t.marks[n].not_null { "NO" } else { "YES" })
                .set("data_type", what.data_type.as_str())
                .set("udt_catalog", database_name(cx))
                .set("udt_schema", what.schema.as_str())
                .set("udt_name", what.name.as_str())
                .fill(&["is_updatable", "is_identity", "identity_cycle"], text("NO"))
                .set("is_generated", "NEVER");
            out.push(super::user_types::type_facts(one, what.base).done());
        }
    }
    Ok(out)
}

pub(super) fn info_schemata(cx: &SystemCx<'_>) -> Rows {
    let one = |s: &crate::object::Schema| {
        row(INFORMATION_SCHEMA, "schemata")
            .set("catalog_name", database_name(cx))
            .set("schema_name", s.name.as_str())
            .set("schema_owner", role_name(cx, s.owner))
            .done()
    };
    Ok(cx.catalog.schemas().map(|s| one(s)).collect())
}

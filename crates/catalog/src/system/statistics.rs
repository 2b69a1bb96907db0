//! Extended statistics: `pg_statistic_ext`, `pg_statistic_ext_data`, `pg_stats_ext` and `pg_stats_ext_exprs`.

use std::fmt::Write as _;

use base::Result;
use types::datum::Array;
use types::{Datum, oids};

use super::row::{Row, oid, row};
use crate::acl::Rights;
use crate::object::ids::PG_CATALOG;
use crate::object::{
    AclKind, CommonItem, Dependency, DistinctItem, ExtendedData, ExtendedStatistics, Table,
};
use crate::system::cx::SystemCx;
use crate::system::names::{role_name, schema_name};

type Rows = Result<Vec<Vec<Datum>>>;

/// An expression as the views show it: a call stands alone, all else in parentheses.
fn shown(sql: &str) -> String {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '"');
    let is_call = sql.find('(').is_some_and(|at| {
        let mut depth = 0;
        let closes = sql[at..].char_indices().find(|(_, c)| {
            depth += i32::from(*c == '(') - i32::from(*c == ')');
            depth == 0
        });
        at > 0 && sql[..at].chars().all(is_name) && closes.map(|c| at + c.0 + 1) == Some(sql.len())
    });
    if is_call || sql.is_empty() { sql.to_owned() } else { format!("({sql})") }
}

fn chars(letters: &str) -> Datum {
    Datum::array(oids::CHAR, letters.bytes().map(Datum::Char).collect())
}

/// `pg_statistic_ext`.
pub(super) fn pg_statistic_ext(cx: &SystemCx<'_>) -> Rows {
    let one = |s: &ExtendedStatistics| {
        let keys: Vec<Datum> = s.columns.iter().map(|n| Datum::Int2(*n as i16)).collect();
        let texts: Vec<&str> = s.expressions.iter().map(|e| e.sql.as_str()).collect();
        let texts = (!texts.is_empty()).then(|| Datum::text(&texts.join(", ")));
        row(PG_CATALOG, "pg_statistic_ext")
            .set("oid", oid(s.oid))
            .set("stxrelid", oid(s.table))
            .set("stxname", s.name.as_str())
            .set("stxnamespace", oid(s.schema))
            .set("stxowner", oid(s.owner))
            .set("stxstattarget", s.target)
            .set("stxkeys", super::row::array(oids::INT2, 0, keys))
            .set("stxkind", chars(&s.kinds))
            .set("stxexprs", texts.unwrap_or(Datum::Null))
            .done()
    };
    Ok(cx.catalog.extended_statistics().map(one).collect())
}

/// Attributes as `pg_ndistinct` and `pg_dependencies` print them.
fn numbers(attributes: &[i16]) -> String {
    attributes.iter().map(i16::to_string).collect::<Vec<_>>().join(", ")
}

/// A value of `pg_ndistinct`.
pub fn distinct_text(items: &[DistinctItem]) -> String {
    let one = |i: &DistinctItem| format!("\"{}\": {}", numbers(&i.attributes), i.count as i64);
    format!("{{{}}}", items.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// A value of `pg_dependencies`.
pub fn dependencies_text(items: &[Dependency]) -> String {
    let one = |d: &Dependency| format!("\"{} => {}\": {:.6}", numbers(&d.from), d.to, d.degree);
    format!("{{{}}}", items.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// A value of `pg_mcv_list`, which `pg_mcv_list_items` reads: a line of JSON with an array for each item.
pub fn common_text(items: &[CommonItem]) -> String {
    let mut out = String::from("[");
    for (n, item) in items.iter().enumerate() {
        let values = serde_json::to_string(&item.values).unwrap_or_default();
        let comma = if n > 0 { "," } else { "" };
        let _ = write!(out, "{comma}[{values},{},{}]", item.frequency, item.base_frequency);
    }
    out.push(']');
    out
}

/// The coefficients in `data`, of each kind; NULL where it has none.
fn distinct(data: &ExtendedData) -> Datum {
    match data.distinct.as_slice() {
        [] => Datum::Null,
        items => Datum::text(&distinct_text(items)),
    }
}

fn dependencies(data: &ExtendedData) -> Datum {
    match data.dependencies.as_slice() {
        [] => Datum::Null,
        items => Datum::text(&dependencies_text(items)),
    }
}

/// Statistics with their table and data, where ANALYZE has found any.
fn all<'a>(
    cx: &'a SystemCx<'_>,
) -> impl Iterator<Item = (&'a ExtendedStatistics, &'a Table, &'a ExtendedData)> {
    cx.catalog.extended_statistics().filter_map(|s| {
        let table = cx.catalog.table(s.table)?;
        let found = &cx.catalog.stats(s.table)?.extended;
        Some((s, &**table, found.iter().find(|d| d.statistics == s.oid)?))
    })
}

/// `pg_statistic_ext_data`.
pub(super) fn pg_statistic_ext_data(cx: &SystemCx<'_>) -> Rows {
    let one = |(s, table, data): (&ExtendedStatistics, &Table, &ExtendedData)| {
        let common = match data.common.as_slice() {
            [] => Datum::Null,
            items => Datum::text(&common_text(items)),
        };
        row(PG_CATALOG, "pg_statistic_ext_data")
            .set("stxoid", oid(s.oid))
            .set("stxdinherit", table.is_partitioned())
            .set("stxdndistinct", distinct(data))
            .set("stxddependencies", dependencies(data))
            .set("stxdmcv", common)
            .done()
    };
    Ok(all(cx).map(one).collect())
}

/// The columns that both views begin with; None for whom the table is hidden from.
fn begin(cx: &SystemCx<'_>, name: &'static str, s: &ExtendedStatistics, t: &Table) -> Option<Row> {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    if rights.is_guarded(cx.role, t) || !rights.owns(cx.role, AclKind::Table, t.oid) {
        return None;
    }
    let row = row(PG_CATALOG, name)
        .set("schemaname", schema_name(cx, t.schema))
        .set("tablename", t.name.as_str())
        .set("statistics_schemaname", schema_name(cx, s.schema))
        .set("statistics_name", s.name.as_str())
        .set("statistics_owner", role_name(cx, s.owner))
        .set("inherited", t.is_partitioned());
    Some(row)
}

/// An array of arrays of one length.
fn rows_of(element: base::Oid, rows: Vec<Vec<Datum>>) -> Datum {
    let dims = vec![(rows.len() as i32, 1), (rows.first().map_or(0, Vec::len) as i32, 1)];
    Datum::Array(Array { element, dims, items: rows.into_iter().flatten().collect() }.into())
}

/// `pg_stats_ext`.
pub(super) fn pg_stats_ext(cx: &SystemCx<'_>) -> Rows {
    let one = |(s, table, data): (&ExtendedStatistics, &Table, &ExtendedData)| {
        let name = |n: &u16| table.columns.get(usize::from(*n) - 1).map(|c| c.name.as_str());
        let names = s.columns.iter().filter_map(name).map(Datum::text).collect();
        let texts: Vec<Datum> = s.expressions.iter().map(|e| Datum::text(&shown(&e.sql))).collect();
        let texts = (!texts.is_empty()).then(|| Datum::array(oids::TEXT, texts));
        let mut row = begin(cx, "pg_stats_ext", s, table)?
            .set("attnames", Datum::array(oids::NAME, names))
            .set("exprs", texts.unwrap_or(Datum::Null))
            .set("kinds", chars(&s.kinds))
            .set("n_distinct", distinct(data))
            .set("dependencies", dependencies(data));
        if !data.common.is_empty() {
            let text = |v: &Option<String>| v.as_deref().map_or(Datum::Null, Datum::text);
            let values = data.common.iter().map(|i| i.values.iter().map(text).collect());
            let null = |v: &Option<String>| Datum::Bool(v.is_none());
            let nulls = data.common.iter().map(|i| i.values.iter().map(null).collect());
            let share = |f: fn(&CommonItem) -> f64| {
                let all = data.common.iter().map(|i| Datum::Float8(f(i))).collect();
                Datum::array(oids::FLOAT8, all)
            };
            row = row
                .set("most_common_vals", rows_of(oids::TEXT, values.collect()))
                .set("most_common_val_nulls", rows_of(oids::BOOL, nulls.collect()))
                .set("most_common_freqs", share(|i| i.frequency))
                .set("most_common_base_freqs", share(|i| i.base_frequency));
        }
        Some(row.done())
    };
    Ok(all(cx).filter_map(one).collect())
}

/// `pg_stats_ext_exprs`.
pub(super) fn pg_stats_ext_exprs(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for (s, table, data) in all(cx) {
        for (e, found) in s.expressions.iter().zip(&data.expressions) {
            let Some(row) = begin(cx, "pg_stats_ext_exprs", s, table) else { break };
            let row = row.set("expr", shown(&e.sql).as_str());
            out.push(super::views::column_statistics(row, found).done());
        }
    }
    Ok(out)
}

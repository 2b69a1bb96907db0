//! Publications and subscriptions: `pg_publication`, `pg_publication_rel`, `pg_publication_namespace`,
//! `pg_publication_tables`, `pg_subscription` and `pg_subscription_rel`.

use base::Result;
use types::{Datum, oids};

use super::row::{array, oid, row};
use crate::object::ids::PG_CATALOG;
use crate::object::{Publication, PublicationSchema, PublicationTable, Subscription};
use crate::system::cx::SystemCx;
use crate::system::names::schema_name;

type Rows = Result<Vec<Vec<Datum>>>;

fn text(value: &Option<String>) -> Datum {
    value.as_deref().map_or(Datum::Null, Datum::text)
}

/// Column numbers as an `int2vector`.
pub(super) fn numbers(columns: &[u16]) -> Datum {
    array(oids::INT2, 0, columns.iter().map(|n| Datum::Int2(*n as i16)).collect())
}

pub(super) fn pg_publication(cx: &SystemCx<'_>) -> Rows {
    let one = |p: &Publication| {
        row(PG_CATALOG, "pg_publication")
            .set("oid", oid(p.oid))
            .set("pubname", p.name.as_str())
            .set("pubowner", oid(p.owner))
            .set("puballtables", p.all_tables)
            .set("pubinsert", p.insert)
            .set("pubupdate", p.update)
            .set("pubdelete", p.delete)
            .set("pubtruncate", p.truncate)
            .set("pubviaroot", p.via_root)
            .done()
    };
    Ok(cx.catalog.publications().map(one).collect())
}

pub(super) fn pg_publication_rel(cx: &SystemCx<'_>) -> Rows {
    let one = |p: &Publication, t: &PublicationTable| {
        row(PG_CATALOG, "pg_publication_rel")
            .set("oid", oid(t.oid))
            .set("prpubid", oid(p.oid))
            .set("prrelid", oid(t.table))
            .set("prqual", text(&t.filter))
            .set("prattrs", t.columns.as_deref().map_or(Datum::Null, numbers))
            .done()
    };
    let all = cx.catalog.publications().flat_map(|p| p.tables.iter().map(move |t| (p, t)));
    Ok(all.map(|(p, t)| one(p, t)).collect())
}

pub(super) fn pg_publication_namespace(cx: &SystemCx<'_>) -> Rows {
    let one = |p: &Publication, s: &PublicationSchema| {
        row(PG_CATALOG, "pg_publication_namespace")
            .set("oid", oid(s.oid))
            .set("pnpubid", oid(p.oid))
            .set("pnnspid", oid(s.schema))
            .done()
    };
    let all = cx.catalog.publications().flat_map(|p| p.schemas.iter().map(move |s| (p, s)));
    Ok(all.map(|(p, s)| one(p, s)).collect())
}

/// The conditions are as they are stored; the executor prints them.
pub(super) fn pg_publication_tables(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for publication in cx.catalog.publications() {
        for published in cx.catalog.published_tables(publication) {
            let Some(table) = cx.catalog.table(published.table) else { continue };
            let name = |n: &u16| Datum::text(&table.columns[usize::from(*n) - 1].name);
            let names = published.columns.iter().map(name).collect();
            out.push(
                row(PG_CATALOG, "pg_publication_tables")
                    .set("pubname", publication.name.as_str())
                    .set("schemaname", schema_name(cx, table.schema))
                    .set("tablename", table.name.as_str())
                    .set("attnames", array(oids::NAME, 1, names))
                    .set("rowfilter", text(&published.filter))
                    .done(),
            );
        }
    }
    Ok(out)
}

pub(super) fn pg_subscription(cx: &SystemCx<'_>) -> Rows {
    let one = |s: &Subscription| {
        let names = s.publications.iter().map(|name| Datum::text(name)).collect();
        row(PG_CATALOG, "pg_subscription")
            .set("oid", oid(s.oid))
            .set("subdbid", oid(cx.database))
            .set("subskiplsn", Datum::Int8(s.skip_lsn as i64))
            .set("subname", s.name.as_str())
            .set("subowner", oid(s.owner))
            .set("subenabled", s.enabled)
            .set("subbinary", s.binary)
            .set("substream", s.streaming)
            .set("subtwophasestate", s.two_phase)
            .set("subdisableonerr", s.disable_on_error)
            .set("subconninfo", s.connection.as_str())
            .set("subslotname", text(&s.slot))
            .set("subsynccommit", s.synchronous_commit.as_str())
            .set("subpublications", array(oids::TEXT, 1, names))
            .done()
    };
    Ok(cx.catalog.subscriptions().map(one).collect())
}

pub(super) fn pg_subscription_rel(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for s in cx.catalog.subscriptions() {
        for t in &s.tables {
            out.push(
                row(PG_CATALOG, "pg_subscription_rel")
                    .set("srsubid", oid(s.oid))
                    .set("srrelid", oid(t.table))
                    .set("srsubstate", t.state)
                    .set("srsublsn", t.lsn.map_or(Datum::Null, |lsn| Datum::Int8(lsn as i64)))
                    .done(),
            );
        }
    }
    Ok(out)
}

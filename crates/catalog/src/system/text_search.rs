//! Conversions between encodings, and the parsers, templates, dictionaries and configurations of text search:
//! what PostgreSQL lists, for those who look it up.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use base::{Oid, Result};
use types::Datum;
use types::user::TextSearch;

use super::facts::{self, Fact};
use super::row::{Row, oid, row};
use crate::object::ids::{PG_CATALOG, SUPERUSER};
use crate::object::{
    Id, TextSearchConfig, TextSearchDictionary, TextSearchParser, TextSearchTemplate,
};
use crate::system::cx::SystemCx;

type Rows = Result<Vec<Vec<Datum>>>;

pub(super) fn pg_conversion(cx: &SystemCx<'_>) -> Rows {
    let one = |f: Fact| {
        row(PG_CATALOG, "pg_conversion")
            .set("oid", f.oid(0))
            .set("conname", f.text(1))
            .set("connamespace", oid(PG_CATALOG))
            .set("conowner", oid(SUPERUSER))
            .set("conforencoding", i32::from(f.small(2)))
            .set("contoencoding", i32::from(f.small(3)))
            .set("conproc", f.oid(4))
            .set("condefault", f.flag(5))
            .done()
    };
    let mut out = facts::conversions().iter().map(one).collect();
    super::defined::conversions(cx, &mut out);
    Ok(out)
}

/// The lines of a kind.
fn objects(letter: &'static str) -> impl Iterator<Item = Fact> {
    facts::text_search().iter().filter(move |f| f.text(0) == letter)
}

/// Columns that name functions.
fn with_functions(mut row: Row, f: Fact, columns: &[&str]) -> Row {
    let functions: Vec<Id> = f.ids(3).collect();
    for (column, function) in columns.iter().zip(functions) {
        row = row.set(column, oid(function));
    }
    row
}

pub(super) fn pg_ts_parser(cx: &SystemCx<'_>) -> Rows {
    let columns = ["prsstart", "prstoken", "prsend", "prsheadline", "prslextype"];
    let one = |f: Fact| {
        let row = row(PG_CATALOG, "pg_ts_parser")
            .set("oid", f.oid(1))
            .set("prsname", f.text(2))
            .set("prsnamespace", oid(PG_CATALOG));
        with_functions(row, f, &columns).done()
    };
    let own = |p: &TextSearchParser| {
        let mut row = row(PG_CATALOG, "pg_ts_parser")
            .set("oid", oid(p.oid))
            .set("prsname", p.name.as_str())
            .set("prsnamespace", oid(p.schema));
        for (column, function) in columns.iter().zip(p.functions) {
            row = row.set(column, oid(function));
        }
        row.done()
    };
    Ok(objects("p").map(one).chain(cx.catalog.text_search_parsers().map(own)).collect())
}

pub(super) fn pg_ts_template(cx: &SystemCx<'_>) -> Rows {
    let one = |f: Fact| {
        let row = row(PG_CATALOG, "pg_ts_template")
            .set("oid", f.oid(1))
            .set("tmplname", f.text(2))
            .set("tmplnamespace", oid(PG_CATALOG));
        with_functions(row, f, &["tmplinit", "tmpllexize"]).done()
    };
    let own = |t: &TextSearchTemplate| {
        row(PG_CATALOG, "pg_ts_template")
            .set("oid", oid(t.oid))
            .set("tmplname", t.name.as_str())
            .set("tmplnamespace", oid(t.schema))
            .set("tmplinit", oid(t.init))
            .set("tmpllexize", oid(t.lexize))
            .done()
    };
    Ok(objects("t").map(one).chain(cx.catalog.text_search_templates().map(own)).collect())
}

pub(super) fn pg_ts_dict(cx: &SystemCx<'_>) -> Rows {
    let one = |f: Fact| {
        row(PG_CATALOG, "pg_ts_dict")
            .set("oid", f.oid(1))
            .set("dictname", f.text(2))
            .set("dictnamespace", oid(PG_CATALOG))
            .set("dictowner", oid(SUPERUSER))
            .set("dicttemplate", f.oid(3))
            .set("dictinitoption", f.optional(4))
            .done()
    };
    let own = |d: &TextSearchDictionary| {
        row(PG_CATALOG, "pg_ts_dict")
            .set("oid", oid(d.oid))
            .set("dictname", d.name.as_str())
            .set("dictnamespace", oid(d.schema))
            .set("dictowner", oid(d.owner))
            .set("dicttemplate", oid(d.template))
            .set("dictinitoption", optional(&d.options))
            .done()
    };
    let users = cx.catalog.text_search_dictionaries().map(own);
    Ok(objects("d").map(one).chain(users).collect())
}

pub(super) fn pg_ts_config(cx: &SystemCx<'_>) -> Rows {
    let one = |f: Fact| {
        row(PG_CATALOG, "pg_ts_config")
            .set("oid", f.oid(1))
            .set("cfgname", f.text(2))
            .set("cfgnamespace", oid(PG_CATALOG))
            .set("cfgowner", oid(SUPERUSER))
            .set("cfgparser", f.oid(3))
            .done()
    };
    let own = |c: &TextSearchConfig| {
        row(PG_CATALOG, "pg_ts_config")
            .set("oid", oid(c.oid))
            .set("cfgname", c.name.as_str())
            .set("cfgnamespace", oid(c.schema))
            .set("cfgowner", oid(c.owner))
            .set("cfgparser", oid(c.parser))
            .done()
    };
    let users = cx.catalog.text_search_configs().map(own);
    Ok(objects("c").map(one).chain(users).collect())
}

pub(super) fn pg_ts_config_map(cx: &SystemCx<'_>) -> Rows {
    let one = |config: Id, token: i32, place: i32, dictionary: Id| {
        row(PG_CATALOG, "pg_ts_config_map")
            .set("mapcfg", oid(config))
            .set("maptokentype", token)
            .set("mapseqno", place)
            .set("mapdict", oid(dictionary))
            .done()
    };
    let of_line = |f: Fact| {
        f.ids(2).map(move |token| one(f.id(0), token as i32, 1, f.id(1))).collect::<Vec<_>>()
    };
    let mut out: Vec<_> = facts::text_search_map().iter().flat_map(of_line).collect();
    for config in cx.catalog.text_search_configs() {
        for (token, dictionaries) in &config.map {
            for (place, dictionary) in (1..).zip(dictionaries) {
                out.push(one(config.oid, *token, place, *dictionary));
            }
        }
    }
    Ok(out)
}

fn optional(text: &str) -> Datum {
    if text.is_empty() { Datum::Null } else { Datum::Text(text.into()) }
}

/// One of PostgreSQL's configurations or dictionaries (`kind`: regconfig or regdictionary).
pub(crate) fn object(kind: Oid, id: Id) -> Option<Arc<TextSearch>> {
    static OBJECTS: OnceLock<HashMap<(bool, Id), Arc<TextSearch>>> = OnceLock::new();
    let all = OBJECTS.get_or_init(|| {
        let configs = objects("c").map(|f| ((true, f.id(1)), Arc::new(config(f))));
        configs.chain(objects("d").map(|f| ((false, f.id(1)), Arc::new(dictionary(f))))).collect()
    });
    all.get(&(kind == types::oids::REGCONFIG, id)).cloned()
}

fn config(f: Fact) -> TextSearch {
    let mut map: Vec<(i32, Vec<Oid>)> = Vec::new();
    for line in facts::text_search_map().iter().filter(|l| l.id(0) == f.id(1)) {
        for token in line.ids(2) {
            match map.iter_mut().find(|(kind, _)| *kind == token as i32) {
                Some((_, dictionaries)) => dictionaries.push(Oid(line.id(1))),
                None => map.push((token as i32, vec![Oid(line.id(1))])),
            }
        }
    }
    TextSearch::Config { parser: Oid(f.id(3)), map }
}

fn dictionary(f: Fact) -> TextSearch {
    TextSearch::Dictionary { template: Oid(f.id(3)), options: f.text(4).into() }
}

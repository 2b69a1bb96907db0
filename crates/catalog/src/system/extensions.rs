//! `pg_available_extensions`, `pg_available_extension_versions`, `pg_extension_threads`.

use base::Result;
use types::{Datum, oids};

use super::row::{array, row};
use crate::extension::{self, Control};
use crate::object::ids::PG_CATALOG;
use crate::system::cx::SystemCx;

type Rows = Result<Vec<Vec<Datum>>>;

fn all() -> Vec<Control> {
    let path = extension::control_path();
    if path.is_empty() {
        return with_plpgsql(extension::embedded());
    }
    let found =
        sched::blocking(base::WaitEvent::ExtensionExtension, || extension::available(&path));
    with_plpgsql(found)
}

/// The language that every database has is an extension, too.
fn with_plpgsql(mut all: Vec<Control>) -> Vec<Control> {
    let text = "comment = 'PL/pgSQL procedural language'\ndefault_version = '1.0'\nschema = pg_catalog\n\
                trusted = true\nthreads = safe";
    if let Ok(mut control) = Control::parse("plpgsql", text) {
        control.embedded = true;
        control.scripts.insert("plpgsql--1.0.sql".to_owned(), String::new());
        all.push(control);
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn installed<'c>(cx: &SystemCx<'c>, name: &str) -> Option<&'c str> {
    match name {
        "plpgsql" => Some("1.0"),
        name => cx.catalog.extension_named(name).map(|e| e.version.as_str()),
    }
}

fn text(value: Option<&str>) -> Datum {
    value.map_or(Datum::Null, Datum::text)
}

pub(super) fn available(cx: &SystemCx<'_>) -> Rows {
    let one = |c: &Control| {
        row(PG_CATALOG, "pg_available_extensions")
            .set("name", c.name.as_str())
            .set("default_version", text(c.default_version.as_deref()))
            .set("installed_version", text(installed(cx, &c.name)))
            .set("comment", text(c.comment.as_deref()))
            .done()
    };
    Ok(all().iter().map(one).collect())
}

pub(super) fn versions(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for control in all() {
        for version in control.installable() {
            let c = control.of_version(version).unwrap_or_else(|_| control.clone());
            let names = c.requires.iter().map(|n| Datum::text(n)).collect::<Vec<_>>();
            let requires = match names.is_empty() {
                true => Datum::Null,
                false => array(oids::NAME, 1, names),
            };
            out.push(
                row(PG_CATALOG, "pg_available_extension_versions")
                    .set("name", c.name.as_str())
                    .set("version", version)
                    .set("installed", installed(cx, &c.name) == Some(version))
                    .set("superuser", c.superuser)
                    .set("trusted", c.trusted)
                    .set("relocatable", c.relocatable)
                    .set("schema", text(c.schema.as_deref()))
                    .set("requires", requires)
                    .set("comment", text(c.comment.as_deref()))
                    .done(),
            );
        }
    }
    Ok(out)
}

pub(super) fn threads(cx: &SystemCx<'_>) -> Rows {
    let one = |c: &Control| {
        let code = match (&c.module, c.embedded) {
            (None, _) => "sql",
            (Some(_), true) => "built in",
            (Some(_), false) => "library",
        };
        // An extension without code of its own is as safe as the server.
        let threads = if c.module.is_none() { "safe" } else { c.threads.word() };
        row(PG_CATALOG, "pg_extension_threads")
            .set("name", c.name.as_str())
            .set("installed", installed(cx, &c.name).is_some())
            .set("code", code)
            .set("threads", threads)
            .set("reason", text(c.reason.as_deref()))
            .done()
    };
    Ok(all().iter().map(one).collect())
}

/// Rows of `pg_extension_update_paths`: from, to, and the way between.
pub fn update_paths(name: &str) -> Vec<[Option<String>; 3]> {
    let Some(control) = all().into_iter().find(|c| c.name == name) else { return Vec::new() };
    let versions = control.versions();
    let mut out = Vec::new();
    for from in &versions {
        for to in versions.iter().filter(|to| *to != from) {
            let way = control.way(Some(from), to).map(|way| way.join("--"));
            out.push([Some((*from).to_owned()), Some((*to).to_owned()), way]);
        }
    }
    out
}

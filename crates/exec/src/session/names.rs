//! Names and oids of catalog objects: `regclass` and kin, visibility.

use base::{Oid, Result};
use catalog::Snapshot;
use catalog::system::reg::Names;
use types::func::SessionFunction as F;
use types::{Datum, oids};

use crate::run::Run;
use crate::session::args::{oid_at, text_at};

pub use catalog::system::reg::split_name;

/// Types whose values are oids shown as names.
pub fn is_registered(ty: Oid) -> bool {
    types::io::is_reg(ty)
}

/// Functions over names.
pub fn call(function: F, args: &[Datum], run: &mut Run<'_, '_>) -> Result<Option<Datum>> {
    Ok(Some(match function {
        F::PgTableIsVisible => {
            let view = run.cx.catalog_tx.view();
            let visible = names(&view, run).relation_is_visible(oid_at(args, 0));
            visible.map_or(Datum::Null, Datum::Bool)
        }
        F::PgTypeIsVisible => {
            let view = run.cx.catalog_tx.view();
            let id = oid_at(args, 0);
            match types::TypeIo::get(base::Oid(id)) {
                Some(_) => Datum::Bool(view.type_is_visible(run.cx.search_path, id)),
                None => Datum::Null,
            }
        }
        F::PgFunctionIsVisible => {
            let view = run.cx.catalog_tx.view();
            match oid_at(args, 0) {
                0 => Datum::Null,
                id if view.function(id).is_none() && types::func::function(Oid(id)).is_none() => {
                    // Functions that are listed and have no body here, and aggregates.
                    match catalog::system::facts::function_name(id) {
                        Some(_) => Datum::Bool(true),
                        None => Datum::Null,
                    }
                }
                id => Datum::Bool(function_is_visible(&view, run.cx.search_path, id)),
            }
        }
        F::PgStatisticsObjIsVisible => {
            let view = run.cx.catalog_tx.view();
            let found = view.statistics_object(oid_at(args, 0));
            found.map_or(Datum::Null, |s| {
                let first = view.statistics_named(run.cx.search_path, None, &s.name);
                Datum::Bool(first.is_some_and(|first| first.oid == s.oid))
            })
        }
        F::PgOperatorIsVisible
        | F::PgOpclassIsVisible
        | F::PgOpfamilyIsVisible
        | F::PgConversionIsVisible
        | F::PgTsConfigIsVisible
        | F::PgTsDictIsVisible
        | F::PgTsParserIsVisible
        | F::PgTsTemplateIsVisible => {
            let listed = match function {
                F::PgOperatorIsVisible => "pg_operator",
                F::PgOpclassIsVisible => "pg_opclass",
                F::PgOpfamilyIsVisible => "pg_opfamily",
                F::PgConversionIsVisible => "pg_conversion",
                F::PgTsConfigIsVisible => "pg_ts_config",
                F::PgTsDictIsVisible => "pg_ts_dict",
                F::PgTsParserIsVisible => "pg_ts_parser",
                _ => "pg_ts_template",
            };
            match is_listed(listed, oid_at(args, 0), run)? {
                true => Datum::Bool(true),
                false => Datum::Null,
            }
        }
        F::PgCollationIsVisible => {
            let view = run.cx.catalog_tx.view();
            let id = oid_at(args, 0);
            let found = view.collation(id);
            let path = run.cx.search_path;
            found.map_or(Datum::Null, |c| {
                let first = view.collation_named(path, None, &c.name);
                Datum::Bool(first.is_some_and(|first| first.oid == id))
            })
        }
        F::PgCollationActualVersion => match run.cx.catalog_tx.view().collation(oid_at(args, 0)) {
            Some(c) if c.icu_locale.is_some() => Datum::text(types::collation::VERSION),
            _ => Datum::Null,
        },
        F::ToRegclass => lookup(args, oids::REGCLASS, run)?,
        F::ToRegtype => lookup(args, oids::REGTYPE, run)?,
        F::ToRegnamespace => lookup(args, oids::REGNAMESPACE, run)?,
        F::ToRegrole => lookup(args, oids::REGROLE, run)?,
        F::ToRegproc => lookup(args, oids::REGPROC, run)?,
        F::ToRegprocedure => lookup(args, oids::REGPROCEDURE, run)?,
        F::ToRegoper => lookup(args, oids::REGOPER, run)?,
        F::ToRegoperator => lookup(args, oids::REGOPERATOR, run)?,
        F::ToRegcollation => lookup(args, oids::REGCOLLATION, run)?,
        // Unlike the type's input it takes no number for an oid.
        F::Regclass => Datum::Oid(regclass_from_name(text_at(args, 0), run)?),
        _ => return Ok(None),
    }))
}

/// Whether a system table has a row with this oid.
fn is_listed(table: &str, oid: u32, run: &mut Run<'_, '_>) -> Result<bool> {
    let text = format!("SELECT 1 FROM pg_catalog.{table} WHERE oid = {oid}");
    let mut found = false;
    crate::spi::query(&text, run.cx, &mut |_| {
        found = true;
        Ok(())
    })?;
    Ok(found)
}

/// Where the statement looks names up.
fn names<'a>(view: &'a Snapshot, run: &'a Run<'_, '_>) -> Names<'a> {
    Names { catalog: view, path: run.cx.search_path, database: Some(run.cx.database.0) }
}

/// As input, but NULL for what isn't there.
fn lookup(args: &[Datum], ty: Oid, run: &mut Run<'_, '_>) -> Result<Datum> {
    let text = text_at(args, 0);
    let signed = matches!(ty, oids::REGTYPE | oids::REGPROCEDURE | oids::REGOPERATOR);
    // A number is an oid to the types' input, but not here.
    if !signed && !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(Datum::Null);
    }
    let view = run.cx.catalog_tx.view();
    let found = names(&view, run).find(ty, text_at(args, 0), true)?;
    Ok(found.map_or(Datum::Null, Datum::Oid))
}

/// Whether name and arguments alone find this function.
fn function_is_visible(view: &Snapshot, path: &[u32], id: u32) -> bool {
    let Some(function) = view.function(id) else { return true };
    let types = function.input_types();
    let first = path.iter().find(|schema| {
        let mut named = view.functions_named(&function.name);
        named.any(|f| f.schema == **schema && f.input_types() == types)
    });
    first == Some(&function.schema)
}

/// An oid of such a type as text: its name, or its number when it names nothing.
pub fn output(ty: Oid, id: u32, run: &mut Run<'_, '_>) -> String {
    let view = run.cx.catalog_tx.view();
    names(&view, run).shown(ty, id)
}

/// A relation by its name.
///
/// # Errors
/// `42P01`.
pub fn regclass_from_name(name: &str, run: &mut Run<'_, '_>) -> Result<u32> {
    // Unlike the type's input this takes no number for an oid.
    if name == "-" || !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()) {
        let view = run.cx.catalog_tx.view();
        return names(&view, run).expect(oids::REGCLASS, &format!("\"{name}\""));
    }
    let view = run.cx.catalog_tx.view();
    names(&view, run).expect(oids::REGCLASS, name)
}

/// Reads a name (or a number) as an oid.
///
/// # Errors
/// `42P01`, `42704` for what isn't there.
pub fn input(ty: Oid, words: &str, run: &mut Run<'_, '_>) -> Result<Datum> {
    let view = run.cx.catalog_tx.view();
    names(&view, run).expect(ty, words).map(Datum::Oid)
}

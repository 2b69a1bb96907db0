//! Names and oids of catalog objects: `regclass` and kin, visibility.

use base::{Error, Oid, Result, err};
use catalog::Snapshot;
use catalog::system::facts;
use types::{Datum, TypeIo, oids};

use super::definition::quote_identifier;
use super::{oid_at, text_at};
use crate::run::Run;

/// Types whose values are oids shown as names.
pub fn is_registered(ty: Oid) -> bool {
    types::io::is_reg(ty)
}

/// Functions over names.
pub fn call(name: &str, args: &[Datum], run: &mut Run<'_, '_>) -> Result<Option<Datum>> {
    Ok(Some(match name {
        "pg_table_is_visible" => {
            let view = run.cx.catalog_tx.view();
            let id = oid_at(args, 0);
            let found = relation_parts(&view, id);
            Datum::Bool(found.is_some_and(|(schema, name)| {
                is_visible(&view, run.cx.search_path, schema, &name, id)
            }))
        }
        "pg_type_is_visible" => {
            let view = run.cx.catalog_tx.view();
            Datum::Bool(view.type_is_visible(run.cx.search_path, oid_at(args, 0)))
        }
        "pg_function_is_visible" => {
            let view = run.cx.catalog_tx.view();
            Datum::Bool(function_is_visible(&view, run.cx.search_path, oid_at(args, 0)))
        }
        "pg_operator_is_visible"
        | "pg_opclass_is_visible"
        | "pg_opfamily_is_visible"
        | "pg_conversion_is_visible"
        | "pg_statistics_obj_is_visible"
        | "pg_ts_config_is_visible"
        | "pg_ts_dict_is_visible"
        | "pg_ts_parser_is_visible"
        | "pg_ts_template_is_visible" => Datum::Bool(true),
        "pg_collation_is_visible" => {
            let view = run.cx.catalog_tx.view();
            let id = oid_at(args, 0);
            let found = view.collation(id);
            let path = run.cx.search_path;
            Datum::Bool(found.is_some_and(|c| {
                view.collation_named(path, None, &c.name).is_some_and(|first| first.oid == id)
            }))
        }
        "pg_collation_actual_version" => {
            match run.cx.catalog_tx.view().collation(oid_at(args, 0)) {
                Some(c) if c.icu_locale.is_some() => Datum::text(types::collation::VERSION),
                _ => Datum::Null,
            }
        }
        "to_regclass" => lookup(args, oids::REGCLASS, run),
        "to_regtype" => lookup(args, oids::REGTYPE, run),
        "to_regnamespace" => lookup(args, oids::REGNAMESPACE, run),
        "to_regrole" => lookup(args, oids::REGROLE, run),
        "to_regproc" => lookup(args, oids::REGPROC, run),
        "regclass" => input(oids::REGCLASS, text_at(args, 0), run)?,
        _ => return Ok(None),
    }))
}

/// As input, but NULL for what isn't there.
fn lookup(args: &[Datum], ty: Oid, run: &mut Run<'_, '_>) -> Datum {
    input(ty, text_at(args, 0), run).unwrap_or_default()
}

/// A relation's schema and name.
fn relation_parts(view: &Snapshot, id: u32) -> Option<(u32, String)> {
    if let Some(table) = view.table(id) {
        return Some((table.schema, table.name.clone()));
    }
    if let Some(index) = view.index(id) {
        return Some((index.schema, index.name.clone()));
    }
    if let Some(sequence) = view.sequence(id) {
        return Some((sequence.schema, sequence.name.clone()));
    }
    if let Some(index) = facts::index(id) {
        return Some((catalog::object::ids::PG_CATALOG, index.name.to_owned()));
    }
    if let Some(ty) = view.composite_of_class(id) {
        return Some((ty.schema, ty.name.clone()));
    }
    let system = catalog::system::by_oid(Oid(id))?;
    Some((system.schema, system.name.to_owned()))
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

/// Whether the name alone finds this relation.
fn is_visible(view: &Snapshot, path: &[u32], schema: u32, name: &str, id: u32) -> bool {
    for part in view.implicit_temporary(path).iter().chain(path) {
        if *part == schema {
            return true;
        }
        let other = view.relation_in(*part, name).is_some();
        if other {
            return false;
        }
    }
    let _ = id;
    // System tables come first even when the path doesn't name their schema.
    schema == catalog::object::ids::PG_CATALOG
}

/// A relation's name, qualified where the search path doesn't lead to it.
pub fn relation_name(id: u32, run: &mut Run<'_, '_>) -> Option<String> {
    let view = run.cx.catalog_tx.view();
    let (schema, name) = relation_parts(&view, id)?;
    if is_visible(&view, run.cx.search_path, schema, &name, id) {
        return Some(quote_identifier(&name));
    }
    let schema = match view.schema(schema) {
        Some(schema) => schema.name.clone(),
        None => "information_schema".to_owned(),
    };
    Some(format!("{}.{}", quote_identifier(&schema), quote_identifier(&name)))
}

/// An oid of such a type as text: its name, or its number when it names nothing.
pub fn output(ty: Oid, id: u32, run: &mut Run<'_, '_>) -> String {
    if id == 0 {
        return "-".to_owned();
    }
    let view = run.cx.catalog_tx.view();
    let name = match ty {
        oids::REGCLASS => relation_name(id, run),
        oids::REGTYPE => TypeIo::get(Oid(id)).map(|_| types::io::format_type(Oid(id), -1)),
        oids::REGNAMESPACE => view.schema(id).map(|s| quote_identifier(&s.name)),
        oids::REGROLE => view.roles().find(|r| r.oid == id).map(|r| quote_identifier(&r.name)),
        oids::REGPROC | oids::REGPROCEDURE if view.function(id).is_some() => {
            let signature = ty == oids::REGPROCEDURE;
            catalog::routine::shown(&view, run.cx.search_path, id, signature)
        }
        oids::REGPROC => facts::regproc(id),
        oids::REGPROCEDURE => facts::regprocedure(id),
        oids::REGCOLLATION => view.shown_collation(run.cx.search_path, id),
        oids::REGOPER => facts::regoper(id),
        oids::REGOPERATOR => facts::regoperator(id),
        _ => None,
    };
    name.unwrap_or_else(|| id.to_string())
}

/// Parts of a qualified name: lower case unless quoted.
///
/// # Errors
/// `42602`.
pub fn split_name(name: &str) -> Result<Vec<String>> {
    let invalid = || err!(INVALID_NAME, "invalid name syntax");
    let mut parts = Vec::new();
    let mut rest = name.trim();
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_part(quoted).ok_or_else(invalid)?,
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                (rest[..end].trim().to_lowercase(), &rest[end..])
            }
        };
        if part.is_empty() {
            return Err(invalid());
        }
        parts.push(part);
        match after.strip_prefix('.') {
            Some(more) => rest = more,
            None if after.trim().is_empty() => return Ok(parts),
            None => return Err(invalid()),
        }
    }
}

/// A quoted part without its opening quote: the name and what follows.
fn quoted_part(quoted: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = quoted.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c != '"' {
            name.push(c);
        } else if chars.next_if(|(_, c)| *c == '"').is_some() {
            name.push('"');
        } else {
            return Some((name, &quoted[at + 1..]));
        }
    }
    None
}

/// A relation by its name.
///
/// # Errors
/// `42P01`.
pub fn regclass_from_name(name: &str, run: &mut Run<'_, '_>) -> Result<u32> {
    let parts = split_name(name)?;
    let (schema, relation) = match &parts[..] {
        [relation] => (None, relation),
        [schema, relation] => (Some(schema.as_str()), relation),
        [_, schema, relation] => (Some(schema.as_str()), relation),
        _ => {
            return Err(err!(
                SYNTAX_ERROR,
                "improper relation name (too many dotted names): {name}"
            ));
        }
    };
    let view = run.cx.catalog_tx.view();
    if let Some(table) = catalog::system::find(schema, relation) {
        return Ok(table.oid);
    }
    match view.relation(run.cx.search_path, schema, relation) {
        Some(found) => Ok(found.oid()),
        None => view
            .composite_class(run.cx.search_path, schema, relation)
            .ok_or_else(|| view.missing_relation(schema, relation)),
    }
}

/// Reads a name (or a number) as an oid.
///
/// # Errors
/// `42P01`, `42704` for what isn't there.
pub fn input(ty: Oid, words: &str, run: &mut Run<'_, '_>) -> Result<Datum> {
    let words = words.trim();
    if words == "-" {
        return Ok(Datum::Oid(0));
    }
    if let Ok(number) = words.parse::<u32>() {
        return Ok(Datum::Oid(number));
    }
    let missing =
        |what: &str| -> Error { err!(UNDEFINED_OBJECT, "{what} \"{words}\" does not exist") };
    let view = run.cx.catalog_tx.view();
    let found = match ty {
        oids::REGCLASS => regclass_from_name(words, run)?,
        oids::REGNAMESPACE => {
            let name = split_name(words)?.pop().unwrap_or_default();
            view.schema_named(&name).ok_or_else(|| missing("schema"))?.oid
        }
        oids::REGROLE => {
            let name = split_name(words)?.pop().unwrap_or_default();
            view.roles().find(|r| r.name == name).ok_or_else(|| missing("role"))?.oid
        }
        oids::REGPROC => {
            let parts = split_name(words)?;
            let schema = parts.len().checked_sub(2).map(|at| parts[at].as_str());
            let name = parts.last().map_or("", String::as_str);
            match catalog::routine::named(&view, run.cx.search_path, schema, name)[..] {
                [one] => one,
                [] => base::bail!(UNDEFINED_FUNCTION, "function \"{words}\" does not exist"),
                _ => base::bail!(AMBIGUOUS_FUNCTION, "more than one function named \"{words}\""),
            }
        }
        oids::REGPROCEDURE => super::rights::function(words, run)?,
        oids::REGTYPE => {
            let found = match type_named(words) {
                Some(ty) => Some(ty.0),
                None => user_type_named(&view, run.cx.search_path, words)?,
            };
            found.ok_or_else(|| missing("type"))?
        }
        _ => return Err(Error::unsupported(format!("input of type {ty} by name"))),
    };
    Ok(Datum::Oid(found))
}

/// A type that a user made; `[]` makes an array of it.
fn user_type_named(view: &Snapshot, path: &[u32], words: &str) -> Result<Option<u32>> {
    let (name, array) = match words.trim().strip_suffix("[]") {
        Some(name) => (name, true),
        None => (words, false),
    };
    let mut parts = split_name(name)?;
    let name = parts.pop().unwrap_or_default();
    let found = view.type_oid(path, parts.pop().as_deref(), &name);
    Ok(match found {
        Some(ty) if array => view.known_type(ty).map(|t| t.io.array.0),
        found => found,
    })
}

/// A type by its internal or SQL name, without typmod; `[]` makes an array of it.
fn type_named(words: &str) -> Option<Oid> {
    let lower = words.to_lowercase();
    let (name, array) = match lower.strip_suffix("[]") {
        Some(name) => (name.trim(), true),
        None => (lower.as_str(), false),
    };
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name).trim_matches('"');
    let alias = match name {
        "int" => "int4",
        "decimal" => "numeric",
        "float" => "float8",
        other => other,
    };
    let found =
        TypeIo::by_name(alias).or_else(|| TypeIo::all().iter().find(|t| t.sql_name == alias))?;
    Some(if array { found.array } else { found.oid })
}

#[cfg(test)]
mod tests {
    use super::split_name;

    #[test]
    fn names_split_at_dots_outside_quotes() {
        let split = |name| split_name(name).ok();
        assert_eq!(split("A.b"), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(split("\"A.b\""), Some(vec!["A.b".to_owned()]));
        assert_eq!(split("\"a\"\"b\".c"), Some(vec!["a\"b".to_owned(), "c".to_owned()]));
        assert_eq!(split("a."), None);
        assert_eq!(split("\"a"), None);
    }
}

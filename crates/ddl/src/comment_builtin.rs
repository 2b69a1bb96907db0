//! PostgreSQL's own objects for COMMENT ON, of whose kinds users make none here, and how it says that
//! something is missing of a kind that can't be here.

use base::{Oid, Result, err};
use catalog::system::{self, class, named};
use catalog::{Snapshot, TableKind};
use sql::utility::{Name, RoutineRef};

/// An object of PostgreSQL's own: a superuser may comment on it.
pub struct BuiltIn {
    /// The oid of its catalog.
    pub class: u32,
    /// Its oid.
    pub oid: u32,
    /// A column's number, or 0.
    pub column: u16,
    /// As messages call its kind.
    pub word: &'static str,
    /// As they call it.
    pub name: String,
}

fn found(class: u32, oid: u32, word: &'static str, name: &str) -> BuiltIn {
    BuiltIn { class, oid, column: 0, word, name: name.to_owned() }
}

fn full(object: &Name) -> String {
    match &object.schema {
        Some(schema) => format!("{schema}.{}", object.name),
        None => object.name.clone(),
    }
}

fn is_here(view: &Snapshot, object: &Name) -> Result<()> {
    match &object.schema {
        Some(schema) if view.schema_named(schema).is_none() => {
            Err(err!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist"))
        }
        _ => Ok(()),
    }
}

/// Whether a name can be one of PostgreSQL's own.
fn is_system(object: &Name) -> bool {
    object.schema.as_deref().is_none_or(|s| s == "pg_catalog")
}

/// An object with a name; `part`: an operator class's access method. None: of a kind that users make.
///
/// # Errors
/// `42704`, `3F000`, `42P01`.
pub fn named(
    view: &Snapshot,
    path: &[u32],
    kind: &str,
    object: &Name,
    part: Option<&str>,
) -> Result<Option<BuiltIn>> {
    let name = object.name.as_str();
    let missing = || {
        let kind = kind.to_lowercase();
        err!(UNDEFINED_OBJECT, "{kind} \"{}\" does not exist", full(object))
    };
    Ok(Some(match kind {
        "TABLE" | "VIEW" | "COLUMN" => return system_relation(kind, object, part),
        "ACCESS METHOD" => {
            let oid = view.access_method_named(name).ok_or_else(missing)?.oid;
            found(class::ACCESS_METHOD, oid, "access method", name)
        }
        "LANGUAGE" => {
            found(class::LANGUAGE, named::language(name).ok_or_else(missing)?, "language", name)
        }
        "TABLESPACE" => {
            let oid = named::tablespace(name).ok_or_else(missing)?;
            found(class::TABLESPACE, oid, "tablespace", name)
        }
        "OPERATOR CLASS" | "OPERATOR FAMILY" => {
            return operators(view, kind, object, part.unwrap_or_default()).map(Some);
        }
        "SCHEMA" => match view.schema_named(name).map(|s| s.oid) {
            Some(oid) if oid < Oid::FIRST_USER.0 => found(class::SCHEMA, oid, "schema", name),
            _ => return Ok(None),
        },
        "COLLATION" => {
            match view.collation_named(path, object.schema.as_deref(), name).map(|c| c.oid) {
                Some(oid) if oid < Oid::FIRST_USER.0 => {
                    found(class::COLLATION, oid, "collation", name)
                }
                _ => return Ok(None),
            }
        }
        "RULE" => {
            return part_of_table(view, path, object, part.unwrap_or_default());
        }
        "CONVERSION"
        | "TEXT SEARCH CONFIGURATION"
        | "TEXT SEARCH DICTIONARY"
        | "TEXT SEARCH PARSER"
        | "TEXT SEARCH TEMPLATE" => {
            is_here(view, object)?;
            let (class, oid, word) = match kind {
                "CONVERSION" => (class::CONVERSION, named::conversion(name), "conversion"),
                "TEXT SEARCH CONFIGURATION" => {
                    let oid = named::text_search("c", name);
                    (class::TS_CONFIG, oid, "text search configuration")
                }
                "TEXT SEARCH DICTIONARY" => {
                    (class::TS_DICT, named::text_search("d", name), "text search dictionary")
                }
                "TEXT SEARCH PARSER" => {
                    (class::TS_PARSER, named::text_search("p", name), "text search parser")
                }
                _ => (class::TS_TEMPLATE, named::text_search("t", name), "text search template"),
            };
            found(class, oid.filter(|_| is_system(object)).ok_or_else(missing)?, word, name)
        }
        "STATISTICS OBJECT" => {
            is_here(view, object)?;
            return Err(missing());
        }
        "EXTENSION" => {
            let oid = named::extension(view, name).ok_or_else(missing)?;
            found(class::EXTENSION, oid, "extension", name)
        }
        _ => return Ok(None),
    }))
}

/// A table or view of the catalog, or a column of one.
fn system_relation(kind: &str, object: &Name, part: Option<&str>) -> Result<Option<BuiltIn>> {
    let Some(table) = system::find(object.schema.as_deref(), &object.name) else {
        return Ok(None);
    };
    let is_view = table.kind == TableKind::View;
    let column = match part {
        None if is_view != (kind == "VIEW") => {
            let kind = kind.to_lowercase();
            base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a {kind}", table.name);
        }
        None => 0,
        Some(column) => {
            let found = table.column(column).map(|(n, _)| n);
            found.ok_or_else(|| {
                let table = &table.name;
                err!(UNDEFINED_COLUMN, "column \"{column}\" of relation \"{table}\" does not exist")
            })?
        }
    };
    let word = match (column, is_view) {
        (0, true) => "view",
        (0, false) => "table",
        _ => "relation",
    };
    Ok(Some(BuiltIn { column, ..found(class::RELATION, table.oid, word, &table.name) }))
}

fn operators(view: &Snapshot, kind: &str, object: &Name, method: &str) -> Result<BuiltIn> {
    let Some(method_oid) = view.access_method_named(method).map(|m| m.oid) else {
        base::bail!(UNDEFINED_OBJECT, "access method \"{method}\" does not exist");
    };
    is_here(view, object)?;
    let (class, oid, word) = match kind {
        "OPERATOR CLASS" => {
            let oid = named::operator_class(method_oid, &object.name);
            (class::OPERATOR_CLASS, oid, "operator class")
        }
        _ => {
            let oid = named::operator_family(method_oid, &object.name);
            (class::OPERATOR_FAMILY, oid, "operator family")
        }
    };
    let oid = oid.filter(|_| is_system(object)).ok_or_else(|| {
        let name = full(object);
        err!(UNDEFINED_OBJECT, "{word} \"{name}\" does not exist for access method \"{method}\"")
    })?;
    Ok(found(class, oid, word, &format!("{method}.{}", object.name)))
}

/// A rule on a relation is its owner's: its own, or a view's query.
fn part_of_table(
    view: &Snapshot,
    path: &[u32],
    object: &Name,
    part: &str,
) -> Result<Option<BuiltIn>> {
    let schema = object.schema.as_deref();
    let found = view.relation(path, schema, &object.name);
    if found.is_none() && system::find(schema, &object.name).is_none() {
        return Err(view.missing_relation(schema, &object.name));
    }
    let has = |t: &catalog::Table| {
        part == "_RETURN" && t.kind == TableKind::View || t.rule(part).is_some()
    };
    if view.expect_table(path, schema, &object.name).is_ok_and(|t| has(&t)) {
        return Ok(None);
    }
    let table = &object.name;
    Err(err!(UNDEFINED_OBJECT, "rule \"{part}\" for relation \"{table}\" does not exist"))
}

/// A function or aggregate. None: there is none of PostgreSQL's own.
///
/// # Errors
/// `42809` when it is of another kind than the statement says; `42725`.
pub fn routine(routine: &RoutineRef) -> Result<Option<BuiltIn>> {
    let name = &routine.name.name;
    if !is_system(&routine.name) {
        return Ok(None);
    }
    let all = named::routines(name, routine.args.as_deref());
    let [(oid, aggregate)] = all.as_slice() else {
        if all.is_empty() {
            return Ok(None);
        }
        let kind = routine.kind.to_lowercase();
        return Err(err!(AMBIGUOUS_FUNCTION, "{kind} name \"{name}\" is not unique")
            .hint("Specify the argument list to select the function unambiguously."));
    };
    let list = |args: &[Oid]| {
        args.iter().map(|t| types::io::format_type(*t, -1)).collect::<Vec<_>>().join(", ")
    };
    let full = || match &routine.args {
        Some(args) => format!("{name}({})", list(args)),
        None => name.clone(),
    };
    match routine.kind {
        "PROCEDURE" => Err(err!(WRONG_OBJECT_TYPE, "{} is not a procedure", full())),
        "AGGREGATE" if !aggregate => {
            Err(err!(WRONG_OBJECT_TYPE, "function {} is not an aggregate", full()))
        }
        _ => {
            let word = if *aggregate { "aggregate" } else { "function" };
            Ok(Some(found(class::FUNCTION, *oid, word, name)))
        }
    }
}

/// A cast.
///
/// # Errors
/// `42704`.
pub fn cast(source: Oid, target: Oid) -> Result<BuiltIn> {
    let (from, to) = (types::io::format_type(source, -1), types::io::format_type(target, -1));
    let oid = named::cast(source, target).ok_or_else(|| {
        err!(UNDEFINED_OBJECT, "cast from type {from} to type {to} does not exist")
    })?;
    Ok(found(class::CAST, oid, "type", &format!("{from} or type {to}")))
}

/// An operator.
///
/// # Errors
/// `42883`.
pub fn operator(name: &Name, left: Option<Oid>, right: Oid) -> Result<BuiltIn> {
    let oid = named::operator(&name.name, left, right).filter(|_| is_system(name));
    let oid = oid.ok_or_else(|| {
        let right = types::io::format_type(right, -1);
        let sides = match left {
            Some(left) => format!("{} {} {right}", types::io::format_type(left, -1), full(name)),
            None => format!("{} {right}", full(name)),
        };
        err!(UNDEFINED_FUNCTION, "operator does not exist: {sides}")
    })?;
    Ok(found(class::OPERATOR, oid, "operator", &name.name))
}

/// A type of PostgreSQL's own.
pub fn type_of(ty: Oid) -> BuiltIn {
    found(class::TYPE, ty.0, "type", &types::io::format_type(ty, -1))
}

/// The error for a transform: there are none.
pub fn no_transform(ty: Oid, language: &str) -> base::Error {
    match named::language(language) {
        None => err!(UNDEFINED_OBJECT, "language \"{language}\" does not exist"),
        Some(_) => {
            let ty = types::io::format_type(ty, -1);
            err!(UNDEFINED_OBJECT, "transform for type {ty} language \"{language}\" does not exist")
        }
    }
}

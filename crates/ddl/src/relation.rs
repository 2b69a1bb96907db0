//! Relations that a statement changes: whose they are, and whether they are what it calls them.

use base::{Result, err, sqlstate};
use catalog::snapshot::Relation;
use catalog::{AclKind, TableKind};

use exec::context::ExecContext;
use exec::rights;

/// The kind of a relation, as statements and messages call it.
pub fn word(relation: &Relation) -> &'static str {
    match relation {
        Relation::Index(_) => "index",
        Relation::Sequence(_) => "sequence",
        Relation::Table(table) => match table.kind {
            TableKind::View => "view",
            TableKind::Materialized => "materialized view",
            TableKind::Foreign => "foreign table",
            _ => "table",
        },
    }
}

/// Its name.
pub fn name(relation: &Relation) -> &str {
    match relation {
        Relation::Table(t) => &t.name,
        Relation::Index(i) => &i.name,
        Relation::Sequence(s) => &s.name,
    }
}

/// The relation that DROP … ON names; None, with a notice, when there is none and IF EXISTS was said.
///
/// # Errors
/// `42P01`, `3F000`.
pub fn find(
    schema: Option<&str>,
    name: &str,
    if_exists: bool,
    cx: &mut ExecContext<'_>,
) -> Result<Option<Relation>> {
    let view = cx.catalog_tx.view();
    if let Some(found) = view.relation(cx.search_path, schema, name) {
        return Ok(Some(found));
    }
    let missing = match schema {
        Some(schema) if view.schema_named(schema).is_none() => {
            base::err!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist")
        }
        _ => view.missing_relation(schema, name),
    };
    if !if_exists {
        return Err(missing);
    }
    let message = format!("{}, skipping", missing.message());
    crate::notice(cx, sqlstate::SUCCESSFUL_COMPLETION, message);
    Ok(None)
}

/// `42501` unless it is the session's role's.
///
/// # Errors
/// See above.
pub fn require_owner(cx: &mut ExecContext<'_>, relation: &Relation) -> Result<()> {
    let (kind, id) = match relation {
        Relation::Table(t) => (AclKind::Table, t.oid),
        Relation::Index(i) => (AclKind::Table, i.table),
        Relation::Sequence(s) => (AclKind::Sequence, s.oid),
    };
    rights::require_owner(cx, kind, id, word(relation), name(relation))
}

/// `42809` unless a relation is what ALTER calls it (`VIEW`, `SEQUENCE`, …); all of them may be called
/// tables.
///
/// # Errors
/// See above.
pub fn expect(kind: &str, relation: &Relation) -> Result<()> {
    let kind = kind.to_lowercase();
    if kind == "table" || kind == word(relation) {
        return Ok(());
    }
    let article = if kind == "index" { "an" } else { "a" };
    Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not {article} {kind}", name(relation)))
}

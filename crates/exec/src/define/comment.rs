//! COMMENT ON.

use base::{Error, Result, err};
use catalog::object::Comment;
use catalog::snapshot::Relation;
use catalog::{AclKind, Object, Snapshot};
use sql::utility::Name;

use super::relation;
use crate::context::ExecContext;
use crate::rights;

/// The object's oid and the column's number.
fn target(
    view: &Snapshot,
    path: &[u32],
    kind: &str,
    object: &Name,
    column: Option<&str>,
) -> Result<(u32, u16)> {
    match kind {
        "TABLE" | "COLUMN" | "INDEX" | "VIEW" | "MATERIALIZED VIEW" | "SEQUENCE" => {
            let schema = object.schema.as_deref();
            match view.relation(path, schema, &object.name) {
                None => match view.composite_class(path, schema, &object.name) {
                    Some(class) if kind == "COLUMN" => {
                        attribute(view, class, column.unwrap_or_default())
                    }
                    _ => Err(view.missing_relation(schema, &object.name)),
                },
                Some(found) => part_of(&found, kind, column),
            }
        }
        "CONSTRAINT" => {
            let table = view.expect_table(path, object.schema.as_deref(), &object.name)?;
            let name = column.unwrap_or_default();
            let found = table.constraints.iter().find(|c| c.name == name).ok_or_else(|| {
                err!(
                    UNDEFINED_OBJECT,
                    "constraint \"{name}\" for table \"{}\" does not exist",
                    table.name
                )
            })?;
            Ok((found.oid, 0))
        }
        "DOMAIN CONSTRAINT" => {
            let found = view.type_named(path, object.schema.as_deref(), &object.name);
            let domain = found
                .ok_or_else(|| err!(UNDEFINED_OBJECT, "type \"{}\" does not exist", object.name))?;
            let catalog::UserTypeKind::Domain { checks, .. } = &domain.kind else {
                base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a domain", object.name);
            };
            let name = column.unwrap_or_default();
            let check = checks.iter().find(|c| c.name == name).ok_or_else(|| {
                err!(
                    UNDEFINED_OBJECT,
                    "constraint \"{name}\" for domain {} does not exist",
                    object.name
                )
            })?;
            Ok((check.oid, 0))
        }
        "SCHEMA" => {
            let schema = view.schema_named(&object.name).ok_or_else(|| {
                err!(UNDEFINED_SCHEMA, "schema \"{}\" does not exist", object.name)
            })?;
            Ok((schema.oid, 0))
        }
        "TYPE" | "DOMAIN" => {
            let ty = view.type_oid(path, object.schema.as_deref(), &object.name);
            let ty = ty
                .filter(|ty| view.user_type(*ty).is_some())
                .ok_or_else(|| err!(UNDEFINED_OBJECT, "type \"{}\" does not exist", object.name))?;
            let is_domain = view
                .user_type(ty)
                .is_some_and(|t| matches!(t.kind, catalog::UserTypeKind::Domain { .. }));
            if kind == "DOMAIN" && !is_domain {
                base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a domain", object.name);
            }
            Ok((ty, 0))
        }
        "COLLATION" => {
            let schema = object.schema.as_deref();
            match view.collation_named(path, schema, &object.name) {
                Some(found) => Ok((found.oid, 0)),
                None => Err(view.missing_collation(schema, &object.name)),
            }
        }
        "DATABASE" => {
            let database = view.database_named(&object.name).ok_or_else(|| {
                err!(UNDEFINED_DATABASE, "database \"{}\" does not exist", object.name)
            })?;
            Ok((database.oid, 0))
        }
        "ROLE" => {
            let role = view
                .role_named(&object.name)
                .ok_or_else(|| err!(UNDEFINED_OBJECT, "role \"{}\" does not exist", object.name))?;
            Ok((role.oid, 0))
        }
        other => Err(Error::unsupported(format!("COMMENT ON {other}"))),
    }
}

/// A composite type's column.
fn attribute(view: &Snapshot, class: u32, name: &str) -> Result<(u32, u16)> {
    let ty = view.composite_of_class(class);
    let columns = match ty.map(|t| &t.kind) {
        Some(catalog::UserTypeKind::Composite(columns)) => columns.as_slice(),
        _ => &[],
    };
    match columns.iter().position(|c| !c.dropped && c.name == name) {
        Some(at) => Ok((class, at as u16 + 1)),
        None => {
            let name_of = ty.map_or("", |t| t.name.as_str());
            Err(err!(
                UNDEFINED_COLUMN,
                "column \"{name}\" of relation \"{name_of}\" does not exist"
            ))
        }
    }
}

/// A relation that is what the statement calls it, or a column of one.
fn part_of(found: &Relation, kind: &str, column: Option<&str>) -> Result<(u32, u16)> {
    let (Some(name), Relation::Table(table)) = (column, found) else {
        let own = relation::word(found);
        if !kind.eq_ignore_ascii_case(own) {
            relation::expect(kind, found)?;
            base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table", relation::name(found));
        }
        return Ok((found.oid(), 0));
    };
    match table.column(name) {
        Some((number, _)) => Ok((table.oid, number)),
        None => {
            base::bail!(
                UNDEFINED_COLUMN,
                "column \"{name}\" of relation \"{}\" does not exist",
                table.name
            )
        }
    }
}

/// Only owners comment. A constraint's owner is its table's.
fn check_owner(kind: &str, object: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    let view = cx.catalog_tx.view();
    let (kind, object, word, name) = match kind {
        "SCHEMA" => {
            let name = view.schema(object).map_or("", |s| s.name.as_str());
            (AclKind::Schema, object, "schema", name)
        }
        "DATABASE" => {
            let name = view.database(object).map_or("", |d| d.name.as_str());
            (AclKind::Database, object, "database", name)
        }
        "ROLE" => return check_role(object, cx),
        "COLLATION" => {
            let name = view.collation(object).map_or("", |c| c.name.as_str());
            (AclKind::Collation, object, "collation", name)
        }
        "TYPE" | "DOMAIN" => {
            let name = view.user_type(object).map_or("", |t| t.name.as_str());
            (AclKind::Type, object, "type", name)
        }
        "DOMAIN CONSTRAINT" => {
            let has = |t: &&std::sync::Arc<catalog::UserType>| match &t.kind {
                catalog::UserTypeKind::Domain { checks, .. } => {
                    checks.iter().any(|c| c.oid == object)
                }
                _ => false,
            };
            let Some(domain) = view.user_types().find(has) else { return Ok(()) };
            (AclKind::Type, domain.oid, "type", domain.name.as_str())
        }
        kind => {
            if let Some(ty) = view.composite_of_class(object) {
                return rights::require_owner(cx, AclKind::Type, ty.oid, "type", &ty.name);
            }
            let has = |t: &&std::sync::Arc<catalog::Table>| {
                t.oid == object
                    || t.indexes.contains(&object)
                    || t.constraints.iter().any(|c| c.oid == object)
            };
            if let Some(sequence) = view.sequence(object) {
                let name = sequence.name.as_str();
                return rights::require_owner(cx, AclKind::Sequence, object, "sequence", name);
            }
            let Some(table) = view.tables().find(has) else { return Ok(()) };
            let word = match kind {
                "COLUMN" | "CONSTRAINT" => "relation",
                "INDEX" => "index",
                _ => super::kind_word(table),
            };
            let name = view.index(object).map_or(table.name.as_str(), |i| i.name.as_str());
            (AclKind::Table, table.oid, word, name)
        }
    };
    rights::require_owner(cx, kind, object, word, name)
}

fn check_role(role: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    let view = cx.catalog_tx.view();
    let questions = rights::of(cx, &view);
    let boss = view.role(role).is_some_and(|r| r.superuser);
    let creates = view.role(cx.role).is_some_and(|r| r.createrole);
    if questions.is_superuser(cx.role) || (creates && !boss) || questions.is_admin(cx.role, role) {
        return Ok(());
    }
    let message = if boss { "must be superuser" } else { "must have CREATEROLE privilege" };
    Err(err!(INSUFFICIENT_PRIVILEGE, "{message}"))
}

/// COMMENT ON.
pub fn run(
    kind: &str,
    object: &Name,
    column: Option<&str>,
    text: Option<&str>,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let (object, column) = match target(&view, cx.search_path, kind, object, column) {
        // As in PostgreSQL: scripts that name a database of another name go on.
        Err(error) if error.code() == base::sqlstate::UNDEFINED_DATABASE => {
            cx.hooks.notice("WARNING", error);
            return Ok(());
        }
        found => found?,
    };
    check_owner(kind, object, cx)?;
    put(object, column, text, cx)
}

/// COMMENT ON FUNCTION.
pub fn on_function(oid: u32, text: Option<&str>, cx: &mut ExecContext<'_>) -> Result<()> {
    let view = cx.catalog_tx.view();
    let name = view.function(oid).map_or("", |f| f.name.as_str());
    rights::require_owner(cx, AclKind::Function, oid, "function", name)?;
    put(oid, 0, text, cx)
}

/// Puts a comment in the place of the one that is there.
fn put(object: u32, column: u16, text: Option<&str>, cx: &mut ExecContext<'_>) -> Result<()> {
    let view = cx.catalog_tx.view();
    let old = view.comments().find(|c| c.object == object && c.column == column);
    match (text.filter(|t| !t.is_empty()), old) {
        (None, None) => Ok(()),
        (None, Some(old)) => cx.catalog_tx.remove(cx.tx, old.oid),
        (Some(text), old) => {
            let oid = match old {
                Some(old) => old.oid,
                None => super::new_oid(cx, object)?,
            };
            let shared = view.database(object).is_some() || view.role(object).is_some();
            let comment = Comment { oid, object, column, text: text.to_owned(), shared };
            cx.catalog_tx.put(cx.tx, Object::Comment(comment))
        }
    }
}

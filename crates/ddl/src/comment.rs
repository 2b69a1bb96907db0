//! COMMENT ON.
//!
//! Users comment on what they made, superusers on what is PostgreSQL's own as well ([`comment_builtin`]). Such a
//! comment says its object's class ([`Comment::class`]); an empty one hides the description that is built in.

use base::{Oid, Result, err};
use catalog::object::Comment;
use catalog::snapshot::Relation;
use catalog::system::{self, class};
use catalog::{AclKind, Object, Snapshot};
use sql::comment_statement::{CommentStatement, CommentTarget};
use sql::define_statement::{DefineTarget, OperatorName, TextSearchKind};
use sql::utility::Name;

use super::comment_builtin::{self, BuiltIn};
use super::{function, relation};
use exec::context::ExecContext;
use exec::rights;
use txn::LockMode;

/// The object's oid and the column's number.
fn target(
    view: &Snapshot,
    path: &[u32],
    kind: &str,
    object: &Name,
    column: Option<&str>,
) -> Result<(u32, u16)> {
    match kind {
        "TABLE" | "COLUMN" | "INDEX" | "VIEW" | "MATERIALIZED VIEW" | "FOREIGN TABLE"
        | "SEQUENCE" => {
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
        "TRIGGER" => {
            let table = view.expect_table(path, object.schema.as_deref(), &object.name)?;
            let name = column.unwrap_or_default();
            let found = table.trigger(name).ok_or_else(|| {
                let table = &table.name;
                err!(UNDEFINED_OBJECT, "trigger \"{name}\" for table \"{table}\" does not exist")
            })?;
            Ok((found.oid, 0))
        }
        "EVENT TRIGGER" => {
            let name = &object.name;
            let mut all = view.event_triggers();
            let found = all
                .find(|t| t.name == *name)
                .ok_or_else(|| err!(UNDEFINED_OBJECT, "event trigger \"{name}\" does not exist"))?;
            Ok((found.oid, 0))
        }
        "POLICY" => {
            let table = view.expect_table(path, object.schema.as_deref(), &object.name)?;
            let name = column.unwrap_or_default();
            let found = table.policy(name).ok_or_else(|| {
                let table = &table.name;
                err!(UNDEFINED_OBJECT, "policy \"{name}\" for table \"{table}\" does not exist")
            })?;
            Ok((found.oid, 0))
        }
        "FOREIGN DATA WRAPPER" | "SERVER" => {
            let name = &object.name;
            let (found, noun) = match kind {
                "SERVER" => (view.foreign_server_named(name).map(|s| s.oid), "server"),
                _ => (view.wrapper_named(name).map(|w| w.oid), "foreign-data wrapper"),
            };
            let missing = || err!(UNDEFINED_OBJECT, "{noun} \"{name}\" does not exist");
            Ok((found.ok_or_else(missing)?, 0))
        }
        "PUBLICATION" | "SUBSCRIPTION" => {
            let name = &object.name;
            let found = match kind {
                "PUBLICATION" => view.publication_named(name).map(|p| p.oid),
                _ => view.subscription_named(name).map(|s| s.oid),
            };
            let noun = kind.to_lowercase();
            let missing = || err!(UNDEFINED_OBJECT, "{noun} \"{name}\" does not exist");
            Ok((found.ok_or_else(missing)?, 0))
        }
        // That there is one has been looked up before.
        "RULE" => {
            let table = view.expect_table(path, object.schema.as_deref(), &object.name)?;
            let own = table.rule(column.unwrap_or_default()).map(|r| r.oid);
            Ok((own.unwrap_or_else(|| system::rule_id(table.oid)), 0))
        }
        other => Err(base::Error::unsupported(format!("COMMENT ON {other}"))),
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
        "TYPE" => {
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
        "FOREIGN DATA WRAPPER" | "SERVER" => {
            let name = view.defined_by_oid(object).map_or("", |d| d.name());
            let server = kind == "SERVER";
            let noun = if server { "foreign server" } else { "foreign-data wrapper" };
            (if server { AclKind::Server } else { AclKind::Wrapper }, object, noun, name)
        }
        "PUBLICATION" | "SUBSCRIPTION" => {
            let name = view.defined_by_oid(object).map_or("", |d| d.name());
            let noun = if kind == "PUBLICATION" { "publication" } else { "subscription" };
            (AclKind::Defined, object, noun, name)
        }
        kind => {
            if let Some(ty) = view.composite_of_class(object) {
                return rights::require_owner(cx, AclKind::Type, ty.oid, "type", &ty.name);
            }
            let has = |t: &&std::sync::Arc<catalog::Table>| {
                t.oid == object
                    || kind == "RULE" && system::rule_id(t.oid) == object
                    || t.indexes.contains(&object)
                    || t.constraints.iter().any(|c| c.oid == object)
                    || t.triggers.iter().any(|c| c.oid == object)
                    || t.policies.iter().any(|c| c.oid == object)
                    || t.rules.iter().any(|c| c.oid == object)
            };
            if let Some(sequence) = view.sequence(object) {
                let name = sequence.name.as_str();
                return rights::require_owner(cx, AclKind::Sequence, object, "sequence", name);
            }
            let Some(table) = view.tables().find(has) else { return Ok(()) };
            let word = match kind {
                "COLUMN" | "CONSTRAINT" | "POLICY" | "RULE" | "TRIGGER" => "relation",
                "INDEX" => "index",
                _ => exec::relation_lock::kind_word(table),
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
///
/// # Errors
/// `42704` and kin for what isn't there; `42809`, `42501`.
pub fn run(statement: &CommentStatement, cx: &mut ExecContext<'_>) -> Result<()> {
    let text = statement.text.as_deref();
    match &statement.target {
        CommentTarget::Named { kind, object, part } => {
            on_named(kind, object, part.as_deref(), text, cx)
        }
        CommentTarget::Type { domain, ty } => on_type(*ty, domain.as_deref(), text, cx),
        CommentTarget::Routine(routine) => match comment_builtin::routine(routine)? {
            Some(found) => on_builtin(&found, text, cx),
            None => {
                let found = function::find(routine, cx)?;
                let (oid, name) = (found.oid, &found.name);
                rights::require_owner(cx, AclKind::Function, oid, "function", name)?;
                put(oid, 0, 0, text, cx)
            }
        },
        CommentTarget::Cast(source, target)
            if cx.catalog_tx.view().cast(source.0, target.0).is_some() =>
        {
            on_defined(&DefineTarget::Cast(*source, *target), text, cx)
        }
        CommentTarget::Operator { name, left, right } if is_own(name, *left, *right, cx) => {
            let (name, left, right) = (name.clone(), *left, *right);
            on_defined(&DefineTarget::Operator(OperatorName { name, left, right }), text, cx)
        }
        CommentTarget::Cast(source, target) => {
            on_builtin(&comment_builtin::cast(*source, *target)?, text, cx)
        }
        CommentTarget::Operator { name, left, right } => {
            on_builtin(&comment_builtin::operator(name, *left, *right)?, text, cx)
        }
        CommentTarget::Transform(ty, language) => Err(comment_builtin::no_transform(*ty, language)),
    }
}

/// Whether an operator is one that a user made.
fn is_own(name: &Name, left: Option<Oid>, right: Oid, cx: &mut ExecContext<'_>) -> bool {
    let view = cx.catalog_tx.view();
    let types = [left.map_or(0, |ty| ty.0), right.0];
    let found = view.operator_named(cx.search_path, name.schema.as_deref(), &name.name, types);
    found.is_some_and(|id| view.operator(id).is_some())
}

/// An operator, cast, operator class or family, conversion that a user made.
fn on_defined(wanted: &DefineTarget, text: Option<&str>, cx: &mut ExecContext<'_>) -> Result<()> {
    let id = super::defined::find_owned(wanted, cx)?;
    put(id, 0, 0, text, cx)
}

/// The same by the words of COMMENT ON; None for kinds that users don't make.
fn defined_target(kind: &str, object: &Name, part: Option<&str>) -> Option<DefineTarget> {
    let method = part.unwrap_or_default().to_owned();
    Some(match kind {
        "OPERATOR CLASS" => DefineTarget::Class(object.clone(), method),
        "OPERATOR FAMILY" => DefineTarget::Family(object.clone(), method),
        "CONVERSION" => DefineTarget::Conversion(object.clone()),
        "STATISTICS OBJECT" => DefineTarget::Statistics(object.clone()),
        "TEXT SEARCH CONFIGURATION" => {
            DefineTarget::TextSearch(TextSearchKind::Configuration, object.clone())
        }
        "TEXT SEARCH DICTIONARY" => {
            DefineTarget::TextSearch(TextSearchKind::Dictionary, object.clone())
        }
        "TEXT SEARCH TEMPLATE" => {
            DefineTarget::TextSearch(TextSearchKind::Template, object.clone())
        }
        "TEXT SEARCH PARSER" => DefineTarget::TextSearch(TextSearchKind::Parser, object.clone()),
        _ => return None,
    })
}

fn on_named(
    kind: &str,
    object: &Name,
    part: Option<&str>,
    text: Option<&str>,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    if kind == "LARGE OBJECT" {
        let id = object.name.parse().unwrap_or_default();
        exec::session::large_object::require_owner(id, cx)?;
        return put(id, 0, class::LARGE_OBJECT, text, cx);
    }
    if let Some(wanted) = defined_target(kind, object, part)
        && super::defined::is_own(&wanted, cx)
    {
        return on_defined(&wanted, text, cx);
    }
    let view = cx.catalog_tx.view();
    if let Some(found) = comment_builtin::named(&view, cx.search_path, kind, object, part)? {
        return on_builtin(&found, text, cx);
    }
    let (object, column) = match target(&view, cx.search_path, kind, object, part) {
        // As in PostgreSQL: scripts that name a database of another name go on.
        Err(error) if error.code() == base::sqlstate::UNDEFINED_DATABASE => {
            cx.hooks.notice("WARNING", error);
            return Ok(());
        }
        found => found?,
    };
    check_owner(kind, object, cx)?;
    if matches!(
        kind,
        "TABLE" | "COLUMN" | "VIEW" | "MATERIALIZED VIEW" | "FOREIGN TABLE" | "SEQUENCE"
    ) {
        // It is not dropped meanwhile.
        super::lock(cx, object, LockMode::ShareUpdateExclusive)?;
    }
    put(object, column, if kind == "RULE" { class::REWRITE } else { 0 }, text, cx)
}

/// A type, also one that is a table's row.
fn on_type(
    ty: Oid,
    domain: Option<&str>,
    text: Option<&str>,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let is_domain = |t: &catalog::UserType| matches!(t.kind, catalog::UserTypeKind::Domain { .. });
    if let Some(name) = domain
        && !view.user_type(ty.0).is_some_and(|t| is_domain(t))
    {
        base::bail!(WRONG_OBJECT_TYPE, "\"{name}\" is not a domain");
    }
    if ty < Oid::FIRST_USER {
        return on_builtin(&comment_builtin::type_of(ty), text, cx);
    }
    match view.tables().find(|t| t.row_type.contains(&ty.0)) {
        Some(table) => {
            let (oid, name) = (table.oid, table.name.clone());
            rights::require_owner(cx, AclKind::Table, oid, "type", &name)?;
        }
        None => {
            let element = view.user_types().find(|t| t.array == ty.0).map_or(ty.0, |t| t.oid);
            check_owner("TYPE", element, cx)?;
        }
    }
    put(ty.0, 0, 0, text, cx)
}

fn on_builtin(found: &BuiltIn, text: Option<&str>, cx: &mut ExecContext<'_>) -> Result<()> {
    let view = cx.catalog_tx.view();
    if !rights::of(cx, &view).is_superuser(cx.role) {
        return Err(match found.class {
            class::ACCESS_METHOD => err!(INSUFFICIENT_PRIVILEGE, "must be superuser"),
            _ => err!(INSUFFICIENT_PRIVILEGE, "must be owner of {} {}", found.word, found.name),
        });
    }
    put(found.oid, found.column, found.class, text, cx)
}

/// Puts a comment in the place of the one that is there.
fn put(
    object: u32,
    column: u16,
    class: u32,
    text: Option<&str>,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let same = |c: &Comment| (c.object, c.column, c.class) == (object, column, class);
    let old = view.comments().find(|c| same(c));
    let described = column == 0 && system::description(class, object).is_some();
    match (text.or(described.then_some("")), old) {
        (None, None) => Ok(()),
        (None, Some(old)) => cx.catalog_tx.remove(cx.tx, old.oid),
        (Some(text), old) => {
            let oid = match old {
                Some(old) => old.oid,
                None => super::new_oid(cx, object)?,
            };
            let shared = system::is_shared_class(class)
                || class == 0 && (view.database(object).is_some() || view.role(object).is_some());
            let text = text.to_owned();
            let comment = Comment { oid, object, column, text, shared, class };
            cx.catalog_tx.put(cx.tx, Object::Comment(comment))
        }
    }
}

//! DROP: names to items; what depends on them is [`super::depend`]'s.

pub mod function;
pub mod policy;
pub mod rule;
pub mod trigger;

use base::{Error, Result, err};
use catalog::snapshot::Relation;
use catalog::{AclKind, ConstraintKind, TableKind};
use exec::context::ExecContext;
use exec::rights;
use sql::utility::Name;
use txn::LockMode;

use super::depend::{self, drop_items};
use super::{lock, notice, refresh};
use crate::describe::describe;
use crate::item::Item;

/// DROP.
pub fn run(
    kind: &str,
    names: &[Name],
    if_exists: bool,
    cascade: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let mut items = Vec::new();
    for name in names {
        let item = match kind {
            "TABLE" | "VIEW" | "MATERIALIZED VIEW" | "FOREIGN TABLE" | "SEQUENCE" | "INDEX" => {
                relation(kind, name, if_exists, LockMode::AccessExclusive, cx)?
            }
            "SCHEMA" => schema(name, if_exists, cx)?,
            "COLLATION" => super::collation::find_to_drop(cx, name, if_exists)?,
            "TYPE" | "DOMAIN" => super::user_types::find_to_drop(kind, name, if_exists, cx)?,
            other => {
                let word = other.to_lowercase();
                let message = format!("{word} \"{}\" does not exist", name.name);
                if !if_exists {
                    return Err(Error::new(base::sqlstate::UNDEFINED_OBJECT, message));
                }
                skipping(cx, message);
                None
            }
        };
        items.extend(item.filter(|i| !items.contains(i)));
    }
    drop_items(cx, &items, cascade)
}

/// The index that DROP INDEX CONCURRENTLY names, its table locked against other definitions only.
///
/// # Errors
/// Those of DROP INDEX.
pub fn index_to_drop(
    name: &Name,
    if_exists: bool,
    cx: &mut ExecContext<'_>,
) -> Result<Option<u32>> {
    let item = relation("INDEX", name, if_exists, LockMode::ShareUpdateExclusive, cx)?;
    if let Some(item) = item {
        depend::expect_unused(cx, item)?;
    }
    Ok(item.map(Item::oid))
}

fn skipping(cx: &mut ExecContext<'_>, message: String) {
    notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
}

/// Finds and locks what a name stands for.
fn find(cx: &mut ExecContext<'_>, name: &Name, mode: LockMode) -> Result<Option<Relation>> {
    loop {
        let found = |cx: &mut ExecContext<'_>| {
            let view = cx.catalog_tx.view();
            view.relation(cx.search_path, name.schema.as_deref(), &name.name)
        };
        let Some(first) = found(cx) else { return Ok(None) };
        check_owner(cx, &first)?;
        if let Relation::Index(index) = &first {
            lock(cx, index.table, mode)?;
        }
        lock(cx, first.oid(), mode)?;
        let again = found(cx);
        if again.as_ref().map(Relation::oid) == Some(first.oid()) {
            return Ok(again);
        }
    }
}

/// Relations are dropped by their owner or that of their schema.
fn check_owner(cx: &mut ExecContext<'_>, relation: &Relation) -> Result<()> {
    let schema = match relation {
        Relation::Table(t) => t.schema,
        Relation::Index(i) => i.schema,
        Relation::Sequence(s) => s.schema,
    };
    let view = cx.catalog_tx.view();
    if rights::of(cx, &view).owns(cx.role, AclKind::Schema, schema) {
        return Ok(());
    }
    super::relation::require_owner(cx, relation)
}

/// The word for what a relation is, with its article, and the hint of a DROP that took it for
/// something else.
fn kind_of(relation: &Relation) -> (&'static str, &'static str) {
    match relation {
        Relation::Index(_) => ("INDEX", "Use DROP INDEX to remove an index."),
        Relation::Sequence(_) => ("SEQUENCE", "Use DROP SEQUENCE to remove a sequence."),
        Relation::Table(t) => match t.kind {
            TableKind::View => ("VIEW", "Use DROP VIEW to remove a view."),
            TableKind::Materialized => {
                ("MATERIALIZED VIEW", "Use DROP MATERIALIZED VIEW to remove a materialized view.")
            }
            TableKind::Foreign => {
                ("FOREIGN TABLE", "Use DROP FOREIGN TABLE to remove a foreign table.")
            }
            _ => ("TABLE", "Use DROP TABLE to remove a table."),
        },
    }
}

fn relation(
    kind: &str,
    name: &Name,
    if_exists: bool,
    mode: LockMode,
    cx: &mut ExecContext<'_>,
) -> Result<Option<Item>> {
    if catalog::system::find(name.schema.as_deref(), &name.name).is_some() && kind == "TABLE" {
        base::bail!(
            INSUFFICIENT_PRIVILEGE,
            "permission denied: \"{}\" is a system catalog",
            name.name
        );
    }
    let Some(found) = find(cx, name, mode)? else {
        missing(cx, kind, name, if_exists)?;
        return Ok(None);
    };
    let (own, hint) = kind_of(&found);
    if own != kind {
        let article = if kind == "INDEX" { "an" } else { "a" };
        return Err(err!(
            WRONG_OBJECT_TYPE,
            "\"{}\" is not {article} {}",
            name.name,
            kind.to_lowercase()
        )
        .hint(hint));
    }
    match &found {
        Relation::Index(index) => check_index(cx, index)?,
        Relation::Sequence(sequence) => super::sequence::check_free(cx, sequence)?,
        Relation::Table(_) => {}
    }
    Ok(Some(match found {
        Relation::Table(t) => Item::Relation(t.oid),
        Relation::Index(i) => Item::Index(i.oid),
        Relation::Sequence(s) => Item::Sequence(s.oid),
    }))
}

fn missing(cx: &mut ExecContext<'_>, kind: &str, name: &Name, if_exists: bool) -> Result<()> {
    if let Some(schema) = &name.schema
        && cx.catalog_tx.view().schema_named(schema).is_none()
    {
        let message = format!("schema \"{schema}\" does not exist");
        if if_exists {
            skipping(cx, message);
            return Ok(());
        }
        return Err(Error::new(base::sqlstate::UNDEFINED_SCHEMA, message));
    }
    let message = format!("{} \"{}\" does not exist", kind.to_lowercase(), name.name);
    if if_exists {
        skipping(cx, message);
        return Ok(());
    }
    let code = match kind {
        "INDEX" | "FOREIGN TABLE" => base::sqlstate::UNDEFINED_OBJECT,
        _ => base::sqlstate::UNDEFINED_TABLE,
    };
    Err(Error::new(code, message))
}

/// An index that a constraint rests on goes with it only.
fn check_index(cx: &mut ExecContext<'_>, index: &catalog::Index) -> Result<()> {
    if index.parent != 0 {
        let (view, path) = (cx.catalog_tx.view(), cx.search_path);
        let what = describe(&view, path, Item::Index(index.oid));
        let by = describe(&view, path, Item::Index(index.parent));
        return Err(err!(
            DEPENDENT_OBJECTS_STILL_EXIST,
            "cannot drop {what} because {by} requires it"
        )
        .hint(format!("You can drop {by} instead.")));
    }
    let table = refresh(cx, index.table)?;
    let backed = table.constraints.iter().find(|c| match c.kind {
        ConstraintKind::PrimaryKey { index: i } | ConstraintKind::Unique { index: i } => {
            i == index.oid
        }
        _ => false,
    });
    let Some(constraint) = backed else { return Ok(()) };
    let view = cx.catalog_tx.view();
    let path = cx.search_path;
    let what = describe(&view, path, Item::Index(index.oid));
    let by = describe(&view, path, Item::Constraint(table.oid, constraint.oid));
    Err(err!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot drop {what} because {by} requires it")
        .hint(format!("You can drop {by} instead.")))
}

fn schema(name: &Name, if_exists: bool, cx: &mut ExecContext<'_>) -> Result<Option<Item>> {
    use catalog::object::ids;
    let view = cx.catalog_tx.view();
    let Some(schema) = view.schema_named(&name.name).cloned() else {
        let message = format!("schema \"{}\" does not exist", name.name);
        if if_exists {
            skipping(cx, message);
            return Ok(None);
        }
        return Err(Error::new(base::sqlstate::UNDEFINED_SCHEMA, message));
    };
    if [ids::PG_CATALOG, ids::INFORMATION_SCHEMA, ids::PG_TOAST].contains(&schema.oid) {
        base::bail!(
            DEPENDENT_OBJECTS_STILL_EXIST,
            "cannot drop schema {} because it is required by the database system",
            schema.name
        );
    }
    rights::require_owner(cx, AclKind::Schema, schema.oid, "schema", &schema.name)?;
    super::name::reserve(cx, 0, &name.name)?;
    Ok(Some(Item::Schema(schema.oid)))
}

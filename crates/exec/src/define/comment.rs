//! COMMENT ON.

use base::{Error, Result, err};
use catalog::object::Comment;
use catalog::snapshot::Relation;
use catalog::{Object, Snapshot};
use sql::utility::Name;

use crate::context::ExecContext;

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
                None => Err(view.missing_relation(schema, &object.name)),
                Some(Relation::Index(index)) => Ok((index.oid, 0)),
                Some(Relation::Sequence(sequence)) => Ok((sequence.oid, 0)),
                Some(Relation::Table(table)) => match column {
                    None => Ok((table.oid, 0)),
                    Some(name) => {
                        let (number, _) = table.column(name).ok_or_else(|| {
                            err!(
                                UNDEFINED_COLUMN,
                                "column \"{name}\" of relation \"{}\" does not exist",
                                table.name
                            )
                        })?;
                        Ok((table.oid, number))
                    }
                },
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
        "SCHEMA" => {
            let schema = view.schema_named(&object.name).ok_or_else(|| {
                err!(UNDEFINED_SCHEMA, "schema \"{}\" does not exist", object.name)
            })?;
            Ok((schema.oid, 0))
        }
        "DATABASE" => {
            let database = view.databases().find(|d| d.name == object.name).ok_or_else(|| {
                err!(UNDEFINED_DATABASE, "database \"{}\" does not exist", object.name)
            })?;
            Ok((database.oid, 0))
        }
        other => Err(Error::unsupported(format!("COMMENT ON {other}"))),
    }
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
    let (object, column) = target(&view, cx.search_path, kind, object, column)?;
    let old = view.comments().find(|c| c.object == object && c.column == column);
    match (text.filter(|t| !t.is_empty()), old) {
        (None, None) => Ok(()),
        (None, Some(old)) => cx.catalog_tx.remove(cx.tx, old.oid),
        (Some(text), old) => {
            let oid = match old {
                Some(old) => old.oid,
                None => super::new_oid(cx, object)?,
            };
            let comment = Comment { oid, object, column, text: text.to_owned() };
            cx.catalog_tx.put(cx.tx, Object::Comment(comment))
        }
    }
}

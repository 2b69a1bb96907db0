//! CREATE TYPE … AS (…), and ALTER TYPE of its attributes.

use base::{Result, err};
use catalog::{Column, UserType, UserTypeKind};
use exec::context::ExecContext;
use sql::type_statement::AlterComposite;
use sql::utility::{AlterTable, ColumnDef, Name};

use super::user_types::{self, columns_of, open, put};
use super::{alter_table, name, notice, shape_users};
use crate::column::column;
use crate::rename::rename_one_column;

/// CREATE TYPE … AS (…).
///
/// # Errors
/// `42710`, `42P07`, `3F000`, `42501`.
pub fn create(cx: &mut ExecContext<'_>, name: &Name, columns: &[ColumnDef]) -> Result<()> {
    let plain = Name { position: 0, ..name.clone() };
    let persistence = sql::utility::Persistence::Permanent;
    let schema = name::creation_schema(cx, &plain, persistence)?;
    user_types::check_class(cx, schema, &name.name)?;
    let made = columns.iter().map(column).collect();
    let ty = user_types::create(cx, name, UserTypeKind::Composite(made))?;
    let class = super::new_oid(cx, ty.oid)?;
    put(cx, UserType { class, ..ty })
}

fn open_composite(cx: &mut ExecContext<'_>, name: &Name) -> Result<(UserType, Vec<Column>)> {
    let is_composite = |t: &UserType| matches!(t.kind, UserTypeKind::Composite(_));
    let wrong = |name: &str| err!(WRONG_OBJECT_TYPE, "\"{name}\" is not a composite type");
    let view = cx.catalog_tx.view();
    if view.type_oid(cx.search_path, name.schema.as_deref(), &name.name).is_none() {
        return Err(view.missing_relation(name.schema.as_deref(), &name.name));
    }
    let ty = open(cx, name, is_composite, wrong)?;
    let columns = match &ty.kind {
        UserTypeKind::Composite(columns) => columns.clone(),
        _ => Vec::new(),
    };
    Ok((ty, columns))
}

fn find(columns: &[Column], name: &str) -> Option<usize> {
    columns.iter().position(|c| !c.dropped && c.name == name)
}

fn missing(ty: &UserType, column: &str) -> base::Error {
    err!(UNDEFINED_COLUMN, "column \"{column}\" of relation \"{}\" does not exist", ty.name)
}

/// No table keeps values of the type, whose form is about to change, and no expression was bound for the form that it has.
fn check_unused(cx: &mut ExecContext<'_>, ty: &UserType) -> Result<()> {
    let view = cx.catalog_tx.view();
    let Some((table, n, _)) = columns_of(&view, ty.oid).into_iter().next() else {
        return match shape_users::expression_with(&view, cx.search_path, ty.oid) {
            Some(user) => Err(err!(
                FEATURE_NOT_SUPPORTED,
                "cannot alter type \"{}\" because {user} uses it",
                ty.name
            )),
            None => Ok(()),
        };
    };
    let Some(table) = view.table(table) else { return Ok(()) };
    let column = table.columns.get(usize::from(n) - 1).map_or("", |c| c.name.as_str());
    Err(err!(
        FEATURE_NOT_SUPPORTED,
        "cannot alter type \"{}\" because column \"{}.{column}\" uses it",
        ty.name,
        table.name
    ))
}

/// ALTER TYPE … ADD, DROP, ALTER ATTRIBUTE.
///
/// # Errors
/// `42P01`, `42809`, `42701`, `42703`; `0A000` for another type of an attribute while a table has
/// values of the type.
pub fn alter(
    cx: &mut ExecContext<'_>,
    name: &Name,
    steps: &[AlterComposite],
    cascade: bool,
) -> Result<()> {
    let ty = open_composite(cx, name)?.0.oid;
    // Others may be about to make what has values of it.
    cx.catalog_tx.lock_against_references(cx.tx, ty)?;
    let (ty, mut columns) = open_composite(cx, name)?;
    if steps.iter().any(|step| matches!(step, AlterComposite::Type { .. })) {
        check_unused(cx, &ty)?;
    }
    let tables = typed_tables(cx, &ty, cascade)?;
    for step in steps {
        match step {
            AlterComposite::Add(def) => {
                if find(&columns, &def.name).is_some() {
                    return Err(duplicate(&ty, &def.name));
                }
                check_member(cx, &ty, def.ty.0)?;
                columns.push(column(def));
            }
            AlterComposite::Drop { name, if_exists } => match find(&columns, name) {
                Some(at) => {
                    let number = at + 1;
                    columns[at] = Column {
                        name: format!("........pg.dropped.{number}........"),
                        dropped: true,
                        ..columns[at].clone()
                    };
                }
                None if *if_exists => {
                    let message = format!("{}, skipping", missing(&ty, name).message());
                    notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
                }
                None => return Err(missing(&ty, name)),
            },
            AlterComposite::Type { name, ty: new, typmod } => {
                let at = find(&columns, name).ok_or_else(|| missing(&ty, name))?;
                check_member(cx, &ty, new.0)?;
                (columns[at].ty, columns[at].typmod) = (new.0, *typmod);
            }
        }
    }
    put(cx, UserType { kind: UserTypeKind::Composite(columns), ..ty })?;
    for table in tables {
        for step in steps {
            alter_table::run_step(&table_step(step), table, false, cx)?;
        }
    }
    Ok(())
}

/// The step by which a typed table follows a change of its type.
fn table_step(step: &AlterComposite) -> AlterTable {
    match step {
        AlterComposite::Add(def) => AlterTable::AddColumn {
            column: def.clone(),
            constraints: Vec::new(),
            if_not_exists: false,
        },
        AlterComposite::Drop { name, .. } => {
            AlterTable::DropColumn { name: name.clone(), if_exists: true, cascade: true }
        }
        AlterComposite::Type { name, ty, typmod } => AlterTable::SetType {
            column: name.clone(),
            ty: *ty,
            typmod: *typmod,
            collation: 0,
            using: None,
        },
    }
}

/// ALTER TABLE … OF and NOT OF.
///
/// # Errors
/// `42804` for other columns than the type's; `42809`.
pub fn set_of_type(cx: &mut ExecContext<'_>, id: u32, ty: Option<base::Oid>) -> Result<()> {
    let mut table = super::refresh(cx, id)?;
    let Some(ty) = ty else {
        if table.of_type == 0 {
            base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a typed table", table.name);
        }
        table.of_type = 0;
        return crate::adopt::put(cx, table);
    };
    if !table.parents.is_empty() {
        base::bail!(WRONG_OBJECT_TYPE, "typed tables cannot inherit");
    }
    let view = cx.catalog_tx.view();
    let columns = match view.user_type(ty.0).map(|t| &t.kind) {
        Some(UserTypeKind::Composite(columns)) => columns.as_slice(),
        _ => &[],
    };
    let live: Vec<Column> = table.live_columns().map(|(_, c)| c.clone()).collect();
    let mut own = live.iter();
    for wanted in columns.iter().filter(|c| !c.dropped) {
        let name = &wanted.name;
        let Some(column) = own.next() else {
            base::bail!(DATATYPE_MISMATCH, "table is missing column \"{name}\"");
        };
        if column.name != *name {
            base::bail!(
                DATATYPE_MISMATCH,
                "table has column \"{}\" where type requires \"{name}\"",
                column.name
            );
        }
        let same = (column.ty, column.typmod) == (wanted.ty, wanted.typmod)
            && view.column_collation(column) == view.column_collation(wanted);
        if !same {
            base::bail!(
                DATATYPE_MISMATCH,
                "table \"{}\" has different type for column \"{name}\"",
                table.name
            );
        }
    }
    if let Some(extra) = own.next() {
        base::bail!(DATATYPE_MISMATCH, "table has extra column \"{}\"", extra.name);
    }
    table.of_type = ty.0;
    crate::adopt::put(cx, table)
}

/// A type's attributes have no values of the type inside.
fn check_member(cx: &mut ExecContext<'_>, ty: &UserType, attribute: u32) -> Result<()> {
    if user_types::has_inside(&cx.catalog_tx.view(), attribute, ty.oid) {
        base::bail!(
            INVALID_TABLE_DEFINITION,
            "composite type {} cannot be made a member of itself",
            ty.name
        );
    }
    Ok(())
}

fn duplicate(ty: &UserType, column: &str) -> base::Error {
    err!(DUPLICATE_COLUMN, "column \"{column}\" of relation \"{}\" already exists", ty.name)
}

/// ALTER TYPE … RENAME ATTRIBUTE.
///
/// # Errors
/// `42P01`, `42809`, `42701`, `42703`.
pub fn rename_attribute(
    cx: &mut ExecContext<'_>,
    name: &Name,
    (from, to): (&str, &str),
    cascade: bool,
) -> Result<()> {
    let (ty, mut columns) = open_composite(cx, name)?;
    let tables = typed_tables(cx, &ty, cascade)?;
    let at = find(&columns, from)
        .ok_or_else(|| err!(UNDEFINED_COLUMN, "column \"{from}\" does not exist"))?;
    if find(&columns, to).is_some() {
        return Err(duplicate(&ty, to));
    }
    to.clone_into(&mut columns[at].name);
    put(cx, UserType { kind: UserTypeKind::Composite(columns), ..ty })?;
    for table in tables {
        let rename = |cx: &mut ExecContext<'_>, id| rename_one_column(cx, id, from, to);
        crate::inherit::each(cx, table, false, rename)?;
    }
    Ok(())
}

/// A column of a composite type goes, with its type.
///
/// # Errors
/// Those of the catalog.
pub fn drop_attribute(cx: &mut ExecContext<'_>, ty: u32, n: u16) -> Result<()> {
    let view = cx.catalog_tx.view();
    let Some(ty) = view.user_type(ty) else { return Ok(()) };
    let UserTypeKind::Composite(columns) = &ty.kind else { return Ok(()) };
    let mut columns = columns.clone();
    if let Some(column) = columns.get_mut(usize::from(n) - 1) {
        column.name = format!("........pg.dropped.{n}........");
        column.dropped = true;
    }
    put(cx, UserType { kind: UserTypeKind::Composite(columns), ..UserType::clone(ty) })
}

/// The tables that have the columns of a composite type, locked.
///
/// # Errors
/// `2BP01` when there are any and CASCADE was not said.
fn typed_tables(cx: &mut ExecContext<'_>, ty: &UserType, cascade: bool) -> Result<Vec<u32>> {
    let view = cx.catalog_tx.view();
    let tables: Vec<u32> =
        view.tables().filter(|table| table.of_type == ty.oid).map(|table| table.oid).collect();
    if tables.is_empty() || cascade {
        for table in &tables {
            super::lock(cx, *table, txn::LockMode::AccessExclusive)?;
        }
        return Ok(tables);
    }
    Err(base::err!(
        DEPENDENT_OBJECTS_STILL_EXIST,
        "cannot alter type \"{}\" because it is the type of a typed table",
        ty.name
    )
    .hint("Use ALTER ... CASCADE to alter the typed tables too."))
}

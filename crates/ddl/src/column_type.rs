//! ALTER COLUMN TYPE. All columns of a statement change together: USING reads the rows as they were before it, and the
//! table is written anew once, unless the new types keep the values as they are.
//!
//! Expressions over the columns (CHECK constraints, index keys and predicates, statistics) are written down with the
//! casts that the old types implied and bound over the new ones; what can't be bound is an error, as are views, rules,
//! policies, triggers, functions, publications and generated columns over a column that changes.

use base::{Error, Oid, Result, err};
use catalog::{Column, ConstraintKind, Defined, Index, Object, Snapshot, Table, TableKind};
use exec::context::ExecContext;
use exec::session::quote_identifier;
use exec::spi::{rows_of, with_context};
use sql::utility::AlterTable;

use super::{refresh, rewrite_with};
use crate::column::missing_column;
use crate::describe::describe;
use crate::item::Item;
use crate::mentions::mentions;

/// A column's new type.
#[derive(Clone, Copy)]
pub struct TypeChange<'s> {
    /// The column.
    pub name: &'s str,
    /// Its type to be.
    pub ty: Oid,
    typmod: i32,
    collation: u32,
    using: Option<&'s str>,
}

/// The change that a step of ALTER TABLE asks for; None: it is another one.
pub fn change_of(step: &AlterTable) -> Option<TypeChange<'_>> {
    let AlterTable::SetType { column, ty, typmod, collation, using } = step else { return None };
    let (ty, typmod, collation) = (*ty, *typmod, *collation);
    Some(TypeChange { name: column, ty, typmod, collation, using: using.as_deref() })
}

impl TypeChange<'_> {
    /// The type in a cast. Without a length, so that what is too long is an error and not cut off.
    fn target(&self) -> String {
        match self.ty {
            types::oids::BPCHAR => "bpchar".to_owned(),
            ty => types::io::format_type(ty, -1),
        }
    }

    fn cannot(&self, what: &str) -> Error {
        err!(
            DATATYPE_MISMATCH,
            "{what}column \"{}\" cannot be cast automatically to type {}",
            self.name,
            types::io::format_type(self.ty, -1)
        )
    }
}

/// Changes the types of columns of one table.
///
/// # Errors
/// Those of each change.
pub fn change_one(
    cx: &mut ExecContext<'_>,
    id: u32,
    changes: &[TypeChange<'_>],
    no_expression: impl Fn(&mut ExecContext<'_>, &Table) -> Result<()>,
) -> Result<()> {
    let old = refresh(cx, id)?;
    let mut numbers = Vec::with_capacity(changes.len());
    for change in changes {
        numbers.push(check(cx, &old, change)?);
    }
    // A step that leaves a column's type as it is may be followed by another of the same column.
    let alters = |other: &TypeChange<'_>| {
        let column = old.columns.iter().find(|c| !c.dropped && c.name == other.name);
        column.is_none_or(|c| (Oid(c.ty), c.typmod) != (other.ty, other.typmod))
    };
    let twice = |n: &usize| {
        changes[..*n].iter().any(|other| other.name == changes[*n].name && alters(other))
    };
    if let Some(n) = (0..changes.len()).find(twice) {
        let name = changes[n].name;
        base::bail!(FEATURE_NOT_SUPPORTED, "cannot alter type of column \"{name}\" twice");
    }
    let view = cx.catalog_tx.view();
    let select = select(&view, &old, changes);
    let mut table = old.clone();
    let mut kept = true;
    for (change, number) in changes.iter().zip(&numbers) {
        crate::defined::statistics::forget_column(cx, &table, *number)?;
        kept &= set(&view, &mut table, *number, change, &cx.format.time_zone);
        check_default(cx, &table, *number, change)?;
        check_key_collation(&view, &table, *number)?;
    }
    let indexes = restate(cx, &old, &mut table, &numbers)?;
    if table.kind == TableKind::Foreign || kept {
        cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))?;
        for index in indexes {
            cx.catalog_tx.put(cx.tx, Object::Index(index))?;
        }
    } else {
        no_expression(cx, &table)?;
        super::event_trigger::rewriting(table.oid, 4, cx)?;
        rewrite_with(cx, table, &select, None, indexes)?;
        let table = refresh(cx, id)?;
        for (change, number) in changes.iter().zip(&numbers) {
            if table.columns[usize::from(*number) - 1].not_null {
                super::constraint::check_no_nulls(cx, &table, change.name)?;
            }
        }
        super::constraint::check_all(cx, &table)?;
    }
    numbers.into_iter().try_for_each(|n| super::constraint::check_changed_column(cx, id, n))
}

/// The rows as they are to be.
fn select(view: &Snapshot, table: &Table, changes: &[TypeChange<'_>]) -> String {
    let expression = |c: &Column| {
        if c.dropped {
            return "NULL".to_owned();
        }
        let plain = quote_identifier(&c.name);
        match changes.iter().rev().find(|change| change.name == c.name) {
            Some(change) => {
                format!("CAST(({}) AS {})", change.using.unwrap_or(&plain), change.target())
            }
            None => plain,
        }
    };
    let list: Vec<String> = table.columns.iter().map(expression).collect();
    format!("SELECT {} FROM {}", list.join(", "), rows_of(view, table))
}

/// Sets a column's type. Whether its values stay as they are.
fn set(
    view: &Snapshot,
    table: &mut Table,
    number: u16,
    change: &TypeChange<'_>,
    zone: &types::io::TimeZone,
) -> bool {
    let column = &mut table.columns[usize::from(number) - 1];
    let before = view.column_collation(column);
    let (old, new) = ((Oid(column.ty), column.typmod), (change.ty, change.typmod));
    let kept = change.using.is_none()
        && (keeps_values(old, new) || column.missing.is_none() && is_same_time(old, new, zone));
    (column.ty, column.typmod, column.collation) = (change.ty.0, change.typmod, change.collation);
    kept && view.column_collation(column) == before
}

/// A default goes on as it was written, and must be one for the new type.
fn check_default(
    cx: &mut ExecContext<'_>,
    table: &Table,
    number: u16,
    change: &TypeChange<'_>,
) -> Result<()> {
    let column = &table.columns[usize::from(number) - 1];
    let Some(default) = column.default.as_deref().filter(|_| !column.generated) else {
        return Ok(());
    };
    let is_one =
        with_context(cx, |cx| sql::print::default(cx, (change.ty, change.typmod), default, false));
    match is_one {
        Err(error) if error.code() == base::sqlstate::DATATYPE_MISMATCH => {
            Err(change.cannot("default for "))
        }
        other => other.map(drop),
    }
}

/// `0A000` for users of a column that must be dropped first; those of the change itself. The column's number.
fn check(cx: &mut ExecContext<'_>, table: &Table, change: &TypeChange<'_>) -> Result<u16> {
    let name = change.name;
    if table.kind == TableKind::Foreign && change.using.is_some() {
        return Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not a table", table.name));
    }
    let Some((number, column)) = table.column(name) else {
        return Err(missing_column(table, name));
    };
    super::partition::check_no_key(table, name, "alter")?;
    if change.using.is_some() && column.generated {
        return Err(err!(
            INVALID_COLUMN_DEFINITION,
            "cannot specify USING when altering type of generated column"
        )
        .detail(format!("Column \"{name}\" is a generated column.")));
    }
    check_users(cx, table, number)?;
    if let Some(using) = change.using {
        let from = type_of(cx, table, using);
        if from.is_some_and(|from| !is_assignable(cx, from, change.ty)) {
            return Err(change
                .cannot("result of USING clause for ")
                .hint("You might need to add an explicit cast."));
        }
    } else if !is_assignable(cx, Oid(column.ty), change.ty) {
        return Err(change.cannot("").hint(format!(
            "You might need to specify \"USING {}::{}\".",
            quote_identifier(name),
            types::io::format_type(change.ty, change.typmod)
        )));
    }
    Ok(number)
}

fn check_users(cx: &mut ExecContext<'_>, table: &Table, number: u16) -> Result<()> {
    let (id, view, path) = (table.oid, cx.catalog_tx.view(), cx.search_path);
    let name = &table.columns[usize::from(number) - 1].name;
    let used = |by: &str, user: String| {
        err!(FEATURE_NOT_SUPPORTED, "cannot alter type of a column used {by}")
            .detail(format!("{user} depends on column \"{name}\""))
    };
    for other in table.columns.iter().filter(|c| c.generated && !c.dropped && c.name != *name) {
        if other.default.as_deref().is_some_and(|sql| mentions(sql, name)) {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "cannot alter type of a column used by a generated column"
            )
            .detail(format!("Column \"{name}\" is used by generated column \"{}\".", other.name)));
        }
    }
    if let Some(function) = view.functions().find(|f| f.uses.contains(&(id, number))) {
        let user = describe(&view, path, Item::Function(function.oid));
        return Err(used("by a function or procedure", user));
    }
    let reads = |t: &catalog::Table| {
        t.query.as_ref().is_some_and(|query| query.uses.contains(&(id, number)))
    };
    if let Some(user) = view.tables().find(|t| reads(t)) {
        let user = format!("rule _RETURN on {}", describe(&view, path, Item::Relation(user.oid)));
        return Err(used("by a view or rule", user));
    }
    if let Some(rule) = super::rule::users(&view, id, Some(number)).first() {
        return Err(used("by a view or rule", describe(&view, path, *rule)));
    }
    let fires =
        |t: &&catalog::Trigger| t.columns.contains(&number) || t.uses.contains(&(id, number));
    if let Some(trigger) = table.triggers.iter().find(fires) {
        let user = describe(&view, path, Item::Trigger(id, trigger.oid));
        return Err(used("in a trigger definition", user));
    }
    if let Some(policy) = super::policy::users(&view, id, Some(number)).first() {
        return Err(used("in a policy definition", describe(&view, path, *policy)));
    }
    for publication in view.publications() {
        let Some(member) = publication.table(id) else { continue };
        if member.filter_columns.contains(&number) {
            let user = describe(&view, path, Item::Published(publication.oid, member.oid));
            return Err(used("by a publication WHERE clause", user));
        }
    }
    Ok(())
}

/// Binds what is computed from columns over their new types. The indexes whose definitions change.
fn restate(
    cx: &mut ExecContext<'_>,
    old: &Table,
    table: &mut Table,
    numbers: &[u16],
) -> Result<Vec<Index>> {
    let view = cx.catalog_tx.view();
    let new = table.clone();
    let again = |cx: &mut ExecContext<'_>, sql: &mut String| -> Result<()> {
        if let Some(text) = with_context(cx, |cx| sql::stored::over(cx, old, &new, sql, numbers))? {
            *sql = text;
        }
        Ok(())
    };
    for constraint in &mut table.constraints {
        if let ConstraintKind::Check(sql) = &mut constraint.kind {
            again(cx, sql)?;
        }
    }
    let mut indexes = Vec::new();
    for index in view.indexes_of(old) {
        let mut index = Index::clone(&index);
        for key in &mut index.columns {
            if let Some(expression) = &mut key.expression {
                again(cx, &mut expression.sql)?;
                if let Some(ty) = type_of(cx, &new, &expression.sql) {
                    expression.ty = ty.0;
                }
            }
            // Keys follow the column's collation, but for those with one of their own.
            let before = old.columns.get(usize::from(key.column).wrapping_sub(1));
            let before = before.map_or(0, |column| view.column_collation(column));
            if numbers.contains(&key.column)
                && key.collation.as_ref().is_none_or(|c| c.oid == before)
            {
                key.collation = view.column_key(&new, key.column).collation;
            }
        }
        if let Some(sql) = &mut index.predicate {
            again(cx, sql)?;
        }
        indexes.push(index);
    }
    for about in view.extended_statistics().filter(|s| s.table == old.oid) {
        let mut about = about.clone();
        for expression in &mut about.expressions {
            again(cx, &mut expression.sql)?;
            if let Some(ty) = type_of(cx, &new, &expression.sql) {
                expression.ty = ty.0;
            }
        }
        cx.catalog_tx.put(cx.tx, Object::Defined(Box::new(Defined::Statistics(about))))?;
    }
    Ok(indexes)
}

/// The type of an expression over a table's rows; None: it is none, which is for others to say.
fn type_of(cx: &mut ExecContext<'_>, table: &Table, sql: &str) -> Option<Oid> {
    let bound = with_context(cx, |cx| sql::stored::row_expressions(cx, table, &[sql])).ok()?;
    bound.first().map(sql::Expr::ty)
}

/// Whether values of a type may be assigned to a column of another one.
fn is_assignable(cx: &mut ExecContext<'_>, from: Oid, to: Oid) -> bool {
    with_context(cx, |cx| sql::stored::is_assignable(cx, from, to))
}

/// Whether every value of a column is one of its new type as it stands: types whose values are kept alike, with
/// no narrower bound.
fn keeps_values((from, old): (Oid, i32), (to, new): (Oid, i32)) -> bool {
    use types::oids::{NUMERIC, TEXT, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ, VARBIT, VARCHAR};
    let wider = new == -1 || (old != -1 && new >= old);
    match (from, to) {
        (VARCHAR | TEXT, TEXT) => true,
        (TEXT, VARCHAR) => new == -1,
        (VARCHAR, VARCHAR)
        | (VARBIT, VARBIT)
        | (TIME, TIME)
        | (TIMETZ, TIMETZ)
        | (TIMESTAMP, TIMESTAMP)
        | (TIMESTAMPTZ, TIMESTAMPTZ) => wider,
        // Precision in the upper half, scale in the lower.
        (NUMERIC, NUMERIC) => {
            new == -1 || (old != -1 && new >= old && (new - 4) & 0xffff == (old - 4) & 0xffff)
        }
        _ => false,
    }
}

/// Whether local times become instants as they stand, or the other way: where the session's zone is UTC.
fn is_same_time(
    (from, old): (Oid, i32),
    (to, new): (Oid, i32),
    zone: &types::io::TimeZone,
) -> bool {
    use types::oids::{TIMESTAMP, TIMESTAMPTZ};
    let turned = matches!((from, to), (TIMESTAMP, TIMESTAMPTZ) | (TIMESTAMPTZ, TIMESTAMP));
    let wider = new == -1 || (old != -1 && new >= old);
    let utc = ["UTC", "Etc/UTC", "GMT", "Etc/GMT", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu"];
    turned && wider && utc.contains(&zone.name().as_str())
}

/// Columns of foreign keys, on either side, are compared byte by byte.
fn check_key_collation(view: &catalog::Snapshot, table: &Table, number: u16) -> Result<()> {
    let key = view.column_key(table, number);
    if key.slot()?.is_deterministic() {
        return Ok(());
    }
    let own = table.foreign_keys().any(|(_, key)| key.columns.contains(&number));
    let others = table.referenced_by.iter().filter_map(|id| view.table(*id));
    let referenced = others.into_iter().any(|t| {
        t.foreign_keys().any(|(_, k)| k.table == table.oid && k.referenced.contains(&number))
    });
    if own || referenced {
        return Err(super::constraint::no_deterministic_key());
    }
    Ok(())
}

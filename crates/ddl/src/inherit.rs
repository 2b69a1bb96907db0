//! Inheritance: who inherits from whom, and steps of ALTER TABLE that go on to children.
//!
//! Both ends of the bond are kept ([`Table::parents`], [`Table::children`]): a query must know the
//! children of the table that it names at no cost, and DROP must find the parents. A column or CHECK
//! constraint counts the parents that it comes from; what has none left and no definition of its own goes
//! with the parent's.

use base::{Result, err};
use catalog::{Constraint, ConstraintKind, Table, TableKind};
use exec::context::ExecContext;
use exec::rights;
use sql::utility::{ColumnDef, ConstraintDef, ConstraintDefKind, Name};
use txn::LockMode;

use super::{alter_table, constraint, depend, lock, notice, open_owned, refresh};
use crate::adopt::{adopt_columns, adopt_constraints, is_check, put};
use crate::item::Item;

/// The tables right below one: its children, or its partitions.
///
/// # Errors
/// `42P01` when the table is gone.
pub fn child_ids(cx: &mut ExecContext<'_>, id: u32) -> Result<Vec<u32>> {
    let table = refresh(cx, id)?;
    Ok(cx.catalog_tx.view().children(&table))
}

fn say(cx: &mut ExecContext<'_>, message: String) {
    notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
}

/// Notes a new table with its parents.
///
/// # Errors
/// `42501` for somebody else's parent.
pub fn link(cx: &mut ExecContext<'_>, child: u32, parents: &[u32]) -> Result<()> {
    for id in parents {
        let mut parent = refresh(cx, *id)?;
        rights::require_table_owner(cx, &parent)?;
        parent.children.push(child);
        put(cx, parent)?;
    }
    let mut table = refresh(cx, child)?;
    table.parents = parents.to_vec();
    put(cx, table)
}

/// A table's direct children, locked for a change.
fn children(cx: &mut ExecContext<'_>, id: u32) -> Result<Vec<u32>> {
    let mut ids = child_ids(cx, id)?;
    ids.sort_unstable();
    for child in &ids {
        lock(cx, *child, LockMode::AccessExclusive)?;
        let table = refresh(cx, *child)?;
        rights::require_table_owner(cx, &table)?;
        super::expect_checked(cx, &table, "ALTER TABLE")?;
    }
    Ok(ids)
}

/// All that inherit from a table, level by level, locked.
///
/// # Errors
/// Those of locking.
pub fn descendants(cx: &mut ExecContext<'_>, id: u32, mode: LockMode) -> Result<Vec<u32>> {
    let (mut found, mut next) = (vec![id], 0);
    while next < found.len() {
        let mut ids = child_ids(cx, found[next])?;
        ids.sort_unstable();
        for child in ids {
            if !found.contains(&child) {
                lock(cx, child, mode)?;
                found.push(child);
            }
        }
        next += 1;
    }
    found.remove(0);
    Ok(found)
}

/// All that inherit from a table, level by level, not locked.
///
/// # Errors
/// Those of the catalog.
pub fn all_below(cx: &mut ExecContext<'_>, id: u32) -> Result<Vec<u32>> {
    let (mut found, mut next) = (vec![id], 0);
    while next < found.len() {
        for child in child_ids(cx, found[next])? {
            if !found.contains(&child) {
                found.push(child);
            }
        }
        next += 1;
    }
    found.remove(0);
    Ok(found)
}

fn refused(message: String) -> base::Error {
    base::Error::new(base::sqlstate::INVALID_TABLE_DEFINITION, message)
}

/// Takes a step with a table, and unless ONLY was said with all that inherit from it.
///
/// # Errors
/// The step's.
pub fn each(
    cx: &mut ExecContext<'_>,
    id: u32,
    only: bool,
    step: impl FnMut(&mut ExecContext<'_>, u32) -> Result<()>,
) -> Result<()> {
    each_under(cx, id, only, LockMode::AccessExclusive, step)
}

/// As [`each`]; those that inherit are locked in `mode`.
///
/// # Errors
/// The step's.
pub fn each_under(
    cx: &mut ExecContext<'_>,
    id: u32,
    only: bool,
    mode: LockMode,
    mut step: impl FnMut(&mut ExecContext<'_>, u32) -> Result<()>,
) -> Result<()> {
    step(cx, id)?;
    if only || child_ids(cx, id)?.is_empty() {
        return Ok(());
    }
    for child in descendants(cx, id, mode)? {
        let table = refresh(cx, child)?;
        rights::require_table_owner(cx, &table)?;
        super::expect_checked(cx, &table, "ALTER TABLE")?;
        step(cx, child)?;
    }
    Ok(())
}

/// `42P16` for a change that a column shares with its parents or children. `done`: what can't be done to
/// an inherited one; `must`: what the children would miss.
///
/// # Errors
/// See above.
pub fn check_shared(
    cx: &mut ExecContext<'_>,
    table: &Table,
    column: &str,
    only: bool,
    done: &str,
    must: &str,
) -> Result<()> {
    let Some((_, found)) = table.column(column) else { return Ok(()) };
    if done == "rename" && only && !child_ids(cx, table.oid)?.is_empty() {
        return Err(refused(must.to_owned()));
    }
    if found.inherited > 0 {
        return Err(refused(format!("cannot {done} inherited column \"{column}\"")));
    }
    if only && !child_ids(cx, table.oid)?.is_empty() {
        return Err(refused(must.to_owned()));
    }
    check_other_parents(cx, table, column, done)
}

/// `42P16` for a column that a descendant also has from a table which does not inherit from this one.
fn check_other_parents(
    cx: &mut ExecContext<'_>,
    table: &Table,
    column: &str,
    done: &str,
) -> Result<()> {
    let below = descendants(cx, table.oid, LockMode::AccessExclusive)?;
    for id in &below {
        let child = refresh(cx, *id)?;
        let expected =
            child.parents.iter().filter(|p| **p == table.oid || below.contains(p)).count();
        if child.column(column).is_some_and(|(_, c)| usize::from(c.inherited) > expected) {
            let of = match done {
                "alter" => format!(" of relation \"{}\"", child.name),
                _ => String::new(),
            };
            return Err(refused(format!("cannot {done} inherited column \"{column}\"{of}")));
        }
    }
    Ok(())
}

/// ADD COLUMN.
///
/// # Errors
/// Those of the definition; `42P16`, `42804`.
pub fn add_column(
    cx: &mut ExecContext<'_>,
    id: u32,
    def: &ColumnDef,
    constraints: &[ConstraintDef],
    if_not_exists: bool,
    only: bool,
) -> Result<()> {
    let table = refresh(cx, id)?;
    if table.bound.is_some() {
        base::bail!(WRONG_OBJECT_TYPE, "cannot add column to a partition");
    }
    let there = table.column(&def.name).is_some();
    let parental = !there && !child_ids(cx, id)?.is_empty();
    if parental && only {
        return Err(refused("column must be added to child tables too".to_owned()));
    }
    if parental && def.sequence.as_ref().is_some_and(|s| s.identity.is_some()) {
        let message = "cannot recursively add identity column to table that has child tables";
        return Err(refused(message.to_owned()));
    }
    alter_table::add_column(cx, id, def, if_not_exists)?;
    if there {
        return Ok(());
    }
    if parental {
        let table = refresh(cx, id)?;
        let mut below = def.clone();
        (below.inherited, below.only_inherited) = (1, true);
        if let Some((_, column)) = table.column(&def.name) {
            below.default_volatile |= below.sequence.take().is_some();
            below.default.clone_from(&column.default);
            below.default_uses.clone_from(&column.default_uses);
        }
        column_to_children(cx, id, &below)?;
    }
    constraints.iter().try_for_each(|c| add_constraint(cx, id, c, only))
}

fn column_to_children(cx: &mut ExecContext<'_>, id: u32, def: &ColumnDef) -> Result<()> {
    for child in children(cx, id)? {
        let mut table = refresh(cx, child)?;
        let Some((number, _)) = table.column(&def.name) else {
            alter_table::add_column(cx, child, def, false)?;
            column_to_children(cx, child, def)?;
            continue;
        };
        let column = &mut table.columns[usize::from(number) - 1];
        if (column.ty, column.typmod) != (def.ty.0, def.typmod) {
            base::bail!(
                DATATYPE_MISMATCH,
                "child table \"{}\" has different type for column \"{}\"",
                table.name,
                def.name
            );
        }
        column.inherited += 1;
        let message =
            format!("merging definition of column \"{}\" for child \"{}\"", def.name, table.name);
        put(cx, table)?;
        say(cx, message);
    }
    Ok(())
}

/// DROP COLUMN.
///
/// # Errors
/// `42703`, `42P16`, `2BP01`.
pub fn drop_column(
    cx: &mut ExecContext<'_>,
    id: u32,
    name: &str,
    if_exists: bool,
    cascade: bool,
    only: bool,
) -> Result<()> {
    let table = refresh(cx, id)?;
    if crate::column::check_column_name(name).is_err() {
        base::bail!(FEATURE_NOT_SUPPORTED, "cannot drop system column \"{name}\"");
    }
    let Some((number, column)) = table.column(name) else {
        return alter_table::missing_to_drop(cx, &table, name, if_exists);
    };
    if column.inherited > 0 {
        return Err(refused(format!("cannot drop inherited column \"{name}\"")));
    }
    super::partition::check_no_key(&table, name, "drop")?;
    if !only && table.is_partitioned() {
        for below in descendants(cx, id, LockMode::AccessExclusive)? {
            super::partition::check_no_key(&refresh(cx, below)?, name, "drop")?;
        }
    }
    if only {
        expect_no_partitions(cx, &table, "drop column")?;
    }
    let mut items = vec![Item::Column(id, number)];
    column_from_children(cx, id, name, only, &mut items)?;
    depend::drop_items(cx, &items, cascade)
}

/// `42P16` for taking something from a partitioned table but not from its partitions.
fn expect_no_partitions(cx: &mut ExecContext<'_>, table: &Table, what: &str) -> Result<()> {
    if !table.is_partitioned() || child_ids(cx, table.oid)?.is_empty() {
        return Ok(());
    }
    let message = format!("cannot {what} from only the partitioned table when partitions exist");
    Err(refused(message).hint("Do not specify the ONLY keyword."))
}

/// SET and DROP NOT NULL, before anything is done.
///
/// # Errors
/// `42P16` where a partition and its table would say different things.
pub fn check_not_null(
    cx: &mut ExecContext<'_>,
    id: u32,
    column: &str,
    only: bool,
    not_null: bool,
) -> Result<()> {
    let table = refresh(cx, id)?;
    if not_null {
        return match only {
            true => expect_not_null(cx, &table, std::slice::from_ref(&column)),
            false => Ok(()),
        };
    }
    if only {
        expect_no_partitions(cx, &table, "remove constraint")?;
    }
    if table.bound.is_some()
        && let Some(parent) = table.partition_of()
        && refresh(cx, parent)?.column(column).is_some_and(|(_, c)| c.not_null)
    {
        return Err(refused(format!("column \"{column}\" is marked NOT NULL in parent table")));
    }
    Ok(())
}

/// `42P16` for columns of a partitioned table that become NOT NULL when they are not so in its partitions.
///
/// # Errors
/// See above.
pub fn expect_not_null(cx: &mut ExecContext<'_>, table: &Table, columns: &[&str]) -> Result<()> {
    if !table.is_partitioned() {
        return Ok(());
    }
    for child in child_ids(cx, table.oid)? {
        let child = refresh(cx, child)?;
        let lacks = |name: &&&str| child.column(name).is_some_and(|(_, c)| !c.not_null);
        if let Some(column) = columns.iter().find(lacks) {
            let message = "constraint must be added to child tables too".to_owned();
            return Err(refused(message)
                .detail(format!(
                    "Column \"{column}\" of relation \"{}\" is not already NOT NULL.",
                    child.name
                ))
                .hint("Do not specify the ONLY keyword."));
        }
    }
    Ok(())
}

/// Children that have a column of their own, or of another parent, keep it; `items`: the others'.
fn column_from_children(
    cx: &mut ExecContext<'_>,
    id: u32,
    name: &str,
    only: bool,
    items: &mut Vec<Item>,
) -> Result<()> {
    for child in children(cx, id)? {
        let mut table = refresh(cx, child)?;
        let Some((number, _)) = table.column(name) else { continue };
        let column = &mut table.columns[usize::from(number) - 1];
        if !only && column.inherited <= 1 && column.only_inherited {
            items.push(Item::Column(child, number));
            column_from_children(cx, child, name, only, items)?;
            continue;
        }
        column.inherited = column.inherited.saturating_sub(1);
        column.only_inherited &= !only;
        put(cx, table)?;
    }
    Ok(())
}

/// ADD constraint.
///
/// # Errors
/// Those of the definition; `42P16`, `42710`; `23514` when rows violate it.
pub fn add_constraint(
    cx: &mut ExecContext<'_>,
    id: u32,
    def: &ConstraintDef,
    only: bool,
) -> Result<()> {
    let parental = !child_ids(cx, id)?.is_empty();
    let goes_on = matches!(def.kind, ConstraintDefKind::Check { .. }) && !def.no_inherit;
    if parental && goes_on && only {
        return Err(refused("constraint must be added to child tables too".to_owned()));
    }
    let table = refresh(cx, id)?;
    if table.is_partitioned() && def.no_inherit {
        return Err(refused(format!(
            "cannot add NO INHERIT constraint to partitioned table \"{}\"",
            table.name
        )));
    }
    if only {
        if let ConstraintDefKind::PrimaryKey { columns, .. } = &def.kind {
            let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
            expect_not_null(cx, &table, &columns)?;
        }
        if let ConstraintDefKind::ForeignKey { table: other, .. } = &def.kind
            && table.is_partitioned()
        {
            base::bail!(
                WRONG_OBJECT_TYPE,
                "cannot use ONLY for foreign key on partitioned table \"{}\" referencing relation \"{}\"",
                table.name,
                other.name
            );
        }
        return constraint::add_only(cx, id, def);
    }
    if let ConstraintDefKind::Check { sql, .. } = &def.kind
        && own_inherited_check(cx, &table, def, sql)?
    {
        return Ok(());
    }
    constraint::add(cx, id, def, false)?;
    if !parental || !goes_on {
        return Ok(());
    }
    let added = refresh(cx, id)?.constraints.pop();
    match added {
        Some(added) => constraint_to_children(cx, id, &added),
        None => Ok(()),
    }
}

/// A CHECK constraint that the table has from its parents becomes its own, too; false: there is none.
fn own_inherited_check(
    cx: &mut ExecContext<'_>,
    table: &Table,
    def: &ConstraintDef,
    sql: &str,
) -> Result<bool> {
    let Some(name) = &def.name else { return Ok(false) };
    let mut table = table.clone();
    let relation = table.name.clone();
    let same = |c: &&mut Constraint| c.name == *name && c.only_inherited && is_check(c, sql);
    let Some(known) = table.constraints.iter_mut().find(same) else { return Ok(false) };
    if def.no_inherit {
        base::bail!(
            INVALID_OBJECT_DEFINITION,
            "constraint \"{name}\" conflicts with inherited constraint on relation \"{relation}\""
        );
    }
    if known.unvalidated && !def.unvalidated {
        base::bail!(
            INVALID_OBJECT_DEFINITION,
            "constraint \"{name}\" conflicts with NOT VALID constraint on relation \"{relation}\""
        );
    }
    known.only_inherited = table.bound.is_some();
    put(cx, table)?;
    say(cx, format!("merging constraint \"{name}\" with inherited definition"));
    Ok(true)
}

fn constraint_to_children(cx: &mut ExecContext<'_>, id: u32, added: &Constraint) -> Result<()> {
    let ConstraintKind::Check(sql) = &added.kind else { return Ok(()) };
    for child in children(cx, id)? {
        let mut table = refresh(cx, child)?;
        let relation = table.name.clone();
        if let Some(known) = table.constraints.iter_mut().find(|c| c.name == added.name) {
            if !is_check(known, sql) {
                base::bail!(
                    DUPLICATE_OBJECT,
                    "constraint \"{}\" for relation \"{relation}\" already exists",
                    added.name
                );
            }
            if known.no_inherit {
                base::bail!(
                    INVALID_OBJECT_DEFINITION,
                    "constraint \"{}\" conflicts with non-inherited constraint on relation \"{relation}\"",
                    added.name
                );
            }
            if known.unvalidated && !added.unvalidated {
                base::bail!(
                    INVALID_OBJECT_DEFINITION,
                    "constraint \"{}\" conflicts with NOT VALID constraint on relation \"{relation}\"",
                    added.name
                );
            }
            known.inherited += 1;
            known.only_inherited |= table.bound.is_some();
            put(cx, table)?;
            say(cx, format!("merging constraint \"{}\" with inherited definition", added.name));
            continue;
        }
        let def = ConstraintDef {
            name: Some(added.name.clone()),
            kind: ConstraintDefKind::Check { sql: sql.clone(), columns: Vec::new() },
            position: 0,
            deferrable: false,
            deferred: false,
            unvalidated: added.unvalidated,
            options: Vec::new(),
            no_inherit: false,
            inherited: 1,
            only_inherited: true,
        };
        constraint::add(cx, child, &def, false)?;
        constraint_to_children(cx, child, added)?;
    }
    Ok(())
}

/// DROP CONSTRAINT.
///
/// # Errors
/// `42704`, `42P16`, `2BP01`.
pub fn drop_constraint(
    cx: &mut ExecContext<'_>,
    id: u32,
    name: &str,
    if_exists: bool,
    cascade: bool,
    only: bool,
) -> Result<()> {
    let table = refresh(cx, id)?;
    let Some(found) = table.constraints.iter().find(|c| c.name == name) else {
        return alter_table::missing_constraint(cx, &table, name, if_exists);
    };
    if found.inherited > 0 {
        return Err(refused(format!(
            "cannot drop inherited constraint \"{name}\" of relation \"{}\"",
            table.name
        )));
    }
    if only && found.is_inheritable() {
        expect_no_partitions(cx, &table, "remove constraint")?;
    }
    if let Some((_, key)) = table.foreign_keys().find(|(c, _)| c.oid == found.oid) {
        // Changes of the table that it refers to fire its triggers.
        lock(cx, key.table, LockMode::AccessExclusive)?;
    }
    let mut items = vec![Item::Constraint(id, found.oid)];
    if found.is_inheritable() {
        constraint_from_children(cx, id, name, only, &mut items)?;
    }
    depend::drop_items(cx, &items, cascade)
}

fn constraint_from_children(
    cx: &mut ExecContext<'_>,
    id: u32,
    name: &str,
    only: bool,
    items: &mut Vec<Item>,
) -> Result<()> {
    for child in children(cx, id)? {
        let mut table = refresh(cx, child)?;
        let Some(known) = table.constraints.iter_mut().find(|c| c.name == name) else { continue };
        if !only && known.inherited <= 1 && known.only_inherited {
            items.push(Item::Constraint(child, known.oid));
            constraint_from_children(cx, child, name, only, items)?;
            continue;
        }
        known.inherited = known.inherited.saturating_sub(1);
        known.only_inherited &= !only;
        put(cx, table)?;
    }
    Ok(())
}

/// VALIDATE CONSTRAINT.
///
/// # Errors
/// `42704`, `42809`, `42P16`; `23503`, `23514` when rows violate it.
pub fn validate(cx: &mut ExecContext<'_>, id: u32, name: &str, only: bool) -> Result<()> {
    let table = refresh(cx, id)?;
    let found = table.constraints.iter().find(|c| c.name == name);
    if !found.is_some_and(|c| c.is_inheritable() && c.unvalidated) || child_ids(cx, id)?.is_empty()
    {
        return constraint::validate(cx, id, name);
    }
    if only {
        return Err(refused("constraint must be validated on child tables too".to_owned()));
    }
    let mode = LockMode::ShareUpdateExclusive;
    each_under(cx, id, only, mode, |cx, id| constraint::validate(cx, id, name))
}

/// `42809` for the parents of a partition, or of a table that has some.
fn expect_no_partition(table: &Table) -> Result<()> {
    if table.bound.is_some() {
        base::bail!(WRONG_OBJECT_TYPE, "cannot change inheritance of a partition");
    }
    if table.is_partitioned() {
        base::bail!(WRONG_OBJECT_TYPE, "cannot change inheritance of partitioned table");
    }
    Ok(())
}

/// ALTER TABLE … INHERIT.
///
/// # Errors
/// `42809`, `42P07`, `42804`, `42P17`.
pub fn inherit(cx: &mut ExecContext<'_>, id: u32, parent: &Name) -> Result<()> {
    let parent = open_owned(cx, parent, LockMode::ShareUpdateExclusive)?;
    let mut parent = refresh(cx, parent.oid)?;
    let mut table = refresh(cx, id)?;
    expect_no_partition(&table)?;
    if parent.is_partitioned() {
        base::bail!(WRONG_OBJECT_TYPE, "cannot inherit from partitioned table \"{}\"", parent.name);
    }
    if parent.bound.is_some() {
        base::bail!(WRONG_OBJECT_TYPE, "cannot inherit from a partition");
    }
    if !matches!(parent.kind, TableKind::Table | TableKind::Foreign) {
        return Err(err!(
            WRONG_OBJECT_TYPE,
            "ALTER action INHERIT cannot be performed on relation \"{}\"",
            parent.name
        )
        .detail(format!(
            "This operation is not supported for {}s.",
            exec::relation_lock::kind_word(&parent)
        )));
    }
    if parent.is_temporary() && !table.is_temporary() {
        base::bail!(
            WRONG_OBJECT_TYPE,
            "cannot inherit from temporary relation \"{}\"",
            parent.name
        );
    }
    if table.is_temporary() && !parent.is_temporary() {
        return Err(base::Error::unsupported("a temporary table with a permanent parent"));
    }
    if parent.oid == id || descendants(cx, id, LockMode::AccessShare)?.contains(&parent.oid) {
        return Err(err!(DUPLICATE_TABLE, "circular inheritance not allowed")
            .detail(format!("\"{}\" is already a child of \"{}\".", parent.name, table.name)));
    }
    if table.parents.contains(&parent.oid) {
        base::bail!(
            DUPLICATE_TABLE,
            "relation \"{}\" would be inherited from more than once",
            parent.name
        );
    }
    adopt_columns(&mut table, &parent)?;
    adopt_constraints(&mut table, &parent)?;
    table.parents.push(parent.oid);
    parent.children.push(id);
    put(cx, table)?;
    put(cx, parent)
}

/// ALTER TABLE … NO INHERIT.
///
/// # Errors
/// `42P01`.
pub fn no_inherit(cx: &mut ExecContext<'_>, id: u32, parent: &Name) -> Result<()> {
    let parent = super::open_table(cx, parent, LockMode::AccessShare)?;
    let mut parent = refresh(cx, parent.oid)?;
    let mut table = refresh(cx, id)?;
    expect_no_partition(&table)?;
    if !table.parents.contains(&parent.oid) {
        base::bail!(
            UNDEFINED_TABLE,
            "relation \"{}\" is not a parent of relation \"{}\"",
            parent.name,
            table.name
        );
    }
    table.parents.retain(|p| *p != parent.oid);
    parent.children.retain(|c| *c != id);
    for column in table.columns.iter_mut().filter(|c| !c.dropped) {
        if parent.column(&column.name).is_some() {
            column.inherited = column.inherited.saturating_sub(1);
            column.only_inherited &= column.inherited > 0;
        }
    }
    for own in &mut table.constraints {
        if parent.constraints.iter().any(|c| c.is_inheritable() && c.name == own.name) {
            own.inherited = own.inherited.saturating_sub(1);
            own.only_inherited &= own.inherited > 0;
        }
    }
    put(cx, table)?;
    put(cx, parent)
}

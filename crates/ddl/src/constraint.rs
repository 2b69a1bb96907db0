//! Adding a constraint to a table, new or with rows.

use std::sync::Arc;

use base::{Error, Oid, Result, err};
use catalog::acl::privilege;
use catalog::{
    AclKind, Constraint, ConstraintKind, ForeignKey, ForeignKeyAction, Index, IndexColumn, Object,
    Table,
};
use sql::utility::{ConstraintDef, ConstraintDefKind};
use txn::LockMode;

use super::{create_index, name, refresh};
use exec::context::ExecContext;
use exec::modify::key_types;
use exec::rights;
use exec::session::quote_identifier;
use exec::spi::{query, query_of, rows_of, with_context};
use exec::table::TableHandle;

/// Adds a constraint. `fresh`: the table has no rows yet.
///
/// # Errors
/// Those of the definition; `23502`, `23503`, `23505`, `23514` when rows violate it.
pub fn add(cx: &mut ExecContext<'_>, id: u32, def: &ConstraintDef, fresh: bool) -> Result<()> {
    match add_here(cx, id, def, fresh)? {
        Some(index) => super::partition::spread_index(cx, index),
        None => Ok(()),
    }
}

/// As [`add`], without the partitions' parts of a key: until they are attached the index of a table that has
/// partitions is not valid.
///
/// # Errors
/// As [`add`].
pub fn add_only(cx: &mut ExecContext<'_>, id: u32, def: &ConstraintDef) -> Result<()> {
    let Some(index) = add_here(cx, id, def, false)? else { return Ok(()) };
    super::partition::await_parts(cx, index)
}

/// Adds one to the table itself; the index of a key that is new.
fn add_here(
    cx: &mut ExecContext<'_>,
    id: u32,
    def: &ConstraintDef,
    fresh: bool,
) -> Result<Option<u32>> {
    let table = refresh(cx, id)?;
    if let Some(name) = &def.name
        && table.constraints.iter().any(|c| c.name == *name)
    {
        base::bail!(
            DUPLICATE_OBJECT,
            "constraint \"{name}\" for relation \"{}\" already exists",
            table.name
        );
    }
    let given = def.name.as_deref();
    let indexed = matches!(
        def.kind,
        ConstraintDefKind::PrimaryKey { .. }
            | ConstraintDefKind::Unique { .. }
            | ConstraintDefKind::Exclude(_)
    );
    if indexed && !fresh {
        rights::require_creation(cx, cx.role, table.schema)?;
    }
    match &def.kind {
        ConstraintDefKind::Check { sql, columns } => check(cx, table, def, sql, columns, fresh)?,
        ConstraintDefKind::PrimaryKey { columns, include } => {
            let missing = columns.iter().find(|name| table.column(name).is_none());
            if let Some(name) = missing.filter(|_| !fresh) {
                base::bail!(
                    UNDEFINED_COLUMN,
                    "column \"{name}\" of relation \"{}\" does not exist",
                    table.name
                );
            }
            return key(cx, table, def, columns, include, true, false).map(Some);
        }
        ConstraintDefKind::Unique { columns, include, nulls_equal } => {
            return key(cx, table, def, columns, include, false, *nulls_equal).map(Some);
        }
        ConstraintDefKind::Exclude(written) => {
            return exclusion(cx, table, def, written).map(Some);
        }
        ConstraintDefKind::UsingIndex { index, primary } => {
            using_index(cx, table, given, def, index, *primary)?;
        }
        ConstraintDefKind::ForeignKey { .. } => foreign_key(cx, table, def, fresh)?,
    }
    Ok(None)
}

fn put(cx: &mut ExecContext<'_>, table: Table) -> Result<()> {
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

/// Numbers of columns by name.
///
/// # Errors
/// `42703`, `42701`.
pub fn column_numbers(table: &Table, names: &[String], what: &str) -> Result<Vec<u16>> {
    let mut numbers = Vec::with_capacity(names.len());
    for name in names {
        let (number, _) = table.column(name).ok_or_else(|| {
            err!(UNDEFINED_COLUMN, "column \"{name}\" named in key does not exist")
        })?;
        if numbers.contains(&number) {
            base::bail!(DUPLICATE_COLUMN, "column \"{name}\" appears twice in {what} constraint");
        }
        numbers.push(number);
    }
    Ok(numbers)
}

fn check(
    cx: &mut ExecContext<'_>,
    mut table: Table,
    def: &ConstraintDef,
    sql: &str,
    columns: &[String],
    fresh: bool,
) -> Result<()> {
    let name = match &def.name {
        Some(name) => name.to_owned(),
        None => {
            let one: Vec<&str> = match columns {
                [column] => vec![column],
                _ => vec![],
            };
            name::constraint_name(&table, &one, "check")
        }
    };
    if !fresh && !def.unvalidated {
        check_existing(cx, &table, &name, sql)?;
    }
    let oid = super::new_oid(cx, table.oid)?;
    let uses = exec::spi::with_context(cx, |cx| sql::print::objects_in(cx, &table, [sql]))?;
    let kind = ConstraintKind::Check(sql.to_owned());
    let mut constraint = Constraint { uses, ..Constraint::new(oid, name, kind) };
    constraint.unvalidated = def.unvalidated;
    constraint.no_inherit = def.no_inherit;
    (constraint.inherited, constraint.only_inherited) = (def.inherited, def.only_inherited);
    table.constraints.push(constraint);
    put(cx, table)
}

/// All rows that are there must satisfy a CHECK.
fn check_existing(cx: &mut ExecContext<'_>, table: &Table, name: &str, sql: &str) -> Result<()> {
    if table.is_partitioned() || table.kind == catalog::TableKind::Foreign {
        return Ok(()); // its partitions look at theirs, its server at its
    }
    let view = cx.catalog_tx.view();
    let from = rows_of(&view, table);
    let text = format!("SELECT 1 FROM {from} WHERE NOT ({sql}) LIMIT 1");
    query_of(table.owner, &text, cx, &mut |_| {
        let schema = view.schema(table.schema).map_or("", |s| s.name.as_str());
        Err(err!(
            CHECK_VIOLATION,
            "check constraint \"{name}\" of relation \"{}\" is violated by some row",
            table.name
        )
        .table(schema, &table.name)
        .constraint(name))
    })
}

/// All rows that are there must satisfy the table's CHECKs.
///
/// # Errors
/// `23514`.
pub fn check_all(cx: &mut ExecContext<'_>, table: &Table) -> Result<()> {
    for constraint in table.constraints.iter().filter(|c| !c.unvalidated) {
        if let ConstraintKind::Check(sql) = &constraint.kind {
            check_existing(cx, table, &constraint.name, sql)?;
        }
    }
    Ok(())
}

/// VALIDATE CONSTRAINT.
///
/// # Errors
/// `42704`, `42809`; `23503`, `23514` when rows violate it.
pub fn validate(cx: &mut ExecContext<'_>, id: u32, name: &str) -> Result<()> {
    let mut table = refresh(cx, id)?;
    let Some(at) = table.constraints.iter().position(|c| c.name == name) else {
        return Err(missing(&table, name));
    };
    match &table.constraints[at].kind {
        ConstraintKind::Check(_) | ConstraintKind::ForeignKey(_)
            if !table.constraints[at].unvalidated =>
        {
            return Ok(());
        }
        ConstraintKind::Check(sql) => check_existing(cx, &table, name, &sql.clone())?,
        ConstraintKind::ForeignKey(key) => {
            super::lock(cx, key.table, LockMode::RowShare)?;
            let parent = refresh(cx, key.table)?;
            check_rows(cx, &table, &parent, name, key)?;
        }
        _ => base::bail!(
            WRONG_OBJECT_TYPE,
            "constraint \"{name}\" of relation \"{}\" is not a foreign key or check constraint",
            table.name
        ),
    }
    table.constraints[at].unvalidated = false;
    put(cx, table)
}

/// ALTER CONSTRAINT: when a foreign key is checked.
///
/// # Errors
/// `42704`, `42809`.
pub fn alter(
    cx: &mut ExecContext<'_>,
    id: u32,
    name: &str,
    deferrable: bool,
    deferred: bool,
) -> Result<()> {
    let mut table = refresh(cx, id)?;
    let Some(at) = table.constraints.iter().position(|c| c.name == name) else {
        return Err(missing(&table, name));
    };
    if !matches!(table.constraints[at].kind, ConstraintKind::ForeignKey(_)) {
        base::bail!(
            WRONG_OBJECT_TYPE,
            "constraint \"{name}\" of relation \"{}\" is not a foreign key constraint",
            table.name
        );
    }
    (table.constraints[at].deferrable, table.constraints[at].deferred) = (deferrable, deferred);
    put(cx, table)
}

fn missing(table: &Table, name: &str) -> Error {
    err!(UNDEFINED_OBJECT, "constraint \"{name}\" of relation \"{}\" does not exist", table.name)
}

/// `23502` for a column that is to become NOT NULL.
pub fn contains_nulls(cx: &mut ExecContext<'_>, table: &Table, column: &str) -> Error {
    let view = cx.catalog_tx.view();
    let schema = view.schema(table.schema).map_or("", |s| s.name.as_str());
    err!(
        NOT_NULL_VIOLATION,
        "column \"{column}\" of relation \"{}\" contains null values",
        table.name
    )
    .table(schema, &table.name)
    .column(column)
}

/// No NULL may stand in a column that becomes NOT NULL.
///
/// # Errors
/// `23502`.
pub fn check_no_nulls(cx: &mut ExecContext<'_>, table: &Table, column: &str) -> Result<()> {
    let Some((number, _)) = table.column(column) else {
        return Ok(());
    };
    if table.is_partitioned() || table.kind == catalog::TableKind::Foreign {
        return Ok(());
    }
    let handle = TableHandle::open(cx.engine, &Arc::new(table.clone()), cx.format)?;
    let mut snapshot = cx.tx.latest_snapshot();
    snapshot.command = cx.tx.command() + 1;
    let mut scan = handle.heap.scan(&snapshot, None);
    let (mut values, mut found, mut failed) = (Vec::with_capacity(1), false, None);
    loop {
        sched::check_interrupts()?;
        let more = scan.next_page(cx.tx, |_, _, data| {
            values.clear();
            match types::row::decode(&handle.columns, data, &[number - 1], &mut values) {
                Ok(()) => found |= values[0].is_null(),
                Err(error) => failed = Some(error),
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if found {
            return Err(contains_nulls(cx, table, column));
        }
        if !more {
            return Ok(());
        }
    }
}

/// PRIMARY KEY and UNIQUE.
fn key(
    cx: &mut ExecContext<'_>,
    mut table: Table,
    def: &ConstraintDef,
    columns: &[String],
    include: &[String],
    primary: bool,
    nulls_equal: bool,
) -> Result<u32> {
    let what = if primary { "primary key" } else { "unique" };
    let numbers = column_numbers(&table, columns, what)?;
    if primary {
        make_primary(&mut table, &numbers)?;
    }
    let names: Vec<&str> = columns.iter().map(String::as_str).collect();
    let view = cx.catalog_tx.view();
    let name = match &def.name {
        Some(name) => name.clone(),
        None if primary => name::index_name(&view, &table, &[], "pkey"),
        None => {
            let all: Vec<&str> =
                names.iter().copied().chain(include.iter().map(String::as_str)).collect();
            name::index_name(&view, &table, &all, "key")
        }
    };
    name::reserve_relation(cx, table.schema, &name)?;
    let keys: Vec<IndexColumn> = numbers.iter().map(|n| view.column_key(&table, *n)).collect();
    let index = Index {
        name: name.clone(),
        columns: keys,
        include: include_numbers(&table, include)?,
        nulls_equal,
        unique: true,
        primary,
        deferrable: def.deferrable,
        options: def.options.clone(),
        ..Index::default()
    };
    let index = create_index::build(cx, &table, index)?;
    add_key_constraint(cx, table, name, &index, def, primary)?;
    Ok(index.oid)
}

/// EXCLUDE.
fn exclusion(
    cx: &mut ExecContext<'_>,
    table: Table,
    def: &ConstraintDef,
    written: &sql::utility::ExcludeDef,
) -> Result<u32> {
    if table.is_partitioned() {
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "exclusion constraints are not supported on partitioned tables"
        )
        .at(def.position));
    }
    let bound = with_context(cx, |context| sql::stored::exclusion(context, &table, written))?;
    let view = cx.catalog_tx.view();
    let name = match &def.name {
        Some(name) => name.clone(),
        None => {
            let mut all: Vec<&str> = bound.keys.iter().map(|key| key.name.as_str()).collect();
            all.extend(bound.include.iter().map(String::as_str));
            name::index_name(&view, &table, &all, "excl")
        }
    };
    name::reserve_relation(cx, table.schema, &name)?;
    let keys: Vec<IndexColumn> = bound
        .keys
        .iter()
        .map(|key| create_index::index_column(&view, &table, key))
        .collect::<Result<_>>()?;
    let index = Index {
        name: name.clone(),
        columns: keys,
        include: include_numbers(&table, &bound.include)?,
        predicate: bound.predicate,
        method: bound.method,
        named_method: bound.named_method,
        options: bound.options,
        exclude: bound.operators,
        deferrable: def.deferrable,
        ..Index::default()
    };
    let index = create_index::build(cx, &table, index)?;
    add_key_constraint(cx, table, name, &index, def, false)?;
    Ok(index.oid)
}

/// Numbers of INCLUDE's columns.
///
/// # Errors
/// `42703`.
pub fn include_numbers(table: &Table, names: &[String]) -> Result<Vec<u16>> {
    let number = |name: &String| {
        let found = table.column(name).map(|(n, _)| n);
        found.ok_or_else(|| err!(UNDEFINED_COLUMN, "column \"{name}\" does not exist"))
    };
    names.iter().map(number).collect()
}

/// Checks that there is no other primary key, and makes the columns NOT NULL (building the index
/// finds NULLs in them).
fn make_primary(table: &mut Table, numbers: &[u16]) -> Result<()> {
    if table.constraints.iter().any(|c| matches!(c.kind, ConstraintKind::PrimaryKey { .. })) {
        base::bail!(
            INVALID_TABLE_DEFINITION,
            "multiple primary keys for table \"{}\" are not allowed",
            table.name
        );
    }
    numbers.iter().for_each(|n| table.columns[usize::from(*n) - 1].not_null = true);
    Ok(())
}

fn add_key_constraint(
    cx: &mut ExecContext<'_>,
    mut table: Table,
    name: String,
    index: &Index,
    def: &ConstraintDef,
    primary: bool,
) -> Result<()> {
    let oid = super::new_oid(cx, table.oid)?;
    let kind = if primary {
        ConstraintKind::PrimaryKey { index: index.oid }
    } else {
        ConstraintKind::Unique { index: index.oid }
    };
    if !table.indexes.contains(&index.oid) {
        table.indexes.push(index.oid);
    }
    let mut constraint = Constraint::new(oid, name, kind);
    (constraint.deferrable, constraint.deferred) = (def.deferrable, def.deferred);
    table.constraints.push(constraint);
    put(cx, table)
}

/// PRIMARY KEY or UNIQUE USING INDEX.
fn using_index(
    cx: &mut ExecContext<'_>,
    mut table: Table,
    given: Option<&str>,
    def: &ConstraintDef,
    index_name: &str,
    primary: bool,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let found = view.indexes_of(&table).into_iter().find(|i| i.name == index_name);
    let mut index = Index::clone(
        &*found.ok_or_else(|| err!(UNDEFINED_OBJECT, "index \"{index_name}\" does not exist"))?,
    );
    if index.invalid {
        return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "index \"{index_name}\" is not valid")
            .at(def.position));
    }
    if index.columns.iter().any(|c| c.expression.is_some()) {
        return Err(err!(WRONG_OBJECT_TYPE, "index \"{index_name}\" contains expressions")
            .detail("Cannot create a primary key or unique constraint using such an index."));
    }
    if index.predicate.is_some() {
        return Err(err!(WRONG_OBJECT_TYPE, "\"{index_name}\" is a partial index")
            .detail("Cannot create a primary key or unique constraint using such an index."));
    }
    if !index.unique {
        return Err(err!(WRONG_OBJECT_TYPE, "\"{index_name}\" is not a unique index")
            .detail("Cannot create a primary key or unique constraint using such an index."));
    }
    let unusual = |c: &IndexColumn| {
        c.descending
            || c.nulls_first
            || c.class != 0
            || c.collation.as_ref().is_some_and(|own| {
                let column = table.columns.get(usize::from(c.column).wrapping_sub(1));
                column.is_some_and(|column| view.column_collation(column) != own.oid)
            })
    };
    if let Some(at) = index.columns.iter().position(unusual) {
        let at = at + 1;
        return Err(err!(
            WRONG_OBJECT_TYPE,
            "index \"{index_name}\" column number {at} does not have default sorting behavior"
        )
        .at(def.position)
        .detail("Cannot create a primary key or unique constraint using such an index."));
    }
    if primary {
        let numbers: Vec<u16> = index.columns.iter().map(|c| c.column).collect();
        make_primary(&mut table, &numbers)?;
        for column in numbers {
            let name = table.columns[usize::from(column) - 1].name.clone();
            check_no_nulls(cx, &table, &name)?;
        }
    }
    if table.is_partitioned() {
        base::bail!(
            FEATURE_NOT_SUPPORTED,
            "ALTER TABLE / ADD CONSTRAINT USING INDEX is not supported on partitioned tables"
        );
    }
    (index.primary, index.deferrable) = (primary, def.deferrable);
    if let Some(name) = given
        && name != index.name
    {
        let message = format!(
            "ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{}\" to \"{name}\"",
            index.name
        );
        let notice = Error::new(base::sqlstate::SUCCESSFUL_COMPLETION, message);
        cx.hooks.notice("NOTICE", notice);
        name::reserve_relation(cx, table.schema, name)?;
        index.name = name.to_owned();
    }
    cx.catalog_tx.put(cx.tx, Object::Index(index.clone()))?;
    add_key_constraint(cx, table, index.name.clone(), &index, def, primary)
}

/// The referred columns and the unique index over them.
fn referred(
    cx: &mut ExecContext<'_>,
    parent: &Table,
    names: &[String],
) -> Result<(Vec<u16>, Arc<Index>)> {
    let view = cx.catalog_tx.view();
    let indexes = view.indexes_of(parent);
    if names.is_empty() {
        let primary = indexes.into_iter().find(|i| i.primary).ok_or_else(|| {
            err!(
                UNDEFINED_OBJECT,
                "there is no primary key for referenced table \"{}\"",
                parent.name
            )
        })?;
        if primary.deferrable {
            return Err(deferrable_key(parent, "primary key"));
        }
        return Ok((primary.columns.iter().map(|c| c.column).collect(), primary));
    }
    let mut numbers = Vec::new();
    for name in names {
        let (number, _) = parent.column(name).ok_or_else(|| {
            err!(
                UNDEFINED_COLUMN,
                "column \"{name}\" referenced in foreign key constraint does not exist"
            )
        })?;
        numbers.push(number);
    }
    let fits = |i: &Arc<Index>| {
        i.unique
            && !i.invalid
            && i.is_plain()
            && i.columns.len() == numbers.len()
            && i.columns.iter().all(|c| numbers.contains(&c.column))
    };
    let mut fitting: Vec<Arc<Index>> = indexes.into_iter().filter(fits).collect();
    fitting.sort_by_key(|i| i.deferrable);
    let index = fitting.into_iter().next().ok_or_else(|| {
        err!(
            INVALID_FOREIGN_KEY,
            "there is no unique constraint matching given keys for referenced table \"{}\"",
            parent.name
        )
    })?;
    if index.deferrable {
        return Err(deferrable_key(parent, "unique constraint"));
    }
    Ok((numbers, index))
}

/// `55000`: what is referred to must be unique at any time.
fn deferrable_key(parent: &Table, what: &str) -> Error {
    err!(
        OBJECT_NOT_IN_PREREQUISITE_STATE,
        "cannot use a deferrable {what} for referenced table \"{}\"",
        parent.name
    )
}

/// A foreign key does not go from tables that stay to such that don't, or the other way.
fn check_persistence(table: &Table, parent: &Table) -> Result<()> {
    if table.is_temporary() == parent.is_temporary() {
        return Ok(());
    }
    let kind = if table.is_temporary() { "temporary" } else { "permanent" };
    base::bail!(
        INVALID_TABLE_DEFINITION,
        "constraints on {kind} tables may reference only {kind} tables"
    )
}

/// A role whose table refers to another needs the right to, on the table or on the columns.
fn check_reference(cx: &mut ExecContext<'_>, parent: &Table, columns: &[u16]) -> Result<()> {
    let view = cx.catalog_tx.view();
    let rights = rights::of(cx, &view);
    let on_column = |n: &u16| {
        rights.held_on_column(cx.role, parent.oid, *n).privileges & privilege::REFERENCES != 0
    };
    if !columns.is_empty() && columns.iter().all(on_column) {
        return Ok(());
    }
    let (id, name) = (parent.oid, parent.name.as_str());
    rights::require(cx, AclKind::Table, id, privilege::REFERENCES, name)
}

fn foreign_key(
    cx: &mut ExecContext<'_>,
    mut table: Table,
    def: &ConstraintDef,
    fresh: bool,
) -> Result<()> {
    let ConstraintDefKind::ForeignKey {
        columns,
        table: other,
        referenced,
        on_delete,
        on_update,
        match_full,
        set_columns,
    } = &def.kind
    else {
        return Err(Error::internal("not a foreign key"));
    };
    let parent = super::open_table(cx, other, LockMode::ShareRowExclusive)?;
    use catalog::TableKind as K;
    if matches!(parent.kind, K::View | K::Materialized | K::Foreign) {
        base::bail!(WRONG_OBJECT_TYPE, "referenced relation \"{}\" is not a table", parent.name);
    }
    if table.is_partitioned() && def.unvalidated && !fresh {
        return Err(err!(
            WRONG_OBJECT_TYPE,
            "cannot add NOT VALID foreign key on partitioned table \"{}\" referencing relation \"{}\"",
            table.name,
            parent.name
        )
        .detail("This feature is not yet supported on partitioned tables."));
    }
    check_persistence(&table, &parent)?;
    let mut numbers = Vec::new();
    for name in columns {
        let (number, _) = table.column(name).ok_or_else(|| {
            err!(
                UNDEFINED_COLUMN,
                "column \"{name}\" referenced in foreign key constraint does not exist"
            )
        })?;
        numbers.push(number);
    }
    let (targets, index) = referred(cx, &parent, referenced)?;
    check_reference(cx, &parent, &targets)?;
    if targets.len() != numbers.len() {
        base::bail!(
            INVALID_FOREIGN_KEY,
            "number of referencing and referenced columns for foreign key disagree"
        );
    }
    let names: Vec<&str> = columns.iter().map(String::as_str).collect();
    let name = match &def.name {
        Some(name) => name.clone(),
        None => name::constraint_name(&table, &names, "fkey"),
    };
    check_generated_actions(&table, &numbers, *on_delete, *on_update)?;
    let mut set_numbers = Vec::with_capacity(set_columns.len());
    for name in set_columns {
        let number = table.column(name).map(|(n, _)| n);
        match number {
            Some(n) if numbers.contains(&n) => set_numbers.push(n),
            Some(_) => base::bail!(
                INVALID_COLUMN_REFERENCE,
                "column \"{name}\" referenced in ON DELETE SET action must be part of foreign key"
            ),
            None => base::bail!(
                UNDEFINED_COLUMN,
                "column \"{name}\" referenced in foreign key constraint does not exist"
            ),
        }
    }
    check_key_types((&table, &numbers), (&parent, &targets), &name)?;
    for part in &index.columns {
        if !part.slot()?.is_deterministic() {
            return Err(no_deterministic_key());
        }
    }
    let key = ForeignKey {
        columns: numbers,
        table: parent.oid,
        referenced: targets,
        index: index.oid,
        on_delete: *on_delete,
        on_update: *on_update,
        match_full: *match_full,
        set_columns: set_numbers,
    };
    if !fresh && !def.unvalidated && !table.is_partitioned() {
        check_rows(cx, &table, &parent, &name, &key)?;
    }
    let oid = super::new_oid(cx, table.oid)?;
    let mut constraint = Constraint::new(oid, name, ConstraintKind::ForeignKey(key));
    constraint.unvalidated = def.unvalidated && !fresh;
    (constraint.deferrable, constraint.deferred) = (def.deferrable, def.deferred);
    table.constraints.push(constraint.clone());
    let id = table.oid;
    let whole = table.clone();
    if parent.oid == id {
        if !table.referenced_by.contains(&id) {
            table.referenced_by.push(id);
        }
        return put(cx, table);
    }
    put(cx, table)?;
    let mut parent = refresh(cx, parent.oid)?;
    if !parent.referenced_by.contains(&id) {
        parent.referenced_by.push(id);
        put(cx, parent)?;
    }
    super::partition::spread_foreign_key(cx, &whole, &constraint)
}

/// Columns of a foreign key can be compared.
fn check_key_types(
    (table, columns): (&Table, &[u16]),
    (parent, referenced): (&Table, &[u16]),
    name: &str,
) -> Result<()> {
    for (mine, theirs) in columns.iter().zip(referenced) {
        let a = &table.columns[usize::from(*mine) - 1];
        let b = &parent.columns[usize::from(*theirs) - 1];
        if !key_types::comparable(Oid(a.ty), Oid(b.ty)) {
            let (x, y) =
                (types::io::format_type(Oid(a.ty), -1), types::io::format_type(Oid(b.ty), -1));
            return Err(err!(
                DATATYPE_MISMATCH,
                "foreign key constraint \"{name}\" cannot be implemented"
            )
            .detail(format!(
                "Key columns \"{}\" and \"{}\" are of incompatible types: {x} and {y}.",
                a.name, b.name
            )));
        }
    }
    Ok(())
}

/// Foreign keys from and to a column hold though the column has another type now.
///
/// # Errors
/// `42804` where the types can't be compared any more, `23503`.
pub fn check_changed_column(cx: &mut ExecContext<'_>, id: u32, column: u16) -> Result<()> {
    let table = refresh(cx, id)?;
    let view = cx.catalog_tx.view();
    let mut keys = Vec::new();
    for (constraint, key) in table.foreign_keys().filter(|(_, k)| k.columns.contains(&column)) {
        keys.push((table.clone(), constraint.clone(), key.clone()));
    }
    for other in table.referenced_by.iter().filter_map(|id| view.table(*id)) {
        let to_it = other.foreign_keys().filter(|(_, k)| k.table == id);
        for (constraint, key) in to_it.filter(|(_, k)| k.referenced.contains(&column)) {
            keys.push((Table::clone(other), constraint.clone(), key.clone()));
        }
    }
    for (child, constraint, key) in keys {
        let parent = refresh(cx, key.table)?;
        let name = &constraint.name;
        check_key_types((&child, &key.columns), (&parent, &key.referenced), name)?;
        if !constraint.unvalidated && !child.is_partitioned() {
            check_rows(cx, &child, &parent, name, &key)?;
        }
    }
    Ok(())
}

/// The error for a foreign key over texts that are equal when their bytes aren't.
pub fn no_deterministic_key() -> base::Error {
    let what = "a foreign key over texts with a collation that is not deterministic";
    base::Error::unsupported(what)
}

/// Actions that would write a generated column.
fn check_generated_actions(
    table: &Table,
    columns: &[u16],
    on_delete: ForeignKeyAction,
    on_update: ForeignKeyAction,
) -> Result<()> {
    if !columns.iter().any(|n| table.columns[usize::from(*n) - 1].generated) {
        return Ok(());
    }
    use ForeignKeyAction::{Cascade, SetDefault, SetNull};
    let bad = match (on_delete, on_update) {
        (_, Cascade | SetNull | SetDefault) => "UPDATE",
        (SetNull | SetDefault, _) => "DELETE",
        _ => return Ok(()),
    };
    base::bail!(
        SYNTAX_ERROR,
        "invalid ON {bad} action for foreign key constraint containing generated column"
    )
}

/// A referring column `fk.…` as it is compared with a referred one.
fn compared(table: &Table, mine: &u16, parent: &Table, theirs: &u16) -> String {
    let mine = &table.columns[usize::from(*mine) - 1];
    let theirs = &parent.columns[usize::from(*theirs) - 1];
    let name = format!("fk.{}", quote_identifier(&mine.name));
    match key_types::cast_to(Oid(mine.ty), Oid(theirs.ty)) {
        Some(ty) => format!("{name}::{}", types::io::format_type(ty, -1)),
        None => name,
    }
}

/// All rows that are there must have a row to refer to.
///
/// # Errors
/// `23503`.
pub fn check_rows(
    cx: &mut ExecContext<'_>,
    table: &Table,
    parent: &Table,
    name: &str,
    key: &ForeignKey,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let mine =
        |n: &u16| format!("fk.{}", quote_identifier(&table.columns[usize::from(*n) - 1].name));
    let theirs =
        |n: &u16| format!("pk.{}", quote_identifier(&parent.columns[usize::from(*n) - 1].name));
    let selected: Vec<String> = key.columns.iter().map(mine).collect();
    let matched: Vec<String> = key
        .columns
        .iter()
        .zip(&key.referenced)
        .map(|(a, b)| format!("{} = {}", theirs(b), compared(table, a, parent, b)))
        .collect();
    let present: Vec<String> =
        key.columns.iter().map(|n| format!("{} IS NOT NULL", mine(n))).collect();
    let present = present.join(if key.match_full { " OR " } else { " AND " });
    let text = format!(
        "SELECT {} FROM {} fk LEFT JOIN {} pk ON {} WHERE {} IS NULL AND ({present})",
        selected.join(", "),
        rows_of(&view, table),
        rows_of(&view, parent),
        matched.join(" AND "),
        theirs(&key.referenced[0]),
    );
    // Without LIMIT: nearly always all rows are looked at, and no row is found.
    let mut missing = None;
    query(&text, cx, &mut |row| {
        missing.get_or_insert_with(|| row.to_vec());
        Ok(())
    })?;
    let Some(row) = missing else { return Ok(()) };
    if row.iter().any(types::Datum::is_null) {
        return Err(exec::modify::mixed_nulls(&view, table, name));
    }
    Err(exec::modify::missing_parent(cx, table, parent, name, (&key.columns, &row)))
}

/// No row elsewhere refers to rows of a partition that leaves its table.
///
/// # Errors
/// `23503`.
pub fn check_not_referred(cx: &mut ExecContext<'_>, parent: &Table, part: &Table) -> Result<()> {
    let view = cx.catalog_tx.view();
    let mut above = vec![parent.oid];
    above.extend(view.partition_ancestors(parent.oid));
    for id in above {
        let Some(whole) = view.table(id).cloned() else { continue };
        for other in &whole.referenced_by {
            let Some(other) = view.table(*other).filter(|t| !t.is_partitioned()).cloned() else {
                continue;
            };
            for (constraint, key) in other.foreign_keys().filter(|(_, k)| k.table == id) {
                check_no_reference(cx, (&other, constraint, key), &whole, part)?;
            }
        }
    }
    Ok(())
}

fn check_no_reference(
    cx: &mut ExecContext<'_>,
    (table, constraint, key): (&Table, &Constraint, &ForeignKey),
    whole: &Table,
    part: &Table,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let name = |t: &Table, n: &u16| quote_identifier(&t.columns[usize::from(*n) - 1].name);
    let pairs: Vec<String> = key
        .columns
        .iter()
        .zip(&key.referenced)
        .map(|(a, b)| format!("pk.{} = {}", name(whole, b), compared(table, a, whole, b)))
        .collect();
    let shown: Vec<String> = key.columns.iter().map(|n| format!("fk.{}", name(table, n))).collect();
    let text = format!(
        "SELECT {} FROM {} fk JOIN {} pk ON {} LIMIT 1",
        shown.join(", "),
        rows_of(&view, table),
        rows_of(&view, part),
        pairs.join(" AND ")
    );
    let format = cx.format.clone();
    query(&text, cx, &mut |row| {
        let values: Vec<String> = row
            .iter()
            .zip(&key.columns)
            .map(|(value, n)| {
                let ty = Oid(table.columns[usize::from(*n) - 1].ty);
                types::io::to_text(ty, value, &format).map_or(String::new(), |s| s.to_string())
            })
            .collect();
        let columns: Vec<String> = key.columns.iter().map(|n| name(table, n)).collect();
        Err(err!(
            FOREIGN_KEY_VIOLATION,
            "removing partition \"{}\" violates foreign key constraint \"{}\"",
            part.name,
            exec::modify::named_for_part(&view, table, &constraint.name, part.oid)
        )
        .detail(format!(
            "Key ({})=({}) is still referenced from table \"{}\".",
            columns.join(", "),
            values.join(", "),
            table.name
        )))
    })
}

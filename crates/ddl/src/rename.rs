//! ALTER … RENAME.

use base::{Error, Result, err};
use catalog::acl::privilege;
use catalog::snapshot::Relation;
use catalog::{AclKind, ConstraintKind, Defined, Index, Object, Schema, Sequence, Table};
use exec::context::ExecContext;
use exec::rights;
use exec::spi::with_context;
use sql::utility::Name;
use txn::LockMode;

use super::{inherit, lock, name, notice, open_owned, refresh};
use crate::column::check_column_name;
use crate::follow::follow;
use crate::mentions::mentions;

/// ALTER TABLE, INDEX, SCHEMA … RENAME [COLUMN, CONSTRAINT] TO.
pub fn run(
    kind: &str,
    table: &Name,
    part: Option<&str>,
    to: &str,
    if_exists: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    if if_exists
        && kind != "SCHEMA"
        && view.relation(cx.search_path, table.schema.as_deref(), &table.name).is_none()
    {
        let message = format!("relation \"{}\" does not exist, skipping", table.name);
        notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
        return Ok(());
    }
    match (kind, part) {
        ("TABLE" | "INDEX" | "SEQUENCE" | "VIEW" | "MATERIALIZED VIEW" | "FOREIGN TABLE", None) => {
            relation(kind, table, to, cx)
        }
        ("SCHEMA", None) => schema(&table.name, to, cx),
        ("COLUMN", Some(column)) => rename_column(table, column, to, cx),
        ("POLICY", Some(policy)) => super::policy::rename(table, policy, to, cx),
        ("RULE", Some(rule)) => super::rule::rename(table, rule, to, cx),
        ("TRIGGER", Some(trigger)) => super::trigger::rename(table, trigger, to, cx),
        ("CONSTRAINT", Some(constraint)) => rename_constraint(table, constraint, to, cx),
        _ => Err(Error::unsupported(format!("ALTER {kind} ... RENAME"))),
    }
}

fn relation(kind: &str, old: &Name, to: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    let view = cx.catalog_tx.view();
    let schema = old.schema.as_deref();
    let Some(found) = view.relation(cx.search_path, schema, &old.name) else {
        return Err(view.missing_relation(schema, &old.name));
    };
    super::relation::require_owner(cx, &found)?;
    let place = match &found {
        Relation::Table(t) => t.schema,
        Relation::Index(i) => i.schema,
        Relation::Sequence(s) => s.schema,
    };
    rights::require_creation(cx, cx.role, place)?;
    // A relation that is called an index may be anything.
    if kind != "INDEX" {
        super::relation::expect(kind, &found)?;
    }
    match found {
        Relation::Table(table) => {
            lock(cx, table.oid, LockMode::AccessExclusive)?;
            let mut table = refresh(cx, table.oid)?;
            name::reserve_relation(cx, table.schema, to)?;
            table.name = to.to_owned();
            follow(cx, &[table.oid], Object::Table(Box::new(table)))
        }
        Relation::Sequence(sequence) => {
            lock(cx, sequence.oid, LockMode::AccessExclusive)?;
            name::reserve_relation(cx, sequence.schema, to)?;
            let renamed = Sequence { name: to.to_owned(), ..Sequence::clone(&sequence) };
            cx.catalog_tx.put(cx.tx, Object::Sequence(Box::new(renamed)))
        }
        Relation::Index(index) => {
            lock(cx, index.table, LockMode::ShareUpdateExclusive)?;
            rename_index(&index, to, cx)
        }
    }
}

/// An index and the constraint that it backs have one name.
fn rename_index(index: &Index, to: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    name::reserve_relation(cx, index.schema, to)?;
    let mut table = refresh(cx, index.table)?;
    for constraint in &mut table.constraints {
        if let ConstraintKind::PrimaryKey { index: id } | ConstraintKind::Unique { index: id } =
            constraint.kind
            && id == index.oid
        {
            constraint.name = to.to_owned();
        }
    }
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))?;
    let renamed = Index { name: to.to_owned(), ..index.clone() };
    cx.catalog_tx.put(cx.tx, Object::Index(renamed))
}

fn schema(old: &str, to: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    name::reserve(cx, 0, to)?;
    let view = cx.catalog_tx.view();
    let schema = view
        .schema_named(old)
        .ok_or_else(|| err!(UNDEFINED_SCHEMA, "schema \"{old}\" does not exist"))?;
    rights::require_owner(cx, AclKind::Schema, schema.oid, "schema", old)?;
    let (database, id) = cx.database;
    rights::require(cx, AclKind::Database, id, privilege::CREATE, database)?;
    if view.schema_named(to).is_some() {
        base::bail!(DUPLICATE_SCHEMA, "schema \"{to}\" already exists");
    }
    let renamed = Schema { name: to.to_owned(), ..Schema::clone(schema) };
    let id = renamed.oid;
    let tables = view.tables().filter(|t| t.schema == id).map(|t| t.oid);
    let functions = view.functions().filter(|f| f.schema == id).map(|f| f.oid);
    let types = view.user_types().filter(|t| t.schema == id).map(|t| t.oid);
    let defined = view.defined().filter(|d| d.schema() == Some(id)).map(|d| d.oid());
    let inside: Vec<u32> = tables.chain(functions).chain(types).chain(defined).collect();
    follow(cx, &inside, Object::Schema(renamed))
}

fn rename_column(table: &Name, column: &str, to: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    let only = table.only;
    let table = open_owned(cx, table, LockMode::AccessExclusive)?;
    if table.of_type != 0 {
        base::bail!(WRONG_OBJECT_TYPE, "cannot rename column of typed table");
    }
    check_column_name(to)?;
    let must = format!("inherited column \"{column}\" must be renamed in child tables too");
    inherit::check_shared(cx, &table, column, only, "rename", &must)?;
    inherit::each(cx, table.oid, only, |cx, id| rename_one_column(cx, id, column, to))
}

pub(crate) fn rename_one_column(
    cx: &mut ExecContext<'_>,
    id: u32,
    column: &str,
    to: &str,
) -> Result<()> {
    let table = refresh(cx, id)?;
    let (number, _) = table
        .column(column)
        .ok_or_else(|| err!(UNDEFINED_COLUMN, "column \"{column}\" does not exist"))?;
    if table.column(to).is_some() {
        base::bail!(
            DUPLICATE_COLUMN,
            "column \"{to}\" of relation \"{}\" already exists",
            table.name
        );
    }
    let mut table = refresh(cx, table.oid)?;
    rename_in_expressions(cx, &mut table, number, column, to)?;
    table.columns[usize::from(number) - 1].name = to.to_owned();
    follow(cx, &[table.oid], Object::Table(Box::new(table)))
}

/// CHECK constraints, generated columns and indexes name the column anew.
fn rename_in_expressions(
    cx: &mut ExecContext<'_>,
    table: &mut Table,
    number: u16,
    from: &str,
    to: &str,
) -> Result<()> {
    let old = table.clone();
    let renamed = |cx: &mut ExecContext<'_>, sql: &mut String| {
        if mentions(sql, from) {
            *sql = with_context(cx, |c| sql::stored::renamed(c, &old, sql, number, to))?;
        }
        Ok::<(), Error>(())
    };
    for constraint in &mut table.constraints {
        if let ConstraintKind::Check(sql) = &mut constraint.kind {
            renamed(cx, sql)?;
        }
    }
    for column in table.columns.iter_mut().filter(|c| c.generated) {
        if let Some(sql) = &mut column.default {
            renamed(cx, sql)?;
        }
    }
    for trigger in &mut table.triggers {
        if let Some(sql) = trigger.when.as_mut().filter(|sql| mentions(sql, from)) {
            *sql = with_context(cx, |c| sql::trigger::renamed(c, &old, sql, number, to))?;
        }
    }
    let view = cx.catalog_tx.view();
    for index in view.indexes_of(table).iter().filter(|i| !i.is_plain()) {
        let mut index = Index::clone(index);
        for key in &mut index.columns {
            if let Some(expression) = &mut key.expression {
                renamed(cx, &mut expression.sql)?;
            }
        }
        if let Some(sql) = &mut index.predicate {
            renamed(cx, sql)?;
        }
        cx.catalog_tx.put(cx.tx, Object::Index(index))?;
    }
    for publication in view.publications().filter(|p| p.table(table.oid).is_some()) {
        let mut publication = publication.clone();
        for member in publication.tables.iter_mut().filter(|t| t.table == table.oid) {
            if let Some(sql) = &mut member.filter {
                renamed(cx, sql)?;
            }
        }
        cx.catalog_tx.put(cx.tx, Object::Defined(Box::new(Defined::Publication(publication))))?;
    }
    for about in view.extended_statistics().filter(|s| s.table == table.oid) {
        let mut about = about.clone();
        for expression in &mut about.expressions {
            renamed(cx, &mut expression.sql)?;
        }
        cx.catalog_tx.put(cx.tx, Object::Defined(Box::new(Defined::Statistics(about))))?;
    }
    Ok(())
}

fn rename_constraint(
    table: &Name,
    constraint: &str,
    to: &str,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let only = table.only;
    let table = open_owned(cx, table, LockMode::AccessExclusive)?;
    let found = table.constraints.iter().find(|c| c.name == constraint);
    let shared = found.is_some_and(|c| c.is_inheritable());
    if found.is_some_and(|c| c.inherited > 0) {
        base::bail!(
            INVALID_TABLE_DEFINITION,
            "cannot rename inherited constraint \"{constraint}\""
        );
    }
    if only && shared && !super::inherit::child_ids(cx, table.oid)?.is_empty() {
        base::bail!(
            INVALID_TABLE_DEFINITION,
            "inherited constraint \"{constraint}\" must be renamed in child tables too"
        );
    }
    let rename = |cx: &mut ExecContext<'_>, id| rename_one_constraint(cx, id, constraint, to);
    inherit::each(cx, table.oid, only || !shared, rename)
}

fn rename_one_constraint(
    cx: &mut ExecContext<'_>,
    id: u32,
    constraint: &str,
    to: &str,
) -> Result<()> {
    let mut table = refresh(cx, id)?;
    if table.constraints.iter().any(|c| c.name == to) {
        base::bail!(
            DUPLICATE_OBJECT,
            "constraint \"{to}\" for relation \"{}\" already exists",
            table.name
        );
    }
    let relation = table.name.clone();
    let found = table.constraints.iter_mut().find(|c| c.name == constraint).ok_or_else(|| {
        err!(
            UNDEFINED_OBJECT,
            "constraint \"{constraint}\" for table \"{relation}\" does not exist"
        )
    })?;
    if let ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index } = found.kind {
        let view = cx.catalog_tx.view();
        if let Some(index) = view.index(index) {
            return rename_index(index, to, cx);
        }
    }
    found.name = to.to_owned();
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

#[cfg(test)]
mod tests {
    use super::mentions;

    #[test]
    fn a_name_is_found_only_as_a_whole_word() {
        assert!(mentions("(a > 1)", "a"));
        assert!(!mentions("(ab > ba)", "a"));
        assert!(mentions("x = a", "a"));
    }
}

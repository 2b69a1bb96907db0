//! CREATE, ALTER and DROP PUBLICATION, and what becomes of publications when their tables and schemas go.
//!
//! A publication is one object of the catalog with its tables and schemas in it. Who changes it keeps others from
//! changing it until the transaction ends ([`open`]).

pub mod options;

use base::{Result, err, sqlstate};
use catalog::acl::privilege;
use catalog::{
    AclKind, Defined, Publication, PublicationSchema, PublicationTable, Snapshot, Table, TableKind,
};
use exec::context::ExecContext;
use exec::rights;
use sql::publication::{
    ObjectsChange, PublicationObjects, PublicationStatement, PublishedTable, StreamOption,
};
use sql::role::RoleRef;
use txn::LockMode;

use self::options::PublicationOptions;
use crate::defined::place::put;
use crate::item::Item;
use crate::{inherit, lock, name, notice};

/// Runs a statement about publications.
///
/// # Errors
/// `42501`, `42601`, `42710`, `42704`, `22023`, `55000` and those of the tables' look-up.
pub fn run(statement: &PublicationStatement, cx: &mut ExecContext<'_>) -> Result<()> {
    match statement {
        PublicationStatement::Create { name, all_tables, objects, options } => {
            create(name, *all_tables, objects, options, cx)
        }
        PublicationStatement::Options(name, options) => set_options(name, options, cx),
        PublicationStatement::Objects(name, change, objects) => {
            change_objects(name, *change, objects, cx)
        }
        PublicationStatement::Rename(name, to) => {
            let mut publication = open(name, cx)?;
            require_create(cx.role, cx)?;
            check_free(to, cx)?;
            to.clone_into(&mut publication.name);
            store(publication, cx)
        }
        PublicationStatement::Drop { names, if_exists } => {
            for name in names {
                if *if_exists && cx.catalog_tx.view().publication_named(name).is_none() {
                    let message = format!("publication \"{name}\" does not exist, skipping");
                    notice(cx, sqlstate::SUCCESSFUL_COMPLETION, message);
                    continue;
                }
                let publication = open(name, cx)?;
                crate::defined::remove(cx, publication.oid)?;
            }
            Ok(())
        }
    }
}

/// `42501` unless a role may create objects in the database.
fn require_create(role: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    let (database, id) = cx.database;
    let view = cx.catalog_tx.view();
    rights::of(cx, &view).require(role, AclKind::Database, id, privilege::CREATE, database)
}

fn check_free(name: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    name::reserve(cx, 0, &format!("publication {name}"))?;
    if cx.catalog_tx.view().publication_named(name).is_some() {
        base::bail!(DUPLICATE_OBJECT, "publication \"{name}\" already exists");
    }
    Ok(())
}

/// A publication that its owner changes; nobody else does until the transaction ends.
fn open(name: &str, cx: &mut ExecContext<'_>) -> Result<Publication> {
    let find = |cx: &mut ExecContext<'_>| {
        let view = cx.catalog_tx.view();
        let found = view.publication_named(name).cloned();
        found.ok_or_else(|| err!(UNDEFINED_OBJECT, "publication \"{name}\" does not exist"))
    };
    let found = find(cx)?;
    rights::require_owner(cx, AclKind::Defined, found.oid, "publication", name)?;
    name::reserve(cx, found.oid, "")?;
    find(cx)
}

fn store(publication: Publication, cx: &mut ExecContext<'_>) -> Result<()> {
    put(cx, Defined::Publication(publication))
}

fn create(
    name: &str,
    all_tables: bool,
    objects: &PublicationObjects,
    options: &[StreamOption],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    require_create(cx.role, cx)?;
    let superuser = rights::is_superuser(cx);
    if all_tables && !superuser {
        base::bail!(
            INSUFFICIENT_PRIVILEGE,
            "must be superuser to create FOR ALL TABLES publication"
        );
    }
    check_free(name, cx)?;
    let options = PublicationOptions::read(options)?;
    let [insert, update, delete, truncate] = options.actions.unwrap_or([true; 4]);
    let mut publication = Publication {
        oid: crate::new_oid(cx, 0)?,
        name: name.to_owned(),
        owner: cx.role,
        all_tables,
        insert,
        update,
        delete,
        truncate,
        via_root: options.via_root.unwrap_or(false),
        ..Publication::default()
    };
    let schemas = schemas_of(objects, cx)?;
    if !schemas.is_empty() && !superuser {
        base::bail!(
            INSUFFICIENT_PRIVILEGE,
            "must be superuser to create FOR TABLES IN SCHEMA publication"
        );
    }
    let tables = tables_of(&objects.tables, cx)?;
    add_tables(&mut publication, &tables, !schemas.is_empty(), true, cx)?;
    add_schemas(&mut publication, &schemas, true, cx)?;
    store(publication, cx)?;
    let level = cx.settings.str(base::settings::setting::WAL_LEVEL).to_owned();
    if level != "logical" {
        let warning = err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "wal_level is insufficient to publish logical changes"
        )
        .hint("Set wal_level to \"logical\" before creating subscriptions.");
        cx.hooks.notice("WARNING", warning);
    }
    Ok(())
}

fn set_options(name: &str, given: &[StreamOption], cx: &mut ExecContext<'_>) -> Result<()> {
    let mut publication = open(name, cx)?;
    let options = PublicationOptions::read(given)?;
    if options.via_root == Some(false) && !publication.all_tables {
        let view = cx.catalog_tx.view();
        for member in &publication.tables {
            let Some(table) = view.table(member.table).filter(|t| t.is_partitioned()) else {
                continue;
            };
            let what = match (&member.filter, &member.columns) {
                (Some(_), _) => "WHERE clause",
                (None, Some(_)) => "column list",
                (None, None) => continue,
            };
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "cannot set parameter \"publish_via_partition_root\" to false for publication \"{name}\""
            )
            .detail(format!(
                "The publication contains a {what} for partitioned table \"{}\", which is not allowed when \"publish_via_partition_root\" is false.",
                table.name
            )));
        }
    }
    if let Some([insert, update, delete, truncate]) = options.actions {
        publication.insert = insert;
        publication.update = update;
        publication.delete = delete;
        publication.truncate = truncate;
    }
    publication.via_root = options.via_root.unwrap_or(publication.via_root);
    store(publication, cx)
}

/// ALTER PUBLICATION … OWNER TO.
///
/// # Errors
/// `42704`, `42501`.
pub fn set_owner(name: &str, to: &RoleRef, cx: &mut ExecContext<'_>) -> Result<()> {
    let to = rights::role(cx, to)?;
    let mut publication = open(name, cx)?;
    if publication.owner == to {
        return Ok(());
    }
    rights::require_membership(cx, to)?;
    if !rights::is_superuser(cx) {
        require_create(to, cx)?;
        let view = cx.catalog_tx.view();
        let boss = rights::of(cx, &view).is_superuser(to);
        let kind = match (publication.all_tables, publication.schemas.is_empty()) {
            (true, _) => "FOR ALL TABLES",
            (false, false) => "FOR TABLES IN SCHEMA",
            (false, true) => "",
        };
        if !kind.is_empty() && !boss {
            return Err(err!(
                INSUFFICIENT_PRIVILEGE,
                "permission denied to change owner of publication \"{name}\""
            )
            .hint(format!("The owner of a {kind} publication must be a superuser.")));
        }
    }
    publication.owner = to;
    store(publication, cx)
}

fn change_objects(
    name: &str,
    change: ObjectsChange,
    objects: &PublicationObjects,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let mut publication = open(name, cx)?;
    let schemas = schemas_of(objects, cx)?;
    if change != ObjectsChange::Drop && !schemas.is_empty() && !rights::is_superuser(cx) {
        base::bail!(INSUFFICIENT_PRIVILEGE, "must be superuser to add or set schemas");
    }
    if publication.all_tables {
        let what = if objects.schemas.is_empty() { "Tables" } else { "Schemas" };
        return Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "publication \"{name}\" is defined as FOR ALL TABLES"
        )
        .detail(format!(
            "{what} cannot be added to or dropped from FOR ALL TABLES publications."
        )));
    }
    let tables = tables_of(&objects.tables, cx)?;
    let beside = !schemas.is_empty() || !publication.schemas.is_empty();
    match change {
        ObjectsChange::Add => add_tables(&mut publication, &tables, beside, false, cx)?,
        ObjectsChange::Drop => drop_tables(&mut publication, &tables, cx)?,
        ObjectsChange::Set => set_tables(&mut publication, &tables, !schemas.is_empty(), cx)?,
    }
    match change {
        ObjectsChange::Add => {
            if !schemas.is_empty() && publication.tables.iter().any(|t| t.columns.is_some()) {
                return Err(err!(
                    INVALID_PARAMETER_VALUE,
                    "cannot add schema to publication \"{name}\""
                )
                .detail("Schemas cannot be added if any tables that specify a column list are already part of the publication."));
            }
            add_schemas(&mut publication, &schemas, false, cx)?;
        }
        ObjectsChange::Drop => {
            for schema in &schemas {
                if !publication.has_schema(*schema) {
                    let view = cx.catalog_tx.view();
                    let schema = view.schema(*schema).map_or("", |s| s.name.as_str());
                    base::bail!(
                        UNDEFINED_OBJECT,
                        "tables from schema \"{schema}\" are not part of the publication"
                    );
                }
                publication.schemas.retain(|s| s.schema != *schema);
            }
        }
        ObjectsChange::Set => {
            publication.schemas.retain(|s| schemas.contains(&s.schema));
            add_schemas(&mut publication, &schemas, true, cx)?;
        }
    }
    store(publication, cx)
}

/// The schemas that a statement names, each once.
fn schemas_of(objects: &PublicationObjects, cx: &mut ExecContext<'_>) -> Result<Vec<u32>> {
    let view = cx.catalog_tx.view();
    let mut out = Vec::with_capacity(objects.schemas.len());
    for schema in &objects.schemas {
        let id = match schema {
            Some(name) => view
                .schema_named(name)
                .map(|s| s.oid)
                .or_else(|| {
                    (name == "information_schema")
                        .then_some(catalog::object::ids::INFORMATION_SCHEMA)
                })
                .ok_or_else(|| err!(UNDEFINED_SCHEMA, "schema \"{name}\" does not exist"))?,
            None => cx
                .search_path
                .iter()
                .copied()
                .find(|id| {
                    *id != catalog::object::ids::PG_CATALOG
                        && !base::Oid(*id).is_temporary()
                        && view.schema(*id).is_some()
                })
                .ok_or_else(|| {
                    err!(UNDEFINED_SCHEMA, "no schema has been selected for CURRENT_SCHEMA")
                })?,
        };
        if !out.contains(&id) {
            out.push(id);
        }
    }
    Ok(out)
}

/// A table that a statement names, or that inherits from one.
struct Named<'s> {
    table: u32,
    of: &'s PublishedTable,
    /// It is there because of another one.
    child: bool,
}

/// The tables that a statement names, locked, with those that inherit from them.
fn tables_of<'s>(named: &'s [PublishedTable], cx: &mut ExecContext<'_>) -> Result<Vec<Named<'s>>> {
    let mut out: Vec<Named<'s>> = Vec::with_capacity(named.len());
    for of in named {
        let table = table_named(of, cx)?;
        let known = out.iter().find(|n| n.table == table.oid);
        if let Some(known) = known {
            let twice = |what: &str| {
                err!(
                    DUPLICATE_OBJECT,
                    "conflicting or redundant {what} for table \"{}\"",
                    table.name
                )
            };
            if of.filter.is_some() || known.of.filter.is_some() {
                return Err(twice("WHERE clauses"));
            }
            if of.columns.is_some() || known.of.columns.is_some() {
                return Err(twice("column lists"));
            }
            continue;
        }
        let oid = table.oid;
        out.push(Named { table: oid, of, child: false });
        if !of.only && !table.is_partitioned() {
            for child in inherit::descendants(cx, oid, LockMode::ShareUpdateExclusive)? {
                if out.iter().all(|n| n.table != child) {
                    out.push(Named { table: child, of, child: true });
                }
            }
        }
    }
    Ok(out)
}

fn table_named(of: &PublishedTable, cx: &mut ExecContext<'_>) -> Result<Table> {
    let schema = of.schema.as_deref();
    let view = cx.catalog_tx.view();
    if view.relation(cx.search_path, schema, &of.name).is_none()
        && catalog::system::find(schema, &of.name).is_some()
    {
        return Err(refused(&of.name, "This operation is not supported for system tables."));
    }
    let found = view.expect_table(cx.search_path, schema, &of.name)?;
    lock(cx, found.oid, LockMode::ShareUpdateExclusive)?;
    crate::refresh(cx, found.oid)
}

fn refused(table: &str, why: &str) -> base::Error {
    err!(INVALID_PARAMETER_VALUE, "cannot add relation \"{table}\" to publication").detail(why)
}

/// `22023` for what can't be published.
fn check_kind(table: &Table) -> Result<()> {
    let why = match (table.kind, table.persistence()) {
        (TableKind::View, _) => "This operation is not supported for views.",
        (TableKind::Materialized, _) => "This operation is not supported for materialized views.",
        (TableKind::Foreign, _) => "This operation is not supported for foreign tables.",
        (TableKind::System, _) => "This operation is not supported for system tables.",
        (_, 't') => "This operation is not supported for temporary tables.",
        (_, 'u') => "This operation is not supported for unlogged tables.",
        _ => return Ok(()),
    };
    Err(refused(&table.name, why))
}

/// WHERE and lists of columns as far as the publication allows them. `beside`: it has schemas, too.
fn check_clauses(
    publication: &Publication,
    named: &[Named<'_>],
    beside: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let tables = || named.iter().filter_map(|n| view.table(n.table).map(|t| (n, t)));
    for (_, table) in tables().filter(|(n, _)| n.of.filter.is_some()) {
        if table.is_partitioned() && !publication.via_root {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "cannot use publication WHERE clause for relation \"{}\"",
                table.name
            )
            .detail("WHERE clause cannot be used for a partitioned table when publish_via_partition_root is false."));
        }
    }
    for (_, table) in tables().filter(|(n, _)| n.of.columns.is_some()) {
        let why = if beside {
            "Column lists cannot be specified in publications containing FOR TABLES IN SCHEMA elements."
        } else if table.is_partitioned() && !publication.via_root {
            "Column lists cannot be specified for partitioned tables when publish_via_partition_root is false."
        } else {
            continue;
        };
        let schema = view.schema(table.schema).map_or("", |s| s.name.as_str());
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "cannot use column list for relation \"{schema}.{}\" in publication \"{}\"",
            table.name,
            publication.name
        )
        .detail(why));
    }
    Ok(())
}

/// The numbers of the columns that a list names.
fn column_list(table: &Table, names: &[String]) -> Result<Vec<u16>> {
    let mut out = Vec::with_capacity(names.len());
    for name in names {
        if sql::logical::SYSTEM_COLUMNS.iter().any(|c| c.1 == name && c.1 != "root") {
            base::bail!(
                INVALID_COLUMN_REFERENCE,
                "cannot use system column \"{name}\" in publication column list"
            );
        }
        let Some((n, column)) = table.column(name) else {
            base::bail!(
                UNDEFINED_COLUMN,
                "column \"{name}\" of relation \"{}\" does not exist",
                table.name
            );
        };
        if column.generated {
            base::bail!(
                INVALID_COLUMN_REFERENCE,
                "cannot use generated column \"{name}\" in publication column list"
            );
        }
        if out.contains(&n) {
            base::bail!(DUPLICATE_OBJECT, "duplicate column \"{name}\" in publication column list");
        }
        out.push(n);
    }
    out.sort_unstable();
    Ok(out)
}

/// The entry of a table that a statement names.
fn entry(named: &Named<'_>, table: &Table) -> Result<PublicationTable> {
    let columns = match &named.of.columns {
        Some(names) => Some(column_list(table, names)?),
        None => None,
    };
    let filter = named.of.filter.as_ref();
    Ok(PublicationTable {
        oid: 0,
        table: table.oid,
        columns,
        filter: filter.map(|f| f.sql.clone()),
        filter_columns: filter.map_or_else(Vec::new, |f| f.columns.clone()),
    })
}

fn add_tables(
    publication: &mut Publication,
    named: &[Named<'_>],
    beside: bool,
    lenient: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    check_clauses(publication, named, beside, cx)?;
    for one in named {
        let table = crate::refresh(cx, one.table)?;
        rights::require_table_owner(cx, &table)?;
        if publication.table(table.oid).is_some() {
            if lenient || one.child {
                continue;
            }
            base::bail!(
                DUPLICATE_OBJECT,
                "relation \"{}\" is already member of publication \"{}\"",
                table.name,
                publication.name
            );
        }
        check_kind(&table)?;
        let oid = crate::new_oid(cx, 0)?;
        publication.tables.push(PublicationTable { oid, ..entry(one, &table)? });
    }
    Ok(())
}

fn drop_tables(
    publication: &mut Publication,
    named: &[Named<'_>],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    for one in named {
        let table = crate::refresh(cx, one.table)?;
        if one.of.columns.is_some() {
            base::bail!(
                SYNTAX_ERROR,
                "column list must not be specified in ALTER PUBLICATION ... DROP"
            );
        }
        let Some(member) = publication.table(table.oid) else {
            if one.child {
                continue;
            }
            base::bail!(
                UNDEFINED_OBJECT,
                "relation \"{}\" is not part of the publication",
                table.name
            );
        };
        if one.of.filter.is_some() {
            base::bail!(
                SYNTAX_ERROR,
                "cannot use a WHERE clause when removing a table from a publication"
            );
        }
        let oid = member.oid;
        publication.tables.retain(|t| t.oid != oid);
    }
    Ok(())
}

fn set_tables(
    publication: &mut Publication,
    named: &[Named<'_>],
    beside: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    check_clauses(publication, named, beside, cx)?;
    let mut kept = Vec::new();
    for one in named {
        let table = crate::refresh(cx, one.table)?;
        let wanted = entry(one, &table)?;
        if let Some(member) = publication.table(table.oid)
            && (&member.columns, &member.filter) == (&wanted.columns, &wanted.filter)
        {
            kept.push(member.oid);
        }
    }
    publication.tables.retain(|t| kept.contains(&t.oid));
    add_tables(publication, named, beside, true, cx)
}

fn add_schemas(
    publication: &mut Publication,
    schemas: &[u32],
    lenient: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    for id in schemas {
        let view = cx.catalog_tx.view();
        let name = view.schema(*id).map_or("information_schema", |s| s.name.as_str());
        if publication.has_schema(*id) {
            if lenient {
                continue;
            }
            base::bail!(
                DUPLICATE_OBJECT,
                "schema \"{name}\" is already member of publication \"{}\"",
                publication.name
            );
        }
        let why = if *id < base::Oid::FIRST_USER.0 && name != "public" {
            "This operation is not supported for system schemas."
        } else if base::Oid(*id).is_temporary() {
            "Temporary schemas cannot be replicated."
        } else {
            let oid = crate::new_oid(cx, 0)?;
            publication.schemas.push(PublicationSchema { oid, schema: *id });
            continue;
        };
        return Err(err!(INVALID_PARAMETER_VALUE, "cannot add schema \"{name}\" to publication")
            .detail(why));
    }
    Ok(())
}

/// Takes a table or schema that goes out of all publications and subscriptions.
///
/// # Errors
/// Those of locking and of the catalog.
pub fn forget(cx: &mut ExecContext<'_>, id: u32) -> Result<()> {
    let names = |p: &&Publication| p.table(id).is_some() || p.has_schema(id);
    let view = cx.catalog_tx.view();
    let all: Vec<u32> = view.publications().filter(names).map(|p| p.oid).collect();
    for publication in all {
        change(cx, publication, |p| {
            p.tables.retain(|t| t.table != id);
            p.schemas.retain(|s| s.schema != id);
        })?;
    }
    let view = cx.catalog_tx.view();
    for known in view.subscriptions().filter(|s| s.tables.iter().any(|t| t.table == id)) {
        let mut known = known.clone();
        known.tables.retain(|t| t.table != id);
        put(cx, Defined::Subscription(known))?;
    }
    Ok(())
}

/// Takes a table out of one publication, by the oid of its entry.
///
/// # Errors
/// Those of locking and of the catalog.
pub fn remove_member(cx: &mut ExecContext<'_>, publication: u32, member: u32) -> Result<()> {
    change(cx, publication, |p| p.tables.retain(|t| t.oid != member))
}

fn change(
    cx: &mut ExecContext<'_>,
    publication: u32,
    f: impl FnOnce(&mut Publication),
) -> Result<()> {
    name::reserve(cx, publication, "")?;
    let view = cx.catalog_tx.view();
    let Some(Defined::Publication(known)) = view.defined_by_oid(publication).map(|d| &**d) else {
        return Ok(());
    };
    let mut changed = known.clone();
    f(&mut changed);
    store(changed, cx)
}

/// Entries of publications whose WHERE or list of columns names a column.
pub fn column_users(view: &Snapshot, table: u32, column: u16) -> Vec<Item> {
    let mut out = Vec::new();
    for publication in view.publications() {
        let Some(member) = publication.table(table) else { continue };
        let listed = member.columns.as_ref().is_some_and(|list| list.contains(&column));
        if listed || member.filter_columns.contains(&column) {
            out.push(Item::Published(publication.oid, member.oid));
        }
    }
    out
}

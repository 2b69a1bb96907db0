//! CREATE, ALTER and DROP DATABASE.
//!
//! A new database is a copy of its template: the same objects, with the same ids, in files of their own.
//! It is made in one transaction like any other definition, so it is there as a whole when that commits,
//! and not at all before: after a crash its files are nobody's and go.
//!
//! A session that copies a database, renames or drops it closes its gate first
//! ([`catalog::OpenDatabase`]) and keeps it closed until the transaction has ended.

use std::time::Duration;

use base::faults::{self, Fault};
use base::{Error, Fork, Oid, RelId, Result, err};
use catalog::{AclKind, Closed, Database, Object};
use exec::context::ExecContext;
use exec::rights;
use sql::database::{DatabaseOptions, DatabaseStatement, NewDatabase};
use sql::role::RoleRef;
use txn::{LockMode, LockTag, LockWait};

use super::{name, notice};
use crate::column::new_files;
use crate::role::find::me;

/// The lock class of databases.
const DATABASE_CLASS: Oid = Oid(1262);
/// How long the sessions in a database may take to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// The template that need not be like the new database: it holds nothing that has an order.
const PRISTINE: &str = "template0";
const DEFAULT_TEMPLATE: &str = "template1";
/// Locales that compare bytes, as all collations here do.
pub(super) const LOCALES: [&str; 4] = ["C", "POSIX", "C.UTF-8", "C.utf8"];

/// Runs the statement.
///
/// # Errors
/// `3D000`, `42P04`, `42501`, `55006` and kin, as PostgreSQL raises them.
pub fn run(statement: &DatabaseStatement, cx: &mut ExecContext<'_>) -> Result<()> {
    match statement {
        DatabaseStatement::Create { name, options } => create(name, options, cx),
        DatabaseStatement::Drop { name, if_exists, force } => drop(name, *if_exists, *force, cx),
        DatabaseStatement::Alter { name, options } => alter(name, options, cx),
        DatabaseStatement::SetTablespace { name, tablespace } => {
            set_tablespace(name, tablespace, cx)
        }
        DatabaseStatement::Rename { from, to } => rename(from, to, cx),
        DatabaseStatement::RefreshCollation { name } => {
            owned(name, cx)?;
            notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, "version has not changed".to_owned());
            Ok(())
        }
    }
}

fn denied(message: &str) -> Error {
    err!(INSUFFICIENT_PRIVILEGE, "{message}")
}

fn missing(name: &str) -> Error {
    err!(UNDEFINED_DATABASE, "database \"{name}\" does not exist")
}

fn find(name: &str, cx: &mut ExecContext<'_>) -> Result<Database> {
    match cx.catalog_tx.view().database_named(name) {
        Some(database) => Ok(Database::clone(database)),
        None => Err(missing(name)),
    }
}

/// The database, which the session's role must own.
fn owned(name: &str, cx: &mut ExecContext<'_>) -> Result<Database> {
    let database = find(name, cx)?;
    rights::require_owner(cx, AclKind::Database, database.oid, "database", name)?;
    Ok(database)
}

fn check_free(name: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    name::reserve(cx, name::DATABASES, name)?;
    if cx.catalog_tx.view().database_named(name).is_some() {
        base::bail!(DUPLICATE_DATABASE, "database \"{name}\" already exists");
    }
    Ok(())
}

/// Keeps new sessions out of a database and waits for those inside, whom `end` may tell to go; how the
/// error calls the database: `what`.
fn close(database: &Database, what: &str, end: bool, cx: &mut ExecContext<'_>) -> Result<()> {
    let locks = &cx.tx.manager().locks;
    let tag = LockTag::Object(DATABASE_CLASS, u64::from(database.oid));
    locks.lock(cx.tx.locks(), tag, LockMode::AccessExclusive, LockWait::Block)?;
    let open = cx.engine.catalog.database(database.oid).ok_or_else(|| missing(&database.name))?;
    let gate: Closed = open.close();
    if end {
        cx.hooks.end_sessions(database.oid)?;
    }
    let own = u32::from(database.oid == cx.database.1);
    let others = gate.wait_until_empty(own, PATIENCE)?;
    let prepared = cx.tx.manager().prepared_in(base::Oid(database.oid));
    if prepared > 0 {
        let using = match (others, prepared) {
            (0, 1) => "is 1 prepared transaction".to_owned(),
            (0, _) => format!("are {prepared} prepared transactions"),
            _ => format!("are {others} other session(s) and {prepared} prepared transaction(s)"),
        };
        return Err(err!(
            OBJECT_IN_USE,
            "{what} \"{}\" is being accessed by other users",
            database.name
        )
        .detail(format!("There {using} using the database.")));
    }
    if others > 0 {
        let (is, sessions) = if others == 1 { ("is", "session") } else { ("are", "sessions") };
        return Err(err!(
            OBJECT_IN_USE,
            "{what} \"{}\" is being accessed by other users",
            database.name
        )
        .detail(format!("There {is} {others} other {sessions} using the database.")));
    }
    cx.catalog_tx.keep_closed(gate);
    Ok(())
}

fn create(name: &str, new: &NewDatabase, cx: &mut ExecContext<'_>) -> Result<()> {
    if let Some(position) = new.location {
        let warning = err!(FEATURE_NOT_SUPPORTED, "LOCATION is not supported anymore");
        let warning = warning.hint("Consider using tablespaces instead.").at(position);
        cx.hooks.notice("WARNING", warning);
    }
    let owner = match &new.owner {
        Some(owner) => rights::role(cx, &RoleRef::Named(owner.clone()))?,
        None => cx.role,
    };
    let me = me(cx);
    if !me.superuser && !me.createdb {
        return Err(denied("permission denied to create database"));
    }
    rights::require_membership(cx, owner)?;
    let template = template(new, cx)?;
    check_strategy(new)?;
    let (collate, ctype) = locales(new, &template)?;
    check_tablespace(new.tablespace.as_deref())?;
    check_free(name, cx)?;
    close(&template, "source database", false, cx)?;
    let oid = cx.engine.txn.next_oid()?;
    let options = &new.options;
    let database = Database {
        template: options.template.unwrap_or(false),
        connect: options.connect.unwrap_or(true),
        connection_limit: options.connection_limit.unwrap_or(-1),
        collate,
        ctype,
        ..Database::new(oid, name, owner)
    };
    cx.catalog_tx.put(cx.tx, Object::Database(database))?;
    copy(template.oid, oid, cx)?;
    faults::reach(Fault::CopyDatabase)
}

/// The database to copy.
fn template(new: &NewDatabase, cx: &mut ExecContext<'_>) -> Result<Database> {
    let name = new.template.as_deref().unwrap_or(DEFAULT_TEMPLATE);
    let view = cx.catalog_tx.view();
    let Some(template) = view.database_named(name) else {
        base::bail!(UNDEFINED_DATABASE, "template database \"{name}\" does not exist");
    };
    let may =
        template.template || rights::of(cx, &view).owns(cx.role, AclKind::Database, template.oid);
    if !may {
        return Err(denied(&format!("permission denied to copy database \"{name}\"")));
    }
    Ok(Database::clone(template))
}

/// Both strategies come to the same here: a copy that is logged.
fn check_strategy(new: &NewDatabase) -> Result<()> {
    match new.strategy.as_deref().map(str::to_ascii_lowercase).as_deref() {
        None | Some("wal_log" | "file_copy") => Ok(()),
        Some(_) => {
            let given = new.strategy.as_deref().unwrap_or_default();
            Err(err!(INVALID_PARAMETER_VALUE, "invalid create database strategy \"{given}\"")
                .hint("Valid strategies are \"wal_log\" and \"file_copy\"."))
        }
    }
}

/// LC_COLLATE and LC_CTYPE of the new database.
fn locales(new: &NewDatabase, template: &Database) -> Result<(String, String)> {
    if new.icu && new.icu_locale.is_none() {
        base::bail!(INVALID_PARAMETER_VALUE, "ICU locale must be specified");
    }
    if new.icu {
        return Err(Error::unsupported("a database with a locale of ICU"));
    }
    if new.icu_locale.is_some() {
        base::bail!(
            INVALID_OBJECT_DEFINITION,
            "ICU locale cannot be specified unless locale provider is ICU"
        );
    }
    let collate = new.collate.as_ref().unwrap_or(&template.collate);
    let ctype = new.ctype.as_ref().unwrap_or(&template.ctype);
    for name in [collate, ctype] {
        if !LOCALES.contains(&name.as_str()) {
            base::bail!(WRONG_OBJECT_TYPE, "invalid locale name: \"{name}\"");
        }
    }
    if template.name != PRISTINE {
        let both = [
            ("collation", "collation", collate, &template.collate),
            ("LC_CTYPE", "LC_CTYPE", ctype, &template.ctype),
        ];
        for (what, of, wanted, known) in both {
            if wanted != known {
                return Err(err!(
                    INVALID_PARAMETER_VALUE,
                    "new {what} ({wanted}) is incompatible with the {of} of the template database \
                     ({known})"
                )
                .hint(format!(
                    "Use the same {what} as in the template database, or use template0 as template."
                )));
            }
        }
    }
    Ok((collate.clone(), ctype.clone()))
}

fn check_tablespace(name: Option<&str>) -> Result<()> {
    match name {
        None | Some("pg_default") => Ok(()),
        Some("pg_global") => {
            Err(err!(INVALID_PARAMETER_VALUE, "pg_global cannot be used as default tablespace"))
        }
        Some(other) => Err(err!(UNDEFINED_OBJECT, "tablespace \"{other}\" does not exist")),
    }
}

/// Puts copies of everything in a database into another one.
fn copy(from: u32, to: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    let Some(template) = cx.engine.catalog.database(from) else {
        return Err(Error::internal("the template is gone, though its gate is closed"));
    };
    for mut object in template.current().local_objects() {
        sched::check_interrupts()?;
        let is_sequence = matches!(object, Object::Sequence(_));
        let id = object.oid();
        if let Some(rel) = object.files_mut() {
            *rel = copy_files(RelId(*rel), is_sequence, id, cx)?.0;
        }
        cx.catalog_tx.put_in(cx.tx, to, object)?;
    }
    Ok(())
}

/// Copies a relation's files; those of a sequence have its value as it is now.
fn copy_files(
    from: RelId,
    is_sequence: bool,
    relation: u32,
    cx: &mut ExecContext<'_>,
) -> Result<RelId> {
    let to = new_files(cx, relation)?;
    if is_sequence {
        let sequences = &cx.engine.catalog.sequences;
        let (value, _) = sequences.peek(from.0)?;
        sequences.create(to.0, value)?;
        return Ok(to);
    }
    let storage = &cx.engine.storage;
    storage.copy_relation(from, to)?;
    let large = catalog::overflow_rel(from);
    if storage.block_count(large, Fork::Main)? > 0 {
        storage.create_relation(catalog::overflow_rel(to))?;
        storage.copy_relation(large, catalog::overflow_rel(to))?;
    }
    Ok(to)
}

fn drop(name: &str, if_exists: bool, force: bool, cx: &mut ExecContext<'_>) -> Result<()> {
    if if_exists && cx.catalog_tx.view().database_named(name).is_none() {
        let message = format!("database \"{name}\" does not exist, skipping");
        notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
        return Ok(());
    }
    let database = owned(name, cx)?;
    if database.oid == cx.database.1 {
        base::bail!(OBJECT_IN_USE, "cannot drop the currently open database");
    }
    if database.template {
        base::bail!(WRONG_OBJECT_TYPE, "cannot drop a template database");
    }
    close(&database, "database", force, cx)?;
    let id = database.oid;
    let view = cx.catalog_tx.view();
    rights::forget(cx, id)?;
    for comment in view.comments().filter(|c| c.shared && c.object == id) {
        cx.catalog_tx.remove(cx.tx, comment.oid)?;
    }
    for defaults in view.session_defaults().filter(|d| d.database == id) {
        cx.catalog_tx.remove(cx.tx, defaults.oid)?;
    }
    cx.catalog_tx.remove(cx.tx, id)?;
    match cx.engine.catalog.database(id) {
        Some(open) => cx.catalog_tx.clear_database(cx.tx, &open),
        None => Err(missing(name)),
    }
}

fn alter(name: &str, options: &DatabaseOptions, cx: &mut ExecContext<'_>) -> Result<()> {
    let mut database = owned(name, cx)?;
    if options.connect == Some(false) && database.oid == cx.database.1 {
        base::bail!(INVALID_PARAMETER_VALUE, "cannot disallow connections for current database");
    }
    database.template = options.template.unwrap_or(database.template);
    database.connect = options.connect.unwrap_or(database.connect);
    database.connection_limit = options.connection_limit.unwrap_or(database.connection_limit);
    cx.catalog_tx.put(cx.tx, Object::Database(database))
}

/// There is one tablespace for databases.
fn set_tablespace(name: &str, tablespace: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    let database = owned(name, cx)?;
    if database.oid == cx.database.1 {
        base::bail!(OBJECT_IN_USE, "cannot change the tablespace of the currently open database");
    }
    check_tablespace(Some(tablespace))
}

fn rename(from: &str, to: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    let mut database = owned(from, cx)?;
    let me = me(cx);
    if !me.superuser && !me.createdb {
        return Err(denied("permission denied to rename database"));
    }
    check_free(to, cx)?;
    if database.oid == cx.database.1 {
        base::bail!(FEATURE_NOT_SUPPORTED, "current database cannot be renamed");
    }
    close(&database, "database", false, cx)?;
    to.clone_into(&mut database.name);
    cx.catalog_tx.put(cx.tx, Object::Database(database))
}

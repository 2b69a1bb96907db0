//! Who owns what: ALTER … OWNER TO, REASSIGN OWNED, DROP OWNED, and what keeps a role from being
//! dropped.

use std::sync::Arc;

use base::{Error, Result, err};
use catalog::acl::{self, Change, privilege};
use catalog::{Acl, AclKind, Database, DefaultAcl, Object, Schema, Snapshot, Table};
use sql::role::RoleRef;
use sql::utility::Name;
use txn::LockMode;

use super::{denied, me};
use crate::context::ExecContext;
use crate::define::depend::{self, Item};
use crate::define::{lock, refresh};
use crate::rights;

/// ALTER … OWNER TO.
pub fn owner(kind: &str, object: &Name, to: &RoleRef, cx: &mut ExecContext<'_>) -> Result<()> {
    match kind {
        "SCHEMA" => {
            let view = cx.catalog_tx.view();
            let schema = view.schema_named(&object.name).ok_or_else(|| {
                err!(UNDEFINED_SCHEMA, "schema \"{}\" does not exist", object.name)
            })?;
            let to = rights::role(cx, to)?;
            if schema.owner == to {
                return Ok(());
            }
            rights::require_owner(cx, AclKind::Schema, schema.oid, "schema", &schema.name)?;
            rights::require_membership(cx, to)?;
            let (id, name) = (cx.database.1, cx.database.0);
            rights::require(cx, AclKind::Database, id, privilege::CREATE, name)?;
            set_schema_owner(schema, to, cx)
        }
        "DATABASE" => {
            let view = cx.catalog_tx.view();
            let database = view.database_named(&object.name).ok_or_else(|| {
                err!(UNDEFINED_DATABASE, "database \"{}\" does not exist", object.name)
            })?;
            let to = rights::role(cx, to)?;
            if database.owner == to {
                return Ok(());
            }
            let (id, name) = (database.oid, database.name.as_str());
            rights::require_owner(cx, AclKind::Database, id, "database", name)?;
            rights::require_membership(cx, to)?;
            let me = me(cx);
            if !me.superuser && !me.createdb {
                return Err(denied("permission denied to change owner of database"));
            }
            set_database_owner(database, to, cx)
        }
        other => Err(Error::unsupported(format!("ALTER {other} … OWNER"))),
    }
}

/// Gives a schema to another role.
fn set_schema_owner(schema: &Schema, to: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    rights::change_owner(cx, AclKind::Schema, schema.oid, schema.owner, to)?;
    cx.catalog_tx.put(cx.tx, Object::Schema(Schema { owner: to, ..schema.clone() }))
}

fn set_database_owner(database: &Database, to: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    rights::change_owner(cx, AclKind::Database, database.oid, database.owner, to)?;
    cx.catalog_tx.put(cx.tx, Object::Database(Database { owner: to, ..database.clone() }))
}

/// Gives a table to another role. The caller has it locked.
pub fn reassign_table(mut table: Table, to: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    rights::change_owner(cx, AclKind::Table, table.oid, table.owner, to)?;
    table.owner = to;
    let id = table.oid;
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))?;
    let view = cx.catalog_tx.view();
    for sequence in view.sequences().filter(|s| s.owned_by.is_some_and(|o| o.0 == id)) {
        rights::change_owner(cx, AclKind::Sequence, sequence.oid, sequence.owner, to)?;
        let sequence = catalog::Sequence { owner: to, ..(**sequence).clone() };
        cx.catalog_tx.put(cx.tx, Object::Sequence(Box::new(sequence)))?;
    }
    Ok(())
}

/// REASSIGN OWNED.
pub fn reassign(roles: &[RoleRef], to: &RoleRef, cx: &mut ExecContext<'_>) -> Result<()> {
    let from = mine(roles, "reassign", cx)?;
    let to = rights::role(cx, to)?;
    let view = cx.catalog_tx.view();
    if !rights::of(cx, &view).has_rights_of(cx.role, to) {
        return Err(denied("permission denied to reassign objects"));
    }
    for table in view.tables().filter(|t| from.contains(&t.owner)) {
        lock(cx, table.oid, LockMode::AccessExclusive)?;
        let table = refresh(cx, table.oid)?;
        reassign_table(table, to, cx)?;
    }
    for function in view.functions().filter(|f| from.contains(&f.owner)) {
        crate::define::function::reassign(function, to, cx)?;
    }
    for schema in view.schemas().filter(|s| from.contains(&s.owner)) {
        set_schema_owner(schema, to, cx)?;
    }
    for database in view.databases().filter(|d| from.contains(&d.owner)) {
        set_database_owner(database, to, cx)?;
    }
    Ok(())
}

/// The roles, if the session has their rights.
fn mine(roles: &[RoleRef], what: &str, cx: &mut ExecContext<'_>) -> Result<Vec<u32>> {
    let mut out = Vec::with_capacity(roles.len());
    for role in roles {
        let id = rights::role(cx, role)?;
        let view = cx.catalog_tx.view();
        if id < base::Oid::FIRST_USER.0 {
            let name = view.role(id).map_or("", |r| r.name.as_str());
            base::bail!(
                DEPENDENT_OBJECTS_STILL_EXIST,
                "cannot {what} objects owned by role {name} because they are required by the \
                 database system"
            );
        }
        if !rights::of(cx, &view).has_rights_of(cx.role, id) {
            return Err(denied(&format!("permission denied to {what} objects")));
        }
        out.push(id);
    }
    Ok(out)
}

/// DROP OWNED: what the roles own in this database, and the rights that they were given.
pub fn drop(roles: &[RoleRef], cascade: bool, cx: &mut ExecContext<'_>) -> Result<()> {
    let from = mine(roles, "drop", cx)?;
    let view = cx.catalog_tx.view();
    for default in view.default_acls() {
        let mut changed = DefaultAcl::clone(default);
        changed.items.retain(|i| !from.contains(&i.grantee) || from.contains(&default.role));
        if from.contains(&default.role) {
            cx.catalog_tx.remove(cx.tx, default.oid)?;
        } else if changed.items.len() != default.items.len() {
            cx.catalog_tx.put(cx.tx, Object::DefaultAcl(changed))?;
        }
    }
    let acls: Vec<Arc<Acl>> = view.acls().cloned().collect();
    for known in acls {
        let owner = rights::of(cx, &view).owner(known.kind, known.object).unwrap_or_default();
        revoke_all(&known, owner, &from, cx)?;
    }
    let tables: Vec<Arc<Table>> =
        view.tables().filter(|t| from.contains(&t.owner)).cloned().collect();
    let mut items: Vec<Item> = tables.iter().map(|t| Item::Relation(t.oid)).collect();
    let sequences = view.sequences().filter(|s| from.contains(&s.owner));
    items.extend(sequences.map(|s| Item::Sequence(s.oid)));
    let schemas = view.schemas().filter(|s| from.contains(&s.owner));
    items.extend(schemas.map(|s| Item::Schema(s.oid)));
    let functions = view.functions().filter(|f| from.contains(&f.owner));
    items.extend(functions.map(|f| Item::Function(f.oid)));
    depend::drop_items(cx, &items, cascade)
}

/// Takes everything from these roles that they were given on an object of somebody else's.
fn revoke_all(known: &Acl, owner: u32, from: &[u32], cx: &mut ExecContext<'_>) -> Result<()> {
    if from.contains(&owner) || !known.items.iter().any(|i| from.contains(&i.grantee)) {
        return Ok(());
    }
    let mut items = known.items.clone();
    while let Some(item) = items.iter().find(|i| from.contains(&i.grantee)).copied() {
        let change = Change {
            grant: false,
            grantee: item.grantee,
            grantor: item.grantor,
            privileges: item.privileges | item.grantable,
            option: false,
            cascade: true,
        };
        items = acl::change(&items, owner, &change)?;
    }
    rights::store(cx, known.kind, known.object, known.column, items)
}

/// An object as messages name it.
fn described(view: &Snapshot, path: &[u32], kind: AclKind, object: u32, column: u16) -> String {
    let table = |id: u32| {
        let table = view.table(id)?;
        let first = view.relation(path, None, &table.name);
        let visible = matches!(first, Some(catalog::snapshot::Relation::Table(t)) if t.oid == id);
        let name = if visible {
            catalog::definition::quote_ident(&table.name)
        } else {
            acl::shown(view, table.schema, &table.name)
        };
        let column = usize::from(column).checked_sub(1).and_then(|n| table.columns.get(n));
        Some(match column {
            Some(column) => format!("column {} of table {name}", column.name),
            None => format!("table {name}"),
        })
    };
    let named = match kind {
        AclKind::Table | AclKind::Sequence => table(object),
        AclKind::Schema => view.schema(object).map(|s| format!("schema {}", s.name)),
        AclKind::Database => view.database(object).map(|d| format!("database {}", d.name)),
        AclKind::Function if view.function(object).is_some() => view
            .function(object)
            .map(|f| format!("function {}", crate::define::function::signature(view, path, f))),
        AclKind::Function => types::func::function(base::Oid(object)).map(|f| {
            let args: Vec<String> = f.args.iter().map(|a| types::io::format_type(*a, -1)).collect();
            format!("function {}({})", f.name, args.join(","))
        }),
        AclKind::Type => types::TypeIo::get(base::Oid(object)).map(|t| format!("type {}", t.name)),
        AclKind::Language | AclKind::Tablespace => None,
    };
    named.unwrap_or_else(|| {
        let system = catalog::system::by_oid(base::Oid(object));
        system.map_or_else(|| format!("object {object}"), |t| format!("table {}", t.name))
    })
}

/// `2BP01` when a role owns something, or has rights on something.
pub fn check_nothing_left(role: u32, name: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    let view = cx.catalog_tx.view();
    let path = cx.search_path;
    let mut left: Vec<(u32, u16, String)> = Vec::new();
    for table in view.tables().filter(|t| t.owner == role) {
        let what = described(&view, path, AclKind::Table, table.oid, 0);
        left.push((table.oid, 0, format!("owner of {what}")));
    }
    for schema in view.schemas().filter(|s| s.owner == role) {
        left.push((schema.oid, 0, format!("owner of schema {}", schema.name)));
    }
    for function in view.functions().filter(|f| f.owner == role) {
        let what = described(&view, path, AclKind::Function, function.oid, 0);
        left.push((function.oid, 0, format!("owner of {what}")));
    }
    for database in view.databases().filter(|d| d.owner == role) {
        left.push((database.oid, 0, format!("owner of database {}", database.name)));
    }
    let questions = rights::of(cx, &view);
    for known in view.acls().filter(|a| a.names(role)) {
        if questions.owner(known.kind, known.object) != Some(role) {
            let what = described(&view, path, known.kind, known.object, known.column);
            left.push((known.object, known.column, format!("privileges for {what}")));
        }
    }
    for default in view.default_acls() {
        let owner = default.role == role;
        if owner || default.items.iter().any(|i| i.grantee == role) {
            let how = if owner { "owner of" } else { "privileges for" };
            left.push((default.oid, 0, format!("{how} {}", described_default(&view, default))));
        }
    }
    if left.is_empty() {
        return Ok(());
    }
    left.sort();
    let lines: Vec<String> = left.into_iter().map(|(_, _, line)| line).collect();
    Err(err!(
        DEPENDENT_OBJECTS_STILL_EXIST,
        "role \"{name}\" cannot be dropped because some objects depend on it"
    )
    .detail(lines.join("\n")))
}

fn described_default(view: &Snapshot, default: &DefaultAcl) -> String {
    let what = match default.kind {
        AclKind::Table => "relations",
        AclKind::Sequence => "sequences",
        AclKind::Function => "functions",
        AclKind::Type => "types",
        _ => "schemas",
    };
    let role = view.role(default.role).map_or("", |r| r.name.as_str());
    let place = match view.schema(default.schema) {
        Some(schema) => format!(" in schema {}", schema.name),
        None => String::new(),
    };
    format!("default privileges on new {what} belonging to role {role}{place}")
}

//! Ownership: ALTER … OWNER TO, REASSIGN OWNED, DROP OWNED, and what keeps a role from being
//! dropped.

use std::sync::Arc;

use base::{Error, Result, err};
use catalog::acl::{self, Change, privilege};
use catalog::{Acl, AclKind, DefaultAcl, Object, Rights, Snapshot, UserType};
use exec::context::ExecContext;
use exec::rights;
use sql::role::RoleRef;
use sql::utility::Name;
use txn::LockMode;

use crate::depend;
use crate::describe::describe;
use crate::item::Item;
use crate::role::find::{denied, me};
use crate::role::owner::{reassign_sequence, reassign_table, set_database_owner, set_schema_owner};
use crate::{collation, lock, policy, refresh, user_types};

/// ALTER … OWNER TO.
pub fn owner(kind: &str, object: &Name, to: &RoleRef, cx: &mut ExecContext<'_>) -> Result<()> {
    // The new owner is looked up before the object: of two missing names the role's is reported.
    let owner = rights::role(cx, to)?;
    match kind {
        "SCHEMA" => {
            let view = cx.catalog_tx.view();
            let schema = view.schema_named(&object.name).ok_or_else(|| {
                err!(UNDEFINED_SCHEMA, "schema \"{}\" does not exist", object.name)
            })?;
            if schema.owner == owner {
                return Ok(());
            }
            rights::require_owner(cx, AclKind::Schema, schema.oid, "schema", &schema.name)?;
            rights::require_membership(cx, owner)?;
            let (id, name) = (cx.database.1, cx.database.0);
            rights::require(cx, AclKind::Database, id, privilege::CREATE, name)?;
            set_schema_owner(schema, owner, cx)
        }
        "DATABASE" => {
            let view = cx.catalog_tx.view();
            let database = view.database_named(&object.name).ok_or_else(|| {
                err!(UNDEFINED_DATABASE, "database \"{}\" does not exist", object.name)
            })?;
            if database.owner == owner {
                return Ok(());
            }
            let (id, name) = (database.oid, database.name.as_str());
            rights::require_owner(cx, AclKind::Database, id, "database", name)?;
            rights::require_membership(cx, owner)?;
            let me = me(cx);
            if !me.superuser && !me.createdb {
                return Err(denied("permission denied to change owner of database"));
            }
            set_database_owner(database, owner, cx)
        }
        "TYPE" | "DOMAIN" => user_types::set_owner(cx, kind, object, to),
        "COLLATION" => collation::set_owner(cx, object, to),
        "SERVER" => crate::foreign::set_owner(true, &object.name, to, cx),
        "FOREIGN DATA WRAPPER" => crate::foreign::set_owner(false, &object.name, to, cx),
        "PUBLICATION" => crate::publication::set_owner(&object.name, to, cx),
        "SUBSCRIPTION" => crate::subscription::set_owner(&object.name, to, cx),
        other => Err(Error::unsupported(format!("ALTER {other} … OWNER"))),
    }
}

/// REASSIGN OWNED.
pub fn reassign(roles: &[RoleRef], to: &RoleRef, cx: &mut ExecContext<'_>) -> Result<()> {
    let from = mine(roles, "reassign", cx)?;
    let to = rights::role(cx, to)?;
    let view = cx.catalog_tx.view();
    if !rights::of(cx, &view).has_rights_of(cx.role, to) {
        return Err(denied("permission denied to reassign objects"));
    }
    for item in owned(&view, &from) {
        give(&view, item, to, cx)?;
    }
    let makes_databases = me(cx).superuser || me(cx).createdb;
    for database in view.databases().filter(|d| from.contains(&d.owner) && d.owner != to) {
        if !makes_databases {
            return Err(denied("permission denied to change owner of database"));
        }
        set_database_owner(database, to, cx)?;
    }
    Ok(())
}

/// Everything in the database that these roles own.
fn owned(view: &Snapshot, roles: &[u32]) -> Vec<Item> {
    let has = |owner: u32| roles.contains(&owner);
    let tables = view.tables().filter(|t| has(t.owner)).map(|t| Item::Relation(t.oid));
    let sequences = view.sequences().filter(|s| has(s.owner)).map(|s| Item::Sequence(s.oid));
    let types = view.user_types().filter(|t| has(t.owner)).map(|t| Item::Type(t.oid));
    let functions = view.functions().filter(|f| has(f.owner)).map(|f| Item::Function(f.oid));
    let collations =
        view.user_collations().filter(|c| has(c.owner)).map(|c| Item::Collation(c.oid));
    // A schema for temporary objects goes with its session.
    let lasting = |s: &&Arc<catalog::Schema>| !base::Oid(s.oid).is_temporary();
    let schemas =
        view.schemas().filter(lasting).filter(|s| has(s.owner)).map(|s| Item::Schema(s.oid));
    let defined = view.defined().filter(|d| d.owner().is_some_and(has));
    let schemas = defined.map(|d| Item::Defined(d.oid())).chain(schemas);
    tables.chain(sequences).chain(types).chain(functions).chain(collations).chain(schemas).collect()
}

/// Gives an object to another role, without asking.
fn give(view: &Snapshot, item: Item, to: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    match item {
        Item::Relation(id) => {
            lock(cx, id, LockMode::AccessExclusive)?;
            let table = refresh(cx, id)?;
            reassign_table(table, to, cx)
        }
        Item::Sequence(id) => match cx.catalog_tx.view().sequence(id).filter(|s| s.owner != to) {
            Some(sequence) => reassign_sequence(sequence, to, cx),
            // It went with its table.
            None => Ok(()),
        },
        Item::Type(id) => {
            let Some(own) = view.user_type(id) else { return Ok(()) };
            rights::change_owner(cx, AclKind::Type, id, own.owner, to)?;
            let changed = UserType { owner: to, ..UserType::clone(own) };
            cx.catalog_tx.put(cx.tx, Object::Type(Box::new(changed)))
        }
        Item::Function(id) => match view.function(id) {
            Some(own) => crate::function::reassign(own, to, cx),
            None => Ok(()),
        },
        Item::Collation(id) => match view.collation(id) {
            Some(own) => collation::reassign(cx, own, to),
            None => Ok(()),
        },
        Item::Defined(id) => match view.defined_by_oid(id) {
            Some(own) => crate::defined::give(catalog::Defined::clone(own), to, cx),
            None => Ok(()),
        },
        Item::Schema(id) => match view.schema(id) {
            Some(schema) => set_schema_owner(schema, to, cx),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The roles, if the session has their rights.
fn mine(roles: &[RoleRef], what: &str, cx: &mut ExecContext<'_>) -> Result<Vec<u32>> {
    let mut out = Vec::with_capacity(roles.len());
    for role in roles {
        out.push(rights::role(cx, role)?);
    }
    let view = cx.catalog_tx.view();
    if out.iter().any(|id| !rights::of(cx, &view).has_rights_of(cx.role, *id)) {
        return Err(denied(&format!("permission denied to {what} objects")));
    }
    if let Some(id) = out.iter().find(|id| **id < base::Oid::FIRST_USER.0) {
        let name = view.role(*id).map_or("", |r| r.name.as_str());
        let what = if what == "reassign" { "reassign ownership of" } else { what };
        base::bail!(
            DEPENDENT_OBJECTS_STILL_EXIST,
            "cannot {what} objects owned by role {name} because they are required by the \
             database system"
        );
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
    policy::forget_roles(&from, cx)?;
    let items = owned(&cx.catalog_tx.view(), &from);
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
    let item = match kind {
        AclKind::Table if column != 0 => Item::Column(object, column),
        AclKind::Table if view.table(object).is_some() => Item::Relation(object),
        AclKind::Sequence => Item::Sequence(object),
        AclKind::Schema => Item::Schema(object),
        AclKind::Wrapper | AclKind::Server => Item::Defined(object),
        AclKind::Type if view.user_type(object).is_some() => Item::Type(object),
        AclKind::Function if view.function(object).is_some() => Item::Function(object),
        _ => return described_of_server(view, kind, object),
    };
    describe(view, path, item)
}

/// The same, for what DROP can't have.
fn described_of_server(view: &Snapshot, kind: AclKind, object: u32) -> String {
    let named = match kind {
        AclKind::Database => view.database(object).map(|d| format!("database {}", d.name)),
        AclKind::Language => {
            catalog::system::named::language_name(object).map(|name| format!("language {name}"))
        }
        AclKind::Function => types::func::function(base::Oid(object)).map(|f| {
            let args: Vec<String> = f.args.iter().map(|a| types::io::format_type(*a, -1)).collect();
            format!("function {}({})", f.name, args.join(","))
        }),
        AclKind::Type => {
            let known = types::TypeIo::get(base::Oid(object));
            known.map(|_| format!("type {}", types::io::format_type(base::Oid(object), -1)))
        }
        _ => None,
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
    // By oid; a column's sequence just before its table, as PostgreSQL makes them.
    let place = |id: u32| match view.sequence(id).and_then(|s| s.owned_by) {
        Some((table, _)) => (table, 0, id),
        None => (id, 1, id),
    };
    let mut left: Vec<((u32, u8, u32), u16, String)> = Vec::new();
    for item in owned(&view, &[role]) {
        left.push((place(item.oid()), 0, format!("owner of {}", describe(&view, path, item))));
    }
    for database in view.databases().filter(|d| d.owner == role) {
        left.push((place(database.oid), 0, format!("owner of database {}", database.name)));
    }
    let questions = rights::of(cx, &view);
    for known in view.acls().filter(|a| a.names(role)) {
        if questions.owner(known.kind, known.object) != Some(role) {
            let what = described(&view, path, known.kind, known.object, known.column);
            left.push((place(known.object), known.column, format!("privileges for {what}")));
        }
    }
    for trigger in view.event_triggers().filter(|t| t.owner == role) {
        left.push((place(trigger.oid), 0, format!("owner of event trigger {}", trigger.name)));
    }
    for table in view.tables() {
        for policy in table.policies.iter().filter(|p| p.roles.contains(&role)) {
            let what = describe(&view, path, Item::Policy(table.oid, policy.oid));
            left.push((place(policy.oid), 0, format!("target of {what}")));
        }
    }
    for default in view.default_acls() {
        let owner = default.role == role;
        if owner || default.items.iter().any(|i| i.grantee == role) {
            let how = if owner { "owner of" } else { "privileges for" };
            left.push((
                place(default.oid),
                0,
                format!("{how} {}", described_default(&view, default)),
            ));
        }
    }
    left.sort();
    let mut lines: Vec<String> = left.into_iter().map(|(_, _, line)| line).collect();
    lines.extend(left_elsewhere(role, cx));
    if lines.is_empty() {
        return Ok(());
    }
    Err(err!(
        DEPENDENT_OBJECTS_STILL_EXIST,
        "role \"{name}\" cannot be dropped because some objects depend on it"
    )
    .detail(lines.join("\n")))
}

/// How much a role has in each of the other databases.
fn left_elsewhere(role: u32, cx: &ExecContext<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for database in cx.engine.catalog.databases() {
        if database.oid() == cx.database.1 {
            continue;
        }
        let view = database.current();
        let questions = Rights { catalog: &view, database: database.oid() };
        let given = |acl: &&Arc<Acl>| {
            acl.names(role)
                && !acl.kind.is_shared()
                && questions.owner(acl.kind, acl.object) != Some(role)
        };
        let default = |default: &&Arc<DefaultAcl>| {
            default.role == role || default.items.iter().any(|i| i.grantee == role)
        };
        let count = owned(&view, &[role]).len()
            + view.acls().filter(given).count()
            + view.tables().flat_map(|t| &t.policies).filter(|p| p.roles.contains(&role)).count()
            + view.default_acls().filter(default).count();
        if count > 0 {
            let objects = if count == 1 { "object" } else { "objects" };
            let name = view.database(database.oid()).map_or("", |d| d.name.as_str());
            lines.push(format!("{count} {objects} in database {name}"));
        }
    }
    lines
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

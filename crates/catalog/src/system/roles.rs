//! Roles, memberships, rights, and the views over them.

use base::Result;
use types::{Datum, oids};

use super::facts;
use super::row::{Row, array, oid, row, text};
use crate::acl::{self, Rights};
use crate::object::ids::{self, INFORMATION_SCHEMA, PG_CATALOG};
use crate::object::{
    AclItem, AclKind, DefaultAcl, Id, Membership, Role, SessionDefaults, Table, TableKind,
    UserTypeKind,
};
use crate::privilege;
use crate::system::acl_rows::acl_datum;
use crate::system::class;
use crate::system::cx::SystemCx;
use crate::system::tables::tables;

type Rows = Result<Vec<Vec<Datum>>>;

/// The rights that the system's own objects began with, for pg_dump.
pub(super) fn pg_init_privs(cx: &SystemCx<'_>) -> Rows {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    let one = |class: Id, object: Id, items: &[AclItem]| {
        row(PG_CATALOG, "pg_init_privs")
            .set("objoid", oid(object))
            .set("classoid", oid(class))
            .set("objsubid", 0)
            .set("privtype", 'i')
            .set("initprivs", acl_datum(cx, items))
            .done()
    };
    let mut out = Vec::new();
    for table in tables() {
        let items = rights.first_items(AclKind::Table, table.oid.0);
        out.push(one(class::RELATION, table.oid.0, &items));
    }
    let listed = facts::functions().iter().map(|f| f.id(0));
    let own = types::func::functions().iter().map(|f| f.oid.0);
    let own = own.filter(|id| facts::functions().get(*id).is_none());
    for function in listed.chain(own).filter(|id| acl::is_restricted(*id)) {
        let items = rights.first_items(AclKind::Function, function);
        out.push(one(class::FUNCTION, function, &items));
    }
    let usage = |owner| {
        let item =
            |grantee, privileges| AclItem { grantee, grantor: owner, privileges, grantable: 0 };
        [item(owner, privilege::USAGE | privilege::CREATE), item(0, privilege::USAGE)]
    };
    out.push(one(class::SCHEMA, ids::PG_CATALOG, &usage(ids::SUPERUSER)));
    out.push(one(class::SCHEMA, ids::PUBLIC, &usage(ids::DATABASE_OWNER)));
    Ok(out)
}

fn settings_array(settings: &[(String, String)]) -> Datum {
    if settings.is_empty() {
        return Datum::Null;
    }
    let one = |(name, value): &(String, String)| text(&format!("{name}={value}"));
    array(oids::TEXT, 1, settings.iter().map(one).collect())
}

/// ALTER ROLE … SET, for all databases.
fn config(cx: &SystemCx<'_>, role: Id) -> Datum {
    let fits = |d: &&std::sync::Arc<SessionDefaults>| (d.role, d.database) == (role, 0);
    cx.catalog.session_defaults().find(fits).map_or(Datum::Null, |d| settings_array(&d.settings))
}

fn valid_until(r: &Role) -> Datum {
    r.valid_until.map_or(Datum::Null, Datum::Timestamptz)
}

fn role(table: &'static str, r: &Role) -> Row {
    row(PG_CATALOG, table)
        .set("oid", oid(r.oid))
        .set("rolname", r.name.as_str())
        .set("rolsuper", r.superuser)
        .set("rolinherit", r.inherit)
        .set("rolcreaterole", r.createrole)
        .set("rolcreatedb", r.createdb)
        .set("rolcanlogin", r.login)
        .set("rolreplication", r.replication)
        .set("rolbypassrls", r.bypassrls)
        .set("rolconnlimit", r.connection_limit)
        .set("rolvaliduntil", valid_until(r))
}

fn verifier(r: &Role) -> Datum {
    r.password.as_deref().map_or(Datum::Null, text)
}

pub(super) fn pg_authid(cx: &SystemCx<'_>) -> Rows {
    let one = |r: &Role| role("pg_authid", r).set("rolpassword", verifier(r)).done();
    Ok(cx.catalog.roles().map(|r| one(r)).collect())
}

pub(super) fn pg_roles(cx: &SystemCx<'_>) -> Rows {
    let one = |r: &Role| {
        role("pg_roles", r)
            .set("rolpassword", "********")
            .set("rolconfig", config(cx, r.oid))
            .done()
    };
    Ok(cx.catalog.roles().map(|r| one(r)).collect())
}

fn user(cx: &SystemCx<'_>, table: &'static str, r: &Role, password: Datum) -> Vec<Datum> {
    row(PG_CATALOG, table)
        .set("usename", r.name.as_str())
        .set("usesysid", oid(r.oid))
        .set("usecreatedb", r.createdb)
        .set("usesuper", r.superuser)
        .set("userepl", r.replication)
        .set("usebypassrls", r.bypassrls)
        .set("passwd", password)
        .set("valuntil", valid_until(r))
        .set("useconfig", config(cx, r.oid))
        .done()
}

pub(super) fn pg_user(cx: &SystemCx<'_>) -> Rows {
    let users = cx.catalog.roles().filter(|r| r.login);
    Ok(users.map(|r| user(cx, "pg_user", r, text("********"))).collect())
}

pub(super) fn pg_shadow(cx: &SystemCx<'_>) -> Rows {
    let users = cx.catalog.roles().filter(|r| r.login);
    Ok(users.map(|r| user(cx, "pg_shadow", r, verifier(r))).collect())
}

pub(super) fn pg_group(cx: &SystemCx<'_>) -> Rows {
    let one = |r: &Role| {
        let is_member = |m: &&std::sync::Arc<Role>| m.member_of.iter().any(|of| of.role == r.oid);
        let members = cx.catalog.roles().filter(is_member).map(|m| oid(m.oid)).collect();
        row(PG_CATALOG, "pg_group")
            .set("groname", r.name.as_str())
            .set("grosysid", oid(r.oid))
            .set("grolist", array(oids::OID, 1, members))
            .done()
    };
    Ok(cx.catalog.roles().filter(|r| !r.login).map(|r| one(r)).collect())
}

pub(super) fn pg_auth_members(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for member in cx.catalog.roles() {
        for of in &member.member_of {
            out.push(
                row(PG_CATALOG, "pg_auth_members")
                    .set("roleid", oid(of.role))
                    .set("member", oid(member.oid))
                    .set("grantor", oid(of.grantor))
                    .set("admin_option", of.admin)
                    .done(),
            );
        }
    }
    Ok(out)
}

pub(super) fn pg_db_role_setting(cx: &SystemCx<'_>) -> Rows {
    let one = |d: &SessionDefaults| {
        row(PG_CATALOG, "pg_db_role_setting")
            .set("setdatabase", oid(d.database))
            .set("setrole", oid(d.role))
            .set("setconfig", settings_array(&d.settings))
            .done()
    };
    Ok(cx.catalog.session_defaults().map(|d| one(d)).collect())
}

pub(super) fn pg_default_acl(cx: &SystemCx<'_>) -> Rows {
    let one = |d: &DefaultAcl| {
        row(PG_CATALOG, "pg_default_acl")
            .set("oid", oid(d.oid))
            .set("defaclrole", oid(d.role))
            .set("defaclnamespace", oid(d.schema))
            .set("defaclobjtype", d.kind.default_letter())
            .set("defaclacl", acl_datum(cx, &d.items))
            .done()
    };
    Ok(cx.catalog.default_acls().map(|d| one(d)).collect())
}

fn name_of(cx: &SystemCx<'_>, role: Id) -> Datum {
    match role {
        0 => text("PUBLIC"),
        id => cx.catalog.role(id).map_or(Datum::Null, |r| text(&r.name)),
    }
}

fn yes_no(yes: bool) -> &'static str {
    if yes { "YES" } else { "NO" }
}

pub(super) fn info_enabled_roles(cx: &SystemCx<'_>) -> Rows {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    let enabled = cx.catalog.roles().filter(|r| rights.has_rights_of(cx.role, r.oid));
    let one = |r: &Role| {
        row(INFORMATION_SCHEMA, "enabled_roles").set("role_name", r.name.as_str()).done()
    };
    Ok(enabled.map(|r| one(r)).collect())
}

pub(super) fn info_applicable_roles(cx: &SystemCx<'_>) -> Rows {
    memberships(cx, "applicable_roles", &|_| true)
}

pub(super) fn info_administrable_roles(cx: &SystemCx<'_>) -> Rows {
    memberships(cx, "administrable_role_authorizations", &|of| of.admin)
}

fn memberships(cx: &SystemCx<'_>, view: &'static str, shown: &dyn Fn(&Membership) -> bool) -> Rows {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    let mut out = Vec::new();
    for member in cx.catalog.roles().filter(|r| rights.has_rights_of(cx.role, r.oid)) {
        for of in member.member_of.iter().filter(|of| shown(of)) {
            out.push(
                row(INFORMATION_SCHEMA, view)
                    .set("grantee", member.name.as_str())
                    .set("role_name", name_of(cx, of.role))
                    .set("is_grantable", yes_no(of.admin))
                    .done(),
            );
        }
    }
    Ok(out)
}

/// Calls `f` with each right on a table that the session's role may know of: what its roles have or
/// granted, and with `public` what everybody has.
fn each_right(
    cx: &SystemCx<'_>,
    items: &[AclItem],
    public: bool,
    f: &mut dyn FnMut(&AclItem, &'static str, bool),
) {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    let mine = |role: Id| role != 0 && rights.has_rights_of(cx.role, role);
    for item in items {
        if !mine(item.grantee) && !mine(item.grantor) && !(public && item.grantee == 0) {
            continue;
        }
        for (word, bit, _) in privilege::ALL {
            if item.privileges & bit != 0 {
                let owner = rights.is_superuser(item.grantee) || item.grantee == item.grantor;
                f(item, word, owner || item.grantable & bit != 0);
            }
        }
    }
}

fn privilege_row(
    cx: &SystemCx<'_>,
    view: &'static str,
    t: &Table,
    item: &AclItem,
    word: &str,
    grantable: bool,
) -> Row {
    row(INFORMATION_SCHEMA, view)
        .set("grantor", name_of(cx, item.grantor))
        .set("grantee", name_of(cx, item.grantee))
        .set("table_catalog", cx.catalog.database(cx.database).map_or("", |d| &d.name))
        .set("table_schema", cx.catalog.schema(t.schema).map_or("", |s| &s.name))
        .set("table_name", t.name.as_str())
        .set("privilege_type", word)
        .set("is_grantable", yes_no(grantable))
}

fn table_rights(cx: &SystemCx<'_>, view: &'static str, public: bool) -> Rows {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    let mut out = Vec::new();
    for t in cx.catalog.tables().filter(|t| t.kind != TableKind::Materialized) {
        let items = rights.items(AclKind::Table, t.oid);
        each_right(cx, &items, public, &mut |item, word, grantable| {
            let select = yes_no(word == "SELECT");
            let row = privilege_row(cx, view, t, item, word, grantable);
            out.push(row.set("with_hierarchy", select).done());
        });
    }
    Ok(out)
}

/// The rights to call functions that somebody made.
fn routine_rights(cx: &SystemCx<'_>, view: &'static str, public: bool) -> Rows {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    let mut out = Vec::new();
    for f in cx.catalog.functions() {
        let items = rights.items(AclKind::Function, f.oid);
        let schema = cx.catalog.schema(f.schema).map_or("", |s| s.name.as_str());
        let database = cx.catalog.database(cx.database).map_or("", |d| d.name.as_str());
        each_right(cx, &items, public, &mut |item, word, grantable| {
            out.push(
                row(INFORMATION_SCHEMA, view)
                    .set("grantor", name_of(cx, item.grantor))
                    .set("grantee", name_of(cx, item.grantee))
                    .set("specific_catalog", database)
                    .set("specific_schema", schema)
                    .set("specific_name", format!("{}_{}", f.name, f.oid).as_str())
                    .set("routine_catalog", database)
                    .set("routine_schema", schema)
                    .set("routine_name", f.name.as_str())
                    .set("privilege_type", word)
                    .set("is_grantable", yes_no(grantable))
                    .done(),
            );
        });
    }
    Ok(out)
}

/// The rights to use composite types, those of tables' rows among them.
fn type_rights(cx: &SystemCx<'_>, view: &'static str, public: bool) -> Rows {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    let made = cx.catalog.user_types();
    let made = made.filter(|t| matches!(t.kind, UserTypeKind::Composite(_))).map(|t| t.oid);
    let rows = cx.catalog.tables().map(|t| t.row_type[0]).filter(|id| *id != 0);
    let mut out = Vec::new();
    for id in made.chain(rows) {
        let Some((schema, _, name)) = cx.catalog.type_place(id) else { continue };
        let schema = cx.catalog.schema(schema).map_or("", |s| s.name.as_str());
        each_right(cx, &rights.items(AclKind::Type, id), public, &mut |item, _, grantable| {
            out.push(
                row(INFORMATION_SCHEMA, view)
                    .set("grantor", name_of(cx, item.grantor))
                    .set("grantee", name_of(cx, item.grantee))
                    .set("udt_catalog", cx.catalog.database(cx.database).map_or("", |d| &d.name))
                    .set("udt_schema", schema)
                    .set("udt_name", name.as_str())
                    .set("privilege_type", "TYPE USAGE")
                    .set("is_grantable", yes_no(grantable))
                    .done(),
            );
        });
    }
    Ok(out)
}

pub(super) fn info_routine_privileges(cx: &SystemCx<'_>) -> Rows {
    routine_rights(cx, "routine_privileges", true)
}

pub(super) fn info_role_routine_grants(cx: &SystemCx<'_>) -> Rows {
    routine_rights(cx, "role_routine_grants", false)
}

pub(super) fn info_udt_privileges(cx: &SystemCx<'_>) -> Rows {
    type_rights(cx, "udt_privileges", true)
}

pub(super) fn info_role_udt_grants(cx: &SystemCx<'_>) -> Rows {
    type_rights(cx, "role_udt_grants", false)
}

pub(super) fn info_table_privileges(cx: &SystemCx<'_>) -> Rows {
    table_rights(cx, "table_privileges", true)
}

pub(super) fn info_role_table_grants(cx: &SystemCx<'_>) -> Rows {
    table_rights(cx, "role_table_grants", false)
}

pub(super) fn info_column_privileges(cx: &SystemCx<'_>) -> Rows {
    column_rights(cx, "column_privileges", true)
}

pub(super) fn info_role_column_grants(cx: &SystemCx<'_>) -> Rows {
    column_rights(cx, "role_column_grants", false)
}

fn column_rights(cx: &SystemCx<'_>, view: &'static str, public: bool) -> Rows {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    let mut out = Vec::new();
    for t in cx.catalog.tables().filter(|t| t.kind != TableKind::Materialized) {
        let whole = rights.items(AclKind::Table, t.oid);
        for (number, column) in t.live_columns() {
            let mut items: Vec<AclItem> = whole.clone();
            if let Some(own) = cx.catalog.acl(AclKind::Table, t.oid, number) {
                items.extend(&own.items);
            }
            for item in &mut items {
                item.privileges &= acl::COLUMN;
            }
            each_right(cx, &items, public, &mut |item, word, grantable| {
                let row = privilege_row(cx, view, t, item, word, grantable);
                out.push(row.set("column_name", column.name.as_str()).done());
            });
        }
    }
    Ok(out)
}

//! Foreign data: `pg_foreign_data_wrapper`, `pg_foreign_server`, `pg_foreign_table`, `pg_user_mapping`,
//! `pg_user_mappings` and the views of `information_schema` over them.
//!
//! Options of user mappings may hold passwords: who sees them is said once, in [`sees_options`].

use base::Result;
use types::{Datum, oids};

use super::row::{Row, array, oid, row};
use crate::acl::Rights;
use crate::object::ids::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::object::{AclKind, ForeignServer, ForeignWrapper, Id, Table, UserMapping};
use crate::privilege;
use crate::system::acl_rows::stored_acl;
use crate::system::cx::SystemCx;
use crate::system::names::{database_name, info_visible, role_name, schema_name};

type Rows = Result<Vec<Vec<Datum>>>;
type Options = [(String, String)];

fn rights<'a>(cx: &'a SystemCx<'_>) -> Rights<'a> {
    Rights { catalog: cx.catalog, database: cx.database }
}

/// Options as catalogs have them: `{name=value,…}`.
pub(super) fn options(list: &Options) -> Datum {
    if list.is_empty() {
        return Datum::Null;
    }
    let text = |(name, value): &(String, String)| Datum::Text(format!("{name}={value}").into());
    array(oids::TEXT, 1, list.iter().map(text).collect())
}

fn text(value: &Option<String>) -> Datum {
    value.as_deref().map_or(Datum::Null, Datum::text)
}

pub(super) fn pg_foreign_data_wrapper(cx: &SystemCx<'_>) -> Rows {
    let one = |w: &ForeignWrapper| {
        row(PG_CATALOG, "pg_foreign_data_wrapper")
            .set("oid", oid(w.oid))
            .set("fdwname", w.name.as_str())
            .set("fdwowner", oid(w.owner))
            .set("fdwhandler", oid(w.handler))
            .set("fdwvalidator", oid(w.validator))
            .set("fdwacl", stored_acl(cx, AclKind::Wrapper, w.oid, 0))
            .set("fdwoptions", options(&w.options))
            .done()
    };
    Ok(cx.catalog.wrappers().map(one).collect())
}

pub(super) fn pg_foreign_server(cx: &SystemCx<'_>) -> Rows {
    let one = |s: &ForeignServer| {
        row(PG_CATALOG, "pg_foreign_server")
            .set("oid", oid(s.oid))
            .set("srvname", s.name.as_str())
            .set("srvowner", oid(s.owner))
            .set("srvfdw", oid(s.wrapper))
            .set("srvtype", text(&s.kind))
            .set("srvversion", text(&s.version))
            .set("srvacl", stored_acl(cx, AclKind::Server, s.oid, 0))
            .set("srvoptions", options(&s.options))
            .done()
    };
    Ok(cx.catalog.foreign_servers().map(one).collect())
}

pub(super) fn pg_foreign_table(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for table in cx.catalog.foreign_tables() {
        let Some(foreign) = &table.foreign else { continue };
        out.push(
            row(PG_CATALOG, "pg_foreign_table")
                .set("ftrelid", oid(table.oid))
                .set("ftserver", oid(foreign.server))
                .set("ftoptions", options(&foreign.options))
                .done(),
        );
    }
    Ok(out)
}

pub(super) fn pg_user_mapping(cx: &SystemCx<'_>) -> Rows {
    let one = |m: &UserMapping| {
        row(PG_CATALOG, "pg_user_mapping")
            .set("oid", oid(m.oid))
            .set("umuser", oid(m.role))
            .set("umserver", oid(m.server))
            .set("umoptions", options(&m.options))
            .done()
    };
    Ok(cx.catalog.user_mappings().map(one).collect())
}

/// Whether the session's role sees a mapping's options: a superuser, the mapping's own role with `own` (rights on
/// the server that the view asks for), the server's owner for PUBLIC's.
fn sees_options(
    cx: &SystemCx<'_>,
    mapping: &UserMapping,
    server: &ForeignServer,
    own: bool,
) -> bool {
    let rights = rights(cx);
    match mapping.role {
        _ if rights.is_superuser(cx.role) => true,
        0 => rights.has_rights_of(cx.role, server.owner),
        role => role == cx.role && own,
    }
}

fn uses_server(cx: &SystemCx<'_>, server: &ForeignServer) -> bool {
    let rights = rights(cx);
    rights.has_rights_of(cx.role, server.owner)
        || rights.may(cx.role, AclKind::Server, server.oid, privilege::USAGE)
}

fn uses_wrapper(cx: &SystemCx<'_>, wrapper: &ForeignWrapper) -> bool {
    let rights = rights(cx);
    rights.has_rights_of(cx.role, wrapper.owner)
        || rights.may(cx.role, AclKind::Wrapper, wrapper.oid, privilege::USAGE)
}

pub(super) fn pg_user_mappings(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for m in cx.catalog.user_mappings() {
        let Some(server) = cx.catalog.foreign_server(m.server) else { continue };
        let name = match m.role {
            0 => Datum::text("public"),
            id => role_name(cx, id),
        };
        let shown = sees_options(cx, m, server, uses_server(cx, server));
        out.push(
            row(PG_CATALOG, "pg_user_mappings")
                .set("umid", oid(m.oid))
                .set("srvid", oid(server.oid))
                .set("srvname", server.name.as_str())
                .set("umuser", oid(m.role))
                .set("usename", name)
                .set("umoptions", if shown { options(&m.options) } else { Datum::Null })
                .done(),
        );
    }
    Ok(out)
}

fn wrappers<'a>(cx: &'a SystemCx<'_>) -> impl Iterator<Item = &'a ForeignWrapper> {
    cx.catalog.wrappers().filter(|w| uses_wrapper(cx, w))
}

fn servers<'a>(cx: &'a SystemCx<'_>) -> impl Iterator<Item = &'a ForeignServer> {
    cx.catalog.foreign_servers().filter(|s| uses_server(cx, s))
}

/// Foreign tables that the session's role has some right on.
fn tables<'a>(cx: &'a SystemCx<'_>) -> impl Iterator<Item = (&'a Table, &'a ForeignServer)> {
    let rights = rights(cx);
    let any = privilege::SELECT | privilege::INSERT | privilege::UPDATE | privilege::DELETE;
    info_visible(cx).filter_map(move |t| {
        let server = cx.catalog.foreign_server(t.foreign.as_ref()?.server)?;
        let may = rights.has_rights_of(cx.role, t.owner)
            || rights.may(cx.role, AclKind::Table, t.oid, any);
        may.then_some((&**t, server))
    })
}

fn of_wrapper(cx: &SystemCx<'_>, view: &'static str, w: &ForeignWrapper) -> Row {
    row(INFORMATION_SCHEMA, view)
        .set("foreign_data_wrapper_catalog", database_name(cx))
        .set("foreign_data_wrapper_name", w.name.as_str())
}

fn of_server(cx: &SystemCx<'_>, view: &'static str, s: &ForeignServer) -> Row {
    row(INFORMATION_SCHEMA, view)
        .set("foreign_server_catalog", database_name(cx))
        .set("foreign_server_name", s.name.as_str())
}

fn of_table(cx: &SystemCx<'_>, view: &'static str, t: &Table) -> Row {
    row(INFORMATION_SCHEMA, view)
        .set("foreign_table_catalog", database_name(cx))
        .set("foreign_table_schema", schema_name(cx, t.schema))
        .set("foreign_table_name", t.name.as_str())
}

/// Rows with `option_name` and `option_value`.
fn each_option(out: &mut Vec<Vec<Datum>>, list: &Options, shown: bool, start: impl Fn() -> Row) {
    for (name, value) in list {
        let value = if shown { Datum::text(value) } else { Datum::Null };
        out.push(start().set("option_name", name.as_str()).set("option_value", value).done());
    }
}

pub(super) fn info_wrappers(cx: &SystemCx<'_>) -> Rows {
    let one = |w: &ForeignWrapper| {
        of_wrapper(cx, "foreign_data_wrappers", w)
            .set("authorization_identifier", role_name(cx, w.owner))
            .set("foreign_data_wrapper_language", "c")
            .done()
    };
    Ok(wrappers(cx).map(one).collect())
}

pub(super) fn info_wrapper_options(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for w in wrappers(cx) {
        each_option(&mut out, &w.options, true, || {
            of_wrapper(cx, "foreign_data_wrapper_options", w)
        });
    }
    Ok(out)
}

pub(super) fn info_servers(cx: &SystemCx<'_>) -> Rows {
    let one = |s: &ForeignServer| {
        let wrapper = cx.catalog.wrapper(s.wrapper).map_or("", |w| w.name.as_str());
        of_server(cx, "foreign_servers", s)
            .set("foreign_data_wrapper_catalog", database_name(cx))
            .set("foreign_data_wrapper_name", wrapper)
            .set("foreign_server_type", text(&s.kind))
            .set("foreign_server_version", text(&s.version))
            .set("authorization_identifier", role_name(cx, s.owner))
            .done()
    };
    Ok(servers(cx).map(one).collect())
}

pub(super) fn info_server_options(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for s in servers(cx) {
        each_option(&mut out, &s.options, true, || of_server(cx, "foreign_server_options", s));
    }
    Ok(out)
}

pub(super) fn info_tables(cx: &SystemCx<'_>) -> Rows {
    let one = |(t, s): (&Table, &ForeignServer)| {
        of_table(cx, "foreign_tables", t)
            .set("foreign_server_catalog", database_name(cx))
            .set("foreign_server_name", s.name.as_str())
            .done()
    };
    Ok(tables(cx).map(one).collect())
}

pub(super) fn info_table_options(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for (t, _) in tables(cx) {
        let list = t.foreign.as_ref().map_or(&[][..], |f| &f.options);
        each_option(&mut out, list, true, || of_table(cx, "foreign_table_options", t));
    }
    Ok(out)
}

pub(super) fn info_column_options(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for (t, _) in tables(cx) {
        for (_, column) in t.live_columns() {
            each_option(&mut out, &column.foreign_options, true, || {
                row(INFORMATION_SCHEMA, "column_options")
                    .set("table_catalog", database_name(cx))
                    .set("table_schema", schema_name(cx, t.schema))
                    .set("table_name", t.name.as_str())
                    .set("column_name", column.name.as_str())
            });
        }
    }
    Ok(out)
}

/// Mappings on servers that the session's role may use.
fn mappings<'a>(
    cx: &'a SystemCx<'_>,
) -> impl Iterator<Item = (&'a UserMapping, &'a ForeignServer)> {
    cx.catalog.user_mappings().filter_map(|m| {
        let server = cx.catalog.foreign_server(m.server)?;
        uses_server(cx, server).then_some((m, server))
    })
}

fn of_mapping(cx: &SystemCx<'_>, view: &'static str, m: &UserMapping, s: &ForeignServer) -> Row {
    let name = match m.role {
        0 => Datum::text("PUBLIC"),
        id => role_name(cx, id),
    };
    of_server(cx, view, s).set("authorization_identifier", name)
}

pub(super) fn info_mappings(cx: &SystemCx<'_>) -> Rows {
    Ok(mappings(cx).map(|(m, s)| of_mapping(cx, "user_mappings", m, s).done()).collect())
}

pub(super) fn info_mapping_options(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for (m, s) in mappings(cx) {
        let shown = sees_options(cx, m, s, true);
        each_option(&mut out, &m.options, shown, || of_mapping(cx, "user_mapping_options", m, s));
    }
    Ok(out)
}

/// Rights on wrappers and servers as rows of `usage_privileges` and `role_usage_grants`, which leaves PUBLIC's out.
pub(super) fn usage(cx: &SystemCx<'_>, view: &'static str, public: bool) -> Vec<Vec<Datum>> {
    let wrappers = cx
        .catalog
        .wrappers()
        .map(|w| (AclKind::Wrapper, w.oid, &w.name, w.owner, "FOREIGN DATA WRAPPER"));
    let servers = cx
        .catalog
        .foreign_servers()
        .map(|s| (AclKind::Server, s.oid, &s.name, s.owner, "FOREIGN SERVER"));
    let rights = rights(cx);
    let mine = |role: Id| role != 0 && rights.has_rights_of(cx.role, role);
    let mut out = Vec::new();
    for (kind, id, name, owner, word) in wrappers.chain(servers) {
        for item in rights.items(kind, id) {
            let known = mine(item.grantee) || mine(item.grantor) || item.grantee == 0;
            if item.privileges & privilege::USAGE == 0
                || !known
                || !public && !mine(item.grantee) && !mine(item.grantor)
            {
                continue;
            }
            let is_owner = item.grantee != 0 && rights.has_rights_of(item.grantee, owner);
            let grantable = is_owner || item.grantable & privilege::USAGE != 0;
            let grantee = match item.grantee {
                0 => Datum::text("PUBLIC"),
                id => role_name(cx, id),
            };
            out.push(
                row(INFORMATION_SCHEMA, view)
                    .set("grantor", role_name(cx, item.grantor))
                    .set("grantee", grantee)
                    .set("object_catalog", database_name(cx))
                    .set("object_schema", "")
                    .set("object_name", name.as_str())
                    .set("object_type", word)
                    .set("privilege_type", "USAGE")
                    .set("is_grantable", if grantable { "YES" } else { "NO" })
                    .done(),
            );
        }
    }
    out
}

pub(super) fn role_usage_grants(cx: &SystemCx<'_>) -> Rows {
    Ok(usage(cx, "role_usage_grants", false))
}

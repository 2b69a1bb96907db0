//! `information_schema`: constraints, what uses what, and what the database is.

use base::Result;
use types::Datum;

use super::row::{Row, oid, row};
use crate::acl::Rights;
use crate::object::ids::INFORMATION_SCHEMA;
use crate::object::{
    AclKind, Constraint, ConstraintKind, ForeignKeyAction, Id, Table, TableKind, UserTypeKind,
};
use crate::privilege;
use crate::system::cx::SystemCx;
use crate::system::names::{database_name, info, info_visible, role_name, schema_name};

type Rows = Result<Vec<Vec<Datum>>>;

fn yes_no(yes: bool) -> &'static str {
    if yes { "YES" } else { "NO" }
}

/// Whether the session's role may know of a table's constraints: the owner, and who may change rows.
fn may_see(cx: &SystemCx<'_>, t: &Table) -> bool {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    let change = privilege::ALL.iter().fold(0, |all, (_, bit, _)| all | bit) & !privilege::SELECT;
    rights.has_rights_of(cx.role, t.owner) || rights.may(cx.role, AclKind::Table, t.oid, change)
}

/// Tables with constraints that the session may know of.
fn tables<'a>(cx: &'a SystemCx<'_>) -> impl Iterator<Item = &'a std::sync::Arc<Table>> {
    info_visible(cx).filter(|t| t.kind == TableKind::Table && may_see(cx, t))
}

/// The name of NOT NULL here, where it is a constraint of its own.
fn not_null_name(t: &Table, column: u16) -> String {
    format!("{}_{}_{column}_not_null", t.schema, t.oid)
}

fn constraint(cx: &SystemCx<'_>, view: &'static str, t: &Table, name: &str) -> Row {
    row(INFORMATION_SCHEMA, view)
        .set("constraint_catalog", database_name(cx))
        .set("constraint_schema", schema_name(cx, t.schema))
        .set("constraint_name", name)
}

fn constraint_of_table(cx: &SystemCx<'_>, view: &'static str, t: &Table, name: &str) -> Row {
    info(cx, view, "table", t.schema, &t.name)
        .set("constraint_catalog", database_name(cx))
        .set("constraint_schema", schema_name(cx, t.schema))
        .set("constraint_name", name)
}

pub(super) fn table_constraints(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    let one = |t: &Table, name: &str, kind: &str| {
        constraint_of_table(cx, "table_constraints", t, name)
            .set("constraint_type", kind)
            .set("enforced", "YES")
    };
    for t in tables(cx) {
        let excludes = |c: &&crate::object::Constraint| match c.kind {
            ConstraintKind::Unique { index } => {
                cx.catalog.index(index).is_some_and(|i| !i.exclude.is_empty())
            }
            _ => false,
        };
        for c in t.constraints.iter().filter(|c| !excludes(c)) {
            let kind = match c.kind {
                ConstraintKind::Check(_) => "CHECK",
                ConstraintKind::PrimaryKey { .. } => "PRIMARY KEY",
                ConstraintKind::Unique { .. } => "UNIQUE",
                ConstraintKind::ForeignKey(_) => "FOREIGN KEY",
            };
            let mut row = one(t, &c.name, kind)
                .set("is_deferrable", yes_no(c.deferrable))
                .set("initially_deferred", yes_no(c.deferred));
            if let ConstraintKind::Unique { index } = c.kind {
                let equal = cx.catalog.index(index).is_some_and(|i| i.nulls_equal);
                row = row.set("nulls_distinct", yes_no(!equal));
            }
            out.push(row.done());
        }
        for (n, _) in t.live_columns().filter(|(_, c)| c.not_null) {
            let row = one(t, &not_null_name(t, n), "CHECK");
            out.push(row.set("is_deferrable", "NO").set("initially_deferred", "NO").done());
        }
    }
    Ok(out)
}

/// The clause of a check is the constraint's oid, which the executor prints.
pub(super) fn check_constraints(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    let own = |t: &&std::sync::Arc<Table>| rights.has_rights_of(cx.role, t.owner);
    for t in info_visible(cx).filter(|t| t.kind == TableKind::Table).filter(own) {
        for c in t.constraints.iter().filter(|c| matches!(c.kind, ConstraintKind::Check(_))) {
            let row = constraint(cx, "check_constraints", t, &c.name);
            out.push(row.set("check_clause", oid(c.oid)).done());
        }
        for (n, column) in t.live_columns().filter(|(_, c)| c.not_null) {
            let clause = format!("{} IS NOT NULL", column.name);
            let row = constraint(cx, "check_constraints", t, &not_null_name(t, n));
            out.push(row.set("check_clause", clause.as_str()).done());
        }
    }
    Ok(out)
}

/// The columns of a key, here or in the other table.
fn key_columns(cx: &SystemCx<'_>, c: &Constraint) -> Vec<u16> {
    match &c.kind {
        ConstraintKind::Check(_) => Vec::new(),
        ConstraintKind::ForeignKey(key) => key.columns.clone(),
        ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index } => {
            let index = cx.catalog.index(*index);
            index.map(|i| i.columns.iter().map(|c| c.column).collect()).unwrap_or_default()
        }
    }
}

fn column_name(t: &Table, number: u16) -> &str {
    t.columns.get(usize::from(number).wrapping_sub(1)).map_or("", |c| &c.name)
}

pub(super) fn key_column_usage(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for t in tables(cx) {
        for c in &t.constraints {
            for (n, column) in key_columns(cx, c).into_iter().enumerate() {
                let mut row = constraint_of_table(cx, "key_column_usage", t, &c.name)
                    .set("column_name", column_name(t, column))
                    .set("ordinal_position", n as i32 + 1);
                if let ConstraintKind::ForeignKey(key) = &c.kind {
                    let index = cx.catalog.index(key.index);
                    let place = index
                        .and_then(|i| i.columns.iter().position(|c| c.column == key.referenced[n]));
                    if let Some(place) = place {
                        row = row.set("position_in_unique_constraint", place as i32 + 1);
                    }
                }
                out.push(row.done());
            }
        }
    }
    Ok(out)
}

fn rule(action: ForeignKeyAction) -> &'static str {
    match action {
        ForeignKeyAction::NoAction => "NO ACTION",
        ForeignKeyAction::Restrict => "RESTRICT",
        ForeignKeyAction::Cascade => "CASCADE",
        ForeignKeyAction::SetNull => "SET NULL",
        ForeignKeyAction::SetDefault => "SET DEFAULT",
    }
}

pub(super) fn referential_constraints(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for t in tables(cx) {
        for (c, key) in t.foreign_keys() {
            let mut row = constraint(cx, "referential_constraints", t, &c.name)
                .set("match_option", if key.match_full { "FULL" } else { "NONE" })
                .set("update_rule", rule(key.on_update))
                .set("delete_rule", rule(key.on_delete));
            let behind = |o: &&Constraint| matches!(o.kind, ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index } if index == key.index);
            if let Some(other) = cx.catalog.table(key.table)
                && let Some(unique) = other.constraints.iter().find(behind)
            {
                row = row
                    .set("unique_constraint_catalog", database_name(cx))
                    .set("unique_constraint_schema", schema_name(cx, other.schema))
                    .set("unique_constraint_name", unique.name.as_str());
            }
            out.push(row.done());
        }
    }
    Ok(out)
}

/// Calls `f` with each constraint, the table whose columns it names, and these columns.
fn each_use(cx: &SystemCx<'_>, f: &mut dyn FnMut(&Table, &Constraint, &Table, &[u16])) {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    for t in info_visible(cx).filter(|t| t.kind == TableKind::Table) {
        for c in &t.constraints {
            let (used, columns) = match &c.kind {
                ConstraintKind::ForeignKey(key) => match cx.catalog.table(key.table) {
                    Some(other) => (other, key.referenced.clone()),
                    None => continue,
                },
                ConstraintKind::Check(sql) => (t, super::checked::columns(t, sql)),
                _ => (t, key_columns(cx, c)),
            };
            if rights.has_rights_of(cx.role, used.owner) {
                f(t, c, used, &columns);
            }
        }
    }
}

pub(super) fn constraint_column_usage(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    each_use(cx, &mut |t, c, used, columns| {
        for column in columns {
            let row = info(cx, "constraint_column_usage", "table", used.schema, &used.name)
                .set("column_name", column_name(used, *column))
                .set("constraint_catalog", database_name(cx))
                .set("constraint_schema", schema_name(cx, t.schema))
                .set("constraint_name", c.name.as_str());
            out.push(row.done());
        }
    });
    Ok(out)
}

pub(super) fn constraint_table_usage(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    each_use(cx, &mut |t, c, used, _| {
        if !matches!(c.kind, ConstraintKind::Check(_)) {
            let row = info(cx, "constraint_table_usage", "table", used.schema, &used.name)
                .set("constraint_catalog", database_name(cx))
                .set("constraint_schema", schema_name(cx, t.schema))
                .set("constraint_name", c.name.as_str());
            out.push(row.done());
        }
    });
    Ok(out)
}

/// Calls `f` with each view, and each relation of the session's role that it uses with the column.
fn each_view_use(cx: &SystemCx<'_>, f: &mut dyn FnMut(&Table, &Table, u16)) {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    for v in info_visible(cx).filter(|t| t.kind == TableKind::View) {
        for (id, column) in v.query.iter().flat_map(|q| &q.uses) {
            if let Some(used) = cx.catalog.table(*id)
                && rights.has_rights_of(cx.role, used.owner)
            {
                f(v, used, *column);
            }
        }
    }
}

fn view_use(cx: &SystemCx<'_>, name: &'static str, v: &Table, used: &Table) -> Row {
    info(cx, name, "view", v.schema, &v.name)
        .set("table_catalog", database_name(cx))
        .set("table_schema", schema_name(cx, used.schema))
        .set("table_name", used.name.as_str())
}

pub(super) fn view_table_usage(cx: &SystemCx<'_>) -> Rows {
    let (mut out, mut seen) = (Vec::new(), std::collections::HashSet::<(Id, Id)>::new());
    each_view_use(cx, &mut |v, used, _| {
        if seen.insert((v.oid, used.oid)) {
            out.push(view_use(cx, "view_table_usage", v, used).done());
        }
    });
    Ok(out)
}

pub(super) fn view_column_usage(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    each_view_use(cx, &mut |v, used, column| {
        if column != 0 {
            let row = view_use(cx, "view_column_usage", v, used);
            out.push(row.set("column_name", column_name(used, column)).done());
        }
    });
    Ok(out)
}

pub(super) fn catalog_name(cx: &SystemCx<'_>) -> Rows {
    let row = row(INFORMATION_SCHEMA, "information_schema_catalog_name");
    Ok(vec![row.set("catalog_name", database_name(cx)).done()])
}

pub(super) fn character_sets(cx: &SystemCx<'_>) -> Rows {
    let row = row(INFORMATION_SCHEMA, "character_sets")
        .set("character_set_name", "UTF8")
        .set("character_repertoire", "UCS")
        .set("form_of_use", "UTF8")
        .set("default_collate_catalog", database_name(cx));
    Ok(vec![row.done()])
}

/// Sequences, wrappers and servers that somebody may use.
pub(super) fn usage_privileges(cx: &SystemCx<'_>) -> Rows {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    let mine = |role: Id| role != 0 && rights.has_rights_of(cx.role, role);
    let mut out = Vec::new();
    let mut named = Vec::new();
    for s in cx.catalog.sequences() {
        // A sequence of which nobody said anything is not shown.
        let items = cx.catalog.acl(AclKind::Sequence, s.oid, 0).map(|acl| acl.items.clone());
        named.push(("SEQUENCE", s.schema, s.name.as_str(), s.owner, items.unwrap_or_default()));
    }
    for t in cx.catalog.user_types() {
        if matches!(t.kind, UserTypeKind::Domain { .. }) {
            let items = rights.items(AclKind::Type, t.oid);
            named.push(("DOMAIN", t.schema, t.name.as_str(), t.owner, items));
        }
    }
    for (kind, schema, name, own, items) in named {
        for item in items {
            let known = mine(item.grantee) || mine(item.grantor) || item.grantee == 0;
            if item.privileges & privilege::USAGE == 0 || !known {
                continue;
            }
            let owner = item.grantee != 0 && rights.has_rights_of(item.grantee, own);
            let grantable = owner || item.grantable & privilege::USAGE != 0;
            let grantee = match item.grantee {
                0 => Datum::Text("PUBLIC".into()),
                id => role_name(cx, id),
            };
            let row = info(cx, "usage_privileges", "object", schema, name)
                .set("grantor", role_name(cx, item.grantor))
                .set("grantee", grantee)
                .set("object_type", kind)
                .set("privilege_type", "USAGE")
                .set("is_grantable", yes_no(grantable));
            out.push(row.done());
        }
    }
    out.extend(super::foreign::usage(cx, "usage_privileges", true));
    Ok(out)
}

//! `pg_shdepend`: which roles what is in the database depends on. What the first superuser owns is left out, as
//! PostgreSQL leaves out what is pinned.

use base::Result;
use types::Datum;

use super::row::{oid, row};
use crate::object::ids::{PG_CATALOG, SUPERUSER};
use crate::object::{AclKind, Defined, Id};
use crate::system::class;
use crate::system::cx::SystemCx;

/// The rows so far.
struct Ties<'c, 'a> {
    cx: &'c SystemCx<'a>,
    rows: Vec<Vec<Datum>>,
}

impl Ties<'_, '_> {
    fn add(&mut self, database: Id, (class, object, column): (Id, Id, u16), role: Id, kind: char) {
        if role == 0 || role == SUPERUSER {
            return;
        }
        self.rows.push(
            row(PG_CATALOG, "pg_shdepend")
                .set("dbid", oid(database))
                .set("classid", oid(class))
                .set("objid", oid(object))
                .set("objsubid", i32::from(column))
                .set("refclassid", oid(class::ROLE))
                .set("refobjid", oid(role))
                .set("deptype", kind)
                .done(),
        );
    }

    fn owned(&mut self, class: Id, object: Id, owner: Id) {
        self.add(self.cx.database, (class, object, 0), owner, 'o');
    }
}

pub(super) fn pg_shdepend(cx: &SystemCx<'_>) -> Result<Vec<Vec<Datum>>> {
    let mut ties = Ties { cx, rows: Vec::new() };
    for table in cx.catalog.tables() {
        ties.owned(class::RELATION, table.oid, table.owner);
        for policy in &table.policies {
            let from = (class::POLICY, policy.oid, 0);
            policy.roles.iter().for_each(|role| ties.add(cx.database, from, *role, 'r'));
        }
    }
    cx.catalog.sequences().for_each(|s| ties.owned(class::RELATION, s.oid, s.owner));
    cx.catalog.schemas().for_each(|s| ties.owned(class::SCHEMA, s.oid, s.owner));
    cx.catalog.functions().for_each(|f| ties.owned(class::FUNCTION, f.oid, f.owner));
    cx.catalog.user_types().for_each(|t| ties.owned(class::TYPE, t.oid, t.owner));
    cx.catalog.user_collations().for_each(|c| ties.owned(class::COLLATION, c.oid, c.owner));
    for d in cx.catalog.defined() {
        if matches!(**d, Defined::Wrapper(_) | Defined::Server(_) | Defined::Mapping(_)) {
            ties.owned(d.class(), d.oid(), d.owner().unwrap_or_default());
        }
    }
    cx.catalog.databases().for_each(|d| ties.add(0, (class::DATABASE, d.oid, 0), d.owner, 'o'));
    let rights = crate::Rights { catalog: cx.catalog, database: cx.database };
    for acl in cx.catalog.acls() {
        let Some(class) = class_of(acl.kind) else { continue };
        let owner = rights.owner(acl.kind, acl.object);
        let database = if acl.kind == AclKind::Database { 0 } else { cx.database };
        let mut grantees: Vec<Id> = acl.items.iter().map(|item| item.grantee).collect();
        grantees.sort_unstable();
        grantees.dedup();
        for role in grantees.into_iter().filter(|role| Some(*role) != owner) {
            ties.add(database, (class, acl.object, acl.column), role, 'a');
        }
    }
    Ok(ties.rows)
}

fn class_of(kind: AclKind) -> Option<Id> {
    Some(match kind {
        AclKind::Table | AclKind::Sequence => class::RELATION,
        AclKind::Schema => class::SCHEMA,
        AclKind::Database => class::DATABASE,
        AclKind::Function => class::FUNCTION,
        AclKind::Type => class::TYPE,
        AclKind::Wrapper => class::WRAPPER,
        AclKind::Server => class::SERVER,
        AclKind::Language => class::LANGUAGE,
        _ => return None,
    })
}

//! Tables, indexes, their columns and constraints.

use base::Result;
use types::{Datum, TypeIo, oids};

use super::facts::{self, SystemIndex};
use super::row::{Row, array, oid, row};
use crate::object::ids::{BTREE_AM, COLLATION_C, HEAP_AM, PG_CATALOG, PG_GLOBAL};
use crate::object::{
    AclKind, CheckOption, Constraint, ConstraintKind, Defined, ForeignKey, ForeignKeyAction, Id,
    Index, IndexColumn, ReplicaIdentity, Sequence, Table, TableKind,
};
use crate::system::acl_rows::{stored_acl, system_acl};
use crate::system::class::{default_id, rule_id};
use crate::system::cx::SystemCx;
use crate::system::names::schema_name;
use crate::system::relation_rows::{attribute, class_row};
use crate::system::row::{numbers, vector};
use crate::system::tables::{SystemTable, by_oid, tables};

type Rows = Result<Vec<Vec<Datum>>>;

fn options(list: &[(String, String)]) -> Datum {
    if list.is_empty() {
        return Datum::Null;
    }
    let text = |(name, value): &(String, String)| Datum::Text(format!("{name}={value}").into());
    array(oids::TEXT, 1, list.iter().map(text).collect())
}

fn table_class(cx: &SystemCx<'_>, t: &Table) -> Vec<Datum> {
    let checks = t.constraints.iter().filter(|c| matches!(c.kind, ConstraintKind::Check(_)));
    let triggers = t.has_triggers();
    let rows = cx.catalog.stats(t.oid).map_or(-1.0, |s| s.rows as f32);
    let visible = cx.catalog.stats(t.oid).map_or(0, |s| s.visible as i32);
    let own = class_row(cx, t.oid, &t.name, t.schema, t.rel).set("reloftype", oid(t.of_type));
    super::partitions::class(cx, t, own)
        .set("relowner", oid(t.owner))
        .set(
            "relam",
            oid(match t.kind {
                TableKind::View | TableKind::Foreign => 0,
                _ if t.is_partitioned() => 0,
                _ if t.method != 0 => t.method,
                _ => HEAP_AM,
            }),
        )
        .set("reltype", oid(t.row_type[0]))
        .set("reltuples", rows)
        .set("relallvisible", visible)
        .set("relhasindex", !t.indexes.is_empty())
        .set("relhasrules", t.query.is_some() || !t.rules.is_empty())
        .set("relispopulated", t.query.as_ref().is_none_or(|q| !q.unpopulated))
        .set(
            "relkind",
            match t.kind {
                TableKind::View => 'v',
                TableKind::Materialized => 'm',
                TableKind::Foreign => 'f',
                _ if t.is_partitioned() => 'p',
                _ => 'r',
            },
        )
        .set("relpersistence", t.persistence())
        .set("relnatts", t.columns.len() as i16)
        .set("relchecks", checks.count() as i16)
        .set("relhassubclass", !t.children.is_empty() || t.is_partitioned())
        .set("relhastriggers", triggers)
        .set("relrowsecurity", t.row_security)
        .set("relforcerowsecurity", t.force_row_security)
        .set(
            "relreplident",
            match t.kind {
                TableKind::View | TableKind::Foreign => 'n',
                _ => t.replica_identity.letter(),
            },
        )
        .set("reloptions", options(&view_options(t)))
        .set("relacl", stored_acl(cx, AclKind::Table, t.oid, 0))
        .done()
}

/// Storage parameters; a view's CHECK OPTION is one.
fn view_options(t: &Table) -> Vec<(String, String)> {
    let mut all = t.options.clone();
    match t.query.as_ref().map(|q| q.check) {
        Some(CheckOption::Local) => all.push(("check_option".into(), "local".into())),
        Some(CheckOption::Cascaded) => all.push(("check_option".into(), "cascaded".into())),
        _ => {}
    }
    all
}

fn sequence_class(cx: &SystemCx<'_>, s: &Sequence) -> Vec<Datum> {
    class_row(cx, s.oid, &s.name, s.schema, s.rel)
        .set("relowner", oid(s.owner))
        .set("relpages", 1)
        .set("reltuples", 1f32)
        .set("relkind", 'S')
        .set(
            "relpersistence",
            match base::Oid(s.oid).is_temporary() {
                true => 't',
                false if s.unlogged => 'u',
                false => 'p',
            },
        )
        .set("relnatts", 3i16)
        .set("relacl", stored_acl(cx, AclKind::Sequence, s.oid, 0))
        .done()
}

fn index_class(cx: &SystemCx<'_>, i: &Index) -> Vec<Datum> {
    let table = cx.catalog.table(i.table);
    let owner = table.map_or(0, |t| t.owner);
    let whole = table.is_some_and(|t| t.is_partitioned());
    class_row(cx, i.oid, &i.name, i.schema, i.rel)
        .set("relowner", oid(owner))
        .set("relam", oid(if i.named_method != 0 { i.named_method } else { i.method.oid() }))
        .set("relkind", if whole { 'I' } else { 'i' })
        .set("relispartition", i.parent != 0)
        .set("relpersistence", table.map_or('p', |t| t.persistence()))
        .set("relhassubclass", whole)
        .set("relnatts", (i.columns.len() + i.include.len()) as i16)
        .set("reloptions", options(&i.options))
        .done()
}

fn system_class(cx: &SystemCx<'_>, t: &SystemTable) -> Vec<Datum> {
    class_row(cx, t.oid.0, t.name, t.schema, 0)
        .set("relam", oid(if t.is_view { 0 } else { HEAP_AM }))
        .set("relkind", if t.is_view { 'v' } else { 'r' })
        .set("reltype", oid(facts::row_type(t.oid.0)))
        .set("relacl", system_acl(cx, t.oid.0))
        .set("relnatts", t.columns.len() as i16)
        .set("relhasindex", facts::indexes().iter().any(|i| i.table == t.oid.0))
        .set("relisshared", t.is_shared())
        .set("relhasrules", t.is_view)
        .set("reltablespace", oid(if t.is_shared() { PG_GLOBAL } else { 0 }))
        .done()
}

fn system_index_class(cx: &SystemCx<'_>, i: &SystemIndex) -> Vec<Datum> {
    let shared = by_oid(base::Oid(i.table)).is_some_and(SystemTable::is_shared);
    class_row(cx, i.oid, i.name, PG_CATALOG, 0)
        .set("relam", oid(BTREE_AM))
        .set("relkind", 'i')
        .set("relnatts", i.columns.len() as i16)
        .set("relisshared", shared)
        .set("reltablespace", oid(if shared { PG_GLOBAL } else { 0 }))
        .done()
}

/// The row of one relation.
fn class_of_id(cx: &SystemCx<'_>, id: Id) -> Option<Vec<Datum>> {
    if let Some(t) = by_oid(base::Oid(id)).filter(|t| !t.is_function()) {
        return Some(system_class(cx, t));
    }
    if let Some(i) = facts::index(id) {
        return Some(system_index_class(cx, i));
    }
    let own = cx.catalog.table(id).map(|t| table_class(cx, t));
    let own = own.or_else(|| cx.catalog.index(id).map(|i| index_class(cx, i)));
    own.or_else(|| cx.catalog.sequence(id).map(|s| sequence_class(cx, s)))
}

pub(super) fn pg_class(cx: &SystemCx<'_>) -> Rows {
    if let Some(one) = cx.wanted_at(0).and_then(|id| class_of_id(cx, id)) {
        return Ok(vec![one]);
    }
    let mut out: Vec<_> = tables().iter().map(|t| system_class(cx, t)).collect();
    out.extend(facts::indexes().iter().map(|i| system_index_class(cx, i)));
    out.extend(cx.catalog.tables().map(|t| table_class(cx, t)));
    out.extend(cx.catalog.indexes().map(|i| index_class(cx, i)));
    out.extend(cx.catalog.sequences().map(|s| sequence_class(cx, s)));
    super::user_types::classes(cx, &mut out);
    Ok(out)
}

/// Columns that every table has besides its own.
const SYSTEM_COLUMNS: [(&str, i16, base::Oid); 6] = [
    ("tableoid", -6, oids::OID),
    ("cmax", -5, oids::XID),
    ("xmax", -4, oids::XID),
    ("cmin", -3, oids::XID),
    ("xmin", -2, oids::XID),
    ("ctid", -1, oids::TID),
];

/// `cid`, whose values are those of `xid` here.
const CID: Id = 29;

fn system_column(table: Id, (name, number, ty): &(&str, i16, base::Oid)) -> Vec<Datum> {
    let one = attribute(table, *number, name, ty.0, -1).set("attnotnull", true);
    match *name {
        "cmin" | "cmax" => one.set("atttypid", oid(CID)).done(),
        _ => one.done(),
    }
}

fn table_attributes(cx: &SystemCx<'_>, t: &Table, out: &mut Vec<Vec<Datum>>) {
    if t.kind != TableKind::View {
        out.extend(SYSTEM_COLUMNS.iter().map(|column| system_column(t.oid, column)));
    }
    for (i, c) in t.columns.iter().enumerate() {
        let number = i as i16 + 1;
        let one = if c.dropped {
            attribute(t.oid, number, &format!("........pg.dropped.{number}........"), 0, -1)
                .set("attisdropped", true)
        } else {
            attribute(t.oid, number, &c.name, c.ty, c.typmod)
                .set("attstattarget", c.statistics.map_or(-1, i32::from))
                .set_some(
                    "attstorage",
                    c.storage.or_else(|| super::user_types::storage_of_own(cx, c.ty)),
                )
                .set_some("attcompression", c.compression)
                .set("attoptions", options(&c.options))
                .set("attfdwoptions", options(&c.foreign_options))
                .set("attnotnull", c.not_null)
                .set("atthasdef", c.default.is_some())
                .set(
                    "attidentity",
                    match c.identity {
                        Some(i) => Datum::Char(if i.always { b'a' } else { b'd' }),
                        None => Datum::Char(0),
                    },
                )
                .set("attgenerated", Datum::Char(if c.generated { b's' } else { 0 }))
                .set("atthasmissing", c.missing.is_some())
                .set("attislocal", !c.only_inherited)
                .set("attinhcount", i32::from(c.inherited))
                .set("attcollation", oid(cx.catalog.column_collation(c)))
                .set("attacl", stored_acl(cx, AclKind::Table, t.oid, number as u16))
        };
        out.push(one.done());
    }
}

/// The type of an index's values where its operator class keeps others than the column's.
fn stored_type(cx: &SystemCx<'_>, i: &Index, key: &IndexColumn, ty: Id) -> Option<Id> {
    let class = key.class_of(i.method, ty);
    let own = |d: &std::sync::Arc<Defined>| match &**d {
        Defined::Class(c) if c.oid == class => Some((c.input, c.key)),
        _ => None,
    };
    let (input, stored) = match class >= base::Oid::FIRST_USER.0 {
        true => cx.catalog.defined().find_map(own)?,
        false => facts::classes().get(class).map(|f| (f.id(3), f.id(5)))?,
    };
    let element = || TypeIo::get(base::Oid(ty)).map_or(0, |t| t.element.0);
    let stored = match (base::Oid(input), base::Oid(stored)) {
        (oids::ANYARRAY, oids::ANYELEMENT) => element(),
        (_, stored) => stored.0,
    };
    (stored != 0 && stored != ty).then_some(stored)
}

fn index_attributes(cx: &SystemCx<'_>, i: &Index, out: &mut Vec<Vec<Datum>>) {
    let Some(table) = cx.catalog.table(i.table) else { return };
    let mut number = 0;
    let mut add =
        |name: &str, (ty, typmod): (Id, i32), collation: Option<Id>, key: &IndexColumn| {
            number += 1;
            let one = match stored_type(cx, i, key, ty) {
                Some(stored) => attribute(i.oid, number, name, stored, -1),
                None => attribute(i.oid, number, name, ty, typmod),
            };
            let one = one.set("attstattarget", key.statistics.map_or(-1, i32::from));
            out.push(match collation {
                Some(id) => one.set("attcollation", oid(id)).done(),
                None => one.done(),
            });
        };
    for key in &i.columns {
        let collation = key.collation.as_ref().map(|c| c.oid);
        match &key.expression {
            Some(e) => add(&e.name, (e.ty, -1), collation, key),
            None => {
                if let Some(c) = table.columns.get(usize::from(key.column) - 1) {
                    add(&c.name, (c.ty, c.typmod), collation, key);
                }
            }
        }
    }
    for column in &i.include {
        if let Some(c) = table.columns.get(usize::from(*column) - 1) {
            number += 1;
            let one = attribute(i.oid, number, &c.name, c.ty, c.typmod);
            out.push(one.set("attcollation", oid(cx.catalog.column_collation(c))).done());
        }
    }
}

/// The columns of a system table; a true table has the hidden ones, too.
fn system_attributes(t: &SystemTable, out: &mut Vec<Vec<Datum>>) {
    if !t.is_view {
        out.extend(SYSTEM_COLUMNS.iter().map(|column| system_column(t.oid.0, column)));
    }
    for (i, ((name, ty), marks)) in t.columns.iter().zip(t.marks).enumerate() {
        let mut one =
            attribute(t.oid.0, i as i16 + 1, name, ty.0, -1).set("attnotnull", marks.not_null);
        if marks.collate_c {
            one = one.set("attcollation", oid(COLLATION_C));
        }
        out.push(one.done());
    }
}

fn system_index_attributes(i: &SystemIndex, out: &mut Vec<Vec<Datum>>) {
    let Some(table) = by_oid(base::Oid(i.table)) else { return };
    for (n, column) in i.columns.iter().enumerate() {
        let (name, ty) = table.columns[*column as usize - 1];
        out.push(attribute(i.oid, n as i16 + 1, name, ty.0, -1).done());
    }
}

fn sequence_attributes(s: &Sequence, out: &mut Vec<Vec<Datum>>) {
    let columns = [("last_value", oids::INT8), ("log_cnt", oids::INT8), ("is_called", oids::BOOL)];
    for (n, (name, ty)) in columns.iter().enumerate() {
        let one = attribute(s.oid, n as i16 + 1, name, ty.0, -1);
        out.push(one.set("attnotnull", true).done());
    }
}

/// The columns of one relation; false: there is none with this id, or it is a composite type.
fn attributes_of_id(cx: &SystemCx<'_>, id: Id, out: &mut Vec<Vec<Datum>>) -> bool {
    if let Some(t) = by_oid(base::Oid(id)).filter(|t| !t.is_function()) {
        system_attributes(t, out);
    } else if let Some(i) = facts::index(id) {
        system_index_attributes(i, out);
    } else if let Some(t) = cx.catalog.table(id) {
        table_attributes(cx, t, out);
    } else if let Some(i) = cx.catalog.index(id) {
        index_attributes(cx, i, out);
    } else if let Some(s) = cx.catalog.sequence(id) {
        sequence_attributes(s, out);
    } else {
        return false;
    }
    true
}

pub(super) fn pg_attribute(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    if let Some(id) = cx.wanted_at(0) {
        if !attributes_of_id(cx, id, &mut out) {
            super::user_types::attributes(cx, |class| class == id, &mut out);
        }
        return Ok(out);
    }
    tables().iter().for_each(|t| system_attributes(t, &mut out));
    facts::indexes().iter().for_each(|i| system_index_attributes(i, &mut out));
    cx.catalog.tables().for_each(|t| table_attributes(cx, t, &mut out));
    cx.catalog.indexes().for_each(|i| index_attributes(cx, i, &mut out));
    super::user_types::attributes(cx, |_| true, &mut out);
    cx.catalog.sequences().for_each(|s| sequence_attributes(s, &mut out));
    Ok(out)
}

fn default_oid(table: Id, column: u16) -> Datum {
    oid(default_id(table, column))
}

pub(super) fn pg_rewrite(cx: &SystemCx<'_>) -> Rows {
    let one = |view: Id| {
        row(PG_CATALOG, "pg_rewrite")
            .set("oid", oid(rule_id(view)))
            .set("rulename", "_RETURN")
            .set("ev_class", oid(view))
            .fill(&["ev_qual", "ev_action"], Datum::Text("<>".into()))
            .set("ev_type", '1')
            .set("ev_enabled", 'O')
            .set("is_instead", true)
            .done()
    };
    let system = tables().iter().filter(|t| t.is_view).map(|t| one(t.oid.0));
    let own = cx.catalog.tables().filter(|t| t.query.is_some()).map(|t| one(t.oid));
    let rules = cx.catalog.tables().flat_map(|t| t.rules.iter().map(move |r| (t.oid, r)));
    let rules = rules.map(|(table, rule)| {
        let condition = rule.condition.as_deref().unwrap_or("<>");
        row(PG_CATALOG, "pg_rewrite")
            .set("oid", oid(rule.oid))
            .set("rulename", rule.name.as_str())
            .set("ev_class", oid(table))
            .set("ev_qual", condition)
            .set("ev_action", rule.actions.join("; ").as_str())
            .set("ev_type", rule.event)
            .set("ev_enabled", rule.enabled)
            .set("is_instead", rule.instead)
            .done()
    });
    Ok(system.chain(own).chain(rules).collect())
}

/// The definitions are the rules' oids; the executor prints them.
pub(super) fn pg_rules(cx: &SystemCx<'_>) -> Rows {
    let all = cx.catalog.tables().flat_map(|t| t.rules.iter().map(move |r| (t, r)));
    Ok(all
        .map(|(table, rule)| {
            row(PG_CATALOG, "pg_rules")
                .set("schemaname", schema_name(cx, table.schema))
                .set("tablename", table.name.as_str())
                .set("rulename", rule.name.as_str())
                .set("definition", rule.oid.to_string().as_str())
                .done()
        })
        .collect())
}

pub(super) fn pg_attrdef(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for t in cx.catalog.tables() {
        for (number, c) in t.live_columns() {
            let Some(default) = &c.default else { continue };
            out.push(
                row(PG_CATALOG, "pg_attrdef")
                    .set("oid", default_oid(t.oid, number))
                    .set("adrelid", oid(t.oid))
                    .set("adnum", number as i16)
                    .set("adbin", default.as_str())
                    .done(),
            );
        }
    }
    Ok(out)
}

/// The types of an index's keys.
fn key_types(cx: &SystemCx<'_>, i: &Index) -> Vec<Id> {
    let table = cx.catalog.table(i.table);
    let column = |n: u16| table.and_then(|t| t.columns.get(usize::from(n).wrapping_sub(1)));
    let one = |c: &IndexColumn| match &c.expression {
        Some(e) => e.ty,
        None => column(c.column).map_or(0, |c| c.ty),
    };
    i.columns.iter().map(one).collect()
}

fn collation_of(ty: Id) -> Id {
    TypeIo::get(base::Oid(ty)).map_or(0, |t| crate::collation::of_built_in(&t))
}

fn system_index(i: &SystemIndex) -> Vec<Datum> {
    let table = by_oid(base::Oid(i.table));
    let ty = |n: &i16| table.map_or(0, |t| t.columns[*n as usize - 1].1.0);
    let types: Vec<Id> = i.columns.iter().map(ty).collect();
    row(PG_CATALOG, "pg_index")
        .set("indexrelid", oid(i.oid))
        .set("indrelid", oid(i.table))
        .fill(&["indnatts", "indnkeyatts"], Datum::Int2(i.columns.len() as i16))
        .set("indisunique", i.unique)
        .set("indisprimary", i.primary)
        .fill(
            &[
                "indnullsnotdistinct",
                "indisexclusion",
                "indisclustered",
                "indcheckxmin",
                "indisreplident",
            ],
            Datum::Bool(false),
        )
        .fill(&["indimmediate", "indisvalid", "indisready", "indislive"], Datum::Bool(true))
        .set("indkey", vector(i.columns.iter().copied()))
        .set(
            "indcollation",
            facts::oid_vector(types.iter().map(|t| match collation_of(*t) {
                0 => 0,
                _ => COLLATION_C,
            })),
        )
        .set("indclass", facts::oid_vector(types.iter().map(|t| facts::default_class(*t))))
        .set("indoption", vector(types.iter().map(|_| 0)))
        .done()
}

pub(super) fn pg_index(cx: &SystemCx<'_>) -> Rows {
    let is_identity = |i: &Index| {
        let of = cx.catalog.table(i.table).map(|t| t.replica_identity);
        of == Some(ReplicaIdentity::Index(i.oid))
    };
    let one = |i: &Index| {
        let (n, types) = (i.columns.len(), key_types(cx, i));
        let keys = i.columns.iter().map(|c| c.column as i16);
        let deferrable = cx
            .catalog
            .table(i.table)
            .is_some_and(|t| t.constraints.iter().any(|c| c.deferrable && is_key_of(c, i.oid)));
        let expressions: Vec<&str> =
            i.columns.iter().filter_map(|c| Some(c.expression.as_ref()?.sql.as_str())).collect();
        let list = expressions.join(", ");
        row(PG_CATALOG, "pg_index")
            .set("indexrelid", oid(i.oid))
            .set("indrelid", oid(i.table))
            .set("indnatts", (n + i.include.len()) as i16)
            .set("indnkeyatts", n as i16)
            .set("indisunique", i.unique)
            .set("indnullsnotdistinct", i.nulls_equal)
            .set("indisprimary", i.primary)
            .set("indisexclusion", !i.exclude.is_empty())
            .set("indcheckxmin", false)
            .set("indisreplident", is_identity(i))
            .set("indisclustered", i.clustered)
            .fill(&["indisready", "indislive"], Datum::Bool(true))
            .set("indimmediate", !deferrable)
            .set("indisvalid", !i.invalid)
            .set("indkey", vector(keys.chain(i.include.iter().map(|c| *c as i16))))
            .set(
                "indexprs",
                if list.is_empty() { Datum::Null } else { Datum::Text(list.as_str().into()) },
            )
            .set(
                "indpred",
                i.predicate.as_ref().map_or(Datum::Null, |p| Datum::Text(p.as_str().into())),
            )
            .set(
                "indcollation",
                facts::oid_vector(i.columns.iter().zip(&types).map(|(c, t)| {
                    let own = c.collation.as_ref().map(|c| c.oid);
                    own.unwrap_or_else(|| collation_of(*t))
                })),
            )
            .set(
                "indclass",
                facts::oid_vector(
                    i.columns.iter().zip(&types).map(|(c, t)| c.class_of(i.method, *t)),
                ),
            )
            .set(
                "indoption",
                vector(
                    i.columns
                        .iter()
                        .map(|c| i16::from(c.descending) + 2 * i16::from(c.nulls_first)),
                ),
            )
            .done()
    };
    let system = facts::indexes().iter().map(system_index);
    Ok(cx.catalog.indexes().map(|i| one(i)).chain(system).collect())
}

/// Whether a constraint rests on this index.
fn is_key_of(c: &Constraint, id: Id) -> bool {
    matches!(c.kind, ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index } if index == id)
}

fn action_letter(action: ForeignKeyAction) -> char {
    match action {
        ForeignKeyAction::NoAction => 'a',
        ForeignKeyAction::Restrict => 'r',
        ForeignKeyAction::Cascade => 'c',
        ForeignKeyAction::SetNull => 'n',
        ForeignKeyAction::SetDefault => 'd',
    }
}

fn foreign_key(out: Row, key: &ForeignKey) -> Row {
    out.set("contype", 'f')
        .set("conindid", oid(key.index))
        .set("confrelid", oid(key.table))
        .set("confupdtype", action_letter(key.on_update))
        .set("confdeltype", action_letter(key.on_delete))
        .set("confmatchtype", if key.match_full { 'f' } else { 's' })
        .set(
            "confdelsetcols",
            if key.set_columns.is_empty() { Datum::Null } else { numbers(&key.set_columns) },
        )
        .set("conkey", numbers(&key.columns))
        .set("confkey", numbers(&key.referenced))
}

fn constraint(cx: &SystemCx<'_>, t: &Table, c: &Constraint) -> Vec<Datum> {
    let out = row(PG_CATALOG, "pg_constraint")
        .set("oid", oid(c.oid))
        .set("conname", c.name.as_str())
        .set("connamespace", oid(t.schema))
        .set("condeferrable", c.deferrable)
        .set("condeferred", c.deferred)
        .set("convalidated", !c.unvalidated)
        .set("conrelid", oid(t.oid))
        .fill(&["contypid", "conindid", "confrelid"], oid(0))
        .set("conparentid", oid(c.parent))
        .fill(&["confupdtype", "confdeltype", "confmatchtype"], Datum::Char(b' '))
        .set("conislocal", !c.only_inherited)
        .set("coninhcount", i32::from(c.inherited))
        .set("connoinherit", c.parent == 0 || c.no_inherit);
    let keyed = |out: Row, letter: char, index: Id| {
        let columns: Vec<u16> = cx
            .catalog
            .index(index)
            .map(|i| i.columns.iter().map(|c| c.column).collect())
            .unwrap_or_default();
        out.set("contype", letter).set("conindid", oid(index)).set("conkey", numbers(&columns))
    };
    match &c.kind {
        ConstraintKind::Check(sql) => {
            let columns = super::checked::columns(t, sql);
            let out = if columns.is_empty() { out } else { out.set("conkey", numbers(&columns)) };
            out.set("contype", 'c').set("connoinherit", c.no_inherit).set("conbin", sql.as_str())
        }
        ConstraintKind::PrimaryKey { index } => keyed(out, 'p', *index),
        ConstraintKind::Unique { index } => match cx.catalog.index(*index) {
            Some(own) if !own.exclude.is_empty() => {
                let operators = own.exclude.iter().map(|o| Datum::Oid(*o)).collect();
                keyed(out, 'x', *index).set("conexclop", array(oids::OID, 1, operators))
            }
            _ => keyed(out, 'u', *index),
        },
        ConstraintKind::ForeignKey(key) => foreign_key(out, key),
    }
    .done()
}

pub(super) fn pg_inherits(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for t in cx.catalog.tables() {
        for (n, parent) in t.parents.iter().enumerate() {
            out.push(
                row(PG_CATALOG, "pg_inherits")
                    .set("inhrelid", oid(t.oid))
                    .set("inhparent", oid(*parent))
                    .set("inhseqno", n as i32 + 1)
                    .set("inhdetachpending", t.detaching.is_some())
                    .done(),
            );
        }
    }
    for i in cx.catalog.indexes().filter(|i| i.parent != 0) {
        out.push(
            row(PG_CATALOG, "pg_inherits")
                .set("inhrelid", oid(i.oid))
                .set("inhparent", oid(i.parent))
                .set("inhseqno", 1)
                .set("inhdetachpending", false)
                .done(),
        );
    }
    Ok(out)
}

pub(super) fn pg_constraint(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for t in cx.catalog.tables() {
        out.extend(t.constraints.iter().map(|c| constraint(cx, t, c)));
        let triggers = t.triggers.iter().filter(|one| one.constraint != 0);
        out.extend(triggers.map(|one| super::triggers::constraint_row(t, one)));
    }
    out.extend(facts::indexes().iter().filter(|i| i.constraint != 0).map(system_constraint));
    super::user_types::constraints(cx, &mut out);
    Ok(out)
}

fn system_constraint(i: &SystemIndex) -> Vec<Datum> {
    row(PG_CATALOG, "pg_constraint")
        .set("oid", oid(i.constraint))
        .set("conname", i.name)
        .set("connamespace", oid(PG_CATALOG))
        .set("contype", if i.primary { 'p' } else { 'u' })
        .fill(&["condeferrable", "condeferred"], Datum::Bool(false))
        .fill(&["convalidated", "conislocal", "connoinherit"], Datum::Bool(true))
        .set("conrelid", oid(i.table))
        .fill(&["contypid", "conparentid", "confrelid"], oid(0))
        .set("conindid", oid(i.oid))
        .fill(&["confupdtype", "confdeltype", "confmatchtype"], Datum::Char(b' '))
        .set("coninhcount", 0)
        .set("conkey", array(oids::INT2, 1, i.columns.iter().map(|n| Datum::Int2(*n)).collect()))
        .done()
}

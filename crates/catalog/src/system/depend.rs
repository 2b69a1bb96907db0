//! `pg_depend`: what depends on what, as far as PostgreSQL's clients ask: pg_dump orders by it.

use base::Result;
use types::Datum;

use super::row::{oid, row};
use crate::object::ids::PG_CATALOG;
use crate::object::{ConstraintKind, Defined, Function, Id, Index, Table, UserType, UserTypeKind};
use crate::system::class::{self, default_id, rule_id};
use crate::system::classes::class_of;
use crate::system::cx::SystemCx;

/// An object: class, oid, column.
type End = (Id, Id, u16);

/// Oids below are those of objects that can't be dropped, on which nothing is said to depend.
const UNPINNED: Id = 12_000;

/// The rows so far.
struct Ties<'c, 'a> {
    cx: &'c SystemCx<'a>,
    rows: Vec<Vec<Datum>>,
}

pub(super) fn pg_depend(cx: &SystemCx<'_>) -> Result<Vec<Vec<Datum>>> {
    let mut ties = Ties { cx, rows: Vec::new() };
    for s in cx.catalog.sequences() {
        let own = (class::RELATION, s.oid, 0);
        ties.add(own, (class::SCHEMA, s.schema, 0), 'n');
        if let Some((table, column)) = s.owned_by {
            let kind = if s.identity { 'i' } else { 'a' };
            ties.add(own, (class::RELATION, table, column), kind);
        }
    }
    cx.catalog.tables().for_each(|t| ties.table(t));
    cx.catalog.user_types().for_each(|t| ties.user_type(t));
    cx.catalog.functions().for_each(|f| ties.function(f));
    for c in cx.catalog.user_collations() {
        ties.add((class::COLLATION, c.oid, 0), (class::SCHEMA, c.schema, 0), 'n');
    }
    cx.catalog.defined().for_each(|d| ties.defined(d));
    cx.catalog.indexes().for_each(|i| {
        ties.index(i);
        for id in i.columns.iter().filter_map(|c| Some(c.collation.as_ref()?.oid)) {
            ties.add_collation((class::RELATION, i.oid, 0), id);
        }
        ties.add_uses((class::RELATION, i.oid, 0), i.uses.iter().map(|id| (*id, 0)));
        for id in i.columns.iter().map(|c| c.class).filter(|id| *id >= base::Oid::FIRST_USER.0) {
            ties.add((class::RELATION, i.oid, 0), (class::OPERATOR_CLASS, id, 0), 'n');
        }
    });
    Ok(ties.rows)
}

impl Ties<'_, '_> {
    fn add(&mut self, from: End, to: End, kind: char) {
        self.rows.push(
            row(PG_CATALOG, "pg_depend")
                .set("classid", oid(from.0))
                .set("objid", oid(from.1))
                .set("objsubid", i32::from(from.2))
                .set("refclassid", oid(to.0))
                .set("refobjid", oid(to.1))
                .set("refobjsubid", i32::from(to.2))
                .set("deptype", kind)
                .done(),
        );
    }

    /// The use of a type, if it is one that somebody made.
    fn add_type(&mut self, from: End, ty: Id) {
        if self.cx.catalog.known_type(ty).is_some() {
            self.add(from, (class::TYPE, ty, 0), 'n');
        }
    }

    /// The use of a collation, if it is one that somebody made.
    fn add_collation(&mut self, from: End, id: Id) {
        if id >= base::Oid::FIRST_USER.0 {
            self.add(from, (class::COLLATION, id, 0), 'n');
        }
    }

    /// The use of objects and columns; that of a column stands for that of its table.
    fn add_uses(&mut self, from: End, uses: impl Iterator<Item = (Id, u16)> + Clone) {
        let all = uses.clone();
        let finer = |id| all.clone().any(|(other, column)| other == id && column != 0);
        for (id, column) in uses.filter(|(id, column)| *column != 0 || !finer(*id)) {
            self.add(from, (class_of(self.cx, id), id, column), 'n');
        }
    }

    fn table(&mut self, t: &Table) {
        let own = (class::RELATION, t.oid, 0);
        self.add(own, (class::SCHEMA, t.schema, 0), 'n');
        if t.of_type != 0 {
            self.add(own, (class::TYPE, t.of_type, 0), 'n');
        }
        if t.method != 0 {
            self.add(own, (class::ACCESS_METHOD, t.method, 0), 'n');
        }
        if let Some(foreign) = &t.foreign {
            self.add(own, (class::SERVER, foreign.server, 0), 'n');
        }
        let [rows, arrays] = t.row_type;
        if rows != 0 {
            self.add((class::TYPE, rows, 0), own, 'i');
            self.add((class::TYPE, arrays, 0), (class::TYPE, rows, 0), 'i');
        }
        for (n, column) in t.live_columns() {
            self.add_type((class::RELATION, t.oid, n), column.ty);
            self.add_collation((class::RELATION, t.oid, n), column.collation);
            if column.default.is_some() {
                let default = (class::DEFAULT, default_id(t.oid, n), 0);
                self.add(default, (class::RELATION, t.oid, n), 'a');
                self.add_uses(default, column.default_uses.iter().map(|id| (*id, 0)));
            }
        }
        self.family(t);
        self.constraints(t);
        self.triggers(t);
        for policy in &t.policies {
            let from = (class::POLICY, policy.oid, 0);
            self.add(from, own, 'a');
            self.add_uses(from, policy.uses.iter().copied());
        }
        for rule in &t.rules {
            let from = (class::REWRITE, rule.oid, 0);
            self.add(from, own, 'a');
            self.add_uses(from, rule.uses.iter().copied());
        }
        if let Some(query) = &t.query {
            let rule = (class::REWRITE, rule_id(t.oid), 0);
            self.add(rule, own, 'i');
            self.add_uses(rule, query.uses.iter().copied());
        }
    }

    /// An index of no constraint needs its columns, and one of a partition that of the whole.
    fn index(&mut self, i: &Index) {
        let own = (class::RELATION, i.oid, 0);
        if i.parent != 0 {
            self.add(own, (class::RELATION, i.parent, 0), 'P');
            self.add(own, (class::RELATION, i.table, 0), 'S');
        }
        let Some(table) = self.cx.catalog.table(i.table) else { return };
        if table.constraints.iter().any(|c| c.index() == Some(i.oid)) {
            return;
        }
        let plain = i.columns.iter().map(|key| key.column).filter(|n| *n != 0);
        let mut columns: Vec<u16> = plain.chain(i.include.iter().copied()).collect();
        let expressions = i.columns.iter().filter_map(|key| key.expression.as_ref());
        columns.extend(expressions.flat_map(|e| e.columns.iter().copied()));
        columns.extend(i.predicate.iter().flat_map(|sql| super::checked::columns(table, sql)));
        if columns.is_empty() {
            columns.push(0);
        }
        for n in columns {
            self.add(own, (class::RELATION, i.table, n), 'a');
        }
    }

    /// The ties of a table to those that it is a part of, and of its key columns to it.
    fn family(&mut self, t: &Table) {
        let own = (class::RELATION, t.oid, 0);
        match t.partition_of() {
            Some(parent) => self.add(own, (class::RELATION, parent, 0), 'a'),
            None => t.parents.iter().for_each(|id| self.add(own, (class::RELATION, *id, 0), 'n')),
        }
        for key in t.partitioning.iter().flat_map(|by| &by.keys) {
            let plain = (key.column != 0).then_some(key.column);
            for n in plain.into_iter().chain(key.columns.iter().copied()) {
                self.add((class::RELATION, t.oid, n), own, 'i');
            }
        }
    }

    fn constraints(&mut self, t: &Table) {
        for constraint in &t.constraints {
            let from = (class::CONSTRAINT, constraint.oid, 0);
            if constraint.parent != 0 {
                self.add(from, (class::CONSTRAINT, constraint.parent, 0), 'P');
                self.add(from, (class::RELATION, t.oid, 0), 'S');
            }
            match &constraint.kind {
                ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index } => {
                    self.add((class::RELATION, *index, 0), from, 'i');
                    let index = self.cx.catalog.index(*index).cloned();
                    for key in index.iter().flat_map(|i| &i.columns) {
                        self.add(from, (class::RELATION, t.oid, key.column), 'a');
                    }
                }
                ConstraintKind::ForeignKey(key) => {
                    for n in &key.columns {
                        self.add(from, (class::RELATION, t.oid, *n), 'a');
                    }
                    for n in &key.referenced {
                        self.add(from, (class::RELATION, key.table, *n), 'n');
                    }
                    self.add(from, (class::RELATION, key.index, 0), 'n');
                }
                ConstraintKind::Check(sql) => {
                    let columns = super::checked::columns(t, sql);
                    if columns.is_empty() {
                        self.add(from, (class::RELATION, t.oid, 0), 'a');
                    }
                    for n in columns {
                        self.add(from, (class::RELATION, t.oid, n), 'a');
                        self.add(from, (class::RELATION, t.oid, n), 'n');
                    }
                    self.add_uses(from, constraint.uses.iter().map(|id| (*id, 0)));
                }
            }
        }
    }

    fn triggers(&mut self, t: &Table) {
        for trigger in &t.triggers {
            let from = (class::TRIGGER, trigger.oid, 0);
            self.add(from, (class::RELATION, t.oid, 0), 'a');
            if trigger.function >= base::Oid::FIRST_USER.0 {
                self.add(from, (class::FUNCTION, trigger.function, 0), 'n');
            }
            for n in &trigger.columns {
                self.add(from, (class::RELATION, t.oid, *n), 'n');
            }
            self.add_uses(from, trigger.uses.iter().copied());
            if trigger.other != 0 {
                self.add(from, (class::RELATION, trigger.other, 0), 'a');
            }
            if trigger.constraint != 0 {
                self.add((class::CONSTRAINT, trigger.constraint, 0), from, 'i');
            }
        }
    }

    fn user_type(&mut self, t: &UserType) {
        let own = (class::TYPE, t.oid, 0);
        self.add((class::TYPE, t.array, 0), own, 'i');
        match &t.kind {
            UserTypeKind::Enum(_) => self.add(own, (class::SCHEMA, t.schema, 0), 'n'),
            UserTypeKind::Domain { base, checks, collation, .. } => {
                self.add_collation(own, *collation);
                self.add(own, (class::SCHEMA, t.schema, 0), 'n');
                self.add_type(own, *base);
                for check in checks {
                    self.add((class::CONSTRAINT, check.oid, 0), own, 'a');
                }
                self.add_uses(own, t.uses.iter().filter(|id| **id != t.oid).map(|id| (*id, 0)));
            }
            UserTypeKind::Range(range) => {
                self.add(own, (class::SCHEMA, t.schema, 0), 'n');
                self.add_type(own, range.subtype);
                self.add_collation(own, range.collation);
                [range.class, range.canonical, range.diff]
                    .into_iter()
                    .for_each(|id| self.add_own(own, id));
            }
            UserTypeKind::Multirange { range } => self.add(own, (class::TYPE, *range, 0), 'i'),
            UserTypeKind::Base(base) => {
                self.add(own, (class::SCHEMA, t.schema, 0), 'n');
                base.functions.iter().for_each(|id| self.add_own(own, *id));
            }
            UserTypeKind::Shell => self.add(own, (class::SCHEMA, t.schema, 0), 'n'),
            UserTypeKind::Composite(columns) => {
                let relation = (class::RELATION, t.class, 0);
                self.add(relation, (class::SCHEMA, t.schema, 0), 'n');
                self.add(relation, own, 'i');
                for (n, column) in columns.iter().enumerate().filter(|(_, c)| !c.dropped) {
                    self.add_type((class::RELATION, t.class, n as u16 + 1), column.ty);
                }
            }
        }
    }

    fn function(&mut self, f: &Function) {
        let own = (class::FUNCTION, f.oid, 0);
        self.add(own, (class::SCHEMA, f.schema, 0), 'n');
        if f.is_constructor() {
            self.add(own, (class::TYPE, f.result, 0), 'i');
            return;
        }
        // Those of the catalog itself, C and SQL among them, can't be dropped.
        let language = super::named::language(&f.language);
        if let Some(id) = language.filter(|id| *id >= UNPINNED && f.aggregate.is_none()) {
            self.add(own, (class::LANGUAGE, id, 0), 'n');
        }
        self.add_type(own, f.result);
        f.args.iter().for_each(|a| self.add_type(own, a.ty));
        if let Some(table) = f.row_of.and_then(|t| self.cx.catalog.table(t)) {
            self.add_type(own, table.row_type[0]);
        }
        self.add_uses(own, f.uses.iter().copied());
        if let Some(a) = &f.aggregate {
            let steps = [Some(&a.plain), a.moving.as_ref()].into_iter().flatten();
            let functions = steps.flat_map(|s| [s.transition, s.inverse, s.finish]);
            for id in functions.chain([a.combine, a.serial, a.deserial, f.support]) {
                self.add_own(own, id);
            }
            self.add_own(own, a.sort_operator);
        }
    }

    /// The use of an object, if it is one that somebody made.
    fn add_own(&mut self, from: End, id: Id) {
        if id >= base::Oid::FIRST_USER.0 {
            self.add(from, (class_of(self.cx, id), id, 0), 'n');
        }
    }

    fn defined(&mut self, d: &Defined) {
        let own = (d.class(), d.oid(), 0);
        if let Defined::Extension(e) = d {
            self.extension(e);
            return;
        }
        if let Some(schema) = d.schema() {
            self.add(own, (class::SCHEMA, schema, 0), 'n');
        }
        let (operators, functions) = match d {
            Defined::Class(c) => (&c.operators[..], &c.functions[..]),
            Defined::Family(f) => (&f.operators[..], &f.functions[..]),
            _ => (&[][..], &[][..]),
        };
        match d {
            Defined::Class(c) => {
                self.add(own, (class::OPERATOR_FAMILY, c.family, 0), 'a');
                self.add_own(own, c.input);
                self.add_own(own, c.key);
            }
            Defined::Family(f) if f.method >= base::Oid::FIRST_USER.0 => {
                self.add(own, (class::ACCESS_METHOD, f.method, 0), 'a');
            }
            Defined::Family(_) => {}
            Defined::Publication(p) => {
                for member in &p.tables {
                    let from = (class::PUBLICATION_TABLE, member.oid, 0);
                    self.add(from, own, 'a');
                    self.add(from, (class::RELATION, member.table, 0), 'a');
                    let mut columns = member.filter_columns.clone();
                    columns.extend(member.columns.iter().flatten());
                    columns.sort_unstable();
                    columns.dedup();
                    for n in columns {
                        self.add(from, (class::RELATION, member.table, n), 'n');
                    }
                }
                for member in &p.schemas {
                    let from = (class::PUBLICATION_SCHEMA, member.oid, 0);
                    self.add(from, own, 'a');
                    self.add(from, (class::SCHEMA, member.schema, 0), 'a');
                }
            }
            Defined::Statistics(s) => {
                for n in &s.columns {
                    self.add(own, (class::RELATION, s.table, *n), 'a');
                }
                s.uses.iter().for_each(|id| self.add_own(own, *id));
            }
            _ => d.uses().into_iter().for_each(|id| self.add_own(own, id)),
        }
        let (tie, member) = match d {
            Defined::Class(_) => ('i', 'n'),
            _ => ('a', 'a'),
        };
        for o in operators {
            let row = (class::FAMILY_OPERATOR, o.oid, 0);
            self.add(row, own, tie);
            self.add_member(row, (class::OPERATOR, o.operator, 0), member);
        }
        for f in functions {
            let row = (class::FAMILY_FUNCTION, f.oid, 0);
            self.add(row, own, tie);
            self.add_member(row, (class::FUNCTION, f.function, 0), member);
        }
    }

    fn extension(&mut self, e: &crate::object::Extension) {
        let own = (class::EXTENSION, e.oid, 0);
        self.add(own, (class::SCHEMA, e.schema, 0), 'n');
        for id in &e.requires {
            self.add(own, (class::EXTENSION, *id, 0), 'n');
        }
        for id in &e.members {
            let class = class_of(self.cx, *id);
            self.add((class, *id, 0), own, 'e');
        }
    }

    fn add_member(&mut self, from: End, to: End, kind: char) {
        if to.1 >= base::Oid::FIRST_USER.0 {
            self.add(from, to, kind);
        }
    }
}

//! LIKE in CREATE TABLE.

use base::{Oid, Result, err};
use catalog::{ConstraintKind, Index, TableKind};
use pg_query::protobuf as pb;

use crate::utility::{
    ColumnDef, ColumnSequence, ConstraintDef, ConstraintDefKind, SequenceOptions,
};

use super::Binder;
use super::define::unplaced;
use super::rights::kind_word;

const CONSTRAINTS: u32 = 1 << 2;
const DEFAULTS: u32 = 1 << 3;
const GENERATED: u32 = 1 << 4;
const IDENTITY: u32 = 1 << 5;
const INDEXES: u32 = 1 << 6;

impl Binder<'_> {
    /// The columns of another table, and what INCLUDING asks for.
    pub(crate) fn like(
        &mut self,
        like: &pb::TableLikeClause,
        columns: &mut Vec<ColumnDef>,
        constraints: &mut Vec<ConstraintDef>,
        indexes: &mut Vec<Index>,
    ) -> Result<()> {
        let Some(range) = &like.relation else {
            return Err(err!(SYNTAX_ERROR, "LIKE without a table"));
        };
        let with = |bit: u32| like.options & bit != 0;
        let table = self.find_table(&unplaced(range)).map_err(|e| e.at(self.at(range.location)))?;
        let (role, select) = (self.cx.role, catalog::acl::privilege::SELECT);
        let rights = self.rights();
        if !rights.is_superuser(role)
            && !rights.may(role, catalog::AclKind::Table, table.oid, select)
        {
            return Err(catalog::acl::denied(kind_word(&table), &table.name));
        }
        let first = columns.len();
        for (_, column) in table.live_columns() {
            if columns.iter().any(|c| c.name == column.name) {
                return Err(err!(
                    DUPLICATE_COLUMN,
                    "column \"{}\" specified more than once",
                    column.name
                ));
            }
            let mut def = ColumnDef::new(&column.name, Oid(column.ty), column.typmod);
            def.not_null = column.not_null;
            def.collation = column.collation;
            let copied = if column.generated { with(GENERATED) } else { with(DEFAULTS) };
            if copied {
                def.default.clone_from(&column.default);
                def.default_uses.clone_from(&column.default_uses);
                def.generated = column.generated;
            }
            if let Some(identity) = column.identity.filter(|_| with(IDENTITY))
                && let Some(s) = self.cx.catalog.sequence(identity.sequence)
            {
                let options = SequenceOptions {
                    ty: Some(Oid(s.ty)),
                    increment: Some(s.increment),
                    start: Some(s.start),
                    max: Some(Some(s.max)),
                    min: Some(Some(s.min)),
                    cycle: Some(s.cycle),
                    cache: Some(s.cache),
                    ..SequenceOptions::default()
                };
                def.sequence = Some(ColumnSequence { identity: Some(identity.always), options });
            }
            columns.push(def);
        }
        // Numbers of the other table's columns as numbers of the new one's.
        let place = |n: u16| {
            let at = table.live_columns().position(|(m, _)| m == n).unwrap_or(0);
            (first + at) as u16 + 1
        };
        let name_of = |n: u16| table.columns[usize::from(n) - 1].name.clone();
        if with(CONSTRAINTS) {
            for constraint in &table.constraints {
                if let ConstraintKind::Check(sql) = &constraint.kind {
                    let kind = ConstraintDefKind::Check { sql: sql.clone(), columns: Vec::new() };
                    constraints.push(plain(Some(constraint.name.clone()), kind));
                }
            }
        }
        if !with(INDEXES) || table.kind == TableKind::System {
            return Ok(());
        }
        for index in self.cx.catalog.indexes_of(&table) {
            let backed = table.constraints.iter().any(|c| {
                matches!(c.kind, ConstraintKind::PrimaryKey { index: i } | ConstraintKind::Unique { index: i } if i == index.oid)
            });
            if backed {
                // An exclusion constraint's key may be an expression, which is no column.
                let keys = || index.columns.iter().map(|c| name_of(c.column)).collect();
                let include = index.include.iter().map(|n| name_of(*n)).collect();
                let kind = if !index.exclude.is_empty() {
                    self.exclusion_of(&table, &index)?
                } else if index.primary {
                    ConstraintDefKind::PrimaryKey { columns: keys(), include }
                } else {
                    let nulls_equal = index.nulls_equal;
                    ConstraintDefKind::Unique { columns: keys(), include, nulls_equal }
                };
                let mut copy = plain(None, kind);
                let same = |c: &&catalog::Constraint| matches!(c.kind, ConstraintKind::PrimaryKey { index: i } | ConstraintKind::Unique { index: i } if i == index.oid);
                if let Some(c) = table.constraints.iter().find(same) {
                    (copy.deferrable, copy.deferred) = (c.deferrable, c.deferred);
                }
                constraints.push(copy);
                continue;
            }
            let mut copy = Index::clone(&index);
            (copy.oid, copy.rel, copy.table) = (0, 0, 0);
            for key in copy.columns.iter_mut() {
                if let Some(e) = &mut key.expression {
                    e.columns.iter_mut().for_each(|n| *n = place(*n));
                } else {
                    key.column = place(key.column);
                }
            }
            copy.include.iter_mut().for_each(|n| *n = place(*n));
            indexes.push(copy);
        }
        Ok(())
    }
}

fn plain(name: Option<String>, kind: ConstraintDefKind) -> ConstraintDef {
    ConstraintDef {
        name,
        kind,
        position: 0,
        deferrable: false,
        deferred: false,
        unvalidated: false,
        options: Vec::new(),
        no_inherit: false,
        inherited: 0,
        only_inherited: false,
    }
}

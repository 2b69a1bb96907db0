//! INHERITS of CREATE TABLE: the columns and CHECK constraints of the parents come first, in their order;
//! what the statement says of a column that is among them is merged into it.

use base::{Oid, Result, err};
use catalog::{Column, ConstraintKind, Table, TableKind};
use pg_query::{NodeEnum, protobuf as pb};
use txn::LockMode;
use types::io::format_type;

use crate::utility::{ColumnDef, ConstraintDef, ConstraintDefKind, Persistence};

use super::Binder;
use super::define::unplaced;

/// What a new table has of its parents.
#[derive(Default)]
pub(crate) struct Inherited {
    /// The parents.
    pub parents: Vec<u32>,
    /// Their columns, merged.
    pub columns: Vec<ColumnDef>,
    /// Their CHECK constraints, merged.
    constraints: Vec<ConstraintDef>,
    /// See [`crate::utility::Inherits`].
    pub notices: Vec<(String, Option<&'static str>)>,
    /// The error that follows the notices.
    pub failure: Option<base::Error>,
    /// Columns for which the parents have different defaults.
    conflicts: Vec<String>,
    /// The table is a partition, whose constraints are its parent's where they have a name in common.
    is_partition: bool,
}

fn conflict_of_types(what: &str, name: &str, a: (Oid, i32), b: (Oid, i32)) -> base::Error {
    let (a, b) = (format_type(a.0, a.1), format_type(b.0, b.1));
    err!(DATATYPE_MISMATCH, "{what} \"{name}\" has a type conflict")
        .detail(format!("{a} versus {b}"))
}

impl Inherited {
    /// Adds a parent's column.
    fn add_column(&mut self, column: &Column) -> Result<()> {
        let (ty, typmod) = (Oid(column.ty), column.typmod);
        let Some(known) = self.columns.iter_mut().find(|c| c.name == column.name) else {
            let mut def = ColumnDef::new(&column.name, ty, typmod);
            def.not_null = column.not_null;
            def.default.clone_from(&column.default);
            def.default_uses.clone_from(&column.default_uses);
            def.generated = column.generated;
            def.collation = column.collation;
            (def.inherited, def.only_inherited) = (1, true);
            self.columns.push(def);
            return Ok(());
        };
        let name = &column.name;
        let message = format!("merging multiple inherited definitions of column \"{name}\"");
        self.notices.push((message, None));
        if (known.ty, known.typmod) != (ty, typmod) {
            return Err(conflict_of_types(
                "inherited column",
                name,
                (known.ty, known.typmod),
                (ty, typmod),
            ));
        }
        if known.collation != column.collation {
            base::bail!(COLLATION_MISMATCH, "inherited column \"{name}\" has a collation conflict");
        }
        if known.generated != column.generated {
            base::bail!(DATATYPE_MISMATCH, "inherited column \"{name}\" has a generation conflict");
        }
        known.inherited += 1;
        known.not_null |= column.not_null;
        match (&known.default, &column.default) {
            (_, None) => {}
            (None, Some(_)) => {
                known.default.clone_from(&column.default);
                known.default_uses.clone_from(&column.default_uses);
            }
            (Some(a), Some(b)) if a != b => self.conflicts.push(name.clone()),
            _ => {}
        }
        Ok(())
    }

    /// Adds a parent's constraint.
    fn add_constraint(&mut self, name: &str, sql: &str) -> Result<()> {
        let known = self.constraints.iter_mut().find(|c| c.name.as_deref() == Some(name));
        if let Some(known) = known {
            let same =
                matches!(&known.kind, ConstraintDefKind::Check { sql: other, .. } if other == sql);
            if !same {
                base::bail!(
                    DUPLICATE_OBJECT,
                    "check constraint name \"{name}\" appears multiple times but with different expressions"
                );
            }
            known.inherited += 1;
            return Ok(());
        }
        self.constraints.push(ConstraintDef {
            name: Some(name.to_owned()),
            kind: ConstraintDefKind::Check { sql: sql.to_owned(), columns: Vec::new() },
            position: 0,
            deferrable: false,
            deferred: false,
            unvalidated: false,
            options: Vec::new(),
            no_inherit: false,
            inherited: 1,
            only_inherited: true,
        });
        Ok(())
    }

    /// Merges the statement's own column, the `number`th that it names, with the one of this name.
    fn merge_column(&mut self, number: usize, own: ColumnDef) -> Result<()> {
        let Some(at) = self.columns.iter().position(|c| c.name == own.name) else {
            self.columns.push(own);
            return Ok(());
        };
        let name = own.name.clone();
        self.notices.push(match at == number {
            true => (format!("merging column \"{name}\" with inherited definition"), None),
            false => (
                format!("moving and merging column \"{name}\" with inherited definition"),
                Some("User-specified column moved to the position of the inherited column."),
            ),
        });
        let known = &mut self.columns[at];
        if (known.ty, known.typmod) != (own.ty, own.typmod) {
            return Err(conflict_of_types(
                "column",
                &name,
                (known.ty, known.typmod),
                (own.ty, own.typmod),
            ));
        }
        if known.collation != own.collation && !self.is_partition {
            base::bail!(COLLATION_MISMATCH, "column \"{name}\" has a collation conflict");
        }
        if known.generated {
            if own.generated {
                return Err(err!(
                    INVALID_COLUMN_DEFINITION,
                    "child column \"{name}\" specifies generation expression"
                )
                .hint("Omit the generation expression in the definition of the child table column to inherit the generation expression from the parent table."));
            }
            if own.default.is_some() {
                base::bail!(
                    INVALID_COLUMN_DEFINITION,
                    "column \"{name}\" inherits from generated column but specifies default"
                );
            }
            if own.sequence.is_some() {
                base::bail!(
                    INVALID_COLUMN_DEFINITION,
                    "column \"{name}\" inherits from generated column but specifies identity"
                );
            }
        }
        known.only_inherited = false;
        known.not_null |= own.not_null;
        if own.default.is_some() || own.sequence.is_some() || own.generated {
            known.default = own.default;
            known.default_uses = own.default_uses;
            known.default_volatile = own.default_volatile;
            known.sequence = own.sequence;
            known.generated = own.generated;
            self.conflicts.retain(|c| *c != name);
        }
        Ok(())
    }

    /// Merges the statement's own constraint; false when it is one of the parents'.
    fn merge_constraint(&mut self, table: &str, own: &ConstraintDef) -> Result<bool> {
        let ConstraintDefKind::Check { sql, .. } = &own.kind else { return Ok(true) };
        let Some(name) = &own.name else { return Ok(true) };
        let known = self.constraints.iter_mut().find(|c| c.name.as_ref() == Some(name));
        let Some(known) = known else { return Ok(true) };
        let same =
            matches!(&known.kind, ConstraintDefKind::Check { sql: other, .. } if other == sql);
        if !same {
            base::bail!(
                DUPLICATE_OBJECT,
                "constraint \"{name}\" for relation \"{table}\" already exists"
            );
        }
        if own.no_inherit {
            base::bail!(
                INVALID_OBJECT_DEFINITION,
                "constraint \"{name}\" conflicts with inherited constraint on relation \"{table}\""
            );
        }
        known.only_inherited = self.is_partition;
        self.notices
            .push((format!("merging constraint \"{name}\" with inherited definition"), None));
        Ok(false)
    }
}

impl Binder<'_> {
    /// What the parents give, locked against changes of their definitions.
    pub(crate) fn inherited(
        &mut self,
        parents: &[pb::Node],
        persistence: Persistence,
        is_partition: bool,
    ) -> Result<Inherited> {
        let mut out = Inherited { is_partition, ..Inherited::default() };
        for node in parents {
            let Some(NodeEnum::RangeVar(range)) = &node.node else { continue };
            let table = self.find_table(&unplaced(range))?;
            self.check_parent(&table, persistence, is_partition)?;
            if out.parents.contains(&table.oid) {
                base::bail!(
                    DUPLICATE_TABLE,
                    "relation \"{}\" would be inherited from more than once",
                    table.name
                );
            }
            self.lock(
                table.oid,
                match is_partition {
                    // Partitions by interval are made while others write.
                    true if table.options.iter().all(|(name, _)| name != "interval") => {
                        LockMode::AccessExclusive
                    }
                    _ => LockMode::ShareUpdateExclusive,
                },
            );
            out.parents.push(table.oid);
            for (_, column) in table.live_columns() {
                if let Err(failure) = out.add_column(column) {
                    out.failure = Some(failure);
                    return Ok(out);
                }
            }
            for constraint in table.constraints.iter().filter(|c| c.is_inheritable()) {
                if let ConstraintKind::Check(sql) = &constraint.kind {
                    out.add_constraint(&constraint.name, sql)?;
                }
            }
        }
        Ok(out)
    }

    pub(crate) fn check_parent(
        &self,
        table: &Table,
        persistence: Persistence,
        is_partition: bool,
    ) -> Result<()> {
        if table.is_partitioned() && !is_partition {
            base::bail!(
                WRONG_OBJECT_TYPE,
                "cannot inherit from partitioned table \"{}\"",
                table.name
            );
        }
        if table.bound.is_some() && !is_partition {
            base::bail!(WRONG_OBJECT_TYPE, "cannot inherit from partition \"{}\"", table.name);
        }
        let kinds = if is_partition {
            &[TableKind::Table][..]
        } else {
            &[TableKind::Table, TableKind::Foreign]
        };
        if !kinds.contains(&table.kind) {
            base::bail!(
                WRONG_OBJECT_TYPE,
                "inherited relation \"{}\" is not a table or foreign table",
                table.name
            );
        }
        let temporary = matches!(persistence, Persistence::Temporary(_));
        if table.is_temporary() && !temporary && is_partition {
            base::bail!(
                WRONG_OBJECT_TYPE,
                "cannot create a permanent relation as partition of temporary relation \"{}\"",
                table.name
            );
        }
        if table.is_temporary() && !temporary {
            base::bail!(
                WRONG_OBJECT_TYPE,
                "cannot inherit from temporary relation \"{}\"",
                table.name
            );
        }
        if temporary && !table.is_temporary() && is_partition {
            base::bail!(
                WRONG_OBJECT_TYPE,
                "cannot create a temporary relation as partition of permanent relation \"{}\"",
                table.name
            );
        }
        if temporary && !table.is_temporary() {
            return Err(base::Error::unsupported("a temporary table with a permanent parent"));
        }
        Ok(())
    }

    /// A CREATE TABLE that ends with an error after the notices of its merged columns.
    pub(crate) fn failed_table(
        &self,
        name: crate::utility::Name,
        persistence: Persistence,
        inherited: Inherited,
        failure: base::Error,
    ) -> crate::utility::Utility {
        crate::utility::Utility::CreateTable {
            method: None,
            of_type: 0,
            foreign: None,
            partition: crate::partition::PartitionClause::default(),
            name,
            columns: Vec::new(),
            constraints: Vec::new(),
            if_not_exists: false,
            indexes: Vec::new(),
            options: Vec::new(),
            persistence,
            inherits: crate::utility::Inherits {
                parents: inherited.parents,
                notices: inherited.notices,
                failure: Some(failure),
            },
        }
    }

    /// Puts the parents' columns and constraints before the statement's own.
    pub(crate) fn merge_own(
        &mut self,
        table: &str,
        inherited: &mut Inherited,
        columns: &mut Vec<ColumnDef>,
        constraints: &mut Vec<ConstraintDef>,
    ) -> Result<()> {
        for (number, own) in std::mem::take(columns).into_iter().enumerate() {
            inherited.merge_column(number, own)?;
        }
        if let Some(name) = inherited.conflicts.first() {
            let column = inherited.columns.iter().find(|c| c.name == *name);
            if column.is_some_and(|c| c.generated) {
                base::bail!(
                    INVALID_COLUMN_DEFINITION,
                    "column \"{name}\" inherits conflicting generation expressions"
                );
            }
            return Err(err!(
                INVALID_COLUMN_DEFINITION,
                "column \"{name}\" inherits conflicting default values"
            )
            .hint("To resolve the conflict, specify a default explicitly."));
        }
        let mut own = Vec::with_capacity(constraints.len());
        for constraint in std::mem::take(constraints) {
            if inherited.merge_constraint(table, &constraint)? {
                own.push(constraint);
            }
        }
        columns.append(&mut inherited.columns);
        constraints.append(&mut inherited.constraints);
        constraints.append(&mut own);
        Ok(())
    }
}

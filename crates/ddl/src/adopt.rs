//! Columns and constraints that a table takes over from a parent, and the link between the two.

use base::Result;
use catalog::{Constraint, ConstraintKind, Object, Table};
use exec::context::ExecContext;

use crate::refresh;

pub(crate) fn put(cx: &mut ExecContext<'_>, table: Table) -> Result<()> {
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

/// A table that goes away is no child any more. `gone`: whether a parent goes, too.
///
/// # Errors
/// Those of the catalog.
pub fn unlink(cx: &mut ExecContext<'_>, table: &Table, gone: impl Fn(u32) -> bool) -> Result<()> {
    if table.bound.is_some() {
        return Ok(());
    }
    for id in table.parents.iter().filter(|id| !gone(**id)) {
        let mut parent = refresh(cx, *id)?;
        parent.children.retain(|child| *child != table.oid);
        put(cx, parent)?;
    }
    Ok(())
}

pub(crate) fn is_check(constraint: &Constraint, sql: &str) -> bool {
    matches!(&constraint.kind, ConstraintKind::Check(other) if other == sql)
}

/// The child's columns that are the parent's, too.
pub fn adopt_columns(table: &mut Table, parent: &Table) -> Result<()> {
    for (_, theirs) in parent.live_columns() {
        let name = &theirs.name;
        let Some((number, _)) = table.column(name) else {
            base::bail!(DATATYPE_MISMATCH, "child table is missing column \"{name}\"");
        };
        let relation = table.name.clone();
        let own = &mut table.columns[usize::from(number) - 1];
        if (own.ty, own.typmod) != (theirs.ty, theirs.typmod) {
            base::bail!(
                DATATYPE_MISMATCH,
                "child table \"{relation}\" has different type for column \"{name}\""
            );
        }
        if own.collation != theirs.collation {
            base::bail!(
                COLLATION_MISMATCH,
                "child table \"{relation}\" has different collation for column \"{name}\""
            );
        }
        if theirs.not_null && !own.not_null {
            base::bail!(
                DATATYPE_MISMATCH,
                "column \"{name}\" in child table must be marked NOT NULL"
            );
        }
        if theirs.generated && !own.generated {
            base::bail!(
                DATATYPE_MISMATCH,
                "column \"{name}\" in child table must be a generated column"
            );
        }
        if theirs.generated && own.default != theirs.default {
            base::bail!(
                DATATYPE_MISMATCH,
                "column \"{name}\" in child table has a conflicting generation expression"
            );
        }
        own.inherited += 1;
        own.only_inherited |= parent.is_partitioned();
    }
    Ok(())
}

/// The child's constraints that are the parent's, too.
pub fn adopt_constraints(table: &mut Table, parent: &Table) -> Result<()> {
    let relation = table.name.clone();
    for theirs in parent.constraints.iter().filter(|c| c.is_inheritable()) {
        let (ConstraintKind::Check(sql), name) = (&theirs.kind, &theirs.name) else { continue };
        let check =
            |c: &&mut Constraint| c.name == *name && matches!(c.kind, ConstraintKind::Check(_));
        let Some(own) = table.constraints.iter_mut().find(check) else {
            base::bail!(DATATYPE_MISMATCH, "child table is missing constraint \"{name}\"");
        };
        if !is_check(own, sql) {
            base::bail!(
                DATATYPE_MISMATCH,
                "child table \"{relation}\" has different definition for check constraint \"{name}\""
            );
        }
        if own.no_inherit {
            base::bail!(
                INVALID_OBJECT_DEFINITION,
                "constraint \"{name}\" conflicts with non-inherited constraint on child table \"{relation}\""
            );
        }
        if own.unvalidated && !theirs.unvalidated {
            base::bail!(
                INVALID_OBJECT_DEFINITION,
                "constraint \"{name}\" conflicts with NOT VALID constraint on child table \"{relation}\""
            );
        }
        own.inherited += 1;
        own.only_inherited |= parent.is_partitioned();
    }
    Ok(())
}

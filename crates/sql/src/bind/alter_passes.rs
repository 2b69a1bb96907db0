//! The passes of ALTER TABLE. A statement's commands run in an order of their own, whatever their order in the text, and
//! each pass is bound when those before it have run: a new default is one for the column's new type.
//!
//! ```text
//!   ALTER a SET DEFAULT 'x', ALTER a TYPE text, DROP COLUMN b
//!     drop        DROP COLUMN b           bound with the statement
//!     types       ALTER a TYPE text       bound over the table without b
//!     others      ALTER a SET DEFAULT     bound over the column of type text
//! ```

use std::sync::Arc;

use base::Result;
use pg_query::{NodeEnum, NodeRef, protobuf as pb};

use crate::later_passes::LaterPasses;
use crate::prepare::PrepareContext;
use crate::utility::Utility;

use super::{Binder, ast, inner};

/// The passes in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pass {
    Drop,
    Types,
    AddColumns,
    ColumnAttributes,
    IndexConstraints,
    Others,
    Rest,
}

impl LaterPasses {
    /// Binds the next pass.
    ///
    /// # Errors
    /// Those of binding.
    pub fn bind(&self, cx: &PrepareContext<'_>) -> Result<Utility> {
        let mut binder = Binder::new(cx, &self.text, &[]);
        let utility = binder.alter_table(&self.stmt)?;
        binder.check_calls()?;
        Ok(utility)
    }
}

/// Splits a statement into its first pass and the rest; None: there is one pass.
pub(super) fn split(stmt: &pb::AlterTableStmt, text: &str) -> Option<(Vec<pb::Node>, LaterPasses)> {
    let read = read_by_using(&stmt.cmds);
    let pass = |node: &pb::Node| match &node.node {
        Some(NodeEnum::AlterTableCmd(cmd)) => pass_of(cmd, &read),
        _ => Pass::Rest,
    };
    let first = stmt.cmds.iter().map(pass).min()?;
    let (now, mut later): (Vec<pb::Node>, Vec<pb::Node>) =
        stmt.cmds.iter().cloned().partition(|node| pass(node) == first);
    if later.is_empty() {
        return None;
    }
    later.sort_by_key(pass);
    let exclusive = !later.iter().all(is_light);
    let stmt = pb::AlterTableStmt { cmds: later, ..stmt.clone() };
    Some((now, LaterPasses { stmt: Arc::new(stmt), text: text.into(), exclusive }))
}

fn pass_of(cmd: &pb::AlterTableCmd, read: &[String]) -> Pass {
    use pb::AlterTableType as T;
    match T::try_from(cmd.subtype).unwrap_or(T::Undefined) {
        // USING reads the rows as they were before the statement.
        T::AtDropColumn if read.contains(&cmd.name) => Pass::Types,
        T::AtColumnDefault if cmd.def.is_none() => Pass::Drop,
        T::AtDropColumn
        | T::AtDropConstraint
        | T::AtDropNotNull
        | T::AtDropIdentity
        | T::AtDropExpression
        | T::AtDropOids => Pass::Drop,
        T::AtAlterColumnType => Pass::Types,
        T::AtAddColumn => Pass::AddColumns,
        T::AtSetNotNull | T::AtSetIdentity => Pass::ColumnAttributes,
        T::AtAddConstraint if is_key(cmd) => Pass::IndexConstraints,
        T::AtAddConstraint | T::AtColumnDefault | T::AtAddIdentity => Pass::Others,
        _ => Pass::Rest,
    }
}

/// Whether a constraint is one that an index keeps.
fn is_key(cmd: &pb::AlterTableCmd) -> bool {
    use pb::ConstrType as C;
    let Some(NodeEnum::Constraint(c)) = inner(&cmd.def) else { return false };
    matches!(C::try_from(c.contype), Ok(C::ConstrPrimary | C::ConstrUnique | C::ConstrExclusion))
}

/// The columns that USING of the commands name.
fn read_by_using(cmds: &[pb::Node]) -> Vec<String> {
    let mut out = Vec::new();
    for node in cmds {
        let Some(NodeEnum::AlterTableCmd(cmd)) = &node.node else { continue };
        let Some(NodeEnum::ColumnDef(def)) = inner(&cmd.def) else { continue };
        let Some(using) = inner(&def.raw_default) else { continue };
        for (found, ..) in using.nodes() {
            if let NodeRef::ColumnRef(c) = found {
                out.extend(c.fields.last().map(|f| ast::string(f).to_owned()));
            }
        }
        if let NodeEnum::ColumnRef(c) = using {
            out.extend(c.fields.last().map(|f| ast::string(f).to_owned()));
        }
    }
    out
}

/// Whether a command lets readers and writers of the table be.
fn is_light(node: &pb::Node) -> bool {
    use pb::AlterTableType as T;
    let Some(NodeEnum::AlterTableCmd(cmd)) = &node.node else { return true };
    matches!(
        T::try_from(cmd.subtype),
        Ok(T::AtSetStatistics
            | T::AtSetRelOptions
            | T::AtResetRelOptions
            | T::AtSetOptions
            | T::AtResetOptions
            | T::AtClusterOn
            | T::AtDropCluster
            | T::AtValidateConstraint)
    )
}

//! The part of an ALTER TABLE that is bound when what stands before it has run ([`crate::bind::alter_passes`]).

use std::sync::Arc;

use pg_query::{NodeEnum, protobuf as pb};

/// The commands of an ALTER TABLE that are bound and run after its first ones.
#[derive(Clone)]
pub struct LaterPasses {
    /// Their statement.
    pub(crate) stmt: Arc<pb::AlterTableStmt>,
    /// The text that the whole statement stands in.
    pub(crate) text: Arc<str>,
    /// Whether a command among them needs the table for itself.
    pub exclusive: bool,
}

impl std::fmt::Debug for LaterPasses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} later commands", self.stmt.cmds.len())
    }
}

impl LaterPasses {
    /// The columns that get other types.
    pub fn typed_columns(&self) -> impl Iterator<Item = &str> {
        self.stmt.cmds.iter().filter_map(|node| match &node.node {
            Some(NodeEnum::AlterTableCmd(cmd))
                if cmd.subtype == pb::AlterTableType::AtAlterColumnType as i32 =>
            {
                Some(cmd.name.as_str())
            }
            _ => None,
        })
    }
}

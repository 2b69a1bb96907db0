//! Event triggers: fired by statements that define something.

use serde::{Deserialize, Serialize};

use crate::object::id::Id;

/// An event trigger.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventTrigger {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// `ddl_command_start`, `ddl_command_end`, `sql_drop` or `table_rewrite`.
    pub event: String,
    /// Owner's oid.
    pub owner: Id,
    /// Function that it calls.
    pub function: Id,
    /// As of a trigger.
    pub enabled: char,
    /// WHEN TAG IN: command tags, in capitals; none: all.
    #[serde(default)]
    pub tags: Vec<String>,
}

impl EventTrigger {
    /// Whether it fires for a command's tag in a session whose `session_replication_role` is this.
    pub fn is_for(&self, tag: &str, replica: bool) -> bool {
        let enabled = match self.enabled {
            'A' => true,
            'R' => replica,
            'D' => false,
            _ => !replica,
        };
        enabled && (self.tags.is_empty() || self.tags.iter().any(|t| t == tag))
    }
}

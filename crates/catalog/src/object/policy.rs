//! Policies of row-level security: part of the table whose rows they guard.

use serde::{Deserialize, Serialize};

use crate::object::id::Id;

/// A policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// AS PERMISSIVE; else AS RESTRICTIVE.
    pub permissive: bool,
    /// FOR: `*` (ALL), `r` (SELECT), `a` (INSERT), `w` (UPDATE), `d` (DELETE).
    pub command: char,
    /// TO; 0: PUBLIC.
    pub roles: Vec<Id>,
    /// USING: a query of one row of the table whose only column is the condition.
    #[serde(default)]
    pub using: Option<String>,
    /// WITH CHECK, in the same form.
    #[serde(default)]
    pub check: Option<String>,
    /// Objects that both use: object, and column from 1 or 0 for the whole.
    #[serde(default)]
    pub uses: Vec<(Id, u16)>,
}

impl Policy {
    /// Whether it is about a command (one of the letters other than `*`).
    pub fn is_for(&self, command: char) -> bool {
        self.command == '*' || self.command == command
    }

    /// The word behind FOR.
    pub fn command_word(&self) -> &'static str {
        match self.command {
            'r' => "SELECT",
            'a' => "INSERT",
            'w' => "UPDATE",
            'd' => "DELETE",
            _ => "ALL",
        }
    }
}

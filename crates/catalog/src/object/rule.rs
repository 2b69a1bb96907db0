//! Rewrite rules: part of the relation whose statements they change. (A view's own query is its ON SELECT rule in
//! `pg_rewrite`; it is kept as [`super::ViewQuery`].)

use serde::{Deserialize, Serialize};

use super::Table;
use crate::object::id::Id;

/// The statements that a rule is about, as `pg_rewrite.ev_type` numbers them.
pub mod rule_event {
    /// UPDATE.
    pub const UPDATE: char = '2';
    /// INSERT.
    pub const INSERT: char = '3';
    /// DELETE.
    pub const DELETE: char = '4';
}

/// A rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// One of [`rule_event`].
    pub event: char,
    /// INSTEAD; else ALSO.
    #[serde(default)]
    pub instead: bool,
    /// `O` (enabled), `D` (disabled), `R` (REPLICA), `A` (ALWAYS).
    pub enabled: char,
    /// WHERE: an expression over `old` and `new`.
    #[serde(default)]
    pub condition: Option<String>,
    /// The statements, each as SQL that means the same under any search path; none: NOTHING.
    #[serde(default)]
    pub actions: Vec<String>,
    /// Objects that they use: object, and column from 1 or 0 for the whole.
    #[serde(default)]
    pub uses: Vec<(Id, u16)>,
}

impl Rule {
    /// The word behind ON.
    pub fn event_word(&self) -> &'static str {
        match self.event {
            rule_event::UPDATE => "UPDATE",
            rule_event::INSERT => "INSERT",
            _ => "DELETE",
        }
    }

    /// Whether it counts for a session with this `session_replication_role`.
    pub fn is_on(&self, replica: bool) -> bool {
        match self.enabled {
            'D' => false,
            'A' => true,
            'R' => replica,
            _ => !replica,
        }
    }
}

impl Table {
    /// Its rule of this name.
    pub fn rule(&self, name: &str) -> Option<&Rule> {
        self.rules.iter().find(|r| r.name == name)
    }

    /// Whether it has an INSTEAD rule without a condition for an event ([`rule_event`]).
    pub fn has_instead_rule(&self, event: char) -> bool {
        let fits = |r: &Rule| r.event == event && r.instead && r.condition.is_none();
        self.rules.iter().any(|r| fits(r) && r.enabled != 'D')
    }
}

//! Triggers: part of the table that they stand on.

use serde::{Deserialize, Serialize};

use crate::object::id::Id;

/// Bits of `pg_trigger.tgtype`.
pub mod trigger_type {
    /// FOR EACH ROW.
    pub const ROW: i16 = 1;
    /// BEFORE.
    pub const BEFORE: i16 = 1 << 1;
    /// INSERT.
    pub const INSERT: i16 = 1 << 2;
    /// DELETE.
    pub const DELETE: i16 = 1 << 3;
    /// UPDATE.
    pub const UPDATE: i16 = 1 << 4;
    /// TRUNCATE.
    pub const TRUNCATE: i16 = 1 << 5;
    /// INSTEAD OF.
    pub const INSTEAD: i16 = 1 << 6;
}

/// A trigger.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Function that it calls.
    pub function: Id,
    /// When and for what it fires: bits of [`trigger_type`].
    pub kind: i16,
    /// UPDATE OF: columns from 1; none: all.
    #[serde(default)]
    pub columns: Vec<u16>,
    /// `O` (where rows are changed first), `R` (on replicas), `A` (always), `D` (never).
    pub enabled: char,
    /// The oid of a constraint trigger's constraint; 0: it is none.
    #[serde(default)]
    pub constraint: Id,
    /// FROM of a constraint trigger: the other table, or 0.
    #[serde(default)]
    pub other: Id,
    /// DEFERRABLE.
    #[serde(default)]
    pub deferrable: bool,
    /// INITIALLY DEFERRED.
    #[serde(default)]
    pub deferred: bool,
    /// Arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// WHEN, as SQL over `old` and `new`.
    #[serde(default)]
    pub when: Option<String>,
    /// Objects that WHEN names: functions and types, and columns of the table (its oid, from 1).
    #[serde(default)]
    pub uses: Vec<(Id, u16)>,
    /// The trigger of the partitioned table of which it is a part; 0: none.
    #[serde(default)]
    pub parent: Id,
    /// REFERENCING OLD TABLE.
    #[serde(default)]
    pub old_table: Option<String>,
    /// REFERENCING NEW TABLE.
    #[serde(default)]
    pub new_table: Option<String>,
}

impl Trigger {
    /// Whether all of these bits are its kind's.
    pub fn has(&self, bits: i16) -> bool {
        self.kind & bits == bits
    }

    /// FOR EACH ROW.
    pub fn is_row(&self) -> bool {
        self.has(trigger_type::ROW)
    }

    /// Neither BEFORE nor INSTEAD OF.
    pub fn is_after(&self) -> bool {
        self.kind & (trigger_type::BEFORE | trigger_type::INSTEAD) == 0
    }

    /// Whether it fires in a session whose `session_replication_role` is this.
    pub fn is_enabled(&self, replica: bool) -> bool {
        match self.enabled {
            'A' => true,
            'R' => replica,
            'D' => false,
            _ => !replica,
        }
    }

    /// The events' words, in PostgreSQL's order.
    pub fn events(&self) -> impl Iterator<Item = &'static str> {
        use trigger_type::{DELETE, INSERT, TRUNCATE, UPDATE};
        let all =
            [(INSERT, "INSERT"), (DELETE, "DELETE"), (UPDATE, "UPDATE"), (TRUNCATE, "TRUNCATE")];
        let kind = self.kind;
        all.into_iter().filter(move |(bit, _)| kind & bit != 0).map(|(_, word)| word)
    }

    /// BEFORE, AFTER or INSTEAD OF.
    pub fn timing(&self) -> &'static str {
        match self.kind & (trigger_type::BEFORE | trigger_type::INSTEAD) {
            0 => "AFTER",
            trigger_type::BEFORE => "BEFORE",
            _ => "INSTEAD OF",
        }
    }
}

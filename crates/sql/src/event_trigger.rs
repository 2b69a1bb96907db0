//! Event triggers: what their statements say, and which statements fire them.

use crate::name::Name;
use crate::role::RoleRef;

/// A statement about event triggers.
#[derive(Clone, Debug)]
pub enum EventTriggerStatement {
    /// CREATE EVENT TRIGGER.
    Create {
        /// Name.
        name: String,
        /// ON.
        event: String,
        /// WHEN: variables and their values, as written.
        filters: Vec<(String, Vec<String>)>,
        /// EXECUTE FUNCTION.
        function: Name,
    },
    /// ENABLE and DISABLE: what `pg_event_trigger.evtenabled` becomes.
    Enable(String, char),
    /// RENAME TO.
    Rename(String, String),
    /// OWNER TO.
    Owner(String, RoleRef),
    /// DROP EVENT TRIGGER.
    Drop {
        /// Which.
        names: Vec<String>,
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
    },
}

impl EventTriggerStatement {
    /// Its command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            EventTriggerStatement::Create { .. } => "CREATE EVENT TRIGGER",
            EventTriggerStatement::Drop { .. } => "DROP EVENT TRIGGER",
            _ => "ALTER EVENT TRIGGER",
        }
    }
}

/// Command tags that fire event triggers: kinds of objects with the verbs that they have.
const KINDS: [(&str, &str); 39] = [
    ("ACCESS METHOD", "cd"),
    ("AGGREGATE", "acd"),
    ("CAST", "cd"),
    ("COLLATION", "acd"),
    ("CONSTRAINT", "c"),
    ("CONVERSION", "acd"),
    ("DEFAULT PRIVILEGES", "a"),
    ("DOMAIN", "acd"),
    ("EXTENSION", "acd"),
    ("FOREIGN DATA WRAPPER", "acd"),
    ("FOREIGN TABLE", "acd"),
    ("FUNCTION", "acd"),
    ("INDEX", "acd"),
    ("LANGUAGE", "acd"),
    ("LARGE OBJECT", "a"),
    ("MATERIALIZED VIEW", "acd"),
    ("OPERATOR", "acd"),
    ("OPERATOR CLASS", "acd"),
    ("OPERATOR FAMILY", "acd"),
    ("OWNED", "d"),
    ("POLICY", "acd"),
    ("PROCEDURE", "acd"),
    ("PUBLICATION", "acd"),
    ("ROUTINE", "ad"),
    ("RULE", "acd"),
    ("SCHEMA", "acd"),
    ("SEQUENCE", "acd"),
    ("SERVER", "acd"),
    ("STATISTICS", "acd"),
    ("SUBSCRIPTION", "acd"),
    ("TABLE", "acd"),
    ("TABLE AS", "c"),
    ("TEXT SEARCH CONFIGURATION", "acd"),
    ("TEXT SEARCH DICTIONARY", "acd"),
    ("TEXT SEARCH PARSER", "acd"),
    ("TEXT SEARCH TEMPLATE", "acd"),
    ("TRANSFORM", "acd"),
    ("TRIGGER", "acd"),
    ("TYPE", "acd"),
];

/// Whether statements with this tag fire event triggers.
pub fn fires(tag: &str) -> bool {
    let others = [
        "COMMENT",
        "GRANT",
        "IMPORT FOREIGN SCHEMA",
        "REFRESH MATERIALIZED VIEW",
        "REVOKE",
        "SECURITY LABEL",
        "SELECT INTO",
        "CREATE USER MAPPING",
        "ALTER USER MAPPING",
        "DROP USER MAPPING",
        "CREATE VIEW",
        "ALTER VIEW",
        "DROP VIEW",
    ];
    if others.contains(&tag) {
        return true;
    }
    let Some((verb, kind)) = tag.split_once(' ') else { return false };
    let letter = match verb {
        "CREATE" => 'c',
        "ALTER" => 'a',
        "DROP" => 'd',
        _ => return false,
    };
    KINDS.iter().any(|(known, verbs)| *known == kind && verbs.contains(letter))
}

/// Whether there is a command with this tag at all.
pub fn is_tag(tag: &str) -> bool {
    let plain = [
        "ANALYZE",
        "BEGIN",
        "CALL",
        "CHECKPOINT",
        "CLOSE",
        "CLUSTER",
        "COMMIT",
        "COPY",
        "DEALLOCATE",
        "DECLARE CURSOR",
        "DELETE",
        "DISCARD",
        "DO",
        "EXECUTE",
        "EXPLAIN",
        "FETCH",
        "GRANT ROLE",
        "INSERT",
        "LISTEN",
        "LOAD",
        "LOCK TABLE",
        "MERGE",
        "MOVE",
        "NOTIFY",
        "PREPARE",
        "REASSIGN OWNED",
        "REINDEX",
        "RESET",
        "REVOKE ROLE",
        "ROLLBACK",
        "SAVEPOINT",
        "SELECT",
        "SET",
        "SHOW",
        "TRUNCATE TABLE",
        "UNLISTEN",
        "UPDATE",
        "VACUUM",
        "ALTER SYSTEM",
    ];
    let shared = ["DATABASE", "ROLE", "TABLESPACE", "EVENT TRIGGER"];
    let of_shared = |tag: &str| {
        let kind =
            tag.split_once(' ').filter(|(verb, _)| matches!(*verb, "CREATE" | "ALTER" | "DROP"));
        kind.is_some_and(|(_, kind)| shared.contains(&kind))
    };
    fires(tag) || plain.contains(&tag) || of_shared(tag)
}

//! COMMENT ON, bound as far as the grammar and types go.

use base::Oid;

use crate::utility::{Name, RoutineRef};

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct CommentStatement {
    /// What it is about.
    pub target: CommentTarget,
    /// What it says; None removes it.
    pub text: Option<String>,
}

/// What has a comment.
#[derive(Clone, Debug)]
pub enum CommentTarget {
    /// An object with a name, or a part of it.
    Named {
        /// `TABLE`, `COLUMN`, …
        kind: &'static str,
        /// Its name; that of the table, domain or access method that it belongs to.
        object: Name,
        /// The name of the column, constraint, rule, … or operator class.
        part: Option<String>,
    },
    /// A type.
    Type {
        /// It is to be a domain: the type as written.
        domain: Option<String>,
        /// Which.
        ty: Oid,
    },
    /// A function, procedure or aggregate.
    Routine(RoutineRef),
    /// A cast.
    Cast(Oid, Oid),
    /// An operator.
    Operator {
        /// Name.
        name: Name,
        /// The left side's type; None: it stands before its operand.
        left: Option<Oid>,
        /// The right side's type.
        right: Oid,
    },
    /// A transform of a type for a language.
    Transform(Oid, String),
}

//! Statements about collations, bound as far as the grammar goes. DROP, COMMENT and OWNER are those of
//! all objects.

use crate::name::Name;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub enum CollationStatement {
    /// CREATE COLLATION.
    Create {
        /// Name.
        name: Name,
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// What it is to be.
        definition: CollationDef,
    },
    /// ALTER COLLATION … REFRESH VERSION.
    Refresh(Name),
    /// ALTER COLLATION … RENAME TO.
    Rename(Name, String),
    /// ALTER COLLATION … SET SCHEMA.
    SetSchema(Name, String),
}

/// What CREATE COLLATION says.
#[derive(Clone, Debug)]
pub enum CollationDef {
    /// FROM another one.
    Copy(Name),
    /// `(…)`.
    Options {
        /// LC_COLLATE and LC_CTYPE of the C library.
        libc: Option<(String, String)>,
        /// The locale of ICU.
        icu_locale: Option<String>,
        /// DETERMINISTIC.
        deterministic: bool,
        /// VERSION.
        version: Option<String>,
    },
}

impl CollationStatement {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            CollationStatement::Create { .. } => "CREATE COLLATION",
            _ => "ALTER COLLATION",
        }
    }
}

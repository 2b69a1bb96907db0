//! Statements about types that users make.

use base::Oid;

use crate::utility::{ColumnDef, Name};

/// A statement about types.
#[derive(Clone, Debug)]
pub enum TypeStatement {
    /// CREATE TYPE … AS ENUM.
    CreateEnum {
        /// Name.
        name: Name,
        /// Labels in order.
        labels: Vec<String>,
    },
    /// ALTER TYPE … ADD VALUE.
    AddValue {
        /// The enum.
        name: Name,
        /// New label.
        label: String,
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// The label that it stands beside, and whether after it; None: at the end.
        neighbor: Option<(String, bool)>,
    },
    /// ALTER TYPE … RENAME VALUE.
    RenameValue {
        /// The enum.
        name: Name,
        /// Label.
        from: String,
        /// New label.
        to: String,
    },
    /// CREATE DOMAIN.
    CreateDomain(Box<DomainDef>),
    /// ALTER DOMAIN.
    AlterDomain {
        /// The domain.
        name: Name,
        /// What.
        step: AlterDomain,
    },
    /// CREATE TYPE … AS (…).
    CreateComposite {
        /// Name.
        name: Name,
        /// Its columns.
        columns: Vec<ColumnDef>,
    },
    /// ALTER TYPE … ADD, DROP, ALTER ATTRIBUTE.
    AlterComposite {
        /// The type.
        name: Name,
        /// What, in order.
        steps: Vec<AlterComposite>,
    },
    /// ALTER TYPE … RENAME ATTRIBUTE.
    RenameAttribute {
        /// The type.
        name: Name,
        /// Column.
        from: String,
        /// Its new name.
        to: String,
    },
    /// ALTER TYPE, DOMAIN … RENAME TO.
    Rename {
        /// TYPE or DOMAIN.
        kind: &'static str,
        /// The type.
        name: Name,
        /// New name.
        to: String,
    },
    /// ALTER TYPE, DOMAIN … SET SCHEMA.
    SetSchema {
        /// TYPE or DOMAIN.
        kind: &'static str,
        /// The type.
        name: Name,
        /// New schema.
        to: String,
    },
}

/// A domain's definition.
#[derive(Clone, Debug)]
pub struct DomainDef {
    /// Name.
    pub name: Name,
    /// The type below.
    pub base: Oid,
    /// Its typmod.
    pub typmod: i32,
    /// COLLATE; 0: that of the type below.
    pub collation: u32,
    /// NOT NULL.
    pub not_null: bool,
    /// DEFAULT, as SQL that has been checked against the type.
    pub default: Option<String>,
    /// CHECKs.
    pub checks: Vec<DomainCheck>,
    /// Objects that default and checks use.
    pub uses: Vec<u32>,
}

/// A domain's CHECK.
#[derive(Clone, Debug)]
pub struct DomainCheck {
    /// Given name.
    pub name: Option<String>,
    /// Expression over VALUE, as SQL that has been bound.
    pub sql: String,
    /// NOT VALID.
    pub unvalidated: bool,
}

/// See [`TypeStatement::AlterDomain`].
#[derive(Clone, Debug)]
pub enum AlterDomain {
    /// SET or DROP DEFAULT: its SQL, and what it uses.
    Default(Option<String>, Vec<u32>),
    /// SET or DROP NOT NULL.
    NotNull(bool),
    /// ADD constraint, and what it uses.
    Add(DomainCheck, Vec<u32>),
    /// DROP CONSTRAINT.
    Drop {
        /// Name.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// VALIDATE CONSTRAINT.
    Validate(String),
    /// RENAME CONSTRAINT.
    Rename {
        /// Name.
        from: String,
        /// New name.
        to: String,
    },
}

/// See [`TypeStatement::AlterComposite`].
#[derive(Clone, Debug)]
pub enum AlterComposite {
    /// ADD ATTRIBUTE.
    Add(ColumnDef),
    /// DROP ATTRIBUTE.
    Drop {
        /// Name.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// ALTER ATTRIBUTE … TYPE.
    Type {
        /// Name.
        name: String,
        /// New type.
        ty: Oid,
        /// New typmod.
        typmod: i32,
    },
}

impl TypeStatement {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            TypeStatement::CreateEnum { .. } | TypeStatement::CreateComposite { .. } => {
                "CREATE TYPE"
            }
            TypeStatement::CreateDomain(_) => "CREATE DOMAIN",
            TypeStatement::AlterDomain { .. } => "ALTER DOMAIN",
            TypeStatement::Rename { kind: "DOMAIN", .. }
            | TypeStatement::SetSchema { kind: "DOMAIN", .. } => "ALTER DOMAIN",
            _ => "ALTER TYPE",
        }
    }
}

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
    /// CREATE TYPE with a name only.
    CreateShell(Name),
    /// CREATE TYPE with functions.
    CreateBase(Box<BaseDef>),
    /// ALTER TYPE … SET.
    SetBase(BaseChange),
    /// CREATE TYPE … AS RANGE.
    CreateRange(Box<RangeDef>),
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
        /// CASCADE: tables of the type follow.
        cascade: bool,
    },
    /// ALTER TYPE … RENAME ATTRIBUTE.
    RenameAttribute {
        /// The type.
        name: Name,
        /// Column.
        from: String,
        /// Its new name.
        to: String,
        /// CASCADE: tables of the type follow.
        cascade: bool,
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
            TypeStatement::CreateEnum { .. }
            | TypeStatement::CreateComposite { .. }
            | TypeStatement::CreateShell(_)
            | TypeStatement::CreateBase(_)
            | TypeStatement::CreateRange(_) => "CREATE TYPE",
            TypeStatement::CreateDomain(_) => "CREATE DOMAIN",
            TypeStatement::AlterDomain { .. } => "ALTER DOMAIN",
            TypeStatement::Rename { kind: "DOMAIN", .. }
            | TypeStatement::SetSchema { kind: "DOMAIN", .. } => "ALTER DOMAIN",
            _ => "ALTER TYPE",
        }
    }
}

/// CREATE TYPE with functions.
#[derive(Clone, Debug, Default)]
pub struct BaseDef {
    /// Name.
    pub name: Option<Name>,
    /// Input, output, receive, send, typmod input, typmod output, analyze, subscript.
    pub functions: [Option<Name>; 8],
    /// LIKE.
    pub like: Option<Oid>,
    /// INTERNALLENGTH; -1: variable.
    pub length: Option<i16>,
    /// PASSEDBYVALUE.
    pub by_value: Option<bool>,
    /// ALIGNMENT, as `pg_type.typalign`.
    pub align: Option<char>,
    /// STORAGE, as `pg_type.typstorage`.
    pub storage: Option<char>,
    /// CATEGORY.
    pub category: Option<char>,
    /// PREFERRED.
    pub preferred: bool,
    /// DEFAULT.
    pub default: Option<String>,
    /// ELEMENT.
    pub element: Option<Oid>,
    /// DELIMITER.
    pub delimiter: Option<char>,
    /// COLLATABLE.
    pub collatable: bool,
    /// Attributes that there are not, and where they are written.
    pub unknown: Vec<(String, u32)>,
}

/// ALTER TYPE … SET.
#[derive(Clone, Debug)]
pub struct BaseChange {
    /// The type.
    pub name: Name,
    /// STORAGE, as `pg_type.typstorage`.
    pub storage: Option<char>,
    /// By places in [`BaseDef::functions`]; None: NONE.
    pub functions: Vec<(usize, Option<Name>)>,
}

/// CREATE TYPE … AS RANGE.
#[derive(Clone, Debug)]
pub struct RangeDef {
    /// Name.
    pub name: Name,
    /// SUBTYPE.
    pub subtype: Option<Oid>,
    /// SUBTYPE_OPCLASS.
    pub class: Option<Name>,
    /// COLLATION.
    pub collation: Option<u32>,
    /// CANONICAL.
    pub canonical: Option<Name>,
    /// SUBTYPE_DIFF.
    pub diff: Option<Name>,
    /// MULTIRANGE_TYPE_NAME.
    pub multirange: Option<Name>,
}

impl RangeDef {
    /// A range type of which only the name is known.
    pub fn new(name: Name) -> RangeDef {
        RangeDef {
            name,
            subtype: None,
            class: None,
            collation: None,
            canonical: None,
            diff: None,
            multirange: None,
        }
    }
}

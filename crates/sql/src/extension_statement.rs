//! CREATE, ALTER and DROP EXTENSION.

/// See the module's documentation.
#[derive(Clone, Debug)]
pub enum ExtensionStatement {
    /// CREATE EXTENSION.
    Create(CreateExtension),
    /// ALTER EXTENSION … UPDATE.
    Update {
        /// Name.
        name: String,
        /// TO; None: the control file's default.
        to: Option<String>,
    },
    /// ALTER EXTENSION … ADD and DROP.
    Member {
        /// Name.
        name: String,
        /// ADD.
        add: bool,
        /// The object.
        object: MemberObject,
    },
    /// ALTER EXTENSION … SET SCHEMA.
    SetSchema {
        /// Name.
        name: String,
        /// The new schema.
        to: String,
    },
    /// DROP EXTENSION.
    Drop {
        /// Names.
        names: Vec<String>,
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
    },
    /// LOAD.
    Load(String),
}

/// CREATE EXTENSION.
#[derive(Clone, Debug, Default)]
pub struct CreateExtension {
    /// Name.
    pub name: String,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// SCHEMA.
    pub schema: Option<String>,
    /// VERSION.
    pub version: Option<String>,
    /// CASCADE.
    pub cascade: bool,
}

/// An object as `pg_get_object_address` names it.
#[derive(Clone, Debug)]
pub struct MemberObject {
    /// Its kind.
    pub kind: String,
    /// Its name in parts.
    pub names: Vec<String>,
    /// Types that belong to its name.
    pub args: Vec<String>,
}

impl ExtensionStatement {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            ExtensionStatement::Create(_) => "CREATE EXTENSION",
            ExtensionStatement::Drop { .. } => "DROP EXTENSION",
            ExtensionStatement::Load(_) => "LOAD",
            _ => "ALTER EXTENSION",
        }
    }
}

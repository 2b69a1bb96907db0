//! Statements about databases, bound as far as the grammar goes.

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq)]
pub enum DatabaseStatement {
    /// CREATE DATABASE.
    Create {
        /// Name.
        name: String,
        /// What it is to be.
        options: Box<NewDatabase>,
    },
    /// DROP DATABASE.
    Drop {
        /// Name.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
        /// FORCE: the sessions in it are ended.
        force: bool,
    },
    /// ALTER DATABASE with options.
    Alter {
        /// Name.
        name: String,
        /// What changes.
        options: DatabaseOptions,
    },
    /// ALTER DATABASE … SET TABLESPACE.
    SetTablespace {
        /// Name.
        name: String,
        /// Where it goes.
        tablespace: String,
    },
    /// ALTER DATABASE … RENAME.
    Rename {
        /// From.
        from: String,
        /// To.
        to: String,
    },
    /// ALTER DATABASE … REFRESH COLLATION VERSION.
    RefreshCollation {
        /// Name.
        name: String,
    },
}

/// What CREATE and ALTER DATABASE can both say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DatabaseOptions {
    /// IS_TEMPLATE.
    pub template: Option<bool>,
    /// ALLOW_CONNECTIONS.
    pub connect: Option<bool>,
    /// CONNECTION LIMIT.
    pub connection_limit: Option<i32>,
}

/// What CREATE DATABASE says; None: DEFAULT.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewDatabase {
    /// What ALTER DATABASE can say, too.
    pub options: DatabaseOptions,
    /// OWNER.
    pub owner: Option<String>,
    /// TEMPLATE.
    pub template: Option<String>,
    /// STRATEGY.
    pub strategy: Option<String>,
    /// LC_COLLATE, or LOCALE.
    pub collate: Option<String>,
    /// LC_CTYPE, or LOCALE.
    pub ctype: Option<String>,
    /// LOCALE_PROVIDER = icu.
    pub icu: bool,
    /// ICU_LOCALE.
    pub icu_locale: Option<String>,
    /// TABLESPACE.
    pub tablespace: Option<String>,
    /// Where LOCATION stands, which means nothing any more.
    pub location: Option<u32>,
}

impl DatabaseStatement {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            DatabaseStatement::Create { .. } => "CREATE DATABASE",
            DatabaseStatement::Drop { .. } => "DROP DATABASE",
            _ => "ALTER DATABASE",
        }
    }

    /// What can't be part of a transaction block, as its error calls it.
    pub fn stands_alone(&self) -> Option<&'static str> {
        match self {
            DatabaseStatement::Create { .. } | DatabaseStatement::Drop { .. } => Some(self.tag()),
            DatabaseStatement::SetTablespace { .. } => Some("ALTER DATABASE SET TABLESPACE"),
            _ => None,
        }
    }
}

//! Statements about roles and rights, bound as far as the grammar goes: names are looked up when they
//! run, in the order in which PostgreSQL does.

use catalog::AclKind;

use crate::name::Name;

/// A role as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleRef {
    /// By name.
    Named(String),
    /// CURRENT_USER, CURRENT_ROLE.
    Current,
    /// SESSION_USER.
    Session,
    /// PUBLIC.
    Public,
}

/// An option of CREATE ROLE and ALTER ROLE.
#[derive(Clone, Debug, PartialEq)]
pub enum RoleOption {
    /// SUPERUSER.
    Superuser(bool),
    /// CREATEDB.
    CreateDb(bool),
    /// CREATEROLE.
    CreateRole(bool),
    /// INHERIT.
    Inherit(bool),
    /// LOGIN.
    Login(bool),
    /// REPLICATION.
    Replication(bool),
    /// BYPASSRLS.
    BypassRls(bool),
    /// CONNECTION LIMIT.
    ConnectionLimit(i32),
    /// PASSWORD; None: NULL.
    Password(Option<String>),
    /// VALID UNTIL.
    ValidUntil(String),
    /// IN ROLE: becomes a member of these.
    InRole(Vec<RoleRef>),
    /// ROLE, USER: these become members.
    Members(Vec<RoleRef>),
    /// ADMIN: and may make others members.
    Admins(Vec<RoleRef>),
}

/// What GRANT and REVOKE are about.
#[derive(Clone, Debug, PartialEq)]
pub enum GrantObjects {
    /// Tables and sequences.
    Relations(Vec<Name>),
    /// Sequences.
    Sequences(Vec<Name>),
    /// Functions with the argument types, when given.
    Functions(Vec<(Name, Option<Vec<base::Oid>>)>),
    /// Databases.
    Databases(Vec<String>),
    /// Schemas.
    Schemas(Vec<String>),
    /// Types and domains.
    Types(Vec<Name>),
    /// Languages.
    Languages(Vec<String>),
    /// Tablespaces.
    Tablespaces(Vec<String>),
    /// Foreign-data wrappers.
    Wrappers(Vec<String>),
    /// Foreign servers.
    Servers(Vec<String>),
    /// ALL … IN SCHEMA.
    AllIn(AclKind, Vec<String>),
    /// Objects made later (ALTER DEFAULT PRIVILEGES).
    Later {
        /// What kind.
        kind: AclKind,
        /// By these roles; none: by the current one.
        roles: Vec<RoleRef>,
        /// In these schemas; none: anywhere.
        schemas: Vec<String>,
    },
}

/// GRANT and REVOKE of rights.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// GRANT, else REVOKE.
    pub grant: bool,
    /// Rights as words, with their columns; none: ALL.
    pub privileges: Vec<(String, Vec<String>)>,
    /// ALL with columns.
    pub all_columns: Vec<String>,
    /// On what.
    pub target: GrantObjects,
    /// To whom or from whom.
    pub grantees: Vec<RoleRef>,
    /// WITH GRANT OPTION; GRANT OPTION FOR.
    pub option: bool,
    /// GRANTED BY.
    pub grantor: Option<RoleRef>,
    /// CASCADE.
    pub cascade: bool,
}

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq)]
pub enum RoleStatement {
    /// CREATE ROLE, USER, GROUP.
    Create {
        /// Name.
        name: String,
        /// Options; LOGIN is written out for CREATE USER.
        options: Vec<RoleOption>,
    },
    /// ALTER ROLE; ALTER GROUP … ADD and DROP USER are memberships.
    Alter {
        /// The role.
        role: RoleRef,
        /// Options.
        options: Vec<RoleOption>,
    },
    /// ALTER ROLE … RENAME.
    Rename {
        /// From.
        from: String,
        /// To.
        to: String,
    },
    /// ALTER ROLE … [IN DATABASE …] SET, ALTER DATABASE … SET.
    Set {
        /// For this role; None: all.
        role: Option<RoleRef>,
        /// In this database; None: all.
        database: Option<String>,
        /// Name (None: RESET ALL) and value (None: RESET).
        setting: (Option<String>, Option<String>),
    },
    /// DROP ROLE.
    Drop {
        /// Roles.
        roles: Vec<RoleRef>,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// GRANT and REVOKE of memberships.
    Membership {
        /// GRANT, else REVOKE.
        grant: bool,
        /// Roles.
        roles: Vec<String>,
        /// Members.
        members: Vec<RoleRef>,
        /// WITH ADMIN OPTION; ADMIN OPTION FOR.
        admin: bool,
        /// GRANTED BY.
        grantor: Option<RoleRef>,
        /// By ALTER GROUP, whose tag is another.
        group: bool,
    },
    /// GRANT and REVOKE of rights, ALTER DEFAULT PRIVILEGES.
    Grant(Grant),
    /// ALTER … OWNER TO of what isn't a table.
    Owner {
        /// Kind of the object: SCHEMA, DATABASE, …
        kind: &'static str,
        /// The object.
        object: Name,
        /// The new owner.
        owner: RoleRef,
    },
    /// REASSIGN OWNED.
    Reassign {
        /// What these own.
        roles: Vec<RoleRef>,
        /// Goes to this one.
        to: RoleRef,
    },
    /// DROP OWNED.
    DropOwned {
        /// What these own.
        roles: Vec<RoleRef>,
        /// CASCADE.
        cascade: bool,
    },
}

impl RoleStatement {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            RoleStatement::Create { .. } => "CREATE ROLE",
            RoleStatement::Alter { .. } | RoleStatement::Rename { .. } => "ALTER ROLE",
            RoleStatement::Set { role: None, database: Some(_), .. } => "ALTER DATABASE",
            RoleStatement::Set { .. } => "ALTER ROLE",
            RoleStatement::Drop { .. } => "DROP ROLE",
            RoleStatement::Membership { group: true, .. } => "ALTER ROLE",
            RoleStatement::Membership { grant: true, .. } => "GRANT ROLE",
            RoleStatement::Membership { .. } => "REVOKE ROLE",
            RoleStatement::Grant(Grant { target: GrantObjects::Later { .. }, .. }) => {
                "ALTER DEFAULT PRIVILEGES"
            }
            RoleStatement::Grant(Grant { grant: true, .. }) => "GRANT",
            RoleStatement::Grant(_) => "REVOKE",
            RoleStatement::Owner { kind: "SCHEMA", .. } => "ALTER SCHEMA",
            RoleStatement::Owner { kind: "PUBLICATION", .. } => "ALTER PUBLICATION",
            RoleStatement::Owner { kind: "SUBSCRIPTION", .. } => "ALTER SUBSCRIPTION",
            RoleStatement::Owner { kind: "SERVER", .. } => "ALTER SERVER",
            RoleStatement::Owner { kind: "FOREIGN DATA WRAPPER", .. } => {
                "ALTER FOREIGN DATA WRAPPER"
            }
            RoleStatement::Owner { kind: "DATABASE", .. } => "ALTER DATABASE",
            RoleStatement::Owner { kind: "TYPE", .. } => "ALTER TYPE",
            RoleStatement::Owner { kind: "DOMAIN", .. } => "ALTER DOMAIN",
            RoleStatement::Owner { kind: "COLLATION", .. } => "ALTER COLLATION",
            RoleStatement::Owner { .. } => "ALTER TABLE",
            RoleStatement::Reassign { .. } => "REASSIGN OWNED",
            RoleStatement::DropOwned { .. } => "DROP OWNED",
        }
    }
}

//! Roles, rights, and settings that sessions begin with.

use serde::{Deserialize, Serialize};

use crate::object::id::Id;

/// A role.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Role {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// SUPERUSER.
    pub superuser: bool,
    /// LOGIN.
    pub login: bool,
    /// CREATEDB.
    #[serde(default)]
    pub createdb: bool,
    /// CREATEROLE.
    #[serde(default)]
    pub createrole: bool,
    /// INHERIT: uses the rights of the roles that it is a member of.
    #[serde(default)]
    pub inherit: bool,
    /// REPLICATION.
    #[serde(default)]
    pub replication: bool,
    /// BYPASSRLS.
    #[serde(default)]
    pub bypassrls: bool,
    /// CONNECTION LIMIT; -1: none.
    #[serde(default)]
    pub connection_limit: i32,
    /// The password's verifier (`SCRAM-SHA-256$…`, `md5…`), never the password.
    #[serde(default)]
    pub password: Option<String>,
    /// VALID UNTIL: when the password ends, in microseconds since 2000-01-01 UTC.
    #[serde(default)]
    pub valid_until: Option<i64>,
    /// The roles that it is a member of.
    #[serde(default)]
    pub member_of: Vec<Membership>,
}

/// Membership in a role, kept with the member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// The role.
    pub role: Id,
    /// The role that granted it.
    pub grantor: Id,
    /// WITH ADMIN OPTION.
    pub admin: bool,
}

/// The kinds of objects that rights can be on. The letters are PostgreSQL's (`acldefault`, `defaclobjtype`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AclKind {
    /// Tables and views; with a column's number: that column.
    Table,
    /// Sequences.
    Sequence,
    /// Databases.
    Database,
    /// Functions and procedures.
    Function,
    /// Schemas.
    Schema,
    /// Types and domains.
    Type,
    /// Languages.
    Language,
    /// Tablespaces.
    Tablespace,
    /// Collations: nothing can be granted on them, but they have owners.
    Collation,
    /// Operators, operator classes and families, conversions: likewise.
    Defined,
    /// Foreign-data wrappers.
    Wrapper,
    /// Foreign servers.
    Server,
}

/// Rights on an object that are not just those that it began with. One for each object (and column)
/// that GRANT or REVOKE named; without one, [`crate::acl::default_items`] hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Acl {
    /// Its own id.
    pub oid: Id,
    /// The kind of object.
    pub kind: AclKind,
    /// The object.
    pub object: Id,
    /// Its column from 1, or 0.
    pub column: u16,
    /// The rights.
    pub items: Vec<AclItem>,
}

/// The rights that one role has granted to another. Rights are bits, see [`crate::acl::privilege`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AclItem {
    /// The role that has them; 0: everybody.
    pub grantee: Id,
    /// The role that granted them.
    pub grantor: Id,
    /// Which.
    pub privileges: u16,
    /// Those that the grantee may grant on.
    pub grantable: u16,
}

/// ALTER DEFAULT PRIVILEGES.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DefaultAcl {
    /// Its own id.
    pub oid: Id,
    /// For objects that this role makes.
    pub role: Id,
    /// In this schema; 0: everywhere.
    pub schema: Id,
    /// Of this kind.
    pub kind: AclKind,
    /// The rights; with a schema, those in addition.
    pub items: Vec<AclItem>,
}

/// ALTER ROLE … SET, ALTER DATABASE … SET.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionDefaults {
    /// Its own id.
    pub oid: Id,
    /// For this role; 0: all.
    pub role: Id,
    /// In this database; 0: all.
    pub database: Id,
    /// Names and values.
    pub settings: Vec<(String, String)>,
}

impl AclKind {
    /// Whether such objects belong to all databases.
    pub fn is_shared(self) -> bool {
        matches!(self, AclKind::Database | AclKind::Tablespace)
    }
}

impl Role {
    /// As CREATE ROLE makes it without options.
    pub fn new(oid: Id, name: &str) -> Role {
        Role {
            oid,
            name: name.to_owned(),
            superuser: false,
            login: false,
            createdb: false,
            createrole: false,
            inherit: true,
            replication: false,
            bypassrls: false,
            connection_limit: -1,
            password: None,
            valid_until: None,
            member_of: Vec::new(),
        }
    }
}

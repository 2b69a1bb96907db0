//! Look-ups of foreign-data wrappers, servers and user mappings.

use crate::object::{Defined, ForeignServer, ForeignWrapper, Id, Table, UserMapping};
use crate::snapshot::Snapshot;

impl Snapshot {
    /// All foreign-data wrappers.
    pub fn wrappers(&self) -> impl Iterator<Item = &ForeignWrapper> {
        self.defined().filter_map(|d| match &**d {
            Defined::Wrapper(o) => Some(o),
            _ => None,
        })
    }

    /// A foreign-data wrapper by oid.
    pub fn wrapper(&self, id: Id) -> Option<&ForeignWrapper> {
        match &**self.defined_by_oid(id)? {
            Defined::Wrapper(o) => Some(o),
            _ => None,
        }
    }

    /// A foreign-data wrapper by name.
    pub fn wrapper_named(&self, name: &str) -> Option<&ForeignWrapper> {
        self.wrappers().find(|w| w.name == name)
    }

    /// All foreign servers.
    pub fn foreign_servers(&self) -> impl Iterator<Item = &ForeignServer> {
        self.defined().filter_map(|d| match &**d {
            Defined::Server(o) => Some(o),
            _ => None,
        })
    }

    /// A foreign server by oid.
    pub fn foreign_server(&self, id: Id) -> Option<&ForeignServer> {
        match &**self.defined_by_oid(id)? {
            Defined::Server(o) => Some(o),
            _ => None,
        }
    }

    /// A foreign server by name.
    pub fn foreign_server_named(&self, name: &str) -> Option<&ForeignServer> {
        self.foreign_servers().find(|s| s.name == name)
    }

    /// All user mappings.
    pub fn user_mappings(&self) -> impl Iterator<Item = &UserMapping> {
        self.defined().filter_map(|d| match &**d {
            Defined::Mapping(o) => Some(o),
            _ => None,
        })
    }

    /// The mapping of exactly this role (0: PUBLIC) on a server.
    pub fn user_mapping(&self, role: Id, server: Id) -> Option<&UserMapping> {
        self.user_mappings().find(|m| m.server == server && m.role == role)
    }

    /// The mapping that counts for a role: its own, or else PUBLIC's.
    pub fn user_mapping_for(&self, role: Id, server: Id) -> Option<&UserMapping> {
        self.user_mapping(role, server).or_else(|| self.user_mapping(0, server))
    }

    /// The name of a mapping's role.
    pub fn mapped_role(&self, mapping: &UserMapping) -> &str {
        match mapping.role {
            0 => "public",
            id => self.role(id).map_or("", |r| r.name.as_str()),
        }
    }

    /// Whether some of a partitioned table's rows are on other servers.
    pub fn has_foreign_parts(&self, table: &Table) -> bool {
        table.is_partitioned()
            && self.foreign_servers().next().is_some()
            && self
                .children(table)
                .into_iter()
                .filter_map(|id| self.table(id))
                .any(|part| part.foreign.is_some() || self.has_foreign_parts(part))
    }

    /// All foreign tables.
    pub fn foreign_tables(&self) -> impl Iterator<Item = &Table> {
        self.tables().map(|t| &**t).filter(|t| t.foreign.is_some())
    }
}

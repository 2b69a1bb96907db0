//! Foreign data: wrappers, servers, user mappings, and what makes a table a foreign one.

use serde::{Deserialize, Serialize};

use crate::object::id::Id;

/// Options in the order in which they were given; names are case-sensitive, values may hold anything.
pub type Options = Vec<(String, String)>;

/// A foreign-data wrapper.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ForeignWrapper {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Owner's oid.
    pub owner: Id,
    /// HANDLER: the function that stands for the code; 0: none, its tables can't be read.
    pub handler: Id,
    /// VALIDATOR: the function that looks at options; 0: none.
    pub validator: Id,
    /// OPTIONS.
    pub options: Options,
}

/// A server that is reached through a wrapper.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ForeignServer {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Owner's oid.
    pub owner: Id,
    /// The wrapper.
    pub wrapper: Id,
    /// TYPE.
    pub kind: Option<String>,
    /// VERSION.
    pub version: Option<String>,
    /// OPTIONS.
    pub options: Options,
}

/// As whom a role appears on a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UserMapping {
    /// Oid.
    pub oid: Id,
    /// The role; 0: PUBLIC.
    pub role: Id,
    /// The server.
    pub server: Id,
    /// OPTIONS.
    pub options: Options,
}

/// The server of a foreign table, and how the table is found there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ForeignTable {
    /// The server.
    pub server: Id,
    /// OPTIONS.
    pub options: Options,
}

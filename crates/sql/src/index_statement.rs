//! Indexes as statements ask for them: keys, exclusion constraints, access methods.

use base::{AccessMethod, Oid};

/// EXCLUDE as it is written.
#[derive(Clone, Debug)]
pub struct ExcludeDef {
    /// The index that it asks for.
    pub(crate) index: Box<pg_query::protobuf::IndexStmt>,
    /// The operators' names, one for each key.
    pub(crate) operators: Vec<Vec<String>>,
}

/// EXCLUDE, bound to its table.
#[derive(Clone, Debug)]
pub struct Exclusion {
    /// The index's method.
    pub method: AccessMethod,
    /// The oid of the user's access method under whose name it was asked for; 0: its own.
    pub named_method: u32,
    /// Its keys.
    pub keys: Vec<IndexKey>,
    /// The operators' oids, one for each key.
    pub operators: Vec<u32>,
    /// INCLUDE.
    pub include: Vec<String>,
    /// WHERE.
    pub predicate: Option<String>,
    /// WITH.
    pub options: Vec<(String, String)>,
}

/// A key of CREATE INDEX.
#[derive(Clone, Debug)]
pub struct IndexKey {
    /// A column's name, or the name that an expression's index column gets.
    pub name: String,
    /// An expression: SQL, type, columns in it, the collation that its values have of themselves.
    pub expression: Option<(String, Oid, Vec<u16>, u32)>,
    /// The collation of its values; 0: none.
    pub collation: u32,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
    /// The operator class's oid; 0: the type's default one.
    pub class: u32,
    /// The class's parameters.
    pub class_options: Vec<(String, String)>,
}

/// The access method that an index is to have.
pub(crate) struct UsedMethod {
    /// The method whose code it is.
    pub code: AccessMethod,
    /// The oid of the user's access method that was named; 0: it is the method itself.
    pub own: u32,
    /// The name that was used.
    pub name: String,
}

impl UsedMethod {
    /// Its oid in `pg_am`.
    pub fn oid(&self) -> u32 {
        if self.own == 0 { self.code.oid() } else { self.own }
    }
}

//! Names of objects as statements write them.

/// A qualified name as written.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// Schema, if given.
    pub schema: Option<String>,
    /// Name.
    pub name: String,
    /// Position in the statement.
    pub position: u32,
    /// ONLY: without the tables that inherit from it.
    pub only: bool,
}

impl Name {
    /// The name for errors without a position.
    pub fn unplaced(&self) -> Name {
        Name { position: 0, ..self.clone() }
    }
}

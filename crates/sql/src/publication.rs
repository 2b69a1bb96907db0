//! Publications and subscriptions: what their statements say, bound as far as the grammar goes; conditions of rows
//! are bound over their tables.

/// A table in FOR TABLE.
#[derive(Clone, Debug)]
pub struct PublishedTable {
    /// Its schema, if it is given.
    pub schema: Option<String>,
    /// Its name.
    pub name: String,
    /// ONLY.
    pub only: bool,
    /// The columns in parentheses; None: none are given.
    pub columns: Option<Vec<String>>,
    /// WHERE.
    pub filter: Option<RowFilter>,
}

/// WHERE of a table of a publication.
#[derive(Clone, Debug)]
pub struct RowFilter {
    /// As SQL that means the same whatever the search path is.
    pub sql: String,
    /// The columns that it names, from 1.
    pub columns: Vec<u16>,
}

/// The tables and schemas that a statement names.
#[derive(Clone, Debug, Default)]
pub struct PublicationObjects {
    /// TABLE.
    pub tables: Vec<PublishedTable>,
    /// TABLES IN SCHEMA; None: CURRENT_SCHEMA.
    pub schemas: Vec<Option<String>>,
}

/// An option in WITH (…) or SET (…).
#[derive(Clone, Debug)]
pub struct StreamOption {
    /// Its name.
    pub name: String,
    /// Its value; None: only the name.
    pub value: Option<String>,
    /// Where it stands, in characters from 1.
    pub position: u32,
}

/// ADD, SET and DROP of tables and schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectsChange {
    /// ADD.
    Add,
    /// SET.
    Set,
    /// DROP.
    Drop,
}

/// A statement about publications.
#[derive(Clone, Debug)]
pub enum PublicationStatement {
    /// CREATE PUBLICATION.
    Create {
        /// Name.
        name: String,
        /// FOR ALL TABLES.
        all_tables: bool,
        /// FOR.
        objects: PublicationObjects,
        /// WITH.
        options: Vec<StreamOption>,
    },
    /// ALTER PUBLICATION … SET (…).
    Options(String, Vec<StreamOption>),
    /// ALTER PUBLICATION … ADD, SET, DROP.
    Objects(String, ObjectsChange, PublicationObjects),
    /// RENAME TO.
    Rename(String, String),
    /// DROP PUBLICATION.
    Drop {
        /// Which.
        names: Vec<String>,
        /// IF EXISTS.
        if_exists: bool,
    },
}

/// A change of the list of publications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListChange {
    /// SET PUBLICATION.
    Set,
    /// ADD PUBLICATION.
    Add,
    /// DROP PUBLICATION.
    Drop,
}

/// A statement about subscriptions.
#[derive(Clone, Debug)]
pub enum SubscriptionStatement {
    /// CREATE SUBSCRIPTION.
    Create {
        /// Name.
        name: String,
        /// CONNECTION.
        connection: String,
        /// PUBLICATION.
        publications: Vec<String>,
        /// WITH.
        options: Vec<StreamOption>,
    },
    /// SET (…).
    Options(String, Vec<StreamOption>),
    /// CONNECTION.
    Connection(String, String),
    /// SET, ADD, DROP PUBLICATION.
    Publications(String, ListChange, Vec<String>, Vec<StreamOption>),
    /// REFRESH PUBLICATION.
    Refresh(String, Vec<StreamOption>),
    /// ENABLE and DISABLE.
    Enable(String, bool),
    /// SKIP (…).
    Skip(String, Vec<StreamOption>),
    /// RENAME TO.
    Rename(String, String),
    /// DROP SUBSCRIPTION.
    Drop {
        /// Which.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
    },
}

impl PublicationStatement {
    /// Its command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            PublicationStatement::Create { .. } => "CREATE PUBLICATION",
            PublicationStatement::Drop { .. } => "DROP PUBLICATION",
            _ => "ALTER PUBLICATION",
        }
    }
}

impl SubscriptionStatement {
    /// The words of errors for a statement that reaches the publisher and can't be undone; None for others. DROP
    /// depends on the subscription and is not among them.
    pub fn alone(&self) -> Option<&'static str> {
        let off = |options: &[StreamOption], name: &str| {
            let value = options.iter().find(|o| o.name == name).and_then(|o| o.value.as_deref());
            matches!(value, Some("false" | "off" | "0"))
        };
        match self {
            SubscriptionStatement::Create { options, .. }
                if !off(options, "connect") && !off(options, "create_slot") =>
            {
                Some("CREATE SUBSCRIPTION ... WITH (create_slot = true)")
            }
            SubscriptionStatement::Publications(_, _, _, options) if !off(options, "refresh") => {
                Some("ALTER SUBSCRIPTION with refresh")
            }
            SubscriptionStatement::Refresh(..) => Some("ALTER SUBSCRIPTION ... REFRESH"),
            _ => None,
        }
    }

    /// Its command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            SubscriptionStatement::Create { .. } => "CREATE SUBSCRIPTION",
            SubscriptionStatement::Drop { .. } => "DROP SUBSCRIPTION",
            _ => "ALTER SUBSCRIPTION",
        }
    }
}

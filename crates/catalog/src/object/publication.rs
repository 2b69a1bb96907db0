//! Publications and subscriptions: which changes leave the database as a stream, and which come in.

use serde::{Deserialize, Serialize};

use crate::object::id::Id;

/// A publication: a set of tables whose changes subscribers may ask for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Publication {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Owner's oid.
    pub owner: Id,
    /// FOR ALL TABLES.
    pub all_tables: bool,
    /// INSERT is published.
    pub insert: bool,
    /// UPDATE is published.
    pub update: bool,
    /// DELETE is published.
    pub delete: bool,
    /// TRUNCATE is published.
    pub truncate: bool,
    /// Changes of partitions are published as those of the topmost table that is.
    pub via_root: bool,
    /// FOR TABLE.
    pub tables: Vec<PublicationTable>,
    /// FOR TABLES IN SCHEMA.
    pub schemas: Vec<PublicationSchema>,
}

/// A table of a publication.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublicationTable {
    /// Oid of its row in `pg_publication_rel`.
    pub oid: Id,
    /// The table.
    pub table: Id,
    /// The columns that are published, from 1 and in order; None: all.
    pub columns: Option<Vec<u16>>,
    /// WHERE, as SQL over the table's row.
    pub filter: Option<String>,
    /// The columns that WHERE names.
    pub filter_columns: Vec<u16>,
}

/// A schema of a publication.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublicationSchema {
    /// Oid of its row in `pg_publication_namespace`.
    pub oid: Id,
    /// The schema.
    pub schema: Id,
}

/// A subscription: the changes that publications of another server send are applied here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Subscription {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Owner's oid.
    pub owner: Id,
    /// Its changes are applied.
    pub enabled: bool,
    /// Values come in their binary form.
    pub binary: bool,
    /// Large transactions come before they end.
    pub streaming: bool,
    /// `d` (not asked for), `p` (pending) or `e` (enabled).
    pub two_phase: char,
    /// An error disables it.
    pub disable_on_error: bool,
    /// CONNECTION.
    pub connection: String,
    /// The slot on the publisher; None: NONE.
    pub slot: Option<String>,
    /// The setting of `synchronous_commit` of those who apply.
    pub synchronous_commit: String,
    /// PUBLICATION, by name.
    pub publications: Vec<String>,
    /// `none`: changes that the publisher has from elsewhere do not come; empty: `any`.
    #[serde(default)]
    pub origin: String,
    /// The transaction that ends here is left out; 0: none.
    pub skip_lsn: u64,
    /// Its tables, and how far each has come.
    pub tables: Vec<SubscriptionTable>,
}

/// A table of a subscription.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubscriptionTable {
    /// The table.
    pub table: Id,
    /// `i` (to be copied), `d` (being copied), `f` (copied), `s` (caught up) or `r` (ready).
    pub state: char,
    /// The publisher's log position at which the state was reached; None: not known yet.
    pub lsn: Option<u64>,
}

impl Publication {
    /// The table among its own.
    pub fn table(&self, id: Id) -> Option<&PublicationTable> {
        self.tables.iter().find(|t| t.table == id)
    }

    /// Whether it names the schema.
    pub fn has_schema(&self, id: Id) -> bool {
        self.schemas.iter().any(|s| s.schema == id)
    }
}

//! The objects. Their serde form (JSON) is what the internal heap keeps; a field added later needs
//! `#[serde(default)]`.

use serde::{Deserialize, Serialize};

/// Object ids in the catalog are plain numbers, for serde; see [`base::Oid`].
pub type Id = u32;

/// Well-known ids (PostgreSQL's).
pub mod ids {
    use super::Id;
    /// Schema `pg_catalog`.
    pub const PG_CATALOG: Id = 11;
    /// Schema `pg_toast`.
    pub const PG_TOAST: Id = 99;
    /// Schema `public`.
    pub const PUBLIC: Id = 2200;
    /// Schema `information_schema`.
    pub const INFORMATION_SCHEMA: Id = 13000;
    /// The bootstrap role `postgres`.
    pub const SUPERUSER: Id = 10;
    /// The role `pg_database_owner`.
    pub const DATABASE_OWNER: Id = 6171;
    /// Database `template1`.
    pub const TEMPLATE1: Id = 1;
    /// Database `template0`.
    pub const TEMPLATE0: Id = 4;
    /// Database `postgres`.
    pub const POSTGRES_DB: Id = 5;
    /// Access method `heap`.
    pub const HEAP_AM: Id = 2;
    /// Access method `btree`.
    pub const BTREE_AM: Id = 403;
    /// Tablespace `pg_default`.
    pub const PG_DEFAULT: Id = 1663;
}

/// Any object.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Object {
    /// A schema.
    Schema(Schema),
    /// A table with its columns and constraints (boxed: much larger than the rest).
    Table(Box<Table>),
    /// An index.
    Index(Index),
    /// A role.
    Role(Role),
    /// A database.
    Database(Database),
    /// What ANALYZE found out; its id is the table's with the top bit set.
    Stats(Box<TableStats>),
    /// A comment on an object (or on one of its columns).
    Comment(Comment),
}

/// A schema.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Schema {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Owner's oid.
    pub owner: Id,
}

/// What kind of relation a [`Table`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TableKind {
    /// An ordinary table.
    Table,
    /// Computed by the server: `pg_catalog`, `information_schema` (never stored).
    System,
}

/// What happens to a temporary table when its transaction commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnCommit {
    /// Nothing.
    #[default]
    PreserveRows,
    /// It is emptied.
    DeleteRows,
    /// It goes away.
    Drop,
}

/// A table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Owner's oid.
    pub owner: Id,
    /// Kind.
    pub kind: TableKind,
    /// Its files ([`base::RelId`]); a new number after TRUNCATE or a rewrite.
    pub rel: u32,
    /// All columns ever, in order of their number; dropped ones stay.
    pub columns: Vec<Column>,
    /// Constraints other than NOT NULL.
    pub constraints: Vec<Constraint>,
    /// Oids of its indexes.
    pub indexes: Vec<Id>,
    /// Oids of tables whose foreign keys refer to this one.
    pub referenced_by: Vec<Id>,
    /// Storage parameters, as given (`fillfactor=90`).
    #[serde(default)]
    pub options: Vec<(String, String)>,
    /// UNLOGGED or not; unlogged tables are logged all the same for now.
    #[serde(default)]
    pub unlogged: bool,
    /// ON COMMIT, of a temporary table.
    #[serde(skip)]
    pub on_commit: OnCommit,
}

/// A column.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Type's oid.
    pub ty: Id,
    /// Length or precision as PostgreSQL encodes it; -1: none.
    pub typmod: i32,
    /// NOT NULL.
    pub not_null: bool,
    /// Default's expression, as SQL that parses by itself.
    pub default: Option<String>,
    /// Value, as text, for rows that are older than the column.
    pub missing: Option<String>,
    /// No longer there.
    pub dropped: bool,
}

/// A constraint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Constraint {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// What it demands.
    pub kind: ConstraintKind,
}

impl Constraint {
    /// The table that a foreign key refers to.
    pub fn refers_to(&self) -> Option<Id> {
        match &self.kind {
            ConstraintKind::ForeignKey(key) => Some(key.table),
            _ => None,
        }
    }
}

/// What a constraint demands. Columns are numbers from 1.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ConstraintKind {
    /// The expression, as SQL, isn't false.
    Check(String),
    /// Backed by an index.
    PrimaryKey {
        /// The index.
        index: Id,
    },
    /// Backed by an index.
    Unique {
        /// The index.
        index: Id,
    },
    /// The other table has such a row.
    ForeignKey(ForeignKey),
}

/// A foreign key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ForeignKey {
    /// Columns here, from 1.
    pub columns: Vec<u16>,
    /// The other table.
    pub table: Id,
    /// Its columns, from 1, in the same order.
    pub referenced: Vec<u16>,
    /// Its unique index over them.
    pub index: Id,
    /// ON DELETE.
    pub on_delete: ForeignKeyAction,
    /// ON UPDATE.
    pub on_update: ForeignKeyAction,
}

/// What happens to referring rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ForeignKeyAction {
    /// Error at the statement's end.
    NoAction,
    /// Error at once.
    Restrict,
    /// Follow.
    Cascade,
    /// Become NULL.
    SetNull,
    /// Become the default.
    SetDefault,
}

/// An index (B-tree).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Index {
    /// Oid.
    pub oid: Id,
    /// Name; its schema is the table's.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Its table.
    pub table: Id,
    /// Its files.
    pub rel: u32,
    /// Key columns.
    pub columns: Vec<IndexColumn>,
    /// UNIQUE.
    pub unique: bool,
    /// Backs the primary key.
    pub primary: bool,
    /// Storage parameters.
    #[serde(default)]
    pub options: Vec<(String, String)>,
    /// The CSN of the commit that made its files; 0: before the server started. An older snapshot may
    /// see row versions that it has no entries for.
    #[serde(skip)]
    pub since: u64,
    /// Kept up to date, but not read: the view is that of such an older snapshot.
    #[serde(skip)]
    pub hidden: bool,
}

/// A key column of an index.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IndexColumn {
    /// The table's column, from 1.
    pub column: u16,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
}

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
}

/// A database.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Database {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Owner's oid.
    pub owner: Id,
    /// Is a template.
    pub template: bool,
    /// Takes connections.
    pub connect: bool,
}

/// A comment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comment {
    /// The comment's own id.
    pub oid: Id,
    /// The object.
    pub object: Id,
    /// Its column from 1, or 0.
    pub column: u16,
    /// What it says.
    pub text: String,
}

/// What ANALYZE found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TableStats {
    /// The table.
    pub table: Id,
    /// Rows.
    pub rows: f64,
    /// Pages.
    pub pages: u32,
    /// By column, in table order.
    pub columns: Vec<ColumnStats>,
}

/// What ANALYZE found out about a column. Values are text.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ColumnStats {
    /// Share of NULLs.
    pub null_fraction: f64,
    /// Average width in bytes.
    pub width: i32,
    /// Distinct values; negative: a share of the rows, as `pg_stats.n_distinct`.
    pub distinct: f64,
    /// Most common values with their shares.
    pub common: Vec<(String, f64)>,
    /// Bounds of buckets of equal size over the rest.
    pub histogram: Vec<String>,
    /// Physical against logical order, -1 to 1.
    pub correlation: f64,
}

impl Object {
    /// The bit that tells a table's statistics from the table.
    pub(crate) const STATS: Id = 1 << 31;

    /// The id that a table's statistics are kept under.
    pub(crate) fn stats_id(table: Id) -> Id {
        table | Object::STATS
    }

    /// The id that the catalog keeps it under.
    pub fn oid(&self) -> Id {
        match self {
            Object::Schema(o) => o.oid,
            Object::Table(o) => o.oid,
            Object::Index(o) => o.oid,
            Object::Role(o) => o.oid,
            Object::Database(o) => o.oid,
            Object::Stats(o) => Object::stats_id(o.table),
            Object::Comment(o) => o.oid,
        }
    }
}

impl Table {
    /// Whether it is one session's own.
    pub fn is_temporary(&self) -> bool {
        base::Oid(self.oid).is_temporary()
    }

    /// `pg_class.relpersistence`.
    pub fn persistence(&self) -> char {
        match (self.is_temporary(), self.unlogged) {
            (true, _) => 't',
            (false, true) => 'u',
            (false, false) => 'p',
        }
    }

    /// The live column with this name and its number from 1.
    pub fn column(&self, name: &str) -> Option<(u16, &Column)> {
        self.live_columns().find(|(_, c)| c.name == name)
    }

    /// The live columns with their numbers from 1.
    pub fn live_columns(&self) -> impl Iterator<Item = (u16, &Column)> {
        self.columns.iter().enumerate().filter(|(_, c)| !c.dropped).map(|(i, c)| (i as u16 + 1, c))
    }

    /// Its foreign keys.
    pub fn foreign_keys(&self) -> impl Iterator<Item = (&Constraint, &ForeignKey)> {
        self.constraints.iter().filter_map(|c| match &c.kind {
            ConstraintKind::ForeignKey(key) => Some((c, key)),
            _ => None,
        })
    }
}

/// What a new data directory has.
pub(crate) fn initial() -> Vec<Object> {
    let schema =
        |oid, name: &str, owner| Object::Schema(Schema { oid, name: name.to_owned(), owner });
    let role = |oid, name: &str, boss| {
        Object::Role(Role { oid, name: name.to_owned(), superuser: boss, login: boss })
    };
    let database = |oid, name: &str, template, connect| {
        Object::Database(Database {
            oid,
            name: name.to_owned(),
            owner: ids::SUPERUSER,
            template,
            connect,
        })
    };
    vec![
        schema(ids::PG_CATALOG, "pg_catalog", ids::SUPERUSER),
        schema(ids::PG_TOAST, "pg_toast", ids::SUPERUSER),
        schema(ids::PUBLIC, "public", ids::DATABASE_OWNER),
        schema(ids::INFORMATION_SCHEMA, "information_schema", ids::SUPERUSER),
        role(ids::SUPERUSER, "postgres", true),
        role(ids::DATABASE_OWNER, "pg_database_owner", false),
        database(ids::TEMPLATE1, "template1", true, true),
        database(ids::TEMPLATE0, "template0", true, false),
        database(ids::POSTGRES_DB, "postgres", false, true),
    ]
}

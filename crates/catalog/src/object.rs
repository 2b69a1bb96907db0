//! The objects. Their serde form (JSON) is what the internal heap keeps; a field added later needs
//! `#[serde(default)]`.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use types::collation::Slot;

use crate::acl::privilege;

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
    /// The role `pg_read_all_data`.
    pub const READ_ALL_DATA: Id = 6181;
    /// The role `pg_write_all_data`.
    pub const WRITE_ALL_DATA: Id = 6182;
    /// The role `pg_monitor`.
    pub const MONITOR: Id = 3373;
    /// The role `pg_read_all_settings`.
    pub const READ_ALL_SETTINGS: Id = 3374;
    /// The role `pg_read_all_stats`.
    pub const READ_ALL_STATS: Id = 3375;
    /// The role `pg_stat_scan_tables`.
    pub const STAT_SCAN_TABLES: Id = 3377;
    /// The role `pg_read_server_files`.
    pub const READ_SERVER_FILES: Id = 4569;
    /// The role `pg_write_server_files`.
    pub const WRITE_SERVER_FILES: Id = 4570;
    /// The role `pg_signal_backend`.
    pub const SIGNAL_BACKEND: Id = 4200;
    /// The role `pg_checkpoint`.
    pub const CHECKPOINT: Id = 4544;
    /// Roles that there are from the start, besides the superuser.
    pub const PREDEFINED: [(Id, &str); 12] = [
        (DATABASE_OWNER, "pg_database_owner"),
        (READ_ALL_DATA, "pg_read_all_data"),
        (WRITE_ALL_DATA, "pg_write_all_data"),
        (MONITOR, "pg_monitor"),
        (READ_ALL_SETTINGS, "pg_read_all_settings"),
        (READ_ALL_STATS, "pg_read_all_stats"),
        (STAT_SCAN_TABLES, "pg_stat_scan_tables"),
        (READ_SERVER_FILES, "pg_read_server_files"),
        (WRITE_SERVER_FILES, "pg_write_server_files"),
        (4571, "pg_execute_server_program"),
        (SIGNAL_BACKEND, "pg_signal_backend"),
        (CHECKPOINT, "pg_checkpoint"),
    ];
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
    /// Tablespace `pg_global`.
    pub const PG_GLOBAL: Id = 1664;
    /// Collation `default`.
    pub const COLLATION_DEFAULT: Id = 100;
    /// Collation `C`.
    pub const COLLATION_C: Id = 950;
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
    /// A sequence.
    Sequence(Box<Sequence>),
    /// A type: enum, domain or composite.
    Type(Box<UserType>),
    /// A function.
    Function(Box<Function>),
    /// A collation.
    Collation(Box<Collation>),
    /// Rights on an object (or on one of its columns).
    Acl(Acl),
    /// Rights that objects made later begin with.
    DefaultAcl(DefaultAcl),
    /// Settings that sessions of a role or in a database begin with.
    SessionDefaults(SessionDefaults),
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TableKind {
    /// An ordinary table.
    #[default]
    Table,
    /// A view: no files; its rows are its query's ([`Table::query`]).
    View,
    /// A materialized view: files like a table's, filled by its query.
    Materialized,
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

/// A table, a view or a materialized view.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    /// INHERITS: oids of the tables whose columns it has, in the order in which they were named.
    #[serde(default)]
    pub parents: Vec<Id>,
    /// Oids of the tables that inherit from it: their rows count among its own.
    #[serde(default)]
    pub children: Vec<Id>,
    /// Storage parameters, as given (`fillfactor=90`).
    #[serde(default)]
    pub options: Vec<(String, String)>,
    /// UNLOGGED or not; unlogged tables are logged all the same for now.
    #[serde(default)]
    pub unlogged: bool,
    /// ON COMMIT, of a temporary table.
    #[serde(skip)]
    pub on_commit: OnCommit,
    /// What a view's rows are.
    #[serde(default)]
    pub query: Option<Box<ViewQuery>>,
    /// The oids of the type of its rows and of the arrays of that; 0: it has none.
    #[serde(default)]
    pub row_type: [Id; 2],
    /// What `types` knows of that type, once somebody asked.
    #[serde(skip)]
    pub known: Known,
}

/// The query of a view.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ViewQuery {
    /// As SQL that means the same whatever the search path is: every relation has its schema.
    pub sql: String,
    /// What it uses: object, and column from 1 or 0 for the whole.
    pub uses: Vec<(Id, u16)>,
    /// WITH CHECK OPTION.
    #[serde(default)]
    pub check: CheckOption,
    /// Rows can be changed through it.
    #[serde(default)]
    pub updatable: bool,
    /// A materialized view that has not been filled yet.
    #[serde(default)]
    pub unpopulated: bool,
}

/// WITH CHECK OPTION of a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckOption {
    /// None.
    #[default]
    None,
    /// Its own condition.
    Local,
    /// And those of the views below it.
    Cascaded,
}

/// A column.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    /// GENERATED … AS IDENTITY.
    #[serde(default)]
    pub identity: Option<Identity>,
    /// The default is a stored generated column's expression over the row.
    #[serde(default)]
    pub generated: bool,
    /// Sequences, types and functions that the default uses.
    #[serde(default)]
    pub default_uses: Vec<Id>,
    /// COLLATE; 0: the type's own.
    #[serde(default)]
    pub collation: Id,
    /// From how many parents it comes.
    #[serde(default)]
    pub inherited: u16,
    /// The table's own definition does not name it.
    #[serde(default)]
    pub only_inherited: bool,
}

/// An identity column's sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// GENERATED ALWAYS; else BY DEFAULT.
    pub always: bool,
    /// The sequence.
    pub sequence: Id,
}

impl Column {
    /// A plain column.
    pub fn new(name: &str, ty: Id, typmod: i32) -> Column {
        Column { name: name.to_owned(), ty, typmod, ..Column::default() }
    }
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
    /// NOT VALID: rows that were there before have not been looked at.
    #[serde(default)]
    pub unvalidated: bool,
    /// DEFERRABLE.
    #[serde(default)]
    pub deferrable: bool,
    /// INITIALLY DEFERRED.
    #[serde(default)]
    pub deferred: bool,
    /// NO INHERIT.
    #[serde(default)]
    pub no_inherit: bool,
    /// From how many parents it comes.
    #[serde(default)]
    pub inherited: u16,
    /// The table's own definition does not name it.
    #[serde(default)]
    pub only_inherited: bool,
}

impl Constraint {
    /// One that is checked at once, for all rows.
    pub fn new(oid: Id, name: String, kind: ConstraintKind) -> Constraint {
        Constraint {
            oid,
            name,
            kind,
            unvalidated: false,
            deferrable: false,
            deferred: false,
            no_inherit: false,
            inherited: 0,
            only_inherited: false,
        }
    }

    /// Whether tables that inherit from the constraint's table have it, too.
    pub fn is_inheritable(&self) -> bool {
        matches!(self.kind, ConstraintKind::Check(_)) && !self.no_inherit
    }

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
    /// MATCH FULL.
    #[serde(default)]
    pub match_full: bool,
    /// Columns that ON DELETE SET NULL or SET DEFAULT sets; none: all of the key.
    #[serde(default)]
    pub set_columns: Vec<u16>,
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
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    /// Further columns that it keeps (INCLUDE), from 1.
    #[serde(default)]
    pub include: Vec<u16>,
    /// WHERE of a partial index, as SQL.
    #[serde(default)]
    pub predicate: Option<String>,
    /// NULLS NOT DISTINCT.
    #[serde(default)]
    pub nulls_equal: bool,
    /// Left behind by a CREATE INDEX CONCURRENTLY that failed: kept up to date, not read.
    #[serde(default)]
    pub invalid: bool,
    /// UNIQUE.
    pub unique: bool,
    /// Backs the primary key.
    pub primary: bool,
    /// Its constraint is DEFERRABLE: equal keys may stand in it until a statement or transaction ends.
    #[serde(default)]
    pub deferrable: bool,
    /// The table was last clustered by it.
    #[serde(default)]
    pub clustered: bool,
    /// Storage parameters.
    #[serde(default)]
    pub options: Vec<(String, String)>,
    /// The CSN of the commit that made its files, or made it valid; 0: before the server started. An older snapshot may
    /// see row versions that it has no entries for.
    #[serde(skip)]
    pub since: u64,
    /// Kept up to date, but not read: the view is that of such an older snapshot.
    #[serde(skip)]
    pub hidden: bool,
}

/// A key column of an index.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct IndexColumn {
    /// The table's column, from 1; 0 when it is an expression.
    pub column: u16,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
    /// An expression over the row.
    #[serde(default)]
    pub expression: Option<Box<KeyExpression>>,
    /// The collation by which it is sorted, when it is not `default`.
    #[serde(default)]
    pub collation: Option<Box<KeyCollation>>,
}

impl IndexColumn {
    /// The collation of its keys.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn slot(&self) -> base::Result<Slot> {
        match &self.collation {
            Some(c) => c.slot(),
            None => Ok(Slot::BYTES),
        }
    }
}

/// A collation as an index keeps it: what its keys were made with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyCollation {
    /// Its oid.
    pub oid: Id,
    /// See [`Collation::icu_locale`].
    pub icu_locale: Option<String>,
    /// See [`Collation::deterministic`].
    pub deterministic: bool,
}

impl KeyCollation {
    /// Of a collation.
    pub fn of(c: &Collation) -> KeyCollation {
        KeyCollation {
            oid: c.oid,
            icu_locale: c.icu_locale.clone(),
            deterministic: c.deterministic,
        }
    }

    /// See [`Collation::slot`].
    ///
    /// # Errors
    /// As there.
    pub fn slot(&self) -> base::Result<Slot> {
        match &self.icu_locale {
            Some(locale) => Slot::of(locale, self.deterministic),
            None => Ok(Slot::BYTES),
        }
    }
}

/// A collation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Collation {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Owner's oid.
    pub owner: Id,
    /// `c` (the C library's locales, which compare bytes), `i` (ICU), `d` (the database's).
    pub provider: char,
    /// Texts are equal only when their bytes are.
    pub deterministic: bool,
    /// LC_COLLATE and LC_CTYPE.
    pub libc: Option<(String, String)>,
    /// ICU's locale.
    pub icu_locale: Option<String>,
    /// The library's version when it was made.
    pub version: Option<String>,
    /// For this encoding; -1: for all.
    pub encoding: i32,
}

impl Collation {
    /// The collation as values are compared by it.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn slot(&self) -> base::Result<Slot> {
        KeyCollation::of(self).slot()
    }
}

/// An index's expression.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KeyExpression {
    /// As SQL.
    pub sql: String,
    /// The index column's name.
    pub name: String,
    /// Type.
    pub ty: Id,
    /// Columns in it, from 1.
    pub columns: Vec<u16>,
}

/// A sequence. Its value is not here: it is not transactional ([`crate::sequence`]).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sequence {
    /// Oid.
    pub oid: Id,
    /// Name; shares the name space of tables.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Owner's oid.
    pub owner: Id,
    /// Its file, which keeps the value; a new number when ALTER SEQUENCE changes the value.
    pub rel: u32,
    /// smallint, integer or bigint.
    pub ty: Id,
    /// START.
    pub start: i64,
    /// INCREMENT.
    pub increment: i64,
    /// MINVALUE.
    pub min: i64,
    /// MAXVALUE.
    pub max: i64,
    /// CACHE.
    pub cache: i64,
    /// CYCLE.
    pub cycle: bool,
    /// OWNED BY: table and column.
    pub owned_by: Option<(Id, u16)>,
    /// It is an identity column's.
    pub identity: bool,
    /// UNLOGGED.
    #[serde(default)]
    pub unlogged: bool,
}

/// A type that a user made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UserType {
    /// Oid.
    pub oid: Id,
    /// The oid of its array type.
    pub array: Id,
    /// Name.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Owner's oid.
    pub owner: Id,
    /// What it is.
    pub kind: UserTypeKind,
    /// The oid under which `pg_class` lists a composite type.
    #[serde(default)]
    pub class: Id,
    /// Types and functions that a domain's default and its constraints use.
    #[serde(default)]
    pub uses: Vec<Id>,
    /// What `types` knows of it, once somebody asked.
    #[serde(skip)]
    pub known: Known,
}

/// A type and its array type as `types` has them. Belongs to one version of an object: a copy starts
/// without.
#[derive(Debug, Default)]
pub struct Known(pub(crate) OnceLock<[Arc<types::user::UserType>; 2]>);

impl Clone for Known {
    fn clone(&self) -> Known {
        Known::default()
    }
}

impl UserType {
    /// A type that nobody owns yet, in no schema.
    pub fn new(oid: Id, array: Id, name: &str, kind: UserTypeKind) -> UserType {
        let name = name.to_owned();
        let (schema, owner, class) = (0, 0, 0);
        let (uses, known) = (Vec::new(), Known::default());
        UserType { oid, array, name, schema, owner, kind, class, uses, known }
    }
}

/// See [`UserType`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum UserTypeKind {
    /// CREATE TYPE … AS ENUM; labels in order.
    Enum(Vec<EnumLabel>),
    /// CREATE DOMAIN.
    Domain {
        /// The type below.
        base: Id,
        /// Its typmod.
        typmod: i32,
        /// NOT NULL.
        not_null: bool,
        /// DEFAULT, as SQL.
        default: Option<String>,
        /// CHECKs over VALUE.
        checks: Vec<Constraint>,
        /// COLLATE; 0: that of the type below.
        #[serde(default)]
        collation: Id,
    },
    /// CREATE TYPE … AS (…).
    Composite(Vec<Column>),
}

/// A label of an enum.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EnumLabel {
    /// Oid.
    pub oid: Id,
    /// Text.
    pub name: String,
    /// Place among the labels, as `pg_enum` shows it.
    pub order: f32,
    /// Place among the labels, as values have it: it never changes.
    pub rank: u64,
}

/// A function or procedure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Function {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Owner's oid.
    pub owner: Id,
    /// Parameters, in order.
    pub args: Vec<FunctionArg>,
    /// Result type.
    pub result: Id,
    /// Returns rows.
    pub set: bool,
    /// `sql` for now.
    pub language: String,
    /// Text of the body.
    pub body: String,
    /// `i`, `s` or `v`.
    pub volatility: char,
    /// STRICT.
    pub strict: bool,
    /// A procedure.
    pub procedure: bool,
    /// SECURITY DEFINER.
    pub security_definer: bool,
    /// LEAKPROOF.
    pub leakproof: bool,
    /// PARALLEL: `s`, `r` or `u`.
    pub parallel: char,
    /// COST.
    pub cost: f32,
    /// ROWS.
    pub rows: f32,
    /// The body was written as RETURN or BEGIN ATOMIC.
    #[serde(default)]
    pub standard_body: bool,
    /// Schemas to search for what a standard body names: those in force when it was written.
    #[serde(default)]
    pub path: Vec<Id>,
    /// What a standard body uses: object, and column from 1 or 0 for the whole.
    #[serde(default)]
    pub uses: Vec<(Id, u16)>,
    /// SET: settings while it runs.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    /// The result (`record`) is a row of this table.
    #[serde(default)]
    pub row_of: Option<Id>,
}

impl Function {
    /// Parameters that have a value when the body begins.
    pub fn inputs(&self) -> impl DoubleEndedIterator<Item = &FunctionArg> {
        self.args.iter().filter(|a| matches!(a.mode, 'i' | 'b' | 'v'))
    }

    /// Parameters that a call names: a procedure's CALL all of them.
    pub fn called_with(&self) -> impl DoubleEndedIterator<Item = &FunctionArg> {
        self.args.iter().filter(|a| self.procedure || matches!(a.mode, 'i' | 'b' | 'v'))
    }

    /// Parameters that are columns of the result.
    pub fn outputs(&self) -> impl DoubleEndedIterator<Item = &FunctionArg> {
        self.args.iter().filter(|a| matches!(a.mode, 'o' | 'b' | 't'))
    }

    /// Types of the inputs: what overloads differ in.
    pub fn input_types(&self) -> Vec<base::Oid> {
        self.inputs().map(|a| base::Oid(a.ty)).collect()
    }

    /// The last parameter is VARIADIC.
    pub fn is_variadic(&self) -> bool {
        self.args.iter().any(|a| a.mode == 'v')
    }
}

/// A parameter of a function.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FunctionArg {
    /// Name; may be empty.
    pub name: String,
    /// Type.
    pub ty: Id,
    /// `i`, `o`, `b`, `v` or `t` as in `pg_proc.proargmodes`.
    pub mode: char,
    /// DEFAULT, as SQL.
    pub default: Option<String>,
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
    /// Who granted it.
    pub grantor: Id,
    /// WITH ADMIN OPTION.
    pub admin: bool,
}

/// What rights can be on. The letters are PostgreSQL's (`acldefault`, `defaclobjtype`).
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
}

/// Rights on an object that are not just those that it began with. One for each object (and column)
/// that GRANT or REVOKE named; without one, [`crate::acl::default_items`] hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Acl {
    /// Its own id.
    pub oid: Id,
    /// What kind of object.
    pub kind: AclKind,
    /// The object.
    pub object: Id,
    /// Its column from 1, or 0.
    pub column: u16,
    /// The rights.
    pub items: Vec<AclItem>,
}

/// What one role has granted to another. Rights are bits, see [`crate::acl::privilege`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AclItem {
    /// Who has them; 0: everybody.
    pub grantee: Id,
    /// Who granted them.
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

/// A database.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Database {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Owner's oid.
    pub owner: Id,
    /// IS_TEMPLATE: whoever may make databases may copy it.
    pub template: bool,
    /// ALLOW_CONNECTIONS.
    pub connect: bool,
    /// CONNECTION LIMIT; -1: none.
    #[serde(default = "unlimited")]
    pub connection_limit: i32,
    /// LC_COLLATE. All that there are compare bytes.
    #[serde(default = "default_locale")]
    pub collate: String,
    /// LC_CTYPE.
    #[serde(default = "default_locale")]
    pub ctype: String,
}

fn unlimited() -> i32 {
    -1
}

fn default_locale() -> String {
    DEFAULT_LOCALE.to_owned()
}

/// The locale of databases that nobody gave another.
const DEFAULT_LOCALE: &str = "C.UTF-8";

impl Database {
    /// One that takes any number of connections.
    pub fn new(oid: Id, name: &str, owner: Id) -> Database {
        Database {
            oid,
            name: name.to_owned(),
            owner,
            template: false,
            connect: true,
            connection_limit: unlimited(),
            collate: default_locale(),
            ctype: default_locale(),
        }
    }
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
    /// The object belongs to all databases.
    #[serde(default)]
    pub shared: bool,
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
    /// Pages of which every snapshot saw all rows.
    #[serde(default)]
    pub visible: u32,
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
            Object::Sequence(o) => o.oid,
            Object::Type(o) => o.oid,
            Object::Function(o) => o.oid,
            Object::Collation(o) => o.oid,
            Object::Acl(o) => o.oid,
            Object::DefaultAcl(o) => o.oid,
            Object::SessionDefaults(o) => o.oid,
        }
    }

    /// Whether it belongs to all databases.
    pub fn is_shared(&self) -> bool {
        match self {
            Object::Role(_) | Object::Database(_) | Object::SessionDefaults(_) => true,
            Object::Acl(acl) => acl.kind.is_shared(),
            Object::Comment(comment) => comment.shared,
            _ => false,
        }
    }

    /// The files that it names, if any.
    pub fn files_mut(&mut self) -> Option<&mut u32> {
        let rel = match self {
            Object::Table(o) => &mut o.rel,
            Object::Index(o) => &mut o.rel,
            Object::Sequence(o) => &mut o.rel,
            _ => return None,
        };
        (*rel != 0).then_some(rel)
    }
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

impl Index {
    /// Its stored expressions, in order: those of its keys, then the condition of a partial index.
    pub fn expressions(&self) -> impl Iterator<Item = &str> {
        let keys = self.columns.iter().filter_map(|c| Some(c.expression.as_ref()?.sql.as_str()));
        keys.chain(self.predicate.as_deref())
    }

    /// An index of columns over all rows: what foreign keys and conflicts can rest on.
    pub fn is_plain(&self) -> bool {
        self.expressions().next().is_none()
    }

    /// Whether a column of the table is part of it: as key, included, or in an expression or the
    /// condition.
    pub fn uses_column(&self, number: u16) -> bool {
        let in_key = |c: &IndexColumn| {
            c.column == number || c.expression.as_ref().is_some_and(|e| e.columns.contains(&number))
        };
        self.columns.iter().any(in_key) || self.include.contains(&number)
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

    /// Whether a view's option is on.
    fn has_option(&self, name: &str) -> bool {
        let on = |text: &str| {
            let format = types::FormatContext::default();
            types::io::input(types::oids::BOOL, -1, text, &format) == Ok(types::Datum::Bool(true))
        };
        self.options.iter().any(|(n, value)| n == name && on(value))
    }

    /// Whether a view uses what is below it in the name of who uses the view.
    pub fn is_security_invoker(&self) -> bool {
        self.has_option("security_invoker")
    }

    /// Whether a view's own conditions come before all of who uses the view.
    pub fn is_security_barrier(&self) -> bool {
        self.has_option("security_barrier")
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

/// What a new data directory has; what is not shared, in each database.
pub(crate) fn initial() -> Vec<Object> {
    let schema =
        |oid, name: &str, owner| Object::Schema(Schema { oid, name: name.to_owned(), owner });
    let boss = Role {
        superuser: true,
        login: true,
        createdb: true,
        createrole: true,
        replication: true,
        bypassrls: true,
        ..Role::new(ids::SUPERUSER, "postgres")
    };
    let database = |oid, name: &str, template, connect| {
        let new = Database::new(oid, name, ids::SUPERUSER);
        Object::Database(Database { template, connect, ..new })
    };
    let mut objects = vec![
        schema(ids::PG_CATALOG, "pg_catalog", ids::SUPERUSER),
        schema(ids::PG_TOAST, "pg_toast", ids::SUPERUSER),
        schema(ids::PUBLIC, "public", ids::DATABASE_OWNER),
        schema(ids::INFORMATION_SCHEMA, "information_schema", ids::SUPERUSER),
        Object::Role(boss),
        database(ids::TEMPLATE1, "template1", true, true),
        database(ids::TEMPLATE0, "template0", true, false),
        database(ids::POSTGRES_DB, "postgres", false, true),
    ];
    objects.extend(ids::PREDEFINED.iter().map(|(oid, name)| {
        let mut role = Role::new(*oid, name);
        if *oid == ids::MONITOR {
            let of = [ids::READ_ALL_SETTINGS, ids::READ_ALL_STATS, ids::STAT_SCAN_TABLES];
            let membership = |role| Membership { role, grantor: ids::SUPERUSER, admin: false };
            role.member_of = of.map(membership).to_vec();
        }
        Object::Role(role)
    }));
    let acl = |oid, kind, object, items: &[(Id, Id, u16)]| {
        let item = |(grantee, grantor, privileges): &(Id, Id, u16)| AclItem {
            grantee: *grantee,
            grantor: *grantor,
            privileges: *privileges,
            grantable: 0,
        };
        let items = items.iter().map(item).collect();
        Object::Acl(Acl { oid, kind, object, column: 0, items })
    };
    let (usage, both) = (privilege::USAGE, privilege::USAGE | privilege::CREATE);
    let (boss, owner) = (ids::SUPERUSER, ids::DATABASE_OWNER);
    let all = privilege::CREATE | privilege::TEMPORARY | privilege::CONNECT;
    let template = [(0, boss, privilege::CONNECT), (boss, boss, all)];
    let system = [(boss, boss, both), (0, boss, usage)];
    let public = [(owner, owner, both), (0, owner, usage)];
    objects.extend([
        acl(13001, AclKind::Schema, ids::PG_CATALOG, &system),
        acl(13002, AclKind::Schema, ids::INFORMATION_SCHEMA, &system),
        acl(13003, AclKind::Schema, ids::PUBLIC, &public),
        acl(13004, AclKind::Database, ids::TEMPLATE1, &template),
        acl(13005, AclKind::Database, ids::TEMPLATE0, &template),
    ]);
    objects
}

//! Tables, views and materialized views: columns, constraints, foreign keys.

use serde::{Deserialize, Serialize};

use super::{Known, PartitionBound, Partitioning, Policy, Rule, Trigger};
use crate::object::id::Id;

/// The kind of relation that a [`Table`] is.
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
    /// A foreign table: no files; its rows are on a server ([`Table::foreign`]).
    Foreign,
}

/// The fate of a temporary table when its transaction commits.
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
    /// DISABLE TRIGGER ALL: its foreign keys, and those that refer to it, are not looked at.
    #[serde(default)]
    pub triggers_off: bool,
    /// The query that gives a view's rows.
    #[serde(default)]
    pub query: Option<Box<ViewQuery>>,
    /// The oids of the type of its rows and of the arrays of that; 0: it has none.
    #[serde(default)]
    pub row_type: [Id; 2],
    /// Its triggers, in the order of their names: that in which they fire.
    #[serde(default)]
    pub triggers: Vec<Trigger>,
    /// ENABLE ROW LEVEL SECURITY.
    #[serde(default)]
    pub row_security: bool,
    /// FORCE ROW LEVEL SECURITY: for the owner, too.
    #[serde(default)]
    pub force_row_security: bool,
    /// Its policies, in the order of their names.
    #[serde(default)]
    pub policies: Vec<Policy>,
    /// Its rules, in the order of their names: that in which they apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// PARTITION BY: it has no rows but those of its partitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitioning: Option<Box<Partitioning>>,
    /// OF: the composite type whose columns it has; 0: none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub of_type: Id,
    /// Of a partition: which of its parent's rows it holds. The parent is the only one, and does not list it
    /// among its children: see [`crate::Snapshot::family`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Box<PartitionBound>>,
    /// DETACH CONCURRENTLY is on its way since this CSN (0: before the server started): snapshots that are not
    /// older do not find the partition in its table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detaching: Option<u64>,
    /// Of a foreign table: its server and options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<Box<super::ForeignTable>>,
    /// USING: the oid of a user's access method; 0: `heap`.
    #[serde(default, skip_serializing_if = "is_none")]
    pub method: Id,
    /// REPLICA IDENTITY.
    #[serde(default)]
    pub replica_identity: ReplicaIdentity,
    /// The knowledge that `types` has of that type, once somebody asked.
    #[serde(skip)]
    pub known: Known,
}

/// The part of a row that is updated or deleted by which those who follow the changes know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplicaIdentity {
    /// Its primary key, if there is one.
    #[default]
    Default,
    /// All columns.
    Full,
    /// Nothing.
    Nothing,
    /// USING INDEX: the columns of this index; nothing when it is gone.
    Index(Id),
}

impl ReplicaIdentity {
    /// As in `pg_class.relreplident`.
    pub fn letter(self) -> char {
        match self {
            ReplicaIdentity::Default => 'd',
            ReplicaIdentity::Full => 'f',
            ReplicaIdentity::Nothing => 'n',
            ReplicaIdentity::Index(_) => 'i',
        }
    }
}

/// The query of a view.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ViewQuery {
    /// As SQL that means the same whatever the search path is: every relation has its schema.
    pub sql: String,
    /// Objects that it uses: object, and column from 1 or 0 for the whole.
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
    /// Statistics target of ANALYZE; None: the setting's.
    #[serde(default)]
    pub statistics: Option<u16>,
    /// SET STORAGE: the letter of `pg_attribute.attstorage`; None: the type's.
    #[serde(default)]
    pub storage: Option<char>,
    /// SET COMPRESSION: the letter of `pg_attribute.attcompression`.
    #[serde(default)]
    pub compression: Option<char>,
    /// SET (n_distinct = …) and kin.
    #[serde(default)]
    pub options: Vec<(String, String)>,
    /// OPTIONS of a foreign table's column.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_options: Vec<(String, String)>,
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
    /// The constraint's demand.
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
    /// Sequences, types, functions and collations that a CHECK names.
    #[serde(default)]
    pub uses: Vec<Id>,
    /// The key of the partitioned table of which it is a part; 0: none.
    #[serde(default)]
    pub parent: Id,
}

impl Constraint {
    /// The index that backs it.
    pub fn index(&self) -> Option<Id> {
        match &self.kind {
            ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index } => Some(*index),
            ConstraintKind::Check(_) | ConstraintKind::ForeignKey(_) => None,
        }
    }

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
            uses: Vec::new(),
            parent: 0,
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

/// The demand of a constraint. Columns are numbers from 1.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ConstraintKind {
    /// The expression, as SQL, isn't false.
    Check(String),
    /// Backed by an index.
    PrimaryKey {
        /// The index.
        index: Id,
    },
    /// Backed by an index; EXCLUDE, too, where the index has operators for that ([`crate::Index::exclude`]).
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

/// The effect on referring rows.
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

impl Table {
    /// The oids of its constraints, triggers, rules and policies.
    pub fn parts(&self) -> impl Iterator<Item = Id> + '_ {
        let constraints = self.constraints.iter().map(|c| c.oid);
        let triggers = self.triggers.iter().map(|t| t.oid);
        let rules = self.rules.iter().map(|r| r.oid);
        constraints.chain(triggers).chain(rules).chain(self.policies.iter().map(|p| p.oid))
    }

    /// Whether it is one session's own.
    pub fn is_temporary(&self) -> bool {
        base::Oid(self.oid).is_temporary()
    }

    /// Whether it has partitions instead of rows.
    pub fn is_partitioned(&self) -> bool {
        self.partitioning.is_some()
    }

    /// The table of which it is a partition.
    pub fn partition_of(&self) -> Option<Id> {
        self.bound.as_ref().and_then(|_| self.parents.first().copied())
    }

    /// `pg_class.relpersistence`.
    pub fn persistence(&self) -> char {
        match (self.is_temporary(), self.unlogged) {
            (true, _) => 't',
            (false, true) => 'u',
            (false, false) => 'p',
        }
    }

    /// Whether an option is on.
    fn has_option(&self, name: &str) -> bool {
        let on = |text: &str| {
            let format = types::FormatContext::default();
            types::io::input(types::oids::BOOL, -1, text, &format) == Ok(types::Datum::Bool(true))
        };
        self.options.iter().any(|(n, value)| n == name && on(value))
    }

    /// Whether VACUUM cuts empty pages off the end of the table's file.
    pub fn is_truncated_by_vacuum(&self) -> bool {
        self.options.iter().all(|(name, _)| name != "vacuum_truncate")
            || self.has_option("vacuum_truncate")
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

    /// Whether it has triggers, those of constraints among them.
    pub fn has_triggers(&self) -> bool {
        let waits = |c: &Constraint| c.deferrable && !matches!(c.kind, ConstraintKind::Check(_));
        !self.triggers.is_empty()
            || self.foreign_keys().next().is_some()
            || !self.referenced_by.is_empty()
            || self.constraints.iter().any(waits)
    }

    /// Its policy of this name.
    pub fn policy(&self, name: &str) -> Option<&Policy> {
        self.policies.iter().find(|p| p.name == name)
    }

    /// Its trigger of this name.
    pub fn trigger(&self, name: &str) -> Option<&Trigger> {
        self.triggers.iter().find(|t| t.name == name)
    }

    /// Whether it has an INSTEAD OF trigger for an event ([`super::trigger_type`]).
    pub fn has_instead(&self, event: i16) -> bool {
        self.triggers.iter().any(|t| t.has(super::trigger_type::INSTEAD | event))
    }

    /// Its foreign keys.
    pub fn foreign_keys(&self) -> impl Iterator<Item = (&Constraint, &ForeignKey)> {
        self.constraints.iter().filter_map(|c| match &c.kind {
            ConstraintKind::ForeignKey(key) => Some((c, key)),
            _ => None,
        })
    }
}

/// Whether an oid names nothing.
fn is_none(id: &Id) -> bool {
    *id == 0
}

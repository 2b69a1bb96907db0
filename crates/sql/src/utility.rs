//! Statements that are not queries, bound as far as the catalog allows.

use std::sync::Arc;
use std::time::Duration;

use base::{AccessMethod, Oid};

use crate::collation_statement::CollationStatement;
use crate::column_keeping::ColumnKeeping;
use crate::comment_statement::CommentStatement;
use crate::database::DatabaseStatement;
use crate::define_statement::DefineStatement;
use crate::event_trigger::EventTriggerStatement;
pub use crate::index_statement::{ExcludeDef, Exclusion, IndexKey};
pub use crate::later_passes::LaterPasses;
pub use crate::name::Name;
use crate::plan::{Plan, Prepared, Statement};
use crate::policy::{AlterPolicy, CreatePolicy, DropPolicy};
use crate::publication::{PublicationStatement, SubscriptionStatement};
use crate::role::{RoleRef, RoleStatement};
use crate::rule::{CreateRule, DropRule};
use crate::trigger::{CreateTrigger, DropTrigger, TriggerSelection};
use crate::type_statement::TypeStatement;

/// Transaction modes of BEGIN and SET TRANSACTION.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransactionModes {
    /// ISOLATION LEVEL, as the setting spells it.
    pub isolation: Option<&'static str>,
    /// READ ONLY or READ WRITE.
    pub read_only: Option<bool>,
    /// DEFERRABLE.
    pub deferrable: Option<bool>,
}

/// A statement about large objects, which are named by their oids.
#[derive(Clone, Debug)]
pub enum LargeObjectStatement {
    /// ALTER LARGE OBJECT … OWNER TO.
    Owner(u32, RoleRef),
    /// GRANT (true) or REVOKE.
    Grant {
        /// GRANT.
        grant: bool,
        /// The large objects.
        objects: Vec<u32>,
        /// The rights' words; none: all.
        privileges: Vec<String>,
        /// To whom, or from whom.
        grantees: Vec<RoleRef>,
        /// WITH GRANT OPTION, or GRANT OPTION FOR.
        option: bool,
    },
}

/// A column definition.
#[derive(Clone, Debug)]
pub struct ColumnDef {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: Oid,
    /// Typmod.
    pub typmod: i32,
    /// NOT NULL.
    pub not_null: bool,
    /// DEFAULT's expression as SQL, already checked against the type.
    pub default: Option<String>,
    /// Objects that the default uses.
    pub default_uses: Vec<u32>,
    /// It differs from row to row.
    pub default_volatile: bool,
    /// The default is a stored generated column's expression.
    pub generated: bool,
    /// serial, or GENERATED … AS IDENTITY: a sequence is made with it.
    pub sequence: Option<ColumnSequence>,
    /// COLLATE; 0: the type's own.
    pub collation: u32,
    /// From how many parents it comes.
    pub inherited: u16,
    /// The statement does not name it.
    pub only_inherited: bool,
    /// OPTIONS of a foreign table's column.
    pub foreign_options: Vec<crate::foreign::OptionChange>,
}

/// INHERITS of CREATE TABLE. Columns and constraints have been merged.
#[derive(Clone, Debug, Default)]
pub struct Inherits {
    /// The parents' oids.
    pub parents: Vec<u32>,
    /// What was merged: messages, some with a detail.
    pub notices: Vec<(String, Option<&'static str>)>,
    /// The error that the statement ends with after them.
    pub failure: Option<base::Error>,
}

/// The sequence that comes with a column.
#[derive(Clone, Debug)]
pub struct ColumnSequence {
    /// GENERATED ALWAYS (Some(true)) or BY DEFAULT AS IDENTITY; None: serial.
    pub identity: Option<bool>,
    /// Its options.
    pub options: SequenceOptions,
}

/// Options of CREATE and ALTER SEQUENCE; None where nothing was said.
#[derive(Clone, Debug, Default)]
pub struct SequenceOptions {
    /// AS.
    pub ty: Option<Oid>,
    /// INCREMENT.
    pub increment: Option<i64>,
    /// START.
    pub start: Option<i64>,
    /// RESTART, with a value or without.
    pub restart: Option<Option<i64>>,
    /// MAXVALUE; Some(None): NO MAXVALUE.
    pub max: Option<Option<i64>>,
    /// MINVALUE; Some(None): NO MINVALUE.
    pub min: Option<Option<i64>>,
    /// CACHE.
    pub cache: Option<i64>,
    /// CYCLE.
    pub cycle: Option<bool>,
    /// OWNED BY.
    pub owned_by: Option<OwnedBy>,
    /// SEQUENCE NAME of an identity column (pg_dump writes it).
    pub name: Option<Name>,
}

/// OWNED BY.
#[derive(Clone, Debug)]
pub enum OwnedBy {
    /// NONE.
    None,
    /// A column.
    Column {
        /// Its table.
        table: Name,
        /// Its name.
        column: String,
    },
}

impl ColumnDef {
    /// A plain column.
    pub fn new(name: &str, ty: Oid, typmod: i32) -> ColumnDef {
        ColumnDef {
            name: name.to_owned(),
            ty,
            typmod,
            not_null: false,
            default: None,
            default_uses: Vec::new(),
            default_volatile: false,
            generated: false,
            sequence: None,
            collation: 0,
            inherited: 0,
            only_inherited: false,
            foreign_options: Vec::new(),
        }
    }
}

/// A table constraint's definition; columns by name.
#[derive(Clone, Debug)]
pub struct ConstraintDef {
    /// Given name.
    pub name: Option<String>,
    /// What.
    pub kind: ConstraintDefKind,
    /// Where it stands in the statement.
    pub position: u32,
    /// DEFERRABLE.
    pub deferrable: bool,
    /// INITIALLY DEFERRED.
    pub deferred: bool,
    /// NOT VALID.
    pub unvalidated: bool,
    /// WITH (…) of a key.
    pub options: Vec<(String, String)>,
    /// NO INHERIT.
    pub no_inherit: bool,
    /// From how many parents it comes.
    pub inherited: u16,
    /// The statement does not name it.
    pub only_inherited: bool,
}

/// See [`ConstraintDef`].
#[derive(Clone, Debug)]
pub enum ConstraintDefKind {
    /// CHECK: expression as SQL; the columns that it names, for the constraint's name.
    Check {
        /// Expression.
        sql: String,
        /// Columns in it.
        columns: Vec<String>,
    },
    /// PRIMARY KEY.
    PrimaryKey {
        /// Its columns.
        columns: Vec<String>,
        /// INCLUDE.
        include: Vec<String>,
    },
    /// UNIQUE.
    Unique {
        /// Its columns.
        columns: Vec<String>,
        /// INCLUDE.
        include: Vec<String>,
        /// NULLS NOT DISTINCT.
        nulls_equal: bool,
    },
    /// EXCLUDE; bound when the table is there ([`crate::stored::exclusion`]).
    Exclude(ExcludeDef),
    /// PRIMARY KEY/UNIQUE USING INDEX.
    UsingIndex {
        /// Index's name.
        index: String,
        /// PRIMARY KEY.
        primary: bool,
    },
    /// FOREIGN KEY.
    ForeignKey {
        /// Columns here.
        columns: Vec<String>,
        /// The other table.
        table: Name,
        /// Its columns; empty: its primary key.
        referenced: Vec<String>,
        /// ON DELETE.
        on_delete: catalog::ForeignKeyAction,
        /// ON UPDATE.
        on_update: catalog::ForeignKeyAction,
        /// MATCH FULL.
        match_full: bool,
        /// Columns that ON DELETE SET sets; none: all.
        set_columns: Vec<String>,
    },
}

/// A step of ALTER TABLE.
#[derive(Clone, Debug)]
pub enum AlterTable {
    /// OPTIONS of a foreign table.
    ForeignOptions(Vec<crate::foreign::OptionChange>),
    /// OPTIONS of a foreign table's column.
    ColumnForeignOptions {
        /// Column.
        column: String,
        /// The changes.
        options: Vec<crate::foreign::OptionChange>,
    },
    /// SET (check_option = …), and RESET of it.
    CheckOption(catalog::CheckOption),
    /// ENABLE and DISABLE ROW LEVEL SECURITY.
    RowSecurity(bool),
    /// FORCE and NO FORCE ROW LEVEL SECURITY.
    ForceRowSecurity(bool),
    /// ENABLE and DISABLE RULE.
    EnableRule {
        /// Its name.
        name: String,
        /// What `pg_rewrite.ev_enabled` becomes.
        enabled: char,
    },
    /// ENABLE and DISABLE TRIGGER.
    EnableTrigger {
        /// Which.
        which: TriggerSelection,
        /// What `pg_trigger.tgenabled` becomes.
        enabled: char,
    },
    /// ADD COLUMN.
    AddColumn {
        /// The column.
        column: ColumnDef,
        /// Its constraints.
        constraints: Vec<ConstraintDef>,
        /// IF NOT EXISTS.
        if_not_exists: bool,
    },
    /// DROP COLUMN.
    DropColumn {
        /// Name.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
    },
    /// ALTER COLUMN SET or DROP DEFAULT.
    SetDefault {
        /// Column.
        column: String,
        /// Expression as SQL.
        default: Option<String>,
        /// Objects that it uses.
        uses: Vec<u32>,
    },
    /// ALTER COLUMN ADD GENERATED … AS IDENTITY.
    AddIdentity {
        /// Column.
        column: String,
        /// GENERATED ALWAYS.
        always: bool,
        /// The sequence's options.
        options: SequenceOptions,
    },
    /// ALTER COLUMN SET GENERATED … and the sequence's options.
    SetIdentity {
        /// Column.
        column: String,
        /// SET GENERATED ALWAYS or BY DEFAULT.
        always: Option<bool>,
        /// The sequence's options.
        options: SequenceOptions,
    },
    /// ALTER COLUMN DROP IDENTITY.
    DropIdentity {
        /// Column.
        column: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// ALTER COLUMN DROP EXPRESSION.
    DropExpression {
        /// Column.
        column: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// VALIDATE CONSTRAINT.
    ValidateConstraint(String),
    /// ALTER CONSTRAINT … DEFERRABLE.
    AlterConstraint {
        /// Name.
        name: String,
        /// DEFERRABLE.
        deferrable: bool,
        /// INITIALLY DEFERRED.
        deferred: bool,
    },
    /// RESET (fillfactor, …).
    ResetOptions(Vec<String>),
    /// ALTER COLUMN SET or DROP NOT NULL.
    SetNotNull {
        /// Column.
        column: String,
        /// SET.
        not_null: bool,
    },
    /// ALTER COLUMN SET STATISTICS.
    SetStatistics {
        /// Column.
        column: String,
        /// The target; None: the setting's.
        target: Option<u16>,
    },
    /// ALTER COLUMN SET STORAGE, SET COMPRESSION, SET (…) and RESET (…).
    Keep {
        /// Column.
        column: String,
        /// The change.
        how: ColumnKeeping,
    },
    /// ALTER INDEX … ALTER COLUMN … SET STATISTICS of a column by its number.
    IndexStatistics(i32, Option<u16>),
    /// SET LOGGED and SET UNLOGGED.
    SetLogged(bool),
    /// SET ACCESS METHOD.
    SetMethod(String),
    /// OF; NOT OF without a type.
    Of(Option<Oid>),
    /// ALTER COLUMN TYPE; `using` is SQL.
    SetType {
        /// Column.
        column: String,
        /// New type.
        ty: Oid,
        /// New typmod.
        typmod: i32,
        /// COLLATE; 0: the type's own.
        collation: u32,
        /// USING, as SQL.
        using: Option<String>,
    },
    /// ADD constraint.
    AddConstraint(ConstraintDef),
    /// DROP CONSTRAINT.
    DropConstraint {
        /// Name.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
    },
    /// SET (fillfactor = …).
    SetOptions(Vec<(String, String)>),
    /// OWNER TO.
    Owner(RoleRef),
    /// INHERIT.
    Inherit(Name),
    /// ATTACH and DETACH PARTITION.
    Partition(crate::partition::PartitionCommand),
    /// NO INHERIT.
    NoInherit(Name),
    /// CLUSTER ON an index; None: SET WITHOUT CLUSTER.
    ClusterOn(Option<String>),
    /// REPLICA IDENTITY: the letter of `pg_class.relreplident`, and the index of USING INDEX.
    ReplicaIdentity(char, String),
}

/// COPY's options.
#[derive(Clone, Debug)]
pub struct CopyOptions {
    /// Format.
    pub format: CopyFormat,
    /// Column delimiter.
    pub delimiter: u8,
    /// What stands for NULL.
    pub null: String,
    /// A header line.
    pub header: bool,
    /// The header line must name the columns (HEADER MATCH).
    pub header_match: bool,
    /// Columns of the data (from 0) whose values are always quoted.
    pub force_quote: Vec<u16>,
    /// Columns of the data (from 0) in which the word for NULL is no NULL.
    pub force_not_null: Vec<u16>,
    /// Columns of the data (from 0) in which the word for NULL is NULL even if quoted.
    pub force_null: Vec<u16>,
    /// CSV quote.
    pub quote: u8,
    /// CSV escape.
    pub escape: u8,
    /// FREEZE was asked for (accepted; rows are loaded as usual).
    pub freeze: bool,
    /// ENCODING; None: the client's.
    pub encoding: Option<types::encodings::Encoding>,
    /// A file of the server; else the client.
    pub file: Option<String>,
}

/// COPY's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyFormat {
    /// text.
    Text,
    /// csv.
    Csv,
    /// binary.
    Binary,
}

/// CREATE FUNCTION.
#[derive(Clone, Debug)]
pub struct RoutineDef {
    /// Its name.
    pub name: Name,
    /// What it is; without oid, schema and owner.
    pub function: catalog::Function,
    /// OR REPLACE.
    pub replace: bool,
    /// Where the body begins in the statement's text, if it was given as a string: characters from 1.
    pub body_at: Option<u32>,
    /// What is to be said while it is made.
    pub warnings: Vec<String>,
    /// The same, of less weight.
    pub notices: Vec<String>,
}

/// A function or procedure as a statement names it.
#[derive(Clone, Debug)]
pub struct RoutineRef {
    /// `FUNCTION`, `PROCEDURE`, `ROUTINE`.
    pub kind: &'static str,
    /// Name.
    pub name: Name,
    /// Types of its inputs, if given.
    pub args: Option<Vec<Oid>>,
    /// Types of all its parameters, if those that are given may be meant so.
    pub all_args: Option<Vec<Oid>>,
    /// The types of its inputs as they are written, for notices.
    pub written: Vec<String>,
    /// Why there can be no such function: IF EXISTS, and a type or its schema is missing.
    pub missing: Option<String>,
}

/// What ALTER FUNCTION changes.
#[derive(Clone, Debug)]
pub enum AlterRoutine {
    /// RENAME TO.
    Rename(String),
    /// SET SCHEMA.
    Schema(String),
    /// OWNER TO.
    Owner(RoleRef),
    /// Attributes: each by its word, in a function that has it.
    Options(Vec<(String, Box<catalog::Function>)>),
}

/// How long a table and its rows last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// For good.
    Permanent,
    /// UNLOGGED.
    Unlogged,
    /// TEMPORARY: for the session, or as ON COMMIT says.
    Temporary(catalog::OnCommit),
}

/// Everything that isn't a query.
pub enum Utility {
    /// BEGIN, START TRANSACTION.
    Begin(TransactionModes),
    /// COMMIT, END; `chain`: AND CHAIN.
    Commit {
        /// AND CHAIN.
        chain: bool,
    },
    /// ROLLBACK, ABORT.
    Rollback {
        /// AND CHAIN.
        chain: bool,
    },
    /// SAVEPOINT.
    Savepoint(String),
    /// UPDATE of `pg_class` that sets what ANALYZE found: a query of relations with new rows, pages and pages that
    /// all see, NULL where nothing is said.
    RelationStatistics(String),
    /// RELEASE.
    Release(String),
    /// ROLLBACK TO.
    RollbackTo(String),
    /// PREPARE TRANSACTION, COMMIT PREPARED and ROLLBACK PREPARED, in these words, and the name.
    TwoPhase(&'static str, String),
    /// ALTER LARGE OBJECT, GRANT and REVOKE ON LARGE OBJECT.
    LargeObject(LargeObjectStatement),
    /// SET TRANSACTION SNAPSHOT.
    ImportSnapshot(String),
    /// SET TRANSACTION / SET SESSION CHARACTERISTICS.
    SetTransaction {
        /// Modes.
        modes: TransactionModes,
        /// SESSION CHARACTERISTICS.
        session: bool,
    },
    /// SET name = value; None: DEFAULT.
    Set {
        /// Name.
        name: String,
        /// Value as text.
        value: Option<String>,
        /// LOCAL.
        local: bool,
    },
    /// SET CONSTRAINTS; no names: ALL.
    SetConstraints {
        /// Names.
        names: Vec<Name>,
        /// DEFERRED; else IMMEDIATE.
        deferred: bool,
    },
    /// SHOW name or ALL (None).
    Show(Option<String>),
    /// RESET name or ALL (None).
    Reset(Option<String>),
    /// ALTER SYSTEM SET (Some) or RESET (None); name None: RESET ALL.
    AlterSystem {
        /// Name.
        name: Option<String>,
        /// Value.
        value: Option<String>,
    },
    /// LISTEN.
    Listen(String),
    /// UNLISTEN; None: everything.
    Unlisten(Option<String>),
    /// NOTIFY.
    Notify {
        /// Where.
        channel: String,
        /// What; empty without a payload.
        payload: String,
    },
    /// DISCARD ALL, PLANS, TEMP, SEQUENCES.
    Discard(&'static str),
    /// PREPARE name AS statement's text.
    Prepare {
        /// Name.
        name: String,
        /// Declared parameter types.
        params: Vec<Oid>,
        /// The statement's text.
        text: String,
    },
    /// EXECUTE name (constant expressions as a VALUES plan of one row).
    Execute {
        /// Name.
        name: String,
        /// Arguments.
        args: Vec<crate::expr::Expr>,
    },
    /// DEALLOCATE name or ALL (None).
    Deallocate(Option<String>),
    /// CREATE TABLE.
    CreateTable {
        /// Name.
        name: Name,
        /// Columns.
        columns: Vec<ColumnDef>,
        /// Constraints.
        constraints: Vec<ConstraintDef>,
        /// Indexes copied by LIKE … INCLUDING INDEXES; their places are not set.
        indexes: Vec<catalog::Index>,
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// WITH (…).
        options: Vec<(String, String)>,
        /// TEMPORARY, UNLOGGED.
        persistence: Persistence,
        /// INHERITS, or the parent of a partition.
        inherits: Inherits,
        /// PARTITION BY, PARTITION OF.
        partition: crate::partition::PartitionClause,
        /// OF: a composite type; 0: none.
        of_type: u32,
        /// CREATE FOREIGN TABLE's server and options.
        foreign: Option<Box<crate::foreign::ForeignClause>>,
        /// USING.
        method: Option<String>,
    },
    /// Foreign-data wrappers, servers, user mappings.
    Foreign(Box<crate::foreign::ForeignStatement>),
    /// ALTER … SET SCHEMA.
    SetSchema {
        /// `TABLE`, `VIEW`, `SEQUENCE`, …
        kind: &'static str,
        /// What.
        object: Name,
        /// The new schema.
        to: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// CREATE, ALTER, DROP EVENT TRIGGER.
    EventTrigger(EventTriggerStatement),
    /// CREATE, ALTER, DROP PUBLICATION.
    Publication(Box<PublicationStatement>),
    /// CREATE, ALTER, DROP SUBSCRIPTION.
    Subscription(Box<SubscriptionStatement>),
    /// CREATE POLICY.
    CreatePolicy(Box<CreatePolicy>),
    /// CREATE RULE.
    CreateRule(Box<CreateRule>),
    /// DROP RULE.
    DropRule(DropRule),
    /// ALTER POLICY.
    AlterPolicy(Box<AlterPolicy>),
    /// DROP POLICY.
    DropPolicy(DropPolicy),
    /// CREATE TRIGGER.
    CreateTrigger(Box<CreateTrigger>),
    /// DROP TRIGGER.
    DropTrigger(DropTrigger),
    /// CREATE VIEW.
    CreateView {
        /// Name.
        name: Name,
        /// Columns.
        columns: Vec<ColumnDef>,
        /// Query.
        query: catalog::ViewQuery,
        /// OR REPLACE.
        replace: bool,
        /// WITH (…).
        options: Vec<(String, String)>,
        /// TEMPORARY.
        persistence: Persistence,
    },
    /// CREATE SEQUENCE.
    CreateSequence {
        /// Name.
        name: Name,
        /// Options.
        options: SequenceOptions,
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// TEMPORARY, UNLOGGED.
        persistence: Persistence,
    },
    /// ALTER SEQUENCE with options.
    AlterSequence {
        /// Name.
        name: Name,
        /// Options.
        options: SequenceOptions,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// CREATE TABLE AS.
    CreateTableAs {
        /// Name.
        name: Name,
        /// Column names, if given.
        columns: Vec<String>,
        /// The query.
        query: Arc<Prepared>,
        /// WITH NO DATA.
        no_data: bool,
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// TEMPORARY, UNLOGGED.
        persistence: Persistence,
        /// CREATE MATERIALIZED VIEW: the query as it is kept.
        view: Option<Box<catalog::ViewQuery>>,
        /// USING.
        method: Option<String>,
        /// WITH (…).
        options: Vec<(String, String)>,
    },
    /// REFRESH MATERIALIZED VIEW.
    RefreshView {
        /// Name.
        name: Name,
        /// CONCURRENTLY.
        concurrently: bool,
        /// WITH NO DATA.
        no_data: bool,
    },
    /// DROP TABLE, INDEX, SCHEMA, VIEW …
    Drop {
        /// `TABLE`, `INDEX`, `SCHEMA`, …
        kind: &'static str,
        /// Names.
        names: Vec<Name>,
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// CONCURRENTLY: an index.
        concurrently: bool,
    },
    /// REINDEX.
    Reindex(Reindex),
    /// CLUSTER.
    Cluster {
        /// The table; none: all that were clustered before.
        table: Option<Name>,
        /// The index; none: as before.
        index: Option<String>,
        /// VERBOSE.
        verbose: bool,
    },
    /// ALTER TABLE.
    AlterTable {
        /// `TABLE`, `INDEX`, `VIEW`, …
        kind: &'static str,
        /// Table.
        table: Name,
        /// IF EXISTS.
        if_exists: bool,
        /// Steps.
        steps: Vec<AlterTable>,
        /// Commands that are bound when these steps have run.
        later: Option<LaterPasses>,
    },
    /// ALTER … RENAME: `kind` TABLE, INDEX, COLUMN, CONSTRAINT, SCHEMA.
    Rename {
        /// Kind.
        kind: &'static str,
        /// Table (or the object itself).
        table: Name,
        /// Column or constraint.
        part: Option<String>,
        /// The kind of relation that the statement names where a part of it is renamed, for its tag.
        of: &'static str,
        /// New name.
        to: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// CREATE INDEX.
    CreateIndex {
        /// Name, if given.
        name: Option<String>,
        /// Table.
        table: Name,
        /// Key columns.
        columns: Vec<IndexKey>,
        /// INCLUDE.
        include: Vec<String>,
        /// WHERE, as SQL, with the columns in it.
        predicate: Option<(String, Vec<u16>)>,
        /// NULLS NOT DISTINCT.
        nulls_equal: bool,
        /// CONCURRENTLY.
        concurrently: bool,
        /// UNIQUE.
        unique: bool,
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// WITH (…).
        options: Vec<(String, String)>,
        /// USING.
        method: AccessMethod,
        /// The oid of the user's access method that USING names; 0: it is the method itself.
        named_method: u32,
    },
    /// CREATE SCHEMA.
    CreateSchema {
        /// Name.
        name: String,
        /// AUTHORIZATION.
        owner: Option<RoleRef>,
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// Statements that make what is in it, in order.
        elements: Vec<String>,
    },
    /// TRUNCATE.
    Truncate {
        /// Tables.
        tables: Vec<Name>,
        /// CASCADE.
        cascade: bool,
        /// RESTART IDENTITY.
        restart: bool,
    },
    /// CREATE FUNCTION, CREATE PROCEDURE.
    CreateRoutine(Box<RoutineDef>),
    /// DROP FUNCTION, PROCEDURE, ROUTINE.
    DropRoutine {
        /// Which.
        routines: Vec<RoutineRef>,
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
    },
    /// ALTER FUNCTION, PROCEDURE, ROUTINE.
    AlterRoutine {
        /// Which.
        routine: RoutineRef,
        /// What.
        change: AlterRoutine,
    },
    /// DO.
    Do {
        /// The body.
        body: String,
        /// LANGUAGE.
        language: String,
        /// Where the body begins in the statement, in characters from 1.
        body_at: Option<u32>,
    },
    /// CREATE IF NOT EXISTS of what is always there, DROP IF EXISTS of what never is: a tag and notices.
    Nothing {
        /// The command's.
        tag: &'static str,
        /// One for each object.
        notices: Vec<base::Error>,
    },
    /// COPY FROM STDIN: rows for these columns; `template` has for each table column the default
    /// for columns that are not in the list.
    CopyFrom {
        /// Where to: an Insert whose input rows the executor makes from the data.
        modify: Box<crate::plan::Modify>,
        /// Columns in the data, from 1.
        columns: Vec<u16>,
        /// Default expressions for the other columns, in table order (None: NULL).
        defaults: Vec<Option<crate::expr::Expr>>,
        /// WHERE, over the table's row.
        filter: Option<crate::expr::Expr>,
        /// Options.
        options: CopyOptions,
    },
    /// COPY TO STDOUT.
    CopyTo {
        /// The table's oid; 0: a query's rows.
        table: u32,
        /// The rows.
        query: Box<Prepared>,
        /// Options.
        options: CopyOptions,
    },
    /// VACUUM [ANALYZE] and ANALYZE.
    Vacuum {
        /// Tables; none: all.
        tables: Vec<Name>,
        /// Vacuum.
        vacuum: bool,
        /// Analyze.
        analyze: bool,
        /// FULL.
        full: bool,
        /// VERBOSE.
        verbose: bool,
        /// PARALLEL: at most so many helpers go through the indexes; None: as many as the settings say.
        parallel: Option<u16>,
        /// TRUNCATE: whether the file's empty end is cut off; None: as the table's options say.
        truncate: Option<bool>,
        /// SKIP_LOCKED: tables whose lock is not to be had at once are passed over.
        skip_locked: bool,
    },
    /// EXPLAIN.
    Explain {
        /// Time that planning it took.
        planning: Duration,
        /// The statement.
        statement: Arc<Prepared>,
        /// Options.
        options: ExplainOptions,
    },
    /// LOCK TABLE.
    LockTable {
        /// Tables.
        tables: Vec<Name>,
        /// Mode.
        mode: txn::LockMode,
        /// NOWAIT.
        nowait: bool,
    },
    /// CHECKPOINT.
    Checkpoint,
    /// COMMENT ON.
    Comment(CommentStatement),
    /// DECLARE CURSOR.
    DeclareCursor {
        /// Tables whose rows the cursor stands at, each with those that inherit from it: the query's rows end
        /// with a place and a table for each.
        tables: Vec<Vec<u32>>,
        /// Name.
        name: String,
        /// The query.
        query: Arc<Prepared>,
        /// WITH HOLD.
        hold: bool,
        /// May go backward: anything but NO SCROLL.
        scroll: bool,
    },
    /// FETCH and MOVE.
    Fetch {
        /// Cursor.
        name: String,
        /// Where to.
        how: FetchHow,
        /// MOVE.
        moving: bool,
    },
    /// CLOSE cursor or ALL (None).
    ClosePortal(Option<String>),
    /// Roles and rights.
    Role(RoleStatement),
    /// Databases.
    Database(DatabaseStatement),
    /// Types.
    Type(TypeStatement),
    /// CREATE, ALTER COLLATION.
    Collation(CollationStatement),
    /// Statements about operators, casts and what else users define.
    Define(DefineStatement),
    /// Extensions.
    Extension(crate::extension_statement::ExtensionStatement),
    /// A statement that does nothing but is accepted, with a notice's text if any.
    NoOp(Option<String>),
}

/// REINDEX.
#[derive(Clone, Debug)]
pub struct Reindex {
    /// Which indexes.
    pub what: ReindexWhat,
    /// CONCURRENTLY.
    pub concurrently: bool,
    /// Says which were built again.
    pub verbose: bool,
}

/// What REINDEX builds again.
#[derive(Clone, Debug)]
pub enum ReindexWhat {
    /// One index.
    Index(Name),
    /// All indexes of a table.
    Table(Name),
    /// All of a schema.
    Schema(String),
    /// All of the database with this name.
    Database(String),
    /// The system's, which are none.
    System(String),
}

impl Reindex {
    /// Its words, as messages call it.
    pub fn name(&self) -> &'static str {
        match self.what {
            _ if self.concurrently => "REINDEX CONCURRENTLY",
            ReindexWhat::Index(_) => "REINDEX INDEX",
            ReindexWhat::Table(_) => "REINDEX TABLE",
            ReindexWhat::Schema(_) => "REINDEX SCHEMA",
            ReindexWhat::Database(_) => "REINDEX DATABASE",
            ReindexWhat::System(_) => "REINDEX SYSTEM",
        }
    }
}

impl Utility {
    /// Whether a statement is the executor's (or of the crate above it), not the session's.
    pub fn is_own(&self) -> bool {
        !matches!(
            self,
            Utility::Begin(_)
                | Utility::Commit { .. }
                | Utility::Rollback { .. }
                | Utility::Savepoint(_)
                | Utility::Release(_)
                | Utility::RollbackTo(_)
                | Utility::TwoPhase(..)
                | Utility::SetTransaction { .. }
                | Utility::ImportSnapshot(_)
                | Utility::Set { .. }
                | Utility::Show(_)
                | Utility::Reset(_)
                | Utility::AlterSystem { .. }
                | Utility::Listen(_)
                | Utility::Unlisten(_)
                | Utility::Notify { .. }
                | Utility::Discard(_)
                | Utility::Prepare { .. }
                | Utility::Execute { .. }
                | Utility::Deallocate(_)
                | Utility::DeclareCursor { .. }
                | Utility::Fetch { .. }
                | Utility::ClosePortal(_)
                | Utility::Vacuum { vacuum: true, .. }
                | Utility::NoOp(_)
        ) && self.executes().is_none()
    }

    /// The EXECUTE that the statement is about: EXPLAIN EXECUTE, CREATE TABLE AS EXECUTE.
    pub fn executes(&self) -> Option<(&str, &[crate::Expr])> {
        let inner = match self {
            Utility::Explain { statement, .. } => statement,
            Utility::CreateTableAs { query, .. } => query,
            _ => return None,
        };
        match &inner.statement {
            Statement::Utility(Utility::Execute { name, args }) => Some((name, args)),
            Statement::Utility(utility) => utility.executes(),
            _ => None,
        }
    }

    /// The same statement about the plan of what it executes.
    pub fn about(&self, plan: &Arc<Prepared>) -> Option<Prepared> {
        let inside = |prepared: &Prepared| match &prepared.statement {
            Statement::Utility(Utility::Execute { .. }) => Some(plan.clone()),
            Statement::Utility(utility) => utility.about(plan).map(Arc::new),
            _ => None,
        };
        let utility = match self {
            Utility::Explain { planning, statement, options } => {
                let (planning, options) = (*planning, *options);
                Utility::Explain { planning, statement: inside(statement)?, options }
            }
            Utility::CreateTableAs {
                name,
                columns,
                query,
                no_data,
                if_not_exists,
                persistence,
                view,
                method,
                options,
            } => Utility::CreateTableAs {
                method: method.clone(),
                options: options.clone(),
                name: name.clone(),
                columns: columns.clone(),
                query: inside(query)?,
                no_data: *no_data,
                if_not_exists: *if_not_exists,
                persistence: *persistence,
                view: view.clone(),
            },
            _ => return None,
        };
        Some(crate::statement::around(utility, plan))
    }

    /// What the statement is called, if it commits while it goes on: it can't be part of a block.
    pub fn runs_in_steps(&self) -> Option<&'static str> {
        match self {
            Utility::CreateIndex { concurrently: true, .. } => Some("CREATE INDEX CONCURRENTLY"),
            Utility::Drop { concurrently: true, .. } => Some("DROP INDEX CONCURRENTLY"),
            Utility::AlterTable { steps, .. } => {
                use crate::partition::PartitionCommand::Detach;
                let is_one = |step: &AlterTable| {
                    matches!(step, AlterTable::Partition(Detach { concurrently: true, .. }))
                };
                steps.iter().any(is_one).then_some("ALTER TABLE ... DETACH CONCURRENTLY")
            }
            Utility::Reindex(reindex) => {
                let one = matches!(reindex.what, ReindexWhat::Index(_) | ReindexWhat::Table(_));
                (reindex.concurrently || !one).then(|| reindex.name())
            }
            _ => None,
        }
    }
}

/// Where FETCH and MOVE go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchHow {
    /// By so many rows, never negative; None: all.
    Forward(Option<i64>),
    /// The same backward.
    Backward(Option<i64>),
    /// To the row with this number; negative: from the end.
    Absolute(i64),
    /// To the row so many further on.
    Relative(i64),
}

/// EXPLAIN's options.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExplainOptions {
    /// Run it.
    pub analyze: bool,
    /// Show columns.
    pub verbose: bool,
    /// Show costs.
    pub costs: bool,
    /// Show buffers.
    pub buffers: bool,
    /// Show times.
    pub timing: bool,
    /// Show waits.
    pub waits: bool,
    /// Show planning and execution time.
    pub summary: bool,
    /// Show what was logged.
    pub wal: bool,
    /// Show settings of the planner that are not the defaults.
    pub settings: bool,
    /// How to print it.
    pub format: ExplainFormat,
}

/// How EXPLAIN prints a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExplainFormat {
    /// Lines.
    #[default]
    Text,
    /// An array.
    Json,
    /// A list.
    Yaml,
    /// A document.
    Xml,
}

/// Keeps the import of plans local to the statements that have one.
pub type QueryPlan = Plan;

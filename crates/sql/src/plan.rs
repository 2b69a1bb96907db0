//! Physical plans: what the executor runs. A plan is immutable and shared by all sessions.

mod acting;
mod describe;
pub mod effects;
mod exprs;

use std::sync::Arc;

use base::Oid;
use catalog::system::SystemTable;
use catalog::{Index, Table};
use txn::{LockMode, RowLockMode};

use crate::expr::{AggCall, Expr, SortKey};
pub use crate::logical::MergeAction;
use crate::utility::Utility;
use crate::window::WindowCall;

/// A statement ready to run, kept in the plan cache.
pub struct Prepared {
    /// What to do.
    pub statement: Statement,
    /// Types of the parameters.
    pub params: Vec<Oid>,
    /// Columns of the result. A result may have none: see [`Prepared::returns_rows`].
    pub columns: Vec<OutputColumn>,
    /// Plans of subqueries; [`crate::expr::SubqueryExpr`] and [`Plan::Cte`] refer to them by number.
    pub subplans: Vec<Plan>,
    /// Subplans that change data (WITH): they run to their end whoever reads them.
    pub changes: Vec<usize>,
    /// Number of slots that executing needs.
    pub slots: usize,
    /// Tables (not system tables) with the lock to take on each before running.
    pub locks: Vec<(Oid, LockMode)>,
    /// Version of the catalog that it was made with; another version means: plan again, unless the
    /// cache proved the objects unchanged.
    pub catalog_version: u64,
    /// The command tag's word(s): `SELECT`, `INSERT`, `CREATE TABLE` …
    pub tag: &'static str,
    /// Whether it may change data or definitions (`25006` in a read-only transaction).
    pub writes: bool,
    /// Which statement it is to the statistics.
    pub identity: crate::Identity,
    /// Calls of constants that weren't computed when the statement was bound, some at least.
    pub constant_calls: Vec<ConstantCall>,
    /// What others can see of its run.
    pub effects: effects::Effects,
    /// What the executor derives from the plan at the first run (`ExecCache::default()` here).
    pub executor: ExecCache,
    /// Whether it is good for any values of the parameters.
    pub trials: crate::trials::Trials,
    /// Bytes of the stack that it was made on, which all who go through it need, too; 0: an ordinary one.
    pub stack: usize,
}

/// A deep plan is freed on a stack like the one that it was made on, whoever has it last.
impl Drop for Prepared {
    fn drop(&mut self) {
        if self.stack > sched::stack_bytes() {
            let statement = std::mem::replace(&mut self.statement, Statement::Empty);
            let subplans = std::mem::take(&mut self.subplans);
            let executor = std::mem::take(&mut self.executor);
            let parts = std::mem::ManuallyDrop::new((statement, subplans, executor));
            // Without room for a stack they stay: to free them here could overflow this one.
            let _ = sched::with_stack(self.stack, move || {
                drop(std::mem::ManuallyDrop::into_inner(parts));
            });
        }
    }
}

impl Prepared {
    /// Whether it has a result, maybe one whose rows have no columns (`SELECT`).
    pub fn returns_rows(&self) -> bool {
        match &self.statement {
            Statement::Query(Plan { node: Node::Modify(modify), .. }) => modify.returning.is_some(),
            Statement::Query(Plan { node: Node::Rewritten(all), .. }) => all.returns,
            // A CALL has a row only where there are output parameters.
            Statement::Query(_) => self.tag != "CALL" || !self.columns.is_empty(),
            Statement::Utility(_) | Statement::Empty => !self.columns.is_empty(),
        }
    }

    /// Whether a statement failed as one of its constant expressions does: PostgreSQL finds that when it plans,
    /// before it says what the rows are.
    pub fn has_failing_constant(
        &self,
        error: &base::Error,
        params: &[types::Datum],
        format: &types::FormatContext,
    ) -> bool {
        let fails_so = |one: &ConstantCall| match constant(&one.call, params, format) {
            Ok(_) => false,
            Err(own) => {
                crate::prepare::keep_interrupt(&own);
                own.code() == error.code() && own.message() == error.message()
            }
        };
        crate::prepare::interrupt_of(error).is_none() && self.constant_calls.iter().any(fails_so)
    }

    /// Computes the constants that nothing leaves out: PostgreSQL does when it plans, for a statement without rows,
    /// too.
    ///
    /// # Errors
    /// Those of the expressions.
    pub fn check_constants(
        &self,
        params: &[types::Datum],
        format: &types::FormatContext,
    ) -> base::Result<()> {
        let mut certain = self.constant_calls.iter().filter(|one| !one.guarded);
        certain.try_for_each(|one| constant(&one.call, params, format).map(drop))
    }

    /// An empty query string's.
    pub fn empty(catalog_version: u64) -> Prepared {
        Prepared {
            statement: Statement::Empty,
            params: Vec::new(),
            columns: Vec::new(),
            subplans: Vec::new(),
            changes: Vec::new(),
            slots: 0,
            locks: Vec::new(),
            catalog_version,
            tag: "",
            writes: false,
            identity: Default::default(),
            constant_calls: Vec::new(),
            effects: Default::default(),
            executor: Default::default(),
            trials: Default::default(),
            stack: sched::stack_bytes(),
        }
    }
}

/// A call of constants that wasn't computed when the statement was bound.
#[derive(Clone)]
pub struct ConstantCall {
    /// The call.
    pub call: Expr,
    /// An expression around it may leave it out.
    pub guarded: bool,
    /// The rows decide whether it is come to.
    pub conditional: bool,
}

/// The value of a call of constants; None: it isn't known here.
fn constant(
    e: &Expr,
    params: &[types::Datum],
    format: &types::FormatContext,
) -> base::Result<Option<types::Datum>> {
    let Expr::Call { function, args, ty, .. } = e else {
        return Ok(match e {
            Expr::Const(value, _) => Some(value.clone()),
            Expr::Param(n, _) => params.get(*n as usize).cloned(),
            _ => None,
        });
    };
    let mut values = Vec::with_capacity(args.len());
    for arg in args {
        let Some(value) = constant(arg, params, format)? else { return Ok(None) };
        values.push(value);
    }
    if function.strict && values.iter().any(types::Datum::is_null) {
        return Ok(Some(types::Datum::Null));
    }
    let types: Vec<Oid> = args.iter().map(Expr::ty).collect();
    let types = types::func::CallTypes { args: &types, result: *ty };
    function.body.run(&values, types, format).transpose()
}

/// Something that the executor makes of a plan once and keeps with it.
#[derive(Default)]
pub struct ExecCache(std::sync::OnceLock<Box<dyn std::any::Any + Send + Sync>>);

impl ExecCache {
    /// What is kept, made by `make` at the first call. None when it is of another type. `make` may wait, so
    /// nobody else waits for it: several that come at once each make one, and the first is kept. (A worker
    /// that waited for a session's `make` could be the very one that is to run it.)
    pub fn get_or_init<T: std::any::Any + Send + Sync>(
        &self,
        make: impl FnOnce() -> T,
    ) -> Option<&T> {
        let kept = match self.0.get() {
            Some(kept) => kept,
            None => {
                let made = Box::new(make());
                self.0.get_or_init(|| made)
            }
        };
        kept.downcast_ref()
    }
}

/// A column of a result, as RowDescription tells it.
#[derive(Clone, Debug)]
pub struct OutputColumn {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: Oid,
    /// Typmod.
    pub typmod: i32,
    /// The table that it comes from unchanged, or 0.
    pub table: Oid,
    /// Its number there.
    pub column: u16,
    /// Its collation where that is not its type's; [`NO_COLLATION`]: nobody knows.
    pub collation: u32,
}

/// See [`OutputColumn::collation`].
pub const NO_COLLATION: u32 = u32::MAX;

/// What a statement is.
pub enum Statement {
    /// Returns rows or changes data.
    Query(Plan),
    /// Everything else.
    Utility(Utility),
    /// An empty query string.
    Empty,
}

/// A column that a scan returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanColumn {
    /// The table's column, from 1.
    Attr(u16),
    /// Place of the row version (`ctid`), type tid.
    Tid,
    /// Root of its chain, type tid.
    Root,
    /// `tableoid`.
    TableOid,
    /// `xmin`, type xid.
    Xmin,
    /// `xmax`, type xid.
    Xmax,
    /// `cmin`, `cmax` (type cid, shown as xid).
    Cmin,
    /// See [`ScanColumn::Cmin`].
    Cmax,
}

/// A table to scan and what to return of it.
#[derive(Clone)]
pub struct Scan {
    /// The table.
    pub table: Arc<Table>,
    /// Columns to return, in this order: the input row of `filter` and of the node above.
    pub columns: Vec<ScanColumn>,
    /// Condition over those columns.
    pub filter: Option<Expr>,
    /// The table's name in the statement, where that is another one.
    pub alias: Option<Box<str>>,
}

/// A scan of a foreign table.
#[derive(Clone)]
pub struct ForeignScan {
    /// Table, columns, the condition that is left to the executor.
    pub scan: Scan,
    /// The conditions that are left to the server, over all of the table's columns in their order.
    pub remote: Vec<Expr>,
    /// The code behind the wrapper: [`crate::foreign::code_of`].
    pub code: Arc<str>,
    /// The role whose user mapping counts; 0: the session's.
    pub role: u32,
}

/// A query that one foreign server answers.
#[derive(Clone)]
pub struct ForeignQuery {
    /// The server.
    pub server: u32,
    /// The code behind its wrapper.
    pub code: Arc<str>,
    /// The role whose user mapping counts; 0: the session's.
    pub role: u32,
    /// The relation that it computes.
    pub rel: RemoteRel,
    /// Types of the output columns.
    pub types: Vec<Oid>,
}

/// Rows on a foreign server; expressions are over the columns of what is below.
#[derive(Clone)]
pub enum RemoteRel {
    /// A table's.
    Table {
        /// The foreign table.
        table: Arc<Table>,
        /// Its name in the statement, where that is another one.
        alias: Option<Box<str>>,
        /// The columns, from 1.
        columns: Vec<u16>,
        /// Conditions over all of the table's columns.
        conditions: Vec<Expr>,
    },
    /// A join's: the left columns, then the right ones.
    Join {
        /// Left.
        left: Box<RemoteRel>,
        /// Right.
        right: Box<RemoteRel>,
        /// INNER, LEFT, RIGHT or FULL.
        kind: JoinKind,
        /// ON, over both.
        conditions: Vec<Expr>,
    },
    /// Those that satisfy conditions.
    Filter {
        /// Rows.
        input: Box<RemoteRel>,
        /// The conditions.
        conditions: Vec<Expr>,
    },
    /// Other columns.
    Project {
        /// Rows.
        input: Box<RemoteRel>,
        /// The columns.
        exprs: Vec<Expr>,
    },
    /// Groups: their values, then the aggregates.
    Aggregate {
        /// Rows.
        input: Box<RemoteRel>,
        /// GROUP BY.
        groups: Vec<Expr>,
        /// The aggregates.
        aggs: Vec<AggCall>,
    },
    /// The same rows in order.
    Sort {
        /// Rows.
        input: Box<RemoteRel>,
        /// ORDER BY.
        keys: Vec<SortKey>,
    },
    /// The first rows.
    Limit {
        /// Rows.
        input: Box<RemoteRel>,
        /// LIMIT.
        count: Option<Expr>,
        /// OFFSET.
        offset: Option<Expr>,
    },
}

impl RemoteRel {
    /// How many columns it has.
    pub fn width(&self) -> usize {
        match self {
            RemoteRel::Table { columns, .. } => columns.len(),
            RemoteRel::Join { left, right, .. } => left.width() + right.width(),
            RemoteRel::Project { exprs, .. } => exprs.len(),
            RemoteRel::Aggregate { groups, aggs, .. } => groups.len() + aggs.len(),
            RemoteRel::Filter { input, .. }
            | RemoteRel::Sort { input, .. }
            | RemoteRel::Limit { input, .. } => input.width(),
        }
    }
}

/// Rows and cost that the planner expects.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Cost until the first row.
    pub startup: f64,
    /// Cost of all rows.
    pub total: f64,
    /// Rows.
    pub rows: f64,
    /// Average width in bytes.
    pub width: i32,
}

impl Estimate {
    /// Cost until this share of the rows has been read.
    pub fn until(&self, share: f64) -> f64 {
        self.startup + (self.total - self.startup) * share.min(1.0)
    }
}

/// An operator with its inputs.
#[derive(Clone)]
pub struct Plan {
    /// What it does.
    pub node: Node,
    /// Expected rows and costs, for EXPLAIN.
    pub estimate: Estimate,
}

/// Kinds of join; the outer (left) input's columns come first in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// Matching pairs.
    Inner,
    /// And left rows without a match.
    Left,
    /// And right rows without a match (hash join only).
    Right,
    /// Both (hash join, or a nested loop without slots).
    Full,
    /// Left rows with a match; only the left columns.
    Semi,
    /// Left rows without a match; only the left columns.
    Anti,
    /// Right rows with a match; only the right columns (hash join only).
    RightSemi,
    /// Right rows without a match; only the right columns (hash join only).
    RightAnti,
}

impl JoinKind {
    /// The kind that gives the same rows when the sides are exchanged.
    pub fn flipped(self) -> JoinKind {
        match self {
            JoinKind::Left => JoinKind::Right,
            JoinKind::Right => JoinKind::Left,
            JoinKind::Semi => JoinKind::RightSemi,
            JoinKind::RightSemi => JoinKind::Semi,
            JoinKind::Anti => JoinKind::RightAnti,
            JoinKind::RightAnti => JoinKind::Anti,
            JoinKind::Inner | JoinKind::Full => self,
        }
    }

    /// Whether the left side's columns are in the output.
    pub fn gives_left(self) -> bool {
        !matches!(self, JoinKind::RightSemi | JoinKind::RightAnti)
    }

    /// Whether the right side's columns are in the output.
    pub fn gives_right(self) -> bool {
        !matches!(self, JoinKind::Semi | JoinKind::Anti)
    }
}

/// How far an index scan goes: values for the first columns, then one range. All expressions are over
/// slots and parameters, of the columns' types or of related ones ([`types::cross`]).
#[derive(Clone, Default)]
pub struct IndexBounds {
    /// The first key columns equal these. NULL: no rows.
    pub equal: Vec<Expr>,
    /// What the columns behind them are.
    pub steps: Vec<KeyStep>,
    /// Lower bound of the columns behind those and whether it is included; several values are compared as
    /// a row.
    pub lower: Option<(Vec<Expr>, bool)>,
    /// Upper bound likewise.
    pub upper: Option<(Vec<Expr>, bool)>,
    /// The text behind them begins as this LIKE pattern does, or (false) with this text.
    pub begins: Option<(Expr, bool)>,
    /// The column behind them is not NULL.
    pub not_null: bool,
    /// In place of all that: what any of these gives.
    pub either: Vec<IndexBounds>,
    /// Conditions of methods that don't work by ranges.
    pub keys: Vec<ScanKey>,
    /// The rows come by these distances, the nearest first.
    pub nearest: Vec<ScanKey>,
    /// The same as expressions over the scan's columns, for indexes that aren't sure of their distances.
    pub distances: Vec<Expr>,
    /// What is to be asked again of rows of an index that isn't sure of them; over the scan's columns.
    pub recheck: Option<Expr>,
}

/// A condition that an index answers: an operator of the column's class with the column on its left.
#[derive(Clone)]
pub struct ScanKey {
    /// Which of the index's columns, from 0.
    pub column: u16,
    /// The operator's strategy number in the class.
    pub strategy: u16,
    /// The operator's oid.
    pub operator: Oid,
    /// The value on its right.
    pub value: Expr,
}

/// The strategy number that stands for IS NULL.
pub const IS_NULL: u16 = u16::MAX;
/// The strategy number that stands for IS NOT NULL.
pub const IS_NOT_NULL: u16 = u16::MAX - 1;

impl ScanKey {
    /// Whether it asks for NULL (true) or anything else (false); None: by an operator.
    pub fn null_test(&self) -> Option<bool> {
        match self.strategy {
            IS_NULL => Some(true),
            IS_NOT_NULL => Some(false),
            _ => None,
        }
    }
}

/// The statements that rules have made of one ([`crate::rewrite`]).
#[derive(Clone)]
pub struct Rewritten {
    /// In the order in which they run.
    pub steps: Vec<RewrittenStep>,
    /// Whether one of them has the result.
    pub returns: bool,
    /// The types of the result's columns.
    pub types: Vec<Oid>,
}

/// See [`Rewritten`].
#[derive(Clone)]
pub struct RewrittenStep {
    /// The statement.
    pub prepared: Arc<Prepared>,
    /// The number of its rows is the whole's.
    pub counts: bool,
    /// Its rows are the whole's.
    pub returns: bool,
}

/// A scan of a partitioned table.
#[derive(Clone)]
pub struct PartitionScan {
    /// The table.
    pub table: Arc<Table>,
    /// Which partitions are read.
    pub prune: crate::prune::Prune,
    /// The scan of one of them, as if the table and its indexes had the rows themselves.
    pub scan: Plan,
    /// The order in which the rows of each partition come, and in which all of them are given; over the output
    /// columns.
    pub order: Vec<SortKey>,
    /// One partition after the other is in that order (true: from the last one on), but for the default one.
    pub by_bounds: Option<bool>,
    /// The role whose user mapping counts for foreign partitions; 0: the session's.
    pub role: u32,
}

/// What a key column is.
#[derive(Clone)]
pub enum KeyStep {
    /// This value.
    Equal(Expr),
    /// One of this array's values.
    Any(Expr),
    /// NULL.
    Null,
    /// Anything: each of its values is looked up in turn, about so many.
    Each(f64),
}

impl IndexBounds {
    /// Whether there is nothing but values that the first columns equal.
    pub fn is_plain(&self) -> bool {
        self.steps.is_empty()
            && self.lower.is_none()
            && self.upper.is_none()
            && self.begins.is_none()
            && !self.not_null
            && self.either.is_empty()
            && self.keys.is_empty()
    }

    /// How many key columns stand before the range.
    pub fn fixed(&self) -> usize {
        self.equal.len() + self.steps.len()
    }
}

/// Operators.
#[derive(Clone)]
pub enum Node {
    /// One row without columns (`SELECT 1`), if the condition (over no columns) holds.
    OneRow,
    /// No rows.
    Nothing,
    /// VALUES lists.
    Values(Vec<Vec<Expr>>),
    /// Reads the whole table.
    SeqScan(Scan),
    /// Reads rows through an index, in its order.
    IndexScan {
        /// Table, columns, filter (what the bounds prove is left out of it).
        scan: Scan,
        /// The index.
        index: Arc<Index>,
        /// Where to look.
        bounds: IndexBounds,
        /// From the end.
        backward: bool,
    },
    /// Reads columns that an index has, in its order; the table is visited only for rows of pages that
    /// not everybody sees all of.
    IndexOnlyScan {
        /// Table, columns (all of them key columns that can be read back), filter.
        scan: Scan,
        /// The index.
        index: Arc<Index>,
        /// Where to look.
        bounds: IndexBounds,
        /// From the end.
        backward: bool,
    },
    /// Reads the rows of a bitmap, in the table's order.
    BitmapHeapScan {
        /// Table, columns, filter (what the bitmap proves is left out of it).
        scan: Scan,
        /// What the bitmap proves, for pages of which it doesn't know the rows.
        recheck: Option<Expr>,
        /// Places of the scan's columns that nothing but that asks for.
        rechecked: Vec<usize>,
        /// BitmapIndexScan, BitmapAnd or BitmapOr.
        input: Box<Plan>,
    },
    /// A bitmap of the rows that an index leads to.
    BitmapIndexScan {
        /// The table.
        table: Arc<Table>,
        /// The index.
        index: Arc<Index>,
        /// Where to look.
        bounds: IndexBounds,
    },
    /// The rows that are in all bitmaps.
    BitmapAnd(Vec<Plan>),
    /// The rows that are in any of the bitmaps.
    BitmapOr(Vec<Plan>),
    /// Reads a partitioned table: the partitions that conditions leave over, each as the template says.
    PartitionScan(Box<PartitionScan>),
    /// Runs a plan over partitioned tables with equal bounds for each place of the bounds, one after the other.
    PartitionWise {
        /// The plan, with the scans of the tables.
        input: Box<Plan>,
        /// The places of their partitions, by oid.
        places: Vec<(u32, u32)>,
    },
    /// A computed table. `equal`: (column from 0, expression) known at start.
    SystemScan {
        /// The table.
        table: &'static SystemTable,
        /// Columns to return (from 0).
        columns: Vec<u16>,
        /// Conditions that may help to compute fewer rows.
        equal: Vec<(u16, Expr)>,
        /// Condition over the returned columns.
        filter: Option<Expr>,
    },
    /// Part of a table's rows, by chance.
    SampleScan {
        /// Table, columns, filter.
        scan: Scan,
        /// What is chosen.
        method: SampleMethod,
        /// How many of a hundred.
        percent: Expr,
        /// REPEATABLE.
        seed: Option<Expr>,
    },
    /// Reads a foreign table, by the code behind its wrapper.
    ForeignScan(Box<ForeignScan>),
    /// The answer of a foreign server to a query over several of its tables, or with groups, an order or a limit.
    ForeignQuery(Box<ForeignQuery>),
    /// Set-returning functions in FROM, side by side; `ordinality` adds a row number.
    FunctionScan {
        /// The calls; a scalar function gives one row.
        calls: Vec<Expr>,
        /// WITH ORDINALITY.
        ordinality: bool,
        /// Condition over (values…[, ordinality]).
        filter: Option<Expr>,
    },
    /// Keeps rows for which the condition is true.
    Filter {
        /// Rows.
        input: Box<Plan>,
        /// Condition.
        condition: Expr,
    },
    /// Computes the output columns.
    Project {
        /// Rows.
        input: Box<Plan>,
        /// One for each output column.
        exprs: Vec<Expr>,
    },
    /// As Project, where some expressions are set-returning calls at the top: they run side by
    /// side, shorter ones padded with NULL.
    ProjectSet {
        /// Rows.
        input: Box<Plan>,
        /// One for each output column.
        exprs: Vec<Expr>,
    },
    /// For each left row runs the right side, with values of the left row in slots.
    NestedLoop {
        /// Outer side.
        left: Box<Plan>,
        /// Inner side, run again for each left row (materialised by the executor when it uses no slots).
        right: Box<Plan>,
        /// Kind.
        kind: JoinKind,
        /// Slots to fill from the left row before each run.
        slots: Vec<(u16, Expr)>,
        /// Condition over left ++ right columns.
        condition: Option<Expr>,
    },
    /// Builds a hash table of the right side.
    HashJoin {
        /// Probing side.
        left: Box<Plan>,
        /// Built side.
        right: Box<Plan>,
        /// Kind.
        kind: JoinKind,
        /// Pairs of equal values, over left and over right columns.
        keys: Vec<(Expr, Expr)>,
        /// Further condition over left ++ right columns.
        condition: Option<Expr>,
        /// Below a Gather: all threads read pieces of the right side, too.
        shared: bool,
    },
    /// Joins two inputs that are sorted by the keys.
    MergeJoin {
        /// Outer side; its order is the output's (not of RIGHT and FULL).
        left: Box<Plan>,
        /// Inner side.
        right: Box<Plan>,
        /// Kind.
        kind: JoinKind,
        /// Pairs of equal values, over left and over right columns, by which the inputs are sorted.
        keys: Vec<MergeKey>,
        /// Further condition over left ++ right columns.
        condition: Option<Expr>,
    },
    /// Groups and aggregates: output is group values, then aggregates.
    Aggregate {
        /// Rows.
        input: Box<Plan>,
        /// Group by; none with `plain`: one group, even of no rows.
        groups: Vec<Expr>,
        /// Aggregates.
        aggs: Vec<AggCall>,
        /// No GROUP BY: exactly one row.
        plain: bool,
        /// Input is sorted by the groups.
        sorted: bool,
        /// GROUPING SETS; the masks of `grouping()` come behind the aggregates.
        sets: Option<Sets>,
    },
    /// Window functions: the input's columns, then the calls' values. The input is sorted by the
    /// partition, then by the order.
    Window {
        /// Rows.
        input: Box<Plan>,
        /// PARTITION BY.
        partition: Vec<Expr>,
        /// ORDER BY.
        order: Vec<SortKey>,
        /// The calls.
        calls: Vec<WindowCall>,
        /// Helpers that compute the calls of partitions, at most.
        workers: u16,
    },
    /// Sorts; `limit` keeps only the first rows (a bound for top-N).
    Sort {
        /// Rows.
        input: Box<Plan>,
        /// By what.
        keys: Vec<SortKey>,
        /// Count and offset of a Limit above, when there is one.
        top: bool,
    },
    /// Sorts rows that are sorted by the first keys already, group by group.
    IncrementalSort {
        /// Rows.
        input: Box<Plan>,
        /// By what.
        keys: Vec<SortKey>,
        /// How many of the keys the rows are sorted by.
        presorted: usize,
    },
    /// Rows of an input that several threads may run, each for the next pages of its driving scan, in no order.
    Gather {
        /// A scan below filters, projections and the left sides of joins, all of which helpers can compute.
        input: Box<Plan>,
        /// Helpers that are worth it.
        workers: u16,
        /// The node right above has a state for each thread: groups, sorted rows.
        absorbed: bool,
        /// Subqueries that are computed before there are helpers.
        first: Vec<Expr>,
    },
    /// The right side of a nested loop, whose rows are kept for each set of values in the slots that it uses.
    Memoize {
        /// Rows.
        input: Box<Plan>,
        /// The slots and their types: what it gives depends on nothing else.
        keys: Vec<(u16, Oid)>,
        /// Values are told apart even where `=` says that they are equal (for EXPLAIN).
        binary: bool,
    },
    /// LIMIT and OFFSET.
    Limit {
        /// Rows.
        input: Box<Plan>,
        /// At most (NULL: all).
        count: Option<Expr>,
        /// Skip first.
        offset: Option<Expr>,
        /// WITH TIES: rows that are equal in these to the last one come, too.
        ties: Vec<Expr>,
    },
    /// Removes duplicates over the first `keys` columns; keeps each first row (DISTINCT ON needs
    /// sorted input; otherwise hashed).
    Distinct {
        /// Rows.
        input: Box<Plan>,
        /// Number of leading columns (or the expressions' columns) compared.
        keys: Vec<Expr>,
        /// Input is sorted by the keys.
        sorted: bool,
    },
    /// UNION ALL.
    Append(Vec<Plan>),
    /// INTERSECT and EXCEPT (UNION is Distinct over Append).
    SetOp {
        /// Left.
        left: Box<Plan>,
        /// Right.
        right: Box<Plan>,
        /// EXCEPT instead of INTERSECT.
        except: bool,
        /// ALL.
        all: bool,
    },
    /// Locks rows (FOR UPDATE and kin). The input's columns include each table's tid and root.
    LockRows {
        /// Rows.
        input: Box<Plan>,
        /// Tables to lock.
        targets: Vec<LockTarget>,
    },
    /// INSERT, UPDATE, DELETE.
    Modify(Box<Modify>),
    /// What rules made of a statement.
    Rewritten(Box<Rewritten>),
    /// Reads a subplan (WITH) whose rows are kept for all who read it.
    Cte {
        /// Which subplan.
        plan: usize,
        /// The WITH query's name.
        name: String,
        /// The name that the statement gives it here, where that is another one.
        alias: Option<String>,
        /// Names of the columns.
        columns: Vec<String>,
        /// The outer values that it uses, by the slots it reads them from: where these have changed, it is
        /// computed anew.
        slots: Vec<(u16, Expr)>,
    },
    /// A recursive WITH query: the base's rows, then the step's again and again, each over the rows
    /// of the round before, until a round gives none.
    RecursiveUnion {
        /// First rows.
        base: Box<Plan>,
        /// A round.
        step: Box<Plan>,
        /// UNION ALL: rows that came before come again.
        all: bool,
        /// Number of its work table.
        table: usize,
        /// Subplans that read the work table: each round computes them anew.
        anew: Vec<usize>,
    },
    /// The rows of the last round of a RecursiveUnion.
    WorkTable {
        /// Its number.
        table: usize,
        /// The WITH query's name.
        name: String,
        /// Names and types of the columns.
        columns: Vec<(String, Oid)>,
    },
}

/// A key of a merge join.
#[derive(Clone)]
pub struct MergeKey {
    /// Over the left columns.
    pub left: Expr,
    /// Over the right columns, of the same type.
    pub right: Expr,
    /// Both inputs are in descending order.
    pub descending: bool,
    /// NULLs come first in both.
    pub nulls_first: bool,
}

/// GROUPING SETS of an aggregate.
#[derive(Clone)]
pub struct Sets {
    /// The sets, by place in the groups.
    pub sets: Vec<Vec<usize>>,
    /// The arguments of each `grouping()`, by place in the groups.
    pub masks: Vec<Vec<usize>>,
}

/// What TABLESAMPLE chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleMethod {
    /// Rows.
    Bernoulli,
    /// Pages.
    System,
    /// Pages in an order of chance until there are so many rows (extension `tsm_system_rows`).
    SystemRows,
    /// Pages in an order of chance for so many milliseconds (extension `tsm_system_time`).
    SystemTime,
}

/// A table whose rows LockRows locks.
#[derive(Clone)]
pub struct LockTarget {
    /// The table.
    pub table: Arc<Table>,
    /// Input column with the tid; the next one has the root. NULL (outer join): no row.
    pub tid: u16,
    /// Strength.
    pub mode: RowLockMode,
    /// What when somebody else has it.
    pub wait: LockRowsWait,
    /// Input columns that come from this table: (input column, what). When a newer version was
    /// locked they are read again from it…
    pub columns: Vec<(u16, ScanColumn)>,
    /// …and this condition over the input row must still hold.
    pub recheck: Option<Expr>,
    /// Only for rows of this table: the input column that says which one a row is in.
    pub tableoid: Option<u16>,
}

/// See [`LockTarget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockRowsWait {
    /// Wait.
    Block,
    /// NOWAIT: `55P03`.
    NoWait,
    /// SKIP LOCKED.
    Skip,
}

/// A change of rows. Its output is `returning` over the table's columns (all, dropped ones as NULL,
/// in table order, of the new row, or the old one for DELETE) followed by the input row's columns (for
/// INSERT by the row's `xmax`: 0, or the transaction that updated it ON CONFLICT).
#[derive(Clone)]
pub struct Modify {
    /// The table.
    pub table: Arc<Table>,
    /// Its indexes.
    pub indexes: Vec<Arc<Index>>,
    /// What to do.
    pub action: ModifyAction,
    /// RETURNING.
    pub returning: Option<Vec<Expr>>,
    /// What each new row must be (expressions over the row, in table order).
    pub checks: RowRules,
    /// Further tables whose rows may be among the input's (UPDATE, DELETE and MERGE).
    pub children: Vec<ModifyChild>,
    /// Input column that says which table a row is in, when there are children.
    pub tableoid: u16,
    /// RETURNING asks where the changed rows are and who made them: behind the columns of the input come
    /// [`PLACED`].
    pub places: bool,
    /// The role whose user mapping counts where the table is a foreign one; 0: the session's.
    pub role: u32,
}

/// System columns that are known when a row has been written. Of an inserted row `xmax` is known before.
pub const PLACED: [ScanColumn; 5] =
    [ScanColumn::Tid, ScanColumn::Xmin, ScanColumn::Cmin, ScanColumn::Cmax, ScanColumn::Xmax];

/// A table that inherits from the one that a statement names.
#[derive(Clone)]
pub struct ModifyChild {
    /// The table.
    pub table: Arc<Table>,
    /// Its indexes.
    pub indexes: Vec<Arc<Index>>,
    /// What each new row of it must be.
    pub checks: RowRules,
    /// The numbers here of the named table's columns, in their order; 0 for dropped ones.
    pub numbers: Vec<u16>,
    /// As [`ModifyAction::Update`]'s, by this table's numbers.
    pub columns: Vec<(u16, ScanColumn)>,
    /// As [`ModifyAction::Update`]'s, by this table's numbers; empty for MERGE, whose clauses have their own.
    pub set: Vec<(u16, Expr)>,
}

/// What holds for each new row of a table; expressions over the row.
#[derive(Clone, Default)]
pub struct RowRules {
    /// Generated columns, computed first: column from 1, and its value.
    pub generated: Vec<(u16, Expr)>,
    /// CHECK constraints by name.
    pub checks: Vec<(String, Expr)>,
    /// Expressions of the table's indexes, index after index ([`Index::expressions`]).
    pub keys: Vec<Expr>,
    /// WITH CHECK OPTION of the views that the row goes through, by the view's name.
    pub options: Vec<(String, Expr)>,
    /// What the row that ON CONFLICT DO UPDATE found must meet to be seen through the views that the statement names, by
    /// the view's name, the innermost first.
    pub shown: Vec<(String, Expr)>,
    /// Columns that the statement gives values, from 1: an error shows them to those who may not read them.
    pub written: Vec<u16>,
    /// WHEN of the table's triggers by their oids, over a row that has the old row's columns before the new
    /// one's.
    pub conditions: Vec<(u32, Expr)>,
    /// What the policies of row-level security demand, if any count.
    pub policies: Option<Box<PolicyRules>>,
}

/// What policies demand of rows that are written, over the row; each list in the order in which it is checked.
#[derive(Clone, Default)]
pub struct PolicyRules {
    /// The table's name, for errors.
    pub table: String,
    /// Of a new row.
    pub insert: Vec<PolicyCheck>,
    /// Of a changed row.
    pub update: Vec<PolicyCheck>,
    /// Of the row that ON CONFLICT DO UPDATE found.
    pub conflict: Vec<PolicyCheck>,
    /// Of the row that MERGE is about to update.
    pub merge_update: Vec<PolicyCheck>,
    /// Of the row that MERGE is about to delete.
    pub merge_delete: Vec<PolicyCheck>,
}

/// A condition of policies.
#[derive(Clone)]
pub struct PolicyCheck {
    /// The policy's name; None: one of several permissive ones must hold.
    pub policy: Option<String>,
    /// It must be true.
    pub condition: Expr,
}

impl PolicyRules {
    fn map(self, f: &mut dyn FnMut(Expr) -> base::Result<Expr>) -> base::Result<PolicyRules> {
        let mut all = |list: Vec<PolicyCheck>| -> base::Result<Vec<PolicyCheck>> {
            let one = |c: PolicyCheck| Ok(PolicyCheck { condition: f(c.condition)?, ..c });
            list.into_iter().map(one).collect()
        };
        Ok(PolicyRules {
            insert: all(self.insert)?,
            update: all(self.update)?,
            conflict: all(self.conflict)?,
            merge_update: all(self.merge_update)?,
            merge_delete: all(self.merge_delete)?,
            table: self.table,
        })
    }
}

impl RowRules {
    /// The same rules with other expressions; the triggers' conditions stay.
    ///
    /// # Errors
    /// The function's.
    pub fn map(self, f: &mut dyn FnMut(Expr) -> base::Result<Expr>) -> base::Result<RowRules> {
        fn all<N>(
            list: Vec<(N, Expr)>,
            f: &mut dyn FnMut(Expr) -> base::Result<Expr>,
        ) -> base::Result<Vec<(N, Expr)>> {
            list.into_iter().map(|(name, e)| Ok((name, f(e)?))).collect()
        }
        Ok(RowRules {
            generated: all(self.generated, f)?,
            checks: all(self.checks, f)?,
            keys: self.keys.into_iter().map(&mut *f).collect::<base::Result<_>>()?,
            options: all(self.options, f)?,
            shown: all(self.shown, f)?,
            written: self.written,
            conditions: self.conditions,
            policies: match self.policies {
                Some(rules) => Some(Box::new(rules.map(f)?)),
                None => None,
            },
        })
    }
}

/// See [`Modify`].
#[derive(Clone)]
pub enum ModifyAction {
    /// Rows of `input` are complete new rows, in table order (defaults and typmods applied).
    Insert {
        /// Rows.
        input: Plan,
        /// ON CONFLICT.
        conflict: Option<Box<Conflict>>,
    },
    /// Rows of `input` begin with tid, root, then the columns that `set`, `recheck` and `returning`
    /// need.
    Update {
        /// Rows.
        input: Plan,
        /// Input columns that come from the table: (input column, what), to be read again when a
        /// newer version of the row was found. All live columns of the table are among them.
        columns: Vec<(u16, ScanColumn)>,
        /// New values: (table's column from 1, expression over the input row).
        set: Vec<(u16, Expr)>,
        /// Condition over the input row that must still hold on a newer version.
        recheck: Option<Expr>,
    },
    /// As Update.
    Delete {
        /// Rows.
        input: Plan,
        /// As for Update, but only those that are used where nobody else asks what was in the rows.
        columns: Vec<(u16, ScanColumn)>,
        /// As for Update.
        recheck: Option<Expr>,
    },
    /// MERGE: as Update, with `input` rows whose tid is NULL where no row of the table matches.
    Merge {
        /// Rows.
        input: Plan,
        /// As for Update.
        columns: Vec<(u16, ScanColumn)>,
        /// ON: whether a newer version still matches.
        recheck: Option<Expr>,
        /// WHEN …, in order.
        clauses: Vec<MergeClause>,
    },
}

/// A parameter, from 0, and the value that it must have.
pub type Assumed = (u32, types::Datum);

/// ON CONFLICT.
#[derive(Clone)]
pub struct Conflict {
    /// Places in [`Modify::indexes`] of the indexes whose conflicts count.
    pub arbiters: Vec<usize>,
    /// Those that count only if parameters (from 0) have these values, which their conditions demand.
    pub assumed: Vec<(usize, Vec<Assumed>)>,
    /// The statement names none: those that only a partition has count, too.
    pub any: bool,
    /// DO UPDATE; else DO NOTHING.
    pub update: Option<ConflictUpdate>,
}

/// DO UPDATE; expressions are over the existing row, then the one that was to be inserted, both in
/// table order.
#[derive(Clone)]
pub struct ConflictUpdate {
    /// New values: (table's column from 1, expression).
    pub set: Vec<(u16, Expr)>,
    /// WHERE.
    pub condition: Option<Expr>,
}

/// One WHEN of MERGE; expressions are over the input row.
#[derive(Clone)]
pub struct MergeClause {
    /// WHEN MATCHED.
    pub matched: bool,
    /// AND.
    pub condition: Option<Expr>,
    /// THEN.
    pub action: MergeAction,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As when a session's first run waits, and another one on the same worker begins with the same plan.
    #[test]
    fn a_first_run_does_not_wait_for_another_ones() {
        let cache = ExecCache::default();
        let kept = cache.get_or_init(|| {
            assert_eq!(cache.get_or_init(|| 1), Some(&1));
            2
        });
        assert_eq!(kept, Some(&1));
    }
}

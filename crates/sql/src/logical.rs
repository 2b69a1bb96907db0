//! The bound query: a small tree of relational operators. Columns have numbers that are unique in
//! the whole statement ([`Col`]), so an expression means the same wherever it stands: pushing a
//! condition down or pulling a subquery up changes no expression. `Expr::Column` holds such a
//! number until the planner replaces it by a place in the input row, or by a slot when the column
//! belongs to an outer query.

use std::sync::Arc;

use catalog::Table;
use catalog::system::SystemTable;
use txn::RowLockMode;

use crate::expr::{AggCall, Expr, SortKey};
use crate::plan::{JoinKind, LockRowsWait, OutputColumn, RowRules, SampleMethod, ScanColumn};
use crate::window::WindowCall;

/// Number of a column in the statement.
pub type Col = u16;

/// What is known about a [`Col`].
#[derive(Clone, Debug)]
pub struct Var {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: base::Oid,
    /// Typmod.
    pub typmod: i32,
    /// The table's oid and the column's number there, if it is one.
    pub origin: Option<(u32, u16)>,
    /// Where the statement first names it.
    pub position: u32,
    /// Whether the statement uses its value (and so needs the right to).
    pub read: bool,
    /// Its collation where that is not its type's; see [`crate::bind`].
    pub collation: u32,
    /// The columns of its rows, if it is a record whose columns are known.
    pub row: Vec<(types::Text, base::Oid)>,
}

/// System columns of a table, in the order of their numbers after the ordinary ones.
pub const SYSTEM_COLUMNS: [(ScanColumn, &str, base::Oid); 7] = [
    (ScanColumn::Tid, "ctid", types::oids::TID),
    (ScanColumn::Root, "root", types::oids::TID),
    (ScanColumn::TableOid, "tableoid", types::oids::OID),
    (ScanColumn::Xmin, "xmin", types::oids::XID),
    (ScanColumn::Xmax, "xmax", types::oids::XID),
    (ScanColumn::Cmin, "cmin", types::oids::XID),
    (ScanColumn::Cmax, "cmax", types::oids::XID),
];

/// A use of a table.
#[derive(Clone)]
pub struct TableRel {
    /// The table.
    pub table: Arc<Table>,
    /// Number of its first column; column `n` (from 1) is `base + n - 1`, the system columns follow.
    pub base: Col,
    /// Its name in the statement.
    pub alias: String,
    /// Tables whose rows count among its own, unless ONLY was said. The planner puts an Append in its
    /// place ([`crate::planner::children`]).
    pub children: Option<Arc<[Child]>>,
    /// The role that uses it, where that is not the session's: the owner of a view. 0: the session's.
    pub role: u32,
}

/// A table whose rows count among another one's.
pub struct Child {
    /// The table.
    pub table: Arc<Table>,
    /// The numbers here of the other one's columns, in their order; 0 for dropped ones.
    pub numbers: Vec<u16>,
}

impl Child {
    /// A column of the other table as this one's.
    pub fn column(&self, column: ScanColumn) -> ScanColumn {
        match column {
            ScanColumn::Attr(n) => ScanColumn::Attr(self.numbers[usize::from(n) - 1]),
            other => other,
        }
    }
}

/// A child as the target of a change: its columns, and what its new rows must be.
#[derive(Clone)]
pub struct ChildTarget {
    /// The table's use, of its own columns.
    pub rel: TableRel,
    /// What each new row must be, over them.
    pub checks: RowRules,
}

impl TableRel {
    /// Whether it has no rows: a partitioned table without its partitions (ONLY).
    pub fn is_empty(&self) -> bool {
        self.table.is_partitioned() && self.children.is_none()
    }

    /// The number of a column or system column.
    pub fn col(&self, column: ScanColumn) -> Col {
        match column {
            ScanColumn::Attr(n) => self.base + n - 1,
            other => {
                let at = SYSTEM_COLUMNS.iter().position(|c| c.0 == other).unwrap_or(0);
                self.base + self.table.columns.len() as Col + at as Col
            }
        }
    }

    /// Which of the table's columns a number is.
    pub fn column(&self, col: Col) -> Option<ScanColumn> {
        let at = usize::from(col.checked_sub(self.base)?);
        match at.checked_sub(self.table.columns.len()) {
            None => Some(ScanColumn::Attr(at as u16 + 1)),
            Some(system) => SYSTEM_COLUMNS.get(system).map(|c| c.0),
        }
    }
}

/// Rows of a set operation's input: its columns in order.
#[derive(Clone)]
pub struct Input {
    /// Rows.
    pub rel: Rel,
    /// Its columns.
    pub cols: Vec<Col>,
}

/// A table whose rows are locked.
#[derive(Clone)]
pub struct RelLock {
    /// The table's use.
    pub table: TableRel,
    /// Strength.
    pub mode: RowLockMode,
    /// What when somebody else has it.
    pub wait: LockRowsWait,
}

/// Relational operators.
#[derive(Clone)]
pub enum Rel {
    /// One row without columns.
    OneRow,
    /// No rows.
    Nothing,
    /// VALUES.
    Values {
        /// Its columns.
        cols: Vec<Col>,
        /// Its rows.
        rows: Vec<Vec<Expr>>,
    },
    /// A table.
    Table(TableRel),
    /// A computed table; column `n` (from 0) is `base + n`.
    System {
        /// The table.
        table: &'static SystemTable,
        /// Number of its first column.
        base: Col,
    },
    /// Functions in FROM, side by side (ROWS FROM).
    Function {
        /// The calls.
        calls: Vec<Expr>,
        /// WITH ORDINALITY.
        ordinality: bool,
        /// Their values, and the number.
        cols: Vec<Col>,
    },
    /// TABLESAMPLE.
    Sample {
        /// The table.
        table: TableRel,
        /// BERNOULLI or SYSTEM.
        method: SampleMethod,
        /// How many of a hundred.
        percent: Expr,
        /// REPEATABLE.
        seed: Option<Expr>,
    },
    /// A join. The right side may use columns of the left one (LATERAL) when `kind` is Inner or
    /// Left.
    Join {
        /// Kind; never Right (the binder swaps sides).
        kind: JoinKind,
        /// Left.
        left: Box<Rel>,
        /// Right.
        right: Box<Rel>,
        /// Conditions.
        on: Vec<Expr>,
    },
    /// WHERE and HAVING.
    Filter {
        /// Rows.
        input: Box<Rel>,
        /// All must be true.
        conditions: Vec<Expr>,
    },
    /// Rows of which conditions from above must not learn before those below have let them through: only
    /// leakproof ones go below (row-level security, views WITH (security_barrier)).
    Barrier {
        /// Rows.
        input: Box<Rel>,
    },
    /// Computes columns.
    Project {
        /// Rows.
        input: Box<Rel>,
        /// New columns.
        exprs: Vec<(Col, Expr)>,
        /// Some are set-returning calls.
        set: bool,
    },
    /// Groups.
    Aggregate {
        /// Rows.
        input: Box<Rel>,
        /// GROUP BY.
        groups: Vec<(Col, Expr)>,
        /// Aggregates.
        aggs: Vec<(Col, AggCall)>,
        /// One group, even of no rows.
        plain: bool,
        /// GROUPING SETS and kin.
        sets: Option<GroupingSets>,
    },
    /// Window functions with one PARTITION BY and ORDER BY: columns beside the input's.
    Window {
        /// Rows.
        input: Box<Rel>,
        /// PARTITION BY.
        partition: Vec<Expr>,
        /// ORDER BY.
        order: Vec<SortKey>,
        /// The calls.
        calls: Vec<(Col, WindowCall)>,
    },
    /// ORDER BY.
    Sort {
        /// Rows.
        input: Box<Rel>,
        /// Keys.
        keys: Vec<SortKey>,
    },
    /// LIMIT and OFFSET.
    Limit {
        /// Rows.
        input: Box<Rel>,
        /// LIMIT.
        count: Option<Expr>,
        /// OFFSET.
        offset: Option<Expr>,
        /// WITH TIES: the ORDER BY.
        ties: Vec<Expr>,
    },
    /// DISTINCT, DISTINCT ON (`sorted`: input is sorted by the keys).
    Distinct {
        /// Rows.
        input: Box<Rel>,
        /// Compared values.
        keys: Vec<Expr>,
        /// DISTINCT ON after a sort.
        sorted: bool,
    },
    /// UNION ALL.
    Append {
        /// Inputs.
        inputs: Vec<Input>,
        /// Its columns.
        cols: Vec<Col>,
    },
    /// INTERSECT and EXCEPT.
    SetOp {
        /// Left.
        left: Box<Input>,
        /// Right.
        right: Box<Input>,
        /// EXCEPT.
        except: bool,
        /// ALL.
        all: bool,
        /// Its columns.
        cols: Vec<Col>,
    },
    /// FOR UPDATE and kin.
    Lock {
        /// Rows.
        input: Box<Rel>,
        /// Tables.
        targets: Vec<RelLock>,
        /// Conditions that must still hold on a newer version.
        recheck: Vec<Expr>,
    },
    /// A WITH query, by number.
    Cte {
        /// Which.
        index: usize,
        /// The name that the statement gives it here, where that is another one.
        alias: Option<String>,
        /// Its columns here.
        cols: Vec<Col>,
        /// Columns of outer queries that it uses, and what stands for them here: the column itself, or what
        /// computes it where the subquery that gave it has been merged into the one around it.
        outer: Vec<(Col, Expr)>,
    },
    /// Inside a recursive WITH query: the rows of the last round.
    WorkTable {
        /// The WITH query.
        index: usize,
        /// Its columns here.
        cols: Vec<Col>,
    },
}

/// GROUPING SETS: which of the groups' values count in each set.
#[derive(Clone)]
pub struct GroupingSets {
    /// The sets, by place in `groups`.
    pub sets: Vec<Vec<usize>>,
    /// `grouping(…)`: its column, and its arguments' places in `groups`.
    pub masks: Vec<(Col, Vec<usize>)>,
}

/// A bound query.
#[derive(Clone)]
pub struct Query {
    /// Rows.
    pub rel: Rel,
    /// Numbers of the output columns, in order.
    pub cols: Vec<Col>,
    /// How they are described to the client.
    pub output: Vec<OutputColumn>,
}

/// A WITH query.
#[derive(Clone)]
pub struct Cte {
    /// Its name.
    pub name: String,
    /// The query; of a recursive one the part that doesn't refer to itself, of one that changes
    /// data only the columns.
    pub query: Query,
    /// What makes it more than a query.
    pub kind: CteKind,
    /// Columns of outer queries that it uses.
    pub outer: Vec<Col>,
    /// How often it is used.
    pub uses: usize,
    /// MATERIALIZED (Some(true)) or NOT MATERIALIZED.
    pub materialized: Option<bool>,
    /// How many of its columns its own step can name, and how many others can: SEARCH and CYCLE add some.
    pub named: (usize, usize),
}

/// See [`Cte`].
#[derive(Clone)]
pub enum CteKind {
    /// A query.
    Plain,
    /// `query UNION [ALL] step`, where the step reads the last round's rows.
    Recursive {
        /// The part that refers to itself.
        step: Query,
        /// UNION ALL.
        all: bool,
    },
    /// A statement that changes data; runs once and to its end, whoever reads it.
    Change(Box<Change>),
}

impl Rel {
    /// Calls `f` with each input.
    pub fn for_inputs<'r>(&'r self, f: &mut dyn FnMut(&'r Rel)) {
        match self {
            Rel::OneRow
            | Rel::Nothing
            | Rel::Values { .. }
            | Rel::Table(_)
            | Rel::System { .. }
            | Rel::Function { .. }
            | Rel::Sample { .. }
            | Rel::WorkTable { .. }
            | Rel::Cte { .. } => {}
            Rel::Join { left, right, .. } => {
                f(left);
                f(right);
            }
            Rel::Filter { input, .. }
            | Rel::Barrier { input }
            | Rel::Project { input, .. }
            | Rel::Aggregate { input, .. }
            | Rel::Window { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Limit { input, .. }
            | Rel::Distinct { input, .. }
            | Rel::Lock { input, .. } => f(input),
            Rel::Append { inputs, .. } => inputs.iter().for_each(|i| f(&i.rel)),
            Rel::SetOp { left, right, .. } => {
                f(&left.rel);
                f(&right.rel);
            }
        }
    }

    /// Calls `f` with each input, to be changed.
    pub fn for_inputs_mut(&mut self, f: &mut dyn FnMut(&mut Rel)) {
        match self {
            Rel::OneRow
            | Rel::Nothing
            | Rel::Values { .. }
            | Rel::Table(_)
            | Rel::System { .. }
            | Rel::Function { .. }
            | Rel::Sample { .. }
            | Rel::WorkTable { .. }
            | Rel::Cte { .. } => {}
            Rel::Join { left, right, .. } => {
                f(left);
                f(right);
            }
            Rel::Filter { input, .. }
            | Rel::Barrier { input }
            | Rel::Project { input, .. }
            | Rel::Aggregate { input, .. }
            | Rel::Window { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Limit { input, .. }
            | Rel::Distinct { input, .. }
            | Rel::Lock { input, .. } => f(input),
            Rel::Append { inputs, .. } => inputs.iter_mut().for_each(|i| f(&mut i.rel)),
            Rel::SetOp { left, right, .. } => {
                f(&mut left.rel);
                f(&mut right.rel);
            }
        }
    }

    /// Calls `f` with each expression of this operator (not of its inputs).
    pub fn for_exprs<'r>(&'r self, f: &mut dyn FnMut(&'r Expr)) {
        match self {
            Rel::OneRow
            | Rel::Nothing
            | Rel::Table(_)
            | Rel::System { .. }
            | Rel::Append { .. }
            | Rel::Barrier { .. }
            | Rel::SetOp { .. }
            | Rel::WorkTable { .. } => {}
            Rel::Cte { outer, .. } => outer.iter().for_each(|(_, e)| f(e)),
            Rel::Values { rows, .. } => rows.iter().flatten().for_each(f),
            Rel::Function { calls, .. } => calls.iter().for_each(f),
            Rel::Sample { percent, seed, .. } => {
                f(percent);
                seed.iter().for_each(f);
            }
            Rel::Join { on, .. } => on.iter().for_each(f),
            Rel::Filter { conditions, .. } => conditions.iter().for_each(f),
            Rel::Project { exprs, .. } => exprs.iter().for_each(|(_, e)| f(e)),
            Rel::Aggregate { groups, aggs, .. } => {
                groups.iter().for_each(|(_, e)| f(e));
                aggs.iter().for_each(|(_, agg)| agg.for_exprs(f));
            }
            Rel::Window { partition, order, calls, .. } => {
                partition.iter().for_each(&mut *f);
                order.iter().for_each(|k| f(&k.expr));
                calls.iter().for_each(|(_, call)| call.for_exprs(f));
            }
            Rel::Sort { keys, .. } => keys.iter().for_each(|k| f(&k.expr)),
            Rel::Limit { count, offset, ties, .. } => {
                count.iter().for_each(&mut *f);
                offset.iter().for_each(&mut *f);
                ties.iter().for_each(f);
            }
            Rel::Distinct { keys, .. } => keys.iter().for_each(f),
            Rel::Lock { recheck, .. } => recheck.iter().for_each(f),
        }
    }

    /// Whether others can see how far and how often the rows are computed: there are volatile functions, or row
    /// locks. (WITH queries that are kept have their effects once, whoever reads them.)
    pub fn acts(&self) -> bool {
        if sched::check_stack().is_err() {
            return true;
        }
        let mut found = matches!(self, Rel::Lock { .. });
        self.for_exprs(&mut |e| found = found || crate::walk::acts(e));
        self.for_inputs(&mut |input| found = found || input.acts());
        found
    }

    /// Adds the columns that this operator gives to the one above.
    pub fn output(&self, out: &mut Vec<Col>) {
        match self {
            Rel::OneRow | Rel::Nothing => {}
            Rel::Values { cols, .. }
            | Rel::Function { cols, .. }
            | Rel::Append { cols, .. }
            | Rel::SetOp { cols, .. }
            | Rel::WorkTable { cols, .. }
            | Rel::Cte { cols, .. } => out.extend(cols),
            Rel::Table(table) | Rel::Sample { table, .. } => {
                let count = table.table.columns.len() + SYSTEM_COLUMNS.len();
                out.extend(table.base..table.base + count as Col);
            }
            Rel::System { table, base } => out.extend(*base..base + table.columns.len() as Col),
            Rel::Join { kind, left, right, .. } => {
                left.output(out);
                if kind.gives_right() {
                    right.output(out);
                }
            }
            Rel::Project { exprs, .. } => out.extend(exprs.iter().map(|(c, _)| c)),
            Rel::Aggregate { groups, aggs, sets, .. } => {
                out.extend(groups.iter().map(|(c, _)| c));
                out.extend(aggs.iter().map(|(c, _)| c));
                out.extend(sets.iter().flat_map(|s| s.masks.iter().map(|(c, _)| c)));
            }
            Rel::Window { input, calls, .. } => {
                input.output(out);
                out.extend(calls.iter().map(|(c, _)| c));
            }
            Rel::Filter { input, .. }
            | Rel::Barrier { input }
            | Rel::Sort { input, .. }
            | Rel::Limit { input, .. }
            | Rel::Distinct { input, .. }
            | Rel::Lock { input, .. } => input.output(out),
        }
    }

    /// Columns of outer queries (or of the left side of a lateral join) used anywhere inside.
    pub fn outer_columns(&self) -> Vec<Col> {
        let (mut used, mut defined) = (Vec::new(), Vec::new());
        self.collect(&mut used, &mut defined);
        defined.sort_unstable();
        used.sort_unstable();
        used.dedup();
        used.retain(|c| defined.binary_search(c).is_err());
        used
    }

    fn collect(&self, used: &mut Vec<Col>, defined: &mut Vec<Col>) {
        self.for_exprs(&mut |e| crate::walk::columns_of(e, used));
        match self {
            Rel::Append { inputs, .. } => inputs.iter().for_each(|i| used.extend(&i.cols)),
            Rel::SetOp { left, right, .. } => {
                used.extend(&left.cols);
                used.extend(&right.cols);
            }
            _ => {}
        }
        // Operators that pass columns through define nothing new.
        match self {
            Rel::Filter { .. }
            | Rel::Barrier { .. }
            | Rel::Sort { .. }
            | Rel::Limit { .. }
            | Rel::Distinct { .. }
            | Rel::Lock { .. }
            | Rel::Join { .. } => {}
            _ => self.output(defined),
        }
        self.for_inputs(&mut |input| input.collect(used, defined));
    }
}

/// A bound change of rows.
#[derive(Clone)]
pub struct Change {
    /// The table.
    pub table: TableRel,
    /// What to do.
    pub action: ChangeAction,
    /// RETURNING, over the table's columns and the input's.
    pub returning: Option<Vec<Expr>>,
    /// What each new row must be, over the table's columns.
    pub checks: RowRules,
    /// For each of the table's children, in their order; UPDATE, DELETE and MERGE only.
    pub children: Vec<ChildTarget>,
}

/// See [`Change`].
#[derive(Clone)]
pub enum ChangeAction {
    /// Complete new rows, in table order.
    Insert {
        /// The rows.
        input: Input,
        /// ON CONFLICT.
        conflict: Option<Conflict>,
    },
    /// New values: (column from 1, expression).
    Update {
        /// Rows, the table's among their columns.
        rel: Rel,
        /// New values.
        set: Vec<(u16, Expr)>,
        /// WHERE.
        recheck: Vec<Expr>,
    },
    /// As Update.
    Delete {
        /// Rows.
        rel: Rel,
        /// WHERE.
        recheck: Vec<Expr>,
    },
    /// MERGE.
    Merge {
        /// The source's rows with the table's rows that match them (NULLs where none does).
        rel: Rel,
        /// ON.
        recheck: Vec<Expr>,
        /// WHEN …, in order.
        clauses: Vec<MergeClause>,
    },
}

/// ON CONFLICT.
#[derive(Clone)]
pub struct Conflict {
    /// Oids of the indexes whose conflicts count, with what they take for granted; empty: all unique ones.
    pub arbiters: Vec<(u32, Vec<crate::plan::Assumed>)>,
    /// DO UPDATE.
    pub update: Option<ConflictUpdate>,
}

/// DO UPDATE: over the table's columns and those of `excluded`.
#[derive(Clone)]
pub struct ConflictUpdate {
    /// The row that was to be inserted.
    pub excluded: TableRel,
    /// New values: (column from 1, expression).
    pub set: Vec<(u16, Expr)>,
    /// WHERE.
    pub conditions: Vec<Expr>,
}

/// One WHEN of MERGE.
#[derive(Clone)]
pub struct MergeClause {
    /// WHEN MATCHED.
    pub matched: bool,
    /// AND.
    pub conditions: Vec<Expr>,
    /// THEN.
    pub action: MergeAction,
}

/// See [`MergeClause`].
#[derive(Clone)]
pub enum MergeAction {
    /// DO NOTHING.
    Nothing,
    /// DELETE.
    Delete,
    /// UPDATE SET: (table's column from 1, expression).
    Update(Vec<(u16, Expr)>),
    /// INSERT: a whole row in table order.
    Insert(Vec<Expr>),
}

impl Rel {
    /// Replaces every expression of this operator and its inputs.
    pub fn map_exprs(&mut self, f: &dyn Fn(Expr) -> Expr) {
        let apply = |e: &mut Expr| {
            let old = std::mem::replace(e, Expr::Row(Vec::new()));
            *e = f(old);
        };
        match self {
            Rel::OneRow
            | Rel::Nothing
            | Rel::Table(_)
            | Rel::System { .. }
            | Rel::WorkTable { .. } => {}
            Rel::Cte { outer, .. } => outer.iter_mut().for_each(|(_, e)| apply(e)),
            Rel::Append { inputs, .. } => inputs.iter_mut().for_each(|i| i.rel.map_exprs(f)),
            Rel::SetOp { left, right, .. } => {
                left.rel.map_exprs(f);
                right.rel.map_exprs(f);
            }
            Rel::Values { rows, .. } => rows.iter_mut().flatten().for_each(apply),
            Rel::Function { calls, .. } => calls.iter_mut().for_each(apply),
            Rel::Sample { percent, seed, .. } => {
                apply(percent);
                seed.iter_mut().for_each(apply);
            }
            Rel::Join { left, right, on, .. } => {
                on.iter_mut().for_each(apply);
                left.map_exprs(f);
                right.map_exprs(f);
            }
            Rel::Barrier { input } => input.map_exprs(f),
            Rel::Filter { input, conditions } => {
                conditions.iter_mut().for_each(apply);
                input.map_exprs(f);
            }
            Rel::Project { input, exprs, .. } => {
                exprs.iter_mut().for_each(|(_, e)| apply(e));
                input.map_exprs(f);
            }
            Rel::Window { input, partition, order, calls } => {
                partition.iter_mut().for_each(apply);
                order.iter_mut().for_each(|k| apply(&mut k.expr));
                calls.iter_mut().for_each(|(_, call)| call.for_exprs_mut(&mut |e| apply(e)));
                input.map_exprs(f);
            }
            Rel::Aggregate { input, groups, aggs, .. } => {
                groups.iter_mut().for_each(|(_, e)| apply(e));
                aggs.iter_mut().for_each(|(_, agg)| agg.for_exprs_mut(&mut |e| apply(e)));
                input.map_exprs(f);
            }
            Rel::Sort { input, keys } => {
                keys.iter_mut().for_each(|k| apply(&mut k.expr));
                input.map_exprs(f);
            }
            Rel::Limit { input, count, offset, ties } => {
                count.iter_mut().for_each(apply);
                offset.iter_mut().for_each(apply);
                ties.iter_mut().for_each(apply);
                input.map_exprs(f);
            }
            Rel::Distinct { input, keys, .. } => {
                keys.iter_mut().for_each(apply);
                input.map_exprs(f);
            }
            Rel::Lock { input, recheck, .. } => {
                recheck.iter_mut().for_each(apply);
                input.map_exprs(f);
            }
        }
    }
}

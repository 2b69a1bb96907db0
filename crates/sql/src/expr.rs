//! Bound expressions: every name resolved, every type known, every implicit cast written out.

use std::sync::Arc;

use base::Oid;
use types::func::{AggregateRow, FunctionRow};
use types::{Datum, Text};

/// An expression over one input row.
#[derive(Clone)]
pub enum Expr {
    /// A constant.
    Const(Datum, Oid),
    /// A parameter of the statement (`$1` is 0), or a literal that the shape cache replaced.
    Param(u32, Oid),
    /// A column of the input row.
    Column(u16, Oid),
    /// A slot that a nested loop or the outer query filled in (correlated columns).
    Slot(u16, Oid),
    /// A function or operator of the table. `function.body` says how; strictness is the
    /// evaluator's to honour.
    Call {
        /// The function.
        function: &'static FunctionRow,
        /// Arguments, already cast; defaults filled in, variadic ones spread out.
        args: Box<[Expr]>,
        /// Result type (differs from the row's for polymorphic ones).
        ty: Oid,
        /// Position in the statement, in characters from 1; 0 unknown.
        position: u32,
    },
    /// A cast through text output and input.
    InOutCast {
        /// The value.
        arg: Box<Expr>,
        /// To this type.
        ty: Oid,
        /// With this typmod.
        typmod: i32,
    },
    /// Length or precision coercion (`varchar(5)`, `numeric(10,2)`).
    Typmod {
        /// The value, already of the type.
        arg: Box<Expr>,
        /// The type.
        ty: Oid,
        /// The typmod.
        typmod: i32,
        /// An explicit cast truncates where assignment errs.
        explicit: bool,
    },
    /// The value as it is, under another type of the same representation.
    Relabel(Box<Expr>, Oid),
    /// COLLATE: the value as it is; the collation's oid; where it stands in the statement.
    Collate(Box<Expr>, u32, u32),
    /// Three-valued AND.
    And(Vec<Expr>),
    /// Three-valued OR.
    Or(Vec<Expr>),
    /// Three-valued NOT.
    Not(Box<Expr>),
    /// IS [NOT] NULL.
    IsNull {
        /// Of what.
        arg: Box<Expr>,
        /// IS NOT NULL.
        negated: bool,
    },
    /// IS [NOT] TRUE, FALSE, UNKNOWN.
    BooleanTest {
        /// Of what.
        arg: Box<Expr>,
        /// Some(true), Some(false), None for UNKNOWN.
        is: Option<bool>,
        /// With NOT.
        negated: bool,
    },
    /// `a IS [NOT] DISTINCT FROM b` by the equality function.
    Distinct {
        /// The `=` operator's function.
        equal: &'static FunctionRow,
        /// Both sides.
        args: Box<[Expr; 2]>,
        /// IS NOT DISTINCT FROM.
        negated: bool,
    },
    /// CASE, with the tests already boolean; a NULL default is a Const.
    Case {
        /// Of `CASE operand WHEN …`: computed once; in the tests [`Expr::Held`] stands for its value. None also
        /// where the operand stands in each test, because computing it again makes no difference.
        operand: Option<Box<Expr>>,
        /// (test, result).
        arms: Vec<(Expr, Expr)>,
        /// ELSE.
        default: Box<Expr>,
        /// Type.
        ty: Oid,
    },
    /// In a test of CASE: the value of the operand of the innermost CASE around it that has one.
    Held(Oid),
    /// COALESCE.
    Coalesce(Vec<Expr>, Oid),
    /// NULLIF by the equality function.
    NullIf {
        /// The `=` operator's function.
        equal: &'static FunctionRow,
        /// Both sides, as compared; the result is the left one.
        args: Box<[Expr; 2]>,
    },
    /// GREATEST or LEAST over values of one type.
    MinMax {
        /// GREATEST.
        greatest: bool,
        /// The values.
        args: Vec<Expr>,
        /// Type.
        ty: Oid,
    },
    /// `left op ANY|ALL (array)`, and IN lists of constants.
    ArrayOp {
        /// The operator's function.
        function: &'static FunctionRow,
        /// Left side.
        left: Box<Expr>,
        /// The array.
        array: Box<Expr>,
        /// ALL instead of ANY.
        all: bool,
    },
    /// `ARRAY[…]`.
    Array {
        /// Elements (or sub-arrays when `nested`).
        items: Vec<Expr>,
        /// Element type.
        element: Oid,
        /// The array's type.
        ty: Oid,
        /// Elements are arrays of one dimension less.
        nested: bool,
    },
    /// `array[i][j]` (slices: 0A000 for now).
    Subscript {
        /// The array.
        array: Box<Expr>,
        /// Subscripts.
        indexes: Vec<Expr>,
        /// Element type.
        ty: Oid,
    },
    /// ROW(…).
    Row(Vec<Expr>),
    /// Compares rows field by field; `equal`/`less` functions by field.
    RowCompare {
        /// Which comparison.
        op: RowOp,
        /// (left, right, `=` function, `<` function) by field.
        fields: Vec<(Expr, Expr, &'static FunctionRow, &'static FunctionRow)>,
    },
    /// A subquery of the statement.
    Subquery(Box<SubqueryExpr>),
    /// Things of the session: `current_user`, `current_timestamp(p)`, `current_schema` …; by name.
    SessionValue(Text, Oid),
}

/// Row comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOp {
    /// `=`.
    Eq,
    /// `<>`.
    Ne,
    /// `<`.
    Lt,
    /// `<=`.
    Le,
    /// `>`.
    Gt,
    /// `>=`.
    Ge,
}

/// A use of a subquery.
#[derive(Clone)]
pub struct SubqueryExpr {
    /// Index into [`crate::plan::Prepared::subplans`].
    pub plan: usize,
    /// The first subquery of the statement that was written alike over the same columns: it gives the same values.
    pub twin: usize,
    /// Correlated values: evaluate over the current row into these slots before each run. When
    /// empty (and no slots of outer levels are used inside) the result is computed once.
    pub slots: Vec<(u16, Expr)>,
    /// Whether the result may be computed once an execution.
    pub once: bool,
    /// Whether equal values in the slots give equal results, so that they may be remembered.
    pub memo: bool,
    /// Whether others can see how often it is run: see [`crate::logical::Rel::acts`].
    pub acts: bool,
    /// What is asked.
    pub kind: SubqueryKind,
    /// Type.
    pub ty: Oid,
}

impl SubqueryExpr {
    /// Whether rows are looked up in a hash table of the subquery's.
    pub fn is_hashed(&self) -> bool {
        let hashed = |kind: &SubqueryKind| {
            matches!(kind, SubqueryKind::Compare { all: false, hash_left: Some(_), .. })
        };
        self.once && hashed(&self.kind)
    }
}

/// See [`SubqueryExpr`].
#[derive(Clone)]
pub enum SubqueryKind {
    /// The single value of the single row (`21000` if more), NULL if none.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// `test` over (slots of the row's columns from `first_slot`), ANY: some row true; ALL: none
    /// false; three-valued.
    Compare {
        /// The comparison; the subquery's columns are slots `first_slot…`.
        test: Box<Expr>,
        /// First slot of the subquery's columns.
        first_slot: u16,
        /// ALL instead of ANY.
        all: bool,
        /// Left sides if `test` compares each with a column, in their order, by equalities that hashing
        /// serves: the executor looks rows up in a hash table when the subquery runs once.
        hash_left: Option<Vec<Expr>>,
    },
    /// `ARRAY(SELECT …)`.
    Array,
}

/// A call of an aggregate.
#[derive(Clone)]
pub struct AggCall {
    /// The aggregate.
    pub aggregate: &'static AggregateRow,
    /// Arguments over the aggregate's input row.
    pub args: Vec<Expr>,
    /// DISTINCT.
    pub distinct: bool,
    /// ORDER BY inside the call.
    pub order: Vec<SortKey>,
    /// FILTER.
    pub filter: Option<Expr>,
    /// WITHIN GROUP: the direct arguments; `order` is over `args`.
    pub direct: Option<Vec<Expr>>,
    /// Result type (for polymorphic ones).
    pub ty: Oid,
    /// It is an aggregate that a user made: `aggregate` computes it only if this has no steps.
    pub own: Option<Arc<OwnAggregate>>,
}

impl AggCall {
    /// The aggregate's name.
    pub fn name(&self) -> &str {
        self.own.as_ref().map_or(self.aggregate.name, |own| &own.name)
    }
}

/// Stands as the operator in the row of a function that words of SQL called (`EXTRACT(day FROM x)`): it is printed in
/// these words again.
pub const BY_SYNTAX: Oid = Oid(1);
/// The same where arguments were left out that defaults fill.
pub const BY_SHORT_SYNTAX: Oid = Oid(2);

/// A call of an aggregate that a user made.
pub struct OwnAggregate {
    /// Its function's oid.
    pub function: Oid,
    /// Its name.
    pub name: Text,
    /// How it is computed; None: as [`AggCall::aggregate`], whose functions it has.
    pub steps: Option<OwnSteps>,
    /// How a window whose frame moves computes it.
    pub moving: Option<OwnSteps>,
    /// It is PARALLEL SAFE.
    pub parallel: bool,
}

/// One way of computing such an aggregate.
pub struct OwnSteps {
    /// The state before the first row.
    pub initial: Datum,
    /// The next state, over the columns of the state and of the arguments.
    pub transition: Expr,
    /// Rows with NULL arguments are skipped; the first value becomes a state that is NULL.
    pub strict: bool,
    /// The state without a row.
    pub inverse: Option<Expr>,
    /// One state of two that helpers have made of parts of the rows, over columns of both.
    pub combine: Option<Expr>,
    /// The function that combines is not called with a NULL: the other state is the one of both.
    pub combine_strict: bool,
    /// The result, over the columns of the state and of the direct arguments.
    pub finish: Option<Expr>,
}

/// One sort key.
#[derive(Clone)]
pub struct SortKey {
    /// The value.
    pub expr: Expr,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST (PostgreSQL's default for DESC).
    pub nulls_first: bool,
}

impl Expr {
    /// The expression's type.
    pub fn ty(&self) -> Oid {
        use types::oids::BOOL;
        match self {
            Expr::Const(_, ty)
            | Expr::Param(_, ty)
            | Expr::Column(_, ty)
            | Expr::Slot(_, ty)
            | Expr::Held(ty)
            | Expr::Relabel(_, ty)
            | Expr::Coalesce(_, ty)
            | Expr::SessionValue(_, ty)
            | Expr::Call { ty, .. }
            | Expr::InOutCast { ty, .. }
            | Expr::Typmod { ty, .. }
            | Expr::Case { ty, .. }
            | Expr::MinMax { ty, .. }
            | Expr::Array { ty, .. }
            | Expr::Subscript { ty, .. } => *ty,
            Expr::NullIf { args, .. } => args[0].ty(),
            Expr::Collate(arg, ..) => arg.ty(),
            Expr::Row(_) => types::oids::RECORD,
            Expr::Subquery(s) => s.ty,
            Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull { .. }
            | Expr::BooleanTest { .. }
            | Expr::Distinct { .. }
            | Expr::ArrayOp { .. }
            | Expr::RowCompare { .. } => BOOL,
        }
    }
}

/// Shared expression (checks and defaults kept with a plan).
pub type SharedExpr = Arc<Expr>;

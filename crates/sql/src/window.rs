//! Window functions: a call over a frame of rows around each row.
//!
//! All calls with the same PARTITION BY and ORDER BY share one operator; each has its own frame.

use base::Oid;
use types::func::FunctionRow;

use crate::expr::{AggCall, Expr};

/// A call with OVER.
#[derive(Clone)]
pub struct WindowCall {
    /// What is computed.
    pub function: WindowFunction,
    /// Its arguments, over the operator's input row (an aggregate's are in its [`AggCall`]).
    pub args: Vec<Expr>,
    /// Over which rows.
    pub frame: Frame,
    /// Result type.
    pub ty: Oid,
}

/// See [`WindowCall`].
#[derive(Clone)]
pub enum WindowFunction {
    /// An aggregate over the frame.
    Aggregate(AggCall),
    /// A function of windows only.
    Own(&'static WindowRow),
}

/// What a window function computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// `row_number()`.
    RowNumber,
    /// `rank()`.
    Rank,
    /// `dense_rank()`.
    DenseRank,
    /// `percent_rank()`.
    PercentRank,
    /// `cume_dist()`.
    CumeDist,
    /// `ntile(buckets)`.
    Ntile,
    /// `lag(value [, offset [, default]])`.
    Lag,
    /// `lead(value [, offset [, default]])`.
    Lead,
    /// `first_value(value)`.
    FirstValue,
    /// `last_value(value)`.
    LastValue,
    /// `nth_value(value, n)`.
    NthValue,
}

/// One row of the table of window functions. (Its `pg_proc` row is made from it.)
pub struct WindowRow {
    /// PostgreSQL's oid.
    pub oid: Oid,
    /// Name.
    pub name: &'static str,
    /// Argument types.
    pub args: &'static [Oid],
    /// Result type.
    pub result: Oid,
    /// What it computes.
    pub kind: WindowKind,
}

/// Which rows a frame's bounds count in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameMode {
    /// Values of the one ORDER BY column; peers without an offset.
    Range,
    /// Rows.
    Rows,
    /// Groups of peers.
    Groups,
}

/// One end of a frame.
#[derive(Clone)]
pub enum FrameBound {
    /// UNBOUNDED PRECEDING.
    First,
    /// `n PRECEDING`.
    Preceding(Expr),
    /// CURRENT ROW.
    Current,
    /// `n FOLLOWING`.
    Following(Expr),
    /// UNBOUNDED FOLLOWING.
    Last,
}

/// Rows that a frame leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclude {
    /// None.
    Nothing,
    /// The current row.
    Current,
    /// The current row and its peers.
    Group,
    /// Its peers only.
    Ties,
}

/// A frame.
#[derive(Clone)]
pub struct Frame {
    /// What the bounds count.
    pub mode: FrameMode,
    /// Beginning.
    pub start: FrameBound,
    /// End.
    pub end: FrameBound,
    /// What is left out.
    pub exclude: Exclude,
    /// RANGE with an offset: how values are reached from a row's.
    pub range: Option<RangeKey>,
}

/// How RANGE with an offset finds its bounds.
#[derive(Clone)]
pub struct RangeKey {
    /// The ORDER BY value, cast to what `plus` and `minus` return.
    pub key: Expr,
    /// value + offset; None for integers and floats, which the executor adds itself.
    pub plus: Option<&'static FunctionRow>,
    /// value - offset.
    pub minus: Option<&'static FunctionRow>,
}

impl FrameBound {
    /// Its offset, if it has one.
    pub fn offset(&self) -> Option<&Expr> {
        match self {
            FrameBound::Preceding(e) | FrameBound::Following(e) => Some(e),
            _ => None,
        }
    }

    fn offset_mut(&mut self) -> Option<&mut Expr> {
        match self {
            FrameBound::Preceding(e) | FrameBound::Following(e) => Some(e),
            _ => None,
        }
    }
}

impl WindowCall {
    /// The function's name.
    pub fn name(&self) -> &str {
        match &self.function {
            WindowFunction::Aggregate(agg) => agg.name(),
            WindowFunction::Own(row) => row.name,
        }
    }

    /// Calls `f` with each expression.
    pub fn for_exprs<'e>(&'e self, f: &mut dyn FnMut(&'e Expr)) {
        self.args.iter().for_each(&mut *f);
        if let WindowFunction::Aggregate(agg) = &self.function {
            agg.for_exprs(f);
        }
        self.frame.start.offset().into_iter().for_each(&mut *f);
        self.frame.end.offset().into_iter().for_each(&mut *f);
        self.frame.range.iter().for_each(|r| f(&r.key));
    }

    /// Calls `f` with each expression, to be replaced.
    pub fn for_exprs_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.args.iter_mut().for_each(&mut *f);
        if let WindowFunction::Aggregate(agg) = &mut self.function {
            agg.for_exprs_mut(f);
        }
        self.frame.start.offset_mut().into_iter().for_each(&mut *f);
        self.frame.end.offset_mut().into_iter().for_each(&mut *f);
        self.frame.range.iter_mut().for_each(|r| f(&mut r.key));
    }
}

impl AggCall {
    /// Calls `f` with each expression.
    pub fn for_exprs<'e>(&'e self, f: &mut dyn FnMut(&'e Expr)) {
        self.args.iter().for_each(&mut *f);
        self.direct.iter().flatten().for_each(&mut *f);
        self.order.iter().for_each(|k| f(&k.expr));
        self.filter.iter().for_each(f);
    }

    /// Calls `f` with each expression, to be replaced.
    pub fn for_exprs_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.args.iter_mut().for_each(&mut *f);
        self.direct.iter_mut().flatten().for_each(&mut *f);
        self.order.iter_mut().for_each(|k| f(&mut k.expr));
        self.filter.iter_mut().for_each(f);
    }
}

use types::oids::{ANYCOMPATIBLE, ANYELEMENT, FLOAT8, INT4, INT8};

const fn row(
    oid: u32,
    name: &'static str,
    args: &'static [Oid],
    result: Oid,
    kind: WindowKind,
) -> WindowRow {
    WindowRow { oid: Oid(oid), name, args, result, kind }
}

/// PostgreSQL 15's window functions.
pub static WINDOW_FUNCTIONS: [WindowRow; 15] = [
    row(3100, "row_number", &[], INT8, WindowKind::RowNumber),
    row(3101, "rank", &[], INT8, WindowKind::Rank),
    row(3102, "dense_rank", &[], INT8, WindowKind::DenseRank),
    row(3103, "percent_rank", &[], FLOAT8, WindowKind::PercentRank),
    row(3104, "cume_dist", &[], FLOAT8, WindowKind::CumeDist),
    row(3105, "ntile", &[INT4], INT4, WindowKind::Ntile),
    row(3106, "lag", &[ANYELEMENT], ANYELEMENT, WindowKind::Lag),
    row(3107, "lag", &[ANYELEMENT, INT4], ANYELEMENT, WindowKind::Lag),
    row(3108, "lag", &[ANYCOMPATIBLE, INT4, ANYCOMPATIBLE], ANYCOMPATIBLE, WindowKind::Lag),
    row(3109, "lead", &[ANYELEMENT], ANYELEMENT, WindowKind::Lead),
    row(3110, "lead", &[ANYELEMENT, INT4], ANYELEMENT, WindowKind::Lead),
    row(3111, "lead", &[ANYCOMPATIBLE, INT4, ANYCOMPATIBLE], ANYCOMPATIBLE, WindowKind::Lead),
    row(3112, "first_value", &[ANYELEMENT], ANYELEMENT, WindowKind::FirstValue),
    row(3113, "last_value", &[ANYELEMENT], ANYELEMENT, WindowKind::LastValue),
    row(3114, "nth_value", &[ANYELEMENT, INT4], ANYELEMENT, WindowKind::NthValue),
];

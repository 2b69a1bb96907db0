//! Outer joins that are less than they look: joins that add no row and of whose columns nobody uses any
//! are left out; a LEFT JOIN of which only rows without a partner are wanted is an anti join; a FULL JOIN
//! whose NULL rows of one side a condition throws away keeps the other side only.

use base::Result;

use crate::expr::Expr;
use crate::logical::{Col, Rel, TableRel};
use crate::plan::{JoinKind, ScanColumn};
use crate::walk;

use super::Planner;
use super::cols::Cols;
use super::graph::Graph;
use super::outer::{SemiJoin, not_null_columns};
use super::selectivity::plain_column;

/// The columns that conditions equate with something that isn't the relation's.
fn equated(own: &Cols, conditions: &[Expr]) -> Cols {
    let mut out = Cols::default();
    for e in conditions {
        let Expr::Call { function, args, .. } = e else { continue };
        let [a, b] = &**args else { continue };
        if !walk::is_equality(function) || walk::is_volatile(e) {
            continue;
        }
        for (column, value) in [(a, b), (b, a)] {
            if let Some(col) = plain_column(column).filter(|c| own.contains(*c))
                && !Cols::of(value).intersects(own)
            {
                out.insert(col);
            }
        }
    }
    out
}

/// The FULL JOIN that is left where conditions say that these columns aren't NULL; None: all of it.
pub(crate) fn reduced_full(leaf: Rel, not_null: &Cols) -> std::result::Result<Rel, Rel> {
    let Rel::Join { kind: JoinKind::Full, left, right, on } = leaf else { return Err(leaf) };
    let is_known = |side: &Rel| Cols::output(side).intersects(not_null);
    let join = |kind, left, right, on| Ok(Rel::Join { kind, left, right, on });
    match (is_known(&left), is_known(&right)) {
        (true, true) => join(JoinKind::Inner, left, right, on),
        (true, false) => join(JoinKind::Left, left, right, on),
        (false, true) => join(JoinKind::Left, right, left, on),
        (false, false) => Err(Rel::Join { kind: JoinKind::Full, left, right, on }),
    }
}

impl Planner<'_> {
    /// Leaves out the outer joins of a graph that add no row and of whose columns nobody uses any; `need`: the
    /// columns that are used above.
    pub fn remove_joins(&self, graph: &mut Graph, need: &Cols) -> Result<()> {
        loop {
            let found = (0..graph.leaves.len()).find(|at| match &graph.leaves[*at] {
                Rel::Join { kind: JoinKind::Left, right, on, .. } => {
                    let right_cols = Cols::output(right);
                    !self.used_elsewhere(graph, *at, need).intersects(&right_cols)
                        && self.is_found_once(right, on)
                }
                _ => false,
            });
            let Some(at) = found else { return Ok(()) };
            if let Rel::Join { left, .. } = graph.leaves.remove(at) {
                graph.add_late(*left)?;
            }
        }
    }

    /// The columns that are used above a graph, in its conditions and in its other leaves.
    fn used_elsewhere(&self, graph: &Graph, leaf: usize, need: &Cols) -> Cols {
        let mut used = need.clone();
        graph.conditions.iter().for_each(|e| used.add(&Cols::of(e)));
        for (_, other) in graph.leaves.iter().enumerate().filter(|(at, _)| *at != leaf) {
            other.outer_columns().into_iter().for_each(|col| used.insert(col));
        }
        used
    }

    /// Whether no more than one row of the relation fulfils the conditions of a join.
    fn is_found_once(&self, rel: &Rel, on: &[Expr]) -> bool {
        let own = Cols::output(rel);
        self.is_unique_by(rel, equated(&own, on))
    }

    /// Whether no two rows of the relation have the same values in these columns.
    fn is_unique_by(&self, rel: &Rel, mut cols: Cols) -> bool {
        match rel {
            Rel::Filter { input, conditions } => {
                cols.add(&equated(&Cols::output(input), conditions));
                self.is_unique_by(input, cols)
            }
            Rel::Table(table) => self.has_unique_index(table, &cols),
            Rel::Project { input, exprs, set: false } => {
                let below = |(col, e): &(Col, Expr)| match e {
                    Expr::Column(below, _) if cols.contains(*col) => Some(*below),
                    _ => None,
                };
                let below = exprs.iter().filter_map(below).collect();
                self.is_unique_by(input, below)
            }
            Rel::Sort { input, .. } => self.is_unique_by(input, cols),
            Rel::Aggregate { plain: true, .. } => true,
            Rel::Aggregate { groups, sets: None, .. } => {
                groups.iter().all(|(col, _)| cols.contains(*col))
            }
            Rel::Distinct { keys, .. } => {
                keys.iter().all(|key| matches!(key, Expr::Column(col, _) if cols.contains(*col)))
            }
            _ => false,
        }
    }

    fn has_unique_index(&self, table: &TableRel, cols: &Cols) -> bool {
        let has = |c: &catalog::IndexColumn| {
            c.column > 0 && cols.contains(table.col(ScanColumn::Attr(c.column)))
        };
        let serves = |index: &catalog::Index| {
            index.unique
                && index.is_plain()
                && !(index.deferrable || index.invalid || index.hidden)
                && index.columns.iter().all(has)
        };
        self.cx.catalog.indexes_of(&table.table).iter().any(|index| serves(index))
    }

    /// Takes the LEFT JOINs out of a graph of which only rows without a partner are wanted: a condition says
    /// that a column is NULL which no partner's is. None of the right columns may be used otherwise.
    pub fn take_anti_joins(&self, graph: &mut Graph, need: &Cols) -> Result<Vec<SemiJoin>> {
        let mut out = Vec::new();
        let mut need = need.clone();
        loop {
            let found = (0..graph.leaves.len())
                .find_map(|at| Some((at, self.condition_of_anti_join(graph, at, &need)?)));
            let Some((at, condition)) = found else { return Ok(out) };
            graph.conditions.remove(condition);
            let Rel::Join { left, right, on, .. } = graph.leaves.remove(at) else {
                return Ok(out);
            };
            graph.add_late(*left)?;
            let on: Vec<Expr> = on.into_iter().map(|e| graph.current(e)).collect();
            on.iter().for_each(|e| need.add(&Cols::of(e)));
            out.push(SemiJoin::anti(*right, on));
        }
    }

    /// The condition that makes a leaf an anti join, if nothing else uses its right side.
    fn condition_of_anti_join(&self, graph: &Graph, leaf: usize, need: &Cols) -> Option<usize> {
        let Rel::Join { kind: JoinKind::Left, left, right, on } = &graph.leaves[leaf] else {
            return None;
        };
        let (left_cols, right_cols) = (Cols::output(left), Cols::output(right));
        let plain = |e: &Expr| !walk::is_volatile(e) && !walk::has_subquery(e);
        let depends = right.outer_columns().into_iter().any(|c| left_cols.contains(c));
        // What tests for partners reads the right side by a condition about both.
        let linked = on.iter().any(|e| Cols::of(e).intersects(&left_cols));
        if depends || !linked || !on.iter().all(plain) {
            return None;
        }
        let mut known = Cols::default();
        on.iter().for_each(|e| not_null_columns(e, &mut known));
        let is_one = |e: &Expr| match e {
            Expr::IsNull { arg, negated: false } => match &**arg {
                Expr::Column(col, _) => {
                    right_cols.contains(*col) && (known.contains(*col) || is_not_null(right, *col))
                }
                _ => false,
            },
            _ => false,
        };
        let at = graph.conditions.iter().position(is_one)?;
        let mut others = graph.clone();
        others.conditions.remove(at);
        (!self.used_elsewhere(&others, leaf, need).intersects(&right_cols)).then_some(at)
    }
}

/// Whether the column is one of a table that has no NULLs in it.
fn is_not_null(rel: &Rel, col: Col) -> bool {
    match rel {
        Rel::Filter { input, .. } => is_not_null(input, col),
        Rel::Table(table) => match table.column(col) {
            Some(ScanColumn::Attr(n)) => table.table.columns[usize::from(n) - 1].not_null,
            _ => false,
        },
        _ => false,
    }
}

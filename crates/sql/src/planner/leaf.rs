//! The leaves of joins: tables, functions, subqueries, each with the conditions that are about it
//! alone.

use base::Result;
use catalog::system::rows as system_rows;

use crate::expr::Expr;
use crate::logical::{Col, Rel};
use crate::plan::{Estimate, Node, Plan};
use crate::walk;

use super::cols::Cols;
use super::cost;
use super::{PhysicalPlan, Planner, RequiredProperties, filtered};

/// A leaf with what is known about it.
pub(crate) struct Leaf {
    pub rel: Rel,
    pub cols: Cols,
    /// Columns of other leaves that it uses (LATERAL).
    pub depends: Cols,
    pub conditions: Vec<Expr>,
    /// Only leakproof conditions may be checked with its own.
    pub guarded: bool,
    /// Those of its columns that are used above.
    pub need: Cols,
    pub estimate: Estimate,
}

impl Planner<'_> {
    /// Expected rows and cost of a leaf.
    pub fn leaf_estimate(&self, leaf: &Leaf) -> Estimate {
        match &leaf.rel {
            Rel::Table(table) => {
                let path = self.best_path(
                    table,
                    &leaf.conditions,
                    &leaf.need,
                    &RequiredProperties::default(),
                );
                let width = self.width(&leaf.need.iter().collect::<Vec<Col>>());
                Estimate { width, ..path.estimate }
            }
            Rel::Barrier { input } => self.barrier_estimate(input, leaf),
            Rel::System { table, base } => {
                let all = system_rows::estimate(table, self.cx.catalog);
                let share = self.system_share(table, *base, &leaf.conditions, all);
                cost::system(all, share, 64)
            }
            Rel::Function { calls, .. } => cost::function(most_rows(calls), 8),
            Rel::Values { rows, .. } => cost::values(rows.len(), 8),
            Rel::Join { left, .. } => {
                let mut tables = 0.0;
                count_rows(self, left, &mut tables);
                Estimate {
                    startup: 0.0,
                    total: tables * 0.05 + 100.0,
                    rows: tables.max(1.0),
                    width: 64,
                }
            }
            other => self.general_estimate(other, leaf),
        }
    }

    /// A guess for what is no table by itself.
    pub(super) fn general_estimate(&self, rel: &Rel, leaf: &Leaf) -> Estimate {
        let mut rows = 0.0;
        count_rows(self, rel, &mut rows);
        let share = self.selectivity(None, &leaf.conditions);
        let rows = match rel {
            Rel::Aggregate { plain: true, .. } => 1.0,
            Rel::Aggregate { .. } | Rel::Distinct { .. } => (rows * 0.1).max(1.0),
            _ => rows,
        };
        Estimate {
            startup: 0.0,
            total: rows * 0.1 + 10.0,
            rows: (rows * share).max(1.0),
            width: 64,
        }
    }

    /// Plans one leaf with the conditions that belong to it.
    pub fn leaf(
        &mut self,
        rel: Rel,
        conditions: Vec<Expr>,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        if matches!(rel, Rel::System { .. } | Rel::Function { .. } | Rel::Sample { .. })
            && conditions.iter().any(|e| walk::is_volatile(e))
        {
            let (conditions, late) = self.split_at_action(conditions);
            let rel = crate::bind::select::filter(rel, conditions);
            return self.filter_above(rel, late, need, required);
        }
        match rel {
            Rel::Table(table) if table.is_empty() => Ok(self.nothing(need)),
            Rel::Table(table) => {
                let mut conditions = conditions;
                conditions.retain(|e| !is_never_null(e, &table));
                let path = self.best_path(&table, &conditions, need, required);
                self.table_scan(&table, conditions, need, path)
            }
            Rel::System { table, base } => self.system_scan(table, base, conditions, need),
            Rel::Barrier { input } => self.barrier(*input, conditions, need, required),
            Rel::Function { calls, ordinality, cols } => {
                let filter = self.condition(conditions, &cols)?;
                let estimate = cost::function(most_rows(&calls), self.width(&cols));
                let calls = self.resolve_all(calls, &[])?;
                let node = Node::FunctionScan { calls, ordinality, filter };
                Ok(PhysicalPlan { plan: Plan { node, estimate }, cols, order: Vec::new() })
            }
            Rel::Join { kind, left, right, on } => {
                self.outer_join(kind, *left, *right, on, conditions, need, required)
            }
            Rel::Append { mut inputs, cols } if !conditions.is_empty() => {
                // UNION ALL: each branch filters for itself.
                for input in &mut inputs {
                    let below = |col: Col| {
                        let at = cols.iter().position(|c| *c == col)?;
                        Some(self.column(input.cols[at]))
                    };
                    let list =
                        conditions.iter().map(|e| walk::substitute(e.clone(), &below)).collect();
                    let rel = std::mem::replace(&mut input.rel, Rel::Nothing);
                    input.rel = Rel::Filter { input: Box::new(rel), conditions: list };
                }
                self.rel(Rel::Append { inputs, cols }, need, required)
            }
            Rel::Sample { table, method, percent, seed } => {
                let path = self.whole_table(&table, &conditions);
                let mut phys = self.table_scan(&table, conditions, need, path)?;
                let percent = self.resolve(percent, &[])?;
                let seed = seed.map(|e| self.resolve(e, &[])).transpose()?;
                if let Node::SeqScan(scan) = phys.plan.node {
                    phys.plan.node = Node::SampleScan { scan, method, percent, seed };
                }
                Ok(phys)
            }
            Rel::Aggregate { input, groups, aggs, plain: false, sets: None } => {
                // Conditions on the groups' values hold before grouping too.
                let known: Cols = groups.iter().map(|(c, _)| *c).collect();
                let agg_cols: Cols = aggs.iter().map(|(c, _)| *c).collect();
                let (below, above): (Vec<Expr>, Vec<Expr>) =
                    conditions.into_iter().partition(|e| {
                        let used = Cols::of(e);
                        used.intersects(&known)
                            && !used.intersects(&agg_cols)
                            && !walk::is_volatile(e)
                    });
                let below: Vec<Expr> = below
                    .into_iter()
                    .map(|e| {
                        walk::substitute(e, &|col| {
                            groups.iter().find(|(c, _)| *c == col).map(|(_, g)| g.clone())
                        })
                    })
                    .collect();
                let input = crate::bind::select::filter(*input, below);
                let input = Box::new(input);
                let rel = Rel::Aggregate { input, groups, aggs, plain: false, sets: None };
                self.filter_above(rel, above, need, required)
            }
            // Merged into the query around it but for columns that act: other conditions hold before.
            Rel::Project { input, exprs, set: false }
                if !conditions.is_empty() && !matches!(*input, Rel::Limit { .. }) =>
            {
                let acting: Cols =
                    exprs.iter().filter(|(_, e)| walk::acts(e)).map(|(c, _)| *c).collect();
                let (below, above): (Vec<Expr>, Vec<Expr>) =
                    conditions.into_iter().partition(|e| {
                        let used = Cols::of(e);
                        !used.is_empty() && !used.intersects(&acting) && !walk::is_volatile(e)
                    });
                let of_input =
                    |col: Col| exprs.iter().find(|(c, _)| *c == col).map(|(_, e)| e.clone());
                let below = below.into_iter().map(|e| walk::substitute(e, &of_input)).collect();
                let input = Box::new(crate::bind::select::filter(*input, below));
                self.filter_above(Rel::Project { input, exprs, set: false }, above, need, required)
            }
            Rel::Window { .. } | Rel::Distinct { .. } | Rel::Sort { .. } | Rel::SetOp { .. }
                if !conditions.is_empty() =>
            {
                let (rel, above) = self.sunk(rel, conditions);
                self.filter_above(rel, above, need, required)
            }
            Rel::Cte { index, alias, cols, outer } => {
                let phys = self.cte(index, (alias, cols), outer)?;
                let share = self.selectivity(None, &conditions);
                let condition = self.condition(conditions, &phys.cols)?;
                Ok(filtered(phys, condition, share))
            }
            other => self.filter_above(other, conditions, need, required),
        }
    }

    /// Lets conditions sink through an operator as far as they keep or drop whole groups of what it looks at
    /// together; and those that stay above.
    fn sunk(&self, mut rel: Rel, conditions: Vec<Expr>) -> (Rel, Vec<Expr>) {
        let output = Cols::output(&rel);
        let known: Cols = match &rel {
            Rel::Window { partition, .. } => partition.iter().filter_map(plain).collect(),
            Rel::Distinct { keys, .. } => keys.iter().filter_map(plain).collect(),
            _ => output.clone(),
        };
        let (below, above) = sinking(conditions, &output, &known);
        if below.is_empty() {
            return (rel, above);
        }
        let filtered = |rel: &mut Rel, conditions: Vec<Expr>| {
            let input = std::mem::replace(rel, Rel::Nothing);
            *rel = crate::bind::select::filter(input, conditions);
        };
        match &mut rel {
            Rel::Window { input, .. } | Rel::Distinct { input, .. } | Rel::Sort { input, .. } => {
                filtered(input, below);
            }
            Rel::SetOp { left, right, cols, .. } => {
                for input in [left, right] {
                    let of_input = |col: Col| {
                        let at = cols.iter().position(|c| *c == col)?;
                        Some(self.column(input.cols[at]))
                    };
                    let list = below.iter().map(|e| walk::substitute(e.clone(), &of_input));
                    let list = list.collect();
                    filtered(&mut input.rel, list);
                }
            }
            _ => {}
        }
        (rel, above)
    }

    pub(super) fn filter_above(
        &mut self,
        rel: Rel,
        conditions: Vec<Expr>,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        let mut wanted = need.clone();
        conditions.iter().for_each(|e| wanted.add(&Cols::of(e)));
        let output = Cols::output(&rel);
        let wanted: Cols = wanted.iter().filter(|c| output.contains(*c)).collect();
        let share = self.selectivity(None, &conditions);
        let required = required.below(share);
        let phys = self.rel(rel, &wanted, &required)?;
        let condition = self.condition(conditions, &phys.cols)?;
        Ok(filtered(phys, condition, share))
    }

    /// The share of a computed table's rows that conditions leave: one row by its oid.
    fn system_share(
        &self,
        table: &'static catalog::system::SystemTable,
        base: Col,
        conditions: &[Expr],
        all: f64,
    ) -> f64 {
        let last = base + table.columns.len() as Col;
        let is_key = table.columns.first().is_some_and(|(name, _)| *name == "oid");
        let by_oid = |e: &Expr| known_value(e, base..last).is_some_and(|(col, _)| col == base);
        match conditions {
            [] => 1.0,
            _ if is_key && conditions.iter().any(by_oid) => 1.0 / all,
            _ => self.selectivity(None, conditions),
        }
    }

    fn system_scan(
        &mut self,
        table: &'static catalog::system::SystemTable,
        base: Col,
        conditions: Vec<Expr>,
        need: &Cols,
    ) -> Result<PhysicalPlan> {
        let mut wanted = need.clone();
        conditions.iter().for_each(|e| wanted.add(&Cols::of(e)));
        let last = base + table.columns.len() as Col;
        let cols: Vec<Col> = wanted.iter().filter(|c| (base..last).contains(c)).collect();
        let columns: Vec<u16> = cols.iter().map(|c| c - base).collect();
        let mut equal = Vec::new();
        for (col, value) in conditions.iter().filter_map(|e| known_value(e, base..last)) {
            equal.push((col - base, self.resolve(value.clone(), &[])?));
        }
        let all = system_rows::estimate(table, self.cx.catalog);
        let share = self.system_share(table, base, &conditions, all);
        let filter = self.condition(conditions, &cols)?;
        let estimate = cost::system(all, share, self.width(&cols));
        let node = Node::SystemScan { table, columns, equal, filter };
        Ok(PhysicalPlan { plan: Plan { node, estimate }, cols, order: Vec::new() })
    }
}

/// The column of a computed table that a condition says the value of, and that value. The columns' order is that of
/// their values' types, so integers of different sizes are as good as those of one.
fn known_value(e: &Expr, own: std::ops::Range<Col>) -> Option<(Col, &Expr)> {
    use types::oids::{INT2, INT4, INT8};
    let Expr::Call { function, args, .. } = e else { return None };
    let [a, b] = &**args else { return None };
    if !walk::is_equality(function) {
        return None;
    }
    let integer = |e: &Expr| matches!(e.ty(), INT2 | INT4 | INT8);
    [(a, b), (b, a)].into_iter().find_map(|(column, value)| {
        let col = super::selectivity::plain_column(column)?;
        let known = own.contains(&col)
            && !Cols::of(value).iter().any(|c| own.contains(&c))
            && !walk::has_subquery(value)
            && !walk::is_volatile(value);
        let plain = matches!(column, Expr::Column(..));
        let alike = match integer(column) {
            // An oid as an integer may be negative.
            true => plain && integer(value),
            false => column.ty() == value.ty(),
        };
        (known && alike).then_some((col, value))
    })
}

/// The column that an expression is.
fn plain(e: &Expr) -> Option<Col> {
    match e {
        Expr::Column(col, _) => Some(*col),
        _ => None,
    }
}

/// Conditions that are about these ones of a relation's columns alone, and the others.
fn sinking(conditions: Vec<Expr>, output: &Cols, cols: &Cols) -> (Vec<Expr>, Vec<Expr>) {
    conditions.into_iter().partition(|e| {
        let used = Cols::of(e);
        used.intersects(cols)
            && used.iter().all(|c| cols.contains(c) || !output.contains(c))
            && !walk::is_volatile(e)
            && !walk::has_subquery(e)
    })
}

/// `a.x = b.y` and `a.x = 5` imply `b.y = 5`, which an index of `b` may use.
pub(crate) fn infer_equal_constants(leaves: &mut [Leaf], joins: &[Expr]) {
    for e in joins {
        let Expr::Call { function, args, .. } = e else { continue };
        let [a, b] = &**args else { continue };
        if !walk::is_equality(function) || a.ty() != b.ty() {
            continue;
        }
        for (from, to) in [(a, b), (b, a)] {
            let (Expr::Column(f, _), Expr::Column(t, _)) = (from, to) else { continue };
            let value = leaves.iter().find(|l| l.cols.contains(*f)).and_then(|l| {
                l.conditions.iter().find_map(|c| match c {
                    Expr::Call { function: g, args, .. }
                        if g.oid == function.oid && args.len() == 2 =>
                    {
                        match (&args[0], &args[1]) {
                            (Expr::Column(c, _), v) if c == f && !walk::has_columns(v) => {
                                Some(v.clone())
                            }
                            _ => None,
                        }
                    }
                    _ => None,
                })
            });
            let Some(value) = value else { continue };
            let Some(leaf) = leaves.iter_mut().find(|l| l.cols.contains(*t)) else { continue };
            let implied = Expr::Call {
                function,
                args: Box::new([to.clone(), value]),
                ty: types::oids::BOOL,
                position: 0,
            };
            if !leaf.conditions.iter().any(|c| walk::same(c, &implied)) {
                leaf.conditions.push(implied);
            }
        }
    }
}

/// `a.x = b.y` and `a.x > 5` imply `b.y > 5`, for types of which equal values can't be told apart.
///
/// Returns what is new.
pub(crate) fn infer_ranges(leaves: &mut [Leaf], joins: &[Expr]) -> Vec<Expr> {
    let mut new = Vec::new();
    /// Columns that equal each other through one in between.
    const ROUNDS: usize = 2;
    for _ in 0..ROUNDS {
        for e in joins {
            let Some((a, b, ty)) = equal_columns(e) else { continue };
            for (from, to) in [(a, b), (b, a)] {
                let Some(leaf) = leaves.iter().find(|l| l.cols.contains(from)) else { continue };
                let implied = carried_over(&leaf.conditions, from, &Expr::Column(to, ty));
                let Some(leaf) = leaves.iter_mut().find(|l| l.cols.contains(to)) else { continue };
                new.extend(implied.iter().filter(|e| add_new(&mut leaf.conditions, e)).cloned());
            }
        }
    }
    new
}

/// The columns that a condition equates, and their type, of which equal values can't be told apart.
pub(crate) fn equal_columns(e: &Expr) -> Option<(Col, Col, base::Oid)> {
    use types::oids::*;
    let Expr::Call { function, args, .. } = e else { return None };
    let [Expr::Column(a, of_a), Expr::Column(b, of_b)] = &**args else { return None };
    let plain = matches!(*of_a, INT2 | INT4 | INT8 | OID | DATE | TIMESTAMP | TIMESTAMPTZ | UUID);
    (plain && of_a == of_b && walk::is_equality(function)).then_some((*a, *b, *of_a))
}

/// What conditions say of the values of one column, said of another one that equals it.
pub(crate) fn carried_over(conditions: &[Expr], from: Col, to: &Expr) -> Vec<Expr> {
    let about = |c: Col| (c == from).then(|| to.clone());
    let told = conditions.iter().filter(|e| says_of_values(e, from));
    told.map(|e| walk::substitute(e.clone(), &about)).collect()
}

/// Adds a condition if it is not there yet.
pub(crate) fn add_new(conditions: &mut Vec<Expr>, e: &Expr) -> bool {
    let new = !conditions.iter().any(|known| walk::same(known, e));
    if new {
        conditions.push(e.clone());
    }
    new
}

/// A comparison of the column with something that no row gives.
fn says_of_values(e: &Expr, col: Col) -> bool {
    let compares = match e {
        Expr::Call { function, args, .. } => {
            let own = args.iter().filter(|a| walk::has_columns(a)).count();
            own == 1
                && super::selectivity::comparison_name(function).is_some()
                && args.iter().any(|a| matches!(a, Expr::Column(..)))
        }
        Expr::ArrayOp { left, all: false, .. } => matches!(**left, Expr::Column(..)),
        Expr::And(parts) | Expr::Or(parts) => parts.iter().all(|part| says_of_values(part, col)),
        _ => false,
    };
    compares
        && Cols::of(e).iter().all(|c| c == col)
        && !walk::is_volatile(e)
        && !walk::has_subquery(e)
}

/// `(a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4)` implies `a.x = 1 OR a.x = 3`: when every arm says
/// something about one leaf alone, that leaf's rows can be fewer before they are joined.
pub(crate) fn infer_from_arms(leaves: &mut [Leaf], e: &Expr) {
    let Expr::Or(arms) = e else { return };
    for leaf in leaves {
        let about = |part: &&Expr| {
            let used = Cols::of(part);
            !used.is_empty()
                && used.is_subset(&leaf.cols)
                && !walk::is_volatile(part)
                && !walk::has_subquery(part)
        };
        let parts = |arm: &Expr| -> Vec<Expr> {
            match arm {
                Expr::And(parts) => parts.iter().filter(about).cloned().collect(),
                part => Some(part).filter(about).cloned().into_iter().collect(),
            }
        };
        let mut lists: Vec<Vec<Expr>> = arms.iter().map(parts).collect();
        if lists.iter().any(Vec::is_empty) {
            continue;
        }
        let arm = |list: &mut Vec<Expr>| match list.len() {
            1 => list.remove(0),
            _ => Expr::And(std::mem::take(list)),
        };
        leaf.conditions.push(Expr::Or(lists.iter_mut().map(arm).collect()));
    }
}

/// `IS NOT NULL` of a column that can't be.
fn is_never_null(e: &Expr, table: &crate::logical::TableRel) -> bool {
    let Expr::IsNull { arg, negated: true } = e else { return false };
    let Expr::Column(col, _) = **arg else { return false };
    match table.column(col) {
        Some(crate::plan::ScanColumn::Attr(n)) => table.table.columns[usize::from(n) - 1].not_null,
        _ => false,
    }
}

/// Rows that functions side by side give.
fn most_rows(calls: &[Expr]) -> f64 {
    calls.iter().map(set_rows).fold(1.0, f64::max)
}

/// Rows that a function in FROM gives.
fn set_rows(call: &Expr) -> f64 {
    let Expr::Call { function, args, .. } = call else { return 1.0 };
    if !function.returns_set {
        return 1.0;
    }
    let number = |e: &Expr| match e {
        Expr::Const(types::Datum::Int4(n), _) => Some(f64::from(*n)),
        Expr::Const(types::Datum::Int8(n), _) => Some(*n as f64),
        _ => None,
    };
    match (function.name, &**args) {
        ("generate_series", [from, to]) => match (number(from), number(to)) {
            (Some(from), Some(to)) => (to - from + 1.0).max(1.0),
            _ => 1000.0,
        },
        _ => 1000.0,
    }
}

fn count_rows(planner: &Planner<'_>, rel: &Rel, rows: &mut f64) {
    match rel {
        Rel::Table(table) | Rel::Sample { table, .. } => *rows += planner.size_of(&table.table).1,
        Rel::System { .. } => *rows += 500.0,
        Rel::Function { .. } => *rows += 1000.0,
        Rel::Values { rows: list, .. } => *rows += list.len() as f64,
        other => other.for_inputs(&mut |input| count_rows(planner, input, rows)),
    }
}

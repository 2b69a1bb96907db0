//! Reading one table: sequentially or through one of its indexes.

use base::Result;
use base::settings::{live_int, setting};
use catalog::Index;

use std::sync::Arc;

use crate::expr::Expr;
use crate::logical::{Col, TableRel};
use crate::plan::{Estimate, IndexBounds, Node, Plan, Scan, ScanColumn};

use super::cols::Cols;
use super::cost::{self, Costs};
use super::index::{Match, match_index};
use super::{Goal, OrderKey, Phys, Planner, order};

/// A way to read a table, before it is built.
pub(crate) struct Path {
    /// The index with what it can do; None: sequentially.
    pub index: Option<(Arc<Index>, Match)>,
    /// From the end.
    pub backward: bool,
    /// Expected.
    pub estimate: Estimate,
    /// Order of the rows.
    pub order: Vec<OrderKey>,
}

impl Planner<'_> {
    /// The cheapest way to read the rows that satisfy the conditions. Columns in them that are not
    /// the table's are known before the scan starts.
    pub fn best_path(&self, table: &TableRel, conditions: &[Expr], goal: &Goal) -> Path {
        let costs = Costs::of(self.cx.settings);
        let (pages, rows) = (self.cx.table_size)(&table.table);
        let (pages, rows) = (f64::from(pages), rows.max(0.0));
        let own: Cols =
            (0..).map(|i| table.base + i).take_while(|c| table.column(*c).is_some()).collect();
        let share = self.selectivity(Some(table), conditions);
        let out = (rows * share).round().max(1.0);
        let width = self.row_width(table);
        let per_row = costs.tuple + conditions.len() as f64 * costs.operator;
        let mut total = pages * costs.seq_page + rows * per_row;
        if !costs.seqscan {
            total += cost::DISABLED;
        }
        let estimate = Estimate { startup: 0.0, total, rows: out, width };
        let mut best = Path { index: None, backward: false, estimate, order: Vec::new() };
        let mut best_cost = effective(&best, goal);
        for index in self.cx.catalog.indexes_of(&table.table) {
            if index.hidden || index.invalid {
                continue;
            }
            let Some(computed) = self.index_computes(&index, table, conditions) else { continue };
            let found = match_index(&index, table, &own, conditions, &computed);
            let orders = !goal.order.is_empty();
            if found.used.is_empty() && !orders {
                continue;
            }
            let estimate =
                self.index_cost(table, conditions, &found, &index, pages, rows, share, width);
            // A whole unique key: the executor's short path, better than any scan of even one page.
            if found.one_row && costs.indexscan {
                let order = found.order.clone();
                return Path {
                    index: Some((index.clone(), found)),
                    backward: false,
                    estimate,
                    order,
                };
            }
            for backward in [false, true] {
                let given = if backward { reversed(&found.order) } else { found.order.clone() };
                let fits = orders && order::satisfies(&given, &goal.order);
                if (backward || found.used.is_empty()) && !fits {
                    continue;
                }
                let path = Path {
                    index: Some((index.clone(), found.clone())),
                    backward,
                    estimate,
                    order: given,
                };
                let cost = effective(&path, goal);
                if cost < best_cost {
                    best_cost = cost;
                    best = path;
                }
            }
        }
        best
    }

    /// The index's expressions over the table's columns; None when it is a partial index whose
    /// condition doesn't follow from the query's.
    fn index_computes(
        &self,
        index: &Index,
        table: &TableRel,
        conditions: &[Expr],
    ) -> Option<Vec<Expr>> {
        if index.is_plain() {
            return Some(Vec::new());
        }
        let texts: Vec<&str> = index.expressions().collect();
        let bound = crate::stored::row_expressions(self.cx, &table.table, &texts).ok()?;
        let place = |n: u16| {
            let col = table.base + n;
            Some(Expr::Column(col, self.vars[usize::from(col)].ty))
        };
        let mut all: Vec<Expr> =
            bound.into_iter().map(|e| crate::walk::substitute(e, &place)).collect();
        if index.predicate.is_some() {
            let mut wanted = Vec::new();
            crate::walk::conjuncts(all.pop()?, &mut wanted);
            let given = |w: &Expr| conditions.iter().any(|c| crate::walk::same(c, w));
            if !wanted.iter().all(given) {
                return None;
            }
        }
        Some(all)
    }

    #[allow(clippy::too_many_arguments)]
    fn index_cost(
        &self,
        table: &TableRel,
        conditions: &[Expr],
        found: &Match,
        index: &Index,
        pages: f64,
        rows: f64,
        share: f64,
        width: i32,
    ) -> Estimate {
        let costs = Costs::of(self.cx.settings);
        let used: Vec<Expr> = found.used.iter().map(|i| conditions[*i].clone()).collect();
        let reached = if found.one_row {
            1.0
        } else {
            (rows * self.selectivity(Some(table), &used)).max(1.0)
        };
        let out = if found.one_row { 1.0 } else { (rows * share).round().max(1.0) };
        let descent = costs.operator * rows.max(2.0).log2().ceil() * 2.0 + costs.operator * 50.0;
        // Leaves are read one after another; rows lie in their order or anywhere, by correlation.
        let leaf_pages = (reached / 300.0).ceil();
        let first = index.columns.first().map_or(1, |c| usize::from(c.column).max(1));
        let correlation = self
            .cx
            .catalog
            .stats(table.table.oid)
            .and_then(|s| s.columns.get(first - 1))
            .map_or(0.0, |c| c.correlation);
        let scattered = reached.min(pages.max(1.0)) * costs.random_page;
        let sorted = costs.random_page + (share * pages - 1.0).max(0.0) * costs.seq_page;
        let tightness = correlation * correlation;
        let heap = scattered + tightness * (sorted.min(scattered) - scattered);
        let mut startup = descent;
        if !costs.indexscan {
            startup += cost::DISABLED;
        }
        let total = startup
            + leaf_pages * costs.random_page
            + heap
            + reached * (costs.index_tuple + costs.tuple)
            + reached * conditions.len() as f64 * costs.operator;
        Estimate { startup, total, rows: out, width }
    }

    fn row_width(&self, table: &TableRel) -> i32 {
        table
            .table
            .live_columns()
            .map(|(n, _)| cost::type_width(&self.vars[usize::from(table.col(ScanColumn::Attr(n)))]))
            .sum()
    }

    /// Reading the table from its beginning to its end.
    pub fn whole_table(&self, table: &TableRel, conditions: &[Expr]) -> Path {
        let costs = Costs::of(self.cx.settings);
        let (pages, rows) = (self.cx.table_size)(&table.table);
        let share = self.selectivity(Some(table), conditions);
        let total = f64::from(pages) * costs.seq_page + rows * costs.tuple;
        let out = (rows * share).round().max(1.0);
        let estimate = Estimate { startup: 0.0, total, rows: out, width: self.row_width(table) };
        Path { index: None, backward: false, estimate, order: Vec::new() }
    }

    /// What an index scan costs as one of many runs: pages near the top of the index are in memory
    /// then, and the table's own, too, when it fits the buffers.
    pub fn run_cost(&self, table: &TableRel, path: &Path) -> f64 {
        let (pages, _) = (self.cx.table_size)(&table.table);
        let fits = i64::from(pages) <= live_int(setting::SHARED_BUFFERS);
        path.estimate.total * if fits { 0.2 } else { 0.5 }
    }

    /// Builds the scan of a path.
    pub fn table_scan(
        &mut self,
        table: &TableRel,
        conditions: Vec<Expr>,
        need: &Cols,
        path: Path,
    ) -> Result<Phys> {
        let proved: &[usize] = path.index.as_ref().map_or(&[], |(_, m)| &m.proved);
        let rest: Vec<Expr> = conditions
            .into_iter()
            .enumerate()
            .filter(|(i, _)| !proved.contains(i))
            .map(|(_, e)| e)
            .collect();
        let mut wanted = need.clone();
        rest.iter().for_each(|e| wanted.add(&Cols::of(e)));
        let cols: Vec<Col> = wanted.iter().filter(|c| table.column(*c).is_some()).collect();
        let columns: Vec<ScanColumn> = cols.iter().filter_map(|c| table.column(*c)).collect();
        let filter = self.condition(rest, &cols)?;
        let scan = Scan { table: table.table.clone(), columns, filter };
        let mut estimate = path.estimate;
        estimate.width = self.width(&cols);
        let node = match path.index {
            None => Node::SeqScan(scan),
            Some((index, found)) => Node::IndexScan {
                scan,
                index,
                bounds: self.resolve_bounds(found.bounds)?,
                backward: path.backward,
            },
        };
        Ok(Phys { plan: Plan { node, estimate }, cols, order: path.order })
    }

    fn resolve_bounds(&mut self, bounds: IndexBounds) -> Result<IndexBounds> {
        let mut equal = Vec::with_capacity(bounds.equal.len());
        for e in bounds.equal {
            equal.push(self.resolve(e, &[])?);
        }
        let lower = bounds.lower.map(|(e, i)| Ok((self.resolve(e, &[])?, i))).transpose()?;
        let upper = bounds.upper.map(|(e, i)| Ok((self.resolve(e, &[])?, i))).transpose()?;
        let any = bounds.any.map(|e| self.resolve(e, &[])).transpose()?;
        Ok(IndexBounds { equal, lower, upper, any })
    }
}

/// What a path costs for this goal: with a sort if it isn't in order, with only the part that is
/// read.
fn effective(path: &Path, goal: &Goal) -> f64 {
    let e = &path.estimate;
    if !goal.order.is_empty() && !order::satisfies(&path.order, &goal.order) {
        return e.total + cost::sort_cost(e.rows);
    }
    match goal.rows {
        Some(rows) => e.startup + (e.total - e.startup) * (rows / e.rows.max(1.0)).min(1.0),
        None => e.total,
    }
}

fn reversed(order: &[OrderKey]) -> Vec<OrderKey> {
    order.iter().map(|(c, d, n)| (*c, !d, !n)).collect()
}

//! Reading one table: sequentially, through one of its indexes, from an index alone, or through a
//! bitmap of rows that indexes make ([`super::bitmap`]).
//!
//! Costs are PostgreSQL's (`costsize.c`, `selfuncs.c`): pages that a scan visits by Mackert and Lohman,
//! between those of an index that follows the table's order and those of one that doesn't by the
//! square of the correlation.

use base::Result;
use base::settings::{live_int, setting};
use catalog::{Index, TableKind};

use std::sync::Arc;

use crate::expr::Expr;
use crate::logical::{Col, Rel, TableRel};
use crate::plan::{
    Estimate, ForeignScan, IndexBounds, KeyStep, Node, Plan, Scan, ScanColumn, ScanKey,
};
use crate::tid::Tids;

use super::bitmap::BitmapPath;
use super::cols::Cols;
use super::cost::{self, Costs};
use super::index::{Match, match_arms, match_behind, match_index, match_keys};
use super::{OrderKey, PhysicalPlan, Planner, RequiredProperties, order};

/// An access path: one method of reading a table, with its cost, before it becomes a plan.
pub(crate) struct Path {
    pub method: ScanMethod,
    /// Expected.
    pub estimate: Estimate,
    /// Order of the rows.
    pub order: Vec<OrderKey>,
}

/// How a table is read.
pub(crate) enum ScanMethod {
    Sequential,
    /// Of the pages that conditions on `ctid` name, which are these.
    Tids(Vec<usize>),
    /// The index, what it can do, from the end, without the table.
    Index {
        index: Arc<Index>,
        found: Match,
        backward: bool,
        only: bool,
    },
    Bitmap(BitmapPath),
}

/// A table as its scans see it.
pub(crate) struct Source<'t> {
    pub table: &'t TableRel,
    /// All columns that it has.
    pub own: Cols,
    pub conditions: &'t [Expr],
    /// Share of the rows that all conditions keep.
    pub share: f64,
    pub pages: f64,
    pub rows: f64,
    pub width: i32,
}

/// What a visit of an index costs, without the table.
#[derive(Clone, Copy, Default)]
pub(crate) struct IndexCost {
    pub startup: f64,
    pub total: f64,
    /// Share of the table's rows that it finds.
    pub share: f64,
    /// How many these are.
    pub rows: f64,
}

/// Index entries in a page.
const ENTRIES_PER_PAGE: f64 = 300.0;

impl Path {
    /// Whether an index uses one of the conditions from this place on.
    pub fn uses_from(&self, first: usize) -> bool {
        match &self.method {
            ScanMethod::Sequential => false,
            ScanMethod::Tids(used) => used.iter().any(|i| *i >= first),
            ScanMethod::Index { found, .. } => found.used.iter().any(|i| *i >= first),
            ScanMethod::Bitmap(bitmap) => bitmap.used.iter().any(|i| *i >= first),
        }
    }
}

impl Source<'_> {
    /// Rows that come out.
    fn out(&self) -> f64 {
        (self.rows * self.share).round().max(1.0)
    }
}

impl Planner<'_> {
    fn source<'t>(&self, table: &'t TableRel, conditions: &'t [Expr]) -> Source<'t> {
        let (pages, rows) = self.size_of(&table.table);
        let pages = f64::from(pages) * self.share_of_parts(table, conditions);
        Source {
            table,
            own: (0..).map(|i| table.base + i).take_while(|c| table.column(*c).is_some()).collect(),
            conditions,
            share: self.selectivity(Some(table), conditions),
            pages,
            rows: rows.max(0.0),
            width: self.row_width(table),
        }
    }

    /// The cheapest way to read the rows that satisfy the conditions. Columns in them that are not
    /// the table's are known before the scan starts. `need`: the columns that are used above.
    pub fn best_path(
        &self,
        table: &TableRel,
        conditions: &[Expr],
        need: &Cols,
        required: &RequiredProperties,
    ) -> Path {
        self.path_by(table, conditions, need, required, &Costs::of(self.cx.settings))
    }

    /// The cheapest way to read them so many times, with other values each time: pages that one run has read
    /// are in memory for the next, and what fits the buffers may be there before.
    pub fn path_of_a_run(
        &self,
        table: &TableRel,
        conditions: &[Expr],
        need: &Cols,
        runs: f64,
    ) -> Path {
        let (pages, _) = self.size_of(&table.table);
        let buffers = live_int(setting::SHARED_BUFFERS);
        // A table that leaves room for others is most likely there after some runs.
        let share = match i64::from(pages) {
            pages if pages <= buffers / 8 && runs > 10.0 => 0.2,
            pages if pages <= buffers => 0.5,
            _ => 1.0,
        };
        let costs = Costs::of(self.cx.settings).of_runs(runs, share);
        self.path_by(table, conditions, need, &RequiredProperties::default(), &costs)
    }

    fn path_by(
        &self,
        table: &TableRel,
        conditions: &[Expr],
        need: &Cols,
        required: &RequiredProperties,
        costs: &Costs,
    ) -> Path {
        let source = self.source(table, conditions);
        let mut best = self.sequential(&source, costs);
        if conditions.is_empty() && !need.intersects(&source.own) {
            // Rows are only counted, in pages of which everybody sees all without a look at them.
            let spared = source.pages * costs.seq_page * 0.5 + source.rows * costs.tuple;
            best.estimate.total -= self.visible_share(&source) * spared;
        }
        if self.cx.catalog.has_foreign_parts(&table.table) {
            return best;
        }
        if let Some(path) = self.by_tids(&source, costs) {
            best = path;
        }
        let mut best_cost = self.effective(&best, required);
        let mut bits = Vec::new();
        for index in self.cx.catalog.indexes_of(&table.table) {
            if index.hidden || index.invalid {
                continue;
            }
            let Some(found) = self.match_conditions(&index, &source, conditions) else { continue };
            // A whole unique key: the executor's short path, better than any scan of even one page.
            if found.one_row && costs.indexscan {
                let only = costs.indexonlyscan
                    && !is_point(&found)
                    && covers(&index, &source, &found, need);
                let part = self.index_cost(&source, conditions, (&index, &found), costs);
                let estimate = self.with_heap(&source, &found, &index, part, only, costs);
                let order = found.order.clone();
                let method =
                    ScanMethod::Index { index: index.clone(), found, backward: false, only };
                return Path { method, estimate, order };
            }
            let arms = self.match_ors(&index, &source, conditions);
            let skip = self.match_skip(&index, &source, conditions, &found);
            let others = arms.chain(skip).map(|f| (f, false));
            for (found, single) in std::iter::once((found, true)).chain(others) {
                let only = costs.indexonlyscan && covers(&index, &source, &found, need);
                let part = self.index_cost(&source, conditions, (&index, &found), costs);
                let estimate = self.with_heap(&source, &found, &index, part, only, costs);
                for backward in [false, true] {
                    let (order, fits) = order_for(&found, backward, required);
                    let wanted = (fits || (!backward && (only || !found.used.is_empty())))
                        && scans_plainly(&index, &found);
                    if !wanted {
                        continue;
                    }
                    let found = found.clone();
                    let method = ScanMethod::Index { index: index.clone(), found, backward, only };
                    let path = Path { method, estimate, order };
                    let cost = self.effective(&path, required);
                    if cost < best_cost {
                        (best_cost, best) = (cost, path);
                    }
                }
                if !found.used.is_empty() && single {
                    bits.push((index.clone(), found, part));
                }
            }
        }
        // Of ways that cost about the same, the one wins that gives the first row at once.
        const CLEARLY: f64 = 0.99;
        if let Some(path) = self.bitmap_path(&source, bits, costs)
            && self.effective(&path, required) < best_cost * CLEARLY
        {
            best = path;
        }
        self.nearest_path(&source, conditions, need, &best, costs).unwrap_or(best)
    }

    /// Reading only the pages that conditions on `ctid` name.
    fn by_tids(&self, source: &Source<'_>, costs: &Costs) -> Option<Path> {
        // As PostgreSQL assumes for an array of which nothing is known.
        const ELEMENTS: f64 = 10.0;
        let is_tid = |column| source.table.column(column) == Some(ScanColumn::Tid);
        let is_known =
            |e: &Expr| !Cols::of(e).intersects(&source.own) && !crate::walk::is_volatile(e);
        let named = |conditions: &[Expr]| Tids::of(conditions.iter(), &is_tid, &is_known);
        let tids = named(source.conditions)?;
        let used = |n: &usize| named(&source.conditions[*n..=*n]).is_some();
        let used: Vec<usize> = (0..source.conditions.len()).filter(used).collect();
        let block = |e: &Expr| match e {
            Expr::Const(types::Datum::Tid(tid), _) => Some(f64::from(tid.block)),
            _ => None,
        };
        let (pages, page_cost, rows) = match &tids {
            Tids::Is(_) => (1.0, costs.random_page, Some(1.0)),
            Tids::AnyOf(array) => {
                let count = match array {
                    Expr::Const(types::Datum::Array(array), _) => array.items.len() as f64,
                    Expr::Array { items, .. } => items.len() as f64,
                    _ => ELEMENTS,
                };
                (count, costs.random_page, Some(count))
            }
            Tids::Between { lower, upper } => {
                let first = lower.iter().filter_map(block).fold(0.0, f64::max);
                let last = upper.iter().filter_map(block).fold(source.pages, f64::min);
                let unknown = lower.iter().chain(upper).any(|e| block(e).is_none());
                let share = if unknown { 1.0 / 3.0 } else { 1.0 };
                let pages = ((last - first + 1.0).clamp(1.0, source.pages.max(1.0)) * share).ceil();
                (pages, costs.seq_page, None)
            }
        };
        let pages = pages.min(source.pages.max(1.0));
        let density = source.rows / source.pages.max(1.0);
        let per_row = costs.tuple + source.conditions.len() as f64 * costs.operator;
        let startup = if costs.tidscan { 0.0 } else { cost::DISABLED };
        let total = startup + pages * (page_cost + density * per_row);
        let rows = rows.unwrap_or(source.out()).min(source.rows.max(1.0));
        let estimate = Estimate { startup, total, rows, width: source.width };
        Some(Path { method: ScanMethod::Tids(used), estimate, order: Vec::new() })
    }

    fn sequential(&self, source: &Source<'_>, costs: &Costs) -> Path {
        let per_row = costs.tuple + source.conditions.len() as f64 * costs.operator;
        let mut total = source.pages * costs.seq_page + source.rows * per_row;
        let mut startup = 0.0;
        if !costs.seqscan {
            startup += cost::DISABLED;
            total += cost::DISABLED;
        }
        let estimate = Estimate { startup, total, rows: source.out(), width: source.width };
        Path { method: ScanMethod::Sequential, estimate, order: Vec::new() }
    }

    /// What an index can do for conditions; None when it is a partial index without some of the rows.
    pub fn match_conditions(
        &self,
        index: &Index,
        source: &Source<'_>,
        conditions: &[Expr],
    ) -> Option<Match> {
        if !index.method.properties().ordered {
            return self.match_unordered(index, source, conditions);
        }
        if index.is_plain() {
            return Some(match_index(index, source.table, &source.own, conditions, &[]));
        }
        let (computed, given) = self.index_computes(index, source)?;
        let mut found = match_index(index, source.table, &source.own, conditions, &computed);
        self.state_predicate(&mut found, &given, conditions);
        Some(found)
    }

    /// A skip scan: conditions on columns behind a leading one without a condition, whose distinct values are looked up
    /// one after the other.
    fn match_skip(
        &self,
        index: &Index,
        source: &Source<'_>,
        conditions: &[Expr],
        plain: &Match,
    ) -> Option<Match> {
        if index.method != base::AccessMethod::BTree || !plain.bounds.either.is_empty() {
            return None;
        }
        let place = plain.bounds.fixed();
        let column = index.columns.get(place).filter(|c| c.column > 0)?;
        let ty = base::Oid(source.table.table.columns[usize::from(column.column) - 1].ty);
        let readable = column.slot().is_ok_and(|slot| slot == types::collation::Slot::BYTES)
            && types::key::is_decodable(types::user::base_type(ty, -1).0);
        if !readable || index.columns.len() <= place + 1 {
            return None;
        }
        let (computed, given) = match index.is_plain() {
            true => (Vec::new(), Vec::new()),
            false => self.index_computes(index, source)?,
        };
        let col = source.table.col(ScanColumn::Attr(column.column));
        let values = self.distinct_rows(&[self.column(col)], source.rows);
        if values > SKIPPED_MAX || values * ROWS_A_SKIP > source.rows {
            return None;
        }
        let mut found =
            match_behind(index, source.table, &source.own, conditions, &computed, values)?;
        self.state_predicate(&mut found, &given, conditions);
        Some(found)
    }

    /// The same for an index without an order: None when it serves none of the conditions.
    fn match_unordered(
        &self,
        index: &Index,
        source: &Source<'_>,
        conditions: &[Expr],
    ) -> Option<Match> {
        let (computed, given) = match index.is_plain() {
            true => (Vec::new(), Vec::new()),
            false => self.index_computes(index, source)?,
        };
        let mut found = match_keys(index, source.table, &source.own, conditions, &computed)?;
        self.state_predicate(&mut found, &given, conditions);
        Some(found)
    }

    /// What an index can do for each OR among the conditions, with the others beside it.
    fn match_ors<'s>(
        &'s self,
        index: &'s Index,
        source: &'s Source<'_>,
        conditions: &'s [Expr],
    ) -> impl Iterator<Item = Match> + 's {
        let is_or = |e: &Expr| {
            matches!(e, Expr::Or(_))
                && !crate::walk::has_subquery(e)
                && !crate::walk::is_volatile(e)
        };
        let places = conditions.iter().enumerate().filter(move |(_, e)| is_or(e)).map(|(n, _)| n);
        let places = places.filter(|_| index.method.properties().ordered);
        places.filter_map(move |place| {
            let (computed, given) = match index.is_plain() {
                true => (Vec::new(), Vec::new()),
                false => self.index_computes(index, source)?,
            };
            let (table, own) = (source.table, &source.own);
            let mut found = match_arms(index, table, own, conditions, place, &computed)?;
            self.state_predicate(&mut found, &given, conditions);
            Some(found)
        })
    }

    /// What the index's condition says need not be asked again.
    pub fn state_predicate(&self, found: &mut Match, given: &[Expr], conditions: &[Expr]) {
        let stated = |(_, e): &(usize, &Expr)| given.iter().any(|g| crate::walk::same(g, e));
        let stated = conditions.iter().enumerate().filter(stated).map(|(i, _)| i);
        found.implied = stated.collect();
        found.proved.extend(&found.implied);
    }

    /// The index's expressions over the table's columns, and the parts of its condition; None when it
    /// is a partial index whose condition doesn't follow from the query's.
    pub fn index_computes(
        &self,
        index: &Index,
        source: &Source<'_>,
    ) -> Option<(Vec<Expr>, Vec<Expr>)> {
        let table = source.table;
        let texts: Vec<&str> = index.expressions().collect();
        let bound = crate::stored::row_expressions(self.cx, &table.table, &texts).ok()?;
        let place = |n: u16| {
            let col = table.base + n;
            Some(Expr::Column(col, self.vars[usize::from(col)].ty))
        };
        let mut all: Vec<Expr> =
            bound.into_iter().map(|e| crate::walk::substitute(e, &place)).collect();
        let mut given = Vec::new();
        if index.predicate.is_some() {
            crate::walk::conjuncts(all.pop()?, &mut given);
            if !given.iter().all(|w| self.is_implied(w, source.conditions)) {
                return None;
            }
        }
        Some((all, given))
    }

    /// What the visit of the index costs.
    pub fn index_cost(
        &self,
        source: &Source<'_>,
        conditions: &[Expr],
        (index, found): (&Index, &Match),
        costs: &Costs,
    ) -> IndexCost {
        let ordered = index.method.properties().ordered;
        let condition = |place: &usize| match &found.part_of_or {
            Some((of, part)) if of == place => part.clone(),
            _ => conditions[*place].clone(),
        };
        let used: Vec<Expr> = found.used.iter().map(condition).collect();
        let stated: Vec<Expr> = found.implied.iter().map(|i| conditions[*i].clone()).collect();
        let partial = self.selectivity(Some(source.table), &stated);
        let share = partial * self.selectivity(Some(source.table), &used);
        if index.method == base::AccessMethod::Brin {
            return self.brin_cost(source, index, share, used.len(), costs);
        }
        if index.method == base::AccessMethod::Bloom {
            return bloom_cost(source, index, share, partial, costs);
        }
        let rows = if found.one_row { 1.0 } else { (source.rows * share).round().max(1.0) };
        let entries = (source.rows * partial).max(2.0);
        let visits = visits(&found.bounds);
        let leaves = (rows / ENTRIES_PER_PAGE).ceil().max(visits.min(rows));
        let leaves = match costs.runs > 1.0 {
            true => {
                let all = (entries / ENTRIES_PER_PAGE).ceil();
                pages_fetched(leaves * costs.runs, all, costs) / costs.runs
            }
            false => leaves,
        };
        let levels = (entries.ln() / ENTRIES_PER_PAGE.ln()).ceil().max(1.0);
        let descent = match ordered {
            true => costs.operator * entries.log2().ceil() + costs.operator * 50.0 * levels,
            false if found.bounds.keys.is_empty() => 0.0, // a hash index: there is nothing to go down
            // As often as there are entries, which nobody knows.
            false => costs.operator * 50.0 * levels,
        };
        // Values are looked for first, each in a leaf of its own; where they are, there may be no rows.
        let skips = skips(&found.bounds);
        let looked_for = skips.min((entries / ENTRIES_PER_PAGE).ceil()) * costs.random_page;
        let leaves = leaves.max(skips.min((entries / ENTRIES_PER_PAGE).ceil()));
        let startup = descent * (1.0 + skips) + looked_for;
        let per_row = costs.index_tuple + used.len() as f64 * costs.operator;
        let total =
            startup + descent * (visits - 1.0) + leaves * costs.random_page + rows * per_row;
        IndexCost { startup, total, share, rows }
    }

    /// The same of a BRIN index: the share of the ranges whose summaries allow for rows grows as the rows' order has
    /// less to do with the values'.
    fn brin_cost(
        &self,
        source: &Source<'_>,
        index: &Index,
        share: f64,
        conditions: usize,
        costs: &Costs,
    ) -> IndexCost {
        let option = index.options.iter().find(|o| o.0 == "pages_per_range");
        let per_range = option.and_then(|o| o.1.parse().ok()).unwrap_or(128.0_f64);
        let ranges = (source.pages / per_range.max(1.0)).ceil().max(1.0);
        let correlation = self.correlation(source, index).abs();
        let least = (ranges * share).ceil();
        let read = if correlation < 1e-10 { ranges } else { (least / correlation).min(ranges) };
        let share = (read / ranges).min(1.0);
        let summaries = (ranges / ENTRIES_PER_PAGE).ceil();
        let startup = summaries * costs.seq_page + costs.operator * conditions as f64;
        let total =
            startup + costs.random_page + 0.1 * costs.operator * read * per_range.min(source.pages);
        IndexCost { startup, total, share, rows: (source.rows * share).round().max(1.0) }
    }

    /// An index scan with its visits to the table.
    pub fn with_heap(
        &self,
        source: &Source<'_>,
        found: &Match,
        index: &Index,
        part: IndexCost,
        only: bool,
        costs: &Costs,
    ) -> Estimate {
        let hidden = if only { 1.0 - self.visible_share(source) } else { 1.0 };
        let near = ((part.share * source.pages).ceil().max(1.0) * hidden).ceil();
        let (most, least) = match costs.runs > 1.0 {
            true => {
                let of_run = |pages: f64| {
                    pages_fetched(pages * costs.runs, source.pages, costs) / costs.runs
                };
                (of_run(part.rows * hidden) * costs.random_page, of_run(near) * costs.random_page)
            }
            false => {
                let far = (pages_fetched(part.rows, source.pages, costs) * hidden).ceil();
                let least = match near {
                    0.0 => 0.0,
                    n => costs.random_page + (n - 1.0) * costs.seq_page,
                };
                (far * costs.random_page, least)
            }
        };
        let correlation = self.correlation(source, index);
        let heap = most + correlation * correlation * (least.min(most) - most);
        let rest = source.conditions.len() - found.proved.len().min(source.conditions.len());
        let per_row = costs.tuple + rest as f64 * costs.operator;
        let extra = if costs.indexscan { 0.0 } else { cost::DISABLED };
        Estimate {
            startup: part.startup + extra,
            total: part.total + heap + part.rows * per_row + extra,
            rows: if found.one_row { 1.0 } else { source.out() },
            width: source.width,
        }
    }

    /// How far the table's rows lie in the index's order.
    fn correlation(&self, source: &Source<'_>, index: &Index) -> f64 {
        let Some(first) = index.columns.first().filter(|c| c.column > 0) else { return 0.0 };
        let of_column = self
            .cx
            .catalog
            .stats(source.table.table.oid)
            .and_then(|s| s.columns.get(usize::from(first.column) - 1))
            .map_or(0.0, |c| c.correlation);
        // Further columns put it out of order, as PostgreSQL has it.
        if index.columns.len() > 1 { of_column * 0.75 } else { of_column }
    }

    /// Share of the pages of which everybody saw all rows when somebody last counted.
    fn visible_share(&self, source: &Source<'_>) -> f64 {
        let stats = self.cx.catalog.stats(source.table.table.oid);
        stats.map_or(0.0, |s| (f64::from(s.visible) / source.pages.max(1.0)).min(1.0))
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
        let costs = Costs { seqscan: true, ..Costs::of(self.cx.settings) };
        self.sequential(&self.source(table, conditions), &costs)
    }

    /// Builds the scan of a path.
    pub fn table_scan(
        &mut self,
        table: &TableRel,
        conditions: Vec<Expr>,
        need: &Cols,
        path: Path,
    ) -> Result<PhysicalPlan> {
        let proved: &[usize] = match &path.method {
            ScanMethod::Sequential | ScanMethod::Tids(_) => &[],
            ScanMethod::Index { found, .. } => &found.proved,
            ScanMethod::Bitmap(bitmap) => &bitmap.proved,
        };
        let prune = self.prune_of(table, &conditions);
        let code = match table.table.kind {
            TableKind::Foreign => Some(crate::foreign::code_of(self.cx.catalog, &table.table)?),
            _ => None,
        };
        let ships = code.as_deref().and_then(crate::foreign::ships);
        // System columns have other values on the other server.
        let is_system = |c: Col| matches!(table.column(c), Some(column) if !matches!(column, ScanColumn::Attr(_)));
        let leaves =
            |e: &Expr| ships.is_some_and(|ships| ships(e)) && !Cols::of(e).iter().any(is_system);
        let remote: Vec<Expr> = conditions.iter().filter(|e| leaves(e)).cloned().collect();
        let rest: Vec<Expr> = conditions
            .iter()
            .enumerate()
            .filter(|(i, e)| !proved.contains(i) && !leaves(e))
            .map(|(_, e)| e.clone())
            .collect();
        // What holds for all rows or for none is not asked of each row of a whole table.
        let own = Cols::output(&Rel::Table(table.clone()));
        let (once, rest): (Vec<Expr>, Vec<Expr>) = match path.method {
            ScanMethod::Sequential => rest.into_iter().partition(|e| own.leave_constant(e)),
            _ => (Vec::new(), rest),
        };
        let (rest, late) = self.split_at_action(rest);
        let mut wanted = need.clone();
        late.iter().for_each(|e| wanted.add(&Cols::of(e)));
        rest.iter().for_each(|e| wanted.add(&Cols::of(e)));
        let needed = wanted.clone();
        if let ScanMethod::Bitmap(bitmap) = &path.method {
            bitmap.recheck.iter().for_each(|e| wanted.add(&Cols::of(e)));
        }
        let doubts = match &path.method {
            ScanMethod::Index { index, found, .. } if index.method.properties().lossy => {
                found.used.iter().map(|i| conditions[*i].clone()).collect()
            }
            _ => Vec::new(),
        };
        doubts.iter().for_each(|e| wanted.add(&Cols::of(e)));
        if let ScanMethod::Index { found, .. } = &path.method {
            super::nearest::columns_of(found).for_each(|cols| wanted.add(&cols));
        }
        if table.table.is_partitioned() {
            path.order.iter().for_each(|(by, ..)| wanted.insert(by.col));
        }
        let cols: Vec<Col> = wanted.iter().filter(|c| table.column(*c).is_some()).collect();
        let columns: Vec<ScanColumn> = cols.iter().filter_map(|c| table.column(*c)).collect();
        let filter = self.condition(rest, &cols)?;
        let alias = (table.alias != table.table.name).then(|| table.alias.as_str().into());
        let scan = Scan { table: table.table.clone(), columns, filter, alias };
        let mut estimate = path.estimate;
        estimate.width = self.width(&cols);
        let node = match path.method {
            ScanMethod::Sequential | ScanMethod::Tids(_) => match code {
                Some(code) => {
                    let count = table.table.columns.len() as Col;
                    let all: Vec<Col> = (table.base..table.base + count).collect();
                    let remote = self.resolve_all(remote, &all)?;
                    let role = table.role;
                    Node::ForeignScan(Box::new(ForeignScan { scan, remote, code, role }))
                }
                None => Node::SeqScan(scan),
            },
            ScanMethod::Index { index, found, backward, only } => {
                let distances = found.bounds.distances.clone();
                let mut bounds = self.resolve_bounds(found.bounds)?;
                if !distances.is_empty() {
                    bounds.distances = self.resolve_all(distances, &cols)?;
                    self.nearest.iter_mut().for_each(|nearest| nearest.given = true);
                }
                bounds.recheck = self.condition(doubts, &cols)?;
                match only {
                    true => Node::IndexOnlyScan { scan, index, bounds, backward },
                    false => Node::IndexScan { scan, index, bounds, backward },
                }
            }
            ScanMethod::Bitmap(bitmap) => self.bitmap_scan(scan, bitmap, &cols, &needed)?,
        };
        let phys = PhysicalPlan { plan: Plan { node, estimate }, cols, order: path.order };
        let phys = match table.table.is_partitioned() {
            true => self.partition_scan(table, prune, phys)?,
            false => phys,
        };
        let condition = self.condition(late, &phys.cols)?;
        let phys = super::filtered(phys, condition, 1.0);
        let condition = self.condition(once, &[])?;
        Ok(super::filtered(phys, condition, 1.0))
    }

    pub fn resolve_bounds(&mut self, bounds: IndexBounds) -> Result<IndexBounds> {
        let mut steps = Vec::with_capacity(bounds.steps.len());
        for step in bounds.steps {
            steps.push(match step {
                KeyStep::Equal(e) => KeyStep::Equal(self.resolve(e, &[])?),
                KeyStep::Any(e) => KeyStep::Any(self.resolve(e, &[])?),
                KeyStep::Null => KeyStep::Null,
                KeyStep::Each(values) => KeyStep::Each(values),
            });
        }
        let mut either = Vec::with_capacity(bounds.either.len());
        for arm in bounds.either {
            either.push(self.resolve_bounds(arm)?);
        }
        let mut keys = Vec::with_capacity(bounds.keys.len());
        for key in bounds.keys {
            keys.push(ScanKey { value: self.resolve(key.value, &[])?, ..key });
        }
        let mut nearest = Vec::with_capacity(bounds.nearest.len());
        for key in bounds.nearest {
            nearest.push(ScanKey { value: self.resolve(key.value, &[])?, ..key });
        }
        let mut row = |bound: Option<(Vec<Expr>, bool)>| {
            bound.map(|(row, included)| Ok((self.resolve_all(row, &[])?, included))).transpose()
        };
        let (lower, upper) = (row(bounds.lower)?, row(bounds.upper)?);
        Ok(IndexBounds {
            equal: self.resolve_all(bounds.equal, &[])?,
            steps,
            lower,
            upper,
            begins: bounds.begins.map(|(e, p)| Ok((self.resolve(e, &[])?, p))).transpose()?,
            not_null: bounds.not_null,
            either,
            keys,
            nearest,
            distances: Vec::new(),
            recheck: None,
        })
    }

    /// What a path costs for this required: with a sort if it isn't in order, with only the part that is
    /// read.
    fn effective(&self, path: &Path, required: &RequiredProperties) -> f64 {
        self.goal_cost(&path.estimate, &path.order, required)
    }
}

/// The cost of a bloom index: all of its pages are read, and each row's bits are looked at.
fn bloom_cost(
    source: &Source<'_>,
    index: &Index,
    share: f64,
    partial: f64,
    costs: &Costs,
) -> IndexCost {
    let length = index.options.iter().find(|o| o.0 == "length");
    let bits = length.and_then(|o| o.1.parse().ok()).unwrap_or(80.0_f64);
    let entries = source.rows * partial;
    let pages = (entries * (bits / 8.0 + 10.0) / 8160.0).ceil().max(1.0);
    let startup = pages * costs.seq_page + entries * 0.5 * costs.operator;
    let rows = (source.rows * share).round().max(1.0);
    IndexCost { startup, total: startup + rows * costs.operator, share, rows }
}

/// How many ranges bounds make.
fn visits(bounds: &IndexBounds) -> f64 {
    if !bounds.either.is_empty() {
        return bounds.either.iter().map(visits).sum();
    }
    let of_step = |step: &KeyStep| match step {
        KeyStep::Any(array) => super::selectivity::array_length(array).max(1.0),
        KeyStep::Equal(_) | KeyStep::Null => 1.0,
        KeyStep::Each(values) => values.max(1.0),
    };
    bounds.steps.iter().map(of_step).product()
}

/// Values that a column may have whose index is searched for each of them.
const SKIPPED_MAX: f64 = 1000.0;
/// Rows that each of its values must have, about.
const ROWS_A_SKIP: f64 = 50.0;

/// How often a value of a column that nothing is known of is looked for.
fn skips(bounds: &IndexBounds) -> f64 {
    let skipped = bounds.steps.iter().any(|step| matches!(step, KeyStep::Each(_)));
    if skipped { visits(bounds) } else { 0.0 }
}

/// Whether the index can be read row by row for these bounds.
fn scans_plainly(index: &Index, found: &Match) -> bool {
    let of = index.method.properties();
    let listed = found.bounds.steps.iter().any(|step| matches!(step, KeyStep::Any(_)));
    of.plain_scan && (of.search_array || !listed)
}

/// Whether the bounds are known before anything is read: no join gives them.
fn is_point(found: &Match) -> bool {
    !found.bounds.equal.iter().any(crate::walk::has_columns)
}

/// Whether the index has all columns that are used, in a form from which they can be read back.
pub(crate) fn covers(index: &Index, source: &Source<'_>, found: &Match, need: &Cols) -> bool {
    if !index.method.properties().returns_values {
        return false;
    }
    let mut used: Cols = need.iter().filter(|c| source.own.contains(*c)).collect();
    for (i, condition) in source.conditions.iter().enumerate() {
        if !found.proved.contains(&i) {
            Cols::of(condition)
                .iter()
                .filter(|c| source.own.contains(*c))
                .for_each(|c| used.insert(c));
        }
    }
    let table = &source.table.table;
    if index.method.is_covering() {
        // Conditions that the index may answer wrongly are checked again, with its columns.
        let asked = found.used.iter().filter_map(|i| source.conditions.get(*i));
        let asked = asked.chain(&found.bounds.distances);
        for column in asked.flat_map(|e| Cols::of(e).iter().collect::<Vec<_>>()) {
            if source.own.contains(column) {
                used.insert(column);
            }
        }
        let returns = |key: &&catalog::IndexColumn| {
            let Some(column) = table.columns.get(usize::from(key.column).wrapping_sub(1)) else {
                return false;
            };
            let ty = types::user::base_type(base::Oid(column.ty), -1).0;
            let class = types::gist::class(key.class_of(index.method, ty.0), ty);
            class.is_some_and(|class| class.returns_values())
        };
        let keys = index.columns.iter().filter(returns);
        let has: Cols = keys.map(|k| source.table.col(ScanColumn::Attr(k.column))).collect();
        return used.is_subset(&has);
    }
    let readable = |key: &catalog::IndexColumn| {
        let ty = match &key.expression {
            Some(e) => e.ty,
            None => table.columns[usize::from(key.column) - 1].ty,
        };
        let bytes = key.slot().is_ok_and(|slot| slot == types::collation::Slot::BYTES);
        bytes && types::key::is_decodable(types::user::base_type(base::Oid(ty), -1).0)
    };
    let keys = index.columns.iter().take_while(|key| readable(key)).filter(|k| k.column > 0);
    let has: Cols = keys.map(|k| source.table.col(ScanColumn::Attr(k.column))).collect();
    used.is_subset(&has)
}

/// The order of an index's rows in the terms of the required, and whether it is of use for it.
fn order_for(
    found: &Match,
    backward: bool,
    required: &RequiredProperties,
) -> (Vec<OrderKey>, bool) {
    let turned = |keys: &[OrderKey]| match backward {
        true => keys.iter().map(|(c, d, n)| (*c, !d, !n)).collect(),
        false => keys.to_vec(),
    };
    // Columns that equal something may stand in the required or not.
    let (all, rest) = (turned(&found.whole_order), turned(&found.order));
    let order = if order::common(&all, &required.order) > order::common(&rest, &required.order) {
        all
    } else {
        rest
    };
    let fits = order::common(&order, &required.order) > 0;
    (order, fits)
}

/// Pages of a table that so many rows in any order lie on (Mackert and Lohman 1989).
pub(crate) fn pages_fetched(rows: f64, pages: f64, costs: &Costs) -> f64 {
    let (pages, rows) = (pages.max(1.0), rows.max(0.0));
    let cache = costs.cache_pages.max(1.0);
    let touched = 2.0 * pages * rows / (2.0 * pages + rows);
    if pages <= cache {
        return touched.min(pages).ceil();
    }
    let limit = 2.0 * pages * cache / (2.0 * pages - cache);
    if rows <= limit {
        return touched.ceil();
    }
    (cache + (rows - limit) * (pages - cache) / pages).ceil()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_grow_with_rows_up_to_the_table() {
        let costs =
            Costs { cache_pages: 1000.0, ..Costs::of(&base::settings::Settings::default()) };
        assert_eq!(pages_fetched(1.0, 100.0, &costs), 1.0);
        assert_eq!(pages_fetched(50.0, 100.0, &costs), 40.0);
        assert_eq!(pages_fetched(1e9, 100.0, &costs), 100.0);
        // A table that the cache doesn't hold is read again and again.
        assert!(pages_fetched(1e6, 2000.0, &costs) > 100_000.0);
    }
}

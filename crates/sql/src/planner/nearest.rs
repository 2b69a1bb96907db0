//! Nearest neighbours: a sort by distances (`ORDER BY column <-> value`) that an index spares, since it gives rows by
//! them. The sort says what it wants ([`Wanted`]) before the table below it is planned, and hears whether it is given.

use catalog::Index;
use types::opclass;

use crate::expr::{Expr, SortKey};
use crate::logical::Rel;
use crate::plan::ScanKey;
use crate::walk;

use super::Planner;
use super::cols::Cols;
use super::cost::{self, Costs};
use super::index::{Match, key_parts, known_before, match_keys};
use super::scan::{IndexCost, Path, ScanMethod, Source, covers};

/// Elements that a search of a graph finds, about (`hnsw.ef_search`).
const EF_SEARCH: f64 = 40.0;

/// See the module's documentation.
#[derive(Clone)]
pub(crate) struct Wanted {
    /// The distances, over the table's columns; rows with NULL come last.
    exprs: Vec<Expr>,
    /// How many rows will be read, if not all.
    rows: Option<f64>,
    /// An index gives them.
    pub given: bool,
}

impl Planner<'_> {
    /// The distances that a sort wants of the table below it; None: its keys are no distances, or there is more between them than
    /// projections and conditions.
    pub fn nearest_wanted(
        &self,
        input: &Rel,
        keys: &[SortKey],
        rows: Option<f64>,
    ) -> Option<Wanted> {
        if keys.is_empty() || keys.iter().any(|key| key.descending || key.nulls_first) {
            return None;
        }
        let mut exprs: Vec<Expr> = keys.iter().map(|key| key.expr.clone()).collect();
        let mut below = input;
        loop {
            match below {
                Rel::Project { input, exprs: list, set: false } => {
                    let of = |col: u16| {
                        list.iter().find(|(own, _)| *own == col).map(|(_, expr)| expr.clone())
                    };
                    exprs = exprs.into_iter().map(|e| walk::substitute(e, &of)).collect();
                    below = input;
                }
                Rel::Filter { input, .. } => below = input,
                Rel::Table(table) if !table.table.is_partitioned() => break,
                _ => return None,
            }
        }
        let calls = exprs.iter().all(|e| matches!(e, Expr::Call { args, .. } if args.len() == 2));
        calls.then_some(Wanted { exprs, rows, given: false })
    }

    /// The cheapest path by distance, if a sort wants one, and if it is cheaper than `best` with that sort.
    pub fn nearest_path(
        &self,
        source: &Source<'_>,
        conditions: &[Expr],
        need: &Cols,
        best: &Path,
        costs: &Costs,
    ) -> Option<Path> {
        let wanted = self.nearest.as_ref()?;
        let read = |e: &crate::plan::Estimate| match wanted.rows {
            Some(rows) => e.until(rows / e.rows.max(1.0)),
            None => e.total,
        };
        let sorted = cost::sort_all(&best.estimate, wanted.rows, costs);
        let mut least = read(&sorted);
        let mut found = None;
        for index in self.cx.catalog.indexes_of(&source.table.table) {
            let unusable = index.hidden || index.invalid;
            if unusable || !index.method.properties().distance_ordered {
                continue;
            }
            // A search by an index of vectors gives some of the nearest rows, not all rows.
            if index.method.is_of_vectors() && wanted.rows.is_none() {
                continue;
            }
            let Some(matched) = self.match_nearest(&index, source, conditions, &wanted.exprs)
            else {
                continue;
            };
            let mut part = self.index_cost(source, conditions, (&index, &matched), costs);
            if index.method.is_of_vectors() {
                vector_cost(source, &index, &mut part, costs);
            }
            let only = costs.indexonlyscan && covers(&index, source, &matched, need);
            let estimate = self.with_heap(source, &matched, &index, part, only, costs);
            let cost = read(&estimate);
            if cost < least {
                least = cost;
                let method = ScanMethod::Index {
                    index: index.clone(),
                    found: matched,
                    backward: false,
                    only,
                };
                found = Some(Path { method, estimate, order: Vec::new() });
            }
        }
        found
    }

    /// The use of an index for conditions when its rows come by distances.
    fn match_nearest(
        &self,
        index: &Index,
        source: &Source<'_>,
        conditions: &[Expr],
        exprs: &[Expr],
    ) -> Option<Match> {
        let (computed, given) = match index.is_plain() {
            true => (Vec::new(), Vec::new()),
            false => self.index_computes(index, source)?,
        };
        let matched = match_keys(index, source.table, &source.own, conditions, &computed);
        let mut found = matched.unwrap_or_default();
        self.state_predicate(&mut found, &given, conditions);
        let parts = key_parts(index, source.table, &computed);
        for expr in exprs {
            let Expr::Call { function, args, .. } = expr else { return None };
            let [a, b] = &**args else { return None };
            let key = parts.iter().enumerate().find_map(|(n, part)| {
                let (function, value) = match (part.is(a), part.is(b)) {
                    (true, _) => (function.oid, b),
                    (_, true) => (opclass::commuted(function.oid)?, a),
                    _ => return None,
                };
                let class = index.columns.get(n)?.class_of(index.method, part.ty().0);
                let family = opclass::class(class)?.family;
                let member = opclass::members(family, function).iter().find(|m| m.orders)?;
                (known_before(value, &source.own) && !walk::has_subquery(value)).then(|| ScanKey {
                    column: n as u16,
                    strategy: member.strategy,
                    operator: member.operator,
                    value: value.clone(),
                })
            })?;
            found.bounds.nearest.push(key);
        }
        found.bounds.distances = exprs.to_vec();
        Some(found)
    }
}

/// The columns of a path's distances.
pub(crate) fn columns_of(found: &Match) -> impl Iterator<Item = Cols> + '_ {
    found.bounds.distances.iter().map(Cols::of)
}

/// The cost of an index of vectors, beside that of its rows: how many vectors are compared before the first row comes.
fn vector_cost(source: &Source<'_>, index: &Index, part: &mut IndexCost, costs: &Costs) {
    let option = |name: &str, default: f64| {
        let own = index.options.iter().find(|o| o.0 == name);
        own.and_then(|o| o.1.parse().ok()).unwrap_or(default)
    };
    let rows = source.rows.max(2.0);
    let compared = match index.method {
        base::AccessMethod::Hnsw => {
            let m = option("m", 16.0);
            let levels = rows.ln() / m.ln();
            (levels + EF_SEARCH) * m
        }
        _ => {
            let lists = option("lists", 100.0).min(rows);
            lists + rows / lists
        }
    };
    part.startup = compared.min(rows) * (costs.index_tuple + costs.operator);
    part.total = part.startup + part.rows * (costs.index_tuple + costs.operator);
}

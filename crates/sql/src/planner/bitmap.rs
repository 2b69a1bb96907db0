//! Bitmap scans: indexes make sets of rows, which are met and united, and the table is read in its own
//! order. What is worth meeting is found as PostgreSQL does it: from each set in turn, the others are
//! added that make the whole cheaper and say something new.

use std::sync::Arc;

use base::Result;
use catalog::Index;

use crate::expr::Expr;
use crate::logical::Col;
use crate::plan::{Estimate, Node, Plan, Scan};
use crate::walk;

use super::Planner;
use super::cols::Cols;
use super::cost::Costs;
use super::index::Match;
use super::scan::{IndexCost, Path, ScanMethod, Source, pages_fetched};

/// Sets to choose from; more are not looked at.
const CANDIDATES_MAX: usize = 12;
/// Bytes of a row in a bitmap.
const ROW_BYTES: f64 = 8.0;

/// A bitmap scan, before it is built.
#[derive(Clone)]
pub(crate) struct BitmapPath {
    tree: Tree,
    /// Conditions that indexes use, by place.
    pub used: Vec<usize>,
    /// Conditions that the bitmap proves, as long as it knows single rows.
    pub proved: Vec<usize>,
    /// What must be asked again of pages of which the bitmap doesn't know the rows.
    pub recheck: Vec<Expr>,
    /// Cost of making it.
    cost: f64,
    /// Share of the table's rows that it holds.
    share: f64,
}

#[derive(Clone)]
enum Tree {
    Index { index: Arc<Index>, found: Match, part: IndexCost },
    And(Vec<BitmapPath>),
    Or(Vec<BitmapPath>),
}

impl Planner<'_> {
    /// The cheapest bitmap scan; `bits`: what single indexes can do.
    pub fn bitmap_path(
        &self,
        source: &Source<'_>,
        bits: Vec<(Arc<Index>, Match, IndexCost)>,
        costs: &Costs,
    ) -> Option<Path> {
        if !costs.bitmapscan {
            return None;
        }
        let repeatable =
            |found: &Match| !found.used.iter().any(|i| walk::has_subquery(&source.conditions[*i]));
        let mut all: Vec<BitmapPath> = bits
            .into_iter()
            .filter(|(_, found, _)| repeatable(found))
            .map(|(index, found, part)| single(index, found, part, source.conditions, costs))
            .collect();
        for (place, condition) in source.conditions.iter().enumerate() {
            if source.conditions.len() <= super::index::CONDITIONS_MAX
                && let Expr::Or(arms) = condition
                && !walk::has_subquery(condition)
                && !walk::is_volatile(condition)
            {
                all.extend(self.any_arm(source, arms, place, costs));
            }
        }
        let total = |path: &BitmapPath| self.bitmap_estimate(source, path, costs).total;
        all.sort_by(|a, b| total(a).total_cmp(&total(b)));
        all.truncate(CANDIDATES_MAX);
        let mut best: Option<(f64, BitmapPath)> = None;
        for first in 0..all.len() {
            let mut chosen = all[first].clone();
            let mut cheapest = total(&chosen);
            for (_, other) in all.iter().enumerate().filter(|(n, _)| *n != first) {
                if other.used.iter().any(|i| chosen.used.contains(i)) {
                    continue;
                }
                let both = meet(chosen.clone(), other.clone(), costs);
                let cost = total(&both);
                if cost < cheapest {
                    (chosen, cheapest) = (both, cost);
                }
            }
            if best.as_ref().is_none_or(|(cost, _)| cheapest < *cost) {
                best = Some((cheapest, chosen));
            }
        }
        let (_, chosen) = best?;
        let estimate = self.bitmap_estimate(source, &chosen, costs);
        Some(Path { method: ScanMethod::Bitmap(chosen), estimate, order: Vec::new() })
    }

    /// The union for an OR whose arms all have an index.
    fn any_arm(
        &self,
        source: &Source<'_>,
        arms: &[Expr],
        place: usize,
        costs: &Costs,
    ) -> Option<BitmapPath> {
        let indexes = self.cx.catalog.indexes_of(&source.table.table);
        let mut parts = Vec::with_capacity(arms.len());
        let mut recheck = Vec::with_capacity(arms.len());
        let (mut sum, mut share, mut whole) = (0.0, 0.0, true);
        for arm in arms {
            let mut list = Vec::new();
            walk::conjuncts(arm.clone(), &mut list);
            let own = list.len();
            let others = source
                .conditions
                .iter()
                .enumerate()
                .filter(|(n, e)| *n != place && !walk::has_subquery(e));
            list.extend(others.map(|(_, e)| e.clone()));
            let usable = indexes.iter().filter(|i| !i.hidden && !i.invalid).filter_map(|index| {
                let found = self.match_conditions(index, source, &list)?;
                if !found.used.iter().any(|n| *n < own) {
                    return None;
                }
                let part = self.index_cost(source, &list, (index, &found), costs);
                Some(single(index.clone(), found, part, &list, costs))
            });
            let best = usable.min_by(|a, b| a.cost.total_cmp(&b.cost))?;
            whole &= (0..own).all(|n| best.proved.contains(&n));
            (sum, share) = (sum + best.cost, share + best.share);
            recheck.push(all_of(best.recheck.clone()));
            parts.push(best);
        }
        Some(BitmapPath {
            tree: Tree::Or(parts),
            used: vec![place],
            proved: if whole { vec![place] } else { Vec::new() },
            recheck: vec![Expr::Or(recheck)],
            cost: sum,
            share: share.min(1.0),
        })
    }

    fn bitmap_estimate(&self, source: &Source<'_>, path: &BitmapPath, costs: &Costs) -> Estimate {
        let pages = source.pages.max(1.0);
        let mut rows = (source.rows * path.share).round().max(1.0);
        let touched = match costs.runs > 1.0 {
            true => pages_fetched(rows * costs.runs, pages, costs) / costs.runs,
            false => (2.0 * pages * rows / (2.0 * pages + rows)).min(pages).ceil(),
        };
        if rows * ROW_BYTES > costs.work_mem {
            // Then it knows pages only.
            rows = source.rows * touched / pages;
        }
        let a_page = match touched >= 2.0 {
            true => {
                costs.random_page - (costs.random_page - costs.seq_page) * (touched / pages).sqrt()
            }
            false => costs.random_page,
        };
        let a_row = costs.tuple + source.conditions.len() as f64 * costs.operator;
        Estimate {
            startup: path.cost,
            total: path.cost + touched * a_page + rows * a_row,
            rows: (source.rows * source.share).round().max(1.0),
            width: source.width,
        }
    }

    /// The operators of a bitmap scan; `cols`: the scan's columns; `needed`: those that more than the recheck asks for.
    pub fn bitmap_scan(
        &mut self,
        scan: Scan,
        path: BitmapPath,
        cols: &[Col],
        needed: &Cols,
    ) -> Result<Node> {
        let rechecked = (0..cols.len()).filter(|n| !needed.contains(cols[*n])).collect();
        let recheck = self.condition(path.recheck.clone(), cols)?;
        let rows = self.cx.catalog.stats(scan.table.oid).map_or(0.0, |s| s.rows);
        let input = Box::new(self.bitmap_tree(path, &scan, rows)?);
        Ok(Node::BitmapHeapScan { scan, recheck, rechecked, input })
    }

    fn bitmap_tree(&mut self, path: BitmapPath, scan: &Scan, all: f64) -> Result<Plan> {
        let rows = match &path.tree {
            Tree::Index { part, .. } => part.rows,
            _ => (all * path.share).round().max(1.0),
        };
        let total = match &path.tree {
            Tree::Index { part, .. } => part.total,
            _ => path.cost,
        };
        let estimate = Estimate { startup: total.min(path.cost), total, rows, width: 0 };
        let node = match path.tree {
            Tree::Index { index, found, .. } => {
                let bounds = self.resolve_bounds(found.bounds)?;
                let estimate = Estimate { startup: 0.0, ..estimate };
                let node = Node::BitmapIndexScan { table: scan.table.clone(), index, bounds };
                return Ok(Plan { node, estimate });
            }
            Tree::And(parts) => Node::BitmapAnd(self.bitmap_trees(parts, scan, all)?),
            Tree::Or(parts) => Node::BitmapOr(self.bitmap_trees(parts, scan, all)?),
        };
        Ok(Plan { node, estimate })
    }

    fn bitmap_trees(&mut self, parts: Vec<BitmapPath>, scan: &Scan, all: f64) -> Result<Vec<Plan>> {
        parts.into_iter().map(|part| self.bitmap_tree(part, scan, all)).collect()
    }
}

/// The set that one index makes.
fn single(
    index: Arc<Index>,
    found: Match,
    part: IndexCost,
    conditions: &[Expr],
    costs: &Costs,
) -> BitmapPath {
    BitmapPath {
        // What a partial index says already need not be asked of another one.
        used: [&found.used[..], &found.implied[..]].concat(),
        proved: found.proved.clone(),
        recheck: found.used.iter().map(|i| conditions[*i].clone()).collect(),
        cost: part.total + 0.1 * costs.operator * part.rows,
        share: part.share,
        tree: Tree::Index { index, found, part },
    }
}

/// What is in both sets.
fn meet(one: BitmapPath, other: BitmapPath, costs: &Costs) -> BitmapPath {
    let join = |a: &[usize], b: &[usize]| a.iter().chain(b).copied().collect::<Vec<usize>>();
    let mut recheck = one.recheck.clone();
    recheck.extend(other.recheck.iter().cloned());
    BitmapPath {
        used: join(&one.used, &other.used),
        proved: join(&one.proved, &other.proved),
        recheck,
        cost: one.cost + other.cost + 100.0 * costs.operator,
        share: one.share * other.share,
        tree: Tree::And(match one.tree {
            Tree::And(mut parts) => {
                parts.push(other);
                parts
            }
            _ => vec![one, other],
        }),
    }
}

pub(crate) fn all_of(mut list: Vec<Expr>) -> Expr {
    match list.len() {
        1 => list.remove(0),
        _ => Expr::And(list),
    }
}

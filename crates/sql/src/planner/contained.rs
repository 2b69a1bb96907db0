//! Shares of rows by conditions on what values hold: elements of arrays, lexemes of documents, members of
//! ranges and JSON.
//!
//! Where ANALYZE counted elements, their shares are put together as if they were independent, with the defaults of
//! PostgreSQL's estimators `arraycontsel` and `tsmatchsel`. Other conditions are tried on the common values and the
//! histogram's bounds, as patterns are (`matchingsel` there). Only built-in functions run while planning.

use base::Oid;
use catalog::object::{ColumnStats, Elements};
use types::Datum;
use types::func::{Body, CallTypes, FunctionRow};

use crate::expr::Expr;
use crate::logical::TableRel;
use crate::walk;

use super::Planner;
use super::unknown_share::{DEFAULT_CONTAINS, DEFAULT_LEXEME};

/// Values below which nothing is tried on them.
const SAMPLE_MIN: usize = 20;

impl Planner<'_> {
    /// Share of rows whose arrays or documents have what a condition asks for, by the elements that ANALYZE counted.
    pub(super) fn elements_share(&self, table: Option<&TableRel>, e: &Expr) -> Option<f64> {
        match e {
            Expr::Call { function, args, .. } => {
                let [a, b] = &**args else { return None };
                match function.name {
                    "ts_match_vq" => self.document_share(table, a, b),
                    "ts_match_qv" => self.document_share(table, b, a),
                    "arraycontains" => self.array_elements_share(table, a, b, true),
                    "arraycontained" => self.array_elements_share(table, b, a, true),
                    "arrayoverlap" => self
                        .array_elements_share(table, a, b, false)
                        .or_else(|| self.array_elements_share(table, b, a, false)),
                    _ => None,
                }
            }
            Expr::ArrayOp { function, left, array, all: false } if walk::is_equality(function) => {
                let known = self.elements_of(table, array)?;
                let share = match self.estimated(left)? {
                    Datum::Null => 0.0,
                    value => known.share(&self.element_text(left.ty(), &value)?, DEFAULT_CONTAINS),
                };
                Some(share * (1.0 - self.column_stats(table, array)?.null_fraction))
            }
            _ => None,
        }
    }

    fn elements_of(&self, table: Option<&TableRel>, column: &Expr) -> Option<&Elements> {
        let stats = self.column_stats(table, column)?;
        (!stats.elements.common.is_empty()).then_some(&stats.elements)
    }

    fn element_text(&self, ty: Oid, value: &Datum) -> Option<String> {
        let mut text = Vec::new();
        types::io::output(ty, value, self.cx.format, &mut text).ok()?;
        String::from_utf8(text).ok()
    }

    fn document_share(&self, table: Option<&TableRel>, column: &Expr, query: &Expr) -> Option<f64> {
        let Datum::Open(query) = self.estimated(query)? else { return None };
        let known = self.elements_of(table, column);
        let of = |word: &str, prefix: bool| match known {
            Some(known) if prefix => known.share_of_prefix(word, DEFAULT_LEXEME),
            Some(known) => known.share(word, DEFAULT_LEXEME),
            None if prefix => DEFAULT_LEXEME * Elements::PREFIX,
            None => DEFAULT_LEXEME,
        };
        let share = query.0.share(&of)?;
        let null = self.column_stats(table, column).map_or(0.0, |s| s.null_fraction);
        Some((share * (1.0 - null)).clamp(0.0, 1.0))
    }

    /// Of the rows whose array has all (or one) of the items of another.
    fn array_elements_share(
        &self,
        table: Option<&TableRel>,
        column: &Expr,
        items: &Expr,
        all: bool,
    ) -> Option<f64> {
        let known = self.elements_of(table, column)?;
        let Datum::Array(array) = self.estimated(items)? else { return None };
        let mut texts = Vec::new();
        for item in &array.items {
            match (item, all) {
                // NULL is no array's element for these operators.
                (Datum::Null, true) => return Some(0.0),
                (Datum::Null, false) => {}
                (item, _) => texts.push(self.element_text(array.element, item)?),
            }
        }
        texts.sort_unstable();
        texts.dedup();
        let shares = texts.iter().map(|text| known.share(text, DEFAULT_CONTAINS));
        let share = match all {
            true => shares.product::<f64>(),
            false => 1.0 - shares.map(|share| 1.0 - share).product::<f64>(),
        };
        let null = self.column_stats(table, column)?.null_fraction;
        Some((share * (1.0 - null)).clamp(0.0, 1.0))
    }

    /// Share of rows that satisfy a condition on one column, by trying it on the values that ANALYZE kept: those that
    /// are common count by their shares, those of the histogram's bounds for the rest.
    pub(super) fn tried_share(&self, table: Option<&TableRel>, e: &Expr) -> Option<f64> {
        let Expr::Call { function, args, ty, .. } = e else { return None };
        let [a, b] = &**args else { return None };
        if !is_worth_trying(function) {
            return None;
        }
        if let Err(error) = sched::check_interrupts() {
            crate::prepare::keep_interrupt(&error);
            return None;
        }
        // The one that is not known is the column.
        let (column, other, at) = match (self.estimated(a), self.estimated(b)) {
            (None, Some(value)) => (a, value, 0),
            (Some(value), None) => (b, value, 1),
            _ => return None,
        };
        if other.is_null() {
            return Some(0.0);
        }
        let stats = self.column_stats(table, column)?;
        // Without bounds all values are among the common ones.
        let is_whole = stats.histogram.is_empty() && !stats.common.is_empty();
        if stats.histogram.len() + stats.common.len() < SAMPLE_MIN && !is_whole {
            return None;
        }
        let own = types::user::base_type(column.ty(), -1).0;
        let read = self.read_stats(table, column, stats, own)?;
        let types = [a.ty(), b.ty()];
        let holds = |value: &Datum| {
            let values = match at {
                0 => [value.clone(), other.clone()],
                _ => [other.clone(), value.clone()],
            };
            let types = CallTypes { args: &types, result: *ty };
            match function.body.run(&values, types, self.cx.format) {
                Some(Ok(holds)) => holds == Datum::Bool(true),
                Some(Err(error)) => {
                    crate::prepare::keep_interrupt(&error);
                    false
                }
                None => false,
            }
        };
        let of_common = read.common.iter().zip(&stats.common).filter(|(value, _)| holds(value));
        let common: f64 = of_common.map(|(_, (_, share))| share).sum();
        let found = read.histogram.iter().filter(|value| holds(value)).count();
        // None of a hundred may still be one of two hundred; what indexes are asked for is rarer.
        let least = if function.name.contains("like") { 0.5 } else { 0.1 };
        Some(of_sample(stats, common, (found as f64).max(least)))
    }
}

/// The share of all rows, of which those with common values are known, and so many of the histogram's bounds hold.
fn of_sample(stats: &ColumnStats, common: f64, found: f64) -> f64 {
    let all: f64 = stats.common.iter().map(|(_, share)| share).sum();
    let rest = (1.0 - all - stats.null_fraction).max(0.0);
    let bounds = stats.histogram.len().max(1) as f64;
    (common + rest * found / bounds).clamp(0.0001, 1.0)
}

/// Conditions that are tried on a hundred values for a plan: built-in ones of types with an order. Users' functions
/// can't be called here, whatever their names are.
fn is_worth_trying(function: &FunctionRow) -> bool {
    let name = function.name;
    let is_built_in = matches!(function.body, Body::Scalar(_) | Body::Typed(_));
    let begins = ["jsonb_", "range_", "multirange_", "network_", "elem_contained_by"];
    let ends = ["like", "regexeq", "regexne"];
    is_built_in
        && function.strict
        && function.result == types::oids::BOOL
        && (begins.iter().any(|b| name.starts_with(b)) || ends.iter().any(|b| name.ends_with(b)))
}

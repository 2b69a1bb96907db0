//! Selectivity of conditions: from what ANALYZE found, else by PostgreSQL's defaults.

use std::rc::Rc;

use catalog::object::{ColumnStats, TableStats};
use types::Datum;
use types::cross::{self, Place};
use types::func::{Body, CallTypes, CastMethod, Volatility};
use types::oids::*;

use crate::expr::Expr;
use crate::logical::TableRel;
use crate::plan::ScanColumn;
use crate::walk;

use super::Planner;
use super::cols::Cols;

const DEFAULT_EQUAL: f64 = 0.005;
const DEFAULT_RANGE: f64 = 0.333_333_333_333_333_3;
const DEFAULT_BOTH: f64 = 0.005;
pub(crate) const DEFAULT_DISTINCT: f64 = 200.0;

/// A column's statistics, read from their texts.
pub(crate) struct ReadStats {
    pub histogram: Vec<Datum>,
    pub common: Vec<Datum>,
}

/// A comparison of a column with something else.
pub(crate) struct Comparison<'e> {
    pub op: &'static str,
    pub column: &'e Expr,
    pub value: &'e Expr,
}

/// The comparison operators of B-trees.
pub(crate) const COMPARISONS: [&str; 5] = ["=", "<", "<=", ">", ">="];

/// Which comparison operator a function is behind.
pub(crate) fn comparison_name(function: &types::func::FunctionRow) -> Option<&'static str> {
    if function.operator != base::Oid::INVALID {
        return types::opclass::comparison(function.operator);
    }
    COMPARISONS.iter().find(|name| walk::is_operator(function, name)).copied()
}

/// The same comparison with its sides exchanged.
pub(crate) fn flipped(op: &'static str) -> &'static str {
    match op {
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        other => other,
    }
}

/// The column under relabels that change nothing of the order.
pub(crate) fn plain_column(e: &Expr) -> Option<u16> {
    match e {
        Expr::Column(col, _) => Some(*col),
        Expr::Relabel(inner, _) => plain_column(inner),
        _ => None,
    }
}

/// Reads a condition as a comparison of a column of `table`; rows by their first fields.
pub(crate) fn as_comparison<'e>(e: &'e Expr, table: &TableRel) -> Option<Comparison<'e>> {
    let (op, left, right) = match e {
        Expr::Call { function, args, .. } => {
            let [left, right] = &**args else { return None };
            (comparison_name(function)?, left, right)
        }
        Expr::RowCompare { op, fields } => {
            let (left, right, ..) = fields.first()?;
            (super::index::row_operator(*op)?, left, right)
        }
        _ => return None,
    };
    let own = |e: &Expr| plain_column(e).is_some_and(|c| table.column(c).is_some());
    if own(left) {
        return Some(Comparison { op, column: left, value: right });
    }
    own(right).then(|| Comparison { op: flipped(op), column: right, value: left })
}

/// The bounds on one column.
struct Range {
    column: u16,
    /// Share of NULLs.
    null: f64,
    /// Share of the rows above the lower bound, and below the upper one.
    above: Option<f64>,
    below: Option<f64>,
    /// Nothing is known of one of them.
    guessed: bool,
}

impl Range {
    fn add(&mut self, is_lower: bool, share: Option<f64>) {
        self.guessed |= share.is_none();
        let share = share.unwrap_or(DEFAULT_RANGE);
        let bound = if is_lower { &mut self.above } else { &mut self.below };
        *bound = Some(bound.map_or(share, |known| known.min(share)));
    }

    fn share(&self) -> f64 {
        match (self.above, self.below) {
            (Some(_), Some(_)) if self.guessed => DEFAULT_BOTH,
            (Some(above), Some(below)) => (above + below - 1.0 + self.null).max(0.0001),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => 1.0,
        }
    }
}

/// Whether equal values of a type are equal as texts.
fn has_one_text(ty: base::Oid) -> bool {
    let others = [BPCHAR, NUMERIC, FLOAT4, FLOAT8, INTERVAL, JSONB];
    ty.0 < base::Oid::FIRST_USER.0 && !others.contains(&ty)
}

impl Planner<'_> {
    /// Share of a table's rows that a list of conditions keeps. Two bounds on one column are one range.
    pub fn selectivity(&self, table: Option<&TableRel>, conditions: &[Expr]) -> f64 {
        let extended = table.and_then(|t| self.extended_share(t, conditions, false));
        let Some((share, used)) = extended else { return self.share(table, conditions) };
        let rest = conditions.iter().enumerate().filter(|(at, _)| !used.contains(at));
        let rest: Vec<Expr> = rest.map(|(_, e)| e.clone()).collect();
        (share * self.share(table, &rest)).clamp(0.0, 1.0)
    }

    /// The same by statistics of single columns alone.
    pub fn by_columns(&self, table: &TableRel, conditions: &[Expr]) -> f64 {
        self.alone.set(self.alone.get() + 1);
        let share = self.share(Some(table), conditions);
        self.alone.set(self.alone.get() - 1);
        share
    }

    fn share(&self, table: Option<&TableRel>, conditions: &[Expr]) -> f64 {
        let mut share = 1.0;
        let mut ranges: Vec<Range> = Vec::new();
        for condition in conditions {
            let comparison = table.and_then(|t| self.comparison(condition, t));
            let of_table = |col| table.is_some_and(|t| t.column(col).is_some());
            let bound =
                comparison.filter(|c| c.op != "=" && !Cols::of(c.value).iter().any(of_table));
            let (Some(c), Some(col)) =
                (&bound, bound.as_ref().and_then(|c| plain_column(c.column)))
            else {
                share *= self.one(table, condition);
                continue;
            };
            let at = ranges.iter().position(|r| r.column == col).unwrap_or_else(|| {
                let null = self.column_stats(table, c.column).map_or(0.0, |s| s.null_fraction);
                ranges.push(Range { column: col, null, above: None, below: None, guessed: false });
                ranges.len() - 1
            });
            ranges[at].add(c.op.starts_with('>'), self.histogram_share(table, c));
        }
        share *= ranges.iter().map(Range::share).product::<f64>();
        share.clamp(0.0, 1.0)
    }

    fn one(&self, table: Option<&TableRel>, e: &Expr) -> f64 {
        match e {
            Expr::Const(Datum::Bool(true), _) => 1.0,
            Expr::Const(..) => 0.0,
            Expr::And(items) if self.alone.get() > 0 => self.share(table, items),
            Expr::And(items) => self.selectivity(table, items),
            Expr::Or(items) => {
                let extended = match table.filter(|_| self.alone.get() == 0) {
                    Some(table) => self.extended_share(table, items, true),
                    None => None,
                };
                let (share, used) = extended.unwrap_or_default();
                let rest = items.iter().enumerate().filter(|(at, _)| !used.contains(at));
                let none: f64 = rest.map(|(_, i)| 1.0 - self.one(table, i)).product();
                1.0 - none * (1.0 - share)
            }
            Expr::Not(inner) => {
                (1.0 - self.one(table, inner) - self.null_share(table, inner)).max(0.0)
            }
            Expr::IsNull { arg, negated } => {
                let null = self.column_stats(table, arg).map_or(DEFAULT_EQUAL, |s| s.null_fraction);
                if *negated { 1.0 - null } else { null }
            }
            Expr::Column(_, BOOL) => match self.column_stats(table, e) {
                Some(stats) if !stats.common.is_empty() => {
                    self.equal_share(table, e, Some(&Expr::Const(Datum::Bool(true), BOOL)))
                }
                _ => 0.5,
            },
            Expr::ArrayOp { function, left, array, all } => {
                if let Some(share) = self.elements_share(table, e) {
                    return share;
                }
                let of_one = |item: Option<&Expr>| self.equal_share(table, left, item);
                let any = match self.array_items(array) {
                    Some(items) if items.len() <= 100 => {
                        let ty = types::TypeIo::get(array.ty()).map_or(left.ty(), |t| t.element);
                        let one = |d: &Datum| match d.is_null() {
                            true => 0.0,
                            false => of_one(Some(&Expr::Const(d.clone(), ty))),
                        };
                        items.iter().map(one).sum()
                    }
                    Some(items) => of_one(None) * items.len() as f64,
                    None => match &**array {
                        Expr::Array { items, .. } if items.len() <= 100 => {
                            items.iter().map(|i| of_one(Some(i))).sum()
                        }
                        array => of_one(None) * array_length(array),
                    },
                }
                .min(1.0);
                match (all, walk::is_equality(function), walk::is_operator(function, "<>")) {
                    (false, true, _) => any,
                    (true, _, true) => 1.0 - any,
                    _ => self.array_share(table, function, (left, array), *all).unwrap_or(0.5),
                }
            }
            Expr::Call { .. } | Expr::RowCompare { .. } => {
                match table.and_then(|t| self.comparison(e, t)) {
                    Some(c) if c.op == "=" => self.equal_share(table, c.column, Some(c.value)),
                    Some(c) => self.histogram_share(table, &c).unwrap_or(DEFAULT_RANGE),
                    None => self
                        .unequal_share(table, e)
                        .or_else(|| self.elements_share(table, e))
                        .or_else(|| self.tried_share(table, e))
                        .or_else(|| self.computed_share(table, e))
                        .unwrap_or_else(|| self.other_call(e)),
                }
            }
            Expr::Subquery(_) => 0.5,
            _ => 0.5,
        }
    }

    /// A condition as a comparison of a column, or of an expression that statistics are about.
    fn comparison<'e>(&self, e: &'e Expr, table: &TableRel) -> Option<Comparison<'e>> {
        if let Some(found) = as_comparison(e, table) {
            return Some(found);
        }
        let Expr::Call { function, args, .. } = e else { return None };
        let [left, right] = &**args else { return None };
        let op = comparison_name(function)?;
        let known = |e: &Expr| {
            !matches!(e, Expr::Column(..) | Expr::Const(..) | Expr::Param(..))
                && self.expression_stats(table, e).is_some()
        };
        if known(left) {
            return Some(Comparison { op, column: left, value: right });
        }
        known(right).then(|| Comparison { op: flipped(op), column: right, value: left })
    }

    /// Share of rows for which a comparison holds with one item (or all) of an array, as if the items' rows had
    /// nothing to do with each other.
    fn array_share(
        &self,
        table: Option<&TableRel>,
        function: &types::func::FunctionRow,
        (left, array): (&Expr, &Expr),
        all: bool,
    ) -> Option<f64> {
        let op = comparison_name(function)?;
        let element = types::TypeIo::get(array.ty())?.element;
        let mut share = if all { 1.0 } else { 0.0 };
        for item in self.array_items(array)? {
            let null = item.is_null();
            let value = Expr::Const(item, element);
            let one = match op {
                _ if null => 0.0,
                "=" => self.equal_share(table, left, Some(&value)),
                _ => {
                    let c = Comparison { op, column: left, value: &value };
                    self.histogram_share(table, &c).unwrap_or(DEFAULT_RANGE)
                }
            };
            share = if all { share * one } else { share + one - share * one };
        }
        Some(share.clamp(0.0, 1.0))
    }

    /// Share of rows where a column that has statistics differs from a value.
    fn unequal_share(&self, table: Option<&TableRel>, e: &Expr) -> Option<f64> {
        let Expr::Call { function, args, .. } = e else { return None };
        let [a, b] = &**args else { return None };
        if !walk::is_operator(function, "<>") {
            return None;
        }
        let known = |column| self.column_stats(table, column).filter(|s| s.distinct != 0.0);
        let (stats, column, value) = match (known(a), known(b)) {
            (Some(stats), None) => (stats, a, b),
            (None, Some(stats)) => (stats, b, a),
            _ => return None,
        };
        let equal = self.equal_share(table, column, Some(value));
        Some((1.0 - equal - stats.null_fraction).clamp(0.0, 1.0))
    }

    /// Share of rows where a condition on one column is neither true nor false, as its column is NULL.
    fn null_share(&self, table: Option<&TableRel>, e: &Expr) -> f64 {
        let column = match e {
            Expr::Column(..) => Some(e),
            _ => table.and_then(|t| self.comparison(e, t)).map(|c| c.column),
        };
        column.and_then(|column| self.column_stats(table, column)).map_or(0.0, |s| s.null_fraction)
    }

    /// Share of rows where what is computed of a column, with as many different values, equals something.
    fn computed_share(&self, table: Option<&TableRel>, e: &Expr) -> Option<f64> {
        let Expr::Call { function, args, .. } = e else { return None };
        let [a, b] = &**args else { return None };
        let inner = same_distinct(a).or_else(|| same_distinct(b))?;
        let own = plain_column(inner).is_some_and(|c| table.is_some_and(|t| t.column(c).is_some()));
        (own && walk::is_equality(function)).then(|| self.equal_share(table, inner, None))
    }

    fn other_call(&self, e: &Expr) -> f64 {
        let Expr::Call { function, .. } = e else { return 0.5 };
        if walk::is_operator(function, "=") {
            return DEFAULT_EQUAL;
        }
        if walk::is_operator(function, "<>") {
            return 1.0 - DEFAULT_EQUAL;
        }
        if comparison_name(function).is_some() {
            return DEFAULT_RANGE;
        }
        match function.name {
            "textlike" | "texticlike" | "namelike" | "bpcharlike" => DEFAULT_EQUAL,
            _ => super::unknown_share::default_share(function).unwrap_or(1.0 / 3.0),
        }
    }

    fn stats_of(&self, table: &TableRel) -> Option<&TableStats> {
        self.cx.catalog.stats(table.table.oid).map(|s| &**s)
    }

    pub(super) fn column_stats(&self, table: Option<&TableRel>, e: &Expr) -> Option<&ColumnStats> {
        let table = table?;
        let Some(column) = plain_column(e) else { return self.expression_stats(table, e) };
        match table.column(column)? {
            ScanColumn::Attr(n) => self.stats_of(table)?.columns.get(usize::from(n) - 1),
            _ => None,
        }
    }

    /// Share of rows where a column equals a value.
    pub fn equal_share(
        &self,
        table: Option<&TableRel>,
        column: &Expr,
        value: Option<&Expr>,
    ) -> f64 {
        let Some(table) = table else { return DEFAULT_EQUAL };
        if let Some(inner) = same_distinct(column)
            && self.expression_stats(table, column).is_none()
        {
            return self.equal_share(Some(table), inner, None);
        }
        let rows = (self.cx.table_size)(&table.table).1.max(1.0);
        if let Some(col) = plain_column(column)
            && let Some(ScanColumn::Attr(n)) = table.column(col)
            && self.is_unique(table, n)
        {
            return 1.0 / rows;
        }
        let Some(stats) = self.column_stats(Some(table), column) else {
            return (1.0 / DEFAULT_DISTINCT).max(1.0 / rows);
        };
        let known = value.and_then(|v| self.estimated(v));
        if let Some(value) = &known {
            let ty = types::user::base_type(column.ty(), -1).0;
            let related = cross::relation(ty, value_type(value, ty)).is_some();
            let own = match cross::place(ty, value.clone(), self.cx.format) {
                Ok(Place::At(own)) if related => own,
                Ok(Place::Below | Place::Above | Place::Behind(_)) if related => return 0.0,
                _ => value.clone(),
            };
            let mut text = Vec::new();
            if types::io::output(ty, &own, self.cx.format, &mut text).is_ok()
                && let Some((_, share)) =
                    stats.common.iter().find(|(v, _)| v.as_bytes() == text.as_slice())
            {
                return *share;
            }
            if !has_one_text(ty)
                && !stats.common.is_empty()
                && let Some(read) = self.read_stats(Some(table), column, stats, ty)
                && let Some(n) =
                    read.common.iter().position(|v| types::io::compare(v, &own).is_eq())
            {
                return stats.common[n].1;
            }
        }
        let common: f64 = stats.common.iter().map(|(_, s)| s).sum();
        let distinct = distinct_count(stats, rows) - stats.common.len() as f64;
        if known.is_none() {
            return ((1.0 - stats.null_fraction) / distinct_count(stats, rows).max(1.0)).min(1.0);
        }
        // No value that is not among the common ones is more common than the least of these.
        let least = stats.common.last().map_or(1.0, |(_, share)| *share);
        ((1.0 - common - stats.null_fraction) / distinct.max(1.0)).clamp(0.0, 1.0).min(least)
    }

    fn is_unique(&self, table: &TableRel, column: u16) -> bool {
        self.cx.catalog.indexes_of(&table.table).iter().any(|i| {
            i.unique && i.is_plain() && i.columns.len() == 1 && i.columns[0].column == column
        })
    }

    /// Share of a range, from the common values and the histogram of the others.
    fn histogram_share(&self, table: Option<&TableRel>, c: &Comparison<'_>) -> Option<f64> {
        let value = self.estimated(c.value)?;
        let stats = self.column_stats(table, c.column)?;
        if stats.histogram.len() < 2 && stats.common.is_empty() || value.is_null() {
            return None;
        }
        let ty = types::user::base_type(c.column.ty(), -1).0;
        if cross::relation(ty, value_type(&value, ty)).is_none() {
            return None;
        }
        let value = match cross::place(ty, value, self.cx.format).ok()? {
            Place::At(value) | Place::Behind(value) | Place::Near(value, _) => value,
            Place::Null | Place::Below if c.op.starts_with('<') => return Some(0.0001),
            Place::Above if c.op.starts_with('>') => return Some(0.0001),
            _ => return Some((1.0 - stats.null_fraction).max(0.0001)),
        };
        let read = self.read_stats(table, c.column, stats, ty)?;
        let mut common_below = 0.0;
        let mut common = 0.0;
        for (known, (_, share)) in read.common.iter().zip(&stats.common) {
            let order = types::io::compare(known, &value);
            common += share;
            // The bound itself belongs to the lower side of `<=` and `>`.
            if order.is_lt() || order.is_eq() && matches!(c.op, "<=" | ">") {
                common_below += share;
            }
        }
        let bounds = &read.histogram;
        let mut below = 0.0;
        for pair in bounds.windows(2) {
            if types::io::compare(&pair[1], &value).is_le() {
                below += 1.0;
            } else if types::io::compare(&pair[0], &value).is_lt() {
                below += fraction(&pair[0], &pair[1], &value);
            }
        }
        let buckets = bounds.len().saturating_sub(1).max(1) as f64;
        let rest = (1.0 - common - stats.null_fraction).max(0.0);
        let rest = if bounds.len() < 2 { 0.0 } else { rest };
        let share = common_below + rest * below / buckets;
        let all = common + rest;
        let share = if c.op.starts_with('<') { share } else { all - share };
        Some(share.clamp(0.0001, 1.0))
    }

    /// A column's statistics as values; read once for a statement.
    pub(super) fn read_stats(
        &self,
        table: Option<&TableRel>,
        column: &Expr,
        stats: &ColumnStats,
        ty: base::Oid,
    ) -> Option<Rc<ReadStats>> {
        let table = table?;
        let key = match plain_column(column) {
            Some(column) => match table.column(column)? {
                ScanColumn::Attr(number) => Some((table.table.oid, number)),
                _ => return None,
            },
            None => None,
        };
        if let Some(read) = key.and_then(|key| self.read_stats.borrow().get(&key).cloned()) {
            return read;
        }
        let value = |text: &String| types::io::input(ty, -1, text, self.cx.format).ok();
        let read = || {
            Some(Rc::new(ReadStats {
                histogram: stats.histogram.iter().map(value).collect::<Option<_>>()?,
                common: stats.common.iter().map(|(text, _)| value(text)).collect::<Option<_>>()?,
            }))
        };
        let read = read();
        if let Some(key) = key {
            self.read_stats.borrow_mut().insert(key, read.clone());
        }
        read
    }

    /// A value as far as it is known when planning: a constant, a literal that became a parameter, what
    /// functions that don't change within a statement make of such. Only estimates may rely on it.
    pub fn estimated(&self, e: &Expr) -> Option<Datum> {
        match e {
            Expr::Const(value, _) => Some(value.clone()),
            Expr::Param(n, _) => self.known.get(*n as usize)?.clone(),
            Expr::Relabel(inner, _) => self.estimated(inner),
            Expr::InOutCast { arg, ty, typmod } => {
                let value = self.estimated(arg)?;
                if value.is_null() {
                    return Some(Datum::Null);
                }
                let text = types::io::to_text(arg.ty(), &value, self.cx.format).ok()?;
                types::io::input(*ty, *typmod, &text, self.cx.format).ok()
            }
            Expr::SessionValue(name, DATE) if name.as_bytes() == b"current_date" => {
                let cast = types::func::cast(TIMESTAMPTZ, DATE)?;
                let CastMethod::Function(oid) = cast.method else { return None };
                let Body::Scalar(body) = types::func::function(oid)?.body else { return None };
                body(&[Datum::Timestamptz(self.cx.format.now)], self.cx.format).ok()
            }
            Expr::SessionValue(name, TIMESTAMPTZ) if name.as_bytes() == b"current_timestamp" => {
                Some(Datum::Timestamptz(self.cx.format.now))
            }
            Expr::Call { function, args, ty, .. } => {
                let plain = function.volatility != Volatility::Volatile && !function.returns_set;
                if !plain || !matches!(function.body, Body::Scalar(_) | Body::Typed(_)) {
                    return None;
                }
                let values: Vec<Datum> =
                    args.iter().map(|a| self.estimated(a)).collect::<Option<_>>()?;
                if function.strict && values.iter().any(Datum::is_null) {
                    return Some(Datum::Null);
                }
                let types: Vec<base::Oid> = args.iter().map(Expr::ty).collect();
                let types = CallTypes { args: &types, result: *ty };
                match function.body.run(&values, types, self.cx.format)? {
                    Ok(value) => Some(value),
                    Err(error) => {
                        crate::prepare::keep_interrupt(&error);
                        None
                    }
                }
            }
            _ => None,
        }
    }

    /// A LIKE pattern that is a literal of the statement is part of the plan: what it begins with decides
    /// how a table is read.
    pub fn with_pattern(&self, mut e: Expr) -> Expr {
        if let Expr::Call { function, args, .. } = &mut e
            && matches!(function.name, "textlike" | "bpcharlike")
            && let [_, pattern] = &mut **args
            && let Expr::Param(n, ty) = *pattern
            && let Some(Some(value)) = self.known.get(n as usize)
        {
            self.bound.borrow_mut().push(n);
            *pattern = Expr::Const(value.clone(), ty);
        }
        e
    }

    /// Number of different values of an expression over a rowset.
    pub fn distinct_values(&self, e: &Expr, rows: f64) -> f64 {
        match self.known_distinct(e) {
            Some(count) => (count * self.narrowed(e)).min(rows).max(1.0),
            None => DEFAULT_DISTINCT.min(rows).max(1.0),
        }
    }
}

impl Planner<'_> {
    /// Number of different values in the column's whole table, if ANALYZE has counted.
    pub fn known_distinct(&self, e: &Expr) -> Option<f64> {
        let (table, column) = self.vars[usize::from(plain_column(e)?)].origin?;
        let stats = self.cx.catalog.stats(table)?;
        let column = stats.columns.get(usize::from(column) - 1)?;
        Some(distinct_count(column, stats.rows))
    }

    /// Share of a column's values that conditions about it alone leave.
    pub fn narrowed(&self, e: &Expr) -> f64 {
        let share = |col| self.narrowed.borrow().get(&col).copied();
        plain_column(e).and_then(share).unwrap_or(1.0)
    }

    /// Share of the pairs that have equal keys, of sides with so many rows.
    pub fn key_share(&self, keys: &[(Expr, Expr)], left: f64, right: f64) -> f64 {
        let one = 1.0 / left.max(right).max(1.0);
        if let [(l, r)] = keys
            && let Some(share) = self.common_pairs(l, r)
        {
            return share.max(one);
        }
        let counted = |e: &Expr| self.known_distinct(e).map(|n| n * self.narrowed(e));
        let of_key = |(l, r): &(Expr, Expr)| match (counted(l), counted(r)) {
            (None, None) => one,
            (l, r) => {
                let count = |side: Option<f64>, rows: f64| side.map_or(1.0, |n| n.min(rows));
                1.0 / count(l, left).max(count(r, right)).max(1.0)
            }
        };
        match keys {
            [] => one,
            keys => keys.iter().map(of_key).product::<f64>().max(one),
        }
    }

    /// Share of the pairs of rows of two tables whose columns are equal, by their most common values: those that both
    /// sides have among them meet as often as they say, the others as if all their values were equally common. None
    /// where one side knows of no common values, or conditions leave only some.
    pub fn common_pairs(&self, left: &Expr, right: &Expr) -> Option<f64> {
        if left.ty() != right.ty() || self.narrowed(left) < 1.0 || self.narrowed(right) < 1.0 {
            return None;
        }
        let stats = |e: &Expr| {
            let (table, column) = self.vars[usize::from(plain_column(e)?)].origin?;
            let stats = self.cx.catalog.stats(table)?;
            Some((stats.columns.get(usize::from(column) - 1)?, stats.rows))
        };
        let ((l, left_rows), (r, right_rows)) = (stats(left)?, stats(right)?);
        if l.common.is_empty() || r.common.is_empty() {
            return None;
        }
        let of_right: std::collections::HashMap<&str, f64> =
            r.common.iter().map(|(value, share)| (value.as_str(), *share)).collect();
        let (mut both, mut met_left, mut met_right, mut met) = (0.0, 0.0, 0.0, 0);
        for (value, share) in &l.common {
            if let Some(other) = of_right.get(value.as_str()) {
                both += share * other;
                met_left += share;
                met_right += other;
                met += 1;
            }
        }
        let one_side = |a: &ColumnStats, met_a: f64, b: &ColumnStats, met_b: f64, rows_b: f64| {
            let all = |s: &ColumnStats| s.common.iter().map(|(_, share)| share).sum::<f64>();
            let (alone_a, alone_b) = (all(a) - met_a, all(b) - met_b);
            let rest = |s: &ColumnStats| (1.0 - s.null_fraction - all(s)).max(0.0);
            let others = distinct_count(b, rows_b);
            let unknown = others - b.common.len() as f64;
            let unmet = others - f64::from(met);
            let mut share = both;
            if unknown > 0.0 {
                share += alone_a * rest(b) / unknown;
            }
            if unmet > 0.0 {
                share += rest(a) * (rest(b) + alone_b) / unmet;
            }
            share
        };
        let by_left = one_side(l, met_left, r, met_right, right_rows);
        let by_right = one_side(r, met_right, l, met_left, left_rows);
        Some(by_left.min(by_right).clamp(0.0, 1.0))
    }

    /// Share of the left rows that find a partner among `rows` right ones, as PostgreSQL has it: of the
    /// values of the left key, no more are found than the right one has. A half where nothing is known.
    pub fn partner_share(&self, keys: &[(Expr, Expr)], rest: &[Expr], rows: f64) -> f64 {
        const UNKNOWN: f64 = 0.5;
        let found = |(left, right): &(Expr, Expr)| match (
            self.known_distinct(left),
            self.known_distinct(right),
        ) {
            (Some(of_left), Some(of_right)) => {
                let of_left = (of_left * self.narrowed(left)).max(1.0);
                ((of_right * self.narrowed(right)).min(rows) / of_left).min(1.0)
            }
            _ => UNKNOWN,
        };
        let Some(by_keys) = keys.iter().map(found).reduce(f64::min) else { return UNKNOWN };
        let is_rare = |e: &&Expr| match e {
            Expr::Call { function, .. } => !walk::is_operator(function, "<>"),
            _ => true,
        };
        by_keys * UNKNOWN.powi(rest.iter().filter(is_rare).count() as i32)
    }
}

/// What has about as many different values as this expression of it.
fn same_distinct(e: &Expr) -> Option<&Expr> {
    let Expr::Call { function, args, .. } = e else { return None };
    let keeps = ["lower", "upper", "btrim", "md5", "reverse", "text", "int8", "float8", "numeric"];
    match &**args {
        [inner] if keeps.contains(&function.name) && walk::has_columns(inner) => Some(inner),
        _ => None,
    }
}

/// The type of a value that is compared with one of type `ty`.
fn value_type(value: &Datum, ty: base::Oid) -> base::Oid {
    match value {
        Datum::Int2(_) => INT2,
        Datum::Int4(_) => INT4,
        Datum::Int8(_) if matches!(ty, INT2 | INT4 | INT8) => INT8,
        Datum::Float4(_) => FLOAT4,
        Datum::Float8(_) => FLOAT8,
        Datum::Date(_) => DATE,
        Datum::Timestamp(_) => TIMESTAMP,
        Datum::Timestamptz(_) => TIMESTAMPTZ,
        _ => ty,
    }
}

/// How many values an array has; ten when it isn't known, as in PostgreSQL.
pub(crate) fn array_length(array: &Expr) -> f64 {
    match array {
        Expr::Const(Datum::Array(a), _) => a.items.len() as f64,
        Expr::Array { items, .. } => items.len() as f64,
        _ => 10.0,
    }
}

pub(crate) fn distinct_count(stats: &ColumnStats, rows: f64) -> f64 {
    let count = if stats.distinct < 0.0 { -stats.distinct * rows } else { stats.distinct };
    if count > 0.0 { count } else { DEFAULT_DISTINCT }
}

/// Where a value lies between two bounds, 0 to 1.
fn fraction(low: &Datum, high: &Datum, value: &Datum) -> f64 {
    match (number(low), number(high), number(value)) {
        (Some(l), Some(h), Some(v)) if h > l => ((v - l) / (h - l)).clamp(0.0, 1.0),
        _ => 0.5,
    }
}

fn number(value: &Datum) -> Option<f64> {
    Some(match value {
        Datum::Int2(v) => f64::from(*v),
        Datum::Int4(v) | Datum::Date(v) => f64::from(*v),
        Datum::Int8(v) | Datum::Timestamp(v) | Datum::Timestamptz(v) | Datum::Time(v) => *v as f64,
        Datum::Float4(v) => f64::from(*v),
        Datum::Float8(v) => *v,
        Datum::Oid(v) => f64::from(*v),
        _ => return None,
    })
}

//! How many groups rows make: the number of different combinations of columns and expressions.
//!
//! Of each table, numbers of different values are multiplied, but the product is no more than a tenth of the
//! table's rows (or the largest factor): columns are seldom independent. Extended statistics know better. Of a part of
//! the table's rows, drawn at random, so many combinations are met: `d · (1 − (1 − p)^(n / d))`.

use crate::expr::Expr;
use crate::walk;

use super::Planner;
use super::selectivity::plain_column;

/// Columns or expressions of one use of a table.
struct OfTable {
    table: u32,
    /// The number of the use's first column.
    base: u16,
    of: Vec<Expr>,
}

impl Planner<'_> {
    /// How many different rows of these values there are among so many.
    pub fn distinct_rows(&self, exprs: &[Expr], rows: f64) -> f64 {
        self.distinct_rows_within(exprs, rows, 0.1)
    }

    /// How many there would be if the columns without extended statistics were independent: never fewer than
    /// `distinct_rows`.
    pub fn most_distinct_rows(&self, exprs: &[Expr], rows: f64) -> f64 {
        self.distinct_rows_within(exprs, rows, 1.0)
    }

    /// The same, where the product for a table is no more than this share of its rows.
    fn distinct_rows_within(&self, exprs: &[Expr], rows: f64, share: f64) -> f64 {
        let mut tables: Vec<OfTable> = Vec::new();
        let mut others = 1.0;
        let mut add = |table: u32, base: u16, e: &Expr| {
            let at = tables.iter().position(|t| (t.table, t.base) == (table, base));
            let at = at.unwrap_or_else(|| {
                tables.push(OfTable { table, base, of: Vec::new() });
                tables.len() - 1
            });
            if !tables[at].of.iter().any(|known| walk::same(known, e)) {
                tables[at].of.push(e.clone());
            }
        };
        for e in exprs {
            if matches!(e, Expr::Const(..)) {
                continue;
            }
            match self.use_of(e) {
                Some((table, base)) if plain_column(e).is_some() => add(table, base, e),
                Some((table, base)) if self.has_stats_of(table, e, &numbers(base)).is_some() => {
                    add(table, base, e);
                }
                // Whatever is computed of columns has no more values than they have together.
                _ => {
                    let mut columns = Vec::new();
                    walk::columns_of(e, &mut columns);
                    let mut unknown = columns.is_empty();
                    for col in columns {
                        let column = self.column(col);
                        match self.use_of(&column) {
                            Some((table, base)) => add(table, base, &column),
                            None => unknown = true,
                        }
                    }
                    if unknown {
                        others *= self.distinct_values(e, rows);
                    }
                }
            }
        }
        let product: f64 =
            tables.into_iter().map(|t| self.distinct_of_table(t, rows, share)).product();
        (product * others).ceil().clamp(1.0, rows.max(1.0))
    }

    /// The table, and the number of its first column, that all columns of an expression belong to.
    fn use_of(&self, e: &Expr) -> Option<(u32, u16)> {
        let mut columns = Vec::new();
        walk::columns_of(e, &mut columns);
        let of = |col: &u16| {
            let (table, number) = self.vars[usize::from(*col)].origin?;
            Some((table, col.checked_sub(number.checked_sub(1)?)?))
        };
        let first = of(columns.first()?)?;
        columns.iter().all(|col| of(col) == Some(first)).then_some(first)
    }

    fn distinct_of_table(&self, mut t: OfTable, rows: f64, share: f64) -> f64 {
        let numbers = numbers(t.base);
        let all = match self.cx.catalog.table(t.table) {
            Some(table) => (self.cx.table_size)(table).1.max(1.0),
            None => rows.max(1.0),
        };
        let (mut product, mut largest, mut factors) = (1.0, 1.0_f64, 0);
        let mut multiply = |count: f64| {
            product *= count;
            largest = largest.max(count);
            factors += 1;
        };
        while t.of.len() >= 2 {
            let Some((count, counted)) = self.extended_distinct(t.table, &t.of, &numbers) else {
                break;
            };
            multiply(count);
            let mut at = 0;
            t.of.retain(|_| {
                at += 1;
                !counted.contains(&(at - 1))
            });
        }
        for e in &t.of {
            let known = match plain_column(e) {
                Some(_) => self.known_distinct(e).map(|count| count * self.narrowed(e)),
                None => self
                    .has_stats_of(t.table, e, &numbers)
                    .map(|stats| super::selectivity::distinct_count(stats, all)),
            };
            multiply(known.unwrap_or_else(|| super::selectivity::DEFAULT_DISTINCT.min(all)));
        }
        let most = if factors > 1 { (all * share).max(largest).min(all) } else { all };
        let count = product.min(most).max(1.0);
        if rows >= all {
            return count;
        }
        (count * (1.0 - ((all - rows.max(0.0)) / all).powf(all / count))).round().max(1.0)
    }
}

/// The number of a column of a table whose first one has the number `base`.
fn numbers(base: u16) -> impl Fn(u16) -> Option<u16> {
    move |col| col.checked_sub(base).map(|n| n + 1)
}

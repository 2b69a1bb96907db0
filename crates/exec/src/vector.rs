//! Expressions over a batch: kernels for the common shapes over typed columns, else row by row.

use base::Result;
use sql::Expr;
use types::batch::Vector;
use types::{Batch, Column, Datum};

use crate::eval;
use crate::rows::{self, Row};
use crate::run::Run;

/// An expression's values for all rows of a batch.
///
/// # Errors
/// As [`eval::eval`].
pub fn column(expr: &Expr, batch: &Batch, run: &mut Run<'_, '_>) -> Result<Column> {
    if let Expr::Column(n, _) = expr {
        return Ok(batch.columns[usize::from(*n)].clone());
    }
    let mut out = Column::new(expr.ty());
    for row in 0..batch.rows {
        out.push(eval::eval(expr, Row::Batch(batch, row), run)?);
    }
    Ok(out)
}

/// The rows for which a condition holds; None: all of them.
///
/// # Errors
/// As [`eval::eval`].
pub fn select(condition: &Expr, batch: &Batch, run: &mut Run<'_, '_>) -> Result<Option<Vec<u32>>> {
    let mut kept: Option<Vec<u32>> = None;
    narrow(condition, batch, &mut kept, run)?;
    Ok(kept.filter(|rows| rows.len() < batch.rows))
}

/// Keeps of `kept` (None: all rows) those for which the condition holds.
fn narrow(
    condition: &Expr,
    batch: &Batch,
    kept: &mut Option<Vec<u32>>,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    if let Expr::And(parts) = condition {
        return parts.iter().try_for_each(|part| narrow(part, batch, kept, run));
    }
    if let Some(test) = Comparison::of(condition, batch, run)? {
        let rows = match kept.take() {
            Some(rows) => rows.into_iter().filter(|r| test.row(*r as usize)).collect(),
            None => (0..batch.rows as u32).filter(|r| test.row(*r as usize)).collect(),
        };
        *kept = Some(rows);
        return Ok(());
    }
    let mut rows = Vec::new();
    let mut keep = |row: u32| -> Result<()> {
        if eval::holds(condition, Row::Batch(batch, row as usize), run)? {
            rows.push(row);
        }
        Ok(())
    };
    match kept.take() {
        Some(before) => before.into_iter().try_for_each(&mut keep)?,
        None => (0..batch.rows as u32).try_for_each(&mut keep)?,
    }
    *kept = Some(rows);
    Ok(())
}

/// Keeps the rows of a batch for which a condition holds.
///
/// # Errors
/// As [`eval::eval`].
pub fn filter(condition: Option<&Expr>, batch: Batch, run: &mut Run<'_, '_>) -> Result<Batch> {
    let Some(condition) = condition else {
        return Ok(batch);
    };
    match select(condition, &batch, run)? {
        None => Ok(batch),
        Some(kept) => Ok(rows::take(&batch, &kept)),
    }
}

/// A comparison of an integer column with an integer that is the same for all rows.
struct Comparison<'b> {
    column: &'b Column,
    value: i64,
    less: bool,
    equal: bool,
    greater: bool,
}

impl Comparison<'_> {
    /// Recognises `column op value` and `value op column` by the function's name.
    fn of<'b>(
        condition: &Expr,
        batch: &'b Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<Option<Comparison<'b>>> {
        let Expr::Call { function, args, .. } = condition else {
            return Ok(None);
        };
        let [left, right] = &args[..] else {
            return Ok(None);
        };
        let Some((less, equal, greater)) = integer_comparison(function.name) else {
            return Ok(None);
        };
        let (column, value, swapped) = match (left, right) {
            (Expr::Column(n, _), value) if is_fixed(value) => (*n, value, false),
            (value, Expr::Column(n, _)) if is_fixed(value) => (*n, value, true),
            _ => return Ok(None),
        };
        let column = &batch.columns[usize::from(column)];
        if !matches!(column.data, Vector::Int2(_) | Vector::Int4(_) | Vector::Int8(_)) {
            return Ok(None);
        }
        let value = match eval::eval(value, Row::Empty, run)? {
            Datum::Int2(v) => i64::from(v),
            Datum::Int4(v) => i64::from(v),
            Datum::Int8(v) => v,
            _ => return Ok(None),
        };
        let (less, greater) = if swapped { (greater, less) } else { (less, greater) };
        Ok(Some(Comparison { column, value, less, equal, greater }))
    }

    #[inline]
    fn row(&self, row: usize) -> bool {
        if self.column.nulls.get(row).copied().unwrap_or(false) {
            return false;
        }
        let value = match &self.column.data {
            Vector::Int2(v) => i64::from(v[row]),
            Vector::Int4(v) => i64::from(v[row]),
            Vector::Int8(v) => v[row],
            _ => return false,
        };
        match value.cmp(&self.value) {
            std::cmp::Ordering::Less => self.less,
            std::cmp::Ordering::Equal => self.equal,
            std::cmp::Ordering::Greater => self.greater,
        }
    }
}

fn is_fixed(expr: &Expr) -> bool {
    matches!(expr, Expr::Const(..) | Expr::Param(..) | Expr::Slot(..))
}

/// (true for less, for equal, for greater) of PostgreSQL's integer comparisons: `int48lt` and kin.
fn integer_comparison(name: &str) -> Option<(bool, bool, bool)> {
    let digits = name.strip_prefix("int")?;
    let op = digits.trim_start_matches(['2', '4', '8']);
    let width = digits.len() - op.len();
    if width == 0 || width > 2 {
        return None;
    }
    match op {
        "eq" => Some((false, true, false)),
        "ne" => Some((true, false, true)),
        "lt" => Some((true, false, false)),
        "le" => Some((true, true, false)),
        "gt" => Some((false, false, true)),
        "ge" => Some((false, true, true)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::integer_comparison;

    #[test]
    fn integer_comparisons_are_known_by_name() {
        assert_eq!(integer_comparison("int4lt"), Some((true, false, false)));
        assert_eq!(integer_comparison("int82ge"), Some((false, true, true)));
        assert_eq!(integer_comparison("int4pl"), None);
        assert_eq!(integer_comparison("interval_lt"), None);
        assert_eq!(integer_comparison("inteq"), None);
    }
}

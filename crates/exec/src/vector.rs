//! Expressions over a batch: whole columns at once by the kernels of [`types::kernel`], else row by
//! row.
//!
//! What an expression may raise, it raises only for rows that count: the arms of CASE, AND and OR are
//! evaluated for the rows that reach them, whose columns are copied together first. Volatile calls
//! go row by row, so that they come in the order of the rows; so does what has no column form
//! (subqueries, casts through text, rows, functions of the session).

use std::borrow::Cow;

use base::Result;
use sql::expr::SubqueryKind;
use sql::{Expr, walk};
use types::batch::Vector;
use types::func::Body;
use types::kernel::{self, Operand};
use types::{Batch, Column, Datum, FunctionRow, Numeric};

use crate::eval;
use crate::members::{self, RowList, Table};
use crate::rows::{self, Row};
use crate::run::Run;

/// Fewer rows than this are not worth the set-up.
const FEW: usize = 8;

/// An expression's values for all rows of a batch.
pub enum Values<'b> {
    /// A column of the batch.
    Lent(&'b Column),
    /// Computed.
    Own(Column),
    /// The same for all rows.
    One(Datum),
}

impl<'b> Values<'b> {
    fn operand(&self) -> Operand<'_> {
        match self {
            Values::Lent(column) => Operand::Column(column),
            Values::Own(column) => Operand::Column(column),
            Values::One(value) => Operand::Value(value),
        }
    }

    fn get(&self, row: usize, ty: base::Oid) -> Datum {
        match self {
            Values::Lent(column) => column.get(row, ty),
            Values::Own(column) => column.get(row, ty),
            Values::One(value) => value.clone(),
        }
    }

    /// As a column of a type, with so many rows.
    ///
    /// # Errors
    /// As [`Column::push`].
    pub fn column(self, ty: base::Oid, rows: usize) -> Result<Column> {
        Ok(match self {
            Values::Lent(column) => column.clone(),
            Values::Own(column) => column,
            Values::One(value) => {
                let mut column = Column::new(ty);
                (0..rows).try_for_each(|_| column.push(value.clone()))?;
                column
            }
        })
    }

    /// The same as a column that need not be copied.
    ///
    /// # Errors
    /// As [`Column::push`].
    pub fn filled(self, ty: base::Oid, rows: usize) -> Result<Cow<'b, Column>> {
        Ok(match self {
            Values::Lent(column) => Cow::Borrowed(column),
            other => Cow::Owned(other.column(ty, rows)?),
        })
    }

    /// Three-valued truth of a row.
    #[inline]
    fn truth(&self, row: usize) -> Option<bool> {
        match self {
            Values::Lent(column) => truth(column, row),
            Values::Own(column) => truth(column, row),
            Values::One(Datum::Bool(value)) => Some(*value),
            Values::One(_) => None,
        }
    }
}

#[inline]
fn truth(column: &Column, row: usize) -> Option<bool> {
    match &column.data {
        Vector::Bool(v) if !column.is_null(row) => Some(v[row]),
        Vector::Datum(v) => match v[row] {
            Datum::Bool(value) => Some(value),
            _ => None,
        },
        _ => None,
    }
}

/// An expression's values for all rows of a batch.
///
/// # Errors
/// As [`eval::eval`].
pub fn column(expr: &Expr, batch: &Batch, run: &mut Run<'_, '_>) -> Result<Column> {
    values(expr, batch, run)?.column(expr.ty(), batch.rows)
}

/// Several expressions' values, each a column.
///
/// # Errors
/// As [`eval::eval`].
pub fn columns<'b>(
    exprs: &[Expr],
    batch: &'b Batch,
    run: &mut Run<'_, '_>,
) -> Result<Vec<Cow<'b, Column>>> {
    exprs.iter().map(|e| values(e, batch, run)?.filled(e.ty(), batch.rows)).collect()
}

/// The same, without copying what is a column already.
///
/// # Errors
/// As [`eval::eval`].
pub fn values<'b>(expr: &Expr, batch: &'b Batch, run: &mut Run<'_, '_>) -> Result<Values<'b>> {
    match expr {
        Expr::Column(n, _) => Ok(Values::Lent(&batch.columns[usize::from(*n)])),
        _ if batch.rows < FEW || walk::is_volatile(expr) => by_rows(expr, batch, run),
        _ => wide(expr, batch, run),
    }
}

fn by_rows<'b>(expr: &Expr, batch: &Batch, run: &mut Run<'_, '_>) -> Result<Values<'b>> {
    let mut out = Column::new(expr.ty());
    for row in 0..batch.rows {
        sched::check_interrupts()?;
        out.push(eval::eval(expr, Row::Batch(batch, row), run)?)?;
    }
    Ok(Values::Own(out))
}

/// [`values`] of an expression that isn't volatile.
fn wide<'b>(expr: &Expr, batch: &'b Batch, run: &mut Run<'_, '_>) -> Result<Values<'b>> {
    sched::check_stack()?;
    if batch.rows == 0 {
        return Ok(Values::Own(Column::new(expr.ty())));
    }
    match expr {
        Expr::Column(n, _) => Ok(Values::Lent(&batch.columns[usize::from(*n)])),
        Expr::Const(..) | Expr::Param(..) | Expr::Slot(..) => {
            Ok(Values::One(eval::eval(expr, Row::Empty, run)?))
        }
        // The list of an IN whose literals became parameters.
        Expr::Array { items, .. }
            if !items.iter().any(|e| walk::has_columns(e) || walk::has_subquery(e)) =>
        {
            Ok(Values::One(eval::eval(expr, Row::Empty, run)?))
        }
        // Computed once, whatever the row.
        Expr::Subquery(query)
            if query.once
                && query.slots.is_empty()
                && !matches!(query.kind, SubqueryKind::Compare { .. }) =>
        {
            Ok(Values::One(eval::eval(expr, Row::Empty, run)?))
        }
        Expr::Call { function, args, ty, .. } if matches!(function.body, Body::Scalar(_)) => {
            call(function, args, *ty, batch, run)
        }
        Expr::Call { function, args, ty, .. } if matches!(function.body, Body::User) => {
            let call = run.cx.engine.calls.routine_of_batch;
            match call(function, args, *ty, batch, run)? {
                Some(column) => Ok(Values::Own(column)),
                None => by_rows(expr, batch, run),
            }
        }
        Expr::Not(arg) => {
            let arg = wide(arg, batch, run)?;
            Ok(bools((0..batch.rows).map(|row| arg.truth(row).map(|v| !v))))
        }
        Expr::BooleanTest { arg, is, negated } => {
            let arg = wide(arg, batch, run)?;
            Ok(bools((0..batch.rows).map(|row| Some((arg.truth(row) == *is) != *negated))))
        }
        Expr::IsNull { arg, negated } if arg.ty() != types::oids::RECORD => {
            match wide(arg, batch, run)? {
                Values::Lent(column) if plain(column) => Ok(null_test(column, *negated)),
                Values::Own(column) if plain(&column) => Ok(null_test(&column, *negated)),
                _ => by_rows(expr, batch, run),
            }
        }
        Expr::And(args) => and_or(args, false, batch, run),
        Expr::Or(args) => and_or(args, true, batch, run),
        Expr::Case { operand: None, arms, default, ty } => case(arms, default, *ty, batch, run),
        Expr::ArrayOp { function, left, array, all } => {
            match item_of(function, *all, (left, array), batch, run)? {
                Some(values) => Ok(values),
                None => by_rows(expr, batch, run),
            }
        }
        Expr::Collate(arg, ..) => wide(arg, batch, run),
        Expr::Relabel(arg, ty) if !types::user::is_user(*ty) => match wide(arg, batch, run)? {
            Values::Lent(c) if same_form(c, *ty) => Ok(Values::Lent(c)),
            Values::Own(c) if same_form(&c, *ty) => Ok(Values::Own(c)),
            _ => by_rows(expr, batch, run),
        },
        _ => by_rows(expr, batch, run),
    }
}

/// Whether NULLs of the column are NULL values and nothing else (rows may be NULL in parts).
fn plain(column: &Column) -> bool {
    !matches!(column.data, Vector::Datum(_))
}

fn null_test<'b>(column: &Column, negated: bool) -> Values<'b> {
    bools((0..column.len()).map(|row| Some(column.is_null(row) != negated)))
}

/// Whether a column of this type is stored as this one is. (Integers under another name may not be.)
fn same_form(column: &Column, ty: base::Oid) -> bool {
    matches!((&column.data, &Column::new(ty).data), (Vector::Text(_), Vector::Text(_)))
}

fn bools<'b>(rows: impl Iterator<Item = Option<bool>>) -> Values<'b> {
    let mut nulls = Vec::new();
    let mut data = Vec::with_capacity(rows.size_hint().0);
    for value in rows {
        if value.is_none() {
            nulls.resize(data.len(), false);
            nulls.push(true);
        } else if !nulls.is_empty() {
            nulls.push(false);
        }
        data.push(value == Some(true));
    }
    Values::Own(Column { data: Vector::Bool(data), nulls })
}

/// A function with a body over values: by its kernel, else row by row over its arguments' columns.
fn call<'b>(
    function: &'static FunctionRow,
    args: &[Expr],
    ty: base::Oid,
    batch: &'b Batch,
    run: &mut Run<'_, '_>,
) -> Result<Values<'b>> {
    let list = args.iter().map(|a| wide(a, batch, run)).collect::<Result<Vec<_>>>()?;
    if list.iter().all(|a| matches!(a, Values::One(_))) {
        let values: Vec<Datum> = list.iter().map(|a| a.get(0, ty)).collect();
        return Ok(Values::One(eval::apply(function, &values, run)?));
    }
    if let [a, b] = &list[..]
        && let Some(body) = kernel::kernel(function.oid)
        && let Some(column) = body(a.operand(), b.operand(), batch.rows)?
    {
        return Ok(Values::Own(column));
    }
    let mut out = Column::new(ty);
    let mut values = vec![Datum::Null; args.len()];
    for row in 0..batch.rows {
        sched::check_interrupts()?;
        for ((value, from), arg) in values.iter_mut().zip(&list).zip(args) {
            *value = from.get(row, arg.ty());
        }
        out.push(eval::apply(function, &values, run)?)?;
    }
    Ok(Values::Own(out))
}

/// AND (`until` false) or OR (`until` true): a row is done at the first value that decides.
fn and_or<'b>(
    args: &[Expr],
    until: bool,
    batch: &Batch,
    run: &mut Run<'_, '_>,
) -> Result<Values<'b>> {
    let mut result = vec![Some(!until); batch.rows];
    let mut open: Vec<u32> = (0..batch.rows as u32).collect();
    let mut note = |open: &mut Vec<u32>, found: &Values<'_>| {
        let mut at = 0;
        open.retain(|row| {
            let value = found.truth(at);
            at += 1;
            match value {
                Some(value) if value == until => result[*row as usize] = Some(until),
                Some(_) => {}
                None => result[*row as usize] = None,
            }
            value != Some(until)
        });
    };
    let list = RowList::among(args, !until, members::LONG);
    let rest = match list {
        Some(list) => {
            note(&mut open, &row_of(&list, until, batch, run)?);
            list.rest
        }
        None => args.iter().collect(),
    };
    for arg in rest {
        if open.is_empty() {
            break;
        }
        let some = Chosen::of(arg, batch, &open);
        let found = wide(arg, some.batch(batch), run)?;
        note(&mut open, &found);
    }
    Ok(bools(result.into_iter()))
}

/// Whether each row is on a list; `until` where it is, the opposite where it is not.
fn row_of<'b>(
    list: &RowList<'_>,
    until: bool,
    batch: &Batch,
    run: &mut Run<'_, '_>,
) -> Result<Values<'b>> {
    let left = list.left.iter().map(|e| wide(e, batch, run)).collect::<Result<Vec<_>>>()?;
    let table = run.state.members.of_list(list, run.params)?;
    let mut values = vec![Datum::Null; left.len()];
    let mut found = Vec::with_capacity(batch.rows);
    for row in 0..batch.rows {
        sched::check_interrupts()?;
        for ((value, from), e) in values.iter_mut().zip(&left).zip(&list.left) {
            *value = from.get(row, e.ty());
        }
        found.push(table.find(&values)?.map(|found| found == until));
    }
    Ok(bools(found.into_iter()))
}

/// CASE: each arm for the rows that come to it.
fn case<'b>(
    arms: &[(Expr, Expr)],
    default: &Expr,
    ty: base::Oid,
    batch: &Batch,
    run: &mut Run<'_, '_>,
) -> Result<Values<'b>> {
    // Which part has a row's value, and where in it.
    let mut place = vec![(0u32, 0u32); batch.rows];
    let mut parts: Vec<Column> = Vec::with_capacity(arms.len() + 1);
    let mut open: Vec<u32> = (0..batch.rows as u32).collect();
    let mut add = |rows: &[u32], result: &Expr, run: &mut Run<'_, '_>| -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        for (at, row) in rows.iter().enumerate() {
            place[*row as usize] = (parts.len() as u32, at as u32);
        }
        let some = Chosen::of(result, batch, rows);
        parts.push(wide(result, some.batch(batch), run)?.column(ty, rows.len())?);
        Ok(())
    };
    for (test, result) in arms {
        if open.is_empty() {
            break;
        }
        let some = Chosen::of(test, batch, &open);
        let found = wide(test, some.batch(batch), run)?;
        let (mut hit, mut rest) = (Vec::new(), Vec::new());
        for (at, row) in open.iter().enumerate() {
            if found.truth(at) == Some(true) { hit.push(*row) } else { rest.push(*row) }
        }
        open = rest;
        add(&hit, result, run)?;
    }
    add(&open, default, run)?;
    let mut out = Column::new(ty);
    for (part, at) in place {
        out.push_from(&parts[part as usize], at as usize)?;
    }
    Ok(Values::Own(out))
}

/// `left op ANY (array)` or ALL, the array being the same for all rows: by a table of its items, or item by item. None
/// when it isn't the same, or when the operator has no kernel.
fn item_of<'b>(
    function: &'static FunctionRow,
    all: bool,
    (left, array): (&Expr, &Expr),
    batch: &'b Batch,
    run: &mut Run<'_, '_>,
) -> Result<Option<Values<'b>>> {
    let kernel = kernel::kernel(function.oid).filter(|_| function.strict && !all);
    let once = match array {
        Expr::Subquery(query) => query.once && query.slots.is_empty(),
        other => !walk::has_columns(other) && !walk::has_subquery(other),
    };
    if !once {
        return Ok(None);
    }
    let array = match wide(array, batch, run)? {
        Values::One(Datum::Array(array)) => array,
        Values::One(_) => return Ok(Some(Values::One(Datum::Null))),
        _ => return Ok(None),
    };
    let ty = left.ty();
    if array.items.len() >= members::LONG {
        let left = wide(left, batch, run)?;
        if let Some(table) = run.state.members.of_array(function, all, ty, &array, true)? {
            return found_in(table, all, &left, ty, batch.rows).map(Some);
        }
    }
    let Some(body) = kernel else { return Ok(None) };
    let left = wide(left, batch, run)?;
    if matches!(left, Values::One(_)) {
        return Ok(None);
    }
    let mut result = vec![Some(false); batch.rows];
    for item in &array.items {
        sched::check_interrupts_now()?;
        let Some(found) = body(left.operand(), Operand::Value(item), batch.rows)? else {
            return Ok(None);
        };
        for (row, result) in result.iter_mut().enumerate() {
            match truth(&found, row) {
                Some(true) => *result = Some(true),
                None if *result == Some(false) => *result = None,
                _ => {}
            }
        }
    }
    Ok(Some(bools(result.into_iter())))
}

/// Whether each value is in a table, or (`all`: none of its items is equal) is not.
fn found_in<'b>(
    table: &mut Table,
    all: bool,
    left: &Values<'_>,
    ty: base::Oid,
    rows: usize,
) -> Result<Values<'b>> {
    let column = match left {
        Values::Lent(column) => Some(*column),
        Values::Own(column) => Some(column),
        Values::One(_) => None,
    };
    if let Some(column) = column.filter(|_| table.is_of_numbers())
        && matches!(column.data, Vector::Int2(_) | Vector::Int4(_) | Vector::Int8(_))
    {
        let number = |row: usize| match &column.data {
            _ if column.is_null(row) => None,
            Vector::Int2(v) => Some(i64::from(v[row])),
            Vector::Int4(v) => Some(i64::from(v[row])),
            Vector::Int8(v) => Some(v[row]),
            _ => None,
        };
        let found = |row| Some(table.has_number(number(row)?)? != all);
        return Ok(bools((0..rows).map(found)));
    }
    let mut result = Vec::with_capacity(rows);
    for row in 0..rows {
        sched::check_interrupts()?;
        result.push(table.find(&[left.get(row, ty)])?.map(|found| found != all));
    }
    Ok(bools(result.into_iter()))
}

/// Some rows of a batch, with the columns that an expression needs; the others are empty.
enum Chosen {
    All,
    Copy(Batch),
}

impl Chosen {
    fn of(expr: &Expr, batch: &Batch, rows: &[u32]) -> Chosen {
        if rows.len() == batch.rows {
            return Chosen::All;
        }
        let mut used = Vec::new();
        walk::columns_of(expr, &mut used);
        let column = |(n, column): (usize, &Column)| {
            if used.contains(&(n as u16)) {
                column.take(rows)
            } else {
                Column { data: Vector::Bool(Vec::new()), nulls: Vec::new() }
            }
        };
        let columns = batch.columns.iter().enumerate().map(column).collect();
        Chosen::Copy(Batch { columns, rows: rows.len() })
    }

    fn batch<'a>(&'a self, all: &'a Batch) -> &'a Batch {
        match self {
            Chosen::All => all,
            Chosen::Copy(batch) => batch,
        }
    }
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
    if let Expr::And(parts) = condition
        && RowList::among(parts, true, members::LONG).is_none()
    {
        return parts.iter().try_for_each(|part| narrow(part, batch, kept, run));
    }
    if kept.as_ref().is_some_and(Vec::is_empty) {
        return Ok(());
    }
    if let Some(test) = Comparison::of(condition, batch, run)? {
        *kept = Some(test.rows(kept.take(), batch.rows));
        return Ok(());
    }
    if batch.rows < FEW || walk::is_volatile(condition) {
        return narrow_by_rows(condition, batch, kept, run);
    }
    let before = kept.take();
    let rows = match &before {
        None => {
            let found = wide(condition, batch, run)?;
            (0..batch.rows as u32).filter(|r| found.truth(*r as usize) == Some(true)).collect()
        }
        Some(before) => {
            let some = Chosen::of(condition, batch, before);
            let found = wide(condition, some.batch(batch), run)?;
            let holds = |at: usize| found.truth(at) == Some(true);
            let counted = before.iter().enumerate();
            counted.filter(|(at, _)| holds(*at)).map(|(_, row)| *row).collect()
        }
    };
    *kept = Some(rows);
    Ok(())
}

fn narrow_by_rows(
    condition: &Expr,
    batch: &Batch,
    kept: &mut Option<Vec<u32>>,
    run: &mut Run<'_, '_>,
) -> Result<()> {
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

/// Whether a condition is among those to be tested first: it costs next to nothing, and never fails.
pub fn is_quick(condition: &Expr) -> bool {
    let Expr::Call { function, args, .. } = condition else { return false };
    match &args[..] {
        [Expr::Column(..), value] | [value, Expr::Column(..)] => {
            is_fixed(value) && integer_comparison(function.name).is_some()
        }
        _ => false,
    }
}

/// A comparison of a column that is stored as integers (numerics of one scale and dates are) with
/// an integer that is the same for all rows.
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
        let value = eval::eval(value, Row::Empty, run)?;
        let Some(value) = as_stored(&column.data, &value) else { return Ok(None) };
        let (less, greater) = if swapped { (greater, less) } else { (less, greater) };
        Ok(Some(Comparison { column, value, less, equal, greater }))
    }

    /// Those of the rows (None: of `count` rows) for which it holds.
    fn rows(&self, kept: Option<Vec<u32>>, count: usize) -> Vec<u32> {
        match &self.column.data {
            Vector::Int2(v) => self.among(v, kept, count),
            Vector::Int4(v) => self.among(v, kept, count),
            Vector::Int8(v) | Vector::Numeric(v, _) => self.among(v, kept, count),
            _ => Vec::new(),
        }
    }

    fn among<T: Copy + Into<i64>>(
        &self,
        values: &[T],
        kept: Option<Vec<u32>>,
        count: usize,
    ) -> Vec<u32> {
        let fits = |row: u32| {
            let v: i64 = values[row as usize].into();
            (self.less & (v < self.value))
                | (self.equal & (v == self.value))
                | (self.greater & (v > self.value))
        };
        let mut rows = kept.unwrap_or_else(|| (0..count as u32).collect());
        // Without a branch: whether a row fits can't be foreseen.
        let mut found = 0;
        for n in 0..rows.len() {
            let row = rows[n];
            rows[found] = row;
            found += usize::from(fits(row));
        }
        rows.truncate(found);
        if !self.column.nulls.is_empty() {
            rows.retain(|row| !self.column.is_null(*row as usize));
        }
        rows
    }
}

/// A value as the integer that stands for it in a vector; None when none does.
fn as_stored(data: &Vector, value: &Datum) -> Option<i64> {
    const DAY: i64 = 86_400_000_000;
    match (data, value) {
        (Vector::Int2(_) | Vector::Int4(_) | Vector::Int8(_), Datum::Int2(v)) => Some((*v).into()),
        (Vector::Int2(_) | Vector::Int4(_) | Vector::Int8(_), Datum::Int4(v)) => Some((*v).into()),
        (Vector::Int2(_) | Vector::Int4(_) | Vector::Int8(_), Datum::Int8(v)) => Some(*v),
        (Vector::Int4(_), Datum::Date(v)) => Some((*v).into()),
        // A midnight within the dates, which the infinities bound.
        (Vector::Int4(_), Datum::Timestamp(t)) if t % DAY == 0 && t.abs() < i64::MAX / 2 => {
            Some(t / DAY)
        }
        (Vector::Numeric(_, to), Datum::Numeric(Numeric::Small { value, scale })) => {
            value.checked_mul(10i64.checked_pow(u32::from(to.checked_sub(*scale)?))?)
        }
        _ => None,
    }
}

fn is_fixed(expr: &Expr) -> bool {
    matches!(expr, Expr::Const(..) | Expr::Param(..) | Expr::Slot(..))
}

/// (true for less, for equal, for greater) of PostgreSQL's comparisons of integers (`int48lt` and
/// kin), numerics, and dates with dates and timestamps.
fn integer_comparison(name: &str) -> Option<(bool, bool, bool)> {
    let op = if let Some(op) = name.strip_prefix("date_") {
        op.strip_suffix("_timestamp").unwrap_or(op)
    } else if let Some(op) = name.strip_prefix("numeric_") {
        op
    } else {
        let digits = name.strip_prefix("int")?;
        let op = digits.trim_start_matches(['2', '4', '8']);
        let width = digits.len() - op.len();
        if width == 0 || width > 2 {
            return None;
        }
        op
    };
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
        assert_eq!(integer_comparison("date_lt_timestamp"), Some((true, false, false)));
        assert_eq!(integer_comparison("numeric_ge"), Some((false, true, true)));
        assert_eq!(integer_comparison("date_lt_timestamptz"), None);
        assert_eq!(integer_comparison("int4pl"), None);
        assert_eq!(integer_comparison("interval_lt"), None);
        assert_eq!(integer_comparison("inteq"), None);
    }
}

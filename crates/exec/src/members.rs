//! Long lists that values are looked up in: `x IN (1, 2, …)`, `x = ANY (array)`, `x <> ALL (array)`, and rows as in
//! `(a, b) IN ((1, 2), …)`, which the binder makes OR over AND.
//!
//! Comparing with one item after the other takes time for each pair of a row and an item. A list of [`LONG`] items is
//! put into a table when it is first met, and a value is looked up in that:
//!
//! ```text
//!   a = ANY (array)                   array  ─▶ table of a             (one for each array of an execution)
//!   (a = 1 AND b = 2) OR (a = 3 …)    values ─▶ table of (a, b)        (one for each list of an execution)
//! ```
//! * Only equalities are served that hash joins serve, over values of one type (or integers), so that no comparison
//!   can fail, and it can't be seen how many there were.
//! * A table is found again by what it was made of. An array is known by its address, which nobody else has while the
//!   table points to it. The items of other lists are compared with those of the table, which is much cheaper than
//!   looking for the value in them.
//! * An array that was made for one row is compared item by item: a table is made when it is met again.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use base::{Oid, Result};
use sql::{Expr, walk};
use types::datum::Array;
use types::oids::{INT2, INT4, INT8, RECORD};
use types::{Datum, FunctionRow};

use crate::ops::grouping::Fx;
use crate::ops::hashed_rows::{HashedRows, Projections};

/// A list of so many items is looked up in a table.
pub const LONG: usize = 9;
/// So many tables of each kind are kept.
const KEPT: usize = 8;

/// The tables of an execution, and what they were made of.
#[derive(Default)]
pub struct Members {
    arrays: Vec<OfArray>,
    lists: Vec<OfList>,
    /// Arrays whose items are written out in the statement.
    written: Vec<Arc<Array>>,
    /// Counts what was added, for the place of the next one.
    added: usize,
}

struct OfArray {
    array: Weak<Array>,
    function: Oid,
    state: ArrayState,
}

enum ArrayState {
    /// Met once.
    Met,
    /// Its items are compared one by one.
    Unfit,
    Table(Table),
}

struct OfList {
    /// The items, row by row.
    items: Vec<Datum>,
    width: usize,
    table: Table,
}

/// Values or rows, to be looked up.
pub struct Table {
    /// The items, if all are integers or NULLs.
    numbers: Option<HashSet<i64, Fx>>,
    /// One of these was NULL.
    has_null: bool,
    rows: HashedRows,
    projections: Projections,
}

impl Table {
    fn of(items: &[Datum], width: usize) -> Result<Table> {
        let mut table = Table {
            numbers: None,
            has_null: false,
            rows: HashedRows::default(),
            projections: Projections::default(),
        };
        if width == 1 && items.iter().all(|item| item.is_null() || number(item).is_some()) {
            table.has_null = items.iter().any(Datum::is_null);
            table.numbers = Some(items.iter().filter_map(number).collect());
            return Ok(table);
        }
        for row in items.chunks(width) {
            sched::check_interrupts()?;
            table.rows.add(row);
        }
        Ok(table)
    }

    /// Whether a number is there.
    #[inline]
    pub fn has_number(&self, value: i64) -> Option<bool> {
        let numbers = self.numbers.as_ref()?;
        if numbers.contains(&value) {
            Some(true)
        } else if self.has_null {
            None
        } else {
            Some(false)
        }
    }

    /// Whether the table is one of numbers.
    pub fn is_of_numbers(&self) -> bool {
        self.numbers.is_some()
    }

    /// Whether a row is there, in three-valued logic.
    ///
    /// # Errors
    /// Those of interrupts.
    pub fn find(&mut self, row: &[Datum]) -> Result<Option<bool>> {
        match row {
            [value] if self.numbers.is_some() => {
                Ok(number(value).and_then(|value| self.has_number(value)))
            }
            _ => self.rows.find(row, &mut self.projections),
        }
    }
}

#[inline]
fn number(value: &Datum) -> Option<i64> {
    match value {
        Datum::Int2(v) => Some(i64::from(*v)),
        Datum::Int4(v) => Some(i64::from(*v)),
        Datum::Int8(v) => Some(*v),
        _ => None,
    }
}

/// Whether the function compares values of these types by an equality that a table serves, or (`differs`) by its
/// opposite.
fn serves(function: &FunctionRow, differs: bool, left: Oid, item: Oid) -> bool {
    let integer = |ty| matches!(ty, INT2 | INT4 | INT8);
    let fits = left == item && left != RECORD && !types::user::is_user(left);
    function.strict
        && (fits || integer(left) && integer(item))
        && match differs {
            false => walk::is_equality(function),
            true => walk::is_inequality(function),
        }
}

impl Members {
    /// The table of an array that a value of type `left` is compared with; None where the items are to be compared one by
    /// one. `again`: the caller has it for many rows.
    ///
    /// # Errors
    /// Those of interrupts.
    pub fn of_array(
        &mut self,
        function: &FunctionRow,
        all: bool,
        left: Oid,
        array: &Arc<Array>,
        again: bool,
    ) -> Result<Option<&mut Table>> {
        if array.items.len() < LONG {
            return Ok(None);
        }
        let here = Arc::as_ptr(array);
        let is_this =
            |a: &OfArray| std::ptr::eq(a.array.as_ptr(), here) && a.function == function.oid;
        let at = match self.arrays.iter().position(is_this) {
            Some(at) => at,
            None => {
                let new = OfArray {
                    array: Arc::downgrade(array),
                    function: function.oid,
                    state: ArrayState::Met,
                };
                let at = self.place(self.arrays.len());
                put(&mut self.arrays, at, new);
                if !again {
                    return Ok(None);
                }
                at
            }
        };
        let state = &mut self.arrays[at].state;
        if let ArrayState::Met = state {
            *state = match serves(function, all, left, array.element) {
                true => ArrayState::Table(Table::of(&array.items, 1)?),
                false => ArrayState::Unfit,
            };
        }
        Ok(match state {
            ArrayState::Table(table) => Some(table),
            _ => None,
        })
    }

    /// The array of these constants and parameters, as it was made before if it was.
    pub fn written(
        &mut self,
        items: &[Expr],
        element: Oid,
        params: &[Datum],
    ) -> Option<Arc<Array>> {
        if items.len() < LONG || !items.iter().all(is_value) {
            return None;
        }
        let same = |array: &&Arc<Array>| {
            array.element == element
                && array.items.len() == items.len()
                && items.iter().zip(&array.items).all(|(e, item)| value(e, params) == Some(item))
        };
        if let Some(array) = self.written.iter().find(same) {
            return Some(array.clone());
        }
        let values = items.iter().filter_map(|e| value(e, params).cloned()).collect();
        let array = Arc::new(Array::of(element, values));
        let at = self.place(self.written.len());
        put(&mut self.written, at, array.clone());
        Some(array)
    }

    /// The table of a list of rows.
    ///
    /// # Errors
    /// Those of interrupts.
    pub fn of_list(&mut self, list: &RowList<'_>, params: &[Datum]) -> Result<&mut Table> {
        let width = list.left.len();
        let same = |known: &OfList| {
            known.width == width
                && known.items.len() == list.rows.len() * width
                && list.rows.iter().zip(known.items.chunks(width)).all(|(row, items)| {
                    fields(row).zip(items).all(|(f, item)| constant(f, params) == Some(item))
                })
        };
        let at = match self.lists.iter().position(same) {
            Some(at) => at,
            None => {
                let values = list.rows.iter().flat_map(|row| fields(row));
                let items: Vec<Datum> =
                    values.filter_map(|f| constant(f, params).cloned()).collect();
                let table = Table::of(&items, width)?;
                let at = self.place(self.lists.len());
                put(&mut self.lists, at, OfList { items, width, table });
                at
            }
        };
        Ok(&mut self.lists[at].table)
    }

    /// Where the next one goes, of those of a kind that are kept.
    fn place(&mut self, kept: usize) -> usize {
        self.added += 1;
        if kept < KEPT { kept } else { self.added % KEPT }
    }
}

fn put<T>(list: &mut Vec<T>, at: usize, new: T) {
    match list.get_mut(at) {
        Some(old) => *old = new,
        None => list.push(new),
    }
}

fn is_value(e: &Expr) -> bool {
    matches!(e, Expr::Const(..) | Expr::Param(..))
}

fn value<'v>(e: &'v Expr, params: &'v [Datum]) -> Option<&'v Datum> {
    match e {
        Expr::Const(value, _) => Some(value),
        Expr::Param(n, _) => params.get(*n as usize),
        _ => None,
    }
}

/// `(a, b) IN (rows of constants)` or (`differs`) NOT IN, as the arms of an OR or AND.
pub struct RowList<'e> {
    /// What is looked up.
    pub left: Vec<&'e Expr>,
    /// The arms with the rows.
    rows: Vec<&'e Expr>,
    /// The other arms.
    pub rest: Vec<&'e Expr>,
}

/// The comparisons that an arm consists of.
fn fields(arm: &Expr) -> impl Iterator<Item = &Expr> {
    match arm {
        Expr::And(parts) | Expr::Or(parts) => parts.iter(),
        one => std::slice::from_ref(one).iter(),
    }
}

/// The two sides of `left op constant`.
fn comparison(e: &Expr) -> Option<(&'static FunctionRow, &Expr, &Expr)> {
    match e {
        Expr::Call { function, args, .. } => match &**args {
            [left, right] if is_value(right) && !is_value(left) => Some((function, left, right)),
            _ => None,
        },
        _ => None,
    }
}

fn constant<'v>(field: &'v Expr, params: &'v [Datum]) -> Option<&'v Datum> {
    value(comparison(field)?.2, params)
}

impl<'e> RowList<'e> {
    /// Whether it may be looked at first, whatever the other arms guard: it can't fail.
    fn goes_first(&self) -> bool {
        fn is_plain(e: &Expr) -> bool {
            match e {
                Expr::Column(..) | Expr::Slot(..) => true,
                Expr::Relabel(arg, _) | Expr::Collate(arg, ..) => is_plain(arg),
                _ => false,
            }
        }
        self.rest.is_empty() || self.left.iter().all(|e| is_plain(e))
    }

    /// Finds the list in the arms of an OR, or (`differs`) of an AND, if at least `least` of them compare the same.
    pub fn among(arms: &'e [Expr], differs: bool, least: usize) -> Option<RowList<'e>> {
        if arms.len() < least.max(LONG) {
            return None;
        }
        let shaped = |arm: &&Expr| match arm {
            Expr::And(_) => !differs,
            Expr::Or(_) => differs,
            Expr::Call { .. } => true,
            _ => false,
        };
        let (functions, left) = arms.iter().filter(shaped).find_map(|arm| head(arm, differs))?;
        let (rows, rest) = arms.iter().partition(|arm| {
            shaped(arm) && fields(arm).count() == left.len() && {
                let heads = functions.iter().zip(&left);
                fields(arm).zip(heads).all(|(field, (function, left))| {
                    comparison(field)
                        .is_some_and(|(f, l, _)| std::ptr::eq(f, *function) && walk::same(l, left))
                })
            }
        });
        let list = RowList { left, rows, rest };
        (list.rows.len() >= least.max(LONG) && list.goes_first()).then_some(list)
    }
}

/// The functions and left sides of an arm, if a table serves them.
fn head(arm: &Expr, differs: bool) -> Option<(Vec<&'static FunctionRow>, Vec<&Expr>)> {
    let field = |field| {
        let (function, left, right) = comparison(field)?;
        let good = serves(function, differs, left.ty(), right.ty()) && !walk::is_volatile(left);
        good.then_some((function, left))
    };
    let both: Vec<_> = fields(arm).map(field).collect::<Option<_>>()?;
    (!both.is_empty() && both.len() <= 64).then(|| both.into_iter().unzip())
}

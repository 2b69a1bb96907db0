//! Which conditions an index can answer: equal values for the first key columns, then one range
//! or one list, behind which it goes on. An index compares values of the column's own type (of the
//! type below a domain), so the other side is cast to it where that changes nothing.

use catalog::Index;
use types::collation::Slot;
use types::func::{CastMethod, internal};
use types::oids::*;
use types::{Datum, TypeIo};

use crate::expr::Expr;
use crate::logical::TableRel;
use crate::plan::{IndexBounds, ScanColumn};
use crate::walk;

use crate::bind::operator::comparison;

use super::OrderKey;
use super::cols::Cols;
use super::order::By;
use super::selectivity::{as_comparison, comparison_name, flipped, plain_column};

/// What an index can do for a list of conditions. Expressions are not resolved yet.
#[derive(Clone, Default)]
pub(crate) struct Match {
    /// Where to look.
    pub bounds: IndexBounds,
    /// Conditions that the bounds prove, by their places in the list.
    pub proved: Vec<usize>,
    /// Conditions that the bounds use, proved or not.
    pub used: Vec<usize>,
    /// Conditions that a partial index's own condition says, by their places.
    pub implied: Vec<usize>,
    /// All columns of a unique index are given.
    pub one_row: bool,
    /// The order of the rows, by the columns behind those that equal something.
    pub order: Vec<OrderKey>,
    /// The order by all columns.
    pub whole_order: Vec<OrderKey>,
}

/// Matches an index with conditions; `own`: the table's columns. Other columns in them are known
/// before the scan starts. `computed`: its expressions, in order.
pub(crate) fn match_index(
    index: &Index,
    table: &TableRel,
    own: &Cols,
    list: &[Expr],
    computed: &[Expr],
) -> Match {
    let mut found = Match::default();
    let mut next = 0;
    let mut computed = computed.iter();
    while let Some(key) = index.columns.get(next) {
        let of = match &key.expression {
            Some(_) => match computed.next() {
                Some(e) => KeyValue::Computed(e),
                None => break,
            },
            None => KeyValue::Column(table.col(ScanColumn::Attr(key.column))),
        };
        let Ok(slot) = key.slot() else { break };
        let part = KeyPart { of, slot };
        let equal = list.iter().enumerate().find_map(|(i, e)| {
            let (op, value) = part.comparison(e, table, own)?;
            (op == "=").then_some((i, value))
        });
        if let Some((i, value)) = equal {
            match found.bounds.any {
                None => found.bounds.equal.push(value),
                Some(_) => found.bounds.after.push(value),
            }
            found.proved.push(i);
        } else if found.bounds.any.is_some() || !list_of_values(&mut found, list, &part, own) {
            range(&mut found, list, table, &part, own);
            break;
        }
        next += 1;
    }
    found.one_row = index.unique
        && !index.deferrable
        && found.bounds.any.is_none()
        && found.bounds.equal.len() == index.columns.len();
    found.used.extend(&found.proved);
    let order = |from: usize| {
        let key = |k: &catalog::IndexColumn| key_order(table, k);
        index.columns[from..].iter().map_while(key).collect()
    };
    found.order = order(found.bounds.equal.len());
    found.whole_order = order(0);
    found
}

/// What an index's column sorts rows by; None: an expression.
pub(crate) fn key_order(table: &TableRel, key: &catalog::IndexColumn) -> Option<OrderKey> {
    if key.expression.is_some() {
        return None;
    }
    let col = table.col(ScanColumn::Attr(key.column));
    Some((By { col, slot: key.slot().ok()? }, key.descending, key.nulls_first))
}

/// A key column of an index.
struct KeyPart<'e> {
    of: KeyValue<'e>,
    slot: Slot,
}

/// What it has the values of.
enum KeyValue<'e> {
    Column(u16),
    Computed(&'e Expr),
}

impl KeyPart<'_> {
    /// A comparison of it with something known, of its own type. A collation of ICU must be the
    /// comparison's, but for equality of bytes, which all that are deterministic have in common.
    fn comparison(&self, e: &Expr, table: &TableRel, own: &Cols) -> Option<(&'static str, Expr)> {
        if self.slot == Slot::BYTES {
            return self.compared(e, table, own);
        }
        if let Expr::Call { function, args, .. } = e
            && let [a, b] = &**args
            && let (Some(a), Some(b)) = (by_keys(a, self.slot), by_keys(b, self.slot))
        {
            let over_values = comparison(comparison_name(function)?, a.ty())?;
            let args = Box::new([a.clone(), b.clone()]);
            let e = Expr::Call { function: over_values, args, ty: BOOL, position: 0 };
            return self.compared(&e, table, own);
        }
        let equal = self.slot.is_deterministic();
        self.compared(e, table, own).filter(|(op, _)| equal && *op == "=")
    }

    fn compared(&self, e: &Expr, table: &TableRel, own: &Cols) -> Option<(&'static str, Expr)> {
        match self.of {
            KeyValue::Column(col) => comparison_with(e, table, col, own),
            KeyValue::Computed(key) => compared(e, key, own),
        }
    }

    fn is(&self, e: &Expr) -> bool {
        match self.of {
            KeyValue::Column(col) => plain_column(e) == Some(col) && same_kind(e),
            KeyValue::Computed(key) => walk::same(e, key),
        }
    }

    /// The sides of `left = ANY (array)` as values of it.
    fn sides<'e>(&self, left: &'e Expr, array: &'e Expr) -> Option<(&'e Expr, &'e Expr)> {
        if self.slot == Slot::BYTES {
            return Some((left, array));
        }
        match (by_keys(left, self.slot), by_keys(array, self.slot)) {
            (Some(left), Some(array)) => Some((left, array)),
            _ => self.slot.is_deterministic().then_some((left, array)),
        }
    }
}

/// The value whose key under a collation this is.
fn by_keys(e: &Expr, slot: Slot) -> Option<&Expr> {
    match e {
        Expr::Call { function, args, .. } if function.oid == internal::SORT_KEY.oid => {
            let number = Datum::Oid(u32::from(slot.0));
            matches!(&args[1], Expr::Const(n, _) if *n == number).then_some(&args[0])
        }
        _ => None,
    }
}

/// A comparison of an index's expression with something known.
fn compared(e: &Expr, key: &Expr, own: &Cols) -> Option<(&'static str, Expr)> {
    let Expr::Call { function, args, .. } = e else { return None };
    let [a, b] = &**args else { return None };
    let op = comparison_name(function)?;
    let (op, other) = if walk::same(a, key) {
        (op, b)
    } else if walk::same(b, key) {
        (flipped(op), a)
    } else {
        return None;
    };
    (a.ty() == b.ty() && known_before(other, own)).then(|| (op, other.clone()))
}

/// Bounds of a column. A range never holds NULLs, so that it proves what it uses.
fn range(found: &mut Match, list: &[Expr], table: &TableRel, part: &KeyPart<'_>, own: &Cols) {
    for (i, e) in list.iter().enumerate() {
        let Some((op, value)) = part.comparison(e, table, own) else { continue };
        let included = op.ends_with('=');
        if op.starts_with('>') && found.bounds.lower.is_none() {
            found.bounds.lower = Some((value, included));
            found.proved.push(i);
        } else if op.starts_with('<') && found.bounds.upper.is_none() {
            found.bounds.upper = Some((value, included));
            found.proved.push(i);
        }
    }
}

fn list_of_values(found: &mut Match, list: &[Expr], part: &KeyPart<'_>, own: &Cols) -> bool {
    for (i, e) in list.iter().enumerate() {
        let Expr::ArrayOp { function, left, array, all: false } = e else { continue };
        let Some((left, array)) = part.sides(left, array) else { continue };
        let fits = part.is(left)
            && walk::is_equality(function)
            && known_before(array, own)
            && element_type(array) == Some(left.ty());
        if fits {
            found.bounds.any = Some(array.clone());
            found.proved.push(i);
            return true;
        }
    }
    false
}

fn element_type(array: &Expr) -> Option<base::Oid> {
    TypeIo::get(array.ty()).map(|io| io.element)
}

/// Whether a value is known before the scan of the table starts.
fn known_before(e: &Expr, own: &Cols) -> bool {
    !Cols::of(e).intersects(own) && !walk::is_volatile(e)
}

/// A column seen as itself or as a type with the same order.
fn same_kind(e: &Expr) -> bool {
    match e {
        Expr::Column(..) => true,
        Expr::Relabel(inner, ty) => {
            same_kind(inner)
                && (types::user::base_type(inner.ty(), -1).0 == *ty
                    || matches!(
                        (inner.ty(), *ty),
                        (VARCHAR, TEXT) | (TEXT, VARCHAR) | (REGCLASS, OID) | (OID, REGCLASS)
                    ))
        }
        _ => false,
    }
}

/// A comparison of this column with something known, cast to the column's type.
fn comparison_with(
    e: &Expr,
    table: &TableRel,
    col: u16,
    own: &Cols,
) -> Option<(&'static str, Expr)> {
    let c = as_comparison(e, table)?;
    if plain_column(c.column) != Some(col) || !same_kind(c.column) {
        // Both sides may be columns of the table.
        return None;
    }
    if !known_before(c.value, own) {
        return None;
    }
    let value = as_type(c.value, c.column.ty(), c.op)?;
    Some((c.op, value))
}

/// Both sides of a comparison as one type, if they are or are integers of two widths.
pub(crate) fn of_one_type(a: &Expr, b: &Expr) -> Option<(Expr, Expr)> {
    let (of_a, of_b) = (a.ty(), b.ty());
    if of_a == of_b {
        return Some((a.clone(), b.clone()));
    }
    let rank = |ty| [INT2, INT4, INT8].iter().position(|t| *t == ty);
    match rank(of_a)? < rank(of_b)? {
        true => Some((call_cast(a.clone(), of_a, of_b)?, b.clone())),
        false => Some((a.clone(), call_cast(b.clone(), of_b, of_a)?)),
    }
}

/// The value as the column's type; None when that could change the comparison's result.
fn as_type(value: &Expr, ty: base::Oid, op: &str) -> Option<Expr> {
    let from = value.ty();
    if from == ty {
        return Some(value.clone());
    }
    let rank = |t| match t {
        INT2 => Some(2),
        INT4 => Some(4),
        INT8 => Some(8),
        _ => None,
    };
    if let (Some(a), Some(b)) = (rank(from), rank(ty)) {
        return integer_as(value, from, ty, a < b, op);
    }
    match (from, ty) {
        (VARCHAR, TEXT) | (TEXT, VARCHAR) => Some(Expr::Relabel(Box::new(value.clone()), ty)),
        (TEXT | VARCHAR, NAME) if matches!(value, Expr::Const(..)) => {
            Some(Expr::Relabel(Box::new(value.clone()), ty))
        }
        _ => None,
    }
}

fn integer_as(value: &Expr, from: base::Oid, ty: base::Oid, wider: bool, op: &str) -> Option<Expr> {
    if let Expr::Const(datum, _) = value {
        let number = match datum {
            Datum::Int2(v) => i64::from(*v),
            Datum::Int4(v) => i64::from(*v),
            Datum::Int8(v) => *v,
            Datum::Null => return Some(Expr::Const(Datum::Null, ty)),
            _ => return None,
        };
        let cast = match ty {
            INT2 => Datum::Int2(i16::try_from(number).ok()?),
            INT4 => Datum::Int4(i32::try_from(number).ok()?),
            _ => Datum::Int8(number),
        };
        return Some(Expr::Const(cast, ty));
    }
    let cast = call_cast(value.clone(), from, ty)?;
    if wider {
        return Some(cast);
    }
    if op != "=" {
        return None;
    }
    // A value outside of the column's range equals nothing: NULL says so.
    let (low, high) = match ty {
        INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        _ => (i64::from(i32::MIN), i64::from(i32::MAX)),
    };
    let bound = |name: &str, n: i64| {
        let limit = match from {
            INT4 => Expr::Const(Datum::Int4(n as i32), INT4),
            _ => Expr::Const(Datum::Int8(n), INT8),
        };
        let row = crate::bind::operator::exact(name, from, from)?;
        let function = types::func::function(row.function)?;
        let args = vec![value.clone(), limit].into_boxed_slice();
        Some(Expr::Call { function, args, ty: BOOL, position: 0 })
    };
    let test = Expr::And(vec![bound(">=", low)?, bound("<=", high)?]);
    Some(Expr::Case {
        arms: vec![(test, cast)],
        default: Box::new(Expr::Const(Datum::Null, ty)),
        ty,
    })
}

fn call_cast(value: Expr, from: base::Oid, to: base::Oid) -> Option<Expr> {
    let row = types::func::cast(from, to)?;
    match row.method {
        CastMethod::Function(oid) => {
            let function = types::func::function(oid)?;
            Some(Expr::Call { function, args: Box::new([value]), ty: to, position: 0 })
        }
        CastMethod::Binary => Some(Expr::Relabel(Box::new(value), to)),
        CastMethod::InOut => None,
    }
}

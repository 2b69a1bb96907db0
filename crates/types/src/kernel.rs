//! Functions over whole columns: comparisons and arithmetic of the common types, without a datum
//! in between.
//!
//! A kernel computes all rows, NULL where an argument is; what stands at a NULL's place in a
//! vector is never looked at by an operation that can fail. Where a column isn't stored as the
//! kernel expects it answers `None`, and the caller goes row by row.

mod decimal;
mod pattern;

use std::collections::HashMap;
use std::sync::OnceLock;

use base::{Oid, Result};

use crate::batch::{Column, Vector};
use crate::datum::{Datum, Text};
use crate::func::{self, division_by_zero, out_of_range};
use crate::order::{compare_floats, trim_bpchar};

/// An argument: one value a row, or one for all.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// One a row.
    Column(&'a Column),
    /// One for all.
    Value(&'a Datum),
}

/// Computes a function of two arguments for `rows` rows.
pub type VectorBody = fn(Operand<'_>, Operand<'_>, usize) -> Result<Option<Column>>;

/// The kernel of a function, by its oid.
pub fn kernel(function: Oid) -> Option<VectorBody> {
    static KERNELS: OnceLock<HashMap<Oid, VectorBody>> = OnceLock::new();
    let kernels = KERNELS.get_or_init(|| {
        let known = named().into_iter();
        known
            .flat_map(|(name, body)| {
                func::functions_named(name).iter().map(move |row| (row.oid, body))
            })
            .chain([(EXTRACT_DATE, extract_date as VectorBody)])
            .collect()
    });
    kernels.get(&function).copied()
}

/// A type that vectors hold in the open.
trait Lane {
    /// The item that an operation sees.
    type Item<'a>: Copy;
    /// The item that the vector holds.
    type Stored;
    fn stored(data: &Vector) -> Option<&[Self::Stored]>;
    fn item(stored: &Self::Stored) -> Self::Item<'_>;
    fn value(datum: &Datum) -> Option<Self::Item<'_>>;
}

macro_rules! lane {
    ($ty:ty, $vector:ident, $($datum:ident)|+) => {
        impl Lane for $ty {
            type Item<'a> = $ty;
            type Stored = $ty;
            fn stored(data: &Vector) -> Option<&[$ty]> {
                match data {
                    Vector::$vector(v) => Some(v),
                    _ => None,
                }
            }
            #[inline]
            fn item(stored: &$ty) -> $ty {
                *stored
            }
            fn value(datum: &Datum) -> Option<$ty> {
                match datum {
                    $(Datum::$datum(v) => Some(*v),)+
                    _ => None,
                }
            }
        }
    };
}
lane!(bool, Bool, Bool);
lane!(i16, Int2, Int2);
lane!(i32, Int4, Int4 | Date);
lane!(i64, Int8, Int8 | Time | Timestamp | Timestamptz);
lane!(f64, Float8, Float8);

impl Lane for Text {
    type Item<'a> = &'a [u8];
    type Stored = Text;
    fn stored(data: &Vector) -> Option<&[Text]> {
        match data {
            Vector::Text(v) => Some(v),
            _ => None,
        }
    }
    #[inline]
    fn item(stored: &Text) -> &[u8] {
        stored.as_bytes()
    }
    fn value(datum: &Datum) -> Option<&[u8]> {
        match datum {
            Datum::Text(s) => Some(s.as_bytes()),
            _ => None,
        }
    }
}

/// Texts without the blanks that don't count.
struct Blank;

impl Lane for Blank {
    type Item<'a> = &'a [u8];
    type Stored = Text;
    fn stored(data: &Vector) -> Option<&[Text]> {
        match data {
            Vector::Bpchar(v) => Some(v),
            _ => None,
        }
    }
    #[inline]
    fn item(stored: &Text) -> &[u8] {
        trim_bpchar(stored).as_bytes()
    }
    fn value(datum: &Datum) -> Option<&[u8]> {
        match datum {
            Datum::Bpchar(s) => Some(trim_bpchar(s).as_bytes()),
            _ => None,
        }
    }
}

/// Microseconds of a date's midnight, of whatever date, with the infinities at the ends.
#[inline]
fn wide_midnight(date: i32) -> i128 {
    match date {
        i32::MIN => i128::MIN,
        i32::MAX => i128::MAX,
        days => i128::from(days) * 86_400_000_000,
    }
}

/// A timestamp with the infinities at the ends.
#[inline]
fn wide_instant(micros: i64) -> i128 {
    match micros {
        i64::MIN => i128::MIN,
        i64::MAX => i128::MAX,
        micros => i128::from(micros),
    }
}

/// `extract(year from date)`: a kernel by oid, since functions of that name take other types too.
const EXTRACT_DATE: Oid = Oid(6199);

fn extract_date(a: Operand<'_>, b: Operand<'_>, _rows: usize) -> Result<Option<Column>> {
    let (Operand::Value(Datum::Text(field)), Operand::Column(column)) = (a, b) else {
        return Ok(None);
    };
    let Vector::Int4(days) = &column.data else { return Ok(None) };
    if field != "year" {
        return Ok(None);
    }
    let year = |day: &i32| crate::datetime::civil_of(i64::from(*day)).0;
    // The infinities and the years before Christ have rules of their own.
    if days.iter().any(|d| matches!(*d, i32::MIN | i32::MAX) || year(d) < 1) {
        return Ok(None);
    }
    let data = Vector::Numeric(days.iter().map(year).collect(), 0);
    Ok(Some(Column { data, nulls: column.nulls.clone() }))
}

/// Which rows of the result are NULL; empty when none is.
fn nulls(a: Operand<'_>, b: Operand<'_>) -> Vec<bool> {
    let of = |o| match o {
        Operand::Column(c) => c.nulls.as_slice(),
        Operand::Value(_) => &[],
    };
    match (of(a), of(b)) {
        (x, []) => x.to_vec(),
        ([], y) => y.to_vec(),
        (x, y) => x.iter().zip(y).map(|(x, y)| *x || *y).collect(),
    }
}

/// A column of NULLs, if one side is NULL for all rows.
fn all_null(
    a: Operand<'_>,
    b: Operand<'_>,
    rows: usize,
    empty: fn(usize) -> Vector,
) -> Option<Column> {
    let null = |o| matches!(o, Operand::Value(Datum::Null));
    (null(a) || null(b)).then(|| Column { data: empty(rows), nulls: vec![true; rows] })
}

/// Applies an operation that can't fail to each pair.
#[inline]
fn map<L: Lane, R: Lane, O>(
    a: Operand<'_>,
    b: Operand<'_>,
    rows: usize,
    op: impl Fn(L::Item<'_>, R::Item<'_>) -> O,
) -> Option<Vec<O>> {
    Some(match (a, b) {
        (Operand::Column(x), Operand::Column(y)) => {
            let (x, y) = (L::stored(&x.data)?, R::stored(&y.data)?);
            x.iter().zip(y).map(|(x, y)| op(L::item(x), R::item(y))).collect()
        }
        (Operand::Column(x), Operand::Value(y)) => {
            let (x, y) = (L::stored(&x.data)?, R::value(y)?);
            x.iter().map(|x| op(L::item(x), y)).collect()
        }
        (Operand::Value(x), Operand::Column(y)) => {
            let (x, y) = (L::value(x)?, R::stored(&y.data)?);
            y.iter().map(|y| op(x, R::item(y))).collect()
        }
        (Operand::Value(x), Operand::Value(y)) => {
            let (x, y) = (L::value(x)?, R::value(y)?);
            (0..rows).map(|_| op(x, y)).collect()
        }
    })
}

fn test<L: Lane, R: Lane>(
    a: Operand<'_>,
    b: Operand<'_>,
    rows: usize,
    op: impl Fn(L::Item<'_>, R::Item<'_>) -> bool,
) -> Result<Option<Column>> {
    if let Some(column) = all_null(a, b, rows, |n| Vector::Bool(vec![false; n])) {
        return Ok(Some(column));
    }
    let data = map::<L, R, bool>(a, b, rows, op);
    Ok(data.map(|v| Column { data: Vector::Bool(v), nulls: nulls(a, b) }))
}

/// Applies an operation that fails for some pairs; the first failure in a row that counts is
/// reported.
fn try_map<L: Lane, R: Lane, O: Copy + Default>(
    a: Operand<'_>,
    b: Operand<'_>,
    rows: usize,
    wrap: fn(Vec<O>) -> Vector,
    op: impl Fn(L::Item<'_>, R::Item<'_>) -> Option<O>,
    fail: impl Fn(L::Item<'_>, R::Item<'_>) -> base::Error,
) -> Result<Option<Column>> {
    if let Operand::Value(Datum::Null) = a {
        return Ok(Some(Column { data: wrap(vec![O::default(); rows]), nulls: vec![true; rows] }));
    }
    if let Operand::Value(Datum::Null) = b {
        return Ok(Some(Column { data: wrap(vec![O::default(); rows]), nulls: vec![true; rows] }));
    }
    let nulls = nulls(a, b);
    let row = std::cell::Cell::new(0usize);
    let failed = std::cell::RefCell::new(None);
    let data = map::<L, R, O>(a, b, rows, |x, y| {
        let at = row.get();
        row.set(at + 1);
        op(x, y).unwrap_or_else(|| {
            let counts = nulls.get(at) != Some(&true);
            if counts && failed.borrow().is_none() {
                *failed.borrow_mut() = Some(fail(x, y));
            }
            O::default()
        })
    });
    match failed.into_inner() {
        Some(e) => Err(e),
        None => Ok(data.map(|v| Column { data: wrap(v), nulls })),
    }
}

macro_rules! comparisons {
    ($all:ident, $l:ty, $r:ty, $names:expr, |$x:ident, $y:ident| $order:expr) => {
        let names: [&'static str; 6] = $names;
        $all.push((names[0], |a, b, n| test::<$l, $r>(a, b, n, |$x, $y| $order.is_eq())));
        $all.push((names[1], |a, b, n| test::<$l, $r>(a, b, n, |$x, $y| $order.is_ne())));
        $all.push((names[2], |a, b, n| test::<$l, $r>(a, b, n, |$x, $y| $order.is_lt())));
        $all.push((names[3], |a, b, n| test::<$l, $r>(a, b, n, |$x, $y| $order.is_le())));
        $all.push((names[4], |a, b, n| test::<$l, $r>(a, b, n, |$x, $y| $order.is_gt())));
        $all.push((names[5], |a, b, n| test::<$l, $r>(a, b, n, |$x, $y| $order.is_ge())));
    };
}

/// The six names of a type's comparisons.
macro_rules! six {
    ($p:literal) => {
        [
            concat!($p, "eq"),
            concat!($p, "ne"),
            concat!($p, "lt"),
            concat!($p, "le"),
            concat!($p, "gt"),
            concat!($p, "ge"),
        ]
    };
}

macro_rules! integer_arithmetic {
    ($all:ident, $p:literal, $l:ty, $r:ty, $t:ty, $vector:ident, $kind:literal) => {
        $all.push((concat!($p, "pl"), |a, b, n| {
            try_map::<$l, $r, $t>(
                a,
                b,
                n,
                Vector::$vector,
                |x, y| <$t>::from(x).checked_add(<$t>::from(y)),
                |_, _| out_of_range($kind),
            )
        }));
        $all.push((concat!($p, "mi"), |a, b, n| {
            try_map::<$l, $r, $t>(
                a,
                b,
                n,
                Vector::$vector,
                |x, y| <$t>::from(x).checked_sub(<$t>::from(y)),
                |_, _| out_of_range($kind),
            )
        }));
        $all.push((concat!($p, "mul"), |a, b, n| {
            try_map::<$l, $r, $t>(
                a,
                b,
                n,
                Vector::$vector,
                |x, y| <$t>::from(x).checked_mul(<$t>::from(y)),
                |_, _| out_of_range($kind),
            )
        }));
        $all.push((concat!($p, "div"), |a, b, n| {
            try_map::<$l, $r, $t>(
                a,
                b,
                n,
                Vector::$vector,
                |x, y| <$t>::from(x).checked_div(<$t>::from(y)),
                |_, y| if y == 0 { division_by_zero() } else { out_of_range($kind) },
            )
        }));
    };
}

macro_rules! float_arithmetic {
    ($all:ident, $name:literal, |$x:ident, $y:ident| $op:expr) => {
        $all.push(($name, |a, b, n| {
            // Whatever looks like an overflow, underflow or division by zero is computed again row
            // by row, which knows the exact rules.
            let bad = std::cell::Cell::new(false);
            let column = try_map::<f64, f64, f64>(
                a,
                b,
                n,
                Vector::Float8,
                |$x, $y| {
                    let v: f64 = $op;
                    if !v.is_finite() || v == 0.0 {
                        bad.set(true);
                    }
                    Some(v)
                },
                |_, _| division_by_zero(),
            )?;
            Ok(column.filter(|_| !bad.get()))
        }));
    };
}

fn named() -> Vec<(&'static str, VectorBody)> {
    let mut all: Vec<(&'static str, VectorBody)> = Vec::new();
    comparisons!(all, i16, i16, six!("int2"), |x, y| x.cmp(&y));
    comparisons!(all, i32, i32, six!("int4"), |x, y| x.cmp(&y));
    comparisons!(all, i64, i64, six!("int8"), |x, y| x.cmp(&y));
    comparisons!(all, i16, i32, six!("int24"), |x, y| i32::from(x).cmp(&y));
    comparisons!(all, i32, i16, six!("int42"), |x, y| x.cmp(&i32::from(y)));
    comparisons!(all, i16, i64, six!("int28"), |x, y| i64::from(x).cmp(&y));
    comparisons!(all, i64, i16, six!("int82"), |x, y| x.cmp(&i64::from(y)));
    comparisons!(all, i32, i64, six!("int48"), |x, y| i64::from(x).cmp(&y));
    comparisons!(all, i64, i32, six!("int84"), |x, y| x.cmp(&i64::from(y)));
    comparisons!(all, i32, i32, six!("date_"), |x, y| x.cmp(&y));
    comparisons!(all, i64, i64, six!("time_"), |x, y| x.cmp(&y));
    comparisons!(all, i64, i64, six!("timestamp_"), |x, y| x.cmp(&y));
    comparisons!(all, i64, i64, six!("timestamptz_"), |x, y| x.cmp(&y));
    comparisons!(all, bool, bool, six!("bool"), |x, y| x.cmp(&y));
    comparisons!(all, f64, f64, six!("float8"), |x, y| compare_floats(x, y));
    comparisons!(
        all,
        Text,
        Text,
        ["texteq", "textne", "text_lt", "text_le", "text_gt", "text_ge"],
        |x, y| x.cmp(y)
    );
    comparisons!(all, Text, Text, six!("name"), |x, y| x.cmp(y));
    comparisons!(all, Blank, Blank, six!("bpchar"), |x, y| x.cmp(y));
    comparisons!(
        all,
        i32,
        i64,
        [
            "date_eq_timestamp",
            "date_ne_timestamp",
            "date_lt_timestamp",
            "date_le_timestamp",
            "date_gt_timestamp",
            "date_ge_timestamp"
        ],
        |x, y| wide_midnight(x).cmp(&wide_instant(y))
    );
    all.extend(decimal::named());
    all.extend(pattern::named());
    integer_arithmetic!(all, "int2", i16, i16, i16, Int2, "smallint");
    integer_arithmetic!(all, "int4", i32, i32, i32, Int4, "integer");
    integer_arithmetic!(all, "int8", i64, i64, i64, Int8, "bigint");
    integer_arithmetic!(all, "int24", i16, i32, i32, Int4, "integer");
    integer_arithmetic!(all, "int42", i32, i16, i32, Int4, "integer");
    integer_arithmetic!(all, "int28", i16, i64, i64, Int8, "bigint");
    integer_arithmetic!(all, "int82", i64, i16, i64, Int8, "bigint");
    integer_arithmetic!(all, "int48", i32, i64, i64, Int8, "bigint");
    integer_arithmetic!(all, "int84", i64, i32, i64, Int8, "bigint");
    float_arithmetic!(all, "float8pl", |x, y| x + y);
    float_arithmetic!(all, "float8mi", |x, y| x - y);
    float_arithmetic!(all, "float8mul", |x, y| x * y);
    float_arithmetic!(all, "float8div", |x, y| x / y);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::func::{Body, FunctionRow};
    use crate::io::FormatContext;
    use crate::testing::{Random, random_value};

    fn column(ty: Oid, values: &[Datum]) -> Column {
        let mut c = Column::new(ty);
        values.iter().for_each(|v| c.push(v.clone()).unwrap());
        c
    }

    fn by_rows(
        f: &FunctionRow,
        a: &[Datum],
        b: &[Datum],
    ) -> std::result::Result<Vec<Datum>, String> {
        let Body::Scalar(body) = f.body else { panic!("{} is scalar", f.name) };
        let cx = FormatContext::default();
        a.iter()
            .zip(b)
            .map(|(a, b)| {
                if a.is_null() || b.is_null() {
                    return Ok(Datum::Null);
                }
                body(&[a.clone(), b.clone()], &cx).map_err(|e| e.message().to_owned())
            })
            .collect()
    }

    #[test]
    fn kernels_answer_as_the_scalar_functions_do() {
        let mut random = Random::new(21);
        let mut tried = 0;
        for (name, body) in named() {
            for f in func::functions_named(name) {
                let values = |ty: Oid, random: &mut Random| -> Vec<Datum> {
                    (0..17)
                        .map(|_| {
                            if random.below(6) == 0 {
                                Datum::Null
                            } else {
                                random_value(ty, random)
                            }
                        })
                        .collect()
                };
                for _ in 0..20 {
                    let (a, b) = (values(f.args[0], &mut random), values(f.args[1], &mut random));
                    let (x, y) = (column(f.args[0], &a), column(f.args[1], &b));
                    let fixed = vec![b[0].clone(); a.len()];
                    for (right, b) in [(Operand::Column(&y), &b), (Operand::Value(&b[0]), &fixed)] {
                        let got = match body(Operand::Column(&x), right, a.len()) {
                            Ok(None) => continue,
                            Ok(Some(c)) => {
                                Ok((0..a.len()).map(|r| c.get(r, f.result)).collect::<Vec<_>>())
                            }
                            Err(e) => Err(e.message().to_owned()),
                        };
                        let wanted = by_rows(f, &a, b);
                        assert_eq!(format!("{got:?}"), format!("{wanted:?}"), "{name}");
                        tried += 1;
                    }
                }
            }
        }
        assert!(tried > 2000, "{tried} comparisons were made");
        assert!(kernel(Oid(65)).is_some(), "int4eq has a kernel");
    }
}

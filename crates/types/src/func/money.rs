//! Functions of money.

use base::{Result, err};

use super::aggregate::{as_any, same};
use super::{Accumulator, NamedBody, S, division_by_zero};
use crate::datum::{Datum, Numeric};

fn money(v: i64) -> Datum {
    Datum::Money(v)
}

#[cold]
fn out_of_range() -> base::Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "money out of range")
}

fn checked(v: Option<i64>) -> Result<Datum> {
    v.map(money).ok_or_else(out_of_range)
}

/// The number behind an integer or float argument.
fn float(d: &Datum) -> f64 {
    match d {
        Datum::Float4(v) => f64::from(*v),
        Datum::Float8(v) => *v,
        other => other.to_i64().unwrap_or(0) as f64,
    }
}

fn rounded(v: f64) -> Result<Datum> {
    let v = v.round_ties_even();
    if v.is_nan() || !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&v) {
        return Err(out_of_range());
    }
    Ok(money(v as i64))
}

fn times(m: &Datum, by: &Datum) -> Result<Datum> {
    match by {
        Datum::Float4(_) | Datum::Float8(_) => rounded(m.as_money() as f64 * float(by)),
        other => checked(m.as_money().checked_mul(other.to_i64().unwrap_or(0))),
    }
}

fn over(m: &Datum, by: &Datum) -> Result<Datum> {
    match by {
        Datum::Float4(_) | Datum::Float8(_) if float(by) == 0.0 => Err(division_by_zero()),
        Datum::Float4(_) | Datum::Float8(_) => rounded(m.as_money() as f64 / float(by)),
        other => match other.to_i64().unwrap_or(0) {
            0 => Err(division_by_zero()),
            by => checked(m.as_money().checked_div(by)),
        },
    }
}

const ONES: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] =
    ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// A number below 1000 in words.
fn small_words(v: u64) -> String {
    let below = |v: u64| match v {
        0..20 => ONES[v as usize].to_owned(),
        v if v % 10 == 0 => TENS[(v / 10) as usize].to_owned(),
        v => format!("{} {}", TENS[(v / 10) as usize], ONES[(v % 10) as usize]),
    };
    match (v / 100, v % 100) {
        (0, rest) => below(rest),
        (hundreds, 0) => format!("{} hundred", ONES[hundreds as usize]),
        (hundreds, rest) => format!("{} hundred {}", ONES[hundreds as usize], below(rest)),
    }
}

fn words(v: i64) -> String {
    const POWERS: [&str; 7] =
        ["", " thousand", " million", " billion", " trillion", " quadrillion", " quintillion"];
    let dollars = v.unsigned_abs() / 100;
    let cents = v.unsigned_abs() % 100;
    // A power of thousand is followed by a blank, whether anything comes after it or not.
    let mut number = String::new();
    let (mut rest, mut power) = (dollars, 0);
    while rest > 0 {
        match (rest % 1000, power) {
            (0, _) => {}
            (group, 0) => number = small_words(group),
            (group, _) => {
                number = format!("{}{} {number}", small_words(group), POWERS[power]);
            }
        }
        rest /= 1000;
        power += 1;
    }
    if number.is_empty() {
        number.push_str("zero");
    }
    let mut text = format!(
        "{}{number} dollar{} and {} cent{}",
        if v < 0 { "minus " } else { "" },
        if dollars == 1 { "" } else { "s" },
        small_words(cents),
        if cents == 1 { "" } else { "s" }
    );
    text[..1].make_ascii_uppercase();
    text
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    vec![
        ("cash_pl", S(|a, _| checked(a[0].as_money().checked_add(a[1].as_money())))),
        ("cash_mi", S(|a, _| checked(a[0].as_money().checked_sub(a[1].as_money())))),
        ("cash_mul_flt4", S(|a, _| times(&a[0], &a[1]))),
        ("cash_mul_flt8", S(|a, _| times(&a[0], &a[1]))),
        ("cash_mul_int2", S(|a, _| times(&a[0], &a[1]))),
        ("cash_mul_int4", S(|a, _| times(&a[0], &a[1]))),
        ("cash_mul_int8", S(|a, _| times(&a[0], &a[1]))),
        ("flt4_mul_cash", S(|a, _| times(&a[1], &a[0]))),
        ("flt8_mul_cash", S(|a, _| times(&a[1], &a[0]))),
        ("int2_mul_cash", S(|a, _| times(&a[1], &a[0]))),
        ("int4_mul_cash", S(|a, _| times(&a[1], &a[0]))),
        ("int8_mul_cash", S(|a, _| times(&a[1], &a[0]))),
        ("cash_div_flt4", S(|a, _| over(&a[0], &a[1]))),
        ("cash_div_flt8", S(|a, _| over(&a[0], &a[1]))),
        ("cash_div_int2", S(|a, _| over(&a[0], &a[1]))),
        ("cash_div_int4", S(|a, _| over(&a[0], &a[1]))),
        ("cash_div_int8", S(|a, _| over(&a[0], &a[1]))),
        (
            "cash_div_cash",
            S(|a, _| match a[1].as_money() {
                0 => Err(division_by_zero()),
                by => Ok((a[0].as_money() as f64 / by as f64).into()),
            }),
        ),
        ("cash_words", S(|a, _| Ok(words(a[0].as_money()).into()))),
        ("int4_cash", S(|a, _| checked(i64::from(a[0].as_int4()).checked_mul(100)))),
        ("int8_cash", S(|a, _| checked(a[0].as_int8().checked_mul(100)))),
        (
            "numeric_cash",
            S(|a, _| {
                let what = if a[0].as_numeric().is_nan() { "NaN" } else { "infinity" };
                if !a[0].as_numeric().is_finite() {
                    return Err(err!(FEATURE_NOT_SUPPORTED, "cannot convert {what} to money"));
                }
                let hundred = Numeric::from(100);
                let n = a[0].as_numeric().mul(&hundred)?.round(0);
                n.to_i64().map(money).ok_or_else(|| super::out_of_range("bigint"))
            }),
        ),
        ("cash_numeric", S(|a, _| Ok(Numeric::new(a[0].as_money(), 2).into()))),
    ]
}

/// `sum(money)`.
#[derive(Default)]
pub(super) struct SumMoney(Option<i64>);

impl Accumulator for SumMoney {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let sum = self.0.unwrap_or(0).checked_add(args[0].as_money()).ok_or_else(out_of_range)?;
        self.0 = Some(sum);
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        same::<SumMoney>(other)?.0.map_or(Ok(()), |v| self.add(&[money(v)]))
    }
    fn finish(&self) -> Result<Datum> {
        Ok(self.0.map_or(Datum::Null, money))
    }
    as_any!();
}

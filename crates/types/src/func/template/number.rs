//! Templates of numbers.

use base::{Result, err};

use super::{ordinal, roman};
use crate::bulk::Pace;
use crate::datum::{Datum, Numeric};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Node {
    /// `9` or `0`: a digit's place, and whether zeros are shown there.
    Digit(bool),
    Point,
    Group,
    /// `S`: the sign beside the number.
    Sign,
    /// `MI`, `PL`, `SG`: a sign at this place.
    Minus,
    Plus,
    PlusMinus,
    Currency,
    Ordinal(bool),
    Text(char),
}

impl Node {
    /// A bit for each kind of node of which the template must know whether there is one.
    fn bit(self) -> u8 {
        match self {
            Node::Point => 1,
            Node::Sign => 2,
            Node::Minus => 4,
            Node::Plus => 8,
            Node::PlusMinus => 16,
            _ => 0,
        }
    }
}

#[derive(Default)]
struct Template {
    nodes: Vec<Node>,
    /// Which kinds of signs, and whether a point, are among them: see [`Node::bit`].
    kinds: u8,
    fill_mode: bool,
    brackets: bool,
    roman: Option<bool>,
    exponent: bool,
    /// Digits behind `V`: the number is multiplied by as many tens.
    shift: Option<usize>,
    before: usize,
    after: usize,
}

fn starts(s: &str, key: &str) -> bool {
    s.len() >= key.len() && s.as_bytes()[..key.len()].eq_ignore_ascii_case(key.as_bytes())
}

const SHIFT_AND_POINT: &str = "cannot use \"V\" and decimal point together";

/// Digits that a number of this kind has at most; `exact`: of type numeric.
#[derive(Clone, Copy, Default)]
pub(super) struct Precision {
    pub digits: Option<usize>,
    pub exact: bool,
    /// The largest value of an integer's type, which `V` must not lead beyond, and the type's name.
    pub integer: Option<(i64, &'static str)>,
}

fn syntax(message: &str) -> base::Error {
    err!(SYNTAX_ERROR, "{message}")
}

impl Template {
    fn push(&mut self, node: Node) {
        self.kinds |= node.bit();
        self.nodes.push(node);
    }

    fn parse(text: &str) -> Result<Template> {
        let mut t = Template::default();
        let mut rest = text;
        let (mut point, mut signs) = (false, 0);
        let mut pace = Pace::default();
        while let Some(c) = rest.chars().next() {
            pace.step()?;
            if let Some(quoted) = rest.strip_prefix('"') {
                let end = quoted.find('"').unwrap_or(quoted.len());
                for c in quoted[..end].chars() {
                    pace.step()?;
                    t.nodes.push(Node::Text(c));
                }
                rest = quoted.get(end + 1..).unwrap_or("");
                continue;
            }
            if let Some(after) = rest.strip_prefix("\\\"") {
                t.push(Node::Text('"'));
                rest = after;
                continue;
            }
            let before = t.nodes.len();
            let mut used = 1;
            match c {
                '9' | '0' if t.brackets => {
                    return Err(syntax(&format!("\"{c}\" must be ahead of \"PR\"")));
                }
                '9' | '0' => {
                    t.push(Node::Digit(c == '0'));
                    match (&mut t.shift, point) {
                        (Some(n), _) => *n += 1,
                        (None, true) => t.after += 1,
                        (None, false) => t.before += 1,
                    }
                }
                '.' | 'D' | 'd' => {
                    if point {
                        return Err(syntax("multiple decimal points"));
                    }
                    if t.shift.is_some() {
                        return Err(syntax(SHIFT_AND_POINT));
                    }
                    point = true;
                    t.push(Node::Point);
                }
                ',' | 'G' | 'g' => t.push(Node::Group),
                // Letters of the pattern's language that mean nothing yet.
                'B' | 'b' | 'C' | 'c' => {}
                'V' | 'v' if point => return Err(syntax(SHIFT_AND_POINT)),
                'V' | 'v' => t.shift = Some(0),
                'L' | 'l' => t.push(Node::Currency),
                _ => {
                    used = 2;
                    let two = [
                        ("FM", 0),
                        ("MI", 1),
                        ("PL", 2),
                        ("SG", 3),
                        ("PR", 4),
                        ("RN", 5),
                        ("TH", 6),
                        ("SP", 7),
                    ];
                    if starts(rest, "EEEE") {
                        used = 4;
                        t.take_exponent()?;
                    } else if let Some((_, which)) = two.iter().find(|(k, _)| starts(rest, k)) {
                        t.check_sign(*which)?;
                        match which {
                            0 => t.fill_mode = true,
                            1 => t.push(Node::Minus),
                            2 => t.push(Node::Plus),
                            3 => t.push(Node::PlusMinus),
                            4 => t.brackets = true,
                            5 => t.roman = Some(rest.starts_with('R')),
                            7 => {}
                            _ => t.push(Node::Ordinal(rest.starts_with('T'))),
                        }
                    } else if matches!(c, 'S' | 's') {
                        used = 1;
                        signs += 1;
                        if signs > 1 {
                            return Err(syntax("cannot use \"S\" twice"));
                        }
                        if t.brackets || t.has_sign() {
                            return Err(syntax(
                                "cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together",
                            ));
                        }
                        t.push(Node::Sign);
                    } else {
                        used = c.len_utf8();
                        t.push(Node::Text(c));
                    }
                }
            }
            let key = t.nodes.get(before..).unwrap_or_default();
            let more = !matches!(key, [Node::Text(_)]);
            if t.exponent && !starts(rest, "EEEE") && more {
                return Err(syntax("\"EEEE\" must be the last pattern used"));
            }
            rest = &rest[used..];
        }
        Ok(t)
    }

    fn has_sign(&self) -> bool {
        [Node::Minus, Node::Plus, Node::PlusMinus].iter().any(|n| self.has(*n))
    }

    /// EEEE goes with digits and a point, nothing else.
    fn take_exponent(&mut self) -> Result<()> {
        if self.exponent {
            return Err(syntax("cannot use \"EEEE\" twice"));
        }
        if self.fill_mode
            || self.brackets
            || self.roman.is_some()
            || self.shift.is_some()
            || self.has_sign()
            || self.has(Node::Sign)
        {
            return Err(syntax("\"EEEE\" is incompatible with other formats").detail(
                "\"EEEE\" may only be used together with digit and decimal point patterns.",
            ));
        }
        self.exponent = true;
        Ok(())
    }

    /// MI, PL, SG and PR (by their numbers in the list) beside signs of other kinds.
    fn check_sign(&self, which: i32) -> Result<()> {
        let word = match which {
            1 => "MI",
            2 => "PL",
            3 => "SG",
            4 if self.has(Node::Sign) || self.has_sign() => {
                return Err(syntax("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
            }
            _ => return Ok(()),
        };
        if self.has(Node::Sign) {
            return Err(syntax(&format!("cannot use \"S\" and \"{word}\" together")));
        }
        Ok(())
    }

    /// NaN has nothing from the point on.
    fn without_fraction(mut self) -> Template {
        if let Some(point) = self.nodes.iter().position(|n| *n == Node::Point) {
            let rest = self.nodes.split_off(point);
            self.nodes.extend(
                rest.into_iter()
                    .filter(|n| !matches!(n, Node::Point | Node::Digit(_) | Node::Group)),
            );
        }
        self.after = 0;
        self
    }

    fn has(&self, node: Node) -> bool {
        self.kinds & node.bit() != 0
    }
}

/// Shows a number by a template.
///
/// # Errors
/// `42601` for a template that can't be.
pub(super) fn format(template: &str, n: &Numeric, precision: Precision) -> Result<String> {
    let mut t = Template::parse(template)?;
    if let Some(upper) = t.roman {
        if !n.is_finite() && precision.exact {
            let what = if n.is_nan() { "NaN" } else { "infinity" };
            return Err(err!(FEATURE_NOT_SUPPORTED, "cannot convert {what} to integer"));
        }
        return Ok(as_roman(&t, n, upper));
    }
    if t.exponent {
        return Ok(as_scientific(&t, n, precision.exact));
    }
    let value = match t.shift {
        Some(tens) if precision.integer.is_some() => shifted(n, tens, precision.integer)?,
        Some(tens) if n.is_finite() => {
            n.mul(&Numeric::from(10).pow(&Numeric::from(tens as i64))?.trunc(0))?
        }
        _ => n.clone(),
    };
    let before = t.before + t.shift.unwrap_or(0);
    if let Some(digits) = precision.digits.filter(|_| value.is_finite()) {
        let whole = value.abs().round(0).to_string().len();
        t.after = t.after.min(digits.saturating_sub(whole));
    }
    let rounded = value.round(t.after as i32);
    let negative = rounded.signum() < 0;
    let text = if rounded.is_finite() { rounded.abs().to_string() } else { String::new() };
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let nan = rounded.is_nan() && before >= 3;
    let whole = if nan { "NaN" } else { whole };
    let overflow = !nan && (!rounded.is_finite() || whole.len() > before);
    let (whole, fraction) = if overflow {
        ("#".repeat(before), "#".repeat(t.after))
    } else {
        (whole.to_owned(), fraction.to_owned())
    };
    let t = if nan { t.without_fraction() } else { t };
    let zero = rounded.is_zero();
    Layout { t: &t, negative, overflow, zero, before, whole, fraction }.run()
}

/// An integer times as many tens as digits stand behind `V`.
fn shifted(n: &Numeric, tens: usize, ty: Option<(i64, &str)>) -> Result<Numeric> {
    let Some((largest, name)) = ty else { return Ok(n.clone()) };
    let whole = |n: &Numeric| n.to_string().parse::<i128>().ok();
    let factor = u32::try_from(tens).ok().and_then(|tens| 10_i128.checked_pow(tens));
    let fits = |v: &i128| (-i128::from(largest) - 1..=i128::from(largest)).contains(v);
    let product = match (whole(n), factor.filter(fits)) {
        (Some(n), Some(factor)) => n.checked_mul(factor).filter(fits),
        _ => None,
    };
    let product = product.and_then(|v| i64::try_from(v).ok());
    product
        .map(Numeric::from)
        .ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE, "{name} out of range"))
}

struct Layout<'a> {
    t: &'a Template,
    negative: bool,
    overflow: bool,
    zero: bool,
    before: usize,
    whole: String,
    fraction: String,
}

impl Layout<'_> {
    fn run(&self) -> Result<String> {
        let t = self.t;
        // The place from which zeros are shown.
        let mut digits: Vec<bool> = Vec::new();
        let mut pace = Pace::default();
        for node in &t.nodes {
            pace.step()?;
            if let Node::Digit(zero) = node {
                digits.push(*zero);
            }
        }
        let zeros_from = digits.iter().position(|z| *z).unwrap_or(usize::MAX);
        // A lone zero before the point is left out unless the template shows zeros.
        let plain_zero = self.zero && t.fill_mode;
        let hide = self.whole == "0"
            && t.after > 0
            && zeros_from == usize::MAX
            && !self.overflow
            && !plain_zero;
        let whole = if hide { "" } else { self.whole.as_str() };
        let lead = self.before.saturating_sub(whole.len());
        let first = lead.min(zeros_from.min(self.before));
        // Under FM zeros at the end go, as far as the template only has 9s there.
        let last_zero = digits.iter().rposition(|z| *z).map_or(0, |i| i + 1);
        let needed = self.fraction.trim_end_matches('0').len();
        let shown = if t.fill_mode {
            needed.max(last_zero.saturating_sub(self.before)).min(self.fraction.len())
        } else {
            self.fraction.len()
        };
        let own_sign = t.has(Node::Minus) || t.has(Node::PlusMinus);
        let mut out = String::new();
        let (mut place, mut signed) = (0, false);
        let sign_at_end = t.nodes.iter().rposition(|n| *n == Node::Sign)
            > t.nodes.iter().position(|n| matches!(n, Node::Digit(_)));
        let front_sign = |out: &mut String| {
            if t.brackets {
                if self.negative {
                    out.push('<')
                } else if !t.fill_mode {
                    out.push(' ')
                }
            } else if t.has(Node::Sign) {
                if !sign_at_end {
                    out.push(if self.negative { '-' } else { '+' });
                }
            } else if !own_sign {
                if self.negative {
                    out.push('-')
                } else if !t.fill_mode {
                    out.push(' ')
                }
            }
        };
        for node in &t.nodes {
            pace.step()?;
            match node {
                Node::Digit(_) if place < self.before => {
                    if place < first {
                        if !t.fill_mode {
                            out.push(' ');
                        }
                    } else {
                        if !signed {
                            front_sign(&mut out);
                            signed = true;
                        }
                        out.push(if place < lead {
                            '0'
                        } else {
                            whole.as_bytes()[place - lead] as char
                        });
                    }
                    place += 1;
                }
                Node::Digit(_) => {
                    let i = place - self.before;
                    if !signed {
                        front_sign(&mut out);
                        signed = true;
                    }
                    if i < shown {
                        out.push(self.fraction.as_bytes()[i] as char);
                    }
                    place += 1;
                }
                Node::Point if t.after == 0 && !self.overflow => {}
                Node::Point => {
                    if !signed {
                        front_sign(&mut out);
                        signed = true;
                    }
                    out.push('.');
                }
                Node::Group => {
                    if place > first || (place >= self.before && (self.before > 0 || t.after > 0)) {
                        out.push(',');
                    } else if !t.fill_mode {
                        out.push(' ');
                    }
                }
                Node::Sign => {
                    if sign_at_end {
                        out.push(if self.negative { '-' } else { '+' });
                    }
                }
                Node::Minus => {
                    if self.negative {
                        out.push('-')
                    } else if !t.fill_mode {
                        out.push(' ')
                    }
                }
                Node::Plus => {
                    if !self.negative {
                        out.push('+')
                    } else if !t.fill_mode {
                        out.push(' ')
                    }
                }
                Node::PlusMinus => out.push(if self.negative { '-' } else { '+' }),
                Node::Currency => out.push(' '),
                Node::Ordinal(upper) => {
                    if !self.negative && !self.overflow && t.after == 0 {
                        let th = ordinal(&self.whole);
                        out.push_str(&if *upper { th.to_uppercase() } else { th.to_owned() });
                    }
                }
                Node::Text(c) => out.push(*c),
            }
        }
        if t.brackets {
            if self.negative {
                out.push('>')
            } else if !t.fill_mode {
                out.push(' ')
            }
        }
        Ok(out)
    }
}

fn as_roman(t: &Template, n: &Numeric, upper: bool) -> String {
    let value = n.to_i64().unwrap_or(0);
    let text = if (1..=3999).contains(&value) { roman(value) } else { "#".repeat(15) };
    let text = if upper { text } else { text.to_lowercase() };
    if t.fill_mode { text } else { format!("{text:>15}") }
}

fn as_scientific(t: &Template, n: &Numeric, exact: bool) -> String {
    let sign = if n.signum() < 0 { "-" } else { " " };
    if !n.is_finite() {
        return format!(" {}.{}####", "#".repeat(t.before), "#".repeat(t.after));
    }
    let mut exponent = n.magnitude().unwrap_or(0);
    let scaled = |e: i64| {
        let ten = Numeric::from(10).pow(&Numeric::from(e.abs())).unwrap_or(Numeric::ONE);
        let m = if e >= 0 { n.abs().div_to(&ten, t.after as u32) } else { n.abs().mul(&ten) };
        m.map(|m| m.round(t.after as i32)).unwrap_or(Numeric::ZERO)
    };
    let mut mantissa = scaled(exponent);
    // PostgreSQL lets the mantissa of a numeric be rounded up to ten.
    if !exact && mantissa.compare(&Numeric::from(10)).is_ge() {
        exponent += 1;
        mantissa = scaled(exponent);
    }
    let e = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{mantissa}e{e}{:02}", exponent.abs())
}

/// `to_number`: digits, sign and point; the rest of the text is skipped as the template says.
pub(super) fn read(text: &str, template: &str) -> Result<Datum> {
    if template.is_empty() {
        return Ok(Datum::Null);
    }
    let t = Template::parse(template)?;
    for (word, given) in [("RN", t.roman.is_some()), ("EEEE", t.exponent)] {
        if given {
            return Err(err!(FEATURE_NOT_SUPPORTED, "\"{word}\" not supported for input"));
        }
    }
    let mut digits = String::new();
    let (mut negative, mut point, mut before, mut after) = (false, false, 0, 0);
    let mut pace = Pace::default();
    for c in text.chars() {
        pace.step()?;
        match c {
            '-' => negative = true,
            '<' if t.brackets => negative = true,
            '.' if !point && t.has(Node::Point) => {
                point = true;
                digits.push('.');
            }
            '.' => break,
            c if c.is_ascii_digit() => {
                let room = if point { t.after } else { t.before + t.shift.unwrap_or(0) };
                let count = if point { &mut after } else { &mut before };
                if *count == room {
                    break;
                }
                *count += 1;
                digits.push(c);
            }
            _ => {}
        }
    }
    let text = format!("{}{digits}", if negative { "-" } else { "" });
    let n = Numeric::parse(&text)?;
    let n = match t.shift {
        Some(tens) => {
            n.div_to(&Numeric::from(10).pow(&Numeric::from(tens as i64))?, tens as u32)?
        }
        None => n,
    };
    let typmod = crate::numeric::pack_typmod(
        (t.before + t.after + t.shift.unwrap_or(0)) as i32,
        t.after as i32,
    );
    Ok(if t.shift.is_none() { n.apply_typmod(typmod)?.into() } else { n.into() })
}

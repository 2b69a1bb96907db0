//! Running a path over a document.
//!
//! In lax mode arrays are unwrapped where an item is asked for, items are wrapped where an array is,
//! and what is missing is nothing; in strict mode each of these is an error. Within a filter an error
//! makes the condition unknown. An error that `silent` may suppress is [`Stop::Path`]; others
//! ([`Stop::Hard`]) are the statement's.

use std::cmp::Ordering;
use std::sync::Arc;

use base::{Error, Result, err};

use super::{Arithmetic, Comparison, Expr, Head, Method, Path, Step};
use crate::datum::{Datum, Numeric, Text};
use crate::jsonb::Json;
use crate::regex::Regex;

/// Why it ends early.
enum Stop {
    /// The items found so far decide.
    Enough,
    /// The path doesn't fit the document.
    Path(Error),
    /// Whatever `silent` says.
    Hard(Error),
}

type Run<T> = std::result::Result<T, Stop>;

fn fail<T>(error: Error) -> Run<T> {
    Err(Stop::Path(error))
}

/// The regular expression of a `like_regex`.
///
/// # Errors
/// `2201B`; `0A000` for the flag x.
pub(crate) fn regex(pattern: &str, flags: &str) -> Result<Arc<Regex>> {
    if flags.contains('x') && !flags.contains('q') {
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "XQuery \"x\" flag (expanded regular expressions) is not implemented"
        ));
    }
    crate::func::xquery_regex(pattern, flags)
}

struct Context<'a> {
    vars: &'a Json,
    root: &'a Json,
    strict: bool,
    /// A missing part counts as nothing: lax mode, and below `**`.
    forgiving: bool,
    /// The value of `@`.
    current: Option<Json>,
    /// Length of the array whose subscripts are computed.
    size: Option<usize>,
    /// The first item decides.
    first: bool,
    /// The dates and times that `.datetime()` has made.
    moments: Vec<Moment>,
    clock: &'a dyn Clock,
}

/// A date or time, and the zone that was written with it, in seconds east of Greenwich.
pub struct Moment {
    /// Of date, time, timetz, timestamp or timestamptz.
    pub value: Datum,
    /// The zone.
    pub east: Option<i32>,
}

/// How dates and times are read, shown and compared.
pub trait Clock {
    /// Reads a text, by a template if there is one.
    ///
    /// # Errors
    /// `22031` when no template fits; `22007` and `22008` for a text that does not fit the one that is given.
    fn read(&self, text: &str, template: Option<&str>) -> Result<Moment>;
    /// The name that `.type()` gives.
    fn type_name(&self, moment: &Moment) -> &'static str;
    /// ISO 8601, in the zone that was written.
    fn text(&self, moment: &Moment) -> String;
    /// The order of two; None when one has a date and the other has none.
    ///
    /// # Errors
    /// `0A000` when a zone is wanted and must not be used.
    fn order(&self, a: &Moment, b: &Moment) -> Result<Option<Ordering>>;
}

/// The only member of an item that stands for a date or time: a name that no document has. Its value is the place among
/// [`Context::moments`].
const MOMENT: &str = "\0";

/// Items that a path leads to.
///
/// # Errors
/// Class 22 with PostgreSQL's codes, none of them when `silent`; `42704` for a variable that isn't
/// among `vars`; `22023` when `vars` is no object; those of the clock.
pub fn query(
    path: &Path,
    target: &Json,
    (vars, silent): (&Json, bool),
    clock: &dyn Clock,
) -> Result<Vec<Json>> {
    let mut out = Vec::new();
    match run(path, target, vars, (false, clock), &mut out) {
        Ok(()) | Err(Stop::Enough) => Ok(out),
        Err(Stop::Path(_)) if silent => Ok(out),
        Err(Stop::Path(e) | Stop::Hard(e)) => Err(e),
    }
}

/// Whether a path leads to anything; None for an error that `silent` hides.
///
/// # Errors
/// As [`query`].
pub fn exists(
    path: &Path,
    target: &Json,
    (vars, silent): (&Json, bool),
    clock: &dyn Clock,
) -> Result<Option<bool>> {
    let mut out = Vec::new();
    // In lax mode the first item decides.
    match run(path, target, vars, (!path.strict, clock), &mut out) {
        Ok(()) | Err(Stop::Enough) => Ok(Some(!out.is_empty())),
        Err(Stop::Path(_)) if silent => Ok(None),
        Err(Stop::Path(e) | Stop::Hard(e)) => Err(e),
    }
}

/// The truth of a predicate; None for unknown, or for an error that `silent` hides.
///
/// # Errors
/// As [`query`]; `22038` when the result is no single truth value.
pub fn matches(
    path: &Path,
    target: &Json,
    (vars, silent): (&Json, bool),
    clock: &dyn Clock,
) -> Result<Option<bool>> {
    let found = query(path, target, (vars, silent), clock)?;
    match found.as_slice() {
        [Json::Bool(b)] => Ok(Some(*b)),
        [Json::Null] => Ok(None),
        _ if silent => Ok(None),
        _ => Err(err!(SINGLETON_SQL_JSON_ITEM_REQUIRED, "single boolean result is expected")),
    }
}

fn run(
    path: &Path,
    target: &Json,
    vars: &Json,
    (first, clock): (bool, &dyn Clock),
    out: &mut Vec<Json>,
) -> Run<()> {
    if !matches!(vars, Json::Object(_)) {
        let error = err!(INVALID_PARAMETER_VALUE, "\"vars\" argument is not an object")
            .detail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.");
        return Err(Stop::Hard(error));
    }
    let mut cx = Context {
        vars,
        root: target,
        strict: path.strict,
        forgiving: !path.strict,
        current: None,
        size: None,
        first,
        moments: Vec::new(),
        clock,
    };
    let done = cx.expr(&path.expr, out);
    for item in out {
        if let Some(moment) = cx.moment(item) {
            *item = Json::String(Text::from(clock.text(moment)));
        }
    }
    done
}

fn truth(value: Option<bool>) -> Json {
    value.map_or(Json::Null, Json::Bool)
}

impl Context<'_> {
    /// The items of an expression.
    fn expr(&mut self, e: &Expr, out: &mut Vec<Json>) -> Run<()> {
        let start = match &e.head {
            Head::Null => Json::Null,
            Head::Bool(b) => Json::Bool(*b),
            Head::Number(n) => Json::Number(n.clone()),
            Head::String(s) => Json::String(s.clone()),
            Head::Root => self.root.clone(),
            Head::Current => self.current.clone().unwrap_or(Json::Null),
            Head::Last => {
                let last = self.size.map_or(-1, |n| n as i64 - 1);
                Json::Number(Numeric::from(last))
            }
            Head::Variable(name) => self.variable(name)?,
            Head::Arithmetic(op, l, r) => self.arithmetic(*op, l, r)?,
            Head::Sign { minus, of } => return self.signed(*minus, of, &e.steps, out),
            _ => truth(self.predicate(e)?),
        };
        self.steps(&start, &e.steps, out)
    }

    /// The items of an expression, arrays unwrapped in lax mode.
    fn operand(&mut self, e: &Expr) -> Run<Vec<Json>> {
        let items = self.all(e)?;
        if self.strict || !items.iter().any(|i| matches!(i, Json::Array(_))) {
            return Ok(items);
        }
        let mut flat = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Json::Array(inner) => flat.extend(inner.iter().cloned()),
                other => flat.push(other),
            }
        }
        Ok(flat)
    }

    /// The items of an expression within another.
    fn all(&mut self, e: &Expr) -> Run<Vec<Json>> {
        let mut items = Vec::new();
        let first = std::mem::replace(&mut self.first, false);
        let done = self.expr(e, &mut items);
        self.first = first;
        done.map(|()| items)
    }

    fn variable(&self, name: &str) -> Run<Json> {
        self.vars.member(name).cloned().ok_or_else(|| {
            Stop::Hard(err!(UNDEFINED_OBJECT, "could not find jsonpath variable \"{name}\""))
        })
    }

    fn number(&mut self, e: &Expr, side: &str, op: Arithmetic) -> Run<Numeric> {
        match self.operand(e)?.as_slice() {
            [Json::Number(n)] => Ok(n.clone()),
            _ => fail(err!(
                SINGLETON_SQL_JSON_ITEM_REQUIRED,
                "{side} operand of jsonpath operator {} is not a single numeric value",
                op.sign()
            )),
        }
    }

    fn arithmetic(&mut self, op: Arithmetic, l: &Expr, r: &Expr) -> Run<Json> {
        let (a, b) = (self.number(l, "left", op)?, self.number(r, "right", op)?);
        let result = match op {
            Arithmetic::Add => a.add(&b),
            Arithmetic::Sub => a.sub(&b),
            Arithmetic::Mul => a.mul(&b),
            Arithmetic::Div => a.div(&b),
            Arithmetic::Mod => a.rem(&b),
        };
        result.map(Json::Number).map_err(Stop::Path)
    }

    fn signed(&mut self, minus: bool, of: &Expr, steps: &[Step], out: &mut Vec<Json>) -> Run<()> {
        for item in self.operand(of)? {
            let Json::Number(n) = item else {
                // A test for existence passes items that have no sign.
                if self.first && steps.is_empty() {
                    continue;
                }
                return fail(err!(
                    SQL_JSON_NUMBER_NOT_FOUND,
                    "operand of unary jsonpath operator {} is not a numeric value",
                    if minus { '-' } else { '+' }
                ));
            };
            let n = Json::Number(if minus { n.neg() } else { n });
            self.steps(&n, steps, out)?;
        }
        Ok(())
    }

    fn steps(&mut self, item: &Json, steps: &[Step], out: &mut Vec<Json>) -> Run<()> {
        match steps.split_first() {
            None => self.found(item, out),
            Some((step, rest)) => self.step(item, step, rest, !self.strict, out),
        }
    }

    fn found(&self, item: &Json, out: &mut Vec<Json>) -> Run<()> {
        out.push(item.clone());
        if self.first { Err(Stop::Enough) } else { Ok(()) }
    }

    /// Takes a step from an item; `unwrap`: from its items, if it is an array that has no such step.
    fn step(
        &mut self,
        item: &Json,
        step: &Step,
        rest: &[Step],
        unwrap: bool,
        out: &mut Vec<Json>,
    ) -> Run<()> {
        sched::check_interrupts().map_err(Stop::Hard)?;
        if let Some(done) = self.step_of_moment(item, step, rest, out) {
            return done;
        }
        let unwraps = match step {
            Step::Member(_) | Step::AnyMember | Step::Filter(_) | Step::Datetime(_) => true,
            Step::Method(m) => !matches!(m, Method::Type | Method::Size),
            _ => false,
        };
        if let (true, true, Json::Array(items)) = (unwrap, unwraps, item) {
            for inner in items.iter() {
                self.step(inner, step, rest, false, out)?;
            }
            return Ok(());
        }
        match step {
            Step::Member(key) => match item {
                Json::Object(_) => match item.member(key) {
                    Some(value) => self.steps(value, rest, out),
                    None if self.forgiving => Ok(()),
                    None => fail(err!(
                        SQL_JSON_MEMBER_NOT_FOUND,
                        "JSON object does not contain key \"{key}\""
                    )),
                },
                _ => self.missing("member accessor", true),
            },
            Step::AnyMember => match item {
                Json::Object(members) => {
                    members.iter().try_for_each(|(_, v)| self.steps(v, rest, out))
                }
                _ => self.missing("wildcard member accessor", true),
            },
            Step::AnyItem => match item {
                Json::Array(items) => items.iter().try_for_each(|i| self.steps(i, rest, out)),
                _ if !self.strict => self.steps(item, rest, out),
                _ => self.missing("wildcard array accessor", false),
            },
            Step::Items(list) => self.items(item, list, rest, out),
            Step::Descend(first, last) => {
                let forgiving = std::mem::replace(&mut self.forgiving, true);
                let done = self.descend(item, 0, (*first, *last), rest, out);
                self.forgiving = forgiving;
                done
            }
            Step::Filter(condition) => {
                if self.holds(item, condition)? == Some(true) {
                    self.steps(item, rest, out)?;
                }
                Ok(())
            }
            Step::Method(method) => self.method(*method, item, rest, out),
            Step::Datetime(template) => match item {
                Json::String(text) => {
                    let moment = self.clock.read(text, template.as_deref()).map_err(Stop::Path)?;
                    let place = Json::Number(Numeric::from(self.moments.len() as i64));
                    self.moments.push(moment);
                    let item = Json::object(vec![(Text::from(MOMENT), place)]);
                    self.steps(&item, rest, out)
                }
                _ => fail(not_a_string()),
            },
        }
    }

    /// The date or time that an item stands for.
    fn moment(&self, item: &Json) -> Option<&Moment> {
        match item {
            Json::Object(members) => match members.first() {
                Some((name, Json::Number(place))) if name == MOMENT => {
                    self.moments.get(usize::try_from(place.to_i64()?).ok()?)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// A step from a date or time, which is a scalar; None when the item is none, or the step is the same for all.
    fn step_of_moment(
        &mut self,
        item: &Json,
        step: &Step,
        rest: &[Step],
        out: &mut Vec<Json>,
    ) -> Option<Run<()>> {
        let moment = self.moment(item)?;
        Some(match step {
            Step::Method(Method::Type) => {
                let name = Json::string(self.clock.type_name(moment));
                self.steps(&name, rest, out)
            }
            // As any scalar that is no number and no string.
            Step::Method(method) => self.method(*method, &Json::Bool(true), rest, out),
            Step::Datetime(_) => fail(not_a_string()),
            Step::Member(_) => self.missing("member accessor", true),
            Step::AnyMember => self.missing("wildcard member accessor", true),
            Step::Descend(0 | u32::MAX, _) => self.steps(item, rest, out),
            Step::Descend(..) => Ok(()),
            Step::AnyItem | Step::Items(_) | Step::Filter(_) => return None,
        })
    }

    /// A comparison of two items; None where they have no order.
    fn compare(&self, op: Comparison, a: &Json, b: &Json) -> Run<Option<bool>> {
        match (self.moment(a), self.moment(b)) {
            (Some(x), Some(y)) => {
                let order = self.clock.order(x, y).map_err(Stop::Hard)?;
                Ok(order.map(|order| op.holds(order)))
            }
            (None, None) => Ok(compare(op, a, b)),
            _ if matches!(a, Json::Null) || matches!(b, Json::Null) => {
                Ok(Some(op == Comparison::Ne))
            }
            _ => Ok(None),
        }
    }

    /// A step that needs an object or an array.
    fn missing(&self, what: &str, object: bool) -> Run<()> {
        match (self.forgiving, object) {
            (true, _) => Ok(()),
            (false, true) if what == "member accessor" => fail(err!(
                SQL_JSON_MEMBER_NOT_FOUND,
                "jsonpath {what} can only be applied to an object"
            )),
            (false, true) => fail(err!(
                SQL_JSON_OBJECT_NOT_FOUND,
                "jsonpath {what} can only be applied to an object"
            )),
            (false, false) => fail(err!(
                SQL_JSON_ARRAY_NOT_FOUND,
                "jsonpath {what} can only be applied to an array"
            )),
        }
    }

    fn holds(&mut self, item: &Json, condition: &Expr) -> Run<Option<bool>> {
        let outer = self.current.replace(item.clone());
        let found = self.predicate(condition);
        self.current = outer;
        found
    }

    fn items(
        &mut self,
        item: &Json,
        list: &[(Expr, Option<Expr>)],
        rest: &[Step],
        out: &mut Vec<Json>,
    ) -> Run<()> {
        let single = [item.clone()];
        let items: &[Json] = match item {
            Json::Array(items) => items,
            _ if !self.strict => &single,
            _ => return self.missing("array accessor", false),
        };
        let outer = self.size.replace(items.len());
        let done = self.chosen(items, list, rest, out);
        self.size = outer;
        done
    }

    fn chosen(
        &mut self,
        items: &[Json],
        list: &[(Expr, Option<Expr>)],
        rest: &[Step],
        out: &mut Vec<Json>,
    ) -> Run<()> {
        for (from, to) in list {
            let low = self.index(from)?;
            let high = match to {
                Some(to) => self.index(to)?,
                None => low,
            };
            let len = items.len() as i64;
            if !self.forgiving && (low < 0 || low > high || high >= len) {
                return fail(err!(
                    INVALID_SQL_JSON_SUBSCRIPT,
                    "jsonpath array subscript is out of bounds"
                ));
            }
            for i in low.max(0)..=high.min(len - 1) {
                self.steps(&items[i as usize], rest, out)?;
            }
        }
        Ok(())
    }

    fn index(&mut self, e: &Expr) -> Run<i64> {
        let found = self.all(e)?;
        let [Json::Number(n)] = found.as_slice() else {
            return fail(err!(
                INVALID_SQL_JSON_SUBSCRIPT,
                "jsonpath array subscript is not a single numeric value"
            ));
        };
        let index = n.trunc(0).to_i64().and_then(|v| i32::try_from(v).ok());
        index.map(i64::from).ok_or_else(|| {
            Stop::Path(err!(
                INVALID_SQL_JSON_SUBSCRIPT,
                "jsonpath array subscript is out of integer range"
            ))
        })
    }

    /// The values at depths `first` to `last` below an item; `last` alone: those without items.
    fn descend(
        &mut self,
        item: &Json,
        depth: u32,
        (first, last): (u32, u32),
        rest: &[Step],
        out: &mut Vec<Json>,
    ) -> Run<()> {
        sched::check_interrupts().map_err(Stop::Hard)?;
        let leaf = first == u32::MAX && last == u32::MAX && item.is_scalar();
        if leaf || (first <= depth && depth <= last) {
            match rest.split_first() {
                None => self.found(item, out)?,
                Some((step, more)) => self.step(item, step, more, !self.strict, out)?,
            }
        }
        if depth >= last {
            return Ok(());
        }
        match item {
            Json::Array(items) => {
                items.iter().try_for_each(|i| self.descend(i, depth + 1, (first, last), rest, out))
            }
            Json::Object(members) => members
                .iter()
                .try_for_each(|(_, v)| self.descend(v, depth + 1, (first, last), rest, out)),
            _ => Ok(()),
        }
    }

    fn method(
        &mut self,
        method: Method,
        item: &Json,
        rest: &[Step],
        out: &mut Vec<Json>,
    ) -> Run<()> {
        let of = |what: &str| {
            format!("jsonpath item method .{}() can only be applied to {what}", method.name())
        };
        let result = match (method, item) {
            (Method::Type, _) => Json::string(item.type_name()),
            (Method::Size, Json::Array(items)) => Json::Number(Numeric::from(items.len() as i64)),
            (Method::Size, _) if !self.strict => Json::Number(Numeric::ONE),
            (Method::Size, _) if self.forgiving => return Ok(()),
            (Method::Size, _) => {
                return fail(err!(SQL_JSON_ARRAY_NOT_FOUND, "{}", of("an array")));
            }
            (Method::Abs, Json::Number(n)) => Json::Number(n.abs()),
            (Method::Floor, Json::Number(n)) => Json::Number(n.floor()),
            (Method::Ceiling, Json::Number(n)) => Json::Number(n.ceil()),
            (Method::Double, Json::Number(_) | Json::String(_)) => double(item)?,
            (Method::Double, _) => {
                return fail(err!(
                    NON_NUMERIC_SQL_JSON_ITEM,
                    "{}",
                    of("a string or numeric value")
                ));
            }
            (Method::KeyValue, Json::Object(members)) => {
                for (key, value) in members.iter() {
                    let pair = Json::object(vec![
                        (Text::from("id"), Json::Number(Numeric::ZERO)),
                        (Text::from("key"), Json::String(key.clone())),
                        (Text::from("value"), value.clone()),
                    ]);
                    self.steps(&pair, rest, out)?;
                }
                return Ok(());
            }
            (Method::KeyValue, _) => {
                return fail(err!(SQL_JSON_OBJECT_NOT_FOUND, "{}", of("an object")));
            }
            _ => {
                return fail(err!(NON_NUMERIC_SQL_JSON_ITEM, "{}", of("a numeric value")));
            }
        };
        self.steps(&result, rest, out)
    }

    /// The truth of a predicate; None is unknown.
    fn predicate(&mut self, e: &Expr) -> Run<Option<bool>> {
        Ok(match &e.head {
            Head::And(l, r) => match self.predicate(l)? {
                Some(false) => Some(false),
                left => match (left, self.predicate(r)?) {
                    (_, Some(false)) => Some(false),
                    (Some(true), right) => right,
                    _ => None,
                },
            },
            Head::Or(l, r) => match self.predicate(l)? {
                Some(true) => Some(true),
                left => match (left, self.predicate(r)?) {
                    (_, Some(true)) => Some(true),
                    (Some(false), right) => right,
                    _ => None,
                },
            },
            Head::Not(of) => self.predicate(of)?.map(|b| !b),
            Head::IsUnknown(of) => Some(self.predicate(of)?.is_none()),
            Head::Exists(of) => {
                let mut found = Vec::new();
                let first = std::mem::replace(&mut self.first, !self.strict);
                let done = self.expr(of, &mut found);
                self.first = first;
                match done {
                    Ok(()) | Err(Stop::Enough) => Some(!found.is_empty()),
                    Err(Stop::Path(_)) => None,
                    Err(hard) => return Err(hard),
                }
            }
            Head::Compare(op, l, r) => {
                self.pairs(l, Some(r), |cx, a, b| cx.compare(*op, a, b.unwrap_or(&Json::Null)))?
            }
            Head::StartsWith(l, r) => self.pairs(l, Some(r), |_, a, b| match (a, b) {
                (Json::String(a), Some(Json::String(b))) => Ok(Some(a.starts_with(b.as_str()))),
                _ => Ok(None),
            })?,
            Head::LikeRegex { of, pattern, flags } => {
                let regex = regex(pattern, flags).map_err(Stop::Hard)?;
                self.pairs(of, None, |_, a, _| match a {
                    Json::String(s) => regex.is_match(s).map(Some).map_err(Stop::Hard),
                    _ => Ok(None),
                })?
            }
            _ => {
                let found = self.all(e)?;
                match found.as_slice() {
                    [Json::Bool(b)] => Some(*b),
                    _ => None,
                }
            }
        })
    }

    /// Whether a test holds for some pair of both sides' items. In strict mode one pair that can't
    /// be compared makes it unknown, in lax mode only if none holds.
    fn pairs(
        &mut self,
        l: &Expr,
        r: Option<&Expr>,
        test: impl Fn(&Self, &Json, Option<&Json>) -> Run<Option<bool>>,
    ) -> Run<Option<bool>> {
        let quiet = |found: Run<Vec<Json>>| match found {
            Ok(found) => Ok(Some(found)),
            Err(Stop::Path(_)) => Ok(None),
            Err(hard) => Err(hard),
        };
        let Some(left) = quiet(self.operand(l))? else { return Ok(None) };
        let right: Vec<Option<Json>> = match r {
            None => vec![None],
            Some(r) => match quiet(self.operand(r))? {
                Some(found) => found.into_iter().map(Some).collect(),
                None => return Ok(None),
            },
        };
        let (mut any, mut unknown) = (false, false);
        for a in &left {
            for b in &right {
                sched::check_interrupts().map_err(Stop::Hard)?;
                match test(self, a, b.as_ref())? {
                    None if self.strict => return Ok(None),
                    None => unknown = true,
                    Some(true) if !self.strict => return Ok(Some(true)),
                    Some(held) => any |= held,
                }
            }
        }
        Ok(if any {
            Some(true)
        } else if unknown {
            None
        } else {
            Some(false)
        })
    }
}

fn not_a_string() -> Error {
    err!(
        INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION,
        "jsonpath item method .datetime() can only be applied to a string"
    )
}

fn double(item: &Json) -> Run<Json> {
    let text = match item {
        Json::String(s) => s.to_string(),
        other => other.to_text().map_err(Stop::Hard)?.to_string(),
    };
    let invalid = |kind: &str| {
        Stop::Path(err!(
            NON_NUMERIC_SQL_JSON_ITEM,
            "{kind} argument of jsonpath item method .double() is not a valid representation of a double precision number"
        ))
    };
    let value = crate::io::parse_float8(&text).map_err(|_| match item {
        Json::String(_) => invalid("string"),
        _ => Stop::Path(err!(
            NON_NUMERIC_SQL_JSON_ITEM,
            "numeric argument of jsonpath item method .double() is out of range for type double precision"
        )),
    })?;
    if !value.is_finite() {
        return fail(err!(
            NON_NUMERIC_SQL_JSON_ITEM,
            "string argument of jsonpath item method .double() is not a valid representation of a double precision number"
        ));
    }
    Ok(match item {
        Json::Number(_) => item.clone(),
        _ => Json::Number(Numeric::from_f64(value)),
    })
}

/// A comparison of two items; None where they have no order.
fn compare(op: Comparison, a: &Json, b: &Json) -> Option<bool> {
    use std::cmp::Ordering::Equal;
    let order = match (a, b) {
        (Json::Null, Json::Null) => Equal,
        (Json::Null, _) | (_, Json::Null) => return Some(op == Comparison::Ne),
        (Json::Bool(x), Json::Bool(y)) => x.cmp(y),
        (Json::Number(x), Json::Number(y)) => x.compare(y),
        (Json::String(x), Json::String(y)) => x.as_bytes().cmp(y.as_bytes()),
        _ => return None,
    };
    Some(op.holds(order))
}

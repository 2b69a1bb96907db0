//! Which conditions an index can answer: values and lists of values for the first key columns, then one
//! range, or a union of such bounds for the arms of an OR. The other side of a comparison is of the
//! column's own type (of the type below a domain), or of one that the column's family compares with it
//! ([`types::cross`]); the executor finds its place among the column's values.

use base::AccessMethod;
use catalog::Index;
use types::collation::Slot;
use types::func::{CastMethod, internal};
use types::oids::*;
use types::{Datum, TypeIo, cross, opclass};

use crate::expr::{Expr, RowOp};
use crate::logical::TableRel;
use crate::plan::{self, IndexBounds, KeyStep, ScanColumn, ScanKey};
use crate::walk;

use crate::bind::operator::comparison;

use super::OrderKey;
use super::cols::Cols;
use super::order::By;
use super::selectivity::{array_length, comparison_name, flipped, plain_column};

/// Ranges that the lists of several columns may make together.
const LISTED_MAX: f64 = 4096.0;

/// What an index can do for a list of conditions. Expressions are not resolved yet.
#[derive(Clone, Default)]
pub(crate) struct Match {
    /// Where to look.
    pub bounds: IndexBounds,
    /// Conditions that the bounds prove, by their places in the list.
    pub proved: Vec<usize>,
    /// Conditions that the bounds use, proved or not.
    pub used: Vec<usize>,
    /// An OR of which the bounds use only a part of each arm, by its place, and these parts.
    pub part_of_or: Option<(usize, Expr)>,
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
    let parts = key_parts(index, table, computed);
    let mut found = match_parts(&parts, own, list);
    found.one_row =
        index.unique && !index.deferrable && found.bounds.equal.len() == index.columns.len();
    let order = |from: usize| {
        let key = |k: &catalog::IndexColumn| key_order(table, k);
        index.columns[from..].iter().map_while(key).collect()
    };
    found.order = order(found.bounds.equal.len());
    found.whole_order = order(0);
    found
}

/// Matches the columns behind the first one that nothing is said of, which has about so many values; None when
/// nothing is said of those, either.
pub(crate) fn match_behind(
    index: &Index,
    table: &TableRel,
    own: &Cols,
    list: &[Expr],
    computed: &[Expr],
    values: f64,
) -> Option<Match> {
    let parts = key_parts(index, table, computed);
    let mut found = match_parts(&parts, own, list);
    let (place, used) = (found.bounds.fixed(), found.used.len());
    let rest = match_parts(parts.get(place + 1..)?, own, list);
    // A range of the column itself is better than all of its values.
    if used != found.proved.len() || found.proved.len() != place || rest.used.is_empty() {
        return None;
    }
    let bounds = &mut found.bounds;
    bounds.steps.push(KeyStep::Each(values));
    bounds.steps.extend(rest.bounds.equal.into_iter().map(KeyStep::Equal));
    bounds.steps.extend(rest.bounds.steps);
    (bounds.lower, bounds.upper) = (rest.bounds.lower, rest.bounds.upper);
    (bounds.begins, bounds.not_null) = (rest.bounds.begins, rest.bounds.not_null);
    found.proved.extend(rest.proved);
    found.used.extend(rest.used);
    found.used.sort_unstable();
    found.used.dedup();
    let order = |from: usize| {
        let key = |k: &catalog::IndexColumn| key_order(table, k);
        index.columns[from..].iter().map_while(key).collect()
    };
    found.order = order(found.bounds.equal.len());
    found.whole_order = order(0);
    Some(found)
}

/// Of more conditions than these, which a list of rows behind NOT IN has, none that is an OR is matched with an index: each
/// arm would be looked at together with all other conditions.
pub(crate) const CONDITIONS_MAX: usize = 100;

/// Matches an index with a list of which the condition at `place` is an OR: every arm gives bounds of its
/// own. None when one of them gives none.
pub(crate) fn match_arms(
    index: &Index,
    table: &TableRel,
    own: &Cols,
    list: &[Expr],
    place: usize,
    computed: &[Expr],
) -> Option<Match> {
    let Expr::Or(arms) = &list[place] else { return None };
    if list.len() > CONDITIONS_MAX {
        return None;
    }
    let parts = key_parts(index, table, computed);
    let others: Vec<(usize, &Expr)> =
        list.iter().enumerate().filter(|(n, e)| *n != place && !walk::has_subquery(e)).collect();
    let mut found = Match::default();
    let mut whole = true;
    let mut proved: Option<Vec<usize>> = None;
    let mut used = vec![place];
    let mut parts_used = Vec::with_capacity(arms.len());
    for arm in arms {
        let mut both = Vec::new();
        walk::conjuncts(arm.clone(), &mut both);
        let of_arm = both.len();
        both.extend(others.iter().map(|(_, e)| (*e).clone()));
        let one = match_parts(&parts, own, &both);
        if !one.used.iter().any(|n| *n < of_arm) {
            return None;
        }
        whole &= (0..of_arm).all(|n| one.proved.contains(&n));
        let of_it = one.used.iter().filter(|n| **n < of_arm).map(|n| both[*n].clone());
        parts_used.push(super::bitmap::all_of(of_it.collect()));
        let outside = |list: &[usize]| -> Vec<usize> {
            list.iter().filter(|n| **n >= of_arm).map(|n| others[*n - of_arm].0).collect()
        };
        for n in outside(&one.used) {
            if !used.contains(&n) {
                used.push(n);
            }
        }
        let now = outside(&one.proved);
        proved = Some(match proved {
            None => now,
            Some(before) => before.into_iter().filter(|n| now.contains(n)).collect(),
        });
        found.bounds.either.push(one.bounds);
    }
    found.proved = proved?;
    match whole {
        true => found.proved.push(place),
        false => found.part_of_or = Some((place, Expr::Or(parts_used))),
    }
    found.used = used;
    let (first, rest) = found.bounds.either.split_first()?;
    let common = rest.iter().fold(first.equal.len(), |most, arm| {
        let same = first.equal.iter().zip(&arm.equal).take_while(|(a, b)| walk::same(a, b));
        most.min(same.count())
    });
    let order = |from: usize| {
        let key = |k: &catalog::IndexColumn| key_order(table, k);
        index.columns[from..].iter().map_while(key).collect()
    };
    found.order = order(common);
    found.whole_order = order(0);
    Some(found)
}

/// Matches an index of a method without an order; None when it serves none of the conditions.
pub(crate) fn match_keys(
    index: &Index,
    table: &TableRel,
    own: &Cols,
    list: &[Expr],
    computed: &[Expr],
) -> Option<Match> {
    let parts = key_parts(index, table, computed);
    let found = match index.method {
        AccessMethod::Hash => match_hash(&parts, own, list),
        AccessMethod::Gin
        | AccessMethod::Gist
        | AccessMethod::SpGist
        | AccessMethod::Brin
        | AccessMethod::Bloom => match_operators(index, &parts, own, list),
        // Vectors have an order by distance and no conditions.
        AccessMethod::BTree | AccessMethod::Hnsw | AccessMethod::IvfFlat => return None,
    };
    (!found.used.is_empty()).then_some(found)
}

/// A hash index serves one value for its column, or a list of them.
fn match_hash(parts: &[KeyPart<'_>], own: &Cols, list: &[Expr]) -> Match {
    let mut found = Match::default();
    let Some(part) = parts.first() else { return found };
    let equal = list.iter().enumerate().find_map(|(i, e)| {
        let c = part.comparison(e, own)?;
        (c.op == "=" && c.exact).then_some((i, c.value))
    });
    match equal {
        Some((i, value)) => {
            found.bounds.equal.push(value);
            found.proved.push(i);
        }
        None => {
            list_of_values(&mut found, &mut 1.0, list, part, own);
        }
    }
    found.used = found.proved.clone();
    found
}

/// An index that serves the operators of its columns' classes, of any of its columns, and perhaps NULLs. A
/// condition for which GIN would have to give all rows is left to others.
fn match_operators(index: &Index, parts: &[KeyPart<'_>], own: &Cols, list: &[Expr]) -> Match {
    let mut found = Match::default();
    let nulls = index.method.properties().search_nulls;
    for (i, e) in list.iter().enumerate() {
        if let Expr::IsNull { arg, negated } = e
            && nulls
            && let Some(column) = parts.iter().position(|part| part.is(arg))
        {
            let strategy = if *negated { plan::IS_NOT_NULL } else { plan::IS_NULL };
            let (column, value) = (column as u16, Expr::Const(Datum::Null, parts[column].ty()));
            found.bounds.keys.push(ScanKey { column, strategy, operator: base::Oid(0), value });
            found.proved.push(i);
            continue;
        }
        let Expr::Call { function, args, .. } = e else { continue };
        let [a, b] = &**args else { continue };
        let key = parts.iter().enumerate().find_map(|(n, part)| {
            let (function, value) = match (part.is(a), part.is(b)) {
                (true, _) => (function.oid, b),
                (_, true) => (opclass::commuted(function.oid)?, a),
                _ => return None,
            };
            let class = index.columns.get(n)?.class_of(index.method, part.ty().0);
            let family = opclass::class(class)?.family;
            let member = opclass::members(family, function).iter().find(|m| !m.orders)?;
            let all = index.method == AccessMethod::Gin
                && gives_all(class, part.ty(), member.strategy, value);
            if !known_before(value, own) || all {
                return None;
            }
            Some(ScanKey {
                column: n as u16,
                strategy: member.strategy,
                operator: member.operator,
                value: value.clone(),
            })
        });
        if let Some(key) = key {
            found.bounds.keys.push(key);
            found.proved.push(i);
        }
    }
    found.used = found.proved.clone();
    found
}

/// Whether all rows come into question for a value that is known by now.
fn gives_all(class: u32, ty: base::Oid, strategy: u16, value: &Expr) -> bool {
    let Expr::Const(value, _) = value else { return false };
    if value.is_null() {
        return false;
    }
    let query = types::gin::class(class, ty).and_then(|c| c.query(strategy, value).ok());
    query.is_none_or(|q| q.mode == base::ternary::Mode::All)
}

fn match_parts(parts: &[KeyPart<'_>], own: &Cols, list: &[Expr]) -> Match {
    let mut found = Match::default();
    let mut ranges = 1.0;
    for (n, part) in parts.iter().enumerate() {
        let equal = list.iter().enumerate().find_map(|(i, e)| {
            let c = part.comparison(e, own)?;
            (c.op == "=" && c.exact).then_some((i, c.value))
        });
        if let Some((i, value)) = equal {
            match found.bounds.steps.is_empty() {
                true => found.bounds.equal.push(value),
                false => found.bounds.steps.push(KeyStep::Equal(value)),
            }
            found.proved.push(i);
        } else if let Some(i) = list.iter().position(|e| part.is_null(e, false)) {
            found.bounds.steps.push(KeyStep::Null);
            found.proved.push(i);
        } else if !list_of_values(&mut found, &mut ranges, list, part, own) {
            range(&mut found, list, &parts[n..], own);
            break;
        }
    }
    found.used.extend(&found.proved);
    found.used.sort_unstable();
    found.used.dedup();
    found
}

/// The key's columns, up to the first that nothing is known of.
pub(crate) fn key_parts<'e>(
    index: &Index,
    table: &TableRel,
    computed: &'e [Expr],
) -> Vec<KeyPart<'e>> {
    let mut computed = computed.iter();
    let part = |key: &catalog::IndexColumn| {
        let of = match &key.expression {
            Some(_) => KeyValue::Computed(computed.next()?),
            None => {
                let col = table.col(ScanColumn::Attr(key.column));
                let declared = table.table.columns[usize::from(key.column) - 1].ty;
                let (ty, _) = types::user::base_type(base::Oid(declared), -1);
                KeyValue::Column(col, ty)
            }
        };
        let by_pattern = key.is_by_pattern();
        Some(KeyPart { of, slot: key.slot().ok()?, descending: key.descending, by_pattern })
    };
    index.columns.iter().map_while(part).collect()
}

/// What an index's column sorts rows by; None: an expression.
pub(crate) fn key_order(table: &TableRel, key: &catalog::IndexColumn) -> Option<OrderKey> {
    if key.expression.is_some() || key.is_by_pattern() {
        return None;
    }
    let col = table.col(ScanColumn::Attr(key.column));
    Some((By { col, slot: key.slot().ok()? }, key.descending, key.nulls_first))
}

/// A key column of an index, or a key of partitions.
pub(crate) struct KeyPart<'e> {
    of: KeyValue<'e>,
    slot: Slot,
    descending: bool,
    /// Its class compares texts by their bytes, whatever the collation: no order but for patterns.
    by_pattern: bool,
}

/// What it has the values of.
pub(crate) enum KeyValue<'e> {
    /// A column, and its type below domains.
    Column(u16, base::Oid),
    Computed(&'e Expr),
}

/// A comparison of a key column with something known.
pub(crate) struct KeyComparison {
    pub op: &'static str,
    pub value: Expr,
    /// The value's place among the column's is known ([`cross::relation`]).
    pub exact: bool,
}

impl<'e> KeyPart<'e> {
    /// A key of partitions.
    pub fn new(of: KeyValue<'e>, slot: Slot) -> KeyPart<'e> {
        KeyPart { of, slot, descending: false, by_pattern: false }
    }

    /// The array of which it equals an element.
    pub fn any_of(&self, left: &Expr, array: &Expr, own: &Cols) -> Option<Expr> {
        let (left, array) = self.sides(left, array)?;
        let fits = self.is(left)
            && known_before(array, own)
            && element_type(array).is_some_and(|of| cross::relation(self.ty(), of) == Some(true));
        fits.then(|| array.clone())
    }
}

impl KeyPart<'_> {
    /// A comparison of it with something known. A collation of ICU must be the comparison's, but for
    /// equality of bytes, which all that are deterministic have in common.
    pub fn comparison(&self, e: &Expr, own: &Cols) -> Option<KeyComparison> {
        let Expr::Call { function, args, .. } = e else { return None };
        let [a, b] = &**args else { return None };
        self.compared(comparison_name(function)?, a, b, own)
    }

    pub fn compared(
        &self,
        op: &'static str,
        a: &Expr,
        b: &Expr,
        own: &Cols,
    ) -> Option<KeyComparison> {
        if self.by_pattern && op != "=" {
            return None;
        }
        if self.slot == Slot::BYTES {
            return self.sides_of(op, a, b, own);
        }
        if let (Some(a), Some(b)) = (by_keys(a, self.slot), by_keys(b, self.slot)) {
            comparison(op, a.ty())?;
            return self.sides_of(op, a, b, own);
        }
        let equal = op == "=" && self.slot.is_deterministic();
        equal.then(|| self.sides_of(op, a, b, own)).flatten()
    }

    fn sides_of(&self, op: &'static str, a: &Expr, b: &Expr, own: &Cols) -> Option<KeyComparison> {
        let (op, other) = if self.is(a) {
            (op, b)
        } else if self.is(b) {
            (flipped(op), a)
        } else {
            return None;
        };
        let exact = cross::relation(self.ty(), type_of(other))?;
        known_before(other, own).then(|| KeyComparison { op, value: other.clone(), exact })
    }

    pub fn is(&self, e: &Expr) -> bool {
        match self.of {
            KeyValue::Column(col, _) => plain_column(e) == Some(col) && same_kind(e),
            KeyValue::Computed(key) => walk::same(e, key),
        }
    }

    /// The type of its values.
    pub fn ty(&self) -> base::Oid {
        match self.of {
            KeyValue::Column(_, ty) => ty,
            KeyValue::Computed(key) => types::user::base_type(key.ty(), -1).0,
        }
    }

    /// Whether the condition is that it is NULL (or, `negated`, that it is not).
    pub fn is_null(&self, e: &Expr, wanted: bool) -> bool {
        matches!(e, Expr::IsNull { arg, negated } if *negated == wanted && self.is(arg))
    }

    /// The text that it begins with, and whether that is a LIKE pattern.
    fn begins(&self, e: &Expr, own: &Cols) -> Option<(Expr, bool)> {
        let Expr::Call { function, args, .. } = e else { return None };
        let [text, with] = &**args else { return None };
        if self.slot != Slot::BYTES || !self.is(text) || !matches!(self.ty(), TEXT | VARCHAR | NAME)
        {
            return None;
        }
        match (function.name, with) {
            ("textlike", Expr::Const(Datum::Text(pattern), _)) => {
                let known = !types::func::like_beginning(pattern).is_empty();
                known.then(|| (with.clone(), true))
            }
            ("starts_with", with) if known_before(with, own) => Some((with.clone(), false)),
            _ => None,
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

/// An expression's type, below domains.
fn type_of(e: &Expr) -> base::Oid {
    types::user::base_type(e.ty(), -1).0
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

/// Bounds of the first of the columns; rows of values may bound several. A range never holds NULLs, so
/// that what compares a single value is proved by it.
fn range(found: &mut Match, list: &[Expr], parts: &[KeyPart<'_>], own: &Cols) {
    let Some(part) = parts.first() else { return };
    for (i, e) in list.iter().enumerate() {
        let Some(c) = part.comparison(e, own) else { continue };
        let included = c.op.ends_with('=');
        let takes = |bound: &Option<(Vec<Expr>, bool)>| bound.is_none();
        let bounds = &mut found.bounds;
        let (lower, upper) = (c.op.starts_with(['>', '=']), c.op.starts_with(['<', '=']));
        if (!lower || takes(&bounds.lower)) && (!upper || takes(&bounds.upper)) {
            if lower {
                bounds.lower = Some((vec![c.value.clone()], included));
            }
            if upper {
                bounds.upper = Some((vec![c.value], included));
            }
            if c.exact {
                found.proved.push(i);
            } else {
                found.used.push(i);
            }
        }
    }
    for (i, e) in list.iter().enumerate() {
        let Some((op, values, whole)) = row_bound(e, parts, own) else { continue };
        // The further columns may decide where the first one is at the bound.
        let bound = (values, !whole || op.ends_with('='));
        let place = match op.starts_with('>') {
            true => &mut found.bounds.lower,
            false => &mut found.bounds.upper,
        };
        if place.is_none() {
            *place = Some(bound);
            found.used.push(i);
        }
    }
    for (i, e) in list.iter().enumerate() {
        if found.bounds.begins.is_none()
            && let Some(begins) = part.begins(e, own)
        {
            if !begins.1 {
                found.proved.push(i);
            }
            found.bounds.begins = Some(begins);
            found.used.push(i);
        }
    }
    let bounds = &mut found.bounds;
    let bounded = bounds.lower.is_some() || bounds.upper.is_some() || bounds.begins.is_some();
    for (i, e) in list.iter().enumerate() {
        if part.is_null(e, true) {
            bounds.not_null = !bounded;
            found.proved.push(i);
        }
    }
}

/// A comparison of a row that begins with these columns: operator, the values that bound as many of them
/// as come in one direction, and whether these are all.
fn row_bound(
    e: &Expr,
    parts: &[KeyPart<'_>],
    own: &Cols,
) -> Option<(&'static str, Vec<Expr>, bool)> {
    let Expr::RowCompare { op, fields } = e else { return None };
    let op = row_operator(*op)?;
    let mut first = None;
    let mut values = Vec::with_capacity(fields.len());
    for ((left, right, ..), part) in fields.iter().zip(parts) {
        let Some(c) = part.compared(op, left, right, own) else { break };
        if part.descending != parts[0].descending || *first.get_or_insert(c.op) != c.op {
            break;
        }
        values.push(c.value);
    }
    let whole = values.len() == fields.len();
    Some((first?, values, whole))
}

/// A row comparison as an operator of B-trees.
pub(crate) fn row_operator(op: RowOp) -> Option<&'static str> {
    Some(match op {
        RowOp::Lt => "<",
        RowOp::Le => "<=",
        RowOp::Gt => ">",
        RowOp::Ge => ">=",
        RowOp::Eq | RowOp::Ne => return None,
    })
}

/// A list for this column, unless it would make too many ranges together with those before it.
fn list_of_values(
    found: &mut Match,
    ranges: &mut f64,
    list: &[Expr],
    part: &KeyPart<'_>,
    own: &Cols,
) -> bool {
    for (i, e) in list.iter().enumerate() {
        let Expr::ArrayOp { function, left, array, all: false } = e else { continue };
        let Some((left, array)) = part.sides(left, array) else { continue };
        let fits = part.is(left)
            && walk::is_equality(function)
            && known_before(array, own)
            && element_type(array).is_some_and(|of| cross::relation(part.ty(), of) == Some(true));
        if !fits {
            continue;
        }
        let length = match array {
            Expr::Const(..) | Expr::Array { .. } => array_length(array),
            // Nobody knows: only the first list may be such.
            _ => LISTED_MAX,
        };
        if *ranges > 1.0 && *ranges * length > LISTED_MAX {
            continue;
        }
        *ranges *= length.max(1.0);
        found.bounds.steps.push(KeyStep::Any(array.clone()));
        found.proved.push(i);
        return true;
    }
    false
}

fn element_type(array: &Expr) -> Option<base::Oid> {
    TypeIo::get(array.ty()).map(|io| io.element)
}

/// Whether a value is known before the scan of the table starts.
pub(crate) fn known_before(e: &Expr, own: &Cols) -> bool {
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
                        (VARCHAR, TEXT)
                            | (TEXT, VARCHAR)
                            | (REGCLASS, OID)
                            | (OID, REGCLASS)
                            | (CIDR, INET)
                    ))
        }
        _ => false,
    }
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

//! Collations of expressions, by PostgreSQL's rules (manual, 24.2): COLLATE is explicit, a column's is
//! implicit, and both pass through functions; two that differ are an error where they are explicit, and
//! else leave a value without a collation, which is an error for what compares it.
//!
//! A collation of ICU is written into the expression: what is compared are the texts' keys
//! ([`internal::SORT_KEY`]), so that nothing after binding has to know of collations. Equality needs keys
//! only under a collation that is not deterministic. Statements that name no collation and no column with
//! one of its own ([`Binder::collating`]) are bound as if there were none.

use base::{Error, Oid, Result, err};
use catalog::Collation;
use catalog::object::ids::{COLLATION_C, COLLATION_DEFAULT};
use types::Datum;
use types::collation::Slot;
use types::func::{FunctionRow, internal};
use types::oids::*;

use crate::expr::{AggCall, Expr, SortKey, SubqueryKind};
use crate::logical::Col;
use crate::walk;

use super::Binder;
use super::operator::exact;

/// In place of a collation's oid: there is none, because two that differ met.
pub(crate) use crate::plan::NO_COLLATION as INDETERMINATE;

/// What is known of an expression's collation; places as in messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Derived {
    /// Its type has none.
    None,
    /// A column's or a type's.
    Implicit(u32, u32),
    /// COLLATE.
    Explicit(u32, u32),
    /// Two that differ.
    Conflict(u32, u32, u32),
}

/// How values are compared.
enum By {
    Bytes,
    /// Bytes, where only ASCII's letters have a case.
    Ascii,
    Keys(Slot, types::Text),
    /// Nobody knows: an error when it runs.
    Nothing,
}

/// What a function does with its arguments' collation.
enum Use {
    Nothing,
    /// Compares: the operator's name.
    Compare(&'static str),
    /// `array_position` and kin: whether values are equal.
    Equal,
    Case(&'static FunctionRow),
    /// Looks into texts, as messages call it; whether it needs to know a collation.
    Search(&'static str, bool),
}

const COMPARISONS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

fn use_of(function: &FunctionRow) -> Use {
    let is = |name: &&&'static str| walk::is_operator(function, name);
    let text =
        |at: usize| function.args.get(at).is_some_and(|t| matches!(*t, TEXT | NAME | BPCHAR));
    let array = function.args.first().is_some_and(|t| matches!(*t, ANYARRAY | ANYCOMPATIBLEARRAY));
    if text(0) || array {
        if let Some(name) = COMPARISONS.iter().find(is) {
            return Use::Compare(name);
        }
    }
    match function.name {
        "lower" if text(0) => Use::Case(&internal::LOWER),
        "upper" if text(0) => Use::Case(&internal::UPPER),
        "initcap" if text(0) => Use::Case(&internal::INITCAP),
        "arraycontains" | "arraycontained" | "arrayoverlap" | "array_position"
        | "array_positions" => Use::Equal,
        "textlike" | "textnlike" | "like" | "notlike" | "bpcharlike" | "bpcharnlike"
        | "namelike" | "namenlike" => Use::Search("LIKE", false),
        "texticlike" | "texticnlike" | "bpchariclike" | "bpcharicnlike" | "nameiclike"
        | "nameicnlike" => Use::Search("ILIKE", true),
        "strpos" | "position" | "replace" | "split_part" | "string_to_array"
        | "string_to_table" | "starts_with"
            if text(0) =>
        {
            Use::Search("substring searches", true)
        }
        "substring" if text(0) && text(1) => Use::Search("regular expressions", true),
        name if name.starts_with("regexp_")
            || name.contains("regexeq")
            || name.contains("regexne") =>
        {
            Use::Search("regular expressions", true)
        }
        _ => Use::Nothing,
    }
}

/// A value's key under a collation of ICU.
fn key(value: Expr, slot: Slot, name: &types::Text) -> Expr {
    let ty = match types::TypeIo::array_element(value.ty()) {
        Some(_) => super::coerce::array_of(BYTEA),
        None => BYTEA,
    };
    with_slot(&internal::SORT_KEY, plain(value), slot, name, ty)
}

fn with_slot(
    function: &'static FunctionRow,
    arg: Expr,
    slot: Slot,
    name: &types::Text,
    ty: Oid,
) -> Expr {
    let slot = Expr::Const(Datum::Oid(u32::from(slot.0)), OID);
    let args = Box::new([arg, slot, Expr::Const(Datum::Text(name.clone()), TEXT)]);
    Expr::Call { function, args, ty, position: 0 }
}

/// An expression without COLLATE around it.
pub(crate) fn plain(e: Expr) -> Expr {
    match e {
        Expr::Collate(inner, ..) => plain(*inner),
        other => other,
    }
}

impl Binder<'_> {
    /// A collation by the names that COLLATE has.
    pub(crate) fn collation_named(&self, names: &[&str]) -> Result<std::sync::Arc<Collation>> {
        super::ast::check_database(names, self.cx.database, false)?;
        let (schema, name) = super::ast::qualified(names);
        let catalog = self.cx.catalog;
        let found = catalog.collation_named(self.cx.search_path, schema, name);
        found.cloned().ok_or_else(|| catalog.missing_collation(schema, name))
    }

    /// Notes that values of a type may have a collation of their own.
    pub(crate) fn note_type_collation(&mut self, ty: Oid) {
        if types::user::is_user(ty)
            && !matches!(self.cx.catalog.type_collation(ty.0), 0 | COLLATION_C | COLLATION_DEFAULT)
        {
            self.collating = true;
        }
    }

    /// A table's column has a collation of its own.
    pub(crate) fn note_column_collation(&mut self, col: Col, collation: u32) {
        if collation != 0 {
            self.collating = true;
            self.vars[usize::from(col)].collation = collation;
        }
    }

    /// A column takes over an expression's collation.
    ///
    /// # Errors
    /// `42P21`.
    pub(crate) fn pass_collation(&mut self, col: Col, value: &Expr) -> Result<()> {
        if self.collating {
            self.vars[usize::from(col)].collation = match self.derived(value)? {
                Derived::None => 0,
                Derived::Implicit(oid, _) | Derived::Explicit(oid, _) => oid,
                Derived::Conflict(..) => INDETERMINATE,
            };
        }
        Ok(())
    }

    /// A call's column takes over the collation of its arguments.
    ///
    /// # Errors
    /// `42P21`.
    pub(crate) fn pass_collations(&mut self, col: Col, ty: Oid, args: &[Expr]) -> Result<()> {
        if self.cx.catalog.type_collation(ty.0) != 0 {
            self.vars[usize::from(col)].collation = match self.merged(args.iter())? {
                Derived::None => 0,
                Derived::Implicit(oid, _) | Derived::Explicit(oid, _) => oid,
                Derived::Conflict(..) => INDETERMINATE,
            };
        }
        Ok(())
    }

    /// The oid of a collation that an expression is known to have; 0 when it has none.
    pub(crate) fn known_collation(&self, value: &Expr) -> Result<u32> {
        Ok(match self.derived(value)? {
            Derived::None | Derived::Conflict(..) => 0,
            Derived::Implicit(oid, _) | Derived::Explicit(oid, _) => oid,
        })
    }

    /// The collation of an expression.
    ///
    /// # Errors
    /// `42P21` two that were asked for differ.
    pub(crate) fn derived(&self, e: &Expr) -> Result<Derived> {
        sched::check_stack()?;
        let of_type = match e.ty() {
            // A literal that nobody has looked at yet.
            UNKNOWN => COLLATION_DEFAULT,
            ty => self.cx.catalog.type_collation(ty.0),
        };
        if of_type == 0 {
            return Ok(Derived::None);
        }
        Ok(match e {
            Expr::Collate(_, oid, position) => Derived::Explicit(*oid, *position),
            Expr::Column(col, _) => {
                let var = &self.vars[usize::from(*col)];
                match var.collation {
                    INDETERMINATE => Derived::Conflict(0, 0, 0),
                    0 => Derived::Implicit(of_type, var.position),
                    own => Derived::Implicit(own, var.position),
                }
            }
            Expr::Slot(n, _) => match self.slot_collations.get(usize::from(*n)) {
                Some(&INDETERMINATE) => Derived::Conflict(0, 0, 0),
                Some(&own) if own != 0 => Derived::Implicit(own, 0),
                _ => Derived::Implicit(of_type, 0),
            },
            Expr::Const(..) | Expr::Param(..) | Expr::SessionValue(..) => {
                Derived::Implicit(of_type, 0)
            }
            Expr::Subquery(s) => match s.kind {
                SubqueryKind::Scalar | SubqueryKind::Array => {
                    let col = self.subqueries.get(s.plan).and_then(|q| q.cols.first().copied());
                    match col.map(|c| self.vars[usize::from(c)].collation) {
                        Some(INDETERMINATE) => Derived::Conflict(0, 0, 0),
                        Some(own) if own != 0 => Derived::Implicit(own, 0),
                        _ => Derived::Implicit(of_type, 0),
                    }
                }
                _ => Derived::None,
            },
            // A domain with a collation of its own.
            _ if types::user::is_user(e.ty())
                && !matches!(of_type, COLLATION_C | COLLATION_DEFAULT) =>
            {
                Derived::Implicit(of_type, 0)
            }
            Expr::Case { arms, default, .. } => {
                let results = arms.iter().map(|(_, r)| r).chain([&**default]);
                self.merged(results)?.or(of_type)
            }
            Expr::NullIf { args, .. } => self.merged(args.iter())?.or(of_type),
            Expr::Held(_) => Derived::Implicit(of_type, 0),
            Expr::Subscript { array, .. } => self.derived(array)?.or(of_type),
            other => {
                let mut children = Vec::new();
                walk::for_children(other, &mut |child| children.push(child));
                self.merged(children.into_iter())?.or(of_type)
            }
        })
    }

    /// The collation of several expressions together.
    ///
    /// # Errors
    /// `42P21`.
    pub(crate) fn merged<'e>(&self, all: impl Iterator<Item = &'e Expr>) -> Result<Derived> {
        let mut found = Derived::None;
        for e in all {
            found = self.meet(found, self.derived(e)?)?;
        }
        Ok(found)
    }

    fn meet(&self, a: Derived, b: Derived) -> Result<Derived> {
        use Derived as D;
        Ok(match (a, b) {
            (D::None, other) | (other, D::None) => other,
            (D::Explicit(x, _), D::Explicit(y, at)) if x != y => {
                let (x, y) = (self.collation_name(x), self.collation_name(y));
                let message =
                    format!("collation mismatch between explicit collations \"{x}\" and \"{y}\"");
                return Err(err!(COLLATION_MISMATCH, "{message}").at(at));
            }
            (D::Explicit(..), _) => a,
            (_, D::Explicit(..)) => b,
            (D::Conflict(..), _) => a,
            (_, D::Conflict(..)) => b,
            (D::Implicit(x, _), D::Implicit(y, _)) if x == y || y == COLLATION_DEFAULT => a,
            (D::Implicit(COLLATION_DEFAULT, _), _) => b,
            (D::Implicit(x, _), D::Implicit(y, at)) => D::Conflict(x, y, at),
        })
    }

    /// `COLLATION FOR (value)`: known before anything runs. NULL for what has none, as of two that differ.
    ///
    /// # Errors
    /// `42804` for a type without collations, `42P21`.
    pub(crate) fn collation_for(&self, of: &Expr) -> Result<Expr> {
        let ty = of.ty();
        if ty != UNKNOWN && self.cx.catalog.type_collation(ty.0) == 0 {
            let ty = types::io::format_type(ty, -1);
            return Err(err!(DATATYPE_MISMATCH, "collations are not supported by type {ty}"));
        }
        let name = match self.derived(of)? {
            Derived::Implicit(_, _) if ty == UNKNOWN => None,
            Derived::Implicit(oid, _) | Derived::Explicit(oid, _) => {
                self.cx.catalog.shown_collation(self.cx.search_path, oid)
            }
            _ => None,
        };
        let value = name.map_or(Datum::Null, |name| Datum::Text(name.as_str().into()));
        Ok(Expr::Const(value, TEXT))
    }

    fn collation_name(&self, oid: u32) -> String {
        self.cx.catalog.collation(oid).map_or_else(|| oid.to_string(), |c| c.name.clone())
    }

    /// `42P21` where two implicit collations meet that must be one.
    fn mismatch(&self, derived: Derived) -> Result<()> {
        match derived {
            Derived::Conflict(x, y, at) if x != 0 => {
                let (x, y) = (self.collation_name(x), self.collation_name(y));
                let message =
                    format!("collation mismatch between implicit collations \"{x}\" and \"{y}\"");
                Err(err!(COLLATION_MISMATCH, "{message}")
                    .hint("You can choose the collation by applying the COLLATE clause to one or both expressions.")
                    .at(at))
            }
            _ => Ok(()),
        }
    }

    fn is_ascii(&self, derived: Derived) -> bool {
        let (Derived::Implicit(oid, _) | Derived::Explicit(oid, _)) = derived else { return false };
        let libc = self.cx.catalog.collation(oid).and_then(|c| c.libc.as_ref());
        libc.is_some_and(|(_, ctype)| matches!(ctype.as_str(), "C" | "POSIX"))
    }

    fn by(&self, derived: Derived) -> Result<By> {
        let oid = match derived {
            Derived::None => return Ok(By::Bytes),
            Derived::Conflict(..) => return Ok(By::Nothing),
            Derived::Implicit(oid, _) | Derived::Explicit(oid, _) => oid,
        };
        match self.cx.catalog.collation(oid).map(|c| c.slot()).transpose()? {
            None | Some(Slot::BYTES) => Ok(By::Bytes),
            Some(slot) => {
                let name =
                    self.cx.catalog.shown_collation(self.cx.search_path, oid).unwrap_or_default();
                Ok(By::Keys(slot, name.as_str().into()))
            }
        }
    }

    /// A call of a function or operator, its arguments already cast: with their collation in it.
    ///
    /// # Errors
    /// `42P21`; `0A000` for searches under a collation that is not deterministic.
    pub(crate) fn collated_call(
        &mut self,
        function: &'static FunctionRow,
        args: Vec<Expr>,
        ty: Oid,
        position: u32,
    ) -> Result<Expr> {
        let args = match self.unfolded {
            true => args,
            false => self.shown_arguments(function, args)?,
        };
        if !self.collating || self.unfolded {
            return Ok(self.call(function, args, ty, position));
        }
        let derived = self.merged(args.iter())?;
        let by = match self.by(derived)? {
            By::Bytes if self.is_ascii(derived) => By::Ascii,
            other => other,
        };
        Ok(match (use_of(function), by) {
            (Use::Case(by_language), By::Ascii) => {
                let mut args = args;
                let arg = args.pop().unwrap_or(Expr::Const(Datum::Null, TEXT));
                with_slot(by_language, arg, Slot::ASCII, &types::Text::from("\"C\""), ty)
            }
            (Use::Compare(op), By::Keys(slot, name))
                if !matches!(op, "=" | "<>") || !slot.is_deterministic() =>
            {
                let function = self.of_keys(op, function, &args)?;
                let args = args.into_iter().map(|a| key(a, slot, &name)).collect();
                self.call(function, args, ty, position)
            }
            (Use::Equal, By::Keys(slot, name)) if !slot.is_deterministic() => {
                let has_text = |e: &Expr| self.cx.catalog.type_collation(e.ty().0) != 0;
                let wrap = |a: Expr| if has_text(&a) { key(a, slot, &name) } else { a };
                let args = args.into_iter().map(wrap).collect();
                self.call(function, args, ty, position)
            }
            (Use::Compare(_), By::Nothing) => indeterminate("string comparison", args, ty),
            (Use::Case(_), By::Nothing) => {
                indeterminate(&format!("{}() function", function.name), args, ty)
            }
            (Use::Search(what, true), By::Nothing) => {
                let what = match what {
                    "substring searches" => "string comparison",
                    "regular expressions" => "regular expression",
                    other => other,
                };
                indeterminate(what, args, ty)
            }
            (Use::Case(by_language), By::Keys(slot, name)) => {
                let mut args = args;
                let arg = args.pop().unwrap_or(Expr::Const(Datum::Null, TEXT));
                with_slot(by_language, arg, slot, &name, ty)
            }
            (Use::Search(what, _), By::Keys(slot, _)) if !slot.is_deterministic() => {
                return Err(not_for(what));
            }
            (Use::Search("ILIKE", _), By::Keys(slot, name)) if function.args == [TEXT, TEXT] => {
                self.like_in_lower_case(function, args, slot, &name, position)?
            }
            (Use::Search("ILIKE", _), By::Ascii) if function.args == [TEXT, TEXT] => {
                let name = types::Text::from("\"C\"");
                self.like_in_lower_case(function, args, Slot::ASCII, &name, position)?
            }
            (Use::Compare(_), _) => {
                // Once it is known how, COLLATE is not in the way of indexes.
                let args = args.into_iter().map(plain).collect();
                self.call(function, args, ty, position)
            }
            _ => self.call(function, args, ty, position),
        })
    }

    /// ILIKE by a collation's lower case: LIKE of both sides in it.
    fn like_in_lower_case(
        &mut self,
        function: &FunctionRow,
        args: Vec<Expr>,
        slot: Slot,
        name: &types::Text,
        position: u32,
    ) -> Result<Expr> {
        let op = if function.name.contains("icn") { "!~~" } else { "~~" };
        let like = exact(op, TEXT, TEXT).and_then(|o| types::func::function(o.function));
        let like = like.ok_or_else(|| base::Error::internal("LIKE of texts is missing"))?;
        let lower = |a| with_slot(&internal::LOWER, plain(a), slot, name, TEXT);
        let args = args.into_iter().map(lower).collect();
        Ok(self.call(like, args, BOOL, position))
    }

    /// The function behind a comparison's operator over keys.
    fn of_keys(
        &self,
        name: &str,
        function: &'static FunctionRow,
        args: &[Expr],
    ) -> Result<&'static FunctionRow> {
        // Functions over arrays take those of any element.
        if args.iter().any(|a| types::TypeIo::array_element(a.ty()).is_some()) {
            return Ok(function);
        }
        exact(name, BYTEA, BYTEA)
            .and_then(|o| types::func::function(o.function))
            .ok_or_else(|| Error::internal("no comparison of bytea"))
    }

    /// Both sides of a comparison that is no plain call.
    ///
    /// # Errors
    /// `42P21`.
    pub(crate) fn collated_pair(
        &mut self,
        function: &'static FunctionRow,
        left: Expr,
        right: Expr,
    ) -> Result<(&'static FunctionRow, Expr, Expr)> {
        if !self.collating || self.unfolded {
            return Ok((function, left, right));
        }
        let Use::Compare(op) = use_of(function) else { return Ok((function, left, right)) };
        Ok(match self.by(self.merged([&left, &right].into_iter())?)? {
            By::Bytes | By::Ascii => (function, plain(left), plain(right)),
            By::Keys(slot, _) if matches!(op, "=" | "<>") && slot.is_deterministic() => {
                (function, plain(left), plain(right))
            }
            By::Keys(slot, name) => {
                // The element's operator, whatever stands on the sides (`= ANY (array)`).
                let function = match exact(op, BYTEA, BYTEA) {
                    Some(o) if function.args.first() != Some(&ANYARRAY) => {
                        types::func::function(o.function).unwrap_or(function)
                    }
                    _ => function,
                };
                (function, key(left, slot, &name), key(right, slot, &name))
            }
            By::Nothing => {
                let ty = left.ty();
                (function, indeterminate("string comparison", vec![left], ty), right)
            }
        })
    }

    /// What a sort compares in place of a value.
    ///
    /// # Errors
    /// `42P21`.
    pub(crate) fn sort_value(&self, value: Expr) -> Result<Expr> {
        if !self.collating || self.unfolded {
            return Ok(value);
        }
        let derived = self.derived(&value)?;
        self.mismatch(derived)?;
        Ok(match self.by(derived)? {
            By::Bytes | By::Ascii => plain(value),
            By::Keys(slot, name) => key(value, slot, &name),
            By::Nothing => {
                let ty = value.ty();
                indeterminate("string comparison", vec![value], ty)
            }
        })
    }

    /// The same for keys of a sort.
    ///
    /// # Errors
    /// `42P21`.
    pub(crate) fn sort_values(&self, keys: &mut [SortKey]) -> Result<()> {
        if self.collating {
            for key in keys {
                let value = std::mem::replace(&mut key.expr, Expr::Row(Vec::new()));
                key.expr = self.sort_value(value)?;
            }
        }
        Ok(())
    }

    /// What is compared to see whether two values are equal, when it is not the values themselves.
    ///
    /// # Errors
    /// `42P21`.
    pub(crate) fn equal_value(&self, value: &Expr) -> Result<Option<Expr>> {
        if !self.collating || self.unfolded {
            return Ok(None);
        }
        let derived = self.derived(value)?;
        self.mismatch(derived)?;
        Ok(match self.by(derived)? {
            By::Keys(slot, name) if !slot.is_deterministic() => {
                Some(key(value.clone(), slot, &name))
            }
            By::Nothing => {
                let ty = value.ty();
                Some(indeterminate("string comparison", vec![value.clone()], ty))
            }
            _ => None,
        })
    }

    /// The same for a list of values, each of them or what stands for it.
    ///
    /// # Errors
    /// `42P21`.
    pub(crate) fn equal_values(&self, values: &mut [Expr]) -> Result<()> {
        if self.collating {
            for value in values {
                if let Some(key) = self.equal_value(value)? {
                    *value = key;
                }
            }
        }
        Ok(())
    }

    /// `0A000` where rows are compared as wholes and a column's texts may be equal that differ.
    ///
    /// # Errors
    /// See above.
    pub(crate) fn require_deterministic(&self, cols: &[Col], what: &str) -> Result<()> {
        for col in cols {
            if self.collating && self.equal_value(&self.column(*col))?.is_some() {
                return Err(Error::unsupported(format!(
                    "{what} of texts with a collation that is not deterministic"
                )));
            }
        }
        Ok(())
    }

    /// GREATEST and LEAST.
    ///
    /// # Errors
    /// `42P21`.
    pub(crate) fn collated_extreme(
        &mut self,
        greatest: bool,
        args: Vec<Expr>,
        ty: Oid,
    ) -> Result<Expr> {
        if self.collating && !self.unfolded {
            match self.by(self.merged(args.iter())?)? {
                By::Bytes | By::Ascii => {}
                By::Nothing => return Ok(indeterminate("string comparison", args, ty)),
                By::Keys(slot, _) => {
                    let first = [
                        Expr::Const(Datum::Bool(greatest), BOOL),
                        Expr::Const(Datum::Oid(u32::from(slot.0)), OID),
                    ];
                    let args = first.into_iter().chain(args).collect();
                    let function = &internal::EXTREME;
                    return Ok(Expr::Call { function, args, ty, position: 0 });
                }
            }
        }
        Ok(Expr::MinMax { greatest, args, ty })
    }

    /// An aggregate's call with the collation of its argument: min and max by keys, DISTINCT.
    ///
    /// # Errors
    /// `42P21`; `0A000` DISTINCT over a collation that is not deterministic.
    pub(crate) fn collated_aggregate(&mut self, call: &mut AggCall) -> Result<()> {
        if self.unfolded {
            return Ok(());
        }
        if call.distinct && !is_of_a_set(call) {
            sort_by_arguments(call);
        }
        if !self.collating {
            return Ok(());
        }
        self.sort_values(&mut call.order)?;
        let [arg, ..] = &call.args[..] else { return Ok(()) };
        if call.own.is_some() {
            return Ok(());
        }
        let by = self.by(self.merged(call.args.iter())?)?;
        let extreme = matches!(call.aggregate.name, "min" | "max");
        match by {
            By::Keys(slot, name) if extreme => {
                let key = key(arg.clone(), slot, &name);
                call.aggregate = match call.aggregate.name {
                    "min" => &internal::MIN_BY,
                    _ => &internal::MAX_BY,
                };
                call.args.push(key);
                call.distinct = false;
            }
            By::Keys(slot, name) if call.distinct && !slot.is_deterministic() => {
                if call.aggregate.name != "count" {
                    return Err(Error::unsupported(
                        "DISTINCT in an aggregate over a collation that is not deterministic",
                    ));
                }
                call.args = vec![key(arg.clone(), slot, &name)];
            }
            By::Nothing if extreme || call.distinct => {
                let ty = arg.ty();
                call.args = vec![indeterminate("string comparison", vec![arg.clone()], ty)];
            }
            _ => {}
        }
        Ok(())
    }

    /// The column of a set operation from those of its sides.
    ///
    /// # Errors
    /// `42P21`; of UNION ALL none.
    pub(crate) fn set_collation(&mut self, to: Col, from: [Col; 2], all: bool) -> Result<()> {
        if !self.collating {
            return Ok(());
        }
        let [left, right] = from.map(|c| self.column(c));
        let derived = self.merged([&left, &right].into_iter())?;
        if !all {
            self.mismatch(derived)?;
        }
        self.vars[usize::from(to)].collation = match derived {
            Derived::None => 0,
            Derived::Implicit(oid, _) | Derived::Explicit(oid, _) => oid,
            Derived::Conflict(..) => INDETERMINATE,
        };
        Ok(())
    }

    /// See [`crate::plan::OutputColumn::collation`].
    ///
    /// # Errors
    /// `42P21`.
    pub(crate) fn output_collation(&self, value: &Expr) -> Result<u32> {
        if !self.collating {
            return Ok(0);
        }
        Ok(match self.derived(value)? {
            Derived::None => 0,
            Derived::Conflict(..) => INDETERMINATE,
            Derived::Implicit(oid, _) | Derived::Explicit(oid, _) => {
                if oid == self.cx.catalog.type_collation(value.ty().0) { 0 } else { oid }
            }
        })
    }
}

impl Derived {
    /// With a type's own collation where there is none.
    fn or(self, of_type: u32) -> Derived {
        match self {
            Derived::None => Derived::Implicit(of_type, 0),
            known => known,
        }
    }
}

fn not_for(what: &str) -> Error {
    err!(FEATURE_NOT_SUPPORTED, "nondeterministic collations are not supported for {what}")
}

fn indeterminate(what: &str, mut args: Vec<Expr>, ty: Oid) -> Expr {
    args.push(Expr::Const(Datum::text(what), TEXT));
    Expr::Call { function: &internal::INDETERMINATE, args: args.into(), ty, position: 0 }
}

/// Whether the order of its values is nothing to an aggregate.
fn is_of_a_set(call: &AggCall) -> bool {
    const OF_SETS: [&str; 14] = [
        "count",
        "min",
        "max",
        "sum",
        "avg",
        "bool_and",
        "bool_or",
        "every",
        "bit_and",
        "bit_or",
        "bit_xor",
        "variance",
        "stddev",
        "range_intersect_agg",
    ];
    let rounds = call.args.iter().any(|arg| matches!(arg.ty(), FLOAT4 | FLOAT8));
    call.own.is_none() && !rounds && OF_SETS.contains(&call.aggregate.name)
}

/// Values that are told apart by sorting them come in order, as in PostgreSQL: first as ORDER BY says.
fn sort_by_arguments(call: &mut AggCall) {
    for arg in call.args.iter().map(super::aggregate::before_json) {
        if !call.order.iter().any(|key| walk::same(&key.expr, arg)) {
            let key = SortKey { expr: arg.clone(), descending: false, nulls_first: false };
            call.order.push(key);
        }
    }
}

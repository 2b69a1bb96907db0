//! Casts: which exist, and how an expression gets another type (manual, sections 10.4 and 10.5).

use base::{Oid, Result, err};
use types::func::{Body, CallTypes, CastContext, CastMethod, FunctionRow, Volatility};
use types::oids::*;
use types::{Datum, TypeIo, user};

use crate::expr::Expr;

use super::Binder;
use super::overload::category;

/// `anycompatible`, `anycompatiblearray`, `anycompatiblenonarray`, `anynonarray`, `anyenum`.
pub(crate) const ANYCOMPATIBLE: Oid = Oid(5077);
pub(crate) const ANYCOMPATIBLEARRAY: Oid = Oid(5078);
pub(crate) const ANYCOMPATIBLENONARRAY: Oid = Oid(5079);
pub(crate) const ANYNONARRAY: Oid = Oid(2776);
pub(crate) const ANYENUM: Oid = Oid(3500);

/// Whether a type is a placeholder in a function's signature.
pub(crate) fn is_polymorphic(ty: Oid) -> bool {
    ty == ANYELEMENT
        || ty == ANYARRAY
        || ty == ANYCOMPATIBLE
        || ty == ANYCOMPATIBLEARRAY
        || ty == ANYCOMPATIBLENONARRAY
        || ty == ANYNONARRAY
        || ty == ANYENUM
        || matches!(ty, ANYRANGE | ANYMULTIRANGE | ANYCOMPATIBLERANGE | ANYCOMPATIBLEMULTIRANGE)
}

/// The type below a domain; others are their own.
pub(crate) fn base_of(ty: Oid) -> Oid {
    if user::is_user(ty) { user::base_type(ty, -1).0 } else { ty }
}

/// The same inside arrays, too: what a value is before its domains' constraints are checked.
fn unchecked(ty: Oid) -> Oid {
    let base = base_of(ty);
    match element_of(base) {
        element if user::is_user(element) && unchecked(element) != element => {
            array_of(unchecked(element))
        }
        _ => base,
    }
}

/// The element type of an array type, or of a domain over one; INVALID for others.
pub(crate) fn element_of(ty: Oid) -> Oid {
    match base_of(ty) {
        INT2VECTOR => INT2,
        OIDVECTOR => OID,
        ty => TypeIo::get(ty).map_or(Oid::INVALID, |io| io.element),
    }
}

/// The array type over a type; INVALID when there is none.
pub(crate) fn array_of(ty: Oid) -> Oid {
    TypeIo::get(ty).map_or(Oid::INVALID, |io| io.array)
}

/// Whether a value of one type is one of another as it is: no function has to be called.
pub fn is_binary_coercible(catalog: &catalog::Snapshot, from: Oid, to: Oid) -> bool {
    if from == to || to == ANY || matches!(to, ANYELEMENT | ANYCOMPATIBLE) {
        return true;
    }
    if is_polymorphic(to) {
        return can_coerce_implicitly(from, to);
    }
    let from = base_of(from);
    from == to
        || to == RECORD && user::shape(from).is_some()
        || catalog::system::facts::is_binary_cast(from.0, to.0)
        || catalog.cast(from.0, to.0).is_some_and(|c| c.method == 'b' && c.context == 'i')
}

/// How to get from one type to another where a cast of at least this context is allowed.
pub(crate) fn pathway(from: Oid, to: Oid, want: CastContext) -> Option<CastMethod> {
    let (from, to) = (base_of(from), base_of(to));
    if from == to || to == RECORD && user::shape(from).is_some() {
        return Some(CastMethod::Binary);
    }
    if let Some(row) = user::cast(from, to) {
        return (row.context >= want).then_some(row.method);
    }
    if let Some(row) = types::func::cast(from, to) {
        return (row.context >= want).then_some(row.method);
    }
    let (from_element, to_element) = (element_of(from), element_of(to));
    let vector = to == OIDVECTOR || to == INT2VECTOR;
    if from_element != Oid::INVALID && to_element != Oid::INVALID && !vector {
        // Arrays convert as their elements do, but nothing becomes a vector by itself.
        return pathway(from_element, to_element, want).map(|method| match method {
            CastMethod::Binary => CastMethod::Binary,
            _ => CastMethod::InOut,
        });
    }
    // Any type goes to text by assignment and comes from text when asked.
    let string = |ty| category(ty) == b'S';
    if want <= CastContext::Assignment && string(to) && from != RECORD {
        return Some(CastMethod::InOut);
    }
    if want == CastContext::Explicit && string(from) && !is_polymorphic(to) && to != ANY {
        return Some(CastMethod::InOut);
    }
    if want == CastContext::Explicit && from == RECORD && string(to) {
        return Some(CastMethod::InOut);
    }
    None
}

/// Whether a value of one type can stand where another is expected, unasked.
pub(crate) fn can_coerce_implicitly(from: Oid, to: Oid) -> bool {
    if from == to || to == ANY {
        return true;
    }
    // Nothing that a statement can write is a value of the server's own memory.
    if from == UNKNOWN {
        return to != INTERNAL;
    }
    // A row that is written out; any other is refused when it is cast.
    if from == RECORD && user::is_user(to) && user::shape(to).is_some() {
        return true;
    }
    match to {
        ANYELEMENT | ANYCOMPATIBLE => true,
        ANYARRAY | ANYCOMPATIBLEARRAY => element_of(from) != Oid::INVALID,
        ANYRANGE | ANYCOMPATIBLERANGE => types::range::subtype(from).is_some(),
        ANYMULTIRANGE | ANYCOMPATIBLEMULTIRANGE => types::range::range_of(from).is_some(),
        ANYENUM => user::is_enum(base_of(from)),
        _ if to == ANYNONARRAY || to == ANYCOMPATIBLENONARRAY => element_of(from) == Oid::INVALID,
        _ => pathway(from, to, CastContext::Implicit).is_some(),
    }
}

/// Calls of constants that are remembered; each is looked through once more where it is an argument.
const CONSTANT_CALLS_MAX: usize = 16;

/// Evaluates a call whose arguments are all constants; None when that must wait for run time.
fn fold(
    function: &FunctionRow,
    args: &[Expr],
    result: Oid,
    format: &types::FormatContext,
) -> Option<Datum> {
    if function.volatility != Volatility::Immutable || function.returns_set {
        return None;
    }
    if !matches!(function.body, Body::Scalar(_) | Body::Typed(_)) {
        return None;
    }
    // A NULL decides, whatever the other arguments would be or raise.
    let plain = |arg: &Expr| {
        !crate::walk::has_columns(arg)
            && !crate::walk::has_set(arg)
            && !crate::walk::has_subquery(arg)
    };
    if function.strict
        && args.iter().any(|arg| matches!(arg, Expr::Const(value, _) if value.is_null()))
        && args.iter().all(plain)
    {
        return Some(Datum::Null);
    }
    let mut values = Vec::with_capacity(args.len());
    for arg in args {
        match arg {
            Expr::Const(value, _) => values.push(value.clone()),
            _ => return None,
        }
    }
    if function.strict && values.iter().any(Datum::is_null) {
        return Some(Datum::Null);
    }
    let types: Vec<Oid> = args.iter().map(Expr::ty).collect();
    let types = CallTypes { args: &types, result };
    match function.body.run(&values, types, format)? {
        Ok(value) => Some(value),
        Err(error) => {
            crate::prepare::keep_interrupt(&error);
            None
        }
    }
}

impl Binder<'_> {
    /// A call, computed at once if it can be.
    pub(crate) fn call(
        &self,
        function: &'static FunctionRow,
        args: Vec<Expr>,
        ty: Oid,
        position: u32,
    ) -> Expr {
        if !self.unfolded
            && let Some(value) = fold(function, &args, ty, self.cx.format)
        {
            return Expr::Const(value, ty);
        }
        let call = Expr::Call { function, args: args.into_boxed_slice(), ty, position };
        if self.is_of_constants(&call) {
            let (guarded, conditional) = (self.elective > 0, self.conditional > 0);
            let call = crate::plan::ConstantCall { call: call.clone(), guarded, conditional };
            self.constant_calls.borrow_mut().push(call);
        }
        call
    }

    /// Whether a call is one of constants, which literals are though they become parameters, and of such calls.
    pub(crate) fn is_of_constants(&self, e: &Expr) -> bool {
        match e {
            Expr::Const(..) => true,
            Expr::Param(..) => self.is_lifted(),
            Expr::Call { function, args, .. } => {
                function.volatility == Volatility::Immutable
                    && !function.returns_set
                    && matches!(function.body, Body::Scalar(_) | Body::Typed(_))
                    && self.constant_calls.borrow().len() < CONSTANT_CALLS_MAX
                    && args.iter().all(|arg| self.is_of_constants(arg))
            }
            _ => false,
        }
    }

    /// Gives an expression another type; None when no such cast is allowed here.
    ///
    /// # Errors
    /// A constant that isn't a value of the type.
    pub(crate) fn coerce(
        &mut self,
        expr: Expr,
        to: Oid,
        context: CastContext,
        position: u32,
    ) -> Result<Option<Expr>> {
        let from = expr.ty();
        if from == to || to == ANY || is_polymorphic(to) {
            return Ok(Some(expr));
        }
        if let Expr::Collate(value, collation, at) = expr {
            // The cast goes below it, and takes it away from a type that has none.
            let cast = self.coerce(*value, to, context, position)?;
            return Ok(cast.map(|e| match self.cx.catalog.type_collation(to.0) {
                0 => e,
                _ => Expr::Collate(Box::new(e), collation, at),
            }));
        }
        let is_param = from == UNKNOWN && matches!(expr, Expr::Param(..));
        if user::has_domains(to) && unchecked(to) != to && !is_param {
            let (base, typmod) = user::base_type(to, -1);
            let below = if base == to { unchecked(to) } else { base };
            let Some(value) = self.coerce(expr, below, context, position)? else {
                return Ok(None);
            };
            let explicit = context == CastContext::Explicit;
            let value = self.with_typmod(value, typmod, explicit, position)?;
            return Ok(Some(self.checked(value, to)));
        }
        if from == UNKNOWN {
            return self.coerce_unknown(expr, to, position).map(Some);
        }
        if let (RECORD, Some(shape)) = (from, user::shape(to))
            && let Some(fields) = row_fields(&expr)
        {
            return self.row_as(fields.to_vec(), &shape, to, context, position).map(Some);
        }
        if from == RECORD && self.row_type_of(&expr) == Some(to) {
            return Ok(Some(Expr::Relabel(Box::new(expr), to)));
        }
        if let Expr::Param(param, _) = &expr
            && self.is_lifted()
            && widens(from, to)
        {
            return Ok(Some(self.retype_lifted(*param, to)));
        }
        if let Expr::Row(fields) = &expr
            && to != RECORD
            && context != CastContext::Explicit
        {
            let _ = fields;
            return Ok(None);
        }
        let Some(method) = pathway(from, to, context) else { return Ok(None) };
        let vector = matches!(base_of(from), INT2VECTOR | OIDVECTOR);
        if vector && method == CastMethod::InOut && element_of(to) != Oid::INVALID {
            // A vector's text is no array's.
            let array = relabel(expr, array_of(element_of(from)));
            return self.coerce(array, to, context, position);
        }
        Ok(Some(self.apply(expr, to, method, context, position)?))
    }

    /// A value whose domains' constraints are checked.
    pub(crate) fn checked(&self, value: Expr, to: Oid) -> Expr {
        let args = Box::new([value, Expr::Const(Datum::Oid(to.0), OID)]);
        Expr::Call { function: &types::func::internal::DOMAIN_CHECK, args, ty: to, position: 0 }
    }

    /// The same, if there are domains in it.
    fn checked_if(&self, value: Expr, to: Oid) -> Expr {
        if user::has_domains(to) { self.checked(value, to) } else { value }
    }

    /// `ROW(…)` as a value of a composite type.
    fn row_as(
        &mut self,
        fields: Vec<Expr>,
        shape: &std::sync::Arc<types::datum::Shape>,
        to: Oid,
        context: CastContext,
        position: u32,
    ) -> Result<Expr> {
        let fail = |detail: String| {
            let name = types::io::format_type(to, -1);
            err!(CANNOT_COERCE, "cannot cast type record to {name}").detail(detail).at(position)
        };
        if fields.len() != shape.columns.len() {
            let word = if fields.len() < shape.columns.len() { "few" } else { "many" };
            return Err(fail(format!("Input has too {word} columns.")));
        }
        let typmods = composite_typmods(to);
        let mut out = Vec::with_capacity(fields.len());
        for (at, (field, (_, ty))) in fields.into_iter().zip(&shape.columns).enumerate() {
            let from = field.ty();
            // A literal in a row that is assigned is one of the column's type.
            let field = match field {
                Expr::Const(text @ Datum::Text(_), TEXT) if *ty != TEXT => {
                    Expr::Const(text, UNKNOWN)
                }
                other => other,
            };
            let Some(value) = self.coerce(field, *ty, context, position)? else {
                return Err(fail(format!(
                    "Cannot cast type {} to {} in column {}.",
                    types::io::format_type(from, -1),
                    types::io::format_type(*ty, -1),
                    at + 1
                )));
            };
            let typmod = typmods.get(at).copied().unwrap_or(-1);
            let explicit = context == CastContext::Explicit;
            out.push(self.with_typmod(value, typmod, explicit, position)?);
        }
        Ok(super::expr::typed_row(out, shape.clone()))
    }

    fn apply(
        &mut self,
        expr: Expr,
        to: Oid,
        method: CastMethod,
        context: CastContext,
        position: u32,
    ) -> Result<Expr> {
        Ok(match method {
            CastMethod::Binary if self.unfolded => Expr::Relabel(Box::new(expr), to),
            CastMethod::Binary => relabel(expr, to),
            CastMethod::InOut => match item_cast(expr.ty(), to, context) {
                Some(oid) => {
                    let function = Expr::Const(Datum::Oid(oid.0), OID);
                    self.call(&types::func::internal::ARRAY_CAST, vec![expr, function], to, 0)
                }
                None => self.in_out(expr, to, -1),
            },
            CastMethod::Function(oid) => {
                let Some(function) = crate::routine::callable(self.cx.catalog, oid.0) else {
                    return Err(base::Error::unsupported(format!(
                        "cast from {} to {}",
                        types::io::format_type(expr.ty(), -1),
                        types::io::format_type(to, -1)
                    ))
                    .at(position));
                };
                let from = expr.ty();
                let mut args = vec![expr];
                if let Some(first) = function.args.first()
                    && *first != from
                    && !is_polymorphic(*first)
                    && let Some(own) = self.binary_argument(from, *first)
                {
                    args = vec![own(args.remove(0))];
                }
                if function.args.len() > 1 {
                    args.push(Expr::Const(Datum::Int4(-1), INT4));
                }
                if function.args.len() > 2 {
                    let explicit = context == CastContext::Explicit;
                    args.push(Expr::Const(Datum::Bool(explicit), BOOL));
                }
                if matches!(function.body, Body::User) {
                    self.note_call(function.oid);
                    self.note_use(function.oid.0, 0);
                }
                let result = function.result;
                if types::io::is_reg(to) && !types::row::same_form(result, to) {
                    // `int2` becomes `int4` on its way to an object's name.
                    let number = self.call(function, args, result, position);
                    self.in_out(number, to, -1)
                } else {
                    self.call(function, args, to, position)
                }
            }
        })
    }

    /// What makes a value of one type one of another as it is.
    fn binary_argument(&self, from: Oid, to: Oid) -> Option<impl Fn(Expr) -> Expr + use<>> {
        let fits = is_binary_coercible(self.cx.catalog, from, to);
        fits.then_some(move |e| relabel(e, to))
    }

    fn in_out(&self, expr: Expr, ty: Oid, typmod: i32) -> Expr {
        if let Expr::Const(Datum::Null, _) = expr
            && !self.unfolded
        {
            return Expr::Const(Datum::Null, ty);
        }
        self.checked_if(Expr::InOutCast { arg: Box::new(expr), ty, typmod }, ty)
    }

    /// A literal or parameter of a type not yet known becomes one of this type.
    fn coerce_unknown(&mut self, expr: Expr, to: Oid, position: u32) -> Result<Expr> {
        match expr {
            Expr::Const(Datum::Null, _) => {
                let null = Expr::Const(Datum::Null, to);
                Ok(if base_of(to) == to { null } else { self.checked(null, to) })
            }
            Expr::Const(Datum::Text(text), _) => {
                let value = self.literal(&text, to, position)?;
                Ok(self.checked_if(value, to))
            }
            Expr::Param(param, _) if self.is_lifted() => {
                if needs_catalog(to) {
                    // Such a literal must be looked up now; prepare tries again without lifting.
                    return Err(base::Error::unsupported("literal of this type as a parameter"));
                }
                let value = self.retype_lifted(param, to);
                Ok(self.checked_if(value, to))
            }
            Expr::Param(param, _) => {
                let value = self.set_param(param, to, position)?;
                Ok(self.checked_if(value, to))
            }
            other => Ok(self.in_out(other, to, -1)),
        }
    }

    /// A quoted literal read as a value of a type.
    pub(crate) fn literal(&mut self, text: &str, to: Oid, position: u32) -> Result<Expr> {
        if needs_catalog(to) {
            return self
                .object_literal(text, to)
                .map_err(|e| e.at(self.literal_position(text, position)));
        }
        // A definition keeps the moment at which it was made.
        if matches!(to, DATE | TIME | TIMETZ | TIMESTAMP | TIMESTAMPTZ)
            && depends_on_now(text)
            && !self.unfolded
        {
            let text = Expr::Const(Datum::Text(text.into()), TEXT);
            return Ok(Expr::InOutCast { arg: Box::new(text), ty: to, typmod: -1 });
        }
        let value = types::io::input(to, -1, text, self.cx.format)
            .map_err(|e| e.at(self.literal_position(text, position)))?;
        Ok(Expr::Const(value, to))
    }

    /// Where a quoted literal stands that can't be read: the one with this text nearest to
    /// `near`. (Expressions don't carry their positions; this is needed on the way to an error
    /// only.)
    fn literal_position(&self, text: &str, near: u32) -> u32 {
        let quoted = format!("'{}'", text.replace('\'', "''"));
        self.text
            .match_indices(&quoted)
            .map(|(at, _)| self.at(at as i32))
            .min_by_key(|at| if near == 0 { *at } else { at.abs_diff(near) })
            .unwrap_or(near)
    }

    /// Applies a typmod to a value that has its type.
    pub(crate) fn with_typmod(
        &self,
        expr: Expr,
        typmod: i32,
        explicit: bool,
        position: u32,
    ) -> Result<Expr> {
        let ty = expr.ty();
        if typmod < 0 || self.typmod_of(&expr) == typmod {
            return Ok(expr);
        }
        if let Expr::Const(value, _) = &expr
            && !self.unfolded
        {
            if value.is_null() {
                return Ok(expr);
            }
            match types::io::apply_typmod(ty, typmod, value.clone(), explicit) {
                Ok(value) => return Ok(Expr::Const(value, ty)),
                // An assignment's error belongs to run time; an explicit cast's too.
                Err(_) => {
                    let _ = position;
                }
            }
        }
        Ok(Expr::Typmod { arg: Box::new(expr), ty, typmod, explicit })
    }

    /// `CAST(expr AS type)`.
    pub(crate) fn explicit_cast(
        &mut self,
        expr: Expr,
        to: Oid,
        typmod: i32,
        position: u32,
        arg_position: u32,
    ) -> Result<Expr> {
        let from = expr.ty();
        let at = if from == UNKNOWN { arg_position } else { position };
        if let (UNKNOWN, INTERVAL, 0.., Expr::Const(Datum::Text(text), _)) =
            (from, to, typmod, &expr)
        {
            // `interval '1' year`: the fields tell what the number is.
            let value = types::io::input(to, typmod, text, self.cx.format)
                .map_err(|e| e.at(self.literal_position(text, at)))?;
            let arg = Box::new(Expr::Const(value, to));
            return Ok(match self.unfolded {
                true => self.written_cast(Expr::Typmod { arg, ty: to, typmod, explicit: true }),
                false => *arg,
            });
        }
        // Integers become bits of the length that the cast names: the lowest ones.
        let bits = match (from, to) {
            (INT4, BIT) => types::func::function(Oid(1683)),
            (INT8, BIT) => types::func::function(Oid(2075)),
            _ => None,
        };
        if let (Some(function), 1..) = (bits, typmod) {
            let length = Expr::Const(Datum::Int4(typmod), INT4);
            let cast = self.call(function, vec![expr, length], BIT, position);
            return Ok(self.written_cast(cast));
        }
        let before = (from, self.typmod_of(&expr));
        match self.coerce(expr, to, CastContext::Explicit, at)? {
            Some(cast) => {
                let cast = self.with_typmod(cast, typmod, true, position)?;
                let changes = before.0 != to || typmod >= 0 && before.1 != typmod;
                Ok(if changes { self.written_cast(cast) } else { cast })
            }
            None => Err(err!(
                CANNOT_COERCE,
                "cannot cast type {} to {}",
                types::io::format_type(from, -1),
                types::io::format_type(to, -1)
            )
            .at(position)),
        }
    }

    /// A cast that was written, so that it is printed where one that is implied is not.
    fn written_cast(&self, cast: Expr) -> Expr {
        if !self.unfolded || matches!(cast, Expr::Const(..)) {
            return cast;
        }
        let ty = cast.ty();
        let function = &types::func::internal::WRITTEN_CAST;
        Expr::Call { function, args: Box::new([cast]), ty, position: 0 }
    }

    /// What a column is assigned: cast and typmod, `42804` if it doesn't fit.
    pub(crate) fn assign(
        &mut self,
        expr: Expr,
        to: Oid,
        typmod: i32,
        column: &str,
        position: u32,
    ) -> Result<Expr> {
        let from = expr.ty();
        match self.coerce(expr, to, CastContext::Assignment, position)? {
            Some(cast) => self.with_typmod(cast, typmod, false, position),
            None => Err(err!(
                DATATYPE_MISMATCH,
                "column \"{column}\" is of type {} but expression is of type {}",
                types::io::format_type(to, -1),
                types::io::format_type(from, -1)
            )
            .hint("You will need to rewrite or cast the expression.")
            .at(position)),
        }
    }

    /// A condition: must be boolean.
    pub(crate) fn boolean(&mut self, expr: Expr, what: &str, position: u32) -> Result<Expr> {
        let from = expr.ty();
        match self.coerce(expr, BOOL, CastContext::Assignment, position)? {
            Some(e) if self.expands && crate::walk::has_set(&e) => {
                Err(err!(DATATYPE_MISMATCH, "argument of {what} must not return a set")
                    .at(position))
            }
            Some(e) => Ok(e),
            None => Err(err!(
                DATATYPE_MISMATCH,
                "argument of {what} must be type boolean, not type {}",
                types::io::format_type(from, -1)
            )
            .at(position)),
        }
    }

    /// The type that branches of CASE, UNION, VALUES … get together.
    ///
    /// # Errors
    /// `42804` when they have nothing in common.
    pub(crate) fn common_type(&self, types: &[(Oid, u32)], what: &str) -> Result<Oid> {
        self.try_common_type(types).map_err(|(a, b, position)| {
            err!(
                DATATYPE_MISMATCH,
                "{what} types {} and {} cannot be matched",
                types::io::format_type(a, -1),
                types::io::format_type(b, -1)
            )
            .at(position)
        })
    }

    /// As [`Binder::common_type`]; the two types that can't be matched otherwise.
    pub(crate) fn try_common_type(
        &self,
        types: &[(Oid, u32)],
    ) -> std::result::Result<Oid, (Oid, Oid, u32)> {
        let mut known = types.iter().filter(|(t, _)| *t != UNKNOWN);
        let Some((mut chosen, _)) = known.next().copied() else { return Ok(TEXT) };
        if known.clone().any(|(ty, _)| *ty != chosen) {
            chosen = base_of(chosen);
        }
        for (ty, position) in known {
            let ty = &base_of(*ty);
            if *ty == base_of(chosen) {
                continue;
            }
            if category(*ty) != category(chosen) {
                return Err((chosen, *ty, *position));
            }
            let preferred = TypeIo::get(chosen).is_some_and(|io| io.preferred);
            if !preferred
                && can_coerce_implicitly(chosen, *ty)
                && !can_coerce_implicitly(*ty, chosen)
            {
                chosen = *ty;
            }
        }
        Ok(chosen)
    }

    /// Casts a branch to the common type.
    pub(crate) fn to_common(
        &mut self,
        expr: Expr,
        to: Oid,
        what: &str,
        position: u32,
    ) -> Result<Expr> {
        let from = expr.ty();
        match self.coerce(expr, to, CastContext::Implicit, position)? {
            Some(e) => Ok(e),
            None => Err(err!(
                CANNOT_COERCE,
                "{what} could not convert type {} to {}",
                types::io::format_type(from, -1),
                types::io::format_type(to, -1)
            )
            .at(position)),
        }
    }

    /// A literal whose type was never asked for is text.
    pub(crate) fn resolve_unknown(&mut self, expr: Expr) -> Result<Expr> {
        match expr {
            expr if expr.ty() != UNKNOWN => Ok(expr),
            Expr::Collate(value, collation, at) => {
                let value = self.resolve_unknown(*value)?;
                Ok(Expr::Collate(Box::new(value), collation, at))
            }
            expr => self.coerce_unknown(expr, TEXT, 0),
        }
    }
}

/// The fields of a row that is written out, or of a FROM item's whole row.
pub(crate) fn row_fields(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Row(fields) => Some(fields),
        Expr::Call { function, args, .. }
            if function.oid == types::func::internal::SHAPED_ROW.oid =>
        {
            row_fields(&args[0])
        }
        _ => None,
    }
}

/// The typmod of a composite type's column, from 0.
pub(crate) fn typmod_of_field(ty: Oid, at: usize) -> i32 {
    composite_typmods(ty).get(at).copied().unwrap_or(-1)
}

fn composite_typmods(ty: Oid) -> Vec<i32> {
    match user::get(base_of(ty)).map(|t| t.kind.clone()) {
        Some(user::UserKind::Composite { typmods, .. }) => typmods,
        _ => Vec::new(),
    }
}

/// The function that casts an array's items.
fn item_cast(from: Oid, to: Oid, context: CastContext) -> Option<Oid> {
    let (from, to) = (element_of(from), element_of(to));
    if from == Oid::INVALID || to == Oid::INVALID {
        return None;
    }
    match pathway(from, to, context)? {
        CastMethod::Function(oid) => {
            let body = types::func::function(oid)?.body;
            matches!(body, Body::Scalar(_) | Body::Typed(_)).then_some(oid)
        }
        _ => None,
    }
}

pub(super) fn relabel(expr: Expr, to: Oid) -> Expr {
    match expr {
        Expr::Const(value, _) => Expr::Const(types::open::relabel(value, to), to),
        Expr::Relabel(inner, _) if inner.ty() == to => *inner,
        Expr::Relabel(inner, _) => Expr::Relabel(inner, to),
        other => Expr::Relabel(Box::new(other), to),
    }
}

/// Numbers whose text reads the same as the wider type.
fn widens(from: Oid, to: Oid) -> bool {
    matches!(
        (from, to),
        (INT4, INT8 | NUMERIC | FLOAT8) | (INT8, NUMERIC | FLOAT8) | (NUMERIC, FLOAT8)
    )
}

/// Types whose input looks names up.
pub(crate) fn needs_catalog(ty: Oid) -> bool {
    matches!(
        ty,
        REGCLASS
            | REGTYPE
            | REGPROC
            | REGPROCEDURE
            | REGOPER
            | REGOPERATOR
            | REGCOLLATION
            | REGNAMESPACE
            | REGROLE
    )
}

fn depends_on_now(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["now", "today", "tomorrow", "yesterday"].iter().any(|w| lower.contains(w))
}

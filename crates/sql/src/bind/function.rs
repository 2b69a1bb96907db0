//! Function calls: overloads, defaults, variadic and polymorphic arguments.

use base::{Error, Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};
use types::Datum;
use types::func::{AggregateRow, CastContext, CastMethod, FunctionRow};
use types::oids::*;

use crate::expr::Expr;
use crate::window::{WINDOW_FUNCTIONS, WindowRow};

use super::coerce::{ANYENUM, array_of, base_of, element_of, pathway};
use super::overload::{Candidate, Choice, choose};
use super::{Binder, Scope, ast};

/// Declared argument types and result.
pub(crate) struct Signature<'a> {
    /// Arguments.
    pub declared: &'a [Oid],
    /// Result.
    pub result: Oid,
}

/// A function, an aggregate or a window function.
#[derive(Clone, Copy)]
pub(crate) enum Callee {
    Function(&'static FunctionRow),
    Aggregate(&'static AggregateRow),
    Window(&'static WindowRow),
    /// An aggregate that a user made.
    OwnAggregate(&'static FunctionRow),
    /// Several functions of one schema that differ in their defaults only.
    Several,
}

/// `||` of a text and anything, `concat`, `concat_ws`, `format`, `quote_literal` and `quote_nullable`.
const SHOWS_ANY: [u32; 7] = [2003, 2004, 3058, 3059, 3539, 1285, 1290];

/// `pg_autonomous(text, VARIADIC "any")`.
const PG_AUTONOMOUS: Oid = Oid(9303);

/// The declared types of a call with this many arguments; None when the number doesn't fit.
fn declared_for(row: &FunctionRow, count: usize) -> Option<Vec<Oid>> {
    let full = row.args.len();
    if row.variadic {
        let last = match *row.args.last()? {
            ANY => ANY,
            array => element_of(array),
        };
        // A default (`'{}'`) lets the list be empty; so does ours, whose statement may have no values.
        let optional = count + 1 == full && (!row.defaults.is_empty() || row.oid == PG_AUTONOMOUS);
        if count < full && !optional {
            return None;
        }
        let mut args = row.args[..full - 1].to_vec();
        args.resize(count, last);
        return Some(args);
    }
    let least = full - row.defaults.len().min(full);
    (least..=full).contains(&count).then(|| row.args[..count].to_vec())
}

/// The parameter that each argument of a call is for; `named` are the names of the last ones. None when
/// the call doesn't fit.
fn places_of(row: &FunctionRow, count: usize, named: &[&str]) -> Option<Vec<usize>> {
    let names = catalog::system::facts::parameter_names(row.oid.0);
    let full = row.args.len();
    let positional = count - named.len();
    if row.variadic || names.len() != full || count > full {
        return None;
    }
    let mut places: Vec<usize> = (0..positional).collect();
    for name in named {
        let at = names.iter().position(|n| n == name).filter(|at| !places.contains(at))?;
        places.push(at);
    }
    let first = full - row.defaults.len().min(full);
    (0..first).all(|at| places.contains(&at)).then_some(places)
}

impl Binder<'_> {
    /// A call as written: function, aggregate, or a cast in a function's clothes.
    pub(crate) fn func_call(&mut self, scope: &Scope<'_>, call: &pb::FuncCall) -> Result<Expr> {
        let position = self.at(call.location);
        check_count(call).map_err(|e| e.at(position))?;
        let calling = std::mem::take(&mut self.calling);
        let keep = std::mem::take(&mut self.keep_call);
        let names = ast::strings(&call.funcname);
        ast::check_database(&names, self.cx.database, false).map_err(|e| e.at(position))?;
        let (schema, name) = ast::qualified(&names);
        if let Some(schema) = schema.filter(|s| *s != "pg_catalog") {
            if self.cx.catalog.schema_named(schema).is_none() {
                return Err(
                    err!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist").at(position)
                );
            }
            self.check_schema(schema, position)?;
        }
        // Whether the name is an aggregate's decides how the arguments are bound.
        let is_aggregate = call.over.is_none()
            && (call.agg_star
                || !types::func::aggregates_named(name).is_empty()
                || self.cx.catalog.functions_named(name).any(|f| f.aggregate.is_some()));
        if call.agg_within_group {
            return self.within_group(scope, (schema, name), call, position);
        }
        let nested = scope.in_aggregate.get();
        let in_window = scope.in_window.get();
        if call.over.is_some() {
            scope.in_window.set(true);
        }
        if is_aggregate && !nested {
            scope.in_aggregate.set(true);
        }
        let (sets_before, _) = scope.sets.get();
        let mut args = Vec::with_capacity(call.args.len());
        let mut failure = None;
        let mut named: Vec<&str> = Vec::new();
        for arg in &call.args {
            let arg = match &arg.node {
                Some(NodeEnum::NamedArgExpr(n)) if n.arg.is_some() => {
                    named.push(&n.name);
                    n.arg.as_deref().unwrap_or(arg)
                }
                _ if !named.is_empty() => {
                    failure = Some(
                        err!(SYNTAX_ERROR, "positional argument cannot follow named argument")
                            .at(self.at(ast::location_of(arg))),
                    );
                    break;
                }
                _ => arg,
            };
            // An argument that stands in the aggregate's ORDER BY, too, is found there by its literals.
            let bound = match call.agg_order.is_empty() {
                true => self.expr_node(scope, arg),
                false => self.holding(|b| b.expr_node(scope, arg)),
            };
            match bound {
                Ok(arg) => args.push(arg),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        if is_aggregate {
            scope.in_aggregate.set(nested);
        }
        scope.in_window.set(in_window);
        if let Some(error) = failure {
            return Err(error);
        }
        let again = (0..named.len()).find(|i| named[..*i].contains(&named[*i]));
        if let Some(name) = again.map(|at| named[at]) {
            return Err(
                err!(SYNTAX_ERROR, "argument name \"{name}\" used more than once").at(position)
            );
        }
        self.in_call = calling;
        let callee = self.find_callee(
            schema,
            name,
            &args,
            &named,
            position,
            call.agg_star,
            call.func_variadic,
        );
        self.in_call = false;
        let callee = callee?;
        if calling
            && !matches!(callee, Some(Callee::Function(row)) if super::routine::is_users(row))
        {
            return Err(super::routine::wrong_kind(name, &args, false).at(position));
        }
        if let (Some(over), Some(callee)) = (&call.over, callee) {
            return self.window_call(scope, call, over, callee, args);
        }
        match callee {
            None if !call.agg_order.is_empty() => {
                let inputs: Vec<Oid> = args.iter().map(Expr::ty).collect();
                let missing = self.missing_function(&call_text(name, &inputs, &[]), position);
                Err(missing.hint(
                    "No aggregate function matches the given name and argument types. Perhaps you \
                     misplaced ORDER BY; ORDER BY must appear after all regular arguments of the \
                     aggregate.",
                ))
            }
            None | Some(Callee::Several) => self.function_as_cast(name, args, position),
            Some(Callee::Window(row)) => {
                Err(err!(WRONG_OBJECT_TYPE, "window function {} requires an OVER clause", row.name)
                    .at(position))
            }
            Some(Callee::Aggregate(row)) => self.aggregate(scope, row, call, args, position),
            Some(Callee::OwnAggregate(row)) => self.own_aggregate(scope, row, call, args, position),
            Some(Callee::Function(row)) if super::routine::is_users(row) => {
                self.check_plain_call(call, name, position)?;
                if row.returns_set {
                    scope.check_set(sets_before, position)?;
                    self.expands = true;
                }
                self.keep_call = keep;
                let value =
                    self.user_call(row, args, &named, (call.func_variadic, calling), position);
                self.keep_call = false;
                value
            }
            Some(Callee::Function(row))
                if row.name == "pg_typeof" && args.len() == 1 && !self.unfolded =>
            {
                // Known here, and nowhere else: values don't carry their type.
                Ok(Expr::Const(Datum::Oid(args[0].ty().0), row.result))
            }
            Some(Callee::Function(row)) if call.func_variadic => {
                if row.args.last() == Some(&ANY) {
                    return self.variadic_any(row, args, position);
                }
                let signature = Signature { declared: row.args, result: row.result };
                let (mut args, ty) = self.fit(&signature, args, position)?;
                self.spread_as_written(&mut args);
                let call = self.call(row, args, ty, position);
                Ok(self.called_as_written(call))
            }
            Some(Callee::Function(row)) => {
                self.check_plain_call(call, name, position)?;
                if name == "pg_typeof" && !self.unfolded {
                    // Known here, whatever the argument's value.
                    let ty = args.first().map_or(UNKNOWN, Expr::ty);
                    return Ok(Expr::Const(Datum::Oid(ty.0), REGTYPE));
                }
                if row.returns_set {
                    scope.check_set(sets_before, position)?;
                    self.expands = true;
                }
                let given = args.len();
                let places = match named.is_empty() {
                    true => Some((0..given).collect()),
                    false => places_of(row, given, &named),
                };
                let args = self.named_in_order(row, args, &named)?;
                let mut bound = self.function(row, args, position)?;
                if let (true, Some(places), Expr::Call { function, args, .. }) =
                    (self.unfolded && !row.variadic, places, &mut bound)
                    && function.oid == row.oid
                    && args.len() == row.args.len()
                {
                    let mut of: Vec<Option<usize>> = vec![None; args.len()];
                    places
                        .iter()
                        .enumerate()
                        .for_each(|(n, at): (usize, &usize)| of[*at] = Some(n));
                    let names = catalog::system::facts::parameter_names(row.oid.0);
                    let name = |n: usize| names.get(n).copied().unwrap_or("");
                    let names: Vec<&str> = (0..args.len()).map(name).collect();
                    self.as_written(args, &of, given - named.len(), &names);
                }
                Ok(self.called_as_written(bound))
            }
        }
    }

    /// Notes that a call's last argument was given behind VARIADIC.
    pub(super) fn spread_as_written(&self, args: &mut [Expr]) {
        if let (true, Some(last)) = (self.unfolded, args.last_mut()) {
            let array = std::mem::replace(last, Expr::Const(Datum::Null, UNKNOWN));
            let ty = array.ty();
            let function = &types::func::internal::SPREAD;
            *last = Expr::Call { function, args: Box::new([array]), ty, position: 0 };
        }
    }

    /// Notes that the function of an operator or of a cast was called by its name.
    fn called_as_written(&self, call: Expr) -> Expr {
        let is_hidden = |call: &Expr| match call {
            Expr::Call { function, args, ty, .. } => {
                crate::print::is_operator_or_cast(function, args, *ty)
            }
            _ => false,
        };
        if !self.unfolded || !is_hidden(&call) {
            return call;
        }
        let ty = call.ty();
        let function = &types::func::internal::WRITTEN_CALL;
        Expr::Call { function, args: Box::new([call]), ty, position: 0 }
    }

    /// A call's arguments in the order of the function's parameters, defaults filled in.
    fn named_in_order(
        &mut self,
        row: &FunctionRow,
        args: Vec<Expr>,
        named: &[&str],
    ) -> Result<Vec<Expr>> {
        if named.is_empty() {
            return Ok(args);
        }
        let Some(places) = places_of(row, args.len(), named) else {
            return Err(Error::internal("a call that doesn't fit its function"));
        };
        let mut given: Vec<Option<Expr>> = row.args.iter().map(|_| None).collect();
        places.into_iter().zip(args).for_each(|(at, arg)| given[at] = Some(arg));
        let first = row.args.len() - row.defaults.len();
        let mut out = Vec::with_capacity(given.len());
        for (at, (arg, ty)) in given.into_iter().zip(row.args).enumerate() {
            out.push(match arg {
                Some(arg) => arg,
                None => self.default_argument(row.defaults[at - first], *ty)?,
            });
        }
        Ok(out)
    }

    /// `42809` for what only an aggregate's call has.
    fn check_plain_call(&self, call: &pb::FuncCall, name: &str, position: u32) -> Result<()> {
        let word = match call {
            _ if call.agg_distinct => "DISTINCT",
            _ if !call.agg_order.is_empty() => "ORDER BY",
            _ if call.agg_filter.is_some() => "FILTER",
            _ => return Ok(()),
        };
        Err(err!(WRONG_OBJECT_TYPE, "{word} specified, but {name} is not an aggregate function")
            .at(position))
    }

    /// `concat(VARIADIC array)`: what the array holds is known when the call runs.
    fn variadic_any(
        &mut self,
        row: &'static FunctionRow,
        args: Vec<Expr>,
        position: u32,
    ) -> Result<Expr> {
        use types::func::{Body, SessionFunction};
        if matches!(row.body, Body::Session(SessionFunction::SatisfiesHashPartition)) {
            // It looks itself what its last argument is.
            let signature = Signature { declared: row.args, result: row.result };
            let (args, ty) = self.fit(&signature, args, position)?;
            return Ok(Expr::Call { function: row, args: args.into(), ty, position });
        }
        if !matches!(row.body, Body::Scalar(_) | Body::Typed(_)) {
            return Err(Error::unsupported("a VARIADIC array for this function").at(position));
        }
        let last = args.last().map_or(UNKNOWN, Expr::ty);
        if last != UNKNOWN && element_of(last) == Oid::INVALID {
            return Err(err!(DATATYPE_MISMATCH, "VARIADIC argument must be an array").at(position));
        }
        let signature = Signature { declared: row.args, result: row.result };
        let (mut args, ty) = self.fit(&signature, args, position)?;
        if self.unfolded {
            self.spread_as_written(&mut args);
            let call = self.call(row, args, ty, position);
            return Ok(self.called_as_written(call));
        }
        if let Some(last) = args.pop() {
            let array = match base_of(last.ty()) {
                INT2VECTOR | OIDVECTOR => array_of(element_of(last.ty())),
                ty => ty,
            };
            args.push(super::coerce::relabel(last, array));
        }
        let mut args = self.shown_arguments(row, args)?;
        args.push(Expr::Const(Datum::Oid(row.oid.0), OID));
        let function = &types::func::internal::VARIADIC_CALL;
        Ok(Expr::Call { function, args: args.into(), ty, position })
    }

    /// The arguments of a function that shows values of any type as text: those whose text hangs on
    /// more than their form (`regclass`, `pg_lsn`, …) become text before the call.
    pub(super) fn shown_arguments(
        &mut self,
        row: &'static FunctionRow,
        mut args: Vec<Expr>,
    ) -> Result<Vec<Expr>> {
        if self.unfolded || !SHOWS_ANY.contains(&row.oid.0) {
            return Ok(args);
        }
        for arg in &mut args {
            let ty = arg.ty();
            let to = match element_of(ty) {
                _ if !types::io::shows_by_form(base_of(ty)) => TEXT,
                element if !types::io::shows_by_form(base_of(element)) => array_of(TEXT),
                _ => continue,
            };
            let value = std::mem::replace(arg, Expr::Const(Datum::Null, TEXT));
            *arg = self.explicit_cast(value, to, -1, 0, 0)?;
        }
        Ok(args)
    }

    /// A call of a row, with arguments not yet cast.
    pub(crate) fn function(
        &mut self,
        row: &'static FunctionRow,
        mut args: Vec<Expr>,
        position: u32,
    ) -> Result<Expr> {
        if row.name == "pg_collation_for"
            && !self.unfolded
            && let [of] = args.as_slice()
        {
            return self.collation_for(of);
        }
        let mut declared = declared_for(row, args.len()).unwrap_or_else(|| row.args.to_vec());
        if !row.variadic {
            let missing = row.args.len() - args.len();
            let defaults = &row.defaults[row.defaults.len() - missing..];
            for (default, ty) in defaults.iter().zip(&row.args[args.len()..]) {
                args.push(self.default_argument(default, *ty)?);
            }
            declared = row.args.to_vec();
        }
        let signature = Signature { declared: &declared, result: row.result };
        let (mut args, ty) = self.fit(&signature, args, position)?;
        if let Some(shape) = types::user::shape(ty)
            && !self.unfolded
            && matches!(row.oid.0, 3960 | 3961 | 3209 | 3475)
        {
            // json_populate_record and kin learn the columns from their first argument's value.
            let nulls = vec![Datum::Null; shape.columns.len()];
            let empty = Expr::Const(Datum::record(shape, nulls), ty);
            let base = std::mem::replace(&mut args[0], Expr::Const(Datum::Null, ty));
            args[0] = Expr::Coalesce(vec![base, empty], ty);
            let call = self.call(row, args, ty, position);
            self.note_call(row.oid);
            let checks = types::user::has_domains(ty) && !row.returns_set;
            return Ok(if checks { self.checked(call, ty) } else { call });
        }
        self.note_call(row.oid);
        self.collated_call(row, args, ty, position)
    }

    fn default_argument(&mut self, sql: &str, ty: Oid) -> Result<Expr> {
        if sql.eq_ignore_ascii_case("null") {
            return Ok(Expr::Const(Datum::Null, ty));
        }
        let text = sql.strip_prefix('\'').and_then(|s| s.strip_suffix('\'')).unwrap_or(sql);
        self.literal(text, ty, 0)
    }

    /// The row that a call means; None when there is none but it may be a cast.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn find_callee(
        &mut self,
        schema: Option<&str>,
        name: &str,
        args: &[Expr],
        named: &[&str],
        position: u32,
        star: bool,
        spread: bool,
    ) -> Result<Option<Callee>> {
        let inputs: Vec<Oid> = args.iter().map(Expr::ty).collect();
        let mut candidates: Vec<Candidate<Callee>> = Vec::new();
        let builtin = schema.is_none_or(|s| s == "pg_catalog");
        let rows = match schema {
            None | Some("pg_catalog") => types::func::functions_named(name),
            // The few of another schema have it in their names.
            Some(schema) => types::func::functions_named(&format!("{schema}.{name}")),
        };
        for row in rows {
            if !named.is_empty() {
                if let Some(places) = places_of(row, inputs.len(), named) {
                    let args = places.iter().map(|at| row.args[*at]).collect();
                    candidates.push(Candidate { args, item: Callee::Function(row) });
                }
            } else if spread {
                if row.variadic && row.args.len() == inputs.len() {
                    candidates
                        .push(Candidate { args: row.args.to_vec(), item: Callee::Function(row) });
                }
            } else if let Some(args) = declared_for(row, inputs.len()) {
                candidates.push(Candidate { args, item: Callee::Function(row) });
            }
        }
        let plain = builtin && named.is_empty();
        for row in types::func::aggregates_named(name).iter().filter(|_| plain) {
            if row.args.len() == inputs.len() && (!row.args.is_empty() || star) {
                candidates
                    .push(Candidate { args: row.args.to_vec(), item: Callee::Aggregate(row) });
            }
        }
        for row in WINDOW_FUNCTIONS.iter().filter(|r| r.name == name && plain) {
            if row.args.len() == inputs.len() {
                candidates.push(Candidate { args: row.args.to_vec(), item: Callee::Window(row) });
            }
        }
        if self.cx.catalog.has_functions_named(name) {
            self.user_candidates(schema, name, &inputs, named, spread, &mut candidates);
        }
        // A literal under the name of a type is a cast.
        if plain && inputs[..] == [UNKNOWN] && types::TypeIo::by_name(name).is_some() {
            return Ok(None);
        }
        match choose(&inputs, candidates) {
            // Nothing says which enum is meant.
            Choice::One(Callee::Function(row))
                if row.args.contains(&ANYENUM) && inputs.iter().all(|ty| *ty == UNKNOWN) =>
            {
                Err(self.missing_function(&call_text(name, &inputs, named), position))
            }
            Choice::One(callee) if !matches!(callee, Callee::Several) => Ok(Some(callee)),
            // `text(v)` of a varchar is a cast that changes no bytes.
            Choice::Ambiguous if plain && self.is_relabeling(name, &inputs) => Ok(None),
            Choice::Ambiguous | Choice::One(_) => Err(err!(
                AMBIGUOUS_FUNCTION,
                "function {} is not unique",
                call_text(name, &inputs, named)
            )
            .hint("Could not choose a best candidate function. You might need to add explicit type casts.")
            .at(position)),
            Choice::None if plain && inputs.len() == 1 && types::TypeIo::by_name(name).is_some() => Ok(None),
            Choice::None => {
                let parameterless =
                    || types::func::aggregates_named(name).iter().any(|row| row.args.is_empty());
                if args.is_empty() && !star && parameterless() {
                    return Err(err!(
                        WRONG_OBJECT_TYPE,
                        "{name}(*) must be used to call a parameterless aggregate function"
                    )
                    .at(position));
                }
                let full = match schema {
                    Some(schema) => format!("{schema}.{name}"),
                    None => name.to_owned(),
                };
                let call = call_text(&full, &inputs, named);
                if schema.is_none_or(|s| s == "pg_catalog") && is_only_listed(name) {
                    return Err(Error::unsupported(format!("function {call}")).at(position));
                }
                Err(self.missing_function(&call, position))
            }
        }
    }

    /// Whether a call with one argument names a type to which the argument's is binary coercible.
    fn is_relabeling(&self, name: &str, inputs: &[Oid]) -> bool {
        let [from] = inputs else { return false };
        let to = types::TypeIo::by_name(name);
        let cast = to.and_then(|to| pathway(*from, to.oid, CastContext::Explicit));
        matches!(cast, Some(CastMethod::Binary))
    }

    /// `42883`.
    fn missing_function(&self, call: &str, position: u32) -> Error {
        if self.in_call {
            return err!(UNDEFINED_FUNCTION, "procedure {call} does not exist")
                .hint("No procedure matches the given name and argument types. You might need to add explicit type casts.")
                .at(position);
        }
        err!(UNDEFINED_FUNCTION, "function {call} does not exist")
            .hint("No function matches the given name and argument types. You might need to add explicit type casts.")
            .at(position)
    }

    /// `text(x)`, `int4('5')`: a type's name used as a function.
    fn function_as_cast(&mut self, name: &str, mut args: Vec<Expr>, position: u32) -> Result<Expr> {
        let inputs: Vec<Oid> = args.iter().map(Expr::ty).collect();
        if let [row] = &args[..]
            && let Some(column) = self.projection(row, name, -1)
        {
            return Ok(column);
        }
        if let (Some(io), Some(arg)) = (types::TypeIo::by_name(name), args.pop()) {
            let from = arg.ty();
            let possible = from == UNKNOWN
                || matches!(
                    pathway(from, io.oid, CastContext::Explicit),
                    Some(CastMethod::Binary | CastMethod::InOut)
                );
            if possible {
                return self.explicit_cast(arg, io.oid, -1, position, position);
            }
        }
        Err(self.missing_function(&call_text(name, &inputs, &[]), position))
    }

    /// Casts arguments to a signature; returns them and the result type.
    pub(crate) fn fit(
        &mut self,
        signature: &Signature<'_>,
        args: Vec<Expr>,
        position: u32,
    ) -> Result<(Vec<Expr>, Oid)> {
        let inputs: Vec<Oid> = args.iter().map(Expr::ty).collect();
        let (targets, result) = super::polymorphic::resolve(signature, &inputs, position)?;
        let mut out = Vec::with_capacity(args.len());
        for (arg, target) in args.into_iter().zip(&targets) {
            let from = arg.ty();
            let arg = if *target == ANY {
                // "any" takes the value as it is; a bare literal is text, and written as it was.
                let bare = self.unfolded && matches!(arg, Expr::Const(..));
                Some(if bare { arg } else { self.resolve_unknown(arg)? })
            } else {
                self.coerce(arg, *target, CastContext::Implicit, position)?
            };
            match arg {
                Some(arg) => out.push(arg),
                None => {
                    return Err(err!(
                        CANNOT_COERCE,
                        "cannot cast type {} to {}",
                        types::io::format_type(from, -1),
                        types::io::format_type(*target, -1)
                    )
                    .at(position));
                }
            }
        }
        Ok((out, result))
    }
}

/// `name(types)`; `named` are the names of the last arguments.
fn call_text(name: &str, inputs: &[Oid], named: &[&str]) -> String {
    let first = inputs.len().saturating_sub(named.len());
    let argument = |(n, ty): (usize, &Oid)| {
        let ty = types::io::format_type(*ty, -1);
        match n.checked_sub(first).and_then(|at| named.get(at)) {
            Some(name) => format!("{name} => {ty}"),
            None => ty,
        }
    };
    let types: Vec<String> = inputs.iter().enumerate().map(argument).collect();
    format!("{name}({})", types.join(", "))
}

/// `54023` for a call with too many arguments.
fn check_count(call: &pb::FuncCall) -> Result<()> {
    let ordered = if call.agg_within_group { call.agg_order.len() } else { 0 };
    let count = call.args.len() + ordered;
    if count > ast::ARGUMENTS_MAX {
        base::bail!(
            TOO_MANY_ARGUMENTS,
            "cannot pass more than {} arguments to a function",
            ast::ARGUMENTS_MAX
        );
    }
    if call.agg_within_group && count == ast::ARGUMENTS_MAX {
        base::bail!(
            TOO_MANY_ARGUMENTS,
            "aggregates cannot have more than {} arguments",
            ast::ARGUMENTS_MAX - 1
        );
    }
    Ok(())
}

/// Whether PostgreSQL has functions with this name, and none of them runs here.
fn is_only_listed(name: &str) -> bool {
    let runs = !types::func::functions_named(name).is_empty()
        || !types::func::aggregates_named(name).is_empty();
    // One that takes a value of the server's own memory can't be called by anybody.
    let is_callable = |id: &u32| {
        let arguments = catalog::system::facts::argument_types(*id).unwrap_or_default();
        !arguments.contains(&types::oids::INTERNAL.0)
    };
    !runs && catalog::system::facts::named(name).iter().any(is_callable)
}

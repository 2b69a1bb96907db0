//! Casts of single values, where there is no expression that could hold one: keys of foreign keys between
//! two types.

use base::{Oid, Result};

use super::{CallTypes, CastContext, CastMethod};
use crate::datum::Datum;
use crate::io::{self, FormatContext};

/// A value of one type as one of another by the cast between them, without the constraints of domains and
/// without a length; None when there is no such cast in this context.
///
/// # Errors
/// Those of the cast. `0A000`: its function is a user's.
pub fn convert(
    value: &Datum,
    (from, to): (Oid, Oid),
    context: CastContext,
    cx: &FormatContext,
) -> Result<Option<Datum>> {
    let (from, to) = (crate::user::base_type(from, -1).0, crate::user::base_type(to, -1).0);
    if from == to || value.is_null() {
        return Ok(Some(value.clone()));
    }
    let Some(method) = method(from, to, context) else { return Ok(None) };
    let CastMethod::Function(oid) = method else {
        return Ok(Some(match method {
            CastMethod::Binary => crate::open::relabel(value.clone(), to),
            _ => io::input(to, -1, &io::to_text(from, value, cx)?, cx)?,
        }));
    };
    let run = super::function(oid).and_then(|function| {
        let rest = [Datum::Int4(-1), Datum::Bool(context == CastContext::Explicit)];
        let mut args = vec![value.clone()];
        args.extend(rest.into_iter().take(function.args.len() - 1));
        let types = CallTypes { args: function.args, result: to };
        function.body.run(&args, types, cx)
    });
    let named = |ty| io::format_type(ty, -1);
    run.unwrap_or_else(|| {
        let what = format!("cast from {} to {} in a foreign key", named(from), named(to));
        Err(base::Error::unsupported(what))
    })
    .map(Some)
}

/// Whether values of one type become values of another by themselves, through a cast that [`convert`] does.
pub fn is_implicit(from: Oid, to: Oid) -> bool {
    method(from, to, CastContext::Implicit).is_some()
}

/// How a cast is done, if there is one in this context.
fn method(from: Oid, to: Oid, context: CastContext) -> Option<CastMethod> {
    let built_in = super::cast(from, to).copied();
    let row = built_in.or_else(|| crate::user::cast(from, to))?;
    (row.context >= context).then_some(row.method)
}

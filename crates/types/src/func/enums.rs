//! Functions of enums beyond comparisons. The type's labels come from the running task's directory;
//! which type is meant tells the argument's, so that it may be NULL.

use base::{Oid, Result, err};

use super::{Body, CallTypes, NamedBody};
use crate::datum::{Datum, Text};
use crate::io::FormatContext;
use crate::user;

/// The enum that an argument is of, and its labels.
fn labels_of(types: CallTypes<'_>) -> Result<(Oid, Vec<(u64, Text)>)> {
    let known =
        types.args.iter().map(|ty| user::base_type(*ty, -1).0).find(|ty| user::is_enum(*ty));
    let ty =
        known.ok_or_else(|| err!(FEATURE_NOT_SUPPORTED, "could not determine actual enum type"))?;
    Ok((ty, user::labels(ty)))
}

fn end(types: CallTypes<'_>, last: bool) -> Result<Datum> {
    let (ty, labels) = labels_of(types)?;
    let label = if last { labels.last() } else { labels.first() };
    label.map(|(rank, _)| Datum::Enum(ty, *rank)).ok_or_else(|| {
        err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "enum {} contains no values",
            crate::io::format_type(ty, -1)
        )
    })
}

/// The labels between two, which may be NULL for no bound.
fn range(from: &Datum, to: &Datum, types: CallTypes<'_>) -> Result<Datum> {
    let (ty, labels) = labels_of(types)?;
    let bound = |d: &Datum| match d {
        Datum::Enum(_, rank) => Some(*rank),
        _ => None,
    };
    let (from, to) = (bound(from), bound(to));
    let inside = |rank: u64| from.is_none_or(|f| f <= rank) && to.is_none_or(|t| rank <= t);
    let ranks = labels.iter().map(|(rank, _)| *rank).filter(|rank| inside(*rank));
    Ok(Datum::array(ty, ranks.map(|rank| Datum::Enum(ty, rank)).collect()))
}

fn enum_first(_: &[Datum], types: CallTypes<'_>, _: &FormatContext) -> Result<Datum> {
    end(types, false)
}

fn enum_last(_: &[Datum], types: CallTypes<'_>, _: &FormatContext) -> Result<Datum> {
    end(types, true)
}

fn enum_range(_: &[Datum], types: CallTypes<'_>, _: &FormatContext) -> Result<Datum> {
    range(&Datum::Null, &Datum::Null, types)
}

fn enum_range_bounds(a: &[Datum], types: CallTypes<'_>, _: &FormatContext) -> Result<Datum> {
    range(&a[0], &a[1], types)
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    vec![
        ("enum_first", Body::Typed(enum_first)),
        ("enum_last", Body::Typed(enum_last)),
        ("enum_range_all", Body::Typed(enum_range)),
        ("enum_range_bounds", Body::Typed(enum_range_bounds)),
    ]
}

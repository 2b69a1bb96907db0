//! Placeholders in signatures (`anyelement`, `anyarray`, `anycompatible`, …) and the types that they stand for in a call.
//!
//! They are of two families, each with one type in common. All arguments of the `any…` family have the same type; those of
//! the `anycompatible…` family have a type that all can be cast to, which a range among them determines alone.
//! See PostgreSQL's manual, section 38.2.5.

use base::{Oid, Result, err, sqlstate};
use types::oids::*;

use super::coerce::{
    ANYCOMPATIBLE, ANYCOMPATIBLEARRAY, ANYCOMPATIBLENONARRAY, ANYENUM, ANYNONARRAY, array_of,
    can_coerce_implicitly, element_of, is_polymorphic,
};
use super::function::Signature;
use super::overload::category;

/// The type that a placeholder's family has in common: an array's element, a range's bounds.
pub(crate) fn element_behind(placeholder: Oid, input: Oid) -> Oid {
    match placeholder {
        ANYARRAY | ANYCOMPATIBLEARRAY => element_of(input),
        ANYRANGE | ANYCOMPATIBLERANGE => types::range::subtype(input).unwrap_or(input),
        ANYMULTIRANGE | ANYCOMPATIBLEMULTIRANGE => {
            types::range::range_of(input).and_then(types::range::subtype).unwrap_or(input)
        }
        _ => input,
    }
}

/// What a placeholder stands for where its family has this type in common.
fn real_type(ty: Oid, element: Oid) -> Oid {
    match ty {
        ANYARRAY | ANYCOMPATIBLEARRAY => array_of(element),
        ANYRANGE | ANYCOMPATIBLERANGE => types::range::over(element).unwrap_or(ty),
        ANYMULTIRANGE | ANYCOMPATIBLEMULTIRANGE => {
            types::range::over(element).and_then(types::range::multirange_of).unwrap_or(ty)
        }
        ANYELEMENT | ANYCOMPATIBLE | ANYCOMPATIBLENONARRAY | ANYNONARRAY | ANYENUM => element,
        other => other,
    }
}

/// The same where the range type is known: several can be over one type.
fn real_type_of(ty: Oid, element: Oid, range: Option<Oid>) -> Oid {
    match (ty, range) {
        (ANYRANGE | ANYCOMPATIBLERANGE, Some(range)) => range,
        (ANYMULTIRANGE | ANYCOMPATIBLEMULTIRANGE, Some(range)) => {
            types::range::multirange_of(range).unwrap_or(ty)
        }
        _ => real_type(ty, element),
    }
}

/// Whether a placeholder is of the family of `anycompatible`.
pub(crate) fn is_compatible(ty: Oid) -> bool {
    matches!(
        ty,
        ANYCOMPATIBLE
            | ANYCOMPATIBLEARRAY
            | ANYCOMPATIBLENONARRAY
            | ANYCOMPATIBLERANGE
            | ANYCOMPATIBLEMULTIRANGE
    )
}

/// What a family stands for.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
struct Family {
    /// The element's type; invalid while nothing says so.
    element: Oid,
    /// The range type among the arguments: several can be over one element.
    range: Option<Oid>,
}

impl Family {
    /// Of the compatible family's arguments, each with its placeholder; None when they have nothing in common.
    fn compatible(pairs: &[(Oid, Oid)]) -> Option<Family> {
        let mut range: Option<Oid> = None;
        let mut element = Oid::INVALID;
        for (declared, given) in pairs.iter().filter(|(_, given)| *given != UNKNOWN) {
            if let Some(found) = range_of(*declared, *given) {
                if range.is_some_and(|known| known != found) {
                    return None;
                }
                range = Some(found);
            }
            let one = element_behind(*declared, *given);
            if element == Oid::INVALID {
                element = one;
            } else if element != one {
                if category(element) != category(one) {
                    return None;
                }
                let preferred = types::TypeIo::get(element).is_some_and(|io| io.preferred);
                if !preferred
                    && can_coerce_implicitly(element, one)
                    && !can_coerce_implicitly(one, element)
                {
                    element = one;
                }
            }
        }
        let fits = range.is_none_or(|range| types::range::subtype(range) == Some(element));
        fits.then_some(Family { element, range })
    }

    /// Of the other family's; None when they are not all alike.
    fn exact(pairs: &[(Oid, Oid)]) -> Option<Family> {
        let mut out = Family::default();
        for (declared, given) in pairs.iter().filter(|(_, given)| *given != UNKNOWN) {
            let one = element_behind(*declared, *given);
            if out.element != Oid::INVALID && out.element != one {
                return None;
            }
            out.element = one;
            out.range = out.range.or(range_of(*declared, *given));
        }
        Some(out)
    }

    fn real(self, ty: Oid) -> Oid {
        real_type_of(ty, self.element, self.range)
    }
}

/// The range type of an argument that is declared as a range or multirange.
fn range_of(declared: Oid, given: Oid) -> Option<Oid> {
    match declared {
        ANYRANGE | ANYCOMPATIBLERANGE => types::range::subtype(given).map(|_| given),
        ANYMULTIRANGE | ANYCOMPATIBLEMULTIRANGE => types::range::range_of(given),
        _ => None,
    }
}

/// The arguments of one family with their placeholders.
fn members(pairs: impl Iterator<Item = (Oid, Oid)>, compatible: bool) -> Vec<(Oid, Oid)> {
    let own = |(declared, _): &(Oid, Oid)| {
        is_polymorphic(*declared) && is_compatible(*declared) == compatible
    };
    pairs.filter(own).collect()
}

/// Whether the placeholders of a signature can stand for something with these inputs.
pub(crate) fn is_consistent(inputs: &[Oid], args: &[Oid]) -> bool {
    let pairs = || args.iter().copied().zip(inputs.iter().copied());
    Family::exact(&members(pairs(), false)).is_some()
        && Family::compatible(&members(pairs(), true)).is_some()
}

/// What a placeholder stands for in a call with arguments of these types.
pub(crate) fn real_in_call(ty: Oid, arguments: impl Iterator<Item = (Oid, Oid)>) -> Oid {
    if !is_polymorphic(ty) {
        return ty;
    }
    let compatible = is_compatible(ty);
    let own = members(arguments, compatible);
    let family = if compatible { Family::compatible(&own) } else { Family::exact(&own) };
    match family {
        Some(family) if family.element != Oid::INVALID => family.real(ty),
        _ => ty,
    }
}

/// Real types for the placeholders of a signature.
///
/// # Errors
/// `42804`.
pub(crate) fn resolve(
    signature: &Signature<'_>,
    inputs: &[Oid],
    position: u32,
) -> Result<(Vec<Oid>, Oid)> {
    let declared = signature.declared;
    if !declared.iter().any(|t| is_polymorphic(*t)) {
        return Ok((declared.to_vec(), signature.result));
    }
    let pairs = || declared.iter().copied().zip(inputs.iter().copied());
    let exact = exact_family(&members(pairs(), false), position)?;
    let compatible = compatible_family(&members(pairs(), true), position)?;
    let real = |ty: Oid| match is_compatible(ty) {
        true => compatible.real(ty),
        false => exact.real(ty),
    };
    let targets = pairs().map(|(ty, input)| {
        let family = if is_compatible(ty) { compatible } else { exact };
        // Vectors of the catalog are arrays and stay what they are.
        if matches!(ty, ANYARRAY | ANYCOMPATIBLEARRAY)
            && element_behind(ty, input) == family.element
        {
            input
        } else {
            real(ty)
        }
    });
    Ok((targets.collect(), real(signature.result)))
}

fn exact_family(own: &[(Oid, Oid)], position: u32) -> Result<Family> {
    let mut element: Option<(Oid, Oid)> = None;
    for (declared, given) in own.iter().filter(|(_, given)| *given != UNKNOWN) {
        let one = element_behind(*declared, *given);
        match element {
            Some((_, known)) if known != one => {
                let word = if *declared == ANYARRAY { "anyarray" } else { "anyelement" };
                let detail = format!(
                    "{} versus {}",
                    types::io::format_type(known, -1),
                    types::io::format_type(one, -1)
                );
                return Err(err!(
                    DATATYPE_MISMATCH,
                    "arguments declared \"{word}\" are not all alike"
                )
                .detail(detail)
                .at(position));
            }
            _ => element = Some((*declared, one)),
        }
    }
    let family = Family::exact(own).unwrap_or_default();
    if family.element == Oid::INVALID && !own.is_empty() {
        return Err(err!(
            DATATYPE_MISMATCH,
            "could not determine polymorphic type because input has type unknown"
        ));
    }
    Ok(family)
}

fn compatible_family(own: &[(Oid, Oid)], position: u32) -> Result<Family> {
    let Some(mut family) = Family::compatible(own) else {
        return Err(base::Error::new(
            sqlstate::DATATYPE_MISMATCH,
            "arguments of anycompatible family cannot be cast to a common type",
        )
        .at(position));
    };
    let has = |ty: Oid| own.iter().any(|(declared, _)| *declared == ty);
    let unknown = match family.range {
        None if has(ANYCOMPATIBLERANGE) => Some("anycompatiblerange"),
        None if has(ANYCOMPATIBLEMULTIRANGE) => Some("anycompatiblemultirange"),
        _ => None,
    };
    if let Some(word) = unknown {
        return Err(err!(
            DATATYPE_MISMATCH,
            "could not determine polymorphic type {word} because input has type unknown"
        ));
    }
    if family.element == Oid::INVALID {
        family.element = TEXT;
    }
    Ok(family)
}

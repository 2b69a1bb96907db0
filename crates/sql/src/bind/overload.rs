//! Choice among functions or operators of one name, as PostgreSQL's manual states it (sections 10.2
//! and 10.3). Pure: works on lists of argument types.

use base::Oid;
use types::TypeIo;
use types::oids::UNKNOWN;

use super::coerce::{base_of, can_coerce_implicitly};
use super::polymorphic::is_consistent;

/// One candidate: its argument types (as many as the call has) and which one it is.
#[derive(Clone, Debug)]
pub(crate) struct Candidate<T> {
    /// Argument types.
    pub args: Vec<Oid>,
    /// What it stands for.
    pub item: T,
}

/// The outcome.
#[derive(Debug, PartialEq)]
pub(crate) enum Choice<T> {
    /// This one.
    One(T),
    /// None fits.
    None,
    /// Several fit equally well.
    Ambiguous,
}

/// Chooses for a call with these argument types.
pub(crate) fn choose<T: Clone>(inputs: &[Oid], all: Vec<Candidate<T>>) -> Choice<T> {
    if let Some(exact) = all.iter().find(|c| c.args == inputs) {
        return Choice::One(exact.item.clone());
    }
    // A domain's value is one of the type below.
    let bases: Vec<Oid> = inputs.iter().map(|ty| base_of(*ty)).collect();
    let inputs = bases.as_slice();
    let mut candidates: Vec<_> = all
        .into_iter()
        .filter(|c| {
            inputs.iter().zip(&c.args).all(|(from, to)| can_coerce_implicitly(*from, *to))
                && is_consistent(inputs, &c.args)
        })
        .collect();
    if candidates.is_empty() {
        return Choice::None;
    }
    keep_best(&mut candidates, |c| exact_matches(inputs, &c.args));
    if candidates.len() > 1 {
        keep_best(&mut candidates, |c| exact_or_preferred(inputs, &c.args));
    }
    if candidates.len() > 1 {
        if !inputs.contains(&UNKNOWN) {
            return Choice::Ambiguous;
        }
        resolve_unknowns(inputs, &mut candidates);
    }
    if candidates.len() > 1 {
        assume_same_type(inputs, &mut candidates);
    }
    match candidates.as_slice() {
        [one] => Choice::One(one.item.clone()),
        _ => Choice::Ambiguous,
    }
}

/// Keeps the candidates with the highest score.
fn keep_best<T>(candidates: &mut Vec<Candidate<T>>, score: impl Fn(&Candidate<T>) -> usize) {
    if candidates.len() < 2 {
        return;
    }
    let best = candidates.iter().map(&score).max().unwrap_or(0);
    candidates.retain(|c| score(c) == best);
}

fn exact_matches(inputs: &[Oid], args: &[Oid]) -> usize {
    inputs.iter().zip(args).filter(|(a, b)| **a != UNKNOWN && a == b).count()
}

fn exact_or_preferred(inputs: &[Oid], args: &[Oid]) -> usize {
    inputs
        .iter()
        .zip(args)
        .filter(|(a, b)| **a != UNKNOWN && (a == b || is_preferred_in(category(**a), **b)))
        .count()
}

/// The type's category letter; pseudo-types and unknown ones have their own.
pub(crate) fn category(ty: Oid) -> u8 {
    if ty == UNKNOWN {
        return b'X';
    }
    TypeIo::get(ty).map_or(b'P', |io| io.category)
}

fn is_preferred_in(wanted: u8, ty: Oid) -> bool {
    TypeIo::get(ty).is_some_and(|io| io.preferred && io.category == wanted)
}

/// For each unknown argument: prefer the string category if any candidate takes it, else the one
/// category that all take; then drop candidates that don't fit.
fn resolve_unknowns<T: Clone>(inputs: &[Oid], candidates: &mut Vec<Candidate<T>>) {
    let mut wanted: Vec<Option<(u8, bool)>> = Vec::with_capacity(inputs.len());
    for (at, input) in inputs.iter().enumerate() {
        if *input != UNKNOWN {
            wanted.push(None);
            continue;
        }
        let categories: Vec<u8> = candidates.iter().map(|c| category(c.args[at])).collect();
        let first = categories[0];
        let chosen = if categories.contains(&b'S') {
            b'S'
        } else if categories.iter().all(|c| *c == first) {
            first
        } else {
            return;
        };
        let preferred = candidates.iter().any(|c| is_preferred_in(chosen, c.args[at]));
        wanted.push(Some((chosen, preferred)));
    }
    let fits = |c: &Candidate<T>| {
        wanted.iter().zip(&c.args).all(|(want, ty)| match want {
            None => true,
            Some((cat, preferred)) => {
                category(*ty) == *cat && (!preferred || is_preferred_in(*cat, *ty))
            }
        })
    };
    if candidates.iter().any(fits) {
        let kept = candidates.iter().filter(|c| fits(c)).cloned().collect();
        *candidates = kept;
    }
}

/// If all known arguments have one type, assume that the unknown ones have it too.
fn assume_same_type<T: Clone>(inputs: &[Oid], candidates: &mut Vec<Candidate<T>>) {
    let mut known = inputs.iter().filter(|t| **t != UNKNOWN);
    let Some(first) = known.next() else { return };
    if known.any(|t| t != first) {
        return;
    }
    let all = vec![*first; inputs.len()];
    let fits = |c: &Candidate<T>| {
        c.args.iter().all(|t| can_coerce_implicitly(*first, *t)) && is_consistent(&all, &c.args)
    };
    let mut fitting = candidates.iter().filter(|c| fits(c));
    if let (Some(one), None) = (fitting.next().cloned(), fitting.next()) {
        *candidates = vec![one];
    }
}

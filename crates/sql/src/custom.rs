//! Custom plans: a statement with parameters planned for the values that it is run with, or a text whose literals became
//! parameters for its own literals.
//!
//! The plan for any values (the generic one) is proven no worse when several custom plans in a row, for other values each,
//! have come out with its shape. Until then the statement is planned anew for each run, unless the generic plan is
//! expected to cost less than planning does. What was proven is known to all sessions, since they share the
//! generic plan, and is tried again now and then.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Instant;

use base::settings::{Settings, setting};
use base::{Oid, Result};
use types::Datum;

use crate::plan::{Node, Plan, Prepared, Statement};
use crate::prepare::{PrepareContext, parse_one, prepare, prepare_parsed};

/// A plan of which nothing costs as much, run to its end, is not worth another.
const PLANNING_COST: f64 = 25.0;

/// Whether a run of the statement should ask for a custom plan.
pub fn is_wanted(generic: &Prepared, settings: &Settings) -> bool {
    let Statement::Query(plan) = &generic.statement else { return false };
    if generic.params.is_empty() {
        return false;
    }
    match settings.str(setting::PLAN_CACHE_MODE) {
        "force_generic_plan" => false,
        "force_custom_plan" => true,
        _ => {
            let dear = || plan.greatest_cost() > PLANNING_COST;
            generic.trials.is_dear(dear) && generic.trials.go_on()
        }
    }
}

/// The plan for the values in the context; the generic one where that is the same.
///
/// # Errors
/// As [`prepare`].
pub fn custom(
    generic: &Arc<Prepared>,
    text: &str,
    param_types: &[Oid],
    cx: &PrepareContext<'_>,
) -> Result<Arc<Prepared>> {
    if generic.trials.is_known_alike(hash_of(cx.values)) {
        return Ok(generic.clone());
    }
    let began = Instant::now();
    let parsed = match generic.trials.parsed(text) {
        Some(parsed) => parsed,
        None => match parse_one(text)? {
            Some(parsed) => Arc::new(parsed),
            None => return Ok(generic.clone()),
        },
    };
    let (prepared, _) = prepare_parsed(&parsed, began, text, param_types, cx, None)?;
    let alike = compare(generic, &prepared, cx.values);
    generic.trials.keep_parsed((!alike).then_some((text, parsed)));
    Ok(if alike { generic.clone() } else { Arc::new(prepared) })
}

/// The plan of a text whose literals became parameters, with their values, or one that is made for them where it does
/// something else.
///
/// # Errors
/// As [`prepare`].
pub fn for_literals(
    generic: Arc<Prepared>,
    values: Vec<Datum>,
    text: &str,
    cx: &PrepareContext<'_>,
) -> Result<(Arc<Prepared>, Vec<Datum>)> {
    if !is_wanted(&generic, cx.settings) || generic.trials.is_known_alike(hash_of(&values)) {
        return Ok((generic, values));
    }
    let (prepared, _) = prepare(text, &[], cx, None)?;
    Ok(match compare(&generic, &prepared, &values) {
        true => (generic, values),
        false => (Arc::new(prepared), Vec::new()),
    })
}

fn hash_of(values: &[Datum]) -> u64 {
    let mut hash = DefaultHasher::new();
    values.iter().for_each(|value| types::order::hash(value, &mut hash));
    hash.finish()
}

/// Whether a plan for values does the same as that for any; notes it.
fn compare(generic: &Prepared, custom: &Prepared, values: &[Datum]) -> bool {
    let alike = shape(custom) == shape(generic);
    generic.trials.note(alike, hash_of(values));
    if alike && let Some((count, ns)) = custom.trials.take_planned() {
        generic.trials.add_planned(count, ns);
    }
    alike
}

/// Equal for plans that do the same: nodes, tables, indexes, not costs or constants.
pub fn shape(prepared: &Prepared) -> u64 {
    let mut hash = DefaultHasher::new();
    if let Statement::Query(plan) = &prepared.statement {
        add_plan(plan, &mut hash);
    }
    prepared.subplans.iter().for_each(|plan| add_plan(plan, &mut hash));
    hash.finish()
}

fn add_plan(plan: &Plan, hash: &mut DefaultHasher) {
    plan.walk(&mut |plan| {
        plan.node.label().hash(hash);
        match &plan.node {
            Node::IndexScan { index, backward, bounds, .. }
            | Node::IndexOnlyScan { index, backward, bounds, .. } => {
                (index.oid, *backward, bounds.fixed()).hash(hash);
            }
            Node::BitmapIndexScan { index, bounds, .. } => {
                (index.oid, bounds.fixed()).hash(hash);
            }
            Node::SeqScan(scan) => scan.table.oid.hash(hash),
            Node::NestedLoop { kind, .. }
            | Node::HashJoin { kind, .. }
            | Node::MergeJoin { kind, .. } => std::mem::discriminant(kind).hash(hash),
            Node::IncrementalSort { presorted, .. } => presorted.hash(hash),
            _ => {}
        }
    });
}

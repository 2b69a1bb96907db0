//! Operators: the state of one plan node while it runs.
//!
//! An operator gets its node with every call, hands batches up, and forgets everything when it is told to begin again.
//! [`super::build`] makes operators of plan nodes; code that runs operators knows the trait alone.

use std::sync::Arc;

use base::{Error, Oid, Result};
use sql::expr::SortKey;
use sql::{Expr, Plan, Prepared};
use types::{Batch, Datum};

use crate::ops::key_filter::KeyFilter;
use crate::ops::team::Member;
use crate::rows;
use crate::run::Run;

/// The state of a plan node while it runs.
pub trait Operator: Send {
    /// The next rows; None at the end. A batch may be empty.
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>>;

    /// Adds the rows that are left to `out`, until it has `most` or some more; with `one` it may leave off
    /// after the first. False when there may be more of them, which are asked for in the same way.
    fn drain(
        &mut self,
        plan: &Plan,
        (one, most): (bool, usize),
        out: &mut Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        while let Some(batch) = self.next(plan, run)? {
            rows::append(out, &batch)?;
            if one && batch.rows > 0 {
                break;
            }
            if out.rows >= most {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Begins again, with what slots hold now.
    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()>;

    /// Rows need not be handed up for whose keys (over the output columns) the filter has no hash; until
    /// it begins again.
    fn restrict(&mut self, _keys: &[Expr], _filter: &Arc<KeyFilter>) {}

    /// No more than the first `rows` rows will be asked for.
    fn bound(&mut self, _rows: u64) {}

    /// Of rows that come in the order of `key` (over the output columns), those before this value need not be handed
    /// up, if that saves work.
    ///
    /// # Errors
    /// Those of the value's form as a key.
    fn skip_to(&mut self, _plan: &Plan, _key: &SortKey, _value: &Datum) -> Result<()> {
        Ok(())
    }

    /// The first rows are wanted soon, and perhaps no others: they are not kept back until there are more.
    fn hasten(&mut self) {}

    /// Does what only the statement's own thread can, before it has helpers.
    ///
    /// # Errors
    /// Those of the plan.
    fn prepare(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        Ok(())
    }

    /// Of a Gather: the leader's place. The consumer runs the threads itself.
    fn absorb(&mut self) -> Option<Member> {
        None
    }

    /// Rows that a data-changing operator has changed.
    fn changed(&self) -> Option<u64> {
        None
    }
}

/// Makes the operator of a node and of those below it.
///
/// # Errors
/// Those of beginning a scan.
pub fn build(plan: &Plan, run: &mut Run<'_, '_>) -> Result<Box<dyn Operator>> {
    (run.cx.engine.calls.build)(plan, run)
}

/// Makes the operators of a plan for one of the threads that run it at the same time.
///
/// # Errors
/// As [`build`].
pub fn build_for(member: &Member, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Box<dyn Operator>> {
    let outer = run.state.member.replace(member.clone());
    let built = build(plan, run);
    run.state.member = outer;
    built
}

/// The types of a node's output columns.
pub fn types(plan: &Plan, prepared: &Prepared) -> Vec<Oid> {
    plan.output_types(&prepared.subplans)
}

/// All rows of an input.
pub fn collect(input: &mut dyn Operator, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Vec<Batch>> {
    let mut all = Vec::new();
    while let Some(batch) = input.next(plan, run)? {
        sched::check_interrupts_now()?;
        if batch.rows > 0 {
            all.push(batch);
        }
    }
    Ok(all)
}

/// A thread came to what the leader was to make before.
#[cold]
pub fn not_prepared(what: &str) -> Error {
    Error::internal(format!("{what} was not prepared for the threads of a plan"))
}

/// An operator was given a node of another kind.
#[cold]
pub fn wrong_node() -> Error {
    Error::internal("operator does not fit its plan node")
}

//! Running a statement: to its end, or piece by piece for portals and cursors.

use std::sync::Arc;

use base::Result;
use base::faults::{self, Fault};
use sql::Prepared;

use crate::auto_explain;
use crate::context::{ExecContext, Outcome, RowSink};
use crate::execution::{run_with, tell_trace};
use crate::run::ExecState;
use crate::short;

/// Runs a query or data change of a client to its end.
///
/// # Errors
/// Whatever the statement raises.
pub fn run(
    prepared: &Arc<Prepared>,
    cx: &mut ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Outcome> {
    match auto_explain::wanted(cx.settings) {
        None => run_unexplained(prepared, cx, sink),
        Some(wanted) => auto_explain::run(prepared, cx, sink, wanted),
    }
}

/// Runs one that a function's body has.
///
/// # Errors
/// Whatever the statement raises.
pub(crate) fn run_nested(
    prepared: &Arc<Prepared>,
    cx: &mut ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Outcome> {
    match auto_explain::wanted(cx.settings).filter(|wanted| wanted.nested) {
        None => run_unexplained(prepared, cx, sink),
        Some(wanted) => auto_explain::run(prepared, cx, sink, wanted),
    }
}

fn run_unexplained(
    prepared: &Arc<Prepared>,
    cx: &mut ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Outcome> {
    faults::reach(Fault::Execute)?;
    if !sched::observe::is_traced()
        && let Some(outcome) = short::run(prepared, cx, sink)?
    {
        return Ok(outcome);
    }
    let mut state = ExecState::new(prepared);
    let outcome = run_with(prepared, cx, &mut state, sink)?;
    tell_trace(&mut state, prepared, cx);
    Ok(outcome)
}

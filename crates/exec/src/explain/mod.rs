//! EXPLAIN: the plan as a tree of labelled nodes, printed as text or JSON.
//!
//! Projections and conditions have no node of their own in what is shown: they belong to the node
//! below, as in PostgreSQL.

mod expression;
mod node;
mod print;

use std::sync::Arc;
use std::time::Instant;

use base::Result;
use sql::utility::{ExplainOptions, Utility};
use sql::{Plan, Prepared, Statement};
use types::{Batch, Datum};

use crate::context::{ExecContext, Outcome, RowSink};
use crate::run::{State, run_with};

/// Takes the rows of the statement that is explained.
struct Nowhere;

impl RowSink for Nowhere {
    fn batch(&mut self, _batch: &Batch) -> Result<()> {
        Ok(())
    }
    fn row(&mut self, _row: &[Datum]) -> Result<()> {
        Ok(())
    }
    fn copy_data(&mut self, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// While it lives, the task's waits are summed up.
struct Metered;

impl Metered {
    fn begin() -> Metered {
        sched::observe::meter(true);
        Metered
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        sched::observe::meter(false);
    }
}

/// A statement's plan as EXPLAIN ANALYZE shows it, after it ran with these measures.
pub(crate) fn measured(
    prepared: &Prepared,
    measures: &[crate::ops::Measure],
    format: &types::FormatContext,
) -> Vec<String> {
    let Some((plan, prepared)) = inner(prepared) else { return Vec::new() };
    let tree = node::Describe::new(prepared, Some(measures), format).root(plan);
    let options = ExplainOptions { analyze: true, timing: true, ..ExplainOptions::default() };
    print::text(&tree, &options, None)
}

/// The plan inside a statement.
fn inner(prepared: &Prepared) -> Option<(&Plan, &Prepared)> {
    match &prepared.statement {
        Statement::Query(plan) => Some((plan, prepared)),
        Statement::Utility(Utility::CreateTableAs { query, .. }) => inner(query),
        _ => None,
    }
}

/// EXPLAIN.
pub fn run(
    statement: &Arc<Prepared>,
    options: &ExplainOptions,
    cx: &mut ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Outcome> {
    let Some((plan, prepared)) = inner(statement) else {
        sink.row(&[Datum::Text("Utility statements have no plan structure".into())])?;
        return Ok(Outcome { rows: 1, tag: None });
    };
    let mut state = State::new(prepared);
    let mut seconds = None;
    if options.analyze {
        state.measure = Some(Vec::new());
        state.measure_waits = options.waits;
        let _metered = options.waits.then(Metered::begin);
        let begin = Instant::now();
        run_with(prepared, cx, &mut state, &mut Nowhere)?;
        seconds = Some(begin.elapsed().as_secs_f64());
    }
    let describe = node::Describe::new(prepared, state.measure.as_deref(), cx.format);
    let tree = describe.root(plan);
    if options.json {
        let text = print::json(&tree, options, seconds);
        sink.row(&[Datum::Text(text.into())])?;
        return Ok(Outcome { rows: 1, tag: None });
    }
    let lines = print::text(&tree, options, seconds);
    for line in &lines {
        sink.row(&[Datum::Text(line.as_str().into())])?;
    }
    Ok(Outcome { rows: lines.len() as u64, tag: None })
}

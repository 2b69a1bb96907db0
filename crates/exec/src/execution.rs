//! An execution of a plan: to its end, or piece by piece for portals and cursors.

use std::collections::VecDeque;
use std::sync::Arc;

use base::{Error, Result};
use sql::{Plan, Prepared, Statement};
use txn::Snapshot;
use types::{Batch, Datum};

use crate::context::{ExecContext, Outcome, RowSink};
use crate::ops::operator::{Operator, build, collect};
use crate::run::{ExecState, Run};
use crate::subquery;

/// The plan of a statement that is a query.
/// # Errors
/// When it is none.
pub fn query_plan(prepared: &Prepared) -> Result<&Plan> {
    match &prepared.statement {
        Statement::Query(plan) => Ok(plan),
        _ => Err(Error::internal("statement has no plan")),
    }
}

/// Runs the statement with a state that the caller made (EXPLAIN ANALYZE keeps it).
pub(crate) fn run_with(
    prepared: &Prepared,
    cx: &mut ExecContext<'_>,
    state: &mut ExecState,
    sink: &mut dyn RowSink,
) -> Result<Outcome> {
    let plan = query_plan(prepared)?;
    let (params, snapshot) = (cx.params, cx.snapshot);
    let mut run = Run { cx, prepared, params, snapshot, state };
    let mut root = build(plan, &mut run)?;
    let mut rows = 0;
    let silent = !prepared.returns_rows();
    while let Some(batch) = root.next(plan, &mut run)? {
        rows += batch.rows as u64;
        if !silent {
            sink.batch(&batch)?;
        }
        sched::check_interrupts()?;
    }
    finish_changes(&mut run)?;
    Ok(Outcome { rows: root.changed().unwrap_or(rows), tag: None })
}

/// Tells what was measured, when somebody traces the session.
pub(crate) fn tell_trace(state: &mut ExecState, prepared: &Prepared, cx: &ExecContext<'_>) {
    if let Some(measures) = state.measure.take() {
        let lines = (cx.engine.calls.describe)(prepared, &measures, cx.format);
        sched::observe::trace_plan(&lines);
    }
}

/// Data-changing WITH queries run to their end, whoever has read them.
fn finish_changes(run: &mut Run<'_, '_>) -> Result<()> {
    run.prepared.changes.iter().try_for_each(|plan| subquery::finish_kept(*plan, run))
}

/// A query that stops and goes on (portals with row limits, cursors). It owns what it needs between
/// calls: no latch, no stack. The caller keeps its snapshot registered
/// ([`txn::Transaction::pin_snapshot`]).
pub struct Execution {
    prepared: Arc<Prepared>,
    params: Vec<Datum>,
    snapshot: Snapshot,
    state: ExecState,
    root: Box<dyn Operator>,
    /// Rows that were computed but not asked for yet: a batch and how many of it are gone.
    rest: Option<(Batch, usize)>,
    /// All rows, when the statement had to run to its end at once.
    ready: Option<VecDeque<Batch>>,
    ended: bool,
    begun: bool,
    /// Whether the last row that was sent is wanted, and it.
    last: Option<Option<Batch>>,
}

impl Execution {
    /// Prepares to run; `params` are copied.
    ///
    /// # Errors
    /// Whatever opening the plan's inputs raises.
    pub fn start(prepared: &Arc<Prepared>, cx: &mut ExecContext<'_>) -> Result<Execution> {
        let mut state = ExecState::new(prepared);
        let (params, snapshot) = (cx.params, cx.snapshot);
        let mut run = Run { cx, prepared, params, snapshot, state: &mut state };
        let plan = query_plan(prepared)?;
        let mut root = run.reading(true, |run| build(plan, run))?;
        let mut ready = None;
        if !prepared.changes.is_empty() {
            // A consumer that stops reading must not stop the changes.
            ready = Some(collect(root.as_mut(), plan, &mut run)?.into());
            finish_changes(&mut run)?;
        }
        Ok(Execution {
            ready,
            prepared: prepared.clone(),
            params: params.to_vec(),
            snapshot,
            state,
            root,
            rest: None,
            ended: false,
            begun: false,
            last: None,
        })
    }

    /// Its parameters.
    pub fn params(&self) -> &[Datum] {
        &self.params
    }

    /// From now on the last row that is sent is kept.
    pub fn keep_last(&mut self) {
        self.last = Some(None);
    }

    /// The last row that was sent.
    pub fn last(&self) -> Option<&Batch> {
        self.last.as_ref()?.as_ref()
    }

    /// Sends at most `limit` rows (0: all); true when the end is reached.
    ///
    /// # Errors
    /// Whatever the statement raises.
    pub fn fetch(
        &mut self,
        cx: &mut ExecContext<'_>,
        limit: u64,
        sink: &mut dyn RowSink,
    ) -> Result<(u64, bool)> {
        self.begun = true;
        let mut sent = 0;
        loop {
            let left = if limit == 0 { u64::MAX } else { limit - sent };
            if left == 0 {
                return Ok((sent, false));
            }
            let Some((batch, gone)) = self.next_piece(cx)? else {
                return Ok((sent, true));
            };
            let count = left.min((batch.rows - gone) as u64) as usize;
            if let Some(last) = &mut self.last {
                *last = Some(crate::rows::slice(&batch, gone + count - 1, 1));
            }
            if gone == 0 && count == batch.rows {
                sink.batch(&batch)?;
            } else {
                sink.batch(&crate::rows::slice(&batch, gone, count))?;
            }
            sent += count as u64;
            if gone + count < batch.rows {
                self.rest = Some((batch, gone + count));
            }
        }
    }

    /// The rest of the last batch, or the next one.
    fn next_piece(&mut self, cx: &mut ExecContext<'_>) -> Result<Option<(Batch, usize)>> {
        if let Some(rest) = self.rest.take() {
            return Ok(Some(rest));
        }
        if let Some(ready) = &mut self.ready {
            return Ok(ready.pop_front().map(|batch| (batch, 0)));
        }
        let plan = query_plan(&self.prepared)?;
        let mut run = Run {
            cx: &mut *cx,
            prepared: &self.prepared,
            params: &self.params,
            snapshot: self.snapshot,
            state: &mut self.state,
        };
        while !self.ended {
            sched::check_interrupts()?;
            match self.root.next(plan, &mut run)? {
                Some(batch) if batch.rows > 0 => return Ok(Some((batch, 0))),
                Some(_) => {}
                None => self.ended = true,
            }
        }
        tell_trace(&mut self.state, &self.prepared, cx);
        Ok(None)
    }

    /// Whether rows have been asked for.
    pub fn begun(&self) -> bool {
        self.begun
    }

    /// Rows that a data-changing statement has changed, once it has ended.
    pub fn changed(&self) -> Option<u64> {
        self.root.changed()
    }
}

/// Runs a statement that defines something or maintains tables: CREATE, DROP, ALTER, TRUNCATE,
/// VACUUM, ANALYZE, COPY, EXPLAIN, LOCK, COMMENT, CHECKPOINT. (Transaction control, settings,
/// prepared statements and cursors are the session's.)
///
/// # Errors
/// Whatever the statement raises; `0A000` for what isn't supported.
pub fn run_utility(
    prepared: &Arc<Prepared>,
    cx: &mut ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Outcome> {
    let Statement::Utility(utility) = &prepared.statement else {
        return Err(Error::internal("not a utility statement"));
    };
    cx.engine.utilities.run(utility, prepared, cx, sink)
}

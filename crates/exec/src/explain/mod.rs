//! EXPLAIN: the plan as a tree of labelled nodes, printed as text, JSON, YAML or XML.
//!
//! Projections and conditions have no node of their own in what is shown: they belong to the node
//! below, as in PostgreSQL.

mod document;
mod expression;
mod filter;
mod node;
mod partition;
mod print;
mod verbose;

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::Result;
use base::settings::{SETTINGS, SettingDef, SettingId, Settings, setting};
use sql::plan::Node;
use sql::utility::{ExplainFormat, ExplainOptions, Utility};
use sql::{Plan, Prepared, Statement};
use types::{Batch, Datum};

use crate::context::{ExecContext, Outcome, RowSink};
use crate::execution::run_with;
use crate::ops::measure::Measure;
use crate::run::ExecState;

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
    measures: &[Measure],
    format: &types::FormatContext,
) -> Vec<String> {
    let Some((plan, prepared)) = inner(prepared) else { return Vec::new() };
    let tree = node::Describe::new(prepared, Some(measures), format).root(plan);
    let options = ExplainOptions { analyze: true, timing: true, ..ExplainOptions::default() };
    print::lines(&tree, &options, false)
}

/// The plan of a statement that ran with this state and took so long, as EXPLAIN with these options prints it.
pub(crate) fn of_run(
    prepared: &Prepared,
    state: &ExecState,
    options: &ExplainOptions,
    cx: &mut ExecContext<'_>,
) -> Vec<String> {
    let Some((plan, prepared)) = inner(prepared) else { return Vec::new() };
    let verbose = options.verbose.then(|| verbose::Verbose::new(cx.catalog_tx.view()));
    let tree = node::Describe::new(prepared, state.measure.as_deref(), cx.format)
        .verbose(verbose)
        .root(plan);
    let whole = Whole {
        planning: Duration::ZERO,
        execution: None,
        settings: if options.settings { changed_settings(cx.settings) } else { Vec::new() },
        io_times: cx.settings.bool(setting::TRACK_IO_TIMING),
    };
    match options.format {
        ExplainFormat::Text => print::text(&tree, options, &whole),
        ExplainFormat::Json => vec![document::json(&print::fields(&tree, options, &whole))],
        ExplainFormat::Yaml => vec![document::yaml(&print::fields(&tree, options, &whole))],
        ExplainFormat::Xml => vec![document::xml(&print::fields(&tree, options, &whole))],
    }
}

/// A statement's plan as EXPLAIN shows it, a line for each; none for what has no plan.
pub fn plan_text(prepared: &Prepared, format: &types::FormatContext) -> String {
    let Some((plan, prepared)) = inner(prepared) else { return String::new() };
    let tree = node::Describe::new(prepared, None, format).root(plan);
    let options = ExplainOptions { costs: true, ..ExplainOptions::default() };
    print::lines(&tree, &options, false).join("\n")
}

/// The plan inside a statement.
fn inner(prepared: &Prepared) -> Option<(&Plan, &Prepared)> {
    match &prepared.statement {
        Statement::Query(plan) => Some((plan, prepared)),
        Statement::Utility(Utility::CreateTableAs { query, .. }) => inner(query),
        _ => None,
    }
}

/// What is said of a statement as a whole.
struct Whole {
    planning: Duration,
    /// None: it was not run.
    execution: Option<Duration>,
    /// Settings of the planner that are not the defaults, with their values.
    settings: Vec<(&'static str, String)>,
    /// Whether the times of reads and writes are of interest.
    io_times: bool,
}

/// EXPLAIN of a statement that took this long to plan.
pub fn run(
    statement: &Arc<Prepared>,
    planning: Duration,
    options: &ExplainOptions,
    cx: &mut ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Outcome> {
    if let Statement::Query(Plan { node: Node::Rewritten(all), .. }) = &statement.statement {
        return run_steps(all, planning, options, cx, sink);
    }
    let Some((plan, prepared)) = inner(statement) else {
        sink.row(&[Datum::Text("Utility statements have no plan structure".into())])?;
        return Ok(Outcome { rows: 1, tag: None });
    };
    let mut whole = Whole {
        planning,
        execution: None,
        settings: if options.settings { changed_settings(cx.settings) } else { Vec::new() },
        io_times: cx.settings.bool(setting::TRACK_IO_TIMING),
    };
    let mut state = ExecState::new(prepared);
    if options.analyze {
        state.measure = Some(Vec::new());
        state.measure_waits = options.waits;
        state.measure_usage = options.buffers || options.wal;
        let _metered = options.waits.then(Metered::begin);
        let begin = Instant::now();
        run_with(prepared, cx, &mut state, &mut Nowhere)?;
        whole.execution = Some(begin.elapsed());
    }
    let (expanded, removed) = match partition::concerns(plan) {
        true => {
            let (shown, removed) = partition::shown(plan, cx)?;
            if options.analyze {
                state.measure = Some(partition::measured(plan, &shown, &state));
            }
            (Some(shown), removed)
        }
        false => Default::default(),
    };
    let plan = expanded.as_deref().unwrap_or(plan);
    let verbose = options.verbose.then(|| verbose::Verbose::new(cx.catalog_tx.view()));
    let mut describe =
        node::Describe::new(prepared, state.measure.as_deref(), cx.format).verbose(verbose);
    describe.removed = removed;
    let tree = describe.root(plan);
    let lines = match options.format {
        ExplainFormat::Text => print::text(&tree, options, &whole),
        ExplainFormat::Json => vec![document::json(&print::fields(&tree, options, &whole))],
        ExplainFormat::Yaml => vec![document::yaml(&print::fields(&tree, options, &whole))],
        ExplainFormat::Xml => vec![document::xml(&print::fields(&tree, options, &whole))],
    };
    for line in &lines {
        sink.row(&[Datum::Text(line.as_str().into())])?;
    }
    Ok(Outcome { rows: lines.len() as u64, tag: None })
}

/// EXPLAIN of the statements that rules have made of one.
fn run_steps(
    all: &sql::plan::Rewritten,
    planning: Duration,
    options: &ExplainOptions,
    cx: &mut ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Outcome> {
    let mut rows = 0;
    let (params, first) = (cx.params, cx.snapshot);
    for (n, step) in all.steps.iter().enumerate() {
        let mut snapshot = first;
        if n > 0 {
            sink.row(&[Datum::Text("".into())])?;
            rows += 1;
            if options.analyze {
                cx.tx.next_command();
                snapshot.command = cx.tx.command();
            }
        }
        let mut inner = ExecContext { snapshot, params, ..cx.inner() };
        rows += run(&step.prepared, planning, options, &mut inner, sink)?.rows;
    }
    Ok(Outcome { rows, tag: None })
}

/// What a session has set of that by which plans are chosen.
fn changed_settings(settings: &Settings) -> Vec<(&'static str, String)> {
    const OTHERS: [&str; 6] = [
        "effective_io_concurrency",
        "hash_mem_multiplier",
        "max_parallel_workers",
        "search_path",
        "temp_buffers",
        "work_mem",
    ];
    let counts =
        |def: &SettingDef| def.group.starts_with("Query Tuning") || OTHERS.contains(&def.name);
    let shown = |def: &SettingDef| {
        let id = SettingId::find(def.name)?;
        let value = settings.get(id);
        (*value != def.default.value()).then(|| (def.name, base::settings::show(id, value)))
    };
    SETTINGS.iter().filter(|def| counts(def)).filter_map(shown).collect()
}

#[cfg(test)]
mod tests {
    use base::settings::Value;

    use super::*;

    #[test]
    fn settings_that_plans_depend_on_are_shown_when_they_are_changed() {
        let mut settings = Settings::default();
        assert_eq!(changed_settings(&settings), []);
        settings.set(setting::ENABLE_SEQSCAN, Value::Bool(false));
        settings.set(setting::WORK_MEM, Value::Int(64));
        settings.set(setting::LOG_DURATION, Value::Bool(true));
        let shown = [("enable_seqscan", "off".to_owned()), ("work_mem", "64kB".to_owned())];
        assert_eq!(changed_settings(&settings), shown);
    }
}

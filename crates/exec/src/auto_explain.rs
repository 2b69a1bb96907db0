//! The settings of PostgreSQL's `auto_explain`: plans of statements that took long, in the server's log.
//!
//! Unlike there nothing need be loaded. A statement is measured only with `auto_explain.log_analyze`; the plan
//! that is logged is the one that ran.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::settings::{Settings, setting};
use base::{Error, Result, sqlstate};
use sql::Prepared;
use sql::utility::{ExplainFormat, ExplainOptions};

use crate::context::{ExecContext, Outcome, RowSink};
use crate::execution::run_with;
use crate::explain;
use crate::run::ExecState;

/// The settings, where they want something.
pub struct Wanted {
    least: Duration,
    options: ExplainOptions,
    level: String,
    /// Statements of functions' bodies, too.
    pub nested: bool,
}

/// The plans that the settings ask for; None: none, the default.
#[inline]
pub fn wanted(settings: &Settings) -> Option<Wanted> {
    let least = settings.int(setting::AUTO_EXPLAIN_LOG_MIN_DURATION);
    if least < 0 { None } else { read(settings, least as u64) }
}

#[cold]
fn read(settings: &Settings, least_ms: u64) -> Option<Wanted> {
    let rate = settings.real(setting::AUTO_EXPLAIN_SAMPLE_RATE);
    if rate < 1.0 && crate::session::random() >= rate {
        return None;
    }
    let analyze = settings.bool(setting::AUTO_EXPLAIN_LOG_ANALYZE);
    let on = |id| settings.bool(id);
    let options = ExplainOptions {
        analyze,
        verbose: on(setting::AUTO_EXPLAIN_LOG_VERBOSE),
        costs: true,
        buffers: analyze && on(setting::AUTO_EXPLAIN_LOG_BUFFERS),
        timing: analyze && on(setting::AUTO_EXPLAIN_LOG_TIMING),
        wal: analyze && on(setting::AUTO_EXPLAIN_LOG_WAL),
        settings: on(setting::AUTO_EXPLAIN_LOG_SETTINGS),
        format: match settings.str(setting::AUTO_EXPLAIN_LOG_FORMAT) {
            "xml" => ExplainFormat::Xml,
            "json" => ExplainFormat::Json,
            "yaml" => ExplainFormat::Yaml,
            _ => ExplainFormat::Text,
        },
        ..ExplainOptions::default()
    };
    Some(Wanted {
        least: Duration::from_millis(least_ms),
        options,
        level: settings.str(setting::AUTO_EXPLAIN_LOG_LEVEL).to_ascii_uppercase(),
        nested: on(setting::AUTO_EXPLAIN_LOG_NESTED_STATEMENTS),
    })
}

/// Runs a statement to its end and logs its plan if it took long.
///
/// # Errors
/// Whatever the statement raises.
pub fn run(
    prepared: &Arc<Prepared>,
    cx: &mut ExecContext<'_>,
    sink: &mut dyn RowSink,
    wanted: Wanted,
) -> Result<Outcome> {
    let mut state = ExecState::new(prepared);
    if wanted.options.analyze {
        state.measure = Some(Vec::new());
        state.measure_usage = wanted.options.buffers || wanted.options.wal;
    }
    let began = Instant::now();
    let outcome = run_with(prepared, cx, &mut state, sink)?;
    let took = began.elapsed();
    if took >= wanted.least {
        let plan = explain::of_run(prepared, &state, &wanted.options, cx);
        let ms = took.as_secs_f64() * 1e3;
        let text = format!(
            "duration: {ms:.3} ms  plan:\nQuery Text: {}\n{}",
            sql::secrets::without_secrets(&prepared.identity.text),
            plan.join("\n")
        );
        let level = LEVELS.iter().find(|level| **level == wanted.level).unwrap_or(&"LOG");
        cx.hooks.notice(level, Error::new(sqlstate::SUCCESSFUL_COMPLETION, text));
    }
    Ok(outcome)
}

const LEVELS: &[&str] = &[
    "DEBUG5", "DEBUG4", "DEBUG3", "DEBUG2", "DEBUG1", "DEBUG", "INFO", "NOTICE", "WARNING", "LOG",
];

//! Statements in the server's log: `log_statement` before they run, `log_min_duration_statement`
//! after.

use std::sync::Arc;
use std::time::Instant;

use base::settings::{live_int, setting};
use sql::plan::Node;
use sql::secrets::without_secrets;
use sql::{Prepared, Statement, Utility};
use types::{Datum, io};

use super::SessionState;
use super::settings::LogStatement;
use crate::log;
use crate::telemetry::spans::{Context, Span};

/// The least setting of `log_statement` that logs the statement.
pub(super) fn class(prepared: &Prepared) -> LogStatement {
    match &prepared.statement {
        Statement::Query(plan) if matches!(plan.node, Node::Modify(_) | Node::Rewritten(_)) => {
            LogStatement::Mod
        }
        Statement::Query(_) | Statement::Empty => LogStatement::All,
        Statement::Utility(utility) => match utility {
            Utility::CopyFrom { .. } | Utility::Truncate { .. } => LogStatement::Mod,
            Utility::Explain { .. } | Utility::CopyTo { .. } => LogStatement::All,
            _ if prepared.writes => LogStatement::Ddl,
            _ => LogStatement::All,
        },
    }
}

impl SessionState {
    /// Logs a statement that is about to run, if it is to be; whether it was. `how` is what comes
    /// before the text: `statement`, `execute name`.
    pub(super) fn log_before(
        &self,
        how: &str,
        text: &str,
        prepared: &Prepared,
        params: &[Datum],
    ) -> bool {
        let wanted = self.settings.log_statement;
        let logs = wanted != LogStatement::None && class(prepared) <= wanted;
        if logs {
            let detail = self.parameters_detail(prepared, params);
            let text = without_secrets(text);
            log::session(self.entry.pid, &format!("{how}: {text}"), detail.as_deref());
        }
        logs
    }

    /// The time from which on a statement's duration is logged, if it is.
    pub(super) fn duration_clock(&self) -> Option<Instant> {
        self.settings.log_min_duration.map(|_| Instant::now())
    }

    /// Logs how long a statement took, if that was long. Its text was `logged` already, or not.
    pub(super) fn log_duration(&self, began: Option<Instant>, logged: bool, how: &str, text: &str) {
        let (Some(began), Some(least)) = (began, self.settings.log_min_duration) else { return };
        let took = began.elapsed();
        if took.as_millis() < u128::from(least) {
            return;
        }
        let ms = took.as_secs_f64() * 1e3;
        let line = match logged {
            true => format!("duration: {ms:.3} ms"),
            false => format!("duration: {ms:.3} ms  {how}: {}", without_secrets(text)),
        };
        log::session(self.entry.pid, &line, None);
    }

    /// Keeps a span of a statement that is over, if it was sent from a place in a trace. `statement`: its command and its
    /// text without constants, where they are known; `counts`: rows, and microseconds that it waited.
    #[cold]
    #[inline(never)]
    pub(super) fn trace(
        &self,
        began: i64,
        statement: Option<(&'static str, &Arc<str>)>,
        counts: (u64, u64),
        error: Option<&base::Error>,
    ) {
        let context = match self.settings.get().str(setting::TRACEPARENT) {
            "" => Context::of_comment(&self.entry.activity().query.text()),
            place => Context::parse(place),
        };
        let Some(context) = context else { return };
        let (name, text) = match statement {
            Some((tag, text)) => (tag, text.clone()),
            None => ("", self.entry.activity().query.text().into()),
        };
        let error = error.map(|e| (e.code().as_str().to_owned(), e.message().to_owned()));
        self.server.spans.add(Span {
            context,
            name: if name.is_empty() { "statement" } else { name },
            began,
            ended: crate::server::now(),
            text,
            statement: self.entry.query_id(),
            database: self.database.0.clone(),
            user: self.settings.identity.current.1.clone(),
            pid: self.entry.pid,
            rows: counts.0,
            waited_us: counts.1,
            error,
        });
    }

    /// Logs a query string that held its worker for long, if that is wanted.
    pub(super) fn log_turn(&self, text: &[u8]) {
        let least = live_int(setting::LOG_WORKER_SLICE);
        if least < 0 {
            return;
        }
        let ms = sched::observe::turns::take_longest() as f64 / 1e6;
        if ms >= least as f64 {
            let text = String::from_utf8_lossy(text);
            let line = format!("slice: {ms:.3} ms  statement: {}", without_secrets(&text));
            log::session(self.entry.pid, &line, None);
        }
    }

    fn parameters_detail(&self, prepared: &Prepared, params: &[Datum]) -> Option<String> {
        let value = |(n, (value, ty)): (usize, (&Datum, &base::Oid))| {
            let mut bytes = Vec::new();
            let text = match value {
                Datum::Null => "NULL".to_owned(),
                value => match io::output(*ty, value, &self.settings.format, &mut bytes) {
                    Ok(()) => format!("'{}'", String::from_utf8_lossy(&bytes).replace('\'', "''")),
                    Err(_) => "?".to_owned(),
                },
            };
            format!("${} = {text}", n + 1)
        };
        let all: Vec<String> = params.iter().zip(&prepared.params).enumerate().map(value).collect();
        (!all.is_empty()).then(|| format!("parameters: {}", all.join(", ")))
    }
}

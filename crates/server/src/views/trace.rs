//! `pg_stat_wait_trace(pid [, seconds [, query_id]])`: everything that a session waits for and does
//! within that time, or during the next execution of one statement (in any session when `pid` is
//! null), as lines of text. The lines are kept in a file in the data directory's `wait_traces`, whose
//! name is the first line.
//!
//! ```text
//!      0.000 ms  statement -3416356442043621232 begins
//!     12.345 ms  waited 12.001 ms for Lock:transactionid, transaction 712, held by 5
//!     12.401 ms  plan  Update on accounts (actual time=12.3..12.3 rows=0 loops=1)
//!     13.000 ms  statement -3416356442043621232 ends
//! ```
//! A wait that goes on when the time is over is the last line: `still waits, so far 9.900 ms for …`.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::{Error, Result, WaitEvent, err};
use sched::observe::{self, TraceEvent, TraceLog, TraceTarget, WaitRecord};
use types::datum::Array;
use types::{Datum, oids};

use super::waits::Names;
use crate::server::{Server, micros};

/// Without an argument that says so.
const SECONDS: f64 = 10.0;
/// The longest trace.
const SECONDS_MAX: f64 = 3600.0;

/// The function.
///
/// # Errors
/// `22023` for arguments that make no sense, among them the number of no session; interrupts; the file's.
pub fn trace(server: &Server, args: &[Datum]) -> Result<Datum> {
    let pid = match args.first() {
        Some(Datum::Int4(pid)) => Some(*pid),
        _ => None,
    };
    let seconds = match args.get(1) {
        Some(Datum::Float8(seconds)) => *seconds,
        _ => SECONDS,
    };
    let statement = match args.get(2) {
        Some(Datum::Int8(id)) => Some(*id as u64),
        _ => None,
    };
    if pid.is_none() && statement.is_none() {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "a trace needs a process ID or a query identifier"
        ));
    }
    if !(0.0..=SECONDS_MAX).contains(&seconds) {
        return Err(err!(INVALID_PARAMETER_VALUE, "a trace may take 0 to {SECONDS_MAX} seconds"));
    }
    if let Some(pid) = pid.filter(|pid| observe::tasks().iter().all(|task| task.pid() != *pid)) {
        return Err(err!(INVALID_PARAMETER_VALUE, "there is no session with process ID {pid}")
            .hint("pg_stat_activity lists the sessions."));
    }
    let began = sched::clock::now_ns();
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let log = observe::trace(TraceTarget { pid, statement }, until)?;
    let lines = lines(&log, began, &Names::of(server));
    let path = keep(server, &lines)?;
    let items: Vec<Datum> =
        std::iter::once(path).chain(lines).map(|line| Datum::Text(line.into())).collect();
    let dims = vec![(items.len() as i32, 1)];
    Ok(Datum::Array(Arc::new(Array { element: oids::TEXT, dims, items })))
}

/// Writes the trace's file; returns its name within the data directory.
fn keep(server: &Server, lines: &[String]) -> Result<String> {
    let name = format!("wait_traces/{}.txt", micros(std::time::SystemTime::now()));
    let path = server.engine.storage.dir().join(&name);
    let mut text = lines.join("\n");
    text.push('\n');
    sched::io_wait(WaitEvent::IOWaitTraceWrite, || {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(&path, text)
    })
    .map_err(|e| Error::io(format!("write file \"{name}\""), &e))?;
    Ok(name)
}

fn lines(log: &TraceLog, began: u64, names: &Names) -> Vec<String> {
    let mut lines: Vec<String> = log.events.iter().map(|e| line(e, began, names)).collect();
    if log.lost > 0 {
        lines.push(format!("{} more events did not fit", log.lost));
    }
    lines
}

fn line(event: &TraceEvent, began: u64, names: &Names) -> String {
    let mut line = format!("{:>12.3} ms  ", event.at_ns().saturating_sub(began) as f64 / 1e6);
    // Writing to a string does not fail.
    let _ = match event {
        TraceEvent::Wait(record) => write!(line, "waited {}", wait(record, names)),
        TraceEvent::Waits(record) => write!(line, "still waits, so far {}", wait(record, names)),
        TraceEvent::Began(statement, _) => write!(line, "statement {} begins", *statement as i64),
        TraceEvent::Ended(statement, _) => write!(line, "statement {} ends", *statement as i64),
        TraceEvent::Plan(_, node) => write!(line, "plan  {node}"),
    };
    line
}

fn wait(record: &WaitRecord, names: &Names) -> String {
    let info = record.event.info();
    let ms = record.duration_ns as f64 / 1e6;
    let mut text = format!("{ms:.3} ms for {}:{}", info.kind, info.name);
    let object = names.describe(record.object);
    if !object.is_empty() {
        let _ = write!(text, ", {object}");
    }
    if record.blocker_pid != 0 {
        let _ = write!(text, ", held by {}", record.blocker_pid);
    }
    text
}

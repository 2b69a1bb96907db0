//! Tracing: everything that one session does, or the next execution of one statement.
//!
//! Whoever wants a trace waits in [`trace`] and gets the events when it is over. Those traced write
//! them: waits at their end, statements as the session says which one it runs, and plan nodes when the
//! executor (which asks [`is_traced`]) has measured them. While nobody traces, all of this is one
//! load of a flag.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use base::{Result, WaitEvent};

use super::{WaitRecord, under_way};
use crate::clock::now_ns;
use crate::spin::SpinLock;
use crate::task::{Task, TaskRef, Wake, check_interrupts, current, park};

/// Events of one trace; what comes after them is only counted.
const EVENTS_MAX: usize = 200_000;

/// Something that a traced session did.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceEvent {
    /// It waited.
    Wait(WaitRecord),
    /// It still waited when the trace was over, so long by then.
    Waits(WaitRecord),
    /// It began to run this statement, at that time.
    Began(u64, u64),
    /// It ended this statement, at that time.
    Ended(u64, u64),
    /// A measurement of a plan by the executor: when, and one line.
    Plan(u64, String),
}

impl TraceEvent {
    /// When it was over, on [`crate::clock`]'s scale.
    pub fn at_ns(&self) -> u64 {
        match self {
            TraceEvent::Wait(record) | TraceEvent::Waits(record) => {
                record.began_ns + record.duration_ns
            }
            TraceEvent::Began(_, at) | TraceEvent::Ended(_, at) | TraceEvent::Plan(at, _) => *at,
        }
    }
}

/// The tasks that are to be traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceTarget {
    /// Only this session.
    pub pid: Option<i32>,
    /// Only the next execution of this statement (its query identifier).
    pub statement: Option<u64>,
}

/// The events of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceLog {
    /// In the order in which they were over.
    pub events: Vec<TraceEvent>,
    /// Events for which there was no room.
    pub lost: u64,
}

struct Trace {
    target: TraceTarget,
    /// The reader that waits for it.
    tracer: TaskRef,
    state: SpinLock<TraceState>,
}

#[derive(Default)]
struct TraceState {
    log: TraceLog,
    /// The task that runs the statement, when one is wanted.
    runs: u64,
    over: bool,
}

/// How many there are.
static TRACES: AtomicUsize = AtomicUsize::new(0);
static ALL: SpinLock<Vec<Arc<Trace>>> = SpinLock::new(Vec::new());

impl Trace {
    /// Whether what this task does belongs here.
    fn wants(&self, task: u64, pid: i32) -> bool {
        if self.target.pid.is_some_and(|wanted| wanted != pid) {
            return false;
        }
        let state = self.state.lock();
        !state.over && (self.target.statement.is_none() || state.runs == task)
    }

    /// The waits under way of those whose doings belong here.
    fn under_way(&self) -> Vec<WaitRecord> {
        let tasks = super::tasks();
        let wanted = tasks.iter().filter(|task| self.wants(task.id(), task.pid()));
        wanted.filter_map(|task| under_way::of_task(task)).collect()
    }

    fn push(&self, event: TraceEvent) {
        let mut state = self.state.lock();
        if state.log.events.len() < EVENTS_MAX {
            state.log.events.push(event);
        } else {
            state.log.lost += 1;
        }
    }

    /// A task goes from one statement to another (0: none).
    fn change(&self, task: &Task, from: u64, to: u64) {
        let now = now_ns();
        if from != 0 && self.wants(task.id(), task.pid()) {
            self.push(TraceEvent::Ended(from, now));
            if self.target.statement.is_some() {
                self.state.lock().over = true;
                self.tracer.unpark();
            }
        }
        if to != 0 && self.target.statement == Some(to) {
            let mut state = self.state.lock();
            if state.runs == 0 {
                state.runs = task.id();
            }
        }
        if to != 0 && self.wants(task.id(), task.pid()) {
            self.push(TraceEvent::Began(to, now));
        }
    }
}

#[inline]
pub(super) fn any() -> bool {
    TRACES.load(Ordering::Relaxed) != 0
}

#[cold]
fn traces() -> Vec<Arc<Trace>> {
    ALL.lock().clone()
}

/// A wait is over.
#[inline]
pub(super) fn waited(record: &WaitRecord) {
    if any() {
        let wanted = traces().into_iter().filter(|t| t.wants(record.task, record.pid));
        wanted.for_each(|t| t.push(TraceEvent::Wait(*record)));
    }
}

/// A task says that it runs another statement (0: none).
#[inline]
pub(crate) fn statement_changes(task: &Task, from: u64, to: u64) {
    if any() {
        let concerned = |t: &Arc<Trace>| t.target.pid.is_none_or(|wanted| wanted == task.pid());
        traces().iter().filter(|t| concerned(t)).for_each(|t| t.change(task, from, to));
    }
}

/// Whether somebody traces what the running task does: then its plans are to be measured.
#[inline]
pub fn is_traced() -> bool {
    any() && crate::task::with_current(|me| traces().iter().any(|t| t.wants(me.id(), me.pid())))
}

/// The executor has measured a plan: one line for each of its nodes.
pub fn trace_plan(lines: &[String]) {
    let now = now_ns();
    crate::task::with_current(|me| {
        for trace in traces().iter().filter(|t| t.wants(me.id(), me.pid())) {
            lines.iter().for_each(|line| trace.push(TraceEvent::Plan(now, line.clone())));
        }
    });
}

/// Traces until that time, or until the statement asked for has been executed once.
///
/// # Errors
/// The caller's interrupts.
pub fn trace(target: TraceTarget, until: Instant) -> Result<TraceLog> {
    /// Ends the trace however this function ends.
    struct End(Arc<Trace>);
    impl Drop for End {
        fn drop(&mut self) {
            let mut all = ALL.lock();
            all.retain(|t| !Arc::ptr_eq(t, &self.0));
            TRACES.store(all.len(), Ordering::Relaxed);
        }
    }
    let trace = Arc::new(Trace { target, tracer: current(), state: SpinLock::default() });
    {
        let mut all = ALL.lock();
        all.push(Arc::clone(&trace));
        TRACES.store(all.len(), Ordering::Relaxed);
    }
    let end = End(Arc::clone(&trace));
    while !trace.state.lock().over {
        match park(WaitEvent::IPCWaitTrace, Some(until)) {
            Wake::Unparked => {}
            Wake::TimedOut => break,
            Wake::Interrupted => check_interrupts()?,
        }
    }
    // Looked at while ends of waits are still told: a wait that ends meanwhile is in the log then.
    let under_way = trace.under_way();
    drop(end);
    let mut log = std::mem::take(&mut trace.state.lock().log);
    let is_told = |log: &TraceLog, wait: &WaitRecord| {
        let is_it = |told: &WaitRecord| (told.task, told.began_ns) == (wait.task, wait.began_ns);
        log.events.iter().rev().any(|e| matches!(e, TraceEvent::Wait(told) if is_it(told)))
    };
    for wait in under_way {
        if !is_told(&log, &wait) {
            log.events.push(TraceEvent::Waits(wait));
        }
    }
    Ok(log)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::task::spawn_task;

    const SOON: Duration = Duration::from_secs(30);

    /// A task that runs the statements and waits once in each, while another one traces.
    fn traced(target: TraceTarget, statements: &[u64], until: Instant) -> TraceLog {
        let tracer = Task::new("tracer");
        let (send, receive) = std::sync::mpsc::channel();
        let thread = spawn_task(tracer.clone(), move || {
            send.send(trace(target, until).unwrap()).unwrap();
        });
        while tracer.waiting().is_none() {
            std::thread::yield_now();
        }
        let worker = Task::new("worker");
        worker.set_pid(target.pid.unwrap_or(8));
        let list = statements.to_vec();
        let me = worker.clone();
        spawn_task(worker, move || {
            for statement in list {
                me.set_statement(statement);
                park(WaitEvent::TimeoutPgSleep, Some(Instant::now()));
                if is_traced() {
                    trace_plan(&["a node".to_owned()]);
                }
                me.set_statement(0);
            }
        })
        .join()
        .unwrap();
        thread.join().unwrap();
        receive.recv().unwrap()
    }

    fn outline(log: &TraceLog) -> Vec<(&'static str, u64)> {
        let event = |e: &TraceEvent| match e {
            TraceEvent::Wait(record) => ("wait", record.statement),
            TraceEvent::Waits(record) => ("waits", record.statement),
            TraceEvent::Began(statement, _) => ("began", *statement),
            TraceEvent::Ended(statement, _) => ("ended", *statement),
            TraceEvent::Plan(..) => ("plan", 0),
        };
        log.events.iter().map(event).collect()
    }

    #[test]
    fn the_next_execution_of_a_statement_ends_its_trace() {
        let target = TraceTarget { pid: None, statement: Some(5001) };
        let log = traced(target, &[5000, 5001, 5001, 5002], Instant::now() + SOON);
        let expected = [("began", 5001), ("wait", 5001), ("plan", 0), ("ended", 5001)];
        assert_eq!(outline(&log), expected);
    }

    #[test]
    fn a_wait_that_goes_on_when_the_trace_is_over_is_in_it_once() {
        let worker = Task::new("worker");
        worker.set_pid(992);
        worker.set_statement(6001);
        let waiter = worker.clone();
        let thread = spawn_task(worker, || {
            park(WaitEvent::ExtensionExtension, None);
        });
        while waiter.waiting().is_none() {
            std::thread::yield_now();
        }
        let target = TraceTarget { pid: Some(992), statement: None };
        let tracer = Task::new("tracer");
        let (send, receive) = std::sync::mpsc::channel();
        let tracing = spawn_task(tracer, move || {
            send.send(trace(target, Instant::now() + Duration::from_millis(20)).unwrap()).unwrap();
        });
        let log = receive.recv().unwrap();
        assert_eq!(outline(&log), [("waits", 6001)]);
        tracing.join().unwrap();
        waiter.unpark();
        thread.join().unwrap();
    }

    #[test]
    fn a_session_is_traced_for_a_time() {
        let target = TraceTarget { pid: Some(991), statement: None };
        let log = traced(target, &[1, 2], Instant::now() + Duration::from_millis(300));
        // On a busy machine the time may be over before the session has ended.
        // (It may still wait then: a wait under way is the last event.)
        let all = [
            ("began", 1),
            ("wait", 1),
            ("plan", 0),
            ("ended", 1),
            ("began", 2),
            ("wait", 2),
            ("plan", 0),
            ("ended", 2),
        ];
        let mut outline = outline(&log);
        outline.iter_mut().for_each(|event| event.0 = event.0.replace("waits", "wait").leak());
        assert_eq!(outline, all[..log.events.len()]);
    }
}

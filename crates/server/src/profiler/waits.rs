//! Stacks of waits, weighted by the time waited.
//!
//! ```text
//!   statement ; event type ; event ; object ; the server's functions at the wait
//! ```
//! While a profile is being taken, whoever ends a wait notes it with the return addresses of its
//! stack (an observer of [`sched::observe`], called on the waiter's own stack; some microseconds for
//! each wait). Waits shorter than [`SHORTEST_NS`] are noted without frames, since to walk the stack
//! would take longer than they did. Waits that last on at the end are counted up to then, without
//! frames: their stacks are not at hand. Of each wait only the part counts that lies in the time of
//! the profile, so that the widths add up to the time that was waited in it.

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base::waits::WAITS;
use base::{Result, WaitEvent, err};
use sched::SpinLock;
use sched::clock::{now_ns, to_ns};
use sched::observe::{WaitObject, WaitRecord, is_idle, set_observer};

use super::cpu::Symbols;
use super::folded::Folded;
use super::names::Names;
use super::profile::Kind;
use crate::profiler::object::object;
use crate::server::Server;

/// Waits that are shorter are noted without frames.
const SHORTEST_NS: u64 = 2_000;
/// Frames of a stack.
const FRAMES_MAX: usize = 40;
/// Between two looks at what was noted.
const TICK: Duration = Duration::from_millis(20);
/// Where waits are noted: so many lists, each of at most as many between two looks.
const LISTS: usize = 16;
const LIST_MAX: usize = 512;
/// Different stacks that are told apart.
const STACKS_MAX: usize = 50_000;

/// The key of waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Wait {
    pid: i32,
    task: u64,
    statement: u64,
    event: WaitEvent,
    object: WaitObject,
    /// Return addresses, innermost first; 0: none.
    frames: [usize; FRAMES_MAX],
}

/// A wait and the nanoseconds that count.
type Noted = (Wait, u64);

static LISTED: [SpinLock<Vec<Noted>>; LISTS] = [const { SpinLock::new(Vec::new()) }; LISTS];
/// Time of waits for which there was no room, by event.
static LOST_NS: [AtomicU64; WAITS.len()] = [const { AtomicU64::new(0) }; WAITS.len()];
static TAKEN: AtomicBool = AtomicBool::new(false);
/// When the profile began.
static SINCE_NS: AtomicU64 = AtomicU64::new(0);

/// The observer; see the module. Memory for the lists was asked for before.
fn note(record: &WaitRecord) {
    let end = record.began_ns + record.duration_ns;
    let since = SINCE_NS.load(Ordering::Relaxed).max(record.began_ns);
    let Some(counted) = end.checked_sub(since).filter(|_| !record.is_idle()) else { return };
    let mut wait = Wait {
        pid: record.pid,
        task: record.task,
        statement: record.statement,
        event: record.event,
        object: record.object,
        frames: [0; FRAMES_MAX],
    };
    if record.duration_ns >= SHORTEST_NS {
        walk(&mut wait.frames);
    }
    let mut list = LISTED[record.task as usize % LISTS].lock();
    if list.len() < list.capacity() {
        list.push((wait, counted));
    } else {
        LOST_NS[record.event as usize].fetch_add(counted, Ordering::Relaxed);
    }
}

/// The return addresses of the running stack.
fn walk(frames: &mut [usize; FRAMES_MAX]) {
    let mut next = 0;
    // SAFETY: on this system the unwinder has no state that threads share; coroutines can be walked
    // as any stack, panics do it too.
    unsafe {
        backtrace::trace_unsynchronized(|frame| {
            frames[next] = frame.ip() as usize;
            next += 1;
            next < FRAMES_MAX
        });
    }
}

/// Watches until it is dropped. One at a time.
struct Watch;

impl Watch {
    fn start() -> Option<Watch> {
        if TAKEN.swap(true, Ordering::AcqRel) {
            return None;
        }
        SINCE_NS.store(now_ns(), Ordering::Release);
        for list in &LISTED {
            let empty = Vec::with_capacity(LIST_MAX);
            drop(std::mem::replace(&mut *list.lock(), empty));
        }
        LOST_NS.iter().for_each(|lost| lost.store(0, Ordering::Relaxed));
        set_observer(Some(note));
        Some(Watch)
    }

    /// Adds what was noted since the last call.
    fn drain(&self, stacks: &mut HashMap<Wait, u64>) {
        for list in &LISTED {
            let empty = Vec::with_capacity(LIST_MAX);
            let full = std::mem::replace(&mut *list.lock(), empty);
            for (mut wait, ns) in full {
                if stacks.len() >= STACKS_MAX && !stacks.contains_key(&wait) {
                    (wait.frames, wait.object) = ([0; FRAMES_MAX], WaitObject::None);
                }
                *stacks.entry(wait).or_default() += ns;
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        set_observer(None);
        LISTED.iter().for_each(|list| drop(std::mem::take(&mut *list.lock())));
        TAKEN.store(false, Ordering::Release);
    }
}

/// Watches for a while, on a thread that may block.
///
/// # Errors
/// `55006` while another one is being taken.
pub fn take(
    server: &Server,
    kind: Kind,
    length: Duration,
    cancelled: &AtomicBool,
) -> Result<Folded> {
    let watch = Watch::start().ok_or_else(|| {
        err!(OBJECT_IN_USE, "another profile of the waits is being taken")
            .hint("try again when it is done")
    })?;
    let mut stacks = HashMap::new();
    let mut texts = Names::default();
    let end = Instant::now() + length;
    while Instant::now() < end && !cancelled.load(Ordering::Acquire) {
        sched::park(WaitEvent::TimeoutProfileSampling, Some(end.min(Instant::now() + TICK)));
        watch.drain(&mut stacks);
        texts.look(server);
    }
    unfinished(&mut stacks);
    drop(watch);
    Ok(fold(server, kind, &stacks, &mut texts))
}

/// Adds the waits that last on.
fn unfinished(stacks: &mut HashMap<Wait, u64>) {
    let (now, since) = (now_ns(), SINCE_NS.load(Ordering::Relaxed));
    let own = sched::current().id();
    for task in sched::tasks() {
        let Some((waiting, began)) = task.waiting() else { continue };
        if is_idle(waiting.event) || task.id() == own {
            continue;
        }
        let wait = Wait {
            pid: task.pid(),
            task: task.id(),
            statement: task.statement(),
            event: waiting.event,
            object: waiting.object,
            frames: [0; FRAMES_MAX],
        };
        *stacks.entry(wait).or_default() += now.saturating_sub(to_ns(began).max(since));
    }
}

fn fold(server: &Server, kind: Kind, stacks: &HashMap<Wait, u64>, texts: &mut Names) -> Folded {
    let mut symbols = Symbols::new();
    let mut folded = Folded::default();
    for (wait, ns) in stacks {
        // The profile itself is nobody's business.
        if wait.event == WaitEvent::TimeoutProfileSampling {
            continue;
        }
        let info = wait.event.info();
        let mut frames = Vec::new();
        if kind == Kind::SessionWaits {
            frames.push(texts.session(wait.pid, wait.task));
        }
        frames.push(texts.statement(server, wait.pid, wait.task, wait.statement));
        frames.extend([info.kind.to_owned(), info.name.to_owned()]);
        match coarse(wait.object) {
            WaitObject::None => {}
            other => frames.push(object(server, other)),
        }
        frames.extend(code(&wait.frames, &mut symbols));
        folded.add(&frames, ns / 1000);
    }
    for (wait, lost) in WAITS.iter().zip(&LOST_NS) {
        let lost = lost.load(Ordering::Relaxed) / 1000;
        folded.add(["[waits without room]", wait.kind, wait.name], lost);
    }
    folded
}

/// Rows and pages are too many to be told apart: their table will do.
fn coarse(object: WaitObject) -> WaitObject {
    match (object, object.file()) {
        (WaitObject::Extension(_), _) => object,
        (WaitObject::Transaction(_) | WaitObject::Position(_), _) => WaitObject::None,
        (_, Some(file)) => WaitObject::File(file),
        _ => object,
    }
}

/// The server's functions from the statement down to the wait, without what is the same for all:
/// the worker above, the scheduler below.
fn code(frames: &[usize; FRAMES_MAX], symbols: &mut Symbols) -> Vec<String> {
    const BELOW: [&str; 6] =
        ["backtrace", "server::profiler", "sched::", "<sched::", "core::", "<core::"];
    let mut calls: Vec<Vec<String>> = Vec::new();
    for frame in frames.iter().take_while(|f| **f != 0) {
        calls.push(symbols.names(*frame as u64 - 1).to_vec());
    }
    let is_below = |call: &Vec<String>| BELOW.iter().any(|b| call[0].starts_with(b));
    let inner = calls.iter().position(|call| !is_below(call)).unwrap_or(calls.len());
    let is_session = |call: &Vec<String>| call[0].contains("server::session");
    let outer = calls.iter().rposition(is_session).map_or(calls.len(), |at| at + 1);
    calls.get(inner..outer).unwrap_or(&[]).iter().rev().flatten().cloned().collect()
}

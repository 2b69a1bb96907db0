//! The processor profile: stacks of running threads, weighted by processor time.
//!
//! ```text
//!   kind of task ; statement ; the server's functions
//! ```

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base::{Error, Result, WaitEvent, err};

use super::folded::Folded;
use super::names::Names;
use super::sampler::{STACK_BYTES, Sample, Sampler};
use super::unwind::{Functions, Unwinder};
use crate::server::Server;

/// Samples a second of processor time; not a round number, so that it does not keep step with what
/// happens in round intervals.
const FREQUENCY: u32 = 197;
/// Between two looks at the ring.
const TICK: Duration = Duration::from_millis(20);

/// Samples for a while, on a thread that may block.
///
/// # Errors
/// `55006` while another one is being taken; I/O errors.
pub fn take(server: &Server, length: Duration, cancelled: &AtomicBool) -> Result<Folded> {
    let failed = |e| Error::io("start to sample", &e);
    let mut unwinder = Unwinder::new();
    let mut stacks = HashMap::new();
    let mut texts = Names::default();
    let mut sampler = Sampler::start(FREQUENCY).map_err(failed)?.ok_or_else(|| {
        err!(OBJECT_IN_USE, "another profile of the processors is being taken")
            .hint("try again when it is done")
    })?;
    let end = Instant::now() + length;
    while Instant::now() < end && !cancelled.load(Ordering::Acquire) {
        sched::park(WaitEvent::TimeoutProfileSampling, Some(end.min(Instant::now() + TICK)));
        sampler.drain(|sample| count(sample, &mut unwinder, &mut stacks));
        texts.look(server);
    }
    let lost = sampler.lost();
    drop(sampler);
    let mut folded = fold(server, &stacks, &mut texts);
    if lost > 0 {
        folded.add(["[samples without room]"], lost * u64::from(1_000_000 / FREQUENCY));
    }
    Ok(folded)
}

/// The key of samples: the root that ran, and the addresses of its stack.
type Stack = (Root, Vec<u64>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Root {
    /// A task: its kind and its statement's query identifier (0: none).
    Task(&'static str, u64),
    /// A thread without one.
    Thread(i32),
}

fn count(sample: &Sample, unwinder: &mut Unwinder, stacks: &mut HashMap<Stack, u64>) {
    let root = sample
        .task
        .map_or(Root::Thread(sample.thread), |task| Root::Task(task.kind, task.statement));
    let stack = &sample.stack[..sample.length.min(STACK_BYTES)];
    let addresses = unwinder.walk(sample.registers, stack);
    *stacks.entry((root, addresses)).or_default() += 1;
}

fn fold(server: &Server, stacks: &HashMap<Stack, u64>, texts: &mut Names) -> Folded {
    let mut symbols = Symbols::new();
    let mut folded = Folded::default();
    for ((root, addresses), samples) in stacks {
        let mut frames = vec![match root {
            Root::Task(kind, _) => (*kind).to_owned(),
            Root::Thread(thread) => thread_name(*thread),
        }];
        if let Root::Task(_, statement @ 1..) = root {
            frames.push(texts.known(server, *statement));
        }
        for address in addresses.iter().rev() {
            frames.extend_from_slice(symbols.names(*address));
        }
        folded.add(&frames, samples * u64::from(1_000_000 / FREQUENCY));
    }
    folded
}

fn thread_name(thread: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/self/task/{thread}/comm"));
    name.map_or_else(|_| "a thread that has ended".to_owned(), |n| n.trim_end().to_owned())
}

/// Names of functions by address, looked up once.
pub struct Symbols {
    functions: Functions,
    known: HashMap<u64, Vec<String>>,
}

impl Symbols {
    /// Reads the program's names.
    pub fn new() -> Symbols {
        Symbols { functions: Functions::of_program(), known: HashMap::new() }
    }

    /// The function at an address, then those inlined there.
    pub fn names(&mut self, address: u64) -> &[String] {
        self.known.entry(address).or_insert_with(|| {
            let mut names = Vec::new();
            // `resolve` expects where a call returns to.
            backtrace::resolve((address + 1) as *mut c_void, |symbol| {
                // The alternate form leaves the hash out.
                names.extend(symbol.name().map(|name| format!("{name:#}")));
            });
            names.reverse();
            if let Some(full) = self.functions.name(address) {
                match names.first_mut() {
                    Some(name) => *name = full,
                    None => names.push(full),
                }
            }
            if names.is_empty() {
                names.push("[unknown]".to_owned());
            }
            names
        })
    }
}

//! Helpers: threads that do a part of one statement's work beside the statement's own task.
//!
//! ```text
//!   the statement's task            helpers, a thread and a task each
//!   together ── start ───────────▶ help   (its statement, context and a share of its memory limit)
//!   lead                            help
//!   join  ◀── done, or an error ──  end
//! ```
//!
//! * The caller goes on only when all helpers have ended, whatever happened: what they borrow stays.
//! * An interrupt of the statement ends the helpers; a helper's error is the statement's; a helper's panic
//!   goes on in the caller.
//! * What helpers have made and left to the caller counts as the caller's memory from then on.
//! * Helpers are threads of their own, not tasks of the workers, so that a long piece of work keeps no session from its
//!   worker. They are started only when there are workers without work, and look between pieces whether they are in the
//!   way ([`should_yield`]).
//! * They keep off the processor that the caller's worker is bound to: the system starts a thread beside the one that starts
//!   it, where the two would take turns, and moves it away only after milliseconds.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use base::usage::USES;
use base::{Error, Result, WaitEvent};

use crate::exchange::Running;
use crate::memory::Given;
use crate::spin::SpinLock;
use crate::sys;
use crate::task::{self, Interrupt, Task, TaskRef};
use crate::worker::saturation;

/// Virtual size of a helper's stack: that of a statement's ordinary one and room for its calls.
const STACK_BYTES: usize = 8 << 20;

type Panic = Box<dyn std::any::Any + Send>;

/// The state that the helpers of one call and their caller share; it outlives the last of them that looks at it.
struct Team {
    running: Running,
    outcome: SpinLock<Outcome>,
}

#[derive(Default)]
struct Outcome {
    error: Option<Error>,
    panic: Option<Panic>,
    used: Vec<[u64; USES]>,
    /// Memory of what helpers have made.
    made: Vec<Given>,
}

impl Team {
    /// A helper's whole life.
    fn run(&self, help: &(dyn Fn() -> Result<()> + Sync)) {
        let ended = catch_unwind(AssertUnwindSafe(help));
        {
            let mut outcome = self.outcome.lock();
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    outcome.error.get_or_insert(error);
                }
                Err(panic) => {
                    outcome.panic.get_or_insert(panic);
                }
            }
            outcome.used.extend(task::take_usage());
            outcome.made.push(task::with_current(|task| task.memory().give_away()));
        }
        task::with_current(|task| {
            task.set_statement(0);
            // Others may start now: nobody is to see more than there may be.
            task::unlist_background(task);
        });
        // From here on the caller may go on, and what `help` borrows may be gone.
        self.running.end();
    }
}

/// How many helpers are worth starting now, of `most`: one for each worker that has nothing to do.
pub fn available(most: usize) -> usize {
    most.min(saturation::idle_workers())
}

/// Whether sessions wait for workers, none of which is idle: a helper that is between two pieces ends then.
pub fn should_yield() -> bool {
    saturation::is_saturated()
}

/// Runs `lead` here and `help` in up to `count` helpers (fewer when the system has no more threads), and
/// returns when all have ended: what `lead` made, and how many helpers there were.
///
/// # Errors
/// Of `lead`; of a helper, the first one's; an interrupt that comes while the caller waits for helpers.
///
/// # Panics
/// When one of them panics.
pub fn together<R>(
    count: usize,
    help: &(dyn Fn() -> Result<()> + Sync),
    lead: impl FnOnce() -> Result<R>,
) -> Result<(R, usize)> {
    let leader = task::current();
    let team =
        Arc::new(Team { running: Running::new(), outcome: SpinLock::new(Outcome::default()) });
    // SAFETY: a lifetime is all that changes. `help` is used by helpers that are counted as running only, and
    // this function does not go on, not even by a panic, before none is.
    let help = unsafe {
        std::mem::transmute::<
            &(dyn Fn() -> Result<()> + Sync),
            &'static (dyn Fn() -> Result<()> + Sync),
        >(help)
    };
    let limit = leader.memory().usage().limit / (count as i64 + 1);
    let taken = sys::bound_to();
    let mut helpers = Vec::with_capacity(count);
    for _ in 0..count {
        let helper = Task::new("parallel worker");
        helper.set_statement(leader.statement());
        if let Some(context) = leader.context() {
            helper.set_context(context.clone());
        }
        helper.memory().begin_statement(limit);
        team.running.begin();
        let own = team.clone();
        let life = move || {
            if let Some(processor) = taken {
                sys::keep_off(processor);
            }
            own.run(help);
        };
        match task::start_thread(helper.clone(), STACK_BYTES, life) {
            Ok(_) => helpers.push(helper),
            Err(_) => {
                team.running.end();
                break;
            }
        }
    }
    let led = catch_unwind(AssertUnwindSafe(lead));
    if !matches!(led, Ok(Ok(_))) {
        cancel(&helpers);
    }
    let interrupted = join(&team, &helpers);
    let Outcome { error, panic, used, made } = std::mem::take(&mut *team.outcome.lock());
    made.iter().for_each(|made| leader.memory().take_over(made));
    used.iter().for_each(|used| leader.add_usage(used));
    match (led, panic) {
        (Err(panic), _) | (_, Some(panic)) => resume_unwind(panic),
        (Ok(Err(error)), None) => Err(error),
        (Ok(Ok(result)), None) => {
            interrupted?;
            error.map_or(Ok((result, helpers.len())), Err)
        }
    }
}

fn cancel(helpers: &[TaskRef]) {
    helpers.iter().for_each(|helper| helper.interrupt(Interrupt::Cancel));
}

/// Waits until no helper runs. An interrupt ends them and is returned then.
fn join(team: &Team, helpers: &[TaskRef]) -> Result<()> {
    let look = || task::check_interrupts().inspect_err(|_| cancel(helpers));
    team.running.wait(WaitEvent::IPCParallelFinish, look)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use base::err;

    use super::*;

    #[test]
    fn all_work_is_done_when_the_caller_goes_on() {
        let left = AtomicUsize::new(10_000);
        let work = || {
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                .is_ok()
            {
                task::check_interrupts()?;
            }
            Ok(())
        };
        let (_, helpers) = together(3, &work, work).unwrap();
        assert_eq!((left.load(Ordering::Relaxed), helpers), (0, 3));
    }

    #[test]
    fn what_helpers_leave_is_the_callers_memory() {
        let made = SpinLock::new(Vec::new());
        let help = || {
            let block = vec![1_u8; 3 << 20];
            made.lock().push(block);
            Ok(())
        };
        let before = task::with_current(|task| task.memory().usage().used);
        together(2, &help, || Ok(())).unwrap();
        let held = task::with_current(|task| task.memory().usage().used) - before;
        let counts = 5 << 20..8 << 20;
        // Tests run without the allocator that counts, perhaps.
        assert!(held == 0 || counts.contains(&held), "{held} bytes");
        drop(made);
        let after = task::with_current(|task| task.memory().usage().used) - before;
        assert!(after < 1 << 20, "{after} bytes");
    }

    #[test]
    fn an_error_here_ends_the_helpers() {
        let for_ever = || -> Result<()> {
            loop {
                task::check_interrupts()?;
                std::thread::yield_now();
            }
        };
        let error = together(2, &for_ever, || Err::<(), _>(err!(DIVISION_BY_ZERO, "here")));
        assert_eq!(error.unwrap_err().message(), "here");
    }

    #[test]
    fn a_helpers_error_and_its_panic_are_the_callers() {
        let fails = || Err(err!(DIVISION_BY_ZERO, "there"));
        let error = together(1, &fails, || Ok(()));
        assert_eq!(error.unwrap_err().message(), "there");
        let panics = || panic!("a helper's");
        let caught = catch_unwind(AssertUnwindSafe(|| together(1, &panics, || Ok(())).is_ok()));
        assert!(caught.is_err());
    }

    #[test]
    fn helpers_keep_off_the_processor_of_a_bound_caller() {
        let [first, others @ ..] = sys::processors() else { panic!("there are no processors") };
        let seen = SpinLock::new(Vec::new());
        let help = || {
            seen.lock().extend(sys::processor());
            Ok(())
        };
        let caller = || {
            sys::bind(&[*first]).unwrap();
            together(2, &help, || Ok(())).unwrap();
        };
        std::thread::scope(|scope| scope.spawn(caller).join().unwrap());
        let seen = seen.into_inner();
        let expected = if others.is_empty() { std::slice::from_ref(first) } else { others };
        assert!(seen.len() == 2 && seen.iter().all(|p| expected.contains(p)), "{seen:?}");
    }

    #[test]
    fn an_interrupt_while_the_caller_waits_ends_the_helpers() {
        let leader = task::current();
        let for_ever = move || -> Result<()> {
            leader.interrupt(Interrupt::Cancel);
            loop {
                task::check_interrupts()?;
                std::thread::yield_now();
            }
        };
        let error = together(1, &for_ever, || Ok(())).unwrap_err();
        assert_eq!(error.code(), Interrupt::Cancel.error().code());
    }
}

//! Runs programs on the simulated processors. A program is an async function whose only awaits are
//! steps on a [`Core`]: loads, stores and atomics on words, local work, spinning, parking. The
//! compiler makes the state machine; this executor resumes it when its step is done.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::coherence::{LineId, Memory, Op, Word};
use super::events::{Event, Queue};
use super::machine::{CPUS_MAX, Machine, Time, ps};

/// A run ends after so many events even if it has not done what it was asked.
const EVENTS_MAX: u64 = 2_000_000;

/// What one processor is about.
struct Cpu {
    random: Xoshiro256PlusPlus,
    /// Local work takes so many times as long as alone on the core.
    slowdown: f64,
    /// It sleeps since then.
    parked: Option<Time>,
    /// It was woken before it slept.
    token: bool,
    /// The running operation's beginning.
    began: Time,
    exclusive: bool,
    tally: Tally,
    exclusive_tally: Tally,
    /// Time in the waiting loops of spin locks.
    spinning: Time,
}

/// Operations that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// How many.
    pub operations: u64,
    /// Their time in all.
    pub time: Time,
    /// The longest one.
    pub longest: Time,
}

impl Tally {
    fn add(&mut self, time: Time) {
        self.operations += 1;
        self.time += time;
        self.longest = self.longest.max(time);
    }

    fn merge(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.time += other.time;
        self.longest = self.longest.max(other.longest);
    }

    /// Nanoseconds of one operation; of the unfinished one when none ended.
    pub fn mean_ns(&self) -> f64 {
        let time = if self.operations == 0 { self.longest } else { self.time };
        time as f64 / 1e3 / self.operations.max(1) as f64
    }
}

/// What a run gave, after its warm-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Simulated time.
    pub time: Time,
    /// All operations; the longest counts those that did not end, too.
    pub all: Tally,
    /// Those that called [`Core::exclusive`].
    pub exclusive: Tally,
    /// Cache line transfers and invalidations.
    pub transfers: u64,
    /// Time of all processors in the waiting loops of spin locks, a part of all their time.
    pub spinning: f64,
}

impl Outcome {
    /// Operations a second.
    pub fn throughput(&self) -> f64 {
        self.all.operations as f64 / (self.time.max(1) as f64 / 1e12)
    }
}

struct EngineState {
    events: Queue,
    memory: Memory,
    cpus: Vec<Cpu>,
    machine: Machine,
    /// Operations that ended.
    ended: u64,
}

/// One processor, as a program sees it.
#[derive(Clone)]
pub struct Core {
    /// Its number, from 0.
    pub id: usize,
    state: Rc<RefCell<EngineState>>,
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// A machine, its memory, and what runs on it.
pub struct Simulation {
    state: Rc<RefCell<EngineState>>,
    tasks: Vec<Task>,
    checked: bool,
}

impl Simulation {
    /// The first `cpus` logical processors of a machine.
    ///
    /// # Panics
    /// The machine has fewer, or the simulator's sets are too small.
    pub fn new(machine: &Machine, cpus: usize, seed: u64) -> Simulation {
        assert!((1..=machine.cpus().min(CPUS_MAX)).contains(&cpus), "{cpus} processors");
        let cpu = |id: usize| Cpu {
            random: Xoshiro256PlusPlus::seed_from_u64(
                seed ^ (id as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            ),
            slowdown: {
                let others = machine.threads_at_work(id, cpus) - 1;
                1.0 + (machine.costs.shared_core - 1.0) * others as f64
            },
            spinning: 0,
            parked: None,
            token: false,
            began: 0,
            exclusive: false,
            tally: Tally::default(),
            exclusive_tally: Tally::default(),
        };
        let state = EngineState {
            events: Queue::default(),
            memory: Memory::new(machine, cpus, seed),
            cpus: (0..cpus).map(cpu).collect(),
            machine: machine.clone(),
            ended: 0,
        };
        Simulation { state: Rc::new(RefCell::new(state)), tasks: Vec::new(), checked: false }
    }

    /// Checks the lines' invariants after every event.
    #[must_use]
    pub fn checked(mut self) -> Simulation {
        self.checked = true;
        self
    }

    /// Processors.
    pub fn cpus(&self) -> usize {
        self.state.borrow().cpus.len()
    }

    /// A new word on a line of its own.
    pub fn word(&mut self) -> Word {
        let line = self.line();
        self.word_on(line)
    }

    /// A new word on this line, with a value.
    pub fn word_with(&mut self, line: LineId, value: u64) -> Word {
        self.state.borrow_mut().memory.word(line, value)
    }

    /// A new line.
    pub fn line(&mut self) -> LineId {
        self.state.borrow_mut().memory.line()
    }

    /// A new word on this line.
    pub fn word_on(&mut self, line: LineId) -> Word {
        self.word_with(line, 0)
    }

    /// Lets each processor run its program again and again; one pass is one operation, and takes
    /// at least one step.
    pub fn each_core<P>(&mut self, mut program: impl FnMut(usize) -> P)
    where
        P: AsyncFn(&Core) + 'static,
    {
        for id in 0..self.cpus() {
            let (core, program) = (Core { id, state: Rc::clone(&self.state) }, program(id));
            self.tasks.push(Box::pin(async move {
                loop {
                    core.begin_operation();
                    program(&core).await;
                    core.end_operation();
                }
            }));
            self.state.borrow_mut().events.push(0, Event::Resume(id));
        }
    }

    /// Runs until so many operations have ended after a warm-up of a quarter as many, or (when
    /// they are very long) until `EVENTS_MAX` events have happened.
    ///
    /// # Panics
    /// Nothing can happen any more: a deadlock of the programs.
    pub fn run(&mut self, operations: u64) -> Outcome {
        self.steps(operations / 4);
        let start = self.restart();
        self.steps(operations);
        self.outcome(start)
    }

    fn steps(&mut self, operations: u64) {
        let goal = self.state.borrow().ended + operations;
        for _ in 0..EVENTS_MAX {
            let mut state = self.state.borrow_mut();
            let EngineState { events, memory, ended, .. } = &mut *state;
            if *ended >= goal {
                return;
            }
            let resumed = match events.pop() {
                None => panic!("all processors wait for each other"),
                Some(Event::Serve(line)) => {
                    memory.serve(events, line);
                    None
                }
                Some(Event::Grant(line, request)) => {
                    memory.grant(events, line, request);
                    None
                }
                Some(Event::Alarm(cpu, watch)) => {
                    memory.alarm(events, cpu, watch);
                    None
                }
                Some(Event::Resume(cpu)) => Some(cpu),
            };
            if self.checked {
                memory.check();
            }
            drop(state);
            if let Some(cpu) = resumed {
                let mut context = Context::from_waker(Waker::noop());
                let _ = self.tasks[cpu].as_mut().poll(&mut context);
            }
        }
    }

    /// Forgets what was counted; the present.
    fn restart(&mut self) -> Time {
        let mut state = self.state.borrow_mut();
        state.memory.take_transfers();
        for cpu in &mut state.cpus {
            (cpu.tally, cpu.exclusive_tally) = (Tally::default(), Tally::default());
            cpu.spinning = 0;
        }
        state.events.now()
    }

    fn outcome(&self, start: Time) -> Outcome {
        let mut state = self.state.borrow_mut();
        let now = state.events.now();
        let (mut all, mut exclusive) = (Tally::default(), Tally::default());
        for cpu in &state.cpus {
            all.merge(&cpu.tally);
            exclusive.merge(&cpu.exclusive_tally);
            let age = now - cpu.began;
            all.longest = all.longest.max(age);
            if cpu.exclusive {
                exclusive.longest = exclusive.longest.max(age);
            }
        }
        let time = now - start;
        let spun: Time = state.cpus.iter().map(|cpu| cpu.spinning).sum();
        let spinning = spun as f64 / (time.max(1) as f64 * state.cpus.len() as f64);
        Outcome { time, all, exclusive, transfers: state.memory.take_transfers(), spinning }
    }
}

/// A step of a program: begun when it is first polled, done when it is resumed.
struct Step<'a, F> {
    core: &'a Core,
    begin: Option<F>,
}

impl<F: FnOnce(&mut EngineState) + Unpin> Future for Step<'_, F> {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        match self.begin.take() {
            Some(begin) => {
                begin(&mut self.core.state.borrow_mut());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}

impl Core {
    fn step<F: FnOnce(&mut EngineState) + Unpin>(&self, begin: F) -> Step<'_, F> {
        Step { core: self, begin: Some(begin) }
    }

    async fn op(&self, word: Word, op: Op) -> u64 {
        let id = self.id;
        self.step(move |s| s.memory.begin(&mut s.events, id, word, op)).await;
        self.state.borrow().memory.result(id)
    }

    /// Reads.
    pub async fn load(&self, word: Word) -> u64 {
        self.op(word, Op::Load).await
    }

    /// Reads many words, some at once, as out-of-order processors do with independent loads.
    pub async fn scan(&self, words: &[Word]) {
        // Line fill buffers are about ten; a loop with a branch in it keeps some of them busy.
        const AT_ONCE: usize = 6;
        let id = self.id;
        for some in words.chunks(AT_ONCE) {
            self.step(move |s| s.memory.begin_loads(&mut s.events, id, some)).await;
        }
    }

    /// Writes.
    pub async fn store(&self, word: Word, value: u64) {
        self.op(word, Op::Store(value)).await;
    }

    /// Adds (two's complement, so a negative number subtracts); the value before.
    pub async fn add(&self, word: Word, by: i64) -> u64 {
        self.op(word, Op::Add(by as u64)).await
    }

    /// Sets bits; the value before.
    pub async fn or(&self, word: Word, bits: u64) -> u64 {
        self.op(word, Op::Or(bits)).await
    }

    /// Clears all bits but these; the value before.
    pub async fn and(&self, word: Word, bits: u64) -> u64 {
        self.op(word, Op::And(bits)).await
    }

    /// Exchanges; the value before.
    pub async fn swap(&self, word: Word, value: u64) -> u64 {
        self.op(word, Op::Swap(value)).await
    }

    /// Compares and swaps: the value before, as an error when it was another one.
    pub async fn cas(&self, word: Word, expected: u64, new: u64) -> Result<u64, u64> {
        let before = self.op(word, Op::Cas(expected, new)).await;
        if before == expected { Ok(before) } else { Err(before) }
    }

    /// Works on its own for so many nanoseconds.
    pub async fn work(&self, ns: f64) {
        let id = self.id;
        self.step(move |s| {
            let takes = ps(ns * s.cpus[id].slowdown);
            s.events.push(takes, Event::Resume(id));
        })
        .await;
    }

    /// Works for about so many nanoseconds: half to one and a half times that.
    pub async fn work_about(&self, ns: f64) {
        let part = self.random(1 << 20) as f64 / f64::from(1 << 20);
        self.work(ns * (0.5 + part)).await;
    }

    /// Says that it has been in the waiting loop of a spin lock since then.
    pub fn spun_since(&self, began: Time) {
        let mut state = self.state.borrow_mut();
        let time = state.events.now() - began;
        state.cpus[self.id].spinning += time;
    }

    /// Waits without using anything.
    pub async fn sleep(&self, ns: f64) {
        let id = self.id;
        self.step(move |s| s.events.push(ps(ns), Event::Resume(id))).await;
    }

    /// Pauses in a spin loop so many times.
    pub async fn pause(&self, times: u32) {
        let ns = self.machine(|m| m.costs.pause);
        self.sleep(ns * f64::from(times)).await;
    }

    /// Reads until the value is as wanted, spinning on its own copy of the line meanwhile. None:
    /// that took longer than `patience` nanoseconds.
    pub async fn until(
        &self,
        word: Word,
        wanted: impl Fn(u64) -> bool,
        patience: Option<f64>,
    ) -> Option<u64> {
        let deadline = patience.map(|ns| self.now() + ps(ns));
        loop {
            let value = self.load(word).await;
            if wanted(value) {
                return Some(value);
            }
            let left = deadline.map(|at| at.saturating_sub(self.now()));
            if left == Some(0) {
                return None;
            }
            let id = self.id;
            self.step(move |s| s.memory.watch(&mut s.events, id, word, left)).await;
        }
    }

    /// Sleeps in the kernel until somebody calls [`Core::unpark`], which may have been before.
    pub async fn park(&self) {
        let id = self.id;
        self.step(move |s| {
            if std::mem::take(&mut s.cpus[id].token) {
                s.events.push(ps(s.machine.costs.hit), Event::Resume(id));
            } else {
                s.cpus[id].parked = Some(s.events.now());
            }
        })
        .await;
    }

    /// Wakes another processor's program.
    pub async fn unpark(&self, other: usize) {
        let id = self.id;
        self.step(move |s| {
            let costs = &s.machine.costs;
            let now = s.events.now();
            match s.cpus[other].parked.take() {
                None => {
                    s.cpus[other].token = true;
                    s.events.push(ps(costs.hit), Event::Resume(id));
                }
                Some(since) => {
                    // It must be asleep before it can be woken.
                    let asleep = (since + ps(costs.park)).max(now);
                    s.events.push(asleep - now + ps(costs.wake), Event::Resume(other));
                    s.events.push(ps(costs.unpark), Event::Resume(id));
                }
            }
        })
        .await;
    }

    /// This operation is an exclusive one: it is counted apart, too.
    pub fn exclusive(&self) {
        self.state.borrow_mut().cpus[self.id].exclusive = true;
    }

    /// A random number below `below`.
    pub fn random(&self, below: u64) -> u64 {
        // The multiply-shift keeps it even enough for what it is used for.
        let drawn = self.state.borrow_mut().cpus[self.id].random.next_u64();
        ((u128::from(drawn) * u128::from(below)) >> 64) as u64
    }

    /// Something about the machine.
    pub fn machine<R>(&self, of: impl FnOnce(&Machine) -> R) -> R {
        of(&self.state.borrow().machine)
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.state.borrow().events.now()
    }

    fn begin_operation(&self) {
        let mut state = self.state.borrow_mut();
        let now = state.events.now();
        let cpu = &mut state.cpus[self.id];
        (cpu.began, cpu.exclusive) = (now, false);
    }

    fn end_operation(&self) {
        let mut state = self.state.borrow_mut();
        let now = state.events.now();
        state.ended += 1;
        let cpu = &mut state.cpus[self.id];
        let time = now - cpu.began;
        cpu.tally.add(time);
        if cpu.exclusive {
            cpu.exclusive_tally.add(time);
        }
    }
}

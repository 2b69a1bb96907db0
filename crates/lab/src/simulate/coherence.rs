//! Cache lines, who has them, and who gets them next: MESI with a directory entry for each line.
//!
//! ```text
//!   program ── load, store, atomic ──► has the line? ── yes ─► done after hit or rmw
//!                                          │ no
//!                                          ▼
//!                    the line's queue ──► Serve ──────────────► Grant ──► the operation takes
//!                    (first come,         others lose it;       owner      effect, and is done
//!                     first served)       transfer begins       or sharer  after hit or rmw
//! ```
//!
//! * A line is **modified** or **exclusive** in one cache (`owner`, `dirty`), or **shared** by some
//!   (`sharers`), or in none (then it comes from memory).
//! * One transfer from an owner, or one invalidation, at a time: the others queue at the directory.
//!   The transfer costs what the distance between the two processors says; an invalidation as much
//!   as the farthest of those who lose their copy.
//! * Reads of a line that others share overlap: each keeps the directory busy for `directory` only.
//! * An owner's operation that has begun is finished before the line leaves, and a line that was got
//!   for writing stays for a time drawn evenly from 0 to twice `residency`. When that is over, the
//!   first in the queue is served before the owner's next operation. (So a failed compare-and-swap
//!   is often repeated before the line is gone, and a short section under a spin lock is often, but
//!   not always, through before the waiting ones take the line away.)
//! * In the part `near_first` of all hand-overs the line goes to the nearest of those who wait instead.
//! * An operation takes effect in one moment: when it hits, or when its line arrives. So memory is
//!   sequentially consistent.

use std::collections::VecDeque;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::events::{Event, Queue};
use super::machine::{CpuSet, Machine, Time, Topology, ps};

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineId(u32);

/// A word of memory, on some line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Word(u32);

/// What is done to a word. All but `Load` want the line alone; all return the value before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// Reads.
    Load,
    /// Writes, without being atomic with the read.
    Store(u64),
    /// Adds, wrapping.
    Add(u64),
    /// Sets bits.
    Or(u64),
    /// Clears the other bits.
    And(u64),
    /// Exchanges.
    Swap(u64),
    /// Writes the second if the first is there.
    Cas(u64, u64),
}

impl Op {
    fn writes(self) -> bool {
        self != Op::Load
    }

    fn apply(self, value: u64) -> u64 {
        match self {
            Op::Load => value,
            Op::Store(new) | Op::Swap(new) => new,
            Op::Add(by) => value.wrapping_add(by),
            Op::Or(bits) => value | bits,
            Op::And(bits) => value & bits,
            Op::Cas(expected, new) => {
                if value == expected {
                    new
                } else {
                    value
                }
            }
        }
    }
}

/// An operation that waits for its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    cpu: usize,
    word: Word,
    op: Op,
    /// Served beside other reads of a shared line.
    overlaps: bool,
}

#[derive(Default)]
struct Line {
    owner: Option<usize>,
    dirty: bool,
    sharers: CpuSet,
    queue: VecDeque<Request>,
    /// A transfer that lets no other begin is under way.
    in_transit: bool,
    reads_in_flight: u32,
    /// When the queue's first is to be served, once that is settled.
    due: Option<Time>,
    /// Until then nobody is served: the owner's operation runs, or the directory is busy.
    busy_until: Time,
    /// Processors that spin on their copy, with the number of that watch.
    watchers: Vec<(usize, u64)>,
}

impl Line {
    fn has(&self, cpu: usize) -> bool {
        self.owner == Some(cpu) || self.sharers.contains(cpu)
    }

    /// Everybody with a copy.
    fn holders(&self) -> CpuSet {
        let mut all = self.sharers;
        if let Some(owner) = self.owner {
            all.insert(owner);
        }
        all
    }
}

/// How long things take on the machine, picoseconds.
struct Durations {
    hit: Time,
    rmw: Time,
    memory: Time,
    directory: Time,
    residency: Time,
    pause: Time,
}

/// All lines and words.
pub struct Memory {
    topology: Topology,
    durations: Durations,
    random: Xoshiro256PlusPlus,
    /// As of [`super::machine::Costs::near_first`], of 2^32.
    near_first: u64,
    lines: Vec<Line>,
    words: Vec<(LineId, u64)>,
    results: Vec<u64>,
    /// Loads that a processor has under way beside each other, less the last one.
    beside: Vec<u32>,
    watches: u64,
    transfers: u64,
}

impl Memory {
    /// Nothing yet, for the first `cpus` logical processors of a machine.
    pub fn new(machine: &Machine, cpus: usize, seed: u64) -> Memory {
        let costs = &machine.costs;
        Memory {
            topology: Topology::new(machine, cpus),
            durations: Durations {
                hit: ps(costs.hit),
                rmw: ps(costs.rmw),
                memory: ps(costs.memory),
                directory: ps(costs.directory),
                residency: ps(costs.residency),
                pause: ps(costs.pause),
            },
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            near_first: (costs.near_first * f64::from(u32::MAX)) as u64,
            lines: Vec::new(),
            words: Vec::new(),
            results: vec![0; cpus],
            beside: vec![0; cpus],
            watches: 0,
            transfers: 0,
        }
    }

    /// A new line.
    pub fn line(&mut self) -> LineId {
        self.lines.push(Line::default());
        LineId(self.lines.len() as u32 - 1)
    }

    /// A new word on a line.
    pub fn word(&mut self, line: LineId, value: u64) -> Word {
        self.words.push((line, value));
        Word(self.words.len() as u32 - 1)
    }

    /// Transfers and invalidations since the last call.
    pub fn take_transfers(&mut self) -> u64 {
        std::mem::take(&mut self.transfers)
    }

    /// What the processor's last operation found.
    pub fn result(&self, cpu: usize) -> u64 {
        self.results[cpu]
    }

    /// A processor begins an operation; `Resume` will say that it is done.
    pub fn begin(&mut self, events: &mut Queue, cpu: usize, word: Word, op: Op) {
        let id = self.words[word.0 as usize].0;
        let line = &mut self.lines[id.0 as usize];
        let due = line.due.is_some_and(|due| due <= events.now());
        let leaves = due && line.queue.front().is_some_and(|r| r.op.writes());
        let hits =
            if op.writes() { line.owner == Some(cpu) && !due } else { line.has(cpu) && !leaves };
        if hits {
            self.perform(events, cpu, word, op, 0);
        } else {
            line.queue.push_back(Request { cpu, word, op, overlaps: false });
            self.schedule(events, id);
        }
    }

    /// A processor begins loads of some words at once; `Resume` will say that all are done.
    pub fn begin_loads(&mut self, events: &mut Queue, cpu: usize, words: &[Word]) {
        self.beside[cpu] = words.len() as u32 - 1;
        for word in words {
            self.begin(events, cpu, *word, Op::Load);
        }
    }

    /// The operation takes effect now; the line stays at least for `residency`.
    fn perform(&mut self, events: &mut Queue, cpu: usize, word: Word, op: Op, residency: Time) {
        let (id, value) = &mut self.words[word.0 as usize];
        self.results[cpu] = *value;
        *value = op.apply(*value);
        let takes = match op {
            Op::Load | Op::Store(_) => self.durations.hit,
            _ => self.durations.rmw,
        };
        if op.writes() {
            let line = &mut self.lines[id.0 as usize];
            line.dirty = true;
            line.busy_until = line.busy_until.max(events.now() + takes.max(residency));
        }
        match &mut self.beside[cpu] {
            0 => events.push(takes, Event::Resume(cpu)),
            others => *others -= 1,
        }
    }

    /// Has the nearest to the holder come first, sometimes.
    fn prefer_near(&mut self, id: LineId) {
        let line = &mut self.lines[id.0 as usize];
        let Some(owner) = line.owner.filter(|_| line.due.is_none() && line.queue.len() > 1) else {
            return;
        };
        if self.random.next_u64() >> 32 >= self.near_first {
            return;
        }
        let level = |at: &usize| self.topology.level(owner, line.queue[*at].cpu);
        let nearest = (0..line.queue.len()).min_by_key(level);
        if let Some(request) = nearest.and_then(|at| line.queue.remove(at)) {
            line.queue.push_front(request);
        }
    }

    /// Settles when the queue's first is served, if it can be.
    fn schedule(&mut self, events: &mut Queue, id: LineId) {
        if self.near_first > 0 {
            self.prefer_near(id);
        }
        let line = &mut self.lines[id.0 as usize];
        let Some(first) = line.queue.front() else { return };
        let waits_for_reads = first.op.writes() && line.reads_in_flight > 0;
        if line.due.is_some() || line.in_transit || waits_for_reads {
            return;
        }
        let at = line.busy_until.max(events.now());
        line.due = Some(at);
        events.push(at - events.now(), Event::Serve(id));
    }

    /// Serves the queue's first.
    pub fn serve(&mut self, events: &mut Queue, id: LineId) {
        let line = &mut self.lines[id.0 as usize];
        if line.busy_until > events.now() {
            // The owner has begun another operation meanwhile. It begins no further one.
            events.push(line.busy_until - events.now(), Event::Serve(id));
            return;
        }
        line.due = None;
        let Some(mut request) = line.queue.pop_front() else { return };
        let after = if request.op.writes() {
            self.invalidate(events, id, request.cpu)
        } else {
            self.share(events, id, &mut request)
        };
        events.push(after, Event::Grant(id, request));
        self.schedule(events, id);
    }

    /// Everybody but `cpu` loses the line; how long until it is there.
    fn invalidate(&mut self, events: &mut Queue, id: LineId, cpu: usize) -> Time {
        let line = &mut self.lines[id.0 as usize];
        let holders = line.holders();
        let takes = if holders.is_empty() {
            self.durations.memory
        } else {
            self.topology.farthest(cpu, &holders)
        };
        for (watcher, _) in line.watchers.drain(..) {
            events.push(self.durations.pause, Event::Resume(watcher));
        }
        (line.owner, line.dirty, line.sharers) = (None, false, CpuSet::default());
        line.in_transit = true;
        takes
    }

    /// The line gets one more reader; how long until it is there.
    fn share(&mut self, events: &Queue, id: LineId, request: &mut Request) -> Time {
        let line = &mut self.lines[id.0 as usize];
        let holders = line.holders();
        if holders.contains(request.cpu) {
            line.in_transit = true;
            return 0;
        }
        if let Some(owner) = line.owner.take() {
            line.dirty = false;
            line.sharers.insert(owner);
        } else if !line.sharers.is_empty() {
            request.overlaps = true;
            line.reads_in_flight += 1;
            line.busy_until = events.now() + self.durations.directory;
            return self.topology.nearest(request.cpu, &holders);
        }
        line.in_transit = true;
        if holders.is_empty() {
            self.durations.memory
        } else {
            self.topology.nearest(request.cpu, &holders)
        }
    }

    /// The line arrives.
    pub fn grant(&mut self, events: &mut Queue, id: LineId, request: Request) {
        let Request { cpu, word, op, overlaps } = request;
        self.transfers += 1;
        let line = &mut self.lines[id.0 as usize];
        if overlaps {
            line.reads_in_flight -= 1;
        } else {
            line.in_transit = false;
        }
        if op.writes() || line.holders().is_empty() {
            line.owner = Some(cpu);
        } else if line.owner != Some(cpu) {
            line.sharers.insert(cpu);
        }
        let residency = match self.durations.residency {
            mean if mean > 0 && op.writes() => self.random.next_u64() % (2 * mean),
            _ => 0,
        };
        self.perform(events, cpu, word, op, residency);
        self.schedule(events, id);
    }

    /// A processor spins on its copy until it loses it, at most for `patience`; `Resume` follows.
    pub fn watch(&mut self, events: &mut Queue, cpu: usize, word: Word, patience: Option<Time>) {
        let line = &mut self.lines[self.words[word.0 as usize].0.0 as usize];
        if !line.has(cpu) {
            events.push(self.durations.pause, Event::Resume(cpu));
            return;
        }
        self.watches += 1;
        line.watchers.push((cpu, self.watches));
        if let Some(patience) = patience {
            // The word is remembered so that the alarm finds the line.
            self.results[cpu] = u64::from(word.0);
            events.push(patience.max(self.durations.pause), Event::Alarm(cpu, self.watches));
        }
    }

    /// The processor's patience is over, unless it has lost the line since.
    pub fn alarm(&mut self, events: &mut Queue, cpu: usize, watch: u64) {
        let word = self.results[cpu] as usize;
        let Some((id, _)) = self.words.get(word) else { return };
        let line = &mut self.lines[id.0 as usize];
        if let Some(at) = line.watchers.iter().position(|w| *w == (cpu, watch)) {
            line.watchers.swap_remove(at);
            events.push(0, Event::Resume(cpu));
        }
    }

    /// Checks what must hold for every line at every moment.
    ///
    /// # Panics
    /// It does not.
    pub fn check(&self) {
        for (i, line) in self.lines.iter().enumerate() {
            let alone = line.owner.is_some();
            assert!(!alone || line.sharers.is_empty(), "line {i}: an owner beside sharers");
            assert!(!line.dirty || alone, "line {i}: modified, but nobody has it alone");
            assert!(line.reads_in_flight == 0 || !alone, "line {i}: an owner during shared reads");
            assert!(
                line.reads_in_flight == 0 || !line.in_transit,
                "line {i}: a transfer that should be alone overlaps with reads"
            );
            let watched = line.watchers.iter().all(|(cpu, _)| line.has(*cpu));
            assert!(watched, "line {i}: somebody spins on a copy that it does not have");
        }
    }
}

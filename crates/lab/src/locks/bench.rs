//! One slice: some threads, one primitive, some milliseconds.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

use super::Plan;
use crate::results::LockPoint;
use crate::{Error, Result};

/// Something that threads do again and again.
pub trait Operation: Send + Sync {
    /// One operation; `entered` is called once it has what it had to wait for.
    fn once(&self, me: &mut Me, entered: impl FnOnce());
}

/// An [`Operation`] whose loops are compiled for it, behind one pointer.
pub trait Primitive: Send + Sync {
    /// `count` operations.
    fn batch(&self, me: &mut Me, count: u32);
    /// One operation; how long it waited.
    fn timed(&self, me: &mut Me) -> Duration;
}

impl<O: Operation> Primitive for O {
    fn batch(&self, me: &mut Me, count: u32) {
        for _ in 0..count {
            self.once(me, || ());
        }
    }

    fn timed(&self, me: &mut Me) -> Duration {
        let (began, mut waited) = (Instant::now(), Duration::ZERO);
        self.once(me, || waited = began.elapsed());
        waited
    }
}

/// A primitive with its parameters at one number of threads.
pub struct Case {
    /// Its name in the results.
    pub name: &'static str,
    /// What it does.
    pub primitive: Box<dyn Primitive>,
    /// Threads at once.
    pub threads: u32,
    /// Exclusive operations of a hundred.
    pub writers: u32,
    /// How long what was acquired is kept, nanoseconds.
    pub hold_ns: u32,
    /// The server's `lwlock_shared_limit` while it runs.
    pub shared_limit: Option<i64>,
}

/// What a thread has of its own.
pub struct Me {
    /// From 0.
    pub thread: usize,
    random: u64,
    writers: u64,
    hold_loops: u64,
}

impl Me {
    fn new(thread: usize, case: &Case, hold: Hold) -> Me {
        Me {
            thread,
            // Any odd number: threads draw different sequences.
            random: 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(2 * thread as u64 + 1),
            writers: u64::from(case.writers),
            hold_loops: (f64::from(case.hold_ns) / hold.ns_per_loop) as u64,
        }
    }

    /// Whether this operation is an exclusive one.
    #[inline]
    pub fn writes(&mut self) -> bool {
        // Marsaglia's xorshift: a few instructions, good enough to mix.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.writers != 0 && self.random % 100 < self.writers
    }

    /// Works for the hold time.
    #[inline]
    pub fn hold(&self) {
        work(self.hold_loops);
    }
}

fn work(loops: u64) {
    let mut value = 1u64;
    for _ in 0..loops {
        value = black_box(value).wrapping_mul(3);
    }
    black_box(value);
}

/// How long one loop of work takes here.
#[derive(Clone, Copy)]
pub struct Hold {
    ns_per_loop: f64,
}

impl Hold {
    /// The shortest of some tries: the one that nobody disturbed.
    pub fn calibrate() -> Hold {
        const LOOPS: u64 = 100_000;
        let time = |_| {
            let began = Instant::now();
            work(LOOPS);
            began.elapsed()
        };
        let shortest = (0..10).map(time).min().unwrap_or_default();
        Hold { ns_per_loop: (shortest.as_nanos() as f64 / LOOPS as f64).max(0.01) }
    }
}

/// Keeps the calling thread on one of the processors that it may use.
pub fn pin(thread: usize) -> Result<()> {
    let failed = |e| Error::new(format!("could not pin a thread: {e}"));
    let allowed = sched_getaffinity(Pid::from_raw(0)).map_err(failed)?;
    let usable: Vec<usize> =
        (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap_or(false)).collect();
    let Some(cpu) = usable.get(thread % usable.len().max(1)) else { return Ok(()) };
    let mut one = CpuSet::new();
    one.set(*cpu).map_err(failed)?;
    sched_setaffinity(Pid::from_raw(0), &one).map_err(failed)
}

/// What one slice gave.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// Operations of the half without clocks.
    operations: u64,
    /// How long it took, mean over the threads.
    seconds: f64,
    /// Time of one operation as its thread sees it.
    mean_ns: f64,
    /// Processor time of one operation.
    cpu_ns: f64,
    /// The slowest thread's operations over the fastest's.
    evenness: f64,
    /// Mean and longest wait of the timed half.
    wait_mean_ns: f64,
    wait_longest_ns: u64,
}

/// One thread's part of a slice.
#[derive(Default)]
struct Part {
    operations: u64,
    seconds: f64,
    cpu: Duration,
    timed: u64,
    waited: Duration,
    longest: Duration,
}

const BATCH: u32 = 64;

/// Runs one slice.
///
/// # Errors
/// A thread can't be pinned.
pub fn slice(case: &Case, plan: &Plan, hold: Hold) -> Result<Slice> {
    if let Some(limit) = case.shared_limit {
        super::rwlocks::set_shared_limit(limit);
    }
    let stop = AtomicBool::new(false);
    let threads = case.threads as usize;
    let (start, half) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    let parts: Vec<Result<Part>> = std::thread::scope(|scope| {
        let run = |thread| {
            let (stop, start, half) = (&stop, &start, &half);
            move || {
                let pinned = if plan.pin { pin(thread) } else { Ok(()) };
                let mut me = Me::new(thread, case, hold);
                let mut part = Part::default();
                start.wait();
                untimed(case, &mut me, stop, &mut part);
                half.wait();
                start.wait();
                timed(case, &mut me, stop, &mut part);
                pinned.map(|()| part)
            }
        };
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(run(thread))).collect();
        start.wait();
        std::thread::sleep(plan.slice);
        stop.store(true, Ordering::Relaxed);
        half.wait();
        stop.store(false, Ordering::Relaxed);
        start.wait();
        std::thread::sleep(plan.slice);
        stop.store(true, Ordering::Relaxed);
        handles.into_iter().map(|h| h.join().expect("no primitive panics")).collect()
    });
    Ok(sum(&parts.into_iter().collect::<Result<Vec<Part>>>()?))
}

fn untimed(case: &Case, me: &mut Me, stop: &AtomicBool, part: &mut Part) {
    let (began, cpu) = (Instant::now(), thread_cpu());
    loop {
        case.primitive.batch(me, BATCH);
        part.operations += u64::from(BATCH);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    part.seconds = began.elapsed().as_secs_f64();
    part.cpu = thread_cpu().saturating_sub(cpu);
}

/// Processor time that the calling thread has used.
fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

fn timed(case: &Case, me: &mut Me, stop: &AtomicBool, part: &mut Part) {
    loop {
        let waited = case.primitive.timed(me);
        part.timed += 1;
        part.waited += waited;
        part.longest = part.longest.max(waited);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
}

fn sum(parts: &[Part]) -> Slice {
    let operations: u64 = parts.iter().map(|p| p.operations).sum();
    let thread_seconds: f64 = parts.iter().map(|p| p.seconds).sum();
    let cpu: f64 = parts.iter().map(|p| p.cpu.as_nanos() as f64).sum();
    let timed: u64 = parts.iter().map(|p| p.timed).sum();
    let waited: f64 = parts.iter().map(|p| p.waited.as_nanos() as f64).sum();
    let rate = |p: &Part| p.operations as f64 / p.seconds.max(1e-9);
    let slowest = parts.iter().map(rate).fold(f64::INFINITY, f64::min);
    let fastest = parts.iter().map(rate).fold(0.0, f64::max);
    Slice {
        operations,
        seconds: thread_seconds / parts.len() as f64,
        mean_ns: thread_seconds * 1e9 / operations.max(1) as f64,
        cpu_ns: cpu / operations.max(1) as f64,
        evenness: slowest / fastest,
        wait_mean_ns: waited / timed.max(1) as f64,
        wait_longest_ns: parts.iter().map(|p| p.longest.as_nanos() as u64).max().unwrap_or(0),
    }
}

/// The value below which a part of the sorted values lies, the nearest rank.
pub fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (part * (values.len() as f64 - 1.0)).round() as usize;
    values.get(rank).copied().unwrap_or(f64::NAN)
}

/// The rounds of one case as one point: medians, and the longest wait of all.
pub fn point(case: &Case, slices: &[Slice]) -> LockPoint {
    let by = |of: fn(&Slice) -> f64, part| {
        quantile(&mut slices.iter().map(of).collect::<Vec<_>>(), part)
    };
    let mean_ns = by(|s| s.mean_ns, 0.5);
    let median = slices.iter().find(|s| s.mean_ns == mean_ns).cloned().unwrap_or_default();
    LockPoint {
        primitive: case.name.to_owned(),
        parameters: BTreeMap::from([
            ("writers".to_owned(), f64::from(case.writers)),
            ("hold_ns".to_owned(), f64::from(case.hold_ns)),
        ]),
        threads: case.threads,
        operations: median.operations,
        seconds: median.seconds,
        mean_ns,
        cpu_ns: Some(by(|s| s.cpu_ns, 0.5)),
        cpu_quartiles_ns: Some((by(|s| s.cpu_ns, 0.25), by(|s| s.cpu_ns, 0.75))),
        quartiles_ns: (by(|s| s.mean_ns, 0.25), by(|s| s.mean_ns, 0.75)),
        wait_mean_ns: Some(by(|s| s.wait_mean_ns, 0.5)),
        longest_ns: slices.iter().map(|s| s.wait_longest_ns).max().unwrap_or(0),
        evenness: Some(by(|s| s.evenness, 0.5)),
        hand_over_ns: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_nearest_rank() {
        let mut values = [3.0, 1.0, 2.0, 5.0, 4.0];
        assert_eq!(quantile(&mut values, 0.5), 3.0);
        assert_eq!(quantile(&mut values, 0.25), 2.0);
        assert_eq!(quantile(&mut values, 1.0), 5.0);
        assert!(quantile(&mut [], 0.5).is_nan());
    }

    #[test]
    fn parts_are_added_up() {
        let part = |operations, seconds| Part {
            operations,
            seconds,
            cpu: Duration::from_millis(500),
            timed: 10,
            waited: Duration::from_nanos(operations),
            longest: Duration::from_nanos(operations),
        };
        let slice = sum(&[part(1000, 1.0), part(3000, 1.0)]);
        assert_eq!(slice.operations, 4000);
        assert_eq!((slice.mean_ns, slice.cpu_ns), (500_000.0, 250_000.0));
        assert!((slice.evenness - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((slice.wait_mean_ns, slice.wait_longest_ns), (200.0, 3000));
    }
}

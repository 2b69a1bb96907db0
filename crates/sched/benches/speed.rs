//! Costs of the scheduler's basic steps, each beside something that everybody knows the price of.
//! `cargo bench -p sched`.

use std::hint::black_box;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use base::WaitEvent;
use sched::{
    LwLock, Mutex, Readiness, Source, SpinLock, Task, TaskRef, Workers, check_interrupts,
    check_stack, current, on_native_stack, park, yield_now,
};

const EVENT: WaitEvent = WaitEvent::LWLockOther;

/// The processor time of this thread, which a busy machine does not inflate as it does the clock.
fn thread_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of processor time for one of `n` rounds.
fn each(n: u64, mut f: impl FnMut()) -> f64 {
    let start = thread_ns();
    (0..n).for_each(|_| f());
    (thread_ns() - start) as f64 / n as f64
}

/// Nanoseconds by the clock for one of `n` rounds.
fn each_by_clock(n: u64, mut f: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..n).for_each(|_| f());
    start.elapsed().as_nanos() as f64 / n as f64
}

fn print(name: &str, ns: f64, baseline: f64) {
    println!("{name:<44} {ns:>9.1} ns  {:>7.1} x an atomic add", ns / baseline);
}

/// Runs a closure on a coroutine, once.
struct Once<F>(UnixStream, TaskRef, F);

impl<F: Fn() + Send + Sync + 'static> Source for Once<F> {
    fn task(&self) -> &TaskRef {
        &self.1
    }
    fn run(&self, ready: Readiness) -> bool {
        if ready.hangup {
            return false;
        }
        (self.2)();
        let _ = (&self.0).read(&mut [0; 64]);
        (&self.0).write_all(b"x").is_ok()
    }
}

fn connect(workers: &Workers, f: impl Fn() + Send + Sync + 'static) -> UnixStream {
    let (client, socket) = UnixStream::pair().expect("a socket pair");
    socket.set_nonblocking(true).expect("a socket");
    let fd = socket.as_raw_fd();
    workers.add(fd, Arc::new(Once(socket, Task::new("bench"), f))).expect("a worker");
    client
}

fn ask(client: &mut UnixStream) {
    client.write_all(b"x").expect("an open socket");
    client.read_exact(&mut [0]).expect("an answer");
}

/// Measures inside a coroutine.
fn inside(f: impl Fn() -> f64 + Send + Sync + 'static) -> f64 {
    let workers = Workers::start(1).expect("a worker");
    let result = Arc::new(AtomicU64::new(0));
    let out = Arc::clone(&result);
    let mut client = connect(&workers, move || out.store(f().to_bits(), Ordering::SeqCst));
    ask(&mut client);
    f64::from_bits(result.load(Ordering::SeqCst))
}

/// Two sessions of one worker wake each other in turn: a park, a switch out, a switch in.
fn ping_pong(rounds: u64) -> f64 {
    let workers = Workers::start(1).expect("a worker");
    let partner = Arc::new(SpinLock::new(None::<TaskRef>));
    let result = Arc::new(AtomicU64::new(0));
    let (there, out) = (Arc::clone(&partner), Arc::clone(&result));
    let mut first = connect(&workers, move || {
        *there.lock() = Some(current());
        park(EVENT, None);
        let Some(other) = there.lock().take() else { return };
        let ns = each(rounds, || {
            other.unpark();
            park(EVENT, None);
        });
        out.store(ns.to_bits(), Ordering::SeqCst);
        other.interrupt(sched::Interrupt::Cancel);
    });
    first.write_all(b"x").expect("an open socket");
    while partner.lock().is_none() {
        std::thread::yield_now();
    }
    let mut second = connect(&workers, move || {
        let Some(other) = partner.lock().replace(current()) else { return };
        loop {
            other.unpark();
            if park(EVENT, None) == sched::Wake::Interrupted {
                return;
            }
        }
    });
    ask(&mut second);
    f64::from_bits(result.load(Ordering::SeqCst)) / 2.0
}

fn echo_round(count: usize, workers: usize) -> f64 {
    let workers = Workers::start(workers).expect("workers");
    let mut clients: Vec<_> = (0..count).map(|_| connect(&workers, || ())).collect();
    let rounds = 200_000 / count as u64;
    each_by_clock(rounds, || {
        clients.iter_mut().for_each(|c| c.write_all(b"x").expect("an open socket"));
        clients.iter_mut().for_each(|c| c.read_exact(&mut [0]).expect("an answer"));
    }) / count as f64
}

fn plain_echo() -> f64 {
    let (mut client, mut server) = UnixStream::pair().expect("a socket pair");
    let thread = std::thread::spawn(move || {
        while server.read_exact(&mut [0]).is_ok() && server.write_all(b"x").is_ok() {}
    });
    let ns = each_by_clock(100_000, || ask(&mut client));
    drop(client);
    thread.join().expect("the thread ends");
    ns
}

fn main() {
    let n = 10_000_000;
    let counter = AtomicU64::new(0);
    let add = each(n, || {
        black_box(&counter).fetch_add(1, Ordering::SeqCst);
    });
    print("atomic add", add, add);
    print("clock", each(n, || _ = black_box(sched::clock::now_ns())), add);
    print("check_interrupts, thread", each(n, || check_interrupts().expect("none")), add);
    print("check_stack, thread", each(n, || check_stack().expect("room")), add);
    print("current", each(n, || drop(black_box(current()))), add);
    let spin = SpinLock::new(0u64);
    print("SpinLock", each(n, || *black_box(&spin).lock() += 1), add);
    let mutex = Mutex::new(EVENT, 0u64);
    print("Mutex", each(n, || *black_box(&mutex).lock() += 1), add);
    let std_mutex = std::sync::Mutex::new(0u64);
    print("std Mutex", each(n, || *black_box(&std_mutex).lock().expect("sound") += 1), add);
    let lock = LwLock::new(EVENT, 0u64);
    print("LwLock shared", each(n, || _ = black_box(*black_box(&lock).read())), add);
    print("LwLock exclusive", each(n, || *black_box(&lock).write() += 1), add);
    let token = || {
        current().unpark();
        park(EVENT, None);
    };
    print("unpark, then park", each(n, token), add);
    let m = 2_000_000;
    let checks = inside(move || each(m, || check_interrupts().expect("none")));
    print("check_interrupts, coroutine", checks, add);
    print("on_native_stack", inside(move || each(m, || on_native_stack(|| ()))), add);
    print("unpark, park and switch to the other", ping_pong(m), add);
    print("yield_now, alone (looks at epoll)", inside(move || each(m / 10, yield_now)), add);
    let plain = plain_echo();
    println!("\nechoes over a Unix socket, microseconds each");
    println!("two blocking threads                 {:>6.2}", plain / 1000.0);
    for (clients, workers) in [(1, 1), (10, 1), (100, 1), (100, 2), (1000, 2)] {
        let ns = echo_round(clients, workers);
        println!("{clients:>4} clients, {workers} workers              {:>6.2}", ns / 1000.0);
    }
}

//! Workers that are held: their other sessions go on, with another thread, and the run that held one goes on, too. Alone
//! in its binary: the limit is the process's.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use base::WaitEvent;
use base::settings::{Settings, Value, publish_live, setting};
use sched::{
    Interrupt, LwLock, Readiness, Task, Wake, check_interrupts, check_interrupts_now, current, park,
};
use support::{Echo, Server, ask, echo};

mod support;

const EVENT: WaitEvent = WaitEvent::ActivityThreadMain;

/// Has workers replaced after this time. One test at a time.
fn limit(ms: i64) -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut settings = Settings::default();
    settings.set(setting::WORKER_HOLD_LIMIT, Value::Int(ms));
    publish_live(&settings);
    one
}

/// The work of a run between its question and its answer.
type Work = Arc<dyn Fn() + Send + Sync>;

fn connect(server: &Server, work: Work) -> (UnixStream, sched::TaskRef) {
    server.connect(move |source: &Echo, ready: Readiness| {
        let mut buffer = [0; 1];
        match (&source.socket).read(&mut buffer) {
            Ok(0) => false,
            Ok(_) => {
                work();
                (&source.socket).write_all(&buffer).is_ok()
            }
            Err(_) => !ready.hangup,
        }
    })
}

/// Keeps the thread until `over`, and hears nobody.
fn hold(over: &AtomicBool) {
    while !over.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A switch that a run waits for without a visit.
fn switch() -> (Arc<AtomicBool>, Arc<AtomicBool>) {
    Default::default()
}

fn await_true(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
}

fn replacements(server: &Server) -> u64 {
    server.workers.states().iter().map(|s| s.replacements).sum()
}

/// A client whose run holds the thread; it does so until the second flag is set, and then does the rest.
fn holder(
    server: &Server,
    rest: impl Fn() + Send + Sync + 'static,
) -> (UnixStream, Arc<AtomicBool>, sched::TaskRef) {
    let (began, over) = switch();
    let flags = (began.clone(), over.clone());
    let (mut client, task) = connect(
        server,
        Arc::new(move || {
            flags.0.store(true, Ordering::SeqCst);
            hold(&flags.1);
            rest();
        }),
    );
    client.write_all(b"h").unwrap();
    await_true(&began);
    (client, over, task)
}

fn finish(client: &mut UnixStream, over: &AtomicBool) {
    over.store(true, Ordering::SeqCst);
    let mut answer = [0];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(answer, *b"h");
}

#[test]
fn sessions_of_a_held_worker_go_on() {
    let _one = limit(20);
    let server = Server::new(1);
    let mut others: Vec<_> = (0..10).map(|_| server.connect(echo).0).collect();
    others.iter_mut().for_each(|other| ask(other, b"before"));
    let (mut client, over, _) = holder(&server, || ());
    others.iter_mut().for_each(|other| ask(other, b"while it is held"));
    let mut late = server.connect(echo).0;
    ask(&mut late, b"one that came meanwhile");
    let states = server.workers.states();
    assert_eq!((states[0].away, states[0].replacements), (1, 1), "{states:?}");
    finish(&mut client, &over);
    others.iter_mut().for_each(|other| ask(other, b"afterwards"));
    client.write_all(b"h").unwrap(); // the flag is set: at once
    client.read_exact(&mut [0]).unwrap();
    drop((others, late, client));
    assert_eq!(server.end(), 12);
}

#[test]
fn several_threads_may_be_held_at_once() {
    let _one = limit(10);
    let server = Server::new(2);
    let mut other = server.connect(echo).0;
    let mut holders: Vec<_> = (0..6).map(|_| holder(&server, || ())).collect();
    ask(&mut other, b"beside six");
    assert!(replacements(&server) >= 5);
    for (client, over, _) in &mut holders {
        finish(client, over);
        ask(&mut other, b"again");
    }
    while server.workers.states().iter().any(|s| s.away > 0) {
        std::thread::yield_now();
    }
    drop((holders, other));
    assert_eq!(server.end(), 7);
}

#[test]
fn suspended_runs_go_on_with_another_thread() {
    let _one = limit(10);
    let server = Server::new(1);
    let threads: Arc<Mutex<Vec<ThreadId>>> = Arc::default();
    let (parked, go) = switch();
    let work: Work = {
        let (parked, go, threads) = (parked.clone(), go.clone(), threads.clone());
        Arc::new(move || {
            threads.lock().unwrap().push(std::thread::current().id());
            parked.store(true, Ordering::SeqCst);
            while !go.load(Ordering::SeqCst) {
                park(EVENT, None);
            }
            threads.lock().unwrap().push(std::thread::current().id());
        })
    };
    let (mut waiter, task) = connect(&server, work);
    waiter.write_all(b"w").unwrap();
    await_true(&parked);
    let (mut client, over, _) = holder(&server, || ());
    go.store(true, Ordering::SeqCst);
    task.unpark();
    waiter.read_exact(&mut [0]).unwrap();
    let seen = threads.lock().unwrap().clone();
    assert!(seen.len() == 2 && seen[0] != seen[1], "{seen:?}");
    finish(&mut client, &over);
    drop((waiter, client));
    assert_eq!(server.end(), 2);
}

#[test]
fn a_run_that_was_away_waits_and_is_interrupted_as_any_other() {
    let _one = limit(10);
    let server = Server::new(1);
    let mut other = server.connect(echo).0;
    let timed_out = || {
        let until = Instant::now() + Duration::from_millis(20);
        while park(EVENT, Some(until)) != Wake::TimedOut {}
    };
    let latch: Arc<LwLock<u32>> = Arc::new(LwLock::new(WaitEvent::LWLockStatistics, 0));
    let theirs = latch.clone();
    let latched = move || {
        let mut count = theirs.write();
        check_interrupts_now().unwrap();
        *count += 1;
    };
    let interrupted = || {
        let error = loop {
            if let Err(error) = check_interrupts() {
                break error;
            }
        };
        assert_eq!(error.code(), Interrupt::Cancel.error().code());
    };
    let works: [(Work, bool); 3] =
        [(Arc::new(timed_out), false), (Arc::new(latched), false), (Arc::new(interrupted), true)];
    for (work, interrupt) in works {
        let (mut client, over, task) = holder(&server, move || work());
        ask(&mut other, b"while it is held");
        if interrupt {
            task.interrupt(Interrupt::Cancel);
        }
        finish(&mut client, &over);
        ask(&mut other, b"afterwards");
    }
    assert_eq!(*latch.read(), 1);
    drop(other);
    assert_eq!(server.end(), 4);
}

#[test]
fn connections_may_end_and_workers_retire_meanwhile() {
    let _one = limit(10);
    let server = Server::new(2);
    let mut other = server.connect(echo).0;
    let (client, over, _) = holder(&server, || ());
    let (second, second_over, _) = holder(&server, || ());
    ask(&mut other, b"beside both");
    server.workers.resize(1).unwrap();
    ask(&mut other, b"beside both, of one");
    drop((client, second));
    over.store(true, Ordering::SeqCst);
    second_over.store(true, Ordering::SeqCst);
    while server.workers.running() != 1 {
        ask(&mut other, b"still");
    }
    drop(other);
    assert_eq!(server.end(), 3);
}

#[test]
fn those_who_want_to_hear_of_it_do() {
    let _one = limit(10);
    let server = Server::new(1);
    let heard: Arc<OnceLock<(usize, u64)>> = Arc::default();
    let theirs = heard.clone();
    server.workers.on_held(Box::new(move |held| {
        assert!(held.time >= Duration::from_millis(10));
        let _ = theirs.set((held.worker, held.task.id()));
    }));
    let (mut client, over, task) = holder(&server, || ());
    while heard.get().is_none() {
        std::thread::yield_now();
    }
    assert_eq!(heard.get(), Some(&(0, task.id())));
    finish(&mut client, &over);
    drop(client);
    assert_eq!(server.end(), 1);
}

#[test]
fn without_a_limit_nobody_is_replaced() {
    let _one = limit(0);
    let server = Server::new(1);
    let (mut client, over, _) = holder(&server, || ());
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(replacements(&server), 0);
    finish(&mut client, &over);
    drop(client);
    assert_eq!(server.end(), 1);
}

/// A number that looks random.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Runs that wait for each other's latch, park with and without an end, and hold their threads, all with values on their
/// stacks that must be there afterwards.
fn mixed(state: u64, latch: &LwLock<u64>, wakers: &Mutex<Vec<sched::TaskRef>>) {
    let mut state = state | 1;
    let stack = [state; 64];
    match next(&mut state) % 5 {
        0 => std::thread::sleep(Duration::from_millis(next(&mut state) % 6)),
        1 => {
            let mut count = latch.write();
            if next(&mut state).is_multiple_of(8) {
                std::thread::sleep(Duration::from_millis(next(&mut state) % 4));
            }
            *count += 1;
        }
        2 => {
            wakers.lock().unwrap().push(current());
            let until = Instant::now() + Duration::from_millis(next(&mut state) % 3);
            std::thread::sleep(Duration::from_millis(next(&mut state) % 4));
            park(EVENT, Some(until));
        }
        3 => (0..2000).for_each(|_| check_interrupts_now().unwrap()),
        _ => {
            let woken = std::mem::take(&mut *wakers.lock().unwrap());
            woken.iter().for_each(|task| task.unpark());
        }
    }
    assert!(std::hint::black_box(stack).iter().all(|word| *word == stack[0]));
}

#[test]
fn nothing_is_lost_under_load() {
    let _one = limit(1);
    let rounds: usize =
        std::env::var("HELD_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    const CLIENTS: usize = 16;
    let server = Server::new(2);
    let latch: Arc<LwLock<u64>> = Arc::new(LwLock::new(WaitEvent::LWLockStatistics, 0));
    let wakers: Arc<Mutex<Vec<Arc<Task>>>> = Arc::default();
    let seed = Arc::new(AtomicUsize::new(1));
    let work: Work = {
        let (latch, wakers) = (latch.clone(), wakers.clone());
        Arc::new(move || {
            let number = seed.fetch_add(1, Ordering::Relaxed) as u64;
            mixed(number.wrapping_mul(0x9e37_79b9_7f4a_7c15), &latch, &wakers);
        })
    };
    let clients: Vec<_> = (0..CLIENTS).map(|_| connect(&server, work.clone()).0).collect();
    std::thread::scope(|scope| {
        for mut client in clients {
            scope.spawn(move || {
                for round in 0..rounds {
                    let question = [round as u8];
                    client.write_all(&question).unwrap();
                    let mut answer = [0];
                    client.read_exact(&mut answer).unwrap();
                    assert_eq!(answer, question);
                }
            });
        }
    });
    assert!(replacements(&server) > 0);
    assert_eq!(server.end(), CLIENTS);
}

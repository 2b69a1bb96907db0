//! Many tasks, many wake-ups: nothing is lost and nothing runs twice at once.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base::WaitEvent;
use sched::{
    Condvar, Interrupt, LwLock, Mutex, Readiness, Source, Task, TaskRef, Workers, check_interrupts,
    current, park, yield_now,
};

const EVENT: WaitEvent = WaitEvent::LWLockOther;

struct Peer<F> {
    socket: UnixStream,
    task: TaskRef,
    busy: AtomicBool,
    run: F,
}

impl<F: Fn(&UnixStream, Readiness) -> bool + Send + Sync + 'static> Source for Peer<F> {
    fn task(&self) -> &TaskRef {
        &self.task
    }
    fn run(&self, ready: Readiness) -> bool {
        assert!(!self.busy.swap(true, Ordering::SeqCst), "a source runs twice at once");
        let open = (self.run)(&self.socket, ready);
        self.busy.store(false, Ordering::SeqCst);
        open
    }
}

fn add(
    workers: &Workers,
    socket: UnixStream,
    run: impl Fn(&UnixStream, Readiness) -> bool + Send + Sync + 'static,
) -> TaskRef {
    socket.set_nonblocking(true).unwrap();
    let (fd, task) = (socket.as_raw_fd(), Task::new("test"));
    let peer = Peer { socket, task: task.clone(), busy: AtomicBool::new(false), run };
    workers.add(fd, Arc::new(peer)).unwrap();
    task
}

/// Allows as many descriptors as the system does.
fn raise_descriptor_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place to read from and write to.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
    }
    limit.rlim_cur
}

/// Counts each byte that arrives down and sends it back; ends at zero.
fn count_down(mut socket: &UnixStream, ready: Readiness) -> bool {
    let mut bytes = [0u8; 64];
    match socket.read(&mut bytes) {
        Ok(0) => false,
        Ok(n) => {
            let left: Vec<u8> = bytes[..n].iter().filter(|b| **b > 1).map(|b| b - 1).collect();
            let _ = socket.write_all(&left);
            bytes[..n].iter().all(|b| *b > 1)
        }
        Err(_) => !ready.hangup,
    }
}

#[test]
fn ten_thousand_tasks_play_ping_pong_on_two_workers() {
    let pairs = (raise_descriptor_limit() / 2 - 100).min(5_000);
    let workers = Workers::start(2).unwrap();
    for _ in 0..pairs {
        let (mut a, b) = UnixStream::pair().unwrap();
        a.write_all(&[20]).unwrap();
        add(&workers, a, count_down);
        add(&workers, b, count_down);
    }
    workers.shutdown();
    workers.join();
    assert_eq!(workers.sources(), 0);
}

/// Random work by many sessions on shared locks, with background threads at the same locks.
#[test]
fn sessions_and_threads_share_locks() {
    const CLIENTS: usize = 64;
    const ROUNDS: u64 = 60;
    let workers = Workers::start(3).unwrap();
    let table = Arc::new(LwLock::new(EVENT, HashMap::<u64, u64>::new()));
    let total = Arc::new(Mutex::new(EVENT, 0u64));
    let mut clients = Vec::new();
    for id in 0..CLIENTS as u64 {
        let (client, socket) = UnixStream::pair().unwrap();
        let (table, total) = (Arc::clone(&table), Arc::clone(&total));
        add(&workers, socket, move |mut socket, _| {
            let mut bytes = [0u8; 8];
            let n = socket.read(&mut bytes).unwrap_or(0);
            for _ in 0..n {
                if let Some(count) = table.read().get(&id) {
                    std::hint::black_box(count);
                }
                let mut write = table.write();
                *write.entry(id).or_default() += 1;
                if id % 3 == 0 {
                    yield_now(); // the worst time to go: the lock is held
                }
                drop(write);
                *total.lock() += 1;
            }
            let _ = socket.write_all(&bytes[..n]);
            n > 0
        });
        clients.push(client);
    }
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (table, total) = (Arc::clone(&table), Arc::clone(&total));
            std::thread::spawn(move || {
                for _ in 0..2000 {
                    let sum: u64 = table.read().values().sum();
                    assert!(sum <= CLIENTS as u64 * ROUNDS * 2);
                    *total.lock() += 0;
                }
            })
        })
        .collect();
    for _ in 0..ROUNDS {
        clients.iter_mut().for_each(|c| c.write_all(b"xx").unwrap());
        clients.iter_mut().for_each(|c| {
            // Two bytes may come back one by one.
            c.read_exact(&mut [0; 2]).unwrap();
        });
    }
    drop(clients);
    threads.into_iter().for_each(|t| t.join().unwrap());
    workers.shutdown();
    workers.join();
    assert_eq!(*total.lock(), CLIENTS as u64 * ROUNDS * 2);
    assert_eq!(table.read().values().sum::<u64>(), CLIENTS as u64 * ROUNDS * 2);
}

/// A commit queue: sessions register and park, a background thread wakes them in groups. Waits are
/// cut short by deadlines at random; each session checks its own condition again.
#[test]
fn no_group_wakeup_is_lost() {
    struct Log {
        flushed: AtomicU64,
        waiting: Mutex<Vec<(u64, TaskRef)>>,
        work: Condvar,
        done: AtomicBool,
    }
    let log = Arc::new(Log {
        flushed: AtomicU64::new(0),
        waiting: Mutex::new(EVENT, Vec::new()),
        work: Condvar::new(),
        done: AtomicBool::new(false),
    });
    let flusher = {
        let log = Arc::clone(&log);
        sched::spawn_thread("flusher", move || {
            let mut waiting = log.waiting.lock();
            while !log.done.load(Ordering::SeqCst) {
                if waiting.is_empty() {
                    let event = WaitEvent::ActivityWalWriterMain;
                    waiting = log.work.wait(&log.waiting, waiting, event, None).0;
                    continue;
                }
                let group = std::mem::take(&mut *waiting);
                drop(waiting);
                let last = group.iter().map(|(lsn, _)| *lsn).max().unwrap_or(0);
                log.flushed.fetch_max(last, Ordering::SeqCst);
                group.iter().for_each(|(_, task)| task.unpark());
                waiting = log.waiting.lock();
            }
        })
    };
    let workers = Workers::start(2).unwrap();
    let next = Arc::new(AtomicU64::new(1));
    let mut clients = Vec::new();
    for id in 0..50u64 {
        let (client, socket) = UnixStream::pair().unwrap();
        let (log, next) = (Arc::clone(&log), Arc::clone(&next));
        add(&workers, socket, move |mut socket, _| {
            let mut byte = [0u8; 1];
            if socket.read(&mut byte).unwrap_or(0) == 0 {
                return false;
            }
            let lsn = next.fetch_add(1, Ordering::SeqCst);
            log.waiting.lock().push((lsn, current()));
            log.work.notify_one();
            while log.flushed.load(Ordering::SeqCst) < lsn {
                let hurry = (lsn + id) % 3 == 0;
                let soon = hurry.then(|| Instant::now() + Duration::from_micros(50));
                park(WaitEvent::IPCWalFlush, soon);
            }
            socket.write_all(&byte).is_ok()
        });
        clients.push(client);
    }
    for _ in 0..200 {
        clients.iter_mut().for_each(|c| c.write_all(b"c").unwrap());
        clients.iter_mut().for_each(|c| c.read_exact(&mut [0]).unwrap());
    }
    drop(clients);
    workers.shutdown();
    workers.join();
    log.done.store(true, Ordering::SeqCst);
    log.work.notify_all();
    drop(log.waiting.lock());
    log.work.notify_all();
    flusher.join().unwrap();
}

/// Interrupts, wakes and time-outs rain on sessions while they come, work and go.
#[test]
fn interrupts_hit_sessions_at_any_time() {
    let workers = Workers::start(2).unwrap();
    let (raised, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let tasks = Arc::new(Mutex::new(EVENT, Vec::<TaskRef>::new()));
    let rain = {
        let (tasks, stop, workers) = (Arc::clone(&tasks), Arc::clone(&stop), Arc::clone(&workers));
        std::thread::spawn(move || {
            let mut round = 0usize;
            while !stop.load(Ordering::SeqCst) {
                let all = tasks.lock().clone();
                for (i, task) in all.iter().enumerate() {
                    match (i + round) % 4 {
                        0 => task.interrupt(Interrupt::Cancel),
                        1 => workers.wake(task),
                        2 => workers.wake_at(task, Some(Instant::now())),
                        _ => task.unpark(),
                    }
                }
                round += 1;
                std::thread::yield_now();
            }
        })
    };
    for _ in 0..40 {
        let mut clients = Vec::new();
        for id in 0..10u64 {
            let (client, socket) = UnixStream::pair().unwrap();
            let raised = Arc::clone(&raised);
            let task = add(&workers, socket, move |mut socket, ready| {
                let mut bytes = [0u8; 16];
                for _ in 0..id {
                    let soon = Some(Instant::now() + Duration::from_micros(100));
                    park(WaitEvent::TimeoutPgSleep, soon);
                    raised.fetch_add(usize::from(check_interrupts().is_err()), Ordering::SeqCst);
                }
                match socket.read(&mut bytes) {
                    Ok(0) => false,
                    Ok(n) => socket.write_all(&bytes[..n]).is_ok(),
                    Err(_) => !ready.hangup,
                }
            });
            tasks.lock().push(task);
            clients.push(client);
        }
        for _ in 0..5 {
            clients.iter_mut().for_each(|c| c.write_all(b"c").unwrap());
            clients.iter_mut().for_each(|c| c.read_exact(&mut [0]).unwrap());
        }
        drop(clients);
        if tasks.lock().len() > 50 {
            tasks.lock().drain(..30);
        }
    }
    stop.store(true, Ordering::SeqCst);
    rain.join().unwrap();
    workers.shutdown();
    workers.join();
    assert!(raised.load(Ordering::SeqCst) > 0);
}

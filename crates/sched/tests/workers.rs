//! Sources on workers: echo servers over socket pairs.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::WaitEvent;
use sched::{
    Interrupt, Readiness, Source, Task, TaskRef, check_interrupts, park, wait_readable,
    wait_writable,
};
use support::{Echo, Server, ask, echo};

mod support;

#[test]
fn clients_are_answered_and_ended() {
    let server = Server::new(2);
    let mut clients: Vec<_> = (0..100).map(|_| server.connect(echo).0).collect();
    for round in 0..20u8 {
        for client in &mut clients {
            client.write_all(&[round; 3]).unwrap();
        }
        for client in &mut clients {
            let mut answer = [0; 3];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(answer, [round; 3]);
        }
    }
    assert_eq!(server.workers.sources(), 100);
    drop(clients);
    assert_eq!(server.end(), 100);
}

/// Has a server's only worker wait until all of `clients` have sent a byte.
fn all_at_once(server: &Server, clients: &mut [UnixStream]) {
    let gate = Arc::new(AtomicUsize::new(0));
    let (mut keeper, _) = server.connect({
        let gate = Arc::clone(&gate);
        move |_, _| {
            gate.store(1, Ordering::SeqCst);
            while gate.load(Ordering::SeqCst) == 1 {
                std::hint::spin_loop();
            }
            false
        }
    });
    keeper.write_all(b"x").unwrap();
    while gate.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    clients.iter_mut().for_each(|client| client.write_all(b"x").unwrap());
    gate.store(2, Ordering::SeqCst);
}

#[test]
fn answers_that_were_left_are_sent() {
    const CLIENTS: usize = 50;
    let server = Server::new(1);
    let left = Arc::new(AtomicUsize::new(0));
    let connect = |_| {
        let left = Arc::clone(&left);
        let run = move |source: &Echo, _: Readiness| {
            let mut buffer = [0; 8];
            match (&source.socket).read(&mut buffer) {
                Ok(0) => return false,
                Ok(n) if sched::leave(&buffer[..n]) => drop(left.fetch_add(1, Ordering::SeqCst)),
                Ok(n) => (&source.socket).write_all(&buffer[..n]).unwrap(),
                Err(_) => {}
            }
            true
        };
        server.connect(run).0
    };
    let mut clients: Vec<_> = (0..CLIENTS).map(connect).collect();
    all_at_once(&server, &mut clients);
    clients.iter_mut().for_each(|client| client.read_exact(&mut [0]).unwrap());
    assert!(left.load(Ordering::SeqCst) >= CLIENTS - 1, "all but the last are not alone");
    clients.iter_mut().for_each(|client| ask(client, b"again"));
    drop(clients);
    assert_eq!(server.end(), CLIENTS + 1);
}

#[test]
fn what_a_full_socket_does_not_take_is_sent_later() {
    const ANSWER: &[u8] = b"the answer";
    let server = Server::new(1);
    let filled = Arc::new(AtomicUsize::new(0));
    let run = {
        let filled = Arc::clone(&filled);
        move |source: &Echo, _: Readiness| {
            let mut socket = &source.socket;
            let unsent = std::mem::take(&mut *source.unsent.lock().unwrap());
            if !unsent.is_empty() {
                assert_eq!(unsent, ANSWER);
                while socket.write(&unsent).is_err() {
                    wait_writable(socket.as_raw_fd(), WaitEvent::ClientClientWrite).unwrap();
                }
                return true;
            }
            match socket.read(&mut [0]) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(_) => return true,
            }
            while let Ok(n) = socket.write(&[0; 64]) {
                filled.fetch_add(n, Ordering::SeqCst);
            }
            assert!(sched::leave(ANSWER), "the other client is ready");
            true
        }
    };
    let mut clients = [server.connect(run).0, server.connect(echo).0];
    all_at_once(&server, &mut clients);
    let [mut client, mut other] = clients;
    other.read_exact(&mut [0]).unwrap();
    let mut all = vec![1; filled.load(Ordering::SeqCst) + ANSWER.len()];
    client.read_exact(&mut all).unwrap();
    let (zeros, answer) = all.split_at(all.len() - ANSWER.len());
    assert!(zeros.iter().all(|byte| *byte == 0));
    assert_eq!(answer, ANSWER);
    drop((client, other));
    assert_eq!(server.end(), 3);
}

#[test]
fn a_panic_ends_the_connection_and_not_the_worker() {
    let server = Server::new(1);
    let (mut bad, _) = server.connect(|_, _| panic!("in a run"));
    let (mut good, _) = server.connect(echo);
    bad.write_all(b"x").unwrap();
    // Unread input makes the end a reset.
    assert!(!matches!(bad.read(&mut [0]), Ok(1)));
    ask(&mut good, b"hello");
    drop((good, bad));
    assert_eq!(server.end(), 2);
}

/// Two sources on one worker hand tokens to each other while both are inside a run.
#[test]
fn parked_runs_share_a_worker() {
    let server = Server::new(1);
    let (waiting, task) = server.connect(|s, _| {
        let mut byte = [0];
        if (&s.socket).read(&mut byte).unwrap_or(0) == 0 {
            return false;
        }
        park(WaitEvent::IPCTaskJoin, None);
        (&s.socket).write_all(b"woken").unwrap();
        true
    });
    (&waiting).write_all(b"x").unwrap();
    let (mut waker, _) = server.connect(move |s, r| {
        task.unpark();
        echo(s, r)
    });
    ask(&mut waker, b"go");
    let mut answer = [0; 5];
    (&waiting).read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"woken");
    drop((waiting, waker));
    assert_eq!(server.end(), 2);
}

#[test]
fn parks_on_workers_time_out() {
    let server = Server::new(1);
    let (mut client, _) = server.connect(|s, r| {
        let soon = std::time::Instant::now() + Duration::from_millis(3);
        let wake = park(WaitEvent::TimeoutPgSleep, Some(soon));
        assert_eq!(wake, sched::Wake::TimedOut);
        assert!(std::time::Instant::now() >= soon);
        echo(s, r)
    });
    ask(&mut client, b"a");
    ask(&mut client, b"b");
    // It parks once more after the hang-up, uninterrupted, for that came before the run.
    drop(client);
    assert_eq!(server.end(), 1);
}

#[test]
fn a_run_waits_for_its_own_socket() {
    let server = Server::new(1);
    let big = vec![7u8; 4 << 20];
    let size = big.len();
    let (client, _) = server.connect(move |s, ready| {
        if ready.hangup {
            return false;
        }
        let mut got = 0;
        let mut buffer = vec![0; 64 << 10];
        while got < size {
            match (&s.socket).read(&mut buffer) {
                Ok(0) => return false,
                Ok(n) => got += n,
                Err(_) => {
                    wait_readable(s.socket.as_raw_fd(), WaitEvent::ClientClientRead).unwrap();
                }
            }
        }
        let mut sent = 0;
        while sent < size {
            match (&s.socket).write(&big[sent..]) {
                Ok(n) => sent += n,
                Err(_) => {
                    wait_writable(s.socket.as_raw_fd(), WaitEvent::ClientClientWrite).unwrap();
                }
            }
        }
        true
    });
    (&client).write_all(&vec![7u8; size]).unwrap();
    let mut answer = vec![0; size];
    (&client).read_exact(&mut answer).unwrap();
    assert!(answer.iter().all(|b| *b == 7));
    drop(client);
    assert_eq!(server.end(), 1);
}

#[test]
fn a_hang_up_during_a_run_is_noticed() {
    let server = Server::new(1);
    let (send, receive) = std::sync::mpsc::channel();
    let (client, task) = server.connect(move |s, ready| {
        if !ready.hangup {
            let _ = (&s.socket).read(&mut [0]);
            let wake = park(WaitEvent::LockTransactionid, None);
            send.send((wake, check_interrupts().unwrap_err())).unwrap();
        }
        false
    });
    (&client).write_all(b"x").unwrap();
    while task.wait().map(|w| w.0) != Some(WaitEvent::LockTransactionid) {
        std::thread::yield_now();
    }
    drop(client);
    let (wake, error) = receive.recv().unwrap();
    assert_eq!(wake, sched::Wake::Interrupted);
    assert_eq!(error.code(), base::sqlstate::CONNECTION_FAILURE);
    assert_eq!(server.end(), 1);
}

#[test]
fn a_long_run_lets_others_in() {
    let server = Server::new(1);
    let stop = Arc::new(AtomicUsize::new(0));
    let stopped = Arc::clone(&stop);
    let (mut long, _) = server.connect(move |s, r| {
        while stopped.load(Ordering::SeqCst) == 0 && !r.hangup {
            check_interrupts().unwrap();
        }
        echo(s, r)
    });
    long.write_all(b"x").unwrap();
    let (mut short, _) = server.connect(echo);
    for _ in 0..3 {
        ask(&mut short, b"y");
    }
    stop.store(1, Ordering::SeqCst);
    let mut answer = [0];
    long.read_exact(&mut answer).unwrap();
    drop((long, short));
    assert_eq!(server.end(), 2);
}

/// Two long runs and a stream of short ones on one worker: all get on.
#[test]
fn long_runs_are_not_starved_by_short_ones() {
    let server = Server::new(1);
    let progress: Vec<_> = (0..2).map(|_| Arc::new(AtomicUsize::new(0))).collect();
    let stop = Arc::new(AtomicUsize::new(0));
    let mut long: Vec<_> = progress
        .iter()
        .map(|progress| {
            let (progress, stop) = (Arc::clone(progress), Arc::clone(&stop));
            let (mut client, _) = server.connect(move |s, r| {
                while stop.load(Ordering::SeqCst) == 0 && !r.hangup {
                    progress.fetch_add(1, Ordering::SeqCst);
                    check_interrupts().unwrap();
                }
                echo(s, r)
            });
            client.write_all(b"x").unwrap();
            client
        })
        .collect();
    let mut short: Vec<_> = (0..4).map(|_| server.connect(echo).0).collect();
    for _ in 0..20 {
        let before: Vec<_> = progress.iter().map(|p| p.load(Ordering::SeqCst)).collect();
        while progress.iter().zip(&before).any(|(p, b)| p.load(Ordering::SeqCst) == *b) {
            short.iter_mut().for_each(|c| ask(c, b"y"));
        }
    }
    stop.store(1, Ordering::SeqCst);
    long.iter_mut().for_each(|c| c.read_exact(&mut [0]).unwrap());
    drop((long, short));
    assert_eq!(server.end(), 6);
}

#[test]
fn idle_sources_are_woken_by_call_interrupt_and_time() {
    let server = Server::new(1);
    let (client, task) = server.connect(|s, ready| {
        if ready.hangup {
            return false;
        }
        if ready.woken {
            let gone = check_interrupts().is_err();
            (&s.socket).write_all(if gone { b"i" } else { b"w" }).unwrap();
        }
        true
    });
    let mut answer = [0];
    server.workers.wake(&task);
    (&client).read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"w");
    task.interrupt(Interrupt::Terminate);
    (&client).read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"i");
    server.workers.wake_at(&task, Some(std::time::Instant::now() + Duration::from_millis(2)));
    (&client).read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"w");
    drop(client);
    assert_eq!(server.end(), 1);
}

#[test]
fn the_native_stack_must_not_park() {
    let server = Server::new(1);
    let (mut client, _) = server.connect(|s, r| {
        let caught = std::panic::catch_unwind(|| {
            sched::on_native_stack(|| park(WaitEvent::IPCTaskJoin, None));
        });
        assert!(caught.is_err() || r.hangup);
        echo(s, r)
    });
    ask(&mut client, b"x");
    drop(client);
    assert_eq!(server.end(), 1);
}

#[test]
fn the_native_stack_is_lent_and_returned() {
    let server = Server::new(1);
    let (mut client, _) = server.connect(|s, r| {
        let here = 0u8;
        let mine = &raw const here as usize;
        let there = sched::on_native_stack(|| {
            sched::check_stack().unwrap();
            let big = [1u8; 2 << 20]; // larger than a coroutine's stack
            std::hint::black_box(&big).as_ptr() as usize
        });
        assert!(mine.abs_diff(there) > 1 << 20);
        let caught = std::panic::catch_unwind(|| sched::on_native_stack(|| panic!("in C")));
        assert!(caught.is_err());
        sched::check_stack().unwrap();
        echo(s, r)
    });
    ask(&mut client, b"x");
    drop(client);
    assert_eq!(server.end(), 1);
}

#[test]
fn workers_come_and_go_under_their_connections() {
    let server = Server::new(3);
    let mut clients: Vec<_> = (0..60).map(|_| server.connect(echo).0).collect();
    // One is inside a run while its worker retires.
    let (held, task) = server.connect(|s, r| {
        if !r.hangup {
            park(WaitEvent::IPCTaskJoin, None);
        }
        echo(s, r)
    });
    (&held).write_all(b"x").unwrap();
    while task.wait().is_none() {
        std::thread::yield_now();
    }
    for count in [1, 4, 2, 1, 3, 1] {
        server.workers.resize(count).unwrap();
        assert_eq!(server.workers.count(), count);
        clients.iter_mut().for_each(|c| ask(c, b"still there"));
        clients.push(server.connect(echo).0);
    }
    task.unpark();
    (&held).read_exact(&mut [0]).unwrap();
    while server.workers.running() > 1 {
        clients.iter_mut().for_each(|c| ask(c, b"still there"));
    }
    drop((clients, held));
    assert_eq!(server.end(), 67);
}

/// How often the threads of this name gave the processor away, by the kernel's count.
fn switches(name: &str) -> u64 {
    let count = |dir: std::io::Result<std::fs::DirEntry>| {
        let status = std::fs::read_to_string(dir.ok()?.path().join("status")).ok()?;
        let field = |key: &str| status.lines().find_map(|l| l.strip_prefix(key)).map(str::trim);
        let switches: u64 = field("voluntary_ctxt_switches:")?.parse().ok()?;
        (field("Name:") == Some(name)).then_some(switches)
    };
    std::fs::read_dir("/proc/self/task").unwrap().filter_map(count).sum::<u64>()
}

/// Idle connections, some with a far deadline, cost no processor: a worker that polls or ticks
/// would never be seen at rest.
#[test]
fn an_idle_worker_rests() {
    let server = Server::new(8); // the name of its last worker is no other test's
    let mut clients: Vec<_> = (0..200).map(|_| server.connect(echo)).collect();
    for (client, task) in &mut clients {
        ask(client, b"x");
        let later = std::time::Instant::now() + Duration::from_secs(3600);
        server.workers.wake_at(task, Some(later));
    }
    let rests = || {
        let before = switches("worker 7");
        std::thread::sleep(Duration::from_millis(30));
        before > 0 && switches("worker 7") == before
    };
    assert!((0..100).any(|_| rests()));
    drop(clients);
    assert_eq!(server.end(), 200);
}

/// Answers each byte with the number of the worker that has read it.
struct Where {
    socket: TcpStream,
    task: TaskRef,
}

impl Source for Where {
    fn task(&self) -> &TaskRef {
        &self.task
    }

    fn run(&self, _ready: Readiness) -> bool {
        let mut byte = [0];
        if (&self.socket).read(&mut byte).unwrap_or(0) == 0 {
            return false;
        }
        let thread = std::thread::current();
        let number = thread.name().and_then(|name| name.strip_prefix("worker "));
        let answer = [number.and_then(|n| n.parse().ok()).unwrap_or(u8::MAX)];
        (&self.socket).write_all(&answer).is_ok()
    }
}

/// The processors that this thread may use.
fn processors() -> Vec<usize> {
    // SAFETY: all zeros are an empty set, which the kernel fills.
    unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &raw mut set), 0);
        (0..libc::CPU_SETSIZE as usize).filter(|p| libc::CPU_ISSET(*p, &set)).collect()
    }
}

/// Binds this thread.
fn bind(processors: &[usize]) {
    // SAFETY: all zeros are an empty set; processors are those of one.
    unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        processors.iter().for_each(|p| libc::CPU_SET(*p, &mut set));
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &raw const set), 0);
    }
}

#[test]
fn a_connection_follows_its_client_from_processor_to_processor() {
    let all = processors();
    let server = Server::new(0);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    let (fd, task) = (socket.as_raw_fd(), Task::new("test"));
    server.workers.add(fd, Arc::new(Where { socket, task })).unwrap();
    let mut ask = || {
        let mut answer = [0];
        client.write_all(&[1]).unwrap();
        client.read_exact(&mut answer).unwrap();
        usize::from(answer[0])
    };
    for _ in 0..3 {
        for (number, processor) in all.iter().enumerate() {
            bind(&[*processor]);
            // Now and then another worker may be faster, so it is where it is if it is there several times.
            let mut there = 0;
            for asked in 0.. {
                there = if ask() == number { there + 1 } else { 0 };
                if there == 5 {
                    break;
                }
                assert!(asked < 10_000, "it did not come to the worker {number}");
            }
        }
    }
    bind(&all);
    drop(client);
    server.end();
}

#[test]
fn a_thread_that_a_bound_worker_starts_is_not_bound() {
    let all = processors();
    let server = Server::new(0);
    let (say, heard) = std::sync::mpsc::channel();
    let (mut client, _) = server.connect(move |source, _| {
        let say = say.clone();
        if (&source.socket).read(&mut [0]).unwrap_or(0) == 0 {
            return false;
        }
        let own = processors().len();
        drop(sched::spawn_thread("test", move || say.send((own, processors().len())).unwrap()));
        true
    });
    client.write_all(&[1]).unwrap();
    assert_eq!(heard.recv().unwrap(), (1, all.len()));
    drop(client);
    server.end();
}

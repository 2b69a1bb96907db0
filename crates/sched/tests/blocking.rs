//! Calls that block, made by sessions. Alone in its binary: `io_max_workers` is the process's.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use base::WaitEvent;
use base::settings::{Settings, Value, publish_live, setting};
use base::usage::Use;
use sched::{DiskWait, Interrupt, TaskRef, blocking, blocking_unless};
use support::{Echo, Server, ask, echo};

mod support;

const EVENT: WaitEvent = WaitEvent::IOCopyFileRead;
const MOST: usize = 2;

/// One test at a time: they share the I/O workers.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut settings = Settings::default();
    settings.set(setting::IO_MAX_WORKERS, Value::Int(MOST as i64));
    publish_live(&settings);
    sched::limit_disk_waits(usize::MAX);
    turn
}

/// The byte that a client has sent; None: it has gone.
fn take(source: &Echo) -> Option<u8> {
    let mut byte = [0];
    ((&source.socket).read(&mut byte).unwrap_or(0) == 1).then_some(byte[0])
}

/// The byte that a pipe gives, in the end.
fn byte_of(mut pipe: &PipeReader) -> u8 {
    let mut byte = [0];
    pipe.read_exact(&mut byte).unwrap();
    byte[0]
}

/// A client whose run answers with what a pipe gives, for which it waits by this.
fn reader(
    server: &Server,
    read: impl Fn(&PipeReader) -> u8 + Send + Sync + 'static,
) -> (UnixStream, TaskRef, PipeWriter) {
    let (from, to) = pipe().unwrap();
    let (client, task) = server.connect(move |source, _| {
        if take(source).is_none() {
            return false;
        }
        (&source.socket).write_all(&[read(&from)]).unwrap();
        true
    });
    (client, task, to)
}

/// As a call of any length.
fn of_any_length(pipe: &PipeReader) -> u8 {
    blocking(EVENT, || byte_of(pipe))
}

/// As a call that the disk answers.
fn of_the_disk(pipe: &PipeReader) -> u8 {
    let _wait = DiskWait::begin();
    blocking_unless(EVENT, &mut (), |()| None, |()| byte_of(pipe))
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::yield_now();
    }
}

fn waits(task: &TaskRef) -> bool {
    task.wait().is_some_and(|(event, _)| event == EVENT)
}

fn answer(client: &mut UnixStream) -> u8 {
    let mut byte = [0];
    client.read_exact(&mut byte).unwrap();
    byte[0]
}

#[test]
fn who_blocks_leaves_the_worker_to_others() {
    let _turn = alone();
    let server = Server::new(1);
    let (mut client, task, mut pipe) = reader(&server, of_any_length);
    let mut other = server.connect(echo).0;
    client.write_all(b"x").unwrap();
    wait_until(|| waits(&task));
    ask(&mut other, b"meanwhile");
    task.interrupt(Interrupt::Cancel);
    ask(&mut other, b"it is not interrupted");
    assert!(waits(&task));
    pipe.write_all(b"!").unwrap();
    assert_eq!(answer(&mut client), b'!');
    drop((client, other));
    assert_eq!(server.end(), 2);
}

#[test]
fn what_is_used_elsewhere_counts_as_the_callers() {
    let _turn = alone();
    let server = Server::new(1);
    let (mut client, task, mut pipe) = reader(&server, |pipe| {
        sched::elsewhere(EVENT, || {
            sched::used(Use::Evicted, 2);
            sched::used(Use::Evicted, 1);
            byte_of(pipe)
        })
    });
    let mut other = server.connect(echo).0;
    for round in 1..3 {
        client.write_all(b"x").unwrap();
        wait_until(|| waits(&task));
        ask(&mut other, b"meanwhile");
        pipe.write_all(b"!").unwrap();
        assert_eq!(answer(&mut client), b'!');
        assert_eq!((task.used(Use::Evicted), task.used(Use::BufferRead)), (3 * round, 0));
    }
    drop((client, other));
    assert_eq!(server.end(), 2);
}

#[test]
fn calls_beyond_the_io_workers_queue() {
    let _turn = alone();
    let server = Server::new(1);
    let mut longer: Vec<_> = (0..MOST).map(|_| reader(&server, of_any_length)).collect();
    let mut readers: Vec<_> = (0..MOST + 3).map(|_| reader(&server, of_the_disk)).collect();
    for (client, task, _) in longer.iter_mut().chain(&mut readers) {
        client.write_all(b"x").unwrap();
        wait_until(|| waits(task));
    }
    let at_work = || {
        let tasks = sched::background_tasks();
        tasks.iter().filter(|t| t.kind() == "io worker" && waits(t)).count()
    };
    wait_until(|| at_work() == 2 * MOST);
    for (at, (client, task, pipe)) in readers.iter_mut().enumerate() {
        assert!(at_work() <= 2 * MOST, "calls of any length don't count");
        let waits_before = task.wait_totals().0;
        pipe.write_all(&[at as u8]).unwrap();
        assert_eq!(answer(client), at as u8);
        assert_eq!(task.wait_totals().0, waits_before + 1);
    }
    longer.iter_mut().for_each(|(_, _, pipe)| pipe.write_all(b"!").unwrap());
    longer.iter_mut().for_each(|(client, _, _)| assert_eq!(answer(client), b'!'));
    drop((longer, readers));
    assert_eq!(server.end(), 2 * MOST + 3);
}

/// While as many wait for the disk as may, runs that have begun go on and no other begins.
#[test]
fn no_run_begins_while_too_many_wait_for_the_disk() {
    let _turn = alone();
    sched::limit_disk_waits(1);
    let server = Server::new(1);
    let turns = Arc::new(AtomicUsize::new(0));
    let (mut begun, begun_task) = server.connect({
        let turns = Arc::clone(&turns);
        move |source, _| {
            while take(source).is_none() {
                turns.fetch_add(1, Ordering::SeqCst);
                sched::park(WaitEvent::IPCTaskJoin, None);
            }
            false
        }
    });
    let (mut client, task, mut pipe) = reader(&server, of_the_disk);
    let mut next = server.connect(echo).0;
    begun_task.interrupt(Interrupt::Cancel); // its run begins
    begun_task.clear_interrupt(Interrupt::Cancel);
    wait_until(|| turns.load(Ordering::SeqCst) > 0);
    client.write_all(b"x").unwrap();
    wait_until(|| waits(&task));
    next.write_all(b"y").unwrap();
    next.set_nonblocking(true).unwrap();
    let first = turns.load(Ordering::SeqCst);
    for turn in first..first + 200 {
        begun_task.unpark();
        wait_until(|| turns.load(Ordering::SeqCst) > turn);
        assert!(next.read(&mut [0]).is_err(), "it has not begun");
    }
    next.set_nonblocking(false).unwrap();
    pipe.write_all(b"z").unwrap();
    assert_eq!(answer(&mut client), b'z');
    assert_eq!(answer(&mut next), b'y');
    begun.write_all(b"e").unwrap();
    begun_task.unpark();
    drop((client, next, begun));
    assert_eq!(server.end(), 3);
}

#[test]
fn a_panic_in_the_call_is_the_sessions() {
    let _turn = alone();
    let server = Server::new(1);
    let mut bad = server.connect(|source, _| match take(source) {
        Some(_) => blocking(EVENT, || panic!("in a call")),
        None => false,
    });
    let (mut good, _, mut pipe) = reader(&server, of_any_length);
    bad.0.write_all(b"x").unwrap();
    assert!(!matches!(bad.0.read(&mut [0]), Ok(1)));
    good.write_all(b"x").unwrap();
    pipe.write_all(b"y").unwrap();
    assert_eq!(answer(&mut good), b'y');
    drop((bad, good));
    assert_eq!(server.end(), 2);
}

/// A run that tells on which threads its attempt (which had this) and its call were made.
fn attempts(
    had: Option<u8>,
    made: &Arc<Mutex<Vec<(u8, ThreadId)>>>,
) -> impl Fn(&Echo) -> bool + use<> {
    let made = Arc::clone(made);
    move |source| {
        if take(source).is_none() {
            return false;
        }
        let mut place = 0;
        let attempt = |place: &mut u8| {
            made.lock().unwrap().push((b'a', thread::current().id()));
            *place = had?;
            Some(())
        };
        blocking_unless(EVENT, &mut place, attempt, |place| {
            made.lock().unwrap().push((b'c', thread::current().id()));
            *place = b'c';
        });
        made.lock().unwrap().push((b'r', thread::current().id()));
        (&source.socket).write_all(&[place]).unwrap();
        true
    }
}

#[test]
fn what_can_be_had_at_once_is() {
    let _turn = alone();
    let made = Arc::default();
    for (had, with_other, order) in [
        (Some(b'h'), true, &b"ar"[..]),
        (None, true, b"acr"),
        (None, false, b"cr"), // the worker has nobody else to run
    ] {
        let server = Server::new(1);
        let run = attempts(had, &made);
        let (mut client, _) = server.connect(move |source, _| run(source));
        let other = with_other.then(|| server.connect(echo).0);
        client.write_all(b"x").unwrap();
        assert_eq!(answer(&mut client), had.unwrap_or(b'c'));
        drop((client, other));
        server.end();
        let made = std::mem::take(&mut *made.lock().unwrap());
        assert_eq!(made.iter().map(|(what, _)| *what).collect::<Vec<_>>(), order);
        let worker = made[made.len() - 1].1;
        let elsewhere = made.iter().any(|(_, thread)| *thread != worker);
        assert_eq!(elsewhere, had.is_none() && with_other);
    }
}

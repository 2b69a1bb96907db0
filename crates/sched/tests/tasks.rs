//! Parking, interrupts and time-outs on plain threads.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use base::{WaitEvent, sqlstate};
use sched::{
    Interrupt, Task, Wake, check_interrupts, current, io_wait, park, park_uninterruptible,
    spawn_task, yield_now,
};

const EVENT: WaitEvent = WaitEvent::IPCTaskJoin;

fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_millis(5))
}

#[test]
fn unpark_before_park_is_remembered_once() {
    current().unpark();
    current().unpark();
    assert_eq!(park(EVENT, None), Wake::Unparked);
    assert_eq!(park(EVENT, soon()), Wake::TimedOut);
}

#[test]
fn a_wait_can_be_seen_and_is_counted() {
    let task = Task::new("test");
    let watched = task.clone();
    let thread = spawn_task(task, || assert_eq!(park(EVENT, None), Wake::Unparked));
    while watched.wait().is_none() {
        thread::yield_now();
    }
    assert_eq!(watched.wait().map(|w| w.0), Some(EVENT));
    watched.unpark();
    thread.join().unwrap();
    assert_eq!(watched.wait().map(|w| w.0), None);
    assert_eq!(watched.wait_totals().0, 1);
    assert!(watched.wait_totals().1 > 0);
}

#[test]
fn an_interrupt_ends_a_wait_and_becomes_an_error_once() {
    let task = Task::new("test");
    let (send, receive) = mpsc::channel();
    let thread = spawn_task(task.clone(), move || {
        let wake = park(EVENT, None);
        send.send((wake, check_interrupts(), check_interrupts())).unwrap();
    });
    while task.wait().is_none() {
        thread::yield_now();
    }
    task.interrupt(Interrupt::Cancel);
    let (wake, first, second) = receive.recv().unwrap();
    assert_eq!(wake, Wake::Interrupted);
    assert_eq!(first.unwrap_err().code(), sqlstate::QUERY_CANCELED);
    assert!(second.is_ok());
    thread.join().unwrap();
}

#[test]
fn the_most_serious_interrupt_comes_first() {
    let task = current();
    task.interrupt(Interrupt::Cancel);
    task.interrupt(Interrupt::Terminate);
    assert_eq!(check_interrupts().unwrap_err().code(), sqlstate::ADMIN_SHUTDOWN);
    task.clear_interrupt(Interrupt::Cancel);
    assert!(check_interrupts().is_ok());
}

#[test]
fn an_uninterruptible_wait_leaves_the_interrupt_pending() {
    let task = current();
    task.interrupt(Interrupt::Cancel);
    assert_eq!(park_uninterruptible(EVENT, soon()), Wake::TimedOut);
    assert_eq!(park(EVENT, None), Wake::Interrupted);
    assert!(check_interrupts().is_err());
}

#[test]
fn a_statement_timeout_ends_waits_and_loops() {
    let task = current();
    task.set_statement_deadline(soon());
    assert_eq!(park(EVENT, None), Wake::Interrupted);
    let error = check_interrupts().unwrap_err();
    assert_eq!(error.message(), "canceling statement due to statement timeout");
    task.set_statement_deadline(soon());
    while check_interrupts().is_ok() {}
    assert!(check_interrupts().is_ok());
    task.set_statement_deadline(None);
}

#[test]
fn a_blocking_call_is_labelled() {
    let seen = io_wait(EVENT, || current().wait().map(|w| w.0));
    assert_eq!(seen, Some(EVENT));
    assert!(current().wait().is_none());
    yield_now();
}

#[test]
fn tokens_pass_back_and_forth() {
    let (a, b) = (Task::new("a"), Task::new("b"));
    let rounds = 20_000;
    let (to_b, to_a) = (b.clone(), a.clone());
    let one = spawn_task(a, move || {
        for _ in 0..rounds {
            to_b.unpark();
            park(EVENT, None);
        }
    });
    let other = spawn_task(b, move || {
        for _ in 0..rounds {
            park(EVENT, None);
            to_a.unpark();
        }
    });
    one.join().unwrap();
    other.join().unwrap();
}

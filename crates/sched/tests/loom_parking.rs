//! Park, unpark and interrupt under loom: every interleaving of a waiter with its wakers.
//! `RUSTFLAGS="--cfg loom" cargo test -p sched --release --test loom_parking`
//!
//! The waiting itself is loom's own park, so a wake-up that nobody owes, or that is lost, shows as
//! a deadlock.
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread::{self, Thread};
use sched::parking::{Begin, DEAF, PARKED, Parking};

const CANCEL: u32 = 1;

#[derive(Debug, PartialEq)]
enum Woken {
    Token,
    Interrupted,
    Neither,
}

fn park(parking: &Parking, how: u32) -> Woken {
    match parking.begin(how) {
        Begin::Token => return Woken::Token,
        Begin::Interrupted => return Woken::Interrupted,
        Begin::Parked => {}
    }
    while parking.is_parked() {
        thread::park();
    }
    match (parking.end(), parking.pending()) {
        (true, _) => Woken::Token,
        (false, 0) => Woken::Neither,
        (false, _) => Woken::Interrupted,
    }
}

fn unpark(parking: &Parking, waiter: &Thread) {
    if parking.unpark().is_some() {
        waiter.unpark();
    }
}

fn interrupt(parking: &Parking, waiter: &Thread) {
    parking.raise(CANCEL);
    if parking.wake_unless(DEAF).is_some() {
        waiter.unpark();
    }
}

fn with_waiter(f: impl Fn(Arc<Parking>, Thread) + Sync + Send + 'static) {
    loom::model(move || f(Arc::new(Parking::new()), thread::current()));
}

#[test]
fn an_unpark_is_taken_once() {
    with_waiter(|parking, waiter| {
        let theirs = Arc::clone(&parking);
        let waker = thread::spawn(move || unpark(&theirs, &waiter));
        assert_eq!(park(&parking, PARKED), Woken::Token);
        waker.join().expect("no panic");
        assert!(!parking.take_token());
    });
}

#[test]
fn two_unparks_end_one_or_two_parks() {
    with_waiter(|parking, waiter| {
        let wakers: Vec<_> = (0..2)
            .map(|_| {
                let (theirs, waiter) = (Arc::clone(&parking), waiter.clone());
                thread::spawn(move || unpark(&theirs, &waiter))
            })
            .collect();
        assert_eq!(park(&parking, PARKED), Woken::Token);
        wakers.into_iter().for_each(|w| w.join().expect("no panic"));
        parking.take_token();
        assert!(!parking.is_parked() && !parking.take_token());
    });
}

#[test]
fn an_interrupt_ends_a_wait_and_an_unpark_with_it_is_kept() {
    with_waiter(|parking, waiter| {
        let (first, second) = (Arc::clone(&parking), Arc::clone(&parking));
        let to = waiter.clone();
        let interrupter = thread::spawn(move || interrupt(&first, &to));
        let waker = thread::spawn(move || unpark(&second, &waiter));
        let woken = park(&parking, PARKED);
        interrupter.join().expect("no panic");
        waker.join().expect("no panic");
        // Whichever ended the wait, the other is still there.
        assert_eq!(parking.pending(), CANCEL);
        assert_eq!(parking.take_token(), woken != Woken::Token);
    });
}

#[test]
fn a_deaf_wait_ends_only_with_the_token() {
    with_waiter(|parking, waiter| {
        let (first, second) = (Arc::clone(&parking), Arc::clone(&parking));
        let to = waiter.clone();
        let interrupter = thread::spawn(move || interrupt(&first, &to));
        let waker = thread::spawn(move || unpark(&second, &waiter));
        assert_eq!(park(&parking, PARKED | DEAF), Woken::Token);
        interrupter.join().expect("no panic");
        waker.join().expect("no panic");
        assert_eq!(parking.pending(), CANCEL);
    });
}

/// A time-out and an unpark at once: the wait ends once, and the token is taken or kept.
#[test]
fn a_timeout_and_an_unpark_do_not_both_wake() {
    with_waiter(|parking, waiter| {
        let (first, second) = (Arc::clone(&parking), Arc::clone(&parking));
        let to = waiter.clone();
        let timer = thread::spawn(move || {
            if first.wake_unless(0).is_some() {
                to.unpark();
            }
        });
        let waker = thread::spawn(move || unpark(&second, &waiter));
        let woken = park(&parking, PARKED);
        timer.join().expect("no panic");
        waker.join().expect("no panic");
        assert_eq!(parking.take_token(), woken != Woken::Token);
    });
}

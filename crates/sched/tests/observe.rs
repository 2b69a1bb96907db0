//! Observation of a wait: while it lasts, and when it is over.

use std::thread;

use base::{Oid, WaitEvent};
use sched::observe::{HistoryCursor, ProfileKey, history_since, profile, task_by_id, tasks};
use sched::{LwLock, Task, WaitObject, Waiting, park, spawn_task};

const OBJECT: WaitObject = WaitObject::Advisory(Oid(5), 77);

#[test]
fn a_wait_shows_its_object_and_blocker_and_is_recorded() {
    let blocker = Task::new("blocker");
    blocker.set_pid(4711);
    let id = blocker.id();
    let task = Task::new("test");
    task.set_pid(4712);
    task.set_statement(99);
    let waiting = Waiting::on(WaitEvent::LockAdvisory, OBJECT).behind(id);
    let thread = spawn_task(task.clone(), move || {
        park(waiting, None);
    });
    while task.waiting().is_none() {
        thread::yield_now();
    }
    assert_eq!(task.waiting().unwrap().0, waiting);
    task.unpark();
    thread.join().unwrap();
    assert!(task.waiting().is_none());

    let records = history_since(&mut HistoryCursor::default(), false);
    let record = records.iter().find(|r| r.pid == 4712).unwrap();
    assert_eq!((record.event, record.object), (WaitEvent::LockAdvisory, OBJECT));
    assert_eq!((record.blocker, record.blocker_pid, record.statement), (id, 4711, 99));
    let key = ProfileKey { pid: 4712, statement: 99, event: record.event, object: OBJECT };
    let sums = profile().into_iter().find(|row| row.key == Some(key)).unwrap().sums;
    assert_eq!((sums.count, sums.total_ns), (1, record.duration_ns));
}

#[test]
fn a_cursor_shows_each_wait_once() {
    let mut cursor = HistoryCursor::default();
    let own = sched::current().id();
    let mut seen = move || {
        let records = history_since(&mut cursor, false);
        records.iter().filter(|r| r.task == own).count()
    };
    let wait = || park(WaitEvent::TimeoutPgSleep, Some(std::time::Instant::now()));
    wait();
    assert_eq!(seen(), 1);
    assert_eq!(seen(), 0);
    wait();
    wait();
    assert_eq!(seen(), 2);
}

#[test]
fn a_latch_knows_its_holder_and_its_waiter_names_him() {
    static LATCH: LwLock<()> = LwLock::new(WaitEvent::LWLockOther, ());
    let held = LATCH.write();
    let own = sched::current().id();
    assert_eq!(LATCH.holder(), Some(own));
    let waiter = Task::new("test");
    let thread = spawn_task(waiter.clone(), || drop(LATCH.read()));
    while waiter.waiting().is_none() {
        thread::yield_now();
    }
    let (waiting, _) = waiter.waiting().unwrap();
    assert_eq!((waiting.event, waiting.blocker), (WaitEvent::LWLockOther, own));
    assert!(matches!(waiting.object, WaitObject::Latch(_)));
    drop(held);
    thread.join().unwrap();
    assert_eq!(LATCH.holder(), None);
}

#[test]
fn tasks_are_listed_while_they_live() {
    let task = Task::new("test");
    let id = task.id();
    assert_eq!(task_by_id(id).map(|t| t.id()), Some(id));
    assert!(tasks().iter().any(|t| t.id() == id));
    drop(task);
    assert!(task_by_id(id).is_none());
    assert!(tasks().iter().all(|t| t.id() != id));
}

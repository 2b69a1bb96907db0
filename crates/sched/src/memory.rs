//! Memory by session: the program's allocator counts what each task takes from the heap and gives
//! back, and a statement whose session holds more than it may ends with `53200`.
//!
//! * Only the thread that runs a task writes the task's counters (plain loads and stores); others
//!   read them. What a task frees that another had allocated is counted as its own, so a counter may
//!   be a little off, even below zero; all of them together are exact.
//! * What it is taken for is a word that the code above sets for a while ([`for_use`]); so the error
//!   can say what used the memory.
//! * Limits are looked at where interrupts are, every few calls of `check_interrupts`, never in the
//!   allocator, which could not fail a statement. One large allocation may go beyond the limit for
//!   that long.
//! * The limit of the whole server falls on the sessions that hold most: those with at least half of
//!   what the largest has.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};

use base::{Error, Result, err};
use mimalloc::MiMalloc;

use crate::local::local;
use crate::observe;
use crate::task::Task;

/// What memory is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Use {
    /// Whatever has no word of its own: expressions, values, messages, the session itself.
    Other,
    /// Plans and what leads to them.
    Planning,
    /// Rows to be sorted.
    Sort,
    /// Hash tables of joins and set operations.
    Hash,
    /// Groups of aggregates.
    Aggregate,
    /// Rows that are kept: of cursors, subqueries, windows.
    Rows,
    /// Definitions.
    Catalog,
}

impl Use {
    /// All of them, in their order.
    pub const ALL: [Use; 7] =
        [Use::Other, Use::Planning, Use::Sort, Use::Hash, Use::Aggregate, Use::Rows, Use::Catalog];

    /// As views and errors name it.
    pub fn name(self) -> &'static str {
        match self {
            Use::Other => "other",
            Use::Planning => "planning",
            Use::Sort => "sort",
            Use::Hash => "hash tables",
            Use::Aggregate => "aggregates",
            Use::Rows => "kept rows",
            Use::Catalog => "definitions",
        }
    }
}

/// A task's counters, in bytes.
pub struct Account {
    used: AtomicI64,
    peak: AtomicI64,
    uses: [AtomicI64; Use::ALL.len()],
    current: AtomicU8,
    /// The part of `used` that is in the server's sum.
    settled: AtomicI64,
    /// Most that the session may hold; 0: no limit of its own.
    limit: AtomicI64,
    /// The running statement has been told.
    told: AtomicBool,
}

/// A resting task may differ by so much from what the server's sum knows of it: a shared counter
/// that every statement changed would be contended.
const UNSETTLED_MAX: i64 = 64 << 10;

/// Sum over all tasks, brought up to date when they look.
static SERVER: AtomicI64 = AtomicI64::new(0);
/// Most that all sessions may hold together; 0: no limit.
static SERVER_LIMIT: AtomicI64 = AtomicI64::new(0);

/// A copy of a task's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes held now.
    pub used: i64,
    /// Most that it ever held when it looked.
    pub peak: i64,
    /// By what it was taken for, in the order of [`Use::ALL`].
    pub uses: [i64; Use::ALL.len()],
    /// Its limit; 0: none.
    pub limit: i64,
}

impl Account {
    pub(crate) const fn new() -> Account {
        Account {
            used: AtomicI64::new(0),
            peak: AtomicI64::new(0),
            uses: [const { AtomicI64::new(0) }; Use::ALL.len()],
            current: AtomicU8::new(0),
            settled: AtomicI64::new(0),
            limit: AtomicI64::new(0),
            told: AtomicBool::new(false),
        }
    }

    #[inline]
    fn note(&self, bytes: i64) {
        add(&self.used, bytes);
        // `current` is always one of the words.
        if let Some(cell) = self.uses.get(usize::from(self.current.load(Ordering::Relaxed))) {
            add(cell, bytes);
        }
    }

    /// What is held and for what.
    pub fn usage(&self) -> Usage {
        let get = |cell: &AtomicI64| cell.load(Ordering::Relaxed).max(0);
        let used = get(&self.used);
        Usage {
            used,
            peak: get(&self.peak).max(used),
            uses: std::array::from_fn(|i| get(&self.uses[i])),
            limit: get(&self.limit),
        }
    }

    /// A statement begins: the session may hold so many bytes (0: no limit) before it is told.
    pub fn begin_statement(&self, limit: i64) {
        self.limit.store(limit, Ordering::Relaxed);
        self.told.store(false, Ordering::Relaxed);
    }

    /// The task has nothing to do for now: what it gave back is free for others.
    #[inline]
    pub fn rest(&self) {
        let used = self.used.load(Ordering::Relaxed);
        if (used - self.settled.load(Ordering::Relaxed)).abs() > UNSETTLED_MAX {
            self.settle();
        }
    }

    /// Brings the server's sum up to date.
    fn settle(&self) -> i64 {
        let used = self.used.load(Ordering::Relaxed);
        let change = used - self.settled.load(Ordering::Relaxed);
        if change != 0 {
            self.settled.store(used, Ordering::Relaxed);
            SERVER.fetch_add(change, Ordering::Relaxed);
            if used > self.peak.load(Ordering::Relaxed) {
                self.peak.store(used, Ordering::Relaxed);
            }
        }
        used
    }

    /// `53200` when the session or the server holds too much, once in a statement.
    pub(crate) fn check(&self, pid: i32) -> Result<()> {
        let used = self.settle();
        let limit = self.limit.load(Ordering::Relaxed);
        let (server, most) = (SERVER.load(Ordering::Relaxed), SERVER_LIMIT.load(Ordering::Relaxed));
        let own = limit > 0 && used > limit;
        if !own && (most == 0 || server <= most || pid == 0) {
            return Ok(());
        }
        if self.told.load(Ordering::Relaxed) {
            return Ok(());
        }
        // The sum may still have what somebody has just given back: now it is worth a look at all.
        let (server, largest) = if own { (server, 0) } else { all() };
        if !own && (server <= most || used < largest / 2) {
            return Ok(());
        }
        self.told.store(true, Ordering::Relaxed);
        Err(self.error(if own {
            format!("session_memory_limit is {}", size(limit))
        } else {
            format!("all sessions hold {}, server_memory_limit is {}", size(server), size(most))
        }))
    }

    fn error(&self, why: String) -> Error {
        let usage = self.usage();
        let mut uses: Vec<_> = Use::ALL.into_iter().zip(usage.uses).filter(|u| u.1 > 0).collect();
        uses.sort_by_key(|u| -u.1);
        let list: Vec<_> = uses.iter().map(|(u, b)| format!("{} {}", u.name(), size(*b))).collect();
        err!(OUT_OF_MEMORY, "out of memory").detail(format!(
            "The session holds {} ({}); {why}.",
            size(usage.used),
            list.join(", ")
        ))
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        SERVER.fetch_sub(*self.settled.get_mut(), Ordering::Relaxed);
    }
}

/// What all tasks hold, and the most that a session holds.
fn all() -> (i64, i64) {
    observe::tasks().into_iter().fold((0, 0), |(sum, largest), task| {
        let used = task.memory().used.load(Ordering::Relaxed);
        (sum + used, if task.pid() == 0 { largest } else { largest.max(used) })
    })
}

fn size(bytes: i64) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} bytes"),
        10_000..=9_999_999 => format!("{} kB", bytes >> 10),
        _ => format!("{} MB", bytes >> 20),
    }
}

/// Only the running task's thread writes, so this is no race.
#[inline]
fn add(cell: &AtomicI64, bytes: i64) {
    cell.store(cell.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
}

/// Bytes that all sessions hold together, as far as they have looked.
pub fn server_bytes() -> i64 {
    SERVER.load(Ordering::Relaxed).max(0)
}

/// Most bytes that all sessions may hold together from now on; 0: no limit.
pub fn set_server_limit(bytes: i64) {
    SERVER_LIMIT.store(bytes, Ordering::Relaxed);
}

/// That limit; 0: none.
pub fn server_limit() -> i64 {
    SERVER_LIMIT.load(Ordering::Relaxed)
}

/// Until the guard goes the running task's memory is taken for this.
pub fn for_use(what: Use) -> UseGuard {
    let before = with_account(|a| a.current.swap(what as u8, Ordering::Relaxed));
    UseGuard(before.unwrap_or(0))
}

/// See [`for_use`]. Stays with its task.
pub struct UseGuard(u8);

impl Drop for UseGuard {
    fn drop(&mut self) {
        with_account(|a| a.current.store(self.0, Ordering::Relaxed));
    }
}

fn with_account<R>(f: impl FnOnce(&Account) -> R) -> Option<R> {
    // SAFETY: whoever set the thread's task keeps it alive until it is changed, on this thread.
    let task: &Task = unsafe { local().task.get().as_ref() }?;
    Some(f(task.memory()))
}

/// The allocator, counted. A program that wants the counts makes it its global allocator.
pub struct Counting;

#[inline]
fn note(bytes: i64) {
    with_account(|a| a.note(bytes));
}

// SAFETY: everything is mimalloc's; counting allocates nothing, and the cells it reads
// live as long as their thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as i64);
        // SAFETY: as above.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        note(-(layout.size() as i64));
        // SAFETY: as above.
        unsafe { MiMalloc.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note(new_size as i64 - layout.size() as i64);
        // SAFETY: as above.
        unsafe { MiMalloc.realloc(place, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_beyond_its_limit_is_told_once_and_what_for() {
        let account = Account::new();
        account.begin_statement(1 << 20);
        account.note(1000);
        assert!(account.check(1).is_ok());
        account.current.store(Use::Hash as u8, Ordering::Relaxed);
        account.note(2 << 20);
        let error = account.check(1).unwrap_err();
        assert_eq!(error.code().as_str(), "53200");
        let detail = error.fields().detail.clone().unwrap();
        assert!(detail.contains("(hash tables 2048 kB, other 1000 bytes)"), "{detail}");
        assert!(account.check(1).is_ok(), "the clean-up is not disturbed");
        account.begin_statement(1 << 20);
        assert!(account.check(1).is_err());
        account.note(-(2 << 20));
        account.begin_statement(1 << 20);
        assert!(account.check(1).is_ok());
        let usage = account.usage();
        assert_eq!((usage.used, usage.limit), (1000, 1 << 20));
        assert!(usage.peak > 2 << 20);
    }

    #[test]
    fn what_has_ended_is_no_longer_in_the_sum() {
        let account = Account::new();
        account.note(5 << 30);
        account.settle();
        assert!(server_bytes() >= 5 << 30);
        drop(account);
        assert!(server_bytes() < 5 << 30);
    }
}

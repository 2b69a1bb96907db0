//! Memory by session: the program's allocator counts what each task takes from the heap and gives
//! back, and a statement whose session holds more than it may ends with `53200`.
//!
//! * Only the thread that runs a task writes the task's counters (plain loads and stores); others
//!   read them. What a task frees that another had allocated is counted as its own, so a counter may
//!   be a little off, even below zero; all of them together are exact.
//! * What it is taken for is a word that the code above sets for a while ([`for_use`]); so the error
//!   can say what used the memory.
//! * The allocator can't fail a statement. When a task comes to hold more than it may, or a step
//!   ([`STEP_BYTES`]) more than at the last look, the allocator has the next call of
//!   `check_interrupts` look at the limits.
//! * An allocation that is about to be filled at once asks before ([`ask`]). Others only reserve
//!   addresses until somebody writes there, in a loop that looks for interrupts: large blocks are
//!   mapped, and grow, without being touched (`large`).
//! * The limit of the whole server ends the statement of the session that holds most, which may wait
//!   for something: [`Interrupt::OutOfMemory`]. What it is about to give back counts as given, so
//!   that it remains the only one. Should the sessions go far beyond the limit meanwhile
//!   ([`SLACK_BYTES`]), it falls on each that holds a good part of what the largest does.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};

use base::{Error, Result, err};
use mimalloc::MiMalloc;

use crate::large;
use crate::local::local;
use crate::observe;
use crate::task::{Interrupt, Task, TaskRef};

/// The purpose that memory is taken for.
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
    published: AtomicI64,
    /// Most that the session may hold; 0: no limit of its own.
    limit: AtomicI64,
    /// The allocator has the limits looked at when this much is held.
    watch: AtomicI64,
    /// The running statement has been told.
    told: AtomicBool,
    /// A statement runs.
    active: AtomicBool,
    /// The running statement is to end, since the server holds too much.
    doomed: AtomicBool,
}

/// A resting task may differ by so much from what the server's sum knows of it: a shared counter
/// that every statement changed would be contended.
const UNPUBLISHED_MAX: i64 = 64 << 10;

/// A task whose memory grows looks at the limits each time it has grown by so much.
const STEP_BYTES: i64 = 1 << 20;

/// Sessions that hold so much more than the server's limit no longer wait for the largest to end.
const SLACK_BYTES: i64 = 64 << 20;

/// Less than this is had without asking.
const ASKED_BYTES: usize = 64 << 10;

/// Sum over all tasks, brought up to date when they look.
static SERVER: AtomicI64 = AtomicI64::new(0);
/// Most that all sessions may hold together; 0: no limit.
static SERVER_LIMIT: AtomicI64 = AtomicI64::new(0);

/// The bytes that one task holds and another will give back.
pub(crate) struct Given {
    used: i64,
    uses: [i64; Use::ALL.len()],
}

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
            published: AtomicI64::new(0),
            limit: AtomicI64::new(0),
            watch: AtomicI64::new(STEP_BYTES),
            told: AtomicBool::new(false),
            active: AtomicBool::new(false),
            doomed: AtomicBool::new(false),
        }
    }

    /// Counts; true when it is time to look at the limits.
    #[inline]
    fn note(&self, bytes: i64) -> bool {
        let used = self.used.load(Ordering::Relaxed) + bytes;
        self.used.store(used, Ordering::Relaxed);
        // `current` is always one of the words.
        if let Some(cell) = self.uses.get(usize::from(self.current.load(Ordering::Relaxed))) {
            add(cell, bytes);
        }
        used >= self.watch.load(Ordering::Relaxed)
    }

    /// The bytes that are held, by purpose.
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

    /// Gives the running task's memory to another: it counts as nothing here. Only for the task's own thread.
    pub(crate) fn give_away(&self) -> Given {
        let take = |cell: &AtomicI64| cell.swap(0, Ordering::Relaxed);
        Given { used: take(&self.used), uses: std::array::from_fn(|i| take(&self.uses[i])) }
    }

    /// The running task holds what another gave away.
    pub(crate) fn take_over(&self, given: &Given) {
        add(&self.used, given.used);
        for (own, given) in self.uses.iter().zip(given.uses) {
            add(own, given);
        }
    }

    /// A statement begins: the session may hold so many bytes (0: no limit) before it is told.
    pub fn begin_statement(&self, limit: i64) {
        self.limit.store(limit, Ordering::Relaxed);
        self.told.store(false, Ordering::Relaxed);
        self.doomed.store(false, Ordering::Relaxed);
        self.active.store(true, Ordering::Relaxed);
        self.watch_from(self.used.load(Ordering::Relaxed));
    }

    /// The limits are looked at when a step more is held, or the limit is reached.
    fn watch_from(&self, used: i64) {
        let step = used.max(0) + STEP_BYTES;
        let limit = self.limit.load(Ordering::Relaxed);
        let watch = if limit > 0 && used <= limit { step.min(limit + 1) } else { step };
        self.watch.store(watch, Ordering::Relaxed);
    }

    /// The task has nothing to do for now: what it gave back is free for others.
    #[inline]
    pub fn rest(&self) {
        self.active.store(false, Ordering::Relaxed);
        let used = self.used.load(Ordering::Relaxed);
        if (used - self.published.load(Ordering::Relaxed)).abs() > UNPUBLISHED_MAX {
            self.publish();
        }
    }

    /// Brings the server's sum up to date.
    fn publish(&self) -> i64 {
        let used = self.used.load(Ordering::Relaxed);
        let change = used - self.published.load(Ordering::Relaxed);
        if change != 0 {
            self.published.store(used, Ordering::Relaxed);
            SERVER.fetch_add(change, Ordering::Relaxed);
            if used > self.peak.load(Ordering::Relaxed) {
                self.peak.store(used, Ordering::Relaxed);
            }
        }
        used
    }

    /// `53200` when the session or the server holds too much, once in a statement.
    pub(crate) fn check(&self, pid: i32) -> Result<()> {
        self.check_with(pid, 0).or_else(|error| match self.told.swap(true, Ordering::Relaxed) {
            true => Ok(()),
            false => Err(error),
        })
    }

    /// `53200` when the session or the server would hold too much with so many bytes more.
    fn check_with(&self, pid: i32, more: i64) -> Result<()> {
        let used = self.publish();
        self.watch_from(used);
        let limit = self.limit.load(Ordering::Relaxed);
        if limit > 0 && used + more > limit {
            return Err(self.error(more, format!("session_memory_limit is {}", size(limit))));
        }
        let most = SERVER_LIMIT.load(Ordering::Relaxed);
        if most == 0 || pid == 0 || SERVER.load(Ordering::Relaxed) + more <= most {
            self.told.store(false, Ordering::Relaxed);
            return Ok(());
        }
        self.check_server(used + more, more, most)
    }

    /// The sessions hold too much, as it seems: ends the statement that holds most.
    #[cold]
    fn check_server(&self, used: i64, more: i64, most: i64) -> Result<()> {
        // The sum may still have what somebody has just given back: now it is worth a look at all.
        let held = Held::by_all();
        let server = held.sum + more;
        if server <= most {
            return Ok(());
        }
        let largest = held.largest.as_ref().map_or(0, |task| task.memory().held());
        // A task that holds little compared with others, idle ones too, is not the one to end.
        let share = held.top / 4;
        let enough = server - held.ending <= most;
        if used >= share && (!enough && used >= largest || server > most + SLACK_BYTES) {
            return Err(self.server_error(more, server, most));
        }
        if !enough
            && largest >= share
            && let Some(task) = held.largest
        {
            task.memory().doomed.store(true, Ordering::Relaxed);
            task.interrupt(Interrupt::OutOfMemory);
        }
        Ok(())
    }

    /// The error of [`Interrupt::OutOfMemory`].
    pub(crate) fn doom(&self) -> Error {
        self.told.store(true, Ordering::Relaxed);
        self.server_error(0, server_bytes(), server_limit())
    }

    fn server_error(&self, more: i64, server: i64, most: i64) -> Error {
        let why =
            format!("all sessions hold {}, server_memory_limit is {}", size(server), size(most));
        self.error(more, why)
    }

    fn held(&self) -> i64 {
        self.used.load(Ordering::Relaxed)
    }

    #[cold]
    fn error(&self, more: i64, why: String) -> Error {
        let usage = self.usage();
        let mut uses: Vec<_> = Use::ALL.into_iter().zip(usage.uses).filter(|u| u.1 > 0).collect();
        uses.sort_by_key(|u| -u.1);
        let list: Vec<_> = uses.iter().map(|(u, b)| format!("{} {}", u.name(), size(*b))).collect();
        let more =
            if more > 0 { format!(" and asks for {} more", size(more)) } else { String::new() };
        err!(OUT_OF_MEMORY, "out of memory").detail(format!(
            "The session holds {} ({}){more}; {why}.",
            size(usage.used),
            list.join(", ")
        ))
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        SERVER.fetch_sub(*self.published.get_mut(), Ordering::Relaxed);
    }
}

/// The memory that tasks hold.
struct Held {
    /// All of them.
    sum: i64,
    /// The session that holds most of those that run a statement which has not been told to end.
    largest: Option<TaskRef>,
    /// The memory of tasks that have been told to end.
    ending: i64,
    /// Most that any session holds.
    top: i64,
}

impl Held {
    fn by_all() -> Held {
        let mut held = Held { sum: 0, largest: None, ending: 0, top: 0 };
        let mut most = 0;
        for task in observe::tasks() {
            let account = task.memory();
            let used = account.held();
            held.sum += used;
            if task.pid() != 0 {
                held.top = held.top.max(used);
            }
            if task.pid() == 0 || !account.active.load(Ordering::Relaxed) {
                continue;
            }
            if account.doomed.load(Ordering::Relaxed) || account.told.load(Ordering::Relaxed) {
                held.ending += used;
            } else if used > most {
                most = used;
                held.largest = Some(task);
            }
        }
        held
    }
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

/// Whether the running task may take so many bytes more, which it is about to fill: what makes something of
/// a size that a user's data decides asks first.
///
/// # Errors
/// `53200`; a pending interrupt's error.
#[inline]
pub fn ask(bytes: usize) -> Result<()> {
    if bytes < ASKED_BYTES { Ok(()) } else { ask_for_many(bytes) }
}

#[cold]
fn ask_for_many(bytes: usize) -> Result<()> {
    crate::check_interrupts()?;
    let task = local().current();
    task.memory().check_with(task.pid(), i64::try_from(bytes).unwrap_or(i64::MAX / 4))
}

/// Memory that the running task has from the system and not from the allocator; counted while this lives. What
/// another task drops counts as that one's, as with the allocator.
#[derive(Debug, Default)]
pub struct Mapped(i64);

impl Mapped {
    /// So many bytes are held from now on.
    pub fn set(&mut self, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX / 4);
        note(bytes - self.0);
        self.0 = bytes;
    }

    /// The bytes that are held.
    pub fn bytes(&self) -> usize {
        self.0 as usize
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        note(-self.0);
    }
}

/// Bytes that the running task may still take before its own limit; None: there is no limit.
pub fn left() -> Option<usize> {
    with_account(|account| {
        let limit = account.limit.load(Ordering::Relaxed);
        (limit > 0).then(|| usize::try_from(limit - account.held()).unwrap_or(0))
    })?
}

/// The allocator, counted. A program that wants the counts makes it its global allocator.
pub struct Counting;

#[inline]
fn note(bytes: i64) {
    let local = local();
    // SAFETY: whoever set the thread's task keeps it alive until it is changed, on this thread.
    let task: Option<&Task> = unsafe { local.task.get().as_ref() };
    if let Some(task) = task
        && task.memory().note(bytes)
    {
        // Nothing here may allocate: the next call of `check_interrupts` does the rest.
        local.countdown.set(0);
    }
}

// SAFETY: everything is mimalloc's or a mapping of its own, by the layout alone, so that what was had from one is
// given back to the same; counting allocates nothing, and the cells it reads live as long as their thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as i64);
        if large::is(layout) {
            return large::map(layout.size());
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as i64);
        if large::is(layout) {
            return large::map(layout.size());
        }
        // SAFETY: as above.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        note(-(layout.size() as i64));
        if large::is(layout) {
            // SAFETY: a block of this size is a mapping.
            return unsafe { large::unmap(place, layout.size()) };
        }
        // SAFETY: as above.
        unsafe { MiMalloc.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note(new_size as i64 - layout.size() as i64);
        // SAFETY: the new size comes with the caller's promise that it makes a layout.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        match (large::is(layout), large::is(new)) {
            // SAFETY: as above.
            (false, false) => unsafe { MiMalloc.realloc(place, layout, new_size) },
            // SAFETY: as above.
            (true, true) => unsafe { large::remap(place, layout.size(), new_size) },
            // SAFETY: as above; the blocks are two, and each has as many bytes as are copied.
            (was_large, _) => unsafe {
                let to = if was_large { MiMalloc.alloc(new) } else { large::map(new_size) };
                if !to.is_null() {
                    std::ptr::copy_nonoverlapping(place, to, layout.size().min(new_size));
                    match was_large {
                        true => large::unmap(place, layout.size()),
                        false => MiMalloc.dealloc(place, layout),
                    }
                }
                to
            },
        }
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
    fn the_limits_are_looked_at_when_the_allocator_says_so() {
        let account = Account::new();
        account.begin_statement(3 << 20);
        assert!(!account.note(STEP_BYTES - 1), "not a step yet");
        assert!(account.note(1));
        assert!(account.check(1).is_ok());
        assert!(!account.note(STEP_BYTES - 1), "the next step counts from the look");
        assert!(account.note(1 << 20));
        assert!(account.check(1).is_ok());
        assert!(account.note(4096), "the limit comes before the next step");
        assert!(account.check(1).is_err());
    }

    #[test]
    fn who_asks_for_more_than_there_is_does_not_get_it() {
        let account = Account::new();
        account.begin_statement(3 << 20);
        account.note(1 << 20);
        assert!(account.check_with(1, 2 << 20).is_ok());
        let error = account.check_with(1, 4 << 20).unwrap_err();
        let detail = error.fields().detail.clone().unwrap();
        assert!(detail.contains("and asks for 4096 kB more; session_memory_limit is"), "{detail}");
    }

    #[test]
    fn blocks_keep_their_bytes_between_small_and_large() {
        let layout = |size| Layout::from_size_align(size, 8).unwrap();
        let sizes = [1000, 40 << 20, 100 << 20, 33 << 20, 2000, 1 << 20, 64 << 20];
        // SAFETY: each block is used within its size, with the layout that it was made with.
        unsafe {
            let mut size = sizes[0];
            let mut place = Counting.alloc(layout(size));
            for n in 0..1000 {
                *place.add(n) = n as u8;
            }
            for next in &sizes[1..] {
                place = Counting.realloc(place, layout(size), *next);
                size = *next;
                assert!((0..1000).all(|n| *place.add(n) == n as u8), "{size}");
                *place.add(size - 1) = 1;
            }
            Counting.dealloc(place, layout(size));
            let zeros = Counting.alloc_zeroed(layout(50 << 20));
            assert_eq!(*zeros.add(49 << 20), 0);
            Counting.dealloc(zeros, layout(50 << 20));
        }
    }

    #[test]
    fn what_has_ended_is_no_longer_in_the_sum() {
        let account = Account::new();
        account.note(5 << 30);
        account.publish();
        assert!(server_bytes() >= 5 << 30);
        drop(account);
        assert!(server_bytes() < 5 << 30);
    }
}

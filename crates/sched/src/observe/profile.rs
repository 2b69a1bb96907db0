//! The sums of all waits: by session, statement, event and object an exact count, the time,
//! the longest wait and a histogram.
//!
//! Memory is bounded: a fixed number of rows (`wait_profile_size`) in shards by the key's hash,
//! each under a spin lock. A new key that finds its shard full takes the place of the row with the
//! least time, whose sums go to its event's row of *others*. So the sums over all rows of an event
//! are exact always; only the division among small rows is lost.
//!
//! Sessions' waits for their clients are not summed here but by each session (`idle.rs`); when it ends its
//! sums come here.
//!
//! Finished waits are kept. Those under way are added to what is read (`under_way.rs`).
//!
//! The key's object is coarser than the wait's where each wait would have one of its own: pages read
//! and written count for their file, transactions and log positions for their event.

use std::collections::HashMap;

use base::WaitEvent;
use base::settings::{live_bool, live_int, setting};
use base::waits::WAITS;

use super::idle::forget_idle_sums;
use super::{WaitObject, WaitRecord, pending, tasks, under_way};
use crate::TaskRef;
use crate::spin::SpinLock;

/// Classes of a histogram: class `i` counts the waits of at least 2^i and less than 2^(i+1)
/// nanoseconds; the last one also the longer ones (from 9 minutes on).
pub const CLASSES: usize = 40;

const SHARDS: usize = 256;

/// The class of a wait in a histogram.
pub(super) fn class_of(ns: u64) -> usize {
    (ns.max(1).ilog2() as usize).min(CLASSES - 1)
}

/// The key by which waits are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProfileKey {
    /// The session's or background thread's number; 0 with `pg_wait_sampling.profile_pid = off`.
    pub pid: i32,
    /// The statement's query identifier; 0: none, or with
    /// `pg_wait_sampling.profile_queries = none`.
    pub statement: u64,
    /// The event.
    pub event: WaitEvent,
    /// The object; see the module for how coarse.
    pub object: WaitObject,
}

/// Count, time and distribution of some waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitSums {
    /// How many; waits under way count with the time that they have lasted.
    pub count: u64,
    /// Their time in nanoseconds.
    pub total_ns: u64,
    /// The longest of them, in nanoseconds.
    pub longest_ns: u64,
    /// See [`CLASSES`].
    pub classes: [u64; CLASSES],
}

impl WaitSums {
    const ZERO: WaitSums = WaitSums { count: 0, total_ns: 0, longest_ns: 0, classes: [0; CLASSES] };

    /// Adds another's sums.
    pub fn merge(&mut self, other: &WaitSums) {
        self.parts().merge(other);
    }

    fn add_under_way(&mut self, wait: &WaitRecord) {
        self.parts().add(under_way::since_reset(wait.began_ns, wait.duration_ns));
    }

    fn parts(&mut self) -> Parts<'_> {
        let WaitSums { count, total_ns, longest_ns, classes } = self;
        Parts { count, total_ns, longest_ns, classes }
    }
}

impl Default for WaitSums {
    fn default() -> WaitSums {
        WaitSums::ZERO
    }
}

/// A row of the profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileRow {
    /// The task that waits; None: the event's evicted rows.
    pub key: Option<ProfileKey>,
    /// The event.
    pub event: WaitEvent,
    /// The sums.
    pub sums: WaitSums,
}

/// A row but for its histogram: what a wait looks at and changes is one cache line here and one there.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Row {
    key: ProfileKey,
    count: u64,
    total_ns: u64,
    longest_ns: u64,
}

const _: () = assert!(size_of::<Row>() == 64);

type Classes = [u64; CLASSES];

struct Shard {
    /// The rows' hashes, side by side to be looked through quickly.
    hashes: Vec<u32>,
    rows: Vec<Row>,
    /// The rows' histograms.
    classes: Vec<Classes>,
}

/// Sums where they lie: together, or in a row and its histogram.
struct Parts<'a> {
    count: &'a mut u64,
    total_ns: &'a mut u64,
    longest_ns: &'a mut u64,
    classes: &'a mut Classes,
}

impl Parts<'_> {
    #[inline]
    fn add(&mut self, ns: u64) {
        *self.count += 1;
        *self.total_ns += ns;
        *self.longest_ns = ns.max(*self.longest_ns);
        self.classes[class_of(ns)] += 1;
    }

    fn merge(self, other: &WaitSums) {
        *self.count += other.count;
        *self.total_ns += other.total_ns;
        *self.longest_ns = other.longest_ns.max(*self.longest_ns);
        self.classes.iter_mut().zip(&other.classes).for_each(|(a, b)| *a += b);
    }
}

impl Row {
    fn new(key: ProfileKey) -> Row {
        Row { key, count: 0, total_ns: 0, longest_ns: 0 }
    }

    fn parts<'a>(&'a mut self, classes: &'a mut Classes) -> Parts<'a> {
        let Row { count, total_ns, longest_ns, .. } = self;
        Parts { count, total_ns, longest_ns, classes }
    }

    fn sums(&self, classes: &Classes) -> WaitSums {
        let (count, total_ns, longest_ns) = (self.count, self.total_ns, self.longest_ns);
        WaitSums { count, total_ns, longest_ns, classes: *classes }
    }
}

#[repr(align(128))]
struct Padded(SpinLock<Shard>);

static PROFILE: [Padded; SHARDS] = [const { Padded(SpinLock::new(Shard::EMPTY)) }; SHARDS];

static OTHERS: [SpinLock<WaitSums>; WAITS.len()] =
    [const { SpinLock::new(WaitSums::ZERO) }; WAITS.len()];

impl Shard {
    const EMPTY: Shard = Shard { hashes: Vec::new(), rows: Vec::new(), classes: Vec::new() };

    /// Changes the key's sums; `most` rows may be there, for which there is room. A row that had to go is
    /// returned.
    fn put(
        &mut self,
        key: &ProfileKey,
        hash: u32,
        most: usize,
        change: impl Fn(Parts<'_>),
    ) -> Option<(ProfileKey, WaitSums)> {
        let mut at = 0;
        while let Some(found) = self.hashes[at..].iter().position(|h| *h == hash) {
            at += found;
            if self.rows[at].key == *key {
                change(self.rows[at].parts(&mut self.classes[at]));
                return None;
            }
            at += 1;
        }
        let (mut row, mut classes) = (Row::new(*key), [0; CLASSES]);
        change(row.parts(&mut classes));
        if self.rows.len() < most {
            self.hashes.push(hash);
            self.rows.push(row);
            self.classes.push(classes);
            return None;
        }
        let least = (0..self.rows.len()).min_by_key(|i| self.rows[*i].total_ns)?;
        self.hashes[least] = hash;
        let gone = std::mem::replace(&mut self.rows[least], row);
        let its = std::mem::replace(&mut self.classes[least], classes);
        Some((gone.key, gone.sums(&its)))
    }

    /// The rows with their sums.
    fn sums(&self) -> impl Iterator<Item = (ProfileKey, WaitSums)> {
        self.rows.iter().zip(&self.classes).map(|(row, classes)| (row.key, row.sums(classes)))
    }

    fn clear(&mut self) {
        self.hashes.clear();
        self.rows.clear();
        self.classes.clear();
    }

    /// A row too many, after the bound was lowered.
    fn shrink(&mut self, most: usize) -> Option<(ProfileKey, WaitSums)> {
        if self.rows.len() <= most {
            return None;
        }
        self.hashes.pop();
        let (row, classes) = (self.rows.pop()?, self.classes.pop()?);
        Some((row.key, row.sums(&classes)))
    }
}

/// Adds waits that took so long, all of this one's task, statement, event and object.
pub(super) fn add(like: &WaitRecord, took_ns: impl Iterator<Item = u64> + Clone) {
    put(&key_of(like), |mut sums| took_ns.clone().for_each(|ns| sums.add(ns)));
}

/// Adds the waits for its client of a session that ends.
pub(super) fn add_idle(pid: i32, idle: &WaitSums) {
    if idle.count > 0 {
        put(&idle_key(pid), |sums| sums.merge(idle));
    }
}

/// Changes the sums of a key's row.
fn put(key: &ProfileKey, change: impl Fn(Parts<'_>)) {
    let hash = hash(key);
    let most = (live_int(setting::WAIT_PROFILE_SIZE) as usize).div_ceil(SHARDS);
    let shard = &PROFILE[hash as usize % SHARDS].0;
    let mut held = shard.lock();
    while held.rows.len() > most {
        let gone = held.shrink(most);
        drop(held);
        evict(gone);
        held = shard.lock();
    }
    if most == 0 {
        drop(held);
        return change(OTHERS[key.event as usize].lock().parts());
    }
    if held.rows.capacity() < most {
        held = grow(shard, held, most);
    }
    let gone = held.put(key, (hash >> 8) as u32, most, change);
    drop(held);
    evict(gone);
}

/// Makes room for `most` rows. Memory is asked for and given back outside of the lock.
#[cold]
fn grow<'a>(
    shard: &'a SpinLock<Shard>,
    held: crate::spin::SpinLockGuard<'a, Shard>,
    most: usize,
) -> crate::spin::SpinLockGuard<'a, Shard> {
    drop(held);
    let mut fresh = Shard {
        hashes: Vec::with_capacity(most),
        rows: Vec::with_capacity(most),
        classes: Vec::with_capacity(most),
    };
    let mut held = shard.lock();
    if held.rows.len() <= most {
        fresh.hashes.append(&mut held.hashes);
        fresh.rows.append(&mut held.rows);
        fresh.classes.append(&mut held.classes);
        std::mem::swap(&mut *held, &mut fresh);
    }
    drop(held);
    drop(fresh);
    shard.lock()
}

fn evict(row: Option<(ProfileKey, WaitSums)>) {
    if let Some((key, sums)) = row {
        OTHERS[key.event as usize].lock().merge(&sums);
    }
}

fn idle_key(pid: i32) -> ProfileKey {
    let pid = if by_pid() { pid } else { 0 };
    ProfileKey { pid, statement: 0, event: WaitEvent::ClientClientRead, object: WaitObject::None }
}

fn by_pid() -> bool {
    live_bool(setting::PG_WAIT_SAMPLING_PROFILE_PID)
}

fn key_of(record: &WaitRecord) -> ProfileKey {
    let by_query = base::settings::live_enum(setting::PG_WAIT_SAMPLING_PROFILE_QUERIES) != 0;
    let io = || record.event.info().kind == "IO";
    let object = match record.object {
        WaitObject::Transaction(_) | WaitObject::Position(_) => WaitObject::None,
        WaitObject::Page(page) if io() => WaitObject::File(page.rel),
        object => object,
    };
    ProfileKey {
        pid: if by_pid() { record.pid } else { 0 },
        statement: if by_query { record.statement } else { 0 },
        event: record.event,
        object,
    }
}

fn hash(key: &ProfileKey) -> u64 {
    let mix = |a: u64, b: u64| (a.rotate_left(25) ^ b).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let [first, second] = key.object.encode();
    let who = (key.pid as u64) << 8 | key.event as u64;
    let mixed = mix(mix(mix(mix(0, who), key.statement), first), second);
    mixed ^ mixed >> 32
}

/// All rows: those with a key, and for each event with evicted rows one without. Waits under way are in them.
pub fn profile() -> Vec<ProfileRow> {
    // The sessions first: none of those can end, and be counted twice, while they are kept here.
    let sessions = tasks();
    let (mut rows, under_way) = under_way::beside(&sessions, || finished_rows(&sessions));
    let by_session = live_int(setting::WAIT_PROFILE_SIZE) != 0;
    let mut places: HashMap<(Option<ProfileKey>, WaitEvent), usize> =
        rows.iter().enumerate().map(|(at, row)| ((row.key, row.event), at)).collect();
    for wait in &under_way {
        let key = by_session.then(|| key_of(wait));
        let at = *places.entry((key, wait.event)).or_insert_with(|| {
            rows.push(ProfileRow { key, event: wait.event, sums: WaitSums::ZERO });
            rows.len() - 1
        });
        rows[at].sums.add_under_way(wait);
    }
    rows
}

fn finished_rows(sessions: &[TaskRef]) -> Vec<ProfileRow> {
    pending::drain();
    let by_session = live_int(setting::WAIT_PROFILE_SIZE) != 0;
    let mut idle: HashMap<ProfileKey, WaitSums> = HashMap::new();
    let mut all_idle = WaitSums::ZERO;
    for task in sessions {
        let sums = task.idle_sums().read();
        if sums.count > 0 && by_session {
            idle.entry(idle_key(task.pid())).or_default().merge(&sums);
        } else {
            all_idle.merge(&sums);
        }
    }
    let mut rows = Vec::new();
    for shard in &PROFILE {
        // Room is made outside of the lock.
        let len = shard.0.lock().rows.len();
        let mut copy = Vec::with_capacity(len);
        let held = shard.0.lock();
        copy.extend(held.sums().take(len));
        drop(held);
        rows.extend(copy.into_iter().map(|(key, mut sums)| {
            if let Some(more) = idle.remove(&key) {
                sums.merge(&more);
            }
            ProfileRow { event: key.event, key: Some(key), sums }
        }));
    }
    let idle = idle.into_iter();
    rows.extend(idle.map(|(key, sums)| ProfileRow { event: key.event, key: Some(key), sums }));
    for wait in WAITS {
        let mut sums = OTHERS[wait.event as usize].lock().clone();
        if wait.event == WaitEvent::ClientClientRead {
            sums.merge(&all_idle);
        }
        if sums.count > 0 {
            rows.push(ProfileRow { key: None, event: wait.event, sums });
        }
    }
    rows
}

/// The sums of all waits since the start or the last reset, by event (`WaitEvent as usize`), those under way among
/// them. Makes no copy of the rows, so that looking every second costs little with thousands of them.
pub fn sums_by_event() -> Vec<WaitSums> {
    // The sessions first, as in `profile`.
    let sessions = tasks();
    let (mut sums, under_way) = under_way::beside(&sessions, || finished_of(&sessions));
    under_way.iter().for_each(|wait| sums[wait.event as usize].add_under_way(wait));
    sums
}

/// The same of finished waits alone, which never shrinks but by a reset.
pub fn finished_by_event() -> Vec<WaitSums> {
    finished_of(&tasks())
}

fn finished_of(sessions: &[TaskRef]) -> Vec<WaitSums> {
    pending::drain();
    let mut sums = vec![WaitSums::ZERO; WAITS.len()];
    let idle = &mut sums[WaitEvent::ClientClientRead as usize];
    sessions.iter().for_each(|task| idle.merge(&task.idle_sums().read()));
    for shard in &PROFILE {
        for (key, row) in shard.0.lock().sums() {
            sums[key.event as usize].merge(&row);
        }
    }
    sums.iter_mut().zip(&OTHERS).for_each(|(sum, others)| sum.merge(&others.lock()));
    sums
}

/// Forgets all sums.
pub fn reset_profile() {
    pending::drain();
    under_way::reset();
    for shard in &PROFILE {
        shard.0.lock().clear();
    }
    OTHERS.iter().for_each(|others| *others.lock() = WaitSums::ZERO);
    forget_idle_sums();
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: WaitEvent = WaitEvent::ExtensionExtension;

    fn key(pid: i32) -> ProfileKey {
        ProfileKey { pid, statement: 0, event: EVENT, object: WaitObject::None }
    }

    #[test]
    fn waits_fall_into_their_classes() {
        let mut sums = WaitSums::ZERO;
        [0, 1000, u64::MAX >> 8].into_iter().for_each(|ns| sums.parts().add(ns));
        assert_eq!((sums.count, sums.longest_ns), (3, u64::MAX >> 8));
        assert_eq!((sums.classes[0], sums.classes[9], sums.classes[39]), (1, 1, 1));
    }

    #[test]
    fn a_full_shard_gives_up_its_least_row_and_loses_no_time() {
        let mut shard = Shard::EMPTY;
        // All with one hash: the keys themselves are compared.
        for (pid, ns) in [(1, 50), (2, 10), (3, 40), (1, 50)] {
            assert!(shard.put(&key(pid), 7, 3, |mut sums| sums.add(ns)).is_none());
        }
        let gone = shard.put(&key(4), 7, 3, |mut sums| sums.add(20)).unwrap();
        assert_eq!((gone.0.pid, gone.1.total_ns), (2, 10));
        let total: u64 = shard.sums().map(|(_, sums)| sums.total_ns).sum();
        assert_eq!(total + gone.1.total_ns, 170);
        let first = shard.sums().find(|(k, _)| k.pid == 1).unwrap().1;
        assert_eq!((first.count, first.classes[5]), (2, 2));
        assert_eq!(shard.shrink(2).unwrap().0.pid, 3);
    }

    #[test]
    fn an_event_has_the_sums_of_its_rows_and_of_what_was_evicted() {
        const TIMEOUT: WaitEvent = WaitEvent::TimeoutProfileSampling;
        let put_one = |pid, ns| {
            let key = ProfileKey { event: TIMEOUT, ..key(pid) };
            put(&key, |mut sums| sums.add(ns));
        };
        (1..=3).for_each(|pid| put_one(pid, 100));
        evict(Some((ProfileKey { event: TIMEOUT, ..key(9) }, {
            let mut sums = WaitSums::ZERO;
            sums.parts().add(7);
            sums
        })));
        let of_rows = |event| {
            let mut sums = WaitSums::ZERO;
            profile().iter().filter(|row| row.event == event).for_each(|row| sums.merge(&row.sums));
            sums
        };
        let sums = sums_by_event();
        let timeouts = &sums[TIMEOUT as usize];
        assert_eq!((timeouts.count, timeouts.total_ns), (4, 307));
        assert_eq!(*timeouts, of_rows(TIMEOUT));
    }
}

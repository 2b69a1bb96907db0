//! The protocols of this crate as small models, explored in every order in which their steps can
//! happen (sequentially consistent, as the real ones are where it matters). Each model has a broken
//! variant with one step left out or moved, and the exploration must find what goes wrong then: so it
//! is known to be able to.

use std::collections::HashSet;
use std::hash::Hash;

/// Runs threads in every order. `step` performs a thread's next step, or returns None when the thread
/// waits or has ended; `check` is asked in each state, and told whether it is a last one.
fn explore<S: Clone + Eq + Hash>(
    start: S,
    threads: usize,
    step: impl Fn(&S, usize) -> Option<S>,
    check: impl Fn(&S, bool) -> bool,
) -> bool {
    let mut seen = HashSet::from([start.clone()]);
    let mut open = vec![start];
    while let Some(state) = open.pop() {
        let next: Vec<S> = (0..threads).filter_map(|thread| step(&state, thread)).collect();
        if !check(&state, next.is_empty()) {
            return false;
        }
        open.extend(next.into_iter().filter(|state| seen.insert(state.clone())));
    }
    true
}

mod commit {
    use super::*;

    const RUNNING: u8 = 0;
    const COMMITTING: u8 = 100;

    /// Three committers (threads 0 to 2) and two readers, who look at all transactions, one after
    /// the other, and then once more.
    #[derive(Clone, PartialEq, Eq, Hash, Default)]
    struct State {
        words: [u8; 3],
        csn: [u8; 3],
        reserved: u8,
        last: u8,
        step: [u8; 5],
        snapshot: [u8; 2],
        seen: [[bool; 6]; 2],
    }

    fn committer(s: &State, i: usize, mark_first: bool) -> Option<State> {
        let mut n = s.clone();
        n.step[i] += 1;
        let mark = |n: &mut State| n.words[i] = COMMITTING;
        let reserve = |n: &mut State| {
            n.reserved += 1;
            n.csn[i] = n.reserved;
        };
        match s.step[i] {
            0 if mark_first => mark(&mut n),
            0 => reserve(&mut n),
            1 if mark_first => reserve(&mut n),
            1 => mark(&mut n),
            2 => n.words[i] = n.csn[i],
            3 => n.last = n.last.max(n.csn[i]),
            _ => return None,
        }
        Some(n)
    }

    fn reader(s: &State, r: usize) -> Option<State> {
        let mut n = s.clone();
        n.step[3 + r] += 1;
        match s.step[3 + r] {
            0 => n.snapshot[r] = s.last,
            look @ 1..=6 => {
                let look = look as usize - 1;
                match s.words[look % 3] {
                    COMMITTING => return None,
                    RUNNING => {}
                    csn => n.seen[r][look] = csn <= s.snapshot[r],
                }
            }
            _ => return None,
        }
        Some(n)
    }

    fn snapshots_are_prefixes(mark_first: bool) -> bool {
        let step = |s: &State, thread: usize| match thread {
            0..3 => committer(s, thread, mark_first),
            _ => reader(s, thread - 3),
        };
        explore(State::default(), 5, step, |s, last| {
            !last
                || (0..2).all(|r| {
                    s.step[3 + r] == 7
                        && (0..6).all(|look| s.seen[r][look] == (s.csn[look % 3] <= s.snapshot[r]))
                })
        })
    }

    #[test]
    fn every_snapshot_sees_a_prefix_of_the_log_again_and_again() {
        assert!(snapshots_are_prefixes(true));
    }

    #[test]
    fn marking_after_the_place_is_reserved_would_be_too_late() {
        assert!(!snapshots_are_prefixes(false));
    }
}

mod horizon {
    use super::*;

    /// Thread 0 commits, thread 1 registers a snapshot, threads 2 and 3 compute the horizon.
    #[derive(Clone, PartialEq, Eq, Hash, Default)]
    struct State {
        last: u8,
        bound: u8,
        slot: Option<u8>,
        published: u8,
        step: [u8; 4],
        snapshot: u8,
        newest: [u8; 2],
        least: [u8; 2],
        found: [Option<u8>; 2],
        /// The list's bound and its only member.
        live: (u8, Option<u8>),
    }

    fn register(s: &State, recheck: bool) -> Option<State> {
        let mut n = s.clone();
        n.step[1] += 1;
        match s.step[1] {
            0 => n.snapshot = s.last,
            1 => n.slot = Some(s.snapshot),
            2 if recheck && s.bound > s.snapshot => n.step[1] = 0,
            2 => {}
            _ => return None,
        }
        Some(n)
    }

    fn compute(s: &State, i: usize) -> Option<State> {
        let mut n = s.clone();
        n.step[2 + i] += 1;
        match s.step[2 + i] {
            0 => n.newest[i] = s.last,
            1 => n.bound = s.bound.max(s.newest[i]),
            2 => {
                n.least[i] = s.slot.map_or(s.newest[i], |csn| csn.min(s.newest[i]));
                n.found[i] = s.slot;
            }
            3 => {
                n.published = s.published.max(s.least[i]);
                if s.live.0 <= s.newest[i] {
                    n.live = (s.newest[i], s.found[i]);
                }
            }
            4 => n.step[2 + i] = 0,
            _ => return None,
        }
        Some(n)
    }

    fn is_safe(recheck: bool) -> bool {
        let step = |s: &State, thread: usize| match thread {
            0 if s.last < 4 => Some(State { last: s.last + 1, ..s.clone() }),
            0 => None,
            1 => register(s, recheck),
            _ => compute(s, thread - 2),
        };
        explore(State::default(), 4, step, |s, _| {
            let listed = s.snapshot >= s.live.0 || s.live.1 == Some(s.snapshot);
            s.step[1] < 3 || (s.published <= s.snapshot && listed)
        })
    }

    #[test]
    fn the_horizon_never_passes_a_registered_snapshot() {
        assert!(is_safe(true));
    }

    #[test]
    fn a_registration_without_the_second_look_would_be_missed() {
        assert!(!is_safe(false));
    }
}

mod live {
    use super::*;

    /// Thread 0 commits. Thread 1 uses a snapshot, then a newer one as well, which it holds beyond its
    /// statement. Thread 2 makes lists.
    #[derive(Clone, PartialEq, Eq, Hash, Default)]
    struct State {
        last: u8,
        bound: u8,
        first: u8,
        second: u8,
        snapshot: Option<u8>,
        newer: Option<u8>,
        held: Option<u8>,
        step: [u8; 3],
        /// The newest version that the scan has read.
        newest: u8,
        read: [Option<u8>; 3],
        /// The bound, and the members.
        list: (u8, [Option<u8>; 2]),
    }

    fn session(s: &State) -> Option<State> {
        let mut n = s.clone();
        n.step[1] += 1;
        match s.step[1] {
            0 => n.first = s.last,
            1 => n.snapshot = Some(s.first),
            2 if s.bound > s.first => n.step[1] = 0,
            3 => n.second = s.last,
            4 => n.newer = Some(s.second),
            5 if s.bound > s.second => n.step[1] = 3,
            6 => n.held = Some(s.second),
            7 => n.newer = None,
            // The first is given up: the oldest is the one that is held.
            8 => n.snapshot = Some(s.second),
            2 | 5 => {}
            _ => return None,
        }
        Some(n)
    }

    fn scan(s: &State, order: [u8; 3]) -> Option<State> {
        let mut n = s.clone();
        n.step[2] += 1;
        match s.step[2] {
            0 => n.newest = s.last,
            1 => n.bound = s.bound.max(s.newest),
            at @ 2..=4 => match order[at as usize - 2] {
                0 => n.read[0] = s.newer,
                1 => n.read[1] = s.held,
                _ => n.read[2] = s.snapshot,
            },
            5 => {
                let bound = s.read[0].map_or(s.newest, |newer| newer.min(s.newest));
                n.list = (bound, [s.read[1], s.read[2]]);
                n.step[2] = 0;
            }
            _ => return None,
        }
        Some(n)
    }

    fn misses_none(order: [u8; 3]) -> bool {
        let step = |s: &State, thread: usize| match thread {
            0 if s.last < 4 => Some(State { last: s.last + 1, ..s.clone() }),
            0 => None,
            1 => session(s),
            _ => scan(s, order),
        };
        explore(State::default(), 3, step, |s, _| {
            let listed = |csn| csn >= s.list.0 || s.list.1.contains(&Some(csn));
            let first = (3..9).contains(&s.step[1]);
            (!first || listed(s.first)) && (s.step[1] < 6 || listed(s.second))
        })
    }

    #[test]
    fn no_list_misses_a_snapshot() {
        assert!(misses_none([0, 1, 2]));
    }

    #[test]
    fn reading_what_is_held_first_would_miss_one() {
        assert!(!misses_none([1, 2, 0]));
    }
}

mod fast_path {
    use super::*;

    /// Threads 0 and 1 take a weak lock, each under its own spin lock; thread 2 a strong one.
    #[derive(Clone, PartialEq, Eq, Hash, Default)]
    struct State {
        strong: bool,
        spin: [Option<u8>; 2],
        noted: [bool; 2],
        /// Holders of the lock in the shared table.
        shared: [bool; 3],
        counter_was_zero: [bool; 2],
        step: [u8; 3],
    }

    fn weak(s: &State, i: usize) -> Option<State> {
        let mut n = s.clone();
        n.step[i] += 1;
        match s.step[i] {
            0 if s.spin[i].is_none() => n.spin[i] = Some(i as u8),
            1 => n.counter_was_zero[i] = !s.strong,
            2 => {
                n.noted[i] = s.counter_was_zero[i];
                n.spin[i] = None;
            }
            3 if s.counter_was_zero[i] => {}
            3 if !s.shared[2] => n.shared[i] = true,
            _ => return None,
        }
        Some(n)
    }

    fn strong(s: &State, counter_first: bool) -> Option<State> {
        let mut n = s.clone();
        n.step[2] += 1;
        let visit = |n: &mut State, i: usize| {
            n.shared[i] |= std::mem::take(&mut n.noted[i]);
        };
        match s.step[2] {
            0 => n.strong = counter_first,
            at @ 1..=2 if s.spin[at as usize - 1].is_none() => visit(&mut n, at as usize - 1),
            3 => n.strong = true,
            4 if !s.shared[0] && !s.shared[1] => n.shared[2] = true,
            _ => return None,
        }
        Some(n)
    }

    fn excludes(counter_first: bool) -> bool {
        let step = |s: &State, thread: usize| match thread {
            0..2 => weak(s, thread),
            _ => strong(s, counter_first),
        };
        explore(State::default(), 3, step, |s, _| {
            let weak_held = (0..2).any(|i| s.noted[i] || s.shared[i]);
            !(s.shared[2] && weak_held)
        })
    }

    #[test]
    fn a_strong_locker_finds_every_weak_lock() {
        assert!(excludes(true));
    }

    #[test]
    fn visiting_sessions_before_the_counter_is_raised_would_miss_some() {
        assert!(!excludes(false));
    }
}

mod waiting {
    use super::*;

    /// Thread 0 waits for thread 1's transaction.
    #[derive(Clone, PartialEq, Eq, Hash, Default)]
    struct State {
        ended: bool,
        registered: bool,
        token: bool,
        somebody_waits: bool,
        step: [u8; 2],
    }

    const PARKED: u8 = 2;
    const DONE: u8 = 3;

    fn waiter(s: &State, register_first: bool) -> Option<State> {
        let mut n = s.clone();
        n.step[0] += 1;
        match s.step[0] {
            0 if register_first => n.registered = true,
            1 if !register_first => n.registered = true,
            0 | 1 if s.ended => n.step[0] = DONE,
            0 | 1 => {}
            PARKED if s.token => {}
            _ => return None,
        }
        Some(n)
    }

    fn ender(s: &State) -> Option<State> {
        let mut n = s.clone();
        n.step[1] += 1;
        match s.step[1] {
            0 => n.ended = true,
            1 => n.somebody_waits = s.registered,
            2 => n.token = s.somebody_waits,
            _ => return None,
        }
        Some(n)
    }

    fn always_wakes(register_first: bool) -> bool {
        let step = |s: &State, thread: usize| match thread {
            0 => waiter(s, register_first),
            _ => ender(s),
        };
        explore(State::default(), 2, step, |s, last| !last || s.step[0] == DONE)
    }

    #[test]
    fn a_waiter_is_always_woken() {
        assert!(always_wakes(true));
    }

    #[test]
    fn looking_before_registering_would_lose_the_wake_up() {
        assert!(!always_wakes(false));
    }
}

mod carried_rows {
    use super::*;

    /// Thread 0 carries a shared row lock over to a new version while thread 1, its holder, ends.
    #[derive(Clone, PartialEq, Eq, Hash, Default)]
    struct State {
        ended: bool,
        in_shard: bool,
        in_list: bool,
        taken: bool,
        step: [u8; 2],
    }

    fn carry(s: &State, look_again: bool) -> Option<State> {
        let mut n = s.clone();
        n.step[0] += 1;
        match s.step[0] {
            0 if s.ended => n.step[0] = 9,
            0 => {}
            1 => n.in_shard = true,
            // Under the session's spin lock.
            2 if look_again && s.ended => {}
            2 => {
                n.in_list = true;
                n.step[0] = 9;
            }
            3 => n.in_shard = false,
            _ => return None,
        }
        Some(n)
    }

    fn end(s: &State) -> Option<State> {
        let mut n = s.clone();
        n.step[1] += 1;
        match s.step[1] {
            0 => n.ended = true,
            1 => n.taken = std::mem::take(&mut n.in_list),
            2 if s.taken => n.in_shard = false,
            _ => return None,
        }
        Some(n)
    }

    fn leaves_nothing(look_again: bool) -> bool {
        let step = |s: &State, thread: usize| match thread {
            0 => carry(s, look_again),
            _ => end(s),
        };
        explore(State::default(), 2, step, |s, last| !last || !s.in_shard)
    }

    #[test]
    fn a_carried_lock_never_outlives_its_holder() {
        assert!(leaves_nothing(true));
    }

    #[test]
    fn without_looking_again_an_entry_would_stay() {
        assert!(!leaves_nothing(false));
    }
}

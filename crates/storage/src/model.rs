//! The protocols of this crate as small models, explored in every order in which their steps can
//! happen (sequentially consistent). Each model has broken variants with one step left out or moved,
//! and the exploration must find what goes wrong then: so it is known to be able to.

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

/// One page, two threads that change it three times in all, the background writer, and two checkpoints in a
/// row. In every state the power may fail.
mod checkpoint {
    use super::*;

    /// The step that the model leaves out.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Broken {
        Nothing,
        DirtyMarkAfterReservation,
        EpochNotCompared,
        WriteInProgressNotAwaited,
        SyncMarkBeforeWrite,
    }

    #[derive(Clone, PartialEq, Eq, Hash, Default)]
    struct State {
        position: u8,
        epoch: u8,
        /// Published redo position and its epoch.
        redo: (u8, u8),
        /// Ends of records and whether they have the page's image.
        log: Vec<(u8, bool)>,
        // The frame.
        lsn: u8,
        dirty: bool,
        exclusive: Option<usize>,
        writing: Option<usize>,
        // The file: newest version, the one that is surely durable, and whether a sync is due.
        file: u8,
        durable: u8,
        sync_mark: bool,
        /// The control file's redo position.
        control: u8,
        step: [u8; 4],
        rounds: [u8; 4],
        image: [bool; 2],
        decided_in: [u8; 2],
        reserved: [u8; 2],
        copy: [u8; 4],
        taken: u8,
    }

    /// After a power failure a page of which a write was not synced may be a mixture.
    fn recoverable(s: &State) -> bool {
        let first = s.log.iter().find(|(end, _)| *end > s.control);
        let repaired = first.is_some_and(|(_, image)| *image);
        let last_before =
            s.log.iter().map(|(end, _)| *end).filter(|end| *end <= s.control).max().unwrap_or(0);
        repaired || (s.file == s.durable && s.durable >= last_before)
    }

    fn change(s: &State, i: usize, broken: Broken) -> Option<State> {
        let mut n = s.clone();
        n.step[i] += 1;
        let late = broken == Broken::DirtyMarkAfterReservation;
        match s.step[i] {
            0 if s.exclusive.is_none() => n.exclusive = Some(i),
            1 => n.dirty |= !late,
            2 => {
                n.image[i] = s.lsn <= s.redo.0;
                n.decided_in[i] = s.redo.1;
            }
            3 => {
                n.position += 1;
                if s.epoch != s.decided_in[i] && broken != Broken::EpochNotCompared {
                    // A filler, then a new decision once the redo position is published.
                    n.step[i] = 6;
                } else {
                    n.reserved[i] = n.position;
                    n.log.push((n.position, s.image[i]));
                }
            }
            4 => {
                n.lsn = s.reserved[i];
                n.dirty |= late;
            }
            5 => {
                n.exclusive = None;
                n.rounds[i] += 1;
                // The first one makes two changes.
                n.step[i] = if i == 0 && s.rounds[0] == 0 { 0 } else { 9 };
            }
            6 if s.redo.1 == s.epoch => n.step[i] = 2,
            _ => return None,
        }
        Some(n)
    }

    /// The write-out that the background writer (2) and the checkpointer (3) share, in steps 10..;
    /// afterwards the step is `then`.
    fn write_out(s: &State, w: usize, then: u8, broken: Broken) -> Option<State> {
        let mut n = s.clone();
        n.step[w] += 1;
        let early = broken == Broken::SyncMarkBeforeWrite;
        match s.step[w] {
            10 if s.writing.is_some() => {
                if w == 3 && broken != Broken::WriteInProgressNotAwaited {
                    return None;
                }
                n.step[w] = then;
            }
            10 if !s.dirty => n.step[w] = then,
            10 => n.writing = Some(w),
            11 if s.exclusive.is_none() => {
                n.dirty = false;
                n.copy[w] = s.lsn;
            }
            12 => n.sync_mark |= early,
            13 => n.file = s.copy[w],
            14 => n.sync_mark |= !early,
            15 => {
                n.writing = None;
                n.step[w] = then;
            }
            _ => return None,
        }
        Some(n)
    }

    fn checkpointer(s: &State, broken: Broken) -> Option<State> {
        let mut n = s.clone();
        n.step[3] += 1;
        match s.step[3] {
            0 if s.rounds[3] == 2 => return None,
            0 => {
                n.epoch += 1;
                n.taken = s.position;
            }
            1 => {
                n.redo = (s.taken, s.epoch);
                n.step[3] = 10;
            }
            // Sync: the mark is taken away first.
            2 if s.sync_mark => n.sync_mark = false,
            2 => n.step[3] = 4,
            3 => n.durable = s.file,
            4 => {
                n.control = s.taken;
                n.step[3] = 0;
                n.rounds[3] += 1;
            }
            _ => return write_out(s, 3, 2, broken),
        }
        Some(n)
    }

    fn background_writer(s: &State, broken: Broken) -> Option<State> {
        match s.step[2] {
            0 if s.rounds[2] < 2 => {
                let mut n = s.clone();
                n.step[2] = 10;
                n.rounds[2] += 1;
                Some(n)
            }
            0 => None,
            _ => write_out(s, 2, 0, broken),
        }
    }

    fn nothing_is_ever_lost(broken: Broken) -> bool {
        let step = |s: &State, thread: usize| match thread {
            0 | 1 => change(s, thread, broken),
            2 => background_writer(s, broken),
            _ => checkpointer(s, broken),
        };
        explore(State::default(), 4, step, |s, last| {
            recoverable(s) && (!last || (s.rounds[3] == 2 && s.log.len() == 3))
        })
    }

    #[test]
    fn a_power_failure_at_any_moment_loses_nothing() {
        assert!(nothing_is_ever_lost(Broken::Nothing));
    }

    #[test]
    fn every_step_is_needed() {
        assert!(!nothing_is_ever_lost(Broken::DirtyMarkAfterReservation));
        assert!(!nothing_is_ever_lost(Broken::EpochNotCompared));
        assert!(!nothing_is_ever_lost(Broken::WriteInProgressNotAwaited));
        assert!(!nothing_is_ever_lost(Broken::SyncMarkBeforeWrite));
    }
}

/// Two committers and the WAL writer: nobody sleeps while somebody waits for it.
mod flush {
    use super::*;

    #[derive(Clone, PartialEq, Eq, Hash, Default)]
    struct State {
        logged: u8,
        flushed: u8,
        waiting: [bool; 2],
        sleeping: bool,
        /// Wake-ups that are under way: to committers 0 and 1, and to the writer.
        token: [bool; 3],
        own: [u8; 2],
        step: [u8; 3],
    }

    fn committer(s: &State, i: usize, register_first: bool) -> Option<State> {
        let mut n = s.clone();
        n.step[i] += 1;
        match s.step[i] {
            0 => {
                n.logged += 1;
                n.own[i] = n.logged;
            }
            1 if register_first => n.waiting[i] = true,
            2 if s.sleeping => {
                n.sleeping = false;
                n.token[2] = true;
            }
            1 | 2 => {}
            3 if !register_first => n.waiting[i] = true,
            3 => {}
            4 if s.flushed >= s.own[i] => n.step[i] = 9,
            4 => {}
            // Parked.
            5 if s.token[i] => {
                n.token[i] = false;
                n.step[i] = 4;
            }
            _ => return None,
        }
        Some(n)
    }

    fn writer(s: &State, look_again: bool) -> Option<State> {
        let mut n = s.clone();
        n.step[2] += 1;
        let wanted = s.waiting.contains(&true);
        match s.step[2] {
            0 if wanted => n.flushed = s.logged,
            0 => n.step[2] = 2,
            1 => {
                for i in 0..2 {
                    if s.waiting[i] && s.own[i] <= s.flushed {
                        n.waiting[i] = false;
                        n.token[i] = true;
                    }
                }
                n.step[2] = 0;
            }
            2 => n.sleeping = true,
            3 if look_again && wanted => {
                n.sleeping = false;
                n.step[2] = 0;
            }
            3 => {}
            4 if s.token[2] => {
                n.token[2] = false;
                n.sleeping = false;
                n.step[2] = 0;
            }
            _ => return None,
        }
        Some(n)
    }

    fn all_get_their_answer(register_first: bool, look_again: bool) -> bool {
        let step = |s: &State, thread: usize| match thread {
            2 => writer(s, look_again),
            _ => committer(s, thread, register_first),
        };
        explore(State::default(), 3, step, |s, last| !last || s.step[..2] == [9, 9])
    }

    #[test]
    fn no_wake_up_is_lost() {
        assert!(all_get_their_answer(true, true));
    }

    #[test]
    fn both_sides_have_to_look_after_they_said() {
        assert!(!all_get_their_answer(false, true));
        assert!(!all_get_their_answer(true, false));
    }
}

/// Two pinners of page 1, one evictor that puts page 2 into the frame.
mod pins {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Broken {
        Nothing,
        NameNotCompared,
        ClaimIgnored,
        OpenedByStore,
    }

    #[derive(Clone, PartialEq, Eq, Hash)]
    struct State {
        pins: i8,
        claimed: bool,
        page: u8,
        saw_claim: [bool; 2],
        holds: [bool; 2],
        evictor_holds: bool,
        step: [u8; 3],
    }

    fn pinner(s: &State, i: usize, broken: Broken) -> Option<State> {
        let mut n = s.clone();
        n.step[i] += 1;
        match s.step[i] {
            0 => {
                n.saw_claim[i] = s.claimed;
                n.pins += 1;
            }
            1 => {
                let claimed = s.saw_claim[i] && broken != Broken::ClaimIgnored;
                if !claimed && (s.page == 1 || broken == Broken::NameNotCompared) {
                    n.holds[i] = true;
                } else {
                    n.pins -= 1;
                    n.step[i] = 9;
                }
            }
            2 => {
                n.holds[i] = false;
                n.pins -= 1;
                n.step[i] = 9;
            }
            _ => return None,
        }
        Some(n)
    }

    fn evictor(s: &State, broken: Broken) -> Option<State> {
        let mut n = s.clone();
        n.step[2] += 1;
        match s.step[2] {
            0 if s.pins == 0 => n.claimed = true,
            1 => n.page = 2,
            2 => {
                n.claimed = false;
                n.pins = if broken == Broken::OpenedByStore { 1 } else { s.pins + 1 };
                n.evictor_holds = true;
            }
            3 => {
                n.evictor_holds = false;
                n.pins -= 1;
            }
            _ => return None,
        }
        Some(n)
    }

    fn pins_keep_their_page(broken: Broken) -> bool {
        let start = State {
            pins: 0,
            claimed: false,
            page: 1,
            saw_claim: [false; 2],
            holds: [false; 2],
            evictor_holds: false,
            step: [0; 3],
        };
        let step = |s: &State, thread: usize| match thread {
            2 => evictor(s, broken),
            _ => pinner(s, thread, broken),
        };
        explore(start, 3, step, |s, last| {
            let held = s.holds.iter().filter(|h| **h).count() as i8 + i8::from(s.evictor_holds);
            let right_page = !s.holds.contains(&true) || (s.page == 1 && !s.claimed);
            s.pins >= held && right_page && (!last || s.pins == 0)
        })
    }

    #[test]
    fn a_pin_keeps_the_page_that_it_was_taken_for() {
        assert!(pins_keep_their_page(Broken::Nothing));
    }

    #[test]
    fn every_look_is_needed() {
        assert!(!pins_keep_their_page(Broken::NameNotCompared));
        assert!(!pins_keep_their_page(Broken::ClaimIgnored));
        assert!(!pins_keep_their_page(Broken::OpenedByStore));
    }
}

/// A reader without a pin, and a frame whose page 1 is changed once, then gives way to page 2. Both
/// halves of a page carry its number and its change.
mod unpinned {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Broken {
        Nothing,
        NameNotCompared,
        VersionNotComparedAgain,
        EvenWhileClaimed,
        EvenWhileChanged,
    }

    #[derive(Clone, PartialEq, Eq, Hash, Default)]
    struct State {
        version: u8,
        name: u8,
        halves: [u8; 2],
        noted: u8,
        read: [u8; 2],
        /// The read counts.
        result: bool,
        step: [u8; 2],
    }

    fn reader(s: &State, broken: Broken) -> Option<State> {
        let mut n = s.clone();
        n.step[0] += 1;
        match s.step[0] {
            0 if s.version % 2 == 0 => n.noted = s.version,
            1 if s.name != 1 && broken != Broken::NameNotCompared => n.step[0] = 9,
            1 => {}
            at @ 2..=3 => n.read[usize::from(at - 2)] = s.halves[usize::from(at - 2)],
            4 => n.result = s.version == s.noted || broken == Broken::VersionNotComparedAgain,
            _ => return None,
        }
        Some(n)
    }

    fn writer(s: &State, broken: Broken) -> Option<State> {
        let mut n = s.clone();
        n.step[1] += 1;
        match s.step[1] {
            // A change: the second state of page 1.
            0 => n.version += u8::from(broken != Broken::EvenWhileChanged),
            1 => n.halves[0] = 11,
            2 => n.halves[1] = 11,
            3 => n.version += if broken == Broken::EvenWhileChanged { 2 } else { 1 },
            // Claimed, named, filled.
            4 => n.version += u8::from(broken != Broken::EvenWhileClaimed),
            5 => n.name = 2,
            6 => n.halves[0] = 20,
            7 => n.halves[1] = 20,
            8 => n.version += if broken == Broken::EvenWhileClaimed { 2 } else { 1 },
            _ => return None,
        }
        Some(n)
    }

    fn results_are_whole(broken: Broken) -> bool {
        let start = State { name: 1, halves: [10; 2], ..State::default() };
        let step = |s: &State, thread: usize| match thread {
            0 => reader(s, broken),
            _ => writer(s, broken),
        };
        explore(start, 2, step, |s, _| !s.result || (s.read[0] == s.read[1] && s.read[0] / 10 == 1))
    }

    #[test]
    fn a_read_without_a_pin_counts_only_if_it_is_whole_and_of_its_page() {
        assert!(results_are_whole(Broken::Nothing));
    }

    #[test]
    fn every_step_is_needed() {
        assert!(!results_are_whole(Broken::NameNotCompared));
        assert!(!results_are_whole(Broken::VersionNotComparedAgain));
        assert!(!results_are_whole(Broken::EvenWhileClaimed));
        assert!(!results_are_whole(Broken::EvenWhileChanged));
    }
}

//! A finished wait in eight words, as it is put down and kept.

use base::WaitEvent;

use super::{WaitObject, WaitRecord};
use crate::clock;

/// A [`WaitRecord`]: one cache line, since in the history it is one that is in no cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct PackedWait {
    /// The event above [`clock::BITS`] bits of when it began.
    pub event_began: u64,
    /// Its time in nanoseconds; with [`SUMMED`].
    pub duration: u64,
    pub task: u64,
    pub blocker: u64,
    pub statement: u64,
    /// See [`WaitObject::encode`].
    pub object: [u64; 2],
    /// The waiter's number, and above it the blocker's.
    pub pids: u64,
}

const _: () = assert!(size_of::<PackedWait>() == 64);

/// In a duration: the wait is in its session's own sums (`idle.rs`), and is not to be summed again.
const SUMMED: u64 = 1 << 63;

impl PackedWait {
    pub const EMPTY: PackedWait = PackedWait {
        event_began: 0,
        duration: 0,
        task: 0,
        blocker: 0,
        statement: 0,
        object: [0; 2],
        pids: 0,
    };

    /// A session's wait for its client, which began then and took so long.
    #[inline]
    pub fn idle(task: u64, pid: i32, [began_ns, duration_ns]: [u64; 2]) -> PackedWait {
        PackedWait {
            event_began: (WaitEvent::ClientClientRead as u64) << clock::BITS | began_ns,
            duration: duration_ns | SUMMED,
            task,
            pids: pids(pid, 0),
            ..PackedWait::EMPTY
        }
    }

    #[inline]
    pub fn words(self) -> [u64; 8] {
        let PackedWait { event_began, duration, task, blocker, statement, object, pids } = self;
        [event_began, duration, task, blocker, statement, object[0], object[1], pids]
    }

    /// The inverse of [`PackedWait::words`].
    #[inline]
    pub fn of_words(words: [u64; 8]) -> PackedWait {
        let [event_began, duration, task, blocker, statement, first, second, pids] = words;
        PackedWait {
            event_began,
            duration,
            task,
            blocker,
            statement,
            object: [first, second],
            pids,
        }
    }

    /// Whether the profile has yet to count it.
    pub fn is_to_be_summed(&self) -> bool {
        self.duration & SUMMED == 0
    }

    pub fn began_ns(&self) -> u64 {
        self.event_began & ((1 << clock::BITS) - 1)
    }

    pub fn duration_ns(&self) -> u64 {
        self.duration & !SUMMED
    }

    /// Whether the same task waited in the same statement for the same event and object.
    pub fn is_like(&self, other: &PackedWait) -> bool {
        self.task == other.task
            && self.event_began >> clock::BITS == other.event_began >> clock::BITS
            && self.statement == other.statement
            && self.object == other.object
    }

    pub fn event(&self) -> WaitEvent {
        let event = WaitEvent::from_u8((self.event_began >> clock::BITS) as u8);
        event.unwrap_or(WaitEvent::ExtensionExtension)
    }

    pub fn record(&self) -> WaitRecord {
        WaitRecord {
            task: self.task,
            pid: self.pids as i32,
            event: self.event(),
            object: WaitObject::decode(self.object),
            blocker: self.blocker,
            blocker_pid: (self.pids >> 32) as i32,
            statement: self.statement,
            began_ns: self.began_ns(),
            duration_ns: self.duration_ns(),
        }
    }
}

/// As [`PackedWait::pids`].
#[inline]
pub(super) fn pids(pid: i32, blocker_pid: i32) -> u64 {
    u64::from(pid as u32) | u64::from(blocker_pid as u32) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was() {
        let record = WaitRecord {
            task: 1,
            pid: -2,
            event: WaitEvent::LockTransactionid,
            object: WaitObject::AdvisoryPair(base::Oid(3), -4, 5),
            blocker: 6,
            blocker_pid: -7,
            statement: u64::MAX,
            began_ns: (1 << clock::BITS) - 1,
            duration_ns: 8,
        };
        let kept = PackedWait {
            event_began: (record.event as u64) << clock::BITS | record.began_ns,
            duration: record.duration_ns,
            task: record.task,
            blocker: record.blocker,
            statement: record.statement,
            object: record.object.encode(),
            pids: pids(record.pid, record.blocker_pid),
        };
        assert_eq!(PackedWait::of_words(kept.words()).record(), record);
        assert!(kept.is_to_be_summed());
        let idle = PackedWait::idle(1, -2, [3, 4]);
        let record = PackedWait::of_words(idle.words()).record();
        assert_eq!((record.pid, record.began_ns, record.duration_ns), (-2, 3, 4));
        assert_eq!((record.object, record.is_idle()), (WaitObject::None, true));
        assert!(!idle.is_to_be_summed());
    }
}

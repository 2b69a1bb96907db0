//! What sessions leave behind in a server: pins, locks, waits, snapshots, descriptors, memory.

use std::time::{Duration, Instant};

use super::Server;
use super::client::Client;

/// What there is beyond a server that nobody uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Client sessions, without the one that asks.
    pub sessions: i64,
    /// Pages that somebody has pinned.
    pub pins: i64,
    /// Heavyweight locks of others.
    pub locks: i64,
    /// Sessions that wait for a latch or a lock.
    pub waits: i64,
    /// Others that hold a snapshot or a transaction id.
    pub snapshots: i64,
    /// Open descriptors of the process.
    pub descriptors: i64,
}

const QUESTION: &str = "SELECT \
    (SELECT count(*) FROM pg_stat_activity \
      WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()), \
    (SELECT count(*) FROM pg_buffercache WHERE pinning_backends > 0), \
    (SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid()), \
    (SELECT count(*) FROM pg_stat_activity WHERE wait_event_type IN ('LWLock', 'Lock')), \
    (SELECT count(*) FROM pg_stat_activity \
      WHERE pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL))";

/// Looks once.
pub fn look(server: &Server, asking: &mut Client) -> Footprint {
    let answer = asking.query(QUESTION).expect("the asking session goes on");
    assert!(answer.error.is_none(), "{:?}", answer.error);
    let number = |i: usize| -> i64 {
        answer.rows[0][i].as_deref().expect("a count").parse().expect("a number")
    };
    Footprint {
        sessions: number(0),
        pins: number(1),
        locks: number(2),
        waits: number(3),
        snapshots: number(4),
        descriptors: descriptors(server.pid()),
    }
}

/// Looks until there are so many sessions and none of them does anything.
pub fn await_quiet(server: &Server, asking: &mut Client, sessions: i64) -> Footprint {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let now = look(server, asking);
        if (now.sessions, now.pins, now.waits) == (sessions, 0, 0) {
            return now;
        }
        assert!(Instant::now() < deadline, "it does not come to rest: {now:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Looks until the server is as it was: what a session leaves is given back soon after its end, not
/// before its client knows of it.
pub fn await_same(server: &Server, asking: &mut Client, before: Footprint) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let now = look(server, asking);
        // Files of relations may be opened and closed meanwhile.
        let same = Footprint { descriptors: before.descriptors, ..now } == before
            && now.descriptors <= before.descriptors + 8;
        if same {
            return;
        }
        assert!(Instant::now() < deadline, "it was {before:?} and is {now:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Looks until the server's resident memory is down to so much, KiB, for a minute at most; what it is then. The
/// stacks of many that waited at once, and what the allocator has of them, are given back little by little.
pub fn await_resident_kib(server: &Server, at_most: i64) -> i64 {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let now = resident_kib(server.pid());
        if now <= at_most || Instant::now() >= deadline {
            return now;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Open descriptors of a process.
pub fn descriptors(pid: u32) -> i64 {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count) as i64
}

/// Resident memory of a process in KiB.
pub fn resident_kib(pid: u32) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).expect("it has a size");
    line.trim().trim_end_matches(" kB").parse().expect("a number of kB")
}

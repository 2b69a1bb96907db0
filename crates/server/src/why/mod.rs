//! `pg_why`: where the time of sessions is lost, and to what, in words.
//!
//! ```text
//!   slices of a range (crate::history) ──► Facts ──► each detector ──► findings, the most costly first
//! ```
//! * A detector is a function of [`Facts`] alone, so that it answers for now and for last night alike. Each is
//!   one small file with a test that provokes its fault and one that doesn't, and one line in [`DETECTORS`].
//! * What is lost is time of sessions. A danger that costs nothing yet (a vacuum that can't clean up, memory that
//!   nearly is used up) ranks by a part of the range ([`Finding::risk_ns`]).
//! * A finding has weight when it takes a twentieth of all statements' time and of one session's; others are not shown.

mod autovacuum;
mod buffer_misses;
mod checkpoint;
mod connections;
mod cpu;
mod deadlock;
mod disk;
mod errors;
mod extension;
pub mod facts;
mod finding;
mod full_images;
mod hot_row;
mod idle_transaction;
mod lasting;
mod latch;
mod lock_queue;
mod memory;
mod plan_change;
mod scan;
mod slow_client;
mod slower;
mod snapshot;
mod spill;
mod stale_statistics;
mod wal_volume;

use base::Result;

use crate::history;
use crate::history::slice::{Slice, Sum};
use crate::server::Server;
use facts::{Facts, Gathering};
pub use finding::{Cause, Finding};
pub use lasting::Watch;

/// A detector.
type Detector = fn(&Facts, &mut Vec<Finding>);

/// All of them.
const DETECTORS: &[Detector] = &[
    lock_queue::find,
    hot_row::find,
    deadlock::find,
    idle_transaction::find,
    snapshot::find,
    checkpoint::find,
    wal_volume::find,
    full_images::find,
    buffer_misses::find,
    extension::find,
    scan::find,
    stale_statistics::find,
    plan_change::find,
    slower::find,
    spill::find,
    connections::find,
    cpu::find,
    latch::find,
    disk::find,
    memory::find,
    autovacuum::find,
    slow_client::find,
    errors::find,
];

/// Least part of all statements' time.
const SHARE_MIN: f64 = 0.05;
/// Least part of the range's length.
const SPAN_SHARE_MIN: f64 = 0.05;
/// The range when none is said, microseconds.
pub const LATELY_US: i64 = 30_000_000;
/// Parts of a range that are told apart at least; shorter ones are added up if that spares reading them.
const PARTS: i64 = 360;
/// A range is compared with so long a time before it, microseconds.
const BEFORE_US: i64 = 600_000_000;

/// The findings that have weight, the most costly first.
pub fn explain(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    DETECTORS.iter().for_each(|find| find(facts, &mut found));
    let least = (facts.span_ns() as f64 * SPAN_SHARE_MIN) as u64;
    let has_weight =
        |f: &Finding| f.risk_ns > 0 || (f.share(facts) >= SHARE_MIN && f.lost_ns >= least);
    found.retain(has_weight);
    found.sort_by_key(|finding| std::cmp::Reverse(finding.weight_ns()));
    found
}

/// The facts of a range, in microseconds since 2000.
///
/// # Errors
/// Those of reading the history.
pub fn facts(server: &Server, from: i64, to: i64) -> Result<Facts> {
    let (mut before, mut gathering) = (Sum::default(), Gathering::default());
    // Of a range that memory holds only what memory has is before it: asked for often, it reads no file.
    let (_, remembered) = server.history.recent(from, from);
    let since = from - BEFORE_US;
    let since = if from >= remembered { since.max(remembered) } else { since };
    history::each_part(server, (since, to), PARTS, &mut |slice| {
        // A slice belongs to the side on which most of it lies.
        if slice.at - (slice.span_us / 2) as i64 <= from {
            before.add(slice);
        } else {
            gathering.add(slice);
        }
    })?;
    Ok(gathering.done(before.done()))
}

/// The sum of the time before a range, with which it is compared.
///
/// # Errors
/// Those of reading the history.
pub fn before(server: &Server, from: i64) -> Result<Slice> {
    let mut before = Sum::default();
    history::each_between(server, from - BEFORE_US, from, &mut |slice| {
        if slice.at - (slice.span_us / 2) as i64 <= from {
            before.add(slice);
        }
    })?;
    Ok(before.done())
}

/// The findings of the last half minute.
///
/// # Errors
/// Those of [`facts`].
pub fn lately(server: &Server) -> Result<(Facts, Vec<Finding>)> {
    let now = crate::server::now();
    let facts = facts(server, now - LATELY_US, now)?;
    let found = explain(&facts);
    Ok((facts, found))
}

#[cfg(test)]
mod tests {
    use super::facts::tests::{healthy, ten_seconds};
    use super::*;

    #[test]
    fn nothing_of_weight_is_found_in_a_healthy_load() {
        let facts = Facts::of(&ten_seconds(healthy), &ten_seconds(healthy));
        let found: Vec<_> = explain(&facts).into_iter().map(|f| f.sentence).collect();
        assert_eq!(found, [""; 0]);
        assert!(explain(&Facts::of(&[], &[])).is_empty());
    }
}

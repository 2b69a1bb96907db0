//! What one looks at while it happens: once a second, from the server's own views, and from the
//! writers' clocks.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::client::{Client, number};
use super::load::Load;
use crate::Result;

/// Values of one second, by name; see [`crate::results::IncidentSecond`].
pub type Values = BTreeMap<String, f64>;

/// The columns: the values' names and their headings.
pub const COLUMNS: [(&str, &str); 12] = [
    ("locks_count", "locks"),
    ("active_sessions", "active"),
    ("waits_buffer_content", "content"),
    ("waits_buffer_mapping", "mapping"),
    ("waits_relation_extension", "extend"),
    ("inserts_over_1s", "ins >1s"),
    ("inserts_over_30s", "ins >30s"),
    ("longest_insert_ms", "longest ins ms"),
    ("longest_latch_wait_ms", "longest latch ms"),
    ("inserts", "inserts/s"),
    ("reads", "reads/s"),
    ("transactions", "tps"),
];

/// Waits of client sessions now, one row; then the longest wait for any latch, ended or not.
const LOOK: &str = "\
SELECT (SELECT count(*) FROM pg_locks),
       count(*) FILTER (WHERE state = 'active'),
       count(*) FILTER (WHERE wait_event = 'BufferContent'),
       count(*) FILTER (WHERE wait_event = 'BufferMapping'),
       count(*) FILTER (WHERE wait_event IN ('extend', 'RelationExtensionLatch')),
       (SELECT max(longest_wait_ms) FROM pg_stat_lwlock),
       (SELECT max(duration_ms) FROM pg_stat_wait_current WHERE wait_event_type = 'LWLock')
  FROM pg_stat_activity WHERE backend_type = 'client backend'";

/// Looks at the server once a second.
pub struct Sampler {
    client: Client,
    reads: u64,
    inserts: u64,
}

impl Sampler {
    /// With a connection of its own.
    pub fn new(client: Client) -> Sampler {
        Sampler { client, reads: 0, inserts: 0 }
    }

    /// The values of now, and what was done in the `elapsed` time since the last call.
    ///
    /// # Errors
    /// The server's.
    pub fn look(&mut self, load: &Load, elapsed: Duration) -> Result<Values> {
        let row = self.client.query(LOOK)?.pop().unwrap_or_default();
        let seen: Vec<f64> = row.iter().map(|v| number(v.as_deref())).collect::<Result<_>>()?;
        let seen = |i: usize| seen.get(i).copied().unwrap_or(0.0);
        let ages = load.ages();
        let over = |s: u64| ages.iter().filter(|a| **a > Duration::from_secs(s)).count() as f64;
        let rate = |before: &mut u64, now: u64| {
            let done = now - std::mem::replace(before, now);
            done as f64 / elapsed.as_secs_f64()
        };
        let reads = rate(&mut self.reads, load.reads.load(Relaxed));
        let inserts = rate(&mut self.inserts, load.inserts.load(Relaxed));
        let values = [
            seen(0),
            seen(1),
            seen(2),
            seen(3),
            seen(4),
            over(1),
            over(30),
            load.longest().as_secs_f64() * 1000.0,
            seen(5).max(seen(6)),
            inserts,
            reads,
            reads + inserts,
        ];
        Ok(COLUMNS.iter().map(|(name, _)| (*name).to_owned()).zip(values).collect())
    }
}

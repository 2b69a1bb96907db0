//! Counts of archived segments for `pg_stat_archiver`.

use base::WaitEvent;
use sched::Mutex;

/// Counts for `pg_stat_archiver`.
#[derive(Clone, Debug, Default)]
pub struct Archived {
    /// Segments that were archived, the last one's name and time.
    pub count: u64,
    /// See [`Archived::count`].
    pub last: Option<(String, i64)>,
    /// Commands that failed, the last one's segment and time.
    pub failed: u64,
    /// See [`Archived::failed`].
    pub last_failed: Option<(String, i64)>,
}

/// The counts, for the thread and the views.
pub struct Counts(pub Mutex<Archived>);

impl Default for Counts {
    fn default() -> Counts {
        Counts(Mutex::new(WaitEvent::LWLockOther, Archived::default()))
    }
}

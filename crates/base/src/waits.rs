//! Wait events, generated from `waits.txt`: the one list of what anything in the server may wait
//! for. `sched::park` takes a [`WaitEvent`], so an unlabelled wait does not compile.

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct WaitInfo {
    /// The event.
    pub event: WaitEvent,
    /// `wait_event_type` as `pg_stat_activity` shows it.
    pub kind: &'static str,
    /// `wait_event` as `pg_stat_activity` shows it.
    pub name: &'static str,
    /// One sentence for `pg_wait_events` and the documentation.
    pub description: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/waits.rs"));

impl WaitEvent {
    /// The event's row.
    pub fn info(self) -> &'static WaitInfo {
        &WAITS[self as usize]
    }

    /// The inverse of `event as u8`.
    pub fn from_u8(code: u8) -> Option<WaitEvent> {
        WAITS.get(usize::from(code)).map(|w| w.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_finds_its_own_row() {
        for (i, wait) in WAITS.iter().enumerate() {
            assert_eq!(wait.event as usize, i);
            assert_eq!(wait.event.info().name, wait.name);
        }
        assert!(WaitEvent::from_u8(WAITS.len() as u8).is_none());
    }
}

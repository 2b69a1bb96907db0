//! What happened to each table: counted by sessions, read by the background vacuum and by
//! `pg_stat_user_tables`. Kept in memory only.
//!
//! A fixed table of slots with atomic counters: counting takes no lock, and the vacuum is woken once,
//! by the statement whose dead rows cross the slot's threshold. When more tables change than there
//! are slots, the rest is not counted (and left to VACUUM by hand).

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use base::settings::{live_int, setting};
use sql::plan::{Modify, ModifyAction};

const SLOTS: usize = 4096;

/// One table's counters.
#[derive(Default)]
pub struct Slot {
    /// The table; 0: free.
    pub table: AtomicU32,
    /// Rows inserted.
    pub inserted: AtomicU64,
    /// Rows updated.
    pub updated: AtomicU64,
    /// Rows deleted.
    pub deleted: AtomicU64,
    /// Row versions that died since the last vacuum, about.
    pub dead: AtomicU64,
    /// Number of dead rows at which the vacuum is woken.
    pub threshold: AtomicU64,
    /// Vacuums by command.
    pub vacuums: AtomicU64,
    /// Vacuums in the background.
    pub autovacuums: AtomicU64,
    /// When the last one ended (microseconds since 2000); 0: never.
    pub last_vacuum: AtomicI64,
    /// Likewise for those in the background.
    pub last_autovacuum: AtomicI64,
}

/// See the module's documentation.
pub struct Counters {
    slots: Box<[Slot]>,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters { slots: (0..SLOTS).map(|_| Slot::default()).collect() }
    }
}

impl Counters {
    /// The table's slot, taken now if it has none; None when all are taken.
    pub fn slot(&self, table: u32) -> Option<&Slot> {
        let start = (table as usize).wrapping_mul(0x9e37_79b1) % SLOTS;
        for step in 0..SLOTS {
            let slot = &self.slots[(start + step) % SLOTS];
            match slot.table.load(Ordering::Acquire) {
                t if t == table => return Some(slot),
                0 => {
                    let base = live_int(setting::AUTOVACUUM_VACUUM_THRESHOLD).max(1) as u64;
                    slot.threshold.store(base, Ordering::Relaxed);
                    let free = Ordering::AcqRel;
                    match slot.table.compare_exchange(0, table, free, Ordering::Acquire) {
                        Ok(_) => return Some(slot),
                        Err(t) if t == table => return Some(slot),
                        Err(_) => {}
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The table's slot if it has one.
    pub fn find(&self, table: u32) -> Option<&Slot> {
        let start = (table as usize).wrapping_mul(0x9e37_79b1) % SLOTS;
        (0..SLOTS)
            .map(|step| &self.slots[(start + step) % SLOTS])
            .take_while(|s| s.table.load(Ordering::Acquire) != 0)
            .find(|s| s.table.load(Ordering::Acquire) == table)
    }

    /// All slots in use.
    pub fn all(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|s| s.table.load(Ordering::Acquire) != 0)
    }

    /// Counts what a statement did; true when the vacuum should be woken.
    pub fn count(&self, modify: &Modify, rows: u64) -> bool {
        let Some(slot) = self.slot(modify.table.oid) else { return false };
        let (counter, dies) = match modify.action {
            ModifyAction::Insert { .. } => (&slot.inserted, false),
            ModifyAction::Update { .. } => (&slot.updated, true),
            ModifyAction::Delete { .. } => (&slot.deleted, true),
        };
        counter.fetch_add(rows, Ordering::Relaxed);
        dies && slot.died(rows)
    }
}

impl Slot {
    /// Adds dead rows; true when this crossed the threshold.
    pub fn died(&self, rows: u64) -> bool {
        let before = self.dead.fetch_add(rows, Ordering::Relaxed);
        let threshold = self.threshold.load(Ordering::Relaxed);
        before < threshold && before.saturating_add(rows) >= threshold
    }

    /// A vacuum began when there were this many dead rows, and is done.
    pub fn vacuumed(&self, dead: u64, background: bool, now: i64) {
        let ordering = Ordering::Relaxed;
        let _ = self.dead.fetch_update(ordering, ordering, |d| Some(d.saturating_sub(dead)));
        if background {
            self.autovacuums.fetch_add(1, ordering);
            self.last_autovacuum.store(now, ordering);
        } else {
            self.vacuums.fetch_add(1, ordering);
            self.last_vacuum.store(now, ordering);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_slots_of_their_own() {
        let counters = Counters::default();
        for table in 1..=SLOTS as u32 {
            counters.slot(table).unwrap().died(u64::from(table));
        }
        assert!(counters.slot(SLOTS as u32 + 1).is_none(), "all are taken");
        for table in 1..=SLOTS as u32 {
            let slot = counters.find(table).unwrap();
            assert_eq!(slot.dead.load(Ordering::Relaxed), u64::from(table));
        }
    }

    #[test]
    fn the_vacuum_is_woken_once() {
        let counters = Counters::default();
        let slot = counters.slot(7).unwrap();
        slot.threshold.store(10, Ordering::Relaxed);
        let woken: Vec<bool> = (0..5).map(|_| slot.died(4)).collect();
        assert_eq!(woken, [false, false, true, false, false]);
        slot.vacuumed(20, true, 1);
        assert!(!slot.died(9));
        assert!(slot.died(1));
    }
}

//! The entries of an index scan, of which the threads of a team take what the next leaf has: one cursor for all of them.
//! A thread holds it while it copies a leaf's entries out, and then reads the rows that they lead to by itself.
//!
//! The order of the rows is lost: the planner puts such scans only below what needs none.

use std::sync::Arc;

use access::KeyRange;
use access::btree::{Cursor, Entries};
use base::{Result, TupleId, WaitEvent};
use sched::Mutex;
use sql::plan::Scan;
use txn::Transaction;

use crate::ops::team::Member;
use crate::run::Run;
use crate::tally::RelationCounts;

/// A team's cursor.
pub struct Desk(Mutex<Place>);

/// How far it is.
#[derive(Default)]
struct Place {
    /// Ranges to seek, last one first; None before the first thread has come.
    ranges: Option<Vec<KeyRange>>,
    cursor: Option<Cursor>,
}

impl Default for Desk {
    fn default() -> Desk {
        Desk(Mutex::new(WaitEvent::IPCBtreePage, Place::default()))
    }
}

/// Entries that a thread has taken.
#[derive(Default)]
pub struct Taken {
    /// Bytes that the keys are in, if they were asked for.
    pub keys: Vec<u8>,
    /// Begin and end of each one's key, and its row id.
    pub entries: Vec<(u32, u32, TupleId)>,
    /// As [`access::btree::Entries::visible`].
    pub visible: Vec<bool>,
    /// How many have been used.
    pub used: usize,
}

impl Taken {
    /// All of them.
    pub fn entries(&self) -> Entries<'_> {
        Entries { keys: &self.keys, entries: &self.entries, visible: &self.visible }
    }
}

/// A thread's access to its team's cursor.
pub struct IndexPieces {
    member: Member,
    desk: Arc<Desk>,
}

impl IndexPieces {
    /// Of the team for which operators are being built, if there is one.
    pub fn of(scan: &Scan, run: &Run<'_, '_>) -> Option<IndexPieces> {
        let member = run.state.member.clone()?;
        let desk = member.shared(std::ptr::from_ref(scan) as usize);
        Some(IndexPieces { member, desk })
    }

    /// Takes the entries of the next leaf; false: there are none, or not for this thread. `ranges`: where to look, taken by
    /// the first thread that comes.
    ///
    /// # Errors
    /// I/O, interrupts.
    pub fn take(
        &self,
        ranges: &mut Option<Vec<KeyRange>>,
        open: impl Fn(KeyRange) -> Cursor,
        (tx, keys): (&Transaction, bool),
        taken: &mut Taken,
        counts: &mut RelationCounts,
    ) -> Result<bool> {
        if !self.member.may_take() {
            return Ok(false);
        }
        let mut place = self.desk.0.lock();
        let place = &mut *place;
        let left = place.ranges.get_or_insert_with(|| ranges.take().unwrap_or_default());
        ranges.get_or_insert_default();
        taken.used = 0;
        loop {
            if let Some(cursor) = &mut place.cursor
                && let Some(found) = cursor.next_run(tx, usize::MAX)?
            {
                counts.returned += found.entries.len() as u64;
                taken.keys.clear();
                if keys {
                    taken.keys.extend_from_slice(found.keys);
                }
                taken.entries.clear();
                taken.entries.extend_from_slice(found.entries);
                taken.visible.clear();
                taken.visible.extend_from_slice(found.visible);
                return Ok(true);
            }
            let Some(range) = left.pop() else {
                place.cursor = None;
                taken.entries.clear();
                return Ok(false);
            };
            counts.scans += 1;
            place.cursor = Some(open(range));
        }
    }

    /// The scan begins again.
    pub fn rewind(&self) {
        *self.desk.0.lock() = Place::default();
    }
}

//! The object of a wait and its blocker.

use std::fmt;

use base::{Fork, Lsn, Oid, PageId, RelId, TupleId, WaitEvent, Xid};

/// The thing that a task waits for. 16 bytes, copied freely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum WaitObject {
    /// The event says it all.
    #[default]
    None,
    /// A table or index, by database and oid (heavyweight locks).
    Relation(Oid, Oid),
    /// A relation's files (I/O on the whole file).
    File(RelId),
    /// The right to extend a relation's file.
    Extension(RelId),
    /// A page: its latch, or I/O on it.
    Page(PageId),
    /// The queue for one row.
    Tuple(RelId, TupleId),
    /// A transaction's end.
    Transaction(Xid),
    /// A catalog object that is no relation: class and object id.
    Object(Oid, u64),
    /// An advisory lock with one key, in a database.
    Advisory(Oid, i64),
    /// An advisory lock with two keys, in a database.
    AdvisoryPair(Oid, i32, i32),
    /// A latch that guards no page: its address, which only tells latches apart.
    Latch(u64),
    /// A position in the write-ahead log.
    Position(Lsn),
    /// Another task, by its id.
    Task(u64),
}

impl WaitObject {
    /// Two words for the task's slot, which others read while it changes; see `decode`.
    pub(crate) fn encode(self) -> [u64; 2] {
        let word = |kind: u64, low: u32| kind << 56 | u64::from(low);
        match self {
            WaitObject::None => [0, 0],
            WaitObject::Relation(database, oid) => [word(1, oid.0), u64::from(database.0)],
            WaitObject::File(rel) => [word(2, rel.0), 0],
            WaitObject::Extension(rel) => [word(3, rel.0), 0],
            WaitObject::Page(id) => {
                [word(4, id.rel.0) | (id.fork as u64) << 32, u64::from(id.block)]
            }
            WaitObject::Tuple(rel, tid) => {
                [word(5, rel.0) | u64::from(tid.offset) << 32, u64::from(tid.block)]
            }
            WaitObject::Transaction(xid) => [word(6, 0), xid.0],
            WaitObject::Object(class, id) => [word(7, class.0), id],
            WaitObject::Advisory(database, key) => [word(8, database.0), key as u64],
            WaitObject::AdvisoryPair(database, one, two) => {
                [word(9, database.0), u64::from(one as u32) << 32 | u64::from(two as u32)]
            }
            WaitObject::Latch(address) => [word(10, 0), address],
            WaitObject::Position(lsn) => [word(11, 0), lsn.0],
            WaitObject::Task(id) => [word(12, 0), id],
        }
    }

    /// The inverse of `encode`.
    pub(crate) fn decode([first, second]: [u64; 2]) -> WaitObject {
        let low = first as u32;
        let middle = (first >> 32) as u16;
        let fork = match middle {
            0 => Fork::Main,
            1 => Fork::Fsm,
            _ => Fork::Vm,
        };
        match first >> 56 {
            1 => WaitObject::Relation(Oid(second as u32), Oid(low)),
            2 => WaitObject::File(RelId(low)),
            3 => WaitObject::Extension(RelId(low)),
            4 => WaitObject::Page(PageId { rel: RelId(low), fork, block: second as u32 }),
            5 => WaitObject::Tuple(RelId(low), TupleId { block: second as u32, offset: middle }),
            6 => WaitObject::Transaction(Xid(second)),
            7 => WaitObject::Object(Oid(low), second),
            8 => WaitObject::Advisory(Oid(low), second as i64),
            9 => WaitObject::AdvisoryPair(Oid(low), (second >> 32) as i32, second as i32),
            10 => WaitObject::Latch(second),
            11 => WaitObject::Position(Lsn(second)),
            12 => WaitObject::Task(second),
            _ => WaitObject::None,
        }
    }

    /// The relation's files that it belongs to, if any.
    pub fn file(self) -> Option<RelId> {
        match self {
            WaitObject::File(rel) | WaitObject::Extension(rel) | WaitObject::Tuple(rel, _) => {
                Some(rel)
            }
            WaitObject::Page(page) => Some(page.rel),
            _ => None,
        }
    }
}

impl fmt::Display for WaitObject {
    /// As the views show it; relations by number (the views replace it by the name).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            WaitObject::None => Ok(()),
            WaitObject::Relation(_, oid) => write!(f, "relation {oid}"),
            WaitObject::File(rel) => write!(f, "file {}", rel.0),
            WaitObject::Extension(rel) => write!(f, "extension of file {}", rel.0),
            WaitObject::Page(PageId { rel, fork, block }) => {
                let fork = match fork {
                    Fork::Main => "",
                    Fork::Fsm => " (fsm)",
                    Fork::Vm => " (vm)",
                };
                write!(f, "page {block} of file {}{fork}", rel.0)
            }
            WaitObject::Tuple(rel, tid) => write!(f, "tuple {tid} of file {}", rel.0),
            WaitObject::Transaction(xid) => write!(f, "transaction {}", xid.0),
            WaitObject::Object(class, id) => write!(f, "object {id} of class {class}"),
            WaitObject::Advisory(database, key) => write!(f, "advisory lock {key} in {database}"),
            WaitObject::AdvisoryPair(database, one, two) => {
                write!(f, "advisory lock ({one},{two}) in {database}")
            }
            WaitObject::Latch(address) => write!(f, "latch {address:#x}"),
            WaitObject::Position(lsn) => write!(f, "log position {lsn}"),
            WaitObject::Task(id) => write!(f, "task {id}"),
        }
    }
}

/// The description of a wait that [`park`](crate::park) and [`io_wait`](crate::io_wait) demand: the event, and where it
/// is known the object and the task that holds it. A bare [`WaitEvent`] will do.
///
/// There is no way to make one without an event, and no wait without one, so a wait that
/// `pg_stat_activity` could not name does not compile:
/// ```compile_fail
/// sched::park(None, None);
/// ```
/// ```compile_fail
/// sched::park("a name that is not in the table", None);
/// ```
/// ```compile_fail
/// let waiting = sched::Waiting { object: sched::WaitObject::None, blocker: 0 };
/// ```
/// These do:
/// ```
/// use base::{WaitEvent, Xid};
/// use sched::{WaitObject, Waiting, park};
/// let soon = Some(std::time::Instant::now());
/// park(WaitEvent::TimeoutPgSleep, soon);
/// let object = WaitObject::Transaction(Xid(7));
/// park(Waiting::on(WaitEvent::LockTransactionid, object).behind(3), soon);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The kind of wait.
    pub event: WaitEvent,
    /// For what.
    pub object: WaitObject,
    /// The id of the task that holds it ([`crate::Task::id`]); 0: nobody or not known.
    pub blocker: u64,
}

impl Waiting {
    /// For an object that nobody in particular holds.
    pub fn on(event: WaitEvent, object: WaitObject) -> Waiting {
        Waiting { event, object, blocker: 0 }
    }

    /// Says which task holds it.
    #[must_use]
    pub fn behind(mut self, task_id: u64) -> Waiting {
        self.blocker = task_id;
        self
    }
}

impl From<WaitEvent> for Waiting {
    fn from(event: WaitEvent) -> Waiting {
        Waiting::on(event, WaitObject::None)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn objects_survive_the_slot() {
        let page = PageId { rel: RelId(u32::MAX), fork: Fork::Vm, block: u32::MAX };
        let objects = [
            WaitObject::None,
            WaitObject::Relation(Oid(u32::MAX), Oid(u32::MAX - 1)),
            WaitObject::File(RelId(7)),
            WaitObject::Extension(RelId(7)),
            WaitObject::Page(page),
            WaitObject::Tuple(RelId(7), TupleId { block: u32::MAX, offset: u16::MAX }),
            WaitObject::Transaction(Xid(u64::MAX)),
            WaitObject::Object(Oid(1), u64::MAX),
            WaitObject::Advisory(Oid(1), i64::MIN),
            WaitObject::AdvisoryPair(Oid(1), i32::MIN, -1),
            WaitObject::Latch(u64::MAX),
            WaitObject::Position(Lsn(u64::MAX)),
            WaitObject::Task(u64::MAX),
        ];
        for object in objects {
            assert_eq!(WaitObject::decode(object.encode()), object);
        }
        assert_eq!(size_of::<WaitObject>(), 16);
    }
}

//! A server that follows another one, its primary, and serves readers meanwhile.
//!
//! ```text
//!   primary ══stream══► receiver ──► wal/… ──► applier ──► pages, commits, catalog ──► sessions (read only)
//!      ▲                   │ written, durable      │ applied, oldest snapshot
//!      └───────────────────┴───────────────────────┘
//! ```
//!
//! * [`receiver`] makes the primary's log durable here and says so. [`apply`] applies it record by record; what it takes away
//!   from readers (pruned versions, files) it waits for, and cancels them after `max_standby_streaming_delay`.
//!   [`conflict`] says who is in the way.
//! * The primary says with the stream where its checkpoints begin and which transactions have ended ([`Note`]): a
//!   restart begins at such a place, and readers are let in when it is known which transactions may still commit.
//! * Promotion ([`Standby::ask_promotion`]): the receiver ends, the rest of the log is applied, the directory goes over to a
//!   new timeline, and sessions may write. Their connections stay.
//!
//! | file | |
//! | --- | --- |
//! | `standby.signal` | the directory is a standby's; what is in it does not matter |
//! | `standby.state` | every transaction of the primary below this id had ended at the last restart position, or at the position named |
//! | `timeline.history` | [`storage::History`] |
//!
//! Decision 0036 says why it is so.

pub mod apply;
mod archive;
pub mod clone;
pub mod conflict;
pub mod receiver;
pub mod rewind;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base::{Error, Lsn, Result, WaitEvent, Xid, err};
use sched::{SpinLock, TaskRef};

use ext_postgres::client::Writer;

/// The file that makes a directory a standby's.
pub const SIGNAL: &str = "standby.signal";
/// See the module's documentation.
pub const STATE: &str = "standby.state";
/// The file that requests promotion when the settings are read again; the server removes it when it is a primary.
const PROMOTE: &str = "promote";

/// Something that the primary says with the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// A checkpoint of it has this redo position.
    pub redo: Lsn,
    /// Every transaction below this has ended, …
    pub oldest: Xid,
    /// … with its commit before this position.
    pub at: Lsn,
}

impl Note {
    /// Its bytes in the stream.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![b'p'];
        for number in [self.redo.0, self.oldest.0, self.at.0] {
            out.extend(number.to_be_bytes());
        }
        out
    }

    /// The inverse; None for bytes that are none.
    pub fn decode(bytes: &[u8]) -> Option<Note> {
        let number = |at: usize| Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let (redo, oldest, at) = (number(1)?, number(9)?, number(17)?);
        Some(Note { redo: Lsn(redo), oldest: Xid(oldest), at: Lsn(at) })
    }
}

/// The receiver as `pg_stat_wal_receiver` shows it.
#[derive(Clone, Debug, Default)]
pub struct Receiving {
    /// Its process id; 0: none is connected.
    pub pid: i32,
    /// Where it began.
    pub began: Lsn,
    /// Written, not yet durable.
    pub written: Lsn,
    /// The primary's position, and when it said so; microseconds since 2000-01-01 UTC.
    pub end: Lsn,
    /// See [`Receiving::end`].
    pub end_time: i64,
    /// The last message: when it was sent and when it came.
    pub sent: i64,
    /// See [`Receiving::sent`].
    pub received: i64,
    /// The slot's name.
    pub slot: String,
    /// The primary's host and port, and the connection without its password.
    pub host: String,
    /// See [`Receiving::host`].
    pub port: u16,
    /// See [`Receiving::host`].
    pub conninfo: String,
}

/// The log up to a position, when it was sent and when it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) end: Lsn,
    pub(crate) sent: i64,
    pub(crate) received: Instant,
}

/// The state of following; of a primary: that it does not follow.
pub struct Standby {
    follows: AtomicBool,
    ready: AtomicBool,
    /// Everything up to here is applied.
    applied: AtomicU64,
    /// When the primary sent what was applied last with a commit; 0: nothing yet.
    applied_time: AtomicI64,
    /// The primary's log went up to here when it was last heard of.
    pub(crate) heard: AtomicU64,
    paused: AtomicBool,
    promotion: AtomicBool,
    /// The receiver has been told to end for a promotion, and has.
    receiver_ended: AtomicBool,
    pub(crate) notes: SpinLock<VecDeque<Note>>,
    pub(crate) arrivals: SpinLock<VecDeque<Arrival>>,
    pub(crate) receiving: SpinLock<Receiving>,
    /// The way to the primary, while there is one.
    pub(crate) primary: sched::Mutex<Option<Writer>>,
    /// Statements and sessions that were ended, by reason: locks, snapshots.
    pub conflicts: [AtomicU64; 2],
    /// The threads that receive and apply the log.
    threads: SpinLock<Vec<TaskRef>>,
}

impl Default for Standby {
    fn default() -> Standby {
        Standby {
            follows: AtomicBool::new(false),
            ready: AtomicBool::new(true),
            applied: AtomicU64::new(0),
            applied_time: AtomicI64::new(0),
            heard: AtomicU64::new(0),
            paused: AtomicBool::new(false),
            promotion: AtomicBool::new(false),
            receiver_ended: AtomicBool::new(false),
            notes: SpinLock::default(),
            arrivals: SpinLock::default(),
            receiving: SpinLock::default(),
            primary: sched::Mutex::new(WaitEvent::LWLockOther, None),
            conflicts: Default::default(),
            threads: SpinLock::default(),
        }
    }
}

/// Whether the directory is a standby's.
pub fn is_standby(dir: &Path) -> bool {
    dir.join(SIGNAL).exists()
}

/// Whether `threadgres promote` has requested a promotion that is not complete.
pub fn is_promotion_requested(dir: &Path) -> bool {
    dir.join(PROMOTE).exists()
}

/// Requests promotion of the server that runs on the directory, which is to read its settings again then.
///
/// # Errors
/// I/O.
pub fn request_promotion(dir: &Path) -> Result<()> {
    let created = std::fs::File::create(dir.join(PROMOTE));
    created.map(drop).map_err(|e| Error::io(format_args!("create file \"{PROMOTE}\""), &e))
}

/// Removes a request for promotion that an earlier run of the server has left.
pub fn forget_promotion_request(dir: &Path) {
    let _ = std::fs::remove_file(dir.join(PROMOTE));
}

/// The id below which everything has ended; `flushed`: the log that is here has been applied up to there.
pub fn saved_oldest(dir: &Path, flushed: Lsn) -> Option<Xid> {
    let text = std::fs::read_to_string(dir.join(STATE)).ok()?;
    let mut words = text.split_whitespace();
    let mut number_after = |word: &str| -> Option<u64> {
        words.next().filter(|found| *found == word)?;
        words.next()?.parse().ok()
    };
    let oldest = number_after("oldest")?;
    number_after("at").is_none_or(|at| at <= flushed.0).then_some(Xid(oldest))
}

/// Writes a file so that after a crash there is the old or the new one.
pub(crate) fn write_file(dir: &Path, name: &str, text: &str) -> Result<()> {
    let write = || {
        let aside = dir.join(format!("{name}.tmp"));
        let mut file = std::fs::File::create(&aside)?;
        std::io::Write::write_all(&mut file, text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&aside, dir.join(name))?;
        std::fs::File::open(dir)?.sync_all()
    };
    write().map_err(|e| Error::io(format_args!("write file \"{name}\""), &e))
}

/// An error as the log has it: one line, with what to do.
pub(crate) fn said(error: &Error) -> String {
    let fields = error.fields();
    let parts = [Some(&fields.message), fields.detail.as_ref(), fields.hint.as_ref()];
    let words: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    words.join("; ").replace('\n', " ")
}

/// `55000` for control functions of a server that does not follow another one.
fn not_in_progress() -> Error {
    err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "recovery is not in progress")
        .hint("Recovery control functions can only be executed during recovery.")
}

impl Standby {
    /// The state of a server that begins to follow, with the log applied up to here; `ready`: readers may come at once.
    pub fn following(applied: Lsn, ready: bool) -> Standby {
        Standby {
            follows: AtomicBool::new(true),
            ready: AtomicBool::new(ready),
            applied: AtomicU64::new(applied.0),
            ..Standby::default()
        }
    }

    /// Whether the server follows another one.
    #[inline]
    pub fn follows(&self) -> bool {
        self.follows.load(Ordering::Relaxed)
    }

    /// `25006` for a statement that a standby may not run.
    ///
    /// # Errors
    /// See above.
    pub fn refuse(&self, statement: &str) -> Result<()> {
        if !self.follows() {
            return Ok(());
        }
        Err(err!(READ_ONLY_SQL_TRANSACTION, "cannot execute {statement} during recovery"))
    }

    /// Whether sessions may come in.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Everything up to here is applied.
    pub fn applied(&self) -> Lsn {
        Lsn(self.applied.load(Ordering::Acquire))
    }

    /// When the primary sent what was applied last.
    pub fn applied_time(&self) -> Option<i64> {
        Some(self.applied_time.load(Ordering::Acquire)).filter(|time| *time != 0)
    }

    /// Whether replay is paused.
    ///
    /// # Errors
    /// `55000` in a primary.
    pub fn is_paused(&self) -> Result<bool> {
        if !self.follows() {
            return Err(not_in_progress());
        }
        Ok(self.paused.load(Ordering::Acquire))
    }

    /// Pauses replay, or lets it go on.
    ///
    /// # Errors
    /// `55000` in a primary, or while it becomes one.
    pub fn set_paused(&self, paused: bool) -> Result<()> {
        if !self.follows() {
            return Err(not_in_progress());
        }
        if self.promotion.load(Ordering::Acquire) {
            return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "standby promotion is ongoing")
                .hint("This function cannot be executed after promotion is triggered."));
        }
        self.paused.store(paused, Ordering::Release);
        self.wake();
        Ok(())
    }

    /// Whether the server is to become a primary.
    pub fn is_promoted(&self) -> bool {
        self.promotion.load(Ordering::Acquire)
    }

    /// Asks for promotion.
    ///
    /// # Errors
    /// `55000` in a primary.
    pub fn ask_promotion(&self) -> Result<()> {
        if !self.follows() {
            return Err(not_in_progress());
        }
        self.promotion.store(true, Ordering::Release);
        self.wake();
        Ok(())
    }

    /// Waits until the server is a primary; false: not in that time.
    ///
    /// # Errors
    /// Interrupts.
    pub fn await_promotion(&self, patience: Duration) -> Result<bool> {
        let until = Instant::now() + patience;
        while self.follows() {
            if Instant::now() >= until {
                return Ok(false);
            }
            sched::check_interrupts()?;
            let soon = Instant::now() + Duration::from_millis(10);
            sched::park(WaitEvent::IPCPromote, Some(soon));
        }
        Ok(true)
    }

    /// The running thread is one of those that receive and apply the log.
    pub(crate) fn join(&self) {
        self.threads.lock().push(sched::current());
    }

    /// Wakes the threads that receive and apply the log.
    pub(crate) fn wake(&self) {
        let threads = self.threads.lock().clone();
        threads.iter().for_each(|task| task.unpark());
    }

    /// The time since which there is something to be applied, as it came.
    pub(crate) fn behind_since(&self) -> Option<Instant> {
        let applied = self.applied();
        self.arrivals.lock().iter().find(|a| a.end > applied).map(|a| a.received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_is_known_from_its_position_on() {
        let dir = std::env::temp_dir().join(format!("tg-standby-state-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        assert_eq!(saved_oldest(&dir, Lsn(100)), None);
        write_file(&dir, STATE, "oldest 7\n").unwrap();
        assert_eq!(saved_oldest(&dir, Lsn(0)), Some(Xid(7)));
        write_file(&dir, STATE, "oldest 7 at 50\n").unwrap();
        assert_eq!(saved_oldest(&dir, Lsn(49)), None);
        assert_eq!(saved_oldest(&dir, Lsn(50)), Some(Xid(7)));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_note_comes_back_as_it_was() {
        let note = Note { redo: Lsn(1), oldest: Xid(1 << 40), at: Lsn(99) };
        assert_eq!(Note::decode(&note.encode()), Some(note));
        assert_eq!(Note::decode(&note.encode()[..24]), None);
    }
}

//! Those who follow the log: senders, which read its bytes as they become durable, and replicas, which say how far they
//! have them.
//!
//! * A sender registers ([`Wal::watch`]), looks at the position once more, and parks: the writer publishes the position
//!   first and then wakes those who have registered.
//! * While a quorum is asked for ([`Wal::set_quorum`]), what is durable here is acknowledged only when enough replicas
//!   have it, too ([`Wal::acknowledged`]): answers that rest on it wait, those of readers like those of writers. So
//!   nobody is shown what the loss of this server could take back.

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{Ordering, fence};

use base::error::Severity;
use base::{Error, Lsn, Result, WaitEvent, err};
use sched::TaskRef;

use crate::{Storage, Wal};

impl Wal {
    /// Wakes the task once, when the log is durable further than now.
    pub fn watch(&self, task: &TaskRef) {
        let followers = &self.log.followers;
        let mut watching = followers.watching.lock();
        if !watching.iter().any(|known| std::sync::Arc::ptr_eq(known, task)) {
            watching.push(task.clone());
        }
        followers.count.store(watching.len(), Ordering::SeqCst);
        drop(watching);
        fence(Ordering::SeqCst);
    }

    /// Everything before this is durable, here and, while a quorum is asked for, on enough replicas.
    #[inline]
    pub fn acknowledged(&self) -> Lsn {
        let (flushed, followers) = (self.flushed(), &self.log.followers);
        match followers.quorum.load(Ordering::Acquire) {
            true => Lsn(flushed.0.min(followers.acknowledged.load(Ordering::Acquire))),
            false => flushed,
        }
    }

    /// Whether replicas have to acknowledge from now on.
    pub fn set_quorum(&self, on: bool) {
        self.log.followers.quorum.store(on, Ordering::SeqCst);
        self.log.followers.wake_acknowledged();
        self.log.followers.wake_applied();
    }

    /// Enough replicas have the log up to here.
    pub fn acknowledge(&self, upto: Lsn) {
        let followers = &self.log.followers;
        if followers.acknowledged.fetch_max(upto.0, Ordering::SeqCst) < upto.0 {
            followers.wake_acknowledged();
        }
    }

    /// Enough replicas have applied the log up to here.
    pub fn acknowledge_applied(&self, upto: Lsn) {
        let followers = &self.log.followers;
        if followers.applied.fetch_max(upto.0, Ordering::SeqCst) < upto.0 {
            followers.wake_applied();
        }
    }

    fn is_applied(&self, upto: Lsn) -> bool {
        let followers = &self.log.followers;
        !followers.quorum.load(Ordering::SeqCst)
            || followers.applied.load(Ordering::SeqCst) >= upto.0
    }

    /// As [`Wal::await_acknowledged`], and until enough replicas have applied it.
    ///
    /// # Errors
    /// As [`Wal::await_acknowledged`].
    pub fn await_applied(&self, upto: Lsn) -> Result<()> {
        self.await_acknowledged(upto)?;
        let task = sched::current();
        while !self.is_applied(upto) {
            self.log.followers.awaiting_applied.lock().push((upto.0, task.clone()));
            fence(Ordering::SeqCst);
            if !self.is_applied(upto) {
                sched::park(WaitEvent::IPCSyncRep, None);
            }
            let mut waiting = self.log.followers.awaiting_applied.lock();
            waiting.retain(|(_, known)| !std::sync::Arc::ptr_eq(known, &task));
            drop(waiting);
            match sched::check_interrupts() {
                Err(error) if error.severity() == Severity::Error => return Ok(()),
                other => other?,
            }
        }
        Ok(())
    }

    /// Waits until what was logged up to here is durable and acknowledged. A cancelled statement does not wait for
    /// replicas any more: its commit has happened.
    ///
    /// # Errors
    /// As [`Wal::flush`]; the end of the session.
    pub fn await_acknowledged(&self, upto: Lsn) -> Result<()> {
        self.flush(upto)?;
        if self.acknowledged() >= upto {
            return Ok(());
        }
        let task = sched::current();
        self.log.followers.waiting.lock().push((upto.0, task.clone()));
        fence(Ordering::SeqCst);
        let result = loop {
            if self.acknowledged() >= upto {
                break Ok(());
            }
            match sched::check_interrupts() {
                Err(error) if error.severity() == Severity::Error => break Ok(()),
                Err(error) => break Err(error),
                Ok(()) => {}
            }
            sched::park(WaitEvent::IPCSyncRep, None);
        };
        let mut waiting = self.log.followers.waiting.lock();
        waiting.retain(|(_, known)| !std::sync::Arc::ptr_eq(known, &task));
        result
    }
}

impl Storage {
    /// Reads the log's bytes from a position on, as far as they are durable and lie in one segment; how many.
    ///
    /// # Errors
    /// `58P01` when the segment has been recycled; I/O.
    pub fn read_log(&self, from: Lsn, into: &mut [u8]) -> Result<usize> {
        let segments = &self.core.segments;
        let number = from.0 / segments.size;
        let end = self.wal.flushed().0.min((number + 1) * segments.size);
        let wanted = (end.saturating_sub(from.0) as usize).min(into.len());
        if wanted == 0 {
            return Ok(0);
        }
        let file = match segments.open_read(number) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(removed(self.segment_name(number)));
            }
            Err(e) => return Err(Error::io("open the write-ahead log", &e)),
        };
        file.read_exact_at(&mut into[..wanted], from.0 % segments.size)
            .map_err(|e| Error::io("read the write-ahead log", &e))?;
        // It may have got another name while it was read.
        if !segments.path(number).exists() {
            return Err(removed(self.segment_name(number)));
        }
        Ok(wanted)
    }

    /// Bytes of a segment of the log.
    pub fn segment_size(&self) -> u64 {
        self.core.segments.size
    }

    /// The timeline that the log is on.
    pub fn timeline(&self) -> u32 {
        self.core.timeline.load(Ordering::Acquire)
    }

    /// The log goes on in another timeline.
    pub fn set_timeline(&self, timeline: u32) {
        self.core.timeline.store(timeline, Ordering::Release);
    }

    /// The name that PostgreSQL's programs give a segment of the timeline.
    pub fn segment_name(&self, number: u64) -> String {
        let in_each = (1 << 32) / self.core.segments.size;
        format!("{:08X}{:08X}{:08X}", self.timeline(), number / in_each, number % in_each)
    }

    /// The least position from which the log is there.
    ///
    /// # Errors
    /// I/O.
    pub fn oldest_log(&self) -> Result<Lsn> {
        let all = self.core.segments.list().map_err(|e| Error::io("list the log", &e))?;
        let first = all.first().copied().unwrap_or_default();
        Ok(Lsn(first * self.core.segments.size))
    }

    /// Keeps the log from `new` on, and no longer from `old` on.
    pub fn move_hold(&self, old: Option<Lsn>, new: Option<Lsn>) {
        let mut held = self.core.held.lock();
        held.0.extend(new.map(|lsn| lsn.0));
        if let Some(old) = old {
            held.remove(old.0);
        }
    }

    /// Where a start would begin to read the log.
    pub fn redo_position(&self) -> Lsn {
        self.core.control.lock().redo
    }
}

fn removed(name: String) -> Error {
    err!(UNDEFINED_FILE, "requested WAL segment {name} has already been removed")
}

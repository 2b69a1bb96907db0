//! The applier: applies the log that was received, lets readers in, and makes the server a primary when it is asked to.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use base::settings::{live_int, setting};
use base::{Error, Lsn, Result, WaitEvent};
use storage::{History, Replay};

use super::conflict::Conflicts;
use super::receiver::send_status;
use super::{Note, SIGNAL, STATE, said, write_file};
use crate::log;
use crate::server::Server;

/// While records follow each other, the primary is told of progress this often.
const REPORT: Duration = Duration::from_millis(10);
/// Records between two looks at the clock.
const RECORDS: u32 = 64;
/// After a record that could not be applied.
const RETRY: Duration = Duration::from_secs(1);
/// For how long nothing is waited for without a look at the settings.
const LOOK: Duration = Duration::from_secs(1);

struct Applier<'s> {
    server: &'s Arc<Server>,
    conflicts: Arc<Conflicts>,
    replay: Replay,
    reported: Lsn,
    reported_at: Instant,
    failed: String,
}

/// A panic may leave a record half applied: it ends the server, which begins anew from its restart position.
struct EndOfThread;

impl Drop for EndOfThread {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "PANIC:  the log of the primary could not be applied; the server stops for recovery"
            );
            std::process::abort();
        }
    }
}

/// The thread's life.
pub fn work(server: &Arc<Server>) {
    if !server.standby.follows() {
        return;
    }
    let _end = EndOfThread;
    server.standby.join();
    let conflicts = Conflicts::new(server);
    server.engine.txn.set_following(conflicts.clone());
    let replay = server.engine.storage.replay_from(server.standby.applied());
    let mut applier = Applier {
        server,
        conflicts,
        replay,
        reported: Lsn::ZERO,
        reported_at: Instant::now(),
        failed: String::new(),
    };
    loop {
        match applier.round() {
            Ok(true) => return,
            Ok(false) => {}
            Err(_) if sched::check_interrupts().is_err() => return,
            Err(error) => {
                applier.conflicts.unlock();
                if error.code() == base::sqlstate::ADMIN_SHUTDOWN {
                    return;
                }
                let text = said(&error);
                if text != applier.failed {
                    log::info(format_args!("the log of the primary is not applied: {text}"));
                    applier.failed = text;
                }
                sched::park(WaitEvent::ActivityThreadMain, Some(Instant::now() + RETRY));
            }
        }
    }
}

impl Applier<'_> {
    /// Applies what is there; whether the server has become a primary.
    fn round(&mut self) -> Result<bool> {
        let server = self.server;
        self.take_notes()?;
        let mut idle = self.is_held();
        while !idle {
            for _ in 0..RECORDS {
                idle = !self.next()?;
                if idle {
                    break;
                }
            }
            sched::check_interrupts()?;
            if self.reported_at.elapsed() >= REPORT {
                self.report();
                self.take_notes()?;
            }
            idle |= self.is_held();
        }
        self.take_notes()?;
        self.report();
        let standby = &server.standby;
        let all_applied = self.replay.position() == server.engine.storage.wal.flushed();
        if standby.is_promoted()
            && standby.receiver_ended.load(Ordering::Acquire)
            && (all_applied || !self.failed.is_empty())
        {
            self.promote()?;
            return Ok(true);
        }
        self.wait();
        sched::check_interrupts()?;
        Ok(false)
    }

    /// Applies a record; false: there is none.
    fn next(&mut self) -> Result<bool> {
        let conflicts = &self.conflicts;
        let applied = self.replay.next(&mut |rel| conflicts.before_cut(rel))?;
        let Some(end) = applied else { return Ok(false) };
        conflicts.unlock();
        self.server.standby.applied.store(end.0, Ordering::Release);
        self.failed.clear();
        Ok(true)
    }

    /// Whether nothing may be applied now.
    fn is_held(&self) -> bool {
        let standby = &self.server.standby;
        if standby.is_promoted() {
            return false;
        }
        standby.paused.load(Ordering::Acquire) || self.delayed_until().is_some()
    }

    /// `recovery_min_apply_delay`, from when the primary sent what is next. Readers are let in before it counts.
    fn delayed_until(&self) -> Option<Instant> {
        let ms = live_int(setting::RECOVERY_MIN_APPLY_DELAY).max(0) as u64;
        if ms == 0 || !self.server.standby.is_ready() {
            return None;
        }
        let until = self.server.standby.behind_since()? + Duration::from_millis(ms);
        (until > Instant::now()).then_some(until)
    }

    /// Heeds the primary's notes on positions that have been applied.
    fn take_notes(&mut self) -> Result<()> {
        let standby = &self.server.standby;
        let at = self.replay.position();
        {
            let mut arrivals = standby.arrivals.lock();
            while arrivals.front().is_some_and(|first| first.end <= at) {
                if let Some(first) = arrivals.pop_front() {
                    standby.applied_time.store(first.sent, Ordering::Release);
                }
            }
        }
        let mut newest: Option<Note> = None;
        {
            let mut notes = standby.notes.lock();
            while notes.front().is_some_and(|first| first.at <= at && first.redo <= at) {
                newest = notes.pop_front();
            }
        }
        let Some(note) = newest else { return Ok(()) };
        let engine = &self.server.engine;
        if standby.is_ready() {
            engine.txn.settle(note.oldest);
        } else {
            engine.txn.open_from(note.oldest);
            // So that the next start lets readers in without the primary.
            let known = format!("oldest {} at {}\n", note.oldest.0, note.at.0);
            write_file(engine.storage.dir(), STATE, &known)?;
            standby.ready.store(true, Ordering::Release);
            log::info("database system is ready to accept read-only connections");
        }
        if note.redo > engine.storage.redo_position() {
            let oldest = engine.txn.ended_below();
            write_file(engine.storage.dir(), STATE, &format!("oldest {}\n", oldest.0))?;
            engine.storage.offer_restart(note.redo);
        }
        Ok(())
    }

    /// Tells the primary how far everything is applied.
    fn report(&mut self) {
        let applied = self.replay.position();
        self.reported_at = Instant::now();
        if applied > self.reported {
            self.reported = applied;
            // The receiver sees that the connection is gone, too.
            let _ = send_status(self.server);
        }
    }

    fn wait(&self) {
        let storage = &self.server.engine.storage;
        storage.wal.watch(&sched::current());
        let delayed = self.delayed_until();
        if storage.wal.flushed() > self.replay.position() && !self.is_held() {
            return;
        }
        let until = Instant::now() + LOOK;
        let until = delayed.map_or(until, |at| at.min(until));
        sched::park(WaitEvent::ActivityRecoveryWalStream, Some(until));
    }

    /// Makes the server a primary: nothing more is received, and what came is applied.
    fn promote(&mut self) -> Result<()> {
        let server = self.server;
        let engine = &server.engine;
        let (storage, txn) = (&engine.storage, &engine.txn);
        let end = self.replay.position();
        log::info(format_args!("redo done at {end}"));
        let heard = Lsn(server.standby.heard.load(Ordering::Acquire));
        if heard > end {
            log::info(format_args!(
                "the primary had logged up to {heard} when it was last heard of: what follows {end} has not come here"
            ));
        }
        let mut history = History::read(storage.dir())?;
        history.switch(end, "no recovery target specified".to_owned());
        // From here on an error leaves a server that is neither: it ends, and the next start has the new timeline.
        let result = (|| -> Result<()> {
            history.write(storage.dir())?;
            remove(storage.dir(), SIGNAL)?;
            remove(storage.dir(), STATE)?;
            txn.end_following(end);
            engine.catalog.end_following(txn)?;
            storage.set_timeline(history.current());
            storage.end_following(&self.replay)?;
            // The log received from the old primary counts as acknowledged: this server may have no replica yet.
            storage.wal.acknowledge(end);
            Ok(())
        })();
        if let Err(error) = result {
            log::error(0, &error, None);
            log::info("the promotion has failed half-way; the server stops");
            std::process::abort();
        }
        server.prepared.restore(&engine.catalog);
        server.standby.follows.store(false, Ordering::Release);
        server.renew_settings();
        crate::primary::start(server);
        log::info(format_args!("selected new timeline ID: {}", history.current()));
        log::info("database system is ready to accept connections");
        // `threadgres promote` waits until this file is gone.
        remove(storage.dir(), super::PROMOTE)?;
        storage.checkpoint()
    }
}

fn remove(dir: &std::path::Path, name: &str) -> Result<()> {
    let removed = match std::fs::remove_file(dir.join(name)) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    let synced = removed.and_then(|()| std::fs::File::open(dir)?.sync_all());
    synced.map_err(|e| Error::io(format_args!("remove file \"{name}\""), &e))
}

//! The state that the background threads share with [`crate::Storage`].

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use base::settings::{live_int, setting};
use base::{RelId, Result, WaitEvent};
use sched::Mutex;

use crate::buffer::pool::Pool;
use crate::control::Control;
use crate::files::Files;
use crate::held::Held;
use crate::maps::SavedMaps;
use crate::options::Options;
use crate::participant::Participant;
use crate::signal::{Requests, Signal, stopping};
use crate::slots::Slots;
use crate::stats::Counters;
use crate::wal::Log;
use crate::wal::segment::Segments;

/// Everything but the threads' handles.
pub(crate) struct Core {
    pub dir: PathBuf,
    pub options: Options,
    pub counters: Arc<Counters>,
    pub signal: Arc<Signal>,
    pub log: Arc<Log>,
    pub segments: Segments,
    pub files: Arc<Files>,
    pub pool: Arc<Pool>,
    pub requests: Requests,
    pub control: Mutex<Control>,
    /// Held while a checkpoint is made, and while a backup reads what belongs to the last one.
    pub checkpointing: Mutex<()>,
    /// The log that running backups need.
    pub held: Mutex<Held>,
    /// Replication slots.
    pub slots: Slots,
    /// Those of the layer above, of pages.
    pub maps: SavedMaps,
    /// The newest checkpoint of the primary from which a restart may begin: [`crate::standby`].
    pub restart_at: AtomicU64,
    /// See [`crate::timeline`].
    pub timeline: AtomicU32,
    nothing: HashSet<RelId>,
    participant: Mutex<Option<Arc<dyn Participant>>>,
}

impl Core {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn new(
        dir: PathBuf,
        options: Options,
        counters: Arc<Counters>,
        signal: Arc<Signal>,
        log: Arc<Log>,
        segments: Segments,
        files: Arc<Files>,
        pool: Arc<Pool>,
        control: Control,
        participant: Arc<dyn Participant>,
        slots: Slots,
        maps: SavedMaps,
        timeline: u32,
    ) -> Core {
        Core {
            dir,
            options,
            counters,
            signal,
            log,
            segments,
            files,
            pool,
            requests: Requests::new(),
            control: Mutex::new(WaitEvent::LWLockOther, control),
            checkpointing: Mutex::new(WaitEvent::LWLockOther, ()),
            held: Mutex::new(WaitEvent::LWLockOther, Held::default()),
            slots,
            maps,
            restart_at: AtomicU64::new(0),
            timeline: AtomicU32::new(timeline),
            nothing: HashSet::new(),
            participant: Mutex::new(WaitEvent::LWLockOther, Some(participant)),
        }
    }

    /// No relations.
    pub(crate) fn nothing(&self) -> &HashSet<RelId> {
        &self.nothing
    }

    pub(crate) fn participant(&self) -> Result<Arc<dyn Participant>> {
        self.participant.lock().clone().ok_or_else(stopping)
    }

    /// Replaces the control file, with the list of relation files that goes with it.
    pub(crate) fn change_control(&self, change: impl FnOnce(&mut Control)) -> Result<()> {
        let mut control = self.control.lock();
        let mut changed = control.clone();
        change(&mut changed);
        let files = self.files.write_manifest(changed.redo)?;
        changed.files = files.listed;
        changed.durable = self.log.flushed().max(changed.redo);
        changed.write(&self.dir, self.options.fsync())?;
        self.files.note_in_manifest(&files);
        *control = changed;
        Ok(())
    }

    /// Lets go of the participant, which may hold the storage.
    pub(crate) fn release_participant(&self) {
        let participant = self.participant.lock().take();
        drop(participant);
    }
}

/// A panic of the background writer may have left a page half-way: it ends the server.
struct EndOfThread;

impl Drop for EndOfThread {
    fn drop(&mut self) {
        if std::thread::panicking() {
            crate::fatal::broken("the background writer failed");
        }
    }
}

/// The background writer's life: keeps the free list filled, and sleeps while it is.
pub(crate) fn run_background_writer(core: &Core) {
    let _end = EndOfThread;
    let refill = &core.pool.refill;
    let _ = refill.task.set(sched::current());
    while !core.signal.is_stopped() {
        let mut pause = None;
        if core.pool.wants_refill() && !matches!(core.pool.refill(), Ok(true)) {
            // Everything is pinned, or can't be written: others will say so; not in a busy loop.
            let delay = live_int(setting::BGWRITER_DELAY) as u64;
            pause = Some(std::time::Instant::now() + std::time::Duration::from_millis(delay));
        }
        refill.sleeping.store(true, Ordering::SeqCst);
        std::sync::atomic::fence(Ordering::SeqCst);
        if (pause.is_some() || !core.pool.wants_refill()) && !core.signal.is_stopped() {
            sched::park_uninterruptible(WaitEvent::ActivityBgWriterMain, pause);
        }
        refill.sleeping.store(false, Ordering::SeqCst);
    }
}

//! The log's files: `wal/<number>`, sixteen hexadecimal digits, each of one size. Byte `p` of the
//! log is byte `p mod size` of file `p / size`; records run over the ends of files.
//!
//! A segment is used when the log gets there. Better that its bytes exist by then (written, not
//! just promised by the file system), since then a sync has no metadata to write: so the
//! checkpointer prepares the next segment ahead, and renames segments that are no longer needed to
//! numbers to come. When nothing was prepared in time the writer makes a sparse file and goes on. Either
//! way a file has its whole length before it has a segment's name, so that one of another length is damaged.
//!
//! Both threads give files names under one lock, and a file is put in place by `rename` only where
//! there is none. (A link followed by an unlink never overwrites either, but a crash in between
//! leaves one file under two numbers, and the log is then written over itself.)

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::settings::{live_bool, live_enum, setting};
use base::{Lsn, WaitEvent};
use sched::{Mutex, io_wait};

/// The directory of segments.
#[derive(Clone)]
pub(crate) struct Segments {
    dir: PathBuf,
    /// Bytes in each.
    pub(crate) size: u64,
    sync: Option<bool>,
    /// Held while a file gets its name.
    naming: Arc<Mutex<()>>,
}

/// A segment that is written.
pub(crate) struct Opened {
    pub(crate) file: File,
    /// By `O_DIRECT`: it takes whole blocks only.
    pub(crate) direct: bool,
}

/// Position of a word in the setting `wal_sync_method`.
const FSYNC: usize = 1;
const OPEN_DATASYNC: usize = 2;

impl Segments {
    pub(crate) fn new(dir: &Path, size: u64, sync: Option<bool>) -> Segments {
        let naming = Arc::new(Mutex::new(WaitEvent::LWLockOther, ()));
        Segments { dir: dir.join("wal"), size, sync, naming }
    }

    fn fsync(&self) -> bool {
        self.sync.unwrap_or_else(|| base::settings::live_bool(setting::FSYNC))
    }

    pub(crate) fn path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{number:016X}"))
    }

    /// Numbers of the segments that are there, in order.
    pub(crate) fn list(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            match u64::from_str_radix(&name, 16) {
                Ok(n) if name.len() == 16 => numbers.push(n),
                _ => {}
            }
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The segment's name in messages.
    pub(crate) fn name(number: u64) -> String {
        format!("wal/{number:016X}")
    }

    /// Bytes in the segment's file; None: there is none.
    pub(crate) fn length(&self, number: u64) -> io::Result<Option<u64>> {
        match fs::metadata(self.path(number)) {
            Ok(meta) => Ok(Some(meta.len())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Opens a segment for reading.
    pub(crate) fn open_read(&self, number: u64) -> io::Result<File> {
        File::open(self.path(number))
    }

    /// Whether segments are to be written directly: what is not made durable is better off in the system's
    /// cache.
    pub(crate) fn wants_direct(&self) -> bool {
        live_bool(setting::WAL_DIRECT_IO) && self.fsync()
    }

    /// Opens or makes a segment for writing, if possible directly where that is wanted, and makes its name
    /// durable.
    pub(crate) fn open_write(&self, number: u64, direct: bool) -> io::Result<Opened> {
        let at_once = live_enum(setting::WAL_SYNC_METHOD) == OPEN_DATASYNC && self.fsync();
        let flags = if at_once { libc::O_DSYNC } else { 0 };
        let path = self.path(number);
        let open = |flags| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).custom_flags(flags);
            options.open(&path)
        };
        let naming = self.naming.lock();
        if !path.exists() {
            // The checkpointer has a file of its own under way.
            let sparse = self.dir.join("sparse.tmp");
            File::create(&sparse)?.set_len(self.size)?;
            fs::rename(&sparse, &path)?;
        }
        let direct = if direct { open(flags | libc::O_DIRECT).ok() } else { None };
        let opened = match direct {
            Some(file) => Opened { file, direct: true },
            // Not every file system has it.
            None => Opened { file: open(flags)?, direct: false },
        };
        drop(naming);
        self.sync_dir()?;
        Ok(opened)
    }

    /// Makes a segment's bytes durable.
    pub(crate) fn sync(&self, file: &File) -> io::Result<()> {
        if !self.fsync() {
            return Ok(());
        }
        match live_enum(setting::WAL_SYNC_METHOD) {
            FSYNC => file.sync_all(),
            _ => file.sync_data(),
        }
    }

    fn sync_dir(&self) -> io::Result<()> {
        if self.fsync() { File::open(&self.dir)?.sync_all() } else { Ok(()) }
    }

    /// Makes a segment full of zeros unless it is there.
    pub(crate) fn prepare(&self, number: u64) -> io::Result<()> {
        if self.path(number).exists() {
            return Ok(());
        }
        let temporary = self.dir.join("next.tmp");
        let filled = self.fill(&temporary);
        if filled.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        filled?;
        self.put_in_place(&temporary, number)?;
        self.sync_dir()
    }

    fn fill(&self, temporary: &Path) -> io::Result<()> {
        let file = File::create(temporary)?;
        let zeros = vec![0; (256 * 1024).min(self.size as usize)];
        let mut at = 0;
        while at < self.size {
            let n = zeros.len().min((self.size - at) as usize);
            io_wait(WaitEvent::IOWALInitWrite, || file.write_all_at(&zeros[..n], at))?;
            at += n as u64;
        }
        if self.fsync() {
            io_wait(WaitEvent::IOWALInitWrite, || file.sync_all())?;
        }
        Ok(())
    }

    /// Gives a file a segment's name, unless there is one, and takes its old name away.
    fn put_in_place(&self, file: &Path, number: u64) -> io::Result<()> {
        let _naming = self.naming.lock();
        let place = self.path(number);
        if place.exists() { fs::remove_file(file) } else { fs::rename(file, place) }
    }

    /// Renames segments before `keep_from` to numbers that follow the last one, as long as fewer
    /// than `spare` follow `current`, and removes the others.
    pub(crate) fn recycle(&self, keep_from: u64, current: u64, spare: u64) -> io::Result<()> {
        let all = self.list()?;
        let mut next = all.last().map_or(current, |last| *last.max(&current)) + 1;
        for number in all.into_iter().take_while(|n| *n < keep_from) {
            if next <= current + spare {
                self.put_in_place(&self.path(number), next)?;
                next += 1;
            } else {
                fs::remove_file(self.path(number))?;
            }
        }
        self.sync_dir()
    }

    /// A position behind every one that the log can have had: where it goes on when its end is lost.
    pub(crate) fn far_behind(&self, end: Lsn) -> io::Result<Lsn> {
        const FAR: u64 = 1 << 40;
        let last = self.list()?.last().copied().unwrap_or(0).max(end.0 / self.size);
        Ok(Lsn((last + 1) * self.size + FAR))
    }

    /// Copies what is left of the log from a position on, which is about to be given up, into a directory.
    pub(crate) fn keep_rest(&self, from: u64, into: &Path) -> io::Result<()> {
        fs::create_dir_all(into)?;
        for number in self.list()?.into_iter().filter(|n| *n >= from / self.size) {
            let copy = into.join(format!("wal-{number:016X}"));
            fs::copy(self.path(number), &copy)?;
            File::open(&copy)?.sync_all()?;
        }
        File::open(into)?.sync_all()
    }

    /// After recovery: nothing may follow the log's end that could ever be taken for a record that
    /// comes after new ones. Zeros the rest of the last segment and removes the later ones.
    pub(crate) fn cut_at(&self, end: u64) -> io::Result<()> {
        let last = end / self.size;
        for number in self.list()?.into_iter().rev().take_while(|n| *n > last) {
            fs::remove_file(self.path(number))?;
        }
        if self.path(last).exists() {
            let file = OpenOptions::new().write(true).open(self.path(last))?;
            let from = end % self.size;
            let zeros = vec![0; (self.size - from) as usize];
            file.write_all_at(&zeros, from)?;
            if self.fsync() {
                file.sync_all()?;
            }
        }
        self.sync_dir()
    }
}

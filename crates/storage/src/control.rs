//! The data directory's own files.
//!
//! ```text
//! threadgres.control   where redo starts, what must be there; replaced as a whole: written aside, synced,
//!                      renamed
//! threadgres.files.N   the relation files there must be ([`crate::manifest`])
//! threadgres.lock      locked by the server that has the directory open; holds its process id
//! base/                relation files
//! wal/                 log segments
//! lost/                files that nobody knew, and log that was given up; nothing is read from here
//!
//! control file: [magic 8][version u32][page size u32][segment size u64][system id u64]
//!               [flags u8: 1 clean, 2 filled][redo u64][durable u64][list's generation u64, length u64, crc u32]
//!               [state's length u32][participant's state][crc u32]
//! format 2 has no [durable … crc]; format 3 is as 4, without the index methods, stubs and objects that came with 4; format 4 as 5, without prepared
//! transactions; format 5 as 6, whose list of files says which page of each is the newest
//! ```
//!
//! docs/internals/data-directory.md draws the whole directory. A directory of format 2 to 5 is read, and becomes one of format 6
//! with the first control file that is written.
//!
//! The control file is written last when a directory is made, so a directory without one is either
//! foreign or half-made; the latter holds nothing but our own names and is completed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use base::{Error, Lsn, Result, WaitEvent, err};
use sched::io_wait;

use crate::manifest::Listed;
use crate::options::Options;
use crate::page::PAGE_SIZE;
use crate::wal::cursor::Cursor;

const MAGIC: &[u8; 8] = b"THRDGRES";
/// The format that is written.
const VERSION: u32 = 6;
/// From this format on a list says which files there must be, and records have durable marks.
const LISTED: u32 = 3;
/// The oldest format that is read.
const OLDEST: u32 = 2;
pub(crate) const CONTROL: &str = "threadgres.control";
const LOCK: &str = "threadgres.lock";
/// A process that has taken a directory writes its number into the file at once.
const SIGNED_WITHIN: Duration = Duration::from_secs(2);

/// The control file's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    /// The directory's format.
    pub version: u32,
    pub segment_size: u64,
    pub system_id: u64,
    /// The last server ended with a checkpoint and logged nothing after it.
    pub clean: bool,
    /// The layers above have put in what every directory has: without it the directory is damaged.
    pub filled: bool,
    /// Redo starts here.
    pub redo: Lsn,
    /// The log is known to have been durable up to here; at least `redo`.
    pub durable: Lsn,
    /// The list of relation files.
    pub files: Listed,
    /// The participant's state at `redo`.
    pub state: Vec<u8>,
}

impl Control {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&(PAGE_SIZE as u32).to_le_bytes());
        out.extend_from_slice(&self.segment_size.to_le_bytes());
        out.extend_from_slice(&self.system_id.to_le_bytes());
        out.push(u8::from(self.clean) | u8::from(self.filled) << 1);
        out.extend_from_slice(&self.redo.0.to_le_bytes());
        out.extend_from_slice(&self.durable.0.to_le_bytes());
        out.extend_from_slice(&self.files.generation.to_le_bytes());
        out.extend_from_slice(&self.files.length.to_le_bytes());
        out.extend_from_slice(&self.files.crc.to_le_bytes());
        out.extend_from_slice(&(self.state.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.state);
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Result<Control> {
        let damaged = || {
            err!(DATA_CORRUPTED, "the control file \"{CONTROL}\" is damaged")
                .hint("Restore the data directory from a backup.")
        };
        if !bytes.starts_with(MAGIC) {
            return Err(damaged());
        }
        let mut rest = Cursor(&bytes[MAGIC.len()..]);
        let body = bytes.len().checked_sub(4).ok_or_else(damaged)?;
        // Every format begins with its number and ends with this checksum.
        if crc32c::crc32c(&bytes[..body]).to_le_bytes() != bytes[body..] {
            return Err(damaged());
        }
        let version = rest.u32()?;
        if !(OLDEST..=VERSION).contains(&version) {
            return Err(other_version(version));
        }
        let page_size = rest.u32()?;
        if page_size != PAGE_SIZE as u32 {
            return Err(err!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the data directory has pages of {page_size} bytes"
            )
            .detail(format!("This server has pages of {PAGE_SIZE} bytes.")));
        }
        let (segment_size, system_id) = (rest.u64()?, rest.u64()?);
        let flags = rest.u8()?;
        let (clean, filled) = (flags & 1 != 0, flags & 2 != 0);
        let redo = Lsn(rest.u64()?);
        let (mut durable, mut files) = (redo, Listed::default());
        if version >= LISTED {
            durable = Lsn(rest.u64()?);
            files = Listed { generation: rest.u64()?, length: rest.u64()?, crc: rest.u32()? };
        }
        let len = rest.u32()? as usize;
        let state = rest.bytes(len)?.to_vec();
        Ok(Control { version, segment_size, system_id, clean, filled, redo, durable, files, state })
    }

    /// Whether a list says which files there must be.
    pub(crate) fn is_listed(&self) -> bool {
        self.version >= LISTED
    }

    /// Whether the directory is of a format before.
    pub(crate) fn is_old(&self) -> bool {
        self.version < VERSION
    }

    /// Reads the directory's control file.
    ///
    /// # Errors
    /// `55000` when there is none or it is another version's; `58P01` when there is none and the directory has
    /// relation files or log; `XX001` when it is damaged.
    pub(crate) fn read(dir: &Path) -> Result<Control> {
        match fs::read(dir.join(CONTROL)) {
            Ok(bytes) => Control::decode(&bytes),
            Err(e) if e.kind() == io::ErrorKind::NotFound && has_data(dir) => Err(err!(
                UNDEFINED_FILE,
                "the control file \"{}\" is missing",
                dir.join(CONTROL).display()
            )
            .hint("Restore the data directory from a backup.")),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(not_ours(dir)),
            Err(e) => Err(Error::io(format!("read \"{}\"", dir.join(CONTROL).display()), &e)),
        }
    }

    /// Replaces the control file, durably, in the newest format.
    pub(crate) fn write(&mut self, dir: &Path, sync: bool) -> Result<()> {
        self.version = VERSION;
        let replace = || -> io::Result<()> {
            let temporary = dir.join("threadgres.control.tmp");
            let mut file = File::create(&temporary)?;
            io_wait(WaitEvent::IOControlFileWrite, || file.write_all(&self.encode()))?;
            if sync {
                io_wait(WaitEvent::IOControlFileSync, || file.sync_all())?;
            }
            fs::rename(&temporary, dir.join(CONTROL))?;
            if sync { sync_dir(dir) } else { Ok(()) }
        };
        replace().map_err(|e| Error::io("write the control file", &e))
    }
}

/// Whether a directory without a control file holds what a server has written.
fn has_data(dir: &Path) -> bool {
    let has_files = |part: &str| fs::read_dir(dir.join(part)).is_ok_and(|mut d| d.next().is_some());
    has_files("base") || has_files("wal")
}

#[cold]
fn other_version(version: u32) -> Error {
    let (word, hint) = match version > VERSION {
        true => ("a later", "Use the server that made it, or a newer one."),
        false => ("an earlier", "Upgrade it with a server of a version in between."),
    };
    err!(
        OBJECT_NOT_IN_PREREQUISITE_STATE,
        "the data directory was made by {word} version of Threadgres"
    )
    .detail(format!("It has format {version}; this server reads formats {OLDEST} to {VERSION}."))
    .hint(hint)
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cold]
fn not_ours(dir: &Path) -> Error {
    err!(
        OBJECT_NOT_IN_PREREQUISITE_STATE,
        "\"{}\" is not a Threadgres data directory",
        dir.display()
    )
    .hint(format!("Make one with \"threadgres init -D {}\", or name another.", dir.display()))
}

/// Makes the files of a new directory; see [`crate::Storage::create`].
pub(crate) fn create(dir: &Path, options: &Options) -> Result<()> {
    refuse_foreign(dir)?;
    let doing = |e: io::Error| Error::io(format!("create directory \"{}\"", dir.display()), &e);
    for part in [dir.to_owned(), dir.join("base"), dir.join("wal")] {
        fs::create_dir_all(&part).map_err(doing)?;
    }
    let segment_size = options.wal_segment_size.clamp(64 << 10, 1 << 30).next_power_of_two();
    let mut control = Control {
        version: VERSION,
        segment_size,
        system_id: random_id().map_err(doing)?,
        clean: true,
        filled: false,
        // Position 0 means "none", so the log begins with its second segment.
        redo: Lsn(segment_size),
        durable: Lsn(segment_size),
        files: Listed::default(),
        state: Vec::new(),
    };
    control.write(dir, options.fsync())?;
    match dir.canonicalize().map(|d| d.parent().map(Path::to_owned)) {
        Ok(Some(parent)) if options.fsync() => sync_dir(&parent).map_err(doing),
        _ => Ok(()),
    }
}

fn refuse_foreign(dir: &Path) -> Result<()> {
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io(format!("read directory \"{}\"", dir.display()), &e)),
        Ok(entries) => entries,
    };
    for entry in entries {
        let entry =
            entry.map_err(|e| Error::io(format!("read directory \"{}\"", dir.display()), &e))?;
        let name = entry.file_name();
        match name.to_str() {
            Some(CONTROL) => {
                return Err(err!(
                    OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "\"{}\" is a Threadgres data directory already",
                    dir.display()
                )
                .hint("Serve it as it is, or name another directory."));
            }
            Some("base" | "wal" | "threadgres.control.tmp" | "lost+found") => {}
            Some(own) if own.starts_with("threadgres.") => {}
            _ => {
                return Err(err!(
                    OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "directory \"{}\" exists but is not empty",
                    dir.display()
                )
                .hint("Name an empty directory or one that doesn't exist yet."));
            }
        }
    }
    Ok(())
}

fn random_id() -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// The directory's lock, held until dropped: exclusively by a server, shared by those who only look.
pub(crate) struct DirLock {
    file: Option<File>,
}

fn try_lock(file: &File, how: libc::c_int) -> io::Result<bool> {
    // SAFETY: a system call on an open descriptor.
    if unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) } == 0 {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        e if e.raw_os_error() == Some(libc::EWOULDBLOCK) => Ok(false),
        e => Err(e),
    }
}

impl DirLock {
    /// Takes the directory; [`DirLock::sign`] says by whom.
    ///
    /// # Errors
    /// `55006` when somebody has it.
    pub(crate) fn take(dir: &Path) -> Result<DirLock> {
        let path = dir.join(LOCK);
        let doing = |e: io::Error| Error::io(format!("lock \"{}\"", path.display()), &e);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(doing)?;
        if try_lock(&file, libc::LOCK_EX).map_err(doing)? {
            return Ok(DirLock { file: Some(file) });
        }
        if try_lock(&file, libc::LOCK_SH).map_err(doing)? {
            return Err(err!(
                OBJECT_IN_USE,
                "data directory \"{}\" is being checked",
                dir.display()
            )
            .hint("Wait for the end of the check."));
        }
        let who = read_pid(&mut file).map_or(String::new(), |p| format!(" by process {p}"));
        Err(err!(OBJECT_IN_USE, "data directory \"{}\" is in use{who}", dir.display())
            .hint("Stop that server first, or name another directory."))
    }

    /// Writes this process's number into the file. Readers look at its first line, which is never half there: the number
    /// of a server before, or this one's.
    pub(crate) fn sign(&self, dir: &Path) -> Result<()> {
        let Some(file) = self.file.as_ref() else { return Ok(()) };
        let doing = |e: io::Error| Error::io(format!("lock \"{}\"", dir.join(LOCK).display()), &e);
        let line = format!("{}\n", std::process::id());
        file.write_all_at(line.as_bytes(), 0).map_err(doing)?;
        file.set_len(line.len() as u64).map_err(doing)
    }

    /// Takes the directory to look at it: no server may have it, and nothing is written.
    ///
    /// # Errors
    /// `55006` when a server has it.
    pub(crate) fn share(dir: &Path) -> Result<DirLock> {
        let path = dir.join(LOCK);
        let doing = |e: io::Error| Error::io(format!("lock \"{}\"", path.display()), &e);
        let file = match File::open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(DirLock { file: None }),
            opened => opened.map_err(doing)?,
        };
        if !try_lock(&file, libc::LOCK_SH).map_err(doing)? {
            return Err(err!(OBJECT_IN_USE, "data directory \"{}\" is in use", dir.display()));
        }
        Ok(DirLock { file: Some(file) })
    }

    /// The process that has the directory open, if any. One that has only just taken it may not have signed yet: the
    /// number is read again until it is that of a process.
    ///
    /// # Errors
    /// `55006` when it does not sign within [`SIGNED_WITHIN`].
    pub(crate) fn holder(dir: &Path) -> Result<Option<u32>> {
        let deadline = Instant::now() + SIGNED_WITHIN;
        loop {
            match DirLock::signature(dir)? {
                None => return Ok(None),
                Some(Some(pid)) if Path::new(&format!("/proc/{pid}")).exists() => {
                    return Ok(Some(pid));
                }
                Some(_) if Instant::now() > deadline => {
                    let dir = dir.display();
                    return Err(err!(OBJECT_IN_USE, "a server is starting in directory \"{dir}\""));
                }
                Some(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Whether a process has the directory open, and the number in the file.
    fn signature(dir: &Path) -> Result<Option<Option<u32>>> {
        let path = dir.join(LOCK);
        let doing = |e: io::Error| Error::io(format!("lock \"{}\"", path.display()), &e);
        let mut file = match File::open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(doing(e)),
            Ok(file) => file,
        };
        if try_lock(&file, libc::LOCK_SH).map_err(doing)? {
            return Ok(None);
        }
        Ok(Some(read_pid(&mut file)))
    }
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.lines().next()?.trim().parse().ok().filter(|pid| *pid != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_taken_and_not_signed_has_no_holder_yet() {
        let dir = std::env::temp_dir().join(format!("storage-lock-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        // A server before has left its number; process numbers end below this one.
        std::fs::write(dir.join(LOCK), "4194305000\n").unwrap();
        assert_eq!(DirLock::holder(&dir).unwrap(), None);
        let lock = DirLock::take(&dir).unwrap();
        assert_eq!(DirLock::signature(&dir).unwrap(), Some(Some(4_194_305_000)));
        let error = DirLock::holder(&dir).unwrap_err();
        assert_eq!(error.code(), base::sqlstate::OBJECT_IN_USE);
        lock.sign(&dir).unwrap();
        assert_eq!(DirLock::holder(&dir).unwrap(), Some(std::process::id()));
        let text = std::fs::read_to_string(dir.join(LOCK)).unwrap();
        assert_eq!(text, format!("{}\n", std::process::id()));
        // An empty file names nobody.
        std::fs::write(dir.join(LOCK), "").unwrap();
        assert_eq!(DirLock::signature(&dir).unwrap(), Some(None));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_control_file_comes_back_and_damage_is_seen() {
        let control = Control {
            version: VERSION,
            segment_size: 65536,
            system_id: 42,
            clean: true,
            filled: true,
            redo: Lsn(77),
            durable: Lsn(80),
            files: Listed { generation: 3, length: 56, crc: 9 },
            state: b"abc".to_vec(),
        };
        let bytes = control.encode();
        assert_eq!(Control::decode(&bytes).unwrap(), control);
        for at in [20, 33, bytes.len() - 1] {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert!(Control::decode(&bad).is_err(), "byte {at}");
        }
        for len in 0..bytes.len() {
            assert!(Control::decode(&bytes[..len]).is_err(), "{len} bytes");
        }
        let mut newer = bytes;
        newer[8] = 9;
        let body = newer.len() - 4;
        let crc = crc32c::crc32c(&newer[..body]);
        newer[body..].copy_from_slice(&crc.to_le_bytes());
        let error = Control::decode(&newer).unwrap_err();
        assert_eq!(error.code().as_str(), "55000");
        assert!(error.message().contains("a later version"), "{}", error.message());
    }
}

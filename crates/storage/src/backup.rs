//! Online backups: a copy of the directory that recovery makes whole.
//!
//! A backup is what a crash would leave, taken piece by piece while the server runs:
//!
//! 1. a checkpoint; from its redo position on the log is held back from recycling;
//! 2. while no other checkpoint runs: the control file, the list of relation files and the commit log, which are
//!    those of that checkpoint;
//! 3. the relation files as they come. Whatever changes in them meanwhile is in the log behind the redo position: a
//!    page that was read while it was written has its image there, since every page's first change after a
//!    checkpoint has one; files that were made, cut or dropped meanwhile have their records;
//! 4. the log from the redo position to its end by then, and a control file that says that it was durable up to
//!    there. A start from the copy redoes it, and refuses a copy whose log is shorter.
//!
//! Source: the same argument as PostgreSQL's manual has for base backups ("Continuous Archiving").

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, Lsn, Result};

use crate::Storage;
use crate::control::Control;

/// A file of a backup.
#[derive(Clone, Debug)]
pub struct BackupFile {
    /// Its path in the directory.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

/// A backup that has begun. Dropping it lets the log go.
pub struct Backup {
    storage: Arc<Storage>,
    control: Control,
    held: u64,
    /// Small files as they were at the checkpoint: name and content.
    pub fixed: Vec<(String, Vec<u8>)>,
}

impl Drop for Backup {
    fn drop(&mut self) {
        self.storage.core.held.lock().remove(self.held);
    }
}

/// The end of a backup.
pub struct BackupEnd {
    /// The copy is as of here.
    pub lsn: Lsn,
    /// The control file that goes with it.
    pub control: (String, Vec<u8>),
    /// The log's segments, and how much of each counts; what lies behind is zeros.
    pub log: Vec<(BackupFile, u64)>,
    /// Bytes of a segment.
    pub segment_size: u64,
}

/// Folders of the directory whose content is not copied as it comes.
const OWN_FOLDERS: [&str; 5] = ["base", "wal", "commitlog", "lost", "slots"];

impl Storage {
    /// The replication slots.
    pub fn slots(&self) -> &crate::slots::Slots {
        &self.core.slots
    }

    /// Reads payloads of the log from a position on, which a slot holds.
    pub fn stream_from(&self, from: Lsn) -> crate::wal::stream::LogStream {
        crate::wal::stream::LogStream::new(self.core.segments.clone(), from)
    }

    /// Begins a backup: makes a checkpoint and reads what goes with it.
    ///
    /// # Errors
    /// I/O; `57P01` while the server stops.
    pub fn begin_backup(self: &Arc<Storage>) -> Result<Backup> {
        let core = &self.core;
        // The position before is enough until the checkpoint has its own.
        let before = core.control.lock().redo.0;
        core.held.lock().0.push(before);
        let mut backup = Backup {
            storage: self.clone(),
            control: core.control.lock().clone(),
            held: before,
            fixed: Vec::new(),
        };
        self.checkpoint()?;
        let _no_checkpoint = core.checkpointing.lock();
        let control = core.control.lock();
        backup.control = control.clone();
        {
            let mut held = core.held.lock();
            held.remove(before);
            held.0.push(control.redo.0);
            backup.held = control.redo.0;
        }
        let list = format!("threadgres.files.{}", control.files.generation);
        let mut bytes = read(&core.dir, &list)?;
        bytes.truncate(control.files.length as usize);
        drop(control);
        backup.fixed.push((list, bytes));
        let folder = core.dir.join("commitlog");
        for name in names(&folder)? {
            let bytes = read(&folder, &name)?;
            backup.fixed.push((format!("commitlog/{name}"), bytes));
        }
        Ok(backup)
    }
}

impl Backup {
    /// Where recovery from the copy begins.
    pub fn start(&self) -> Lsn {
        self.control.redo
    }

    /// The directory's identity.
    pub fn system_id(&self) -> u64 {
        self.control.system_id
    }

    /// The relation files that there are now.
    ///
    /// # Errors
    /// I/O.
    pub fn relation_files(&self) -> Result<Vec<BackupFile>> {
        self.folder("base")
    }

    /// Files beside those of the server's own: settings, rules of access, certificates.
    ///
    /// # Errors
    /// I/O.
    pub fn other_files(&self) -> Result<Vec<BackupFile>> {
        let dir = &self.storage.core.dir;
        let mut out = Vec::new();
        for name in names(dir)? {
            let path = dir.join(&name);
            let own = [
                "threadgres.control",
                "threadgres.files.",
                "threadgres.lock",
                crate::maps::MAPS,
                "threadgres.address",
                "standby.",
                "recovery.signal",
                "postmaster.",
            ];
            let passing = name.ends_with(".tmp") || name.ends_with(".pid") || name.starts_with('.');
            if path.is_file() && !passing && !own.iter().any(|own| name.starts_with(own)) {
                out.push(BackupFile { name, path });
            } else if path.is_dir() && !OWN_FOLDERS.contains(&name.as_str()) {
                for file in self.folder(&name)? {
                    if file.path.is_file() {
                        out.push(file);
                    }
                }
            }
        }
        Ok(out)
    }

    fn folder(&self, folder: &str) -> Result<Vec<BackupFile>> {
        let path = self.storage.core.dir.join(folder);
        let file =
            |name: String| BackupFile { path: path.join(&name), name: format!("{folder}/{name}") };
        Ok(names(&path)?.into_iter().map(file).collect())
    }

    /// Ends the copying of files: says which log goes with it. The log is held until the backup is dropped.
    ///
    /// # Errors
    /// I/O.
    pub fn finish(&self) -> Result<BackupEnd> {
        let core = &self.storage.core;
        let end = core.log.insert_position();
        core.log.flush(end)?;
        let control = Control { durable: end, clean: false, ..self.control.clone() };
        let size = core.segments.size;
        let (first, last) = (control.redo.0 / size, end.0 / size);
        let log = (first..=last).map(|number| {
            let path = core.segments.path(number);
            let name =
                path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
            let used = if number == last { end.0 % size } else { size };
            (BackupFile { name: format!("wal/{name}"), path }, used)
        });
        Ok(BackupEnd {
            lsn: end,
            control: ("threadgres.control".to_owned(), control.encode()),
            log: log.collect(),
            segment_size: size,
        })
    }
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let read = || -> std::io::Result<Vec<String>> {
        let mut out = Vec::new();
        for entry in fs::read_dir(folder)? {
            out.push(entry?.file_name().to_string_lossy().into_owned());
        }
        out.sort();
        Ok(out)
    };
    match read() {
        Ok(names) => Ok(names),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(Error::io(format!("read \"{}\"", folder.display()), &e)),
    }
}

fn read(folder: &Path, name: &str) -> Result<Vec<u8>> {
    let path = folder.join(name);
    fs::read(&path).map_err(|e| Error::io(format!("read \"{}\"", path.display()), &e))
}

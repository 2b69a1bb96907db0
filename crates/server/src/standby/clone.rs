//! A new standby from nothing: a base backup of the primary, and the files that make it a standby.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Component, Path, PathBuf};

use base::{Error, Result, err};
use logical::conninfo::Conninfo;

use super::{SIGNAL, write_file};
use crate::config;
use crate::log;
use ext_postgres::client::Client;

/// The size of a block of a tar archive.
const BLOCK: usize = 512;

/// Files of the primary that are its own.
const LEFT_OUT: [&str; 6] =
    ["slots/", "archived", "threadgres.address", "statistics", "standby.state", "postmaster."];

/// Makes a directory that is missing or empty a standby's, by a copy of the primary. One that holds a database is made
/// to follow from its next start on, if it is a standby's already.
///
/// # Errors
/// `55000` for a directory of a primary; `08006`, and what the primary says; I/O.
pub fn prepare(dir: &Path, url: &str) -> Result<()> {
    let info = Conninfo::parse(url)
        .map_err(|why| err!(SYNTAX_ERROR, "invalid connection string syntax: {why}"))?;
    if crate::control::is_new(dir)? {
        crate::directory::claim(dir, false)?;
        copy(dir, &info)?;
        return point(dir, url);
    }
    if !super::is_standby(dir) {
        return Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "directory \"{}\" is a primary's",
            dir.display()
        )
        .hint(format!(
            "To make it a standby of a server that has its whole history, put an empty file \"{SIGNAL}\" there; else begin \
             with an empty directory."
        )));
    }
    point(dir, url)
}

/// Writes where the primary is, for the next starts.
pub(super) fn point(dir: &Path, url: &str) -> Result<()> {
    let config = config::Config::load(dir, Vec::new())?;
    config.alter_system(Some("primary_conninfo"), Some(url))
}

fn copy(dir: &Path, info: &Conninfo) -> Result<()> {
    log::info("copying the primary's data directory");
    let mut client = Client::connect_physical(info, "threadgres standby")?;
    let command = "BASE_BACKUP (LABEL 'standby', CHECKPOINT 'fast', WAL)";
    let received = unpack(&mut client, command, Archive::new(dir))?;
    log::info(format_args!("copied {} MB", received >> 20));
    Ok(())
}

/// Unpacks what a command sends; how many bytes that was.
pub(super) fn unpack(client: &mut Client, command: &str, mut archive: Archive<'_>) -> Result<u64> {
    let mut received = 0_u64;
    client.copy_out(command, &mut |bytes| {
        let Some((kind, rest)) = bytes.split_first() else { return Ok(()) };
        if *kind == b'd' {
            received += rest.len() as u64;
            archive.take(rest)?;
        }
        Ok(())
    })?;
    // Before the control file is there: a directory that is whole never starts as a second primary.
    write_file(archive.dir, SIGNAL, "")?;
    archive.finish()?;
    Ok(received)
}

/// Reads a tar archive as it comes.
pub(super) struct Archive<'d> {
    dir: &'d Path,
    /// Files that stay as they are here.
    keeps: fn(&Path) -> bool,
    header: Vec<u8>,
    /// The file that is written, with the bytes of it and of its padding that are still to come.
    file: Option<File>,
    left: u64,
    padding: u64,
    /// The control file comes last, and is written last.
    control: Option<Vec<u8>>,
    in_control: bool,
    made: Vec<PathBuf>,
}

const CONTROL: &str = "threadgres.control";

impl<'d> Archive<'d> {
    fn new(dir: &'d Path) -> Archive<'d> {
        Archive::keeping(dir, |_| false)
    }

    /// `keeps`: whether a file stays as it is here.
    pub(super) fn keeping(dir: &'d Path, keeps: fn(&Path) -> bool) -> Archive<'d> {
        Archive {
            dir,
            keeps,
            header: Vec::new(),
            file: None,
            left: 0,
            padding: 0,
            control: None,
            in_control: false,
            made: Vec::new(),
        }
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let n = (self.left.min(bytes.len() as u64)) as usize;
                if let Some(control) = self.control.as_mut().filter(|_| self.in_control) {
                    control.extend_from_slice(&bytes[..n]);
                } else if let Some(file) = &mut self.file {
                    file.write_all(&bytes[..n]).map_err(|e| Error::io("write the copy", &e))?;
                }
                self.left -= n as u64;
                bytes = &bytes[n..];
                if self.left == 0 {
                    self.end_file()?;
                }
                continue;
            }
            if self.padding > 0 {
                let n = (self.padding.min(bytes.len() as u64)) as usize;
                self.padding -= n as u64;
                bytes = &bytes[n..];
                continue;
            }
            let n = (BLOCK - self.header.len()).min(bytes.len());
            self.header.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if self.header.len() == BLOCK {
                self.begin_file()?;
                self.header.clear();
            }
        }
        Ok(())
    }

    fn begin_file(&mut self) -> Result<()> {
        let header = &self.header;
        if header.iter().all(|b| *b == 0) {
            return Ok(());
        }
        let damaged = || err!(DATA_CORRUPTED, "the primary sent an archive that cannot be read");
        let text = |range: std::ops::Range<usize>| {
            let bytes = &header[range];
            let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
        };
        let (name, size) = (text(0..100), text(124..136));
        let size = u64::from_str_radix(&size, 8).map_err(|_| damaged())?;
        let kind = header[156];
        let relative = Path::new(&name);
        let plain =
            relative.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
        if name.is_empty() || !plain {
            return Err(damaged());
        }
        let path = self.dir.join(relative);
        let failed = |e| Error::io(format_args!("make \"{}\"", path.display()), &e);
        if kind == b'5' || name.ends_with('/') {
            fs::create_dir_all(&path).map_err(failed)?;
            return Ok(());
        }
        self.left = size;
        self.padding = size.next_multiple_of(BLOCK as u64) - size;
        self.in_control = name == CONTROL;
        if self.in_control {
            self.control = Some(Vec::new());
        } else if !LEFT_OUT.iter().any(|own| name.starts_with(own)) && !(self.keeps)(&path) {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(failed)?;
            }
            self.file = Some(File::create(&path).map_err(failed)?);
            self.made.push(path);
        }
        if size == 0 {
            self.end_file()?;
        }
        Ok(())
    }

    fn end_file(&mut self) -> Result<()> {
        self.in_control = false;
        match self.file.take() {
            Some(file) => file.sync_all().map_err(|e| Error::io("sync the copy", &e)),
            None => Ok(()),
        }
    }

    fn finish(self) -> Result<()> {
        let failed = |e| Error::io("sync the copy", &e);
        let Some(control) = self.control.filter(|_| self.left == 0) else {
            return Err(err!(DATA_CORRUPTED, "the copy of the primary is not complete"));
        };
        for folder in ["base", "wal", "commitlog"] {
            fs::create_dir_all(self.dir.join(folder)).map_err(failed)?;
            File::open(self.dir.join(folder)).and_then(|f| f.sync_all()).map_err(failed)?;
        }
        let path = self.dir.join(CONTROL);
        let mut file = File::create(&path).map_err(failed)?;
        file.write_all(&control).and_then(|()| file.sync_all()).map_err(failed)?;
        File::open(self.dir).and_then(|f| f.sync_all()).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, content: &[u8]) -> Vec<u8> {
        let mut out = vec![0; BLOCK];
        out[..name.len()].copy_from_slice(name.as_bytes());
        out[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        out[156] = b'0';
        out.extend_from_slice(content);
        out.resize(out.len().next_multiple_of(BLOCK), 0);
        out
    }

    #[test]
    fn an_archive_is_unpacked_however_its_bytes_come() {
        let mut bytes = entry("base/1", b"abc");
        bytes.extend(entry("empty", b""));
        bytes.extend(entry("slots/x", b"left out"));
        bytes.extend(entry(CONTROL, &[7; 600]));
        bytes.extend([0; 2 * BLOCK]);
        for step in [1, 100, 511, 5000] {
            let dir = std::env::temp_dir().join(format!("tg-clone-{}-{step}", std::process::id()));
            let _ = fs::remove_dir_all(&dir);
            fs::create_dir_all(&dir).unwrap();
            let mut archive = Archive::new(&dir);
            bytes.chunks(step).for_each(|some| archive.take(some).unwrap());
            archive.finish().unwrap();
            assert_eq!(fs::read(dir.join("base/1")).unwrap(), b"abc");
            assert_eq!(fs::read(dir.join("empty")).unwrap(), b"");
            assert_eq!(fs::read(dir.join(CONTROL)).unwrap(), [7; 600]);
            assert!(!dir.join("slots/x").exists());
            fs::remove_dir_all(&dir).unwrap();
        }
    }

    #[test]
    fn names_that_lead_out_are_refused() {
        let dir = std::env::temp_dir();
        assert!(Archive::new(&dir).take(&entry("../x", b"y")).is_err());
        assert!(Archive::new(&dir).take(&entry("/x", b"y")).is_err());
    }
}

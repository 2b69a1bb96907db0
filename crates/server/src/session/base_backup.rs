//! `BASE_BACKUP`: the data directory as one tar archive in CopyData messages, and its manifest.
//!
//! ```text
//!   where it begins ─ tablespaces ─ CopyOut: n base.tar · d … · p … · m · d … ─ where it ends
//! ```
//!
//! The order in the archive is the order in which it must be read: small files of the checkpoint, the relation files,
//! the log (when asked for), and the control file last. Without it the log comes by a stream beside the archive, or from
//! an archive of its own; a start finds it in `pg_wal`.
//!
//! Sources: PostgreSQL's manual, "Streaming Replication Protocol" and "Backup Manifest Format"; POSIX, "ustar".

use std::collections::BTreeSet;
use std::fs::File;
use std::time::{Duration, Instant};

use base::{Error, Lsn, Result, WaitEvent, err};
use sha2::{Digest, Sha256};
use storage::{Backup, BackupFile};
use types::oids;

use super::SessionState;

/// The bytes that are read and sent at once.
const CHUNK: usize = 128 << 10;
const TAR_BLOCK: usize = 512;

/// `42501`.
pub(super) fn denied() -> Error {
    err!(INSUFFICIENT_PRIVILEGE, "must be superuser or replication role to start walsender")
}

/// The command's options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub label: String,
    pub progress: bool,
    pub manifest: bool,
    /// Whether files have checksums in it.
    pub checksums: bool,
    /// Kilobytes a second; 0: as fast as it goes.
    pub max_rate: u64,
    /// Where it goes, if not to the client.
    pub target: Option<String>,
    pub compressed: bool,
    /// The log comes with it.
    pub log: bool,
}

impl Options {
    /// Reads `(LABEL 'x', PROGRESS, …)`, or the form without parentheses of clients before 15.
    ///
    /// # Errors
    /// `42601`.
    pub(super) fn parse(text: &str) -> Result<Options> {
        let mut options =
            Options { checksums: true, label: "base backup".to_owned(), ..Options::default() };
        let mut words = Words(text.trim());
        while let Some(word) = words.next()? {
            if matches!(word.as_str(), "(" | ")" | ",") {
                continue;
            }
            match word.to_ascii_uppercase().as_str() {
                "LABEL" => options.label = words.value()?,
                "PROGRESS" => options.progress = words.flag(),
                "MANIFEST" => {
                    let value = words.value()?.to_ascii_lowercase();
                    options.manifest = !matches!(value.as_str(), "no" | "off" | "false");
                }
                "MANIFEST_CHECKSUMS" => {
                    options.checksums = !words.value()?.eq_ignore_ascii_case("none");
                }
                "MAX_RATE" => {
                    let value = words.value()?;
                    options.max_rate = value.parse().map_err(|_| {
                        err!(SYNTAX_ERROR, "invalid value for MAX_RATE: \"{value}\"")
                    })?;
                }
                "TARGET" => {
                    let value = words.value()?;
                    options.target = (value != "client").then_some(value);
                }
                "COMPRESSION" => options.compressed = words.value()? != "none",
                "CHECKPOINT" => drop(words.value()?),
                "FAST" | "NOWAIT" => {}
                "WAL" => options.log = words.flag(),
                "WAIT" | "TABLESPACE_MAP" | "VERIFY_CHECKSUMS" | "NOVERIFY_CHECKSUMS" => {
                    words.flag();
                }
                _ => return Err(err!(SYNTAX_ERROR, "unrecognized base backup option: \"{word}\"")),
            }
        }
        if let Some(target) = &options.target {
            return Err(Error::unsupported(format!("target \"{target}\" of a base backup")));
        }
        if options.compressed {
            return Err(Error::unsupported("compression of a base backup by the server")
                .hint("pg_basebackup compresses with --compress=client-gzip."));
        }
        Ok(options)
    }
}

/// Words, numbers, strings and signs of a command.
struct Words<'a>(&'a str);

impl Words<'_> {
    fn next(&mut self) -> Result<Option<String>> {
        let text = self.0.trim_start();
        let Some(first) = text.chars().next() else { return Ok(None) };
        if first == '\'' {
            let mut out = String::new();
            let mut rest = &text[1..];
            loop {
                let Some(end) = rest.find('\'') else {
                    return Err(err!(SYNTAX_ERROR, "unterminated quoted string"));
                };
                out.push_str(&rest[..end]);
                rest = &rest[end + 1..];
                match rest.strip_prefix('\'') {
                    Some(more) => {
                        out.push('\'');
                        rest = more;
                    }
                    None => break,
                }
            }
            self.0 = rest;
            return Ok(Some(out));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.' || c == '-';
        let end = match plain(first) {
            true => text.find(|c| !plain(c)).unwrap_or(text.len()),
            false => first.len_utf8(),
        };
        self.0 = &text[end..];
        Ok(Some(text[..end].to_owned()))
    }

    fn value(&mut self) -> Result<String> {
        match self.next()? {
            Some(value) if !matches!(value.as_str(), "(" | ")" | ",") => Ok(value),
            _ => Err(err!(SYNTAX_ERROR, "a base backup option lacks its value")),
        }
    }

    /// A boolean that may be left out.
    fn flag(&mut self) -> bool {
        let before = self.0;
        match self.next() {
            Ok(Some(word)) => match word.to_ascii_lowercase().as_str() {
                "true" | "on" | "1" | "yes" => true,
                "false" | "off" | "0" | "no" => false,
                _ => {
                    self.0 = before;
                    true
                }
            },
            _ => true,
        }
    }
}

/// One backup as it is sent.
struct Sending<'s> {
    session: &'s mut SessionState,
    options: &'s Options,
    began: Instant,
    sent: u64,
    reported: u64,
    /// The manifest's list of files.
    files: String,
}

/// Makes a backup and sends it.
///
/// # Errors
/// I/O; those of the connection; interrupts.
pub(super) fn run(session: &mut SessionState, options: &Options) -> Result<()> {
    let storage = session.server.engine.storage.clone();
    let backup = sched::blocking(WaitEvent::IPCCheckpointDone, || storage.begin_backup())?;
    position(session, backup.start());
    let relations = backup.relation_files()?;
    let others = backup.other_files()?;
    let size = options.progress.then(|| {
        let length = |f: &BackupFile| std::fs::metadata(&f.path).map_or(0, |m| m.len());
        relations.iter().chain(&others).map(length).sum::<u64>() / 1024
    });
    let columns = [("spcoid", oids::OID), ("spclocation", oids::TEXT), ("size", oids::INT8)];
    session.answer_table(&columns, &[vec![None, None, size.map(|s| s.to_string())]]);
    wire::response::complete(&mut session.out.get_mut().buffer, "SELECT");
    wire::copy::out_response(&mut session.out.get_mut().buffer, false, 0);
    let mut sending = Sending {
        session,
        options,
        began: Instant::now(),
        sent: 0,
        reported: 0,
        files: String::new(),
    };
    sending.message(b'n', b"base.tar\0\0")?;
    let end = sending.archive(&backup, &others, &relations)?;
    if options.manifest {
        sending.manifest(backup.start(), end)?;
    }
    wire::copy::done(&mut session.out.get_mut().buffer);
    position(session, end);
    Ok(())
}

/// Sends everything of a backup but its relation files: they are there.
///
/// # Errors
/// As [`run`].
pub(super) fn send_rest(session: &mut SessionState, backup: &Backup) -> Result<()> {
    let options = Options { label: "rewind".to_owned(), log: true, ..Options::default() };
    let others = backup.other_files()?;
    wire::copy::out_response(&mut session.out.get_mut().buffer, false, 0);
    let (began, files) = (Instant::now(), String::new());
    let mut sending = Sending { session, options: &options, began, sent: 0, reported: 0, files };
    sending.archive(backup, &others, &[])?;
    wire::copy::done(&mut session.out.get_mut().buffer);
    Ok(())
}

/// A position of the log as a result of its own.
fn position(session: &mut SessionState, lsn: Lsn) {
    let timeline = session.server.engine.storage.timeline();
    let columns = [("recptr", oids::TEXT), ("tli", oids::INT8)];
    session.answer_table(&columns, &[vec![Some(lsn.to_string()), Some(timeline.to_string())]]);
    wire::response::complete(&mut session.out.get_mut().buffer, "SELECT");
}

impl Sending<'_> {
    fn message(&mut self, kind: u8, bytes: &[u8]) -> Result<()> {
        sched::check_interrupts()?;
        let out = self.session.out.get_mut();
        let mut body = Vec::with_capacity(bytes.len() + 1);
        body.push(kind);
        body.extend_from_slice(bytes);
        wire::copy::data(&mut out.buffer, &body);
        out.pace()
    }

    /// Bytes of the archive.
    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.message(b'd', bytes)?;
        self.sent += bytes.len() as u64;
        if self.options.progress && self.sent - self.reported >= 1 << 20 {
            self.reported = self.sent;
            self.message(b'p', &self.sent.to_be_bytes())?;
        }
        if self.options.max_rate > 0 {
            let due = self.sent as f64 / (self.options.max_rate as f64 * 1024.0);
            let until = self.began + Duration::from_secs_f64(due);
            while Instant::now() < until {
                sched::check_interrupts()?;
                sched::park(WaitEvent::TimeoutBaseBackupThrottle, Some(until));
            }
        }
        Ok(())
    }

    fn archive(
        &mut self,
        backup: &Backup,
        others: &[BackupFile],
        relations: &[BackupFile],
    ) -> Result<Lsn> {
        let label = format!(
            "START WAL LOCATION: {}\nLABEL: {}\n",
            backup.start(),
            self.options.label.replace(['\n', '\r'], " ")
        );
        self.whole("backup_label.old", label.as_bytes())?;
        // PostgreSQL's programs look for the last two.
        const FOLDERS: [&str; 6] =
            ["base/", "commitlog/", "wal/", "lost/", "pg_wal/", "pg_tblspc/"];
        let mut folders: BTreeSet<String> = FOLDERS.iter().map(|f| (*f).to_owned()).collect();
        // Those above a file come before it.
        for file in others.iter().chain(relations) {
            let ends = file.name.match_indices('/').map(|(at, _)| file.name[..=at].to_owned());
            folders.extend(ends);
        }
        for folder in &folders {
            self.bytes(&header(folder, 0, b'5'))?;
        }
        for (name, bytes) in &backup.fixed {
            self.whole(name, bytes)?;
        }
        for file in others.iter().chain(relations) {
            self.file(file)?;
        }
        let end = sched::blocking(WaitEvent::IOWALSync, || backup.finish())?;
        for (file, used) in end.log.iter().filter(|_| self.options.log) {
            self.segment(file, *used, end.segment_size)?;
        }
        self.whole(&end.control.0, &end.control.1)?;
        self.bytes(&[0; 2 * TAR_BLOCK])?;
        Ok(end.lsn)
    }

    /// A file that is in memory.
    fn whole(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.bytes(&header(name, bytes.len() as u64, b'0'))?;
        for chunk in bytes.chunks(CHUNK) {
            self.bytes(chunk)?;
        }
        self.pad(bytes.len() as u64)?;
        self.note(name, bytes.len() as u64, crc32c::crc32c(bytes));
        Ok(())
    }

    /// A file as long as it is now. One that is gone is left out: the log says that it was dropped.
    fn file(&mut self, file: &BackupFile) -> Result<()> {
        let opened = File::open(&file.path).and_then(|f| f.metadata().map(|m| (f, m.len())));
        let (open, length) = match opened {
            Ok(opened) => opened,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(Error::io(format!("open \"{}\"", file.path.display()), &e)),
        };
        self.content(file, &open, length, length)
    }

    /// A segment of the log, of which so much counts.
    fn segment(&mut self, file: &BackupFile, used: u64, size: u64) -> Result<()> {
        let open = File::open(&file.path)
            .map_err(|e| Error::io(format!("open \"{}\"", file.path.display()), &e))?;
        self.content(file, &open, used, size)
    }

    /// Some bytes of a file, and zeros up to a length.
    fn content(&mut self, file: &BackupFile, open: &File, used: u64, length: u64) -> Result<()> {
        self.bytes(&header(&file.name, length, b'0'))?;
        let (mut at, mut crc) = (0, 0);
        let mut buffer = vec![0; CHUNK];
        while at < length {
            let wanted = CHUNK.min((length - at) as usize);
            let chunk = &mut buffer[..wanted];
            let mut filled = 0;
            while filled < wanted && at + (filled as u64) < used {
                let most = (wanted - filled).min((used - at) as usize - filled);
                let into = &mut chunk[filled..filled + most];
                let count =
                    sched::read_at(WaitEvent::IOBaseBackupRead, open, into, at + filled as u64)
                        .map_err(|e| Error::io(format!("read \"{}\"", file.path.display()), &e))?;
                if count == 0 {
                    // It was cut meanwhile: the log says so.
                    break;
                }
                filled += count;
            }
            chunk[filled..].fill(0);
            crc = crc32c::crc32c_append(crc, chunk);
            self.bytes(&buffer[..wanted])?;
            at += wanted as u64;
        }
        self.pad(length)?;
        self.note(&file.name, length, crc);
        Ok(())
    }

    fn pad(&mut self, length: u64) -> Result<()> {
        match (length % TAR_BLOCK as u64) as usize {
            0 => Ok(()),
            over => self.bytes(&[0; TAR_BLOCK][over..]),
        }
    }

    fn note(&mut self, name: &str, length: u64, crc: u32) {
        use std::fmt::Write;
        if !self.files.is_empty() {
            self.files.push_str(",\n");
        }
        let _ = write!(
            self.files,
            "{{ \"Path\": \"{}\", \"Size\": {length}, \"Last-Modified\": \"{}\"",
            name.replace('\\', "\\\\").replace('"', "\\\""),
            now_gmt()
        );
        if self.options.checksums {
            let hex: String = crc.to_le_bytes().iter().map(|b| format!("{b:02x}")).collect();
            let _ =
                write!(self.files, ", \"Checksum-Algorithm\": \"CRC32C\", \"Checksum\": \"{hex}\"");
        }
        self.files.push_str(" }");
    }

    fn manifest(&mut self, start: Lsn, end: Lsn) -> Result<()> {
        let files = std::mem::take(&mut self.files);
        let timeline = self.session.server.engine.storage.timeline();
        let mut text = format!(
            "{{ \"PostgreSQL-Backup-Manifest-Version\": 1,\n\"Files\": [\n{files}\n],\n\
             \"WAL-Ranges\": [\n{{ \"Timeline\": {timeline}, \"Start-LSN\": \"{start}\", \"End-LSN\": \"{end}\" }}\n],\n"
        );
        let sum: String =
            Sha256::digest(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
        text.push_str(&format!("\"Manifest-Checksum\": \"{sum}\"}}\n"));
        self.message(b'm', b"")?;
        for chunk in text.as_bytes().chunks(CHUNK) {
            self.message(b'd', chunk)?;
        }
        Ok(())
    }
}

/// The time as manifests have it.
fn now_gmt() -> String {
    let cx = types::FormatContext::default();
    let now = types::Datum::Timestamp(crate::server::now());
    let text = types::io::to_text(oids::TIMESTAMP, &now, &cx).map(String::from);
    let text = text.unwrap_or_default();
    format!("{} GMT", text.split('.').next().unwrap_or_default())
}

/// A header of a tar archive.
fn header(name: &str, length: u64, kind: u8) -> [u8; TAR_BLOCK] {
    let mut out = [0; TAR_BLOCK];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &name.as_bytes()[..name.len().min(99)]);
    put(100, if kind == b'5' { b"0000700\0" } else { b"0000600\0" });
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    if length < 1 << 33 {
        put(124, format!("{length:011o}\0").as_bytes());
    } else {
        // As GNU tar and PostgreSQL have it: the number itself, with the highest bit set.
        let mut bytes = [0; 12];
        bytes[4..].copy_from_slice(&length.to_be_bytes());
        bytes[0] = 0x80;
        put(124, &bytes);
    }
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: u32 = out.iter().map(|b| u32::from(*b)).sum();
    out[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_both_forms() {
        let new = "(LABEL 'it''s', PROGRESS, CHECKPOINT 'fast', WAL, MAX_RATE 64, MANIFEST 'yes', \
                   MANIFEST_CHECKSUMS 'NONE', TARGET 'client')";
        let new = Options::parse(new).unwrap();
        assert_eq!((new.label.as_str(), new.max_rate), ("it's", 64));
        assert!(new.progress && new.manifest && !new.checksums);
        let old = Options::parse(" LABEL 'x' PROGRESS FAST NOWAIT").unwrap();
        assert!(old.progress && !old.manifest && old.label == "x");
        assert!(!Options::parse("(PROGRESS false)").unwrap().progress);
        for bad in ["(LABEL)", "(NOSUCH)", "(LABEL 'x", "(MAX_RATE 'fast')"] {
            assert_eq!(Options::parse(bad).unwrap_err().code(), base::sqlstate::SYNTAX_ERROR);
        }
    }

    #[test]
    fn headers_have_lengths_and_sums() {
        let small = header("base/1", 8192, b'0');
        assert_eq!(&small[124..136], b"00000020000\0");
        let large = header("base/2", 1 << 34, b'0');
        assert_eq!(large[124], 0x80);
        let mut blank = small;
        blank[148..156].copy_from_slice(b"        ");
        let sum: u32 = blank.iter().map(|b| u32::from(*b)).sum();
        assert_eq!(&small[148..156], format!("{sum:06o}\0 ").as_bytes());
    }
}

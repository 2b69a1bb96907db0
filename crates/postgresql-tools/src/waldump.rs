//! `pg_waldump`: the records of the log, one a line. They are Threadgres' records: the labels in front are PostgreSQL's.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use base::{Error, Lsn, Result as BaseResult};
use lexopt::prelude::*;
use storage::{About, LogEntry};

use crate::options::{Failure, data_directory, parser, text};

pub const HELP: &str = "
pg_waldump decodes and displays PostgreSQL write-ahead logs for debugging.

Usage:
  pg_waldump [OPTION]... [STARTSEG [ENDSEG]]

Options:
  -e, --end=RECPTR       stop reading at WAL location RECPTR
  -n, --limit=N          number of records to display
  -p, --path=PATH        the data directory, or its folder pg_wal or wal
  -q, --quiet            do not print any output, except for errors
  -r, --rmgr=RMGR        only show records of this kind: XLOG, Transaction, Storage, Page
  -s, --start=RECPTR     start reading at WAL location RECPTR
  -t, --timeline=TLI     is accepted
  -z, --stats            show statistics instead of records";

#[derive(Default)]
struct Dump {
    dir: PathBuf,
    start: Option<Lsn>,
    end: Option<Lsn>,
    limit: Option<u64>,
    kind: Option<String>,
    quiet: bool,
    counts: bool,
    shown: u64,
    before: Lsn,
    statistics: BTreeMap<String, (u64, u64)>,
}

pub fn run(args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let mut dump = Dump::default();
    let (mut path, mut segments) = (None, Vec::new());
    let mut parser = parser(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('s') | Long("start") => dump.start = Some(position(&text(&mut parser)?)?),
            Short('e') | Long("end") => dump.end = Some(position(&text(&mut parser)?)?),
            Short('n') | Long("limit") => {
                let number = text(&mut parser)?;
                let invalid =
                    || Failure::from(format!("error: invalid value \"{number}\" for option -n"));
                dump.limit = Some(number.parse().map_err(|_| invalid())?);
            }
            Short('p') | Long("path") => path = Some(PathBuf::from(parser.value()?)),
            Short('r') | Long("rmgr") => dump.kind = Some(text(&mut parser)?),
            Short('t') | Long("timeline") => drop(parser.value()?),
            Short('q') | Long("quiet") => dump.quiet = true,
            Short('z') | Long("stats") => {
                parser.optional_value();
                dump.counts = true;
            }
            Short('b') | Long("bkp-details") => {}
            Value(segment) => segments.push(PathBuf::from(segment)),
            other => return Err(other.unexpected().into()),
        }
    }
    let of_segment =
        || Some(segments.first()?.parent()?.to_owned()).filter(|p| !p.as_os_str().is_empty());
    let path = path.or_else(of_segment).or_else(|| data_directory(None));
    let Some(path) = path else { return Err(Failure::from("error: no start WAL location given")) };
    dump.dir = directory(&path);
    let about = About::read(&dump.dir)?;
    if let Some(first) = segments.first().filter(|_| dump.start.is_none()) {
        dump.start = Some(begin_of(first, &about)?.max(about.redo));
    }
    if let Some(last) = segments.get(1) {
        dump.end = Some(Lsn(begin_of(last, &about)?.0 + about.segment_size));
    }
    let Some(start) = dump.start else {
        return Err(Failure::from("error: no start WAL location given"));
    };
    dump.read(&about, start)
}

/// The data directory of a folder that may be its log's.
fn directory(path: &Path) -> PathBuf {
    let is_log = path.file_name().is_some_and(|name| name == "pg_wal" || name == "wal");
    match path.parent() {
        Some(parent) if is_log => parent.to_owned(),
        _ => path.to_owned(),
    }
}

fn position(text: &str) -> Result<Lsn, Failure> {
    let half = |digits| u32::from_str_radix(digits, 16).ok();
    let read = text
        .split_once('/')
        .and_then(|(high, low)| Some(Lsn(u64::from(half(high)?) << 32 | u64::from(half(low)?))));
    read.ok_or_else(|| Failure::from(format!("error: invalid WAL location: \"{text}\"")))
}

/// Where a segment begins, by PostgreSQL's name or by ours.
fn begin_of(segment: &Path, about: &About) -> Result<Lsn, Failure> {
    let name = segment.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let part = |at: usize| u64::from_str_radix(name.get(at..at + 8)?, 16).ok();
    let number = match name.len() {
        16 => u64::from_str_radix(&name, 16).ok(),
        24 => {
            part(8).zip(part(16)).map(|(high, low)| high * ((1 << 32) / about.segment_size) + low)
        }
        _ => None,
    };
    let number =
        number.ok_or_else(|| Failure::from(format!("error: could not open file \"{name}\"")))?;
    Ok(Lsn(number * about.segment_size))
}

impl Dump {
    fn read(mut self, about: &About, start: Lsn) -> Result<ExitCode, Failure> {
        let dir = self.dir.clone();
        let stopped =
            storage::each_record(&dir, about.segment_size, start, &mut |entry| self.take(&entry))?;
        if self.counts {
            println!("{:<28}{:>12}{:>16}", "Type", "N", "Record size");
            for (kind, (count, bytes)) in &self.statistics {
                println!("{kind:<28}{count:>12}{bytes:>16}");
            }
        }
        let is_done = self.limit.is_some_and(|limit| self.shown >= limit)
            || self.end.is_some_and(|end| stopped >= end);
        if is_done {
            return Ok(ExitCode::SUCCESS);
        }
        if stopped == start {
            return Err(Failure::from(format!(
                "error: could not find a valid record after {start}"
            )));
        }
        // The log of a server that runs, or ran, ends somewhere: as there.
        Err(Failure::from(format!(
            "error: error in WAL record at {}: invalid record at {stopped}",
            self.before
        )))
    }

    fn take(&mut self, entry: &LogEntry<'_>) -> BaseResult<bool> {
        if self.end.is_some_and(|end| entry.start >= end) {
            return Ok(false);
        }
        let (manager, line) = describe(entry)?;
        let wanted = self.kind.as_ref().is_none_or(|kind| kind.eq_ignore_ascii_case(manager));
        if wanted {
            self.shown += 1;
            let count = self.statistics.entry(manager.to_owned()).or_default();
            count.0 += 1;
            count.1 += entry.end.0 - entry.start.0;
            if !self.counts && !self.quiet {
                let length = entry.end.0 - entry.start.0;
                let transaction = transaction(entry);
                println!(
                    "rmgr: {manager:<11} len (rec/tot): {length:>6}/{length:>6}, tx: {transaction:>10}, lsn: {}, prev {}, desc: {line}",
                    padded(entry.start),
                    padded(self.before)
                );
            }
        }
        self.before = entry.start;
        Ok(self.limit.is_none_or(|limit| self.shown < limit))
    }
}

fn fork(fork: base::Fork) -> &'static str {
    match fork {
        base::Fork::Main => "main",
        base::Fork::Fsm => "fsm",
        base::Fork::Vm => "vm",
    }
}

/// A position in eight digits behind the slash.
fn padded(lsn: Lsn) -> String {
    format!("{:X}/{:08X}", lsn.0 >> 32, lsn.0 & 0xffff_ffff)
}

fn transaction(entry: &LogEntry<'_>) -> u64 {
    let of = |(code, payload): &(u8, &[u8])| txn::describe(*code, payload).1;
    entry.payloads.iter().find_map(of).map_or(0, |xid| xid.0)
}

/// The kind of a record, and what it says.
fn describe(entry: &LogEntry<'_>) -> BaseResult<(&'static str, String)> {
    let failed = |_| Error::internal("a text could not be written");
    if entry.kind != "CHANGES" {
        let manager = if entry.kind == "FILLER" { "XLOG" } else { "Storage" };
        return Ok((manager, entry.kind.to_owned()));
    }
    let mut words: Vec<&str> =
        entry.payloads.iter().map(|(code, payload)| txn::describe(*code, payload).0).collect();
    words.dedup();
    let manager = match words.first() {
        Some(&("COMMIT" | "PREPARE" | "ABORT_PREPARED")) => "Transaction",
        Some(_) if entry.pages.is_empty() => "XLOG",
        _ => "Page",
    };
    let mut line = if words.is_empty() { "CHANGE".to_owned() } else { words.join(" ") };
    for (code, payload) in &entry.payloads {
        if let Some(name) = txn::name_of(*code, payload) {
            write!(line, " \"{name}\"").map_err(failed)?;
        }
    }
    for (index, page) in entry.pages.iter().enumerate() {
        write!(
            line,
            ", blkref #{index}: rel {} fork {} blk {}",
            page.relation,
            fork(page.fork),
            page.block
        )
        .map_err(failed)?;
        if page.is_new {
            line += " INIT";
        }
        if page.has_image {
            line += " FPW";
        }
    }
    Ok((manager, line))
}

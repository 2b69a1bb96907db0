//! The archiver: gives each full segment of the log to `archive_command`, and says in the log what time it is.
//!
//! ```text
//! DIR/archived        the number of the first segment that was not archived yet, in hexadecimal
//! ```
//! * A segment is kept until the command has taken it, whatever the size of the log.
//! * With `archive_mode` on, the log has a mark of the time about once a second while anything is logged: by these
//!   `threadgres restore --target-time` finds its place.
//! * After `archive_timeout` a segment that has something new is filled up, so that it can be archived.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::settings::setting;
use base::{Lsn, WaitEvent};
use sched::{Wake, io_wait};

use crate::log;
use crate::server::{self, Server};

const FILE: &str = "archived";
/// Between two looks at the log.
const PAUSE: Duration = Duration::from_secs(1);
/// After a command that failed.
const RETRY: Duration = Duration::from_secs(5);

/// The thread's knowledge.
#[derive(Default)]
struct Archiver {
    /// The first segment that is not archived; None while nothing is.
    next: Option<u64>,
    /// The log is kept from here on.
    held: Option<Lsn>,
    /// The log's end behind the last mark.
    marked: Lsn,
    /// When the last segment was full, and where the log was.
    since: Option<(Instant, u64)>,
    retry: Option<Instant>,
}

/// The thread's life.
pub fn work(server: &Arc<Server>) {
    let mut archiver = Archiver::default();
    loop {
        archiver.round(server);
        let until = Some(Instant::now() + PAUSE);
        let wake = server.archiver.await_work(WaitEvent::ActivityThreadMain, until);
        if wake == Wake::Interrupted && sched::check_interrupts().is_err() {
            archiver.hold(server, None);
            return;
        }
    }
}

fn is_off(settings: &base::settings::Settings) -> bool {
    base::settings::show(setting::ARCHIVE_MODE, settings.get(setting::ARCHIVE_MODE)) == "off"
}

/// Fills the segment up that the log is in, if there is anything in it; the log's end then. That is the segment's end,
/// unless others log meanwhile or it had no room for another record: then the last record goes on in the next one.
pub fn switch(server: &Server) -> Lsn {
    let storage = &server.engine.storage;
    let from = storage.wal.insert_position();
    let end = from.0.next_multiple_of(storage.segment_size());
    let mut at = from.0;
    while at < end {
        at = server.engine.txn.pad_log(padding(end - at)).0;
    }
    Lsn(at)
}

/// Bytes of the next record of padding where so many are left of a segment.
fn padding(left: u64) -> usize {
    /// Bytes in the longest.
    const MOST: u64 = 64 << 10;
    /// The shortest has no more.
    const LEAST: u64 = 64;
    let bytes = match left {
        0..=MOST => left,
        // The rest of the segment has room for another record then.
        _ if left - MOST < LEAST => MOST - LEAST,
        _ => MOST,
    };
    bytes as usize
}

/// The command for a segment.
pub(crate) fn command_of(template: &str, path: &str, name: &str) -> String {
    let mut out = String::new();
    let mut chars = template.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('%', Some('p')) => out.push_str(path),
            ('%', Some('f')) => out.push_str(name),
            ('%', Some('%')) => out.push('%'),
            (c, _) => {
                out.push(c);
                continue;
            }
        }
        chars.next();
    }
    out
}

fn saved(dir: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(dir.join(FILE)).ok()?;
    u64::from_str_radix(text.trim(), 16).ok()
}

fn save(dir: &Path, next: u64) -> std::io::Result<()> {
    let aside = dir.join("archived.tmp");
    std::fs::write(&aside, format!("{next:016X}\n"))?;
    std::fs::rename(aside, dir.join(FILE))
}

impl Archiver {
    fn round(&mut self, server: &Arc<Server>) {
        let (values, _) = server.values();
        let settings = &values.settings;
        let storage = &server.engine.storage;
        if is_off(settings) {
            self.next = None;
            return self.hold(server, None);
        }
        let size = storage.segment_size();
        let next = match self.next {
            Some(next) => next,
            None => saved(&storage.dir().to_owned()).unwrap_or(storage.redo_position().0 / size),
        };
        let oldest = storage.oldest_log().map_or(next, |lsn| lsn.0 / size);
        self.next = Some(next.max(oldest));
        self.hold(server, Some(Lsn(next.max(oldest) * size)));
        self.mark(server);
        self.fill_up(server, settings.int(setting::ARCHIVE_TIMEOUT), size);
        let command = settings.str(setting::ARCHIVE_COMMAND).to_owned();
        if command.is_empty() || self.retry.is_some_and(|at| Instant::now() < at) {
            return;
        }
        while let Some(next) = self.next
            && next < storage.wal.flushed().0 / size
            && sched::check_interrupts().is_ok()
        {
            if !self.archive(server, &command, next) {
                self.retry = Some(Instant::now() + RETRY);
                return;
            }
            self.next = Some(next + 1);
            self.hold(server, Some(Lsn((next + 1) * size)));
        }
    }

    /// Keeps the log from a position on.
    fn hold(&mut self, server: &Server, from: Option<Lsn>) {
        if self.held != from {
            server.engine.storage.move_hold(self.held, from);
            self.held = from;
        }
    }

    /// Says what time it is, if anything was logged since the last time.
    fn mark(&mut self, server: &Server) {
        let wal = &server.engine.storage.wal;
        if wal.insert_position() != self.marked {
            self.marked = server.engine.txn.mark_time(server::now());
            wal.request_flush(self.marked);
        }
    }

    /// Fills a segment up that has something new in it for too long.
    fn fill_up(&mut self, server: &Server, timeout_s: i64, size: u64) {
        let storage = &server.engine.storage;
        let number = storage.wal.insert_position().0 / size;
        let since = match self.since {
            Some((since, known)) if known == number => since,
            _ => {
                self.since = Some((Instant::now(), number));
                return;
            }
        };
        if timeout_s > 0 && since.elapsed() >= Duration::from_secs(timeout_s as u64) {
            let end = switch(server);
            storage.wal.request_flush(end);
            self.since = None;
            // Padding is nothing that happened: without more a server that does nothing would fill segment after segment.
            self.marked = end;
        }
    }

    fn archive(&self, server: &Server, template: &str, number: u64) -> bool {
        let storage = &server.engine.storage;
        let name = storage.segment_name(number);
        let text = command_of(template, &format!("wal/{number:016X}"), &name);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &text]).current_dir(storage.dir());
        let status = io_wait(WaitEvent::IOWALWrite, || command.status());
        let done = status.as_ref().is_ok_and(|status| status.success())
            && save(storage.dir(), number + 1).is_ok();
        let mut counts = server.archived.0.lock();
        if done {
            counts.count += 1;
            counts.last = Some((name, server::now()));
        } else {
            counts.failed += 1;
            counts.last_failed = Some((name, server::now()));
            let how = match status {
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            };
            log::info(format_args!("archive command failed: {how}; the command was: {text}"));
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_ends_where_its_segment_does() {
        for size in [256 << 10, 2 << 20] {
            for from in (0..size).step_by(40) {
                let mut at = from;
                while at < size {
                    // As storage makes it.
                    let record = (padding(size - at).max(storage::Wal::AROUND_PAYLOAD) as u64)
                        .next_multiple_of(8);
                    at += record;
                }
                assert!(at == size || size - from < 32, "{from} {at}");
            }
        }
    }

    #[test]
    fn a_command_gets_path_and_name() {
        let command = command_of("cp %p /x/%f # 5%% %x", "wal/01", "00000001");
        assert_eq!(command, "cp wal/01 /x/00000001 # 5% %x");
    }
}

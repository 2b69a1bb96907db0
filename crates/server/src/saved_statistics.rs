//! Statistics that outlive the server: what [`Counters`](crate::counters::Counters) knows of databases, tables and
//! indexes, in the file `threadgres.stats` of the data directory.
//!
//! ```text
//!   SHA-256 of the rest, in hex \n  JSON: [format, databases, relations]
//! ```
//!
//! * A background thread writes the file once a minute and once more when the server stops, so a crash loses a
//!   minute's counts. It is written aside and renamed, and never synced: it may be lost, not half there.
//! * A file that is damaged or of another format is said in the log, and counting begins anew. What
//!   `pg_stat_statements`, waits and `pg_stat_io`'s kin count begins anew in any case.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::WaitEvent;
use sha2::{Digest, Sha256};

use crate::counters::Saved;
use crate::log;
use crate::server::Server;

const FILE: &str = "threadgres.stats";
const ASIDE: &str = "threadgres.stats.tmp";
const FORMAT: u32 = 1;
const INTERVAL: Duration = Duration::from_secs(60);

/// The thread's work.
pub fn work(server: &Arc<Server>) {
    loop {
        let until = Some(Instant::now() + INTERVAL);
        server.statistics.await_work(WaitEvent::ActivityThreadMain, until);
        if sched::check_interrupts().is_err() {
            return;
        }
        save(server);
    }
}

/// Writes the file; a failure is logged.
pub fn save(server: &Server) {
    let text = encode(&server.counters.saved());
    let write = || write(&server.directory(), &text);
    if let Err(error) = sched::io_wait(WaitEvent::IOStatisticsFileWrite, write) {
        log::info(format_args!("could not write \"{FILE}\": {error}"));
    }
}

/// Takes over what the last server wrote.
pub fn restore(server: &Server) {
    let bytes = match fs::read(server.directory().join(FILE)) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return,
        Err(e) => {
            log::info(format_args!("could not read \"{FILE}\": {e}; statistics begin anew"));
            return;
        }
    };
    match decode(&bytes) {
        Some(saved) => server.counters.restore(saved),
        None => log::info(format_args!("\"{FILE}\" is damaged; statistics begin anew")),
    }
}

fn write(dir: &Path, text: &[u8]) -> io::Result<()> {
    let aside = dir.join(ASIDE);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(&aside)?.write_all(text)?;
    fs::rename(aside, dir.join(FILE))
}

fn hash(body: &[u8]) -> String {
    Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn encode(saved: &Saved) -> Vec<u8> {
    let body = serde_json::to_vec(&(FORMAT, &saved.databases, &saved.relations));
    // Numbers in lists can always be written.
    let body = body.unwrap_or_default();
    let mut text = hash(&body).into_bytes();
    text.push(b'\n');
    text.extend_from_slice(&body);
    text
}

fn decode(bytes: &[u8]) -> Option<Saved> {
    let at = bytes.iter().position(|b| *b == b'\n')?;
    let (sum, body) = (&bytes[..at], &bytes[at + 1..]);
    if sum != hash(body).as_bytes() {
        return None;
    }
    let (format, databases, relations) = serde_json::from_slice(body).ok()?;
    let _: u32 = format;
    (format == FORMAT).then_some(Saved { databases, relations })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::{Changes, Counters, Report};

    fn counted() -> Counters {
        let counters = Counters::default();
        let changes = Changes { inserted: 9, updated: 3, deleted: 2 };
        let mut report = Report::default();
        report.tally.of(7).inserted = 9;
        report.settled.push(changes.settled(7, true));
        report.database.commits = 4;
        counters.take(5, &mut report, |_| ());
        counters.analyzed((5, 8), 100.0, true, 77);
        counters
    }

    #[test]
    fn what_was_written_comes_back() {
        let counters = counted();
        let again = Counters::default();
        again.restore(decode(&encode(&counters.saved())).expect("it is whole"));
        let (old, new) = (counters.relations(), again.relations());
        for id in [(5, 7), (5, 8)] {
            assert_eq!(format!("{:?}", old[&id].counts), format!("{:?}", new[&id].counts));
            let shown =
                |t: &crate::counters::Table| (t.live, t.dead, t.modified, t.fresh, t.runs, t.last);
            assert_eq!(shown(&old[&id].table), shown(&new[&id].table));
        }
        assert_eq!(again.database(5).0, counters.database(5).0);
    }

    #[test]
    fn a_damaged_file_is_not_taken_over() {
        let text = encode(&counted().saved());
        for at in [0, 70, text.len() - 2] {
            let mut bad = text.clone();
            bad[at] ^= 1;
            assert!(decode(&bad).is_none(), "byte {at}");
        }
        assert!(decode(&text[..text.len() / 2]).is_none());
        assert!(decode(b"").is_none());
    }
}

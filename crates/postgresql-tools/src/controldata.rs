//! `pg_controldata`: the facts of a data directory under PostgreSQL's labels.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use base::config_file;
use lexopt::prelude::*;
use storage::About;

use crate::options::{Failure, need_data_directory, parser};
use crate::running::Running;

pub const HELP: &str = "
pg_controldata displays control information of a database cluster.

Usage:
  pg_controldata [OPTION] [DATADIR]

Options:
 [-D, --pgdata=]DATADIR  data directory";

/// PostgreSQL 15's numbers, by which tools know the version.
const CONTROL_VERSION: u32 = 1300;
const CATALOG_VERSION: u32 = 202_209_061;

pub fn run(args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let mut dir = None;
    let mut parser = parser(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('D') | Long("pgdata") => dir = Some(PathBuf::from(parser.value()?)),
            Value(value) if dir.is_none() => dir = Some(PathBuf::from(value)),
            other => return Err(other.unexpected().into()),
        }
    }
    let dir = need_data_directory(dir)?;
    let about = About::read(&dir)?;
    for (label, value) in lines(&dir, &about) {
        println!("{:<38}{value}", format!("{label}:"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The words for what the directory was doing when its control file was written.
fn state(dir: &Path, about: &About) -> &'static str {
    let signal = dir.join("standby.signal").exists();
    // A standby has said how far its primary's transactions were.
    let followed = signal && (dir.join("standby.state").exists() || about.running.is_some());
    let is_starting = || Running::read(dir).is_some_and(|running| running.status == "starting");
    match (about.running.is_some(), about.clean, followed) {
        (true, _, true) => "in archive recovery",
        (true, _, false) if is_starting() => "in crash recovery",
        (true, _, false) => "in production",
        (false, true, true) => "shut down in recovery",
        (false, true, false) => "shut down",
        (false, false, true) => "in archive recovery",
        (false, false, false) => "in production",
    }
}

fn lines(dir: &Path, about: &About) -> Vec<(&'static str, String)> {
    let state = state(dir, about);
    let in_recovery = state.ends_with("recovery") && state != "in crash recovery";
    let (timeline, before) = about.timelines;
    let time = date(about.written);
    let (next_xid, next_oid) = txn::counters_of(&about.transactions).unwrap_or_default();
    let xid = format!("{}:{}", next_xid >> 32, next_xid & 0xffff_ffff);
    let least = if in_recovery { about.durable } else { base::Lsn::ZERO };
    let text = |value: &str| value.to_owned();
    let mut out = vec![
        ("pg_control version number", CONTROL_VERSION.to_string()),
        ("Catalog version number", CATALOG_VERSION.to_string()),
        ("Database system identifier", about.system_id.to_string()),
        ("Database cluster state", text(state)),
        ("pg_control last modified", time.clone()),
        ("Latest checkpoint location", about.redo.to_string()),
        ("Latest checkpoint's REDO location", about.redo.to_string()),
        ("Latest checkpoint's REDO WAL file", about.segment_name(about.redo)),
        ("Latest checkpoint's TimeLineID", timeline.to_string()),
        ("Latest checkpoint's PrevTimeLineID", before.to_string()),
        ("Latest checkpoint's full_page_writes", text("on")),
        ("Latest checkpoint's NextXID", xid),
        ("Latest checkpoint's NextOID", next_oid.to_string()),
        ("Latest checkpoint's NextMultiXactId", text("1")),
        ("Latest checkpoint's NextMultiOffset", text("0")),
        ("Latest checkpoint's oldestXID", text("3")),
        ("Latest checkpoint's oldestXID's DB", text("1")),
        ("Latest checkpoint's oldestActiveXID", (next_xid & 0xffff_ffff).to_string()),
        ("Latest checkpoint's oldestMultiXid", text("1")),
        ("Latest checkpoint's oldestMulti's DB", text("1")),
        ("Latest checkpoint's oldestCommitTsXid", text("0")),
        ("Latest checkpoint's newestCommitTsXid", text("0")),
        ("Time of latest checkpoint", time),
        ("Fake LSN counter for unlogged rels", text("0/3E8")),
        ("Minimum recovery ending location", least.to_string()),
        ("Min recovery ending loc's timeline", if in_recovery { timeline } else { 0 }.to_string()),
        ("Backup start location", text("0/0")),
        ("Backup end location", text("0/0")),
        ("End-of-backup record required", text("no")),
    ];
    out.extend(parameters(dir));
    out.extend([
        ("Maximum data alignment", text("8")),
        ("Database block size", text("8192")),
        ("Blocks per segment of large relation", text("131072")),
        ("WAL block size", text("8192")),
        ("Bytes per WAL segment", about.segment_size.to_string()),
        ("Maximum length of identifiers", text("64")),
        ("Maximum columns in an index", text("32")),
        ("Maximum size of a TOAST chunk", text("1996")),
        ("Size of a large-object chunk", text("2048")),
        ("Date/time type storage", text("64-bit integers")),
        ("Float8 argument passing", text("by value")),
        ("Data page checksum version", text("1")),
        ("Mock authentication nonce", "0".repeat(64)),
    ]);
    out
}

/// The settings of the last server that wrote here, which a standby must not have less of; PostgreSQL's labels.
fn parameters(dir: &Path) -> Vec<(&'static str, String)> {
    let text = std::fs::read_to_string(dir.join("threadgres.parameters")).unwrap_or_default();
    let written: Vec<(String, String)> =
        config_file::parse(&text).into_iter().filter_map(|line| line.content.ok()).collect();
    let defaults = base::settings::Settings::default();
    let labels = [
        ("wal_level setting", "wal_level"),
        ("wal_log_hints setting", "wal_log_hints"),
        ("max_connections setting", "max_connections"),
        ("max_worker_processes setting", "max_worker_processes"),
        ("max_wal_senders setting", "max_wal_senders"),
        ("max_prepared_xacts setting", "max_prepared_transactions"),
        ("max_locks_per_xact setting", "max_locks_per_transaction"),
        ("track_commit_timestamp setting", "track_commit_timestamp"),
    ];
    let value = |name: &str| {
        let found =
            written.iter().find(|(written, _)| written == name).map(|(_, value)| value.clone());
        let default = || {
            let id = base::settings::SettingId::find(name)?;
            Some(base::settings::show(id, defaults.get(id)))
        };
        found.or_else(default).unwrap_or_default()
    };
    labels.into_iter().map(|(label, name)| (label, value(name))).collect()
}

/// A time in UTC, as C's `%c` prints it.
pub fn date(time: SystemTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{} {} {day:2} {:02}:{:02}:{:02} {year}",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize - 1],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// Year, month and day of a day since 1970 (H. Hinnant, "chrono-compatible low-level date algorithms").
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_printed_as_c_prints_them() {
        let at = |seconds| date(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(at(951_782_400 + 3661), "Tue Feb 29 01:01:01 2000");
        assert_eq!(at(1_795_876_967), "Sat Nov 28 14:42:47 2026");
    }
}

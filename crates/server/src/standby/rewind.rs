//! `threadgres rewind`: an old primary becomes a standby of the new one, with the pages that differ fetched from that.
//!
//! [`storage::Rewind`] says why it is done so, and what a crash leaves. The primary's half is [`crate::session`]'s `rewind`.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use base::{Lsn, Result, err};
use logical::conninfo::Conninfo;
use storage::{History, PAGE_SIZE, PageSum, Rewind, fork_of};

use super::clone::{Archive, point, unpack};
use super::receiver::identify;
use super::{SIGNAL, STATE, write_file};
use ext_postgres::client::Client;

/// Pages whose sums go with one command.
const PAGES: u64 = 2048;
/// Files that are the server's own: they stay if they are there.
const OWN: [&str; 6] = [
    "postgresql.conf",
    "postgresql.auto.conf",
    "threadgres.conf",
    "threadgres.auto.conf",
    "pg_hba.conf",
    "pg_ident.conf",
];

/// The outcome of a rewind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewound {
    /// Where the histories part, if the directory went on alone from there.
    pub fork: Option<Lsn>,
    /// The end of its log, and the commits between the two.
    pub end: Lsn,
    /// See [`Rewound::end`].
    pub commits: u64,
    /// Pages of the new primary, and those that were fetched.
    pub pages: u64,
    /// See [`Rewound::pages`].
    pub fetched: u64,
}

impl fmt::Display for Rewound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fork {
            None => {
                write!(f, "no rewind required: the primary has the whole log up to {}", self.end)
            }
            Some(fork) => write!(
                f,
                "given up: {} commits of the log from {fork} to {}\nfetched {} of {} pages",
                self.commits, self.end, self.fetched, self.pages
            ),
        }
    }
}

/// Makes a directory that was a primary's a standby's of the server at `url`; without `follow` only its pages become that
/// server's, and whoever called says what the directory is.
///
/// # Errors
/// `55006` when a server has it; `55000` for another database's; `08006`, and what the primary says; I/O.
pub fn rewind(dir: &Path, url: &str, follow: bool) -> Result<Rewound> {
    let info = Conninfo::parse(url)
        .map_err(|why| err!(SYNTAX_ERROR, "invalid connection string syntax: {why}"))?;
    let rewind = Rewind::open(dir)?;
    crate::directory::follow_mode(dir);
    let mut client = Client::connect_physical(&info, "threadgres rewind")?;
    let (id, timeline) = identify(&mut client)?;
    if id != rewind.system_id() {
        return Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "source and target clusters are from different systems"
        ));
    }
    let own = History::read(dir)?;
    let theirs = match timeline {
        1 => History::default(),
        _ => History::parse(&history_of(&mut client, timeline)?)?,
    };
    let mut done = Rewound { fork: fork_of(&own, &theirs), ..Rewound::default() };
    let behind = rewind.behind(done.fork.unwrap_or(Lsn(u64::MAX)), &txn::is_commit)?;
    (done.end, done.commits) = (behind.end, behind.commits);
    let contained = theirs.0.starts_with(&own.0) && done.fork.is_none_or(|fork| behind.end <= fork);
    if contained && !rewind.was_interrupted() {
        done.fork = None;
    } else {
        done.fork = Some(done.fork.unwrap_or(behind.end));
        fetch(&mut client, dir, &rewind, &mut done)?;
        rewind.finish()?;
    }
    let state = dir.join(STATE);
    if state.exists() {
        std::fs::remove_file(&state)
            .map_err(|e| base::Error::io(format_args!("remove file \"{STATE}\""), &e))?;
    }
    if follow {
        point(dir, url)?;
        write_file(dir, SIGNAL, "")?;
    }
    Ok(done)
}

fn history_of(client: &mut Client, timeline: u32) -> Result<String> {
    let rows = client.query(&format!("TIMELINE_HISTORY {timeline}"))?;
    Ok(rows.first().and_then(|row| row.get(1).cloned().flatten()).unwrap_or_default())
}

fn fetch(client: &mut Client, dir: &Path, rewind: &Rewind, done: &mut Rewound) -> Result<()> {
    let rows = client.query("REWIND_BEGIN")?;
    rewind.begin()?;
    let strange = || err!(PROTOCOL_VIOLATION, "invalid response from primary server");
    let mut names = HashSet::new();
    for row in rows {
        let [Some(name), Some(length)] = row.as_slice() else { return Err(strange()) };
        let length: u64 = length.parse().map_err(|_| strange())?;
        let pages = length / PAGE_SIZE as u64;
        let file = rewind.file(name, length)?;
        for first in (0..pages).step_by(PAGES as usize) {
            let count = PAGES.min(pages - first);
            let sums: String = file.sums(first, count)?.iter().map(digits).collect();
            client.copy_out(
                &format!("REWIND_PAGES {name} {first} {count} {sums}"),
                &mut |bytes| {
                    let (block, page) = bytes.split_first_chunk::<4>().ok_or_else(strange)?;
                    if page.len() != PAGE_SIZE {
                        return Err(strange());
                    }
                    done.fetched += 1;
                    file.put(u64::from(u32::from_be_bytes(*block)), page)
                },
            )?;
        }
        file.finish()?;
        done.pages += pages;
        names.insert(name.clone());
    }
    rewind.keep_only(&names)?;
    let is_own = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let secret = [".crt", ".key", ".pem"].iter().any(|end| name.ends_with(end));
        (secret || OWN.contains(&&*name)) && path.exists()
    };
    unpack(client, "REWIND_END", Archive::keeping(dir, is_own))?;
    Ok(())
}

fn digits(sum: &PageSum) -> String {
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

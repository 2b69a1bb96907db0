//! The history of a directory's timelines: where servers that followed others became primaries.
//!
//! ```text
//! DIR/timeline.history     one line a switch, as in PostgreSQL's history files:
//!                          timeline <tab> position up to which it counts <tab> reason
//! ```
//! The directory is on the timeline after the last one listed; without the file it is on the first. Two directories have
//! the same log up to a position if the switches up to there are the same.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use base::{Error, Lsn, Result, err};

/// The file's name.
pub const HISTORY: &str = "timeline.history";

/// A timeline that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Its number.
    pub timeline: u32,
    /// The log up to here is its.
    pub until: Lsn,
    /// Why it ended.
    pub reason: String,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History(pub Vec<Switch>);

impl History {
    /// The directory's history.
    ///
    /// # Errors
    /// `XX001` for a file that means nothing; I/O.
    pub fn read(dir: &Path) -> Result<History> {
        match fs::read_to_string(dir.join(HISTORY)) {
            Ok(text) => History::parse(&text),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(History::default()),
            Err(e) => Err(Error::io(format!("read file \"{HISTORY}\""), &e)),
        }
    }

    /// Reads the file's text.
    ///
    /// # Errors
    /// `XX001`.
    pub fn parse(text: &str) -> Result<History> {
        let damaged = |line: &str| err!(DATA_CORRUPTED, "syntax error in history file: {line}");
        let mut switches: Vec<Switch> = Vec::new();
        for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
            let mut words = line.splitn(3, '\t');
            let timeline = words.next().and_then(|w| w.parse().ok());
            let until = words.next().and_then(|w| {
                let (high, low) = w.split_once('/')?;
                let half = |digits| u32::from_str_radix(digits, 16).ok();
                Some(Lsn(u64::from(half(high)?) << 32 | u64::from(half(low)?)))
            });
            let (Some(timeline), Some(until)) = (timeline, until) else {
                return Err(damaged(line));
            };
            if switches.last().is_some_and(|last| last.timeline >= timeline || last.until > until) {
                return Err(damaged(line));
            }
            let reason = words.next().unwrap_or_default().to_owned();
            switches.push(Switch { timeline, until, reason });
        }
        Ok(History(switches))
    }

    /// The timeline that the directory is on.
    pub fn current(&self) -> u32 {
        self.0.last().map_or(1, |last| last.timeline + 1)
    }

    /// The log goes on in a new timeline from this position.
    pub fn switch(&mut self, until: Lsn, reason: String) {
        let timeline = self.current();
        // Of timelines that went on behind it nothing counts any more.
        self.0.iter_mut().for_each(|switch| switch.until = switch.until.min(until));
        self.0.push(Switch { timeline, until, reason });
    }

    /// Up to where the log of a timeline is this history's; None: it is none of its timelines.
    pub fn end_of(&self, timeline: u32) -> Option<Lsn> {
        if timeline == self.current() {
            return Some(Lsn(u64::MAX));
        }
        self.0.iter().find(|switch| switch.timeline == timeline).map(|switch| switch.until)
    }

    /// As the file has it.
    pub fn text(&self) -> String {
        let line = |s: &Switch| format!("{}\t{}\t{}\n", s.timeline, s.until, s.reason);
        self.0.iter().map(line).collect()
    }

    /// Makes it the directory's, durably.
    ///
    /// # Errors
    /// I/O.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let aside = dir.join("timeline.history.tmp");
        let write = || {
            let mut file = File::create(&aside)?;
            file.write_all(self.text().as_bytes())?;
            file.sync_all()?;
            fs::rename(&aside, dir.join(HISTORY))?;
            File::open(dir)?.sync_all()
        };
        write().map_err(|e| Error::io(format!("write file \"{HISTORY}\""), &e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_says_up_to_where_timelines_agree() {
        let history = History::parse("1\t0/3000\tno reason\n\n2\t1/0\tx y\n").unwrap();
        assert_eq!(history.current(), 3);
        assert_eq!(history.end_of(1), Some(Lsn(0x3000)));
        assert_eq!(history.end_of(3), Some(Lsn(u64::MAX)));
        assert_eq!(history.end_of(4), None);
        assert_eq!(History::parse(&history.text()).unwrap(), history);
        let mut earlier = history.clone();
        earlier.switch(Lsn(0x2000), "restored".to_owned());
        assert_eq!((earlier.current(), earlier.end_of(1)), (4, Some(Lsn(0x2000))));
        assert_eq!(History::parse(&earlier.text()).unwrap(), earlier);
        assert_eq!(History::default().current(), 1);
        assert!(History::parse("2\t0/1\tx\n1\t0/2\ty\n").is_err());
        assert!(History::parse("nonsense").is_err());
    }
}

//! Findings that last are said in the log, once each.

use std::collections::HashMap;

use super::{Finding, lately};
use crate::log;
use crate::server::Server;

/// Looks at the last half minute every so many seconds.
const EVERY: u32 = 10;
/// Looks in a row after which a finding lasts.
const LASTING: u32 = 3;
/// Looks without it after which it is over.
const OVER: u32 = 6;

/// How long a finding has been there.
#[derive(Default)]
struct Known {
    seen: u32,
    missed: u32,
    sentence: String,
}

/// A line about a finding.
struct Said {
    kind: &'static str,
    name: String,
    line: String,
    /// It lasts; else it is over.
    lasts: bool,
}

/// Looks at what is found, second by second.
#[derive(Default)]
pub struct Watch {
    second: u32,
    known: HashMap<(&'static str, String), Known>,
}

impl Watch {
    /// A second has passed.
    pub fn look(&mut self, server: &Server) {
        self.second += 1;
        if !self.second.is_multiple_of(EVERY) {
            return;
        }
        // A history that can't be read is looked at again.
        let Ok((_, found)) = lately(server) else { return };
        for said in self.compare(&found) {
            log::info(format_args!("{}", said.line));
            server.history.note("finding", 0, &said.line);
            let text = said.lasts.then_some(&*said.line);
            let now = crate::server::now();
            if server.alerts.report(said.kind, &said.name, text, now).is_some() {
                server.alerter.wake();
            }
        }
    }

    /// The lines to be said of these findings.
    fn compare(&mut self, found: &[Finding]) -> Vec<Said> {
        let mut lines = Vec::new();
        for finding in found {
            let known = self.known.entry((finding.kind, finding.name.clone())).or_default();
            (known.seen, known.missed) = (known.seen + 1, 0);
            known.sentence.clone_from(&finding.sentence);
            if known.seen == LASTING {
                let line = format!("{}: {} {}", finding.kind, finding.sentence, finding.advice);
                let name = finding.name.clone();
                lines.push(Said { kind: finding.kind, name, line, lasts: true });
            }
        }
        let is_there =
            |kind: &str, name: &str| found.iter().any(|f| f.kind == kind && f.name == name);
        self.known.retain(|(kind, name), known| {
            if !is_there(kind, name) {
                known.missed += 1;
            }
            let stays = known.missed < OVER;
            if !stays && known.seen >= LASTING {
                let line = format!("{kind} is over: {}", known.sentence);
                lines.push(Said { kind, name: name.clone(), line, lasts: false });
            }
            stays
        });
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cause;
    use super::*;

    #[test]
    fn a_finding_is_said_when_it_lasts_and_when_it_is_over() {
        let found = [Finding::new("lock_queue", Cause::Session, "pid 3", 1)];
        let mut watch = Watch::default();
        let said: Vec<usize> = (0..5).map(|_| watch.compare(&found).len()).collect();
        assert_eq!(said, [0, 0, 1, 0, 0]);
        let said: Vec<usize> = (0..8).map(|_| watch.compare(&[]).len()).collect();
        assert_eq!(said, [0, 0, 0, 0, 0, 1, 0, 0]);
        assert!(watch.known.is_empty());
    }
}

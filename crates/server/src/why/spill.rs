//! Sorts, hash tables and groups that don't fit into `work_mem` and go to temporary files.

use base::WaitEvent;
use base::settings::{live_int, setting};
use base::usage::Use;

use super::facts::Facts;
use super::finding::{Finding, bytes, percent, short, time};

const EVENTS: &[WaitEvent] = &[WaitEvent::IOBufFileRead, WaitEvent::IOBufFileWrite];
/// Bytes a second.
const RATE: f64 = 524_288.0;

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    let Some((statement, part)) = facts.main_user(Use::TempWritten) else { return };
    let written: u64 = facts.statements.iter().map(|s| s.get(Use::TempWritten)).sum();
    if (written as f64) < RATE * facts.seconds() {
        return;
    }
    let spent = statement.get(Use::TempWriteNs) + statement.get(Use::TempReadNs);
    // Encoding, merging and decoding take longer than the files.
    let lost_ns = facts.waited_ns(EVENTS).max(spent).max(statement.ns / 3);
    let sentence = format!(
        "{} writes {} to temporary files, {} of all: what it sorts or hashes does not fit into work_mem.",
        short(&statement.text),
        bytes(statement.get(Use::TempWritten)),
        percent(part)
    );
    let evidence = format!(
        "{} files, {} written, {} read, {} for files",
        statement.get(Use::TempFiles),
        bytes(statement.get(Use::TempWritten)),
        bytes(statement.get(Use::TempRead)),
        time(spent)
    );
    let advice = format!(
        "Raise work_mem (by default {} kB) for it: SET work_mem; or sort fewer rows and columns.",
        live_int(setting::WORK_MEM)
    );
    let finding = Finding::by("spill", statement, lost_ns);
    found.push(finding.suffered_by(Some(statement)).saying(sentence, evidence, advice));
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, statement, ten_seconds, used};
    use super::*;

    fn with(written: u64) -> Vec<Finding> {
        explain(&Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                statement(slice, 9, "SELECT * FROM big ORDER BY x", 1, 0.9, 0.1);
                used(slice, Use::TempWritten, written);
            }),
            &[],
        ))
    }

    #[test]
    fn the_statement_that_spills_is_named() {
        assert_eq!(with(20 << 20)[0].statement, 9);
        assert_eq!(with(20 << 20)[0].kind, "spill");
    }

    #[test]
    fn a_little_is_no_finding() {
        assert!(with(8192).is_empty());
    }
}

//! Full images of pages in the log: the first change of a page after each checkpoint writes the whole page.

use base::WaitEvent;
use base::settings::{live_int, setting};
use base::usage::Use;

use super::facts::Facts;
use super::finding::{Cause, Finding, bytes, percent, short};
use crate::history::slice::Count;

const EVENTS: &[WaitEvent] = &[
    WaitEvent::IPCWalFlush,
    WaitEvent::IOWALSync,
    WaitEvent::IOWALWrite,
    WaitEvent::LWLockWALInsert,
    WaitEvent::LWLockWALFlushLock,
];
const PAGE: u64 = 8192;
/// Part of the log.
const PART: f64 = 0.5;
/// Bytes of images a second.
const RATE: f64 = 1_048_576.0;

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    let (images, wal) = (facts.count(Count::WalImages) * PAGE, facts.count(Count::WalBytes));
    let part = images as f64 / wal.max(1) as f64;
    let checkpoints = |slice: &crate::history::slice::Slice| {
        slice.count(Count::CheckpointsRequested) + slice.count(Count::CheckpointsTimed)
    };
    let recent = checkpoints(&facts.total) + checkpoints(&facts.before);
    // After a single checkpoint they are what they cost.
    if part < PART || images as f64 / facts.seconds() < RATE || recent < 2 {
        return;
    }
    let lost_ns = (facts.waited_ns(EVENTS) as f64 * part.min(1.0)) as u64;
    let most = facts.main_user(Use::WalImages);
    let whose = most.map_or_else(String::new, |(statement, of_images)| {
        format!(", {} of them for {}", percent(of_images), short(&statement.text))
    });
    let sentence = format!(
        "{} of the log are images of pages after checkpoints{whose}.",
        percent(part.min(1.0))
    );
    let evidence =
        format!("{} of images in {} of log, {recent} checkpoints", bytes(images), bytes(wal));
    let advice = format!(
        "Let checkpoints be rarer: raise max_wal_size (now {} MB) and checkpoint_timeout (now {} s).",
        live_int(setting::MAX_WAL_SIZE),
        live_int(setting::CHECKPOINT_TIMEOUT)
    );
    let mut finding = Finding::new("full_page_images", Cause::Setting, "max_wal_size", lost_ns)
        .suffered_by(facts.main_victim(EVENTS))
        .saying(sentence, evidence, advice);
    finding.statement = most.map_or(0, |(statement, _)| statement.id);
    found.push(finding);
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, statement, ten_seconds, used};
    use super::*;

    fn with(checkpoints: u64) -> Vec<Finding> {
        let mut found = explain(&Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                statement(slice, 9, "UPDATE wide SET n = 1 WHERE id = $1", 500, 0.5, 0.0);
                used(slice, Use::WalImages, 500);
                slice.set(Count::WalImages, 500);
                slice.set(Count::WalBytes, 5 << 20);
                slice.set(Count::CheckpointsTimed, checkpoints);
            }),
            &[],
        ));
        found.retain(|f| f.kind == "full_page_images");
        found
    }

    #[test]
    fn images_after_many_checkpoints_are_found_with_their_statement() {
        let found = with(1);
        assert_eq!((found.len(), found[0].statement), (1, 9));
    }

    #[test]
    fn those_after_one_are_not() {
        assert!(with(0).is_empty());
    }
}

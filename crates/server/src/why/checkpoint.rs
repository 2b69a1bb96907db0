//! Checkpoints that hold commits and reads up, and the statement whose log brings them about.

use base::WaitEvent;
use base::settings::{live_int, setting};
use base::usage::Use;

use super::facts::{Beat, Facts};
use super::finding::{Cause, Finding, bytes, percent, short, time};
use crate::history::slice::Count;

/// Waits that a checkpoint's writes and syncs make longer.
const EVENTS: &[WaitEvent] = &[
    WaitEvent::IPCWalFlush,
    WaitEvent::IOWALSync,
    WaitEvent::IOWALWrite,
    WaitEvent::IOWALInitWrite,
    WaitEvent::LWLockWALInsert,
    WaitEvent::LWLockWALFlushLock,
    WaitEvent::IODataFileRead,
    WaitEvent::IODataFileWrite,
    WaitEvent::IODataFileExtend,
    WaitEvent::IODataFileFlush,
    WaitEvent::IPCBufferIO,
    WaitEvent::IPCFreeBuffer,
    WaitEvent::LWLockBufferContent,
    WaitEvent::IPCCheckpointDone,
    WaitEvent::IPCCheckpointStart,
];
/// Requested checkpoints in a range that follow each other this closely are a storm.
const STORM_US: u64 = 30_000_000;

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    let during = |beat: &&Beat| beat.count(Count::CheckpointUs) > 0;
    let within_us: u64 = facts.beats.iter().filter(during).map(|b| b.span_us).sum();
    if within_us == 0 {
        return;
    }
    let within_ns: u64 = facts.beats.iter().filter(during).map(|b| b.waited_ns(EVENTS)).sum();
    let all_ns: u64 = facts.beats.iter().map(|b| b.waited_ns(EVENTS)).sum();
    // As much would have been waited without it, by what was waited at other times.
    let (other_ns, other_us) = match facts.total.span_us - within_us {
        0 => {
            let before = facts.before.waits.iter().filter(|w| w.statement != 0);
            let ns = before.filter(|w| EVENTS.contains(&w.event)).map(|w| w.ns).sum();
            (ns, facts.before.span_us)
        }
        other_us => (all_ns - within_ns, other_us),
    };
    let usual_ns = (other_ns as f64 * within_us as f64 / other_us.max(1) as f64) as u64;
    let requested = facts.count(Count::CheckpointsRequested);
    let is_storm = requested >= 2 && facts.total.span_us / requested < STORM_US;
    let lost_ns = if is_storm { within_ns } else { within_ns.saturating_sub(usual_ns) };
    let timed = facts.count(Count::CheckpointsTimed);
    let (pages, wal) = (facts.count(Count::CheckpointPages), facts.count(Count::WalBytes));
    let when = facts.total.events.iter().rev().find(|event| &*event.kind == "checkpoint");
    let share = percent(within_ns as f64 / all_ns.max(1) as f64);
    let mut sentence = if is_storm {
        format!(
            "{requested} checkpoints in {}: {share} of the waits for log and pages fall in them",
            time(facts.span_ns())
        )
    } else {
        format!(
            "{share} of the waits for log and pages fall in a checkpoint that took {}",
            time(within_us * 1000)
        )
    };
    let guilty = facts.main_user(Use::WalBytes);
    if let Some((statement, part)) = guilty {
        sentence += &format!(
            "; {} of {} of its log come from {}",
            percent(part),
            bytes(wal),
            short(&statement.text)
        );
    }
    sentence.push('.');
    let last = when.map_or_else(String::new, |event| format!("; {}", event.text));
    let evidence = format!(
        "{requested} requested and {timed} timed checkpoints, {pages} pages written, {} waited in them, \
         {} of log{last}",
        time(within_ns),
        bytes(wal)
    );
    let size = live_int(setting::MAX_WAL_SIZE);
    let advice = if requested > 0 {
        format!("Raise max_wal_size (now {size} MB), or write in smaller portions.")
    } else {
        "Raise checkpoint_completion_target or checkpoint_timeout, so that its writes are spread."
            .to_owned()
    };
    let finding = match guilty {
        Some((statement, part)) if part >= 0.3 => Finding::by("checkpoint", statement, lost_ns),
        _ => Finding::new("checkpoint", Cause::Setting, "max_wal_size", lost_ns),
    };
    let mut finding =
        finding.suffered_by(facts.main_victim(EVENTS)).saying(sentence, evidence, advice);
    if is_storm {
        finding.risk_ns = lost_ns.max(facts.span_ns() / 5);
    }
    found.push(finding);
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, statement, ten_seconds, used, wait};
    use super::*;

    #[test]
    fn a_storm_names_the_statement_whose_log_it_is() {
        let facts = Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                statement(slice, 9, "UPDATE big SET n = n + 1", 0, 1.0, 0.5);
                used(slice, Use::WalBytes, 50 << 20);
                slice.set(Count::WalBytes, 50 << 20);
                slice.set(Count::CheckpointsRequested, 1);
                slice.set(Count::CheckpointUs, 1_000_000);
                wait(slice, WaitEvent::IOWALSync, 1, "", 1.0);
            }),
            &[],
        );
        let found = explain(&facts);
        assert_eq!((found[0].kind, found[0].statement), ("checkpoint", 9));
        assert!(found[0].sentence.contains("100 % of 500 MB"), "{}", found[0].sentence);
    }

    #[test]
    fn one_beside_which_nobody_waits_longer_is_no_finding() {
        let facts = Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                if slice.at < 103_000_000 {
                    slice.set(Count::CheckpointUs, 1_000_000);
                }
            }),
            &[],
        );
        assert!(explain(&facts).is_empty());
    }
}

//! A disk that takes longer than it did: syncs of the log, reads of pages.

use base::WaitEvent;
use base::usage::Use;

use super::facts::{Beat, Facts, Measure, change};
use super::finding::{Cause, Finding, bytes, time};
use crate::history::slice::{Count, Slice};

/// So many times as long.
const TIMES: u64 = 3;
/// Shorter than that is no slow disk, nanoseconds.
const SLOW_NS: u64 = 3_000_000;
/// That is one, without anything to compare with.
const SLOW_ANYWAY_NS: u64 = 50_000_000;
/// Operations of which a mean is made.
const COUNT_MIN: u64 = 5;

struct Kind {
    what: &'static str,
    events: &'static [WaitEvent],
    of: fn(&Slice) -> Measure,
    /// The same of a part of the range, where it has that.
    of_beat: Option<fn(&Beat) -> Measure>,
}

fn syncs(count: impl Fn(Count) -> u64) -> Measure {
    let ns = count(Count::WalSyncNs) + count(Count::WalWriteNs);
    Measure { count: count(Count::WalSyncs).max(count(Count::WalWrites)), ns, pages: 0 }
}

fn reads(slice: &Slice) -> Measure {
    let used = |what| slice.statements.iter().map(|s| s.get(what)).sum();
    Measure { count: used(Use::BufferRead), ns: used(Use::ReadNs), pages: 0 }
}

const KINDS: &[Kind] = &[
    Kind {
        what: "Writing and syncing the log",
        events: &[
            WaitEvent::IPCWalFlush,
            WaitEvent::LWLockWALFlushLock,
            WaitEvent::LWLockWALInsert,
        ],
        of: |slice| syncs(|what| slice.count(what)),
        of_beat: Some(|beat| syncs(|what| beat.count(what))),
    },
    Kind {
        what: "Reading a page",
        events: &[WaitEvent::IODataFileRead, WaitEvent::IPCBufferIO],
        of: reads,
        of_beat: None,
    },
];

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    for kind in KINDS {
        let (before, all) = ((kind.of)(&facts.before), (kind.of)(&facts.total));
        let parts: Vec<Measure> = match kind.of_beat {
            Some(of_beat) => facts.beats.iter().map(of_beat).collect(),
            None => vec![all],
        };
        let (before, now) = match change(before, &parts, COUNT_MIN) {
            Some((earlier, later)) => (Some(earlier.mean_ns()), later.mean_ns()),
            None if all.count >= COUNT_MIN => (None, all.mean_ns()),
            None => continue,
        };
        let is_slow = match before {
            Some(before) => now >= SLOW_NS && now >= before * TIMES,
            None => now >= SLOW_ANYWAY_NS,
        };
        if !is_slow {
            continue;
        }
        let waited = facts.waited_ns(kind.events);
        let usual = before.unwrap_or(SLOW_NS).min(now);
        let lost_ns = (waited as f64 * (now - usual) as f64 / now as f64) as u64;
        let than = before.map_or_else(String::new, |b| format!(" instead of {}", time(b)));
        let mut sentence =
            format!("The disk is slow: {} takes {}{than}", kind.what.to_lowercase(), time(now));
        let evidence = format!("{} operations, {} waited for them", all.count, time(waited));
        let others = others(facts);
        if others > 0 {
            sentence += &format!("; other processes moved {} on it", bytes(others));
        }
        sentence.push('.');
        let advice = match others {
            0 => {
                "See what the disk is shared with (iostat, the host's neighbours); \
                 synchronous_commit = off for what may be lost."
            }
            _ => {
                "See which other process uses the disk (iotop, pidstat -d), or give the data directory one of \
                 its own."
            }
        };
        let finding = Finding::new("slow_disk", Cause::Disk, kind.what, lost_ns);
        found.push(
            finding.suffered_by(facts.main_victim(kind.events)).saying(sentence, evidence, advice),
        );
    }
}

/// Bytes that other processes read from and wrote to the disk of the data directory, as far as it is most of all
/// that it moved: the system passes on later what this process has written.
fn others(facts: &Facts) -> u64 {
    /// Bytes a second below which nobody is hindered.
    const MUCH: u64 = 1 << 20;
    let (all, own) = (facts.count(Count::DiskBytes), facts.count(Count::DiskBytesOwn));
    let others = all.saturating_sub(own);
    let is_much = others > own && others >= (facts.seconds() * MUCH as f64) as u64;
    if is_much { others } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, ten_seconds};
    use super::*;

    fn seconds(sync_ns: u64) -> Vec<Slice> {
        ten_seconds(|slice| {
            healthy(slice);
            slice.set(Count::WalSyncs, 50);
            slice.set(Count::WalSyncNs, 50 * sync_ns);
        })
    }

    #[test]
    fn a_disk_that_got_slower_is_found() {
        let found = explain(&Facts::of(&seconds(20_000_000), &seconds(1_000_000)));
        assert_eq!((found[0].kind, found[0].cause), ("slow_disk", Cause::Disk));
        assert!(
            found[0].sentence.contains("takes 20.0 ms instead of 1.0 ms"),
            "{}",
            found[0].sentence
        );
    }

    #[test]
    fn other_processes_that_use_it_are_said() {
        let mut now = seconds(20_000_000);
        now.iter_mut().for_each(|slice| {
            slice.set(Count::DiskBytes, 100 << 20);
            slice.set(Count::DiskBytesOwn, 1 << 20);
        });
        let found = explain(&Facts::of(&now, &seconds(1_000_000)));
        assert!(
            found[0].sentence.ends_with("; other processes moved 990 MB on it."),
            "{}",
            found[0].sentence
        );
    }

    #[test]
    fn one_that_made_nobody_wait_is_not() {
        let idle = |sync_ns: u64| {
            let mut all = seconds(sync_ns);
            all.iter_mut().for_each(|slice| slice.waits.clear());
            all
        };
        assert!(explain(&Facts::of(&idle(20_000_000), &idle(1_000_000))).is_empty());
    }

    #[test]
    fn one_that_always_was_so_is_not() {
        assert!(explain(&Facts::of(&seconds(5_000_000), &seconds(4_000_000))).is_empty());
    }
}

//! Pages that don't fit into memory: reads and evictions, by the statement that causes most of them.

use base::WaitEvent;
use base::settings::{live_int, setting};
use base::usage::Use;

use super::facts::Facts;
use super::finding::{Finding, percent, short, time};
use crate::history::slice::Count;

const EVENTS: &[WaitEvent] = &[
    WaitEvent::IODataFileRead,
    WaitEvent::IODataFileWrite,
    WaitEvent::IPCBufferIO,
    WaitEvent::IPCFreeBuffer,
    WaitEvent::LWLockBufferMapping,
];
/// Evictions a second.
const EVICTIONS: f64 = 200.0;
/// Part of wanted pages that were read.
const MISSES: f64 = 0.005;

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    let (read, hit) = (facts.count(Count::PagesRead), facts.count(Count::PagesHit));
    let evicted = facts.count(Count::Evictions);
    let misses = read as f64 / (read + hit).max(1) as f64;
    if (evicted as f64) < EVICTIONS * facts.seconds() || misses < MISSES {
        return;
    }
    let Some((statement, part)) =
        facts.main_user(Use::Evicted).or(facts.main_user(Use::BufferRead))
    else {
        return;
    };
    let spent = |what| facts.statements.iter().map(|s| s.get(what)).sum::<u64>();
    let lost_ns = facts.waited_ns(EVENTS).max(spent(Use::ReadNs) + spent(Use::WriteNs));
    let others: u64 = facts
        .statements
        .iter()
        .filter(|s| s.id != statement.id)
        .map(|s| s.get(Use::BufferRead))
        .sum();
    let sentence = format!(
        "{} reads pages that push others out of memory: {} of {evicted} evictions are for it, and others read \
         {others} pages.",
        short(&statement.text),
        percent(part)
    );
    let evidence = format!(
        "{read} pages read ({} of those wanted), {evicted} evicted, {} waited for pages",
        percent(misses),
        time(lost_ns)
    );
    let advice = format!(
        "Give it an index or fewer pages to read, run it when others don't, or raise shared_buffers (now {} MB).",
        live_int(setting::SHARED_BUFFERS) * 8192 >> 20
    );
    let victims = facts.statements.iter().filter(|s| s.id != statement.id);
    let victim =
        victims.max_by_key(|s| s.get(Use::BufferRead)).filter(|s| s.get(Use::BufferRead) > 0);
    let mut finding = Finding::by("buffer_misses", statement, lost_ns)
        .suffered_by(victim)
        .saying(sentence, evidence, advice);
    finding.risk_ns = lost_ns.max(facts.span_ns() / 10);
    found.push(finding);
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, statement, ten_seconds, used};
    use super::*;

    fn with(evicted: u64) -> Vec<Finding> {
        explain(&Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                statement(slice, 9, "SELECT sum(n) FROM huge", 0, 1.0, 0.5);
                used(slice, Use::BufferRead, evicted);
                used(slice, Use::Evicted, evicted);
                slice.set(Count::PagesRead, evicted);
                slice.set(Count::PagesHit, 10_000);
                slice.set(Count::Evictions, evicted);
            }),
            &[],
        ))
    }

    #[test]
    fn who_pushes_pages_out_is_named() {
        let found = with(5000);
        assert_eq!((found[0].kind, found[0].statement), ("buffer_misses", 9));
        assert!(found[0].sentence.contains("100 % of 50000 evictions"), "{}", found[0].sentence);
    }

    #[test]
    fn a_few_reads_are_no_finding() {
        assert!(with(20).is_empty());
    }
}

//! Sessions that stand behind one that holds something for long, and who queues in between.

use super::facts::Facts;
use super::finding::{Cause, Finding, short, time};
use crate::history::slice::{Block, Count};

/// A holder that moves on sooner is no queue's root but one of many who pass.
pub(super) const LONG_US: u64 = 1_000_000;

/// Whether it held what others waited for, rather than passing by.
pub(super) fn is_long(block: &Block) -> bool {
    block.state_us.max(block.transaction_us) >= LONG_US && block.ns > 0
}

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    let blocks = facts.total.blocks.iter().filter(|block| is_long(block) && block.pid != 0);
    found.extend(blocks.map(|block| finding(facts, block)));
}

fn finding(facts: &Facts, block: &Block) -> Finding {
    let Block { pid, waiting, indirect, .. } = *block;
    let sessions = facts.count(Count::Sessions).max(waiting);
    let age = time(block.state_us.max(block.transaction_us) * 1000);
    let is_idle = block.state.starts_with("idle");
    let doing = match &*block.state {
        state if is_idle => format!("{state} for {age} after {}", short(&block.query)),
        "active" => format!("which has been at {} for {age}", short(&block.query)),
        kind => format!("the {kind}"),
    };
    let stand = if waiting == 1 { "stands" } else { "stand" };
    let mut sentence =
        format!("{waiting} of {sessions} sessions {stand} behind pid {pid}, {doing}");
    if let Some((next, query)) = &block.next {
        sentence += &format!(
            "; the {} of pid {next} queues behind it, and {indirect} behind that",
            short(query)
        );
    }
    sentence.push('.');
    let info = block.event.info();
    let evidence = format!(
        "{} waited for {}:{}{}{}, at most {waiting} sessions at a time",
        time(block.ns),
        info.kind,
        info.name,
        if block.object.is_empty() { "" } else { ", " },
        block.object,
    );
    let advice = if is_idle {
        format!(
            "End it: SELECT pg_terminate_backend({pid}); or set idle_in_transaction_session_timeout."
        )
    } else if block.next.is_some() {
        format!(
            "Cancel the one in between, or the first: SELECT pg_cancel_backend({pid}); set lock_timeout \
             for changes of definitions."
        )
    } else {
        format!("Cancel it: SELECT pg_cancel_backend({pid}); or make its transaction shorter.")
    };
    let finding = Finding::new("lock_queue", Cause::Session, format!("pid {pid}"), block.ns);
    let mut finding = finding.saying(sentence, evidence, advice);
    (finding.pid, finding.statement, finding.sessions) = (pid, block.statement, waiting);
    finding.victim = block.victim.clone();
    finding.victims =
        facts.waits().filter(|w| w.event == block.event).map(|w| w.statement).collect();
    finding
}

#[cfg(test)]
mod tests {
    use base::WaitEvent;

    use super::super::facts::tests::{healthy, ten_seconds};
    use super::*;

    fn queue(held_us: u64) -> Vec<Finding> {
        let facts = Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                slice.blocks.push(Block {
                    pid: 39,
                    state: "idle in transaction".into(),
                    query: "select * from cust".into(),
                    statement: 5,
                    state_us: held_us,
                    transaction_us: held_us,
                    event: WaitEvent::LockRelation,
                    object: "relation cust".into(),
                    waiting: 25,
                    indirect: 24,
                    ns: 25_000_000_000,
                    next: Some((40, "ALTER TABLE cust ADD x int".into())),
                    victim: "SELECT 1 FROM cust".into(),
                });
            }),
            &[],
        );
        let mut found = Vec::new();
        find(&facts, &mut found);
        found
    }

    #[test]
    fn the_root_is_named_with_who_queues_behind_it() {
        let found = queue(6_900_000);
        assert_eq!((found.len(), found[0].pid, found[0].sessions), (1, 39, 25));
        assert_eq!(
            found[0].sentence,
            "25 of 25 sessions stand behind pid 39, idle in transaction for 6.9 s after \
             `select * from cust`; the `ALTER TABLE cust ADD x int` of pid 40 queues behind it, and \
             24 behind that."
        );
    }

    #[test]
    fn who_passes_by_is_no_root() {
        assert!(queue(2000).is_empty());
    }
}

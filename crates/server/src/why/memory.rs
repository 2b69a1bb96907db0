//! Memory that is nearly used up, and the session that holds most of it.

use super::facts::Facts;
use super::finding::{Cause, Finding, bytes, percent, short};
use crate::history::slice::Count;

/// Part of `server_memory_limit`.
const PART: f64 = 0.8;

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    let (held, limit) = (facts.count(Count::MemoryBytes), facts.count(Count::MemoryLimit));
    let part = held as f64 / limit.max(1) as f64;
    if limit == 0 || part < PART {
        return;
    }
    let most = facts.total.sessions.iter().max_by_key(|s| s.memory).filter(|s| s.memory > 0);
    let whose = most.map_or_else(String::new, |s| {
        format!(", {} of it by pid {} with {}", bytes(s.memory), s.pid, short(&s.query))
    });
    let sentence = format!(
        "{} of server_memory_limit ({}) are used{whose}; at the limit statements fail.",
        percent(part),
        bytes(limit)
    );
    let evidence = format!("{} held by sessions", bytes(held));
    let advice = "Lower work_mem or the number of sessions, or raise server_memory_limit; \
                  pg_stat_session_memory shows for what each session has it.";
    let finding = match most {
        Some(s) => Finding {
            pid: s.pid,
            statement: s.statement,
            ..Finding::new("memory", Cause::Session, format!("pid {}", s.pid), 0)
        },
        None => Finding::new("memory", Cause::Setting, "server_memory_limit", 0),
    };
    let mut finding = finding.saying(sentence, evidence, advice);
    finding.risk_ns = facts.span_ns() / 2;
    found.push(finding);
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, ten_seconds};
    use super::*;
    use crate::history::slice::SessionNote;

    fn with(held: u64) -> Vec<Finding> {
        explain(&Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                slice.set(Count::MemoryBytes, held);
                slice.set(Count::MemoryLimit, 100 << 20);
                slice.sessions.push(SessionNote {
                    pid: 7,
                    state: "active".into(),
                    query: "SELECT array_agg(n) FROM big".into(),
                    statement: 9,
                    state_us: 0,
                    transaction_us: 0,
                    snapshot_log: 0,
                    memory: held,
                });
            }),
            &[],
        ))
    }

    #[test]
    fn who_holds_most_is_named_near_the_limit() {
        let found = with(90 << 20);
        assert_eq!((found[0].kind, found[0].pid), ("memory", 7));
    }

    #[test]
    fn half_of_it_is_no_finding() {
        assert!(with(50 << 20).is_empty());
    }
}

//! Sessions idle in their transactions: they hold locks, and with a snapshot they keep dead rows from vacuum.

use super::facts::Facts;
use super::finding::{Cause, Finding, bytes, short, time};
use super::lock_queue::is_long;
use super::snapshot::kept_for_it;
use crate::history::slice::SessionNote;

/// From then on it is worth saying though nobody waits yet.
const LONG_US: u64 = 5_000_000;

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    let is_root = |pid| facts.total.blocks.iter().any(|b| b.pid == pid && is_long(b));
    let idle = |s: &&SessionNote| {
        s.state.starts_with("idle in transaction") && s.state_us >= LONG_US && !is_root(s.pid)
    };
    let mut idle: Vec<&SessionNote> = facts.total.sessions.iter().filter(idle).collect();
    idle.sort_by_key(|s| std::cmp::Reverse((s.snapshot_log, s.state_us)));
    let Some(worst) = idle.first() else { return };
    let pid = worst.pid;
    let others = match idle.len() - 1 {
        0 => String::new(),
        n => format!(" ({n} more sessions are idle in transactions)"),
    };
    let age = time(worst.state_us * 1000);
    let mut sentence = format!(
        "Pid {pid} is idle in a transaction for {age} after {}{others}",
        short(&worst.query)
    );
    let kept = kept_for_it(facts, worst);
    if let Some(kept) = &kept {
        sentence += &format!("; vacuum can't remove rows that died since: {kept}");
    }
    sentence.push('.');
    let evidence = format!(
        "idle for {age}, transaction of {}, {} of log since its snapshot",
        time(worst.transaction_us * 1000),
        bytes(worst.snapshot_log)
    );
    let advice = format!(
        "End it: SELECT pg_terminate_backend({pid}); or set idle_in_transaction_session_timeout; let the \
         application commit before it waits for something else."
    );
    let finding = Finding::new("idle_transaction", Cause::Session, format!("pid {pid}"), 0);
    let mut finding = finding.saying(sentence, evidence, advice);
    (finding.pid, finding.statement) = (pid, worst.statement);
    finding.risk_ns = facts.span_ns() / if kept.is_some() { 4 } else { 10 };
    found.push(finding);
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, ten_seconds};
    use super::*;

    fn with(state: &str, state_us: u64) -> Facts {
        Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                slice.sessions.push(SessionNote {
                    pid: 7,
                    state: state.into(),
                    query: "SELECT * FROM accounts".into(),
                    statement: 2,
                    state_us: state_us + slice.at as u64,
                    transaction_us: state_us,
                    snapshot_log: 0,
                    memory: 0,
                });
            }),
            &[],
        )
    }

    #[test]
    fn a_session_that_forgot_its_transaction_is_named() {
        let found = explain(&with("idle in transaction", 5_000_000));
        assert_eq!((found.len(), found[0].kind, found[0].pid), (1, "idle_transaction", 7));
        assert!(found[0].sentence.contains("`SELECT * FROM accounts`"), "{}", found[0].sentence);
    }

    #[test]
    fn one_that_works_is_not() {
        assert!(explain(&with("active", 0)).is_empty());
    }
}

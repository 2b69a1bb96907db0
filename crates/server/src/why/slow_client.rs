//! Clients that don't take what is sent to them.

use base::WaitEvent;

use super::facts::Facts;
use super::finding::{Cause, Finding, short, time};

const EVENTS: &[WaitEvent] = &[WaitEvent::ClientClientWrite];

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    let lost_ns = facts.waited_ns(EVENTS);
    let Some(statement) = facts.main_victim(EVENTS) else { return };
    let session = facts.total.sessions.iter().find(|s| s.statement == statement.id);
    let pid = session.map_or(0, |s| s.pid);
    let whose = if pid == 0 { String::new() } else { format!(" of pid {pid}") };
    let sentence = format!(
        "The client{whose} takes the rows of {} slower than they are made.",
        short(&statement.text)
    );
    let evidence = format!("{} waited for clients to take what was sent", time(lost_ns));
    let advice =
        "Let the client read faster or fetch less (LIMIT, a cursor, COPY); look at the network.";
    let finding = Finding::new("slow_client", Cause::Client, &*statement.text, lost_ns);
    let mut finding = finding.suffered_by(Some(statement)).saying(sentence, evidence, advice);
    (finding.pid, finding.statement) = (pid, statement.id);
    found.push(finding);
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, ten_seconds, wait};
    use super::*;

    fn with(seconds: f64) -> Vec<Finding> {
        explain(&Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                wait(slice, EVENTS[0], 2, "", seconds);
            }),
            &[],
        ))
    }

    #[test]
    fn a_client_that_does_not_read_is_found() {
        assert_eq!((with(0.9)[0].kind, with(0.9)[0].statement), ("slow_client", 2));
    }

    #[test]
    fn one_that_pauses_is_not() {
        assert!(with(0.01).is_empty());
    }
}

//! Relations that grow, and those who wait for the right to extend them.

use base::WaitEvent;
use base::usage::Use;

use super::facts::Facts;
use super::finding::{Cause, Finding, short, time};
use crate::history::slice::Count;

const EVENTS: &[WaitEvent] = &[
    WaitEvent::LockExtend,
    WaitEvent::IORelationExtendSearch,
    WaitEvent::IORelationExtendEvict,
    WaitEvent::IORelationExtendFill,
    WaitEvent::IODataFileExtend,
    WaitEvent::LWLockRelationExtensionLatch,
    WaitEvent::LWLockFreeSpaceMap,
];

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    let lost_ns = facts.waited_ns(EVENTS);
    let Some(victim) = facts.main_victim(EVENTS) else { return };
    let (name, of_it) = match facts.main_object(EVENTS) {
        Some((object, ns)) => {
            let name = object.rsplit(' ').next().unwrap_or_default().to_owned();
            let words = format!(", {} of it for {name}", time(ns));
            (name, words)
        }
        None => (victim.text.to_string(), String::new()),
    };
    let guilty = facts.main_user(Use::Extended);
    let by = guilty.map_or_else(String::new, |(s, _)| format!(" by {}", short(&s.text)));
    let sentence = format!("Sessions wait for room while {name} is extended{by}.");
    let evidence = format!(
        "{} waited for extension{of_it}, {} pages added",
        time(lost_ns),
        facts.count(Count::PagesExtended)
    );
    let advice = "Load with COPY or rows in large statements, spread the rows over partitions, and give \
                  the disk's file system room: pg_stat_relation_extension shows where the time goes.";
    let finding = Finding::new("extension", Cause::Object, name, lost_ns);
    let mut finding = finding.suffered_by(Some(victim)).saying(sentence, evidence, advice);
    finding.statement = guilty.map_or(0, |(statement, _)| statement.id);
    found.push(finding);
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, statement, ten_seconds, used, wait};
    use super::*;

    fn with(seconds: f64) -> Vec<Finding> {
        explain(&Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                statement(slice, 9, "INSERT INTO log VALUES ($1)", 900, 1.0, seconds);
                used(slice, Use::Extended, 900);
                wait(slice, WaitEvent::LockExtend, 9, "extension of log", seconds);
            }),
            &[],
        ))
    }

    #[test]
    fn the_relation_and_the_statement_are_named() {
        let found = with(0.6);
        assert_eq!((found[0].kind, &*found[0].name, found[0].statement), ("extension", "log", 9));
    }

    #[test]
    fn growing_without_waits_is_no_finding() {
        assert!(with(0.001).is_empty());
    }
}

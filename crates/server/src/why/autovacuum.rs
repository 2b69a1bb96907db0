//! Tables whose dead rows nobody removes: the background vacuum is off, or does not keep up.

use base::settings::{live_bool, setting};

use super::facts::Facts;
use super::finding::{Cause, Finding, short};
use crate::history::slice::{SessionNote, TableNote};

/// Dead rows beside those at which the vacuum comes.
const TIMES: u64 = 3;
/// And at least, where it is off.
const ROWS: u64 = 2000;
/// And at least, where it is on: a small table that is updated all the time gathers some thousands between two rounds.
const ROWS_BETWEEN_ROUNDS: u64 = 30_000;

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    let is_off = !live_bool(setting::AUTOVACUUM);
    let least = if is_off { ROWS } else { ROWS_BETWEEN_ROUNDS };
    let is_behind = |t: &&TableNote| {
        t.dead >= least && t.dead >= t.threshold * TIMES && t.dead >= t.live / 3 && t.vacuums == 0
    };
    let Some(worst) = facts.total.tables.iter().filter(is_behind).max_by_key(|t| t.dead) else {
        return;
    };
    // That one's finding says so.
    let holds = |s: &SessionNote| super::snapshot::kept_for_it(facts, s).is_some();
    if facts.total.sessions.iter().any(holds) {
        return;
    }
    let why = match is_off {
        true => "autovacuum is off",
        false => "the background vacuum does not keep up",
    };
    let guilty = facts.statements_of(worst).into_iter().find(|s| {
        let text = s.text.trim_start().to_ascii_lowercase();
        text.starts_with("update") || text.starts_with("delete")
    });
    let by = guilty.map_or_else(String::new, |s| format!(", most by {}", short(&s.text)));
    let sentence = format!(
        "{} has {} dead rows beside {} that live{by}: {why}.",
        worst.name, worst.dead, worst.live
    );
    let evidence = format!(
        "{} rows changed in the range, vacuum comes at {}, {} vacuums",
        worst.changed, worst.threshold, worst.vacuums
    );
    let advice = match is_off {
        true => format!("VACUUM {}; and ALTER SYSTEM SET autovacuum = on.", worst.name),
        false => format!(
            "VACUUM {}; lower autovacuum_vacuum_scale_factor and autovacuum_naptime.",
            worst.name
        ),
    };
    let finding = match is_off {
        true => Finding::new("autovacuum", Cause::Setting, "autovacuum", 0),
        false => Finding::new("autovacuum", Cause::Background, "autovacuum launcher", 0),
    };
    let mut finding = finding.saying(sentence, evidence, advice);
    finding.statement = guilty.map_or(0, |s| s.id);
    finding.risk_ns = facts.span_ns() / 5;
    found.push(finding);
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, ten_seconds};
    use super::*;

    fn with(dead: u64) -> Vec<Finding> {
        explain(&Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                slice.tables.push(TableNote {
                    name: "accounts".into(),
                    changed: 900,
                    live: 1000,
                    dead,
                    threshold: 250,
                    ..TableNote::new(5, 6)
                });
            }),
            &[],
        ))
    }

    #[test]
    fn a_bloated_table_is_named_with_the_statement() {
        let found = with(90_000);
        assert_eq!((found[0].kind, found[0].statement), ("autovacuum", 1));
        assert!(
            found[0].sentence.starts_with("accounts has 90000 dead rows"),
            "{}",
            found[0].sentence
        );
    }

    #[test]
    fn dead_rows_below_the_threshold_are_no_finding() {
        assert!(with(200).is_empty());
    }
}

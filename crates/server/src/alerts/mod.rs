//! Alerts: conditions that last, as rows of `pg_alerts`, lines of the log, events, notifications and calls of a webhook.
//!
//! ```text
//!   pg_alert_rules ──every pg_alert_interval──► SQL ─┐
//!   findings that last (crate::why) ─────────────────┴─► Alerts::report ─► row, log, event
//!                                                              │ begins or ends
//!                                                              ▼ this thread
//!                                                 NOTIFY pg_alerts, POST to pg_alert_webhook
//! ```
//! * A rule's statement runs in the database `postgres` in the bootstrap superuser's name; who may set rules may do
//!   as much.
//! * What can't be delivered is said in the log once and not repeated: the row is there for who asks.

pub mod board;
mod rules;

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::settings::{Value, live_int, setting};
use base::{Error, Result, WaitEvent, sqlstate};
use catalog::object::ids;
use types::Datum;

use crate::log;
use crate::server::{self, Server};
use crate::session::headless::Headless;
use crate::telemetry::post;
use board::{Alert, Checked};
use rules::Rule;

/// The channel of notifications, in the database `postgres`.
pub const CHANNEL: &str = "pg_alerts";
/// How long a rule's statement may take, milliseconds.
const STATEMENT_MS: i64 = 5000;

/// A rule's condition holds or does not: says so in the log and among the events when that is new.
fn report(server: &Server, rule: &str, text: Option<&str>) {
    let Some(changed) = server.alerts.report(rule, "", text, server::now()) else { return };
    server.alerter.wake();
    let word = if changed.until == 0 { "alert" } else { "alert is over" };
    let line = format!("{word}: {rule}: {}", changed.text);
    log::info(format_args!("{line}"));
    server.history.note("alert", 0, &line);
}

/// The thread's work.
pub fn work(server: &Arc<Server>) {
    let mut failed = false;
    loop {
        let texts = server.values().0.settings.str(setting::PG_ALERT_RULES).to_owned();
        let rules = follow(server, &texts);
        if !rules.is_empty() {
            check_all(server, rules);
        }
        let outbox = server.alerts.take_outbox();
        for alert in &outbox {
            match deliver(server, alert) {
                Ok(()) => failed = false,
                Err(error) if !failed => {
                    failed = true;
                    log::info(format_args!("could not deliver an alert: {error}"));
                }
                Err(_) => {}
            }
        }
        let pause = Duration::from_secs(live_int(setting::PG_ALERT_INTERVAL).max(1) as u64);
        // Without rules there is nothing to be done until somebody says so.
        let until = (!texts.trim().is_empty()).then(|| Instant::now() + pause);
        server.alerter.await_work(WaitEvent::ActivityThreadMain, until);
        if sched::check_interrupts().is_err() {
            return;
        }
    }
}

/// Takes over the rules of the setting; those that are gone end.
fn follow(server: &Server, texts: &str) -> Vec<Checked> {
    let wanted = rules::parse(texts);
    let known = server.alerts.rules();
    let same = |rule: &Rule| known.iter().find(|checked| checked.rule == *rule).cloned();
    let new = |rule: Rule| {
        let error = rule.error.clone();
        Checked { rule, at: 0, holds_since: 0, error }
    };
    let rules: Vec<Checked> =
        wanted.into_iter().map(|rule| same(&rule).unwrap_or_else(|| new(rule))).collect();
    for gone in known.iter().filter(|k| !rules.iter().any(|r| r.rule.name == k.rule.name)) {
        report(server, &gone.rule.name, None);
    }
    server.alerts.keep_rules(rules.clone());
    rules
}

fn check_all(server: &Arc<Server>, mut rules: Vec<Checked>) {
    for checked in rules.iter_mut().filter(|checked| checked.rule.error.is_empty()) {
        let now = server::now();
        checked.at = now;
        match check(server, &checked.rule) {
            Ok(text) => {
                checked.error.clear();
                checked.holds_since = match (&text, checked.holds_since) {
                    (None, _) => 0,
                    (Some(_), 0) => now,
                    (Some(_), since) => since,
                };
                let lasts = now - checked.holds_since >= checked.rule.lasting_us;
                match &text {
                    Some(text) if lasts => {
                        report(server, &checked.rule.name, Some(text));
                    }
                    Some(_) => {}
                    None => report(server, &checked.rule.name, None),
                }
            }
            Err(error) => {
                let said = error.to_string();
                if said != checked.error {
                    log::info(format_args!("alert rule \"{}\": {said}", checked.rule.name));
                }
                checked.error = said;
            }
        }
        if sched::current().has_interrupt(sched::Interrupt::Terminate) {
            break;
        }
    }
    server.alerts.keep_rules(rules);
}

/// The text of an alert if the rule's condition holds: the first column of the first row is neither false nor NULL.
fn check(server: &Arc<Server>, rule: &Rule) -> Result<Option<String>> {
    let rows = run(server, &rule.condition, &[])?;
    let Some(row) = rows.first() else { return Ok(None) };
    if matches!(row.first(), None | Some(Datum::Null | Datum::Bool(false))) {
        return Ok(None);
    }
    let words = row.get(1).filter(|value| !value.is_null()).map(|value| {
        let ty = types::io::natural_type(value);
        types::io::to_text(ty, value, &Default::default()).map(|text| text.to_string())
    });
    Ok(Some(words.transpose()?.unwrap_or_else(|| rule.condition.clone())))
}

/// Runs a statement in the database `postgres`; no rows while somebody wants it alone.
fn run(server: &Arc<Server>, text: &str, params: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    let Some(database) = server.engine.catalog.database(ids::POSTGRES_DB) else {
        return Err(Error::internal("the database postgres is not there"));
    };
    let Some(mut session) = Headless::attach(server, &database, ids::SUPERUSER)? else {
        return Ok(Vec::new());
    };
    session.set(setting::STATEMENT_TIMEOUT, Value::Int(STATEMENT_MS));
    let answer = session.run(text, params).inspect_err(|error| {
        if error.code() == sqlstate::ADMIN_SHUTDOWN {
            // The statement has taken notice of the request to end; this thread must, too.
            sched::current().interrupt(sched::Interrupt::Terminate);
        }
    })?;
    Ok(answer.rows)
}

/// An alert as clients are told of it.
fn message(alert: &Alert) -> String {
    let time = |at: i64| crate::http::time_ms(at).round();
    serde_json::json!({
        "rule": &*alert.rule, "state": if alert.until == 0 { "on" } else { "off" },
        "since": time(alert.since), "until": (alert.until != 0).then(|| time(alert.until)),
        "text": &*alert.text,
    })
    .to_string()
}

/// Notifies listeners and calls the webhook.
fn deliver(server: &Arc<Server>, alert: &Alert) -> Result<()> {
    let message = message(alert);
    if !server.standby.follows() {
        let (channel, payload) = (Datum::Text(CHANNEL.into()), Datum::Text((&*message).into()));
        run(server, "SELECT pg_catalog.pg_notify($1, $2)", &[channel, payload])?;
    }
    let url = server.values().0.settings.str(setting::PG_ALERT_WEBHOOK).to_owned();
    if !url.is_empty() {
        post::json(&url, &message)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_all() {
        let alert = Alert {
            rule: "locks".into(),
            name: "".into(),
            since: 0,
            until: 0,
            text: "\"x\"".into(),
        };
        assert_eq!(
            message(&alert),
            r#"{"rule":"locks","since":946684800000.0,"state":"on","text":"\"x\"","until":null}"#
        );
    }
}

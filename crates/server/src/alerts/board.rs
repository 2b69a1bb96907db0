//! The alerts that hold and those that are over, and the rules as they were last looked at.

use std::collections::VecDeque;
use std::sync::Arc;

use sched::SpinLock;

use super::rules::Rule;

/// Alerts that are over and kept.
const ENDED_MAX: usize = 1000;
/// Changes that wait for delivery.
const OUTBOX_MAX: usize = 1000;
/// Longest text, bytes: a notification has room for 8,000.
const TEXT_MAX: usize = 4000;

/// A condition that holds, or did.
#[derive(Clone, Debug)]
pub struct Alert {
    /// The rule's name, or the kind of a finding.
    pub rule: Arc<str>,
    /// The object of the alert, where a rule has several; else empty.
    pub name: Arc<str>,
    /// Since when, in microseconds since 2000.
    pub since: i64,
    /// Until when; 0: it still holds.
    pub until: i64,
    /// In words, as it was last.
    pub text: Arc<str>,
}

#[derive(Default)]
struct State {
    active: Vec<Alert>,
    ended: VecDeque<Alert>,
    outbox: Vec<Alert>,
    /// Rules as they were last looked at.
    rules: Vec<Checked>,
}

/// A rule, and the last look at it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The rule.
    pub rule: Rule,
    /// When it was looked at, in microseconds since 2000; 0: not yet.
    pub at: i64,
    /// Since when its condition has held; 0: it does not.
    pub holds_since: i64,
    /// The reason why it can't be looked at; empty: it can.
    pub error: String,
}

/// See the module's documentation.
#[derive(Default)]
pub struct Alerts {
    state: SpinLock<State>,
}

impl Alerts {
    /// A condition holds (with these words) or does not. `name` tells apart what a rule says of several things.
    /// The alert, if it begins or ends now (microseconds since 2000); then it waits for delivery, for which the caller
    /// wakes the thread.
    pub fn report(&self, rule: &str, name: &str, text: Option<&str>, now: i64) -> Option<Alert> {
        let mut state = self.state.lock();
        let is_it = |alert: &Alert| (&*alert.rule, &*alert.name) == (rule, name);
        let at = state.active.iter().position(is_it);
        let changed = match (at, text) {
            (Some(at), Some(text)) => {
                if *state.active[at].text != *text {
                    state.active[at].text = short(text);
                }
                return None;
            }
            (None, None) => return None,
            (None, Some(text)) => {
                let alert = Alert {
                    rule: rule.into(),
                    name: name.into(),
                    since: now,
                    until: 0,
                    text: short(text),
                };
                state.active.push(alert.clone());
                alert
            }
            (Some(at), None) => {
                let alert = Alert { until: now, ..state.active.remove(at) };
                if state.ended.len() >= ENDED_MAX {
                    state.ended.pop_front();
                }
                state.ended.push_back(alert.clone());
                alert
            }
        };
        if state.outbox.len() < OUTBOX_MAX {
            state.outbox.push(changed.clone());
        }
        Some(changed)
    }

    /// Alerts that hold, then those that are over, the latest first.
    pub fn all(&self) -> Vec<Alert> {
        let state = self.state.lock();
        state.active.iter().cloned().chain(state.ended.iter().rev().cloned()).collect()
    }

    /// Rules as they were last looked at.
    pub fn rules(&self) -> Vec<Checked> {
        self.state.lock().rules.clone()
    }

    pub(super) fn keep_rules(&self, rules: Vec<Checked>) {
        self.state.lock().rules = rules;
    }

    /// Takes the changes that wait for delivery.
    pub(super) fn take_outbox(&self) -> Vec<Alert> {
        std::mem::take(&mut self.state.lock().outbox)
    }
}

fn short(text: &str) -> Arc<str> {
    text[..text.floor_char_boundary(TEXT_MAX)].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_begins_and_ends_once() {
        let alerts = Alerts::default();
        let set = |text: Option<&str>, at| alerts.report("locks", "", text, at).map(|a| a.until);
        assert_eq!(set(None, 1), None);
        assert_eq!(set(Some("3 wait"), 2), Some(0));
        assert_eq!(set(Some("5 wait"), 3), None);
        let now = alerts.all();
        assert_eq!((now.len(), now[0].since, &*now[0].text), (1, 2, "5 wait"));
        assert_eq!(set(None, 9), Some(9));
        assert_eq!(set(None, 10), None);
        let over = alerts.all();
        assert_eq!((over.len(), over[0].since, over[0].until), (1, 2, 9));
        assert_eq!(alerts.state.lock().outbox.len(), 2);
    }
}

//! Senders of the log: sessions whose clients follow it. Their clients' words make `pg_stat_replication`, and decide
//! when a commit is acknowledged (`synchronous_standby_names`).
//!
//! ```text
//! synchronous_standby_names = 'a, b'             the first of those that are there
//!                             'FIRST 2 (a, b, c)' the first two of them
//!                             'ANY 2 (a, b, c)'   any two of them; '*' fits every name
//! ```
//! With fewer clients than are asked for nothing is acknowledged until they come. Without any names the log is
//! acknowledged as it becomes durable here.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::settings::setting;
use base::{Lsn, Result, WaitEvent, err};
use sched::Mutex;
use storage::Storage;

/// A client that follows the log.
#[derive(Clone, Debug, Default)]
pub struct Sender {
    /// Its application's name.
    pub application: String,
    /// `startup`, `catchup`, `streaming`, `backup`.
    pub state: &'static str,
    /// Sent so far.
    pub sent: Lsn,
    /// Received, durable and applied there, as far as it said.
    pub written: Lsn,
    /// See [`Sender::written`].
    pub flushed: Lsn,
    /// See [`Sender::written`].
    pub applied: Lsn,
    /// The time of its last word, in microseconds since 2000-01-01 UTC.
    pub replied: Option<i64>,
}

/// The names and the number of replicas that have to acknowledge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    any: bool,
    count: usize,
    names: Vec<String>,
}

impl Wanted {
    /// Reads `synchronous_standby_names`.
    ///
    /// # Errors
    /// `22023`.
    pub fn parse(text: &str) -> Result<Wanted> {
        let bad = || {
            err!(
                INVALID_PARAMETER_VALUE,
                "invalid value for parameter \"synchronous_standby_names\": \"{text}\""
            )
        };
        let text = text.trim();
        if text.is_empty() {
            return Ok(Wanted::default());
        }
        let (any, count, list) = match text.split_once('(') {
            None => (false, 1, text),
            Some((head, list)) => {
                let list = list.trim_end().strip_suffix(')').ok_or_else(bad)?;
                let mut words = head.split_whitespace();
                let first = words.next().ok_or_else(bad)?;
                let (any, number) = match first.to_ascii_uppercase().as_str() {
                    "ANY" => (true, words.next().ok_or_else(bad)?),
                    "FIRST" => (false, words.next().ok_or_else(bad)?),
                    _ => (false, first),
                };
                if words.next().is_some() {
                    return Err(bad());
                }
                (any, number.parse().map_err(|_| bad())?, list)
            }
        };
        let mut names = Vec::new();
        for name in list.split(',').map(str::trim) {
            let plain = match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
                Some(quoted) => quoted.replace("\"\"", "\""),
                None => name.to_ascii_lowercase(),
            };
            let fits = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
            if plain.is_empty()
                || !(name.starts_with('"') || name == "*" || plain.chars().all(fits))
            {
                return Err(bad());
            }
            names.push(plain);
        }
        if count == 0 {
            return Err(bad());
        }
        Ok(Wanted { any, count, names })
    }

    /// The place of an application in the list, from 1; 0: it is not asked.
    pub fn priority(&self, application: &str) -> usize {
        let name = application.to_ascii_lowercase();
        self.names.iter().position(|n| n == "*" || *n == name).map_or(0, |at| at + 1)
    }

    /// The position that enough of them have durable; None: too few are there.
    #[cfg(test)]
    fn acknowledged<'a>(&self, senders: impl Iterator<Item = &'a Sender>) -> Option<Lsn> {
        self.reached(senders, |sender| sender.flushed)
    }

    /// The position that enough of them have reached in some way; None: too few are there.
    fn reached<'a>(
        &self,
        senders: impl Iterator<Item = &'a Sender>,
        position: impl Fn(&Sender) -> Lsn,
    ) -> Option<Lsn> {
        let mut asked: Vec<(usize, Lsn)> = senders
            .filter(|s| s.state == "streaming" || s.state == "catchup")
            .map(|s| (self.priority(&s.application), position(s)))
            .filter(|one| one.0 > 0)
            .collect();
        if asked.len() < self.count {
            return None;
        }
        if self.any {
            asked.sort_by_key(|one| std::cmp::Reverse(one.1));
            return asked.get(self.count - 1).map(|one| one.1);
        }
        asked.sort_by_key(|one| one.0);
        asked[..self.count].iter().map(|one| one.1).min()
    }
}

#[derive(Default)]
struct State {
    all: BTreeMap<i32, Sender>,
    wanted: Wanted,
}

/// See the module's documentation.
pub struct Senders {
    state: Mutex<State>,
}

impl Default for Senders {
    fn default() -> Senders {
        Senders { state: Mutex::new(WaitEvent::LWLockReplicationSlots, State::default()) }
    }
}

/// A sender's place in the list; dropping it leaves.
pub struct Registered {
    server: Arc<crate::server::Server>,
    pid: i32,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.server.senders.state.lock().all.remove(&self.pid);
    }
}

impl Registered {
    /// Changes what is known of the sender.
    pub fn update(&self, change: impl FnOnce(&mut Sender)) {
        let mut state = self.server.senders.state.lock();
        if let Some(sender) = state.all.get_mut(&self.pid) {
            change(sender);
        }
        state.acknowledge(&self.server.engine.storage);
    }
}

impl State {
    fn acknowledge(&self, storage: &Storage) {
        if self.wanted.count == 0 {
            return;
        }
        if let Some(upto) = self.wanted.reached(self.all.values(), |sender| sender.flushed) {
            storage.wal.acknowledge(upto);
        }
        if let Some(upto) = self.wanted.reached(self.all.values(), |sender| sender.applied) {
            storage.wal.acknowledge_applied(upto);
        }
    }
}

impl Senders {
    /// A session begins to send.
    pub fn register(server: &Arc<crate::server::Server>, pid: i32, sender: Sender) -> Registered {
        server.senders.state.lock().all.insert(pid, sender);
        Registered { server: server.clone(), pid }
    }

    /// All of them, by process id, with their priorities and whether their word counts now.
    pub fn all(&self) -> Vec<(i32, Sender, usize, &'static str)> {
        let state = self.state.lock();
        let wanted = &state.wanted;
        let mut first: Vec<(usize, i32)> = state
            .all
            .iter()
            .map(|(pid, s)| (wanted.priority(&s.application), *pid))
            .filter(|one| one.0 > 0)
            .collect();
        first.sort_unstable();
        let row = |(pid, sender): (&i32, &Sender)| {
            let priority = if wanted.count == 0 { 0 } else { wanted.priority(&sender.application) };
            let place = first.iter().position(|one| one.1 == *pid);
            let word = match place {
                _ if priority == 0 => "async",
                _ if wanted.any => "quorum",
                Some(at) if at < wanted.count => "sync",
                _ => "potential",
            };
            (*pid, sender.clone(), priority, word)
        };
        state.all.iter().map(row).collect()
    }

    /// The settings are in force from now on.
    pub fn configure(&self, settings: &base::settings::Settings, storage: &Storage) {
        // It was checked when it was read.
        let wanted = Wanted::parse(settings.str(setting::SYNCHRONOUS_STANDBY_NAMES));
        let mut state = self.state.lock();
        state.wanted = wanted.unwrap_or_default();
        // A standby waits for no replicas: its log is durable in the primary already.
        storage.wal.set_quorum(state.wanted.count > 0 && !storage.follows());
        state.acknowledge(storage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(name: &str, flushed: u64) -> Sender {
        Sender {
            application: name.into(),
            state: "streaming",
            flushed: Lsn(flushed),
            ..Sender::default()
        }
    }

    #[test]
    fn names_and_numbers_of_replicas_are_read_as_postgresql_reads_them() {
        assert_eq!(Wanted::parse(" ").unwrap().count, 0);
        let first = Wanted::parse("FIRST 2 (a, \"B c\", *)").unwrap();
        assert_eq!((first.any, first.count, first.names.len()), (false, 2, 3));
        assert!(Wanted::parse("ANY 1 (x)").unwrap().any);
        assert_eq!(Wanted::parse("2 (a, b)").unwrap().count, 2);
        assert_eq!(Wanted::parse("a, b").unwrap().count, 1);
        for bad in ["FIRST (a)", "ANY x (a)", "2 (a", "a b", "0 (a)", "a,,b", "FIRST 1 2 (a)"] {
            assert!(Wanted::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_position_is_acknowledged_when_enough_have_it() {
        let all = [sender("a", 10), sender("b", 30), sender("c", 20)];
        let of = |text: &str| Wanted::parse(text).unwrap().acknowledged(all.iter());
        assert_eq!(of("a, b"), Some(Lsn(10)), "a comes first");
        assert_eq!(of("b, a"), Some(Lsn(30)));
        assert_eq!(of("FIRST 2 (b, c, a)"), Some(Lsn(20)));
        assert_eq!(of("ANY 2 (a, b, c)"), Some(Lsn(20)));
        assert_eq!(of("ANY 3 (*)"), Some(Lsn(10)));
        assert_eq!(of("nobody"), None);
        assert_eq!(of("2 (a, nobody)"), None);
    }
}

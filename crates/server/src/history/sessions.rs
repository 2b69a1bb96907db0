//! Sums by client, collected from the readings of sessions.
//!
//! Nothing is counted for it on the way of a statement but the time that it took: each second the counts of a session's
//! task are compared with those of a second before. A session that ends leaves its last reading behind
//! ([`crate::registry::Registry::departed`]), so that one that lives for less than a second is counted, too.

use std::collections::HashMap;
use std::sync::Arc;

use super::clients::{Client, ClientSum};
use super::slice::Slice;
use crate::registry::Reading;
use crate::server::{self, Server};

/// The readings of sessions at the last look.
#[derive(Default)]
pub(super) struct Clients {
    /// By task, which no two sessions ever share.
    known: HashMap<u64, Reading>,
    /// Names of applications, each once.
    applications: HashMap<String, Arc<str>>,
}

impl Clients {
    /// Gives the slice what sessions did since the last look. Returns the place of each session's client
    /// among the slice's, by the session's number.
    pub fn look(&mut self, server: &Server, slice: &mut Slice) -> HashMap<i32, usize> {
        let departed = server.sessions.departed();
        let mut now: Vec<(Reading, bool)> = departed.into_iter().map(|r| (r, false)).collect();
        now.extend(
            server.sessions.readings(server::now()).into_iter().map(|reading| (reading, true)),
        );
        self.compare(now, slice)
    }

    /// `now`: readings, and whether the session is still there.
    fn compare(&mut self, now: Vec<(Reading, bool)>, slice: &mut Slice) -> HashMap<i32, usize> {
        let mut of_pid = HashMap::with_capacity(now.len());
        let mut places: HashMap<Client, usize> = HashMap::new();
        let mut known = HashMap::with_capacity(now.len());
        for (reading, is_there) in now {
            let client = Client {
                user: reading.user,
                database: reading.database,
                application: self.application(&reading.application),
            };
            let at = *places.entry(client).or_insert_with_key(|client| {
                slice.clients.push(ClientSum::new(client.clone()));
                slice.clients.len() - 1
            });
            let sum = &mut slice.clients[at];
            let then = self.known.get(&reading.task);
            sum.began += u64::from(then.is_none());
            sum.sessions += u64::from(is_there);
            let (active_us, transactions) =
                then.map_or((0, 0), |then| (then.active_us, then.transactions));
            sum.active_ns += reading.active_us.saturating_sub(active_us) * 1000;
            sum.transactions += reading.transactions.saturating_sub(transactions);
            match then {
                Some(then) => sum.used.add(&reading.used.since(&then.used)),
                None => sum.used.add(&reading.used),
            }
            of_pid.insert(reading.pid, at);
            if is_there {
                known.insert(reading.task, reading);
            }
        }
        self.known = known;
        of_pid
    }

    fn application(&mut self, name: &str) -> Arc<str> {
        /// Names that are remembered.
        const NAMES_MAX: usize = 1000;
        if let Some(known) = self.applications.get(name) {
            return known.clone();
        }
        if self.applications.len() >= NAMES_MAX {
            self.applications.clear();
        }
        let new: Arc<str> = name.into();
        self.applications.insert(name.to_owned(), new.clone());
        new
    }
}

#[cfg(test)]
mod tests {
    use base::usage::{Usage, Use};

    use super::*;

    fn reading(task: u64, application: &str, active_us: u64, wal: u64) -> Reading {
        let mut used = Usage::default();
        used.0[Use::WalBytes as usize] = wal;
        Reading {
            task,
            pid: task as i32,
            user: 10,
            database: 5,
            application: application.to_owned(),
            active_us,
            transactions: active_us / 10,
            used,
        }
    }

    #[test]
    fn sessions_are_counted_by_application_from_look_to_look() {
        let mut clients = Clients::default();
        let mut first = Slice::new(1, 1);
        let both = vec![(reading(1, "shop", 100, 7), true), (reading(2, "report", 50, 0), true)];
        let of_pid = clients.compare(both, &mut first);
        assert_eq!(&*first.clients[of_pid[&2]].client.application, "report");
        assert_eq!((first.clients[0].began, first.clients[0].active_ns), (1, 100_000));
        let mut second = Slice::new(2, 1);
        // One has gone, one is new and gone again.
        let then = vec![
            (reading(2, "report", 60, 0), false),
            (reading(3, "shop", 5, 1), false),
            (reading(1, "shop", 130, 10), true),
        ];
        clients.compare(then, &mut second);
        let shop = second.clients.iter().find(|c| &*c.client.application == "shop").unwrap();
        assert_eq!((shop.began, shop.sessions, shop.active_ns), (1, 1, 35_000));
        assert_eq!((shop.get(Use::WalBytes), shop.transactions), (4, 3));
        let report = second.clients.iter().find(|c| &*c.client.application == "report").unwrap();
        assert_eq!((report.sessions, report.active_ns), (0, 10_000));
        assert_eq!(clients.known.len(), 1);
    }
}

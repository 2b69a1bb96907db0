//! Sums by client: the role, the database and the application of sessions (read by `sessions.rs`).

use std::sync::Arc;

use base::usage::{Usage, Use};

/// Clients that a slice keeps.
pub(super) const CLIENTS_MAX: usize = 48;

/// For whom sessions work; the default is nobody: the server's own threads, or not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Client {
    /// The role's oid.
    pub user: u32,
    /// The database's.
    pub database: u32,
    /// `application_name`.
    pub application: Arc<str>,
}

/// The work of a client's sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientSum {
    /// The client.
    pub client: Client,
    /// A level: its sessions.
    pub sessions: u64,
    /// Sessions that began.
    pub began: u64,
    /// Transactions that began.
    pub transactions: u64,
    /// Time in which they ran a statement, nanoseconds.
    pub active_ns: u64,
    /// Of that: waiting, nanoseconds.
    pub waited_ns: u64,
    /// The resources used.
    pub used: Usage,
}

impl ClientSum {
    /// Nothing of a client.
    pub fn new(client: Client) -> ClientSum {
        ClientSum {
            client,
            sessions: 0,
            began: 0,
            transactions: 0,
            active_ns: 0,
            waited_ns: 0,
            used: Usage::default(),
        }
    }

    /// Time without waits, nanoseconds.
    pub fn busy_ns(&self) -> u64 {
        self.active_ns.saturating_sub(self.waited_ns)
    }

    /// One amount that its sessions used.
    pub fn get(&self, what: Use) -> u64 {
        self.used.get(what)
    }

    /// Adds a later time.
    pub(super) fn add(&mut self, later: &ClientSum) {
        self.sessions = self.sessions.max(later.sessions);
        self.began += later.began;
        self.transactions += later.transactions;
        self.active_ns += later.active_ns;
        self.waited_ns += later.waited_ns;
        self.used.add(&later.used);
    }

    /// By what it is kept.
    pub(super) fn weight(&self) -> u64 {
        self.active_ns + self.get(Use::WalBytes) + self.sessions
    }
}

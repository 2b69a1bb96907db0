//! A worker's cache of how sessions begin. Clients of one application begin alike:
//! the same user, database and settings, so the next one takes over what came of them, and shares the
//! memory.
//!
//! A kept value depends on its key alone: the start-up packet, the server's settings and the version of
//! the catalog. What depends on more (a password, a free place) is looked at for each session.

use std::cell::RefCell;
use std::sync::Arc;

use catalog::OpenDatabase;

use super::auth::Login;
use super::settings::SessionSettings;
use crate::server::Server;

/// Kinds of sessions that a worker remembers.
const KINDS: usize = 8;

/// A kind of session.
pub(super) struct Known {
    /// The content of its start-up packet.
    pub login: Login,
    /// Its database, and the version of that one's catalog.
    pub open: Arc<OpenDatabase>,
    /// See `open`.
    pub version: u64,
    /// The settings that it begins with, search path and identity included.
    pub settings: SessionSettings,
    /// The database's name and oid.
    pub database: (Arc<str>, u32),
    /// Whether its role is a superuser.
    pub superuser: bool,
    /// Most sessions that its role may have; below 0: any number.
    pub connection_limit: i32,
    /// Most sessions that its database may have; below 0: any number.
    pub database_limit: i32,
    /// The messages that tell the client its settings.
    pub report: Vec<u8>,
}

#[derive(Default)]
struct Store {
    /// A session that has not said who it is.
    fresh: Option<SessionSettings>,
    kinds: Vec<Arc<Known>>,
    /// The one that makes room for the next.
    oldest: usize,
}

thread_local! {
    static STORE: RefCell<Store> = RefCell::default();
}

/// The settings of a session that has not said who it is.
pub(super) fn fresh(server: &Server) -> SessionSettings {
    if let Some(fresh) = kept_fresh(server.generation()) {
        return fresh;
    }
    let (values, generation) = server.values();
    let fresh = SessionSettings::new(values, generation);
    keep_fresh(fresh.clone());
    fresh
}

// These never wait, so that no other session finds the store borrowed.

#[inline(never)]
fn kept_fresh(generation: u64) -> Option<SessionSettings> {
    STORE.with_borrow(|store| store.fresh.as_ref().filter(|f| !f.stale(generation)).cloned())
}

#[inline(never)]
fn keep_fresh(fresh: SessionSettings) {
    STORE.with_borrow_mut(|store| store.fresh = Some(fresh));
}

/// The kind of session that begins so, if there was one lately. `now` are the server's settings.
#[inline(never)]
pub(super) fn find(login: &Login, now: &SessionSettings) -> Option<Arc<Known>> {
    let fits = |known: &&Arc<Known>| {
        known.version == known.open.version()
            && known.settings.is_of_same_reload(now)
            && known.login == *login
    };
    STORE.with_borrow(|store| store.kinds.iter().find(fits).cloned())
}

/// Remembers a kind of session.
#[inline(never)]
pub(super) fn keep(known: Known) {
    STORE.with_borrow_mut(|store| {
        if store.kinds.len() < KINDS {
            return store.kinds.push(Arc::new(known));
        }
        store.kinds[store.oldest] = Arc::new(known);
        store.oldest = (store.oldest + 1) % KINDS;
    });
}

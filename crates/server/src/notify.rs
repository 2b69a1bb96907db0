//! LISTEN and NOTIFY: which sessions listen to which channel, and how notifications reach them.
//!
//! A transaction's notifications and changes of what it listens to wait in its session
//! ([`Pending`]) and count when it commits. Whoever commits any of it holds [`Channels::order`]
//! from before its commit until everybody's mailbox has the notifications: so all listeners see
//! them in the order of the commits, and a LISTEN that committed first misses none.
//!
//! A mailbox belongs to a session, not to a thread. A notification leaves to its client between
//! transactions, and not before the commit that sent it is durable.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::{Lsn, Result, WaitEvent, err};
use sched::{Mutex, MutexGuard, SpinLock, TaskRef, Workers};

/// Longest name of a channel, in bytes, as for all names.
const CHANNEL_MAX: usize = 63;
/// Longest payload, in bytes.
const PAYLOAD_MAX: usize = 7999;
/// Bytes that may wait in all mailboxes together before NOTIFY is refused.
const WAITING_MAX: usize = 256 << 20;
/// The size of an entry of a mailbox besides its text.
const ENTRY_BYTES: usize = 64;

/// One notification on its way.
#[derive(Debug)]
pub struct Notification {
    /// Where it was sent.
    pub channel: Arc<str>,
    /// Its text; may be empty.
    pub payload: Arc<str>,
    /// The session that sent it.
    pub pid: i32,
    /// The log position that must be durable before a client may know of it.
    pub durable: Lsn,
}

/// A session that listens.
pub struct Mailbox {
    task: TaskRef,
    waiting: SpinLock<VecDeque<Arc<Notification>>>,
}

/// All channels of the server.
pub struct Channels {
    order: Mutex<()>,
    /// By database and name.
    listeners: SpinLock<HashMap<(u32, Arc<str>), Vec<Arc<Mailbox>>>>,
    waiting_bytes: AtomicUsize,
}

impl Default for Channels {
    fn default() -> Channels {
        Channels {
            order: Mutex::new(WaitEvent::LWLockNotifyQueue, ()),
            listeners: SpinLock::new(HashMap::new()),
            waiting_bytes: AtomicUsize::new(0),
        }
    }
}

impl Channels {
    /// Orders commits that listen or notify.
    fn order(&self) -> MutexGuard<'_, ()> {
        self.order.lock()
    }

    fn listen(&self, database: u32, channel: &Arc<str>, mailbox: &Arc<Mailbox>) {
        let mut listeners = self.listeners.lock();
        listeners.entry((database, channel.clone())).or_default().push(mailbox.clone());
    }

    fn unlisten(&self, database: u32, channel: &Arc<str>, mailbox: &Arc<Mailbox>) {
        let mut listeners = self.listeners.lock();
        let key = (database, channel.clone());
        if let Some(all) = listeners.get_mut(&key) {
            all.retain(|m| !Arc::ptr_eq(m, mailbox));
            if all.is_empty() {
                listeners.remove(&key);
            }
        }
    }

    fn send(&self, database: u32, notification: Notification, own: &TaskRef, workers: &Workers) {
        let key = (database, notification.channel.clone());
        let mailboxes = self.listeners.lock().get(&key).cloned().unwrap_or_default();
        let notification = Arc::new(notification);
        let bytes = size(&notification);
        for mailbox in mailboxes {
            self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
            mailbox.waiting.lock().push_back(notification.clone());
            if !Arc::ptr_eq(&mailbox.task, own) {
                workers.wake(&mailbox.task);
            }
        }
    }

    /// How full the mailboxes are, from 0 to 1: `pg_notification_queue_usage()`.
    pub fn usage(&self) -> f64 {
        self.waiting_bytes.load(Ordering::Relaxed) as f64 / WAITING_MAX as f64
    }
}

fn size(notification: &Notification) -> usize {
    ENTRY_BYTES + notification.channel.len() + notification.payload.len()
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    Listen(Arc<str>),
    Unlisten(Arc<str>),
    UnlistenAll,
    Notify(Arc<str>, Arc<str>),
}

/// The channels that one session listens to, and those that its transaction is about to change. Most sessions have
/// none of it.
pub struct Pending {
    database: u32,
    mailbox: Arc<Mailbox>,
    channels: BTreeSet<Arc<str>>,
    actions: Vec<Action>,
}

/// A commit under way that listens or notifies.
pub struct Committing<'a> {
    _order: MutexGuard<'a, ()>,
}

impl Pending {
    /// Nothing yet, for the session that runs as `task`.
    pub fn new(task: &TaskRef, database: u32) -> Pending {
        let waiting = SpinLock::new(VecDeque::new());
        let mailbox = Arc::new(Mailbox { task: task.clone(), waiting });
        Pending { database, mailbox, channels: BTreeSet::new(), actions: Vec::new() }
    }

    /// LISTEN.
    pub fn listen(&mut self, channel: &str) {
        self.actions.push(Action::Listen(channel.into()));
    }

    /// UNLISTEN; None: of everything.
    pub fn unlisten(&mut self, channel: Option<&str>) {
        self.actions.push(channel.map_or(Action::UnlistenAll, |c| Action::Unlisten(c.into())));
    }

    /// NOTIFY. The same text on the same channel is sent once in a transaction.
    ///
    /// # Errors
    /// `22023` for a name or payload that is too long or a name that is empty.
    pub fn notify(&mut self, channel: &str, payload: &str) -> Result<()> {
        if channel.is_empty() {
            return Err(err!(INVALID_PARAMETER_VALUE, "channel name cannot be empty"));
        }
        if channel.len() > CHANNEL_MAX {
            return Err(err!(INVALID_PARAMETER_VALUE, "channel name too long"));
        }
        if payload.len() > PAYLOAD_MAX {
            return Err(err!(INVALID_PARAMETER_VALUE, "payload string too long"));
        }
        let action = Action::Notify(channel.into(), payload.into());
        // Looking back over a few keeps a loop of many notifications from becoming quadratic.
        if !self.actions.iter().rev().take(16).any(|a| *a == action) {
            self.actions.push(action);
        }
        Ok(())
    }

    /// How much the transaction has collected, for [`Pending::rollback_to`].
    pub fn mark(&self) -> usize {
        self.actions.len()
    }

    /// Forgets what came after a mark (0: the transaction was rolled back).
    pub fn rollback_to(&mut self, mark: usize) {
        self.actions.truncate(mark);
    }

    /// The channels that the session listens to.
    pub fn channels(&self) -> impl Iterator<Item = &Arc<str>> {
        self.channels.iter()
    }

    /// Before the commit: from here on nobody else's notifications come between. None when there
    /// is nothing to do.
    ///
    /// # Errors
    /// `54000` when too much waits for listeners that don't take it.
    pub fn begin_commit<'a>(&self, all: &'a Channels) -> Result<Option<Committing<'a>>> {
        if self.actions.is_empty() {
            return Ok(None);
        }
        let notifies = self.actions.iter().any(|a| matches!(a, Action::Notify(..)));
        if notifies && all.waiting_bytes.load(Ordering::Relaxed) > WAITING_MAX {
            return Err(err!(PROGRAM_LIMIT_EXCEEDED, "too many notifications in the NOTIFY queue")
                .hint("A listening session does not take its notifications."));
        }
        Ok(Some(Committing { _order: all.order() }))
    }

    /// Whether the transaction has listened, unlistened or notified.
    pub fn has_actions(&self) -> bool {
        !self.actions.is_empty()
    }

    /// After the commit, whose record must be durable up to `durable` before anybody may know.
    pub fn committed(
        &mut self,
        all: &Channels,
        pid: i32,
        durable: Lsn,
        workers: &Workers,
        committing: Committing<'_>,
    ) {
        let mut sent = BTreeSet::new();
        for action in std::mem::take(&mut self.actions) {
            match action {
                Action::Listen(channel) => {
                    if self.channels.insert(channel.clone()) {
                        all.listen(self.database, &channel, &self.mailbox);
                    }
                }
                Action::Unlisten(channel) => {
                    if self.channels.remove(&channel) {
                        all.unlisten(self.database, &channel, &self.mailbox);
                    }
                }
                Action::UnlistenAll => self.unlisten_all(all),
                Action::Notify(channel, payload) => {
                    if sent.insert((channel.clone(), payload.clone())) {
                        let notification = Notification { channel, payload, pid, durable };
                        all.send(self.database, notification, &self.mailbox.task, workers);
                    }
                }
            }
        }
        drop(committing);
    }

    fn unlisten_all(&mut self, all: &Channels) {
        for channel in std::mem::take(&mut self.channels) {
            all.unlisten(self.database, &channel, &self.mailbox);
        }
    }

    /// Takes what has come.
    pub fn receive(&self, all: &Channels) -> VecDeque<Arc<Notification>> {
        let taken = std::mem::take(&mut *self.mailbox.waiting.lock());
        let bytes = taken.iter().map(|n| size(n)).sum();
        all.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        taken
    }

    /// The session ends.
    pub fn end(&mut self, all: &Channels) {
        self.actions.clear();
        self.unlisten_all(all);
        self.receive(all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        all: Channels,
        workers: Arc<Workers>,
    }

    impl Place {
        fn new() -> Place {
            Place { all: Channels::default(), workers: Workers::start(1).unwrap() }
        }

        fn session(&self) -> Pending {
            Pending::new(&sched::Task::new("test"), 5)
        }

        fn commit(&self, session: &mut Pending) {
            if let Some(committing) = session.begin_commit(&self.all).unwrap() {
                session.committed(&self.all, 7, Lsn(1), &self.workers, committing);
            }
        }

        fn received(&self, session: &Pending) -> Vec<String> {
            let text = |n: &Arc<Notification>| format!("{} {}", n.channel, n.payload);
            session.receive(&self.all).iter().map(text).collect()
        }
    }

    #[test]
    fn notifications_come_in_order_to_those_who_listened_before() {
        let place = Place::new();
        let (mut one, mut two) = (place.session(), place.session());
        one.listen("a");
        two.notify("a", "too early").unwrap();
        place.commit(&mut two);
        place.commit(&mut one);
        for payload in ["1", "2", "1"] {
            two.notify("a", payload).unwrap();
        }
        two.notify("b", "").unwrap();
        assert!(place.received(&one).is_empty(), "not before the commit");
        place.commit(&mut two);
        assert!(place.all.usage() > 0.0);
        assert_eq!(place.received(&one), ["a 1", "a 2"]);
        assert_eq!(place.all.usage(), 0.0);
        one.notify("a", "own").unwrap();
        place.commit(&mut one);
        assert_eq!(place.received(&one), ["a own"]);
        place.workers.shutdown();
    }

    #[test]
    fn what_is_rolled_back_is_forgotten() {
        let place = Place::new();
        let mut one = place.session();
        one.listen("a");
        place.commit(&mut one);
        one.notify("a", "stays").unwrap();
        let mark = one.mark();
        one.unlisten(None);
        one.notify("a", "goes").unwrap();
        one.rollback_to(mark);
        place.commit(&mut one);
        assert_eq!(place.received(&one), ["a stays"]);
        one.unlisten(Some("a"));
        one.notify("a", "nobody listens").unwrap();
        place.commit(&mut one);
        assert!(place.received(&one).is_empty());
        one.listen("a");
        place.commit(&mut one);
        one.end(&place.all);
        assert!(place.all.listeners.lock().is_empty());
        place.workers.shutdown();
    }

    #[test]
    fn names_and_payloads_have_bounds() {
        let mut session = Place::new().session();
        assert!(session.notify("a", &"x".repeat(PAYLOAD_MAX)).is_ok());
        for (channel, payload) in
            [("", ""), (&*"c".repeat(64), ""), ("a", &*"x".repeat(PAYLOAD_MAX + 1))]
        {
            let error = session.notify(channel, payload).unwrap_err();
            assert_eq!(error.code().as_str(), "22023");
        }
    }
}

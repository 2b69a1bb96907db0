//! Subscriptions: changes of another server's publications are applied here.
//!
//! ```text
//! launcher ─ one thread a subscription that is enabled ─► worker
//!   worker:  copy tables that are new ─► stream ─► one transaction here for each one there
//! ```
//! * The launcher looks at the catalogs of all databases when it is told that subscriptions have changed, and now and
//!   then. A worker ends when its subscription is no longer as it was; the launcher begins anew.
//! * A copy is made under the snapshot of a temporary slot: of the transactions that end at or before its position,
//!   everything is in the copy; those behind it come from the stream ([`worker`]).
//! * A transaction and the position at which it ends on the publisher are committed together, so nothing is lost or
//!   applied twice after a crash of either side.

pub mod publisher;
pub mod registry;
mod stream;
mod worker;

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::WaitEvent;
use catalog::Subscription;

use crate::log;
use crate::server::Server;

/// Time between two looks at the catalogs when nobody says that something has changed.
const PAUSE: Duration = Duration::from_secs(2);
/// The launcher's work.
pub fn work(server: &Arc<Server>) {
    loop {
        let until = Instant::now() + PAUSE;
        server.subscriber.await_work(WaitEvent::ActivityThreadMain, Some(until));
        if sched::check_interrupts().is_err() {
            server.subscriptions.stop_all();
            return;
        }
        for database in server.engine.catalog.databases() {
            let catalog = database.current();
            for subscription in catalog.subscriptions().filter(|s| s.enabled && s.slot.is_some()) {
                begin(server, &database, subscription);
            }
        }
    }
}

fn begin(server: &Arc<Server>, database: &Arc<catalog::OpenDatabase>, subscription: &Subscription) {
    let key = (database.oid(), subscription.oid);
    let workers = &server.subscriptions;
    if !workers.may_begin(key) {
        return;
    }
    let task = sched::Task::new("logical replication worker");
    let (shared, database, wanted) = (server.clone(), database.clone(), subscription.clone());
    let thread = sched::spawn_task(task.clone(), move || {
        let name = wanted.name.clone();
        log::info(format_args!(
            "logical replication apply worker for subscription \"{name}\" has started"
        ));
        if let Err(error) = worker::run(&shared, &database, &wanted) {
            shared.subscriptions.failed(key);
            log::info(format_args!("subscription \"{name}\": {error}"));
        }
    });
    workers.begun(key, task, thread);
}

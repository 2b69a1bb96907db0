//! Partitions by interval are made ahead of time and taken away when they are past: a background thread calls
//! `pg_maintain_partitions` for each table that asks for it, in the name of its owner.
//!
//! A step that fails (a lock that is not to be had in time, a name that is taken) is logged and tried again the next time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::WaitEvent;
use base::settings::setting;

use crate::log;
use crate::server::Server;
use crate::session::headless::Headless;

/// The thread's work.
pub fn work(server: &Arc<Server>) {
    loop {
        let (values, _) = server.values();
        let pause = values.settings.int(setting::PARTITION_MAINTENANCE_INTERVAL);
        let until = Instant::now() + Duration::from_secs(pause.max(1) as u64);
        server.partitions.await_work(WaitEvent::ActivityThreadMain, Some(until));
        if sched::check_interrupts().is_err() {
            return;
        }
        for database in server.engine.catalog.databases() {
            maintain(server, &database);
        }
    }
}

fn maintain(server: &Arc<Server>, database: &Arc<catalog::OpenDatabase>) {
    let catalog = database.current();
    for table in catalog.tables().filter(|t| exec::interval::is_maintained(t)) {
        let call = || {
            let Some(mut session) = Headless::attach(server, database, table.owner)? else {
                return Ok(());
            };
            let text = format!("SELECT pg_catalog.pg_maintain_partitions({}::regclass)", table.oid);
            session.run(&text, &[]).map(drop)
        };
        let done: base::Result<()> = call();
        if let Err(error) = done {
            log::info(format_args!("maintenance of partitions of \"{}\": {error}", table.name));
        }
        if sched::check_interrupts().is_err() {
            return;
        }
    }
}

//! The background vacuum. It sleeps until a statement's dead rows cross a table's threshold
//! ([`crate::counters`]), then vacuums and analyses what needs it, and rests for
//! `autovacuum_naptime` before it looks again. While nothing changes it does not run at all.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::settings::{live_bool, live_int, setting};
use base::{Result, WaitEvent, sqlstate};
use catalog::object::ids;
use catalog::{OpenDatabase, Snapshot, Table};
use exec::nested::table_size;

use crate::counters::Relid;
use crate::log;
use crate::server::{self, Server};
use crate::session::headless::Headless;

/// The thread's work.
pub fn work(server: &Arc<Server>) {
    loop {
        server.autovacuum.await_work(WaitEvent::ActivityAutoVacuumMain, None);
        if told_to_end() {
            return;
        }
        if live_bool(setting::AUTOVACUUM) {
            round(server);
        }
        let nap = Duration::from_secs(live_int(setting::AUTOVACUUM_NAPTIME) as u64);
        let until = Instant::now() + nap;
        while Instant::now() < until {
            server.autovacuum.await_work(WaitEvent::ActivityAutoVacuumMain, Some(until));
            if told_to_end() {
                return;
            }
        }
        // A call that came during the nap is not announced again: look once more.
        if live_bool(setting::AUTOVACUUM) {
            round(server);
        }
    }
}

/// Takes notice of interrupts. A cancel is for a vacuum that is over by now.
fn told_to_end() -> bool {
    sched::check_interrupts().is_err_and(|error| error.code() == sqlstate::ADMIN_SHUTDOWN)
}

/// One look at all tables that changed, in all databases.
fn round(server: &Arc<Server>) {
    let databases: HashMap<u32, (Arc<OpenDatabase>, Arc<Snapshot>)> = {
        let all = server.engine.catalog.databases().into_iter();
        all.map(|d| (d.oid(), (d.clone(), d.current()))).collect()
    };
    let counters = &server.counters;
    let exists = |(database, oid): Relid| {
        databases
            .get(&database)
            .is_some_and(|(_, c)| c.table(oid).is_some() || c.index(oid).is_some())
    };
    counters.retain(|database| databases.contains_key(&database), exists);
    for (id, dead) in counters.dead_rows() {
        let Some((database, catalog)) = databases.get(&id.0) else { continue };
        let Some(table) = catalog.table(id.1) else { continue };
        let (_, rows) = table_size(&server.engine, catalog, table);
        let needed = threshold(server, rows);
        counters.set_threshold(id, needed);
        if dead < needed {
            continue;
        }
        match vacuum(server, database, catalog, table) {
            Ok(true) => {
                let now = server::now();
                let rows = database.current().stats(id.1).map_or(0.0, |s| s.rows);
                counters.vacuumed(id, dead, rows, true, now);
                counters.analyzed(id, rows, true, now);
            }
            Ok(false) => {}
            // Somebody who works with the table comes first; it is tried again after the nap.
            Err(error) if error.code() == sqlstate::LOCK_NOT_AVAILABLE => {}
            Err(error) if error.code() == sqlstate::ADMIN_SHUTDOWN => {
                // The vacuum has taken notice of the request to end; this thread must, too.
                return sched::current().interrupt(sched::Interrupt::Terminate);
            }
            Err(error) if error.code() == sqlstate::QUERY_CANCELED => log::info(format_args!(
                "automatic vacuum of table \"{}\" canceled: somebody wants the database alone",
                table.name
            )),
            Err(error) => {
                let doing = format!("automatic vacuum of table \"{}\"", table.name);
                log::error(0, &error.context(doing), None);
            }
        }
        if sched::current().has_interrupt(sched::Interrupt::Terminate) {
            return;
        }
    }
}

/// Dead rows at which a table of this size is vacuumed.
fn threshold(server: &Server, rows: f64) -> u64 {
    let (values, _) = server.values();
    let base = values.settings.int(setting::AUTOVACUUM_VACUUM_THRESHOLD) as f64;
    let scale = values.settings.real(setting::AUTOVACUUM_VACUUM_SCALE_FACTOR);
    (base + scale * rows).max(1.0) as u64
}

/// Vacuums and analyses a table in the bootstrap superuser's name; false while somebody works with the
/// database as a whole.
fn vacuum(
    server: &Arc<Server>,
    database: &Arc<OpenDatabase>,
    catalog: &Snapshot,
    table: &Table,
) -> Result<bool> {
    let Some(mut session) = Headless::attach(server, database, ids::SUPERUSER)? else {
        return Ok(false);
    };
    session.make_automatic();
    let quote = catalog::definition::quote_ident;
    let schema = catalog.schema(table.schema).map_or("public", |s| &s.name);
    session.run(&format!("VACUUM ANALYZE {}.{}", quote(schema), quote(&table.name)), &[])?;
    Ok(true)
}

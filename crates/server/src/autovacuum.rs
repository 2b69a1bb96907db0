//! The background vacuum. It sleeps until a statement's dead rows cross a table's threshold
//! ([`crate::counters`]), then vacuums and analyses what needs it, and rests for
//! `autovacuum_naptime` before it looks again. While nothing changes it does not run at all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::settings::{live_bool, live_int, setting};
use base::{Error, Result, WaitEvent, sqlstate};
use catalog::{CatalogTx, Snapshot, Table};
use exec::{ExecContext, RowSink, SessionHooks};
use sql::PrepareContext;
use txn::{Isolation, LockTag};
use types::{Batch, Datum};

use crate::log;
use crate::server::{self, Server};
use crate::session::execute::table_size;
use crate::session::hooks::Info;
use crate::session::settings::SessionSettings;
use crate::user_types::CommittedTypes;

/// The thread's work.
pub fn work(server: &Arc<Server>) {
    CommittedTypes::install(&server.engine.catalog);
    loop {
        sched::park(WaitEvent::ActivityAutoVacuumMain, None);
        if sched::check_interrupts().is_err() {
            return;
        }
        if live_bool(setting::AUTOVACUUM) {
            round(server);
        }
        let nap = Duration::from_secs(live_int(setting::AUTOVACUUM_NAPTIME) as u64);
        let until = Instant::now() + nap;
        while Instant::now() < until {
            sched::park(WaitEvent::ActivityAutoVacuumMain, Some(until));
            if sched::check_interrupts().is_err() {
                return;
            }
        }
        // What came during the nap is not announced again: look once more.
        if live_bool(setting::AUTOVACUUM) {
            round(server);
        }
    }
}

/// One look at all tables that changed.
fn round(server: &Arc<Server>) {
    let catalog = server.engine.catalog.current();
    let counters = &server.counters;
    counters.retain(|oid| catalog.table(oid).is_some() || catalog.index(oid).is_some());
    for (oid, dead) in counters.dead_rows() {
        let Some(table) = catalog.table(oid) else { continue };
        let (_, rows) = table_size(&server.engine, &catalog, table);
        let needed = threshold(server, rows);
        counters.set_threshold(oid, needed);
        if dead < needed {
            continue;
        }
        match vacuum(server, &catalog, table) {
            Ok(true) => {
                let now = server::now();
                let rows = server.engine.catalog.current().stats(oid).map_or(0.0, |s| s.rows);
                counters.vacuumed(oid, dead, rows, true, now);
                counters.analyzed(oid, rows, true, now);
            }
            Ok(false) => {}
            Err(error) if error.code() == sqlstate::ADMIN_SHUTDOWN => {
                // The vacuum has taken notice of the request to end; this thread must, too.
                return sched::current().interrupt(sched::Interrupt::Terminate);
            }
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

/// Runs VACUUM ANALYZE as a session would; false when somebody works with the table.
fn vacuum(server: &Arc<Server>, catalog: &Arc<Snapshot>, table: &Table) -> Result<bool> {
    let quote = catalog::definition::quote_ident;
    let schema = catalog.schema(table.schema).map_or("public", |s| &s.name);
    let text = format!("VACUUM ANALYZE {}.{}", quote(schema), quote(&table.name));
    let engine = &server.engine;
    let (values, generation) = server.values();
    let mut settings = SessionSettings::new(values, generation);
    settings.format.now = server::now();
    settings.resolve_path(catalog, catalog::object::ids::POSTGRES_DB, None);
    let size = |t: &Table| table_size(engine, catalog, t);
    let cx = PrepareContext {
        catalog,
        settings: settings.get(),
        search_path: settings.path(),
        format: &settings.format,
        user: "",
        role: catalog::object::ids::SUPERUSER,
        database: "postgres",
        environment: settings.environment,
        arguments: None,
        table_size: &size,
    };
    let prepared = server.plans.prepare(&text, &[], &cx)?;
    let owner = engine.txn.new_owner(&sched::current(), sched::current().pid());
    let tx = engine.txn.begin(&owner, Isolation::ReadCommitted, false);
    let mut catalog_tx = CatalogTx::new(&engine.catalog);
    for (table, mode) in &prepared.locks {
        // Somebody who works with the table comes first; it is tried again after the nap.
        let tag = LockTag::Relation(*table);
        if !engine.txn.locks.lock(tx.locks(), tag, *mode, txn::lock::LockWait::Try)? {
            return Ok(false);
        }
    }
    let statements = Default::default();
    let done = Default::default();
    let info = Info {
        server,
        role: (catalog::object::ids::SUPERUSER, 0),
        statements: &statements,
        cursors: Vec::new(),
        done: &done,
    };
    let snapshot = tx.snapshot();
    let mut cx = ExecContext {
        engine,
        tx: &tx,
        catalog_tx: &mut catalog_tx,
        snapshot,
        settings: settings.get(),
        format: &settings.format,
        server: &info,
        hooks: &mut Nobody::default(),
        search_path: settings.path(),
        user: "",
        role: catalog::object::ids::SUPERUSER,
        session_user: ("", catalog::object::ids::SUPERUSER),
        database: ("postgres", catalog::object::ids::POSTGRES_DB),
        params: &[],
        tally: &mut Default::default(),
    };
    let result = exec::context::run_utility(&prepared, &mut cx, &mut Nobody::default());
    tx.end_statement();
    if let Err(error) = result {
        tx.abort();
        catalog_tx.aborted();
        return Err(error);
    }
    tx.set_publishes();
    let lsn = tx.commit(&[], |csn| catalog_tx.publish(csn))?;
    engine.storage.wal.flush(lsn)?;
    catalog_tx.committed();
    Ok(true)
}

/// There is no client.
#[derive(Default)]
struct Nobody {
    sequences: exec::SessionSequences,
    deferred: exec::Deferred,
}

impl SessionHooks for Nobody {
    fn call(&mut self, name: &str, _args: &[Datum]) -> Result<Datum> {
        Err(Error::unsupported(format_args!("function {name} in the background")))
    }

    fn notice(&mut self, _severity: &'static str, _error: Error) {}

    fn sequences(&mut self) -> &mut exec::SessionSequences {
        &mut self.sequences
    }

    fn deferred(&mut self) -> &mut exec::Deferred {
        &mut self.deferred
    }

    fn copy_read(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn password(&mut self, _role: &str, _password: &str) -> Result<Option<String>> {
        Err(Error::unsupported("a password in the background"))
    }
}

impl RowSink for Nobody {
    fn batch(&mut self, _batch: &Batch) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, _row: &[Datum]) -> Result<()> {
        Ok(())
    }

    fn copy_data(&mut self, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
}

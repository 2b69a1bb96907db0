//! The background vacuum. It sleeps until a statement's dead rows cross a table's threshold
//! ([`crate::counters`]), then vacuums and analyses what needs it, and rests for
//! `autovacuum_naptime` before it looks again. While nothing changes it does not run at all.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::settings::{live_bool, live_int, setting};
use base::{Error, Oid, Result, WaitEvent, sqlstate};
use catalog::{CatalogTx, OpenDatabase, Snapshot, Table};
use exec::context::{Acting, Guard};
use exec::{ExecContext, RowSink, SessionHooks};
use sql::PrepareContext;
use txn::{Isolation, LockTag};
use types::{Batch, Datum};

use crate::counters::Relid;
use crate::log;
use crate::server::{self, Server};
use crate::session::hooks::Info;
use crate::session::settings::SessionSettings;
use crate::user_types::SessionTypes;
use exec::nested::table_size;

/// The thread's work.
pub fn work(server: &Arc<Server>) {
    let types = Arc::new(SessionTypes::default());
    sched::with_current(|task| types::user::install(task, types.clone()));
    loop {
        server.autovacuum.await_work(WaitEvent::ActivityAutoVacuumMain, None);
        if told_to_end() {
            return;
        }
        if live_bool(setting::AUTOVACUUM) {
            round(server, &types);
        }
        let nap = Duration::from_secs(live_int(setting::AUTOVACUUM_NAPTIME) as u64);
        let until = Instant::now() + nap;
        while Instant::now() < until {
            server.autovacuum.await_work(WaitEvent::ActivityAutoVacuumMain, Some(until));
            if told_to_end() {
                return;
            }
        }
        // What came during the nap is not announced again: look once more.
        if live_bool(setting::AUTOVACUUM) {
            round(server, &types);
        }
    }
}

/// Takes notice of interrupts. A cancel is for a vacuum that is over by now.
fn told_to_end() -> bool {
    sched::check_interrupts().is_err_and(|error| error.code() == sqlstate::ADMIN_SHUTDOWN)
}

/// One look at all tables that changed, in all databases.
fn round(server: &Arc<Server>, types: &SessionTypes) {
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
        types.see(catalog, &[]);
        match vacuum(server, database, catalog, table) {
            Ok(true) => {
                let now = server::now();
                let rows = database.current().stats(id.1).map_or(0.0, |s| s.rows);
                counters.vacuumed(id, dead, rows, true, now);
                counters.analyzed(id, rows, true, now);
            }
            Ok(false) => {}
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

/// Runs VACUUM ANALYZE as a session would; false when somebody works with the table, or with the
/// database as a whole.
fn vacuum(
    server: &Arc<Server>,
    database: &Arc<OpenDatabase>,
    catalog: &Arc<Snapshot>,
    table: &Table,
) -> Result<bool> {
    let Some(_attachment) = database.attach_background() else { return Ok(false) };
    let id = database.oid();
    let name = catalog.database(id).map_or("", |d| d.name.as_str());
    let quote = catalog::definition::quote_ident;
    let schema = catalog.schema(table.schema).map_or("public", |s| &s.name);
    let text = format!("VACUUM ANALYZE {}.{}", quote(schema), quote(&table.name));
    let engine = &server.engine;
    let (values, generation) = server.values();
    let mut settings = SessionSettings::new(values, generation);
    settings.format.now = server::now();
    settings.resolve_path(catalog, id, None);
    let size = |t: &Table| table_size(engine, catalog, t);
    let cx = PrepareContext {
        catalog,
        settings: settings.get(),
        search_path: settings.path(),
        format: &settings.format,
        user: "",
        role: catalog::object::ids::SUPERUSER,
        trusted: false,
        database: name,
        environment: settings.environment,
        arguments: None,
        variables: None,
        values: &[],
        table_size: &size,
    };
    let prepared = server.engine.plans.prepare(&text, &[], &cx)?;
    let owner = engine.txn.new_owner(&sched::current(), sched::current().pid());
    owner.set_database(Oid(id));
    let tx = engine.txn.begin(&owner, Isolation::ReadCommitted, false);
    let mut catalog_tx = CatalogTx::new(&engine.catalog, database);
    for (table, mode) in &prepared.locks {
        // Somebody who works with the table comes first; it is tried again after the nap.
        let tag = LockTag::Relation(Oid(id), *table);
        if !engine.txn.locks.lock(tx.locks(), tag, *mode, txn::lock::LockWait::Try)? {
            return Ok(false);
        }
    }
    let statements = Default::default();
    let done = Default::default();
    let info =
        Info { server, database: id, statements: &statements, cursors: Vec::new(), done: &done };
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
        guard: Guard::None,
        session_user: ("", catalog::object::ids::SUPERUSER),
        database: (name, id),
        params: &[],
        tally: &mut Default::default(),
        environment: settings.environment,
        nonatomic: false,
        routines: &mut Default::default(),
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
    fn call(&mut self, name: &str, _args: &[Datum], _acting: Acting) -> Result<Datum> {
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

    fn end_sessions(&mut self, _database: u32) -> Result<()> {
        Err(Error::unsupported("ending sessions in the background"))
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

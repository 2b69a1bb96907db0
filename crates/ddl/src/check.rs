//! Walks every table with its indexes and says where they disagree (`threadgres check`): the access
//! methods' checker, with rows and keys as the catalog says that they are.
//!
//! An index's entries are computed as a statement would, by a transaction that nobody else sees: there is
//! no session, so an expression that asks for one has no value, and its entries count as wrong.

use std::cell::RefCell;
use std::sync::Arc;

use access::check::KeyOf;
use access::{AnyIndex, Heap};
use base::settings::Settings;
use base::{Error, Oid, RelId, Result, sqlstate};
use catalog::object::ids;
use catalog::system::ServerInfo;
use catalog::{CatalogTx, Index, OpenDatabase, Snapshot, Table};
use sql::expr::Expr;
use txn::Isolation;
use types::func::SessionFunction;
use types::{Datum, FormatContext};

use crate::computed_by;
use exec::context::{Acting, Engine, ExecContext, Guard, SessionHooks};
use exec::overflow::Overflow;
use exec::rows::Row;
use exec::run::Run;
use exec::spi::with_run;
use exec::table::{KeyCodec, TableHandle};
use exec::{Deferred, SessionSequences, eval, index_search, security};

/// Findings of all tables of all databases, each with the table's name; empty when all is well. Nobody may change
/// anything meanwhile. `see` is told of the catalog of each database, before its tables are read.
///
/// # Errors
/// I/O errors.
pub fn check(engine: &Engine, see: &dyn Fn(&Arc<Snapshot>)) -> Result<Vec<String>> {
    let mut findings = engine.storage.check_files()?;
    findings.extend(access::check::check(&engine.txn, engine.catalog.heap(), &[])?);
    for database in engine.catalog.databases() {
        let snapshot = database.current();
        see(&snapshot);
        check_database(engine, &database, &snapshot, &mut findings)?;
    }
    Ok(findings)
}

fn check_database(
    engine: &Engine,
    database: &Arc<OpenDatabase>,
    catalog: &Snapshot,
    findings: &mut Vec<String>,
) -> Result<()> {
    let task = sched::current();
    let owner = engine.txn.new_owner(&task, task.pid());
    let id = database.oid();
    owner.set_database(Oid(id));
    let tx = engine.txn.begin(&owner, Isolation::ReadCommitted, true);
    let mut cx = ExecContext {
        engine,
        tx: &tx,
        catalog_tx: &mut CatalogTx::new(&engine.catalog, database),
        snapshot: tx.snapshot(),
        settings: &Settings::default(),
        settings_version: 0,
        format: &FormatContext::default(),
        server: &Nobody::default(),
        hooks: &mut Nobody::default(),
        search_path: &[ids::PG_CATALOG, ids::PUBLIC],
        user: "",
        role: ids::SUPERUSER,
        guard: Guard::None,
        session_user: ("", ids::SUPERUSER),
        database: (catalog.database(id).map_or("", |d| d.name.as_str()), id),
        params: &[],
        tally: &mut Default::default(),
        environment: 0,
        nonatomic: false,
        routines: &mut Default::default(),
    };
    let mut done = Ok(());
    for table in catalog.tables().filter(|t| t.rel != 0) {
        done = done.and_then(|()| check_or_say(&mut cx, catalog, table, findings));
    }
    tx.abort();
    done
}

/// A table that can't be read is a finding, too, and the others are read.
fn check_or_say(
    cx: &mut ExecContext<'_>,
    catalog: &Snapshot,
    table: &Arc<Table>,
    findings: &mut Vec<String>,
) -> Result<()> {
    let checked = check_table(cx, catalog, table, findings)
        .and_then(|()| check_large_values(cx, table, findings));
    match checked {
        Err(e) if is_damage(&e) => {
            findings.push(format!("table {}: {}", table.name, e.message()));
            Ok(())
        }
        done => done,
    }
}

fn is_damage(error: &Error) -> bool {
    [sqlstate::DATA_CORRUPTED, sqlstate::UNDEFINED_FILE, sqlstate::IO_ERROR].contains(&error.code())
}

/// Reads every row that lives with its large values.
fn check_large_values(
    cx: &mut ExecContext<'_>,
    table: &Arc<Table>,
    findings: &mut Vec<String>,
) -> Result<()> {
    let large = Overflow::new(&cx.engine.storage, RelId(table.rel));
    if !large.exists()? {
        return Ok(());
    }
    findings.extend(
        access::check::check(&cx.engine.txn, &large.heap(), &[])?
            .into_iter()
            .map(|finding| format!("large values of table {}: {finding}", table.name)),
    );
    let handle = TableHandle::open(cx.engine, table, cx.format)?;
    let heap = Heap::open(&cx.engine.storage, RelId(table.rel));
    let mut rows = Vec::new();
    let mut scan = heap.scan(&cx.snapshot, None);
    loop {
        let more = scan.next_page(cx.tx, |tid, _, row| rows.push((tid, row.to_vec())))?;
        for (tid, row) in rows.drain(..) {
            sched::check_interrupts()?;
            if let Err(e) = handle.decode_all(&row) {
                findings.push(format!("table {}: row {tid}: {}", table.name, e.message()));
            }
        }
        if !more {
            return Ok(());
        }
    }
}

fn check_table(
    cx: &mut ExecContext<'_>,
    catalog: &Snapshot,
    table: &Arc<Table>,
    findings: &mut Vec<String>,
) -> Result<()> {
    let handle = TableHandle::open(cx.engine, table, cx.format)?;
    // One that is not valid lacks rows.
    let indexes: Vec<_> = catalog.indexes_of(table).into_iter().filter(|i| !i.invalid).collect();
    let codecs: Vec<KeyCodec> = indexes.iter().map(|i| KeyCodec::new(table, i)).collect();
    let computed = |index: &Arc<Index>| computed_by(cx, table, index);
    let computed: Vec<Vec<Expr>> = indexes.iter().map(computed).collect::<Result<_>>()?;
    let found = security::restricted(cx, table.owner, |cx| {
        with_run(cx, |run| {
            let engine = run.cx.engine;
            let run = RefCell::new(run);
            let keys: Vec<_> = codecs
                .iter()
                .zip(&computed)
                .map(|(codec, exprs)| {
                    let (handle, run) = (&handle, &run);
                    move |bytes: &[u8]| {
                        key(handle, codec, exprs, bytes, &mut run.borrow_mut()).ok()?
                    }
                })
                .collect();
            let trees: Vec<(AnyIndex, KeyOf<'_>)> = indexes
                .iter()
                .zip(&codecs)
                .zip(&keys)
                .map(|((i, codec), key)| {
                    (index_search::open_for(codec, i, &engine.storage), key as KeyOf<'_>)
                })
                .collect();
            let heap = Heap::open(&engine.storage, RelId(table.rel));
            access::check::check(&engine.txn, &heap, &trees)
        })
    })?;
    findings.extend(found.into_iter().map(|finding| format!("table {}: {finding}", table.name)));
    Ok(())
}

/// A row's key; None when it is not in the index.
fn key(
    handle: &TableHandle,
    codec: &KeyCodec,
    exprs: &[Expr],
    bytes: &[u8],
    run: &mut Run<'_, '_>,
) -> Result<Option<Vec<u8>>> {
    let mut row = handle.decode_all(bytes)?;
    let columns = row.len();
    for expr in exprs {
        let value = eval::eval(expr, Row::Values(&row[..columns]), run)?;
        row.push(value);
    }
    let mut key = Vec::new();
    if codec.holds(&row) {
        codec.encode(&row, &mut key)?;
        return Ok(Some(key));
    }
    Ok(None)
}

/// There is no session, and no server.
#[derive(Default)]
struct Nobody {
    sequences: SessionSequences,
    deferred: Deferred,
}

fn nobody(what: &str) -> Error {
    Error::unsupported(format_args!("{what} without a session"))
}

impl ServerInfo for Nobody {
    fn rows(&self, _view: &str, _role: u32) -> Vec<Vec<Datum>> {
        Vec::new()
    }

    fn pages(&self, _rel: u32) -> u32 {
        0
    }
}

impl SessionHooks for Nobody {
    fn call(
        &mut self,
        function: SessionFunction,
        _args: &[Datum],
        _acting: Acting,
    ) -> Result<Datum> {
        let name = function.name();
        Err(nobody(name))
    }

    fn notice(&mut self, _severity: &'static str, _error: Error) {}

    fn sequences(&mut self) -> &mut SessionSequences {
        &mut self.sequences
    }

    fn deferred(&mut self) -> &mut Deferred {
        &mut self.deferred
    }

    fn copy_read(&mut self) -> Result<Option<Vec<u8>>> {
        Err(nobody("COPY"))
    }

    fn end_sessions(&mut self, _database: u32) -> Result<()> {
        Err(nobody("ending sessions"))
    }

    fn password(&mut self, _role: &str, _password: &str) -> Result<Option<String>> {
        Err(nobody("a password"))
    }
}

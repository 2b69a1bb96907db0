//! A server without a network: an engine in a directory of its own, and sessions that run plans and
//! SQL text.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base::settings::Settings;
use base::{Error, Fork, Oid, RelId, Result};
use catalog::system::ServerInfo;
use catalog::{Catalog, CatalogTx, OpenDatabase, Table};
use exec::context::Acting;
use exec::{Engine, ExecContext, Outcome, RowSink, SessionHooks};
use sql::prepare::{PrepareContext, prepare, split_statements};
use sql::{Prepared, Statement};
use storage::Storage;
use txn::{Isolation, LockOwner, LockTag, LockWait, Transaction, TxnManager};
use types::func::SessionFunction;
use types::{Batch, Datum, FormatContext};

/// The server.
pub struct Db {
    pub dir: PathBuf,
    pub engine: Engine,
}

fn fresh_dir() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("threadgres-exec-{}-{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

impl Db {
    pub fn new() -> Db {
        let dir = fresh_dir();
        Storage::create(&dir).expect("create");
        let txn = TxnManager::new(&dir);
        let storage = Storage::open(&dir, txn.participant(None)).expect("open");
        txn.attach(&storage);
        let catalog = Catalog::open(&storage, &txn).expect("catalog");
        Db {
            dir,
            engine: Engine {
                storage,
                txn,
                catalog,
                languages: Default::default(),
                plans: Default::default(),
                routines: Default::default(),
                stored_plans: Default::default(),
                calls: &exec::CALLS,
                utilities: &ddl::Statements,
            },
        }
    }

    fn database(&self) -> Arc<OpenDatabase> {
        self.engine.catalog.database(5).expect("the database postgres")
    }

    /// The catalog as it is published.
    pub fn catalog(&self) -> Arc<catalog::Snapshot> {
        self.database().current()
    }

    pub fn session(&self) -> Session<'_> {
        Session {
            db: self,
            owner: self.engine.txn.new_owner(&sched::current(), 1),
            catalog: CatalogTx::new(&self.engine.catalog, &self.database()),
            tx: None,
            settings: Settings::default(),
            format: FormatContext::default(),
            hooks: Hooks::default(),
            params: vec![],
        }
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        self.engine.storage.abandon();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

struct NoServer;

impl ServerInfo for NoServer {
    fn rows(&self, _view: &str, _role: u32) -> Vec<Vec<Datum>> {
        vec![]
    }
    fn pages(&self, _rel: u32) -> u32 {
        0
    }
}

/// The things that a session's hooks saw and give.
#[derive(Default)]
pub struct Hooks {
    pub notices: Vec<String>,
    pub copy_data: VecDeque<Vec<u8>>,
    pub sequences: exec::SessionSequences,
    pub deferred: exec::Deferred,
}

impl SessionHooks for Hooks {
    fn call(
        &mut self,
        function: SessionFunction,
        _args: &[Datum],
        _acting: Acting,
    ) -> Result<Datum> {
        let name = function.name();
        Err(Error::unsupported(name))
    }
    fn notice(&mut self, severity: &'static str, error: Error) {
        self.notices.push(format!("{severity}: {}", error.message()));
    }
    fn copy_read(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(self.copy_data.pop_front())
    }
    fn sequences(&mut self) -> &mut exec::SessionSequences {
        &mut self.sequences
    }
    fn deferred(&mut self) -> &mut exec::Deferred {
        &mut self.deferred
    }
    fn end_sessions(&mut self, _database: u32) -> Result<()> {
        Ok(())
    }
    fn password(&mut self, _role: &str, password: &str) -> Result<Option<String>> {
        Ok(Some(password.to_owned()))
    }
}

/// Rows as text, columns separated by `|`, NULL as `~`.
#[derive(Default)]
pub struct Rows {
    pub types: Vec<Oid>,
    pub lines: Vec<String>,
    pub copied: Vec<u8>,
}

impl Rows {
    fn line(&mut self, values: &[Datum]) {
        let format = FormatContext::default();
        let texts: Vec<String> = values
            .iter()
            .zip(&self.types)
            .map(|(v, ty)| {
                if v.is_null() {
                    return "~".to_owned();
                }
                types::io::to_text(*ty, v, &format).expect("text").to_string()
            })
            .collect();
        self.lines.push(texts.join("|"));
    }
}

impl RowSink for Rows {
    fn batch(&mut self, batch: &Batch) -> Result<()> {
        for row in 0..batch.rows {
            let values: Vec<Datum> =
                batch.columns.iter().zip(&self.types).map(|(c, ty)| c.get(row, *ty)).collect();
            self.line(&values);
        }
        Ok(())
    }
    fn row(&mut self, row: &[Datum]) -> Result<()> {
        self.line(row);
        Ok(())
    }
    fn copy_data(&mut self, bytes: &[u8]) -> Result<()> {
        self.copied.extend_from_slice(bytes);
        Ok(())
    }
}

/// A session: statements commit by themselves unless [`Session::begin`] was called.
pub struct Session<'d> {
    pub db: &'d Db,
    owner: Arc<LockOwner>,
    catalog: CatalogTx,
    tx: Option<Transaction>,
    settings: Settings,
    format: FormatContext,
    pub hooks: Hooks,
    pub params: Vec<Datum>,
}

const PATH: &[u32] = &[catalog::object::ids::PG_CATALOG, catalog::object::ids::PUBLIC];

impl Session<'_> {
    pub fn begin(&mut self) {
        self.begin_with(Isolation::ReadCommitted);
    }

    pub fn begin_with(&mut self, isolation: Isolation) {
        self.tx = Some(self.db.engine.txn.begin(&self.owner, isolation, false));
    }

    pub fn commit(&mut self) {
        let tx = self.tx.take().expect("a transaction");
        let catalog = &mut self.catalog;
        let lsn = tx.commit(&[], |csn| catalog.publish(csn)).expect("commit");
        self.db.engine.storage.wal.flush(lsn).expect("flush");
        self.catalog.committed();
    }

    pub fn rollback(&mut self) {
        self.tx.take().expect("a transaction").abort();
        self.catalog.aborted();
    }

    /// Writes a table's statistics, as ANALYZE does, or takes them away, as DROP TABLE does; without the
    /// table's lock.
    pub fn change_statistics(&mut self, table: &str, remove: bool) -> Result<()> {
        let view = self.catalog.view();
        let table = view.expect_table(PATH, None, table)?;
        let mut stats = catalog::TableStats::clone(view.stats(table.oid).expect("was analysed"));
        stats.rows += 1.0;
        let object = catalog::Object::Stats(Box::new(stats));
        let tx = self.tx.as_ref().expect("a transaction");
        if remove { self.catalog.remove(tx, object.oid()) } else { self.catalog.put(tx, object) }
    }

    /// SET.
    pub fn set(&mut self, name: &str, value: &str) {
        let id = base::settings::SettingId::find(name).expect("a setting");
        let value = base::settings::parse(id, value).expect("a value");
        self.settings.set(id, value);
    }

    /// Runs a plan.
    pub fn execute(&mut self, prepared: &Arc<Prepared>) -> Result<(Outcome, Rows)> {
        let own = self.tx.is_none();
        if own {
            self.begin();
        }
        let result = self.execute_inside(prepared);
        match (&result, own) {
            (Ok(_), true) => self.commit(),
            (Err(_), true) => self.rollback(),
            _ => {}
        }
        result
    }

    fn execute_inside(&mut self, prepared: &Arc<Prepared>) -> Result<(Outcome, Rows)> {
        let tx = self.tx.as_ref().expect("a transaction");
        for (id, mode) in &prepared.locks {
            let tag = LockTag::Relation(base::Oid(5), *id);
            tx.manager().locks.lock(tx.locks(), tag, *mode, LockWait::Block)?;
        }
        let mut cx = ExecContext {
            engine: &self.db.engine,
            tx,
            catalog_tx: &mut self.catalog,
            snapshot: tx.snapshot(),
            settings: &self.settings,
            settings_version: 0,
            format: &self.format,
            server: &NoServer,
            hooks: &mut self.hooks,
            search_path: PATH,
            user: "postgres",
            role: 10,
            guard: Default::default(),
            session_user: ("postgres", 10),
            database: ("postgres", 5),
            params: &self.params,
            tally: &mut Default::default(),
            environment: 0,
            nonatomic: false,
            routines: &mut Default::default(),
        };
        let types = prepared.columns.iter().map(|c| c.ty).collect();
        let mut rows = Rows { types, ..Rows::default() };
        let outcome = match &prepared.statement {
            Statement::Query(_) => exec::run(prepared, &mut cx, &mut rows),
            Statement::Utility(_) => exec::run_utility(prepared, &mut cx, &mut rows),
            Statement::Empty => Ok(Outcome::default()),
        };
        tx.end_statement();
        tx.next_command();
        Ok((outcome?, rows))
    }

    /// Plans one statement.
    pub fn prepare(&mut self, text: &str) -> Result<Arc<Prepared>> {
        let view = self.catalog.view();
        let storage = &self.db.engine.storage;
        let table_size = |table: &Table| {
            let pages = storage.block_count(RelId(table.rel), Fork::Main).unwrap_or(0);
            (pages, f64::from(pages) * 60.0)
        };
        let context = PrepareContext {
            catalog: &view,
            settings: &self.settings,
            search_path: PATH,
            format: &self.format,
            user: "postgres",
            role: 10,
            trusted: false,
            database: "postgres",
            environment: 0,
            arguments: None,
            variables: None,
            values: &[],
            table_size: &table_size,
        };
        Ok(Arc::new(prepare(text, &[], &context, None)?.0))
    }

    /// Runs statements; the rows of the last one.
    pub fn try_sql(&mut self, text: &str) -> Result<Vec<String>> {
        let mut last = vec![];
        for range in split_statements(text)? {
            let prepared = self.prepare(&text[range])?;
            last = self.execute(&prepared)?.1.lines;
        }
        Ok(last)
    }

    /// As [`Session::try_sql`]; the statements succeed.
    pub fn sql(&mut self, text: &str) -> Vec<String> {
        match self.try_sql(text) {
            Ok(rows) => rows,
            Err(error) => panic!("{text}: {error:?}"),
        }
    }

    /// Runs statements; the last one fails: SQLSTATE and message.
    pub fn error(&mut self, text: &str) -> String {
        match self.try_sql(text) {
            Ok(rows) => panic!("{text} succeeded: {rows:?}"),
            Err(error) => format!("{} {}", error.code().as_str(), error.message()),
        }
    }
}

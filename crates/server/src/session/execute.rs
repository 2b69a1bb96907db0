//! Running one planned statement: locks, then snapshot, then the executor.

use std::collections::HashMap;
use std::sync::Arc;

use base::faults::{self, Fault};
use base::{Oid, Result, err};
use catalog::Table;
use exec::context::Outcome;
use exec::execution::Execution;
use exec::nested::table_size;
use exec::{ExecContext, RowSink};
use sched::clock;
use sql::{PrepareContext, Prepared, Statement, Utility};
use txn::lock::LockWait;
use txn::{Isolation, LockMode, LockTag, Transaction};
use types::{Datum, io};
use wire::response;

use super::SessionState;
use super::autonomous::Outer;
use super::copy::CopyReader;
use super::hooks::{Hooks, Info};
use super::portal::{NEVER_FRESH, PlanOf, Planned, PreparedStatement, ResultFormats};
use super::rows::{self, CollectedRows, Rows};
use super::settings::LogStatement;
use super::transaction::Block;
use crate::counters::Relid;
use crate::session::statement_run::Run;
use crate::statements::{Sample, StatementKey};
use crate::views;

/// Statements that a read-only transaction of a primary may run and a standby may not.
const NOT_ON_STANDBYS: [&str; 9] = [
    "VACUUM",
    "ANALYZE",
    "REINDEX",
    "CLUSTER",
    "PREPARE TRANSACTION",
    "COMMIT PREPARED",
    "ROLLBACK PREPARED",
    "CREATE DATABASE",
    "DROP DATABASE",
];

impl SessionState {
    /// Calls `f` with what planning depends on. Returns its result with the version and the epoch of a
    /// plan made so.
    fn with_prepare_context<R>(
        &mut self,
        text: &str,
        f: impl FnOnce(&sql::PlanCache, &PrepareContext<'_>) -> Result<R>,
    ) -> Result<(R, u64, u64)> {
        clock::keep_recent(0); // planning takes its time
        let before = self.open.version();
        let catalog = self.take_view(text);
        faults::reach(Fault::Plan)?;
        let temporary = self.catalog_tx.temporary_schema();
        self.settings.resolve_path(&catalog, self.database.1, temporary);
        let old = self.older_than_an_index().map(|csn| Arc::new(catalog.for_snapshot(csn)));
        let engine = &self.server.engine;
        self.entry.types.see(old.as_ref().unwrap_or(&catalog), self.settings.path());
        if types::user::any_quotes_all() {
            let quotes = self.settings.get().bool(base::settings::setting::QUOTE_ALL_IDENTIFIERS);
            self.entry.types.quote_all(quotes);
        }
        let size = |table: &Table| table_size(engine, &catalog, table);
        let cx = PrepareContext {
            catalog: old.as_ref().unwrap_or(&catalog),
            settings: self.settings.get(),
            search_path: self.settings.path(),
            format: &self.settings.format,
            user: &self.settings.identity.current.1,
            role: self.role(),
            trusted: false,
            database: &self.database.0,
            environment: self.settings.environment,
            arguments: None,
            variables: None,
            values: &[],
            table_size: &size,
        };
        let result = {
            let _memory = sched::memory::for_use(sched::memory::Use::Planning);
            let plans = &self.server.engine.plans;
            sched::with_stack(sql::stack_for(text), || f(plans, &cx)).and_then(|done| done)
        };
        let private = old.is_some() || self.catalog_tx.changed();
        // Another version may be published by now, with which the plan has nothing to do.
        let version = if catalog.version == 0 { before } else { catalog.version };
        if catalog.version != 0 {
            self.catalog = Some(catalog);
        }
        let epoch = if private { NEVER_FRESH } else { self.plan_epoch() };
        result.map(|r| (r, version, epoch))
    }

    /// The plan of a statement with parameters.
    pub(super) fn plan(&mut self, text: &str, declared: &[Oid]) -> Result<PlanOf> {
        let (prepared, version, epoch) =
            self.with_prepare_context(text, |plans, cx| plans.prepare(text, declared, cx))?;
        Ok(PlanOf::new(prepared, version, epoch))
    }

    /// The plan of a prepared statement for these values, where another one than that for any values may do
    /// better.
    ///
    /// # Errors
    /// Those of planning.
    pub(super) fn plan_for(
        &mut self,
        statement: &Arc<PreparedStatement>,
        params: &[Datum],
    ) -> Result<PlanOf> {
        let generic = &statement.plan.prepared;
        if params.is_empty()
            || !sql::custom::is_wanted(generic, self.settings.get())
            || self.transaction.block == Block::Failed
            || !self.is_fresh(&statement.plan)
        {
            return Ok(PlanOf::Statement(statement.clone()));
        }
        let (text, types) = (&*statement.text, &generic.params);
        let (prepared, version, epoch) = self.with_prepare_context(text, |_, cx| {
            let cx = PrepareContext { values: params, ..*cx };
            sql::custom::custom(generic, text, types, &cx)
        })?;
        if Arc::ptr_eq(&prepared, generic) {
            return Ok(PlanOf::Statement(statement.clone()));
        }
        Ok(PlanOf::new(prepared, version, epoch))
    }

    /// The plan of a statement of the simple protocol, and its literals.
    pub(super) fn plan_simple(&mut self, text: &str) -> Result<(PlanOf, Vec<Datum>)> {
        if is_transaction_control(text) {
            return Ok((self.plan(text, &[])?, Vec::new()));
        }
        let ((prepared, params), version, epoch) =
            self.with_prepare_context(text, |plans, cx| {
                let (generic, values) = plans.prepare_simple(text, cx)?;
                sql::custom::for_literals(generic, values, text, cx)
            })?;
        let statement = &prepared.statement;
        if prepared.params.len() > params.len() && !matches!(statement, Statement::Utility(_)) {
            let number = params.len() + 1;
            let at = text.find(&format!("${number}")).unwrap_or(0);
            let position = text[..at].chars().count() as u32 + 1;
            return Err(err!(UNDEFINED_PARAMETER, "there is no parameter ${number}").at(position));
        }
        Ok((PlanOf::new(prepared, version, epoch), params))
    }

    /// Changes whenever one of the session's settings or temporary objects does: both numbers only
    /// grow.
    pub(super) fn plan_epoch(&self) -> u64 {
        self.settings.epoch + self.catalog_tx.temporary_generation()
    }

    /// The transaction's snapshot, when it is older than some index, which may lack what it sees.
    fn older_than_an_index(&self) -> Option<u64> {
        let csn = self.transaction.current.as_ref()?.lasting_snapshot()?.0;
        (csn < self.open.newest_index()).then_some(csn)
    }

    /// Whether a plan can be used as it is.
    pub(super) fn is_fresh(&self, plan: &Planned) -> bool {
        plan.version == self.open.version()
            && plan.epoch == self.plan_epoch()
            && !self.catalog_tx.changed()
            && self.older_than_an_index().is_none()
    }

    /// Makes the plan of a prepared statement fresh.
    ///
    /// # Errors
    /// `0A000` when the result's columns are no longer the same.
    pub(super) fn refresh(
        &mut self,
        plan: &mut PlanOf,
        text: &str,
        declared: &[Oid],
    ) -> Result<()> {
        if self.is_fresh(plan) {
            return Ok(());
        }
        // The types once inferred stay: the client was told them.
        let declared = if declared.len() == plan.prepared.params.len() {
            declared
        } else {
            &plan.prepared.params.clone()
        };
        let new = self.plan(text, declared)?;
        let same = |a: &Prepared, b: &Prepared| {
            a.columns.len() == b.columns.len()
                && a.columns.iter().zip(&b.columns).all(|(a, b)| a.ty == b.ty && a.name == b.name)
        };
        if !Arc::ptr_eq(&new.prepared, &plan.prepared) && !same(&new.prepared, &plan.prepared) {
            // Drivers prepare anew when they see this routine's name.
            let error = err!(FEATURE_NOT_SUPPORTED, "cached plan must not change result type");
            return Err(error.routine("RevalidateCachedQuery"));
        }
        *plan = new;
        Ok(())
    }

    /// Makes a prepared statement's plan anew, for its next runs, too.
    ///
    /// # Errors
    /// As [`SessionState::refresh`].
    pub(super) fn renew(&mut self, statement: &mut Arc<PreparedStatement>) -> Result<()> {
        let mut plan = PlanOf::Statement(statement.clone());
        self.refresh(&mut plan, &statement.text, &statement.declared)?;
        self.statements.replan(statement, Planned::clone(&plan));
        Ok(())
    }

    /// Takes the plan's locks, and makes the plan again when the catalog changed meanwhile.
    pub(super) fn lock(&mut self, run: &mut Run<'_>) -> Result<()> {
        loop {
            if let Some(tx) = &self.transaction.current {
                for (table, mode) in &run.plan.prepared.locks {
                    let tag = LockTag::Relation(Oid(self.database.1), *table);
                    self.server.engine.txn.locks.lock(tx.locks(), tag, *mode, LockWait::Block)?;
                }
            }
            if run.plan.version == self.open.version() {
                return Ok(());
            }
            match run.declared {
                Some(declared) => self.refresh(run.plan, run.text, declared)?,
                None => (*run.plan, run.params) = self.plan_simple(run.text)?,
            }
        }
    }

    /// Refuses what a read-only transaction may not do.
    pub(super) fn check_read_only(&self, prepared: &Prepared) -> Result<()> {
        if NOT_ON_STANDBYS.contains(&prepared.tag) {
            self.server.standby.refuse(prepared.tag)?;
        }
        match &self.transaction.current {
            Some(tx) if prepared.writes && tx.read_only() && !writes_temporary(prepared) => {
                Err(err!(
                    READ_ONLY_SQL_TRANSACTION,
                    "cannot execute {} in a read-only transaction",
                    prepared.tag
                ))
            }
            _ => Ok(()),
        }
    }

    /// Runs a statement to its end; its rows go to the client.
    pub(super) fn run(&mut self, run: &mut Run<'_>) -> Result<Outcome> {
        self.check_utility(&run.plan.prepared)?;
        let began = self.watch();
        if let Statement::Utility(utility) = &run.plan.prepared.statement
            && utility.runs_in_steps().is_some()
        {
            return self.run_in_steps(run, began);
        }
        self.begin_run(run)?;
        self.run_locked(run, began)
    }

    /// Does the steps before a plan is run: its transaction, and [`SessionState::lock`].
    pub(super) fn begin_run(&mut self, run: &mut Run<'_>) -> Result<()> {
        self.account.mark_waits(&self.entry.task);
        self.ensure_transaction();
        self.check_read_only(&run.plan.prepared)?;
        self.lock(run)
    }

    /// The rest of [`SessionState::run`] for a plan that has its locks.
    pub(super) fn run_locked(&mut self, run: &Run<'_>, began: Option<u64>) -> Result<Outcome> {
        let prepared = &run.plan.prepared;
        prepared.check_conditional_constants(&run.params, &self.settings.format)?;
        self.begin_copy(prepared)?;
        let undescribed = self.out.get_mut().buffer.len();
        if run.describe && prepared.returns_rows() && !is_copy(&prepared.statement) {
            let encoding = self.encoding();
            let out = self.out.get_mut();
            rows::describe(&mut out.buffer, &prepared.columns, run.formats, encoding)?;
            out.complete = out.buffer.len();
        }
        let described = self.out.get_mut().buffer.len();
        let snapshot = self.snapshot()?;
        let outcome = self.with_context(run, snapshot, |cx, sink| match &prepared.statement {
            Statement::Query(_) => exec::run(prepared, cx, sink),
            _ => exec::run_utility(prepared, cx, sink),
        });
        let outcome = match outcome {
            Ok(outcome) if outcome.rows == 0 && !prepared.constant_calls.is_empty() => {
                let checked = prepared.check_constants(&run.params, &self.settings.format);
                checked.map(|()| outcome)
            }
            other => other,
        };
        if let Err(error) = &outcome
            && prepared.has_failing_constant(error, &run.params, &self.settings.format)
        {
            self.out.get_mut().unsay(undescribed..described);
        }
        let outcome = outcome?;
        if let Statement::Utility(Utility::CopyTo { options, .. }) = &prepared.statement
            && options.file.is_none()
        {
            wire::copy::done(&mut self.out.get_mut().buffer);
        }
        self.end_command(prepared, outcome.rows);
        self.note_effect(prepared);
        if let Some(began) = began {
            self.count_statement(began, prepared, outcome.rows, true);
        }
        Ok(outcome)
    }

    /// Runs a statement that commits while it goes on ([`ddl::Job`]).
    pub(super) fn run_in_steps(
        &mut self,
        run: &mut Run<'_>,
        began: Option<u64>,
    ) -> Result<Outcome> {
        self.ensure_transaction();
        self.lock(run)?;
        let plan = run.plan.clone();
        let prepared = &plan.prepared;
        let Statement::Utility(utility) = &prepared.statement else {
            return Err(base::Error::internal("a query does not commit while it goes on"));
        };
        let mut job = None;
        let done = self.steps(run, utility, &mut job);
        if let Some(mut job) = job {
            job.release(&self.owner);
        }
        done?;
        if let Some(began) = began {
            self.count_statement(began, prepared, 0, true);
        }
        Ok(Outcome::default())
    }

    /// All its transactions; the last one ends as that of any statement.
    fn steps(
        &mut self,
        run: &mut Run<'_>,
        utility: &Utility,
        job: &mut Option<ddl::Job>,
    ) -> Result<()> {
        loop {
            self.ensure_transaction();
            self.check_read_only(&run.plan.prepared)?;
            let snapshot = self.snapshot()?;
            self.with_context(run, snapshot, |cx, _| match job {
                Some(job) => job.step(cx),
                None => {
                    *job = Some(ddl::Job::begin(utility, cx)?);
                    Ok(())
                }
            })?;
            let prepared = run.plan.prepared.clone();
            self.end_command(&prepared, 0);
            let Some(pause) = job.as_ref().and_then(ddl::Job::pause) else { return Ok(()) };
            let block = self.transaction.block;
            self.commit()?;
            self.transaction.block = block;
            if let Some((table, mode)) = pause {
                let locks = &self.server.engine.txn.locks;
                let tag = LockTag::Relation(Oid(self.database.1), table);
                locks.wait_for_holders(&self.owner, tag, mode)?;
            }
        }
    }

    /// When a statement begins, if anybody wants to know how long it takes.
    pub(super) fn watch(&self) -> Option<u64> {
        self.settings.measures_statements.then(clock::recent_ns)
    }

    /// Counts a statement of the session's own. What EXECUTE runs has been counted; a COMMIT lasts
    /// until it is durable.
    pub(super) fn count_control(
        &mut self,
        began: Option<u64>,
        plan: &PlanOf,
        outcome: Option<&Outcome>,
    ) {
        let (Some(began), Some(outcome)) = (began, outcome) else { return };
        match &plan.prepared.statement {
            Statement::Utility(Utility::Execute { .. }) => {}
            Statement::Utility(Utility::Commit { .. }) => {
                self.committing = Some((began, plan.clone()));
            }
            _ => self.count_statement(began, &plan.prepared, outcome.rows, true),
        }
    }

    /// Counts a statement that is done; `first`: and was not counted before. Not inlined: several places do it,
    /// and each copy would have to be fetched.
    #[inline(never)]
    pub(super) fn count_statement(
        &mut self,
        began: u64,
        prepared: &Prepared,
        rows: u64,
        first: bool,
    ) {
        let wanted = match prepared.statement {
            Statement::Query(_) => self.settings.track_statements,
            _ => self.settings.track_utility,
        };
        if wanted && self.settings.compute_query_id && prepared.identity.id != 0 {
            let ended = clock::now_ns();
            clock::keep_recent(ended);
            if self.account.work_seen != Some(self.settings.epoch) {
                self.see_work();
            }
            let key = StatementKey {
                user: self.role(),
                work: self.account.work.number,
                id: prepared.identity.id,
            };
            let text = &prepared.identity.text;
            let (counters, task) = (&self.server.counters, &self.entry.task);
            let waited_ns = self.account.waited_ns(task);
            self.account.mark_waits(task);
            let sample = Sample { first, ns: (ended - began) as i64, rows, waited_ns };
            self.account.count_statement(counters, task, key, sample, text);
            if self.settings.track_planning
                && let Some(planned) = prepared.trials.take_planned()
            {
                counters.planned(key, planned, (text, &self.account.work));
            }
            if prepared.trials.is_first_run() {
                self.note_plan(prepared);
            }
            if self.server.spans.are_wanted() {
                let began = crate::server::now() - (sample.ns / 1000).max(0);
                let text = Some((prepared.tag, text));
                self.trace(began, text, (rows, waited_ns / 1000), None);
            }
        }
    }

    /// Sees to it that statements are counted for the application that the settings name.
    #[cold]
    #[inline(never)]
    fn see_work(&mut self) {
        let application = self.settings.get().str(base::settings::setting::APPLICATION_NAME);
        let known = &self.account.work;
        if (known.database, &*known.application) != (self.database.1, application) {
            self.account.work = self.server.counters.work(self.database.1, application);
        }
        self.account.work_seen = Some(self.settings.epoch);
    }

    /// Notes the plan by which a statement has run, for those who ask how it was before.
    #[cold]
    #[inline(never)]
    fn note_plan(&self, prepared: &Prepared) {
        let Statement::Query(_) = &prepared.statement else { return };
        let of = (self.database.1, prepared.identity.id);
        let plans = &self.server.history.plans;
        // A plan and its expressions may be as deep as the statement was long. Without memory it is not noted.
        let _ = sched::with_stack(prepared.stack, || {
            let shape = sql::custom::shape(prepared);
            plans.note(of, &prepared.identity.text, shape, crate::server::now(), || {
                exec::explain::plan_text(prepared, &self.settings.format)
            });
        });
    }

    /// Notes the effects of a statement that the counters must know beyond what the executor counts.
    pub(super) fn note_effect(&mut self, prepared: &Prepared) {
        if !self.automatic && super::logging::class(prepared) == LogStatement::Ddl {
            let text = sql::secrets::without_secrets(&prepared.identity.text);
            self.server.history.note("definition", self.entry.pid, &text);
        }
        match &prepared.statement {
            Statement::Utility(Utility::Vacuum { vacuum, tables, analyze, .. }) => {
                self.note_vacuum(tables, *vacuum, *analyze);
            }
            Statement::Utility(Utility::Truncate { tables, .. }) => {
                let counters = &self.server.counters;
                let database = self.database.1;
                let tables = self.tables_named(tables);
                tables.iter().for_each(|table| counters.truncated((database, *table)));
            }
            _ => {}
        }
    }

    pub(super) fn tables_named(&self, names: &[sql::utility::Name]) -> Vec<u32> {
        let catalog = self.open.current();
        let path = self.settings.path();
        let named = |name: &sql::utility::Name| {
            catalog.expect_table(path, name.schema.as_deref(), &name.name).ok().map(|t| t.oid)
        };
        names.iter().filter_map(named).collect()
    }

    /// VACUUM and ANALYZE by command: what was counted before is dealt with.
    fn note_vacuum(&mut self, names: &[sql::utility::Name], vacuum: bool, analyze: bool) {
        if self.automatic {
            return;
        }
        let catalog = self.view();
        let counters = &self.server.counters;
        let now = crate::server::now();
        let tables: Vec<u32> = match names {
            [] => catalog.tables().filter(|t| t.rel != 0).map(|t| t.oid).collect(),
            names => self.tables_named(names),
        };
        let dead: HashMap<Relid, u64> = counters.dead_rows().into_iter().collect();
        for table in tables {
            let rows = catalog.stats(table).map_or(0.0, |s| s.rows);
            let table = (self.database.1, table);
            if vacuum {
                let before = dead.get(&table).copied().unwrap_or_default();
                counters.vacuumed(table, before, rows, false, now);
            }
            if analyze {
                counters.analyzed(table, rows, false, now);
            }
        }
    }

    /// As [`SessionState::run`], but the rows are kept.
    pub(super) fn run_kept(&mut self, prepared: &Arc<Prepared>) -> Result<Vec<Vec<Datum>>> {
        self.ensure_transaction();
        let formats = ResultFormats::default();
        let params = Vec::new();
        let run = Run {
            text: "",
            declared: None,
            plan: &mut PlanOf::new(prepared.clone(), 0, NEVER_FRESH),
            params,
            formats: &formats,
            rest: &[],
            describe: false,
            discard: false,
        };
        let snapshot = self.snapshot()?;
        let types = prepared.columns.iter().map(|c| c.ty).collect();
        let mut kept = CollectedRows { rows: Vec::new(), types };
        self.with_context(&run, snapshot, |cx, _| exec::run(prepared, cx, &mut kept))?;
        Ok(kept.rows)
    }

    /// Begins a query that can stop after some rows and has its locks. Returns it with what it sees,
    /// pinned.
    pub(super) fn start_execution(
        &mut self,
        run: &Run<'_>,
    ) -> Result<(Execution, txn::Snapshot, u64)> {
        let snapshot = self.snapshot()?;
        let prepared = &run.plan.prepared;
        let execution = self.with_context(run, snapshot, |cx, _| Execution::start(prepared, cx))?;
        let pin = self.transaction.current.as_ref().map_or(0, |tx| tx.pin_snapshot(&snapshot));
        Ok((execution, snapshot, pin))
    }

    /// Sends the next rows of a query; true when it is at its end.
    pub(super) fn fetch(
        &mut self,
        run: &Run<'_>,
        execution: &mut Execution,
        snapshot: txn::Snapshot,
        limit: u64,
    ) -> Result<(u64, bool)> {
        let began = self.watch();
        let first = !execution.begun();
        let (rows, end) =
            self.with_context(run, snapshot, |cx, sink| execution.fetch(cx, limit, sink))?;
        self.end_command(&run.plan.prepared, 0);
        if let Some(began) = began {
            self.count_statement(began, &run.plan.prepared, rows, first);
        }
        Ok((rows, end))
    }

    /// Does the checks that waited for the transaction's end.
    pub(super) fn fire_deferred(&mut self) -> Result<()> {
        let mut plan = self.plan("", &[])?;
        let prepared = plan.prepared.clone();
        let run = Run {
            text: "",
            declared: Some(&[]),
            plan: &mut plan,
            params: Vec::new(),
            formats: &ResultFormats::default(),
            rest: &[],
            describe: false,
            discard: false,
        };
        let snapshot = self.snapshot()?;
        self.with_context(&run, snapshot, |cx, _| exec::fire_all(cx))?;
        self.end_command(&prepared, 0);
        Ok(())
    }

    /// A snapshot for a statement.
    ///
    /// # Errors
    /// Interrupts, when DEFERRABLE waits for it.
    pub(super) fn snapshot(&mut self) -> Result<txn::Snapshot> {
        let first = !std::mem::replace(&mut self.transaction.has_snapshot, true);
        match &self.transaction.current {
            Some(tx) => {
                let waits = first && tx.deferrable() && tx.read_only();
                if waits && tx.isolation() == Isolation::Serializable {
                    tx.await_safe_snapshot()?;
                }
                let snapshot = tx.snapshot();
                self.entry.set_xmin(snapshot.xmin.0);
                Ok(snapshot)
            }
            None => unreachable!("a statement that needs a snapshot has begun a transaction"),
        }
    }

    /// A statement is over: its changes are visible to the next one, its snapshot isn't needed. Its
    /// answer waits for what it has seen to become durable, unless it is but the number of rows that it
    /// changed: what those rest on, the transaction's commit waits for (docs/internals/hot-rows.md).
    pub(super) fn end_command(&mut self, prepared: &Prepared, rows: u64) {
        if let Some(tx) = &self.transaction.current {
            tx.end_statement();
            if prepared.writes {
                tx.next_command();
            }
            if self.transaction.block == Block::Explicit && super::takes_locks(prepared) {
                self.entry.note_writer();
            }
            let changes = matches!(prepared.tag, "INSERT" | "UPDATE" | "DELETE" | "MERGE");
            if !(changes && !prepared.returns_rows() && rows > 0) {
                self.out.get_mut().need_durable(tx.durability_needed());
            }
        }
    }

    /// Statements that can't be part of a block.
    pub(super) fn check_utility(&self, prepared: &Prepared) -> Result<()> {
        match &prepared.statement {
            Statement::Utility(Utility::Vacuum { vacuum: true, .. }) => {
                self.prevent_in_block("VACUUM")
            }
            Statement::Utility(Utility::Database(statement)) => match statement.stands_alone() {
                Some(what) => self.prevent_in_block(what),
                None => Ok(()),
            },
            Statement::Utility(Utility::Cluster { table: None, .. }) => {
                self.prevent_in_block("CLUSTER")
            }
            Statement::Utility(Utility::LockTable { .. }) => self.require_block("LOCK TABLE"),
            Statement::Utility(utility) => match utility.runs_in_steps() {
                Some(what) => self.prevent_in_block(what),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Tells the client which way COPY's data goes.
    fn begin_copy(&mut self, prepared: &Prepared) -> Result<()> {
        use sql::utility::CopyFormat::Binary;
        let Statement::Utility(utility) = &prepared.statement else { return Ok(()) };
        let out = self.out.get_mut();
        match utility {
            Utility::CopyFrom { columns, options, .. } if options.file.is_none() => {
                wire::copy::in_response(&mut out.buffer, options.format == Binary, columns.len());
                out.complete = out.buffer.len();
                out.send()
            }
            Utility::CopyTo { query, options, .. } if options.file.is_none() => {
                let binary = options.format == Binary;
                wire::copy::out_response(&mut out.buffer, binary, query.columns.len());
                out.pace()
            }
            _ => Ok(()),
        }
    }

    /// Calls `f` with everything that executing needs, and the way out for rows.
    pub(super) fn with_context<R>(
        &mut self,
        run: &Run<'_>,
        snapshot: txn::Snapshot,
        f: impl FnOnce(&mut ExecContext<'_>, &mut dyn RowSink) -> Result<R>,
    ) -> Result<R> {
        let columns = &run.plan.prepared.columns;
        let names = columns.iter().any(|c| io::is_reg(c.ty)).then(|| self.view());
        let mut changes = Vec::new();
        let nonatomic = matches!(run.plan.prepared.tag, "CALL" | "DO")
            && self.nesting == 0
            && self.prevent_in_block("CALL").is_ok();
        let inside = self.inside();
        let server = &self.server;
        let tx: &Transaction = match &self.transaction.current {
            Some(tx) => tx,
            None => return Err(base::Error::internal("no transaction to run in")),
        };
        let (done, tally) = self.account.begin_tally();
        let info = Info {
            server,
            database: self.database.1,
            statements: &self.statements,
            cursors: views::cursors(&self.portals),
            done,
        };
        let mut hooks = Hooks {
            server,
            database: self.database.1,
            entry: &self.entry,
            settings: &self.settings,
            tx,
            changes: &mut changes,
            serial: 0,
            current: None,
            notify: &mut self.notify,
            done,
            sequences: &mut self.sequences,
            deferred: &mut self.deferred,
            large_objects: &mut self.large_objects,
            foreign: &mut self.foreign,
            own_origin: &mut self.own_origin,
            inside,
            portals: &mut self.portals,
            out: &self.out,
            copy: CopyReader {
                socket: &self.socket,
                rest: run.rest,
                input: &mut self.copy_input,
                done: false,
            },
            outer: Outer {
                server,
                entry: &self.entry,
                socket: &self.socket,
                database: &self.database,
                open: &self.open,
                owner: &self.owner,
                nesting: self.nesting,
            },
        };
        let path = self.settings.path();
        let mut sink = Rows {
            out: &self.out,
            columns,
            formats: run.formats,
            context: &self.settings.format,
            tx,
            names: names.map(|n| (n, path)),
            discard: run.discard,
        };
        let mut cx = ExecContext {
            engine: &server.engine,
            tx,
            catalog_tx: &mut self.catalog_tx,
            snapshot,
            settings: self.settings.get(),
            settings_version: 0,
            format: &self.settings.format,
            server: &info,
            hooks: &mut hooks,
            search_path: path,
            user: &self.settings.identity.current.1,
            role: self.settings.identity.current.0,
            guard: exec::context::Guard::None,
            session_user: (&self.settings.identity.session.1, self.settings.identity.session.0),
            database: (&self.database.0, self.database.1),
            params: &run.params,
            tally,
            environment: self.settings.environment,
            nonatomic,
            routines: &mut self.routines,
        };
        let result = sched::with_stack(run.plan.prepared.stack, || f(&mut cx, &mut sink))
            .and_then(|done| done);
        for change in changes {
            self.assign(&change.name, change.value.as_deref(), change.local)?;
        }
        result
    }

    /// CommandComplete.
    pub(super) fn complete(&mut self, tag: &str, outcome: &Outcome) -> Result<()> {
        self.send_notices();
        let out = self.out.get_mut();
        let tag = outcome.tag.unwrap_or(tag);
        match tag {
            "SELECT" | "INSERT" | "UPDATE" | "DELETE" | "COPY" | "FETCH" | "MOVE" | "MERGE" => {
                response::complete_rows(&mut out.buffer, tag, outcome.rows);
            }
            tag => response::complete(&mut out.buffer, tag),
        }
        out.pace()
    }

    /// Whether the block is one that only its end can follow.
    pub(super) fn check_not_failed(&self) -> Result<()> {
        if self.transaction.block == Block::Failed {
            return Err(err!(
                IN_FAILED_SQL_TRANSACTION,
                "current transaction is aborted, commands ignored until end of transaction block"
            ));
        }
        Ok(())
    }
}

/// Whether all that a query changes is temporary, which a read-only transaction may do.
fn writes_temporary(prepared: &Prepared) -> bool {
    let written = |(_, mode): &&(Oid, LockMode)| *mode > LockMode::AccessShare;
    matches!(prepared.statement, Statement::Query(_))
        && prepared.locks.iter().any(|lock| written(&lock))
        && prepared.locks.iter().filter(written).all(|(table, _)| table.is_temporary())
}

fn is_copy(statement: &Statement) -> bool {
    matches!(statement, Statement::Utility(Utility::CopyTo { .. } | Utility::CopyFrom { .. }))
}

/// Whether the statement begins with BEGIN, COMMIT or the like: these have no literals, and are
/// cached by their text.
fn is_transaction_control(text: &str) -> bool {
    let starts = |word: &str| {
        text.as_bytes().get(..word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word.as_bytes()))
    };
    ["BEGIN", "END", "COMMIT", "ROLLBACK", "ABORT", "START"].into_iter().any(starts)
}

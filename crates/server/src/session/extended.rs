//! The extended protocol.
//!
//! All messages up to a Sync are one transaction unless they say otherwise. After an error
//! everything up to the Sync is ignored. The error itself is sent at once.

use std::borrow::Cow;

use base::{Result, err, sqlstate};
use exec::context::Outcome;
use sql::Statement;
use sql::utility::FetchHow;
use types::{Datum, io};
use wire::extended::{Bind, Parse, StatementOrPortal};
use wire::response;

use super::cursor::portal_failed;
use super::portal::{Planned, Portal, PreparedStatement, Progress, ResultFormats};
use super::settings::LogStatement;
use super::simple::ends_block;
use super::transaction::Block;
use super::{SessionState, rows};
use crate::server;
use crate::session::statement_run::Run;

impl SessionState {
    /// Runs one message behind the panic boundary. Fatal errors only are returned.
    pub(super) fn extended(
        &mut self,
        f: impl FnOnce(&mut SessionState) -> Result<()>,
    ) -> Result<()> {
        if self.transaction.block == Block::None && self.transaction.current.is_none() {
            self.prologue();
        }
        self.arm_timeout();
        match self.guarded(f) {
            Ok(()) => {
                let out = self.out.get_mut();
                out.complete = out.buffer.len();
                Ok(())
            }
            Err(error) => {
                self.skip_to_sync = true;
                // The client may wait for it without ever saying Sync.
                self.flush = true;
                let text = self.entry.activity().query;
                self.failed(error, Some(&text.text()))
            }
        }
    }

    /// Sync: the implicit transaction ends.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.skip_to_sync = false;
        if let Err(error) = self.guarded(SessionState::end_implicit) {
            self.failed(error, None)?;
        }
        self.ready()
    }

    /// The extended protocol's transaction begins with its first message.
    fn begin_extended(&mut self) {
        if self.transaction.block == Block::None {
            self.transaction.block = Block::Pipeline;
        }
        if self.transaction.block != Block::Failed {
            self.ensure_transaction();
        }
    }

    fn check_allowed(&self, text: &str) -> Result<()> {
        self.check_not_failed().or_else(|e| if ends_block(text) { Ok(()) } else { Err(e) })
    }

    /// Parse.
    pub(super) fn parse(&mut self, parse: Parse<'_>) -> Result<()> {
        let (name, text) = (&*self.text(parse.name)?, &*self.text(parse.text)?);
        self.begin_statement(text);
        self.check_allowed(text)?;
        self.begin_extended();
        if name.is_empty() {
            self.statements.remove("");
        } else {
            self.statements.check_new(name)?;
        }
        let (plan, text) =
            self.conforming(text, |s, text| Ok((s.plan(text, &parse.types)?, text.into())))?;
        self.identify_statement(&plan.prepared);
        self.statements.add(PreparedStatement {
            name: name.into(),
            plan: Planned::clone(&plan),
            text,
            declared: parse.types.into(),
            from_sql: false,
            since: server::now(),
        })?;
        response::parse_complete(&mut self.out.get_mut().buffer);
        Ok(())
    }

    /// Bind.
    pub(super) fn bind(&mut self, bind: &Bind<'_>) -> Result<()> {
        let (portal, name) = (&*self.text(bind.portal)?, &*self.text(bind.statement)?);
        let mut statement = self.statements.get(name)?.clone();
        self.check_allowed(&statement.text)?;
        self.begin_extended();
        // Binding does not count as running.
        sched::clock::keep_recent(0);
        if !portal.is_empty() {
            self.portals.check_new(portal)?;
        }
        if !self.is_fresh(&statement.plan) && self.transaction.block != Block::Failed {
            self.renew(&mut statement)?;
        }
        let prepared = &statement.plan.prepared;
        if bind.count != prepared.params.len() {
            return Err(err!(
                PROTOCOL_VIOLATION,
                "bind message supplies {} parameters, but prepared statement \"{name}\" requires {}",
                bind.count,
                prepared.params.len()
            ));
        }
        let columns = prepared.columns.len();
        if bind.results.len() > 1 && bind.results.len() != columns {
            return Err(err!(
                PROTOCOL_VIOLATION,
                "bind message has {} result formats but query has {columns} columns",
                bind.results.len()
            ));
        }
        let named = prepared.params.iter().any(|ty| io::is_reg(*ty)).then(|| self.view());
        let params = self.parameters(bind, &prepared.params, named.as_deref())?;
        // None is as good as all text.
        let binary = bind.results.iter().any(|f| f == 1);
        let formats =
            if binary { bind.results.iter().map(|f| f == 1).collect() } else { Vec::new() };
        let formats = ResultFormats(formats);
        let plan = self.plan_for(&statement, &params)?;
        let promised = self.promised(&plan.prepared);
        let portal_state = Box::new(Portal {
            plan,
            statement,
            params,
            formats,
            progress: Progress::New,
            position: 0,
            at_end: false,
            cursor: false,
            tables: Vec::new(),
            scroll: false,
            hold: None,
            since: self.settings.format.now,
            number: 0,
            promised,
        });
        self.portals.add(portal, portal_state)?;
        response::bind_complete(&mut self.out.get_mut().buffer);
        Ok(())
    }

    /// The values; those of `regclass` and kin are looked up in `catalog`.
    pub(super) fn parameters(
        &self,
        bind: &Bind<'_>,
        types: &[base::Oid],
        catalog: Option<&catalog::Snapshot>,
    ) -> Result<Vec<Datum>> {
        let format = &self.settings.format;
        let mut params = Vec::with_capacity(types.len());
        for (index, (value, ty)) in bind.values().zip(types).enumerate() {
            params.push(match value? {
                None => Datum::Null,
                Some(bytes) if bind.formats.binary(index) => self
                    .binary_parameter(*ty, bytes)
                    .and_then(|bytes| io::receive(*ty, -1, &bytes, format))
                    .map_err(|e| e.context(format!("unnamed portal parameter ${}", index + 1)))?,
                Some(bytes) => {
                    if let Some(value) = io::input_digits(*ty, bytes) {
                        params.push(value);
                        continue;
                    }
                    let text = &*self.text(bytes)?;
                    let path = self.settings.path();
                    match catalog.filter(|_| io::is_reg(*ty)) {
                        Some(c) => Datum::Oid(super::names::lookup(*ty, text, c, path)?),
                        None => io::input(*ty, -1, text, format)?,
                    }
                }
            });
        }
        Ok(params)
    }

    /// Describe.
    pub(super) fn describe(&mut self, target: StatementOrPortal, name: &[u8]) -> Result<()> {
        let name = &*self.text(name)?;
        match target {
            StatementOrPortal::Statement => self.describe_statement(name),
            StatementOrPortal::Portal => {
                let portal = self.portals.take(name).ok_or_else(|| no_portal(name))?;
                let described = self.describe_portal(&portal);
                self.portals.put(name, portal);
                described
            }
        }
    }

    fn describe_portal(&mut self, portal: &Portal) -> Result<()> {
        let columns = self.columns_of(&portal.plan.prepared)?;
        let encoding = self.encoding();
        let buffer = &mut self.out.get_mut().buffer;
        match columns {
            None => response::no_data(buffer),
            Some(columns) => rows::describe(buffer, &columns, &portal.formats, encoding)?,
        }
        Ok(())
    }

    fn describe_statement(&mut self, name: &str) -> Result<()> {
        let mut statement = self.statements.get(name)?.clone();
        self.check_allowed(&statement.text)?;
        self.begin_extended();
        if self.transaction.block != Block::Failed && !self.is_fresh(&statement.plan) {
            self.renew(&mut statement)?;
        }
        let prepared = &statement.plan.prepared;
        let columns = self.columns_of(prepared)?;
        let encoding = self.encoding();
        let out = self.out.get_mut();
        wire::rows::parameters(&mut out.buffer, &prepared.params);
        match columns {
            None => response::no_data(&mut out.buffer),
            Some(columns) => {
                let formats = ResultFormats::default();
                rows::describe(&mut out.buffer, &columns, &formats, encoding)?;
            }
        }
        Ok(())
    }

    /// Execute. The portal is out of its place while it runs, so that an error leaves none behind.
    pub(super) fn execute(&mut self, name: &[u8], limit: u64, rest: &[u8]) -> Result<()> {
        let name = &*self.text(name)?;
        let Some(mut portal) = self.portals.take(name) else {
            // Those of a block that failed have gone with it.
            self.check_not_failed()?;
            return Err(no_portal(name));
        };
        if let Progress::Failed = portal.progress {
            self.portals.put(name, portal);
            return Err(portal_failed(name));
        }
        self.begin_prepared(&portal.statement);
        self.identify_statement(&portal.plan.prepared);
        self.check_allowed(&portal.statement.text)?;
        self.begin_extended();
        let how = || match name {
            "" => "execute <unnamed>".to_owned(),
            name => format!("execute {name}"),
        };
        let logs = self.settings.log_statement != LogStatement::None;
        let plan = &portal.plan.prepared;
        let logged = logs && self.log_before(&how(), &portal.statement.text, plan, &portal.params);
        let clock = self.duration_clock();
        let again = self.run_portal(&mut portal, limit, rest)?;
        if !matches!(portal.progress, Progress::Suspended { .. }) {
            self.disarm_timeout(); // the next statement of the pipeline has its own time
        }
        self.transaction.pipelined = self.transaction.block == Block::Pipeline;
        if clock.is_some() {
            self.log_duration(clock, logged, &how(), &portal.statement.text);
        }
        if again {
            self.portals.put(name, portal);
        }
        Ok(())
    }

    /// Runs a portal on; false when the portal has gone with its transaction.
    fn run_portal(&mut self, portal: &mut Portal, limit: u64, rest: &[u8]) -> Result<bool> {
        if let Statement::Empty = portal.plan.prepared.statement {
            response::empty_query(&mut self.out.get_mut().buffer);
            return Ok(true);
        }
        match portal.progress {
            Progress::Done => return self.run_again(portal),
            Progress::Suspended { .. } | Progress::Kept(_) => {
                return self.fetch_portal(portal, limit);
            }
            Progress::Failed | Progress::New => {}
        }
        if let Some(promised) = &portal.promised {
            self.check_promised(promised, &portal.plan.prepared)?;
        }
        let params = std::mem::take(&mut portal.params);
        let began = self.watch();
        let mut run = Run { rest, ..portal.run(params, false) };
        let prepared = &run.plan.prepared;
        let tag = prepared.tag;
        if let Statement::Utility(utility) = &prepared.statement
            && let Some(outcome) = self.control(utility, &run)?
        {
            self.count_control(began, run.plan, Some(&outcome));
            portal.progress = Progress::Done;
            self.complete(tag, &outcome)?;
            return Ok(self.transaction.begun());
        }
        if limit > 0 && is_query(&prepared.statement) && prepared.returns_rows() {
            let params = run.params;
            self.start_portal(portal, params)?;
            return self.fetch_portal(portal, limit);
        }
        let outcome = self.run(&mut run)?;
        portal.progress = Progress::Done;
        self.complete(tag, &outcome)?;
        Ok(true)
    }

    /// Starts a query whose rows are asked for in parts.
    fn start_portal(&mut self, portal: &mut Portal, params: Vec<Datum>) -> Result<()> {
        let mut run = portal.run(params, false);
        self.begin_run(&mut run)?;
        let (execution, snapshot, pin) = self.start_execution(&run)?;
        portal.params = run.params;
        let execution = Box::new(execution);
        portal.progress = Progress::Suspended { execution, snapshot, pin };
        Ok(())
    }

    /// Starts a portal of Bind that FETCH or MOVE names before any Execute.
    pub(super) fn begin_portal(&mut self, portal: &mut Portal) -> Result<()> {
        let prepared = &portal.plan.prepared;
        match portal.progress {
            Progress::New if is_query(&prepared.statement) && prepared.returns_rows() => {
                let params = std::mem::take(&mut portal.params);
                self.start_portal(portal, params)
            }
            _ => Ok(()),
        }
    }

    /// A portal at its end has no more rows; other statements don't run twice.
    fn run_again(&mut self, portal: &Portal) -> Result<bool> {
        let prepared = &portal.plan.prepared;
        if !prepared.returns_rows() || prepared.tag != "SELECT" {
            return Err(base::Error::new(
                sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "portal cannot be run any more",
            ));
        }
        self.complete(prepared.tag, &Outcome::default())?;
        Ok(true)
    }

    fn fetch_portal(&mut self, portal: &mut Portal, limit: u64) -> Result<bool> {
        let (rows, end) = if portal.cursor {
            let how = FetchHow::Forward((limit > 0).then_some(limit as i64));
            let rows = self.advance(portal, how, false)?;
            (rows, limit == 0 || rows < limit)
        } else {
            let (rows, end) = self.fetch_rows(portal, limit, false)?;
            portal.position += rows;
            portal.at_end = end;
            (rows, end)
        };
        if end {
            let outcome = Outcome { rows, tag: None };
            self.complete(portal.plan.prepared.tag, &outcome)?;
        } else {
            response::portal_suspended(&mut self.out.get_mut().buffer);
        }
        Ok(true)
    }

    /// Sends the next rows of a portal that has begun; at the end it lets go of what it held.
    pub(super) fn fetch_rows(
        &mut self,
        portal: &mut Portal,
        limit: u64,
        discard: bool,
    ) -> Result<(u64, bool)> {
        let progress = std::mem::replace(&mut portal.progress, Progress::Done);
        let Progress::Suspended { mut execution, snapshot, pin } = progress else {
            return Ok((0, true));
        };
        let params = std::mem::take(&mut portal.params);
        let run = portal.run(params, discard);
        let (rows, end) = self.fetch(&run, &mut execution, snapshot, limit)?;
        portal.params = run.params;
        // A cursor may yet go back.
        if !end || (portal.cursor && portal.scroll) {
            portal.progress = Progress::Suspended { execution, snapshot, pin };
        } else if let Some(tx) = &self.transaction.current {
            tx.unpin_snapshot(pin);
        }
        Ok((rows, end))
    }

    /// Close.
    pub(super) fn close(&mut self, target: StatementOrPortal, name: &[u8]) -> Result<()> {
        let name = &*self.text(name)?;
        match target {
            StatementOrPortal::Statement => drop(self.statements.remove(name)),
            StatementOrPortal::Portal => self.close_portal(name),
        }
        response::close_complete(&mut self.out.get_mut().buffer);
        Ok(())
    }

    /// Forgets a portal, if there is one, and what it holds.
    pub(super) fn close_portal(&mut self, name: &str) {
        let portal = self.portals.take(name);
        if let Some(pin) = portal.and_then(|p| p.pin())
            && let Some(tx) = &self.transaction.current
        {
            tx.unpin_snapshot(pin);
        }
    }

    /// Columns of a statement's result, if it has one. Those of EXECUTE and FETCH are another statement's.
    pub(super) fn columns_of<'a>(
        &mut self,
        prepared: &'a sql::Prepared,
    ) -> Result<Option<Cow<'a, [sql::plan::OutputColumn]>>> {
        use sql::Utility;
        let of = |other: &sql::Prepared| other.returns_rows().then(|| other.columns.clone().into());
        Ok(match &prepared.statement {
            Statement::Utility(Utility::Execute { name, .. }) => {
                of(&self.statements.get(name)?.plan.prepared)
            }
            Statement::Utility(Utility::Fetch { name, moving: false, .. }) => {
                self.portals.get(name).and_then(|portal| of(&portal.plan.prepared))
            }
            Statement::Utility(Utility::Show(name)) => {
                Some(super::control::show_columns(name.as_deref()).into())
            }
            Statement::Utility(Utility::CopyTo { .. } | Utility::CopyFrom { .. }) => None,
            _ => prepared.returns_rows().then_some(Cow::Borrowed(&prepared.columns)),
        })
    }
}

impl SessionState {
    /// The types of the rows of what a portal of EXECUTE or FETCH names: clients are told of them before it runs.
    fn promised(&mut self, prepared: &sql::Prepared) -> Option<Vec<base::Oid>> {
        use sql::Utility;
        let Statement::Utility(Utility::Execute { .. } | Utility::Fetch { .. }) =
            &prepared.statement
        else {
            return None;
        };
        let columns = self.columns_of(prepared).ok().flatten()?;
        Some(columns.iter().map(|c| c.ty).collect())
    }

    /// `42804` when another statement or cursor, with other columns, has taken the name since.
    fn check_promised(&mut self, promised: &[base::Oid], prepared: &sql::Prepared) -> Result<()> {
        let Some(columns) = self.columns_of(prepared)? else { return Ok(()) };
        let given: Vec<base::Oid> = columns.iter().map(|c| c.ty).collect();
        let mismatch = |detail: String| {
            err!(DATATYPE_MISMATCH, "query result type does not match portal result type")
                .detail(detail)
        };
        for (n, (given, promised)) in given.iter().zip(promised).enumerate() {
            if given != promised {
                return Err(mismatch(format!(
                    "Returned type {} does not match expected type {} in column {}.",
                    io::format_type(*given, -1),
                    io::format_type(*promised, -1),
                    n + 1
                )));
            }
        }
        if given.len() == promised.len() {
            return Ok(());
        }
        Err(mismatch(format!(
            "Number of returned columns ({}) does not match expected column count ({}).",
            given.len(),
            promised.len()
        )))
    }
}

fn is_query(statement: &Statement) -> bool {
    matches!(statement, Statement::Query(_))
}

fn no_portal(name: &str) -> base::Error {
    err!(UNDEFINED_CURSOR, "portal \"{name}\" does not exist")
}

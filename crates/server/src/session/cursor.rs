//! Cursors: DECLARE, FETCH, MOVE, CLOSE. A cursor is a named portal.
//!
//! A cursor runs its query step by step while it only goes forward. The first move that isn't forward
//! collects all rows (the query is run again under the same snapshot if some have gone already) and
//! from then on the cursor walks over those. A cursor WITH HOLD collects its rows at its
//! transaction's commit, when it ceases to be part of it.
//!
//! ```text
//!   position   0            1 … n      n + 1
//!              before       at a row   behind the last
//! ```

use std::sync::Arc;

use base::{Result, err};
use ecow::EcoString;
use exec::context::{OpenCursor, Outcome, SessionCursor};
use exec::execution::Execution;
use exec::{ExecContext, RowSink};
use sql::utility::FetchHow;
use sql::{Statement, Utility};
use types::{Datum, oids};

use super::SessionState;
use super::portal::{
    Hold, PlanOf, Planned, Portal, Portals, PreparedStatement, Progress, ResultFormats,
};
use super::rows::{self, CollectedRows, Rows};
use crate::session::statement_run::Run;

impl SessionState {
    /// DECLARE CURSOR.
    pub(super) fn declare(&mut self, given: &Run<'_>) -> Result<()> {
        let mut declaration = given.plan.clone();
        let mut run = Run { plan: &mut declaration, params: given.params.clone(), ..*given };
        self.begin_run(&mut run)?;
        let params = run.params;
        let Statement::Utility(Utility::DeclareCursor { name, query, hold, scroll, tables }) =
            &declaration.prepared.statement
        else {
            return Err(base::Error::internal("another plan of a DECLARE declares nothing"));
        };
        if !hold {
            self.require_block("DECLARE CURSOR")?;
        }
        self.portals.check_new(name)?;
        self.check_read_only(query)?;
        let mut plan = PlanOf::new(query.clone(), declaration.version, declaration.epoch);
        let run = Run { plan: &mut plan, params, ..*given };
        let (mut execution, snapshot, pin) = self.start_execution(&run)?;
        if !tables.is_empty() {
            execution.keep_last();
        }
        let portal = Box::new(Portal {
            statement: Arc::new(PreparedStatement {
                name: EcoString::new(),
                plan: Planned::clone(run.plan),
                text: self.entry.look(|activity| activity.query.text().into()).0,
                declared: Arc::new([]),
                from_sql: true,
                since: self.settings.format.now,
            }),
            params: run.params,
            plan,
            formats: ResultFormats::default(),
            progress: Progress::Suspended { execution: Box::new(execution), snapshot, pin },
            position: 0,
            at_end: false,
            cursor: true,
            tables: tables.clone(),
            scroll: *scroll,
            hold: hold.then_some(Hold::WithTransaction),
            since: self.settings.format.now,
            number: 0,
            promised: None,
        });
        self.portals.add(name, portal)
    }

    /// FETCH and MOVE.
    pub(super) fn fetch_sql(
        &mut self,
        name: &str,
        how: FetchHow,
        moving: bool,
        formats: &ResultFormats,
        describe: bool,
    ) -> Result<Outcome> {
        self.check_not_failed()?;
        self.ensure_transaction();
        let mut portal = self
            .portals
            .take(name)
            .ok_or_else(|| err!(UNDEFINED_CURSOR, "cursor \"{name}\" does not exist"))?;
        if describe && !moving {
            let encoding = self.encoding();
            let out = self.out.get_mut();
            let columns = &portal.plan.prepared.columns;
            rows::describe(&mut out.buffer, columns, formats, encoding)?;
            out.complete = out.buffer.len();
        }
        if let Progress::Failed = portal.progress {
            self.portals.put(name, portal);
            return Err(portal_failed(name));
        }
        // A portal of the protocol keeps its own formats for its next Execute.
        let own = std::mem::replace(&mut portal.formats, formats.clone());
        let fetched =
            self.begin_portal(&mut portal).and_then(|()| self.advance(&mut portal, how, moving));
        portal.formats = own;
        if fetched.is_err() {
            portal.progress = Progress::Failed;
        }
        self.portals.put(name, portal);
        Ok(Outcome { rows: fetched?, tag: None })
    }

    /// Moves and sends; returns the rows on the way.
    pub(super) fn advance(
        &mut self,
        portal: &mut Portal,
        how: FetchHow,
        moving: bool,
    ) -> Result<u64> {
        if !portal.scroll {
            return match Forward::of(how, moving, portal)? {
                Forward::Stay(rows) => Ok(rows),
                Forward::Go { skip, rows } => {
                    if skip > 0 {
                        self.forward(portal, Some(skip), true)?;
                    }
                    self.forward(portal, rows, moving)
                }
            };
        }
        if let Some((skip, limit)) = forward_only(portal, how) {
            if skip > 0 {
                self.step(portal, skip, true)?;
            }
            return self.step(portal, limit, moving);
        }
        self.keep(portal)?;
        self.walk_kept(portal, how, moving)
    }

    /// Forward by at most `rows` rows (None: all), in a running query or over rows that are kept.
    fn forward(&mut self, portal: &mut Portal, rows: Option<u64>, moving: bool) -> Result<u64> {
        if !matches!(portal.progress, Progress::Kept(_)) {
            return self.step(portal, rows.unwrap_or(0), moving);
        }
        let rows = rows.map(|rows| i64::try_from(rows).unwrap_or(i64::MAX));
        self.walk_kept(portal, FetchHow::Forward(rows), moving)
    }

    fn walk_kept(&mut self, portal: &mut Portal, how: FetchHow, moving: bool) -> Result<u64> {
        let Progress::Kept(kept) = &portal.progress else { return Ok(0) };
        let (way, position) = walk(how, portal.position, kept.len() as u64);
        if !moving {
            self.send_kept(portal, &way)?;
        }
        portal.position = position;
        Ok(way.len() as u64)
    }

    /// Forward by at most `limit` rows (0: all) in a query that is still running.
    fn step(&mut self, portal: &mut Portal, limit: u64, moving: bool) -> Result<u64> {
        if portal.at_end {
            return Ok(0);
        }
        let (rows, end) = self.fetch_rows(portal, limit, moving)?;
        portal.position += rows;
        portal.at_end = end;
        Ok(rows)
    }

    /// Collects all rows of a cursor, wherever it is.
    fn keep(&mut self, portal: &mut Portal) -> Result<()> {
        let progress = std::mem::replace(&mut portal.progress, Progress::Done);
        let Progress::Suspended { mut execution, snapshot, pin } = progress else {
            portal.progress = progress;
            return Ok(());
        };
        let (params, tables) = (std::mem::take(&mut portal.params), portal.tables.len());
        let again = portal.position > 0 || portal.at_end;
        let run = portal.run(params, false);
        let prepared = &run.plan.prepared;
        let mut types: Vec<base::Oid> = prepared.columns.iter().map(|c| c.ty).collect();
        types.extend((0..tables).flat_map(|_| [oids::TID, oids::OID]));
        let mut kept = CollectedRows { rows: Vec::new(), types };
        let _memory = sched::memory::for_use(sched::memory::Use::Rows);
        self.with_context(&run, snapshot, |cx, _| {
            if again {
                execution = Box::new(Execution::start(prepared, cx)?);
            }
            execution.fetch(cx, 0, &mut kept)
        })?;
        self.end_command(prepared, 0);
        if let Some(tx) = &self.transaction.current {
            tx.unpin_snapshot(pin);
        }
        portal.position += u64::from(portal.at_end);
        portal.progress = Progress::Kept(kept.rows);
        Ok(())
    }

    /// Before a commit: the cursors that outlive the transaction get their rows.
    pub(super) fn keep_held(&mut self) -> Result<()> {
        for name in self.portals.to_be_held() {
            if let Some(mut portal) = self.portals.take(&name) {
                let kept = self.keep(&mut portal);
                self.portals.put(&name, portal);
                kept?;
            }
        }
        Ok(())
    }

    /// Sends rows, by their numbers from 1.
    fn send_kept(&mut self, portal: &Portal, numbers: &[u64]) -> Result<()> {
        let Progress::Kept(kept) = &portal.progress else { return Ok(()) };
        let catalog = self.view();
        let columns = &portal.plan.prepared.columns;
        let names = columns.iter().any(|c| types::io::is_reg(c.ty)).then_some(catalog);
        let Some(tx) = &self.transaction.current else { return Ok(()) };
        let path = self.settings.path();
        let mut sink = Rows {
            out: &self.out,
            columns,
            formats: &portal.formats,
            context: &self.settings.format,
            tx,
            names: names.map(|n| (n, path)),
            discard: false,
        };
        numbers.iter().try_for_each(|n| sink.row(&kept[*n as usize - 1]))
    }

    /// CLOSE.
    pub(super) fn close_sql(&mut self, name: Option<&str>) -> Result<()> {
        match name {
            None => self.portals.clear(),
            Some(name) if self.portals.get(name).is_none() => {
                return Err(err!(UNDEFINED_CURSOR, "cursor \"{name}\" does not exist"));
            }
            Some(name) => self.close_portal(name),
        }
        Ok(())
    }
}

/// The place of a cursor's row in a table; NULL when it is in another.
///
/// # Errors
/// `34000`, `24000`.
pub(super) fn current_of(portals: &Portals, name: &str, table: u32, known: &str) -> Result<Datum> {
    let Some(portal) = portals.get(name) else {
        return Err(err!(UNDEFINED_CURSOR, "cursor \"{name}\" does not exist"));
    };
    let state = |what: &str| err!(INVALID_CURSOR_STATE, "cursor \"{name}\" {what}");
    if portal.hold == Some(Hold::ForSession) {
        return Err(state("is held from a previous transaction"));
    }
    let mut fitting = portal.tables.iter().enumerate().filter(|(_, all)| all.contains(&table));
    let (Some((at, _)), None) = (fitting.next(), fitting.next()) else {
        return Err(state(&format!("is not a simply updatable scan of table \"{known}\"")));
    };
    let at = portal.plan.prepared.columns.len() + 2 * at;
    let row: Option<[Datum; 2]> = match &portal.progress {
        Progress::Suspended { execution, .. } if !portal.at_end => execution
            .last()
            .map(|row| [row.columns[at].get(0, oids::TID), row.columns[at + 1].get(0, oids::OID)]),
        Progress::Kept(rows) => {
            let row = portal.position.checked_sub(1).and_then(|n| rows.get(n as usize));
            row.map(|row| [row[at].clone(), row[at + 1].clone()])
        }
        _ => None,
    };
    match row {
        None => Err(state("is not positioned on a row")),
        Some([place, Datum::Oid(found)]) if found == table => Ok(place),
        Some(_) => Ok(Datum::Null),
    }
}

/// Opens a function's cursor.
///
/// # Errors
/// `42P03`.
pub(super) fn open(portals: &mut Portals, cursor: OpenCursor, now: i64) -> Result<String> {
    let name = match cursor.name {
        Some(name) => name,
        None => {
            let free = |n: &u64| portals.get(&unnamed(*n)).is_none();
            unnamed((1..).find(free).unwrap_or(1))
        }
    };
    portals.check_new(&name)?;
    let plan = PlanOf::new(cursor.prepared, 0, super::portal::NEVER_FRESH);
    let mut execution = cursor.execution;
    if !cursor.tables.is_empty() {
        execution.keep_last();
    }
    let portal = Box::new(Portal {
        statement: Arc::new(PreparedStatement {
            name: EcoString::new(),
            plan: Planned::clone(&plan),
            text: cursor.text.into(),
            declared: Arc::new([]),
            from_sql: true,
            since: now,
        }),
        params: cursor.params,
        plan,
        formats: ResultFormats::default(),
        progress: Progress::Suspended { execution, snapshot: cursor.snapshot, pin: cursor.pin },
        position: 0,
        at_end: false,
        cursor: true,
        tables: cursor.tables,
        scroll: cursor.scroll.unwrap_or(true),
        hold: None,
        since: now,
        number: 0,
        promised: None,
    });
    portals.add(&name, portal)?;
    Ok(name)
}

fn unnamed(number: u64) -> String {
    format!("<unnamed portal {number}>")
}

/// A cursor that a function fetches from.
pub(super) struct Taken {
    /// Its name.
    pub name: String,
    /// It.
    pub portal: Box<Portal>,
}

/// Rows that nobody wants.
struct Discard;

impl RowSink for Discard {
    fn batch(&mut self, _batch: &types::Batch) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, _row: &[Datum]) -> Result<()> {
        Ok(())
    }

    fn copy_data(&mut self, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
}

impl Taken {
    /// Forward by at most `limit` rows (0: all) in a query that is still running.
    fn step(
        &mut self,
        limit: u64,
        cx: &mut ExecContext<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<u64> {
        let portal = &mut *self.portal;
        let Progress::Suspended { execution, snapshot, .. } = &mut portal.progress else {
            return Ok(0);
        };
        if portal.at_end {
            return Ok(0);
        }
        let snapshot = *snapshot;
        let mut inner = ExecContext { snapshot, params: &portal.params, ..cx.inner() };
        let (rows, end) = execution.fetch(&mut inner, limit, sink)?;
        portal.position += rows;
        portal.at_end = end;
        Ok(rows)
    }

    /// Collects all rows, wherever the cursor is.
    fn keep(&mut self, cx: &mut ExecContext<'_>) -> Result<()> {
        let portal = &mut *self.portal;
        let progress = std::mem::replace(&mut portal.progress, Progress::Done);
        let Progress::Suspended { mut execution, snapshot, pin } = progress else {
            portal.progress = progress;
            return Ok(());
        };
        let prepared = portal.plan.prepared.clone();
        let mut types: Vec<base::Oid> = prepared.columns.iter().map(|c| c.ty).collect();
        types.extend((0..portal.tables.len()).flat_map(|_| [oids::TID, oids::OID]));
        let mut kept = CollectedRows { rows: Vec::new(), types };
        {
            let _memory = sched::memory::for_use(sched::memory::Use::Rows);
            let mut inner = ExecContext { snapshot, params: &portal.params, ..cx.inner() };
            if portal.position > 0 || portal.at_end {
                execution = Box::new(Execution::start(&prepared, &mut inner)?);
            }
            execution.fetch(&mut inner, 0, &mut kept)?;
        }
        cx.tx.unpin_snapshot(pin);
        portal.position += u64::from(portal.at_end);
        portal.progress = Progress::Kept(kept.rows);
        Ok(())
    }

    fn advance(
        &mut self,
        how: FetchHow,
        moving: bool,
        cx: &mut ExecContext<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<u64> {
        if let Progress::Failed = self.portal.progress {
            return Err(portal_failed(&self.name));
        }
        if let Some((skip, limit)) = forward_only(&self.portal, how) {
            if skip > 0 {
                self.step(skip, cx, &mut Discard)?;
            }
            return match moving {
                true => self.step(limit, cx, &mut Discard),
                false => self.step(limit, cx, sink),
            };
        }
        if !self.portal.scroll {
            return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "cursor can only scan forward")
                .hint("Declare it with SCROLL option to enable backward scan."));
        }
        self.keep(cx)?;
        let Progress::Kept(kept) = &self.portal.progress else { return Ok(0) };
        let (way, position) = walk(how, self.portal.position, kept.len() as u64);
        if !moving {
            let width = self.portal.plan.prepared.columns.len();
            way.iter().try_for_each(|n| sink.row(&kept[*n as usize - 1][..width]))?;
        }
        self.portal.position = position;
        Ok(way.len() as u64)
    }
}

impl SessionCursor for Taken {
    fn columns(&self) -> Vec<sql::plan::OutputColumn> {
        self.portal.plan.prepared.columns.clone()
    }

    fn fetch(
        &mut self,
        how: FetchHow,
        moving: bool,
        cx: &mut ExecContext<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<u64> {
        let fetched = self.advance(how, moving, cx, sink);
        let alive = matches!(self.portal.progress, Progress::Suspended { .. } | Progress::Kept(_));
        if fetched.is_err() && !alive {
            self.portal.progress = Progress::Failed;
        }
        fetched
    }

    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}

/// `55000` for a portal that an error ended.
pub(super) fn portal_failed(name: &str) -> base::Error {
    err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "portal \"{name}\" cannot be run")
}

/// A move of a cursor that can't go back.
enum Forward {
    /// It moves nowhere; that many rows count.
    Stay(u64),
    /// Past some rows, then to the next `rows` (None: all).
    Go { skip: u64, rows: Option<u64> },
}

impl Forward {
    /// The move that FETCH or MOVE asks for. As in PostgreSQL, the row where the cursor stands can't be
    /// fetched again, though MOVE counts it.
    ///
    /// # Errors
    /// `55000`
    fn of(how: FetchHow, moving: bool, portal: &Portal) -> Result<Forward> {
        let backward = || {
            err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "cursor can only scan forward")
                .hint("Declare it with SCROLL option to enable backward scan.")
        };
        let (count, at_end) = match &portal.progress {
            Progress::Kept(rows) => (rows.len() as u64, portal.position > rows.len() as u64),
            _ => (u64::MAX, portal.at_end),
        };
        let passed = portal.position.min(count);
        let untouched = passed == 0 && !at_end;
        let on_row = passed > 0 && !at_end;
        let next = |skip: u64| Forward::Go { skip, rows: Some(1) };
        Ok(match how {
            FetchHow::Forward(Some(0)) | FetchHow::Backward(Some(0)) | FetchHow::Relative(0)
                if moving =>
            {
                Forward::Stay(u64::from(on_row))
            }
            FetchHow::Forward(Some(0)) | FetchHow::Relative(0) if !on_row => Forward::Stay(0),
            FetchHow::Backward(None) if moving && untouched => Forward::Stay(0),
            FetchHow::Absolute(0) if untouched => Forward::Stay(0),
            FetchHow::Forward(None) => Forward::Go { skip: 0, rows: None },
            FetchHow::Forward(Some(rows)) if rows > 0 => {
                Forward::Go { skip: 0, rows: Some(rows as u64) }
            }
            FetchHow::Relative(rows) if rows > 0 => next(rows as u64 - 1),
            FetchHow::Absolute(row) if row > 0 => {
                let before = row as u64 - 1;
                let gone = passed + u64::from(at_end);
                match before.checked_sub(gone) {
                    Some(skip) if before > passed / 2 || untouched => next(skip),
                    _ => return Err(backward()),
                }
            }
            _ => return Err(backward()),
        })
    }
}

/// For a move that a running query can make: how many rows to skip, and how many to fetch then
/// (0: all). None for others.
fn forward_only(portal: &Portal, how: FetchHow) -> Option<(u64, u64)> {
    if !matches!(portal.progress, Progress::Suspended { .. }) {
        return None;
    }
    let to_row = |rows: i64| (rows > 0).then(|| (rows as u64 - 1, 1));
    match how {
        FetchHow::Forward(None) => Some((0, 0)),
        FetchHow::Forward(Some(rows)) if rows > 0 => Some((0, rows as u64)),
        FetchHow::Relative(rows) => to_row(rows),
        FetchHow::Absolute(row) if !portal.at_end => to_row(row - portal.position as i64),
        _ => None,
    }
}

/// Which rows lie on the way, by their numbers in that order, and where it ends. There may be fewer rows
/// than on the way there: the query was run again, and need not give the same.
fn walk(how: FetchHow, at: u64, count: u64) -> (Vec<u64>, u64) {
    let end = count + 1;
    let at = at.min(end);
    let one = |row: Option<u64>, otherwise: u64| match row {
        Some(row) if (1..=count).contains(&row) => (vec![row], row),
        _ => (Vec::new(), otherwise),
    };
    match how {
        FetchHow::Forward(Some(0)) | FetchHow::Backward(Some(0)) => one(Some(at), at),
        FetchHow::Forward(rows) => {
            let last = rows.map_or(end, |r| at.saturating_add(r as u64).min(end));
            ((at + 1..=last.min(count)).collect(), last)
        }
        FetchHow::Backward(rows) => {
            let first = rows.map_or(0, |r| at.saturating_sub(r as u64));
            ((first.max(1)..at).rev().collect(), first)
        }
        FetchHow::Absolute(row) if row < 0 => one(end.checked_sub(row.unsigned_abs()), 0),
        FetchHow::Absolute(row) => one(Some(row as u64), if row == 0 { 0 } else { end }),
        FetchHow::Relative(rows) if rows < 0 => one(at.checked_sub(rows.unsigned_abs()), 0),
        FetchHow::Relative(0) => one(Some(at), at),
        FetchHow::Relative(rows) => one(Some(at.saturating_add(rows as u64)), end),
    }
}

#[cfg(test)]
mod tests {
    use super::FetchHow::{Absolute, Backward, Forward, Relative};
    use super::*;

    #[test]
    fn every_direction_ends_where_it_should() {
        for (how, at, rows, end) in [
            (Forward(Some(2)), 0, vec![1, 2], 2),
            (Forward(Some(9)), 2, vec![3], 4),
            (Forward(None), 4, vec![], 4),
            (Forward(Some(0)), 2, vec![2], 2),
            (Forward(Some(0)), 4, vec![], 4),
            (Backward(Some(2)), 4, vec![3, 2], 2),
            (Backward(Some(2)), 2, vec![1], 0),
            (Backward(None), 4, vec![3, 2, 1], 0),
            (Backward(Some(i64::MAX)), 0, vec![], 0),
            (Absolute(2), 0, vec![2], 2),
            (Absolute(0), 2, vec![], 0),
            (Absolute(9), 0, vec![], 4),
            (Absolute(-1), 0, vec![3], 3),
            (Absolute(-9), 2, vec![], 0),
            (Relative(0), 2, vec![2], 2),
            (Relative(2), 1, vec![3], 3),
            (Relative(9), 1, vec![], 4),
            (Relative(-1), 4, vec![3], 3),
            (Relative(-4), 4, vec![], 0),
            (Relative(i64::MIN), 4, vec![], 0),
            (Backward(Some(1)), 9, vec![3], 3),
            (Forward(None), 9, vec![], 4),
        ] {
            assert_eq!(walk(how, at, 3), (rows, end), "{how:?} from {at}");
        }
    }
}

//! The partitions that a statement writes: opened when the first row comes, closed with the statement, or before
//! when there are many and nothing waits in them.

use std::collections::HashMap;
use std::sync::Arc;

use base::Result;
use catalog::{Snapshot, Table};
use sql::plan::{Modify, ModifyAction, ModifyChild, RowRules, ScanColumn};
use sql::{Expr, walk};
use txn::LockMode;
use types::Datum;

use super::errors::{self, Written};
use super::foreign_key::{References, Touched};
use super::pipeline;
use super::triggers::Triggers;
use super::writer::{Membership, Root, Writer};
use crate::context::ExecContext;
use crate::language::TriggerEvent;
use crate::ops::grouping::Fx;
use crate::partition::{self, Belongs, Router, is_identity, numbers};
use crate::run::Run;

/// Partitions that are open at a time, if nothing waits in the others. Rows that change their partition each time would open
/// one each if there were fewer than those rows go into.
const OPEN: usize = 1024;

/// A partition that rows go into.
pub struct Part {
    /// What the statement does there, by its own numbers.
    pub child: ModifyChild,
    /// The partition.
    pub writer: Writer,
    /// Its rows look like the table's.
    identity: bool,
    /// Checked rows that are to be inserted, and the lines that they come from.
    pending: Vec<Vec<Datum>>,
    lines: Vec<u64>,
}

/// See the module's documentation.
pub struct Parts {
    root: Arc<Table>,
    /// What the tables above it ask of its rows.
    above: Option<Box<Belongs>>,
    router: Router,
    open: Vec<Part>,
    by_oid: HashMap<u32, usize, Fx>,
    /// The last one that was asked for.
    last: (u32, usize),
    captures: i16,
    pending: usize,
    /// The line of the data that the next row comes from (COPY).
    pub line: u64,
    /// See [`Parts::failed_line`].
    failed: Option<u64>,
    /// Empty rows, whose memory is used again.
    spare: Vec<Vec<Datum>>,
}

/// A way of a row into its table, as [`pipeline::insert`].
type RowWay = dyn Fn(&mut Writer, &mut [Datum], &RowRules, &mut Run<'_, '_>) -> Result<bool>;

impl Part {
    /// A row of the table as one of the partition's.
    pub fn own(&self, row: Vec<Datum>) -> Vec<Datum> {
        if self.identity {
            return row;
        }
        let mut own = vec![Datum::Null; self.child.table.columns.len()];
        for (value, n) in row.into_iter().zip(&self.child.numbers) {
            if *n > 0 {
                own[usize::from(*n) - 1] = value;
            }
        }
        own
    }

    /// A row of the partition as one of the table's.
    pub fn named(&self, row: Vec<Datum>) -> Vec<Datum> {
        if self.identity { row } else { super::inherited::as_named(&self.child, &row) }
    }

    fn has_before_insert(&self) -> bool {
        self.writer.triggers.as_ref().is_some_and(|t| t.has_before_row(TriggerEvent::Insert))
    }

    fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.writer.is_idle()
    }
}

/// Columns of the statement's table in an expression over rows of a partition.
fn moved(e: &Expr, root: &Table, numbers: &[u16]) -> Expr {
    let place = |n: u16| {
        let at = numbers.get(usize::from(n))?.checked_sub(1)?;
        Some(Expr::Column(at, base::Oid(root.columns[usize::from(n)].ty)))
    };
    walk::substitute(e.clone(), &place)
}

impl Parts {
    /// Of a partitioned table.
    pub fn new(root: &Arc<Table>) -> Parts {
        Parts {
            root: root.clone(),
            above: None,
            router: Router::new(root),
            open: Vec::new(),
            by_oid: HashMap::default(),
            last: (0, 0),
            captures: 0,
            pending: 0,
            line: 0,
            failed: None,
            spare: Vec::new(),
        }
    }

    /// Which transition tables the statement's triggers want.
    pub fn capture(&mut self, captures: i16) {
        self.captures = captures;
    }

    /// The open partitions.
    pub fn all(&mut self) -> &mut [Part] {
        &mut self.open
    }

    /// One of them.
    pub fn at(&mut self, at: usize) -> &mut Part {
        &mut self.open[at]
    }

    /// The place of the partition that a row of the table goes into.
    ///
    /// # Errors
    /// `23514` when there is none; those of opening it.
    pub fn route(
        &mut self,
        modify: &Modify,
        row: &[Datum],
        run: &mut Run<'_, '_>,
    ) -> Result<usize> {
        self.check_root(modify, row, run)?;
        let id = self.router.route(row, run)?;
        self.find(modify, id, run)
    }

    /// A table that is a partition itself takes only the rows of its own bound.
    fn check_root(&mut self, modify: &Modify, row: &[Datum], run: &mut Run<'_, '_>) -> Result<()> {
        if self.root.bound.is_none() {
            return Ok(());
        }
        if self.above.is_none() {
            self.above = Belongs::open(&self.root, 0, run.cx)?;
        }
        if let Some(above) = &self.above
            && !above.holds(row, run)?
        {
            let columns = &modify.checks.written;
            let written = Written { table: &self.root, row, columns, root: None };
            return Err(errors::partition(run.cx, &written));
        }
        Ok(())
    }

    /// The place of a partition.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn find(&mut self, modify: &Modify, id: u32, run: &mut Run<'_, '_>) -> Result<usize> {
        if self.last.0 == id {
            return Ok(self.last.1);
        }
        if let Some(at) = self.by_oid.get(&id) {
            self.last = (id, *at);
            return Ok(*at);
        }
        if self.open.len() >= OPEN {
            self.close_idle(run)?;
        }
        let part = self.open_part(modify, id, run)?;
        self.open.push(part);
        self.last = (id, self.open.len() - 1);
        self.by_oid.insert(id, self.last.1);
        Ok(self.last.1)
    }

    fn close_idle(&mut self, run: &mut Run<'_, '_>) -> Result<()> {
        self.flush(run)?;
        self.open.retain(|part| !part.is_idle());
        self.last = (0, 0);
        let ids = self.open.iter().enumerate().map(|(at, part)| (part.child.table.oid, at));
        self.by_oid = ids.collect();
        Ok(())
    }

    fn open_part(&self, modify: &Modify, id: u32, run: &mut Run<'_, '_>) -> Result<Part> {
        let table = partition::open(run.cx, id, LockMode::RowExclusive)?;
        super::foreign::expect_own(&table)?;
        super::check_published(&table, &modify.action, run.cx)?;
        let child = child(&self.root, modify, &table, run.cx)?;
        let identity = is_identity(&child.numbers, &table);
        let mut writer = Writer::open(&table, &child.indexes, run.cx)?;
        writer.keys.clone_from(&child.checks.keys);
        writer.root = Some(Root { table: self.root.clone(), numbers: child.numbers.clone() });
        let touched = match &modify.action {
            ModifyAction::Insert { conflict: None, .. } => Touched::Insert,
            ModifyAction::Delete { .. } => Touched::Delete,
            _ => Touched::All,
        };
        writer.references = References::open(&table, touched, run.cx)?;
        let set = match &modify.action {
            ModifyAction::Insert { conflict: None, .. } | ModifyAction::Delete { .. } => None,
            _ => Some(
                super::columns_set(&modify.action)
                    .iter()
                    .map(|n| child.numbers.get(usize::from(*n) - 1).copied().unwrap_or(0))
                    .collect(),
            ),
        };
        writer.open_triggers(&child.checks, set, run.cx);
        match &mut writer.triggers {
            Some(triggers) => triggers.capture(self.captures),
            None if self.captures != 0 => {
                writer.triggers = Some(Triggers::capturing(&table, self.captures));
            }
            None => {}
        }
        let changes = !matches!(
            modify.action,
            ModifyAction::Insert { conflict: None, .. } | ModifyAction::Delete { .. }
        );
        let fires = |event| writer.triggers.as_ref().is_some_and(|t| t.has_before_row(event));
        let moves = match &modify.action {
            ModifyAction::Update { .. } => {
                fires(TriggerEvent::Update) || may_move(&run.cx.catalog_tx.view(), &table, &child)
            }
            _ => changes,
        };
        if moves || fires(TriggerEvent::Insert) {
            let belongs = Belongs::open(&table, 0, run.cx)?;
            writer.membership = belongs.map_or(Membership::Any, Membership::Moves);
        }
        Ok(Part { child, writer, identity, pending: Vec::new(), lines: Vec::new() })
    }

    /// Takes a row and prepares it for its partition, where it waits for [`Parts::flush`]; false: a trigger says not to
    /// insert it. An empty row is left in its place.
    ///
    /// # Errors
    /// Those of the row's way.
    pub fn add(
        &mut self,
        modify: &Modify,
        row: &mut Vec<Datum>,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let at = self.route(modify, row, run)?;
        // A BEFORE trigger sees the rows before its own.
        let alone = self.open[at].has_before_insert();
        if alone {
            self.flush(run)?;
        }
        let part = &mut self.open[at];
        let mut own = part.own(std::mem::replace(row, self.spare.pop().unwrap_or_default()));
        if !pipeline::prepare_insert(&mut part.writer, &mut own, &part.child.checks, run)? {
            return Ok(false);
        }
        part.pending.push(own);
        part.lines.push(self.line);
        self.pending += 1;
        if alone {
            self.flush(run).inspect_err(|_| self.failed = None)?;
        }
        Ok(true)
    }

    /// The line of the row that could not be inserted, if it had waited.
    pub fn failed_line(&self) -> Option<u64> {
        self.failed
    }

    /// Rows that wait.
    pub fn waiting(&self) -> usize {
        self.pending
    }

    /// Inserts the rows that wait.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn flush(&mut self, run: &mut Run<'_, '_>) -> Result<()> {
        if std::mem::take(&mut self.pending) == 0 {
            return Ok(());
        }
        for part in &mut self.open {
            if part.pending.is_empty() {
                continue;
            }
            sched::check_interrupts()?;
            let inserted = part.writer.insert_many(&part.pending, run);
            self.failed =
                inserted.is_err().then(|| part.lines.get(part.writer.at).copied()).flatten();
            inserted?;
            part.lines.clear();
            part.pending.iter_mut().for_each(Vec::clear);
            self.spare.append(&mut part.pending);
        }
        Ok(())
    }

    /// Inserts one row at once; the row as the table has it with its partition's oid, None: a trigger says not to.
    ///
    /// # Errors
    /// Those of the row's way.
    pub fn insert(
        &mut self,
        modify: &Modify,
        row: Vec<Datum>,
        run: &mut Run<'_, '_>,
    ) -> Result<Option<(Vec<Datum>, u32)>> {
        self.insert_by(modify, row, &pipeline::insert, run)
    }

    /// The same for a row that an update has taken out of another partition.
    ///
    /// # Errors
    /// Those of the row's way.
    pub fn insert_moved(
        &mut self,
        modify: &Modify,
        row: Vec<Datum>,
        run: &mut Run<'_, '_>,
    ) -> Result<Option<(Vec<Datum>, u32)>> {
        self.insert_by(modify, row, &pipeline::insert_moved, run)
    }

    fn insert_by(
        &mut self,
        modify: &Modify,
        row: Vec<Datum>,
        way: &RowWay,
        run: &mut Run<'_, '_>,
    ) -> Result<Option<(Vec<Datum>, u32)>> {
        let at = self.route(modify, &row, run)?;
        let part = &mut self.open[at];
        let mut own = part.own(row);
        if !way(&mut part.writer, &mut own, &part.child.checks, run)? {
            return Ok(None);
        }
        Ok(Some((part.named(own), part.child.table.oid)))
    }

    /// Gives the rows of transition tables to the triggers of the statement's table.
    ///
    /// # Errors
    /// I/O errors of temporary files.
    pub fn give_captured(&mut self, triggers: &mut Triggers, cx: &ExecContext<'_>) -> Result<()> {
        for part in &mut self.open {
            if let Some(other) = &mut part.writer.triggers {
                let child = &part.child;
                let as_named = |row: &[Datum]| super::inherited::as_named(child, row);
                triggers.add_captured(other.take_captured(), &as_named, cx)?;
            }
        }
        Ok(())
    }

    /// The statement's end: what waits in the partitions.
    ///
    /// # Errors
    /// As [`Writer::finish`].
    pub fn finish(&mut self, run: &mut Run<'_, '_>) -> Result<()> {
        self.flush(run)?;
        self.open.iter_mut().try_for_each(|part| part.writer.finish(run))
    }
}

/// A statement's work on one partition of a partitioned table.
///
/// # Errors
/// Those of reading the partition's rules.
pub fn child(
    root: &Arc<Table>,
    modify: &Modify,
    table: &Arc<Table>,
    cx: &mut ExecContext<'_>,
) -> Result<ModifyChild> {
    let indexes = cx.catalog_tx.view().indexes_of(table);
    let numbers = numbers(root, table);
    let mut checks = crate::spi::check_expressions(table, cx)?;
    let number = |n: &u16| numbers.get(usize::from(*n) - 1).copied().unwrap_or(0);
    checks.written = modify.checks.written.iter().map(number).collect();
    let option = |(n, e): &(String, Expr)| (n.clone(), moved(e, root, &numbers));
    checks.options = modify.checks.options.iter().map(option).collect();
    checks.shown = modify.checks.shown.iter().map(option).collect();
    let policies = modify.checks.policies.clone();
    let guards = RowRules { policies, ..RowRules::default() };
    checks.policies = guards.map(&mut |e| Ok(moved(&e, root, &numbers)))?.policies;
    let (columns, set) = parts_of(&modify.action);
    let column = |c: ScanColumn| match c {
        ScanColumn::Attr(n) => ScanColumn::Attr(number(&n)),
        other => other,
    };
    Ok(ModifyChild {
        columns: columns.iter().map(|(at, c)| (*at, column(*c))).collect(),
        set: set.iter().map(|(n, e)| (number(n), e.clone())).collect(),
        table: table.clone(),
        indexes,
        checks,
        numbers,
    })
}

/// Whether an update sets a column by which a table above tells its partitions apart.
pub fn may_move(view: &Snapshot, table: &Table, child: &ModifyChild) -> bool {
    let set = |name: &str| {
        child.set.iter().any(|(n, _)| {
            usize::from(*n).checked_sub(1).is_some_and(|at| table.columns[at].name == name)
        })
    };
    view.partition_ancestors(table.oid).into_iter().any(|id| {
        let Some(above) = view.table(id) else { return true };
        let keys = above.partitioning.iter().flat_map(|by| &by.keys);
        let column = |n: &u16| above.columns.get(usize::from(*n) - 1);
        keys.flat_map(|key| if key.column > 0 { vec![key.column] } else { key.columns.clone() })
            .any(|n| column(&n).is_none_or(|c| set(&c.name)))
    })
}

/// The columns that an action reads of the table, and what it sets.
#[allow(clippy::type_complexity)]
fn parts_of(action: &ModifyAction) -> (&[(u16, ScanColumn)], &[(u16, Expr)]) {
    match action {
        ModifyAction::Update { columns, set, .. } => (columns, set),
        ModifyAction::Delete { columns, .. } | ModifyAction::Merge { columns, .. } => {
            (columns, &[])
        }
        ModifyAction::Insert { .. } => (&[], &[]),
    }
}

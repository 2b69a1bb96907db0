//! INSERT, UPDATE, DELETE, MERGE.
//!
//! A change runs to its end at the first call and keeps what RETURNING asks for. Rows that the
//! command makes are not seen by its own scans (the snapshot's command number). Foreign keys are
//! checked, and their actions done, at the end.

mod bulk_delete;
mod conflict;
pub mod deferred;
mod errors;
mod event_list;
pub mod exclusion;
pub mod fire;
pub mod foreign;
mod foreign_key;
mod inherited;
pub mod key_types;
mod merge;
pub mod parts;
pub mod pipeline;
mod policies;
pub mod row_store;
mod text_search;
pub mod triggers;
mod unique;
mod writer;

use access::HeapTuple;
use base::{Error, Oid, Result, TupleId};
use parts::Parts;
use pipeline::{Changed, Proposal, Source};
use sql::plan::{MergeAction, Modify, ModifyAction, PLACED, ScanColumn};
use sql::{Expr, Plan};
use triggers::Triggers;
use types::batch::BATCH_ROWS;
use types::{Batch, Datum};

use crate::eval;
use crate::language::{TriggerEvent, TriggerTiming};
use crate::ops::one_by_one::OneByOne;
use crate::ops::operator::{Operator, build, types, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;
use crate::table::{Projection, Version, system_value};

pub use errors::{
    duplicated_in_build, excluded_in_build, may_read, missing_parent, mixed_nulls, named_for_part,
};
pub use foreign_key::{References, Touched};
pub use inherited::{as_named, as_own, change_part, touched};
pub use unique::find_duplicate;
pub use writer::{Membership, Root, WriteTarget, Writer};

/// See the module's documentation.
pub struct ModifyOp {
    input: Box<dyn Operator>,
    writer: Writer,
    /// Those of the children, in their order.
    children: Vec<Writer>,
    /// Those of a partitioned table's partitions.
    parts: Option<Box<Parts>>,
    changed: u64,
    done: bool,
    /// What RETURNING gave, last batch first.
    returned: Vec<Batch>,
    /// Of a foreign table: its wrapper's side.
    foreign: Option<Box<dyn crate::foreign::ForeignChange>>,
    /// Rows of a foreign table that AFTER triggers are to see.
    after: Vec<foreign::Changed>,
}

/// The part of an update or delete that reads a row's newest version again.
pub struct Reread<'p> {
    places: Vec<u16>,
    projection: Projection,
    recheck: Option<&'p Expr>,
}

impl<'p> Reread<'p> {
    /// For an action's `columns` and `recheck`.
    pub fn new(
        table: &catalog::Table,
        columns: &[(u16, ScanColumn)],
        recheck: Option<&'p Expr>,
    ) -> Reread<'p> {
        let scanned: Vec<ScanColumn> = columns.iter().map(|(_, c)| *c).collect();
        Reread {
            places: columns.iter().map(|(n, _)| *n).collect(),
            projection: Projection::new(table, &scanned),
            recheck,
        }
    }

    /// Puts the newest version's values into the input row; false when the condition no longer
    /// holds.
    pub fn apply(
        &self,
        writer: &Writer,
        newest: &access::HeapTuple,
        row: &mut [Datum],
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let at =
            crate::table::Version { tid: newest.tid, root: newest.root, system: newest.system };
        let mut values = Vec::with_capacity(self.places.len());
        self.projection.row(&writer.target.handle.columns, at, &newest.data, &mut values)?;
        for (place, value) in self.places.iter().zip(values) {
            row[usize::from(*place)] = value;
        }
        row[0] = Datum::Tid(newest.tid);
        row[1] = Datum::Tid(newest.root);
        match self.recheck {
            Some(condition) => eval::holds(condition, Row::Values(row), run),
            None => Ok(true),
        }
    }
}

/// The row in table order, from the input row's columns.
pub fn old_row(modify: &Modify, columns: &[(u16, ScanColumn)], input: &[Datum]) -> Vec<Datum> {
    let mut old = vec![Datum::Null; modify.table.columns.len()];
    for (place, column) in columns {
        if let ScanColumn::Attr(n) = column {
            old[usize::from(*n) - 1] = input[usize::from(*place)].clone();
        }
    }
    old
}

/// The tid and root at the beginning of an input row; None for the padded row of an outer join.
pub fn target(input: &[Datum]) -> Option<(TupleId, TupleId)> {
    match (input.first(), input.get(1)) {
        (Some(Datum::Tid(tid)), Some(Datum::Tid(root))) => Some((*tid, *root)),
        _ => None,
    }
}

/// UPDATE and DELETE of one row of the statement's own table. When it was changed `input` holds the version
/// that was replaced.
struct OwnRow<'p, 'i> {
    modify: &'p Modify,
    columns: &'p [(u16, ScanColumn)],
    /// New values; None: it is deleted.
    set: Option<&'p [(u16, Expr)]>,
    recheck: Option<&'p Expr>,
    input: &'i mut [Datum],
    reread: Option<Reread<'p>>,
}

impl Source for OwnRow<'_, '_> {
    fn propose(&mut self, _writer: &Writer, run: &mut Run<'_, '_>) -> Result<Option<Proposal>> {
        let Some((tid, root)) = target(self.input) else { return Ok(None) };
        let old = old_row(self.modify, self.columns, self.input);
        let new = match self.set {
            Some(set) => {
                let mut new = old.clone();
                for (column, expr) in set {
                    new[usize::from(*column) - 1] = eval::eval(expr, Row::Values(self.input), run)?;
                }
                Some(new)
            }
            None => None,
        };
        Ok(Some(Proposal { tid, root, old, new }))
    }

    fn follow(
        &mut self,
        writer: &Writer,
        newest: &HeapTuple,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let (modify, columns, recheck) = (self.modify, self.columns, self.recheck);
        let reread =
            self.reread.get_or_insert_with(|| Reread::new(&modify.table, columns, recheck));
        reread.apply(writer, newest, self.input, run)
    }
}

/// Updates or deletes one row of the statement's own table, following it to newer versions. When it was
/// changed `input` holds the version that was replaced.
///
/// # Errors
/// As [`pipeline::change`].
pub fn change_own_row(
    writer: &mut Writer,
    modify: &Modify,
    input: &mut [Datum],
    run: &mut Run<'_, '_>,
) -> Result<Changed> {
    let (columns, set, recheck) = match &modify.action {
        ModifyAction::Update { columns, set, recheck, .. } => (columns, Some(&set[..]), recheck),
        ModifyAction::Delete { columns, recheck, .. } => (columns, None, recheck),
        ModifyAction::Insert { .. } | ModifyAction::Merge { .. } => return Ok(Changed::Nothing),
    };
    let (snapshot, recheck) = (run.snapshot, recheck.as_ref());
    let mut source = OwnRow { modify, columns, set, recheck, input, reread: None };
    pipeline::change(writer, &modify.checks, &mut source, &snapshot, run)
}

/// What a statement does to its table, in the order in which its BEFORE triggers fire.
fn events(action: &ModifyAction) -> Vec<TriggerEvent> {
    match action {
        ModifyAction::Insert { conflict, .. } => match conflict.as_ref().map(|c| &c.update) {
            Some(Some(_)) => vec![TriggerEvent::Insert, TriggerEvent::Update],
            _ => vec![TriggerEvent::Insert],
        },
        ModifyAction::Update { .. } => vec![TriggerEvent::Update],
        ModifyAction::Delete { .. } => vec![TriggerEvent::Delete],
        ModifyAction::Merge { clauses, .. } => {
            let does = |event: &TriggerEvent| {
                clauses.iter().any(|clause| match clause.action {
                    MergeAction::Insert(_) => *event == TriggerEvent::Insert,
                    MergeAction::Update(_) => *event == TriggerEvent::Update,
                    MergeAction::Delete => *event == TriggerEvent::Delete,
                    MergeAction::Nothing => false,
                })
            };
            let all = [TriggerEvent::Insert, TriggerEvent::Update, TriggerEvent::Delete];
            all.into_iter().filter(does).collect()
        }
    }
}

/// The columns that a statement sets.
fn columns_set(action: &ModifyAction) -> Vec<u16> {
    let numbers = |set: &[(u16, Expr)]| set.iter().map(|(n, _)| *n).collect::<Vec<_>>();
    match action {
        ModifyAction::Insert { conflict, .. } => conflict
            .as_ref()
            .and_then(|c| c.update.as_ref())
            .map_or_else(Vec::new, |update| numbers(&update.set)),
        ModifyAction::Update { set, .. } => numbers(set),
        ModifyAction::Delete { .. } => Vec::new(),
        ModifyAction::Merge { clauses, .. } => clauses
            .iter()
            .flat_map(|clause| match &clause.action {
                MergeAction::Update(set) => numbers(set),
                _ => Vec::new(),
            })
            .collect(),
    }
}

/// Refuses to change rows that a publication could not tell of ([`catalog::Snapshot::check_published`]).
///
/// # Errors
/// `42P10`, `55000`.
pub fn check_published(
    table: &catalog::Table,
    action: &ModifyAction,
    cx: &mut crate::context::ExecContext<'_>,
) -> Result<()> {
    use catalog::publication::Touching;
    let view = cx.catalog_tx.view();
    if view.publications().next().is_none() {
        return Ok(());
    }
    for event in events(action) {
        match event {
            TriggerEvent::Update => view.check_published(table, Touching::Update)?,
            TriggerEvent::Delete => view.check_published(table, Touching::Delete)?,
            _ => {}
        }
    }
    Ok(())
}

/// The same for the partitions that a scan will read.
fn check_published_parts(modify: &Modify, run: &mut Run<'_, '_>) -> Result<()> {
    fn scan_of<'p>(plan: &'p Plan, root: u32) -> Option<&'p sql::plan::PartitionScan> {
        match &plan.node {
            sql::plan::Node::PartitionScan(scan) if scan.table.oid == root => Some(scan),
            _ => plan.children().into_iter().find_map(|plan| scan_of(plan, root)),
        }
    }
    let view = run.cx.catalog_tx.view();
    if !modify.table.is_partitioned() || view.publications().next().is_none() {
        return Ok(());
    }
    let Some(scan) = scan_of(modify.action.input(), modify.table.oid) else { return Ok(()) };
    let format = run.cx.format;
    let mut value = |e: &Expr| eval::eval(e, Row::Empty, run).map(Some);
    let leaves = sql::prune::leaves(&view, &scan.table, &scan.prune, format, &mut value)?;
    leaves.iter().try_for_each(|leaf| check_published(leaf, &modify.action, run.cx))
}

impl ModifyOp {
    /// Before the first row.
    pub fn new(modify: &Modify, run: &mut Run<'_, '_>) -> Result<ModifyOp> {
        check_published(&modify.table, &modify.action, run.cx)?;
        for child in &modify.children {
            check_published(&child.table, &modify.action, run.cx)?;
        }
        check_published_parts(modify, run)?;
        // All of the input is read, whoever reads the changed rows; row by row where that can be seen.
        let input = run.reading(false, |run| {
            let by_row = run.goes_by_row();
            let input = build(modify.action.input(), run)?;
            Ok::<_, Error>(if by_row { Box::new(OneByOne::new(input)) } else { input })
        })?;
        let mut writer = Writer::open(&modify.table, &modify.indexes, run.cx)?;
        writer.keys.clone_from(&modify.checks.keys);
        let parts = modify.table.is_partitioned().then(|| Box::new(Parts::new(&modify.table)));
        writer.check_membership(run.cx)?;
        let mut children = Vec::with_capacity(modify.children.len());
        for child in &modify.children {
            let mut writer = Writer::open(&child.table, &child.indexes, run.cx)?;
            writer.keys.clone_from(&child.checks.keys);
            let (table, numbers) = (modify.table.clone(), child.numbers.clone());
            writer.root = Some(Root { table, numbers });
            children.push(writer);
        }
        let foreign = match modify.table.kind {
            catalog::TableKind::Foreign => Some(foreign::begin(modify, run)?),
            _ => None,
        };
        Ok(ModifyOp {
            input,
            writer,
            children,
            parts,
            changed: 0,
            done: false,
            returned: vec![],
            foreign,
            after: Vec::new(),
        })
    }

    fn run_all(&mut self, modify: &Modify, run: &mut Run<'_, '_>) -> Result<()> {
        let plan = modify.action.input();
        let types = types(plan, run.prepared);
        if self.parts.is_none() {
            self.writer.references =
                References::open(&modify.table, Touched::of(&modify.action), run.cx)?;
        }
        for (child, writer) in modify.children.iter().zip(&mut self.children) {
            let touched = inherited::touched(child, &modify.action);
            writer.references = References::open(&child.table, touched, run.cx)?;
        }
        self.open_triggers(modify, run)?;
        let instead = modify.table.kind == catalog::TableKind::View;
        while let Some(batch) = self.input.next(plan, run)? {
            sched::check_interrupts()?;
            // Another change may have gone on below.
            run.state.asks_places = modify.places;
            if self.foreign.is_some() {
                self.change_foreign(modify, &batch, &types, run)?;
                continue;
            }
            if instead {
                self.fire_instead(modify, &batch, &types, run)?;
                continue;
            }
            match &modify.action {
                ModifyAction::Insert { conflict: Some(conflict), .. } => {
                    self.insert_or_resolve(modify, conflict, &batch, &types, run)?;
                }
                ModifyAction::Insert { .. } if self.parts.is_some() => {
                    self.insert_routed(modify, &batch, &types, run)?;
                }
                ModifyAction::Insert { .. } => self.insert(modify, &batch, &types, run)?,
                ModifyAction::Merge { .. } => self.merge(modify, &batch, &types, run)?,
                _ => self.change(modify, &batch, &types, run)?,
            }
        }
        self.finish_foreign(run)?;
        self.writer.finish(run)?;
        self.children.iter_mut().try_for_each(|writer| writer.finish(run))?;
        if let Some(parts) = &mut self.parts {
            parts.finish(run)?;
        }
        self.finish_triggers(modify, run)?;
        self.returned.reverse();
        Ok(())
    }

    /// Opens the triggers of the tables, and fires those before the statement.
    fn open_triggers(&mut self, modify: &Modify, run: &mut Run<'_, '_>) -> Result<()> {
        let set = columns_set(&modify.action);
        self.writer.open_triggers(&modify.checks, Some(set), run.cx);
        let captures = self.writer.triggers.as_ref().map_or(0, |t| t.captures());
        if let Some(parts) = &mut self.parts {
            parts.capture(captures);
        }
        for (child, writer) in modify.children.iter().zip(&mut self.children) {
            let own = |n: &u16| child.numbers[usize::from(*n) - 1];
            let set = columns_set(&modify.action).iter().map(own).collect();
            writer.open_triggers(&child.checks, Some(set), run.cx);
            match &mut writer.triggers {
                Some(triggers) => triggers.capture(captures),
                None if captures != 0 => {
                    writer.triggers = Some(Triggers::capturing(&child.table, captures));
                }
                None => {}
            }
        }
        if self.writer.triggers.is_some() {
            for event in events(&modify.action) {
                self.writer.statement_triggers(event, TriggerTiming::Before, run)?;
            }
        }
        Ok(())
    }

    /// Fires the triggers after the statement; transition tables have the children's rows, too.
    fn finish_triggers(&mut self, modify: &Modify, run: &mut Run<'_, '_>) -> Result<()> {
        let Some(triggers) = &mut self.writer.triggers else { return Ok(()) };
        for (child, writer) in modify.children.iter().zip(&mut self.children) {
            if let Some(other) = &mut writer.triggers {
                let as_named = |row: &[Datum]| inherited::as_named(child, row);
                triggers.add_captured(other.take_captured(), &as_named, run.cx)?;
            }
        }
        if let Some(parts) = &mut self.parts {
            parts.give_captured(triggers, run.cx)?;
        }
        run.cx.tx.next_command();
        for event in events(&modify.action).into_iter().rev() {
            triggers.statement(event, TriggerTiming::After, run)?;
        }
        Ok(())
    }

    fn insert(
        &mut self,
        modify: &Modify,
        batch: &Batch,
        types: &[Oid],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        if modify.places {
            for n in 0..batch.rows {
                sched::check_interrupts()?;
                let mut row = rows::get(batch, n, types);
                if pipeline::insert(&mut self.writer, &mut row, &modify.checks, run)? {
                    self.changed += 1;
                    self.give_back(modify, row, &[Datum::Oid(0)], run)?;
                }
            }
            return Ok(());
        }
        let mut all: Vec<Vec<Datum>> =
            (0..batch.rows).map(|n| rows::get(batch, n, types)).collect();
        pipeline::insert_many(&mut self.writer, &mut all, &modify.checks, run)?;
        self.changed += all.len() as u64;
        if modify.returning.is_some() {
            for row in &all {
                self.give_back(modify, row.clone(), &[Datum::Oid(0)], run)?;
            }
        }
        Ok(())
    }

    /// Inserts rows into the partitions where they belong.
    fn insert_routed(
        &mut self,
        modify: &Modify,
        batch: &Batch,
        types: &[Oid],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        for n in 0..batch.rows {
            sched::check_interrupts()?;
            let mut row = rows::get(batch, n, types);
            let Some(parts) = &mut self.parts else { return Ok(()) };
            if modify.returning.is_none() {
                self.changed += u64::from(parts.add(modify, &mut row, run)?);
                continue;
            }
            if let Some((row, part)) = parts.insert(modify, row, run)? {
                self.changed += 1;
                self.give_back(modify, row, &[Datum::Oid(0), Datum::Oid(part)], run)?;
            }
        }
        match &mut self.parts {
            Some(parts) => parts.flush(run),
            None => Ok(()),
        }
    }

    /// Updates or deletes one row of a partition, which may go into another one. Returns the new row, or the
    /// deleted one, as the statement's table has it.
    fn change_routed(
        &mut self,
        modify: &Modify,
        input: &mut [Datum],
        run: &mut Run<'_, '_>,
    ) -> Result<Option<Vec<Datum>>> {
        let Some(parts) = &mut self.parts else { return Ok(None) };
        let Datum::Oid(id) = input[usize::from(modify.tableoid)] else { return Ok(None) };
        let at = parts.find(modify, id, run)?;
        let part = parts.at(at);
        match inherited::change_part(&mut part.writer, modify, &part.child, input, run)? {
            Changed::Row(row) => Ok(Some(part.named(row))),
            Changed::Moved(row) => {
                let row = part.named(row);
                let moved = parts.insert_moved(modify, row, run)?;
                Ok(moved.map(|(row, part)| {
                    input[usize::from(modify.tableoid)] = Datum::Oid(part);
                    row
                }))
            }
            _ => Ok(None),
        }
    }

    fn change(
        &mut self,
        modify: &Modify,
        batch: &Batch,
        types: &[Oid],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        if self.deletes_by_page(modify)? {
            return self.delete_by_page(modify, batch, types, run);
        }
        for n in 0..batch.rows {
            sched::check_interrupts()?;
            let mut input = rows::get(batch, n, types);
            if self.parts.is_some() {
                if let Some(row) = self.change_routed(modify, &mut input, run)? {
                    self.changed += 1;
                    self.give_back(modify, row, &input, run)?;
                }
                continue;
            }
            if let Some(at) = inherited::child_of(modify, &input) {
                foreign::expect_own(&modify.children[at].table)?;
                let (child, writer) = (&modify.children[at], &mut self.children[at]);
                if let Some(row) = inherited::change_row(writer, modify, child, &mut input, run)? {
                    self.changed += 1;
                    self.give_back(modify, row, &input, run)?;
                }
                continue;
            }
            let result = change_own_row(&mut self.writer, modify, &mut input, run)?;
            if let Changed::Row(row) = result {
                self.changed += 1;
                self.give_back(modify, row, &input, run)?;
            }
        }
        Ok(())
    }

    /// Gives rows of a view to the triggers that change it.
    fn fire_instead(
        &mut self,
        modify: &Modify,
        batch: &Batch,
        types: &[Oid],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        for n in 0..batch.rows {
            sched::check_interrupts()?;
            let input = rows::get(batch, n, types);
            let (event, old, mut new) = match &modify.action {
                ModifyAction::Update { columns, set, .. } => {
                    let old = old_row(modify, columns, &input);
                    let mut new = old.clone();
                    for (column, expr) in set {
                        new[usize::from(*column) - 1] = eval::eval(expr, Row::Values(&input), run)?;
                    }
                    (TriggerEvent::Update, Some(old), Some(new))
                }
                ModifyAction::Delete { columns, .. } => {
                    (TriggerEvent::Delete, Some(old_row(modify, columns, &input)), None)
                }
                ModifyAction::Insert { .. } | ModifyAction::Merge { .. } => {
                    (TriggerEvent::Insert, None, Some(input.clone()))
                }
            };
            let Some(triggers) = &mut self.writer.triggers else { continue };
            if !triggers.before_row(event, old.as_deref(), new.as_deref_mut(), run)? {
                continue;
            }
            self.changed += 1;
            let input = match event {
                TriggerEvent::Insert => vec![Datum::Oid(0)],
                _ => input,
            };
            if let Some(row) = new.or(old) {
                self.give_back(modify, row, &input, run)?;
            }
        }
        Ok(())
    }

    /// Keeps a row for RETURNING.
    fn give_back(
        &mut self,
        modify: &Modify,
        mut row: Vec<Datum>,
        input: &[Datum],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let Some(exprs) = &modify.returning else {
            return Ok(());
        };
        row.extend_from_slice(input);
        if modify.places {
            if let ModifyAction::Insert { .. } = modify.action {
                row.resize(modify.table.columns.len() + 2, Datum::Null);
            }
            let placed = run.state.placed.take();
            row.extend(PLACED.iter().map(|column| match placed {
                Some((tid, system)) => {
                    let version = Version { tid, root: tid, system };
                    system_value(*column, modify.table.oid, version)
                }
                None => Datum::Null,
            }));
        }
        let values = eval::eval_all(exprs, Row::Values(&row), run)?;
        if self.returned.last().is_none_or(|b| b.rows >= BATCH_ROWS) {
            let types: Vec<Oid> = exprs.iter().map(|e| e.ty()).collect();
            self.returned.push(rows::empty(&types));
        }
        if let Some(batch) = self.returned.last_mut() {
            rows::push(batch, values)?;
        }
        Ok(())
    }
}

impl Operator for ModifyOp {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let sql::plan::Node::Modify(modify) = &plan.node else {
            return Err(wrong_node());
        };
        if !std::mem::replace(&mut self.done, true) {
            let watched = !modify.table.triggers.is_empty();
            if watched {
                run.cx.hooks.deferred().changing.push(modify.table.oid);
            }
            let result = self.run_all(modify, run);
            if watched {
                run.cx.hooks.deferred().changing.pop();
            }
            result?;
        }
        Ok(self.returned.pop())
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        Err(base::Error::internal("a change of rows can't run twice"))
    }

    fn changed(&self) -> Option<u64> {
        Some(self.changed)
    }
}

//! The short path: statements that touch one row by its key run without batches and operators.
//!
//! What can be derived from the plan (open tables, codecs, projections) is made at the plan's first
//! run and kept with it, shared by all sessions. The shapes:
//!
//! * `SELECT expressions` without a table;
//! * `SELECT … WHERE` all columns of a unique index are given;
//! * `INSERT` of one row;
//! * `UPDATE` and `DELETE` by all columns of a unique index;
//! * the same in a partitioned table ([`partitions`]).

mod partitions;

use std::sync::Arc;

use access::{BTree, RowWait};
use base::{RelId, Result, TupleId};
use sql::plan::{Modify, ModifyAction, Node, Scan};
use sql::{Expr, Plan, Prepared, Statement};
use txn::RowLockMode;
use types::Datum;

use crate::context::{ExecContext, Outcome, RowSink};
use crate::eval;
use crate::modify::pipeline::Changed;
use crate::modify::{self, References, Touched, WriteTarget, Writer};
use crate::ops::index_bounds;
use crate::rows::Row;
use crate::run::{ExecState, Run};
use crate::table::{KeyCodec, Projection, TableHandle, Version};
use crate::tally::Pages;

/// How often a change that finds its row taken begins anew; after that it waits with its snapshot.
const ATTEMPTS: u32 = 8;

/// What is kept with a plan.
enum Short {
    /// The general way.
    No,
    /// SELECT without a table.
    Expressions,
    /// A point query.
    Select(Point),
    /// INSERT of one row.
    Insert(Arc<WriteTarget>),
    /// UPDATE or DELETE of one row.
    Change(Point, Arc<WriteTarget>),
    /// One of these in a partitioned table.
    Partitions(partitions::Leaves),
}

/// One row by a unique key.
struct Point {
    table: TableHandle,
    tree: BTree,
    codec: KeyCodec,
    projection: Projection,
}

/// `[Project over] IndexScan` with a unique key: the parts of the plan.
struct PointPlan<'p> {
    scan: &'p Scan,
    equal: &'p [Expr],
    index: &'p Arc<catalog::Index>,
    project: Option<&'p [Expr]>,
}

fn point_plan(plan: &Plan) -> Option<PointPlan<'_>> {
    let (plan, project) = match &plan.node {
        Node::Project { input, exprs } => (&**input, Some(&exprs[..])),
        _ => (plan, None),
    };
    let Node::IndexScan { scan, index, bounds, .. } = &plan.node else {
        return None;
    };
    let full = index.unique
        && !index.deferrable
        && bounds.equal.len() == index.columns.len()
        && bounds.is_plain();
    full.then_some(PointPlan { scan, equal: &bounds.equal, index, project })
}

/// The expressions of a plan for one row without a table.
fn one_row(plan: &Plan) -> Option<&[Expr]> {
    match &plan.node {
        Node::Project { input, exprs } => match &input.node {
            Node::OneRow => Some(exprs),
            Node::Values(rows) if rows.len() == 1 => {
                let plain = exprs.len() == rows[0].len()
                    && exprs
                        .iter()
                        .enumerate()
                        .all(|(n, e)| matches!(e, Expr::Column(c, _) if usize::from(*c) == n));
                plain.then_some(&rows[0][..])
            }
            _ => None,
        },
        Node::Values(rows) if rows.len() == 1 => Some(&rows[0]),
        _ => None,
    }
}

fn open_point(plan: &PointPlan<'_>, cx: &ExecContext<'_>) -> Result<Option<Point>> {
    let projection = Projection::new(&plan.scan.table, &plan.scan.columns);
    if projection.system {
        return Ok(None);
    }
    Ok(Some(Point {
        table: TableHandle::open(cx.engine, &plan.scan.table, cx.format)?,
        tree: BTree::open(&cx.engine.storage, RelId(plan.index.rel)),
        codec: KeyCodec::new(&plan.scan.table, plan.index),
        projection,
    }))
}

fn compile(prepared: &Prepared, cx: &mut ExecContext<'_>) -> Result<Short> {
    let Statement::Query(plan) = &prepared.statement else {
        return Ok(Short::No);
    };
    if prepared.slots > 0 || !prepared.subplans.is_empty() {
        return Ok(Short::No);
    }
    if one_row(plan).is_some() {
        return Ok(Short::Expressions);
    }
    if let Some(point) = point_plan(plan) {
        return Ok(open_point(&point, cx)?.map_or(Short::No, Short::Select));
    }
    if partitions::scan_of(plan).is_some() {
        return Ok(Short::Partitions(partitions::Leaves::new()));
    }
    let Node::Modify(modify) = &plan.node else {
        return Ok(Short::No);
    };
    // Triggers fire on the general way, which also knows where rows come to be.
    let table = &modify.table;
    if modify.places
        || !table.triggers.is_empty()
        || table.bound.is_some()
        || table.foreign.is_some()
    {
        return Ok(Short::No);
    }
    if table.is_partitioned() {
        if cx.catalog_tx.view().has_foreign_parts(table) {
            return Ok(Short::No);
        }
        let fits = match &modify.action {
            ModifyAction::Insert { input, conflict: None } => one_row(input).is_some(),
            ModifyAction::Update { input, .. } | ModifyAction::Delete { input, .. } => {
                partitions::scan_of(input).is_some()
            }
            ModifyAction::Insert { .. } | ModifyAction::Merge { .. } => false,
        };
        let leaves = || Short::Partitions(partitions::Leaves::new());
        return Ok(if fits { leaves() } else { Short::No });
    }
    crate::modify::check_published(table, &modify.action, cx)?;
    let open = || WriteTarget::open(&modify.table, &modify.indexes, cx).map(Arc::new);
    match &modify.action {
        ModifyAction::Insert { input, conflict: None } if one_row(input).is_some() => {
            Ok(Short::Insert(open()?))
        }
        ModifyAction::Update { input, .. } | ModifyAction::Delete { input, .. } => {
            let Some(plan) = point_plan(input) else {
                return Ok(Short::No);
            };
            match open_point(&plan, cx)? {
                Some(point) => Ok(Short::Change(point, open()?)),
                None => Ok(Short::No),
            }
        }
        ModifyAction::Insert { .. } | ModifyAction::Merge { .. } => Ok(Short::No),
    }
}

/// Runs the statement if it has one of the shapes; else None, and nothing was done.
///
/// # Errors
/// The statement's.
pub fn run(
    prepared: &Arc<Prepared>,
    cx: &mut ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Option<Outcome>> {
    let kept = prepared.executor.get_or_init(|| compile(prepared, cx).unwrap_or(Short::No));
    let (Some(short), Statement::Query(plan)) = (kept, &prepared.statement) else {
        return Ok(None);
    };
    if matches!(short, Short::No) {
        return Ok(None);
    }
    let (params, snapshot) = (cx.params, cx.snapshot);
    let mut state = ExecState::default();
    let mut run = Run { cx, prepared, params, snapshot, state: &mut state };
    let rows = match (short, &plan.node) {
        (Short::Expressions, _) => expressions(plan, &mut run, sink)?,
        (Short::Select(point), _) => select(point, plan, &mut run, sink)?,
        (Short::Insert(target), Node::Modify(modify)) => insert(target, modify, &mut run, sink)?,
        (Short::Change(point, target), Node::Modify(modify)) => {
            change(point, target, modify, &mut run, sink)?
        }
        (Short::Partitions(leaves), Node::Modify(modify)) => {
            let done = match &modify.action {
                ModifyAction::Insert { input, .. } => {
                    let exprs = one_row(input).unwrap_or_default();
                    partitions::insert(leaves, modify, exprs, &mut run, sink)?
                }
                _ => partitions::change(leaves, modify, &mut run, sink)?,
            };
            match done {
                Some(rows) => rows,
                None => return Ok(None),
            }
        }
        (Short::Partitions(leaves), _) => match partitions::select(leaves, plan, &mut run, sink)? {
            Some(rows) => rows,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(Some(Outcome { rows, tag: None }))
}

fn expressions(plan: &Plan, run: &mut Run<'_, '_>, sink: &mut dyn RowSink) -> Result<u64> {
    let exprs = one_row(plan).unwrap_or_default();
    let values = eval::eval_all(exprs, Row::Empty, run)?;
    // CALL of a procedure that returns nothing has an expression, but no columns.
    if values.len() == run.prepared.columns.len() {
        sink.row(&values)?;
    }
    Ok(1)
}

/// The visible row with the key, if it passes the scan's filter: the scan's columns, or what the
/// projection makes of them.
fn read(point: &Point, plan: &PointPlan<'_>, run: &mut Run<'_, '_>) -> Result<Option<Vec<Datum>>> {
    let mut key = Vec::with_capacity(32);
    if !index_bounds::point(&point.codec, plan.equal, run, &mut key)? {
        return Ok(None);
    }
    let before = Pages::now(run.cx.task());
    let mut first = None;
    let mut more: Vec<TupleId> = Vec::new();
    point.tree.lookup(run.cx.tx, &key, |root| {
        if first.is_none() {
            first = Some(root);
        } else {
            more.push(root);
        }
        true
    })?;
    let entries = usize::from(first.is_some()) + more.len();
    let tx = run.cx.tx;
    let counts = run.cx.tally.of(plan.index.oid);
    counts.scans += 1;
    counts.returned += entries as u64;
    let mut before = before.count(tx.locks().task(), counts);
    let mut values = Vec::with_capacity(plan.scan.columns.len());
    for root in first.into_iter().chain(more) {
        let found = point.table.heap.fetch(run.cx.tx, &run.snapshot, root, |tid, bytes| {
            let at = Version::new(tid, root);
            point.projection.row(&point.table.columns, at, bytes, &mut values)
        })?;
        before = before.count(tx.locks().task(), run.cx.tally.of(plan.scan.table.oid));
        if found.transpose()?.is_none() {
            continue;
        }
        run.cx.tally.of(plan.index.oid).fetched += 1;
        if let Some(filter) = &plan.scan.filter
            && !eval::holds(filter, Row::Values(&values), run)?
        {
            return Ok(None);
        }
        return match plan.project {
            Some(exprs) => eval::eval_all(exprs, Row::Values(&values), run).map(Some),
            None => Ok(Some(values)),
        };
    }
    Ok(None)
}

fn select(
    point: &Point,
    plan: &Plan,
    run: &mut Run<'_, '_>,
    sink: &mut dyn RowSink,
) -> Result<u64> {
    let Some(plan) = point_plan(plan) else {
        return Ok(0);
    };
    match read(point, &plan, run)? {
        Some(values) => {
            sink.row(&values)?;
            Ok(1)
        }
        None => Ok(0),
    }
}

/// Sends what RETURNING asks for.
fn give_back(
    modify: &Modify,
    mut row: Vec<Datum>,
    input: &[Datum],
    run: &mut Run<'_, '_>,
    sink: &mut dyn RowSink,
) -> Result<()> {
    let Some(exprs) = &modify.returning else {
        return Ok(());
    };
    row.extend_from_slice(input);
    let values = eval::eval_all(exprs, Row::Values(&row), run)?;
    sink.row(&values)
}

fn insert(
    target: &Arc<WriteTarget>,
    modify: &Modify,
    run: &mut Run<'_, '_>,
    sink: &mut dyn RowSink,
) -> Result<u64> {
    let exprs = one_row(modify.action.input()).unwrap_or_default();
    let mut row = eval::eval_all(exprs, Row::Empty, run)?;
    let mut writer = Writer::new(target.clone());
    writer.keys.clone_from(&modify.checks.keys);
    writer.references = References::open(&modify.table, Touched::of(&modify.action), run.cx)?;
    modify::pipeline::insert(&mut writer, &mut row, &modify.checks, run)?;
    writer.finish(run)?;
    if modify.returning.is_some() {
        give_back(modify, row, &[Datum::Oid(0)], run, sink)?;
    }
    Ok(1)
}

/// Reads the row that is to be changed. While somebody else is changing it the statement waits for
/// its turn without a snapshot, and then begins anew: it has done nothing yet.
fn claim(
    point: &Point,
    plan: &PointPlan<'_>,
    action: &ModifyAction,
    run: &mut Run<'_, '_>,
) -> Result<Option<Vec<Datum>>> {
    let mode = match action {
        ModifyAction::Delete { .. } => RowLockMode::Update,
        _ => RowLockMode::NoKeyUpdate,
    };
    loop {
        let Some(input) = read(point, plan, run)? else {
            return Ok(None);
        };
        let Some((tid, root)) = modify::target(&input) else {
            return Ok(Some(input));
        };
        if point.table.heap.await_row(run.cx.tx, tid, root, mode)? {
            return Ok(Some(input));
        }
        run.snapshot = run.cx.tx.snapshot();
        run.cx.snapshot = run.snapshot;
    }
}

fn change(
    point: &Point,
    target: &Arc<WriteTarget>,
    modify: &Modify,
    run: &mut Run<'_, '_>,
    sink: &mut dyn RowSink,
) -> Result<u64> {
    let Some(plan) = point_plan(modify.action.input()) else {
        return Ok(0);
    };
    let mut writer = Writer::new(target.clone());
    writer.keys.clone_from(&modify.checks.keys);
    let anew = run.cx.tx.isolation().is_by_statement();
    let mut attempts = if anew { ATTEMPTS } else { 0 };
    let (input, row) = loop {
        let Some(mut input) = claim(point, &plan, &modify.action, run)? else {
            return Ok(0);
        };
        writer.references = References::open(&modify.table, Touched::of(&modify.action), run.cx)?;
        writer.wait = if attempts > 0 { RowWait::Try } else { RowWait::Block };
        match modify::change_own_row(&mut writer, modify, &mut input, run)? {
            Changed::Row(row) | Changed::Moved(row) => break (input, row),
            Changed::Nothing | Changed::Gone | Changed::SelfChanged => {
                writer.finish(run)?;
                return Ok(0);
            }
            Changed::Busy => attempts -= 1,
        }
    };
    writer.finish(run)?;
    give_back(modify, row, &input, run, sink)?;
    Ok(1)
}

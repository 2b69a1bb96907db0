//! The short path into a partitioned table: a statement that touches one row by a key that says which partition has
//! it, and INSERT of one row.
//!
//! ```text
//!   key ─► place among the bounds ─► partition, locked ─► kept leaf (opened with the plan) ─► row
//! ```
//!
//! The plan keeps what it has opened of a partition, shared by all sessions. A kept leaf counts only while the
//! catalog has the very table and indexes that it was made of, which is asked when the partition is locked.

use std::collections::HashMap;
use std::sync::Arc;

use access::RowWait;
use base::{Result, WaitEvent};
use catalog::{Index, Snapshot, Table};
use sql::Plan;
use sql::plan::{Modify, ModifyAction, ModifyChild, Node, PartitionScan};
use txn::LockMode;
use types::Datum;

use super::{ATTEMPTS, Point, PointPlan, claim, give_back, open_point, point_plan, read};
use crate::context::RowSink;
use crate::eval;
use crate::modify::parts::{self, Parts};
use crate::modify::pipeline::{self, Changed};
use crate::modify::{Membership, References, Root, Touched, WriteTarget, Writer};
use crate::partition::{self, Belongs, Router};
use crate::rows::Row;
use crate::run::Run;

/// Leaves that a plan keeps, at most.
const KEPT: usize = 16_384;

/// Parts of the kept leaves with locks of their own.
const SHARDS: usize = 16;

/// What a statement has opened of a partitioned table.
pub struct Leaves {
    shards: [sched::LwLock<Kept>; SHARDS],
    router: sched::Mutex<Option<Router>>,
}

/// Kept leaves by partition. Those that were opened before the younger ones became too many are the next to go.
#[derive(Default)]
struct Kept {
    young: HashMap<u32, Arc<Leaf>>,
    old: HashMap<u32, Arc<Leaf>>,
}

impl Kept {
    fn get(&self, id: u32) -> Option<Arc<Leaf>> {
        self.young.get(&id).or_else(|| self.old.get(&id)).cloned()
    }

    /// Returns entries that the caller drops without the lock.
    #[must_use]
    fn insert(&mut self, id: u32, leaf: Arc<Leaf>) -> HashMap<u32, Arc<Leaf>> {
        let mut gone = HashMap::new();
        if self.young.len() >= KEPT / SHARDS / 2 {
            gone = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
        }
        self.young.insert(id, leaf);
        gone
    }
}

/// A partition, opened.
struct Leaf {
    table: Arc<Table>,
    indexes: Vec<Arc<Index>>,
    /// The scan of the partition alone (SELECT, UPDATE, DELETE).
    scan: Option<(Plan, Point)>,
    /// Its side of a change.
    write: Option<LeafWrite>,
}

struct LeafWrite {
    target: Arc<WriteTarget>,
    child: ModifyChild,
    /// Rows may be asked to go elsewhere.
    moves: bool,
    /// Its rows look like the table's.
    identity: bool,
}

/// The scan of a partitioned table by a unique key, and what is computed of its rows.
pub fn scan_of(plan: &Plan) -> Option<(&PartitionScan, Option<&[sql::Expr]>)> {
    let (plan, project) = match &plan.node {
        Node::Project { input, exprs } => (&**input, Some(&exprs[..])),
        _ => (plan, None),
    };
    let Node::PartitionScan(scan) = &plan.node else { return None };
    point_plan(&scan.scan).filter(|point| point.project.is_none())?;
    Some((scan, project))
}

impl Leaves {
    /// Nothing is open.
    pub fn new() -> Leaves {
        Leaves {
            shards: std::array::from_fn(|_| {
                sched::LwLock::new(WaitEvent::LWLockPlanCache, Kept::default())
            }),
            router: sched::Mutex::new(WaitEvent::LWLockPlanCache, None),
        }
    }

    /// A partition, locked; None: the short path does not lead there.
    fn open(
        &self,
        id: u32,
        mode: LockMode,
        scan: Option<&PartitionScan>,
        modify: Option<&Modify>,
        run: &mut Run<'_, '_>,
    ) -> Result<Option<Arc<Leaf>>> {
        let table = partition::open(run.cx, id, mode)?;
        let view = run.cx.catalog_tx.view();
        let shard = &self.shards[id as usize % SHARDS];
        let kept = shard.read().get(id);
        if let Some(leaf) = kept.filter(|leaf| leaf.is_current(&table, &view)) {
            return Ok(Some(leaf));
        }
        if modify.is_some() && !table.triggers.is_empty() {
            return Ok(None);
        }
        let scan = match scan {
            Some(scan) => {
                let own = partition::instantiate(scan, &table, &view)?;
                let opened = match point_plan(&own) {
                    Some(point) => open_point(&point, run.cx)?,
                    None => None,
                };
                match opened {
                    Some(point) => Some((own, point)),
                    None => return Ok(None),
                }
            }
            None => None,
        };
        let write = match modify {
            Some(modify) => Some(LeafWrite::open(modify, &table, run)?),
            None => None,
        };
        let indexes = view.indexes_of(&table);
        let leaf = Arc::new(Leaf { table, indexes, scan, write });
        let gone = shard.write().insert(id, leaf.clone());
        drop(gone);
        Ok(Some(leaf))
    }
}

impl Leaf {
    fn is_current(&self, table: &Arc<Table>, view: &Snapshot) -> bool {
        let same =
            |index: &Arc<Index>| view.index(index.oid).is_some_and(|i| Arc::ptr_eq(i, index));
        Arc::ptr_eq(&self.table, table) && self.indexes.iter().all(same)
    }
}

impl LeafWrite {
    fn open(modify: &Modify, table: &Arc<Table>, run: &mut Run<'_, '_>) -> Result<LeafWrite> {
        crate::modify::check_published(table, &modify.action, run.cx)?;
        let child = parts::child(&modify.table, modify, table, run.cx)?;
        let target = Arc::new(WriteTarget::open(table, &child.indexes, run.cx)?);
        let moves = parts::may_move(&run.cx.catalog_tx.view(), table, &child);
        let identity = partition::is_identity(&child.numbers, table);
        Ok(LeafWrite { target, child, moves, identity })
    }

    fn writer(&self, modify: &Modify, run: &mut Run<'_, '_>) -> Result<Writer> {
        let mut writer = Writer::new(self.target.clone());
        writer.keys.clone_from(&self.child.checks.keys);
        let (table, numbers) = (modify.table.clone(), self.child.numbers.clone());
        writer.root = Some(Root { table, numbers });
        if self.moves && matches!(modify.action, ModifyAction::Update { .. }) {
            let belongs = Belongs::open(&self.child.table, 0, run.cx)?;
            writer.membership = belongs.map_or(Membership::Any, Membership::Moves);
        }
        Ok(writer)
    }
}

/// The only partition that may have the row.
enum Place {
    /// None has it.
    Nowhere,
    /// This one.
    In(u32),
    /// Several may: the general way is taken.
    Several,
}

fn place(scan: &PartitionScan, run: &mut Run<'_, '_>) -> Result<Place> {
    let view = run.cx.catalog_tx.view();
    if view.has_detaching() {
        return Ok(Place::Several);
    }
    let format = run.cx.format;
    let mut value = |e: &sql::Expr| eval::eval(e, Row::Empty, run).map(Some);
    let found = sql::prune::leaves(&view, &scan.table, &scan.prune, format, &mut value)?;
    Ok(match &found[..] {
        [] => Place::Nowhere,
        [one] => Place::In(one.oid),
        _ => Place::Several,
    })
}

/// A point query; None: the general way is taken.
///
/// # Errors
/// The statement's.
pub fn select(
    leaves: &Leaves,
    plan: &Plan,
    run: &mut Run<'_, '_>,
    sink: &mut dyn RowSink,
) -> Result<Option<u64>> {
    let Some((scan, project)) = scan_of(plan) else { return Ok(None) };
    let id = match place(scan, run)? {
        Place::Nowhere => return Ok(Some(0)),
        Place::In(id) => id,
        Place::Several => return Ok(None),
    };
    let leaf = leaves.open(id, LockMode::AccessShare, Some(scan), None, run)?;
    let Some((own, point)) = leaf.as_ref().and_then(|leaf| leaf.scan.as_ref()) else {
        return Ok(None);
    };
    let Some(found) = point_plan(own) else { return Ok(None) };
    match read(point, &PointPlan { project, ..found }, run)? {
        Some(values) => {
            sink.row(&values)?;
            Ok(Some(1))
        }
        None => Ok(Some(0)),
    }
}

/// UPDATE or DELETE of one row; None: the general way is taken, and nothing was done.
///
/// # Errors
/// The statement's.
pub fn change(
    leaves: &Leaves,
    modify: &Modify,
    run: &mut Run<'_, '_>,
    sink: &mut dyn RowSink,
) -> Result<Option<u64>> {
    let Some((scan, project)) = scan_of(modify.action.input()) else { return Ok(None) };
    let id = match place(scan, run)? {
        Place::Nowhere => return Ok(Some(0)),
        Place::In(id) => id,
        Place::Several => return Ok(None),
    };
    let Some(leaf) = leaves.open(id, LockMode::RowExclusive, Some(scan), Some(modify), run)? else {
        return Ok(None);
    };
    let (Some((own, point)), Some(write)) = (&leaf.scan, &leaf.write) else { return Ok(None) };
    let Some(found) = point_plan(own) else { return Ok(None) };
    let plan = PointPlan { project, ..found };
    let mut writer = write.writer(modify, run)?;
    let touched = crate::modify::touched(&write.child, &modify.action);
    let anew = run.cx.tx.isolation().is_by_statement();
    let mut attempts = if anew { ATTEMPTS } else { 0 };
    let (mut input, row) = loop {
        let Some(mut input) = claim(point, &plan, &modify.action, run)? else {
            return Ok(Some(0));
        };
        writer.references = References::open(&leaf.table, touched, run.cx)?;
        writer.wait = if attempts > 0 { RowWait::Try } else { RowWait::Block };
        match crate::modify::change_part(&mut writer, modify, &write.child, &mut input, run)? {
            Changed::Row(row) => break (input, Some(crate::modify::as_named(&write.child, &row))),
            Changed::Moved(row) => {
                let row = crate::modify::as_named(&write.child, &row);
                let mut others = Parts::new(&modify.table);
                let moved = others.insert_moved(modify, row, run)?;
                others.finish(run)?;
                let part = moved.as_ref().map(|(_, part)| *part);
                if let Some(part) = part {
                    input[usize::from(modify.tableoid)] = Datum::Oid(part);
                }
                break (input, moved.map(|(row, _)| row));
            }
            Changed::Nothing | Changed::Gone | Changed::SelfChanged => {
                writer.finish(run)?;
                return Ok(Some(0));
            }
            Changed::Busy => attempts -= 1,
        }
    };
    writer.finish(run)?;
    let Some(row) = row else { return Ok(Some(0)) };
    give_back(modify, row, std::mem::take(&mut input).as_slice(), run, sink)?;
    Ok(Some(1))
}

/// INSERT of one row; None: the general way is taken, and nothing was done.
///
/// # Errors
/// The statement's.
pub fn insert(
    leaves: &Leaves,
    modify: &Modify,
    exprs: &[sql::Expr],
    run: &mut Run<'_, '_>,
    sink: &mut dyn RowSink,
) -> Result<Option<u64>> {
    let row = eval::eval_all(exprs, Row::Empty, run)?;
    let kept = leaves.router.lock().take();
    let kept = kept.filter(|router| router.is_current(run));
    let mut router = kept.unwrap_or_else(|| Router::new(&modify.table));
    let id = router.route(&row, run);
    if id.is_ok() && router.is_plain() {
        *leaves.router.lock() = Some(router);
    }
    let id = id?;
    let leaf = leaves.open(id, LockMode::RowExclusive, None, Some(modify), run)?;
    let Some((leaf, write)) = leaf.as_ref().and_then(|l| Some((l, l.write.as_ref()?))) else {
        let mut others = Parts::new(&modify.table);
        let inserted = others.insert(modify, row, run)?;
        others.finish(run)?;
        let Some((row, part)) = inserted else { return Ok(Some(0)) };
        give_back(modify, row, &[Datum::Oid(0), Datum::Oid(part)], run, sink)?;
        return Ok(Some(1));
    };
    let mut writer = write.writer(modify, run)?;
    writer.references = References::open(&leaf.table, Touched::Insert, run.cx)?;
    let mut own = match write.identity {
        true => row,
        false => crate::modify::as_own(&write.child, row),
    };
    pipeline::insert(&mut writer, &mut own, &write.child.checks, run)?;
    writer.finish(run)?;
    if modify.returning.is_some() {
        let row = match write.identity {
            true => own,
            false => crate::modify::as_named(&write.child, &own),
        };
        give_back(modify, row, &[Datum::Oid(0), Datum::Oid(leaf.table.oid)], run, sink)?;
    }
    Ok(Some(1))
}

//! Locks rows (FOR UPDATE and kin).

use std::collections::HashMap;

use access::LockResult;
use access::heap::RowWait;
use base::{Result, err};
use sql::Plan;
use sql::plan::{LockRowsWait, LockTarget, Node, ScanColumn};
use types::{Batch, Datum};

use crate::eval;
use crate::ops::operator::{Operator, types, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;
use crate::table::{Projection, TableHandle, Version};

/// See the module's documentation.
pub struct LockRows {
    input: Box<dyn Operator>,
    tables: Vec<(TableHandle, Projection)>,
    /// Those of partitions, by target and oid.
    parts: HashMap<(usize, u32), (TableHandle, Projection)>,
    /// Input that has not been looked at yet, from this row on.
    rest: Option<(Batch, usize)>,
    /// How many more rows will be asked for: others are not locked.
    wanted: u64,
}

impl LockRows {
    /// Over an input.
    pub fn new(
        input: Box<dyn Operator>,
        targets: &[LockTarget],
        run: &mut Run<'_, '_>,
    ) -> Result<LockRows> {
        let mut tables = Vec::new();
        for target in targets {
            let handle = TableHandle::open(run.cx.engine, &target.table, run.cx.format)?;
            let columns: Vec<ScanColumn> = target.columns.iter().map(|(_, c)| *c).collect();
            tables.push((handle, Projection::new(&target.table, &columns)));
        }
        let parts = HashMap::new();
        Ok(LockRows { input, tables, parts, rest: None, wanted: u64::MAX })
    }

    /// Opens the partition that a row is in.
    fn open_part(
        &mut self,
        number: usize,
        target: &LockTarget,
        row: &[Datum],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let Some(Datum::Oid(id)) = target.tableoid.map(|at| &row[usize::from(at)]) else {
            return Ok(());
        };
        if self.parts.contains_key(&(number, *id)) {
            return Ok(());
        }
        let table = crate::partition::open(run.cx, *id, txn::LockMode::RowShare)?;
        let numbers = crate::partition::numbers(&target.table, &table);
        let column = |c: &ScanColumn| match c {
            ScanColumn::Attr(n) => ScanColumn::Attr(numbers[usize::from(*n) - 1]),
            other => *other,
        };
        let columns: Vec<ScanColumn> = target.columns.iter().map(|(_, c)| column(c)).collect();
        let handle = TableHandle::open(run.cx.engine, &table, run.cx.format)?;
        let projection = Projection::new(&table, &columns);
        self.parts.insert((number, *id), (handle, projection));
        Ok(())
    }

    /// Locks one table's row; false when the input row falls out.
    fn lock(
        &mut self,
        number: usize,
        target: &LockTarget,
        row: &mut [Datum],
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        if target.table.is_partitioned() {
            self.open_part(number, target, row, run)?;
        } else if let Some(place) = target.tableoid
            && row[usize::from(place)] != Datum::Oid(target.table.oid)
        {
            return Ok(true);
        }
        let place = usize::from(target.tid);
        let (Datum::Tid(tid), Datum::Tid(root)) = (&row[place], &row[place + 1]) else {
            return Ok(true);
        };
        let (tid, root) = (*tid, *root);
        let part = target.tableoid.and_then(|at| match row[usize::from(at)] {
            Datum::Oid(id) => self.parts.get(&(number, id)),
            _ => None,
        });
        let (handle, projection) = part.unwrap_or(&self.tables[number]);
        // Rows of foreign tables have no locks here.
        if handle.table.foreign.is_some() {
            return Ok(true);
        }
        let wait = match target.wait {
            LockRowsWait::Block => RowWait::Block,
            LockRowsWait::NoWait | LockRowsWait::Skip => RowWait::Try,
        };
        let result = handle.heap.lock(run.cx.tx, &run.snapshot, tid, root, target.mode, wait)?;
        match result {
            LockResult::Locked => Ok(true),
            LockResult::Gone => Ok(false),
            LockResult::WouldBlock if target.wait == LockRowsWait::Skip => Ok(false),
            LockResult::WouldBlock => Err(err!(
                LOCK_NOT_AVAILABLE,
                "could not obtain lock on row in relation \"{}\"",
                handle.table.name
            )),
            LockResult::Changed { newest } => {
                let at = Version { tid: newest.tid, root: newest.root, system: newest.system };
                let mut values = Vec::new();
                projection.row(&handle.columns, at, &newest.data, &mut values)?;
                for ((place, _), value) in target.columns.iter().zip(values) {
                    row[usize::from(*place)] = value;
                }
                row[place] = Datum::Tid(newest.tid);
                row[place + 1] = Datum::Tid(newest.root);
                match &target.recheck {
                    Some(condition) => eval::holds(condition, Row::Values(row), run),
                    None => Ok(true),
                }
            }
        }
    }
}

impl Operator for LockRows {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::LockRows { input, targets } = &plan.node else {
            return Err(wrong_node());
        };
        let types = types(input, run.prepared);
        while self.wanted > 0 {
            let next = match self.rest.take() {
                Some(rest) => Some(rest),
                None => self.input.next(input, run)?.map(|batch| (batch, 0)),
            };
            let Some((batch, mut at)) = next else { break };
            let mut out = rows::empty(&types);
            'rows: while at < batch.rows && (out.rows as u64) < self.wanted {
                sched::check_interrupts()?;
                let mut row = rows::get(&batch, at, &types);
                at += 1;
                for (number, target) in targets.iter().enumerate() {
                    if !self.lock(number, target, &mut row, run)? {
                        continue 'rows;
                    }
                }
                rows::push(&mut out, row)?;
            }
            self.wanted -= out.rows as u64;
            if at < batch.rows {
                self.rest = Some((batch, at));
            }
            if out.rows > 0 {
                return Ok(Some(out));
            }
        }
        Ok(None)
    }

    fn hasten(&mut self) {
        self.input.hasten();
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::LockRows { input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        (self.rest, self.wanted) = (None, u64::MAX);
        self.input.rescan(input, run)
    }

    fn bound(&mut self, rows: u64) {
        self.wanted = rows;
    }
}

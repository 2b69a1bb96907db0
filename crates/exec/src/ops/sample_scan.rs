//! TABLESAMPLE: rows (BERNOULLI) or pages (SYSTEM) chosen by a hash of their place and a seed, so
//! that one seed always chooses the same of an unchanged table. Of the extensions `tsm_system_rows` and
//! `tsm_system_time`: pages in an order of chance, until there are so many rows, or so much time has gone.

use std::hash::Hasher;
use std::time::{Duration, Instant};

use base::{Result, TupleId, err};
use sql::Plan;
use sql::plan::{Node, SampleMethod, Scan, ScanColumn};
use types::batch::BATCH_ROWS;
use types::{Batch, Datum};

use super::before_error::Postponed;
use super::grouping::Fx;
use super::seq_scan::SeqScan;
use crate::eval;
use crate::ops::before_error::filtered;
use crate::ops::operator::{Operator, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;
use crate::table::{Projection, TableHandle, Version};

/// See the module's documentation.
pub struct SampleScan {
    scan: SeqScan,
    /// Of the methods that read pages until they have enough.
    pages: Option<Pages>,
    /// The scan's columns end with the row's place, which is dropped again.
    chosen: Option<Choice>,
    postponed: Postponed,
}

/// Which places are chosen.
struct Choice {
    seed: u64,
    /// Hashes below this are in.
    limit: u64,
    method: SampleMethod,
}

impl Choice {
    fn takes(&self, tid: TupleId) -> bool {
        let mut hash = Fx::default();
        hash.write_u64(self.seed);
        hash.write_u32(tid.block);
        if self.method == SampleMethod::Bernoulli {
            hash.write_u32(u32::from(tid.offset));
        }
        // Another round spreads what is close together.
        let first = hash.finish();
        hash.write_u64(first ^ first >> 29);
        (hash.finish() & u64::from(u32::MAX)) < self.limit
    }
}

impl SampleScan {
    /// Before the first row.
    ///
    /// # Errors
    /// When the table can't be opened.
    pub fn new(scan: &Scan, run: &mut Run<'_, '_>) -> Result<SampleScan> {
        let mut columns = scan.columns.clone();
        columns.push(ScanColumn::Tid);
        let with_place = Scan { table: scan.table.clone(), columns, filter: None, alias: None };
        Ok(SampleScan {
            scan: SeqScan::new(&with_place, run)?,
            pages: None,
            chosen: None,
            postponed: Postponed::default(),
        })
    }
}

/// Pages in an order of chance: from any of them on, each so many behind the one before that all are met.
struct Pages {
    table: TableHandle,
    projection: Projection,
    at: u32,
    step: u32,
    left: u32,
    count: u32,
    /// Rows that are still wanted.
    rows: u64,
    /// When it ends.
    until: Option<Instant>,
}

fn greatest_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

impl Pages {
    fn new(plan: &Plan, run: &mut Run<'_, '_>) -> Result<Pages> {
        let Node::SampleScan { scan, method, percent, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let value = eval::eval(percent, Row::Empty, run)?;
        let (mut rows, mut until) = (u64::MAX, None);
        match (method, &value) {
            (_, Datum::Null) => {
                base::bail!(INVALID_TABLESAMPLE_ARGUMENT, "TABLESAMPLE parameter cannot be null")
            }
            (SampleMethod::SystemTime, value) => {
                let milliseconds = value.as_float8();
                if milliseconds < 0.0 || milliseconds.is_nan() {
                    base::bail!(
                        INVALID_TABLESAMPLE_ARGUMENT,
                        "sample collection time must not be negative"
                    );
                }
                // More is as good as for ever.
                let time = Duration::from_secs_f64(milliseconds.min(1e12) / 1000.0);
                until = Instant::now().checked_add(time);
            }
            (_, value) => match value.to_i64() {
                Some(wanted) if wanted >= 0 => rows = wanted as u64,
                _ => base::bail!(INVALID_TABLESAMPLE_ARGUMENT, "sample size must not be negative"),
            },
        }
        let table = TableHandle::open(run.cx.engine, &scan.table, run.cx.format)?;
        let count = table.heap.pages()?;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let mut hash = Fx::default();
        hash.write_u64(now.map_or(0, |d| d.as_nanos() as u64));
        let chance = hash.finish();
        let at = (chance >> 32) as u32 % count.max(1);
        let mut step = (chance as u32 % count.max(1)).max(1);
        while greatest_divisor(step, count.max(1)) != 1 {
            step += 1;
        }
        let projection = Projection::new(&scan.table, &scan.columns);
        Ok(Pages { table, projection, at, step, left: count, count, rows, until })
    }

    /// The rows of some pages that the method takes; None at the end.
    fn next(&mut self, types: &[base::Oid], run: &Run<'_, '_>) -> Result<Option<Batch>> {
        let mut batch = rows::empty(types);
        while batch.rows < BATCH_ROWS && self.left > 0 && self.rows > 0 {
            sched::check_interrupts()?;
            if self.until.is_some_and(|until| Instant::now() >= until) {
                self.left = 0;
                break;
            }
            let block = self.at;
            self.at = ((u64::from(self.at) + u64::from(self.step)) % u64::from(self.count)) as u32;
            self.left -= 1;
            let mut scan = self.table.heap.scan(&run.snapshot, Some(block..block + 1));
            let mut failed = None;
            let (table, projection, wanted) = (&self.table, &self.projection, &mut self.rows);
            let mut roots = Vec::new();
            scan.next_page(run.cx.tx, |tid, root, bytes| {
                if *wanted == 0 || failed.is_some() {
                    return;
                }
                *wanted -= 1;
                if projection.system {
                    roots.push(root);
                    return;
                }
                let at = Version::new(tid, root);
                failed = projection.push(&table.columns, at, bytes, &mut batch).err();
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
            for root in roots {
                super::index_scan::fetch(table, projection, root, &mut batch, run)?;
            }
        }
        Ok((batch.rows > 0).then_some(batch))
    }
}

impl SampleScan {
    fn next_of_pages(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::SampleScan { scan, .. } = &plan.node else { return Err(wrong_node()) };
        if self.pages.is_none() {
            self.pages = Some(Pages::new(plan, run)?);
        }
        self.postponed.raise()?;
        let types = scan.types();
        while let Some(pages) = &mut self.pages
            && let Some(batch) = pages.next(&types, run)?
        {
            let filter = scan.filter.as_ref();
            let batch = filtered(plan, filter, batch, &mut self.postponed, run)?;
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

fn choice(plan: &Plan, run: &mut Run<'_, '_>) -> Result<Choice> {
    let Node::SampleScan { method, percent, seed, .. } = &plan.node else {
        return Err(wrong_node());
    };
    let percent = match eval::eval(percent, Row::Empty, run)? {
        Datum::Null => {
            return Err(err!(INVALID_TABLESAMPLE_ARGUMENT, "TABLESAMPLE parameter cannot be null"));
        }
        value => f64::from(value.as_float4()),
    };
    if !(0.0..=100.0).contains(&percent) {
        return Err(err!(
            INVALID_TABLESAMPLE_ARGUMENT,
            "sample percentage must be between 0 and 100"
        ));
    }
    let seed = match seed {
        Some(seed) => match eval::eval(seed, Row::Empty, run)? {
            Datum::Null => {
                return Err(err!(
                    INVALID_TABLESAMPLE_REPEAT,
                    "TABLESAMPLE REPEATABLE parameter cannot be null"
                ));
            }
            value => value.as_float8().to_bits(),
        },
        None => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(0, |d| d.as_nanos() as u64)
        }
    };
    let limit = (percent / 100.0 * (u64::from(u32::MAX) + 1) as f64) as u64;
    Ok(Choice { seed, limit, method: *method })
}

impl Operator for SampleScan {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::SampleScan { scan, method, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if matches!(method, SampleMethod::SystemRows | SampleMethod::SystemTime) {
            return self.next_of_pages(plan, run);
        }
        if self.chosen.is_none() {
            self.chosen = Some(choice(plan, run)?);
        }
        self.postponed.raise()?;
        while let Some(mut batch) = self.scan.next_batch(run)? {
            let (Some(places), Some(chosen)) = (batch.columns.pop(), &self.chosen) else {
                return Err(wrong_node());
            };
            let kept: Vec<u32> = (0..batch.rows as u32)
                .filter(|n| match places.get(*n as usize, types::oids::TID) {
                    Datum::Tid(tid) => chosen.takes(tid),
                    _ => false,
                })
                .collect();
            let batch = rows::take(&batch, &kept);
            let filter = scan.filter.as_ref();
            let batch = filtered(plan, filter, batch, &mut self.postponed, run)?;
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        self.postponed = Postponed::default();
        self.pages = None;
        self.scan.rescan(plan, run)
    }
}

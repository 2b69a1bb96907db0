//! TABLESAMPLE: rows (BERNOULLI) or pages (SYSTEM) chosen by a hash of their place and a seed, so
//! that one seed always chooses the same of an unchanged table.

use std::hash::Hasher;

use base::{Result, TupleId, err};
use sql::Plan;
use sql::plan::{Node, SampleMethod, Scan, ScanColumn};
use types::{Batch, Datum};

use super::before_error::Postponed;
use super::grouping::Fx;
use super::seq_scan::SeqScan;
use crate::eval;
use crate::ops::before_error::filtered;
use crate::ops::operator::{Operator, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;

/// See the module's documentation.
pub struct SampleScan {
    scan: SeqScan,
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
            chosen: None,
            postponed: Postponed::default(),
        })
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
        let Node::SampleScan { scan, .. } = &plan.node else {
            return Err(wrong_node());
        };
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
        self.scan.rescan(plan, run)
    }
}

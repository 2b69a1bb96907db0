//! Hands an input's rows up one at a time, to an operator whose effects others can see: it must not work ahead of
//! its reader, nor of another such operator above it ([`sql::plan::effects`]).

use std::sync::Arc;

use base::Result;
use sql::expr::SortKey;
use sql::{Expr, Plan};
use types::{Batch, Datum};

use crate::ops::key_filter::KeyFilter;
use crate::ops::operator::Operator;
use crate::rows;
use crate::run::Run;

/// See the module's documentation. Its plan node is the input's.
pub struct OneByOne {
    input: Box<dyn Operator>,
    /// Rows that have not been handed up yet, from this one on.
    rest: Option<(Batch, usize)>,
}

impl OneByOne {
    /// Over an input.
    pub fn new(input: Box<dyn Operator>) -> OneByOne {
        OneByOne { input, rest: None }
    }
}

impl Operator for OneByOne {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let (batch, row) = match self.rest.take() {
            Some(rest) => rest,
            None => match self.input.next(plan, run)? {
                Some(batch) if batch.rows > 1 => (batch, 0),
                other => return Ok(other),
            },
        };
        let one = rows::slice(&batch, row, 1);
        if row + 1 < batch.rows {
            self.rest = Some((batch, row + 1));
        }
        Ok(Some(one))
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        self.rest = None;
        self.input.rescan(plan, run)
    }

    fn restrict(&mut self, keys: &[Expr], filter: &Arc<KeyFilter>) {
        self.input.restrict(keys, filter);
    }

    fn bound(&mut self, rows: u64) {
        self.input.bound(rows);
    }

    fn skip_to(&mut self, plan: &Plan, key: &SortKey, value: &Datum) -> Result<()> {
        self.input.skip_to(plan, key, value)
    }

    fn hasten(&mut self) {
        self.input.hasten();
    }

    fn prepare(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        self.input.prepare(plan, run)
    }
}

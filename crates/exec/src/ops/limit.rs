//! LIMIT and OFFSET.

use base::{Result, err};
use sql::plan::Node;
use sql::{Expr, Plan};
use types::{Batch, Datum};

use super::grouping::same;
use crate::eval;
use crate::ops::operator::{Operator, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;

/// See the module's documentation.
pub struct Limit {
    input: Box<dyn Operator>,
    /// Rows still to skip and to return, once known.
    left: Option<(u64, u64)>,
    /// WITH TIES: the last row's values, once it has come.
    last: Option<Vec<Datum>>,
}

impl Limit {
    /// Over an input.
    pub fn new(input: Box<dyn Operator>) -> Limit {
        Limit { input, left: None, last: None }
    }
}

/// How many rows from `first` on have these values.
fn count_same(
    ties: &[Expr],
    last: &[Datum],
    batch: &Batch,
    first: usize,
    run: &mut Run<'_, '_>,
) -> Result<usize> {
    let mut at = first;
    while at < batch.rows {
        if !same(&eval::eval_all(ties, Row::Batch(batch, at), run)?, last) {
            break;
        }
        at += 1;
    }
    Ok(at - first)
}

impl Limit {
    /// Further rows that are equal to the last one.
    fn tied(
        &mut self,
        input: &Plan,
        ties: &[Expr],
        run: &mut Run<'_, '_>,
    ) -> Result<Option<Batch>> {
        let Some(last) = self.last.take() else { return Ok(None) };
        let Some(batch) = self.input.next(input, run)? else { return Ok(None) };
        let more = count_same(ties, &last, &batch, 0, run)?;
        if more == batch.rows {
            self.last = Some(last);
        }
        Ok((more > 0).then(|| rows::slice(&batch, 0, more)))
    }
}

/// A LIMIT's or OFFSET's value; None for NULL and for none at all.
fn number(expr: Option<&Expr>, is_limit: bool, run: &mut Run<'_, '_>) -> Result<Option<u64>> {
    let Some(expr) = expr else {
        return Ok(None);
    };
    let value = match eval::eval(expr, Row::Empty, run)? {
        Datum::Null => return Ok(None),
        Datum::Int8(v) => v,
        Datum::Int4(v) => i64::from(v),
        Datum::Int2(v) => i64::from(v),
        _ => return Err(base::Error::internal("LIMIT is not an integer")),
    };
    u64::try_from(value).map(Some).map_err(|_| {
        if is_limit {
            err!(INVALID_ROW_COUNT_IN_LIMIT_CLAUSE, "LIMIT must not be negative")
        } else {
            err!(INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE, "OFFSET must not be negative")
        }
    })
}

impl Operator for Limit {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Limit { input, count, offset, ties } = &plan.node else {
            return Err(wrong_node());
        };
        let (mut skip, mut left) = match self.left {
            Some(left) => left,
            None => {
                let skip = number(offset.as_ref(), false, run)?.unwrap_or(0);
                let left = number(count.as_ref(), true, run)?.unwrap_or(u64::MAX);
                if ties.is_empty() {
                    self.input.bound(skip.saturating_add(left));
                }
                self.input.hasten();
                (skip, left)
            }
        };
        let mut result = None;
        if left == 0 && self.last.is_some() {
            return self.tied(input, ties, run);
        }
        while left > 0 {
            let Some(batch) = self.input.next(input, run)? else {
                left = 0;
                break;
            };
            let gone = skip.min(batch.rows as u64);
            let taken = left.min(batch.rows as u64 - gone);
            skip -= gone;
            left -= taken;
            if taken > 0 && left == 0 && !ties.is_empty() {
                let end = (gone + taken) as usize;
                let last = eval::eval_all(ties, Row::Batch(&batch, end - 1), run)?;
                let more = count_same(ties, &last, &batch, end, run)?;
                self.last = (end + more == batch.rows).then_some(last);
                result = Some(rows::slice(&batch, gone as usize, taken as usize + more));
                break;
            }
            if taken > 0 {
                result = Some(if taken == batch.rows as u64 {
                    batch
                } else {
                    rows::slice(&batch, gone as usize, taken as usize)
                });
                break;
            }
        }
        self.left = Some((skip, left));
        Ok(result)
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Limit { input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.left = None;
        self.last = None;
        self.input.rescan(input, run)
    }
}

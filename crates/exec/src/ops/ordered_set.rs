//! Aggregates with WITHIN GROUP, computed at the end from all rows in order.
//!
//! Ordered-set: `percentile_cont`, `percentile_disc`, `mode`; they skip NULLs. Hypothetical-set:
//! `rank`, `dense_rank`, `percent_rank`, `cume_dist`: where a row of the direct arguments would
//! stand.

use std::sync::Arc;

use base::{Error, Result, err};
use sql::AggCall;
use types::datum::Array;
use types::{Datum, FormatContext, oids};

use super::sort::encode;
use crate::eval;
use crate::rows::Row;
use crate::run::Run;

/// The rows so far.
#[derive(Default)]
pub struct OrderedSetState {
    /// (sort key, the one value of an ordered-set aggregate).
    rows: Vec<(Vec<u8>, Datum)>,
    /// The direct arguments, once a row has come, and the sort key that they make.
    direct: Option<(Vec<Datum>, Vec<u8>)>,
}

impl OrderedSetState {
    /// Adds a row.
    ///
    /// # Errors
    /// The arguments'.
    pub fn add(&mut self, call: &AggCall, row: Row<'_>, run: &mut Run<'_, '_>) -> Result<()> {
        if self.direct.is_none() {
            let direct = call.direct.as_deref().unwrap_or_default();
            let values = eval::eval_all(direct, row, run)?;
            let mut key = Vec::new();
            if is_hypothetical(call) {
                for (sort, value) in call.order.iter().zip(&values) {
                    encode(sort, value, &mut key)?;
                }
            }
            self.direct = Some((values, key));
        }
        let mut key = Vec::new();
        let mut value = Datum::Null;
        for sort in &call.order {
            value = eval::eval(&sort.expr, row, run)?;
            encode(sort, &value, &mut key)?;
        }
        // Under a collation of ICU a text is sorted by its key.
        if let [arg] = &call.args[..]
            && call.order.first().is_some_and(|sort| sort.expr.ty() != arg.ty())
        {
            value = eval::eval(arg, row, run)?;
        }
        if is_hypothetical(call) {
            self.rows.push((key, Datum::Null));
        } else if !value.is_null() {
            self.rows.push((key, value));
        }
        Ok(())
    }

    /// The result.
    ///
    /// # Errors
    /// `22003` for a fraction outside of 0 to 1.
    pub fn finish(&mut self, call: &AggCall) -> Result<Datum> {
        self.rows.sort_by(sched::unhurried(|a: &(Vec<u8>, _), b: &(Vec<u8>, _)| a.0.cmp(&b.0)));
        if is_hypothetical(call) {
            return Ok(self.standing(call.aggregate.name));
        }
        if call.aggregate.name == "mode" {
            return Ok(self.mode());
        }
        let Some((direct, _)) = &self.direct else { return Ok(Datum::Null) };
        let continuous = call.aggregate.name == "percentile_cont";
        match direct.first() {
            Some(Datum::Array(fractions)) => {
                let mut items = Vec::with_capacity(fractions.items.len());
                for fraction in &fractions.items {
                    items.push(self.percentile(fraction, continuous)?);
                }
                if self.rows.is_empty() {
                    return Ok(Datum::Null);
                }
                let element = types::TypeIo::get(call.ty).map_or(call.args[0].ty(), |t| t.element);
                let dims = fractions.dims.clone();
                Ok(Datum::Array(Arc::new(Array { element, dims, items })))
            }
            Some(fraction) => self.percentile(fraction, continuous),
            None => Ok(Datum::Null),
        }
    }

    fn percentile(&self, fraction: &Datum, continuous: bool) -> Result<Datum> {
        let Datum::Float8(fraction) = fraction else { return Ok(Datum::Null) };
        let fraction = *fraction;
        if !(0.0..=1.0).contains(&fraction) {
            return Err(err!(
                NUMERIC_VALUE_OUT_OF_RANGE,
                "percentile value {fraction} is not between 0 and 1"
            ));
        }
        let count = self.rows.len();
        if count == 0 {
            return Ok(Datum::Null);
        }
        if !continuous {
            let at = (fraction * count as f64).ceil() as usize;
            return Ok(self.rows[at.max(1) - 1].1.clone());
        }
        let place = fraction * (count - 1) as f64;
        let (first, second) = (place.floor() as usize, place.ceil() as usize);
        let low = &self.rows[first].1;
        if first == second {
            return Ok(low.clone());
        }
        between(low, &self.rows[second].1, place - first as f64)
    }

    /// The most frequent value, the first of several.
    fn mode(&self) -> Datum {
        let mut best = (0, Datum::Null);
        let mut begin = 0;
        for (n, row) in self.rows.iter().enumerate() {
            if row.0 != self.rows[begin].0 {
                begin = n;
            }
            let count = n - begin + 1;
            if count > best.0 {
                best = (count, self.rows[begin].1.clone());
            }
        }
        best.1
    }

    /// Where the hypothetical row would stand.
    fn standing(&self, name: &str) -> Datum {
        let none = Vec::new();
        let own = self.direct.as_ref().map_or(&none, |(_, key)| key);
        let before = self.rows.partition_point(|(key, _)| key < own);
        let count = self.rows.len();
        match name {
            "rank" => Datum::Int8(before as i64 + 1),
            "dense_rank" => {
                let mut distinct = 0;
                for n in 0..before {
                    distinct += i64::from(n == 0 || self.rows[n].0 != self.rows[n - 1].0);
                }
                Datum::Int8(distinct + 1)
            }
            "percent_rank" if count == 0 => Datum::Float8(0.0),
            "percent_rank" => Datum::Float8(before as f64 / count as f64),
            _ => {
                let upto = self.rows.partition_point(|(key, _)| key <= own);
                Datum::Float8((upto + 1) as f64 / (count + 1) as f64)
            }
        }
    }
}

fn is_hypothetical(call: &AggCall) -> bool {
    matches!(call.aggregate.name, "rank" | "dense_rank" | "percent_rank" | "cume_dist")
}

/// `low + share * (high - low)`.
fn between(low: &Datum, high: &Datum, share: f64) -> Result<Datum> {
    if let (Datum::Float8(low), Datum::Float8(high)) = (low, high) {
        return Ok(Datum::Float8(low + share * (high - low)));
    }
    let format = FormatContext::default();
    let operator = |name: &str, right, a: Datum, b: Datum| {
        let row = types::func::operators_named(name)
            .iter()
            .find(|o| o.left == oids::INTERVAL && o.right == right)
            .and_then(|o| types::func::function(o.function));
        match row.map(|r| r.body) {
            Some(types::func::Body::Scalar(body)) => body(&[a, b], &format),
            _ => Err(Error::internal("interval arithmetic is missing")),
        }
    };
    let difference = operator("-", oids::INTERVAL, high.clone(), low.clone())?;
    let part = operator("*", oids::FLOAT8, difference, Datum::Float8(share))?;
    operator("+", oids::INTERVAL, low.clone(), part)
}

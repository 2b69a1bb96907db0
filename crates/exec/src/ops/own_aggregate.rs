//! Aggregates that users made: a state that their functions carry from row to row.

use base::{Result, err};
use sql::AggCall;
use sql::expr::OwnSteps;
use types::Datum;

use crate::eval;
use crate::rows::Row;
use crate::run::Run;

/// The state of one group, or of a window's frame.
pub struct OwnState {
    value: Datum,
    /// Rows that the state has taken and not given back.
    rows: u64,
    /// The direct arguments, once a row has come.
    direct: Option<Vec<Datum>>,
}

impl OwnState {
    /// Before the first row.
    pub fn new(steps: &OwnSteps) -> OwnState {
        OwnState { value: steps.initial.clone(), rows: 0, direct: None }
    }

    /// Adds a row of an input.
    ///
    /// # Errors
    /// The arguments', the transition function's.
    pub fn add(
        &mut self,
        call: &AggCall,
        steps: &OwnSteps,
        row: Row<'_>,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        if let (Some(direct), None) = (&call.direct, &self.direct) {
            self.direct = Some(eval::eval_all(direct, row, run)?);
        }
        let values = eval::eval_all(&call.args, row, run)?;
        self.add_values(steps, &values, run)
    }

    /// Adds the arguments of a row.
    ///
    /// # Errors
    /// The transition function's.
    pub fn add_values(
        &mut self,
        steps: &OwnSteps,
        values: &[Datum],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        sched::check_interrupts()?;
        if steps.strict {
            if values.iter().any(Datum::is_null) {
                return Ok(());
            }
            if self.rows == 0 && self.value.is_null() {
                self.value = values.first().cloned().unwrap_or_default();
                self.rows = 1;
                return Ok(());
            }
        }
        self.rows += 1;
        self.value = self.step(&steps.transition, values, run)?;
        Ok(())
    }

    /// As [`OwnState::add_values`], where a state must not become NULL since rows are taken back.
    ///
    /// # Errors
    /// `22004`; the transition function's.
    pub fn add_moving(
        &mut self,
        steps: &OwnSteps,
        values: &[Datum],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let before = self.rows;
        self.add_values(steps, values, run)?;
        if self.rows > before && self.value.is_null() {
            return Err(err!(
                NULL_VALUE_NOT_ALLOWED,
                "moving-aggregate transition function must not return null"
            ));
        }
        Ok(())
    }

    /// Takes a row back; false when the inverse function can't, and all has to begin anew.
    ///
    /// # Errors
    /// The inverse function's.
    pub fn take_back(
        &mut self,
        steps: &OwnSteps,
        values: &[Datum],
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        sched::check_interrupts()?;
        if steps.strict && values.iter().any(Datum::is_null) {
            return Ok(true);
        }
        if self.rows <= 1 {
            (self.value, self.rows) = (steps.initial.clone(), 0);
            return Ok(true);
        }
        let Some(inverse) = &steps.inverse else { return Ok(false) };
        self.value = self.step(inverse, values, run)?;
        self.rows -= 1;
        Ok(!self.value.is_null())
    }

    fn step(
        &mut self,
        function: &sql::Expr,
        values: &[Datum],
        run: &mut Run<'_, '_>,
    ) -> Result<Datum> {
        let mut inputs = Vec::with_capacity(values.len() + 1);
        inputs.push(std::mem::take(&mut self.value));
        inputs.extend_from_slice(values);
        eval::eval(function, Row::Values(&inputs), run)
    }

    /// Adds the state that another thread has made of other rows.
    ///
    /// # Errors
    /// The combine function's.
    pub fn merge(
        &mut self,
        other: OwnState,
        steps: &OwnSteps,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let Some(combine) = &steps.combine else {
            return Err(base::Error::internal(
                "an aggregate's states without a way to combine them",
            ));
        };
        sched::check_interrupts()?;
        self.rows += other.rows;
        if steps.combine_strict && (self.value.is_null() || other.value.is_null()) {
            if self.value.is_null() {
                self.value = other.value;
            }
            return Ok(());
        }
        self.value = self.step(combine, &[other.value], run)?;
        Ok(())
    }

    /// The result so far.
    ///
    /// # Errors
    /// The final function's.
    pub fn finish(&self, call: &AggCall, steps: &OwnSteps, run: &mut Run<'_, '_>) -> Result<Datum> {
        let Some(finish) = &steps.finish else { return Ok(self.value.clone()) };
        let mut inputs = vec![self.value.clone()];
        match (&self.direct, &call.direct) {
            (Some(direct), _) => inputs.extend_from_slice(direct),
            (None, Some(direct)) => inputs.extend(direct.iter().map(|_| Datum::Null)),
            (None, None) => {}
        }
        eval::eval(finish, Row::Values(&inputs), run)
    }
}

/// How a call is computed, if it is of such an aggregate.
pub fn steps(call: &AggCall) -> Option<&OwnSteps> {
    call.own.as_ref()?.steps.as_ref()
}

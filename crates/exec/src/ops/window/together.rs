//! Window functions by several threads: the leader reads some partitions, and whoever has time computes the values of
//! the next one.
//!
//! * Partitions are read by the leader alone, for the input is one sorted stream, and handed up in its order.
//! * Helpers work in rounds, between which none runs: the consumer may do what it likes, and no more is read ahead than a
//!   round.
//! * An error of reading waits until the partitions before it are handed up, as the rows before a failing one do.

use base::{Error, Result};
use sched::SpinLock;
use sched::memory::Use;
use sql::Plan;
use sql::plan::Node;
use types::Batch;

use super::{Valued, Window, valued};
use crate::ops::before_error::is_of_row;
use crate::ops::gather::LAUNCHED;
use crate::ops::measure::note_most;
use crate::ops::operator::wrong_node;
use crate::parallel;
use crate::rows;
use crate::run::Run;

/// Rows of the first round, and of a later one.
const FIRST_ROWS: usize = 4 << 10;
const ROUND_ROWS: usize = 32 << 10;

impl Window {
    /// The next partition with its values, of those that threads have computed together. None at the end.
    ///
    /// # Errors
    /// Those of the input, once all partitions before are handed up; interrupts.
    pub(super) fn next_together(
        &mut self,
        plan: &Plan,
        run: &mut Run<'_, '_>,
    ) -> Result<Option<Valued>> {
        if self.computed.is_empty() {
            self.read_failed.raise()?;
            let partitions = self.read_some(plan, run)?;
            self.computed = self.round(partitions, plan, run)?.into();
        }
        Ok(self.computed.pop_front())
    }

    /// The partitions of a round.
    fn read_some(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Vec<Batch>> {
        let Node::Window { input, partition, .. } = &plan.node else { return Err(wrong_node()) };
        let most = if std::mem::replace(&mut self.began, true) { ROUND_ROWS } else { FIRST_ROWS };
        let (mut read, mut count) = (Vec::new(), 0);
        while count < most {
            match self.read(input, partition, run) {
                Ok(Some(batch)) => {
                    count += batch.rows;
                    read.push(batch);
                }
                Ok(None) => break,
                Err(error) if read.is_empty() || !is_of_row(&error) => return Err(error),
                Err(error) => {
                    self.read_failed.keep(error, count)?;
                    break;
                }
            }
        }
        Ok(read)
    }

    /// Computes the values of some partitions.
    fn round(
        &self,
        partitions: Vec<Batch>,
        plan: &Plan,
        run: &mut Run<'_, '_>,
    ) -> Result<Vec<Valued>> {
        let Node::Window { workers, .. } = &plan.node else { return Err(wrong_node()) };
        let offsets = self.offsets.as_deref().unwrap_or_default();
        let wanted = partitions.len().saturating_sub(1).min(usize::from(*workers));
        let helpers = parallel::available(wanted as u16, run);
        note_most(plan, LAUNCHED, helpers.count() as u64, run);
        let todo: Vec<SpinLock<Option<Batch>>> =
            partitions.into_iter().map(|batch| SpinLock::new(Some(batch))).collect();
        let one = |number: usize, run: &mut Run<'_, '_>| {
            let _memory = sched::memory::for_use(Use::Sort);
            let batch = todo[number].lock().take();
            let batch = batch.ok_or_else(|| Error::internal("a partition is taken twice"))?;
            match valued(batch, plan, offsets, run) {
                // In its turn: the partitions before it are handed up.
                Err(error) if is_of_row(&error) => Ok((rows::empty(&[]), Some(error))),
                other => other,
            }
        };
        parallel::each_in(todo.len(), &helpers, run, &one)
    }
}

//! The statements that rules have made of one, one after the other: each sees what those before it have done.

use base::Result;
use sql::Plan;
use sql::plan::Node;
use types::Batch;

use crate::context::{ExecContext, RowSink};
use crate::ops::operator::{Operator, wrong_node};
use crate::run::Run;
use crate::{nested, rows};

/// See the module's documentation.
#[derive(Default)]
pub struct Rewritten {
    /// Rows of the statement that counts.
    changed: u64,
    /// What is returned; None before they run.
    rows: Option<Vec<Batch>>,
    /// How many of them have been handed up.
    given: usize,
}

/// Keeps a statement's rows, or forgets them.
struct Keep<'k> {
    rows: &'k mut Vec<Batch>,
    types: &'k [base::Oid],
    wanted: bool,
}

impl RowSink for Keep<'_> {
    fn row(&mut self, row: &[types::Datum]) -> Result<()> {
        if self.wanted {
            let mut batch = rows::empty(self.types);
            rows::push(&mut batch, row.iter().cloned())?;
            self.rows.push(batch);
        }
        Ok(())
    }

    fn copy_data(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn batch(&mut self, batch: &Batch) -> Result<()> {
        if self.wanted {
            self.rows.push(batch.clone());
        }
        Ok(())
    }
}

impl Operator for Rewritten {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Rewritten(rewritten) = &plan.node else { return Err(wrong_node()) };
        if self.rows.is_none() {
            let mut kept = Vec::new();
            for (n, step) in rewritten.steps.iter().enumerate() {
                let mut snapshot = run.snapshot;
                if n > 0 {
                    run.cx.tx.next_command();
                    snapshot.command = run.cx.tx.command();
                }
                let wanted = step.returns;
                let mut sink = Keep { rows: &mut kept, types: &rewritten.types, wanted };
                let mut inner = ExecContext { snapshot, ..run.cx.inner() };
                let outcome =
                    nested::run(&step.prepared, run.params, snapshot, &mut inner, &mut sink)?;
                if step.counts {
                    self.changed = outcome.rows;
                }
            }
            self.rows = Some(kept);
        }
        let next = self.rows.as_ref().and_then(|all| all.get(self.given)).cloned();
        self.given += usize::from(next.is_some());
        Ok(next)
    }

    fn rescan(&mut self, _: &Plan, _: &mut Run<'_, '_>) -> Result<()> {
        Err(base::Error::internal("rewritten statements run once"))
    }

    fn changed(&self) -> Option<u64> {
        Some(self.changed)
    }
}

//! Rows of a foreign table, or of a query over several, as the code behind its wrapper gives them.

use base::Result;
use sql::Plan;
use sql::plan::Node;
use types::Batch;

use super::before_error::Postponed;
use crate::foreign::{self, ForeignRows};
use crate::ops::before_error::filtered;
use crate::ops::operator::{Operator, types, wrong_node};
use crate::rows;
use crate::run::Run;

/// See the module's documentation.
pub struct ForeignScanOp {
    wrapper: &'static dyn foreign::Wrapper,
    rows: Option<Box<dyn ForeignRows>>,
    postponed: Postponed,
    ended: bool,
}

impl ForeignScanOp {
    /// Before the first row.
    ///
    /// # Errors
    /// When there is no code behind the wrapper.
    pub fn new(code: &str) -> Result<ForeignScanOp> {
        let wrapper = foreign::find(code)?;
        Ok(ForeignScanOp { wrapper, rows: None, postponed: Postponed::default(), ended: false })
    }
}

impl Operator for ForeignScanOp {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let filter = match &plan.node {
            Node::ForeignScan(scan) => scan.scan.filter.as_ref(),
            Node::ForeignQuery(_) => None,
            _ => return Err(wrong_node()),
        };
        self.postponed.raise()?;
        sched::check_interrupts()?;
        if self.ended {
            return Ok(None);
        }
        let rows = match &mut self.rows {
            Some(rows) => rows,
            empty => empty.insert(match &plan.node {
                Node::ForeignScan(scan) => self.wrapper.scan(scan, run)?,
                Node::ForeignQuery(query) => self.wrapper.query(query, run)?,
                _ => return Err(wrong_node()),
            }),
        };
        let Some(all) = rows.next(run)? else {
            self.ended = true;
            self.rows = None;
            return Ok(None);
        };
        let mut batch = rows::empty(&types(plan, run.prepared));
        all.into_iter().try_for_each(|row| rows::push(&mut batch, row))?;
        filtered(plan, filter, batch, &mut self.postponed, run).map(Some)
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        self.rows = None;
        self.ended = false;
        self.postponed = Postponed::default();
        Ok(())
    }
}

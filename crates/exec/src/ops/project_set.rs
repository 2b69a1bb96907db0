//! Output columns with set-returning calls at the top: they run side by side, shorter ones padded
//! with NULL.

use base::Result;
use sql::plan::Node;
use sql::{Expr, Plan};
use types::batch::BATCH_ROWS;
use types::{Batch, Datum};

use super::before_error::Postponed;
use super::function_scan::call_set;
use crate::eval;
use crate::ops::operator::{Operator, types, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;

/// See the module's documentation.
pub struct ProjectSet {
    /// Rows.
    pub input: Box<dyn Operator>,
    /// Where it goes on when asked again.
    place: Option<Place>,
    postponed: Postponed,
}

/// A batch of which some rows have been expanded.
struct Place {
    batch: Batch,
    /// The row that comes next.
    row: usize,
    /// The one before it, as far as it has not been handed up.
    open: Option<Open>,
}

/// An input row that is being expanded.
struct Open {
    cells: Vec<Cell>,
    /// Output rows that it makes, and how many of them are made.
    rows: usize,
    made: usize,
}

/// One output column for one input row.
enum Cell {
    One(Datum),
    Set(Vec<Datum>),
}

impl Open {
    fn of(exprs: &[Expr], row: Row<'_>, run: &mut Run<'_, '_>) -> Result<Open> {
        let mut cells = Vec::with_capacity(exprs.len());
        let mut rows = 0;
        for expr in exprs {
            cells.push(match expr {
                Expr::Call { function, .. } if function.returns_set => {
                    let set = call_set(expr, row, run)?;
                    rows = rows.max(set.len());
                    Cell::Set(set)
                }
                _ => Cell::One(eval::eval(expr, row, run)?),
            });
        }
        Ok(Open { cells, rows, made: 0 })
    }

    /// Makes rows until there are none left, or enough in the batch.
    fn make(&mut self, out: &mut Batch) -> Result<()> {
        while self.made < self.rows && out.rows < BATCH_ROWS {
            sched::check_interrupts()?;
            let n = self.made;
            let values = self.cells.iter().map(|cell| match cell {
                Cell::One(value) => value.clone(),
                Cell::Set(values) => values.get(n).cloned().unwrap_or_default(),
            });
            rows::push(out, values)?;
            self.made += 1;
        }
        Ok(())
    }
}

impl ProjectSet {
    /// Over these rows.
    pub fn new(input: Box<dyn Operator>) -> ProjectSet {
        ProjectSet { input, place: None, postponed: Postponed::default() }
    }
}

impl Operator for ProjectSet {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::ProjectSet { input, exprs } = &plan.node else {
            return Err(wrong_node());
        };
        self.postponed.raise()?;
        let mut out = rows::empty(&types(plan, run.prepared));
        loop {
            let place = match &mut self.place {
                Some(place) => place,
                None => match self.input.next(input, run)? {
                    Some(batch) => self.place.insert(Place { batch, row: 0, open: None }),
                    None => return Ok((out.rows > 0).then_some(out)),
                },
            };
            if let Some(open) = &mut place.open {
                open.make(&mut out)?;
                if out.rows >= BATCH_ROWS {
                    return Ok(Some(out));
                }
            }
            if place.row < place.batch.rows {
                match Open::of(exprs, Row::Batch(&place.batch, place.row), run) {
                    Ok(open) => place.open = Some(open),
                    Err(error) => {
                        self.postponed.keep(error, out.rows)?;
                        return Ok(Some(out));
                    }
                }
                place.row += 1;
                continue;
            }
            self.place = None;
            // What has been made is not held back for what the input has yet to do.
            if out.rows > 0 {
                return Ok(Some(out));
            }
        }
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::ProjectSet { input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.place = None;
        self.postponed = Postponed::default();
        self.input.rescan(input, run)
    }
}

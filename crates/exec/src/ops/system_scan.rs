//! Reads a computed table.

use base::Result;
use catalog::system::{SystemCx, SystemTable, rows as system_rows};
use sql::Plan;
use sql::plan::Node;
use types::{Batch, Datum};

use super::before_error::Postponed;
use crate::eval;
use crate::ops::before_error::filtered;
use crate::ops::operator::{Operator, types, wrong_node};
use crate::ops::system_tables::Found;
use crate::rows::{self, Row};
use crate::run::Run;

/// The rows of a table, `known` of whose columns have these values; there may be others among them.
fn found(
    table: &'static SystemTable,
    known: &[(u16, Datum)],
    run: &mut Run<'_, '_>,
) -> Result<Found> {
    let mut own = crate::event_trigger::rows(table.name, run)?;
    if own.is_none() {
        own = crate::origins::rows(table.name, run)?;
    }
    if let Some(rows) = own {
        return Ok(Found::Own(rows));
    }
    let view = match system_rows::is_of_catalog(table) {
        true => run.cx.catalog_tx.view_of_all(),
        false => run.cx.catalog_tx.view(),
    };
    let cx = SystemCx {
        catalog: &view,
        settings: run.cx.settings,
        server: run.cx.server,
        database: run.cx.database.1,
        role: run.cx.role,
        equal: known,
    };
    match system_rows::stays(table) {
        true => run.state.system_tables.get_or_insert_default().find(table, &cx),
        false => system_rows::rows(table, &cx).map(Found::Own),
    }
}

/// See the module's documentation: all rows in one batch.
#[derive(Default)]
pub struct SystemScan {
    done: bool,
    postponed: Postponed,
}

impl Operator for SystemScan {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::SystemScan { table, columns, equal, filter } = &plan.node else {
            return Err(wrong_node());
        };
        if std::mem::replace(&mut self.done, true) {
            self.postponed.raise()?;
            return Ok(None);
        }
        let mut known = Vec::with_capacity(equal.len());
        for (column, expr) in equal {
            known.push((*column, eval::eval(expr, Row::Empty, run)?));
        }
        let mut batch = rows::empty(&types(plan, run.prepared));
        let found = found(table, &known, run)?;
        let printed = crate::session::prints_definition(table, columns);
        found.each(|row| {
            let mut shown = Vec::new();
            let row = match printed {
                true => {
                    shown.extend_from_slice(row);
                    crate::session::print_definition(table.name, &mut shown, run);
                    &shown
                }
                false => row,
            };
            let value = |c: &u16| row.get(usize::from(*c)).cloned().unwrap_or_default();
            rows::push(&mut batch, columns.iter().map(value))
        })?;
        filtered(plan, filter.as_ref(), batch, &mut self.postponed, run).map(Some)
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        self.done = false;
        self.postponed = Postponed::default();
        Ok(())
    }
}

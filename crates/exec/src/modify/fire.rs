//! Running the checks and triggers that waited ([`super::deferred`]).

use base::Result;
use catalog::{Constraint, ConstraintKind};

use super::foreign_key;
use crate::context::ExecContext;
use crate::modify::deferred::{Check, Deferred, Waiting};
use crate::modify::triggers;
use crate::run::Run;
use crate::security;
use crate::spi::with_run;

/// The transaction is about to commit: does all the checks that wait.
///
/// # Errors
/// `23503`, `23505`.
pub fn fire_all(cx: &mut ExecContext<'_>) -> Result<()> {
    fire(cx, true)
}

/// Does the checks whose constraints are IMMEDIATE by now.
///
/// # Errors
/// `23503`, `23505`.
pub fn fire_immediate(cx: &mut ExecContext<'_>) -> Result<()> {
    fire(cx, false)
}

fn fire(cx: &mut ExecContext<'_>, commit: bool) -> Result<()> {
    // Statements of triggers may have to wait in their turn.
    loop {
        let view = cx.catalog_tx.view();
        // A constraint's own words are those of when it is looked at: ALTER CONSTRAINT may have come since.
        let defers = |deferred: &Deferred, id: u32| {
            let constraint = view.tables().flat_map(|t| &t.constraints).find(|c| c.oid == id);
            let trigger = || view.tables().flat_map(|t| &t.triggers).find(|t| t.constraint == id);
            match constraint {
                Some(constraint) => deferred.defers(constraint),
                None => trigger().is_some_and(|t| deferred.defers_trigger(t)),
            }
        };
        let checks = cx.hooks.deferred().take(commit, defers);
        if checks.is_empty() {
            return Ok(());
        }
        with_run(cx, |run| {
            checks
                .iter()
                .try_for_each(|check| security::in_name_of(run, check.role, |run| check.run(run)))
        })?;
    }
}

impl Waiting {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<()> {
        sched::check_interrupts()?;
        let view = run.cx.catalog_tx.view();
        let Some(table) = view.table(self.table) else { return Ok(()) };
        match &self.what {
            Check::Unique(rows) => {
                let of = |c: &&Constraint| c.oid == self.constraint;
                let index = match table.constraints.iter().find(of).map(|c| &c.kind) {
                    Some(
                        ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index },
                    ) => view.index(*index),
                    _ => None,
                };
                match index {
                    Some(index) => super::writer::recheck(table, index, rows, run),
                    None => Ok(()),
                }
            }
            Check::Trigger(trigger, events) => {
                triggers::fire_deferred(table, *trigger, events, run)
            }
            Check::Referring(keys) => {
                foreign_key::check_deferred_keys(table, self.constraint, keys, run)
            }
            Check::Referred(keys) => {
                foreign_key::check_deferred_gone(table, self.constraint, keys, run)
            }
        }
    }
}

//! Changes of foreign tables: triggers and rules of rows are checked here, the rest is the wrapper's.

use base::{Oid, Result, err};
use sql::plan::{Modify, ModifyAction};
use types::{Batch, Datum};

use super::{ModifyOp, old_row};
use crate::eval;
use crate::foreign::{self, ForeignChange};
use crate::language::TriggerEvent;
use crate::rows::{self, Row};
use crate::run::Run;

/// A changed row, before and after, for the triggers at the statement's end.
pub type Changed = (TriggerEvent, Option<Vec<Datum>>, Option<Vec<Datum>>);

/// The change of a foreign table that a statement makes.
///
/// # Errors
/// `0A000` for what can't be done to a foreign table; the wrapper's own.
pub fn begin(modify: &Modify, run: &mut Run<'_, '_>) -> Result<Box<dyn ForeignChange>> {
    match &modify.action {
        ModifyAction::Merge { .. } => {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "cannot execute MERGE on relation \"{}\"",
                modify.table.name
            )
            .detail("This operation is not supported for foreign tables."));
        }
        ModifyAction::Insert { conflict: Some(c), .. } if c.update.is_some() || !c.any => {
            base::bail!(
                INVALID_COLUMN_REFERENCE,
                "there is no unique or exclusion constraint matching the ON CONFLICT specification"
            );
        }
        _ => {}
    }
    let view = run.cx.catalog_tx.view();
    let code = sql::foreign::code_of(&view, &modify.table)?;
    foreign::find(&code)?.modify(modify, run)
}

/// `0A000` for a row of a foreign table that is reached through another table.
///
/// # Errors
/// See above.
pub fn expect_own(table: &catalog::Table) -> Result<()> {
    if table.foreign.is_some() {
        base::bail!(
            FEATURE_NOT_SUPPORTED,
            "cannot change rows of foreign table \"{}\" through another table",
            table.name
        );
    }
    Ok(())
}

impl ModifyOp {
    /// Changes a batch of rows of a foreign table.
    pub(super) fn change_foreign(
        &mut self,
        modify: &Modify,
        batch: &Batch,
        types: &[Oid],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        match &modify.action {
            ModifyAction::Insert { .. } => self.insert_foreign(modify, batch, types, run),
            _ => self.update_foreign(modify, batch, types, run),
        }
    }

    fn insert_foreign(
        &mut self,
        modify: &Modify,
        batch: &Batch,
        types: &[Oid],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let mut all = Vec::with_capacity(batch.rows);
        for n in 0..batch.rows {
            sched::check_interrupts()?;
            let mut row = rows::get(batch, n, types);
            if let Some(triggers) = &mut self.writer.triggers
                && !triggers.before_row(TriggerEvent::Insert, None, Some(&mut row[..]), run)?
            {
                continue;
            }
            self.writer.check_row(&mut row, &modify.checks, TriggerEvent::Insert, run)?;
            all.push(row);
        }
        self.changed += all.len() as u64;
        let Some(change) = &mut self.foreign else { return Ok(()) };
        let told = self.writer.triggers.is_some() || modify.returning.is_some();
        let own = if told { all.clone() } else { Vec::new() };
        let back = change.insert(all, run)?;
        let back = if back.is_empty() { own } else { back };
        for row in back {
            if self.writer.triggers.is_some() {
                self.after.push((TriggerEvent::Insert, None, Some(row.clone())));
            }
            self.give_back(modify, row, &[Datum::Oid(0)], run)?;
        }
        Ok(())
    }

    fn update_foreign(
        &mut self,
        modify: &Modify,
        batch: &Batch,
        types: &[Oid],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let (columns, set) = match &modify.action {
            ModifyAction::Update { columns, set, .. } => (columns, Some(set)),
            ModifyAction::Delete { columns, .. } => (columns, None),
            _ => return Ok(()),
        };
        for n in 0..batch.rows {
            sched::check_interrupts()?;
            let input = rows::get(batch, n, types);
            let Some(place) = input.first().filter(|p| !p.is_null()).cloned() else { continue };
            let old = old_row(modify, columns, &input);
            let mut new = match set {
                Some(set) => {
                    let mut new = old.clone();
                    for (column, expr) in set {
                        let value = eval::eval(expr, Row::Values(&input), run)?;
                        new[usize::from(*column) - 1] = value;
                    }
                    Some(new)
                }
                None => None,
            };
            let event = if set.is_some() { TriggerEvent::Update } else { TriggerEvent::Delete };
            if let Some(triggers) = &mut self.writer.triggers
                && !triggers.before_row(event, Some(&old), new.as_deref_mut(), run)?
            {
                continue;
            }
            if let Some(new) = &mut new {
                self.writer.check_row(new, &modify.checks, event, run)?;
            }
            let Some(change) = &mut self.foreign else { return Ok(()) };
            let row = match new {
                Some(new) => match change.update(&place, new, run)? {
                    Some(row) => row,
                    None => continue,
                },
                None if change.delete(&place, run)? => old.clone(),
                None => continue,
            };
            self.changed += 1;
            if self.writer.triggers.is_some() {
                let after = set.is_some().then(|| row.clone());
                self.after.push((event, Some(old), after));
            }
            self.give_back(modify, row, &input, run)?;
        }
        Ok(())
    }

    /// Fires the AFTER triggers of the foreign rows that were changed.
    pub(super) fn finish_foreign(&mut self, run: &mut Run<'_, '_>) -> Result<()> {
        let rows = std::mem::take(&mut self.after);
        let Some(triggers) = &mut self.writer.triggers else { return Ok(()) };
        for (event, old, new) in rows {
            triggers.after_foreign(event, old.as_deref(), new.as_deref(), run)?;
        }
        Ok(())
    }
}

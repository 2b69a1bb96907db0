//! Resolution of names in a program's SQL while it runs.

use std::cell::RefCell;
use std::sync::Arc;

use base::{Result, err};
use sql::embedded::{Conflict, Variable, Variables};
use types::Datum;
use types::datum::Shape;
use types::oids::RECORD;

use crate::program::{Program, Slot, SlotKind, lookup};

/// A transition table: its name, the slot of its rows, their columns.
pub type Transition = (String, Slot, Arc<Shape>);

/// The names at one place, with the shapes that records have now.
pub struct Names<'f> {
    /// The program.
    pub program: &'f Program,
    /// The place.
    pub at: usize,
    /// The frame.
    pub slots: &'f [Datum],
    /// Transition tables.
    pub tables: &'f [Transition],
    /// Records that are NULL and nevertheless have columns ([`crate::frame::Frame::absent`]).
    pub absent: &'f [(Slot, Arc<Shape>)],
    /// The records that were named, with their shapes.
    pub guard: RefCell<Vec<(Slot, Arc<Shape>)>>,
}

impl Names<'_> {
    fn note(&self, slot: Slot, shape: &Arc<Shape>) {
        let mut guard = self.guard.borrow_mut();
        if guard.iter().all(|(known, _)| *known != slot) {
            guard.push((slot, shape.clone()));
        }
    }

    fn variable(&self, slot: Slot, fields: &[&str]) -> Result<Option<Variable>> {
        let info = &self.program.slots[usize::from(slot)];
        let plain =
            |shape| Variable { slot, ty: info.ty, field: None, shape, collation: info.collation };
        match info.kind {
            SlotKind::Scalar if fields.is_empty() => Ok(Some(plain(None))),
            SlotKind::Scalar => Ok(None),
            SlotKind::Row => {
                let Some(shape) = types::user::shape(info.ty) else { return Ok(Some(plain(None))) };
                match fields {
                    [] => Ok(Some(plain(Some(shape)))),
                    [field, ..] => {
                        let at = shape.columns.iter().position(|(name, _)| name == field);
                        let Some(at) = at else { return Err(no_field(&info.name, field)) };
                        let ty = shape.columns[at].1;
                        Ok(Some(Variable { field: Some((at, ty)), ..plain(None) }))
                    }
                }
            }
            SlotKind::Record | SlotKind::Case => {
                let absent = || self.absent.iter().find(|(known, _)| *known == slot);
                let shape = match &self.slots[usize::from(slot)] {
                    Datum::Record(row) => Some(&row.shape),
                    _ => absent().map(|(_, shape)| shape),
                };
                let Some(shape) = shape else {
                    return match fields {
                        // A record without a row is NULL.
                        [] if info.kind == SlotKind::Record => {
                            let nothing = Arc::new(Shape { ty: RECORD, columns: Vec::new() });
                            self.note(slot, &nothing);
                            Ok(Some(plain(None)))
                        }
                        _ => Err(unassigned(&info.name)),
                    };
                };
                self.note(slot, shape);
                let ty = match types::user::shape(shape.ty) {
                    Some(known) if known.columns == shape.columns => shape.ty,
                    _ => RECORD,
                };
                let whole =
                    Variable { slot, ty, field: None, shape: Some(shape.clone()), collation: 0 };
                if info.kind == SlotKind::Case {
                    let ty = shape.columns[0].1;
                    return Ok(Some(Variable { field: Some((0, ty)), ..whole }));
                }
                match fields {
                    [] => Ok(Some(whole)),
                    [field, ..] => {
                        let at = shape.columns.iter().position(|(name, _)| name == field);
                        let Some(at) = at else { return Err(no_field(&info.name, field)) };
                        let ty = shape.columns[at].1;
                        Ok(Some(Variable { field: Some((at, ty)), ..whole }))
                    }
                }
            }
        }
    }
}

/// `42703`.
pub fn no_field(record: &str, field: &str) -> base::Error {
    err!(UNDEFINED_COLUMN, "record \"{record}\" has no field \"{field}\"")
}

/// `55000`.
pub fn unassigned(record: &str) -> base::Error {
    err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "record \"{record}\" is not assigned yet")
        .detail("The tuple structure of a not-yet-assigned record is indeterminate.")
}

impl Variables for Names<'_> {
    fn find(&self, names: &[&str]) -> Result<Option<Variable>> {
        let found = lookup(&self.program.names, &self.program.slots, self.at, names);
        match found {
            Some(found) if names.len() - found.used <= 1 => {
                self.variable(found.slot, &names[found.used..])
            }
            _ => Ok(None),
        }
    }

    fn numbered(&self, number: i32) -> Option<Variable> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        let slot = *self.program.numbered.get(at)?;
        self.variable(slot, &[]).ok().flatten()
    }

    fn conflict(&self) -> Conflict {
        self.program.conflict
    }

    fn rows(&self, name: &str) -> Option<(Slot, Arc<Shape>)> {
        let (_, slot, shape) = self.tables.iter().find(|(known, _, _)| known == name)?;
        self.note(*slot, shape);
        Some((*slot, shape.clone()))
    }
}

//! Values into variables.

use std::sync::Arc;

use base::{Oid, Result, err};
use exec::ExecContext;
use types::Datum;
use types::datum::{Array, Shape};
use types::oids::{INT4, RECORD};

use crate::frame::{Frame, extra};
use crate::names::{no_field, unassigned};
use crate::program::*;

impl Frame<'_> {
    /// `target := value`.
    ///
    /// # Errors
    /// Those of conversion; `22004` for NOT NULL.
    pub fn assign(
        &mut self,
        target: &Assignable,
        value: Datum,
        ty: Oid,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        let mut steps = Vec::with_capacity(target.path.len());
        for step in &target.path {
            steps.push(self.step(step, cx)?);
        }
        self.assign_at(target, &steps, value, ty, cx)
    }

    /// The same where the subscripts are known.
    ///
    /// # Errors
    /// As [`Frame::assign`].
    pub fn assign_at(
        &mut self,
        target: &Assignable,
        steps: &[Place<'_>],
        value: Datum,
        ty: Oid,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        if steps.is_empty() {
            return self.store(target.slot, value, ty, cx);
        }
        let info = &self.program.slots[usize::from(target.slot)];
        // Taken out, so that it is changed in place when nobody else holds it.
        let old = std::mem::take(&mut self.slots[usize::from(target.slot)]);
        let kept = old.clone();
        let old = match (old, self.absent_shape(target.slot)) {
            (Datum::Null, Some(shape)) => {
                Datum::record(shape.clone(), vec![Datum::Null; shape.columns.len()])
            }
            (old, _) => old,
        };
        let new =
            match self.with_part(old, (info.ty, info.typmod), &info.name, steps, value, ty, cx) {
                Ok(new) => new,
                Err(error) => {
                    self.slots[usize::from(target.slot)] = kept;
                    return Err(error);
                }
            };
        drop(kept);
        let (domain, ty) = (types::user::has_domains(info.ty), info.ty);
        if domain && info.kind != SlotKind::Record {
            let base = types::user::base_type(ty, -1).0;
            return self.store(target.slot, new, base, cx);
        }
        self.slots[usize::from(target.slot)] = new;
        Ok(())
    }

    /// An assignment to one element, in place: the common case of [`Frame::assign`].
    pub fn assign_element(
        &mut self,
        slot: Slot,
        place: &Place<'_>,
        value: &Datum,
        ty: Oid,
    ) -> bool {
        let Place::Index(index) = place else { return false };
        let Datum::Array(array) = &mut self.slots[usize::from(slot)] else { return false };
        let (&[(length, low)], true) = (&array.dims[..], array.element == ty) else {
            return false;
        };
        let at = i64::from(*index) - i64::from(low);
        if at < 0 || at >= i64::from(length) {
            if at != i64::from(length) {
                return false;
            }
            let array = Arc::make_mut(array);
            array.items.push(value.clone());
            array.dims[0].0 += 1;
            return true;
        }
        Arc::make_mut(array).items[at as usize] = value.clone();
        true
    }

    /// Where a step leads: its subscripts are evaluated.
    ///
    /// # Errors
    /// `22004` for a NULL subscript; those of the expressions.
    pub fn step<'s>(&mut self, step: &'s Step, cx: &mut ExecContext<'_>) -> Result<Place<'s>> {
        let subscript = |value: Datum| match value {
            Datum::Int4(n) => Ok(n),
            _ => {
                Err(err!(NULL_VALUE_NOT_ALLOWED, "array subscript in assignment must not be null"))
            }
        };
        Ok(match step {
            Step::Field(name) => Place::Field(name),
            Step::Index(code) => Place::Index(subscript(self.value(*code, cx)?)?),
            Step::Slice(low, high) => {
                let mut bound = |code: &Option<CodeId>, cx: &mut ExecContext<'_>| match code {
                    None => Ok(None),
                    Some(code) => self.value(*code, cx).and_then(subscript).map(Some),
                };
                let low = bound(low, cx)?;
                Place::Slice(low, bound(high, cx)?)
            }
        })
    }

    /// A value with a part of it replaced.
    #[allow(clippy::too_many_arguments)]
    fn with_part(
        &mut self,
        old: Datum,
        (ty, typmod): (Oid, i32),
        name: &str,
        path: &[Place<'_>],
        value: Datum,
        from: Oid,
        cx: &mut ExecContext<'_>,
    ) -> Result<Datum> {
        sched::check_stack()?;
        let Some((first, rest)) = path.split_first() else {
            return self.fitted(value, from, (ty, typmod), cx);
        };
        match first {
            Place::Field(field) => self.with_field(old, ty, name, field, rest, (value, from), cx),
            Place::Index(_) | Place::Slice(..) => {
                let count = path.iter().take_while(|p| !matches!(p, Place::Field(_))).count();
                let (indexes, rest) = path.split_at(count);
                self.with_items(old, (ty, typmod), name, indexes, rest, (value, from), cx)
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn with_field(
        &mut self,
        old: Datum,
        ty: Oid,
        name: &str,
        field: &str,
        rest: &[Place<'_>],
        (value, from): (Datum, Oid),
        cx: &mut ExecContext<'_>,
    ) -> Result<Datum> {
        let (shape, mut fields) = match old {
            Datum::Record(row) => (row.shape.clone(), row.fields.to_vec()),
            _ => match types::user::shape(ty) {
                Some(shape) => {
                    let count = shape.columns.len();
                    (shape, vec![Datum::Null; count])
                }
                None if ty == RECORD => return Err(unassigned(name)),
                None => {
                    return Err(err!(
                        WRONG_OBJECT_TYPE,
                        "cannot assign to field \"{field}\" of variable \"{name}\" because its type {} is not composite",
                        types::io::format_type(ty, -1)
                    ));
                }
            },
        };
        let Some(at) = shape.columns.iter().position(|(known, _)| known == field) else {
            return Err(no_field(name, field));
        };
        let inner = std::mem::take(&mut fields[at]);
        let ty = shape.columns[at].1;
        fields[at] = self.with_part(inner, (ty, -1), field, rest, value, from, cx)?;
        Ok(Datum::record(shape, fields))
    }

    #[allow(clippy::too_many_arguments)]
    fn with_items(
        &mut self,
        old: Datum,
        (ty, typmod): (Oid, i32),
        name: &str,
        places: &[Place<'_>],
        rest: &[Place<'_>],
        (value, from): (Datum, Oid),
        cx: &mut ExecContext<'_>,
    ) -> Result<Datum> {
        let base = types::user::base_type(ty, -1).0;
        let element = types::TypeIo::get(base).map_or(Oid::INVALID, |io| io.element);
        if element == Oid::INVALID {
            return Err(err!(
                DATATYPE_MISMATCH,
                "cannot subscript type {} because it does not support subscripting",
                types::io::format_type(ty, -1)
            ));
        }
        let indexes: Option<Vec<i32>> = places
            .iter()
            .map(|p| match p {
                Place::Index(n) => Some(*n),
                _ => None,
            })
            .collect();
        let function;
        let mut args;
        let mut arg_types;
        match indexes {
            Some(indexes) => {
                let inner = match rest.is_empty() {
                    true => Datum::Null,
                    false => item_of(&old, &indexes),
                };
                let value =
                    self.with_part(inner, (element, typmod), name, rest, value, from, cx)?;
                function = &types::func::internal::ARRAY_SET;
                args = vec![old, value];
                arg_types = vec![base, element];
                for index in indexes {
                    args.push(Datum::Int4(index));
                    arg_types.push(INT4);
                }
            }
            None => {
                let value = self.fitted(value, from, (ty, typmod), cx)?;
                function = &types::func::internal::ARRAY_SET_SLICE;
                args = vec![old, value];
                arg_types = vec![base, base];
                for place in places {
                    let (low, high) = match place {
                        Place::Index(n) => (Some(1), Some(*n)),
                        Place::Slice(low, high) => (*low, *high),
                        Place::Field(_) => (None, None),
                    };
                    for bound in [low, high] {
                        args.push(bound.map_or(Datum::text(""), Datum::Int4));
                        arg_types.push(if bound.is_some() { INT4 } else { types::oids::TEXT });
                    }
                }
            }
        }
        let types = types::func::CallTypes { args: &arg_types, result: base };
        match function.body.run(&args, types, cx.format) {
            Some(result) => result,
            None => Err(base::Error::internal("an array function without a body")),
        }
    }

    /// A value as a variable of a type takes it.
    fn fitted(
        &mut self,
        value: Datum,
        from: Oid,
        (ty, typmod): (Oid, i32),
        cx: &mut ExecContext<'_>,
    ) -> Result<Datum> {
        if types::user::shape(ty).is_some()
            && let Datum::Record(row) = &value
        {
            let columns = row.shape.columns.clone();
            return self.row_of_type(ty, row.fields.to_vec(), &columns, cx);
        }
        self.convert(value, from, (ty, typmod), cx)
    }

    /// Puts a value into a variable.
    ///
    /// # Errors
    /// Those of conversion; `22004`; `42804` for a value that is no row.
    pub fn store(
        &mut self,
        slot: Slot,
        value: Datum,
        from: Oid,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        let info = &self.program.slots[usize::from(slot)];
        let value = match info.kind {
            SlotKind::Scalar => match from == info.ty && info.typmod < 0 {
                true => value,
                false => self.convert(value, from, (info.ty, info.typmod), cx)?,
            },
            SlotKind::Case => value,
            SlotKind::Record | SlotKind::Row => match value {
                Datum::Null if info.kind == SlotKind::Row && types::user::has_domains(info.ty) => {
                    self.convert(Datum::Null, RECORD, (info.ty, -1), cx)?
                }
                Datum::Null => Datum::Null,
                Datum::Record(row) if info.kind == SlotKind::Record => Datum::Record(row),
                Datum::Record(row) => {
                    let columns = row.shape.columns.clone();
                    self.row_of_type(info.ty, row.fields.to_vec(), &columns, cx)?
                }
                _ => base::bail!(
                    DATATYPE_MISMATCH,
                    "cannot assign non-composite value to a record variable"
                ),
            },
        };
        if info.not_null && value.is_null() {
            return Err(err!(
                NULL_VALUE_NOT_ALLOWED,
                "null value cannot be assigned to variable \"{}\" declared NOT NULL",
                info.name
            ));
        }
        self.slots[usize::from(slot)] = value;
        // An assigned NULL has no columns.
        self.absent.retain(|(known, _)| *known != slot);
        Ok(())
    }

    /// Values as a row of a composite type, by position.
    pub fn row_of_type(
        &mut self,
        ty: Oid,
        values: Vec<Datum>,
        columns: &[(types::Text, Oid)],
        cx: &mut ExecContext<'_>,
    ) -> Result<Datum> {
        let Some(shape) = types::user::shape(ty) else {
            return Err(base::Error::internal("a row variable without columns"));
        };
        let mut given = values.into_iter().zip(columns);
        let mut fields = Vec::with_capacity(shape.columns.len());
        for (_, wanted) in &shape.columns {
            fields.push(match given.next() {
                Some((value, (_, from))) => self.fitted(value, *from, (*wanted, -1), cx)?,
                None if types::user::has_domains(*wanted) => {
                    self.convert(Datum::Null, *wanted, (*wanted, 0), cx).unwrap_or_default()
                }
                None => Datum::Null,
            });
        }
        let row = Datum::record(shape, fields);
        match types::user::base_type(ty, -1).0 == ty {
            true => Ok(row),
            false => self.convert(row, types::user::base_type(ty, -1).0, (ty, -1), cx),
        }
    }

    /// The check `strict_multi_assignment`.
    fn check_count(
        &mut self,
        targets: &[Assignable],
        row: &Option<Vec<Datum>>,
        shape: &Arc<Shape>,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        let Some(fails) = extra(cx, "strict_multi_assignment").filter(|_| row.is_some()) else {
            return Ok(());
        };
        let info = targets.first().map(|t| &self.program.slots[usize::from(t.slot)]);
        let wanted = match (targets, info) {
            ([one], Some(info)) if one.path.is_empty() && info.kind == SlotKind::Record => {
                return Ok(());
            }
            ([one], Some(info)) if one.path.is_empty() && info.kind == SlotKind::Row => {
                types::user::shape(info.ty).map_or(0, |s| s.columns.len())
            }
            (all, _) => all.len(),
        };
        if wanted == shape.columns.len() {
            return Ok(());
        }
        let which = if fails { "extra_errors" } else { "extra_warnings" };
        let error = err!(
            DATATYPE_MISMATCH,
            "number of source and target fields in assignment does not match"
        )
        .detail(format!("strict_multi_assignment check of {which} is active."))
        .hint("Make sure the query returns the exact list of columns.");
        if fails {
            return Err(error);
        }
        let context = self.context(cx);
        cx.hooks.notice("WARNING", error.context(context));
        Ok(())
    }

    /// A row of a query (None: there was none) into variables.
    ///
    /// # Errors
    /// Those of conversion; `42804` when a strict count differs.
    pub fn move_row(
        &mut self,
        targets: &[Assignable],
        row: Option<Vec<Datum>>,
        shape: &Arc<Shape>,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        self.check_count(targets, &row, shape, cx)?;
        if let [one] = targets
            && one.path.is_empty()
            && self.program.slots[usize::from(one.slot)].kind != SlotKind::Scalar
        {
            let info = &self.program.slots[usize::from(one.slot)];
            let value = match info.kind {
                SlotKind::Record => {
                    let fields = row.unwrap_or_else(|| vec![Datum::Null; shape.columns.len()]);
                    // A query of one row value is that row.
                    match (&fields[..], &shape.columns[..]) {
                        ([Datum::Record(_)], [(_, ty)])
                            if *ty == RECORD || types::user::shape(*ty).is_some() =>
                        {
                            fields.into_iter().next().unwrap_or_default()
                        }
                        _ => Datum::record(shape.clone(), fields),
                    }
                }
                _ => match row {
                    None => Datum::Null,
                    Some(mut fields) => match (&fields[..], &shape.columns[..]) {
                        ([Datum::Record(r)], [(_, ty)])
                            if *ty == RECORD || types::user::shape(*ty).is_some() =>
                        {
                            let _ = r;
                            fields.pop().unwrap_or_default()
                        }
                        _ => {
                            let columns = shape.columns.clone();
                            self.row_of_type(info.ty, fields, &columns, cx)?
                        }
                    },
                },
            };
            return self.store(one.slot, value, RECORD, cx);
        }
        let mut values = row.into_iter().flatten();
        for (n, target) in targets.iter().enumerate() {
            let value = values.next().unwrap_or_default();
            let ty = shape.columns.get(n).map_or(types::oids::UNKNOWN, |c| c.1);
            self.assign(target, value, ty, cx)?;
        }
        Ok(())
    }
}

/// A step with its values.
pub enum Place<'s> {
    Field(&'s str),
    Index(i32),
    Slice(Option<i32>, Option<i32>),
}

/// The item at these subscripts; NULL outside.
fn item_of(array: &Datum, indexes: &[i32]) -> Datum {
    let Datum::Array(array) = array else { return Datum::Null };
    let array: &Array = array;
    if array.dims.len() != indexes.len() {
        return Datum::Null;
    }
    let mut at = 0i64;
    for ((length, low), index) in array.dims.iter().zip(indexes) {
        let offset = i64::from(*index) - i64::from(*low);
        if offset < 0 || offset >= i64::from(*length) {
            return Datum::Null;
        }
        at = at * i64::from(*length) + offset;
    }
    array.items.get(at as usize).cloned().unwrap_or_default()
}

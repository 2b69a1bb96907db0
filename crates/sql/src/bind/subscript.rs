//! Subscripts and slices of arrays and jsonb.

use base::{Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};
use types::Datum;
use types::oids::*;

use crate::expr::Expr;
use crate::logical::TableRel;

use super::{Binder, Scope, ast, coerce, inner};

/// `jsonb_extract_path`.
const JSONB_EXTRACT_PATH: Oid = Oid(3217);

/// `int4pl`.
const INT4PL: Oid = Oid(177);
/// `substr(text, integer, integer)`.
const TEXT_SUBSTR: Oid = Oid(877);

impl Binder<'_> {
    /// Subscripts and fields after an expression.
    pub(crate) fn indirection(&mut self, scope: &Scope<'_>, i: &pb::AIndirection) -> Result<Expr> {
        let location = inner(&i.arg).map_or(-1, ast::location);
        let mut value = self.expr_box(scope, &i.arg)?;
        let mut rest = i.indirection.as_slice();
        while let Some(first) = rest.first() {
            match &first.node {
                Some(NodeEnum::AIndices(_)) => {
                    let is_subscript =
                        |n: &pb::Node| matches!(&n.node, Some(NodeEnum::AIndices(_)));
                    let count = rest.iter().take_while(|n| is_subscript(n)).count();
                    let (subscripts, others) = rest.split_at(count);
                    value = self.subscripted(scope, value, subscripts, location)?;
                    rest = others;
                }
                Some(NodeEnum::String(field)) => {
                    let row = self.has_function(&field.sval).then(|| value.clone());
                    value = match (self.field(value, &field.sval, location), row) {
                        (Err(error), Some(row)) => {
                            self.attribute_call(scope, row, &field.sval, location)?.ok_or(error)?
                        }
                        (found, _) => found?,
                    };
                    rest = &rest[1..];
                }
                _ => return Err(self.unsupported("field selection", location)),
            }
        }
        Ok(value)
    }

    /// What stands before the `.*` of `(row).*`.
    pub(crate) fn star_source(&mut self, scope: &Scope<'_>, i: &pb::AIndirection) -> Result<Expr> {
        let mut before = i.clone();
        before.indirection.pop();
        self.indirection(scope, &before)
    }

    /// `array[1][2]`, `array[1:2]`, `jsonb['key'][0]`.
    fn subscripted(
        &mut self,
        scope: &Scope<'_>,
        value: Expr,
        nodes: &[pb::Node],
        location: i32,
    ) -> Result<Expr> {
        if let Some(element) = types::open::get(value.ty()).and_then(|class| class.element()) {
            if let (true, [pb::Node { node: Some(NodeEnum::AIndices(s)) }]) = (self.unfolded, nodes)
                && !s.is_slice
            {
                return self.subscripts_as_written(scope, value, element, nodes);
            }
            return self.open_item(scope, value, element, nodes, location);
        }
        let ty = coerce::element_of(value.ty());
        if ty == Oid::INVALID && !matches!(value.ty(), JSONB | NAME) {
            return Err(err!(
                DATATYPE_MISMATCH,
                "cannot subscript type {} because it does not support subscripting",
                types::io::format_type(value.ty(), -1)
            )
            .at(self.at(location)));
        }
        if self.unfolded {
            return self.subscripts_as_written(scope, value, ty, nodes);
        }
        let indices = nodes.iter().filter_map(|n| match &n.node {
            Some(NodeEnum::AIndices(s)) => Some(&**s),
            _ => None,
        });
        let indices: Vec<&pb::AIndices> = indices.collect();
        if value.ty() == NAME
            && let [one] = indices[..]
            && !one.is_slice
        {
            return self.letter_of_name(scope, value, one);
        }
        if value.ty() == JSONB {
            return self.jsonb_subscripts(scope, value, &indices, location);
        }
        if !indices.iter().any(|s| s.is_slice) {
            let mut indexes = Vec::with_capacity(indices.len());
            for s in &indices {
                indexes.push(self.array_index(scope, &s.uidx)?);
            }
            return Ok(Expr::Subscript { array: Box::new(value), indexes, ty });
        }
        let array = value.ty();
        let mut args = vec![value];
        for s in &indices {
            args.extend(self.slice_bounds(scope, s)?);
        }
        let array = coerce::array_of(coerce::element_of(array));
        Ok(self.call(&types::func::internal::ARRAY_SLICE, args, array, 0))
    }

    /// Subscripts that are to be printed.
    fn subscripts_as_written(
        &mut self,
        scope: &Scope<'_>,
        value: Expr,
        element: Oid,
        nodes: &[pb::Node],
    ) -> Result<Expr> {
        let indices: Vec<&pb::AIndices> = nodes
            .iter()
            .filter_map(|n| match &n.node {
                Some(NodeEnum::AIndices(s)) => Some(&**s),
                _ => None,
            })
            .collect();
        let sliced = indices.iter().any(|s| s.is_slice);
        let ty = match value.ty() {
            JSONB => JSONB,
            NAME => CHAR,
            array if sliced => coerce::array_of(coerce::element_of(array)),
            _ => element,
        };
        let mut args = vec![value];
        for s in indices {
            let ends = match (s.is_slice, inner(&s.lidx), inner(&s.uidx)) {
                (false, ..) if sliced => b'b',
                (false, ..) => b'i',
                (true, Some(_), Some(_)) => b'b',
                (true, Some(_), None) => b'l',
                (true, None, Some(_)) => b'u',
                (true, None, None) => b'n',
            };
            args.push(Expr::Const(Datum::Char(ends), CHAR));
            if !s.is_slice && sliced {
                args.push(Expr::Const(Datum::Int4(1), INT4));
            }
            for bound in [&s.lidx, &s.uidx].into_iter().filter(|bound| bound.is_some()) {
                args.push(match ty {
                    JSONB => self.jsonb_step(scope, bound)?,
                    _ => self.array_index(scope, bound)?,
                });
            }
        }
        let function = &types::func::internal::WRITTEN_SUBSCRIPTS;
        Ok(Expr::Call { function, args: args.into(), ty, position: 0 })
    }

    /// `point[0]`: one subscript of a value whose type is defined outside.
    fn open_item(
        &mut self,
        scope: &Scope<'_>,
        value: Expr,
        element: Oid,
        nodes: &[pb::Node],
        location: i32,
    ) -> Result<Expr> {
        match nodes {
            [pb::Node { node: Some(NodeEnum::AIndices(s)) }] if !s.is_slice => {
                let index = self.array_index(scope, &s.uidx)?;
                Ok(self.call(&types::func::internal::OPEN_ITEM, vec![value, index], element, 0))
            }
            [_] => {
                Err(err!(FEATURE_NOT_SUPPORTED, "slices of fixed-length arrays not implemented")
                    .at(self.at(location)))
            }
            // More dimensions than it has: nothing is there.
            _ => Ok(Expr::Const(Datum::Null, element)),
        }
    }

    /// `name[0]`: a name is an array of "char" that begins at 0.
    fn letter_of_name(
        &mut self,
        scope: &Scope<'_>,
        value: Expr,
        index: &pb::AIndices,
    ) -> Result<Expr> {
        let number = |n| Expr::Const(Datum::Int4(n), INT4);
        let at = self.array_index(scope, &index.uidx)?;
        let (Some(plus), Some(substr)) =
            (types::func::function(INT4PL), types::func::function(TEXT_SUBSTR))
        else {
            return Err(base::Error::internal("substr is missing"));
        };
        let place = self.call(plus, vec![at, number(1)], INT4, 0);
        let text = Expr::Relabel(Box::new(value), TEXT);
        let letter = self.call(substr, vec![text, place, number(1)], TEXT, 0);
        Ok(Expr::InOutCast { arg: Box::new(letter), ty: CHAR, typmod: -1 })
    }

    /// Both bounds of a slice: a text stands for one that is left out; a lone subscript n means 1:n.
    fn slice_bounds(&mut self, scope: &Scope<'_>, s: &pb::AIndices) -> Result<[Expr; 2]> {
        let open = || Expr::Const(Datum::text(""), TEXT);
        let low = match (s.is_slice, inner(&s.lidx)) {
            (false, _) => Expr::Const(Datum::Int4(1), INT4),
            (true, None) => open(),
            (true, Some(_)) => self.array_index(scope, &s.lidx)?,
        };
        let high = match inner(&s.uidx) {
            Some(_) => self.array_index(scope, &s.uidx)?,
            None => open(),
        };
        Ok([low, high])
    }

    /// A subscript as an integer.
    pub(crate) fn array_index(
        &mut self,
        scope: &Scope<'_>,
        node: &Option<Box<pb::Node>>,
    ) -> Result<Expr> {
        let index = self.expr_box(scope, node)?;
        let position = self.at(inner(node).map_or(-1, ast::location));
        let cast = self.coerce(index, INT4, types::func::CastContext::Assignment, position)?;
        cast.ok_or_else(|| {
            err!(DATATYPE_MISMATCH, "array subscript must have type integer").at(position)
        })
    }

    /// Subscripts of a jsonb are the steps of a path.
    fn jsonb_subscripts(
        &mut self,
        scope: &Scope<'_>,
        value: Expr,
        indices: &[&pb::AIndices],
        location: i32,
    ) -> Result<Expr> {
        let mut args = vec![value];
        args.extend(self.jsonb_steps(scope, indices, location)?);
        match types::func::function(JSONB_EXTRACT_PATH) {
            Some(function) => Ok(self.call(function, args, JSONB, 0)),
            None => Err(self.unsupported("subscripts of jsonb", location)),
        }
    }

    /// The steps of such a path, as texts.
    fn jsonb_steps(
        &mut self,
        scope: &Scope<'_>,
        indices: &[&pb::AIndices],
        location: i32,
    ) -> Result<Vec<Expr>> {
        let mut args = Vec::with_capacity(indices.len());
        for s in indices {
            if s.is_slice {
                return Err(err!(DATATYPE_MISMATCH, "jsonb subscript does not support slices")
                    .at(self.at(location)));
            }
            let step = self.jsonb_step(scope, &s.uidx)?;
            args.push(if step.ty() == INT4 {
                Expr::InOutCast { arg: Box::new(step), ty: TEXT, typmod: -1 }
            } else {
                step
            });
        }
        Ok(args)
    }

    /// A step of such a path: an integer or a text.
    fn jsonb_step(&mut self, scope: &Scope<'_>, node: &Option<Box<pb::Node>>) -> Result<Expr> {
        let index = self.expr_box(scope, node)?;
        let position = self.at(inner(node).map_or(-1, ast::location));
        let from = index.ty();
        let wanted = if matches!(from, INT2 | INT4 | INT8) { INT4 } else { TEXT };
        let cast = self.coerce(index, wanted, types::func::CastContext::Implicit, position)?;
        cast.ok_or_else(|| {
            err!(
                DATATYPE_MISMATCH,
                "subscript type {} is not supported",
                types::io::format_type(from, -1)
            )
            .hint("jsonb subscript must be coercible to either integer or text.")
            .at(position)
        })
    }

    /// `SET array[i] = value`, `SET row.field = value`: the column becomes the value with that part
    /// changed.
    pub(crate) fn assign_item(
        &mut self,
        scope: &Scope<'_>,
        target: &TableRel,
        assignment: &pb::ResTarget,
        number: u16,
        set: &mut Vec<(u16, Expr)>,
    ) -> Result<()> {
        let column = target.table.columns[usize::from(number) - 1].clone();
        let Some(value) = inner(&assignment.val) else { return Ok(()) };
        scope.place.set(super::scope::Place::Set);
        let value = match value {
            NodeEnum::MultiAssignRef(multi) => {
                match self.multi_assign(scope, multi, assignment.location)? {
                    Some(value) => value,
                    None => return Err(cannot_default(assignment, self.at(assignment.location))),
                }
            }
            NodeEnum::SetToDefault(_) => {
                return Err(cannot_default(assignment, self.at(assignment.location)));
            }
            value => self.expr(scope, value)?,
        };
        self.note(assignment, super::record::Part::Assigned, std::slice::from_ref(&value));
        let known = set.iter().position(|(n, _)| *n == number);
        let old = match known {
            Some(at) => set[at].1.clone(),
            None => self.column(target.base + number - 1),
        };
        let new = self.assign_part(scope, old, &column, assignment, value)?;
        match known {
            Some(at) => set[at].1 = new,
            None => set.push((number, new)),
        }
        Ok(())
    }

    /// A column's value with the part that an assignment names replaced.
    ///
    /// # Errors
    /// `42804`, `42703`.
    pub(crate) fn assign_part(
        &mut self,
        scope: &Scope<'_>,
        old: Expr,
        column: &catalog::Column,
        assignment: &pb::ResTarget,
        value: Expr,
    ) -> Result<Expr> {
        let part = Part { column: &column.name, location: assignment.location };
        let ty = (Oid(column.ty), column.typmod);
        self.part(scope, old, ty, &assignment.indirection, value, part)
    }

    fn part(
        &mut self,
        scope: &Scope<'_>,
        old: Expr,
        (ty, typmod): (Oid, i32),
        path: &[pb::Node],
        value: Expr,
        part: Part<'_>,
    ) -> Result<Expr> {
        sched::check_stack()?;
        let position = self.at(part.location);
        let base = coerce::base_of(ty);
        let new = match path.first().and_then(|n| n.node.as_ref()) {
            None => return self.assign(value, ty, typmod, part.column, position),
            Some(NodeEnum::String(field)) => {
                let name = &field.sval;
                let fail = |what: String| {
                    err!(
                        DATATYPE_MISMATCH,
                        "cannot assign to field \"{name}\" of column \"{}\" because {what}",
                        part.column
                    )
                    .at(position)
                };
                let type_name = types::io::format_type(base, -1);
                let Some(shape) = types::user::shape(base) else {
                    return Err(fail(format!("its type {type_name} is not a composite type")));
                };
                let Some(at) = shape.columns.iter().position(|(column, _)| column == name) else {
                    let what = format!("there is no such column in data type {type_name}");
                    let message = fail(what).message().to_owned();
                    return Err(err!(UNDEFINED_COLUMN, "{message}").at(position));
                };
                let field_type = (shape.columns[at].1, coerce::typmod_of_field(base, at));
                let before = self.field_at(old.clone(), at, field_type.0);
                let inside = Part { column: name, location: part.location };
                let value = self.part(scope, before, field_type, &path[1..], value, inside)?;
                let nulls = vec![Datum::Null; shape.columns.len()];
                let template = Expr::Const(Datum::record(shape, nulls), base);
                let at = Expr::Const(Datum::Int4(at as i32), INT4);
                let args = vec![old, at, value, template];
                self.call(&types::func::internal::FIELD_SET, args, base, 0)
            }
            Some(NodeEnum::AIndices(_)) => {
                self.item(scope, old, (base, typmod), path, value, part)?
            }
            _ => return Err(self.unsupported("assigning to this part of a column", part.location)),
        };
        Ok(if base == ty { new } else { self.checked(new, ty) })
    }

    /// The same for a part that begins with subscripts.
    fn item(
        &mut self,
        scope: &Scope<'_>,
        old: Expr,
        (ty, typmod): (Oid, i32),
        path: &[pb::Node],
        value: Expr,
        part: Part<'_>,
    ) -> Result<Expr> {
        let subscript = |n: &pb::Node| match &n.node {
            Some(NodeEnum::AIndices(s)) => Some((**s).clone()),
            _ => None,
        };
        let indices: Vec<pb::AIndices> = path.iter().map_while(subscript).collect();
        let rest = &path[indices.len()..];
        let element = coerce::element_of(ty);
        if element == Oid::INVALID && ty != JSONB {
            return Err(err!(
                DATATYPE_MISMATCH,
                "cannot subscript type {} because it does not support subscripting",
                types::io::format_type(ty, -1)
            )
            .at(self.at(part.location)));
        }
        if element == Oid::INVALID {
            return self.jsonb_item(scope, old, &indices, rest, value, part);
        }
        if indices.iter().any(|s| s.is_slice) {
            return self.slice_item(scope, old, (ty, typmod), &indices, rest, value, part);
        }
        let mut indexes = Vec::with_capacity(indices.len());
        for s in &indices {
            indexes.push(self.array_index(scope, &s.uidx)?);
        }
        let before =
            Expr::Subscript { array: Box::new(old.clone()), indexes: indexes.clone(), ty: element };
        let value = self.part(scope, before, (element, typmod), rest, value, part)?;
        let mut args = vec![old, value];
        args.append(&mut indexes);
        let function = &types::func::internal::ARRAY_SET;
        Ok(Expr::Call { function, args: args.into(), ty, position: 0 })
    }

    /// `SET array[low:high] = values`.
    #[allow(clippy::too_many_arguments)]
    fn slice_item(
        &mut self,
        scope: &Scope<'_>,
        old: Expr,
        (ty, typmod): (Oid, i32),
        indices: &[pb::AIndices],
        rest: &[pb::Node],
        value: Expr,
        part: Part<'_>,
    ) -> Result<Expr> {
        if !rest.is_empty() {
            return Err(self.unsupported("assigning to this part of a column", part.location));
        }
        let value = self.assign(value, ty, typmod, part.column, self.at(part.location))?;
        let mut args = vec![old, value];
        for s in indices {
            args.extend(self.slice_bounds(scope, s)?);
        }
        let function = &types::func::internal::ARRAY_SET_SLICE;
        Ok(Expr::Call { function, args: args.into(), ty, position: 0 })
    }

    /// `SET document['key'][0] = value`.
    fn jsonb_item(
        &mut self,
        scope: &Scope<'_>,
        old: Expr,
        indices: &[pb::AIndices],
        rest: &[pb::Node],
        value: Expr,
        part: Part<'_>,
    ) -> Result<Expr> {
        if !rest.is_empty() {
            return Err(self.unsupported("assigning to this part of a column", part.location));
        }
        let value = self.assign(value, JSONB, -1, part.column, self.at(part.location))?;
        let indices: Vec<&pb::AIndices> = indices.iter().collect();
        let mut args = vec![old, value];
        args.extend(self.jsonb_steps(scope, &indices, part.location)?);
        let function = &types::func::internal::JSONB_ASSIGN;
        Ok(Expr::Call { function, args: args.into(), ty: JSONB, position: 0 })
    }
}

/// What is assigned to, for messages.
#[derive(Clone, Copy)]
struct Part<'a> {
    column: &'a str,
    location: i32,
}

/// Whether it is `(row).*`.
pub(crate) fn ends_with_star(i: &pb::AIndirection) -> bool {
    matches!(i.indirection.last().and_then(|n| n.node.as_ref()), Some(NodeEnum::AStar(_)))
}

pub(super) fn cannot_default(assignment: &pb::ResTarget, position: u32) -> base::Error {
    let what = match assignment.indirection.first().and_then(|n| n.node.as_ref()) {
        Some(NodeEnum::AIndices(_)) => "an array element",
        _ => "a subfield",
    };
    err!(FEATURE_NOT_SUPPORTED, "cannot set {what} to DEFAULT").at(position)
}

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
                Some(NodeEnum::String(field)) => return self.field(value, &field.sval, location),
                _ => return Err(self.unsupported("field selection", location)),
            }
        }
        Ok(value)
    }

    /// `array[1][2]`, `array[1:2]`, `jsonb['key'][0]`.
    fn subscripted(
        &mut self,
        scope: &Scope<'_>,
        value: Expr,
        nodes: &[pb::Node],
        location: i32,
    ) -> Result<Expr> {
        let ty = coerce::element_of(value.ty());
        if ty == Oid::INVALID && !matches!(value.ty(), JSONB | NAME) {
            return Err(err!(
                DATATYPE_MISMATCH,
                "cannot subscript type {} because it does not support subscripting",
                types::io::format_type(value.ty(), -1)
            )
            .at(self.at(location)));
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
        // A text stands for a bound that is left out; a lone subscript n means 1:n.
        let open = || Expr::Const(Datum::text(""), TEXT);
        let array = value.ty();
        let mut args = vec![value];
        for s in &indices {
            let low = match (s.is_slice, inner(&s.lidx)) {
                (false, _) => Expr::Const(Datum::Int4(1), INT4),
                (true, None) => open(),
                (true, Some(_)) => self.array_index(scope, &s.lidx)?,
            };
            args.push(low);
            args.push(match inner(&s.uidx) {
                Some(_) => self.array_index(scope, &s.uidx)?,
                None => open(),
            });
        }
        let array = coerce::array_of(coerce::element_of(array));
        Ok(self.call(&types::func::internal::ARRAY_SLICE, args, array, 0))
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
        for s in indices {
            if s.is_slice {
                return Err(err!(DATATYPE_MISMATCH, "jsonb subscript does not support slices")
                    .at(self.at(location)));
            }
            let index = self.expr_box(scope, &s.uidx)?;
            let position = self.at(inner(&s.uidx).map_or(-1, ast::location));
            let from = index.ty();
            let wanted = if matches!(from, INT2 | INT4 | INT8) { INT4 } else { TEXT };
            let cast = self.coerce(index, wanted, types::func::CastContext::Implicit, position)?;
            let step = cast.ok_or_else(|| {
                err!(
                    DATATYPE_MISMATCH,
                    "subscript type {} is not supported",
                    types::io::format_type(from, -1)
                )
                .hint("jsonb subscript must be coercible to either integer or text.")
                .at(position)
            })?;
            args.push(if wanted == INT4 {
                Expr::InOutCast { arg: Box::new(step), ty: TEXT, typmod: -1 }
            } else {
                step
            });
        }
        match types::func::function(JSONB_EXTRACT_PATH) {
            Some(function) => Ok(self.call(function, args, JSONB, 0)),
            None => Err(self.unsupported("subscripts of jsonb", location)),
        }
    }

    /// `SET array[i] = value`: the column becomes the array with that item changed.
    pub(crate) fn assign_item(
        &mut self,
        scope: &Scope<'_>,
        target: &TableRel,
        assignment: &pb::ResTarget,
        number: u16,
        set: &mut Vec<(u16, Expr)>,
    ) -> Result<()> {
        let column = target.table.columns[usize::from(number) - 1].clone();
        let position = self.at(assignment.location);
        let ty = Oid(column.ty);
        let element = coerce::element_of(ty);
        let mut indexes = Vec::with_capacity(assignment.indirection.len());
        for node in &assignment.indirection {
            match &node.node {
                Some(NodeEnum::AIndices(s)) if !s.is_slice && element != Oid::INVALID => {
                    indexes.push(self.array_index(scope, &s.uidx)?);
                }
                _ => {
                    return Err(
                        self.unsupported("assigning to this part of a column", assignment.location)
                    );
                }
            }
        }
        let Some(value) = inner(&assignment.val) else { return Ok(()) };
        scope.place.set(super::scope::Place::Set);
        let value = self.expr(scope, value)?;
        let value = self.assign(value, element, column.typmod, &column.name, position)?;
        let known = set.iter().position(|(n, _)| *n == number);
        let old = match known {
            Some(at) => set[at].1.clone(),
            None => self.column(target.base + number - 1),
        };
        let mut args = vec![old, value];
        args.append(&mut indexes);
        let function = &types::func::internal::ARRAY_SET;
        let new = Expr::Call { function, args: args.into(), ty, position: 0 };
        match known {
            Some(at) => set[at].1 = new,
            None => set.push((number, new)),
        }
        Ok(())
    }
}

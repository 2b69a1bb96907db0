//! Variables of procedural languages in the names of their statements.

use base::{Result, err};
use pg_query::{NodeEnum, protobuf as pb};
use types::Datum;
use types::datum::Shape;
use types::func::CastContext;
use types::oids::{RECORD, UNKNOWN};

use crate::embedded::{Conflict, Variable};
use crate::expr::Expr;
use crate::logical::Rel;

use super::from::FromItem;
use super::{Binder, Scope, ast};

impl Binder<'_> {
    /// A variable as an expression: a parameter, or a field of one.
    pub(super) fn variable(&mut self, variable: &Variable) -> Expr {
        let slot = usize::from(variable.slot);
        if self.params.len() <= slot {
            self.params.resize(slot + 1, UNKNOWN);
        }
        self.params[slot] = variable.ty;
        let param = Expr::Param(variable.slot.into(), variable.ty);
        if let Some((at, ty)) = variable.field {
            let args = vec![param, Expr::Const(Datum::Int4(at as i32), types::oids::INT4)];
            return self.call(&types::func::internal::FIELD, args, ty, 0);
        }
        match &variable.shape {
            Some(shape) if variable.ty == RECORD => {
                let nulls = vec![Datum::Null; shape.columns.len()];
                let template = Datum::record(shape.clone(), nulls);
                let args = vec![param, Expr::Const(template, RECORD)];
                self.call(&types::func::internal::RECORD_OF, args, RECORD, 0)
            }
            _ => match variable.collation {
                0 => param,
                collation => {
                    self.collating = true;
                    Expr::Collate(Box::new(param), collation, 0)
                }
            },
        }
    }

    /// What a name means: a column, or a variable.
    ///
    /// # Errors
    /// `42702` when it means both and the language doesn't say which wins.
    pub(super) fn column_or_variable(
        &mut self,
        scope: &Scope<'_>,
        c: &pb::ColumnRef,
    ) -> Result<Expr> {
        let Some(variables) = self.variables() else { return self.column_ref(scope, c) };
        let names = ast::strings(&c.fields);
        let star =
            matches!(c.fields.last().and_then(|f| f.node.as_ref()), Some(NodeEnum::AStar(_)));
        if star || names.is_empty() {
            return self.column_ref(scope, c);
        }
        let position = self.at(c.location);
        let known = || variables.find(&names);
        let no_columns = scope.items.is_empty() && scope.parent.is_none();
        if (no_columns || variables.conflict() == Conflict::Variable)
            && let Some(variable) = known()?
        {
            return Ok(self.variable(&variable));
        }
        match self.column_ref(scope, c) {
            Ok(column) => match variables.conflict() {
                Conflict::Error if variables.find(&names).is_ok_and(|v| v.is_some()) => {
                    let name = names.join(".");
                    Err(err!(AMBIGUOUS_COLUMN, "column reference \"{name}\" is ambiguous")
                        .detail("It could refer to either a PL/pgSQL variable or a table column.")
                        .at(position))
                }
                _ => Ok(column),
            },
            Err(error)
                if error.code() == base::sqlstate::UNDEFINED_COLUMN
                    || error.code() == base::sqlstate::UNDEFINED_TABLE =>
            {
                match known()? {
                    Some(variable) => Ok(self.variable(&variable)),
                    None => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// The row variable before `.*`, unless FROM has something of this name.
    pub(super) fn variable_row(
        &mut self,
        scope: &Scope<'_>,
        names: &[&str],
        location: i32,
    ) -> Result<Option<Expr>> {
        let Some(variables) = self.variables() else { return Ok(None) };
        let (schema, table) = ast::qualified(names);
        if names.is_empty() || self.find_item(scope, schema, table, location)?.is_some() {
            return Ok(None);
        }
        let found = variables.find(names)?;
        Ok(found.map(|v| self.variable(&v)))
    }

    /// A transition table of the trigger that the statement is part of.
    pub(super) fn transition_table(&mut self, range: &pb::RangeVar) -> Result<Option<FromItem>> {
        let Some(variables) = self.variables() else { return Ok(None) };
        if !range.schemaname.is_empty() {
            return Ok(None);
        }
        let Some((slot, shape)) = variables.rows(&range.relname) else { return Ok(None) };
        let rows = self.variable(&Variable {
            slot,
            ty: base::Oid(2287),
            field: None,
            shape: None,
            collation: 0,
        });
        let plain = Shape { ty: RECORD, columns: shape.columns.clone() };
        let nulls = vec![Datum::Null; plain.columns.len()];
        let template = Expr::Const(Datum::record(plain.into(), nulls), RECORD);
        let call = self.call(&types::func::internal::RECORDS_OF, vec![rows, template], RECORD, 0);
        let alias = range.alias.as_ref().map_or(range.relname.as_str(), |a| &a.aliasname);
        let mut names = Vec::with_capacity(shape.columns.len());
        let mut cols = Vec::with_capacity(shape.columns.len());
        for (name, ty) in &shape.columns {
            names.push(name.to_string());
            cols.push(self.new_var(name, *ty, -1)?);
        }
        let mut item = self.plain_item(Some(alias), &names, &cols);
        self.rename_columns(&mut item, range.alias.as_ref())?;
        let rel = Rel::Function { calls: vec![call], ordinality: false, cols };
        Ok(Some(FromItem { rel, items: vec![item] }))
    }

    /// A value as a variable of this type takes it: by an assignment's cast or else through text.
    pub(crate) fn for_variable(
        &mut self,
        value: Expr,
        ty: base::Oid,
        typmod: i32,
        position: u32,
    ) -> Result<Expr> {
        let value = self.resolve_null(value, ty);
        if ty == RECORD || value.ty() == ty && typmod < 0 {
            return Ok(value);
        }
        match self.coerce(value.clone(), ty, CastContext::Assignment, position)? {
            Some(value) => self.with_typmod(value, typmod, false, position),
            None => {
                let arg = Box::new(self.resolve_unknown(value)?);
                let base = super::coerce::base_of(ty);
                let text = Expr::InOutCast { arg, ty: base, typmod };
                Ok(if types::user::has_domains(ty) { self.checked(text, ty) } else { text })
            }
        }
    }

    fn resolve_null(&self, value: Expr, ty: base::Oid) -> Expr {
        match value {
            Expr::Const(Datum::Null, UNKNOWN) if !types::user::has_domains(ty) => {
                Expr::Const(Datum::Null, ty)
            }
            value => value,
        }
    }
}

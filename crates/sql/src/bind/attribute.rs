//! A function of a row, written as an attribute of it: `t.f` and `(row).f` are `f(t)` and `f(row)` where the row has no
//! column `f`.

use base::{Oid, Result, sqlstate};
use types::oids::RECORD;

use crate::expr::Expr;

use super::function::Callee;
use super::{Binder, Scope};

impl Binder<'_> {
    /// A function's call of one argument by its name; None: there is none that takes the argument.
    ///
    /// # Errors
    /// Those of calls.
    pub(crate) fn attribute_call(
        &mut self,
        scope: &Scope<'_>,
        row: Expr,
        name: &str,
        location: i32,
    ) -> Result<Option<Expr>> {
        let position = self.at(location);
        let args = std::slice::from_ref(&row);
        let found = match self.find_callee(None, name, args, &[], position, false, false) {
            Err(error) if error.code() == sqlstate::UNDEFINED_FUNCTION => None,
            found => found?,
        };
        let Some(Callee::Function(function)) = found else { return Ok(None) };
        if function.returns_set {
            let (before, _) = scope.sets.get();
            scope.check_set(before, position)?;
            self.expands = true;
        }
        match super::routine::is_users(function) {
            true => self.user_call(function, vec![row], &[], (false, false), position).map(Some),
            false => self.function(function, vec![row], position).map(Some),
        }
    }

    /// As [`Binder::attribute_call`], of a relation that FROM names.
    pub(super) fn attribute_of(
        &mut self,
        scope: &Scope<'_>,
        (schema, table): (Option<&str>, &str),
        name: &str,
        location: i32,
    ) -> Result<Option<Expr>> {
        if !self.has_function(name) || self.find_item(scope, schema, table, location)?.is_none() {
            return Ok(None);
        }
        let row = self.whole_row(scope, schema, table, location)?;
        self.attribute_call(scope, row, name, location)
    }

    /// The type of a table's rows, of a call that returns such.
    pub(super) fn row_type_of(&self, call: &Expr) -> Option<Oid> {
        let Expr::Call { function, .. } = call else { return None };
        let table = self.cx.catalog.function(function.oid.0)?.row_of?;
        self.cx.catalog.table(table).map(|t| Oid(t.row_type[0])).filter(|ty| *ty != Oid::INVALID)
    }

    /// A column of a row that is named by what looks like a call: `name(row)`.
    pub(super) fn projection(&mut self, row: &Expr, name: &str, location: i32) -> Option<Expr> {
        let is_row = row.ty() == RECORD || types::user::shape(row.ty()).is_some();
        is_row.then(|| self.field(row.clone(), name, location).ok()).flatten()
    }

    /// Whether there is a function with a name that could take a row.
    pub(super) fn has_function(&self, name: &str) -> bool {
        self.cx.catalog.functions_named(name).next().is_some()
    }
}

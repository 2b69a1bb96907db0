//! Columns that compute themselves: identity and generated columns in INSERT and UPDATE.

use base::{Oid, Result, err};
use catalog::Table;
use pg_query::protobuf as pb;
use types::Datum;

use crate::expr::Expr;
use crate::logical::TableRel;

use super::Binder;

impl Binder<'_> {
    /// What a column gets when nothing is given for it: its default, the next value of its sequence;
    /// a generated column is computed when the rest of the row is there.
    pub(crate) fn column_default(&mut self, table: &Table, number: u16) -> Result<Expr> {
        let column = &table.columns[usize::from(number) - 1];
        let ty = Oid(column.ty);
        let shown = self.shown_defaults.iter().find(|(id, n, _)| (*id, *n) == (table.oid, number));
        if let Some((_, _, sql)) = shown.cloned() {
            return self.stored_default(&sql, ty, column.typmod, &column.name);
        }
        if let Some(identity) = column.identity {
            return self.next_value(identity.sequence, ty);
        }
        match (&column.default, column.dropped || column.generated) {
            (Some(sql), false) => self.stored_default(sql, ty, column.typmod, &column.name),
            (None, false) => self.type_default(ty),
            _ => Ok(Expr::Const(Datum::Null, ty)),
        }
    }

    /// `428C9` where DEFAULT stands for the default of a view's column, which is a value for the column below.
    pub(crate) fn check_shown_default(&self, table: &Table, number: u16) -> Result<()> {
        let own = |(id, n, _): &(u32, u16, String)| (*id, *n) == (table.oid, number);
        if table.columns[usize::from(number) - 1].generated && self.shown_defaults.iter().any(own) {
            self.takes_value(table, number)?;
        }
        Ok(())
    }

    /// What a column without a default of its own begins with: its domain's default, or NULL.
    fn type_default(&mut self, ty: Oid) -> Result<Expr> {
        if let Some(catalog::UserTypeKind::Base(base)) =
            self.cx.catalog.user_type(ty.0).map(|t| &t.kind)
            && let Some(text) = &base.default
        {
            let text = text.clone();
            return self.literal(&text, ty, 0);
        }
        if !types::user::is_user(ty) || super::coerce::base_of(ty) == ty {
            return Ok(Expr::Const(Datum::Null, ty));
        }
        let mut domain = self.cx.catalog.user_type(ty.0).cloned();
        while let Some(found) = domain {
            let catalog::UserTypeKind::Domain { base, typmod, default, .. } = &found.kind else {
                break;
            };
            if let Some(sql) = default {
                let value = self.stored_default(sql, Oid(*base), *typmod, &found.name)?;
                return Ok(self.checked(value, ty));
            }
            domain = self.cx.catalog.user_type(*base).cloned();
        }
        Ok(self.checked(Expr::Const(Datum::Null, ty), ty))
    }

    /// Whether the value that an INSERT gives for a column is taken (with OVERRIDING USER VALUE an
    /// identity column's is not).
    ///
    /// # Errors
    /// `428C9` where only DEFAULT may stand.
    pub(crate) fn takes_value(&self, table: &Table, number: u16) -> Result<bool> {
        let column = &table.columns[usize::from(number) - 1];
        let error = err!(
            GENERATED_ALWAYS,
            "cannot insert a non-DEFAULT value into column \"{}\"",
            column.name
        );
        if column.generated {
            let detail = format!("Column \"{}\" is a generated column.", column.name);
            return Err(error.detail(detail));
        }
        let Some(identity) = column.identity else { return Ok(true) };
        match pb::OverridingKind::try_from(self.overriding) {
            Ok(pb::OverridingKind::OverridingUserValue) => Ok(false),
            Ok(pb::OverridingKind::OverridingSystemValue) => Ok(true),
            _ if !identity.always => Ok(true),
            _ => Err(error
                .detail(identity_detail(&column.name))
                .hint("Use OVERRIDING SYSTEM VALUE to override.")),
        }
    }

    /// `428C9` for an UPDATE that sets such a column to anything but DEFAULT.
    pub(crate) fn check_settable(&self, table: &Table, number: u16) -> Result<()> {
        let column = &table.columns[usize::from(number) - 1];
        let error =
            || err!(GENERATED_ALWAYS, "column \"{}\" can only be updated to DEFAULT", column.name);
        if column.generated {
            let detail = format!("Column \"{}\" is a generated column.", column.name);
            return Err(error().detail(detail));
        }
        if column.identity.is_some_and(|i| i.always) {
            return Err(error().detail(identity_detail(&column.name)));
        }
        Ok(())
    }

    /// Expressions of the generated columns, over the table's columns.
    pub(crate) fn generated(&mut self, target: &TableRel) -> Result<Vec<(u16, Expr)>> {
        let mut out = Vec::new();
        let table = target.table.clone();
        for (number, column) in table.live_columns().filter(|(_, c)| c.generated) {
            let Some(sql) = &column.default else { continue };
            let node = crate::parse::parse_expr(sql)?;
            self.unseen += 1;
            let expr = self.generated_expr(target, &node, number);
            self.unseen -= 1;
            let own = target.col(crate::plan::ScanColumn::TableOid);
            let oid = Expr::Const(Datum::Oid(table.oid), types::oids::OID);
            let tableoid = |col| (col == own).then(|| oid.clone());
            let expr = expr.map_err(|e| self.near(e))?;
            out.push((number, crate::walk::substitute(expr, &tableoid)));
        }
        Ok(out)
    }
}

fn identity_detail(name: &str) -> String {
    format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS.")
}

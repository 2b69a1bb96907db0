//! Literals of types that name objects: `'pg_class'::regclass` and kin, looked up while binding.

use base::{Oid, Result};
use catalog::system::reg::Names;
use types::Datum;

use crate::expr::Expr;

use super::Binder;

impl Binder<'_> {
    /// The collation that COLLATE names.
    ///
    /// # Errors
    /// `42704`, `3F000`.
    pub(crate) fn collation(&self, clause: &pg_query::protobuf::CollateClause) -> Result<u32> {
        let names = super::ast::strings(&clause.collname);
        let position = self.at(clause.location);
        self.collation_named(&names).map(|c| c.oid).map_err(|e| e.at(position))
    }

    /// A name (or number, or `-`) as a value of regclass or one of its kin.
    ///
    /// # Errors
    /// The type's "does not exist".
    pub(crate) fn object_literal(&self, text: &str, ty: Oid) -> Result<Expr> {
        let (catalog, path) = (self.cx.catalog, self.cx.search_path);
        // The table has no oid yet; its column keeps the literal's text.
        if ty == types::oids::REGCLASS && self.new_table.as_deref() == Some(text) {
            return Ok(Expr::Const(Datum::Oid(0), ty));
        }
        let id = Names { catalog, path, database: None }.expect(ty, text)?;
        Ok(Expr::Const(Datum::Oid(id), ty))
    }
}

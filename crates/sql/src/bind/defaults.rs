//! Defaults and CHECKs of new tables, columns, domains and parameters: bound, and as they are kept.

use base::Result;
use pg_query::{NodeEnum, protobuf as pb};

use crate::expr::Expr;
use crate::parse::deparse_expr;

use super::{Binder, record};

impl Binder<'_> {
    /// Binds a new CHECK over its table, and notes the text that is kept of it.
    pub(crate) fn new_check(
        &mut self,
        rel: &crate::logical::TableRel,
        node: &NodeEnum,
    ) -> Result<()> {
        self.check_expr(rel, node)?;
        let text = self.stored_form(node, None, |b, node| b.check_expr(rel, node))?;
        self.check_texts.push((record::address(node), text));
        Ok(())
    }

    /// A default as it is kept, with the objects that it uses.
    pub(crate) fn new_default(
        &mut self,
        node: &NodeEnum,
        ty: base::Oid,
        typmod: i32,
        name: &str,
    ) -> Result<(String, Vec<u32>)> {
        let expr = self.default_expr(node, ty, typmod, name)?;
        let uses = self.objects_of(&expr, |b| b.default_expr(node, ty, typmod, name))?;
        let written = self.unfolding(|b| b.default_expr(node, ty, typmod, name))?;
        crate::view::default_survives(self.cx, node, (ty, typmod))?;
        if uses.is_empty() && !crate::print::has_fleeting_constant(&written) {
            return Ok((default_text(node, ty)?, uses));
        }
        Ok((crate::print::stored_default(self.cx, node, (ty, typmod))?, uses))
    }

    /// The same for a column or a domain, where NULL alone is no default: None.
    pub(crate) fn own_default(
        &mut self,
        node: &NodeEnum,
        (ty, typmod): (base::Oid, i32),
        name: &str,
    ) -> Result<Option<(String, Vec<u32>)>> {
        let written = self.unfolding(|b| b.default_expr(node, ty, typmod, name))?;
        match written {
            Expr::Const(value, _) if value.is_null() => Ok(None),
            _ => self.new_default(node, ty, typmod, name).map(Some),
        }
    }
}

/// A default as it is kept: a bare literal gets its type, as PostgreSQL shows it.
pub(crate) fn default_text(node: &NodeEnum, ty: base::Oid) -> Result<String> {
    use pb::a_const::Val;
    let text = deparse_expr(node)?;
    Ok(match node {
        NodeEnum::AConst(c) => match &c.val {
            Some(Val::Sval(_)) => format!("{text}::{}", crate::print::format_type(ty, -1)),
            Some(Val::Ival(i)) if i.ival < 0 => format!("'{}'::integer", i.ival),
            Some(Val::Fval(f)) if f.fval.starts_with('-') => {
                let ty = if f.fval.parse::<i64>().is_ok() { "bigint" } else { "numeric" };
                format!("'{}'::{ty}", f.fval)
            }
            _ => text,
        },
        _ => text,
    })
}

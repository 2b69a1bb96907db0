//! Literals of types that name objects: `'pg_class'::regclass` and kin, looked up while binding.

use base::{Oid, Result, err};
use types::Datum;
use types::oids::*;

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

    /// A name (or number, or `-`) as a value of regclass, regtype, regproc, regnamespace, regrole.
    ///
    /// # Errors
    /// The type's "does not exist".
    pub(crate) fn object_literal(&self, text: &str, ty: Oid) -> Result<Expr> {
        if text == "-" {
            return Ok(Expr::Const(Datum::Oid(0), ty));
        }
        if let Ok(number) = text.trim().parse::<u32>() {
            return Ok(Expr::Const(Datum::Oid(number), ty));
        }
        if matches!(ty, REGPROCEDURE | REGOPERATOR) {
            return self.signature_literal(text, ty);
        }
        if ty == REGOPER {
            return operator_literal(text);
        }
        let parts = split_name(text)?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (schema, name) = super::ast::qualified(&parts);
        if parts.len() > 3 && ty == REGCLASS {
            base::bail!(SYNTAX_ERROR, "improper relation name (too many dotted names): {text}");
        }
        if let Some(schema) = schema
            && ty == REGCLASS
            && self.cx.catalog.schema_named(schema).is_none()
        {
            base::bail!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist");
        }
        let oid = match ty {
            REGCLASS => match self.find_relation(schema, name) {
                Some(found) => found.oid(),
                None => {
                    let class = self.cx.catalog.composite_class(self.cx.search_path, schema, name);
                    class.ok_or_else(|| self.cx.catalog.missing_relation(schema, name))?
                }
            },
            REGTYPE => match self.type_by_text(text) {
                Some(oid) => oid.0,
                None => base::bail!(UNDEFINED_OBJECT, "type \"{text}\" does not exist"),
            },
            REGPROC => {
                let (catalog, path) = (self.cx.catalog, self.cx.search_path);
                match catalog::routine::named(catalog, path, schema, name)[..] {
                    [one] => one,
                    [] => base::bail!(UNDEFINED_FUNCTION, "function \"{text}\" does not exist"),
                    _ => {
                        base::bail!(AMBIGUOUS_FUNCTION, "more than one function named \"{text}\"")
                    }
                }
            }
            REGCOLLATION => self.collation_named(&parts)?.oid,
            REGNAMESPACE => match self.cx.catalog.schema_named(name) {
                Some(schema) => schema.oid,
                None => base::bail!(UNDEFINED_SCHEMA, "schema \"{text}\" does not exist"),
            },
            _ => match self.cx.catalog.roles().find(|r| r.name == name) {
                Some(role) => role.oid,
                None => base::bail!(UNDEFINED_OBJECT, "role \"{text}\" does not exist"),
            },
        };
        Ok(Expr::Const(Datum::Oid(oid), ty))
    }

    /// `name(type, …)` as a value of regprocedure, `op(type, type)` as one of regoperator.
    fn signature_literal(&self, text: &str, ty: Oid) -> Result<Expr> {
        let (name, list) = match text.split_once('(').map(|(n, l)| (n, l.trim_end())) {
            Some((name, list)) if list.ends_with(')') => (name, &list[..list.len() - 1]),
            Some(_) => {
                base::bail!(INVALID_TEXT_REPRESENTATION, "expected a right parenthesis")
            }
            None => base::bail!(INVALID_TEXT_REPRESENTATION, "expected a left parenthesis"),
        };
        let mut types = Vec::new();
        for one in list.split(',').map(str::trim).filter(|t| !t.is_empty()) {
            types.push(match self.type_by_text(one) {
                Some(oid) => oid,
                None if one.eq_ignore_ascii_case("none") => Oid::INVALID,
                None => base::bail!(UNDEFINED_OBJECT, "type \"{one}\" does not exist"),
            });
        }
        if ty == REGOPERATOR {
            let name = name.trim().trim_start_matches("pg_catalog.");
            let found = types::func::operators_named(name)
                .iter()
                .find(|o| types == [o.left, o.right])
                .map(|o| o.oid);
            let Some(oid) = found else {
                base::bail!(UNDEFINED_FUNCTION, "operator does not exist: {text}")
            };
            return Ok(Expr::Const(Datum::Oid(oid.0), ty));
        }
        let parts = split_name(name)?;
        let name = parts.last().map(String::as_str).unwrap_or_default();
        let schema = parts.len().checked_sub(2).map(|at| parts[at].as_str());
        let (catalog, path) = (self.cx.catalog, self.cx.search_path);
        if let Some(id) = catalog::routine::with_types(catalog, path, schema, name, &types) {
            return Ok(Expr::Const(Datum::Oid(id), ty));
        }
        let plain = types::func::functions_named(name).iter().map(|f| (f.oid, f.args));
        let aggregates = types::func::aggregates_named(name).iter().map(|a| (a.oid, a.args));
        match plain.chain(aggregates).find(|(_, args)| *args == types) {
            Some((oid, _)) => Ok(Expr::Const(Datum::Oid(oid.0), ty)),
            None => base::bail!(UNDEFINED_FUNCTION, "function \"{text}\" does not exist"),
        }
    }

    fn type_by_text(&self, text: &str) -> Option<Oid> {
        let node = crate::parse::parse_expr(&format!("NULL::{text}")).ok()?;
        match &*node {
            pg_query::NodeEnum::TypeCast(cast) => {
                self.type_name(cast.type_name.as_ref()?).ok().map(|t| t.0)
            }
            _ => None,
        }
    }
}

/// An operator's name as a value of regoper.
fn operator_literal(text: &str) -> Result<Expr> {
    let name = text.trim().trim_start_matches("pg_catalog.");
    match types::func::operators_named(name) {
        [one] => Ok(Expr::Const(Datum::Oid(one.oid.0), REGOPER)),
        [] => base::bail!(UNDEFINED_FUNCTION, "operator does not exist: {text}"),
        _ => base::bail!(AMBIGUOUS_FUNCTION, "more than one operator named {text}"),
    }
}

/// Splits `a."B".c` into its parts; unquoted ones in lower case.
pub(crate) fn split_name(text: &str) -> Result<Vec<String>> {
    let invalid = || err!(INVALID_NAME, "invalid name syntax");
    let mut parts = Vec::new();
    let mut chars = text.trim().chars().peekable();
    loop {
        let mut part = String::new();
        if chars.peek() == Some(&'"') {
            chars.next();
            loop {
                match chars.next() {
                    Some('"') if chars.peek() == Some(&'"') => {
                        chars.next();
                        part.push('"');
                    }
                    Some('"') => break,
                    Some(c) => part.push(c),
                    None => return Err(invalid()),
                }
            }
        } else {
            while let Some(c) = chars.next_if(|c| *c != '.') {
                part.extend(c.to_lowercase());
            }
        }
        if part.is_empty() {
            return Err(invalid());
        }
        parts.push(part);
        match chars.next() {
            None => return Ok(parts),
            Some('.') => {}
            Some(_) => return Err(invalid()),
        }
    }
}

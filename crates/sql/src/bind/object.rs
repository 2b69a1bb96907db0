//! Literals of types that name objects: `'pg_class'::regclass` and kin, looked up while binding.

use base::{Oid, Result, err};
use types::Datum;
use types::oids::*;

use crate::expr::Expr;

use super::Binder;

impl Binder<'_> {
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
        let parts = split_name(text)?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (schema, name) = super::ast::qualified(&parts);
        let oid = match ty {
            REGCLASS => match self.find_relation(schema, name) {
                Some(found) => found.oid(),
                None => return Err(self.cx.catalog.missing_relation(schema, name)),
            },
            REGTYPE => match self.type_by_text(text) {
                Some(oid) => oid.0,
                None => base::bail!(UNDEFINED_OBJECT, "type \"{text}\" does not exist"),
            },
            REGPROC => {
                let mut found = types::func::functions_named(name).iter();
                match (found.next(), found.next()) {
                    (Some(row), None) => row.oid.0,
                    (Some(_), Some(_)) => {
                        base::bail!(AMBIGUOUS_FUNCTION, "more than one function named \"{text}\"")
                    }
                    _ => base::bail!(UNDEFINED_FUNCTION, "function \"{text}\" does not exist"),
                }
            }
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

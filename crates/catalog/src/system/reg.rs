//! `regclass` and kin: oids that are shown as names and read from names.
//!
//! One place for literals, parameters, casts at run time, elements of arrays, and `to_reg…`: [`Names::find`]
//! reads, [`Names::shown`] writes. Both know every object of PostgreSQL's catalog, also those that do not
//! run here.

use base::{Error, Oid, Result, bail, err};
use types::func::quote_ident;
use types::oids;

use super::facts::{self, Fact};
use super::type_text::{self, TypeText};
use crate::object::{Id, ids};
use crate::snapshot::Snapshot;
use crate::system::tables::{by_oid, find};

/// Where names are looked up.
pub struct Names<'a> {
    /// The catalog.
    pub catalog: &'a Snapshot,
    /// Schemas to search.
    pub path: &'a [Id],
    /// The database's name, when it is known: names of three parts must begin with it.
    pub database: Option<&'a str>,
}

/// A name in its parts: a schema, when one is named, and the object.
struct Qualified {
    schema: Option<String>,
    name: String,
}

impl Names<'_> {
    /// The oid that a text stands for: a number, `-` for none, or a name; None when nothing has the name.
    ///
    /// # Errors
    /// `42602`, `22P02`, `42601` for what is no name, `42725` for a name that several objects have; `3F000` for a
    /// schema that isn't there, unless what `may_be_missing`.
    pub fn find(&self, ty: Oid, text: &str, may_be_missing: bool) -> Result<Option<Id>> {
        if text == "-" {
            return Ok(Some(0));
        }
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            let out = || {
                err!(NUMERIC_VALUE_OUT_OF_RANGE, "value \"{text}\" is out of range for type oid")
            };
            return text.parse().map(Some).map_err(|_| out());
        }
        match ty {
            oids::REGTYPE => return self.find_type(text, may_be_missing),
            oids::REGPROCEDURE | oids::REGOPERATOR => {
                return self.find_signature(ty, text, may_be_missing);
            }
            oids::REGROLE | oids::REGNAMESPACE => {
                let [name] = &split_name(text)?[..] else {
                    bail!(INVALID_NAME, "invalid name syntax");
                };
                return Ok(match ty {
                    oids::REGROLE => self.catalog.role_named(name).map(|r| r.oid),
                    _ => self.catalog.schema_named(name).map(|s| s.oid),
                });
            }
            _ => {}
        }
        let name = self.qualified(split_name(text)?, text, ty == oids::REGCLASS)?;
        if !may_be_missing {
            self.require_schema(&name)?;
        }
        Ok(match ty {
            oids::REGCLASS => self.relation(&name),
            oids::REGPROC => one_of(&self.functions(&name), "function", text, may_be_missing)?,
            oids::REGOPER => one_of(&self.operators(&name), "operator", text, may_be_missing)?,
            oids::REGCOLLATION => {
                let schema = name.schema.as_deref();
                self.catalog.collation_named(self.path, schema, &name.name).map(|c| c.oid)
            }
            _ => {
                let schema = name.schema.as_deref();
                self.catalog.text_search_named(self.path, letter(ty), schema, &name.name)
            }
        })
    }

    /// As [`Names::find`]; what isn't there is an error.
    ///
    /// # Errors
    /// As there, and the type's "does not exist".
    pub fn expect(&self, ty: Oid, text: &str) -> Result<Id> {
        match self.find(ty, text, false)? {
            Some(id) => Ok(id),
            None => Err(self.missing(ty, text)),
        }
    }

    fn missing(&self, ty: Oid, text: &str) -> Error {
        let (schema, name) = match split_name(text).ok().as_deref() {
            Some([.., schema, name]) => (Some(schema.clone()), name.clone()),
            Some([name]) => (None, name.clone()),
            _ => (None, text.to_owned()),
        };
        match ty {
            oids::REGCLASS => self.catalog.missing_relation(schema.as_deref(), &name),
            oids::REGCOLLATION => self.catalog.missing_collation(schema.as_deref(), &name),
            oids::REGPROC | oids::REGPROCEDURE => {
                err!(UNDEFINED_FUNCTION, "function \"{text}\" does not exist")
            }
            oids::REGOPER | oids::REGOPERATOR => {
                err!(UNDEFINED_FUNCTION, "operator does not exist: {text}")
            }
            oids::REGTYPE => err!(UNDEFINED_OBJECT, "type \"{text}\" does not exist"),
            oids::REGNAMESPACE => err!(UNDEFINED_SCHEMA, "schema \"{name}\" does not exist"),
            oids::REGROLE => err!(UNDEFINED_OBJECT, "role \"{name}\" does not exist"),
            oids::REGCONFIG => {
                err!(UNDEFINED_OBJECT, "text search configuration \"{text}\" does not exist")
            }
            _ => err!(UNDEFINED_OBJECT, "text search dictionary \"{text}\" does not exist"),
        }
    }

    /// Schema and name of a list of parts, the first of three being the database.
    fn qualified(&self, mut parts: Vec<String>, text: &str, relation: bool) -> Result<Qualified> {
        if parts.len() > 3 {
            let kind = if relation { "relation" } else { "qualified" };
            bail!(
                SYNTAX_ERROR,
                "improper {kind} name (too many dotted names): {}",
                parts.join(".")
            );
        }
        if parts.len() == 3 && self.database.is_some_and(|d| d != parts[0]) {
            let quote = if relation { "\"" } else { "" };
            let shown = if relation { parts.join(".") } else { text.to_owned() };
            bail!(
                FEATURE_NOT_SUPPORTED,
                "cross-database references are not implemented: {quote}{shown}{quote}"
            );
        }
        let name = parts.pop().unwrap_or_default();
        Ok(Qualified { schema: parts.pop(), name })
    }

    fn require_schema(&self, name: &Qualified) -> Result<()> {
        match &name.schema {
            Some(schema) if self.catalog.schema_named(schema).is_none() => {
                bail!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist")
            }
            _ => Ok(()),
        }
    }

    /// The schemas in which a name without one is searched, `pg_catalog` among them.
    fn searched(&self) -> impl Iterator<Item = Id> {
        let temporary = self.catalog.implicit_temporary(self.path);
        let implicit = (!self.path.contains(&ids::PG_CATALOG)).then_some(ids::PG_CATALOG);
        temporary.into_iter().chain(implicit).chain(self.path.iter().copied())
    }

    fn relation_in(&self, schema: Id, name: &str) -> Option<Id> {
        let system = match schema {
            ids::PG_CATALOG => find(None, name)
                .map(|t| t.oid)
                .or_else(|| facts::indexes().iter().find(|i| i.name == name).map(|i| i.oid)),
            ids::INFORMATION_SCHEMA => find(Some("information_schema"), name).map(|t| t.oid),
            _ => None,
        };
        let own = || self.catalog.relation_in(schema, name).map(|r| r.oid());
        let composite = || {
            let ty = self.catalog.type_in(schema, name)?;
            matches!(ty.kind, crate::UserTypeKind::Composite(_)).then_some(ty.class)
        };
        system.or_else(own).or_else(composite)
    }

    fn relation(&self, name: &Qualified) -> Option<Id> {
        match &name.schema {
            Some(schema) => self.relation_in(self.catalog.schema_named(schema)?.oid, &name.name),
            None => self.searched().find_map(|schema| self.relation_in(schema, &name.name)),
        }
    }

    fn functions(&self, name: &Qualified) -> Vec<Id> {
        crate::routine::named(self.catalog, self.path, name.schema.as_deref(), &name.name)
    }

    fn operators(&self, name: &Qualified) -> Vec<Id> {
        let mut out: Vec<Id> = match name.schema.as_deref() {
            None | Some("pg_catalog") => facts::operators_named(&name.name).collect(),
            Some(_) => Vec::new(),
        };
        let schemas: Vec<Id> = match &name.schema {
            Some(schema) => self.catalog.schema_named(schema).map(|s| s.oid).into_iter().collect(),
            None => self.path.to_vec(),
        };
        for schema in schemas {
            let own = self.catalog.operators_named(&name.name).filter(|o| o.schema == schema);
            out.extend(own.map(|o| o.oid));
        }
        out
    }

    /// `name(type, …)` as a value of regprocedure, `op(type, type)` as one of regoperator.
    fn find_signature(&self, ty: Oid, text: &str, may_be_missing: bool) -> Result<Option<Id>> {
        let is_operator = ty == oids::REGOPERATOR;
        let (name, list) = split_signature(text)?;
        let name = self.qualified(split_name(name)?, text, false)?;
        let mut types = Vec::new();
        for one in list {
            if is_operator && one.eq_ignore_ascii_case("none") {
                types.push(Oid::INVALID);
                continue;
            }
            let found = self.find_type(one, false)?;
            types.push(Oid(found.ok_or_else(|| self.missing(oids::REGTYPE, one))?));
        }
        if !may_be_missing {
            self.require_schema(&name)?;
        }
        if !is_operator {
            let schema = name.schema.as_deref();
            return Ok(crate::routine::with_types(
                self.catalog,
                self.path,
                schema,
                &name.name,
                &types,
            ));
        }
        match types[..] {
            [left, right] => {
                let is = |id: &Id| self.operand_types(*id) == Some([left.0, right.0]);
                Ok(self.operators(&name).into_iter().find(is))
            }
            [_] => Err(err!(UNDEFINED_PARAMETER, "missing argument")
                .hint("Use NONE to denote the missing argument of a unary operator.")),
            _ => Err(err!(TOO_MANY_ARGUMENTS, "too many arguments")
                .hint("Provide two argument types for operator.")),
        }
    }

    /// A type by its name as SQL writes it; lengths and precisions say nothing here.
    fn find_type(&self, text: &str, may_be_missing: bool) -> Result<Option<Id>> {
        let TypeText { parts, array, standard } = type_text::parse(text)?;
        let name = self.qualified(parts, text, false)?;
        if !may_be_missing {
            self.require_schema(&name)?;
        }
        let found = match standard {
            true => facts::type_named(ids::PG_CATALOG, &name.name),
            false => self.type_by_name(&name),
        };
        Ok(match found {
            Some(ty) if array => self.array_over(ty),
            found => found,
        })
    }

    fn type_by_name(&self, name: &Qualified) -> Option<Id> {
        let of_schema = |schema: Id| {
            let own = || self.catalog.type_oid_in(schema, &name.name);
            facts::type_named(schema, &name.name).or_else(own)
        };
        match &name.schema {
            Some(schema) => of_schema(self.catalog.schema_named(schema)?.oid),
            None => self.searched().find_map(of_schema),
        }
    }

    fn array_over(&self, ty: Id) -> Option<Id> {
        let array = match facts::kinds().get(ty) {
            Some(fact) => fact.id(facts::kind::ARRAY),
            None => self.catalog.known_type(ty)?.io.array.0,
        };
        // An array of arrays is of the same type.
        Some(if array == 0 { ty } else { array })
    }

    /// An oid as its type shows it: the object's name, with its schema where the search path does not find it;
    /// the number when there is no such object.
    pub fn shown(&self, ty: Oid, id: Id) -> String {
        if id == 0 {
            let operator = matches!(ty, oids::REGOPER | oids::REGOPERATOR);
            return if operator { "0" } else { "-" }.to_owned();
        }
        self.name(ty, id).unwrap_or_else(|| id.to_string())
    }

    fn name(&self, ty: Oid, id: Id) -> Option<String> {
        match ty {
            oids::REGCLASS => self.relation_name(id),
            oids::REGTYPE => {
                let name = types::io::format_type(Oid(id), -1);
                if name != "???" { Some(name) } else { self.catalog.type_name(self.path, id) }
            }
            oids::REGNAMESPACE => self.catalog.schema(id).map(|s| quote_ident(&s.name)),
            oids::REGROLE => self.catalog.role(id).map(|r| quote_ident(&r.name)),
            oids::REGPROC | oids::REGPROCEDURE if self.catalog.function(id).is_some() => {
                let signature = ty == oids::REGPROCEDURE;
                crate::routine::shown(self.catalog, self.path, id, signature)
            }
            oids::REGPROC => facts::regproc(id),
            oids::REGPROCEDURE => facts::regprocedure(id),
            oids::REGCOLLATION => self.catalog.shown_collation(self.path, id),
            oids::REGOPER | oids::REGOPERATOR if self.catalog.operator(id).is_some() => {
                self.own_operator(id, ty == oids::REGOPERATOR)
            }
            oids::REGOPER => facts::regoper(id),
            oids::REGOPERATOR => facts::regoperator(id),
            _ => {
                if let Some(own) = self.catalog.defined_by_oid(id) {
                    let schema = own.schema()?;
                    let name = quote_ident(own.name());
                    let named =
                        self.catalog.text_search_named(self.path, letter(ty), None, own.name());
                    return Some(match self.catalog.schema(schema) {
                        Some(s) if named != Some(id) => format!("{}.{name}", quote_ident(&s.name)),
                        _ => name,
                    });
                }
                let fits = |f: &Fact| f.text(0) == letter(ty) && f.id(1) == id;
                facts::text_search().iter().find(fits).map(|f| quote_ident(f.text(2)))
            }
        }
    }

    /// The types of an operator's operands; 0: none.
    fn operand_types(&self, id: Id) -> Option<[Id; 2]> {
        match self.catalog.operator(id) {
            Some(own) => Some([own.left, own.right]),
            None => facts::operand_types(id),
        }
    }

    /// A user's operator as `regoper` shows it, or as `regoperator`.
    fn own_operator(&self, id: Id, signature: bool) -> Option<String> {
        let own = self.catalog.operator(id)?;
        let plain = Qualified { schema: None, name: own.name.clone() };
        let mut found = self.operators(&plain);
        if signature {
            found.retain(|other| self.operand_types(*other) == Some([own.left, own.right]));
            found.truncate(1);
        }
        let name = match self.catalog.schema(own.schema) {
            Some(schema) if found != [id] => format!("{}.{}", quote_ident(&schema.name), own.name),
            _ => own.name.clone(),
        };
        let side = |ty: Id| match ty {
            0 => "NONE".to_owned(),
            ty => self.shown(oids::REGTYPE, ty),
        };
        Some(match signature {
            true => format!("{name}({},{})", side(own.left), side(own.right)),
            false => name,
        })
    }

    /// A relation's schema and name.
    pub(super) fn relation_parts(&self, id: Id) -> Option<(Id, String)> {
        if let Some(table) = self.catalog.table(id) {
            return Some((table.schema, table.name.clone()));
        }
        if let Some(index) = self.catalog.index(id) {
            return Some((index.schema, index.name.clone()));
        }
        if let Some(sequence) = self.catalog.sequence(id) {
            return Some((sequence.schema, sequence.name.clone()));
        }
        if let Some(index) = facts::index(id) {
            return Some((ids::PG_CATALOG, index.name.to_owned()));
        }
        if let Some(ty) = self.catalog.composite_of_class(id) {
            return Some((ty.schema, ty.name.clone()));
        }
        let system = by_oid(Oid(id))?;
        Some((system.schema, system.name.to_owned()))
    }

    /// Whether the path finds a relation by its name alone; None when it isn't there.
    pub fn relation_is_visible(&self, id: Id) -> Option<bool> {
        let (_, name) = self.relation_parts(id)?;
        Some(self.searched().find_map(|schema| self.relation_in(schema, &name)) == Some(id))
    }

    /// A relation's name, qualified where the search path doesn't lead to it.
    pub fn relation_name(&self, id: Id) -> Option<String> {
        let (schema, name) = self.relation_parts(id)?;
        if self.relation_is_visible(id) == Some(true) {
            return Some(quote_ident(&name));
        }
        let schema = self.catalog.schema(schema).map_or("information_schema", |s| &s.name);
        Some(format!("{}.{}", quote_ident(schema), quote_ident(&name)))
    }
}

/// The one object of a name; several are an error, unless NULL is the answer to what isn't there.
fn one_of(found: &[Id], kind: &str, text: &str, may_be_missing: bool) -> Result<Option<Id>> {
    match found {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        _ if may_be_missing => Ok(None),
        _ if kind == "function" => {
            Err(err!(AMBIGUOUS_FUNCTION, "more than one function named \"{text}\""))
        }
        _ => Err(err!(AMBIGUOUS_FUNCTION, "more than one {kind} named {text}")),
    }
}

/// The letter of `facts/text_search.txt` for regconfig or regdictionary.
fn letter(ty: Oid) -> &'static str {
    if ty == oids::REGCONFIG { "c" } else { "d" }
}

/// The name and the list of types of `name(type, …)`.
fn split_signature(text: &str) -> Result<(&str, Vec<&str>)> {
    let mut quoted = false;
    let open = text.char_indices().find(|(_, c)| {
        quoted ^= *c == '"';
        *c == '(' && !quoted
    });
    let Some((open, _)) = open else {
        bail!(INVALID_TEXT_REPRESENTATION, "expected a left parenthesis")
    };
    let Some(inner) = text[open + 1..].trim_end().strip_suffix(')') else {
        bail!(INVALID_TEXT_REPRESENTATION, "expected a right parenthesis")
    };
    let (mut list, mut depth, mut quoted, mut start) = (Vec::new(), 0, false, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                list.push(inner[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inner.trim().is_empty() {
        list.push(inner[start..].trim());
    }
    if list.contains(&"") {
        bail!(INVALID_TEXT_REPRESENTATION, "expected a type name");
    }
    Ok((&text[..open], list))
}

/// Splits `a."B".c` into its parts; unquoted ones in lower case.
///
/// # Errors
/// `42602`.
pub fn split_name(text: &str) -> Result<Vec<String>> {
    let invalid = || err!(INVALID_NAME, "invalid name syntax");
    let mut parts = Vec::new();
    let mut rest = text.trim_start();
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_part(quoted).ok_or_else(invalid)?,
            None => {
                let end = rest.find(|c: char| c == '.' || c.is_whitespace()).unwrap_or(rest.len());
                (rest[..end].to_lowercase(), &rest[end..])
            }
        };
        if part.is_empty() {
            return Err(invalid());
        }
        parts.push(types::io::cut_name(&part).to_owned());
        match after.trim_start().strip_prefix('.') {
            Some(more) => rest = more.trim_start(),
            None if after.trim().is_empty() => return Ok(parts),
            None => return Err(invalid()),
        }
    }
}

/// A quoted part without its opening quote: the name and what follows.
pub(super) fn quoted_part(quoted: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = quoted.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c != '"' {
            name.push(c);
        } else if chars.next_if(|(_, c)| *c == '"').is_some() {
            name.push('"');
        } else {
            return Some((name, &quoted[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_at_dots_outside_quotes() {
        let split = |name| split_name(name).ok();
        assert_eq!(split("A.b"), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(split("\"A.b\""), Some(vec!["A.b".to_owned()]));
        assert_eq!(split("\"a\"\"b\" . c "), Some(vec!["a\"b".to_owned(), "c".to_owned()]));
        assert_eq!(split("a."), None);
        assert_eq!(split("\"a"), None);
        assert_eq!(split("a b"), None);
    }

    #[test]
    fn every_function_operator_and_type_is_found_by_what_it_shows() {
        let mut catalog = Snapshot::default();
        crate::object::initial().into_iter().for_each(|o| catalog.put(o));
        let names = Names { catalog: &catalog, path: &[], database: None };
        let round = |ty: Oid, id: Id| {
            let shown = names.shown(ty, id);
            assert_eq!(names.find(ty, &shown, false).unwrap(), Some(id), "{shown}");
        };
        facts::functions().iter().for_each(|f| round(oids::REGPROCEDURE, f.id(0)));
        facts::operators().iter().for_each(|f| round(oids::REGOPERATOR, f.id(0)));
        let visible = |f: &Fact| f.text(facts::kind::SCHEMA) == "pg_catalog";
        facts::kinds().iter().filter(visible).for_each(|f| round(oids::REGTYPE, f.id(0)));
    }
}

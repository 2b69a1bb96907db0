//! CREATE TYPE of shells, base types and ranges.

use base::{Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};

use crate::type_statement::{BaseChange, BaseDef, RangeDef, TypeStatement};

use super::define::def_value;
use super::{Binder, ast, inner};

impl Binder<'_> {
    /// CREATE TYPE with a name only, or with functions.
    pub(crate) fn create_base_type(&self, stmt: &pb::DefineStmt) -> Result<TypeStatement> {
        let name = self.name_of_list(&stmt.defnames);
        if stmt.definition.is_empty() {
            return Ok(TypeStatement::CreateShell(name));
        }
        let mut out = BaseDef { name: Some(name), ..BaseDef::default() };
        let mut seen: Vec<&str> = Vec::new();
        for node in &stmt.definition {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let text = || def_value(def).unwrap_or_default();
            let flag =
                || def_value(def).is_none_or(|v| base::settings::parse_bool(&v).unwrap_or(false));
            let word = def.defname.as_str();
            if let Some(at) = FUNCTIONS.iter().position(|f| *f == word) {
                out.functions[at] = self.name_of_def(def);
            } else {
                match word {
                    "like" => out.like = Some(self.type_of_def(def)?),
                    "internallength" => out.length = Some(length(&text())?),
                    "passedbyvalue" => out.by_value = Some(flag()),
                    "alignment" => out.align = Some(alignment(&text())?),
                    "storage" => out.storage = Some(storage(&text())?),
                    "category" => out.category = text().chars().next(),
                    "preferred" => out.preferred = flag(),
                    "default" => out.default = Some(text()),
                    "element" => out.element = Some(self.type_of_def(def)?),
                    "delimiter" => out.delimiter = text().chars().next(),
                    "collatable" => out.collatable = flag(),
                    other => {
                        out.unknown.push((other.to_owned(), self.at(def.location)));
                        continue;
                    }
                }
            }
            if seen.contains(&word) {
                return Err(err!(SYNTAX_ERROR, "conflicting or redundant options")
                    .at(self.at(def.location)));
            }
            seen.push(word);
        }
        Ok(TypeStatement::CreateBase(Box::new(out)))
    }

    /// ALTER TYPE … SET.
    pub(crate) fn alter_base_type(&self, stmt: &pb::AlterTypeStmt) -> Result<TypeStatement> {
        let name = self.name_of_list(&stmt.type_name);
        let mut out = BaseChange { name, storage: None, functions: Vec::new() };
        for node in &stmt.options {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let word = def.defname.as_str();
            match FUNCTIONS.iter().position(|f| *f == word) {
                _ if word == "storage" => {
                    out.storage = Some(storage(&def_value(def).unwrap_or_default())?);
                }
                Some(at @ 2..) => out.functions.push((at, self.name_of_def(def))),
                Some(_) => return Err(fixed(word)),
                None if ATTRIBUTES.contains(&word) => return Err(fixed(word)),
                None => {
                    return Err(err!(SYNTAX_ERROR, "type attribute \"{word}\" not recognized"));
                }
            }
        }
        Ok(TypeStatement::SetBase(out))
    }

    /// CREATE TYPE … AS RANGE.
    pub(crate) fn create_range(&self, stmt: &pb::CreateRangeStmt) -> Result<TypeStatement> {
        let mut out = RangeDef::new(self.name_of_list(&stmt.type_name));
        let mut seen: Vec<&str> = Vec::new();
        for node in &stmt.params {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let word = def.defname.as_str();
            if seen.contains(&word) {
                return Err(err!(SYNTAX_ERROR, "conflicting or redundant options")
                    .at(self.at(def.location)));
            }
            seen.push(word);
            match word {
                "subtype" => out.subtype = Some(self.type_of_def(def)?),
                "subtype_opclass" => out.class = self.name_of_def(def),
                "collation" => {
                    let names = match inner(&def.arg) {
                        Some(NodeEnum::TypeName(t)) => ast::strings(&t.names),
                        Some(NodeEnum::List(list)) => ast::strings(&list.items),
                        Some(NodeEnum::String(s)) => vec![s.sval.as_str()],
                        _ => Vec::new(),
                    };
                    out.collation = Some(self.collation_named(&names)?.oid);
                }
                "canonical" => out.canonical = self.name_of_def(def),
                "subtype_diff" => out.diff = self.name_of_def(def),
                "multirange_type_name" => out.multirange = self.name_of_def(def),
                other => {
                    return Err(err!(SYNTAX_ERROR, "type attribute \"{other}\" not recognized"));
                }
            }
        }
        if let Some(ty) = out.subtype
            && (ty == Oid::INVALID || types::TypeIo::get(ty).is_none_or(|io| io.category == b'P'))
        {
            let name = types::io::format_type(ty, -1);
            return Err(err!(DATATYPE_MISMATCH, "range subtype cannot be {name}"));
        }
        Ok(TypeStatement::CreateRange(Box::new(out)))
    }
}

/// Attributes that are functions, in the order of [`BaseDef::functions`].
const FUNCTIONS: [&str; 8] =
    ["input", "output", "receive", "send", "typmod_in", "typmod_out", "analyze", "subscript"];

/// Attributes that stay as they were given.
const ATTRIBUTES: [&str; 10] = [
    "like",
    "internallength",
    "passedbyvalue",
    "alignment",
    "category",
    "preferred",
    "default",
    "element",
    "delimiter",
    "collatable",
];

fn fixed(word: &str) -> base::Error {
    err!(SYNTAX_ERROR, "type attribute \"{word}\" cannot be changed")
}

fn length(text: &str) -> Result<i16> {
    if text.eq_ignore_ascii_case("variable") {
        return Ok(-1);
    }
    text.parse().map_err(|_| err!(SYNTAX_ERROR, "invalid argument for internallength: \"{text}\""))
}

fn alignment(text: &str) -> Result<char> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "double" | "float8" | "pg_catalog.float8" | "double precision" => 'd',
        "int4" | "pg_catalog.int4" | "integer" => 'i',
        "int2" | "pg_catalog.int2" | "smallint" => 's',
        "char" | "pg_catalog.bpchar" | "bpchar" => 'c',
        _ => {
            return Err(err!(INVALID_PARAMETER_VALUE, "alignment \"{text}\" not recognized"));
        }
    })
}

fn storage(text: &str) -> Result<char> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "plain" => 'p',
        "external" => 'e',
        "extended" => 'x',
        "main" => 'm',
        _ => {
            return Err(err!(INVALID_PARAMETER_VALUE, "storage \"{text}\" not recognized"));
        }
    })
}

//! PostgreSQL's own objects by what statements call them, for those kinds of which users make none.

use base::Oid;

use super::facts::{self, Fact, field};
use crate::object::ids::{BTREE_AM, HEAP_AM, PG_DEFAULT, PG_GLOBAL};
use crate::object::{Id, NamedMethod};
use crate::snapshot::Snapshot;

/// An access method.
pub fn access_method(name: &str) -> Option<Id> {
    ACCESS_METHODS.iter().find(|m| m.1 == name).map(|m| m.0)
}

/// The name of one.
pub fn access_method_name(id: Id) -> Option<&'static str> {
    ACCESS_METHODS.iter().find(|m| m.0 == id).map(|m| m.1)
}

/// One that the server or an extension has, as users' are described.
pub fn built_in_method(name: &str) -> Option<NamedMethod> {
    let (oid, name, handler, kind) = *ACCESS_METHODS.iter().find(|m| m.1 == name)?;
    Some(NamedMethod { oid, name: name.to_owned(), kind, handler })
}

/// The access method that a handler of PostgreSQL's stands for: oid and kind.
pub fn handled_method(handler: Id) -> Option<(Id, char)> {
    ACCESS_METHODS.iter().find(|m| m.2 == handler && handler != 0).map(|m| (m.0, m.3))
}

/// A language.
pub fn language(name: &str) -> Option<Id> {
    LANGUAGES.iter().find(|l| l.1 == name).map(|l| l.0)
}

/// A language's name.
pub fn language_name(language: Id) -> Option<&'static str> {
    LANGUAGES.iter().find(|l| l.0 == language).map(|l| l.1)
}

/// Whether a language may be used by those who are no superusers.
pub fn is_trusted_language(language: Id) -> bool {
    LANGUAGES.iter().any(|l| l.0 == language && l.2)
}

/// A tablespace.
pub fn tablespace(name: &str) -> Option<Id> {
    TABLESPACES.iter().find(|t| t.1 == name).map(|t| t.0)
}

/// A cast between two types.
pub fn cast(source: Oid, target: Oid) -> Option<Id> {
    let is = |f: &Fact| (f.id(1), f.id(2)) == (source.0, target.0);
    facts::casts().iter().find(is).map(|f| f.id(0))
}

/// An operator of these types; none on the left: a prefix operator.
pub fn operator(name: &str, left: Option<Oid>, right: Oid) -> Option<Id> {
    let types = [left.unwrap_or(Oid::INVALID).0, right.0];
    facts::operators_named(name).find(|id| facts::operand_types(*id) == Some(types))
}

/// An operator class of an access method.
pub fn operator_class(method: Id, name: &str) -> Option<Id> {
    let is = |f: &Fact| f.text(1) == name && f.id(6) == method;
    facts::classes().iter().find(is).map(|f| f.id(0))
}

/// The operator class that values of a type have by default.
pub fn default_class(method: Id, ty: Id) -> Option<String> {
    let is = |f: &Fact| f.id(6) == method && f.id(3) == ty && f.flag(4);
    facts::classes().iter().find(is).map(|f| f.text(1).to_owned())
}

/// The type that an operator class is for.
pub fn class_input(class: Id) -> Option<Id> {
    facts::classes().get(class).map(|f| f.id(3))
}

/// A family's name.
pub fn family_name(family: Id) -> Option<String> {
    facts::families().get(family).map(|f| f.text(1).to_owned())
}

/// A family of operators of an access method.
pub fn operator_family(method: Id, name: &str) -> Option<Id> {
    let is = |f: &Fact| f.text(1) == name && f.id(2) == method;
    facts::families().iter().find(is).map(|f| f.id(0))
}

/// An extension.
pub fn extension(catalog: &Snapshot, name: &str) -> Option<Id> {
    match name {
        "plpgsql" => Some(PLPGSQL_EXTENSION),
        name => catalog.extension_named(name).map(|e| e.oid),
    }
}

/// A conversion between encodings.
pub fn conversion(name: &str) -> Option<Id> {
    facts::conversions().iter().find(|f| f.text(1) == name).map(|f| f.id(0))
}

/// An object of text search: a parser (p), template (t), dictionary (d) or configuration (c).
pub fn text_search(letter: &str, name: &str) -> Option<Id> {
    let is = |f: &Fact| f.text(0) == letter && f.text(2) == name;
    facts::text_search().iter().find(is).map(|f| f.id(1))
}

/// Functions and aggregates with a name, and all of these types if they are given: oid, and whether it is an aggregate.
pub fn routines(name: &str, args: Option<&[Oid]>) -> Vec<(Id, bool)> {
    let fits = |id: &Id| {
        let Some(fact) = facts::functions().get(*id) else { return false };
        args.is_none_or(|args| fact.ids(field::ARGUMENTS).eq(args.iter().map(|a| a.0)))
    };
    let is_aggregate =
        |id: Id| facts::functions().get(id).is_some_and(|f| f.text(field::KIND) == "a");
    facts::named(name).into_iter().filter(fits).map(|id| (id, is_aggregate(id))).collect()
}

/// Oid and name.
pub(super) const TABLESPACES: [(Id, &str); 2] =
    [(PG_DEFAULT, "pg_default"), (PG_GLOBAL, "pg_global")];

/// Oid, name, handler, kind.
pub(super) const ACCESS_METHODS: [(Id, &str, Id, char); 10] = [
    (HEAP_AM, "heap", 3, 't'),
    (BTREE_AM, "btree", 330, 'i'),
    (405, "hash", 331, 'i'),
    (783, "gist", 332, 'i'),
    (2742, "gin", 333, 'i'),
    (4000, "spgist", 334, 'i'),
    (3580, "brin", 335, 'i'),
    (8301, "hnsw", 0, 'i'),
    (8302, "ivfflat", 0, 'i'),
    (8303, "bloom", 0, 'i'),
];

/// Oid, name, trusted, functions: call handler, handler of DO, validator.
pub(super) const LANGUAGES: [(Id, &str, bool, [Id; 3]); 7] = [
    (12, "internal", false, [0, 0, 2246]),
    (13, "c", false, [0, 0, 2247]),
    (14, "sql", true, [0, 0, 2248]),
    (PLPGSQL, "plpgsql", true, [13560, 13561, 13562]),
    (JAVASCRIPT, "javascript", true, [0, 0, 0]),
    (WASM, "wasm", true, [0, 0, 0]),
    (JAVA, "java", false, [0, 0, 0]),
];

/// The language PL/pgSQL.
pub(crate) const PLPGSQL: Id = 13563;

/// The language JavaScript, which PostgreSQL has not.
pub(crate) const JAVASCRIPT: Id = 15990;

/// The language WebAssembly, which PostgreSQL has not.
pub(crate) const WASM: Id = 15991;

/// The language Java, which databases with the extension of that name have.
pub(crate) const JAVA: Id = 15992;

/// The extension of this name, which every database has.
pub(super) const PLPGSQL_EXTENSION: Id = 13559;

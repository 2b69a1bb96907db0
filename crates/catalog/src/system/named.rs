//! PostgreSQL's own objects by what statements call them, for those kinds of which users make none.

use base::Oid;
use types::func;

use super::facts::{self, field};
use super::{builtin, schema};
use crate::object::Id;

/// An access method.
pub fn access_method(name: &str) -> Option<Id> {
    schema::ACCESS_METHODS.iter().find(|m| m.1 == name).map(|m| m.0)
}

/// A language.
pub fn language(name: &str) -> Option<Id> {
    schema::LANGUAGES.iter().find(|l| l.1 == name).map(|l| l.0)
}

/// A tablespace.
pub fn tablespace(name: &str) -> Option<Id> {
    schema::TABLESPACES.iter().find(|t| t.1 == name).map(|t| t.0)
}

/// A cast between two types.
pub fn cast(source: Oid, target: Oid) -> Option<Id> {
    let found = func::casts().iter().find(|c| (c.source, c.target) == (source, target))?;
    Some(builtin::cast_oid(found)).filter(|id| *id != 0)
}

/// An operator of these types; none on the left: a prefix operator.
pub fn operator(name: &str, left: Option<Oid>, right: Oid) -> Option<Id> {
    let left = left.unwrap_or(Oid::INVALID);
    let is = |o: &&func::OperatorRow| (o.left, o.right) == (left, right);
    func::operators_named(name).iter().find(is).map(|o| o.oid.0)
}

/// An operator class for B-trees.
pub fn operator_class(name: &str) -> Option<Id> {
    let is = |f: &facts::Fact| f.text(1) == name && builtin::has_type(f.id(3));
    facts::classes().iter().find(is).map(|f| f.id(0))
}

/// A family of operators for B-trees.
pub fn operator_family(name: &str) -> Option<Id> {
    let is = |f: &facts::Fact| f.text(1) == name && builtin::has_family(f.id(0));
    facts::families().iter().find(is).map(|f| f.id(0))
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
